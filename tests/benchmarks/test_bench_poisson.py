"""The benchmark of FastPoisson runs, and its solvers solve the same equations."""

import json

import command_line
import numpy as np
import pytest

from benchmarks import poisson


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


def test_small_benchmark_of_grids_and_a_batch(tmp_path):
    pytest.importorskip("scipy")
    path = tmp_path / "record.json"
    options = ["--grids", "--quick", "--runs", "2"]

    assert command_line.main(["bench", "poisson", *options, "--json", str(path)]) == 0
    *grids, batch = json.loads(path.read_text())["cases"]
    assert [case["stretched"] for case in grids] == ["y", "xyz"]
    assert grids[0]["seconds"].keys() >= {"package", "uniform", "banded loop", "splu"}
    assert batch["seconds"].keys() == {"package", "loop"}


def test_peers_solve_the_equations_of_a_stretched_grid():
    pytest.importorskip("scipy")
    f = np.random.default_rng(1).uniform(-1, 1, (24, 30))
    for axes in ("x", "y"):
        solver = poisson.stretched((24, 30), axes)
        u = solver.solve(f)
        for peer in (
            poisson.banded_loop(solver, axes, 1),
            poisson.factors_of(poisson.stretched_laplacian(solver)),
        ):
            np.testing.assert_allclose(peer(f), u, rtol=0, atol=1e-12 * np.abs(u).max())
