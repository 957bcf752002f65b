"""Strides beyond 2**31 elements, on address space that is hardly ever touched."""

import mmap
import sys

import numpy as np
import oracle
import pytest
from numpy.lib.stride_tricks import as_strided

FAR = 2**31 + 24  # elements, above int32
NO_RESERVE = 0x4000 if sys.platform == "linux" else 0


def far_apart(a, axis):
    """Return a copy of `a` with `FAR` elements from each step of `axis` to the next."""
    packed = np.ascontiguousarray(np.moveaxis(a, axis, 0))
    span = (len(packed) - 1) * FAR * a.itemsize + packed.nbytes
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
    try:
        room = mmap.mmap(-1, span, flags=flags)
    except OSError as error:
        pytest.skip(f"no {span >> 30} GiB of address space: {error}")
    strides = (FAR * a.itemsize, *packed.strides[1:])
    view = as_strided(np.frombuffer(room, a.dtype, count=1), packed.shape, strides)
    view[...] = packed
    return np.moveaxis(view, 0, axis)


@pytest.mark.parametrize("pivot", [True, False])
@pytest.mark.parametrize("far_axis", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
def test_strides_beyond_int32(solve, rng, axis, far_axis, pivot):
    system = oracle.dominant(rng, (5, 6), np.float32)
    expected = solve(*system, axis=axis, pivot=pivot)
    far = [far_apart(a, far_axis) for a in system]
    out = far_apart(np.zeros((5, 6), np.float32), far_axis)
    assert max(abs(s) for s in out.strides) > 2**31 * 4

    solve(*far, axis=axis, pivot=pivot, out=out)

    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("periodic", [False, True])
def test_far_systems_in_place_and_backwards(solve, rng, periodic):
    *matrix, rhs = oracle.dominant(rng, (3, 40), np.float32)
    expected = solve(*matrix, rhs, periodic=periodic)
    far = far_apart(rhs, 0)[::-1]

    solve(*(a[::-1] for a in matrix), far, periodic=periodic, out=far)

    np.testing.assert_array_equal(far[::-1], expected)


def test_factor_solves_far_right_hand_sides(factor, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (3, 40), np.float32)
    f = factor(lower, diag, upper)

    np.testing.assert_array_equal(f.solve(far_apart(rhs, 0)), f.solve(rhs))
