"""Libraries of NVIDIA that are loaded when they are first used, and the device that they use.

They are found in their packages, in a CUDA toolkit or in the system, in the order of
cuda-pathfinder.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from .._errors import BackendError
from .backends import require
from .interop import device_class


@cache
def shared_library(name: str, purpose: str, packages: str) -> Any:
    """Return a shared library.

    Parameters
    ----------
    name : str
        As cuda-pathfinder has it: ``"cufft"``.
    purpose : str
        What needs the library, with its verb and its name, for messages.
    packages : str
        What pip installs for it.

    Raises
    ------
    BackendError
        If the library is missing.
    """
    try:
        found = import_module("cuda.pathfinder").load_nvidia_dynamic_lib(name)
        return ctypes.CDLL(found.abs_path)
    except Exception as error:
        raise BackendError(f"{purpose}: pip install {packages}: {error}") from error


@contextmanager
def current_device(ordinal: int) -> Iterator[None]:
    """Make a device current for this thread; restore the one before.

    A thread without a current device uses device 0, which is the right one if there is no other.
    """
    if require("cuda").device_count() == 1:
        yield
        return
    kind = device_class()
    before = kind()
    kind(ordinal).set_current()
    try:
        yield
    finally:
        before.set_current()
