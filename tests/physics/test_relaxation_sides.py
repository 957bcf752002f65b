"""Sides of LMSOR and RedBlackSOR: fluxes, exchange, periodic axes; against direct solutions."""

import itertools

import numpy as np
import pytest

from pysolvers import (
    LMSOR,
    ConvergenceError,
    Neumann,
    RedBlackSOR,
    Robin,
    SteadyConvectionDiffusion,
)
from pysolvers.papers import lmsor2012, survey2014

sparse = pytest.importorskip("scipy.sparse")
linalg = pytest.importorskip("scipy.sparse.linalg")

VALUE, FLUX, EXCHANGE, OUT = 1.5, Neumann(0.3), Robin(2.0, 0.7), Neumann()
SIDES = ("x-", "x+", "y-", "y+")


def f(x, y):
    return 5 * np.sin(2 * x) + 3 * y


def g(x, y):
    return 4 * x - 2 * y


def s(x, y):
    return 1 + x * y


def with_ghosts(problem, sides, upwind):
    """Solve the equations of all nodes and of one ghost beyond each node of a side.

    The equation of a ghost is the condition of its side, by a central difference.
    """
    (ny, nx), (h, k) = problem.shape, problem.spacing
    rows, columns, values, right = [], [], [], np.zeros((ny + 2) * (nx + 2))

    def place(j, i):
        return (j + 1) * (nx + 2) + i + 1

    def add(row, at, value):
        rows.append(row), columns.append(at), values.append(value)

    for j, i in itertools.product(range(-1, ny + 1), range(-1, nx + 1)):
        row, beyond = place(j, i), [i in (-1, nx), j in (-1, ny)]
        on = {"x-": i == 0, "x+": i == nx - 1, "y-": j == 0, "y+": j == ny - 1}
        given = [side for side in SIDES if on[side] and isinstance(sides[side], float)]
        if all(beyond):
            add(row, row, 1.0)
        elif any(beyond):
            side = ("x-" if i < 0 else "x+") if beyond[0] else ("y-" if j < 0 else "y+")
            one = sides[side]
            add(row, row, 1.0)
            if one == "periodic":
                add(row, place(j % ny, i % nx), -1.0)
            elif not isinstance(one, float):
                step = h if beyond[0] else k
                jb, ib = min(max(j, 0), ny - 1), min(max(i, 0), nx - 1)
                c = one.coefficient if isinstance(one, Robin) else 0.0
                add(row, place(2 * jb - j, 2 * ib - i), -1.0)
                add(row, place(jb, ib), 2 * step * c)
                right[row] = 2 * step * (one.flux if isinstance(one, Neumann) else c * one.ambient)
        elif given:
            add(row, row, 1.0)
            right[row] = sides[given[0]]
        else:
            x, y = problem.x[i], problem.y[j]
            for at, step, b in (((0, 1), h, f(x, y)), ((1, 0), k, g(x, y))):
                for sign in (-1, 1):
                    part = max(-sign * b, 0) / step if upwind else -sign * b / (2 * step)
                    weight = 1 / step**2 + part
                    add(row, place(j + sign * at[0], i + sign * at[1]), weight)
                    add(row, row, -weight)
            right[row] = -s(x, y)
    size = (len(right), len(right))
    matrix = sparse.csc_matrix((values, (rows, columns)), shape=size)
    return linalg.spsolve(matrix, right).reshape(ny + 2, nx + 2)[1:-1, 1:-1]


ALL = [
    dict(zip(SIDES, four, strict=True))
    for four in itertools.product((VALUE, FLUX, EXCHANGE, OUT), repeat=4)
    if any(isinstance(one, float | Robin) for one in four)
]
PERIODIC = [
    {axis + "-": "periodic", axis + "+": "periodic", other + "-": low, other + "+": high}
    for axis, other in ("xy", "yx")
    for low, high in ((VALUE, VALUE), (VALUE, OUT), (FLUX, EXCHANGE), (EXCHANGE, EXCHANGE))
]


