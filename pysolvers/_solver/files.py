"""Files of results and states: NumPy's npz, written whole or not at all, checked when read.

The member ``header`` is a JSON object with the kind of the file and the number of the format. Its
entry ``members`` describes every other member by dtype, shape and whether all values are finite; a
file whose members differ was changed after it was written. Pickles are neither written nor read.
"""

import errno
import json
import os
import reprlib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, asdict, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, get_type_hints

import numpy as np
from numpy.typing import NDArray

from .._atomic import atomic_write
from .schema import Check, Member, check_of, checks_of, record

Array = NDArray[Any]
Path_ = str | os.PathLike[str]

FORMAT = 1
"""Number of the format; it grows when a file of the same kind gets other contents."""

_DIGITS = 20  # of an integer of 64 bits with its sign
_LONGEST = 200  # characters of the text of another library in a message


class _Described(NamedTuple):
    """A member, as the header describes it."""

    dtype: str
    shape: tuple[int, ...]
    finite: bool


_DESCRIBED = check_of(dict[str, _Described])


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
        with naming(self._path, "header"):
            found: dict[str, Any] = record(checks)("", self._facts)
            return found

    def arrays(self, expected: Mapping[str, Member]) -> dict[str, Any]:
        """Return all arrays by name; `expected` has all names that there may be."""
        needed = {name for name, member in expected.items() if not member.is_optional}
        if missing := needed - self._arrays.keys():
            raise self.error(f"member {min(missing)!r}", "it is missing")
        if unknown := self._arrays.keys() - expected.keys():
            raise self.error(f"member {min(unknown)!r}", "it does not belong there")
        for name, array in self._arrays.items():
            self.require_array(name, array, *expected[name][:2])
        return dict(self._arrays)

    def require_array(
        self, name: str, array: Array, shape: tuple[int | None, ...] | None, dtypes: Any
    ) -> None:
        """Raise ValueError unless a member has this shape and one of these dtypes."""
        shape = (None,) * array.ndim if shape is None else shape
        fits = len(shape) == array.ndim and all(
            wanted in (None, size) for wanted, size in zip(shape, array.shape, strict=True)
        )
        dtypes = dtypes if isinstance(dtypes, tuple) else (dtypes,)
        if not fits or array.dtype not in dtypes:
            sizes = ", ".join("any" if size is None else str(size) for size in shape)
            names = " or ".join(np.dtype(dtype).name for dtype in dtypes)
            raise self.error(
                f"member {name!r}",
                f"it must be {names} with shape ({sizes}), "
                f"got {array.dtype} with shape {array.shape}",
            )

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

    def error(self, part: str, detail: str) -> ValueError:
        """Return an error that names the file and a part of it."""
        return _error(self._path, part, detail)


