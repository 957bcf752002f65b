"""Progress bars: in a terminal or a notebook, and nowhere else."""

import io
import sys
import types
import warnings

import numpy as np
import pytest

from pysolvers import (
    HeatADI,
    LidDrivenCavity,
    RedBlackSOR,
    StaggeredCavity,
    _progress,
)

pytest.importorskip("tqdm")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # without ipywidgets
    auto = pytest.importorskip("tqdm.auto")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def bars(monkeypatch):
    """The bars that are made, each with its options and the values that it was given."""
    made = []

    class Bar:
        def __init__(self, items=None, **options):
            self.items, self.options, self.given = items, options, []
            made.append(self)

        def __iter__(self):
            return iter(self.items)

        def set_postfix(self, values, refresh):
            self.given.append(values)

        def update(self, count):
            self.given.append(count)

        def close(self):
            self.given.append("closed")

    monkeypatch.setattr(auto, "tqdm", Bar)
    return made


def test_no_bar_where_nobody_looks(bars, monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    assert list(_progress.progress([1, 2], "items")) == [1, 2]
    with _progress.IterationBar(None, "steps") as bar:
        bar.update(3, 0.5)

    assert bars == []
    assert sys.stderr.getvalue() == ""


class OnlyWrites:
    """A stream of a log, which has neither isatty nor fileno."""

    def write(self, text):
        return len(text)

    def flush(self):
        pass


class Closed(io.StringIO):
    def isatty(self):
        raise ValueError("I/O operation on closed file")


@pytest.mark.parametrize("stream", [None, OnlyWrites(), Closed()], ids=["none", "log", "closed"])
@pytest.mark.parametrize("wanted", [None, True])
def test_runs_without_a_terminal_stream(monkeypatch, stream, wanted):
    """Programs without a console have no stderr, and logs replace it."""
    expected = LidDrivenCavity(100, 9).solve(1e-2)
    monkeypatch.setattr(sys, "stderr", stream)

    result = LidDrivenCavity(100, 9).solve(1e-2, progress=wanted)
    items = list(_progress.progress([1, 2], "items"))

    assert items == [1, 2]
    np.testing.assert_array_equal(result.psi, expected.psi)


def test_bar_on_a_terminal_after_a_second(bars, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())

    assert list(_progress.progress([1, 2], "items")) == [1, 2]
    with _progress.IterationBar(None, "steps", "time", total=7) as bar:
        bar.update(3, 0.5)

    assert bars[1].options["total"] == 7
    assert [bar.options["desc"] for bar in bars] == ["items", "steps"]
    assert all(bar.options["delay"] == 1.0 for bar in bars)
    assert all(bar.options["file"] is sys.stderr for bar in bars)
    assert bars[1].given == [{"time": "5.0e-01"}, 3, "closed"]


def test_bar_expects_the_iterations_that_are_needed(bars, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())

    with _progress.IterationBar(None, "steps", total=1000, goal=1e-6) as bar:
        expected = []
        for value in (1.0, 1e-1, 1e-2, 2.0, 1e-9, 0.99, float("inf"), float("nan")):
            bar.update(10, value)
            expected.append(bars[0].total)

    # A factor of 10 in 10 iterations, four and five more factors to go; then values without
    # a rate; then less than a percent in 50 iterations.
    assert expected == [1000, 70, 70, 1000, 50, 1000, 1000, 1000]


def test_bar_may_be_wanted_or_not(bars, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with _progress.IterationBar(False, "steps"):
        pass
    assert bars == []

    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with _progress.IterationBar(True, "steps"):
        pass
    assert len(bars) == 1


def without_tqdm(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    for name in ("tqdm", "tqdm.auto"):
        monkeypatch.setitem(sys.modules, name, None)


def test_no_bar_without_tqdm(monkeypatch):
    without_tqdm(monkeypatch)

    assert list(_progress.progress([1, 2], "items")) == [1, 2]
    with _progress.IterationBar(None, "steps") as bar:
        bar.expect(3)
        bar.update(1, 1.0)

    assert sys.stderr.getvalue() == ""


def test_a_bar_that_is_wanted_needs_tqdm(monkeypatch):
    without_tqdm(monkeypatch)
    solver = HeatADI((5, 5), 0.1, 0.01, boundary=0.0)

    with pytest.warns(RuntimeWarning, match="progress=True .* pip install tqdm"):
        solver.run(0.05, progress=True)
    solver.run(0.1)


def test_bar_in_a_notebook(bars, monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    shell = types.SimpleNamespace(has_trait=lambda name: name == "kernel")
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    ipython = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)

    with _progress.IterationBar(None, "steps", "time", total=7):
        pass
    assert len(bars) == 1
    ipython.get_ipython = lambda: None
    with _progress.IterationBar(None, "steps"):
        pass
    assert len(bars) == 1


@pytest.mark.parametrize(
    ("make", "total"),
    [
        (lambda: HeatADI((5, 5), 0.1, 0.01, boundary=0.0).run(0.055, progress=True), 6),
        (lambda: StaggeredCavity(100, 8, dt=0.01).run(0.055, progress=True), 6),
        (
            lambda: RedBlackSOR((5, 5), extent=((0, 1), (0, 1)), boundary=1.0).solve(
                max_iterations=500, progress=True
            ),
            500,
        ),
        (lambda: LidDrivenCavity(100, 9).solve(max_iterations=5000, progress=True), 5000),
    ],
    ids=["heat", "staggered", "plate", "cavity"],
)
def test_bars_of_the_solvers_know_how_far_they_go(bars, make, total):
    result = make()
    is_iteration = result.stop_reason == "converged"  # the bar ends where it has converged

    (bar,) = bars
    made = sum(each for each in bar.given if isinstance(each, int))
    assert 0 < made <= total
    assert bar.options["total"] in (total, None)
    assert getattr(bar, "total", total) == (made if is_iteration else total)
