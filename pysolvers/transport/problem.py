"""Problem of convection and diffusion: equation, domain, sides and initial values."""

from collections.abc import Sequence
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._boundary import OUTFLOW, PERIODIC, Dirichlet, Neumann, Robin, boundary_by_side
from .._checks import require, require_finite, short
from .._data import NodeData, dependence
from .._domain import AXES, checked_extent
from .._functions import arguments_of
from .._repr import ShownAsText

__all__ = ["SIDES", "ConvectionDiffusion"]

Array = NDArray[np.float64]
Part = tuple[slice, slice]
Places = tuple[Array, Array]

_WHOLE = slice(None), slice(None)

SIDES = ("x-", "x+", "y-", "y+")
"""Names of the sides: the lower and the upper end along x, then along y."""

_TERMS = 2
_LEAST_SPACING = 1e-150  # its square is a number


class ConvectionDiffusion(ShownAsText):
    r"""A problem of convection and diffusion on a rectangle or in a box.

    .. math:: u_t = (a_x u_x - b_x u)_x + (a_y u_y - b_y u)_y \;[+\; (a_z u_z - b_z u)_z] + f

    Velocity, diffusion, source and initial values are numbers, arrays that broadcast to the
    shape of the solution, (ny, nx) or (nz, ny, nx), or functions. The parameters of a function must
    be among x, y, z and t, in any order; in two dimensions x has the shape (1, nx) and y the shape
    (ny, 1). Values that depend on x only, or on y only, are stored as a table of one axis. GCEIDD
    solves problems in two dimensions, `AdvectionDiffusion` also those in three.

    Parameters
    ----------
    velocity : (b_x, b_y) or (b_x, b_y, b_z)
        Each a number, an array or a function.
    diffusion : a, (a_x, a_y) or (a_x, a_y, a_z)
        Each a number, an array or a function; nowhere negative.
    extent : ((x0, x1), (y0, y1)[, (z0, z1)]), default: the unit square
        The domain; on a periodic axis the end is the image of the first node.
    source : number, array, function or sequence of (factor, field), optional
        The source f. A sequence of up to two pairs is the sum of factor times field. A field must
        not depend on time; a factor is a number or a function of t. This form avoids the
        evaluation of the field in each step.
    boundary : Dirichlet, Neumann, Robin, 'outflow', 'periodic', number, array, callable or mapping
        Boundary condition of all sides, or a mapping with the keys ``"x-"``, ``"x+"``,
        ``"y-"``, ... for one side or ``"x"``, ``"y"``, ``"z"`` for both sides of an axis. A number,
        an array or a function is a Dirichlet condition. `Dirichlet` gives the value of u,
        `Neumann` the diffusive flux into the domain, :math:`a\,\partial u/\partial n` with the
        outward normal n and the diffusion across the side: a number, an array along the side, or
        a function that is called with the nodes of the side. For `Robin` this flux is
        :math:`h (u_\infty - u)`, and for ``"outflow"`` it is 0: the velocity alone carries u
        through the side. ``"periodic"`` applies to both sides of an axis. A node of two Dirichlet
        sides has the value of that of the earlier axis in the order x, y, z.
    initial : number, array or function, default: 0
        Values at time 0; a function must not depend on t.

    Raises
    ------
    TypeError, ValueError
        If an argument is missing or has the wrong type. Data that depend on the grid are
        checked by the solver.

    See Also
    --------
    GCEIDD, AdvectionDiffusion : The solvers.

    Examples
    --------
    >>> from pysolvers import ConvectionDiffusion
    >>> problem = ConvectionDiffusion(
    ...     (lambda x, y: -4 * y, lambda x, y: 4 * x),
    ...     0.005,
    ...     boundary=0.0,
    ...     initial=lambda x, y: (abs(x - 0.5) < 0.1) & (abs(y - 0.5) < 0.1),
    ... )
    """

    def __init__(
        self,
        velocity: Sequence[Any],
        diffusion: Any,
        *,
        extent: Sequence[Sequence[float]] = ((0.0, 1.0), (0.0, 1.0)),
        boundary: Any,
        source: Any = None,
        initial: Any = 0.0,
    ) -> None:
        self._axes = axes = _axes_of(velocity)
        self._velocity = _per_axis("velocity", velocity, axes)
        is_several = isinstance(diffusion, tuple | list)
        each = diffusion if is_several else (diffusion,) * len(axes)
        self._diffusion = _per_axis("diffusion", each, axes)
        self._extent = tuple(checked_extent(extent, axes).values())
        self._source = _terms(source, axes)
        self._boundary = _by_side(boundary, axes)
        if "t" in dependence("initial", initial, axes):
            names = ", ".join(axes)
            raise TypeError(f"initial must be a number, an array or a function of ({names})")
        self._initial = initial

    def __repr__(self) -> str:
        velocity, diffusion = (
            ", ".join(_word(value) for value in values)
            for values in (self._velocity, self._diffusion)
        )
        sides = ", ".join(
            f"{side} {edge if isinstance(edge, str) else type(edge).__name__}"
            for side, edge in self.boundary.items()
        )
        return (
            f"ConvectionDiffusion(velocity=({velocity}), diffusion=({diffusion}), "
            f"extent={self.extent}): {sides}"
        )

    @property
    def extent(self) -> tuple[tuple[float, float], ...]:
        """The domain: ((x0, x1), (y0, y1)), with three axes also (z0, z1)."""
        return self._extent

    @property
    def boundary(self) -> dict[str, Any]:
        """Condition of each side,  ``"x-"``, ``"x+"``, ``"y-"``, ``"y+"``, ..."""
        return dict(self._boundary)

    def nodes(self, shape: Sequence[int]) -> tuple[Array, ...]:
        """Return the coordinates of the nodes of a grid without periodic axes.

        Parameters
        ----------
        shape : (ny, nx) or (nz, ny, nx)
            Number of nodes along each axis, those on the boundary included.

        Returns
        -------
        x, y, ... : ndarray of float, shapes (nx,), (ny,), ...
            Coordinates along each axis.
        """
        ends = zip(self.extent, reversed(shape), strict=True)
        return tuple(np.linspace(*each, n) for each, n in ends)

    def _grid_data(
        self,
        shape: tuple[int, int],
        part: Part = _WHOLE,
        *,
        sweep: str = "",
        is_held: bool = False,
        time: float = 0.0,
    ) -> "GridData":
        """Return the data of the problem on the nodes of a part of a grid, checked.

        Arrays of the problem are those of the whole grid, of this `shape`. `sweep` is the axis of
        the only sweep that is to change the solution, if there is one; `is_held` says whether the
        sides of the part that are no sides of the grid have given values; `time` is the first time
        at which the data are needed.
        """
        return GridData(self, shape, part, sweep, is_held=is_held, time=time)


