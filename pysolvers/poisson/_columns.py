"""Transforms of the columns of an array, along an axis other than the last one, and of its rows.

Entries of a column are a row apart. In rows whose length in bytes is a multiple of 4096 they
compete for a few places of the cache, and a transform of 2048 columns of 2048 float64 takes 39 ms.
A panel of neighbouring columns is therefore copied to a contiguous array of about half a megabyte,
transformed there, and copied to its target: 14 ms (AMD EPYC, one thread). The copies also convert
the dtype and change the place of the data, so that no separate pass does.

Panels are the unit of work of threads. Their limits do not depend on the number of threads, and a
panel does not depend on the others, so that the result has the same bits for any number.
"""

from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Transform = Callable[[Array], Array]

_PANEL = 1 << 19  # bytes
_LEAST = 16  # columns of a panel: two cache lines of float64
_PADDING = 16  # columns between the panels' own columns, against the same competition


def transform_columns(
    transform: Transform, source: Array, target: Array, axis: int, dtype: np.dtype, threads: int
) -> None:
    """Transform along an axis, not the last one, of an array of two or three axes.

    Parameters
    ----------
    transform : callable
        Returns the transform along axis 0 of a two-dimensional array, which it can overwrite.
    source : ndarray
        The values; another dtype is converted.
    target : ndarray
        For the transform; can be `source`. It has the shape of `source`, but along `axis` the
        length of the transform.
    axis : int
        Axis of the transform.
    dtype : dtype
        Of the values that `transform` takes.
    threads : int
        Number of threads, the calling one included.
    """
    size = source.shape[axis]
    panels = deque(_panels(source.shape, axis, _PANEL // (size * dtype.itemsize)))
    columns = max(number for number, _ in panels)

    def start() -> Callable[[int, tuple[Any, ...]], None]:
        block = np.empty((size, columns + _PADDING), dtype)

        def run(number: int, place: tuple[Any, ...]) -> None:
            """Transform the columns of one panel, in the block of this thread."""
            values = _columns_first(source[place], axis)
            panel = block[:, :number]
            np.copyto(panel.reshape(values.shape), values, casting="unsafe")
            result = transform(panel)
            to = _columns_first(target[place], axis)
            to[...] = result.reshape(to.shape)

        return run

    share(start, panels, threads)


def transform_rows(transform: Transform, source: Array, target: Array, threads: int) -> None:
    """Transform along the last axis of an array of two or more axes.

    A panel is a slice of consecutive entries of the other axes, of about half a megabyte.

    Parameters
    ----------
    transform : callable
        Returns the transform along the last axis.
    source : ndarray
        The values.
    target : ndarray
        For the transform; can be `source`. It has the shape of `source`, but along the last axis
        the length of the transform.
    threads : int
        Number of threads, the calling one included.
    """
    others = source.shape[:-1]
    axis = max(range(len(others)), key=others.__getitem__)  # the longest one is divided
    count = others[axis]
    least = max(1, _PANEL * count // max(source.nbytes, 1))
    panels = deque(
        (least, (slice(None),) * axis + (slice(j, j + least),)) for j in range(0, count, least)
    )

    def run(_: int, place: tuple[Any, ...]) -> None:
        target[place] = transform(source[place])

    share(lambda: run, panels, threads)


def share(
    start: Callable[[], Callable[[int, tuple[Any, ...]], None]],
    panels: deque[tuple[int, tuple[Any, ...]]],
    threads: int,
) -> None:
    """Run a function for all panels; `start` returns the function of one thread."""
    errors: list[BaseException] = []
    begun: list[Lock] = []  # one of each helper that took a panel, released at its end

    def work() -> None:
        """Transform panels until none is left."""
        run = start()
        while panels:
            try:
                panel = panels.popleft()
            except IndexError:  # another thread took the last one
                return
            run(*panel)

    def help_work() -> None:
        """Work in a thread of its own; keep an error for the caller."""
        done = Lock()
        done.acquire()
        begun.append(done)
        try:
            work()
        except BaseException as error:
            errors.append(error)
        finally:
            done.release()

    for _ in range(min(threads, len(panels)) - 1):
        start_new_thread(help_work, ())
    try:
        work()
    finally:
        panels.clear()
        # A thread that starts late finds no panel left, and the caller does not wait for it.
        for done in list(begun):
            done.acquire()
    if errors:
        raise errors[0]


def _columns_first(panel: Array, axis: int) -> Array:
    """Move the axis of the columns to the front."""
    return panel if axis == 0 else panel.swapaxes(0, 1)


def _panels(shape: tuple[int, ...], axis: int, most: int) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield number of columns and index of all panels, of at most about `most` columns."""
    width = min(shape[-1], max(_LEAST, most))
    depth = max(1, most // width)
    others = shape[:axis] + shape[axis + 1 : -1]
    for j in range(0, others[0] if others else 1, depth):
        layers = min(depth, others[0] - j) if others else 1
        for k in range(0, shape[-1], width):
            place = [slice(None), slice(k, k + width)]
            if others:
                place.insert(1 - axis, slice(j, j + depth))
            yield layers * min(width, shape[-1] - k), tuple(place)
