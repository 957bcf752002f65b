"""Files of measured values."""

import json
import os
from collections.abc import Mapping
from typing import Any

from .._atomic import atomic_write

__all__ = ["write_record"]


def write_record(
    path: str | os.PathLike[str], record: Mapping[str, Any], *, allow_nan: bool = True
) -> None:
    """Write a record as JSON, whole or not at all.

    Parameters
    ----------
    path : path-like
        The file. An old one stays as it is if an error is raised.
    record : mapping
        What `json` can write.
    allow_nan : bool, optional
        Whether values that JSON does not know, NaN and infinities, are written.

    Raises
    ------
    ValueError
        If `allow_nan` is False and there is such a value.
    OSError
        If the file cannot be written.
    """
    text = json.dumps(record, indent=1, allow_nan=allow_nan) + "\n"
    with atomic_write(path) as file:
        file.write(text.encode())