def cells_of(problem: ConvectionDiffusion, shape: tuple[int, int]) -> tuple[int, int]:
    """Return the number of cells along x and y: on a periodic axis as many as nodes."""
    across, up = (
        n - (problem.boundary[axis + "-"] != PERIODIC)
        for axis, n in zip("xy", reversed(shape), strict=True)
    )
    return across, up


def _wrapped(values: Array, periodic: tuple[bool, ...]) -> Array:
    """Return values with the first ones once more at the end of periodic axes."""
    pads = [(0, int(is_on and n > 1)) for is_on, n in zip(periodic, values.shape, strict=True)]
    return np.pad(values, pads, mode="wrap") if any(after for _, after in pads) else values


class Wrapped:
    """A quantity with its values at the first nodes once more at the end of periodic axes.

    Parameters
    ----------
    data : NodeData
        The quantity at the nodes.
    periodic : tuple of bool
        Whether the axes y and x are periodic.
    """

    def __init__(self, data: Any, periodic: tuple[bool, ...]) -> None:
        self._data, self._periodic = data, periodic
        self.name, self.varies = data.name, data.varies
        self.shape = tuple(
            n + int(is_on and n > 1) for n, is_on in zip(data.shape, periodic, strict=True)
        )

    def at(self, time: float) -> Array:
        """Return the values at a time, in an array of `shape`."""
        return _wrapped(self._data.at(time), self._periodic)


