"""The cost of a call of `solve_tridiagonal` with a group, between GPUs of one host.

Own matrices, dominant; rows along the last axis, which is cut; each rank has one GPU; arrays of
PyTorch that are the same in each call. `host` is the time until a call returns, `seconds` that of a
call of several that follow each other, the wait for the GPU included; of the slowest rank, medians.

`ignore` and `nan`: with ``pivot=False`` and these values of `on_singular`, which do not wait; `new`
is `ignore` without `out`. `default` are the default options, `raise` is ``pivot=False`` alone: both
wait for the outcome. So does `info`, which is `ignore` with ``return_info=True``. `graph` is the
call of a CUDA graph of ten calls `ignore`.

Needs PyTorch, and the extra 'mpi' for more than one rank. Rank r uses device r.
"""

import argparse
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from pysolvers import solve_tridiagonal
from pysolvers.cases.tables import Column, Table
from pysolvers.distributed import Group, Slab

from .options import add_options
from .ranks import cases_of_jobs, guarded, values_of_ranks, without_failures
from .record import Measurement, Record, finish
from .timing import Call, host

CASES = (  # dtype, lines, rows of all ranks
    ("float64", 256, 512),
    ("float32", 256, 512),
    ("float64", 4096, 512),
    ("float64", 65536, 4096),
    ("float32", 65536, 4096),
    ("float64", 262144, 1024),
)
FAST = {"pivot": False, "on_singular": "ignore"}
KINDS: dict[str, dict[str, Any]] = {
    "ignore": FAST,
    "nan": {"pivot": False, "on_singular": "nan"},
    "new": FAST,
    "default": {},
    "raise": {"pivot": False},
    "info": FAST | {"return_info": True},
}
HEADS = {name: f"`{name}`" for name in (*KINDS, "graph")}
SMALL = 10000  # lines up to which a sample has many calls
GROUPS = 7
IN_GRAPH = 10


def measure() -> list[Record]:
    """Return the cases of the ranks of this job; collective."""
    import torch
    from torch import cuda

    group, split = Group(), Slab(-1)
    in_graphs = Group()  # of its own: the host does not know how many calls a graph has made
    cuda.set_device(group.rank % cuda.device_count())

    def sample(call: Call, count: int) -> list[float]:
        """Return seconds of the host part and of all, of one of some calls.

        The ranks leave a message of MPI up to 1 ms apart, and a call less than 10 us.
        """
        cuda.synchronize()
        group.objects("benchmark", None)
        call()
        cuda.synchronize()
        own = host(call, count)
        rest = host(cuda.synchronize, 1) / count
        pairs = group.objects("benchmark", (own, own + rest))
        return [max(values) for values in zip(*pairs, strict=True)]

    def times(calls: dict[str, tuple[Call, int]]) -> Record:
        """Return the medians of each kind of calls, of samples in turn.

        One kind after the other, that which came about a second after the first large call took
        up to a quarter longer (`default` in three runs, `info` in two).
        """
        samples = [{name: sample(*each) for name, each in calls.items()} for _ in range(GROUPS)]
        found: Record = {}
        for name in calls:
            both = zip(*(one[name] for one in samples), strict=True)
            found[name] = dict(zip(("host", "seconds"), map(median, both), strict=True))
        return found

    def graph_of(call: Call) -> Callable[[], None]:
        """Return what launches a graph of calls."""
        stream, graph = cuda.Stream(), cuda.CUDAGraph()
        with cuda.stream(stream):
            for _ in range(3):
                call()
            stream.synchronize()
            with cuda.graph(graph, stream=stream):
                for _ in range(IN_GRAPH):
                    call()
        replay: Callable[[], None] = graph.replay
        return replay

    def case(dtype: str, lines: int, rows: int) -> Record:
        """Return the times of one size."""
        generator = torch.Generator("cuda").manual_seed(group.rank)
        shape = lines, rows // group.size
        empty = partial(torch.empty, shape, dtype=getattr(torch, dtype), device="cuda")
        arrays = [empty().uniform_(-1, 1, generator=generator) for _ in range(4)]
        arrays[1] += 3
        out = torch.empty_like(arrays[3])
        many = 200 if lines < SMALL else 20
        size = {"dtype": dtype, "lines": lines, "rows": rows, "ranks": group.size}
        calls: dict[str, tuple[Call, int]] = {}
        for name, options in KINDS.items():
            more = {} if name == "new" else {"out": out}
            call = partial(solve_tridiagonal, *arrays, group=group, split=split, **more, **options)
            for _ in range(5):
                call()
            calls[name] = call, 20 if name == "info" else many
        same = partial(solve_tridiagonal, *arrays, out=out, group=in_graphs, split=split, **FAST)
        calls["graph"] = graph_of(same), max(many // IN_GRAPH, 2)
        found = times(calls)
        found["graph"] = {name: time / IN_GRAPH for name, time in found["graph"].items()}
        return size | found

    return [guarded(f"ranks {group.size}, {size}", partial(case, *size)) for size in CASES]


def tables(record: Record) -> list[Table]:
    """Return the table of a record: microseconds of the host part, and of a call of a graph."""
    shown = [name for name in HEADS if any(name in case for case in record["cases"])]
    rows = []
    for case in record["cases"]:
        times = [case[name]["seconds" if name == "graph" else "host"] for name in shown]
        size = case["dtype"], case["rows"], case["lines"], case["ranks"]
        rows.append((*size, *(1e6 * time for time in times)))
    columns = [Column("dtype"), Column("rows"), Column("lines"), Column("GPUs")]
    columns += [Column(HEADS[name], ".0f") for name in shown]
    note = (
        "Microseconds until a call returns, of calls that follow each other. `ignore`, `nan`: with "
        "`pivot=False` and these values of `on_singular`; `new`: the first of them without `out`; "
        "`default`, and `raise` (`pivot=False` alone), wait for the GPU, so that their times are "
        "those of the whole call; `info`: `return_info=True`; `graph`: all of a call, one of ten "
        f"in a CUDA graph. Measured on {record['gpu']['name']}, NVLink, PyTorch "
        f"{record['versions']['torch']}."
    )
    return [Table("", columns, rows, (note,))]


TAKES_RANKS = True  # of an MPI launcher


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "ranks")


def jobs(args: argparse.Namespace) -> list[Record]:
    """Return the cases of jobs of all numbers of ranks above one on this host."""
    return cases_of_jobs("group_calls", ((ranks, []) for ranks in args.ranks if ranks > 1))


def run(args: argparse.Namespace) -> int:
    """Measure, print the table and write the record."""
    found = values_of_ranks(args, measure, lambda: jobs(args))
    if found is None:
        return 0
    found, failed = without_failures(found)
    measurement = Measurement("group_calls", ("torch", "mpi4py", "mpich"), gpu=True)
    record = measurement.record(found, {"groups": GROUPS})
    count = max(case["ranks"] for case in found)
    finish(args, record, tables(record), failed=failed, count=count)
    return bool(failed)
