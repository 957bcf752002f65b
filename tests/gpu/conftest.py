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
IGNORED = ("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning")


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            for name in IGNORED:  # of the array libraries among themselves
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{name}"))


@pytest.fixture(scope="session", autouse=True)
def cuda(request):
    """Skip where there is no device, or fail if there must be one."""
    reason = availability.missing("cuda")
    if reason is not None:
        if "cuda" in availability.required(request.config):
            pytest.fail(reason)
        pytest.skip(reason)


def library_fixture(request):
    kind = gpu_libraries.LIBRARIES[request.param]
    try:
        return kind()
    except ImportError as error:
        if "cuda" in availability.required(request.config):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session", params=gpu_libraries.LIBRARIES)
def library(request, cuda):
    """Every array library."""
    return library_fixture(request)


@pytest.fixture(scope="session", params=["cupy", "torch"])
def streaming(request, cuda):
    """The array libraries that have a current stream."""
    return library_fixture(request)


@pytest.fixture(scope="session", params=["cupy", "torch", "numba"])
def mutable(request, cuda):
    """The array libraries whose arrays can be written."""
    return library_fixture(request)


@pytest.fixture
def dominant(rng):
    """Make dominant systems as NumPy arrays."""

    def make(shape, dtype=np.float64):
        return list(oracle.dominant(rng, shape, dtype))

    return make
