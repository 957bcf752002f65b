"""The benchmark of jobs: all programs solve the same problem, and it is the one that they name."""

import json
import subprocess
import sys
from pathlib import Path

import command_line
import numpy as np
import pytest

pytest.importorskip("scipy")

ROOT = Path(__file__).parents[2]
SMALL = {
    "ocean": {"shape": (9, 8, 5)},
    "options": {"count": 60, "rows": 40, "steps": 6},
    "splines": {"curves": 7, "knots": 30},
    "poisson": {"n": 20},
    "heat": {"n": 40},
    "small": {"rows": 12},
}


@pytest.fixture
def jobs():
    from benchmarks import jobs

    return jobs


@pytest.mark.parametrize("name", SMALL)
def test_programs_of_a_job_have_the_same_result(jobs, name):
    job = jobs.JOBS[name](**SMALL[name])

    case = jobs.measure(job, samples=1, budget=0.0)

    assert case["difference"] and max(case["difference"].values()) < 1e-7
    assert case["seconds"].keys() == case["difference"].keys() | {"package"}
    assert all(seconds > 0 for seconds in case["seconds"].values())
    rows = jobs.table({"cases": {name: case}}).rows
    assert len(rows) == len(case["seconds"]) and rows[0][:2] == (name, case["size"])
    scaled = [row for row in rows if row[-1] == "scaled"]
    assert len(scaled) == len(job.share)


def test_job_of_options_is_the_formula_of_black_and_scholes(jobs):
    from scipy.stats import norm

    count, rows, steps = 20, 400, 200
    values = jobs.options(count, rows, steps).calls["package"]()

    rng = np.random.default_rng(2)
    volatility, rate = rng.uniform(0.1, 0.4, (count, 1)), rng.uniform(0.0, 0.05, (count, 1))
    price = np.linspace(0.0, 4.0, rows)[1:-1]
    d = (np.log(price) + rate - 0.5 * volatility**2) / volatility
    put = np.exp(-rate) * norm.cdf(-d) - price * norm.cdf(-d - volatility)
    np.testing.assert_allclose(values[:, 1:-1], put, rtol=0, atol=2e-4)


def test_job_of_columns_conserves_heat(jobs):
    job = jobs.ocean(SMALL["ocean"]["shape"])
    before = jobs.columns(SMALL["ocean"]["shape"])[3]

    np.testing.assert_allclose(job.calls["package"]().sum(0), before.sum(0), atol=1e-13)


@pytest.mark.slow  # a quick run of a benchmark
def test_command_writes_a_record(tmp_path):
    path = tmp_path / "record.json"
    command = ["bench", "jobs", "--only", "small", "--samples", "1", "--json", str(path)]

    assert command_line.main(command) == 0
    record = json.loads(path.read_text())
    assert record["cases"].keys() == {"small"}
    assert record["cases"]["small"]["size"] == "64 rows"
    assert record["gpu"] is None and record["settings"]["threads"] >= 1


def test_record_of_the_machine_has_all_jobs(capsys):
    assert command_line.main(["bench", "jobs", "--only", "small", "--record"]) == 2
    assert "all jobs" in capsys.readouterr().err


@pytest.mark.slow  # a quick run of a benchmark
def test_jobs_run_without_scipy(tmp_path):
    # An import of SciPy fails, as where it is not installed; JAX needs it.
    (tmp_path / "scipy").mkdir()
    (tmp_path / "scipy" / "__init__.py").write_text("raise ModuleNotFoundError(name='scipy')\n")
    code = (
        "import sys; sys.path[:0] = sys.argv[1:3]\n"
        "from benchmarks import jobs\n"
        "jobs.find_spec = lambda name: None\n"
        f"for name, size in {SMALL}.items():\n"
        "    try:\n"
        "        case = jobs.measure(jobs.JOBS[name](**size), samples=1, budget=0.0)\n"
        "    except ModuleNotFoundError as error:\n"
        "        print(name, error)\n"
        "    else:\n"
        "        print(name, *(n for n in case['seconds'] if n in ('package', 'scipy')))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path), str(ROOT)]

    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    poisson = next(line for line in lines if line.startswith("poisson"))
    assert "scipy is not installed" in poisson and "extra 'poisson'" in poisson
    lines.remove(poisson)
    assert lines == [f"{name} package" for name in SMALL if name != "poisson"]


@pytest.fixture
def picture():
    pytest.importorskip("matplotlib")
    from benchmarks.documents import jobs_picture

    return jobs_picture


CASE = {"size": "64 rows", "seconds": {"package": 2e-6, "scipy loop": 3e-5, "numba": 1e-6}}


def test_bars_are_ratios_and_loops_come_last(picture):
    (group,) = picture.groups_of({"cases": {"small": CASE}})

    assert (group.title, group.size, group.seconds) == ("One small system", "64 rows", 2e-6)
    assert list(group.ratios.items()) == [
        ("numba", pytest.approx(0.5)),
        ("scipy loop", pytest.approx(15.0)),
    ]
    figure = picture.picture([group], "CPU: C", [group], "GPU: G")
    for axes in figure.axes:
        assert [text.get_text() for text in axes.get_yticklabels()] == [
            "Numba",
            "Python loop of SciPy",
        ]
        written = {text.get_text() for text in axes.texts}
        assert written == {"One small system: 64 rows; pysolvers 2 µs", "0.50 ×", "15.0 ×"}
        widths = sorted(bar.get_width() for bar in axes.patches)
        assert widths == [pytest.approx(-0.5), pytest.approx(14.0)]


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.5, "2.5 s"), (0.0541, "54.1 ms"), (6.67e-4, "667 µs"), (3e-6, "3 µs")]
)
def test_times_have_a_unit(picture, seconds, text):
    assert picture.duration(seconds) == text


def test_records_of_solvers_give_the_bars_of_a_gpu(picture):
    tridiagonal, splines, poisson = picture.groups_of_solvers(picture.solver_records())

    assert list(tridiagonal.ratios) == ["cusparse", "jax"]
    assert list(splines.ratios) == ["cupy loop"]
    assert list(poisson.ratios) == ["cupy"]
    assert all(r > 0 for group in (tridiagonal, splines, poisson) for r in group.ratios.values())


def test_every_program_of_the_record_has_a_name(picture, jobs):
    record = json.loads(picture.CPU.read_text())

    assert record["cases"].keys() == jobs.JOBS.keys() == picture.TITLES.keys()
    for case in record["cases"].values():
        assert case["seconds"].keys() - {"package"} <= picture.PROGRAMS.keys()
        assert max(case["difference"].values()) < 1e-6
