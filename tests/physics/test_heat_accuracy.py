"""Warnings of steps that are too large for the slowest wave, and the step that is suggested."""

import warnings

import numpy as np
import pytest

from pysolvers import HeatADI, Neumann, Robin

TOO_LARGE = "too large for the solution"
ENDS = {  # the slowest wave along an axis of length 1, as a function, and its rate
    "values": (0.0, lambda s: np.sin(np.pi * s), np.pi**2),
    "fluxes": (Neumann(), lambda s: np.cos(np.pi * s), np.pi**2),
    "value and flux": ((0.0, Neumann()), lambda s: np.sin(np.pi * s / 2), np.pi**2 / 4),
    "periodic": ("periodic", lambda s: np.cos(2 * np.pi * s), 4 * np.pi**2),
}


def line(kind, nodes):
    return np.arange(nodes) / (nodes - (kind != "periodic"))


def solver_of(kinds, dt, shape=(41, 41, 41), **options):
    """A box of lengths 1 whose initial field is the product of the slowest waves."""
    kinds, shape = dict(zip("xyz", kinds, strict=False)), shape[: len(kinds)]
    boundary, field = {}, np.ones(())
    for axis, kind in kinds.items():
        given, wave, _ = ENDS[kind]
        pair = given if isinstance(given, tuple) else (given, given)
        if kind == "periodic":
            boundary[axis] = given
        else:
            boundary |= {axis + "-": pair[0], axis + "+": pair[1]}
        field = np.multiply.outer(wave(line(kind, shape[0])), field)
    extent = ((0.0, 1.0),) * len(kinds)
    return HeatADI(shape, extent=extent, dt=dt, boundary=boundary, initial=field, **options)


@pytest.mark.parametrize("scheme", ["peaceman-rachford", "douglas-gunn"])
@pytest.mark.parametrize("damped", [False, True])
@pytest.mark.parametrize("x", ENDS)
@pytest.mark.parametrize("y", ["values", "fluxes"])
def test_suggested_step_has_the_error_that_was_asked_for(scheme, damped, x, y):
    """The error of one step of the slowest wave, measured; its rate is that of the equation."""
    error = 0.01
    options = {"scheme": scheme, "damped_start": damped}
    dt = solver_of((x, y), 1e-3, **options).suggest_dt(error)
    solver = solver_of((x, y), dt, **options)
    # Where values are given along one axis only, and where fluxes are along both, the slowest
    # wave is constant along an axis.
    rates = {"x": ENDS[x][2], "y": ENDS[y][2]}
    free = [a for a, kind in (("x", x), ("y", y)) if kind in ("fluxes", "periodic")]
    if len(free) == 2:
        free = [max(rates, key=rates.get)]
    field = solver.u.copy()
    for axis in free:
        place = "yx".index(axis)
        field[...] = field.take([0], axis=place)
    boundary = {"x": ENDS[x][0], "y": ENDS[y][0]}
    boundary = {
        axis + end: one[k] if isinstance(one, tuple) else one
        for axis, one in boundary.items()
        for k, end in enumerate("-+")
    }
    slow = HeatADI(
        field.shape,
        extent=((0.0, 1.0),) * 2,
        dt=dt,
        boundary=boundary,
        initial=field,
        **options,
    )
    exact = np.exp(-dt * sum(rate for axis, rate in rates.items() if axis not in free))
    at = np.unravel_index(np.abs(field).argmax(), field.shape)

    found = slow.step().u[at] / field[at]

    assert abs(found - exact) == pytest.approx(error, rel=0.15)


def test_rates_of_arrays_exchange_and_three_axes():
    k = np.array([1.0, 3.0]) * np.ones((4, 1))
    plane = HeatADI((4, 2), spacing=(2.0, 0.5), dt=0.1, diffusivity=k, boundary=Neumann())
    assert plane.diffusion_number == pytest.approx(0.1 * 3 / 0.25)
    assert plane._accuracy.rates == pytest.approx((2 * np.pi**2 / 4, 0))  # 2 is the mean of k
    for coefficient, rate in ((0.3, 0.0), (3.0, (np.pi / 2) ** 2)):
        sides = {"x-": Robin(coefficient), "x+": Neumann(), "y": 0.0}
        plate = HeatADI((5, 5), 0.25, 0.01, boundary=sides)
        assert plate._accuracy.rates == pytest.approx((rate, np.pi**2))
    box = solver_of(("values", "fluxes", "value and flux"), 0.01, shape=(5, 5, 5))
    assert box._accuracy.rates == pytest.approx((np.pi**2, 0, np.pi**2 / 4))


