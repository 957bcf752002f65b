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


def pytest_collection_modifyitems(config, items):
    """Mark the tests of this folder; without a device run them only if they are asked for."""
    mine = [item for item in items if HERE in item.path.parents]
    asked = "gpu" in " ".join((*config.args, config.option.markexpr, config.option.keyword))
    if availability.missing("cuda") and not asked and "cuda" not in availability.required(config):
        items[:] = [item for item in items if HERE not in item.path.parents]
        config.hook.pytest_deselected(items=mine)
        return
    for item in mine:
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
