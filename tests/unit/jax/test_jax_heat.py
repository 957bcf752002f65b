"""`pysolvers.jax.heat_step`: the numbers of `HeatADI`, exact factors, and gradients."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from pysolvers import Dirichlet, HeatADI, Neumann, Robin  # noqa: E402
from pysolvers.jax import heat_step  # noqa: E402

SHAPES = {2: (7, 9), 3: (5, 6, 7)}
SPACING = {"x": 0.1, "y": 0.2, "z": 0.3}


def spacing_of(axes):
    return {name: SPACING[name] for name in "xyz"[:axes]}


def boundary_of(kind, shape, rng):
    """Return conditions of all sides, with values that vary along the sides."""

    def values(axis):
        sizes = list(shape)
        del sizes[-1 - "xyz".index(axis)]
        return rng.random(sizes)

    names = "xyz"[: len(shape)]
    if kind == "values":
        return {name: values(name) for name in names}
    if kind == "periodic":
        return dict.fromkeys(names, "periodic")
    if kind == "fluxes":
        return {name: Neumann(values(name)) for name in names}
    others = {name: Robin(1.5, values(name)) for name in names[1:]}
    return others | {"x-": Robin(2.0, values("x")), "x+": Dirichlet(values("x"))}


# Both make the same step, however long.
@pytest.mark.filterwarnings("ignore:HeatADI.*too large for the solution:RuntimeWarning")
@pytest.mark.parametrize("conductivity", ["number", "nodes", "axes"])
@pytest.mark.parametrize("kind", ["values", "periodic", "fluxes", "mixed"])
@pytest.mark.parametrize("axes", [2, 3])
def test_steps_are_those_of_the_solver(rng, axes, kind, conductivity):
    shape = SHAPES[axes]
    k = {"number": 1.7, "nodes": rng.random(shape) + 0.5, "axes": spacing_of(axes)}[conductivity]
    options = {
        "dt": 0.03,
        "spacing": spacing_of(axes),
        "diffusivity": k,
        "boundary": boundary_of(kind, shape, rng),
        "source": rng.random(shape),
    }
    u = start = rng.random(shape)

    solver = HeatADI(shape, initial=start, damped_start=False, **options)
    solver.step(3)
    step = jax.jit(lambda u: heat_step(u, **options))
    for _ in range(3):
        u = step(u)

    np.testing.assert_allclose(u, solver.u, rtol=0, atol=1e-13)


def insulated(axes, first="fluxes"):
    """Return conditions: fluxes of 0 and periodic ends in turn, from x on."""
    kinds = (Neumann(), "periodic") if first == "fluxes" else ("periodic", Neumann())
    return {name: kinds[number % 2] for number, name in enumerate("xyz"[:axes])}


def volumes_of(shape, boundary):
    """Return the volumes of nodes in units of those inside."""
    volumes = np.ones(shape, np.float32)
    for axis, name in enumerate("xyz"[: len(shape)][::-1]):
        ends = (slice(None),) * axis + ([0, -1],)
        volumes[ends] /= 1 if boundary[name] == "periodic" else 2
    return volumes


def total_and_step(boundary, weights):
    """Return a function of T, k and r: the sum of weights times T after a step, and T."""

    def function(u, k, r):
        v = heat_step(u, dt=r, spacing=1.0, diffusivity=k, boundary=boundary)
        return (weights * v).sum(), v

    return jax.jit(jax.value_and_grad(function, (0, 1), has_aux=True))


@pytest.mark.parametrize("shape", [(17,), (9, 12), (5, 6, 7)])
@pytest.mark.parametrize("first", ["fluxes", pytest.param("periodic", marks=pytest.mark.slow)])
def test_an_insulated_constant_keeps_its_bits(rng, shape, first):
    """Its heat has exact gradients, too: the volumes, and 0 with respect to k."""
    boundary = insulated(len(shape), first)
    u = np.full(shape, 61.3, np.float32)
    k = (1e6 ** -rng.random(shape)).astype(np.float32)
    volumes = volumes_of(shape, boundary)
    step = total_and_step(boundary, volumes)
    for r in (1e-3, 1.0, 1e4, 1e8):
        (_, found), (of_u, of_k) = step(u, k, np.float32(r))

        np.testing.assert_array_equal(found, u)
        np.testing.assert_array_equal(of_u, volumes)
        np.testing.assert_array_equal(of_k, 0)


@pytest.mark.parametrize("first", ["fluxes", pytest.param("periodic", marks=pytest.mark.slow)])
def test_long_steps_keep_heat_and_gradients_in_single_precision(rng, first):
    """A noise on top of a constant, layers of k; the truth is a step in double precision."""
    shape, r = (40, 48), 1e4
    boundary = insulated(2, first)
    k = np.where(rng.random(shape) < 0.5, 1.0, 0.01).astype(np.float32)
    u = (20 + rng.random(shape)).astype(np.float32)
    volumes = volumes_of(shape, boundary)
    step = total_and_step(boundary, rng.standard_normal(shape).astype(np.float32))
    (_, found), gradients = step(u, k, np.float32(r))
    (_, truth), right = step(u.astype(float), k.astype(float), r)

    assert abs((volumes * (found - u.astype(float))).sum()) <= 5e-5 * volumes.sum()
    assert np.abs(found - truth).max() <= r * np.finfo(np.float32).eps / 2
    for gradient, expected in zip(gradients, right, strict=True):
        assert np.abs(gradient - expected).max() <= 1e-5 * np.abs(expected).max()


def step_of_line(u, k, r, boundary):
    """Return T after a step and its derivative with respect to T, by dense matrices."""
    n = len(u)
    c = r * 2 * k * np.roll(k, -1) / (k + np.roll(k, -1))
    c[-1] = c[-1] if boundary == "periodic" else 0
    into = np.roll(np.eye(n), 1, 1) - np.eye(n)
    balances = into.T @ (c[:, None] * into)
    ends = "periodic" if boundary == "values" else boundary
    volumes = np.diag(volumes_of((n,), {"x": ends})).astype(float)
    ahead, behind = volumes + balances / 2, volumes - balances / 2
    if boundary == "values":
        for matrix in (ahead, behind):
            matrix[[0, -1]] = np.eye(n)[[0, -1]]
    matrix = np.linalg.solve(ahead, behind)
    return matrix @ u, matrix


@pytest.mark.parametrize("boundary", [Neumann(), "periodic", "values"])
def test_steps_on_a_line_and_their_gradients_keep_their_digits(rng, boundary):
    """For any k dt / h^2: neither the step nor its derivative contains a product with K."""
    n = 33
    u, weights = rng.standard_normal((2, n)).astype(np.float32)
    k = (1 + rng.random(n)).astype(np.float32)

    @jax.jit
    def total_and_step(u, k, r):
        ends = {"x-": u[0], "x+": u[-1]} if boundary == "values" else boundary
        v = heat_step(u, dt=r, spacing=1.0, diffusivity=k, boundary=ends)
        return (weights * v).sum(), v

    for r in (1e-2, 1.0, 1e4, 1e8):
        truth, matrix = step_of_line(u.astype(float), k.astype(float), r, boundary)
        gradient, v = jax.grad(total_and_step, has_aux=True)(u, k, np.float32(r))

        np.testing.assert_allclose(v, truth, rtol=0, atol=3e-6)
        np.testing.assert_allclose(gradient, matrix.T @ weights, rtol=0, atol=5e-6)


def test_single_precision_stays(rng):
    u = rng.random((5, 6), np.float32)
    step = jax.eval_shape(lambda u: heat_step(u, dt=0.1, spacing=0.1, diffusivity=2.0), u)

    assert step.dtype == np.float32


def test_waves_on_a_line_decay_by_the_factor_of_crank_and_nicolson():
    nodes, dt, k = 17, 0.02, 1.3
    x = np.linspace(0, 1, nodes)
    wave = np.sin(3 * np.pi * x)
    eigenvalue = 4 * k * dt * (nodes - 1) ** 2 * np.sin(1.5 * np.pi / (nodes - 1)) ** 2

    step = jax.jit(lambda u: heat_step(u, dt=dt, spacing=1 / (nodes - 1), diffusivity=k))
    u = step(wave)

    factor = (1 - eigenvalue / 2) / (1 + eigenvalue / 2)
    np.testing.assert_allclose(u, factor * wave, atol=1e-13)


@pytest.fixture(scope="module")
def weighted_steps():
    """Data of two steps, and a function of them that returns a sum and its gradients."""
    rng = np.random.default_rng(3)
    values = {
        "u": rng.random((4, 5)),
        "dt": np.array(0.03),
        "k": rng.random((4, 5)) + 0.5,
        "wall": rng.random(5),
        "flux": rng.random(4),
        "exchange": np.array(1.5),
        "source": rng.random((4, 5)),
    }
    weight = rng.random((4, 5))

    def loss(v):
        boundary = {
            "x-": Neumann(v["flux"]),
            "x+": Robin(v["exchange"], 3.0),
            "y-": v["wall"],
            "y+": 0.2,
        }
        options = {"dt": v["dt"], "diffusivity": v["k"], "source": v["source"]}
        u = heat_step(v["u"], spacing=0.1, boundary=boundary, **options)
        return (weight * heat_step(u, spacing=0.1, boundary=boundary, **options)).sum()

    return values, jax.jit(jax.value_and_grad(loss))


@pytest.mark.parametrize("argument", ["u", "dt", "k", "wall", "flux", "exchange", "source"])
def test_gradients_agree_with_finite_differences(rng, weighted_steps, argument):
    values, loss = weighted_steps
    direction = rng.random(values[argument].shape)
    slope = (loss(values)[1][argument] * direction).sum()
    h = 1e-6
    high, low = (
        loss(values | {argument: values[argument] + s * h * direction})[0] for s in (1, -1)
    )
    np.testing.assert_allclose(slope, (high - low) / (2 * h), rtol=1e-6)


def test_batches_by_vmap(rng):
    u = rng.random((3, 5, 6))
    k = rng.random((3,)) + 0.5

    def step(u, k):
        return heat_step(u, dt=0.1, spacing=0.2, diffusivity=k)

    together, apart = jax.jit(jax.vmap(step))(u, k), jax.jit(step)

    for one, a, b in zip(together, u, k, strict=True):
        np.testing.assert_allclose(one, apart(a, b), rtol=1e-12)


def test_the_coefficient_of_robin_is_a_number():
    robin = Robin(np.arange(1.0, 6.0), 2.0)
    with pytest.raises(TypeError, match=r"coefficient of Robin must be a number, got .* \(5,\)"):
        heat_step(np.ones((5, 5)), dt=0.1, spacing=0.1, boundary={"x": robin, "y": 0.0})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"dt": np.ones(6)}, r"dt must broadcast to shape \(\)"),
        ({"source": np.ones((2, 5, 6))}, r"source must broadcast to shape \(5, 6\)"),
        ({"diffusivity": np.ones((2, 5, 6))}, r"diffusivity must broadcast to shape \(5, 6\)"),
        (
            {"boundary": {"x": Neumann(np.ones((5, 1))), "y": 0.0}},
            r"boundary x .* \(5,\), got shape \(5, 1",
        ),
        (
            {"boundary": {"x": 0.0, "y": Robin(1.0, np.ones(5))}},
            r"boundary y .* \(6,\), got shape \(5,",
        ),
    ],
)
def test_arrays_do_not_enlarge_the_field(options, text):
    with pytest.raises(ValueError, match=text):
        heat_step(np.ones((5, 6)), **({"dt": 0.1, "spacing": 0.1} | options))


COMPLEX = {
    "dt": {"dt": 0.1j},
    "diffusivity": {"diffusivity": 1 + 2j},
    "source": {"source": np.full(5, 1j)},
    "boundary x": {"boundary": {"x-": 0.0, "x+": np.array(1j)}},
}


@pytest.mark.parametrize("name", COMPLEX)
def test_imaginary_parts_are_not_dropped(name):
    arguments = {"dt": 0.1, "spacing": 0.1} | COMPLEX[name]
    with pytest.raises(TypeError, match=f"{name} must be real because u is float"):
        heat_step(np.ones(5), **arguments)
    for side in (Neumann(1j), Robin(1.0, 1j), Robin(1j, 0.0)):
        with pytest.raises(TypeError, match="boundary x must be real"):
            heat_step(np.ones(5), dt=0.1, spacing=0.1, boundary=side)


def test_fluxes_broadcast_over_their_side(rng):
    t, flux = rng.standard_normal((4, 5, 6)), rng.standard_normal(6)
    rest = {"x": 0.0, "y": 0.0}
    step = jax.jit(
        lambda t, values: heat_step(t, dt=0.1, spacing=0.2, boundary=rest | {"z": Neumann(values)})
    )
    found, whole = (step(t, values) for values in (flux, np.broadcast_to(flux, (5, 6))))
    np.testing.assert_allclose(found, whole, rtol=0, atol=1e-13)


def test_errors_name_the_rule():
    with pytest.raises(ValueError, match="1, 2 or 3 axes, got 0"):
        heat_step(1.0, dt=0.1, spacing=0.1)
    with pytest.raises(ValueError, match="periodic, or none"):
        heat_step(np.ones(5), dt=0.1, spacing=0.1, boundary={"x-": "periodic", "x+": 0.0})
    with pytest.raises(ValueError, match="at least 3 nodes along y, got 2"):
        heat_step(np.ones((2, 5)), dt=0.1, spacing=0.1)
