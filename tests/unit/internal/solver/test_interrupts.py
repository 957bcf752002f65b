"""An interrupt at any place: the run goes on with the same bits, counts and history.

A handler of signals raises between two statements of Python, or as a call of the backend returns.
The first is simulated at every line that is executed; the second by calls that raise after they
have done their work, as signals do that arrive during a call that is shorter than the time
between two looks at them.
"""

import contextlib
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import saved_files

import pysolvers
from pysolvers import ConvergenceError, _core

PACKAGE = str(Path(pysolvers.__file__).parent)
CALLS = (
    "cavity_iterate",
    "staggered_step",
    "cylinder_step",
    "heat_step",
    "gceidd_step",
    "lmsor_iterate",
    "laplace_iterate",
)


@pytest.fixture(autouse=True)
def no_waiting_for_disks(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


class Tracer:
    """Raise KeyboardInterrupt before one of the lines of the package that are executed."""

    def __init__(self, line):
        self.line, self.lines = line, 0
        self.times = {}  # {a line of a file: the numbers of the lines executed that are this one}

    def __enter__(self):
        self._before = sys.gettrace()
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_):
        sys.settrace(self._before)

    def _enter(self, frame, event, _):
        return self._step if frame.f_code.co_filename.startswith(PACKAGE) else None

    def _step(self, frame, event, _):
        if event == "line":
            self.lines += 1
            if self.line == 0:
                place = frame.f_code.co_filename, frame.f_lineno
                self.times.setdefault(place, []).append(self.lines)
            if self.lines == self.line:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self._step


def iterate_to(solver, end):
    # A call with 0 does what an interrupt has left to be done.
    return solver.iterate(max(end - solver.iterations, 0))


def step_to(solver, end):
    return solver.step(max(end - solver.steps, 0))


def exploding_cavity():
    """A run whose next decision takes it back to its best state."""
    cavity = saved_files.cavity().iterate(40)
    cavity._fields.operands()[0][1:-1, 1:-1] = np.nan
    return cavity


SOLVERS = {
    "cavity": (saved_files.cavity, iterate_to, 60),
    "cavity-back": (exploding_cavity, iterate_to, 80),
    "cavity-jacobi": (lambda: saved_files.cavity(method="line-jacobi"), iterate_to, 40),
    "cavity-fast": (lambda: saved_files.cavity(psi_solver="fast"), iterate_to, 21),
    "staggered": (saved_files.staggered, step_to, 3),
    "staggered-sor": (lambda: saved_files.staggered(pressure="sor"), step_to, 40),
    "cylinder": (saved_files.cylinder, step_to, 3),
    "cylinder-steady": (lambda: saved_files.cylinder(steady=True), step_to, 3),
    "heat": (saved_files.heat, step_to, 3),
    "gceidd": (saved_files.gceidd, step_to, 3),
    "lmsor": (saved_files.lmsor, iterate_to, 6),
    "plate": (saved_files.plate, iterate_to, 6),
}


def state(solver, folder):
    """Return all that the next iterations depend on, and the history."""
    path = folder / "state"
    path.unlink(missing_ok=True)  # some file systems wait for the disk when a file is replaced
    solver.save(path)
    header, arrays = saved_files.content(path.read_bytes())
    for name in ("seconds", "lines", "run_by", "report"):  # of the last call
        header.pop(name, None)
    return header, arrays


def assert_same(solver, expected, folder, *, but=()):
    header, arrays = state(solver, folder)
    for name in but:
        header["members"].pop(name, None)
        arrays.pop(name, None)
    assert header == {
        **expected[0],
        "members": {k: v for k, v in expected[0]["members"].items() if k not in but},
    }
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[1][name], err_msg=name)


