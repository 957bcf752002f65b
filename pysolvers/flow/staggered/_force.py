"""The force on the fluid, at the faces of the cells."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._checks import short
from ..._data import NodeData
from ..._runtime.fields import Fields, make_fields

Array = NDArray[np.float64]

_NAMES = ("force_x", "force_y")


class Force:
    """Both components of a force, in the layout of u and v of the backend.

    Parameters
    ----------
    given : tuple of two
        The components along x and y, each a number, an array or a function, as in
        `StaggeredCavity`.
    n : int
        Number of cells along each side.
    time : float
        The first time at which the force is needed.
    device : str or None
        Where the backend reads it.
    store : Fields, optional
        Those of the force that this one replaces: a graph on a device has their addresses.

    Raises
    ------
    TypeError, ValueError
        If it is no pair, or a component does not fit.
    """

    def __init__(
        self, given: Any, n: int, time: float, device: str | None, store: Fields | None = None
    ) -> None:
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise TypeError(
                "force must be None or a tuple of the components along x and y, for example "
                f"(0.0, lambda x, y: x), got {short(given)}"
            )
        centres, faces = (np.arange(n) + 0.5) / n, np.arange(n + 1) / n
        places = (faces, centres[:, None]), (centres, faces[:, None])
        self._parts = [
            NodeData(f"force[{k}]", value, *at, time=time)
            for k, (value, at) in enumerate(zip(given, places, strict=True))
        ]
        #: Whether a component depends on time.
        self.varies = any(part.varies for part in self._parts)
        layout = dict.fromkeys(_NAMES, ((n + 2, n + 2), np.float64))
        #: Where the backend reads the force.
        self.store = store or make_fields(layout, device, "StaggeredCavity")
        self._time: float | None = None
        #: Largest magnitude of a component, on the faces inside of the cavity.
        self.most = 0.0
        self.prepare(time)

    def prepare(self, time: float) -> None:
        """Bring the values of a time to where the backend reads them."""
        if time == self._time or (self._time is not None and not self.varies):
            return
        self._time = None
        x, y = (self.store.get(name).copy() for name in _NAMES)
        n = len(x) - 2
        # The faces on walls have no force: their velocity is given.
        x[1:-1, 1:n] = np.broadcast_to(self._parts[0].at(time), (n, n + 1))[:, 1:-1]
        y[1:n, 1:-1] = np.broadcast_to(self._parts[1].at(time), (n + 1, n))[1:-1]
        for name, values in zip(_NAMES, (x, y), strict=True):
            self.store.set(name, values)
        self.most, self._time = float(max(np.abs(x).max(), np.abs(y).max())), time

    @property
    def operands(self) -> tuple[Array, Array]:
        """Both components for the backend."""
        x, y = (self.store.operand(name, changes=False) for name in _NAMES)
        return x, y
