"""The benchmark of CubicSpline runs, and its values are those of SciPy."""

import json

import command_line
import pytest


@pytest.mark.slow  # a quick run of a benchmark
def test_small_benchmark_writes_a_record(tmp_path):
    pytest.importorskip("scipy")
    path = tmp_path / "record.json"
    options = ["--splines", "20", "--knots", "30", "--runs", "2"]

    assert command_line.main(["bench", "splines", *options, "--json", str(path)]) == 0
    cases = json.loads(path.read_text())["cases"]
    assert [(case["shape"], case["axis"]) for case in cases] == [
        ([30, 20], 0),
        ([30, 20], 0),
        ([20, 30], 1),
        ([20, 30], 1),
    ]
    for case in cases:
        assert case["error"] < 1e-12
        for part in ("create", "evaluate"):
            assert case["seconds"][part].keys() == {"package", "one thread", "scipy"}
