"""`bench recurrences`: a quick run, its table and its targets."""

import json

import command_line
import pytest

from benchmarks import recurrences


@pytest.mark.slow  # a quick run of a benchmark
def test_a_quick_run_without_optional_packages(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(recurrences, "installed", lambda name: None)
    path = tmp_path / "record.json"
    words = ["bench", "recurrences", "--quick", "--runs", "1", "--budget", "0.1"]
    assert command_line.main([*words, "--json", str(path)]) == 0
    record = json.loads(path.read_text())

    assert record["benchmark"] == "recurrences"
    assert {"recurrence", "pentadiagonal", "blocks of 4", "whittaker", "arpls"} <= {
        entry["operation"] for entry in record["cases"]
    }
    assert all(entry["seconds"]["package"] > 0 for entry in record["cases"])
    assert "SciPy lfilter" in capsys.readouterr().out


def test_targets_of_a_cpu_and_of_a_gpu():
    case = {"operation": "pentadiagonal", "shape": [10, 1000], "axis": 0}
    seconds = {"package": 2.0, "copy": 1.5, "SciPy solveh_banded": 10.0}
    of_cpu = {"gpu": None, "cases": [{**case, "seconds": seconds}]}
    assert recurrences.missed(of_cpu) == [
        "pentadiagonal 10 × 1000: less than 8 times faster than SciPy solveh_banded"
    ]
    of_gpu = {**of_cpu, "gpu": {"name": "a GPU"}, "load": None}
    assert recurrences.missed(of_gpu) == [
        "pentadiagonal 10 × 1000, axis 0: less than 0.85 of a copy"
    ]
    (table,) = recurrences.tables(of_gpu)
    assert "0.75" in "".join(table.lines())
    assert "5.0" in "".join(table.lines())
