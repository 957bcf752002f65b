r"""The parts of an equation of advection and diffusion: fluxes through the faces between nodes.

    u_i' = -(F_{i+1/2} - F_{i-1/2}) / w_i,   F = b u_face - a (u_{i+1} - u_i) / h

with a and b the means of both nodes, and the width w_i = h, at a side with a flux h/2. u_face is

    central   (u_i + u_{i+1}) / 2
    upwind    the node that the flow comes from
    third     (2 u_{i+1} + 5 u_i - u_{i-1}) / 6 where b > 0, mirrored where b < 0; central at the
              face next to a side that is not periodic, where the flow comes from there

The lines of the third have the fluxes of `upwind`; the difference of both, which spans four nodes,
is the part F_0, which the scheme takes explicitly (deferred correction). At a side, F is b u minus
the flux that enters by diffusion. All fluxes between nodes cancel in the sum of w_i u_i.

Source: B. P. Leonard, Comput. Methods Appl. Mech. Eng. 19 (1979) 59-98 (upwind-biased
interpolation); P. K. Khosla and S. G. Rubin, Comput. Fluids 2 (1974) 207-209 (deferred correction).
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import require
from .._data import NodeData
from .._split import Grid, Level, LineOperators, Side
from .._split.lines import Field
from .._split.solver import node_data
from .problem import ConvectionDiffusion

Array = NDArray[np.float64]

CENTRAL, UPWIND, THIRD = "central", "upwind", "third-order"


class Source:
    """A source that is a sum of products of a factor and a field."""

    def __init__(self, grid: Grid, terms: list[tuple[Any, Any]], time: float) -> None:
        self._factors = [factor for factor, _ in terms]
        self._fields = [node_data(grid, "source", field, time) for _, field in terms]
        #: Whether it changes with time.
        self.varies = any(map(callable, self._factors)) or any(
            field.varies for field in self._fields
        )

    def at(self, time: float) -> Array:
        """Return the values at a time, which broadcast to the nodes."""
        total: Any = 0.0
        for given, field in zip(self._factors, self._fields, strict=True):
            factor = float(given(time) if callable(given) else given)
            require(isfinite(factor), "factor of source must be finite", factor)
            total = total + factor * field.at(time)
        return np.asarray(total)


class TransportOperators(LineOperators):
    """The parts of u_t = sum (a_i u_i - b_i u)_i + f."""

    def __init__(
        self,
        problem: ConvectionDiffusion,
        grid: Grid,
        sides: list[Side],
        differences: str,
        time: float,
        dtype: Any,
        device: str | None,
        threads: int | None,
    ) -> None:
        source = Source(grid, problem._source, time) if problem._source else None
        super().__init__(grid, sides, source, dtype, device, threads)
        names = grid.names
        self.velocity = [
            node_data(grid, f"velocity along {axis}", value, time)
            for axis, value in zip(names, problem._velocity, strict=True)
        ]
        self.diffusion = [
            node_data(grid, f"diffusion along {axis}", value, time, 0.0)
            for axis, value in zip(names, problem._diffusion, strict=True)
        ]
        self._differences = differences
        self.has_explicit = differences == THIRD

    def _rows_vary(self, axis: int) -> bool:
        return self.velocity[axis].varies or self.diffusion[axis].varies

    def _inflow_varies(self, side: Side) -> bool:
        return side.varies

    def _whole(self, data: NodeData, axis: int, time: float) -> Array:
        """Return values at all nodes of an axis, the axis last."""
        values = np.moveaxis(data.at(time), -1 - axis, -1)
        n = self.grid.lines[axis].size
        return np.broadcast_to(values, (*values.shape[:-1], n))

    def _at_faces(self, values: Array, axis: int) -> Array:
        """Return the means of neighbours, of a periodic axis with the face after the last node."""
        after = np.roll(values, -1, -1) if self.grid.periodic[axis] else values[..., 1:]
        return 0.5 * (values[..., : after.shape[-1]] + after)

    def _widths(self, axis: int) -> Array:
        """Return the widths of the nodes; infinite where values are given."""
        described = self.grid.described[axis]
        widths = np.full(described.size, np.inf)
        widths[described.unknowns] = described.volumes
        return widths

    def _make_rows(self, axis: int, time: float) -> tuple[list[Any], list[tuple[int, Any, Any]]]:
        grid = self.grid
        h, widths = float(grid.gaps[axis][0]), self._widths(axis)
        b, a = (self._whole(each[axis], axis, time) for each in (self.velocity, self.diffusion))
        flow, spread = self._at_faces(b, axis), self._at_faces(a, axis) / h
        if self._differences == CENTRAL:
            left, right = flow / 2, flow / 2
        else:
            left, right = np.maximum(flow, 0), np.minimum(flow, 0)
        # F = out u_i - back u_{i+1}
        out, back = np.broadcast_arrays(left + spread, spread - right)
        shape = (*out.shape[:-1], len(widths))
        lower, diag, upper = (np.zeros(shape) for _ in range(3))
        if grid.periodic[axis]:
            lower[...] = np.roll(out, 1, -1)
            upper[...] = back
            diag[...] = -out - np.roll(back, 1, -1)
        else:
            lower[..., 1:] = out
            upper[..., :-1] = back
            diag[..., :-1] -= out
            diag[..., 1:] -= back
            diag[..., 0] += b[..., 0]
            diag[..., -1] -= b[..., -1]
        for side in self._fluxes_of(axis):
            diag[..., -side.end] -= side.coefficient
        found = (np.moveaxis(each / widths, -1, -1 - axis) for each in (lower, diag, upper))
        return list(found), []

    def _inflow(self, side: Side, time: float) -> Any:
        flux = side.coefficient * side.at(time) if side.is_robin else side.at(time)
        if not side.varies and not flux.any():
            return None
        return flux / self._widths(side.axis)[-side.end]

    def _make_explicit(self, time: float, before: Any) -> Any:
        if not self.has_explicit:
            return None
        found = []
        for axis, data in enumerate(self.velocity):
            if before and not data.varies:
                found.append(before[axis])
                continue
            flow = np.moveaxis(self._at_faces(self._whole(data, axis, time), axis), -1, -1 - axis)
            through = self.grid.through[axis]
            found.append(
                tuple(
                    self.array(self.grid.part(each, through))
                    for each in (np.maximum(flow, 0), np.minimum(flow, 0))
                )
            )
        return found

    def add_explicit(self, level: Level, u: Field, out: Field) -> None:
        if not self.has_explicit:
            return
        grid, xp = self.grid, self.xp
        for axis in range(grid.axes):
            along, back = level.explicit[axis]  # parts of the velocity in both directions
            values, target = (field[grid.through[axis]] for field in (u, out))
            inverse = self.array(grid.along(axis, 1 / self._widths(axis)))
            after, before = _rows(axis, 1, None), _rows(axis, None, -1)
            inner = _rows(axis, 1, -1)
            bend = xp.zeros(values.shape, self.dtype)  # second differences
            if grid.periodic[axis]:
                jump = xp.roll(values, -1, -1 - axis)
                jump -= values
                xp.subtract(jump, xp.roll(jump, 1, -1 - axis), out=bend)
                beyond = xp.roll(bend, -1, -1 - axis)
            else:
                jump = values[after] - values[before]
                xp.subtract(jump[after], jump[before], out=bend[inner])
                bend, beyond = bend[before], bend[after]
            # Flux of the third order less that of `upwind`.
            flux = jump / 2
            flux -= bend / 6
            flux *= along
            jump /= 2
            jump += beyond / 6
            jump *= back
            flux -= jump
            if grid.periodic[axis]:
                target -= (flux - xp.roll(flux, 1, -1 - axis)) * inverse
            else:
                target[before] -= flux * inverse[before]
                target[after] += flux * inverse[after]


def _rows(axis: int, start: int | None, stop: int | None) -> tuple[Any, ...]:
    """Return the index of some nodes along an axis, of all along the others."""
    return (..., slice(start, stop), *(slice(None) for _ in range(axis)))
