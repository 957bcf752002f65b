"""The experiments of Foadaddini et al. 2022, and the command that repeats them."""

from typing import ClassVar

import numpy as np
import pytest
from paper_report import check_shapes, repeat

from benchmarks.papers import gceidd2022 as case, gceidd2022_runs
from benchmarks.papers.figures import Curves
from benchmarks.papers.gceidd2022_runs import (
    METHODS,
    channel_curves,
    courant_curves,
    front_curves,
    strip_curves,
    table_entries,
)
from benchmarks.papers.gceidd2022_speed import StepTime, step_time, strip_counts
from pysolvers import BackendError
from pysolvers.papers import gceidd2022
from pysolvers.papers.gceidd2022 import published_errors

# How far what we find may be from the paper, as a reference program is on 32 and 64 nodes.
BOUNDS = {
    1: {"CFD": 0.008, "CP": 0.006, "MU-L": 0.012, "MU-P": 0.032},
    2: {"CFD": 0.013, "CP": 0.014, "MU-L": 0.085, "MU-P": 0.182},
    3: {"CFD": 0.004, "CP": 0.014, "MU-L": 0.036, "MU-P": 0.013},
}


@pytest.mark.parametrize("table", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_errors_are_those_of_the_paper(table):
    entries = table_entries(table, (32, 64))

    assert {(e.method, e.norm, e.nodes) for e in entries} == {
        (method, norm, n) for method in METHODS for norm in ("linf", "l2") for n in (32, 64)
    }
    for e in entries:
        assert e.found == pytest.approx(e.published, rel=BOUNDS[table][e.method]), e


def test_published_errors_stand_beside_ours(monkeypatch):
    monkeypatch.setattr(gceidd2022_runs, "table_errors", lambda *_, **__: (0.5, 0.25))
    entries = {(e.method, e.norm): e.published for e in table_entries(4, (32,))}

    assert entries["MU-L", "linf"] == entries["MU-P", "linf"] == 1.08e-2
    assert {key: published_errors(4)[key][1] for key in (("cfd", "l2"), ("cp", "linf"))} == {
        ("cfd", "l2"): 1.24e-3,
        ("cp", "linf"): 6.87e-3,
    }


def test_modified_upwind_differences_are_not_those_of_table_2():
    entries = table_entries(2, (32,))

    (printed,) = (e.printed for e in entries if (e.method, e.norm) == ("CP", "l2"))
    assert printed == pytest.approx(1.94e-4, rel=0.01)


@pytest.mark.slow  # a figure of the paper
def test_curves_have_a_point_for_each_run():
    curves = [
        strip_curves(2, (1, 4), cells=32),
        courant_curves(1, (1, 2), cells=32, strips=4),
    ]
    for curve in curves:
        assert list(curve.lines) == list(METHODS)
        assert all(len(x) == len(y) == 2 for x, y in curve.lines.values())
    # Without strips what predicts the interfaces does not matter.
    assert len({curves[0].lines[name][1][0] for name in ("CP", "MU-L", "MU-P")}) == 1


def test_fronts_have_the_reference_at_the_section_of_the_paper():
    first = front_curves(1, cells=32, strips=4)
    second = front_curves(2, cells=32, strips=4, reference=first)

    assert list(first.lines) == ["reference", *METHODS]
    assert "x = 0.5, t = 0.2" in first.title
    assert len(first.lines["CP"][0]) == 33
    assert second.lines["reference"] is first.lines["reference"]
    # The fronts start at 0 and move with velocity 1: u(0.5, y) is 1 below y = 0.2 and 0 above.
    y, u = map(np.array, first.lines["reference"])
    assert np.interp([0.1, 0.2, 0.3], y, u) == pytest.approx([1, 0.5, 0], abs=0.06)


@pytest.mark.slow  # a figure of the paper
def test_temperature_at_a_rises_and_is_that_of_the_reference_with_cfd_and_cp():
    curves = channel_curves(1, cells=(128, 32), strips=(16, 4))

    t, reference = map(np.array, curves.lines["reference"])
    assert t[0] == 0 and t[-1] == 3
    assert reference[0] == 25 and (np.diff(reference) > 0).all()
    assert curves.lines["CFD"][1][-1] == pytest.approx(reference[-1], rel=0.02)
    verdict = case.channel_verdict(curves)
    assert verdict.outcome in ("confirmed", "not confirmed")
    curves.lines["MU-L"][1][-1] = 1.2 * reference[-1]
    curves.lines["CP"][1][-1] = curves.lines["CFD"][1][-1] = reference[-1]
    assert case.channel_verdict(curves).outcome == "confirmed"
    curves.lines["CP"][1][-1] = 1.2 * reference[-1]
    assert case.channel_verdict(curves).outcome == "not confirmed"


@pytest.mark.slow  # a figure of the paper
def test_growth_of_the_error_of_mu_is_the_published_one():
    curves = [strip_curves(k, (1, 4), cells=16, courant=c) for k in (1, 2) for c in (0.5, 1, 2)]
    for curve, growth in zip(curves[3:], (2.25, 2.68, 2.77), strict=True):
        curve.lines["MU-L"] = ([1.0, 64.0], [1.0, growth])

    table = case._growth_table(curves)

    assert [row[4] for row in table.rows] == [2.2, 2.7, 2.9]
    assert case.growth_verdict(table).outcome == "confirmed"
    curves[3].lines["MU-L"] = ([1.0, 64.0], [1.0, 1.0])
    assert case.growth_verdict(case._growth_table(curves)).outcome == "not confirmed"


@pytest.mark.slow
def test_growth_of_the_error_over_64_strips():
    curves = [
        strip_curves(k, (1, 64), courant=c) if k == 2 else Curves("", "", "")
        for k in (1, 2)
        for c in (0.5, 1, 2)
    ]

    found = [row[2] for row in case._growth_table(curves).rows]

    assert found == pytest.approx([2.2, 2.7, 2.9], rel=0.1)


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [(2.0, 4.0, "confirmed"), (3.0, 4.0, "not confirmed")],
)
def test_verdict_of_the_limits_of_cfd(first, second, outcome):
    places = [1.0, 2.0, 3.0, 4.0, 6.0]
    curves = []
    for limit in (first, second):
        errors = [1e-3 if at <= limit else 0.5 for at in places]
        curves.append(Curves("", "CFL", "", {"CFD": (places, errors), "CP": (places, places)}))

    assert case.courant_verdict(curves).outcome == outcome


