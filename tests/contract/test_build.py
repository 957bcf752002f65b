"""The build says what it leaves out, and refuses what it does not understand."""

import os
import re
import runpy
import subprocess
import sys
import tomllib
from email.parser import Parser
from pathlib import Path
from types import SimpleNamespace

import pytest

from pysolvers._runtime import backends

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = PROJECT["version"]
LEFT_OUT = "no nvcc was found, so the CUDA backend is not built"


def setup(*command, **variables):
    """Run setup.py with these variables, by default far enough to choose the extensions."""
    known = {k: v for k, v in os.environ.items() if not k.startswith("PYSOLVERS_")}
    return subprocess.run(
        [sys.executable, "setup.py", *(command or ["--name"])],
        cwd=ROOT,
        env=known | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    "wanted", [{}, pytest.param({"PYSOLVERS_CUDA": "auto"}, marks=pytest.mark.slow)]
)
def test_without_nvcc_the_cuda_backend_is_left_out_aloud(wanted):
    run = setup(NVCC="no-such-compiler", **wanted)

    assert run.returncode == 0, run.stderr
    assert run.stdout.count(LEFT_OUT) == 1


def test_cuda_backend_is_left_out_in_silence_when_unwanted():
    run = setup(NVCC="no-such-compiler", PYSOLVERS_CUDA="0")

    assert run.returncode == 0, run.stderr
    assert LEFT_OUT not in run.stdout


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"PYSOLVERS_CUDA": "1", "NVCC": "no-such-compiler"}, "PYSOLVERS_CUDA=1: no nvcc"),
        ({"PYSOLVERS_CUDA": "yes"}, "PYSOLVERS_CUDA must be auto, 0 or 1, not yes"),
        pytest.param(
            {"PYSOLVERS_DISTRIBUTION": "all"},
            "PYSOLVERS_DISTRIBUTION must be cuda or not set",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"PYSOLVERS_DISTRIBUTION": "cuda", "NVCC": "no-such-compiler"},
            "PYSOLVERS_DISTRIBUTION=cuda: no nvcc",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_wish_that_cannot_be_met_is_an_error(variables, message):
    run = setup(**variables)

    assert run.returncode != 0
    assert message in run.stderr


def nvcc_of(tmp_path, release, codes=()):
    """Return the path of a program that answers as nvcc does when it is asked for its version."""
    program = tmp_path / "nvcc"
    listed = " ".join(f"sm_{code}" for code in codes)
    program.write_text(
        f"#!/bin/sh\ncase $1 in --version) echo 'release {release}, V1';; *) echo {listed};; esac\n"
    )
    program.chmod(0o755)
    return str(program)


def test_distribution_for_cuda_has_the_version_of_the_package_and_requires_it(tmp_path):
    own = {"PYSOLVERS_DISTRIBUTION": "cuda", "NVCC": nvcc_of(tmp_path, "13.0")}
    run = setup("-q", "dist_info", "--output-dir", str(tmp_path), **own)

    assert run.returncode == 0, run.stderr
    (metadata,) = tmp_path.glob("*.dist-info/METADATA")
    found = Parser().parsestr(metadata.read_text())
    package = backends._MODULES["cuda"][1].partition(".")[0]
    assert found["Name"] == backends.CUDA_DISTRIBUTION
    assert found["Version"] == VERSION
    assert found.get_all("Requires-Dist") == [f"pysolvers=={VERSION}"]
    assert found.get_all("Provides-Extra") is None
    assert (metadata.parent / "top_level.txt").read_text() == f"{package}\n"
    assert not (metadata.parent / "entry_points.txt").exists()


def test_distribution_is_not_built_with_another_major_version_of_cuda(tmp_path):
    run = setup(PYSOLVERS_DISTRIBUTION="cuda", NVCC=nvcc_of(tmp_path, "12.9"))

    assert run.returncode != 0
    assert "is of CUDA 12" in run.stderr


def test_no_extra_names_a_distribution_of_this_project():
    # Nobody owns these names on an index before a release.
    for requirements in PROJECT["optional-dependencies"].values():
        assert not any(requirement.startswith("pysolvers") for requirement in requirements)


def commands(tmp_path, monkeypatch, **variables):
    """Return the architectures and the forms of the nvcc command, and the whole command."""
    nvcc = nvcc_of(tmp_path, "13.0", (75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121))
    monkeypatch.delenv("PYSOLVERS_CUDA_ARCH", raising=False)  # the Makefile sets it
    for name, value in {"NVCC": nvcc, "PYSOLVERS_CUDA": "0", **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["setup.py", "--name"])
    names = runpy.run_path(str(ROOT / "setup.py"))
    command = names["Cuda"](SimpleNamespace(include_dirs=[])).command
    return re.findall(r",code=(\w+)", " ".join(command)), command


