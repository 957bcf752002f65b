"""Results: dataclasses whose annotations say what their files contain, shown and drawn alike.

A subclass is a frozen dataclass, whose annotations are the checks of its files: see `schema`.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from .._atomic import atomic_write
from .._extras import extra_module
from .._repr import Shown
from .files import Saved, SavedFile, is_rising, parts_of
from .schema import Seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

StopReason = Literal[
    "converged", "reached", "max_iterations", "stalled", "diverged", "callback", "running"
]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Result(Saved, Shown):
    """A result, with files, a short description, figures, and arrays with coordinates.

    Parameters
    ----------
    stop_reason : str
        Reason of the end of the run.
    seconds : dict of str to float
        Time of each stage.
    backend, kernel : str
        Backend, and instruction set or kernel of its last call.
    threads : int
        Number of host threads of this call.
    frames : tuple of Result
        The states that `record` kept; empty after the other calls. `save` does not write them.
    """

    stop_reason: StopReason
    seconds: Seconds
    backend: str
    kernel: str
    threads: int

    _PLOTS: ClassVar[str] = "fields"  # module of `pysolvers.plots` with the functions plot and film
    _DIMS: ClassVar[Mapping[str, str]] = {}  # dimensions of the fields of `to_xarray`
    _COORDINATES: ClassVar[Mapping[str, str]] = {}  # attribute of a dimension with another name
    frames: tuple[Any, ...] = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to an npz file.

        Parameters
        ----------
        path : path-like
            The file; its name is not changed. It is written completely or not at all.
        """
        self._write(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a result that `save` wrote.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        result
            The saved result, with the same bits.

        Raises
        ------
        ValueError
            If the file is not such a result, is damaged or was changed; the message names the
            file and the error.
        """
        return cls._read(path)

    def _check_rows(self, saved: SavedFile, last: int) -> None:
        """Raise ValueError unless the history has rising numbers and columns of one length."""
        history: Any = self.history  # type: ignore[attr-defined]
        names = [field.name for field in fields(history)]
        columns = [getattr(history, name) for name in names]
        saved.require(
            is_rising(columns[0], last) and len({column.shape for column in columns}) == 1,
            f"member {self._prefix('history') + names[0]!r}",
            f"it must hold rising integers up to {last}, one for each row",
        )

    def plot(self, ax: "Axes | None" = None, *, show: bool | None = None, **options: Any) -> Any:
        """Draw the result.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes on which only the main field is drawn. By default a new figure of pyplot is made.
        show : bool, optional
            Whether to open a window and wait until it is closed. By default this happens in a
            program whose matplotlib opens windows. A notebook shows the figure in any case.
        **options
            Options of the `contourf` or `pcolormesh` of the main field, for example ``levels``
            and ``cmap``. For heat conduction, transport and relaxation also ``label`` of the
            scale and ``unit`` of the coordinates: ``label="temperature (°C)", unit="mm"``. For
            a cavity also ``tables``, published profiles to compare with by
            name, each with the columns ``y, u`` and ``x, v``.

        Returns
        -------
        axes : Axes or ndarray of Axes
            `ax`, or the axes of all plots; ``axes.figure`` is the figure.

        Raises
        ------
        ModuleNotFoundError
            If matplotlib is not installed; it is in the extra ``plot``.
        """
        return self._drawing("plot")(self, ax, show=show, **options)

    def animate(self, path: "str | os.PathLike[str] | None" = None, **options: Any) -> Any:
        """Return a film of the recorded frames, and write it to a file if there is a path.

        Parameters
        ----------
        path : path-like, optional
            File to write: a name that ends in ``.gif``, ``.apng`` or ``.webp``, or a format that
            ffmpeg writes, for example ``.mp4``.
        **options
            ``fps`` (12) frames per second, ``dpi`` (80) pixels per inch, and options of `plot`.

        Returns
        -------
        film : matplotlib.animation.FuncAnimation
            The film; a notebook shows it with buttons.

        Raises
        ------
        ValueError
            If the result has no frames: only ``record`` of the solver keeps them. If the format
            of `path` needs ffmpeg, and ffmpeg is not installed.
        """
        return self._drawing("film")(self.frames, path=path, **options)

    def _drawing(self, name: str) -> Callable[..., Any]:
        """Return a function of the module of `pysolvers.plots`, which is imported here."""
        return getattr(import_module(f"pysolvers.plots.{self._PLOTS}"), name)

    def to_xarray(self) -> Any:
        """Return the fields with their coordinates, and the facts as attributes.

        Returns
        -------
        fields : xarray.Dataset
            Variables with the names of the fields. After ``record`` each has the first dimension
            ``time``, with the kept states; the attributes are those of the final state.

        Raises
        ------
        ModuleNotFoundError
            If xarray is not installed; it is in the extra ``io``.
        """
        xarray: Any = extra_module("xarray", "io")
        kind: Any = type(self)
        facts = [name for name in parts_of(kind)[0] if name != "seconds"]
        attributes = {name: getattr(self, name) for name in facts}
        dims = {name: axes.split() for name, axes in self._dims().items()}
        names = dict.fromkeys(name for axes in dims.values() for name in axes)
        places = {name: self._COORDINATES.get(name, name) for name in names}
        coords = {name: getattr(self, at) for name, at in places.items() if hasattr(self, at)}
        if not self.frames:
            fields = {name: (axes, getattr(self, name)) for name, axes in dims.items()}
            return xarray.Dataset(fields, coords, attributes)
        frames: Sequence[Any] = self.frames
        coords["time"] = [frame.time for frame in frames]
        del attributes["time"]
        fields = {
            name: (["time", *axes], np.stack([getattr(frame, name) for frame in frames]))
            for name, axes in dims.items()
        }
        return xarray.Dataset(fields, coords, attributes)

    def to_vtk(self, path: str | os.PathLike[str]) -> None:
        """Write the fields to a VTK file (legacy format, binary), for ParaView and others.

        The fields are those of `to_xarray`, at the points of their coordinates. u and v of a flow
        are the vectors ``velocity``.

        Parameters
        ----------
        path : path-like
            The file, usually ``*.vtk``. It is written completely or not at all.
        """
        dims = self._dims()
        axes = next(iter(dims.values())).split()[::-1]
        lines = [np.asarray(getattr(self, axis), float) for axis in axes]
        ends = [(float(line[0]), float(line[-1]), line.size) for line in lines]
        fields = {name: getattr(self, name) for name in dims}
        if "v" in fields:
            fields["velocity"] = np.stack([fields.pop("u"), fields.pop("v")], -1)
        write_vtk(
            path,
            self._table()[0],
            [size for _, _, size in ends],
            [low for low, _, _ in ends],
            [(high - low) / (size - 1) if size > 1 else 1.0 for low, high, size in ends],
            lines if self._has_lines else None,
            POINT_DATA=fields,
        )

    def _dims(self) -> Mapping[str, str]:
        """Return the dimensions of the fields of this object, which can depend on its axes."""
        return self._DIMS

    @property
    def _has_lines(self) -> bool:
        """Whether the coordinates are not evenly spaced."""
        return False


def write_vtk(
    path: str | os.PathLike[str],
    title: str,
    nodes: Sequence[int],
    origin: Sequence[float],
    spacing: Sequence[float],
    lines: Sequence[NDArray[Any]] | None = None,
    **data: Mapping[str, NDArray[Any]],
) -> None:
    """Write a VTK file (legacy format, binary) of structured points of one to three axes, x first.

    With `lines`, the coordinates along the axes, it is a rectilinear grid.
    `data` are POINT_DATA and CELL_DATA: scalars, and vectors with a last axis of length 2.
    """
    axes, more = len(nodes), 3 - len(nodes)
    dimensions = " ".join(map(str, [*nodes, *[1] * more]))
    starts = " ".join(map(repr, [*origin, *[0] * more]))
    steps = " ".join(map(repr, [*spacing, *[1] * more]))
    kind = "STRUCTURED_POINTS" if lines is None else "RECTILINEAR_GRID"
    head = f"# vtk DataFile Version 3.0\n{title}\nBINARY\nDATASET {kind}\nDIMENSIONS {dimensions}\n"
    with atomic_write(Path(path)) as stream:
        stream.write(head.encode())
        if lines is None:
            stream.write(f"ORIGIN {starts}\nSPACING {steps}\n".encode())
        else:
            for axis, line in zip("XYZ", [*lines, *[np.zeros(1)] * more], strict=True):
                stream.write(f"{axis}_COORDINATES {len(line)} double\n".encode())
                stream.write(np.asarray(line, ">f8").tobytes() + b"\n")
        for place, arrays in data.items():
            first = next(iter(arrays.values()))
            stream.write(f"{place} {prod(first.shape[:axes])}\n".encode())
            for name, array in arrays.items():
                kind = f"SCALARS {name} double 1\nLOOKUP_TABLE default"
                if array.ndim > axes:
                    kind = f"VECTORS {name} double"
                    array = np.concatenate([array, np.zeros_like(array[..., :1])], -1)
                stream.write(f"{kind}\n".encode() + array.astype(">f8").tobytes() + b"\n")
