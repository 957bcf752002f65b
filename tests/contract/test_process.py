"""Forks, signals and threads: the package behaves inside somebody's program."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import oracle
import pytest

from pysolvers import factor_tridiagonal, solve_tridiagonal


def run_python(code, *, timeout=120):
    """Run a script in a process of its own and return what it printed."""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


FORK = """
import os, warnings
import numpy as np
from pysolvers import solve_tridiagonal

warnings.simplefilter("ignore", DeprecationWarning)  # of os.fork next to threads
rhs = np.random.default_rng(1).uniform(-1, 1, (20_000, 64))
expected = solve_tridiagonal(-1.0, 4.0, -1.0, rhs, threads={parent})
children = []
for threads in ({child}, {child}):
    child = os.fork()
    if child == 0:
        x = solve_tridiagonal(-1.0, 4.0, -1.0, rhs, threads=threads)
        os._exit(0 if np.array_equal(x, expected) else 3)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
again = solve_tridiagonal(-1.0, 4.0, -1.0, rhs, threads={parent})
print(codes, np.array_equal(again, expected))
"""


@pytest.mark.each_value
@pytest.mark.parametrize("parent", [1, 2])
@pytest.mark.parametrize("child", [1, 2, None])
def test_fork_after_use_does_not_hang(parent, child):
    assert run_python(FORK.format(parent=parent, child=child)) == "[0, 0] True\n"


FORK_WITH_WORKERS = """
import os, time, warnings
import numpy as np
from pysolvers import solve_tridiagonal

warnings.simplefilter("ignore", DeprecationWarning)  # of os.fork next to threads
rhs = np.ones((20_000, 64))

def starts_a_worker():
    # A team that was slow is not used again for some time, so that one solve is not enough.
    before, end = len(os.listdir("/proc/self/task")), time.monotonic() + 20
    while len(os.listdir("/proc/self/task")) == before and time.monotonic() < end:
        solve_tridiagonal(-1.0, 4.0, -1.0, rhs, threads=2)
    return len(os.listdir("/proc/self/task")) > before

in_parent = starts_a_worker()
child = os.fork()
if child == 0:
    os._exit(0 if starts_a_worker() else 3)
