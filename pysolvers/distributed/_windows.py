"""Windows: nodes of a rank and layers of its neighbours, for several steps between two exchanges.

The nodes at the ends of a window are wrong after a step, and more of them after each further step.
How many are wrong, and so how many layers a number of steps needs, depends on the solver. The cost
of a step is that of the kernels at all nodes of the window, and its part of an exchange.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

__all__ = ["cheapest", "cost_of_exchange", "negligible"]

_BELOW = 1 / 64  # of a rounding error


class _Priced(Protocol):
    @property
    def cost(self) -> float: ...


P = TypeVar("P", bound=_Priced)


def negligible(dtype: Any) -> float:
    """Return what the ends of a window may change, relative to the size of the data."""
    return float(np.finfo(dtype).eps) * _BELOW


def cost_of_exchange(message: float, layer: float, layers: int, nodes: int, lines: int) -> float:
    """Return the cost of an exchange, in steps of the nodes of a rank.

    Parameters
    ----------
    message : float
        Nodes that a step advances in the time of an exchange, however few layers there are.
    layer : float
        Nodes that a step advances in the time in which one node of a layer travels.
    layers : int
        Number of layers of a neighbour.
    nodes : int
        Number of nodes of a rank along the cut axis.
    lines : int
        Number of lines along this axis.
    """
    return (message / lines + layer * layers) / nodes


def cheapest(numbers: Sequence[int], plan_for: Callable[[int], P | None]) -> P | None:
    """Return the cheapest of the plans for some numbers of steps between two exchanges, or None.

    Parameters
    ----------
    numbers : sequence of int
        The numbers of steps, ascending.
    plan_for : callable
        Returns the plan for a number of steps. None means that this number and larger ones have
        none, as more steps need more layers.
    """

    def plans() -> Iterator[P]:
        for steps in numbers:
            plan = plan_for(steps)
            if plan is None:
                return
            yield plan

    return min(plans(), key=lambda plan: plan.cost, default=None)
