"""Heat conduction by alternating directions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from math import prod
from time import perf_counter
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._boundary import PERIODIC, Neumann, boundary_by_side
from .._checks import index, require, require_finite, short
from .._data import NodeData, dependence
from .._domain import NodeLines, per_axis, unequal, watch_position
from .._errors import ConvergenceError, warn_user
from .._functions import arguments_of, call_with_arrays, protected
from .._runtime import backends
from .._runtime.fp_mode import in_default_fp_mode
from .._solver.exclusive import exclusive, reading
from .._solver.files import SavedFile
from .._solver.schema import Member, RunBy
from .._solver.solver import OverRanks
from .._solver.stepping import TimeState, TimeStepping
from .._views import read_only
from ..distributed import Group, Slab
from ..distributed._group import agreement_of, own_device
from ._accuracy import Accuracy
from ._extremes import check_ratios, check_spacing
from ._growth import Choice
from ._laws import conductivity_of, law_of, laws_of
from ._levels import BASIS
from ._result import HeatResult
from ._run import run_of
from ._settings import HeatSettings, Scheme
from ._sides import Grid, Side, check_nodes

__all__ = ["HeatADI"]

Fields = Annotated[NDArray[Any], Member(None, (np.float32, np.float64))]

_STEADY_TOL = {"float64": 1e-10, "float32": 1e-5}
_BALANCE = 1e-6  # of the sum of magnitudes: a rest of sources and inflows that is a rounding error


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What identifies a problem, without functions and arrays."""

    diffusivity: Any
    heat_capacity: Any
    boundary: Any
    source: bool
    holes: str


@dataclass(frozen=True, kw_only=True)
class SavedHeat(TimeState):
    """What `save` writes.

    Parameters
    ----------
    settings : HeatSettings
        The parameters.
    problem : Problem
        The data, for a comparison with those that `load` takes.
    begun : int
        Number of steps before the start.
    is_damped : bool
        Whether the start was damped.
    iterations : int
        Of the last step.
    t, w : ndarray
        The fields; of a rod on the nodes of its plate.
    stages : ndarray or None
        Changes of the last stages of the scheme ``'implicit'``.
    """

    settings: HeatSettings
    problem: Problem
    begun: int
    is_damped: bool
    iterations: int
    t: Fields
    w: Fields
    stages: Fields | None

    _KIND: ClassVar = "pysolvers HeatADI state"

    def _check(self, saved: SavedFile) -> None:
        shape, kind = self.settings.plate.shape, np.dtype(self.settings.dtype)
        saved.require(self.begun <= self.made, "header", "begun must be at most made")
        saved.require_stages(self.seconds, backends.require("cpu").HEAT_STAGES)  # as of all
        for name in "tw":
            saved.require_array(name, getattr(self, name), shape, kind)
        if self.stages is not None:
            saved.require_array("stages", self.stages, (None, *shape), kind)
            rule = f"it must hold 1 to {BASIS} fields, got {len(self.stages)}"
            saved.require(1 <= len(self.stages) <= BASIS, "member 'stages'", rule)


def _check_spacing_by_position(shape: Any, spacing: Any, *_: Any) -> None:
    """Raise if different spacings are given by position, whose order is not clear to a reader."""
    is_sequence = isinstance(spacing, tuple | list)
    if is_sequence and all(np.ndim(each) == 0 for each in spacing) and unequal(spacing):
        names = ", ".join(f"h{axis}" for axis in "xyz"[: len(spacing)])
        raise TypeError(
            f"HeatADI: spacing={short(spacing)} by position could be meant in the order of shape; "
            f"give spacing=({names}) by keyword, in the order of extent: "
            f"HeatADI({short(shape)}, spacing={short(tuple(reversed(spacing)))}, dt=...)"
        )


