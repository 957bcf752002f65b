"""The benchmark of jobs: all programs solve the same problem, and it is the one that they name."""

import json
import subprocess
import sys
from pathlib import Path

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
def jobs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import jobs

    return jobs


@pytest.mark.parametrize("name", SMALL)
def test_programs_of_a_job_have_the_same_result(jobs, name):
    job = jobs.JOBS[name](**SMALL[name])

    case = jobs.measure(job, samples=1, budget=0.0)

    assert case["difference"] and max(case["difference"].values()) < 1e-7
    assert case["seconds"].keys() == case["difference"].keys() | {"package"}
    assert all(seconds > 0 for seconds in case["seconds"].values())
    text = list(jobs.lines(name, case))
    assert len(text) == len(case["seconds"]) and case["size"] in text[0]
    scaled = [line.split()[0] for line in text if line.endswith("scaled")]
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


def test_command_writes_a_record(tmp_path):
    path = tmp_path / "record.json"
    command = [sys.executable, ROOT / "benchmarks/jobs.py", "--only", "small", "--samples", "1"]

    run = subprocess.run(
        [*command, "--json", path], capture_output=True, text=True, timeout=120, check=False
    )

    assert run.returncode == 0, run.stderr
    record = json.loads(path.read_text())
    assert record["cases"].keys() == {"small"}
    assert record["cases"]["small"]["size"] == "64 rows"
    assert record["gpu"] is None and record["settings"]["threads"] >= 1
