"""A solver makes one call at a time; what nobody changes can be shared."""

import copy
import pickle
import sys
import threading

import numpy as np
import pytest
import saved_files

from pysolvers import GCEIDD, ConvectionDiffusion, CubicSpline, FastPoisson, HeatADI, Neumann
from pysolvers._solver import files
from pysolvers._solver.exclusive import _ENTRY, _READERS, _Entry

LIMIT = 60  # seconds for what ends at once


def run(until):
    return lambda solver, **options: solver.run(until, **options)


def solve(*arguments):
    return lambda solver, **options: solver.solve(*arguments, **options)


# Name -> how to make a solver, a long call that takes a callback, and all calls that change it.
STEPS = {"step": lambda s: s.step(), "run": lambda s: s.run(1.0), "record": lambda s: s.record(1.0)}
ITERATIONS = {"iterate": lambda s: s.iterate(1), "solve": lambda s: s.solve(1e-3)}
SOLVERS = {
    "HeatADI": (saved_files.heat, run(0.5), STEPS),
    "GCEIDD": (saved_files.gceidd, run(0.5), STEPS),
    "SquareCylinder": (saved_files.cylinder, run(0.8), STEPS),
    "SquareCylinder, steady": (
        lambda: saved_files.cylinder(steady=True),
        solve(0.1),
        {"step": STEPS["step"], "solve": lambda s: s.solve(0.1)},
    ),
    "StaggeredCavity": (saved_files.staggered, run(8.0), STEPS),
    "StaggeredCavity, steady": (
        saved_files.staggered,
        solve(1e-3),
        STEPS | {"solve": lambda s: s.solve(1e-3)},
    ),
    "LidDrivenCavity": (saved_files.cavity, solve(1e-4), ITERATIONS),
    "RedBlackSOR": (saved_files.plate, solve(1e-6), ITERATIONS),
    "LMSOR": (saved_files.lmsor, solve(1e-6), ITERATIONS),
}


READINGS = {
    "result": lambda solver, path: solver.result(),
    "save": lambda solver, path: solver.save(path),
    "gather": lambda solver, path: solver.gather(),
    "__deepcopy__": lambda solver, path: copy.copy(solver),
    "__getstate__": lambda solver, path: pickle.dumps(solver),
}


def field(solver):
    return np.array(solver.u)


@pytest.mark.parametrize(("make", "use", "calls"), SOLVERS.values(), ids=SOLVERS)
def test_another_thread_is_refused_and_changes_nothing(make, use, calls, tmp_path):
    solver, expected = make(), make()
    use(expected)
    inside, go_on = threading.Event(), threading.Event()
    results = []

    def wait_once(_):
        if not inside.is_set():
            inside.set()
            assert go_on.wait(LIMIT)

    thread = threading.Thread(target=lambda: results.append(use(solver, callback=wait_once)))
    thread.start()
    assert inside.wait(LIMIT)
    try:
        before = field(solver)
        for name, call in calls.items():
            with pytest.raises(RuntimeError, match=rf"\.{name} was called while another thread"):
                call(solver)
        for name, read in READINGS.items():
            if hasattr(solver, name):
                with pytest.raises(RuntimeError, match=rf"\.{name} was called while another"):
                    read(solver, tmp_path / "state")
        assert not list(tmp_path.iterdir())
        np.testing.assert_array_equal(field(solver), before)
    finally:
        go_on.set()
        thread.join(LIMIT)

    assert len(results) == 1
    np.testing.assert_array_equal(field(solver), field(expected))
    next(iter(calls.values()))(solver)


@pytest.mark.parametrize(("make", "use", "calls"), SOLVERS.values(), ids=SOLVERS)
def test_a_callback_reads_the_solver_and_steps_a_copy(make, use, calls, tmp_path):
    solver, name = make(), next(iter(calls))
    seen = []

    def callback(given):
        assert given is solver
        before = field(solver)
        other = copy.copy(solver)
        calls[name](other)
        seen.append(not np.array_equal(field(other), before))
        np.testing.assert_array_equal(field(given.result()), before)
        given.save(tmp_path / "state")
        calls[name](solver)

    with pytest.raises(RuntimeError, match=rf"\.{name} was called by a callback"):
        use(solver, callback=callback)
    assert seen == [True]
    calls[name](solver)  # the error has released the solver


