"""Builds the C programs of this folder and runs them on every instruction set.

`test_blocks.c` compiles all line kernels for one more number, which takes longer than all other
programs together: it runs with the slow tests, and the others check its syntax.

The programs are linked with the object files of the build where there are some; otherwise, and
under the sanitizers that PYSOLVERS_SANITIZE names, the library is compiled here.
"""

from __future__ import annotations

import os
import platform
import runpy
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CSRC = ROOT / "csrc"
OBJECTS = ROOT / "build" / "objects" / "_core" / "csrc"
PROGRAMS = sorted(path.stem for path in HERE.glob("test_*.c"))
# The last one is the best that a machine has; "avx2" differs from it where there is AVX-512.
INSTRUCTION_SETS = ("baseline", pytest.param("avx2", marks=pytest.mark.slow), "avx512")
SLOW = ("test_blocks",)
LONG = ("test_blocks", "test_spikes", "test_tridiag")  # which run longer than they compile

COMPILER = shutil.which(os.environ.get("CC", "cc"))
SANITIZE = os.environ.get("PYSOLVERS_SANITIZE")
FLAGS = [
    "-std=c11",
    "-D_POSIX_C_SOURCE=200809L",
    "-O0",
    "-g",
    "-ffp-contract=off",
    "-pthread",
    f"-I{CSRC / 'include'}",
    f"-I{CSRC / 'cpu'}",
]
if SANITIZE:
    FLAGS += [f"-fsanitize={SANITIZE}", "-fno-sanitize-recover=all"]
ISA_FLAGS = {
    "avx2": ["-mavx2"],
    "avx512": ["-mavx512f", "-mavx512dq", "-mavx512vl"],
}
IS_X86 = platform.machine() in {"x86_64", "AMD64"}


def library_sources():
    """All C files below csrc that need no Python, with the flags of each."""
    folders = ("core", "cpu")
    sources = sorted(path for folder in folders for path in (CSRC / folder).rglob("*.c"))
    sets = {path: path.stem.split("_")[-1] for path in sources if path.parent.name == "isa"}
    flags = {path: ISA_FLAGS.get(name, []) for path, name in sets.items()}
    return [(s, flags.get(s, [])) for s in sources if IS_X86 or not flags.get(s)]


def objects_of_the_build():
    """The object files of the build, or nothing where one is missing or out of date."""
    is_current = runpy.run_path(str(ROOT / "tools" / "object_files.py"))["is_current"]
    found = [OBJECTS / s.relative_to(CSRC).with_suffix(".o") for s, _ in library_sources()]
    return found if all(is_current(target, ROOT) for target in found) else []


@pytest.fixture(scope="session")
def build(request, tmp_path_factory):
    """Compile what is missing, two files at a time; return the folder of the programs."""
    if COMPILER is None:
        pytest.fail("the C tests need a C compiler: set CC")
    folder = tmp_path_factory.mktemp("c")
    macros = ["-DPS_HAVE_AVX2", "-DPS_HAVE_AVX512"] if IS_X86 else []

    def compile_file(item):
        source, flags = item
        target = folder / f"{source.parent.name}_{source.stem}.o"
        command = [COMPILER, *FLAGS, *macros, *flags, "-c", source, "-o", target]
        subprocess.run(command, check=True)
        return target

    items = (item for item in request.session.items if "build" in item.fixturenames)
    names = sorted({item.callspec.params["program"] for item in items})
    programs = [(HERE / f"{name}.c", ["-O1"] * (name in LONG)) for name in names]
    library = [] if SANITIZE else objects_of_the_build()
    with ThreadPoolExecutor(max_workers=2) as pool:
        library = library or list(pool.map(compile_file, library_sources()))
        mains = list(pool.map(compile_file, programs))
    for main, name in zip(mains, names, strict=True):
        command = [COMPILER, *FLAGS, main, *library, "-lm", "-o", folder / name]
        subprocess.run(command, check=True)
    return folder


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
@pytest.mark.parametrize(
    "program", [pytest.param(p, marks=[pytest.mark.slow] * (p in SLOW)) for p in PROGRAMS]
)
def test_program_reports_no_failure(build, program, instruction_set):
    environment = os.environ | {"PYSOLVERS_ISA": instruction_set}
    environment.pop("LD_PRELOAD", None)

    run = subprocess.run(
        [build / program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("program", SLOW)
def test_slow_program_is_valid_c(program):
    if COMPILER is None:
        pytest.fail("the C tests need a C compiler: set CC")
    flags = [*FLAGS, "-Werror=implicit-function-declaration", "-fsyntax-only"]

    subprocess.run([COMPILER, *flags, HERE / f"{program}.c"], check=True)
