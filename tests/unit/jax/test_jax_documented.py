"""The public functions of `pysolvers.jax` have docstrings whose examples run."""

import doctest
import inspect
import re
from pathlib import Path

import pytest

pytest.importorskip("jax")

import pysolvers.jax

DOCS = Path(__file__).parents[3] / "docs"


# The examples of the methods of splines take seconds.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name == "CubicSpline"))
        for name in pysolvers.jax.__all__
    ],
)
def test_public_name_is_documented_and_its_examples_run(name):
    value = getattr(pysolvers.jax, name)
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()

    for test in finder.find(value, name, globs={}):
        runner.run(test)

    assert inspect.getdoc(value)
    assert runner.failures == 0 and (inspect.isclass(value) or runner.tries > 0)
    assert re.search(rf"\b{name}\b", (DOCS / "jax.md").read_text())
