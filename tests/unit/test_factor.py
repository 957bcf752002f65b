"""Factors: made once, solved for many right-hand sides, also transposed."""

import copy
import itertools
import pickle
import re

import numpy as np
import oracle
import pytest

import pysolvers

PIVOTS = (None, True, False)


def with_transposes(*dtypes):
    """Return pairs of a dtype and a transpose; of real numbers "H" is "T"."""
    return [(d, trans) for d in dtypes for trans in ("NTH" if np.iscomplexobj(d()) else "NT")]


@pytest.mark.each_value
@pytest.mark.parametrize("pivot", PIVOTS)
@pytest.mark.parametrize(("dtype", "trans"), with_transposes(*oracle.DTYPES))
def test_backward_error_of_dominant_systems(factor, rng, dtype, trans, pivot):
    for rows in oracle.ROWS:
        lower, diag, upper, rhs = oracle.dominant(rng, (5, rows), dtype)

        x = factor(lower, diag, upper, pivot=pivot).solve(rhs, trans=trans)

        assert x.dtype == dtype
        matrix = oracle.transposed(lower, diag, upper, trans)
        assert oracle.backward_error(*matrix, rhs, x) <= 20 * oracle.eps(dtype), f"{rows} rows"


def test_conjugate_transposes_of_real_matrices_are_transposes(factor, rng):
    *matrix, rhs = oracle.dominant(rng, (5, 33))
    made = factor(*matrix)

    np.testing.assert_array_equal(made.solve(rhs, trans="H"), made.solve(rhs, trans="T"))


@pytest.mark.each_value
@pytest.mark.parametrize("pivot", [None, True])
@pytest.mark.parametrize(("dtype", "trans"), with_transposes(*oracle.DTYPES))
def test_systems_that_need_row_exchanges(factor, rng, dtype, trans, pivot):
    for rows in (2, 3, 9, 33, 200):
        lower, diag, upper, rhs = oracle.general(rng, (5, rows), dtype)
        diag[2] = 0 if rows % 2 == 0 else diag[2]

        x = factor(lower, diag, upper, pivot=pivot).solve(rhs, trans=trans)

        matrix = oracle.transposed(lower, diag, upper, trans)
        condition = np.linalg.cond(oracle.dense(*matrix).astype(complex))
        exact = oracle.solve(*matrix, rhs)
        error = np.max(np.abs(x - exact), axis=-1) / np.max(np.abs(exact), axis=-1)
        assert np.all(error <= 20 * condition * oracle.eps(dtype)), f"{rows} rows"
        if trans == "N":
            assert oracle.backward_error(*matrix, rhs, x) <= 200 * oracle.eps(dtype), f"{rows} rows"


@pytest.mark.parametrize("pivot", PIVOTS)
@pytest.mark.parametrize(("dtype", "trans"), with_transposes(np.float64, np.complex64))
def test_periodic(factor, rng, dtype, trans, pivot):
    for rows in (1, 2, 3, 4, 9, 64, 65):
        lower, diag, upper, rhs = oracle.dominant(rng, (5, rows), dtype)

        x = factor(lower, diag, upper, periodic=True, pivot=pivot).solve(rhs, trans=trans)

        matrix = oracle.transposed(lower, diag, upper, trans)
        error = oracle.backward_error(*matrix, rhs, x, periodic=True)
        assert error <= 50 * oracle.eps(dtype), f"{rows} rows"


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("pivot", PIVOTS)
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_solve_agrees_with_solve_tridiagonal(factor, solve, rng, dtype, pivot, periodic):
    *matrix, rhs = oracle.dominant(rng, (9, 77), dtype)

    x = factor(*matrix, pivot=pivot, periodic=periodic).solve(rhs)

    expected = solve(*matrix, rhs, pivot=pivot, periodic=periodic)
    np.testing.assert_allclose(x, expected, rtol=50 * oracle.eps(dtype), atol=oracle.eps(dtype))


