"""What all solvers share: functions by name, short messages, sides, domains, the clock."""

import inspect
import math
import typing

import numpy as np
import pytest

import pysolvers
import pysolvers.transport
from pysolvers import (
    GCEIDD,
    LMSOR,
    ConvectionDiffusion,
    Dirichlet,
    FastPoisson,
    HeatADI,
    Neumann,
    RedBlackSOR,
    Robin,
    SteadyConvectionDiffusion,
    solve_laplace,
)

X, Y = np.linspace(0, 1, 5)[None, :], np.linspace(0, 2, 4)[:, None]


def test_no_message_of_a_solver_holds_a_whole_list():
    rows = [["a"] * 65] * 65
    for make in (
        lambda: HeatADI((5, 5), 0.1, 0.1, diffusivity=rows, boundary=0.0),
        lambda: HeatADI((5, 5), 0.1, 0.1, source=rows, boundary=0.0),
        lambda: HeatADI(rows, 0.1, 0.1, boundary=0.0),
        lambda: HeatADI((5, 5), extent=rows, dt=0.1, boundary=0.0),
        lambda: ConvectionDiffusion(rows, 0.1, boundary=0.0),
        lambda: ConvectionDiffusion((1, 1), 0.1, extent=rows, boundary=0.0),
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            make()
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "make",
    [
        lambda sides: HeatADI((5, 5), 0.1, 0.1, boundary=sides),
        lambda sides: FastPoisson((5, 5), 0.1, boundary=sides),
        lambda sides: ConvectionDiffusion((1, 1), 0.1, boundary=sides),
        lambda sides: RedBlackSOR((5, 5), extent=((0, 1), (0, 1)), boundary=sides),
    ],
)
def test_a_class_is_not_a_condition(make):
    for sides in (Neumann, {"x": 0.0, "y": Neumann}):
        with pytest.raises(TypeError, match=r"for example Neumann\(0.0\), got the class Neumann"):
            make(sides)


@pytest.mark.parametrize("until", [0.015, 0.05, 0.0501, 1 / 3])
def test_a_run_ends_exactly(until):
    solver = HeatADI((5, 5), 0.1, 0.01, boundary=lambda t: t)
    result = solver.run(until)

    assert solver.time == result.time == until
    assert result.steps == int(np.ceil(until / 0.01 - 1e-9))
    rest = until - 0.01 * (result.steps - 1)
    assert result.last_dt == pytest.approx(rest)
    np.testing.assert_allclose(result.u[0], until, rtol=1e-12)
    assert solver.dt == result.dt == 0.01


def test_the_step_can_change_and_the_order_stays():
    """Steps of two lengths in turn: the error of the second order, and the field goes on."""

    def error(n):
        solver = HeatADI(
            (9, 9),
            extent=((0, np.pi), (0, np.pi)),
            dt=1 / n,
            initial=lambda x, y: np.sin(x) * np.sin(y),
            boundary=0.0,
        )
        for _ in range(n // 4):
            solver.dt = 1 / n
            solver.step(2)
            solver.dt = 2 / n
            solver.step()
        rate = 2 * (2 - 2 * np.cos(np.pi / 8)) / (np.pi / 8) ** 2
        assert solver.time == pytest.approx(1.0)
        return abs(solver.u[4, 4] - np.exp(-rate))

    assert np.log2(error(16) / error(32)) == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize("shape", [(6, 9), (5, 6, 7)])
def test_inflow_and_source_follow_the_step(shape):
    """Heat of a closed box: what flows in and what the source makes, with steps of two lengths."""
    solver = HeatADI(shape, 0.5, 0.1, boundary=Neumann(0.3), source=0.2)
    solver.step(2)
    solver.dt = 0.03
    solver.step(5)

    volume = np.full(shape, 0.5 ** len(shape))
    for axis in range(len(shape)):
        for end in (0, -1):
            np.moveaxis(volume, axis, 0)[end] /= 2
    lengths = [0.5 * (n - 1) for n in shape]
    surface = sum(2 * np.prod(lengths) / length for length in lengths)
    expected = (0.3 * surface + 0.2 * np.prod(lengths)) * 0.35
    assert (volume * solver.u).sum() == pytest.approx(expected, rel=1e-12)


def test_dt_is_checked():
    solver = HeatADI((5, 5), 0.1, 0.01, boundary=0.0)

    with pytest.raises(ValueError, match="dt must be positive"):
        solver.dt = 0.0
    with pytest.raises(TypeError, match="dt must be a number"):
        solver.dt = "fast"


def test_a_callback_may_change_the_step():
    solver = HeatADI((5, 5), 0.1, 0.01, boundary=0.0)

    def refine(solver):
        solver.dt = 0.002

    result = solver.run(0.06, callback=refine, interval=5)

    assert result.steps == 5 + 5
    assert solver.time == 0.06


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: pysolvers.GCEIDD(ConvectionDiffusion((1, 1), 0.1, boundary=0.0), 8, 0.1),
            ValueError,
            r"shape must be \(ny, nx\), .* got 8",
        ),
        (
            lambda: pysolvers.transport.suggest_dt(
                ConvectionDiffusion((1, 1), 0.1, boundary=0.0), 8
            ),
            ValueError,
            r"shape must be \(ny, nx\), .* got 8",
        ),
        (
            lambda: SteadyConvectionDiffusion(1.0, 1.0, shape=(3, 4), boundary=0.0),
            TypeError,
            "needs either spacing or extent, got neither",
        ),
        (
            lambda: SteadyConvectionDiffusion(1.0, 1.0, shape=(3, 4), extent=(1, 2), boundary=0.0),
            ValueError,
            r"extent must be a pair \(low, high\)",
        ),
        (
            lambda: RedBlackSOR((4, 4), boundary=1.0),
            TypeError,
            "needs either spacing or extent, got neither",
        ),
        (
            lambda: RedBlackSOR((4, 4), extent=(2, 1), boundary=1.0),
            ValueError,
            r"extent must be a pair \(low, high\)",
        ),
        (
            lambda: pysolvers.solve_laplace((4, 4), spacing=1.0, boundary={"x": 1.0}),
            ValueError,
            r"each side must be given.*; y-, y\+ are missing",
        ),
        (
            lambda: pysolvers.solve_laplace((4, 4), spacing=1.0),
            TypeError,
            "missing 1 required keyword-only argument: 'boundary'",
        ),
    ],
)
def test_a_domain_or_a_side_left_out_is_an_error(make, error, message):
    with pytest.raises(error, match=message):
        make()


