"""The steady lid-driven cavity in streamfunction and vorticity."""

import os
from collections.abc import Callable
from dataclasses import asdict, replace
from math import inf, nan
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import index, require, require_callable, require_finite
from .._counter import Counter
from .._errors import ConvergenceError, raise_for_status
from .._files import write_npz
from .._progress import IterationBar
from .._runtime.state import read_only
from . import _fields
from ._control import INTERVAL, StepControl
from ._poisson import solve_poisson
from ._result import CavityHistory, CavityResult
from ._saved import read_state
from ._settings import CavitySettings
from ._state import CavityFields

__all__ = ["LidDrivenCavity"]

_KIND = "pysolvers cavity state"

Array = NDArray[np.float64]


class LidDrivenCavity:
    r"""Steady flow in a square cavity whose lid slides along x.

    .. math:: \nabla^2 \psi = -\omega, \qquad
        u\,\omega_x + v\,\omega_y = \nu \nabla^2 \omega, \qquad
        u = \psi_y,\ v = -\psi_x

    on the unit square with :math:`\psi = 0` on all walls, by central differences on n x n
    nodes. The side is the unit of length; everything is nondimensional for
    ``lid_velocity=1``, and :math:`\nu` is lid speed over Reynolds number.

    Parameters
    ----------
    re : float, default: 1000
        Reynolds number, lid speed times side over kinematic viscosity; positive.
    n : int, default: 129
        Nodes along each side, walls included; at least 5.
    lid_velocity : float, default: 1
        Velocity of the lid at y = 1 along x; not 0.
    wall : {'jensen', 'woods', 'thom'}, default: 'jensen'
        Formula of the vorticity on the walls: second, second, first order.
    method : {'adi', 'line-jacobi'}, default: 'adi'
        Iteration; see Notes.
    line_method : {'auto', 'thomas', 'cr', 'pcr', 'cr-pcr', 'pcr-thomas', 'partition', 'pivoted'}
        Algorithm of the tridiagonal lines. ``'auto'`` takes Thomas on the CPU and
        ``'partition'``, which is for devices only, on a device: in one pass that computes
        the rows as it needs them. The others solve rows that were stored before.
    direction : {'alternate', 'x', 'y'}, default: 'alternate'
        Lines of line Jacobi: along x and y in turn, or along one axis only.
    psi : {'adi', 'fast'}, default: 'adi'
        How ``'adi'`` treats the Poisson equation in each iteration: by `psi_sweeps`
        Peaceman-Rachford double sweeps, or exactly, by a sine transform, on the CPU only.
    psi_sweeps : int, default: 4
        Number of double sweeps and of their parameters; at least 1.
    step : float, optional
        Pseudo-time step in units of side over lid speed, kept as it is. By default the
        step follows the residual.
    device : str, optional
        ``'cpu'``, the default, ``'cuda'`` or ``'cuda:1'``, ... The fields stay on the
        device between calls, and come to the host when they are asked for.
    threads : int, optional
        Threads; by default one on small grids and the backend's choice on others. The
        result has the same bits for any number.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of its range; the message names rule
        and value.
    BackendError
        If the device is not available.

    See Also
    --------
    pysolvers.solve_tridiagonal : The batched solver of one set of lines.

    Notes
    -----
    ``'adi'``: each iteration is a factored step in pseudo time for the vorticity, one
    sweep along x and one along y, then Peaceman-Rachford sweeps for the streamfunction,
    then relaxed walls. The step is cut where the vorticity is steep, so that the corners
    do not limit the rest. ``'line-jacobi'`` solves all lines from old values of their
    neighbours [1]_; it needs many more iterations and diverges for large cell Reynolds
    numbers. Both have the same solution. Tables to compare with: [2]_, [3]_.

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

    def __init__(
        self,
        re: float = 1000.0,
        n: int = 129,
        *,
        lid_velocity: float = 1.0,
        wall: str = "jensen",
        method: str = "adi",
        line_method: str = "auto",
        direction: str = "alternate",
        psi: str = "adi",
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
        """Streamfunction now: shape (n, n), a read-only view."""
        return read_only(self._fields.values()[0])

    @property
    def omega(self) -> Array:
        """Vorticity now: shape (n, n), a read-only view.

        The corners have no meaning.
        """
        return read_only(self._fields.values()[1])

    @property
    def u(self) -> Array:
        """Velocity along x now: shape (n, n), a new array."""
        return _fields.velocity(self.psi, self._settings.lid_velocity)[0]

    @property
    def v(self) -> Array:
        """Velocity along y now: shape (n, n), a new array."""
        return _fields.velocity(self.psi, self._settings.lid_velocity)[1]

    @property
    def iterations(self) -> int:
        """Iterations from rest to this state."""
        return self._count.value

    @property
    def residual(self) -> float:
        """Residual as in `CavityResult`, when it was measured last; infinite at first."""
        return max(self._residuals)

    @property
    def step(self) -> float:
        """Pseudo-time step in units of side over lid speed; NaN for line Jacobi."""
        return nan if self._settings.method == "line-jacobi" else self._control.step

    def __repr__(self) -> str:
        s = self._settings
        return (
            f"LidDrivenCavity(re={s.re:g}, n={s.n}, wall={s.wall!r}, method={s.method!r}): "
            f"{self.iterations} iterations, residual {self.residual:.1e}"
        )

    def iterate(self, count: int) -> "LidDrivenCavity":
        """Make iterations; any split into calls gives the same bits.

        Parameters
        ----------
        count : int
            How many; at least 0.

        Returns
        -------
        self : LidDrivenCavity
            For chaining.

        Raises
        ------
        ConvergenceError
            If the iteration diverges and no smaller step saves it. The state is then the
            best one so far.
        """
        end = self.iterations + index("count", count, 0)
        while self.iterations < end or self._is_undecided:
            self._advance(end)
        return self

    def solve(
        self,
        tol: float = 1e-7,
        *,
        max_iterations: int = 200_000,
        callback: Callable[["LidDrivenCavity"], Any] | None = None,
        progress: bool | None = None,
    ) -> CavityResult:
        """Iterate until the residual is at most `tol`.

        Parameters
        ----------
        tol : float, default: 1e-7
            Bound of `residual`; positive.
        max_iterations : int, default: 200000
            Iterations of this call at most.
        callback : callable, optional
            Called with this object every 20 iterations; a true answer ends the iteration.
        progress : bool, optional
            Whether to show a progress bar on stderr; by default if that is a terminal
            and tqdm is installed.

        Returns
        -------
        result : CavityResult
            The converged state, or that at which `callback` ended it.

        Raises
        ------
        TypeError, ValueError
            If `tol` is not a positive number, `max_iterations` no integer of at least 1 or
            `callback` no function.
        ConvergenceError
            If the tolerance was not reached, or the iteration diverged. Its ``result``
            holds the state so far, which is finite, and the history.
        """
        require_finite("tol", tol)
        require(tol > 0, "tol must be positive", tol)
        require_callable("callback", callback)
        end = self.iterations + index("max_iterations", max_iterations, 1)
        with IterationBar(progress, "cavity") as bar:
            while self._is_undecided or (self.residual > tol and self.iterations < end):
                made = self.iterations
                self._advance(end)
                bar.update(self.iterations - made, self.residual)
                if callback is not None and callback(self):
                    return self.result("callback")
        if self.residual > tol:
            result = self.result("max_iterations")
            raise ConvergenceError(
                f"{self!r} did not converge: tolerance {tol:g} not reached in "
                f"{max_iterations} iterations",
                result,
            )
        return self.result("converged")

    def result(self, stop_reason: str = "running") -> CavityResult:
        """Return the state now as a result of its own.

        Parameters
        ----------
        stop_reason : str, default: 'running'
            What the result says of the end of the iteration.

        Returns
        -------
        result : CavityResult
            Copies of the fields, history and timings.
        """
        s = self._settings
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
            history=self._history_arrays(),
            seconds=dict(self._seconds),
            backend=s.backend.NAME,
            kernel=str(self._lines["kernel"]),
            threads=int(self._lines["threads"]),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state, so that `load` goes on with the same bits.

        Parameters
        ----------
        path : path-like
            An npz file of exactly this name, written whole or not at all.
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
            Where the saved one was.

        Raises
        ------
        ValueError
            If the file holds something else, is damaged or was edited; the message names the
            file and what is wrong.
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

    @property
    def _is_undecided(self) -> bool:
        """Whether the decision on the step is due that belongs to this iteration."""
        decided = self._history[-1][0] if self._history else 0
        return self.iterations % INTERVAL == 0 and self.iterations > decided

    def _advance(self, end: int) -> None:
        """Go to the next decision on the step, or to iteration `end` if that is nearer.

        An interrupt can come between the iterations and the decision, or within the decision.
        The next call makes the decision then.
        """
        made = self.iterations
        if not self._is_undecided:
            self._make(min(made - made % INTERVAL + INTERVAL, end) - made)
        if self._is_undecided:
            self._decide()

    def _decide(self) -> None:
        """Decide on the step and the state; an interrupted decision can be repeated."""
        if self._measured != self.iterations:
            self._call(1, "residual", counts=False)
        # NaN is a residual, too, and max() may drop it.
        residual = float(np.max(self._residuals))
        control, row = replace(self._control), (self.iterations, *self._residuals, self.step)
        verdict = control.judge(residual)
        now, best = self._residuals, self._best_residuals
        if verdict == "best":
            self._fields.keep()
            best = now
        elif verdict in ("step back", "give up"):
            self._fields.go_back()
            now = best
        known = len(self._history)
        # One statement without a call, within which no signal handler runs.
        self._control, self._residuals, self._best_residuals, self._history[known:] = (
            control,
            now,
            best,
            [row],
        )
        if verdict == "give up":
            diverged = self.result("diverged")
            raise ConvergenceError(
                f"{self!r} did not converge: the residual rose to {residual:.1e}", diverged
            )

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
            except BaseException:  # an interrupt, too, leaves whole iterations only
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
        """Let the backend make these stages of `count` iterations."""
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
        table = np.array(self._history, float).reshape(-1, 4)
        return CavityHistory(
            table[:, 0].astype(np.int64), table[:, 1].copy(), table[:, 2].copy(), table[:, 3].copy()
        )
