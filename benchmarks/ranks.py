"""Jobs of several ranks on this host, for the benchmarks that measure them."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from pysolvers.distributed import launch_command, launched

__all__ = ["is_rank", "printed_by", "write_as_rank"]


def is_rank(path: str | None) -> bool:
    """Return whether this process is a rank of a job; `path` is that of the record, or `-`."""
    return launched()[0] > 1 or path == "-"


def printed_by(name: str, ranks: int, options: Sequence[str]) -> Any:
    """Return the values that rank 0 of a job prints.

    Parameters
    ----------
    name : str
        Name of a benchmark that prints its values with the options ``--json -``.
    ranks : int
        Number of processes; one needs no launcher.
    options : sequence of str
        Options of the benchmark.
    """
    arguments = ["-m", "pysolvers", "bench", name, *options, "--json", "-"]
    command = [sys.executable, *arguments] if ranks == 1 else launch_command(ranks, arguments)
    environment = {"MPIR_CVAR_ENABLE_GPU": "0"} | os.environ
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(run.stdout)


def write_as_rank(found: Any, path: str | None) -> bool:
    """Print the values of a job for `printed_by`; return whether nothing else is to be done."""
    if launched()[1] > 0:
        return True
    if path == "-":
        json.dump(found, sys.stdout)
    return path == "-"
