"""Tables of repeated papers: as a terminal shows them, and as JSON."""

import argparse
import json
import sys
from math import inf, nan

import pytest

from benchmarks.papers import (
    gceidd2022,
    lmsor2012,
    pta2020,
    pta2020_cavity,
    report as papers,
    survey2014,
    wei2013,
)
from benchmarks.papers.pta2020 import Experiment
from benchmarks.papers.report import Verdict
from pysolvers import HeatADI
from pysolvers.cases.tables import Column, Table, add_report_arguments, report

TABLE = Table(
    "Title",
    (Column("run"), Column("seconds", ".2f"), Column("share", ".0%")),
    [("a", 1.0, 0.5), ("long", None, None), ("b", "none", inf)],
    ("A note.",),
)


def arguments(folder, *options):
    parser = argparse.ArgumentParser()
    add_report_arguments(parser)
    return parser.parse_args(["--output", str(folder), *options])


@pytest.mark.parametrize(
    ("cell", "form", "text"),
    [(0.25, ".0%", "25%"), (3, "", "3"), ("x", ".2f", "x"), (None, ".2f", ""), (inf, ".1f", "inf")],
)
def test_column_writes_numbers_by_its_form(cell, form, text):
    assert Column("head", form).text(cell) == text


def test_lines_are_aligned():
    assert list(TABLE.lines()) == [
        "Title",
        "run   seconds  share",
        "a        1.00    50%",
        "long",
        "b        none   inf%",
        "A note.",
    ]


def test_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="zip"):
        list(Table("Title", (Column("one"),), [(1, 2)]).lines())


def test_report_prints_and_writes_everything(tmp_path, capsys):
    table = Table("Second", (Column("x"),), [(nan,), (-inf,), (2,)])

    report(arguments(tmp_path / "a" / "b"), "name", "The paper", [TABLE, table], facts={"n": 3})

    said = capsys.readouterr()
    assert said.out.startswith("The paper\nhere: ")
    assert said.out.endswith("\nSecond\nx\nnan\n-inf\n2\n")
    assert said.err == f"wrote {tmp_path / 'a' / 'b' / 'name.json'}\n"
    saved = json.loads((tmp_path / "a" / "b" / "name.json").read_text(), parse_constant=pytest.fail)
    assert saved["title"] == "The paper"
    assert saved["n"] == 3
    assert {"gpu", "machine"} <= set(saved)
    first, second = saved["tables"]
    assert first["columns"][1] == {"name": "seconds", "form": ".2f", "left": False}
    assert first["rows"] == [["a", 1.0, 0.5], ["long", None, None], ["b", "none", "inf"]]
    assert first["notes"] == ["A note."]
    assert second["rows"] == [["nan"], ["-inf"], [2]]


def test_pictures_are_drawn_unless_they_are_not_wanted(tmp_path, capsys):
    figure = argparse.Namespace(savefig=lambda path, dpi: path.write_bytes(b"picture"))
    pictures = {"part": lambda: figure}

    report(arguments(tmp_path, "--no-plot"), "name", "The paper", [], pictures=pictures)
    assert not list(tmp_path.glob("*.png"))
    report(arguments(tmp_path), "name", "The paper", [], pictures=pictures)
    assert (tmp_path / "name-part.png").read_bytes() == b"picture"


def test_missing_extra_is_told_and_no_error_of_a_case(tmp_path, capsys, monkeypatch):
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    heat = HeatADI((4, 5), 1.0, 0.1, boundary=0.0).result()
    text = (
        "matplotlib is not installed: pip install matplotlib, or install pysolvers with its "
        "extra 'plot'"
    )

    with pytest.raises(ModuleNotFoundError) as caught:
        heat.plot()
    report(arguments(tmp_path), "name", "The paper", [], pictures={"p": heat.plot})

    assert str(caught.value) == text
    assert f"no picture: {text}" in capsys.readouterr().err


def test_first_line_is_what_was_claimed_and_found(tmp_path, capsys):
    verdict = Verdict("a is 2", "a is 3", "not confirmed")

    papers.report(arguments(tmp_path), "name", "The paper", [TABLE], verdict=verdict)

    first = "Claimed: a is 2. Found: a is 3. Verdict: not confirmed."
    assert capsys.readouterr().out.startswith(f"{first}\n\nThe paper\n")
    assert json.loads((tmp_path / "name.json").read_text())["verdict"] == first


def test_each_claim_has_a_line(tmp_path, capsys):
    verdicts = [Verdict("a is 2", "a is 3", "not confirmed"), Verdict("b", "b", "confirmed")]

    papers.report(arguments(tmp_path), "name", "The paper", [TABLE], verdict=verdicts)

    assert capsys.readouterr().out.splitlines()[:3] == [*map(str, verdicts), ""]


COUNT_COLUMNS = (Column("size"), Column("published"), Column("counted"))


@pytest.mark.parametrize(
    ("rows", "outcome"),
    [
        ([(10, 412, 412), (20, 7, 7), (30, None, 5)], "confirmed"),
        ([(10, 412, 412), (20, 7, 8)], "not confirmed"),
        ([(30, None, 5)], "not measured"),
    ],
)
def test_verdict_of_counts(rows, outcome):
    assert lmsor2012.verdict(Table("Counts", COUNT_COLUMNS, rows)).outcome == outcome


