"""HeatADI(scheme="implicit"): the equation that is not split, against one sparse matrix and LU."""

import copy
import pickle

import numpy as np
import pytest
import saved_files
import unsplit_reference as reference

from pysolvers import ConvergenceError, Dirichlet, HeatADI, Neumann, Robin
from pysolvers.heat import HeatResult

# Steps that are large for the slowest wave are what the scheme is for.
pytestmark = pytest.mark.filterwarnings("ignore:HeatADI.*too large for the solution:RuntimeWarning")


def conductivity(kind, shape, ratio, rng):
    """Values between 1 and `ratio`."""
    places = np.meshgrid(*[np.linspace(0, 1, n) for n in shape], indexing="ij")
    x, y = places[-1], places[-2]
    inside = {
        "bar": abs(x - y) < 0.12,
        "cross": (abs(x - y) < 0.1) | (abs(x + y - 1) < 0.1),
        "disc": sum((p - 0.5) ** 2 for p in places) < 0.06,
        "random": rng.random(shape),
        "smooth": np.exp(-sum((p - 0.4) ** 2 for p in places) / 0.04),
    }[kind]
    return ratio ** np.asarray(inside, float)


def plate(k, dt, **options):
    """Between 1 and 0 along x, insulated along the other axes; h = 1."""
    sides = {"x-": 1.0, "x+": 0.0, "y": Neumann()} | ({"z": Neumann()} if k.ndim == 3 else {})
    return HeatADI(k.shape, 1.0, dt, diffusivity=k, **{"boundary": sides} | options)


def moving(axes):
    """Sides that move, fluxes, exchange and a source: for HeatADI and for the reference."""
    sides = {
        "x-": Dirichlet(lambda t: np.sin(t)),
        "x+": Robin(0.7, lambda t: 1 + np.cos(t)),
        "y-": Neumann(lambda x, t: 0.3 * x + np.sin(2 * t)),
        "y+": Dirichlet(lambda x, t: 0.1 * x * np.cos(t)),
    }
    if axes == 3:
        sides["z"] = "periodic"
    return sides


def moving_reference(k, spacing):
    xs = np.arange(k.shape[-1]) * spacing[0]
    ys = np.arange(k.shape[-2])[:, None] * spacing[1]
    kinds = {"x-": "value", "x+": "flux", "y-": "flux", "y+": "value"}
    kinds |= {"z-": "periodic", "z+": "periodic"}

    def values(t):
        field = np.zeros(k.shape)
        field[..., 0] = np.sin(t)
        field[..., -1, :] = 0.1 * xs * np.cos(t)
        return field

    def gain(t):
        field = np.broadcast_to(np.cos(3 * t) * (1 + xs + 0 * ys), k.shape).copy()
        field[..., -1] += 0.7 * (1 + np.cos(t)) / spacing[0] / 0.5
        field[..., 0, :] += (0.3 * xs + np.sin(2 * t)) / spacing[1] / 0.5
        return field

    return reference.Unsplit(k, spacing, kinds, {"x+": 0.7}, values, gain)


def hot(x, t):
    return np.cos(3 * t) * (1 + x)


@pytest.mark.parametrize("ratio", [1e3, 1e5])
@pytest.mark.parametrize("sides", ["insulated", "periodic", "robin"])
@pytest.mark.parametrize("shape", [(21, 34), (9, 12, 11)])
@pytest.mark.parametrize("damped_start", [True, False])
def test_rough_fields_in_float32_keep_their_heat(damped_start, shape, sides, ratio, backend):
    """K T of the start has rounding errors of dt k/h^2 times those of T, up to 0.02 and 1.

    A bar that coarse grids join to what lies around it has a small eigenvalue of P A: its mean
    converges last, while the corrections of all other waves are far below the tolerance.
    """
    x, y = np.linspace(0, 1, shape[-1]), np.linspace(0, 1, shape[-2])[:, None]
    kind = {"insulated": Neumann(), "periodic": "periodic", "robin": Robin(0.5, 1.0)}[sides]
    options = {
        "diffusivity": np.broadcast_to(ratio ** (abs(x - y) < 0.2), shape),
        "boundary": {"x": Neumann(), "y": kind} | ({"z": kind} if len(shape) == 3 else {}),
        "scheme": "implicit",
        "damped_start": damped_start,
    }
    for seed in range(3) if backend == "cpu" else (0,):
        options["initial"] = np.random.default_rng(seed).random(shape)
        truth = HeatADI(shape, 1.0, 3.0, **options).step(2).u
        found = HeatADI(shape, 1.0, 3.0, dtype="float32", device=backend, **options).step(2).u
        assert abs(found - truth).max() <= 2e-5 * abs(truth).max(), f"seed {seed}"


