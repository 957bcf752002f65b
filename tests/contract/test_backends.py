"""Every backend is here, or says why not."""

import availability
import numpy as np
import pytest

import pysolvers


@pytest.mark.parametrize("name", availability.BACKENDS)
def test_backend_is_here_or_says_why(name, request):
    reason = availability.missing(name)
    if reason is None:
        return
    assert name in reason
    if name in availability.required(request.config):
        pytest.fail(f"--require-backend {name}: {reason}")
    pytest.skip(reason)


def test_array_of_the_host_is_solved_on_the_host():
    _, info = pysolvers.solve_tridiagonal(0.0, 1.0, 0.0, np.ones(3), return_info=True)

    assert info.backend == "cpu"
