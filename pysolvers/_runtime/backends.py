"""The backends by name: their modules, or the reasons why they are not available.

A backend is an extension module that implements the interface ``pysolvers.h``. It is
imported at its first use.
"""

import importlib
import re
from functools import cache
from pathlib import Path
from types import ModuleType

from .._environment import check_environment
from .._errors import BackendError

__all__ = ["names", "parse_device", "require", "unavailable_reason"]

_MODULES = {"cpu": "pysolvers._core", "cuda": "pysolvers._cuda"}

# What to do if a module was not built.
_REMEDIES = {
    "cpu": "install the package with pip install . in a copy of the source",
    "cuda": "build it with PYSOLVERS_CUDA=1 pip install . in a copy of the source, where nvcc is "
    "found, or use device='cpu'",
}

_ROOT = Path(__file__).parents[2]

# Number of the contract csrc/include/pysolvers.h. The build compiles it into the extensions, so
# that an extension built before a change of the contract is refused. Raise it with every change.
ABI_VERSION = 10


def names() -> tuple[str, ...]:
    """Return the names of all backends, also of those that are not available."""
    return tuple(_MODULES)


@cache
def _load(name: str) -> ModuleType | str:
    """Return the module of a backend, or the reason why it is not available."""
    if name == "cpu":
        check_environment()
    module_name = _MODULES[name]
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name:
            return f"{module_name} cannot be imported: {error}"
        return f"{module_name} was not built{_remedy(name)}"
    except ImportError as error:
        return f"{module_name} cannot be imported: {error}"
    if module.ABI != ABI_VERSION:
        return (
            f"{module_name} was built for contract {module.ABI}, "
            f"this package needs {ABI_VERSION}: rebuild it"
        )
    return module


def _remedy(name: str) -> str:
    """Return what to do about a module that was not built, as the end of a sentence."""
    if name == "cpu" and (_ROOT / "setup.py").is_file():
        return (
            f" in {_ROOT}: Python imports the package from this copy of the source, also if it is "
            "installed. Start Python in another folder, or compile the copy with pip install -e ."
        )
    return f": {_REMEDIES[name]}" if name in _REMEDIES else ""


def unavailable_reason(name: str) -> str | None:
    """Return why a backend is not available, or None if it is."""
    loaded = _load(name)
    return loaded if isinstance(loaded, str) else _device_reason(loaded)


def _device_reason(module: ModuleType) -> str | None:
    """Return why the device of a backend is not available, or None."""
    unavailable = getattr(module, "unavailable", None)
    return unavailable() if unavailable is not None else None


def require(name: str) -> ModuleType:
    """Return the extension module of a backend.

    Parameters
    ----------
    name : str
        One of `names`.

    Returns
    -------
    module
        The extension, built for the contract of this package.

    Raises
    ------
    BackendError
        If the backend is not available; the message gives the reason.
    """
    loaded = _load(name)
    reason = loaded if isinstance(loaded, str) else _device_reason(loaded)
    if isinstance(loaded, str) or reason is not None:
        raise BackendError(f"the backend {name!r} is not available: {reason}")
    return loaded


def parse_device(device: str | None) -> tuple[str, int]:
    """Split a device text into backend and ordinal.

    Parameters
    ----------
    device : str or None
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ...; None is the CPU.

    Returns
    -------
    backend : str
        One of `names`.
    ordinal : int
        Number of the device; 0 if not given.

    Raises
    ------
    TypeError
        If `device` is neither text nor None.
    ValueError
        If `device` names no backend, or gives a number for the CPU.
    """
    if device is None:
        return "cpu", 0
    if not isinstance(device, str):
        raise TypeError(f"device must be a str or None, got {type(device).__name__}")
    match = re.fullmatch(r"(cpu)|(cuda)(?::(\d+))?", device)
    if match is None:
        raise ValueError(f"device must be 'cpu', 'cuda' or 'cuda:N', got {device!r}")
    return match[1] or match[2], int(match[3] or 0)
