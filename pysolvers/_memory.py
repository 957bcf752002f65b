"""Release of the memory that the package keeps between calls."""

from collections.abc import Callable

from ._errors import raise_for_status
from ._runtime import backends

# What else releases memory that is kept: modules add their functions.
RELEASES: list[Callable[[], None]] = []


def clear_cache() -> None:
    """Return the memory that is kept for later calls.

    On a device, workspace and temporary arrays come from a pool. It keeps what calls release, at
    most a 16th of the memory of the device. This function waits for the device and returns that
    memory to it. It must not be called while a stream of the device is captured.

    On the host only `compact_derivative` keeps memory, its factors, which are released, too: other
    calls allocate and free their workspace, and plan anew, which takes about 0.1 us. Factors and
    solvers keep their memory until they are deleted.

    Raises
    ------
    BackendError
        If a device fails.

    Examples
    --------
    >>> import pysolvers
    >>> pysolvers.clear_cache()
    """
    for release in RELEASES:
        release()
    backend = backends.loaded("cuda")
    if backend is None:
        return
    for device in range(backend.device_count()):
        raise_for_status(backend.trim(device), backend.STATUS, "clear_cache")
