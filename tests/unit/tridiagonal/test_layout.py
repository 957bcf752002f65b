"""Axes, strides, broadcasting and the two lengths of off-diagonals."""

import numpy as np
import oracle
import pytest
from numpy.lib.stride_tricks import as_strided


def strided(a, steps):
    """Return a copy of `a` in a larger array, with `steps` between neighbours of each axis."""
    room = np.full([n * abs(s) for n, s in zip(a.shape, steps, strict=True)], np.nan, a.dtype)
    view = room[tuple(slice(None, None, s) for s in steps)]
    view[...] = a
    return view


@pytest.mark.parametrize("shape", [(6,), (4, 6), (4, 3, 6), (2, 4, 3, 6), (2, 3, 2, 2, 6)])
def test_every_axis_gives_the_same_bits(solve, same_but_for_layout, rng, shape):
    system = oracle.dominant(rng, shape)
    expected = solve(*system)
    last = len(shape) - 1

    for axis in range(-len(shape), len(shape)):
        moved = [np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in system]
        x = solve(*moved, axis=axis)
        neighbours = axis % len(shape) < last
        same_but_for_layout(np.moveaxis(x, axis, -1), expected, neighbours=neighbours)


@pytest.mark.parametrize("method", oracle.METHODS)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_axis_of_every_method_gives_the_same_bits(
    solve, same_but_for_layout, rng, dtype, axis, method
):
    system = oracle.dominant(rng, (5, 7, 41), dtype)
    moved = [np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in system]

    x = solve(*moved, axis=axis, method=method)

    expected = solve(*system, method=method)
    same_but_for_layout(np.moveaxis(x, axis, -1), expected, neighbours=axis < 2)


@pytest.mark.parametrize("steps", [(2, 1), (1, 2), (2, 2), (-1, 1), (1, -1), (-1, -2), (3, -2)])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("pivot", [True, False])
def test_strides_do_not_change_a_bit(solve, rng, pivot, axis, steps):
    system = oracle.dominant(rng, (9, 19))
    expected = solve(*system, axis=axis, pivot=pivot)
    out = strided(np.zeros((9, 19)), steps)

    solve(*(strided(a, steps) for a in system), axis=axis, pivot=pivot, out=out)

    np.testing.assert_array_equal(out, expected)


def test_each_operand_may_have_strides_of_its_own(solve, rng):
    system = oracle.dominant(rng, (4, 5, 6))
    orders = [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)]
    mixed = [
        np.ascontiguousarray(a.transpose(order)).transpose(np.argsort(order))
        for a, order in zip(system, orders, strict=True)
    ]

    for axis in range(3):
        np.testing.assert_array_equal(solve(*mixed, axis=axis), solve(*system, axis=axis))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_fortran_order_costs_no_copy(solve, rng, axis):
    system = [np.asfortranarray(a) for a in oracle.dominant(rng, (4, 5, 6))]

    x, info = solve(*system, axis=axis, return_info=True)

    assert info.copied == ()
    moved = [np.moveaxis(a, axis, -1) for a in (*system, x)]
    assert oracle.backward_error(*moved) <= 10 * oracle.eps(float)


def test_batch_axes_that_do_not_merge_are_copied_and_told(solve, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (4, 4, 4, 6))
    scattered = strided(rhs, (2, 2, 2, 1))

    x, info = solve(lower, diag, upper, scattered, return_info=True)

    assert "rhs" in info.copied
    np.testing.assert_array_equal(x, solve(lower, diag, upper, rhs))


@pytest.mark.parametrize("method", oracle.METHODS)
@pytest.mark.parametrize("axis", [0, 1])
def test_one_matrix_for_the_whole_batch(solve, rng, axis, method):
    lower, diag, upper, _ = oracle.dominant(rng, (23,))
    rhs = oracle.uniform(rng, (6, 23))
    shape = [1, 1]
    shape[axis] = 23

    x = solve(
        *(a.reshape(shape) for a in (lower, diag, upper)),
        np.ascontiguousarray(np.moveaxis(rhs, -1, axis)),
        axis=axis,
        method=method,
    )

    x = np.moveaxis(x, axis, -1)
    assert oracle.backward_error(lower, diag, upper, rhs, x) <= 10 * oracle.eps(float)


def test_matrix_of_one_dimension_is_shared_along_the_last_axis(solve, rng):
    lower, diag, upper, _ = oracle.dominant(rng, (9,))
    rhs = oracle.uniform(rng, (3, 4, 9))

    x = solve(lower, diag, upper, rhs)

    np.testing.assert_allclose(x, oracle.solve(lower, diag, upper, rhs), rtol=1e-12)


@pytest.mark.parametrize("pattern", [(1, 4, 9), (3, 1, 9), (1, 1, 9), (4, 9)])
@pytest.mark.parametrize("operand", range(4))
def test_one_operand_broadcasts(solve, rng, operand, pattern):
    system = list(oracle.dominant(rng, (3, 4, 9)))
    system[1] *= 4  # dominant whatever is shared
    window = tuple(slice(n) for n in pattern) if len(pattern) == 3 else 0
    system[operand] = system[operand][window].copy()

    x = solve(*system)

    full = np.broadcast_arrays(*system)
    np.testing.assert_allclose(x, oracle.solve(*full), rtol=1e-12)


@pytest.mark.each_value
@pytest.mark.parametrize("method", oracle.METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.float64])
def test_scalars_stand_for_constant_diagonals(solve, rng, dtype, method):
    rhs = oracle.uniform(rng, (3, 17), dtype)

    x = solve(-1.0, 4.0, -1.5, rhs, method=method)

    assert x.dtype == dtype
    full = [np.full(rhs.shape, value, dtype) for value in (-1.0, 4.0, -1.5)]
    assert oracle.backward_error(*full, rhs, x) <= 10 * oracle.eps(dtype)


