"""Fixtures of the tests that need a CUDA device."""

import os
from pathlib import Path

import availability
import gpu_libraries
import numpy as np
import oracle
import pytest

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """Mark the tests of this folder."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.gpu)
            for mark in gpu_libraries.IGNORED:
                item.add_marker(mark)


@pytest.fixture(scope="session", autouse=True)
def cuda(request):
    """Skip where there is no device, or fail if there must be one."""
    reason = availability.missing("cuda")
    if reason is not None:
        if "cuda" in availability.required(request.config):
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session", params=gpu_libraries.LIBRARIES)
def library(request, cuda):
    """Every array library."""
    return gpu_libraries.library(request.param, request.config)


@pytest.fixture(scope="session", params=["cupy", "torch"])
def streaming(request, cuda):
    """The array libraries that have a current stream."""
    return gpu_libraries.library(request.param, request.config)


@pytest.fixture(scope="session", params=["cupy", "torch", "numba"])
def mutable(request, cuda):
    """The array libraries whose arrays can be written."""
    return gpu_libraries.library(request.param, request.config)


@pytest.fixture
def dominant(rng):
    """Make dominant systems as NumPy arrays."""

    def make(shape, dtype=np.float64):
        return list(oracle.dominant(rng, shape, dtype))

    return make