@pytest.mark.parametrize("shape", [(7, 6), (12, 17), (5, 8, 6)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("damped", [True, False])
def test_steps_are_those_of_one_matrix(rng, shape, dtype, damped):
    k = conductivity("random", shape, 1e3, rng)
    spacing = (0.5, 0.4, 0.7)[: len(shape)]
    truth = moving_reference(k, spacing)
    start = np.where(truth.free, rng.random(shape), truth.values(0.0))
    solver = HeatADI(
        shape,
        spacing=spacing,
        dt=0.2,
        diffusivity=k,
        boundary=moving(len(shape)),
        source=hot,
        initial=start,
        scheme="implicit",
        dtype=dtype,
        damped_start=damped,
    )

    field, limit = start, 1e-7 if dtype == "float64" else 1e-4
    for n in range(4):
        if n == 0 and damped:
            field = truth.start(field, 0.2)
        else:
            parts = 2 if n == 1 and damped else 1  # the step after the damped one
            for part in range(parts):
                field = truth.step(field, 0.2 * (n + part / parts), 0.2 / parts)
        u = solver.step().u
        assert u.dtype == np.dtype(dtype)
        assert abs(u - field).max() <= limit * abs(field).max()
        assert solver.result().iterations > 0


@pytest.mark.parametrize(
    ("dtype", "power"), [("float64", -300), ("float64", 300), ("float32", -60), ("float32", 60)]
)
def test_units_of_the_field_do_not_change_digits(rng, dtype, power):
    """The preconditioner is in float32: residuals of any unit must fit into it."""
    k = conductivity("bar", (20, 17), 1e3, rng)
    start = rng.random(k.shape)

    def solver(unit):
        sides = {"x-": unit, "x+": 0.0, "y": Neumann(0.5 * unit)}
        options = {"diffusivity": k, "scheme": "implicit", "dtype": dtype, "initial": unit * start}
        return HeatADI(k.shape, 1.0, 3.0, boundary=sides, **options)

    one, scaled = solver(1.0), solver(2.0**power)
    assert np.array_equal(scaled.step(3).u, one.step(3).u * np.array(2.0**power, dtype))
    assert np.array_equal(scaled.solve_steady().u, one.solve_steady().u * 2.0**power)


@pytest.mark.parametrize("dt", [1e-60, 1e60])
def test_steady_states_do_not_depend_on_dt(rng, dt):
    k = conductivity("bar", (20, 17), 1e3, rng)
    want = plate(k, 1.0, scheme="implicit").solve_steady()
    found = plate(k, dt, scheme="implicit").solve_steady()
    assert abs(found.iterations - want.iterations) <= 1
    assert abs(found.u - want.u).max() <= 1e-9


def largest_excess(shape, kind, ratio, number, rng, **options):
    """Largest excess over the range 0 to 1 of the data, default options."""
    k = conductivity(kind, shape, ratio, rng)
    solver = plate(k, number, **options)
    excess = 0.0
    for _ in range(12):
        u = solver.step().u
        excess = max(excess, u.max() - 1, -u.min())
    return excess


@pytest.mark.parametrize("kind", ["bar", "cross", "random"])
@pytest.mark.parametrize("shape", [(20, 17), (65, 65), (9, 8, 10)])
@pytest.mark.parametrize("number", [0.3, 100.0])
def test_values_stay_in_the_range_of_the_data(rng, kind, shape, number, backend):
    assert largest_excess(shape, kind, 1e4, number, rng, device=backend) <= 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(400))
def test_values_stay_in_the_range_of_the_data_for_any_conductivity(seed):
    rng = np.random.default_rng(seed)
    kind = ["bar", "cross", "disc", "random", "smooth"][seed % 5]
    shape = tuple(rng.integers(5, 40, 2)) if seed % 4 else tuple(rng.integers(4, 12, 3))
    shape = tuple(int(n) for n in shape)
    ratio, number = 10 ** rng.uniform(0, 6), 10 ** rng.uniform(-1, 4)
    assert largest_excess(shape, kind, ratio, number, rng) <= 1e-3


@pytest.mark.parametrize("z", [2.0, 4.0, 9.0, 40.0, 1e4])
def test_a_node_between_neighbours_at_rest_stays_in_their_range(z):
    """The decay rate z/dt of the only unknown: without the half-steps it reaches 1.0155."""
    g = reference.GAMMA
    solver = HeatADI((3, 3), 1.0, z / 4, boundary=1.0, initial=0.0, scheme="implicit")
    left = 1 / (1 + z / 2) ** 2
    for n in range(5):
        parts = 2 if n == 1 else 1
        y = z / parts
        left *= ((1 - (1 - 2 * g) * y) / (1 + g * y) ** 2) ** parts if n else 1
        u = solver.step().u[1, 1]
        assert abs(u - (1 - left)) <= 1e-9
        assert -4e-4 <= left <= 1


def test_alternating_directions_leave_the_range_where_auto_does_not(rng):
    k = conductivity("bar", (33, 33), 1e4, rng)
    with pytest.warns(RuntimeWarning, match="leave the range of the data"):
        split = plate(k, 10.0, scheme="peaceman-rachford")
    assert max(split.step().u.max() for _ in range(20)) > 20
    assert largest_excess((33, 33), "bar", 1e4, 10.0, rng) <= 1e-3


@pytest.mark.parametrize("kind", ["disc", "bar"])
def test_order_in_time_is_two_where_k_jumps(rng, kind):
    shape, end = (13, 14), 40.0
    k = conductivity(kind, shape, 100.0, rng)
    kinds = {"x-": "value", "x+": "value", "y-": "flux", "y+": "flux"}
    given = np.zeros(shape)
    given[:, 0] = 1
    truth = reference.Unsplit(k, (1, 1), kinds, {}, lambda t: given, lambda t: 0 * given)
    field, small = given, end / 8 / 64
    for n in range(8 * 64):
        field = truth.start(field, small) if n == 0 else truth.step(field, n * small, small)
    errors = []
    for steps in (8, 16, 32):
        solver = plate(k, end / steps, scheme="implicit")
        errors.append(abs(solver.run(end).u - field).max())
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert orders[-1] > 1.8, (errors, orders)


def layered(n):
    """Error of the steady state with a jump of k from 1 to 10 at x = 1/2, between two nodes."""
    x, y = np.linspace(0, 1, n), np.linspace(0, 1, n)[:, None]
    left = x < 0.5
    k = np.where(left, 1.0, 10.0) * np.ones((n, 1))
    s = x - 0.5
    profile = np.where(left, s - s**2, 0.1 * s + s**2)  # k times the slope is 1 at s = 0
    second = np.where(left, -2.0, 2.0)
    exact = profile * np.cos(np.pi * y)
    source = -k * (second - np.pi**2 * profile) * np.cos(np.pi * y)
    sides = {"x-": exact[:, 0], "x+": exact[:, -1], "y": Neumann()}
    solver = HeatADI(
        (n, n), 1 / (n - 1), 1.0, diffusivity=k, boundary=sides, source=source, initial=0.0
    )
    return abs(solver.solve_steady().u - exact).max()


def test_order_in_space_is_two_where_k_jumps_on_faces_parallel_to_an_axis():
    errors = [layered(n) for n in (16, 32, 64)]
    assert np.log2(errors[1] / errors[2]) > 1.8, errors


def smooth(shape):
    """Error of the steady state with a k that is smooth and varies along all axes."""
    spacing = tuple(1 / (n - 1) for n in shape[::-1])
    axes = np.meshgrid(*[np.linspace(0, 1, n) for n in shape], indexing="ij")[::-1]
    waves, phases = (2.0, 1.5, 1.0), (0.3, 0.7, 0.1)
    terms = [w * p + c for w, p, c in zip(waves, axes, phases, strict=False)]
    exact = np.prod([np.cos(t) for t in terms], axis=0)
    k = 2 + np.sin(sum(axes) + axes[0])
    source = k * exact * sum(w**2 for w in waves[: len(terms)])  # -k times the Laplacian
    for axis, (w, t) in enumerate(zip(waves, terms, strict=False)):
        slope = (2.0 if axis == 0 else 1.0) * np.cos(sum(axes) + axes[0])  # of k
        source += slope * w * np.tan(t) * exact
    names = "xyz"[: len(shape)]
    sides = {}
    for axis, name in enumerate(names):
        values = np.moveaxis(exact, len(shape) - 1 - axis, 0)
        sides |= {name + "-": values[0], name + "+": values[-1]}
    options = {"diffusivity": k, "boundary": sides, "source": source, "initial": 0.0}
    h = dict(zip(names, spacing, strict=True))
    solver = HeatADI(shape, spacing=h, dt=1.0, scheme="implicit", **options)
    return abs(solver.solve_steady().u - exact).max()


@pytest.mark.parametrize("factors", [(1.0, 1.5), (1.0, 0.8, 1.2)])
def test_order_in_space_is_two_where_k_is_smooth(factors):
    sizes = (8, 16, 32) if len(factors) == 2 else (5, 10, 20)
    errors = [smooth(tuple(int(n * f) + 1 for f in factors)) for n in sizes]
    assert np.log2(errors[1] / errors[2]) > 1.8, errors


@pytest.mark.slow
def test_order_in_space_is_one_where_k_jumps_at_a_disc():
    """Each node has one k: the disc is one of whole cells."""

    def steady(n):
        x, y = np.linspace(0, 1, n), np.linspace(0, 1, n)[:, None]
        k = np.where((x - 0.47) ** 2 + (y - 0.52) ** 2 < 0.09, 100.0, 1.0)
        sides = {"x-": 1.0, "x+": 0.0, "y": Neumann()}
        solver = HeatADI((n, n), 1 / (n - 1), 1.0, diffusivity=k, boundary=sides)
        return solver.solve_steady().u

    fine = steady(1025)
    errors = []
    for n in (17, 33, 65, 129):
        step = 1024 // (n - 1)
        errors.append(abs(steady(n) - fine[::step, ::step]).mean())
    order = np.polyfit(np.log2([16, 32, 64, 128]), np.log2(errors), 1)[0]
    assert -1.6 < order < -0.6, (order, errors)


@pytest.mark.parametrize("dt", [0.01, 1.0])
def test_clusters_of_two_values_are_solved_however_many_iterations_they_take(rng, dt):
    """Coarse grids say little about them: some ten times the iterations of other k.

    The correction by the V-cycle is small before the error is: limits of the correction are
    those of the error times the least eigenvalue of P A.
    """
    k = np.where(rng.random((20, 21)) < 0.5, 1e6, 1.0)
    given = np.zeros(k.shape)
    given[:, 0] = 1
    kinds = {"x-": "value", "x+": "value", "y-": "flux", "y+": "flux"}
    truth = reference.Unsplit(k, (1, 1), kinds, {}, lambda t: given, lambda t: 0 * given)
    solver = plate(k, dt, scheme="implicit")
    field = truth.start(given, dt)
    assert abs(solver.step().u - field).max() <= 1e-7
    for n in (0, 1):
        field = truth.step(field, dt + n * dt / 2, dt / 2)
    assert abs(solver.step().u - field).max() <= 1e-7
    assert solver.result().iterations < 200


SIDES = {
    "given": {"x-": 1.0, "x+": 0.0, "y": Neumann()},
    "exchange": {"x": Robin(0.3, 2.0), "y-": Neumann(0.5), "y+": 1.0},
    "periodic": {"x": "periodic", "y-": Robin(2.0, lambda x: x), "y+": Neumann(-0.1)},
}


@pytest.mark.parametrize("sides", SIDES)
def test_steady_states_satisfy_the_equation(rng, sides):
    k = conductivity("random", (13, 18), 1e3, rng)
    source = rng.standard_normal(k.shape)
    options = {"diffusivity": k, "boundary": SIDES[sides], "source": source}
    solver = HeatADI(k.shape, 1.0, 1e9, scheme="implicit", damped_start=False, **options)
    before = solver.u.copy()
    steady = solver.solve_steady()
    assert np.array_equal(solver.u, before)
    assert steady.iterations > 0
    kinds = {n: "periodic" if sides == "periodic" and n[0] == "x" else "flux" for n in KINDS}
    kinds |= {n: "value" for n in ("x-", "x+") if sides == "given"}
    kinds |= {"y+": "value"} if sides == "exchange" else {}
    values, gain = np.zeros(k.shape), source.copy()
    exchange = {}
    if sides == "given":
        values[:, 0] = 1
    elif sides == "exchange":
        values[-1] = 1
        gain[:, [0, -1]] += 0.3 * 2 / 0.5
        gain[0] += 0.5 / 0.5
        exchange = {"x-": 0.3, "x+": 0.3}
    else:
        gain[0] += 2.0 * np.arange(18.0) / 0.5
        gain[-1] += -0.1 / 0.5
        exchange = {"y-": 2.0}
    truth = reference.Unsplit(k, (1, 1), kinds, exchange, lambda t: values, lambda t: gain)
    want = truth.steady(0.0)
    assert abs(steady.u - want).max() <= 1e-8 * abs(want).max()
    assert abs(solver.step(3).u - want).max() <= 1e-6 * abs(want).max()


KINDS = ("x-", "x+", "y-", "y+")


def test_steady_state_of_an_insulated_plate_keeps_the_mean(rng):
    k = conductivity("bar", (15, 12), 50.0, rng)
    source = rng.standard_normal(k.shape)
    kinds = dict.fromkeys(KINDS, "flux")
    truth = reference.Unsplit(k, (1, 1), kinds, {}, None, lambda t: source)
    source -= (source * truth.volume).sum() / truth.volume.sum()
    start = rng.random(k.shape)
    solver = HeatADI(
        k.shape, 1.0, 1.0, diffusivity=k, boundary=Neumann(), source=source, initial=start
    )
    u = solver.solve_steady().u
    mean = (start * truth.volume).sum() / truth.volume.sum()
    assert abs((u * truth.volume).sum() / truth.volume.sum() - mean) <= 1e-12
    assert abs(truth.rate(u, 0.0)).max() <= 1e-6
    uneven = HeatADI(
        k.shape,
        0.5,
        1.0,
        diffusivity=k,
        boundary={"x-": Neumann(2.0), "x+": Neumann(), "y": Neumann()},
    )
    with pytest.raises(ValueError, match="do not balance: their sum over the domain is 14 "):
        uneven.solve_steady()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(21, 16), (60, 33), (14, 15, 16)])
