"""The least eigenvalue that conjugate gradients find: against Lanczos' matrix."""

import numpy as np
import pytest

from pysolvers.heat._row_levels import _Least


@pytest.mark.parametrize("small", [(), (1e-6,), (1e-3, 2e-5)])
def test_least_eigenvalue(rng, small):
    eigenvalues = np.concatenate([np.linspace(0.2, 1, 40), small])
    r = rng.standard_normal(eigenvalues.size)
    p, beta, rz = np.zeros_like(r), 0.0, r @ r
    alphas, betas, least = [], [], _Least()
    assert least.value == np.inf
    while rz > 1e-24:
        p = r + beta * p
        alpha = rz / (p @ (eigenvalues * p))
        r = r - alpha * eigenvalues * p
        alphas.append(alpha)
        betas.append(beta)
        least.add(alpha, beta)
        beta, rz = (r @ r) / rz, r @ r

        a, b = np.array(alphas), np.array(betas)
        lanczos = np.diag(1 / a + np.append(0, b[1:] / a[:-1]))
        off_diagonal = np.sqrt(b[1:]) / a[:-1]
        lanczos += np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1)
        truth = np.linalg.eigvalsh(lanczos)[0]
        assert truth * (1 - 1e-9) <= least.value <= 1.5 * truth
    assert least.value <= 1.5 * eigenvalues.min()
