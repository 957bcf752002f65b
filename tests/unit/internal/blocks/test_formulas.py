"""The formulas for arrays of CuPy, whose functions NumPy has, too: as the functions of the CPU."""

import sys

import numpy as np
import pytest

from pysolvers import SingularSystemError, solve_block_tridiagonal, solve_pentadiagonal
from pysolvers._blocks import formulas

OPTIONS = {"assume": "general", "threads": None}
BANDS = ("lower2", "lower", "diag", "upper", "upper2", "rhs")
BLOCKS = ("lower", "diag", "upper", "rhs")


@pytest.fixture(autouse=True)
def numpy_as_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", np)
    monkeypatch.setattr(formulas, "_is_of", lambda value, name: name == "cupy")
    formulas._cupy.cache_clear()
    yield
    formulas._cupy.cache_clear()


def call(operation, operands, **options):
    names = BANDS if operation is solve_pentadiagonal else BLOCKS
    named = dict(zip(names, operands, strict=True))
    solves = operation, solve_block_tridiagonal
    policy = options.pop("on_singular", "raise")
    out = options.pop("out", None)
    given = {"axis": -1, "pivot": None, **OPTIONS, **options}
    return formulas.solve(operation.__name__, *solves, named, out, policy, **given)


def draw(rng, is_complex, *shape):
    real = rng.uniform(-1, 1, shape)
    return real + 1j * rng.uniform(-1, 1, shape) if is_complex else real


@pytest.mark.parametrize("pivot", [None, False, True])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("kinds", [(False, False), (False, True), (True, True)])
@pytest.mark.parametrize(("rows", "axis"), [(5, -1), (6, 0)])
def test_solutions_are_those_of_the_cpu(rng, rows, axis, kinds, periodic, pivot):
    shape = (rows, 3) if axis == 0 else (3, rows)
    options = {"axis": axis, "periodic": periodic, "pivot": pivot}
    bands = [*(draw(rng, kinds[0], *shape) for _ in range(5)), draw(rng, kinds[1], *shape)]
    bands[2] += 9
    blocks = [draw(rng, kinds[0], *shape, 2, 2) for _ in range(3)]
    blocks.append(draw(rng, kinds[1], *shape, 2, 2))
    blocks[1] += 9 * np.eye(2)
    for solve, operands in ((solve_pentadiagonal, bands), (solve_block_tridiagonal, blocks)):
        expected = solve(*operands, **options)
        out = np.empty_like(expected)
        assert call(solve, operands, out=out, **options) is out
        np.testing.assert_allclose(out, expected, rtol=0, atol=1e-13)


def test_singular_systems_are_reported(rng):
    bands = [draw(rng, False, 3, 7) for _ in range(6)]
    bands[2] += 9
    for band in bands[:5]:
        band[1] = 0
    bands[5][2, 3] = np.nan  # no fault of the matrix
    text = r"solution of batch index \(1,\) is not finite: the matrix is singular"
    with pytest.raises(SingularSystemError, match=text) as caught:
        call(solve_pentadiagonal, bands, periodic=True)
    assert caught.value.systems.tolist() == [[1]]
    x = call(solve_pentadiagonal, bands, periodic=True, on_singular="nan")
    assert np.isnan(x[1]).all()
    assert np.isfinite(x[0]).all()


def test_out_has_the_shape_and_the_dtype_of_the_result(rng):
    bands = [draw(rng, False, 7) for _ in range(6)]
    bands[2] += 9
    with pytest.raises(
        ValueError, match=r"out must have the shape \(7,\) of the result, got \(2, 7\)"
    ):
        call(solve_pentadiagonal, bands, periodic=True, out=np.empty((2, 7)))
    with pytest.raises(TypeError, match="out must be float64 like the result, got float32"):
        call(solve_pentadiagonal, bands, periodic=True, out=np.empty(7, np.float32))


def test_when_formulas_are_needed(rng, monkeypatch):
    monkeypatch.setattr(formulas, "locate", lambda value: 0)
    named = dict.fromkeys(BANDS, np.ones((2, 5)))
    assert not formulas.needed(named, None, periodic=False)
    assert formulas.needed(named, None, periodic=True)
    assert formulas.needed({**named, "upper": 1j}, None, periodic=False)
    assert not formulas.needed({**named, "rhs": 1j * named["rhs"]}, None, periodic=False)
    blocks = dict.fromkeys(BLOCKS, np.ones((2, 5, 2, 2)))
    assert formulas.needed({**blocks, "rhs": 1j * blocks["rhs"]}, None, periodic=False)
    assert not formulas.needed(named, 1, periodic=True)
