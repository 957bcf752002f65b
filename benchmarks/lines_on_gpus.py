"""The measurements of `lines`, with PyTorch; see there."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from math import prod
from statistics import median
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist

from pysolvers import solve_tridiagonal
from pysolvers.distributed import Group, Slab
from pysolvers.distributed._devices import _NcclLink
from pysolvers.distributed._nccl import Nccl

from .papers.pascal_tdma import PUBLISHED_SHAPE
from .ranks import clock_of, guarded
from .record import Record
from .timing import Call, median_of

CASES = (  # dtype, lines, rows of all ranks
    ("float64", prod(PUBLISHED_SHAPE[:2]), PUBLISHED_SHAPE[2]),
    ("float64", 4 * prod(PUBLISHED_SHAPE[:2]), PUBLISHED_SHAPE[2] // 4),
    ("float32", prod(PUBLISHED_SHAPE[:2]), PUBLISHED_SHAPE[2]),
)
CALLS = 30  # in a group
GROUPS = 7
COPIED = 1 << 31  # bytes
STAGES = {"send": "elimination", "receive": "second elimination, reduced systems, substitution"}


class Events:
    """Milliseconds between events on the current stream, by stage."""

    def __init__(self) -> None:
        self._pairs: dict[str, list[tuple[Any, Any]]] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure what is enqueued in the context."""
        pair = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        pair[0].record()
        yield
        pair[1].record()
        self._pairs.setdefault(name, []).append(pair)

    def seconds(self) -> dict[str, float]:
        """Return the median of each stage."""
        torch.cuda.synchronize()
        return {
            name: 1e-3 * median(begin.elapsed_time(end) for begin, end in pairs)
            for name, pairs in self._pairs.items()
        }


class Transposition:
    """Whole lines of arrays of shape (lines, rows) whose rows are cut; all parts are equal."""

    def __init__(self, group: Group, lines: int, rows: int) -> None:
        ranks = group.size
        self._pieces = ranks, lines // ranks, rows // ranks
        self._whole = lines // ranks, rows

    def to_lines(self, part: torch.Tensor) -> torch.Tensor:
        """Return the lines of this rank."""
        pieces = part.new_empty(self._pieces)
        dist.all_to_all_single(pieces, part.view(self._pieces))
        return pieces.transpose(0, 1).reshape(self._whole)

    def from_lines(self, whole: torch.Tensor, part: torch.Tensor) -> None:
        """Set the part of this rank from the lines of all."""
        ranks, lines, rows = self._pieces
        pieces = whole.view(lines, ranks, rows).transpose(0, 1).contiguous()
        dist.all_to_all_single(part.view(self._pieces), pieces)


