"""Say with NVIDIA's profiler why cases of a benchmark miss their bars.

    python -m pysolvers bench gpu_profile BENCH.json PROFILE.json

Every case of the benchmark's record that misses its bar, and a step of each solver on grids, runs
once under `ncu`. What is kept: bytes moved against the fewest, and of the kernel that takes
longest the occupancy, the share of the issue slots in use, registers, and what its warps wait for.
"""

import argparse
import csv
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from pysolvers.papers.wei2013 import heated_plate

from .batches import Buffers
from .gpu import solver
from .gpu_cases import UNKNOWNS, GpuCase
from .gpu_table import has_bar, misses
from .papers.gceidd2022_speed import pulse_solver
from .sources import device_hash
from .timing import require_cupy

SECTIONS = ("LaunchStats", "Occupancy", "SchedulerStats", "WarpStateStats")
BYTES = ("dram__bytes_read.sum", "dram__bytes_write.sum")
SECTORS = ("lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum")
TIME = "gpu__time_duration.sum"
# What is kept of the kernel that takes longest: name in the record -> metric of ncu.
KEPT = {
    "occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "issue": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
    "threads": "launch__block_size",
}
STALL = re.compile(r"smsp__average_warps?_issue_stalled_(\w+?)_per_issue_active\.ratio")
# A kernel of this name is launched after each case, so that each kernel belongs to one case.
END = "end_of_case"
SECTOR = 32
# Nodes, dtype, scheme and fewest words of the steps on grids.
STEPS = (
    ((8192, 8192), "float32", "peaceman-rachford", 4),
    ((4096, 4096), "float64", "peaceman-rachford", 4),
    ((512, 512, 512), "float64", "douglas-gunn", 6),
    ((2048, 2048), "float64", "gceidd", 4),
)
GCEIDD_STRIPS = 256

Row = dict[str, str]
Facts = dict[str, Any]


def profile(bench: Path, output: Path) -> None:
    """Profile what misses its bar in the record `bench` and write what was found to `output`."""
    if shutil.which("ncu") is None:
        raise SystemExit("ncu, NVIDIA Nsight Compute, is not on PATH")
    record = json.loads(bench.read_text())
    missed = [entry for entry in record["cases"] if has_bar(entry) and misses(entry)]
    with tempfile.TemporaryDirectory() as folder:
        todo = Path(folder) / "cases.json"
        todo.write_text(json.dumps([entry for entry in missed if "failure" not in entry]))
        command = ["ncu", "--csv", "--page", "raw", "--print-units", "base"]
        command += ["--profile-from-start", "off"]
        command += [option for name in SECTIONS for option in ("--section", name)]
        command += ["--metrics", ",".join((*BYTES, *SECTORS, TIME))]
        command += [sys.executable, "-m", "pysolvers", "bench", "gpu_profile", "--run", str(todo)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"ncu failed:\n{run.stdout[-2000:]}\n{run.stderr[-2000:]}")
    lines = run.stdout.splitlines()
    names = [json.loads(line.removeprefix("case ")) for line in lines if line.startswith("case ")]
    kernels = cases_of(line for line in lines if line.startswith('"'))
    entries = [
        name | summary(rows, name["bytes"]) for name, rows in zip(names, kernels, strict=True)
    ]
    output.write_text(json.dumps({"sources": device_hash(), "cases": entries}, indent=1) + "\n")


def cases_of(lines: Iterable[str]) -> Iterator[list[Row]]:
    """Yield the kernels of each case from the lines of the table that ncu prints."""
    found: list[Row] = []
    for row in csv.DictReader(lines):
        if not row["ID"]:  # the line of the units
            continue
        if row["Kernel Name"].startswith(END):
            yield found
            found = []
        else:
            found.append(row)


