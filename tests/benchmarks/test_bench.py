"""The benchmark at small size, its record, and the tables made from the committed one."""

import importlib.util
import itertools
import json
import subprocess
import sys
from pathlib import Path

import command_line
import numpy as np
import pytest

from benchmarks import small, timing, tridiagonal as bench_tridiagonal
from benchmarks.batches import AXES, MATRICES, Case
from benchmarks.sources import source_hash
from benchmarks.tridiagonal import misses

ROOT = Path(__file__).parents[2]


# The columns of small work whose packages are installed.
PACKAGES = [name for name in small.COLUMNS if name != "numba" or importlib.util.find_spec("numba")]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """The text and the record of a quick run."""
    path = tmp_path_factory.mktemp("bench") / "new folder" / "record.json"
    command = ["bench", "tridiagonal", "--quick", "--threads", "2", "--json", str(path)]
    run = subprocess.run(
        [sys.executable, "-m", "pysolvers", *command],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return run, json.loads(path.read_text())


def test_every_case_is_measured(bench):
    _, record = bench

    found = {(case["matrix"], case["axis"], case["dtype"]) for case in record["cases"]}

    assert found == {(m, a, d) for m in MATRICES for a in AXES for d in ("float64", "float32")}
    assert all(case["time"] > 0 and case["fraction"] > 0 for case in record["cases"])


def test_a_quick_run_has_no_targets(bench):
    run, record = bench

    assert all(case["bar"] is None and case["peer_bar"] is None for case in record["cases"])
    assert "missed" not in run.stdout


def test_peers_are_measured_beside_the_contiguous_systems(bench):
    _, record = bench

    for case in record["cases"]:
        has_peers = (case["matrix"], case["axis"]) == ("own", "last")
        assert ({"scipy", "lapack"} <= set(case["peers"])) == has_peers
        assert ("numba" in case["peers"]) == (has_peers and "numba" in PACKAGES)
        assert all(time > 0 for time in case["peers"].values())


def test_table_goes_to_stdout_and_messages_to_stderr(bench):
    run, record = bench

    (message,) = run.stderr.splitlines()
    assert message.startswith("record in ")
    assert record["machine"]["cpu"] in run.stdout
    rows = [line.split() for line in run.stdout.splitlines() if line.startswith(MATRICES)]
    assert len(rows) == len(record["cases"])


def test_small_work_is_measured_for_every_package(tmp_path, capsys):
    path = tmp_path / "small.json"

    assert command_line.main(["bench", "small", "--quick", "--json", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    cases = json.loads(path.read_text())["cases"]
    found = [(entry["rows"], entry["systems"]) for entry in cases]
    assert found == [(n, k) for n in small.QUICK_ROWS for k in small.QUICK_SYSTEMS]
    for entry in cases:
        assert list(entry["microseconds"]) == PACKAGES
        assert all(time > 0 for time in entry["microseconds"].values())
        size = [str(entry["rows"]), str(entry["systems"])]
        assert any(line.split()[:2] == size for line in lines)


@pytest.mark.parametrize(("rows", "systems"), [(8, 1), (64, 16), (512, 3)])
def test_calls_of_small_work_solve_the_same_systems(rows, systems):
    lower, diag, upper, rhs = small.operands(systems, rows)
    dense = np.zeros((systems, rows, rows))
    k = np.arange(rows)
    dense[:, k, k] = diag
    dense[:, k[1:], k[:-1]] = lower[:, 1:]
    dense[:, k[:-1], k[1:]] = upper[:, :-1]
    expected = np.linalg.solve(dense, rhs[..., None])[..., 0]

    calls = small.calls(systems, rows, threads=1)

    assert list(calls) == PACKAGES
    for call in calls.values():
        np.testing.assert_allclose(call(), expected, rtol=1e-12)


@pytest.mark.parametrize("parallel", [True, False])
def test_loop_of_numba_solves_the_systems(parallel):
    pytest.importorskip("numba")
    lower, diag, upper, rhs = small.operands(7, 33)

    x = small.peers.numba_thomas(parallel=parallel)(lower, diag, upper, rhs)

    np.testing.assert_allclose(x, small.peers.numpy_thomas(lower, diag, upper, rhs), rtol=1e-13)


def test_medians_are_those_of_one_call(monkeypatch):
    clock = iter(range(10**6))
    steps = {"one": 0, "four": 3}  # the clock itself advances by one between two readings

    def call(name):
        return lambda: [next(clock) for _ in range(steps[name])]

    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock))

    found = timing.medians({name: call(name) for name in steps}, 5, seconds=2)

    assert found == {"one": 0.5, "four": 4.0}  # two calls per sample of "one", one of "four"


def test_budget_ends_the_samples_and_a_length_sets_the_calls_of_one():
    calls = []

    def clock(call, count):
        for _ in range(count):
            call()
        return 10.0

    found = timing.samples_of({"slow": lambda: calls.append(1)}, 50, budget=40.0, clock=clock)
    assert found == {"slow": [10.0] * 4}
    assert len(calls) == 1 + 1 + 4  # not measured, to learn the time, samples

    calls.clear()
    timing.samples_of({"fixed": lambda: calls.append(1)}, 5, length=7, clock=clock)
    assert len(calls) == 1 + 5 * 7


def test_time_may_end_before_the_work():
    now = []

    def wait(last):
        now.append(last)

    assert timing.waiting(wait, counted=False)(lambda: 3, 2) < 1.0
    assert now == [3]


def test_picture_of_small_work():
    pytest.importorskip("matplotlib")
    from benchmarks.documents import small_picture

    times = {"package": 2.0, "scipy": 30.0, "lapack": 3.0}
    cpu = {
        "machine": {"cpu": "C"},
        "cases": [
            {"rows": n, "systems": k, "microseconds": {name: t * k for name, t in times.items()}}
            for n in (8, 64)
            for k in (16, 1)
        ],
    }
    case = {"part": "small", "dtype": "float64", "rows": 8, "systems": 1, "seconds": 1e-5}
    gpu = {"gpu": {"name": "G"}, "bench": {"cases": [case | {"peers": {"jax": 3e-5}}]}}
    # Cases of other parts, and cases that failed, are left out.
    gpu["bench"]["cases"] += [case | {"part": "own"}, {"part": "small", "dtype": "float64"}]

    (package, scipy, lapack) = small_picture.points(
        small_picture.cpu_entries(cpu)[:2], small_picture.CPU_CURVES
    )
    assert package[2:] == ([1, 16], [2.0, 32.0])
    assert scipy[0] == "loop of scipy.linalg.solve_banded"
    assert lapack[3] == [3.0, 48.0]
    assert small_picture.gpu_entries(gpu) == [
        (8, 1, {"package": pytest.approx(10.0), "jax": pytest.approx(30.0)})
    ]
    assert len(small_picture.picture(cpu, None).axes) == 2
    assert len(small_picture.picture(cpu, gpu).axes) == 4


def test_record_names_the_sources(bench):
    _, record = bench

    assert record["sources"] == source_hash()


@pytest.mark.parametrize("number", ["0", "abc", "1.5"])
def test_number_of_threads_must_be_positive(capsys, number):
    with pytest.raises(SystemExit) as caught:
        command_line.main(["bench", "tridiagonal", "--threads", number])

    assert caught.value.code == 2
    assert f"an integer of at least 1, got {number}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("matrix", "rows", "systems", "words", "bar"),
    [
        ("own", 64, 1000, 5, 0.7),
        ("own", 65536, 1000, 5, None),
        ("own", 2**24, 1, 5, 0.5),
        ("pivoted", 64, 1000, 5, 0.6),
        ("shared", 64, 1000, 2.003, 0.6),
        ("periodic", 64, 1000, 5, None),
    ],
)
def test_floor_and_bar_of_a_case(matrix, rows, systems, words, bar):
    case = Case(matrix=matrix, axis="last", dtype="float64", rows=rows, systems=systems)

    assert case.words == words
    assert case.bar == bar