@pytest.mark.each_value
@pytest.mark.parametrize("differences", ["central", "upwind"])
@pytest.mark.parametrize("sides", [*ALL[::17], *PERIODIC])
def test_solution_is_that_of_the_equations_with_ghosts(sides, differences):
    problem = SteadyConvectionDiffusion(
        f,
        g,
        shape=(6, 8),
        extent=((0, 1.3), (0, 0.8)),
        boundary=sides,
        source=s,
        differences=differences,
    )
    expected = with_ghosts(problem, sides, differences == "upwind")
    for relaxation in ("lmsor", "lsor"):
        found = LMSOR(problem, relaxation=relaxation).solve(1e-12).u
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def manufactured(n, sides):
    """A problem with the solution u = sin(2 x + 1) cos(3 y) on 1 x 0.8; 2 pi periodic if so."""
    is_periodic = sides.get("x") == "periodic"
    width = 2 * np.pi if is_periodic else 1.0
    c, a = (2.0, 1.0) if not is_periodic else (1.0, 0.3)

    def u(x, y):
        return np.sin(c * x + a) * np.cos(3 * y)

    def ux(x, y):
        return c * np.cos(c * x + a) * np.cos(3 * y)

    def uy(x, y):
        return -3 * np.sin(c * x + a) * np.sin(3 * y)

    def source(x, y):
        return (c * c + 9) * u(x, y) + np.cos(y) * ux(x, y) + 2.0 * uy(x, y)

    conditions = {
        "value": lambda normal: u,
        "flux": lambda normal: Neumann(normal),
        "exchange": lambda normal: Robin(3.0, lambda x, y: u(x, y) + normal(x, y) / 3.0),
    }
    normals = {
        "x-": lambda x, y: -ux(x, y),
        "x+": ux,
        "y-": lambda x, y: -uy(x, y),
        "y+": uy,
    }
    boundary = {
        side: kind if kind == "periodic" else conditions[kind](normals.get(side))
        for side, kind in sides.items()
    }
    problem = SteadyConvectionDiffusion(
        lambda y: np.cos(y),
        2.0,
        shape=(n + 1, n if is_periodic else n + 1),
        extent=((0, width), (0, 0.8)),
        boundary=boundary,
        source=source,
        differences="central",
    )
    return problem, u(problem.x, problem.y[:, None])


@pytest.mark.parametrize(
    "sides",
    [
        {"x-": "exchange", "x+": "flux", "y-": "flux", "y+": "exchange"},
        {"x-": "value", "x+": "flux", "y-": "exchange", "y+": "value"},
        {"x": "periodic", "y-": "exchange", "y+": "flux"},
    ],
)
def test_sides_are_of_second_order(sides):
    errors = []
    for n in (12, 24):
        problem, expected = manufactured(n, sides)
        found = LMSOR(problem).solve(1e-10).u
        errors.append(np.abs(found - expected).max())
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.12)


def test_danckwerts_inflow_conserves_the_flux():
    """b u - u_x through the inlet is b u_in; through the outlet, without gradient, b u."""
    problem = SteadyConvectionDiffusion(
        4.0,
        0.0,
        shape=(3, 129),
        extent=((0, 1), (0, 1)),
        boundary={"x-": Robin(4.0, 2.0), "x+": "outflow", "y": Neumann()},
    )
    np.testing.assert_allclose(LMSOR(problem).solve(1e-12).u, 2.0, atol=1e-8)


@pytest.mark.parametrize("periodic", ["x", "y"])
@pytest.mark.parametrize("shape", [(4, 2), (5, 8), (34, 70), (37, 64)])
def test_plate_with_a_periodic_axis_is_a_strip_of_a_wider_one(shape, periodic):
    """Against the balance of each cell, for all variants and numbers of threads."""
    if periodic == "y":
        shape = shape[::-1]
    q = np.random.default_rng(5).normal(size=shape)
    other, (hx, hy), k = {"x": "y", "y": "x"}[periodic], (0.1, 0.13), 1.7
    options = {
        "spacing": (hx, hy),
        "conductivity": k,
        "boundary": {periodic: "periodic", other + "-": Robin(2.0, 0.7), other + "+": 1.5},
        "source": q,
    }
    plates = [survey2014.RedBlackSOR(shape, variant=v, **options) for v in ("naive", "split")]
    plates += [RedBlackSOR(shape, threads=n, **options) for n in (1, 2, 3)]
    fields = [plate.solve(1e-12).u for plate in plates]
    for field in fields[1:]:
        np.testing.assert_array_equal(field, fields[0])

    t, balance = fields[0], q * hx * hy
    for axis, name, a, step in ((1, "x", k * hy / hx, hx), (0, "y", k * hx / hy, hy)):
        if name == periodic:
            balance = balance + a * (np.roll(t, 1, axis) + np.roll(t, -1, axis) - 2 * t)
            continue
        parts, rows = np.zeros_like(np.moveaxis(t, axis, 0)), np.moveaxis(t, axis, 0)
        between = a * np.diff(rows, axis=0)
        parts[:-1] += between
        parts[1:] -= between
        biot = 2.0 * step / k
        parts[0] += a * biot / (1 + biot / 2) * (0.7 - rows[0])
        parts[-1] += 2 * a * (1.5 - rows[-1])
        balance = balance + np.moveaxis(parts, 0, axis)
    assert np.abs(balance).max() < 1e-11


