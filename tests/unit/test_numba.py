"""`pysolvers.numba` in compiled functions."""

import numpy as np
import pytest

import pysolvers

numba = pytest.importorskip("numba")

from pysolvers.numba import solve_tridiagonal  # noqa: E402


@numba.njit
def solve(lower, diag, upper, rhs):
    return solve_tridiagonal(lower, diag, upper, rhs)


@numba.njit
def solve_into(lower, diag, upper, rhs, out):
    return solve_tridiagonal(lower, diag, upper, rhs, out)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(1,), (40,), (7, 33), (2, 3, 5), (0, 4)])
def test_bits_are_those_of_the_call_in_python(dtype, shape):
    rng = np.random.default_rng(3)
    parts = [rng.standard_normal(shape) + 1j * rng.standard_normal(shape) for _ in range(4)]
    operands = [(a if np.dtype(dtype).kind == "c" else a.real).astype(dtype) for a in parts]
    expected = pysolvers.solve_tridiagonal(*operands)

    np.testing.assert_array_equal(solve(*operands), expected)
    assert solve_into(*operands, operands[3]) is not None
    np.testing.assert_array_equal(operands[3], expected)


def test_a_singular_matrix_is_an_error_and_harms_no_other_system():
    lower, upper, rhs = np.zeros((3, 4)), np.zeros((3, 4)), np.ones((3, 4))
    diag, out = np.full((3, 4), 2.0), np.zeros((3, 4))
    diag[1, 2] = 0

    with pytest.raises(np.linalg.LinAlgError, match="a matrix is singular"):
        solve_into(lower, diag, upper, rhs, out)

    assert np.isnan(out[1]).all()
    np.testing.assert_array_equal(out[[0, 2]], 0.5)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda a: [a[0].astype("f4"), *a[1:]], numba.errors.TypingError, "one dtype"),
        (lambda a: [np.ones((4, 3)).T, *a[1:]], numba.errors.TypingError, "ascontiguousarray"),
        (lambda a: [1.0, *a[1:]], numba.errors.TypingError, "lower must be an array"),
        (lambda a: [np.array(1.0)] * 4, numba.errors.TypingError, "an axis for the rows"),
        (lambda a: [a[0][:2], *a[1:]], ValueError, "must have one shape"),
    ],
    ids=["dtype", "layout", "number", "no axis", "shape"],
)
def test_wrong_operands_are_named(change, error, message):
    with pytest.raises(error, match=message):
        solve(*change([np.ones((3, 4))] * 4))


def test_out_that_overlaps_is_an_error():
    rhs = np.ones(5)
    with pytest.raises(ValueError, match="overlaps an operand"):
        solve_into(np.zeros(4), np.ones(4), np.zeros(4), rhs[:-1], rhs[1:])


def test_out_that_cannot_be_written_is_an_error():
    out = np.ones(4)
    out.flags.writeable = False
    with pytest.raises(numba.errors.TypingError, match="out must be an array that can be written"):
        solve_into(np.zeros(4), np.ones(4), np.zeros(4), np.ones(4), out)
