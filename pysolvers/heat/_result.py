"""Result of a heat conduction solver."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._extras import extra_module
from .._files import SavedFile
from .._header import count, flag, mapping, number, positive, sequence, text
from .._runtime.recording import Filmed
from .._saved_result import Member, SavedResult
from .._shown import place_text, shape_text, steps_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["HeatResult"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class HeatResult(SavedResult, Filmed):
    """A temperature field, with scheme, steps and times.

    Parameters
    ----------
    u : ndarray, shape (ny, nx) or (nz, ny, nx)
        Temperature at the nodes, x along the last axis.
    spacing : tuple of float
        Distance between the nodes along each axis, in the order x, y, z.
    origin : tuple of float
        Coordinates of the first node.
    time : float
        Time of the state.
    dt : float
        Time step.
    last_dt : float
        Length of the last step, which `run` shortens to end at a given time.
    steps : int
        Number of steps since time 0.
    scheme : str
        As in `HeatADI`.
    damped_start : bool
        Whether the first step was two half-steps of the backward Euler method.
    stop_reason : {'reached', 'callback', 'diverged', 'running'}
        Reason of the end of the last run.
    seconds : dict of str to float
        Time of each stage of the steps; on a device only with ``timed=True``. For large fields
        in three dimensions, a device merges the stages into two: *x* contains the right-hand
        side, *z* the rest, and each contains half of the work along y.
    backend, kernel : str
        Backend, and its instruction set or kernels.
    threads : int
        Number of host threads.
    exchange : {'none', 'host', 'nccl', 'peers'}
        With a group, how the ranks exchange nodes: through the memory of the host, by NCCL, or
        between the devices of a host. `save` does not write it.
    frames : tuple of HeatResult
        The states that `record` kept; empty after the other calls. `save` does not write them.
    """

    u: NDArray[Any]
    spacing: tuple[float, ...]
    origin: tuple[float, ...]
    time: float
    dt: float
    last_dt: float
    steps: int
    scheme: str
    damped_start: bool
    stop_reason: str
    seconds: dict[str, float]
    backend: str
    kernel: str
    threads: int
    exchange: str = "none"
    frames: "tuple[HeatResult, ...]" = ()

    _KIND = "pysolvers heat result"
    _FACTS: ClassVar = {
        "spacing": sequence(positive),
        "origin": sequence(number()),
        "time": number(),
        "dt": positive,
        "last_dt": positive,
        "steps": count(),
        "scheme": text(),
        "damped_start": flag,
        "stop_reason": text(),
        "seconds": mapping(number()),
        "backend": text(),
        "kernel": text(),
        "threads": count(),
    }
    _ARRAYS: ClassVar = {"u": ((None, None), (np.float32, np.float64))}

    @property
    def x(self) -> NDArray[np.float64]:
        """Coordinates of the nodes along x: shape (nx,)."""
        return self._line(0)

    @property
    def y(self) -> NDArray[np.float64]:
        """Coordinates of the nodes along y: shape (ny,)."""
        return self._line(1)

    @property
    def z(self) -> NDArray[np.float64]:
        """Coordinates of the nodes along z: shape (nz,).

        Raises
        ------
        AttributeError
            If the field has two axes.
        """
        if self.u.ndim < 3:
            raise AttributeError("a field of two axes has no z")
        return self._line(2)

    def _line(self, axis: int) -> NDArray[np.float64]:
        places = np.arange(self.u.shape[-1 - axis], dtype=np.float64)
        return self.origin[axis] + places * self.spacing[axis]

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        show: bool | None = None,
        **options: Any,
    ) -> "Axes":
        """Draw isotherms; in three dimensions, of the middle plane z = const.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes on which the plot is drawn. By default a new figure of pyplot is made.
        show : bool, optional
            Whether to open a window and wait until it is closed. By default this happens in a
            program whose matplotlib opens windows. A notebook shows the figure in any case.
        **options
            Options of `contourf`, for example ``levels`` and ``cmap``.

        Returns
        -------
        axes : matplotlib.axes.Axes
            The axes; ``axes.figure`` is the figure.

        Raises
        ------
        ModuleNotFoundError
            If matplotlib is not installed; it is in the extra ``plot``.
        """
        from ..plots.heat import plot_heat

        return plot_heat(self, ax, show=show, **options)

    @property
    def _film(self) -> Callable[..., Any]:
        from ..plots.heat import film_heat

        return film_heat

    def to_xarray(self) -> Any:
        """Return the field as an `xarray.DataArray` with its coordinates.

        Returns
        -------
        array : xarray.DataArray
            Dimensions ``y, x`` or ``z, y, x``; the extra ``io`` installs xarray.
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

    @classmethod
    def _expected(cls, saved: SavedFile, facts: Mapping[str, Any]) -> Mapping[str, Member]:
        axes = len(facts["spacing"])
        saved.require(axes in (2, 3), "header", f"spacing must have 2 or 3 entries, got {axes}")
        saved.require(len(facts["origin"]) == axes, "header", f"origin must have {axes} entries")
        return {"u": ((None,) * axes, (np.float32, np.float64))}

    def _table(self) -> tuple[str, Mapping[str, str]]:
        facts = {
            "nodes": shape_text(self.u.shape),
            "time": f"{self.time:g} ({steps_text(self)}, {self.stop_reason})",
            "scheme": self.scheme + (", damped start" if self.damped_start else ""),
            "T": f"{self.u.min():.6g} to {self.u.max():.6g}",
            "seconds": f"{sum(self.seconds.values()):.3g}, {place_text(self)}",
        }
        return "Heat conduction", facts
