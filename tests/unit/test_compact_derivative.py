"""Compact differences: orders of convergence, modified wave numbers, ends, libraries."""

import numpy as np
import pytest

from pysolvers import clear_cache, compact_derivative

CASES = [(order, accuracy) for order in (1, 2) for accuracy in (4, 6, 8)]

# Lele (1992): alpha, beta, a, b.
COEFFICIENTS = {
    (1, 4): (1 / 4, 0, 3 / 2, 0),
    (1, 6): (1 / 3, 0, 14 / 9, 1 / 9),
    (1, 8): (4 / 9, 1 / 36, 40 / 27, 25 / 54),
    (2, 4): (1 / 10, 0, 6 / 5, 0),
    (2, 6): (2 / 11, 0, 12 / 11, 3 / 11),
    (2, 8): (344 / 1179, 23 / 2358, 320 / 393, 310 / 393),
}


def symbol(order, accuracy, w):
    """Return what a wave is multiplied by, for h = 1."""
    alpha, beta, a, b = COEFFICIENTS[order, accuracy]
    below = 1 + 2 * alpha * np.cos(w) + 2 * beta * np.cos(2 * w)
    if order == 1:
        return 1j * (a * np.sin(w) + b / 2 * np.sin(2 * w)) / below
    return -(2 * a * (1 - np.cos(w)) + b / 2 * (1 - np.cos(2 * w))) / below


