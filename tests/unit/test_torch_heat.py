"""`pysolvers.torch.heat_step`: the numbers of HeatADI, with gradients."""

import numpy as np
import pytest

from pysolvers import Dirichlet, HeatADI, Neumann, Robin

torch = pytest.importorskip("torch", exc_type=ImportError)

from pysolvers.torch import heat_step  # noqa: E402

# Of torch.compile itself, in torch 2.7.
pytestmark = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")

SPACING = {2: (0.5, 0.7), 3: (0.5, 0.7, 0.4)}
CASES = {
    "Dirichlet": ((7, 9), 0.0, 1.0, 0.0),
    "all kinds of sides": (
        (7, 9),
        lambda r: {"x-": 1.0, "x+": r((7,)), "y-": Neumann(0.3), "y+": Robin(0.7, r((9,)))},
        lambda r: r((7, 9)) + 0.5,
        lambda r: r((7, 9)),
    ),
    "periodic": ((7, 9), {"x": "periodic", "y": Neumann()}, {"x": 2.0, "y": 0.5}, 1.0),
    "box": (
        (5, 6, 7),
        lambda r: {
            "x-": 1.0,
            "x+": r((5, 6)),
            "y-": Neumann(r((5, 7))),
            "y+": Robin(0.7, 2.0),
            "z": "periodic",
        },
        lambda r: r((5, 6, 7)) + 0.5,
        lambda r: r((5, 6, 7)),
    ),
    "corners of a box": (
        (5, 6, 7),
        {"x-": 1.0, "x+": 0.0, "y-": Neumann(0.2), "y+": 3.0, "z-": Robin(1.0, 1.0), "z+": 2.0},
        1.5,
        0.0,
    ),
}


def in_torch(value):
    """Return a condition, a mapping or an array with tensors in place of the arrays."""
    if isinstance(value, dict):
        return {key: in_torch(one) for key, one in value.items()}
    if isinstance(value, Dirichlet):
        return Dirichlet(in_torch(value.value))
    if isinstance(value, Neumann):
        return Neumann(in_torch(value.flux))
    if isinstance(value, Robin):
        return Robin(value.coefficient, in_torch(value.ambient))
    return torch.tensor(value) if isinstance(value, np.ndarray) else value


# Both make the same step, however long.
@pytest.mark.filterwarnings("ignore:HeatADI.*too large for the solution:RuntimeWarning")
@pytest.mark.parametrize("case", CASES)
def test_steps_are_those_of_the_solver(rng, case):
    shape, *data = CASES[case]
    boundary, k, source = (one(rng.random) if callable(one) else one for one in data)
    spacing, initial = SPACING[len(shape)], rng.random(shape)
    solver = HeatADI(
        shape,
        spacing=spacing,
        dt=0.3,
        diffusivity=k,
        boundary=boundary,
        source=source,
        initial=initial,
        damped_start=False,
    )
    solver.step(3)

    u = torch.tensor(initial)
    given = {"diffusivity": k, "boundary": boundary, "source": source}
    for _ in range(3):
        u = heat_step(u, dt=0.3, spacing=spacing, **in_torch(given))

    np.testing.assert_allclose(u.numpy(), solver.u, rtol=0, atol=1e-14)


def test_a_sine_on_a_line_decays_by_the_factor_of_the_scheme():
    nodes, ratio = 33, 20.0
    h = 1 / (nodes - 1)
    wave = torch.sin(torch.pi * torch.linspace(0, 1, nodes, dtype=torch.float64))
    u = heat_step(wave, dt=ratio * h**2, spacing=h)
    a = 2 * ratio * np.sin(np.pi * h / 2) ** 2
    torch.testing.assert_close(u, wave * (1 - a) / (1 + a), rtol=0, atol=1e-14)


def volumes_of(shape, boundary):
    """Return the volumes of nodes in units of those inside."""
    volumes = torch.ones(shape)
    for axis in range(len(shape)):
        ends = volumes.movedim(axis, 0)
        ends[[0, -1]] /= 1 if boundary == "periodic" else 2
    return volumes


