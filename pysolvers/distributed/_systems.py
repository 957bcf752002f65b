"""Checks of split operands, and the singular systems of all ranks."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._options import SolveInfo
from .._runtime.finite import explained
from .._runtime.lines import Shape
from .._runtime.singular import Entry, Singular
from .._runtime.targets import find_target
from ._group import ONE_PROCESS, Group
from ._slab import Slab


def checked_group(group: object, split: object) -> tuple[Group, Slab]:
    """Return the arguments `group` and `split` of a call, or raise."""
    if not isinstance(group, Group) or not isinstance(split, Slab):
        raise TypeError(
            "group and split must be given together, a Group and a Slab of pysolvers.distributed; "
            f"got {type(group).__name__} and {type(split).__name__}"
        )
    return group, split


def ranks_of(group: object, split: object) -> tuple[Group, Slab]:
    """Return the arguments `group` and `split` of a solver; without them, those of one process."""
    if group is None and split is None:
        return ONE_PROCESS, Slab(0)
    return checked_group(group, split)


def check_short(group: Group, shape: Shape) -> None:
    """Raise if this rank omits an entry of lower or upper that couples to another rank."""
    for name, end, k in (("lower", 0, 0), ("upper", group.size - 1, 2)):
        if shape.omits[k] and group.rank != end:
            raise ValueError(
                f"{name}: only rank {end}, which holds the {'last' if k else 'first'} row, may "
                f"omit an entry; rank {group.rank} has {shape.rows - 1} entries for "
                f"{shape.rows} rows"
            )


def check_sizes(along: int, sizes: Sequence[int]) -> None:
    """Raise if some ranks hold nothing."""
    if min(sizes) == 0 < max(sizes):
        raise ValueError(
            f"split: every rank must hold at least one index of axis {along}, but the ranks hold "
            f"{', '.join(map(str, sizes))}"
        )


def merged(found: Sequence[Singular], sizes: Sequence[int], axis: int) -> Singular:
    """Return the singular systems of ranks whose batches are split along a batch axis."""
    starts = np.cumsum([0, *sizes])
    systems = np.concatenate([own.systems for own in found])
    systems[:, axis] += np.repeat(starts[:-1], [len(own.rows) for own in found])
    rows = np.concatenate([own.rows for own in found])
    order = np.lexsort(systems.T[::-1])
    entries = []
    for own, start in zip(found, starts[:-1], strict=True):
        if own.entry is not None:
            system = list(own.entry.system)
            system[axis] += int(start)
            entries.append(replace(own.entry, system=tuple(system)))
    return Singular(systems[order], rows[order], first_entry(entries))


def first_entry(entries: Iterable[Entry | None]) -> Entry | None:
    """Return that of the first system, or None if there is none."""
    found = [entry for entry in entries if entry is not None]
    return min(found, key=lambda entry: entry.system) if found else None


class Failures(NamedTuple):
    """Systems without a solution, of those that a rank holds whole.

    Attributes
    ----------
    numbers : ndarray of int
        Their numbers over the batch in C order.
    rows : ndarray of int
        The rows of the first bad pivots.
    entry : Entry or None
        The first entry that is not finite.
    """

    numbers: NDArray[np.intp]
    rows: NDArray[np.intp]
    entry: Entry | None


NO_FAILURES = Failures(np.zeros(0, np.intp), np.zeros(0, np.intp), None)


def failures_of(
    info: SolveInfo,
    lines: Sequence[NDArray[Any]],
    first: int,
    *,
    periodic: bool,
    names: Sequence[str] = ("lower", "diag", "upper"),
) -> Failures:
    """Return the failures of a call with whole lines of the host, of which `info` is the report.

    `lines` are the diagonals, shape (systems, rows), or (1, rows) for one that all systems have,
    from system number `first` on. They are not read if there is no failure; without any the
    failures are not explained.
    """
    assert info.singular is not None  # a call with arrays of the host waits
    assert info.singular_rows is not None
    failed = info.singular
    systems = failed[:, :1] if failed.shape[1] else np.zeros((len(failed), 1), np.intp)
    if not lines:
        return Failures(first + systems[:, 0], info.singular_rows, None)
    size = max(len(line) for line in lines), lines[1].shape[-1]
    entry = explained(
        Singular(systems, np.zeros(len(systems), np.intp)),
        find_target("cpu", None, {}, operation="solve_tridiagonal", leader=""),
        lines,
        Shape(size, 1, (False,) * len(lines)),
        periodic=periodic,
        names=names,
    ).entry
    if entry is not None:
        entry = replace(entry, system=(entry.system[0] + first,))
    return Failures(first + systems[:, 0], info.singular_rows, entry)


def numbered(found: Sequence[Failures], batch: tuple[int, ...]) -> Singular:
    """Return the singular systems of a batch from the failures of all ranks, by their numbers."""
    numbers, rows, entries = zip(NO_FAILURES, *found, strict=True)
    places = np.concatenate(numbers)
    indices = np.zeros((len(places), len(batch)), np.intp)
    if batch:
        indices[:] = np.stack(np.unravel_index(places, batch), axis=1)
    entry = first_entry(entries)
    if entry is not None:
        (number,) = entry.system
        entry = replace(entry, system=tuple(map(int, np.unravel_index(number, batch))))
    return Singular(indices, np.concatenate(rows), entry)
