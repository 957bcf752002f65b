"""Masks, kept factors of theta steps, and diffusion between layers in flux form."""

import numpy as np
import oracle
import pytest

from pysolvers import (
    RowSums,
    SingularSystemError,
    factor_theta,
    factor_tridiagonal,
    implicit_diffusion,
    solve_tridiagonal,
    theta_step,
    tridiagonal_matvec,
)

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)


def runs_of(inside):
    """Return slices of the rows of one system that are inside, one for each run."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], inside.astype(int), [0]))))
    return [slice(*pair) for pair in edges.reshape(-1, 2)]


def solved_in_runs(lower, diag, upper, rhs, inside):
    """Solve the runs of rows inside, each as a system of its own; others keep `rhs`."""
    x = np.array(rhs)
    for system in np.ndindex(rhs.shape[:-1]):
        for run in runs_of(inside[system]):
            matrix = oracle.dense(lower[system][run], diag[system][run], upper[system][run])
            x[system][run] = np.linalg.solve(matrix, rhs[system][run])
    return x


def masked_case(rng, shape, dtype, axis=-1):
    """Return operands that are NaN outside, the mask, and the solution."""
    lower, diag, upper, rhs = oracle.dominant(rng, shape, dtype)
    inside = rng.uniform(size=shape) < 0.7
    truth = solved_in_runs(lower, diag, upper, rhs, inside)
    rhs[~inside] = truth[~inside] = np.nan
    before, after = np.roll(inside, 1, -1), np.roll(inside, -1, -1)
    lower[~(inside & before)] = upper[~(inside & after)] = diag[~inside] = np.nan
    return tuple(
        np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in (lower, diag, upper, rhs)
    ), (
        np.ascontiguousarray(np.moveaxis(inside, -1, axis)),
        np.moveaxis(truth, -1, axis),
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("pivot", [None, False, True])
def test_rows_outside_a_mask_keep_their_values_and_disturb_nothing(dtype, axis, pivot):
    rng = np.random.default_rng(1)
    for shape in ((5, 2), (5, 9), (40, 33), (3, 20, 70)):
        operands, (inside, truth) = masked_case(rng, shape, dtype, axis)
        x = solve_tridiagonal(*operands, axis=axis, where=inside, pivot=pivot)
        np.testing.assert_allclose(x, truth, rtol=0, atol=100 * np.finfo(dtype).eps)
        factor = factor_tridiagonal(*operands[:3], axis=axis, where=inside, pivot=pivot)
        np.testing.assert_allclose(
            factor.solve(operands[3]), truth, rtol=0, atol=100 * np.finfo(dtype).eps
        )
        out = operands[3].copy()
        assert solve_tridiagonal(*operands[:3], out, axis=axis, where=inside, out=out) is out
        np.testing.assert_array_equal(out, solve_tridiagonal(*operands, axis=axis, where=inside))


def test_a_mask_below_a_sea_bed_with_one_matrix_for_all_columns():
    # 30 % land: NaN below the bed must not reach the water above.
    rng = np.random.default_rng(2)
    depth = rng.integers(0, 21, (12, 15))
    inside = np.arange(20)[:, None, None] < depth
    rhs = np.where(inside, rng.standard_normal(inside.shape), np.nan)
    x = solve_tridiagonal(-1.0, 2.5, -1.0, rhs, axis=0, where=inside)
    assert np.isfinite(x[inside]).all()
    np.testing.assert_array_equal(np.isnan(x), ~inside)
    for column in ((0, 0), (5, 7), (11, 14)):
        n = depth[column]
        matrix = oracle.dense(np.full(n, -1.0), np.full(n, 2.5), np.full(n, -1.0))
        np.testing.assert_allclose(
            x[(slice(n), *column)], np.linalg.solve(matrix, rhs[(slice(n), *column)]), rtol=1e-12
        )


@pytest.mark.parametrize("rows", [50, 5001])
def test_masks_of_one_line_of_periodic_and_of_long_systems(rows):
    rng = np.random.default_rng(3)
    lower, diag, upper, rhs = oracle.dominant(rng, (12, rows))
    inside = np.ones(rows, bool)
    inside[rows // 3 : rows // 2] = False
    rhs[:, ~inside] = np.nan
    x = solve_tridiagonal(lower, diag, upper, rhs, periodic=True, where=inside)
    order = np.roll(np.arange(rows), -(rows // 2))[: rows - (rows // 2 - rows // 3)]
    cut = [np.ascontiguousarray(a[:, order]) for a in (lower, diag, upper, rhs)]
    truth = oracle.multiply(*cut[:3], x[:, order])
    np.testing.assert_allclose(truth, cut[3], atol=1e-12)
    assert np.isnan(x[:, ~inside]).all()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_factors_of_row_sums_of_either_sign_check_the_signs_inside(sign):
    inside = np.array([True, True, False, True, True])
    off, rhs = np.full(5, -sign), sign * np.arange(5.0)
    sums = np.where(inside, sign, np.nan)
    x = factor_tridiagonal(off, RowSums(sums), off, where=inside).solve(rhs)
    truth = np.linalg.solve([[2, -1], [-1, 2]], [[0, 3], [1, 4]])
    np.testing.assert_allclose(x, [*truth[:, 0], rhs[2], *truth[:, 1]], rtol=1e-14)
    sums[4] = -sign
    with pytest.raises(ValueError, match="row sums"):
        factor_tridiagonal(off, RowSums(sums), off, where=inside)


@pytest.mark.parametrize("theta", [0.5, 1])
@pytest.mark.parametrize("axis", [-1, 0])
def test_theta_steps_with_masks(theta, axis):
    rng = np.random.default_rng(4)
    operands, (inside, _) = masked_case(rng, (30, 24), np.float64, axis)
    lower, diag, upper, u = operands
    diag = -np.abs(diag)
    source = np.where(inside, 1.0, np.nan)
    x = theta_step(
        lower, diag, upper, u, dt=0.5, theta=theta, source=source, axis=axis, where=inside
    )
    factor = factor_theta(lower, diag, upper, dt=0.5, theta=theta, axis=axis, where=inside)
    np.testing.assert_allclose(factor.step(u, source), x, atol=1e-13)
    clean = [np.nan_to_num(np.moveaxis(a, axis, -1)) for a in (lower, diag, upper, u)]
    m = np.moveaxis(inside, axis, -1)
    rhs = clean[3] + (1 - theta) * 0.5 * oracle.multiply(*clean) + 0.5 * m
    truth = solved_in_runs(
        -theta * 0.5 * clean[0], 1 - theta * 0.5 * clean[1], -theta * 0.5 * clean[2], rhs, m
    )
    np.testing.assert_allclose(np.moveaxis(x, axis, -1)[m], truth[m], atol=1e-13)
    assert np.isnan(x[~inside]).all()


def test_what_a_mask_does_not_go_with():
    rhs = np.ones((3, 5))
    with pytest.raises(TypeError, match="where: need booleans, got float64: write where != 0"):
        solve_tridiagonal(-1.0, 3.0, -1.0, rhs, where=rhs)
    with pytest.raises(ValueError, match="where with method='thomas'"):
        solve_tridiagonal(-1.0, 3.0, -1.0, rhs, where=rhs > 0, method="thomas")
    with pytest.raises(ValueError, match="where has 4 entries"):
        solve_tridiagonal(-1.0, 3.0, -1.0, rhs, where=np.ones(4, bool))
    bad = np.where(np.arange(5) < 2, np.nan, rhs)
    with pytest.raises(ValueError, match="rhs is nan"):
        solve_tridiagonal(-1.0, 3.0, -1.0, bad, where=np.arange(5) > 0, check_finite=True)
    solve_tridiagonal(-1.0, 3.0, -1.0, bad, where=np.arange(5) > 1, check_finite=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7, 20), (2, 3, 40), (2, 140000)])
def test_kept_factors_make_the_steps_of_theta_step(dtype, shape):
    rng = np.random.default_rng(5)
    lower, diag, upper, u = oracle.dominant(rng, shape, dtype)
    diag, source = -np.abs(diag), oracle.uniform(rng, shape, dtype)
    factor = factor_theta(lower, diag, upper, dt=0.4, theta=0.6)
    tolerance = 300 * np.finfo(dtype).eps
    truth = u
    for count in (1, 2, 3):
        truth = theta_step(lower, diag, upper, truth, dt=0.4, theta=0.6, source=source)
        x = factor.step(u, source, count=count)
        assert x.dtype == dtype
        np.testing.assert_allclose(x, truth, atol=tolerance)
    out = u.copy()
    assert factor.step(out, source, count=3, out=out) is out
    np.testing.assert_array_equal(out, x)


def test_a_kept_factor_of_one_matrix_takes_any_batch_and_complex_values():
    rng = np.random.default_rng(6)
    lower, diag, upper, _ = oracle.dominant(rng, (30,))
    diag = -np.abs(diag)
    u = oracle.uniform(rng, (4, 5, 30), np.complex128)
    factor = factor_theta(lower, diag, upper, dt=0.4)
    np.testing.assert_allclose(
        factor.step(u, count=2, threads=2),
        theta_step(lower, diag, upper, theta_step(lower, diag, upper, u, dt=0.4), dt=0.4),
        atol=1e-13,
    )
    with pytest.raises(ValueError, match="count must be at least 1, got 0"):
        factor.step(u, count=0)
    with pytest.raises(ValueError, match="theta must be greater than 0"):
        factor_theta(lower, diag, upper, dt=0.4, theta=0)


@pytest.mark.parametrize("rows", [1, 3000, 9000])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_a_kept_factor_of_one_system(rows, dtype):
    rng = np.random.default_rng(10)
    lower, diag, upper, u = oracle.dominant(rng, (1, rows), dtype)
    inside, diag = rng.uniform(size=(1, rows)) < 0.8, -np.abs(diag)
    for where in (None, inside):
        factor = factor_theta(lower, diag, upper, dt=0.4, rows=rows, where=where)
        truth = theta_step(lower, diag, upper, u, dt=0.4, where=where, source=0.5)
        x = factor.step(u, 0.5)
        np.testing.assert_allclose(x, truth, atol=100 * np.finfo(dtype).eps)


def test_a_kept_factor_takes_values_along_any_axis_and_sources_that_broadcast():
    rng = np.random.default_rng(8)
    lower, diag, upper, _ = oracle.dominant(rng, (6,), np.float32)
    u, line = rng.uniform(size=(2, 6, 6)).astype(np.float32), np.arange(6, dtype=np.float32)
    factor = factor_theta(lower, -np.abs(diag), upper, dt=np.float64(0.4))
    assert factor.dtype == np.float32
    for source in (line, line[:, None], 2.0):
        truth = theta_step(lower, -np.abs(diag), upper, u, dt=0.4, axis=1, source=source)
        np.testing.assert_allclose(factor.step(u, source, axis=1), truth, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"source must broadcast to .*\(2, 6, 6\), got \(2, 5\)"):
        factor.step(u, np.ones((2, 5), np.float32), axis=1)
    with pytest.raises(ValueError, match="u has 5 entries"):
        factor.step(line[1:])


def test_values_of_one_line_are_checked_inside_the_mask_of_each_system():
    inside = np.arange(6)[:, None] < [6, 4, 4]
    factor = factor_tridiagonal(-1.0, 3.0, -1.0, axis=0, rows=6, where=inside)
    line = np.arange(6.0)
    truth = solve_tridiagonal(-1.0, 3.0, -1.0, np.repeat(line[:, None], 3, 1), axis=0, where=inside)
    np.testing.assert_allclose(factor.solve(line, check_finite=True), truth, atol=1e-14)
    line[5] = np.nan
    with pytest.raises(ValueError, match="row 5, and check_finite"):
        factor.solve(line, check_finite=True)


def test_factors_multiply_with_the_matrices_that_they_keep():
    rng = np.random.default_rng(7)
    lower, diag, upper, x = oracle.dominant(rng, (6, 12))
    factor = factor_tridiagonal(lower, diag, upper, keep_matrix=True)
    np.testing.assert_array_equal(factor.multiply(x), tridiagonal_matvec(lower, diag, upper, x))
    np.testing.assert_allclose(factor.multiply(factor.solve(x)), x, atol=1e-14)
    factor.refactor(lower, 2 * diag, upper)
    np.testing.assert_array_equal(factor.multiply(x), tridiagonal_matvec(lower, 2 * diag, upper, x))
    with pytest.raises(ValueError, match="keep_matrix=True"):
        factor_tridiagonal(lower, diag, upper).multiply(x)
    with pytest.raises(ValueError, match="the 12 rows of the matrices along axis -1, got 7"):
        factor_tridiagonal(-1.0, 3.0, -1.0, rows=12, keep_matrix=True).multiply(x[:, :7])


@pytest.mark.parametrize("has_sums", [False, True])
def test_factors_with_a_mask_multiply_with_the_rows_that_they_solve(has_sums):
    rng = np.random.default_rng(9)
    k, x = rng.uniform(1, 2, (4, 13)), rng.uniform(size=(4, 12))
    inside = rng.uniform(size=(4, 12)) < 0.7
    diag = RowSums(np.ones(12)) if has_sums else 1 + k[:, :-1] + k[:, 1:]
    factor = factor_tridiagonal(-k[:, :-1], diag, -k[:, 1:], where=inside, keep_matrix=True)
    np.testing.assert_allclose(factor.multiply(factor.solve(x)), x, atol=1e-14)


def columns(rng, shape, *, outer=True):
    """Return T, K and dz of columns along the first axis, and K of the faces between layers."""
    n, *batch = shape
    T = rng.uniform(1, 2, shape)
    K = 10 ** rng.uniform(-5, 2, (n + 1, *batch))
    return T, K if outer else K[1:-1], rng.uniform(0.5, 2, shape)


def dense_diffusion(T, K, dz, dt, theta, source, flux, value):
    """Return the step of one column by dense matrices; K has n + 1 faces."""
    n = len(T)
    a, s = np.zeros((n, n)), dz * source
    for i in range(n - 1):
        k = 2 * K[i + 1] / (dz[i] + dz[i + 1])
        a[i, [i, i + 1]] += [-k, k]
        a[i + 1, [i, i + 1]] += [k, -k]
    for end, (q, v) in enumerate(zip(flux, value, strict=True)):
        i = -end
        s[i] += q
        if v is not None:
            k = 2 * K[-end] / dz[i]
            a[i, i] -= k
            s[i] += k * v
    a, s = a / dz[:, None], s / dz
    rhs = T + dt * (1 - theta) * a @ T + dt * s
    return np.linalg.solve(np.eye(n) - theta * dt * a, rhs)


@pytest.mark.parametrize("theta", [1, 0.5])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("one_dz", [False, True])
def test_diffusion_between_layers(theta, axis, one_dz):
    rng = np.random.default_rng(8)
    for n, batch in ((1, 3), (2, 4), (3, 20), (18, 9), (40, 33)):
        T, K, dz = columns(rng, (n, batch))
        K = np.minimum(K, 3.0)
        if one_dz:
            dz = dz[:, :1] + 0 * dz
        source, flux = rng.uniform(-1, 1, (n, batch)), rng.uniform(-1, 1, (2, batch))
        value = rng.uniform(0, 3, batch)
        turn = (lambda a: a.T.copy()) if axis == 1 else np.ascontiguousarray
        layers = dz[:, 0] if one_dz else turn(dz)
        x = implicit_diffusion(
            *(turn(T), turn(K), layers, 0.7),
            axis=axis,
            theta=theta,
            source=turn(source),
            flux_first=flux[0],
            flux_last=flux[1],
            value_last=value,
        )
        for j in range(batch):
            truth = dense_diffusion(
                *(T[:, j], K[:, j], dz[:, j], 0.7, theta, source[:, j]),
                flux[:, j],
                (None, value[j]),
            )
            np.testing.assert_allclose(x[:, j] if axis == 0 else x[j], truth, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_diffusion_conserves_the_sum_of_a_column(dtype):
    # K dt is up to 1e12 times the square of a thickness.
    rng = np.random.default_rng(9)
    T, K, dz = columns(rng, (75, 30), outer=False)
    inside = np.arange(75)[:, None] < rng.integers(1, 76, 30)
    T, K, dz = (np.asarray(a, dtype) for a in (T, K, dz))
    T[~inside] = np.nan
    for theta in (1, 0.5):
        x = implicit_diffusion(T, K, dz, 1e10, axis=0, theta=theta, where=inside)
        before, after = (
            np.where(inside, dz.astype(float) * np.nan_to_num(a), 0).sum(0) for a in (T, x)
        )
        bound = 1e-14 if dtype == np.float64 else 1e-14 * 2**29
        np.testing.assert_allclose(after, before, rtol=bound if theta == 1 else 4 * bound)
        np.testing.assert_array_equal(np.isnan(x), ~inside)


@pytest.mark.parametrize("batch", [8, 17])
def test_diffusion_in_long_adjacent_columns(batch):
    T, K, dz = columns(np.random.default_rng(11), (5000, batch))
    x = implicit_diffusion(T, K, dz, 0.3, axis=0)
    for k in range(batch):
        alone = implicit_diffusion(*(a[:, k].copy() for a in (T, K, dz)), 0.3, axis=0)
        np.testing.assert_allclose(x[:, k], alone, rtol=1e-12)


def test_diffusion_in_columns_of_several_depths():
    rng = np.random.default_rng(10)
    T, K, dz = columns(rng, (12, 5, 6))
    K = np.minimum(K, 3.0)
    first, depth = rng.integers(0, 3, (5, 6)), rng.integers(4, 13, (5, 6))
    k = np.arange(12)[:, None, None]
    inside = (k >= first) & (k < depth)
    bad = [np.where(inside, a, np.nan) for a in (T, dz)]
    flux, value = rng.uniform(-1, 1, (5, 6)), rng.uniform(0, 3, (5, 6))
    x = implicit_diffusion(
        *(bad[0], K, bad[1], 0.7), axis=0, where=inside, flux_last=flux, value_first=value
    )
    for column in np.ndindex(5, 6):
        run = (slice(first[column], depth[column]), *column)
        faces = (slice(first[column], depth[column] + 1), *column)
        truth = dense_diffusion(
            *(T[run], K[faces], dz[run], 0.7, 1, 0 * T[run]),
            (0, flux[column]),
            (value[column], None),
        )
        np.testing.assert_allclose(x[run], truth, rtol=1e-12)


def test_diffusion_of_labelled_arrays():
    xr = pytest.importorskip("xarray")
    rng = np.random.default_rng(11)
    T, K, dz = columns(rng, (6, 4, 5), outer=False)
    t = xr.DataArray(T, dims=("z", "y", "x"), coords={"z": np.arange(6)}, name="T")
    faces = xr.DataArray(K.transpose(2, 0, 1), dims=("x", "z_w", "y"))
    x = implicit_diffusion(t, faces, xr.DataArray(dz[:, 0, 0], dims="z"), 3.0, axis="z")
    truth = implicit_diffusion(T, K, dz[:, 0, 0], 3.0, axis=0)
    assert x.dims == t.dims
    assert x.name == "T"
    np.testing.assert_array_equal(x.z, t.z)
    np.testing.assert_array_equal(x, truth)
    flux = xr.DataArray(np.ones((5, 4)), dims=("x", "y"))
    x = implicit_diffusion(t, faces, 1.0, 3.0, axis=0, flux_first=flux)
    np.testing.assert_allclose(x.sum("z"), t.sum("z") + 3, rtol=1e-14)
    with pytest.raises(ValueError, match="K has the dimension 'a'"):
        implicit_diffusion(t, faces.rename(x="a"), 1.0, 3.0, axis="z")


def test_diffusion_says_what_is_wrong():
    T = np.ones((4, 6))
    with pytest.raises(ValueError, match=r"K must have 3 faces .* or 5 .* got 4"):
        implicit_diffusion(T, T, 1.0, 1.0, axis=0)
    with pytest.raises(ValueError, match="value_last need K at the outer faces"):
        implicit_diffusion(T, T[:3], 1.0, 1.0, axis=0, value_first=1.0)
    with pytest.raises(ValueError, match="flux_first must broadcast"):
        implicit_diffusion(T, 1.0, 1.0, 1.0, axis=0, flux_first=np.ones(4))
    with pytest.raises(TypeError, match="operands must be real"):
        implicit_diffusion(T + 0j, 1.0, 1.0, 1.0, axis=0)
    with pytest.raises(ValueError, match="dt must be at least 0"):
        implicit_diffusion(T, 1.0, 1.0, -1.0, axis=0)
    with pytest.raises(ValueError, match="dz is nan"):
        implicit_diffusion(T, 1.0, np.full(4, np.nan), 1.0, axis=0, check_finite=True)
    with pytest.raises(SingularSystemError):
        implicit_diffusion(T, np.nan, 1.0, 1.0, axis=0)
    xr = pytest.importorskip("xarray")
    with pytest.raises(np.exceptions.AxisError, match=r"axis must be in -2 .. 1 .* got 5"):
        implicit_diffusion(xr.DataArray(T), 1.0, 1.0, 1.0, axis=5)


def test_a_mask_with_row_sums_removes_couplings_and_keeps_the_sums():
    n = 12
    inside = np.arange(n) < 7
    rhs = np.where(inside, 1.0, np.nan) * np.ones((9, n))
    x = solve_tridiagonal(-1.0, RowSums(np.full(n, 1e-18)), -1.0, rhs, where=inside)
    np.testing.assert_allclose(x[:, :7], 1e18, rtol=1e-14)


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_complex_row_sums_with_a_mask_are_refused(shape):
    where = np.array([True, False, True])
    line, rhs = np.ones(3, complex), np.ones(shape)
    for lower, sums in ((line, np.ones(3)), (np.ones(3), line)):
        diag = RowSums(sums, check_signs=False)
        with pytest.raises(TypeError, match="must be real"):
            solve_tridiagonal(lower, diag, lower, rhs, where=where)
