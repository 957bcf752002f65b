"""The release of memory that the package keeps, without a device."""

import subprocess
import sys
import types

import pytest

import pysolvers
from pysolvers import _core
from pysolvers._runtime import backends


def device_module(monkeypatch, status):
    """Pretend that a backend with three devices was loaded; return the devices it trims."""
    trimmed = []

    def trim(device):
        trimmed.append(device)
        return status

    module = types.SimpleNamespace(device_count=lambda: 3, trim=trim, STATUS=_core.STATUS)
    monkeypatch.setattr(backends, "loaded", {"cuda": module}.get)
    return trimmed


def test_clear_cache_trims_every_device(monkeypatch):
    trimmed = device_module(monkeypatch, 0)
    pysolvers.clear_cache()
    assert trimmed == [0, 1, 2]


def test_clear_cache_raises_the_error_of_a_device(monkeypatch):
    failure = next(k for k, (name, _) in _core.STATUS.items() if name == "PS_DEVICE_FAILURE")
    device_module(monkeypatch, failure)
    with pytest.raises(pysolvers.BackendError, match=r"clear_cache: .*PS_DEVICE_FAILURE"):
        pysolvers.clear_cache()


def test_clear_cache_loads_no_backend():
    program = (
        "import sys, pysolvers; pysolvers.clear_cache();"
        "print(any(name.endswith('._cuda') for name in sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout == "False\n"
