"""The recipes of the page on block systems: Kalman smoothers and Gaussian processes.

Oracles: the Kalman filter and the smoother of Rauch, Tung and Striebel as loops, and dense
covariance matrices.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from pysolvers import factor_block_tridiagonal

PAGE = Path(__file__).parents[2] / "docs/block_systems.md"


@pytest.fixture(scope="module")
def page():
    pytest.importorskip("scipy")
    names = {}
    for code in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S):
        if "import cupy" not in code:  # a GPU
            exec(code, names)
    return names


def smoothed(A, Q, H, R, y):
    """Return means, covariances, those of successive states, and the log likelihood.

    R is infinite where nothing is observed.
    """
    n, k = Q.shape[:2]
    mean, covariance, successive = np.zeros((n, k)), np.zeros((n, k, k)), np.zeros((n, k, k))
    predicted = [], []
    likelihood = 0.0
    for i in range(n):
        m = A[i - 1] @ mean[i - 1] if i else np.zeros(k)
        P = A[i - 1] @ covariance[i - 1] @ A[i - 1].T + Q[i] if i else Q[0]
        predicted[0].append(m)
        predicted[1].append(P)
        if np.isfinite(R[i]).all():
            S = H[i] @ P @ H[i].T + R[i]
            gain = P @ H[i].T @ np.linalg.inv(S)
            e = y[i] - H[i] @ m
            likelihood -= 0.5 * (e @ np.linalg.solve(S, e) + np.log(np.linalg.det(2 * np.pi * S)))
            m, rest = m + gain @ e, np.eye(k) - gain @ H[i]
            P = rest @ P @ rest.T + gain @ R[i] @ gain.T
        mean[i], covariance[i] = m, P
    for i in reversed(range(n - 1)):
        gain = covariance[i] @ A[i].T @ np.linalg.inv(predicted[1][i + 1])
        mean[i] += gain @ (mean[i + 1] - predicted[0][i + 1])
        successive[i + 1] = covariance[i + 1] @ gain.T
        covariance[i] += gain @ (covariance[i + 1] - predicted[1][i + 1]) @ gain.T
    return mean, covariance, successive, likelihood


@pytest.mark.parametrize(("k", "m"), [(1, 1), (2, 1), (2, 2)])
def test_smoother_of_varying_matrices(page, k, m):
    rng = np.random.default_rng(k + m)
    n = 60
    A = rng.uniform(-1, 1, (n - 1, k, k))
    root = rng.standard_normal((n, k, k))
    Q = root @ root.swapaxes(1, 2) * 10.0 ** rng.uniform(-6, 0, (n, 1, 1))
    H = rng.standard_normal((n, m, k))
    R = np.eye(m) * 10.0 ** rng.uniform(-4, 1, (n, 1, 1))
    W = np.linalg.inv(R)
    R[20:25], W[20:25] = np.inf, 0
    y = rng.standard_normal((n, m))

    factor = factor_block_tridiagonal(*page["smoother_blocks"](A, Q, H, W), pivot=False)
    x = factor.solve(page["smoother_rhs"](H, W, y))[:, :k, 0]
    lower, diag, _ = factor.inverse_blocks()
    mean, covariance, successive, likelihood = smoothed(A, Q, H, R, y)

    np.testing.assert_allclose(x, mean, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(diag[:, :k, k:], covariance, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(lower[:, :k, k:], successive, rtol=1e-9, atol=1e-11)
    seen = W[:, 0, 0] > 0
    z = (y - (H @ x[..., None])[..., 0])[seen]
    fit = (y[seen] * (W[seen] @ z[..., None])[..., 0]).sum()
    size = np.log(np.linalg.det(2 * np.pi * R[seen])).sum()
    np.testing.assert_allclose(-(fit + factor.logdet() + size) / 2, likelihood, rtol=1e-11)


def dense(t, y, variance, length, noise, p):
    """Return log likelihood, mean and variances from the covariance matrix."""
    r = np.sqrt(2 * p + 1) * np.abs(t[:, None] - t) / length
    polynomial = (1, 1 + r, 1 + r + r**2 / 3)[p]
    prior = variance * polynomial * np.exp(-r)
    L = np.linalg.cholesky(prior + noise * np.eye(len(t)))
    z, W = np.linalg.solve(L, y), np.linalg.solve(L, prior)
    size = np.log(np.diag(L)).sum() + 0.5 * len(t) * np.log(2 * np.pi)
    return -0.5 * z @ z - size, W.T @ z, np.diag(prior) - (W * W).sum(0)


@pytest.mark.parametrize("p", [0, 1, 2])
@pytest.mark.parametrize("gap", [0.5, 1e-2, 1e-4, 1e-6, 1e-9])
def test_gaussian_process_agrees_with_the_dense_one(page, p, gap):
    rng = np.random.default_rng(p)
    t = 3 + np.cumsum(gap * rng.uniform(0.5, 1.5, 200))
    for noise in (0.09, 1e-3):
        y = np.sin(t) + np.sqrt(noise) * rng.standard_normal(t.size)
        options = {"variance": 1.3, "length": 2.0, "noise": noise, "p": p}
        likelihood, x, factor = page["posterior"](t, y, **options)
        expected = dense(t, y, **options)

        np.testing.assert_allclose(likelihood, expected[0], rtol=1e-10)
        np.testing.assert_allclose(x[:, 0], expected[1], atol=1e-10)
        if p < 2:
            variances = factor.inverse_blocks()[1][:, 0, p + 1]
            np.testing.assert_allclose(variances, expected[2], atol=1e-13)


@pytest.mark.parametrize("p", [0, 1])
def test_slopes_of_the_likelihood_are_those_of_the_dense_one(page, p):
    """By central differences, which are exact to 1e-9 here."""
    rng = np.random.default_rng(p)
    t = np.cumsum(rng.uniform(0.01, 0.5, 100))
    y = np.sin(t) + 0.3 * rng.standard_normal(t.size)
    options = {"variance": 1.3, "length": 2.0, "noise": 0.09}

    def expected(name):
        steps = []
        for sign in (1, -1):
            changed = dict(options)
            changed[name] *= 1 + sign * 1e-5
            steps.append(dense(t, y, **changed, p=p)[0])
        return (steps[0] - steps[1]) / (2e-5 * options[name])

    found = page["slopes"](t, y, **options, p=p)

    np.testing.assert_allclose(found, [expected(name) for name in options], rtol=1e-6)
