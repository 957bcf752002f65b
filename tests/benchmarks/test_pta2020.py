"""The experiment of Souri et al. 2020, at small size, and the command that repeats it."""

import json

import command_line
import pytest

from benchmarks.papers import pta2020 as pta2020_case, pta2020_cylinder, pta2020_figures
from benchmarks.papers.pta2020 import CPU_RUNS, RUNS, Experiment, run_experiment
from benchmarks.papers.pta2020_cavity import run_profiles
from benchmarks.papers.pta2020_cylinder import TIMING_GRIDS, CylinderTimes
from pysolvers import flow
from pysolvers.papers.pta2020 import LidDrivenCavity, SquareCylinder, souri_timings


def test_published_speedup_is_that_of_the_published_times():
    timings = souri_timings()

    ratio = timings["thomas"].seconds / timings["pta"].seconds
    assert ratio == pytest.approx(timings["pta"].largest_speedup, rel=0.01)
    assert timings["cr"].least_speedup < timings["cr"].largest_speedup == 4.4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"line_method": "pta"}, "line_method 'pta' needs device 'cuda', got None"),
        (
            {"line_method": "pta", "device": "cuda"},
            "line_method 'pta' needs psi_solver 'lines', got 'fast'",
        ),
        ({"block": 64}, "block=64 needs line_method 'pta', got 'partition'"),
        ({"block": 48}, "block must be one of 32, 64, 128, 256 or None; got 48"),
    ],
)
def test_lines_of_the_cylinder_that_contradict_other_options(options, message):
    with pytest.raises(ValueError) as caught:
        SquareCylinder(20, (33, 201), **options)

    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block": 64}, "block=64 needs line_method 'thomas', got 'auto'"),
        ({"block": 64, "line_method": "thomas"}, "block=64 needs device 'cuda', got None"),
        ({"block": 512}, "block must be one of 32, 64, 128, 256 or None; got 512"),
    ],
)
def test_blocks_of_the_cavity_that_contradict_other_options(options, message):
    with pytest.raises(ValueError) as caught:
        LidDrivenCavity(100, 17, **options)

    assert str(caught.value) == message


@pytest.mark.parametrize("method", ["thom", "jensen"])
def test_classes_of_the_paper_make_the_steps_of_the_solvers(method, tmp_path):
    options = {"psi_solver": "lines", "wall": method}
    one, other = (
        c(20, (33, 201), **options).step(3) for c in (SquareCylinder, flow.SquareCylinder)
    )
    one.save(tmp_path / "state.npz")
    loaded = SquareCylinder.load(tmp_path / "state.npz")

    assert (one.omega == other.omega).all()
    assert (loaded.step(2).psi == other.step(2).psi).all()
    with pytest.raises(ValueError, match="pta2020 cylinder state"):
        flow.SquareCylinder.load(tmp_path / "state.npz")


def test_experiment_runs_what_it_can_and_says_what_it_cannot():
    experiment = run_experiment((16, 24), iterations=4)

    names = {run.name for run in RUNS}
    if set(experiment.reasons):  # no GPU
        names |= {run.name for run in CPU_RUNS}
    assert set(experiment.seconds) | set(experiment.reasons) == names
    assert not set(experiment.seconds) & set(experiment.reasons)
    for times in experiment.seconds.values():
        assert list(times) == [16, 24]
        assert all(time > 0 for time in times.values())
    assert "one core" in experiment.seconds


def test_rows_tell_direction_and_reynolds_number():
    seconds = {run.name: {64: 1.0} for run in RUNS}

    table = next(pta2020_case.tables(Experiment(1000, (64,), seconds, {})))

    shown = {row[0]: row[1:3] for row in table.rows}
    assert shown["one core"] == shown["auto"] == ("x and y", 1000.0)
    assert shown["CR"] == shown["PCR"] == shown["PTA uncoalesced"] == ("x", 100.0)
    assert shown["PTA coalesced"] == ("y", 100.0)


def test_speedup_is_the_ratio_of_times_on_one_grid():
    seconds = {"one core": {64: 2.0, 128: 9.0}, "auto": {64: 0.5}}
    experiment = Experiment(1000, (64, 128), seconds, {})

    assert experiment.speedups("auto") == {64: 4.0}
    assert experiment.speedups("one core", "auto") == {64: 0.25}
    assert experiment.speedups("CR") == {}