def total_and_gradients(weights, u, k, r, boundary):
    """Return T after a step, and the gradients of the sum of weights times T."""
    u, k = u.clone().requires_grad_(), k.clone().requires_grad_()
    v = heat_step(u, dt=r, spacing=1.0, diffusivity=k, boundary=boundary)
    (weights * v).sum().backward()
    return v.detach(), u.grad, k.grad


@pytest.mark.parametrize("boundary", [Neumann(), "periodic"])
def test_an_insulated_constant_keeps_its_bits(rng, boundary):
    """Its heat has exact gradients, too: the volumes, and 0 with respect to k."""
    for shape in ((17,), (9, 12), (5, 6, 7)):
        u, k = torch.full(shape, 61.3), torch.tensor(1e6 ** -rng.random(shape)).float()
        volumes = volumes_of(shape, boundary)
        for r in (1e-3, 1.0, 1e4, 1e8):
            found, of_u, of_k = total_and_gradients(volumes, u, k, r, boundary)

            assert torch.equal(found, u)
            assert torch.equal(of_u, volumes)
            assert not of_k.any()


@pytest.mark.parametrize("boundary", [Neumann(), "periodic"])
def test_long_steps_keep_heat_and_gradients_in_single_precision(rng, boundary):
    """A noise on top of a constant, layers of k; the truth is a step in double precision."""
    shape, r = (40, 48), 1e4
    k = torch.tensor(np.where(rng.random(shape) < 0.5, 1.0, 0.01)).float()
    u = torch.tensor(20 + rng.random(shape)).float()
    weights = torch.tensor(rng.standard_normal(shape)).float()
    found, *gradients = total_and_gradients(weights, u, k, r, boundary)
    truth, *right = total_and_gradients(*(a.double() for a in (weights, u, k)), r, boundary)

    volumes = volumes_of(shape, boundary).double()
    assert (volumes * (found.double() - u)).sum().abs() <= 5e-5 * volumes.sum()
    assert (found - truth).abs().max() <= r * np.finfo(np.float32).eps / 2
    for gradient, expected in zip(gradients, right, strict=True):
        assert (gradient - expected).abs().max() <= 1e-5 * expected.abs().max()


def step(u, k, source, dt, values):
    boundary = {"x-": values, "x+": Robin(values[0], values), "y-": Neumann(values[1]), "y+": 1.0}
    return heat_step(u, dt=dt, spacing=0.5, diffusivity=k, source=source, boundary=boundary)


@pytest.fixture
def arguments():
    generator = torch.Generator().manual_seed(1)
    shapes = ((4, 5), (4, 5), (4, 5), (), (4,))
    made = [torch.rand(s, dtype=torch.float64, generator=generator) + 0.5 for s in shapes]
    return [a.requires_grad_() for a in made]


def test_gradients_are_those_of_finite_differences(arguments):
    assert torch.autograd.gradcheck(step, arguments)
    assert torch.autograd.gradgradcheck(step, arguments)


def test_gradient_through_many_steps(arguments):
    u, k, *others = arguments

    def loss(k):
        field = u.detach()
        for _ in range(20):
            field = step(field, k, *others)
        return field.square().sum()

    assert torch.autograd.gradcheck(loss, k)