@pytest.mark.parametrize("shape", [(6,), (4, 6), (4, 3, 6), (2, 4, 3, 6)])
@pytest.mark.parametrize("trans", ["N", "T"])
def test_every_axis_gives_the_same_bits(factor, rng, shape, trans):
    system = oracle.dominant(rng, shape)
    expected = factor(*system[:3]).solve(system[3], trans=trans)

    for axis in range(-len(shape), len(shape)):
        *matrix, rhs = (np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in system)
        x = factor(*matrix, axis=axis).solve(rhs, trans=trans)
        np.testing.assert_array_equal(np.moveaxis(x, axis, -1), expected)


@pytest.mark.parametrize("shape", [(7,), (1, 7), (3, 7), (5, 3, 7), (2, 5, 3, 7)])
def test_one_matrix_serves_any_batch(factor, rng, shape):
    lower, diag, upper, _ = oracle.dominant(rng, (7,))
    rhs = oracle.uniform(rng, shape)

    x = factor(lower, diag, upper).solve(rhs)

    assert x.shape == shape
    np.testing.assert_allclose(x, oracle.solve(lower, diag, upper, rhs), rtol=1e-12)


@pytest.mark.parametrize(
    ("matrix_shape", "rhs_shape"),
    [
        ((3, 7), (5, 3, 7)),
        ((1, 7), (5, 7)),
        ((5, 1, 7), (5, 3, 7)),
        ((1, 3, 7), (5, 3, 7)),
        ((1, 3, 1, 7), (5, 3, 2, 7)),
        ((5, 1, 2, 7), (5, 3, 2, 7)),
    ],
)
@pytest.mark.parametrize("pivot", [True, False])
def test_batch_of_the_matrix_broadcasts_against_rhs(factor, rng, pivot, matrix_shape, rhs_shape):
    *matrix, _ = oracle.dominant(rng, matrix_shape)
    rhs = oracle.uniform(rng, rhs_shape)

    x = factor(*matrix, pivot=pivot).solve(rhs)

    np.testing.assert_allclose(x, oracle.solve(*matrix, rhs), rtol=1e-12)


@pytest.mark.parametrize("pivot", PIVOTS)
@pytest.mark.parametrize("trans", ["N", "T", "H"])
def test_in_place_gives_the_same_bits(factor, rng, trans, pivot):
    *matrix, rhs = oracle.dominant(rng, (9, 33), np.complex128)
    f = factor(*matrix, pivot=pivot)
    expected = f.solve(rhs, trans=trans)

    assert f.solve(rhs, trans=trans, out=rhs) is rhs
    np.testing.assert_array_equal(rhs, expected)


@pytest.mark.parametrize("steps", [(2, 1), (1, 2), (-1, 1), (1, -1), (2, -2)])
@pytest.mark.parametrize("trans", ["N", "T"])
def test_strides_of_rhs_and_out_do_not_change_a_bit(factor, rng, trans, steps):
    *matrix, rhs = oracle.dominant(rng, (9, 19))
    f = factor(*matrix)
    room = np.zeros((2, *(n * abs(s) for n, s in zip(rhs.shape, steps, strict=True))))
    view, out = (r[tuple(slice(None, None, s) for s in steps)] for r in room)
    view[...] = rhs

    f.solve(view, trans=trans, out=out)

    np.testing.assert_array_equal(out, f.solve(rhs, trans=trans))


