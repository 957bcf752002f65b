"""Modules of the optional extras of the package, imported at their first use."""

from importlib import import_module
from typing import Any


def extra_module(name: str, extra: str) -> Any:
    """Return a module, or raise ModuleNotFoundError with the remedy.

    A module that is installed but cannot be imported, as matplotlib with a backend that it does
    not know in MPLBACKEND, raises ImportError.
    """
    package = name.partition(".")[0]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in (package, name):
            raise
        text = (
            f"{package} is not installed: pip install {package}, or install pysolvers with its "
            f"extra '{extra}'"
        )
        raise ModuleNotFoundError(text, name=package) from None
    except (ValueError, OSError) as error:
        raise ImportError(f"{package} cannot be imported: {error}", name=package) from error
