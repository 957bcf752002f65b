"""The benchmark of HeatADI(scheme="implicit") at small size, and its record."""

import json

import command_line
import numpy as np
import pytest

from benchmarks import implicit


@pytest.mark.slow  # a quick run of a benchmark
def test_quick_run_counts_iterations_and_writes_the_record(tmp_path, capsys):
    path = tmp_path / "record.json"
    assert command_line.main(["bench", "implicit", "--quick", "--json", str(path)]) == 0

    record = json.loads(path.read_text())
    counts = [case["iterations"] for case in record["cases"] if "iterations" in case]
    assert len(counts) == 8
    assert all(0 < count < 60 for row in counts for count in row)
    assert all(ratio > 0 for case in record["cases"] for ratio in case.get("times", []))
    assert "two values" in capsys.readouterr().out


def test_conductivities_lie_between_one_and_the_ratio():
    for kind in implicit.KINDS:
        k = implicit.conductivity(kind, (9, 8, 10), 100.0)
        assert k.shape == (9, 8, 10)
        assert k.min() >= 1
        assert k.max() <= 100 * (1 + 1e-12)
        assert np.ptp(k) > 0


def test_a_stage_that_is_not_solved_has_no_count(monkeypatch):
    monkeypatch.setattr("pysolvers.heat._unsplit._MOST", 1)
    k = implicit.conductivity("random", (16, 16), 1e6)
    assert implicit.iterations(k, 1.0) is None
    monkeypatch.undo()
    assert implicit.iterations(k, 1.0) == pytest.approx(20, abs=15)
