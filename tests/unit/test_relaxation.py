"""Red-black solvers as objects: parameters, errors, state, results."""

import numpy as np
import pytest

import pysolvers
from pysolvers import (
    LMSOR,
    Dirichlet,
    Neumann,
    RedBlackSOR,
    Robin,
    SteadyConvectionDiffusion,
    solve_laplace,
)
from pysolvers.papers import lmsor2012
from pysolvers.relaxation import RelaxationResult

PROBLEM = SteadyConvectionDiffusion(
    3.0, lambda x, y: 5 * y, shape=(23, 36), extent=((0, 1), (0, 1)), boundary=1.0
)


def solver(kind, **options):
    if kind == "lmsor":
        return LMSOR(PROBLEM, initial=lambda x, y: x - y, **options)
    boundary = {"x-": 1.0, "x+": 0.0, "y+": Robin(2.0, 0.5), "y-": Neumann(1.0)}
    return RedBlackSOR(
        (21, 34), extent=((0, 1), (0, 1)), boundary=boundary, source=lambda x, y: x * y, **options
    )


KINDS = ("lmsor", "plate")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_restart_is_exact(kind, dtype, tmp_path):
    whole = solver(kind, dtype=dtype).iterate(41)
    half = solver(kind, dtype=dtype).iterate(20)
    half.save(tmp_path / "state.npz")

    restarted = type(half).load(tmp_path / "state.npz")

    assert restarted.iterations == 20
    assert restarted.residual == half.residual
    assert restarted.u.dtype == dtype
    np.testing.assert_array_equal(restarted.iterate(21).u, whole.u)
    assert restarted.residual == whole.residual


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (lmsor2012.LMSOR, {"kernel": 1}),
        (lmsor2012.LMSOR, {"kernel": "serial", "relaxation": "lmsor-2012"}),
        (LMSOR, {"relaxation": 1.2}),
    ],
)
def test_restart_keeps_the_parameters(kind, options, tmp_path, rng):
    problem = SteadyConvectionDiffusion(
        rng.normal(size=(9, 12)),
        rng.normal(size=(9, 12)),
        shape=(11, 14),
        extent=((0, 2), (-1, 2)),
        source=rng.normal(size=(9, 12)),
        boundary=rng.normal(size=(11, 14)),
    )
    whole = kind(problem, **options).iterate(9)
    kind(problem, **options).iterate(4).save(tmp_path / "state")

    restarted = kind.load(tmp_path / "state").iterate(5)

    np.testing.assert_array_equal(restarted.u, whole.u)
    assert restarted.settings == whole.settings
    assert restarted.result().method == whole.result().method


@pytest.mark.parametrize("kind", KINDS)
def test_file_of_another_kind(kind, tmp_path):
    made = solver(kind).solve(1e-3)
    made.save(tmp_path / "result")

    with pytest.raises(ValueError, match="holds no pysolvers"):
        type(solver(kind)).load(tmp_path / "result")


@pytest.mark.parametrize("kind", KINDS)
def test_result_survives_a_file(kind, tmp_path):
    result = solver(kind).solve(1e-6)
    result.save(tmp_path / "result.npz")

    loaded = RelaxationResult.load(tmp_path / "result.npz")

    for name in ("u", "x", "y"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(result, name))
    np.testing.assert_array_equal(loaded.history.measure, result.history.measure)
    assert loaded.history.iteration[-1] == loaded.iterations == result.iterations
    assert loaded.seconds == result.seconds
    assert loaded.converged


@pytest.mark.parametrize("kind", KINDS)
def test_tolerance_not_reached(kind):
    iterating = solver(kind)

    with pytest.raises(
        pysolvers.ConvergenceError, match="above the tolerance 1e-12 after 7 iterations"
    ) as caught:
        iterating.solve(1e-12, max_iterations=7, check_every=3)

    result = caught.value.result
    assert (result.stop_reason, result.iterations) == ("max_iterations", 7)
    np.testing.assert_array_equal(result.history.iteration, [3, 6, 7])
    np.testing.assert_array_equal(result.u, iterating.u)
    assert iterating.solve(1e-9).converged


