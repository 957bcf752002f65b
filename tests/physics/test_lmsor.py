"""LMSOR, LSOR and SOR: the published counts, the equation, and one answer for all kernels."""

import numpy as np
import pytest
import relaxation_reference as reference

from pysolvers import SteadyConvectionDiffusion
from pysolvers.papers.lmsor2012 import LMSOR

KERNELS = ("auto", 1, 2, 3)
# No interior row or column, one colour missing, all paddings of the lane widths, odd and even.
SHAPES = [(1, 1), (1, 2), (2, 1), (1, 7), (3, 3), (5, 16), (16, 5), (33, 14), (34, 15), (70, 131)]


def start(x, y):
    return x * y * (1 - x) * (1 - y)


def published(problem, re, size):
    """Return a problem of Cotronis et al.; their size counts the boundary."""
    f, g = {
        1: (lambda x, y: re * (2 * x - 10) ** 3, lambda x, y: re * (2 * y - 10) ** 3),
        2: (lambda x, y: re * (2 * x - 10), lambda x, y: re * (2 * y - 10)),
        3: (1e4 * re, 1e4 * re),
    }[problem]
    return SteadyConvectionDiffusion(
        f, g, shape=(size, size), extent=((0, 1), (0, 1)), differences="central", boundary=0.0
    )


def lengths(problem):
    return [high - low for low, high in problem.extent]


def count(problem, backend, **options):
    solver = LMSOR(problem, initial=start, device=backend, **options)
    return solver.solve(1e-6, criterion="solution", max_iterations=20_000).iterations


def general(shape, rng, kind="real"):
    """A problem with nothing special about it: coefficients, source, boundary, extent."""
    size = {"real": 3.0, "imaginary": 400.0, "all": 60.0}[kind]
    f, g = size * (1.5 + rng.random((2, *shape)))
    if kind == "all":
        f, g = f * (rng.random(shape) < 0.5), g * (rng.random(shape) < 0.5)
    frame = rng.normal(size=(shape[0] + 2, shape[1] + 2))
    options = {"source": rng.normal(size=shape), "boundary": frame}
    return SteadyConvectionDiffusion(
        f,
        g,
        shape=[n + 2 for n in shape],
        extent=((0, 1.3), (0, 0.7)),
        differences="central",
        **options,
    )


def separable(shape, rng, size=30):
    f, g = size * rng.normal(size=(1, shape[1])), size * rng.normal(size=(shape[0], 1))
    frame = rng.normal(size=(shape[0] + 2, shape[1] + 2))
    source = rng.normal(size=shape)
    return SteadyConvectionDiffusion(
        f,
        g,
        shape=[n + 2 for n in shape],
        extent=((0, 1), (0, 1)),
        differences="central",
        source=source,
        boundary=frame,
    )


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("problem", "relaxation", "expected"),
    [(1, "lmsor", 412), (3, "lmsor", 1015), (2, "lmsor-2012", 554), (2, "lmsor", 398)],
)
@pytest.mark.parametrize("kernel", KERNELS)
def test_published_counts_at_402(problem, relaxation, expected, kernel, backend):
    made = count(published(problem, 10, 402), backend, relaxation=relaxation, kernel=kernel)

    assert made == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "re", "size", "relaxation", "expected"),
    [
        (1, 10, 2002, "lmsor", 1998),
        (1, 1e3, 1002, "lmsor", 2620),
        (2, 1e3, 1002, "lmsor", 1003),
        (3, 1e3, 1002, "lmsor", 5514),
        (2, 1e4, 1002, "lmsor", 1112),
        (3, 1e4, 1002, "lmsor", 6271),
        (1, 1e5, 1002, "lmsor", 6243),
        (2, 10, 1002, "lmsor-2012", 1384),
    ],
)
def test_published_counts_on_fine_grids(problem, re, size, relaxation, expected, backend):
    assert count(published(problem, re, size), backend, relaxation=relaxation) == expected


