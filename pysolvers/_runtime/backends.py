"""The backends by name: their modules, or the reasons why they are not available.

A backend is an extension module that implements the interface ``pysolvers.h``. It is
imported at its first use. The backend for CUDA is in this package if the package was built with
it, otherwise in a distribution of its own, because it is much larger than the package.
"""

import importlib
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from .._environment import check_environment
from .._errors import BackendError

# The distribution that contains the compiled backend for CUDA; its number is the major version of
# CUDA. Its package has the same name with an underscore. The build reads this line.
CUDA_DISTRIBUTION = "pysolvers-cuda13"
_CUDA_PACKAGE = CUDA_DISTRIBUTION.replace("-", "_")

# The modules of a backend; the first one that is installed is used.
_MODULES = {
    "cpu": ("pysolvers._core",),
    "cuda": ("pysolvers._cuda", f"{_CUDA_PACKAGE}._cuda"),
}

# What to do if no module of a backend is installed.
_REMEDIES = {
    "cpu": "install the package with pip install . in a copy of the source",
    "cuda": "build it with PYSOLVERS_CUDA=1 pip install . in a copy of the source, where nvcc is "
    "found, or use device='cpu'",
}

_ROOT = Path(__file__).parents[2]

# Number of the contract csrc/include/pysolvers.h. The build compiles it into the extensions, so
# that an extension built before a change of the contract is refused. Raise it with every change.
ABI_VERSION = 28


def names() -> tuple[str, ...]:
    """Return the names of all backends, also of those that are not available."""
    return tuple(_MODULES)


@cache
def _load(name: str) -> ModuleType | str:
    """Return the module of a backend, or the reason why it is not available."""
    if name == "cpu":
        check_environment()
    for module_name in _MODULES[name]:
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name not in (module_name, module_name.partition(".")[0]):
                return f"{module_name} cannot be imported: {error}"
        except ImportError as error:
            return f"{module_name} cannot be imported: {error}"
        else:
            return _mismatch(module, module_name) or module
    return _missing(name)


def _mismatch(module: ModuleType, module_name: str) -> str | None:
    """Return why a module cannot be used with this package, or None if it can."""
    remedy = "rebuild it"
    if module_name.startswith(f"{_CUDA_PACKAGE}."):
        from .._version import UNKNOWN_VERSION, __version__

        found = _version_of(CUDA_DISTRIBUTION)
        wanted = None if __version__ == UNKNOWN_VERSION else __version__
        remedy = "build both from one copy of the source"
        if wanted and found not in (None, wanted):
            return f"{CUDA_DISTRIBUTION} is version {found}, pysolvers is {wanted}: {remedy}"
    if module.ABI != ABI_VERSION:
        return (
            f"{module_name} was built for contract {module.ABI}, "
            f"this package needs {ABI_VERSION}: {remedy}"
        )
    return None


def _version_of(distribution: str) -> str | None:
    """Return the version of an installed distribution; None if it is not known."""
    from importlib.metadata import PackageNotFoundError, version  # takes 15 ms

    try:
        return version(distribution)
    except PackageNotFoundError:  # a folder of the search path, which pip did not install
        return None


def loaded(name: str) -> ModuleType | None:
    """Return the module of a backend if it has been imported, without importing it."""
    return next((sys.modules[m] for m in _MODULES[name] if m in sys.modules), None)


def installed_module(name: str) -> str | None:
    """Return the name of the module of a backend, with or without a device, or None."""
    found = _load(name)
    return None if isinstance(found, str) else found.__name__


def _missing(name: str) -> str:
    """Return that no module of a backend is installed, and what to do."""
    module = _MODULES[name][0]
    if name == "cpu" and (_ROOT / "setup.py").is_file():
        return (
            f"{module} was not compiled in {_ROOT}: Python imports the package from this copy of "
            "the source, also if it is installed. Start Python in another folder, or compile the "
            "copy with pip install -e ."
        )
    remedy = f": {_REMEDIES[name]}" if name in _REMEDIES else ""
    return f"{module} is not installed{remedy}"


def unavailable_reason(name: str) -> str | None:
    """Return why a backend is not available, or None if it is."""
    found = _load(name)
    return found if isinstance(found, str) else _device_reason(found)


def _device_reason(module: ModuleType) -> str | None:
    """Return why the device of a backend is not available, or None."""
    # getattr() would make the text of an AttributeError, which costs more than a small solve.
    unavailable = vars(module).get("unavailable")
    return unavailable() if unavailable is not None else None


def require(name: str) -> ModuleType:
    """Return the extension module of a backend.

    Parameters
    ----------
    name : str
        One of `names`.

    Returns
    -------
    module
        The extension, built for the contract of this package.

    Raises
    ------
    BackendError
        If the backend is not available; the message gives the reason.
    """
    found = _load(name)
    reason = found if isinstance(found, str) else _device_reason(found)
    if isinstance(found, str) or reason is not None:
        raise BackendError(f"the backend {name!r} is not available: {reason}")
    return found


@cache
def host() -> ModuleType:
    """Return the extension module of the CPU."""
    return require("cpu")


def require_device(ordinal: int) -> ModuleType:
    """Return the extension module of CUDA, or raise BackendError if a device does not exist.

    Parameters
    ----------
    ordinal : int
        Number of the device.
    """
    backend = require("cuda")
    if ordinal and ordinal >= (count := backend.device_count()):
        raise BackendError(f"there is no device cuda:{ordinal}: {count} in all")
    return backend


def parse_device(device: str | None) -> tuple[str, int]:
    """Split a device text into backend and ordinal.

    Parameters
    ----------
    device : str or None
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ...; None is the CPU. ``"gpu"`` is ``"cuda"``.

    Returns
    -------
    backend : str
        One of `names`.
    ordinal : int
        Number of the device; 0 if not given.

    Raises
    ------
    TypeError
        If `device` is neither text nor None.
    ValueError
        If `device` names no backend, or gives a number for the CPU.
    """
    if device is None:
        return "cpu", 0
    if not isinstance(device, str):
        raise TypeError(f"device must be a str or None, got {type(device).__name__}")
    match = re.fullmatch(r"(cpu)|(cuda|gpu)(?::(\d+))?", device)
    if match is None:
        raise ValueError(f"device must be 'cpu', 'cuda' or 'cuda:N', got {device!r}")
    return match[1] or "cuda", int(match[3] or 0)
