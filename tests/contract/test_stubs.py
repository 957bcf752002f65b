"""The stubs of the extensions say what the extensions hold."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("module", ["pysolvers._core", "pysolvers._cuda"])
def test_stub_agrees_with_the_extension(module):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} was not built")

    run = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--mypy-config-file", "pyproject.toml", module],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
