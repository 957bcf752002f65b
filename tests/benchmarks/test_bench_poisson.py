"""The benchmark of FastPoisson runs, and its solvers solve the same equations."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_small_benchmark_writes_a_record(tmp_path):
    pytest.importorskip("scipy")
    path = tmp_path / "record.json"
    command = [sys.executable, ROOT / "benchmarks/poisson.py", "--sizes", "24x30", "6x5x7"]

    run = subprocess.run(
        [*command, "--runs", "2", "--json", path], capture_output=True, text=True, timeout=120
    )

    assert run.returncode == 0, run.stderr
    cases = json.loads(path.read_text())["cases"]
    assert [case["shape"] for case in cases] == [[24, 30], [6, 5, 7]]
    for case in cases:
        assert case["seconds"].keys() >= {"package", "one thread", "spectral", "splu"}
        for name, residual in case["residual"].items():
            assert residual < (1e-6 if name == "pyamg" else 1e-14), name
