"""Arrays on a GPU that a library alone has; see also tests/unit/test_device_arrays.py."""

import oracle
import pytest

import pysolvers


def test_arrays_of_two_libraries_meet(dominant):
    cupy, torch = pytest.importorskip("cupy"), pytest.importorskip("torch")
    hosts = dominant((4, 60))
    arrays = [cupy.asarray(host) for host in hosts]

    x = pysolvers.solve_tridiagonal(*arrays[:3], torch.from_numpy(hosts[3]).cuda())

    assert isinstance(x, torch.Tensor)
    assert oracle.backward_error(*hosts, x.cpu().numpy()) < 20 * oracle.eps(float)


def test_immutable_out_is_refused(dominant):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    arrays = [jax.device_put(host) for host in dominant((4, 6))]

    with pytest.raises(TypeError, match="out must be writeable"):
        pysolvers.solve_tridiagonal(*arrays, out=arrays[3])


def test_tensors_that_are_not_what_their_memory_says_are_refused(dominant):
    torch = pytest.importorskip("torch")
    lower, diag, upper, rhs = (torch.from_numpy(a).cuda() for a in dominant((4, 6), "c16"))

    with pytest.raises(TypeError, match="rhs requires a gradient"):
        pysolvers.solve_tridiagonal(lower, diag, upper, rhs.clone().requires_grad_())
    with pytest.raises(TypeError, match="upper is a lazy conjugate"):
        pysolvers.solve_tridiagonal(lower, diag, upper.conj(), rhs)
