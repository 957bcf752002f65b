"""The layout holds: imports and includes point down and form no cycle, lists stand once."""

import ast
import functools
import re
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import pysolvers
from pysolvers import _core
from pysolvers._runtime import backends

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pysolvers"
PAGE = ROOT / "docs/architecture.md"

C_FILES = sorted(
    path
    for folder in ("csrc", "cuda")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".c", ".h", ".inc", ".cu", ".cuh"} and "third_party" not in path.parts
)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
SYSTEM_INCLUDE = re.compile(r"^\s*#\s*include\s*<([^>]+)>", re.MULTILINE)
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"', re.DOTALL)

# Levels of the C and CUDA code, from the bottom up, for each part that is compiled on its own. A
# file belongs to the longest prefix of its path; it includes files of its own prefix and of lower
# levels. Below cuda/lines and csrc/cpu/lines the folders are ordered by their includes alone.
SOLVERS = ("heat", "transport", "flow", "relaxation", "spline")
C_LEVELS = {
    "csrc/core": [("csrc/include",), ("csrc/core",)],
    "csrc/python": [("csrc/include",), ("csrc/python",)],
    "csrc/directive": [("csrc/include",), ("csrc/directive",)],
    "csrc/cpu": [
        ("csrc/include", "pysolvers/include"),  # the contract; the functions for C programs
        ("csrc/cpu/runtime",),
        ("csrc/cpu/lines",),
        ("csrc/cpu/relaxation",),  # also solves for the pressure of a flow
        tuple(f"csrc/cpu/{name}" for name in SOLVERS if name != "relaxation"),
        ("csrc/cpu/isa",),  # translation units: they include the kernels of the folders below
        ("csrc/cpu",),
    ],
    "cuda": [
        ("csrc/include",),
        ("cuda/runtime",),
        ("cuda/device",),
        ("cuda/lines",),
        (*(f"cuda/{name}" for name in SOLVERS), "cuda/transforms"),
        ("cuda",),
    ],
}
PYTHON_HEADERS = re.compile(r"Python\.h|numpy/")
DEVICE_HEADERS = re.compile(r"cuda|cooperative_groups|mma\.h")

# Levels of the package, from the bottom up. A private module of the package that is named nowhere
# here belongs to BASE. A module imports modules of its own entry and of lower levels.
BASE = "helpers"
PYTHON_LEVELS = [
    ("_core", "_cuda"),
    (BASE,),
    ("_runtime",),
    ("_memory",),
    ("_options",),
    ("_lines",),
    ("distributed",),
    ("factor", "tridiagonal"),
    ("_steps", "_recurrence", "_blocks"),
    ("_derivatives",),
    ("_solver",),
    ("_split",),
    ("poisson",),
    (*SOLVERS, "parabolic"),
    ("smoothing", "scipy"),
    ("jax", "numba", "torch"),
    ("lineax",),
    ("plots",),
    ("papers",),
    ("cases",),
    ("_cli",),
    ("__main__",),
]

# Kernels do not allocate, print or leave; the caller owns the workspace.
FORBIDDEN_CALLS = re.compile(
    r"\b(malloc|calloc|realloc|aligned_alloc|posix_memalign|free|printf|fprintf|puts|exit|abort)\s*\("
)
# The one file that starts threads. It owns their memory, too.
THREADS = "threads.c"
# The functions for C programs own the workspace as other callers of the backend do.
ALLOCATING = THREADS, "api.c"


def relative(path):
    return path.relative_to(ROOT).as_posix()


def code_of(path):
    """Return a C file without comments and texts, its lines kept."""
    return COMMENT_OR_STRING.sub(lambda m: "\n" * m[0].count("\n"), path.read_text())


