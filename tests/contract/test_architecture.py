"""The layout holds: arrows point down, sizes stay small, lists stand once."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from pysolvers import _core

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pysolvers"

C_FILES = sorted(
    path
    for folder in ("csrc", "cuda")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".c", ".h", ".inc", ".cu", ".cuh"}
)
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"', re.DOTALL)

# folder -> what its sources must not include
FORBIDDEN_INCLUDES = {
    "csrc/include": r"Python\.h|numpy|pthread\.h|cuda|lines\.h|kernels\.h|threads\.h",
    "csrc/core": r"Python\.h|numpy|pthread\.h|cuda|lines\.h|kernels\.h|threads\.h",
    "csrc/cpu": r"Python\.h|numpy|cuda",
    "csrc/python": r"pthread\.h|cuda|lines\.h|kernels\.h|threads\.h",
    "cuda": r"Python\.h|numpy|pthread\.h|threads\.h|lines\.h|kernels\.h",
}

# Kernels do not allocate, print or leave; the caller owns the workspace.
FORBIDDEN_CALLS = re.compile(
    r"\b(malloc|calloc|realloc|aligned_alloc|posix_memalign|free|printf|fprintf|puts|exit|abort)\s*\("
)

# module or package -> what of the package it may import when it is imported itself
ALLOWED_IMPORTS = {
    "_errors": (),
    "_lines": (),
    "_arrays": ("_checks", "_errors", "_lines"),
    "_backends": ("_environment", "_errors"),
    "_environment": (),
    "_options": ("_arrays", "_checks", "_errors", "_lines"),
    "_shadows": (),
    "_streams": (),
    "_checks": (),
    "_extras": (),
    "_counter": (),
    "_atomic": (),
    "_header": (),
    "_npy": (),
    "_files": ("_atomic", "_header", "_npy"),
    "_shown": (),
    "_progress": (),
    "_stepping": ("_checks", "_counter", "_errors", "_progress"),
    "_state": ("_backends", "_errors", "_shadows", "_streams"),
    "_interop": ("_errors", "_lines", "_shadows", "_streams"),
    "_places": (
        "_arrays",
        "_backends",
        "_errors",
        "_interop",
        "_lines",
        "_options",
        "_shadows",
        "_streams",
    ),
    "_factor": ("_arrays", "_checks", "_errors", "_lines", "_options", "_places", "_shadows"),
    "tridiagonal": ("_arrays", "_checks", "_errors", "_factor", "_lines", "_options", "_places"),
    "flow": (
        "_arrays",
        "_backends",
        "_checks",
        "_counter",
        "_errors",
        "_files",
        "_header",
        "_options",
        "_progress",
        "_shown",
        "_state",
        "tridiagonal",
        "flow",
    ),
    "_boundary": (),
    "_data": (),
    "heat": (
        "_backends",
        "_boundary",
        "_checks",
        "_counter",
        "_data",
        "_errors",
        "_extras",
        "_files",
        "_header",
        "_options",
        "_progress",
        "_shown",
        "_state",
        "_stepping",
        "heat",
    ),
    "transport": (
        "_backends",
        "_boundary",
        "_checks",
        "_counter",
        "_data",
        "_errors",
        "_extras",
        "_files",
        "_header",
        "_options",
        "_progress",
        "_shown",
        "_state",
        "_stepping",
        "transport",
    ),
    "relaxation": (
        "_backends",
        "_boundary",
        "_checks",
        "_counter",
        "_errors",
        "_files",
        "_header",
        "_options",
        "_progress",
        "_shown",
        "_state",
        "relaxation",
    ),
    "plots": (
        "_extras",
        "plots",
        "relaxation._result",
        "transport._result",
        "flow._result",
        "heat._result",
    ),
    "papers": (
        "_boundary",
        "_checks",
        "heat",
        "relaxation",
        "transport",
        "_errors",
        "tridiagonal",
        "flow",
        "plots",
        "papers",
    ),
}
# The command line and what it runs stand on top of everything: nobody imports them.
TOP = re.compile(r"(__main__|_cli|_bench\w*|_case_\w+)(\.|$)")


def relative(path):
    return path.relative_to(ROOT).as_posix()


def code_of(path):
    """Return a C file without comments and texts, its lines kept."""
    return COMMENT_OR_STRING.sub(lambda m: "\n" * m[0].count("\n"), path.read_text())


@pytest.mark.parametrize(("folder", "forbidden"), FORBIDDEN_INCLUDES.items())
def test_c_layers_include_downwards_only(folder, forbidden):
    for path in (p for p in C_FILES if relative(p).startswith(folder + "/")):
        bad = [name for name in INCLUDE.findall(path.read_text()) if re.search(forbidden, name)]
        allowed = {"cuda_runtime.h"} if folder == "cuda" else set()
        assert set(bad) <= allowed, f"{relative(path)} includes {bad}"


def test_one_file_starts_threads():
    for path in C_FILES:
        text = path.read_text()
        assert not re.search(r"#\s*pragma omp (?!simd)|\bomp_\w+\s*\(", text), relative(path)
        if relative(path) != "csrc/cpu/threads.c":
            assert not re.search(r"\b(pthread|thrd)_create\s*\(", text), relative(path)


def test_kernels_neither_allocate_nor_print():
    for path in C_FILES:
        # threads.c allocates the threads that it starts.
        if "python" not in path.parts and relative(path) != "csrc/cpu/threads.c":
            found = FORBIDDEN_CALLS.findall(code_of(path))
            assert not found, f"{relative(path)} calls {found}"


def test_instruction_sets_have_files_of_their_own():
    for path in C_FILES:
        if path.parent.name != "isa":
            used = re.search(r"\bimmintrin\.h|\b_mm(256|512)?_\w+\s*\(", code_of(path))
            assert not used, f"{relative(path)} uses {used[0]}"


def test_c_sources_hold_no_python_package():
    for folder in ("csrc", "cuda"):
        assert not list((ROOT / folder).rglob("*.py"))


def test_files_stay_small():
    for path in C_FILES:
        lines = path.read_text().splitlines()
        assert len(lines) <= 400, f"{relative(path)} has {len(lines)} lines"
        for number, line in enumerate(lines, 1):
            assert len(line) <= 90, f"{relative(path)}:{number} has {len(line)} columns"
    for path in PACKAGE.rglob("*.py"):
        count = len(path.read_text().splitlines())
        assert count <= 500, f"{relative(path)} has {count} lines"


def c_functions(path):
    """Yield the name and the number of lines of each function body of a C file."""
    start, name = None, None
    lines = code_of(path).splitlines()
    for number, line in enumerate(lines):
        if line.startswith("{") and number and lines[number - 1].rstrip().endswith(")"):
            head = next(k for k in range(number - 1, -1, -1) if re.match(r"[A-Za-z_]", lines[k]))
            start, name = number, re.sub(r"PS_FN\((\w+)\)", r"\1", lines[head]).split("(")[0]
        elif line.startswith("}") and start is not None:
            yield name, number - start + 1
            start = None


def test_functions_stay_short():
    for path in C_FILES:
        limit = 90 if path.suffix in {".inc", ".cu", ".cuh"} else 60
        for name, count in c_functions(path):
            assert count <= limit, f"{relative(path)}: {name} has {count} lines"
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                count = body[-1].end_lineno - body[0].lineno + 1 if body else 0
                assert count <= 60, f"{relative(path)}: {node.name} has {count} lines"


def test_heads_of_c_files_say_what_they_are():
    for path in C_FILES:
        head = path.read_text().split("*/")[0]
        assert head.startswith(f"/* {path.name} - "), relative(path)


def imported_at_once(path):
    """Return the package modules that importing `path` imports, as dotted names below it."""
    module = path.relative_to(ROOT).with_suffix("").parts
    package = module[:-1]
    found = set()
    for node in at_module_level(ast.parse(path.read_text()).body):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*base, *((node.module or "").split(".") if node.module else ())])
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return {name.removeprefix("pysolvers.") for name in found if name.startswith("pysolvers.")}


def at_module_level(body):
    """Yield the statements that run on import; those for type checkers do not."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        for block in ("body", "orelse", "handlers"):
            if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield from at_module_level(getattr(node, block, []))