@pytest.mark.parametrize("periodic", ["x", "y"])
@pytest.mark.parametrize("solver", ["lmsor", "plate"])
def test_a_shift_along_a_periodic_axis_shifts_each_iteration(solver, periodic, rng):
    """By two nodes, so that the colours stay; from the start, and where u was set."""
    sides = {periodic: "periodic", {"x": "y", "y": "x"}[periodic]: 1.0}
    axis, fields = "yx".index(periodic), rng.random((2, 8, 6))

    def moved(values, count=2):
        return np.roll(values, count, axis)

    def make(field):
        if solver == "plate":
            return RedBlackSOR(field.shape, spacing=0.1, boundary=sides, initial=field)
        problem = make_flow(sides, field.shape)
        rows, columns = problem._unknown
        return LMSOR(problem, initial=field[rows, columns])

    one, other = make(fields[0]), make(moved(fields[0]))
    for _ in range(2):
        for count in (1, 1, 3):
            np.testing.assert_array_equal(other.iterate(count).u, moved(one.iterate(count).u))
        one.u, other.u = fields[1], moved(fields[1])


def iterations(make, most=20_000, **options):
    try:
        return make(**options).solve(1e-9, max_iterations=most).iterations
    except ConvergenceError:
        return most


FACTORS = (0.8, 1.0, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.75, 1.8, 1.84, 1.88, 1.9, 1.92, 1.94, 1.96)
END = {"D": 1.0, "N": Neumann(0.3), "R": Robin(2.0, 0.7), "P": "periodic"}


@pytest.mark.each_value
@pytest.mark.parametrize("convection", [(0.0, 0.0), (15.0, 0.0), (-15.0, 6.0), (60.0, 60.0)])
@pytest.mark.parametrize("ends", ["DNDD", "DNNN", "RRDN", "NRRD", "RRNN", "PPDD", "PPRD", "DRPP"])
def test_parameters_need_no_more_iterations_than_constant_ones(ends, convection):
    boundary = {side: END[end] for side, end in zip(SIDES, ends, strict=True)}
    if ends == "DNNN" and convection[0] < 0:
        boundary["x+"] = END["R"]  # otherwise the equations are singular up to rounding errors
    problem = SteadyConvectionDiffusion(
        *convection,
        shape=(14, 12),
        extent=((0, 1.3), (0, 1.0)),
        boundary=boundary,
        source=1.0,
        differences="central",
    )
    start = np.random.default_rng(3).normal(size=problem.interior)

    def make(**options):
        return LMSOR(problem, initial=start, **options)

    best = min(iterations(make, relaxation=omega) for omega in FACTORS)
    own = min(iterations(make, relaxation=each) for each in ("lmsor", "lsor"))
    assert own <= (2.2 if ends[0] == "P" and convection[0] > 50 else 1.45) * best


@pytest.mark.parametrize("ends", ["PPDD", "PPRN", "DRPP", "RRPP"])
def test_optimal_parameter_of_a_periodic_plate(ends):
    boundary = {side: END[end] for side, end in zip(SIDES, ends, strict=True)}
    options = {"extent": ((0, 1.0), (0, 1.5)), "boundary": boundary}
    start = np.random.default_rng(4).normal(size=(14, 12))

    def make(**more):
        return RedBlackSOR((14, 12), initial=start, **options, **more)

    best = min(iterations(make, omega=omega) for omega in FACTORS)
    assert iterations(make) <= 1.3 * best


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", ["lmsor", "plate"])
def test_states_are_read_with_their_sides(solver, dtype, tmp_path, rng):
    sides = {"x": "periodic", "y-": Robin(2.0, lambda x: 1 + x), "y+": Neumann(0.5)}
    if solver == "plate":
        made = RedBlackSOR((7, 8), spacing=0.1, boundary=sides, dtype=dtype).iterate(7)
    else:
        problem = SteadyConvectionDiffusion(
            f, g, shape=(7, 8), extent=((0, 1), (0, 2)), boundary=sides, source=s
        )
        made = LMSOR(problem, dtype=dtype).iterate(7)
    made.save(tmp_path / "state")
    loaded = type(made).load(tmp_path / "state")
    for one in (made, loaded):
        one.iterate(6)
    np.testing.assert_array_equal(made.u, loaded.u)
    field = rng.random((7, 8))
    made.u = loaded.u = field
    np.testing.assert_array_equal(made.iterate(3).u, loaded.iterate(3).u)
    assert made.residual == loaded.residual


