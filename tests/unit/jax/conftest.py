"""The tests of `pysolvers.jax`: float64, and four devices, of the CPU."""

import pytest


def pytest_configure():
    try:
        import jax
    except ImportError:
        return
    jax.config.update("jax_num_cpu_devices", 4)


@pytest.fixture(autouse=True)
def double_precision():
    """Let JAX have float64."""
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)
