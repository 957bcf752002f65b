"""Split arrays on GPUs under MPI: a rank per device, or ranks that share one."""

import availability
import pytest

pytest.importorskip("mpi4py", reason="needs the extra 'mpi'")

from mpi_job import LAUNCHER, finished, start

_cuda = availability.extension("cuda")


@pytest.mark.skipif(LAUNCHER is None, reason="needs mpiexec")
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_ranks(ranks):
    status, out, errors = finished(start(ranks, "ranks_gpu.py"), 600)

    assert status == 0, errors
    assert out.count("all checks passed") == ranks


@pytest.mark.skipif(LAUNCHER is None, reason="needs mpiexec")
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_solvers(ranks):
    status, out, errors = finished(start(ranks, "ranks_gpu_solvers.py"), 600)

    assert status == 0, errors
    assert out.count("all checks passed") == ranks


@pytest.mark.skipif(LAUNCHER is None, reason="needs mpiexec")
def test_ranks_that_see_all_devices():
    count = _cuda.device_count()
    if count < 2:
        pytest.skip("needs two devices")

    status, out, errors = finished(start(count, "ranks_devices.py"), 600)

    assert status == 0, errors
    assert out.count("all checks passed") == count


@pytest.mark.skipif(LAUNCHER is None, reason="needs mpiexec")
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("what", ["solvers", "refused"])
def test_nccl(what, ranks):
    if reason := availability.missing_nccl():
        pytest.skip(reason)

    status, out, errors = finished(start(ranks, "ranks_gpu_nccl.py", what), 600)

    assert status == 0, errors
    assert out.count("all checks passed") == ranks