def test_command_prints_the_tables_and_writes_its_files(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(pta2020_case, "run_profiles", lambda *_: run_profiles(33, (100,)))
    options = ["--grids", "16", "24", "--iterations", "4", "--output", str(tmp_path / "new")]

    assert command_line.main(["reproduce", "pta2020", *options]) == 0
    said = capsys.readouterr()
    assert "331.73 at 1024^2" in said.out
    assert "one core" in said.out
    written = json.loads((tmp_path / "new" / "pta2020.json").read_text())
    assert written["grids"] == [16, 24]
    assert "not measured" in said.out or not written["reasons"]
    for name in ("times", "fig10"):
        assert (tmp_path / "new" / f"pta2020-{name}.png").stat().st_size > 10000


@pytest.mark.slow  # the same calls as those of the tables
def test_command_has_a_quick_run(tmp_path, monkeypatch):
    calls = []

    def experiment(grids, *, iterations):
        calls.append((tuple(grids), iterations))
        return run_experiment((16, 24), iterations=4)

    monkeypatch.setattr(pta2020_case, "run_experiment", experiment)
    monkeypatch.setattr(pta2020_case, "run_profiles", lambda *_: run_profiles(33, (100,)))
    assert command_line.main(["reproduce", "pta2020", "--quick", "--output", str(tmp_path)]) == 0

    ((grids, iterations),) = calls
    assert max(grids) <= 128 and iterations <= 100


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--iterations", "0"), "iterations must be at least 1, got 0"),
        (("--grids", "4"), "n must be at least 5, got 4"),
    ],
)
def test_command_refuses_what_measures_nothing(capsys, tmp_path, option, message):
    folder = tmp_path / "new"

    assert command_line.main(["reproduce", "pta2020", *option, "--output", str(folder)]) == 2
    assert message in capsys.readouterr().err
    assert not folder.exists()


def test_command_needs_a_paper_that_it_knows(capsys):
    with pytest.raises(SystemExit) as caught:
        command_line.main(["reproduce", "nothing"])

    assert caught.value.code == 2
    assert "pta2020" in capsys.readouterr().err


@pytest.mark.slow
def test_figures_of_the_cylinder(tmp_path, capsys):
    options = ["--cylinder", "--quick"]

    assert command_line.main(["reproduce", "pta2020", *options, "--output", str(tmp_path)]) == 0

    written = json.loads((tmp_path / "pta2020_cylinder.json").read_text())
    lengths = written["recirculation"]
    assert list(lengths) == ["10.0", "15.0", "20.0", "25.0", "30.0", "35.0", "40.0"]
    assert sorted(lengths.values()) == list(lengths.values())
    assert lengths["40.0"] == pytest.approx(0.5 + -0.065 + 0.0554 * 40, rel=0.1)
    assert written["seconds"]["fast, one core"]["32 x 200, Re 100"] > 0
    for number in (13, 14, 15, 16, 17, 18):
        assert (tmp_path / f"pta2020_cylinder-fig{number}.png").stat().st_size > 10000
    out = capsys.readouterr().out
    assert "Fig. 13" in out
    assert "published: about 9 times" in out


@pytest.mark.parametrize("shape", TIMING_GRIDS)
def test_grids_of_the_times_are_grids_of_the_cylinder(shape):
    solver = SquareCylinder(100.0, shape)

    assert solver.psi.shape == shape


@pytest.mark.slow
def test_times_of_a_step_with_the_default_grids(tmp_path, capsys):
    options = ["--cylinder", "--figures", "19", "--steps", "1", "--output", str(tmp_path)]

    assert command_line.main(["reproduce", "pta2020", *options]) == 0

    written = json.loads((tmp_path / "pta2020_cylinder.json").read_text())
    (table,) = written["tables"]
    assert [row[0] for row in table["rows"]] == [
        f"{n}, Re {re}" for n in ("160 x 800", "208 x 1000", "400 x 2000") for re in (100, 200)
    ]
    assert capsys.readouterr().out.startswith("Claimed: ")


@pytest.mark.slow  # flows of a cylinder for seconds
def test_figures_before_an_error_are_kept(tmp_path, monkeypatch, capsys):
    def fail(*_, **__):
        raise ValueError("a grid is refused")

    monkeypatch.setattr(pta2020_cylinder, "run_times", fail)
    options = ["--cylinder", "--quick", "--figures", "18", "19", "--output", str(tmp_path)]

    assert command_line.main(["reproduce", "pta2020", *options]) == 2
    said = capsys.readouterr()
    assert "a grid is refused" in said.err
    assert "Fig. 18: Strouhal number" in said.out
    written = json.loads((tmp_path / "pta2020_cylinder.json").read_text())
    assert [table["title"] for table in written["tables"]] == ["Fig. 18: Strouhal number"]
    assert (tmp_path / "pta2020_cylinder-fig18.png").exists()


