"""What the project says about itself is true, and said once."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import public_modules
import pytest

import pysolvers
from pysolvers._cli import build_parser

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CIBUILDWHEEL = PROJECT["tool"]["cibuildwheel"]
README = (ROOT / "README.md").read_text()

TEXT_SUFFIXES = {
    ".c", ".cfg", ".cff", ".cu", ".cuh", ".h", ".inc", ".ipynb", ".md", ".py", ".pyi", ".toml",
    ".yaml", ".yml",
}  # fmt: skip
TREES = (
    "pysolvers",
    "csrc",
    "cuda",
    "tests",
    "benchmarks",
    "docs",
    "notebooks",
    "packaging",
    "tools",
    ".github",
)

# Folders of somebody's machine.
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(home|root|Users|mnt)/")


def project_files():
    """Return every text file of the project that a person wrote."""
    files = [path for path in ROOT.iterdir() if path.is_file()]
    for tree in TREES:
        files += (ROOT / tree).rglob("*")
    made = {"_build", "generated", "__pycache__", "build"}
    return [
        path
        for path in files
        if path.suffix in TEXT_SUFFIXES and not made & set(path.relative_to(ROOT).parts)
    ]


def test_no_file_names_folders_of_one_machine():
    for path in project_files():
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not MACHINE_PATH.search(line), f"{path.relative_to(ROOT)}:{number}: {line}"


# What the documents and the messages ask pip for: a path of the source, or one of these.
KNOWN_PACKAGES = {
    "cuda-bindings", "cuda-core", "cuda-pathfinder", "jax", "lineax", "mpi4py", "nvidia-nccl-cu13",
    "scipy", "torch", "tqdm",
}  # fmt: skip


def test_every_package_that_pip_is_asked_for_exists():
    sources = sorted((ROOT / "pysolvers").rglob("*.py"))
    for path in [*documents(), *sources]:
        for found in re.findall(r"pip install ((?:[^\s`\"#:;,]+ ?)+)", path.read_text()):
            words = re.split(r" (?:in|or|and) ", found)[0].split()
            asked = {word.strip("'") for word in words if word[0] not in "-.{" and word[:2] != "'."}
            assert asked <= KNOWN_PACKAGES | {"test", "docs"}, f"{path.relative_to(ROOT)}: {found}"


def test_version_stands_in_one_place():
    version = PROJECT["project"]["version"]

    assert pysolvers.__version__ == version
    for path in (ROOT / "pysolvers").rglob("*.py"):
        assert f'"{version}"' not in path.read_text(), path
    assert version not in (ROOT / "setup.py").read_text()


def test_changelog_citation_and_recipe_name_this_version():
    version = PROJECT["project"]["version"]
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()

    assert f'\n  version: "{version}"\n' in recipe

    assert version in (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^version: \"?{re.escape(version)}\"?$", citation(), re.MULTILINE)


def citation():
    return (ROOT / "CITATION.cff").read_text()


# The pages that the build of the documentation makes, and those that it copies.
DOCS, NOTEBOOKS = ROOT / "docs", ROOT / "notebooks"
BUILT = {DOCS / "records.md"}
COPIED = {DOCS / "notebooks" / path.name for path in NOTEBOOKS.glob("*.ipynb")}


def documents():
    pages = sorted(set(DOCS.rglob("*.md")) - BUILT)
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages]


def blocks(path, *languages):
    """Return the fenced code blocks of a document in one of the languages."""
    fence = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [code for language, code in fence.findall(path.read_text()) if language in languages]


def make_targets():
    makefile = (ROOT / "Makefile").read_text()
    return set(re.search(r"^\.PHONY:(.*)$", makefile, re.MULTILINE)[1].split())


def test_every_make_target_named_in_a_document_exists():
    for path in documents():
        named = set(re.findall(r"(?:^|`)make ([a-z][\w-]*)", path.read_text(), re.MULTILINE))
        assert named <= make_targets(), path.name


def test_every_make_target_of_a_workflow_exists():
    workflows = [path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml")]
    named = {
        name for text in workflows for name in re.findall(r"\bmake ([a-z][\w-]*)$", text, re.M)
    }

    assert {"lint", "docs"} <= named <= make_targets()


def test_wheels_are_built_for_the_versions_that_are_named():
    words = "Programming Language :: Python :: 3."
    classifiers = PROJECT["project"]["classifiers"]
    named = {c.removeprefix(words) for c in classifiers if c.startswith(words)}
    built = {name.removeprefix("cp3").removesuffix("-*") for name in CIBUILDWHEEL["build"]}
    cuda = tomllib.loads((ROOT / "packaging" / "cuda" / "cibuildwheel.toml").read_text())

    assert cuda["tool"]["cibuildwheel"]["build"] == CIBUILDWHEEL["build"]
    assert {name.removesuffix("t") for name in built} == named
    assert ("Programming Language :: Python :: Free Threading" in classifiers) == any(
        name.endswith("t") for name in built
    )
    least = re.search(r">= 3\.(\d+)", PROJECT["project"]["requires-python"])[1]
    assert least == min(named, key=int)


def test_requirements_of_the_recipe_are_those_of_the_package():
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
    script = PROJECT["project"]["scripts"]["pysolvers"]

    assert f"- pysolvers = {script}\n" in recipe
    for requirement in (*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]):
        assert f"    - {requirement.replace('>= ', '>=')}\n" in recipe


def command_lines():
    """Return the arguments of every line `pysolvers` or `python -m pysolvers` of the documents."""
    commands = "info|run|bench|reproduce"
    pattern = re.compile(
        rf"(?:^ *|`)\$? ?(?:python -m )?pysolvers ((?:{commands})\b[^`#\n\[]*)", re.MULTILINE
    )
    lines = [m.strip() for path in documents() for m in pattern.findall(path.read_text())]
    return sorted({line for line in lines if line.islower() and not line.startswith("-")})


@pytest.mark.parametrize("line", command_lines())
def test_every_command_line_of_a_document_is_understood(line):
    words = shlex.split(line)
    build_parser(words).parse_args(words)


EXAMPLES = blocks(ROOT / "README.md", "python")
# What the examples of README.md print, in their order.
PRINTED = [
    text for text in re.findall(r"It prints `([^`]+)`", README) if not text.startswith("pysolvers ")
]


def test_readme_shows_code_and_installation_at_its_start():
    lines = README.splitlines()

    assert len(lines) <= 120
    assert lines.index("```python") < 15
    assert next(k for k, line in enumerate(lines) if "pip install" in line) < 30
    code = [line for line in EXAMPLES[0].splitlines() if line.strip()]
    assert len(code) <= 9
    assert len(EXAMPLES) == len(PRINTED) == 2


def lines_of_the_readme():
    """Return the line of code of each row of the table "I have ..."."""
    table = README.partition("## I have ...")[2].partition("##")[0]
    return re.findall(r"^\| [^|]+ \| `(.+?)` \| \[", table, re.MULTILINE)


def system_matrices(*, rows, systems):
    """Return the diagonals of dominant systems along the first axis, and right-hand sides."""
    rng = np.random.default_rng(0)
    lower, upper, rhs = rng.uniform(-1, 1, (3, rows, systems))
    return lower, 3 + rng.random((rows, systems)), upper, rhs


def dense(lower, diag, upper):
    """Return the matrices of systems along the first axis, of shape (systems, rows, rows)."""
    rows, systems = diag.shape
    matrices = np.zeros((systems, rows, rows))
    k = np.arange(rows)
    matrices[:, k, k] = diag.T
    matrices[:, k[1:], k[:-1]] = lower[1:].T
    matrices[:, k[:-1], k[1:]] = upper[:-1].T
    return matrices


def check_columns(run):
    lower, diag, upper, rhs = system_matrices(rows=9, systems=4)
    x = run(lower=lower, diag=diag, upper=upper, rhs=rhs)["x"]
    expected = np.linalg.solve(dense(lower, diag, upper), rhs.T[..., None])[..., 0].T
    np.testing.assert_allclose(x, expected, rtol=1e-12)


def check_options(run):
    # lower, diag, upper are those of I - dt/2 A; the systems of the call lie along the last axis.
    lower, diag, upper, u = (a.T for a in system_matrices(rows=9, systems=4))
    found = run(lower=lower, diag=diag, upper=upper, u=u)["u"]
    left = dense(lower.T, diag.T, upper.T)
    right = 2 * np.eye(9) - left  # I + dt/2 A
    expected = np.linalg.solve(left, right @ u[..., None])[..., 0]
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def check_curves(run):
    interpolate = pytest.importorskip("scipy.interpolate")
    knots, points = np.linspace(0, 1, 20), np.linspace(0, 1, 33)
    curves = np.random.default_rng(0).standard_normal((20, 5))
    values = run(knots=knots, curves=curves, points=points)["values"]
    expected = interpolate.CubicSpline(knots, curves)(points)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


def check_rectangle(run):
    pytest.importorskip("scipy")
    x = (np.arange(64) + 0.5) / 64
    waves = np.multiply.outer(np.sin(np.pi * x), np.sin(2 * np.pi * x))
    eigenvalue = -((2 * 64 * np.sin(np.pi / 128)) ** 2) - (2 * 64 * np.sin(np.pi / 64)) ** 2
    np.testing.assert_allclose(run(f=eigenvalue * waves)["u"], waves, atol=1e-12)


def check_plate(run):
    # Steady by then: four such plates, turned, add up to a plate at 1.
    plate = run()["plate"]
    assert plate.time == 0.5
    assert plate.u[32, 32] == pytest.approx(0.25, abs=1e-4)
    assert (plate.u[1:-1, 0] == 1).all() and (plate.u[1:-1, -1] == 0).all()


def check_small(run):
    b = np.random.default_rng(0).standard_normal(64)
    x = run(b=b)["x"]
    padded = np.pad(x, 1)
    np.testing.assert_allclose(2.5 * x - padded[:-2] - padded[2:], b, rtol=0, atol=1e-14)


JOBS = [check_columns, check_options, check_curves, check_rectangle, check_plate, check_small]


def test_readme_has_six_lines():
    assert len(lines_of_the_readme()) == len(JOBS)


@pytest.mark.parametrize("number", range(len(JOBS)), ids=[check.__name__[6:] for check in JOBS])
def test_line_of_the_readme_solves_its_job(number):
    line = lines_of_the_readme()[number]

    def run(**names):
        names = {name: getattr(pysolvers, name) for name in pysolvers.__all__} | names
        exec(compile(line, "README.md", "exec"), names)
        return names

    JOBS[number](run)


@pytest.mark.slow  # a case of test_cli.py, with the grid of the README
def test_demo_of_the_readme_runs(tmp_path):
    assert "`make demo`" in README
    makefile = (ROOT / "Makefile").read_text()
    (line,) = re.findall(r"^demo:.*\n\t@\$\(BIN\)/python (.+)$", makefile, re.MULTILINE)

    run = subprocess.run(
        [sys.executable, *shlex.split(line)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, map(str, sys.path)))},
    )

    assert run.returncode == 0, run.stderr
    assert "Ghia et al. 1982" in run.stdout and "Botella and Peyret 1998" in run.stdout
    largest = [
        float(text) for text in re.findall(r"^ *largest +([\d.]+)$", run.stdout, re.MULTILINE)
    ]
    assert len(largest) == 4 and max(largest) < 0.02
    # The estimate of the error of the grid is the difference from the spectral table.
    estimate = re.search(
        r"^error of the grid, .*: u .* ([\d.]+), v .* ([\d.]+), psi", run.stdout, re.M
    )
    assert [float(text) for text in estimate.groups()] == pytest.approx(largest[2:], rel=0.1)
    written = sorted(path.name for path in (tmp_path / "results").iterdir())
    assert written == ["cavity_re1000_n129.npz", "cavity_re1000_n129.png"]


def test_demo_says_first_what_it_shows_and_last_what_to_look_at():
    # Without the settings that a make that runs the tests gives to a make below it.
    outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    own = {name: value for name, value in os.environ.items() if name not in outer}
    run = subprocess.run(["make", "-n", "demo"], capture_output=True, text=True, cwd=ROOT, env=own)
    if run.returncode:
        pytest.skip("make cannot list the commands of the demo here")

    first, last = run.stdout.splitlines()[0], run.stdout.rstrip().rpartition("\necho\n")[2]
    assert "This demo solves" in first
    assert re.search(r"Look at results/cavity_re1000_n129\.png.*Next: ", last, re.DOTALL)
    for command in re.findall(r"bin/pysolvers ([^,(\"]+)", last):
        words = shlex.split(command.removesuffix(" then").rstrip("\\\n "))
        build_parser(words).parse_args(words)


def test_every_method_is_documented():
    theory = (ROOT / "docs/theory/tridiagonal.md").read_text()
    methods = (ROOT / "docs/references.md").read_text().partition("## References")[0]

    from pysolvers import _core

    for method in _core.METHODS:
        assert f"`{method}`" in methods, method
        assert f"`{method}`" in theory, method


def test_every_public_name_is_in_the_reference():
    reference = "\n".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))

    for module in public_modules.MODULES:
        for name in module.__all__:
            if not name.startswith("__"):
                assert re.search(rf"\b{name}\b", reference), f"{module.__name__}.{name}"


def anchors(path):
    """Return the anchors of the headings of a document, as the pages have them."""
    titles = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_headings_that_the_readme_links_to_exist():
    for target, anchor in re.findall(r"\]\((docs/[^)#]+)#([^)]+)\)", README):
        assert anchor in anchors(ROOT / target), f"{target}#{anchor}"


def test_what_a_document_links_to_exists():
    for path in documents():
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text()):
            if "://" not in target:
                page = (path.parent / target).resolve()
                assert page.is_file() or page in BUILT | COPIED, f"{path.name}: {target}"


def test_source_files_named_in_a_document_exist():
    files = [f"/{path.relative_to(ROOT).as_posix()}" for path in project_files()]
    name = re.compile(r"`([\w./-]+\.(?:c|h|inc|cu|cuh|py|ipynb))`")
    for path in documents():
        for named in name.findall(path.read_text()):
            assert any(file.endswith(f"/{named}") for file in files), f"{path.name}: {named}"
