"""Red-black solvers as objects: parameters, errors, state, results."""

import numpy as np
import pytest

import pysolvers
from pysolvers import LMSOR, Neumann, RedBlackSOR, Robin, SteadyConvectionDiffusion, solve_laplace
from pysolvers.relaxation import RelaxationResult

PROBLEM = SteadyConvectionDiffusion(3.0, lambda x, y: 5 * y, shape=(21, 34), boundary=1.0)


def solver(kind, **options):
    if kind == "lmsor":
        return LMSOR(PROBLEM, initial=lambda x, y: x - y, **options)
    boundary = {"x-": 1.0, "y+": Robin(2.0, 0.5), "y-": Neumann(1.0)}
    return RedBlackSOR((21, 34), boundary=boundary, source=lambda x, y: x * y, **options)


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


@pytest.mark.parametrize("options", [{"kernel": 1}, {"kernel": "serial"}, {"relaxation": 1.2}])
def test_restart_keeps_the_parameters(options, tmp_path, rng):
    problem = SteadyConvectionDiffusion(
        rng.normal(size=(9, 12)),
        rng.normal(size=(9, 12)),
        shape=(9, 12),
        extent=(2, 3),
        source=rng.normal(size=(9, 12)),
        boundary=rng.normal(size=(11, 14)),
    )
    whole = LMSOR(problem, **options).iterate(9)
    LMSOR(problem, **options).iterate(4).save(tmp_path / "state")

    restarted = LMSOR.load(tmp_path / "state").iterate(5)

    np.testing.assert_array_equal(restarted.u, whole.u)
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

    with pytest.raises(pysolvers.ConvergenceError, match="not reached in 7 iterations") as caught:
        iterating.solve(1e-12, max_iterations=7, check_every=3)

    result = caught.value.result
    assert (result.stop_reason, result.iterations) == ("max_iterations", 7)
    np.testing.assert_array_equal(result.history.iteration, [3, 6, 7])
    np.testing.assert_array_equal(result.u, iterating.u)
    assert iterating.solve(1e-9).converged


def test_growth_is_divergence():
    problem = SteadyConvectionDiffusion(2000.0, 2000.0, shape=(40, 40), boundary=1.0)
    diverging = LMSOR(problem, relaxation=1.0)

    with pytest.raises(
        pysolvers.ConvergenceError, match="did not converge: the measured value grew to"
    ) as caught:
        diverging.solve(1e-8)

    result = caught.value.result
    assert result.stop_reason == "diverged"
    assert result.iterations == diverging.iterations > 0
    assert result.history.measure[-1] > 1e6 * result.history.measure[0]


def test_values_that_are_no_numbers_end_an_iteration():
    problem = SteadyConvectionDiffusion(1e6, 1e6, shape=(40, 40), boundary=1e300)

    with pytest.raises(pysolvers.ConvergenceError, match=r"grew to (inf|nan)"):
        LMSOR(problem, relaxation=1.0).iterate(50)


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
    assert repr(iterating).startswith(type(iterating).__name__ + ": 3 iterations")


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
        1.0, np.ones(4), shape=(3, 4), extent=(2.0, 8.0), boundary=lambda x, y: x + 10 * y
    )

    assert problem.spacing == (0.4, 2.0)
    u = problem.start(5.0)
    assert u.shape == (5, 6)
    assert (u[1:-1, 1:-1] == 5).all()
    np.testing.assert_allclose(u[0], problem.x)
    np.testing.assert_allclose(u[:, -1], 2 + 10 * problem.y)
    np.testing.assert_array_equal(problem.start(u), u)
    plate = RedBlackSOR((3, 4), extent=(2.0, 8.0))
    np.testing.assert_allclose(plate.x, [0.25, 0.75, 1.25, 1.75])
    np.testing.assert_allclose(plate.y, [4 / 3, 4, 20 / 3])


def test_what_is_separable():
    shape = (5, 6)
    along_x, along_y = np.arange(6.0), np.arange(5.0)[:, None]

    assert SteadyConvectionDiffusion(along_x, along_y, shape=shape).separable
    assert SteadyConvectionDiffusion(np.tile(along_x, (5, 1)), 1, shape=shape).separable
    assert not SteadyConvectionDiffusion(along_y, 0, shape=shape).separable
    assert not SteadyConvectionDiffusion(0, along_x, shape=shape).separable


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"shape": (0, 3)}, ValueError, "shape must be at least 1, got 0"),
        ({"shape": 5}, ValueError, "shape must be two ints"),
        ({"shape": (2.0, 3)}, TypeError, "shape must be an int"),
        ({"extent": (1, -1)}, ValueError, "extent must be positive, got -1"),
        ({"extent": (1, np.inf)}, ValueError, "extent must be finite"),
        ({"f": np.nan}, ValueError, r"f must be finite, got nan at \(0, 0\)"),
        ({"g": np.ones((7, 7))}, ValueError, r"g must broadcast to \(3, 4\), got shape \(7, 7\)"),
        ({"source": lambda x, y: x / 0 * y}, ValueError, "source must be finite"),
        ({"boundary": np.inf}, ValueError, "boundary must be finite"),
        ({"boundary": np.ones(3)}, ValueError, r"boundary must broadcast to \(5, 6\)"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_impossible_problems(change, error, message):
    arguments = {"f": 1.0, "g": 1.0, "shape": (3, 4)} | change

    with pytest.raises(error, match=message):
        SteadyConvectionDiffusion(arguments.pop("f"), arguments.pop("g"), **arguments)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"relaxation": "best"}, ValueError, "relaxation must be a number or one of lmsor"),
        ({"relaxation": 2.0}, ValueError, "relaxation must lie between 0 and 2, got 2.0"),
        ({"relaxation": np.nan}, ValueError, "relaxation must be finite"),
        ({"kernel": 4}, ValueError, "kernel must be one of"),
        ({"kernel": True}, ValueError, "kernel must be one of"),
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


def test_kernel_3_needs_a_separable_problem():
    problem = SteadyConvectionDiffusion(lambda x, y: x * y, 0.0, shape=(3, 3))

    with pytest.raises(ValueError, match="kernel 3 needs"):
        LMSOR(problem, kernel=3)
    with pytest.raises(TypeError, match="problem must be a SteadyConvectionDiffusion, got int"):
        LMSOR(3)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"omega": "good"}, ValueError, "omega must be a number or one of optimal"),
        ({"omega": 0}, ValueError, "omega must lie between 0 and 2, got 0"),
        ({"variant": "fast"}, ValueError, "variant must be one of auto, naive"),
        ({"conductivity": 0}, ValueError, "conductivity must be positive, got 0"),
        ({"boundary": {"top": 1}}, ValueError, "boundary must name sides of x-"),
        ({"boundary": {"x-": np.ones(5)}}, ValueError, "boundary 'x-' must broadcast"),
        ({"boundary": {"x-": np.nan}}, ValueError, "boundary 'x-' must be finite"),
        ({"boundary": {"x+": Robin(-1.0)}}, ValueError, "coefficient must be at least 0"),
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
        RedBlackSOR((3, 4), **change)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"tol": -1e-9}, ValueError, "tol must not be negative, got -1e-09"),
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
    one = solve_laplace((12, 9), boundary={"x+": 2.0}, tol=1e-9, check_every=4)
    two = RedBlackSOR((12, 9), boundary={"x+": 2.0}).solve(1e-9, check_every=4)

    np.testing.assert_array_equal(one.u, two.u)
    assert one.iterations == two.iterations
    assert one.iterations % 4 == 0
