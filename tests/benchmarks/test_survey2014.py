"""The plate of Niemeyer and Sung 2014, and the command that repeats their experiments."""

import numpy as np
import pytest
from paper_report import check_shapes, look_for_directives, repeat

from benchmarks.papers import survey2014 as case, survey2014_cavity as cavity


def test_exact_temperature_is_that_of_the_series():
    # The sum over odd n of 4/(n pi) sin(n pi x) sinh(n pi y) / sinh(n pi).
    exact = case._exact(np.array([[0.5, 0.25]]), np.array([[0.5], [0.75]]))

    assert exact.shape == (2, 2)
    assert exact.diagonal() == pytest.approx([0.25, 0.4320283319], abs=1e-10)


def test_errors_are_those_of_walls_half_a_cell_away():
    table = case._accuracy_table((16, 32, 64))

    errors = [row[2] for row in table.rows]
    assert errors == pytest.approx([5.4e-4, 1.44e-4, 3.7e-5], rel=0.02)
    assert [row[3] for row in table.rows] == pytest.approx([0.25] * 3, abs=1e-9)


@pytest.mark.slow  # the commands of papers differ in their tables
def test_command_writes_times_of_both_dtypes(tmp_path, capsys):
    tables, pictures = repeat("survey2014", tmp_path)

    assert pictures == ["survey2014-float32", "survey2014-float64"]
    assert "Niemeyer and Sung 2014" in capsys.readouterr().out
    for dtype in ("float64", "float32"):
        (row,) = tables[f"µs an iteration, {dtype}"]
        assert row["cells"] == "128²"
        assert row["one core"] > 0 and row["all cores, auto"] > 0
    (row,) = tables["µs a step of the cavity on a staggered grid, float64"]
    assert row["cells"] == "16²"
    assert row["one core"] > 0 and row["all cores"] > 0
    assert "Steady flow on 16² cells, change at most 0.1" in tables


@pytest.mark.slow
def test_steady_flow_is_that_of_another_program():
    pytest.importorskip("scipy.fft")
    table = cavity.flow_table(48, "cpu", 1e-3)

    (slow, fast, damped) = table.rows
    assert [row[:2] for row in table.rows] == [(100, 0), (1000, 0), (1000, 0.9)]
    assert slow[4] == pytest.approx(slow[5], abs=4e-3)  # the error of the coarser grid
    assert slow[6] < 0.006
    assert fast[4] < damped[4]  # donor-cell differences add viscosity


def test_versions_that_are_missing_are_left_out(monkeypatch, tmp_path):
    look_for_directives(monkeypatch, tmp_path)

    kernels = [version.kernels for version in cavity.available(cavity.VERSIONS[:5])]

    assert kernels == ["serial", "openmp", "auto"]
    assert not list(case._directives())


def test_one_core_has_the_layout_of_the_survey():
    (core,) = (v for v in case.VARIANTS if v.name == "one core")

    assert (core.device, core.variant, core.threads) == ("cpu", "split", 1)


def test_memories_of_the_coefficients_are_compared(monkeypatch):
    class Plate(case.RedBlackSOR):
        """On the host, where all coefficients are tables."""

        def __init__(self, shape, *, coefficients, device, variant, **options):
            made.append((variant, coefficients, device))
            super().__init__((8, 8), **options)

    made = []
    monkeypatch.setattr(case, "RedBlackSOR", Plate)

    (table,) = check_shapes([case._coefficient_table(128, "float32")])

    assert [row[0] for row in table.rows] == ["naive", "coalesced", "split"]
    assert made[:3] == [("naive", name, "cuda") for name in ("tables", "arrays", "texture")]
    assert all(time >= 0 for row in table.rows for time in row[1:])


def test_ratios_stand_beside_the_published_ones():
    # Seconds of the variants on one grid: the best of the survey's is "shared".
    seconds = {"one core": 40.0, "all cores": 8.0, "naive": 20.0, "coalesced": 8.0}
    seconds |= {"one core, interleaved": 200.0}
    seconds |= {"split": 5.0, "shared": 4.0, "atomic": 6.0, "auto": 2.0, "all cores, auto": 3.0}
    times = {(name, 128): value for name, value in seconds.items()}

    (double, single, micro) = check_shapes(
        [
            *(case._ratio_table(times, (128,), dtype) for dtype in case.DTYPES),
            case._time_table(times, case.VARIANTS, (128,), "float64", 1e6),
        ]
    )
    assert double.rows[0] == ("128²", 5.0, 10.0, 50.0, 2.0, 2.0)
    # Over the naive kernel, one core with an array a colour, one core with both in one, all cores.
    assert double.rows[-1][1:5] == (19.0, 10.0, None, 4.6)
    assert single.rows[-1][1:5] == (None, 16.0, None, 4.6)
    # The floor: two words of 8 bytes a cell, 0.262 s at 1e6 bytes a second, of the 2 s of auto.
    assert micro.rows[0][-1] == pytest.approx(0.131072)
    assert set(seconds) == {variant.name for variant in case.VARIANTS}