@pytest.mark.parametrize(
    ("fraction", "lapack", "missed"), [(0.71, 10.1, False), (0.69, 10.1, True), (0.71, 9.9, True)]
)
def test_a_case_misses_either_bar(fraction, lapack, missed):
    entry = {"fraction": fraction, "bar": 0.7, "time": 1.0, "peers": {"lapack": lapack}}

    assert misses(entry | {"peer_bar": 10.0}) == missed


def test_peers_that_are_not_installed_are_left_out(monkeypatch):
    case = Case(matrix="own", axis="last", dtype="float64", rows=16, systems=100)
    monkeypatch.setitem(sys.modules, "scipy.linalg", None)

    buffers = bench_tridiagonal.Buffers("float64", case.unknowns)
    monkeypatch.setattr(bench_tridiagonal.peers, "numba_thomas", lambda **_: None)
    times = bench_tridiagonal.measure_peers(case, buffers, 1, 1)

    assert list(times) == ["numpy"]
    assert not misses({"fraction": 0.71, "bar": 0.7, "time": 1.0, "peers": {}, "peer_bar": 10.0})


@pytest.fixture
def hashed(tmp_path):
    """A function that returns the hash of the sources {path: text}."""
    number = itertools.count()

    def hash_of(sources):
        root = tmp_path / str(next(number))
        for name, text in sources.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return source_hash(root)

    return hash_of


def test_source_hash_sees_every_change_of_the_code(hashed):
    texts = ["int x;", "int y;", 'char *x = "a b";', 'char *x = "ab";', 'char *x = "/* */";']
    sources = [{"csrc/a.c": text} for text in texts]
    sources += [{}, {"csrc/a.c": "int x;", "cuda/b.cu": "int x;"}]

    assert len({hashed(s) for s in sources}) == len(sources)


def test_source_hash_sees_no_comment_no_layout_and_no_name_of_a_file(hashed):
    code = '#include "cpu/x.h"\nint f(char c) { return c == \'"\' ? 1 : 2; } /* one */'
    same = '#include "x.h"\n// two\nint f(char c)\n{\n    return c == \'"\'\n ? 1 : 2;\n}\n'

    assert hashed({"csrc/cpu/a.c": code}) == hashed({"csrc/b/c.c": same, "csrc/notes.txt": "no"})


def test_tables_of_the_documents_are_those_of_the_record(capsys):
    pytest.importorskip("matplotlib")

    assert command_line.main(["bench", "documents", "tables", "--check"]) == 0, (
        capsys.readouterr().err
    )
