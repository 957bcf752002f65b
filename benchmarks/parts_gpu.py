"""Time tridiagonal solves whose lines are divided over the GPUs of one host.

Own matrices, rows along the last axis, dominant. `floor` is the time of a copy of five words per
unknown of a GPU, on the slowest GPU in the same run; `one GPU` is the solve of the whole systems on
the first GPU, and `ratio` the time of it divided by the time and the number of GPUs. Times are
medians over groups of calls, of the slowest GPU. Needs CuPy.

On one GPU, the kernel of a part gets its own messages back in place of those of another GPU: its
time without NVLink. `send` and `receive` are the two kernels of parts that exchange their messages
by NCCL, without NCCL. `send` moves four words, but is compared with five.

    python -m pysolvers bench parts_gpu                 # prints a table
    python -m pysolvers bench parts_gpu --json FILE     # also writes the values
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import cupy
import numpy as np

from pysolvers import _cuda, solve_tridiagonal
from pysolvers._runtime.mailboxes import Mailboxes
from pysolvers._runtime.shadows import shadow
from pysolvers.cases.records import write_record

from . import machine

UNKNOWNS = 1 << 27  # of a GPU, in float64
ROWS = (256, 512, 1024, 2048)  # of a GPU
CALLS = 5  # in a group
GROUPS = 9


def bandwidth(device: int) -> float:
    """Return the bytes per second of a copy, read plus written."""
    with cupy.cuda.Device(device):
        source = cupy.zeros(1 << 28)
        target = cupy.empty_like(source)
        times = []
        for _ in range(7):
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            target[...] = source
            end.record()
            end.synchronize()
            times.append(1e-3 * cupy.cuda.get_elapsed_time(begin, end))
        return 2 * source.nbytes / median(times)


def operands(shape: tuple[int, int], dtype: type, device: int) -> list[Any]:
    """Return lower, diag, upper, rhs and an array for x on a device."""
    with cupy.cuda.Device(device):
        random = cupy.random.RandomState(device)
        arrays = [random.uniform(-1, 1, shape, dtype) for _ in range(4)]
        arrays[1] += 3
        return [*arrays, cupy.empty(shape, dtype)]


def split(shape: tuple[int, int], dtype: type, count: int) -> float:
    """Return the seconds of a solve on several GPUs; `shape` is that of a part."""
    systems, rows = shape
    last_rows = tuple((k + 1) * rows - 1 for k in range(count))
    boxes = [Mailboxes(_cuda, k, np.dtype(dtype), systems, k, count, 0) for k in range(count)]
    for box in boxes:
        box.connect([each.own for each in boxes])
    arrays = [operands(shape, dtype, k) for k in range(count)]
    views = [
        [shadow(a.data.ptr, a.shape, a.strides, a.dtype, a)[None] for a in own] for own in arrays
    ]
    streams, events = [], []
    for k in range(count):
        with cupy.cuda.Device(k) as device:
            device.synchronize()
            streams.append(cupy.cuda.Stream(non_blocking=True))
            events.append((cupy.cuda.Event(), cupy.cuda.Event()))

    def enqueue() -> None:
        for k, (box, stream) in enumerate(zip(boxes, streams, strict=True)):
            parts = (k, count, last_rows, *box.arguments, 10**10, 0, _cuda.PART_STEPS["whole"])
            status = _cuda.part_solve(0, *views[k], None, *parts, k, stream.ptr)
            if status:
                raise RuntimeError(_cuda.STATUS[status])

    def group() -> float:
        for k, stream in enumerate(streams):
            with cupy.cuda.Device(k):
                events[k][0].record(stream)
        for _ in range(CALLS):
            enqueue()
        for k, stream in enumerate(streams):
            with cupy.cuda.Device(k):
                events[k][1].record(stream)
        for k, stream in enumerate(streams):
            with cupy.cuda.Device(k):
                stream.synchronize()
        return max(1e-3 * cupy.cuda.get_elapsed_time(*pair) for pair in events) / CALLS

    group()
    return median(group() for _ in range(GROUPS))


def timed(enqueue: Callable[[], object]) -> float:
    """Return the seconds of calls that are enqueued on the null stream of the first GPU."""
    times = []
    for _ in range(GROUPS):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        for _ in range(CALLS):
            enqueue()
        end.record()
        end.synchronize()
        times.append(1e-3 * cupy.cuda.get_elapsed_time(begin, end) / CALLS)
    return median(times[1:])


def whole(shape: tuple[int, int], dtype: type) -> float:
    """Return the seconds of a solve on the first GPU."""
    with cupy.cuda.Device(0):
        *arrays, out = operands(shape, dtype, 0)
        options = {"out": out, "pivot": False, "on_singular": "ignore"}
        return timed(lambda: solve_tridiagonal(*arrays, **options))


def part_alone(shape: tuple[int, int], dtype: type) -> dict[str, float]:
    """Return the seconds of the kernels of one of two parts; `shape` is that of the part."""
    systems, rows = shape
    name = np.dtype(dtype).name
    with cupy.cuda.Device(0):
        box = Mailboxes(_cuda, 0, np.dtype(dtype), systems, 0, 2, 0)
        box.connect([box.own, box.own])
        arrays = operands(shape, dtype, 0)
        views = [shadow(a.data.ptr, a.shape, a.strides, a.dtype, a)[None] for a in arrays]
        steps = _cuda.PART_STEPS
        (own, _), clock = box.arguments
        # What goes to the second part arrives as a message of it.
        _, words = _cuda.part_mailbox(_cuda.DTYPES[name], 1, 2, steps["send"])
        _, sent = _cuda.part_mailbox(_cuda.DTYPES[name], systems, 2, steps["send"])
        message = cupy.zeros(sent, cupy.uint8)
        cupy.cuda.Device().synchronize()

        def step(name: str, boxes: tuple[int, int]) -> float:
            parts = (0, 2, (rows - 1, 2 * rows - 1), boxes, clock, 10**10, 0, steps[name])

            def enqueue() -> None:
                status = _cuda.part_solve(0, *views, None, *parts, 0, 0)
                if status:
                    raise RuntimeError(_cuda.STATUS[status])

            return timed(enqueue)

        return {
            "own messages": step("whole", (own, own + 2 * words)),
            "send": step("send", (message.data.ptr, 0)),
            "receive": step("receive", (0, message.data.ptr)),
        }


def describe(case: dict[str, Any]) -> None:
    """Print a line about a case: each time in microseconds, and as a fraction of the floor."""
    names = ("seconds", "own messages", "send", "receive")
    times = "  ".join(
        f"{name} {1e6 * case[name]:.1f} us, {case['floor'] / case[name]:.1%}"
        for name in names
        if name in case
    )
    ratio = f"  {case['one GPU'] / 2 / case['seconds']:.2f} of one GPU" if "seconds" in case else ""
    print(
        f"{case['gpus']} GPUs  {case['dtype']}  {case['rows']} rows a GPU, {case['systems']} "
        f"systems: {times}{ratio}",
        flush=True,
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    parser.add_argument("--json", type=Path, default=None, help="file for the values")


def run(args: argparse.Namespace) -> int:
    """Measure, print a table, and write the values if asked to."""
    devices = cupy.cuda.runtime.getDeviceCount()
    slowest = min(bandwidth(k) for k in range(devices))
    print(f"{devices} GPUs, copy {slowest / 1e9:.0f} GB/s")
    cases: list[dict[str, Any]] = []
    for dtype in (np.float64, np.float32):
        for rows in ROWS:
            itemsize = np.dtype(dtype).itemsize
            shape = UNKNOWNS * 8 // itemsize // rows // 2, rows
            same = {
                "dtype": np.dtype(dtype).name,
                "rows": rows,
                "systems": shape[0],
                "floor": 5 * itemsize * shape[0] * rows / slowest,
                "one GPU": whole((shape[0], 2 * rows), dtype),
            }
            found = [{"gpus": 1} | part_alone(shape, dtype)]
            for count in range(2, devices + 1, 2):
                found.append({"gpus": count, "seconds": split(shape, dtype, count)})
            for times in found:
                cases.append(times | same)
                describe(cases[-1])
            cupy.get_default_memory_pool().free_all_blocks()
    if args.json:
        record = {
            "benchmark": "lines divided over GPUs",
            "gpu": machine.gpu(),
            "bandwidth": slowest,
            "cases": cases,
        }
        write_record(args.json, record)
    return 0
