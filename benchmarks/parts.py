"""Solves whose lines are divided over the GPUs of one host, and the kernels of a part.

Own matrices, rows along the last axis, dominant. `floor` is the time of a copy of five words per
unknown of a GPU, on the slowest GPU in the same run; `one GPU` is the solve of the whole systems on
the first GPU. Times are medians over groups of calls, of the slowest GPU. Needs CuPy.

On one GPU, the kernel of a part gets its own messages back in place of those of another GPU: its
time without NVLink. `send` and `receive` are the two kernels of parts that exchange their messages
by NCCL, without NCCL. `send` moves four words, but is compared with five.
"""

import argparse
from importlib import import_module
from typing import Any

import numpy as np

from pysolvers import solve_tridiagonal
from pysolvers._progress import progress
from pysolvers._runtime.device import Device, device_array
from pysolvers._runtime.mailboxes import CallLog, Mailboxes
from pysolvers.cases.tables import Column, Table

from . import machine
from .options import add_options
from .record import Measurement, Record, finish
from .timing import Call, device, median_of, require_cupy, waiting

UNKNOWNS = 1 << 27  # of a GPU, in float64
ROWS = (256, 512, 1024, 2048)  # of a GPU
KEY = 1 << 63  # of all calls
CALLS = 5  # in a group
GROUPS = 9
_ALREADY_OPEN = 704  # cudaErrorPeerAccessAlreadyEnabled


def bandwidth(number: int) -> float:
    """Return the bytes per second of a copy on a GPU, read plus written."""
    cupy = require_cupy()
    with cupy.cuda.Device(number):
        source = cupy.zeros(1 << 28)
        target = cupy.empty_like(source)
        return 2 * source.nbytes / median_of(lambda: cupy.copyto(target, source), 7, clock=device())


def link_bandwidth(count: int) -> float:
    """Return the bytes per second that each of several GPUs copies to the next one, all at once."""
    cupy, size = require_cupy(), 1 << 30
    arrays, streams = [], []
    for k in range(count):
        with cupy.cuda.Device(k):
            arrays.append([cupy.zeros(size, cupy.uint8) for _ in range(2)])
            streams.append(cupy.cuda.Stream(non_blocking=True))
            cupy.cuda.Device().synchronize()
            for other in range(count):
                if other != k and cupy.cuda.runtime.deviceCanAccessPeer(k, other):
                    _open_peer(other)

    def copy() -> None:
        for k, stream in enumerate(streams):
            to = (k + 1) % count
            source, target = arrays[k][0].data.ptr, arrays[to][1].data.ptr
            with cupy.cuda.Device(k):
                cupy.cuda.runtime.memcpyPeerAsync(target, to, source, k, size, stream.ptr)

    def wait(_: object) -> None:
        for k, stream in enumerate(streams):
            with cupy.cuda.Device(k):
                stream.synchronize()

    return size / median_of(copy, GROUPS, length=CALLS, clock=waiting(wait))


def _open_peer(other: int) -> None:
    """Let the current GPU use the memory of another one."""
    runtime = require_cupy().cuda.runtime
    try:
        runtime.deviceEnablePeerAccess(other)
    except runtime.CUDARuntimeError as error:
        if error.status != _ALREADY_OPEN:
            raise


def operands(shape: tuple[int, int], dtype: type, device: int) -> list[Any]:
    """Return lower, diag, upper, rhs and an array for x on a device."""
    cupy = require_cupy()
    with cupy.cuda.Device(device):
        random = cupy.random.RandomState(device)
        arrays = [random.uniform(-1, 1, shape, dtype) for _ in range(4)]
        arrays[1] += 3
        return [*arrays, cupy.empty(shape, dtype)]


