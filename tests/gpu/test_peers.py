"""Lines that are cut over devices, with a process for each device, under MPI."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py", reason="mpi4py is not installed")
pytest.importorskip("cupy", reason="CuPy is not installed")

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("count", [2, 3])
def test_ranks_of_one_host(count, dtype):
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or "mpiexec"
    job = Path(__file__).with_name("peers_job.py")
    command = [mpiexec, "-n", str(count), sys.executable, str(job), dtype]

    # The messages of MPI are of host memory.
    environment = {**os.environ, "MPIR_CVAR_ENABLE_GPU": "0", "PYTHONFAULTHANDLER": "1"}

    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=environment
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("passed") == count