print(in_parent, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads cannot be counted")
def test_a_child_process_starts_workers_of_its_own():
    """The workers of the parent do not exist in the child, which would solve on one thread."""
    assert run_python(FORK_WITH_WORKERS) == "True 0\n"


FORK_DURING_SOLVES = """
import os, signal, threading, warnings
import numpy as np
from pysolvers import factor_tridiagonal, solve_tridiagonal

warnings.simplefilter("ignore", DeprecationWarning)  # of os.fork next to threads
rng = np.random.default_rng(1)
lower, diag, upper, rhs = rng.uniform(-1, 1, (4, 3000, 64))
diag += 3
factor = factor_tridiagonal(lower, diag, upper)
stop = threading.Event()

def answers(threads):
    small = [a[:5] for a in (lower, diag, upper, rhs)]
    return [
        solve_tridiagonal(lower, diag, upper, rhs, threads=threads),
        factor.solve(rhs, threads=threads),
        solve_tridiagonal(*small),
        solve_tridiagonal(*small, return_info=True)[0],
    ]

def work():
    while not stop.is_set():
        answers(2)

expected = answers(1)
workers = [threading.Thread(target=work) for _ in range(2)]
for worker in workers:
    worker.start()
codes = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        found = [x for threads in (1, 2, 2) for x in answers(threads)]
        same = all(np.array_equal(x, y) for x, y in zip(found, 3 * expected))
        os._exit(0 if same else 3)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
for worker in workers:
    worker.join()
print(codes)
"""


def test_fork_while_other_threads_solve():
    assert run_python(FORK_DURING_SOLVES) == f"{[0] * 8}\n"


DEFAULT = "from pysolvers import _core; print(_core.default_threads())"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity masks")
def test_default_number_of_threads_follows_the_affinity_mask():
    one = min(os.sched_getaffinity(0))

    assert run_python(f"import os; os.sched_setaffinity(0, {{{one}}}); {DEFAULT}") == "1\n"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"OMP_NUM_THREADS": "1,4"}, 1),
        ({"PYSOLVERS_NUM_THREADS": "100000", "OMP_NUM_THREADS": "1"}, None),
        # The first variable alone is a test of test_arguments.py.
        pytest.param({"PYSOLVERS_NUM_THREADS": "1"}, 1, marks=pytest.mark.slow),
        pytest.param({"OMP_NUM_THREADS": "1"}, 1, marks=pytest.mark.slow),
        pytest.param({}, None, marks=pytest.mark.slow),
    ],
)
def test_environment_reduces_the_default_number_of_threads(monkeypatch, variables, expected):
    for name in ("PYSOLVERS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    most = int(run_python(DEFAULT))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert int(run_python(DEFAULT)) == (expected or most)


SLOW_EXIT = """
import threading
import numpy as np
from pysolvers import solve_tridiagonal

rhs = np.ones((4096, 512))
started = threading.Event()

def solve():
    while True:
        solve_tridiagonal(-1.0, 4.0, -1.0, rhs, threads=4)
        started.set()

threading.Thread(target=solve, daemon=True).start()
started.wait()
print("left")
"""


def test_process_ends_while_threads_solve():
    assert run_python(SLOW_EXIT) == "left\n"


# Each system has a matrix of its own, held as one number. Prints the time from the signal to the
# exception, and whether a part of the batch was left out.
INTERRUPT = """
import os, signal, threading, time
import numpy as np
from pysolvers import solve_tridiagonal

signal.signal(signal.SIGINT, signal.default_int_handler)  # even where a shell ignores it

def interrupt():
    global sent
    sent = time.perf_counter()
    os.kill(os.getpid(), signal.SIGINT)

systems, rows = 1 << 12, 1 << 12
diag = np.linspace(4, 5, systems)[:, None].astype(np.complex128)
rhs = np.broadcast_to(np.complex128(1), (systems, rows))
out = np.full((systems, rows), np.nan, np.complex128)
# What is done at the first call alone, as the import of threading, is done before the signal.
solve_tridiagonal(-1.0, diag[:4], -1.0, rhs[:4], method={method!r}, threads={threads})
begin = time.perf_counter()
timer = threading.Timer(0.02, interrupt)
timer.start()
try:
    solve_tridiagonal(-1.0, diag, -1.0, rhs, method={method!r}, threads={threads}, out=out)
except KeyboardInterrupt:
    print(time.perf_counter() - sent, np.isnan(out).any())
else:
    print("finished after", time.perf_counter() - begin)
"""


@pytest.mark.parametrize(
    ("method", "threads"),
    [
        ("pivoted", 2),
        *(
            pytest.param(method, threads, marks=pytest.mark.slow)  # of one loop over tiles
            for method in ("pcr", "pivoted", "partition")
            for threads in (1, 2)
        ),
    ],
)
def test_interrupt_leaves_a_long_batch_within_a_second(method, threads):
    seconds, left_out = run_python(INTERRUPT.format(method=method, threads=threads)).split()

    assert float(seconds) < 1.0
    if method == "pcr":  # the slowest by far
        assert left_out == "True"


def long_batch():
    """Return operands whose solution takes a good part of a second on one thread."""
    diag = np.linspace(4, 5, 1 << 11)[:, None].astype(np.complex128)
    rhs = np.broadcast_to(np.complex128(1), (1 << 11, 1 << 11))
    return -1.0, diag, -1.0, rhs


def test_other_threads_run_during_a_solve():
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(0.002):
            ticks.append(time.perf_counter())

    system, out = long_batch(), np.empty((1 << 11, 1 << 11), np.complex128)
    ticker = threading.Thread(target=tick)
    ticker.start()
    begin = time.perf_counter()
    solve_tridiagonal(*system, method="pcr", threads=1, out=out)
    end = time.perf_counter()
    done.set()
    ticker.join()

    during = [t for t in ticks if begin < t < end]
    assert len(during) >= 0.1 * (end - begin) / 0.002


def test_several_threads_at_once_get_their_own_answers(rng):
    problems = [
        (oracle.dominant(rng, (40 + k, 30 + 7 * k), dtype), method)
        for k, method in enumerate(oracle.METHODS)
        for dtype in oracle.DTYPES
    ]

    def work(problem):
        system, method = problem
        return solve_tridiagonal(*system, method=method, threads=2)

    expected = [work(problem) for problem in problems]
    with ThreadPoolExecutor(max_workers=6) as pool:
        for _ in range(5):
            for x, y in zip(pool.map(work, problems), expected, strict=True):
                np.testing.assert_array_equal(x, y)


def test_small_calls_of_many_threads_get_their_own_answers(rng):
    problems = [
        (oracle.dominant(rng, (1 + k, 2 + 3 * k), dtype), on_singular)
        for k in range(8)
        for dtype in oracle.DTYPES
        for on_singular in ("raise", "ignore")
    ]
    expected = [np.copy(solve_tridiagonal(*system)) for system, _ in problems]
    wrong = []

    def work(first):
        for repeat in range(100):
            k = (first + repeat) % len(problems)
            system, on_singular = problems[k]
            if not np.array_equal(solve_tridiagonal(*system, on_singular=on_singular), expected[k]):
                wrong.append(k)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(5):  # threads that end and are replaced by others
            threads = [threading.Thread(target=work, args=(7 * k,)) for k in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


def test_one_factor_serves_several_threads(rng):
    lower, diag, upper, _ = oracle.general(rng, (40, 65))
    many = [oracle.uniform(rng, (40, 65)) for _ in range(40)]
    factor = factor_tridiagonal(lower, diag, upper)
    expected = [factor.solve(rhs) for rhs in many]

    with ThreadPoolExecutor(max_workers=6) as pool:
        for x, y in zip(pool.map(factor.solve, many), expected, strict=True):
            np.testing.assert_array_equal(x, y)


def test_refactor_beside_solves_gives_old_or_new_answers(rng):
    old, new = (oracle.dominant(rng, (60, 65))[:3] for _ in range(2))
    rhs = oracle.uniform(rng, (60, 65))
    factor = factor_tridiagonal(*old)
    answers = [factor_tridiagonal(*matrix).solve(rhs) for matrix in (old, new)]

    def flip():
        for _ in range(50):
            factor.refactor(*new)
            factor.refactor(*old)

    with ThreadPoolExecutor(max_workers=3) as pool:
        flipping = pool.submit(flip)
        while not flipping.done():
            x = factor.solve(rhs)
            assert any(np.array_equal(x, answer) for answer in answers)
        flipping.result()


def test_solves_do_not_leak_memory(rng):
    import tracemalloc

    system = oracle.dominant(rng, (200, 65))
    f = factor_tridiagonal(*system[:3])
    tracemalloc.start()
    for round_ in range(30):
        solve_tridiagonal(*system)
        f.solve(system[3])
        f.refactor(*system[:3])
        with pytest.raises(ValueError, match="shape"):
            solve_tridiagonal(*system, out=np.empty(3))
        if round_ == 10:
            first = tracemalloc.get_traced_memory()[0]
    grown = tracemalloc.get_traced_memory()[0] - first
    tracemalloc.stop()

    assert grown < system[0].nbytes // 4