@pytest.mark.parametrize("trans", ["N", "T"])
def test_threads_and_batch_do_not_change_a_bit(factor, rng, trans):
    *matrix, rhs = oracle.general(rng, (611, 97))
    f = factor(*matrix)
    expected = f.solve(rhs, trans=trans, threads=1)

    for threads in (2, 3):
        np.testing.assert_array_equal(f.solve(rhs, trans=trans, threads=threads), expected)
    for k in (0, 5, 16, 610):
        alone = factor(*(a[k] for a in matrix)).solve(rhs[k], trans=trans)
        np.testing.assert_array_equal(alone, expected[k])


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("trans", ["N", "T"])
@pytest.mark.parametrize("periodic", [False, True])
def test_one_matrix_gives_the_same_bits_wherever_the_systems_lie(
    factor, same_but_for_sharing, rng, axis, trans, periodic
):
    rows, batch = 83, (97, 149)  # answers large enough to be stored past the caches
    *matrix, _ = oracle.dominant(rng, (rows,))
    rhs = oracle.uniform(rng, (*batch, rows))
    expected = factor(*matrix, periodic=periodic).solve(rhs, trans=trans)
    for k in ((0, 0), (3, 147), (96, 148)):
        alone = factor(*matrix, periodic=periodic).solve(rhs[k], trans=trans)
        same_but_for_sharing(alone, expected[k])

    moved = np.ascontiguousarray(np.moveaxis(rhs, -1, axis))
    shape = [rows if k == axis else 1 for k in range(3)]
    f = factor(*(a.reshape(shape) for a in matrix), axis=axis, periodic=periodic)
    for offset in (0, 1, 2, 5):  # the answers begin anywhere in a cache line
        x = np.zeros(rhs.size + offset)[offset:].reshape(moved.shape)
        f.solve(moved, trans=trans, out=x)
        same_but_for_sharing(np.moveaxis(x, axis, -1), expected, err_msg=f"offset {offset}")


@pytest.mark.parametrize("shape", [(2, 3), (5, 4), (16, 17), (2, 3, 5)])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_order_of_the_batch_axes_in_memory_does_not_change_a_bit(factor, rng, dtype, shape):
    """The systems are contiguous, the axes of the batch lie in every order in memory."""
    for rows, order in itertools.product(
        (1, 5, 32, 100, 300), itertools.permutations(range(len(shape)))
    ):
        lower, diag, upper, rhs = oracle.dominant(rng, (*shape, rows), dtype)
        factors = factor(lower, diag, upper)
        desired = factors.solve(rhs)
        axes = (*order, len(shape))
        there, back = np.array(axes), np.argsort(axes)
        b = np.ascontiguousarray(rhs.transpose(there)).transpose(back)

        for actual in (factors.solve(b), factors.solve(rhs, out=b * 0)):
            np.testing.assert_array_equal(actual, desired, err_msg=f"{rows} rows, {order}")


@pytest.mark.parametrize(("shape", "axis"), [((5003, 150), 0), ((17, 20_003), 1)])
@pytest.mark.parametrize("trans", ["N", "T"])
@pytest.mark.parametrize("periodic", [False, True])
def test_long_systems_that_leave_the_cache_give_the_same_bits(
    factor, same_but_for_sharing, rng, shape, axis, trans, periodic
):
    *matrix, _ = oracle.dominant(rng, (shape[axis],))
    rhs = oracle.uniform(rng, shape)
    along = [a.reshape([-1 if k == axis else 1 for k in range(2)]) for a in matrix]
    f = factor(*along, axis=axis, periodic=periodic)
    x = f.solve(rhs, trans=trans)

    lines, answers = np.moveaxis(rhs, axis, -1), np.moveaxis(x, axis, -1)
    for k in (0, 9, len(lines) - 1):
        alone = factor(*matrix, periodic=periodic).solve(lines[k], trans=trans)
        same_but_for_sharing(alone, answers[k])
    assert f.solve(rhs, trans=trans, out=rhs) is rhs
    same_but_for_sharing(rhs, x)


@pytest.mark.parametrize("rows", [1, 2, 3, 29])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("trans", ["N", "T", "H"])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_pivoted_neighbours_do_not_change_a_bit(
    factor, same_but_for_sharing, rng, dtype, trans, periodic, rows
):
    system = oracle.dominant(rng, (24, rows), dtype)
    for a, general in zip(system, oracle.general(rng, (24, rows), dtype), strict=True):
        a[::3] = general[::3]
    *matrix, rhs = system

    x = factor(*matrix, periodic=periodic).solve(rhs, trans=trans)

    for k in (0, 5, 10, 15, 20, 23):
        alone = factor(*(a[k] for a in matrix), periodic=periodic).solve(rhs[k], trans=trans)
        same_but_for_sharing(alone, x[k], err_msg=f"system {k}")


