"""The benchmark of the GPU: its cases and bars, its record, and what is made from the record."""

import copy
import functools
import json
import math
import os
import shlex
import subprocess
import sys
import tarfile
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import availability
import command_line
import pytest

import pysolvers
from benchmarks import machine, sources
from benchmarks.gpu_cases import DTYPES, PARTS, UNKNOWNS, GpuCase, cases
from benchmarks.gpu_solvers import made_solver, solver_cases
from benchmarks.gpu_table import best_peer, missed, misses, slow_against_peer, tables
from pysolvers.cases.tables import Column, Table

ROOT = Path(__file__).parents[2]
FILE_HASHES = functools.cache(sources.file_hashes)


@pytest.fixture
def tools(monkeypatch):
    """Let the modules of tools/ be imported, which read the sources of the package once."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.setattr(sources, "file_hashes", FILE_HASHES)


def entry_of(case):
    """Return what a run of a case might have found."""
    floor = case.words * case.unknowns * 4 / 4e12
    entry = {**asdict(case), "words": case.words, "bar": case.bar, "time_bar": case.time_bar}
    used = "partition" if case.method == "auto" else case.method
    entry |= {"used": used, "kernel": "k", "error": 1.5, "seconds": 1.05 * floor}
    entry |= {"peers": dict.fromkeys(case.peers, 5 * floor), "refused": {}}
    if case.part not in ("cached", "small"):
        entry |= {"floor": floor, "fraction": 0.952}
    return entry | {"peer_bar": case.peer_bar}


def solver_entry_of(case):
    """Return what a run of a case of a solver might have found: it misses most bars."""
    entry = {**asdict(case), "shape": list(case.shape)}
    return entry | {"floor": 1e-4, "seconds": 2e-4, "fraction": 0.5}


@pytest.fixture
def record(tools):
    """A record of every case, with invented figures."""
    from benchmarks.sources import device_hash

    every = [case for dtype in DTYPES for part in PARTS for case in cases(part, dtype)]
    gpu = {"name": "NVIDIA H200", "driver": "580.1", "memory": "143771 MiB"}
    machine = {"cpu": "C"}
    bench = {
        "benchmark": "gpu",
        "date": "2026-01-31",
        "machine": machine,
        "load": 0.5,
        "gpu": gpu,
        "device": "a device",
        "versions": {"cupy-cuda13x": "14.2.0", "cupy-cuda12x": None, "nvcc": "13.0.48"},
        "sources": device_hash(),
        "settings": {"quick": False, "runs": 15, "parts": list(PARTS)},
        "copy": {"bandwidth": 4.27e12, "runs": 100},
        "cases": [entry_of(case) for case in every],
        "solvers": [solver_entry_of(case) for case in solver_cases()],
    }
    seconds = {"one core": {"64": 0.05, "1024": 10.0}, "auto": {"64": 0.02, "1024": 0.05}}
    return {
        "benchmark": "gpu record",
        "date": "2026-01-31",
        "sources": device_hash(),
        "machine": machine,
        "gpu": gpu,
        "load": 0.5,
        "settings": bench["settings"],
        "versions": bench["versions"] | {"driver": "580.1"},
        "tests": {"passed": 10, "failed": 0, "skipped": 1, "exit_code": 0},
        "note": "Without the second GPU.",
        "sanitizers": {"memcheck": {"tool": "memcheck", "errors": 0, "passed": 4}},
        "random": {"calls": {"name": "calls", "failed": 0, "cases": 70000, "seed": 7}},
        "papers": {
            "pta2020": {
                "grids": [64, 1024],
                "seconds": seconds,
                "verdict": "Claimed: PTA is fast.\nClaimed: access matters.",
            }
        },
        "bench": bench,
    }


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("quick", [False, True])
def test_cases_of_a_part_have_the_shape_they_say(part, quick):
    found = list(cases(part, "float32", quick=quick))

    assert found
    for case in found:
        assert math.prod(case.shape()) == case.unknowns
        assert case.shape()[case.axis_number] == case.rows
        assert case.unknowns <= (2**16 if quick else UNKNOWNS)


@pytest.mark.parametrize(
    ("matrix", "axis", "rows", "bars"),
    [
        ("own", "last", 31, (None, None)),
        ("own", "last", 32, (0.95, 0.90)),
        ("own", "last", 2048, (0.95, 0.90)),
        ("own", "last", 3000, (0.90, 0.85)),
        ("own", "last", 8192, (0.85, 0.80)),
        ("own", "last", 16384, (0.80, 0.70)),
        ("own", "last", 65536, (0.65, 0.60)),
        ("own", "last", 2**20, (None, None)),
        ("own", "first", 4096, (0.90, 0.88)),
        ("own", "middle", 100, (0.90, 0.88)),
        ("shared", "first", 512, (0.85, 0.85)),
        ("factor", "last", 4096, (0.85, 0.85)),
        ("pivoted", "last", 64, (0.85, 0.80)),
        ("pivoted", "first", 64, (None, None)),
        ("periodic", "last", 1000, (0.90, 0.85)),
    ],
)
def test_bar_of_a_case(matrix, axis, rows, bars):
    for dtype, bar in zip(DTYPES, bars, strict=True):
        case = GpuCase(part="x", matrix=matrix, axis=axis, dtype=dtype, rows=rows, systems=640)
        assert case.bar == bar


def test_one_system_and_batches_in_the_cache_have_bars_of_their_own():
    one = [case for case in cases("own", "float64") if case.systems == 1]
    cached = {case.rows: case for case in cases("cached", "float64") if case.axis == "last"}

    assert [case.bar for case in one] == [0.52]
    assert {rows: case.time_bar for rows, case in cached.items()} == {1022: 20e-6, 512: 8e-6}
    assert all(case.bar is None for case in cached.values())


def test_small_work_is_compared_without_targets():
    found = list(cases("small", "float64"))

    assert {(case.rows, case.systems) for case in found} >= {(8, 1), (64, 256), (512, 4096)}
    for case in found:
        assert case.peers == ("cusparse strided", "jax", "torch")
        assert case.bar is case.time_bar is case.peer_bar is None


def test_time_of_calls_ends_when_the_device_has_finished(monkeypatch):
    from benchmarks import timing

    now, queued = [0.0], [0]

    class Stream:
        def synchronize(self):
            now[0] += 2.0 * queued[0]  # the device needs 2 s for each call
            queued[0] = 0

    def work():
        now[0] += 0.5  # the host needs 0.5 s
        queued[0] += 1

    clock = object.__new__(timing.CopyClock)
    clock._cupy = SimpleNamespace(cuda=SimpleNamespace(get_current_stream=Stream))
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])

    assert clock.calls(work) == pytest.approx(2.5)


def test_time_of_a_peer_on_the_host_is_that_of_one_call(monkeypatch):
    from benchmarks import gpu_peers, timing

    now, calls = [0.0], []

    def solve():
        calls.append(now[0])
        now[0] += 0.001

    def wait(_):
        now[0] += 0.010

    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])

    # Ten calls in a round, by a budget of 0.55 s, and one wait.
    assert gpu_peers.host_seconds(solve, wait, 0.55) == pytest.approx(0.002)
    assert len(calls) == 2 + 10 * gpu_peers.ROUNDS
    assert gpu_peers.host_seconds(solve, wait, 0.0) == pytest.approx(0.011)


def test_case_misses_a_bar_by_being_slow_wrong_or_failing():
    (case,) = (c for c in cases("own", "float32") if c.rows == 512)
    good = entry_of(case)

    assert not misses(good)
    assert misses(good | {"fraction": 0.94})
    assert misses(good | {"error": 1e9})
    assert misses(good | {"error": math.nan})
    assert misses(good | {"failure": "OutOfMemoryError: no"})


def test_best_peer_is_the_fastest():
    (case,) = (c for c in cases("strided", "float32") if (c.rows, c.axis) == (512, "first"))
    entry = entry_of(case) | {"seconds": 1.0, "peers": {"slow": 9.0, "fast": 3.0}}

    assert best_peer(entry) == ("fast", 3.0)
    assert slow_against_peer(entry)
    assert not slow_against_peer(entry | {"seconds": 0.5})


def test_tables_mark_what_misses(record):
    bench = record["bench"]
    bench["cases"][0]["fraction"] = 0.5
    made = list(tables(bench))

    entries = len(bench["cases"]) + len(bench["solvers"])
    assert sum(len(table.rows) for table in made) == entries
    first = made[0].rows[0]
    assert "50%" in first
    assert any("(missed)" in str(cell) for cell in first)
    assert missed(bench)[0].startswith("1 of ")


def test_table_of_solvers_marks_what_misses(record):
    bench = record["bench"]
    bench["solvers"][0]["failure"] = "ValueError: wrong"
    *_, last = tables(bench)
    text = "\n".join(last.lines())
    fast = [e for e in bench["solvers"] if e["time_bar"] is not None and e["time_bar"] >= 2e-4]

    assert len(last.rows) == len(bench["solvers"]) == len(list(solver_cases()))
    assert "ValueError: wrong" in text
    assert text.count("(missed)") == len(bench["solvers"]) - 1 - len(fast)
    assert missed(bench)[-1] == f"{text.count('(missed)') + 1} of {len(last.rows)} solvers theirs"


def test_every_case_of_a_solver_can_be_made():
    for case in solver_cases(quick=True):
        if case.solver != "CubicSpline":
            made = made_solver(case, device="cpu")
            made.step(1)
            assert made.steps == 1


def test_without_a_gpu_the_benchmark_says_why(capsys):
    if machine.gpu() is not None:
        pytest.skip("there is a GPU")

    assert command_line.main(["bench", "gpu", "--quick"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "cuda" in said.err


def test_documents_get_their_tables(record):
    from benchmarks.documents import gpu_tables, records_page

    short = list(gpu_tables.summary(record))
    full = "\n".join(records_page.gpu(record))
    paper = "\n".join(gpu_tables.pta2020(record))

    assert "| 512 | 95% |" in "\n".join(short)
    assert "4.8\N{NO-BREAK SPACE}×" in "\n".join(short)
    assert any("nvcc 13.0.48" in line for line in short)
    assert "| pcr C3 |" in full
    assert "memcheck: 0 errors in 4 tests" in full
    assert "0.050 (200.0\N{NO-BREAK SPACE}×)" in paper
    assert "- Claimed: PTA is fast.\n- Claimed: access matters." in paper
    assert "1.7 × to 38.45 ×, 8.6 at 1024²" in paper


@pytest.mark.slow  # pictures of a record, which the documentation draws
def test_pictures_are_drawn(record, tmp_path):
    from benchmarks.documents import roofline_picture as roofline

    folder = tmp_path / "images"
    roofline.write_pictures(record, folder)

    paths = sorted(folder.iterdir())
    assert [path.name for path in paths] == ["gpu_crossover.png", "gpu_roofline.png"]
    assert all(path.stat().st_size > 10000 for path in paths)


def test_parts_become_a_record(record, tmp_path):
    import gpu_record

    record["papers"] = dict.fromkeys(gpu_record.PAPERS, record["papers"]["pta2020"])
    sources = record["sources"]
    parts = {
        "tests": {"sources": sources, **record["tests"]},
        "sanitizer-memcheck": {"sources": sources, **record["sanitizers"]["memcheck"]},
        "random-calls": {"sources": sources, **record["random"]["calls"]},
        **{name: {"sources": sources, **found} for name, found in record["papers"].items()},
        "bench": record["bench"],
    }
    for name, part in parts.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(part))
    path = gpu_record.merge(tmp_path, tmp_path / "made" / "h200.json", record["note"])
    made = json.loads(path.read_text())
    files = made.pop("files")

    assert made == record
    assert "cuda/backend.cu" in files
    assert not any(name.startswith("csrc/cpu/") for name in files)
    assert [p.name for p in path.parent.iterdir()] == ["h200.json"]


def test_kept_parts_name_their_sources(record, tmp_path):
    import gpu_record

    from benchmarks.documents import gpu_tables

    former = copy.deepcopy(record)
    former["sources"] = "0123456789abcdef"
    former["papers"] = {"wei2013": {"title": "former"}, "pta2020": {"sources": "fedcba98"}}
    former["sanitizers"] = {"racecheck": {"errors": 0, "passed": 7}}
    former["tests"] = {"passed": 5}
    former["random"] = {"calls": {"failed": 0}}
    path = tmp_path / "h200.json"
    path.write_text(json.dumps(former))
    parts = {
        "bench": record["bench"],
        "sanitizer-memcheck": {"tool": "memcheck", "errors": 0, "passed": 4},
        "lmsor2012": {"sources": record["sources"], "title": "new"},
    }
    (tmp_path / "parts").mkdir()
    for name, part in parts.items():
        (tmp_path / "parts" / f"{name}.json").write_text(json.dumps(part))
    made = json.loads(gpu_record.merge(tmp_path / "parts", path, keep=True).read_text())

    assert made["sources"] == record["sources"]
    assert made["papers"] == {
        "wei2013": {"sources": "0123456789abcdef", "title": "former"},
        "pta2020": {"sources": "fedcba98"},
        "lmsor2012": {"title": "new"},
    }
    assert made["sanitizers"]["racecheck"]["sources"] == "0123456789abcdef"
    assert "sources" not in made["sanitizers"]["memcheck"]
    assert made["tests"] == {"sources": "0123456789abcdef", "passed": 5}
    assert made["random"] == {"calls": {"sources": "0123456789abcdef", "failed": 0}}
    with pytest.raises(SystemExit, match=r"json is missing"):
        gpu_record.merge(tmp_path / "parts", path)

    (tmp_path / "parts" / "bench.json").unlink()
    with pytest.raises(SystemExit, match=r"bench\.json is missing"):
        gpu_record.merge(tmp_path / "parts", None, keep=True)
    former["bench"]["sources"] = "0123456789abcdef"
    path.write_text(json.dumps(former))
    made = json.loads(gpu_record.merge(tmp_path / "parts", path, keep=True).read_text())

    assert made["sources"] == record["sources"]
    assert made["bench"]["sources"] == "0123456789abcdef"
    assert gpu_tables.machine_of(made).endswith("(sources 01234567).")
    assert "sources" not in gpu_tables.machine_of(record)


def test_profile_of_lines_and_of_steps_of_solvers(tools):
    from benchmarks.documents import records_page

    numbers = dict.fromkeys(("bytes", "sectors", "registers", "occupancy", "issue"), 1.0)
    common = {"kernel": "k", "dtype": "float32", "stalls": {"wait": 0.5}, **numbers}
    lines = common | {"part": "steps", "matrix": "product", "axis": "last", "rows": 64}
    solver = common | {"part": "steps", "scheme": "auto", "shape": [8, 9]}
    page = "\n".join(records_page.profile({"profile": {"cases": [lines, solver]}}))

    assert "product last 64 float32" in page
    assert "auto 8 × 9 float32" in page


def test_tables_of_a_paper(tools):
    from benchmarks.documents import gpu_tables

    columns = (Column("grid"), Column("seconds", ".2f"), Column("published", ".1f"))
    table = Table("Speed", columns, [("64", 0.125, None), ("128", 2.0, 7.25)], ["Both in seconds."])
    found = {"gpu": {"name": "H"}, "machine": {"cpu": "C"}, "tables": [asdict(table)]}
    found["verdict"] = "Claimed: fast. Found: 2 times.\nClaimed: exact. Found: 1e-15."
    lines = list(gpu_tables.paper("p")({"papers": {"p": found}}))

    assert lines == [
        "Measured on H and C.",
        "",
        "- Claimed: fast. Found: 2 times.",
        "- Claimed: exact. Found: 1e-15.",
        "",
        "**Speed**",
        "",
        "| grid | seconds | published |",
        "| --- | --: | --: |",
        "| 64 | 0.12 |  |",
        "| 128 | 2.00 | 7.2 |",
        "",
        "Both in seconds.",
    ]
    assert list(table.lines())[1:3] == ["grid  seconds  published", "64       0.12"]


@pytest.mark.parametrize("wrong", ["missing", "other sources", "quick"])
def test_parts_that_do_not_fit_make_no_record(record, tmp_path, wrong):
    import gpu_record

    tests = {"sources": "0" * 64 if wrong == "other sources" else record["sources"]}
    bench = record["bench"] | {"settings": {"quick": wrong == "quick"}}
    papers = {name: {"seconds": {}} for name in gpu_record.PAPERS}
    for name, part in {"tests": tests, "bench": bench, **papers}.items():
        if wrong != "missing" or name != "bench":
            (tmp_path / f"{name}.json").write_text(json.dumps(part))

    with pytest.raises(SystemExit, match=wrong):
        gpu_record.merge(tmp_path, tmp_path / "h200.json")
    assert not (tmp_path / "h200.json").exists()


def test_check_compares_the_record_with_the_sources(record, monkeypatch, tmp_path, capsys):
    import gpu_record

    monkeypatch.setattr(gpu_record, "RESULTS", tmp_path)
    monkeypatch.setattr(gpu_record, "ROOT", tmp_path)
    assert gpu_record.check() == 1
    assert "no record" in capsys.readouterr().err

    path = tmp_path / "h200.json"
    path.write_text(json.dumps(record))
    assert gpu_record.check() == 0

    path.write_text(json.dumps(record | {"tests": record["tests"] | {"sources": "0" * 64}}))
    assert gpu_record.check() == 1
    assert "h200.json has tests of other sources" in capsys.readouterr().err

    path.write_text(json.dumps(record | {"bench": record["bench"] | {"sources": "0" * 64}}))
    assert gpu_record.check() == 1
    assert "h200.json has a benchmark of other sources" in capsys.readouterr().err

    path.write_text(json.dumps(record | {"sources": "0" * 64}))
    assert gpu_record.check() == 1
    assert "h200.json is a record of other sources" in capsys.readouterr().err

    # Another GPU has been measured since.
    (tmp_path / "h100.json").write_text(json.dumps(record))
    assert gpu_record.check() == 0
    out, err = capsys.readouterr()
    assert "h200.json is a record of other sources" in out and not err


def test_committed_record_can_be_checked_from_the_shell():
    run = subprocess.run(
        [sys.executable, ROOT / "tools" / "gpu_record.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode in (0, 1)
    assert (run.returncode == 0) == (run.stderr == "")


def test_archive_has_the_parts_so_far(tools, monkeypatch, tmp_path):
    import gpu_record

    parts, path = tmp_path / "parts", tmp_path / "record.tgz"

    def step(name, folder):
        (folder / f"{name}.json").write_text("{}")

    monkeypatch.setattr(gpu_record, "run_paper", step)
    monkeypatch.setattr(gpu_record, "fault_of_import", lambda folder: "")
    options = ["--parts", str(parts), "--archive", str(path)]
    for number, name in enumerate(gpu_record.PAPERS):
        monkeypatch.setattr(sys, "argv", ["gpu_record.py", "--reproduce", name, *options])
        assert gpu_record.main() == 0
        with tarfile.open(path) as tar:
            assert len(tar.getnames()) == number + 1
    assert sorted(tmp_path.iterdir()) == [parts, path]


def test_two_devices_share_the_steps(tools, monkeypatch, tmp_path):
    import gpu_record

    found = {"0": [], "1": []}

    def run(command, *, env, **_):
        found[env["CUDA_VISIBLE_DEVICES"]].append(command[2:])
        return SimpleNamespace(returncode=int("memcheck" in command))

    monkeypatch.setattr(gpu_record.subprocess, "run", run)
    monkeypatch.setattr(gpu_record, "fault_of_import", lambda folder: "")
    monkeypatch.setattr(gpu_record, "merge", lambda parts, output, note, keep: parts)
    parts = tmp_path / "parts"
    options = ["--devices", "0", "1", "--parts", str(parts), "--workers", "3"]
    monkeypatch.setattr(sys, "argv", ["gpu_record.py", *options])

    assert gpu_record.main() == 1
    steps = [step for row in found.values() for step in row]
    for name in ("--bench", "--tests", *gpu_record.SANITIZERS, *gpu_record.RANDOM):
        assert sum(name in step for step in steps) == 1
    assert [s[1] for s in found["0"] if s[0] == "--reproduce"] == list(gpu_record.PAPERS)
    assert all(step[step.index("--parts") + 1] == str(parts) for step in steps)
    assert all(step[step.index("--workers") + 1] == "3" for step in steps)


def test_counts_of_a_report(tools, tmp_path):
    import gpu_record

    report = tmp_path / "junit.xml"
    report.write_text(
        '<testsuites><testsuite tests="9" failures="1" errors="2" skipped="3"/></testsuites>'
    )

    assert gpu_record.counts(report) == {"passed": 3, "failed": 3, "skipped": 3}
    assert gpu_record.properties(report) == {}
    assert gpu_record.slug("NVIDIA H200") == "h200"
    assert gpu_record.slug("NVIDIA GeForce RTX 4090") == "geforce-rtx-4090"


def test_properties_of_a_report_are_added_up_but_for_the_seed(tools, tmp_path):
    import gpu_record

    case = "<testcase><properties>{}</properties></testcase>"
    numbers = [{"cases": 40, "seed": 7}, {"cases": 2, "seed": 7}]
    cases = [
        case.format("".join(f'<property name="{k}" value="{v}"/>' for k, v in one.items()))
        for one in numbers
    ]
    report = tmp_path / "junit.xml"
    report.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")

    assert gpu_record.properties(report) == {"cases": 42, "seed": 7}


def test_compiler_and_gpu_are_recorded_if_they_are_here(monkeypatch, tmp_path):
    for name, text in (
        ("nvcc", "Cuda compilation tools, release 13.0, V13.0.48"),
        ("nvidia-smi", "NVIDIA H200, 580.159.03, 143771 MiB"),
    ):
        tool = tmp_path / name
        tool.write_text(f"#!/bin/sh\necho '{text}'\n")
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    assert machine.nvcc() == "13.0.48"
    assert machine.gpu() == {
        "name": "NVIDIA H200",
        "driver": "580.159.03",
        "memory": "143771 MiB",
    }

    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert machine.nvcc() is None
    assert machine.gpu() is None


@pytest.mark.gpu
def test_every_part_runs_on_the_device(tmp_path, pytestconfig):
    if "cuda" not in availability.required(pytestconfig) and availability.missing("cuda"):
        pytest.skip(availability.missing("cuda"))
    path = tmp_path / "bench.json"
    command = ["bench", "gpu", "--quick", "--json", str(path)]
    run = subprocess.run(
        [sys.executable, "-m", "pysolvers", *command],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    record = json.loads(path.read_text())
    assert {entry["part"] for entry in record["cases"]} == set(PARTS)
    assert not [entry for entry in record["cases"] if not entry["error"] < 1e4]


def test_capture_ends_where_the_work_fails():
    from benchmarks.timing import CopyClock

    class Stream:
        calls: ClassVar = []

        def begin_capture(self):
            self.calls.append("begin")

        def end_capture(self):
            self.calls.append("end")

    def fail():
        raise ValueError("no")

    clock = object.__new__(CopyClock)
    clock._cupy = SimpleNamespace(cuda=SimpleNamespace(get_current_stream=Stream))
    with pytest.raises(ValueError, match="no"):
        clock.in_cache(fail)
    assert Stream.calls == ["begin", "end"]


def test_a_record_is_made_of_the_installed_package(tools, tmp_path, monkeypatch):
    """A step that starts in a folder with another package, or without its modules, is refused."""
    import gpu_record

    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    package = tmp_path / "pysolvers"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(Path(pysolvers.__file__).parents[1]))
    fault = gpu_record.fault_of_import(tmp_path)
    assert f"import pysolvers takes {package}" in fault
    assert "PYTHONSAFEPATH=1" in fault

    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    assert gpu_record.fault_of_import(tmp_path) == ""
    assert "no compiled _none" in gpu_record.fault_of_import(tmp_path, ["_none"])


@pytest.mark.parametrize("imported", [False, True])
def test_a_package_that_is_missing_is_built_for_this_python(imported, tools, tmp_path, monkeypatch):
    import gpu_record

    python, folder = tmp_path / "of a user" / "python", tmp_path / "the sources"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(gpu_record, "ROOT", folder)
    answer = [str(folder / "pysolvers") if imported else "", [], ""]
    monkeypatch.setattr(gpu_record, "IMPORT", f"print({json.dumps(json.dumps(answer))})")

    fault = gpu_record.fault_of_import(tmp_path)

    assert ("no compiled _core: run" if imported else "not installed: run") in fault
    words = shlex.split(fault[fault.index("PYSOLVERS_CUDA=1") :])
    first = words.index(str(python))
    options = ["-m", "pip", "install", "--no-build-isolation", "--no-deps", "--editable"]
    assert words[:first] == ["PYSOLVERS_CUDA=1", "PYSOLVERS_CUDA_ARCH=native"]
    assert words[first + 1 : first + 7] == options
    assert words[first + 7].rstrip(",") == str(folder)