def split(shape: tuple[int, int], dtype: type, count: int) -> float:
    """Return the seconds of a solve on several GPUs; `shape` is that of a part."""
    cupy, _cuda = require_cupy(), import_module("pysolvers._cuda")
    systems, rows = shape
    last_rows = tuple((k + 1) * rows - 1 for k in range(count))
    boxes = [
        Mailboxes(Device(_cuda, k, "parts"), np.dtype(dtype), systems, k, count, 0)
        for k in range(count)
    ]
    logs = [CallLog(Device(_cuda, k, "parts"), k, count, 0) for k in range(count)]
    for box, log in zip(boxes, logs, strict=True):
        box.connect([each.own for each in boxes])
        log.connect([each.own for each in logs])
    arrays = [operands(shape, dtype, k) for k in range(count)]
    views = [
        [device_array(a.data.ptr, a.shape, a.strides, a.dtype, a)[None] for a in own]
        for own in arrays
    ]
    streams, events = [], []
    for k in range(count):
        with cupy.cuda.Device(k) as device:
            device.synchronize()
            streams.append(cupy.cuda.Stream(non_blocking=True))
            events.append((cupy.cuda.Event(), cupy.cuda.Event()))

    def enqueue() -> None:
        for k, (box, log, stream) in enumerate(zip(boxes, logs, streams, strict=True)):
            addresses, clock = box.arguments
            parts = (k, count, last_rows, addresses, log.addresses, KEY, clock)
            step = _cuda.PART_STEPS["whole"]
            status = _cuda.part_solve(0, *views[k], None, *parts, 10**10, 0, step, k, stream.ptr)
            if status:
                raise RuntimeError(_cuda.STATUS[status])

    def group(call: Call, count: int) -> float:
        for k, stream in enumerate(streams):
            with cupy.cuda.Device(k):
                events[k][0].record(stream)
        for _ in range(count):
            call()
        for k, stream in enumerate(streams):
            with cupy.cuda.Device(k):
                events[k][1].record(stream)
        for k, stream in enumerate(streams):
            with cupy.cuda.Device(k):
                stream.synchronize()
        return max(1e-3 * cupy.cuda.get_elapsed_time(*pair) for pair in events) / count

    return median_of(enqueue, GROUPS, length=CALLS, clock=group)


def timed(enqueue: Call) -> float:
    """Return the seconds of calls that are enqueued on the null stream of the first GPU."""
    return median_of(enqueue, GROUPS, length=CALLS, clock=device())


def whole(shape: tuple[int, int], dtype: type) -> float:
    """Return the seconds of a solve on the first GPU."""
    cupy = require_cupy()
    with cupy.cuda.Device(0):
        *arrays, out = operands(shape, dtype, 0)
        options = {"out": out, "pivot": False, "on_singular": "ignore"}
        return timed(lambda: solve_tridiagonal(*arrays, **options))


def part_alone(shape: tuple[int, int], dtype: type) -> dict[str, float]:
    """Return the seconds of the kernels of one of two parts; `shape` is that of the part."""
    cupy, _cuda = require_cupy(), import_module("pysolvers._cuda")
    systems, rows = shape
    name = np.dtype(dtype).name
    with cupy.cuda.Device(0):
        box = Mailboxes(Device(_cuda, 0, "parts"), np.dtype(dtype), systems, 0, 2, 0)
        box.connect([box.own, box.own])
        arrays = operands(shape, dtype, 0)
        views = [device_array(a.data.ptr, a.shape, a.strides, a.dtype, a)[None] for a in arrays]
        steps = _cuda.PART_STEPS
        (own, _), clock = box.arguments
        # What goes to the second part arrives as a message of it.
        _, words = _cuda.part_mailbox(_cuda.DTYPES[name], 1, 2, steps["send"])
        _, sent = _cuda.part_mailbox(_cuda.DTYPES[name], systems, 2, steps["send"])
        message = cupy.zeros(sent, cupy.uint8)
        cupy.cuda.Device().synchronize()

        def step(name: str, boxes: tuple[int, int]) -> float:
            parts = (0, 2, (rows - 1, 2 * rows - 1), boxes, (0, 0), 0, clock)

            def enqueue() -> None:
                status = _cuda.part_solve(0, *views, None, *parts, 10**10, 0, steps[name], 0, 0)
                if status:
                    raise RuntimeError(_cuda.STATUS[status])

            return timed(enqueue)

        return {
            "own messages": step("whole", (own, own + 2 * words)),
            "send": step("send", (message.data.ptr, 0)),
            "receive": step("receive", (0, message.data.ptr)),
        }


