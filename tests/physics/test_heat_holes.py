"""Holes: dense matrices, exact solutions, balances, pictures, files, errors."""

import heat_matrices as dense
import matplotlib.pyplot as plt
import numpy as np
import pytest

from pysolvers import Dirichlet, HeatADI, Neumann, Robin
from pysolvers.distributed import Group, Slab

LARGE_STEPS = pytest.mark.filterwarnings(
    "ignore:HeatADI.*too large for the solution:RuntimeWarning",
    "ignore:HeatADI.*can leave the range:RuntimeWarning",
    "ignore:HeatADI.*can multiply waves:RuntimeWarning",
)
SIDES = {
    "rod": ((14,), {"x-": ("R", 2.0, 0.7), "x+": ("N", 0.2)}),
    "plate": ((7, 9), {"x-": ("R", 2.0, 0.7), "x+": ("D",), "y-": ("N", 1.0), "y+": ("N", 0.0)}),
    "box": (
        (5, 6, 5),
        {
            "x-": ("N", 0.3),
            "x+": ("N", 0.3),
            "y-": ("D",),
            "y+": ("R", 1.0, 0.1),
            "z-": ("P",),
            "z+": ("P",),
        },
    ),
}
CONDITIONS = {"D": lambda: Dirichlet(0.25), "N": Neumann, "R": Robin, "P": lambda: "periodic"}


def problem(name, temperature, places):
    """A random problem with holes: options of `HeatADI`, the start, dense matrices."""
    shape, sides = SIDES[name]
    rng = np.random.default_rng(11)
    holes = rng.random(shape) < 0.25
    if places == "inside":
        for axis in range(len(shape)):
            np.moveaxis(holes, axis, 0)[[0, -1]] = False
    k, q, start = rng.uniform(0.3, 3, shape), rng.normal(size=shape), rng.normal(size=shape)
    is_pinned = temperature is not None
    lines = [0.2 * np.arange(n) for n in shape[::-1]]
    period = {axis: 0.2 * n for axis, n in enumerate(shape[::-1])}
    own_k = k if is_pinned else np.where(holes, 0.0, k)
    *matrices, given = dense.matrices(lines, sides, own_k, np.where(holes, np.inf, 1.0), q, period)
    if is_pinned:
        start[holes] = temperature
    start[given.reshape(shape)] = 0.25
    options = {
        "shape": shape,
        "spacing": 0.2,
        "diffusivity": k,
        "holes": holes,
        "hole_temperature": temperature,
        "source": q,
        "initial": start,
        "boundary": {side: CONDITIONS[kind](*rest) for side, (kind, *rest) in sides.items()},
    }
    return options, start, matrices, given | holes.ravel()


@pytest.mark.parametrize("places", ["inside", "anywhere"])
@pytest.mark.parametrize("temperature", [None, 1.5], ids=["insulated", "given"])
@pytest.mark.parametrize("name", SIDES)
@LARGE_STEPS
def test_steps_are_those_of_dense_matrices(backend, name, temperature, places):
    options, start, matrices, given = problem(name, temperature, places)
    dt = 0.05
    split = ("crank-nicolson", "peaceman-rachford", "douglas-gunn")[start.ndim - 1]

    def made(scheme, damped):
        return HeatADI(**options, dt=dt, scheme=scheme, damped_start=damped, device=backend)

    expected = start
    for _ in range(3):
        expected = dense.split_step(*matrices, expected, dt)
    solver = made(split, False).step(3)
    np.testing.assert_allclose(solver.u, expected, rtol=0, atol=1e-12)
    is_by_kernels = temperature is None and places == "inside"
    assert (solver.result().kernel != "arrays") == is_by_kernels
    expected = start
    for _ in range(3):
        expected = dense.implicit_step(*matrices, expected, dt)
    np.testing.assert_allclose(made("implicit", False).step(3).u, expected, rtol=0, atol=1e-7)
    expected = dense.damped_step(*matrices, start, dt)
    np.testing.assert_allclose(made("implicit", True).step().u, expected, rtol=0, atol=1e-7)
    if np.linalg.cond(sum(matrices[0]) + np.diag(np.where(given, 1.0, 0.0))) < 1e8:
        expected = dense.steady_state(*matrices, given, start)
        found = made("auto", False).solve_steady().u
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)