@pytest.mark.parametrize("pivot", PIVOTS)
def test_refactor_takes_new_matrices(factor, rng, pivot):
    first = oracle.dominant(rng, (5, 21))
    *second, rhs = oracle.dominant(rng, (5, 21))
    f = factor(*first[:3], pivot=pivot)

    f.refactor(*second)

    np.testing.assert_array_equal(f.solve(rhs), factor(*second, pivot=pivot).solve(rhs))


def test_refactor_that_fails_keeps_the_old_factors(factor, rng):
    *matrix, rhs = oracle.dominant(rng, (5, 21))
    f = factor(*matrix)
    expected = f.solve(rhs)

    for bad in (
        [a[:4] for a in matrix],
        [a[:, :20] for a in matrix],
        [a.astype(np.complex128) for a in matrix],
    ):
        with pytest.raises((ValueError, TypeError)):
            f.refactor(*bad)

    np.testing.assert_array_equal(f.solve(rhs), expected)


def test_inputs_are_not_modified_nor_kept(factor, rng):
    *matrix, rhs = oracle.dominant(rng, (5, 21))
    before = [a.copy() for a in (*matrix, rhs)]

    f = factor(*matrix)
    expected = f.solve(rhs)

    for a, kept in zip((*matrix, rhs), before, strict=True):
        np.testing.assert_array_equal(a, kept)
    for a in matrix:
        a[...] = np.nan
    np.testing.assert_array_equal(f.solve(rhs), expected)


def test_short_off_diagonals_and_their_ends(factor, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (5, 21))
    expected = factor(lower, diag, upper).solve(rhs)

    x = factor(lower[:, 1:], diag, upper[:, :-1]).solve(rhs)
    np.testing.assert_array_equal(x, expected)

    lower[:, 0] = upper[:, -1] = np.nan
    for trans in "NTH":
        assert np.all(np.isfinite(factor(lower, diag, upper).solve(rhs, trans=trans)))


def test_attributes_tell_the_factor(factor, rng):
    *matrix, _ = oracle.dominant(rng, (4, 21, 3), np.float32)

    f = factor(*matrix, axis=1, pivot=True)

    assert f.shape == (4, 21, 3)
    assert f.rows == 21
    assert f.dtype == np.float32
    assert f.axis in (1, -2)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("shape", [(40,), (31, 40)])
def test_info_counts_the_matrices_that_need_row_exchanges(factor, rng, shape, periodic):
    *matrix, _ = oracle.dominant(rng, shape)
    needs = np.zeros(shape[:-1], bool)
    needs.reshape(-1)[::3] = True
    for a, general in zip(matrix, oracle.general(rng, shape), strict=False):
        a[needs] = general[needs]

    for pivot, count in ((None, needs.sum()), (True, needs.size), (False, 0)):
        f = factor(*matrix, pivot=pivot, periodic=periodic, on_singular="warn")
        assert f.info.pivoted == count


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_empty_factor_gives_an_empty_answer(factor, shape):
    empty = np.empty(shape)

    assert factor(empty, empty, empty).solve(empty).shape == shape


def test_singular_matrix_is_told_when_it_is_factored(factor, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (2, 3, 9))
    lower[1, 2, 4:6] = upper[1, 2, 3:5] = diag[1, 2, 4] = 0

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        factor(lower, diag, upper)
    np.testing.assert_array_equal(caught.value.systems, [[1, 2]])
    np.testing.assert_array_equal(caught.value.rows, [4])

    x = factor(lower, diag, upper, on_singular="nan").solve(rhs)
    assert np.all(np.isnan(x[1, 2]))
    assert np.isfinite(x).sum() == x.size - 9


def test_singular_matrix_of_a_refactor_is_told(factor, rng):
    lower, diag, upper, _ = oracle.dominant(rng, (3, 9))
    f = factor(lower, diag, upper)
    diag[1] = lower[1] = upper[1] = 0

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        f.refactor(lower, diag, upper)
    np.testing.assert_array_equal(caught.value.systems, [[1]])