def cases_of(dtype: type, rows: int, unknowns: int, devices: int, slowest: float) -> list[Record]:
    """Return the cases of a length of the parts, on one GPU and on more."""
    itemsize = np.dtype(dtype).itemsize
    shape = unknowns * 8 // itemsize // rows // 2, rows
    same = {
        "dtype": np.dtype(dtype).name,
        "rows": rows,
        "systems": shape[0],
        "floor": 5 * itemsize * shape[0] * rows / slowest,
        "one GPU": whole((shape[0], 2 * rows), dtype),
    }
    found: list[Record] = [{"gpus": 1} | part_alone(shape, dtype)]
    for count in range(2, devices + 1, 2):
        found.append({"gpus": count, "seconds": split(shape, dtype, count)})
    require_cupy().get_default_memory_pool().free_all_blocks()
    return [times | same for times in found]


def tables(record: Record) -> list[Table]:
    """Return the tables of a record: solves on several GPUs, and the kernels of a part."""
    return [several(record), steps(record)]


def several(record: Record) -> Table:
    """Return the table of solves in one pass on several GPUs."""
    rows = [
        (
            *(str(entry[key]) for key in ("gpus", "dtype")),
            *(entry[key] for key in ("rows", "systems")),
            1e3 * entry["seconds"],
            entry["floor"] / entry["seconds"],
            entry["one GPU"] / entry["gpus"] / entry["seconds"],
        )
        for entry in record["cases"]
        if entry["gpus"] > 1
    ]
    columns = (
        Column("GPUs"),
        Column("dtype", left=True),
        Column("rows of a GPU"),
        Column("systems"),
        Column("ms", ".2f"),
        Column("of the floor", ".0%"),
        Column("of one GPU", ".0%"),
    )
    note = (
        "*Of the floor*: the time of a copy of five words per unknown, in the same run, as a part "
        "of the time of the solve. *Of one GPU*: the time of one GPU for the whole systems, over "
        f"the number of GPUs, as a part of it. Measured on {record['gpu']['name']}, NVLink."
    )
    return Table("", columns, rows, (note,))


def steps(record: Record) -> Table:
    """Return the table of the kernels of a part on one GPU."""
    names = ("own messages", "send", "receive")
    rows = []
    for entry in (entry for entry in record["cases"] if entry["gpus"] == 1):
        times = [entry["one GPU"] / 2, *(entry[name] for name in names)]
        times.append(times[2] + times[3])
        words = (5, 5, 4, 5, 9)
        shares = (entry["floor"] * k / 5 / time for k, time in zip(words, times, strict=True))
        rows.append((entry["dtype"], entry["rows"], entry["systems"], *shares))
    columns = [Column("dtype"), Column("rows"), Column("systems")]
    heads = ("whole systems", *names, "send and receive")
    note = (
        "The time of a copy of the words that the kernel moves, in the same run, as a part of its "
        "time. *Whole systems*: of twice as many rows, five words. *Own messages*: one pass of "
        "five words, in which the GPU gets its own messages back in place of those of another GPU. "
        "*Send* and *receive*, of four and five words: the kernels before and after NCCL. Measured "
        f"on one {record['gpu']['name']}."
    )
    return Table("", [*columns, *(Column(head, ".0%") for head in heads)], rows, (note,))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "quick")


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables and write the record."""
    measurement = Measurement("parts", machine.GPU_PACKAGES, gpu=True)
    devices = require_cupy().cuda.runtime.getDeviceCount()
    slowest = min(bandwidth(k) for k in range(devices))
    unknowns = 1 << 18 if args.quick else UNKNOWNS
    todo = [(dtype, rows) for dtype in (np.float64, np.float32) for rows in ROWS]
    cases: list[Record] = []
    for dtype, rows in progress(todo, "parts"):
        cases += cases_of(dtype, rows, unknowns, devices, slowest)
    record = measurement.record(cases, {"quick": args.quick}, bandwidth=slowest)
    found = [table for table in tables(record) if table.rows]
    finish(args, record, found, count=devices)
    return 0