SOLVERS = (
    pysolvers.HeatADI,
    pysolvers.GCEIDD,
    pysolvers.LMSOR,
    pysolvers.RedBlackSOR,
    pysolvers.SteadyConvectionDiffusion,
    pysolvers.FastPoisson,
    pysolvers.CubicSpline,
    pysolvers.LidDrivenCavity,
    pysolvers.SquareCylinder,
    pysolvers.StaggeredCavity,
    pysolvers.solve_laplace,
    pysolvers.LMSOR.solve,
    pysolvers.transport.suggest_dt,
)


@pytest.mark.parametrize("function", SOLVERS, ids=lambda f: f.__qualname__)
def test_text_options_are_literal_and_named(function):
    """A type checker finds a misspelt value and a misspelt name."""
    target = function.__init__ if inspect.isclass(function) else function
    types = typing.get_type_hints(target)
    for parameter in inspect.signature(target).parameters.values():
        assert parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        if isinstance(parameter.default, str):
            kinds = (types[parameter.name], *typing.get_args(types[parameter.name]))
            assert any(typing.get_origin(kind) is typing.Literal for kind in kinds), parameter
            choices = {c for kind in kinds for c in typing.get_args(kind)}
            assert parameter.default in choices


def made():
    unit = {"extent": ((0, 1), (0, 1))}
    heat = HeatADI((5, 6), 0.1, 0.1, boundary=0.0)
    transport = ConvectionDiffusion((1.0, lambda x: x), np.ones((5, 5)), boundary=0.0)
    gceidd = pysolvers.GCEIDD(transport, shape=(5, 5), dt=0.1)
    problem = pysolvers.SteadyConvectionDiffusion(1.0, 2.0, shape=(5, 5), boundary=0.0, **unit)
    lmsor = pysolvers.LMSOR(problem)
    plate = pysolvers.RedBlackSOR((5, 5), boundary=1.0, **unit)
    cavity, staggered = pysolvers.LidDrivenCavity(100, 9), pysolvers.StaggeredCavity(100, 9)
    cylinder = pysolvers.SquareCylinder(20, (33, 201), steady=True)
    poisson = pysolvers.FastPoisson((5, 5), 0.1, boundary=0.0)
    solvers = [heat, gceidd, lmsor, plate, cavity, staggered, cylinder]
    results = [each.result() for each in solvers]
    spline = pysolvers.CubicSpline([0, 1, 2], [0, 1, 4])
    return [*solvers, transport, problem, poisson, spline, *results]


