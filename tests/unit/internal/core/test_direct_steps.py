"""Steps and residuals in one call of the extension: the bits of calls that are planned."""

import numpy as np
import pytest

from pysolvers import (
    SingularSystemError,
    _core,
    implicit_diffusion,
    residual,
    solve_tridiagonal,
    theta_step,
)
from pysolvers._lines import engine, step
from pysolvers._steps import calls


@pytest.fixture
def counted(monkeypatch):
    """Return a function that makes a call in both ways, and requires that the first is direct."""

    def same(function, *operands, **options):
        found = function(*operands, **options)
        with monkeypatch.context() as without:
            without.setattr(calls, "prepare", None)
            np.testing.assert_array_equal(function(*operands, **options), found)
        with monkeypatch.context() as without:
            without.setattr(calls, "step_directly", lambda *_: None)
            without.setattr(calls, "call_directly", lambda *_: None)
            np.testing.assert_array_equal(function(*operands, **options), found)

    return same


SHAPES = [((9,), 0), ((4, 9), 1), ((9, 4), 0), ((2, 9, 3), 1), ((3, 2, 9), 2), ((9, 2, 3), 0)]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_theta_steps_with_sources_and_masks(shape, axis, dtype, rng, counted):
    lower, upper, u, source = (rng.random(shape).astype(dtype) for _ in range(4))
    diag, mask, n = -lower - upper, rng.random(shape) < 0.7, shape[axis]
    line = rng.random(n).astype(dtype)
    for matrix in ((lower, diag, upper), (line, -2 * line, line), (1.0, -2.0, 1.0)):
        for s in (None, source, line, 0.5):
            for where in (None, mask, line > 0.4):
                if s is not None or where is not None:
                    options = {"dt": 0.3, "axis": axis, "source": s, "where": where}
                    counted(theta_step, *matrix, u, **options)


@pytest.mark.parametrize(("shape", "axis"), SHAPES[1:], ids=str)
def test_matrices_that_systems_share(shape, axis, rng, counted):
    u, source = rng.random((2, 5, *shape))
    lower, upper = rng.random((2, *shape))
    if axis != 1 or len(shape) == 2:
        options = {"dt": 0.3, "axis": axis - len(shape), "where": source > 0.2}
        counted(theta_step, lower, -lower - upper, upper, u, source=source, **options)


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_diffusion_with_all_operands(shape, axis, rng, counted):
    T, source = rng.random((2, *shape))
    dz, mask, n = rng.random(shape) + 0.5, rng.random(shape) < 0.8, shape[axis]
    faces = rng.random([m - (k == axis) for k, m in enumerate(shape)])
    ends = rng.random((4, *(m for k, m in enumerate(shape) if k != axis)))
    for K in (1.5, faces, rng.random(n - 1)):
        options = {"dt": 0.2, "axis": axis}
        counted(implicit_diffusion, T, K, dz, **options)
        options |= {"source": source, "where": mask}
        counted(implicit_diffusion, T, K, dz, theta=0.5, **options)
        flux = ends[:2] if len(shape) > 1 else (0.5, -0.3)
        counted(implicit_diffusion, T, K, dz, flux_first=flux[0], flux_last=flux[1], **options)
    value = ends[2:] if len(shape) > 1 else (0.5, -0.3)
    whole = rng.random(n + 1)
    counted(implicit_diffusion, T, whole, 0.5, value_first=value[0], value_last=2.0, **options)


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_residuals(shape, axis, extended, rng, counted):
    lower, diag, upper, x, b = rng.random((5, *shape))
    options = {"axis": axis, "extended": extended}
    for matrix in ((lower, diag, upper), (-1.0, 2.0, -1.0)):
        counted(residual, *matrix, x, b, **options)
    expected = residual(lower, diag, upper, x, b, **options)
    found = residual(lower, diag, upper, x, b, out=b, **options)
    assert found is b
    np.testing.assert_array_equal(b, expected)


@pytest.mark.parametrize("pivot", [None, True, False])
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_solves_with_masks(shape, axis, pivot, rng, monkeypatch):
    lower, diag, upper, rhs = rng.random((4, *shape))
    where = rng.random(shape) < 0.7
    diag[~where] = rhs[~where] = np.nan
    options = {"axis": axis, "where": where, "pivot": pivot}
    with monkeypatch.context() as without:
        without.setattr(step, "prepare", None)
        found = solve_tridiagonal(lower, diag + 2, upper, rhs, **options)
    monkeypatch.setattr(engine, "solve_directly", lambda *_, **__: None)
    expected = solve_tridiagonal(lower, diag + 2, upper, rhs, **options)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found[~where], np.nan)
    assert np.isfinite(found[where]).all()


def test_out_may_be_u_and_must_not_overlap_another_operand(rng):
    u, source = rng.random((2, 4, 9))
    expected = theta_step(1.0, -2.0, 1.0, u, dt=0.1, source=source)
    for out in (source, source[::-1]):
        with pytest.raises(ValueError, match="overlap"):
            theta_step(1.0, -2.0, 1.0, u, dt=0.1, source=source, out=out)
    with pytest.raises(ValueError, match="overlap"):
        residual(1.0, -2.0, 1.0, u, source, out=u)
    assert theta_step(1.0, -2.0, 1.0, u, dt=0.1, source=source, out=u) is u
    np.testing.assert_array_equal(u, expected)


def test_singular_matrices_are_named_in_both_ways(monkeypatch):
    """1 - h diag is 0 in one row of the second system."""
    diag = np.zeros((2, 3))
    diag[1, 1] = 4.0
    where, texts = np.ones((2, 3), bool), []
    for direct in (True, False):
        if not direct:
            monkeypatch.setattr(calls, "step_directly", lambda *_: None)
        for more in ({"source": 1.0}, {"where": where}):
            with pytest.raises(SingularSystemError) as error:
                theta_step(0.0, diag, 0.0, np.ones((2, 3)), dt=0.5, **more)
            texts.append((str(error.value), error.value.systems, error.value.rows))
        with pytest.raises(SingularSystemError) as error:
            implicit_diffusion(np.ones((2, 3)), 0.0, diag - 4.0 * (diag > 0), 0.5, axis=1)
        texts.append((str(error.value), error.value.systems, error.value.rows))
    assert [str(text) for text in texts[:3]] == [str(text) for text in texts[3:]]


def test_operands_that_need_planning_are_left_to_it(rng):
    u, step = rng.random((4, 9)), (_core.STEP_KINDS["theta"], 0.1, 1.0)

    def call(u, *more):
        arguments = (1.0, -2.0, 1.0, u, -1, None, None, False, 1, 0, 0, 1, 0)
        return _core.tridiag_direct(*arguments, (*step, *more))

    assert type(call(u, None, None)) is np.ndarray
    for source in (rng.random((1, 9)), u.astype("f4"), u[..., None], "s"):
        assert call(u, source, None) is NotImplemented
    for where in (u, np.ones((1, 9), bool), np.True_, True):
        assert call(u, None, where) is NotImplemented
    assert call(u, None, None, u) is NotImplemented
    flux = (_core.STEP_KINDS["flux"], 0.1, 1.0)
    arguments = (1.0, 1.0, 1.0, 1j * u, -1, None, None, False, 1, 0, 0, 1, 0)
    assert _core.tridiag_direct(*arguments, flux) is NotImplemented
    with pytest.raises(TypeError):
        call(u, *(None,) * 7)
