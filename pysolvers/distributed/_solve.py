"""`solve_tridiagonal` for arrays that are split over the ranks of a group."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import SingularSystemError
from .._options import SolveInfo
from .._runtime.arrays import Shape
from .._runtime.singular import Singular
from ..tridiagonal import Call, Choice, finish, prepare, solve_tridiagonal, solve_views
from ._ends import Equations, Lines, reduced_system
from ._group import Group
from ._peers import solve_by_peers
from ._slab import Slab
from ._whole import Shares

__all__ = ["solve_split"]

Array = NDArray[Any]
Report = dict[str, Any]
Answer = tuple[Report, Singular | None, str]  # the last is `SolveInfo.exchange`

_OPERATION = "solve_tridiagonal"
_RHS, _X = 3, 4
_SAME = ("method", "periodic", "pivot", "on_singular", "return_info")  # options of all ranks
_COUNTS = ("pivoted", "repeated")


def solve_split(
    group: Group | None, split: Slab | None, named: dict[str, Any], choice: Choice
) -> Array | tuple[Array, SolveInfo]:
    """Solve with operands of which each rank holds its part; see `solve_tridiagonal`."""
    if not isinstance(group, Group) or not isinstance(split, Slab):
        raise TypeError(
            "group and split must be given together, a Group and a Slab of pysolvers.distributed; "
            f"got {type(group).__name__} and {type(split).__name__}"
        )
    with group.agreement(_OPERATION) as agreed:
        call = prepare(named, choice)
        full = call.shape.full
        along = split.of(len(full))
        is_cut = along == call.shape.axis
        if is_cut:
            _check_short(group, call)
        agreed.own = full[along]
        agreed.same = {
            "dtype": str(call.dtype),
            "shape": tuple(":" if axis == along else size for axis, size in enumerate(full)),
            "axis": call.shape.axis,
            "batch shape of the matrices": _matrix_batch(call) if is_cut else None,
            **{name: getattr(choice, name) for name in _SAME},
        }
    sizes = agreed.found
    if min(sizes) == 0 < max(sizes):
        raise ValueError(
            f"split: every rank must hold at least one index of axis {along}, but the ranks hold "
            f"{', '.join(map(str, sizes))}"
        )
    full = (*full[:along], sum(sizes), *full[along + 1 :])
    if is_cut and group.size > 1 and call.result.size:
        report, singular, exchange = _solve_lines(group, call, sizes)
    else:
        report, singular = _solve_systems(group, call, along, sizes)
        exchange = "none"
    return finish(
        call,
        report,
        singular,
        stacklevel=3,
        systems=prod(full) // full[call.shape.axis] if full[call.shape.axis] else 0,
        rows=full[call.shape.axis],
        ranks=group.size,
        exchange=exchange,
    )


def _matrix_batch(call: Call) -> tuple[int, ...]:
    return np.broadcast_shapes(*(view.shape[:-1] for view in call.views[:_RHS]))


def _check_short(group: Group, call: Call) -> None:
    for name, end, k in (("lower", 0, 0), ("upper", group.size - 1, 2)):
        if call.shape.short[k] and group.rank != end:
            raise ValueError(
                f"{name}: only rank {end}, which holds the {'last' if k else 'first'} row, may "
                f"omit an entry; rank {group.rank} has {call.shape.rows - 1} entries for "
                f"{call.shape.rows} rows"
            )


def _solve_systems(
    group: Group, call: Call, along: int, sizes: Sequence[int]
) -> tuple[Report, Singular | None]:
    """Solve systems that lie complete on the ranks, or of which there are none."""
    with group.agreement(_OPERATION) as done:
        report, singular = solve_views(call, call.shape, call.choice.periodic, call.views)
        done.own = {key: report[key] for key in _COUNTS}, singular
    counts, found = zip(*done.found, strict=True)
    report |= {key: sum(own[key] for own in counts) for key in _COUNTS}
    if along == call.shape.axis or any(own is None for own in found):
        return report, singular
    axis = along - (along > call.shape.axis)  # among the batch axes
    starts = np.cumsum([0, *sizes])
    for own, start in zip(found, starts, strict=False):
        own.systems[:, axis] += start
    return report, _merged(found)


def _merged(found: Sequence[Singular]) -> Singular:
    """Return the singular systems of all ranks in ascending order."""
    systems = np.concatenate([own.systems for own in found])
    rows = np.concatenate([own.rows for own in found])
    order = np.lexsort(systems.T[::-1]) if systems.size else slice(None)
    return Singular(systems[order], rows[order])


def _solve_lines(group: Group, call: Call, sizes: Sequence[int]) -> Answer:
    """Solve systems that are cut: by the partition method, or as whole lines."""
    if call.options.pivot != call.place.backend.PIVOTS["always"]:
        answer = solve_by_peers(group, call, sizes)
        if answer is not None:
            return *answer, "peers"
        report = _solve_by_ends(group, call)
        if report is not None:
            return report, Singular(*_none(call)), "ends"
    report, singular = _solve_whole(group, call, sizes)
    return report, singular, "lines"


def _none(call: Call) -> tuple[Array, Array]:
    return np.zeros((0, len(call.shape.batch)), np.intp), np.zeros(0, np.intp)


def _solve_by_ends(group: Group, call: Call) -> Report | None:
    """Solve by the partition method; None if the systems need row exchanges."""
    rank, periodic = group.rank, call.choice.periodic
    reports: list[Report] = []
    asking = call._replace(
        options=call.options._replace(policy="raise"), choice=call.choice._replace(return_info=True)
    )

    def solve(views: list[Array]) -> bool:
        shape = Shape(views[_X].shape, views[_X].ndim - 1, (call.shape.short[0], False, False))
        report, singular = solve_views(asking, shape, False, views)
        reports.append(report)
        return report["pivoted"] == 0 and singular is not None and not len(singular.rows)

    lines = Lines(
        call.place,
        call.views,
        has_left=periodic or rank > 0,
        has_right=periodic or rank < group.size - 1,
        is_short=call.shape.short[0],
        pivots=call.options.pivot != call.place.backend.PIVOTS["never"],
        solve=solve,
    )
    with group.agreement(_OPERATION) as eliminated:
        mine, eliminated.own = lines.eliminate()
    if not all(eliminated.found):
        return None
    numbers = group.allgather(_OPERATION, mine.packed(call.dtype))
    found = Equations.unpacked(numbers, lines.matrices, call.shape.batch)
    system = reduced_system(found, periodic=periodic)
    try:  # the same numbers on all ranks, and so the same outcome
        y = solve_tridiagonal(*system, axis=0, periodic=periodic, threads=call.choice.threads)
    except SingularSystemError:
        return None
    with group.agreement(_OPERATION):
        lines.substitute(y[rank - 1], y[rank])
    report = reports[-1] if reports else {"kernel": "", "threads": 0, "copied": ()}
    return report | {"method": "partition", "pivoted": 0, "repeated": 0}


def _solve_whole(group: Group, call: Call, sizes: Sequence[int]) -> tuple[Report, Singular | None]:
    """Solve every line on one rank, as on one device."""
    place, choice, rows = call.place, call.choice, call.shape.rows
    count = prod(call.shape.batch)
    shares = Shares(group, _OPERATION, sizes, count)
    with group.agreement(_OPERATION):
        parts = [_part_of_lines(call, k) for k in range(_X)]
    lines = [shares.to_lines(part) for part in parts]
    with group.agreement(_OPERATION) as done:
        x, info = solve_tridiagonal(
            *lines,
            method=choice.method,
            periodic=choice.periodic,
            pivot=choice.pivot,
            on_singular="nan" if choice.on_singular == "nan" else "ignore",
            device=place.name if place.name == "cpu" else f"{place.name}:{place.ordinal}",
            threads=choice.threads,
            variant=choice.variant,
            return_info=True,
        )
        assert info.singular is not None  # a call with arrays of the host waits
        systems = shares.own.start + info.singular[:, 0]
        done.own = systems, info.singular_rows, {key: getattr(info, key) or 0 for key in _COUNTS}
    part = shares.from_lines(x).reshape(*call.shape.batch, rows)
    with group.agreement(_OPERATION):
        place.write(call.views[_X], place.upload(part))
    shared, bad, counts = zip(*done.found, strict=True)
    at = np.unravel_index(np.concatenate(shared), call.shape.batch or (1,))
    found = np.array(at[: len(call.shape.batch)], np.intp).reshape(-1, len(at[0])).T
    report = {"method": info.method, "kernel": info.kernel, "threads": info.threads, "copied": ()}
    report |= {key: sum(own[key] for own in counts) for key in _COUNTS}
    return report, Singular(found, np.concatenate(bad))


def _part_of_lines(call: Call, k: int) -> Array:
    """Return the rows that this rank holds of one operand: (lines or 1, rows), in host memory."""
    view, rows = call.views[k], call.shape.rows
    part = call.place.download(view)
    if call.shape.short[k]:
        missing = np.zeros((*part.shape[:-1], 1), part.dtype)
        part = np.concatenate([missing, part] if k == 0 else [part, missing], axis=-1)
    is_shared = k < _RHS and prod(view.shape[:-1]) == 1
    batch = (1,) * len(call.shape.batch) if is_shared else call.shape.batch
    return np.ascontiguousarray(np.broadcast_to(part, (*batch, rows))).reshape(-1, rows)
