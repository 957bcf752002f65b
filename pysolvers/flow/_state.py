"""Where the state of a cavity lies: in arrays of the host, or on a device."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import raise_for_status
from .._shadows import address_of, shadow
from .._streams import PER_THREAD

__all__ = ["DeviceFields", "Fields"]

Array = NDArray[np.float64]

_PSI, _OMEGA, _BEST_PSI, _BEST_OMEGA = range(4)


class Fields:
    """psi and omega now, and of the best state so far, on the host.

    Parameters
    ----------
    n : int
        Nodes along a side.
    """

    #: What every call of the backend takes last.
    arguments: tuple[int, ...] = ()

    def __init__(self, n: int) -> None:
        self._all: Array = np.zeros((4, n, n))

    def operands(self) -> tuple[Array, Array]:
        """Return psi and omega for the backend, which may change them."""
        return self._all[_PSI], self._all[_OMEGA]

    def values(self) -> tuple[Array, Array]:
        """Return psi and omega now, to be read."""
        return self._all[_PSI], self._all[_OMEGA]

    def best_values(self) -> tuple[Array, Array]:
        """Return psi and omega of the best state, to be read."""
        return self._all[_BEST_PSI], self._all[_BEST_OMEGA]

    def set(self, psi: Array, omega: Array, best_psi: Array, best_omega: Array) -> None:
        """Replace everything."""
        for field, values in zip(self._all, (psi, omega, best_psi, best_omega), strict=True):
            field[...] = values

    def keep(self) -> None:
        """Make the state the best one."""
        self._all[_BEST_PSI:] = self._all[:_BEST_PSI]

    def go_back(self) -> None:
        """Make the best state the state."""
        self._all[:_BEST_PSI] = self._all[_BEST_PSI:]


class DeviceFields(Fields):
    """The same on a device; what is asked for comes to the host.

    Between two calls nothing is in flight, so that they may come from any thread.

    Parameters
    ----------
    n : int
        Nodes along a side.
    backend : module
        The extension that has the device.
    ordinal : int
        Number of the device.
    """

    def __init__(self, n: int, backend: ModuleType, ordinal: int) -> None:
        super().__init__(n)
        self._backend = backend
        self.arguments = (ordinal, PER_THREAD.address)
        all_bytes = self._all.nbytes
        self._buffer = backend.Buffer(all_bytes, *self.arguments, True)
        self._shadows = shadow(
            self._buffer.address, self._all.shape, self._all.strides, self._all.dtype, self._buffer
        )
        self._current = True
        self._call(backend.upload, self._buffer.address, self._all)

    def operands(self) -> tuple[Array, Array]:
        self._current = False
        return self._shadows[_PSI], self._shadows[_OMEGA]

    def values(self) -> tuple[Array, Array]:
        if not self._current:
            self._all[:_BEST_PSI] = self._read(slice(_PSI, _BEST_PSI))
            self._current = True
        return super().values()

    def best_values(self) -> tuple[Array, Array]:
        psi, omega = self._read(slice(_BEST_PSI, None))
        return psi, omega

    def set(self, psi: Array, omega: Array, best_psi: Array, best_omega: Array) -> None:
        super().set(psi, omega, best_psi, best_omega)
        self._current = True
        self._call(self._backend.upload, self._buffer.address, self._all)

    def keep(self) -> None:
        self._copy(slice(_BEST_PSI, None), slice(_PSI, _BEST_PSI))

    def go_back(self) -> None:
        self._current = False
        self._copy(slice(_PSI, _BEST_PSI), slice(_BEST_PSI, None))

    def _read(self, part: slice) -> Array:
        source = self._shadows[part]
        values = np.empty(source.shape)
        status = self._backend.download(values, address_of(source), *self.arguments)
        raise_for_status(status, self._backend.STATUS, "LidDrivenCavity")
        return values

    def _copy(self, to: slice, source: slice) -> None:
        self._call(self._backend.relayout, self._shadows[to], self._shadows[source])

    def _call(self, function: Callable[..., int], *operands: Any) -> None:
        """Enqueue a call and wait for its end."""
        for status in (function(*operands, *self.arguments), self._backend.wait(*self.arguments)):
            raise_for_status(status, self._backend.STATUS, "LidDrivenCavity")