def test_pipe_in_a_block_has_order_two():
    # The temperature log r is that of a pipe; the nodes in the pipe have it as well.
    def error(n):
        solver = HeatADI(
            (n, n),
            extent=((-1, 1), (-1, 1)),
            dt=1.0,
            holes=lambda x, y: x**2 + y**2 < 0.16,
            hole_temperature=lambda x, y: 0.5 * np.log(np.maximum(x**2 + y**2, 0.01)),
            boundary=lambda x, y: 0.5 * np.log(x**2 + y**2),
        )
        field = solver.solve_steady()
        exact = 0.5 * np.log(np.maximum(field.x**2 + field.y[:, None] ** 2, 0.01))
        return np.abs(field.u - exact).max()

    errors = [error(n) for n in (17, 33, 65)]
    assert (np.log2(np.divide(errors[:-1], errors[1:])) > 1.7).all(), errors


@pytest.mark.parametrize("scheme", ["auto", "peaceman-rachford", "implicit"])
@LARGE_STEPS
def test_insulated_slit_divides_a_plate(backend, scheme):
    k = np.random.default_rng(0).uniform(1, 2, (11, 15))
    options = {"dt": 0.02, "scheme": scheme, "device": backend, "damped_start": False}
    boundary = {"x-": 1.0, "x+": 0.0, "y": Neumann()}
    slit = np.zeros((11, 15), bool)
    slit[:, 7] = True
    whole = HeatADI(
        (11, 15), 0.1, diffusivity=k, holes=slit, initial=0.5, boundary=boundary, **options
    )

    whole.step(6)

    # The end of a part is half of a cell at a side, and a whole one at the slit: its own matrix.
    sides = {"x-": ("D",), "x+": ("N", 0.0), "y-": ("N", 0.0), "y+": ("N", 0.0)}
    left = k.copy()
    left[:, 7:] = 0
    lines = [0.1 * np.arange(15), 0.1 * np.arange(11)]
    *matrices, _ = dense.matrices(lines, sides, left, 1.0)
    expected = np.full((11, 15), 0.5)
    expected[:, 0] = 1
    step = dense.implicit_step if whole.result().scheme == "implicit" else dense.split_step
    for _ in range(6):
        expected = step(*matrices, expected, 0.02)
    np.testing.assert_allclose(whole.u[:, :7], expected[:, :7], rtol=0, atol=1e-7)
    np.testing.assert_allclose(whole.u[:, 7], 0.5, rtol=0, atol=1e-8)


@pytest.mark.parametrize("scheme", ["auto", "peaceman-rachford", "implicit"])
@pytest.mark.parametrize("places", ["inside", "anywhere"])
@LARGE_STEPS
def test_heat_balance(backend, scheme, places):
    rng = np.random.default_rng(4)
    holes = rng.random((13, 10)) < 0.2
    if places == "inside":
        holes[[0, -1]] = holes[:, [0, -1]] = False
    cells = 0.01 * np.outer(np.r_[0.5, np.ones(11), 0.5], np.r_[0.5, np.ones(8), 0.5])
    start, q = rng.random((13, 10)), rng.random((13, 10))
    options = {
        "shape": (13, 10),
        "spacing": 0.1,
        "dt": 0.1,
        "scheme": scheme,
        "holes": holes,
        "initial": start,
        "device": backend,
        "boundary": Neumann(),
    }
    closed, heated = HeatADI(**options), HeatADI(**options, source=q)
    begin, power = (cells * start)[~holes].sum(), (cells * q)[~holes].sum()

    assert closed.heat() == pytest.approx(begin, rel=1e-13)
    assert closed.step(20).heat() == pytest.approx(begin, rel=1e-10)
    assert heated.step(20).heat() == pytest.approx(begin + 2 * power, rel=1e-8)
    np.testing.assert_allclose(closed.u[holes], start[holes], rtol=0, atol=1e-8)
    with pytest.raises(ValueError, match=f"is {power:.4g}"):
        heated.solve_steady()


