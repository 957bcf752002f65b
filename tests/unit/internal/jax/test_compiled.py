"""Calls with arrays of JAX that repeat shapes; the CPU stands for a device."""

import numpy as np
import oracle
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("pysolvers.jax")

import pysolvers  # noqa: E402
from pysolvers._lines import engine  # noqa: E402
from pysolvers._lines.eager import kept_for_programs  # noqa: E402
from pysolvers.jax import _eager as programs  # noqa: E402

CALLS = 5


@pytest.fixture
def compiled(monkeypatch):
    """Let arrays of JAX on the CPU be solved as those on a device; record what was compiled."""
    answers = []

    def solve(*arguments, **options):
        answer = solve_compiled(*arguments, **options)
        answers.append(answer is not None)
        return answer

    solve_compiled = programs.solve
    monkeypatch.setattr(programs, "solve", solve)
    monkeypatch.setattr(engine, "solve_directly", lambda *arguments, **options: None)
    monkeypatch.setattr(programs, "_is_on_one_device", lambda array: True)
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    programs._count.cache_clear()
    yield answers
    jax.config.update("jax_enable_x64", before)


def repeated(*operands, **options):
    """Call several times; return the solutions."""
    arrays = [jax.numpy.asarray(a) if isinstance(a, np.ndarray) else a for a in operands]
    found = [pysolvers.solve_tridiagonal(*arrays, **options) for _ in range(CALLS)]
    assert all(isinstance(x, jax.Array) for x in found)
    return found


@pytest.mark.each_value
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


@pytest.fixture
def factor_of(compiled, monkeypatch):
    """Return a function that factors arrays of JAX on the CPU as on a device."""
    monkeypatch.setattr(pysolvers.TridiagonalFactor, "_solve_directly", lambda *arguments: None)

    def solve(self, *arguments):
        answer = solve_by_program(self, *arguments)
        compiled.append(answer is not None)
        return answer

    solve_by_program = programs.CompiledFactor.solve
    monkeypatch.setattr(programs.CompiledFactor, "solve", solve)

    def create(*diagonals, **options):
        arrays = [jax.numpy.asarray(a) if isinstance(a, np.ndarray) else a for a in diagonals]
        factor = pysolvers.factor_tridiagonal(*arrays, **options)
        monkeypatch.setattr(factor, "_device", "cuda:0")
        named = dict(zip(("lower", "diag", "upper"), arrays, strict=True))
        factor._factors = factor._with_programs(factor._factors, named)
        monkeypatch.setattr(factor, "_device", "cpu")
        return factor

    return create


@pytest.mark.each_value
@pytest.mark.parametrize("trans", ["N", "T", "H"])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("options", [{}, {"pivot": False}, {"periodic": True}])
def test_factors_solve_by_programs(factor_of, compiled, rng, options, dtype, trans):
    lower, diag, upper, rhs = oracle.dominant(rng, (7, 33), np.dtype(dtype))
    expected = pysolvers.factor_tridiagonal(lower, diag, upper, **options).solve(rhs, trans=trans)
    factor = factor_of(lower, diag, upper, **options)

    for _ in range(CALLS):
        x = factor.solve(jax.numpy.asarray(rhs), trans=trans)
        assert isinstance(x, jax.Array) and x.dtype == dtype
        np.testing.assert_allclose(x, expected, atol=50 * oracle.eps(dtype))

    assert compiled == [False, False, True, True, True]


def test_factors_of_numbers_vectors_and_complex_sides(factor_of, compiled, rng):
    diag = 3 + rng.random(33)
    rhs = rng.standard_normal((33, 4)) * (1 + 2j)
    expected = pysolvers.factor_tridiagonal(-1.0, diag, 1).solve(rhs.T).T
    factor = factor_of(-1.0, diag[:, None], 1, axis=0)

    for _ in range(CALLS):
        np.testing.assert_allclose(factor.solve(jax.numpy.asarray(rhs)), expected, rtol=1e-12)

    assert compiled[-1]


@pytest.mark.parametrize("axis", [0, 1, -2])
def test_programs_solve_along_the_axis_of_a_factor_of_vectors(factor_of, compiled, rng, axis):
    lower, diag, upper, _ = oracle.dominant(rng, (5,))
    cube = rng.standard_normal((5, 5, 5))
    factor = factor_of(lower, diag, upper, axis=axis)
    expected = pysolvers.solve_tridiagonal(lower, diag, upper, cube, axis=axis)

    for _ in range(CALLS):
        x = factor.solve(jax.numpy.asarray(cube))
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-14)
    assert compiled[-1]
    single = factor_of(lower, diag, upper, axis=2)
    for _ in range(CALLS):
        with pytest.raises(np.exceptions.AxisError, match=r"axis of the factor must be"):
            single.solve(jax.numpy.asarray(cube[0]))


def test_programs_use_the_matrices_of_the_last_refactor(factor_of, compiled, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (7, 33))
    factor = factor_of(lower, diag, upper)
    for _ in range(CALLS):
        factor.solve(jax.numpy.asarray(rhs))
    assert compiled[-1]

    factor.refactor(lower, 2 * diag, upper)

    x = factor.solve(jax.numpy.asarray(rhs))
    assert oracle.backward_error(lower, 2 * diag, upper, rhs, np.asarray(x)) < 1e-14


def test_diagonals_may_be_deleted(factor_of, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (7, 33))
    arrays = [jax.numpy.array(a) for a in (lower, diag, upper)]
    expected = pysolvers.factor_tridiagonal(lower, diag, upper).solve(rhs)
    factor = factor_of(*arrays)

    for k in range(2 * CALLS):
        if k == CALLS:
            arrays[1].delete()
        found = factor.solve(jax.numpy.asarray(rhs))
        np.testing.assert_allclose(found, expected, atol=1e-14)


def test_factors_that_do_not_fit_a_program(factor_of, compiled, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (7, 33))
    wide = factor_of(lower, diag, upper)
    single = factor_of(*(a.astype("f4") for a in (lower, diag, upper)))

    for _ in range(CALLS):
        assert isinstance(wide.solve(rhs), np.ndarray)
        with pytest.raises(ValueError, match="32 entries"):
            wide.solve(jax.numpy.asarray(rhs[0, 1:]))
        with pytest.raises(ValueError, match="does not broadcast"):
            wide.solve(jax.numpy.asarray(rhs[:, 1:]))
        with pytest.raises(TypeError):
            single.solve(jax.numpy.asarray(rhs))

    assert not any(compiled)
    assert kept_for_programs((lower, diag, upper)) is None
    assert kept_for_programs((1.0, jax.ShapeDtypeStruct((1 << 25, 9), "f8"), 1.0)) is None
    small = 1.0, jax.numpy.ones(9), 1.0
    assert kept_for_programs(small) == small
