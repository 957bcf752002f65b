r"""Steps of a slab by the kernels, with enough layers of the neighbours to make several of them.

A window is the nodes of a rank and some layers of its neighbours, which end in insulated sides. The
kernels step it like a whole field. A wrong side changes the nodes next to it by about the size of
the data, and others less: with r = k dt/h^2 along the cut axis, a step multiplies a perturbation by
(1 - a)/(1 + a), where a is the operator -dt/2 d k d of the axis. Let e^{-x d} be the weight of a
node in the distance d from the side, and s = r (cosh x - 1) < 1. In the weighted norm a is at least
-s (Combes and Thomas), so that a step amplifies the perturbation at most by (1 + s)/(1 - s), and j
steps leave at the nodes of the rank, behind d layers, at most

    j ((1 + s)/(1 - s))^j e^{-x d} / (1 - s)

of the size of the data. The number of layers is the smallest d for which this is below a part of
the rounding errors, for the best x. Operators along the other axes have the same bound or
a smaller one, since they do not couple nodes at different distances. After j steps the layers are
exchanged: those of T for Douglas and Gunn's scheme, and those of w for Peaceman and Rachford's.

Operations and words per node and step: those of the kernels, times 1 + 2 d/m for m nodes of the
rank along the cut axis, 1 + d/m with one neighbour.

Source: J. M. Combes and L. Thomas, Asymptotic behaviour of eigenfunctions for multiparticle
Schroedinger operators, Commun. Math. Phys. 34 (1973) 251-270 (the weighted norm).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._counter import Counter
from ..distributed import (
    Group,
    Layers,
    cheapest,
    cost_of_exchange,
    met_after_steps,
    negligible,
)
from ._state import HeatState

__all__ = [
    "COSTS",
    "OPERATION",
    "Costs",
    "Plan",
    "Window",
    "cost_of_cuts",
    "layers_for",
    "plan_window",
]

Array = NDArray[Any]

OPERATION = "HeatADI"


class Costs(NamedTuple):
    """Costs, in steps of the nodes of a rank or in nodes that a step advances meanwhile.

    Attributes
    ----------
    call : mapping
        Steps, by scheme: of a call of the kernels and an exchange.
    change : mapping
        Steps, by scheme: of changing the field that the next step depends on at all nodes.
    message : int
        Nodes: of the time of an exchange, however few layers there are.
    layer : int
        Nodes: of the time in which one node of a layer travels.
    most : int
        Largest number of steps between two exchanges.
    """

    call: Mapping[str, float]
    change: Mapping[str, float]
    message: int
    layer: int
    most: int


# By the way of the layers. Those of the CPU are measured. Those of devices are estimates: of words
# moved per node by a call, for an H200, which advances 150 nodes of float64 per ns, with 0.2 ms for
# calls and messages, 200 GB/s between devices and 2 GB/s through the memory of the host. NCCL took
# 20 us more for short messages, and had 156 GB/s for long ones, between two H100 of one host by
# NVLink; between hosts the latency and the bandwidth of the network are not known.
_OF_DEVICE = (
    {"peaceman-rachford": 0.5, "douglas-gunn": 0.15},
    {"peaceman-rachford": 0.75, "douglas-gunn": 0.4},
)
_OF_CALLS = 30_000_000  # nodes in 0.2 ms
COSTS = {
    "cpu": Costs(
        {"peaceman-rachford": 0.6, "douglas-gunn": 0.15},
        {"peaceman-rachford": 0.4, "douglas-gunn": 0.35},
        60_000,
        0,
        32,
    ),
    "host": Costs(*_OF_DEVICE, _OF_CALLS, 600, 128),
    "nccl": Costs(*_OF_DEVICE, _OF_CALLS + 3_000_000, 8, 128),
    "peers": Costs(*_OF_DEVICE, _OF_CALLS, 6, 128),
}


class Plan(NamedTuple):
    """Steps between two exchanges, layers of each neighbour, cost in steps of one process."""

    steps: int
    layers: int
    cost: float


def layers_for(ratio: float, steps: int, dtype: str) -> int:
    """Return how many layers a number of steps between two exchanges needs."""
    s = np.linspace(0.01, 0.99, 99)
    x = np.arccosh(1 + s / ratio)
    growth, small = np.log((1 + s) / (1 - s)), negligible(dtype)
    return int(np.ceil(((steps * growth + np.log(steps / small / (1 - s))) / x).min()))


def plan_window(
    ratio: float,
    nodes: int,
    lines: int,
    scheme: str,
    dtype: str,
    costs: Costs = COSTS["cpu"],
    *,
    cuts: int = 2,
) -> Plan | None:
    """Return the cheapest plan, or None if the layers of every plan are more than the nodes.

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
    """

    def plan_for(steps: int) -> Plan | None:
        layers = layers_for(ratio, steps, dtype)
        if layers > nodes or nodes + layers <= 2:
            return None
        exchange = cost_of_exchange(costs.message, costs.layer, layers, nodes, lines)
        once = costs.call[scheme] + exchange
        return Plan(steps, layers, 1 + cuts * layers / nodes + once / steps)

    return cheapest([1 << k for k in range(costs.most.bit_length())], plan_for)


def cost_of_cuts(
    ratio: float, nodes: int, lines: int, scheme: str, dtype: str, costs: Costs = COSTS["cpu"]
) -> float:
    """Return the cost of a step with cut lines (_cut.py), as of a plan."""
    decay = np.log((1 + ratio + np.sqrt(1 + 2 * ratio)) / ratio)
    reach = -np.log(negligible(dtype)) / decay
    change = costs.change[scheme] * min(1.0, reach / nodes)
    return float(1 + costs.call[scheme] + change + costs.message / (nodes * lines))


class Window:
    """The nodes of a rank and of its neighbours, and their steps; made by all ranks together.

    Parameters
    ----------
    group : Group
        The ranks.
    state : HeatState
        The nodes, those of the neighbours included, at the time of the next step.
    layers : Layers
        Those of the neighbours, in T and w.
    steps : int
        Steps between two exchanges.
    exchanged : {'t', 'w'}
        The field that the next step depends on.
    """

    def __init__(
        self, group: Group, state: HeatState, layers: Layers, steps: int, exchanged: str
    ) -> None:
        self._group, self._state, self._layers = group, state, layers
        self._steps, self._exchanged = steps, exchanged
        self._left = steps
        self._is_fresh = True
        # Sides whose data change with time can be those of some ranks only.
        facts = np.array([state.most_steps, -int(state.varies)])
        self._most, varies = group.allgather(OPERATION, facts).min(axis=0).tolist()
        self._varies = varies < 0

    @property
    def way(self) -> str:
        """How the layers travel."""
        return self._layers.way

    @property
    def most_steps(self) -> int:
        """Largest number of steps in a call of the kernels."""
        return min(self._steps, self._most)

    @property
    def t(self) -> Array:
        """T at all nodes of the window."""
        self._settle()
        return self._state.t

    def _settle(self) -> None:
        """Make T that of all steps so far."""

    def begin(self) -> None:
        """Go on from T at the nodes of the ranks; collective."""
        self._settle()
        self._layers.refresh("t")
        self._left, self._is_fresh = self._steps, True

    def step(self, first: int, end: int) -> tuple[int, float, dict[str, Any]]:
        """Make some of the steps from `first` up to `end`; collective.

        Returns their number, the largest magnitude of T on all ranks, which is not finite if T is
        not, and the report of the backend.
        """
        state, group = self._state, self._group
        if self._left == 0:
            self._layers.complete(self._exchanged)
            self._left = self._steps
        count = min(end - first, self._left, self._most)
        if self._varies:  # functions of the caller, which can raise
            with group.agreement(OPERATION) as agreed:
                state.prepare(first, count)
                agreed.same = {"steps": (first, count)}
        else:
            state.prepare(first, count)
        report = self._make(count)
        self._left, self._is_fresh = self._left - count, False
        if self._left == 0:  # the ranks meet below, so that the layers need no meeting of their own
            self._layers.post(self._exchanged)
        largest = met_after_steps(group, OPERATION, state.dt, first, count, state.largest)
        if self._left == 0:
            self._layers.met()
        return count, float(largest.max()), report

    def _make(self, count: int) -> dict[str, Any]:
        """Make steps with the kernels; return their report."""
        return self._state.step(count, is_fresh=self._is_fresh, made=Counter().begin())
