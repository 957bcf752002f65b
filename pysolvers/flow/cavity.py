"""The steady lid-driven cavity in streamfunction and vorticity."""

import os
from collections.abc import Callable
from dataclasses import asdict, replace
from math import inf, isfinite, nan
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._checks import index, require, require_callable, require_finite
from .._counter import Counter
from .._errors import ConvergenceError, raise_for_status
from .._files import write_npz
from .._progress import IterationBar
from .._runtime.exclusive import Exclusive, exclusive, reading
from .._runtime.fp_mode import in_default_fp_mode
from .._runtime.state import read_only
from .._shown import ShownAsText, residual_text
from .._stall import Stall, checked_patience
from . import _fields
from ._control import INTERVAL, StepControl
from ._poisson import solve_poisson
from ._result import CavityHistory, CavityResult
from ._saved import read_state
from ._settings import CavitySettings
from ._state import CavityFields
from ._walls import cavity_wall_residual

__all__ = ["LidDrivenCavity"]

_KIND = "pysolvers cavity state"

Array = NDArray[np.float64]
LineMethod = Literal["auto", "thomas", "cr", "pcr", "cr-pcr", "pcr-thomas", "partition", "pivoted"]


class LidDrivenCavity(Exclusive, ShownAsText):
    r"""Steady flow in a square cavity whose lid slides along x.

    .. math:: \nabla^2 \psi = -\omega, \qquad
        u\,\omega_x + v\,\omega_y = \nu \nabla^2 \omega, \qquad
        u = \psi_y,\ v = -\psi_x

    on the unit square with :math:`\psi = 0` on all walls, by central differences on n x n
    nodes. The unit of length is the side of the cavity, and :math:`\nu` is the lid speed divided
    by the Reynolds number; with ``lid_velocity=1`` all quantities are nondimensional.

    Parameters
    ----------
    re : float, default: 1000
        Reynolds number: lid speed times side divided by kinematic viscosity; positive.
    n : int, default: 129
        Number of nodes along each side, with the walls; at least 5.
    lid_velocity : float, default: 1
        Velocity along x of the lid, which is the side y = 1; not 0.
    wall : {'jensen', 'woods', 'thom'}, default: 'jensen'
        Formula of the vorticity on the walls, of order 2, 2 and 1.
    method : {'adi', 'line-jacobi'}, default: 'adi'
        Iteration; see Notes.
    line_method : {'auto', 'thomas', 'cr', 'pcr', 'cr-pcr', 'pcr-thomas', 'partition', 'pivoted'}
        Algorithm for the tridiagonal lines. ``'auto'`` selects ``'thomas'`` on the CPU and
        ``'partition'`` on a device; both compute the rows during the elimination.
        ``'partition'`` is available on devices only. The other methods read rows that a
        separate pass has stored.
    direction : {'alternate', 'x', 'y'}, default: 'alternate'
        Direction of the lines of ``'line-jacobi'``: along x and y alternately, or along one
        axis only.
    psi : {'adi', 'fast'}, default: 'adi'
        Solver of the Poisson equation in each iteration of ``'adi'``: `psi_sweeps`
        Peaceman-Rachford double sweeps, or an exact solve by a sine transform (CPU only).
    psi_sweeps : int, default: 4
        Number of double sweeps per iteration, and of their parameters; at least 1.
    step : float, optional
        Constant pseudo-time step in units of side divided by lid speed. By default the
        step depends on the residual.
    device : str, optional
        ``'cpu'``, the default, ``'cuda'`` or ``'cuda:1'``, ... The fields stay on the
        device between calls; the properties copy them to the host.
    threads : int, optional
        Number of host threads. By default one on small grids; on others the backend
        chooses. The result has the same bits for any number.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range; the message names the rule
        and the value.
    BackendError
        If the device is not available.
    ModuleNotFoundError
        If SciPy, which ``psi='fast'`` uses, is not installed.

    See Also
    --------
    pysolvers.solve_tridiagonal : Solve a batch of tridiagonal systems.

    Notes
    -----
    An iteration of ``'adi'`` makes a factored pseudo-time step of the vorticity (one sweep
    along x, one along y), then Peaceman-Rachford sweeps for the streamfunction, then an
    under-relaxed update of the vorticity on the walls. The step is reduced locally where
    the gradient of the vorticity is large, so that the corners do not limit the step of the
    other nodes. ``'line-jacobi'`` solves each line with the old values of its neighbouring
    lines [1]_; it needs many more iterations and diverges for large cell Reynolds numbers.
    Both methods converge to the same solution. [2]_ and [3]_ contain reference values.

    References
    ----------
    .. [1] M. Souri, P. Akbarzadeh and H. Mahmoodi Darian, "Parallel Thomas approach
       development for solving tridiagonal systems in GPU programming", *Mechanics &
       Industry* 21, 303, 2020.
    .. [2] U. Ghia, K. N. Ghia and C. T. Shin, "High-Re solutions for incompressible flow
       using the Navier-Stokes equations and a multigrid method", *J. Comput. Phys.* 48,
       387-411, 1982.
    .. [3] O. Botella and R. Peyret, "Benchmark spectral results on the lid-driven cavity
       flow", *Computers & Fluids* 27, 421-433, 1998.

    Examples
    --------
    >>> from pysolvers.flow import LidDrivenCavity
    >>> result = LidDrivenCavity(re=100, n=33).solve()
    >>> result.stop_reason
    'converged'
    >>> vortex = result.primary_vortex()
    >>> print(f"{vortex.x:.2f} {vortex.y:.2f}")
    0.62 0.74
    """

    @in_default_fp_mode
    def __init__(
        self,
        re: float = 1000.0,
        n: int = 129,
        *,
        lid_velocity: float = 1.0,
        wall: Literal["jensen", "woods", "thom"] = "jensen",
        method: Literal["adi", "line-jacobi"] = "adi",
        line_method: LineMethod = "auto",
        direction: Literal["alternate", "x", "y"] = "alternate",
        psi: Literal["adi", "fast"] = "adi",
        psi_sweeps: int = 4,
        step: float | None = None,
        device: str | None = None,
        threads: int | None = None,
    ) -> None:
        self._settings = settings = CavitySettings(
            re=re,
            n=n,
            lid_velocity=lid_velocity,
            wall=wall,
            method=method,
            line_method=line_method,
            direction=direction,
            psi=psi,
            psi_sweeps=psi_sweeps,
            step=step,
            device=device,
            threads=threads,
        )
        self._fields = CavityFields(settings.n, settings.device)
        self._count = Counter()
        self._measured = 0  # iterations after which the residuals were measured
        self._residuals = self._best_residuals = (inf, inf)
        fixed = 1.0 if method == "line-jacobi" else step
        self._control = StepControl.start(re, 1.0 / (settings.n - 1), fixed)
        self._history: list[tuple[int, float, float, float]] = []
        self._seconds = dict.fromkeys(settings.backend.STAGES, 0.0)
        self._lines: dict[str, Any] = {"method": line_method, "threads": 0, "kernel": ""}

    @property
    def psi(self) -> Array:
        """Current streamfunction: shape (n, n), a read-only view."""
        return read_only(self._fields.values()[0])

    @property
    def omega(self) -> Array:
        """Current vorticity: shape (n, n), a read-only view.

        The values in the corners are not defined and not used.
        """
        return read_only(self._fields.values()[1])

    @property
    @in_default_fp_mode
    def u(self) -> Array:
        """Current velocity along x: shape (n, n), a new array."""
        return _fields.velocity(self.psi, self._settings.lid_velocity)[0]

    @property
    @in_default_fp_mode
    def v(self) -> Array:
        """Current velocity along y: shape (n, n), a new array."""
        return _fields.velocity(self.psi, self._settings.lid_velocity)[1]

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the fields."""
        return self._settings.n, self._settings.n

    @property
    def x(self) -> Array:
        """Coordinates of the nodes along x: shape (n,)."""
        return np.linspace(0.0, 1.0, self._settings.n)

    @property
    def y(self) -> Array:
        """Coordinates of the nodes along y: shape (n,)."""
        return self.x

    @property
    def iterations(self) -> int:
        """Number of iterations since the start from rest."""
        return self._count.value

    @property
    def residual(self) -> float:
        """Residual of the last measurement, as in `CavityResult`; infinite before the first."""
        return max(self._residuals)

    @property
    def step(self) -> float:
        """Pseudo-time step in units of side divided by lid speed; NaN for line Jacobi.

        The iteration chooses it from the residual, and it cannot be set: the parameter `step` of
        the solver keeps it constant.
        """
        return nan if self._settings.method == "line-jacobi" else self._control.step

    def __repr__(self) -> str:
        s = self._settings
        return (
            f"LidDrivenCavity(re={s.re:g}, n={s.n}, wall={s.wall!r}, method={s.method!r}): "
            f"{self.iterations} iterations{residual_text(self.residual)}"
        )

    @exclusive
    def iterate(self, count: int) -> "LidDrivenCavity":
        """Make `count` iterations; several calls give the same bits as one call.

        Parameters
        ----------
        count : int
            Number of iterations; at least 0.

        Returns
        -------
        self : LidDrivenCavity
            This object.

        Raises
        ------
        ConvergenceError
            If the iteration diverges with every step that was tried. The state is then the one
            with the smallest residual so far.
        RuntimeError
            If another call is in progress that changes the solver: of another thread, or of the
            callback that calls this method.
        """
        end = self.iterations + index("count", count, 0)
        while self.iterations < end or self._is_undecided:
            self._advance(end)
        return self

    @exclusive
    def solve(
        self,
        tol: float = 1e-7,
        *,
        max_iterations: int = 200_000,
        patience: int | None = None,
        callback: Callable[["LidDrivenCavity"], Any] | None = None,
        interval: int = 1,
        progress: bool | None = None,
    ) -> CavityResult:
        """Iterate until the residual is at most `tol`.

        Parameters
        ----------
        tol : float, default: 1e-7
            Upper bound of `residual`, and of the root mean square of the wall formula minus omega
            on the walls in units of lid speed over side; positive.
        max_iterations : int, default: 200000
            Largest number of iterations of this call.
        patience : int, optional
            Largest number of iterations in which the smallest residual does not fall by 10 %; then
            the iteration ends with an error. By default the larger of 5000 and n^2/10. The flow of
            a large Reynolds number is unsteady, or the grid too coarse for it.
        callback : callable, optional
            Called with this object after each iteration whose number is a multiple of `interval`,
            and after the last iteration; a true return value ends the iteration. The residual is
            measured every 20 iterations.
        interval : int, default: 1
            Number of iterations between two calls of `callback`. Iterations between two calls are
            made in one call of the backend, at most 20, which takes less time.
        progress : bool, optional
            Whether to show a progress bar with the time left. By default it is shown in a
            terminal and in a notebook after a second, if tqdm is installed.

        Returns
        -------
        result : CavityResult
            The converged state, or the state at which `callback` ended the iteration.

        Raises
        ------
        TypeError, ValueError
            If `tol` is not a positive number, `max_iterations` is not an integer of at least 1,
            or `callback` is not a function.
        ConvergenceError
            If the tolerance was not reached, the residual stalled, or the iteration diverged. The
            attribute ``result`` contains the last finite state and the history.
        RuntimeError
            As in `iterate`.
        """
        require_finite("tol", tol)
        require(tol > 0, "tol must be positive", tol)
        require_callable("callback", callback)
        s = self._settings
        stall = Stall(checked_patience(patience, s.n**2 // 10), self.iterations)
        end = self.iterations + index("max_iterations", max_iterations, 1)
        interval, most = index("interval", interval, 1), end - self.iterations
        with IterationBar(progress, "LidDrivenCavity", total=most, goal=tol) as bar:
            error = self._error(tol)
            while self._is_undecided or (error > tol and self.iterations < end):
                made = self.iterations
                stop = end if callback is None else min(made - made % interval + interval, end)
                self._advance(stop)
                bar.update(self.iterations - made, self.residual)
                if self.iterations % INTERVAL == 0 or self.iterations == end:
                    error = self._error(tol)  # so that a callback does not change the last one
                is_last = error <= tol or self.iterations == end
                is_called = callback is not None and (self.iterations % interval == 0 or is_last)
                if is_called and callback(self) and not is_last:  # type: ignore[misc]
                    return self.result("callback")
                if error > tol and stall.is_over(self.iterations, error):
                    raise ConvergenceError(
                        f"{self!r}, did not converge: {stall.text(error)}: the flow can be "
                        "unsteady, or the grid too coarse: take a larger n or a smaller re, or a "
                        "larger patience",
                        self.result("stalled"),
                    )
        if not isfinite(self.residual):  # the end came before the decision that goes back
            self._fields.go_back()
            self._residuals = self._best_residuals
            raise ConvergenceError(
                f"{self!r}, did not converge: the residual was not finite after {self.iterations} "
                "iterations",
                self.result("diverged"),
            )
        if self._error(tol) > tol:
            result = self.result("max_iterations")
            raise ConvergenceError(
                f"{self!r}, did not converge: tolerance {tol:g} not reached in "
                f"{max_iterations} iterations",
                result,
            )
        return self.result("converged")

    @reading
    @in_default_fp_mode
    def result(self, stop_reason: str = "running") -> CavityResult:
        """Return a copy of the current state as a result.

        Parameters
        ----------
        stop_reason : str, default: 'running'
            Reason of the end of the iteration, for the result.

        Returns
        -------
        result : CavityResult
            Copies of the fields, history and timings.

        Raises
        ------
        RuntimeError
            If another thread is in a call that changes the solver.
        """
        s = self._settings
        history = self._history_arrays()  # first: it can measure the residual
        psi, omega = self._fields.values()
        return CavityResult(
            psi=psi.copy(),
            omega=omega.copy(),
            reynolds=float(s.re),
            lid_velocity=float(s.lid_velocity),
            wall=s.wall,
            method=s.method,
            line_method=str(self._lines["method"]),
            iterations=self.iterations,
            residual=self.residual,
            stop_reason=stop_reason,
            history=history,
            seconds=dict(self._seconds),
            backend=s.backend.NAME,
            kernel=str(self._lines["kernel"]),
            threads=int(self._lines["threads"]),
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
        facts = {
            "settings": self._settings.facts(),
            "control": asdict(self._control),
            "iterations": self.iterations,
            "measured": self._measured,
            "residuals": self._residuals,
            "best_residuals": self._best_residuals,
            "seconds": self._seconds,
            "lines": self._lines,
        }
        names = ("psi", "omega", "best_psi", "best_omega")
        fields = (*self._fields.values(), *self._fields.best_values())
        arrays = dict(zip(names, fields, strict=True))
        arrays["history"] = np.array(self._history, float).reshape(-1, 4)
        write_npz(path, _KIND, facts, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "LidDrivenCavity":
        """Read a state that `save` wrote.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        cavity : LidDrivenCavity
            A solver in the saved state.

        Raises
        ------
        ValueError
            If the file is not a state of `LidDrivenCavity`, is damaged or was changed; the
            message names the file and the error.
        """
        facts, arrays, history = read_state(path, _KIND)
        cavity = cls(**facts["settings"])
        cavity._fields.set(**arrays)
        cavity._control = StepControl(**facts["control"])
        cavity._count, cavity._measured = Counter(facts["iterations"]), facts["measured"]
        cavity._residuals, cavity._best_residuals = facts["residuals"], facts["best_residuals"]
        cavity._history = [(int(row[0]), row[1], row[2], row[3]) for row in history.tolist()]
        cavity._seconds = facts["seconds"]
        cavity._lines = facts["lines"]
        return cavity

    def _error(self, tol: float) -> float:
        """Return `residual`; where it is at most `tol`, the larger one of it and of the walls'.

        The residual does not contain the wall formula, which a long step with its small weight
        of the walls can violate: omega = psi = 0 has the residual 0.
        """
        if not self.residual <= tol:
            return self.residual
        s = self._settings
        walls = cavity_wall_residual(s.wall, self.psi, self.omega, s.lid_velocity)
        return max(self.residual, walls / s.speed)

    @property
    def _is_undecided(self) -> bool:
        """Whether the decision on the step after this iteration has not been made yet."""
        decided = self._history[-1][0] if self._history else 0
        return self.iterations % INTERVAL == 0 and self.iterations > decided

    @in_default_fp_mode
    def _advance(self, end: int) -> None:
        """Iterate to the next decision on the step, or to iteration `end` if it comes first.

        If an interrupt occurs between the iterations and the decision, or during the decision,
        the next call makes the decision.
        """
        made = self.iterations
        if not self._is_undecided:
            self._make(min(made - made % INTERVAL + INTERVAL, end) - made)
        if self._is_undecided:
            self._decide()

    def _decide(self) -> None:
        """Decide on the step and the state. An interrupted decision can be repeated."""
        row = self._row_now()
        # np.max() returns NaN if a residual is NaN; max() may not.
        residual = float(np.max(self._residuals))
        control = replace(self._control)
        verdict = control.judge(residual)
        now, best = self._residuals, self._best_residuals
        if verdict == "best":
            self._fields.keep()
            best = now
        elif verdict in ("step back", "give up"):
            self._fields.go_back()
            now = best
        known = len(self._history)
        # One statement without a call: no signal handler runs within it.
        self._control, self._residuals, self._best_residuals, self._history[known:] = (
            control,
            now,
            best,
            [row],
        )
        if verdict == "give up":
            diverged = self.result("diverged")
            raise ConvergenceError(
                f"{self!r}, did not converge: the residual rose to {residual:.1e}", diverged
            )

    def _row_now(self) -> tuple[int, float, float, float]:
        """Return the row of the history for this iteration, with its residuals."""
        if self._measured != self.iterations:
            self._call(1, "residual", counts=False)
        psi, omega = self._residuals
        return self.iterations, psi, omega, self.step

    def _make(self, count: int) -> None:
        """Make iterations with the current step."""
        stages = self._settings.backend.STAGES
        if self._settings.psi == "adi":
            self._call(count, *stages)
            return
        psi, omega = self._fields.operands()
        for k in range(count):
            kept, made = (psi.copy(), omega.copy()), self.iterations
            try:
                self._make_with_exact_psi(("residual",) if k == count - 1 else ())
            except BaseException:  # also after an interrupt, keep complete iterations only
                psi[:], omega[:] = kept
                self._count = Counter(made)
                raise

    def _make_with_exact_psi(self, last: tuple[str, ...]) -> None:
        self._call(1, "omega", counts=False)
        psi, omega = self._fields.operands()
        start = perf_counter()
        psi[:] = solve_poisson(
            omega,
            line_method=self._settings.line_method,
            threads=self._settings.line_threads or None,
        )
        self._seconds["psi"] += perf_counter() - start
        self._call(1, "walls", *last)

    def _call(self, count: int, *stages: str, counts: bool = True) -> None:
        """Run these stages of `count` iterations on the backend."""
        s = self._settings
        backend = s.backend
        first = self.iterations
        status, report = backend.cavity_iterate(
            backend.SCHEMES[s.method],
            backend.WALLS[s.wall],
            backend.DIRECTIONS[s.direction],
            sum(1 << backend.STAGES[name] for name in stages),
            s.speed / s.re,
            s.lid_velocity,
            self._control.step / s.speed,
            s.psi_sweeps,
            first,
            *self._fields.operands(),
            count,
            backend.METHODS[s.line_method],
            s.line_threads,
            self._count.begin() if counts else np.zeros(1, np.int64),
            *self._fields.arguments,
        )
        raise_for_status(status, backend.STATUS, "LidDrivenCavity")
        for name, seconds in report["seconds"].items():
            self._seconds[name] += seconds
        if "residual" in stages:
            speed = s.speed
            found = report["psi_residual"] / speed, report["omega_residual"] / speed**2
            self._residuals, self._measured = found, self.iterations
        if "omega" in stages:
            self._lines = {k: report["lines"][k] for k in ("method", "threads", "kernel")}

    def _history_arrays(self) -> CavityHistory:
        """Return the history, with the row that an interrupt may have left to the next call."""
        missing = [self._row_now()] if self._is_undecided else []
        table = np.array(self._history + missing, float).reshape(-1, 4)
        return CavityHistory(
            table[:, 0].astype(np.int64), table[:, 1].copy(), table[:, 2].copy(), table[:, 3].copy()
        )
