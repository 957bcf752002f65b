"""The counts of Cotronis et al. 2012, and the command that repeats their experiments."""

import pytest
from paper_report import check_shapes, repeat

from benchmarks.papers import lmsor2012 as case
from benchmarks.papers.lmsor2012 import PUBLISHED_MILLISECONDS, iteration_seconds
from pysolvers.papers.lmsor2012 import COUNTS, Count, count_iterations, solver_of


# Printed in the paper; its counts of problem 2 at Re = 10 need the slip.
@pytest.mark.parametrize(
    ("problem", "relaxation", "printed"),
    [(1, "lmsor", 412), (3, "lmsor", 1015), (2, "lmsor-2012", 554)],
)
def test_published_counts_are_met_at_402(problem, relaxation, printed):
    count = Count(problem, 10.0, 402, printed, relaxation)

    assert count in COUNTS
    assert count_iterations(count) == printed


def test_right_formula_takes_fewer_iterations_than_the_slip():
    assert count_iterations(Count(2, 10.0, 402, None)) == 398


def test_published_counts_of_larger_grids_are_told():
    printed = {(c.problem, c.reynolds, c.size): c.published for c in COUNTS if c.published}

    # Tables 1, 3 and 4, three problems, three Reynolds numbers, five sizes.
    assert [printed[k, 10.0, 402] for k in (1, 2, 3)] == [412, 554, 1015]
    assert [printed[k, 10.0, 2002] for k in (1, 2, 3)] == [1998, 2704, 2018]
    assert [printed[k, 1e3, 1002] for k in (1, 2, 3)] == [2620, 1003, 5514]
    assert [printed[k, 1e4, 1002] for k in (1, 2, 3)] == [5394, 1112, 6271]
    assert [printed[k, 1e5, 1002] for k in (1, 2, 3)] == [6243, 3170, 7034]
    assert [printed[2, 10.0, n] for n in (1002, 3002, 4002)] == [1384, 4055, 5406]
    assert len(printed) == 18


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "reynolds", "printed"), [(1, 1e4, 5394), (2, 1e5, 3170), (3, 1e5, 7034)]
)
def test_published_counts_over_the_reynolds_number_are_met(problem, reynolds, printed):
    assert count_iterations(Count(problem, reynolds, 1002, None)) == printed


def test_counts_that_a_cpu_leaves_out_are_named(monkeypatch):
    monkeypatch.setattr(case, "count_iterations", lambda *_, **__: 1)
    counts = case._counts_of_a_cpu()

    table = case._count_table(counts, "cpu")

    assert {c.size for c in counts} == {402, 1002, 2002}
    assert table.notes[-1].startswith("Left out: 4055 at 3002, 5406 at 4002: more than ")
    quick = case._count_table((), "cpu", quick=True)
    assert quick.notes[-1].endswith(": a quick run.")
    assert len(case._count_table(case.COUNTS, "cuda").notes) == 1


def test_problem_without_a_number_of_the_paper_is_refused():
    with pytest.raises(ValueError, match=r"problem must be 1, 2 or 3, got 4"):
        solver_of(4, 10.0, 34)


def test_time_is_that_of_the_iterations_measured():
    solver = solver_of(1, 10.0, 34)

    assert iteration_seconds(solver, 5, 3) > 0
    assert solver.iterations == 8


@pytest.mark.slow  # the commands of papers differ in their tables
def test_command_sets_measured_beside_published(tmp_path, capsys):
    tables, pictures = repeat("lmsor2012", tmp_path)

    assert pictures == ["lmsor2012-kernels"]
    assert "Opteron 6180, one core 25 to 58" in capsys.readouterr().out
    assert [row["counted"] > 0 for row in tables["Iterations"]] == [True]
    assert {row["kernel"] for row in tables["Kernels"]} == {"1", "2", "3", "auto"}
    words = {row["kernel"]: row["words"] for row in tables["Kernels"]}
    assert words == {"1": 8, "2": 6, "3": 3, "auto": None}


def test_kernels_stand_beside_the_published_times_at_2002(monkeypatch):
    sizes = case._SIZES
    times = {(kernel, n): 1e-3 for kernel in case._KERNELS for n in sizes}
    monkeypatch.setattr(case, "iteration_seconds", lambda *_: 1e-2)
    monkeypatch.setattr(case, "solver_of", lambda *_, **__: None)

    kernels, _ = check_shapes(
        [
            case._kernel_table(times, sizes, 1e12, "cuda"),
            case._scaling_table(times, sizes, "cuda"),
        ]
    )
    shown = {row[0]: row[-1] for row in kernels.rows if row[1] == 2002}
    assert shown == {"1": 1807.0, "2": 1466.0, "3": 6897.0, "auto": None}
    assert PUBLISHED_MILLISECONDS == {1: 1.807, 2: 1.466, 3: 6.897}
    # 2000^2 nodes of 6 words of 8 bytes at 1e12 bytes a second are 192 microseconds.
    second = next(row for row in kernels.rows if row[:2] == ("2", 2002))
    assert second[4] == pytest.approx(0.192)
