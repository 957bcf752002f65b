"""Linear recurrences: against `scipy.signal.lfilter`, against a loop, and by their equations."""

import numpy as np
import pytest
from oracle import DTYPES, eps, uniform

from pysolvers import linear_recurrence

LONG = 33001  # rows of a line that is divided into chunks, and a tail


def by_loop(a, b, second=None, initial=None, reverse=False):
    """Return x with t along the last axis, in the order of a loop."""
    a, b = np.broadcast_arrays(a, b)
    x = np.empty(b.shape, np.result_type(a, b))
    before = [0 * b[..., 0]] * 2 if initial is None else [*initial, 0 * b[..., 0]][:2]
    for t in reversed(range(b.shape[-1])) if reverse else range(b.shape[-1]):
        x[..., t] = a[..., t] * before[0] + b[..., t]
        if second is not None:
            x[..., t] += second[..., t] * before[1]
        before = [x[..., t], before[0]]
    return x


def operands(rng, shape, dtype, order):
    """Return a, b, second and initial values of recurrences that do not grow."""
    scale = 0.9 if order == 1 else 0.45
    a, second = (uniform(rng, shape, dtype) * np.asarray(scale, dtype) for _ in range(2))
    b = uniform(rng, shape, dtype)
    initial = [uniform(rng, shape[:-1], dtype) for _ in range(order)]
    return a, b, second if order == 2 else None, initial


@pytest.mark.each_value
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8, 9, 16, 17, 33, 100, LONG])
def test_recurrences_are_those_of_a_loop(rows, dtype, order):
    rng = np.random.default_rng(rows)
    for batch in [(), (1,), (3,), (9,), (2, 5), (40,)] if rows < LONG else [(), (2,)]:
        for reverse in (False, True):
            a, b, second, initial = operands(rng, (*batch, rows), dtype, order)
            wanted = by_loop(a, b, second, initial, reverse)
            for axis in range(len(batch) + 1):
                moved = [None if v is None else np.moveaxis(v, -1, axis) for v in (a, b, second)]
                copies = [None if v is None else v.copy() for v in moved]
                for first, right, other in (moved, copies):
                    x = linear_recurrence(
                        first,
                        right,
                        second=other,
                        initial=tuple(initial) if order == 2 else initial[0],
                        axis=axis,
                        reverse=reverse,
                    )
                    assert x.dtype == dtype
                    error = np.abs(np.moveaxis(x, axis, -1) - wanted)
                    assert error.max() <= 20 * eps(dtype) * np.abs(wanted).max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_with_cancellation_satisfy_their_equations(dtype):
    """Of a random walk the values are at times much smaller than those of the chunk before."""
    rows, longest = 40000, 400  # a line of chunks of at most 400 entries
    for seed in range(5):
        steps = np.random.default_rng(seed).standard_normal(rows).astype(dtype)
        x = linear_recurrence(1.0, steps)
        before = np.concatenate(([0], x[:-1]))
        terms = np.abs(before) + np.abs(steps)
        error = np.abs(x.astype(np.longdouble) - before - steps) / eps(dtype)
        starts = error > 2 * terms
        assert starts.sum() < 128
        nearby = [terms[max(0, i - longest) : i + 1].max() for i in np.flatnonzero(starts)]
        assert (error[starts] < 64 * np.array(nearby)).all()


@pytest.mark.parametrize("rows", [1000, LONG])
def test_filters_are_those_of_scipy(rows):
    lfilter = pytest.importorskip("scipy.signal").lfilter  # which takes seconds to import
    rng = np.random.default_rng(0)
    signal = rng.standard_normal((3, rows))

    for pole in (0.5, -0.9, 0.999, 1.0):
        x = linear_recurrence(pole, signal)
        wanted = lfilter([1], [1, -pole], signal)
        assert np.abs(x - wanted).max() <= 1e-13 * np.abs(wanted).max()
    for radius, angle in ((0.9, 0.3), (0.999, 0.01), (0.99, 3.0)):
        a, c = 2 * radius * np.cos(angle), -(radius**2)
        x = linear_recurrence(a, signal, second=c)
        wanted = lfilter([1], [1, -a, -c], signal)
        assert np.abs(x - wanted).max() <= 1e-13 * np.abs(wanted).max()