def test_sides_through_which_fluid_enters_are_named():
    """With outflow there u is nearly undetermined: the residual falls, but slowly."""
    options = {"shape": (9, 9), "extent": ((0, 1), (0, 1)), "differences": "upwind", "source": 1.0}
    for speed, entered in ((-200.0, True), (200.0, False)):
        sides = {"x-": 0.0, "x+": "outflow", "y": Neumann()}
        problem = SteadyConvectionDiffusion(speed, 0.0, boundary=sides, **options)
        with pytest.raises(pysolvers.ConvergenceError) as caught:
            LMSOR(problem).solve(1e-12, max_iterations=2)
        assert ("; fluid enters through x+ without given values" in str(caught.value)) == entered
        assert "Peclet" not in str(caught.value)


def test_growth_is_divergence():
    problem = SteadyConvectionDiffusion(
        2000.0,
        2000.0,
        shape=(42, 42),
        extent=((0, 1), (0, 1)),
        boundary=1.0,
        differences="central",
    )
    diverging = LMSOR(problem, relaxation=1.0)

    said = r"did not converge: the measured value grew to .*; the cell Peclet number is 48\.8,"
    with pytest.raises(pysolvers.ConvergenceError, match=said) as caught:
        diverging.solve(1e-8)

    result = caught.value.result
    assert result.stop_reason == "diverged"
    assert result.iterations == diverging.iterations > 0
    assert result.history.measure[-1] > 1e6 * result.history.measure[0]
    ended = LMSOR(problem, relaxation=1.0)
    with pytest.raises(pysolvers.ConvergenceError, match="the measured value grew to") as caught:
        ended.solve(1e-8, callback=lambda solver: None)  # looks at every measured value
    growth = caught.value.result.history.measure / caught.value.result.history.measure[0]
    assert growth[:-1].max() <= 1e10 < growth[-1] < np.inf


def test_values_that_are_no_numbers_end_an_iteration(backend):
    problem = SteadyConvectionDiffusion(
        1e6,
        1e6,
        shape=(42, 42),
        extent=((0, 1), (0, 1)),
        boundary=1e300,
        differences="central",
    )

    with pytest.raises(pysolvers.ConvergenceError, match=r"grew to (inf|nan)"):
        LMSOR(problem, relaxation=1.0, device=backend).iterate(50)


@pytest.mark.parametrize("kind", KINDS)
def test_callback_sees_the_state_and_may_end(kind):
    seen = []

    def look(iterating):
        seen.append((iterating.iterations, iterating.residual))
        return len(seen) == 4

    result = solver(kind).solve(1e-12, callback=look, check_every=5)

    assert result.stop_reason == "callback"
    assert [n for n, _ in seen] == [5, 10, 15, 20]
    np.testing.assert_array_equal([m for _, m in seen], result.history.measure)


def test_another_criterion_begins_another_history():
    iterating = solver("lmsor").iterate(3)
    iterating.solve(1e-4)

    result = iterating.solve(1e-4, criterion="change", norm="l2")

    assert (result.criterion, result.norm) == ("change", "l2")
    assert len(result.history.iteration) == 1
    assert iterating.solve(1e-5).norm == "max"


@pytest.mark.parametrize("kind", KINDS)
def test_results_are_copies_and_show_themselves(kind):
    iterating = solver(kind).iterate(2)
    result = iterating.result()
    kept = result.u.copy()

    iterating.iterate(1)
    iterating.u[:] = 7

    np.testing.assert_array_equal(result.u, kept)
    assert (result.stop_reason, result.converged) == ("running", False)
    assert result.updates_per_second > 0
    assert set(result.seconds) == {"set-up", "iterations"}
    assert "<table>" in result._repr_html_()
    assert repr(result).startswith(f"{result.title}\n")
    assert repr(iterating).startswith(
        f"{type(iterating).__name__}({iterating.shape}, dtype=float64): 3 iter"
    )


def test_nothing_done_is_no_speed():
    assert np.isnan(solver("lmsor").result().updates_per_second)
    assert solver("lmsor").residual == np.inf
    assert solver("lmsor").iterate(0).iterations == 0


@pytest.mark.parametrize("kind", KINDS)
def test_plot(kind):
    pytest.importorskip("matplotlib")

    plots = solver(kind).solve(1e-3).plot()

    assert [axes.get_xlabel() for axes in plots] == ["x", "iterations"]