@pytest.mark.parametrize("trans", ["X", "n", None, 1])
def test_unknown_trans_is_refused(factor, rng, trans):
    *matrix, rhs = oracle.dominant(rng, (9,))

    with pytest.raises((ValueError, TypeError), match="trans"):
        factor(*matrix).solve(rhs, trans=trans)


@pytest.mark.parametrize("shape", [(8,), (1,), (3,), (4, 9), (2, 9), (9, 3), (5, 2, 9)])
def test_rhs_of_another_shape_is_refused(factor, rng, shape):
    *matrix, _ = oracle.dominant(rng, (3, 9))

    with pytest.raises(ValueError, match=r"rhs has (shape|\d entr)") as caught:
        factor(*matrix).solve(np.zeros(shape))

    advice = {
        (9, 3): r"pass axis=0$",
        (3,): r"along axis 1 have 9 rows: .* per row of the array write rhs\[:, None\]$",
        (1,): r"write numpy.full\(9, value\)$",
    }
    assert re.search(advice.get(shape, ""), str(caught.value))


@pytest.mark.parametrize("trans", "NTH")
@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize(
    ("shape", "axis", "to"),
    [((4, 9), -1, None), ((9, 4), 0, None), ((4, 9), -1, 0), ((1, 9), 1, 0)],
)
def test_rhs_of_one_axis_is_that_of_all_matrices(factor, rng, shape, axis, to, dtype, trans):
    *matrix, _ = oracle.dominant(rng, shape if axis else shape[::-1])
    rhs = oracle.uniform(rng, (9,), np.dtype(dtype))
    made = factor(*(np.moveaxis(a, -1, axis) for a in matrix), axis=axis)

    x = made.solve(rhs, axis=to, trans=trans)
    out = np.empty_like(x)
    made.solve(rhs, axis=to, trans=trans, out=out)

    np.testing.assert_array_equal(out, x)
    rows_last = np.moveaxis(x, axis if to is None else to, -1)
    expected = oracle.solve(*oracle.transposed(*matrix, trans), rhs)
    assert rows_last.shape == expected.shape
    np.testing.assert_allclose(rows_last, expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"out must have the shape"):
        made.solve(rhs, axis=to, trans=trans, out=np.empty_like(rhs))


@pytest.mark.parametrize(
    ("matrix", "rhs"), [("f4", "f8"), ("f4", "i8"), ("f4", "c16"), ("c8", "f8"), ("c8", "c16")]
)
def test_rhs_of_higher_precision_is_refused(factor, rng, matrix, rhs):
    *diagonals, _ = oracle.dominant(rng, (3, 9), np.dtype(matrix))

    with pytest.raises(TypeError, match=f"rhs is {np.dtype(rhs)}, but the factor is"):
        factor(*diagonals).solve(np.ones((3, 9), rhs))


@pytest.mark.parametrize(
    ("matrix", "rhs", "result"),
    [("f8", "f4", "f8"), ("c16", "c8", "c16"), ("c16", "f8", "c16"), ("f8", "c8", "c16")],
)
def test_rhs_is_converted_to_the_precision_of_the_factor(factor, rng, matrix, rhs, result):
    *diagonals, sides = oracle.dominant(rng, (3, 9), np.dtype(matrix))
    sides = sides.real.astype(rhs)

    x = factor(*diagonals).solve(sides)

    assert x.dtype == result
    assert oracle.backward_error(*diagonals, sides.astype(result), x) <= 20 * oracle.eps(result)


