r"""Transforms on a device whose waves stay as cuFFT packs them, and lines along the first axis.

For real fields of cells whose sides are both Dirichlet or both Neumann, or periodic, along all axes
but the first one; on rectangles also of nodes. The cosine and sine transforms of type II of n
values are the real and imaginary parts of

    exp(-i pi k / (2 n)) V[k]

at k and n - k, with V the Fourier transform of the values in another order (Makhoul 1980, in one
and two dimensions). A rotation of the reals of one wave is local, so that the solver of the lines
makes it when it reads and writes, and waves need no pass of their own:

    load     values to the order of cuFFT                     2 words per unknown
    cuFFT    all axes but the first one, in place             2 for each axis
    lines    rotate, solve along the first axis, rotate back  2
    cuFFT    back, in place                                   2 for each axis
    store    values in their own order                        2

The waves of nodes are those of the even or odd extension to twice the length. Where the intervals
of a rectangle can be halved, the waves of odd order are transforms of half the length, those of
even order the waves of half the intervals, and so on (cuda/transforms/halved.cuh): with three
halvings the steps move 2.1, 2.3 for each transform, 2.3 and 2.1 words. Each part of the waves has
its own plans and systems of lines. In three dimensions nodes would have four times the values:
`_device` moves less.

The lines need no transposition either, because neighbouring lines are neighbours in memory.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._runtime.cufft import COMPLEX_TO_REAL, REAL_TO_COMPLEX, CufftPlan
from .._runtime.device import Device, address_of, aligned, device_array
from ..distributed import Group
from ._axes import Axis, AxisPart
from ._cut_lines import COUPLINGS, ConstantLine, CutLines
from ._mirrored import (
    MirroredProducts,
    has_halved_lines,
    has_rows_in_five,
    is_twice,
    mirrored_lines,
    mirrored_rows,
    mirrored_shifts,
)

Array = NDArray[Any]

_MOST_HALVINGS = 3
# PS_MIRRORED, PS_MIRRORED_ROWS and PS_MIRRORED_IN_FIVE, instead of halvings
_MIRRORED, _MIRRORED_ROWS, _MIRRORED_IN_FIVE = -1, -2, -3
# Bytes of a field of nodes from which its lines are in parts.
_LEAST_IN_PARTS = 1 << 22
# The same for more than two parts: 1025^2 nodes take 54 us in two, 66 in four (H200).
_LEAST_IN_FOUR_PARTS = 1 << 24


class _Waves(NamedTuple):
    """Waves of a plane that are transformed and solved together.

    Attributes
    ----------
    lengths : tuple of int
        Of the transform of cuFFT.
    shifts : ndarray
        The sums of the eigenvalues, in the order of ps_wave_lines.
    turns, row_turns : ndarray
        Cosines and sines of the angles by which waves are turned, along the values and the rows.
    are_reals : bool
        Whether the waves are the reals of a transform of complex numbers, and are not turned.
    """

    lengths: tuple[int, ...]
    shifts: Array
    turns: Array
    row_turns: Array
    are_reals: bool = False

    @property
    def rows(self) -> int:
        """Lines of a plane."""
        return (1, *self.lengths)[-2]

    @property
    def pitch(self) -> int:
        """Reals from one line to the next.

        There is no space between lines: with it cuFFT takes 1.1 to 1.7 times as long (H200).
        """
        return 2 * (self.lengths[-1] // 2 + 1)

    @property
    def forms(self) -> tuple[int, int]:
        """Transforms before and after the lines."""
        pair = REAL_TO_COMPLEX, COMPLEX_TO_REAL
        return pair[::-1] if self.are_reals else pair

    @property
    def length(self) -> int:
        """The length for ps_wave_lines: an odd one of as many reals, if all of them are waves."""
        length = self.lengths[-1]
        return length - 1 if self.are_reals and length % 2 == 0 else length


class _Part(NamedTuple):
    """Waves, the bytes before them, their plans, and their tables on the device."""

    waves: _Waves
    start: int
    plans: list[Any]
    tables: tuple[Array, ...]

    @property
    def work_bytes(self) -> int:
        """Bytes of the work area of the plans, which are used one after the other."""
        most = max(plan.work_bytes for plan in self.plans)
        return aligned(most)


def are_packed(axes: Sequence[Axis], dtype: np.dtype) -> bool:
    """Return whether `PackedWaves` can solve the equation on these axes.

    The device decides how many rows the lines can have: ``backend.waves_fit``.
    """
    others = axes[1:]
    return (
        dtype.kind == "f"
        and len(others) > 0
        and all(axis.has_transform for axis in axes)
        and all(
            axis.transform[1] in (0, 2) or (axis.transform[1] == 1 and len(others) == 1)
            for axis in others
        )
    )


class PackedWaves:
    """Plans and tables for one grid.

    Parameters
    ----------
    axes : sequence of (Axis or AxisPart)
        In the order of the array: x last.
    dtype : dtype
        float32 or float64.
    device : Device
        The device.
    keep : callable
        Copies an array of the host to the device.
    helmholtz : float, default: 0
        The number c, at least 0.
    ranks : (Group, str), optional
        Ranks that hold parts of the first axis, an `AxisPart` of at least two unknowns; and the
        operation, for messages.
    mirrored : bool, default: False
        Whether the other axes of a box have products of even and odd eigenvectors (`_mirrored`).
    """

    def __init__(
        self,
        axes: Sequence[Any],
        dtype: np.dtype,
        device: Device,
        keep: Callable[[Array], Array],
        helmholtz: float = 0.0,
        ranks: tuple[Group, str] | None = None,
        *,
        mirrored: bool = False,
    ) -> None:
        self._dtype = dtype
        own, *others = axes
        first = getattr(own, "whole", own)
        self._count = own.count
        self._size = others[-1].count
        names = [_name(axis, mirrored=mirrored) for axis in others]
        self._kinds = [device.backend.TRANSFORMS[name] for name in ("rfft", *names)[-2:]]
        planes = first.count // ranks[0].size if ranks else first.count
        field_bytes = planes * prod(axis.count for axis in others) * dtype.itemsize
        self._halvings = _halvings(others, field_bytes)
        lines = mirrored_lines(others[-1]) if mirrored else []
        if mirrored:
            rows, last = others
            found = []
            is_halved = has_halved_lines(last)
            in_five = is_halved and has_rows_in_five(rows)
            self._halvings = (
                _MIRRORED_IN_FIVE if in_five else _MIRRORED_ROWS if is_halved else _MIRRORED
            )
            self._scale = 1 / (2 * last.intervals) if is_halved else 1.0
            across = mirrored_rows(rows, in_five=in_five)
            for part in lines:
                shifts = mirrored_shifts(across, part)
                turns = _no_turns(len(shifts) // 2)
                # All numbers of a plane are one line, of an odd length: none has another's place.
                found.append(_Waves((len(shifts) - 1,), shifts, turns, _no_turns(1)))
        elif self._halvings:
            found = _waves_of_parts(others[0], self._halvings)
            self._scale = 1 / (2 * others[0].intervals)
        else:
            lengths = tuple(_length(axis) for axis in others)
            found = [_Waves(lengths, _shifts(others, lengths), *_turns(others, lengths))]
            self._scale = 1 / prod(lengths)
        self._parts: list[_Part] = []
        self._pitch = 0  # reals of the lines of all parts
        for k, waves in enumerate(found):
            start = self._count * self._pitch * dtype.itemsize
            plans: list[Any]
            if mirrored:
                options = {"planes": self._count, "dtype": dtype, "ordinal": device.ordinal}
                plans = [
                    MirroredProducts(across, lines[k], backward=backward, keep=keep, **options)
                    for backward in (False, True)
                ]
            else:
                plans = [
                    CufftPlan(form, waves.lengths, waves.pitch, self._count, dtype, device.ordinal)
                    for form in waves.forms
                ]
            tables = waves.shifts - helmholtz, waves.turns, waves.row_turns
            kept = tuple(keep(np.asarray(table, dtype)) for table in tables)
            self._parts.append(_Part(waves, start, plans, kept))
            self._pitch += rows.count * lines[k].pitch if mirrored else waves.rows * waves.pitch
        #: Reals from one line of all parts to the next.
        self._line = self._pitch // (others[0].count if mirrored else found[0].rows)
        #: Bytes of the waves.
        self.wave_bytes = self._count * self._pitch * dtype.itemsize
        self._is_singular = not helmholtz and all(axis.has_null_vector for axis in axes)
        self._volumes = None if ranks else keep(first.volumes)
        # See `_host`: the solution of (A + s e e^T) x = b satisfies A x = b if A is singular.
        pinned = first.rows[1][0] if self._is_singular else 0.0
        self._matrix: tuple[Any, ...]
        #: What the ranks exchange, to be connected; None with one process.
        self.cut: CutLines | None = None
        self._constant: ConstantLine | None = None
        if ranks:
            periodic = first.is_periodic
            systems = [waves.shifts.size for waves in found]
            self.cut = CutLines(*ranks, systems, dtype, device, periodic=periodic)
            self._constant = ConstantLine(ranks, own) if self._is_singular else None
            self._matrix = _rows_of_part(own, pinned, ranks[0])
        else:
            words = first.rows[0], first.sums, first.rows[2]
            rows = [tuple(float(a[i]) for a in words) for i in (0, first.count // 2, -1)]
            self._matrix = *rows, float(first.sums[0] + pinned), first.is_periodic

    def connect(self, device: Device, keep: Callable[[Array], Array]) -> None:
        """Let the ranks exchange what depends on the matrices only; collective."""
        assert self.cut is not None
        group, operation = self.cut.ranks
        with group.agreement(operation):
            waves = device.zeros((self.wave_bytes // self._dtype.itemsize,), self._dtype)
            numbers = device.memory(self.cut.nbytes)
            found = []
            for k, part in enumerate(self._parts):
                own = device.empty((COUPLINGS, part.waves.shifts.size), self._dtype)
                places = self.cut.place(numbers.address, k), address_of(own), 0, 0
                # Those of any waves.
                self._solve_lines(part, address_of(waves) + part.start, device, places)
                found.append(device.download(own))
            couplings = np.concatenate(found, axis=1)
        self.cut.connect(couplings, keep)
        if self._constant is not None:
            self._constant.connect()

    @property
    def has_branches(self) -> bool:
        """Whether parts of a solve can run at the same time."""
        return len(self._parts) > 1

    @property
    def work_bytes(self) -> int:
        """Bytes of the work areas of cuFFT; parts that run at the same time have one each."""
        return sum(part.work_bytes for part in self._parts)

    def run(
        self,
        source: Array,
        target: Array,
        waves: int,
        work: int,
        device: Device,
        numbers: int = 0,
        owner: Any = None,
        edge: tuple[int, int] = (0, 0),
    ) -> None:
        """Enqueue a solve.

        Parameters
        ----------
        source, target : ndarray
            The right side and the solution, on the device. They can have fewer values along the
            last axis: the right side is then continued, odd about a Dirichlet side after the last
            value, and even about a Neumann side.
        waves, work : int
            Addresses of `wave_bytes` and `work_bytes` bytes.
        device : Device
            Where to enqueue.
        numbers : int
            With ranks: the address of ``cut.nbytes`` bytes.
        owner : object
            What keeps this memory.
        edge : (int, int)
            Address of a number for each line, and the place of the value of the solution that is
            written there; no address: none is.
        """
        backend = device.backend
        self._move(backend.waves_load, source, waves, 1.0, (0, 0), device)
        if self.cut is not None:
            self._solve_cut(self.cut, waves, work, device, numbers, owner)
        else:
            with device.branches(len(self._parts)) as branches:
                for part, own in zip(self._parts, branches, strict=True):
                    self._solve_part(part, waves, work, own)
                    work += part.work_bytes
        self._move(backend.waves_store, target, waves, self._scale, edge, device)

    def _solve_part(self, part: _Part, waves: int, work: int, device: Device) -> None:
        """Enqueue the transforms and the tridiagonal solves of a part.

        Part after part, those that fit into the cache of the device stay there.
        """
        start, (forward, backward) = waves + part.start, part.plans
        forward.execute(start, work, device.stream)
        has_constant = self._is_singular and part is self._parts[0]
        if has_constant:
            self._centre(start, device)
        self._solve_lines(part, start, device)
        if has_constant:
            self._centre(start, device)
        backward.execute(start, work, device.stream)

    def _solve_cut(
        self, cut: CutLines, waves: int, work: int, device: Device, numbers: int, owner: Any
    ) -> None:
        """Enqueue the transforms, and the tridiagonal solves of lines that are cut; collective."""
        for k, part in enumerate(self._parts):
            start = waves + part.start
            part.plans[0].execute(start, work, device.stream)
            self._solve_lines(part, start, device, (cut.place(numbers, k), 0, 0, 0))
        line = self._constant_line(waves)
        right = None if self._constant is None else device.download(line)
        between = cut.between(device, numbers, owner)
        for part, places in zip(self._parts, between, strict=True):
            self._solve_lines(part, waves + part.start, device, (0, 0, *places))
        if self._constant is not None and right is not None:
            device.write(line, self._constant.solve(right))
        for part in self._parts:
            part.plans[1].execute(waves + part.start, work, device.stream)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let no other thread use the plans of cuFFT: one of them has one stream at a time."""
        with ExitStack() as locks:
            for part in self._parts:
                for plan in part.plans:
                    locks.enter_context(plan.lock)
            yield

    def _solve_lines(
        self,
        part: _Part,
        waves: int,
        device: Device,
        ends: tuple[int, int, int, int] = (0, 0, 0, 0),
    ) -> None:
        """Enqueue the tridiagonal solves of the waves of a part, or a step of cut ones."""
        device.enqueue(
            device.backend.wave_lines,
            self._dtype == np.float32,
            self._count,
            part.waves.rows,
            part.waves.length,
            part.waves.pitch,
            waves,
            tuple(address_of(table) for table in part.tables),
            *self._matrix,
            ends,
        )

    def _move(
        self,
        function: Any,
        field: Array,
        waves: int,
        scale: float,
        edge: tuple[int, int],
        device: Device,
    ) -> None:
        """Enqueue a kernel that moves a field into the memory of the transforms, or out of it."""
        columns = field if field.ndim == 3 else field[:, None]
        rest = self._size, self._line, waves, self.wave_bytes, scale, edge
        device.enqueue(function, *self._kinds, self._halvings, columns, *rest)

    def _constant_line(self, waves: int) -> Array:
        """View the line of the constant wave."""
        first = self._parts[0].waves
        plane = first.rows * first.pitch * self._dtype.itemsize
        return device_array(waves, (self._count,), (plane,), self._dtype, self)

    def _centre(self, waves: int, device: Device) -> None:
        """Make the mean of the constant wave zero."""
        assert self._volumes is not None
        size, own = self._dtype.itemsize, self._constant_line(waves)
        shape, strides = (1, 1, self._count), (size, size, *own.strides)
        line = device_array(waves, shape, strides, self._dtype, self)
        device.enqueue(device.backend.centre, line, address_of(self._volumes))


