"""The stubs of the extensions say what the extensions hold."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("module", ["pysolvers._core", "pysolvers._cuda"])
def test_stub_agrees_with_the_extension(module, tmp_path):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} was not built")
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