def cycle_of(graph):
    """Return a cycle of {node: the nodes that it needs}, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def levels_of(path):
    return next(levels for part, levels in C_LEVELS.items() if path.startswith(part + "/"))


def place_of(path, levels):
    """Return the number of the level of a file and the prefix that it belongs to, or None."""
    places = [
        (number, prefix)
        for number, prefixes in enumerate(levels)
        for prefix in prefixes
        if path.startswith(prefix + "/")
    ]
    return max(places, key=lambda place: len(place[1]), default=None)


def included(path):
    """Return the files of the project that a file includes, as the compiler finds them."""
    part = next(
        part
        for part in ("csrc/core", "csrc/python", "csrc/cpu", "cuda", "csrc")
        if relative(path).startswith(part + "/")
    )
    folders = [path.parent, ROOT / "csrc/include", ROOT / part]
    found = []
    for name in INCLUDE.findall(path.read_text()):
        target = next((f / name for f in folders if (f / name).is_file()), None)
        assert target is not None, f"{relative(path)} includes {name}, which is not found"
        found.append(target.resolve())
    return found


def include_graph(node):
    """Return {node(file): the nodes of the files that it includes}, without self-references."""
    graph = {}
    for path in C_FILES:
        needs = graph.setdefault(node(path), set())
        needs |= {node(target) for target in included(path)} - {node(path)}
    return graph


@pytest.mark.parametrize("part", C_LEVELS)
def test_includes_point_down(part):
    levels = C_LEVELS[part]
    for path in (p for p in C_FILES if relative(p).startswith(part + "/")):
        level, prefix = place_of(relative(path), levels)
        for target in included(path):
            place = place_of(relative(target), levels)
            allowed = place is not None and (place[0] < level or place[1] == prefix)
            assert allowed, f"{relative(path)} includes {relative(target)}"


def test_contract_includes_the_contract_only():
    for path in (ROOT / "csrc/include").iterdir():
        assert {target.parent.name for target in included(path)} <= {"include"}, path.name


def test_no_files_include_each_other_in_a_circle():
    assert not cycle_of(include_graph(relative))


def test_no_folders_include_each_other_in_a_circle():
    assert not cycle_of(include_graph(lambda path: relative(path.parent)))


def test_python_and_cuda_stay_in_their_folders():
    for path in C_FILES:
        for name in SYSTEM_INCLUDE.findall(path.read_text()):
            if PYTHON_HEADERS.match(name):
                assert relative(path).startswith("csrc/python/"), f"{relative(path)}: {name}"
            if DEVICE_HEADERS.match(name):
                assert relative(path).startswith("cuda/"), f"{relative(path)}: {name}"


def test_one_file_starts_threads():
    starts = re.compile(r"#\s*pragma omp (?!simd)|\bomp_\w+\s*\(|<omp\.h>|\bpthread_create\b")
    for path in C_FILES:
        # Directives start the threads of csrc/directive, which is not part of the extension.
        if path.name != THREADS and "directive" not in path.parts:
            found = starts.search(path.read_text())
            assert not found, f"{relative(path)}: {found[0]}"


@pytest.mark.parametrize(
    ("pattern", "owner"),
    [
        (r"\b_mm\d*_\w+|<\w+intrin\.h>", "isa/vector.h"),
        (r"__builtin_cpu_supports", "runtime/isa.c"),
        (r"__builtin_prefetch", "lines/prefetch.h"),
    ],
)
def test_one_file_of_the_cpu_has_vector_instructions_their_choice_and_prefetches(pattern, owner):
    folder = ROOT / "csrc" / "cpu"
    found = {p for p in C_FILES if folder in p.parents and re.search(pattern, code_of(p))}
    assert found == {folder / owner}


def test_one_class_launches_kernels():
    for path in (p for p in C_FILES if relative(p).startswith("cuda/")):
        if relative(path) != "cuda/runtime/launch.cuh":
            found = re.search(r"<<<|\bcudaLaunch\w*Kernel\w*", code_of(path))
            assert not found, f"{relative(path)}: {found[0]}"


def test_kernels_neither_allocate_nor_print():
    for path in C_FILES:
        if "python" not in path.parts and path.name not in ALLOCATING:
            found = FORBIDDEN_CALLS.findall(code_of(path))
            assert not found, f"{relative(path)} calls {found}"


def test_loops_of_kernels_are_unrolled_by_powers_of_two():
    """By 3 or 5, nvcc 13.0 makes a loop of min(a, b) rounds longer, to a multiple of 3 or 5."""
    for path in C_FILES:
        for number in re.findall(r"#pragma unroll (\d+)", path.read_text()):
            assert int(number).bit_count() == 1, f"{relative(path)} unrolls by {number}"


def test_instruction_sets_have_files_of_their_own():
    for path in C_FILES:
        if path.parent.name != "isa":
            used = re.search(r"\bimmintrin\.h|\b_mm(256|512)?_\w+\s*\(", code_of(path))
            assert not used, f"{relative(path)} uses {used[0]}"


def lines_of_code(text):
    return sum(bool(line.strip()) for line in COMMENT_OR_STRING.sub("", text).splitlines())


def test_counts_of_the_page_are_those_of_the_sources():
    page = PAGE.read_text()
    cuda = [p for p in C_FILES if relative(p).startswith("cuda/")]
    kernels = {p: len(re.findall(r"\b__global__\b", code_of(p))) for p in cuda}
    frames = kernels[ROOT / "cuda/runtime/elements.cuh"]
    block = [
        (ROOT / "csrc/cpu" / name).read_text() for name in ("lines/block.h", "isa/f64_block.h")
    ]
    inverses = re.findall(r"\nreciprocal\(.*?\n}", block[0], re.DOTALL)

    def numbers(pattern):
        (found,) = re.findall(pattern.replace(" ", r"\s+"), page)
        return [int(number) for number in ([found] if isinstance(found, str) else found)]

    assert numbers(r"(\d+) of the (\d+) kernels have a frame of their own") == [
        sum(kernels.values()) - frames,
        sum(kernels.values()),
    ]
    for header, text in (
        ("upwind.h", r"two dimensions, in (\d+) lines of code"),
        ("reaction.h", r"diffuse and react, in (\d+) lines"),
    ):
        assert numbers(text) == [lines_of_code((ROOT / "tests/c" / header).read_text())], header
    assert numbers(r"have (\d+) lines of code for blocks of any side") == [
        sum(map(lines_of_code, block))
    ]
    assert numbers(r"an elimination of its own, has (\d+);") == [
        1 + max(map(lines_of_code, inverses))  # with the line of its type
    ]


def test_names_of_the_tables_of_the_page_are_in_their_files():
    """The rows of three columns: the part, its files, its functions and types."""
    rows = re.findall(r"^\|([^|\n]+)\|([^|\n]+)\|([^|\n]+)\|$", PAGE.read_text(), re.MULTILINE)
    checked = 0
    for part, files, names in rows:
        patterns = re.findall(r"`([\w/*]+\.(?:h|inc|c|cuh?))`", files)
        found = [p for p in C_FILES if any(p.match(pattern) for pattern in patterns)]
        words = {word for path in found for word in re.findall(r"\w+", code_of(path))}
        for pattern in patterns:
            assert any(path.match(pattern) for path in found), f"{part}: no file {pattern}"
        for name in re.findall(r"`(\w+)`", names) if patterns else ():
            assert name in words, f"{part}: {name} is in none of {', '.join(patterns)}"
            checked += 1
    assert checked > 100


def test_exchanges_between_units_are_those_of_the_page():
    cuda = [code_of(p) for p in C_FILES if relative(p).startswith("cuda/")]
    found = {name for code in cuda for name in re.findall(r"\bstruct (\w*Exchange)\b", code)}
    assert found == set(re.findall(r"`(\w*Exchange)`", PAGE.read_text()))


def test_c_sources_hold_no_python_package():
    for folder in ("csrc", "cuda"):
        assert not list((ROOT / folder).rglob("*.py"))


def module_of(path):
    """Return the dotted name of a file below the package; that of a package without __init__."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in PACKAGE.rglob("*.py")} | {"_core": None, "_cuda": None}


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text())


