"""Processes of an MPI launcher: how many it started, and the command that starts them."""

import os
import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from .._errors import BackendError

# Variables that MPI launchers set to the number of processes and to the number of this one: those
# of MPICH and Intel MPI, Open MPI, and MVAPICH.
_LAUNCHED = (
    ("PMI_SIZE", "PMI_RANK"),
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
)


def launched() -> tuple[int, int]:
    """Return the number of processes that a launcher started, and the number of this one.

    They are read from variables of the environment, without MPI; 1 and 0 without a launcher.
    """
    sizes = [(_number(size, 1), _number(rank, 0)) for size, rank in _LAUNCHED]
    return max(sizes, key=lambda found: found[0])


def find_launcher() -> str | None:
    """Return the path of mpiexec: that of the folder of the interpreter, or of the search path."""
    return shutil.which("mpiexec", path=_folder()) or shutil.which("mpiexec")


def launch_command(ranks: int, arguments: Sequence[str]) -> list[str]:
    """Return the command that starts this Python on several ranks of this host.

    Parameters
    ----------
    ranks : int
        Number of processes.
    arguments : sequence of str
        What follows the interpreter on the command line.

    Returns
    -------
    list of str
        The path of mpiexec, and its arguments.

    Raises
    ------
    BackendError
        If mpi4py or mpiexec is missing.
    """
    launcher = find_launcher()
    missing = "mpi4py is not installed" if find_spec("mpi4py") is None else ""
    if launcher is None:
        missing = f"mpiexec is neither in {_folder()} nor on the search path"
    if missing or launcher is None:
        raise BackendError(
            f"{ranks} ranks need mpi4py and an MPI launcher, but {missing}: install pysolvers "
            "with its extra 'mpi'"
        )
    return [launcher, "-n", str(ranks), sys.executable, *arguments]


def _number(name: str, default: int) -> int:
    """Return a number of the environment that a launcher has set, or the default."""
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else default


def _folder() -> str:
    """Return the folder of the interpreter."""
    return str(Path(sys.executable).parent)
