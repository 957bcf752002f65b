"""Products, recurrences and implicit steps: checks, targets, calls of the backend.

`prepare` checks a call and moves its operands; `multiply`, `recur`, `make_step` and
`make_factor_step` call the backend for the lines of their plan, and `finish` gives the result out.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import require_flag
from .._errors import raise_for_status
from .._options import (
    Choice,
    OnSingular,
    SolveInfo,
    check_policy,
    check_threads,
    pivot_code,
    shape_flags,
)
from .._row_sums import matrix_names
from .._runtime.arrays import Shape, resolve_shape
from .._runtime.finite import explained, require_finite_operands
from .._runtime.lines import Plan, batch_strides, pairs, plan_lines
from .._runtime.singular import Singular, find_singular
from .._runtime.targets import Target, find_target, report_of_nothing

Array = NDArray[Any]

_MATRIX = ("lower", "diag", "upper")
_RESULT = "result"


class Operation(NamedTuple):
    """What the operands of a function are."""

    name: str
    leader: str  # the operand with all rows, whose library the result has
    vectors: tuple[str, ...]  # the operands that are not entries of the matrix
    replaces: str = ""  # the operand that `out` may be; '' for none
    columns: tuple[str, ...] = ()  # operands that have one entry per system
    labels: Mapping[str, str] = MappingProxyType({})  # names in messages, where others


SOLVE = Operation("solve_tridiagonal", "rhs", ("rhs",), "rhs")


class Prepared(NamedTuple):
    """A checked call, its operands where they are used."""

    operation: Operation
    choice: Choice
    like: Any
    target: Target
    threads: int
    shape: Shape
    dtype: np.dtype
    converted: tuple[str, ...]
    result: Array
    views: dict[str, Array]  # by name, all batch axes, the rows last; and the result
    paired: bool  # whether the first batch axis has the real and the imaginary part
    batch: tuple[int, ...]


def prepare(named: Mapping[str, Any], where: Any, operation: Operation, choice: Choice) -> Prepared:
    """Check the operands of a call, and those options that all calls have."""
    columns = operation.columns
    given = named if where is None else {**named, "where": where}
    target = find_target(
        choice.device,
        choice.stream,
        given,
        choice.out,
        operation=operation.name,
        leader=operation.leader,
    )
    require_flag("periodic", choice.periodic)
    require_flag("check_finite", choice.check_finite)
    threads = check_threads(choice.threads)
    operands, dtype, converted = target.operands(named, vectors=operation.vectors)
    arrays = dict(zip(named, operands, strict=True))
    mask = None if where is None else target.mask("where", where)
    lines = {name: array for name, array in arrays.items() if name not in columns}
    if mask is not None:
        lines["where"] = mask
    if arrays[operation.leader].ndim == 0:
        raise ValueError(f"{operation.leader} must have at least one dimension, got a 0-d array")
    shape = resolve_shape(lines, choice.axis, leader=operation.leader, periodic=choice.periodic)
    if shape.rows > target.backend.MAX_ROWS:
        raise ValueError(
            f"a system can have at most {target.backend.MAX_ROWS} rows, got {shape.rows}"
        )
    for name in columns:
        _require_columns(name, arrays[name], shape)
    if choice.check_finite:
        require_finite_operands(
            operation.name,
            target,
            lines,
            shape,
            periodic=choice.periodic,
            labels=operation.labels,
        )
    result = target.result(
        choice.out,
        {**given},
        arrays[operation.leader],
        shape.full,
        dtype,
        leader=operation.leader,
        replaces=operation.replaces,
    )
    views: dict[str, Array] = {}
    batch, paired = shape.batch, False
    if result.size:
        everything = arrays if mask is None else {**arrays, "where": mask}
        moved = dict(zip(everything, target.move(*everything.values()), strict=True))
        views = {
            name: _column(array, shape) if name in columns else shape.batch_first(array)
            for name, array in moved.items()
        }
        views[_RESULT] = shape.batch_first(target.destination(result))
        paired = dtype.kind == "c" and any(
            views[name].dtype.kind != "c" for name in named if name not in operation.vectors
        )
        if paired:
            # Real and imaginary parts are two right-hand sides of one real matrix.
            batch = (2, *batch)
            complex_names = (*operation.vectors, _RESULT)
            views = {
                name: pairs(view) if name in complex_names else view[None]
                for name, view in views.items()
            }
    return Prepared(
        operation,
        choice,
        named[operation.leader],
        target,
        threads,
        shape,
        dtype,
        converted,
        result,
        views,
        paired,
        batch,
    )


def _column(array: Array, shape: Shape) -> Array:
    """View an operand with one entry per system with all batch axes and one row."""
    missing = len(shape.batch) - array.ndim
    return array[(None,) * missing + (..., None)]


def _require_columns(name: str, array: Array, shape: Shape) -> None:
    """Raise ValueError unless an operand broadcasts to the batch axes."""
    missing = len(shape.batch) - array.ndim
    sizes = (1,) * missing + tuple(array.shape)
    fits = missing >= 0 and all(
        size in (1, full) for size, full in zip(sizes, shape.batch, strict=False)
    )
    if not fits:
        raise ValueError(
            f"{name} must broadcast to {shape.batch}, one value for each column, got shape "
            f"{tuple(array.shape)}"
        )


class _Lines(NamedTuple):
    """The operands of one call of the backend."""

    plan: Plan
    of: dict[str, Array]
    numbers: dict[str, int]


def _lines_of(call: Prepared) -> _Lines:
    """Bring the operands to the lines of the contract."""
    names = list(call.views)
    views = list(call.views.values())
    strides = [batch_strides(view) for view in views]
    guide = strides[names.index(_RESULT)]
    keep = [names.index("where")] if "where" in names and call.target.name != "cpu" else []
    plan = plan_lines(call.batch, strides, guide, keep=keep)
    rows = call.views[_RESULT].shape[-1]
    lines = [
        line[..., :1] if name in call.operation.columns else line
        for name, line in zip(names, call.target.lines(plan, views, rows), strict=True)
    ]
    return _Lines(
        plan, dict(zip(names, lines, strict=True)), {name: k for k, name in enumerate(names)}
    )


def _restore(call: Prepared, lines: _Lines) -> None:
    """Copy the result back to the array of the caller if the lines are a copy of it."""
    if lines.numbers[_RESULT] in lines.plan.copied:
        plan = lines.plan
        call.target.restore(lines.of[_RESULT], call.views[_RESULT], plan.outer + plan.inner)


def finish(call: Prepared) -> Any:
    """Return the result to the caller."""
    return call.target.finish(call.result, call.like, call.choice.out)


def multiply(
    call: Prepared,
    vector: str,
    added: str | None,
    scale: float,
    weight: float,
    *,
    extended: bool = False,
    has_sums: bool = False,
) -> Any:
    """Return scale * A vector + weight * added."""
    if call.result.size:
        lines = _lines_of(call)
        of, backend = lines.of, call.target.backend
        flags = shape_flags(backend, call.shape, call.choice.periodic)
        status = backend.product(
            flags | (backend.ROW_SUMS if has_sums else 0),
            *(of[name] for name in _MATRIX),
            of[vector],
            None if added is None else of[added],
            of[_RESULT],
            scale,
            weight,
            extended,
            call.threads,
            *call.target.arguments,
        )
        raise_for_status(status, backend.STATUS, call.operation.name)
        _restore(call, lines)
    return finish(call)


def recur(call: Prepared, *, reverse: bool) -> Any:
    """Return x_t = a_t x_{t-1} + second_t x_{t-2} + b_t."""
    if call.result.size:
        lines = _lines_of(call)
        of, backend = lines.of, call.target.backend
        states = [of[name] for name in call.operation.columns]
        initial = states[0] if len(states) == 1 else None
        if len(states) > 1:
            shape = (*np.broadcast_shapes(*(state.shape[:-1] for state in states)), len(states))
            initial = call.target.empty(shape, states[0].dtype)
            for row, state in enumerate(states):
                call.target.write(initial[..., row : row + 1], state)
        status = backend.recurrence(
            backend.REVERSED if reverse else 0,
            of["a"],
            of.get("second"),
            of["b"],
            initial,
            of[_RESULT],
            call.threads,
            *call.target.arguments,
        )
        raise_for_status(status, backend.STATUS, call.operation.name)
        _restore(call, lines)
    return finish(call)


class Step(NamedTuple):
    """How the rows of a step are made."""

    kind: str
    vector: str
    step: float = 0.0
    gain: float = 1.0
    pivot: bool | None = None
    on_singular: OnSingular = "raise"
    has_sums: bool = False
    flags: int | None = None  # of the off-diagonals; by default those of the shape
    matrix: tuple[str, str, str] = _MATRIX
    is_reversed: bool = False  # whether the rows are eliminated from the last to the first


def make_step(call: Prepared, step: Step, *, return_info: bool = False, stacklevel: int = 2) -> Any:
    """Solve the rows of a step; return the result, with `return_info` and a SolveInfo."""
    target, policy = call.target, check_policy(step.on_singular)
    backend = target.backend
    pivot = pivot_code(step.pivot, backend.PIVOTS, has_sums=step.has_sums)
    report, singular = report_of_nothing(), None
    copied: tuple[str, ...] = ()
    asks = target.reports_singular(policy)
    if call.result.size:
        lines = _lines_of(call)
        of, x = lines.of, lines.of[_RESULT]
        is_filled = policy == "nan"
        info = target.info(x.shape[0] * x.shape[1]) if asks or is_filled else None
        flags = step.flags
        if flags is None:
            flags = shape_flags(backend, call.shape, call.choice.periodic)
        matrix = step.matrix
        if step.is_reversed:
            of = {name: target.reversed_rows(line) for name, line in of.items()}
            matrix = matrix[::-1]
            is_short = (flags & backend.SHORT_LOWER, flags & backend.SHORT_UPPER)
            flags &= ~(backend.SHORT_LOWER | backend.SHORT_UPPER)
            flags |= backend.SHORT_UPPER if is_short[0] else 0
            flags |= backend.SHORT_LOWER if is_short[1] else 0
        status, report = backend.step_solve(
            backend.STEP_KINDS[step.kind],
            pivot,
            flags | (backend.ROW_SUMS if step.has_sums else 0),
            *(of[name] for name in matrix),
            of[step.vector],
            of[_RESULT],
            info,
            step.step,
            step.gain,
            of.get("source"),
            of.get("projected"),
            of.get("where"),
            (
                of.get("flux_first"),
                of.get("flux_last"),
                of.get("value_first"),
                of.get("value_last"),
            ),
            call.threads,
            *target.arguments,
            asks and return_info,
        )
        raise_for_status(status, backend.STATUS, call.operation.name)
        if info is not None and is_filled and target.fills_nan:
            target.fill_nan(x, info.reshape(x.shape[:2]))
        _restore(call, lines)
        copied = tuple(name for name, k in lines.numbers.items() if k in lines.plan.copied)
        if info is not None and asks:
            singular = _singular(call, step, target.info_on_host(info), lines.plan)
    answer = finish(call)
    if singular is not None:
        singular.report(policy, call.operation.name, stacklevel=stacklevel + 1)
    if not return_info:
        return answer
    if singular is None and asks:
        singular = find_singular(np.zeros(0, np.int32), Plan(call.shape.batch, (), ()))
    if call.paired:  # every matrix is counted twice
        report = report | {"pivoted": (report["pivoted"] + 1) // 2}
    description = SolveInfo(
        **target.description(report, singular),
        systems=prod(call.shape.batch),
        rows=call.shape.rows,
        dtype=call.dtype,
        copied=tuple(dict.fromkeys((*call.converted, *copied))),
    )
    return answer, description


def solve_step(named: Mapping[str, Any], where: Any, choice: Choice, *, stacklevel: int = 2) -> Any:
    """Solve for the rows inside of a mask, and keep the right-hand sides outside."""
    require_flag("return_info", choice.return_info)
    rows = Step(
        kind="matrix",
        vector="rhs",
        pivot=choice.pivot,
        on_singular=choice.on_singular,
        has_sums=choice.has_sums,
    )
    call = prepare(named, where, SOLVE, choice)
    return make_step(call, rows, return_info=choice.return_info, stacklevel=stacklevel + 1)


def _singular(call: Prepared, step: Step, info: Array, plan: Plan) -> Singular:
    """Return the singular systems, and write NaN to them if the call wants that."""
    singular = find_singular(info, plan)
    if call.paired:
        singular = singular.of_first()
    views = dict(call.views)
    if call.paired:
        views = {name: view[0] for name, view in views.items()}
    if step.on_singular == "nan" and not call.target.fills_nan:
        for part in call.views[_RESULT] if call.paired else [call.views[_RESULT]]:
            singular.fill_nan(part, call.shape.batch)
    if step.on_singular in ("raise", "warn") and "where" not in views and step.kind != "flux":
        singular = explained(
            singular,
            call.target,
            [views[name] for name in step.matrix],
            call.shape,
            periodic=call.choice.periodic,
            names=matrix_names(has_sums=step.has_sums),
        )
    return singular
