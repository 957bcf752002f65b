"""Products and implicit steps on a device: every kernel, by lengths, layouts and options."""

import numpy as np
import oracle
import pytest

import pysolvers

REALS = (np.float32, np.float64)
# Batches whose rows lie along the last or the first axis: parts of a warp, warps and blocks of
# tiles, clusters; chunks, warps and clusters of columns, aligned and not; long systems.
ROWS = ((50, 1), (40, 16), (300, 33), (37, 200), (19, 512), (5, 700), (3, 5000), (2, 60000))
COLUMNS = ((40, 2), (37, 16), (64, 20), (96, 75), (64, 100), (100, 129), (48, 400), (64, 1500))
GEOMETRIES = [("last", *shape) for shape in ROWS] + [("first", *shape) for shape in COLUMNS]
named = pytest.mark.parametrize(("axis", "systems", "rows"), GEOMETRIES)


def turned(axis, *arrays):
    """Return arrays of systems along the last axis with them along `axis` in memory."""
    kept = [a.T if axis == "first" and np.ndim(a) == 2 else a for a in arrays]
    return [np.ascontiguousarray(a) for a in kept]


def called(function, axis, *arrays, **options):
    """Call a function on the device; systems along the last axis in and out."""
    names = ("source", "where", "projected")
    own = {k: turned(axis, v)[0] if k in names and v is not None else v for k, v in options.items()}
    x = function(*turned(axis, *arrays), axis=-1 if axis == "last" else 0, device="cuda", **own)
    if isinstance(x, tuple):
        return (x[0].T if axis == "first" else x[0], x[1])
    return x.T if axis == "first" and isinstance(x, np.ndarray) else x


def sources(rng, systems, rows, dtype):
    """Return matrices of decaying equations, u and a source."""
    lower, _, upper, u = oracle.dominant(rng, (systems, rows), dtype)
    size = np.abs(lower) + np.abs(upper) + rng.uniform(0.1, 2, (systems, rows))
    return lower, np.asarray(-size, dtype), upper, u, oracle.uniform(rng, u.shape, dtype)


def stepped(lower, diag, upper, u, h, theta, *, source=None, where=None, periodic=False):
    """Return the matrix and the right-hand side of the step, in double precision."""
    wide = np.complex128 if np.iscomplexobj(u) else np.float64
    a, d, c, u = (np.array(np.broadcast_to(x, u.shape), wide) for x in (lower, diag, upper, u))
    s = np.zeros_like(u) if source is None else np.array(source, wide)
    if where is not None:
        for array in (a, d, c, s):
            array[~where] = 0
        a[~np.roll(where, 1, axis=-1)] = 0
        c[~np.roll(where, -1, axis=-1)] = 0
        u = np.where(where, u, 0)
    if not periodic:
        a[..., 0] = c[..., -1] = 0
    old = oracle.multiply(a, d, c, u, periodic=periodic)
    matrix = (-theta * h * a, 1 - theta * h * d, -theta * h * c)
    return matrix, u + (1 - theta) * h * old + h * s


def require_step(x, u, operands, h, theta, **options):
    """Require that x solves the equations of the step inside, and is u outside."""
    matrix, rhs = stepped(*operands, u, h, theta, **options)
    where = options.get("where")
    inside = x if where is None else np.where(where, x, 0)
    if where is not None:
        np.testing.assert_array_equal(x[~where], u[~where])
    periodic = options.get("periodic", False)
    error = oracle.multiply(*matrix, inside.astype(rhs.dtype), periodic=periodic) - rhs
    scale = oracle.multiply(*map(np.abs, (*matrix, inside)), periodic=periodic) + 4 * np.abs(u).max(
        where=np.isfinite(u), initial=0
    )
    assert np.abs(error / scale).max() <= 40 * oracle.eps(x.dtype)