def test_nodes_and_places():
    problem = SteadyConvectionDiffusion(
        1.0, np.ones(4), shape=(5, 6), extent=((0, 2.0), (0, 8.0)), boundary=lambda x, y: x + 10 * y
    )

    assert problem.spacing == (0.4, 2.0)
    u = problem._start(5.0)
    assert u.shape == (5, 6)
    assert (u[1:-1, 1:-1] == 5).all()
    np.testing.assert_allclose(u[0], problem.x)
    np.testing.assert_allclose(u[:, -1], 2 + 10 * problem.y)
    np.testing.assert_array_equal(problem._start(u), u)
    plate = RedBlackSOR((3, 4), boundary=0.0, extent=((0, 2.0), (0, 8.0)))
    np.testing.assert_allclose(plate.x, [0.25, 0.75, 1.25, 1.75])
    np.testing.assert_allclose(plate.y, [4 / 3, 4, 20 / 3])


def test_what_is_separable():
    shape = (5, 6)
    along_x, along_y = np.arange(6.0), np.arange(5.0)[:, None]

    assert SteadyConvectionDiffusion(
        along_x, along_y, shape=[n + 2 for n in shape], extent=((0, 1), (0, 1)), boundary=0.0
    ).separable
    assert SteadyConvectionDiffusion(
        np.tile(along_x, (5, 1)),
        1,
        shape=[n + 2 for n in shape],
        extent=((0, 1), (0, 1)),
        boundary=0.0,
    ).separable
    assert not SteadyConvectionDiffusion(
        along_y, 0, shape=[n + 2 for n in shape], extent=((0, 1), (0, 1)), boundary=0.0
    ).separable
    assert not SteadyConvectionDiffusion(
        0, along_x, shape=[n + 2 for n in shape], extent=((0, 1), (0, 1)), boundary=0.0
    ).separable


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"shape": (2, 3)}, ValueError, "shape must be at least 3, got 2"),
        ({"shape": 5}, ValueError, "shape must be two ints"),
        ({"shape": (2.0, 3)}, TypeError, "shape must be an int"),
        ({"extent": ((0, 1), (1, 0))}, ValueError, "extent must be a pair"),
        ({"extent": ((0, 1), (0, np.inf))}, ValueError, "extent must be a pair"),
        ({"extent": (1, 2)}, ValueError, "extent must be a pair"),
        ({"spacing": 0.1}, TypeError, "either spacing or extent, got both"),
        ({"differences": "third"}, ValueError, "differences must be one of central, upwind"),
        ({"boundary": {"x": 0.0}}, ValueError, "each side must be given"),
        ({"boundary": Neumann()}, ValueError, "boundary must fix u at one side at least"),
        ({"f": lambda a, b: a}, TypeError, "among x, y, got a, b"),
        ({"f": np.nan}, ValueError, r"f must be finite, got nan at \(0, 0\)"),
        ({"g": np.ones((7, 7))}, ValueError, r"g must broadcast to \(3, 4\), got shape \(7, 7\)"),
        ({"source": lambda x, y: x / 0 * y}, ValueError, "source must be finite"),
        ({"boundary": np.inf}, ValueError, "boundary must be finite"),
        ({"boundary": np.ones(3)}, ValueError, r"boundary must broadcast to \(5, 6\)"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_impossible_problems(change, error, message):
    plane = {"shape": (5, 6), "extent": ((0, 1), (0, 1)), "boundary": 0.0}
    arguments = {"f": 1.0, "g": 1.0} | plane | change

    with pytest.raises(error, match=message):
        SteadyConvectionDiffusion(arguments.pop("f"), arguments.pop("g"), **arguments)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"relaxation": "best"},
            ValueError,
            "relaxation must be a number, 'lmsor' or 'lsor', got 'best'",
        ),
        ({"relaxation": 2.0}, ValueError, "relaxation must be between 0 and 2, got 2.0"),
        ({"relaxation": np.nan}, ValueError, "relaxation must be finite"),
        ({"dtype": "complex128"}, TypeError, "dtype must be float32 or float64"),
        ({"threads": 0}, ValueError, "threads must be in"),
        ({"device": "abacus"}, ValueError, "device must be"),
        ({"initial": np.ones(3)}, ValueError, "initial must broadcast to"),
        ({"initial": np.nan}, ValueError, "initial must be finite"),
    ],
)
def test_bad_parameters_of_lmsor(change, error, message):
    with pytest.raises(error, match=message):
        LMSOR(PROBLEM, **change)


