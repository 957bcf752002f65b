"""Products and implicit steps of JAX and PyTorch: the numbers of NumPy, and derivatives."""

import numpy as np
import oracle
import pytest
from array_libraries import check_derivatives

import pysolvers
from pysolvers import RowSums


def system(seed, shape):
    rng = np.random.default_rng(seed)
    lower, diag, upper, u = oracle.dominant(rng, shape)
    return lower, -np.abs(diag), upper, u, rng.uniform(size=shape) < 0.7


@pytest.mark.each_value
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("axis", [-1, 0])
def test_products_are_those_of_numpy(differentiable, periodic, axis):
    lower, diag, upper, x, _ = system(1, (5, 6, 9))
    own = [differentiable.array(a) for a in (lower, diag, upper, x)]
    options = {"axis": axis, "periodic": periodic}
    functions = differentiable.functions
    product = pysolvers.tridiagonal_matvec(lower, diag, upper, x, **options)
    y = differentiable.get(functions.tridiagonal_matvec(*own, **options))
    np.testing.assert_allclose(y, product, atol=1e-14)
    r = differentiable.get(functions.residual(*own, own[3], **options))
    np.testing.assert_allclose(r, x - product, atol=1e-14)


@pytest.mark.each_value
@pytest.mark.parametrize("theta", [0.5, 1])
@pytest.mark.parametrize("masked", [False, True])
def test_steps_are_those_of_numpy(differentiable, theta, masked):
    lower, diag, upper, u, inside = system(2, (4, 11))
    source = np.cos(u)
    options = {"dt": 0.3, "theta": theta}
    if masked:
        u = np.where(inside, u, np.nan)
        lower = np.where(inside & np.roll(inside, 1, -1), lower, np.nan)
    truth = pysolvers.theta_step(
        lower, diag, upper, u, source=source, where=inside if masked else None, **options
    )
    own = [differentiable.array(a) for a in (lower, diag, upper, u)]
    mask = {"where": differentiable.array(inside)} if masked else {}
    own_source = differentiable.array(source)
    step = differentiable.jit(
        lambda *a: differentiable.functions.theta_step(*a, source=own_source, **mask, **options)
    )
    np.testing.assert_allclose(differentiable.get(step(*own)), truth, atol=1e-13)
    if masked:
        x = differentiable.functions.solve_tridiagonal(*own, **mask)
        truth = pysolvers.solve_tridiagonal(lower, diag, upper, u, where=inside)
        np.testing.assert_allclose(differentiable.get(x), truth, atol=1e-13)


def test_steps_with_short_diagonals_and_row_sums(differentiable):
    u = np.random.default_rng(3).standard_normal((3, 12))
    k = np.linspace(1, 2, 11)
    truth = pysolvers.theta_step(k, RowSums(np.zeros(12)), k, u, dt=0.4)
    own, faces = differentiable.array(u), differentiable.array(k)
    sums = RowSums(differentiable.array(np.zeros(12)))
    step = differentiable.jit(
        lambda u: differentiable.functions.theta_step(faces, sums, faces, u, dt=0.4)
    )
    x = step(own)
    np.testing.assert_allclose(differentiable.get(x), truth, atol=1e-14)


@pytest.mark.parametrize("periodic", [False, True])
def test_masks_and_vectors_of_one_row_broadcast(differentiable, periodic):
    lower, diag, upper, u, _ = system(6, (3, 8))
    column, inside = np.array([[1.0], [2.0], [3.0]]), np.array([[True], [False], [True]])
    own = [differentiable.array(a) for a in (lower, diag, upper)]
    own_u, own_column, mask = map(differentiable.array, (u, column, inside))
    functions, options = differentiable.functions, {"periodic": periodic}
    truth = pysolvers.residual(lower, diag, upper, column, u, **options)
    r = differentiable.jit(lambda *a: functions.residual(*a, **options))(*own, own_column, own_u)
    np.testing.assert_allclose(differentiable.get(r), truth, atol=1e-14)
    options["where"] = inside
    truth = pysolvers.theta_step(lower, diag, upper, u, dt=0.3, **options)
    options["where"] = mask
    x = differentiable.jit(lambda *a: functions.theta_step(*a, dt=0.3, **options))(*own, own_u)
    np.testing.assert_allclose(differentiable.get(x), truth, atol=1e-14)
    with pytest.raises(TypeError, match="where: need booleans, got"):
        functions.theta_step(*own, own_u, dt=0.3, where=own_u)
    with pytest.raises(ValueError, match="dt must be a number or an array without axes"):
        functions.theta_step(*own, own_u, dt=own_u)


