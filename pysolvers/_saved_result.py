"""Results that are written to npz files and read again, shared by the results of all solvers."""

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from ._files import SavedFile, read_npz, write_npz
from ._header import Check
from ._shown import Shown

__all__ = ["Member", "SavedResult"]

Member = tuple[tuple[int | None, ...], Any]
"""Shape and dtype, or dtypes, of an array in a file; a length that is None is not checked."""


class SavedResult(Shown):
    """A result: a dataclass of facts, arrays and possibly a history, which contains arrays.

    A subclass names what its files contain: their kind, the facts with the checks of their
    values, the arrays, and class and arrays of the history. Other attributes are not written.
    """

    _KIND: ClassVar[str]
    _FACTS: ClassVar[Mapping[str, Check]]
    _ARRAYS: ClassVar[Mapping[str, Member]]
    _HISTORY: ClassVar[type[Any] | None] = None
    _COLUMNS: ClassVar[Mapping[str, Member]] = {}
    _PREFIX: ClassVar[str] = "history_"  # of the members of the history

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to an npz file.

        Parameters
        ----------
        path : path-like
            The file; its name is not changed. It is written completely or not at all.
        """
        facts = {name: getattr(self, name) for name in self._FACTS}
        arrays = {name: getattr(self, name) for name in self._ARRAYS}
        for name in self._COLUMNS:
            arrays[self._PREFIX + name] = getattr(self.history, name)  # type: ignore[attr-defined]
        write_npz(path, self._KIND, facts, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a result that `save` wrote.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        result
            The saved result, with the same bits.

        Raises
        ------
        ValueError
            If the file is not such a result, is damaged or was changed; the message names the
            file and the error.
        """
        saved = read_npz(path, cls._KIND)
        facts = saved.header(cls._FACTS)
        columns = {cls._PREFIX + name: member for name, member in cls._COLUMNS.items()}
        arrays = saved.arrays({**cls._expected(saved, facts), **columns})
        parts = {name: arrays[name] for name in cls._ARRAYS}
        if cls._HISTORY is not None:
            history = {name: arrays[cls._PREFIX + name] for name in cls._COLUMNS}
            parts["history"] = cls._HISTORY(**history)
        result = cls(**parts, **facts)
        result._check(saved)
        return result

    @classmethod
    def _expected(cls, saved: SavedFile, facts: Mapping[str, Any]) -> Mapping[str, Member]:
        """Return the arrays that the file must contain, after checks that involve several facts."""
        del saved, facts
        return cls._ARRAYS

    def _check(self, saved: SavedFile) -> None:
        """Raise ValueError if parts of the result that was read contradict each other."""