@named
@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("periodic", [False, True])
def test_products(rng, axis, systems, rows, dtype, periodic):
    lower, diag, upper, x = oracle.dominant(rng, (systems, rows), dtype)
    b = oracle.uniform(rng, x.shape, dtype)
    wide = np.clongdouble if np.iscomplexobj(x) else np.longdouble
    longer = [a.astype(wide) for a in (lower, diag, upper, x)]
    if not periodic:
        lower[:, 0] = upper[:, -1] = np.nan
    for own in (True, False):
        if not own:
            longer[:3] = [np.broadcast_to(a[0], x.shape) for a in longer[:3]]
            lower, diag, upper = lower[0], diag[0], upper[0]
        truth = oracle.multiply(*longer, periodic=periodic)
        size = oracle.multiply(*map(np.abs, longer), periodic=periodic) + np.abs(b)
        operands = (lower, diag, upper, x)

        y = called(pysolvers.tridiagonal_matvec, axis, *operands, periodic=periodic)
        r = called(pysolvers.residual, axis, *operands, b, periodic=periodic)
        e = called(pysolvers.residual, axis, *operands, b, periodic=periodic, extended=True)

        eps = oracle.eps(dtype)
        assert (np.abs(y - truth) <= 6 * eps * size).all()
        assert (np.abs(r - (b - truth)) <= 6 * eps * size).all()
        least = 8 * np.finfo(np.longdouble).eps + 8 * eps**2  # of the truth, and of the sum
        assert (np.abs(e - (b - truth)) <= eps * np.abs(b - truth) + least * size).all()


@named
@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("periodic", [False, True])
def test_theta_steps(rng, axis, systems, rows, dtype, periodic):
    *operands, u, source = sources(rng, systems, rows, dtype)
    for pivot, theta, given in ((False, 0.5, None), (None, 1.0, source), (False, 0.7, source)):
        x, info = called(
            *(pysolvers.theta_step, axis, *operands, u),
            dt=0.3,
            theta=theta,
            source=given,
            periodic=periodic,
            pivot=pivot,
            return_info=True,
        )

        require_step(x, u, operands, 0.3, theta, source=given, periodic=periodic)
        if np.dtype(dtype).kind == "f" and rows < 5000 and rows > 1:
            in_one_pass = axis == "first" or given is None
            assert info.kernel.startswith("step") == in_one_pass


@named
@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("pivot", [False, None])
def test_masks(rng, axis, systems, rows, dtype, pivot):
    *operands, u, source = sources(rng, systems, rows, dtype)
    where = rng.uniform(size=u.shape) < 0.8
    where[0] = False
    lower, diag, upper = (np.where(where, a, np.nan) for a in operands)
    u, s = (np.where(where, a, np.nan) for a in (u, source))
    for theta, given in ((0.5, None), (1.0, s)):
        for place in (None, "u"):
            mine = turned(axis, u)[0].copy()
            x = pysolvers.theta_step(
                *turned(axis, lower, diag, upper),
                mine,
                dt=0.3,
                theta=theta,
                source=None if given is None else turned(axis, given)[0],
                where=turned(axis, where)[0],
                axis=-1 if axis == "last" else 0,
                pivot=pivot,
                out=mine if place else None,
                device="cuda",
            )
            x = x.T if axis == "first" else x

            given_inside = None if given is None else np.where(where, given, 0)
            require_step(x, u, operands, 0.3, theta, source=given_inside, where=where)


@named
def test_one_mask_for_all_systems(rng, axis, systems, rows):
    *operands, u, _ = sources(rng, systems, rows, np.float64)
    operands = [a[:1] for a in operands]
    where = rng.uniform(size=(1, rows)) < 0.8

    x = called(pysolvers.theta_step, axis, *operands, u, dt=0.3, where=where)

    require_step(x, u, operands, 0.3, 0.5, where=np.broadcast_to(where, u.shape))