@pytest.mark.parametrize("periodic", [False, True])
def test_steps_of_one_line_take_numbers_and_keep_single_precision(differentiable, periodic):
    u = np.arange(4, dtype=np.float32)
    lengths = {"dt": np.float64(0.1), "theta": np.float64(0.5), "periodic": periodic}
    functions, own = differentiable.functions, differentiable.array(u)
    step = differentiable.jit(lambda u: functions.theta_step(1.0, -2.0, 1.0, u, **lengths))
    x = differentiable.get(step(own))
    truth = pysolvers.theta_step(1.0, -2.0, 1.0, u, **lengths)
    assert x.dtype == truth.dtype == np.float32
    np.testing.assert_allclose(x, truth, rtol=1e-6)
    mask = np.array([True, True, False, True])
    masked = {"where": differentiable.array(mask), "periodic": periodic}
    solve = differentiable.jit(lambda u: functions.solve_tridiagonal(-1.0, 3.0, -1.0, u, **masked))
    x = differentiable.get(solve(own))
    masked["where"] = mask
    truth = pysolvers.solve_tridiagonal(-1.0, 3.0, -1.0, u, **masked)
    np.testing.assert_allclose(x, truth, rtol=1e-6)


@pytest.mark.each_value
@pytest.mark.parametrize("theta", [0.5, 1])
@pytest.mark.parametrize("masked", [False, True])
def test_steps_with_an_obstacle_are_those_of_numpy(differentiable, theta, masked):
    n = 50
    s = np.linspace(0, 4, n)
    h = s[1]
    vol = np.array([[0.2], [0.4], [0.3]])
    second, first = 0.5 * vol**2 * s**2 / h**2, 0.5 * 0.05 * s / h
    lower, diag, upper = second - first, -2 * second - 0.05, second + first
    for entries in (lower, diag, upper):
        entries[:, [0, -1]] = 0
    least = np.maximum(1 - s, 0)
    inside = np.broadcast_to(s < 3, lower.shape)
    u, bound, mask = least, least, {}
    if masked:
        bound, mask = np.where(inside, least, np.nan), {"where": differentiable.array(inside)}
    u = np.broadcast_to(u, lower.shape)
    own = [differentiable.array(np.ascontiguousarray(a)) for a in (lower, diag, upper)]
    here, there = u, differentiable.array(u.copy())
    own_bound = differentiable.array(bound)

    @differentiable.jit
    def step(u):
        options = {"dt": 0.05, "theta": theta, "projected": own_bound, **mask}
        return differentiable.functions.theta_step(*own, u, **options)

    for _ in range(4):
        here = pysolvers.theta_step(
            lower,
            diag,
            upper,
            here,
            dt=0.05,
            theta=theta,
            projected=bound,
            where=inside if masked else None,
        )
        there = step(there)
        found = differentiable.get(there)
        np.testing.assert_allclose(found, here, rtol=0, atol=1e-13)
        assert ((found == least) == (here == least))[inside].all()
        assert 3 < (found == least)[inside].sum() < 40
    wave = differentiable.array(u * 1j)
    with pytest.raises(TypeError, match="projected needs real operands, got"):
        differentiable.functions.theta_step(*own, wave, dt=0.1, projected=0.0)


