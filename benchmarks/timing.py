"""The timing of calls, on the host and on a device.

A *clock* measures the seconds of one of some consecutive calls. `samples_of` is the loop of all
benchmarks: it takes samples of several calls with one clock in random order, so that changes of the
load of the machine concern all of them.

`Copier` and `CopyClock` measure the bandwidth of copies next to the work, on a CPU and a GPU: the
reference of the benchmarks of `solve_tridiagonal`. `CopyClock` also replaces what the cache of the
device contains, and therefore has a loop of its own.
"""

import ctypes
import random
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from math import inf
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pysolvers._runtime import backends

Call = Callable[[], Any]
Clock = Callable[[Call, int], float]

LEAST_SAMPLES = 3
MOST_CALLS = 1000  # in a sample
# Solves of one batch in the cache in one graph, and replays of the graph.
IN_GRAPH, REPLAYS = 20, 15
# Bytes of the copy: many times the size of the cache, and so long that the host stays ahead of the
# device.
COPY_BYTES = 2**30


def keep_memory() -> bool:
    """Let the process keep the memory that it frees; return whether it does (glibc).

    Otherwise glibc returns the memory of large results to the system after a call or not, which
    depends on the sizes and the threads that freed memory before, and the next call pays for new
    pages: without it 7 to 62 thousand page faults and 18 to 118 of 37 to 190 ms of processor time
    in a call with gradients with JAX. Arrays of more than 32 MB are returned always if they may
    have mappings of their own, and smaller ones by arenas that are not the first one.
    """
    trim, mappings, arenas = -1, -4, -8  # M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return all([mallopt(trim, 2**31 - 1), mallopt(mappings, 0), mallopt(arenas, 1)])


def host(call: Call, count: int) -> float:
    """Measure calls by the clock of the host."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def processor(call: Call, count: int) -> float:
    """Measure calls by the processor time of all threads of this process."""
    start = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - start) / count


def waiting(wait: Callable[[Any], object], *, counted: bool = True) -> Clock:
    """Return a clock of the host for calls that return before their work is done.

    Parameters
    ----------
    wait : callable
        Waits for the work, given what the last call returned.
    counted : bool, default: True
        Whether the wait is part of the time.
    """

    def clock(call: Call, count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            last = call()
        enqueued = time.perf_counter()
        wait(last)
        return ((time.perf_counter() if counted else enqueued) - start) / count

    return clock


def device(library: str = "cupy") -> Clock:
    """Return a clock of the device, by events on the current stream of CuPy or PyTorch."""
    if library == "torch":
        torch = import_module("torch")
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        elapsed: Callable[[], float] = lambda: begin.elapsed_time(end)  # noqa: E731
    else:
        cupy = require_cupy()
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        elapsed = lambda: cupy.cuda.get_elapsed_time(begin, end)  # noqa: E731

    def clock(call: Call, count: int) -> float:
        begin.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return 1e-3 * float(elapsed()) / count

    return clock


def alternate(draws: Mapping[str, Callable[[], float]], counts: Mapping[str, int]) -> Any:
    """Take samples in random order.

    Parameters
    ----------
    draws : mapping of str to callable
        What takes a sample, by name.
    counts : mapping of str to int
        How many samples.

    Returns
    -------
    samples : dict of str to list of float
        The samples by name.
    """
    order = [name for name in draws for _ in range(counts[name])]
    random.Random(0).shuffle(order)
    samples: dict[str, list[float]] = {name: [] for name in draws}
    for name in order:
        samples[name].append(draws[name]())
    return samples


def samples_of(
    calls: Mapping[str, Call],
    samples: int,
    *,
    seconds: float = 0.0,
    length: int | None = None,
    budget: float = inf,
    clock: Clock = host,
) -> dict[str, list[float]]:
    """Measure calls whose samples alternate, after one call of each that is not measured.

    Parameters
    ----------
    calls : mapping of str to callable
        The calls by name.
    samples : int
        Samples of a call.
    seconds : float, default: 0
        Least time of a sample, which consists of as many consecutive calls; 0 means one call.
    length : int, optional
        Number of calls of a sample, in place of `seconds`.
    budget : float, optional
        Time in seconds after which the samples of a call end, if it has `LEAST_SAMPLES`.
    clock : callable, default: host
        The clock.

    Returns
    -------
    samples : dict of str to list of float
        Seconds of one call, by name.
    """
    lengths, counts = {}, {}
    for name, call in calls.items():
        call()
        once = max(clock(call, 1), 1e-9) if seconds or budget < inf else inf
        lengths[name] = count = length or int(min(max(1, seconds / once), MOST_CALLS))
        affordable = max(LEAST_SAMPLES, budget / (count * once)) if budget < inf else inf
        counts[name] = int(min(samples, affordable))
    draws = {
        name: lambda call=call, length=lengths[name]: clock(call, length)
        for name, call in calls.items()
    }
    return alternate(draws, counts)


def medians(calls: Mapping[str, Call], samples: int, **options: Any) -> dict[str, float]:
    """Return the medians of `samples_of`, by name."""
    found = samples_of(calls, samples, **options)
    return {name: median(times) for name, times in found.items()}


def fastest(times: Sequence[float]) -> float:
    """Return the mean of the fastest quarter of samples."""
    return float(np.mean(sorted(times)[: max(1, len(times) // 4)]))


def median_of(call: Call, samples: int, **options: Any) -> float:
    """Return the median of the samples of one call."""
    return medians({"": call}, samples, **options)[""]


def require_cupy() -> Any:
    """Return CuPy, or raise ImportError with the command that installs it."""
    try:
        return import_module("cupy")
    except ImportError as error:
        raise ImportError(f"the benchmark of the GPU needs CuPy: {error}") from None


class CopyClock:
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
    runs = CopyClock().floors_and_times(_nothing, 1.0, 5)
    return 1.0 / median(floor for floor, _ in runs)


def _nothing() -> None:
    """Enqueue nothing."""


def _seconds(cupy: Any, start: Any, end: Any) -> float:
    return 1e-3 * float(cupy.cuda.get_elapsed_time(start, end))


class Copier:
    """Copies one buffer to another with `threads` threads and non-temporal stores.

    Parameters
    ----------
    backend : module
        The extension that provides the copy.
    source, target : ndarray
        Contiguous buffers of one length, larger than the caches.
    threads : int
        Number of threads.
    """

    def __init__(self, backend: Any, source: NDArray, target: NDArray, threads: int) -> None:
        self._backend, self._threads = backend, threads
        self._source, self._target = (a.reshape(1, 1, -1) for a in (source, target))
        self.samples: list[float] = []
        self.bandwidth()
        self.samples.clear()  # the first copy also allocated memory pages

    def bandwidth(self) -> float:
        """Copy once and return (bytes read + bytes written) / second."""
        start = time.perf_counter()
        status = self._backend.copy(self._source, self._target, self._threads)
        value = 2 * self._source.nbytes / (time.perf_counter() - start)
        if status:
            raise RuntimeError(f"copy: status {status}")
        self.samples.append(value)
        return value


def cpu_bandwidth(words: int) -> float:
    """Return the bytes read and written per second by a copy on all cores."""
    backend = backends.require("cpu")
    copier = Copier(backend, np.ones(words), np.ones(words), backend.default_threads())
    return float(np.median([copier.bandwidth() for _ in range(7)]))