def _rows_of_part(part: AxisPart, pinned: float, group: Group) -> tuple[Any, ...]:
    """Return the matrix of the part of an axis, as ``backend.wave_lines`` takes it.

    `pinned` is what the first row of all has in addition for the constant wave.
    """
    whole, (lower, _, upper) = part.whole, part.rows
    is_first, is_last = group.rank == 0, group.rank == group.size - 1
    is_open = not whole.is_periodic
    first = 0.0 if is_open and is_first else float(lower[0]), float(part.sums[0]), float(upper[0])
    last = float(lower[-1]), float(part.sums[-1]), 0.0 if is_open and is_last else float(upper[-1])
    middle = whole.count // 2
    words = whole.rows[0], whole.sums, whole.rows[2]
    inner = tuple(float(a[middle]) for a in words)
    return first, inner, last, first[1] + (pinned if is_first else 0.0), False


def _name(axis: Axis, *, mirrored: bool) -> str:
    """Return the name of the order of the values of an axis."""
    if axis.is_periodic or (mirrored and not is_twice(axis)):
        return "rfft"
    return "{}{}".format(*axis.transform)


def _no_turns(count: int) -> Array:
    """Return factors 1, as pairs of a real and an imaginary part."""
    return np.repeat([[1.0, 0.0]], count, axis=0)