def test_intermediate_code_serves_every_architecture_without_code_of_its_own(tmp_path, monkeypatch):
    codes, _ = commands(tmp_path, monkeypatch)
    (intermediate,) = [code for code in codes if code.startswith("compute_")]

    compiled = {int(code.removeprefix("sm_")) for code in codes if code.startswith("sm_")}
    assert compiled == {75, 80, 86, 90, 100, 120}
    # A binary runs on the same major and a higher minor version, intermediate code on all newer.
    for capability in (75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121):
        own = any(c // 10 == capability // 10 and c <= capability for c in compiled)
        assert own or int(intermediate.removeprefix("compute_")) <= capability, capability


def test_one_architecture_is_compiled_to_both_forms(tmp_path, monkeypatch):
    codes, command = commands(tmp_path, monkeypatch, PYSOLVERS_CUDA_ARCH="90")

    assert codes == ["sm_90", "compute_90"]
    assert "-lineinfo" not in command


def test_build_for_the_gpus_of_this_machine_has_no_intermediate_code(tmp_path, monkeypatch):
    query = tmp_path / "nvidia-smi"
    query.write_text("#!/bin/sh\necho compute_cap\necho 8.0\necho 9.0\n")
    query.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    codes, _ = commands(tmp_path, monkeypatch, PYSOLVERS_CUDA_ARCH="native")
    assert codes == ["sm_80", "sm_90"]


def test_line_numbers_are_an_option(tmp_path, monkeypatch):
    _, command = commands(tmp_path, monkeypatch, PYSOLVERS_CUDA_LINEINFO="1")

    assert "-lineinfo" in command


def test_distribution_is_compressed_as_much_as_possible(tmp_path, monkeypatch):
    _, command = commands(tmp_path, monkeypatch, PYSOLVERS_DISTRIBUTION="cuda")

    assert "-compress-mode=size" in command


@pytest.fixture
def names(monkeypatch):
    """Return the functions of setup.py."""
    monkeypatch.setenv("PYSOLVERS_CUDA", "0")
    monkeypatch.setattr(sys, "argv", ["setup.py", "--name"])
    return runpy.run_path(str(ROOT / "setup.py"))


def test_cuda_file_with_a_dtype_is_one_unit_for_each(names):
    assert names["units"](["cuda/factor.cu", "csrc/core/b_reals.c", "cuda/c_reals.cu"]) == [
        ("cuda/factor.cu", None),
        ("csrc/core/b_reals.c", None),
        ("cuda/c_reals.cu", "f32"),
        ("cuda/c_reals.cu", "f64"),
    ]


def test_every_unit_of_cuda_has_the_types_of_its_file_and_an_object_file(names):
    sources = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("cuda/**/*.cu"))
    units = names["units"](sources)
    cache = names["ObjectCache"]("_cuda", force=False)
    code = "".join(path.read_text() for path in ROOT.glob("cuda/**/*.cuh"))

    assert len({cache.target(unit) for unit in units}) == len(units) > len(sources)
    for source, dtype in units:
        uses = "PS_NUMBER" in (ROOT / source).read_text()
        assert uses == (dtype is not None), source  # else it does not compile, or is not needed
        assert dtype is None or f"using number_{dtype} = " in code, dtype
    contract = (ROOT / "csrc" / "include" / "pysolvers.h").read_text()
    dtypes = re.findall(r'X\(PS_([FC]\d+), "(?:float|complex)', contract)
    assert list(names["DTYPES"]["dtypes"]) == [dtype.lower() for dtype in dtypes]


@pytest.mark.parametrize("colon", [":", " :"], ids=["gcc", "nvcc"])
def test_object_file_is_compiled_again_only_if_an_input_changed(tmp_path, colon):
    is_current = runpy.run_path(str(ROOT / "tools" / "object_files.py"))["is_current"]
    target, source, header = (tmp_path / name for name in ("one.o", "one.cu", "one.h"))
    for path in (source, header, target):
        path.touch()
        os.utime(path, (1000, 1000))
    assert not is_current(target, tmp_path)  # the list of the inputs is missing

    (tmp_path / "one.d").write_text(f"build/one.o{colon} one.cu \\\n    {header}\n")
    assert is_current(target, tmp_path)

    for path in (source, header):
        os.utime(path, (1001, 1001))
        assert not is_current(target, tmp_path), path
        os.utime(path, (1000, 1000))
    header.unlink()
    assert not is_current(target, tmp_path)


def test_old_setuptools_is_named(tmp_path):
    old = tmp_path / "sitecustomize.py"
    old.write_text("import setuptools\nsetuptools.__version__ = '70.1.0'\n")

    run = setup(PYTHONPATH=str(tmp_path))

    assert run.returncode != 0
    assert "pysolvers needs setuptools 77 or newer to build, this is 70.1.0" in run.stderr
    assert "Traceback" not in run.stderr
