"""Products and implicit steps of arrays that are split over the ranks of a group.

A product needs one number of each neighbour and system. The rows at the ends of a part are computed
by a call of three rows, so that each row has the bits of a call with the whole arrays. A step that
is cut is a split solve: (I - h A) y = u + h s needs no neighbours of u. A diffusion of cut columns
needs the thickness of the layers beyond the cuts; it is a split solve by row sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._errors import BackendError
from .._lines.step import Operation, Prepared, finish, prepare
from .._options import Choice
from .._row_sums import RowSums
from .._runtime.arrays import padded_shape
from .._runtime.device import is_device_array
from .._runtime.interop import locate
from ..distributed import Group, Slab
from ..distributed._group import own_device
from ..distributed._halo import faces_of, refresh_halo
from ..distributed._systems import check_short, check_sizes, checked_group
from ..factor import factor_tridiagonal
from ..tridiagonal import solve_tridiagonal
from .flux_rows import End, conductance, sums_and_sides

Array = NDArray[Any]
Multiply = Callable[[Prepared], Array]

_MATRIX = ("lower", "diag", "upper")
_NODES = 4  # the x of the rank before, the first and the last own one, and that of the rank after


def multiply_split(
    group: Group | None,
    split: Slab | None,
    named: dict[str, Any],
    about: Operation,
    choice: Choice,
    multiply: Multiply,
) -> Array:
    """Return a product, or a residual, of operands of which each rank holds its part.

    `multiply` computes that of a prepared call in one process.
    """
    operation = about.name
    group, split = checked_group(group, split)
    with group.agreement(operation) as agreed:
        given = named if choice.out is None else {**named, "out": choice.out}
        choice = choice._replace(device=own_device(choice.device, group, given))
        call = prepare(named, None, about, choice)
        full = call.shape.full
        along = split.of(len(full))
        is_cut = along == call.shape.axis and group.size > 1
        if is_cut:
            check_short(group, call.shape)
        agreed.own = full[along]
        agreed.same = {
            "dtype": str(call.dtype),
            "shape": tuple(":" if axis == along else size for axis, size in enumerate(full)),
            "axis": call.shape.axis,
            "batch shape of x": call.views["x"].shape[:-1] if is_cut and call.result.size else None,
            "periodic": choice.periodic,
        }
    check_sizes(along, agreed.found)
    if not is_cut or not call.result.size:
        with group.agreement(operation):
            return multiply(call)
    halo = _ends_of(call, group)
    with group.agreement(operation):
        ends = _end_rows(call, halo, group, multiply)
        multiply(call._replace(choice=choice._replace(periodic=False)))
        for row, values in ends:
            call.target.write(_row(call.views["result"], row), call.target.upload(values))
        return finish(call)


def _row(view: Array, row: int) -> Array:
    """View a row of an operand, the only one if all rows are the same."""
    at = row % view.shape[-1]
    return view[..., at : at + 1]


def _on_host(call: Prepared, name: str, row: int) -> Array:
    """Return a row of an operand in the memory of the host."""
    view = _row(call.views[name], row)
    return call.target.download(view) if is_device_array(view) else np.array(view)


def _ends_of(call: Prepared, group: Group) -> Array:
    """Return the first and the last x of this rank, between those of its neighbours."""
    own = [_on_host(call, "x", row) for row in (0, -1)]
    field = np.concatenate([own[0], own[0], own[1], own[1]], axis=-1)
    axis = field.ndim - 1
    refresh_halo(group, call.operation.name, faces_of(group, axis, _NODES, (1, 1)), field)
    return field


def _end_rows(
    call: Prepared, halo: Array, group: Group, multiply: Multiply
) -> list[tuple[int, Array]]:
    """Return the rows of the result that need a neighbour, by their numbers."""
    rows, periodic = call.shape.rows, call.choice.periodic
    has_before = periodic or group.rank > 0
    has_after = periodic or group.rank < group.size - 1
    found = []
    for row, is_wanted in ((0, has_before), (-1, has_after)):
        if not is_wanted or (row == -1 and rows == 1 and has_before):
            continue
        is_first, is_last = row == 0 or rows == 1, row == -1 or rows == 1
        own = _on_host(call, "x", row)
        before = halo[..., :1] if is_first else _on_host(call, "x", rows - 2)
        after = halo[..., 3:] if is_last else _on_host(call, "x", 1)
        before = np.zeros_like(own) if is_first and not has_before else before
        after = np.zeros_like(own) if is_last and not has_after else after
        x = np.concatenate([before, own, after], axis=-1)
        operands = {"x": x}
        for name, view in call.views.items():
            if name in ("x", "result"):
                continue
            is_corner = (name == "lower" and is_first and not has_before) or (
                name == "upper" and is_last and not has_after
            )
            value = np.zeros_like(own[..., :1]) if is_corner else _on_host(call, name, row)
            operands[name] = np.repeat(value, 3, axis=-1) if view.ndim else value
        ordered = {name: operands[name] for name in call.views if name in operands}
        operation = call.operation._replace(replaces="")
        small = prepare(ordered, None, operation, Choice(threads=1))
        found.append((row, np.asarray(multiply(small))[..., 1:2]))
    return found


def step_split(
    group: Group | None,
    split: Slab | None,
    named: dict[str, Any],
    about: Operation,
    choice: Choice,
    whole: Callable[..., Any],
    settings: Mapping[str, Any],
    *,
    refused: Mapping[str, Any],
    has_info: bool,
) -> Any:
    """Make a theta step of operands of which each rank holds its part.

    `whole` makes that of systems that are not cut; `refused` has operands that others cannot have.
    """
    operation = about.name
    group, split = checked_group(group, split)
    options: dict[str, Any] = {
        "axis": choice.axis,
        "periodic": choice.periodic,
        "threads": choice.threads,
    }
    with group.agreement(operation) as agreed:
        given = named if choice.out is None else {**named, "out": choice.out}
        choice = choice._replace(device=own_device(choice.device, group, given))
        options |= {"device": choice.device, "stream": choice.stream}
        arrays = {name: _with_axes(value) for name, value in named.items()}
        ndim = max(np.ndim(value) for value in arrays.values())
        along = split.of(ndim)
        is_cut = along == choice.axis % ndim and group.size > 1
        for name, value in refused.items():
            if is_cut and value is not None:
                raise ValueError(
                    f"{operation} does not take {name} if its systems are cut over the ranks of a "
                    "group: split the arrays along another axis"
                )
        if is_cut and settings["theta"] == 0:
            raise ValueError(
                f"{operation}: theta must be greater than 0 if systems are cut: write u + dt * "
                "(tridiagonal_matvec(lower, diag, upper, u, group=group, split=split) + source)"
            )
        if is_cut and choice.out is not None:
            prepare(named, None, about, choice)  # has the errors of out, which is written last
        agreed.same = {"is cut": is_cut, "return_info": has_info, **settings}
    if not is_cut:
        with group.agreement(operation):
            return whole(
                *(named[name] for name in (*_MATRIX, "u")),
                source=named.get("source"),
                projected=named.get("projected"),
                out=choice.out,
                check_finite=choice.check_finite,
                return_info=has_info,
                **options,
            )
    theta = float(settings["theta"])
    h = theta * float(settings["dt"])
    for name in {"u", "source"} & arrays.keys():  # sums need all axes
        if np.ndim(arrays[name]) == 1:
            full = padded_shape(np.shape(arrays[name]), choice.axis % ndim, ndim)
            arrays[name] = arrays[name].reshape(full)
    lower, diag, upper, u = (arrays[name] for name in (*_MATRIX, "u"))
    y, info = solve_tridiagonal(
        -h * lower,
        1 - h * diag,
        -h * upper,
        u + h * arrays["source"] if "source" in arrays else u,
        pivot=settings["pivot"],
        on_singular=settings["on_singular"],
        check_finite=choice.check_finite,
        group=group,
        split=split,
        return_info=True,
        **options,
    )
    x = y if theta == 1 else u + (y - u) / theta
    if choice.out is not None:
        choice.out[...] = x
        x = choice.out
    return (x, info) if has_info else x


class _Columns(NamedTuple):
    """The operands of a diffusion of columns, the layers along the last axis."""

    T: Array
    K: Array  # of the faces before and after the layers, or one for all
    dz: Array
    source: Array | None
    ends: dict[str, Array]


def diffuse_split(
    group: Group | None,
    split: Slab | None,
    named: dict[str, Any],
    place: int,
    ndim: int,
    whole: Callable[..., Any],
    *,
    dt: float,
    theta: float,
    out: Any,
    device: str | None,
    threads: int | None,
    check_finite: bool,
) -> Any:
    """Make the step of `implicit_diffusion` of operands of which each rank holds its part.

    `whole` makes that of columns that are not cut, on a device; `place` is the axis of the columns
    of `ndim` axes.
    """
    operation = "implicit_diffusion"
    group, split = checked_group(group, split)
    with group.agreement(operation) as agreed:
        given = {name: value for name, value in named.items() if value is not None}
        device = own_device(device, group, given if out is None else {**given, "out": out})
        along = split.of(ndim)
        is_cut = along == place and group.size > 1
        agreed.same = {"is cut": is_cut, "dt": dt, "theta": theta}
        if is_cut:
            own = _cut_columns(given, place, ndim, out)
            agreed.own = own.T.shape[-1]
            agreed.same |= {
                "dtype": str(own.T.dtype),
                "shape of K and dz": _ends_of_columns(own).shape,
                "conditions": sorted(own.ends),
            }
    if not is_cut:
        with group.agreement(operation):
            return whole(device=device)
    check_sizes(along, agreed.found)
    halo = _ends_of_columns(own)
    refresh_halo(group, operation, faces_of(group, halo.ndim - 1, _NODES, (1, 1)), halo)
    with group.agreement(operation):
        for end, is_outer, name in ((0, group.rank == 0, "first"), (1, _is_last(group), "last")):
            beyond, face = halo[1, ..., 3 * end], halo[1, ..., 1 + end]
            if not is_outer and not np.array_equal(beyond, face, equal_nan=True):
                raise ValueError(
                    f"{operation}: K must have the same value on both ranks at the face between "
                    f"them, but differs at the {name} face of rank {group.rank}"
                )
    h = theta * float(dt)
    lower, sums, upper, right = _rows_of_columns(own, halo[0], h, group)
    options: dict[str, Any] = {"threads": threads, "check_finite": check_finite}
    matrix = (np.moveaxis(a, -1, place) for a in (lower, sums, upper))
    lower, sums, upper = matrix
    factor = factor_tridiagonal(
        lower,
        RowSums(sums, check_signs=False),
        upper,
        axis=place - ndim,
        rows=own.T.shape[-1],
        group=group,
        split=split,
        **options,
    )
    T = np.moveaxis(own.T, -1, place)
    y = factor.solve(np.ascontiguousarray(np.moveaxis(right, -1, place)), **options)
    x = y if theta == 1 else T + (y - T) / theta
    if out is None:
        return x
    out[...] = x
    return out


def _is_last(group: Group) -> bool:
    """Return whether this rank has the last layers."""
    return group.rank == group.size - 1


def _cut_columns(given: dict[str, Any], place: int, ndim: int, out: Any) -> _Columns:
    """Check the operands of cut columns, and view them with the layers along the last axis."""
    what = "implicit_diffusion: if columns are cut over the ranks of a group,"
    if "where" in given:
        raise ValueError(
            f"{what} where must be None: pass K of 0 at the faces of the layers outside, or split "
            "the arrays along another axis"
        )
    named = given if out is None else {**given, "out": out}
    for name, value in named.items():
        if locate(value) is not None:
            raise BackendError(
                f"{what} arrays must be in memory of the host, {name} is on a device"
            )
    arrays = {name: np.asarray(value) for name, value in given.items()}
    dtype = np.result_type(*(arrays[n] if np.ndim(value) else value for n, value in given.items()))
    if dtype.kind in "biu":
        dtype = np.dtype(np.float64)
    if dtype not in (np.float32, np.float64):
        raise TypeError(f"{what} operands must be real, float32 or float64, got {dtype}")
    ends, views = {}, {}
    for name, array in arrays.items():
        if name.startswith(("flux_", "value_")):
            padded = (1,) * (ndim - 1 - array.ndim) + array.shape
            ends[name] = array.astype(dtype).reshape(padded)[..., None]
        else:
            full = padded_shape(array.shape, place, ndim) if array.ndim else (1,) * ndim
            views[name] = np.moveaxis(array.astype(dtype).reshape(full), place, -1)
    T, K = views["T"], views["K"]
    layers = T.shape[-1]
    if K.shape[-1] not in (1, layers + 1):
        raise ValueError(
            f"{what} K must be a number or have the {layers + 1} faces of the layers of this rank, "
            f"also those at the cuts, got {K.shape[-1]} along axis {place}"
        )
    batch = np.broadcast_shapes(*(view.shape[:-1] for view in (*views.values(), *ends.values())))
    shape = np.broadcast_shapes(
        (*batch, layers), *(view.shape for name, view in views.items() if name != "K")
    )
    if shape[-1] != layers:
        raise ValueError(f"{what} T must have all layers along axis {place}, got {layers}")
    if out is not None:
        full = (*shape[:-1][:place], layers, *shape[:-1][place:])
        if out.shape != full or out.dtype != dtype:
            raise ValueError(f"{what} out must have the shape {full} and the dtype {dtype}")
    return _Columns(np.broadcast_to(T, shape), K, views["dz"], views.get("source"), ends)


def _ends_of_columns(own: _Columns) -> Array:
    """Return dz, and K, at the first and the last layer, or face, between those of neighbours."""
    pairs = [(a[..., :1], a[..., -1:]) for a in (own.dz, own.K)]
    shape = np.broadcast_shapes(*(first.shape for first, _ in pairs))
    found = []
    for first, last in pairs:
        one, two = np.broadcast_to(first, shape), np.broadcast_to(last, shape)
        found.append(np.concatenate([one, one, two, two], axis=-1))
    return np.stack(found)


def _rows_of_columns(
    own: _Columns, halo: Array, h: float, group: Group
) -> tuple[Array, Array, Array, Array]:
    """Return the off-diagonals, the row sums and the right side; `halo` has dz beyond the ends."""
    layers, has_before, has_after = own.T.shape[-1], group.rank > 0, not _is_last(group)
    batch = halo.shape[:-1]
    d = np.broadcast_to(own.dz, (*batch, layers))
    before = halo[..., :1] if has_before else np.zeros_like(halo[..., :1])
    after = halo[..., 3:] if has_after else np.zeros_like(halo[..., :1])
    around = np.concatenate([before, d, after], axis=-1)
    k = conductance(own.K, h, around[..., :-1], around[..., 1:])
    lower, upper, ends = -k[..., :-1], -k[..., 1:], []
    for end, is_there, name in ((0, not has_before, "first"), (-1, not has_after, "last")):
        if not is_there:
            continue
        row = np.arange(layers) == end % layers
        (upper if end else lower)[..., row] = 0
        if f"flux_{name}" in own.ends:
            ends.append(End(row, own.ends[f"flux_{name}"]))
        if f"value_{name}" in own.ends:
            face = np.where(row, own.K[..., :1] if end == 0 else own.K[..., -1:], 0)
            ends.append(End(row, own.ends[f"value_{name}"], face.astype(own.K.dtype)))
    sums, right = sums_and_sides(np, d, own.T, own.source, h, ends)
    return lower, sums, upper, right


def _with_axes(value: Any) -> Any:
    """Return an operand with arithmetic: an array of any library, or one of NumPy."""
    return value if hasattr(value, "shape") else np.asarray(value)
