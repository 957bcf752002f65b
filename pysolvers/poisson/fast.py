"""The Poisson and the Helmholtz equation on a rectangle, a box, a cylinder or a sphere."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._axis import DIRICHLET, ON_AXIS, PERIODIC
from .._checks import require
from .._errors import SingularSystemWarning
from .._repr import ShownAsText
from .._runtime.arrays import DTYPES, check_out
from .._runtime.fp_mode import in_default_fp_mode
from .._runtime.interop import kind_of, locate
from .._solver.settings import Settings
from .._views import read_only
from ..distributed import Group, Slab
from ..distributed._group import agreement_of, own_device
from ..distributed._links import link_name
from ..distributed._systems import ranks_of
from ._axes import AxisPart, check_lengths
from ._device import DevicePoisson, mirrors, packs
from ._grid import Geometry, checked_shape, grid_of
from ._host import HostPoisson
from ._methods import EIGENVECTORS, FEW, LINES, TRANSFORM, Method, methods_of
from ._sides import condition_value, conditions_of, require_kind, values_at

__all__ = ["FastPoisson"]

Array = NDArray[Any]

_OPERATION = "FastPoisson"
_NAMES = "xyz"
_OF_SIDES = ": conditions of several sides are a mapping, for example {'x': 0.0, 'y': Neumann()}"

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
    helmholtz: float
    grid: Grid
    geometry: Geometry
    methods: Any
    dtype: Annotated[Any, _checked_dtype]
    on_incompatible: OnIncompatible

    def _check(self) -> None:
        self._set("shape", checked_shape(self.shape))


class FastPoisson(ShownAsText):
    r"""Direct solver of the Poisson and the Helmholtz equation on boxes, cylinders and spheres.

    .. math:: u_{xx} + u_{yy} + u_{zz} - c\, u = f

    on an interval, a rectangle or a box, by differences of second order, with Dirichlet, Neumann,
    Robin and periodic sides in any combination, and any spacing along any axis. In a cylinder or a
    sphere the term of x is that of the radius, :math:`r^{-p} (r^p u_r)_r` with p = 1 or 2. Each
    axis is solved by one of three methods: a sine, cosine or Fourier transform; products with the
    eigenvectors of its rows; or, along one axis, tridiagonal systems, one for each combination of
    waves of the other axes. Their matrices are made when the solver is created.

    Parameters
    ----------
    shape : int, (ny, nx) or (nz, ny, nx)
        Shape of the solution; x is the last axis.
    spacing : float, (hx, hy) or (hx, hy, hz), optional
        Distance between the nodes, or size of the cells: one number for all axes, or one for each
        axis in the order x, y, z. The grid then begins at 0. Instead of a number, an entry can be
        an ascending array of coordinates: of the nodes, or of the faces of the cells. Periodic
        nodes need one coordinate more, that of the image of the first node.
    boundary : Dirichlet, Neumann, Robin, 'periodic', number, array, callable or mapping
        Condition of all sides, or a mapping with the keys ``"x-"``, ``"x+"``, ``"y-"``, ... for
        one side or ``"x"``, ``"y"``, ``"z"`` for both sides of an axis. Each side must be given.
        `Dirichlet` gives u, `Neumann` the derivative :math:`\partial u/\partial n` along the
        outward normal, `Robin` :math:`\partial u/\partial n = H (u_\infty - u)` with one number
        H for the side and values :math:`u_\infty`. A number, an array or a function is a
        Dirichlet condition. A value is a number, an array that broadcasts to the side (the shape
        of the solution without the axis of the side), or a function of coordinates; see Notes.
        ``"periodic"`` applies to both sides of an axis. The axis r = 0 of a cylinder or sphere is
        no side and has no condition.
    extent : ((x0, x1), (y0, y1)) or ((x0, x1), (y0, y1), (z0, z1)), optional
        Instead of `spacing`: ends of the domain along each axis.
    helmholtz : float, default: 0
        The number c, in 1 / length^2. If c < 0, the equation has no unique solution for some
        values; see Notes.
    grid : {'nodes', 'cells'}, default: 'nodes'
        Where the values lie: on nodes, including those on the boundary, or in the centres of
        cells, half a cell away from the boundary. On periodic axes the node or cell after the
        last is the first.
    geometry : {'cartesian', 'cylinder', 'sphere'}, default: 'cartesian'
        In a cylinder x is the radius and y the axial coordinate z, in a sphere x is the radius,
        and the only axis; the solution does not depend on angles. Radii are not negative.
    methods : mapping, optional
        Methods of some axes, ``{'x': 'transform'}``: ``'transform'``, ``'eigenvectors'`` or
        ``'lines'``; chosen by default, see Notes.
    dtype : dtype, default: float64
        Dtype of the solution: float32, float64, complex64 or complex128.
    on_incompatible : {'warn', 'raise', 'ignore'}, default: 'warn'
        Reaction to a right side that has no solution because all sides are Neumann or periodic
        and c = 0; see Notes.
    device : str, optional
        ``'cpu'``, the default, ``'cuda'`` or ``'cuda:N'``. A solver on a device takes arrays of
        CuPy, PyTorch, JAX and other libraries on this device, and copies NumPy arrays to the
        device and back. It needs cuFFT and cuBLAS, which are in the extra ``cuda``.
    threads : int, optional
        Number of host threads; the backend chooses the default. The result has the same bits for
        any number. Products with matrices of more than 128 rows run on the threads of the BLAS
        of NumPy; those of n eigenvectors of a symmetric axis have (n + 1) // 2 rows.
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
    geometry : str
        The parameter.
    helmholtz : float
        The parameter.
    is_singular : bool
        Whether all sides are Neumann or periodic and c = 0.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range; the message names the rule and
        the value.
    SingularSystemError
        If c < 0 is an eigenvalue of the discrete operator, up to rounding errors.
    ModuleNotFoundError
        If SciPy is not installed; it is the extra ``poisson`` of the package. A device needs it
        for eigenvectors only.
    BackendError
        If the device, cuFFT or cuBLAS is not available.

    Notes
    -----
    At the nodes of a Dirichlet side the solution has the given value, and f is not used. Nodes
    that belong to two Dirichlet sides have the value of the side of the later axis in the order
    x, y, z; no equation contains them. A node that belongs to a Dirichlet and to a Neumann side
    has the Dirichlet value.

    Leading axes of f are a batch of right sides, which are solved together.

    At most one axis has lines. They cost least and lose no digits, but need :math:`c \ge 0`. The
    axis that takes longest otherwise, by counted words and operations, has them: the longest one
    without a transform, if it has 150 nodes or more. If all take equally long, it is the first axis
    of the array, but x for up to 80 unknowns along each axis. Other axes have transforms if they
    are uniform, without Robin sides and no radius; coordinates with equal distances up to their
    rounding errors are uniform. On a CPU uniform axes of up to 80 real unknowns have eigenvectors,
    too: the products are faster. A product takes 2 n operations per unknown for an axis of n
    unknowns; the eigenvectors are computed in float64, with small relative errors of all
    eigenvalues for any stretching. On a device a transform whose length has a prime factor above
    127, or that is extended (nodes of boxes between sides of one kind), is replaced by products
    where these take less time. `methods` and the `repr` show the choice.

    With c < 0 no axis has lines, and the operator has eigenvalues on both sides of c.
    `eigenvalue_distance` is the distance to the nearest one. If it is at most 64 rounding units of
    c, the solver raises `SingularSystemError`; if at most their square root, it issues a
    `SingularSystemWarning`.

    The parameters of a function must be among x, y and z, in any order. It is called with arrays
    that broadcast.

    If all sides are Neumann or periodic and c = 0, the solution is determined up to a constant. The
    solver returns the one with mean zero: the sum of u times the volume of its cell is zero, where
    a node on a Neumann side has half a cell. A solution exists only if the integral of f is the sum
    of the outward derivatives over the sides. The solver subtracts the mean of the difference
    from f. If this changes f by more than the square root of the rounding unit, relative to the
    root mean square of f (with the derivatives on the sides counted as part of f in the cells
    next to them), a `SingularSystemWarning` or an error states the mean. On a device the mean is
    subtracted without a report, because the call does not wait for the device.

    On a device products with eigenvectors are those of cuBLAS, whose matrices are made on the CPU
    with SciPy. Fields of a batch that fit into the cache of the device share their calls.

    On a device the call enqueues the work on the stream and returns. With `out`, a solve can be
    captured in a CUDA graph if `boundary` is not given; the solver must then exist as long as the
    graph is used. SciPy's and cuFFT's transforms differ by rounding errors.
    Solves that are repeated with the same arrays are a graph of the solver's own, if the waves take
    at most 384 MB; the solver keeps the memory of its last graphs: 512 MB, or that of two.

    With a `group`, `shape`, `extent` and `spacing` are those of the whole domain, of which each
    rank holds the part ``split.part(shape[axis], group.rank, group.size)``: `f`, the solution, the
    coordinates and arrays over the sides are those of the part. The tridiagonal systems lie along
    the split axis, so that transforms need no exchange; the other axes have transforms or
    eigenvectors. The systems exchange 2 numbers for each line of each rank: `exchange` names the
    link. c is not negative, and `apply` is not offered. All ranks make the same calls. With
    ``device="cuda"`` each rank uses its own device; a call waits for the device, and cannot be
    captured in a graph.

    The rounding errors of the solution do not grow with the condition number of the Laplacian: if
    f has no values that cancel in the solution, the largest error is a few rounding units of the
    largest value up to 100 nodes along the lines, and grows as the number of these nodes, for any
    ratio of the spacings of the axes and along an axis. In float32, a smooth solution on 1000 nodes
    has an error of about 2e-6.

    References
    ----------
    .. [1] R. W. Hockney, "A fast direct solution of Poisson's equation using Fourier analysis",
       J. ACM 12 (1965) 95-113.
    .. [2] P. N. Swarztrauber, "The methods of cyclic reduction, Fourier analysis and the FACR
       algorithm for the discrete solution of Poisson's equation on a rectangle", SIAM Review 19
       (1977) 490-501.
    .. [3] U. Schumann and R. A. Sweet, "Fast Fourier transforms for direct solution of Poisson's
       equation with staggered boundary conditions", J. Comput. Phys. 75 (1988) 123-137.

    .. [4] R. E. Lynch, J. R. Rice and D. H. Thomas, "Direct solution of partial difference
       equations by tensor product methods", Numer. Math. 6 (1964) 185-199.
    .. [5] T. Ogita and K. Aishima, "Iterative refinement for symmetric eigenvalue decomposition",
       Japan J. Indust. Appl. Math. 35 (2018) 1007-1035.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import FastPoisson, Neumann
    >>> solver = FastPoisson((33, 65), 1 / 32, boundary={"x-": 1.0, "x+": 0.0, "y": Neumann()})
    >>> u = solver.solve(0.0)
    >>> bool(np.allclose(u, 1 - solver.x / 2))
    True

    A pipe with a wall at r = 1, between two planes; u = (1 - r^2) / 4 far from these.

    >>> pipe = FastPoisson(
    ...     (81, 33), extent=((0, 1), (0, 8)), boundary={"x+": 0.0, "y": 0.0}, geometry="cylinder"
    ... )
    >>> u = pipe.solve(-1.0)
    >>> print(f"{u[40, 0]:.4f}")
    0.2500
    """

    @in_default_fp_mode
    def __init__(
        self,
        shape: int | Sequence[int],
        spacing: Any = None,
        *,
        boundary: Any,
        extent: Sequence[Sequence[float]] | None = None,
        helmholtz: float = 0.0,
        grid: Grid = "nodes",
        geometry: Geometry = "cartesian",
        methods: Mapping[str, Method] | None = None,
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
                helmholtz=helmholtz,
                grid=grid,
                geometry=geometry,
                methods=methods,
                dtype=dtype,
                on_incompatible=on_incompatible,
                device=own_device(device, group),
                threads=threads,
            )
            self.shape, self.grid, self.dtype = settings.shape, settings.grid, settings.dtype
            self.geometry, self.helmholtz = settings.geometry, settings.helmholtz
            place = grid_of(self.shape, spacing, extent, grid, boundary, geometry)
            self._axes: list[Any] = list(place.axes)
            check_lengths(place.axes, self.dtype)
            self.is_singular = not self.helmholtz and all(a.has_null_vector for a in place.axes)
            self._group, slab = ranks_of(group, split)
            ranks = self._group.size
            packed = mirrored = False
            if settings.is_on_device and (ranks == 1 or slab.of(len(self.shape)) == 0):
                where = place.axes, self.dtype, str(settings.device), self.helmholtz, ranks
                packed, mirrored = packs(*where), mirrors(*where)
            self._methods = methods_of(
                place.axes,
                methods,
                helmholtz=self.helmholtz,
                split=None if split is None else slab.of(len(self.shape)),
                few=FEW if self.dtype.kind == "f" and not settings.is_on_device else 0,
                on_device=settings.is_on_device,
                packed=packed,
                mirrored=mirrored,
            )
            others = EIGENVECTORS if mirrored else TRANSFORM
            packed |= mirrored
            packed &= self._methods == (LINES, *[others] * (len(place.axes) - 1))
            # Axis of the tridiagonal systems, or of the last products, on a device; packed waves
            # keep the order of the axes.
            last = LINES if LINES in self._methods else EIGENVECTORS
            self._line = self._methods.index(last) if last in self._methods else 0
            if ranks > 1:
                self._hold_part(slab)
            self._values = {
                side: self._side_values(side, condition)
                for side, condition in place.conditions.items()
                if place.kinds[side] not in (PERIODIC, ON_AXIS)
            }
            if agreed is not None:
                agreed.same = settings.agreed() | {"boundary": self.boundary, "split": split}
                del agreed.same["spacing"], agreed.same["extent"]  # can be arrays
                agreed.same["dtype"] = str(self.dtype)
        self._host: HostPoisson | None = None
        self._device: DevicePoisson | None = None
        self._link = "none" if ranks == 1 else "host"
        if settings.is_on_device and ranks > 1:
            self._link = link_name(self._group, _OPERATION, settings.device)
        if packed:
            self._line = len(place.axes) - 1
        if not settings.is_on_device:
            rest = settings.call_threads, self._group, self._methods, self.helmholtz
            self._host = HostPoisson(self._axes, self.dtype, *rest)
        else:
            order = [k for k in range(len(self._axes)) if k != self._line] + [self._line]
            self._device = DevicePoisson(
                [self._axes[k] for k in order],
                self.dtype,
                str(settings.device),
                self._line,
                self._group,
                self.helmholtz,
                None if packed else [self._methods[k] for k in order],
            )
            additions, values = self._given_on_device(self._values)
            self._kept_additions = self._device.kept(additions)
            self._kept_values = self._device.kept(values)

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
        """Kind of each side: ``'Dirichlet'``, ``'Neumann'``, ``'Robin'`` or ``'periodic'``.

        ``'axis'`` is the end r = 0 of a radial axis.
        """
        return {
            axis.name + sign: end
            for axis in reversed(self._axes)
            for sign, end in zip("-+", axis.ends, strict=True)
        }

    @property
    def nbytes(self) -> int:
        """Size of the matrices of all waves and axes, as they are stored, in bytes."""
        engine = self._host or self._device
        assert engine is not None
        return engine.nbytes

    @property
    def methods(self) -> dict[str, Method]:
        """Method of each axis: ``'transform'``, ``'eigenvectors'`` or ``'lines'``."""
        return {a.name: m for a, m in reversed(list(zip(self._axes, self._methods, strict=True)))}

    @property
    def exchange(self) -> str:
        """How the ranks of a group exchange numbers: ``'peers'``, ``'nccl'`` or ``'host'``.

        ``'none'`` with one process.
        """
        return self._link

    @property
    def eigenvalue_distance(self) -> float:
        r"""Distance of `helmholtz` to the nearest eigenvalue of the discrete operator.

        :math:`\min |\lambda - c|`; the solution changes by the change of f divided by this
        distance at most, in the norm weighted by the volumes. It is 0 if `is_singular`. Read for
        the first time, it can take the eigenvalues of the axis of the lines.
        """
        if self.helmholtz < 0:
            engine = self._host or self._device
            assert engine is not None
            return engine.distance
        whole = [getattr(axis, "whole", axis) for axis in self._axes]
        return self.helmholtz - float(sum(axis.spectrum.max() for axis in whole))

    def __repr__(self) -> str:
        kinds = ", ".join(f"{side}: {kind}" for side, kind in self.boundary.items())
        methods = ", ".join(f"{axis}: {method}" for axis, method in self.methods.items())
        equation = f" helmholtz={self.helmholtz:g}" if self.helmholtz else ""
        equation += f" geometry={self.geometry}" if self.geometry != "cartesian" else ""
        group = self._group
        cut = ""
        if group.size > 1:
            axis = next(axis.name for axis in self._axes if isinstance(axis, AxisPart))
            cut = f"\n  cut along {axis}, rank {group.rank} of {group.size}, exchange {self._link}"
        return (
            f"<FastPoisson shape={self.shape} grid={self.grid} dtype={self.dtype}{equation}\n"
            f"  sides {kinds}\n"
            f"  methods {methods}{cut}>"
        )

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
            Leading axes before those of `shape` are a batch. It is not changed. NumPy arrays are
            converted to the dtype of the solver. A solver on a device also takes arrays on this
            device, of its own dtype.
        boundary : mapping, optional
            New conditions of some sides for this call, with the keys of the parameter `boundary`
            of the solver. The kind of each side, and the coefficient of a Robin side, must be the
            same as in the solver. Arrays can have the leading axes of the batch, on a CPU. The
            other sides keep the values given to the solver.
        out : array, optional
            Array for the solution, of the dtype of the solver and its shape, with the leading axes
            of the batch. It can be `f`.
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
            given = values_at("f", f, self._places(), shape, self.dtype, batch=True)
            right = np.asarray(given)
            values = self._values | changed
            additions = self._additions(values)
            whole = self._batch_of(right, changed) + shape
            if out is None:
                result = np.empty(whole, self.dtype)
            else:
                result = check_out(out, whole, self.dtype, {})
        assert self._host is not None
        defect = self._host.solve(right, additions, result)
        self._write_sides(values, result)
        if defect > sqrt(np.finfo(self.dtype).eps):
            self._report(defect)
        return result

    @in_default_fp_mode
    def apply(self, u: ArrayLike, *, boundary: Mapping[str, Any] | None = None) -> Array:
        """Return the discrete Laplacian of a field, less `helmholtz` times the field.

        Parameters
        ----------
        u : array_like, shape of the solver
            The field, or a batch of fields along leading axes. Values on nodes of Dirichlet sides
            are not read: those of the sides are used.
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
        places = self._places()
        given = values_at("u", u, places, self.shape, self.dtype, batch=True)
        changed = {} if boundary is None else self._changed(boundary)
        inner, ndim = (..., *(axis.unknowns for axis in self._axes)), len(self.shape)
        whole = self._batch_of(given, changed) + self.shape
        field = np.broadcast_to(np.asarray(given, self.dtype), whole)[inner]
        total = np.zeros(field.shape, self.dtype)
        for k, axis in enumerate(self._axes):
            lower, diag, upper = (
                a.astype(total.real.dtype).reshape((-1,) + (1,) * (ndim - 1 - k)) for a in axis.rows
            )
            total += diag * field
            before, after = (np.roll(field, shift, k - ndim) for shift in (1, -1))
            if not axis.is_periodic:
                before[_at(k, 0, ndim)] = 0
                after[_at(k, -1, ndim)] = 0
            total += lower * before + upper * after
        total -= total.real.dtype.type(self.helmholtz) * field
        for (k, end), addition in self._additions(self._values | changed).items():
            total[_at(k, -end, ndim)] -= addition
        result = np.zeros(whole, self.dtype)
        result[inner] = total
        return result

    def _hold_part(self, split: Slab) -> None:
        """Replace the axis that is split by the part of this rank: the lines lie along it."""
        part = split.part(self.shape[self._line], self._group.rank, self._group.size)
        self._axes[self._line] = AxisPart(self._axes[self._line], part)

    def _batch_of(self, given: Array, changed: Mapping[str, Array]) -> tuple[int, ...]:
        """Return the leading axes of an array and of the values of sides of a call."""
        ndim = len(self.shape)
        own: tuple[int, ...] = given.shape[: max(given.ndim - ndim, 0)]
        for side, values in changed.items():
            batch = values.shape[: max(values.ndim - ndim + 1, 0)]
            if not batch:
                continue
            require(
                len(batch) <= len(own)
                and all(n in (1, m) for n, m in zip(batch[::-1], own[::-1], strict=False)),
                f"boundary {side}: the leading axes of the values must be those of f, {own}",
                batch,
            )
        return own

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

    def _side_values(self, side: str, condition: Any, *, batch: bool = False) -> Array:
        """Return what a condition prescribes on a side, in the dtype of the solver."""
        axis = next(axis for axis in self._axes if axis.name == side[0])
        kept = [other for other in self._axes if other is not axis]
        places = self._places(without=side[0])
        places[side[0]] = axis.edges[0 if side[1] == "-" else -1]
        shape = tuple(other.size for other in kept)
        given = condition_value(condition)
        values = values_at(
            f"boundary {side}", given, places, shape, self.dtype, batch=batch, remedy=_OF_SIDES
        )
        return np.array(values, self.dtype)

    def _changed(self, boundary: Mapping[str, Any]) -> dict[str, Array]:
        """Return the values of the sides that a call gives."""
        if not isinstance(boundary, Mapping):
            raise TypeError(
                "boundary of solve must be a mapping of sides to conditions, for example "
                f"{{'x-': 1.0}}, got {type(boundary).__name__}"
            )
        kinds, found = self.boundary, {}
        names = _NAMES[: len(self.shape)]
        from_axis = kinds["x-"] == ON_AXIS
        for side, condition in conditions_of(
            boundary, names, from_axis=from_axis, complete=False
        ).items():
            axis = next(axis for axis in self._axes if axis.name == side[0])
            require_kind(side, condition, kinds[side], axis.exchange["-+".index(side[1])])
            if side in self._values:
                found[side] = self._side_values(side, condition, batch=self._host is not None)
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
                sizes = tuple(other.size for other in kept)
                batch = given.shape[: max(given.ndim - len(sizes), 0)]
                whole = np.broadcast_to(given, batch + sizes)
                part = whole[(..., *(other.unknowns for other in kept))]
                found[k, end] = part * np.asarray(-axis.side_factor(end)).astype(part.real.dtype)
        return found

    def _write_sides(self, values: Mapping[str, Array], result: Array) -> None:
        """Write the values of Dirichlet sides to their nodes, in the order x, y, z."""
        for (k, end), given in self._node_values(values).items():
            result[_at(k, -end, len(self.shape))] = given

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
        if boundary is None and stream is None:
            kept = self._kept_additions, self._kept_values
            quick = engine.solve_quickly(f, *kept, shape, out)
            if quick is not None:
                return quick
        with self._group.agreement(_OPERATION):
            changed = {} if boundary is None else self._changed(boundary)
            if locate(f) is None:
                right = values_at("f", f, self._places(), shape, self.dtype, batch=True)
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


def _at(axis: int, place: int, ndim: int) -> tuple[Any, ...]:
    """Return the index of one layer along an axis of the last `ndim` axes."""
    return (..., place, *(slice(None),) * (ndim - 1 - axis))
