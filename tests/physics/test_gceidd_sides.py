"""GCEIDD with exchange, outflow and periodic axes, and with a velocity that depends on time."""

import gceidd_reference
import numpy as np
import pytest

from pysolvers import GCEIDD, ConvectionDiffusion, Neumann, Robin
from pysolvers.papers import gceidd2022
from pysolvers.transport import suggest_dt

SIDES = {"x-": "west", "x+": "east", "y-": "south", "y+": "north"}
EXTENT = ((0.5, 1.7), (-0.3, 0.6))
OPTIONS = [
    {"scheme": "cp", "upwind": "modified"},
    {"scheme": "cp", "upwind": "plain"},
    {"scheme": "cfd"},
    {"scheme": "mu", "predictor": "newest"},
    {"scheme": "mu", "predictor": "printed"},
]


def compared(rng, nodes, kinds, strips, options, *, dt=0.05, steps=7, dtype=np.float64):
    """Return the solution of a random problem, and that of the reference."""
    ny, nx = nodes
    initial, field = rng.random(nodes), rng.random(nodes)
    b = rng.normal(size=nodes), rng.normal(size=(1, nx)) if strips[0] > 1 else 1.3
    a = 0.001 + 0.02 * rng.random(nodes), 0.01 if strips[0] > 1 else 0.01 + 0 * initial
    lengths = {"x": ny, "y": nx}
    ends = {side: rng.random(lengths[side[0]]) for side in SIDES}

    def condition(side):
        values = ends[side][:, None] if side[0] == "x" else ends[side]
        return {
            "dirichlet": lambda x, y, t: values * (1 + t),
            "robin": Robin(0.02, lambda x, y, t: values * (1 + t)),
            "neumann": "outflow",
            "periodic": "periodic",
        }[kinds[side]]

    def across(side, t):
        """Diffusion at the nodes of a side."""
        axis = "xy".index(side[0])
        values = np.broadcast_to(a[axis], nodes) * (1 + t if axis == 0 else 1)
        return (
            values[:, -1 if side[1] == "+" else 0]
            if axis == 0
            else values[-1 if side[1] == "+" else 0]
        )

    problem = ConvectionDiffusion(
        (lambda x, y, t: b[0] * np.cos(t), b[1]),
        (lambda x, y, t: a[0] * (1 + t), a[1]),
        extent=EXTENT,
        source=[(np.cos, field), (2.0, 0.25)],
        boundary={side: condition(side) for side in SIDES},
        initial=initial,
    )
    solver = gceidd2022.GCEIDD(problem, nodes, dt, strips=strips, dtype=dtype, **options)
    cells = [n - (kinds[axis + "-"] != "periodic") for n, axis in ((nx, "x"), (ny, "y"))]
    reference = gceidd_reference.Reference(
        initial,
        tuple((high - low) / n for (low, high), n in zip(EXTENT, cells, strict=True)),
        dt,
        (lambda t: b[0] * np.cos(t), b[1]),
        (lambda t: a[0] * (1 + t), a[1]),
        lambda t: np.cos(t) * field + 0.5,
        {
            name: {
                "dirichlet": ("dirichlet", lambda t, s=side: ends[s] * (1 + t)),
                "robin": (
                    "robin",
                    lambda t, s=side: ends[s] * (1 + t),
                    lambda t, s=side: 0.02 / across(s, t),
                ),
                "neumann": ("neumann", lambda t: 0.0),
                "periodic": ("periodic",),
            }[kinds[side]]
            for side, name in SIDES.items()
        },
        strips=strips,
        **options,
    )
    return solver.step(steps), reference.step(steps)


KINDS = {
    "robin": ["robin"] * 4,
    "robin-outflow": ["robin", "neumann", "dirichlet", "robin"],
    "x": ["periodic", "periodic", "robin", "dirichlet"],
    "y": ["neumann", "robin", "periodic", "periodic"],
    "torus": ["periodic"] * 4,
}
SIZES = [((18, 24), (3, 2)), ((10, 13), (4, 3)), ((33, 20), (1, 8)), ((9, 70), (1, 1))]


