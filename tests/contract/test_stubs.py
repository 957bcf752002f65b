"""The stubs of the extensions say what the extensions hold."""

import ast
import importlib
import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = ("pysolvers._core", "pysolvers._cuda")


@pytest.fixture(params=MODULES)
def module(request):
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} was not built")
    return request.param


def declared(node):
    """Return the function of a declaration, without its types."""
    node.returns, found = None, {}
    for each in ast.walk(node.args):
        if isinstance(each, ast.arg):
            each.annotation = None
    exec(ast.unparse(node), found)
    return found[node.name]


def parameters(function, *, is_method):
    """Return the names, kinds and defaults of the parameters, without `self`."""
    listed = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in listed][is_method:]


def compare(body, holder):
    """Require that names, and the parameters of functions, are those that a stub declares."""
    named = {}
    for node in body:
        if isinstance(node, ast.AnnAssign):
            named[node.target.id] = node
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            named[node.name] = node
    public = {name: node for name, node in named.items() if not name.startswith("_")}
    assert public.keys() == {name for name in vars(holder) if not name.startswith("_")}
    for name, node in public.items():
        value = getattr(holder, name)
        if isinstance(node, ast.ClassDef):
            compare(node.body, value)
        elif isinstance(node, ast.FunctionDef) and not node.decorator_list:
            of_stub, found = (
                parameters(each, is_method=inspect.isclass(holder))
                for each in (declared(node), value)
            )
            assert [one[:2] for one in found] == [one[:2] for one in of_stub], name
            for one, wanted in zip(found, of_stub, strict=True):
                assert wanted[2] in (one[2], ...), (name, one)
        elif isinstance(node, ast.AnnAssign):
            kind = re.match(r"Final\[(\w+)", ast.unparse(node.annotation))[1]
            assert kind in ("Any", "object", type(value).__name__), name


def test_stub_has_the_names_and_parameters_of_the_extension(module):
    stub = ROOT / Path(*module.split(".")).with_suffix(".pyi")

    compare(ast.parse(stub.read_text()).body, importlib.import_module(module))


@pytest.mark.slow  # mypy reads the stubs of NumPy for 10 s
def test_stub_agrees_with_the_extension(module, tmp_path):
    # The stubs alone: mypy would read the whole package, which takes three times as long.
    package = tmp_path / "pysolvers"
    package.mkdir()
    (package / "__init__.pyi").touch()
    for stub in (ROOT / "pysolvers").glob("*.pyi"):
        shutil.copy(stub, package)

    paths = os.pathsep.join(str(Path(one).absolute()) for one in sys.path)
    config = str(ROOT / "pyproject.toml")
    run = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--mypy-config-file", config, module],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(tmp_path), "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