def test_verdict_of_errors_takes_the_better_reading_of_a_method_with_two():
    columns = [Column(str(k)) for k in range(7)]
    rows = [
        ("CFD l2", 32, 1.0, 1.1, 0.1, 1.0, 0.0),
        ("MU-L l2", 32, 1.0, 1.1, 0.1, 1.1, 0.1),
        ("MU-P l2", 32, 1.0, 1.1, -0.1, 1.0, -0.01),
    ]

    found = gceidd2022.verdict([Table("Table 1", columns, rows)])

    assert found.claimed.startswith("the 2 errors")
    assert found.found.startswith("0 agree") and " 2 with plain upwind" in found.found
    assert found.outcome.startswith("confirmed")
    rows[0] = (*rows[0][:6], 0.5)
    assert gceidd2022.verdict([Table("Table 1", columns, rows)]).outcome == "not confirmed"


@pytest.mark.parametrize(
    ("fastest", "outcome"),
    [(0.0, "not measured"), (9.0, "not confirmed"), (11.0, "confirmed, with newer hardware")],
)
def test_verdict_of_a_speedup(fastest, outcome):
    assert survey2014.verdict(fastest).outcome == outcome


def test_verdicts_of_the_survey_compare_with_what_it_compares_with():
    verdicts = survey2014.verdicts({"float64": (20.0, 9.0, 5.0), "float32": (1.0, 17.0, 1.0)})

    assert [(v.claimed.split(" up to ")[1], v.outcome.split(",")[0]) for v in verdicts] == [
        ("19 times faster on a GPU than its naive kernel", "confirmed"),
        ("10 times faster on a GPU than on one core, an array a colour", "not confirmed"),
        ("4.6 times faster on a GPU than on all cores (six)", "confirmed"),
        ("16 times faster on a GPU than on one core, an array a colour", "confirmed"),
        ("4.6 times faster on a GPU than on all cores (six)", "not confirmed"),
    ]
    assert {v.outcome for v in survey2014.verdicts({})} == {"not measured"}


@pytest.mark.parametrize(
    ("times", "outcome"),
    [({}, "not measured"), ((3, 2, 4), "confirmed"), ((3, 2, 1), "not confirmed")],
)
def test_verdict_of_the_kernels_of_lmsor(times, outcome):
    seconds = {(kernel, 2002): time for kernel, time in zip((1, 2, 3), times, strict=False)}

    assert lmsor2012.kernel_verdict(seconds).outcome == outcome


@pytest.mark.parametrize(
    ("ratio", "outcome"), [(3.9, "confirmed"), (1.4, "not confirmed"), (None, "not measured")]
)
def test_verdict_of_three_stages(ratio, outcome):
    columns = [Column(str(k)) for k in range(8)]
    rows = [(8, 1.0, 1.0, 1.1, "1", 1.0, ratio, "2"), (16, 1.0, 1.0, 1.2, "3", 1.0, 1.0, "3")]
    table = Table("Stages", columns, rows) if ratio else None

    assert gceidd2022.strategy_verdict(table).outcome == outcome


def test_profiles_stand_beside_those_of_ghia():
    table = pta2020_cavity.profile_table(pta2020_cavity.run_profiles(65, (100, 400)))

    assert [row[0] for row in table.rows] == [100.0, 400.0]
    assert all(0 < row[k] < 0.03 for row in table.rows for k in (2, 3))
    assert pta2020_cavity.profile_verdict(table).outcome == "confirmed"


@pytest.mark.parametrize(("fastest", "speed"), [(0.0, "not measured"), (500.0, "confirmed")])
def test_verdict_of_a_scheme_that_does_not_advance(fastest, speed):
    advance = Table("Time", [Column(str(k)) for k in range(4)], [("100", 0.0099, 0.01, 1.0)])

    found = wei2013.verdict(advance, fastest)

    assert "by 1.0% of the step at r = 100" in found.found
    assert found.outcome == f"speed {speed}; scheme not confirmed as an integrator in time"


@pytest.mark.parametrize(
    ("seconds", "outcome"),
    [
        ({}, "not measured"),
        ({"CR": 1.0, "PCR": 1.0, "PTA coalesced": 0.5}, "confirmed"),
        ({"CR": 0.5, "PCR": 1.0, "PTA coalesced": 1.0}, "speedups confirmed, order not confirmed"),
        ({"CR": 50.0, "PCR": 50.0, "PTA coalesced": 90.0}, "order not confirmed"),
    ],
)
def test_verdict_of_methods_of_lines(seconds, outcome):
    times = {name: {64: time} for name, time in {"one core": 100.0, **seconds}.items()}

    experiment = Experiment(10, (64,), times, {})
    assert pta2020.verdict(experiment).outcome == outcome
    reasons = [note for t in pta2020.tables(experiment) for note in t.notes if "reversed" in note]
    assert len(reasons) == ("order not confirmed" in outcome)


@pytest.mark.parametrize(
    ("uncoalesced", "outcome"), [(1.1, "not confirmed"), (2.2, "confirmed"), (None, "not measured")]
)
def test_verdict_of_coalesced_access(uncoalesced, outcome):
    times = {"one core": {64: 5.0}, "PTA coalesced": {64: 1.0}}
    if uncoalesced:
        times["PTA uncoalesced"] = {64: uncoalesced}

    assert pta2020.coalescing_verdict(Experiment(10, (64,), times, {})).outcome == outcome
