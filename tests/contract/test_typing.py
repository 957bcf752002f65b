"""What a type checker says of calls: options are literals, results depend on return_info."""

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from pysolvers import _options
from pysolvers._runtime.backends import require

ROOT = Path(__file__).resolve().parents[2]

# Only the modules of the functions and their options: mypy reads the whole package in 15 s.
CONFIG = """\
[mypy]
[mypy-pysolvers.*]
follow_imports = skip
[mypy-pysolvers,pysolvers.tridiagonal,pysolvers.factor,pysolvers._lines.factor,pysolvers._options]
follow_imports = normal
"""
CALLS = """\
import numpy as np
from pysolvers import factor_tridiagonal, solve_tridiagonal

a = np.ones(4)
solve_tridiagonal(a, a, a, a, method="tdma")
solve_tridiagonal(a, a, a, a, on_singular="stop")
factor_tridiagonal(a, a, a).solve(a, trans="C")
factor_tridiagonal(a, a, a, on_singular="stop")


def either(flag: bool) -> None:
    reveal_type(solve_tridiagonal(a, a, a, a, method="cr", return_info=flag))
    reveal_type(solve_tridiagonal(a, a, a, a, return_info=True))
    reveal_type(solve_tridiagonal(a, a, a, a))
"""


@pytest.mark.parametrize(
    ("literal", "table"), [(_options.Method, "METHODS"), (_options.Trans, "TRANS")]
)
def test_literals_are_the_choices_of_the_backend(literal, table):
    assert set(get_args(literal)) == set(getattr(require("cpu"), table))


@pytest.mark.slow  # without a cache mypy reads the stubs of NumPy for ten seconds
def test_misspelt_options_are_found(tmp_path):
    path, config = tmp_path / "calls.py", tmp_path / "mypy.ini"
    path.write_text(CALLS)
    config.write_text(CONFIG)

    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--config-file", config, path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    found = [line.partition("calls.py:")[2] for line in run.stdout.splitlines()]
    errors = {int(line.partition(":")[0]) for line in found if ": error:" in line}
    assert errors == {5, 6, 7, 8}, run.stdout + run.stderr
    types = [line.partition("Revealed type is ")[2] for line in found if "Revealed" in line]
    assert ["SolveInfo" in text for text in types] == [True, True, False]
    assert ["ndarray" in text.partition("tuple[")[0] for text in types] == [True, False, True]