Quantity = NodeData | Wrapped


class GridData:
    """The data of a problem at the nodes of a grid, or of a part of it.

    For one sweep, velocity and diffusion along the other axis are 0, and so are the derivatives at
    its ends. A side of the part that is not a side of the grid has the derivative 0 as well, or in
    a held grid the initial values.
    """

    def __init__(
        self,
        problem: ConvectionDiffusion,
        shape: tuple[int, int],
        part: Part,
        sweep: str,
        *,
        is_held: bool,
        time: float,
    ) -> None:
        _require_of_plane(problem)
        self._grid, self._part = shape, part
        self.extent = problem.extent[0], problem.extent[1]
        #: Whether the axes y and x, as those of arrays, are periodic.
        self.periodic = tuple(problem.boundary[axis + "-"] == PERIODIC for axis in "yx")
        #: Number of cells of the grid along x and y.
        self.cells = cells_of(problem, shape)
        self._first = time
        for axis, h in zip("xy", self.spacing, strict=True):
            require(
                _LEAST_SPACING <= h <= 1 / _LEAST_SPACING,
                f"extent along {axis}: the spacing must be between {_LEAST_SPACING:g} and "
                f"{1 / _LEAST_SPACING:g}, choose another unit of length",
                h,
            )
        x, y = (
            np.linspace(*ends, cells + 1)[:n]
            for ends, cells, n in zip(self.extent, self.cells, reversed(shape), strict=True)
        )
        #: Coordinates of the nodes of the part.
        self.x, self.y = x[part[1]], y[part[0]]
        whole, place = (x[None, :], y[:, None]), (x[None, part[1]], y[part[0], None])
        self._shape = len(place[1]), place[0].shape[1]
        silent = [axis for axis in "xy" if sweep not in ("", axis)]
        self.velocity: list[Any] = [
            self._node_data(
                f"velocity along {axis}", 0.0 if axis in silent else value, place, whole
            )
            for axis, value in zip("xy", problem._velocity, strict=True)
        ]
        self.diffusion: list[Any] = [
            self._node_data(
                f"diffusion along {axis}", 0.0 if axis in silent else value, place, whole, 0.0
            )
            for axis, value in zip("xy", problem._diffusion, strict=True)
        ]
        self.fields: list[Any] = [
            self._node_data("source", field, place, whole) for _, field in problem._source
        ]
        self.factors = [factor for factor, _ in problem._source]
        self.initial = self._node_data("initial", problem._initial, place, whole).at(0.0)
        self.kinds: dict[str, str] = {}
        self.edges: dict[str, Quantity] = {}
        #: The exchange coefficient of Robin sides over the diffusion there.
        self.exchange: dict[str, Quantity] = {}
        for side, edge in problem.boundary.items():
            is_given = isinstance(edge, Dirichlet) or side[0] not in silent
            at = _at_side(side, place)
            if is_held and not self._has(side):
                self.kinds[side] = "dirichlet"
                values = np.broadcast_to(self.initial, self._shape)[_index_of_side(side)]
                self.edges[side] = NodeData(f"end of the halo {side}", values, *at)
                continue
            own = edge if is_given and self._has(side) else Neumann()
            own = Neumann() if own == OUTFLOW else own
            if own == PERIODIC:
                self.kinds[side] = "periodic"
                self.edges[side] = NodeData(f"boundary {side}", 0.0, *at)
                continue
            self.kinds[side] = type(own).__name__.lower()
            self.edges[side] = self._edge(side, own, at, _at_side(side, whole))
            if isinstance(own, Robin):
                self.exchange[side] = self._exchange(side, own.coefficient, at)
        if any(self.periodic):
            self._wrap_all()

    def _has(self, side: str) -> bool:
        """Whether a side of the grid is a side of the part."""
        axis, end = "yx".index(side[0]), "-+".index(side[1])
        start, stop, _ = self._part[axis].indices(self._grid[axis])
        return (start, self._grid[axis] - stop)[end] == 0

    def _node_data(
        self,
        name: str,
        value: Any,
        places: Places,
        whole: Places,
        least: float = -inf,
        line: int = -1,
    ) -> NodeData:
        """Return a quantity at nodes of the part; an array has its values at those of the grid.

        An array of one dimension lies along the axis `line`.
        """
        if self._shape != self._grid and np.ndim(value) and not callable(value):
            values = NodeData(name, value, *whole, line=line).at(0.0)
            held = zip(self._part, values.shape, strict=True)
            value = values[tuple(own if size > 1 else slice(None) for own, size in held)]
        return NodeData(name, value, *places, least=least, line=line, time=self._first)

    @property
    def nodes(self) -> tuple[int, int]:
        """Nodes of the part along y and x; on a periodic axis the first one twice."""
        (ny, nx), (is_y, is_x) = self._shape, self.periodic
        return ny + is_y, nx + is_x

    def wrapped(self, values: Array) -> Array:
        """Return values at the nodes with the first one once more at the end of periodic axes."""
        return _wrapped(values, self.periodic)

    @property
    def shown(self) -> Part:
        """The nodes along y and x without the second first one of periodic axes."""
        ny, nx = self._shape
        return slice(0, ny), slice(0, nx)

    def _wrap_all(self) -> None:
        """Give all data values at the image of the first node of periodic axes."""
        for data in (self.velocity, self.diffusion, self.fields):
            data[:] = [Wrapped(one, self.periodic) for one in data]
        for sides in (self.edges, self.exchange):
            wrapped = {side: Wrapped(one, self.periodic) for side, one in sides.items()}
            sides.update(wrapped)

    def _exchange(self, side: str, coefficient: Any, places: Places) -> NodeData:
        """Return the coefficient of a Robin side over the diffusion there."""
        name = f"boundary {side}: coefficient of Robin"
        require_finite(name, coefficient)
        require(coefficient >= 0, f"{name} must be at least 0", coefficient)
        return self._over_diffusion(
            f"boundary {side}: Robin", side, lambda t: np.array([[float(coefficient)]]), places
        )

    def _edge(
        self, side: str, edge: Dirichlet | Neumann | Robin, places: Places, whole: Places
    ) -> NodeData:
        """Return the value of u, its outward derivative, or the ambient value."""
        name, line = f"boundary {side}", 0 if side[0] == "x" else 1
        if not isinstance(edge, Neumann):
            value = edge.value if isinstance(edge, Dirichlet) else edge.ambient
            return self._node_data(name, value, places, whole, line=line)
        flux = self._node_data(name, edge.flux, places, whole, line=line)
        if not flux.varies and not flux.at(0.0).any():
            return flux
        what = f"{name}: a flux other than 0"
        return self._over_diffusion(what, side, flux.at, places, varies=flux.varies)

    def _over_diffusion(
        self, what: str, side: str, flux: Any, places: Places, *, varies: bool = False
    ) -> NodeData:
        """Return what a function of time gives at a side, over the diffusion across the side."""
        axis, end = "xy".index(side[0]), "-+".index(side[1])
        across = self.diffusion[axis]
        at: tuple[Any, ...] = (slice(-1, None) if end else slice(1),)
        at = (slice(None), *at) if axis == 0 else at

        def derivative(t: float) -> Array:
            """Return the flux over the diffusion across the side, which must be positive."""
            a = np.broadcast_to(across.at(t), self._shape)[at]
            require(
                bool((a > 0).all()),
                f"{what} needs a positive diffusion along {side[0]}",
                float(a.min()),
            )
            return np.asarray(flux(t) / a)

        is_steady = not varies and not across.varies
        now, name = self._first, f"boundary {side}"
        return NodeData(name, derivative(now) if is_steady else derivative, *places, time=now)

    @property
    def varies(self) -> bool:
        """Whether data change with time."""
        sides = *self.edges.values(), *self.exchange.values()
        fields = *self.velocity, *self.diffusion, *self.fields, *sides
        return any(map(callable, self.factors)) or any(field.varies for field in fields)

    @property
    def spacing(self) -> tuple[float, float]:
        """Spacing of the nodes along x and y."""
        (x0, x1), (y0, y1) = self.extent
        return (x1 - x0) / self.cells[0], (y1 - y0) / self.cells[1]

    def factor(self, term: int, time: float) -> float:
        """Return the factor of a term of the source."""
        given = self.factors[term]
        value = float(given(time) if callable(given) else given)  # its parameter is t or none
        require(isfinite(value), f"factor {term} of source must be finite", value)
        return value

    def largest(self, name: str, axis: int, time: float) -> float:
        """Return the largest magnitude of velocity or diffusion along an axis."""
        data: Quantity = getattr(self, name)[axis]
        return float(np.abs(data.at(time)).max())


