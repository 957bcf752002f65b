"""Public objects have docstrings, and the examples in these run; `make lint` checks their form."""

import doctest
import functools
import importlib
import importlib.util
import inspect
import re
from pathlib import Path

import numpy as np
import public_modules
import pytest

import pysolvers

OPTIONAL = [name for name in ("torch",) if importlib.util.find_spec(name) is not None]

MODULES = (
    *public_modules.MODULES,
    *(importlib.import_module(f"pysolvers.{name}") for name in OPTIONAL),
)


def own_members(kind):
    """Return the members of a class, its own and those of its bases in the package."""
    bases = [base for base in reversed(kind.__mro__) if base.__module__.startswith("pysolvers")]
    return {name: member for base in bases for name, member in vars(base).items()}


def public_names():
    """Return the dotted names of all public objects and of their public members."""
    names = []
    for module in MODULES:
        for name in module.__all__:
            value = getattr(module, name)
            if not callable(value) or f"{module.__name__}.{name}" in names:
                continue
            names.append(f"{module.__name__}.{name}")
            if inspect.isclass(value):
                members = [m for m in own_members(value).items() if not m[0].startswith("_")]
                names += [
                    f"{module.__name__}.{name}.{member}"
                    for member, content in members
                    if not inspect.ismemberdescriptor(content)  # the class documents its attributes
                ]
    return names


def object_named(dotted):
    """Return the object of a dotted name, and the module it is reached through."""
    module = next(m for m in reversed(MODULES) if dotted.startswith(m.__name__ + "."))
    value = module
    for part in dotted.removeprefix(module.__name__ + ".").split("."):
        value = inspect.getattr_static(value, part)
    return value


def test_public_objects_have_docstrings():
    names = [name for name in public_names() if name.count(".") <= 2]

    assert len(names) > 100
    assert not [name for name in names if not inspect.getdoc(object_named(name))]


def test_signatures_are_readable():
    """`help` opens with them: names of types, not the members of NumPy's unions."""
    for name in public_names():
        value = object_named(name)
        if not callable(value) or (inspect.isclass(value) and issubclass(value, Exception)):
            continue
        signature = str(inspect.signature(value))

        assert "numpy._typing" not in signature, name
        assert len(signature) < 800, name


# Packages that the examples of a module need; without them, they are skipped.
NEEDED = {
    "jax": "jax",
    "lineax": "lineax",
    "numba": "numba",
    "plots": "matplotlib",
    "scipy": "scipy",
    "torch": "torch",
}


@functools.cache
def reference_names():
    """Return the dotted names of the classes and functions of the reference."""
    page = (Path(__file__).parents[2] / "docs/api.md").read_text()
    names, module = [], "pysolvers"
    for line in page.splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"   [A-Za-z_][\w.]*", line):
            names.append(f"{module}.{line.strip()}")
    return [name for name in names if not name.split(".")[-1].isupper()]  # constants have none


def reached(dotted):
    """Return the object of a dotted name of the reference; skip it without what it needs."""
    needed = NEEDED.get(dotted.split(".")[1])
    if needed:
        pytest.importorskip(needed)
    module = dotted.rpartition(".")[0]
    return getattr(importlib.import_module(module), dotted.rpartition(".")[2])


def run_examples(name, value):
    module = importlib.import_module(getattr(value, "__module__", None) or "pysolvers")
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    finder = doctest.DocTestFinder(recurse=False)

    with np.printoptions():
        for test in finder.find(value, name, module=module, globs={"pysolvers": pysolvers}):
            runner.run(test)

    assert runner.failures == 0


@pytest.mark.parametrize("name", reference_names())
def test_names_of_the_reference_have_an_example_that_runs(name):
    value = reached(name)

    assert ">>>" in (inspect.getdoc(value) or "")
    if name.split(".")[1] not in ("jax", "lineax"):  # tests/unit/jax runs these, with 64 bits
        run_examples(name, value)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in public_names()
        if name not in reference_names() and ">>>" in (inspect.getdoc(object_named(name)) or "")
    ],
)
def test_other_examples_run(name):
    run_examples(name, object_named(name))


def test_the_reference_is_read():
    names = reference_names()

    assert len(names) > 150
    assert {"pysolvers.solve_tridiagonal", "pysolvers.flow.Strouhal"} <= set(names)
    assert "pysolvers.papers.wei2013.HeatADI" in names
