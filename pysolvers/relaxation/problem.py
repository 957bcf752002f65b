"""Steady convection and diffusion on a rectangle: the equation and its nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._boundary import condition_of, sides_of
from .._checks import index, real_array, require, short
from .._domain import checked_extent, exactly_one, per_axis
from .._errors import CoarseGridWarning, warn_user
from .._functions import call
from .._options import check_choice
from .._repr import ShownAsText

__all__ = ["Differences", "SteadyConvectionDiffusion"]

Array = NDArray[np.float64]
Values = ArrayLike | Callable[..., ArrayLike]
Differences = Literal["central", "upwind"]

_DIFFERENCES = {"central": 0, "upwind": 1}
_PECLET = 2.0  # cell Peclet number above which central differences oscillate


class SteadyConvectionDiffusion(ShownAsText):
    r"""Steady convection and diffusion with given boundary values.

    .. math:: u_{xx} + u_{yy} - f(x, y)\, u_x - g(x, y)\, u_y + s(x, y) = 0

    on a rectangle. Node (i, j) is at ``(x[i], y[j])``; the first axis of arrays is y.

    Parameters
    ----------
    f, g : number, array_like or callable
        Convection along x and y: a number, an array that broadcasts to `shape` or to the interior
        nodes, or a function of coordinates; only the values at interior nodes are used.
    shape : (ny, nx)
        Number of nodes along y and x, those on the boundary included: the shape of the solution.
        Each at least 3.
    extent : ((x0, x1), (y0, y1)), optional
        Ends of the rectangle along x and y.
    spacing : float, (hx, hy) or mapping, optional
        Instead of `extent`: distance of the nodes. The first node then lies at 0.
    source : number, array_like or callable, default: 0
        The source s, in the forms of `f`; u is larger where it is positive.
    boundary : number, array_like, callable, Dirichlet or mapping
        Values of u on the boundary: a number, an array that broadcasts to `shape`, of which only
        the boundary nodes are read, a function of coordinates, `Dirichlet` with one of these; or
        a mapping with the keys ``"x-"``, ``"x+"``, ``"y-"``, ``"y+"``, ``"x"``, ``"y"``, with
        arrays along the side. A corner node has the value of the side ``"y-"`` or ``"y+"`` of a
        mapping.
    differences : {'central', 'upwind'}, optional
        Differences of the convection. Central ones, the default, are of second order, but the
        solution oscillates from node to node if a cell Péclet number, h abs(f) or k abs(g) with
        the spacings h and k, exceeds 2; this causes a `CoarseGridWarning` unless ``'central'`` is
        given. Upwind differences are of first order and never oscillate: they add the diffusion
        h abs(f)/2 along x and k abs(g)/2 along y.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or shape, is out of range, or has values that are
        not finite; the message names the rule and the value.

    See Also
    --------
    LMSOR : The solver.

    Notes
    -----
    The parameters of a function must be among x and y, in any order. It is called with x of shape
    (1, n) and y of shape (m, 1).

    Examples
    --------
    >>> from pysolvers import SteadyConvectionDiffusion
    >>> problem = SteadyConvectionDiffusion(
    ...     lambda x: 20 * x, 5.0, shape=(65, 33), extent=((0, 1), (0, 2)), boundary=0.0
    ... )
    >>> problem.x.shape, problem.y.shape, problem.separable
    ((33,), (65,), True)
    """

    def __init__(
        self,
        f: Values,
        g: Values,
        *,
        shape: Sequence[int],
        extent: Sequence[Any] | None = None,
        spacing: float | Sequence[float] | Mapping[str, float] | None = None,
        boundary: Any,
        source: Values = 0.0,
        differences: Differences | None = None,
    ) -> None:
        exactly_one("SteadyConvectionDiffusion", spacing, extent)
        ny, nx = self.shape = checked_shape(shape, 3)
        if spacing is not None:
            h, k = per_axis("spacing", spacing, "xy")
            extent = (0.0, (nx - 1) * h), (0.0, (ny - 1) * k)
        self.extent = checked_pairs(extent)
        check_choice("differences", differences or "central", _DIFFERENCES)
        self.differences: Differences = differences or "central"
        self.x = np.linspace(*self.extent[0], nx)
        self.y = np.linspace(*self.extent[1], ny)
        self.f = _squeeze(self._inside("f", f), 0)
        self.g = _squeeze(self._inside("g", g), 1)
        self.source = self._inside("source", source)
        self._frame = self._boundary(boundary)
        if differences is None and self.cell_peclet > _PECLET:
            warn_user(
                f"SteadyConvectionDiffusion: the cell Peclet number is {self.cell_peclet:.3g}, and "
                f"above {_PECLET:g} central differences oscillate from node to node: take more "
                "nodes, or differences='upwind' of first order, or differences='central' to keep "
                "them without this warning",
                CoarseGridWarning,
            )

    @property
    def spacing(self) -> tuple[float, float]:
        """Spacings h and k of the nodes along x and y."""
        (ny, nx), ((x0, x1), (y0, y1)) = self.shape, self.extent
        return (x1 - x0) / (nx - 1), (y1 - y0) / (ny - 1)

    @property
    def interior(self) -> tuple[int, int]:
        """Number of interior nodes along y and x."""
        return self.shape[0] - 2, self.shape[1] - 2

    @property
    def cell_peclet(self) -> float:
        """Largest cell Péclet number, h abs(f) or k abs(g)."""
        h, k = self.spacing
        return max(h * float(np.abs(self.f).max()), k * float(np.abs(self.g).max()))

    @property
    def separable(self) -> bool:
        """Whether f depends on x only and g on y only."""
        return self.f.shape[0] == 1 and self.g.shape[1] == 1

    def _start(self, inside: Values | None = None) -> Array:
        """Return u with its boundary values, and `inside` at the interior nodes.

        Parameters
        ----------
        inside : number, array_like or callable, optional
            In the forms of `source`; 0 by default.

        Returns
        -------
        u : ndarray of float, shape (ny, nx)
            A new array.
        """
        u = self._frame.copy()
        if inside is not None:
            u[1:-1, 1:-1] = self._inside("initial", inside)
        return u

    def __repr__(self) -> str:
        return (
            f"SteadyConvectionDiffusion(shape={self.shape}, extent={self.extent}, "
            f"differences={self.differences!r}): cell Peclet number {self.cell_peclet:.3g}"
        )

    def _inside(self, name: str, values: Any) -> Array:
        """Return values that broadcast to the interior nodes, two axes each."""
        if callable(values):
            places = {"x": self.x[None, 1:-1], "y": self.y[1:-1, None]}
            return checked_values(name, call(name, values, places), self.interior)
        array = np.atleast_2d(real_array(name, values))
        # An array over all nodes is one in which an axis has the length of `shape`.
        if np.ndim(array) == 2 and any(
            size == n for size, n in zip(array.shape, self.shape, strict=True)
        ):
            checked = checked_values(name, array, self.shape, finite=False)
            array = checked[
                tuple(slice(1, -1) if size > 1 else slice(None) for size in checked.shape)
            ]
        return checked_values(name, array, self.interior)

    def _boundary(self, given: Any) -> Array:
        """Return values on the frame, 0 inside; at corners those of the later side remain."""
        frame = np.zeros(self.shape)
        sides = {
            "x-": np.s_[:, :1],
            "x+": np.s_[:, -1:],
            "y-": np.s_[:1, :],
            "y+": np.s_[-1:, :],
        }
        x, y = self.x[None, :], self.y[:, None]
        by_side = isinstance(given, Mapping)
        for side, one in sides_of(given, "xy").items():
            name = f"boundary {side}" if by_side else "boundary"
            values = condition_of(side, one, "Dirichlet").value
            if callable(values):
                rows, columns = sides[side]
                values = call(name, values, {"x": x[:, columns], "y": y[rows]})
            elif by_side:
                line = real_array(name, values)
                values = line[:, None] if side[0] == "x" and line.ndim == 1 else line
            else:
                values = _broadcast(name, values, self.shape)[sides[side]]
            part = frame[sides[side]]
            part[...] = _broadcast(name, values, part.shape)
            require(bool(np.isfinite(part).all()), f"{name} must be finite", part)
        return frame


def checked_shape(shape: Any, least: int) -> tuple[int, int]:
    """Return two numbers of nodes or cells, each at least `least`, or raise."""
    try:
        ny, nx = shape
    except (TypeError, ValueError):
        raise ValueError(f"shape must be two ints, (ny, nx), got {short(shape)}") from None
    return index("shape", ny, least), index("shape", nx, least)


def checked_pairs(extent: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ends along x and y, or raise."""
    found = checked_extent(extent, "xy")
    return found["x"], found["y"]


def _broadcast(name: str, values: Any, shape: tuple[int, ...]) -> Array:
    """Return real values with the shape of the grid, or raise with both shapes."""
    found = real_array(name, values)
    try:
        return np.broadcast_to(found, shape)
    except ValueError:
        text = f"got shape {np.shape(values)}"
        raise ValueError(f"{name} must broadcast to {shape}, {text}") from None


def checked_values(name: str, values: Any, shape: tuple[int, int], *, finite: bool = True) -> Array:
    """Return values that broadcast to `shape`, finite if wanted, as an array of two axes."""
    array = np.atleast_2d(real_array(name, values))
    try:
        np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"{name} must broadcast to {shape}, got shape {array.shape}") from None
    bad = ~np.isfinite(array)
    if finite and bad.any():
        place = tuple(map(int, np.argwhere(bad)[0]))
        raise ValueError(f"{name} must be finite, got {array[place]} at {place}")
    return array.copy()


def _squeeze(values: Array, axis: int) -> Array:
    """Reduce an axis along which the values are constant to length 1."""
    first = values.take([0], axis)
    return first if (values == first).all() else values