def bandwidth() -> float:
    """Return the bytes per second of a copy, read plus written."""
    source = torch.ones(COPIED // 4, device="cuda")
    target = torch.empty_like(source)
    events = Events()
    for _ in range(9):
        with events.stage("copy"):
            target.copy_(source)
    return 2 * COPIED / events.seconds()["copy"]


def seconds_of(group: Group, call: Call) -> float:
    """Return the seconds of a call, of the slowest rank.

    The ranks leave a message of MPI up to 1 ms apart, and a call less than 10 us.
    """
    clock = clock_of(group, torch.cuda.synchronize, begin=call)
    return median_of(call, GROUPS, length=CALLS, clock=clock)


def stages_of(call: Callable[[], Any], events: Events) -> dict[str, float]:
    """Return the seconds of the stages of a call, for which `events` is used."""
    for _ in range(CALLS):
        call()
    return events.seconds()


@contextmanager
def timed_nccl(events: Events) -> Iterator[None]:
    """Measure the stages of solves by NCCL."""
    step, exchange = _NcclLink._step, Nccl.exchange

    def timed_step(self: _NcclLink, name: str, *arguments: Any) -> int:
        with events.stage(STAGES[name]):
            return step(self, name, *arguments)

    def timed_exchange(self: Nccl, *arguments: Any) -> None:
        with events.stage("exchange"):
            exchange(self, *arguments)

    with ExitStack() as patches:
        patches.enter_context(patch.object(_NcclLink, "_step", timed_step))
        patches.enter_context(patch.object(Nccl, "exchange", timed_exchange))
        yield


def operands(rank: int, shape: tuple[int, int], dtype: torch.dtype) -> list[torch.Tensor]:
    """Return lower, diag, upper and rhs."""
    generator = torch.Generator("cuda").manual_seed(rank)
    found = [
        torch.empty(shape, dtype=dtype, device="cuda").uniform_(-1, 1, generator=generator)
        for _ in range(4)
    ]
    found[1] += 3
    return found


def cut_case(
    group: Group, link: str, arrays: list[torch.Tensor], out: torch.Tensor, fast: dict[str, Any]
) -> Record:
    """Return the times of solves by one link between the GPUs."""
    cut: dict[str, Any] = {"group": _group(group, link), "split": Slab(-1), "out": out}

    def solve() -> None:
        solve_tridiagonal(*arrays, **fast, **cut)

    _, info = solve_tridiagonal(*arrays, return_info=True, **fast, **cut)
    assert info.exchange == link, info.exchange
    found: Record = {
        "exchange": link,
        "seconds": seconds_of(group, solve),
        "checked": seconds_of(group, lambda: solve_tridiagonal(*arrays, **cut)),
    }
    if link == "nccl":
        events = Events()
        with timed_nccl(events):
            found["stages"] = stages_of(solve, events)
    return found


def cases_of(group: Group, dtype: str, lines: int, rows: int) -> Iterator[Record]:
    """Yield the times of one case, by link, and by transposition."""
    shape = lines, rows // group.size
    arrays = operands(group.rank, shape, getattr(torch, dtype))
    out = torch.empty_like(arrays[-1])
    fast: dict[str, Any] = {"pivot": False, "on_singular": "ignore"}
    if group.size == 1:
        yield {
            "exchange": "one GPU",
            "seconds": seconds_of(group, lambda: solve_tridiagonal(*arrays, out=out, **fast)),
            "checked": seconds_of(group, lambda: solve_tridiagonal(*arrays, out=out)),
        }
        return
    what = f"ranks {group.size}, {dtype}, {lines} lines"
    found = [
        guarded(f"{what}, {link}", partial(cut_case, group, link, arrays, out, fast))
        for link in ("peers", "nccl")
    ]
    yield from found
    solved = out if any("failed" not in case for case in found) else None
    whole = Transposition(group, lines, rows)
    yield guarded(f"{what}, transposition", partial(transposed_case, group, whole, arrays, solved))


def transposed_case(
    group: Group, whole: Transposition, arrays: list[torch.Tensor], solved: torch.Tensor | None
) -> Record:
    """Return the times of solves of whole lines; compare them with `solved`, if it is given."""
    events, out = Events(), torch.empty_like(arrays[-1])

    def transposed() -> None:
        with events.stage("to whole lines"):
            of_lines = [whole.to_lines(array) for array in arrays]
        with events.stage("solve"):
            x = solve_tridiagonal(*of_lines, pivot=False, on_singular="ignore")
        with events.stage("back"):
            whole.from_lines(x, out)

    seconds = seconds_of(group, transposed)
    found: Record = {"exchange": "transposition", "seconds": seconds}
    found["stages"] = stages_of(transposed, events)
    largest = 0.0 if solved is None else float((out - solved).abs().max())
    assert largest < 100 * torch.finfo(out.dtype).eps, largest
    return found


def _group(group: Group, link: str) -> Group:
    """Return the ranks of a group with one link between devices; collective."""
    kept: dict[str, Group] = group.kept.setdefault("groups", {})
    if link not in kept:
        kept[link] = Group(links=(link,))
    return kept[link]


def measure() -> list[Record]:
    """Return the cases of the ranks of this job; collective."""
    group = Group()
    torch.cuda.set_device(group.rank)
    if group.size > 1:
        store = dist.TCPStore("127.0.0.1", 0, is_master=True) if group.rank == 0 else None
        port = group.objects("benchmark", store.port if store else None)[0]
        store = store or dist.TCPStore("127.0.0.1", port, is_master=False)
        dist.init_process_group("nccl", store=store, rank=group.rank, world_size=group.size)
    slowest = min(group.objects("benchmark", bandwidth()))
    found: list[Record] = []
    for dtype, lines, rows in CASES:
        words = 5 * lines * rows // group.size
        common = {"dtype": dtype, "lines": lines, "rows": rows, "ranks": group.size}
        common["floor"] = words * getattr(torch, dtype).itemsize / slowest
        found += [common | case for case in cases_of(group, dtype, lines, rows)]
        torch.cuda.empty_cache()
    if group.size > 1:
        dist.destroy_process_group()
    return found
