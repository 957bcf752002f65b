"""Arrays with masks, units or tasks are refused by name, and the message says what to write."""

import importlib.util

import numpy as np
import pytest

import pysolvers
from pysolvers import CubicSpline, FastPoisson, factor_tridiagonal, solve_tridiagonal


class Masked(np.ndarray):
    """Stands for the masked arrays of astropy."""

    mask = unmasked = None


class Quantity(np.ndarray):
    """Stands for the quantities of astropy."""

    unit = "m / s"

    def to_value(self, unit):
        return self.view(np.ndarray)


class Unyt(np.ndarray):
    """Stands for the arrays of unyt."""

    units = "km"
    to_value = Quantity.to_value


class Pint:
    """Stands for the quantities of pint, which are no arrays."""

    units = "meter"
    magnitude = np.ones(5)

    def __array__(self, dtype=None, copy=None):
        return self.magnitude


class Dask:
    """Stands for the arrays of dask, and for labelled arrays of them."""

    shape, ndim = (5,), 1

    def __dask_graph__(self):
        return {"a": 1}

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("the array was computed")


class Labelled(Pint):
    """Stands for arrays with labels, in memory, which can have any attributes."""

    units = "K"
    magnitude = property()

    def __dask_graph__(self):
        return None

    def __array__(self, dtype=None, copy=None):
        return np.ones(5)


ONES = np.ones(5)
SPECIAL = [
    pytest.param(np.ma.ones(5), r"\.filled\(", id="numpy masked"),
    pytest.param(ONES.view(Masked), r"\.filled\(", id="masked"),
    pytest.param(ONES.view(np.matrix), r"numpy.asarray\(", id="matrix"),
    pytest.param(ONES.view(Quantity), r"\.to_value\('m / s'\)", id="quantity"),
    pytest.param(ONES.view(Unyt), r"\.to_value\('km'\)", id="unyt"),
    pytest.param(Pint(), r"\.to\('meter'\).magnitude", id="pint"),
    pytest.param(Dask(), r"apply_ufunc\(..., dask='parallelized'\)", id="dask"),
]


def calls(special):
    """Yield the name of the argument and a call that gets it."""
    for place, name in enumerate(("lower", "diag", "upper", "rhs")):
        operands = [0.5, 4.0, 0.5, ONES]
        operands[place] = special
        yield name, solve_tridiagonal, operands
        yield name, lambda *a: solve_tridiagonal(*a, axis=0, return_info=True), operands
        if place < 3:
            yield name, lambda *a: factor_tridiagonal(*a[:3], rows=5), operands
    yield "rhs", factor_tridiagonal(0.5, 4.0, 0.5, rows=5).solve, [special]
    yield "y", CubicSpline, [np.arange(5.0), special]
    yield "x", CubicSpline, [special, ONES]
    yield "x", CubicSpline(np.arange(5.0), ONES), [special]
    yield "f", FastPoisson((5,), 0.25, boundary=0.0).solve, [special]


@pytest.mark.parametrize(("special", "advice"), SPECIAL)
def test_every_function_refuses_what_is_no_plain_array(special, advice):
    for name, call, arguments in calls(special):
        with pytest.raises(TypeError, match=f"^{name} must be a plain array.*{advice}"):
            call(*arguments)


@pytest.mark.parametrize(("special", "advice"), SPECIAL)
def test_jax_refuses_what_is_no_plain_array(special, advice):
    pytest.importorskip("jax")
    from pysolvers import jax as functions

    spline = functions.CubicSpline(np.arange(5.0), ONES)
    for name, call, arguments in [
        ("diag", functions.solve_tridiagonal, [1.0, special, 1.0, ONES]),
        ("rhs", functions.factor_tridiagonal(1.0, 4.0, 1.0, rows=5).solve, [special]),
        ("y", functions.CubicSpline, [np.arange(5.0), special]),
        ("x", spline, [special]),
        ("u", lambda u: functions.heat_step(u, dt=0.1, spacing=0.1), [special]),
    ]:
        with pytest.raises(TypeError, match=f"{name} must be a plain array.*{advice}"):
            call(*arguments)


@pytest.mark.parametrize("kind", [Masked, Quantity, Unyt, np.matrix])
def test_out_is_a_plain_array(kind):
    out = np.zeros((1, 5)).view(kind)

    with pytest.raises(TypeError, match=f"out must be an ndarray, got {kind.__name__}"):
        solve_tridiagonal(0.5, 4.0, 0.5, np.ones((1, 5)), out=out)
    assert not np.asarray(out).any()


