"""Files of results and states: NumPy's npz, written whole or not at all."""

import json
import os
import secrets
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from errno import ENOENT
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
    if not target.parent.is_dir():
        raise FileNotFoundError(ENOENT, "there is no such folder", os.fspath(target.parent))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as stream:
            everything: dict[str, Any] = {"header": header, **arrays}
            np.savez(stream, **everything)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_npz(path: Path_, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return facts and arrays of a file that `write_npz` wrote.

    Raises
    ------
    ValueError
        If the file holds something else, or only a part.
    """
    facts: dict[str, Any] = {}
    arrays: dict[str, NDArray[Any]] = {}
    with Path(path).open("rb") as stream, suppress(KeyError, ValueError, zipfile.BadZipFile):
        if zipfile.is_zipfile(stream):
            stream.seek(0)
            arrays = dict(np.load(stream, allow_pickle=False))
            facts = json.loads(str(arrays.pop("header")))
    if facts.pop("kind", None) != kind:
        raise ValueError(f"{os.fspath(path)!r} holds no {kind}, or only a part of it")
    return facts, arrays
