"""The progress bar of an iteration whose end is not known."""

import sys
from typing import Any

__all__ = ["IterationBar"]


class IterationBar:
    """A bar on stderr; nothing without a terminal or tqdm, unless it is `wanted`."""

    def __init__(self, wanted: bool | None) -> None:
        self._bar: Any = None
        if wanted or (wanted is None and sys.stderr.isatty()):
            try:
                from tqdm import tqdm
            except ImportError:
                return
            self._bar = tqdm(desc="cavity", unit="it", file=sys.stderr, delay=1.0, leave=False)

    def __enter__(self) -> "IterationBar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def update(self, count: int, residual: float) -> None:
        """Show so many more iterations and the residual."""
        if self._bar is not None:
            self._bar.set_postfix(residual=f"{residual:.1e}", refresh=False)
            self._bar.update(count)
