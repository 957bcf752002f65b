"""Instruction sets that a user selects for the extension; the package refuses unknown ones."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "name", ["AVX2", *(pytest.param(name, marks=pytest.mark.slow) for name in ("", "none"))]
)
def test_unknown_instruction_set_is_no_limit(name):
    program = "from pysolvers import _core; print(_core.describe())"
    environment = {k: v for k, v in os.environ.items() if k != "PYSOLVERS_ISA"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)

    found = {
        subprocess.run(
            [sys.executable, "-P", "-c", program],
            env=environment | limit,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        for limit in ({}, {"PYSOLVERS_ISA": name})
    }

    assert len(found) == 1