def _index_of_side(side: str) -> tuple[slice, slice]:
    """Return the indices along y and x of the nodes of a side."""
    at, every = slice(-1, None) if side[1] == "+" else slice(1), slice(None)
    return (every, at) if side[0] == "x" else (at, every)


def _at_side(side: str, places: Places) -> Places:
    """Return the coordinates along x and y of the nodes of a side."""
    x, y = places
    at = slice(-1, None) if side[1] == "+" else slice(1)
    return (x[:, at], y) if side[0] == "x" else (x, y[at])


def _word(value: Any) -> str:
    """Return a number, or the kind of other data."""
    if callable(value):
        return "function"
    return f"{float(value):g}" if np.ndim(value) == 0 else "array"


def _require_of_plane(problem: ConvectionDiffusion) -> None:
    """Raise ValueError unless GCEIDD solves the problem."""
    if len(problem.extent) != 2:
        raise ValueError(
            f"GCEIDD solves problems of two axes, got {len(problem.extent)} axes: use "
            "AdvectionDiffusion"
        )


def _axes_of(velocity: Any) -> str:
    """Return the names of the axes, of which the velocity has a component each."""
    is_sequence = not isinstance(velocity, str | bytes) and hasattr(velocity, "__len__")
    if not is_sequence or len(velocity) not in (2, 3):
        raise ValueError(
            "velocity must be a pair, along x and along y, or three with one along z, got "
            f"{short(velocity)}"
        )
    return AXES[: len(velocity)]


