"""The solver that docs/architecture.md shows: exactly its text is run."""

import copy
import pickle
import re
import sys
import warnings

import fake_device
import numpy as np
import pytest
from page_solver import END, EXTENT, PAGE, VISCOSITY, burgers, module_of_the_page, wave

import pysolvers

# The tests of a wheel do not have the page.
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="needs a copy of the source")


@pytest.fixture(scope="module")
def module():
    """The module whose source is the code of the page."""
    made = module_of_the_page()
    yield made
    del sys.modules[made.__name__]


def test_order_is_two(module):
    errors = []
    for k in (1, 2, 4):
        result = burgers(module, 64 * k + 1, 0.02 / k).run(END)
        errors.append(np.abs(result.u - wave(result.x, END)).max())

    assert errors[0] < 1e-2
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 2, atol=0.2)


def test_one_step_solves_the_equations_of_the_page(module):
    """Against a dense matrix of the formula, and in delta form: the ends do not change."""
    solver = burgers(module, 9, 0.1)
    u, h = solver.u, np.diff(EXTENT)[0] / 8
    first = (np.eye(9, k=1) - np.eye(9, k=-1)) / (2 * h)
    second = (np.eye(9, k=1) - 2 * np.eye(9) + np.eye(9, k=-1)) / h**2
    matrix = np.eye(9) + 0.05 * (first @ np.diag(u) - VISCOSITY * second)
    right = 0.1 * (VISCOSITY * second @ u - first @ (u**2 / 2))
    matrix[[0, -1]], right[[0, -1]] = np.eye(9)[[0, -1]], 0

    np.testing.assert_allclose(solver.step().u, u + np.linalg.solve(matrix, right), rtol=1e-13)


def test_steps_record_and_a_changed_dt(module):
    one, several = burgers(module).step(30), burgers(module).step(17).step(13)
    np.testing.assert_array_equal(one.u, several.u)
    assert (one.steps, one.time, one.settings.viscosity) == (30, 30 * 0.02, VISCOSITY)

    result = burgers(module).record(0.33, every=0.1)

    assert [frame.time for frame in result.frames] == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.33])
    assert result.frames[-1].time == result.time == 0.33
    seen = []
    solver = burgers(module)
    assert solver.run(1.0, callback=lambda s: seen.append(s.steps) or s.steps == 6, interval=3)
    assert (seen, solver.steps) == ([3, 6], 6)
    solver.dt = 0.005
    assert solver.run(0.2).dt == 0.005


def test_files_continue_with_the_same_bits(module, tmp_path):
    solver = burgers(module).step(7)
    solver.save(tmp_path / "state")
    loaded = module.Burgers.load(tmp_path / "state")

    assert (loaded.steps, loaded.time, loaded.settings) == (7, solver.time, solver.settings)
    for other in (loaded, copy.copy(solver), pickle.loads(pickle.dumps(solver))):
        np.testing.assert_array_equal(other.step(9).u, copy.copy(solver).step(9).u)
    result = solver.run(0.5)
    result.save(tmp_path / "result")
    repeated = module.BurgersResult.load(tmp_path / "result")
    assert repr(repeated) == repr(result)
    assert "25 steps, reached" in repr(result)
    np.testing.assert_array_equal(repeated.u, result.u)
    with pytest.raises(ValueError, match="holds no Burgers result"):
        module.BurgersResult.load(tmp_path / "state")


def test_figures(module, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    result = burgers(module).record(0.3, every=0.1)

    axes = result.plot(show=False)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), result.u)
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("x", "u", "t = 0.3")
    assert result.plot(axes, unit="m") is axes
    assert axes.get_xlabel() == "x (m)"
    result.animate(tmp_path / "film.gif", dpi=20)
    assert (tmp_path / "film.gif").stat().st_size > 1000
    fields = pytest.importorskip("xarray") and result.to_xarray()
    assert fields.u.dims == ("time", "x")
    matplotlib.pyplot.close("all")


def test_progress_is_shown(module, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        auto = pytest.importorskip("tqdm.auto")
    made = []

    class Bar:
        def __init__(self, **options):
            made.append(options)

        def set_postfix(self, values, refresh):
            made.append(values)

        def update(self, count):
            made.append(count)

        def close(self):
            made.append("closed")

    monkeypatch.setattr(auto, "tqdm", Bar)
    burgers(module, dt=0.001).run(0.1, progress=True)

    assert (made[0]["desc"], made[0]["total"]) == ("Burgers", 100)
    assert [entry for entry in made if isinstance(entry, int)] == [64, 36]
    assert made[-2:] == [36, "closed"]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"n": 2}, ValueError, "n must be at least 3, got 2"),
        ({"dt": "fast"}, TypeError, "dt must be a number, got str"),
        ({"extent": (1.0, 0.0)}, ValueError, "extent must rise, got"),
        ({"extent": 1.0}, TypeError, "extent must be a tuple, got 1.0"),
        ({"viscosity": 0}, ValueError, "viscosity must be positive, got 0"),
        ({"device": "tpu"}, ValueError, "device must be 'cpu', 'cuda' or 'cuda:N', got 'tpu'"),
        ({"threads": 0}, ValueError, "threads must be in 1 .. "),
    ],
)
def test_annotations_are_the_checks(module, change, error, text):
    options = {"n": 9, "extent": EXTENT, "viscosity": 0.1, "dt": 0.1} | change
    with pytest.raises(error, match=re.escape(text)):
        module.Burgers(options.pop("n"), **options)


def test_a_solution_that_is_not_finite_ends_the_run(module):
    solver = burgers(module)
    solver.u = np.where(solver.x > 0, 1e200, -1e200)

    with (
        np.errstate(all="ignore"),
        pytest.raises(pysolvers.ConvergenceError, match="not finite") as caught,
    ):
        solver.run(1.0)
    assert caught.value.result.stop_reason == "diverged"


def test_lines_are_solved_on_a_device(module):
    expected = burgers(module).step(20)
    with fake_device.in_place_of_cuda():
        solver = burgers(module, device="cuda").step(20)
        result = solver.result()

    assert (result.backend, solver.settings.device) == ("cuda", "cuda")
    np.testing.assert_allclose(result.u, expected.u, rtol=1e-12, atol=1e-14)
