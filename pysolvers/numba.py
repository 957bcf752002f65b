"""Solves inside functions that Numba compiles.

`solve_tridiagonal` can be called in functions of ``numba.njit``, also in ``prange`` loops and with
``nogil=True`` or ``cache=True``. A call is one call of the C function of the package.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._extras import extra_module
from ._runtime import backends
from .tridiagonal import solve_tridiagonal as _solve

__all__ = ["solve_tridiagonal"]

Array = NDArray[Any]

_numba = extra_module("numba", "numba")
_extending = extra_module("numba.extending", "numba")
_llvm = extra_module("llvmlite.binding", "numba")

# Functions of pysolvers_api.h by dtype; their places in the table after its version.
_FUNCTIONS = {
    "float32": "ssolve",
    "float64": "dsolve",
    "complex64": "csolve",
    "complex128": "zsolve",
}
_PLACES = {name: 4 + k for k, name in enumerate(_FUNCTIONS.values())}
_VERSION = 1


def solve_tridiagonal(
    lower: Array, diag: Array, upper: Array, rhs: Array, out: Array | None = None
) -> Array:
    r"""Solve tridiagonal systems along the last axis.

    .. math:: a_i x_{i-1} + b_i x_i + c_i x_{i+1} = d_i, \qquad 0 \le i < n

    with a = `lower`, b = `diag`, c = `upper` and d = `rhs`; :math:`a_0` and :math:`c_{n-1}` are
    not used. Rows are exchanged in the systems that need it, as in `pysolvers.solve_tridiagonal`.

    Parameters
    ----------
    lower, diag, upper, rhs : ndarray, shape (..., n)
        Contiguous arrays of one shape and one dtype: float32, float64, complex64 or complex128.
    out : ndarray, optional
        Array for the solution, of the same kind; it can be `rhs`. A new one by default.

    Returns
    -------
    x : ndarray
        The solution; `out` if it was given.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular. The solutions of its system are NaN in `out`, those of the other
        systems are right.
    ValueError
        If shapes differ, or `out` overlaps an operand but is not `rhs`.

    Notes
    -----
    Arrays of another kind are an error when the function is compiled. Outside of compiled
    functions this is `pysolvers.solve_tridiagonal`. Small batches are solved by the calling
    thread alone; large ones by all threads of the package (``PYSOLVERS_NUM_THREADS``).

    Examples
    --------
    >>> import numba
    >>> import numpy as np
    >>> from pysolvers.numba import solve_tridiagonal
    >>> @numba.njit
    ... def implicit_steps(u, r, steps):
    ...     off = np.full_like(u, -r)
    ...     diag = np.full_like(u, 1 + 2 * r)
    ...     for _ in range(steps):
    ...         solve_tridiagonal(off, diag, off, u, u)
    ...     return u
    >>> bool(implicit_steps(np.ones(8), 0.5, 3).max() < 1)
    True
    """
    return _solve(lower, diag, upper, rhs, out=out)


def _register() -> dict[str, Any]:
    """Give the C functions their names in LLVM; return them as external functions by dtype."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = pointer_of(backends.require("cpu").C_API, b"pysolvers._core.C_API")
    version = ctypes.c_int32.from_address(table).value
    assert version == _VERSION, "the table of functions and this module are of one version"
    types, size = _numba.types, ctypes.sizeof(ctypes.c_void_p)
    signature = types.int32(types.int64, types.int64, *[types.uintp] * 5)
    found = {}
    for dtype, name in _FUNCTIONS.items():
        entry = ctypes.c_void_p.from_address(table + size * (1 + _PLACES[name])).value
        symbol = f"pysolvers_{name}"
        _llvm.add_symbol(symbol, entry)
        found[dtype] = types.ExternalFunction(symbol, signature)
    return found


_EXTERNAL = _register()


@_extending.overload(solve_tridiagonal)
def _compiled(lower: Any, diag: Any, upper: Any, rhs: Any, out: Any = None) -> Callable[..., Any]:
    """Return the body of `solve_tridiagonal` for arrays of these types.

    Numba compares the annotations of the parameters: they are those of the bodies.
    """
    given = {"lower": lower, "diag": diag, "upper": upper, "rhs": rhs}
    absent = out is None or isinstance(out, _numba.types.NoneType | _numba.types.Omitted)
    if not absent:
        given["out"] = out
    for name, kind in given.items():
        if not isinstance(kind, _numba.types.Array) or str(kind.dtype) not in _FUNCTIONS:
            raise _numba.errors.TypingError(
                f"solve_tridiagonal: {name} must be an array of float32, float64, complex64 or "
                f"complex128, got {kind}"
            )
        if kind.ndim == 0:
            raise _numba.errors.TypingError(
                f"solve_tridiagonal: {name} must have an axis for the rows of a system, got {kind}"
            )
        if name == "out" and not kind.mutable:
            raise _numba.errors.TypingError(
                f"solve_tridiagonal: out must be an array that can be written, got {kind}"
            )
        if kind.layout != "C" or not kind.aligned:
            raise _numba.errors.TypingError(
                f"solve_tridiagonal: {name} must be contiguous (layout C) and aligned, got {kind}: "
                "write np.ascontiguousarray(...)"
            )
        if kind.dtype != rhs.dtype or kind.ndim != rhs.ndim:
            raise _numba.errors.TypingError(
                f"solve_tridiagonal: all arrays must have one dtype and the same number of axes, "
                f"{name} is {kind}, but rhs is {rhs}"
            )
    function = _EXTERNAL[str(rhs.dtype)]

    def into(lower: Any, diag: Any, upper: Any, rhs: Any, out: Any = None) -> Any:
        if lower.shape != rhs.shape or diag.shape != rhs.shape or upper.shape != rhs.shape:
            raise ValueError("solve_tridiagonal: lower, diag, upper and rhs must have one shape")
        if out.shape != rhs.shape:
            raise ValueError("solve_tridiagonal: out must have the shape of rhs")
        rows = rhs.shape[-1]
        if rhs.size > 0:
            status = function(
                rows,
                rhs.size // rows,
                lower.ctypes.data,
                diag.ctypes.data,
                upper.ctypes.data,
                rhs.ctypes.data,
                out.ctypes.data,
            )
            if status > 0:
                raise np.linalg.LinAlgError("solve_tridiagonal: a matrix is singular")
            if status == -2:
                raise ValueError("solve_tridiagonal: out overlaps an operand and is not rhs")
            if status == -3:
                raise MemoryError("solve_tridiagonal: no memory for the workspace")
            if status < 0:
                raise ValueError("solve_tridiagonal: the systems are too long")
        return out

    if not absent:
        return into
    compiled = _numba.njit(into)

    def new(lower: Any, diag: Any, upper: Any, rhs: Any, out: Any = None) -> Any:
        return compiled(lower, diag, upper, rhs, np.empty_like(rhs))

    return new
