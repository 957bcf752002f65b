r"""Implicit steps that are not split along the axes: SDIRK2, and the steady state.

With K T = -div k grad T + exchange and f the sources and inflows, T_t = f - K T. Alexander's method
with g = 1 - 1/sqrt 2 solves

    (1 + g dt K) D1 = g dt (f(t + g dt) - K T),               T1 = T + D1,
    (1 + g dt K) D2 = g dt (f(t + dt) - K S),  S = T + (1 - g)/g D1,   T+ = S + D2.

It is L-stable, of order 2, and T+ is the second stage, so that waves that the step does not resolve
are damped. Given values are those at the times of the stages. A start from data that are not smooth
is made of two half-steps of backward Euler, (1 + dt/2 K) D = dt/2 (f - K T), which keep T within
the range of the data: the matrix is an M-matrix of row sums of at least 1.

A step multiplies a wave of the decay rate z/dt by R(z) = (1 - (1 - 2 g) z)/(1 + g z)^2, which is
negative for z > 2.4 and at least -0.21. The start leaves 1/(1 + z/2)^2 of it, so that R could bring
a node whose neighbours are at rest beyond the range of the data by up to 0.0155 of it, at z = 4.
The step after a damped start is therefore made of two half-steps of the same method: they multiply
by R(z/2)^2, which is not negative, and the product with R of the next step is at least -3.8e-4.

The equations of the differences D are solved by `Levels`: a constant in an insulated box keeps its
bits. The iteration begins from the combination of the last differences that is nearest to D in the
norm of the operator. The last differences may be those of other operators: for a steady flow they
are multiples of D, and D is smooth in time when waves have decayed.

Source: R. Alexander, Diagonally implicit Runge-Kutta methods for stiff O.D.E.'s, SIAM J. Numer.
Anal. 14 (1977) 1006-1021.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._data import NodeData
from ._levels import BASIS, Levels
from ._settings import HeatSettings
from ._sides import PERIODIC, Grid, Side

Array = NDArray[Any]

#: Of Alexander's method.
GAMMA = 1 - 1 / sqrt(2)
#: Tolerances by dtype, of the change in a stage.
RTOL = {"float64": 1e-8, "float32": 1e-5}
_EPS = {kind: float(np.finfo(kind).eps) for kind in RTOL}
_FLOOR = 4.0  # machine numbers: of T
_IN_REPEATS = 0.01  # of the tolerance, in a repeat, where P A may have a small eigenvalue
_REPEATS = 4  # of a solve whose residual has rounding errors above the tolerance
_MOST = 2000  # iterations; some 60 for random k of ratio 1e6
_KEPT = 2  # operators: of `dt`, and of a shortened step


class Unsplit:
    """Steps of the equation that is not split, for a field in host memory.

    Parameters
    ----------
    settings : HeatSettings
        Dtype, backend and threads.
    grid : Grid
        The nodes.
    sides : mapping
        All sides by name.
    source : NodeData or None
        The source.
    levels : callable, default: Levels
        What makes the operator.
    """

    def __init__(
        self,
        settings: HeatSettings,
        grid: Grid,
        sides: Mapping[str, Side],
        source: NodeData | None,
        levels: Callable[..., Levels] = Levels,
    ) -> None:
        self._settings, self._grid, self._source = settings, grid, source
        self._make = levels
        self._sides = [side for side in sides.values() if side.kind != PERIODIC]
        self._every = list(sides.values())
        self._given = [side for side in self._sides if side.kind == "value"]
        self._fluxes = [side for side in self._sides if side.kind == "flux"]
        self._known: dict[float, Levels] = {}
        # W t f of an operator, or None if it is 0.
        self._constant_gain: tuple[Levels, Array | None] | None = None
        self._values: dict[Side, Array] = {}  # that do not change with time
        self._rhs: Array | None = None  # of a stage; nothing at nodes with given values
        #: Iterations of the last step.
        self.iterations = 0
        #: Kernel and threads of the last step.
        self.run_by: dict[str, Any] = {"kernel": "", "threads": 0}
        #: Whether all equations of the last step were solved to the tolerance.
        self.converged = True
        self._error = 0.0  # of the last solve

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for a copy, without operators, which it makes again."""
        return vars(self) | {"_known": {}, "_constant_gain": None}

    def step(
        self,
        field: Array,
        recent: Sequence[Array],
        first: int,
        *,
        follows_start: bool = False,
    ) -> tuple[Array, Sequence[Array]]:
        """Return T after step `first`, and the changes of the last stages, the last one first.

        Parameters
        ----------
        field : array
            T.
        recent : sequence of array
            What the step before returned, or () if T was not made by a step of this length.
        first : int
            Number of steps before.
        follows_start : bool, default: False
            Whether the step before was a damped start: the step is made of two half-steps.
        """
        segment = self._grid.clock.segment
        begin, end = segment.at(first), segment.at(first + 1)
        self.iterations, self.converged = 0, True
        if not follows_start:
            return self._stages(self._levels(), field, recent, begin, end)
        levels, middle = self._made(0.5 * GAMMA), 0.5 * (begin + end)
        field, recent = self._stages(levels, field, recent, begin, middle)
        return self._stages(levels, field, recent, middle, end)

    def _stages(
        self, levels: Levels, field: Array, recent: Sequence[Array], begin: float, end: float
    ) -> tuple[Array, Sequence[Array]]:
        """Make both stages."""
        one, basis = self._guess(levels, field, recent)
        self._solve(levels, field, one, begin + GAMMA * (end - begin), basis)
        base = self._sum(field, (1 - GAMMA) / GAMMA, one)
        self._complete(base)
        recent = self._remembered(one, recent)
        two, basis = self._guess(levels, field, recent)
        self._solve(levels, base, two, end, basis)
        self._advance(base, two)
        self._set_values(base, end)
        self._complete(base)
        return base, self._remembered(two, recent)

    def forget(self) -> None:
        """Make new operators: the conductivities are others than before."""
        self._known.clear()

    def held(self, field: Array) -> Array:
        """Return a field of the host where fields lie."""
        return field

    def recent_of(self, change: Array) -> Sequence[Array]:
        """Return changes for `step` from that of the last stage alone."""
        return self._remembered(change.copy(), ())

    def kept(self, changes: Array) -> Sequence[Array]:
        """Return changes for `step` from those that `values` returned."""
        return tuple(changes)

    def values(self, changes: Sequence[Array]) -> Array:
        """Return the changes that `step` returned, on the host, along a first axis."""
        return np.stack(changes)

    def start(self, field: Array) -> Array:
        """Return T after the first step, made of two half-steps of backward Euler."""
        segment = self._grid.clock.segment
        levels = self._made(0.5)
        self.iterations, self.converged = 0, True
        recent: Sequence[Array] = ()
        for half in (1, 2):
            time = segment.time + half * segment.dt / 2
            change, basis = self._guess(levels, field, recent)
            self._solve(levels, field, change, time, basis)
            field = self._sum(field, 1.0, change)
            self._set_values(field, time)
            self._complete(field)
            recent = self._remembered(change, recent)
        return field

    def steady(
        self, field: Array, time: float, rtol: float, most: int
    ) -> tuple[Array, tuple[float, float]]:
        """Return the steady state for the data at a time, and the balance of a closed domain.

        The balance is the sum of W dt f, which must be 0, and that of its magnitudes; it is 0, 0
        for a domain that is not closed. The mean of T is kept in a closed domain.
        """
        levels = self._made(1.0, is_steady=True)
        self.iterations, self.converged = 0, True
        change, _ = self._guess(levels, field, ())
        self._solve(levels, field, change, time, (), rtol, most)
        found = self._sum(field, 1.0, change)
        self._set_values(found, time)
        if not levels.is_singular:
            return found, (0.0, 0.0)
        with levels.agreement():
            gain = self._gain(levels, time)
        if gain is None:
            return found, (0.0, 0.0)
        gain = gain / levels.share
        return found, (levels.total(gain), levels.total(abs(gain)))

    def is_finite(self, field: Array) -> bool:
        """Return whether a field that this object returned has finite values only."""
        return isfinite(self._error) and bool(np.isfinite(field).all())

    def _levels(self) -> Levels:
        """Return the operators of a stage of this length; those of the last lengths are kept."""
        dt = self._grid.dt
        if dt not in self._known:
            while len(self._known) >= _KEPT:
                del self._known[next(iter(self._known))]
            self._known[dt] = self._made(GAMMA)
        return self._known[dt]

    def _made(self, share: float, *, is_steady: bool = False) -> Levels:
        """Return the operators with t = share dt on all grids of the multigrid cycle."""
        s = self._settings
        return self._make(
            self._grid,
            self._every,
            share,
            s.backend,
            s.dtype,
            s.call_threads,
            is_steady=is_steady,
        )

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
        """Set `change`, an approximation, to the solution of a stage."""
        base = np.ascontiguousarray(base)
        rhs, mean = self._begun(levels, base, change, time)
        kind = self._settings.dtype
        limit = RTOL[kind] if rtol is None else rtol
        most = _MOST if most is None else most
        eps = _EPS[kind]
        floor = _FLOOR * eps
        report = levels.solve(rhs, change, base, basis, (limit, floor, most))
        count, tolerance = report["iterations"], report["limit"]
        # Where the field is rough, K T has rounding errors that are large for T + change, a smooth
        # field: there the residual of the stage is computed from the sum until what that corrects
        # is small.
        repeats = 0 if eps * levels.growth <= limit else _REPEATS
        while repeats and report["iterations"] and report["converged"] and count < most:
            moved, correction = self._moved(base, change)
            rhs, _ = self._begun(levels, moved, correction, time)
            self._take_off(rhs, levels, change)
            limits = (0.0, _IN_REPEATS * tolerance, most - count)
            report = levels.solve(rhs, correction, None, (), limits)
            self._advance(change, correction)
            count += report["iterations"]
            repeats = repeats - 1 if report["norm"] > tolerance else 0
        if levels.is_closed:  # the mean of the change is known
            self._centre(levels, change, 0.0 if levels.is_singular else mean)
        self._error = float(report["error"])
        self.iterations += count
        self.run_by = {"kernel": report["kernel"], "threads": report["threads"]}
        self.converged = self.converged and report["converged"]

    # What follows touches the elements of fields.

    def _guess(
        self, levels: Levels, like: Array, recent: Sequence[Array]
    ) -> tuple[Array, Sequence[Array]]:
        """Return a first approximation of a change, and the basis that makes it better."""
        return np.zeros(like.shape, like.dtype), recent

    def _remembered(self, change: Array, recent: Sequence[Array]) -> Sequence[Array]:
        """Return the last changes: first `change`, after it is set to 0 at given values."""
        for side in self._given:
            side.of(change)[...] = 0
        return (change, *recent)[:BASIS]

    def _sum(self, field: Array, factor: float, change: Array) -> Array:
        """Return field + factor * change as a new field."""
        if factor == 1:
            return field + change
        found = change.dtype.type(factor) * change
        found += field
        return found

    def _moved(self, base: Array, change: Array) -> tuple[Array, Array]:
        """Return base + change and a field of zeros, both new."""
        return base + change, np.zeros_like(change)

    def _take_off(self, rhs: Array, levels: Levels, change: Array) -> None:
        """Subtract W s change from rhs."""
        if levels.inertia is not None:
            rhs -= (levels.inertia * change).astype(rhs.dtype)

    def _advance(self, change: Array, correction: Array) -> None:
        """Add a correction to a change, or a change to a field."""
        change += correction

    def _complete(self, field: Array) -> None:
        """Complete a field to which a change was added: where it has nodes of other ranks."""

    def _set_values(self, field: Array, time: float) -> None:
        """Write the given values of a time to a field."""
        for side in self._given:  # at edges the values of the later axis remain
            side.of(field)[...] = self._value(side, time)

    def _value(self, side: Side, time: float) -> Array:
        """Return the values that a side gives at a time."""
        known = self._values.get(side)
        if known is not None:
            return known
        value = side.level(time)
        if not side.varies:
            self._values[side] = value
        return value

    def _begun(
        self, levels: Levels, base: Array, change: Array, time: float
    ) -> tuple[Array, float]:
        """Set the given values of a change; return W t (f - K T), and the mean of t f.

        The next call overwrites the array that this one returned.
        The mean is that of a closed domain, and otherwise 0; it is subtracted if A is singular.
        """
        if self._rhs is None:
            self._rhs = np.zeros(base.shape, base.dtype)
        rhs = self._rhs
        levels.apply(base, rhs)
        with levels.agreement():
            gain = self._gain(levels, time)
            values = [self._value(side, time) for side in self._given]
        if gain is None:
            np.negative(rhs, out=rhs)
        else:
            np.subtract(gain.astype(rhs.dtype, copy=False), rhs, out=rhs)
        for side, value in zip(self._given, values, strict=True):
            np.subtract(value, side.of(base), out=side.of(change), casting="same_kind")
        mean = 0.0
        if levels.is_closed and gain is not None:
            mean = levels.total(gain) / levels.volume
        if levels.is_singular:
            rhs -= (mean * levels.weights).astype(rhs.dtype)
        return rhs, mean

    def _centre(self, levels: Levels, change: Array, mean: float) -> None:
        """Add a constant to a field, such that its mean is this one."""
        found = levels.total(levels.weights * change) / levels.volume
        at = ... if levels.holes is None else ~levels.holes
        change[at] += change.dtype.type(mean - found)

    def _gain(self, levels: Levels, time: float) -> Array | None:
        """Return W t times sources and inflows at a time; None if there are none."""
        if self._source is None and not self._fluxes:
            return None
        varies = self._source is not None and self._source.varies
        if varies or any(side.varies for side in self._fluxes):
            return self._made_gain(levels, time)
        if self._constant_gain is None or self._constant_gain[0] is not levels:
            gain = self._made_gain(levels, time)
            self._constant_gain = levels, gain if gain.any() else None
        return self._constant_gain[1]

    def _made_gain(self, levels: Levels, time: float) -> Array:
        """Return W t times sources and inflows at a time."""
        gain = np.zeros(self._grid.nodes[::-1])
        if self._source is not None:
            gain += self._grid.dt * self._source.at(time)
        for side in self._fluxes:
            side.of(gain)[...] += side.level(time)
        gain *= levels.share * levels.volumes
        return gain
