r"""Operators along the axes of a box as tridiagonal rows, and what a scheme does with them.

The equation u_t = F_0(t, u) + sum_j F_j(t, u), F_j = A_j(t) u + g_j(t), has one part along each
axis j, with a tridiagonal matrix A_j, and a part F_0 that steps treat explicitly. Nodes with given
values have rows of 0 along each axis.

Rows are kept as those of -A_j, so that ``residual`` adds A_j u to a field in one pass: it moves 3
words per unknown, and 6 where the rows differ from line to line. Rows, factors and sides of
coefficients that do not depend on time are made once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._errors import BackendError, SingularSystemError, raise_for_status
from .._runtime.backends import parse_device, require, require_device
from .._runtime.device import device_array
from .._solver.schema import RunBy
from .._steps import residual
from ..factor import TridiagonalFactor, factor_tridiagonal
from ..tridiagonal import solve_tridiagonal
from .grid import Grid, Index
from .sides import Side

Field = Any  # an array of the library of the device
At = tuple[Index, Field]


class Corner(NamedTuple):
    """An entry of minus a matrix beyond its diagonals, in the row of an end and its third column.

    Parameters
    ----------
    places : tuple of index
        Of the end and its two neighbours, in a field.
    entry : array
        The entry.
    factor : array
        The multiple of the next row whose difference from the row of the end has three entries;
        for the matrix 1 - h A it does not depend on h.
    """

    places: tuple[Index, Index, Index]
    entry: Field
    factor: Field


class Rows(NamedTuple):
    """Rows of minus a matrix: arrays that broadcast to the lines through the free nodes."""

    lower: Field
    diag: Field
    upper: Field
    corners: tuple[Corner, ...] = ()

    @property
    def without_corners(self) -> Rows:
        """The rows without entries beyond the diagonals."""
        return self._replace(corners=())

    @property
    def diagonals(self) -> tuple[Field, Field, Field]:
        """The three diagonals."""
        return self[:3]


@dataclass(frozen=True)
class Level:
    """All that the equation prescribes at a time.

    Parameters
    ----------
    time : float
        The time.
    rows : tuple of Rows
        Those along each axis.
    inflows : tuple of list
        Along each axis the index of nodes, and what sides add to F_j there.
    source : array or None
        The source at the free nodes, which is a part of F along the first axis.
    values : list
        Index and values of the nodes with given values.
    explicit : object
        What a subclass needs for F_0.
    kernel : tuple or None
        The rows and the coefficients of F_0 as the kernel of F takes them.
    """

    time: float
    rows: tuple[Rows, ...]
    inflows: tuple[list[At], ...]
    source: Field
    values: list[At]
    explicit: Any
    kernel: Any = None


class Weights(NamedTuple):
    """Factors of a linear combination: of sum_j F_j, F_0, the old values, d and u."""

    lines: float = 0.0
    explicit: float = 0.0
    own: float = 0.0
    change: float = 0.0
    base: float = 0.0


_SUM = Weights(change=1.0, base=1.0)


class LineOperators(ABC):
    """The parts of an equation.

    Parameters
    ----------
    grid : Grid
        The nodes.
    sides : sequence of Side
        Those that prescribe a value or a flux.
    source : object or None
        The source: its values ``at(time)``, and whether it ``varies``, as those of `NodeData`.
    dtype : dtype
        Of the fields.
    device, threads
        As in `solve_tridiagonal`.
    """

    #: Whether there is a part F_0 of the unknowns.
    has_explicit = False
    #: Whether F_0 is a sum of mixed derivatives, which the kernel has.
    _explicit_is_mixed = False

    def __init__(
        self,
        grid: Grid,
        sides: list[Side],
        source: Any,
        dtype: Any,
        device: str | None,
        threads: int | None,
    ) -> None:
        self.grid, self.dtype = grid, np.dtype(dtype)
        self._library = library_of(device, type(self).__name__).__name__
        self._device, self._ordinal = parse_device(device)
        self._values = [side for side in sides if side.kind == "value"]
        self._fluxes = [side for side in sides if side.kind == "flux"]
        self._source = source
        self._threads = threads
        self._spare: list[Field] = []
        self._everywhere: Any = None  # the box of all nodes, as the kernel takes it
        # By axis, and whether they are those of all lines.
        self._factors: dict[tuple[int, bool], tuple[float, TridiagonalFactor]] = {}
        self.seconds = dict.fromkeys(("coefficients", "products", "lines"), 0.0)
        self.run_by = RunBy()

    @property
    def axes(self) -> int:
        """Number of axes of space."""
        return self.grid.axes

    @property
    def adds_with_rate(self) -> bool:
        """Whether a sum and F of it are faster in one pass: on a device.

        On a CPU the sum of a node is formed for each of its rows: a step of Douglas' scheme takes
        1.03 to 1.13 of the time of two passes (4096 x 4096, AVX2).
        """
        return self._device != "cpu"

    def zeros(self) -> Field:
        """Return a field of zeros."""
        return self.xp.zeros(self.grid.nodes, self.dtype)

    @property
    def xp(self) -> Any:
        """The library of the arrays."""
        return import_module(self._library)

    @abstractmethod
    def _make_rows(
        self, axis: int, time: float
    ) -> tuple[Sequence[Any], Sequence[tuple[int, Any, Any]]]:
        """Return the three diagonals of A at a time, which broadcast to a field, and the corners.

        A corner is the number of the end, 0 or 1, the entry and the factor.
        """

    @abstractmethod
    def _rows_vary(self, axis: int) -> bool:
        """Return whether A changes with time."""

    @abstractmethod
    def _inflow(self, side: Side, time: float) -> Any:
        """Return what a flux adds to the rates at the nodes of its side; None for nothing."""

    @abstractmethod
    def _inflow_varies(self, side: Side) -> bool:
        """Return whether this changes with time."""

    def _make_explicit(self, time: float, before: Any) -> Any:
        """Return what `add_explicit` needs at a time; `before` is that of an earlier time."""
        del time, before
        return None

    def add_explicit(self, level: Level, u: Field, out: Field) -> None:
        """Add F_0 to a field."""
        del level, u, out

    def level(self, time: float, before: Level | None = None) -> Level:
        """Return all that depends on time; parts that do not are those of an earlier level."""
        start, axes = perf_counter(), range(self.grid.axes)
        rows = tuple(
            before.rows[axis] if before and not self._rows_vary(axis) else self._rows(axis, time)
            for axis in axes
        )
        inflows = tuple(
            before.inflows[axis]
            if before and not any(self._inflow_varies(side) for side in self._fluxes_of(axis))
            else self._inflows(axis, time)
            for axis in axes
        )
        has_source = before is None or (self._source is not None and self._source.varies)
        source = before.source if before and not has_source else self._source_at(time)
        if before and not any(side.varies for side in self._values):
            values = before.values
        else:
            values = [self._on_side(side, side.at(time), whole=True) for side in self._values]
        explicit = self._make_explicit(time, before.explicit if before else None)
        kernel = self._kernel_level(rows, explicit, before)
        self.seconds["coefficients"] += perf_counter() - start
        return Level(time, rows, inflows, source, values, explicit, kernel)

    def _kernel_level(self, rows: tuple[Rows, ...], explicit: Any, before: Level | None) -> Any:
        """Return the rows and coefficients of the kernel, or those of an earlier level."""
        if (
            before is not None
            and explicit is before.explicit
            and all(a is b for a, b in zip(rows, before.rows, strict=True))
        ):
            return before.kernel
        grid, missing = self.grid, 3 - self.grid.axes
        own = [grid.free[axis] for axis in reversed(range(grid.axes))]
        begin = (0,) * missing + tuple(each.start for each in own)
        count = (1,) * missing + grid.shape_free
        diagonals = tuple(
            self._for_kernel(self._at_free(values, axis))
            for axis, each in enumerate(rows)
            for values in each.diagonals
        )
        slopes, mixed = self._mixed_for_kernel(explicit)
        periodic = (*grid.periodic, *(False,) * missing)
        return periodic, begin, count, grid.axes, diagonals, slopes, mixed

    def _mixed_for_kernel(self, explicit: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the weights of first derivatives and the coefficients of pairs of axes."""
        del explicit
        return (), (None, None, None)

    def _at_free(self, values: Field, axis: int) -> Field:
        """Return values of the lines along an axis at the free nodes."""
        if values.shape[-1 - axis] == 1:
            return values
        return values[(..., self.grid.free[axis], *(slice(None) for _ in range(axis)))]

    def _for_kernel(self, values: Field) -> Field:
        """Return an array that broadcasts to the free nodes with the axes (batch, z, y, x)."""
        space = (1,) * (3 - self.grid.axes) + values.shape[values.ndim - self.grid.axes :]
        batch = values.shape[: values.ndim - self.grid.axes]
        if any(size > 1 for size in batch) and batch != self.grid.batch:
            values = self.xp.broadcast_to(values, self.grid.batch + values.shape[len(batch) :])
        found = values.reshape(-1, *space)
        if found.strides[-1] != found.itemsize:  # a last axis that is not contiguous is copied
            found = self.xp.ascontiguousarray(found)
        return self._as_operand(found)

    def _as_operand(self, field: Field) -> NDArray[Any]:
        """Return an array as a backend takes it: in its memory."""
        if self._device == "cpu":
            found: NDArray[Any] = field
            return found
        return device_array(field.data.ptr, field.shape, field.strides, field.dtype, field)

    @property
    def _place(self) -> tuple[int, ...]:
        """What a call of a backend takes last: the device and the current stream."""
        return () if self._device == "cpu" else (self._ordinal, self._stream())

    def _stream(self) -> int:
        """Return the address of the current stream of the library."""
        found: int = self.xp.cuda.get_current_stream().ptr
        return found

    def _rows(self, axis: int, time: float) -> Rows:
        """Return the diagonals of -A on the lines through free nodes, and the corners."""
        through, grid = self.grid.through[axis], self.grid
        diagonals, given = self._make_rows(axis, time)
        corners = []
        for end, entry, factor in given:
            first = -end % grid.lines[axis].size
            step = -1 if end else 1
            places = [
                grid.index({axis: slice(first + k * step, first + k * step + 1)}) for k in range(3)
            ]
            own = grid.index({axis: slice(None)})
            values = (self.array(grid.part(each, own)) for each in (-entry, factor))
            corners.append(Corner((places[0], places[1], places[2]), *values))
        lower, diag, upper = (self.array(-grid.part(each, through)) for each in diagonals)
        return Rows(lower, diag, upper, tuple(corners))

    def _fluxes_of(self, axis: int) -> list[Side]:
        """Return the sides across an axis whose flux is given."""
        return [side for side in self._fluxes if side.axis == axis]

    def _inflows(self, axis: int, time: float) -> list[At]:
        """Return what the fluxes across an axis add, and at which nodes."""
        found = []
        for side in self._fluxes_of(axis):
            values = self._inflow(side, time)
            if values is not None:
                found.append(self._on_side(side, values))
        return found

    def _source_at(self, time: float) -> Field:
        """Return the source at the free nodes; None without one."""
        if self._source is None:
            return None
        return self.array(self.grid.part(self._source.at(time), self.grid.inner))

    def _on_side(self, side: Side, values: Any, *, whole: bool = False) -> At:
        """Return the index of the nodes of a side, and values there."""
        index = self.grid.side(side.axis, side.end, whole=whole)
        return index, self.array(self.grid.part(values, index))

    def array(self, values: Any) -> Field:
        """Return an array where the fields are, with their dtype."""
        return self.xp.asarray(np.ascontiguousarray(values), self.dtype)

    def to_host(self, field: Field) -> NDArray[Any]:
        """Return a field as an array of the host: the field itself if it is one."""
        found: NDArray[Any] = field if self.xp is np else self.xp.asnumpy(field)
        return found

    def place(self, level: Level, u: Field) -> None:
        """Set the nodes with given values; those of two sides have that of the later axis."""
        for index, values in level.values:
            u[index] = values

    def keeps_values(self, old: Level, new: Level) -> bool:
        """Return whether no given value changes between two times."""
        return new.values is old.values

    def add(self, u: Field, d: Field, out: Field, own: float = 0.0) -> None:
        """Set a field to u + d + own times its values at all nodes, in one pass."""
        start, grid = perf_counter(), self.grid
        if self._everywhere is None:
            one = self._for_kernel(self.array(np.zeros((1,) * grid.ndim)))
            box = (0, 0, 0), (1,) * (3 - grid.axes) + grid.shape
            rows = (one,) * (3 * grid.axes)
            self._everywhere = (False,) * 3, *box, grid.axes, rows, (), (None,) * 3
        weights = Weights(own=own, change=1.0, base=1.0)
        self._call_kernel(self._everywhere, None, None, u, d, [(out, weights)])
        self.seconds["products"] += perf_counter() - start

    def combine(
        self, level: Level, u: Field, d: Field | None, outs: Sequence[tuple[Field, Weights]]
    ) -> None:
        """Set fields at the free nodes to linear combinations with F of y = u + d.

        Other nodes keep their values. One or two fields, which are neither u nor d.
        """
        start = perf_counter()
        lines = [each for each in outs if each[1].lines]
        parts = [each for each in outs if self.has_explicit and each[1].explicit]
        self._make_combinations(level, u, d, outs, parts=bool(parts))
        if lines:
            self._add_ends(level, u, d, lines)
        if parts and self._explicit_is_mixed:
            self._add_explicit_sides(level, u, d, parts)
        self.seconds["products"] += perf_counter() - start

    def _make_combinations(
        self,
        level: Level,
        u: Field,
        d: Field | None,
        outs: Sequence[tuple[Field, Weights]],
        *,
        parts: bool,
    ) -> None:
        """Make the combinations in one pass."""
        extra = None
        if parts and not self._explicit_is_mixed:
            y, found = self._spare_fields(2)
            if d is not None:
                self._make_combinations(level, u, d, [(y, _SUM)], parts=False)
                self.place(level, y)
            found[self.grid.inner] = 0
            self.add_explicit(level, u if d is None else y, found)
            extra = self._for_kernel(found[self.grid.inner])
        source = None if level.source is None else self._for_kernel(level.source)
        self._call_kernel(level.kernel, source, extra, u, d, outs)

    def _call_kernel(
        self,
        level: Any,
        source: Any,
        extra: Any,
        u: Field,
        d: Field | None,
        outs: Sequence[tuple[Field, Weights]],
    ) -> None:
        """Call the kernel for one or two fields."""
        shape = (-1, *(1,) * (3 - self.grid.axes), *self.grid.shape)
        (first, weights), (second, more) = outs if len(outs) == 2 else (*outs, (None, Weights()))
        fields = (
            None if each is None else self._as_operand(each.reshape(shape))
            for each in (u, d, first, second)
        )
        backend = require(self._device)
        status = backend.rates(
            level, source, extra, *fields, weights, more, self._threads or 0, *self._place
        )
        raise_for_status(status, backend.STATUS, type(self).__name__)

    def _add_ends(
        self, level: Level, u: Field, d: Field | None, outs: Sequence[tuple[Field, Weights]]
    ) -> None:
        """Add what corners and fluxes add to F_j."""
        for rows, inflows in zip(level.rows, level.inflows, strict=True):
            for places, entry, _ in rows.corners:
                at = places[2]
                change = entry * (u[at] if d is None else u[at] + d[at])
                for out, weights in outs:
                    out[places[0]] -= weights.lines * change
            for index, values in inflows:
                for out, weights in outs:
                    out[index] += weights.lines * values

    def _add_explicit_sides(
        self, level: Level, u: Field, d: Field | None, outs: Sequence[tuple[Field, Weights]]
    ) -> None:
        """Add the terms of F_0 at the sides that the kernel leaves out."""
        del level, u, d, outs

    def _spare_fields(self, count: int) -> list[Field]:
        """Return fields for a combination."""
        while len(self._spare) < count:
            self._spare.append(self.xp.zeros(self.grid.nodes, self.dtype))
        return self._spare[:count]

    def add_change(self, old: Level, new: Level, axis: int, h: float, u: Field, out: Field) -> None:
        """Add h times the difference of F along an axis, of the same u at two times."""
        after, before = new.rows[axis], old.rows[axis]
        if after is not before:
            start = perf_counter()
            pairs = zip(after.diagonals, before.diagonals, strict=True)
            corners = tuple(
                one._replace(entry=h * (one.entry - other.entry))
                for one, other in zip(after.corners, before.corners, strict=True)
            )
            lower, diag, upper = (h * (one - other) for one, other in pairs)
            change = Rows(lower, diag, upper, corners)
            self._subtract(change, axis, u, out)
            self.seconds["products"] += perf_counter() - start
        if new.inflows[axis] is not old.inflows[axis]:
            for level, factor in ((new, h), (old, -h)):
                for index, values in level.inflows[axis]:
                    out[index] += factor * values
        if axis == 0 and new.source is not old.source:
            for level, factor in ((new, h), (old, -h)):
                out[self.grid.inner] += factor * level.source

    def _subtract(self, rows: Rows, axis: int, u: Field, out: Field) -> None:
        """Subtract the product of rows and a field from another one."""
        at = self.grid.through[axis]
        part = out[at]
        residual(
            *rows.diagonals,
            u[at],
            part,
            axis=-1 - axis,
            periodic=self.grid.periodic[axis],
            out=part,
            threads=self._threads,
        )
        for places, entry, _ in rows.corners:
            out[places[0]] -= entry * u[places[2]]

    def _matrix(self, rows: Rows, axis: int, h: float) -> tuple[Field, Field, Field]:
        """Return the diagonals of 1 - h A, whose corners are eliminated."""
        lower, diag, upper = h * rows.lower, 1 + h * rows.diag, h * rows.upper
        if not rows.corners:
            return lower, diag, upper
        xp = self.xp
        shape = np.broadcast_shapes(lower.shape, diag.shape, upper.shape)
        lower, diag, upper = (xp.array(xp.broadcast_to(a, shape)) for a in (lower, diag, upper))
        for places, _, factor in rows.corners:
            one, two = (place[-1 - axis] for place in places[:2])
            inner, outer = (lower, upper) if one.start else (upper, lower)
            ends, nexts = ((..., at, *(slice(None) for _ in range(axis))) for at in (one, two))
            diag[ends] -= factor * outer[nexts]
            inner[ends] -= factor * diag[nexts]
        return lower, diag, upper

    def _solves_all_lines(self, rows: Rows, axis: int, *, is_clear: bool) -> bool:
        """Return whether lines of nodes with given values are solved, too.

        The field is then one array without gaps, whose rows are aligned. The values stay: the rows
        there are those of the identity, or the values are 0.
        """
        grid = self.grid
        cut = [
            other
            for other, free in enumerate(grid.free)
            if other != axis and free.stop - free.start < grid.lines[other].size
        ]
        if not cut or (cut == [grid.axes - 1] and not grid.batch):
            return False  # the lines through free nodes have no gaps
        shape = np.broadcast_shapes(*(each.shape for each in rows.diagonals))
        is_shared = [shape[-1 - other] == 1 for other in cut]
        if self._rows_vary(axis) and not all(is_shared):
            return False
        return is_clear or not any(is_shared)

    def _of_all_lines(self, matrix: tuple[Field, ...], axis: int) -> tuple[Field, ...]:
        """Return a matrix of the lines through free nodes with rows of the identity elsewhere."""
        grid, xp = self.grid, self.xp
        shape = list(np.broadcast_shapes(*(each.shape for each in matrix)))
        at: list[Any] = [slice(None)] * grid.axes
        for other, free in enumerate(grid.free):
            if other != axis and shape[-1 - other] > 1:
                at[-1 - other], shape[-1 - other] = free, grid.lines[other].size
        if all(each == slice(None) for each in at):
            return matrix
        found = tuple(xp.full(shape, value, self.dtype) for value in (0, 1, 0))
        for whole, each in zip(found, matrix, strict=True):
            whole[(..., *at)] = each
        return found

    def solve(
        self, level: Level, axis: int, h: float, field: Field, *, is_clear: bool = False
    ) -> None:
        """Replace a field by the solution x of (1 - h A) x = field along an axis.

        With `is_clear` the field is 0 at the nodes with given values.
        """
        start, rows = perf_counter(), level.rows[axis]
        of_all = self._solves_all_lines(rows, axis, is_clear=is_clear)
        options: dict[str, Any] = {
            "axis": -1 - axis,
            "periodic": self.grid.periodic[axis],
            "on_singular": "nan",  # the solver finds it
            "threads": self._threads,
        }
        part = field if of_all else field[self.grid.through[axis]]
        for places, _, multiple in rows.corners:
            field[places[0]] -= multiple * field[places[1]]
        if self._rows_vary(axis):
            matrix = self._matrix(rows, axis, h)
            _, info = solve_tridiagonal(*matrix, part, out=part, return_info=True, **options)
        else:
            kept = self._factors.get((axis, of_all))
            if kept is None or kept[0] != h:
                for each in (False, True):
                    self._factors.pop((axis, each), None)
                matrix = self._matrix(rows, axis, h)
                if of_all:
                    matrix = self._of_all_lines(matrix, axis)
                kept = self._factors[axis, of_all] = h, self._factored(matrix, options)
            kept[1].solve(part, out=part, threads=self._threads)
            info = kept[1].info
        self.run_by = RunBy(info.kernel, info.threads)
        self.seconds["lines"] += perf_counter() - start

    def _factored(self, matrix: tuple[Field, ...], options: Mapping[str, Any]) -> Any:
        """Return factors of matrices.

        On a device a solve with factors of which it is not known that none is singular writes NaN
        in a kernel of its own, and one with factors that may exchange rows looks for those that do.
        """
        if self._device != "cpu":
            xp, (lower, diag, upper) = self.xp, matrix
            is_dominant = xp.isfinite(diag) & (abs(lower) + abs(upper) < abs(diag))
            if bool(is_dominant.all()):
                options = {**options, "on_singular": "ignore", "pivot": False}
                return factor_tridiagonal(*matrix, **options)
            try:
                return factor_tridiagonal(*matrix, **{**options, "on_singular": "raise"})
            except SingularSystemError:
                pass
        return factor_tridiagonal(*matrix, **options)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy, which makes factors of its own."""
        return {**self.__dict__, "_factors": {}, "_spare": [], "_everywhere": None}


def library_of(device: str | None, what: str) -> Any:
    """Return the library of arrays of a device: NumPy, or CuPy.

    Raises
    ------
    BackendError
        If the device is not available, or CuPy is not installed.
    """
    name, ordinal = parse_device(device)
    if name == "cpu":
        return np
    require_device(ordinal)
    try:
        import cupy
    except ImportError as error:
        raise BackendError(f"{what}: device={device!r} needs CuPy: {error}") from None
    cupy.cuda.Device(ordinal).use()
    return cupy