def test_insulated_boxes_keep_their_heat(rng, backend, shape, dtype):
    k = conductivity("random", shape, 1e4, rng).astype(dtype)
    options = {"diffusivity": k, "boundary": Neumann(), "dtype": dtype, "scheme": "implicit"}
    options |= {"device": backend}
    constant = HeatADI(shape, 1.0, 1e4, initial=0.1, **options).step(5)
    assert (constant.u == constant.u.flat[0]).all()
    start = rng.random(shape)
    volume = np.ones(shape)
    for axis in range(len(shape)):
        np.moveaxis(volume, axis, 0)[[0, -1]] *= 0.5
    solver = HeatADI(shape, 1.0, 3.0, initial=start, **options).step(20)
    # The mean of a change is known. A device adds in another order.
    limit = {"float64": 1e-14, "float32": 1e-6}[dtype] * (1 if backend == "cpu" else 10)
    assert abs((volume * (solver.u - start)).sum()) <= limit * (volume * start).sum()
    source = HeatADI(shape, 1.0, 30.0, initial=start, source=0.01, **options).step(20)
    gained = np.average(np.float64(source.u) - start.astype(dtype), weights=volume)
    assert gained == pytest.approx(0.01 * 600, rel=400 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("shape", [(130, 400), (40, 38, 36)])
def test_threads_and_calls_do_not_change_bits(rng, shape, tmp_path):
    k = conductivity("random", shape, 1e2, rng)
    one = plate(k, 30.0, threads=1, scheme="implicit")
    two = plate(k, 30.0, threads=2, scheme="implicit")
    one.step(2)
    two.step().step()
    assert np.array_equal(one.u, two.u)
    one.save(tmp_path / "state.npz")
    sides = {"x-": 1.0, "x+": 0.0, "y": Neumann()} | ({"z": Neumann()} if len(shape) == 3 else {})
    copy = HeatADI.load(tmp_path / "state.npz", diffusivity=k, boundary=sides)
    assert repr(copy) == repr(one)
    assert np.array_equal(copy.step().u, one.step().u)
    one.result().save(tmp_path / "result.npz")
    assert HeatResult.load(tmp_path / "result.npz").iterations == one.result().iterations > 0


@pytest.mark.parametrize("fields", [0, 5])
def test_a_file_has_at_most_the_changes_of_a_basis(fields, tmp_path):
    k, path = np.ones((6, 7)), tmp_path / "state.npz"
    plate(k, 1.0, scheme="implicit").step(3).save(path)
    header, arrays = saved_files.content(path.read_bytes())
    arrays["stages"] = np.resize(arrays["stages"], (fields, 6, 7))
    path.write_bytes(saved_files.packed(saved_files.described(header, arrays), arrays))

    with pytest.raises(ValueError, match=f"'stages': it must hold 1 to 4 fields, got {fields}"):
        HeatADI.load(path, diffusivity=k, boundary={"x-": 1.0, "x+": 0.0, "y": Neumann()})


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(20, 17), (8, 9, 10)])
def test_a_solution_in_the_span_of_the_basis_is_found_at_once(rng, shape, dtype):
    k = conductivity("random", shape, 1e3, rng)
    levels = plate(k, 3.0, scheme="implicit", dtype=dtype)._runner.unsplit._levels()
    fields = np.zeros((3, *shape), dtype)
    for field in fields:
        field[levels.inner] = rng.standard_normal(field[levels.inner].shape)
    x = np.zeros(shape, dtype)
    want, rhs = fields[0] - 30 * fields[1] + 0.2 * fields[2], np.zeros(shape, dtype)
    levels.apply(want, rhs)
    rhs += (levels.volumes * want).astype(dtype)
    limit = {"float64": 1e-11, "float32": 1e-4}[dtype]
    for twice in (fields[1] * x.dtype.type(2.0), np.zeros_like(x)):  # it depends on another one
        for place in (1, 3):
            basis = [*fields[:place], twice, *fields[place:]]
            x[...] = 0
            report = levels.solve(rhs, x, x, basis, (limit, 0.0, 100))
            assert report["converged"]
            assert report["iterations"] == 0
            assert abs(x - want).max() <= limit * abs(want).max()
    x[...] = 0
    assert levels.solve(rhs, x, x, fields[1:], (limit, 0.0, 100))["iterations"] > 2
    assert abs(x - want).max() <= 10 * limit * abs(want).max()


