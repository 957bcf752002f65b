"""`heat_step` of JAX and PyTorch: the numbers of `HeatADI`, exact factors, and gradients."""

import numpy as np
import pytest
from array_libraries import check_derivatives, converted

from pysolvers import Dirichlet, HeatADI, Neumann, Robin

SHAPES = {1: (9,), 2: (7, 9), 3: (5, 6, 7)}
SPACING = {"x": 0.1, "y": 0.2, "z": 0.3}


@pytest.fixture
def heat_step(differentiable):
    return differentiable.functions.heat_step


def spacing_of(axes):
    return {name: SPACING[name] for name in "xyz"[:axes]}


def boundary_of(kind, shape, rng):
    """Return conditions of all sides, with values that vary along the sides."""

    def values(axis):
        sizes = list(shape)
        del sizes[-1 - "xyz".index(axis)]
        return rng.random(sizes) if sizes else float(rng.random())

    names = "xyz"[: len(shape)]
    if kind == "values":
        return {name: values(name) for name in names}
    if kind == "numbers":  # which differ where sides meet
        return {name + sign: float(rng.random()) for name in names for sign in "-+"}
    if kind == "periodic":
        return dict.fromkeys(names, "periodic")
    if kind == "fluxes":
        return {name: Neumann(values(name)) for name in names}
    if kind == "ring":
        others = {"y-": values("y"), "y+": Neumann(values("y")), "z": "periodic"}
        return {"x": "periodic"} | {k: v for k, v in others.items() if k[0] in names}
    others = {name: Robin(1.5, values(name)) for name in names[1:]}
    return others | {"x-": Robin(2.0, values("x")), "x+": Dirichlet(values("x"))}


# Both make the same step, however long.
@pytest.mark.filterwarnings("ignore:HeatADI.*too large for the solution:RuntimeWarning")
@pytest.mark.parametrize(
    ("axes", "kind", "conductivity"),
    [
        (2, "numbers", "nodes"),
        (2, "periodic", "nodes"),
        (2, "fluxes", "axes"),
        (2, "mixed", "nodes"),
        (3, "numbers", "number"),
        (3, "mixed", "nodes"),
        pytest.param(2, "values", "number", marks=pytest.mark.slow),
        pytest.param(2, "ring", "number", marks=pytest.mark.slow),
        # Kinds of sides are branches of a plane, too; a box adds the third axis.
        pytest.param(3, "ring", "axes", marks=pytest.mark.slow),
        pytest.param(3, "values", "nodes", marks=pytest.mark.slow),
        pytest.param(3, "fluxes", "nodes", marks=pytest.mark.slow),
    ],
)
def test_steps_are_those_of_the_solver(differentiable, heat_step, rng, axes, kind, conductivity):
    shape = SHAPES[axes]
    k = {"number": 1.7, "nodes": rng.random(shape) + 0.5, "axes": spacing_of(axes)}[conductivity]
    options = {
        "diffusivity": k,
        "boundary": boundary_of(kind, shape, rng),
        "source": rng.random(shape),
    }
    steps = {"dt": 0.03, "spacing": spacing_of(axes)}
    start = rng.random(shape)
    solver = HeatADI(shape, initial=start, damped_start=False, **steps, **options).step(3)
    there = converted(differentiable, options)

    step = differentiable.jit(lambda u: heat_step(u, **steps, **there))
    u = differentiable.array(start)
    for _ in range(3):
        u = step(u)

    np.testing.assert_allclose(differentiable.get(u), solver.u, rtol=0, atol=1e-13)


def test_waves_on_a_line_decay_by_the_factor_of_crank_and_nicolson(differentiable, heat_step):
    nodes, k = 33, 1.3
    x = np.linspace(0, 1, nodes)
    h = x[1]
    for number, ratio in ((1, 20.0), (3, 0.7), (3, 1e4)):
        wave = np.sin(number * np.pi * x)
        wave[-1] = 0
        dt = ratio * h**2 / k
        a = 2 * ratio * np.sin(number * np.pi * h / 2) ** 2

        u = heat_step(differentiable.array(wave), dt=dt, spacing=h, diffusivity=k)

        expected = wave * (1 - a) / (1 + a)
        np.testing.assert_allclose(differentiable.get(u), expected, rtol=0, atol=1e-13)


