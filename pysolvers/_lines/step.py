"""Products, recurrences and implicit steps: calls of the backend, reports.

`multiply`, `recur` and `make_step` call the backend for the lines of a call that was prepared.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import require_flag
from .._errors import raise_for_status
from .._options import (
    Choice,
    SolveInfo,
    check_policy,
    pivot_code,
    shape_flags,
)
from .._row_sums import complex_sums, matrix_names
from .._runtime.finite import explained
from .._runtime.lines import NamedLines, Plan, arranged_by_name, named_lines
from .._runtime.signs import require_step_form
from .._runtime.singular import Singular, find_singular
from .._runtime.targets import report_of_nothing
from .prepared import Operation, Prepared, finish, prepare

Array = NDArray[Any]

_MATRIX = ("lower", "diag", "upper")
_RESULT = "result"
_SOLVE = Operation("solve_tridiagonal", "rhs", ("rhs",), "rhs")


def _lines_of(call: Prepared) -> NamedLines:
    """Bring the operands to the lines of the contract."""
    target, columns = call.target, call.operation.columns
    keep = () if target.name == "cpu" else ("where",)
    if call.views:
        return named_lines(target, call.views, columns, keep)
    x = target.destination(call.result)
    return arranged_by_name(target, call.shape, call.operands, x, columns, call.pairs_of, keep)


def _restore(call: Prepared, lines: NamedLines) -> None:
    """Copy the result back to the array of the caller if the lines are a copy of it."""
    plan = lines.plan
    if len(lines.lines) - 1 in plan.copied:
        x = lines.views[_RESULT]
        call.target.restore(lines.lines[_RESULT], x, plan.outer + plan.inner)


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
        of, backend = lines.lines, call.target.backend
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


class Differences(NamedTuple):
    """The weights of differences of neighbouring values, as `ps_differences.h` has them."""

    flags: int  # PERIODIC, or 0
    is_even: bool
    near: float
    far: float
    off_diagonal: float  # a of a matrix with the rows (a, 1, a); 0 for any matrix
    second: float  # that of the second matrix
    ends: tuple[tuple[float, ...], tuple[float, ...]]


def differentiate(call: Prepared, by: Differences, cores: tuple[Any, ...] = ()) -> Any:
    """Return the differences of the only operand, or solve for them with the factors of matrices.

    The result may overlap the operand. Of complex values, a real matrix solves for real and
    imaginary parts.
    """
    target, result = call.target, call.result
    if result.size:
        values = call.operands[call.operation.leader]
        overlaps = np.may_share_memory(values, result)
        x = target.empty(result.shape, result.dtype) if overlaps else result
        lines = _lines_of(call._replace(result=x))
        backend = target.backend
        status = backend.differences(
            by,
            cores,
            lines.lines[call.operation.leader],
            lines.lines[_RESULT],
            call.threads,
            *target.arguments,
        )
        raise_for_status(status, backend.STATUS, call.operation.name)
        _restore(call, lines)
        if overlaps:
            target.write(result, x)
    return finish(call)


def recur(call: Prepared, *, reverse: bool) -> Any:
    """Return x_t = a_t x_{t-1} + second_t x_{t-2} + b_t."""
    if call.result.size:
        recur_lines(call, reverse=reverse)
    return finish(call)


def recur_lines(call: Prepared, *, reverse: bool) -> None:
    """Compute `recur` where the operands are used, without returning the result to the caller."""
    lines = _lines_of(call)
    of, backend = lines.lines, call.target.backend
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


class Step(NamedTuple):
    """How the rows of a step are made."""

    kind: str
    vector: str
    step: float = 0.0
    gain: float = 1.0
    is_reversed: bool = False  # whether the rows are eliminated from the last to the first


def require_signs(call: Prepared, h: float) -> None:
    """Raise ValueError if the signs of I - h A exclude elimination by row sums, if they count."""
    choice, target = call.choice, call.target
    is_wanted = choice.has_sums and choice.check_signs and "where" not in call.operands
    if is_wanted and target.reports_singular(check_policy(choice.on_singular)):
        matrix = [call.operands[name] for name in _MATRIX]
        options = {"periodic": choice.periodic}
        require_step_form(call.operation.name, target, matrix, call.shape, h, **options)


def make_step(call: Prepared, step: Step, *, stacklevel: int = 2) -> Any:
    """Solve the rows of a step; return the result, and a SolveInfo if the call wants it."""
    target, choice = call.target, call.choice
    policy, has_sums = check_policy(choice.on_singular), choice.has_sums
    backend = target.backend
    pivot = pivot_code(choice.pivot, backend.PIVOTS, has_sums=has_sums)
    report, singular = report_of_nothing(), None
    copied: tuple[str, ...] = ()
    asks = target.reports_singular(policy)
    if call.result.size:
        lines = _lines_of(call)
        of, x = lines.lines, lines.lines[_RESULT]
        is_filled = policy == "nan"
        info = target.info(x.shape[0] * x.shape[1]) if asks or is_filled else None
        flags = shape_flags(backend, call.shape, choice.periodic)
        matrix = _MATRIX
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
            flags | (backend.ROW_SUMS if has_sums else 0),
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
            asks and choice.return_info,
        )
        raise_for_status(status, backend.STATUS, call.operation.name)
        if info is not None and is_filled and target.fills_nan:
            target.fill_nan(x, info.reshape(x.shape[:2]))
        _restore(call, lines)
        copied = tuple(name for k, name in enumerate(of) if k in lines.plan.copied)
        if info is not None and asks:
            singular = _singular(call, step, target.info_on_host(info), lines)
    answer = finish(call)
    if singular is not None:
        singular.report(policy, call.operation.name, stacklevel=stacklevel + 1)
    if not choice.return_info:
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
    call = prepare(named, where, _SOLVE, choice)
    require_real_sums(call, has_sums=choice.has_sums)
    return make_step(call, Step(kind="matrix", vector="rhs"), stacklevel=stacklevel + 1)


def require_real_sums(call: Prepared, *, has_sums: bool) -> None:
    """Raise TypeError if a matrix that is given by row sums is complex."""
    if has_sums and call.dtype.kind == "c" and not call.paired:
        raise complex_sums(call.operation.name, call.dtype)


def _singular(call: Prepared, step: Step, info: Array, lines: NamedLines) -> Singular:
    """Return the singular systems, and write NaN to them if the call wants that."""
    singular, views = find_singular(info, lines.plan), lines.views
    policy = call.choice.on_singular
    x = [views[_RESULT]]
    if call.paired:
        singular = singular.of_first()
        x = list(views[_RESULT])
        views = {name: view[0] for name, view in views.items()}
    if policy == "nan" and not call.target.fills_nan:
        for part in x:
            singular.fill_nan(part, call.shape.batch)
    if policy in ("raise", "warn") and "where" not in views and step.kind != "flux":
        singular = explained(
            singular,
            call.target,
            [views[name] for name in _MATRIX],
            call.shape,
            periodic=call.choice.periodic,
            names=matrix_names(has_sums=call.choice.has_sums),
        )
    return singular
