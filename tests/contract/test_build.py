"""The build says what it leaves out, and refuses what it does not understand."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEFT_OUT = "no nvcc was found, so the CUDA backend is not built"


def setup(**variables):
    """Run setup.py with these variables, far enough to choose the extensions."""
    known = {k: v for k, v in os.environ.items() if not k.startswith("PYSOLVERS_")}
    return subprocess.run(
        [sys.executable, "setup.py", "--name"],
        cwd=ROOT,
        env=known | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("wanted", [{}, {"PYSOLVERS_CUDA": "auto"}])
def test_without_nvcc_the_cuda_backend_is_left_out_aloud(wanted):
    run = setup(NVCC="no-such-compiler", **wanted)

    assert run.returncode == 0, run.stderr
    assert run.stdout.count(LEFT_OUT) == 1


def test_cuda_backend_is_left_out_in_silence_when_unwanted():
    run = setup(NVCC="no-such-compiler", PYSOLVERS_CUDA="0")

    assert run.returncode == 0, run.stderr
    assert LEFT_OUT not in run.stdout


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"PYSOLVERS_CUDA": "1", "NVCC": "no-such-compiler"}, "PYSOLVERS_CUDA=1: no nvcc"),
        ({"PYSOLVERS_CUDA": "yes"}, "PYSOLVERS_CUDA must be auto, 0 or 1, not yes"),
    ],
)
def test_wish_that_cannot_be_met_is_an_error(variables, message):
    run = setup(**variables)

    assert run.returncode != 0
    assert message in run.stderr


def test_old_setuptools_is_named(tmp_path):
    old = tmp_path / "sitecustomize.py"
    old.write_text("import setuptools\nsetuptools.__version__ = '70.1.0'\n")

    run = setup(PYTHONPATH=str(tmp_path))

    assert run.returncode != 0
    assert "pysolvers needs setuptools 77 or newer to build, this is 70.1.0" in run.stderr
    assert "Traceback" not in run.stderr
