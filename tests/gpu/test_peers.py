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


@pytest.mark.parametrize(
    ("dtype", "link", "count"),
    [
        ("float32", "peers", 2),
        ("float32", "nccl", 3),
        ("float64", "peers", 3),
        ("float64", "nccl", 2),
        ("complex64", "peers", 2),
        ("complex64", "nccl", 3),
        ("complex128", "peers", 3),
        ("complex128", "nccl", 2),
    ],
)
def test_ranks_of_one_host(count, dtype, link):
    job = Path(__file__).with_name("peers_job.py")

    status, out, errors = finished(
        started(LAUNCHER, "-n", str(count), sys.executable, job, dtype, link), 120
    )

    assert status == 0, out + errors
    assert out.count("passed") == count