@pytest.mark.parametrize("damped", [False, True])
def test_large_steps_are_a_warning_once_for_each_length(damped):
    solver = solver_of(("values", "values"), 0.4, damped_start=damped)
    with pytest.warns(RuntimeWarning, match=TOO_LARGE) as found:
        solver.step()
    assert found[0].filename == __file__
    factor = float(str(found[0].message).split("slowest wave by ")[1].split(",")[0])
    middle = solver.u.max()
    assert middle == pytest.approx(factor, rel=0.02)
    solver.step(3)  # no further one: warnings are errors here
    solver.dt = solver.suggest_dt()
    solver.step(3)
    solver.dt = 0.3
    with pytest.warns(RuntimeWarning, match=TOO_LARGE):
        solver.run(solver.time + 1)


def test_an_error_instead_of_the_warning_leaves_the_state():
    solver = solver_of(("values", "values"), 0.2, damped_start=True)
    before = solver.u.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match=TOO_LARGE):
            solver.step()
    np.testing.assert_array_equal(solver.u, before)
    assert solver.steps == 0


@pytest.mark.parametrize("error", [0.0, 1.0, -1.0, np.nan])
def test_errors_between_0_and_1(error):
    with pytest.raises(ValueError, match="error must be"):
        solver_of(("values", "values"), 0.01).suggest_dt(error)


def test_extreme_arguments_are_clear_errors():
    options = {"shape": (5, 5), "spacing": 1.0, "dt": 1.0, "boundary": 0.0, "dtype": np.float32}
    array = np.full((5, 5), 1e200)
    for wrong, text in (
        ({"spacing": 1e200}, "spacing must be between 1e-150 and 1e"),
        ({"spacing": 1e-200}, "spacing must be between 1e-150 and 1e"),
        ({"dt": 1e308, "dtype": np.float64, "spacing": 1e-9}, "k dt/h\\^2 must be between"),
        ({"dt": 1e39}, "k dt/h\\^2 must be between .* float32"),
        ({"dt": 1e-39}, "k dt/h\\^2 must be between .* float32"),
        ({"diffusivity": array, "dt": 1e-250, "dtype": np.float64}, "diffusivity in an array must"),
        ({"boundary": Robin(1e38), "dt": 1e5}, "coefficient of Robin must be at most"),
    ):
        with pytest.raises(ValueError, match=text):
            HeatADI(**options | wrong)
    solver = HeatADI(**options | {"dtype": np.float64})
    with pytest.raises(ValueError, match="k dt/h\\^2 must be between"):
        solver.dt = 1e308
    assert solver.dt == 1.0


def test_spacing_by_position_is_refused_where_its_order_is_not_clear():
    others = {"boundary": 0.0, "damped_start": False}
    text = (
        r"order of shape; give spacing=\(hx, hy\) .* HeatADI\(\(5, 6\), spacing=\(0.2, 0.1\), dt="
    )
    with pytest.raises(TypeError, match=text):
        HeatADI((5, 6), (0.1, 0.2), 1e-3, **others)
    with pytest.raises(TypeError, match=text):
        HeatADI((5, 6), (0.1, 0.2), dt=1e-3, **others)
    for solver in (
        HeatADI((5, 6), (0.1, 0.1), 1e-3, **others),
        HeatADI((5, 6), spacing=(0.1, 0.2), dt=1e-3, **others),
    ):
        assert solver.x[1] == 0.1


def test_messages_of_functions_and_forms_that_are_not_possible():
    import math

    options = {"shape": (5, 6), "spacing": 1.0, "dt": 0.1, "boundary": 0.0}
    for name in ("initial", "source", "diffusivity"):
        with pytest.raises(TypeError, match=f"{name}: functions get arrays: use numpy.sin"):
            HeatADI(**options | {name: lambda x, y: math.sin(x) + 2 * y})
    with pytest.raises(TypeError, match=r"among x, y, got T: write lambda x, y: \.\.\.$"):
        HeatADI(**options | {"heat_capacity": lambda T: 1 + T})
    with pytest.raises(TypeError, match="'boundary'"):
        HeatADI((5, 6), 1.0, 0.1)
    with pytest.raises((TypeError, ValueError), match="spacing must be") as caught:
        HeatADI((5, 6), (np.arange(5.0), np.arange(6.0)), 0.1, boundary=0.0)
    assert "by position" not in str(caught.value)
    assert "hx=2, hy=0.25" in repr(
        HeatADI((129, 65), extent=((0, 128), (0, 32)), dt=0.1, boundary=0)
    )
