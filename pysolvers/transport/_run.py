"""The steps of GCEIDD: on the whole grid, or on slabs, of which each rank of a group has one.

On slabs, where what a step depends on is local along the cut axis, each rank has a halo (_halo.py).
Otherwise the ranks exchange rows for columns (_transposed.py).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._boundary import PERIODIC
from .._checks import require
from .._runtime.backends import parse_device
from .._solver.clock import Segment
from .._solver.counter import Counter
from ..distributed import Group, Slab
from ..distributed._links import link_name
from ..distributed._systems import checked_group
from ._halo import OPERATION, TransportHalo, is_inside
from ._plan import Coefficients, Plan, plan_halo
from ._range import Range
from ._settings import TransportSettings
from ._state import TransportState
from ._transposed import Transposed
from .problem import ConvectionDiffusion, GridData

Array = NDArray[Any]

_LEAST = 4  # nodes of a part along each axis
_SAME_DT = 1 + 1e-12  # steps whose lengths differ by less than this factor are alike


class WholeRun(TransportState):
    """The solution on all nodes.

    Parameters
    ----------
    problem : ConvectionDiffusion
        The problem.
    settings : TransportSettings
        The method.
    """

    #: The ranks.
    group: Group | None = None
    #: Where the nodes are, for messages.
    where = ""
    #: How the nodes travel from rank to rank: as `exchange` of a result.
    exchange = "none"
    #: What must be the same on all ranks.
    agreed: Mapping[str, Any] = {}
    #: Seconds of the last call of `advance` apart from those of its reports, by name.
    further_seconds: Mapping[str, float] = {}

    def __init__(self, problem: ConvectionDiffusion, settings: TransportSettings) -> None:
        #: The problem at the nodes.
        self.data = problem._grid_data(settings.shape, time=settings.start_time)
        super().__init__(self.data, settings)
        #: Nodes, along y and x.
        self.part = tuple(slice(0, n) for n in settings.shape)
        #: The reports of the last call of `advance`.
        self.reports: tuple[dict[str, Any], ...] = ()

    def connect(self) -> None:
        """Find how the nodes travel from rank to rank; collective."""

    def over_ranks(self, values: Array) -> Array:
        """Return the largest of the values of all ranks, NaN if one is; collective."""
        return values

    def is_inside(self, limits: tuple[float, float]) -> bool:
        """Return whether u is within limits on all ranks; collective."""
        return bool(limits[0] <= self.u.min() and self.u.max() <= limits[1])

    def gather(self) -> Array | None:
        """Return the whole solution on rank 0, None on the others; collective."""
        return self.u.copy()

    def restart(self, own: Array) -> None:
        """Replace the solution at the nodes of this process, and the half levels; collective."""
        self.set_fields(dict.fromkeys(self._names, own))

    def advance(
        self, segment: Segment, first: int, end: int, allowed: Range, threads: int, count: Counter
    ) -> bool:
        """Make some of the steps from `first` up to `end`; collective.

        Return whether u is within the limits on all ranks after the last one.
        """
        steps = min(end - first, self.most_steps)
        self.prepare([segment.at(first + k + 1) for k in range(steps)])
        limits = allowed.begin(first, steps, segment.dt, self.rows)
        report = self.step(segment.dt, limits, steps, threads, count.begin())
        self.reports = (report,)
        return not report["grown"]


class SplitRun:
    """The solution on the nodes of this rank, with the functions of `WholeRun`.

    Parameters
    ----------
    problem : ConvectionDiffusion
        The problem.
    settings : TransportSettings
        The method, of the whole grid.
    group : Group
        The ranks.
    split : Slab
        The axis along which the solution is split.
    """

    where = " on this rank"

    def __init__(
        self, problem: ConvectionDiffusion, settings: TransportSettings, group: Group, split: Slab
    ) -> None:
        require(
            settings.kernels == "fused" or parse_device(settings.device)[0] == "cpu",
            "with a group on a device kernels must be 'fused'",
            settings.kernels,
        )
        least = _LEAST * group.size
        require(
            min(settings.shape) >= least,
            f"shape must be at least {least} along both axes, {_LEAST} nodes for each of "
            f"{group.size} ranks",
            settings.shape,
        )
        self.group, self.axis = group, split.of(2)
        self.agreed = {"split": split}
        self._problem, self._settings = problem, settings
        self._parts = [
            split.part(settings.shape[self.axis], rank, group.size) for rank in range(group.size)
        ]
        own, every = self._parts[group.rank], slice(0, settings.shape[1 - self.axis])
        #: Nodes of this rank, along y and x.
        self.part = (own, every) if self.axis == 0 else (every, own)
        #: The problem at these nodes.
        self.data = problem._grid_data(settings.shape, self.part, time=settings.start_time)
        self.further_seconds: dict[str, float] = {}
        self._made_for = 0.0  # length of the steps that the exchange is for
        self._segment: Segment | None = None  # of the last steps
        self._run: TransportHalo | Transposed

    def connect(self) -> None:
        """Find how the nodes travel from rank to rank, and make the fields; collective."""
        self._made_for = self._settings.dt
        self._run = self._made(self._plan(self._made_for))

    def _made(self, plan: Plan | None) -> "TransportHalo | Transposed":
        """Return the fields of this rank; collective."""
        group, s = self.group, self._settings
        with group.agreement(OPERATION) as agreed:  # a rank can have too little memory
            found: TransportHalo | Transposed
            if plan is None:
                found = Transposed(self._problem, s, group, self.axis)
            else:
                found = TransportHalo(self._problem, s, group, self.axis, plan)
            agreed.same = {"steps between two exchanges": plan.steps if plan else 0}
        found.start()
        return found

    def _plan(self, dt: float) -> Plan | None:
        """Return the held grids of all ranks, or None if there are none; collective."""
        group, s, data, axis = self.group, self._settings, self.data, self.axis
        link = "none" if group.size == 1 else link_name(group, OPERATION, s.device)
        varies = any(b.varies for b in data.velocity) or any(a.varies for a in data.diffusion)
        with group.agreement(OPERATION) as agreed:  # functions of the caller, which can raise
            agreed.own = None if varies else [Extremes.of(data, k, axis) for k in (0, 1)]
            agreed.same = {"whether velocity or diffusion change with time": varies}
        if varies:  # what a step reads can be farther away later
            return None
        scaled = []
        for number, h in enumerate(data.spacing):
            extremes = Extremes.joined([own[number] for own in agreed.found])
            b, least = extremes.velocity, extremes.least_diffusion
            if least > 0 and s.scheme != "cfd" and s.upwind == "modified":
                least /= 1 + h * b / (2 * least)
            scaled.append(
                Coefficients(
                    b * dt / h,
                    extremes.diffusion * dt / h**2,
                    least * dt / h**2,
                    extremes.difference * dt / h,
                )
            )
        along = 1 - axis  # counted from x on
        return plan_halo(
            self._parts,
            s.shape[axis] - 1,
            s.strips[along],
            s.shape[1 - axis],
            scaled[along],
            scaled[1 - along],
            s.dtype,
            scheme=s.scheme,
            foot=s.foot,
            strips_across=s.strips[1 - along],
            link=link,
            shrinks=axis == 0,
        )

    @property
    def exchange(self) -> str:
        """How the nodes travel from rank to rank: as `exchange` of a result."""
        return self._run.exchange

    @property
    def has_halo(self) -> bool:
        """Whether the ranks exchange a halo, and not rows for columns."""
        return isinstance(self._run, TransportHalo)

    @property
    def most_steps(self) -> int:
        """Largest number of steps in a call of `advance`."""
        return self._run.most_steps

    @property
    def reports(self) -> tuple[dict[str, Any], ...]:
        """The reports of the last call of `advance`."""
        return self._run.reports

    @property
    def u(self) -> Array:
        """The solution at the nodes of this rank, to be read."""
        return self._run.u

    def forget(self) -> None:
        """Replace the half levels before the solution by the solution, as at time 0."""
        self._run.forget()

    def over_ranks(self, values: Array) -> Array:
        return np.asarray(self.group.allgather(OPERATION, values).max(axis=0))

    def is_inside(self, limits: tuple[float, float]) -> bool:
        return is_inside(self.group, self.u, limits)

    def gather(self) -> Array | None:
        return self.group.gather(OPERATION, self.u, self.axis)

    def fields(self) -> dict[str, Array] | None:
        """Return all that the next step depends on, on rank 0, None on the others; collective."""
        whole = {
            name: self.group.gather(OPERATION, part, axis)
            for name, (part, axis) in self._run.parts().items()
        }
        return {name: values for name, values in whole.items() if values is not None} or None

    def set_fields(self, fields: dict[str, Array]) -> None:
        """Replace what `fields` returned."""
        self._run.set(fields)

    def restart(self, own: Array) -> None:
        self._run.restart(own)

    def advance(
        self, segment: Segment, first: int, end: int, allowed: Range, threads: int, count: Counter
    ) -> bool:
        start = perf_counter()
        if segment is not self._segment:
            self._run.agree(segment, first)
            ratio = segment.dt / self._made_for
            if ratio > _SAME_DT if self.has_halo else ratio * _SAME_DT < 1:
                self._make_anew(segment.dt)
            self._segment = segment
        made, is_inside = self._run.advance(segment, first, end, allowed, threads)
        count.begin()[:] = made
        busy = sum(sum(report[axis].values()) for report in self.reports for axis in ("x", "y"))
        self.further_seconds = {"exchange": perf_counter() - start - busy}
        return is_inside

    def _make_anew(self, dt: float) -> None:
        """Make held grids for longer steps, or again for shorter ones, if possible; collective.

        Without held grids, the ranks exchange rows for columns.
        """
        before, had_halo = self._run, self.has_halo
        plan = self._plan(dt)
        if plan is None and not had_halo:
            return
        run = self._made(plan)
        if had_halo and isinstance(run, TransportHalo):
            run.set_own({name: part for name, (part, _) in before.parts().items()})
        else:
            run.set(self.group.objects(OPERATION, self.fields())[0])
        if before.forgets:
            run.forget()
        self._run, self._made_for = run, dt


Run = WholeRun | SplitRun


def run_of(
    problem: ConvectionDiffusion,
    settings: TransportSettings,
    group: Group | None,
    split: Slab | None,
) -> Run:
    """Return the steps of this process.

    Parameters
    ----------
    problem : ConvectionDiffusion
        The problem.
    settings : TransportSettings
        The method, of the whole grid.
    group : Group or None
        The ranks; None is one process.
    split : Slab or None
        The axis along which the solution is split.
    """
    if group is None and split is None:
        return WholeRun(problem, settings)
    require(
        PERIODIC not in problem.boundary.values(),
        "GCEIDD: with a group no axis must be periodic: use one process, or AdvectionDiffusion",
        PERIODIC,
    )
    return SplitRun(problem, settings, *checked_group(group, split))


class Extremes(NamedTuple):
    """Extremes of the coefficients along an axis.

    Attributes
    ----------
    velocity : float
        Largest abs(b).
    diffusion, least_diffusion : float
        Largest and smallest a.
    difference : float
        Largest difference of b of neighbours along the axis.
    ends : tuple of array
        b at the first nodes and at the last ones along the cut axis of the solution, if this is
        the axis of the coefficients; empty otherwise.
    """

    velocity: float
    diffusion: float
    least_diffusion: float
    difference: float
    ends: tuple[Array, ...]

    @classmethod
    def of(cls, data: GridData, number: int, cut: int) -> "Extremes":
        """Return those of the nodes of a rank, along an axis counted from x on."""
        b, a = data.velocity[number].at(0.0), data.diffusion[number].at(0.0)
        axis = 1 - number  # of the solution
        ends = (np.take(b, 0, axis), np.take(b, -1, axis)) if axis == cut else ()
        difference = float(np.abs(np.diff(b, axis=axis)).max(initial=0.0))
        return cls(float(np.abs(b).max()), float(a.max()), float(a.min()), difference, ends)

    @classmethod
    def joined(cls, ranks: "Sequence[Extremes]") -> "Extremes":
        """Return those of the nodes of all ranks."""
        between = [
            float(np.abs(after.ends[0] - before.ends[1]).max())
            for before, after in pairwise(ranks)
            if after.ends
        ]
        return cls(
            max(one.velocity for one in ranks),
            max(one.diffusion for one in ranks),
            min(one.least_diffusion for one in ranks),
            max([*between, *(one.difference for one in ranks)]),
            (),
        )
