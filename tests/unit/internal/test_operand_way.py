"""On its way to the extension no operand returns to a file that it has left."""

import numpy as np
import pytest
from operand_way import files_on_the_way

from pysolvers import (
    RowSums,
    factor_tridiagonal,
    linear_recurrence,
    residual,
    solve_tridiagonal,
    theta_step,
    tridiagonal_matvec,
)

DIRECT = ["tridiagonal.py", "_lines/engine.py"]


@pytest.fixture
def matrix(rng):
    """The diagonals of 100 matrices of 64 rows."""
    lower, diag, upper = -rng.random((3, 100, 64))
    return lower, 4 - diag, upper


@pytest.fixture
def rhs(rng):
    return rng.standard_normal((100, 64))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"axis": 0, "method": "pcr"},
        {"periodic": True, "pivot": True},
        {"return_info": True},
        {"on_singular": "warn", "threads": 2},
        {"where": np.arange(64) % 7 > 0},
        {"sums": True, "return_info": True},
        {"check_finite": True, "where": np.arange(64) % 7 > 0},
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["f4", "c16"])
def test_arrays_that_need_no_planning(matrix, rhs, options, dtype):
    lower, diag, upper = matrix
    options = dict(options)
    if "where" in options:
        options["where"] = np.broadcast_to(options["where"], rhs.shape).copy()
    if "sums" in options:
        del options["sums"]
        diag = RowSums(diag)
    elif options:
        lower, diag, upper, rhs = (a.astype(dtype) for a in (lower, diag, upper, rhs))

    def call():
        return solve_tridiagonal(lower, diag, upper, rhs, **options)

    assert files_on_the_way(call, rhs) == DIRECT


def test_integers_are_made_floats(matrix, rhs):
    lower, diag, upper = matrix
    rhs = (10 * rhs).astype(int)

    assert files_on_the_way(lambda: solve_tridiagonal(lower, diag, upper, rhs), rhs) == DIRECT


def with_factor(solve, **options):
    """Return the call of `solve` with factors of the matrices."""

    def call(matrix, rhs):
        where = rhs > -1 if "where" in options else None
        factor = factor_tridiagonal(*matrix, **{**options, "where": where})
        return lambda: solve(factor, rhs)

    return call


# Calls with operands that are converted, checked or copied.
PLANNED = {
    "finite": lambda m, b: lambda: solve_tridiagonal(*m, b, check_finite=True),
    "axis": lambda m, b: lambda: solve_tridiagonal(*m, b, axis=0, check_finite=True),
    "mask": lambda m, b: lambda: solve_tridiagonal(*m, b, where=b != 0, check_finite=True),
    "one matrix": lambda m, b: lambda: solve_tridiagonal(-1, m[1][0], -1, b, check_finite=True),
    "product": lambda m, b: lambda: tridiagonal_matvec(*m, b, check_finite=True),
    "residual": lambda m, b: lambda: residual(*m, b, m[1], check_finite=True),
    "step": lambda m, b: lambda: theta_step(*m, b, dt=0.1, return_info=True),
    "recurrence": lambda m, b: lambda: linear_recurrence(np.ones(64, int), b),
    "factor": with_factor(lambda factor, b: factor.solve(b, check_finite=True)),
    "transposed": with_factor(lambda factor, b: factor.solve(b, trans="T", check_finite=True)),
    "factor with a mask": with_factor(lambda factor, b: factor.solve(b), where=True),
    "product of a factor": with_factor(lambda factor, b: factor.multiply(b), keep_matrix=True),
}


@pytest.mark.parametrize("kind", ["f8", "f4", "c16", "i8"])
@pytest.mark.parametrize("name", PLANNED)
def test_calls_that_are_planned(matrix, rhs, name, kind):
    rhs = (10 * rhs).astype(kind) + 1
    files = files_on_the_way(PLANNED[name](matrix, rhs), rhs)

    assert files
    assert len(set(files)) == len(files)


def test_diagonals_of_a_factor(matrix):
    files = files_on_the_way(lambda: factor_tridiagonal(*matrix), matrix[1])

    assert files[:2] == ["factor.py", "_lines/factor.py"]
    assert len(set(files)) == len(files)
