"""Objects that their calls change: one call at a time, and copies that share nothing.

A call that changes the state of a solver is entered in the solver. A second call, of another
thread or of a function that the first call has called, finds the entry and raises before it
changes anything. The entry contains the frame of the call: an entry whose frame is on the stack of
no thread was left by an interrupt, and is ignored.
"""

import copy
import functools
import sys
from collections.abc import Callable
from threading import Lock, get_ident
from types import FrameType
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

__all__ = ["Exclusive", "exclusive"]

P = ParamSpec("P")
R = TypeVar("R")

_ENTRY = "_call_in_progress"
_REMOVAL = Lock()  # of entries that interrupts left


class _Entry(NamedTuple):
    """A call: its thread, its frame, and the name of the method."""

    thread: int
    frame: FrameType
    method: str

    @property
    def is_in_progress(self) -> bool:
        frame = sys._current_frames().get(self.thread)
        while frame is not None and frame is not self.frame:
            frame = frame.f_back
        return frame is not None


class Exclusive:
    """A solver whose decorated methods change it, in one call at a time."""

    def __getstate__(self) -> Any:
        state = self.__dict__.copy()
        state.pop(_ENTRY, None)
        return state

    def __copy__(self) -> Self:
        """Return a solver in the same state, which shares nothing that a call changes."""
        return copy.deepcopy(self)


def exclusive(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate a method of an `Exclusive` that changes it: it raises RuntimeError during another.

    Decorated methods of one object do not call each other.
    """

    @functools.wraps(method)
    def guarded(*args: P.args, **options: P.kwargs) -> R:
        facts, own = args[0].__dict__, _Entry(get_ident(), sys._getframe(), method.__name__)
        try:
            while (other := facts.setdefault(_ENTRY, own)) is not own:
                _remove_or_raise(args[0], facts, own, other)
            return method(*args, **options)
        finally:
            # Without a call, so that no signal handler runs before the entry is removed.
            try:
                if facts[_ENTRY] is own:
                    del facts[_ENTRY]
            except KeyError:
                pass

    return guarded


def _remove_or_raise(solver: Any, facts: dict[str, Any], own: _Entry, other: _Entry) -> None:
    """Raise if the other call is in progress; else remove its entry."""
    with _REMOVAL:
        if facts.get(_ENTRY) is not other:
            return
        if not other.is_in_progress:
            del facts[_ENTRY]
            return
    name = type(solver).__name__
    if other.thread == own.thread:
        raise RuntimeError(
            f"{name}.{own.method} was called by a callback or a function of this solver, during "
            f"{name}.{other.method}: read the solver there, and step a copy.copy() of it"
        )
    raise RuntimeError(
        f"{name}.{own.method} was called while another thread is in {name}.{other.method} of the "
        "same solver: a solver belongs to one thread at a time; use a lock, or a copy.copy() of "
        "the solver for each thread"
    )
