"""`solve_tridiagonal` for arrays that are split over the ranks of a group."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._lines.engine import (
    Call,
    finish,
    prepare,
    solve_planned,
    solve_spikes,
    solve_views,
)
from .._lines.masks import Beyond
from .._options import Choice, SolveInfo
from .._row_sums import matrix_names
from .._runtime.device import packed_strides
from .._runtime.lines import Shape
from .._runtime.singular import Singular
from ._devices import (
    Answer,
    Facts,
    describe,
    facts_of,
    matrix_batch,
    signature_of,
    solve_on_devices,
    with_sizes,
)
from ._ends import (
    Coefficients,
    Matrices,
    Spike,
    Spikes,
    packed,
    reduced_matrix,
    reduced_rhs,
    unpacked,
)
from ._group import Group, own_device
from ._masks import beyond_part, ends_of_mask
from ._repeats import solve_as_before
from ._slab import Slab
from ._systems import (
    check_short,
    check_sizes,
    checked_group,
    merged,
    numbered,
)
from ._whole import solve_whole_lines

Array = NDArray[Any]
Report = dict[str, Any]

_OPERATION = "solve_tridiagonal"
_OPERANDS = ("lower", "diag", "upper", "rhs")
_RHS, _X = 3, 4
_ENDS = 2  # numbers of a right-hand side: those of `Matrices.reduce`
_SAME = ("method", "periodic", "pivot", "on_singular", "return_info")  # options of all ranks
_COUNTS = ("pivoted", "repeated")
_G = 2  # number of the scratch array of g; those of l and u are 0 and 1
_ALIGNMENT = 64  # bytes, of scratch arrays
_KEPT_BYTES = 1 << 26  # larger scratch arrays are not kept


def solve_split(
    group: Group | None,
    split: Slab | None,
    named: dict[str, Any],
    choice: Choice,
    where: Any = None,
) -> Array | tuple[Array, SolveInfo]:
    """Solve with operands of which each rank holds its part; see `solve_tridiagonal`."""
    group, split = checked_group(group, split)
    if "calls" in group.kept and where is None:
        answer = solve_as_before(group, split, named, choice)
        if answer is not None:
            return answer
    with group.agreement(_OPERATION) as agreed:
        call = _prepared(group, named, choice, where)
        choice = call.choice
        full = call.shape.full
        along = split.of(len(full))
        is_cut = along == call.shape.axis
        if is_cut:
            check_short(group, call.shape)
        agreed.own = full[along], facts_of(group, call) if is_cut else None
        agreed.same = {
            "dtype": str(call.dtype),
            "shape": tuple(":" if axis == along else size for axis, size in enumerate(full)),
            "axis": call.shape.axis,
            "batch shape of the matrices": matrix_batch(call) if is_cut else None,
            **{name: getattr(choice, name) for name in _SAME},
            "use of RowSums": choice.has_sums,
            "signs of the matrices": call.sign,
            "use of where": where is not None,
            "batch shape of where": [view.shape[:-1] for view in call.masks] if is_cut else None,
        }
    sizes, facts = zip(*agreed.found, strict=True)
    check_sizes(along, sizes)
    full = (*full[:along], sum(sizes), *full[along + 1 :])
    if is_cut and group.size > 1 and call.result.size:
        report, singular, exchange = _solve_lines(group, call, sizes, facts, along)
    else:
        report, singular = _solve_systems(group, call, along, sizes)
        exchange = "none"
    answer = finish(
        call,
        report,
        singular,
        stacklevel=3,
        systems=prod(full) // full[call.shape.axis] if full[call.shape.axis] else 0,
        rows=full[call.shape.axis],
        ranks=group.size,
        exchange=exchange,
    )
    if exchange == "peers" and isinstance(answer, tuple):
        describe(group, signature_of(call, along), sizes, answer[1])
    return answer


def _prepared(group: Group, named: dict[str, Any], choice: Choice, where: Any = None) -> Call:
    """Check the operands of this rank."""
    given = named if choice.out is None else {**named, "out": choice.out}
    device = own_device(choice.device, group, given if where is None else {**given, "where": where})
    return prepare(named, choice._replace(device=device), where)


def _mask_beyond(group: Group, call: Call) -> Beyond:
    """Return the masks of the rows beyond the part of this rank; collective."""
    (mask,) = call.masks
    with group.agreement(_OPERATION):
        ends = ends_of_mask(call.target, mask)
    return beyond_part(group, _OPERATION, ends, is_cut=True, periodic=call.choice.periodic)


def _solve_systems(
    group: Group, call: Call, along: int, sizes: Sequence[int]
) -> tuple[Report, Singular | None]:
    """Solve systems that lie complete on the ranks, or of which there are none."""
    with group.agreement(_OPERATION) as done:
        own = call, call.shape, call.choice.periodic, call.views, call.masks
        report, singular = solve_views(*own)
        done.own = {key: report[key] for key in _COUNTS}, singular
    counts, found = zip(*done.found, strict=True)
    report |= {key: sum(own[key] for own in counts) for key in _COUNTS}
    if along == call.shape.axis or any(own is None for own in found):
        return report, singular
    return report, merged(found, sizes, along - (along > call.shape.axis))


def _solve_lines(
    group: Group, call: Call, sizes: Sequence[int], facts: Sequence[Facts | None], along: int
) -> Answer:
    """Solve systems that are cut: by the partition method, or as whole lines."""
    if call.options.pivot != call.target.backend.PIVOTS["always"]:
        signature = signature_of(call, along)
        if call.choice.return_info:
            signature = with_sizes(signature, sizes)
        answer = solve_on_devices(group, call, sizes, facts, signature)
        if answer is not None:
            return answer
        report = _solve_by_ends(group, call)
        if report is not None:
            return report, numbered((), call.shape.batch), "ends"
    report, singular = _solve_whole(group, call, sizes)
    return report, singular, "lines"


def _solve_by_ends(group: Group, call: Call) -> Report | None:
    """Solve by the partition method; None if the systems need row exchanges."""
    beyond = _mask_beyond(group, call) if call.masks else None
    rank, periodic = group.rank, call.choice.periodic
    reports: list[Report] = []
    usable: list[bool] = []
    spikes: Spikes = (None, None)
    asking = call._replace(
        options=call.options._replace(policy="raise"), choice=call.choice._replace(return_info=True)
    )

    def systems(rows: slice, *sides: Array) -> tuple[Shape, list[Array]]:
        """Return the shape and the views of the systems of consecutive interior rows."""
        diagonals, is_short = matrices.diagonals(rows)
        x = sides[-1]
        shape = Shape(x.shape, x.ndim - 1, (is_short, False, False))
        return shape, [*diagonals, *sides]

    def solve(rows: slice, right: Array, solution: Array) -> bool:
        """Solve the systems of rows; return whether none was singular."""
        shape, views = systems(rows, right, solution)
        masks = [mask[..., rows] for mask in call.masks]
        return is_sound(rows, *solve_views(asking, shape, False, views, masks))

    def solve_interior(rows: slice, right: Array, solution: Array) -> bool:
        """Solve also for l and u, if they count in all rows, if the backend does it in one pass."""
        nonlocal spikes
        wanted = [spike is not None and spike.values is None for spike in spikes]
        l, u = (  # noqa: E741 - the names of the formulas
            _scratch(group, number, x)[..., rows] if is_one_pass and needs else None
            for number, needs in enumerate(wanted)
        )
        found = None
        if l is not None or u is not None:
            found = solve_spikes(asking, *systems(rows, right, solution), l, u)
        if found is None:
            return solve(rows, right, solution)
        left, right_one = spikes
        spikes = (
            left if l is None else Spike(rows, l),
            right_one if u is None else Spike(rows, u),
        )
        return is_sound(rows, *found)

    def is_sound(rows: slice, report: Report, singular: Singular | None) -> bool:
        """Whether no row was exchanged and no pivot was bad; note it if these are all rows."""
        found = report["pivoted"] == 0 and singular is not None and not len(singular.rows)
        if rows == matrices.interior:
            reports.append(report)
            usable.append(found)
        return found

    *matrix, rhs, x = call.views
    is_host, has_sums = call.target.name == "cpu", call.choice.has_sums
    is_plain = not has_sums and not call.masks
    is_one_pass = is_host and is_plain and matrix_batch(call) == x.shape[:-1]
    # Systems that need row exchanges are solved from the right-hand sides.
    g = x
    if np.may_share_memory(rhs, x):
        g = _scratch(group, _G, x) if is_host else call.target.packed(x)
    shapes = [*(matrix_batch(call),) * len(Coefficients._fields), *(x.shape[:-1],) * _ENDS]
    count = sum(prod(shape) for shape in shapes)
    with group._agreed_numbers(_OPERATION, count, call.dtype) as eliminated:
        matrices = Matrices(
            call.target,
            matrix,
            call.shape,
            (rank, group.size),
            periodic=periodic,
            has_sums=has_sums,
            mask=(call.masks[0], beyond) if beyond else None,
        )
        never = call.options.pivot == call.target.backend.PIVOTS["never"]
        usable.append(never or matrices.is_dominant)
        if all(usable):
            spikes = matrices.spikes(solve)
            ends = matrices.reduce(rhs, g, solve_interior)
        if all(usable):
            coefficients, spikes = matrices.eliminate(solve, spikes)
        if all(usable):
            eliminated.mine = packed((*coefficients, *ends), call.dtype)
    if eliminated.numbers is None:
        return None
    *of_matrices, g_first, d = unpacked(eliminated.numbers, shapes)
    found = Coefficients(*of_matrices)
    reduced = reduced_matrix(found, periodic=periodic)
    right = reduced_rhs(found, g_first, d, periodic=periodic)
    y, info = solve_planned(
        dict(zip(_OPERANDS, (*reduced, right), strict=True)),
        Choice(
            axis=0,
            periodic=periodic,
            on_singular="ignore",
            threads=call.choice.threads,
            return_info=True,
            has_sums=has_sums,
        ),
    )
    assert info.singular is not None  # of arrays of the host
    if len(info.singular):  # the same numbers on all ranks, and so the same outcome
        return None
    matrices.substitute(x, g, spikes, y[rank - 1], y[rank], rhs=rhs)
    report = reports[-1] if reports else {"kernel": "", "threads": 0, "copied": ()}
    return report | {"method": "partition", "pivoted": 0, "repeated": 0}


def _scratch(group: Group, number: int, like: Array) -> Array:
    """Return an array of the shape and the memory order of `like`, of memory that is used again.

    The time of new memory is about half of that of a solve.
    """
    kept: dict[int, Array] = group.kept.setdefault("scratch", {})
    memory = kept.get(number)
    if memory is None or memory.nbytes < like.nbytes:
        kept.pop(number, None)
        memory = np.empty(like.nbytes + _ALIGNMENT, np.uint8)
        memory = memory[-memory.ctypes.data % _ALIGNMENT :]
        if like.nbytes <= _KEPT_BYTES:
            kept[number] = memory
    return np.ndarray(like.shape, like.dtype, memory, strides=packed_strides(like))


def _solve_whole(group: Group, call: Call, sizes: Sequence[int]) -> tuple[Report, Singular | None]:
    """Solve every line on one rank, as on one device."""
    target, choice = call.target, call.choice

    def solve(lines: list[Array]) -> tuple[Array, SolveInfo]:
        """Solve complete lines."""
        named = dict(zip(_OPERANDS, lines, strict=False))
        alone = Choice(
            method=choice.method,
            periodic=choice.periodic,
            pivot=choice.pivot,
            on_singular="nan" if choice.on_singular == "nan" else "ignore",
            device=target.device_name,
            threads=choice.threads,
            return_info=True,
            has_sums=choice.has_sums,
        )
        where = lines[-1].astype(bool) if call.masks else None
        answer: tuple[Array, SolveInfo] = solve_planned(named, alone, where)
        return answer

    info, counts, singular = solve_whole_lines(
        group,
        _OPERATION,
        target,
        call.shape,
        [*call.views[: _RHS + 1], *call.masks],
        call.views[_X],
        sizes,
        solve,
        periodic=choice.periodic,
        names=matrix_names(has_sums=choice.has_sums),
        explains=not call.masks,
    )
    report = {"method": info.method, "kernel": info.kernel, "threads": info.threads, "copied": ()}
    return report | counts, singular