@pytest.mark.parametrize("make", [HeatADI, GCEIDD])
def test_a_function_of_the_solver_that_steps_it_is_refused(make):
    solvers = []

    def source(t):
        if solvers:
            solvers[0].step()
        return 1.0

    if make is HeatADI:
        solvers.append(HeatADI((5, 5), 0.25, 0.01, boundary=0.0, source=source))
    else:
        problem = ConvectionDiffusion((1.0, 1.0), 0.1, source=source, boundary=0.0)
        solvers.append(GCEIDD(problem, shape=(5, 5), dt=0.01))
    with pytest.raises(RuntimeError, match=r"\.step was called by a callback or a function of"):
        solvers[0].step()
    assert solvers[0].steps == 0


def test_several_threads_read_a_solver_and_none_steps_it_meanwhile(tmp_path, monkeypatch):
    solver, before = saved_files.heat(), saved_files.heat()
    inside, go_on, write, copies = threading.Event(), threading.Event(), files.write_npz, []

    def slow(*arguments):
        inside.set()
        assert go_on.wait(LIMIT)
        write(*arguments)

    monkeypatch.setattr(files, "write_npz", slow)
    threads = [threading.Thread(target=lambda: solver.save(tmp_path / "state"))]
    threads += [threading.Thread(target=lambda: copies.append(copy.copy(solver))) for _ in "ab"]
    threads[0].start()
    assert inside.wait(LIMIT)
    try:
        for thread in threads[1:]:
            thread.start()
            thread.join(LIMIT)
        with pytest.raises(RuntimeError, match=r"\.step was called while another thread .*save"):
            solver.step()
    finally:
        go_on.set()
    threads[0].join(LIMIT)

    loaded = HeatADI.load(tmp_path / "state", boundary={"x": Neumann(1.0), "y": "periodic"})
    for same in (*copies, loaded):
        np.testing.assert_array_equal(same.u, before.u)
        np.testing.assert_array_equal(same.step(2).u, saved_files.heat().step(2).u)
    assert solver.step(2).steps == before.steps + 2


def test_a_read_that_an_interrupt_ended_does_not_stop_steps():
    solver = saved_files.heat()
    solver.__dict__[_READERS] = {1: _Entry(threading.get_ident(), ended_frame(), "save")}

    assert solver.step().steps == 1
    assert not vars(solver)[_READERS]


def ended_frame():
    return sys._getframe()


@pytest.mark.parametrize("is_own", [True, False], ids=["own thread", "ended thread"])
def test_an_entry_of_a_call_that_has_ended_is_ignored(is_own):
    thread = threading.get_ident() if is_own else 1
    solver, expected = saved_files.heat(), saved_files.heat().step(3)
    solver.__dict__[_ENTRY] = _Entry(thread, ended_frame(), "step")

    assert repr(copy.copy(solver).step(3)) == repr(solver.step(3))
    np.testing.assert_array_equal(solver.u, expected.u)
    assert _ENTRY not in vars(solver)


def test_solvers_without_a_state_serve_several_threads():
    x = np.linspace(0, 1, 9)
    poisson = FastPoisson((17, 18), extent=((0, 1), (0, 1)), boundary=1.0)
    spline = CubicSpline(x, np.cos(3 * x))
    places = np.linspace(-0.5, 1.5, 5001)
    start, found = threading.Barrier(4), {}

    def use(number):
        start.wait(LIMIT)
        found[number] = [
            (poisson.solve(lambda x, y, c=number + k: c * x * y), spline(places + k / 10))
            for k in range(30)
        ]

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)

    for number in range(4):
        for k, (u, values) in enumerate(found[number]):
            alone = poisson.solve(lambda x, y, c=number + k: c * x * y)
            np.testing.assert_array_equal(u, alone)
            np.testing.assert_array_equal(values, spline(places + k / 10))