def test_derivatives_of_steps_with_an_obstacle(differentiable):
    rng = np.random.default_rng(8)
    lower, upper, u, least = rng.uniform(size=(4, 2, 9))
    least[:, ::2] -= 1.0
    diag = -(lower + upper) - 0.1
    weights = differentiable.array(np.cos(np.arange(9.0)))

    def loss(lower, diag, upper, u, least):
        x = differentiable.functions.theta_step(lower, diag, upper, u, dt=0.3, projected=least)
        return (x * weights).sum()

    x = pysolvers.theta_step(lower, diag, upper, u, dt=0.3)
    assert 0 < (x < least).sum() < 9
    check_derivatives(differentiable, loss, [lower, diag, upper, u, least], rng, orders=1)


def test_derivatives_of_masked_steps(differentiable):
    lower, diag, upper, u, inside = system(4, (2, 7))
    lower, diag = (np.where(inside, a, np.nan) for a in (lower, diag))
    mask, weights = differentiable.array(inside), differentiable.array(np.cos(np.arange(7.0)))

    def loss(upper, u, h):
        own = [differentiable.array(a) for a in (lower, diag)]
        x = differentiable.functions.theta_step(*own, upper, u, dt=h.sum(), where=mask)
        return (x * weights).sum()

    rng = np.random.default_rng(5)
    check_derivatives(differentiable, loss, [upper, u, np.full(1, 0.3)], rng, orders=1)


@pytest.mark.each_value
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_diffusion_is_that_of_numpy(differentiable, masked, axis):
    rng = np.random.default_rng(5)
    T, dz = rng.uniform(1, 2, (2, 9, 4))
    K = rng.uniform(0, 3, (10, 4))
    value, flux = rng.uniform(0, 2, (2, 4))
    inside = np.arange(9)[:, None] < rng.integers(3, 10, 4)
    if masked:
        T, dz = np.where(inside, T, np.nan), np.where(inside, dz, np.nan)
    arrays = [a if axis == 0 else a.T.copy() for a in (T, K, dz)]
    mask = inside if axis == 0 else inside.T.copy()
    options = {"value_first": value, "flux_last": flux}
    truth = pysolvers.implicit_diffusion(
        *arrays, 0.7, axis=axis, theta=0.5, where=mask if masked else None, **options
    )
    own = {name: differentiable.array(a) for name, a in options.items()}
    if masked:
        own["where"] = differentiable.array(mask)
    step = differentiable.jit(
        lambda arrays, options: differentiable.functions.implicit_diffusion(
            *arrays, 0.7, axis=axis, theta=0.5, **options
        )
    )
    x = step([*map(differentiable.array, arrays)], own)
    np.testing.assert_allclose(differentiable.get(x), truth, rtol=1e-12)


@pytest.mark.each_value
@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("kind", ["own", "shared", "numbers", "sums"])
def test_factors_with_a_mask_are_those_of_numpy(differentiable, kind, axis):
    lower, diag, upper, u, inside = system(9, (5, 6, 9))
    if kind == "own":
        lower, diag = (np.where(inside, a, np.nan) for a in (lower, diag))
    elif kind == "sums":
        lower, upper, diag = -np.abs(lower), -np.abs(upper), np.abs(diag)
    elif kind == "shared":
        lower, diag, upper = (np.moveaxis(a, axis, -1)[0, 0] for a in (lower, diag, upper))
    else:
        lower, diag, upper = np.full(lower.shape[axis], -1.0), 2.5, -0.5
    own = [differentiable.array(a) if np.ndim(a) else a for a in (lower, diag, upper)]
    if kind == "sums":
        diag, own[1] = RowSums(diag), RowSums(own[1])
    b = np.where(inside, u, np.nan)
    options = {"axis": axis}
    made = pysolvers.factor_tridiagonal(lower, diag, upper, where=inside, **options)
    factor = differentiable.functions.factor_tridiagonal(
        *own, where=differentiable.array(inside), **options
    )
    for trans in ("N", "T") if kind != "sums" else ("N",):
        x = differentiable.get(factor.solve(differentiable.array(b), trans=trans))
        if trans == "N":
            np.testing.assert_allclose(x, made.solve(b), atol=1e-13)
        else:
            clean = pysolvers.factor_tridiagonal(
                *(a if np.ndim(a) else np.full(b.shape, a) for a in (lower, diag, upper)),
                where=inside,
                **options,
            )
            np.testing.assert_allclose(x, clean.solve(b, trans="T"), atol=1e-13)
    product = differentiable.get(factor.multiply(differentiable.array(b)))
    kept = pysolvers.factor_tridiagonal(
        lower, diag, upper, where=inside, keep_matrix=True, **options
    )
    np.testing.assert_allclose(product, np.where(inside, kept.multiply(u), b), atol=1e-13)


