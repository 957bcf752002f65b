"""Progress bars in terminals and notebooks, if tqdm is installed."""

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from math import ceil, log
from typing import Any, TypeVar

T = TypeVar("T")

_DELAY = 1.0  # seconds before a bar appears


def progress(items: Sequence[T], label: str) -> Iterator[T]:
    """Yield `items`, with a bar named `label` while they take more than a second."""
    return iter(_bar(items, label) if _is_watched() else items)


def _bar(items: Sequence[T], label: str) -> Iterable[T]:
    """Return the items with a bar of tqdm, or as they are without tqdm."""
    make = _tqdm()
    if make is None:
        return items
    bar: Iterable[T] = make(items, desc=label, file=sys.stderr, delay=_DELAY, leave=False)
    return bar


def _is_watched() -> bool:
    """Return whether somebody sees the bar: stderr is a terminal, or this is a notebook."""
    return _is_terminal(sys.stderr) or _is_notebook()


def _is_terminal(stream: Any) -> bool:
    """Return whether a stream is a terminal. There can be no stream, or one that only writes."""
    try:
        return bool(stream.isatty())
    except (AttributeError, OSError, ValueError):  # also a stream that is closed
        return False


def _is_notebook() -> bool:
    """Return whether IPython runs in a kernel, without an import of IPython."""
    if "ipykernel" not in sys.modules or "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return shell is not None and shell.has_trait("kernel")


def _tqdm() -> Any:
    """Return the class of the bars, which suits terminal or notebook; None without tqdm."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without ipywidgets the bar is text
            from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm


class IterationBar:
    """A bar that shows the rate, and the time left up to a `total`.

    It shows the number of iterations and the `quantity` after the last one. It appears where
    somebody sees it and if tqdm is installed. If it is `wanted` and tqdm is not installed, a
    warning says so.

    An iteration that ends when the quantity reaches a `goal` usually needs far fewer iterations
    than the `total` that is allowed. The bar then shows the number that it would need if the
    quantity fell at its mean rate so far.
    """

    def __init__(
        self,
        wanted: bool | None,
        label: str,
        quantity: str = "residual",
        total: int | None = None,
        goal: float = 0.0,
    ) -> None:
        self._quantity, self._most, self._goal = quantity, total, goal
        self._count, self._first = 0, (0, 0.0)  # iterations, and quantity after the first ones
        self._bar: Any = None
        if wanted is False or (wanted is None and not _is_watched()):
            return
        make = _tqdm()
        if make is not None and sys.stderr is not None:
            self._bar = make(
                desc=label, total=total, unit="it", file=sys.stderr, delay=_DELAY, leave=False
            )
        elif make is None and wanted:
            warnings.warn(
                "progress=True shows nothing, because tqdm is not installed: pip install tqdm",
                RuntimeWarning,
                stacklevel=3,
            )

    def __enter__(self) -> "IterationBar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def expect(self, total: int | None) -> None:
        """Set the number of all iterations, which becomes known during the iteration."""
        if self._bar is not None:
            self._bar.total = total

    def update(self, count: int, value: float) -> None:
        """Add `count` iterations and show the quantity after them."""
        if self._bar is not None:
            self._count += count
            if self._goal > 0:
                self.expect(self._needed(value))
            self._bar.set_postfix({self._quantity: f"{value:.1e}"}, refresh=False)
            self._bar.update(count)

    def _needed(self, value: float) -> int | None:
        """Return the number of iterations after which the quantity reaches the goal."""
        count, first = self._first
        if not count:
            self._first = self._count, value
        if value <= self._goal:
            return self._count
        if not count or not value < first:
            return self._most
        rate = log(first / value) / (self._count - count)
        needed = self._count + log(value / self._goal) / rate
        return self._most if self._most is not None and needed > self._most else ceil(needed)
