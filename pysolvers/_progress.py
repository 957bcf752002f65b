"""Progress bars: on a terminal that has tqdm, silent everywhere else."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

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
