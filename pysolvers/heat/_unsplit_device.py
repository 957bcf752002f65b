"""Implicit steps that are not split along the axes, for a field on a device.

The operations on elements of `Unsplit`, made of the copies and products of the backend: fields stay
on the device. What sources and sides prescribe is evaluated on the host; what does not change with
time is uploaded once for each length of the steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._data import NodeData
from .._runtime.device import address_of
from .._runtime.fields import DeviceFields, Fields
from ._levels import BASIS, Levels
from ._settings import HeatSettings
from ._sides import Grid, Side
from ._unsplit import Unsplit

Array = NDArray[Any]


class DeviceUnsplit(Unsplit):
    """Steps of the equation that is not split, for a field on a device.

    Fields are device arrays. Those that a call returns are valid until the next call, changes of
    stages until the one after it.

    Parameters
    ----------
    settings, grid, sides, source
        As in `Unsplit`.
    store : DeviceFields
        Where the fields lie.
    """

    def __init__(
        self,
        settings: HeatSettings,
        grid: Grid,
        sides: Mapping[str, Side],
        source: NodeData | None,
        store: DeviceFields,
    ) -> None:
        super().__init__(settings, grid, sides, source, partial(Levels, store=store))
        self._device = store.device
        self._kind = np.dtype(settings.dtype)
        self._buffers: dict[Any, Array] = {}  # by use
        self._numbers: dict[float, Array] = {}
        self._constant: _Constant | None = None
        # The operator and the time whose data are on the device, and the sum of W t f.
        self._evaluated: tuple[Levels, float, float] | None = None
        self._times: dict[Side, float] = {}  # of the given values that change
        self._before: Sequence[Array] = ()  # changes of the steps before the current one
        self._after: Sequence[Array] = ()  # what the last step returned
        self._is_constant = not any(side.varies for side in self._given)
        # Whether T has the given values, which do not change: then no change has any.
        self._holds_values = False

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_constant": None, "_evaluated": None}

    def steady(
        self, field: Array, time: float, rtol: float, most: int
    ) -> tuple[Array, tuple[float, float]]:
        self._holds_values = False
        found, balance = super().steady(field, time, rtol, most)
        return self._device.download(found), balance

    def is_finite(self, field: Array) -> bool:
        """Return whether the last equation had a solution; `field` cannot be read here."""
        return bool(np.isfinite(self._error))

    def step(
        self,
        field: Array,
        recent: Sequence[Array],
        first: int,
        *,
        follows_start: bool = False,
    ) -> tuple[Array, Sequence[Array]]:
        self._before = recent  # the caller may need it again if this step cannot be made
        self._holds_values = self._is_constant and bool(recent) and recent is self._after
        field, self._after = super().step(field, recent, first, follows_start=follows_start)
        return field, self._after

    def start(self, field: Array) -> Array:
        self._holds_values = False
        return super().start(field)

    def held(self, field: Array) -> Array:
        return self._there("held", field)

    def recent_of(self, change: Array) -> Sequence[Array]:
        self._holds_values = False
        to = self._free(change.shape, ())
        self._device.write(to, change)
        return self._remembered(to, ())

    def kept(self, changes: Array) -> Sequence[Array]:
        return tuple(self._there(("change", k), change) for k, change in enumerate(changes))

    def values(self, changes: Sequence[Array]) -> Array:
        found = np.empty((len(changes), *changes[0].shape), self._kind)
        for values, change in zip(found, changes, strict=True):
            self._device.read(change, values)
        return found

    def _guess(
        self, levels: Levels, like: Array, recent: Sequence[Array]
    ) -> tuple[Array, Sequence[Array]]:
        # A steady state may be asked for between two steps.
        steady = levels.is_steady
        to = self._buffer("steady", like.shape) if steady else self._free(like.shape, recent)
        self._device.write(to, self._number(0.0))
        return to, recent

    def _free(self, shape: tuple[int, ...], recent: Sequence[Array]) -> Array:
        """Return a field for a change: none of the last ones, and none of those before the step."""
        taken = {address_of(change) for change in (*recent, *self._before)}
        every = (self._buffer(("change", k), shape) for k in count())
        return next(field for field in every if address_of(field) not in taken)

    def _remembered(self, change: Array, recent: Sequence[Array]) -> Sequence[Array]:
        if not self._holds_values:
            self._clear_given(change)
        return (change, *recent)[:BASIS]

    def _clear_given(self, field: Array) -> None:
        """Set a field to 0 at nodes with given values."""
        for side in self._given:
            part = side.of(field)
            self._device.write(part, self._number(0.0).reshape((1,) * part.ndim))

    def _sum(self, field: Array, factor: float, change: Array) -> Array:
        to = self._buffer("sum", field.shape)
        if to is not field:
            self._device.write(to, field)
        self._add(to, factor, change)
        return to

    def _moved(self, base: Array, change: Array) -> tuple[Array, Array]:
        moved = self._buffer("moved", base.shape)
        self._device.write(moved, base)
        self._add(moved, 1.0, change)
        correction = self._buffer("correction", base.shape)
        self._device.write(correction, self._number(0.0))
        return moved, correction

    def _take_off(self, rhs: Array, levels: Levels, change: Array) -> None:
        if levels.inertia is None:
            return
        if levels.is_steady:
            minus = self._there("minus inertia", np.broadcast_to(-levels.inertia, rhs.shape))
        else:
            minus = self._minus_volumes(levels, rhs.shape)
        self._device.add_product(rhs, minus, change)

    def _advance(self, change: Array, correction: Array) -> None:
        self._add(change, 1.0, correction)

    def _set_values(self, field: Array, time: float) -> None:
        for side in () if self._holds_values else self._given:  # the later axis has the edges
            self._device.write(side.of(field), self._level(side, time))

    def _begun(
        self, levels: Levels, base: Array, change: Array, time: float
    ) -> tuple[Array, float]:
        for side in () if self._holds_values else self._given:  # the later axis has the edges
            self._device.write(side.of(change), self._level(side, time))
            self._add(side.of(change), -1.0, side.of(base))
        product = self._buffer("product", base.shape)
        levels.apply(base, product)
        rhs = self._buffer("rhs", base.shape)
        total = self._evaluate(levels, time)
        assert self._constant is not None
        self._device.write(rhs, self._constant.gain)
        self._add(rhs, -1.0, product)
        for part, gain in self._varying(rhs):
            self._add(part, 1.0, gain)
        mean = total / levels.volume if levels.is_closed else 0.0
        if levels.is_singular:
            minus = self._minus_volumes(levels, base.shape)
            if levels.holes is not None:
                minus = self._there("minus weights", -levels.weights)
            self._add(rhs, mean, minus)
        return rhs, mean

    def _centre(self, levels: Levels, change: Array, mean: float) -> None:
        if not levels.is_weighted:
            levels.centre(change, mean)
            return
        found = levels.total(levels.weights * self._device.download(change)) / levels.volume
        ones = np.broadcast_to(levels.weights > 0, change.shape)
        self._add(change, mean - found, self._there("ones", ones))

    def _made_constant(self, levels: Levels) -> _Constant:
        """Return W t times the sources and inflows that do not change with time."""
        gain = np.zeros(self._grid.nodes[::-1])
        if self._source is not None and not self._source.varies:
            gain += self._grid.dt * self._source.at(0.0)
        for side in self._sides:
            if side.kind == "flux" and not side.varies:
                side.of(gain)[...] += side.level(0.0)
        if not gain.any():
            return _Constant(levels, self._number(0.0), 0.0)
        gain *= levels.share * levels.volumes
        return _Constant(levels, self._there("gain", gain), levels.total(gain))

    def _evaluate(self, levels: Levels, time: float) -> float:
        """Bring what sources and sides prescribe at a time to the device; return the sum of W t f.

        Functions of the caller are called here and nowhere else, once for an operator and a time.
        """
        if self._evaluated is not None:
            known, at, total = self._evaluated
            if known is levels and at == time:
                return total
        self._evaluated = None
        if self._constant is None or self._constant.levels is not levels:
            self._constant = self._made_constant(levels)
        total = self._constant.total
        for side in self._given:
            self._level(side, time)
        volumes = np.broadcast_to(levels.volumes, self._grid.nodes[::-1])
        if self._source is not None and self._source.varies:
            gain = levels.share * self._grid.dt * self._source.at(time) * volumes
            self._there("source", gain)
            total += levels.total(gain)
        for side in self._sides:
            if side.kind == "flux" and side.varies:
                flow = levels.share * side.level(time) * side.of(volumes)
                self._there(side, flow)
                total += levels.total_of(side, flow)
        self._evaluated = levels, time, total
        return total

    def _varying(self, rhs: Array) -> list[tuple[Array, Array]]:
        """Return parts of a field, and W t times the sources and inflows there that change."""
        found = []
        if self._source is not None and self._source.varies:
            found.append((rhs, self._buffers["source"]))
        fluxes = (side for side in self._sides if side.kind == "flux" and side.varies)
        return [*found, *((side.of(rhs), self._buffers[side]) for side in fluxes)]

    def _level(self, side: Side, time: float) -> Array:
        """Return the values that a side gives at a time."""
        if side in self._buffers and (not side.varies or self._times[side] == time):
            return self._buffers[side]
        values = self._there(side, side.level(time))
        self._times[side] = time
        return values

    def _there(self, use: Any, values: Array) -> Array:
        """Return values of the host on the device, in the place of those of the same use."""
        values = np.ascontiguousarray(values, self._kind)
        if use not in self._buffers:
            self._buffers[use] = self._device.hold(values)
        else:
            self._device.write(self._buffers[use], values)
        return self._buffers[use]

    def _minus_volumes(self, levels: Levels, shape: tuple[int, ...]) -> Array:
        """Return -W on the device, which is uploaded once: it is the same for all steps."""
        if "minus volumes" not in self._buffers:
            return self._there("minus volumes", np.broadcast_to(-levels.volumes, shape))
        return self._buffers["minus volumes"]

    def _buffer(self, use: Any, shape: tuple[int, ...]) -> Array:
        """Return a field on the device that is used again for the same purpose."""
        if use not in self._buffers:
            self._buffers[use] = self._device.hold(np.zeros(shape, self._kind))
        return self._buffers[use]

    def _number(self, value: float) -> Array:
        """Return a number on the device, with the axes of a field."""
        if value not in self._numbers:
            if len(self._numbers) > _MOST_NUMBERS:
                self._numbers.clear()
            shape = (1,) * self._grid.axes
            self._numbers[value] = self._device.hold(np.full(shape, value, self._kind))
        return self._numbers[value]

    def _add(self, to: Array, factor: float, source: Array) -> None:
        """Add a multiple of a field to a field, both with the same axes."""
        self._device.add_product(to, self._number(factor).reshape((1,) * to.ndim), source)


_MOST_NUMBERS = 16  # that are kept on the device; means of sources that change are new ones


class _Constant:
    """W t times what does not change with time, for the operator of a step, and its sum."""

    def __init__(self, levels: Levels, gain: Array, total: float) -> None:
        self.levels, self.gain, self.total = levels, gain, total


def unsplit_for(
    settings: HeatSettings,
    grid: Grid,
    sides: Mapping[str, Side],
    source: NodeData | None,
    store: Fields,
) -> Unsplit:
    """Return the steps of the equation that is not split, for fields in a store."""
    if isinstance(store, DeviceFields):
        return DeviceUnsplit(settings, grid, sides, source, store)
    return Unsplit(settings, grid, sides, source)
