"""Progress bars on a terminal, if tqdm is installed; otherwise no output."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def progress(items: Sequence[T], label: str) -> Iterator[T]:
    """Yield `items`, with a bar named `label` on stderr while it takes more than a second."""
    return iter(_bar(items, label) if sys.stderr.isatty() else items)


def _bar(items: Sequence[T], label: str) -> Iterable[T]:
    try:
        from tqdm import tqdm
    except ImportError:
        return items
    return tqdm(items, desc=label, file=sys.stderr, delay=1.0, leave=False)


class IterationBar:
    """A bar on stderr; nothing without a terminal or tqdm, unless it is `wanted`.

    It shows the number of iterations, the `quantity` after the last iteration and, if the number
    of all iterations is known, `total`, the time left.
    """

    def __init__(
        self,
        wanted: bool | None,
        label: str,
        quantity: str = "residual",
        total: int | None = None,
    ) -> None:
        self._quantity = quantity
        self._bar: Any = None
        if wanted or (wanted is None and sys.stderr.isatty()):
            try:
                from tqdm import tqdm
            except ImportError:
                return
            self._bar = tqdm(
                desc=label, total=total, unit="it", file=sys.stderr, delay=1.0, leave=False
            )

    def __enter__(self) -> "IterationBar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def update(self, count: int, value: float) -> None:
        """Add `count` iterations and show the quantity after them."""
        if self._bar is not None:
            self._bar.set_postfix({self._quantity: f"{value:.1e}"}, refresh=False)
            self._bar.update(count)
