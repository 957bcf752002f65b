"""Of several zero pivots of a system the first one is reported.

The CPU eliminates in the order of the rows. A device without row exchanges eliminates in chunks,
whose own first zero pivot comes before those of their ends, so that it reports one of the rows,
and can solve a regular system whose pivots are zero in the order of the rows only.
"""

from itertools import combinations

import numpy as np
import oracle
import pytest

import pysolvers


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("pivot", [None, False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize("rows", [2, 5, 17, 40])
def test_first_of_two_zero_pivots_is_reported(
    solve, factor, backend, rows, dtype, pivot, periodic, axis
):
    """Diagonal matrices with zeros at each pair of rows: the pivots are the diagonal itself."""
    pairs = np.array(list(combinations(range(rows), 2)))
    diag = np.ones((len(pairs), rows), dtype)
    diag[np.arange(len(pairs))[:, None], pairs] = 0
    zero = np.zeros_like(diag)
    matrix = [np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in (zero, diag, zero)]
    options = {"axis": axis, "periodic": periodic, "pivot": pivot}

    calls = (lambda: solve(*matrix, matrix[0], **options), lambda: factor(*matrix, **options))
    for call in calls:
        with pytest.raises(pysolvers.SingularSystemError) as caught:
            call()
        np.testing.assert_array_equal(caught.value.systems[:, 0], np.arange(len(pairs)))
        found = caught.value.rows
        in_order = backend == "cpu" or pivot is True
        if (periodic and pivot is not False) or not in_order:  # first in another order
            assert (found[:, None] == pairs).any(axis=1).all()
        else:
            np.testing.assert_array_equal(found, pairs[:, 0])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_first_of_many_zero_pivots_is_reported(solve, rng, dtype, axis):
    """Also by the method that is asked for, and where elimination leaves further zeros."""
    diag = rng.choice([0, 1, 1, 1], (100, 50)).astype(dtype)
    diag[:, -1] = 0
    zero = np.zeros_like(diag)
    matrix = [np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in (zero, diag, zero)]

    for method in ("thomas", "pivoted"):
        with pytest.raises(pysolvers.SingularSystemError) as caught:
            solve(*matrix, matrix[0], axis=axis, method=method)
        np.testing.assert_array_equal(caught.value.rows, np.argmax(diag == 0, axis=1))


def recovering(rows, dtype):
    """Systems with bad pivots at two rows, and numbers between them.

    A zero pivot divides by zero. Where the neighbours are not zero, the next pivot is infinite,
    and the one after it is the diagonal again. So the elimination goes on to the second bad
    pivot, which it never does with a diagonal matrix: there all that follows is NaN.
    """
    pairs = np.array([pair for pair in combinations(range(rows), 2) if pair[1] >= pair[0] + 2])
    lower, diag, upper = (np.full((len(pairs), rows), x, dtype) for x in (1, 4, 1))
    for k, pair in enumerate(pairs):
        for row in pair:
            diag[k, row] = upper[k, row - 1] = 0
    return pairs, (lower, diag, upper)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("rows", [3, 9, 16, 17, 40])
def test_first_of_two_zero_pivots_is_reported_where_numbers_recover(
    solve, factor, backend, rows, dtype, axis
):
    pairs, matrix = recovering(rows, dtype)
    matrix = [np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in matrix]

    calls = (
        lambda: solve(*matrix, np.ones_like(matrix[0]), axis=axis, method="thomas"),
        lambda: solve(*matrix, np.ones_like(matrix[0]), axis=axis, pivot=False),
        lambda: factor(*matrix, axis=axis, pivot=False),
    )
    for number, call in enumerate(calls):
        with pytest.raises(pysolvers.SingularSystemError) as caught:
            call()
        if backend == "cpu" or number == 0:
            np.testing.assert_array_equal(caught.value.rows, pairs[:, 0], err_msg=str(number))
        else:
            reported = caught.value.systems[:, 0]
            assert (caught.value.rows[:, None] == pairs[reported]).any(axis=1).all()


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("rows", [9, 40])
def test_systems_that_are_not_reported_are_solved(solve, rows, dtype, axis):
    _, matrix = recovering(rows, dtype)
    rhs = oracle.uniform(np.random.default_rng(7), matrix[0].shape, np.dtype(dtype))
    turned = [np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in (*matrix, rhs)]

    x, info = solve(*turned, axis=axis, pivot=False, on_singular="ignore", return_info=True)

    solved = np.ones(len(rhs), bool)
    solved[info.singular[:, 0]] = False
    x = np.moveaxis(x, axis, -1)
    errors = oracle.backward_errors(*(a[solved] for a in (*matrix, rhs)), x[solved])[0]
    assert np.all(errors <= 1000 * oracle.eps(dtype))
