"""Calls with arrays of JAX that repeat shapes; the CPU stands for a device."""

import numpy as np
import oracle
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("pysolvers.jax")

import pysolvers  # noqa: E402
from pysolvers import _compiled, tridiagonal  # noqa: E402

CALLS = 5


@pytest.fixture
def compiled(monkeypatch):
    """Let arrays of JAX on the CPU be solved as those on a device; record what was compiled."""
    answers = []

    def solve(*arguments, **options):
        answer = solve_compiled(*arguments, **options)
        answers.append(answer is not None)
        return answer

    solve_compiled = tridiagonal.solve_compiled
    monkeypatch.setattr(tridiagonal, "solve_compiled", solve)
    monkeypatch.setattr(tridiagonal, "_solve_directly", lambda *arguments: None)
    monkeypatch.setattr(_compiled, "_is_on_one_device", lambda array: True)
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    _compiled._count.cache_clear()
    yield answers
    jax.config.update("jax_enable_x64", before)


def repeated(*operands, **options):
    """Call several times; return the solutions."""
    arrays = [jax.numpy.asarray(a) if isinstance(a, np.ndarray) else a for a in operands]
    found = [pysolvers.solve_tridiagonal(*arrays, **options) for _ in range(CALLS)]
    assert all(isinstance(x, jax.Array) for x in found)
    return found


@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("options", [{}, {"on_singular": "ignore"}, {"pivot": False}])
def test_repeated_shapes_are_compiled(compiled, rng, dtype, options):
    system = oracle.dominant(rng, (7, 33), np.dtype(dtype))

    for x in repeated(*system, **options):
        assert x.dtype == dtype
        assert oracle.backward_error(*system, np.asarray(x)) < 50 * oracle.eps(dtype)

    assert compiled == [False, False, True, True, True]


@pytest.mark.parametrize("periodic", [False, True])
def test_numbers_vectors_and_complex_sides(compiled, rng, periodic):
    diag = 3 + rng.random(33)
    rhs = rng.standard_normal((33, 4)) * (1 + 2j)
    options = {"axis": 0, "periodic": periodic}

    found = repeated(-1.0, diag, 1, rhs, **options)

    expected = pysolvers.solve_tridiagonal(-1.0, diag, 1, rhs, **options)
    for x in found:
        np.testing.assert_allclose(x, expected, rtol=1e-12, atol=1e-14)
    assert compiled[-1]


def test_singular_systems_are_reported(compiled, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (7, 9))
    lower[3, 4:6] = diag[3, 4] = upper[3, 3:5] = 0

    for _ in range(CALLS):
        with pytest.raises(pysolvers.SingularSystemError) as caught:
            repeated(lower, diag, upper, rhs)
        np.testing.assert_array_equal(caught.value.systems, [[3]])
        np.testing.assert_array_equal(caught.value.rows, [4])
    assert not any(compiled)


def test_nan_on_the_right_is_no_singular_system(compiled, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (7, 9))
    rhs[3, 4] = np.nan

    for x in repeated(lower, diag, upper, rhs):
        np.testing.assert_array_equal(np.isnan(x).all(axis=1), np.arange(7) == 3)


def test_calls_that_are_not_compiled(compiled, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (7, 9))

    mixed = repeated(lower.astype("f4"), diag, upper, rhs)
    assert mixed[-1].dtype == np.float64
    for bad in ({"axis": 2}, {"axis": 1.0}, {"periodic": 1}, {"pivot": 1}):
        for _ in range(CALLS):
            with pytest.raises((ValueError, TypeError)):
                repeated(lower, diag, upper, rhs, **bad)
    assert not any(compiled)