@contextmanager
def naming(path: Path_, part: str) -> Iterator[None]:
    """Name a file and a part of it in errors about values of the file."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        raise _error(path, part, str(error)) from None


def _error(path: Path_, part: str, detail: str) -> ValueError:
    """Return the error of a part of a file, with the path first."""
    return ValueError(f"{os.fspath(path)!r}, {part}: {detail}")


class Saved:
    """A frozen dataclass whose annotations say what its files contain; see `schema`.

    A field without a default is written: arrays, and those of a field that is a dataclass of
    arrays, as members of the file, all else in its header.
    """

    _KIND: ClassVar[str]  # of its files
    _PREFIX: ClassVar[str | None] = None  # of the members of a history; by default its name and _

    def _write(self, path: Path_) -> None:
        """Write a file of exactly this name; a failed write leaves an old file as it is."""
        kind: Any = type(self)
        facts, arrays, tables = parts_of(kind)
        values = {name: getattr(self, name) for name in arrays}
        for name, table in tables.items():
            of_table, prefix = getattr(self, name), self._prefix(name)
            values |= {prefix + column: getattr(of_table, column) for column in checks_of(table)}
        present = {name: array for name, array in values.items() if array is not None}
        write_npz(path, self._KIND, {name: getattr(self, name) for name in facts}, present)

    @classmethod
    def _read(cls, path: Path_) -> Self:
        """Return what `_write` wrote, after all checks; see `read_npz`."""
        kind: Any = cls
        checks, members, tables = parts_of(kind)
        saved = read_npz(path, cls._KIND)
        facts, expected = saved.header(checks), dict(members)
        for name, table in tables.items():
            expected |= {cls._prefix(name) + c: part for c, part in checks_of(table).items()}
        arrays = saved.arrays(expected)
        parts: dict[str, Any] = {name: arrays.get(name) for name in members}
        for name, table in tables.items():
            parts[name] = table(**{c: arrays[cls._prefix(name) + c] for c in checks_of(table)})
        found = cls(**parts, **facts)
        found._check(saved)
        return found

    @classmethod
    def _prefix(cls, name: str) -> str:
        """Return the beginning of the names of the members of a table."""
        return f"{name}_" if cls._PREFIX is None else cls._PREFIX

    def _check(self, saved: SavedFile) -> None:
        """Raise ValueError if parts of what was read contradict each other."""


@cache
def parts_of(kind: Any) -> tuple[dict[str, Check], dict[str, Member], dict[str, Any]]:
    """Return checks of the facts, arrays, and dataclasses of arrays, of a dataclass."""
    hints = get_type_hints(kind, include_extras=True)
    saved = [field.name for field in fields(kind) if field.default is MISSING]
    tables = {n: hints[n] for n in saved if is_dataclass(hints[n]) and _is_table(hints[n])}
    found = {name: check_of(hints[name]) for name in saved if name not in tables}
    arrays = {name: part for name, part in found.items() if isinstance(part, Member)}
    return {name: part for name, part in found.items() if name not in arrays}, arrays, tables


def _is_table(kind: Any) -> bool:
    """Return whether all fields of a dataclass are arrays."""
    return all(isinstance(part, Member) for part in checks_of(kind).values())


def write_npz(path: Path_, kind: str, facts: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write arrays and facts under exactly this name; a failed write changes nothing.

    Parameters
    ----------
    path : path-like
        The file. Its folder must exist.
    kind : str
        What the file holds; `read_npz` insists on it.
    facts : mapping
        What JSON can represent, and dataclasses; floats come back with the same bits.
    arrays : mapping
        Arrays of numbers by name.
    """
    plain = {name: np.asarray(array) for name, array in arrays.items()}
    members = {
        name: _Described(array.dtype.name, array.shape, bool(np.isfinite(array).all()))._asdict()
        for name, array in plain.items()
    }
    header = {"kind": kind, "format": FORMAT, "members": members}
    for name, fact in facts.items():
        header[name] = fact._asdict() if hasattr(fact, "_asdict") else fact
    everything: dict[str, Any] = {"header": np.array(json.dumps(header, default=asdict)), **plain}
    with atomic_write(path) as stream:
        np.savez(stream, **everything)


def read_npz(path: Path_, kind: str) -> SavedFile:
    """Return facts and arrays of a file that `write_npz` wrote.

    Raises
    ------
    ValueError
        If the file holds something else, or only a part, or was changed, or has another format;
        the message names the file, the member and what is wrong.
    OSError
        If the file cannot be read.
    """
    with Path(path).open("rb") as stream, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of headers of arrays that are damaged
        return _Reader(path, kind).read(stream)


def is_rising(numbers: Array, last: int) -> bool:
    """Whether numbers of iterations are integers that rise from 1 to at most `last`."""
    steps = np.diff(numbers, prepend=0)
    return bool((steps >= 1).all() and (numbers % 1 == 0).all() and (numbers <= last).all())