@pytest.mark.each_value
@pytest.mark.parametrize(("re", "expected"), [(1, 124), (5, 261), (50, 2253)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_mixed_nodes_converge(re, expected, kernel, backend):
    problem = SteadyConvectionDiffusion(
        1000 * re,
        0.0,
        shape=(102, 102),
        extent=((0, 1), (0, 1)),
        differences="central",
        boundary=0.0,
    )

    assert count(problem, backend, kernel=kernel) == pytest.approx(expected, rel=0.01)


@pytest.mark.each_value
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("relaxation", ["lmsor", "lsor", "lmsor-2012", 1.3])
@pytest.mark.parametrize("kind", ["real", "imaginary", "all"])
def test_iterations_are_those_of_the_formulas(shape, relaxation, kind, backend, rng):
    problem = general(shape, rng, kind)
    u, h, k = problem._start(rng.normal(size=shape)), *problem.spacing
    assert (h, k) == pytest.approx((1.3 / (shape[1] + 1), 0.7 / (shape[0] + 1)))
    arguments = problem.f, problem.g, problem.source, lengths(problem), relaxation
    expected, met = reference.lmsor(u, *arguments, 5)

    solver = LMSOR(problem, relaxation=relaxation, initial=u, device=backend).iterate(5)

    scale = np.abs(expected).max()
    np.testing.assert_allclose(solver.u, expected, rtol=0, atol=1e-13 * scale)
    assert solver.residual == pytest.approx(np.abs(met).max(), rel=1e-11)
    np.testing.assert_array_equal(solver.u[0], u[0])
    np.testing.assert_array_equal(solver.u[:, -1], u[:, -1])


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_all_kernels_give_the_same_bits(shape, dtype, backend, rng):
    problem, u = separable(shape, rng), rng.normal(size=shape)
    kernels = [k for k in (*KERNELS, "serial") if k != "serial" or backend == "cpu"]

    fields = [
        LMSOR(problem, kernel=k, dtype=dtype, initial=u, device=backend).iterate(11).u
        for k in kernels
    ]

    assert fields[0].dtype == dtype
    for field in fields[1:]:
        np.testing.assert_array_equal(field, fields[0])


@pytest.mark.parametrize("make", [separable, general])
@pytest.mark.parametrize("norm", ["max", "l2"])
def test_tiles_of_wide_grids_do_not_change_a_bit(make, norm, backend, rng):
    problem = make((37, 15_001), rng)
    solvers = [LMSOR(problem, kernel=k, device=backend) for k in ("auto", 2)]

    measures = [solver.solve(1e99, norm=norm).residual for solver in solvers]
    for solver in solvers:
        solver.iterate(19)

    np.testing.assert_array_equal(solvers[0].u, solvers[1].u)
    assert measures[0] == pytest.approx(measures[1], rel=0 if backend == "cpu" else 1e-12, abs=0)


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["real", "imaginary", "all"])
@pytest.mark.parametrize("relaxation", ["lmsor", "lsor", "lmsor-2012", 0.7])
def test_stored_and_computed_parameters_give_the_same_bits(kind, relaxation, backend, rng):
    size = {"real": 1.0, "imaginary": 300.0, "all": 40.0}[kind]
    f, g = size * (1 + rng.random((1, 45))), size * (1 + rng.random((38, 1)))
    if kind == "all":
        f[:, ::3], g[::3] = 0, 0
    problem = SteadyConvectionDiffusion(
        f, g, shape=(40, 47), extent=((0, 1), (0, 1)), differences="central", boundary=1.0
    )
    options = {"relaxation": relaxation, "device": backend}

    stored, computed = (LMSOR(problem, kernel=k, **options).iterate(9).u for k in (2, 3))

    np.testing.assert_array_equal(computed, stored)


@pytest.mark.each_value
@pytest.mark.parametrize(("f", "g"), [(128.0, 900.0), (900.0, 64.0), (128.0, 64.0), (128.0, 1.0)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_nodes_without_a_neighbour_upstream(f, g, kernel, backend):
    """f = 2/h: the product of both coefficients is 0, neither real nor imaginary by itself."""
    problem = SteadyConvectionDiffusion(
        f, g, shape=(33, 65), extent=((0, 1), (0, 1)), differences="central", boundary=1.0
    )
    u = problem._start(0.5)
    arguments = problem.f, problem.g, 0.0, (1, 1), "lmsor"

    solver = LMSOR(problem, kernel=kernel, initial=0.5, device=backend).iterate(4)

    np.testing.assert_allclose(solver.u, reference.lmsor(u, *arguments, 4)[0], rtol=1e-12)


@pytest.mark.parametrize("norm", ["max", "l2"])
@pytest.mark.parametrize("general_coefficients", [False, True])
def test_threads_do_not_change_a_bit(general_coefficients, norm, rng):
    make = general if general_coefficients else separable
    problem, u = make((150, 97), rng), rng.normal(size=(150, 97))

    fields, histories = [], []
    for threads in (1, 2, 3, 5):
        solver = LMSOR(problem, threads=threads, initial=u)
        histories.append(solver.solve(1e-4, norm=norm).history)
        fields.append(solver.u)

    assert len(histories[0].measure) > 50
    for field, history in zip(fields[1:], histories[1:], strict=True):
        np.testing.assert_array_equal(field, fields[0])
        np.testing.assert_array_equal(history.measure, histories[0].measure)


@pytest.mark.parametrize("criterion", ["residual", "change", "solution"])
@pytest.mark.parametrize("norm", ["max", "l2"])
def test_measures_are_what_they_say(criterion, norm, backend, rng):
    problem = general((21, 30), rng)
    arguments = problem.f, problem.g, problem.source, lengths(problem), "lmsor"
    solver = LMSOR(problem, device=backend).iterate(3)
    before = solver.u
    after, met = reference.lmsor(before, *arguments, 1)
    x = {"residual": met, "change": after - before, "solution": after}[criterion]
    x = x if criterion == "residual" else x[1:-1, 1:-1]
    expected = np.abs(x).max() if norm == "max" else np.sqrt(np.mean(x**2))

    result = solver.solve(1e9, criterion=criterion, norm=norm)

    assert result.iterations == 4
    assert result.residual == pytest.approx(expected, rel=1e-11)


@pytest.mark.each_value
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("every", [1, 3, 7])
def test_the_stop_is_exact(kernel, every, backend, rng):
    problem = separable((40, 23), rng, size=2)
    long = LMSOR(problem, kernel=kernel, device=backend)
    history = long.solve(1e-6).history.measure

    for tol in history[[4, 11, 30]]:
        solver = LMSOR(problem, kernel=kernel, device=backend)
        result = solver.solve(tol, check_every=every)
        first = 1 + next(n for n, m in enumerate(history) if m <= tol and (n + 1) % every == 0)

        assert result.iterations == first
        assert result.stop_reason == "converged"
        np.testing.assert_array_equal(
            solver.u, LMSOR(problem, kernel=kernel, device=backend).iterate(first).u
        )
        np.testing.assert_array_equal(result.history.measure, history[every - 1 : first : every])


@pytest.mark.parametrize("shape", [(45, 60), (333, 444)])
def test_splitting_the_iterations_changes_nothing(shape, backend, rng):
    problem = separable(shape, rng)
    whole, parts = (LMSOR(problem, device=backend) for _ in range(2))

    whole.iterate(40)
    for part in (1, 0, 2, 7, 8, 9, 13):
        parts.iterate(part)

    assert parts.iterations == 40
    np.testing.assert_array_equal(parts.u, whole.u)
    assert parts.residual == whole.residual


@pytest.mark.parametrize(("degree", "most"), [(2, 1e-10), (None, None)])
def test_solution_is_that_of_the_equation(degree, most, backend):
    """Exact for quadratics, of second order for what is smooth."""

    def exact(x, y):
        return x * x - 2 * x * y + 3 * y * y + 1 if degree else np.exp(x) * np.sin(2 * y)

    def source(x, y):
        f, g = 5 + 3 * x * y, 2 - 4 * y
        if degree:
            return f * (2 * x - 2 * y) + g * (6 * y - 2 * x) - 8
        u, u_y = exact(x, y), 2 * np.exp(x) * np.cos(2 * y)
        return 3 * u + f * u + g * u_y

    errors = []
    for n in (15, 31):
        problem = SteadyConvectionDiffusion(
            lambda x, y: 5 + 3 * x * y,
            lambda x, y: 2 - 4 * y,
            shape=(n + 2, 2 * n + 1 + 2),
            extent=((0, 2.0), (0, 1.0)),
            differences="central",
            source=source,
            boundary=exact,
        )
        result = LMSOR(problem, device=backend).solve(1e-13)
        errors.append(np.abs(result.u - exact(problem.x[None], problem.y[:, None])).max())

    if degree:
        assert max(errors) < most
    else:
        assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)


def test_local_parameters_save_iterations(backend):
    problem = SteadyConvectionDiffusion(
        40.0, 20.0, shape=(62, 62), extent=((0, 1), (0, 1)), differences="central", boundary=1.0
    )
    made = {
        relaxation: LMSOR(problem, relaxation=relaxation, device=backend).solve(1e-8).iterations
        for relaxation in ("lmsor", "lsor", 1.0)
    }

    assert max(made["lmsor"], made["lsor"]) < made[1.0] / 3


def test_single_precision_reaches_its_rounding(backend):
    problem = SteadyConvectionDiffusion(
        12.0,
        -7.0,
        shape=(52, 43),
        extent=((0, 1), (0, 1)),
        differences="central",
        boundary=lambda x, y: x + y,
    )
    exact = LMSOR(problem, device=backend).solve(1e-13).u

    result = LMSOR(problem, dtype="float32", device=backend).solve(1e-6)

    assert result.u.dtype == np.float32
    np.testing.assert_allclose(result.u, exact, atol=2e-4)
