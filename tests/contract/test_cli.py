"""`python -m pysolvers`: exit codes, and results apart from messages."""

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import command_line
import numpy as np
import pytest

import pysolvers
from pysolvers import _cli
from pysolvers._cli import main


def cli(*arguments, **keywords):
    return subprocess.run(
        [sys.executable, "-m", "pysolvers", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **keywords,
    )


def test_info_prints_versions_and_backends():
    run = cli("info")

    assert run.returncode == 0
    assert run.stderr == ""
    assert pysolvers.__version__ in run.stdout
    assert "cpu" in run.stdout
    assert "cuda" in run.stdout


def test_info_as_json_is_one_object():
    run = cli("info", "--json")
    shown = json.loads(run.stdout)

    assert run.returncode == 0
    assert shown["versions"]["pysolvers"] == pysolvers.__version__
    assert shown["backends"]["cpu"]["available"] is True
    assert isinstance(shown["threads"], int)
    for backend in shown["backends"].values():
        assert backend["available"] or backend["reason"]


def test_version_is_a_result():
    run = cli("--version")

    assert run.returncode == 0
    assert run.stdout == f"pysolvers {pysolvers.__version__}\n"
    assert run.stderr == ""


def test_console_script_is_this_command():
    root = Path(__file__).parents[2]
    scripts = tomllib.loads((root / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["pysolvers"].partition(":")

    assert getattr(importlib.import_module(module), function) is main


def test_help_is_a_result():
    run = cli("--help")

    assert run.returncode == 0
    assert run.stderr == ""
    for command in ("info", "run", "bench"):
        assert command in run.stdout


def test_wrong_usage_is_2_and_says_why_on_stderr(capsys):
    for arguments in (
        (),
        ("fly",),
        ("run",),
        ("run", "teapot"),
        ("run", "cavity", "--n", "three"),
        ("run", "cavity", "--re", "-1", "--no-plot"),
        ("run", "cylinder", "--shape", "160", "800", "--no-plot"),
        ("run", "cylinder", "--steady", "--film", "film.gif", "--no-plot"),
        ("run", "heat", "--until", "0", "--no-plot"),
        ("run", "poisson", "--n", "12", "--no-plot"),
        ("run", "heat", "--dtype", "int32", "--no-plot"),
        ("bench", "nothing"),
    ):
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = stop.code
        shown = capsys.readouterr()
        assert code == 2, arguments
        assert shown.out == "", arguments
        assert shown.err, arguments


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["run", "cavity", "--reynlods", "400"], "--reynlods: did you mean --reynolds?"),
        (["run", "cavity", "--size=65"], "--size=65: `pysolvers run cavity --help` lists"),
        (["info", "--jsn"], "--jsn: did you mean --json?"),
    ],
)
def test_unknown_option_is_2_and_names_the_nearest(capsys, words, hint):
    with pytest.raises(SystemExit, match="2"):
        main(words)

    assert hint in capsys.readouterr().err


def test_reynolds_is_another_name_of_re():
    args = _cli.build_parser().parse_args(["run", "cavity", "--reynolds", "400"])

    assert args.re == 400