@pytest.mark.parametrize("trans", ["N", "T", "H"])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("pivot", [None, True])
@pytest.mark.parametrize(
    ("matrix_shape", "shape", "axis"),
    [
        ((9,), (9,), -1),
        ((9,), (5, 9), -1),
        ((3, 9), (3, 9), -1),
        ((3, 9), (5, 3, 9), -1),
        ((9, 4), (9, 4), -2),
        ((3, 9, 4), (3, 9, 4), -2),
        ((3, 9, 4), (2, 3, 9, 4), -2),
    ],
)
def test_real_factor_and_complex_rhs(
    factor, rng, matrix_shape, shape, axis, pivot, dtype, periodic, trans
):
    def along(array):
        return np.moveaxis(array, axis, -1)

    real = np.zeros(1, dtype).real.dtype
    inner = along(np.empty(matrix_shape)).shape
    matrix = oracle.dominant(rng, inner, real)[:3]
    laid = [np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in matrix]
    rhs = oracle.uniform(rng, shape, np.dtype(dtype))
    before = rhs.copy()

    made = factor(*laid, axis=axis, pivot=pivot, periodic=periodic)
    x = made.solve(rhs, trans=trans)

    assert x.dtype == dtype
    np.testing.assert_array_equal(rhs, before)
    transposed = oracle.transposed(*matrix, trans)
    full = [np.broadcast_to(a, along(rhs).shape) for a in transposed]
    error = oracle.backward_error(*full, along(rhs), along(x), periodic=periodic)
    assert error <= 50 * oracle.eps(dtype)
    assert made.solve(rhs, trans=trans, out=rhs) is rhs
    np.testing.assert_array_equal(rhs, x)


def test_singular_real_factor_gives_nan_in_both_parts(factor):
    diag = np.ones((3, 2))
    diag[1, 0] = 0

    x = factor(0.0, diag, 1.0, on_singular="nan").solve(np.full((4, 3, 2), 1 + 2j))

    np.testing.assert_array_equal(np.isnan(x.real).all(axis=(0, 2)), [False, True, False])
    np.testing.assert_array_equal(np.isnan(x.real), np.isnan(x.imag))


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_one_factor_solves_along_any_axis(factor, rng, axis, dtype):
    *matrix, _ = oracle.dominant(rng, (7,), dtype)
    cube = oracle.uniform(rng, (7, 7, 7), np.dtype(dtype))

    x = factor(*matrix).solve(cube, axis=axis)

    expected = oracle.solve(*matrix, np.moveaxis(cube, axis, -1))
    error = np.max(np.abs(np.moveaxis(x, axis, -1) - expected))
    assert error <= 50 * oracle.eps(dtype) * np.max(np.abs(expected))


@pytest.mark.parametrize("trans", ["N", "T"])
@pytest.mark.parametrize(("made", "axis"), [(-1, 0), (-1, 1), (-1, 2), (0, 2), (0, 0)])
def test_axis_of_rhs_is_not_that_of_the_matrices(factor, rng, made, axis, trans):
    *matrix, _ = oracle.dominant(rng, (5, 8))
    several = oracle.uniform(rng, (3, 5, 8))
    laid = [np.ascontiguousarray(np.moveaxis(a, -1, made)) for a in matrix]

    x = factor(*laid, axis=made).solve(
        np.ascontiguousarray(np.moveaxis(several, -1, axis)), axis=axis, trans=trans
    )

    expected = oracle.solve(*oracle.transposed(*matrix, trans), several)
    np.testing.assert_allclose(np.moveaxis(x, axis, -1), expected, rtol=1e-12)


@pytest.mark.parametrize("axis", [3, -4])
def test_axis_that_rhs_does_not_have_is_refused(factor, axis):
    with pytest.raises(ValueError, match=f"axis must be in -3 .. 2 .*got {axis}"):
        factor(1.0, np.full(4, 4.0), 1.0).solve(np.ones((4, 4, 4)), axis=axis)
    with pytest.raises(TypeError, match="axis must be an int or None, got float"):
        factor(1.0, np.full(4, 4.0), 1.0).solve(np.ones((4, 4, 4)), axis=1.0)


def test_diagonals_of_one_axis_lie_along_the_axis(factor, rng):
    lower, diag, upper, _ = oracle.dominant(rng, (6,))
    several = diag + np.arange(4.0)[:, None]
    rhs = oracle.uniform(rng, (6, 4))

    made = factor(lower[1:], several.T, upper[:-1], axis=0)

    assert (made.shape, made.axis) == ((6, 4), -2)
    expected = oracle.solve(lower, several, upper, rhs.T).T
    np.testing.assert_allclose(made.solve(rhs), expected, rtol=1e-12)
    made.refactor(lower, 2 * several.T, upper)
    expected = oracle.solve(lower, 2 * several, upper, rhs.T).T
    np.testing.assert_allclose(made.solve(rhs), expected, rtol=1e-12)