@pytest.mark.slow
def test_figures_8_and_10_are_those_of_a_reference_program():
    # Feet beyond the sides are extrapolated: CFD diverges at Courant numbers of 4 and 8.
    first = courant_curves(1, (4, 8), cells=256, strips=32).lines
    second = courant_curves(2, (4, 8), cells=256, strips=32).lines

    assert first["CP"][1] == pytest.approx([4.54e-4, 7.43e-4], rel=2e-3)
    assert first["MU-P"][1] == pytest.approx([6.77e-4, 18.8e-4], rel=2e-3)
    assert "CFD" not in first
    assert second["CFD"] == ([4.0], [pytest.approx(3.4e-4, rel=0.01)])
    assert second["MU-L"][1][0] == pytest.approx(6.6e-3, rel=0.01)


def test_what_diverges_is_left_out():
    curves = Curves("title", "x", "y")
    curves.add("CP", 1, 2.0)
    curves.add("CP", 2, float("inf"))

    assert curves.lines == {"CP": ([1.0], [2.0])}


@pytest.mark.slow  # seven pictures in 14 s; the commands of the other papers run in each run
def test_command_writes_tables_and_figures(tmp_path, capsys):
    tables, pictures = repeat("gceidd2022", tmp_path)

    names = ("channel", "courant", "fig11", "fig13", "fig15", "fronts", "strips")
    assert pictures == [f"gceidd2022-{name}" for name in names]
    courant = {
        float(k.split("CFL ")[1].split(",")[0]) for k in tables if k.startswith("Figure 9: ex")
    }
    assert courant == {0.5, 1.0, 2.0}
    assert "Foadaddini et al. 2022" in capsys.readouterr().out
    rows = {row["method, norm"]: row for row in tables["Table 1: example 1, D 0.005"]}
    published = published_errors(1)["cfd", "linf"][0]
    assert rows["CFD linf"]["published"] == published
    assert rows["CFD linf"]["as found"] == pytest.approx(published, rel=BOUNDS[1]["CFD"])


def test_step_time_tells_the_parts():
    time = step_time(32, 2, device="cpu", steps=4)

    assert time.step > 0
    assert {"x solve", "y solve", "x rows", "y rows", "x predict"} <= set(time.parts)
    assert 0 <= time.share("predict", "correct") <= 1
    assert strip_counts(32) == [1, 2, 4, 8]


