"""A group of torch.distributed: each process is started by itself."""

import socket
import sys

import pytest
from mpi_job import SCRIPTS, finished, started

torch = pytest.importorskip("torch")


@pytest.mark.slow  # for the imports of torch
@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch has no distributed")
def test_processes():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    script = [sys.executable, SCRIPTS / "ranks_torch.py"]
    jobs = [started(*script, str(rank), "3", str(port)) for rank in range(3)]
    for job in jobs:
        status, out, errors = finished(job)
        assert status == 0, errors
        assert "all checks passed" in out
