"""Records: the files of measured values, of one form for all benchmarks.

A record is a JSON object with

    benchmark   the name of the benchmark
    date        the day of the measurement
    sources     the hash of the C and CUDA sources that were measured (`benchmarks.sources`); of a
                GPU that of the sources without csrc/cpu
    machine     processor, processors usable, largest cache, system
    gpu         name, driver and memory of the GPU, null for a benchmark of the CPU
    versions    of Python and of packages
    load        of the machine before the measurement
    settings    options of the run
    cases       what was measured: a list, or an object by names

and further entries of the benchmark.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

from pysolvers._repr import counted
from pysolvers.cases.records import write_record
from pysolvers.cases.tables import Table

from . import machine
from .sources import device_hash, source_hash

Record = dict[str, Any]

RESULTS = Path(__file__).resolve().parent / "results"


def slug(name: str) -> str:
    """Return the name of a processor or of a GPU as that of a file: NVIDIA H200 is h200."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower().removeprefix("nvidia ")).strip("-")


def machine_name(gpu: dict[str, str] | None = None, count: int = 1) -> str:
    """Return the name of a machine in the names of its records.

    Parameters
    ----------
    gpu : dict, optional
        The GPU; by default the processor is named, with the number of processors.
    count : int, default: 1
        Number of GPUs.
    """
    if gpu is None:
        return f"{slug(machine.cpu_model())}-{machine.cpu_count()}"
    return slug(gpu["name"]) + (f"-x{count}" if count > 1 else "")


class Measurement:
    """A run of a benchmark and its record.

    Parameters
    ----------
    benchmark : str
        Its name.
    packages : iterable of str
        Distributions whose versions the record contains, in addition to pysolvers and NumPy.
    gpu : bool, default: False
        Whether a GPU is measured.
    """

    def __init__(self, benchmark: str, packages: Iterable[str] = (), *, gpu: bool = False) -> None:
        self.benchmark, self._load = benchmark, machine.load()
        self._versions = machine.versions("pysolvers", "numpy", *packages)
        unknown = {"name": "unknown GPU", "driver": "unknown", "memory": "unknown"}
        self.gpu = (machine.gpu() or unknown) if gpu else None
        self._sources = device_hash() if gpu else source_hash()

    def record(self, cases: Any, settings: Record | None = None, **more: Any) -> Record:
        """Return the record.

        Parameters
        ----------
        cases : list or dict
            What was measured.
        settings : dict, optional
            Options of the run.
        **more
            Further entries; those of the same name replace entries of the schema.
        """
        return {
            "benchmark": self.benchmark,
            "date": date.today().isoformat(),
            "sources": self._sources,
            "machine": machine.machine(),
            "gpu": self.gpu,
            "versions": self._versions,
            "load": self._load,
            "settings": settings or {},
            **more,
            "cases": cases,
        }


def write(args: argparse.Namespace, record: Record, count: int = 1) -> None:
    """Write a record to the files that the options of a command name.

    Parameters
    ----------
    args : Namespace
        With the options `json` and `record` of `benchmarks.options`.
    record : dict
        The record.
    count : int, default: 1
        Number of GPUs.
    """
    paths = [args.json] if args.json else []
    if args.record:
        paths.append(RESULTS / f"{record['benchmark']}-{machine_name(record['gpu'], count)}.json")
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_record(path, record)
        print(f"record in {path}; load of the machine before: {record['load']}", file=sys.stderr)


def place(record: Record) -> str:
    """Return the name of the GPU or of the processor that a record is of."""
    return str(record["gpu"]["name"] if record["gpu"] else record["machine"]["cpu"])


def head(record: Record) -> Iterator[str]:
    """Yield what stands above the tables of a record: the machine and its load."""
    parts = [place(record)]
    parts += [record["kernel"]] if "kernel" in record else []
    threads = record["settings"].get("threads")
    parts += [counted(threads, "thread")] if threads else []
    yield ", ".join(parts)
    if record["load"] is not None:
        yield f"load of the machine before: {record['load']}"


def finish(
    args: argparse.Namespace,
    record: Record,
    tables: Iterable[Table],
    missed: Iterable[str] = (),
    failed: Iterable[str] = (),
    count: int = 1,
) -> None:
    """Print the tables of a record and write it to the files that the options name.

    Parameters
    ----------
    args : Namespace
        With the options `json` and `record`.
    record : dict
        The record.
    tables : iterable of Table
        Its tables.
    missed : iterable of str
        What misses a target of the benchmark; not printed after a quick run, which has none.
    failed : iterable of str
        What could not be measured.
    count : int, default: 1
        Number of GPUs.
    """
    lines = [*head(record)]
    for table in tables:
        lines += ["", *table.lines()]
    if not record["settings"].get("quick"):
        lines += [f"missed: {text}" for text in missed]
    lines += [f"failed: {text}" for text in failed]
    print("\n".join(lines))
    write(args, record, count)
