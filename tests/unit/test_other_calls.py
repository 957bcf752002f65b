"""Calls in the style of SciPy: what the message says to write gives SciPy's solution."""

import inspect
import re
import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import solve_banded

import pysolvers
from pysolvers import factor_tridiagonal, from_banded, solve_tridiagonal


@pytest.fixture
def banded(rng):
    """Storage of one matrix, with values that do not count where SciPy ignores them."""
    ab = rng.uniform(1, 2, (3, 7))
    ab[1] += 4
    ab[0, 0] = ab[2, -1] = 99
    return ab


@pytest.mark.parametrize("shape", [(7,), (7, 4)])
def test_from_banded_gives_the_solution_of_scipy(rng, banded, shape):
    b = rng.uniform(-1, 1, shape)

    x = solve_tridiagonal(*from_banded(banded), b, axis=0)
    y = factor_tridiagonal(*from_banded(banded)).solve(b, axis=0)

    expected = solve_banded((1, 1), banded, b)
    np.testing.assert_allclose(x, expected, rtol=1e-13)
    np.testing.assert_allclose(y, expected, rtol=1e-13)


@pytest.mark.parametrize("rows", [1, 2, 3, 9])
def test_from_banded_of_a_batch_are_views(rng, rows):
    ab = rng.uniform(1, 2, (5, 3, rows))
    ab[:, 1] += 4
    rhs = rng.uniform(-1, 1, (5, rows))

    diagonals = from_banded(ab)

    assert all(np.shares_memory(a, ab) for a in diagonals if a.size)
    expected = [solve_banded((1, 1), *pair) for pair in zip(ab, rhs, strict=True)]
    np.testing.assert_allclose(solve_tridiagonal(*diagonals, rhs), expected, rtol=1e-13)
    lists = from_banded(ab.tolist())
    np.testing.assert_allclose(solve_tridiagonal(*lists, rhs), expected, rtol=1e-13)


@pytest.mark.parametrize("shape", [(3,), (2, 7), (5, 7), (7, 3)])
def test_other_storages_are_refused(shape):
    with pytest.raises(ValueError, match=re.escape("(..., 3, n), the diagonals of matrices with")):
        from_banded(np.ones(shape))


def written(error, **names):
    """Return the value of the call that a message says to write."""
    text = re.search(r"write (\w+\(.*\));", str(error.value))[1]
    return eval(text, {"pysolvers": pysolvers, **vars(pysolvers), **names})


@pytest.mark.parametrize("shape", [(7,), (7, 4)])
def test_the_call_of_solve_banded(rng, banded, shape):
    b = rng.uniform(-1, 1, shape)

    with pytest.raises(TypeError, match=r"three diagonals, .*Coming from SciPy") as error:
        solve_tridiagonal((1, 1), banded, b)

    expected = solve_banded((1, 1), banded, b)
    np.testing.assert_allclose(written(error, ab=banded, b=b), expected, rtol=1e-13)
    with pytest.raises(TypeError, match="three diagonals") as error:
        factor_tridiagonal((1, 1), banded)
    np.testing.assert_allclose(written(error, ab=banded).solve(b, axis=0), expected, rtol=1e-13)
    with pytest.raises(TypeError, match="three diagonals") as error:
        solve_tridiagonal((1, 1), banded, b=b, overwrite_b=True)
    np.testing.assert_allclose(written(error, ab=banded, b=b), expected, rtol=1e-13)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.dia_matrix])
def test_a_matrix(rng, banded, form):
    b = rng.uniform(-1, 1, (7, 2))
    dense = sparse.dia_array((banded[::-1], [-1, 0, 1]), shape=(7, 7)).toarray()

    with pytest.raises(TypeError, match="three diagonals, not a matrix") as error:
        solve_tridiagonal(form(dense), b)
    np.testing.assert_allclose(written(error, a=form(dense), b=b), np.linalg.solve(dense, b))
    with pytest.raises(TypeError, match="three diagonals, not a matrix") as error:
        factor_tridiagonal(form(dense))
    x = written(error, a=form(dense)).solve(b, axis=0)
    np.testing.assert_allclose(x, np.linalg.solve(dense, b))


def test_a_batch_of_dense_matrices(rng):
    a = rng.uniform(-1, 1, (3, 5, 5)) * np.tri(5, 5, 1) * np.tri(5, 5, 1).T + 4 * np.eye(5)
    b = rng.uniform(-1, 1, (3, 5))

    with pytest.raises(TypeError, match="not a matrix") as error:
        solve_tridiagonal(a, b)

    expected = np.linalg.solve(a, b[..., None])[..., 0]
    np.testing.assert_allclose(written(error, a=a, b=b), expected)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("b", "the right-hand sides are called rhs"),
        ("overwrite_b", "write out=rhs"),
        ("dl", "the lower diagonal is called lower"),
        ("trans", r"solve\(rhs, trans='T'\)"),
        ("iterations", r"no argument 'iterations'; it is called as solve_tridiagonal\(lower, diag"),
    ],
)
def test_names_of_other_packages(name, text):
    with pytest.raises(TypeError, match=text):
        solve_tridiagonal(0.5, 4.0, 0.5, np.ones(5), **{name: 1})


def test_missing_operands_are_named():
    with pytest.raises(TypeError, match="but upper, rhs are missing or None"):
        solve_tridiagonal(0.5, 4.0)
    with pytest.raises(TypeError, match="but upper is missing or None"):
        factor_tridiagonal(0.5, 4.0)


@pytest.mark.parametrize("function", [solve_tridiagonal, factor_tridiagonal])
def test_the_signature_has_the_operands_and_no_others(function):
    parameters = inspect.signature(function).parameters.values()

    assert {p.kind for p in parameters} == {
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    }
    operands = [p for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert [p.default for p in operands] == [inspect.Parameter.empty] * len(operands)


def test_sides_by_words_are_translated():
    with pytest.raises(ValueError, match=r"the sides are x-, .*; left = x-; top = y\+, got"):
        pysolvers.FastPoisson((5, 5), 0.25, boundary={"left": 0.0, "top": 1.0})


def test_to_scipy_says_how_to_install_scipy(monkeypatch):
    spline = pysolvers.CubicSpline(np.arange(5.0), np.ones(5))
    assert spline.to_scipy()(2.5) == 1
    for name in ("scipy", "scipy.interpolate"):
        monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(ModuleNotFoundError, match="pip install scipy"):
        spline.to_scipy()


@pytest.mark.parametrize(
    "solver",
    [
        lambda: pysolvers.HeatADI((9, 9), spacing=0.125, dt=0.01, boundary=0.0),
        lambda: pysolvers.StaggeredCavity(reynolds=10, n=8, dt=0.01),
    ],
)
def test_run_takes_a_time_and_step_a_number(solver):
    solver = solver()
    name = type(solver).__name__

    with pytest.raises(TypeError, match=rf"{name}.run has no argument 'steps': .* write step\(3\)"):
        solver.run(steps=3)
    with pytest.raises(TypeError, match=rf"{name}.run .*'end': it is called as run\(until, callb"):
        solver.run(end=3.0)
    assert solver.step(3).steps == 3
    assert "until" in inspect.signature(solver.run).parameters
