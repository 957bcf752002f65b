"""Systems that are divided into parts, each on a stream or on a device of its own."""

import multiprocessing
import time
from itertools import pairwise

import availability
import numpy as np
import oracle
import pytest

from pysolvers._runtime.device import Device, device_array
from pysolvers._runtime.mailboxes import CLOCK_BYTES, CallLog, Mailboxes, Outcome

_cuda = availability.extension("cuda")
cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

pytestmark = pytest.mark.gpu

DTYPES = ("float32", "float64", "complex64", "complex128")
PATIENCE = 10**10  # nanoseconds


def slices(rows, count):
    """Return the rows of each part: the first ones have one more."""
    ends = np.cumsum([0] + [rows // count + (k < rows % count) for k in range(count)])
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


class Parts:
    """The parts of systems, rows along the last axis (axis=1) or the first one (axis=0)."""

    def __init__(self, shape, dtype, count, axis, rows=None, devices=None):
        self.count = count
        self.systems, self.axis = shape[1 - axis], axis
        self.rows = rows or slices(shape[axis], count)
        self.last_rows = tuple(part.stop - 1 for part in self.rows)
        devices = devices or cupy.cuda.runtime.getDeviceCount()
        self.devices = [k % devices for k in range(count)]
        self.boxes = [
            Mailboxes(Device(_cuda, device, "test"), np.dtype(dtype), self.systems, k, count, 0)
            for k, device in enumerate(self.devices)
        ]
        for box in self.boxes:
            box.connect([each.own for each in self.boxes])
        self.logs = [
            CallLog(Device(_cuda, device, "test"), k, count, 0)
            for k, device in enumerate(self.devices)
        ]
        for log in self.logs:
            log.connect([each.own for each in self.logs])
        self.streams = []
        for device in self.devices:
            with cupy.cuda.Device(device):
                self.streams.append(cupy.cuda.Stream(non_blocking=True))

    def scatter(self, *arrays):
        """Return the local operands of each part, and an array for the solution."""
        parts = []
        for rows, device in zip(self.rows, self.devices, strict=True):
            with cupy.cuda.Device(device):
                here = (slice(None), rows) if self.axis else (rows, slice(None))
                parts.append([cupy.array(np.ascontiguousarray(a[here])) for a in arrays])
                parts[-1].append(cupy.full_like(parts[-1][-1], np.nan))
                parts[-1].append(cupy.full(self.systems, -99, "int32"))
                parts[-1].append(cupy.full(self.systems, 99, "uint8"))
        for device in self.devices:
            cupy.cuda.Device(device).synchronize()
        return parts

    def enqueue(
        self,
        part,
        operands,
        *,
        periodic=False,
        patience=PATIENCE,
        checks=False,
        step="whole",
        boxes=None,
        key=0,
    ):
        """Enqueue the solve of one part, or a step of it with mailboxes at some addresses."""
        *arrays, info, marks = operands
        addresses, clock = self.boxes[part].arguments
        views = [self._view(array) for array in arrays]
        status = _cuda.part_solve(
            _cuda.PERIODIC if periodic else 0,
            *views,
            _shadow(info),
            part,
            self.count,
            self.last_rows,
            boxes or addresses,
            self.logs[part].addresses if key else (0,) * self.count,
            key,
            clock,
            patience,
            marks.data.ptr if checks else 0,
            _cuda.PART_STEPS[step],
            self.devices[part],
            self.streams[part].ptr,
            1 if boxes else self.boxes[part].sharing,
        )
        assert _cuda.STATUS[status][0] == "PS_OK"

    def solve(self, parts, **options):
        """Solve for all parts and return x, and info of the first part."""
        for k, operands in enumerate(parts):
            self.enqueue(k, operands, **options)
        self.synchronize()
        return self.gather(parts)

    def solve_in_steps(self, parts, dtype, **options):
        """Solve as `solve` does, by parts that cannot use each other's memory."""
        _, nbytes = _cuda.part_mailbox(
            _cuda.DTYPES[dtype], self.systems, self.count, _cuda.PART_STEPS["send"]
        )
        sent = []
        for k, (operands, device) in enumerate(zip(parts, self.devices, strict=True)):
            with cupy.cuda.Device(device):
                own = cupy.zeros(nbytes, "uint8")
                cupy.cuda.Device(device).synchronize()
            box = [0] * self.count
            box[k] = own.data.ptr
            self.enqueue(k, operands, step="send", boxes=tuple(box), **options)
            sent.append(own)
        self.synchronize()
        assert all(np.isnan(operands[-3].get()).all() for operands in parts)  # x is not written
        received = []
        for k, (operands, device) in enumerate(zip(parts, self.devices, strict=True)):
            with cupy.cuda.Device(device):
                others = [cupy.array(own.get()) for own in sent]
                cupy.cuda.Device(device).synchronize()
            box = [0 if j == k else other.data.ptr for j, other in enumerate(others)]
            self.enqueue(k, operands, step="receive", boxes=tuple(box), **options)
            received.append(others)
        self.synchronize()
        return self.gather(parts)

    def gather(self, parts):
        """Return x, and info, which must be the same of all parts."""
        x = np.concatenate([operands[-3].get() for operands in parts], axis=self.axis)
        infos = [operands[-2].get() for operands in parts]
        assert all((info == infos[0]).all() for info in infos)
        return x, infos[0]

    def synchronize(self):
        for stream, device in zip(self.streams, self.devices, strict=True):
            with cupy.cuda.Device(device):
                stream.synchronize()

    def _view(self, array):
        view = _shadow(array)
        return (view if self.axis else view.T)[None]


def _shadow(array):
    return device_array(array.data.ptr, array.shape, array.strides, array.dtype, array)


def batch(rng, shape, dtype, axis, make=oracle.dominant):
    """Return operands with the rows along an axis."""
    operands = make(rng, shape if axis else shape[::-1], dtype)
    return operands if axis else [np.ascontiguousarray(a.T) for a in operands]


def check(operands, x, axis, most=30, **options):
    """Compare the backward error with a bound in eps."""
    *matrix, rhs, x = (np.moveaxis(a, axis, -1) for a in (*operands, x))
    assert oracle.backward_error(*matrix, rhs, x, **options) < most * oracle.eps(x.dtype)


@pytest.mark.parametrize("periodic", [False, True], ids=["open", "periodic"])
@pytest.mark.parametrize("axis", [1, 0])
@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_parts_of_every_kind(rng, dtype, count, axis, periodic):
    for rows in (count, 3 * count + 1, 40 * count - 1, 300 * count + 5, 1001 * count):
        shape = (37, rows) if axis else (rows, 37)
        operands = batch(rng, shape, dtype, axis)
        parts = Parts(shape, dtype, count, axis)

        x, info = parts.solve(parts.scatter(*operands), periodic=periodic)
        repeated, repeated_info = parts.solve_in_steps(
            parts.scatter(*operands), dtype, periodic=periodic
        )

        check(operands, x, axis, periodic=periodic)
        assert (repeated == x).all()
        assert not info.any() and not repeated_info.any()


@pytest.mark.parametrize("sizes", [(3001, 200), (200, 3001), (2048, 30, 400)])
def test_unequal_parts_that_share_a_device(rng, sizes):
    """Their blocks wait for each other, and are all resident."""
    ends = np.cumsum([0, *sizes])
    shape, count = (1000, int(ends[-1])), len(sizes)
    rows = [slice(int(a), int(b)) for a, b in pairwise(ends)]
    operands = batch(rng, shape, "float64", 1)
    parts = Parts(shape, "float64", count, 1, rows, devices=1)
    scattered = parts.scatter(*operands)
    # CUDA loads a kernel when it is first launched, and waits for those that run.
    in_steps, _ = parts.solve_in_steps(parts.scatter(*operands), "float64")

    for order in (range(count), reversed(range(count))):
        for k in order:
            parts.enqueue(k, scattered[k])
        parts.synchronize()
        x, info = parts.gather(scattered)

        assert not info.any() and (x == in_steps).all()
    check(operands, x, 1)


@pytest.mark.parametrize("shape", [(140000, 300), (300, 70000), (600000, 20)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_with_many_tiles(rng, dtype, shape):
    """A part that gets its own messages back solves periodic systems of its rows alone."""
    axis = int(np.argmin(shape))
    rows = shape[axis]
    parts = Parts((shape[0], 2 * rows) if axis else (2 * rows, shape[1]), dtype, 2, axis)
    one = [np.moveaxis(a, -1, axis) for a in oracle.dominant(rng, (97, rows), dtype)]
    repeats = [(shape[1 - axis] // 97 + 1) if k != axis else 1 for k in (0, 1)]
    most = tuple(slice(size) for size in shape)
    operands = [cupy.tile(cupy.asarray(a), repeats)[most].copy() for a in one]
    x = cupy.full_like(operands[-1], np.nan)
    info, marks = cupy.full(parts.systems, -99, "int32"), cupy.full(parts.systems, 99, "uint8")
    cupy.cuda.Device().synchronize()
    (own, _), _ = parts.boxes[0].arguments
    _, nbytes = _cuda.part_mailbox(_cuda.DTYPES[dtype], 1, 2, _cuda.PART_STEPS["whole"])
    loop = own, own + nbytes // 4  # what is sent to part 1 arrives as sent by part 1

    for _ in range(3):
        parts.enqueue(0, [*operands, x, info, marks], periodic=True, boxes=loop, checks=True)
    parts.synchronize()

    assert not info.any() and not marks.any()
    first = cupy.take(x, cupy.arange(97), axis=1 - axis)
    assert (x == cupy.take(first, cupy.arange(parts.systems) % 97, axis=1 - axis)).all()
    check(one, first.get(), axis, periodic=True)


@pytest.mark.parametrize("rows", [16, 17, 18, 35, 511, 544, 545])
def test_systems_that_a_warp_holds(rng, rows):
    """One of them has pivots whose reciprocals need scaling, another one is not dominant."""
    shape = (70, 2 * rows)
    operands = batch(rng, shape, "float64", 1)
    for a in operands:
        a[3] *= 2.0**-1010
    operands[1][5, rows // 2] *= 1e-3
    parts = Parts(shape, "float64", 2, 1)

    x, info = parts.solve(parts.scatter(*operands))
    repeated, _ = parts.solve_in_steps(parts.scatter(*operands), "float64")

    assert not info.any() and (repeated == x).all()
    check([np.delete(a, 5, 0) for a in operands], np.delete(x, 5, 0), 1)


@pytest.mark.parametrize("rows", [511, 2050, 3001])
def test_blocks_that_solve_several_tiles(rng, rows):
    """They do not store the x of systems that are not dominant."""
    shape, weak = (900, 2 * rows), np.arange(900) % 97 == 5
    operands = batch(rng, shape, "float64", 1)
    operands[1][weak, rows // 3] *= 1e-3
    parts = Parts(shape, "float64", 2, 1)
    scattered = parts.scatter(*operands)

    x, info = parts.solve(scattered, checks=True)

    assert not info.any() and all((own[-1].get() == weak).all() for own in scattered)
    assert np.isnan(x[weak]).all()
    check([a[~weak] for a in operands], x[~weak], 1)


def test_rounds_follow_each_other_without_waiting(rng):
    shape, count = (50, 600), 3
    parts = Parts(shape, "float64", count, 1)
    problems = [batch(rng, shape, "float64", 1) for _ in range(7)]
    scattered = [parts.scatter(*operands) for operands in problems]

    for k in range(count):
        for problem in scattered:
            parts.enqueue(k, problem[k])
    parts.synchronize()

    for operands, problem in zip(problems, scattered, strict=True):
        x = np.concatenate([own[-3].get() for own in problem], axis=1)
        check(operands, x, 1)


def test_a_graph_can_be_replayed(rng):
    shape, count = (50, 600), 2
    parts = Parts(shape, "float64", count, 1)
    operands = batch(rng, shape, "float64", 1)
    scattered = parts.scatter(*operands)
    parts.solve(scattered)
    graphs = []
    for k, stream in enumerate(parts.streams):
        with cupy.cuda.Device(parts.devices[k]), stream:
            stream.begin_capture()
            parts.enqueue(k, scattered[k])
            graphs.append(stream.end_capture())

    for factor in (2.0, 3.0, 5.0):
        for own, device in zip(scattered, parts.devices, strict=True):
            with cupy.cuda.Device(device):
                own[3][...] = factor * own[3]
                cupy.cuda.Device(device).synchronize()
        operands = [*operands[:3], factor * operands[3]]
        for k, (graph, stream) in enumerate(zip(graphs, parts.streams, strict=True)):
            with cupy.cuda.Device(parts.devices[k]):
                graph.launch(stream)
        parts.synchronize()
        check(operands, np.concatenate([own[-3].get() for own in scattered], axis=1), 1)


def test_same_bits_twice(rng):
    shape = (50, 611)
    operands = batch(rng, shape, "float32", 1)
    parts = Parts(shape, "float32", 3, 1)

    first, second = (parts.solve(parts.scatter(*operands))[0] for _ in range(2))

    assert (first == second).all()


@pytest.mark.parametrize("in_steps", [False, True])
@pytest.mark.parametrize("row", [0, 299, 300, 450, 599])
def test_a_bad_pivot_is_reported_by_all_parts(rng, row, in_steps):
    shape = (20, 600)
    lower, diag, upper, rhs = batch(rng, shape, "float64", 1)
    lower[5, row] = upper[5, row] = diag[5, row] = 0
    parts = Parts(shape, "float64", 2, 1)

    scattered = parts.scatter(lower, diag, upper, rhs)
    if in_steps:
        x, info = parts.solve_in_steps(scattered, "float64")
    else:
        x, info = parts.solve(scattered)

    assert info[5] > 0 and np.flatnonzero(info).tolist() == [5]
    keep = np.arange(20) != 5
    check([a[keep] for a in (lower, diag, upper, rhs)], x[keep], 1)


@pytest.mark.parametrize("in_steps", [False, True])
@pytest.mark.parametrize("row", [0, 30, 31, 80, 90])
@pytest.mark.parametrize("axis", [1, 0])
def test_systems_that_are_not_dominant_are_marked_by_all_parts(rng, axis, row, in_steps):
    shape = (40, 91) if axis else (91, 40)
    lower, diag, upper, rhs = batch(rng, shape, "float32", axis)
    (diag.T if axis else diag)[row, 7] *= 1e-3
    parts = Parts(shape, "float32", 3, axis)
    scattered = parts.scatter(lower, diag, upper, rhs)

    if in_steps:
        x, info = parts.solve_in_steps(scattered, "float32", checks=True)
    else:
        x, info = parts.solve(scattered, checks=True)

    assert not info.any()
    for own in scattered:
        assert np.flatnonzero(own[-1].get()).tolist() == [7]
    systems = x if axis else x.T
    assert np.isnan(systems[7]).all() and np.isfinite(np.delete(systems, 7, 0)).all()


def test_a_part_that_does_not_answer_is_named(rng):
    shape = (20, 600)
    operands = batch(rng, shape, "float64", 1)
    parts = Parts(shape, "float64", 3, 1)
    scattered = parts.scatter(*operands)

    begin = time.perf_counter()
    for k in (0, 2):
        parts.enqueue(k, scattered[k], patience=2 * 10**8)
    parts.synchronize()

    assert time.perf_counter() - begin < 5
    assert (scattered[0][-2].get() == -2).all() and (scattered[2][-2].get() == -2).all()


def outcomes(parts):
    """Return the outcome of the last call of each part, which the host has got as well."""
    found = []
    for box, device in zip(parts.boxes, parts.devices, strict=True):
        found.append(Outcome.of(Device(_cuda, device, "test").download(box.clock)))
        if box.answer is not None:  # earlier tests may have the memory that there is
            answer = np.frombuffer(box.answer.read(CLOCK_BYTES), np.uint8)
            assert Outcome.of(answer) == found[-1]
    return found


@pytest.mark.parametrize("count", [2, 3])
def test_calls_with_a_key(rng, count):
    """Also if a call has another key than the one before."""
    shape = (50, 600)
    operands = batch(rng, shape, "float64", 1)
    parts = Parts(shape, "float64", count, 1)
    scattered = parts.scatter(*operands)

    for key in (1 << 63, 3 << 62, 1 << 63, 1 << 63):
        x, _ = parts.solve(scattered, key=key)
        check(operands, x, 1)

    assert outcomes(parts) == [Outcome(4, -1, False, False)] * count


@pytest.mark.parametrize("kind", ["key", "another mailbox", "leave", "end"])
def test_a_part_that_makes_another_call_is_named_at_once(rng, kind):
    shape = (20, 600)
    operands = batch(rng, shape, "float64", 1)
    parts, others = (Parts(shape, "float64", 2, 1) for _ in range(2))
    others.logs = parts.logs
    scattered, of_others = parts.scatter(*operands), others.scatter(*operands)
    parts.solve(scattered, key=1 << 63)

    begin = time.perf_counter()
    parts.enqueue(0, scattered[0], key=1 << 63)
    if kind == "key":
        parts.enqueue(1, scattered[1], key=3 << 62)
    elif kind == "another mailbox":
        others.enqueue(1, of_others[1], key=3 << 62)
    elif kind == "leave":
        parts.logs[1].follow(parts.streams[1].ptr, int, is_captured=False)
        parts.logs[1].leave()
    else:
        time.sleep(0.1)
        parts.logs[0].give_up()
    parts.synchronize()
    others.synchronize()

    assert time.perf_counter() - begin < 2
    assert outcomes(parts)[0] == Outcome(2, 1, True, True)
    assert np.isnan(scattered[0][-3].get()).all()
    if kind == "key":
        assert outcomes(parts)[1] == Outcome(2, 0, True, True)
    if kind == "another mailbox":
        assert outcomes(others)[1] == Outcome(1, 0, True, True)


def test_more_rows_than_a_block_holds_are_refused(rng):
    shape = (2, 200000)
    parts = Parts(shape, "float64", 2, 1)
    operands = parts.scatter(*batch(rng, shape, "float64", 1))[0]

    with pytest.raises(AssertionError, match="PS_UNSUPPORTED"):
        parts.enqueue(0, operands)


def solve_in_a_process(part, count, operands, pipe):
    """Solve for one part, in a process of its own."""
    systems, rows = operands[0].shape
    device = part % cupy.cuda.runtime.getDeviceCount()
    own = slices(rows, count)
    with cupy.cuda.Device(device):
        box = Mailboxes(
            Device(_cuda, device, "test"), operands[0].dtype, systems, part, count, part
        )
        pipe.send(box.own)
        box.connect(pipe.recv())
        arrays = [cupy.array(np.ascontiguousarray(a[:, own[part]])) for a in operands]
        x = cupy.empty_like(arrays[-1])
        cupy.cuda.Device(device).synchronize()
        views = [_shadow(a)[None] for a in (*arrays, x)]
        last_rows = tuple(each.stop - 1 for each in own)
        addresses, clock = box.arguments
        log = CallLog(Device(_cuda, device, "test"), part, count, part)
        pipe.send(log.own)
        log.connect(pipe.recv())
        parts = part, count, last_rows, addresses, log.addresses, 1 << 63, clock
        parts = *parts, PATIENCE, 0, _cuda.PART_STEPS["whole"]
        assert _cuda.part_solve(0, *views, None, *parts, device, 0, box.sharing) == 0
        pipe.send(x.get())
        pipe.recv()  # all have their solution
        box.close()
        log.close()


@pytest.mark.parametrize("count", [2, 3])
def test_parts_in_processes_of_their_own(rng, count):
    operands = batch(rng, (40, 700), "float64", 1)
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(count)]
    workers = [
        context.Process(target=solve_in_a_process, args=(k, count, operands, pipes[k][1]))
        for k in range(count)
    ]
    for worker in workers:
        worker.start()
    ends = [end for end, _ in pipes]

    for _ in range(2):  # of the mailboxes and of the logs
        addresses = [end.recv() for end in ends]
        for end in ends:
            end.send(addresses)
    x = np.concatenate([end.recv() for end in ends], axis=1)
    for end in ends:
        end.send(None)
    for worker in workers:
        worker.join(30)

    check(operands, x, 1)
    assert all(worker.exitcode == 0 for worker in workers)