def _halvings(others: Sequence[Axis], field_bytes: int) -> int:
    """Return how often the intervals of an axis of nodes are halved."""
    if len(others) > 1 or others[0].transform[1] != 1 or field_bytes < _LEAST_IN_PARTS:
        return 0
    most = _MOST_HALVINGS if field_bytes >= _LEAST_IN_FOUR_PARTS else 1
    count, rest = 0, others[0].intervals
    while count < most and rest % 2 == 0 and rest > 2:
        count, rest = count + 1, rest // 2
    return count


def _length(axis: Axis) -> int:
    """Return the length of the transform of cuFFT."""
    return 2 * axis.intervals if axis.transform[1] == 1 else axis.count


def _turns(others: Sequence[Axis], lengths: tuple[int, ...]) -> tuple[Array, Array]:
    """Return cosine and sine of the angles by which waves are turned, along values and rows."""
    rows = _turns_of(others[0], lengths[0]) if len(others) > 1 else _no_turns(1)
    return _turns_of(others[-1], lengths[-1] // 2 + 1), rows


def _turns_of(axis: Axis, count: int) -> Array:
    """Return cosine and sine of the angles along one axis."""
    if axis.transform[1] != 2:
        return _no_turns(count)
    angles = np.pi / 2 * np.arange(count) / axis.count
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def _waves_of_parts(axis: Axis, halvings: int) -> list[_Waves]:
    """Return the waves of an axis of nodes whose intervals are halved, as struct ps_waves does."""
    last = axis.intervals >> halvings
    shifts = _shifts([axis], (2 * last,))
    found = [_Waves((2 * last,), shifts, _no_turns(last + 1), _no_turns(1))]
    for level in range(1, halvings + 1):
        size = axis.intervals >> level
        shifts = axis.odd_eigenvalues(size)
        # Lines are pairs of reals: the last one of an odd length has another wave's matrix.
        shifts = np.append(shifts, shifts[-1:] if size % 2 else [])
        turns = _no_turns(len(shifts) // 2)
        found.append(_Waves((size,), shifts, turns, _no_turns(1), are_reals=True))
    return found


def _eigenvalues(axis: Axis, length: int) -> Array:
    """Return the eigenvalues of the waves of cuFFT and of their mirror images.

    With `length` that of the transform they are entries k and length - k.
    """
    function, kind = axis.transform
    waves = np.arange(length + 1) * (1 if kind == 2 else 2)
    if function == "dst" and kind == 2:  # cosines of values of alternating sign, in reverse order
        waves = waves[::-1]
    found = axis.eigenvalues_at(waves / length)
    if function == "dst" and kind == 1:
        found[0] = found.min()  # wave 0 is zero: its system needs a matrix that is not singular
    return found


def _shifts(others: Sequence[Axis], lengths: Sequence[int]) -> Array:
    """Return the sums of the eigenvalues in the places of ps_wave_lines, a row after the other.

    The last wave of one row of an even length has the place of Im V[0].
    """
    length = lengths[-1]
    half = np.arange(length // 2 + 1)
    along = _eigenvalues(others[-1], length)
    # The imaginary part of wave 0 is zero as well.
    mirrored = np.where(half > 0, along[length - half], along.min())
    across = _eigenvalues(others[0], lengths[0]) if len(others) > 1 else np.zeros(2)
    row = np.arange(len(across) - 1)
    mirror = -row % len(row)
    is_first, is_second = (row < mirror)[:, None], (row > mirror)[:, None]
    real = across[row][:, None] + np.where(is_second, mirrored, along[half])
    imaginary = across[mirror][:, None] + np.where(is_first, along[half], mirrored)
    if len(row) == 1 and length % 2 == 0:
        imaginary[0, 0] = real[0, -1]
        real, imaginary = real[:, :-1], imaginary[:, :-1]
    return np.stack([real, imaginary], axis=-1)
