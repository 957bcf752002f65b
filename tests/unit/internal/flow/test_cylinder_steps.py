"""The stages of a step of the cylinder against formulas of NumPy and transforms of SciPy."""

import numpy as np
import pytest

from pysolvers import _core
from pysolvers.flow import SquareCylinder
from pysolvers.flow.cylinder._body_poisson import BodyPoisson

pytestmark = pytest.mark.filterwarnings("ignore::pysolvers.CoarseGridWarning")

# Intervals along y: 16 times 1, 2, 3, 5, 7 and 25, that is how often they are halved; along x rows
# and panels of columns that are shorter and longer than the vectors.
SHAPES = [(17, 21), (33, 41), (49, 61), (81, 91), (113, 121), (401, 61)]


def solver(shape, **options):
    return SquareCylinder(60, shape, length=10, **options)


@pytest.mark.parametrize("steady", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_psi_is_that_of_scipy(shape, steady):
    flow = solver(shape, steady=steady).step(3)
    rows, columns = flow._grid.box
    direct = BodyPoisson(flow._grid, 1, free_outlet=steady)
    psi, omega, body = flow.psi.copy(), flow.omega, flow._grid.body
    sources = omega[rows.nodes, columns.nodes].sum() - omega[body].sum()
    given = {"value": 0.0} if steady else {"circulation": flow.circulation, "sources": sources}
    psi[1:-1, 1 : None if steady else -1] = np.nan

    value = direct.solve(omega, psi, **given)

    assert np.abs(flow.psi - psi).max() < 1e-12
    assert flow._state.value == pytest.approx(value, abs=1e-13)


@pytest.mark.parametrize("options", [{}, {"cylinder": "fixed", "wall": "jensen"}])
def test_single_precision_is_double_but_for_rounding(options):
    for shape in ((33, 41), (49, 61)):
        exact, rounded = (solver(shape, dtype=t, **options).step(5) for t in ("f8", "f4"))

        assert np.abs(exact.psi - rounded.psi).max() < 2e-5
        assert rounded.psi.dtype == np.float32


def momentum(flow):
    """Return drag and lift of every fourth step, by the balance of NumPy."""
    found = []
    for _ in range(3):
        flow.step(4)
        forces = flow.forces
        found.append((forces.drag, forces.lift, forces.surface_drag, forces.surface_lift))
    return np.array(found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_history_has_the_forces_of_the_balance(dtype):
    flow = solver((33, 41), dtype=dtype)
    expected = momentum(flow)
    history = flow.result().history

    names = ("drag", "lift", "surface_drag", "surface_lift")
    found = np.stack([getattr(history, name) for name in names], axis=1)

    np.testing.assert_allclose(found, expected, atol=1e-11)


def test_circulation_is_that_of_adams_and_bashforth():
    flow = solver((49, 61)).step(1)
    values, rates = [flow.circulation], []
    for dt in (flow.dt, 0.7 * flow.dt):
        flow.dt = dt
        flow.step()
        values.append(flow.circulation)
        rates.append((flow._state.rate, dt))
    (before, dt_old), (rate, dt) = rates

    expected = values[1] + dt * (rate + dt / (2 * dt_old) * (rate - before))

    assert rate != before
    assert values[2] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("psi", ["fast", "lines"])
@pytest.mark.parametrize("steady", [False, True])
def test_threads_do_not_change_a_bit(psi, steady):
    found = [
        solver((113, 121), psi_solver=psi, steady=steady, threads=t).step(5) for t in (1, 2, 3)
    ]

    for other in found[1:]:
        np.testing.assert_array_equal(other.psi, found[0].psi)
        np.testing.assert_array_equal(other.omega, found[0].omega)
        np.testing.assert_array_equal(other.result().history.u, found[0].result().history.u)
        assert other.circulation == found[0].circulation


def test_result_tells_the_threads():
    assert solver((113, 121), threads=1).step(1).result().threads == 1
    assert solver((113, 121), threads=2).step(1).result().threads == 2


def test_change_of_a_steady_step_is_that_of_psi():
    flow = solver((33, 41), steady=True).step(3)
    before = flow.psi.copy()
    flow.step()

    found = flow.result().history.change[-1]

    assert found == pytest.approx(np.abs(flow.psi - before).max() / flow.dt, rel=1e-13)


@pytest.fixture
def call(monkeypatch):
    """Arguments of a call of the backend for one step."""
    calls, step = [], _core.cylinder_step
    flow = solver((33, 41), psi_solver="lines")

    def recorded(*arguments):
        calls.append((flow, arguments))  # the solver owns the memory
        return step(*arguments)

    monkeypatch.setattr(_core, "cylinder_step", recorded)
    flow.step()
    monkeypatch.undo()
    return list(calls[0][1]), flow


SWITCHES, NUMBERS, SHIFTS, RANGES, SIZES, FIELDS, SCALARS, ADDRESSES = range(8)


@pytest.mark.parametrize(
    ("place", "change", "kind", "message"),
    [
        (SHIFTS, lambda s: (1.0,) * 33, ValueError, "shifts: need at most 32"),
        (FIELDS, lambda f: (f[0][:-16].copy(), *f[1:]), ValueError, "one shape"),
        (FIELDS, lambda f: (f[0].astype(int), *f[1:]), TypeError, "psi: need an array of float32"),
        (FIELDS, lambda f: (f[0].astype("f4"), *f[1:]), TypeError, "psi_old"),
        (SCALARS, lambda s: s[:2].copy(), ValueError, "scalars: need 3 elements"),
        (ADDRESSES, lambda a: a[1:], ValueError, "addresses: need 12"),
    ],
)
def test_binding_refuses_operands(call, place, change, kind, message):
    arguments, _ = call
    arguments[place] = change(arguments[place])

    with pytest.raises(kind, match=message):
        _core.cylinder_step(*arguments)


def without(table):
    """Return addresses without those of a table."""
    code = _core.CYLINDER_TABLES[table]
    return lambda a: (*a[:code], 0, *a[code + 1 :])


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (NUMBERS, lambda n: (*n[:3], 0.0, *n[4:])),
        (NUMBERS, lambda n: (*n[:4], np.inf, *n[5:])),
        (RANGES, lambda r: (0, *r[1:])),
        (SHIFTS, lambda s: ()),
        (SIZES, lambda s: (-1, *s[1:])),
        (ADDRESSES, without("sines")),
        (ADDRESSES, without("unit_psi")),
        (FIELDS, lambda f: tuple(a[:-1].copy() for a in f)),
    ],
)
def test_contract_refuses_numbers(call, place, change):
    arguments, _ = call
    fields = arguments[FIELDS]
    before = [a.copy() for a in fields]
    arguments[place] = change(arguments[place])

    status, report = _core.cylinder_step(*arguments)

    assert _core.STATUS[status][0] == "PS_BAD_ARGUMENT"
    assert report is None
    for now, then in zip(fields, before, strict=True):
        np.testing.assert_array_equal(now, then)
