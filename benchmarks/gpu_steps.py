"""The part `steps` of the benchmark on a GPU: products and implicit steps, and their errors."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pysolvers import implicit_diffusion, solve_tridiagonal, theta_step, tridiagonal_matvec

from .gpu_cases import GpuCase
from .timing import require_cupy

# The step in time, in units of 1 / |A|, and the part of the unknowns that a mask leaves.
STEP, INSIDE = 0.3, 0.7
THETA = 0.5


def step_solver(
    case: GpuCase, system: list[Any]
) -> tuple[Callable[[], object], Callable[[], float], dict[str, Any]]:
    """Return a function that enqueues one call, one that measures its error in eps, and facts."""
    lower, diag, upper, u, x = system
    options: dict[str, Any] = {"axis": case.axis_number, "out": x}
    if case.matrix == "product":
        product = partial(tridiagonal_matvec, lower, diag, upper, u, **options)
        return product, lambda: _product_error(case, system), {"used": "product", "kernel": ""}
    if case.matrix == "diffusion":
        faces = _part_along(abs(lower), case, 1)
        diffuse = partial(implicit_diffusion, u, faces, 1.0, STEP, **options)
        error = partial(_diffusion_error, case, faces, u, x)
        return diffuse, error, {"used": "diffusion", "kernel": ""}
    if case.sides > 1:
        return _sides_solver(case, system)
    options |= {"dt": STEP, "theta": THETA, "pivot": False, "on_singular": "ignore"}
    if case.matrix == "masked":
        options["where"] = u < INSIDE - 0.5
    decaying = -diag
    step: Any = partial(theta_step, lower, decaying, upper, u, **options)
    _, info = step(return_info=True)
    error = partial(_theta_error, case, (lower, decaying, upper), u, x, options.get("where"))
    return step, error, {"used": info.method, "kernel": info.kernel}


def _sides_solver(
    case: GpuCase, system: list[Any]
) -> tuple[Callable[[], object], Callable[[], float], dict[str, Any]]:
    """Return the same for several right-hand sides of each matrix, one after the other."""
    count = case.systems // case.sides
    shape = case.shape(count)
    size = count * case.rows
    *matrix, u, x = (array.reshape(-1) for array in system)
    matrix = [array[:size].reshape(shape) for array in matrix]
    u, x = (array[: case.sides * size].reshape(case.sides, *shape) for array in (u, x))
    axis = case.axis_number if case.axis == "last" else case.axis_number + 1
    solve: Any = partial(
        solve_tridiagonal, *matrix, u, axis=axis, out=x, pivot=False, on_singular="ignore"
    )
    _, info = solve(return_info=True)
    error = partial(_sides_error, case, matrix, u, x)
    return solve, error, {"used": info.method, "kernel": info.kernel}


def _sides_error(case: GpuCase, matrix: list[Any], u: Any, x: Any) -> float:
    lower, diag, upper = _rows_last(case, *matrix)
    errors = []
    for side, of_side in zip(u, x, strict=True):
        b, y = _rows_last(case, side, of_side)
        terms = _terms(lower, diag, upper, y)
        errors.append(_in_eps(case, b - sum(terms), abs(b) + sum(map(abs, terms))))
    return max(errors)


def _part_along(array: Any, case: GpuCase, begin: int) -> Any:
    """Return the part of an array from a row on."""
    where = [slice(None)] * array.ndim
    where[case.axis_number] = slice(begin, None)
    return array[tuple(where)]


def _rows_last(case: GpuCase, *arrays: Any) -> list[Any]:
    cupy = require_cupy()
    return [cupy.moveaxis(array, case.axis_number, -1) for array in arrays]


def _terms(lower: Any, diag: Any, upper: Any, x: Any) -> list[Any]:
    """Return the three products of each row."""
    cupy = require_cupy()
    below, above = lower * cupy.roll(x, 1, -1), upper * cupy.roll(x, -1, -1)
    below[..., 0] = above[..., -1] = 0
    return [below, diag * x, above]


def _in_eps(case: GpuCase, missed: Any, sizes: Any) -> float:
    sizes[sizes == 0] = 1
    return float((abs(missed) / sizes).max()) / float(np.finfo(case.dtype).eps)


def _product_error(case: GpuCase, system: list[Any]) -> float:
    *operands, y = _rows_last(case, *system)
    terms = _terms(*operands)
    return _in_eps(case, y - sum(terms), sum(map(abs, terms)))


def _theta_error(case: GpuCase, matrix: Any, u: Any, x: Any, where: Any) -> float:
    cupy = require_cupy()
    lower, diag, upper, u, x = _rows_last(case, *matrix, u, x)
    if where is not None:
        (inside,) = _rows_last(case, where)
        lower = cupy.where(cupy.roll(inside, 1, -1) & inside, lower, 0)
        upper = cupy.where(cupy.roll(inside, -1, -1) & inside, upper, 0)
        diag = cupy.where(inside, diag, 0)
    old, new = _terms(lower, diag, upper, u), _terms(lower, diag, upper, x)
    missed = x - u - STEP * (THETA * sum(new) + (1 - THETA) * sum(old))
    return _in_eps(case, missed, abs(x) + abs(u) + STEP * sum(map(abs, [*old, *new])))


def _diffusion_error(case: GpuCase, faces: Any, u: Any, x: Any) -> float:
    cupy = require_cupy()
    faces, u, x = _rows_last(case, faces, u, x)
    flow = STEP * faces * cupy.diff(x)
    missed, sizes = u - x, abs(u) + abs(x)
    missed[..., :-1] += flow
    missed[..., 1:] -= flow
    sizes[..., :-1] += abs(flow)
    sizes[..., 1:] += abs(flow)
    return _in_eps(case, missed, sizes)
