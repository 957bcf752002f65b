"""What ranks that share a solve of conjugate gradients compute from sums: against linear algebra.

The least eigenvalue that is found is held to Lanczos' matrix, factors of a basis to a dense solve.
"""

import numpy as np
import pytest

from pysolvers import _core


@pytest.mark.parametrize("small", [(), (1e-6,), (1e-3, 2e-5)])
def test_least_eigenvalue(rng, small):
    eigenvalues = np.concatenate([np.linspace(0.2, 1, 40), small])
    r = rng.standard_normal(eigenvalues.size)
    p, beta, rz = np.zeros_like(r), 0.0, r @ r
    alphas, betas, state = [], [], (0.0,) * 4
    while rz > 1e-24:
        p = r + beta * p
        alpha = rz / (p @ (eigenvalues * p))
        r = r - alpha * eigenvalues * p
        alphas.append(alpha)
        betas.append(beta)
        state, least = _core.diffusion_least(state, alpha, beta)
        beta, rz = (r @ r) / rz, r @ r

        a, b = np.array(alphas), np.array(betas)
        lanczos = np.diag(1 / a + np.append(0, b[1:] / a[:-1]))
        off_diagonal = np.sqrt(b[1:]) / a[:-1]
        lanczos += np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1)
        truth = np.linalg.eigvalsh(lanczos)[0]
        assert truth * (1 - 1e-9) <= least <= 1.5 * truth
    assert least <= 1.5 * eigenvalues.min()


def products_of(fields, matrix, rhs):
    """Return the rows of products of fields, up to the diagonal, and the product with rhs."""
    gram = fields @ matrix @ fields.T
    return tuple((*gram[i, : i + 1], field @ rhs) for i, field in enumerate(fields))


def test_factors_of_a_basis(rng):
    half = rng.standard_normal((9, 9))
    matrix, rhs = half @ half.T + np.eye(9), rng.standard_normal(9)
    for count in range(5):
        fields = rng.standard_normal((count, 9))
        found = _core.diffusion_combine(products_of(fields, matrix, rhs), False)
        expected = np.linalg.solve(fields @ matrix @ fields.T, fields @ rhs)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize(("is_float32", "size"), [(False, 1e-8), (True, 1e-4)])
def test_field_that_depends_on_others_has_the_factor_zero(rng, is_float32, size):
    fields = rng.standard_normal((3, 6))
    fields[1] = 2 * fields[0] + size * fields[1]  # up to a rounding error of the dtype
    rhs = rng.standard_normal(6)
    one, two, three = _core.diffusion_combine(products_of(fields, np.eye(6), rhs), is_float32)
    rest = fields[[0, 2]]
    assert two == 0
    np.testing.assert_allclose([one, three], np.linalg.solve(rest @ rest.T, rest @ rhs), rtol=1e-3)
    assert _core.diffusion_combine(((0.0, 1.0),), is_float32) == (0.0,)
    assert _core.diffusion_combine(((1.0, np.inf),), is_float32) == (0.0,)


def test_products_of_a_wrong_number_are_refused():
    with pytest.raises(ValueError, match="at most 4 rows, got 5"):
        _core.diffusion_combine(((1.0,),) * 5, False)
    with pytest.raises(TypeError, match="products: need a tuple of 2"):
        _core.diffusion_combine(((1.0,),), False)
    with pytest.raises(TypeError, match="must be real number"):
        _core.diffusion_combine(((1.0, None),), False)
