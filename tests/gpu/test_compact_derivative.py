"""Compact differences on a device: the answers of the host, wave numbers, orders, ends, layouts."""

import numpy as np
import pytest

from pysolvers import compact_derivative

CASES = [(order, accuracy) for order in (1, 2) for accuracy in (4, 6, 8)]
# Rows of chunks, warps, teams, groups of panels, parts of tiles, and of systems no block holds.
ROWS = [10, 13, 17, 18, 32, 33, 34, 52, 64, 129, 144, 256, 257, 416, 417, 512, 545, 1000, 1089]
ROWS += [2049, 4096, 4352, 8192, 9001]


def near(found, f, axis, eps, **options):
    expected = compact_derivative(f.astype(np.result_type(f, np.float64)), axis, **options)
    scale = np.abs(expected).max()
    assert np.abs(found - expected).max() <= 40 * eps * scale


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_of_every_kernel(cuda, rng, rows, axis, dtype, periodic):
    cupy = pytest.importorskip("cupy")
    eps = np.finfo(dtype).eps
    for systems in (1, 3, 16, 65, 130):
        if rows * systems > 1 << 19:
            continue
        shape = (rows, systems) if axis == 0 else (systems, rows)
        f = rng.standard_normal(shape).astype(dtype)
        own = cupy.asarray(f)
        for order, accuracy in CASES:
            options = {"order": order, "accuracy": accuracy, "periodic": periodic}
            found = compact_derivative(own, axis, **options).get()
            assert found.dtype == dtype
            near(found, f, axis, eps, **options)
        np.testing.assert_array_equal(own.get(), f)


@pytest.mark.parametrize("rows", [24, 64, 301, 1026])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("order", "accuracy"), CASES)
@pytest.mark.parametrize("closure", [3, 4, 6, 8])
def test_ends_of_every_closure(cuda, rng, order, accuracy, closure, axis, rows):
    cupy = pytest.importorskip("cupy")
    if closure > accuracy:
        return
    shape = (rows, 40) if axis == 0 else (40, rows)
    f = rng.standard_normal(shape)
    options = {"order": order, "accuracy": accuracy, "closure": closure, "spacing": 0.25}
    near(compact_derivative(cupy.asarray(f), axis, **options).get(), f, axis, 2e-16, **options)


@pytest.mark.parametrize("rows", [48, 768])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("order", "accuracy"), CASES)
def test_waves_have_the_modified_wave_numbers(cuda, order, accuracy, axis, rows):
    """Lele (1992), (3.1.4): for h = 1."""
    cupy = pytest.importorskip("cupy")
    alpha, beta, a, b = {
        (1, 4): (1 / 4, 0, 3 / 2, 0),
        (1, 6): (1 / 3, 0, 14 / 9, 1 / 9),
        (1, 8): (4 / 9, 1 / 36, 40 / 27, 25 / 54),
        (2, 4): (1 / 10, 0, 6 / 5, 0),
        (2, 6): (2 / 11, 0, 12 / 11, 3 / 11),
        (2, 8): (344 / 1179, 23 / 2358, 320 / 393, 310 / 393),
    }[order, accuracy]
    k = np.arange(-24, 24)
    w = 2 * np.pi * k / 48
    below = 1 + 2 * alpha * np.cos(w) + 2 * beta * np.cos(2 * w)
    if order == 1:
        symbol = 1j * (a * np.sin(w) + b / 2 * np.sin(2 * w)) / below
    else:
        symbol = -(2 * a * (1 - np.cos(w)) + b / 2 * (1 - np.cos(2 * w))) / below
    waves = np.exp(2j * np.pi / 48 * (k[:, None] * np.arange(rows) % 48))
    exact = symbol[:, None] * waves
    waves = waves if axis == 1 else np.ascontiguousarray(waves.T)
    own = cupy.asarray(waves)
    found = compact_derivative(own, axis, order=order, accuracy=accuracy, periodic=True).get()
    assert np.abs((found if axis == 1 else found.T) - exact).max() < 1e-13


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("accuracy", [4, 6, 8])
@pytest.mark.parametrize("order", [1, 2])
def test_errors_fall_with_the_order_of_convergence(cuda, order, accuracy, periodic):
    cupy = pytest.importorskip("cupy")
    errors = []
    is_long = accuracy == 8 and not periodic  # five diagonals are a product
    waves, sizes = (6 * np.pi, (97, 193)) if is_long else (2 * np.pi, (25, 49))
    for n in sizes:
        x = np.arange(n) / (n if periodic else n - 1)
        f = np.sin(waves * x + 0.3)
        exact = waves * np.cos(waves * x + 0.3) if order == 1 else -(waves**2) * f
        values = cupy.asarray(np.tile(f[:, None], (1, 33)))
        options = {"order": order, "accuracy": accuracy, "periodic": periodic}
        found = compact_derivative(values, 0, spacing=x[1], **options)
        errors.append(np.abs(found.get() - exact[:, None]).max())
    assert np.log(errors[0] / errors[1]) / np.log(sizes[1] / sizes[0]) > accuracy - 0.3


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
@pytest.mark.parametrize("periodic", [False, True])
def test_axes_strides_and_results(cuda, rng, dtype, periodic):
    cupy = pytest.importorskip("cupy")
    eps = np.finfo(dtype).eps
    for shape in ((20, 300, 21), (300, 7, 34), (12, 13, 604)):
        f = rng.standard_normal(shape).astype(dtype)
        if f.dtype.kind == "c":
            f += 1j * rng.standard_normal(shape).astype(f.real.dtype)
        own = cupy.asarray(f)
        for view in (own, own[..., ::-2], own.transpose(2, 0, 1), own[1:, :, 1:]):
            for axis in range(3):
                found = compact_derivative(view, axis, periodic=periodic)
                near(found.get(), view.get(), axis, eps, periodic=periodic)
                out = cupy.empty_like(found)
                assert compact_derivative(view, axis, periodic=periodic, out=out) is out
                assert bool((out == found).all())
        expected = compact_derivative(own, 0, periodic=periodic)
        repeated = own.copy()
        assert compact_derivative(repeated, 0, periodic=periodic, out=repeated) is repeated
        assert bool((repeated == expected).all())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("rows", [10, 12, 19, 40])
def test_few_rows(cuda, rng, rows, dtype, periodic):
    """Both ends of a grid, or several turns of a ring, count in each row."""
    cupy = pytest.importorskip("cupy")
    eps = np.finfo(dtype).eps
    for order, accuracy in CASES:
        options = {"order": order, "accuracy": accuracy, "periodic": periodic}
        if not periodic and rows < accuracy + order:
            continue
        for systems in (1, 7, 40):
            f = rng.standard_normal((systems, rows)).astype(dtype)
            for axis, values in ((1, f), (0, np.ascontiguousarray(f.T))):
                found = compact_derivative(cupy.asarray(values), axis, **options).get()
                near(found, values, axis, eps, **options)


def test_values_that_are_not_finite_stay_in_their_line(cuda, rng):
    cupy = pytest.importorskip("cupy")
    for shape, axis in (((70, 300), 1), ((300, 70), 0), ((70, 30), 1), ((70, 3001), 1)):
        f = rng.standard_normal(shape)
        expected = compact_derivative(cupy.asarray(f), axis).get()
        line = (5, slice(None)) if axis == 1 else (slice(None), 5)
        f[line] = np.nan
        found = compact_derivative(cupy.asarray(f), axis).get()
        assert np.isnan(found[line]).all()
        found[line] = expected[line]
        np.testing.assert_array_equal(found, expected)
