"""The kernel of products with eigenvectors: the formula of its header, bits, and arguments."""

import numpy as np
import pytest

from pysolvers import FastPoisson, _core

SIZES = (1, 2, 3, 4, 5, 8, 9, 63, 64, 129, 256)


def by_formula(is_backward, even, odd, values):
    """Return the products by the formula of ps_modes.h, in float64."""
    even, values = even.astype("f8"), values.astype("f8")
    n = values.shape[2]
    half, pairs = (n + 1) // 2, n // 2
    if odd is None:
        return even @ values
    odd = odd.astype("f8")
    if not is_backward:
        mirrored = values[:, :, ::-1]
        sums, differences = values + mirrored, values - mirrored
        return np.concatenate([even @ sums[:, :, :half], odd @ differences[:, :, :pairs]], axis=2)
    first, second = even @ values[:, :, :half], odd @ values[:, :, half:]
    found = np.empty_like(values)
    found[:, :, :half] = first
    found[:, :, :pairs] += second
    found[:, :, n - pairs :] = (first[:, :, :pairs] - second)[:, :, ::-1]
    return found


def random_call(rng, n, columns, dtype, is_backward, is_whole):
    """Return the arguments of a call but for the target and the threads."""
    sizes = (n,) if is_whole else ((n + 1) // 2, n // 2)
    even, *odd = (rng.uniform(-1, 1, (size, size)).astype(dtype) for size in sizes)
    values = rng.uniform(-1, 1, (2, 3, n + 2, columns + 3)).astype(dtype)[:, :, 1:-1, 2:-1]
    return is_backward, even, odd[0] if odd else None, values


@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("is_backward", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_formula_of_the_header(dtype, is_backward, is_whole, rng):
    for n in SIZES:
        for columns in (1, 15, 16, 33):
            call = random_call(rng, n, columns, dtype, is_backward, is_whole)
            source = call[-1]
            expected, given = by_formula(*call), source.copy()
            for layout in ("C", "F"):
                target = np.full(source.shape, np.nan, dtype, layout)
                assert _core.modes(*call, target, 1) == 0
                assert np.abs(target - expected).max() <= 4 * n * np.finfo(dtype).eps
                several = np.empty_like(target)
                assert _core.modes(*call, several, 3) == 0
                np.testing.assert_array_equal(several, target)
            np.testing.assert_array_equal(source, given)
            assert _core.modes(*call, source, 1) == 0
            np.testing.assert_array_equal(source, target)


def test_vectors_along_contiguous_rows(rng):
    call = random_call(rng, 40, 21, "f8", False, False)
    rows = np.ascontiguousarray(call[-1].swapaxes(2, 3))
    target = np.empty_like(rows)
    assert _core.modes(*call[:-1], rows.swapaxes(2, 3), target.swapaxes(2, 3), 1) == 0
    expected = np.empty(call[-1].shape)
    assert _core.modes(*call, expected, 1) == 0
    np.testing.assert_array_equal(target.swapaxes(2, 3), expected)


def test_arguments(rng):
    even, odd, field = rng.random((2, 2)), rng.random((1, 1)), rng.random((1, 1, 3, 4))
    for message, error, arguments in (
        ("source: need an ndarray of four axes", TypeError, (even, odd, field[0], field)),
        ("target: need an ndarray of four axes", TypeError, (even, odd, field, field.view("c16"))),
        ("source: need float32 or float64", TypeError, (even, odd, field + 0j, field + 0j)),
        ("even: need 2 x 2 entries", ValueError, (odd, odd, field, field)),
        ("odd: need 1 x 1 entries", ValueError, (even, even, field, field)),
        ("even: need 3 x 3 entries", ValueError, (even, None, field, field)),
        ("target: need the shape", ValueError, (even, odd, field, field[..., :2])),
        ("even: need float64 in C order", TypeError, (even.T, odd, field, field)),
        (
            "1 to 256 values",
            ValueError,
            (even, odd, np.ones((1, 1, 257, 1)), np.ones((1, 1, 257, 1))),
        ),
    ):
        with pytest.raises(error, match=message):
            _core.modes(False, *arguments, 1)
    status = _core.modes(False, None, odd, field, field, 1)
    assert _core.STATUS[status][0] == "PS_BAD_ARGUMENT"


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("name", "xy")
def test_fields_that_are_not_aligned(dtype, name, rng):
    """A field of a structured array has entries that are not whole numbers apart."""
    solver = FastPoisson(
        (9, 8),
        0.5,
        boundary=0.0,
        dtype=dtype,
        methods={name: "eigenvectors"},
        on_incompatible="raise",
    )
    packed = np.zeros((9, 8), [("tag", "i1"), ("value", dtype)])
    values = rng.uniform(-1, 1, (9, 8)).astype(dtype)
    packed["value"] = values
    expected = solver.solve(values)
    np.testing.assert_array_equal(solver.solve(packed["value"]), expected)
    wide = np.empty((18, 16), dtype)
    solver.solve(values, out=wide[::2, ::2])
    np.testing.assert_array_equal(wide[::2, ::2], expected)
