"""HeatADI(scheme="implicit") and solve_steady() on a device: against the host, and by rules."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spl

from pysolvers import Dirichlet, HeatADI, Neumann, Robin

pytestmark = pytest.mark.filterwarnings("ignore:HeatADI.*too large for the solution:RuntimeWarning")

BOTH = ("cuda", "cpu")
# Ten times the tolerance of the solver, in its norm.
CLOSE = {"float64": 1e-7, "float32": 1e-4}

SIDES = {
    "values": {"x-": 1.0, "x+": 0.0, "y-": Dirichlet(lambda x: 0.1 * x), "y+": -1.0},
    "fluxes": {"x-": Robin(0.7, lambda t: 1 + np.cos(t)), "x+": Neumann(0.2), "y": Neumann()},
    "moving": {
        "x-": Dirichlet(lambda t: np.sin(t)),
        "x+": Robin(0.7, lambda t: 1 + np.cos(t)),
        "y-": Neumann(lambda x, t: 0.3 * np.cos(x) + np.sin(2 * t)),
        "y+": Dirichlet(lambda x, t: np.cos(0.1 * x) * np.cos(t)),
    },
    "periodic": {"x": "periodic", "y": Neumann()},
    "torus": {"x": "periodic", "y": "periodic"},
    "insulated": {"x": Neumann(), "y": Neumann()},
}
THIRD = {"values": Neumann(), "fluxes": 0.0, "moving": "periodic", "periodic": 1.0}
SOURCES = {"values": None, "fluxes": 0.3, "moving": lambda x, y, t: np.cos(x + t) + 0 * y}


def conductivity(kind, shape, ratio, rng):
    """Values between 1 and `ratio`."""
    places = np.meshgrid(*[np.linspace(0, 1, n) for n in shape], indexing="ij")
    inside = {
        "bar": abs(places[-1] - places[-2]) < 0.12,
        "random": rng.random(shape),
        "smooth": np.exp(-sum((p - 0.4) ** 2 for p in places) / 0.04),
    }[kind]
    return ratio ** np.asarray(inside, float)


def sides_of(kind, axes):
    return SIDES[kind] | ({"z": THIRD.get(kind, Neumann())} if axes == 3 else {})


def pair(shape, dt, **options):
    return [HeatADI(shape, 1.0, dt, device=d, scheme="implicit", **options) for d in BOTH]


def check(device, host, most, start=0.0):
    """Hold a field of the device to that of the host; both keep the rounding errors of a start."""
    assert device.dtype == host.dtype
    assert np.isfinite(device).all()
    rounding = np.finfo(host.dtype).eps * np.linalg.norm(start)
    most = most * np.linalg.norm(np.float64(host)) + rounding
    assert np.linalg.norm(np.float64(device) - host) <= most


SHAPES = [(33, 65), (40, 30), (9, 14, 12), (16, 5, 17)]


@pytest.mark.parametrize("kind", SIDES)
@pytest.mark.parametrize("shape", SHAPES)
def test_steps_are_those_of_the_host(rng, shape, kind):
    """Planes and boxes of each kind of sides in both precisions."""
    dtype = ("float64", "float32")[(SHAPES.index(shape) + list(SIDES).index(kind)) % 2]
    k = conductivity("random", shape, 100.0, rng)
    start = rng.standard_normal(shape)
    options = {"source": SOURCES.get(kind), "boundary": sides_of(kind, len(shape))}
    device, host = pair(shape, 3.0, diffusivity=k, initial=start, dtype=dtype, **options)

    for dt in (3.0, 400.0):
        for solver in (device, host):
            solver.dt = dt
            solver.step(2)

        check(device.u, host.u, CLOSE[dtype], start)
    assert device.result().scheme == "implicit"
    assert device.result().backend == "cuda"
    counts = [solver.result().iterations for solver in (device, host)]  # 0 at a steady state
    assert abs(counts[0] - counts[1]) <= 2
    assert counts[0] < 60


@pytest.mark.parametrize("kind", ["values", "moving", "insulated"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(65, 65), (9, 14, 12)])
def test_iterations_are_those_of_the_host(rng, shape, dtype, kind):
    """The last changes of stages take iterations away on both."""
    k = conductivity("random", shape, 100.0, rng)
    options = {"source": SOURCES.get(kind), "boundary": sides_of(kind, len(shape))}
    start = rng.standard_normal(shape)
    device, host = pair(shape, 3.0, diffusivity=k, initial=start, dtype=dtype, **options)

    found = [[solver.step().result().iterations for _ in range(7)] for solver in (device, host)]

    np.testing.assert_allclose(*found, rtol=0, atol=2)
    assert kind != "values" or found[0][-1] < 0.75 * found[0][0]  # the flow becomes steady
    check(device.u, host.u, CLOSE[dtype], start)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(20, 17), (8, 9, 10)])
def test_a_solution_in_the_span_of_the_basis_is_found_at_once(rng, shape, dtype):
    k = conductivity("random", shape, 1e3, rng)
    sides = dict.fromkeys("xyz"[: len(shape)], 0.0)
    device, _ = pair(shape, 3.0, diffusivity=k, boundary=sides, dtype=dtype)
    levels, store = device._runner.unsplit._levels(), device._runner.state.store
    inner, volumes = levels.inner, np.broadcast_to(levels.volumes, shape)
    fields = np.zeros((3, *shape), dtype)
    for field in fields:
        field[inner] = rng.standard_normal(field[inner].shape)
    want = fields[0] - 30 * fields[1] + 0.2 * fields[2]
    rhs = device._runner.unsplit._buffer("rhs", shape)
    levels.apply(store.hold(want), rhs)
    product = store.device.download(rhs)
    rhs = store.hold((product + volumes * want).astype(dtype))
    limit = {"float64": 1e-11, "float32": 1e-4}[dtype]

    def solved(basis):
        x = store.hold(np.zeros(shape, dtype))
        report = levels.solve(rhs, x, x, [store.hold(v) for v in basis], (limit, 0.0, 100))
        assert report["converged"]
        found = store.device.download(x)
        assert abs(found - want).max() <= 10 * limit * abs(want).max()
        return report["iterations"]

    for twice in (fields[1] * fields.dtype.type(2.0), np.zeros(shape, dtype)):
        for place in (1, 3):  # it depends on another one
            assert solved([*fields[:place], twice, *fields[place:]]) == 0
    assert solved(fields[1:]) > 0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(3, 3), (3, 40), (41, 3), (3, 4, 3), (4, 3, 5), (5, 5, 5)])
def test_tiny_grids(rng, shape, dtype):
    for sides in ({"x": 0.0, "y": 1.0}, {"x": "periodic", "y": 0.0}, {"x": Neumann(), "y": 2.0}):
        every = sides | ({"z": Neumann()} if len(shape) == 3 else {})
        k = conductivity("random", shape, 30.0, rng)
        device, host = pair(shape, 20.0, diffusivity=k, boundary=every, dtype=dtype)

        check(device.step(3).u, host.step(3).u, CLOSE[dtype])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_insulated_grids_of_two_nodes(rng, dtype):
    for shape in ((2, 2), (2, 9), (2, 2, 2)):
        k = conductivity("random", shape, 30.0, rng)
        options = {"diffusivity": k, "boundary": Neumann(), "initial": rng.random(shape)}
        device, host = pair(shape, 0.3, dtype=dtype, **options)

        check(device.step(2).u, host.step(2).u, CLOSE[dtype])


@pytest.mark.parametrize("ratio", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("kind", ["bar", "smooth"])
@pytest.mark.parametrize("shape", [(257, 300), (40, 33, 36)])
def test_jumps_of_the_conductivity(rng, shape, kind, ratio):
    k = conductivity(kind, shape, ratio, rng)
    sides = {"x-": 1.0, "x+": 0.0, "y": Neumann()} | ({"z": Neumann()} if k.ndim == 3 else {})
    device, host = pair(shape, 10.0, diffusivity=k, boundary=sides)

    check(device.step(3).u, host.step(3).u, CLOSE["float64"])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_long_lines(rng, dtype):
    """Lines of a cluster, and lines in two passes over memory, along both axes."""
    for shape in ((5, 9000), (9000, 5), (4, 40000)):
        k = conductivity("random", shape, 10.0, rng)
        options = {"diffusivity": k, "boundary": {"x": 0.0, "y": Neumann()}}
        device, host = pair(shape, 5.0, initial=rng.random(shape), dtype=dtype, **options)

        check(device.step(2).u, host.step(2).u, CLOSE[dtype])


def sparse_matrix(k):
    """-div k grad on nodes of distance 1, with harmonic means between neighbours."""
    number = np.arange(k.size).reshape(k.shape)
    matrix = sp.csr_matrix((k.size, k.size))
    for axis in range(k.ndim):
        a, b = (np.moveaxis(number, axis, 0)[s].ravel() for s in (slice(-1), slice(1, None)))
        face = 2 / (1 / k.ravel()[a] + 1 / k.ravel()[b])
        for rows, columns, sign in ((a, a, 1), (b, b, 1), (a, b, -1), (b, a, -1)):
            matrix += sp.csr_matrix((sign * face, (rows, columns)), matrix.shape)
    return matrix


@pytest.mark.parametrize("shape", [(40, 55), (12, 15, 14)])
def test_steady_state_is_that_of_a_sparse_direct_solve(rng, shape):
    k = conductivity("random", shape, 1e3, rng)
    solver = HeatADI(shape, 1.0, 1.0, diffusivity=k, boundary=0.5, source=0.2, device="cuda")

    found = solver.solve_steady()

    inner = np.zeros(shape, bool)
    inner[(slice(1, -1),) * k.ndim] = True
    inner = inner.ravel()
    matrix = sparse_matrix(k)
    expected = np.full(k.size, 0.5)
    right = 0.2 - matrix[inner][:, ~inner] @ expected[~inner]
    expected[inner] = spl.spsolve(matrix[inner][:, inner].tocsc(), right)
    np.testing.assert_allclose(found.u.ravel(), expected, rtol=1e-8)
    assert solver.steps == 0
    assert (solver.u[1:-1, 1:-1] == 0).any()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["values", "fluxes", "torus", "insulated"])
def test_steady_states_are_those_of_the_host(rng, kind, dtype):
    shape = (34, 47)
    k = conductivity("random", shape, 100.0, rng)
    options = {"diffusivity": k, "boundary": sides_of(kind, 2), "initial": rng.random(shape)}
    if kind in ("torus", "insulated"):
        moment = np.ones(shape)
        if kind == "insulated":
            moment[[0, -1]] *= 0.5
            moment[:, [0, -1]] *= 0.5
        source = rng.standard_normal(shape)
        options["source"] = source - np.average(source, weights=moment)
    device, host = (solver.solve_steady() for solver in pair(shape, 1.0, dtype=dtype, **options))

    check(device.u, host.u, {"float64": 1e-8, "float32": 1e-3}[dtype])
    assert device.backend == "cuda"


def test_sources_that_do_not_balance_are_an_error():
    solver = HeatADI((20, 20), 1.0, 1.0, boundary=Neumann(), source=1.0, device="cuda")

    with pytest.raises(ValueError, match="do not balance"):
        solver.solve_steady()


def test_auto_chooses_as_on_the_host(rng):
    k = conductivity("bar", (33, 33), 1e3, rng)
    for dt in (1e-4, 1e-3, 0.1, 10.0):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = [
                HeatADI(k.shape, 1.0, dt, diffusivity=k, boundary=0.0, device=device)
                for device in BOTH
            ]

        assert found[0].result().scheme == found[1].result().scheme
    assert found[0].result().scheme == "implicit"


def test_state_goes_from_device_to_host(rng, tmp_path):
    k = conductivity("bar", (40, 37), 1e3, rng)
    options = {"diffusivity": k, "boundary": {"x": Neumann(0.1), "y": 1.0}}
    device, host = pair(k.shape, 10.0, **options)
    device.step(3).save(tmp_path / "state.npz")

    loaded = HeatADI.load(tmp_path / "state.npz", device="cuda", **options)
    there = HeatADI.load(tmp_path / "state.npz", **options)

    assert (loaded.step(2).u == device.step(2).u).all()
    check(there.step(2).u, host.step(5).u, CLOSE["float64"])


def test_steps_in_one_call_have_the_bits_of_several_calls(rng):
    k = conductivity("random", (60, 70), 1e3, rng)
    options = {"diffusivity": k, "boundary": {"x": Neumann(0.1), "y": lambda t: np.sin(t)}}
    one, _ = pair(k.shape, 10.0, **options)
    several, _ = pair(k.shape, 10.0, **options)

    one.step(4)
    for _ in range(4):
        several.step()
        assert several.u.shape == k.shape  # a copy to the host between the steps

    assert (one.u == several.u).all()
