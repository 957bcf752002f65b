"""The formulas for arrays of CuPy, whose functions NumPy has, too: as the functions of the CPU.

Arrays that are said to be on a device are a subclass of those of NumPy.
"""

import sys

import numpy as np
import pytest

from pysolvers import SingularSystemError, solve_block_tridiagonal, solve_pentadiagonal
from pysolvers._blocks import formulas


class OnDevice(np.ndarray):
    """Arrays that are said to be on a device."""


@pytest.fixture(autouse=True)
def numpy_as_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", np)
    monkeypatch.setattr(formulas, "_is_of", lambda value, name: name == "cupy")
    monkeypatch.setattr(formulas, "locate", lambda a: 0 if type(a) is OnDevice else None)
    formulas._cupy.cache_clear()
    yield
    formulas._cupy.cache_clear()


def call(operation, operands, **options):
    """Call with arrays that are said to be on a device."""
    *matrix, rhs = operands
    return operation(*matrix, rhs.view(OnDevice), **options)


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


def test_parts_of_right_hand_sides_stay_apart(rng):
    bands = [draw(rng, False, 2, 7) for _ in range(6)]
    bands[2] += 9
    matrix = [band[..., None, None] * np.eye(2) for band in bands[1:4]]
    rhs = bands[5] * (1 + 2j)
    rhs.imag[1, 3] = np.inf
    for solve, operands in (
        (solve_pentadiagonal, [*bands[:5], rhs]),
        (solve_block_tridiagonal, [*matrix, np.stack((rhs, rhs), -1)[..., None]]),
    ):
        x = call(solve, operands, periodic=True)
        assert np.isfinite(x.real).all()
        assert np.isfinite(x.imag[0]).all()
        assert not np.isfinite(x.imag[1]).all()


def test_when_formulas_are_needed(rng, monkeypatch):
    def refuse(operation, *_, **__):
        raise NotImplementedError(operation)

    monkeypatch.setattr(formulas, "_solved", refuse)
    bands = [draw(rng, False, 2, 7) for _ in range(6)]
    bands[2] += 9
    matrix = [band[..., None, None] * np.eye(2) for band in bands[1:4]]
    for solve, operands in (
        (solve_pentadiagonal, bands),
        (solve_block_tridiagonal, [*matrix, np.stack((bands[5],) * 2, -1)[..., None]]),
    ):
        for factor in (1, 1j):  # real matrices
            rhs = factor * operands[-1]
            expected = solve(*operands[:-1], rhs)
            np.testing.assert_allclose(call(solve, [*operands[:-1], rhs]), expected, rtol=1e-12)
        with pytest.raises(NotImplementedError, match=solve.__name__):
            call(solve, operands, periodic=True)
        with pytest.raises(NotImplementedError, match=solve.__name__):
            call(solve, [(1 + 0j) * operands[0], *operands[1:]])
