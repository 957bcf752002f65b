"""What checks on several ranks change inside the package: plans, memory, links; and halos alone."""

import contextlib
import ctypes
from unittest.mock import patch

import numpy as np

from pysolvers import _progress
from pysolvers._blocks import split as split_blocks
from pysolvers._blocks.split import Part
from pysolvers._recurrence import split as split_recurrences
from pysolvers._runtime import mailboxes
from pysolvers._runtime.device import address_of  # noqa: F401  for devices of host memory
from pysolvers._runtime.fields import DeviceFields, make_fields
from pysolvers.distributed import _devices, _group, _inbox, _mpi, _solve
from pysolvers.distributed._ends import Matrices
from pysolvers.distributed._halo import faces_of, halo_of
from pysolvers.heat import _split, _unsplit, _unsplit_slab
from pysolvers.heat._halo import COSTS
from pysolvers.heat._levels import Levels
from pysolvers.heat._state import HeatState
from pysolvers.transport import _plan

own_device = _group.own_device

# ps_part_clock of csrc/include/ps_part.h.
_NUMBERS = ("blocks", "late", "tickets", "failed")
_CLOCK = np.dtype([("calls", "u8"), *((name, "u4") for name in _NUMBERS), ("answer", "u8")])
_REDUCE = Matrices.reduce

# What can fail on one rank.
PARTS = {
    "inbox": (_inbox, "SharedMemory"),
    "shared memory": (mailboxes.SharedMemory, "open"),
    "values on a device": (DeviceFields, "hold"),
    "fields of a slab": (_unsplit_slab, "make_fields"),
    "solve of levels": (Levels, "solve"),
    "backend": (_group, "require_backend"),
}


def failing(part, error):
    """Return a context in which a part of PARTS raises an error."""
    return patch.object(*PARTS[part], side_effect=error)


def going_on():
    """Return a context in which the end of a process whose group is lost ends no other one."""
    return patch.object(_group.atexit, "register")


def failing_reduction(error=None):
    """Return a context in which the elimination of a rank raises an error, or does not."""
    return patch.object(Matrices, "reduce", autospec=True, side_effect=error or _REDUCE)


def failing_blocks(error):
    """Return a context in which the elimination of a part of block systems raises an error."""
    return patch.object(Part, "reduce", side_effect=error)


def without_whole_lines():
    """Return a context in which block systems that are solved as whole lines raise an error."""
    error = AssertionError("solved as whole lines")
    return patch.object(split_blocks, "_solve_whole", side_effect=error)


def failing_recurrences(error):
    """Return a context in which the recurrences of a part raise an error."""
    return patch.object(split_recurrences, "recur_lines", side_effect=error)


@contextlib.contextmanager
def counting_rows_of_recurrences():
    """Yield a list that gets the number of rows of each call of the backend for a part."""
    rows, recur = [], split_recurrences.recur_lines

    def counting(call, **options):
        rows.append(call.views["result"].shape[-1])
        recur(call, **options)

    with patch.object(split_recurrences, "recur_lines", counting):
        yield rows


def failing_steps(count, error):
    """Return a context in which the kernels of HeatADI raise an error after some calls."""
    step, made = HeatState.step, []

    def counted(state, *arguments, **options):
        made.append(None)
        if len(made) > count:
            raise error
        return step(state, *arguments, **options)

    return patch.object(HeatState, "step", counted)


def shorten_the_end():
    """Let jobs that end by an error wait less for the other ranks; these need less in tests."""
    _mpi._GRACE = 1.0


def one_iteration():
    """Return a context in which steps of heat that are not split may iterate once."""
    return patch.object(_unsplit, "_MOST", 1)


@contextlib.contextmanager
def agreements():
    """Yield a list that gets an entry for each agreement."""
    found, exit_ = [], _group.Agreement.__exit__

    def noted(self, *arguments):
        found.append(self._operation)
        return exit_(self, *arguments)

    _group.Agreement.__exit__ = noted
    try:
        yield found
    finally:
        _group.Agreement.__exit__ = exit_


def few_steps():
    """Return a context in which GCEIDD exchanges its halo at least once in 4 steps."""
    return patch.object(_plan, "_STEPS", (1, 2, 3, 4))


def cheap_stages():
    """Return a context in which stages and messages of HeatADI cost nothing."""
    return patch.dict(COSTS, {"cpu": COSTS["cpu"]._replace(stage=0, message=0)})


def no_cut_lines():
    """Return a context in which HeatADI does not cut its lines."""
    return patch.object(_split, "cost_of_cuts", return_value=np.inf)


def in_two_passes():
    """Return a context in which x and the ends of a part are solved for one after the other."""
    return patch.object(_solve, "solve_spikes", return_value=None)


def keeping_nothing():
    """Return a context in which the arrays of a call are not kept for the next ones."""
    return patch.object(_solve, "_KEPT_BYTES", 0)


def with_nccl(communicator):
    """Return a context in which the lines of devices have this NCCL."""
    return patch.object(_devices, "nccl_of", return_value=communicator)


def devices_named(name):
    """Return a context in which the driver says that this is the name of the device of a rank."""
    return patch.object(mailboxes, "device_id", return_value=name)


def clock_at(address):
    """Return the clock of a device at an address, as an array of one record."""
    octets = (ctypes.c_char * mailboxes.CLOCK_BYTES).from_address(address)
    return np.frombuffer(octets, _CLOCK, 1)


def answer(clock):
    """Write a clock to the memory of the host, as a kernel does at its end."""
    address, calls = int(clock["answer"][0]), clock["calls"].nbytes
    if address:
        octets = clock.tobytes()
        ctypes.memmove(address + calls, octets[calls:], clock.nbytes - calls)
        ctypes.memmove(address, octets, calls)  # the last of all


def field_on_device(shape, dtype=np.float64):
    """Return a store with a field "u" on the device."""
    return make_fields({"u": (shape, dtype)}, "cuda", "test")


def halo_between(group, store, axis, depth):
    """Return the halo of the field "u" of a store, as deep on both sides of a part."""
    nodes = store.operand("u").shape[axis]
    return halo_of(group, "test", store, faces_of(group, axis, nodes, (depth, depth)), "u")


def counting_bars():
    """Return a context in which a mock of tqdm receives the progress."""
    return patch.object(_progress, "_tqdm")
