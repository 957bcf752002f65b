"""The benchmark of CubicSpline runs, and its values are those of SciPy."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_small_benchmark_writes_a_record(tmp_path):
    pytest.importorskip("scipy")
    path = tmp_path / "record.json"
    command = [sys.executable, ROOT / "benchmarks/splines.py", "--splines", "20", "--knots", "30"]

    run = subprocess.run(
        [*command, "--runs", "2", "--json", path], capture_output=True, text=True, timeout=120
    )

    assert run.returncode == 0, run.stderr
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
