"""The properties of the machine that `info` prints and that files of results contain."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")

_GPU_FACTS = {"name": "name", "driver": "driver_version", "memory": "memory.total"}


def cpu_model() -> str:
    """Return the name of the processor, as the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cpu_count() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def last_level_cache(default: int = 2**25) -> int:
    """Return the size of the largest cache in bytes, or `default` if it is not reported."""
    sizes = [path.read_text().strip() for path in _CACHES.glob("index*/size")]
    return max((int(size[:-1]) * _UNITS[size[-1]] for size in sizes), default=default)


def versions(*packages: str) -> dict[str, str | None]:
    """Return the version of Python and of each of `packages`, None for one that is missing."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def machine() -> dict[str, str | int]:
    """Return processor, processors usable, largest cache in bytes and system."""
    return {
        "cpu": cpu_model(),
        "cpus": cpu_count(),
        "last_level_cache": last_level_cache(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def gpu() -> dict[str, str] | None:
    """Return name, driver and memory of the first GPU; None if no tool reports one."""
    query = ",".join(_GPU_FACTS.values())
    line = _first_line("nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader")
    if line is None:
        return None
    return dict(zip(_GPU_FACTS, map(str.strip, line.split(",")), strict=True))


def _first_line(*command: str) -> str | None:
    """Return the first line that a command prints, None if it fails or prints nothing."""
    lines = (output_of(*command) or "").strip().splitlines()
    return lines[0] if lines else None


def output_of(*command: str) -> str | None:
    """Return what a command prints; None if it is missing or fails."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return run.stdout
