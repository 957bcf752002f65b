"""The code of README.md and of every page of the documentation runs, and prints what the page says.

The blocks of a page share one namespace, in the order of the page. A block of the language `text`
that follows one, or "It prints `...`", is what it prints.
"""

import ast
import contextlib
import importlib.util
import io
import re
from pathlib import Path

import availability
import numpy as np
import pytest

import pysolvers

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n"
    r"(?:\s*^```text\n(?P<text>.*?)^```\n|\s*It prints `(?P<line>[^`]+)`)?",
    re.MULTILINE | re.DOTALL,
)
# A page that imports one of these is skipped where it is absent; blocks of CuPy alone are left out.
OPTIONAL = (
    "jax",
    "lineax",
    "numba",
    "scipy",
    "torch",
    "xarray",
    "matplotlib",
    "mpi4py",
    "pandas",
    "dask",
)
WARN = {"docs/dt.md": "ignore:HeatADI.*too large for the solution:RuntimeWarning"}


def pages():
    """Return README.md and the pages that have a block of Python."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in found if BLOCK.search(path.read_text())]


def imports(code):
    """Return the packages that the code imports."""
    nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)]
    names = [node.module for node in nodes]
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return {name.partition(".")[0] for name in names} | {
        name.split(".")[1] for name in names if name.startswith("pysolvers.")
    }


def run(path):
    """Run the blocks of a page; return what each printed and what stands below it."""
    names = {"__name__": path.stem}
    results = []
    for found in BLOCK.finditer(path.read_text()):
        code = found["code"]
        if "cupy" in imports(code) and (availability.missing("cuda") or not has("cupy")):
            continue
        line = path.read_text()[: found.start("code")].count("\n")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + code, str(path), "exec"), names)
        results.append((printed.getvalue(), found["text"] or found["line"]))
    return results


def has(name):
    return importlib.util.find_spec(name) is not None


def cases():
    for path in pages():
        name = path.relative_to(ROOT).as_posix()
        marks = [pytest.mark.filterwarnings(WARN[name])] if name in WARN else []
        yield pytest.param(path, id=name, marks=marks)


@pytest.mark.parametrize("path", list(cases()))
def test_code_of_a_page_prints_what_stands_below_it(path, tmp_path, monkeypatch):
    needed = set().union(*(imports(found["code"]) for found in BLOCK.finditer(path.read_text())))
    if "distributed" in needed:
        needed.add("mpi4py")
    for name in sorted(needed & set(OPTIONAL)):
        pytest.importorskip(name, exc_type=ImportError)
    monkeypatch.chdir(tmp_path)

    for printed, expected in run(path):
        if expected is not None:
            assert printed.rstrip() == expected.rstrip()


def test_pages_with_code_are_found():
    names = {path.name for path in pages()}

    assert {"README.md", "quickstart.md", "dt.md", "jax.md", "tridiagonal.md"} <= names
    # Nothing that is marked as Python escapes: a block has no options and is not indented.
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text()
        marked = re.findall(r"^.*```+ *\{?(?:python|code-cell|py)\b", text, re.MULTILINE)
        assert len(marked) == len(BLOCK.findall(text)), path


def test_a_page_with_wrong_output_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nx = 1\n```\n\n```python\nprint(x + 1)\n```\n\n```text\n3\n```\n"
        "```python\nprint(x)\n```\n\nIt prints `1`: x.\n"
    )

    assert run(page) == [("", None), ("2\n", "3\n"), ("1\n", "1")]


@pytest.mark.parametrize(("side", "slope"), [("slope", 2.0), ("exchange", 3.0 * 5 / 4)])
def test_rows_of_the_sides_on_the_page_have_the_straight_lines_as_steady_states(side, slope):
    """With the value 0 at y = 1: u = slope * (1 - y), also with an exchange, 3 (5 - u)."""
    page = (ROOT / "docs/own_step.md").read_text()
    row, entry = re.search(rf"^\| {side} [^|]*\| ([^|]*) \| `([^|]*)` \|$", page, re.M).groups()
    n, k = 9, 0.7
    h = 1 / (n - 1)
    diag, upper = np.full(n, -2 * k / h**2), np.full(n, k / h**2)
    lower, source = upper.copy(), np.zeros(n)
    names = {"diag": diag, "upper": upper, "k": k, "h": h, "g": 2.0, "H": 3.0, "u_inf": 5.0}
    for code in re.findall(r"`([^`]+)`", row):
        exec(code, names)
    source[0] = eval(entry, names)
    diag[-1] = lower[-1] = 0

    u = pysolvers.theta_step(lower, diag, upper, np.zeros(n), dt=1e9, theta=1.0, source=source)

    np.testing.assert_allclose(u, slope * (1 - np.linspace(0, 1, n)), atol=1e-6)
