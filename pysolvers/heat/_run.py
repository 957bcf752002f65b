"""How `HeatADI` makes its steps: on all nodes, or on the slab of a rank.

A run has the fields and makes some of the steps that the solver asks for. What a step is, its
number, the segment of the clock and the start belong to the solver.

`SlabRun` is no `HaloRun`: it chooses how the steps of a length are made, and can choose anew. One
choice is a `HaloRun`, with a deep halo (_halo.py) or with cut lines (_cut_lines.py), and its loop
is the only one over exchanges. The others exchange no halo that is good for some steps: the damped
start and steps by array operations exchange one node for each line solve (_split.py), and the
steps of the scheme ``'implicit'`` divide rows or hold a halo for each solve (_unsplit_slab.py).
`SplitState` has T for the first two of these three, and hands it over when the choice changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._data import NodeData
from .._solver.clock import Clock, Segment
from .._solver.counter import Counter
from .._solver.schema import RunBy
from .._split.schemes import SplitSteps
from ..distributed import Group, Slab
from ..distributed._systems import checked_group
from ._damped_start import FieldOps, damped_step, needs_damping
from ._laws import Laws
from ._operators import HeatOperators
from ._settings import HeatSettings
from ._sides import PERIODIC, Grid, Side, heat_of
from ._split import SplitState
from ._state import HeatState
from ._unsplit import Unsplit
from ._unsplit_device import DeviceUnsplit, unsplit_for
from ._unsplit_slab import UnsplitSlab, unsplit_slab_for

if TYPE_CHECKING:
    from .adi import HeatADI

Array = NDArray[Any]

_ROUNDING = 16.0  # machine numbers: change of T in a steady state of laws
_SLAB_STEPS = 64  # between two updates of the progress bar of a group


class WholeRun:
    """Steps on all nodes.

    Parameters
    ----------
    settings : HeatSettings
        The method.
    grid : Grid
        The nodes.
    sides : mapping of str to Side
        By name.
    """

    #: The ranks.
    group: Group | None = None
    #: What must be the same on all ranks.
    agreed: Mapping[str, Any] = {}
    #: How nodes travel from rank to rank: as `exchange` of a result.
    exchange = "none"

    def __init__(self, settings: HeatSettings, grid: Grid, sides: dict[str, Side]) -> None:
        self._settings, self._sides = settings, sides
        #: The nodes of this process.
        self.grid = grid
        # Number of steps, and the changes of their last stages; () if the scheme has none.
        self._recent: tuple[int, Sequence[Array]] = (-1, ())
        self._steps: SplitSteps[HeatOperators] | None = None  # those by array operations
        # With laws, the number of steps and T before the last one.
        self._earlier: tuple[int, Array] = (-1, np.empty(0))

    def start(self, initial: Array, source: NodeData | None, given: Any, laws: Laws | None) -> None:
        """Begin from values that broadcast to the nodes of this process; collective.

        `given` is the source as the caller gave it; `laws` are those of k and the source.
        """
        del given
        self._laws = laws
        s, self._source = self._settings, source
        self.state = HeatState(s.alternating, self.grid, self._sides, source)
        self.state.start(np.broadcast_to(initial, s.shape))
        #: Steps of the equation that is not split along the axes.
        self.unsplit = unsplit_for(s, self.grid, self._sides, source, self.state.store)

    def check_steps(self) -> None:
        """Raise if no step of alternating directions can be made."""

    @property
    def k(self) -> Array | None:
        """Conductivity at the nodes of this process, and at those that it knows of others."""
        return self.grid.k

    @property
    def t(self) -> Array:
        """T at the nodes of this process, to be read."""
        return self.state.t

    @property
    def most_steps(self) -> int:
        """Largest number of steps between two updates of the progress bar."""
        return self.state.most_steps if self._laws is None else 1

    def gather(self) -> Array | None:
        """Return the whole T on rank 0, None on the others; collective."""
        return self.t.copy()

    def heat(self) -> float:
        """Return the heat of the nodes of all ranks; collective."""
        return heat_of(self.grid, self._sides.values(), self.state.t)

    def is_finite(self) -> bool:
        """Return whether T is finite on all ranks; collective."""
        return bool(np.isfinite(self.t).all())

    def restart(self, field: Array) -> None:
        """Begin again from T at the nodes of this process, in a new segment; collective."""
        self.state.start(field)
        self._recent = (-1, ())
        self._earlier = (-1, np.empty(0))

    def kept(self, solver: HeatADI) -> dict[str, Any] | None:
        """Return what `resume` needs, on rank 0, None on the others; collective."""
        fields = self.state.fields()
        if self._laws is not None:  # w is T before the last step
            steps, before = self._earlier
            return {
                "stages": None,
                "t": fields["t"],
                "w": before if steps == solver.steps else fields["t"],
            }
        steps, recent = self._recent
        stages = self.unsplit.values(recent) if steps == solver.steps else None  # w is the first
        return {"stages": stages} | fields

    def resume(self, state: Any, steps: int) -> None:
        """Go on from what `kept` returned, after this number of steps; collective."""
        self.state.set_fields({name: getattr(state, name) for name in ("t", "w")})
        if self._laws is not None:
            self._earlier = steps, state.w
        if state.stages is not None:
            self._recent = steps, self.unsplit.kept(state.stages)

    def steady(
        self, time: float, limit: float, most: int
    ) -> tuple[Unsplit | UnsplitSlab, Array, tuple[float, float]]:
        """Return who solved for the steady state, the state, and the balance; collective."""
        solver = unsplit_for(self._settings, self.grid, self._sides, self._source, self.state.store)
        if self._laws is None:
            return solver, *solver.steady(self.state.operands()[0], time, limit, most)
        return solver, *self._steady_by_laws(solver, self._laws, time, limit, most)

    def _steady_by_laws(
        self, solver: Unsplit, laws: Laws, time: float, limit: float, most: int
    ) -> tuple[Array, tuple[float, float]]:
        """Solve with the laws at the last solution until it is their solution."""
        k, field, count = self.grid.k, self.state.t.copy(), 0
        limit = max(limit, _ROUNDING * float(np.finfo(field.dtype).eps))
        try:
            while True:
                laws.set_steady(time, self.shown(field))
                before = field
                field, balance = solver.steady(solver.held(field), time, limit, most - count)
                count += max(1, solver.iterations)
                change = float(np.abs(field - before).max())
                is_solved = change <= limit * float(np.abs(field).max())
                if is_solved or not solver.converged or count >= most or not np.isfinite(change):
                    solver.iterations = count
                    solver.converged = is_solved and solver.converged
                    return field, balance
        finally:
            self.grid.k, self.grid.sink = k, None

    def shown(self, field: NDArray[Any]) -> NDArray[Any]:
        """Return a field of the nodes as the caller knows it."""
        return field

    def advance(self, solver: HeatADI, count: int) -> bool:
        """Make some of `count` steps; return whether T is finite. Collective."""
        if self._laws is None:
            return self._advance(solver, count)
        before = self.state.t.copy()
        self._set_laws(solver, self._laws, before)
        is_finite = self._advance(solver, 1)
        self._earlier = solver.steps, before
        return is_finite

    def _set_laws(self, solver: HeatADI, laws: Laws, t: Array) -> None:
        """Evaluate the laws for the next step."""
        first, segment = solver.steps, self.grid.clock.segment
        steps, before = self._earlier
        if steps == first and not solver._follows_start:
            t = t + 0.5 * segment.dt / solver.last_dt * (t - before)
        laws.set(segment.at(first + 0.5), self.shown(t))
        if laws.conductivity is not None:
            assert self.grid.k is not None
            self.state.set_k(self.grid.k)
            self.unsplit.forget()
            solver._take_conductivity()

    def _advance(self, solver: HeatADI, count: int) -> bool:
        """Make some of `count` steps with the laws as they are."""
        state, first = self.state, solver.steps
        is_first = first == solver._begun and not self._settings.is_paper
        if is_first and self._begin_damped(solver):
            return self.is_finite()
        solver._check_accuracy(is_damped=False)
        if solver._scheme == "implicit":
            return self._step_unsplit(solver, first)
        if not self.grid.has_kernels:
            return self._step_by_arrays(solver, first)
        # Before the first step of this length, and after a damped one, w is not known.
        is_fresh = solver._is_fresh or self._laws is not None
        count = min(count, state.most_steps)
        state.prepare(first, count)
        solver._note(state.step(count, is_fresh=is_fresh, made=solver._count.begin()))
        return isfinite(state.largest)

    def _step_unsplit(self, solver: HeatADI, first: int) -> bool:
        """Make one step that is not split along the axes."""
        unsplit, start = self.unsplit, perf_counter()
        t, w = self.state.operands()
        steps, recent = self._recent
        if solver._is_fresh or self._laws is not None:
            recent = ()
        elif steps != first:
            recent = unsplit.recent_of(w)
        field, recent = unsplit.step(t, recent, first, follows_start=solver._follows_start)
        solver._require_converged()
        is_finite = unsplit.is_finite(field)
        self._replace(solver, {"t": field, "w": recent[0]}, first + 1)
        self._recent = first + 1, recent
        solver._seconds["x"] += perf_counter() - start
        return is_finite

    def _step_by_arrays(self, solver: HeatADI, first: int) -> bool:
        """Make one step of alternating directions by array operations and line solves."""
        s, grid, state, start = self._settings, self.grid, self.state, perf_counter()
        segment, t = grid.clock.segment, state.t
        if self._steps is None or not self._steps.operators.are_those_of(grid):
            about = grid, self._sides, self._source, state.changes, self._levels, self._ops
            self._steps = SplitSteps(HeatOperators(*about), "douglas", 0.5)
        times = segment.at(first), segment.at(first + 1)
        field = self._steps.step(t.astype(np.float64), *times, grid.dt)
        kept = t.copy()
        self._set(solver, field.astype(kept.dtype), first + 1, kept)
        solver._run_by = RunBy("arrays", s.call_threads)
        solver._seconds["x"] += perf_counter() - start
        return bool(np.isfinite(field).all())

    def _levels(self, time: float) -> dict[Side, Array]:
        """Return values and inflows of the sides."""
        given = (side for side in self._sides.values() if side.kind != PERIODIC)
        return {side: side.level(time) for side in given}

    @property
    def _ops(self) -> FieldOps:
        """Operations on the whole field, with the device and the threads of the steps."""
        s = self._settings
        return FieldOps(s.device, s.call_threads or None)

    def _set(self, solver: HeatADI, field: Array, steps: int, kept: Array) -> None:
        """Set T after this number of steps; after an interrupt keep what was before."""
        try:
            self.state.set_t(field)
            solver._count = Counter(steps)
        except BaseException:  # also after an interrupt: the state is the one of all steps or none
            self.state.set_t(kept)
            solver._count = Counter(steps - 1)
            raise

    def _replace(self, solver: HeatADI, fields: dict[str, Array], steps: int) -> None:
        """Go on from fields that lie where those of the run lie, after this number of steps."""
        is_there = isinstance(self.unsplit, DeviceUnsplit)
        take = self.state.take if is_there else self.state.set_fields
        try:
            take(fields)
            solver._count = Counter(steps)
        except BaseException:  # after an interrupt: the state is the one of all steps
            take(fields)
            solver._count = Counter(steps)
            raise
        solver._run_by = RunBy(**self.unsplit.run_by)

    def _begin_damped(self, solver: HeatADI) -> bool:
        """Make a damped first step if it is wanted; return whether it was made."""
        s, state = self._settings, self.state
        ops = self._ops
        if s.damped_start is None:
            solver._is_damped = needs_damping(self.grid, self._sides, state.t, ops)
        else:
            solver._is_damped = s.damped_start
        if not solver._is_damped:
            return False
        solver._check_accuracy(is_damped=True)
        start = perf_counter()
        if isinstance(self.unsplit, DeviceUnsplit) and solver._scheme == "implicit":
            field = self.unsplit.start(state.operands()[0])
            solver._require_converged()
            self._replace(solver, {"t": field}, solver._begun + 1)
            solver._seconds["x"] += perf_counter() - start
            return True
        kept = state.t.copy()
        if solver._scheme == "implicit":
            field = self.unsplit.start(kept)
            solver._require_converged()
        else:
            field = damped_step(self.grid, self._sides, self._source, kept, ops)
        self._set(solver, field.astype(kept.dtype), solver._begun + 1, kept)
        solver._seconds["x"] += perf_counter() - start
        return True


class RodRun(WholeRun):
    """Steps on all nodes of a rod: those of a plate of two equal lines, of which one is returned.

    Parameters as of `WholeRun`, with the settings of the plate.
    """

    @property
    def t(self) -> Array:
        return self.shown(super().t)

    def shown(self, field: NDArray[Any]) -> NDArray[Any]:
        return field[0]

    def restart(self, field: Array) -> None:
        super().restart(np.broadcast_to(field, self._settings.shape))

    def steady(
        self, time: float, limit: float, most: int
    ) -> tuple[Unsplit | UnsplitSlab, Array, tuple[float, float]]:
        solver, field, balance = super().steady(time, limit, most)
        return solver, field[0].copy(), balance


class SlabRun:
    """Steps on the nodes of this rank, with the functions of `WholeRun`.

    Parameters as of `SplitState`; `sides` are those of the whole field, by name.
    """

    def __init__(
        self,
        settings: HeatSettings,
        whole: Grid,
        sides: dict[str, Side],
        boundary: dict[str, Any],
        group: Group,
        split: Slab,
    ) -> None:
        self._settings, self._whole, self._sides = settings, whole, sides
        self.group, self._split = group, split
        self.agreed = {"split": split}
        self.slab = SplitState(settings.alternating, whole, boundary, group, split)
        self.grid = self.slab.own
        self._is_unsplit = False  # whether T is that of the last step that is not split

    def start(self, initial: Array, source: NodeData | None, given: Any, laws: Laws | None) -> None:
        assert laws is None
        self.slab.start(np.broadcast_to(initial, self.slab.own_shape), source, given)
        s, group = self._settings, self.group
        self.unsplit = unsplit_slab_for(
            s, self.slab, self._whole, self._sides, given, group, self._split
        )

    def check_steps(self) -> None:
        self.slab.check_steps()

    def shown(self, field: NDArray[Any]) -> NDArray[Any]:
        return field

    @property
    def exchange(self) -> str:
        return self.unsplit.exchange if self._is_unsplit else self.slab.exchange

    @property
    def k(self) -> Array | None:
        return self.slab.k

    @property
    def t(self) -> Array:
        return self.unsplit.t if self._is_unsplit else self.slab.t

    @property
    def most_steps(self) -> int:
        return max(_SLAB_STEPS, self.slab.most_steps)

    def gather(self) -> Array | None:
        return self.slab.gather(self.t)

    def heat(self) -> float:
        own = heat_of(self.grid, self._sides.values(), self.t)
        return float(self.group.allgather("HeatADI.heat", np.array(own)).sum())

    def is_finite(self) -> bool:
        return self.unsplit.is_finite if self._is_unsplit else self.slab.is_finite()

    def restart(self, field: Array) -> None:
        self.slab.begin(field)
        self._is_unsplit = False

    def kept(self, solver: HeatADI) -> dict[str, Any] | None:
        # The steps of a group keep T alone: whoever continues begins a new segment of the clock.
        dt = solver._clock.dt
        clock = Clock(dt)
        clock.segment = Segment(solver.time, solver.steps, dt, solver.last_dt)
        whole = self.gather()
        if whole is None:
            return None
        return {"stages": None, "clock": clock.facts(), "t": whole, "w": np.zeros_like(whole)}

    def resume(self, state: Any, steps: int) -> None:
        del steps
        self.slab.set_fields({"t": state.t})
        self._is_unsplit = False

    def steady(
        self, time: float, limit: float, most: int
    ) -> tuple[Unsplit | UnsplitSlab, Array, tuple[float, float]]:
        solver = self.unsplit.separate()
        return solver, *solver.steady(self._t_of_slab, time, limit, most)

    def advance(self, solver: HeatADI, count: int) -> bool:
        slab, first, start = self.slab, solver.steps, perf_counter()
        wanted, is_first = self._settings.damped_start, first == solver._begun
        if is_first:
            solver._is_damped = slab.needs_damping() if wanted is None else wanted
        is_damped = is_first and solver._is_damped
        solver._check_accuracy(is_damped=is_damped)
        if solver._scheme == "implicit":
            return self._step_unsplit(solver, is_damped=is_damped)
        if self._is_unsplit:
            slab.set_own(self.t)
            self._is_unsplit = False
        if is_damped:
            made, is_finite, report = 1, slab.start_damped(), None
        else:
            made, is_finite, report = slab.step(first, first + count)
        solver._count = Counter(first + made)
        if report is None:
            solver._run_by = RunBy("slabs", self._settings.call_threads)
        else:
            solver._note(report)
            start += sum(report["seconds"].values())
        solver._seconds["end"] += perf_counter() - start
        return is_finite

    def _step_unsplit(self, solver: HeatADI, *, is_damped: bool) -> bool:
        """Make one step that is not split along the axes."""
        unsplit, first, start = self.unsplit, solver.steps, perf_counter()
        own = self._t_of_slab
        if is_damped:
            unsplit.start(own, solver.dt)
        else:
            fresh, follows = solver._is_fresh, solver._follows_start
            unsplit.step(own, first, solver.dt, is_fresh=fresh, follows_start=follows)
        solver._require_converged()
        unsplit.take()
        if not self._is_unsplit:
            self._is_unsplit = True
            self.slab.release()
        solver._count = Counter(first + 1)
        solver._run_by = RunBy(**unsplit.run_by)
        solver._seconds["x"] += perf_counter() - start
        return unsplit.is_finite

    @property
    def _t_of_slab(self) -> Array | None:
        """T of this rank; None if `unsplit` has it."""
        return None if self._is_unsplit else self.slab.t


def run_of(
    settings: HeatSettings,
    grid: Grid,
    sides: dict[str, Side],
    boundary: dict[str, Any],
    group: Group | None,
    split: Slab | None,
) -> WholeRun | SlabRun:
    """Return the run of this process: of all nodes without a group."""
    if group is None and split is None:
        kind = WholeRun if grid.named == grid.axes else RodRun
        return kind(settings.plate, grid, sides)
    if not grid.has_kernels:
        raise ValueError(
            "HeatADI: with a group heat_capacity must be a number, and coordinates evenly spaced: "
            "leave out group and split, or give these"
        )
    if grid.named < grid.axes:
        raise ValueError(
            "HeatADI: the nodes of a rod cannot be split over the ranks of a group: leave out "
            "group and split, each rank steps the whole rod"
        )
    return SlabRun(settings, grid, sides, boundary, *checked_group(group, split))