@pytest.mark.parametrize("periodic", [False, True])
def test_factors_multiply_shared_and_own_matrices(differentiable, periodic):
    lower, diag, upper, u, _ = system(12, (5, 3, 7))
    functions, options = differentiable.functions, {"axis": 0, "periodic": periodic}
    own = [differentiable.array(a) for a in (lower, diag, upper, u)]
    factor = functions.factor_tridiagonal(*own[:3], **options)
    truth = pysolvers.tridiagonal_matvec(lower, diag, upper, u, **options)
    np.testing.assert_allclose(differentiable.get(factor.multiply(own[3])), truth, atol=1e-14)
    line = np.cos(np.arange(5.0))
    truth = pysolvers.tridiagonal_matvec(lower, diag, upper, line, **options)
    product = factor.multiply(differentiable.array(line))
    np.testing.assert_allclose(differentiable.get(product), truth, atol=1e-14)
    off = differentiable.array(np.full(5, -1.0))
    factor = functions.factor_tridiagonal(off, 2.5, off, periodic=periodic)
    lines = np.ascontiguousarray(np.moveaxis(u, 0, -1))
    truth = pysolvers.tridiagonal_matvec(-1.0, 2.5, -1.0, lines, periodic=periodic)
    product = factor.multiply(differentiable.array(lines))
    np.testing.assert_allclose(differentiable.get(product), truth, atol=1e-14)
    with pytest.raises(ValueError, match="x must have 5 rows"):
        factor.multiply(own[3])


def test_gradients_of_factors_with_a_mask_are_those_of_solves(differentiable):
    lower, diag, upper, u, inside = system(10, (4, 9))
    lower, diag = (np.where(inside, a, np.nan) for a in (lower, diag))
    functions, mask = differentiable.functions, differentiable.array(inside)
    own = [differentiable.array(a) for a in (lower, diag, upper, u)]

    def of_factor(*operands):
        *matrix, b = operands
        return (functions.factor_tridiagonal(*matrix, where=mask).solve(b) ** 2).sum()

    def of_solve(*operands):
        return (functions.solve_tridiagonal(*operands, where=mask) ** 2).sum()

    (_, ones), (_, others) = (
        differentiable.value_and_grad(function, len(own))(*own)
        for function in (of_factor, of_solve)
    )
    for one, other in zip(ones, others, strict=True):
        found, expected = differentiable.get(one), differentiable.get(other)
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, expected, atol=1e-12)


def theta_case(kind, shape, axis):
    """Return diagonals of A, values, a mask, and what belongs to the kind of matrices."""
    lower, diag, upper, u, inside = system(20, shape)
    rows = shape[axis]
    if kind == "masked":
        lower, diag = (np.where(inside, a, np.nan) for a in (lower, diag))
        return (lower, diag, upper), np.where(inside, u, np.nan), {"where": inside}
    if kind == "sums":
        return (np.abs(lower), RowSums(-np.abs(diag)), np.abs(upper)), u, {}
    if kind == "shared":
        line = [np.moveaxis(a, axis, -1)[0, 0] for a in (lower, diag, upper)]
        return tuple(line), u, {"periodic": True}
    if kind == "numbers":
        return (np.full(rows, 1.0), -2.0, 1.0), u, {"rows": rows}
    return (lower, diag, upper), u, {}


