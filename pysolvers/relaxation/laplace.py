"""Red-black SOR for heat conduction in a plate."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, cos, log, pi, sin, sqrt, tan
from time import perf_counter
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .._boundary import PERIODIC, Boundary, Neumann, Robin, boundary_by_side, condition_of, sides_of
from .._checks import require, require_finite, require_scale
from .._domain import exactly_one, per_axis
from .._functions import call
from .._runtime.fp_mode import in_default_fp_mode
from .._solver.exclusive import exclusive
from .._solver.files import SavedFile
from .._solver.schema import Line, NotNegative, Scale, Table, checks_of
from .._solver.stall import FALL
from ..distributed import Group, Slab
from ..distributed._group import agreement_of, own_device
from ._base import Omega, Relaxation, RelaxationSettings, RelaxationState, Stop
from ._colours import ColourGrid, split_by_parity
from ._result import RelaxationResult
from ._rows import periodic_codes, rows_of
from .problem import (
    checked_pairs,
    checked_shape,
    checked_values,
)

__all__ = ["RedBlackSOR", "solve_laplace"]

_SIDES = ("x-", "x+", "y-", "y+")
# Iterations times (1 - radius). The iteration matrix of the best omega is far from normal: before
# the residual falls, it can grow by a factor of the order of the aspect ratio of the cells.
_PATIENCE = 12.0
_LONGEST = 1e9  # iterations

Array = NDArray[np.float64]
Sides = Mapping[str, Boundary | ArrayLike]


@dataclass(frozen=True, slots=True, eq=False)
class _Wall:
    """-S_P and S_u of the cells at a side, both divided by the coefficient a between cells.

    A side of a periodic axis has none: its cells have neighbours.
    """

    exchange: float
    heat: Array
    is_periodic: bool = False


@dataclass(frozen=True, kw_only=True)
class RedBlackSettings(RelaxationSettings):
    """Parameters of `RedBlackSOR`; see there."""

    shape: Any
    extent: Any
    spacing: Any
    conductivity: Scale
    omega: Literal["optimal"] | Omega

    # Options of pysolvers.papers.survey2014, whose settings have them as fields.
    variant = "auto"
    coefficients = "tables"

    def _check(self) -> None:
        self._set("shape", checked_shape(self.shape, 1))
        exactly_one("RedBlackSOR", self.spacing, self.extent)
        if self.spacing is not None:
            self._set("spacing", per_axis("spacing", self.spacing, "xy"))
        else:
            self._set("extent", checked_pairs(self.extent))
        for axis, step in zip("xy", self.steps, strict=True):
            require_scale(f"the size of a cell along {axis}", step)

    @property
    def is_interleaved(self) -> bool:
        """Whether one array has both colours."""
        return False

    @property
    def ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Ends of the plate along x and y."""
        if self.extent is None:
            (ny, nx), (h, k) = self.shape, self.spacing
            return (0.0, nx * h), (0.0, ny * k)
        low_high: tuple[tuple[float, float], tuple[float, float]] = self.extent
        return low_high

    @property
    def steps(self) -> tuple[float, float]:
        """Sizes of a cell along x and y."""
        ((x0, x1), (y0, y1)), (ny, nx) = self.ends, self.shape
        return (x1 - x0) / nx, (y1 - y0) / ny


@dataclass(frozen=True, kw_only=True)
class Walls:
    """Heat of the walls: S_u/a of the cells at each side."""

    west: Line
    east: Line
    south: Line
    north: Line


