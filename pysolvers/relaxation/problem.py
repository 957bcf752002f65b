"""Steady convection and diffusion on a rectangle: the equation and its nodes."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import index, require, require_finite

__all__ = ["SteadyConvectionDiffusion"]

Array = NDArray[np.float64]
Values = ArrayLike | Callable[[Array, Array], ArrayLike]


class SteadyConvectionDiffusion:
    r"""Steady convection and diffusion with given boundary values.

    .. math:: u_{xx} + u_{yy} - f(x, y)\, u_x - g(x, y)\, u_y = s(x, y)

    on a rectangle, by central differences. Node (i, j) is at ``(x[i], y[j])``; the
    first axis of arrays is y. The solution oscillates if the cell Péclet numbers, h abs(f) and
    k abs(g) with the spacings h and k, exceed 2.

    Parameters
    ----------
    f, g : number, array_like or callable
        Convection along x and y: a number, an array that broadcasts to `shape`, or a function
        of x and y that returns one; x has the shape (1, nx) and y the shape (ny, 1).
    shape : tuple of int
        (ny, nx), the number of interior nodes along y and x; each at least 1.
    extent : tuple of float, default: (1, 1)
        Lengths of the rectangle along x and y.
    source : number, array_like or callable, default: 0
        The right-hand side s, in the forms of `f`.
    boundary : number, array_like or callable, default: 0
        Values of u on the boundary: a number, an array that broadcasts to (ny + 2, nx + 2), of
        which only the boundary nodes are read, or a function of x and y that returns one.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or shape, is out of range, or has values that are
        not finite; the message names the rule and the value.

    See Also
    --------
    LMSOR : The solver.

    Examples
    --------
    >>> from pysolvers import SteadyConvectionDiffusion
    >>> problem = SteadyConvectionDiffusion(lambda x, y: 20 * x, 5.0, shape=(63, 31))
    >>> problem.x.shape, problem.y.shape, problem.separable
    ((33,), (65,), True)
    """

    def __init__(
        self,
        f: Values,
        g: Values,
        *,
        shape: tuple[int, int],
        extent: tuple[float, float] = (1.0, 1.0),
        source: Values = 0.0,
        boundary: Values = 0.0,
    ) -> None:
        self.shape = checked_shape(shape)
        self.extent = checked_extent(extent)
        ny, nx = self.shape
        self.x = np.linspace(0.0, self.extent[0], nx + 2)
        self.y = np.linspace(0.0, self.extent[1], ny + 2)
        self.f = _squeeze(self._inside("f", f), 0)
        self.g = _squeeze(self._inside("g", g), 1)
        self.source = self._inside("source", source)
        self._frame = self._boundary(boundary)

    @property
    def spacing(self) -> tuple[float, float]:
        """Spacings h and k of the nodes along x and y."""
        ny, nx = self.shape
        return self.extent[0] / (nx + 1), self.extent[1] / (ny + 1)

    @property
    def separable(self) -> bool:
        """Whether f depends on x only and g on y only."""
        return self.f.shape[0] == 1 and self.g.shape[1] == 1

    def start(self, inside: Values | None = None) -> Array:
        """Return u with its boundary values, and `inside` at the interior nodes.

        Parameters
        ----------
        inside : number, array_like or callable, optional
            In the forms of `source`, or an array of shape (ny + 2, nx + 2), of which only the
            interior nodes are read; 0 by default.

        Returns
        -------
        u : ndarray of float, shape (ny + 2, nx + 2)
            A new array.
        """
        u = self._frame.copy()
        if inside is not None:
            whole = not callable(inside) and np.shape(inside) == u.shape
            part = np.asarray(inside)[1:-1, 1:-1] if whole else inside
            u[1:-1, 1:-1] = self._inside("initial", part)
        return u

    def __repr__(self) -> str:
        ny, nx = self.shape
        return f"SteadyConvectionDiffusion(shape=({ny}, {nx}), extent={self.extent})"

    def _inside(self, name: str, values: Any) -> Array:
        """Return values that broadcast to the interior nodes, two axes each."""
        if callable(values):
            values = values(self.x[None, 1:-1], self.y[1:-1, None])
        return checked_values(name, values, self.shape)

    def _boundary(self, values: Any) -> Array:
        if callable(values):
            values = values(self.x[None, :], self.y[:, None])
        shape = self.shape[0] + 2, self.shape[1] + 2
        frame = np.zeros(shape)
        sides = (np.s_[0, :], np.s_[-1, :], np.s_[:, 0], np.s_[:, -1])
        try:
            whole = np.broadcast_to(np.asarray(values, float), shape)
        except ValueError:
            raise ValueError(
                f"boundary must broadcast to {shape}, got shape {np.shape(values)}"
            ) from None
        for side in sides:
            require(bool(np.isfinite(whole[side]).all()), "boundary must be finite", whole[side])
            frame[side] = whole[side]
        return frame


def checked_shape(shape: Any) -> tuple[int, int]:
    """Return two numbers of nodes, each at least 1, or raise."""
    try:
        ny, nx = shape
    except (TypeError, ValueError):
        raise ValueError(f"shape must be two ints, (ny, nx), got {shape!r}") from None
    return index("shape", ny, 1), index("shape", nx, 1)


def checked_extent(extent: Any) -> tuple[float, float]:
    """Return two positive lengths, or raise."""
    try:
        width, height = extent
    except (TypeError, ValueError):
        raise ValueError(f"extent must be two lengths, got {extent!r}") from None
    for length in (width, height):
        require_finite("extent", length)
        require(length > 0, "extent must be positive", length)
    return float(width), float(height)


def checked_values(name: str, values: Any, shape: tuple[int, int]) -> Array:
    """Return finite values that broadcast to `shape`, as an array of two axes."""
    array = np.atleast_2d(np.asarray(values, float))
    try:
        np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"{name} must broadcast to {shape}, got shape {array.shape}") from None
    bad = ~np.isfinite(array)
    if bad.any():
        place = tuple(map(int, np.argwhere(bad)[0]))
        raise ValueError(f"{name} must be finite, got {array[place]} at {place}")
    return array.copy()


def _squeeze(values: Array, axis: int) -> Array:
    """Reduce an axis along which the values are constant to length 1."""
    first = values.take([0], axis)
    return first if (values == first).all() else values
