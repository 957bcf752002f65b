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


@pytest.mark.slow  # a quick run of a benchmark
def test_small_benchmark_of_grids_and_a_batch(tmp_path):
    pytest.importorskip("scipy")
    path = tmp_path / "record.json"
    options = ["--grids", "--quick", "--runs", "2"]

    assert command_line.main(["bench", "poisson", *options, "--json", str(path)]) == 0
    *grids, batch = json.loads(path.read_text())["cases"]
    assert [case["stretched"] for case in grids] == ["y", "xyz", "xy", ""]
    assert grids[0]["seconds"].keys() >= {"package", "uniform", "banded loop", "splu"}
    assert grids[1]["seconds"].keys() >= {"products"}
    assert grids[3]["seconds"].keys() == {"package", "uniform", "spectral"}
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
    solver = poisson.stretched((24, 30), "", kind="periodic")
    u = solver.solve(f)
    found = poisson.periodic_waves((24, 30), 1)(f)
    np.testing.assert_allclose(found, u, rtol=0, atol=1e-12 * np.abs(u).max())


def test_table_and_bars_of_grids_on_a_gpu():
    """Ratios to the case of the bar, copies of the field, and the share of the counted words."""
    cells = poisson.GpuGrid((64, 64), "cells")
    nodes = poisson.GpuGrid((65, 65), "nodes", most=1.3, reference=0)
    batch = poisson.GpuGrid((9, 9), "nodes", "x", most=1e-3, batch=3, kind="pipe")
    seconds = [{"package": 1e-4, "copy": 2e-5, "CuPy": 3e-4}, {"package": 1.4e-4, "copy": 2e-5}]
    cases = [
        case._asdict() | {"methods": {"x": "lines"}, "words": 10.0, "seconds": times}
        for case, times in zip((cells, nodes, batch), (*seconds, seconds[0]), strict=True)
    ]
    record = {"cases": cases, "gpu": {"name": "a GPU"}}

    (table,) = poisson.tables(record)
    lines = list(table.lines())
    assert [line.split("  ")[0] for line in lines[1:4]] == [
        "64 × 64 cells",
        "65 × 65 nodes",
        "3 fields of 9 × 9 nodes pipe stretched along x",
    ]
    assert lines[1].split()[-5:] == ["100", "5.0", "10.0", "100", "3.0"]
    assert lines[2].split()[-7:] == ["140", "7.0", "10.0", "71", "1.40", "1.3", "×"]
    assert poisson.missed(record) == ["65 × 65 nodes: 140 of 130 us"]


def test_grids_on_a_gpu_refer_to_grids_before_them():
    for kinds in (poisson.GPU_GRIDS, poisson.QUICK_GPU_GRIDS):
        for place, case in enumerate(kinds):
            if case.reference is None:
                continue
            other = kinds[case.reference]
            assert case.reference < place
            if case.most == 1.3:
                assert (case.grid, other.grid) == ("nodes", "cells")
                assert case.shape == tuple(n + 1 for n in other.shape)
