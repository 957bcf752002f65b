"""Numbers of a grid with a body that a backend needs for the steps: ps_cylinder.h."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._body_poisson import BodyPoisson
from ._channel import ChannelGrid

Array = NDArray[Any]


def tables_of(grid: ChannelGrid, poisson: BodyPoisson, dtype: np.dtype) -> dict[str, Array]:
    """Return the tables of the grid and of the body, described in csrc/include/ps_cylinder.h.

    Parameters
    ----------
    grid : ChannelGrid
        The grid.
    poisson : BodyPoisson
        The equations of psi.
    dtype : dtype
        Of the fields.
    """
    ny, hx, hy = grid.shape[0], grid.hx, grid.hy
    intervals = ny - 1
    half = intervals // 2
    ends = np.arange(1, half + 1)

    def sines(waves: Array, places: Array) -> Array:
        """Return sin(pi k j / n) with an argument below 2 pi, 0 where it must be."""
        product = np.outer(waves, places) % (2 * intervals)
        return np.where(product % intervals == 0, 0.0, np.sin(np.pi / intervals * product))

    parities = sines(2 * ends - 1, ends), sines(2 * ends, ends)
    both = np.stack([hx**2 * np.stack(parities), 2 / intervals * np.stack([s.T for s in parities])])
    waves = np.arange(ny)
    excess = 2 * (hx / hy) ** 2 * np.sin(np.pi * waves / (2 * intervals)) ** 2
    body_rows = np.arange(grid.rows.first, grid.rows.last + 1)
    places = sines(body_rows, waves)
    (rows, columns), inverse = poisson.surface, poisson.inverse()
    width = grid.columns.last - grid.columns.first + 1
    response = np.zeros((2 * ny + 2 * width, len(rows)))
    for k, column in enumerate((0, width - 1)):
        nodes = columns == column
        response[k * ny : (k + 1) * ny] = places[rows[nodes]].T @ inverse[nodes]
    for k, row in enumerate((0, len(body_rows) - 1)):
        nodes = (rows == row) & (columns > 0) & (columns < width - 1)
        response[2 * ny + k * width + columns[nodes]] = inverse[nodes]
    return {
        "sines": both.astype(dtype),
        "decays": 1 / (1 + excess + np.sqrt(excess * (excess + 2))),
        "body_sines": 2 / intervals * places,
        "surface": np.stack([rows, columns], axis=1).astype(np.int32),
        "response": -(hx**2) * response,
        "unit": inverse.sum(axis=0),
    }