class HeatADI(NodeLines, OverRanks, TimeStepping[HeatResult]):
    r"""Heat conduction in a rod, a rectangle or a box by implicit steps.

    .. math::
        c\,T_t = \partial_x (k\,T_x) \;[+\; \partial_y (k\,T_y) \;[+\; \partial_z (k\,T_z)]] + q

    by central differences on nodes that include the boundary. A step is of second order in time and
    space. It is one tridiagonal solve along each axis, or, where the conductivity varies so that
    this would leave the range of the data, one iterative solve of the equation that is not split;
    see `scheme`. No step is too large to be stable, but it can be too large to be accurate: see
    `suggest_dt` and Notes.

    Parameters
    ----------
    shape : (nx,), (ny, nx) or (nz, ny, nx)
        Number of nodes along each axis, and the shape of the solution; x is the last axis.
        At least 3 along each axis, or 2 between two Neumann or Robin sides.
    spacing : float, (hx,), (hx, hy), (hx, hy, hz) or mapping, optional
        Distance between the nodes: one number for all axes, one for each axis in the order x, y,
        z, or a mapping with the keys ``"x"``, ``"y"``, ``"z"``. The first node lies at 0.
    dt : float
        Time step; positive. It can be set between steps. `suggest_dt` returns one for a given
        error; a RuntimeWarning is issued once for each `dt` whose step is not accurate for the
        slowest wave, see Notes.
    extent : ((x0, x1),), ((x0, x1), (y0, y1)) or ((x0, x1), (y0, y1), (z0, z1)), optional
        Instead of `spacing`: ends of the domain along each axis. On a periodic axis the end is
        the image of the first node.
    coordinates : sequence of array_like or mapping, optional
        Instead of `spacing`: the coordinates of the nodes along x, y, ..., each an array of rising
        numbers, or a mapping with the keys ``"x"``, ``"y"``, ``"z"``. A periodic axis has one more,
        that of the image of the first node.
    diffusivity : float, array_like, callable or mapping, default: 1
        Conductivity k, positive: a number, an array that broadcasts to the shape of the solution,
        a function of the coordinates, of the time t and of the temperature T, or a mapping of axes
        to numbers, for example ``{"x": 2.0, "y": 0.5}``. The flux between two nodes uses the
        harmonic mean of their values. With `heat_capacity` it is the thermal conductivity, in
        W/(m K).
    heat_capacity : float, array_like or callable, default: 1
        Heat capacity of a volume c, positive: density times specific heat, in J/(m³ K). A number,
        an array that broadcasts to the shape of the solution, or a function of the coordinates.
        With it, k, q, the coefficients of `Robin` sides and the inflows are those of tables:
        W/(m K), W/m³, W/(m² K) and W/m², for lengths in m and times in s. By default k is the
        diffusivity k/c, and all of them are divided by c.
    scheme : str, default: 'auto'
        One of ``'auto'``, ``'implicit'``, ``'crank-nicolson'``, ``'peaceman-rachford'`` and
        ``'douglas-gunn'``. ``'peaceman-rachford'``, with two axes only, and ``'douglas-gunn'``,
        with two or three, are alternating directions. ``'crank-nicolson'`` is for one axis only,
        which takes neither of them.
        ``'implicit'`` solves the equation that is not split, by a method that damps the shortest
        waves. ``'auto'`` takes alternating directions, except where a conductivity that varies
        along several axes makes them leave the range of the data for this `dt`: there
        ``'implicit'``; `repr` and the results name the scheme. None is ``'auto'``. See Notes.
    boundary : Dirichlet, Neumann, Robin, 'periodic', number, array, callable or mapping
        Boundary condition of all sides, or a mapping with the keys ``"x-"``, ``"x+"``,
        ``"y-"``, ... for one side or ``"x"``, ``"y"``, ``"z"`` for both sides of an axis. A
        number, an array or a function is a Dirichlet condition. `Dirichlet` gives T; `Neumann`
        the inflow :math:`k\,\partial T/\partial n`; `Robin` the coefficient and the ambient
        temperature. ``"periodic"`` applies to both sides of an axis: the node after the last
        node is the first node. A value is a number, an array over the nodes of the side (the
        shape of the solution without the axis of the side), or a function. Nodes that belong to
        two `Dirichlet` sides have the value of the side of the later axis in the order x, y, z.
    source : number, ndarray or callable, optional
        Heat source q: a number, an array of the shape of the solution, or a function of the
        coordinates, of the time t and of the temperature T.
    holes : array_like of bool or callable, optional
        Whether each node lies in a hole of the domain: an array that broadcasts to the shape of
        the solution, or a function of the coordinates. See Notes.
    hole_temperature : number, array_like or callable, optional
        Temperature of the nodes in holes, which does not change with time: a number, an array or
        a function of the coordinates. By default holes are insulated. Nodes of holes on a
        `Dirichlet` side have the value of the side.
    initial : number, ndarray or callable, default: 0
        T at the start: a number, an array of the shape of the solution, or a function of the
        coordinates. Nodes of Dirichlet sides have the values of the sides instead.
    start_time : float, default: 0
        Time at the start: the first one at which functions of time are evaluated.
    damped_start : bool, optional
        Whether the first step is two half-steps of the backward Euler method, which damp the
        jumps of data that are not smooth; see Notes. By default it is if an explicit step would
        leave the range of initial and boundary values, because these do not agree or change
        fast, and :math:`k\,dt/h^2` is large. The result says which start was made.
    dtype : float64 or float32, default: float64
        Dtype of the solution.
    device : str, optional
        ``'cpu'``, the default, ``'cuda'`` or ``'cuda:1'``, ... The solution stays on the
        device between calls; `u` copies it to the host.
    threads : int, optional
        Number of host threads; the backend chooses the default. The result has the same bits
        for any number.
    group : pysolvers.distributed.Group, optional
        Processes that each hold a part of the nodes and step together; see Notes. The nodes of
        a rod cannot be divided.
    split : pysolvers.distributed.Slab, optional
        With `group`, the axis of the solution along which it is split.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range, or if :math:`k\,dt/h^2` is not in
        the range of the dtype; the message names the rule and the value.
    BackendError
        If the device is not available.

    Notes
    -----
    The parameters of a function must be among x, y, z and t, for `diffusivity` and `source` also
    T, in any order. It is called with arrays that broadcast. A conductivity of t or T and a source
    of T are evaluated once in a step, in its middle and at the temperature there, extrapolated
    from the last two steps: the order is two. A source that changes fast with T limits `dt` to
    about the inverse of :math:`|\partial q/\partial T|/c`. For ``'implicit'`` each step has
    operators of its own, and takes several times as long. These functions need a solver
    without a `group`.

    With :math:`A_x = 1 - \tfrac{dt}{2} \delta_x k \delta_x` and
    :math:`B_x = 2 - A_x`, Peaceman and Rachford [1]_ solve

    .. math:: A_x T^* = B_y T^n + \tfrac{dt}{2} q, \qquad
        A_y T^{n+1} = B_x T^* + \tfrac{dt}{2} q

    which is Crank and Nicolson's step if T varies along x only: a rod is stepped as a plate of two
    equal lines of nodes. Douglas and Gunn [2]_ solve for differences,

    .. math:: A_x D_1 = dt\,(\nabla \cdot k \nabla T^n + q), \qquad
        A_y D_2 = D_1, \qquad A_z D_3 = D_2, \qquad T^{n+1} = T^n + D_3 .

    The source q is evaluated in the middle of the step. In two
    dimensions both schemes give the same solution up to rounding errors. The boundary values
    of the intermediate fields follow from the formulas of the scheme, so that the order is
    two also if the boundary values change with time.

    A step multiplies the slowest wave that is not constant by a factor G, and the equation by
    :math:`E = e^{-\lambda dt}`. Along an axis of length L :math:`\lambda = k (\pi/L)^2` between two
    given values and between two fluxes, :math:`k (\pi/2L)^2` with exactly one given value, and
    :math:`k (2\pi/L)^2` on a periodic axis, with the mean k of an array; the rates of the axes with
    given values are added, and if there are none the smallest rate counts. A `Robin` side of the
    coefficient h counts as a given value if the Biot number :math:`h L/k` is at least 1, and as a
    flux otherwise. With :math:`a = \lambda dt/2` of each axis, G is
    :math:`\prod (1 - a)/(1 + a)` in one and two dimensions,
    :math:`1 - 2 \sum a/\prod (1 + a)` in three, and
    :math:`1/(\prod (1 + a)\,(1 + \sum a))` for a damped step; for ``'implicit'`` and
    :math:`s = 2 \sum a` it is :math:`(1 - (1 - 2 \gamma) s)/(1 + \gamma s)^2`, damped
    :math:`1/(1 + s/2)^2`. A step with
    :math:`|G - E| > 0.1 \max(E, 0.1)` is a RuntimeWarning, with a `dt` that is small enough;
    `suggest_dt` returns the largest `dt` for a given error.

    Alternating directions need operators along the axes that commute, as they do if k is constant
    or depends on one coordinate only. Otherwise the difference, :math:`K_x K_y (T^{n+1} - T^n)/4`,
    is large where k jumps across an interface that is not parallel to an axis. In two dimensions T
    can leave the range of the data: a plate with a diagonal bar of :math:`10^4` times the
    conductivity, between 0 and 1, reaches 69 for :math:`dt/h^2 = 10`. In three dimensions T can
    grow without bound. A search over conductivities found no value outside the range of the data by
    more than 1e-3 of it as long as (largest - smallest k) :math:`dt/h^2` is at most 1.5, or at most
    10 (in three dimensions 3) and the largest k at most 10 times the smallest; and for any dt if k
    changes by a factor of at most 1.5 (1.2) from node to node and of 10 in all.
    Beyond, ``'auto'`` chooses ``'implicit'``, at construction and when `dt` is set. If a scheme of
    alternating directions is given, a RuntimeWarning names a `dt` that is small enough.

    ``'implicit'`` is the diagonally implicit Runge-Kutta method of two stages of Alexander [4]_,
    :math:`\gamma = 1 - 1/\sqrt 2`, which is L-stable, with sources and boundary values at
    :math:`t + \gamma\,dt` and :math:`t + dt`. Each stage is solved by conjugate gradients,
    preconditioned by a multigrid cycle with relaxation of lines along each axis in turn, until a
    correction is at most 1e-8 (float32: 1e-5) of the change, or 4 rounding errors of T. For k of
    the ratio 100, 4 to 12 iterations are common; if k is random over six decades, some 60. If more
    than 2000 are needed, it is a `ConvergenceError`. Without source and inflow T stays in the range
    of the data: the first step is damped, as below, and the second one is made of two half-steps.

    Alternating directions do not damp the shortest waves if :math:`k\,dt/h^2` is large: initial
    values that are not smooth, or do not agree with the boundary values, then cause oscillations
    and values outside the range of the data. A damped start [3]_ replaces the first step by two
    half-steps of the backward Euler method, :math:`T - \tfrac{dt}{2} \nabla \cdot k \nabla T = T^n
    + \tfrac{dt}{2} q`. The half-steps are stable for any dt, keep T within the range of initial and
    boundary values if there is no source and no inflow, and leave the order two. They are solved
    along each axis in turn by `solve_tridiagonal`, on the device of the solver; if the data vary
    along several axes, some ten times, by alternating directions with parameters.

    Nodes at `coordinates` that are not evenly spaced have control volumes from the middle between
    them and the node before to that between them and the next one. The order is two if the
    coordinates are a smooth function of the number of the node, and heat is conserved for any.
    Steps of alternating directions are then made by array operations, as below, without a `group`.

    No heat flows into insulated `holes`, whose edge lies in the middle between the nodes inside
    and outside; T in them stays what it was. The range of a result, `heat` and pictures leave
    holes out, which ``result.holes`` has. At holes of a
    `hole_temperature` the nodes inside have this T. An edge that is not parallel to an axis is a
    staircase, and the error near it is of order one in the spacing. Holes are contrasts of the
    conductivity or of the heat capacity: ``'auto'`` takes ``'implicit'`` if :math:`k\,dt/(c\,h^2)`
    is above 1.5.

    A heat capacity that is a number divides k, q and the inflows, and costs nothing. One that
    varies multiplies the volumes of the nodes, by array operations and line solves instead of the
    kernels of alternating directions: a step then takes 3 to 20 times as long. The sum of
    volumes times c T is conserved, see `heat`. An interface where k or c jumps lies in the middle
    between two nodes. With a `group` the heat capacity is a number.

    With a `group`, `shape`, `extent` and `spacing` are those of the whole domain, of which each
    rank holds the part ``split.part(shape[axis], group.rank, group.size)``: `u`, the coordinates
    and the results are those of the part, and arrays of `initial`, `diffusivity` and `source` as
    well. The values of the sides are numbers or functions. All ranks make the same calls; `gather`
    returns the whole solution. Steps of ``'implicit'`` on hosts have the bits of one process, on
    devices they differ by the tolerance, and steps of alternating directions by rounding errors.
    Split along the first axis: with large :math:`k\,dt/h^2` along another one a step takes
    several times as long on hosts, and is an error on devices. ``device="cuda"`` gives each rank
    its own device. Small fields, and steady states, are computed as a whole by each device with
    ``'implicit'``. The pages on several processes say what is exchanged.

    References
    ----------
    .. [1] D. W. Peaceman and H. H. Rachford, "The numerical solution of parabolic and elliptic
       differential equations", *Journal of the SIAM* 3, 28-41, 1955.
    .. [2] J. Douglas and J. E. Gunn, "A general formulation of alternating direction
       methods", *Numerische Mathematik* 6, 428-453, 1964.
    .. [3] R. Rannacher, "Finite element solution of diffusion problems with irregular data",
       *Numerische Mathematik* 43, 309-327, 1984.
    .. [4] R. Alexander, "Diagonally implicit Runge-Kutta methods for stiff O.D.E.'s", *SIAM
       Journal on Numerical Analysis* 14, 1006-1021, 1977.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import HeatADI, Neumann
    >>> solver = HeatADI(
    ...     (33, 65),
    ...     extent=((0.0, 2.0), (0.0, 1.0)),
    ...     dt=0.02,
    ...     boundary={"x-": 1.0, "x+": 0.0, "y": Neumann()},
    ... )
    >>> solver.dt < solver.suggest_dt(error=0.01)
    True
    >>> result = solver.run(until=10.0)
    >>> print(np.abs(result.u - (1 - result.x / 2)).max() < 1e-6)
    True
    >>> result.damped_start
    True

    A rod that is heated at one end, whose other end is cooled:

    >>> from pysolvers import Robin
    >>> sides = {"x-": Neumann(2.0), "x+": Robin(4.0, ambient=20.0)}
    >>> rod = HeatADI((5,), extent=((0.0, 1.0),), dt=0.01, boundary=sides, initial=20.0)
    >>> rod.solve_steady().u.round(6)
    array([22.5, 22. , 21.5, 21. , 20.5])

    A wall of 0.2 m of concrete, in SI units, between air of 20 and -10 °C:

    >>> inside, outside = Robin(7.7, ambient=20.0), Robin(25.0, ambient=-10.0)
    >>> wall = HeatADI(
    ...     (21,),
    ...     extent=((0.0, 0.2),),
    ...     dt=60.0,
    ...     diffusivity=2.1,
    ...     heat_capacity=2400.0 * 1000.0,
    ...     boundary={"x-": inside, "x+": outside},
    ... )
    >>> steady = wall.solve_steady().u
    >>> print(f"{7.7 * (20.0 - steady[0]):.2f} W/m²")
    113.16 W/m²
    """

    _SETTINGS: ClassVar[Any] = HeatSettings
    _RESULT: ClassVar[Any] = HeatResult
    _STATE: ClassVar[Any] = SavedHeat

    spacing: tuple[float, ...] | None
    extent: tuple[tuple[float, float], ...] | None
    coordinates: tuple[tuple[float, ...], ...] | None
    diffusivity: Any
    heat_capacity: Any
    scheme: Scheme
    boundary: Any
    source: Any
    holes: Any
    hole_temperature: Any
    initial: Any
    damped_start: bool | None

    @watch_position(1, _check_spacing_by_position)
    @in_default_fp_mode
    def __init__(
        self,
        shape: Sequence[int],
        spacing: float | Sequence[float] | Mapping[str, float] | None = None,
        dt: float | None = None,
        *,
        extent: Sequence[Sequence[float]] | None = None,
        coordinates: Sequence[ArrayLike] | Mapping[str, ArrayLike] | None = None,
        diffusivity: Any = 1.0,
        heat_capacity: Any = 1.0,
        scheme: Scheme | None = "auto",
        boundary: Any,
        source: Any = None,
        holes: Any = None,
        hole_temperature: Any = None,
        initial: Any = 0.0,
        start_time: float = 0.0,
        damped_start: bool | None = None,
        dtype: Any = np.float64,
        device: str | None = None,
        threads: int | None = None,
        group: Group | None = None,
        split: Slab | None = None,
    ) -> None:
        self._data_given = {
            "diffusivity": diffusivity,
            "heat_capacity": heat_capacity,
            "boundary": boundary,
            "source": source,
            "holes": holes,
            "hole_temperature": hole_temperature,
            "initial": initial,
            "group": group,
            "split": split,
        }
        with agreement_of(group, "HeatADI") as agreed:
            if dt is None:
                raise TypeError("HeatADI needs a time step: dt must be given")
            settings = self._SETTINGS(
                **self._experiment,
                shape=shape,
                spacing=spacing,
                extent=extent,
                coordinates=coordinates,
                dt=dt,
                start_time=start_time,
                scheme="auto" if scheme is None else scheme,
                dtype=dtype,
                damped_start=damped_start,
                device=own_device(device, group),
                threads=threads,
            )
            super().__init__(settings, settings.dt, settings.backend.HEAT_STAGES)
            by_side = boundary_by_side(boundary, settings.axes)
            periodic = [name[0] for name, one in by_side.items() if one == PERIODIC]
            self._grid = grid = Grid(settings, self._clock, periodic)
            check_spacing(grid.finest[: grid.named], settings.axes)
            check_nodes("shape", settings.shape, by_side)
            if grid.named < grid.axes:
                by_side |= dict.fromkeys(("y-", "y+"), Neumann())  # of the plate of a rod
            self._sides = {name: Side(name, found, grid) for name, found in by_side.items()}
            whole = grid
            grid.has_kernels = _is_number(heat_capacity) and not grid.gaps
            law_of_k = law_of("diffusivity", diffusivity, settings.axes, "tT")
            law_of_q = law_of("source", source, settings.axes, "T")
            if group is not None and holes is not None:
                raise ValueError("HeatADI: holes need a solver without group and split")
            if group is not None and (law_of_k is not None or law_of_q is not None):
                raise ValueError(
                    "HeatADI: with a group diffusivity cannot be a function of t or T, and source "
                    "not of T: leave out group and split"
                )
            self._runner = run = run_of(settings, whole, self._sides, by_side, group, split)
            self._group, self._grid = run.group, run.grid
            grid = run.grid
            grid.capacity, grid.relative = _capacity(heat_capacity, grid, settings.axes)
            whole.capacity = grid.capacity
            if holes is not None:
                _set_holes(grid, holes, hole_temperature, settings.axes)
                grid.has_kernels &= not _needs_arrays(grid, self._sides.values())
            elif hole_temperature is not None:
                raise TypeError("HeatADI: hole_temperature needs holes: pass both or neither")
            places = grid.everywhere
            if "t" in dependence("initial", initial, settings.axes):
                raise TypeError(
                    "initial must be a number, an array or a function of the coordinates; the "
                    "function has the parameter t: leave t out, the start is at t = start_time"
                )
            start = NodeData("initial", initial, *places).at(0.0)
            self._laws = laws_of(grid, law_of_k, law_of_q, settings.dtype)
            if law_of_k is None:
                grid.diffusivity, grid.k = _conductivity(diffusivity, grid, settings)
            if self._laws is not None:
                self._laws.set(self.time, np.broadcast_to(start, settings.shape))
            law = None if self._laws is None else self._laws.source
            self._source = law if law is not None or source is None else grid.heating(source)
            self._check_experiment()
            if agreed is not None:
                agreed.same = settings.agreed() | asdict(self._problem()) | run.agreed
        run.start(start, self._source, source, self._laws)
        self._accuracy = Accuracy(
            str(settings.scheme), whole, grid.diffusivity, grid.k, self._sides, group
        )
        self._choice = self._made_choice(run.k)
        self._check_length(self.dt)
        if self._scheme != "implicit":
            run.check_steps()
        self._is_damped = False
        self._begun = 0  # number of steps before the start, which can be damped

    def _all_lines(self) -> NDArray[np.float64] | None:
        """Return the coordinates along all axes, one after the other, if they are not even."""
        grid = self._grid
        if not grid.gaps:
            return None
        return np.concatenate([grid.line(axis) for axis in range(grid.named)])

    def _line(self, axis: int) -> NDArray[np.float64]:
        if axis >= self._grid.named:
            name = "xyz"[axis]
            raise AttributeError(f"a solver of shape {self._settings.shape} has no axis {name}")
        return self._grid.line(axis)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the solution."""
        return tuple(self._settings.shape)

    @property
    def u(self) -> NDArray[Any]:
        """Temperature at the current time, with a group its part of this rank: read-only.

        It can be set, to an array of the same shape, with a group on all ranks: the solution goes
        on from these values at the same time, and the start is made again. Nodes of Dirichlet sides
        keep the values of the sides.
        """
        return read_only(self._runner.t)

    @u.setter
    @exclusive
    def u(self, values: ArrayLike) -> None:
        self._set_field("u", values)

    def _restart(self, **fields: NDArray[Any]) -> None:
        self._clock.begin(self.steps)
        self._begun, self._is_damped = self.steps, False
        self._runner.restart(fields["u"])

    @reading
    def heat(self) -> float:
        r"""Return the heat :math:`\int c\,T\,dV` of the domain, above that of T = 0.

        The sum of the volumes of the nodes, half of one at each side but periodic ones, times c T;
        in SI units in J, in two dimensions in J per m of the third one, and so on. Between steps
        it changes by sources, inflows, and flows through sides with given values; between
        insulated and periodic sides by rounding errors, and for ``'implicit'`` by the tolerance.
        With a group all ranks call this function, and it returns the heat of all of them.

        Raises
        ------
        RuntimeError
            If another thread is in a call that changes the solver.

        Examples
        --------
        >>> from pysolvers import HeatADI, Neumann
        >>> rod = HeatADI((5,), 0.25, 0.1, heat_capacity=4e6, boundary=Neumann(), initial=20.0)
        >>> rod.heat()
        80000000.0
        """
        return self._runner.heat()

    @property
    def diffusion_number(self) -> float:
        """Diffusion number of the next step: k dt/(c h^2), the largest of all nodes and axes."""
        return self._accuracy.diffusion_number(self.dt)

    def suggest_dt(self, error: float = 0.01) -> float:
        r"""Return a time step for a solution that is accurate in time.

        In a step the slowest wave that is not constant decays by :math:`E = e^{-\lambda dt}`, and
        the scheme multiplies it by a factor G; see Notes of `HeatADI`.

        Parameters
        ----------
        error : float, default: 0.01
            Largest :math:`|G - E|`, the relative error of a step; between 0 and 1.

        Returns
        -------
        dt : float
            The largest step up to which the error of steps of any length is below `error`: of
            those of the scheme, and with ``damped_start=True`` also of the damped one. For data
            that are not as smooth as the slowest wave, take less.
        """
        return self._accuracy.suggest_dt(error, is_damped=bool(self._settings.damped_start))

    def _text(self) -> str:
        s = self._settings
        steps = zip(s.axes, self._grid.spacing, strict=False)
        spacing = ", ".join(
            f"h{axis}={self._grid.finest[k]:.4g} to {h * self._grid.gaps[k].max():.4g}"
            if k in self._grid.gaps
            else f"h{axis}={h:.4g}"
            for k, (axis, h) in enumerate(steps)
        )
        given = self._problem().heat_capacity
        capacity = (
            ""
            if given == 1.0
            else f", heat_capacity={given if given == 'an array' else format(given, 'g')}"
        )
        if self._laws is not None and self._laws.conductivity is not None:
            capacity = f", diffusivity={self._laws.conductivity.text}" + capacity
        if self._grid.holes is not None:
            capacity += f", holes: {self._holes_text()}"
        return f"{s.shape}, {spacing}, dt={self.dt:g}{capacity}, scheme={self._scheme_text()}"

    @property
    def _iterations(self) -> int:
        """Iterations of the last step, 0 if the scheme has none."""
        return self._runner.unsplit.iterations if self._scheme == "implicit" else 0

    def _scheme_text(self) -> str:
        """Return the scheme of the last step with its iterations."""
        of_step = f" ({self._iterations} iterations)" if self._iterations else ""
        return repr(self._scheme) + of_step

    def _facts(self) -> dict[str, Any]:
        return {
            "u": self._runner.t.copy(),
            "spacing": self._grid.spacing[: self._grid.named],
            "lines": self._all_lines(),
            "holes": None
            if self._grid.holes is None
            else self._runner.shown(self._grid.holes).copy(),
            "origin": tuple(float(self._grid.line(axis)[0]) for axis in range(self._grid.named)),
            "time": self.time,
            "dt": self.dt,
            "last_dt": self.last_dt,
            "steps": self.steps,
            "damped_start": self._is_damped,
            "scheme": self._scheme,
            "iterations": self._iterations,
            "exchange": self._runner.exchange,
        }

    @reading
    def solve_steady(self, *, tol: float | None = None, max_iterations: int = 2000) -> HeatResult:
        r"""Return the steady state for the data at the current time; the solver does not change.

        The equation :math:`\nabla \cdot k \nabla T + q = 0` with the boundary conditions of the
        solver is solved by the iteration of ``scheme='implicit'`` from `u` on, whatever the scheme
        of the steps. If all sides are `Neumann` or periodic, T is determined up to a constant: the
        heat of `u` is kept, as it is by steps. If k or q depend on T, the equation is solved again
        with those of the last solution, until T changes by at most `tol` times its magnitude.

        Parameters
        ----------
        tol : float, optional
            The iteration ends when the correction is at most `tol` times the change of T, or a few
            rounding errors of T. By default 1e-10 in float64 and 1e-5 in float32.
        max_iterations : int, default: 2000
            Largest number of iterations.

        Returns
        -------
        result : HeatResult
            The steady state, with the iterations; ``stop_reason`` is ``'reached'``.

        Raises
        ------
        ValueError
            If all sides are `Neumann` or periodic, and sources and inflows do not balance: there is
            no steady state.
        ConvergenceError
            If `max_iterations` are not enough.
        RuntimeError
            If another thread is in a call that changes the solver.

        Examples
        --------
        >>> import numpy as np
        >>> from pysolvers import HeatADI, Neumann
        >>> sides = {"x-": 1.0, "x+": 0.0, "y": Neumann()}
        >>> solver = HeatADI((3, 5), 0.25, dt=0.1, boundary=sides)
        >>> np.allclose(solver.solve_steady().u[1], [1, 0.75, 0.5, 0.25, 0], atol=1e-12)
        True
        """
        with agreement_of(self._group, "HeatADI.solve_steady") as agreed:
            limit = _STEADY_TOL[self._settings.dtype] if tol is None else tol
            require_finite("tol", limit)
            require(limit >= 0, "tol must be at least 0", limit)
            most = index("max_iterations", max_iterations, 1)
            if agreed is not None:
                agreed.same = {"tol": float(limit), "max_iterations": most}
        start = perf_counter()
        solver, field, (gain, size) = self._runner.steady(self.time, limit, most)
        if abs(gain) > _BALANCE * size:
            grid = self._grid
            cell = prod(grid.spacing[: grid.named]) * grid.capacity / self.dt
            raise ValueError(
                "HeatADI.solve_steady: all sides are Neumann or periodic, and sources and inflows "
                f"do not balance: their sum over the domain is {gain * cell:.6g} instead of 0, so "
                "that there is no steady state: change them, or give T on a side"
            )
        found = replace(
            self.result("reached"),
            u=field,
            iterations=solver.iterations,
            scheme="implicit",
            seconds={"x": perf_counter() - start},
            **solver.run_by,
        )
        if not solver.converged:
            raise ConvergenceError(
                f"HeatADI.solve_steady: {most} iterations are not enough: give max_iterations, or "
                "a larger tol",
                found,
            )
        return found

    def _kept(self) -> dict[str, Any] | None:
        kept = self._runner.kept(self)
        if kept is None:
            return None
        return {
            **(super()._kept() or {}),
            "problem": self._problem(),
            "begun": self._begun,
            "is_damped": self._is_damped,
            "iterations": self._iterations,
            **kept,
        }

    def _gathered(self) -> NDArray[Any] | None:
        return self._runner.gather()

    @classmethod
    def load(  # type: ignore[override]
        cls,
        path: str | os.PathLike[str],
        *,
        diffusivity: Any = 1.0,
        heat_capacity: Any = 1.0,
        boundary: Any,
        source: Any = None,
        holes: Any = None,
        hole_temperature: Any = None,
        device: str | None = None,
        threads: int | None = None,
        group: Group | None = None,
        split: Slab | None = None,
    ) -> Self:
        """Read a state that `save` wrote.

        Parameters
        ----------
        path : path-like
            The file.
        diffusivity : float, array_like, callable or mapping, default: 1
            As in the solver that was saved.
        heat_capacity : float, array_like or callable, default: 1
            As in the solver that was saved.
        boundary : condition or mapping
            As in the solver that was saved.
        source : number, ndarray or callable, optional
            As in the solver that was saved.
        holes, hole_temperature : optional
            As in the solver that was saved.
        device : str, optional
            As in `HeatADI`. On another device than before, later steps differ by rounding
            errors.
        threads : int, optional
            As in `HeatADI`.
        group : pysolvers.distributed.Group, optional
            As in `HeatADI`. A state can be continued by any number of ranks; every rank reads the
            file.
        split : pysolvers.distributed.Slab, optional
            As in `HeatADI`.

        Returns
        -------
        solver : HeatADI
            A solver in the saved state.

        Raises
        ------
        ValueError
            If the file is not a state of `HeatADI`, is damaged or was changed, or contains the
            state of another problem; the message names the file and the error.
        """
        return cls._load(
            path,
            "header or arguments",
            diffusivity=diffusivity,
            heat_capacity=heat_capacity,
            boundary=boundary,
            source=source,
            holes=holes,
            hole_temperature=hole_temperature,
            device=device,
            threads=threads,
            group=group,
            split=split,
        )

    @classmethod
    def _from_saved(cls, state: Any, **data: Any) -> Self:
        return super()._from_saved(state, **{"dt": state.dt} | data)

    def _resume(self, state: Any) -> None:
        now = self._problem()
        for name in (field.name for field in fields(Problem)):
            before, value = getattr(state.problem, name), getattr(now, name)
            if before != value:
                raise ValueError(
                    f"{name} must be the same as when the state was saved, {short(before)}, "
                    f"got {short(value)}"
                )
        super()._resume(state)
        self._runner.resume(state, self.steps)
        self._begun, self._is_damped = state.begun, state.is_damped
        self._runner.unsplit.iterations = state.iterations

    def _holes_text(self) -> str:
        """Return how many nodes lie in holes, and of which kind they are."""
        grid = self._grid
        if grid.holes is None:
            return "none"
        count = int(grid.holes.sum()) // (grid.axes - grid.named + 1)  # a rod has two lines
        kind = "insulated" if grid.hole_values is None else "of a given temperature"
        return f"{count} nodes, {kind}"

    def _made_choice(self, k: NDArray[np.float64] | None) -> Choice:
        grid = self._grid
        relative = grid.relative if grid.named > 1 else None  # steps of a rod have one axis
        return Choice(self._settings, k, grid.finest, self._group, relative)

    def _take_conductivity(self) -> None:
        """Take the conductivity of the next step, which differs from that of the one before."""
        k = self._grid.k
        self._accuracy.take(k)
        self._choice = self._made_choice(k)
        self._scheme = self._accuracy.scheme = self._choice.scheme(self.dt)

    @property
    def _most_steps(self) -> int:
        return self._runner.most_steps

    def _problem(self) -> Problem:
        """Return what identifies the problem."""
        grid = self._grid
        law = None if self._laws is None else self._laws.conductivity
        given = self._data_given
        k: Any = "an array" if law is None else law.text
        if law is None and _is_by_axes(given["diffusivity"], self._settings.axes):
            k = [a * grid.capacity for a in grid.diffusivity[: grid.named]]
        is_number = _is_number(given["heat_capacity"])
        return Problem(
            diffusivity=k,
            heat_capacity=grid.capacity if is_number else "an array",
            boundary=[
                [name, s.kind, s.coefficient]
                for name, s in self._sides.items()
                if s.axis < grid.named
            ],
            source=self._source is not None,
            holes=self._holes_text(),
        )

    def _advance(self, count: int) -> bool:
        return self._runner.advance(self, count)

    @property
    def _is_fresh(self) -> bool:
        """Whether the next step is the first one of its length, or the first after a damped one."""
        return self.steps == max(self._clock.segment.steps, self._begun + self._is_damped)

    @property
    def _follows_start(self) -> bool:
        """Whether the next step is the first one after a damped one."""
        return self._is_damped and self.steps == self._begun + 1

    def _require_converged(self) -> None:
        """Raise if the equations of the next step, which is not counted, were not solved."""
        solver = self._runner.unsplit
        if not solver.converged:
            raise ConvergenceError(
                f"{self!r}: the equation of step {self.steps + 1} was not solved in "
                f"{solver.iterations} iterations: take a smaller dt",
                self.result("diverged"),
            )

    def _note(self, report: dict[str, Any]) -> None:
        run_by = report["kernel"], report["threads"]
        if self._run_by != run_by:
            self._run_by = RunBy(*run_by)
        self._add_seconds(report["seconds"])

    def _check_accuracy(self, *, is_damped: bool) -> None:
        """Warn of a step that is too large for the slowest wave, on the first rank of a group."""
        message = self._accuracy.message(self._clock.dt, is_damped=is_damped)
        if not message:  # on all ranks
            return
        with agreement_of(self._group, "HeatADI"):
            if self._shows_progress:
                warn_user(message)

    def _is_in_bounds(self) -> bool:
        return self._runner.is_finite()

    def _check_length(self, dt: float) -> None:
        rates = self._accuracy.numbers
        check_ratios(dt, rates, self._sides.values(), self._settings.dtype)
        message = self._choice.message(dt)
        if message and self._shows_progress:
            warn_user(message)
        self._scheme = self._accuracy.scheme = self._choice.scheme(dt)

    def _out_of_bounds(self) -> ConvergenceError:
        text = f"{self!r} is not finite after step {self.steps}"
        if self._scheme != "implicit" and self._choice.rate:
            text += f": take dt <= {self._choice.stable:.3g}"
        return ConvergenceError(text, self.result("diverged"))


def _is_number(value: Any) -> bool:
    """Return whether a value of the caller is one number."""
    return np.ndim(value) == 0 and not callable(value)


def _is_by_axes(diffusivity: Any, axes: str) -> bool:
    """Return whether a conductivity is a number for each axis, or one for all."""
    if isinstance(diffusivity, tuple | list):
        return len(diffusivity) == len(axes) and np.ndim(diffusivity[0]) == 0
    return isinstance(diffusivity, Mapping) or _is_number(diffusivity)


def _capacity(
    heat_capacity: Any, grid: Grid, axes: str
) -> tuple[float, NDArray[np.float64] | None]:
    """Return the heat capacity, or the mean of the nodes and their values over it."""
    name = "heat_capacity"
    if _is_number(heat_capacity):
        require_finite(name, heat_capacity)
        require(heat_capacity > 0, f"{name} must be positive", heat_capacity)
        return float(heat_capacity), None
    if callable(heat_capacity):
        arguments_of(name, heat_capacity, axes)  # of the coordinates, not of t
    data = NodeData(name, heat_capacity, *grid.everywhere)
    values = np.array(np.broadcast_to(data.at(0.0), grid.nodes[::-1]))
    require(bool((values > 0).all()), f"{name} must be positive", float(values.min()))
    mean = float(values.mean())
    return mean, values / mean


def _needs_arrays(grid: Grid, sides: Iterable[Side]) -> bool:
    """Return whether the kernels cannot step around the holes: only if these are insulated."""
    holes = grid.holes
    if holes is None or grid.hole_values is not None:
        return holes is not None
    own = (side for side in sides if side.axis < grid.named)  # not those of the plate of a rod
    return any(bool(side.of(holes).any()) for side in own if side.kind == "flux")


def _set_holes(grid: Grid, holes: Any, temperature: Any, axes: str) -> None:
    """Check the holes and their temperature, and give them to the grid."""
    if callable(holes):
        names = arguments_of("holes", holes, axes)
        known = dict(zip(axes, grid.everywhere, strict=False))
        arguments = protected({name: known[name] for name in names})
        holes = call_with_arrays("holes", holes, arguments)
    mask = np.asarray(holes)
    if mask.dtype != np.bool_:
        raise TypeError(f"holes must be an array of bool, got {mask.dtype}: write holes > 0")
    nodes = grid.nodes[: grid.named][::-1]
    try:
        mask = np.broadcast_to(mask, nodes)
    except ValueError:
        raise ValueError(f"holes must broadcast to {nodes}, got shape {mask.shape}") from None
    require(not mask.all(), "holes must leave some nodes", mask)
    values = None
    if temperature is not None:
        if callable(temperature):
            arguments_of("hole_temperature", temperature, axes)  # not of t
        data = NodeData("hole_temperature", temperature, *grid.everywhere)
        values = np.array(np.broadcast_to(data.at(0.0), grid.nodes[::-1]))
    grid.set_holes(np.array(np.broadcast_to(mask, grid.nodes[::-1])), values)


def _conductivity(
    diffusivity: Any, grid: Grid, settings: HeatSettings
) -> tuple[tuple[float, ...], NDArray[np.float64] | None]:
    """Return one factor per axis, and the values at the nodes or None, over the heat capacity."""

    def of_axes(given: Any) -> tuple[float, ...]:
        """Return k over the heat capacity, from x on, also for the second axis of a rod."""
        found = per_axis("diffusivity", given, settings.axes)
        found = tuple(each / grid.capacity for each in found)
        return (*found, *found[:1] * (grid.axes - grid.named))  # of the plate of a rod

    k = None
    if grid.holes is not None and grid.hole_values is None:
        k = grid.insulated(np.ones(grid.nodes[::-1]), settings.dtype)
    if _is_by_axes(diffusivity, settings.axes):
        if isinstance(diffusivity, tuple | list) and unequal(diffusivity):
            own = dict(zip(settings.axes, reversed(diffusivity), strict=False))
            raise ValueError(
                "diffusivity: a sequence could be meant in the order of shape: name the axes, "
                f"for example diffusivity={own}"
            )
        return of_axes(diffusivity), k
    data = NodeData("diffusivity", diffusivity, *grid.everywhere)
    return (1.0,) * grid.axes, conductivity_of(data.at(0.0), grid, settings.dtype)
