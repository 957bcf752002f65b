"""The files of the package that an operand passes on its way to the extension.

A call receives an operand as an argument, or in a tuple, list or dict that is one. An array that
shares its memory, or has its values, is the operand, too. A call of a function of another file than
its caller's is a station if it hands the operand on: it returns such an array, or the call of the
extension that solves is made below it; and so do all calls above it. A call that only asks where an
operand lies, or whether it is finite, is no station.
"""

import sys
from pathlib import Path

import numpy as np

import pysolvers

ROOT = str(Path(pysolvers.__file__).parent) + "/"

# Functions of the extension at the end of the way; the last one that is called counts, as the
# first ones can leave a call to Python.
ENDS = {
    "tridiag_direct", "tridiag_solve", "step_solve", "factor_make", "factor_step", "direct",
    "solve", "product", "product_direct", "recurrence", "recurrence_direct",
}  # fmt: skip
PLACES = ("result", "destination")  # new memory: what it had before does not count


class _Call:
    """A call that receives the operand."""

    def __init__(self, file, above, is_entry):
        self.file, self.above, self.is_entry = file, above, is_entry
        self.hands_on = False

    def is_station(self):
        """Whether this call and all calls above it hand the operand on."""
        return self.hands_on and (self.above is None or self.above.is_station())


class _Follower:
    """A profile function that follows an operand."""

    def __init__(self, operand):
        self.known, self.size, self.sum = {id(operand): operand}, operand.size, self._sum(operand)
        self.calls, self.open, self.last = [], {}, None

    @staticmethod
    def _sum(array):
        """Return the sum of magnitudes; an array that is not written yet can hold any bits."""
        with np.errstate(all="ignore"):
            return float(np.abs(array).sum())

    def _holds(self, value, depth=2):
        """Whether a value is the operand, or contains it."""
        if depth and isinstance(value, tuple | list):
            return any(self._holds(part, depth - 1) for part in value)
        if depth and isinstance(value, dict):
            return any(self._holds(part, depth - 1) for part in value.values())
        base = value
        while isinstance(base, np.ndarray) and id(base) not in self.known:
            base = base.base
        if id(base) in self.known:
            self.known[id(value)] = value
        return id(base) in self.known

    def _gives(self, value, depth=2):
        """Whether a value has the operand, or arrays with its values, which are noted."""
        if depth and isinstance(value, tuple | list):
            return any(self._gives(part, depth - 1) for part in value)
        if depth and isinstance(value, dict):
            return any(self._gives(part, depth - 1) for part in value.values())
        if self._holds(value, 0):
            return True
        is_like = isinstance(value, np.ndarray) and value.dtype.kind in "fc"
        if is_like and value.size == self.size and np.isclose(self._sum(value), self.sum):
            self.known[id(value)] = value
            return True
        return False

    def __call__(self, frame, event, argument):
        code = frame.f_code
        if event == "c_call" and getattr(argument, "__name__", "") in ENDS:
            below = []
            while frame is not None:
                below += [self.open[id(frame)]] if id(frame) in self.open else []
                frame = frame.f_back
            self.last = len(self.calls), below
        elif event == "return" and id(frame) in self.open:
            call = self.open.pop(id(frame))
            given = self._holds if code.co_name in PLACES else self._gives
            call.hands_on = given(argument)
        elif event == "call" and code.co_filename.startswith(ROOT) and code.co_name[0] != "<":
            count = code.co_argcount + code.co_kwonlyargcount
            count += bool(code.co_flags & 4) + bool(code.co_flags & 8)
            values = [frame.f_locals.get(name) for name in code.co_varnames[:count]]
            if any(self._holds(value) for value in values):
                self._enter(frame)

    def _enter(self, frame):
        """Note a call."""
        above, caller, outer = None, None, frame.f_back
        while outer is not None:
            file = outer.f_code.co_filename
            caller = file if caller is None and file.startswith(ROOT) else caller
            above = self.open.get(id(outer)) if above is None else above
            outer = outer.f_back
        call = _Call(frame.f_code.co_filename, above, frame.f_code.co_filename != caller)
        self.open[id(frame)] = call
        self.calls.append(call)


def files_on_the_way(call, operand):
    """Return the files of the package that an operand of a call enters, in their order."""
    follower = _Follower(operand)
    sys.setprofile(follower)
    try:
        call()
    finally:
        sys.setprofile(None)
    count, below = follower.last
    for each in below:
        each.hands_on = True
    return [
        each.file.removeprefix(ROOT)
        for each in follower.calls[:count]
        if each.is_entry and each.is_station()
    ]
