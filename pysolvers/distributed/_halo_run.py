"""Steps on the nodes of a rank and a halo, which make several steps between two exchanges.

The nodes at the ends of the halo are wrong after a step, and more of them after each further step.
How many are wrong, and so how deep a halo a number of steps needs, depends on the scheme: this is
its reach. The cost of a step is that of the kernels at all nodes held, and its part of an exchange.

The loop is the same for all schemes. Where the call of the kernels uses up the halo, the next one
is posted behind it, so that the barrier in which the ranks compare their steps is that of the
exchange, too.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._errors import DistributedError
from .._runtime.fields import DeviceFields, Fields
from ._group import AgreedNumbers, Agreement, Group
from ._halo import HaloFace, halo_of

Array = NDArray[Any]

_FACTS = 4  # numbers that the ranks compare after the steps of a call
_BELOW = 1 / 64  # of a rounding error


class HaloRun:
    """The steps of this rank; a subclass, or the caller, has the scheme.

    A call of a scheme makes `count = begin_steps(most)` steps of the fields of `connect` and then
    calls `end_steps`. A group of one process, `OneProcess`, exchanges nothing.

    Parameters
    ----------
    group : Group
        The ranks.
    operation : str
        Of the caller, for messages.
    steps : int
        Number of steps between two exchanges.
    names : sequence of str
        Fields of which the next step reads the halo.
    """

    def __init__(self, group: Group, operation: str, steps: int, names: Sequence[str]) -> None:
        self._group, self._operation = group, operation
        self.steps, self._names = steps, tuple(names)
        self._left = steps  # that the halo is good for
        self._is_stale = False  # whether the halo that was posted is not that of the fields

    def connect(self, fields: Fields, faces: Sequence[HaloFace]) -> None:
        """Find how the halo travels; collective.

        Parameters
        ----------
        fields : Fields
            Where the fields lie.
        faces : sequence of HaloFace
            The halo.
        """
        self._fields = fields
        self._halo = halo_of(self._group, self._operation, fields, faces, self._names[0])

    @property
    def exchange(self) -> str:
        """How the halo travels: as `exchange` of a result."""
        return self._halo.link

    def agreement(self) -> Agreement:
        """Return a context in which this rank prepares its part of a collective call."""
        return self._group.agreement(self._operation)

    def allgather(self, value: float) -> NDArray[np.float64]:
        """Return numbers of all ranks; collective."""
        return self._group.allgather(self._operation, np.array(value, np.float64))

    def gather(self, own: Array, axis: int = 0) -> Array | None:
        """Return the parts of all ranks joined; on rank 0, None on the others. Collective."""
        return self._group.gather(self._operation, own, axis)

    def refresh(self, *names: str) -> None:
        """Exchange the halo of some fields, by default of all that are read; collective."""
        for name in names or self._names:
            self._halo.refresh(name)
        self._left, self._is_stale = self.steps, False

    @contextmanager
    def sizes_of_calls(self, count: int) -> Iterator[Iterator[int]]:
        """Return a context with the numbers of steps of calls that make `count` steps; collective.

        Between two calls the halo is exchanged: on devices that can wait for each other, without
        waiting of the host.
        """
        exchanges = -(-max(count - self._left, 0) // self.steps)
        if exchanges:
            with self._halo.in_order(exchanges * len(self._names)) as exchange:
                yield self._sizes(count, exchange)
        else:
            yield self._sizes(count, self._halo.refresh)

    def _sizes(self, count: int, exchange: Callable[[str], None]) -> Iterator[int]:
        """Yield the numbers of steps of calls, and exchange the halo where it is used up."""
        while count:
            if self._left == 0:
                for name in self._names:
                    exchange(name)
                self._left, self._is_stale = self.steps, False
            size = min(count, self._left)
            self._left -= size
            count -= size
            yield size

    @contextmanager
    def kernels(self) -> Iterator[None]:
        """Return a context of the kernels of a call, which ends before `end_steps`.

        A rank that raises in it raises on all ranks at once.
        """
        try:
            yield
        except Exception:
            with self._facts():
                raise

    def _facts(self) -> AgreedNumbers:
        """Return the context in which the ranks compare their steps."""
        return self._group._agreed_numbers(self._operation, _FACTS, np.dtype(np.float64))

    def begin_steps(self, most: int) -> int:
        """Return how many of some steps can be made in one call; collective if an exchange is due.

        Parameters
        ----------
        most : int
            Number of steps that are wanted; the same on all ranks.
        """
        if self._left == 0:
            if self._is_stale or len(self._names) > 1:
                self.refresh()
            else:
                self._halo.complete(self._names[0])
                self._left = self.steps
        return min(most, self._left)

    def end_steps(
        self, dt: float, first: int, count: int, value: Callable[[], float]
    ) -> NDArray[np.float64]:
        """Take note of steps that a call enqueued; return values of all ranks. Collective.

        Parameters
        ----------
        dt : float
            Length of the steps.
        first, count : int
            The number of steps before those of the call, and their number.
        value : callable
            Returns the value of this rank. It may wait for the device.

        Raises
        ------
        DistributedError
            If a rank made other steps.
        """
        self._left -= count
        posts = self._left == 0 and len(self._names) == 1
        if posts:
            self._halo.post(self._names[0])
        own = value()
        if isinstance(self._fields, DeviceFields):
            self._fields.wait()
        found = self.compare(dt, first, count, own)
        if posts:
            self._halo.passed()
        return found

    def compare(self, dt: float, first: int, count: int, value: float) -> NDArray[np.float64]:
        """Return values of all ranks, which make the same steps; collective.

        Parameters as of `end_steps`.
        """
        with self._facts() as compared:
            compared.mine = np.array([value, dt, first, count], np.float64)
        found = compared.numbers
        assert found is not None
        others = np.flatnonzero((found[:, 1:] != found[0, 1:]).any(axis=1))
        if others.size:
            steps = [f"{int(n)} steps of {dt:g} after step {int(at)}" for _, dt, at, n in found]
            raise DistributedError(
                f"{self._operation}: all ranks must make the same steps, but rank 0 makes "
                f"{steps[0]} and rank {others[0]} {steps[others[0]]}",
                tuple(others.tolist()),
            )
        return found[:, 0]


class _Priced(Protocol):
    """A plan with a cost, in any unit that all plans share."""

    @property
    def cost(self) -> float: ...


P = TypeVar("P", bound=_Priced)


def negligible(dtype: Any) -> float:
    """Return what the ends of a halo may change, relative to the size of the data."""
    return float(np.finfo(dtype).eps) * _BELOW


def cost_of_exchange(message: float, node: float, depth: int, nodes: int, lines: int) -> float:
    """Return the cost of an exchange, in steps of the nodes of a rank.

    Parameters
    ----------
    message : float
        Nodes that a step advances in the time of an exchange, however deep the halo is.
    node : float
        Nodes that a step advances in the time in which one node of the halo travels.
    depth : int
        Nodes of a neighbour along the cut axis.
    nodes : int
        Number of nodes of a rank along this axis.
    lines : int
        Number of lines along this axis.
    """
    return (message / lines + node * depth) / nodes


def cheapest(numbers: Sequence[int], plan_for: Callable[[int], P | None]) -> P | None:
    """Return the cheapest of the plans for some numbers of steps between two exchanges, or None.

    Parameters
    ----------
    numbers : sequence of int
        The numbers of steps, ascending.
    plan_for : callable
        Returns the plan for a number of steps. None means that this number and larger ones have
        none, as more steps need a deeper halo.
    """

    def plans() -> Iterator[P]:
        for steps in numbers:
            plan = plan_for(steps)
            if plan is None:
                return
            yield plan

    return min(plans(), key=lambda plan: plan.cost, default=None)