@pytest.mark.parametrize("shape", [(), (8,), (3, 1), (3, 8)])
def test_rows_extend_constant_coefficients(factor, rng, shape):
    lower, diag, upper = (oracle.uniform(rng, shape) + k for k in (0.0, 4.0, 0.0))
    rhs = oracle.uniform(rng, (3, 8))

    made = pysolvers.factor_tridiagonal(lower, diag, upper, rows=8)

    assert made.shape == (*shape[:-1], 8)
    full = [np.broadcast_to(a, (3, 8)) for a in (lower, diag, upper)]
    np.testing.assert_allclose(made.solve(rhs), oracle.solve(*full, rhs), rtol=1e-12)
    made.refactor(lower, 2 * diag, upper)
    full[1] = 2 * full[1]
    np.testing.assert_allclose(made.solve(rhs), oracle.solve(*full, rhs), rtol=1e-12)


def test_numbers_need_rows():
    with pytest.raises(ValueError, match=r"number of rows is unknown: pass rows=n"):
        pysolvers.factor_tridiagonal(-1.0, 2.0, -1.0)
    x = pysolvers.factor_tridiagonal(-1.0, 2.0, -1.0, rows=3).solve([1.0, 0.0, 1.0])
    np.testing.assert_allclose(x, 1, rtol=1e-15)


def test_coefficients_of_one_row_need_rows():
    column = np.ones((3, 1))

    with pytest.raises(ValueError, match=r"one row along axis -1: .*diag \(3, 1\).* rows=n"):
        pysolvers.factor_tridiagonal(column, 4 * column, column)
    assert pysolvers.factor_tridiagonal(column, 4 * column, column, rows=1).shape == (3, 1)
    one = pysolvers.factor_tridiagonal([9.0], [4.0], [9.0])
    np.testing.assert_array_equal(one.solve([[2.0], [4.0]]), [[0.5], [1.0]])


@pytest.mark.parametrize(("rows", "error"), [(7, ValueError), (-1, ValueError), (8.0, TypeError)])
def test_rows_that_do_not_fit_are_refused(rows, error):
    with pytest.raises(error, match="rows"):
        pysolvers.factor_tridiagonal(1.0, np.full((3, 8), 4.0), 1.0, rows=rows)


def test_bad_out_is_refused(factor, rng):
    *matrix, rhs = oracle.dominant(rng, (3, 9))
    f = factor(*matrix)

    with pytest.raises(ValueError, match="shape"):
        f.solve(rhs, out=np.empty((3, 8)))
    with pytest.raises(TypeError, match="float32"):
        f.solve(rhs, out=np.empty((3, 9), np.float32))
    with pytest.raises(ValueError, match="overlap"):
        f.solve(rhs, out=rhs[::-1])


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_factor_says_that_it_cannot_be_copied(factor, rng, duplicate):
    made = factor(*oracle.dominant(rng, (3, 8))[:3])

    with pytest.raises(TypeError, match="cannot be pickled or copied: keep the diagonals"):
        duplicate(made)


def test_periodic_must_be_a_bool(factor):
    with pytest.raises(TypeError, match="periodic must be a bool, got str"):
        factor(1.0, np.full(4, 4.0), 1.0, periodic="no")


def test_nan_marks_every_right_hand_side_of_a_singular_matrix(factor):
    diag = np.ones((3, 1, 2))
    diag[1, 0, 1] = 0
    singular = factor(0.0, diag, 1.0, on_singular="nan")

    x = singular.solve(np.ones((2, 3, 5, 2)))

    np.testing.assert_array_equal(np.isnan(x).all(axis=(0, 2, 3)), [False, True, False])
    assert np.isnan(x).sum() == 2 * 5 * 2
