"""Linear recurrences on a device: rows of growing lines, long lines and layouts."""

import numpy as np
import pytest
from scipy.ndimage import maximum_filter1d

from pysolvers import linear_recurrence

SHAPES = [((2, 30_000), 1), ((30_000, 3), 0), ((1 << 20,), 0), ((100, 400), 0), ((400, 100), 1)]


def rows_last(array, axis, *, reverse):
    array = np.moveaxis(array, axis, -1).astype(float)
    return array[..., ::-1] if reverse else array


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_rows_of_lines_that_grow_and_decay(cuda, rng, shape, axis, dtype, order, reverse):
    """Each row is satisfied up to roundings, also those after the join of two chunks.

    The state before a chunk is M v + s, with entries of M of at most 2 (order 1) or 16 (order 2):
    if S is the largest sum of terms of the rows of the map, s is a few of these entries times S,
    and each of the roundings of the joins at most eps times such a product. Rows after a joint can
    be smaller than S, so that the error is measured in units of S. The same joins in NumPy have
    errors of 1 (order 1) and 6 eps S (order 2).
    """
    line = 1 + 0.5 * np.sin(np.arange(shape[axis]) / 50)
    wave = np.moveaxis(np.ones(np.moveaxis(np.empty(shape), axis, -1).shape) * line, -1, axis)
    a = (wave * rng.choice([-1, 1], shape)).astype(dtype)
    b = rng.standard_normal(shape).astype(dtype)
    second = (-0.5 * wave**2).astype(dtype) if order == 2 else None

    x = linear_recurrence(a, b, second=second, axis=axis, reverse=reverse, device="cuda")

    c = np.zeros_like(a) if second is None else second
    x, a, b, c = (rows_last(array, axis, reverse=reverse) for array in (x, a, b, c))
    terms = [x[..., 2:], -a[..., 2:] * x[..., 1:-1], -c[..., 2:] * x[..., :-2], -b[..., 2:]]
    error, size = np.abs(np.sum(terms, 0)), np.sum(np.abs(terms), 0)
    largest = maximum_filter1d(size, 1025, axis=-1, origin=512)  # of 1024 rows before, a tile
    eps, entry = np.finfo(dtype).eps, (2, 16)[order - 1]
    assert np.isfinite(x).all()
    assert np.median(error / size) <= 4 * eps
    assert (error / largest).max() <= 16 * entry * eps


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("rows", [1, 2, 7, 8, 9, 255, 256, 257, 5000])
def test_layouts(cuda, rng, rows, order, dtype):
    def draw(*shape):
        values = rng.uniform(-0.45, 0.45, shape) + 1j * rng.uniform(-0.45, 0.45, shape)
        return (values if np.dtype(dtype).kind == "c" else values.real).astype(dtype)

    bound = 200 * np.finfo(dtype).eps
    for view in (
        lambda z: z,
        lambda z: np.moveaxis(z, 0, 1),
        lambda z: z[::-1, :, ::2],
        lambda z: np.asfortranarray(z),
    ):
        a, b, c = (view(draw(5, 6, 2 * rows))[..., :rows] for _ in range(3))
        second = c if order == 2 else None
        expected = linear_recurrence(a, b, second=second)
        found = linear_recurrence(a, b, second=second, device="cuda")
        assert np.abs(found - expected).max() <= bound * max(1, np.abs(expected).max())
        expected = linear_recurrence(a, b, second=second, axis=0)
        found = linear_recurrence(a, b, second=second, axis=0, device="cuda")
        assert np.abs(found - expected).max() <= bound * max(1, np.abs(expected).max())
