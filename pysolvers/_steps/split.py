"""Products and implicit steps of arrays that are split over the ranks of a group.

A product needs one number of each neighbour and system. The rows at the ends of a part are computed
by a call of three rows, so that each row has the bits of a call with the whole arrays. A step that
is cut is a split solve: (I - h A) y = u + h s needs no neighbours of u. A diffusion of cut columns
needs the thickness of the layers beyond the cuts; it is a split solve by row sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._errors import BackendError
from .._lines.masks import Beyond
from .._lines.prepared import Operation, Prepared, finish, prepare, viewed
from .._lines.step import Step, make_step, require_signs
from .._options import Choice, SolveInfo
from .._row_sums import RowSums, matrix_names
from .._runtime.arrays import padded_shape
from .._runtime.device import is_device_array
from .._runtime.interop import dtype_of, kind_of, library_of, locate, shape_of
from .._runtime.targets import Target, find_target
from ..distributed import Group, Slab
from ..distributed._group import own_device
from ..distributed._halo import with_neighbours
from ..distributed._masks import beyond_part
from ..distributed._systems import check_short, check_sizes, checked_group
from ..distributed._whole import solve_whole_lines
from ..tridiagonal import solve_tridiagonal
from .flux_rows import End, conductance, sums_and_sides
from .operands import in_one_precision

Array = NDArray[Any]
Multiply = Callable[[Prepared], Array]

_MATRIX = ("lower", "diag", "upper")
_CUT = "implicit_diffusion: if columns are cut over the ranks of a group,"


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
        call = viewed(prepare(named, None, about, choice))
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
    own = np.concatenate([_on_host(call, "x", row) for row in (0, -1)], axis=-1)
    return with_neighbours(group, call.operation.name, own)


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
    where: Any,
    about: Operation,
    choice: Choice,
    whole: Callable[..., Any],
    settings: Mapping[str, Any],
) -> Any:
    """Make a theta step of operands of which each rank holds its part.

    `whole` makes that of systems that are not cut.
    """
    operation = about.name
    group, split = checked_group(group, split)
    options: dict[str, Any] = {
        "axis": choice.axis,
        "periodic": choice.periodic,
        "threads": choice.threads,
        "pivot": choice.pivot,
        "on_singular": choice.on_singular,
    }
    has_info, has_sums, call = choice.return_info, choice.has_sums, None
    with group.agreement(operation) as agreed:
        given = named if where is None else {**named, "where": where}
        given = given if choice.out is None else {**given, "out": choice.out}
        choice = choice._replace(device=own_device(choice.device, group, given))
        options |= {"device": choice.device, "stream": choice.stream}
        arrays = in_one_precision(named)
        ndim = max(len(shape_of(value)) for value in (*arrays.values(), where))
        along = split.of(ndim)
        is_cut = along == choice.axis % ndim and group.size > 1
        if is_cut and settings["theta"] == 0:
            raise ValueError(
                f"{operation}: theta must be greater than 0 if systems are cut: write u + dt * "
                "(tridiagonal_matvec(lower, diag, upper, u, group=group, split=split) + source)"
            )
        if is_cut and (choice.out is not None or "projected" in named):
            call = viewed(prepare(named, where, about, choice))
            require_signs(call, float(settings["theta"]) * float(settings["dt"]))
        agreed.own = 0 if call is None else call.shape.rows
        agreed.same = {
            "is cut": is_cut,
            "return_info": has_info,
            "operands": [*named, "RowSums" * has_sums, "where" * (where is not None)],
            "pivot": choice.pivot,
            "on_singular": choice.on_singular,
            **settings,
        }
        if "projected" in named and call is not None:
            full = call.shape.full
            rest = tuple(":" if axis == along else size for axis, size in enumerate(full))
            agreed.same |= {"dtype": str(call.dtype), "shape": rest, "axis": call.shape.axis}
    if not is_cut:
        diag = named["diag"]
        diag = RowSums(diag, check_signs=choice.check_signs) if has_sums else diag
        with group.agreement(operation):
            return whole(
                named["lower"],
                diag,
                named["upper"],
                named["u"],
                source=named.get("source"),
                projected=named.get("projected"),
                where=where,
                out=choice.out,
                check_finite=choice.check_finite,
                return_info=has_info,
                **options,
            )
    if "projected" in named:
        assert call is not None
        check_sizes(along, agreed.found)
        found = _step_of_whole_lines(group, call, agreed.found, whole)
        return found if has_info else found[0]
    theta = float(settings["theta"])
    h = theta * float(settings["dt"])
    for name in {"u", "source"} & arrays.keys():  # sums need all axes
        shape = shape_of(arrays[name])
        if len(shape) == 1:
            full = padded_shape(shape, choice.axis % ndim, ndim)
            arrays[name] = arrays[name].reshape(full)
    lower, diag, upper, u = (arrays[name] for name in (*_MATRIX, "u"))
    middle = 1 - h * diag
    y, info = solve_tridiagonal(
        -h * lower,
        RowSums(middle, check_signs=choice.check_signs) if has_sums else middle,
        -h * upper,
        u + h * arrays["source"] if "source" in arrays else u,
        where=where,
        check_finite=choice.check_finite,
        group=group,
        split=split,
        return_info=True,
        **options,
    )
    if where is not None:
        x = added_inside(operation, u, y - u, 1 / theta, where, choice)
        return (x, info) if has_info else x
    x = y if theta == 1 else u + (y - u) / theta
    if choice.out is not None:
        choice.out[...] = x
        x = choice.out
    return (x, info) if has_info else x


def added_inside(
    operation: str, u: Any, difference: Any, gain: float, where: Any, choice: Choice
) -> Any:
    """Return u + gain difference inside a mask, and u outside, as the result of a call.

    It is a step of u whose matrix is 0. `where` is that of the caller, or an array with all axes
    where the operands are used.
    """
    named = {"lower": 0.0, "diag": 0.0, "upper": 0.0, "u": u, "source": difference}
    about = Operation(operation, "u", ("u", "source"), "u")
    is_used = isinstance(where, np.ndarray)
    choice = Choice(
        axis=choice.axis,
        pivot=False,
        out=choice.out,
        on_singular="ignore",
        device=choice.device,
        stream=choice.stream,
        threads=choice.threads,
    )
    call = prepare(named, None if is_used else where, about, choice)
    if is_used:
        call = call._replace(operands={**call.operands, "where": where})
    return make_step(call, Step(kind="theta", vector="u", step=1.0, gain=gain))


def _step_of_whole_lines(
    group: Group,
    call: Prepared,
    sizes: Sequence[int],
    whole: Callable[..., Any],
) -> tuple[Any, SolveInfo]:
    """Make a step whose substitution follows the rows in order: every system on one rank."""
    target, choice = call.target, call.choice
    policy, has_sums = choice.on_singular, choice.has_sums
    names = [name for name in call.views if name not in (*_MATRIX, "result")]

    def solve(lines: list[Array]) -> tuple[Array, SolveInfo]:
        """Make the steps of complete systems of the host."""
        lower, diag, upper, *others = lines
        answer: tuple[Array, SolveInfo] = whole(
            lower,
            RowSums(diag, check_signs=False) if has_sums else diag,
            upper,
            **dict(zip(names, others, strict=True)),
            pivot=choice.pivot,
            on_singular="nan" if policy == "nan" else "ignore",
            device=target.device_name,
            threads=choice.threads,
            return_info=True,
        )
        return answer

    info, counts, singular = solve_whole_lines(
        group,
        call.operation.name,
        target,
        call.shape,
        [call.views[name] for name in (*_MATRIX, *names)],
        call.views["result"],
        sizes,
        solve,
        periodic=False,
        names=matrix_names(has_sums=has_sums),
        explains="where" not in names,
    )
    answer = finish(call)
    singular.report(policy, call.operation.name, stacklevel=5)
    systems, rows = prod(call.shape.batch), sum(sizes)
    facts: dict[str, Any] = {"systems": systems, "rows": rows, "ranks": group.size, **counts}
    facts |= {"singular": singular.systems, "singular_rows": singular.rows}
    return answer, replace(info, dtype=call.dtype, exchange="lines", copied=(), **facts)


class _Memory(NamedTuple):
    """Where the operands of a diffusion are, and the functions of arrays there."""

    operation: str
    xp: Any
    like: Any = None  # an array on a device, of the dtype of the result; None for the host

    def target(self, array: Any) -> Target:
        """Return the device of an array."""
        return find_target(None, None, {"x": array}, operation=self.operation, leader="x")

    def get(self, array: Any) -> Array:
        """Return an array on the host."""
        if self.like is None:
            return np.asarray(array)
        target = self.target(array)
        if dtype_of(array) == np.bool_:
            return target.download(target.mask("x", array))
        return target.download(target.operands({"x": array})[0][0])

    def put(self, values: Array) -> Any:
        """Return an array of the host where the operands are, with their dtype, or of booleans."""
        if self.like is None:
            return values
        target = self.target(self.like)
        own = target.operands({"x": self.like})[0][0]
        x = target.result(None, {"x": self.like}, own, values.shape, own.dtype, leader="x")
        target.write(x, target.upload(np.ascontiguousarray(values, own.dtype)))
        array = target.finish(x, self.like)
        return array > 0 if values.dtype == np.bool_ else array


class _Columns(NamedTuple):
    """The operands of a diffusion of columns, the layers along the last axis."""

    memory: _Memory
    T: Any
    K: Any  # of the faces before and after the layers, or one for all
    dz: Any
    source: Any
    ends: dict[str, Any]
    inside: Any  # the mask, True without any
    has_mask: bool


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
    stream: object,
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
            if stream is not None:
                raise ValueError(
                    f"{_CUT} stream must be None, got {stream}: make the stream of the arrays the "
                    "current one of their library"
                )
            written = None if out is None else library_of(out).host_view(out)
            own = _cut_columns(given, place, ndim, written)
            ends = _ends_of_columns(own)
            edges = own.memory.get(_ends(own.memory.xp, own.inside))
            agreed.own = own.T.shape[-1]
            agreed.same |= {
                "dtype": str(dtype_of(own.T)),
                "shape of K and dz": ends.shape,
                "batch shape of where": edges.shape[:-1] if own.has_mask else None,
                "conditions": sorted(own.ends),
            }
    if not is_cut:
        with group.agreement(operation):
            return whole(device=device)
    check_sizes(along, agreed.found)
    halo = with_neighbours(group, operation, ends)
    beyond = beyond_part(group, operation, edges, is_cut=True, periodic=False)
    _require_same_faces(group, operation, edges, halo[1], beyond)
    others = _layers_of_others(group, operation, own)
    h = theta * float(dt)
    xp = own.memory.xp
    lower, sums, upper, right, T = (
        xp.moveaxis(a, -1, place) for a in _rows_of_columns(own, halo[0], beyond, others, h)
    )
    y = solve_tridiagonal(
        lower,
        RowSums(sums, check_signs=False),
        upper,
        right,
        axis=place,
        group=group,
        split=split,
        device=device,
        threads=threads,
        check_finite=check_finite,
    )
    x = y if theta == 1 else T + (y - T) / theta
    if own.has_mask:
        x = xp.where(xp.moveaxis(own.inside, -1, place), x, xp.moveaxis(own.T, -1, place))
    if written is None:
        like = named["T"]
        return library_of(like).from_host(x, like) if own.memory.like is None else x
    written[...] = x
    return out


def _require_same_faces(
    group: Group, operation: str, edges: Array, K: Array, beyond: Beyond
) -> None:
    """Raise ValueError if K at a cut differs from that of the neighbour; collective.

    `K` has the faces at the ends between those of the neighbours, `edges` the mask of the first and
    the last layer. Faces between a layer inside and one outside do not count.
    """
    with group.agreement(operation):
        for end, name in ((0, "first"), (1, "last")):
            counts = edges[..., -end] & beyond[end][..., 0]
            differ = K[..., 3 * end] != K[..., 1 + end]
            if np.any(differ & counts):
                raise ValueError(
                    f"{operation}: K must have the same value on both ranks at the face between "
                    f"them, but differs at the {name} face of rank {group.rank}"
                )


def _layers_of_others(group: Group, operation: str, own: _Columns) -> tuple[Array, Array]:
    """Return which columns have layers inside on ranks before, and after, this one; collective."""
    if not own.has_mask:
        return np.array([group.rank > 0]), np.array([group.rank < group.size - 1])
    found = group.allgather(operation, own.memory.get(own.inside.any(-1))[..., None])
    before, after = found[: group.rank], found[group.rank + 1 :]
    return np.asarray(before.any(0)), np.asarray(after.any(0))


def _cut_columns(given: dict[str, Any], place: int, ndim: int, out: Any) -> _Columns:
    """Check the operands of cut columns, and view them with the layers along the last axis."""
    operation = "implicit_diffusion"
    target = find_target(None, None, given, out, operation=operation, leader="T")
    where = given.get("where", True)
    values = {name: value for name, value in given.items() if name != "where"}
    _, dtype, _ = target.operands(values, vectors=tuple(values))
    if dtype not in (np.float32, np.float64):
        raise TypeError(f"{_CUT} operands must be real, float32 or float64, got {dtype}")
    mask = target.mask("where", where)
    memory = _memory_of(given["T"], dtype)
    xp = memory.xp

    def array(name: str, axes: int) -> Any:
        """Return an operand with the dtype of the result; a number has so many axes."""
        value = values[name]
        if locate(value) is None:
            own = np.asarray(value).astype(dtype)
            return own if memory.like is None else memory.put(own.reshape((1,) * axes))
        same = dtype_of(value) == dtype
        return value if same else library_of(value).converted(name, value, dtype)

    def rows_last(own: Any) -> Any:
        """View an operand with all axes, the layers last."""
        shape = shape_of(own)
        full = padded_shape(shape, place, ndim) if shape else (1,) * ndim
        return xp.moveaxis(own.reshape(full), place, -1)

    ends, views = {}, {}
    for name in values:
        if name.startswith(("flux_", "value_")):
            own = array(name, ndim - 1)
            padded = (1,) * (ndim - 1 - len(shape_of(own))) + shape_of(own)
            ends[name] = own.reshape((*padded, 1))
        else:
            views[name] = rows_last(array(name, ndim))
    inside = rows_last(
        memory.put(mask.reshape(mask.shape or (1,))) if locate(where) is None else where
    )
    T, K = views["T"], views["K"]
    layers = T.shape[-1]
    if K.shape[-1] not in (1, layers + 1):
        raise ValueError(
            f"{_CUT} K must be a number or have the {layers + 1} faces of the layers of this rank, "
            f"also those at the cuts, got {K.shape[-1]} along axis {place}"
        )
    everything = (*views.values(), *ends.values(), inside)
    batch = np.broadcast_shapes(*(tuple(view.shape[:-1]) for view in everything))
    full = (tuple(view.shape) for name, view in views.items() if name != "K")
    shape = np.broadcast_shapes((*batch, layers), tuple(inside.shape), *full)
    if shape[-1] != layers:
        raise ValueError(f"{_CUT} T must have all layers along axis {place}, got {layers}")
    if out is not None:
        wanted = (*shape[:-1][:place], layers, *shape[:-1][place:])
        if shape_of(out) != wanted or dtype_of(out) != dtype:
            raise ValueError(f"{_CUT} out must have the shape {wanted} and the dtype {dtype}")
    inside = xp.broadcast_to(inside, (*inside.shape[:-1], layers))
    own = views["dz"], views.get("source"), ends, inside, "where" in given
    return _Columns(memory, xp.broadcast_to(T, shape), K, *own)


def _memory_of(T: Any, dtype: np.dtype) -> _Memory:
    """Return where T is."""
    operation = "implicit_diffusion"
    if locate(T) is None:
        return _Memory(operation, np)
    xp = library_of(T).functions
    if xp is None:
        raise BackendError(
            f"{_CUT} arrays on a device must be of CuPy, PyTorch or JAX, T is a {kind_of(T)}: copy "
            "the arrays to the host, or split them along another axis"
        )
    like = T if dtype_of(T) == dtype else library_of(T).converted("T", T, dtype)
    return _Memory(operation, xp, like)


def _ends(xp: Any, array: Any) -> Any:
    """Return the first and the last entry along the last axis."""
    return xp.concatenate([array[..., :1], array[..., -1:]], -1)


def _ends_of_columns(own: _Columns) -> Array:
    """Return dz, and K, at the first and the last layer, or face, on the host."""
    pairs = [own.memory.get(_ends(own.memory.xp, a)) for a in (own.dz, own.K)]
    return np.stack(np.broadcast_arrays(*pairs))


def _rows_of_columns(
    own: _Columns, halo: Array, beyond: Beyond, others: tuple[Array, Array], h: float
) -> tuple[Any, Any, Any, Any, Any]:
    """Return the off-diagonals, the row sums, the right side, and T, which is 0 outside the mask.

    `halo` has dz beyond the ends, `beyond` the mask there; `others` says which columns have layers
    inside on the ranks before and after this one. What counts outside is finite: rows there are
    those of the identity, and K between a layer inside and one outside is 0.
    """
    xp, put = own.memory.xp, own.memory.put
    inside, K, layers = own.inside, own.K, own.T.shape[-1]
    within = xp.concatenate([put(beyond[0]), inside, put(beyond[1])], -1)
    dz = xp.broadcast_to(own.dz, (*own.dz.shape[:-1], layers))
    batch = halo.shape[:-1]
    around = xp.concatenate(
        [
            xp.broadcast_to(a, (*batch, a.shape[-1]))
            for a in (put(halo[..., :1]), dz, put(halo[..., 3:]))
        ],
        -1,
    )
    around = xp.where(within, around, xp.ones_like(around))
    faces = xp.where(within[..., :-1] & within[..., 1:], K, xp.zeros_like(K))
    k = conductance(faces, h, around[..., :-1], around[..., 1:])
    ends = []
    count = xp.cumsum(inside, -1)
    for end, name in ((0, "first"), (1, "last")):
        nearer = count if end == 0 else count[..., -1:] - count + 1
        at = inside & (nearer == 1) & ~put(others[end])
        if f"flux_{name}" in own.ends:
            ends.append(End(at, own.ends[f"flux_{name}"]))
        if f"value_{name}" in own.ends:
            outer = K if K.shape[-1] == 1 else K[..., 1:] if end else K[..., :-1]
            face = xp.where(at, outer, xp.zeros_like(outer))
            ends.append(End(at, own.ends[f"value_{name}"], face))
    T, source = own.T, own.source
    if own.has_mask:
        T = xp.where(inside, T, xp.zeros_like(T))
        source = None if source is None else xp.where(inside, source, xp.zeros_like(source))
    sums, right = sums_and_sides(xp, around[..., 1:-1], T, source, h, ends)
    return -k[..., :-1], sums, -k[..., 1:], right, T
