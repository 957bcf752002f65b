"""The scheme of Wei et al. 2013, and the command that repeats their experiments."""

from types import SimpleNamespace

import pytest
from paper_report import check_shapes, repeat

from benchmarks.papers import wei2013 as case
from benchmarks.papers.wei2013 import (
    MAPPINGS,
    MEMORIES,
    PUBLISHED_DIFFERENCES,
    PUBLISHED_SPEEDUPS,
    StepTime,
    step_seconds,
)
from pysolvers.papers.wei2013 import advance_of_a_mode, heated_plate

# Grid, then the speedups of C1 to C4: baseline, texture, transpose.
PRINTED = """\
1024 33.3 77.2 33.4 78.8 45.0 103.1 45.8 103.0 112.3 118.0 109.6 119.6
2048 21.3 59.4 21.4 60.4 24.9 58.9 25.8 58.4 97.1 100.1 96.1 102.2
4096 15.7 51.0 15.7 51.9 18.0 63.4 18.3 63.2 78.9 80.1 77.8 82.8
8192 12.2 43.8 12.1 44.3 13.8 52.2 14.1 51.4 68.7 69.4 67.4 71.5"""


@pytest.mark.parametrize(
    ("r", "measured"), [(0.1, 1.666), (1.0, 0.667), (10.0, 0.095), (100.0, 0.0099)]
)
def test_published_scheme_advances_by_two_over_one_plus_two_r(r, measured):
    found = advance_of_a_mode("wei2013", r)

    assert found == pytest.approx(2 / (1 + 2 * r), rel=1e-3)
    assert found == pytest.approx(measured, rel=6e-3)


@pytest.mark.parametrize(("r", "measured"), [(0.1, 0.9998), (10.0, 0.9998), (100.0, 1.0047)])
def test_peaceman_and_rachford_advance_in_time(r, measured):
    assert advance_of_a_mode("peaceman-rachford", r) == pytest.approx(measured, abs=1e-4)


def test_published_numbers_are_those_of_the_paper():
    for line in PRINTED.splitlines():
        grid, *values = map(float, line.split())
        shown = [v for memory in MEMORIES for v in PUBLISHED_SPEEDUPS[memory][int(grid)]]
        assert shown == values
    assert list(PUBLISHED_DIFFERENCES.values()) == [2.87e-6, 2.90e-6, 2.92e-6, 2.93e-6]


def test_plate_is_hot_on_one_side():
    solver = heated_plate(16)

    u = solver.step(1).u
    assert (u[-1, 1:-1] == 1).all()
    assert not u[0].any() and not u[1:-1, 0].any() and not u[1:-1, -1].any()
    assert heated_plate((4, 5, 6), scheme="douglas-gunn").u.shape == (4, 5, 6)


def test_step_time_tells_the_stages():
    time = step_seconds(heated_plate(32), 3)

    assert time.step > 0
    assert {"rhs", "x", "y", "transpose"} <= set(time.parts)


def test_difference_is_that_of_two_fields(monkeypatch):
    def fake(nodes, device="cpu", **options):
        return heated_plate(nodes, **options) if device == "cpu" else Shifted(nodes)

    class Shifted:
        """A device whose field is larger by one part in a thousand."""

        def __init__(self, nodes):
            self._plate = heated_plate(nodes)

        def step(self, steps):
            return SimpleNamespace(u=1.001 * self._plate.step(steps).u.astype(float))

    monkeypatch.setattr(case, "heated_plate", fake)
    assert case.relative_difference(16, 5) == pytest.approx(1e-3, rel=1e-4)


@pytest.mark.slow  # the commands of papers differ in their tables
def test_command_writes_what_schemes_advance(tmp_path, capsys):
    tables, pictures = repeat("wei2013", tmp_path)

    assert pictures in ([], ["wei2013-speedups"])
    assert "Wei et al. 2013" in capsys.readouterr().out
    rows = tables["Time that a scheme advances, over the time it should"]
    for row in rows:
        assert row["wei2013"] == pytest.approx(row["2/(1 + 2r)"], rel=1e-3)
    assert rows[-1]["wei2013"] == pytest.approx(0.0099, rel=6e-3)


def test_tables_of_the_device_have_the_published_numbers(monkeypatch):
    made = []

    def plate(nodes, **options):
        made.append(options)
        # What the solver of the host checks is what that of the device checks.
        shape = 8 if isinstance(nodes, int) else (8,) * len(nodes)
        return heated_plate(shape, **{**options, "device": "cpu"})

    parts = dict.fromkeys(("rhs", "x", "y", "transpose", "end"), 1e-4)
    monkeypatch.setattr(case, "heated_plate", plate)
    monkeypatch.setattr(case, "step_seconds", lambda *_: StepTime(1e-3, parts))
    monkeypatch.setattr(case, "relative_difference", lambda *_, **__: 1e-6)
    monkeypatch.setattr(case, "device_bandwidth", lambda: 4e12)
    monkeypatch.setattr(case, "_jax_seconds", _no_peer)
    grids = (1024, 4096)
    paper = case._paper_seconds(grids)
    serial = dict.fromkeys(grids, 0.1)

    tables = check_shapes(
        [
            *(case._speedup_table(paper, serial, memory, grids) for memory in MEMORIES),
            *case._device_tables(paper, grids, quick=False),
        ]
    )
    measured, published = tables[0].rows[0][1::2], tables[0].rows[0][2::2]
    assert measured == pytest.approx((100.0,) * 4)
    assert published == (33.3, 77.2, 33.4, 78.8)
    assert {len(t.notes) for t in tables[: len(MEMORIES)]} == {1}
    assert len(paper) == len(MEMORIES) * len(MAPPINGS) * len(grids)
    assert {options["device"] for options in made} == {"cuda"}
    assert {options["block"] for options in made if "block" in options} == {32, 64, 128, 256, 512}
    assert "no peer" in tables[-1].rows[-1][0]


def test_methods_of_a_cpu_are_compared_where_there_is_no_gpu():
    table = case._cpu_table((32, 64), quick=True)

    assert [row[1] for row in table.rows] == ["thomas", "cr", "pcr", "cr-pcr", "auto"] * 2
    assert [row[-1] for row in table.rows if row[1] == "thomas"] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("one_block", "texture", "transpose", "outcomes"),
    [
        (2.6, 0.9, 0.8, ["confirmed", "confirmed"]),
        (0.9, 1.1, 0.8, ["not confirmed", "not confirmed"]),
        (1.1, 0.9, 0.95, ["not confirmed", "not confirmed"]),
    ],
)
def test_conclusions_are_those_of_the_times(one_block, texture, transpose, outcomes):
    memories = {"baseline": 1.0, "texture": texture, "transpose": transpose}
    mappings = {"C1": one_block, "C2": 1.0, "C3": 1.0, "C4": 1.0}
    paper = {
        (memory, mapping, n): time * factor
        for memory, time in memories.items()
        for mapping, factor in mappings.items()
        for n in (1024, 2048)
    }

    found = case.device_verdicts(paper)

    assert [v.outcome for v in found] == outcomes
    assert found[0].found.startswith(f"{one_block:.2f} to {one_block:.2f}")
    ranked = 8 if outcomes[1] == "confirmed" else 0
    assert found[1].found.endswith(f"in this order in {ranked} of 8 cases")


def _no_peer(nodes):
    raise RuntimeError("no peer")
