"""The copy bandwidth of the machine, the reference of the benchmarks."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pysolvers._runtime import backends


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
