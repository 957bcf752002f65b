"""Recognition of an iteration that cannot converge: its residual stays, or grows."""

from math import inf

from .._checks import index

FALL = 0.9
"""Factor by which the smallest residual has to fall for the iteration to make progress."""

_LEAST = 5000


class Stall:
    """The smallest residual so far, and the iterations since it fell by the factor `FALL`.

    Parameters
    ----------
    patience : int
        Largest number of iterations without such a fall.
    iterations : int
        Number of iterations before the first one.
    """

    def __init__(self, patience: int, iterations: int) -> None:
        self.patience = patience
        self.smallest = inf
        self._level, self._since = inf, iterations

    def is_over(self, iterations: int, residual: float) -> bool:
        """Record a residual; return whether the iterations without progress are too many."""
        self.smallest = min(self.smallest, residual)
        if residual <= FALL * self._level:
            self._level, self._since = residual, iterations
        return iterations - self._since > self.patience

    def text(self, residual: float, name: str = "residual") -> str:
        """Return the reason of the end; `name` is that of the measured quantity."""
        verb = "grew" if residual > 10 * self.smallest else "stalled"
        return (
            f"the {name} {verb}: it is {residual:.1e}, and has not fallen by "
            f"{100 * (1 - FALL):.0f} % below {self._level:.1e} in {self.patience} iterations"
        )


def checked_patience(patience: int | None, default: int) -> int:
    """Return the patience of a solve; the default is at least 5000."""
    return max(default, _LEAST) if patience is None else index("patience", patience, 1)