class FakeCupy:
    """A library of arrays that has streams only."""

    class cuda:
        streams: ClassVar = []

        class Stream:
            def __init__(self, *, non_blocking):
                assert non_blocking

            def __enter__(self):
                FakeCupy.cuda.streams.append("not blocking")

            def __exit__(self, *_):
                FakeCupy.cuda.streams.pop()


def test_tables_of_speed_have_the_published_numbers(monkeypatch):
    names = [f"{axis} {part}" for axis in "xy" for part in ("predict", "rows", "solve", "correct")]

    def fake(cells, strips, kernels="fused", strategy="3s", scheme="cp", few_strips=512):
        slow = 1 if kernels == "fused" else 4 if strategy == "3s" else 8
        time = slow * cells**2 / strips * 1e-9 / (2 if few_strips == 0 else 1)
        times, shares = dict.fromkeys(names, time / 8), dict.fromkeys(names, 0.5)
        kernel = f"paper, 3S stage {1 if few_strips else 2}"
        return StepTime(cells, strips, kernels, strategy, time, times, kernel, shares)

    def solves(cells, clock):
        assert clock == ["not blocking"]  # graphs cannot be captured on the default stream
        return {"cr-pcr": (1e-3, 2e-3)}

    monkeypatch.setattr(case, "step_time", fake)
    monkeypatch.setattr(case, "require_cupy", lambda: FakeCupy)
    monkeypatch.setattr(case, "make_clock", lambda: FakeCupy.cuda.streams)
    monkeypatch.setattr(case, "solve_seconds", solves)
    monkeypatch.setattr(case, "device_bandwidth", lambda: 4e12)

    found = check_shapes(case._speed_tables(False))
    gains, parts, schemes, strategies, occupancy, against, fused = found
    assert {row[0] for row in schemes.rows} == {"MU", "CFD", "CP"}
    assert "3.7 times" in case.strategy_verdict(strategies).claimed
    assert [row[-1] for row in schemes.rows] == ["2-3 %", "15-20 %"] * 3
    assert [row[3::3] for row in gains.rows] == [
        (16.4, 10.9, 3.0),
        (10.6, 6.7, 2.5),
        (5.8, 4.9, 1.8),
        (3.5, 4.7, 1.5),
    ]
    assert gains.rows[0][1:3] == (pytest.approx(32.0), 32)
    assert {row[-1] for row in parts.rows} == {None, "2-3 %", "15-20 %"}
    assert [(row[3], row[4], *row[6:]) for row in strategies.rows] == [(2.0, "1", 4.0, "2")] * 9
    assert [row[1:] for row in occupancy.rows] == [(*(0.5,) * 5, "2")] * 9
    assert list(case._speed_tables(False))[case._STRATEGY_TABLE].title == strategies.title
    assert [row[1] for row in against.rows] == [32, 64, 128, 256]
    # Rows without strips take 6 of 8 parts of the step, and the lines 3 ms.
    whole = 4 * 128**2 * 1e-9
    assert against.rows[0][5] == pytest.approx(1e6 * (0.75 * whole + 3e-3))
    assert [row[4] for row in fused.rows] == [None, None, "15 µs", "4 ×", "75%"]


def test_a_failure_of_3s_names_the_options_that_decide_on_shared_memory(monkeypatch):
    options = {"shape": (17, 17), "dt": 0.01, "kernels": "paper"}
    solver = gceidd2022.GCEIDD(gceidd2022.rotating_pulse(), throttle=10**6, **options)
    naive = gceidd2022.GCEIDD(gceidd2022.rotating_pulse(), strategy="naive", **options)

    def fail(*args):
        raise BackendError("GCEIDD: the device runtime reported an error")

    for one in (solver, naive):
        monkeypatch.setattr(one._state, "advance", fail)
    with pytest.raises(BackendError, match="throttle than 1000000 bytes, or a smaller short_strip"):
        solver.step()
    with pytest.raises(BackendError, match=r"an error$"):
        naive.step()
    for name in ("few_strips", "short_strip", "throttle"):
        with pytest.raises(ValueError, match=f"{name} must be at least 0, got -1"):
            gceidd2022.GCEIDD(gceidd2022.rotating_pulse(), **options, **{name: -1})