def of_library(library, operands):
    """Return operands as arrays of a library; numbers stay."""
    return [
        RowSums(library.array(a.s))
        if isinstance(a, RowSums)
        else library.array(a)
        if np.ndim(a)
        else a
        for a in operands
    ]


@pytest.mark.each_value
@pytest.mark.parametrize("theta", [0.5, 1])
@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("kind", ["own", "masked", "sums", "shared", "numbers"])
def test_theta_factors_make_the_steps_of_numpy(differentiable, kind, axis, theta):
    matrix, u, options = theta_case(kind, (5, 6, 9), axis)
    source = np.cos(u)  # also NaN outside of a mask
    options |= {"dt": 0.3, "theta": theta, "axis": axis}
    if kind in ("shared", "numbers") and axis != -1:
        options["axis"] = -1  # of the matrices
        u, source = (np.ascontiguousarray(np.moveaxis(a, axis, -1)) for a in (u, source))
    truth = pysolvers.factor_theta(*matrix, **options).step(u, source, count=3)
    own = of_library(differentiable, matrix)
    if kind == "masked":
        options["where"] = differentiable.array(options["where"])

    def steps(own_u, own_source, *own):
        factor = differentiable.functions.factor_theta(*own, **options)
        return factor.step(own_u, own_source, count=3)

    given = [differentiable.array(a) for a in (u, source)]
    numbers = {k + 2 for k, a in enumerate(own) if not hasattr(a, "shape") and a in (-2.0, 1.0)}
    made = (
        differentiable.jit(lambda a, b: steps(a, b, *own))(*given)
        if numbers
        else differentiable.jit(steps)(*given, *own)
    )
    np.testing.assert_allclose(differentiable.get(made), truth, atol=1e-13)
    once = pysolvers.theta_step(
        *matrix,
        u,
        **{k: v for k, v in options.items() if k not in ("rows", "where")},
        where=np.isfinite(u) if kind == "masked" else None,
    )
    factor = differentiable.functions.factor_theta(*own, **options)
    np.testing.assert_allclose(differentiable.get(factor.step(given[0])), once, atol=1e-13)


def test_theta_factors_take_values_and_sources_of_fewer_axes(differentiable):
    lower, diag, upper, u, _ = system(21, (5, 5, 4))
    line, column, options = np.arange(5.0), np.arange(4.0), {"dt": 0.4, "axis": 1}
    factor = pysolvers.factor_theta(lower, diag, upper, **options)
    own = [differentiable.array(a) for a in (lower, diag, upper)]
    there = differentiable.functions.factor_theta(*own, **options)
    for values, source in ((u, line), (line, 0.5), (line, column[None]), (u, u[:, :1]), (u, 2.0)):
        truth = factor.step(values, source, count=2)
        given = (differentiable.array(a) if np.ndim(a) else a for a in (values, source))
        np.testing.assert_allclose(
            differentiable.get(there.step(*given, count=2)), truth, atol=1e-13
        )
    own_u = differentiable.array(u)
    inside = (
        np.arange(5)[:, None] > 0
    )  # theta dt is 1: entries of 1 outside would give a pivot of 0
    truth = pysolvers.factor_theta(lower, diag, upper, dt=2.0, axis=1, where=inside).step(u)
    options |= {"dt": 2.0, "where": differentiable.array(inside)}
    x = differentiable.functions.factor_theta(*own, **options).step(own_u)
    np.testing.assert_allclose(differentiable.get(x), truth, atol=1e-13)
    with pytest.raises(ValueError, match="source must broadcast to the shape"):
        there.step(own_u, differentiable.array(np.ones((3, 4))))
    with pytest.raises(ValueError, match="count must be at least 1, got 0"):
        there.step(own_u, count=0)
    with pytest.raises(ValueError, match=r"have 5 rows|u has shape"):
        there.step(differentiable.array(np.ones((5, 3, 4))))
    with pytest.raises(ValueError, match="factor_theta: theta must be greater than 0"):
        differentiable.functions.factor_theta(*own, dt=0.1, theta=0)


