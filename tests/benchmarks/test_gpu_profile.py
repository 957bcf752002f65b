"""The tool that asks the profiler why a case misses its bar: reading its table, and its own."""

import csv
import io
import json
from pathlib import Path

import pytest

STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


@pytest.fixture
def tool():
    """The tool as a module."""
    from benchmarks import gpu_profile

    return gpu_profile


def kernel(tool, name, time, *, read=0.0, written=0.0, **stalls):
    """Return what the profiler prints of a kernel, as text."""
    row = {"ID": "7", "Kernel Name": name, tool.TIME: f"{time:,}"}
    row |= dict(zip(tool.BYTES, (f"{read:,}", f"{written:,}"), strict=True))
    row |= dict.fromkeys(tool.SECTORS, "1,000")
    row |= dict.fromkeys(tool.KEPT.values(), "12.5")
    return row | {STALL.format(key): str(value) for key, value in stalls.items()}


def lines(rows):
    """Return the lines of the table of `rows`, the line of the units included."""
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0].keys(), quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerow(dict.fromkeys(rows[0], "") | {"gpu__time_duration.sum": "ns"})
    writer.writerows(rows)
    return text.getvalue().splitlines()


def test_kernels_belong_to_the_case_that_ends_after_them(tool):
    end = kernel(tool, "end_of_case()", 1.0)
    table = [kernel(tool, "a", 1.0), kernel(tool, "b", 2.0), end, kernel(tool, "c", 3.0), end]

    found = list(tool.cases_of(lines(table)))

    assert [[row["Kernel Name"] for row in rows] for rows in found] == [["a", "b"], ["c"]]


@pytest.mark.parametrize("frame", ["threads_kernel", "elements_kernel", "rows_of_elements_kernel"])
@pytest.mark.parametrize("operation", ["ps::<unnamed>::Fill", "ps::Rates<(int)2, float>"])
def test_a_kernel_that_calls_an_operation_has_its_name(tool, frame, operation):
    name = f"void ps::runtime::{frame}<(int)256, {operation}, (int)0>(T2)"

    assert tool.short_name(name) in ("Fill", "Rates")
    assert tool.short_name(name) in operation


def test_bytes_are_of_all_kernels_and_the_rest_of_the_longest(tool):
    name = "void ps::<unnamed>::sweep_kernel<float, (int)4>(ps::Sweep)"
    rows = [
        kernel(tool, "short", 5.0, read=1000.0, barrier=9.0, wait=1.0),
        kernel(tool, name, 1500.0, read=2000.0, written=1000.0, barrier=1.0, wait=3.0),
    ]

    found = tool.summary(rows, 2000.0)

    assert found["kernels"] == 2
    assert found["bytes"] == 2.0
    assert found["sectors"] == 32 * 4 * 1000 / 2000
    assert found["kernel"] == "sweep_kernel"
    assert found["occupancy"] == 12.5
    assert found["stalls"] == {"wait": 0.75, "barrier": 0.25}


def test_without_the_profiler_the_tool_says_so(tool, tmp_path, monkeypatch):
    monkeypatch.setattr(tool.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="ncu"):
        tool.profile(tmp_path / "bench.json", tmp_path / "profile.json")


def test_only_what_misses_its_bar_is_profiled(tool, tmp_path, monkeypatch):
    entry = {"error": 1.0, "bar": 0.9, "time_bar": None, "dtype": "float32"}
    cases = [entry | {"fraction": 0.95}, entry | {"fraction": 0.85}, entry | {"bar": None}]
    cases += [entry | {"fraction": 0.1, "failure": "wrong"}]
    bench = tmp_path / "bench.json"
    bench.write_text(json.dumps({"cases": cases}))
    asked = []

    def run(command, **_):
        asked.append(json.loads(Path(command[-1]).read_text()))
        table = [kernel(tool, "k", 1.0, wait=1.0), kernel(tool, "end_of_case", 1.0, wait=1.0)]
        of_case = 'case {"part": "own", "bytes": 1.0}'
        return tool.subprocess.CompletedProcess(command, 0, "\n".join([of_case, *lines(table)]), "")

    monkeypatch.setattr(tool.shutil, "which", lambda name: name)
    monkeypatch.setattr(tool.subprocess, "run", run)
    tool.profile(bench, tmp_path / "profile.json")

    assert asked == [[entry | {"fraction": 0.85}]]
    assert len(json.loads((tmp_path / "profile.json").read_text())["cases"]) == 1
