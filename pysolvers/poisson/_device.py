r"""The solution on a CUDA device: the algorithm of `_host`, with cuFFT.

All numbers are reals on the device. A complex field is one of reals with a last axis of length 2.
The waves of a periodic axis are pairs of reals, cosine and sine part, which have the same
eigenvalue, so that the lines are real in every case.

The fields of a batch that fit into the cache of the device are solved by the same calls: they are
the first axis of all arrays. Packed waves are those of one field; the fields of a batch have
transforms by panels instead.

One buffer holds the fields. The shape is that of the waves, with 2 (n // 2 + 1) reals along a
periodic axis; before its transform an axis uses the first n of them. A transform runs over panels
of columns: the columns of a panel are combined and transposed to lines (`transform_load`), cuFFT
transforms the lines, and they are combined and transposed back (`transform_store`). The lines of a
panel fit into the cache of the device, so that a transform moves 2 words per value in memory.

The matrices of the lines are given by their off-diagonals and row sums, as on the host: no ratio of
the spacings loses the eigenvalues of the other axes (csrc/include/pysolvers.h, PS_ROW_SUMS). The
off-diagonals are those of all lines, and stay in the cache.

Words moved per unknown in two dimensions: 2 for each transform and 3 for the lines, 7 in all.

Real fields between two Dirichlet or two Neumann sides, and periodic ones, are solved faster, with
lines along the first axis, by `_waves`.

Along an axis with the method "eigenvectors" cuBLAS multiplies by the matrices of the eigenvectors,
from the buffer of the field to a second one. These products follow the transforms, so that they
read whole buffers.

Without lines, that is, for c < 0 or where the caller chose other methods, each wave is divided by
lambda - c: a line of one row.

With a group, the axis of the lines is cut. Each rank transforms along the other axes, and the ranks
exchange 2 numbers per line (_cut_lines).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import require_broadcast
from .._runtime.backends import parse_device, require_device
from .._runtime.cublas import padded_rows, products
from .._runtime.cufft import CufftPlan
from .._runtime.device import Device, address_of, aligned, device_array, is_device_array
from .._runtime.interop import library_of, locate, view
from .._runtime.lines import solve_lines
from .._runtime.repeats import Repeats
from .._runtime.targets import find_target
from ..distributed import Group
from ..distributed._group import ONE_PROCESS
from ._axes import Axis, wave_sums
from ._cut_lines import ConstantLine, CutLines, CutSystems
from ._longer import LongerGrid, longer_intervals
from ._methods import (
    EIGENVECTORS,
    LEAST_HALVED,
    LINES,
    TRANSFORM,
    check_distance,
    has_short_factors,
)
from ._mirrored import are_mirrored
from ._modes import Block, Modes
from ._waves import PackedWaves, are_packed

_OPERATION = "FastPoisson"
_SOLVE = "FastPoisson.solve"

# Bytes of the waves of which there is a graph. Without branches they are those of 1024 x 1024
# float64, for which the device takes longer than the host for its five calls. Branches run at the
# same time: 3001^2 nodes take 441 us with them and 504 without, 4097^2 558 and 598 us (H200).
_MOST_GRAPH_BYTES, _MOST_BRANCHED_BYTES = 1 << 24, 3 << 27

Array = NDArray[Any]
Additions = Mapping[tuple[int, int], Array]

# Bytes of the lines of a panel: half the cache of an H100. Chosen by this size, not measured.
_PANEL = 24 << 20
_LEAST_HALVED = LEAST_HALVED
# Bytes of the fields of a batch that are solved together: they fit into the cache of the device.
_TOGETHER = 32 << 20
_MOST_PLANS = 4  # numbers of fields whose plans are kept

_INVERSE = {
    "dct1": "dct1",
    "dct2": "dct3",
    "dct3": "dct2",
    "dct4": "dct4",
    "dst1": "dst1",
    "dst2": "dst3",
    "dst3": "dst2",
    "dst4": "dst4",
    "rfft": "irfft",
}


class _Buffer(NamedTuple):
    """Memory of the device, and its owner."""

    address: int
    owner: Any


class _Transform:
    """A transform along one axis of the field, in panels.

    Parameters
    ----------
    device : Device
        Where the field lies.
    kind : str
        A name of ``backend.TRANSFORMS``.
    size : int
        Number of values.
    outer, inner : int
        Lengths of the axis before the last one (1 in two dimensions) and of the last one.
    dtype : dtype
        float32 or float64.
    scale : float
        Factor of the result.
    """

    def __init__(
        self,
        device: Device,
        kind: str,
        size: int,
        outer: int,
        inner: int,
        dtype: np.dtype,
        scale: float,
    ) -> None:
        backend, self._scale = device.backend, scale
        self._arguments = backend.TRANSFORMS[kind], size
        form, self.before, self.after, length, pitch = backend.transform_shape(*self._arguments)
        line = pitch * dtype.itemsize
        if inner * line <= _PANEL:
            self._outer, self._inner = min(outer, max(1, _PANEL // (inner * line))), inner
        else:
            panels = -(-inner * line // _PANEL)
            self._outer, self._inner = 1, -(-inner // panels)
        lines = self._outer * self._inner
        self.line_bytes = lines * line
        self._plan = CufftPlan(form, length, pitch, lines, dtype, device.ordinal)
        self.work_bytes = self._plan.work_bytes

    def run(self, source: Array, solution: Array, lines: int, work: int, device: Device) -> None:
        """Transform columns (outer, inner, values) of `source` to those of `target`."""
        outer, inner, _ = source.shape
        for j in range(0, outer, self._outer):
            for k in range(0, inner, self._inner):
                panel = np.s_[j : j + self._outer, k : k + self._inner]
                rest = lines, self.line_bytes, self._scale
                device.enqueue(
                    device.backend.transform_load, *self._arguments, source[panel], *rest
                )
                self._plan.execute(lines, work, device.stream)
                device.enqueue(
                    device.backend.transform_store, *self._arguments, solution[panel], *rest
                )


class _Plans(NamedTuple):
    """Transforms before and after the lines, by their axes."""

    forward: dict[int, _Transform]
    backward: dict[int, _Transform]


class _Product:
    """Products with the eigenvectors along one axis of the field.

    Of even and odd eigenvectors of at least `_LEAST_HALVED` places, each product takes half the
    places: the sums or the differences of the values and of those in reverse order.

    Parameters
    ----------
    device : Device
        Where the field lies.
    modes : Modes
        The eigenvectors.
    dtype : dtype
        float32 or float64.
    keep : callable
        Copies an array of the host to the device.
    """

    def __init__(
        self, device: Device, modes: Modes, dtype: np.dtype, keep: Callable[[Array], Array]
    ) -> None:
        self._products, self._dtype = products(device.ordinal), dtype
        self.is_halved = len(modes.blocks) == 2 and len(modes.values) >= _LEAST_HALVED
        blocks = modes.blocks if self.is_halved else (Block(modes.forward, modes.backward),)
        forward, backward = zip(*blocks, strict=True)
        self._forward, self._backward = (
            self._together([padded_rows(a, dtype) for a in matrices], keep)
            for matrices in (forward, backward)
        )
        self._minus = keep(np.full((1, 1, 1), -1, dtype))

    def forward(self, source: Array, fields: list[Array], axis: int, device: Device) -> Array:
        """Multiply values along an axis by the matrices that make amplitudes of them.

        Parameters
        ----------
        source : ndarray
            The values, in C order: the second one of `fields`, or another array.
        fields : list of two ndarrays
            Both are written. They are exchanged if the result is the first one.

        Returns
        -------
        amplitudes : ndarray
            The second one of `fields`.
        """
        values = _columns_of(source, axis)
        if self.is_halved:
            sums = _columns_of(fields[0], axis)
            half, rest = _halves(sums)
            device.write(half, values[:, : half.shape[1]])
            device.enqueue(device.backend.accumulate, half, values[:, ::-1][:, : half.shape[1]])
            device.write(rest, values[:, : rest.shape[1]])
            device.add_product(rest, self._minus, values[:, ::-1][:, : rest.shape[1]])
            values = sums
        else:
            fields.reverse()
        self._multiply(self._forward, values, _columns_of(fields[1], axis), device)
        return fields[1]

    def backward(
        self, source: Array, fields: list[Array], axis: int, device: Device, target: Array | None
    ) -> Array:
        """Multiply amplitudes along an axis by the matrices that make values of them.

        Parameters
        ----------
        source : ndarray
            The amplitudes, in C order: the second one of `fields`.
        fields : list of two ndarrays
            As for `forward`.
        target : ndarray or None
            For the values, in C order.

        Returns
        -------
        values : ndarray
            `target` or the second one of `fields`.
        """
        amplitudes = _columns_of(source, axis)
        matrices = self._backward
        if not self.is_halved:
            fields.reverse()
            values = fields[1] if target is None else target
            self._multiply(matrices, amplitudes, _columns_of(values, axis), device)
            return values
        sums = _columns_of(fields[0], axis)
        self._multiply(matrices, amplitudes, sums, device)
        values = fields[1] if target is None else target
        columns, (even, odd) = _columns_of(values, axis), _halves(sums)
        count = odd.shape[1]
        device.write(columns[:, : even.shape[1]], even)
        device.enqueue(device.backend.accumulate, columns[:, :count], odd)
        last = columns[:, ::-1][:, :count]
        device.write(last, even[:, :count])
        device.add_product(last, self._minus, odd)
        return values

    @staticmethod
    def _together(matrices: Sequence[Array], keep: Callable[[Array], Array]) -> list[Array] | Array:
        """Copy matrices to the device; those of one size to one array."""
        if len({matrix.shape for matrix in matrices}) > 1:
            return [keep(matrix) for matrix in matrices]
        return keep(np.stack(matrices))

    def _multiply(
        self, matrices: list[Array] | Array, source: Array, target: Array, device: Device
    ) -> None:
        """Multiply consecutive parts of columns by a matrix each.

        One call multiplies by two of one size where the columns are those of one array: blocks of
        threads of both then fill the device (1499 x 1499: 3 rounds of its blocks each).
        """
        count, size, width = source.shape
        if count == 1 and width > 1 and not isinstance(matrices, list):
            number, part, lead = matrices.shape
            own = address_of(matrices), lead
            places = address_of(source), address_of(target)
            shape = (number, part, width), part * width
            columns = self._products.columns
            columns(own, *places, *shape, self._dtype, device.stream, apart=part * lead)
            return
        start = 0
        for matrix in matrices:
            part = len(matrix)
            skip = start * width * self._dtype.itemsize
            own = address_of(matrix), matrix.shape[1]
            addresses = own, address_of(source) + skip, address_of(target) + skip
            rest = size * width, self._dtype, device.stream
            if width == 1:
                self._products.rows(*addresses, (count, part), *rest)
            else:
                self._products.columns(*addresses, (count, part, width), *rest)
            start += part


def _columns_of(array: Array, axis: int) -> Array:
    """View reals in C order as (before, size, after) an axis."""
    shape = array.shape
    whole = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    return device_array(address_of(array), whole, None, array.dtype, array)


def _halves(columns: Array) -> tuple[Array, Array]:
    """View the places of the even and of the odd eigenvectors."""
    half = (columns.shape[1] + 1) // 2
    return columns[:, :half], columns[:, half:]


def packs(
    axes: Sequence[Axis], dtype: np.dtype, device: str, helmholtz: float, ranks: int = 1
) -> bool:
    """Return whether waves stay packed on a device, with lines along the first axis.

    They do not where the transforms would take longer than lines along another axis. Ranks need two
    planes each, and fast lengths.
    """
    real = np.empty(0, dtype).real.dtype
    if not are_packed(axes, real):
        return False
    is_fast = all(has_short_factors(axis) for axis in axes[1:])
    if ranks > 1:
        if not is_fast or dtype != real:
            return False
    elif not (is_fast and dtype == real) and not longer_intervals(axes, dtype, helmholtz):
        return False
    return _lines_fit(axes[0], real, device, ranks)


def mirrors(
    axes: Sequence[Axis], dtype: np.dtype, device: str, helmholtz: float, ranks: int = 1
) -> bool:
    """Return whether two symmetric axes of a box have products as in `_mirrored`."""
    if not are_mirrored(axes, dtype, helmholtz):
        return False
    return _lines_fit(axes[0], dtype, device, ranks)


def _lines_fit(first: Axis, dtype: np.dtype, device: str, ranks: int) -> bool:
    """Return whether the kernel of packed waves can solve lines along the first axis."""
    # A rank holds one value less than others, and one more is not unknown at a Dirichlet side.
    if ranks > 1 and first.size // ranks < 3:
        return False
    ordinal = parse_device(device)[1]
    planes = -(-first.count // ranks)
    return bool(require_device(ordinal).waves_fit(dtype == np.float32, planes, ordinal))


class DevicePoisson:
    """Transforms, products and matrices for one grid.

    Parameters
    ----------
    axes : sequence of Axis
        The lines, if there are any, lie along the last one; the others are in the order of the
        array.
    dtype : dtype
        Of the solution.
    device : str
        ``'cuda'`` or ``'cuda:N'``.
    line : int, default: -1
        Axis of the array along which the lines lie.
    group : Group, optional
        Ranks; if there are several, they hold parts of the axis of the lines, an `AxisPart`: the
        last axis, or the first one with packed waves.
    helmholtz : float, default: 0
        The number c; not negative if there are lines.
    methods : sequence of str, optional
        For each axis ``"transform"``, ``"eigenvectors"`` or, for the last one only, ``"lines"``;
        the last one has no transform. By default packed waves, with lines along the first axis, or
        lines along the last one; with several ranks, which `packs` has been asked for, the former.

    Raises
    ------
    BackendError
        If the device, cuFFT or cuBLAS is missing.
    """

    def __init__(
        self,
        axes: Sequence[Any],
        dtype: np.dtype,
        device: str,
        line: int = -1,
        group: Group = ONE_PROCESS,
        helmholtz: float = 0.0,
        methods: Sequence[str] | None = None,
    ) -> None:
        self._line, self._group, self._helmholtz = line, group, helmholtz
        #: What the ranks exchange for cut lines.
        self._cut: CutLines | None = None
        #: The cut lines, unless waves are packed.
        self._systems: CutSystems | None = None
        #: That of wave 0 of cut lines, if it is singular.
        self._constant: ConstantLine | None = None
        with group.agreement(_OPERATION):
            ordinal = parse_device(device)[1]
            # Where the matrices are made; a solve has a stream of its own.
            self._device = Device(require_device(ordinal), ordinal, _OPERATION)
            self._name = f"cuda:{ordinal}"
            self._axes, self._dtype = tuple(axes), dtype
            self._real = np.empty(0, dtype).real.dtype
            self._parts = 2 if dtype.kind == "c" else 1
            self.is_singular = not helmholtz and all(axis.has_null_vector for axis in axes)
            self._own: list[Array] = []  # the matrices
            self._lasting: list[Any] = []  # those of `enqueue`
            self._counts = [axis.count for axis in axes]
            self._inner = tuple(axis.unknowns for axis in axes)
            self._waves = list(self._counts)
            self._transforms: dict[int, _Plans] = {}  # by the number of fields
            self._batched: DevicePoisson | None = None  # instead of packed waves
            self._products: dict[int, _Product] = {}
            #: Distance of c to the nearest eigenvalue, without lines.
            self.distance = 0.0
            self._packed: PackedWaves | LongerGrid | None = None
            chosen = tuple(methods or [TRANSFORM] * (len(axes) - 1) + [LINES])
            self._has_lines = chosen[-1] == LINES
            ranks = (group, _OPERATION) if group.size > 1 else None
            packed_of_ranks: PackedWaves | None = None
            self._last = axes[-1]
            if methods is None and ranks:
                whole = [getattr(axis, "whole", axis) for axis in axes]
                self._packed = packed_of_ranks = PackedWaves(
                    axes,
                    dtype,
                    self._device,
                    self._kept,
                    helmholtz,
                    ranks,
                    mirrored=mirrors(whole, dtype, device, helmholtz, group.size),
                )
                self._cut = packed_of_ranks.cut
            elif methods is None and mirrors(axes, dtype, device, helmholtz):
                rest = dtype, self._device, self._kept, helmholtz
                self._packed = PackedWaves(axes, *rest, mirrored=True)
            elif methods is None and packs(axes, dtype, device, helmholtz):
                rest = dtype, self._device, self._kept, helmholtz
                longer = longer_intervals(axes, dtype, helmholtz)
                self._packed = (
                    LongerGrid(axes, longer, *rest) if longer else PackedWaves(axes, *rest)
                )
            else:
                for k, method in enumerate(chosen):
                    if method == EIGENVECTORS:
                        self._products[k] = _Product(
                            self._device, axes[k].modes, self._real, self._kept
                        )
                self._transformed = [k for k, m in enumerate(chosen) if m == TRANSFORM]
                self._plans(1)
                matrices = self._matrices() if self._has_lines else self._divisors()
                if ranks:
                    rest_of = self._last.count, self._parts, self._device, self._kept
                    periodic = self._last.is_periodic
                    self._systems = CutSystems(ranks, matrices, *rest_of, periodic=periodic)
                    self._cut = self._systems.cut
                    if self.is_singular:
                        self._constant = ConstantLine(ranks, self._last)
                else:
                    self._rows = self._expanded(matrices)
                    self._volumes = self._kept(self._last.volumes)
        if packed_of_ranks is not None:
            packed_of_ranks.connect(self._device, self._kept)
        if self._systems is not None:
            self._systems.connect(self._device)
        if self._constant is not None:
            self._constant.connect()
        self._device.wait()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            f"a FastPoisson on {self._name} cannot be pickled or copied: create it again with "
            "the same arguments"
        )

    @property
    def nbytes(self) -> int:
        """Size of the matrices in bytes."""
        batched = 0 if self._batched is None else self._batched.nbytes
        return sum(array.nbytes for array in self._own) + batched

    def kept(self, arrays: Mapping[Any, Array]) -> dict[Any, Array]:
        """Return copies on the device that last as long as this object."""
        return {key: self._kept(array) for key, array in arrays.items()}

    def solve(
        self,
        f: Any,
        additions: Additions,
        values: Mapping[tuple[int, int], Array],
        shape: tuple[int, ...],
        out: Any,
        stream: object,
    ) -> Any:
        """Return the solution, as an array of the library of `f`.

        Parameters
        ----------
        f : array
            Right side: on the device, or a NumPy array of the dtype of the solver. Leading axes
            are a batch.
        additions : mapping of (axis, end) to ndarray
            What the sides add to the rows next to them, on the host or as returned by `kept`.
        values : mapping of (axis, end) to ndarray
            Values of the Dirichlet nodes, in the order in which they are written.
        shape : tuple of int
            Shape of the solution.
        out : array or None
            For the solution.
        stream : object
            As in `solve_tridiagonal`.
        """
        named = {"rhs": f}  # the name of the operand that `out` can be
        with self._group.agreement(_OPERATION):
            target: Any = find_target(
                self._name, stream, named, out, operation=_SOLVE, leader="rhs"
            )
            token = np.empty((1,), self._dtype)
            (right,), _, _ = target.operands(named, {"the solver": token})
            batch = right.shape[: max(right.ndim - len(shape), 0)]
            require_broadcast("f", right.shape[len(batch) :], shape)
            whole, line = batch + shape, self._line % len(shape) - len(shape)
            result = target.result(out, named, right, whole, self._dtype)
            (right,) = target.move(right)
            solution = np.moveaxis(target.destination(result), line, -1)
            # Ranks solve one field at once; one without memory raises on all of them.
            buffers = {1: self._buffers(target)} if self._group.size > 1 else {}
        sources = np.moveaxis(np.broadcast_to(right, whole), line, -1)
        fields = prod(sources.shape[: sources.ndim - len(self._axes)])
        with nullcontext() if self._cut is None else self._cut.in_order(fields):
            self._solve_batch(target, sources, additions, values, solution, buffers)
        return target.finish(result)

    def _solve_batch(
        self,
        device: Any,
        f: Array,
        additions: Additions,
        values: Additions,
        result: Array,
        buffers: dict[int, list[_Buffer]],
    ) -> None:
        """Enqueue the solutions of all fields of a batch, the axis of the lines last."""
        if f.ndim == len(self._axes):
            f, result = f[None], result[None]
        while f.ndim > len(self._axes) + 1:
            fields, fields_of_result = _folded(f, 0), _folded(result, 0)
            if fields is None or fields_of_result is None:
                break
            f, result = fields, fields_of_result
        *others, number = f.shape[: f.ndim - len(self._axes)]
        most = self._fields_at_once(number)
        solver = self._without_packing() if most > 1 else self
        for place in np.ndindex(*others):
            for start in range(0, number, most):
                part = slice(start, min(start + most, number))
                count = part.stop - start
                if count not in buffers:
                    buffers[count] = solver._buffers(device, count)
                given = f[place][part], additions, values, result[place][part]
                solver._solve_fields(device, *given, buffers[count])

    def _fields_at_once(self, count: int) -> int:
        """Return how many of the fields of a batch are solved by the same calls."""
        if self._group.size > 1 or isinstance(self._packed, LongerGrid):
            return 1
        field = prod(axis.count for axis in self._axes) * self._dtype.itemsize
        return max(min(count, _TOGETHER // field), 1)

    def _without_packing(self) -> "DevicePoisson":
        """Return the solver of several fields: lines along the last axis if waves are packed."""
        if self._packed is None:
            return self
        if self._batched is None:
            others = self._axes[:-1]
            methods = [TRANSFORM if a.has_transform else EIGENVECTORS for a in others] + [LINES]
            self._batched = DevicePoisson(
                self._axes, self._dtype, self._name, helmholtz=self._helmholtz, methods=methods
            )
        return self._batched

    def solve_quickly(
        self, f: Any, additions: Additions, values: Additions, shape: tuple[int, ...], out: Any
    ) -> Any:
        """Solve for one plain array on the current stream of its library.

        Parameters
        ----------
        f, shape, out
            As for `solve`.
        additions, values : mapping
            As for `solve`; the same arrays in each call, which last as long as this object.

        Returns
        -------
        u : array or None
            None if `solve` has to convert, check or wait for something.
        """
        library = library_of(f)
        if not library.has_fast_access or not library.on_device(f) or self._group.size > 1:
            return None
        ordinal, backend = self._device.ordinal, self._device.backend
        if tuple(f.shape) != shape or locate(f) != ordinal:
            return None
        device = Device(backend, ordinal, _SOLVE, library.stream(f, ordinal))
        result = out
        if out is None:
            is_plain, _, _, empty = library.fast_access
            result = empty(f, ordinal) if is_plain is None or is_plain(f) else None
        if result is None or library_of(result) is not library or locate(result) != ordinal:
            return None
        key = None
        if self._repeats is not None and not library.is_captured(ordinal):
            names = library.identity(f), library.identity(result)
            key = None if None in names else names
            if key is not None and self._repeats.launch(key, device):
                return result
        arrays = [view(*pair, device.stream) for pair in (("rhs", f), ("out", result))]
        source, solution = arrays
        suits = (a.shape == shape and a.dtype == self._dtype for a in arrays)
        if not all(suits) or not (solution.flags.c_contiguous and solution.flags.writeable):
            return None
        if result is not f and np.may_share_memory(source, solution):
            return None
        if self._line not in (-1, len(shape) - 1):
            source, solution = (np.moveaxis(a, self._line, -1) for a in arrays)
        source, solution = source[None], solution[None]
        buffers = self._buffers(device)
        at_once = source.nbytes > _MOST_GRAPH_BYTES
        self._solve_fields(device, source, additions, values, solution, buffers, at_once=at_once)
        if key is not None and self._repeats is not None:
            self._repeats.notice(
                key,
                lambda own, buffers: self._solve_fields(
                    own, source, additions, values, solution, buffers
                ),
            )
        return result

    def _solve_fields(
        self,
        device: Any,
        f: Array,
        additions: Additions,
        values: Additions,
        result: Array,
        buffers: Sequence[Any],
        *,
        at_once: bool = False,
    ) -> None:
        """Enqueue the solutions of fields along the first axis, that of the lines last.

        `at_once`: values of sides, which are on the device, are copied on another stream.
        """
        inner = slice(None), *self._inner
        # The solve neither reads nor writes the nodes on Dirichlet sides, and does not wait for
        # their copies: in a graph 1025^2 nodes take 46 us, 52 with the copies after it (H200).
        with device.branches(1 + bool(values), at_once=at_once) as branches:
            self._run(branches[0], f[inner], additions, result[inner], buffers)
            for (k, end), given in values.items():
                branches[-1].write(_layer(result, k + 1, end), given)

    def enqueue(self, f: Array, result: Array, device: Device) -> None:
        """Enqueue a solve with sides of value zero, for arrays on the device.

        All calls use the same work arrays, which the first call allocates: only calls that follow
        each other on the device can be enqueued, and the first call cannot be captured in a graph.

        Parameters
        ----------
        f, result : ndarray
            Of the shape and dtype of the solution, all nodes of which are unknown.
        device : Device
            The stream, on the device of this object.
        """
        if not self._lasting:
            self._lasting = self._buffers(device, lasting=True)
        self._run(device, f[None], {}, result[None], self._lasting)

    @cached_property
    def _repeats(self) -> Repeats | None:
        """Graphs of repeated solves, unless the fields are large."""
        packed = self._packed
        if packed is None:
            return None
        most = _MOST_BRANCHED_BYTES if packed.has_branches else _MOST_GRAPH_BYTES
        if packed.wave_bytes > most:
            return None
        allocate = partial(self._buffers, lasting=True)
        return Repeats(self._device, allocate, packed.alone, sum(self._sizes(1)))

    def _sizes(self, count: int) -> tuple[int, ...]:
        """Bytes of the fields, second fields, lines, work area of transforms and cut lines."""
        cut = self._systems or self._cut
        ends = 0 if cut is None else cut.nbytes
        if self._packed is not None:
            return self._packed.wave_bytes, 0, 0, self._packed.work_bytes, ends
        plans = self._plans(count)
        every = [*plans.forward.values(), *plans.backward.values()]
        field = count * prod(self._waves) * self._parts * self._real.itemsize
        return (
            field,
            field * bool(self._products),
            max((t.line_bytes for t in every), default=0),
            max((t.work_bytes for t in every), default=0),
            ends,
        )

    def _buffers(self, device: Device, count: int = 1, *, lasting: bool = False) -> list[_Buffer]:
        """Allocate the memory of a call for so many fields, in one block."""
        starts = [0]
        for size in self._sizes(count):
            starts.append(starts[-1] + aligned(max(size, 1)))
        block = device.memory(starts[-1], lasting=lasting)
        return [_Buffer(block.address + start, block) for start in starts[:-1]]

    def _run(
        self, device: Device, f: Array, additions: Additions, result: Array, buffers: Sequence[Any]
    ) -> None:
        """Enqueue transforms, lines and the inverse; `f` is read unless it has to be changed."""
        buffer, second, lines, work, ends = buffers
        if self._packed is not None:
            source = f
            if additions:
                if (address_of(f), f.strides) != (address_of(result), result.strides):
                    device.write(result, f)
                self._add(additions, self._reals(result), device)
                source = result
            there = () if self._cut is None else (ends.address, ends.owner)
            self._packed.run(source[0], result[0], buffer.address, work.address, device, *there)
            return
        count = len(f)
        plans = self._plans(count)
        shape = (count, *self._waves, *([2] if self._parts == 2 else []))
        field = device_array(buffer.address, shape, None, self._real, buffer.owner)
        source, solution = self._reals(f), self._reals(result)
        is_direct = self._is_dense(source) if plans.forward else source.flags.c_contiguous
        if additions or not is_direct or not (plans.forward or self._products):
            part = field[_block(count, self._counts)]
            device.write(part, source)
            source = part
            self._add(additions, source, device)
        sizes = list(self._counts)
        for k, transform in plans.forward.items():
            before = source if source is not field else field[_block(count, sizes)]
            sizes[k] = transform.after
            after = field[_block(count, sizes)]
            transform.run(
                self._columns(before, k),
                self._columns(after, k),
                lines.address,
                work.address,
                device,
            )
            source = field
        # The first one is free, the second one has the values but for those of the right side.
        fields = [device_array(second.address, shape, None, self._real, second.owner), field]
        for k, product in self._products.items():
            source = product.forward(source, fields, k + 1, device)
        if self._systems is not None:
            self._solve_cut(self._systems, device, source, ends)
        else:
            self._centre(device, source)
            self._solve_lines(device, source)
            self._centre(device, source)
        is_direct = not plans.backward and solution.flags.c_contiguous
        for k, product in reversed(self._products.items()):
            is_last = is_direct and k == min(self._products)
            target = solution if is_last else None
            source = product.backward(source, fields, k + 1, device, target)
        field, is_direct = source, self._is_dense(solution)
        for k, transform in reversed(plans.backward.items()):
            before = field[_block(count, sizes)]
            sizes[k] = transform.after
            is_last = k == min(plans.backward) and is_direct
            after = solution if is_last else field[_block(count, sizes)]
            transform.run(
                self._columns(before, k),
                self._columns(after, k),
                lines.address,
                work.address,
                device,
            )
        if field is not solution and not (is_direct and plans.backward):
            device.write(solution, field[_block(count, self._counts)])

    def _add(self, additions: Additions, field: Array, device: Device) -> None:
        """Add what the sides contribute to reals of the right sides."""
        for (k, end), values in additions.items():
            layer = _layer(field, k + 1, end)
            there = values if is_device_array(values) else device.upload(values)
            given = np.broadcast_to(self._reals(there), layer.shape)
            device.enqueue(device.backend.accumulate, layer, given)

    def _plans(self, count: int) -> _Plans:
        """Return the transforms of so many fields; those of one field are always kept."""
        found = self._transforms.get(count)
        if found is None:
            found = _Plans({}, {})
            for k in self._transformed:
                self._plan(k, count, found)
            if len(self._transforms) >= _MOST_PLANS:
                self._transforms.pop(list(self._transforms)[1], None)
            self._transforms[count] = found
        return found

    def _plan(self, k: int, count: int, plans: _Plans) -> None:
        """Plan the transforms along an axis."""
        axis = self._axes[k]
        name, kind = axis.transform
        forward = f"{name}{kind}" if kind else "rfft"
        gain = axis.intervals * (2 if kind else 1)
        other = (*self._waves[:k], *self._counts[k + 1 : -1], 1)[0]
        row = self._counts[-1] * self._parts
        outer, inner = (count, other * row) if count > 1 and k == 0 else (count * other, row)
        plans.forward[k], plans.backward[k] = (
            _Transform(self._device, one, axis.count, outer, inner, self._real, scale)
            for one, scale in ((forward, 1.0), (_INVERSE[forward], 1 / gain))
        )
        self._waves[k] = plans.forward[k].after

    def _matrices(self) -> tuple[Array, Array, Array]:
        """Return lower, row sums and upper of the waves, with the shape (waves or 1, rows or 1)."""
        last = self._last
        lower, _, upper = last.rows
        waves = [self._eigenvalues(k) for k in range(len(self._axes) - 1)]
        sums = wave_sums(
            [*waves, None], last, helmholtz=self._helmholtz, is_singular=self.is_singular
        )
        sums = sums.reshape(-1, sums.shape[-1])
        operands = (np.asarray(a, self._real) for a in (lower[None], sums, upper[None]))
        return tuple(operands)  # type: ignore[return-value]

    def _eigenvalues(self, k: int) -> Array:
        """Return the eigenvalues of the waves along an axis, in their order in the field."""
        axis = self._axes[k]
        if k in self._products:
            return axis.modes.values
        if axis.is_periodic:
            # Two reals for each wave. The sine part of wave 0 is zero, and its matrix is the same.
            return np.repeat(axis.eigenvalues(axis.count // 2 + 1), 2)
        return axis.eigenvalues()

    def _divisors(self) -> tuple[Array, Array, Array]:
        """Return the rows of lines of one row: lambda - c of each wave on the main diagonal."""
        waves = [self._eigenvalues(k) for k in range(len(self._axes))]
        sums = wave_sums(waves, None, helmholtz=self._helmholtz, is_singular=self.is_singular)
        check_distance(self._helmholtz, sums, self._dtype)
        self.distance = float(np.abs(sums).min())
        if self.is_singular:
            sums[(0,) * sums.ndim] = np.inf  # the constant wave is zero
        zero = np.zeros((1, 1), self._real)
        return zero, np.asarray(sums.reshape(-1, 1), self._real), zero

    def _expanded(self, matrices: Sequence[Array]) -> list[Array]:
        """Return the rows on the device, with the shape (waves, parts, rows)."""
        count = max(len(values) for values in matrices)
        shape = (count, self._parts, self._last.count if self._has_lines else 1)
        there = (self._kept(values) for values in matrices)
        return [np.broadcast_to(values[:, None, :], shape) for values in there]

    def _solve_lines(self, device: Any, fields: Array) -> None:
        """Solve the lines of all waves in place; parts of a number are systems with one matrix."""
        if self._parts == 2 and len(fields) > 1:
            for field in fields:
                self._solve_lines(device, field[None])
            return
        rows = self._last.count if self._has_lines else 1
        count, size = len(fields), self._real.itemsize
        shape = (fields.size // (count * rows * self._parts), self._parts, rows)
        strides = (rows * self._parts * size, size, self._parts * size)
        operands = self._rows
        if self._parts == 1:
            # The waves are the inner axis: they follow each other in memory.
            shape = count, shape[0], rows
            strides = shape[1] * rows * size, rows * size, size
            operands = [np.broadcast_to(a.transpose(1, 0, 2), shape) for a in operands]
        lines = device_array(address_of(fields), shape, strides, self._real, fields)
        options = {"periodic": self._axes[-1].is_periodic and self._has_lines}
        solve_lines(
            device, device.operation, operands, lines, lines, **options, has_sums=self._has_lines
        )

    def _solve_cut(self, systems: CutSystems, device: Device, field: Array, ends: _Buffer) -> None:
        """Solve the lines of all waves, which are cut, in place; collective."""
        if self._constant is None:
            systems.solve(device, field, *ends)
            return
        shape = self._last.count, self._parts
        line = device_array(address_of(field), shape, None, self._real, field)
        right = device.download(line)
        systems.solve(device, field, *ends)
        device.write(line, self._constant.solve(right))

    def _centre(self, device: Any, fields: Array) -> None:
        """In a singular case make the mean of wave 0 of all fields zero."""
        if not self.is_singular or not self._has_lines:
            return
        shape = self._last.count, self._parts
        for field in fields:
            line = device_array(address_of(field), shape, None, self._real, field)
            for part in range(self._parts):
                own = line[None, :, part][None]
                device.enqueue(device.backend.centre, own, address_of(self._volumes))

    def _columns(self, array: Array, k: int) -> Array:
        """View reals of fields as columns (outer, inner, values) along axis k of each field."""
        if self._parts == 2:
            *axes, rows, parts = array.shape
            strides = (*array.strides[:-2], array.strides[-1])
            array = device_array(
                address_of(array), (*axes, rows * parts), strides, self._real, array
            )
        if array.ndim == 3:
            return array.transpose(0, 2, 1)
        if len(array) == 1:
            return array[0].transpose(1 - k, 2, k)
        folded = _folded(array, 0 if k else 2)
        assert folded is not None
        return folded.transpose(0, 2, 1)

    def _reals(self, array: Array) -> Array:
        """View an array of the dtype of the solver as reals, with a last axis of the parts."""
        if self._parts == 1:
            return array
        size = self._real.itemsize
        readonly = not array.flags.writeable
        return device_array(
            address_of(array),
            (*array.shape, 2),
            (*array.strides, size),
            self._real,
            array,
            readonly=readonly,
        )

    def _is_dense(self, reals: Array) -> bool:
        """Whether neighbours along x are neighbours in memory; boxes of a batch need no gaps."""
        if len(reals) > 1 and len(self._axes) > 2:
            return bool(reals.flags.c_contiguous)
        rows = reals.strides[-self._parts] if reals.shape[-self._parts] > 1 else None
        return rows in (None, self._parts * self._real.itemsize)

    def _kept(self, array: Array) -> Array:
        """Copy an array to memory of the device that lasts."""
        self._own.append(self._device.hold(array))
        return self._own[-1]


def _block(count: int, sizes: Sequence[int]) -> tuple[slice, ...]:
    """Return the index of the first entries along each axis of so many fields."""
    return slice(count), *(slice(size) for size in sizes)


def _folded(array: Array, k: int) -> Array | None:
    """View axes k and k + 1 as one; None if their strides do not allow it."""
    shape, strides = array.shape, array.strides
    if shape[k] > 1 and shape[k + 1] > 1 and strides[k] != shape[k + 1] * strides[k + 1]:
        return None
    step = strides[k + 1] if shape[k + 1] > 1 else strides[k]
    both = (*shape[:k], shape[k] * shape[k + 1], *shape[k + 2 :])
    steps = (*strides[:k], step, *strides[k + 2 :])
    readonly = not array.flags.writeable
    return device_array(address_of(array), both, steps, array.dtype, array, readonly=readonly)


def _layer(array: Array, axis: int, end: int) -> Array:
    """View the first (end 0) or the last layer along an axis; in one dimension a 0-d array."""
    place = slice(0, 1) if end == 0 else slice(array.shape[axis] - 1, None)
    return array[(slice(None),) * axis + (place,)].squeeze(axis)