@pytest.mark.parametrize("kernel", [4, True, "1"])
def test_kernels_are_those_of_the_paper(kernel):
    with pytest.raises(ValueError, match="kernel must be one of"):
        lmsor2012.LMSOR(PROBLEM, kernel=kernel)
    with pytest.raises(TypeError, match="kernel"):
        LMSOR(PROBLEM, kernel=1)


def test_kernel_3_needs_a_separable_problem():
    problem = SteadyConvectionDiffusion(
        lambda x, y: x * y, 0.0, shape=(5, 5), extent=((0, 1), (0, 1)), boundary=0.0
    )

    with pytest.raises(ValueError, match="kernel 3 needs"):
        lmsor2012.LMSOR(problem, kernel=3)
    with pytest.raises(TypeError, match="problem must be a SteadyConvectionDiffusion, got int"):
        LMSOR(3)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"omega": "good"}, ValueError, "omega must be a number or 'optimal', got 'good'"),
        ({"omega": 0}, ValueError, "omega must be between 0 and 2, got 0"),
        ({"variant": "naive"}, TypeError, "variant"),
        ({"conductivity": 0}, ValueError, "conductivity must be positive, got 0"),
        ({"boundary": {"top": 1}}, ValueError, "the sides are x-"),
        ({"boundary": "periodic"}, ValueError, "boundary must fix the temperature at one side"),
        ({"boundary": {"x-": np.ones(5), "x+": 0, "y": 0}}, ValueError, "x- must broadcast"),
        ({"boundary": np.nan}, ValueError, "boundary x- must be finite"),
        ({"boundary": Robin(-1.0)}, ValueError, "coefficient must be at least 0"),
        ({"boundary": lambda s: s}, TypeError, "boundary x-: .*among x, y, got s"),
        ({"spacing": 0.1}, TypeError, "either spacing or extent, got both"),
        ({"source": np.inf}, ValueError, "source must be finite"),
        (
            {"boundary": dict.fromkeys(("x-", "x+", "y-", "y+"), Neumann())},
            ValueError,
            "boundary must fix the temperature at one side at least",
        ),
    ],
)
def test_bad_parameters_of_a_plate(change, error, message):
    with pytest.raises(error, match=message):
        RedBlackSOR((3, 4), **{"extent": ((0, 1), (0, 1)), "boundary": 0.0} | change)


def test_coefficients_at_all_nodes_or_at_the_interior_ones():
    full = np.pad(np.ones((3, 4)), 1, constant_values=np.nan)
    for domain in ({"extent": ((0, 1), (0, 2))}, {"spacing": (0.2, 0.5)}):
        domain |= {"boundary": 0.0}
        one = SteadyConvectionDiffusion(lambda x: x, full, shape=(5, 6), source=full, **domain)
        two = SteadyConvectionDiffusion(
            lambda x, y: x, np.ones((3, 4)), shape=(5, 6), source=np.ones((3, 4)), **domain
        )
        for name in ("f", "g", "source", "x", "y"):
            np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-15)
        np.testing.assert_allclose(one.x, np.linspace(0, 1, 6), rtol=1e-15)
        assert one._start().shape == one.shape == (5, 6)


def test_spacing_of_a_plate_instead_of_its_extent():
    options = {"boundary": {"x": 0.0, "y-": 0.0, "y+": lambda x: x}}
    one = RedBlackSOR((4, 6), extent=((0, 2), (0, 1)), **options)
    two = RedBlackSOR((4, 6), spacing=(2 / 6, 1 / 4), **options)

    np.testing.assert_allclose(one.iterate(9).u, two.iterate(9).u, rtol=1e-14)
    assert one.u.shape == one.shape == (4, 6)


