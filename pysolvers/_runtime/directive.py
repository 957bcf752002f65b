"""The libraries of the kernels with compiler directives, which ``tools/build_directive.py`` builds.

They are optional, and are loaded at their first use.
"""

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import BackendError

MODELS = {"directive": "openacc", "directive-openmp": "openmp"}

FOLDER = Path(__file__).parents[1]

Array = NDArray[Any]


class Directive:
    """The kernels of one model.

    Parameters
    ----------
    library : ctypes.CDLL
        The loaded library.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._step = library.ps_directive_staggered_step
        self._step.restype = ctypes.c_int
        self._laplace = library.ps_directive_laplace_iterate
        self._laplace.restype = ctypes.c_int
        describe = library.ps_directive_describe
        describe.restype = ctypes.c_char_p
        self.description: str = describe().decode()

    def staggered_step(
        self,
        numbers: tuple[float, ...],
        most_sweeps: int,
        fields: dict[str, Array],
        work: Array,
        count: int,
        made: NDArray[np.int64],
    ) -> tuple[int, int, list[float]]:
        """Make steps of the cavity on a staggered grid.

        Parameters
        ----------
        numbers : tuple of float
            reynolds, tau, gamma, dt, until, steady, tolerance, omega, lid, push and bound.
        most_sweeps : int
            Largest number of SOR iterations of a step.
        fields : dict of str to ndarray of float64
            u, v, p, f, g and clock, contiguous.
        work : ndarray of float64, shape (2, n + 2, n + 2)
            Scratch memory.
        count : int
            Number of steps.
        made : ndarray of int64, shape (1,)
            Receives the number of complete steps.

        Returns
        -------
        status, end : int
            Codes of the contract.
        seconds : list of float
            Times of the stages.
        """
        values = np.array(numbers, np.float64)
        end, seconds = ctypes.c_int(), np.zeros(3)
        status = self._step(
            ctypes.c_longlong(len(fields["p"])),
            _address(values),
            ctypes.c_longlong(most_sweeps),
            *(_address(fields[name]) for name in ("u", "v", "p", "f", "g", "clock")),
            _address(work),
            ctypes.c_longlong(count),
            _address(made),
            ctypes.byref(end),
            _address(seconds),
        )
        return int(status), int(end.value), seconds.tolist()

    def laplace_iterate(
        self,
        dtype: int,
        sizes: tuple[int, int, int],
        numbers: tuple[float, float, float],
        codes: tuple[int, int],
        every: int,
        operands: tuple[Array | None, ...],
        count: int,
        made: NDArray[np.int64],
    ) -> tuple[int, int, int, float]:
        """Relax the temperatures of a plate.

        Parameters
        ----------
        dtype : int
            Code of the dtype of t, diag, gain and source.
        sizes : tuple of int
            nx, ny and pitch.
        numbers : tuple of float
            ax, ay and tolerance.
        codes : tuple of int
            Criterion and norm.
        every : int
            Iterations between two measures.
        operands : tuple of ndarray or None
            t, diag, gain, source and, in float64, history, contiguous.
        count : int
            Largest number of iterations.
        made : ndarray of int64, shape (1,)
            Receives the number of iterations.

        Returns
        -------
        status, end, measures : int
            Codes of the contract, and the number of entries of the history.
        measure : float
            The last measure.
        """
        values, kinds = np.array(numbers, np.float64), np.array(codes, np.intc)
        taken, measure, end = ctypes.c_longlong(), ctypes.c_double(), ctypes.c_int()
        status = self._laplace(
            ctypes.c_int(dtype),
            *(ctypes.c_longlong(size) for size in sizes),
            _address(values),
            _address(kinds),
            ctypes.c_longlong(every),
            *(None if operand is None else _address(operand) for operand in operands),
            ctypes.c_longlong(count),
            _address(made),
            ctypes.byref(taken),
            ctypes.byref(measure),
            ctypes.byref(end),
        )
        return int(status), int(end.value), int(taken.value), float(measure.value)


def _address(array: Array) -> ctypes.c_void_p:
    """Return where the elements begin, as an argument of ctypes."""
    return ctypes.c_void_p(array.ctypes.data)


def load(kernels: str) -> Directive:
    """Return the kernels of a model.

    Parameters
    ----------
    kernels : str
        A key of `MODELS`.

    Raises
    ------
    BackendError
        If the library is not there or cannot be loaded; the message says what is missing.
    """
    path = FOLDER / f"libpysolvers_{MODELS[kernels]}.so"
    if not path.exists():
        raise BackendError(
            f"{kernels!r} needs {path.name}, which was not built: run "
            "tools/build_directive.py of the source distribution with gcc 12 or newer (for NVIDIA "
            "devices also its package gcc-12-offload-nvptx)"
        )
    try:
        return _load(path)
    except OSError as error:
        advice = ""
        if "version `GOMP_" in str(error):
            advice = (
                "; a package such as PyTorch loaded an older libgomp before: run the solver, or "
                "ctypes.CDLL('libgomp.so.1'), before the import of this package"
            )
        raise BackendError(f"{kernels!r}: {path} cannot be loaded: {error}{advice}") from None


@cache
def _load(path: Path) -> Directive:
    """Load a library whose waiting threads sleep, unless the environment says otherwise."""
    # Waiting threads of libgomp spin by default: when other processes keep the processors busy,
    # each loop then takes up to a time slice. The library reads the variable when it is loaded.
    is_default = not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys()
    if is_default:
        os.environ["GOMP_SPINCOUNT"] = "0"
    try:
        return Directive(ctypes.CDLL(str(path)))
    finally:
        if is_default:
            del os.environ["GOMP_SPINCOUNT"]
