"""The Poisson equation on a rectangle or a box, solved directly by transforms and lines."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._boundary import sides_of
from .._checks import index, require, require_finite
from .._domain import checked_extent, exactly_one
from .._errors import SingularSystemWarning
from .._repr import ShownAsText
from .._runtime.arrays import DTYPES, check_out
from .._runtime.fp_mode import in_default_fp_mode
from .._runtime.interop import kind_of, locate
from .._solver.settings import Settings
from .._views import read_only
from ..distributed import Group, Slab
from ..distributed._group import agreement_of, own_device
from ..distributed._systems import ranks_of
from ._axes import DIRICHLET, NEUMANN, Axis, AxisPart, check_lengths
from ._device import DevicePoisson
from ._host import HostPoisson
from ._sides import condition_value, kind_of_condition, require_kind, values_at

__all__ = ["FastPoisson", "checked_shape", "grid_axes"]

Array = NDArray[Any]

_OPERATION = "FastPoisson"
_NAMES = "xyz"

Grid = Literal["nodes", "cells"]
OnIncompatible = Literal["warn", "raise", "ignore"]


def _checked_dtype(name: str, dtype: Any, other: str = "") -> np.dtype:
    """Accept the dtypes of the backends."""
    del other
    kind = np.dtype(dtype)
    if kind.num not in DTYPES:
        raise TypeError(f"{name} must be float32, float64, complex64 or complex128, got {kind}")
    return DTYPES[kind.num]


@dataclass(frozen=True, kw_only=True, eq=False)
class PoissonSettings(Settings):
    """Parameters of `FastPoisson` without the sides; see there."""

    shape: Any
    spacing: Any
    extent: Any
    grid: Grid
    dtype: Annotated[Any, _checked_dtype]
    on_incompatible: OnIncompatible

    def _check(self) -> None:
        self._set("shape", checked_shape(self.shape))


class FastPoisson(ShownAsText):
    r"""Direct solver of the Poisson equation on an interval, a rectangle or a box.

    .. math:: u_{xx} + u_{yy} + u_{zz} = f

    by central differences of second order, with Dirichlet, Neumann and periodic sides in any
    combination. Sine, cosine or Fourier transforms along all axes but x leave one tridiagonal
    system along x for each combination of waves. Its matrices are factored when the solver is
    created. The grid can be stretched along x.

    Parameters
    ----------
    shape : int, (ny, nx) or (nz, ny, nx)
        Shape of the solution; x is the last axis.
    spacing : float, (hx, hy) or (hx, hy, hz), optional
        Distance between the nodes, or size of the cells: one number for all axes, or one for each
        axis in the order x, y, z. The grid then begins at 0. Instead of a number, the entry of x
        can be an ascending array of coordinates: of the nodes, or of the faces of the cells.
        Periodic nodes need one coordinate more, that of the image of the first node.
    boundary : Dirichlet, Neumann, 'periodic', number, array, callable or mapping
        Condition of all sides, or a mapping with the keys ``"x-"``, ``"x+"``, ``"y-"``, ... for
        one side or ``"x"``, ``"y"``, ``"z"`` for both sides of an axis. Each side must be given.
        `Dirichlet` gives u, `Neumann` the derivative :math:`\partial u/\partial n` along the
        outward normal. A number, an array or a function is a Dirichlet condition. A value is a
        number, an array that broadcasts to the side (the shape of the solution without the axis
        of the side), or a function of coordinates; see Notes. ``"periodic"`` applies to both
        sides of an axis.
    extent : ((x0, x1), (y0, y1)) or ((x0, x1), (y0, y1), (z0, z1)), optional
        Instead of `spacing`: ends of the domain along each axis.
    grid : {'nodes', 'cells'}, default: 'nodes'
        Where the values lie: on nodes, including those on the boundary, or in the centres of
        cells, half a cell away from the boundary. On periodic axes the node or cell after the
        last is the first.
    dtype : dtype, default: float64
        Dtype of the solution: float32, float64, complex64 or complex128.
    on_incompatible : {'warn', 'raise', 'ignore'}, default: 'warn'
        Reaction to a right side that has no solution because all sides are Neumann or periodic;
        see Notes.
    device : str, optional
        ``'cpu'``, the default, ``'cuda'`` or ``'cuda:N'``. A solver on a device takes arrays of
        CuPy, PyTorch, JAX and other libraries on this device, and copies NumPy arrays to the
        device and back. It needs cuFFT, which is in the extra ``cuda``.
    threads : int, optional
        Number of host threads; the backend chooses the default. The result has the same bits for
        any number.
    group : pysolvers.distributed.Group, optional
        Processes that each hold a part of the solution; see Notes.
    split : pysolvers.distributed.Slab, optional
        With `group`, the axis of the solution along which it is split.

    Attributes
    ----------
    shape : tuple of int
        Shape of the solution.
    grid : str
        The parameter.
    dtype : dtype
        Dtype of the solution.
    is_singular : bool
        Whether all sides are Neumann or periodic.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range; the message names the rule and
        the value.
    ModuleNotFoundError
        If SciPy is not installed; it is the extra ``poisson`` of the package. A device does not
        need it.
    BackendError
        If the device or cuFFT is not available.

    Notes
    -----
    At the nodes of a Dirichlet side the solution has the given value, and f is not used. Nodes
    that belong to two Dirichlet sides have the value of the side of the later axis in the order
    x, y, z; no equation contains them. A node that belongs to a Dirichlet and to a Neumann side
    has the Dirichlet value.

    The parameters of a function must be among x, y and z, in any order. It is called with arrays
    that broadcast.

    If all sides are Neumann or periodic, the solution is determined up to a constant. The solver
    returns the one with mean zero: the sum of u times the volume of its cell is zero, where a
    node on a Neumann side has half a cell. A solution exists only if the integral of f is the sum
    of the outward derivatives over the sides. The solver subtracts the mean of the difference
    from f. If this changes f by more than the square root of the rounding unit, relative to the
    root mean square of f (with the derivatives on the sides counted as part of f in the cells
    next to them), a `SingularSystemWarning` or an error states the mean. On a device the mean is
    subtracted without a report, because the call does not wait for the device.

    On a device the call enqueues the work on the stream and returns. With `out`, a solve can be
    captured in a CUDA graph if `boundary` is not given; the solver must then exist as long as the
    graph is used. SciPy's and cuFFT's transforms differ by rounding errors.

    With a `group`, `shape`, `extent` and `spacing` are those of the whole domain, of which each
    rank holds the part ``split.part(shape[axis], group.rank, group.size)``: `f`, the solution, the
    coordinates and arrays over the sides are those of the part. The tridiagonal systems lie along
    the split axis, so that transforms need no exchange; the systems exchange 2 numbers for each
    line of each rank. An axis with an array of coordinates must be the split one. `apply` is not
    offered. All ranks make the same calls. With ``device="cuda"`` each rank uses its own device; a
    call waits for the device, and cannot be captured in a graph.

    The rounding errors of the solution do not grow with the condition number of the Laplacian: if
    f has no values that cancel in the solution, the largest error is a few rounding units of the
    largest value up to 100 nodes along x, and grows as the number of these nodes, for any ratio of
    the spacings of the axes. In float32, a smooth solution on 1000 nodes has an error of about
    2e-6.

    References
    ----------
    .. [1] R. W. Hockney, "A fast direct solution of Poisson's equation using Fourier analysis",
       J. ACM 12 (1965) 95-113.
    .. [2] P. N. Swarztrauber, "The methods of cyclic reduction, Fourier analysis and the FACR
       algorithm for the discrete solution of Poisson's equation on a rectangle", SIAM Review 19
       (1977) 490-501.
    .. [3] U. Schumann and R. A. Sweet, "Fast Fourier transforms for direct solution of Poisson's
       equation with staggered boundary conditions", J. Comput. Phys. 75 (1988) 123-137.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import FastPoisson, Neumann
    >>> solver = FastPoisson((33, 65), 1 / 32, boundary={"x-": 1.0, "x+": 0.0, "y": Neumann()})
    >>> u = solver.solve(0.0)
    >>> bool(np.allclose(u, 1 - solver.x / 2))
    True
    """

    @in_default_fp_mode
    def __init__(
        self,
        shape: int | Sequence[int],
        spacing: Any = None,
        *,
        boundary: Any,
        extent: Sequence[Sequence[float]] | None = None,
        grid: Grid = "nodes",
        dtype: Any = np.float64,
        on_incompatible: OnIncompatible = "warn",
        device: str | None = None,
        threads: int | None = None,
        group: Group | None = None,
        split: Slab | None = None,
    ) -> None:
        with agreement_of(group, _OPERATION) as agreed:
            self._settings = settings = PoissonSettings(
                shape=shape,
                spacing=spacing,
                extent=extent,
                grid=grid,
                dtype=dtype,
                on_incompatible=on_incompatible,
                device=own_device(device, group),
                threads=threads,
            )
            self.shape, self.grid, self.dtype = settings.shape, settings.grid, settings.dtype
            names = _NAMES[: len(self.shape)]
            conditions = sides_of(boundary, names)
            kinds = {side: kind_of_condition(side, given) for side, given in conditions.items()}
            self._axes: list[Any] = grid_axes(self.shape, spacing, extent, grid, kinds)
            check_lengths(self._axes, self.dtype)
            self._line = len(self.shape) - 1  # axis of the tridiagonal systems
            self._group, slab = ranks_of(group, split)
            if split is not None:
                self._hold_part(slab)
            self._values = {
                side: self._side_values(side, condition)
                for side, condition in conditions.items()
                if kinds[side] in (DIRICHLET, NEUMANN)
            }
            if agreed is not None:
                agreed.same = settings.agreed() | {"boundary": self.boundary, "split": split}
                del agreed.same["spacing"], agreed.same["extent"]  # can be arrays
                agreed.same["dtype"] = str(self.dtype)
        self._host: HostPoisson | None = None
        self._device: DevicePoisson | None = None
        axes = [
            *self._axes[: self._line],
            *self._axes[self._line + 1 :],
            self._axes[self._line],
        ]
        if not settings.is_on_device:
            count = settings.call_threads
            self._host = HostPoisson(axes, self.dtype, count, self._group)
        else:
            self._device = DevicePoisson(
                axes, self.dtype, str(settings.device), self._line, self._group
            )
            additions, values = self._given_on_device(self._values)
            self._kept_additions = self._device.kept(additions)
            self._kept_values = self._device.kept(values)
        self.is_singular = all(axis.has_null_vector for axis in self._axes)

    @property
    def settings(self) -> PoissonSettings:
        """The parameters of the solver, each by its name: a frozen dataclass."""
        return self._settings

    @property
    def x(self) -> NDArray[np.float64]:
        """Coordinates along x of the nodes or of the centres of the cells."""
        return self._coordinates("x")

    @property
    def y(self) -> NDArray[np.float64]:
        """Coordinates along y; an error in one dimension."""
        return self._coordinates("y")

    @property
    def z(self) -> NDArray[np.float64]:
        """Coordinates along z; an error in one and two dimensions."""
        return self._coordinates("z")

    @property
    def boundary(self) -> dict[str, str]:
        """Kind of each side: ``'Dirichlet'``, ``'Neumann'`` or ``'periodic'``."""
        return {
            axis.name + sign: end
            for axis in reversed(self._axes)
            for sign, end in zip("-+", axis.ends, strict=True)
        }

    @property
    def nbytes(self) -> int:
        """Size of the matrices of all waves, as they are stored, in bytes."""
        engine = self._host or self._device
        assert engine is not None
        return engine.nbytes

    def __repr__(self) -> str:
        kinds = ", ".join(f"{side}: {kind}" for side, kind in self.boundary.items())
        return f"<FastPoisson shape={self.shape} grid={self.grid} dtype={self.dtype} {kinds}>"

    def solve(
        self,
        f: Any,
        *,
        boundary: Mapping[str, Any] | None = None,
        out: Any = None,
        stream: object = None,
    ) -> Any:
        """Solve for one right side.

        Several threads can solve with one solver at the same time.

        Parameters
        ----------
        f : number, array_like or callable
            Right side, as an array that broadcasts to `shape` or as a function of coordinates.
            It is not changed. NumPy arrays are converted to the dtype of the solver. A solver on
            a device also takes arrays on this device, of its own dtype.
        boundary : mapping, optional
            New conditions of some sides for this call, with the keys of the parameter `boundary`
            of the solver. The kind of each side must be the same as in the solver. The other
            sides keep the values given to the solver.
        out : array, optional
            Array for the solution, of the shape and dtype of the solver. It can be `f`.
        stream : int or object, optional
            Stream of the device on which the work is enqueued; as in `solve_tridiagonal`.

        Returns
        -------
        u : array
            The solution; `out` if it was given. For `f` on a device an array of its library,
            otherwise a NumPy array.

        Raises
        ------
        TypeError
            If values are not numbers, or complex in a real solver, or the kind of a side changes.
        ValueError
            If values do not broadcast to their place or `out` cannot hold the solution; with
            ``on_incompatible='raise'``, if there is no solution.
        """
        if self._device is not None:
            return self._solve_on_device(self._device, f, boundary, out, stream)
        with self._group.agreement(_OPERATION):
            changed = {} if boundary is None else self._changed(boundary)
            if stream is not None:
                raise ValueError(f"stream must be None on the CPU, got {stream!r}")
            if locate(f) is not None:
                raise TypeError(
                    f"f is a {kind_of(f)} on a device, but the solver is on the CPU: "
                    "create FastPoisson with device='cuda'"
                )
            shape = tuple(axis.size for axis in self._axes)
            right = np.asarray(values_at("f", f, self._places(), shape, self.dtype))
            values = self._values | changed
            additions = self._additions(values)
            if out is None:
                result = np.empty(shape, self.dtype)
            else:
                result = check_out(out, shape, self.dtype, {})
        assert self._host is not None
        line = self._line
        if line == len(shape) - 1:
            defect = self._host.solve(right, additions, result)
        else:
            right = np.moveaxis(np.broadcast_to(right, shape), line, -1)
            defect = self._host.solve(
                right, self._lines_last(additions), np.moveaxis(result, line, -1)
            )
        self._write_sides(values, result)
        if defect > sqrt(np.finfo(self.dtype).eps):
            self._report(defect)
        return result

    @in_default_fp_mode
    def apply(self, u: ArrayLike, *, boundary: Mapping[str, Any] | None = None) -> Array:
        """Return the discrete Laplacian of a field.

        Parameters
        ----------
        u : array_like, shape of the solver
            The field. Values on nodes of Dirichlet sides are not read: those of the sides are
            used.
        boundary : mapping, optional
            As in `solve`.

        Returns
        -------
        laplacian : ndarray
            The left side of the equations that `solve` solves, the values of the sides included;
            zero on nodes of Dirichlet sides, which have no equation.
        """
        if self._group.size > 1:
            raise ValueError("apply needs the whole field: create FastPoisson without a group")
        given = np.asarray(values_at("u", u, self._places(), self.shape, self.dtype), self.dtype)
        values = self._values if boundary is None else self._values | self._changed(boundary)
        inner = tuple(axis.unknowns for axis in self._axes)
        field = np.broadcast_to(given, self.shape)[inner]
        total = np.zeros(field.shape, self.dtype)
        for k, axis in enumerate(self._axes):
            lower, diag, upper = (
                a.astype(total.real.dtype).reshape((-1,) + (1,) * (len(self._axes) - 1 - k))
                for a in axis.rows
            )
            total += diag * field
            before, after = np.roll(field, 1, k), np.roll(field, -1, k)
            if not axis.is_periodic:
                before[_at(k, 0)] = 0
                after[_at(k, -1)] = 0
            total += lower * before + upper * after
        for (k, end), addition in self._additions(values).items():
            total[_at(k, -end)] -= addition
        result = np.zeros(self.shape, self.dtype)
        result[inner] = total
        return result

    def _hold_part(self, split: Slab) -> None:
        """Replace the axis that is split by the part of this rank: the lines lie along it."""
        line = split.of(len(self.shape))
        for axis in self._axes:
            require(
                axis is self._axes[line] or axis.step is not None,
                "split must be the axis whose spacing is an array of coordinates,",
                split,
            )
        if self._group.size == 1:
            return
        self._line = line
        part = split.part(self.shape[self._line], self._group.rank, self._group.size)
        self._axes[self._line] = AxisPart(self._axes[self._line], part)

    def _lines_last(
        self, additions: Mapping[tuple[int, int], Array]
    ) -> dict[tuple[int, int], Array]:
        """Return additions for axes in another order: that of the lines last."""
        found, line = {}, self._line
        for (k, end), values in additions.items():
            if k == line:
                found[len(self.shape) - 1, end] = values
            else:
                found[k - (k > line), end] = np.moveaxis(values, line - (line > k), -1)
        return found

    def _coordinates(self, name: str) -> NDArray[np.float64]:
        """Return the coordinates along an axis, or raise AttributeError if there is none."""
        axis = next((axis for axis in self._axes if axis.name == name), None)
        if axis is None:
            raise AttributeError(f"a solver of shape {self.shape} has no axis {name}")
        return read_only(axis.places)

    def _places(self, without: str = "") -> dict[str, Array]:
        """Return coordinates by name that broadcast to the shape without one axis."""
        kept = [axis for axis in self._axes if axis.name != without]
        return {
            axis.name: axis.places.reshape((-1,) + (1,) * (len(kept) - 1 - k))
            for k, axis in enumerate(kept)
        }

    def _side_values(self, side: str, condition: Any) -> Array:
        """Return what a condition prescribes on a side, in the dtype of the solver."""
        axis = next(axis for axis in self._axes if axis.name == side[0])
        kept = [other for other in self._axes if other is not axis]
        places = self._places(without=side[0])
        places[side[0]] = axis.edges[0 if side[1] == "-" else -1]
        shape = tuple(other.size for other in kept)
        given = condition_value(condition)
        values = values_at(f"boundary {side}", given, places, shape, self.dtype)
        return np.array(values, self.dtype)

    def _changed(self, boundary: Mapping[str, Any]) -> dict[str, Array]:
        """Return the values of the sides that a call gives."""
        if not isinstance(boundary, Mapping):
            raise TypeError(
                "boundary of solve must be a mapping of sides to conditions, for example "
                f"{{'x-': 1.0}}, got {type(boundary).__name__}"
            )
        kinds, found = self.boundary, {}
        for side, condition in sides_of(
            boundary, _NAMES[: len(self.shape)], complete=False
        ).items():
            require_kind(side, condition, kinds[side])
            if side in self._values:
                found[side] = self._side_values(side, condition)
        return found

    @in_default_fp_mode
    def _additions(self, values: Mapping[str, Array]) -> dict[tuple[int, int], Array]:
        """Return what the sides add to the right side of the unknowns next to them."""
        found = {}
        for k, axis in enumerate(self._axes):
            kept = [other for other in self._axes if other is not axis]
            for end, sign in enumerate("-+"):
                given = values.get(axis.name + sign)
                if given is None or not axis.holds[end] or not given.any():
                    continue
                whole = np.broadcast_to(given, [other.size for other in kept])
                part = whole[tuple(other.unknowns for other in kept)]
                found[k, end] = part * np.asarray(-axis.side_factor(end)).astype(part.real.dtype)
        return found

    def _write_sides(self, values: Mapping[str, Array], result: Array) -> None:
        """Write the values of Dirichlet sides to their nodes, in the order x, y, z."""
        for (k, end), given in self._node_values(values).items():
            result[_at(k, -end)] = given

    def _node_values(self, values: Mapping[str, Array]) -> dict[tuple[int, int], Array]:
        """Return the values of the Dirichlet nodes in the order x, y, z."""
        if self.grid != "nodes":
            return {}
        return {
            (k, end): values[axis.name + sign]
            for k, axis in reversed(list(enumerate(self._axes)))
            for end, sign in enumerate("-+")
            if axis.ends[end] == DIRICHLET and axis.holds[end]
        }

    def _given_on_device(
        self, values: Mapping[str, Array]
    ) -> tuple[dict[tuple[int, int], Array], dict[tuple[int, int], Array]]:
        """Return what sides add, and the values of Dirichlet nodes, for the lines last."""
        nodes = {}
        for (k, end), given in self._node_values(values).items():
            kept = [other.size for j, other in enumerate(self._axes) if j != k]
            nodes[k, end] = np.broadcast_to(given, kept)
        return self._lines_last(self._additions(values)), self._lines_last(nodes)

    def _solve_on_device(
        self,
        engine: DevicePoisson,
        f: Any,
        boundary: Mapping[str, Any] | None,
        out: Any,
        stream: object,
    ) -> Any:
        """Solve with the side values that are kept on the device, but for those that change."""
        shape = tuple(axis.size for axis in self._axes)
        with self._group.agreement(_OPERATION):
            changed = {} if boundary is None else self._changed(boundary)
            if locate(f) is None:
                right = values_at("f", f, self._places(), shape, self.dtype)
                f = np.asarray(right, self.dtype)
            additions, values = self._kept_additions, self._kept_values
            if changed:
                last = len(shape) - 1
                new = {
                    (last if k == self._line else k - (k > self._line), end)
                    for k, axis in enumerate(self._axes)
                    for end, sign in enumerate("-+")
                    if axis.name + sign in changed
                }
                additions = {key: a for key, a in additions.items() if key not in new}
                additions |= self._lines_last(self._additions(changed))
                given = self._given_on_device(self._values | changed)[1]
                values = {key: given[key] if key in new else a for key, a in values.items()}
        return engine.solve(f, additions, values, shape, out, stream)

    def _report(self, defect: float) -> None:
        """Report a right side without a solution."""
        if self._settings.on_incompatible == "ignore":
            return
        text = (
            "FastPoisson.solve: all sides are Neumann or periodic, so that the integral of f must "
            "be that of the outward derivatives on the sides, but f minus the derivatives has a "
            f"mean of {defect:.3g} times its root mean square"
        )
        if self._settings.on_incompatible == "raise":
            raise ValueError(f"{text}: subtract the mean, or pass on_incompatible='ignore'")
        text += "; the mean was subtracted (on_incompatible='ignore' omits this warning)"
        warnings.warn(text, SingularSystemWarning, stacklevel=3)


def _at(axis: int, place: int) -> tuple[Any, ...]:
    """Return the index of one layer along an axis."""
    return (slice(None),) * axis + (place,)


def grid_axes(
    shape: Sequence[int], spacing: Any, extent: Any, grid: str, kinds: Mapping[str, str]
) -> list[Axis]:
    """Return the axes in the order of the array, x last; `kinds` of the sides by name."""
    edges = _edges(tuple(shape), spacing, extent, grid, kinds)
    return [
        Axis(name, size, grid == "nodes", (kinds[name + "-"], kinds[name + "+"]), *edges[name])
        for name, size in zip(reversed(_NAMES[: len(shape)]), shape, strict=True)
    ]


def checked_shape(shape: Any) -> tuple[int, ...]:
    """Return the shape of a solution, or raise TypeError or ValueError."""
    if not isinstance(shape, tuple | list):
        return (index("shape", shape, 1),)
    require(1 <= len(shape) <= 3, "shape must have 1, 2 or 3 axes", tuple(shape))
    return tuple(index("shape", size, 1) for size in shape)


def _edges(
    shape: tuple[int, ...], spacing: Any, extent: Any, grid: str, kinds: Mapping[str, str]
) -> dict[str, tuple[NDArray[np.float64], float | None]]:
    """Return nodes or faces along each axis, and their distance if it is constant."""
    exactly_one("FastPoisson", spacing, extent)
    names = _NAMES[: len(shape)]
    counts = {
        name: size + int(grid == "cells" or kinds[name + "-"] == "periodic")
        for name, size in zip(names, reversed(shape), strict=True)
    }
    found: dict[str, tuple[NDArray[np.float64], float | None]] = {}
    if extent is not None:
        for name, (low, high) in checked_extent(extent, names).items():
            intervals = counts[name] - 1
            require(intervals > 0, f"shape must have at least 2 nodes along {name}", shape)
            edges: Any = np.linspace(low, high, counts[name])
            found[name] = edges, (high - low) / intervals
        return found
    for name, step in zip(names, _per_axis(spacing, names), strict=True):
        if np.ndim(step):
            found[name] = _coordinates(name, step, counts[name], grid)
            continue
        require_finite(f"spacing along {name}", step)
        require(step > 0, f"spacing along {name} must be positive", step)
        places: Any = np.arange(counts[name]) * float(step)
        found[name] = places, float(step)
    return found


def _per_axis(spacing: Any, names: str) -> list[Any]:
    """Return the spacing of each axis: a number, or an array of the distances of nodes."""
    is_array = isinstance(spacing, np.ndarray)
    if not isinstance(spacing, tuple | list) and not (is_array and spacing.ndim):
        return [spacing] * len(names)
    if is_array and len(names) == 1:
        return [spacing]
    require(
        len(spacing) == len(names),
        f"spacing must be a number, or a tuple with an entry for each of {', '.join(names)}",
        spacing,
    )
    return list(spacing)


def _coordinates(name: str, given: Any, count: int, grid: str) -> tuple[NDArray[np.float64], None]:
    """Return checked coordinates along the axis of the lines."""
    what = "nodes" if grid == "nodes" else "faces of the cells"
    require(
        name == "x",
        "spacing can be an array of coordinates along x only, the axis of the tridiagonal systems; "
        "swap the axes, or give a number along",
        name,
    )
    edges = np.array(given, np.float64)
    require(
        edges.shape == (count,),
        f"spacing along x must have the coordinates of {count} {what}, shape ({count},)",
        edges.shape,
    )
    require(bool(np.isfinite(edges).all()), "spacing along x must be finite", edges)
    require(bool((np.diff(edges) > 0).all()), "spacing along x must be ascending", edges)
    return edges, None