def _per_axis(name: str, values: Any, axes: str) -> tuple[Any, ...]:
    """Return values along each axis, whose functions have known parameters."""
    is_sequence = not isinstance(values, str | bytes) and hasattr(values, "__len__")
    if not is_sequence or len(values) != len(axes):
        along = " and ".join(f"along {axis}" for axis in axes)
        raise ValueError(f"{name} must be a number, or one {along}, got {short(values)}")
    for axis, value in zip(axes, values, strict=True):
        dependence(f"{name} along {axis}", value, axes)
    return tuple(values)


def _terms(source: Any, axes: str) -> list[tuple[Any, Any]]:
    """Return the source as factors and fields."""
    if source is None:
        return []
    is_sum = isinstance(source, tuple | list) and all(isinstance(t, tuple | list) for t in source)
    if not is_sum:
        dependence("source", source, axes)
        return [(1.0, source)]
    if len(source) > _TERMS or any(len(term) != 2 for term in source):
        raise ValueError(
            f"source must have at most {_TERMS} pairs (factor, field), got {short(source)}"
        )
    for factor, field in source:
        if callable(factor):
            arguments_of("factor of source", factor, "t")
        if "t" in dependence("field of source", field, axes):
            raise TypeError(
                "field of source: a field with a factor must not depend on time: make the factor "
                "a function of t, or pass the field alone as source"
            )
    return [(factor, field) for factor, field in source]


def _by_side(boundary: Any, axes: str) -> dict[str, Any]:
    """Return the condition of each side, whose functions have known parameters."""
    found = boundary_by_side(boundary, axes, named=(OUTFLOW,))
    for side, edge in found.items():
        if isinstance(edge, Dirichlet | Neumann | Robin):
            given = {Dirichlet: "value", Neumann: "flux", Robin: "ambient"}[type(edge)]
            dependence(f"boundary {side}", getattr(edge, given), axes)
    return found
