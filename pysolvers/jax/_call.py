"""One batch of systems as a custom call of XLA.

The arrays of a custom call have no strides. The layout of the call, an attribute, states where
the elements of each operand lie, so that a matrix which broadcasts over batch axes, and the
transpose of a matrix, are not copied: see csrc/python/xla.h.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from math import prod
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from numpy.typing import NDArray

from .._runtime import backends
from .._runtime.lines import Plan, contiguous_strides, plan_lines
from ._mesh import equally_varying
from ._scan import solve_rows

_TARGET = "pysolvers_tridiagonal"
_PRODUCTS = "pysolvers_products"
_RECURRENCE = "pysolvers_recurrence"
_BLOCKS = "pysolvers_blocks"
_LOWER, _UPPER = 0, 2


@cache
def _register(name: str, platform: str) -> Any:
    """Register the handler of a backend for a platform of JAX, and return the backend."""
    backend = backends.require(name)
    jax.ffi.register_ffi_target(_TARGET, backend.xla_tridiag, platform=platform)
    jax.ffi.register_ffi_target(_RECURRENCE, backend.xla_recurrence, platform=platform)
    jax.ffi.register_ffi_target(_BLOCKS, backend.xla_blocks, platform=platform)
    if name != "cpu":
        jax.ffi.register_ffi_target(_PRODUCTS, backend.xla_products, platform=platform)
    return backend


@cache
def _backends() -> dict[str, Any]:
    """Return the backends by the names of the platforms of JAX."""
    found = {"cpu": _register("cpu", "cpu")}
    try:
        jax.devices("cuda")
    except RuntimeError:  # this JAX has no such platform
        return found
    if backends.unavailable_reason("cuda") is None:
        found["cuda"] = _register("cuda", "CUDA")
    return found


def solve_lines(
    lower: jax.Array,
    diag: jax.Array,
    upper: jax.Array,
    rhs: jax.Array,
    *,
    axis: int,
    periodic: bool,
    pivot: int,
    transposed: bool = False,
    has_sums: bool = False,
) -> jax.Array:
    """Solve A x = rhs or, if `transposed`, A^T x = rhs.

    Parameters
    ----------
    lower, diag, upper, rhs : jax.Array
        Operands of one dtype and number of axes, which broadcast. `rhs` has all rows along
        `axis`, the diagonals all rows or one, and `lower` and `upper` can have one row less
        unless `periodic`.
    axis : int
        Axis of the systems, negative: counted from the last one.
    periodic : bool
        As in `solve_tridiagonal`.
    pivot : int
        Code of the backends.
    transposed : bool
        Whether to solve with the transposes of the matrices.
    has_sums : bool
        Whether `diag` has the row sums of the matrices, which are not transposed then.
    """
    if transposed and periodic:
        lower, upper = _shifted(upper, 1, axis), _shifted(lower, -1, axis)
    elif transposed:
        lower, upper = upper, lower
    operands = [lower, diag, upper, rhs]
    shape = jnp.broadcast_shapes(*(_with_rows(a.shape, axis, 1) for a in operands))
    shape = _with_rows(shape, axis, rhs.shape[axis])
    if 0 in shape:
        return jnp.zeros(shape, rhs.dtype)
    plan, operands = _merged(operands, shape, axis)
    moved = transposed and not periodic
    core = _backends()["cpu"]
    flags = (core.PERIODIC if periodic else 0) | (core.ROW_SUMS if has_sums else 0)
    layout = _layout(plan, operands, shape, axis, flags, pivot=pivot, moved=moved)
    x = jax.ShapeDtypeStruct(shape, rhs.dtype)

    def on_host(*operands: jax.Array) -> jax.Array:
        """Call the backend of the CPU."""
        return _call(_TARGET, x, operands, layout)

    def on_device(*operands: jax.Array) -> jax.Array:
        """Call the backend of the device."""
        return _call(_TARGET, x, operands, layout, "xla_tridiag_work")

    def elsewhere(*operands: jax.Array) -> jax.Array:
        """Compute by operations of JAX."""
        rows = _full_rows(operands, shape, axis, moved=moved)
        form = {"pivots": pivot != core.PIVOTS["never"], "has_sums": has_sums}
        found = solve_rows(*rows, periodic=periodic, **form)
        return jnp.moveaxis(found, 0, axis)

    return by_platform(*operands, cpu=on_host, cuda=on_device, default=elsewhere)


def _call(
    target: str,
    x: jax.ShapeDtypeStruct,
    operands: Sequence[jax.Array],
    layout: NDArray[np.int64],
    work: str | None = None,
) -> jax.Array:
    """Call a backend; on a device, with `work`, its workspace is a second result."""
    if work is None:
        return jax.ffi.ffi_call(target, x)(*operands, layout=layout)
    cuda = _backends()["cuda"]
    size = getattr(cuda, work)(cuda.DTYPES[x.dtype.name], layout)
    results = (x, jax.ShapeDtypeStruct((max(size, 1),), np.uint8))
    return jax.ffi.ffi_call(target, results)(*operands, layout=layout)[0]


def by_platform(
    *operands: jax.Array,
    cpu: Callable[..., jax.Array],
    cuda: Callable[..., jax.Array],
    default: Callable[..., jax.Array],
) -> jax.Array:
    """Call the function of the platform for which the program is lowered."""

    def varying(compute: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
        """Return the function; inside `shard_map` its result varies as the operands do."""
        return lambda *operands: equally_varying([compute(*operands), *operands])[0]

    found = {"cpu": varying(cpu)} | ({"cuda": varying(cuda)} if has_device() else {})
    return jax.lax.platform_dependent(*operands, default=varying(default), **found)


def recur_lines(
    *operands: jax.Array,
    axis: int,
    reverse: bool,
    transposed: bool = False,
    on_device: bool = False,
) -> jax.Array:
    """Compute a linear recurrence or, if `transposed`, solve with its transpose.

    Parameters
    ----------
    *operands : jax.Array
        The coefficients, of the first and, if there are three operands, of the second order, and b:
        of one dtype and number of axes, which broadcast. b has all rows along `axis`.
    axis : int
        Axis of the lines, negative.
    reverse : bool
        As in `linear_recurrence`.
    transposed : bool
        Whether to solve with the transpose of the matrix, a recurrence in the other direction.
    on_device : bool
        Whether to call the backend of the device.
    """
    b = operands[-1]
    shape = jnp.broadcast_shapes(*(_with_rows(a.shape, axis, 1) for a in operands))
    shape = _with_rows(shape, axis, b.shape[axis])
    if 0 in shape:
        return jnp.zeros(shape, b.dtype)
    plan, arrays = _merged(list(operands), shape, axis)
    core = _backends()["cpu"]
    flags = (core.REVERSED if reverse != transposed else 0) | (core.TRANSPOSED if transposed else 0)
    places = [_place(plan, each, axis) for each in (*(a.shape for a in arrays), shape)]
    if len(operands) == 2:
        places.insert(1, places[0])  # not read
    sizes = (prod(plan.batch[k] for k in group) for group in (plan.outer, plan.inner))
    layout = np.array([flags, shape[axis], *sizes, *chain.from_iterable(places)], np.int64)
    x = jax.ShapeDtypeStruct(shape, b.dtype)
    return _call(_RECURRENCE, x, arrays, layout, "xla_recurrence_work" if on_device else None)


def solve_block_lines(
    *operands: jax.Array, pivot: int, definite: bool, transposed: bool, on_device: bool = False
) -> jax.Array:
    """Solve with blocks or five diagonals, or with the transposes of the matrices.

    Parameters
    ----------
    *operands : jax.Array
        Three diagonals of blocks (..., rows, k, k) and right-hand sides (..., rows, k, m), or five
        diagonals and right-hand sides (..., rows): of one dtype and number of axes, which
        broadcast. The diagonals have all rows or one.
    pivot : int
        Code of the backends.
    definite : bool
        Whether the matrices are symmetric positive definite.
    transposed : bool
        Whether to solve with the transposes.
    on_device : bool
        Whether to call the backend of the device.
    """
    *matrix, rhs = operands
    tail = 1 if len(matrix) == 5 else 3
    batch = jnp.broadcast_shapes(*(a.shape[:-tail] for a in operands))
    side = 0 if tail == 1 else rhs.shape[-2]
    rows, columns = rhs.shape[-tail], 1 if side == 0 else rhs.shape[-1]
    parts = side * columns if side else 1
    count, half = prod(batch), len(matrix) // 2
    places = []
    for k in range(len(matrix)):
        # Row i of a diagonal of the transpose is row i + offset of the opposite one.
        own = len(matrix) - 1 - k if transposed else k
        block = matrix[own]
        if prod(block.shape[:-tail]) not in (1, count):
            matrix[own] = block = jnp.broadcast_to(block, (*batch, *block.shape[-tail:]))
        row = max(1, side * side) if block.shape[-tail] > 1 else 0
        inner = prod(block.shape[-tail:]) if prod(block.shape[:-tail]) > 1 else 0
        within = (side, 1) if side else (0, 0)
        first = (k - half) * row if transposed else 0
        places.append((first, row, 0, inner, *(within[::-1] if transposed else within)))
    rhs = jnp.broadcast_to(rhs, (*batch, *rhs.shape[-tail:]))
    sides = (0, parts, 1 if side else 0, rows * parts, columns if side else 0, 0)
    if transposed:
        matrix.reverse()
    layout = np.array(
        [
            pivot,
            definite,
            side,
            rows,
            columns,
            count,
            *chain.from_iterable((*places, sides, sides)),
        ],
        np.int64,
    )
    x = jax.ShapeDtypeStruct(rhs.shape, rhs.dtype)
    _backends()
    work = "xla_blocks_work" if on_device else None
    return _call(_BLOCKS, x, (*matrix, rhs), layout, work)


def _full_rows(
    operands: Sequence[jax.Array], shape: tuple[int, ...], axis: int, *, moved: bool
) -> list[jax.Array]:
    """Return operands of a call in full: rows first, off-diagonals with the entries of each row.

    `moved` if each off-diagonal is that of the transpose, whose entries are at another row.
    """
    rows, found = shape[axis], []
    for k, array in enumerate(operands):
        entries = array.shape[axis]
        full = jnp.broadcast_to(array, _with_rows(shape, axis, rows if entries == 1 else entries))
        full = jnp.moveaxis(full, axis, 0)
        if k in (_LOWER, _UPPER) and (moved or len(full) < rows):
            if len(full) == rows:
                full = full[:-1] if k == _LOWER else full[1:]
            edge = jnp.zeros_like(full, shape=(1, *full.shape[1:]))
            full = jnp.concatenate((edge, full) if k == _LOWER else (full, edge))
        found.append(full)
    return found


def _place(plan: Plan, shape: Sequence[int], axis: int) -> tuple[int, int, int, int]:
    """Return where the elements of an array lie: the first one, and strides of row and batch."""
    row, strides = _strides(shape, axis)
    outer, inner = (strides[group[-1]] if group else 0 for group in (plan.outer, plan.inner))
    return 0, row, outer, inner


def has_device() -> bool:
    """Return whether JAX and this package can use a device."""
    return "cuda" in _backends()


def call_products(g: jax.Array, x: jax.Array, *, axis: int, periodic: bool) -> Sequence[jax.Array]:
    """Return the products of two arrays of one shape by the kernel of a device.

    They are -(g_i x_{i-1}, g_i x_i, g_i x_{i+1}) along `axis`, which is negative.
    """
    cuda = _backends()["cuda"]
    place = x.ndim + axis
    sizes = (x.shape[place], prod(x.shape[:place]), prod(x.shape[place + 1 :]))
    layout = np.array([cuda.PERIODIC if periodic else 0, *sizes], np.int64)
    results = [jax.ShapeDtypeStruct(x.shape, x.dtype)] * 3
    return jax.ffi.ffi_call(_PRODUCTS, results)(g, x, layout=layout)


def _shifted(array: jax.Array, rows: int, axis: int) -> jax.Array:
    """Shift the rows of a periodic diagonal."""
    return array if array.shape[axis] == 1 else jnp.roll(array, rows, axis)


def _with_rows(shape: Sequence[int], axis: int, rows: int) -> tuple[int, ...]:
    """Return a shape with another number of rows."""
    changed = list(shape)
    changed[axis] = rows
    return tuple(changed)


def _strides(shape: Sequence[int], axis: int) -> tuple[int, list[int]]:
    """Return the strides of the rows and of the batch axes in elements, 0 for a length of 1."""
    strides = [
        stride if size > 1 else 0
        for size, stride in zip(shape, contiguous_strides(shape, 1), strict=True)
    ]
    return strides.pop(axis), strides


def _merged(
    operands: list[jax.Array], shape: tuple[int, ...], axis: int
) -> tuple[Plan, list[jax.Array]]:
    """Merge the batch axes to two; operands that prevent it broadcast in memory."""
    batch = list(shape)
    del batch[axis]
    strides = [_strides(each, axis)[1] for each in (*(a.shape for a in operands), shape)]
    plan = plan_lines(tuple(batch), strides, strides[-1], keep=(len(operands),))
    for k in plan.copied:
        rows = operands[k].shape[axis]
        operands[k] = jnp.broadcast_to(operands[k], _with_rows(shape, axis, rows))
    return plan, operands


def _layout(
    plan: Plan,
    operands: Sequence[jax.Array],
    shape: tuple[int, ...],
    axis: int,
    flags: int,
    *,
    pivot: int,
    moved: bool,
) -> NDArray[np.int64]:
    """Return the layout of a call; `moved` if each off-diagonal is that of the transpose."""
    core = _backends()["cpu"]
    rows = shape[axis]
    places = []
    for k, each in enumerate((*(a.shape for a in operands), shape)):
        first, row, *groups = _place(plan, each, axis)
        # One entry of several rows is the same in each row; none is the diagonal of one row.
        if k in (_LOWER, _UPPER) and each[axis] != 1 and (moved or each[axis] < rows):
            flags |= core.SHORT_LOWER if k == _LOWER else core.SHORT_UPPER
            first = row if k == _UPPER and each[axis] == rows else 0
        places += [first, row, *groups]
    sizes = (prod(plan.batch[k] for k in group) for group in (plan.outer, plan.inner))
    return np.array([pivot, flags, rows, *sizes, *places], np.int64)