def insulated(axes, first):
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


STEPPERS = {}  # those of JAX are programs, each of which compiles for seconds


def stepper(library, shape, first, *, is_truth=False):
    """Return a function of T, k, r and weights: T after a step, and gradients of sum(weights T).

    With the optimizations of users, which change the order of operations, unless it `is_truth`.
    """
    key = library.name, shape, first, is_truth
    if key not in STEPPERS:
        step, boundary = library.functions.heat_step, insulated(len(shape), first)
        compiled = library.jit if is_truth else library.optimized

        def total(u, k, r, weights):
            new = step(u, dt=r, spacing=1.0, diffusivity=k, boundary=boundary)
            return (weights * new).sum(), new

        STEPPERS[key] = compiled(library.value_and_grad(total, 2, has_aux=True))

    def function(u, k, r, weights):
        given = (library.array(a) for a in (u, k, u.dtype.type(r), weights))
        (_, new), of_both = STEPPERS[key](*given)
        return [library.get(a) for a in (new, *of_both)]

    return function


# In boxes, one axis more than in planes, JAX compiles for some seconds; a line is a plane's axis.
@pytest.mark.parametrize(
    "shape", [(40, 48), *(pytest.param(n, marks=pytest.mark.slow) for n in ((17,), (5, 6, 7)))]
)
@pytest.mark.parametrize("first", ["fluxes", pytest.param("periodic", marks=pytest.mark.slow)])
def test_an_insulated_constant_keeps_its_bits(differentiable, rng, shape, first):
    """Its heat has exact gradients, too: the volumes, and 0 with respect to k."""
    boundary = insulated(len(shape), first)
    u = np.full(shape, 61.3, np.float32)
    k = (1e6 ** -rng.random(shape)).astype(np.float32)
    volumes = volumes_of(shape, boundary)
    step = stepper(differentiable, shape, first)
    alone = differentiable.optimized(  # a program of its own, with other orders of operations
        lambda u, k, r: differentiable.functions.heat_step(
            u, dt=r, spacing=1.0, diffusivity=k, boundary=boundary
        )
    )
    for r in (1e-3, 1.0, 1e4, 1e8):
        found, of_u, of_k = step(u, k, r, volumes)

        np.testing.assert_array_equal(found, u)
        once = alone(*(differentiable.array(a) for a in (u, k, np.float32(r))))
        np.testing.assert_array_equal(differentiable.get(once), u)
        np.testing.assert_array_equal(of_u, volumes)
        np.testing.assert_array_equal(of_k, 0)


@pytest.mark.parametrize("first", ["fluxes", pytest.param("periodic", marks=pytest.mark.slow)])
def test_long_steps_keep_heat_and_gradients_in_single_precision(differentiable, rng, first):
    """A noise on top of a constant, layers of k; the truth is a step in double precision."""
    shape, r = (40, 48), 1e4
    boundary = insulated(2, first)
    k = np.where(rng.random(shape) < 0.5, 1.0, 0.01).astype(np.float32)
    u = (20 + rng.random(shape)).astype(np.float32)
    volumes = volumes_of(shape, boundary)
    weights = rng.standard_normal(shape).astype(np.float32)
    found, *gradients = stepper(differentiable, shape, first)(u, k, r, weights)
    double = stepper(differentiable, shape, first, is_truth=True)
    truth, *right = double(u.astype(float), k.astype(float), r, weights.astype(float))

    assert found.dtype == np.float32
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
def test_steps_on_a_line_and_their_gradients_keep_their_digits(
    differentiable, heat_step, rng, boundary
):
    """For any k dt / h^2: neither the step nor its derivative contains a product with K."""
    n = 33
    u, weights = rng.standard_normal((2, n)).astype(np.float32)
    k = (1 + rng.random(n)).astype(np.float32)
    there = [differentiable.array(a) for a in (u, k, weights)]

    def step(u, r):
        ends = {"x-": u[0], "x+": u[-1]} if boundary == "values" else boundary
        return heat_step(u, dt=r, spacing=1.0, diffusivity=there[1], boundary=ends)

    def total(u, r):
        new = step(u, r)
        return (there[2] * new).sum(), new

    gradients = differentiable.value_and_grad(total, has_aux=True)
    for r in (1e-2, 1.0, 1e4, 1e8):
        truth, matrix = step_of_line(u.astype(float), k.astype(float), r, boundary)
        (_, new), (gradient,) = gradients(there[0], differentiable.array(np.float32(r)))

        np.testing.assert_allclose(differentiable.get(new), truth, rtol=0, atol=3e-6)
        expected = matrix.T @ weights
        np.testing.assert_allclose(differentiable.get(gradient), expected, rtol=0, atol=5e-6)


