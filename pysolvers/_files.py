"""Files of results and states: NumPy's npz, written whole or not at all, checked when read.

The member ``header`` is a JSON object. Its entry ``members`` describes every other member by
dtype, shape and whether all values are finite; a file whose members differ was changed after it
was written. Pickles are neither written nor read.
"""

import json
import os
import reprlib
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._atomic import atomic_write
from ._header import Check, count, flag, mapping, record, sequence, text
from ._npy import damage_text, read_member

__all__ = ["SavedFile", "is_rising", "read_npz", "write_npz"]

Array = NDArray[Any]
Path_ = str | os.PathLike[str]

_MEMBERS = mapping(record({"dtype": text(), "shape": sequence(count()), "finite": flag}))


class SavedFile:
    """Header and arrays of a file, to be checked by those who know what it holds.

    Parameters
    ----------
    path : path-like
        The file, for messages.
    facts : object
        The header, but for what all files have.
    arrays : dict of str to ndarray
        The other members.
    """

    def __init__(self, path: Path_, facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        self._path, self._facts, self._arrays = path, facts, arrays

    def header(self, checks: Mapping[str, Check]) -> dict[str, Any]:
        """Return the header after these checks of its entries."""
        with self.naming("header"):
            found: dict[str, Any] = record(checks)("", self._facts)
            return found

    def arrays(
        self, expected: Mapping[str, tuple[tuple[int | None, ...] | None, Any]]
    ) -> dict[str, Any]:
        """Return all arrays by name.

        Parameters
        ----------
        expected : mapping of str to (shape, dtype or dtypes)
            The names are all that there may be. A shape or a length that is None is not checked.
        """
        if missing := expected.keys() - self._arrays.keys():
            raise self.error(f"member {min(missing)!r}", "it is missing")
        if unknown := self._arrays.keys() - expected.keys():
            raise self.error(f"member {min(unknown)!r}", "it does not belong there")
        for name, (shape, dtype) in expected.items():
            array = self._arrays[name]
            shape = (None,) * array.ndim if shape is None else shape
            fits = len(shape) == array.ndim and all(
                wanted in (None, size) for wanted, size in zip(shape, array.shape, strict=True)
            )
            dtypes = dtype if isinstance(dtype, tuple) else (dtype,)
            if not fits or array.dtype not in dtypes:
                sizes = ", ".join("any" if size is None else str(size) for size in shape)
                names = " or ".join(np.dtype(dtype).name for dtype in dtypes)
                raise self.error(
                    f"member {name!r}",
                    f"it must be {names} with shape ({sizes}), "
                    f"got {array.dtype} with shape {array.shape}",
                )
        return dict(self._arrays)

    def require(self, condition: bool, part: str, rule: str) -> None:
        """Raise ValueError that names the file and a part of it unless a condition holds."""
        if not condition:
            raise self.error(part, rule)

    def require_stages(self, seconds: Mapping[str, float], stages: Iterable[str]) -> None:
        """Raise ValueError unless the times of the header are those of these stages."""
        rule = f"seconds must have the keys {', '.join(stages)}"
        self.require(seconds.keys() == set(stages), "header", rule)

    def require_rows(self, history: Array, every: int, last: int, unit: str) -> None:
        """Raise ValueError unless the rows of a history belong to rising multiples of `every`."""
        numbers = history[:, 0]
        self.require(
            is_rising(numbers, last) and not (numbers % every).any(),
            "member 'history'",
            f"the first column must hold rising multiples of {every} up to the {unit}",
        )

    @contextmanager
    def naming(self, part: str) -> Iterator[None]:
        """Name the file and a part of it in errors about values of the file."""
        try:
            yield
        except (TypeError, ValueError, OverflowError) as error:
            raise self.error(part, str(error)) from None

    def error(self, part: str, detail: str) -> ValueError:
        """Return an error that names the file and a part of it."""
        return ValueError(f"{os.fspath(self._path)!r}, {part}: {detail}")


def write_npz(path: Path_, kind: str, facts: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write arrays and facts under exactly this name; a failed write changes nothing.

    Parameters
    ----------
    path : path-like
        The file. Its folder must exist.
    kind : str
        What the file holds; `read_npz` insists on it.
    facts : mapping
        What JSON can represent; floats come back with the same bits.
    arrays : mapping
        Arrays of numbers by name.
    """
    plain = {name: np.asarray(array) for name, array in arrays.items()}
    members = {
        name: {
            "dtype": array.dtype.name,
            "shape": array.shape,
            "finite": bool(np.isfinite(array).all()),
        }
        for name, array in plain.items()
    }
    header = np.array(json.dumps({"kind": kind, "members": members, **facts}))
    everything: dict[str, Any] = {"header": header, **plain}
    with atomic_write(path) as stream:
        np.savez(stream, **everything)


def read_npz(path: Path_, kind: str) -> SavedFile:
    """Return facts and arrays of a file that `write_npz` wrote.

    Raises
    ------
    ValueError
        If the file holds something else, or only a part, or was changed; the message names the
        file, the member and what is wrong.
    OSError
        If the file cannot be read.
    """
    with Path(path).open("rb") as stream:
        reader = _Reader(path, kind)
        return reader.read(stream)


def is_rising(numbers: Array, last: int) -> bool:
    """Whether numbers of iterations are integers that rise from 1 to at most `last`."""
    steps = np.diff(numbers, prepend=0)
    return bool((steps >= 1).all() and (numbers % 1 == 0).all() and (numbers <= last).all())


class _Reader:
    """One file that is read."""

    def __init__(self, path: Path_, kind: str) -> None:
        self._name, self._kind = path, kind

    def read(self, stream: Any) -> SavedFile:
        size = os.fstat(stream.fileno()).st_size
        try:
            archive = zipfile.ZipFile(stream)
        except Exception as error:
            raise self._foreign(damage_text(error)) from None
        members: dict[str, zipfile.ZipInfo] = {}
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name in members or name == member.filename:
                raise self._foreign(f"it has the member {member.filename!r} twice or misnamed")
            members[name] = member
        if "header" not in members:
            raise self._foreign("it has no member 'header'")
        facts = self._facts(self._member(archive, "header", members.pop("header"), size))
        saved = SavedFile(self._name, facts, {})
        with saved.naming("header"):
            described = _MEMBERS("members", facts.pop("members", None))
        if missing := described.keys() - members.keys():
            raise saved.error(f"member {min(missing)!r}", "it is missing")
        if unknown := members.keys() - described.keys():
            raise saved.error(f"member {min(unknown)!r}", "it does not belong there")
        arrays = {}
        for name, member in members.items():
            array = self._member(archive, name, member, size)
            with saved.naming(f"member {name!r}"):
                _compare(array, described[name])
            arrays[name] = array
        return SavedFile(self._name, facts, arrays)

    def _foreign(self, detail: str) -> ValueError:
        path = os.fspath(self._name)
        return ValueError(f"{path!r} holds no {self._kind}, or only a part of it: {detail}")

    def _member(
        self, archive: zipfile.ZipFile, name: str, member: zipfile.ZipInfo, size: int
    ) -> Array:
        with SavedFile(self._name, {}, {}).naming(f"member {name!r}"):
            return read_member(archive, member, size)

    def _facts(self, header: Array) -> dict[str, Any]:
        """Return the header as an object, without its kind."""
        if header.ndim or header.dtype.kind != "U":
            raise self._foreign(f"its header is {header.dtype} with shape {header.shape}, no text")
        try:
            facts = json.loads(str(header[()]), object_pairs_hook=_object)
        except (ValueError, RecursionError) as error:
            raise self._foreign(f"its header is no JSON: {error}") from None
        if not isinstance(facts, dict):
            raise self._foreign(f"its header is no object but {reprlib.repr(facts)}")
        if (found := facts.pop("kind", None)) != self._kind:
            raise self._foreign(f"its header says that it holds {reprlib.repr(found)}")
        return facts


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of the header, whose keys must differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice in an object")
    return found


def _compare(array: Array, described: Mapping[str, Any]) -> None:
    """Raise ValueError unless an array is what the header says."""
    dtype, shape = described["dtype"], described["shape"]
    if array.dtype.name != dtype or array.shape != shape:
        raise ValueError(
            f"it must be {reprlib.repr(dtype)[1:-1]} with shape {reprlib.repr(shape)} as the "
            f"header says, got {array.dtype} with shape {array.shape}"
        )
    if array.dtype.kind not in "fiu":
        raise ValueError(f"it must hold real numbers, got {array.dtype}")
    if described["finite"] and not np.isfinite(array).all():
        raise ValueError(f"it must be finite, but {_first_bad(array)}")


def _first_bad(array: Array) -> str:
    place = tuple(map(int, np.argwhere(~np.isfinite(array))[0]))
    return f"it is {array[place]} at {place}"