@pytest.mark.filterwarnings("ignore:invalid value")
def test_solvers_have_shape_and_coordinates():
    for each in made():
        if not hasattr(each, "u") or not hasattr(each, "shape"):
            continue
        assert (len(each.y), len(each.x)) == tuple(each.shape)
        name = "p" if isinstance(each, pysolvers.StaggeredCavity) else "u"
        assert getattr(each, name).shape == tuple(each.shape)
        result = each.result()
        np.testing.assert_array_equal(result.x, each.x)
        np.testing.assert_array_equal(result.y, each.y)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_solvers_and_results_show_is_short():
    for each in made():
        lines = repr(each).splitlines()
        assert len(lines) <= 6, repr(each)
        assert max(map(len, lines)) < 250
        assert " object at " not in repr(each)
        if hasattr(each, "result"):  # a solver that has not measured a residual yet
            assert "inf" not in repr(each)
        assert each._repr_html_().startswith(("<table>", "<code>"))
        assert "&lt;" in each._repr_html_() or "<F" not in each._repr_html_()


def test_results_name_backend_and_threads():
    result = pysolvers.LidDrivenCavity(100, 9, threads=1).iterate(3).result()
    assert repr(result).endswith(f"cpu, {result.kernel}, 1 thread")
    assert (
        repr(HeatADI((5, 7), 0.1, 0.1, boundary=0.0).result()).splitlines()[1] == "  nodes    5 × 7"
    )
    assert repr(HeatADI((5, 7), 0.1, 0.1, boundary=0.0).result()).endswith("seconds  0, cpu")


def _field(values):
    return {
        "HeatADI": lambda: HeatADI((4, 5), spacing=1.0, dt=1.0, initial=values, boundary=0.0),
        "HeatADI source": lambda: HeatADI(
            (4, 5), spacing=1.0, dt=1.0, source=lambda t: values, boundary=0.0
        ),
        "GCEIDD": lambda: GCEIDD(
            ConvectionDiffusion((1.0, 1.0), 0.1, source=values, boundary=0.0), shape=(4, 5), dt=0.1
        ),
        "SteadyConvectionDiffusion": lambda: SteadyConvectionDiffusion(
            values, 0.0, shape=(4, 5), spacing=1.0, boundary=0.0
        ),
        "boundary": lambda: SteadyConvectionDiffusion(
            0.0, 0.0, shape=(4, 5), spacing=1.0, boundary=values
        ),
        "side": lambda: SteadyConvectionDiffusion(
            0.0, 0.0, shape=(4, 5), spacing=1.0, boundary={"x": values[:, :1], "y": 0.0}
        ),
        "RedBlackSOR": lambda: RedBlackSOR((4, 5), spacing=1.0, boundary=0.0, source=values),
        "FastPoisson": lambda: FastPoisson((4, 5), spacing=1.0, boundary=0.0).solve(values),
    }


@pytest.mark.parametrize("solver", _field(np.ones((4, 5))))
def test_arrays_that_would_lose_values_are_refused(solver):
    masked = np.ma.masked_array(np.ones((4, 5)), np.eye(4, 5))
    with pytest.raises(TypeError, match="plain array"):
        _field(masked)[solver]()
    for lossy in (1j * np.ones((4, 5)), np.full((4, 5), "1")):
        with pytest.raises(TypeError, match=r"real|complex128|numbers"):
            _field(lossy)[solver]()
    _field(np.ones((4, 5)))[solver]()


def spoil(x, y):
    y *= 2
    x *= 2  # a coordinate that is a number can be changed: it is a copy
    return x * y


UNIT = {"extent": ((0.0, 1.0), (0.0, 1.0))}


def transport(velocity=(1.0, 1.0), diffusion=0.1, **options):
    problem = ConvectionDiffusion(velocity, diffusion, **({"boundary": 0.0} | options))
    return pysolvers.GCEIDD(problem, shape=(6, 5), dt=0.1)


def steady(f=1.0, g=1.0, **options):
    options = {"boundary": 0.0} | options
    options = {"boundary": 0.0} | options
    return SteadyConvectionDiffusion(f, g, shape=(6, 5), **UNIT, **options)


def plate(**options):
    options = {"boundary": 0.0} | options
    return RedBlackSOR((6, 5), **UNIT, **options)


def poisson(**options):
    options = {"boundary": 0.0} | options
    return FastPoisson((6, 5), **UNIT, **options)


def heat(**options):
    options = {"boundary": 0.0} | options
    return HeatADI((6, 5), **UNIT, dt=0.01, **options)