def test_what_to_write_for_masked_rows_solves_the_other_rows(rng):
    """Masked rows stand alone, as the advice for rhs and diag says, and their solution is 0."""
    mask = np.zeros((3, 9), bool)
    mask[:, 6:] = True
    values = rng.uniform(1, 2, (3, 9))
    lower, diag, upper, rhs = (
        np.ma.array(np.where(mask, np.nan, values + extra), mask=mask) for extra in (0, 4, 0, 0)
    )

    x = solve_tridiagonal(lower.filled(0), diag.filled(1), upper.filled(0), rhs.filled(0))

    inner = [a.data[:, :6] for a in (lower, diag, upper, rhs)]
    np.testing.assert_allclose(x[:, :6], solve_tridiagonal(*inner), rtol=1e-13)
    assert not x[:, 6:].any()


def test_labelled_arrays_in_memory_are_taken():
    np.testing.assert_array_equal(
        solve_tridiagonal(0.5, 4.0, 0.5, Labelled()), solve_tridiagonal(0.5, 4.0, 0.5, ONES)
    )


@pytest.mark.skipif(importlib.util.find_spec("astropy") is None, reason="needs astropy")
def test_astropy():
    from astropy import units
    from astropy.utils.masked import Masked as MaskedArray

    for special in (ONES * units.m, MaskedArray(ONES, mask=ONES > 2)):
        for _, call, arguments in calls(special):
            with pytest.raises(TypeError, match="must be a plain array"):
                call(*arguments)
    plain = (ONES * units.km).to_value("m")
    assert solve_tridiagonal(0.0, 2.0, 0.0, plain)[0] == 500
    filled = MaskedArray(ONES, mask=[False] * 4 + [True]).filled(0)
    assert solve_tridiagonal(0.0, 1.0, 0.0, np.asarray(filled))[4] == 0


@pytest.mark.skipif(importlib.util.find_spec("pint") is None, reason="needs pint")
def test_pint():
    import pint

    quantity = pint.UnitRegistry().Quantity(ONES, "km")
    for _, call, arguments in calls(quantity):
        with pytest.raises(TypeError, match=r"\.to\('kilometer'\)\.magnitude"):
            call(*arguments)


@pytest.mark.skipif(importlib.util.find_spec("dask") is None, reason="needs dask")
def test_dask_and_the_recipe_for_it():
    array = pytest.importorskip("dask.array")
    xarray = pytest.importorskip("xarray")
    rhs = np.random.default_rng(0).uniform(1, 2, (6, 5))
    lazy = array.from_array(rhs, chunks=(2, 5))

    for special in (lazy, xarray.DataArray(lazy, dims=("column", "depth"))):
        with pytest.raises(TypeError, match="dask='parallelized'"):
            solve_tridiagonal(0.5, 4.0, 0.5, special)
    expected = solve_tridiagonal(0.5, 4.0, 0.5, rhs)
    blocks = array.map_blocks(lambda b: solve_tridiagonal(0.5, 4.0, 0.5, b), lazy)
    np.testing.assert_array_equal(blocks.compute(), expected)
    found = xarray.apply_ufunc(
        lambda b: solve_tridiagonal(0.5, 4.0, 0.5, b),
        xarray.DataArray(lazy, dims=("column", "depth")),
        dask="parallelized",
        output_dtypes=[float],
    )
    np.testing.assert_array_equal(found.compute().data, expected)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.ones(5, np.float16), r"got float16: write rhs.astype\(numpy.float32\)"),
        (np.ones(5, object), r"got object: write rhs.astype\(float\)"),
        (np.ones(5, np.longdouble), r"write rhs.astype\(float\)"),
        (np.ones(5, np.clongdouble), r"write rhs.astype\(complex\)"),
        (["1", "2"], r"write numpy.array\(rhs, float\)"),
        (np.arange("2000", "2005", dtype="M8[Y]"), r"write \(rhs - rhs\[0\]\) / numpy.timedelta64"),
    ],
)
def test_other_dtypes_are_refused_with_what_to_write(value, text):
    if isinstance(value, np.ndarray) and value.dtype in (np.float64, np.complex128):
        pytest.skip("long double is double on this machine")
    with pytest.raises(TypeError, match=text):
        solve_tridiagonal(0.5, 4.0, 0.5, value)


def test_none_is_no_diagonal_of_zeros():
    with pytest.raises(TypeError, match=r"lower: .* got None: pass 0.0 for a diagonal of zeros"):
        solve_tridiagonal(None, 4.0, 0.5, ONES)
    with pytest.raises(TypeError, match=r"upper is missing or None: .*0.0 for a diagonal"):
        solve_tridiagonal(0.5, 4.0, None, ONES)


def test_other_names_of_devices_are_refused():
    with pytest.raises(ValueError, match="'gpus'"):
        pysolvers.solve_tridiagonal(0.5, 4.0, 0.5, ONES, device="gpus")