def test_batches_and_compilation(arguments):
    torch._dynamo.reset()
    fields = torch.stack([arguments[0].detach(), 2 * arguments[0].detach()])
    rest = [a.detach() for a in arguments[1:]]
    found = torch.vmap(step, in_dims=(0, None, None, None, None))(fields, *rest)
    expected = torch.stack([step(field, *rest) for field in fields])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(fields[0], *rest), expected[0], rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"dt": torch.ones(6)}, r"dt must broadcast to shape \(\), got shape \(6,\)"),
        ({"source": torch.ones(2, 5, 6)}, r"source must broadcast to shape \(5, 6\)"),
        ({"source": torch.ones(5)}, r"source must broadcast to shape \(5, 6\)"),
        ({"diffusivity": torch.ones(2, 5, 6)}, r"diffusivity must broadcast to shape \(5, 6\)"),
        (
            {"boundary": {"x": torch.ones(2, 5), "y": 0.0}},
            r"boundary x .* \(5,\), got shape \(2, 5",
        ),
        (
            {"boundary": {"x": Neumann(torch.ones(5, 1)), "y": 0.0}},
            r"x .* \(5,\), got shape \(5, 1",
        ),
        ({"boundary": {"x": 0.0, "y": Robin(1.0, torch.ones(5))}}, r"y .* \(6,\), got shape \(5,"),
    ],
)
def test_arrays_do_not_enlarge_the_field(options, text):
    with pytest.raises(ValueError, match=text):
        heat_step(torch.ones(5, 6), **({"dt": 0.1, "spacing": 0.1} | options))


@pytest.mark.parametrize("kind", [Neumann, Dirichlet, lambda values: Robin(0.3, values)])
def test_values_of_a_side_broadcast_over_it(kind):
    t, values = torch.rand(4, 5, 6), torch.rand(6)
    found, whole = (
        heat_step(t, dt=0.1, spacing=0.2, boundary={"x": 0.0, "y": 0.0, "z": kind(of_side)})
        for of_side in (values, values.expand(5, 6))
    )
    torch.testing.assert_close(found, whole, rtol=0, atol=0)


COMPLEX = {
    "dt": {"dt": 0.1j},
    "diffusivity": {"diffusivity": torch.tensor(1 + 2j)},
    "source": {"source": torch.full((5,), 1j)},
    "boundary x": {"boundary": {"x-": 0.0, "x+": torch.tensor(1j)}},
}


@pytest.mark.parametrize("name", COMPLEX)
def test_imaginary_parts_are_not_dropped(name):
    arguments = {"dt": 0.1, "spacing": 0.1} | COMPLEX[name]
    with pytest.raises(TypeError, match=f"{name} must be a real number"):
        heat_step(torch.ones(5), **arguments)
    imaginary = torch.tensor(1j)
    for side in (Neumann(imaginary), Robin(1.0, imaginary), Robin(imaginary, 0.0)):
        with pytest.raises(TypeError, match="boundary x must be a real number"):
            heat_step(torch.ones(5), dt=0.1, spacing=0.1, boundary=side)


def test_bad_arguments_are_refused():
    u = torch.zeros(3, 4)
    with pytest.raises(TypeError, match="float32 or float64, got ndarray"):
        heat_step(np.zeros((3, 4)), dt=0.1, spacing=1.0)
    with pytest.raises(TypeError, match=r"source must be a real .* ndarray"):
        heat_step(u, dt=0.1, spacing=1.0, source=np.zeros((3, 4)))
    with pytest.raises(ValueError, match="1, 2 or 3 axes"):
        heat_step(torch.tensor(1.0), dt=0.1, spacing=1.0)
    with pytest.raises(ValueError, match="spacing must be positive"):
        heat_step(u, dt=0.1, spacing=-1.0)
    with pytest.raises(ValueError, match="each side must be given"):
        heat_step(u, dt=0.1, spacing=1.0, boundary={"x": 0.0})
    with pytest.raises(ValueError, match="must be periodic, or none"):
        heat_step(u, dt=0.1, spacing=1.0, boundary={"x-": "periodic", "x+": 0.0, "y": 0.0})
    with pytest.raises(ValueError, match="at least 3 nodes along y"):
        heat_step(u[:2], dt=0.1, spacing=1.0)
    with pytest.raises(TypeError, match=r"Robin must be a number, got an array of shape \(4,\)"):
        heat_step(
            u,
            dt=0.1,
            spacing=1.0,
            boundary={"x-": 0.0, "x+": 0.0, "y-": 0.0, "y+": Robin(torch.ones(4), 0.0)},
        )
