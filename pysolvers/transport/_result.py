"""Result of a convection-diffusion solver."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._extras import extra_module
from .._files import SavedFile
from .._header import count, mapping, number, positive, sequence, text
from .._runtime.recording import Filmed
from .._saved_result import SavedResult
from .._shown import place_text, shape_text, steps_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TransportResult"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TransportResult(SavedResult, Filmed):
    """State of a convection-diffusion problem, with scheme, steps and times.

    Parameters
    ----------
    u : ndarray, shape (ny, nx)
        The solution: ``u[j, i]`` lies at ``(x[i], y[j])``.
    x, y : ndarray of float, shapes (nx,) and (ny,)
        Coordinates of the nodes along each axis.
    time : float
        Time of the state.
    dt : float
        Time step.
    last_dt : float
        Length of the last step, which `run` shortens to end at a given time.
    steps : int
        Number of steps since time 0.
    scheme, upwind, predictor, foot : str
        The method, as in `GCEIDD`.
    strips : (int, int)
        Strips along x and y.
    courant : float
        Largest abs(b) dt/h of both axes.
    diffusion_number : float
        Largest a dt/h^2 of both axes.
    stop_reason : {'reached', 'callback', 'grown', 'running'}
        Reason of the end of the last run.
    seconds : dict of str to float
        Time of each part of both sweeps. On a device the time of each call of the
        backend is divided among the parts in the ratio measured in its last step.
    backend, kernel : str
        Backend, and its instruction set or kernels.
    threads : int
        Number of host threads.
    exchange : {'none', 'host', 'nccl', 'peers'}
        With a group, how the ranks exchange nodes: through the memory of the host, by NCCL, or
        between the devices of a host. `save` does not write it.
    frames : tuple of TransportResult
        The states that `record` kept; empty after the other calls. `save` does not write them.
    """

    u: NDArray[Any]
    x: Array
    y: Array
    time: float
    dt: float
    last_dt: float
    steps: int
    scheme: str
    upwind: str
    predictor: str
    foot: str
    strips: tuple[int, int]
    courant: float
    diffusion_number: float
    stop_reason: str
    seconds: dict[str, float]
    backend: str
    kernel: str
    threads: int
    exchange: str = "none"
    frames: "tuple[TransportResult, ...]" = ()

    _KIND = "pysolvers transport result"
    _FACTS: ClassVar = {
        "time": number(),
        "dt": positive,
        "last_dt": positive,
        "steps": count(),
        "scheme": text(),
        "upwind": text(),
        "predictor": text(),
        "foot": text(),
        "strips": sequence(count(1), 2),
        "courant": number(),
        "diffusion_number": number(),
        "stop_reason": text(),
        "seconds": mapping(number()),
        "backend": text(),
        "kernel": text(),
        "threads": count(),
    }
    _ARRAYS: ClassVar = {
        "u": ((None, None), (np.float32, np.float64)),
        "x": ((None,), np.float64),
        "y": ((None,), np.float64),
    }

    def errors(self, exact: Callable[[Array, Array, float], Any]) -> tuple[float, float]:
        """Return the errors with respect to an exact solution.

        Parameters
        ----------
        exact : callable
            Function of (x, y, t), called with x of shape (1, nx) and y (ny, 1).

        Returns
        -------
        largest : float
            Largest error at a node.
        l2 : float
            Square root of the sum of squared errors times the area of a cell.
        """
        error = np.abs(self.u - exact(self.x[None, :], self.y[:, None], self.time))
        area = (self.x[1] - self.x[0]) * (self.y[1] - self.y[0])
        return float(error.max()), float(np.sqrt(np.sum(error**2) * area))

    def to_xarray(self) -> Any:
        """Return the solution with its coordinates.

        Returns
        -------
        u : xarray.DataArray
            Dimensions y and x, with the settings as attributes; the extra ``io`` installs
            xarray.
        """
        xarray: Any = extra_module("xarray", "io")
        attributes = {name: getattr(self, name) for name in self._FACTS if name != "seconds"}
        coordinates = {"y": self.y, "x": self.x}
        return xarray.DataArray(self.u, coordinates, ("y", "x"), "u", attributes)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        show: bool | None = None,
        **options: Any,
    ) -> Any:
        """Draw the solution as a map, and its profiles through the highest point.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes on which only the map is drawn. By default a new figure of pyplot is made.
        show : bool, optional
            Whether to open a window and wait until it is closed. By default this happens in a
            program whose matplotlib opens windows. A notebook shows the figure in any case.
        **options
            Options of `pcolormesh`, for example ``cmap``.

        Returns
        -------
        axes : Axes or ndarray of Axes
            `ax`, or the axes of all plots.

        Raises
        ------
        ModuleNotFoundError
            If matplotlib is not installed; it is in the extra ``plot``.
        """
        from ..plots.transport import plot_transport

        return plot_transport(self, ax, show=show, **options)

    @property
    def _film(self) -> Callable[..., Any]:
        from ..plots.transport import film_transport

        return film_transport

    def _check(self, saved: SavedFile) -> None:
        nodes = self.y.size, self.x.size
        saved.require(
            self.u.shape == nodes and min(nodes) > 1,
            "member 'u'",
            f"y and x need the shape {nodes}, of at least 2 nodes, got {self.u.shape}",
        )

    def _table(self) -> tuple[str, Mapping[str, str]]:
        facts = {
            "nodes": f"{shape_text(self.u.shape)}, strips {self.strips[0]} along x, "
            f"{self.strips[1]} along y",
            "scheme": f"{self.scheme}, Courant number {self.courant:.3g}, "
            f"diffusion number {self.diffusion_number:.3g}",
            "time": f"{self.time:g} ({steps_text(self)}, {self.stop_reason})",
            "u": f"{self.u.min():.6g} to {self.u.max():.6g}",
            "seconds": f"{sum(self.seconds.values()):.3g}, {place_text(self)}",
        }
        return "Convection and diffusion", facts