def test_plate_away_from_the_origin():
    """T = x + 2 y with the values of the sides taken at the middles of the faces."""

    def exact(x, y):
        return x + 2 * y

    boundary = {"x": exact, "y-": Neumann(-2.0), "y+": Neumann(2.0)}
    plate = RedBlackSOR((7, 9), extent=((3, 4), (-2, 5)), boundary=boundary)
    result = plate.solve(1e-13)

    assert (plate.x[0], plate.y[0]) == pytest.approx((3 + 1 / 18, -1.5))
    np.testing.assert_allclose(result.u, exact(plate.x, plate.y[:, None]), rtol=1e-10)


def test_sides_of_a_problem():
    problem = SteadyConvectionDiffusion(
        0.0,
        0.0,
        shape=(4, 5),
        spacing=1.0,
        boundary={"x-": [1, 2, 3, 4], "x+": lambda y: 10 * y, "y": Dirichlet(7.0)},
    )
    u = problem._start()

    np.testing.assert_array_equal(u[1:-1, 0], [2, 3])
    np.testing.assert_array_equal(u[1:-1, -1], [10, 20])
    assert (u[[0, -1]] == 7).all()


def test_central_differences_warn_above_cell_peclet_2():
    options = {"shape": (11, 11), "extent": ((0, 1), (0, 1)), "boundary": 0.0}

    with pytest.warns(RuntimeWarning, match="cell Peclet number is 2.5, .*differences='upwind'"):
        SteadyConvectionDiffusion(25.0, 1.0, **options)
    SteadyConvectionDiffusion(20.0, -20.0, **options)
    for differences in ("central", "upwind"):
        problem = SteadyConvectionDiffusion(25.0, 1.0, differences=differences, **options)
        assert problem.cell_peclet == pytest.approx(2.5)


def upwind_matrix(problem):
    """Rows of -u_xx - u_yy + f u_x + g u_y at the interior nodes, entry by entry."""
    (ny, nx), (h, k) = problem.shape, problem.spacing
    f = np.broadcast_to(problem.f, problem.interior)
    g = np.broadcast_to(problem.g, problem.interior)
    rows = np.zeros((ny - 2, nx - 2, ny, nx))
    for j in range(ny - 2):
        for i in range(nx - 2):
            row, a, b = rows[j, i], f[j, i], g[j, i]
            row[j + 1, i : i + 3] += np.array([-1, 2, -1]) / h**2
            row[j : j + 3, i + 1] += np.array([-1, 2, -1]) / k**2
            row[j + 1, i + 1] += abs(a) / h + abs(b) / k
            row[j + 1, i if a > 0 else i + 2] -= abs(a) / h
            row[j if b > 0 else j + 2, i + 1] -= abs(b) / k
    return rows


@pytest.mark.parametrize("relaxation", ["lmsor", "lsor", "lmsor-2012", 1.1])
@pytest.mark.parametrize("kind", ["numbers", "separable", "general"])
def test_upwind_differences_solve_their_equations(kind, relaxation, rng):
    f, g = {
        "numbers": (300.0, -80.0),
        "separable": (lambda x: 400 * (x - 0.5), lambda y: 300 * (0.3 - y)),
        "general": (lambda x, y: 400 * (x - y), lambda x, y: 300 * x * y),
    }[kind]
    problem = SteadyConvectionDiffusion(
        f,
        g,
        shape=(9, 12),
        extent=((0, 1), (0, 2)),
        source=rng.normal(size=(9, 12)),
        boundary=rng.normal(size=(9, 12)),
        differences="upwind",
    )
    u = lmsor2012.LMSOR(problem, relaxation=relaxation).solve(1e-14, max_iterations=5000).u

    rest = np.tensordot(upwind_matrix(problem), u, 2) - problem.source
    scale = np.abs(problem.f).max() / problem.spacing[0]
    np.testing.assert_allclose(rest, 0, rtol=0, atol=1e-11 * scale)