def imported_at_once(path):
    """Return the modules of the package that importing `path` imports."""
    return imported_by(path, statements(tree_of(path).body, of_calls=False))


@functools.cache
def imported_at_any_time(path):
    """Return the modules that a file imports on import or in a call; not those for annotations."""
    return imported_by(path, statements(tree_of(path).body, of_calls=True))


def imported_by(path, nodes):
    """Return the modules of the package that import statements name."""
    package = path.relative_to(ROOT).parent.parts
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {(alias.name, None) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*base, *((node.module or "").split(".") if node.module else ())])
            found |= {(base, alias.name) for alias in node.names}
    modules = set()
    for base, name in found:
        if base.split(".")[0] == "pysolvers":
            base = base.removeprefix("pysolvers").removeprefix(".")
            member = f"{base}.{name}".lstrip(".")
            modules.add(member if member in MODULES else base)
    return modules - {module_of(path)}


def statements(body, *, of_calls):
    """Yield the statements that run on import, or also in calls; those for type checkers do not."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        if of_calls or not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            for block in ("body", "orelse", "handlers", "finalbody", "cases"):
                yield from statements(getattr(node, block, []), of_calls=of_calls)


def python_level(module):
    """Return the number of the level of a module and the entry that it belongs to."""
    top = module.split(".")[0]
    for number, entries in enumerate(PYTHON_LEVELS):
        if top in entries:
            return number, top
    assert top.startswith("_") and "." not in module, f"{module} has no level"
    return PYTHON_LEVELS.index((BASE,)), BASE


def test_imports_point_down():
    """Also those of a call."""
    for module in sorted(MODULES.keys() - {"", "_core", "_cuda"}):
        level, entry = python_level(module)
        for name in imported_at_any_time(MODULES[module]):
            assert name, f"{module} imports the package itself"
            other, other_entry = python_level(name)
            assert other < level or other_entry == entry, f"{module} imports {name}"


def test_no_modules_import_each_other_in_a_circle():
    graph = {m: imported_at_any_time(path) for m, path in MODULES.items() if path is not None}
    assert not cycle_of(graph)


def test_no_packages_import_each_other_in_a_circle():
    graph = {}
    for module, path in MODULES.items():
        if path is not None:
            top = module.split(".")[0]
            needs = {name.split(".")[0] for name in imported_at_any_time(path)}
            graph.setdefault(top, set()).update(needs - {top})
    assert not cycle_of(graph)


def test_extensions_are_reached_through_backends_only():
    for module, path in MODULES.items():
        if path is not None and module != "_runtime.backends":
            assert not imported_at_once(path) & {"_core", "_cuda"}, module


def test_public_modules_alone_list_their_names():
    for module, path in MODULES.items():
        if path is not None:
            is_private = any(part.startswith("_") for part in module.split("."))
            if is_private and "__all__" in path.read_text():
                assert "__all__" not in [getattr(n, "id", "") for n in ast.walk(tree_of(path))]


def imported_names(path):
    """Return the names that a file imports, with their modules."""
    found, text = [], path.read_text()
    if "pysolvers" not in text:
        return found
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def test_tests_use_the_public_interface():
    """Tests of a private module are in tests/unit/internal and tests/gpu/internal.

    `_solver` has the base classes that a new solver takes. Tests of the build and of the structure
    of the package are in tests/contract; tests/support has what tests put in the place of devices
    and change inside the package.
    """
    folder, private = ROOT / "tests", re.compile(r"pysolvers\.(.*\.)?_(?!_)(?!solver\.[A-Z])")
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(folder).as_posix()
        if not place.startswith(("unit/internal/", "gpu/internal/", "contract/", "support/")):
            found = [name for name in imported_names(path) if private.match(name)]
            assert not found, place


def test_names_of_the_package_are_public():
    public = {name for name in vars(pysolvers) if not name.startswith("_")}
    packages = {module.split(".")[0] for module in MODULES} - {""}

    assert public <= {*pysolvers.__all__, *packages}
    listed = dir(pysolvers)
    assert set(pysolvers.__all__) <= set(listed)
    assert all(name == "__version__" or not name.startswith("_") for name in listed)
    for name in listed:
        assert getattr(pysolvers, name) is not None
    assert pysolvers.papers.__name__ == "pysolvers.papers"  # imported here, if not before
    with pytest.raises(AttributeError, match="no attribute 'paper'"):
        _ = pysolvers.paper


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


def test_contract_number_of_the_package_is_compiled_into_the_extension():
    assert _core.ABI == backends.ABI_VERSION


def test_every_package_is_listed_for_the_build():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found = {".".join(path.parent.relative_to(ROOT).parts) for path in PACKAGE.rglob("__init__.py")}

    assert found == set(project["tool"]["setuptools"]["packages"])


def test_what_users_install_is_portable():
    for name in ("setup.py", "pyproject.toml", "Makefile"):
        assert not re.search(r"-ffast-math|-march=native|-mfma\b", (ROOT / name).read_text()), name
