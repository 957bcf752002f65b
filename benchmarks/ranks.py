"""Jobs of several ranks on this host, for the benchmarks that measure them.

Such a benchmark takes its values from `values_of_ranks`: it measures with the ranks of the MPI
launcher that started it; without a launcher it starts jobs itself, by `printed_by`, which print
their values with ``--json -``.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from pysolvers.distributed import Group
from pysolvers.distributed._launch import launch_command, launched

from .timing import Call, Clock, host

__all__ = ["clock_of", "printed_by", "values_of_ranks"]


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
    """
    arguments = ["-m", "pysolvers", "bench", name, *options, "--json", "-"]
    command = [sys.executable, *arguments] if ranks == 1 else launch_command(ranks, arguments)
    environment = {"MPIR_CVAR_ENABLE_GPU": "0"} | os.environ
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(run.stdout)


def clock_of(group: Group, wait: Callable[[], object] = lambda: None) -> Clock:
    """Return the clock of the host of the slowest rank; its use is collective.

    Parameters
    ----------
    group : Group
        The ranks, which begin a sample together.
    wait : callable, optional
        Waits for the device of a rank.
    """

    def clock(call: Call, count: int) -> float:
        def calls() -> None:
            for _ in range(count):
                call()
            wait()

        wait()
        group.objects("benchmark", None)
        return max(group.objects("benchmark", host(calls, 1) / count))

    return clock
