"""One direct solve: checks, targets, calls of the backend, reports.

`solve_unplanned` is one call of the extension, where the operands need no planning. Otherwise
`prepare` checks a call and moves its operands, `solve_views` or `solve_spikes` solves, and `finish`
gives the result out; `solve_planned` is all three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import integer, require_flag
from .._errors import raise_for_status
from .._options import (
    POLICIES,
    Choice,
    Method,
    OnSingular,
    SolveInfo,
    check_choice,
    check_policy,
    check_threads,
    pivot_code,
    shape_flags,
)
from .._row_sums import RowSums, matrix_names
from .._runtime.arrays import resolve_shape
from .._runtime.backends import host
from .._runtime.finite import explained, require_finite_operands
from .._runtime.interop import host_array, library_of
from .._runtime.lines import (
    Parts,
    Plan,
    Shape,
    arranged,
    brought,
    lines_of,
    parts_of,
    plan_of,
    shares_one_matrix,
)
from .._runtime.signs import require_form
from .._runtime.singular import Singular, find_singular
from .._runtime.targets import Target, fast_access_of, find_target, report_of_nothing
from .eager import programs_for
from .step import solve_step

Array = NDArray[Any]

_OPERATION = "solve_tridiagonal"
_NAMES = ("lower", "diag", "upper", "rhs", "out")
_DIAG, _RHS, _X = 1, 3, 4

# What a device does about singular systems, as numbers of the extension.
_ON_DEVICE = {"ignore": 0, "raise": 1, "nan": 2}


class _Options(NamedTuple):
    """Checked options, as codes of the backend."""

    method: int
    pivot: int
    policy: str
    threads: int
    variant: int


class Call(NamedTuple):
    """A checked call of `solve_tridiagonal`, its operands where they are used."""

    rhs: Any
    choice: Choice
    target: Target
    options: _Options
    shape: Shape
    dtype: np.dtype
    converted: tuple[str, ...]
    result: Array
    operands: list[Array]  # lower, diag, upper and rhs, before they are moved
    views: list[Array]  # of these and of x, moved, the axis of the systems last; by `prepare`
    sign: int | None = None  # of matrices given by row sums, as far as it is known
    mask: Array | None = None  # as it was given
    masks: tuple[Array, ...] = ()  # its view with all rows, moved, if there is one; by `prepare`


def solve_unplanned(
    lower: Any,
    diag: Any,
    upper: Any,
    rhs: Any,
    form: RowSums | None,
    where: Any,
    axis: int,
    method: Method,
    periodic: bool,
    pivot: bool | None,
    out: Any,
    policy: OnSingular,
    device: str | None,
    threads: int | None,
    return_info: Any,
) -> Any:
    """Do what `solve_tridiagonal` does if one call of the extension can, or return None.

    With a `form`, `diag` has row sums. Calls with errors in their arguments give None, too.
    """
    if type(return_info) is not bool or policy not in POLICIES:
        return None
    is_plain = form is None and where is None and method == "auto" and return_info is False
    on_host = device is None or device == "cpu"
    access = None if type(rhs) is np.ndarray else fast_access_of(rhs, device)
    if access is not None:
        if not is_plain or policy == "warn":
            return None
        return solve_on_device(
            lower, diag, upper, rhs, axis, out, pivot, periodic, threads, policy, access
        )
    if not on_host:
        return None
    if not is_plain:
        if where is not None and method != "auto":
            return None
        return solve_directly(
            *(lower, diag, upper, rhs, axis, out, pivot, periodic, threads, policy),
            form=form,
            step=None if where is None else _kept_outside(where),
            method=method,
            return_info=return_info,
        )
    operands = [lower, diag, upper, rhs]
    options: tuple[Any, ...] = (axis, out, pivot, periodic, threads, policy)
    answer = solve_directly(*operands, *options)
    if answer is None and out is None and any(map(_has_integers, operands)):
        floats = [a.astype(np.float64) if _has_integers(a) else a for a in operands]
        return solve_directly(*floats, *options)
    if answer is None and out is None and threads is None and policy != "warn":
        programs = programs_for(rhs)
        if programs is not None:
            asks = policy == "raise"
            return programs.solve(tuple(operands), (axis, pivot, periodic), asks=asks)
    return answer


def _has_integers(operand: Any) -> bool:
    """Return whether an operand is an array of the host that a call converts to float64."""
    return type(operand) is np.ndarray and operand.dtype.kind in "biu"


def solve_planned(
    named: dict[str, Any], choice: Choice, where: Any = None, *, stacklevel: int = 2
) -> Any:
    """Do what `solve_tridiagonal` does, for any operands; `stacklevel` is that of a warning."""
    if where is not None:
        return solve_step(named, where, choice, stacklevel=stacklevel + 1)
    call = _checked(named, choice)
    target, shape, x = call.target, call.shape, call.result
    if x.size:
        views, parts = arranged(target, shape, call.operands, target.destination(x))
    else:
        views = shape.operands([*call.operands, x])
        parts = parts_of(target, shape, views)
    report, singular = _solve(call, shape, choice.periodic, views, parts)
    return finish(call, report, singular, stacklevel=stacklevel + 1)


def prepare(named: dict[str, Any], choice: Choice, where: Any = None) -> Call:
    """Check the operands and the options of `solve_tridiagonal`; bring them to where they are used.

    For callers that divide the systems before they solve them. With a mask `where`, the signs of
    matrices given by row sums are not checked.
    """
    call = _checked(named, choice, where)
    target, shape, x = call.target, call.shape, call.result
    operands = call.operands
    if call.mask is not None:
        (view,) = brought(target, shape, [call.mask])
        call = call._replace(masks=(np.broadcast_to(view, (*view.shape[:-1], shape.rows)),))
    if call.result.size:
        x = target.destination(x)
        return call._replace(views=[*brought(target, shape, operands), shape.batch_first(x)])
    return call._replace(views=shape.operands([*operands, x]))


def _checked(named: dict[str, Any], choice: Choice, where: Any = None) -> Call:
    """Check the operands and the options of `solve_tridiagonal`."""
    given = named if where is None else {**named, "where": where}
    target = find_target(
        choice.device,
        choice.stream,
        given,
        choice.out,
        operation=_OPERATION,
        leader="rhs",
        timed=choice.return_info,
    )
    backend = target.backend
    if choice.variant and target.name == "cpu":
        raise ValueError(
            "mapping needs a device, the CPU has one form of parallel cyclic reduction: give "
            "device='cuda', or arrays on a device"
        )
    options = _Options(
        check_choice("method", choice.method, backend.METHODS),
        pivot_code(choice.pivot, backend.PIVOTS, choice.method, has_sums=choice.has_sums),
        check_policy(choice.on_singular),
        check_threads(choice.threads),
        choice.variant,
    )

    require_flag("periodic", choice.periodic)
    require_flag("check_finite", choice.check_finite)
    require_flag("return_info", choice.return_info)
    operands, dtype, converted = target.operands(named)
    mask = None if where is None else target.mask("where", where)
    shape = _solve_shape(operands, choice.axis, choice.periodic, backend.MAX_ROWS, mask)
    if choice.check_finite:
        arrays = dict(zip(_NAMES, operands, strict=False))
        if mask is not None:
            arrays["where"] = mask
        require_finite_operands(_OPERATION, target, arrays, shape, periodic=choice.periodic)
    sign = None
    if choice.has_sums:
        sign = require_form(
            _OPERATION,
            target,
            operands,
            shape,
            periodic=choice.periodic,
            check_signs=mask is None
            and choice.check_signs
            and target.reports_singular(options.policy),
        )
    result = target.result(choice.out, given, operands[_RHS], shape.full, dtype)
    if result.size and not choice.has_sums:
        operands, widened = _widen_shared(target, operands, shape, dtype)
        converted = (*converted, *widened)
    return Call(
        rhs=named["rhs"],
        choice=choice,
        target=target,
        options=options,
        shape=shape,
        dtype=dtype,
        converted=converted,
        result=result,
        operands=operands,
        views=[],
        sign=sign,
        mask=mask,
    )


def solve_views(
    call: Call,
    shape: Shape,
    periodic: bool,
    views: list[Array],
    masks: Sequence[Array] = (),
) -> tuple[dict[str, Any], Singular | None]:
    """Solve the systems of these views, of this shape, with the options of a call.

    With a mask the rows inside are solved for, and x outside is the right-hand side.
    Return the report of the backend, with the names of the operands that were copied, and, if the
    call asks for them, the singular systems.
    """
    return _solve(call, shape, periodic, views, parts_of(call.target, shape, views, masks))


def _solve(
    call: Call, shape: Shape, periodic: bool, views: list[Array], parts: Parts
) -> tuple[dict[str, Any], Singular | None]:
    """Do what `solve_views` does, with the calls of the backend."""
    target, options = call.target, call.options
    report = report_of_nothing()
    failed = np.zeros(0, np.int32) if target.reports_singular(options.policy) else None
    if views[_X].size:
        flags = shape_flags(target.backend, shape, periodic)
        if call.choice.has_sums:
            flags |= target.backend.ROW_SUMS
        report, failed = _solve_parts(target, options, flags, parts, call.choice.return_info)
    singular = None if failed is None else find_singular(failed, parts.plan)
    if singular is not None and parts.paired:
        singular = singular.of_first()
    if singular is not None and options.policy in ("raise", "warn"):
        names = matrix_names(has_sums=call.choice.has_sums)
        singular = explained(singular, target, views, shape, periodic=periodic, names=names)
    if singular is not None and options.policy == "nan" and not target.fills_nan:
        singular.fill_nan(views[_X], shape.batch)
    return report | {"copied": tuple(_NAMES[k] for k in parts.plan.copied)}, singular


def solve_spikes(
    call: Call, shape: Shape, views: list[Array], left: Array | None, right: Array | None
) -> tuple[dict[str, Any], Singular | None] | None:
    """Solve as `solve_views`, and for the outermost columns of the inverses, in one pass.

    With the matrices T, write ``T left = lower[0] e_0`` and ``T right = upper[n - 1] e_(n - 1)``.
    ``report["pivoted"]`` counts the systems that need row exchanges; if there are any, the outputs
    are unspecified. None if the backend cannot do it, or not faster than `solve_views`.
    """
    target, options = call.target, call.options
    if target.name != "cpu" or views[_RHS].dtype != views[_DIAG].dtype:
        return None
    outputs = [views[_X], *(view for view in (left, right) if view is not None)]
    operands = [*views[:_X], *outputs]
    plan = plan_of(shape.batch, operands)
    lines = lines_of(target, plan, operands, views[_X].shape[-1])
    more = iter(lines[_X + 1 :])
    info = target.info(prod(shape.batch))
    status, report = target.backend.spikes_solve(
        options.method,
        options.pivot,
        shape_flags(target.backend, shape, False),
        *lines[: _X + 1],
        None if left is None else next(more),
        None if right is None else next(more),
        info,
        options.threads,
    )
    if target.backend.STATUS[status][0] == "PS_UNSUPPORTED":
        return None
    raise_for_status(status, target.backend.STATUS, _OPERATION)
    for number in plan.copied:
        if number >= _X:
            target.restore(lines[number], operands[number], plan.outer + plan.inner)
    names = tuple(_NAMES[k] for k in plan.copied if k <= _X)
    return report | {"copied": names}, find_singular(target.info_on_host(info), plan)


def finish(
    call: Call, report: dict[str, Any], singular: Singular | None, *, stacklevel: int, **facts: Any
) -> Array | tuple[Array, SolveInfo]:
    """Return what `solve_tridiagonal` returns; `facts` are further attributes of its info."""
    answer = call.target.finish(call.result, call.rhs, call.choice.out)
    if singular is not None:
        singular.report(call.options.policy, _OPERATION, stacklevel=stacklevel + 1)
    if not call.choice.return_info:
        return answer
    copied = report.pop("copied")
    description = call.target.description(report, singular)
    known: dict[str, Any] = {
        "systems": prod(call.shape.batch),
        "rows": call.shape.rows,
        "dtype": call.dtype,
        "copied": tuple(dict.fromkeys((*call.converted, *copied))),
    }
    return answer, SolveInfo(**description, **(known | facts))


def solve_directly(
    lower: object,
    diag: object,
    upper: object,
    rhs: object,
    axis: object,
    out: object,
    pivot: object,
    periodic: object,
    threads: object,
    policy: OnSingular,
    *,
    operation: str = _OPERATION,
    form: RowSums | None = None,
    step: tuple[Any, ...] | None = None,
    method: str = "auto",
    return_info: bool = False,
) -> Any:
    """Solve in one call of the extension if the operands need no planning, or return None.

    They need none if they are arrays of the shape of `rhs`, vectors, and real numbers, of one
    precision; those of the matrices can lack the first axes of `rhs`. Calls with errors in their
    arguments give None, too. `step`: kind, step and gain of a step (ps_step.h) from `rhs`, and its
    other operands.
    """
    sides = (rhs, out)
    if not isinstance(rhs, np.ndarray):
        rhs = host_array(rhs)
        if type(rhs) is not np.ndarray:
            return None
        lower, diag, upper, out = map(host_array, (lower, diag, upper, out))
        step = step and (*step[:3], *map(host_array, step[3:]))
    backend = host()
    if form is None and step is None and method == "auto" and not return_info:
        answer = backend.tridiag_direct(
            lower, diag, upper, rhs, axis, out, pivot, periodic, threads, 0, 0, policy != "ignore"
        )
    else:
        code, pivot = _direct_method(backend.METHODS, method, pivot, form)
        if code is None or (return_info and not rhs.size):
            return None
        sums = 0 if form is None else 2 if form.check_signs else 1
        reports = return_info or policy != "ignore"
        answer = backend.tridiag_direct(
            *(lower, diag, upper, rhs, axis, out, pivot, periodic, threads),
            *(0, 0, reports, sums, step, code, return_info),
        )
    if answer is NotImplemented:
        return None
    if type(answer) is np.ndarray and rhs is sides[0]:
        return answer
    report = None
    if return_info and type(answer) is tuple:
        x, failures, report = answer
        answer = x if failures is None else (x, failures)
    singular = None
    if type(answer) is not np.ndarray:
        named = {"lower": lower, "diag": diag, "upper": upper, "rhs": rhs}
        target = find_target("cpu", None, named, operation=operation, leader="rhs")
        facts: dict[str, Any] = {"operation": operation, "explains": _explains(step)}
        has_sums = form is not None
        answer, singular = _answer(
            answer, named, target, axis, periodic, policy, has_sums=has_sums, **facts
        )
    given = answer
    if rhs is not sides[0]:
        given = library_of(sides[0]).from_host(answer, sides[0]) if out is None else sides[1]
    return given if report is None else (given, _info_of(answer, axis, report, singular))


def _direct_method(
    codes: Mapping[str, int], method: str, pivot: object, form: RowSums | None
) -> tuple[int | None, object]:
    """Return the code of a method and what it makes of `pivot`; no code for what Python refuses."""
    if form is not None:
        is_plain = method == "auto" and (pivot is None or pivot is False)
        return codes["auto"] if is_plain else None, False
    if method == "auto":
        return codes["auto"], pivot
    exchanges = method == "pivoted"
    is_plain = type(method) is str and (pivot is None or pivot is exchanges)
    return codes.get(method) if is_plain else None, exchanges


def _info_of(x: Array, axis: Any, report: dict[str, Any], singular: Singular | None) -> SolveInfo:
    """Return the report of a solve in one call of the extension."""
    rows = x.shape[axis]
    target = find_target("cpu", None, {}, operation=_OPERATION, leader="rhs")
    if singular is None:
        singular = find_singular(np.zeros(0, np.int32), Plan((0,) * (x.ndim - 1), (), ()))
    return SolveInfo(
        **target.description(report, singular),
        systems=x.size // rows,
        rows=rows,
        dtype=x.dtype,
        copied=(),
    )


def solve_on_device(
    lower: object,
    diag: object,
    upper: object,
    rhs: object,
    axis: object,
    out: object,
    pivot: object,
    periodic: object,
    threads: object,
    policy: OnSingular,
    access: tuple[ModuleType, Any, int],
    *,
    operation: str = _OPERATION,
    step: tuple[Any, ...] | None = None,
) -> Any:
    """Solve as `solve_directly` does, for arrays of a library with fast access to a device."""
    backend, functions, ordinal = access
    answer = backend.tridiag_borrowed(
        *(lower, diag, upper, rhs, axis, out, pivot, periodic, threads),
        ordinal,
        _ON_DEVICE[policy],
        functions,
        *(() if step is None else (step,)),
    )
    if answer is NotImplemented:
        return None
    if type(answer) is int or type(answer) is tuple:
        named = {"lower": lower, "diag": diag, "upper": upper, "rhs": rhs}
        target = find_target(None, None, named, out, operation=operation, leader="rhs")
        facts: dict[str, Any] = {"operation": operation, "explains": _explains(step)}
        return _answer(answer, named, target, axis, periodic, policy, **facts)[0]
    return answer


def step_directly(
    operands: Sequence[object],
    options: Sequence[object],
    policy: OnSingular,
    device: str | None,
    operation: str,
    kind: str,
    step: tuple[Any, ...],
    *,
    are_plain: bool = False,
) -> Any:
    """Make a step as `solve_directly` does, on the CPU or a device, or return None.

    `operands`: lower, diag, upper and u; `options`: axis, out, pivot, periodic and threads; `step`:
    step and gain (ps_step.h), then those of source, where, both fluxes, both values, and the arrays
    and the scale of the products that are needed. `are_plain`: the values of all arrays are known
    to be what lies in their memory.
    """
    code = host().STEP_KINDS[kind]
    facts: dict[str, Any] = {"operation": operation, "step": (code, *step)}
    arguments: tuple[Any, ...] = (*operands, *options, policy)
    u = operands[_RHS]
    access = None if type(u) is np.ndarray else fast_access_of(u, device)
    if access is not None:
        if are_plain:
            backend, functions, ordinal = access
            access = backend, (None, *functions[1:]), ordinal
        arguments += (access,)
        return solve_on_device(*arguments, **facts)
    if device is None or device == "cpu":
        return solve_directly(*arguments, **facts)
    return None


def _kept_outside(where: Any) -> tuple[Any, ...]:
    """Return the step of a solve that keeps the right-hand sides outside of a mask."""
    return host().STEP_KINDS["matrix"], 0.0, 1.0, None, where


def _explains(step: tuple[Any, ...] | None) -> bool:
    """Return whether the matrices of a call are those of its operands, in all rows."""
    if step is None:
        return True
    kind, _, _, _, where, *_ = (*step, None, None)
    return kind != host().STEP_KINDS["flux"] and where is None


def _answer(
    answer: Any,
    named: dict[str, Any],
    target: Target,
    axis: Any,
    periodic: Any,
    policy: OnSingular,
    *,
    has_sums: bool = False,
    operation: str = _OPERATION,
    explains: bool = True,
) -> tuple[Array, Singular]:
    """Return the array of an answer of the extension, and its singular systems, or raise."""
    if isinstance(answer, int):
        raise_for_status(answer, target.backend.STATUS, operation)
    x, info = answer
    rows_last = np.moveaxis(x, integer("axis", axis), -1)
    batch = rows_last.shape[:-1]
    plan = Plan(batch, (), tuple(k for k, size in enumerate(batch) if size > 1))
    singular = find_singular(info, plan)
    if policy in ("raise", "warn") and explains:
        operands, _, _ = target.operands(named)
        shape = _solve_shape(operands, axis, bool(periodic), target.backend.MAX_ROWS)
        views = shape.operands(operands)
        names = matrix_names(has_sums=has_sums)
        singular = explained(singular, target, views, shape, periodic=bool(periodic), names=names)
    singular.report(policy, operation, stacklevel=5)
    if policy == "nan":
        singular.fill_nan(rows_last, batch)
    return x, singular


def _solve_shape(
    operands: Sequence[Array],
    axis: int,
    periodic: bool,
    max_rows: int,
    mask: Array | None = None,
) -> Shape:
    """Return the shape of the systems that an array of right-hand sides leads, or raise."""
    if operands[_RHS].ndim == 0:
        raise ValueError("rhs must have at least one dimension, got a 0-d array")
    named = dict(zip(_NAMES, operands, strict=False))
    if mask is not None:
        named["where"] = mask
    shape = resolve_shape(named, axis, leader="rhs", periodic=periodic)
    if shape.rows > max_rows:
        raise ValueError(f"a system can have at most {max_rows} rows, got {shape.rows}")
    return shape


def _widen_shared(
    target: Target, operands: list[Array], shape: Shape, dtype: np.dtype
) -> tuple[list[Array], list[str]]:
    """Make a real matrix complex if this costs less than systems of every second element.

    That is the case if all systems share the matrix, so that its copy is small, and the rows of
    the complex right-hand sides are contiguous. Return the names of the copies, too.
    """
    is_real = operands[_DIAG].dtype != dtype
    if not (is_real and target.converts and shares_one_matrix(shape, operands)):
        return operands, []
    named = dict(zip(_NAMES, operands[:_RHS], strict=False))
    copies = [target.widen(name, array, dtype) for name, array in named.items()]
    return [*copies, operands[_RHS]], [name for name, array in named.items() if array.ndim]


def _solve_parts(
    target: Target, options: _Options, flags: int, parts: Parts, return_info: bool
) -> tuple[dict[str, Any], NDArray[np.int32] | None]:
    """Solve all parts; return the report and the info of each system of the first one."""
    answers = []
    for views, lines in zip(parts.views, parts.lines, strict=True):
        x = views[_X]
        if parts.work is not None:
            target.write(parts.work, views[_RHS])
            x = parts.work
        answers.append(_run(target, options, flags, lines, x, parts.plan, return_info))
        if parts.work is not None:
            target.write(views[_X], x)
    report, failed = answers[0]
    if parts.paired:  # every matrix is counted twice
        halves = {key: report[key] for key in ("pivoted", "repeated")}
        report = report | {key: (n + 1) // 2 if n > 0 else n for key, n in halves.items()}
    return report, failed


def _run(
    target: Target,
    options: _Options,
    flags: int,
    lines: Sequence[Array],
    view: Array,
    plan: Plan,
    return_info: bool,
) -> tuple[dict[str, Any], NDArray[np.int32] | None]:
    """Solve on the backend; return its report and, if requested, the info of each system.

    `view` is that of which the last one of the lines are a view or a copy.
    """
    backend = target.backend
    x = lines[_X]
    asks = target.reports_singular(options.policy)
    info = target.info(x.shape[0] * x.shape[1]) if asks or options.policy == "nan" else None
    operands, masks, counts = lines[: _X + 1], lines[_X + 1 :], asks and return_info
    if masks:
        kind, step = backend.STEP_KINDS["matrix"], (0.0, 1.0, None, None, masks[0], (None,) * 4)
        status, report = backend.step_solve(
            *(kind, options.pivot, flags, *operands, info, *step),
            *(options.threads, *target.arguments, counts),
        )
    else:
        status, report = backend.tridiag_solve(
            *(options.method, options.pivot, flags, *operands, info),
            *(options.threads, options.variant, *target.arguments, counts),
        )
    raise_for_status(status, backend.STATUS, _OPERATION)
    if info is not None and options.policy == "nan" and target.fills_nan:
        target.fill_nan(x, info.reshape(x.shape[:2]))
    if _X in plan.copied:
        target.restore(x, view, plan.outer + plan.inner)
    return report, target.info_on_host(info) if info is not None and asks else None