def test_given_values_stay_if_u_is_set(rng):
    sides = {"x-": 1.0, "x+": "outflow", "y-": lambda x: 1 + x, "y+": Robin(1.0, 2.0)}
    problem = SteadyConvectionDiffusion(
        0.0, 0.0, shape=(5, 6), extent=((0, 1), (0, 1)), boundary=sides
    )
    solver = LMSOR(problem)
    solver.u = field = rng.random((5, 6))
    np.testing.assert_array_equal(solver.u[1:, 1:], field[1:, 1:])
    np.testing.assert_array_equal(solver.u[1:, 0], 1.0)
    np.testing.assert_array_equal(solver.u[0], 1 + problem.x)
    repeated = LMSOR(problem, initial=field)
    np.testing.assert_array_equal(solver.iterate(4).u, repeated.iterate(4).u)
    assert solver.solve(1e-9, norm="l2").residual <= 1e-9
    assert solver.result().unknowns == 4 * 5
    assert repr(problem).endswith("x- Dirichlet, x+ Neumann, y- Dirichlet, y+ Robin")


def test_root_mean_square_counts_the_unknown_nodes(rng):
    sides = {"x-": 1.0, "x+": Neumann(), "y": 0.0}
    problem = SteadyConvectionDiffusion(
        0.0, 0.0, shape=(6, 7), extent=((0, 1), (0, 1)), boundary=sides
    )
    solver = LMSOR(problem, relaxation=1.0, initial=rng.random(problem.interior))
    before = solver.u
    with pytest.raises(ConvergenceError) as info:
        solver.solve(0.0, norm="l2", criterion="change", max_iterations=1)
    changes = (solver.u - before)[1:-1, 1:]
    assert info.value.result.residual == pytest.approx(np.sqrt(np.mean(changes**2)))


def make_flow(boundary, shape=(6, 8), **options):
    return SteadyConvectionDiffusion(
        0.0, 0.0, shape=shape, extent=((0, 1), (0, 1)), boundary=boundary, **options
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_flow(Neumann()), "boundary must fix u at one side at least"),
        (lambda: make_flow({"x": "periodic", "y": Robin(0.0, 1.0)}), "boundary must fix u at one"),
        (lambda: make_flow({"x-": "periodic", "x+": 0.0, "y": 0.0}), "both sides along x must be"),
        (lambda: make_flow({"x": 0.0, "y": "open"}), "must be one of .*periodic, outflow"),
        (lambda: make_flow({"x": 0.0, "y": Robin(-1.0)}), "coefficient of Robin must be at least"),
        (lambda: make_flow({"x": 0.0, "y": Neumann(np.ones(3))}), r"must broadcast to \(1, 8\)"),
        (
            lambda: LMSOR(make_flow({"x": "periodic", "y": 0.0}, (6, 9))),
            "LMSOR: a periodic axis needs an even number of nodes, .* along x",
        ),
        (
            lambda: RedBlackSOR((5, 6), spacing=1.0, boundary={"y": "periodic", "x": 0.0}),
            "RedBlackSOR: a periodic axis needs an even number of nodes, .* along y",
        ),
        (
            lambda: RedBlackSOR((5, 6), spacing=1.0, boundary={"x": "periodic", "y": Neumann()}),
            "boundary must fix the temperature at one side at least",
        ),
        (
            lambda: lmsor2012.LMSOR(make_flow({"x": 0.0, "y": Neumann()}), kernel=2),
            "kernel must be 'auto' or 1 with upwind .* sides that do not have given values",
        ),
    ],
)
def test_bad_sides_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