def test_a_column_of_scalars_gives_each_system_its_own_constant(solve, rng):
    rhs = oracle.uniform(rng, (3, 17))
    diag = np.array([[3.0], [4.0], [5.0]])

    x = solve(-1.0, diag, -1.0, rhs)

    np.testing.assert_allclose(x, oracle.solve(-1.0, diag, -1.0, rhs), rtol=1e-12)


def test_one_right_hand_side_for_many_matrices(solve, rng):
    lower, diag, upper, _ = oracle.dominant(rng, (2, 5, 9))
    rhs = oracle.uniform(rng, (9,))

    x = solve(lower, diag, upper, rhs)

    assert x.shape == (2, 5, 9)
    full = np.broadcast_to(rhs, x.shape)
    np.testing.assert_allclose(x, oracle.solve(lower, diag, upper, full), rtol=1e-12)


@pytest.mark.parametrize("position", [0, 1])
def test_several_right_hand_sides_for_each_matrix(solve, rng, position):
    lower, diag, upper, _ = oracle.dominant(rng, (5, 9))
    many = oracle.uniform(rng, (3, 5, 9))
    rhs = np.moveaxis(many, 0, position).copy()
    matrix = [np.expand_dims(a, position) for a in (lower, diag, upper)]

    x = np.moveaxis(solve(*matrix, rhs), position, 0)

    np.testing.assert_allclose(x, oracle.solve(lower, diag, upper, many), rtol=1e-12)


def test_right_hand_sides_along_a_last_axis(solve, rng):
    lower, diag, upper, _ = oracle.dominant(rng, (5, 9))
    rhs = oracle.uniform(rng, (5, 9, 3))

    x = solve(lower[..., None], diag[..., None], upper[..., None], rhs, axis=1)

    expected = oracle.solve(*(a[:, None] for a in (lower, diag, upper)), np.moveaxis(rhs, 1, 2))
    np.testing.assert_allclose(np.moveaxis(x, 1, 2), expected, rtol=1e-12)


def test_zero_strides_are_read_as_they_stand(solve, same_but_for_sharing, rng):
    system = oracle.dominant(rng, (9,))
    repeated = [as_strided(a, (4, 3, 9), (0, 0, a.strides[0])) for a in system]

    x = solve(*repeated)

    same_but_for_sharing(x, np.broadcast_to(solve(*system), (4, 3, 9)))


@pytest.mark.parametrize("kind", [oracle.dominant, oracle.general])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("method", oracle.METHODS)
def test_ends_of_the_off_diagonals_do_not_matter(solve, rng, method, axis, kind):
    for rows in (2, 3, 9, 33, 100):
        system = kind(rng, (40, rows))
        lower, diag, upper, rhs = (np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in system)
        options = {"axis": axis, "method": method, "return_info": True}
        expected, known = solve(lower, diag, upper, rhs, **options)

        for junk in (np.nan, np.inf, 1e300):
            np.moveaxis(lower, axis, -1)[:, 0] = np.moveaxis(upper, axis, -1)[:, -1] = junk
            x, info = solve(lower, diag, upper, rhs, **options)
            np.testing.assert_array_equal(x, expected, err_msg=f"{rows} rows, {junk}")
            assert info.pivoted == known.pivoted


@pytest.mark.parametrize("rows", [2, 3, 9, 33])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("method", oracle.METHODS)
def test_short_off_diagonals_mean_the_same(solve, rng, method, axis, rows):
    system = [np.moveaxis(a, -1, axis).copy() for a in oracle.dominant(rng, (6, rows))]
    expected = solve(*system, axis=axis, method=method)
    lower, diag, upper, rhs = system
    lower, upper = (a.take(range(k, k + rows - 1), axis) for a, k in ((lower, 1), (upper, 0)))

    x = solve(lower, diag, upper, rhs, axis=axis, method=method)

    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize(("short_lower", "short_upper"), [(True, False), (False, True)])
@pytest.mark.parametrize("pivot", [True, False])
def test_one_off_diagonal_may_be_short(solve, rng, pivot, short_lower, short_upper):
    lower, diag, upper, rhs = oracle.dominant(rng, (6, 9))
    expected = solve(lower, diag, upper, rhs, pivot=pivot)

    x = solve(
        lower[:, 1:] if short_lower else lower,
        diag,
        upper[:, :-1] if short_upper else upper,
        rhs,
        pivot=pivot,
    )

    np.testing.assert_array_equal(x, expected)


def test_empty_off_diagonals_of_a_single_row(solve):
    empty = np.empty((3, 0))

    x = solve(empty, np.full((3, 1), 2.0), empty, np.ones((3, 1)))

    np.testing.assert_array_equal(x, np.full((3, 1), 0.5))


def test_short_off_diagonals_shared_by_the_batch(solve, rng):
    lower, diag, upper, _ = oracle.dominant(rng, (9,))
    rhs = oracle.uniform(rng, (4, 9))

    x = solve(lower[1:], diag, upper[:-1], rhs)

    np.testing.assert_array_equal(x, solve(lower, diag, upper, rhs))


@pytest.mark.parametrize("offset", [8, 16, 24, 40])
def test_any_alignment_of_the_first_element(solve, rng, offset):
    system = oracle.dominant(rng, (5, 18))
    shifted = []
    for a in system:
        room = np.zeros(a.nbytes + 64, np.uint8)[offset : offset + a.nbytes]
        shifted.append(room.view(a.dtype).reshape(a.shape))
        shifted[-1][...] = a

    np.testing.assert_array_equal(solve(*shifted), solve(*system))
