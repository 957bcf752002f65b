"""The peers of the benchmark: functions that solve a batch in Python without this package.

Each peer solves `systems` systems of contiguous rows, shape (systems, rows), and returns the
solutions. Numba runs a compiled loop over the systems on all threads; SciPy and LAPACK solve one
system per call; NumPy computes one row of all systems at a time.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Peer = Callable[[NDArray, NDArray, NDArray, NDArray], NDArray]


def has_scipy() -> bool:
    """Return whether SciPy, which also contains LAPACK, is installed."""
    try:
        import_module("scipy.linalg")
    except ImportError:
        return False
    return True


@cache
def numba_thomas(*, parallel: bool) -> Peer | None:
    """Return Thomas elimination as a loop of Numba; None if Numba is not installed.

    The loop is what a user writes: one system after the other, its multipliers in memory of its
    own. With `parallel` it is a `prange` loop on the number of threads of `set_numba_threads`. The
    first call compiles it.
    """
    try:
        numba = import_module("numba")
    except ImportError:
        return None

    @numba.njit(parallel=parallel)
    def solve(lower: Any, diag: Any, upper: Any, rhs: Any) -> Any:
        systems, rows = rhs.shape
        x = np.empty_like(rhs)
        for k in numba.prange(systems):
            c = np.empty(rows, rhs.dtype)
            c[0] = upper[k, 0] / diag[k, 0]
            x[k, 0] = rhs[k, 0] / diag[k, 0]
            for i in range(1, rows):
                pivot = diag[k, i] - lower[k, i] * c[i - 1]
                c[i] = upper[k, i] / pivot
                x[k, i] = (rhs[k, i] - lower[k, i] * x[k, i - 1]) / pivot
            for i in range(rows - 2, -1, -1):
                x[k, i] -= c[i] * x[k, i + 1]
        return x

    loop: Peer = solve
    return loop


def set_numba_threads(threads: int) -> None:
    """Set the number of threads of Numba, at most that of its start, if it is installed."""
    if numba_thomas(parallel=True) is not None:
        numba = import_module("numba")
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))


def scipy_loop(lower: NDArray, diag: NDArray, upper: NDArray, rhs: NDArray) -> NDArray:
    """Solve by ``scipy.linalg.solve_banded``, one system per call."""
    from scipy.linalg import solve_banded

    x = np.empty_like(rhs)
    banded = np.zeros((3, rhs.shape[1]), rhs.dtype)
    for k in range(len(rhs)):
        banded[0, 1:], banded[1], banded[2, :-1] = upper[k, :-1], diag[k], lower[k, 1:]
        x[k] = solve_banded((1, 1), banded, rhs[k], check_finite=False)
    return x


def lapack_loop(lower: NDArray, diag: NDArray, upper: NDArray, rhs: NDArray) -> NDArray:
    """Solve by LAPACK's ``gtsv``, one system per call."""
    from scipy.linalg import get_lapack_funcs

    (gtsv,) = get_lapack_funcs(("gtsv",), (rhs,))
    x = np.empty_like(rhs)
    for k in range(len(rhs)):
        x[k] = gtsv(lower[k, 1:], diag[k], upper[k, :-1], rhs[k])[3]
    return x


def numpy_thomas(
    lower: Any,
    diag: Any,
    upper: Any,
    rhs: Any,
    *,
    empty_like: Callable[[Any], Any] = np.empty_like,
) -> Any:
    """Solve by Thomas elimination, one row of all systems at a time.

    The operands are views of shape (systems, rows) of arrays in which neighbouring systems are
    contiguous, the fastest layout for NumPy. They may be arrays of another library, of which
    `empty_like` makes arrays.
    """
    c, x = empty_like(rhs), empty_like(rhs)
    c[:, 0] = upper[:, 0] / diag[:, 0]
    x[:, 0] = rhs[:, 0] / diag[:, 0]
    for i in range(1, rhs.shape[1]):
        pivot = diag[:, i] - lower[:, i] * c[:, i - 1]
        c[:, i] = upper[:, i] / pivot
        x[:, i] = (rhs[:, i] - lower[:, i] * x[:, i - 1]) / pivot
    for i in range(rhs.shape[1] - 2, -1, -1):
        x[:, i] -= c[:, i] * x[:, i + 1]
    return x