@pytest.mark.parametrize("side", ["x-", "y+"])
@pytest.mark.parametrize(
    ("make", "kinds"),
    [
        (heat, (Dirichlet, Neumann, lambda ambient: Robin(1.0, ambient))),
        (transport, (Dirichlet, Neumann)),
        (plate, (Dirichlet, Neumann, lambda ambient: Robin(1.0, ambient))),
        (poisson, (Dirichlet, Neumann)),
        (steady, (Dirichlet,)),
    ],
)
def test_a_function_of_a_side_cannot_change_the_coordinates(make, kinds, side):
    zeros = dict.fromkeys(("x-", "x+", "y-", "y+"), 0.0)
    for kind in (lambda function: function, *kinds):
        with pytest.raises(ValueError, match="read-only"):
            make(boundary=zeros | {side: kind(spoil)})


@pytest.mark.parametrize(
    "make",
    [
        lambda: heat(diffusivity=spoil),
        lambda: heat(source=spoil),
        lambda: heat(source=lambda x, y, t: spoil(x, y) * t),
        lambda: heat(initial=spoil),
        lambda: heat(boundary=spoil),
        lambda: transport(velocity=(spoil, 1.0)),
        lambda: transport(velocity=(1.0, spoil)),
        lambda: transport(diffusion=spoil),
        lambda: transport(source=spoil),
        lambda: transport(source=[(lambda t: t, spoil)]),
        lambda: transport(initial=spoil),
        lambda: transport(boundary=lambda x, y, t: spoil(x, y) * t),
        lambda: plate(source=spoil),
        lambda: plate(initial=spoil),
        lambda: plate(boundary=spoil),
        lambda: steady(f=spoil),
        lambda: steady(g=spoil),
        lambda: steady(source=spoil),
        lambda: steady(boundary=spoil),
        lambda: pysolvers.LMSOR(steady(), initial=spoil),
        lambda: poisson(boundary=spoil),
        lambda: poisson().solve(spoil),
        lambda: poisson().solve(0.0, boundary={"x+": spoil}),
        lambda: poisson().apply(spoil),
        lambda: poisson().apply(0.0, boundary={"y-": spoil}),
    ],
)
def test_a_function_cannot_change_the_coordinates(make):
    with pytest.raises(ValueError, match="read-only"):
        make()


def test_a_function_of_numbers_is_named_and_its_other_errors_are_its_own():
    def without_data(x, y):
        raise TypeError("no data for this place")

    for make in (
        lambda f: heat(source=f),
        lambda f: plate(initial=f),
        lambda f: poisson().solve(f),
    ):
        with pytest.raises(TypeError, match="functions get arrays: use numpy"):
            make(lambda x, y: math.sin(x) + y)
        with pytest.raises(TypeError, match=r"^no data for this place$"):
            make(without_data)


def test_a_function_may_return_its_argument():
    solver = poisson(boundary=lambda x: x)
    first, second = (solver.solve(lambda y: y) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    moved = heat(initial=lambda x: x, boundary=lambda x, t: x, source=lambda y, t: y)
    np.testing.assert_array_equal(moved.step(3).x, np.linspace(0, 1, 5))
    np.testing.assert_array_equal(plate(initial=lambda x: x).u, np.tile(plate().x, (6, 1)))


def test_a_source_is_a_source_in_every_solver():
    """Steady state of u_xx + u_yy + s = 0 with zero sides, whose solution is known."""

    def source(x, y):
        return 5 * np.pi**2 * np.sin(np.pi * x) * np.sin(2 * np.pi * y)

    square = {"extent": ((0, 1), (0, 1))}
    nodes, cells = {"shape": (41, 33), **square}, {"shape": (40, 32), **square}
    heat = HeatADI(**nodes, dt=2e-3, source=source, boundary=0.0)
    transport = GCEIDD(
        ConvectionDiffusion((0.0, 0.0), 1.0, source=source, boundary=0.0),
        shape=(41, 33),
        dt=1e-4,
    )
    steady = SteadyConvectionDiffusion(0.0, 0.0, **nodes, source=source, boundary=0.0)
    poisson = FastPoisson(**nodes, boundary=0.0)
    found = {
        "HeatADI": heat.run(1.0),
        "GCEIDD": transport.run(0.3),
        "LMSOR": LMSOR(steady).solve(1e-10),
        "RedBlackSOR": RedBlackSOR(**cells, boundary=0.0, source=source).solve(1e-8),
        "solve_laplace": solve_laplace(**cells, boundary=0.0, source=source),
    }
    fields = {name: (r.x, r.y, r.u if hasattr(r, "u") else r.t) for name, r in found.items()}
    fields["FastPoisson"] = (
        poisson.x,
        poisson.y,
        poisson.solve(lambda x, y: -source(x, y)),
    )

    for name, (x, y, u) in fields.items():
        exact = np.sin(np.pi * x) * np.sin(2 * np.pi * y[:, None])
        np.testing.assert_allclose(u, exact, rtol=0, atol=0.01, err_msg=name)
