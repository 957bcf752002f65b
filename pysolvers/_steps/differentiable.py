"""The formulas of products and implicit steps for JAX and PyTorch; see pysolvers/_xp.py.

`solve` is `solve_tridiagonal` of the library. Nothing is moved along other axes: the operands of a
call get all axes of its result, and their rows lie along the axis of its systems.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._checks import require, require_number
from .._lines.prepared import require_columns
from .._row_sums import RowSums, complex_sums, form_of
from .._runtime.arrays import factor_axis, resolve_shape
from .._runtime.lines import Shape
from .._xp import ArrayLibrary
from .calls import axes_of, axis_of_columns, faces_of
from .flux_rows import End, conductance, sums_and_sides

Array = Any
_MATRIX = ("lower", "diag", "upper")


class _Lines(NamedTuple):
    """Operands of one call, with all axes of the shape."""

    of: dict[str, Array]
    shape: Shape
    axis: int  # of the rows


def _lines(
    library: ArrayLibrary,
    named: dict[str, Any],
    where: Any,
    *,
    axis: int,
    leader: str,
    periodic: bool,
    rows: int | None = None,
) -> _Lines:
    """Bring operands to one dtype, and give them all axes.

    Off-diagonals, vectors and a mask, whose neighbours are read, get all rows, and so do numbers
    in a call of one line.
    """
    arrays = library.operands(named)
    if arrays[leader].ndim == 0:
        raise ValueError(f"{leader} must have at least one dimension, got a 0-d array")
    if where is not None:
        mask = library.checked("where", where)
        if not str(mask.dtype).endswith("bool"):
            raise TypeError(f"where: need booleans, got {mask.dtype}: write where != 0")
        arrays = {**arrays, "where": mask}
    shape = resolve_shape(arrays, axis, leader=leader, periodic=periodic, rows=rows)
    along, rows = shape.axis, shape.rows
    lines = {name: _with_all_axes(array, shape) for name, array in arrays.items()}
    for name, line in lines.items():
        is_number = arrays[name].ndim == 0 and line.ndim == 1  # a line has an entry for each row
        if (is_number or name in ("x", "where")) and line.shape[along] != rows:
            full = (*line.shape[:along], rows, *line.shape[along + 1 :])
            lines[name] = library.xp.broadcast_to(line, full)
    for name, omits in zip(arrays, shape.omits, strict=False):
        if name not in ("lower", "upper") or periodic or rows == 0:
            continue
        line, is_first = lines[name], name == "lower"
        if not omits and line.shape[along] == rows:  # the corner is ignored, also if it is NaN
            line = library.rows(line, int(is_first), rows - (not is_first), along)
        elif not omits:
            continue
        lines[name] = library.padded(line, int(is_first), int(not is_first), along)
    return _Lines(lines, shape, along)


def _named(library: ArrayLibrary, operation: str, diag: Any, **others: Any) -> Any:
    """Return operands by name in the order of a call, and the form of the matrix.

    Raises TypeError if a matrix with row sums is complex.
    """
    diag, form = form_of(diag)
    named = {"lower": others.pop("lower"), "diag": diag, **others}
    if form is not None:
        for name in _MATRIX:
            if library.is_complex(named[name]):
                dtype = getattr(named[name], "dtype", "complex128")
                raise complex_sums(operation, dtype)
    return named, form


def _with_real_matrix(library: ArrayLibrary, of: dict[str, Array]) -> dict[str, Array]:
    """Return operands of one dtype with a real matrix, whatever the vectors are."""
    return {
        name: line.real if name in _MATRIX and library.is_complex(line) else line
        for name, line in of.items()
    }


def _with_all_axes(array: Array, shape: Shape) -> Array:
    """Return an operand with all axes of a shape; one of one dimension lies along the rows."""
    ndim = len(shape.full)
    if array.ndim == 1 < ndim:
        return array.reshape((1,) * shape.axis + (-1,) + (1,) * (ndim - 1 - shape.axis))
    return array[(None,) * (ndim - array.ndim) + (...,)] if array.ndim < ndim else array


def _length(library: ArrayLibrary, dt: Any, theta: float, like: Array) -> Array:
    """Return theta dt with the dtype of an array."""
    h = library.like("dt", dt, like)
    require(h.ndim == 0, "dt must be a number or an array without axes", h.shape)
    return float(theta) * h


def _neighbour(library: ArrayLibrary, x: Array, by: int, axis: int, *, periodic: bool) -> Array:
    """Return x of the row before (1) or after (-1) each row; beyond the ends 0."""
    rows = x.shape[axis]
    if rows == 0:
        return x
    if periodic:
        return library.shifted(x, by, axis)
    if by == 1:
        return library.padded(library.rows(x, 0, rows - 1, axis), 1, 0, axis)
    return library.padded(library.rows(x, 1, rows, axis), 0, 1, axis)


def _product(
    library: ArrayLibrary,
    of: dict[str, Array],
    x: Array,
    axis: int,
    *,
    periodic: bool,
    has_sums: bool,
) -> Array:
    """Return A x; with row sums, `diag` has the sums and A x takes differences of x."""
    if has_sums and not periodic and x.shape[axis] > 0:
        # Differences to rows beyond the ends are 0: off-diagonals can be one number for all rows.
        rows = x.shape[axis]
        ahead = library.rows(x, 1, rows, axis) - library.rows(x, 0, rows - 1, axis)
        before, after = library.padded(ahead, 1, 0, axis), library.padded(ahead, 0, 1, axis)
        return of["diag"] * x - of["lower"] * before + of["upper"] * after
    above = _neighbour(library, x, 1, axis, periodic=periodic)
    below = _neighbour(library, x, -1, axis, periodic=periodic)
    if has_sums:
        return of["diag"] * x + of["lower"] * (above - x) + of["upper"] * (below - x)
    return of["lower"] * above + of["diag"] * x + of["upper"] * below


def matvec(
    library: ArrayLibrary,
    lower: Any,
    diag: Any,
    upper: Any,
    x: Any,
    *,
    axis: int = -1,
    periodic: bool = False,
) -> Array:
    """Return A x."""
    named, form = _named(library, "tridiagonal_matvec", diag, lower=lower, upper=upper, x=x)
    of, _, axis = _lines(library, named, None, axis=axis, leader="x", periodic=periodic)
    return _product(library, of, of["x"], axis, periodic=periodic, has_sums=form is not None)


def single(diagonal: Array, rows: int) -> Array:
    """Return a diagonal of factors of `rows` rows; of one entry, which all rows have, a number."""
    return diagonal.reshape(()) if tuple(diagonal.shape) == (1,) != (rows,) else diagonal


def masked_product(
    library: ArrayLibrary,
    diagonals: tuple[Array, Array, Array],
    rows: int,
    x: Array,
    where: Array | None,
    *,
    has_sums: bool,
    axis: int,
    periodic: bool,
) -> Array:
    """Return A x with the diagonals of factors; outside `where` x."""
    lower, diag, upper = (single(diagonal, rows) for diagonal in diagonals)
    middle = RowSums(diag, check_signs=False) if has_sums else diag
    inside = x if where is None else library.xp.where(where, x, 0)
    y = matvec(library, lower, middle, upper, inside, axis=axis, periodic=periodic)
    return y if where is None else library.xp.where(where, y, x)


def residual(
    library: ArrayLibrary,
    lower: Any,
    diag: Any,
    upper: Any,
    x: Any,
    rhs: Any,
    *,
    axis: int = -1,
    periodic: bool = False,
) -> Array:
    """Return rhs - A x."""
    named, form = _named(library, "residual", diag, lower=lower, upper=upper, x=x, rhs=rhs)
    of, _, axis = _lines(library, named, None, axis=axis, leader="rhs", periodic=periodic)
    y = _product(library, of, of["x"], axis, periodic=periodic, has_sums=form is not None)
    return of["rhs"] - y


def _clean(library: ArrayLibrary, array: Array, inside: Any, outside: float = 0.0) -> Array:
    """Return an array with a number outside a mask, if there is one."""
    if inside is None:
        return array
    return library.xp.where(inside, array, library.xp.zeros_like(array) + outside)


def _masked(
    library: ArrayLibrary, of: dict[str, Array], outside: float, axis: int, *, periodic: bool
) -> tuple[Array, Array, Array]:
    """Return diagonals that do not couple to rows outside the mask, if there is one.

    There the diagonal is `outside`. Entries are replaced before anything is computed from them:
    NaN times a zero gradient is NaN.
    """
    inside = of.get("where")
    if inside is None:
        return of["lower"], of["diag"], of["upper"]
    ones = library.xp.where(inside, library.xp.ones_like(inside * 1.0), inside * 0.0)
    before = _neighbour(library, ones, 1, axis, periodic=periodic) > 0.5
    after = _neighbour(library, ones, -1, axis, periodic=periodic) > 0.5
    return (
        _clean(library, of["lower"], inside & before),
        _clean(library, of["diag"], inside, outside),
        _clean(library, of["upper"], inside & after),
    )


def masked_matrix(
    library: ArrayLibrary,
    lower: Any,
    diag: Any,
    upper: Any,
    where: Any,
    *,
    axis: int,
    rows: int | None,
    periodic: bool,
    outside: float = 1.0,
) -> tuple[Array, Array, Array, Array, int]:
    """Return the diagonals of matrices of factors inside a mask, the mask, and the axis of solves.

    The arrays have equally many axes. In rows outside ``diag`` is `outside`, by default that of the
    identity, also if it has row sums.
    """
    mask = library.checked("where", where)
    named = {"lower": lower, "diag": diag, "upper": upper}
    if not getattr(diag, "shape", ()):  # a number: the rows are those of the mask
        number = library.operands(named)["diag"].reshape(())
        named["diag"] = library.xp.zeros_like(mask * number) + number
    ndim = max(mask.ndim, *(a.ndim for a in library.operands(named).values()))
    place, own = factor_axis(axis, ndim)
    options: dict[str, Any] = {"leader": "diag", "periodic": periodic, "rows": rows}
    of, _, along = _lines(library, named, where, axis=place, **options)
    matrix = _masked(library, of, outside, along, periodic=periodic)
    return *matrix, of["where"], own


def solve_masked(
    library: ArrayLibrary,
    solve: Callable[..., Array],
    lower: Any,
    diag: Any,
    upper: Any,
    rhs: Any,
    where: Any,
    *,
    axis: int,
    periodic: bool,
) -> Array:
    """Solve with the rows inside a mask; outside x is rhs."""
    named, form = _named(library, "solve_tridiagonal", diag, lower=lower, upper=upper, rhs=rhs)
    of, _, axis = _lines(library, named, where, axis=axis, leader="rhs", periodic=periodic)
    if form is not None:
        of = _with_real_matrix(library, of)
    matrix = _masked(library, of, 1.0, axis, periodic=periodic)
    inside, b = of["where"], of["rhs"]
    x = _solved(solve, *matrix, _clean(library, b, inside), form, axis, periodic=periodic)
    return library.xp.where(inside, x, b)


def _solved(
    solve: Callable[..., Array],
    lower: Array,
    diag: Array,
    upper: Array,
    rhs: Array,
    form: RowSums | None,
    axis: int,
    *,
    periodic: bool,
) -> Array:
    """Solve along an axis; without `form`, `diag` is the main diagonal."""
    lower, diag, upper = (_line_of(array, axis) for array in (lower, diag, upper))
    middle = diag if form is None else RowSums(diag, check_signs=False)
    return solve(lower, middle, upper, rhs, axis=axis - rhs.ndim, periodic=periodic)


def _line_of(array: Array, axis: int) -> Array:
    """Return a diagonal, that of one matrix for all systems with one dimension."""
    is_one = all(size == 1 for k, size in enumerate(array.shape) if k != axis)
    return array.reshape(-1) if is_one and array.shape[axis] > 1 else array


def require_theta(theta: float, operation: str = "theta_step") -> None:
    """Raise unless theta of a step is a number in its range."""
    require_number("theta", theta)
    require(0 < theta <= 1, f"{operation}: theta must be greater than 0 and at most 1", theta)


def _solved_lines(
    solve: Callable[..., Array],
    of: dict[str, Array],
    form: RowSums | None,
    axis: int,
    *,
    periodic: bool,
) -> Array:
    """Solve the equations of named lines."""
    rows = of["lower"], of["diag"], of["upper"]
    return _solved(solve, *rows, of["rhs"], form, axis, periodic=periodic)


def _in_contact(library: ArrayLibrary, lines: dict[str, Array], contact: Array) -> dict[str, Array]:
    """Return equations whose rows in contact say that y is the bound."""
    values = {"lower": 0.0, "diag": 1.0, "upper": 0.0, "rhs": lines["least"]}
    return {name: library.xp.where(contact, value, lines[name]) for name, value in values.items()}


def _contact(
    library: ArrayLibrary,
    solve: Callable[..., Array],
    lines: dict[str, Array],
    inside: Array | None,
    form: RowSums | None,
    repeat: Callable[[Callable[[Array], Array], Array, int], Array],
    axis: int,
    *,
    periodic: bool,
) -> Array:
    """Return the rows in which the solution of an obstacle problem is equal to its bound.

    The primal-dual active set method: rows below the bound come to the rows in contact, and those
    with a negative residual leave them. It ends after a finite number of steps if the matrix is an
    M-matrix (M. Hintermueller, K. Ito and K. Kunisch, SIAM J. Optim. 13 (2002) 865-888).
    """
    fixed = {name: library.constant(line) for name, line in lines.items()}
    rows = fixed["rhs"].shape[axis]

    def advance(contact: Array) -> Array:
        own = _in_contact(library, fixed, contact)
        y = _solved_lines(solve, own, form, axis, periodic=periodic)
        product = _product(library, fixed, y, axis, periodic=periodic, has_sums=form is not None)
        found = library.xp.where(contact, product >= fixed["rhs"], y < fixed["least"])
        return found if inside is None else found & inside

    first = sum(library.xp.zeros_like(line) for line in fixed.values()) + fixed["rhs"]
    first = first < fixed["least"]
    return repeat(advance, first if inside is None else first & inside, rows + 1)


def step(
    library: ArrayLibrary,
    solve: Callable[..., Array],
    lower: Any,
    diag: Any,
    upper: Any,
    u: Any,
    *,
    dt: Any,
    theta: float = 0.5,
    source: Any = None,
    axis: int = -1,
    periodic: bool = False,
    where: Any = None,
    projected: Any = None,
    repeat: Callable[[Callable[[Array], Array], Array, int], Array] | None = None,
) -> Array:
    """Make the step of `pysolvers.theta_step`; dt can be an array without axes.

    With `projected`, repeat(advance, first, most) calls advance until its result is the argument.
    """
    require_theta(theta)
    named, form = _named(library, "theta_step", diag, lower=lower, upper=upper, u=u)
    if source is not None:
        named["source"] = source
    if projected is not None:
        named["projected"] = projected
    of, _, axis = _lines(library, named, where, axis=axis, leader="u", periodic=periodic)
    if projected is not None and library.is_complex(of["u"]):
        raise TypeError(f"theta_step: projected needs real operands, got {of['u'].dtype}")
    if form is not None:
        of = _with_real_matrix(library, of)
    h, inside = _length(library, dt, theta, of["diag"]), of.get("where")
    lower, diag, upper = _masked(library, of, 0.0, axis, periodic=periodic)
    rhs = start = _clean(library, of["u"], inside)
    if source is not None:
        rhs = start + h * _clean(library, of["source"], inside)
    lines = {"lower": -h * lower, "diag": 1 - h * diag, "upper": -h * upper, "rhs": rhs}
    if projected is not None and repeat is not None:
        bound = _clean(library, of["projected"], inside)
        lines["least"] = start + float(theta) * (bound - start)
        contact = _contact(library, solve, lines, inside, form, repeat, axis, periodic=periodic)
        lines = _in_contact(library, lines, contact)
    y = _solved_lines(solve, lines, form, axis, periodic=periodic)
    x = y if theta == 1 else start + (y - start) / float(theta)
    if projected is not None:
        x = library.xp.where(contact, bound, x)
    return x if inside is None else library.xp.where(inside, x, of["u"])


class ThetaMatrix(NamedTuple):
    """The matrices I - theta dt A, as arguments of `factor_tridiagonal`, and the mask."""

    lower: Array
    diag: Array | RowSums
    upper: Array
    axis: int
    inside: Array | None  # with as many axes as the diagonals


def theta_matrix(
    library: ArrayLibrary,
    lower: Any,
    diag: Any,
    upper: Any,
    where: Any,
    *,
    dt: Any,
    theta: float,
    axis: int,
    rows: int | None,
    periodic: bool,
) -> ThetaMatrix:
    """Return the matrices of steps; entries of A outside a mask enter nothing, also if NaN."""
    require_theta(theta, "factor_theta")
    named, form = _named(library, "factor_theta", diag, lower=lower, upper=upper)
    lower, diag, upper = named.values()
    inside = None
    if where is not None:
        options: dict[str, Any] = {"axis": axis, "rows": rows, "periodic": periodic, "outside": 0.0}
        *matrix, inside, axis = masked_matrix(library, lower, diag, upper, where, **options)
        named = dict(zip(named, matrix, strict=True))
    of = library.operands(named)
    h = _length(library, dt, theta, of["diag"])
    middle = 1 - h * of["diag"]
    if form is not None:
        middle = RowSums(middle, check_signs=form.check_signs)
    return ThetaMatrix(-h * of["lower"], middle, -h * of["upper"], axis, inside)


def steps_by_factor(
    library: ArrayLibrary,
    solve: Callable[[Array], Array],
    u: Array,
    source: Array | None,
    inside: Array | None,
    *,
    dt: Any,
    theta: float,
    repeat: Callable[[Callable[[Array], Array], Array], Array],
    beyond: Callable[[Array, Array, float], Array],
) -> Array:
    """Make steps by solves with the matrices of `theta_matrix`.

    The arrays broadcast to u, whose shape is that of the solutions; repeat(advance, first) calls
    advance once for each step, and beyond(x, y, gain) returns x + gain (y - x).
    """
    start, added = _clean(library, u, inside), None
    if source is not None:
        added = _length(library, dt, theta, u) * _clean(library, source, inside)

    def advance(x: Array) -> Array:
        y = solve(x if added is None else x + added)
        return y if theta == 1 else beyond(x, y, 1 / float(theta))

    x = repeat(advance, start)
    return x if inside is None else library.xp.where(inside, x, u)


def diffusion(
    library: ArrayLibrary,
    solve_symmetric: Callable[..., Array],
    T: Any,
    K: Any,
    dz: Any,
    dt: Any,
    *,
    axis: int,
    flux_first: Any = None,
    flux_last: Any = None,
    value_first: Any = None,
    value_last: Any = None,
    source: Any = None,
    theta: float = 1,
    where: Any = None,
) -> Array:
    """Make the step of `pysolvers.implicit_diffusion`; dt can be an array without axes.

    `solve_symmetric` is `solve_row_sums` of the library: the flux through a face is that of both of
    its rows, so that the matrix is its own transpose.
    """
    require_number("theta", theta)
    require(0 < theta <= 1, "implicit_diffusion: theta must be greater than 0 and at most 1", theta)
    ends = {
        "flux_first": flux_first,
        "flux_last": flux_last,
        "value_first": value_first,
        "value_last": value_last,
    }
    columns = {name: value for name, value in ends.items() if value is not None}
    ndim = axes_of({"T": T, "K": K, "dz": dz, "source": source, "where": where})
    along = axis_of_columns(axis, ndim) - ndim
    lower, upper = faces_of(K, T, along, ndim, tuple(columns))
    named = {"lower": lower, "diag": dz, "upper": upper, "T": T}
    if source is not None:
        named["source"] = source
    promoted = library.operands({**named, **columns})
    arrays = {name: promoted[name] for name in named}
    faces = arrays["lower"], arrays["upper"]
    of, shape, axis = _lines(library, arrays, where, axis=axis, leader="T", periodic=False)
    for name in columns:
        require_columns(name, promoted[name], shape)
    xp, inside = library.xp, of.get("where")
    if shape.rows == 0:
        return xp.broadcast_to(of["T"], shape.full)
    h = _length(library, dt, theta, of["T"])
    _, thick, k = _masked(library, of, 1.0, axis, periodic=False)
    start = _clean(library, of["T"], inside)
    whole = xp.zeros_like(start + thick + k)
    thick, rows = thick + whole, shape.rows
    above, below = (library.rows(thick, i, rows - 1 + i, axis) for i in (0, 1))
    given = []
    for name in columns:
        is_first, face = name.endswith("first"), None
        at = _end_rows(library, inside, whole, axis, is_first=is_first)
        if name.startswith("value_"):
            face = _clean(library, _with_all_axes(faces[not is_first], shape), at)
        values = promoted[name][(None,) * (whole.ndim - 1 - promoted[name].ndim) + (...,)]
        given.append(End(at, values[(slice(None),) * axis + (None,)], face))
    more = None if source is None else _clean(library, of["source"], inside)
    sums, rhs = sums_and_sides(xp, thick, start, more, h, given)
    between = conductance(library.rows(k + whole, 0, rows - 1, axis), h, above, below)
    y = solve_symmetric(between, sums, rhs + whole, axis=axis - whole.ndim, periodic=False)
    x = y if theta == 1 else start + (y - start) / float(theta)
    return x if inside is None else xp.where(inside, x, of["T"])


def _end_rows(
    library: ArrayLibrary, inside: Any, like: Array, axis: int, *, is_first: bool
) -> Array:
    """Return where the first or the last row inside is."""
    xp = library.xp
    ones = like + 1
    within = ones if inside is None else xp.where(inside, ones, like)
    so_far, rows = xp.cumsum(within, axis), like.shape[axis]
    left = so_far if is_first else library.rows(so_far, rows - 1, rows, axis) - so_far + 1
    return (within > 0.5) & (left < 1.5)