@dataclass(frozen=True, kw_only=True)
class RedBlackState(RelaxationState):
    """What `save` writes of `RedBlackSOR`.

    Parameters
    ----------
    heat : Walls
        S_u/a at the walls.
    exchange : tuple of float
        -S_P/a at the walls, in the order of `heat`.
    periodic : tuple of bool
        Whether the axes x and y are periodic.
    source : ndarray
        The source at the cells.
    """

    settings: RedBlackSettings
    exchange: tuple[NotNegative, NotNegative, NotNegative, NotNegative]
    heat: Walls
    periodic: tuple[bool, bool]
    source: Table

    _KIND = "pysolvers red-black SOR state"
    _INSIDE = ("source",)

    @property
    def interior(self) -> tuple[int, int]:
        shape: tuple[int, int] = self.settings.shape
        return shape

    @property
    def walls(self) -> dict[str, _Wall]:
        """The walls by side."""
        heat = self.heat
        lines = heat.west, heat.east, heat.south, heat.north
        along = [self.periodic["xy".index(side[0])] for side in _SIDES]
        parts = zip(self.exchange, lines, along, strict=True)
        return dict(zip(_SIDES, itertools.starmap(_Wall, parts), strict=True))

    def _check(self, saved: SavedFile) -> None:
        super()._check(saved)
        ny, nx = self.interior
        for name, cells in (("west", ny), ("east", ny), ("south", nx), ("north", nx)):
            saved.require_array(f"heat_{name}", getattr(self.heat, name), (cells,), np.float64)
        rule = "exchange must have a positive entry"
        saved.require(any(self.exchange), "header", rule)


