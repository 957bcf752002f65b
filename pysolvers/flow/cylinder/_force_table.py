r"""The forces on the cylinder as sums over nodes, for the kernels of a device.

The balances of _forces.py are linear in seven quantities at the nodes of the box:

    0, 1   derivatives of the total pressure along x and y
    2, 3   fluxes of momentum along x and y, without the total pressure
    4      the shear, less u v
    5      psi_t
    6      omega

and every result is the sum of quantities times weights. The weights are those of trapezoidal
sums. A running sum enters by its transpose: the weight of an entry is the sum of the weights of
all later ones.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RESULTS = ("drag", "lift", "surface_drag", "surface_lift", "box_gap", "surface_gap")
_SLOPE_X, _SLOPE_Y, _ALONG_X, _ALONG_Y, _CROSS, _RATE, _OMEGA = range(7)
_DRAG, _LIFT, _SURFACE_DRAG, _SURFACE_LIFT, _BOX_GAP, _SURFACE_GAP = range(6)


class ForceTable(NamedTuple):
    """Nodes, and the weights of their quantities.

    Parameters
    ----------
    nodes : ndarray of int32, shape (n,)
        Indices of the nodes in the grid.
    weights : ndarray of float64, shape (6, 7, n)
        Results, quantities, nodes.
    """

    nodes: NDArray[np.int32]
    weights: Array


class _Weights:
    """Weights of single nodes of the box; the same node can occur several times.

    Parameters
    ----------
    shape : (int, int)
        Nodes of the box along y and x.
    spacing : (float, float)
        hx and hy.
    """

    def __init__(self, shape: tuple[int, int], spacing: tuple[float, float]) -> None:
        (self.ny, self.nx), (self.hx, self.hy) = shape, spacing
        self.bottom, self.top = np.s_[0, :], np.s_[self.ny - 1, :]
        self.left, self.right = np.s_[:, 0], np.s_[:, self.nx - 1]
        # Weights of the whole running sum along a side.
        self.whole_x = _running_weights(_unit(self.nx), self.hx)
        self.whole_y = _running_weights(_unit(self.ny), self.hy)
        self._places = np.arange(self.ny * self.nx).reshape(shape)
        self._entries: list[tuple[int, int, NDArray[Any], Array]] = []

    def add(self, result: int, quantity: int, place: Any, weights: Any) -> None:
        """Add weights to the nodes box[place]."""
        nodes = np.atleast_1d(self._places[place])
        self._entries.append((result, quantity, nodes, np.broadcast_to(weights, nodes.shape)))

    def add_pressure(self, result: int, side: str, values: Array) -> None:
        """Add the sum of values times the total pressure along a side.

        The total pressure is a running sum from the lower left corner; it continues from the left
        to the top and from the bottom to the right.
        """
        if side == "bottom":
            self.add(result, _SLOPE_X, self.bottom, _running_weights(values, self.hx))
        elif side == "left":
            self.add(result, _SLOPE_Y, self.left, _running_weights(values, self.hy))
        elif side == "top":
            self.add(result, _SLOPE_X, self.top, _running_weights(values, self.hx))
            self.add(result, _SLOPE_Y, self.left, values.sum() * self.whole_y)
        else:
            self.add(result, _SLOPE_Y, self.right, _running_weights(values, self.hy))
            self.add(result, _SLOPE_X, self.bottom, values.sum() * self.whole_x)

    def total(self) -> tuple[NDArray[Any], Array]:
        """Return the nodes that occur, and their weights."""
        nodes = np.unique(np.concatenate([entry[2] for entry in self._entries]))
        table = np.zeros((6, 7, len(nodes)))
        for result, quantity, places, weights in self._entries:
            np.add.at(table[result, quantity], np.searchsorted(nodes, places), weights)
        return nodes, table


def force_table(
    shape: tuple[int, int],
    origin: tuple[int, int],
    body: tuple[int, int, int, int],
    faces: Any,
    spacing: tuple[float, float],
    viscosity: float,
    columns: int,
) -> ForceTable:
    """Return the table of a grid.

    Parameters
    ----------
    shape : (int, int)
        Nodes of the box along y and x.
    origin : (int, int)
        Row and column of its first node in the grid.
    body : (int, int, int, int)
        First and last row, first and last column of the body in the box.
    faces : sequence
        The faces of the body, clockwise from the front.
    spacing : (float, float)
        hx and hy.
    viscosity : float
        1 / Re.
    columns : int
        Nodes of the grid along x.
    """
    weights = _Weights(shape, spacing)
    _add_box(weights)
    _add_faces(weights, body, faces, viscosity)
    nodes, table = weights.total()
    rows, box_columns = np.divmod(nodes, weights.nx)
    return ForceTable(
        ((rows + origin[0]) * columns + box_columns + origin[1]).astype(np.int32), table
    )


def _add_box(weights: _Weights) -> None:
    """Add the balance of momentum of the box, and the sum of the pressure once around it."""
    bottom, top, left, right = weights.bottom, weights.top, weights.left, weights.right
    along_x, along_y = _sum_weights(weights.nx, weights.hx), _sum_weights(weights.ny, weights.hy)
    for sign, side, quantity, whole in (
        (1, bottom, _SLOPE_X, weights.whole_x),
        (1, right, _SLOPE_Y, weights.whole_y),
        (-1, top, _SLOPE_X, weights.whole_x),
        (-1, left, _SLOPE_Y, weights.whole_y),
    ):
        weights.add(_BOX_GAP, quantity, side, sign * whole)
    for sign, side, name in ((1, right, "right"), (-1, left, "left")):
        weights.add(_DRAG, _ALONG_X, side, sign * 2 * along_y)
        weights.add(_LIFT, _CROSS, side, sign * 2 * along_y)
        weights.add(_LIFT, _RATE, side, sign * 2 * along_y)
        weights.add_pressure(_DRAG, name, -sign * 2 * along_y)
    for sign, side, name in ((1, top, "top"), (-1, bottom, "bottom")):
        weights.add(_LIFT, _ALONG_Y, side, sign * 2 * along_x)
        weights.add(_DRAG, _CROSS, side, sign * 2 * along_x)
        weights.add(_DRAG, _RATE, side, -sign * 2 * along_x)
        weights.add_pressure(_LIFT, name, -sign * 2 * along_x)


def _add_faces(
    weights: _Weights, body: tuple[int, int, int, int], faces: Any, viscosity: float
) -> None:
    """Add the forces by pressure and shear on the faces of the body.

    The pressure in the middle of a face, from the box along a normal, counts with the length of
    the face; the pressure along the face is relative to its middle.
    """
    nx, ny, nu = weights.nx, weights.ny, viscosity
    j0, j1, i0, i1 = body
    j, i = (j0 + j1) // 2, (i0 + i1) // 2
    normals: tuple[tuple[str, Any, int, float, int, int, int], ...] = (
        ("left", np.s_[j, : i0 + 1], _SLOPE_X, weights.hx, 1, j, ny),
        ("top", np.s_[j1:, i], _SLOPE_Y, weights.hy, -1, i, nx),
        ("right", np.s_[j, i1:], _SLOPE_X, weights.hx, -1, j, ny),
        ("bottom", np.s_[: j0 + 1, i], _SLOPE_Y, weights.hy, 1, i, nx),
    )
    forces = ((_SURFACE_DRAG, 2.0), (_SURFACE_LIFT, -2.0), (_SURFACE_DRAG, -2.0),
              (_SURFACE_LIFT, 2.0))  # fmt: skip
    shears = ((_SURFACE_LIFT, -2.0), (_SURFACE_DRAG, -2.0), (_SURFACE_LIFT, 2.0),
              (_SURFACE_DRAG, 2.0))  # fmt: skip
    for face, normal, force, shear in zip(faces, normals, forces, shears, strict=True):
        name, line, quantity, step, direction, middle, count = normal
        result, factor = force
        face_nodes = len(face.rows)
        over = _sum_weights(face_nodes, face.step)
        total = factor * over.sum()
        start = np.zeros(count)
        start[middle] = total
        weights.add_pressure(result, name, start)
        length = len(np.arange(ny if quantity == _SLOPE_Y else nx)[line[1 - quantity]])
        weights.add(result, quantity, line, direction * total * _sum_weights(length, step))
        relative = factor * over
        relative[face.place_of(j, i)] -= total
        slopes = -nu * _running_weights(relative, face.step)
        around = -nu * _running_weights(_unit(face_nodes), face.step)
        n_row, n_column = face.normal
        for k, share in enumerate((-3.0, 4.0, -1.0)):
            place = face.rows + k * n_row, face.columns + k * n_column
            scale = share / (2 * face.across)
            weights.add(result, _OMEGA, place, scale * slopes)
            weights.add(_SURFACE_GAP, _OMEGA, place, scale * around)
        shear_result, shear_sign = shear
        weights.add(shear_result, _OMEGA, (face.rows, face.columns), shear_sign * nu * over)


def _unit(count: int) -> Array:
    """Return the weights of the last entry."""
    weights = np.zeros(count)
    weights[-1] = 1
    return weights


def _sum_weights(count: int, h: float) -> Array:
    """Return the weights of a trapezoidal sum."""
    weights = np.full(count, h)
    weights[[0, -1]] /= 2
    return weights


def _running_weights(values: Array, h: float) -> Array:
    """Return the weights of f in the sum of values times running trapezoidal sums of f."""
    later = np.cumsum(values[::-1])[::-1]  # sum of values[k:]
    weights = np.zeros(len(values))
    weights[:-1] += later[1:] * (h / 2)
    weights[1:] += later[1:] * (h / 2)
    return weights