def test_lines_that_grow_are_computed_in_order():
    # A unit would overflow, or lose the digits of x, which stays at 1 by cancellation.
    x = linear_recurrence(2.0, np.full(LONG, -1.0), initial=1.0)
    assert (x == 1).all()
    grows = linear_recurrence(1.001, np.r_[1.0, np.zeros(LONG - 1)])
    assert np.allclose(grows, 1.001 ** np.arange(LONG), rtol=1e-10)
    batch = np.stack([np.full(LONG, -1.0), np.full(LONG, 1.0)])
    both = linear_recurrence(np.array([[2.0], [0.5]]), batch, initial=np.array([1.0, 2.0]))
    assert (both == [[1], [2]]).all()


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("rows", [300, LONG])
def test_bits_depend_on_the_line_alone(rows, order):
    rng = np.random.default_rng(1)
    a, b, second, initial = operands(rng, (11, rows), np.float64, order)
    given = tuple(initial) if order == 2 else initial[0]
    x = linear_recurrence(a, b, second=second, initial=given, threads=1)

    assert (x == linear_recurrence(a, b, second=second, initial=given, threads=2)).all()
    columns = [None if v is None else np.asfortranarray(v) for v in (a, b, second)]
    alike = linear_recurrence(columns[0], columns[1], second=columns[2], initial=given)
    assert (x == alike).all()
    one = [None if v is None else v[3] for v in (a, b, second)]
    states = tuple(v[3] for v in initial) if order == 2 else initial[0][3]
    assert (x[3] == linear_recurrence(one[0], one[1], second=one[2], initial=states)).all()


def test_coefficients_broadcast_and_operands_keep_their_values():
    rng = np.random.default_rng(2)
    b = rng.standard_normal((4, 6, 50))
    line = rng.uniform(-0.9, 0.9, 50)
    whole = np.broadcast_to(line, b.shape)
    wanted = by_loop(whole, b)

    assert np.allclose(linear_recurrence(line, b), wanted, rtol=1e-13, atol=1e-13)
    steps = linear_recurrence(line[::-1], b[..., ::-1], reverse=True)
    assert np.allclose(steps[..., ::-1], wanted, rtol=1e-13, atol=1e-13)
    rows = rng.uniform(-0.9, 0.9, (6, 1))
    assert np.allclose(
        linear_recurrence(rows, b), by_loop(np.broadcast_to(rows, b.shape), b), atol=1e-13
    )
    out, kept = np.empty_like(b), b.copy()
    assert linear_recurrence(line, b, out=out) is out
    assert (b == kept).all()
    assert linear_recurrence(line, b, out=b) is b
    assert (b == out).all()
    assert linear_recurrence(0.5, np.zeros((3, 0))).shape == (3, 0)
    assert linear_recurrence(0.5, np.zeros((0, 3))).shape == (0, 3)


def test_dtypes_promote():
    b = np.ones(5, np.float32)

    assert linear_recurrence(0.5, b).dtype == np.float32
    assert linear_recurrence(np.float64(0.5), b).dtype == np.float64
    assert linear_recurrence(1, np.ones(5, int)).tolist() == [1, 2, 3, 4, 5]
    turned = linear_recurrence(0.5, b * 1j, initial=2.0)
    assert turned.dtype == np.complex64
    assert np.allclose(turned, by_loop(np.full(5, 0.5), b * 1j, None, [np.array(2.0 + 0j)]))


@pytest.mark.parametrize("rows", [20, LONG])
def test_values_that_are_not_finite_spread_forwards_only(rows):
    b = np.ones((3, rows))
    b[1, 7] = np.nan
    x = linear_recurrence(0.5, b)

    assert np.isnan(x[1, 7:]).all()
    assert np.isfinite(x[1, :7]).all()
    assert np.isfinite(x[[0, 2]]).all()
    message = r"linear_recurrence: b is nan at batch index \(1,\), row 7"
    with pytest.raises(ValueError, match=message):
        linear_recurrence(0.5, b, check_finite=True)


def test_errors_name_the_argument():
    b = np.ones((4, 5))

    with pytest.raises(ValueError, match=r"a has 4 entries, but the systems along axis 1 have 5"):
        linear_recurrence(np.ones(4), b)
    with pytest.raises(ValueError, match=r"initial must be a pair \(x\[-1\], x\[-2\]\)"):
        linear_recurrence(0.5, b, second=0.1, initial=1.0)
    with pytest.raises(ValueError, match="a pair needs second"):
        linear_recurrence(0.5, b, initial=(1.0, 2.0))
    with pytest.raises(ValueError, match=r"initial must broadcast to \(4,\)"):
        linear_recurrence(0.5, b, initial=np.ones(3))
    with pytest.raises(ValueError, match="b must have at least one dimension"):
        linear_recurrence(0.5, 1.0)
    with pytest.raises(TypeError, match="a: need float32"):
        linear_recurrence(np.array(["x"] * 5), b)
    with pytest.raises(TypeError, match="reverse"):
        linear_recurrence(0.5, b, reverse="yes")
