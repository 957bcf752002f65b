"""Operands on the device, and times measured by its events."""

import time
from collections.abc import Callable
from importlib import import_module
from statistics import median
from typing import Any

# Solves of one batch in the cache in one graph, and replays of the graph.
IN_GRAPH, REPLAYS = 20, 15
# Bytes of the copy: many times the size of the cache, and so long that the host stays ahead of the
# device.
COPY_BYTES = 2**30


def require_cupy() -> Any:
    """Return CuPy, or raise ImportError with the command that installs it."""
    try:
        return import_module("cupy")
    except ImportError as error:
        raise ImportError(f"the benchmark of the GPU needs CuPy: {error}") from None


class Clock:
    """Times work on the current stream, after a copy that replaces the contents of the cache.

    The copies measure the current bandwidth. The host enqueues the work while the device still
    executes the copies, so that no host time is counted.

    Parameters
    ----------
    copy_bytes : int
        Bytes read by a copy; the same number is written.
    """

    def __init__(self, copy_bytes: int = COPY_BYTES) -> None:
        self._cupy = cupy = require_cupy()
        self._source = cupy.ones(copy_bytes, "u1")
        self._target = cupy.empty_like(self._source)
        self.samples: list[float] = []
        self.floors_and_times(_nothing, 1.0, 3)
        self.samples.clear()

    def floors_and_times(
        self,
        work: Callable[[], object],
        size: float,
        runs: int,
        before: Callable[[], object] | None = None,
    ) -> list[tuple[float, float]]:
        """Time `work` and the copies around it.

        Parameters
        ----------
        work : callable
            Enqueues the work on the current stream.
        size : float
            Bytes that the work has to move.
        runs : int
            Number of runs.
        before : callable, optional
            Enqueued before the copy of each run; not timed.

        Returns
        -------
        list of (float, float)
            For each run, the seconds in which the copies around it move `size` bytes, and the
            seconds of the work.
        """
        cupy = self._cupy
        marks = [[cupy.cuda.Event() for _ in range(3)] for _ in range(runs + 1)]
        for k, (start, middle, end) in enumerate(marks):
            if before is not None:
                before()
            start.record()
            self._target.data.copy_from_device_async(
                self._source.data, self._source.nbytes, cupy.cuda.get_current_stream()
            )
            middle.record()
            if k < runs:
                work()
            end.record()
        marks[-1][-1].synchronize()
        copies = [
            _seconds(cupy, start, middle) / (2 * self._source.nbytes) for start, middle, _ in marks
        ]
        self.samples += [1 / copy for copy in copies]
        return [
            (size * (copies[k] + copies[k + 1]) / 2, _seconds(cupy, *marks[k][1:]))
            for k in range(runs)
        ]

    def in_cache(self, work: Callable[[], object]) -> float:
        """Return the seconds of `work`, repeated in one graph."""
        stream = self._cupy.cuda.get_current_stream()
        stream.begin_capture()
        try:
            for _ in range(IN_GRAPH):
                work()
        finally:
            graph = stream.end_capture()
        return self._replayed(lambda: graph.launch(stream), IN_GRAPH)

    def back_to_back(self, work: Callable[[], object]) -> float:
        """Return the seconds of `work`, enqueued many times, with operands in the cache."""

        def several() -> None:
            for _ in range(IN_GRAPH):
                work()

        return self._replayed(several, IN_GRAPH)

    def calls(self, work: Callable[[], object]) -> float:
        """Return the seconds of one call of `work` on the host.

        Consecutive calls are timed until the device has finished the last one. The time is that of
        the host or that of the device, whichever is longer.
        """
        stream = self._cupy.cuda.get_current_stream()
        work()
        times = []
        for _ in range(REPLAYS):
            stream.synchronize()
            start = time.perf_counter()
            for _ in range(IN_GRAPH):
                work()
            stream.synchronize()
            times.append((time.perf_counter() - start) / IN_GRAPH)
        return median(times)

    def _replayed(self, work: Callable[[], object], count: int) -> float:
        cupy = self._cupy
        work()
        times = []
        for _ in range(REPLAYS):
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            start.record()
            work()
            end.record()
            end.synchronize()
            times.append(_seconds(cupy, start, end) / count)
        return median(times)

    def once(self, work: Callable[[], object]) -> float:
        """Return the seconds of one run of `work`, from which the number of runs follows."""
        ((_, seconds),) = self.floors_and_times(work, 0.0, 1)
        return seconds


def device_bandwidth() -> float:
    """Return the bytes read and written per second by a copy of 1 GiB on the device."""
    runs = Clock().floors_and_times(_nothing, 1.0, 5)
    return 1.0 / median(floor for floor, _ in runs)


def _nothing() -> None:
    """Enqueue nothing."""


def _seconds(cupy: Any, start: Any, end: Any) -> float:
    return 1e-3 * float(cupy.cuda.get_elapsed_time(start, end))