def below(name, prefixes):
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


@pytest.mark.parametrize(("layer", "allowed"), ALLOWED_IMPORTS.items())
def test_python_layers_import_downwards_only(layer, allowed):
    files = sorted((PACKAGE / layer).rglob("*.py")) or [PACKAGE / f"{layer}.py"]
    for path in files:
        bad = {name for name in imported_at_once(path) if not below(name, allowed)}
        assert not bad, f"{relative(path)} imports {sorted(bad)}"


def test_nobody_imports_the_command_line():
    for path in PACKAGE.rglob("*.py"):
        if not TOP.match(path.stem):
            bad = {name for name in imported_at_once(path) if TOP.match(name)}
            assert not bad, f"{relative(path)} imports {sorted(bad)}"


def test_extensions_are_reached_through_backends_only():
    for path in PACKAGE.rglob("*.py"):
        if path.name != "_backends.py":
            bad = {n for n in imported_at_once(path) if below(n, ("_core", "_cuda"))}
            assert not bad, f"{relative(path)} imports {sorted(bad)}"


def x_list(name):
    """Return the (name, text) pairs of an X-macro list of the contract."""
    header = (ROOT / "csrc/include/pysolvers.h").read_text()
    body = re.search(rf"#define {name}\(X\)((?:.*\\\n)*.*)", header)[1]
    return re.findall(r'X\((\w+),\s*"([^"]*)"\)', body)


@pytest.mark.parametrize(
    ("macro", "attribute"),
    [
        ("PS_METHOD_LIST", "METHODS"),
        ("PS_DTYPE_LIST", "DTYPES"),
        ("PS_TRANS_LIST", "TRANS"),
        ("PS_PIVOT_LIST", "PIVOTS"),
    ],
)
def test_lists_of_the_header_are_the_dicts_of_the_extension(macro, attribute):
    pairs = x_list(macro)

    assert len(pairs) >= 3
    assert getattr(_core, attribute) == {text: code for code, (_, text) in enumerate(pairs)}


def test_statuses_of_the_header_are_those_of_the_extension():
    assert dict(enumerate(x_list("PS_STATUS_LIST"))) == _core.STATUS


def test_abi_of_the_header_is_that_of_the_extension():
    header = (ROOT / "csrc/include/pysolvers.h").read_text()
    assert int(re.search(r"PS_ABI_VERSION (\d+)u", header)[1]) == _core.ABI


def test_every_package_is_listed_for_the_build():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found = {".".join(path.parent.relative_to(ROOT).parts) for path in PACKAGE.rglob("__init__.py")}

    assert found == set(project["tool"]["setuptools"]["packages"])


def test_what_users_install_is_portable():
    for name in ("setup.py", "pyproject.toml", "Makefile"):
        assert not re.search(r"-ffast-math|-march=native|-mfma\b", (ROOT / name).read_text()), name
