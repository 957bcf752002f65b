"""The lid-driven cavity on a staggered grid, stepped in time."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from math import ceil, inf
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._boundary import Neumann
from .._checks import index, require, require_callable, require_finite
from .._errors import ConvergenceError, raise_for_status
from .._files import read_npz, write_npz
from .._header import count as count_of
from .._header import elapsed, mapping, optional, positive, record, text
from .._other_calls import explain_run
from .._progress import IterationBar
from .._runtime import directive
from .._runtime.exclusive import Exclusive, exclusive, reading
from .._runtime.fp_mode import in_default_fp_mode
from .._runtime.recording import frame_times, keep_frames
from .._runtime.state import make_state, read_only
from .._shown import ShownAsText
from .._stall import Stall, checked_patience
from ..poisson import FastPoisson
from . import _fields
from ._staggered_device import DeviceSteps, call_backend
from ._staggered_result import StaggeredHistory, StaggeredResult, gamma_check
from ._staggered_settings import Kernels, Pressure, StaggeredSettings

__all__ = ["StaggeredCavity"]

Array = NDArray[np.float64]

_KIND = "pysolvers staggered cavity state"
_INTERVAL = 20  # steps between two rows of the history
# Time in which the change of a flow that becomes steady falls by 10 %: it took at most 7.2 in runs
# with Re = 100 to 10000 on 32 x 32 and 64 x 64 cells.
_PATIENCE = 50.0
_COLUMNS = ("step", "time", "dt", "change", "sweeps")
_SAVED = ("u", "v", "p", "clock")

_HEADER = {
    "settings": record(
        {
            "re": positive,
            "n": count_of(4),
            "pressure": text(),
            "gamma": gamma_check,
            "tau": positive,
            "dt": optional(positive),
            "pressure_tol": optional(positive),
            "max_sweeps": count_of(1),
            "omega": optional(positive),
            "kernels": text(),
            "device": optional(text()),
            "threads": optional(count_of(1)),
        }
    ),
    "steps": count_of(),
    "seconds": mapping(elapsed),
    "run_by": record({"kernel": text(), "threads": count_of()}),
}


class StaggeredCavity(Exclusive, ShownAsText):
    r"""Time-dependent flow in a square cavity whose lid slides along x.

    .. math:: u_t + (u u)_x + (u v)_y = -p_x + \tfrac{1}{Re} \nabla^2 u, \qquad
        v_t + (u v)_x + (v v)_y = -p_y + \tfrac{1}{Re} \nabla^2 v, \qquad u_x + v_y = 0

    on the unit square, from rest, in the primitive variables of a staggered grid: u on the
    vertical faces of the cells, v on the horizontal faces, p in the centres. Steps are explicit
    for the velocity and implicit for the pressure. The unit of length is the side of the cavity,
    and the unit of velocity is the speed of the lid, which is the side y = 1.

    Parameters
    ----------
    re : float, default: 1000
        Reynolds number: lid speed times side divided by kinematic viscosity; positive.
    n : int, default: 128
        Number of cells along each side; at least 4.
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
        Constant length of the steps, instead of `tau`, in units of side divided by lid speed.
    pressure_tol : float or None, default: 1e-4
        For ``'sor'``: root mean square of the residual at which the iterations of a step end. None
        makes exactly `max_sweeps` iterations in every step.
    max_sweeps : int, default: 20000
        For ``'sor'``: largest number of iterations in a step.
    omega : float, optional
        For ``'sor'``: relaxation factor, between 0 and 2; by default :math:`2/(1 + \sin(\pi/n))`.
    kernels : {'auto', 'serial', 'openmp', 'cuda', 'directive', 'directive-openmp'}
        By default ``'auto'``, which selects the number of threads and makes several SOR iterations
        in one pass over the field. ``'serial'`` runs on one thread and stores both colours of SOR
        in one array. ``'openmp'`` divides the rows of each loop among threads. The three give the
        same bits. ``'directive'`` and ``'directive-openmp'`` are loops with OpenACC and OpenMP
        directives, for ``'sor'`` only; they run on a device if there is one, with fields that are
        copied there every 20 steps, and on the host otherwise. Their libraries are optional; see
        ``tools/build_directive.py``. ``'cuda'`` makes the steps on a device.
    device : str, optional
        ``'cpu'``, ``'cuda'`` or ``'cuda:N'``; by default the CPU, unless `kernels` is ``'cuda'``.
        The fields stay on the device. ``'fast'`` needs cuFFT there, which is in the extra ``cuda``.
    threads : int, optional
        Number of host threads. By default one on small grids; on others the backend chooses. The
        result has the same bits for any number.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range; the message names the rule and the
        value.
    BackendError
        If the device or the kernels are not available.
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
    ghost values above the lid count, so that :math:`\max|u|` is at least 2. For `gamma` = 0,
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
    >>> result = StaggeredCavity(re=100, n=32).solve(tol=1e-3)
    >>> result.stop_reason
    'steady'
    >>> vortex = result.primary_vortex()
    >>> print(f"{vortex.x:.2f} {vortex.y:.2f}")
    0.62 0.74
    """

    @in_default_fp_mode
    def __init__(
        self,
        re: float = 1000.0,
        n: int = 128,
        *,
        pressure: Pressure = "fast",
        gamma: float | Literal["auto"] = 0.0,
        tau: float = 0.5,
        dt: float | None = None,
        pressure_tol: float | None = 1e-4,
        max_sweeps: int = 20_000,
        omega: float | None = None,
        kernels: Kernels = "auto",
        device: str | None = None,
        threads: int | None = None,
    ) -> None:
        self._settings = settings = StaggeredSettings(
            re=re,
            n=n,
            pressure=pressure,
            gamma=gamma,
            tau=tau,
            dt=dt,
            pressure_tol=pressure_tol,
            max_sweeps=max_sweeps,
            omega=omega,
            kernels=kernels,
            device=device,
            threads=threads,
        )
        n, self._clock = settings.n, settings.backend.CLOCK
        layout: dict[str, Any] = dict.fromkeys("uvfg", ((n + 2, n + 2), np.float64))
        layout |= dict.fromkeys("pq", ((n, n), np.float64))
        layout["clock"] = (len(self._clock),), np.float64
        self._state = make_state(layout, settings.place, "StaggeredCavity")
        start = np.zeros((n + 2, n + 2))
        start[n + 1, : n + 1] = 2.0  # ghosts above the lid
        self._state.set("u", start)
        times = np.zeros(len(self._clock))
        times[self._clock["u"]], times[self._clock["change"]] = 2.0, inf
        self._state.set("clock", times)
        self._poisson: FastPoisson | None = None
        self._device_steps: DeviceSteps | None = None
        if settings.pressure == "fast" and settings.is_on_device:
            self._device_steps = DeviceSteps(self._state, settings)
        elif settings.pressure == "fast":
            self._poisson = FastPoisson(
                (n, n),
                extent=((0.0, 1.0), (0.0, 1.0)),
                boundary=Neumann(),
                grid="cells",
                on_incompatible="ignore",
                threads=settings.step_threads or None,
            )
        self._history: list[tuple[float, ...]] = []
        self._seconds = dict.fromkeys(settings.backend.STAGGERED_STAGES, 0.0)
        self._run_by: dict[str, Any] = {"kernel": "", "threads": 0}

    @property
    def u(self) -> Array:
        """Current velocity along x on the vertical faces: shape (n, n + 1), a read-only view."""
        return read_only(self._state.get("u")[1:-1, :-1])

    @property
    def v(self) -> Array:
        """Current velocity along y on the horizontal faces: shape (n + 1, n), a read-only view."""
        return read_only(self._state.get("v")[:-1, 1:-1])

    @property
    @in_default_fp_mode
    def p(self) -> Array:
        """Current pressure in the centres of the cells, with mean 0: shape (n, n), a new array."""
        p = self._state.get("p")
        return p - p.mean()

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
        """Time of the solution, in units of side divided by lid speed."""
        return self._now("time")

    @property
    def steps(self) -> int:
        """Number of steps since time 0."""
        return int(self._now("steps"))

    @property
    def dt(self) -> float | None:
        """Constant length of the steps, or None if it is automatic; it can be set."""
        return self._settings.dt

    @dt.setter
    def dt(self, value: float | None) -> None:
        self._settings = replace(self._settings, dt=value)

    @property
    def change(self) -> float:
        """Largest change of a velocity in the last step divided by its length; first infinite."""
        return self._now("change")

    @property
    def sweeps(self) -> int:
        """Number of SOR iterations since time 0."""
        return int(self._now("sweeps"))

    @property
    def divergence(self) -> float:
        """Largest absolute value of ``u_x + v_y``, times the size of a cell."""
        return _fields.largest_divergence(self.u, self.v)

    def __repr__(self) -> str:
        s = self._settings
        return (
            f"StaggeredCavity(re={s.re:g}, n={s.n}, pressure={s.pressure!r}): "
            f"{self.steps} steps, t = {self.time:g}"
        )

    @exclusive
    def step(self, count: int = 1) -> StaggeredCavity:
        """Make `count` steps; several calls give the same bits as one call.

        Parameters
        ----------
        count : int, default: 1
            Number of steps; at least 0.

        Returns
        -------
        self : StaggeredCavity
            This object.

        Raises
        ------
        ConvergenceError
            If the solution grows beyond 100 times the lid speed, or SOR does not reach its
            tolerance. The attribute ``result`` contains the state.
        RuntimeError
            If another call is in progress that changes the solver: of another thread, or of the
            callback that calls this method.
        """
        end = self.steps + index("count", count, 0)
        while self.steps < end:
            self._advance(end)
        return self

    @explain_run
    @exclusive
    def run(
        self,
        until: float,
        *,
        callback: Callable[[StaggeredCavity], Any] | None = None,
        interval: int = 1,
        progress: bool | None = None,
    ) -> StaggeredResult:
        """Step until a time is reached exactly.

        Parameters
        ----------
        until : float
            The end time. The last step, or the last two, are shortened to end at this time.
        callback : callable, optional
            Called with this object after each step whose number is a multiple of `interval`, and
            after the last step; a true return value ends the run.
        interval : int, default: 1
            Number of steps between two calls of `callback`. Steps between two calls can be made in
            one call of the backend, which takes less time.
        progress : bool, optional
            Whether to show a progress bar with the time left. By default it is shown in a
            terminal and in a notebook after a second, if tqdm is installed.

        Returns
        -------
        result : StaggeredResult
            The final state.

        Raises
        ------
        TypeError, ValueError
            If `until` is not a finite number of at least `time`, or `callback` is not a function.
        ConvergenceError, RuntimeError
            As in `step`.
        """
        self._check_end(until)
        require_callable("callback", callback)
        interval = index("interval", interval, 1)
        with IterationBar(progress, "StaggeredCavity", "time") as bar:
            reason = self._go_to(float(until), self._expectation(bar, until), callback, interval)
        return self.result(reason)

    def _check_end(self, until: float) -> None:
        require_finite("until", until)
        require(until >= self.time, f"until must be at least the time {self.time:g}", until)

    def _expectation(self, bar: IterationBar, until: float) -> Callable[[int], None]:
        """Return a function that shows a number of new steps, and how many a run will have made."""
        steps, begin = self.steps, self.time

        def update(count: int) -> None:
            done = (self.time - begin) / (until - begin)
            bar.expect(round((self.steps - steps) / done))  # the length of a step can change
            bar.update(count, self.time)

        return update

    def _go_to(
        self,
        until: float,
        update: Callable[[int], None],
        callback: Callable[[StaggeredCavity], Any] | None = None,
        interval: int = 1,
    ) -> str:
        """Step until a time is reached, or the callback ends the run; return the reason."""
        while self.time < until:
            made = self.steps
            stop = made - made % interval + interval
            self._advance(None if callback is None else stop, until=until)
            update(self.steps - made)
            is_last = self.time >= until
            is_called = callback is not None and (self.steps == stop or is_last)
            if is_called and callback(self) and not is_last:  # type: ignore[misc]
                return "callback"
        return "reached"

    @exclusive
    def record(
        self,
        until: float | None = None,
        *,
        times: ArrayLike | None = None,
        every: float | None = None,
        progress: bool | None = None,
    ) -> StaggeredResult:
        """Step until a time is reached, as `run` does, and keep states on the way.

        Parameters
        ----------
        until : float, optional
            The end time; by default the last one of `times`.
        times : array_like, optional
            The times of the states that are kept, rising and not before `time`. Steps are
            shortened to end at these times.
        every : float, optional
            Instead of `times`: distance in time of the states that are kept, by default a 50th of
            the time to `until`. The first one is the state now, and the last one that at `until`.
        progress : bool, optional
            As in `run`.

        Returns
        -------
        result : StaggeredResult
            The final state, with the kept ones as ``frames``. ``result.animate("film.gif")``
            writes a film, and ``result.to_xarray()`` returns all of them along the dimension
            ``time``.

        Raises
        ------
        TypeError, ValueError, ConvergenceError, RuntimeError
            As in `run`; also if `times` or `every` is out of its range, or both are given.
        """
        at, end = frame_times(self.time, until, times, every, self.dt)
        self._check_end(end)
        with IterationBar(progress, "StaggeredCavity", "time") as bar:
            update = self._expectation(bar, end)
            found: StaggeredResult = keep_frames(
                self, at, end, lambda time: self._go_to(time, update)
            )
        return found

    @exclusive
    def solve(
        self,
        tol: float = 1e-5,
        *,
        max_steps: int = 1_000_000,
        patience: int | None = None,
        callback: Callable[[StaggeredCavity], Any] | None = None,
        interval: int = 1,
        progress: bool | None = None,
    ) -> StaggeredResult:
        """Step until the flow is steady.

        Parameters
        ----------
        tol : float, default: 1e-5
            Upper bound of `change`; positive.
        max_steps : int, default: 1000000
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
            If `tol` is not a positive number, `max_steps` is not an integer of at least 1, or
            `callback` is not a function.
        ConvergenceError
            If the flow is not steady after `max_steps` steps, the change stalled, and as in
            `step`. The attribute ``result`` contains the state and the history.
        RuntimeError
            As in `step`.
        """
        require_finite("tol", tol)
        require(tol > 0, "tol must be positive", tol)
        require_callable("callback", callback)
        interval = index("interval", interval, 1)
        end = self.steps + index("max_steps", max_steps, 1)
        steps = ceil(min(_PATIENCE / self._settings.longest_step, max_steps))
        stall = Stall(checked_patience(patience, steps), self.steps)
        with IterationBar(progress, "StaggeredCavity", "change", max_steps) as bar:
            while self.change > tol:
                if self.steps >= end:
                    raise ConvergenceError(
                        f"{self!r} is not steady: change {self.change:.1e} is above tol {tol:g} "
                        f"after {max_steps} steps",
                        self.result("max_steps"),
                    )
                made = self.steps
                stop = made - made % interval + interval
                self._advance(end if callback is None else min(stop, end), steady=float(tol))
                bar.update(self.steps - made, self.change)
                is_last = self.change <= tol or self.steps == end
                is_called = callback is not None and (self.steps == stop or is_last)
                if is_called and callback(self) and not is_last:  # type: ignore[misc]
                    return self.result("callback")
                if self.change > tol and stall.is_over(self.steps, self.change):
                    raise ConvergenceError(
                        f"{self!r} is not steady: {stall.text(self.change, 'change')}: the flow "
                        "can be unsteady, or tol below the rounding errors: take a larger tol, a "
                        "smaller re, or a larger patience",
                        self.result("stalled"),
                    )
        return self.result("steady")

    @in_default_fp_mode
    @reading
    def result(self, stop_reason: str = "running") -> StaggeredResult:
        """Return a copy of the current state as a result.

        Parameters
        ----------
        stop_reason : str, default: 'running'
            Reason of the end of the run, for the result.

        Returns
        -------
        result : StaggeredResult
            Copies of the fields, history and timings.

        Raises
        ------
        RuntimeError
            If another thread is in a call that changes the solver.
        """
        self._record()
        s = self._settings
        table = np.array(self._history, float).reshape(-1, len(_COLUMNS))
        columns: dict[str, Any] = {name: table[:, k].copy() for k, name in enumerate(_COLUMNS)}
        for name in ("step", "sweeps"):
            columns[name] = columns[name].astype(np.int64)
        return StaggeredResult(
            u=self.u.copy(),
            v=self.v.copy(),
            p=self.p,
            reynolds=float(s.re),
            gamma=s.gamma if isinstance(s.gamma, str) else float(s.gamma),
            pressure=s.pressure,
            kernels=s.kernels,
            time=self.time,
            steps=self.steps,
            change=self.change,
            sweeps=self.sweeps,
            stop_reason=stop_reason,
            history=StaggeredHistory(**columns),
            seconds=dict(self._seconds),
            backend=s.backend.NAME,
            kernel=str(self._run_by["kernel"]),
            threads=int(self._run_by["threads"]),
        )

    @reading
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, from which `load` continues with the same bits.

        Parameters
        ----------
        path : path-like
            The npz file; its name is not changed. It is written completely or not at all.

        Raises
        ------
        OSError
            If the file cannot be written.
        RuntimeError
            If another thread is in a call that changes the solver.
        """
        self._record()
        facts = {
            "settings": self._settings.facts(),
            "steps": self.steps,
            "seconds": self._seconds,
            "run_by": self._run_by,
        }
        arrays = {name: self._state.get(name) for name in _SAVED}
        arrays["history"] = np.array(self._history, float).reshape(-1, len(_COLUMNS))
        write_npz(path, _KIND, facts, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StaggeredCavity:
        """Read a state that `save` wrote.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        cavity : StaggeredCavity
            A solver in the saved state.

        Raises
        ------
        ValueError
            If the file is not a state of `StaggeredCavity`, is damaged or was changed; the message
            names the file and the error.
        """
        saved = read_npz(path, _KIND)
        facts = saved.header(_HEADER)
        with saved.naming("header"):
            settings = StaggeredSettings(**facts["settings"])
        n, backend = settings.n, settings.backend
        saved.require_stages(facts["seconds"], backend.STAGGERED_STAGES)
        velocity = (n + 2, n + 2), np.float64
        arrays = saved.arrays(
            {
                "u": velocity,
                "v": velocity,
                "p": ((n, n), np.float64),
                "clock": ((len(backend.CLOCK),), np.float64),
                "history": ((None, len(_COLUMNS)), np.float64),
            }
        )
        history = arrays.pop("history")
        saved.require_rows(history, _INTERVAL, facts["steps"], "steps")
        saved.require(
            arrays["clock"][backend.CLOCK["steps"]] == facts["steps"],
            "member 'clock'",
            "it must contain the steps of the header",
        )
        cavity = cls(**facts["settings"])
        for name, values in arrays.items():
            cavity._state.set(name, values)
        if settings.is_on_device:  # the velocity after an odd number of steps
            cavity._state.copy("f", "u")
            cavity._state.copy("g", "v")
        cavity._history = [tuple(row) for row in history.tolist()]
        cavity._seconds, cavity._run_by = facts["seconds"], facts["run_by"]
        return cavity

    @property
    def _is_recorded(self) -> bool:
        """Whether the history has a row of the current step."""
        return bool(self._history) and self._history[-1][0] == self.steps

    def _now(self, entry: str) -> float:
        return float(self._state.get("clock")[self._clock[entry]])

    def _record(self) -> None:
        """Add a row to the history if the current step needs one and has none."""
        known = len(self._history)
        if self.steps and self.steps % _INTERVAL == 0 and not self._is_recorded:
            # Not appended: threads that read the solver at a time add one row.
            self._history[known:] = [(self.steps, *(self._now(name) for name in _COLUMNS[1:]))]

    @in_default_fp_mode
    def _advance(self, end: int | None = None, *, until: float = inf, steady: float = -1.0) -> None:
        """Step to the next row of the history, or to step `end` if it comes first.

        An interrupt leaves the state after a complete step; the next call, also of `result` or
        `save`, adds the row that may be missing.
        """
        self._record()
        self._check_bound()
        made = self.steps
        stop = made - made % _INTERVAL + _INTERVAL
        count = (stop if end is None else min(stop, end)) - made
        if self._device_steps is not None:
            reason = self._device_steps.make(self._settings, count, until, steady, self._seconds)
            self._run_by = {"kernel": "direct", "threads": 0}
        elif self._poisson is not None:
            reason = self._step_with_poisson(self._poisson, count, until, steady)
        else:
            reason = self._call(count, ("predict", "pressure", "correct"), until, steady)
        self._record()
        if reason == "sweeps":
            s = self._settings
            raise ConvergenceError(
                f"{self!r}, did not converge: SOR left the residual {self._now('residual'):.1e} "
                f"above pressure_tol {s.pressure_tol:g} after {s.max_sweeps} iterations; raise "
                "max_sweeps or pressure_tol, or use pressure='fast'",
                self.result("diverged"),
            )
        if reason == "grown":
            self._check_bound(is_known=True)

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

    def _check_bound(self, *, is_known: bool = False) -> None:
        """Raise if the velocity is not finite or has grown."""
        speed = float(np.max([self._now("u"), self._now("v")]))  # NaN if one of them is NaN
        if is_known or not speed <= 100:
            last = self._now("dt")
            raise ConvergenceError(
                f"{self!r}, diverged: the largest speed is {speed:.1e} lid speeds; "
                f"steps of {last:.1e} are too long, use dt={last / 4:.1e}",
                self.result("diverged"),
            )

    def _call(self, count: int, stages: tuple[str, ...], until: float, steady: float) -> str:
        """Run stages on the backend, and return why the call ended."""
        s = self._settings
        if s.has_directives:
            return self._call_directives(count, until, steady)
        backend = s.backend
        status, report = call_backend(s, self._state, count, stages, until, steady)
        raise_for_status(status, backend.STATUS, "StaggeredCavity")
        for name, seconds in report["seconds"].items():
            self._seconds[name] += seconds
        if "correct" in stages:
            self._run_by = {k: report[k] for k in ("kernel", "threads")}
        return str(report["end"])

    def _call_directives(self, count: int, until: float, steady: float) -> str:
        """Make steps with compiler directives, and return why the call ended."""
        s = self._settings
        kernels = directive.load(s.kernels)
        n, backend = s.n, s.backend
        names = ("u", "v", "p", "f", "g", "clock")
        status, end, seconds = kernels.staggered_step(
            s.numbers(until, steady),
            s.max_sweeps,
            {name: self._state.operand(name) for name in names},
            np.empty((2, n + 2, n + 2)),
            count,
            np.zeros(1, np.int64),
        )
        raise_for_status(status, backend.STATUS, "StaggeredCavity")
        for name, time in zip(backend.STAGGERED_STAGES, seconds, strict=True):
            self._seconds[name] += time
        self._run_by = {"kernel": kernels.description, "threads": 0}
        return next(name for name, code in backend.STAGGERED_ENDS.items() if code == end)