class _Reader:
    """One file that is read."""

    def __init__(self, path: Path_, kind: str) -> None:
        self._name, self._kind = path, kind

    def read(self, stream: Any) -> SavedFile:
        """Return header and arrays, after all checks that hold for every kind of file."""
        try:
            archive: Any = np.load(stream, allow_pickle=False)
            names = [member.filename for member in archive.zip.infolist()]
        except Exception as error:
            raise self._foreign(_damage_text(error)) from None
        for name in names:
            if names.count(name) > 1 or not name.endswith(".npy"):
                raise self._foreign(f"it has the member {name!r} twice or misnamed")
        if "header" not in archive.files:
            raise self._foreign("it has no member 'header'")
        facts = self._facts(self._member(archive, "header"))
        saved = SavedFile(self._name, facts, {})
        with naming(self._name, "header"):
            described = _DESCRIBED("members", facts.pop("members", None))
        found = set(archive.files) - {"header"}
        if missing := described.keys() - found:
            raise saved.error(f"member {min(missing)!r}", "it is missing")
        if unknown := found - described.keys():
            raise saved.error(f"member {min(unknown)!r}", "it does not belong there")
        arrays = {}
        for name, member in described.items():
            array = self._member(archive, name)
            with naming(self._name, f"member {name!r}"):
                _compare(array, member)
            arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
        return SavedFile(self._name, facts, arrays)

    def _foreign(self, detail: str) -> ValueError:
        """Return the error of a file of another kind."""
        path = os.fspath(self._name)
        return ValueError(f"{path!r} holds no {self._kind}, or only a part of it: {detail}")

    def _member(self, archive: Any, name: str) -> Array:
        """Return an array. The errors of damaged members have many types."""
        try:
            return np.asarray(archive[name])
        except Exception as error:
            text = _damage_text(error)
            raise _error(self._name, f"member {name!r}", text) from None

    def _facts(self, header: Array) -> dict[str, Any]:
        """Return the header as an object, without its kind and the number of its format."""
        if header.ndim or header.dtype.kind != "U":
            raise self._foreign(f"its header is {header.dtype} with shape {header.shape}, no text")
        try:
            facts = json.loads(str(header[()]), object_pairs_hook=_object, parse_int=_integer)
        except (ValueError, RecursionError) as error:
            raise self._foreign(f"its header is no JSON: {error}") from None
        if not isinstance(facts, dict):
            raise self._foreign(f"its header is no object but {reprlib.repr(facts)}")
        if (found := facts.pop("kind", None)) != self._kind:
            raise self._foreign(f"its header says that it holds {reprlib.repr(found)}")
        if (found := facts.pop("format", None)) != FORMAT or isinstance(found, bool):
            raise ValueError(
                f"{os.fspath(self._name)!r} has the format {reprlib.repr(found)}, and this version "
                f"of pysolvers reads the format {FORMAT} only"
            )
        return facts


def _damage_text(error: Exception) -> str:
    """Return what an error says about damaged data; raise it again if data cannot cause it."""
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
        raise error
    reason = str(error)[:_LONGEST] or type(error).__name__
    if isinstance(error, MemoryError):
        return f"it is damaged, or larger than the memory: {reason}"
    return f"it is damaged: {reason}"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of the header, whose keys must differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice in an object")
    return found


def _integer(digits: str) -> int:
    """Return an integer of the header, which must have at most 64 bits."""
    if len(digits) > _DIGITS:
        raise ValueError(f"the integer {digits[:_DIGITS]}... has too many digits")
    return int(digits)


def _compare(array: Array, described: _Described) -> None:
    """Raise ValueError unless an array is what the header says."""
    dtype, shape, finite = described
    if array.dtype.name != dtype or array.shape != shape:
        raise ValueError(
            f"it must be {reprlib.repr(dtype)[1:-1]} with shape {reprlib.repr(shape)} as the "
            f"header says, got {array.dtype} with shape {array.shape}"
        )
    if array.dtype.kind not in "fiub":
        raise ValueError(f"it must hold real numbers or truth values, got {array.dtype}")
    if finite and not np.isfinite(array).all():
        place = tuple(map(int, np.argwhere(~np.isfinite(array))[0]))
        raise ValueError(f"it must be finite, but it is {array[place]} at {place}")
