"""Count of the steps or iterations of a solver, from which an interrupt takes nothing."""

import numpy as np
from numpy.typing import NDArray


class Counter:
    """Steps made in all calls of the backend.

    A signal handler may raise as soon as a call of the backend returns, before any statement
    that follows the call. So the backend itself writes the number of steps that a call made, to
    an array of the counter, and the total is a sum at any time.

    Parameters
    ----------
    value : int, default: 0
        Steps made before.
    """

    def __init__(self, value: int = 0) -> None:
        self._before, self._made = value, np.zeros(1, np.int64)

    @property
    def value(self) -> int:
        """Steps made so far."""
        return self._before + self._made.item()

    def begin(self) -> NDArray[np.int64]:
        """Return the array to which the next call of the backend writes its steps."""
        before, made = self.value, np.zeros(1, np.int64)
        self._before, self._made = before, made
        return made
