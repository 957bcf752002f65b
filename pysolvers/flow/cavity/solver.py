"""The steady lid-driven cavity in streamfunction and vorticity."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isfinite, nan
from time import perf_counter
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._errors import ConvergenceError, raise_for_status
from ..._runtime.fp_mode import in_default_fp_mode
from ..._solver.counter import Counter
from ..._solver.exclusive import exclusive
from ..._solver.files import SavedFile
from ..._solver.schema import AnyFloat, Member, RunBy, Table
from ..._solver.solver import Iteration, State
from ..._views import read_only
from .. import _fields
from .._walls import Wall, cavity_wall_residual
from ._control import INTERVAL, StepControl
from ._poisson import solve_poisson
from ._result import CavityHistory, CavityResult
from ._settings import CavitySettings, Direction, LineMethod, Method, Psi
from ._state import CavityFields

__all__ = ["LidDrivenCavity"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class CavityState(State):
    """What `save` writes.

    Parameters
    ----------
    settings : CavitySettings
        The parameters.
    control : StepControl
        Choice of the step.
    line_method : str
        Algorithm of the last lines.
    measured : int
        Number of iterations after which the residuals were measured.
    residuals, best_residuals : (float, float)
        Of psi and omega, now and of the best state.
    psi, omega, best_psi, best_omega : ndarray, shape (n, n)
        The fields, now and of the best state.
    history : ndarray, shape (k, 4)
        Rows of the history.
    """

    settings: CavitySettings
    control: StepControl
    line_method: LineMethod
    measured: int
    residuals: tuple[AnyFloat, AnyFloat]
    best_residuals: tuple[AnyFloat, AnyFloat]
    psi: Table
    omega: Table
    best_psi: Table
    best_omega: Table
    history: Annotated[Array, Member((None, 4))]

    _KIND: ClassVar = "pysolvers cavity state"

    def _check(self, saved: SavedFile) -> None:
        n = self.settings.n
        saved.require_stages(self.seconds, self.settings.backend.STAGES)
        for name in ("psi", "omega", "best_psi", "best_omega"):
            saved.require_array(name, getattr(self, name), (n, n), np.float64)
        saved.require_rows(self.history, INTERVAL, self.made, "iterations")


class LidDrivenCavity(Iteration[CavityResult]):
    r"""Steady flow in a square cavity whose lid slides along x.

    .. math:: \nabla^2 \psi = -\omega, \qquad
        u\,\omega_x + v\,\omega_y = \nu \nabla^2 \omega, \qquad
        u = \psi_y,\ v = -\psi_x

    on the unit square with :math:`\psi = 0` on all walls, by central differences on n x n
    nodes. The unit of length is the side of the cavity, and :math:`\nu` is the lid speed divided
    by the Reynolds number; with ``lid_velocity=1`` all quantities are nondimensional.

    Parameters
    ----------
    reynolds : float, default: 1000
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
    psi_solver : {'adi', 'fast'}, default: 'adi'
        Solver of the Poisson equation in each iteration of ``'adi'``: `psi_sweeps`
        Peaceman-Rachford double sweeps, or an exact solve by a sine transform (CPU only).
    psi_sweeps : int, default: 4
        Number of double sweeps per iteration, and of their parameters; at least 1.
    pseudo_dt : float, optional
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
        If SciPy, which ``psi_solver='fast'`` uses, is not installed.

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
    >>> result = LidDrivenCavity(reynolds=100, n=33).solve()
    >>> result.stop_reason
    'converged'
    >>> vortex = result.primary_vortex()
    >>> print(f"{vortex.x:.2f} {vortex.y:.2f}")
    0.62 0.74
    """

    _SETTINGS: ClassVar[Any] = CavitySettings
    _RESULT: ClassVar[Any] = CavityResult
    _STATE: ClassVar[Any] = CavityState

    reynolds: float
    n: int
    lid_velocity: float
    wall: Wall
    method: Method
    line_method: LineMethod
    direction: Direction
    psi_solver: Psi
    psi_sweeps: int

    @in_default_fp_mode
    def __init__(
        self,
        reynolds: float = 1000.0,
        n: int = 129,
        *,
        lid_velocity: float = 1.0,
        wall: Wall = "jensen",
        method: Method = "adi",
        line_method: LineMethod = "auto",
        direction: Direction = "alternate",
        psi_solver: Psi = "adi",
        psi_sweeps: int = 4,
        pseudo_dt: float | None = None,
        device: str | None = None,
        threads: int | None = None,
    ) -> None:
        settings = self._SETTINGS(
            **self._experiment,
            reynolds=reynolds,
            n=n,
            lid_velocity=lid_velocity,
            wall=wall,
            method=method,
            line_method=line_method,
            direction=direction,
            psi_solver=psi_solver,
            psi_sweeps=psi_sweeps,
            pseudo_dt=pseudo_dt,
            device=device,
            threads=threads,
        )
        super().__init__(settings, settings.backend.STAGES)
        self._fields = CavityFields(settings.n, settings.device)
        self._measured = 0  # iterations after which the residuals were measured
        self._residuals = self._best_residuals = (inf, inf)
        self._control = self._first_control()
        self._history: list[tuple[int, float, float, float]] = []
        self._line_method = settings.line_method
        self._size = inf  # at the last decision of `solve`

    def _first_control(self) -> StepControl:
        """Return the choice of the step before the first iteration."""
        s = self._settings
        fixed = 1.0 if s.method == "line-jacobi" else s.pseudo_dt
        return StepControl.start(s.reynolds, 1.0 / (s.n - 1), fixed)

    @property
    def psi(self) -> Array:
        """Current streamfunction: shape (n, n), a read-only view.

        It can be set, to an array of the same shape: the iteration goes on from its values, which
        are 0 on the walls.
        """
        return read_only(self._fields.values()[0])

    @psi.setter
    @exclusive
    def psi(self, values: ArrayLike) -> None:
        self._set_field("psi", values)

    @property
    def omega(self) -> Array:
        """Current vorticity: shape (n, n), a read-only view.

        The values in the corners are not defined and not used. It can be set, to an array of the
        same shape: the iteration goes on from its values.
        """
        return read_only(self._fields.values()[1])

    @omega.setter
    @exclusive
    def omega(self, values: ArrayLike) -> None:
        self._set_field("omega", values)

    @property
    @in_default_fp_mode
    def u(self) -> Array:
        """Current velocity along x: shape (n, n), a new array, computed from `psi`."""
        return _fields.velocity(self.psi, self._settings.lid_velocity)[0]

    @u.setter
    def u(self, values: ArrayLike) -> None:
        raise self._is_computed("u", "psi and omega")

    @property
    @in_default_fp_mode
    def v(self) -> Array:
        """Current velocity along y: shape (n, n), a new array, computed from `psi`."""
        return _fields.velocity(self.psi, self._settings.lid_velocity)[1]

    @v.setter
    def v(self, values: ArrayLike) -> None:
        raise self._is_computed("v", "psi and omega")

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
    def residual(self) -> float:
        """Residual of the last measurement, as in `CavityResult`; infinite before the first."""
        return max(self._residuals)

    @property
    def pseudo_dt(self) -> float:
        """Pseudo-time step in units of side divided by lid speed; NaN for line Jacobi.

        The iteration chooses it from the residual, and it cannot be set: the parameter `pseudo_dt`
        of the solver keeps it constant.
        """
        return nan if self._settings.method == "line-jacobi" else self._control.step

    def _text(self) -> str:
        s = self._settings
        return f"reynolds={s.reynolds:g}, n={s.n}, wall={s.wall!r}, method={s.method!r}"

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
            on the walls in units of lid speed over side; not negative.
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
            If `tol` is not a number of at least 0, `max_iterations` no integer of at least 1, or
            `callback` is not a function.
        ConvergenceError
            If the tolerance was not reached, the residual stalled, or the iteration diverged. The
            attribute ``result`` contains the last finite state and the history.
        RuntimeError
            As in `iterate`.
        """
        return self._solve(tol, max_iterations, patience, callback, interval, progress)

    def _measure(self, tol: float, *, is_end: bool) -> float:
        if self.iterations % INTERVAL == 0 or is_end:  # so that a callback changes no decision
            self._size = self._error(tol)
        return self._size

    def _patience(self, most: int) -> int:
        del most
        return int(self._settings.n**2 // 10)

    def _advice(self, tol: float, *, is_stalled: bool) -> str:
        if not is_stalled:
            return ""
        return (
            ": the flow can be unsteady, or the grid too coarse: take a larger n or a smaller "
            "reynolds, or a larger patience"
        )

    def _failed(self, reason: str, stop_reason: Any) -> ConvergenceError:
        if not isfinite(self.residual):  # the end came before the decision that goes back
            self._fields.go_back()
            self._residuals = self._best_residuals
            reason = f"the residual was not finite after {self.iterations} iterations"
            stop_reason = "diverged"
        return super()._failed(reason, stop_reason)

    def _facts(self) -> dict[str, Any]:
        s = self._settings
        history = self._history_arrays()  # first: it can measure the residual
        psi, omega = self._fields.values()
        names = "reynolds", "lid_velocity", "wall", "method"
        return {name: getattr(s, name) for name in names} | {
            "psi": psi.copy(),
            "omega": omega.copy(),
            "line_method": self._line_method,
            "iterations": self.iterations,
            "residual": self.residual,
            "history": history,
        }

    def _kept(self) -> dict[str, Any]:
        names = ("psi", "omega", "best_psi", "best_omega")
        fields = (*self._fields.values(), *self._fields.best_values())
        return {
            "control": self._control,
            "line_method": self._line_method,
            "measured": self._measured,
            "residuals": self._residuals,
            "best_residuals": self._best_residuals,
            "history": np.array(self._history, float).reshape(-1, 4),
            **dict(zip(names, fields, strict=True)),
        }

    def _restart(self, **fields: NDArray[Any]) -> None:
        if "psi" in fields:
            inside = fields["psi"]
            inside[0] = inside[-1] = inside[:, 0] = inside[:, -1] = 0
        self._fields.set(**fields)
        self._fields.keep()
        self._residuals = self._best_residuals = (inf, inf)
        self._measured, self._size, self._control = 0, inf, self._first_control()

    def _resume(self, state: Any) -> None:
        names = ("psi", "omega", "best_psi", "best_omega")
        self._fields.set(**{name: getattr(state, name) for name in names})
        self._control, self._line_method = state.control, state.line_method
        self._measured = state.measured
        self._residuals, self._best_residuals = state.residuals, state.best_residuals
        self._history = [(int(row[0]), *row[1:]) for row in state.history.tolist()]

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

    def _advance(self, count: int) -> bool:
        """Iterate to the next decision on the step, at most `count` times.

        If an interrupt occurs between the iterations and the decision, or during the decision,
        the next call makes the decision.
        """
        self._make_with_step(min(INTERVAL - self.iterations % INTERVAL, count))
        return self._is_in_bounds()

    def _is_in_bounds(self) -> bool:
        return not self._is_undecided or self._decide()

    def _decide(self) -> bool:
        """Decide on the step and the state; return whether the iteration can go on.

        An interrupted decision can be repeated.
        """
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
        return verdict != "give up"

    def _out_of_bounds(self) -> ConvergenceError:
        residual = float(np.max(self._history[-1][1:3]))
        text = f"{self!r}, did not converge: the residual rose to {residual:.1e}"
        return ConvergenceError(text, self.result("diverged"))

    def _row_now(self) -> tuple[int, float, float, float]:
        """Return the row of the history for this iteration, with its residuals."""
        if self._measured != self.iterations:
            self._call(1, "residual", counts=False)
        psi, omega = self._residuals
        return self.iterations, psi, omega, self.pseudo_dt

    def _make_with_step(self, count: int) -> None:
        """Make iterations with the current step."""
        stages = self._settings.backend.STAGES
        if self._settings.psi_solver == "adi":
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
        """Make an iteration whose Poisson equation is solved exactly, on the host."""
        self._call(1, "omega", counts=False)
        psi, omega = self._fields.operands()
        start = perf_counter()
        psi[:] = solve_poisson(
            omega,
            line_method=self._settings.line_method,
            threads=self._settings.call_threads or None,
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
            s.speed / s.reynolds,
            s.lid_velocity,
            self._control.step / s.speed,
            s.psi_sweeps,
            first,
            *self._fields.operands(),
            count,
            backend.METHODS[s.line_method],
            s.block or 0,
            s.call_threads,
            self._count.begin() if counts else np.zeros(1, np.int64),
            *self._fields.arguments,
        )
        raise_for_status(status, backend.STATUS, "LidDrivenCavity")
        self._add_seconds(report["seconds"])
        if "residual" in stages:
            speed = s.speed
            found = report["psi_residual"] / speed, report["omega_residual"] / speed**2
            self._residuals, self._measured = found, self.iterations
        if "omega" in stages:
            lines = report["lines"]
            self._line_method = lines["method"]
            self._run_by = RunBy(lines["kernel"], lines["threads"])

    def _history_arrays(self) -> CavityHistory:
        """Return the history, with the row that an interrupt may have left to the next call."""
        missing = [self._row_now()] if self._is_undecided else []
        table = np.array(self._history + missing, float).reshape(-1, 4)
        return CavityHistory(
            table[:, 0].astype(np.int64), table[:, 1].copy(), table[:, 2].copy(), table[:, 3].copy()
        )
