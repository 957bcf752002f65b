"""Compare the default number of threads with one thread, next to busy processes and without.

For each case, samples with threads=1 and with the default number follow each other in random
order; a sample is the time of as many calls, one after the other, as take about 0.5 ms, less than
a time slice of the scheduler. The ratio is that of the medians. The measurement is made twice: as
the machine is, and next to one busy process for each processor.

With ``--against FOLDER``, samples of the default number of threads of the build of the copy in
FOLDER alternate with those of this one. A process of its own times the calls of each build: it runs
this file, and imports nothing else of this folder.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

SAMPLE_SECONDS = 0.0005
ROWS = 100
SIZES = tuple(10**k for k in range(2, 8))
GRIDS = (64, 1024)
LIMITS = {"quiet": 1.05, "busy": 1.1}
BUSY_LOOP = "while True: pass"


def tridiagonal(axis: int, unknowns: int) -> Callable[[int | None], Callable[[], object]]:
    """Return what makes a call that solves systems of 100 rows along `axis`."""
    import numpy as np

    from pysolvers import solve_tridiagonal

    shape = (unknowns // ROWS, ROWS) if axis == 1 else (ROWS, unknowns // ROWS)
    rng = np.random.default_rng(1)
    diag, rhs = rng.uniform(3, 4, shape), rng.uniform(-1, 1, shape)
    out = np.empty(shape)

    def make(threads: int | None) -> Callable[[], object]:
        return lambda: solve_tridiagonal(-1.0, diag, -1.0, rhs, axis=axis, out=out, threads=threads)

    return make


def one_system(unknowns: int) -> Callable[[int | None], Callable[[], object]]:
    """Return what makes a call that solves a single system."""
    import numpy as np

    from pysolvers import solve_tridiagonal

    rng = np.random.default_rng(1)
    diag, rhs = rng.uniform(3, 4, unknowns), rng.uniform(-1, 1, unknowns)
    out = np.empty(unknowns)

    def make(threads: int | None) -> Callable[[], object]:
        return lambda: solve_tridiagonal(-1.0, diag, -1.0, rhs, out=out, threads=threads)

    return make


def solver(name: str, n: int) -> Callable[[int | None], Callable[[], object]]:
    """Return what makes a call of a solver on a grid of n x n: a step, or a few iterations."""
    from pysolvers import GCEIDD, LMSOR, ConvectionDiffusion, Dirichlet, HeatADI
    from pysolvers.flow import LidDrivenCavity
    from pysolvers.relaxation import SteadyConvectionDiffusion

    def make(threads: int | None) -> Callable[[], object]:
        if name == "HeatADI":
            heat = HeatADI((n, n), 1 / n, 1e-3, threads=threads, boundary=0.0)
            return lambda: heat.step(4)
        if name == "GCEIDD":
            problem = ConvectionDiffusion((1.0, 0.5), 1e-3, initial=1.0, boundary=Dirichlet(1.0))
            transport = GCEIDD(problem, shape=(n + 1, n + 1), dt=0.5 / n, strips=4, threads=threads)
            return lambda: transport.step(4)
        if name == "LMSOR":
            steady = SteadyConvectionDiffusion(
                9.0, 5.0, shape=(n + 2, n + 2), extent=((0, 1), (0, 1)), source=1.0, boundary=0.0
            )
            relaxation = LMSOR(steady, threads=threads)
            return lambda: relaxation.iterate(8)
        cavity = LidDrivenCavity(1000, n, threads=threads)
        return lambda: cavity.iterate(2)

    return make


def cases() -> Iterator[tuple[str, int]]:
    """Yield name and size of every case."""
    for size in SIZES:
        for name in ("last axis", "first axis", "one system"):
            yield name, size
    for n in GRIDS:
        for name in ("HeatADI", "GCEIDD", "LMSOR", "cavity"):
            yield name, n


def maker(name: str, size: int) -> Callable[[int | None], Callable[[], object]]:
    """Return what makes the call of a case for a number of threads."""
    if name == "one system":
        return one_system(size)
    if name.endswith("axis"):
        return tridiagonal(1 if name == "last axis" else 0, size)
    return solver(name, size)


def serve() -> None:
    """Time calls in this process: answer each line of standard input with a line of JSON."""
    import pysolvers
    from pysolvers._runtime import backends

    core = backends.require("cpu")
    print(json.dumps([pysolvers.__file__, core.default_threads()]), flush=True)
    calls: dict[Any, Callable[[], object]] = {}
    for line in sys.stdin:
        name, size, threads, count = json.loads(line)
        if count == 0:  # the case begins
            make = maker(name, size)
            calls = {t: make(t) for t in (1, None)}
            answer: Any = None
            for call in calls.values():
                call()
        else:
            call = calls[threads]
            begin = time.perf_counter()
            for _ in range(count):
                call()
            answer = (time.perf_counter() - begin) / count
        print(json.dumps(answer), flush=True)


class Server:
    """A process that times calls of the package in `folder`."""

    def __init__(self, folder: Path) -> None:
        environment = os.environ | {"PYTHONPATH": str(folder)}
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.package, self.threads = self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def ask(self, name: str, size: int, threads: int | None, count: int) -> Any:
        """Return seconds for one call, the mean of `count`."""
        assert self._process.stdin is not None
        print(json.dumps([name, size, threads, count]), file=self._process.stdin, flush=True)
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep `count` processors busy with processes of their own."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY_LOOP]) for _ in range(count)]
    try:
        time.sleep(0.2 if busy else 0)
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def measure(servers: dict[str, Server], name: str, size: int, samples: int) -> dict[str, float]:
    """Return the median seconds of one call, for one thread and for the default number."""
    from .timing import alternate

    here = servers["default"]
    for server in servers.values():
        server.ask(name, size, None, 0)
    once = min(here.ask(name, size, 1, 1) for _ in range(3))
    count = max(1, round(SAMPLE_SECONDS / once))
    samples = max(5, min(samples, round(4.0 / (once * count))))
    draws = {"one": lambda: here.ask(name, size, 1, count)} | {
        key: lambda s=server: s.ask(name, size, None, count) for key, server in servers.items()
    }
    times = alternate(draws, dict.fromkeys(draws, samples))
    return {key: median(values) for key, values in times.items()}


def measure_all(servers: dict[str, Server], samples: int, wanted: str) -> list[dict[str, Any]]:
    """Measure every case in both states of the machine."""
    from pysolvers._progress import progress

    results = []
    todo = [case for case in cases() if wanted in " ".join(map(str, case))]
    for state, count in (("quiet", 0), ("busy", os.cpu_count() or 1)):
        with busy_processes(count):
            for name, size in progress(todo, state):
                times = measure(servers, name, size, samples)
                ratio = times["default"] / times["one"]
                entry = {"state": state, "case": name, "size": size, "ratio": round(ratio, 4)}
                results.append(entry | {f"{key} us": round(t * 1e6, 2) for key, t in times.items()})
    return results


def tables(record: dict[str, Any]) -> list[Any]:
    """Return the tables of a record: one for each state of the machine."""
    from pysolvers.cases.tables import Column, Table

    columns = [Column("case"), Column("size"), Column("one thread, µs", ".1f")]
    columns += [Column("ratio", ".3f"), Column("other build", ".3f"), Column("limit", ".2f")]
    return [
        Table(
            state,
            columns,
            [
                (
                    e["case"],
                    e["size"],
                    e["one us"],
                    e["ratio"],
                    e["other us"] / e["one us"] if "other us" in e else None,
                    limit,
                )
                for e in record["cases"]
                if e["state"] == state
            ],
        )
        for state, limit in LIMITS.items()
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    from .options import add_options

    add_options(parser, samples=60)
    parser.add_argument("--against", type=Path, help="folder of another copy, built")
    parser.add_argument("--only", default="", help="cases whose name holds this text")


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables and write the record."""
    from .record import Measurement, finish

    measurement = Measurement("threads")
    servers = {"default": Server(ROOT)}
    if args.against:
        servers["other"] = Server(args.against.resolve())
    settings = {"threads": servers["default"].threads, "samples": args.samples}
    found = measure_all(servers, args.samples, args.only)
    for server in servers.values():
        server.close()
    record = measurement.record(found, settings, limits=LIMITS)
    missed = [
        f"{e['case']} {e['size']}, {e['state']}" for e in found if e["ratio"] > LIMITS[e["state"]]
    ]
    finish(args, record, tables(record), missed)
    return 0


if __name__ == "__main__":  # the process of a server, with the package of PYTHONPATH
    serve()