@named
@pytest.mark.parametrize("dtype", REALS)
def test_rows_that_need_exchanges(rng, axis, systems, rows, dtype):
    lower, diag, upper, u = oracle.general(rng, (systems, rows), dtype)
    diag[::2] = -2 - np.abs(diag[::2])  # every other system is dominant
    where = np.ones(u.shape, bool)
    where[1::3, rows // 2] = False
    operands = (4 * lower, 4 * diag, 4 * upper)
    for mask, theta in ((None, 0.5), (where, 0.5), (None, 1.0)):
        x, info = called(
            *(pysolvers.theta_step, axis, *operands, u),
            dt=1.0,
            theta=theta,
            where=mask,
            return_info=True,
        )

        matrix, rhs = stepped(*operands, u, 1.0, theta, where=mask)
        inside = x if mask is None else np.where(mask, x, 0)
        error = oracle.multiply(*matrix, inside.astype(np.float64)) - rhs
        size = np.abs(inside).max(axis=-1, keepdims=True) + np.abs(rhs).max()
        assert np.abs(error / size).max() <= 300 * oracle.eps(dtype)
        if rows > 2:
            assert 0 < info.pivoted < systems


@pytest.mark.parametrize("shape", [(7, 300, 40), (300, 7, 40), (2, 3, 700), (40, 600, 3)])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", REALS)
def test_some_systems_of_two_axes_need_exchanges(rng, axis, shape, dtype):
    systems = tuple(np.delete(shape, axis))
    lower, diag, upper, u = oracle.general(rng, (*systems, shape[axis]), dtype)
    dominant = rng.uniform(size=systems) < 0.9
    diag[dominant] = -2 - np.abs(diag[dominant])
    operands = (4 * lower, 4 * diag, 4 * upper)
    given = [np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in (*operands, u)]

    x = pysolvers.theta_step(*given, dt=1.0, axis=axis, device="cuda")

    x = np.moveaxis(x, axis, -1)
    matrix, rhs = stepped(*operands, u, 1.0, 0.5)
    error = oracle.multiply(*matrix, x.astype(np.float64)) - rhs
    size = np.abs(x).max(axis=-1, keepdims=True) + np.abs(rhs).max()
    assert np.abs(error / size).max() <= 300 * oracle.eps(dtype)


@named
@pytest.mark.parametrize("dtype", REALS)
def test_row_sums(rng, axis, systems, rows, dtype):
    shape = (systems, rows)
    lower, upper, sums = (rng.uniform(0, 1, shape).astype(dtype) for _ in range(3))
    lower[:, 0] = upper[:, -1] = 0
    u = oracle.uniform(rng, shape, dtype)
    diag = -sums.astype(np.float64) - lower - upper

    x = called(
        lambda a, s, c, u, **options: pysolvers.theta_step(
            a, pysolvers.RowSums(s), c, u, **options
        ),
        *(axis, lower, -sums, upper, u),
        dt=0.3,
    )

    require_step(x, u, (lower, diag, upper), 0.3, 0.5)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("axis", ["last", "first"])
def test_a_step_does_not_read_what_it_has_stored(rng, axis, dtype):
    # Many tiles for each block, so that some of them end while others begin.
    *operands, u, _ = sources(rng, 40000, 96, dtype)
    arrays, mine = turned(axis, *operands), turned(axis, u)[0].copy()
    options = {"dt": 0.3, "axis": -1 if axis == "last" else 0, "pivot": False, "device": "cuda"}

    x = pysolvers.theta_step(*arrays, mine, **options)
    pysolvers.theta_step(*arrays, mine, out=mine, **options)

    np.testing.assert_array_equal(mine, x)
    require_step(x.T if axis == "first" else x, u, operands, 0.3, 0.5)


@pytest.mark.parametrize("theta", [0.5, 1.0])
@pytest.mark.parametrize("axis", ["last", "first"])
@pytest.mark.parametrize("dtype", REALS)
def test_kept_factors(rng, axis, theta, dtype):
    for systems, rows, own in ((64, 75, True), (64, 75, False), (5, 3000, False)):
        *operands, u, source = sources(rng, systems, rows, dtype)
        matrix = operands if own else [a[:1] for a in operands]
        factor = called(pysolvers.factor_theta, axis, *matrix, dt=0.3, theta=theta)

        x = factor.step(*turned(axis, u, source))

        require_step(x.T if axis == "first" else x, u, matrix, 0.3, theta, source=source)


@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("pivot", [False, None])
def test_several_right_sides_of_own_matrices(rng, axis, pivot, dtype):
    # Tiles of systems that end with the systems of one right side, and that do not.
    for k, systems, rows in (
        (3, 1, 20),
        (2, 33, 2),
        (3, 40, 75),
        (10, 64, 33),
        (4, 100, 300),
        (3, 37, 1500),
    ):
        *operands, u, _ = sources(rng, systems, rows, dtype)
        many = np.stack([u * (1 + j) for j in range(k)])
        where = rng.uniform(size=u.shape) < 0.8
        matrix, mask = [along(axis, a, systems) for a in operands], along(axis, where, systems)
        vectors = np.stack([along(axis, a, systems) for a in many])
        own = axis if axis < 0 else axis - 2
        options = {"axis": own, "pivot": pivot, "device": "cuda"}
        for given in (None, where):
            options["where"] = None if given is None else mask
            x = pysolvers.theta_step(*matrix, vectors, dt=0.3, **options)
            y = pysolvers.solve_tridiagonal(matrix[0], 4 - matrix[1], matrix[2], vectors, **options)

            for j in range(k):
                turn = (lambda a: a.T) if axis == 0 else (lambda a: a)
                require_step(turn(x[j]), many[j], operands, 0.3, 0.5, where=given)
                alone = options | {"axis": axis}
                one = pysolvers.solve_tridiagonal(
                    matrix[0], 4 - matrix[1], matrix[2], vectors[j], **alone
                )
                eps = 300 * oracle.eps(dtype)
                np.testing.assert_allclose(y[j], one, rtol=eps, atol=eps * np.abs(one).max())


def projected(matrix, rhs, least, where):
    """Return the solution by elimination down and bounded substitution up, row by row."""
    a, d, c = (np.array(np.broadcast_to(m, rhs.shape), np.float64) for m in matrix)
    x, rows = rhs.copy(), rhs.shape[-1]
    for i in range(1, rows):
        ratio = a[:, i] / d[:, i - 1]
        d[:, i] -= ratio * c[:, i - 1]
        x[:, i] -= ratio * x[:, i - 1]
    for i in range(rows - 1, -1, -1):
        above = c[:, i] * x[:, i + 1] if i < rows - 1 else 0
        x[:, i] = (x[:, i] - above) / d[:, i]
        bounded = np.maximum(x[:, i], least[:, i])
        x[:, i] = bounded if where is None else np.where(where[:, i], bounded, x[:, i])
    return x


@named
@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("masked", [False, True])
def test_bounds(rng, axis, systems, rows, masked, dtype):
    if rows > 5000:
        return
    *operands, u, source = sources(rng, systems, rows, dtype)
    where = rng.uniform(size=u.shape) < 0.8 if masked else None
    for contact, theta, given in (("last", 1.0, None), ("last", 0.5, source), ("first", 0.5, None)):
        least = oracle.uniform(rng, u.shape, dtype)
        x = called(
            *(pysolvers.theta_step, axis, *operands, u),
            dt=0.3,
            theta=theta,
            source=given,
            where=where,
            projected=least,
            contact=contact,
        )

        inner = None if given is None or where is None else np.where(where, given, 0)
        matrix, rhs = stepped(
            *(*operands, u, 0.3, theta), source=given if inner is None else inner, where=where
        )
        parts = [*np.broadcast_arrays(*matrix), rhs, least, where]
        if contact == "first":
            parts = [None if p is None else p[:, ::-1] for p in parts]
            parts[0], parts[2] = parts[2], parts[0]
        truth = projected(parts[:3], *parts[3:])
        truth = truth[:, ::-1] if contact == "first" else truth
        inside = np.ones(u.shape, bool) if where is None else where
        eps = 100 * oracle.eps(dtype) * (1 + np.abs(truth).max())
        np.testing.assert_allclose(x[inside], truth[inside], rtol=0, atol=eps)
        np.testing.assert_array_equal(x[~inside], u[~inside])


@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("axis", ["last", "first"])
@pytest.mark.parametrize("periodic", [False, True])
def test_kept_factors_with_a_mask(rng, axis, periodic, dtype):
    for systems, rows in ((64, 75), (33, 16), (5, 3000)):
        *operands, u, source = sources(rng, systems, rows, dtype)
        where = rng.uniform(size=u.shape) < 0.8
        where[0] = False
        matrix = [np.where(where, a, np.nan) for a in operands]
        u, s = (np.where(where, a, np.nan) for a in (u, source))
        options = {"where": where, "periodic": periodic}
        factor = called(pysolvers.factor_theta, axis, *matrix, dt=0.3, theta=0.7, **options)
        solver = called(pysolvers.factor_tridiagonal, axis, *matrix, **options)

        x = factor.step(*turned(axis, u, s))
        y = solver.solve(*turned(axis, u))

        given = np.where(where, source, 0)
        x, y = (a.T if axis == "first" else a for a in (x, y))
        require_step(x, u, operands, 0.3, 0.7, source=given, **options)
        np.testing.assert_array_equal(y[~where], u[~where])
        direct = called(pysolvers.solve_tridiagonal, axis, *matrix, u, **options)
        eps = 300 * oracle.eps(dtype)
        largest = np.abs(direct[where]).max()
        np.testing.assert_allclose(y[where], direct[where], rtol=eps, atol=eps * largest)


def diffused(T, K, dz, dt, theta, source, flux, value):
    """Return the step of one column by dense matrices; K has n + 1 faces."""
    n = len(T)
    a, s = np.zeros((n, n)), dz * source
    for i in range(n - 1):
        k = 2 * K[i + 1] / (dz[i] + dz[i + 1])
        a[i, [i, i + 1]] += [-k, k]
        a[i + 1, [i, i + 1]] += [k, -k]
    for end, (q, v) in enumerate(zip(flux, value, strict=True)):
        s[-end] += q
        if v is not None:
            k = 2 * K[-end] / dz[-end]
            a[-end, -end] -= k
            s[-end] += k * v
    a, s = a / dz[:, None], s / dz
    rhs = T + dt * (1 - theta) * a @ T + dt * s
    return np.linalg.solve(np.eye(n) - theta * dt * a, rhs)


# Layers and columns: parts of chunks, of 16, 24 and 17 or 11 layers, and of blocks; clusters.
# Whole vectors of 16 bytes, and not.
LAYERS = ((1, 3), (2, 40), (15, 8), (16, 33), (17, 64), (23, 9), (25, 32), (33, 40), (75, 64))
LONG_LAYERS = ((192, 12), (193, 33), (500, 16))


def diffusion_case(rng, layers, columns, dtype, faces):
    """Return T, K with `faces` outer faces, dz, source, flux and value of the ends, and depths."""

    def uniform(low, *shape):
        return rng.uniform(low, low + 2, shape).astype(dtype)

    arrays = [uniform(-1, layers, columns), uniform(0.1, layers - 1 + faces, columns)]
    arrays += [uniform(0.5, layers, columns), uniform(-1, layers, columns)]
    return *arrays, uniform(-1, 2, columns), uniform(0, 2, columns)


def require_diffusion(x, given, theta, where, *, source=True, flux=True, value=(True, True)):
    """Require that x is the step of every column, by dense matrices, and T outside."""
    T, K, dz, s, q, v = (np.asarray(a, np.float64) for a in given)
    if len(K) < len(T):
        K = np.pad(K, ((1, 1), (0, 0)))
    for j in range(T.shape[1]):
        inside = np.flatnonzero(where[:, j])
        if not len(inside):
            continue
        m = slice(inside[0], inside[-1] + 1)  # the mask is one run of layers
        truth = diffused(
            *(T[m, j], K[m.start : m.stop + 1, j], dz[m, j], 0.7, theta),
            (s[m, j] if source else 0 * s[m, j]),
            (q[:, j] if flux else (0, 0)),
            [v[end, j] if value[end] else None for end in (0, 1)],
        )
        eps = 60 * oracle.eps(x.dtype) * (1 + np.abs(truth).max())
        np.testing.assert_allclose(x[m, j], truth, rtol=0, atol=eps)
    np.testing.assert_array_equal(x[~where], np.asarray(given[0])[~where])


@pytest.mark.parametrize("theta", [0.5, 1.0])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("one_dz", [False, True])
@pytest.mark.parametrize("dtype", REALS)
def test_diffusion(rng, theta, axis, one_dz, dtype):
    for layers, columns in LAYERS + (LONG_LAYERS if theta == 1 else ()):
        given = list(diffusion_case(rng, layers, columns, dtype, 2))
        if one_dz:
            given[2] = given[2][:, :1] + 0 * given[2]
        first = rng.integers(0, layers, columns)
        where = np.arange(layers)[:, None] >= first
        where &= np.arange(layers)[:, None] < first + rng.integers(0, layers + 1, columns)
        turn = (lambda a: a.T.copy()) if axis == 1 else np.ascontiguousarray
        for mask in (None, where):
            T, K, dz, source, flux, value = given
            T = T if mask is None else np.where(mask, T, np.nan)
            s = source if mask is None else np.where(mask, source, np.inf)
            # Along contiguous layers a source is added in a pass of its own.
            has_source = layers % 2 == 0
            x = pysolvers.implicit_diffusion(
                *(turn(T), turn(K), dz[:, 0] if one_dz else turn(dz), 0.7),
                axis=axis,
                theta=theta,
                source=turn(s) if has_source else None,
                flux_first=flux[0],
                flux_last=flux[1],
                value_last=value[1],
                where=None if mask is None else turn(mask),
                device="cuda",
            )
            inside = np.ones(T.shape, bool) if mask is None else mask

            require_diffusion(
                x if axis == 0 else x.T,
                [T, K, dz, source, flux, value],
                theta,
                inside,
                source=has_source,
                value=(False, True),
            )


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("ends", ["none", "flux", "values"])
def test_diffusion_along_a_middle_axis_in_place(rng, ends, dtype):
    planes, columns = 3, 20
    for layers in (2, 17, 24, 75):
        faces = 2 if ends == "values" else 0
        cases = [diffusion_case(rng, layers, columns, dtype, faces) for _ in range(planes)]
        T, K, dz, source, flux, value = (np.stack(a) for a in zip(*cases, strict=True))
        options = {}
        if ends == "flux":
            options = {"flux_first": flux[:, 0], "flux_last": flux[:, 1]}
        if ends == "values":
            options = {"value_first": value[:, 0], "value_last": value[:, 1]}
        depth = rng.integers(1, layers + 1, columns)  # one mask for all planes
        where = np.arange(layers)[:, None] < depth
        for mask in (None, where):
            mine = T.copy()
            x = pysolvers.implicit_diffusion(
                *(mine, K, dz, 0.7),
                axis=1,
                theta=0.5,
                source=source,
                where=mask,
                out=mine,
                device="cuda",
                **options,
            )

            assert x is mine
            inside = np.ones(where.shape, bool) if mask is None else mask
            for plane in range(planes):
                require_diffusion(
                    mine[plane],
                    cases[plane],
                    0.5,
                    inside,
                    flux=ends == "flux",
                    value=(ends == "values",) * 2,
                )


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("K", ["number", "profile"])
def test_diffusion_of_one_profile(rng, K, axis, dtype):
    for layers, columns in ((2, 40), (24, 33), (75, 64), (100, 12)):
        given = list(diffusion_case(rng, layers, columns, dtype, 2))
        profile = given[1][:, 0] if K == "profile" else dtype(0.7)
        given[1] = np.resize(profile, layers + 1)[:, None] + 0 * given[1]
        given[2] = given[2][:, :1] + 0 * given[2]
        where = np.arange(layers)[:, None] < rng.integers(0, layers + 1, columns)
        T, _, dz, _, flux, value = given
        for mask in (None, where):
            arrays = (T, T if mask is None else mask)
            T_in, where_in = (a if axis == 0 else a.T.copy() for a in arrays)
            x = pysolvers.implicit_diffusion(
                *(T_in, profile, dz[:, 0], 0.7),
                axis=axis,
                theta=0.5,
                flux_last=flux[1],
                value_first=value[0],
                where=None if mask is None else where_in,
                device="cuda",
            )

            require_diffusion(
                x if axis == 0 else x.T,
                [*given[:4], np.stack([0 * flux[1], flux[1]]), value],
                0.5,
                np.ones(T.shape, bool) if mask is None else mask,
                source=False,
                value=(True, False),
            )


def test_diffusion_conserves(rng):
    for axis, shape in ((0, (75, 20, 30)), (2, (20, 30, 75)), (1, (20, 75, 30))):
        faces = [n - (k == axis) for k, n in enumerate(shape)]
        T, dz = rng.uniform(-1, 1, shape), rng.uniform(0.5, 2, shape)

        x = pysolvers.implicit_diffusion(
            T, rng.uniform(0, 9, faces), dz, 40.0, axis=axis, device="cuda"
        )

        before, after = (dz * T).sum(axis), (dz * x).sum(axis)
        assert (np.abs(after - before) <= 1e-14 * (dz * np.abs(T)).sum(axis)).all()


# Chunks of 16 and 32 rows along strided axes; of 17 and 11 rows of tiles.
BORDERS = (1, 2, 11, 12, 15, 16, 17, 18, 31, 32, 33, 34, 63, 65, 95, 97, 255, 257)


def along(axis, array, inner):
    """Return systems along the last axis as an array with them along `axis`."""
    if axis == 0:
        return array.T.copy()
    if axis == 1:
        return np.moveaxis(array.reshape(-1, inner, array.shape[1]), -1, 1).copy()
    return np.ascontiguousarray(array)


@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("kind", ["plain", "source", "mask", "both"])
def test_borders_of_chunks(rng, kind, axis, dtype):
    for rows in BORDERS:
        systems = 20 if rows % 3 else 33
        *operands, u, source = sources(rng, 2 * systems, rows, dtype)
        options, periodic = {}, rows > 2 and rows % 2 == 0
        if kind in ("source", "both"):
            options["source"] = source
        if kind in ("mask", "both"):
            where = rng.uniform(size=u.shape) < 0.7
            where[::5] = False  # whole systems
            where[1::5] = True
            options["where"] = where
        x = pysolvers.theta_step(
            *(along(axis, a, systems) for a in (*operands, u)),
            dt=0.3,
            periodic=periodic,
            pivot=False,
            axis=axis,
            device="cuda",
            **{name: along(axis, a, systems) for name, a in options.items()},
        )

        x = np.moveaxis(x, axis, -1).reshape(u.shape)
        if "where" in options:
            options["source"] = np.where(where, options["source"], 0) if kind == "both" else None
        require_step(x, u, operands, 0.3, 0.5, periodic=periodic, **options)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("axis", ["last", "first"])
def test_masks_of_every_layout(rng, axis, dtype):
    systems, rows = 36, 70
    *operands, u, _ = sources(rng, systems, rows, dtype)
    wide = rng.uniform(size=(systems + 4, 2 * rows + 3)) < 0.8
    masks = [
        wide[2:-2, 3 : rows + 3],  # rows that begin anywhere
        wide[2:-2, : 2 * rows : 2],  # every other byte
        np.ascontiguousarray(wide[2:-2, :rows].T).T,  # the other order
        np.broadcast_to(wide[:1, :rows], u.shape),  # one mask
        np.broadcast_to(wide[2:-2, :1], u.shape),  # whole systems
    ]
    turn = (lambda a: a) if axis == "last" else (lambda a: a.T)
    for where in masks:
        x = pysolvers.theta_step(
            *(np.ascontiguousarray(turn(a)) for a in (*operands, u)),
            dt=0.3,
            where=turn(where),
            axis=-1 if axis == "last" else 0,
            device="cuda",
        )

        require_step(turn(x), u, operands, 0.3, 0.5, where=where)


@named
def test_numbers_whose_products_overflow(rng, axis, systems, rows):
    size = np.full((systems, rows), 1e200)
    where = rng.random((systems, rows)) < 0.7
    x = called(pysolvers.solve_tridiagonal, axis, 0 * size, size, 0 * size, size, where=where)

    assert np.array_equal(x, np.where(where, 1.0, 1e200))