@pytest.mark.parametrize("kernel", ["auto", 1, 2, 3, "serial"])
def test_upwind_differences_never_oscillate(kernel):
    """A boundary layer at cell Peclet number 20: monotone, where central ones oscillate."""
    problem = {
        differences: SteadyConvectionDiffusion(
            200.0,
            0.0,
            shape=(6, 12),
            spacing=0.1,
            boundary={"x-": 0.0, "x+": 1.0, "y": 0.0},
            differences=differences,
        )
        for differences in ("central", "upwind")
    }

    u = lmsor2012.LMSOR(problem["upwind"], kernel=kernel).solve(1e-12).u
    assert (u >= 0).all()
    assert (np.diff(u[2]) >= -1e-12).all()
    assert lmsor2012.LMSOR(problem["central"], kernel=kernel).solve(1e-12).u.min() < -0.1


def test_upwind_of_varying_convection_needs_kernel_1(tmp_path):
    plane = {"shape": (5, 5), "extent": ((0, 1), (0, 1)), "boundary": 0.0}
    options = plane | {"differences": "upwind"}
    problem = SteadyConvectionDiffusion(lambda x: 90 * x, 1.0, **options)

    with pytest.raises(ValueError, match="kernel must be 'auto' or 1 with upwind"):
        lmsor2012.LMSOR(problem, kernel=2)
    whole = LMSOR(problem, initial=1.0).iterate(9)
    LMSOR(problem, initial=1.0).iterate(4).save(tmp_path / "state")
    np.testing.assert_array_equal(LMSOR.load(tmp_path / "state").iterate(5).u, whole.u)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"tol": -1e-9}, ValueError, "tol must be at least 0, got -1e-09"),
        ({"tol": np.nan}, ValueError, "tol must be finite"),
        ({"norm": "l1"}, ValueError, "norm must be one of max, l2"),
        ({"criterion": "luck"}, ValueError, "criterion must be one of residual, change, solution"),
        ({"max_iterations": 0}, ValueError, "max_iterations must be at least 1"),
        ({"check_every": 0}, ValueError, "check_every must be at least 1"),
        ({"check_every": 1.5}, TypeError, "check_every must be an int"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_bad_arguments_of_solve(kind, change, error, message):
    with pytest.raises(error, match=message):
        solver(kind).solve(**change)


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_leaves_whole_iterations(kind, interrupt_later):
    interrupted = solver(kind).iterate(1)

    interrupt_later()
    with pytest.raises(KeyboardInterrupt):
        interrupted.iterate(10**9)

    assert interrupted.iterations > 1
    expected = solver(kind).iterate(interrupted.iterations).u
    np.testing.assert_array_equal(interrupted.u, expected)


def test_bad_count():
    with pytest.raises(ValueError, match="count must be at least 0, got -1"):
        solver("lmsor").iterate(-1)


def test_solve_laplace_is_the_class_in_one_call():
    one = solve_laplace(
        (12, 9),
        extent=((0, 1), (0, 1)),
        boundary={"x+": 2.0, "x-": 0.0, "y": 0.0},
        tol=1e-9,
        check_every=4,
    )
    two = RedBlackSOR(
        (12, 9), extent=((0, 1), (0, 1)), boundary={"x+": 2.0, "x-": 0.0, "y": 0.0}
    ).solve(1e-9, check_every=4)

    np.testing.assert_array_equal(one.u, two.u)
    assert one.iterations == two.iterations
    assert one.iterations % 4 == 0


@pytest.mark.parametrize("kind", KINDS)
def test_an_iteration_that_stays_ends_with_the_reason(kind):
    with pytest.raises(pysolvers.ConvergenceError, match=r"residual stalled: .* in 5000") as caught:
        solver(kind).solve(1e-30)

    result = caught.value.result
    assert result.stop_reason == "stalled"
    assert 5000 < result.iterations < 10_000
    with pytest.raises(pysolvers.ConvergenceError, match="in 3000 iterations") as caught:
        solver(kind).solve(1e-30, patience=3000)
    assert caught.value.result.iterations < result.iterations
    with pytest.raises(ValueError, match="patience must be at least 1"):
        solver(kind).solve(1e-30, patience=0)


def test_a_slow_iteration_is_not_a_stalled_one():
    """Gauss-Seidel on 100 x 100 cells falls by 10 % in about 200 iterations."""
    plate = RedBlackSOR((100, 100), extent=((0, 1), (0, 1)), boundary=1.0, omega=1.0)

    assert plate.solve(1e-7, patience=1000).converged