def data_of_steps(rng):
    """Return T, dt, k, values of sides, a coefficient of Robin and a source."""
    return {
        "u": rng.random((4, 5)),
        "dt": np.array(0.03),
        "k": rng.random((4, 5)) + 0.5,
        "wall": rng.random(5),
        "flux": rng.random(4),
        "exchange": np.array(1.5),
        "source": rng.random((4, 5)),
    }


def steps(heat_step, count, u, dt, k, wall, flux, exchange, source):
    boundary = {"x-": Neumann(flux), "x+": Robin(exchange, 3.0), "y-": wall, "y+": 0.2}
    for _ in range(count):
        u = heat_step(u, dt=dt, spacing=0.1, diffusivity=k, source=source, boundary=boundary)
    return u


@pytest.mark.parametrize("orders", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_derivatives_of_any_order(differentiable, heat_step, rng, orders):
    values = data_of_steps(rng)
    weight = differentiable.array(rng.random((4, 5)))

    def loss(*arrays):
        u = steps(heat_step, 1, **dict(zip(values, arrays, strict=True)))
        return (weight * u**2).sum()

    check_derivatives(differentiable, loss, list(values.values()), rng, orders=orders)


@pytest.mark.slow  # the chain rule is that of the libraries; the derivatives of a step are above
def test_gradient_through_many_steps(everywhere, rng):
    values = data_of_steps(rng)
    others = {k: everywhere.array(v) for k, v in values.items() if k != "k"}

    def loss(k):
        return (steps(everywhere.functions.heat_step, 3, k=k, **others) ** 2).sum()

    check_derivatives(everywhere, loss, [values["k"]], rng, orders=1)


def test_batches_and_programs(everywhere, rng):
    values = {k: everywhere.array(v) for k, v in data_of_steps(rng).items()}
    fields = everywhere.stack([values.pop("u"), everywhere.array(rng.random((4, 5)))])
    k = values.pop("k")
    factors = everywhere.array(np.array([1.0, 0.7]))

    def step(u, factor):
        return steps(everywhere.functions.heat_step, 1, u=u, k=factor * k, **values)

    alone = everywhere.jit(step)
    apart = [alone(*one) for one in zip(fields, factors, strict=True)]
    together = everywhere.vmap(step)(fields, factors)
    in_program = everywhere.compiled(step)(fields[0], factors[0])

    for one, expected in zip((*together, in_program), (*apart, apart[0]), strict=True):
        one, expected = (everywhere.get(a) for a in (one, expected))
        np.testing.assert_allclose(one, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"dt": np.ones(6)}, r"dt must broadcast to shape \(\), got shape \(6,\)"),
        ({"source": np.ones((2, 5, 6))}, r"source must broadcast to shape \(5, 6\)"),
        ({"source": np.ones(5)}, r"source must broadcast to shape \(5, 6\)"),
        ({"diffusivity": np.ones((2, 5, 6))}, r"diffusivity must broadcast to shape \(5, 6\)"),
        (
            {"boundary": {"x": np.ones((2, 5)), "y": 0.0}},
            r"boundary x .* \(5,\), got shape \(2, 5",
        ),
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
def test_arrays_do_not_enlarge_the_field(differentiable, heat_step, options, text):
    given = {"dt": 0.1, "spacing": 0.1} | converted(differentiable, options)
    with pytest.raises(ValueError, match=text):
        heat_step(differentiable.array(np.ones((5, 6))), **given)


