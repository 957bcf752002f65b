"""The benchmark of FastPoisson runs, and its solvers solve the same equations."""

import json

import command_line
import pytest


def test_small_benchmark_writes_a_record(tmp_path):
    pytest.importorskip("scipy")
    path = tmp_path / "record.json"
    options = ["--sizes", "24x30", "6x5x7", "--runs", "2"]

    assert command_line.main(["bench", "poisson", *options, "--json", str(path)]) == 0
    cases = json.loads(path.read_text())["cases"]
    assert [case["shape"] for case in cases] == [[24, 30], [6, 5, 7]]
    for case in cases:
        assert case["seconds"].keys() >= {"package", "one thread", "spectral", "splu"}
        for name, residual in case["residual"].items():
            assert residual < (1e-6 if name == "pyamg" else 1e-14), name
