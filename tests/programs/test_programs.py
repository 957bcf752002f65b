"""Programs in C, C++ and Fortran, and an extension module, call the functions of the package."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import pysolvers

HERE = Path(__file__).parent
COMPILERS = {".c": ("CC", "cc"), ".cpp": ("CXX", "c++"), ".f90": ("FC", "gfortran")}


def compiler_of(suffix):
    variable, name = COMPILERS[suffix]
    found = shutil.which(os.environ.get(variable, name).split()[-1])
    if found is None:
        pytest.skip(f"there is no {name}")
    return found


def run(*command, **options):
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def config(*options):
    return run(sys.executable, "-m", "pysolvers", "config", *options).split()


@pytest.fixture(autouse=True)
def _library():
    if not list(Path(pysolvers.__file__).with_name("lib").glob("libpysolvers.*")):
        pytest.skip("the library is not built")


def numbers(text):
    return [float(word.strip(",")) for word in text.split() if word.strip("-,")[0].isdigit()]


def test_c(tmp_path):
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    command = [compiler_of(".c"), *flags, *config("--cflags"), HERE / "heat.c"]
    run(*command, "-o", tmp_path / "heat", *config("--libs"), "-lm")

    error, singular = run(tmp_path / "heat").splitlines()

    assert numbers(error)[0] < 1e-13
    assert singular == "status 1, nan nan 1 1" or singular == "status 1, -nan -nan 1 1"


def test_cpp(tmp_path):
    command = [compiler_of(".cpp"), "-std=c++17", "-Wall", *config("--cflags")]
    program = tmp_path / "periodic"
    run(*command, HERE / "periodic.cpp", "-o", program, *config("--libs"))

    solved, repeated = run(program).splitlines()

    status, residual = numbers(solved)
    assert status == 0
    assert residual < 1e-13
    assert repeated == "operands overlap, or x repeats an element"


@pytest.mark.slow  # the interface of C, which test_c and test_cpp use
def test_fortran(tmp_path):
    compiler = compiler_of(".f90")
    (module,) = config("--fortran")
    command = [compiler, "-Wall", module, HERE / "columns.f90", "-o", "columns"]
    run(*command, *config("--libs"), cwd=tmp_path)

    solved, contiguous, text = run(tmp_path / "columns").splitlines()

    for line in (solved, contiguous):
        status, difference = numbers(line)
        assert status == 0
        assert difference < 1e-14
    assert text == "operands overlap, or x repeats an element"


def test_pkg_config_has_the_flags():
    if shutil.which("pkg-config") is None:
        pytest.skip("there is no pkg-config")
    (folder,) = config("--pkgconfig")
    environment = os.environ | {"PKG_CONFIG_PATH": folder}

    found = run("pkg-config", "--cflags", "--libs", "pysolvers", env=environment).split()

    include = next(word[2:] for word in found if word.startswith("-I"))
    assert Path(include).samefile(pysolvers.get_include())
    library = next(word[2:] for word in found if word.startswith("-L"))
    assert list(Path(library).glob("libpysolvers.*"))


@pytest.mark.slow
def test_cmake(tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("there is no cmake")
    (folder,) = config("--cmake")
    run("cmake", "-S", HERE, "-B", tmp_path, f"-Dpysolvers_DIR={folder}")
    run("cmake", "--build", tmp_path)

    assert numbers(run(tmp_path / "heat"))[0] < 1e-13


def test_extension_module(tmp_path):
    target = tmp_path / f"calls{sysconfig.get_config_var('EXT_SUFFIX')}"
    folders = [pysolvers.get_include(), sysconfig.get_path("include")]
    flags = ["-shared", "-fPIC", *(f"-I{folder}" for folder in folders)]
    if os.uname().sysname == "Darwin":
        flags += ["-undefined", "dynamic_lookup"]
    run(compiler_of(".c"), *flags, HERE / "module.c", "-o", target)
    spec = importlib.util.spec_from_file_location("calls", target)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    status, *x = module.solve(1.0, 2.0, 3.0)

    assert status == 0
    matrix = np.diag([4.0] * 3) + np.diag([1.0] * 2, 1) + np.diag([1.0] * 2, -1)
    np.testing.assert_allclose(x, np.linalg.solve(matrix, [1.0, 2.0, 3.0]), rtol=1e-14)
