"""Which backends are here, and which must be."""

import functools

import numpy as np
import pytest

import pysolvers
from pysolvers._runtime import backends
from pysolvers._runtime.nccl import NcclCommunicator

BACKENDS = ("cpu", "cuda")


@functools.cache
def missing(backend):
    """Return why `backend` cannot run here, or None if it can."""
    one = np.ones(1)
    try:
        pysolvers.solve_tridiagonal(one, one, one, one, device=backend)
    except pysolvers.BackendError as error:
        return str(error)
    return None


def missing_nccl():
    """Return why NCCL is not here, or None if it is."""
    try:
        NcclCommunicator.version()
    except pysolvers.BackendError as error:
        return str(error)
    return None


def extension(backend):
    """Return the module of `backend`, with or without a device, or skip what asks for it."""
    found = backends._load(backend)
    if isinstance(found, str):
        pytest.skip(found, allow_module_level=True)
    return found


def required(config):
    """Return the names that --require-backend gives."""
    names = {name for name in config.getoption("--require-backend").split(",") if name}
    if names - set(BACKENDS):
        raise pytest.UsageError(f"--require-backend knows {', '.join(BACKENDS)}, got {names}")
    return names
