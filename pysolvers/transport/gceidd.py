"""GCEIDD: convection and diffusion in strips that are solved independently."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import require
from .._errors import ConvergenceError, warn_user
from .._runtime.fp_mode import in_default_fp_mode
from .._solver.exclusive import exclusive
from .._solver.files import SavedFile
from .._solver.schema import AnyFloat, Field, RunBy
from .._solver.solver import OverRanks
from .._solver.stepping import TimeState
from .._views import read_only
from ..distributed import Group, Slab
from ..distributed._group import agreement_of, own_device
from ._limits import courant, diffusion_number, stable_part
from ._of_problem import OfProblem
from ._range import Range
from ._result import TransportResult
from ._run import run_of
from ._settings import Scheme, TransportSettings, Upwind
from ._state import field_names
from .problem import ConvectionDiffusion, cells_of

__all__ = ["GCEIDD"]


@dataclass(frozen=True, kw_only=True)
class SavedTransport(TimeState):
    """What `save` writes.

    Parameters
    ----------
    settings : TransportSettings
        The parameters.
    extent : tuple
        Ends of the domain along x and y.
    range : (float, float)
        Smallest and largest value that the solution can have so far.
    limit : float
        Limit of abs(u) where it has no range.
    u : ndarray
        The solution.
    older, oldest : ndarray or None
        The half levels before it, of the scheme ``'mu'``.
    """

    settings: TransportSettings
    extent: tuple[tuple[float, float], tuple[float, float]]
    range: tuple[AnyFloat, AnyFloat]
    limit: AnyFloat
    u: Field
    older: Field | None
    oldest: Field | None

    _KIND: ClassVar = "pysolvers GCEIDD state"

    def _check(self, saved: SavedFile) -> None:
        s = self.settings
        names = field_names(s.scheme)
        for name in ("u", "older", "oldest"):
            field = getattr(self, name)
            rule = "it is missing" if field is None else "it does not belong there"
            saved.require((field is None) == (name not in names), f"member {name!r}", rule)
            if field is not None:
                saved.require_array(name, field, s.shape, np.dtype(s.dtype))
        lowest, highest = self.range
        is_range = lowest <= highest and self.limit > 0
        saved.require(is_range, "header", "range must rise, and limit must be positive")


class GCEIDD(OverRanks, OfProblem[TransportResult]):
    r"""Convection and diffusion by corrected explicit-implicit domain decomposition.

    A step is a sweep along x and a sweep along y, each of first order in time. A sweep divides
    each line into strips, predicts the values at the interfaces, solves one tridiagonal system
    per strip, and corrects the interfaces by

    .. math:: V_i = \tfrac23 (V_{i+1} + V_{i-1}) - \tfrac16 (V_{i+2} + V_{i-2}).

    With one strip along each axis it is the classical method of fractional steps.

    Parameters
    ----------
    problem : ConvectionDiffusion
        Equation, domain, sides and initial values.
    shape : (ny, nx)
        Number of nodes along y and x, those on the boundary included: the shape of the solution.
    dt : float
        Time step; positive. It can be set between steps; the prediction of ``'mu'`` then begins
        again. See `suggest_dt`.
    scheme : {'cp', 'cfd', 'mu'}, default: 'cp'
        ``'cp'`` predicts by an explicit step from the foot of the characteristic and solves
        with upwind differences; ``'cfd'`` uses characteristics in the prediction and in the
        solve; ``'mu'`` predicts by extrapolation from the half level before, and solves with
        upwind differences. A foot outside the domain has the value on the side.
    strips : int or (int, int), default: 1
        Number of strips along each axis. On n + 1 nodes, interface k is at node k n // strips, so
        that the sizes of strips differ by at most one cell. Each strip needs at least 3 cells.
    upwind : {'modified', 'plain'}, default: 'modified'
        Diffusion coefficient of the upwind differences: :math:`a / (1 + h|b|/(2a))`, which
        compensates most of their numerical diffusion, or a.
    dtype : float64 or float32, default: float64
        Dtype of the solution.
    start_time : float, default: 0
        Time at the start: the first one at which functions of time are evaluated.
    bound : float, optional
        Limit of abs(u). By default u must stay in the range that the maximum principle gives; see
        Notes. If u leaves the limits in a step, or is NaN, the step raises ConvergenceError.
    device : str, optional
        ``'cpu'``, the default, ``'cuda'`` or ``'cuda:1'``, ... The solution stays on the device
        between calls; `u` copies it to the host.
    threads : int, optional
        Number of host threads; the backend chooses the default. The result has the same bits
        for any number.
    group : pysolvers.distributed.Group, optional
        Processes that each hold a part of the nodes and step together; see Notes.
    split : pysolvers.distributed.Slab, optional
        With `group`, the axis of the solution along which it is split.

    Warns
    -----
    RuntimeWarning
        If the explicit predictions of ``'cp'`` and ``'cfd'`` in several strips are unstable, for
        the largest diffusion and velocity; the message names the step that is stable.

    Raises
    ------
    TypeError, ValueError
        If a parameter, or the data of the problem on this grid, have the wrong type or are out
        of range; the message names the rule and the value.
    BackendError
        If the device is not available.

    See Also
    --------
    ConvectionDiffusion : The problem.
    suggest_dt : A time step from a model of the error.

    Notes
    -----
    Velocity, diffusion, source and boundary values are evaluated at the end of the step; each sweep
    uses half of the source. Functions of time are evaluated for up to 64 steps ahead, so that one
    call of the backend makes many steps.

    **The scheme is of first order and diffusive.** In an axis with velocity b it adds a numerical
    diffusion of about :math:`b^2\,dt/2` by the implicit step and, with p = h abs(b)/(2a),
    :math:`a\,p^2/(1 + p)` by modified upwind differences (h abs(b)/2 by plain ones), which widens
    pulses and fronts. A stable step is not necessarily accurate: `suggest_dt` balances the two
    parts; compare with a smaller `dt` and a finer grid.

    **The range of the solution.** With one strip u lies between the smallest and the largest of the
    initial values and of the values given on Dirichlet sides so far, plus the integrals over time
    of the smallest source, where negative, and of the largest one, where positive. Without `bound`,
    u may leave this range by 1 % of its width and by rounding errors. In strips the solution is not
    monotone, and u may differ from the middle of the range by 100 times half of the width. The
    range is that of all ranks of a group, and `save` and `load` keep it. In these cases u is
    limited by 1e12 times the largest of 1 and the magnitudes of the data at the start only:

    - from the first step on in which a velocity is not constant along its own axis;
    - above after a `Neumann` flux into the domain, below after one out of it, in strips after both.

    **Sides.** `Neumann`, ``"outflow"`` and `Robin` fluxes act on the ends of the lines, and
    ``"periodic"`` axes have interfaces at the first node too if they have several strips; with one
    strip each line is a cyclic system, solved exactly by three eliminations. The sum of u is then
    kept to rounding by ``'cp'`` and ``'mu'``, for any velocity. The shape does not contain the
    image of the first node. Periodic axes are for the CPU and one process, `Robin` sides for the
    CPU.

    **Values on sides.** At the start `u` has the initial values at all nodes, also where a
    Dirichlet side gives other ones; after a step the nodes of Dirichlet sides have the values of
    the end of the step. A corner node of two Dirichlet sides has the value of the side ``"x-"`` or
    ``"x+"``.

    With a `group`, `shape` and the arrays of the problem are those of the whole grid, of which each
    rank holds the part ``split.part(shape[axis], group.rank, group.size)``: `u`, the coordinates,
    `courant`, `diffusion_number` and the results are those of the part. Functions are called with
    the nodes of a part and next to it. All ranks make the same calls; `gather` returns the whole
    solution, which is that of one process up to rounding errors. Each rank has a halo of its
    neighbours' nodes, which is exchanged once in some steps. If velocity or diffusion change with
    time, if what a step reads reaches over the neighbours, or if no part of the strips has the
    interfaces of the whole grid, the ranks exchange rows for columns twice in each step instead, so
    that every line is swept on one rank. Each rank needs at least 4 nodes along both axes. On
    devices, of which ``"cuda"`` gives each rank its own, a source or the scheme ``'mu'`` is slow
    with rows for columns: the host changes the fields.

    References
    ----------
    .. [1] A. Foadaddini, S. A. Zolfaghari, H. Mahmoodi Darian and H. Saadatfar, "A new
       GPU-based corrected explicit-implicit domain decomposition scheme for
       convection-dominated diffusion problems", *Computers & Mathematics with Applications*
       123, 184-203, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import GCEIDD, ConvectionDiffusion
    >>> problem = ConvectionDiffusion(
    ...     (1.0, 0.5),
    ...     1e-3,
    ...     boundary=0.0,
    ...     initial=lambda x, y: np.exp(-((x - 0.3) ** 2 + (y - 0.4) ** 2) / 0.01),
    ... )
    >>> result = GCEIDD(problem, shape=(65, 65), dt=1 / 128, strips=4).run(0.25)
    >>> j, i = np.unravel_index(result.u.argmax(), result.u.shape)
    >>> print(f"{result.x[i]:.2f} {result.y[j]:.2f}")
    0.55 0.52
    """

    _SETTINGS: ClassVar[Any] = TransportSettings
    _RESULT: ClassVar[Any] = TransportResult
    _STATE: ClassVar[Any] = SavedTransport

    problem: ConvectionDiffusion
    scheme: Scheme
    strips: tuple[int, int]
    upwind: Upwind
    bound: float | None

    @in_default_fp_mode
    def __init__(
        self,
        problem: ConvectionDiffusion,
        shape: tuple[int, int],
        dt: float,
        *,
        scheme: Scheme = "cp",
        strips: int | tuple[int, int] = 1,
        upwind: Upwind = "modified",
        dtype: Any = np.float64,
        start_time: float = 0.0,
        bound: float | None = None,
        device: str | None = None,
        threads: int | None = None,
        group: Group | None = None,
        split: Slab | None = None,
    ) -> None:
        self._data_given = {"problem": problem, "group": group, "split": split}
        with agreement_of(group, "GCEIDD") as agreed:
            settings = self._SETTINGS(
                **self._experiment,
                shape=shape,
                dt=dt,
                start_time=start_time,
                scheme=scheme,
                strips=strips,
                upwind=upwind,
                dtype=dtype,
                bound=bound,
                device=own_device(device, group),
                threads=threads,
            )
            if not isinstance(problem, ConvectionDiffusion):
                kind = type(problem).__name__
                raise TypeError(f"problem must be a ConvectionDiffusion, got {kind}")
            settings.check_strips(cells_of(problem, settings.shape))
            super().__init__(settings, settings.dt)
            self._state = state = run_of(problem, settings, group, split)
            self._group, self._data = state.group, state.data
            self._x, self._y = state.data.x, state.data.y
            self._check_kinds()
            if agreed is not None:
                agreed.same = settings.agreed() | {"extent": problem.extent} | state.agreed
                kinds = [
                    edge if isinstance(edge, str) else type(edge).__name__
                    for edge in problem.boundary.values()
                ]
                agreed.same["boundary"] = kinds
        self._state.connect()
        self._range = self._range_from(self._data.initial)
        self._check_length(settings.dt)

    def _check_kinds(self) -> None:
        """Raise ValueError if a device has no kernels for the sides."""
        found = {"robin", "periodic"}.intersection(self._data.kinds.values())
        require(
            not (found and self._settings.is_on_device),
            "GCEIDD: Robin and periodic sides have no kernels on devices: use device='cpu', or "
            "AdvectionDiffusion",
            ", ".join(sorted(found)),
        )

    @property
    def u(self) -> NDArray[Any]:
        """Solution at the current time, with a group its part of this rank.

        A read-only view, which is the current solution until the next step. It can be set, to an
        array of the same shape, with a group on all ranks: the solution goes on from these values
        at the same time, and its range and the prediction of ``'mu'`` begin again.
        """
        return read_only(self._state.u)

    @u.setter
    @exclusive
    def u(self, values: ArrayLike) -> None:
        self._set_field("u", values)

    def _restart(self, **fields: NDArray[Any]) -> None:
        found = self._range_from(fields["u"])
        found.restore(self.steps, *found.at(0))
        self._range = found
        self._state.restart(fields["u"])

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the solution."""
        return tuple(self._settings.shape)

    @property
    def x(self) -> NDArray[np.float64]:
        """Coordinates of the nodes along x: shape (nx,)."""
        return self._x.copy()

    @property
    def y(self) -> NDArray[np.float64]:
        """Coordinates of the nodes along y: shape (ny,)."""
        return self._y.copy()

    @property
    def courant(self) -> float:
        """Courant number at the current time: abs(b) dt/h, the larger of both axes."""
        return courant(self._data, self.dt, self.time)

    @property
    def diffusion_number(self) -> float:
        """Diffusion number at the current time: a dt/h^2, the larger of both axes."""
        return diffusion_number(self._data, self.dt, self.time)

    def _text(self) -> str:
        s = self._settings
        return f"{s.shape}, dt={self.dt:g}, scheme={s.scheme!r}, strips={s.strips}"

    def _facts(self) -> dict[str, Any]:
        names = "scheme", "upwind", "strips"
        return {
            **{name: getattr(self._settings, name) for name in names},
            "u": self._state.u.copy(),
            "x": self._x.copy(),
            "y": self._y.copy(),
            "time": self.time,
            "dt": self.dt,
            "last_dt": self.last_dt,
            "steps": self.steps,
            "courant": self.courant,
            "diffusion_number": self.diffusion_number,
            "exchange": self._state.exchange,
        }

    def _kept(self) -> dict[str, Any] | None:
        fields = self._state.fields()  # with a group, None on all ranks but the first one
        if fields is None:
            return None
        return {
            **(super()._kept() or {}),
            "range": self._range.at(self.steps),
            "limit": self._range.limit,
            "extent": self._data.extent,
            **dict.fromkeys(("older", "oldest")),
            **fields,
        }

    def _gathered(self) -> NDArray[Any] | None:
        return self._state.gather()

    @classmethod
    def load(  # type: ignore[override]
        cls,
        path: str | os.PathLike[str],
        problem: ConvectionDiffusion,
        *,
        group: Group | None = None,
        split: Slab | None = None,
    ) -> Self:
        """Read a state that `save` wrote.

        Parameters
        ----------
        path : path-like
            The file.
        problem : ConvectionDiffusion
            The problem of the solver that was saved.
        group : pysolvers.distributed.Group, optional
            As in `GCEIDD`. A state can be continued by any number of ranks; every rank reads the
            file.
        split : pysolvers.distributed.Slab, optional
            As in `GCEIDD`.

        Returns
        -------
        solver : GCEIDD
            A solver in the saved state.

        Raises
        ------
        ValueError
            If the file is not a state of `GCEIDD`, is damaged or was changed, or the problem has
            another extent; the message names the file and the error.
        """
        where = {"group": group, "split": split}
        return cls._load(path, "header or arguments", problem=problem, **where)

    def _resume(self, state: Any) -> None:
        super()._resume(state)
        names = field_names(self._settings.scheme)
        self._state.set_fields({name: getattr(state, name) for name in names})
        self._range.restore(self.steps, *state.range)
        self._range.limit = state.limit

    @property
    def _most_steps(self) -> int:
        return self._state.most_steps

    def _range_from(self, initial: NDArray[Any]) -> Range:
        """Return the range of the solution from these values on; collective."""
        settings = self._settings
        edges = (edge.at(self.time) for edge in self._data.edges.values())
        largest = max(float(np.abs(values).max()) for values in (initial, *edges))
        ends = self._state.over_ranks(np.array([-initial.min(), initial.max(), largest]))
        return Range(
            -float(ends[0]),
            float(ends[1]),
            float(ends[2]),
            settings.bound,
            settings.dtype,
            is_in_strips=max(settings.strips) > 1,
        )

    def _advance(self, count: int) -> bool:
        state, segment, first = self._state, self._clock.segment, self.steps
        if first == segment.steps > 0:
            state.forget()  # the predictor needs earlier values at equal distances in time
        threads = self._settings.call_threads
        is_in_bounds = state.advance(
            segment, first, first + count, self._range, threads, self._count
        )
        for report in state.reports:
            self._note(report)
        self._add_seconds(state.further_seconds)
        return is_in_bounds

    def _note(self, report: dict[str, Any]) -> None:
        self._run_by = RunBy(report["kernel"], report["threads"])
        for axis in ("x", "y"):
            self._add_seconds({f"{axis} {part}": time for part, time in report[axis].items()})

    def _check_length(self, dt: float) -> None:
        """Warn if the explicit predictions are unstable."""
        s, data = self._settings, self._data
        if s.scheme == "mu" or max(s.strips) == 1:
            return
        for axis, h in enumerate(self._data.spacing):
            ratio = data.largest("diffusion", axis, self.time) * dt / h**2
            moved = data.largest("velocity", axis, self.time) * dt / h
            upwind, strips = s.scheme != "cfd", s.strips[axis]
            part = stable_part(ratio, moved, data.cells[axis], strips, upwind=upwind)
            if part < 1:
                warn_user(
                    f"GCEIDD: with {strips} strips along {'xy'[axis]} the explicit prediction is "
                    f"unstable at the diffusion number a dt/h^2 = {ratio:.3g} and the Courant "
                    f"number {moved:.3g}; the limit is a diffusion number of {part * ratio:.3g}: "
                    f"take dt = {part * dt:.3g} or less, or strips=1, which has no limit"
                )
                return

    def _is_in_bounds(self) -> bool:
        return self._state.is_inside(self._range.limits(self.steps))

    def _out_of_bounds(self) -> ConvergenceError:
        here, u = self._state.where, self._state.u
        lowest, highest = self._range.limits(self.steps)
        if self._range.is_of_data(self.steps):
            text = (
                f"u lies between {float(u.min()):.6g} and {float(u.max()):.6g}{here}, not between "
                f"{lowest:.6g} and {highest:.6g}, which initial values, sides and source allow,"
            )
            advice = "take a smaller dt, or strips=1; bound= replaces this limit"
        else:
            text = f"abs(u) is {float(np.abs(u).max()):.4g}{here}, not at most {highest:.4g}"
            advice = "see suggest_dt"
        return ConvergenceError(
            f"{self!r}, grew: {text} after step {self.steps}, with Courant number "
            f"{self.courant:.3g} and diffusion number {self.diffusion_number:.3g}; {advice}",
            self.result("diverged"),
        )
