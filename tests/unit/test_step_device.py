"""Products and implicit steps of arrays on a device: the answers of NumPy."""

import fake_device
import gpu_libraries
import numpy as np
import oracle
import pytest

import pysolvers


@pytest.fixture
def library(device_library):
    return device_library


@pytest.fixture
def case(rng):
    lower, diag, upper, u = oracle.dominant(rng, (5, 33, 6))
    return lower, -np.abs(diag), upper, u


def agree(x, expected):
    np.testing.assert_allclose(x, expected, atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_products_and_residuals(library, case, axis):
    own = list(map(library.array, case))
    product = pysolvers.tridiagonal_matvec(*case, axis=axis)
    agree(library.get(pysolvers.tridiagonal_matvec(*own, axis=axis)), product)
    r = pysolvers.residual(*own, own[3], axis=axis, extended=True)
    agree(library.get(r), case[3] - product)
    staged = pysolvers.tridiagonal_matvec(*case, axis=axis, device="cuda")
    assert type(staged) is np.ndarray
    agree(staged, product)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("masked", [False, True])
def test_steps(library, case, axis, masked):
    inside = np.arange(33)[:, None] < [33, 20, 3, 1, 0, 7]
    source = np.cos(case[3])
    options = {"axis": axis, "dt": 0.3}
    mask = {"where": inside} if masked else {}
    expected = pysolvers.theta_step(*case, source=source, **mask, **options)
    own = list(map(library.array, case))
    there = {name: library.array(values) for name, values in mask.items()}
    x = pysolvers.theta_step(*own, source=library.array(source), **there, **options)
    agree(library.get(x), expected)
    agree(pysolvers.theta_step(*case, source=source, device="cuda", **mask, **options), expected)
    x = pysolvers.solve_tridiagonal(*own, axis=axis, **there)
    agree(library.get(x), pysolvers.solve_tridiagonal(*case, axis=axis, **mask))


@pytest.mark.parametrize("contact", ["first", "last"])
def test_bounds(library, case, contact):
    least = np.sin(3 * case[3])
    options = {"axis": 1, "dt": 0.3, "contact": contact}
    expected = pysolvers.theta_step(*case, projected=least, **options)
    own = list(map(library.array, case))
    agree(
        library.get(pysolvers.theta_step(*own, projected=library.array(least), **options)), expected
    )
    agree(pysolvers.theta_step(*case, projected=least, device="cuda", **options), expected)


def test_steps_with_kept_factors(library, case):
    lower, diag, upper, u = case
    expected = pysolvers.factor_theta(lower, diag, upper, dt=0.3, axis=1).step(u, count=3)
    factor = pysolvers.factor_theta(lower, diag, upper, dt=0.3, axis=1, device="cuda")
    agree(library.get(factor.step(library.array(u), count=3)), expected)
    agree(factor.step(u, count=3), expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shared", [False, True])
def test_kept_factors_with_a_mask(library, case, axis, shared):
    inside = np.random.default_rng(5).random(case[3].shape) < 0.7
    u = np.where(inside, case[3], np.nan)
    one = (0.3, np.full(u.shape[axis], -3.0), 0.2)
    matrix = one if shared else [np.where(inside, a, np.nan) for a in case[:3]]
    expected = pysolvers.factor_theta(*matrix, dt=0.3, axis=axis, where=inside)
    options = {"axis": axis, "where": inside}
    factor = pysolvers.factor_theta(*matrix, dt=0.3, device="cuda", **options)
    agree(factor.step(u), expected.step(u))
    many = np.stack([u, 2 * u])
    for vectors in (u, many, np.asfortranarray(many)):
        x = factor.step(library.array(vectors), count=2)
        agree(library.get(x), expected.step(vectors, count=2))

    there = [m if isinstance(m, float) else library.array(m) for m in matrix]
    mask = library.array(inside)
    solver = pysolvers.factor_tridiagonal(*there, axis=axis, where=mask)
    direct = pysolvers.solve_tridiagonal(*matrix, u, axis=axis, where=inside)
    agree(library.get(solver.solve(library.array(u), check_finite=True)), direct)


def test_a_mask_stays_where_it_is(case):
    """The host reads no number of factors that nothing waits for."""
    inside = np.random.default_rng(6).random((5, 33, 1)) < 0.7
    with fake_device.in_place_of_cuda() as device:
        library = gpu_libraries.HostMemory(device)
        own = list(map(library.array, (*case[:3], inside)))
        device.calls.clear()
        factor = pysolvers.factor_tridiagonal(
            *own[:3], axis=1, where=own[3], on_singular="ignore", pivot=False
        )
        names = [call[0] for call in device.calls]
        assert "download" not in names and "upload" not in names
        assert names.count("masked_rows") == 1

        for vectors in (case[3], np.stack([case[3]] * 2), np.asfortranarray(case[3])):
            expected = pysolvers.solve_tridiagonal(*case[:3], vectors, axis=-2, where=inside)
            agree(library.get(factor.solve(library.array(vectors))), expected)


@pytest.mark.parametrize("sign", [1, -1])
def test_signs_inside_a_mask(library, case, sign):
    inside = np.random.default_rng(7).random(case[3].shape) < 0.7
    lower, upper = (-sign * np.abs(a) for a in (case[0], case[2]))
    sums = sign * np.abs(case[1])
    options = {"axis": 1, "pivot": False}
    wrong = np.where(inside, sums, -sums)
    u = np.where(inside, case[3], np.nan)
    expected = pysolvers.solve_tridiagonal(
        lower, pysolvers.RowSums(sums), upper, u, where=inside, **options
    )
    given = [library.array(a) for a in (lower, wrong, upper, inside)]
    factor = pysolvers.factor_tridiagonal(
        given[0], pysolvers.RowSums(given[1]), given[2], where=given[3], **options
    )
    agree(library.get(factor.solve(library.array(u))), expected)
    wrong[0, np.flatnonzero(inside[0, :, 0])[0], 0] *= -1
    with pytest.raises(ValueError, match="sign"):
        pysolvers.factor_tridiagonal(
            given[0], pysolvers.RowSums(library.array(wrong)), given[2], where=given[3], **options
        )


def test_diffusion(library, case):
    T = np.abs(case[3])
    K, dz = np.abs(case[0][:, 1:]), np.linspace(1, 2, 33)
    inside = np.arange(33)[:, None] < [33, 20, 3, 1, 2, 7]
    options = {"axis": 1, "flux_first": 0.5, "theta": 0.5}
    expected = pysolvers.implicit_diffusion(T, K, dz, 2.0, where=inside, **options)
    x = pysolvers.implicit_diffusion(
        *map(library.array, (T, K, dz)), 2.0, where=library.array(inside), **options
    )
    agree(library.get(x), expected)
