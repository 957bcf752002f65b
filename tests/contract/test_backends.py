"""Every backend is here, or says why not."""

import subprocess
import sys

import availability
import numpy as np
import pytest

import pysolvers
from pysolvers import _core


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


@pytest.fixture
def cuda():
    """The extension for CUDA, with or without a device."""
    return availability.extension("cuda")


# Functions whose entries of the contract are null in a device backend, or that only hosts need.
HOST_ONLY = {"spikes_solve", "diffusion_combine", "diffusion_least"}


def test_both_extensions_hold_the_same_contract(cuda):
    assert not any(hasattr(cuda, name) for name in HOST_ONLY)
    for name in set(dir(_core)) - HOST_ONLY:
        value = getattr(_core, name)
        if isinstance(value, (dict, int)):
            assert getattr(cuda, name) == value, name
        assert hasattr(cuda, name), name
    assert cuda.NAME == "cuda"


IMPORT = """
import os
from pysolvers._runtime import backends
_cuda = backends._load("cuda")
maps = open("/proc/self/maps").read() if os.path.exists("/proc/self/maps") else ""
print("libcuda" in maps, _cuda.METHODS["auto"])
"""


def test_importing_the_extension_asks_no_driver(cuda):
    run = subprocess.run(
        [sys.executable, "-c", IMPORT], capture_output=True, text=True, timeout=120, check=True
    )

    assert run.stdout.split() == ["False", "0"]


def test_without_a_device_each_call_says_why(cuda):
    reason = cuda.unavailable()
    if reason is None:
        pytest.skip("there is a device")
    calls = [
        lambda: cuda.Buffer(64),
        cuda.Mark,
        cuda.Graph,
        cuda.capture,
        cuda.wait,
        lambda: cuda.order(0, 0),
        lambda: cuda.upload(0, np.ones(3)),
        lambda: cuda.download(np.ones(3), 0),
        lambda: cuda.relayout(np.ones(3), np.ones(3)),
        lambda: cuda.fill_nan(np.ones((1, 1, 3)), np.zeros((1, 1), np.int32)),
        lambda: cuda.copy(np.ones((1, 1, 3)), np.ones((1, 1, 3)), 0),
    ]

    assert cuda.device_count() == 0
    assert cuda.describe() == reason
    for call in calls:
        with pytest.raises(RuntimeError, match=reason):
            call()
