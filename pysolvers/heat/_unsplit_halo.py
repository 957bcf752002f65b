r"""Implicit steps that are not split along the axes, for a rank with a halo on a device.

Each rank solves the equations of a stage at its nodes and at a halo of its neighbours' nodes, and
the halo of the field of the stage is exchanged. At the outer nodes of the halo the difference D of
a stage is taken to be 0. That changes D at other nodes the less, the farther they are. With the
conductances c <= r = t k/h^2 along the cut axis, in rows whose sums are at least 1, let e^{x d} be
the weight of a node in the distance d from the first row behind the outer nodes, s = 2 r (cosh x -
1) < 1, and w the weighted change. The operator is at least 1 - s in this weight (Combes and
Thomas), and c w^2 more in the first row, whose right-hand side is changed by c D of the outer
nodes:

    (1 - s) |w|^2 + c w_1^2 <= c D w_1 <= c (w_1^2 + D^2/4).

At the nodes of the rank, behind a halo of depth d, the norm of the change is at most

    (r/(1 - s))^(1/2) e^{-x (d - 1)}/2

of that of D. The depth is the smallest d for which this is a tenth of the tolerance of the
iteration, for the best x: about 25 sqrt(r) in float64. Sources and inflows change nothing: the
equations at all nodes but the outer ones are those of the whole field. The changes that a solve
begins from are those of this rank, with their decay to 0 at the outer nodes.

Operations and words per node and step: those of one device, times 1 + 2 d/m for m nodes of the rank
along the cut axis, 1 + d/m with one neighbour; an exchange of the halo in each stage.

Source: J. M. Combes and L. Thomas, Asymptotic behaviour of eigenfunctions for multiparticle
Schroedinger operators, Commun. Math. Phys. 34 (1973) 251-270 (the weighted norm).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import isfinite, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._runtime.fields import DeviceFields, Index
from ..distributed import Group
from ..distributed._halo import faces_of, halo_of
from ._levels import BASIS, Levels
from ._settings import HeatSettings
from ._sides import Grid, Side
from ._split import Extended
from ._unsplit import RTOL
from ._unsplit_device import DeviceUnsplit

Array = NDArray[Any]

_OPERATION = "HeatADI"
#: The field whose halo is exchanged.
SENT = "sent"
_SHARE = 0.1  # of the tolerance, that the ends of a halo may change
_FEW = 1 << 12  # numbers that are added on the host


def depth_for(ratio: float, dtype: str) -> int:
    """Return how deep a halo is; `ratio` is the largest t k/h^2 along the cut axis."""
    s = np.linspace(0.01, 0.99, 99)
    x = np.arccosh(1 + s / (2 * ratio))
    wanted = np.log(0.5 * np.sqrt(ratio / (1 - s)) / (_SHARE * RTOL[dtype]))
    return 1 + int(np.ceil(np.maximum(wanted / x, 0).min()))


class HaloLevels(Levels):
    """The operator of a step at the nodes of a rank and of its halo.

    Parameters
    ----------
    whole : Whole
        The field.
    own : tuple of slice
        The nodes of the rank.
    across : int
        The cut axis, counted from x on.
    arguments, options
        As of `Levels`.
    """

    def __init__(
        self, whole: Whole, own: Index, across: int, *arguments: Any, **options: Any
    ) -> None:
        self._own, self._across = own, across
        #: The norm of the field of a stage over all ranks; 0 if it is not known.
        self.norm = 0.0
        super().__init__(*arguments, **options)
        self.is_closed, self.volume = whole.is_closed, whole.volume

    def solve(
        self,
        rhs: Array,
        x: Array,
        scale: Array | None,
        basis: Sequence[Array],
        limits: tuple[float, float, int],
    ) -> dict[str, Any]:
        """Solve with the norm of the whole field for that of `scale`.

        Where the field of a rank is small, its own norm is no measure of rounding errors.
        """
        if scale is not None and self.norm > 0:
            rtol, ratio, most = limits
            scale, limits = None, (rtol, ratio * self.norm, most)
        return super().solve(rhs, x, scale, basis, limits)

    def total(self, values: Array) -> float:
        """Return the sum over the nodes of the rank."""
        return super().total(values[self._own])

    def total_of(self, side: Side, values: Array) -> float:
        if side.axis == self._across:
            return super().total_of(side, values)
        at = (slice(None),) * side.place_of(self._across)
        return super().total_of(side, values[(*at, self._own[-1])])


class Whole:
    """What a rank knows of the whole field: its volume, and whether it is closed.

    Parameters
    ----------
    grid : Grid
        The nodes.
    sides : mapping
        All sides by name.
    """

    def __init__(self, grid: Grid, sides: Mapping[str, Side]) -> None:
        every = [side for side in sides.values() if side.kind in ("value", "flux")]
        #: Whether nothing but sources and inflows changes the heat.
        self.is_closed = all(side.kind == "flux" and not side.coefficient for side in every)
        halves = [sum(s.axis == axis and s.kind == "flux" for s in every) for axis in range(3)]
        counts = [n - 0.5 * half for n, half in zip(grid.nodes, halves, strict=False)]
        #: The sum of W over the nodes.
        self.volume = float(np.prod(counts))


class HaloUnsplit(DeviceUnsplit):
    """Steps of the equation that is not split, for a rank with a halo; all calls are collective.

    Parameters
    ----------
    settings : HeatSettings
        Dtype, backend and threads.
    nodes : Extended
        The nodes of the rank and of its halo, sides and source there.
    store : DeviceFields
        Where T lies, and `SENT`, a field of the same shape.
    group : Group
        The ranks.
    axis : int
        The axis of the field that is cut.
    whole : Whole
        The field.
    """

    def __init__(
        self,
        settings: HeatSettings,
        nodes: Extended,
        store: DeviceFields,
        group: Group,
        axis: int,
        whole: Whole,
    ) -> None:
        parts, grid, sides, source = nodes
        super().__init__(settings, grid, sides, source, store)
        self._group, self._store = group, store
        shape, (first, last) = grid.nodes[::-1], parts.halo
        at = (slice(None),) * axis
        #: The nodes of the rank.
        self.own: Index = (*at, slice(first, shape[axis] - last))
        across = grid.axes - 1 - axis
        self._make = partial(HaloLevels, whole, self.own, across, store=store)
        # All nodes but the outer ones.
        self._solved: Index = (*at, slice(int(first > 0), shape[axis] - int(last > 0)))
        self._faces = faces_of(group, axis, shape[axis], parts.halo)
        with group.agreement(_OPERATION):  # a rank can have too little memory
            self._buffer("sum", shape)
            self._buffer("squares", shape)
            of_rank = shape[axis] - first - last
            self._buffer("products", (*shape[:axis], of_rank, *shape[axis + 1 :]))
            for k in range(BASIS + 2):
                self._buffer(("change", k), shape)
        self._halo = halo_of(group, _OPERATION, store, self._faces, SENT)
        self._mean = 0.0

    @property
    def link(self) -> str:
        """How the halo travels."""
        return self._halo.link

    def _made(self, share: float, *, is_steady: bool = False) -> Levels:
        with self._group.agreement(_OPERATION):
            return super()._made(share, is_steady=is_steady)

    def _solve(
        self,
        levels: Levels,
        base: Array,
        change: Array,
        time: float,
        basis: Sequence[Array],
        rtol: float | None = None,
        most: int | None = None,
    ) -> None:
        group = self._group
        assert isinstance(levels, HaloLevels)
        self._evaluated = None  # whose sum is that of all ranks
        with group.agreement(_OPERATION) as agreed:
            agreed.own = self._evaluate(levels, time), self._squares(base)
        gains, squares = zip(*agreed.found, strict=True)
        self._evaluated = levels, time, sum(gains)
        norm = sqrt(sum(squares))
        levels.norm = norm if isfinite(norm) else 0.0
        with group._barrier(_OPERATION):
            super()._solve(levels, base, change, time, basis, rtol, most)
        if levels.is_closed:
            self._add_mean(levels, change)

    def _complete(self, field: Array) -> None:
        for face in self._faces:
            self._store.write(SENT, face.sent, field[face.sent])
        self._halo.refresh(SENT)
        for face in self._faces:
            self._store.read(SENT, face.received, field[face.received])

    def _centre(self, levels: Levels, change: Array, mean: float) -> None:
        self._mean = mean  # all ranks add it after the solve

    def _add_mean(self, levels: Levels, change: Array) -> None:
        """Add a constant to a change, such that its mean over the field is that of the data."""
        own = change[self.own]
        products = self._buffer("products", own.shape)
        self._device.write(products, self._number(0.0))
        minus = self._minus_volumes(levels, change.shape)
        self._device.add_product(products, minus[self.own], own)
        mine = -self._sum_of(products)
        total = self._group.allgather(_OPERATION, np.array(mine)).sum()
        shift = self._mean - float(total) / levels.volume
        self._add(change[self._solved], shift, self._number(1.0))

    def _squares(self, field: Array) -> float:
        """Return the sum of the squares of a field at the unknown nodes of the rank."""
        squares = self._buffer("squares", field.shape)
        self._device.write(squares, self._number(0.0))
        self._device.add_product(squares, field, field)
        self._clear_given(squares)
        own = self._buffer("products", squares[self.own].shape)
        self._device.write(own, squares[self.own])
        return self._sum_of(own)

    def _sum_of(self, field: Array) -> float:
        """Return the sum of a field, which this call changes."""
        flat = field.reshape(-1)
        while flat.size > _FEW:  # halves are added in pairs
            half = flat.size // 2
            self._add(flat[:half], 1.0, flat[flat.size - half :])
            flat = flat[: flat.size - half]
        return float(self._device.download(flat).sum(dtype=np.float64))
