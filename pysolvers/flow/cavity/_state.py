"""The state of a cavity: its fields now, and those of the best state so far."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._runtime.fields import make_fields

Array = NDArray[np.float64]

_NOW = ("psi", "omega")
_BEST = ("best_psi", "best_omega")


class CavityFields:
    """psi and omega, on the host or on a device, zero at first.

    Parameters
    ----------
    n : int
        Nodes along a side.
    device : str or None
        As in `LidDrivenCavity`.
    """

    def __init__(self, n: int, device: str | None) -> None:
        layout = dict.fromkeys((*_NOW, *_BEST), ((n, n), np.float64))
        self._state = make_fields(layout, device, "LidDrivenCavity")

    @property
    def arguments(self) -> tuple[int, ...]:
        """What every call of the backend takes last."""
        return self._state.arguments

    def operands(self) -> tuple[Array, Array]:
        """Return psi and omega for the backend, which may change them."""
        return self._state.operand("psi"), self._state.operand("omega")

    def values(self) -> tuple[Array, Array]:
        """Return psi and omega now, to be read."""
        return self._state.get("psi"), self._state.get("omega")

    def best_values(self) -> tuple[Array, Array]:
        """Return psi and omega of the best state, to be read."""
        return self._state.get("best_psi"), self._state.get("best_omega")

    def set(self, **fields: Any) -> None:
        """Replace fields by name."""
        for name, values in fields.items():
            self._state.set(name, values)

    def keep(self) -> None:
        """Make the state the best one."""
        for now, best in zip(_NOW, _BEST, strict=True):
            self._state.copy(best, now)

    def go_back(self) -> None:
        """Make the best state the state."""
        for now, best in zip(_NOW, _BEST, strict=True):
            self._state.copy(now, best)
