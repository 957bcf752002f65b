"""Problem of convection and diffusion: equation, domain, sides and initial values."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._boundary import Boundary, Dirichlet, Neumann
from .._checks import require
from .._data import NodeData, dependence

__all__ = ["SIDES", "ConvectionDiffusion"]

Array = NDArray[np.float64]

SIDES = ("x-", "x+", "y-", "y+")
"""Names of the sides: the lower and the upper end along x, then along y."""

_TERMS = 2
_ZERO = Dirichlet(0.0)


class ConvectionDiffusion:
    r"""A problem of convection and diffusion on a rectangle.

    .. math:: u_t = (a_x u_x - b_x u)_x + (a_y u_y - b_y u)_y + f(x, y, t)

    Velocity, diffusion, source and initial values are numbers, arrays that broadcast to the
    shape of the nodes, (ny + 1, nx + 1) with x along the last axis, or functions of (x, y), of
    (x, y, t) or of (t). Functions of x and y are called with x of shape (1, nx + 1) and y of
    shape (ny + 1, 1). Values that depend on x only, or on y only, are stored as a table of one
    axis.

    Parameters
    ----------
    velocity : (b_x, b_y)
        Each a number, an array or a function.
    diffusion : a or (a_x, a_y)
        Each a number, an array or a function; nowhere negative.
    extent : ((x0, x1), (y0, y1)), default: the unit square
        The rectangle.
    source : number, array, function or sequence of (factor, field), optional
        The source f. A sequence of up to two pairs is the sum of factor times field. A field must
        not depend on time; a factor is a number or a function of t. This form avoids the
        evaluation of the field in each step.
    boundary : Boundary or mapping of str to Boundary, default: Dirichlet(0)
        Boundary condition of all sides, or a mapping with the keys ``"x-"``, ``"x+"``,
        ``"y-"``, ``"y+"`` for one side or ``"x"``, ``"y"`` for both sides of an axis.
        `Dirichlet` gives the value of u, `Neumann` the outward normal derivative of u: a
        number, an array along the side, or a function of (t), (x, y) or (x, y, t) that is
        called with the nodes of the side. A corner node of two Dirichlet sides has the value
        of the side ``"x-"`` or ``"x+"``.
    initial : number, array or function, default: 0
        Values at time 0; a function of (x, y).

    Raises
    ------
    TypeError, ValueError
        If an argument is missing or has the wrong type. Data that depend on the grid are
        checked by the solver.

    See Also
    --------
    GCEIDD : The solver.

    Examples
    --------
    >>> from pysolvers import ConvectionDiffusion
    >>> problem = ConvectionDiffusion(
    ...     (lambda x, y: -4 * y, lambda x, y: 4 * x),
    ...     0.005,
    ...     initial=lambda x, y: (abs(x - 0.5) < 0.1) & (abs(y - 0.5) < 0.1),
    ... )
    """

    def __init__(
        self,
        velocity: Sequence[Any],
        diffusion: Any,
        *,
        extent: Sequence[Sequence[float]] = ((0.0, 1.0), (0.0, 1.0)),
        source: Any = None,
        boundary: Boundary | Mapping[str, Boundary] = _ZERO,
        initial: Any = 0.0,
    ) -> None:
        self._velocity = _pair("velocity", velocity)
        both = isinstance(diffusion, tuple | list)
        self._diffusion = _pair("diffusion", diffusion if both else (diffusion, diffusion))
        self._extent = _checked_extent(extent)
        self._source = _terms(source)
        self._boundary = _by_side(boundary)
        if "t" in dependence("initial", initial):
            raise TypeError("initial must be a number, an array or a function of (x, y)")
        self._initial = initial

    @property
    def extent(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The rectangle: ((x0, x1), (y0, y1))."""
        return self._extent

    @property
    def boundary(self) -> dict[str, Boundary]:
        """Boundary by side, as ``"x-"``, ``"x+"``, ``"y-"``, ``"y+"``."""
        return dict(self._boundary)

    def nodes(self, cells: tuple[int, int]) -> tuple[Array, Array]:
        """Return the coordinates of the nodes of a grid.

        Parameters
        ----------
        cells : (nx, ny)
            Cells along each axis.

        Returns
        -------
        x, y : ndarray of float, shapes (nx + 1,) and (ny + 1,)
            Coordinates along each axis.
        """
        x, y = (np.linspace(*ends, n + 1) for ends, n in zip(self.extent, cells, strict=True))
        return x, y

    def grid_data(self, cells: tuple[int, int]) -> "GridData":
        """Return the data of the problem on a grid, checked.

        Parameters
        ----------
        cells : (nx, ny)
            Cells along each axis.

        Returns
        -------
        data : GridData
            The data in the form that a solver needs.
        """
        return GridData(self, cells)


