"""Graphs of work that is enqueued often for the same arrays: a launch instead of many calls.

A solve of a small field by transforms takes longer on the host than on the device: with five
kernels 130 us of 130 (64^2 to 512^2 cells, H200). A graph of them is one call.
"""

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import Any

from .._errors import BackendError
from .device import Device

_MOST = 8  # graphs that are kept, each with the memory of its work
_MOST_BYTES = 1 << 29  # of that memory, but for two graphs
_MOST_REFUSED = 4  # captures that CUDA refuses before there are no more


class Repeats:
    """Graphs by the arrays of the work, which is captured when it comes for the second time.

    A graph has memory of its own, so that several can run at once; one does not overtake itself.

    Parameters
    ----------
    device : Device
        Where the work runs.
    allocate : callable
        Called with a Device; returns lasting memory for one graph.
    alone : callable
        Returns a context in which no other thread enqueues the work.
    nbytes : int
        Size of the memory of a graph.
    """

    def __init__(
        self,
        device: Device,
        allocate: Callable[[Device], Any],
        alone: Callable[[], AbstractContextManager[None]],
        nbytes: int,
    ) -> None:
        self._device = Device(device.backend, device.ordinal, device.operation)
        self._allocate, self._alone = allocate, alone
        self._most = max(2, min(_MOST, _MOST_BYTES // nbytes))
        self._refused = 0
        self._last: Hashable = None
        self._graphs: dict[Hashable, tuple[Any, Any]] = {}

    def launch(self, key: Hashable, device: Device) -> bool:
        """Enqueue the work of a key if there is a graph of it; return whether there is."""
        found = self._graphs.get(key)
        if found is None:
            return False
        device.launch(found[0])
        return True

    def notice(self, key: Hashable, work: Callable[[Device, Any], None]) -> None:
        """Capture work that was enqueued the last two times.

        Parameters
        ----------
        key : hashable
            All that the work depends on: addresses, shapes, strides and dtypes.
        work : callable
            Called with a Device and the memory; enqueues the work.
        """
        if key != self._last or self._refused == _MOST_REFUSED:
            self._last = key
            return
        memory = self._allocate(self._device)
        try:
            with self._alone():
                graph = self._device.captured(lambda own: work(own, memory))
        except (BackendError, RuntimeError):
            # CUDA can refuse a capture while other threads and libraries use the device. The work
            # itself was enqueued before this capture, and the next call enqueues it, too.
            self._last = None
            self._refused += 1
            return
        if len(self._graphs) >= self._most:
            self._graphs.pop(next(iter(self._graphs)), None)
        self._graphs[key] = graph, memory
