"""`linear_recurrence` on a device has the values of the CPU, for the arrays of every library.

The device is made of protected host memory or, where there is one, a GPU.
"""

import numpy as np
import pytest

from pysolvers import linear_recurrence

DTYPES = ("float32", "float64", "complex64", "complex128")
SHAPES = [((5,), 0), ((3, 40), 1), ((40, 3), 0), ((70, 33, 2), 0), ((2, 300, 5), 1), ((2, 1300), 1)]


def draw(rng, shape, dtype):
    values = rng.uniform(-1, 1, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.uniform(-1, 1, shape)
    return values.astype(dtype)


def near(found, expected):
    bound = 200 * np.finfo(expected.dtype).eps * max(1, np.abs(expected).max())
    assert found.dtype == expected.dtype
    assert np.abs(found - expected).max() <= bound


@pytest.mark.parametrize(
    ("number", "order", "reverse"), [(0, 1, False), (1, 2, True), (2, 2, False)]
)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_arrays_stay_on_the_device(device_library, rng, shape, axis, number, order, reverse):
    library = device_library
    dtype = DTYPES[(SHAPES.index((shape, axis)) + number) % 4]
    batch = shape[:axis] + shape[axis + 1 :]
    a, b = (draw(rng, shape, dtype) * np.dtype(dtype).type(0.4) for _ in range(2))
    options = {"axis": axis, "reverse": reverse, "initial": draw(rng, batch, dtype)}
    there = {**options, "initial": library.array(options["initial"])}
    if order == 2:
        second = draw(rng, shape, dtype) * np.dtype(dtype).type(0.4)
        options |= {"second": second, "initial": (options["initial"], 2.0)}
        there |= {"second": library.array(second), "initial": (there["initial"], 2.0)}

    x = linear_recurrence(library.array(a), library.array(b), **there)

    assert library.is_kind(x)
    near(library.get(x), linear_recurrence(a, b, **options))


def test_shared_coefficients_and_results_in_place(device_library, rng):
    library = device_library
    b, a = rng.standard_normal((6, 50)), rng.uniform(-0.9, 0.9, 50)
    for given in (0.5, a):
        to = library.array(b)
        there = given if np.ndim(given) == 0 else library.array(given)
        x = linear_recurrence(there, to, out=to if library.mutable else None)
        assert x is to or not library.mutable
        near(library.get(x), linear_recurrence(given, b))


def test_values_that_are_not_finite_spread_forwards_only(device_library):
    library = device_library
    b = np.ones((3, 500))
    b[1, 77] = np.nan
    x = library.get(linear_recurrence(0.5, library.array(b)))
    assert np.isnan(x[1, 77:]).all()
    assert np.isfinite(x[1, :77]).all()
    assert np.isfinite(x[[0, 2]]).all()
