"""What a solution of heat conduction tells."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._extras import extra_module
from .._files import read_npz, write_npz
from .._header import count, mapping, number, positive, sequence, text
from .._shown import Shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HeatResult"]

_KIND = "pysolvers heat result"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class HeatResult(Shown):
    """A temperature field, and how it was reached.

    Parameters
    ----------
    u : ndarray, shape (ny, nx) or (nz, ny, nx)
        Temperature at the nodes, x along the last axis.
    spacing : tuple of float
        Distance of the nodes along each axis of `u`.
    time : float
        When.
    dt : float
        Time step.
    steps : int
        Steps since time 0.
    scheme : str
        As in `HeatADI`.
    stop_reason : {'reached', 'callback', 'diverged', 'running'}
        Why the last run ended.
    seconds : dict of str to float
        Time spent in the stages of the steps. On a device only if `HeatADI` was asked to
        measure it; large fields of three axes are stepped in two stages there, *x* with the
        right side, *z*, and half of the work along y in each.
    backend, kernel : str
        Backend, and its instruction set or kernels.
    threads : int
        Host threads used.
    """

    u: NDArray[Any]
    spacing: tuple[float, ...]
    time: float
    dt: float
    steps: int
    scheme: str
    stop_reason: str
    seconds: dict[str, float]
    backend: str
    kernel: str
    threads: int

    @property
    def x(self) -> NDArray[np.float64]:
        """Places of the nodes along x: shape (nx,)."""
        return self._line(-1)

    @property
    def y(self) -> NDArray[np.float64]:
        """Places of the nodes along y: shape (ny,)."""
        return self._line(-2)

    @property
    def z(self) -> NDArray[np.float64]:
        """Places of the nodes along z: shape (nz,).

        Raises
        ------
        AttributeError
            With two axes.
        """
        if self.u.ndim < 3:
            raise AttributeError("a field of two axes has no z")
        return self._line(-3)

    def _line(self, axis: int) -> NDArray[np.float64]:
        return np.arange(self.u.shape[axis], dtype=np.float64) * self.spacing[axis]

    def plot(self) -> "Figure":
        """Draw isotherms; of three axes, on the middle plane across z.

        Returns
        -------
        figure : matplotlib.figure.Figure
            The figure; matplotlib comes with the extra ``plot``.
        """
        from ..plots.heat import plot_heat

        return plot_heat(self)

    def to_xarray(self) -> Any:
        """Return the field as an `xarray.DataArray` with its coordinates.

        Returns
        -------
        array : xarray.DataArray
            Dimensions ``y, x`` or ``z, y, x``; xarray comes with the extra ``io``.
        """
        xarray: Any = extra_module("xarray", "io")
        names = ("z", "y", "x")[-self.u.ndim :]
        return xarray.DataArray(
            self.u,
            dims=names,
            coords={name: getattr(self, name) for name in names},
            name="T",
            attrs={"time": self.time, "dt": self.dt, "steps": self.steps, "scheme": self.scheme},
        )

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write the result to an npz file of exactly this name, whole or not at all.

        Parameters
        ----------
        path : path-like
            The file.
        """
        write_npz(path, _KIND, {name: getattr(self, name) for name in _FACTS}, {"u": self.u})

    @classmethod
    def load(cls, path: "str | os.PathLike[str]") -> "HeatResult":
        """Read a result that `save` wrote.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        result : HeatResult
            The same, bit for bit.

        Raises
        ------
        ValueError
            If the file holds something else, is damaged or was edited; the message names the
            file and what is wrong.
        """
        saved = read_npz(path, _KIND)
        facts = saved.header(_FACTS)
        axes = len(facts["spacing"])
        saved.require(axes in (2, 3), "header", f"spacing must have 2 or 3 entries, got {axes}")
        arrays = saved.arrays({"u": ((None,) * axes, (np.float32, np.float64))})
        return cls(u=arrays["u"], **facts)

    def _table(self) -> tuple[str, Mapping[str, str]]:
        facts = {
            "nodes": " × ".join(map(str, self.u.shape[::-1])),
            "time": f"{self.time:g} ({self.steps} steps, {self.stop_reason})",
            "scheme": self.scheme,
            "T": f"{self.u.min():.6g} to {self.u.max():.6g}",
            "seconds": f"{sum(self.seconds.values()):.3g}, {self.backend}, {self.kernel}",
        }
        return "Heat conduction", facts


# What the header of a file holds, and the checks of it.
_FACTS = {
    "spacing": sequence(positive),
    "time": number(),
    "dt": positive,
    "steps": count(),
    "scheme": text(),
    "stop_reason": text(),
    "seconds": mapping(number()),
    "backend": text(),
    "kernel": text(),
    "threads": count(),
}