def summary(rows: list[Row], fewest: float) -> Facts:
    """Return what is kept of the kernels of a case that has to move `fewest` bytes."""
    longest = max(rows, key=lambda row: number(row[TIME]))
    stalls = {m[1]: number(longest[name]) for name in longest if (m := STALL.fullmatch(name))}
    total = sum(stalls.values())
    most = sorted(stalls, key=lambda name: -stalls[name])[:4]
    return {
        "kernels": len(rows),
        "bytes": sum(number(row[name]) for row in rows for name in BYTES) / fewest,
        "sectors": SECTOR * sum(number(row[name]) for row in rows for name in SECTORS) / fewest,
        "kernel": short_name(longest["Kernel Name"]),
        **{name: number(longest[metric]) for name, metric in KEPT.items()},
        "stalls": {name: round(stalls[name] / total, 3) for name in most},
    }


def short_name(kernel: str) -> str:
    """Return the name of a kernel without its type, namespaces and arguments.

    Of a kernel that calls an operation (cuda/runtime/elements.cuh) it is that of the operation.
    """
    text = kernel.replace("<unnamed>::", "")
    operation = re.search(r"\w*(?:elements|threads)_kernel<\(int\)\d+, (.+)", text)
    name = re.split(r"[<(,]", operation[1] if operation else text)[0]
    return re.split(r"\s|::", name)[-1]


def number(text: str) -> float:
    """Return a number that ncu printed, with commas between the thousands or without."""
    return float(text.replace(",", ""))


def run_cases(path: Path) -> None:
    """Run each case once for the profiler, and print a line for each."""
    cupy = require_cupy()
    end = cupy.RawKernel(f'extern "C" __global__ void {END}() {{}}', END)
    end((1,), (1,), ())
    entries = json.loads(path.read_text())
    for dtype in dict.fromkeys(entry["dtype"] for entry in entries):
        buffers = Buffers(dtype, UNKNOWNS, cupy)
        for entry in (entry for entry in entries if entry["dtype"] == dtype):
            names = {field.name for field in fields(GpuCase)}
            case = GpuCase(**{name: entry[name] for name in names})
            work, _ = solver(case, buffers.system(case))
            facts = {name: entry[name] for name in ("matrix", "axis", "dtype", "rows", "systems")}
            size = case.words * case.unknowns * np.dtype(dtype).itemsize
            run_case(facts | {"part": case.part, "bytes": size}, work, end)
        del buffers
        cupy.get_default_memory_pool().free_all_blocks()
    for shape, dtype, scheme, words in STEPS:
        facts = {"scheme": scheme, "shape": shape, "dtype": dtype}
        size = words * float(np.prod(shape)) * np.dtype(dtype).itemsize
        run_case(facts | {"part": "steps", "bytes": size}, stepper(shape, dtype, scheme), end)


def stepper(shape: tuple[int, ...], dtype: str, scheme: str) -> Callable[[], object]:
    """Return a function that makes a step of a solver on a grid."""
    made = (
        pulse_solver(shape[0], GCEIDD_STRIPS, device="cuda")
        if scheme == "gceidd"
        else heated_plate(shape, dtype=np.dtype(dtype), scheme=scheme, device="cuda")
    )
    return lambda: made.step(1)


def run_case(facts: Facts, work: Callable[[], object], end: Any) -> None:
    """Run `work` twice, the second time for the profiler, and print what it is."""
    cupy = require_cupy()
    work()
    cupy.cuda.Device().synchronize()
    cupy.cuda.profiler.start()
    work()
    end((1,), (1,), ())
    cupy.cuda.Device().synchronize()
    cupy.cuda.profiler.stop()
    print("case", json.dumps(facts), flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the tool to its parser."""
    parser.add_argument("bench", type=Path, nargs="?", help="record of `pysolvers bench gpu`")
    parser.add_argument("output", type=Path, nargs="?", help="file for what is found")
    parser.add_argument("--run", dest="todo", type=Path, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Run what the command line names and return the exit code."""
    if args.todo is not None:
        run_cases(args.todo)
    elif args.bench is None or args.output is None:
        raise ValueError("the record to read and the file to write are missing")
    else:
        profile(args.bench, args.output)
    return 0
