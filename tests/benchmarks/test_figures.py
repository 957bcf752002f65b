"""The figures of repeated papers: axes, scales, lines."""

from dataclasses import replace

import numpy as np
import pytest

from pysolvers import SquareCylinder

pytest.importorskip("matplotlib")

from matplotlib.colors import same_color

from benchmarks.papers.figures import Curves, plot_curves, plot_speedups
from benchmarks.papers.pta2020_plots import plot_fields

pytestmark = pytest.mark.filterwarnings("ignore::pysolvers.CoarseGridWarning")


def test_one_place_is_drawn_as_bars():
    curves = Curves("Speed", "cells", "time (s)")
    for name, value in (("one core", 2.0), ("all cores", 1.0)):
        curves.add(name, 128, value)

    (axes,) = plot_curves([curves], log=(True, True)).axes

    assert [bar.get_width() for bar in axes.patches] == [2.0, 1.0]
    assert axes.get_title() == "Speed\ncells 128"


def test_places_of_curves_are_the_ticks():
    curves = Curves("Speed", "cells", "nodes per second")
    for n, value in ((34, 120.0), (66, 190.0), (130, 240.0)):
        curves.add("kernel", n, value)

    figure = plot_curves([curves], log=(True, True))
    figure.draw_without_rendering()
    (axes,) = figure.axes

    assert [text.get_text() for text in axes.get_xticklabels()] == ["34", "66", "130"]
    low, high = axes.get_ylim()
    assert sum(low <= tick <= high for tick in axes.get_yticks()) >= 3


@pytest.fixture(scope="module")
def steady_wake():
    return SquareCylinder(30, (65, 401), steady=True).solve(1e-3)


@pytest.mark.slow  # computes a wake
def test_streamlines_in_the_wake_are_closed_ones_of_the_backflow(steady_wake):
    (axes,) = plot_fields([steady_wake]).axes
    lines = [line.get_xydata() for line in axes.lines]
    orange = [line.get_xydata() for line in axes.lines if same_color(line.get_color(), "C1")]
    small = [line for line in orange if (line[0] == line[-1]).all()]
    inner = [line for line in small if np.abs(line[:, 1]).min() > 1e-6 and line[:, 0].min() > 0.5]
    above, below = ([line for line in inner if s * line[:, 1].mean() > 0] for s in (1, -1))

    assert len(above) == len(below) >= 3
    for line in inner:
        assert line[:, 0].max() <= 0.5 + steady_wake.recirculation_length
    through = [line for line in lines if line[:, 0].min() < -4 and line[:, 0].max() > 20]
    assert len(through) >= 20


@pytest.mark.slow  # computes a wake
def test_vorticity_of_several_flows_has_one_scale_of_colours(steady_wake):
    figure = plot_fields([steady_wake, replace(steady_wake, reynolds=31.0)], vorticity=True)
    figure.draw_without_rendering()

    (bar,) = [axes for axes in figure.axes if axes.get_label() == "<colorbar>"]
    assert "(Umax / D)" in bar.get_ylabel()
    for axes in set(figure.axes) - {bar}:
        assert axes.get_ylabel()
        assert axes.get_tightbbox().x0 >= 0, "the label is not cut"


def test_speedups_have_no_empty_plot():
    seconds = {"one core": {64: 1.0, 128: 4.0}}
    none = {"one core": {64: 1.0, 128: 1.0}}
    published = {"PTA": (1.7, 38.0)}

    assert len(plot_speedups(seconds, none, published, "times").axes) == 1
    seconds["PTA"] = {64: 0.5, 128: 1.0}
    two = plot_speedups(seconds, {**none, "PTA": {64: 2.0, 128: 4.0}}, published, "times")
    assert len(two.axes) == 2
    assert "PTA, published range" in two.axes[1].get_legend_handles_labels()[1]
