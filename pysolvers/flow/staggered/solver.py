"""The lid-driven cavity on a staggered grid, stepped in time."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, inf
from time import perf_counter
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._boundary import Neumann
from ..._checks import require
from ..._errors import ConvergenceError, raise_for_status
from ..._runtime.fields import DeviceFields, make_fields
from ..._runtime.fp_mode import in_default_fp_mode
from ..._solver.exclusive import exclusive
from ..._solver.files import SavedFile
from ..._solver.schema import Line, Member, RunBy, Table
from ..._solver.solver import Solver, State
from ..._solver.stepping import TimeStepping
from ..._views import read_only
from ...poisson import FastPoisson
from .. import _fields
from ._device import DeviceSteps, call_backend
from ._force import Force
from ._result import StaggeredHistory, StaggeredResult
from ._settings import Pressure, StaggeredSettings

__all__ = ["StaggeredCavity"]

Array = NDArray[np.float64]

_INTERVAL = 20  # steps between two rows of the history
# Time in which the change of a flow that becomes steady falls by 10 %: it took at most 7.2 in runs
# with Re = 100 to 10000 on 32 x 32 and 64 x 64 cells.
_PATIENCE = 50.0
_ROUNDING = 1e-9  # of a number of steps
_COLUMNS = ("step", "time", "dt", "change", "sweeps")
_SAVED = ("u", "v", "p", "clock")
_GIVEN = ("reynolds", "lid_velocity", "gamma", "pressure")  # of the result


@dataclass(frozen=True, kw_only=True)
class StaggeredState(State):
    """What `save` writes.

    Parameters
    ----------
    settings : StaggeredSettings
        The parameters.
    u, v, p : ndarray
        The fields, u and v with ghost values.
    clock : ndarray
        Times and counts, as the backend keeps them.
    history : ndarray, shape (k, 5)
        Rows of the history.
    is_forced : bool
        Whether the solver had a force.
    """

    settings: StaggeredSettings
    u: Table
    v: Table
    p: Table
    clock: Line
    history: Annotated[Array, Member((None, len(_COLUMNS)))]
    is_forced: bool

    _KIND: ClassVar = "pysolvers staggered cavity state"

    def _check(self, saved: SavedFile) -> None:
        n, backend = self.settings.n, self.settings.backend
        saved.require_stages(self.seconds, backend.STAGGERED_STAGES)
        for name in "uv":
            saved.require_array(name, getattr(self, name), (n + 2, n + 2), np.float64)
        saved.require_array("p", self.p, (n, n), np.float64)
        saved.require_array("clock", self.clock, (len(backend.CLOCK),), np.float64)
        saved.require_rows(self.history, _INTERVAL, self.made, "steps")
        rule = "it must contain the steps of the header"
        is_same = bool(self.clock[backend.CLOCK["steps"]] == self.made)
        saved.require(is_same, "member 'clock'", rule)


class StaggeredCavity(TimeStepping[StaggeredResult]):
    r"""Time-dependent flow in a square cavity, driven by a lid that slides along x or by a force.

    .. math:: u_t + (u u)_x + (u v)_y = -p_x + \tfrac{1}{Re} \nabla^2 u + f_x, \qquad
        v_t + (u v)_x + (v v)_y = -p_y + \tfrac{1}{Re} \nabla^2 v + f_y, \qquad u_x + v_y = 0

    on the unit square, from rest, in the primitive variables of a staggered grid: u on the
    vertical faces of the cells, v on the horizontal faces, p in the centres. Steps are explicit
    for the velocity and implicit for the pressure. The unit of length is the side of the cavity,
    and the unit of velocity is the speed U of the Reynolds number, by default that of the lid,
    which is the side y = 1. Times are in units of side / U, forces per mass in units of
    :math:`U^2` / side.

    Parameters
    ----------
    reynolds : float, default: 1000
        Reynolds number: U times side divided by kinematic viscosity; positive.
    n : int, default: 128
        Number of cells along each side; at least 4.
    lid_velocity : float, default: 1
        Velocity of the lid along x in units of U; 0 is a wall at rest.
    force : tuple of two, optional
        Components :math:`f_x` and :math:`f_y` of the force per mass on the fluid: each a number,
        an array, or a function of x, y and t (in any order, by name; called with arrays). An
        array of :math:`f_x` broadcasts to the shape (n, n + 1) of u, one of :math:`f_y` to the
        shape (n + 1, n) of v; values on walls are not used. A step from t has the force at t.
    pressure : {'fast', 'sor'}, default: 'fast'
        Solver of the Poisson equation of the pressure: `FastPoisson`, which is direct, or
        red-black SOR from the pressure of the last step.
    gamma : float or 'auto', default: 0
        Convection: 0 for central differences, 1 for donor-cell differences, or a mixture of both.
        ``'auto'`` is 1.2 times the largest Courant number of the step, at most 1. The published
        program uses 0.9.
    tau : float, default: 0.5
        Length of a step, as a fraction of the limit; see Notes.
    dt : float, optional
        Constant length of the steps, instead of `tau`.
    start_time : float, default: 0
        Time at the start.
    pressure_tol : float or None, default: 1e-4
        For ``'sor'``: root mean square of the residual at which the iterations of a step end. None
        makes exactly `max_sweeps` iterations in every step.
    max_sweeps : int, default: 20000
        For ``'sor'``: largest number of iterations in a step.
    omega : float, optional
        For ``'sor'``: relaxation factor, between 0 and 2; by default :math:`2/(1 + \sin(\pi/n))`.
    device : str, optional
        ``'cpu'``, the default, ``'cuda'`` or ``'cuda:N'``. The fields stay on the device, where
        ``'fast'`` needs cuFFT, which is in the extra ``cuda``.
    threads : int, optional
        Number of host threads. By default one on small grids; on others the backend chooses. The
        result has the same bits for any number.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range; the message names the rule and the
        value.
    BackendError
        If the device is not available.
    ModuleNotFoundError
        If SciPy, which ``pressure='fast'`` uses, is not installed.

    See Also
    --------
    LidDrivenCavity : The steady flow, in streamfunction and vorticity.
    FastPoisson : The direct solver of the pressure.

    Notes
    -----
    A step is [1]_, [2]_

    .. math:: F = u + dt\,(\tfrac{1}{Re} \nabla^2 u - (u u)_x - (u v)_y), \quad
        \nabla^2 p = \frac{F_x + G_y}{dt}, \quad u^{new} = F - dt\, p_x

    and likewise for G and v, with zero normal derivatives of p at the walls. The automatic length
    of a step is :math:`\tau \min(Re\,h^2/4,\ h/\max|u|,\ h/\max|v|)` with h = 1/n, where the
    ghost values above the lid count, so that :math:`\max|u|` is at least 2 if the lid has the
    speed 1. With a force the last two are the time in which a particle of the largest speed that
    the largest force accelerates moves by h; without one a run is regarded as
    unstable above 100 lid speeds. For `gamma` = 0,
    :math:`dt \le 2/Re` is also necessary where the speed is 1: an unstable run ends with a
    ConvergenceError.

    After a step with ``'fast'`` the divergence of the velocity is zero up to rounding errors. With
    ``'sor'`` it is dt times the residual of the pressure.

    References
    ----------
    .. [1] M. Griebel, T. Dornseifer and T. Neunhoeffer, *Numerical Simulation in Fluid Dynamics*,
       SIAM, 1998, ch. 3.
    .. [2] K. E. Niemeyer and C.-J. Sung, "Recent progress and challenges in exploiting graphics
       processors in computational fluid dynamics", *J. Supercomputing* 67, 528-564, 2014.

    Examples
    --------
    >>> from pysolvers.flow import StaggeredCavity
    >>> result = StaggeredCavity(reynolds=100, n=32).solve(tol=1e-3)
    >>> result.stop_reason
    'converged'
    >>> vortex = result.primary_vortex()
    >>> print(f"{vortex.x:.2f} {vortex.y:.2f}")
    0.62 0.74
    """

    _SETTINGS: ClassVar[Any] = StaggeredSettings
    _RESULT: ClassVar[Any] = StaggeredResult
    _STATE: ClassVar[Any] = StaggeredState

    reynolds: float
    n: int
    lid_velocity: float
    pressure: Pressure
    gamma: float | Literal["auto"]
    tau: float
    pressure_tol: float | None
    max_sweeps: int
    omega: float | None
    _quantity = "change"

    @in_default_fp_mode
    def __init__(
        self,
        reynolds: float = 1000.0,
        n: int = 128,
        *,
        lid_velocity: float = 1.0,
        force: tuple[Any, Any] | None = None,
        pressure: Pressure = "fast",
        gamma: float | Literal["auto"] = 0.0,
        tau: float = 0.5,
        dt: float | None = None,
        start_time: float = 0.0,
        pressure_tol: float | None = 1e-4,
        max_sweeps: int = 20_000,
        omega: float | None = None,
        device: str | None = None,
        threads: int | None = None,
    ) -> None:
        settings = self._SETTINGS(
            **self._experiment,
            reynolds=reynolds,
            lid_velocity=lid_velocity,
            n=n,
            pressure=pressure,
            gamma=gamma,
            tau=tau,
            dt=dt,
            start_time=start_time,
            pressure_tol=pressure_tol,
            max_sweeps=max_sweeps,
            omega=omega,
            device=device,
            threads=threads,
        )
        Solver.__init__(self, settings, settings.backend.STAGGERED_STAGES)
        n, self._entries = settings.n, settings.backend.CLOCK
        layout: dict[str, Any] = dict.fromkeys("uvfg", ((n + 2, n + 2), np.float64))
        layout |= dict.fromkeys("pq", ((n, n), np.float64))
        layout["clock"] = (len(self._entries),), np.float64
        self._state = make_fields(layout, settings.device, "StaggeredCavity")
        start = np.zeros((n + 2, n + 2))
        start[n + 1, : n + 1] = 2 * settings.lid_velocity  # ghosts above the lid
        self._state.set("u", start)
        times = np.zeros(len(self._entries))
        times[self._entries["u"]] = settings.start_speed
        times[self._entries["change"]] = inf
        times[self._entries["time"]] = settings.start_time
        self._state.set("clock", times)
        self._poisson: FastPoisson | None = None
        self._device_steps: DeviceSteps | None = None
        if settings.pressure == "fast" and settings.is_on_device:
            assert isinstance(self._state, DeviceFields)
            self._device_steps = DeviceSteps(self._state, settings)
        elif settings.pressure == "fast":
            self._poisson = FastPoisson(
                (n, n),
                extent=((0.0, 1.0), (0.0, 1.0)),
                boundary=Neumann(),
                grid="cells",
                on_incompatible="ignore",
                threads=settings.call_threads or None,
            )
        self._history: list[tuple[float, ...]] = []
        self._force: Force | None = None
        self._force = self._checked_force(force)
        self._data_given = {"force": force}

    def _checked_force(self, given: Any) -> Force | None:
        """Return a force at the faces of the cells, from the present time on."""
        s = self._settings
        store = None if self._force is None else self._force.store
        return None if given is None else Force(given, s.n, self.time, s.device, store)

    @property
    def force(self) -> tuple[Any, Any] | None:
        """Force per mass on the fluid, as it was given: None or its two components.

        It can be set between steps. Values of arrays are copied at that time: an array that is
        changed afterwards has to be set again. On a device a constant `dt` keeps the graph of a
        step: with an automatic length each force with another largest value needs a new one.
        """
        given: tuple[Any, Any] | None = self._data_given["force"]
        return given

    @force.setter
    @exclusive
    @in_default_fp_mode
    def force(self, value: tuple[Any, Any] | None) -> None:
        self._force = self._checked_force(value)
        self._data_given = {"force": value}

    @property
    def u(self) -> Array:
        """Current velocity along x on the vertical faces: shape (n, n + 1), a read-only view.

        It can be set, as `v`, to an array of the same shape: the flow goes on from its values at
        the same time, and the next step makes the velocity free of divergence. Faces on walls keep
        the velocity 0.
        """
        return read_only(self._state.get("u")[1:-1, :-1])

    @u.setter
    @exclusive
    def u(self, values: ArrayLike) -> None:
        self._set_field("u", values)

    @property
    def v(self) -> Array:
        """Current velocity along y on the horizontal faces: shape (n + 1, n), a read-only view.

        It can be set: see `u`.
        """
        return read_only(self._state.get("v")[:-1, 1:-1])

    @v.setter
    @exclusive
    def v(self, values: ArrayLike) -> None:
        self._set_field("v", values)

    @property
    @in_default_fp_mode
    def p(self) -> Array:
        """Current pressure in the centres of the cells, with mean 0: shape (n, n), a new array.

        It can be set, to an array of the same shape. A step with ``pressure='sor'`` begins its
        iterations from it.
        """
        p = self._state.get("p")
        return p - p.mean()

    @p.setter
    @exclusive
    def p(self, values: ArrayLike) -> None:
        self._set_field("p", values)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of cells along y and x: the shape of p."""
        return self._settings.n, self._settings.n

    @property
    def x(self) -> Array:
        """Coordinates of the centres of the cells along x: shape (n,)."""
        return (np.arange(self._settings.n) + 0.5) / self._settings.n

    @property
    def y(self) -> Array:
        """Coordinates of the centres of the cells along y: shape (n,)."""
        return self.x

    @property
    def time(self) -> float:
        """Time of the solution, in units of side / U."""
        return self._now("time")

    @property
    def _made(self) -> int:
        return int(self._now("steps"))

    @property  # type: ignore[override]
    def dt(self) -> float | None:
        """Constant length of the steps, or None if it is automatic; it can be set."""
        return self._settings.dt

    @dt.setter
    def dt(self, value: float | None) -> None:
        self._settings = replace(self._settings, dt=value)

    @property
    def last_dt(self) -> float:
        """Length of the last step; before the first step that of the first step."""
        return self._now("dt") if self.steps else self._longest_step

    @property
    def change(self) -> float:
        """Largest change of a velocity in the last step divided by its length; first infinite."""
        return self._now("change")

    @property
    def sweeps(self) -> int:
        """Number of SOR iterations since the start."""
        return int(self._now("sweeps"))

    @property
    def divergence(self) -> float:
        """Largest absolute value of ``u_x + v_y``, times the size of a cell."""
        return _fields.largest_divergence(self.u, self.v)

    @property
    def _longest_step(self) -> float:
        """Length of a step of the fluid at rest."""
        return float(self._settings.longest_step(0.0 if self._force is None else self._force.most))

    def _text(self) -> str:
        s = self._settings
        lid = f", lid_velocity={s.lid_velocity:g}" if s.lid_velocity != 1 else ""
        return f"reynolds={s.reynolds:g}, n={s.n}{lid}, pressure={s.pressure!r}"

    def _step_to(self, end: int, dt: float) -> None:
        del dt  # the backend chooses it
        self._make(end)

    def _step_towards(self, until: float, stop: int | None) -> None:
        made = self.steps
        self._make_some((made + _INTERVAL if stop is None else stop) - made)

    def _is_at(self, until: float) -> bool:
        return self.time >= until

    def _steps_left(self, until: float) -> int:
        dt = self._settings.dt or self.last_dt
        return max(ceil((until - self.time) / dt * (1 - _ROUNDING)), 0)

    @property
    def _most_steps(self) -> int:
        return _INTERVAL

    @exclusive
    def solve(
        self,
        tol: float = 1e-5,
        *,
        max_iterations: int = 1_000_000,
        patience: int | None = None,
        callback: Callable[[StaggeredCavity], Any] | None = None,
        interval: int = 1,
        progress: bool | None = None,
    ) -> StaggeredResult:
        """Step until the flow is steady.

        Parameters
        ----------
        tol : float, default: 1e-5
            Upper bound of `change`; not negative.
        max_iterations : int, default: 1000000
            Largest number of steps of this call.
        patience : int, optional
            Largest number of steps in which the smallest change does not fall by 10 %; then the
            iteration ends with an error. By default the larger of 5000 and the steps of a time
            of 50.
        callback : callable, optional
            Called with this object after each step whose number is a multiple of `interval`, and
            after the last step; a true return value ends the run.
        interval : int, default: 1
            Number of steps between two calls of `callback`. Steps between two calls can be made in
            one call of the backend, which takes less time.
        progress : bool, optional
            As in `run`.

        Returns
        -------
        result : StaggeredResult
            The steady state, or the state at which `callback` ended the run.

        Raises
        ------
        TypeError, ValueError
            If `tol` is not a number of at least 0, `max_iterations` no integer of at least 1, or
            `callback` is not a function.
        ConvergenceError
            If the flow is not steady after `max_iterations` steps, the change stalled, and as in
            `step`. The attribute ``result`` contains the state and the history.
        RuntimeError
            As in `step`.
        """
        return self._solve(tol, max_iterations, patience, callback, interval, progress)

    def _measure(self, tol: float, *, is_end: bool) -> float:
        del tol, is_end
        return self.change

    def _patience(self, most: int) -> int:
        return ceil(min(_PATIENCE / self._longest_step, most))

    def _advice(self, tol: float, *, is_stalled: bool) -> str:
        if not is_stalled:
            return ""
        return (
            ": the flow can be unsteady, or tol below the rounding errors: take a larger tol, a "
            "smaller reynolds, or a larger patience"
        )

    def _facts(self) -> dict[str, Any]:
        self._record()
        s = self._settings
        table = np.array(self._history, float).reshape(-1, len(_COLUMNS))
        columns: dict[str, Any] = {name: table[:, k].copy() for k, name in enumerate(_COLUMNS)}
        for name in ("step", "sweeps"):
            columns[name] = columns[name].astype(np.int64)
        return {name: getattr(s, name) for name in _GIVEN} | {
            "u": self.u.copy(),
            "v": self.v.copy(),
            "p": self.p,
            "time": self.time,
            "steps": self.steps,
            "change": self.change,
            "sweeps": self.sweeps,
            "history": StaggeredHistory(**columns),
        }

    def _kept(self) -> dict[str, Any]:
        self._record()
        fields = {name: self._state.get(name) for name in _SAVED}
        history = np.array(self._history, float).reshape(-1, len(_COLUMNS))
        return fields | {"history": history, "is_forced": self._force is not None}

    def _restart(self, **fields: NDArray[Any]) -> None:
        if "p" in fields:
            self._state.set("p", fields["p"])
            return
        self._record()
        clock = self._state.get("clock").copy()
        for name, values in fields.items():
            extended = _with_ghosts(name, values, self._settings.lid_velocity)
            self._state.set(name, extended)
            clock[self._entries[name]] = np.abs(extended).max()
        clock[self._entries["change"]] = inf
        self._state.set("clock", clock)
        self._copy_velocity()

    def _copy_velocity(self) -> None:
        """Make the velocity that of an odd number of steps as well, where a device has both."""
        if self._settings.is_on_device:
            self._state.copy("f", "u")
            self._state.copy("g", "v")

    def _reach(self, until: float) -> None:
        clock = self._state.get("clock").copy()
        clock[self._entries["time"]] = until
        self._state.set("clock", clock)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, force: tuple[Any, Any] | None = None) -> Self:
        """Read a state that `save` wrote.

        Parameters
        ----------
        path : path-like
            The file.
        force : tuple of two, optional
            As in `StaggeredCavity`: the file does not contain it. It is necessary if the solver
            that was saved had a force.

        Returns
        -------
        solver : StaggeredCavity
            A solver in the saved state, with its history.

        Raises
        ------
        ValueError
            If the file is not a state of this class, is damaged or was changed, or has another
            format, and if it needs a force; the message names the file and the error.
        """
        return cls._load(path, "header or arguments", force=force)

    def _resume(self, state: Any) -> None:
        rule = "the solver that was saved had a force: load(path, force=(fx, fy))"
        require(self._force is not None or not state.is_forced, rule, self._force)
        for name in _SAVED:
            self._state.set(name, getattr(state, name))
        self._copy_velocity()
        self._history = [tuple(row) for row in state.history.tolist()]

    @property
    def _is_recorded(self) -> bool:
        """Whether the history has a row of the current step."""
        return bool(self._history) and self._history[-1][0] == self.steps

    def _now(self, entry: str) -> float:
        """Return an entry of the clock that the backend keeps."""
        return float(self._state.get("clock")[self._entries[entry]])

    def _record(self) -> None:
        """Add a row to the history if the current step needs one and has none."""
        known = len(self._history)
        if self.steps and self.steps % _INTERVAL == 0 and not self._is_recorded:
            # Not appended: threads that read the solver at a time add one row.
            self._history[known:] = [(self.steps, *(self._now(name) for name in _COLUMNS[1:]))]

    def _advance(self, count: int) -> bool:
        """Step to the next row of the history, at most `count` steps.

        An interrupt leaves the state after a complete step; the next call, also of `result` or
        `save`, adds the row that may be missing.
        """
        self._record()
        count = min(_INTERVAL - self.steps % _INTERVAL, count)
        tol, until = self._goal
        if self._force is not None:
            count = 1 if self._force.varies else count
            self._force.prepare(self.time)
        if self._device_steps is not None:
            reason = self._device_steps.make(
                self._settings, count, until, tol, self._force, self._seconds
            )
            self._run_by = RunBy("direct")
        elif self._poisson is not None:
            reason = self._step_with_poisson(self._poisson, count, until, tol)
        else:
            reason = self._call(count, ("predict", "pressure", "correct"), until, tol)
        self._record()
        if reason == "sweeps":
            s = self._settings
            raise ConvergenceError(
                f"{self!r}, did not converge: SOR left the residual {self._now('residual'):.1e} "
                f"above pressure_tol {s.pressure_tol:g} after {s.max_sweeps} iterations; raise "
                "max_sweeps or pressure_tol, or use pressure='fast'",
                self.result("diverged"),
            )
        return reason != "grown"

    def _step_with_poisson(
        self, poisson: FastPoisson, count: int, until: float, steady: float
    ) -> str:
        """Make steps with the direct solver of the pressure."""
        q, reason = self._state.operand("q"), "count"
        for _ in range(count):
            self._call(1, ("predict",), until, steady)
            start = perf_counter()
            poisson.solve(q, out=q)
            self._seconds["pressure"] += perf_counter() - start
            reason = self._call(1, ("correct",), until, steady)
            if reason != "count":
                break
        return reason

    @property
    def _speed(self) -> float:
        """Largest speed, NaN if one is not a number."""
        return float(np.max([self._now("u"), self._now("v")]))

    def _check_last_call(self) -> None:
        self._examine(self._is_in_bounds())  # in each call: the backend makes no steps from it

    def _is_in_bounds(self) -> bool:
        s = self._settings
        return bool(self._speed <= s.largest_speed(is_forced=self._force is not None))

    def _out_of_bounds(self) -> ConvergenceError:
        last = self._now("dt")
        return ConvergenceError(
            f"{self!r}, diverged: the largest speed is {self._speed:.1e}; "
            f"steps of {last:.1e} are too long, use dt={last / 4:.1e}",
            self.result("diverged"),
        )

    def _call(self, count: int, stages: tuple[str, ...], until: float, steady: float) -> str:
        """Run stages on the backend, and return why the call ended."""
        s = self._settings
        backend = s.backend
        rest = until, steady, self._force, self._state.arguments
        status, report = call_backend(s, self._state, count, stages, *rest)
        raise_for_status(status, backend.STATUS, "StaggeredCavity")
        self._add_seconds(report["seconds"])
        if "correct" in stages:
            self._run_by = RunBy(report["kernel"], report["threads"])
        return str(report["end"])


def _with_ghosts(name: str, values: Array, lid: float) -> Array:
    """Return u or v of the faces, 0 on walls, with the ghosts of the walls along them."""
    along = values if name == "u" else values.T  # the faces on walls are the first and last columns
    n = len(along)
    extended = np.zeros((n + 2, n + 2))
    extended[1:-1, 1:n] = along[:, 1:n]
    extended[0], extended[-1] = -extended[1], -extended[-2]
    if name == "u":
        extended[-1, : n + 1] += 2 * lid
    return extended if name == "u" else extended.T
