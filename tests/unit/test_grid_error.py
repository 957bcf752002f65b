"""Estimates of the error of a grid: against functions of known error, and published flows."""

import re

import command_line
import numpy as np
import pytest

from pysolvers import ConvergenceError
from pysolvers.cases.grid_error import NoEstimate, compute_half, error_of, half_nodes


@pytest.mark.parametrize(("fine", "coarse"), [(8, 4), (7, 4), (9, 5)])
def test_estimate_of_an_error_of_order_two_is_exact(fine, coarse):
    exact, constant = np.array([3.0, -1.0]), np.array([0.5, -2.0])

    found = error_of(exact + constant / fine**2, exact + constant / coarse**2, (fine, coarse))

    assert found == pytest.approx(2.0 / fine**2, rel=1e-12)


@pytest.mark.parametrize(("nodes", "half"), [(129, 65), (9, 5), (8, 5), (100, 51)])
def test_half_grid_has_half_the_intervals(nodes, half):
    assert half_nodes(nodes) == half
    assert half - 1 == -(-(nodes - 1) // 2)


def test_reasons_for_no_estimate():
    def fails(error):
        raise error

    with pytest.raises(NoEstimate, match="half of 7 nodes is too small"):
        half_nodes(7)
    for error in (ConvergenceError("it diverged", None), ValueError("it diverged")):
        with pytest.raises(NoEstimate, match=r"the run on 5 x 5 nodes failed: it diverged"):
            compute_half("5 x 5", lambda error=error: fails(error))


def run(capsys, folder, *options):
    assert command_line.main(["run", *options, "--no-plot", "--output", str(folder)]) == 0
    return capsys.readouterr().out


def test_estimate_for_the_cavity_is_the_difference_from_a_spectral_solution(capsys, tmp_path):
    # Botella and Peyret's table has seven digits; the difference from it is the error of the grid.
    said = run(capsys, tmp_path, "cavity", "--n", "97")

    line = re.search(
        r"error of the grid, .* 49 x 49 nodes: u .* ([\d.]+), v .* ([\d.]+), psi", said
    )
    part = said[said.index("u on x = 1/2, Botella") :]
    largest = [float(text) for text in re.findall(r"largest +([\d.]+)", part)[:2]]
    for k in range(2):
        assert float(line[k + 1]) == pytest.approx(largest[k], rel=0.15)


@pytest.mark.parametrize("shape", [("33", "33"), ("17", "21", "25")])
def test_estimate_for_a_cooling_body_is_the_difference_from_its_series(capsys, tmp_path, shape):
    said = run(capsys, tmp_path, "heat", "--shape", *shape, "--dt", "0.002")

    largest = float(re.search(r"Largest difference at a node: ([\d.e-]+)\.", said)[1])
    estimate = float(re.search(r"Error of grid and step.*: ([\d.e-]+)\.", said)[1])
    assert estimate == pytest.approx(largest, rel=0.3)


@pytest.mark.parametrize(
    "options",
    [
        ("cavity", "--n", "17", "--re", "100"),
        ("cylinder", "--re", "20", "--shape", "33", "201", "--steady", "--tol", "0.1"),
        ("cylinder", "--re", "20", "--shape", "33", "201", "--until", "1"),
        ("heat", "--shape", "9", "9"),
    ],
)
def test_picture_of_a_case_contains_the_estimate(capsys, tmp_path, monkeypatch, options):
    figure = pytest.importorskip("matplotlib.figure").Figure
    notes = []
    monkeypatch.setattr(
        figure, "savefig", lambda self, *_, **__: notes.append(self.get_supxlabel())
    )

    assert command_line.main(["run", *options, "--output", str(tmp_path)]) == 0

    (note,) = notes
    assert "rror of " in note
    assert note.replace("\n", " ") in capsys.readouterr().out


def test_run_without_an_estimate_says_why(capsys, tmp_path):
    said = run(capsys, tmp_path, "cavity", "--re", "100", "--n", "7")
    assert "error of the grid: not estimated, a grid of half of 7 nodes is too small" in said
    said = run(capsys, tmp_path, "cylinder", "--shape", "65", "401", "--until", "1")
    assert re.search(r"error of the grid: not estimated, .*strouhal needs", said)
