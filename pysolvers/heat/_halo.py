r"""Steps of a slab by the kernels, with a halo that is deep enough to make several of them.

The nodes of a rank and its halo end in insulated sides, and the kernels step them like a whole
field. A wrong side changes the nodes next to it by about the size of the data, and others less:
with r = k dt/h^2 along the cut axis, a step multiplies a perturbation by (1 - a)/(1 + a), where a
is the operator -dt/2 d k d of the axis. Let e^{-x d} be the weight of a node in the distance d from
the side, and s = r (cosh x - 1) < 1. In the weighted norm a is at least -s (Combes and Thomas), so
that a step amplifies the perturbation at most by (1 + s)/(1 - s), and j steps leave at the nodes of
the rank, behind a halo of depth d, at most

    j ((1 + s)/(1 - s))^j e^{-x d} / (1 - s)

of the size of the data. The depth is the smallest d for which this is below the rounding unit, for
the best x. For k dt/h^2 from 0.1 to 8 and 4 to 32 steps, the change of Peaceman and Rachford's
steps along one axis is then below 0.001 of the rounding unit. Operators along the other
axes have the same bound or a smaller one, since they do not couple nodes at different distances.
After j steps the halo is exchanged: that of T for Douglas and Gunn's scheme, and that of w for
Peaceman and Rachford's.

The fewer steps are left, the less of the halo is needed: along the first axis of the field its
outer nodes are left out, in stages. What is wrong in the nodes that are left then has the bound
above for all steps, and each new side the bound for the steps that are left; these bounds are
added.

Operations and words per node and step: those of the kernels, times 1 + 2 d/m for m nodes of the
rank along the cut axis, 1 + d/m with one neighbour, d the mean of the stages.

Source: J. M. Combes and L. Thomas, Asymptotic behaviour of eigenfunctions for multiparticle
Schroedinger operators, Commun. Math. Phys. 34 (1973) 251-270 (the weighted norm).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._solver.counter import Counter
from ..distributed import Group
from ..distributed._halo import HaloFace
from ..distributed._halo_run import HaloRun, cheapest, cost_of_exchange, negligible
from ._state import HeatState

Array = NDArray[Any]

OPERATION = "HeatADI"


class Costs(NamedTuple):
    """Costs, in steps of the nodes of a rank or in nodes that a step advances meanwhile.

    Attributes
    ----------
    call : mapping
        Steps, by scheme: of a call of the kernels and an exchange.
    cut : mapping
        Steps, by scheme: of a call of the kernels for one step with cut lines.
    change : mapping
        Steps, by scheme: of changing the field that the next step depends on at all nodes.
    pace : mapping
        By scheme: the time of a step, in those of Peaceman and Rachford's, for which the numbers
        of nodes below are.
    message : int
        Nodes: of the time of an exchange, however deep the halo is.
    node : float
        Nodes: of the time in which one node of the halo travels.
    ends : int
        Nodes: of the time of an exchange of the ends of cut lines by Douglas and Gunn's scheme.
    stage : int
        Nodes: of the time of a further call of the kernels without an exchange.
    most : int
        Largest number of steps between two exchanges.
    """

    call: Mapping[str, float]
    cut: Mapping[str, float]
    change: Mapping[str, float]
    pace: Mapping[str, float]
    message: int
    node: float
    ends: int
    stage: int
    most: int


# By the link of the halo. Those of the CPU are measured. Those of devices are estimates: of words
# moved per node by a call, for an H200, which advances 150 nodes of float64 per ns, with 0.2 ms for
# calls and messages, 200 GB/s between devices and 2 GB/s through the memory of the host. NCCL took
# 20 us more for short messages, and had 156 GB/s for long ones, between two H100 of one host by
# NVLink; between hosts the latency and the bandwidth of the network are not known.
_OF_DEVICE = (
    {"peaceman-rachford": 0.5, "douglas-gunn": 0.15},
    {"peaceman-rachford": 0.5, "douglas-gunn": 0.02},
    {"peaceman-rachford": 0.75, "douglas-gunn": 0.4},
    {"peaceman-rachford": 1.0, "douglas-gunn": 2.5},
)
_OF_CALLS = 30_000_000  # nodes in 0.2 ms
_OF_STAGE = 6_000_000  # nodes in 0.04 ms
_OF_ENDS = 15_000_000  # nodes in 0.1 ms
COSTS = {
    "cpu": Costs(
        {"peaceman-rachford": 0.6, "douglas-gunn": 0.15},
        {"peaceman-rachford": 0.6, "douglas-gunn": 0.15},
        {"peaceman-rachford": 0.4, "douglas-gunn": 0.35},
        {"peaceman-rachford": 1.0, "douglas-gunn": 1.0},
        60_000,
        0,
        60_000,
        60_000,
        32,
    ),
    "host": Costs(*_OF_DEVICE, _OF_CALLS, 600, _OF_CALLS, _OF_STAGE, 128),
    "nccl": Costs(*_OF_DEVICE, _OF_CALLS + 3_000_000, 8, _OF_CALLS, _OF_STAGE, 128),
    "peers": Costs(*_OF_DEVICE, _OF_CALLS, 6, _OF_ENDS, _OF_STAGE, 128),
}
_CUT_NODES = 2  # of each line that travel in a step with cut lines
_STAGES = (1, 2, 4, 8)  # numbers of stages that are tried


class Stage(NamedTuple):
    """How many steps are left when a stage begins, and the depth of the halo that it needs."""

    left: int
    depth: int


class Plan(NamedTuple):
    """How steps with a halo are made.

    Attributes
    ----------
    steps : int
        Steps between two exchanges; 0 if the lines are cut and corrected in each step.
    depth : int
        Nodes of each neighbour along the cut axis.
    cost : float
        Cost of a step, in steps of one process.
    stages : sequence of Stage
        From the first one on.
    """

    steps: int
    depth: int
    cost: float
    stages: Sequence[Stage] = ()

    @classmethod
    def of_cut_lines(cls, cost: float) -> "Plan":
        """Return the plan of steps whose lines are cut."""
        return cls(0, 1, cost)

    @property
    def has_cut_lines(self) -> bool:
        """Whether the lines are cut: there is no halo for further steps."""
        return self.steps == 0

    @property
    def mean_depth(self) -> float:
        """Depth of the halo in a step, on average."""
        ends = [stage.left for stage in self.stages[1:]] + [0]
        pairs = zip(self.stages, ends, strict=True)
        return sum(stage.depth * (stage.left - end) for stage, end in pairs) / self.steps


def depth_for(ratio: float, steps: int, dtype: str) -> int:
    """Return how deep a halo a number of steps between two exchanges needs."""
    s = np.linspace(0.01, 0.99, 99)
    x = np.arccosh(1 + s / ratio)
    growth, small = np.log((1 + s) / (1 - s)), float(np.finfo(dtype).eps)
    return int(np.ceil(((steps * growth + np.log(steps / small / (1 - s))) / x).min()))


def plan_halo(
    ratio: float,
    nodes: int,
    lines: int,
    scheme: str,
    dtype: str,
    costs: Costs = COSTS["cpu"],
    *,
    cuts: int = 2,
    shrinks: bool = False,
) -> Plan | None:
    """Return the cheapest plan, or None if the halo of every plan is deeper than the nodes.

    Parameters
    ----------
    ratio : float
        Largest k dt/h^2 along the cut axis.
    nodes : int
        Smallest number of nodes of a rank along this axis.
    lines : int
        Number of lines along it.
    scheme, dtype : str
        As in `HeatADI`.
    costs : Costs, optional
        Those of the CPU by default.
    cuts : {1, 2}, optional
        How many neighbours a rank has at most.
    shrinks : bool, optional
        Whether the first axis of the field is cut. Only Douglas and Gunn's halo shrinks: a call
        of Peaceman and Rachford's kernels moves words that the next one does not need.
    """
    pace = costs.pace[scheme]
    numbers = _STAGES if shrinks and scheme == "douglas-gunn" else _STAGES[:1]

    def plan_for(steps: int) -> Plan | None:
        """Return the cheapest plan of so many steps an exchange; None: too deep a halo."""
        depth = depth_for(ratio, steps, dtype)
        if depth > nodes or nodes + depth <= 2:
            return None
        message, node = costs.message / pace, costs.node / pace
        exchange = cost_of_exchange(message, node, depth, nodes, lines)
        once = costs.call[scheme] + exchange
        plans = []
        for number in numbers:
            lefts = [steps - k * steps // number for k in range(min(number, steps))]
            stages = [Stage(left, depth_for(ratio, left, dtype)) for left in lefts]
            plan = Plan(steps, depth, 0.0, stages)
            calls = once + (len(stages) - 1) * costs.stage / pace / (nodes * lines)
            cost = 1 + cuts * plan.mean_depth / nodes + calls / steps
            plans.append(plan._replace(cost=cost))
        return min(plans, key=lambda plan: plan.cost)

    return cheapest([1 << k for k in range(costs.most.bit_length())], plan_for)


def cost_of_cuts(
    ratio: float, nodes: int, lines: int, scheme: str, dtype: str, costs: Costs = COSTS["cpu"]
) -> float:
    """Return the cost of a step with cut lines (_cut_lines.py), as of a plan."""
    decay = np.log((1 + ratio + np.sqrt(1 + 2 * ratio)) / ratio)
    reach = -np.log(negligible(dtype)) / decay
    change = costs.change[scheme] * min(1.0, reach / nodes)
    if scheme == "douglas-gunn":
        message, node = costs.ends, costs.node
    else:  # whose ends pass through the host
        message, node = costs.message, max(costs.node, COSTS["host"].node * (costs.node > 0))
    pace = costs.pace[scheme]
    exchange = cost_of_exchange(message / pace, node / pace, _CUT_NODES, nodes, lines)
    return float(1 + costs.cut[scheme] + change + exchange)


class HeatHalo(HaloRun):
    """Steps on the nodes of a rank and of its neighbours; made by all ranks together.

    Parameters
    ----------
    group : Group
        The ranks.
    state : HeatState
        The nodes, the halo included, at the time of the next step.
    faces : sequence of HaloFace
        The halo, of T and w.
    plan : Plan
        Steps between two exchanges, and stages.
    exchanged : {'t', 'w'}
        The field that the next step depends on.
    cuts : (bool, bool), optional
        Whether there is a halo before the nodes of the rank, and after them.
    """

    def __init__(
        self,
        group: Group,
        state: HeatState,
        faces: Sequence[HaloFace],
        plan: Plan,
        exchanged: str,
        cuts: tuple[bool, bool] = (False, False),
    ) -> None:
        super().__init__(group, OPERATION, plan.steps, (exchanged,))
        self._state, self._plan, self._exchanged, self._cuts = state, plan, exchanged, cuts
        self.connect(state.store, faces)
        self._is_fresh = True
        # Sides whose data change with time can be those of some ranks only.
        facts = np.array([state.most_steps, -int(state.varies)])
        self._most, varies = group.allgather(OPERATION, facts).min(axis=0).tolist()
        #: Whether the ranks agree before the steps of a call.
        self._agrees = varies < 0  # functions of the caller can raise
        #: Steps after which T is measured at the latest, as by one process, and those since then.
        self._longest, self._unmeasured = self._most, 0

    @property
    def most_steps(self) -> int:
        """Largest number of steps in a call of the kernels."""
        return min(self.steps, self._most)

    @property
    def t(self) -> Array:
        """T at all nodes, the halo included."""
        self._apply_pending()
        return self._state.t

    def _apply_pending(self) -> None:
        """Make T that of all steps so far."""

    def begin(self) -> None:
        """Go on from T at the nodes of the ranks; collective."""
        self._apply_pending()
        self.refresh("t")
        self._is_fresh = True

    def step(self, first: int, end: int) -> tuple[int, float, dict[str, Any]]:
        """Make some of the steps from `first` up to `end`; collective.

        Returns their number, the largest magnitude of T on all ranks, which is not finite if T is
        not, and the report of the backend. T is measured at `end`, and not in each call before:
        where it is not, 0 is returned.
        """
        state = self._state
        count = self.begin_steps(min(end - first, self._most))
        if self._agrees:
            with self._group.agreement(OPERATION) as agreed:
                state.prepare(first, count)
                agreed.same = {"steps": (first, count)}
        else:
            state.prepare(first, count)
        self._unmeasured += count
        measures = first + count == end or self._unmeasured + self.most_steps > self._longest
        report = self._make(count, measures=measures)
        self._is_fresh = False
        if measures:
            self._unmeasured = 0
        found = self.end_steps(state.dt, first, count, lambda: state.largest if measures else 0.0)
        return count, float(found.max()), report

    def _make(self, count: int, *, measures: bool) -> dict[str, Any]:
        """Make steps with the kernels; return their report."""
        report: dict[str, Any] | None = None
        with self.kernels():
            for first, end, lost in self._stages(count):
                found = self._state.step(
                    end - first,
                    is_fresh=self._is_fresh and first == 0,
                    made=Counter().begin(),
                    first=first,
                    lost=lost,
                    measures=measures and end == count,
                )
                report = joined(report, found)
        assert report is not None
        return report

    def _stages(self, count: int) -> Iterator[tuple[int, int, tuple[int, int]]]:
        """Yield the first step and the end of each stage of a call, and the nodes left out."""
        done = self.steps - self._left
        lefts = [stage.left for stage in self._plan.stages]
        for stage, after in zip(self._plan.stages, [*lefts[1:], 0], strict=True):
            first = max(self.steps - stage.left - done, 0)
            end = min(self.steps - after - done, count)
            if first < end:
                lost = self._plan.depth - stage.depth
                yield first, end, (lost * self._cuts[0], lost * self._cuts[1])


def joined(one: dict[str, Any] | None, other: dict[str, Any]) -> dict[str, Any]:
    """Return the report of two calls of the kernels; `one` is None before the first one."""
    if one is None:
        return other
    seconds = {name: value + other["seconds"][name] for name, value in one["seconds"].items()}
    return other | {"seconds": seconds}
