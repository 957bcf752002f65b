"""`out`: in place, into any strides, and what is refused. Inputs stay as they are."""

import numpy as np
import oracle
import pytest


@pytest.mark.parametrize("method", oracle.METHODS)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("rows", [1, 2, 33, 70])
def test_in_place_gives_the_same_bits(solve, rng, rows, axis, method):
    system = oracle.dominant(rng, (3, 6, rows))
    *matrix, rhs = (np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in system)
    expected = solve(*matrix, rhs, axis=axis, method=method)

    x = solve(*matrix, rhs, axis=axis, method=method, out=rhs)

    assert x is rhs
    np.testing.assert_array_equal(rhs, expected)


def test_out_is_returned_and_filled(solve, rng):
    system = oracle.dominant(rng, (3, 8))
    out = np.full((3, 8), np.nan)

    assert solve(*system, out=out) is out
    np.testing.assert_array_equal(out, solve(*system))


@pytest.mark.parametrize("steps", [(2, 1), (1, 2), (-1, 1), (1, -1)])
@pytest.mark.parametrize("rows", [7, 33])
def test_gaps_of_a_strided_out_are_not_touched(solve, rng, rows, steps):
    system = oracle.dominant(rng, (9, rows))
    room = np.full((9 * abs(steps[0]), rows * abs(steps[1])), 77.0)
    marks = np.ones(room.shape, bool)
    window = tuple(slice(None, None, s) for s in steps)
    marks[window] = False

    solve(*system, out=room[window])

    np.testing.assert_array_equal(room[window], solve(*system))
    assert np.all(room[marks] == 77.0)


def test_out_whose_batch_axes_do_not_merge_is_filled(solve, rng):
    system = oracle.dominant(rng, (2, 3, 4, 9))
    room = np.full((4, 7, 8, 9), 77.0)
    out = room[1:3, 1::2, 1:5]

    x, info = solve(*system, out=out, return_info=True)

    assert x is out
    assert info.copied == (("out",) if info.backend == "cpu" else ())  # copied over anyway
    np.testing.assert_array_equal(out, solve(*system))
    out[...] = 77.0
    assert np.all(room == 77.0)


@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("axis", [0, 1])
def test_nothing_is_written_beside_out(solve, rng, axis, dtype):
    system = oracle.dominant(rng, (5, 7), dtype)
    room = np.full((11, 13), 77, dtype)
    inside = room[3:8, 3:10]

    solve(*system, axis=axis, out=inside)

    np.testing.assert_array_equal(inside, solve(*system, axis=axis))
    inside[...] = 77
    assert np.all(room == 77)


@pytest.mark.parametrize("method", oracle.METHODS)
@pytest.mark.parametrize("periodic", [False, True])
def test_inputs_are_not_modified(solve, rng, periodic, method):
    system = oracle.dominant(rng, (5, 33))
    before = [a.copy() for a in system]

    solve(*system, method=method, periodic=periodic)

    for after, kept in zip(system, before, strict=True):
        np.testing.assert_array_equal(after, kept)


@pytest.mark.parametrize("method", oracle.METHODS)
def test_read_only_inputs_are_fine(solve, rng, method):
    system = oracle.dominant(rng, (5, 33))
    for a in system:
        a.flags.writeable = False

    x = solve(*system, method=method)

    assert x.flags.writeable
    assert oracle.backward_error(*system, x) <= 10 * oracle.eps(float)


@pytest.mark.parametrize("operand", ["lower", "diag", "upper"])
def test_out_may_not_be_a_diagonal(solve, rng, operand):
    system = dict(zip(("lower", "diag", "upper", "rhs"), oracle.dominant(rng, (3, 8)), strict=True))
    before = {name: a.copy() for name, a in system.items()}

    with pytest.raises(ValueError, match="overlap"):
        solve(**system, out=system[operand])

    for name, a in system.items():
        np.testing.assert_array_equal(a, before[name])


def test_out_may_not_be_a_shifted_rhs(solve, rng):
    lower, diag, upper, _ = oracle.dominant(rng, (3, 8))
    room = oracle.uniform(rng, (30,))
    before = room.copy()

    with pytest.raises(ValueError, match="overlap"):
        solve(lower, diag, upper, room[:24].reshape(3, 8), out=room[1:25].reshape(3, 8))
    with pytest.raises(ValueError, match="overlap"):
        solve(lower, diag, upper, room[:24].reshape(3, 8), out=room[:24].reshape(3, 8)[::-1])

    np.testing.assert_array_equal(room, before)


def test_out_may_interleave_with_an_input(solve, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (3, 8))
    room = np.empty((3, 16))
    room[:, ::2] = rhs

    solve(lower, diag, upper, room[:, ::2], out=room[:, 1::2])

    np.testing.assert_array_equal(room[:, 1::2], solve(lower, diag, upper, rhs))
    np.testing.assert_array_equal(room[:, ::2], rhs)


def test_out_may_not_repeat_an_element(solve, rng):
    system = oracle.dominant(rng, (3, 8))
    out = np.lib.stride_tricks.as_strided(np.zeros(8), (3, 8), (0, 8))

    with pytest.raises(ValueError):
        solve(*system, out=out)


@pytest.mark.parametrize("shape", [(8,), (3, 7), (4, 8), (1, 3, 8), (8, 3)])
def test_out_of_another_shape_is_refused(solve, rng, shape):
    with pytest.raises(ValueError, match="shape"):
        solve(*oracle.dominant(rng, (3, 8)), out=np.empty(shape))


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.int64, np.float16])
def test_out_of_another_dtype_is_refused(solve, rng, dtype):
    with pytest.raises(TypeError, match=np.dtype(dtype).name):
        solve(*oracle.dominant(rng, (3, 8)), out=np.empty((3, 8), dtype))


def test_read_only_out_is_refused(solve, rng):
    out = np.zeros((3, 8))
    out.flags.writeable = False

    with pytest.raises(ValueError):
        solve(*oracle.dominant(rng, (3, 8)), out=out)


def test_out_that_is_no_array_is_refused(solve, rng):
    with pytest.raises(TypeError):
        solve(*oracle.dominant(rng, (8,)), out=[0.0] * 8)
