"""Any shape, stride, order, axis and broadcasting pattern, against the oracle.

The default tests make the same draws in every run. The slow ones draw anew, many times more, and
print what repeats a failure: a seed for ``--hypothesis-seed`` and a `reproduce_failure` line.
"""

import numpy as np
import oracle
import pytest

pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings, strategies as st

from pysolvers import factor_tridiagonal, solve_tridiagonal

few = settings(max_examples=75)
many = settings(
    max_examples=20_000, derandomize=False, suppress_health_check=[HealthCheck.too_slow]
)


@st.composite
def views(draw, shape, dtype, axis):
    """An array of `shape`: dense lines in any order of the batch axes, or any axis order and steps.

    Lines that lie without gaps in another order than that of their indices have paths of their
    own, on which a line can be taken for another one. They are rare among views of any kind, and
    are drawn every other time.
    """
    ndim = len(shape)
    if draw(st.booleans()):
        order = [*draw(st.permutations([k for k in range(ndim) if k != axis])), axis]
        steps = [1] * ndim
    else:
        order = draw(st.permutations(range(ndim)))
        steps = [draw(st.sampled_from([1, 1, 1, 2, 3, -1, -2])) for _ in shape]
    room = np.full([shape[k] * abs(steps[k]) for k in order], 7, dtype)
    view = room[tuple(slice(None, None, steps[k]) for k in order)]
    return view.transpose(np.argsort(order))


BATCHES = st.one_of(
    st.lists(st.integers(2, 6), min_size=2, max_size=3), st.lists(st.integers(0, 5), max_size=3)
)
ROWS = st.one_of(st.integers(1, 9), st.sampled_from([16, 17, 32, 33, 64, 65]))


@st.composite
def problems(draw):
    """Operands in random views, the options, and the plain full operands, axis last."""
    batch, rows = draw(BATCHES), draw(ROWS)
    axis = draw(st.integers(0, len(batch)))
    dtype = draw(st.sampled_from(oracle.DTYPES))
    periodic, may_share = draw(st.booleans()), draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    lower, diag, upper, rhs = oracle.dominant(rng, (*batch, rows), dtype)
    diag = diag * dtype(6)  # dominant whatever is shared, in rows and in columns

    full, given_ = [], []
    for name, a in zip(("lower", "diag", "upper", "rhs"), (lower, diag, upper, rhs), strict=True):
        is_fixed = name == "rhs" or not may_share
        shared = [not is_fixed and n > 0 and draw(st.booleans()) for n in batch]
        a = a[tuple(slice(0, 1) if s else slice(None) for s in shared)]
        full.append(np.broadcast_to(a, rhs.shape))
        if not periodic and name in ("lower", "upper") and draw(st.booleans()):
            a = a[..., 1:] if name == "lower" else a[..., :-1]
        a = np.moveaxis(a, -1, axis)
        view = draw(views(a.shape, dtype, axis))
        view[...] = a
        given_.append(view)
    return given_, full, {"axis": axis, "periodic": periodic}


def check_solution(problem, method, data):
    operands, full, options = problem
    before = [a.copy() for a in operands]
    out = data.draw(views(operands[3].shape, operands[3].dtype, options["axis"]))

    x = solve_tridiagonal(*operands, **options, method=method, out=out)

    assert x is out
    for a, kept in zip(operands, before, strict=True):
        np.testing.assert_array_equal(a, kept)
    x = np.moveaxis(x, options["axis"], -1)
    error = oracle.backward_error(*full, x, periodic=options["periodic"])
    assert error <= 30 * oracle.eps(x.dtype)
    repeated = solve_tridiagonal(*full, method=method, periodic=options["periodic"])
    np.testing.assert_array_equal(repeated, x)


def check_factor(problem, trans, pivot, data):
    (*matrix, rhs), full, options = problem
    out = None
    if data.draw(st.booleans()):
        out = data.draw(views(rhs.shape, rhs.dtype, options["axis"]))

    made = factor_tridiagonal(*matrix, **options, rows=full[3].shape[-1], pivot=pivot)
    x = made.solve(rhs, trans=trans, out=out)

    dense = oracle.dense(*full[:3], periodic=options["periodic"]).astype(np.complex128)
    if trans != "N":
        dense = np.swapaxes(dense, -1, -2)
    exact = np.linalg.solve(dense.conj() if trans == "H" else dense, full[3][..., None])[..., 0]
    scale = np.max(np.abs(exact), initial=1)
    assert np.max(np.abs(np.moveaxis(x, options["axis"], -1) - exact), initial=0) <= (
        200 * oracle.eps(x.dtype) * scale
    )


solutions = given(problem=problems(), method=st.sampled_from(oracle.METHODS), data=st.data())
factors = given(
    problem=problems(),
    trans=st.sampled_from("NTH"),
    pivot=st.sampled_from([None, True, False]),
    data=st.data(),
)


@few
@solutions
def test_solution_is_that_of_the_oracle(problem, method, data):
    check_solution(problem, method, data)


@few
@factors
def test_factor_solves_the_system_of_the_oracle(problem, trans, pivot, data):
    check_factor(problem, trans, pivot, data)


@pytest.mark.slow
@many
@solutions
def test_many_solutions_are_those_of_the_oracle(problem, method, data):
    check_solution(problem, method, data)


@pytest.mark.slow
@many
@factors
def test_many_factors_solve_the_systems_of_the_oracle(problem, trans, pivot, data):
    check_factor(problem, trans, pivot, data)