class RedBlackSOR(Relaxation):
    r"""Steady heat conduction in a rectangular plate by finite volumes and red-black SOR.

    .. math:: k\, (T_{xx} + T_{yy}) + q = 0, \qquad
        a_P T_P = a_W T_W + a_E T_E + a_S T_S + a_N T_N + S_u,

    with :math:`a_W = a_E = k\, \Delta y / \Delta x`, :math:`a_S = a_N = k\, \Delta x / \Delta y`
    between cells, and :math:`a_P = \sum a - S_P`. A wall is half a cell from the centres of
    its cells. It adds to :math:`S_u` and :math:`-S_P` of these cells, which have no
    coefficient towards the wall. In a corner cell the contributions of both walls add up.

    Parameters
    ----------
    shape : (ny, nx)
        Number of cells along y and x, the shape of the solution; each at least 1.
    extent : ((x0, x1), (y0, y1)), optional
        Ends of the plate along x and y.
    spacing : float, (hx, hy) or mapping, optional
        Instead of `extent`: size of the cells. The plate then begins at 0.
    conductivity : float, default: 1
        Conductivity k of the plate; positive.
    boundary : Dirichlet, Neumann, Robin, 'periodic', number, array, callable or mapping
        Condition of all sides, or a mapping with the keys ``"x-"``, ``"x+"``, ``"y-"``, ``"y+"``
        for one side or ``"x"``, ``"y"`` for both sides of an axis; required. ``"periodic"`` joins
        both sides of an axis, which then has an even number of cells; on the CPU only. A number,
        an array or a function is a Dirichlet condition. `Neumann` gives the inflow
        :math:`k\,\partial T/\partial n`. Arrays have one entry per cell along the side;
        functions are called with the coordinates of the centres of the faces. At least one side
        must be neither `Neumann` nor periodic.
    source : number, array_like or callable, default: 0
        Heat source q per area: a number, an array that broadcasts to `shape`, or a function of
        coordinates.
    omega : float or 'optimal', default: 'optimal'
        Relaxation parameter between 0 and 2. The optimal value is
        :math:`2 / (1 + \sqrt{1 - \rho^2})`, where :math:`\rho` is the spectral radius of the
        Jacobi iteration, estimated by one eigenvalue along each axis; see Notes. For N x N cells
        and Dirichlet sides it is :math:`2 / (1 + \sin(\pi / N))`.
    dtype : dtype, default: float64
        Dtype of the field: float32 or float64.
    device : str, optional
        ``'cpu'``, the default, ``'cuda'`` or ``'cuda:1'``, ...
    threads : int, optional
        Number of host threads; the backend chooses the default. The result has the same
        bits for any number.
    initial : number, array_like or callable, optional
        Initial temperature, in the forms of `source`; 0 by default.
    group : pysolvers.distributed.Group, optional
        Processes that each hold rows of the cells and iterate together, as in `LMSOR`: at least
        three rows each. All parameters are those of the whole plate.
    split : pysolvers.distributed.Slab, optional
        With `group`, the axis of the rows: ``Slab(0)``.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range; the message names the rule
        and the value.
    BackendError
        If the device is not available.

    See Also
    --------
    solve_laplace : Create a solver and solve in one call.
    LMSOR : Red-black relaxation for convection and diffusion on nodes.

    Notes
    -----
    The parameters of a function must be among x and y, in any order. It is called with x of shape
    (1, nx) and y of shape (ny, 1).

    With the residual :math:`r = S_u + \sum a T - a_P T_P`, `solve` measures
    :math:`\|r\| / \|S_u\|`, by default in the l2 norm, or :math:`\|r\|` if
    :math:`S_u = 0`. The criterion ``'change'`` is not scaled: with a fixed `omega` on a fine
    grid, the change per iteration is small long before the residual is small.

    For ``omega='optimal'``

    .. math:: 1 - \rho = \frac{a_x (1 - \cos \theta_x) + a_y (1 - \cos \theta_y)}{a_x + a_y}

    with the coefficients :math:`a_x = a_W = a_E`, :math:`a_y = a_S = a_N`, and the smallest
    eigenvalue :math:`2 - 2 \cos \theta` of the second difference along an axis, walls included:
    :math:`\theta = \pi / n` for n cells between two sides of given temperature,
    :math:`\pi / (2 n)` with one of them, 0 with none or for a periodic axis, and a value in between
    for `Robin`, small if
    its coefficient times the size of a cell is small with respect to k. An iteration multiplies the
    error by about omega - 1. It takes many iterations to solve for a plate whose temperature is
    fixed by little exchange, or by a distant side only; `FastPoisson` solves without iterations
    where it has the sides.

    Examples
    --------
    >>> from pysolvers import RedBlackSOR
    >>> sides = {"x": 0.0, "y-": 0.0, "y+": 1.0}
    >>> plate = RedBlackSOR((64, 64), extent=((0, 1), (0, 1)), boundary=sides)
    >>> result = plate.solve(1e-9)
    >>> print(f"{result.u[31:33, 31:33].mean():.4f}")
    0.2500
    """

    _SETTINGS: ClassVar[Any] = RedBlackSettings
    _STATE: ClassVar[Any] = RedBlackState
    _NORM = "l2"

    extent: tuple[tuple[float, float], tuple[float, float]] | None
    spacing: tuple[float, float] | None
    conductivity: float
    boundary: Any
    source: Any
    initial: Any

    @in_default_fp_mode
    def __init__(
        self,
        shape: Sequence[int],
        *,
        extent: Sequence[Any] | None = None,
        spacing: float | Sequence[float] | Mapping[str, float] | None = None,
        conductivity: float = 1.0,
        boundary: Boundary | Sides | ArrayLike | Any,
        source: ArrayLike | Any = 0.0,
        omega: float | Literal["optimal"] = "optimal",
        dtype: DTypeLike = np.float64,
        device: str | None = None,
        threads: int | None = None,
        initial: ArrayLike | Any = None,
        group: Group | None = None,
        split: Slab | None = None,
    ) -> None:
        start = perf_counter()
        data = {"boundary": boundary, "source": source, "initial": initial}
        self._data_given = {**data, "group": group, "split": split}
        with agreement_of(group, "RedBlackSOR") as agreed:
            settings = self._SETTINGS(
                **self._experiment,
                shape=shape,
                extent=extent,
                spacing=spacing,
                conductivity=conductivity,
                omega=omega,
                dtype=dtype,
                device=own_device(device, group),
                threads=threads,
            )
            ny, nx = self._shape = settings.shape
            real, (dx, dy) = np.dtype(settings.dtype), settings.steps
            self._extent, k = settings.ends, settings.conductivity
            (x0, _), (y0, _) = self._extent
            self._x, self._y = x0 + _centres(nx, dx), y0 + _centres(ny, dy)
            self._a = k * dy / dx, k * dx / dy
            self._walls = walls = self._find_walls(boundary, (dx / k, dy / k))
            self._source = self._inside("source", source)
            rows = rows_of(group, split, ny, "RedBlackSOR", settings.device, frame=1)
            if agreed is not None:
                agreed.same = settings.agreed()
            grid = ColourGrid(nx, rows.held_interior, settings.is_interleaved)
            field, table = (grid.shape, real), ((3, 2 * grid.pitch), real)
            self._sourced = bool(self._source.any())
            layout = {"diag": table, "gain": table, **({"source": field} if self._sourced else {})}
            super().__init__(settings, grid, layout, rows)
            self._periodic = periodic_codes(
                [walls[side].is_periodic for side in ("x-", "y-")],
                self._shape,
                "RedBlackSOR",
                rows.group,
                on_device=settings.is_on_device,
            )
            self._check_experiment()
            self._gap = jacobi_gap(self._shape, self._a, walls)
            chosen = settings.omega
            self._omega = optimal_omega(self._gap) if isinstance(chosen, str) else chosen
            self._set_up(dx * dy, self._inside("initial", 0.0 if initial is None else initial))
        self._rows.start(self._state)
        self._seconds["set-up"] = perf_counter() - start

    @property
    def u(self) -> NDArray[Any]:
        """Current temperature of the cells: shape (ny, nx), a new array.

        With a group, the rows of this rank. It can be set, to an array of the same shape, with a
        group on all ranks: the iteration goes on from its values.
        """
        return self._grid.unpack(self._state.get("u"))[self._place].copy()

    @u.setter
    @exclusive
    def u(self, values: ArrayLike) -> None:
        self._set_field("u", values)

    @property
    def _place(self) -> tuple[slice, ...]:
        return self._rows.inner, slice(1, -1)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the solution."""
        return self._shape

    @property
    def x(self) -> Array:
        """Coordinates of the cell centres along x: shape (nx,)."""
        return self._x.copy()

    @property
    def y(self) -> Array:
        """Coordinates of the cell centres along y: shape (ny,); with a group, of this rank."""
        return self._y[self._rows.part].copy()

    @property
    def omega(self) -> float:
        """Relaxation parameter."""
        return self._omega

    def _inside(self, name: str, values: Any) -> Array:
        """Return values at the cells: of a function of x and y, or what broadcasts to them."""
        if callable(values):
            values = call(name, values, {"x": self._x[None, :], "y": self._y[:, None]})
        return checked_values(name, values, self._shape)

    def _find_walls(self, boundary: Any, resistance: tuple[float, float]) -> dict[str, _Wall]:
        """Return what each side gives to the nodes next to it; one side at least fixes u."""
        given = sides_of(boundary, "xy")
        if not any(isinstance(one, _Wall) for one in given.values()):
            given = boundary_by_side(given, "xy")
        walls = {}
        for side in _SIDES:
            step = resistance["xy".index(side[0])]
            ends = {"x": self._x, "y": self._y}
            low, high = self._extent["xy".index(side[0])]
            along = ends["y" if side[0] == "x" else "x"]
            ends[side[0]] = np.array([low if side[1] == "-" else high])
            walls[side] = _wall(side, given[side], ends, len(along), step)
        if not any(wall.exchange for wall in walls.values()):
            raise ValueError(
                "boundary must fix the temperature at one side at least, by a value or Robin; all "
                "sides are Neumann or periodic"
            )
        return walls

    def _set_up(self, volume: float, inside: Array) -> None:
        """Fill the fields of the state: the frame of u has the heat that the walls give."""
        (ny, nx), (ax, ay), walls = self._shape, self._a, self._walls
        t = np.zeros((ny + 2, nx + 2))
        t[1:-1, 1:-1] = inside
        t[1:-1, 0], t[1:-1, -1] = walls["x-"].heat, walls["x+"].heat
        t[0, 1:-1], t[-1, 1:-1] = walls["y-"].heat, walls["y+"].heat
        along_x, along_y = (
            a * _neighbours(n, walls[f"{axis}-"], walls[f"{axis}+"])
            for a, n, axis in ((ax, nx, "x"), (ay, ny, "y"))
        )
        # The first and the last row have places in the tables, all others share one.
        held = self._rows.held
        first, last = held.start, held.stop - 3
        places = along_y[[first, min(first + 1, last), last]]
        diag = np.ones((3, nx + 2))
        diag[:, 1:-1] = along_x + places[:, None]
        self._norms = self._right_hand_side(t, volume)
        self._grid.wrap(t, self._periodic)
        self._state.set("u", self._grid.pack(t[held], self._dtype))
        self._set_table("diag", diag)
        self._set_table("gain", self._omega / diag)
        if self._sourced:
            source = np.zeros_like(t)
            source[1:-1, 1:-1] = volume * self._source
            self._state.set("source", self._grid.pack(source[held], self._dtype))

    def _set_table(self, name: str, rows: Array) -> None:
        """Store coefficients of the first, an inner and the last row, as the colours lie."""
        pitch = self._grid.pitch
        table = np.zeros((3, 2 * pitch))
        if self._grid.interleaved:
            table[:, : rows.shape[1]] = rows
        else:
            table[:] = split_by_parity(rows, pitch).reshape(3, -1)
        self._state.set(name, table)

    def _right_hand_side(self, t: Array, volume: float) -> dict[str, float]:
        """Return the norms of S_u, from ghost cells and source; 1 for a norm of 0."""
        (ax, ay), (ny, nx) = self._a, self._shape
        west, east = ax * t[1:-1, 0], ax * t[1:-1, -1]
        # The first and the last row, then the first and the last column of the other rows; the
        # other cells have a source only.
        rows, columns = np.zeros((min(ny, 2), nx)), np.zeros((max(ny - 2, 0), min(nx, 2)))
        rows[0] += ay * t[0, 1:-1]
        rows[-1] += ay * t[-1, 1:-1]
        ends = [0, -1][: len(rows)]
        for values, at in ((west, 0), (east, -1)):
            rows[:, at] += values[ends]
            columns[:, at] += values[1:-1]
        parts = [rows, columns]
        if self._sourced:
            source = np.broadcast_to(self._source, self._shape)
            rows += volume * source[ends]
            columns += volume * source[1:-1, [0, -1][: columns.shape[1]]]
            parts.append(volume * source[1:-1, 1:-1])
        most = max(float(np.abs(part).max(initial=0.0)) for part in parts)
        mean = sum(float(np.sum(part * part)) for part in parts) / (ny * nx)
        return {"max": most or 1.0, "l2": mean**0.5 or 1.0}

    @property
    def _expected_patience(self) -> int:
        return ceil(min(_PATIENCE / max(1 - self._radius, 1 / _LONGEST), _LONGEST))

    @property
    def _radius(self) -> float:
        """Expected factor of the error in an iteration: the spectral radius."""
        z = self._omega * (1 - self._gap)
        square = z * z - 4 * (self._omega - 1)
        return self._omega - 1 if square <= 0 else ((z + sqrt(square)) / 2) ** 2

    @property
    def _remedy(self) -> str:
        fall = ceil(min(-log(FALL) / max(1 - self._radius, 1 / _LONGEST), _LONGEST))
        text = f"; with omega={self._omega:.6g} a fall by 10 % takes about {fall} iterations"
        optimal = optimal_omega(self._gap)
        if self._omega != optimal:
            text += f": take omega='optimal', which is {optimal:.6g}"
        if all(wall.exchange in (0.0, 2.0) for wall in self._walls.values()):
            text += "; FastPoisson with grid='cells' solves without iterations"
        return text

    def _scale(self, criterion: str, norm: str) -> float:
        return 1 / self._norms[norm] if criterion == "residual" else 1.0

    def _call(self, count: int, stop: Stop, made: NDArray[np.int64]) -> tuple[int, Any]:
        backend, state = self._backend, self._state
        source = state.operand("source", changes=False) if self._sourced else None
        answer: tuple[int, Any] = backend.laplace_iterate(
            backend.LAPLACE_VARIANTS[self._settings.variant],
            backend.LAPLACE_COEFFICIENTS[self._settings.coefficients],
            self._grid.nx,
            self._grid.ny,
            self._grid.pitch,
            self._periodic,
            *self._a,
            state.operand("u"),
            state.operand("diag", changes=False),
            state.operand("gain", changes=False),
            source,
            stop,
            count,
            self._threads,
            made,
            *state.arguments,
        )
        return answer

    def _describe(self) -> dict[str, Any]:
        return {
            "title": "Heat conduction in a plate",
            "relaxation": f"omega {self.omega:.6g}",
            "method": self._settings.variant,
        }

    def _problem(self) -> dict[str, Any]:
        walls = [self._walls[side] for side in _SIDES]
        heat = Walls(**{n: w.heat for n, w in zip(checks_of(Walls), walls, strict=True)})
        return {
            "exchange": tuple(float(wall.exchange) for wall in walls),
            "heat": heat,
            "periodic": tuple(self._walls[side].is_periodic for side in ("x-", "y-")),
            "source": self._source,
        }

    @classmethod
    def _from_saved(cls, state: Any, **data: Any) -> Self:
        return cls(**state.settings.facts(), boundary=state.walls, source=state.source, **data)


def solve_laplace(
    shape: Sequence[int],
    *,
    tol: float = 1e-8,
    max_iterations: int = 100_000,
    check_every: int = 1,
    extent: Sequence[Any] | None = None,
    spacing: float | Sequence[float] | Mapping[str, float] | None = None,
    conductivity: float = 1.0,
    boundary: Boundary | Sides | ArrayLike | Any,
    source: ArrayLike | Any = 0.0,
    omega: float | Literal["optimal"] = "optimal",
    dtype: DTypeLike = np.float64,
    device: str | None = None,
    threads: int | None = None,
    initial: ArrayLike | Any = None,
) -> RelaxationResult:
    r"""Solve for the steady temperature of a rectangular plate.

    .. math:: k\, (T_{xx} + T_{yy}) + q = 0

    by finite volumes and red-black SOR. `FastPoisson` solves the same equations directly, and
    faster.

    Parameters
    ----------
    shape : (ny, nx)
        Number of cells along y and x.
    tol : float, default: 1e-8
        Upper bound of :math:`\|r\|_2 / \|S_u\|_2`, the residual divided by the right-hand side.
    max_iterations : int, default: 100000
        Largest number of iterations.
    check_every : int, default: 1
        Number of iterations between two measurements of the residual.
    extent, spacing, conductivity, boundary, source, omega, dtype, device, threads, initial
        As in `RedBlackSOR`.

    Returns
    -------
    result : RelaxationResult
        Temperatures of the cells, number of iterations and history.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.
    BackendError
        If the device is not available.
    ConvergenceError
        If the tolerance was not reached; the attribute ``result`` contains the last state.

    See Also
    --------
    RedBlackSOR : The solver.
    pysolvers.FastPoisson : Direct solver of the Poisson equation.

    Examples
    --------
    >>> from pysolvers import solve_laplace
    >>> sides = {"x": 0.0, "y-": 0.0, "y+": 1.0}
    >>> result = solve_laplace((32, 32), extent=((0, 1), (0, 1)), boundary=sides)
    >>> result.converged
    True
    """
    plate = RedBlackSOR(
        shape,
        extent=extent,
        spacing=spacing,
        conductivity=conductivity,
        boundary=boundary,
        source=source,
        omega=omega,
        dtype=dtype,
        device=device,
        threads=threads,
        initial=initial,
    )
    return plate.solve(tol, max_iterations=max_iterations, check_every=check_every)


def optimal_omega(gap: float) -> float:
    r"""Return the optimal relaxation parameter, :math:`2 / (1 + \sqrt{1 - \rho^2})`.

    Parameters
    ----------
    gap : float
        :math:`1 - \rho` with the spectral radius of the Jacobi iteration.
    """
    return 2 / (1 + sqrt(gap * (2 - gap)))


def jacobi_gap(shape: tuple[int, int], a: tuple[float, float], walls: Mapping[str, _Wall]) -> float:
    r"""Return an estimate of :math:`1 - \rho`, the spectral radius of the Jacobi iteration.

    .. math:: 1 - \rho = \frac{a_x \lambda_x + a_y \lambda_y}{2 (a_x + a_y)}

    is the Rayleigh quotient of the product of both first eigenvectors, with the diagonal of the
    cells that are not at a wall. :math:`\lambda` is the smallest eigenvalue along an axis. A single
    cell has no neighbours along its axis: its eigenvalue and its diagonal are the coefficients
    towards its walls.
    """
    ny, nx = shape
    numerator = denominator = 0.0
    for each, axis, n in zip(a, "xy", (nx, ny), strict=True):
        low, high = (walls[axis + end].exchange for end in "-+")
        if walls[axis + "-"].is_periodic:
            denominator += each * 2  # the eigenvalue is 0
        elif n == 1:
            numerator += each * (low + high)
            denominator += each * (low + high)
        else:
            numerator += each * 4 * sin(_angle(n, low, high) / 2) ** 2
            denominator += each * 2
    return numerator / denominator


def _angle(n: int, low: float, high: float) -> float:
    r"""Return :math:`\theta` with the smallest eigenvalue :math:`2 - 2 \cos \theta` of a line.

    The matrix of n cells has 2 on its diagonal, at the ends 1 + low and 1 + high, and -1 next to
    it. Its eigenvectors continue over the ends to ghost cells with
    :math:`v_0 = (1 - low) v_1` and :math:`v_{n+1} = (1 - high) v_n`. With :math:`v_1 = 1`

    .. math:: v_i = (1 - low) \cos i\theta
        + \left(\tan\frac{\theta}{2} + low \cot\theta\right) \sin i\theta,

    which satisfies the first condition. The other one is solved by bisection; its smallest
    solution lies in :math:`0 \le \theta \le \pi/n` for coefficients up to 2.
    """
    fixed = sum(side == 2 for side in (low, high))
    if all(side in (0, 2) for side in (low, high)):
        return pi * fixed / (2 * n)
    below, above = 0.0, pi / n
    while below < (theta := (below + above) / 2) < above:
        slope = tan(theta / 2) + low / tan(theta)
        last, ghost = ((1 - low) * cos(i * theta) + slope * sin(i * theta) for i in (n, n + 1))
        if ghost > (1 - high) * last:
            below = theta
        else:
            above = theta
    return theta


def _centres(n: int, step: float) -> Array:
    """Return the coordinates of n cells from 0 on."""
    return step * (np.arange(n, dtype=np.float64) + 0.5)


def _neighbours(n: int, low: _Wall, high: _Wall) -> Array:
    """Return a_P / a of a line of n cells: 2, except at the walls at its ends."""
    count = np.full(n, 2.0)
    for end, wall in ((0, low), (-1, high)):
        count[end] += 0.0 if wall.is_periodic else wall.exchange - 1
    return count


def _domain(
    shape: tuple[int, int], extent: Any, spacing: Any
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ends of the plate along x and y."""
    exactly_one("RedBlackSOR", spacing, extent)
    if spacing is not None:
        h, k = per_axis("spacing", spacing, "xy")
        extent = (0.0, shape[1] * h), (0.0, shape[0] * k)
    return checked_pairs(extent)


def _wall(side: str, given: Any, places: Mapping[str, Array], cells: int, step: float) -> _Wall:
    """Return the terms of a side; `step` is the resistance of a whole cell, step / k."""
    if isinstance(given, _Wall):
        return given
    condition = condition_of(side, given)
    if condition == PERIODIC:
        return _Wall(0.0, np.zeros(cells), True)
    if isinstance(condition, Neumann):
        return _Wall(0.0, step * _along(side, condition.flux, places, cells))
    if isinstance(condition, Robin):
        require_finite("coefficient", condition.coefficient)
        require(condition.coefficient >= 0, "coefficient must be at least 0", condition.coefficient)
        biot = condition.coefficient * step
        exchange = biot / (1 + biot / 2)
        return _Wall(exchange, exchange * _along(side, condition.ambient, places, cells))
    return _Wall(2.0, 2 * _along(side, condition.value, places, cells))


def _along(side: str, values: Any, places: Mapping[str, Array], cells: int) -> Array:
    """Return one finite value per cell along a side."""
    name = f"boundary {side}"
    line = call(name, values, places) if callable(values) else values
    found = checked_values(name, line, (1, cells))
    return np.broadcast_to(found, (1, cells))[0]
