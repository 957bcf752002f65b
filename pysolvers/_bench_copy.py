"""The copy bandwidth of the machine, by which the benchmarks measure."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

# Bytes copied at a time, by each thread. The best piece differs from machine to machine.
PIECES = (2**17, 2**19, 2**21, 2**40)


class Copier:
    """Copies one buffer into another as fast as it can, over `threads` threads.

    Parameters
    ----------
    source, target : ndarray
        Contiguous buffers of one length, larger than the caches.
    pool : ThreadPoolExecutor
        Where the copies run.
    threads : int
        Number of threads of `pool`.
    """

    def __init__(
        self, source: NDArray, target: NDArray, pool: ThreadPoolExecutor, threads: int
    ) -> None:
        self._source, self._target = source, target
        self._pool, self._threads = pool, threads
        self.piece = max(PIECES, key=self._bandwidth_by)
        self.samples: list[float] = []

    def bandwidth(self) -> float:
        """Copy once and return (bytes read + bytes written) / second."""
        start = time.perf_counter()
        list(self._pool.map(self._copy_part, range(self._threads)))
        value = 2 * self._source.nbytes / (time.perf_counter() - start)
        self.samples.append(value)
        return value

    def _bandwidth_by(self, piece: int) -> float:
        self.piece, self.samples = piece, []
        return max(self.bandwidth() for _ in range(5))

    def _copy_part(self, part: int) -> None:
        step = max(1, self.piece // self._source.itemsize)
        first, last = (self._source.size * k // self._threads for k in (part, part + 1))
        for i in range(first, last, step):
            piece = slice(i, min(i + step, last))
            np.copyto(self._target[piece], self._source[piece])