def test_steady_state_of_an_insulated_plate_keeps_the_mean():
    holes = np.zeros((9, 12), bool)
    holes[3:6, 4:7] = True
    q = np.where(np.arange(12) < 6, 1.0, -1.0) * np.ones((9, 1))
    cells = np.outer(np.r_[0.5, np.ones(7), 0.5], np.r_[0.5, np.ones(10), 0.5])
    cells[holes] = 0
    q[:, 6:] *= (cells * q)[:, :6].sum() / -(cells * q)[:, 6:].sum()
    start = np.random.default_rng(0).random((9, 12))
    solver = HeatADI((9, 12), 0.1, 0.1, holes=holes, source=q, initial=start, boundary=Neumann())

    found = solver.solve_steady().u

    sides = dict.fromkeys(("x-", "x+", "y-", "y+"), ("N", 0.0))
    lines = [0.1 * np.arange(12), 0.1 * np.arange(9)]
    matrices, rates, _ = dense.matrices(
        lines, sides, np.where(holes, 0.0, 1.0), np.where(holes, np.inf, 1.0), q
    )
    residual = (sum(matrices) @ found.ravel() + rates).reshape(9, 12)[~holes]
    np.testing.assert_allclose(residual, 0, atol=1e-8)
    assert (cells * found).sum() == pytest.approx((cells * start).sum(), rel=1e-10)
    np.testing.assert_allclose(found[holes], start[holes], rtol=0, atol=1e-12)


@LARGE_STEPS
def test_auto_keeps_the_range():
    holes = np.add.outer(np.arange(17), np.arange(17)) % 4 == 0
    options = {"dt": 50.0, "boundary": {"x-": 1.0, "x+": 0.0, "y": Neumann()}, "holes": holes}
    for temperature in (None, 0.0):
        solver = HeatADI((17, 17), 1.0, hole_temperature=temperature, **options)
        fields = np.array([solver.step().u.copy() for _ in range(10)])
        assert solver.result().scheme == "implicit"
        assert -1e-3 < fields.min() <= fields.max() < 1 + 1e-3


def test_results_and_files(tmp_path):
    data = {
        "boundary": {"x-": 1.0, "x+": 0.0, "y": Neumann()},
        "holes": lambda x, y: (x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.04,
        "hole_temperature": 7.0,
    }
    solver = HeatADI((11, 11), 0.1, 0.01, **data).step(3)
    holes = solver.result().holes
    assert holes[5, 5]
    assert not holes[0, 0]
    assert (solver.u[holes] == 7).all()
    assert f"holes: {holes.sum()} nodes, of a given temperature" in repr(solver)
    assert solver.hole_temperature == 7.0
    solver.save(tmp_path / "solver.npz")
    other = HeatADI.load(tmp_path / "solver.npz", **data)
    np.testing.assert_array_equal(other.step(2).u, solver.step(2).u)
    result = solver.result()
    result.save(tmp_path / "result.npz")
    np.testing.assert_array_equal(type(result).load(tmp_path / "result.npz").holes, holes)
    plt.close(result.plot(show=False).figure)
    with pytest.raises(ValueError, match="holes must be the same"):
        HeatADI.load(tmp_path / "solver.npz", boundary=data["boundary"])
    insulated = HeatADI((11, 11), 0.1, 0.01, **data | {"hole_temperature": None, "initial": -9.0})
    assert "T        0 to 1" in repr(insulated.run(20.0))


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"holes": np.zeros((5, 5))}, TypeError, "array of bool, got float64"),
        ({"holes": np.zeros((4, 5), bool)}, ValueError, r"holes must broadcast to \(5, 5\)"),
        ({"holes": np.ones((5, 5), bool)}, ValueError, "must leave some nodes"),
        ({"holes": lambda t: t > 0}, TypeError, "must be among x, y, got t"),
        ({"hole_temperature": 1.0}, TypeError, "hole_temperature needs holes"),
        (
            {"holes": np.eye(5, dtype=bool), "hole_temperature": lambda t: t},
            TypeError,
            "must be among x, y, got t",
        ),
    ],
)
def test_errors(options, error, text):
    with pytest.raises(error, match=text):
        HeatADI((5, 5), 0.1, 0.1, boundary=0.0, **options)


def test_group_is_refused(monkeypatch):
    monkeypatch.setattr("pysolvers.distributed._group._world", lambda: None)
    holes = np.eye(9, dtype=bool)
    with pytest.raises(ValueError, match="holes need a solver without group"):
        HeatADI((9, 9), 0.1, 0.1, boundary=0.0, holes=holes, group=Group(), split=Slab(0))


def test_holes_on_a_dirichlet_side_have_its_value():
    holes = np.zeros((5, 6), bool)
    holes[:2, 3] = True  # at y-, and the node next to it
    boundary = {"x": Neumann(), "y-": 0.25, "y+": Neumann()}
    options = {"boundary": boundary, "holes": holes, "hole_temperature": 2.0}
    solver = HeatADI((5, 6), 1.0, 0.1, **options)
    solver.step(3)
    assert (solver.u[0] == 0.25).all()
    assert solver.u[1, 3] == 2.0
