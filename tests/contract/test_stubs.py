"""The stub of the extension says what the extension holds."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_stub_agrees_with_the_extension():
    run = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "pysolvers._core"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