@pytest.mark.filterwarnings("ignore:GCEIDD. with .* is unstable")
@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(o.values()))
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize(("nodes", "strips"), SIZES)
def test_steps_are_those_of_dense_systems(rng, nodes, strips, kinds, options):
    named = dict(zip(SIDES, KINDS[kinds], strict=True))
    solver, reference = compared(rng, nodes, named, strips, options)
    scale = np.abs(reference.u).max()
    np.testing.assert_allclose(solver.u, reference.u, rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize("kinds", ["robin", "torus"])
def test_single_precision_is_near(rng, kinds):
    named = dict(zip(SIDES, KINDS[kinds], strict=True))
    options = {"scheme": "cp"}
    solver, reference = compared(rng, (18, 24), named, (2, 1), options, dtype=np.float32)
    np.testing.assert_allclose(solver.u, reference.u, rtol=0, atol=1e-5 * np.abs(reference.u).max())


def wave(x, y, t, speed):
    return np.sin(2 * np.pi * (x - speed[0] * t)) * np.cos(2 * np.pi * (y - speed[1] * t))


def torus(**options):
    given = {
        "velocity": (1.0, 0.5),
        "diffusion": 0.02,
        "boundary": "periodic",
        "initial": lambda x, y: wave(x, y, 0, (0, 0)),
    }
    return ConvectionDiffusion(**given | options)


@pytest.mark.parametrize("scheme", ["cp", "cfd", "mu"])
@pytest.mark.parametrize("strips", [1, 4, (3, 1)])
def test_a_shift_along_periodic_axes_changes_nothing(rng, scheme, strips):
    """By one strip: the interfaces are then the same ones."""
    field, n = rng.random((24, 36)), 36 // (4 if strips == 4 else 3)
    one = GCEIDD(torus(initial=field), (24, 36), 0.01, scheme=scheme, strips=strips).step(9)
    moved = GCEIDD(
        torus(initial=np.roll(field, n, 1)), (24, 36), 0.01, scheme=scheme, strips=strips
    )
    np.testing.assert_allclose(moved.step(9).u, np.roll(one.u, n, 1), rtol=0, atol=1e-14)


def test_threads_do_not_change_a_bit(rng):
    for strips in (1, (5, 4)):
        solvers = [
            GCEIDD(
                torus(initial=rng.random((60, 90)), velocity=(lambda x, y: np.cos(y), 0.3)),
                (60, 90),
                0.002,
                strips=strips,
                threads=threads,
            )
            for threads in (1, 2, 3)
        ]
        for solver in solvers[1:]:
            solver.u = solvers[0].u
        fields = [solver.step(20).u for solver in solvers]
        np.testing.assert_array_equal(fields[0], fields[1])
        np.testing.assert_array_equal(fields[0], fields[2])


@pytest.mark.parametrize("scheme", ["cp", "mu"])
def test_one_strip_on_a_torus_conserves_the_sum(rng, scheme):
    """For any velocity; and a constant stays one where the velocity does not diverge."""

    def along_x(x, y, t):
        return np.sin(2 * np.pi * x) + np.cos(2 * np.pi * y) + t

    problem = torus(velocity=(along_x, lambda x, y: 0.5 + 0.2 * np.sin(2 * np.pi * y)))
    solver = GCEIDD(problem, (20, 24), 0.02, scheme=scheme)
    solver.u = rng.random((20, 24))
    total = solver.u.sum()
    for _ in range(5):
        assert solver.step(10).u.sum() == pytest.approx(total, rel=1e-12)
    constant = GCEIDD(torus(initial=0.7), (20, 24), 0.2, scheme=scheme).step(50)
    np.testing.assert_array_equal(constant.u, 0.7)


def test_large_diffusion_numbers_of_a_cycle_are_solved():
    """a dt / h^2 = 1e6: the mean of a line remains, and the rest is gone."""
    field = np.random.default_rng(3).random((8, 64))
    problem = ConvectionDiffusion(
        (0.0, 0.0), (1.0, 0.0), boundary={"x": "periodic", "y": Neumann()}, initial=field
    )
    u = GCEIDD(problem, (8, 64), 1e6 / 64**2).step().u
    np.testing.assert_allclose(u, np.broadcast_to(field.mean(1)[:, None], u.shape), atol=1e-3)
    np.testing.assert_allclose(u.mean(axis=1), field.mean(axis=1), rtol=1e-11)


@pytest.mark.parametrize("scheme", ["cp", "cfd"])
def test_orders_on_a_torus_with_a_velocity_in_time(scheme):
    """The velocity is cos(t): first order in space and time together, against the exact wave."""
    decay = 2 * (2 * np.pi) ** 2 * 0.01

    def problem():
        return torus(velocity=(lambda t: np.cos(t), lambda t: 0.5 * np.cos(t)), diffusion=0.01)

    errors = []
    for n in (32, 64, 128):
        solver = GCEIDD(problem(), (n, n), 0.5 / n, scheme=scheme).run(1.0, progress=False)
        x, y, moved = solver.x, solver.y[:, None], np.sin(1.0)
        exact = (
            np.exp(-decay) * np.sin(2 * np.pi * (x - moved)) * np.cos(2 * np.pi * (y - moved / 2))
        )
        errors.append(np.abs(solver.u - exact).max())
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (orders > 0.75).all(), (orders, errors)
    assert orders[1] > 0.85


def manufactured(n, dt, scheme, **options):
    """u = sin(2 x + y) (1 + sin t), with Robin sides, an outflow and a flux."""
    b, a = (lambda t: 1 + 0.5 * np.sin(t), 0.6), 0.05

    def u(x, y, t):
        return np.sin(2 * x + y) * (1 + np.sin(t))

    def ux(x, y, t):
        return 2 * np.cos(2 * x + y) * (1 + np.sin(t))

    def source(x, y, t):
        change = np.sin(2 * x + y) * np.cos(t)
        return change + b[0](t) * ux(x, y, t) + b[1] * ux(x, y, t) / 2 + 5 * a * u(x, y, t)

    def ambient(sign, part, h):
        return lambda x, y, t: u(x, y, t) + sign * a * part * ux(x, y, t) / h

    problem = ConvectionDiffusion(
        b,
        a,
        source=source,
        boundary={
            "x-": Robin(0.7, ambient(-1, 1, 0.7)),
            "x+": Robin(0.2, ambient(1, 1, 0.2)),
            "y-": Robin(0.5, ambient(-1, 0.5, 0.5)),
            "y+": Neumann(lambda x, y, t: a * ux(x, y, t) / 2),
        },
        initial=lambda x, y: u(x, y, 0),
    )
    solver = GCEIDD(problem, (n + 1, n + 1), dt, scheme=scheme, **options)
    result = solver.run(0.5, progress=False)
    return np.abs(result.u - u(result.x, result.y[:, None], 0.5)).max()


@pytest.mark.parametrize(("scheme", "strips"), [("cp", 1), ("cfd", 1), ("cp", 4), ("mu", 1)])
def test_robin_sides_have_the_order_of_the_scheme(scheme, strips):
    errors = [manufactured(n, 0.25 / n, scheme, strips=strips) for n in (16, 32, 64)]
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (orders > 0.8).all(), (orders, errors)


def test_danckwerts_inflow_ends_in_its_value():
    """Robin(b, w) at the inlet, outflow at the outlet: the steady solution is w."""
    sides = {"x-": Robin(2.0, 0.75), "x+": "outflow", "y": "periodic"}
    problem = ConvectionDiffusion((2.0, 0.0), 0.1, boundary=sides)
    u = GCEIDD(problem, (4, 33), 0.05).run(30.0, progress=False).u
    np.testing.assert_allclose(u, 0.75, atol=1e-9)


def test_range_counts_the_surroundings():
    problem = ConvectionDiffusion(
        (0.0, 0.0), 1.0, boundary=Robin(5.0, lambda t: 2 + t), initial=1.0
    )
    solver = GCEIDD(problem, (9, 9), 0.1).run(5.0, progress=False)
    assert 2 < solver.u.max() < 7
    assert solver.u.min() > 1


@pytest.mark.parametrize("scheme", ["cp", "mu"])
@pytest.mark.parametrize("half", [1, 5])
def test_restart_is_exact(scheme, half, tmp_path, rng):
    problem = torus(
        initial=rng.random((12, 15)),
        boundary={"x": "periodic", "y-": Robin(1.0, 2.0), "y+": "outflow"},
    )
    options = {"scheme": scheme, "strips": (5, 3)}
    one = GCEIDD(problem, (12, 15), 0.01, **options).step(half)
    one.save(tmp_path / "state")
    two = GCEIDD.load(tmp_path / "state", problem)
    np.testing.assert_array_equal(two.step(7).u, one.step(7).u)
    assert one.u.shape == one.result().u.shape == (12, 15)
    assert one.x[-1] == pytest.approx(1 - 1 / 15)
    assert one.x.size == 15
    repr(problem), repr(one), one.result()._repr_html_()


def test_suggested_step_is_that_of_the_spacing():
    step = suggest_dt(torus(diffusion=1e-9), (40, 50))
    assert step.courant == pytest.approx(1.0, rel=1e-4)
    assert step.dt == pytest.approx(1 / 50, rel=1e-4)


@pytest.mark.parametrize(
    ("boundary", "options", "message"),
    [
        ("periodic", {"device": "cuda"}, "periodic sides have no kernels on devices"),
        (Robin(1.0), {"device": "cuda"}, "Robin and periodic sides have no kernels on devices"),
        (Robin(-1.0), {}, "coefficient of Robin must be at least 0"),
        ({"x-": "periodic", "x+": 0.0, "y": 0.0}, {}, "both sides along x must be periodic"),
        ("periodic", {"strips": 5}, "strips along x must have at least 3 cells each, so at most 4"),
    ],
)
def test_bad_sides_are_named(boundary, options, message):
    import shared_device

    with shared_device.in_place_of_cuda(), pytest.raises(ValueError, match=message):
        GCEIDD(torus(boundary=boundary), (12, 12), 0.1, **options)


def test_exchange_needs_diffusion():
    problem = ConvectionDiffusion((1.0, 0.0), 0.0, boundary={"x": Robin(1.0), "y": 0.0})
    with pytest.raises(ValueError, match="Robin needs a positive diffusion along x"):
        GCEIDD(problem, (9, 9), 0.1)
    assert GCEIDD(torus(), (12, 12), 0.1, strips=4).strips == (4, 4)
