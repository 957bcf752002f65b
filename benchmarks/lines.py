"""Lines that are cut over GPUs, by each link of `Group`, and by transposition.

Own matrices, dominant; rows along the last axis, which is cut; each rank has one GPU. The first
case is that of PaScaL_TDMA. `one GPU` is the solve of the whole lines without a group. The links
are those of `Group`: "peers", one kernel that exchanges within itself, and "nccl", two kernels with
NCCL between them. `transposition` is what users do without a solver for cut lines:
torch.distributed.all_to_all_single by NCCL makes whole lines of the operands, the solver of one GPU
solves them, and the solution goes back.

A time is that of calls that follow each other, of the slowest rank, divided by their number; the
median over groups of calls. `floor` is the time of a copy of five words per unknown of a rank, on
the slowest GPU of the run. The stages of "nccl" and of the transposition are times between events
on the stream: the first kernel of "nccl" eliminates, the second one eliminates again, solves the
reduced systems and substitutes.

Needs PyTorch, and the extra 'mpi' for more than one rank. Rank r uses device r.
"""

import argparse
from typing import Any

from pysolvers.cases.tables import Column, Table

from .options import add_options
from .ranks import cases_of_jobs, values_of_ranks, without_failures
from .record import Measurement, Record, finish

SIZE = ("dtype", "rows", "lines")


def shares_of_one(record: Record) -> list[float]:
    """Return the speed of each GPU of each case, of that of the first case of the same size."""
    alone: dict[tuple[Any, ...], float] = {}
    found = []
    for entry in record["cases"]:
        time = entry["seconds"] * entry["ranks"]
        found.append(alone.setdefault(tuple(entry[key] for key in SIZE), time) / time)
    return found


def tables(record: Record) -> list[Table]:
    """Return the tables of a record: times, and the stages of those by several kernels."""
    rows, stages = [], []
    for entry, share in zip(record["cases"], shares_of_one(record), strict=True):
        size = tuple(entry[key] for key in SIZE)
        time, gpus = entry["seconds"], entry["ranks"]
        shares = (entry["floor"] / time, share)
        default = 1e3 * entry["checked"] if "checked" in entry else None
        rows.append((*size, gpus, entry["exchange"], 1e3 * time, *shares, default))
        found = entry.get("stages", {})
        times = ", ".join(f"{name} {1e3 * seconds:.2f}" for name, seconds in found.items())
        if times:
            stages.append((*size, gpus, entry["exchange"], times))
    first = (Column("dtype"), Column("rows"), Column("lines"), Column("GPUs"))
    columns = (
        *first,
        Column("exchange", left=True),
        Column("ms", ".2f"),
        Column("of the floor", ".0%"),
        Column("of one GPU", ".0%"),
        Column("default", ".2f"),
    )
    note = (
        "Times of calls that follow each other, with `pivot=False` and `on_singular='ignore'`; "
        "*default*: with the default options, which test for dominance and singular systems. "
        f"Measured on {record['gpu']['name']}, NVLink, PyTorch {record['versions']['torch']}."
    )
    parts = (*first, Column("exchange", left=True), Column("stages, ms", left=True))
    return [Table("", columns, rows, (note,)), Table("", parts, stages)]


TAKES_RANKS = True  # of an MPI launcher


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "ranks")


def measure() -> list[Record]:
    """Return the cases of the ranks of this job; collective."""
    from . import lines_on_gpus  # imports PyTorch

    return lines_on_gpus.measure()


def jobs(args: argparse.Namespace) -> list[Record]:
    """Return the cases of jobs of all numbers of ranks on this host."""
    return cases_of_jobs("lines", ((ranks, []) for ranks in args.ranks))


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables and write the record."""
    found = values_of_ranks(args, measure, lambda: jobs(args))
    if found is None:
        return 0
    found, failed = without_failures(found)
    measurement = Measurement("lines", ("torch", "mpi4py", "mpich"), gpu=True)
    record = measurement.record(found)
    count = max(case["ranks"] for case in found)
    finish(args, record, tables(record), failed=failed, count=count)
    return bool(failed)