def test_values_of_a_side_broadcast_over_it(differentiable, heat_step, rng):
    t, values = differentiable.array(rng.random((4, 5, 6))), rng.random(6)

    @differentiable.jit
    def step(of_y, of_z):
        boundary = {"x": 0.0, "z-": Neumann(of_z), "z+": of_z}
        boundary |= {"y-": Robin(0.3, of_y), "y+": Dirichlet(of_y)}
        return heat_step(t, dt=0.1, spacing=0.2, boundary=boundary)

    found, whole = (
        step(*map(differentiable.array, of_sides))
        for of_sides in (
            (values, values),
            [np.broadcast_to(values, (n, 6)).copy() for n in (4, 5)],
        )
    )
    found, whole = differentiable.get(found), differentiable.get(whole)
    np.testing.assert_allclose(found, whole, rtol=0, atol=1e-13)


COMPLEX = {
    "dt": {"dt": 0.1j},
    "diffusivity": {"diffusivity": np.array(1 + 2j)},
    "source": {"source": np.full(5, 1j)},
    "boundary x": {"boundary": {"x-": 0.0, "x+": np.array(1j)}},
}


@pytest.mark.parametrize("name", COMPLEX)
def test_imaginary_parts_are_not_dropped(differentiable, heat_step, name):
    u = differentiable.array(np.ones(5))
    arguments = {"dt": 0.1, "spacing": 0.1} | converted(differentiable, COMPLEX[name])
    with pytest.raises(TypeError, match=rf"{name} must be (a )?real"):
        heat_step(u, **arguments)
    one = differentiable.array(np.array(1j))
    for side in (Neumann(one), Robin(1.0, one), Robin(one, 0.0)):
        with pytest.raises(TypeError, match=r"boundary x must be (a )?real"):
            heat_step(u, dt=0.1, spacing=0.1, boundary=side)


@pytest.mark.parametrize("differentiable", ["jax"], indirect=True)
def test_complex_fields_are_two_real_ones(differentiable, heat_step, rng):
    """Real data belong to the real part; the imaginary part has none."""
    u, source, wall = rng.random((2, 5, 6)), rng.random((5, 6)), rng.random(5)
    options = {"dt": 0.3, "spacing": 0.2, "diffusivity": rng.random((5, 6)) + 0.5}
    boundary = {"x": wall, "y": Neumann()}
    step = differentiable.jit(lambda u: heat_step(u, source=source, boundary=boundary, **options))
    none = differentiable.jit(
        lambda u: heat_step(u, boundary={"x": 0.0, "y": Neumann()}, **options)
    )
    found = differentiable.get(step(differentiable.array(u[0] + 1j * u[1])))
    np.testing.assert_allclose(found.real, step(u[0]), rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.imag, none(u[1]), rtol=0, atol=1e-14)


def test_bad_arguments_are_refused(differentiable, heat_step):
    u = differentiable.array(np.zeros((3, 4)))
    sides = {"x-": 0.0, "x+": 0.0, "y-": 0.0}
    robin = Robin(differentiable.array(np.ones(4)), 0.0)
    for field, options, kind, text in (
        (differentiable.array(np.array(1.0)), {}, ValueError, "1, 2 or 3 axes"),
        (u, {"spacing": -1.0}, ValueError, "spacing must be positive"),
        (u, {"boundary": {"x": 0.0}}, ValueError, "each side must be given"),
        (u, {"boundary": {"x-": "periodic", "x+": 0.0, "y": 0.0}}, ValueError, "periodic, or none"),
        (u[:2], {}, ValueError, "at least 3 nodes along y"),
        (u, {"boundary": sides | {"y+": robin}}, TypeError, r"Robin must be a number, .* \(4,\)"),
    ):
        with pytest.raises(kind, match=text):
            heat_step(field, **({"dt": 0.1, "spacing": 1.0} | options))


@pytest.mark.parametrize("differentiable", ["torch"], indirect=True)
def test_torch_takes_tensors_alone(heat_step, differentiable):
    with pytest.raises(TypeError, match="float32 or float64, got ndarray"):
        heat_step(np.zeros((3, 4)), dt=0.1, spacing=1.0)
    u = differentiable.array(np.zeros((3, 4)))
    with pytest.raises(TypeError, match=r"source must be a real .* ndarray"):
        heat_step(u, dt=0.1, spacing=1.0, source=np.zeros((3, 4)))