@pytest.mark.parametrize("number", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("kind", ["bar", "disc", "random", "smooth"])
def test_iterations_stay_few_at_a_ratio_of_100(rng, kind, number):
    """Multigrid: line relaxation alone takes 57 iterations at dt/h^2 = 1000 and more with n."""
    solver = plate(conductivity(kind, (64, 65), 100.0, rng), number, scheme="implicit")
    solver.step(3)
    assert solver.result().iterations <= 2 * 12


def levels_of(k):
    """The levels of a V-cycle: conductances along the axes of an array, sums and weights."""
    sides = {"x": 0.0, "y": Neumann()} | ({"z": Neumann()} if k.ndim == 3 else {})
    solver = plate(k, 5.0, boundary=sides, scheme="implicit")
    for _, _, _, faces, sums, _, weights in solver._runner.unsplit._levels()._levels:
        yield faces[::-1], sums, weights[::-1]


def energy(faces, field):
    """The sum of conductances times squares of differences; those of the last nodes are 0."""
    return sum(
        (np.float64(face) * (np.roll(field, -1, axis) - field) ** 2).sum()
        for axis, face in enumerate(faces)
    )


@pytest.mark.parametrize("shape", [(4, 17), (18, 4), (3, 4, 17), (3, 12, 4), (9, 3, 4)])
def test_energy_of_a_coarser_level_is_that_of_the_interpolated_field(rng, shape):
    """Fields that vary along the axis that is made coarser, or across it; the mass is kept."""
    axis = int(np.argmax(shape))
    n = shape[axis]
    fine, coarse = list(levels_of(conductivity("random", shape, 10.0, rng)))[:2]
    (faces, sums, weights), (coarse_faces, coarse_sums, _) = fine, coarse
    weight = np.moveaxis(np.float64(weights[axis]), axis, 0)
    kept = sorted({*range(0, n, 2), n - 1})

    def interpolated(field):
        values = np.moveaxis(field, axis, 0)
        found = np.zeros((n, *values.shape[1:]))
        found[kept] = values
        found[1 : 2 * len(weight) : 2] = (
            weight * values[: len(weight)] + (1 - weight) * values[1 : len(weight) + 1]
        )
        return np.moveaxis(found, 0, axis)

    others = [1 if a == axis else size for a, size in enumerate(shape)]
    along = [len(kept) if a == axis else 1 for a in range(len(shape))]
    for drawn in (others, along):
        field = np.broadcast_to(rng.random(drawn), coarse_sums.shape)
        assert energy(coarse_faces, field) == pytest.approx(
            energy(faces, interpolated(field)), rel=1e-5
        )
    assert np.float64(coarse_sums).sum() == pytest.approx(np.float64(sums).sum(), rel=1e-6)


def test_conductances_of_coarser_levels_are_positive(rng):
    """Also where weights of neighbouring lines differ as much as they can."""
    k = np.where(rng.random((64, 65)) < 0.5, 1e6, 1.0)
    for faces, _, _ in levels_of(k):
        for axis, face in enumerate(faces):
            assert (np.moveaxis(face, axis, 0)[:-1] > 0).all()


@pytest.mark.parametrize("ratio", [1e2, 1e4])
def test_two_values_at_random(rng, ratio):
    """By series and halves of parallel faces alone: 30 and more than 400 iterations."""
    k = np.where(rng.random((65, 64)) < 0.5, ratio, 1.0)
    solver = plate(k, 1.0, scheme="implicit", damped_start=False)
    solver.step()
    assert solver.result().iterations <= 2 * {1e2: 16, 1e4: 130}[ratio]


def test_auto_chooses_by_the_step(rng):
    k = conductivity("bar", (16, 16), 101.0, rng)
    solver = plate(k, 0.01)
    assert "'peaceman-rachford'" in repr(solver)
    assert solver.step().result().scheme == "peaceman-rachford"
    solver.dt = 1.0
    assert "'implicit'" in repr(solver)
    assert solver.step().result().scheme == "implicit"
    assert "iterations" in repr(solver)
    assert solver.run(solver.time + 1.001).scheme == "implicit"
    layers = np.broadcast_to(k[0], k.shape)
    for other in (2.0, layers, layers.T.copy(), conductivity("smooth", (16, 16), 3.0, rng)):
        one = HeatADI((16, 16), 1.0, 1e4, diffusivity=other, boundary=0.0)
        assert one.result().scheme == "peaceman-rachford"
    box = conductivity("disc", (8, 8, 8), 10.0, rng)
    assert plate(box, 0.1).result().scheme == "douglas-gunn"
    assert plate(box, 10.0).result().scheme == "implicit"


def test_equations_that_are_not_solved_are_errors(rng, monkeypatch):
    monkeypatch.setattr("pysolvers.heat._unsplit._MOST", 1)
    solver = plate(conductivity("random", (20, 20), 1e3, rng), 10.0, scheme="implicit")
    before = solver.u.copy()
    with pytest.raises(ConvergenceError, match="was not solved in"):
        solver.step()
    assert solver.steps == 0
    assert np.array_equal(solver.u, before)
    with pytest.raises(ConvergenceError, match="give max_iterations"):
        solver.solve_steady(max_iterations=1)


def test_copies_after_steps_with_operators():
    solver = HeatADI((9, 12), 0.1, 0.01, boundary=0.0, initial=1.0, scheme="implicit").step(5)

    other = pickle.loads(pickle.dumps(solver))

    np.testing.assert_allclose(other.step(3).u, solver.step(3).u, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(copy.copy(solver).u, solver.u)