@pytest.mark.parametrize("places", [8, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SOLVERS)
def test_interrupt_between_two_lines_changes_nothing(name, places, tmp_path):
    """At the first, a middle and the last execution of each line; in the default run at some lines.

    Of the loops that all solvers share, each line is taken by one of the six solvers with steps and
    by one of the six with iterations; of the other files each solver takes some lines.
    """
    make, go_to, end = SOLVERS[name]
    go_to(make(), end)  # what is done once only is done
    solver = make()
    with Tracer(0) as tracer:
        go_to(solver, end)
    expected = state(solver, tmp_path)
    assert tracer.lines > 20
    # The measures of a call are of its own, and an interrupt makes two calls of one.
    but = ("measures",) if name in ("lmsor", "plate") else ()

    every = tracer.times.values()  # one iteration of fast solves executes 1000 lines
    lines = sorted({times[k] for times in every for k in (0, len(times) // 2, -1)})
    if places is not None:
        number = list(SOLVERS).index(name)
        shared, own = [], []
        for (path, line), times in tracer.times.items():
            if "_solver" not in path:
                own.append(times[len(times) // 2])
            elif line % 6 == number % 6:
                shared.append(times[len(times) // 2])
        step = max(1, len(own) // places)
        lines = sorted([*shared, *own[number % step :: step]])
    for line in lines:
        solver = make()
        with pytest.raises(KeyboardInterrupt), Tracer(line):
            go_to(solver, end)
        assert_same(go_to(solver, end), expected, tmp_path, but=but)


HISTORIES = {
    "cavity": (saved_files.cavity, lambda s: s.iterate(40), 20, iterate_to),
    "plate": (saved_files.plate, lambda s: s.solve(0.0, max_iterations=4), 1, None),
    "lmsor": (saved_files.lmsor, lambda s: s.solve(0.0, max_iterations=4), 1, None),
    "staggered": (saved_files.staggered, lambda s: s.step(20), 20, step_to),
}


def rows(solver):
    """Return the history as an array of rows that begin with the number of the iteration."""
    history = solver.result().history
    return np.array([np.asarray(getattr(history, name)) for name in history.__slots__]).T


@pytest.mark.parametrize("name", HISTORIES)
def test_history_after_an_interrupt_has_the_row_of_the_last_iteration(name, tmp_path):
    make, use, interval, go_to = HISTORIES[name]

    def interrupted(line):
        solver = make()
        with contextlib.suppress(ConvergenceError, KeyboardInterrupt), Tracer(line) as tracer:
            use(solver)
        return solver, tracer.lines

    interrupted(0)
    expected, lines = interrupted(0)
    whole = rows(expected)
    assert len(whole) in (1, 2, 4)
    for line in range(1, lines + 1, max(1, lines // 20)):
        solver, _ = interrupted(line)
        made = int(solver.iterations if hasattr(solver, "iterations") else solver.steps)
        np.testing.assert_array_equal(rows(solver), whole[: made // interval])
        if go_to is not None:  # the row was computed, and nothing was decided
            go_to(solver, 40 if name == "cavity" else 20)
            assert_same(solver, state(expected, tmp_path), tmp_path)


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("name", SOLVERS)
def test_interrupt_as_a_call_returns_changes_nothing(name, number, tmp_path, monkeypatch):
    make, go_to, end = SOLVERS[name]
    ends = [end // 3, 2 * end // 3, end]
    whole = make()
    for part in ends:
        go_to(whole, part)
    expected, solver = state(whole, tmp_path), make()
    calls = interrupts = 0

    def interrupted(call):
        def make_call(*arguments):
            nonlocal calls
            answer = call(*arguments)
            calls += 1
            if calls == number:
                raise KeyboardInterrupt
            return answer

        return make_call

    for call in CALLS:
        monkeypatch.setattr(_core, call, interrupted(getattr(_core, call)))
    for part in ends:
        try:
            go_to(solver, part)
        except KeyboardInterrupt:
            interrupts += 1
            solver.save(tmp_path / "now")  # also the file of this moment goes on like this
            go_to(solver, part)
    assert interrupts == 1
    assert_same(solver, expected, tmp_path)


def test_interrupted_cavity_goes_on_from_its_file(tmp_path, monkeypatch):
    expected = state(saved_files.cavity().iterate(60), tmp_path)
    cavity, call = saved_files.cavity(), _core.cavity_iterate

    def interrupted(*arguments):
        call(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(_core, "cavity_iterate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cavity.iterate(60)
    monkeypatch.undo()
    cavity.save(tmp_path / "interrupted")
    loaded = type(cavity).load(tmp_path / "interrupted")

    assert loaded.iterations == 20
    assert_same(loaded.iterate(40), expected, tmp_path)


def test_interrupted_solve_converges_as_the_whole_one(monkeypatch):
    expected = saved_files.cavity().solve(1e-6)
    call, cavity = _core.cavity_iterate, saved_files.cavity()

    def interrupted(*arguments):
        call(*arguments)
        raise KeyboardInterrupt

    for iterations in range(20, 120, 20):
        monkeypatch.setattr(_core, "cavity_iterate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cavity.solve(1e-6)
        monkeypatch.undo()
        cavity.iterate(0)  # makes the decision that was left
        assert cavity.iterations == iterations
    result = cavity.solve(1e-6)

    assert result.iterations == expected.iterations
    np.testing.assert_array_equal(result.omega, expected.omega)
    np.testing.assert_array_equal(result.history.omega, expected.history.omega)


@pytest.mark.parametrize("name", ["heat", "gceidd"])
def test_growth_that_an_interrupt_hides_is_found_by_the_next_step(name, monkeypatch):
    make, call_name = {
        "heat": (
            lambda: pysolvers.HeatADI(
                (5, 6), 0.25, 0.01, initial=1e308, source=1e308, boundary=0.0
            ),
            "heat_step",
        ),
        "gceidd": (
            lambda: pysolvers.GCEIDD(saved_files.PULSE, shape=(9, 9), dt=0.01, bound=1e-3),
            "gceidd_step",
        ),
    }[name]
    solver, call = make(), getattr(_core, call_name)

    def interrupted(*arguments):
        call(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(_core, call_name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        solver.step(1000)
    monkeypatch.undo()
    steps = solver.steps

    assert steps >= 1
    with pytest.raises(pysolvers.ConvergenceError, match=f"after step {steps}"):
        solver.step()
    assert solver.steps == steps
