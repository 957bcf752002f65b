"""Files of results and states: NumPy's npz, written whole or not at all."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["read_npz", "write_npz"]

Path_ = str | os.PathLike[str]


def write_npz(
    path: Path_, kind: str, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write arrays and facts under exactly this name; a failed write changes nothing.

    Parameters
    ----------
    path : path-like
        The file. Its folder must exist.
    kind : str
        What the file holds; `read_npz` insists on it.
    facts : mapping
        What JSON can tell; floats come back with the same bits.
    arrays : mapping
        Arrays by name.
    """
    target = Path(path)
    header = np.array(json.dumps({"kind": kind, **facts}))
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            everything: dict[str, Any] = {"header": header, **arrays}
            np.savez(stream, **everything)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def read_npz(path: Path_, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return facts and arrays of a file that `write_npz` wrote.

    Raises
    ------
    ValueError
        If the file holds something else.
    """
    with np.load(path, allow_pickle=False) as stored:
        arrays = dict(stored)
    facts = json.loads(str(arrays.pop("header"))) if "header" in arrays else {}
    if facts.pop("kind", None) != kind:
        raise ValueError(f"{os.fspath(path)!r} holds no {kind}")
    return facts, arrays