@pytest.mark.parametrize(("order", "accuracy"), CASES)
def test_waves_have_the_modified_wave_numbers(order, accuracy):
    n, h = 48, 0.3
    i = np.arange(n)
    k = np.arange(-n // 2, n // 2)
    waves = np.exp(2j * np.pi * k[:, None] * i / n)
    found = compact_derivative(waves, order=order, accuracy=accuracy, spacing=h, periodic=True)
    w = 2 * np.pi * k / n
    exact = symbol(order, accuracy, w)[:, None] / h**order * waves
    assert np.abs(found - exact).max() < 1e-13 * 10 / h**order
    # The exact wave number up to a term of the accuracy.
    small = symbol(order, accuracy, np.array([0.2, 0.1])) / (1j * np.array([0.2, 0.1])) ** order
    assert np.log2(np.divide(*np.abs(small - 1))) == pytest.approx(accuracy, abs=0.1)


@pytest.mark.parametrize(
    ("accuracy", "resolved"), [(4, [0.59, 0.35, 0.20]), (6, [0.70, 0.50, 0.35])]
)
def test_the_resolved_waves_are_those_of_the_paper(accuracy, resolved):
    """Lele (1992), Table I: the part of the wave numbers with errors of 0.1, 0.01, 0.001."""
    n = 4000
    w = 2 * np.pi * np.arange(1, n // 2) / n
    delta = np.zeros(n)
    delta[0] = 1
    line = np.fft.fft(compact_derivative(delta, accuracy=accuracy, periodic=True))
    error = np.abs(line[1 : n // 2] / (1j * w) - 1)
    found = [w[np.argmax(error > most)] / np.pi for most in (0.1, 0.01, 0.001)]
    np.testing.assert_allclose(found, resolved, atol=0.011)


@pytest.mark.parametrize("closure", [3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize(("order", "accuracy"), CASES)
def test_closures_are_exact_for_polynomials_and_not_for_more(order, accuracy, closure):
    if closure > accuracy:
        return
    x = np.linspace(-1, 1, 20)
    errors = []
    for degree in range(accuracy + order + 1):
        p = np.polynomial.Polynomial.basis(degree, domain=[-1, 1], window=[-1, 1])
        f, exact = p(x), p.deriv(order)(x)
        found = compact_derivative(
            f, spacing=x[1] - x[0], order=order, accuracy=accuracy, closure=closure
        )
        errors.append(np.abs(found - exact).max())
    assert max(errors[: closure + order]) < 1e-9
    assert errors[closure + order] > 1e-7


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize(("order", "accuracy"), CASES)
def test_errors_fall_with_the_order_of_convergence(order, accuracy, periodic):
    errors = []
    is_long = accuracy == 8 and not periodic  # five diagonals are a product
    waves, sizes = (6 * np.pi, (97, 193)) if is_long else (2 * np.pi, (25, 49))
    for n in sizes:
        x = np.arange(n) / (n if periodic else n - 1)
        f = np.sin(waves * x + 0.3)
        exact = waves * np.cos(waves * x + 0.3) if order == 1 else -(waves**2) * f
        found = compact_derivative(
            f, spacing=x[1], order=order, accuracy=accuracy, periodic=periodic
        )
        errors.append(np.abs(found - exact).max())
    assert np.log(errors[0] / errors[1]) / np.log(sizes[1] / sizes[0]) > accuracy - 0.3


@pytest.mark.parametrize("accuracy", [4, 6, 8])
def test_closures_of_third_order_have_no_growing_modes(accuracy):
    matrix = compact_derivative(np.eye(65), axis=0, accuracy=accuracy, closure=3, spacing=1 / 64)
    assert np.linalg.eigvals(-matrix[1:, 1:]).real.max() < 0
    second = compact_derivative(np.eye(65), axis=0, order=2, accuracy=accuracy, spacing=1 / 64)
    assert np.linalg.eigvals(second[1:-1, 1:-1]).real.max() < 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("accuracy", [6, 8])
def test_any_axis_stride_and_dtype(accuracy, dtype):
    rng = np.random.default_rng(0)
    f = rng.standard_normal((12, 14, 26)).astype(dtype)
    if f.dtype.kind == "c":
        f += 1j * rng.standard_normal(f.shape).astype(f.real.dtype)
    for axis, view in ((0, f), (1, f), (-1, f[..., ::-2]), (2, f.transpose(2, 0, 1))):
        before = view.copy()
        found = compact_derivative(view, axis, accuracy=accuracy)
        assert found.dtype == dtype
        assert found.shape == view.shape
        np.testing.assert_array_equal(view, before)
        line = compact_derivative(
            np.moveaxis(view, axis, -1)[0, 0].astype(np.complex128), accuracy=accuracy
        )
        eps = np.finfo(dtype).eps
        assert np.abs(np.moveaxis(found, axis, -1)[0, 0] - line).max() < 500 * eps
        out = np.empty_like(found)
        assert compact_derivative(view, axis, accuracy=accuracy, out=out, threads=2) is out
        np.testing.assert_array_equal(out, found)
        rows = np.empty((len(view) + 1, *view.shape[1:]), dtype)
        for place in (rows[1:], rows[:-1]):  # in place, and one row before
            rows[1:] = view
            compact_derivative(rows[1:], axis, accuracy=accuracy, out=place)
            np.testing.assert_array_equal(place, found)
    clear_cache()


def test_lists_integers_and_other_libraries():
    x = np.arange(10)
    for values in (x, list(x), x.astype(np.int32)):
        np.testing.assert_allclose(compact_derivative(values, spacing=2.0), 0.5, rtol=1e-13)
    jnp = pytest.importorskip("jax.numpy")
    found = compact_derivative(jnp.arange(10.0), accuracy=8)
    assert type(found).__module__.startswith("jax")
    np.testing.assert_allclose(found, 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"order": 3}, "order must be 1 or 2, got 3"),
        ({"accuracy": 5}, "accuracy must be 4, 6 or 8, got 5"),
        ({"spacing": 0.0}, "spacing must be greater than 0, got 0.0"),
        ({"spacing": np.nan}, "spacing must be finite"),
        ({"closure": 2}, "closure must be from 3 to accuracy, which is 6, got 2"),
        ({"axis": 1}, "axis must be in -1 .. 0"),
        ({"accuracy": 8, "order": 2}, "at least 10 points along axis -1, got 7"),
        ({"out": np.empty(8)}, "shape"),
    ],
)
def test_options_that_are_refused(options, rule):
    with pytest.raises(ValueError, match=rule):
        compact_derivative(np.ones(7), **options)
    with pytest.raises(ValueError, match="at least 5 points"):
        compact_derivative(np.ones(4), periodic=True)
    with pytest.raises(TypeError, match="periodic must be a bool"):
        compact_derivative(np.ones(9), periodic="no")
    with pytest.raises(ValueError, match="one dimension"):
        compact_derivative(2.0)


@pytest.mark.parametrize("accuracy", [6, 8])
def test_out_is_an_array_with_an_element_at_each_index(accuracy):
    f = np.ones((3, 12))
    with pytest.raises(TypeError, match=r"out must be an ndarray, got list"):
        compact_derivative(f, accuracy=accuracy, out=[0.0])
    repeated = np.lib.stride_tricks.as_strided(np.empty(12), f.shape, (0, 8))
    with pytest.raises(ValueError, match="out must hold each element at one index"):
        compact_derivative(f, accuracy=accuracy, out=repeated)


@pytest.mark.parametrize("spacing", [1e-200, 1e200])
def test_spacings_whose_square_is_no_number_are_refused(spacing):
    with pytest.raises(
        ValueError, match=r"spacing must be from 1\.5e-154 to 1\.3e\+154 for order 2"
    ):
        compact_derivative(np.ones(12), order=2, spacing=spacing)
    assert (compact_derivative(np.ones(12), spacing=spacing) == 0).all()


@pytest.mark.parametrize("f", [None, "abc"])
def test_values_that_are_no_numbers_are_refused(f):
    with pytest.raises(TypeError, match="f: need float32, float64"):
        compact_derivative(f)
