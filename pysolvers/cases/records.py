"""Files of the command line: measured values, results, and figures of them."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .._atomic import atomic_write

__all__ = ["write_record", "write_result"]


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


def write_result(result: Any, stem: Path, draw: Callable[[], Any] | None) -> None:
    """Write a result, and the figure that `draw` returns, and print the names on stderr.

    Parameters
    ----------
    result : Result
        The result.
    stem : path
        The files without their endings.
    draw : callable or None
        Draws the figure, with the error of the grid below it; None for no figure. Without
        matplotlib there is none.
    """
    archive, picture = (stem.with_name(stem.name + ending) for ending in (".npz", ".png"))
    result.save(archive)
    print(f"wrote {archive}", file=sys.stderr)
    if draw is None:
        return
    try:
        figure = draw()
    except ImportError as error:
        print(f"no picture: {error}", file=sys.stderr)
        return
    figure.savefig(picture, dpi=110)
    print(f"wrote {picture}", file=sys.stderr)
