"""Jobs of several ranks on this host, for the benchmarks that measure them.

Such a benchmark takes its values from `values_of_ranks`: it measures with the ranks of the MPI
launcher that started it; without a launcher it starts jobs itself, by `printed_by`, which print
their values with ``--json -``.

A case that cannot be measured, and a job that ends without values, do not lose the others:
`guarded` and `cases_of_jobs` return an entry with the reason in its place, which `without_failures`
takes out for the end of the report.
"""

import argparse
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pysolvers.distributed import Group
from pysolvers.distributed._launch import launch_command, launched

from .record import Record
from .timing import Call, Clock, host

__all__ = [
    "cases_of_jobs",
    "clock_of",
    "guarded",
    "printed_by",
    "values_of_ranks",
    "without_failures",
]


def values_of_ranks(
    args: argparse.Namespace, measure: Callable[[], Any], jobs: Callable[[], Any]
) -> Any | None:
    """Return the values of a benchmark; None if this process has nothing else to do.

    Parameters
    ----------
    args : Namespace
        The options of the benchmark.
    measure : callable
        Returns the values of the ranks of this job; collective.
    jobs : callable
        Returns the values of jobs that it starts, where this process is a rank of none.
    """
    prints = str(args.json) == "-"
    ranks, rank = launched()
    if ranks <= 1 and not prints:
        return jobs()
    found = measure()
    if rank > 0:
        return None
    if prints:
        json.dump(found, sys.stdout)
        return None
    return found


def printed_by(name: str, ranks: int, options: Sequence[str]) -> Any:
    """Return the values that rank 0 of a job prints.

    Parameters
    ----------
    name : str
        Name of a benchmark that prints its values with the options ``--json -``.
    ranks : int
        Number of processes; one needs no launcher.
    options : sequence of str
        Options of the benchmark.

    Raises
    ------
    CalledProcessError
        If the job prints no values.
    """
    arguments = ["-m", "pysolvers", "bench", name, *options, "--json", "-"]
    command = [sys.executable, *arguments] if ranks == 1 else launch_command(ranks, arguments)
    environment = {"MPIR_CVAR_ENABLE_GPU": "0"} | os.environ
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=environment)
    try:
        return json.loads(run.stdout)
    except json.JSONDecodeError:
        status = run.returncode or 1
        raise subprocess.CalledProcessError(status, command, run.stdout) from None


def guarded(what: str, measure: Callable[[], Record]) -> Record:
    """Return a case, or an entry with the reason if it cannot be measured.

    All ranks call this; an error of one of them raises on all.
    """
    try:
        return measure()
    except Exception as error:
        traceback.print_exc()
        return {"failed": f"{what}: {type(error).__name__}: {error}"}


def cases_of_jobs(name: str, jobs: Iterable[tuple[int, Sequence[str]]]) -> list[Record]:
    """Return the cases of jobs of a benchmark, by numbers of ranks and options."""
    found: list[Record] = []
    for ranks, options in jobs:
        try:
            found += printed_by(name, ranks, options)
        except subprocess.CalledProcessError as error:
            found.append({"failed": f"{name}, ranks {ranks}: exit status {error.returncode}"})
    return found


def without_failures(found: list[Record]) -> tuple[list[Record], list[str]]:
    """Return the cases that were measured, and what could not be measured.

    Raises
    ------
    RuntimeError
        If no case was measured.
    """
    failed = [case["failed"] for case in found if "failed" in case]
    cases = [case for case in found if "failed" not in case]
    if not cases:
        raise RuntimeError(f"no case was measured: {'; '.join(failed)}")
    return cases, failed


def clock_of(
    group: Group,
    wait: Callable[[], object] = lambda: None,
    begin: Callable[[], object] = lambda: None,
) -> Clock:
    """Return the clock of the host of the slowest rank; its use is collective.

    Parameters
    ----------
    group : Group
        The ranks, which begin a sample together.
    wait : callable, optional
        Waits for the device of a rank.
    begin : callable, optional
        Called by all ranks before a sample, which it is no part of.
    """

    def clock(call: Call, count: int) -> float:
        def calls() -> None:
            for _ in range(count):
                call()
            wait()

        wait()
        group.objects("benchmark", None)
        begin()
        wait()
        return max(group.objects("benchmark", host(calls, 1) / count))

    return clock
