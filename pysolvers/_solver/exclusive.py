"""Objects that their calls change: one call at a time, and copies that share nothing.

A call that changes the state of a solver is entered in the solver. A second call, of another
thread or of a function that the first call has called, finds the entry and raises before it
changes anything. A call that reads the state, and would read it half changed, is entered as well:
it raises while another thread changes the solver, and no other thread changes the solver before
its end. Several threads can read a solver at a time. The entry contains the frame of the call: an
entry whose frame is on the stack of no thread was left by an interrupt, and is ignored.

Both kinds of calls enter themselves before they look for others, so that of two that begin at
one time at least one finds the other.
"""

import copy
import functools
import sys
from collections.abc import Callable
from threading import Lock, get_ident
from types import FrameType
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_ENTRY = "_call_in_progress"
_READERS = "_calls_that_read"
_REMOVAL = Lock()  # of entries that interrupts left


class _Entry(NamedTuple):
    """A call: its thread, its frame, and the name of the method."""

    thread: int
    frame: FrameType
    method: str

    @property
    def is_in_progress(self) -> bool:
        """Whether the frame of the call is on the stack of its thread."""
        frame = sys._current_frames().get(self.thread)
        while frame is not None and frame is not self.frame:
            frame = frame.f_back
        return frame is not None


def exclusive(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate a method of an `Exclusive` that changes it: it raises RuntimeError during another.

    Decorated methods of one object do not call each other, but they can call those that read.
    """

    @functools.wraps(method)
    def guarded(*args: P.args, **options: P.kwargs) -> R:
        facts = args[0].__dict__
        own: Any = _Entry(get_ident(), sys._getframe(), method.__name__)
        try:
            while (other := facts.setdefault(_ENTRY, own)) is not own:
                _remove_or_raise(args[0], facts, own, other)
            if readers := facts.get(_READERS):
                _raise_for_readers(args[0], readers, own)
            return method(*args, **options)
        finally:
            # Without a call, so that no signal handler runs before the entry is removed.
            try:
                if facts[_ENTRY] is own:
                    del facts[_ENTRY]
            except KeyError:
                pass
            own = other = None  # a frame that refers to itself keeps the object

    return guarded


def reading(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate a method of an `Exclusive` that reads what others change.

    It raises RuntimeError while a call of another thread changes the object. In a callback of such
    a call, in the thread of the call, it reads the state between two steps.
    """

    @functools.wraps(method)
    def guarded(*args: P.args, **options: P.kwargs) -> R:
        facts = args[0].__dict__
        own: Any = _Entry(get_ident(), sys._getframe(), method.__name__)
        readers, key = facts.setdefault(_READERS, {}), id(own)
        try:
            readers[key] = own
            other = facts.get(_ENTRY)
            if other is not None and other.thread != own.thread:
                _remove_or_raise(args[0], facts, own, other)
            return method(*args, **options)
        finally:
            readers.pop(key, None)
            own = None  # a frame that refers to itself keeps the object

    return guarded


class Exclusive:
    """A solver whose decorated methods change it, in one call at a time."""

    @reading
    def __getstate__(self) -> Any:
        """Return a copy of the state, for pickle: a step that begins later does not change it."""
        return copy.deepcopy(self._facts_of_a_copy())

    def __copy__(self) -> Self:
        """Return a solver in the same state, which shares nothing that a call changes."""
        return copy.deepcopy(self)

    @reading
    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Do what `copy.deepcopy` does without this method, as a call that reads."""
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(self._facts_of_a_copy(), memo))
        return made

    def _facts_of_a_copy(self) -> dict[str, Any]:
        """Return the attributes without the entries of calls."""
        return {k: v for k, v in self.__dict__.items() if k not in (_ENTRY, _READERS)}


def _remove_or_raise(solver: Any, facts: dict[str, Any], own: _Entry, other: _Entry) -> None:
    """Raise if the other call is in progress; else remove its entry."""
    with _REMOVAL:
        if facts.get(_ENTRY) is not other:
            return
        if not other.is_in_progress:
            del facts[_ENTRY]
            return
    raise _error_of(solver, own, other)


def _raise_for_readers(solver: Any, readers: dict[int, _Entry], own: _Entry) -> None:
    """Raise if a call that reads is in progress; else remove what interrupts left."""
    for key, other in list(readers.items()):
        if other.is_in_progress:
            raise _error_of(solver, own, other)
        readers.pop(key, None)


def _error_of(solver: Any, own: _Entry, other: _Entry) -> RuntimeError:
    """Return the error of a call during another one."""
    name = type(solver).__name__
    if other.thread == own.thread:
        return RuntimeError(
            f"{name}.{own.method} was called by a callback or a function of this solver, during "
            f"{name}.{other.method}: read the solver there, and step a copy.copy() of it"
        )
    return RuntimeError(
        f"{name}.{own.method} was called while another thread is in {name}.{other.method} of the "
        "same solver: a solver belongs to one thread at a time; use a lock, a copy.copy() of the "
        "solver for each thread, or a callback, which may read the solver between steps"
    )
