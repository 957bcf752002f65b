"""Lines that are cut over devices, with a process for each device, under MPI."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py", reason="mpi4py is not installed")
pytest.importorskip("cupy", reason="CuPy is not installed")

from mpi_job import LAUNCHER, finished, started

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(LAUNCHER is None, reason="needs mpiexec"),
]


@pytest.mark.parametrize("way", ["peers", "nccl"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("count", [2, 3])
def test_ranks_of_one_host(count, dtype, way):
    job = Path(__file__).with_name("peers_job.py")

    status, out, errors = finished(
        started(LAUNCHER, "-n", str(count), sys.executable, job, dtype, way), 120
    )

    assert status == 0, out + errors
    assert out.count("passed") == count
