"""Matrices given by `RowSums` on a device: every unknown is right, for arrays of every library."""

import exact_lines
import numpy as np
import pytest

import pysolvers
from pysolvers import RowSums, factor_tridiagonal, solve_tridiagonal

DTYPES = ("float32", "float64")
SHAPES = {"own": (slice(None),) * 2, "shared": (0,)}


def assert_every_unknown(x, operands, dtype, *, periodic):
    rows = x.shape[-1]
    bound = max(50, rows / 2) * np.finfo(dtype).eps
    for k in range(len(x)):
        truth = exact_lines.solve(*(a[k] for a in operands), periodic=periodic)
        assert np.abs(x[k].astype(float) / truth - 1).max() <= bound, k


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("form", SHAPES)
@pytest.mark.parametrize(("number", "rows"), [*enumerate([1, 3, 33, 260])])
def test_solves_and_factors(library, rng, number, rows, form, axis, periodic):
    dtype = DTYPES[(number // 2 + axis + periodic) % 2]  # each with both axes, open and periodic
    *matrix, rhs = exact_lines.family(rng, 6, rows, dtype, symmetric=rows % 2 == 0)
    matrix = [a[SHAPES[form]] for a in matrix]
    operands = [np.broadcast_to(a, rhs.shape) for a in (*matrix, rhs)]
    given = [a.T if a.ndim > 1 and axis == 0 else a for a in (*matrix, rhs)]
    lower, sums, upper, b = (library.array(np.ascontiguousarray(a)) for a in given)

    x = solve_tridiagonal(lower, RowSums(sums), upper, b, axis=axis, periodic=periodic)

    assert library.is_kind(x)
    found = library.get(x)
    assert_every_unknown(found if axis else found.T, operands, dtype, periodic=periodic)
    options = {"rows": rows, "periodic": periodic}
    options["axis"] = axis if form == "own" else 0
    factor = factor_tridiagonal(lower, RowSums(sums), upper, **options)
    found = library.get(factor.solve(b, axis=axis))
    assert_every_unknown(found if axis else found.T, operands, dtype, periodic=periodic)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("rows", [1 << 13, (1 << 15) + 1, 1 << 18])
def test_one_long_system(cuda, rng, rows, periodic, dtype):
    """The truth for the right-hand side s is 1 in every row."""
    lower = -(10 ** rng.uniform(-3, 3, rows)).astype(dtype)
    sums = (10 ** rng.uniform(-20, -10, rows)).astype(dtype)
    operands = lower, RowSums(sums), np.roll(lower, -1), sums
    x = solve_tridiagonal(*operands, periodic=periodic, device="cuda")
    assert np.abs(x.astype(float) - 1).max() <= rows / 2 * np.finfo(dtype).eps


def test_signs_are_checked_where_the_call_waits(library, rng):
    lower, sums, upper, rhs = exact_lines.family(rng, 3, 40, "float64")
    lower[1, 7] = 0.5
    there = [library.array(a) for a in (lower, sums, upper, rhs)]
    text = r"lower is 0.5 at batch index \(1,\), row 7"
    for call in (
        lambda form, **o: solve_tridiagonal(there[0], form, there[2], there[3], **o),
        lambda form, **o: factor_tridiagonal(there[0], form, there[2], **o),
    ):
        for policy in ("raise", "warn"):
            with pytest.raises(ValueError, match=text):
                call(RowSums(there[1]), on_singular=policy)
        call(RowSums(there[1]), on_singular="nan")
        call(RowSums(there[1], check_signs=False), on_singular="raise")
    with pytest.raises(ValueError, match=text):
        solve_tridiagonal(lower, RowSums(sums), upper, rhs, device="cuda", on_singular="nan")


def test_ignored_entries_and_singular_systems(library):
    lower, sums, upper = np.full((3, 9), -1.0), np.ones((3, 9)), np.full((3, 9), -1.0)
    lower[:, 0], upper[:, -1] = 3.0, np.nan
    sums[1] = 0
    there = [library.array(a) for a in (lower, sums, upper, np.ones((3, 9)))]
    operands = there[0], RowSums(there[1]), there[2], there[3]
    with pytest.raises(pysolvers.SingularSystemError) as caught:
        solve_tridiagonal(*operands)
    assert caught.value.systems.tolist() == [[1]]
    x = library.get(solve_tridiagonal(*operands, on_singular="nan"))
    assert np.isnan(x).all(axis=1).tolist() == [False, True, False]
    np.testing.assert_allclose(x[[0, 2]], 1.0, rtol=1e-14)


@pytest.mark.parametrize("form", SHAPES)
def test_complex_right_sides(cuda, rng, form):
    *matrix, rhs = exact_lines.family(rng, 6, 65, "float64")
    matrix = [a[SHAPES[form]] for a in matrix]
    lower, sums, upper = matrix
    x = solve_tridiagonal(lower, RowSums(sums), upper, rhs * (1 + 2j), device="cuda")
    operands = [np.broadcast_to(a, rhs.shape) for a in (*matrix, rhs)]
    assert_every_unknown(x.real, operands, "float64", periodic=False)
    np.testing.assert_allclose(x.imag, 2 * x.real, rtol=1e-13)


def test_transposes_of_factors_are_refused(cuda):
    factor = factor_tridiagonal(-1.0, RowSums(np.ones(9)), -1.0, device="cuda")
    with pytest.raises(pysolvers.BackendError, match="trans must be 'N' on a device"):
        factor.solve(np.ones(9), trans="T")


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_of_jax(cuda, rng, dtype, periodic):
    jax = pytest.importorskip("jax")
    from pysolvers.jax import solve_tridiagonal

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        check_gradients(rng, dtype, periodic, jax_function(jax, solve_tridiagonal, periodic))
    finally:
        jax.config.update("jax_enable_x64", before)


def jax_function(jax, solve, periodic):
    device = jax.devices("cuda")[0]

    def back(operands, g):
        def of(lower, sums, upper, rhs):
            return solve(lower, RowSums(sums), upper, rhs, periodic=periodic)

        x, gradient = jax.vjp(of, *(jax.device_put(a, device) for a in operands))
        return np.asarray(x), [np.asarray(a) for a in gradient(jax.device_put(g, device))]

    return back


@pytest.mark.parametrize("by_factor", [False, True])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_of_torch(cuda, rng, dtype, periodic, by_factor):
    torch = pytest.importorskip("torch")
    from pysolvers.torch import factor_tridiagonal, solve_tridiagonal

    def back(operands, g):
        there = [torch.tensor(a, device="cuda", requires_grad=True) for a in operands]
        lower, sums, upper, rhs = there
        if by_factor:
            x = factor_tridiagonal(lower, RowSums(sums), upper, periodic=periodic).solve(rhs)
        else:
            x = solve_tridiagonal(lower, RowSums(sums), upper, rhs, periodic=periodic)
        found = torch.autograd.grad(x, there, torch.tensor(g, device="cuda"))
        return x.detach().cpu().numpy(), [a.cpu().numpy() for a in found]

    check_gradients(rng, dtype, periodic, back)


def check_gradients(rng, dtype, periodic, back):
    operands = exact_lines.family(rng, 4, 31, dtype, symmetric=False)
    g = rng.random((4, 31)).astype(dtype)
    x, found = back(operands, g)
    exact_lines.check_gradients(operands, g, x, found, periodic=periodic)
