"""Places where the velocity is recorded after every step."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._channel import HALF_HEIGHT, ChannelGrid

Array = NDArray[Any]


class Probes:
    """Velocities at points, interpolated linearly along both axes from the nodes around them.

    Parameters
    ----------
    grid : ChannelGrid
        The grid.
    places : sequence of (x, y)
        The points, at least one spacing away from the walls, inlet and outlet.
    """

    def __init__(self, grid: ChannelGrid, places: Sequence[tuple[float, float]]) -> None:
        self._grid = grid
        self.places = np.array(places, np.float64).reshape(-1, 2)
        for place in self.places.tolist():
            self._check(place)
        (ny, nx), (x, y) = grid.shape, self.places.T
        column, row = x / grid.hx, (y + HALF_HEIGHT) / grid.hy
        # Coordinates on a node can be off by rounding.
        column, row = (np.where(abs(a - a.round()) < 1e-9, a.round(), a) for a in (column, row))
        i = np.clip(np.floor(column).astype(int), 1, nx - 3)
        j = np.clip(np.floor(row).astype(int), 1, ny - 3)
        along_x, along_y = column - i, row - j
        rows = np.stack([j, j, j + 1, j + 1])
        columns = np.stack([i, i + 1, i, i + 1])
        weights = np.stack(
            [
                (1 - along_x) * (1 - along_y),
                along_x * (1 - along_y),
                (1 - along_x) * along_y,
                along_x * along_y,
            ]
        )
        body_rows, body_columns = grid.rows, grid.columns
        on_body = (
            (rows >= body_rows.first)
            & (rows <= body_rows.last)
            & (columns >= body_columns.first)
            & (columns <= body_columns.last)
        )
        weights[on_body] = 0
        nodes = rows * nx + columns
        # u is the difference along y divided by 2 hy, v minus that along x divided by 2 hx.
        self._nodes = np.stack([nodes + nx, nodes - nx, nodes - 1, nodes + 1])
        self._weights = weights / (2 * grid.hy), weights / (2 * grid.hx)

    @property
    def nodes(self) -> Array:
        """Nodes north, south, west and east of the corners around each place: (4, 4, places)."""
        return self._nodes

    @property
    def weights(self) -> Array:
        """Weights of the corners for u and v: (2, 4, places)."""
        return np.stack(self._weights)

    @property
    def columns(self) -> int:
        """Number of entries of a row of the history: time, change, u and v of each probe."""
        return 2 + 2 * len(self.places)

    def with_more(self, places: Sequence[tuple[float, float]]) -> "Probes":
        """Return probes that also contain these places, if they are new."""
        known = [(x, y) for x, y in self.places.tolist()]
        new = [(float(x), float(y)) for x, y in places]
        return Probes(self._grid, [*known, *dict.fromkeys(p for p in new if p not in known)])

    def _check(self, place: list[float]) -> None:
        """Raise unless a place lies in the flow, at least one node away from its ends."""
        grid, (x, y) = self._grid, place
        inside = (
            isfinite(x)
            and isfinite(y)
            and grid.hx <= x <= grid.length - grid.hx
            and abs(y) <= HALF_HEIGHT - grid.hy
        )
        if not inside or max(abs(x - grid.centre), abs(y)) < 0.5:
            raise ValueError(
                f"a probe must lie in the flow, {grid.hx:g} <= x <= {grid.length - grid.hx:g} and "
                f"|y| <= {HALF_HEIGHT - grid.hy:g} outside the cylinder, got ({x:g}, {y:g})"
            )