def test_theta_factors_of_complex_values_and_of_single_precision(differentiable):
    lower, diag, upper, u, _ = system(22, (3, 8))
    factor = pysolvers.factor_theta(lower, diag, upper, dt=0.2)
    own = [differentiable.array(a) for a in (lower, diag, upper)]
    there = differentiable.functions.factor_theta(*own, dt=0.2)
    truth = factor.step(u * (1 + 2j), 1j, count=2)
    x = differentiable.get(there.step(differentiable.array(u * (1 + 2j)), 1j, count=2))
    np.testing.assert_allclose(x, truth, atol=1e-13)
    own = [differentiable.array(a.astype(np.float32)) for a in (lower, diag, upper, u)]
    there = differentiable.functions.factor_theta(*own[:3], dt=np.float64(0.2))
    x = there.step(own[3])
    assert differentiable.dtype(x) == np.float32
    np.testing.assert_allclose(differentiable.get(x), factor.step(u), atol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
def test_derivatives_of_steps_with_factors(differentiable, masked):
    lower, diag, upper, u, inside = system(23, (2, 6))
    hidden = np.where(inside, 0.0, np.nan) if masked else 0.0
    mask = {"where": differentiable.array(inside)} if masked else {}
    weights = differentiable.array(np.cos(np.arange(6.0)))
    spoils = differentiable.array(np.broadcast_to(hidden, u.shape).copy())

    def loss(lower, diag, upper, u, source, h):
        functions = differentiable.functions
        factor = functions.factor_theta(lower + spoils, diag, upper, dt=h.sum(), **mask)
        return (factor.step(u, source + spoils, count=2) * weights).sum()

    arguments = [lower, diag, upper, u, np.sin(u), np.full(1, 0.3)]
    rng = np.random.default_rng(5)
    check_derivatives(differentiable, loss, arguments, rng, orders=1 if masked else 2)


def test_theta_factors_in_a_batch(differentiable):
    lower, diag, upper, u, _ = system(24, (4, 3, 7))
    own = [differentiable.array(a) for a in (lower, diag, upper, u)]
    lengths = np.array([0.1, 0.2, 0.3, 0.4])
    functions = differentiable.functions
    factor = functions.factor_theta(*own[:3], dt=0.2)
    shared = functions.factor_theta(*(a[0, 0] for a in own[:3]), dt=0.2)

    x = differentiable.vmap(lambda u: shared.step(u, u, count=2))(own[3])
    truth = pysolvers.factor_theta(lower[0, 0], diag[0, 0], upper[0, 0], dt=0.2)
    np.testing.assert_allclose(differentiable.get(x), truth.step(u, u, count=2), atol=1e-13)

    def step(lower, diag, upper, u, h):
        return functions.factor_theta(lower, diag, upper, dt=h).step(u, count=2)

    x = differentiable.get(differentiable.vmap(step)(*own, differentiable.array(lengths)))
    for k, h in enumerate(lengths):
        truth = pysolvers.factor_theta(lower[k], diag[k], upper[k], dt=h).step(u[k], count=2)
        np.testing.assert_allclose(x[k], truth, atol=1e-13)
    truth = pysolvers.factor_theta(lower, diag, upper, dt=0.2).step(u, count=2)
    np.testing.assert_allclose(differentiable.get(factor.step(own[3], count=2)), truth, atol=1e-13)


@pytest.mark.parametrize("shape", [(5,), (3, 5), (5, 1)])
def test_products_with_row_sums_and_one_coefficient_for_all_rows(differentiable, shape):
    rng = np.random.default_rng(8)
    x, sums = rng.standard_normal((2, *shape))
    axis = -2 if shape[-1] == 1 else -1
    column = np.full((3, 1), 0.7)[: shape[0] if axis == -1 and len(shape) > 1 else 1]
    functions, array = differentiable.functions, differentiable.array
    for lower, upper in ((0.7, 0.4), (column if len(shape) > 1 else 0.3, 0.2)):
        truth = pysolvers.tridiagonal_matvec(lower, RowSums(sums), upper, x, axis=axis)
        own = (array(a) if np.ndim(a) else a for a in (lower, upper))
        below, above = own
        y = functions.tridiagonal_matvec(below, RowSums(array(sums)), above, array(x), axis=axis)
        np.testing.assert_allclose(differentiable.get(y), truth, atol=1e-14)
        r = functions.residual(below, RowSums(array(sums)), above, array(x), y, axis=axis)
        np.testing.assert_allclose(differentiable.get(r), 0, atol=1e-14)


def test_operands_without_axes_and_rows_of_masks(differentiable):
    lower, diag, upper, u, inside = system(9, (4, 6))
    functions, array = differentiable.functions, differentiable.array
    for dtype in (np.float64, np.float32):
        line = np.asarray(u[0], dtype)
        own = [array(np.asarray(a[0], dtype)) for a in (lower, diag, upper)]
        x = functions.theta_step(*own, array(line), dt=0.3, source=array(np.asarray(2.0, dtype)))
        matrix = (np.asarray(a[0], dtype) for a in (lower, diag, upper))
        truth = pysolvers.theta_step(*matrix, line, dt=0.3, source=2.0)
        np.testing.assert_allclose(differentiable.get(x), truth, rtol=1e-5)
    options = {"rows": 6, "where": array(inside)}
    one = array(np.full((4, 1), 3.0))
    x = functions.factor_tridiagonal(-1.0, one, -1.0, **options).solve(array(u))
    truth = pysolvers.solve_tridiagonal(-1.0, 3.0, -1.0, u, where=inside)
    np.testing.assert_allclose(differentiable.get(x), truth, atol=1e-14)
    x = functions.factor_theta(1.0, -one, 1.0, dt=0.2, **options).step(array(u))
    truth = pysolvers.theta_step(1.0, -3.0, 1.0, u, dt=0.2, where=inside)
    np.testing.assert_allclose(differentiable.get(x), truth, atol=1e-14)


@pytest.mark.parametrize("axis", [0, 1, 2, -3])
def test_diffusion_of_one_line_of_values(differentiable, axis):
    rng = np.random.default_rng(10)
    T, dz = rng.standard_normal(4), rng.uniform(1, 2, (4, 4, 4))
    K = rng.uniform(0, 1, [5 if k == axis % 3 else 4 for k in range(3)])
    whole = np.expand_dims(T, [k for k in range(3) if k != axis % 3])
    truth = pysolvers.implicit_diffusion(whole + 0 * dz, K, dz, 0.3, axis=axis)
    np.testing.assert_array_equal(pysolvers.implicit_diffusion(T, K, dz, 0.3, axis=axis), truth)
    x = differentiable.functions.implicit_diffusion(
        *map(differentiable.array, (T, K, dz)), 0.3, axis=axis
    )
    np.testing.assert_allclose(differentiable.get(x), truth, atol=1e-14)


def test_matrices_with_row_sums_are_real(differentiable):
    """One rule and one message in all calls, and those of NumPy; vectors can be complex."""
    functions, array = differentiable.functions, differentiable.array
    u = np.random.default_rng(10).standard_normal((2, 3, 6, 2)).view(complex)[..., 0]
    inside = np.arange(6) % 5 < 4
    k, line = np.full(6, 0.7), np.full(6, -0.2)

    def calls(library, convert, lower, sums, u, source):
        matrix = convert(lower), RowSums(convert(sums)), convert(k)
        negative = convert(-lower), RowSums(convert(-sums)), convert(-k)
        u, source, mask = convert(u), convert(source), {"where": convert(inside)}
        return {
            "tridiagonal_matvec": lambda: library.tridiagonal_matvec(*matrix, u),
            "residual": lambda: library.residual(*matrix, u, source),
            "solve_tridiagonal": lambda: library.solve_tridiagonal(*negative, u),
            "solve_tridiagonal with a mask": lambda: library.solve_tridiagonal(
                *negative, u, **mask
            ),
            "theta_step": lambda: library.theta_step(*matrix, u, dt=0.4, source=source),
            "theta_step with a mask": lambda: library.theta_step(
                *matrix, u, dt=0.4, source=source, **mask
            ),
            "factor_tridiagonal": lambda: library.factor_tridiagonal(*negative).solve(u),
            "factor_theta": lambda: library.factor_theta(*matrix, dt=0.4).step(u, source),
        }

    for vectors in ((u[0], u[1].real), (u[0].real, u[1])):
        truth = calls(pysolvers, np.asarray, k, line, *vectors)
        for name, call in calls(functions, array, k, line, *vectors).items():
            x = differentiable.get(call())
            np.testing.assert_allclose(x, truth[name](), atol=1e-13, err_msg=name)
    text = "lower, upper and RowSums.s must be real, got complex128"
    for lower, sums in ((k * 1j, line), (k, line * 1j)):
        for library, convert in ((pysolvers, np.asarray), (functions, array)):
            for call in calls(library, convert, lower, sums, u[0].real, u[1].real).values():
                with pytest.raises(TypeError, match=text):
                    call()


def test_values_at_the_ends_of_columns_add_no_axes(differentiable):
    """Those of more columns than the layers have gave steps of another shape."""
    functions, array = differentiable.functions, differentiable.array
    for shape, axis, wrong in (
        ((5,), 0, (1,)),
        ((5,), 0, (3,)),
        ((4, 5), 1, (2, 4)),
        ((4, 5), 0, 4),
    ):
        T, column = array(np.ones(shape)), array(np.ones(wrong))
        for name in ("flux_first", "flux_last", "value_first", "value_last"):
            with pytest.raises(
                ValueError, match=f"{name} must broadcast to .*, one value for each"
            ):
                functions.implicit_diffusion(T, 1.0, 1.0, 0.3, axis=axis, **{name: column})


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((0,), 0), ((3, 0), -1), ((0, 3), 0), ((0, 3), 1)])
def test_systems_without_rows_and_batches_without_systems(differentiable, shape, axis, periodic):
    functions, array = differentiable.functions, differentiable.array
    off, diag = array(np.ones(shape)), array(np.full(shape, -3.0))
    matrix, options = (off, diag, off), {"axis": axis, "periodic": periodic}
    sums = (off, RowSums(diag), off)
    found = [
        functions.tridiagonal_matvec(*matrix, off, **options),
        functions.tridiagonal_matvec(*sums, off, **options),
        functions.residual(*matrix, off, off, **options),
        functions.solve_tridiagonal(*matrix, off, **options),
        functions.theta_step(*matrix, off, dt=0.1, source=off, **options),
        functions.theta_step(*sums, off, dt=0.1, **options),
        functions.theta_step(*matrix, off, dt=0.1, where=off > 0, **options),
        functions.factor_theta(*matrix, dt=0.1, **options).step(off),
        functions.implicit_diffusion(off, 1.0, 1.0, 0.1, axis=axis, value_last=2.0),
        functions.linear_recurrence(off, off, axis=axis),
        functions.linear_recurrence(0.5, off, second=off, axis=axis, reverse=periodic),
    ]
    assert [tuple(x.shape) for x in found] == [shape] * len(found)
