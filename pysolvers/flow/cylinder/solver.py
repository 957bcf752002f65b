"""Flow around a square cylinder in a channel, unsteady and steady."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._checks import require
from ..._errors import CoarseGridWarning, ConvergenceError, warn_user
from ..._other_calls import explain_run
from ..._runtime.fp_mode import in_default_fp_mode
from ..._solver.exclusive import exclusive
from ..._solver.files import SavedFile
from ..._solver.schema import AnyFloat, Field, Member, Positive, Table
from ..._solver.solver import State
from ..._solver.stepping import TimeStepping
from ..._views import read_only
from .._walls import WALLS, Wall
from ._channel import ChannelGrid
from ._forces import CylinderForces, ForceBalance, SurfacePressure
from ._probes import Probes
from ._result import CylinderHistory, CylinderResult, Strouhal, strouhal_of, velocity
from ._settings import Body, CylinderSettings, PsiSolver
from ._start import CylinderValues
from ._steps import CylinderState, CylinderSteps, extremes, history_rows

__all__ = ["SquareCylinder"]

Array = NDArray[Any]

_FORCES_EVERY = 4  # steps: PS_FORCES_EVERY of the backends
_CHECK = 20  # steps between two checks of the change of psi on the host
_KEEP = 100  # steps between two states that are kept for an error, and two checks on a device
_CELL_REYNOLDS = 10.0  # above, waves from node to node can stand before the cylinder
_WAVE = 0.1  # share of a wave that may be left one side before the cylinder
_LARGEST_PSI = 8.0  # three times the value on the walls, which bounds psi in most flows
_LARGEST_CHANGE = 20.0  # of psi in the shortest time of the flow; most flows have about 1
_VORTEX = (2.0, 0.4, 0.2)  # of the start: x and y from the centre, square of the width
_PROBE = 4.0  # distance of the first probe behind the centre

_FIELDS = ("psi", "psi_old", "omega", "omega_old")
_NUMBERS = ("value", "circulation", "rate", "dt_old", "origin")


@dataclass(frozen=True, kw_only=True)
class SavedCylinder(State):
    """What `save` writes: `CylinderValues`, times, the length of the next step, the history."""

    settings: CylinderSettings
    dt: Positive
    time: float
    begun: tuple[float, int]
    value: float
    circulation: float
    rate: AnyFloat
    dt_old: Positive
    origin: tuple[float, int]
    psi: Field
    psi_old: Field
    omega: Field
    omega_old: Field
    probes: Annotated[Array, Member((None, 2))]
    force_rows: Annotated[Array, Member((None, 5))]
    probe_rows: Table

    _KIND: ClassVar = "pysolvers cylinder state"

    def _check(self, saved: SavedFile) -> None:
        for name in _FIELDS:
            kind = np.dtype(self.settings.dtype)
            saved.require_array(name, getattr(self, name), self.settings.shape, kind)
        try:
            columns = self.placed().columns
        except ValueError as error:
            raise saved.error("member 'probes'", str(error)) from None
        rule = "it must have a row for each step and two columns and one for each probe"
        is_whole = self.probe_rows.shape == (self.made, columns)
        saved.require(is_whole, "member 'probe_rows'", rule)
        is_whole = len(self.force_rows) == self.made // _FORCES_EVERY
        rule = f"it must have a row for every {_FORCES_EVERY} steps"
        saved.require(is_whole, "member 'force_rows'", rule)

    def placed(self) -> Probes:
        """Return the probes on the grid."""
        return Probes(self.settings.grid, [(x, y) for x, y in self.probes.tolist()])


class SquareCylinder(TimeStepping[CylinderResult]):
    r"""Flow around a square cylinder between two walls.

    .. math:: \omega_t + u\,\omega_x + v\,\omega_y = \frac{1}{Re} \nabla^2 \omega, \qquad
        \nabla^2 \psi = -\omega, \qquad u = \psi_y,\ v = -\psi_x

    in the channel :math:`0 \le x \le L, -4 \le y \le 4`. The unit of length is the side of the
    cylinder, whose centre is :math:`(L/4, 0)`; the unit of velocity is the largest velocity of the
    inflow :math:`u = 1 - y^2/16`.

    Parameters
    ----------
    reynolds : float, default: 100
        Reynolds number, largest inflow velocity times side divided by kinematic viscosity.
    shape : (ny, nx), default: (161, 801)
        Number of nodes along y and x, with those on the boundary: the shape of the fields. The
        faces of the cylinder must lie on nodes: ``16 k + 1`` nodes along y and, for the default
        length, ``50 m + 1`` along x. The message for another shape contains the nearest that fit.
    length : float, default: 50
        Length L of the channel; at least 8.
    dt : float, optional
        Time step. By default 0.4 times the smaller spacing, or less if the Reynolds number is
        low; see Notes. It can be changed between steps.
    start_time : float, default: 0
        Time at the start.
    cylinder : {'free', 'fixed'}, default: 'free'
        Value of psi on the cylinder: from the circulation around it, or 0.
    psi_solver : {'fast', 'lines'}, default: 'fast'
        Solver of the equation of psi: sine transforms, with a capacitance matrix for the
        cylinder, which is exact; or the iteration of Peaceman and Rachford, whose sweeps of
        lines [2]_ uses and which takes longer.
    psi_tol : float, default: 1e-5
        Tolerance of ``psi_solver='lines'``: bound of the residual, relative to the largest absolute
        value of omega.
    wall : {'thom', 'woods', 'jensen'}, default: 'thom'
        Formula of the vorticity on the walls and the cylinder, of order 1, 2 and 2. The corners of
        the cylinder have the mean of Thom's formulas of both faces.
    steady : bool, default: False
        Whether the steps go to the steady flow, with `solve`, instead of following the unsteady
        flow.
    perturbation : float, default: 1
        Largest vorticity of the vortex that perturbs the start of an unsteady flow; with 0 the
        flow stays symmetric, and the lift 0, for a long time.
    dtype : {float64, float32}, default: float64
        Dtype of the fields.
    device : str, optional
        ``'cpu'``, the default, or ``'cuda'``, ``'cuda:1'``, ...: all steps are made there, and
        only forces, probes and bounds return to the host. At most 4097 nodes along an axis.
    threads : int, optional
        Number of host threads; the backend chooses the default. The result has the same bits for
        any number. On a device it has no effect.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range; the message names the rule and
        the value.
    BackendError
        If the device is not available, or the grid too large for it.
    ModuleNotFoundError
        If SciPy is not installed; it is the extra ``poisson`` of the package.

    See Also
    --------
    LidDrivenCavity : Flow in a cavity, with the same wall formulas.
    pysolvers.FastPoisson : The direct solver of the equation of psi, without a body.

    Notes
    -----
    A step follows Peaceman and Rachford [1]_: one batch of tridiagonal systems along x and one
    along y. The velocity is extrapolated to the half step. The outlet is convective. The
    vorticity on the walls is extrapolated, too, so that the order in time is 2; this limits the
    step to about the spacing and, at low Reynolds numbers, to about Re times the square of the
    spacing. psi on the cylinder is such that the
    circulation around a box of nodes changes by the flux of vorticity through the box; only then
    is the pressure on the cylinder unique. [2]_ and [3]_ contain reference values.

    Central differences have waves from node to node where the cell Reynolds number
    :math:`P = Re\,h_x` is above 2. The cylinder excites them, and they decay upstream by
    :math:`(P - 2)/(P + 2)` from node to node: with Re = 100 and :math:`h_x = 1/4` to 53 % over one
    side, with 1/8 to 8 %. If P is above 10 and more than 10 % are left, a `CoarseGridWarning` names
    a grid without visible waves.

    The steady flow is computed by backward Euler steps in delta form. It is symmetric, so that psi
    is 0 on the cylinder.

    References
    ----------
    .. [1] D. W. Peaceman and H. H. Rachford, "The numerical solution of parabolic and elliptic
       differential equations", J. SIAM 3 (1955) 28-41.
    .. [2] M. Souri, P. Akbarzadeh and H. Mahmoodi Darian, "Parallel Thomas approach
       development for solving tridiagonal systems in GPU programming", *Mechanics &
       Industry* 21, 303, 2020.
    .. [3] M. Breuer, J. Bernsdorf, T. Zeiser and F. Durst, "Accurate computations of the laminar
       flow past a square cylinder based on two different methods", *Int. J. Heat Fluid Flow* 21,
       186-196, 2000.

    Examples
    --------
    >>> from pysolvers.flow import SquareCylinder
    >>> result = SquareCylinder(reynolds=20, shape=(33, 201), steady=True).solve(tol=1e-3)
    >>> result.stop_reason
    'converged'
    >>> print(f"{result.drag:.1f}")
    2.5
    """

    _SETTINGS: ClassVar[Any] = CylinderSettings
    _RESULT: ClassVar[Any] = CylinderResult
    _STATE: ClassVar[Any] = SavedCylinder
    _quantity = "change"

    reynolds: float
    length: float
    cylinder: Body
    psi_solver: PsiSolver
    psi_tol: float
    wall: Wall
    steady: bool
    perturbation: float

    @in_default_fp_mode
    def __init__(
        self,
        reynolds: float = 100.0,
        shape: tuple[int, int] = (161, 801),
        *,
        length: float = 50.0,
        dt: float | None = None,
        start_time: float = 0.0,
        cylinder: Body = "free",
        psi_solver: PsiSolver = "fast",
        psi_tol: float = 1e-5,
        wall: Wall = "thom",
        steady: bool = False,
        perturbation: float = 1.0,
        dtype: Any = np.float64,
        device: str | None = None,
        threads: int | None = None,
    ) -> None:
        settings = self._SETTINGS(
            **self._experiment,
            reynolds=reynolds,
            shape=shape,
            length=length,
            dt=dt,
            start_time=start_time,
            cylinder=cylinder,
            psi_solver=psi_solver,
            psi_tol=psi_tol,
            wall=wall,
            steady=steady,
            perturbation=perturbation,
            dtype=dtype,
            device=device,
            threads=threads,
        )
        self._grid = grid = settings.grid
        re = settings.reynolds
        usual = _default_step(grid, re, wall, steady=steady)
        super().__init__(settings, usual if settings.dt is None else settings.dt)
        self._forces = CylinderForces(grid, 1 / re)
        self._steps = CylinderSteps(grid, settings, self._forces.table())
        self._probes = Probes(grid, [(grid.centre + _PROBE, 0.0)])
        self._force_rows: list[tuple[float, ...]] = []
        self._probe_rows: list[tuple[float, ...]] = []
        # Largest absolute value of psi and its change in the last step, where known.
        self._extremes: tuple[float, float] | None = None
        self._begun = settings.start_time, 0  # time and number of steps of the start
        self._state = self._start(0.0 if steady else settings.perturbation)
        self._kept_states = [self._state.copy()]
        if _has_waves(re, grid.hx):
            warn_user(_waves_text(re, grid), CoarseGridWarning)

    @property
    def psi(self) -> Array:
        """Current streamfunction: shape (ny, nx), a read-only view, valid until the next step."""
        return read_only(self._state.psi)

    @psi.setter
    def psi(self, values: ArrayLike) -> None:
        raise self._is_computed("psi", "omega")

    @property
    def omega(self) -> Array:
        """Current vorticity: shape (ny, nx), a read-only view, valid until the next step.

        It can be set, to an array of the same shape: the flow goes on at the same time from its
        values at the nodes of the flow, with the circulation around the body and the values of psi
        on the boundary as they are. The start is made again.
        """
        return read_only(self._state.omega)

    @omega.setter
    @exclusive
    def omega(self, values: ArrayLike) -> None:
        self._set_field("omega", values)

    @property
    @in_default_fp_mode
    def u(self) -> Array:
        """Current velocity along x: shape (ny, nx), a new array, computed from `psi`."""
        return velocity(self._grid, self._state.psi)[0]

    @u.setter
    def u(self, values: ArrayLike) -> None:
        raise self._is_computed("u", "omega")

    @property
    @in_default_fp_mode
    def v(self) -> Array:
        """Current velocity along y: shape (ny, nx), a new array, computed from `psi`."""
        return velocity(self._grid, self._state.psi)[1]

    @v.setter
    def v(self, values: ArrayLike) -> None:
        raise self._is_computed("v", "omega")

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the fields."""
        return self._grid.shape

    @property
    def x(self) -> Array:
        """Coordinates of the nodes along x: shape (nx,)."""
        return read_only(self._grid.x)

    @property
    def y(self) -> Array:
        """Coordinates of the nodes along y: shape (ny,)."""
        return read_only(self._grid.y)

    @property
    def time(self) -> float:
        """Time of the fields."""
        return self._clock.rounded(self.steps, self._state.time)

    @property
    def _made(self) -> int:
        return self._state.steps

    @property
    def last_dt(self) -> float:
        """Length of the last step; before the first step `dt`."""
        return self._state.dt_old if self._has_stepped else self.dt

    @property
    def circulation(self) -> float:
        """Circulation of the velocity around the box half a side away from the cylinder."""
        return self._state.circulation

    @property
    @in_default_fp_mode
    def forces(self) -> ForceBalance:
        """Forces in the middle of the last step, by two formulas.

        Raises
        ------
        ValueError
            Before the first step, also after `omega` was set.
        """
        self._require_a_step("the forces")
        return self._forces.balance(self._state)

    @property
    def drag(self) -> float:
        """Coefficient Cd in the middle of the last step, by the balance over the box."""
        return self.forces.drag

    @property
    def lift(self) -> float:
        """Coefficient Cl in the middle of the last step, by the balance over the box."""
        return self.forces.lift

    @property
    def p_wall(self) -> SurfacePressure:
        """Pressure on the cylinder in the middle of the last step; 0 in the middle of the front.

        Raises
        ------
        ValueError
            Before the first step, also after `omega` was set.
        """
        self._require_a_step("p_wall")
        return self._forces.pressure(self._state)

    @property
    def _has_stepped(self) -> bool:
        """Whether a step was made since the start."""
        return self.steps > self._begun[1]

    def _require_a_step(self, name: str) -> None:
        """Raise unless a step was made since the start."""
        rule = f"{name} of SquareCylinder: a step is needed before, call step() first; steps"
        require(self._has_stepped, rule, self.steps)

    def _text(self) -> str:
        s = self._settings
        kind = ", steady=True" if s.steady else f", dt={self.dt:g}"
        return f"reynolds={s.reynolds:g}, shape={s.shape}, wall={s.wall!r}{kind}"

    def strouhal(self) -> Strouhal:
        """Return the Strouhal number of v on y = 0, four sides behind the centre.

        Raises
        ------
        ValueError
            If v has fewer than three rising zeros.
        """
        history = self._history()
        return strouhal_of(history.probe_time, history.v[:, 0])

    @explain_run
    @exclusive
    def run(
        self,
        until: float,
        *,
        callback: Callable[[Self], Any] | None = None,
        interval: int = 1,
        progress: bool | None = None,
        probes: Sequence[tuple[float, float]] = (),
    ) -> CylinderResult:
        """Step until a time is reached.

        Parameters
        ----------
        until : float
            The end time. The last step, or the last two, are shortened to end at this time.
        callback : callable, optional
            Called with this object after each step whose number is a multiple of `interval`, and
            after the last step; a true return value ends the run.
        interval : int, default: 1
            Number of steps between two calls of `callback`.
        progress : bool, optional
            Whether to show a progress bar with the time left. By default it is shown in a
            terminal and in a notebook after a second, if tqdm is installed.
        probes : sequence of (x, y), optional
            Places where the velocity is recorded after every step, in addition to the probes so
            far. The values are interpolated linearly along both axes.

        Returns
        -------
        result : CylinderResult
            The final state and the history.

        Raises
        ------
        ConvergenceError
            If the step is too large, so that psi grows without bound. The solver goes back to a
            state before the growth; the attribute ``result`` contains it.
        ValueError
            If the solver is steady, or a probe is not in the flow.
        RuntimeError
            As in `step`.
        """
        before, steps = self._probes, self.steps
        self._probes = before.with_more(probes)
        try:
            return self._run(until, callback, interval, progress)
        except BaseException:
            if self.steps == steps:
                self._probes = before
            raise

    def _check_end(self, until: float) -> None:
        if self._settings.steady:
            raise ValueError(
                "run and record need steady=False; call solve(tol) for the steady flow"
            )
        super()._check_end(until)

    @exclusive
    def solve(
        self,
        tol: float = 1e-6,
        *,
        max_iterations: int = 100_000,
        patience: int | None = None,
        callback: Callable[["SquareCylinder"], Any] | None = None,
        interval: int = 1,
        progress: bool | None = None,
    ) -> CylinderResult:
        """Step until the flow is steady.

        Parameters
        ----------
        tol : float, default: 1e-6
            Upper bound of the largest change of psi per unit time; at least 0. It is checked after
            every step, on a device after every 20 steps. With a `dt` that was set, the change in a
            trial step of the default length must not be larger, either: very long and very short
            steps change little in a flow that is not steady.
        max_iterations : int, default: 100000
            Largest number of steps of this call.
        patience : int, optional
            Largest number of steps in which the smallest change does not fall by 10 %; then the
            iteration ends with an error. By default the larger of 5000 and the steps of the time
            in which the flow passes the channel.
        callback : callable, optional
            Called with this object after each step whose number is a multiple of `interval`, and
            after the last step; a true return value ends the iteration.
        interval : int, default: 1
            Number of steps between two calls of `callback`.
        progress : bool, optional
            As in `run`.

        Returns
        -------
        result : CylinderResult
            The steady state, or the state at which `callback` ended the iteration.

        Raises
        ------
        ConvergenceError
            If the tolerance was not reached, the change stalled, or the step is too large. The
            attribute ``result`` contains the last finite state and the history.
        ValueError
            If the solver is not steady, or an argument is out of its range.
        RuntimeError
            As in `step`.
        """
        if not self._settings.steady:
            raise ValueError("solve needs steady=True; call run(until) for the unsteady flow")
        return self._solve(tol, max_iterations, patience, callback, interval, progress)

    def _approach(self, stop: int) -> None:
        self._step_to(min(self.steps + self._steps.interval, stop), self.dt)

    def _measure(self, tol: float, *, is_end: bool) -> float:
        """Return the change of psi per unit time that decides about convergence.

        That of the last step; where it is at most `tol`, the larger one of it and of the change in
        a trial step of the default length. The trial step vanishes only where the equations and
        the wall formulas hold, and its change per unit time does not depend on `dt`.
        """
        del is_end
        change, s = self._change(), self._settings
        dt = _default_step(self._grid, s.reynolds, s.wall, steady=True)
        if not change <= tol or self.last_dt == dt:
            return change
        trial = self._state.copy()
        self._steps.make(trial, dt, 1, self._probes)
        return max(change, float(np.abs(trial.psi - trial.psi_old).max()) / dt)

    def _patience(self, most: int) -> int:
        return ceil(min(self._settings.length / self.dt, most))

    def _advice(self, tol: float, *, is_stalled: bool) -> str:
        if not is_stalled:
            return ""
        return (
            ": the flow can be unsteady, or dt unsuitable: take dt=None, a smaller reynolds, or a "
            "larger patience"
        )

    @property
    def seconds(self) -> dict[str, float]:
        """Time spent in each stage so far, as in the result."""
        return dict(self._steps.seconds)

    def _facts(self) -> dict[str, Any]:
        state, nan = self._state, float("nan")
        forces = (
            self.forces if self._has_stepped else ForceBalance(0.0, nan, nan, nan, nan, nan, nan)
        )
        of_forces = "drag", "lift", "surface_drag", "surface_lift", "surface_gap"
        of_settings = "reynolds", "length", "cylinder", "wall", "steady"
        return {
            **{name: getattr(forces, name) for name in of_forces},
            **{name: getattr(self._settings, name) for name in of_settings},
            "psi": state.psi.copy(),
            "omega": state.omega.copy(),
            "time": self.time,
            "dt": state.dt_old,
            "steps": self.steps,
            "history": self._history(),
            "backend": "cuda" if self._steps.on_device else "cpu",
            "kernel": "" if self._steps.on_device else self._settings.backend.describe(),
            "threads": self._steps.threads,
        }

    def _kept(self) -> dict[str, Any]:
        self._collect()
        return {
            **{name: getattr(self._state, name) for name in (*_NUMBERS, *_FIELDS)},
            "dt": self.dt,
            "time": self.time,
            "begun": self._begun,
            "probes": self._probes.places,
            "force_rows": _table(self._force_rows, 5),
            "probe_rows": _table(self._probe_rows, self._probes.columns),
        }

    @classmethod
    def _from_saved(cls, state: Any, **data: Any) -> Self:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoarseGridWarning)  # it came with the first solver
            return super()._from_saved(state, **data)

    def _resume(self, state: Any) -> None:
        require(
            state.seconds.keys() == self.seconds.keys(),
            f"seconds must have the keys {', '.join(self.seconds)}",
            list(state.seconds),
        )
        self.dt = state.dt
        self._probes, self._begun = state.placed(), state.begun
        self._probe_rows = [tuple(row) for row in state.probe_rows.tolist()]
        self._force_rows = [tuple(row) for row in state.force_rows.tolist()]
        self._steps.seconds.update(state.seconds)
        values = {name: getattr(state, name) for name in (*_NUMBERS, *_FIELDS)}
        self._state = self._steps.resume(CylinderValues(**values, steps=state.made))
        self._clock.reach(self.steps, state.time)
        self._kept_states = [self._state.copy()]
        self._examined = self.steps

    def _start(self, perturbation: float) -> CylinderState:
        """Return the state before the first step: the inflow everywhere, and a vortex."""
        grid = self._grid
        profile, vorticity = (a[:, None] for a in grid.inflow())
        psi = np.repeat(profile, grid.shape[1], axis=1)
        omega = np.repeat(vorticity, grid.shape[1], axis=1)
        x, y, width = _VORTEX
        square = (grid.x - grid.centre - x) ** 2 + (grid.y[:, None] - y) ** 2
        omega[1:-1, 1:-1] += (perturbation * np.exp(-square / width))[1:-1, 1:-1]
        return self._steps.start(psi, omega, self.dt, self._begun)

    def _restart(self, **fields: NDArray[Any]) -> None:
        self._collect()
        state, origin = self._state, (self.time, self.steps)
        psi, omega = (np.array(a, np.float64) for a in (state.psi, fields["omega"]))
        found = self._steps.start(psi, omega, self.dt, origin, state.circulation)
        self._begun, self._extremes, self._kept_states = origin, None, [found.copy()]
        self._state = found

    def _step_to(self, end: int, dt: float) -> None:
        usual, self._next_dt = self._next_dt, dt
        try:
            super()._step_to(end, dt)
        finally:
            self._next_dt = usual

    def _plan(self, until: float) -> tuple[int, float]:
        left = (until - self.time) / self.dt
        whole = max(0, floor(left * (1 + 1e-12) + 1e-9))
        rest = left - whole
        if rest <= 1e-9:
            return self.steps + whole, 0.0
        # The velocity at the half step is extrapolated from the last two levels, so that no step
        # may be much longer than the step before: two equal steps rather than a very short one.
        if rest < 0.5 and whole:
            return self.steps + whole - 1, (1 + rest) / 2 * self.dt
        return self.steps + whole, rest * self.dt

    @property
    def _most_steps(self) -> int:
        return _KEEP if self._steps.on_device else _CHECK

    def _advance(self, count: int) -> bool:
        """Make steps up to the next check, at most `count`."""
        self._collect()
        most = self._most_steps
        count = min(count, most - self.steps % most)
        try:
            self._steps.make(self._state, self.dt, count, self._probes)
        finally:
            self._collect()
        return self._is_in_bounds()

    def _collect(self) -> None:
        """Append what the steps recorded and the histories do not contain yet."""
        state = self._state
        first, rows, columns = self._steps.rows(state, len(self._probe_rows))
        if not len(rows):
            return
        steady = self._settings.steady
        probes, forces = history_rows(first, rows, columns, state, _FORCES_EVERY, steady=steady)
        at = (first - 1) // _FORCES_EVERY
        found = extremes(rows, columns)
        # One statement without a call: no signal handler runs within it.
        self._extremes, self._force_rows[at:], self._probe_rows[first - 1 :] = (
            found,
            forces,
            probes,
        )

    def _is_in_bounds(self) -> bool:
        """Check psi and its change; keep a copy of a healthy state from time to time."""
        self._collect()
        state = self._state
        if self._extremes is None:
            change = float(np.abs(state.psi - state.psi_old).max())
            self._extremes = float(np.abs(state.psi).max()), change
        largest, change = self._extremes
        # NaN fails every comparison.
        healthy = largest < _LARGEST_PSI
        if not self._settings.steady and state.steps - self._begun[1] > _CHECK:
            healthy = healthy and change / state.dt_old < self._change_limit
        if healthy and state.steps >= self._kept_states[-1].steps + _KEEP:
            oldest = self._kept_states[0] if len(self._kept_states) == 2 else None
            self._kept_states = [self._kept_states[-1]]
            self._kept_states.append(state.copy(into=oldest))
        return healthy

    @property
    def _change_limit(self) -> float:
        """Largest change of psi per unit time of a run that is stable.

        psi is of order 1, and so is its change in the shortest time of the flow: 1 for convection,
        Re for viscous diffusion, and the time since the start, whose vorticity is not smooth.
        """
        elapsed = self._state.time - self._begun[0]
        return float(_LARGEST_CHANGE / min(1.0, self._settings.reynolds, elapsed))

    def _out_of_bounds(self) -> ConvergenceError:
        """Go back to the older of the kept states."""
        late, steps, limit = self.time, self.steps, self._change_limit
        self._state = state = self._kept_states[0].copy()
        self._kept_states = [state.copy()]
        self._extremes = None
        del self._probe_rows[state.steps :]
        del self._force_rows[state.steps // _FORCES_EVERY :]
        self._examined = state.steps
        return ConvergenceError(
            f"SquareCylinder: psi must stay below {_LARGEST_PSI:g} and change by less than "
            f"{limit:.3g} per unit time, but did not at step {steps}, time {late:g}: "
            f"dt={self.dt:g} is too large, or the grid too coarse for reynolds="
            f"{self._settings.reynolds:g}; the solver is back at time {self.time:g}: set a smaller "
            f"dt, for example {self.dt / 2:g}",
            self.result("diverged"),
        )

    def _change(self) -> float:
        """Return the change of psi per unit time in the last step."""
        self._collect()
        return self._probe_rows[-1][1] if self._probe_rows else float("inf")

    def _history(self) -> CylinderHistory:
        self._collect()
        forces = _table(self._force_rows, 5)
        rows = _table(self._probe_rows, self._probes.columns)
        return CylinderHistory(
            time=forces[:, 0].copy(),
            drag=forces[:, 1].copy(),
            lift=forces[:, 2].copy(),
            surface_drag=forces[:, 3].copy(),
            surface_lift=forces[:, 4].copy(),
            probe_time=rows[:, 0].copy(),
            probes=self._probes.places.copy(),
            u=rows[:, 2::2].copy(),
            v=rows[:, 3::2].copy(),
            change=rows[:, 1].copy(),
        )


def _default_step(grid: ChannelGrid, re: float, wall: str, *, steady: bool) -> float:
    """Return a step that is stable: see the notes of `SquareCylinder`."""
    h = min(grid.hx, grid.hy)
    if steady:
        return min(0.1, 0.02 * re**0.5)
    gain = WALLS[wall].gain
    return float(min(0.4 * h, 0.4 * re * h**2 / gain))


def _has_waves(re: float, hx: float) -> bool:
    """Return whether waves of visible size stand before the cylinder.

    Central differences of u w_x = w_xx/Re with u = 1 have the solution w_i = q^i with
    q = (2 + P)/(2 - P), P = Re hx: for P > 2 a wave from node to node, which the cylinder excites
    and which decays upstream.
    """
    cell = re * hx
    return cell > _CELL_REYNOLDS and ((cell - 2) / (cell + 2)) ** (1 / hx) > _WAVE


def _waves_text(re: float, grid: ChannelGrid) -> str:
    """Return a warning that names a grid without waves."""
    intervals = grid.intervals[1]
    while _has_waves(re, grid.length / intervals):
        intervals = grid.next_intervals(intervals + 1)
    rows = max(grid.intervals[0], grid.rows_of(grid.length / intervals))
    return (
        f"SquareCylinder: the cell Reynolds number re hx = {re * grid.hx:.3g} is above "
        f"{_CELL_REYNOLDS:g}: the vorticity has waves from node to node before the cylinder that "
        f"the flow does not have. Take shape=({rows + 1}, {intervals + 1}) or a finer grid, or "
        "filter pysolvers.CoarseGridWarning"
    )


def _table(rows: list[tuple[float, ...]], columns: int) -> Array:
    """Return rows as an array; short rows are filled with NaN."""
    table = np.full((len(rows), columns), np.nan)
    for k, row in enumerate(rows):
        table[k, : len(row)] = row
    return table
