"""Steady convection and diffusion on a rectangle: the equation and its nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._boundary import OUTFLOW, PERIODIC, Dirichlet, Neumann, Robin, boundary_by_side
from .._checks import index, real_array, require, require_all_finite, require_finite, short
from .._domain import checked_extent, exactly_one, per_axis
from .._errors import CoarseGridWarning, warn_user
from .._functions import call
from .._options import check_choice
from .._repr import ShownAsText
from .._solver.schema import Line, NotNegative

__all__ = ["Differences", "SteadyConvectionDiffusion"]

Array = NDArray[np.float64]
Values = ArrayLike | Callable[..., ArrayLike]
Differences = Literal["central", "upwind"]

_Kind = Literal["Dirichlet", "Neumann", "Robin", "periodic"]
_DIFFERENCES = {"central": 0, "upwind": 1}
MOST_PECLET = 2.0  # cell Peclet number above which central differences oscillate


@dataclass(frozen=True, kw_only=True)
class AlongSides:
    """Fluxes of `Neumann` and ambient values of `Robin` sides at their nodes; 0 on others."""

    west: Line
    east: Line
    south: Line
    north: Line


Four = tuple[_Kind, _Kind, _Kind, _Kind]


@dataclass(frozen=True, kw_only=True)
class SavedSides:
    """Conditions of the sides x-, x+, y- and y+ in a file.

    Parameters
    ----------
    kinds : tuple of str
        Names of the conditions.
    coefficients : tuple of float
        Of `Robin` sides; 0 of others.
    """

    kinds: Four
    coefficients: tuple[NotNegative, NotNegative, NotNegative, NotNegative]


def saved_sides(problem: SteadyConvectionDiffusion) -> dict[str, Any]:
    """Return what a file holds of the sides: ``sides``, and ``along`` with their values."""
    sides, (ny, nx) = problem._sides, problem.shape
    lengths = {"x": ny, "y": nx}
    names = (each.name for each in fields(AlongSides))
    lines = {
        name: problem._fluxes.get(side, np.zeros(lengths[side[0]]))
        for name, side in zip(names, sides, strict=True)
    }
    kinds: Any = tuple(
        one if isinstance(one, str) else type(one).__name__ for one in sides.values()
    )
    numbers: Any = tuple(_coefficient(one) for one in sides.values())
    return {"sides": SavedSides(kinds=kinds, coefficients=numbers), "along": AlongSides(**lines)}


def boundary_of(sides: SavedSides, along: AlongSides, frame: Array) -> Any:
    """Return saved conditions as an argument of `SteadyConvectionDiffusion`."""
    if all(kind == "Dirichlet" for kind in sides.kinds):
        return frame
    lines = along.west, along.east, along.south, along.north
    edges = frame[:, 0], frame[:, -1], frame[0], frame[-1]
    made: dict[str, Any] = {
        "Dirichlet": lambda k: Dirichlet(edges[k]),
        "Neumann": lambda k: Neumann(lines[k]),
        "Robin": lambda k: Robin(sides.coefficients[k], lines[k]),
        "periodic": lambda k: PERIODIC,
    }
    return {side: made[sides.kinds[k]](k) for k, side in enumerate(("x-", "x+", "y-", "y+"))}


class SteadyConvectionDiffusion(ShownAsText):
    r"""Steady convection and diffusion on a rectangle.

    .. math:: u_{xx} + u_{yy} - f(x, y)\, u_x - g(x, y)\, u_y + s(x, y) = 0

    with values, fluxes or exchange given on the sides, or periodic axes. Node (i, j) is at
    ``(x[i], y[j])``; the first axis of arrays is y.

    Parameters
    ----------
    f, g : number, array_like or callable
        Convection along x and y: a number, an array that broadcasts to `shape` or to the nodes
        where u is unknown, or a function of coordinates; only the values at these nodes are used.
    shape : (ny, nx)
        Number of nodes along y and x, those on the boundary included: the shape of the solution.
        Each at least 3.
    extent : ((x0, x1), (y0, y1)), optional
        Ends of the rectangle along x and y. The end of a periodic axis is the image of its first
        node, and no node.
    spacing : float, (hx, hy) or mapping, optional
        Instead of `extent`: distance of the nodes. The first node then lies at 0.
    source : number, array_like or callable, default: 0
        The source s, in the forms of `f`; u is larger where it is positive.
    boundary : Dirichlet, Neumann, Robin, 'outflow', 'periodic', number, array, callable or mapping
        Condition of all sides: values of u as a number, an array that broadcasts to `shape`, of
        which only the boundary nodes are read, a function of coordinates, or `Dirichlet` with one
        of these; `Neumann` with :math:`\partial u/\partial n`, or `Robin` with
        :math:`\partial u/\partial n = h (u_\infty - u)`; ``"outflow"``, which is ``Neumann()``;
        ``"periodic"``. Or a mapping with the
        keys ``"x-"``, ``"x+"``, ``"y-"``, ``"y+"``, ``"x"``, ``"y"``, with arrays along the side.
        A corner node
        has the value of the side ``"y-"`` or ``"y+"`` of a mapping, or of the one side with given
        values. At least one side must be neither `Neumann` nor periodic.
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

    At `Neumann` and `Robin` sides the equation holds at the nodes of the side too: the central
    difference of the condition gives the value beyond the side, so that the order is 2. Fluid of
    the value :math:`u_\infty` that flows in through a side, with the flux
    :math:`b u - \partial u/\partial n` conserved, is ``Robin(b, u)`` with the speed b of the
    convection into the domain (Danckwerts 1953).

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
        given = boundary_by_side(boundary, "xy", named=(OUTFLOW,))
        self._sides: dict[str, Any] = {
            side: Neumann() if one == OUTFLOW else one for side, one in given.items()
        }
        #: Number of intervals along x and y.
        across, up = (n - (not self._is_periodic(axis)) for n, axis in ((nx, "x"), (ny, "y")))
        if spacing is not None:
            h, k = per_axis("spacing", spacing, "xy")
            extent = (0.0, across * h), (0.0, up * k)
        self.extent = checked_pairs(extent)
        check_choice("differences", differences or "central", _DIFFERENCES)
        self.differences: Differences = differences or "central"
        self.x = np.linspace(*self.extent[0], across + 1)[:nx]
        self.y = np.linspace(*self.extent[1], up + 1)[:ny]
        self._unknown = tuple(
            slice(self._is_given(axis + "-"), n - self._is_given(axis + "+"))
            for n, axis in ((ny, "y"), (nx, "x"))
        )
        self.f = _squeeze(self._inside("f", f), 0)
        self.g = _squeeze(self._inside("g", g), 1)
        self.source = self._inside("source", source)
        self._frame, self._fluxes = self._boundary(isinstance(boundary, Mapping))
        fixes = (isinstance(one, Dirichlet) or _coefficient(one) for one in self._sides.values())
        rule = "boundary must fix u at one side at least, by a value or Robin"
        require(any(fixes), rule, "Neumann or periodic on all sides")
        if differences is None and self.cell_peclet > MOST_PECLET:
            warn_user(
                f"SteadyConvectionDiffusion: the cell Peclet number is {self.cell_peclet:.3g}, and "
                f"above {MOST_PECLET:g} central differences oscillate from node to node: take more "
                "nodes, or differences='upwind' of first order, or differences='central' to keep "
                "them without this warning",
                CoarseGridWarning,
            )

    @property
    def spacing(self) -> tuple[float, float]:
        """Spacings h and k of the nodes along x and y."""
        (ny, nx), ((x0, x1), (y0, y1)) = self.shape, self.extent
        across, up = (n - (not self._is_periodic(axis)) for n, axis in ((nx, "x"), (ny, "y")))
        return (x1 - x0) / across, (y1 - y0) / up

    @property
    def interior(self) -> tuple[int, int]:
        """Number of nodes along y and x at which u is unknown: not on sides with given values."""
        rows, columns = self._unknown
        return rows.stop - rows.start, columns.stop - columns.start

    @property
    def cell_peclet(self) -> float:
        """Largest cell Péclet number, h abs(f) or k abs(g)."""
        h, k = self.spacing
        return max(h * float(np.abs(self.f).max()), k * float(np.abs(self.g).max()))

    @property
    def _inflows(self) -> list[str]:
        """Sides without given values through which fluid enters, cell Péclet numbers above 2."""
        found = []
        for side in self._sides:
            place, last = "yx".index(side[0]), side[1] == "+"
            if self._is_given(side) or self._is_periodic(side[0]):
                continue
            speed = np.broadcast_to(self.f if place else self.g, self.interior)
            inward = speed.take(-1 if last else 0, place) * (-1 if last else 1)
            if self.spacing["xy".index(side[0])] * float(inward.max()) > MOST_PECLET:
                found.append(side)
        return found

    @property
    def separable(self) -> bool:
        """Whether f depends on x only and g on y only."""
        return self.f.shape[0] == 1 and self.g.shape[1] == 1

    def _start(self, inside: Values | None = None) -> Array:
        """Return a new u with its boundary values, and `inside`, by default 0, at other nodes."""
        u = self._frame.copy()
        if inside is not None:
            u[self._unknown] = self._inside("initial", inside)
        return u

    def __repr__(self) -> str:
        kinds = (
            f"{side} {one if isinstance(one, str) else type(one).__name__}"
            for side, one in self._sides.items()
        )
        sides = f", {', '.join(kinds)}" if self._is_sided else ""
        return (
            f"SteadyConvectionDiffusion(shape={self.shape}, extent={self.extent}, "
            f"differences={self.differences!r}): cell Peclet number {self.cell_peclet:.3g}{sides}"
        )

    def _is_periodic(self, axis: str) -> bool:
        """Whether an axis is periodic."""
        return isinstance(self._sides[axis + "-"], str)

    def _is_given(self, side: str) -> bool:
        """Whether the values of u on a side are given."""
        return isinstance(self._sides[side], Dirichlet)

    @property
    def _is_sided(self) -> bool:
        """Whether a side has no given values."""
        return not all(map(self._is_given, self._sides))

    def _inside(self, name: str, values: Any) -> Array:
        """Return values that broadcast to the nodes where u is unknown, two axes each."""
        if callable(values):
            rows, columns = self._unknown
            places = {"x": self.x[None, columns], "y": self.y[rows, None]}
            return checked_values(name, call(name, values, places), self.interior)
        array = np.atleast_2d(real_array(name, values))
        # An array over all nodes is one in which an axis has a length of `shape` only.
        if np.ndim(array) == 2 and any(
            size == n != inner
            for size, n, inner in zip(array.shape, self.shape, self.interior, strict=True)
        ):
            checked = checked_values(name, array, self.shape, finite=False)
            parts = zip(self._unknown, checked.shape, strict=True)
            array = checked[tuple(part if size > 1 else slice(None) for part, size in parts)]
        return checked_values(name, array, self.interior)

    def _boundary(self, by_side: bool) -> tuple[Array, dict[str, Array]]:
        """Return values on the frame, and the fluxes or ambient values at the nodes of sides.

        The frame is 0 inside; at corners the values of the later side remain. `by_side` says
        whether the condition was a mapping.
        """
        frame, fluxes = np.zeros(self.shape), {}
        sides = {
            "x-": np.s_[:, :1],
            "x+": np.s_[:, -1:],
            "y-": np.s_[:1, :],
            "y+": np.s_[-1:, :],
        }
        x, y = self.x[None, :], self.y[:, None]
        for side, one in self._sides.items():
            if one == PERIODIC:
                continue
            name = f"boundary {side}" if by_side else "boundary"
            is_given = isinstance(one, Dirichlet)
            _coefficient(one)
            values = one.value if is_given else one.ambient if _is_robin(one) else one.flux
            if callable(values):
                rows, columns = sides[side]
                values = call(name, values, {"x": x[:, columns], "y": y[rows]})
            elif by_side or not is_given:
                line = real_array(name, values)
                values = line[:, None] if side[0] == "x" and line.ndim == 1 else line
            else:
                values = _broadcast(name, values, self.shape)[sides[side]]
            part = frame[sides[side]] if is_given else np.empty_like(frame[sides[side]])
            part[...] = _broadcast(name, values, part.shape)
            require_all_finite(name, part)
            if not is_given:
                fluxes[side] = part.ravel()
        return frame, fluxes


def _is_robin(condition: Any) -> bool:
    """Return whether a condition has an exchange."""
    return isinstance(condition, Robin)


def _coefficient(condition: Any) -> float:
    """Return the coefficient of a Robin side, 0 of others, or raise."""
    if not isinstance(condition, Robin):
        return 0.0
    require_finite("coefficient of Robin", condition.coefficient)
    rule = "coefficient of Robin must be at least 0"
    require(condition.coefficient >= 0, rule, condition.coefficient)
    return float(condition.coefficient)


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
    if finite:
        require_all_finite(name, array)
    return array.copy()


def _squeeze(values: Array, axis: int) -> Array:
    """Reduce an axis along which the values are constant to length 1."""
    first = values.take([0], axis)
    return first if (values == first).all() else values
