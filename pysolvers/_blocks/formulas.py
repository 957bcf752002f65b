"""Complex and periodic systems on a device, by operations of the library of their arrays.

A device solves real open systems (systems.py). PyTorch and JAX have functions with the formulas for
the others; those for CuPy are here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from .._errors import BackendError
from .._options import OnSingular, check_policy, check_threads
from .._runtime.backends import require
from .._runtime.interop import kind_of, library_of, locate
from .._runtime.singular import Singular
from .._xp import ArrayLibrary, joined
from .differentiable import (
    bands_of,
    bands_solution,
    blocks_of,
    blocks_solution,
    by_columns,
    exchanges_rows,
    folds,
    require_assumption,
)
from .systems import Assume, target_of

Array = Any
Solve = Callable[..., Array]


def solve(
    operation: str,
    solve_open: Solve,
    solve_blocks: Solve,
    named: dict[str, Any],
    out: Any,
    on_singular: OnSingular,
    device: str | None,
    stream: object,
    *,
    axis: int,
    assume: Assume,
    periodic: bool,
    pivot: bool | None,
    threads: int | None,
) -> Any:
    """Return the solutions of complex or periodic systems on a device, None for other systems.

    Parameters
    ----------
    operation : str
        Name of the function that was called.
    solve_open, solve_blocks : callable
        That function, which solves real open systems, and `solve_block_tridiagonal`.
    named : dict
        The operands of the caller, `rhs` last.
    out, on_singular, device, stream, axis, assume, periodic, pivot, threads
        As the caller gave them.
    """
    if not is_needed(named, stream, periodic=periodic):
        return None
    target_of(operation, named, out, "rhs", device)  # raises if an operand is elsewhere
    rhs, policy = named["rhs"], check_policy(on_singular)
    check_threads(threads)
    options: dict[str, Any] = {
        "axis": axis,
        "assume": assume,
        "periodic": periodic,
        "pivot": pivot,
        "threads": threads,
    }
    name = next((n for n in ("cupy", "torch", "jax") if _is_of(rhs, n)), None)
    if name is None:
        raise BackendError(
            f"{operation}: complex and periodic systems on a device need arrays of CuPy, PyTorch "
            "or JAX: pass such arrays, or arrays of NumPy"
        )
    if name == "cupy":
        x = _solved(operation, solve_open, solve_blocks, named, **options)
        xp = sys.modules["cupy"]
    elif name == "torch":
        xp = sys.modules["torch"]
        with xp.no_grad():
            x = getattr(import_module("pysolvers.torch"), operation)(*named.values(), **options)
    else:
        del options["threads"]
        xp = sys.modules["jax"].numpy
        x = getattr(import_module("pysolvers.jax"), operation)(*named.values(), **options)
    if policy in ("raise", "warn"):
        _report(operation, xp, x, rhs, policy, options["axis"])
    if out is None:
        return x
    _check_out(out, x)
    out[...] = x
    return out


def is_complex_matrix(named: dict[str, Any]) -> bool:
    """Return whether an operand of the matrix is complex."""
    return any(
        isinstance(v, complex) or "complex" in str(getattr(v, "dtype", ""))
        for name, v in named.items()
        if name != "rhs"
    )


def is_needed(named: dict[str, Any], stream: object, *, periodic: bool) -> bool:
    """Return whether a call is one of complex or periodic systems on a device.

    Open real systems with complex right-hand sides are solved twice without formulas.
    """
    if stream is not None or locate(named["rhs"]) is None:
        return False
    return periodic or is_complex_matrix(named)


def _check_out(out: Any, x: Array) -> None:
    """Raise TypeError or ValueError unless the solutions can be written to `out`."""
    if not library_of(out).mutable:
        raise TypeError(f"out must be writeable, a {kind_of(out)} never is")
    given, dtype = (str(a.dtype).removeprefix("torch.") for a in (out, x))
    if given != dtype:
        raise TypeError(f"out must be {dtype} like the result, got {given}")
    if tuple(out.shape) != tuple(x.shape):
        raise ValueError(
            f"out must have the shape {tuple(x.shape)} of the result, got {tuple(out.shape)}"
        )


def _is_of(value: Any, name: str) -> bool:
    return name in sys.modules and type(value).__module__.split(".")[0] in (name, name + "lib")


def _report(operation: str, xp: Any, x: Array, rhs: Array, policy: OnSingular, axis: int) -> None:
    """Report systems whose solutions are not finite though their right-hand sides are.

    The error has the last row of each: which one is singular is not known.
    """
    tail = 0 if operation == "solve_pentadiagonal" else 2
    place = axis % (x.ndim - tail)
    wide = rhs if tuple(rhs.shape) == tuple(x.shape) else xp.zeros_like(x) + rhs
    wrong, known = ~xp.isfinite(x), xp.isfinite(wide)
    for last in sorted((place, *range(x.ndim - tail, x.ndim)), reverse=True):
        wrong, known = wrong.any(last), known.all(last)
    marks = wrong & known
    found = np.argwhere(marks.get() if hasattr(marks, "get") else np.array(marks.tolist()))
    if len(found):
        where = f" of batch index {tuple(map(int, found[0]))}" if found.shape[1] else ""
        more = f", as {len(found) - 1} more of the batch" if len(found) > 1 else ""
        text = (
            f"{operation}: the solution{where} is not finite{more}: the matrix is singular, in a "
            "row that is not known, or has an entry that is not finite"
        )
        rows = np.full(len(found), x.shape[place] - 1, np.intp)
        Singular(found, rows, message=text).report(policy, operation, stacklevel=5)


@cache
def _cupy() -> ArrayLibrary:
    """Return CuPy, by those operations that the formulas need."""
    cupy = sys.modules["cupy"]

    def operands(named: dict[str, Any]) -> dict[str, Array]:
        dtypes = [v.dtype for v in named.values() if isinstance(v, cupy.ndarray)]
        inexact = [dtype for dtype in dtypes if dtype.kind in "fc"]
        dtype = np.result_type(*inexact) if inexact else np.dtype(np.float64)
        if any(np.iscomplexobj(v) for v in named.values()):
            dtype = np.result_type(dtype, np.complex64)
        return {name: cupy.asarray(v, dtype) for name, v in named.items()}

    def rows(array: Array, start: int, stop: int, axis: int) -> Array:
        return array[(slice(None),) * (axis % array.ndim) + (slice(start, stop),)]

    def padded(array: Array, before: int, after: int, axis: int) -> Array:
        widths = [(0, 0)] * array.ndim
        widths[axis] = (before, after)
        return cupy.pad(array, widths)

    def absent(*_: Any) -> Any:
        raise NotImplementedError

    return ArrayLibrary(
        cupy, cupy.moveaxis, operands, absent, absent, absent, np.iscomplexobj,
        partial(joined, cupy), absent, rows, padded, absent, absent, absent, absent,
        lambda array: array, lambda array: array,
    )  # fmt: skip


def _solved(
    operation: str,
    solve_open: Solve,
    solve_blocks: Solve,
    named: dict[str, Any],
    *,
    axis: int,
    assume: Assume,
    periodic: bool,
    pivot: bool | None,
    threads: int | None,
) -> Array:
    """Solve with arrays of CuPy; NaN for singular systems."""
    require_assumption(assume, pivot)
    rhs, is_complex = named["rhs"], is_complex_matrix(named)
    library, most = _cupy(), require("cpu").FAST_SIDE
    if np.iscomplexobj(rhs) and not is_complex:

        def solve_real(part: Array) -> Array:
            return _solved(
                operation,
                solve_open,
                solve_blocks,
                {**named, "rhs": part},
                axis=axis,
                assume=assume,
                periodic=periodic,
                pivot=pivot,
                threads=threads,
            )

        if operation == "solve_block_tridiagonal":
            return by_columns(library, solve_real, rhs)
        return library.joined(solve_real(rhs.real), solve_real(rhs.imag))
    options: dict[str, Any] = {"assume": assume, "on_singular": "nan", "threads": threads}
    is_folded = folds(assume, pivot, periodic=periodic)

    def by(function: Solve, exchanges: bool | None) -> Solve:
        def solve(*operands: Array) -> Array:
            shared = [a[None] for a in operands]  # an operand of one row is a constant
            return function(*shared, pivot=exchanges, **options)[0]

        return solve

    exchanges = None if assume != "general" else exchanges_rows(assume, pivot)
    inner, exchanging = by(solve_open, exchanges), by(solve_blocks, True)
    if operation == "solve_block_tridiagonal":
        lines = blocks_of(library, named, axis, assume, periodic=periodic)
        fold = most if is_folded else None
        return blocks_solution(library, lines, inner, exchanging, most=fold, periodic=periodic)
    lines = bands_of(library, named, axis, assume, periodic=periodic)
    return bands_solution(
        library,
        lines,
        inner,
        by(solve_blocks, exchanges),
        exchanging,
        is_complex=is_complex,
        is_folded=is_folded and (8 if is_complex else 4) <= most,
        periodic=periodic,
    )