@pytest.mark.parametrize("command", ["bench", "reproduce"])
def test_installed_command_says_that_it_needs_a_copy_of_the_source(
    command, monkeypatch, capsys, tmp_path
):
    monkeypatch.setattr(_cli, "__file__", str(tmp_path / "site" / "pysolvers" / "_cli.py"))
    monkeypatch.chdir(tmp_path)

    assert main([command, "anything", "--quick"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    (sentence,) = shown.err.splitlines()
    assert sentence.startswith(f"pysolvers: {command} works in a copy of the source")


def test_computation_that_fails_is_1(tmp_path):
    run = cli(
        *("run", "cavity", "--n", "17", "--re", "100", "--max-iterations", "2", "--no-plot"),
        *("--output", str(tmp_path)),
    )

    assert run.returncode == 1
    assert "Traceback" not in run.stderr
    assert "converge" in run.stderr


@pytest.mark.parametrize(
    ("text", "message"), [("", "not enough memory\n"), ("8 GiB", "not enough memory: 8 GiB\n")]
)
def test_too_large_a_grid_is_1(monkeypatch, capsys, text, message):
    def fail(args):
        raise MemoryError(*[text] if text else ())

    monkeypatch.setattr("pysolvers.cases.cavity.run_cavity", fail)

    assert main(["run", "cavity"]) == 1
    assert capsys.readouterr().err == f"pysolvers: {message}"


@pytest.mark.filterwarnings("ignore::pysolvers.CoarseGridWarning")
def test_film_that_cannot_be_written_leaves_the_results(tmp_path, capsys):
    film = tmp_path / "new" / "film.unknown"
    case = "run", "cylinder", "--shape", "33", "201", "--until", "0.5", "--no-plot"

    assert command_line.main([*case, "--output", str(tmp_path), "--film", str(film)]) == 2
    shown = capsys.readouterr()
    assert "unknown" in shown.err
    assert "drag" in shown.out
    assert len(list(tmp_path.glob("*.npz"))) == 1


def test_case_writes_results_on_stdout_and_files_where_told(tmp_path):
    run = cli(
        *("run", "cavity", "--n", "17", "--re", "100", "--no-plot"), *("--output", str(tmp_path))
    )

    assert run.returncode == 0, run.stderr
    assert "Ghia" in run.stdout
    assert list(tmp_path.glob("*.npz"))
    assert "\r" not in run.stderr  # no progress bar where nobody looks


@pytest.mark.filterwarnings("ignore::pysolvers.CoarseGridWarning")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(  # the same pictures and tables, with other rows
            ("--re", "100", "--until", "2"),
            ("drag Cd", "lift Cl", "Strouhal"),
            marks=pytest.mark.slow,
        ),
        (("--re", "20", "--steady", "--tol", "1e-2"), ("drag Cd", "Lr/D", "2.4300", "1.0430")),
    ],
)
def test_cylinder_is_compared_and_drawn(options, expected, tmp_path, capsys):
    case = "run", "cylinder", "--shape", "33", "201"

    assert command_line.main([*case, *options, "--output", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "Breuer" in shown
    for text in expected:
        assert text in shown
    assert list(tmp_path.glob("*.npz"))
    assert list(tmp_path.glob("*.png"))


def test_cooling_body_is_compared_with_its_series_and_drawn(tmp_path, capsys):
    case = "run", "heat", "--shape", "33", "33", "33", "--until", "0.05"

    assert command_line.main([*case, "--output", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "Carslaw" in shown
    assert float(shown.split("node: ")[1].split(".\n")[0]) < 1e-3
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize(("problem", "author"), [("duct", "Boussinesq"), ("pipe", "Carslaw")])
def test_flow_in_a_duct_and_heat_in_a_pipe_are_compared_with_their_series(
    problem, author, tmp_path, capsys
):
    pytest.importorskip("scipy")
    case = "run", "poisson", "--problem", problem, "--n", "32", "--aspect", "1"

    assert command_line.main([*case, "--output", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert author in printed
    row = next(line for line in printed.splitlines() if line.strip().startswith("32 x 32"))
    orders = [float(word) for word in row.split() if re.fullmatch(r"[12]\.\d\d", word)]
    assert len(orders) == 2 and all(1.8 < order < 2.2 for order in orders)
    with np.load(tmp_path / f"poisson_{problem}_32.npz") as found:
        middle = found["u"][16, 16 if problem == "duct" else 0]
    assert middle == pytest.approx(0.07367 if problem == "duct" else 0.10145, abs=1e-4)
    assert list(tmp_path.glob("*.png"))


def test_ranks_without_a_launcher_are_refused_with_the_remedy(tmp_path):
    code = (
        "import sys; sys.executable = '/nowhere/python'; from pysolvers._cli import main;"
        f"sys.exit(main(['run', 'heat', '--ranks', '2', '--output', {str(tmp_path)!r}]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | {"PATH": str(tmp_path)},
    )

    assert run.returncode == 1
    assert "install pysolvers with its extra 'mpi'" in run.stderr
    assert run.stdout == ""


def test_folder_that_cannot_be_made_is_told_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")

    run = cli("run", "cavity", "--n", "17", "--re", "100", "--output", str(tmp_path / "file" / "x"))

    assert run.returncode == 1
    assert run.stdout == ""
    assert "Not a directory" in run.stderr


INTERRUPTED = """
import runpy, signal, sys
import pysolvers._cli  # an interrupt of its import would be a traceback
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
sys.argv = ["pysolvers", "bench", "tridiagonal"]
print("begun", flush=True)
runpy.run_module("pysolvers", run_name="__main__")
"""


def test_interrupt_is_130():
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "begun\n"
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)  # the benchmark takes some minutes

    assert process.returncode == 130
    assert "Traceback" not in said


def test_reader_that_leaves_is_no_error():
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen(
        [sys.executable, "-m", "pysolvers", "info"], stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    _, said = process.communicate(timeout=60)

    assert process.returncode == 0
    assert said == ""


@pytest.mark.parametrize("closed", ["1", "2"])
def test_a_closed_stream_is_no_error(tmp_path, closed):
    case = ["run", "cavity", "--n", "9", "--re", "1", "--no-plot"]
    command = [sys.executable, "-m", "pysolvers", *case]
    process = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}>&-', "sh", *command, "--output", tmp_path],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert process.returncode == 0, process.stderr
    assert "Traceback" not in process.stderr
    # No message of stderr gets among the results.
    assert "wrote" not in process.stdout
    assert list(tmp_path.glob("*.npz"))
    assert (closed == "1") == (process.stdout == "")


def test_a_number_left_out_of_a_published_table_is_named(tmp_path, capsys):
    arguments = "--re", "400", "--n", "17", "--no-plot", "--output", str(tmp_path)

    assert main(["run", "cavity", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    (row,) = [line for line in lines if "omitted (misprint)" in line]
    assert row.startswith("  0.9063")
    assert not any("nan" in line for line in lines)


def test_unknown_backend_of_matplotlib_leaves_the_results(tmp_path):
    pytest.importorskip("matplotlib")
    environment = os.environ | {"MPLBACKEND": "nonsense"}

    process = cli("run", "heat", "--shape", "9", "9", "--output", str(tmp_path), env=environment)

    assert process.returncode == 0, process.stderr
    assert "no picture: matplotlib cannot be imported" in process.stderr
    assert list(tmp_path.glob("*.npz")) and not list(tmp_path.glob("*.png"))