class GridData:
    """The data of a problem at the nodes of a grid."""

    def __init__(self, problem: ConvectionDiffusion, cells: tuple[int, int]) -> None:
        x, y = problem.nodes(cells)
        place = x[None, :], y[:, None]
        self.cells, self.extent = cells, problem.extent
        self.velocity = [
            NodeData(f"velocity along {axis}", value, *place)
            for axis, value in zip("xy", problem._velocity, strict=True)
        ]
        self.diffusion = [
            NodeData(f"diffusion along {axis}", value, *place, least=0.0)
            for axis, value in zip("xy", problem._diffusion, strict=True)
        ]
        self.fields = [NodeData("source", field, *place) for _, field in problem._source]
        self.factors = [factor for factor, _ in problem._source]
        self.initial = NodeData("initial", problem._initial, *place).at(0.0)
        ends = {
            "x-": (x[None, :1], y[:, None]),
            "x+": (x[None, -1:], y[:, None]),
            "y-": (x[None, :], y[:1, None]),
            "y+": (x[None, :], y[-1:, None]),
        }
        self.kinds = {
            side: "dirichlet" if isinstance(edge, Dirichlet) else "neumann"
            for side, edge in problem.boundary.items()
        }
        self.edges = {
            side: NodeData(f"boundary {side!r}", _edge_value(edge), *ends[side])
            for side, edge in problem.boundary.items()
        }

    @property
    def spacing(self) -> tuple[float, float]:
        """Spacing of the nodes along x and y."""
        (x0, x1), (y0, y1) = self.extent
        return (x1 - x0) / self.cells[0], (y1 - y0) / self.cells[1]

    def factor(self, term: int, time: float) -> float:
        """Return the factor of a term of the source."""
        given = self.factors[term]
        value = float(given(time) if callable(given) else given)
        require(isfinite(value), f"factor {term} of source must be finite", value)
        return value

    def largest(self, name: str, axis: int, time: float) -> float:
        """Return the largest magnitude of velocity or diffusion along an axis."""
        data: NodeData = getattr(self, name)[axis]
        return float(np.abs(data.at(time)).max())


def _pair(name: str, values: Any) -> tuple[Any, Any]:
    if isinstance(values, str | bytes) or not hasattr(values, "__len__") or len(values) != 2:
        raise ValueError(f"{name} must be a pair, along x and along y, got {values!r}")
    for axis, value in zip("xy", values, strict=True):
        dependence(f"{name} along {axis}", value)
    return values[0], values[1]


def _checked_extent(
    extent: Sequence[Sequence[float]],
) -> tuple[tuple[float, float], tuple[float, float]]:
    try:
        (x0, x1), (y0, y1) = extent
        found = (float(x0), float(x1)), (float(y0), float(y1))
    except (TypeError, ValueError):
        raise ValueError(f"extent must be ((x0, x1), (y0, y1)), got {extent!r}") from None
    for low, high in found:
        require(
            isfinite(low) and isfinite(high) and low < high,
            "extent must have x0 < x1 and y0 < y1, all finite",
            extent,
        )
    return found


def _terms(source: Any) -> list[tuple[Any, Any]]:
    """Return the source as factors and fields."""
    if source is None:
        return []
    is_sum = isinstance(source, tuple | list) and all(isinstance(t, tuple | list) for t in source)
    if not is_sum:
        dependence("source", source)
        return [(1.0, source)]
    if len(source) > _TERMS or any(len(term) != 2 for term in source):
        raise ValueError(f"source must have at most {_TERMS} pairs (factor, field), got {source!r}")
    for factor, field in source:
        if dependence("factor of source", factor) not in ("", "t"):
            raise TypeError("a factor of source must be a number or a function of (t)")
        if "t" in dependence("field of source", field):
            raise TypeError("a field of source beside its factor must not depend on time")
    return [(factor, field) for factor, field in source]


def _by_side(boundary: Boundary | Mapping[str, Boundary]) -> dict[str, Boundary]:
    given = boundary if isinstance(boundary, Mapping) else dict.fromkeys("xy", boundary)
    sides: dict[str, Boundary] = {}
    for name, edge in given.items():
        names = (f"{name}-", f"{name}+") if name in ("x", "y") else (name,)
        for side in names:
            require(side in SIDES, f"a side must be one of {', '.join(SIDES)}, x, y", name)
            require(side not in sides, "a side must be given once", side)
            if not isinstance(edge, Dirichlet | Neumann):
                raise ValueError(f"side {side!r} must be Dirichlet or Neumann, got {edge!r}")
            dependence(f"boundary {side!r}", _edge_value(edge))
            sides[side] = edge
    missing = [side for side in SIDES if side not in sides]
    require(not missing, "boundary must have all sides; missing", missing)
    return {side: sides[side] for side in SIDES}


def _edge_value(edge: Any) -> Any:
    return edge.value if isinstance(edge, Dirichlet) else edge.flux