@pytest.mark.parametrize(
    ("facts", "outcomes"),
    [
        ({}, ["not measured", "not measured"]),
        ({"recirculation": {10.0: 0.99}}, ["confirmed", "not measured"]),
        ({"recirculation": {10.0: 1.1}}, ["not confirmed", "not measured"]),
        ({"speedups": {pta2020_cylinder.PTA: {"a": 12.0}}}, ["not measured", "confirmed"]),
        ({"speedups": {pta2020_cylinder.PARTITION: {"a": 12.0}}}, ["not measured"] * 2),
    ],
)
def test_verdicts_of_the_cylinder(facts, outcomes):
    assert [v.outcome for v in pta2020_figures.verdicts(facts)] == outcomes


@pytest.mark.slow  # flows of a cylinder for seconds
def test_steady_flows_and_times_of_the_cylinder(tmp_path, monkeypatch):
    seconds = {pta2020_cylinder.ONE_CORE: 9.0, pta2020_cylinder.PTA: 1.0}
    monkeypatch.setattr(
        pta2020_cylinder,
        "_seconds",
        lambda run, *_, block=64: block / 64 * seconds.get(run.name, 0.5),
    )
    monkeypatch.setattr(pta2020_cylinder, "LENGTH_REYNOLDS", (20.0, 40.0))
    options = ["--cylinder", "--quick", "--figures", "13", "19", "--no-plot"]

    assert command_line.main(["reproduce", "pta2020", *options, "--output", str(tmp_path)]) == 0

    written = json.loads((tmp_path / "pta2020_cylinder.json").read_text())
    steady, times, blocks = written["tables"]
    at_20, at_40 = steady["rows"]
    assert at_40[1] == pytest.approx(at_40[2], rel=0.05)  # on a coarse grid
    assert at_20[3] == pytest.approx(2.43, rel=0.05)
    assert (at_20[0], at_20[4], at_40[4]) == (20, 2.43, None)  # no published drag at Re = 40
    assert [row[0] for row in times["rows"]] == ["32 x 200, Re 100", "32 x 200, Re 200"]
    heads = [column["name"] for column in times["columns"]]
    speedup = heads.index(f"{pta2020_cylinder.PTA}, ms") + 1
    assert [row[speedup] for row in times["rows"]] == [9.0, 9.0]
    assert [row[0] for row in blocks["rows"]] == [32, 64, 128, 256]
    assert [row[1] for row in blocks["rows"]] == [500.0, 1000.0, 2000.0, 4000.0]
    assert "9.0 to 9.0 times; 18.0 to 18.0 times with lines by the" in written["verdict"]


def test_single_figures_of_the_cylinder(tmp_path):
    options = ["--cylinder", "--quick", "--figures", "14", "--no-plot"]

    assert command_line.main(["reproduce", "pta2020", *options, "--output", str(tmp_path)]) == 0

    assert [path.name for path in tmp_path.iterdir()] == ["pta2020_cylinder.json"]


def test_speedups_of_the_cylinder_are_ratios():
    seconds = {
        "lines, one core": {"a": 8.0},
        "lines, all cores": {"a": 6.0},
        "fast, GPU": {"a": 2.0, "b": 1.0},
    }
    times = CylinderTimes(1, seconds, {})

    assert times.speedups("fast, GPU") == {"a": 4.0}
    assert times.speedups("fast, GPU", pta2020_cylinder.ALL_CORES) == {"a": 3.0}
    assert times.speedups(pta2020_cylinder.PTA) == {}


def test_verdict_of_a_step_names_pta_and_partition():
    facts = {
        "speedups": {
            pta2020_cylinder.PARTITION: {"a": 50.0, "b": 70.0},
            pta2020_cylinder.PTA: {"a": 9.5, "b": 12.0},
        },
    }

    found = pta2020_figures.verdicts(facts)[1]

    assert found.outcome == "confirmed"
    assert found.found.startswith("9.5 to 12.0 times; 50.0 to 70.0 times with lines by the part")
