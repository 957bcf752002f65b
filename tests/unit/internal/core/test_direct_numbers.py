"""Small calls that the extension makes without planning: the bits of planned calls."""

import itertools
from functools import partial

import numpy as np
import pytest

import pysolvers._blocks.systems as systems_module
import pysolvers._recurrence.calls as recurrence_module
from pysolvers import SingularSystemError, linear_recurrence, solve_pentadiagonal


@pytest.fixture
def planned(monkeypatch):
    """Return calls that are planned in Python, and the number of direct calls so far."""
    counts = [0]

    def plan(call):
        with monkeypatch.context() as patched:
            patched.setattr(systems_module, "solve_directly", lambda *_: None)
            patched.setattr(recurrence_module, "_compute_directly", lambda *_: None)
            return call()

    def count(module, name):
        own = getattr(module, name)

        def counted(*arguments):
            answer = own(*arguments)
            counts[0] += answer is not None
            return answer

        monkeypatch.setattr(module, name, counted)

    count(systems_module, "solve_directly")
    count(recurrence_module, "_compute_directly")
    return plan, counts


LAYOUTS = [((9,), 0), ((9,), -1), ((4, 9), 1), ((9, 4), 0), ((3, 9, 4), 1), ((3, 4, 9), -1)]


def operand(rng, kind, shape, axis, dtype, lacks=0):
    """Return an operand of a kind: a number, a line, or entries of each system."""
    if kind == "number":
        return 0.3
    length = shape[axis] - lacks
    if kind == "line":
        return rng.uniform(-1, 1, length).astype(dtype)
    full = list(shape)
    full[axis] = length
    found = rng.uniform(-1, 1, full)
    return found.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "axis"), LAYOUTS)
def test_five_diagonals(planned, shape, axis, dtype):
    rng = np.random.default_rng(1)
    plan, counts = planned
    kinds = ["number", "line", "full"]
    for number, (kind, short, pivot) in enumerate(
        itertools.product(kinds, (False, True), (None, True, False))
    ):
        bands = [
            operand(rng, kind, shape, axis, dtype, abs(k) if short else 0) for k in range(-2, 3)
        ]
        bands[2] = bands[2] + 5.0 if kind == "number" else bands[2] + dtype(5 * (pivot is None))
        rhs = rng.standard_normal(shape).astype(dtype)
        before = rhs.copy()
        call = partial(
            solve_pentadiagonal,
            *bands,
            rhs,
            axis=axis,
            pivot=pivot,
        )
        x = call()
        assert counts[0] == number + 1
        np.testing.assert_array_equal(x, plan(call))
        np.testing.assert_array_equal(rhs, before)
        out = np.empty_like(rhs)
        assert call(out=out, threads=2) is out
        np.testing.assert_array_equal(out, x)
        counts[0] = number + 1


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize(("shape", "axis"), LAYOUTS)
def test_symmetric_matrices_without_lower_diagonals(planned, shape, axis, short):
    rng = np.random.default_rng(2)
    plan, counts = planned
    upper = [operand(rng, "full", shape, axis, float, k if short else 0) for k in (1, 2)]
    rhs = rng.standard_normal(shape)
    call = partial(
        solve_pentadiagonal, None, None, 5.0, *upper, rhs, axis=axis, assume="positive definite"
    )
    np.testing.assert_array_equal(call(), plan(call))
    assert counts[0] == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize(("shape", "axis"), LAYOUTS)
def test_recurrences(planned, shape, axis, dtype):
    rng = np.random.default_rng(3)
    plan, counts = planned
    number = 0
    for kind, second, reverse in itertools.product(
        ["number", "line", "full"], (None, "number", "line", "full"), (False, True)
    ):
        a = operand(rng, kind, shape, axis, dtype)
        c = None if second is None else operand(rng, second, shape, axis, dtype)
        b = rng.standard_normal(shape).astype(dtype)
        call = partial(
            linear_recurrence,
            a,
            b,
            second=c,
            axis=axis,
            reverse=reverse,
        )
        x = call()
        number += 1
        assert counts[0] == number
        np.testing.assert_array_equal(x, plan(call))
        kept = b.copy()
        assert call(out=b) is b
        np.testing.assert_array_equal(b, x)
        np.testing.assert_array_equal(
            linear_recurrence(a, kept, second=c, axis=axis),
            plan(partial(linear_recurrence, a, kept, second=c, axis=axis)),
        )
        number = counts[0]


def test_singular_systems_and_errors_are_those_of_planned_calls(planned):
    plan, counts = planned
    diag = np.ones((3, 6))
    diag[1] = 0
    rhs = np.ones((3, 6))
    kept = rhs.copy()
    call = partial(solve_pentadiagonal, 0.0, 0.0, diag, 0.0, 0.0, rhs)
    with pytest.raises(SingularSystemError, match=r"batch index \(1,\)"):
        call()
    with pytest.raises(SingularSystemError):
        call(out=rhs)
    rhs[...] = kept
    np.testing.assert_array_equal(np.isnan(call(on_singular="nan")).any(-1), [False, True, False])
    assert counts[0] == 0
    for wrong in ({"axis": 5}, {"threads": 0}, {"pivot": "no"}, {"assume": "dominant"}):
        with pytest.raises((ValueError, TypeError)) as found:
            solve_pentadiagonal(0.0, 0.0, 1.0, 0.0, 0.0, rhs, **wrong)
        with pytest.raises(type(found.value)) as expected:
            plan(partial(solve_pentadiagonal, 0.0, 0.0, 1.0, 0.0, 0.0, rhs, **wrong))
        assert str(found.value) == str(expected.value)
    with pytest.raises(TypeError, match="reverse"):
        linear_recurrence(0.5, rhs, reverse=1)
    with pytest.raises(ValueError):
        linear_recurrence(np.ones(5), rhs)
    overlapping = rhs.copy()
    before = plan(partial(linear_recurrence, overlapping, rhs))
    np.testing.assert_array_equal(linear_recurrence(overlapping, rhs), before)
