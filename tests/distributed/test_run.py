"""`python -m pysolvers run heat` on several ranks: one field, one report, and how it fails."""

import json
import os
import re
import signal
import sys
import time

import numpy as np
import pytest
from command_line import main
from covering import slow
from mpi_job import LAUNCHER, ROOT, finished, started

pytest.importorskip("mpi4py", reason="needs the extra 'mpi'")

pytestmark = pytest.mark.skipif(LAUNCHER is None, reason="needs mpiexec")

HEAT = (sys.executable, "-m", "pysolvers", "run", "heat", "--no-plot")


def heat(*options, ranks=None):
    """Run the case, under the launcher if `ranks` are given."""
    launcher = () if ranks is None else (LAUNCHER, "-n", str(ranks))
    return finished(started(*launcher, *HEAT, *map(str, options)))


@pytest.mark.parametrize(
    ("ranks", "options"),
    [
        (None, ("--shape", 17, 14, "--ranks", 3)),
        slow(2, ("--shape", 17, 14, "--split", "x")),
        slow(2, ("--shape", 9, 11, 10, "--split", "y", "--ranks", 2)),
    ],
)
def test_ranks_compute_one_field(ranks, options, tmp_path):
    time_step = "--dt", 0.01, "--until", 0.055
    shape = options[: options.index(next(o for o in options[1:] if isinstance(o, str)))]
    status, alone, errors = heat(*shape, *time_step, "--output", tmp_path / "one")
    assert status == 0, errors
    status, out, errors = heat(*options, *time_step, "--output", tmp_path / "split", ranks=ranks)
    assert status == 0, errors

    assert out.count("Largest difference") == errors.count(".npz") == 1
    assert out.split("Time:")[0] == alone.split("Time:")[0]
    (name,) = (path.name for path in (tmp_path / "one").glob("*.npz"))
    with np.load(tmp_path / "one" / name) as one, np.load(tmp_path / "split" / name) as split:
        assert split["u"].shape == shape[1:]
        np.testing.assert_allclose(split["u"], one["u"], rtol=0, atol=1e-13)
    record = json.loads(next((tmp_path / "split").glob("*.json")).read_text())
    axis = "y" if "--split" not in options else options[options.index("--split") + 1]
    assert record["tables"][1]["rows"][0][2] == f"{ranks or 3}, cut along {axis}"


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        (("--dt", -1), 2, "dt must be positive, got -1"),
        slow(("--dt", "much"), 2, "argument --dt: invalid float value"),
        slow(("--shape", 2, 9), 2, "shape must be at least 3 along y"),
        slow(("--shape", 9, 9, "--split", "z"), 2, "--split must be one of x, y"),
        slow(("--ranks", 3), 1, "--ranks is 3, but MPI has 2 ranks"),
    ],
)
def test_errors_of_all_ranks_are_printed_once(options, status, text, tmp_path):
    found, out, errors = heat(*options, "--output", tmp_path, ranks=2)

    assert found == status
    assert out == ""
    assert errors.count(text) == 1
    assert "Traceback" not in errors


def test_fewer_rows_than_ranks_are_refused(tmp_path):
    status, out, errors = heat("--shape", 3, 9, "--ranks", 4, "--output", tmp_path)

    assert (status, out) == (2, "")
    assert errors.count("an axis of 3 cannot be split over 4 ranks") == 1


def test_more_ranks_than_nodes_are_refused_before_the_launcher_starts(monkeypatch, capsys):
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("the launcher was started"))

    assert main(["run", "heat", "--shape", "3", "9", "--ranks", "4"]) == 2
    assert "an axis of 3 cannot be split over 4 ranks" in capsys.readouterr().err


def test_error_of_one_rank_ends_all(tmp_path):
    (tmp_path / "file").write_text("")
    begun = time.monotonic()
    status, out, errors = heat("--output", tmp_path / "file" / "folder", ranks=2)

    assert (status, out) == (1, "")
    assert "Not a directory" in errors
    assert time.monotonic() - begun < 30


def test_command_without_ranks_is_refused_under_a_launcher(tmp_path):
    command = (LAUNCHER, "-n", "2", sys.executable, "-m", "pysolvers", "run", "cavity")
    status, out, errors = finished(started(*command, "--output", tmp_path))

    assert (status, out) == (2, "")
    assert errors.count("an MPI launcher started 2 processes") == 1
    assert not list(tmp_path.iterdir())


def test_interrupt_ends_ranks_that_the_command_started(tmp_path):
    job = started(*HEAT, "--ranks", "2", "--until", "1e6", "--output", str(tmp_path / "new"))
    try:
        while not (tmp_path / "new").exists() and job.poll() is None:
            time.sleep(0.1)
        time.sleep(1)
        job.send_signal(signal.SIGINT)
        status, out, errors = finished(job, 30)
    finally:
        job.kill()

    assert status != 0
    assert "Time" not in out
    assert "Traceback" not in errors


def scripts():
    """The scripts of the page on several processes, by their names."""
    page = (ROOT / "docs" / "distributed.md").read_text()
    return dict(re.findall(r"```python\n# (\w+\.py): mpirun[^\n]*\n(.*?)```", page, re.DOTALL))


@pytest.mark.parametrize("name", ["solve.py", slow("heat.py")])
def test_script_of_the_documentation_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(scripts()[name])
    status, out, errors = finished(started(LAUNCHER, "-n", "3", sys.executable, name))

    assert status == 0, errors
    if name == "solve.py":
        assert out == "rank 0 holds the rows 0 to 1365\n"
    else:
        assert (tmp_path / "state.npz").exists()
