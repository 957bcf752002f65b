"""Renew the tables of README.md and the documentation from the committed records.

A table stands between two comments, the first of which names its kind and the record:

    <!-- speed: benchmarks/results/machine.json -->
    ...
    <!-- end of speed -->

It is empty while there is no such record. With --check nothing is written, and the exit code is 1
if a table is not what its record says.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pysolvers.distributed import CostModel

from . import gpu_tables, jobs_picture
from .gpu_tables import row

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(<!-- ([a-z][\w ]*): (\S+) -->\n).*?(<!-- end of \2 -->)", re.DOTALL)

CLAIM_ROWS = 64  # the systems of the sentence of docs/performance.md

# Name and alignment of each column of docs/records.md.
FULL_COLUMNS = {
    **dict.fromkeys(("matrix", "axis"), "---"),
    **dict.fromkeys(("rows", "systems"), "--:"),
    "method": "---",
    **dict.fromkeys(("ns", "of the floor", "bar", "SciPy", "LAPACK", "NumPy"), "--:"),
}

Record = dict[str, Any]


def summary(record: Record) -> Iterator[str]:
    """Yield the first table of docs/performance.md: float64, the systems along the last axis."""
    entries = {
        (entry["matrix"], entry["rows"]): entry
        for entry in record["cases"]
        if entry["axis"] == "last" and entry["dtype"] == "float64" and entry["systems"] > 1
    }
    names = ("own matrix", "shared matrix", "pivoted", "LAPACK loop", "SciPy loop", "NumPy")
    yield row("rows", "systems", *names)
    yield row(*["--:"] * 8)
    for rows in sorted({rows for _, rows in entries}):
        own = entries["own", rows]
        speeds = (_speed(entries[matrix, rows]) for matrix in ("own", "shared", "pivoted"))
        ratios = (_ratio(own, peer) for peer in ("lapack", "scipy", "numpy"))
        yield row(rows, own["systems"], *speeds, *ratios)
    yield ""
    yield (
        "Time in ns for one unknown, in brackets the fraction of what the copy bandwidth allows; "
        f"then how many times faster `own matrix` is than each peer. {_machine(record)}"
    )


def claim(record: Record) -> Iterator[str]:
    """Yield the sentence of docs/performance.md that compares with loops in Python."""
    (entry,) = (
        entry
        for entry in record["cases"]
        if (entry["matrix"], entry["axis"], entry["dtype"]) == ("own", "last", "float64")
        and entry["rows"] == CLAIM_ROWS
    )
    scipy, numpy = (entry["peers"][name] / entry["time"] for name in ("scipy", "numpy"))
    milliseconds = 1e-6 * entry["time"] * entry["rows"] * entry["systems"]
    yield (
        f"On a CPU ({record['machine']['cpu']}, {record['settings']['threads']} threads), one call "
        f"solves {entry['systems']} systems of {entry['rows']} rows, each with its own matrix, in "
        f"{milliseconds:.0f} ms: {scipy:.0f} times faster than a Python loop of "
        f"`scipy.linalg.solve_banded`, and {numpy:.1f} times faster than "
        "Thomas elimination written in NumPy."
    )


def everything(record: Record) -> Iterator[str]:
    """Yield the tables of docs/records.md: every case of the record."""
    yield _machine(record)
    for dtype in dict.fromkeys(entry["dtype"] for entry in record["cases"]):
        yield ""
        yield f"### {dtype}"
        yield ""
        yield row(*FULL_COLUMNS)
        yield row(*FULL_COLUMNS.values())
        for entry in record["cases"]:
            if entry["dtype"] == dtype:
                yield _full_row(entry)


def poisson(record: Record) -> Iterator[str]:
    """Yield the table of docs/theory/poisson.md: milliseconds of a solve."""
    names = {
        "one thread": "`FastPoisson`, 1 thread",
        "package": "`FastPoisson`",
        "spectral": "all axes by `scipy.fft`",
        "splu": "`splu`",
        "pyamg": "PyAMG",
    }
    yield row("cells", *names.values())
    yield row("---", *["--:"] * len(names))
    for entry in record["cases"]:
        own = entry["seconds"]["package"]
        cells = []
        for name in names:
            seconds = entry["seconds"].get(name)
            ratio = "" if name in ("package", "one thread") or not seconds else seconds / own
            text = "" if seconds is None else f"{seconds * 1e3:.1f}"
            cells.append(f"{text} ({ratio:.1f} ×)" if ratio else text)
        yield row(" × ".join(map(str, entry["shape"])), *cells)
    yield ""
    machine, versions = record["machine"], record["versions"]
    yield (
        "Milliseconds for one right side in float64, set-up excluded; in brackets the ratio to "
        f"`FastPoisson`. Measured on {machine['cpu']}, {record['settings']['threads']} threads, "
        f"SciPy {versions['scipy']}, PyAMG {versions['pyamg']}; load before: {record['load']}."
    )


def poisson_gpu(record: Record) -> Iterator[str]:
    """Yield the table of docs/theory/poisson.md for a GPU: microseconds of a solve."""
    names = {
        "package": "`FastPoisson`",
        "graph": "in a CUDA graph",
        "cuFFT alone": "transforms of cuFFT alone",
        "CuPy": "CuPy",
    }
    yield row("cells", "dtype", *names.values(), "graph / cuFFT")
    yield row("---", "---", *["--:"] * (len(names) + 1))
    for entry in record["cases"]:
        seconds = entry["seconds"]
        cells = [f"{seconds[name] * 1e6:.0f}" if name in seconds else "" for name in names]
        ratio = seconds["graph"] / seconds["cuFFT alone"]
        shape = " × ".join(map(str, entry["shape"]))
        yield row(shape, entry["dtype"], *cells, f"{ratio:.1f}")
    yield ""
    versions = record["versions"]
    yield (
        "Microseconds of the device for one right side, set-up excluded. Measured on "
        f"{record['gpu']['name']}, cuFFT {versions['nvidia-cufft']}, CuPy "
        f"{versions['cupy-cuda13x']}."
    )


def splines(record: Record) -> Iterator[str]:
    """Yield the table of docs/theory/splines.md: milliseconds to create and to evaluate."""
    names = ("one thread", "package", "scipy")
    heads = ("1 thread", "`CubicSpline`", "SciPy")
    parts = ("create", "evaluate")
    yield row("values", "axis", "knots", *(f"{part}: {head}" for part in parts for head in heads))
    yield row(*["---"] * 3, *["--:"] * 6)
    for entry in record["cases"]:
        cells = []
        for part in parts:
            seconds = entry["seconds"][part]
            ratio = seconds["scipy"] / seconds["package"]
            cells += [f"{seconds[name] * 1e3:.0f}" for name in names]
            cells[-1] += f" ({ratio:.1f} ×)"
        shape = " × ".join(map(str, entry["shape"]))
        yield row(shape, entry["axis"], entry["knots"], *cells)
    yield ""
    machine, settings = record["machine"], record["settings"]
    yield (
        f"Milliseconds in float64, not-a-knot, {settings['points']} sorted points for each spline; "
        f"in brackets the ratio to `CubicSpline`. Measured on {machine['cpu']}, "
        f"{settings['threads']} threads, SciPy {record['versions']['scipy']}; load before: "
        f"{record['load']}."
    )


def splines_gpu(record: Record) -> Iterator[str]:
    """Yield the table of docs/theory/splines.md for a GPU: microseconds."""
    names = {"package": "`CubicSpline`", "CuPy": "CuPy", "floor": "copy"}
    parts = ("create", "evaluate")
    heads = (f"{part}: {head}" for part in parts for head in names.values())
    yield row("splines", "knots", "axis", "dtype", *heads)
    yield row(*["--:"] * 3, "---", *["--:"] * 6)
    for entry in record["cases"]:
        cells = [
            f"{entry[part][name] * 1e6:.0f}" if name in entry[part] else ""
            for part in parts
            for name in names
        ]
        yield row(*(entry[key] for key in ("splines", "knots", "axis", "dtype")), *cells)
    yield ""
    versions = record["versions"]
    cupy = versions.get("cupy-cuda13x") or versions.get("cupy-cuda12x")
    yield (
        "Microseconds; to create by the clock of the host, because the call waits, to evaluate by "
        "that of the device. *Copy* moves 3 words per knot or point. Measured on "
        f"{record['gpu']['name']}, CuPy {cupy}."
    )


def cylinder(record: Record) -> Iterator[str]:
    """Yield the table of docs/theory/cylinder.md: microseconds of a step."""
    yield row("intervals", "dtype", "step", "call", "one core")
    yield row("---", "---", *["--:"] * 3)
    for entry in record["grids"]:
        cells = [f"{entry[name] * 1e6:.0f}" for name in ("step", "call")]
        core = entry["one_core"]  # NaN where it was not measured
        cells.append("" if core != core else f"{core * 1e6:.0f} ({core / entry['call']:.0f} ×)")
        yield row(_intervals(entry["shape"]), entry["dtype"], *cells)
    yield ""
    steady = record["steady"]
    yield (
        'Microseconds of an unsteady step with `psi="fast"`: *step* by the clock of the device, '
        "*call* by that of the host, *one core* of the host of the device, in brackets its ratio "
        f"to *call*. The steady flow at Re = 40 on 240 × 1200 intervals takes {steady['steps']} "
        f"steps and {steady['seconds']:.2f} s. "
        f"Measured on {record['gpu']['name']}, {record['machine']['cpu']}."
    )


# Kernels of a step of the cylinder, by a part of their names -> what they compute.
CYLINDER_KERNELS = {
    "HalfStepX": "half step along x",
    "HalfStepY": "half step along y",
    "product_kernel": "both transforms",
    "wave_lines_kernel": "lines of waves, twice",
    "surface_kernel|charges_kernel": "surface and charges",
    "walls_kernel|forces_kernel": "walls, and a quarter of the forces",
}


def cylinder_kernels(record: Record) -> Iterator[str]:
    """Yield the table of docs/designs.md: microseconds of the kernels of a step."""
    grids = record["kernels"]
    shapes = [[int(n) for n in name.split("x")] for name in grids]
    yield row("kernels", *map(_intervals, shapes))
    yield row("---", *["--:"] * len(grids))
    for pattern, text in CYLINDER_KERNELS.items():
        sums = (
            sum(time for name, time in times.items() if re.search(pattern, name))
            for times in grids.values()
        )
        yield row(text, *(f"{time:.1f}" for time in sums))
    yield row("all", *(f"{sum(times.values()):.1f}" for times in grids.values()))
    yield ""
    yield f"Measured on {record['gpu']['name']}."


def staggered_gpu(record: Record) -> Iterator[str]:
    """Yield the table of docs/theory/staggered.md: microseconds of a step."""
    stages = ("predict", "pressure", "correct")
    yield row("cells", '`"fast"`', *stages, '`"sor"`', "15 words")
    yield row("---", *["--:"] * 6)
    for entry in record["cases"]:
        times = (entry["fast"], *(entry["stages"][name] for name in stages), entry["sor"])
        cells = (f"{time * 1e6:.0f}" for time in times)
        yield row(f"{entry['n']}²", *cells, f"{entry['floor'] * 1e6:.3g}")
    yield ""
    yield (
        'Microseconds of a step on a device, by the clock of the host: with `pressure="fast"`, its '
        f'stages by the clock of the device, and with {record["sweeps"]} iterations of `"sor"`; '
        "then the time in which 15 words per cell move at the bandwidth of a copy. On grids that "
        "fit into the cache of the device it is not a lower bound. "
        f"Measured on {record['gpu']['name']}."
    )


def jax(record: Record) -> Iterator[str]:
    """Yield the table of docs/jax.md: milliseconds of a solve and of its reverse pass."""
    heads = ("copy", "`solve_tridiagonal`", "of JAX", "reverse pass", "of JAX", "reverse / solve")
    yield row("dtype", "rows", *heads)
    yield row("---", *["--:"] * (len(heads) + 1))
    for entry in record["cases"]:
        solve, reverse = entry["forward"], entry["reverse"]
        cells = [f"{1e3 * time:.2f}" for time in (entry["floor"], solve)]
        for own, peer in ((solve, entry["jax_forward"]), (reverse, entry["jax_reverse"])):
            cells.append(f"{1e3 * peer:.1f} ({peer / own:.1f} ×)")
        cells.insert(3, f"{1e3 * reverse:.2f}")
        yield row(entry["dtype"], entry["rows"], *cells, f"{reverse / solve:.2f}")
    yield ""
    yield (
        f"Milliseconds for {_unknowns(record)} unknowns, each system with its own matrix, compiled "
        "by `jax.jit`. *Copy* moves five words per unknown, as a solve does; *of JAX* is "
        "`jax.lax.linalg.tridiagonal_solve`, in brackets its ratio to this package. "
        f"Measured on {record['gpu']['name']}, JAX {record['versions']['jax']}."
    )


def jax_loops(record: Record) -> Iterator[str]:
    """Yield the second table of docs/jax.md: microseconds of a small solve in a loop."""
    found = {
        (loop["unroll"], loop["flags"], loop["pivot"]): loop["seconds"]
        for loop in record["loops"]
        if loop["dtype"] == "float64"
    }
    yield row("", "`pivot=None`", "`pivot=False`")
    yield row("---", "--:", "--:")
    for unroll, flags in dict.fromkeys(key[:2] for key in found):
        options = [f"`unroll={unroll}`"] * (unroll > 1) + [f"`{flags}`"] * bool(flags)
        times = (found[unroll, flags, pivot] for pivot in (None, False))
        yield row(", ".join(options) or "by default", *(f"{1e6 * time:.1f}" for time in times))
    yield ""
    yield (
        "Microseconds per solve in a compiled loop of 1000 solves with 100 systems of 64 rows, "
        f"float64. Measured on {record['gpu']['name']}, JAX {record['versions']['jax']}."
    )


def torch(record: Record) -> Iterator[str]:
    """Yield the table of docs/torch.md: milliseconds of a solve and of its reverse pass."""
    heads = ("copy", "solve", "reverse pass", "reverse / solve", "reverse pass, not compiled")
    yield row("dtype", "rows", *heads)
    yield row("---", *["--:"] * (len(heads) + 1))
    for entry in record["cases"]:
        floor, solve, reverse, eager = (
            f"{1e3 * entry[name]:.2f}" for name in ("floor", "forward", "reverse", "eager")
        )
        ratio = f"{entry['reverse'] / entry['forward']:.2f}"
        yield row(entry["dtype"], entry["rows"], floor, solve, reverse, ratio, eager)
    yield ""
    loop = 1e6 * record["loop_seconds"]["float64"]
    yield (
        f"Milliseconds for {_unknowns(record)} unknowns, each system with its own matrix, compiled "
        "by `torch.compile`. *Copy* moves five words per unknown, as a solve does. A solve of 100 "
        f"systems of 64 rows in a loop that is recorded as a CUDA graph takes {loop:.1f} µs. "
        f"Measured on {record['gpu']['name']}, torch {record['versions']['torch']}."
    )


def _unknowns(record: Record) -> str:
    """Return the number of unknowns of all cases, as a power of two."""
    (unknowns,) = {entry["unknowns"] for entry in record["cases"]}
    return f"$2^{{{unknowns.bit_length() - 1}}}$"


# Key of the record of calls -> heading.
CALLS = {
    "package": "`solve_tridiagonal`",
    "factor": "`factor.solve`",
    "banded": "`solve_banded`",
    "gtsv": "`lapack.dgtsv`",
    "splu": "`splu(...).solve`",
}


def calls(record: Record) -> Iterator[str]:
    """Yield the table of docs/performance.md: microseconds of calls for small work."""
    yield row("systems", "rows", *CALLS.values())
    yield row(*["--:"] * (len(CALLS) + 2))
    for entry in record["cases"]:
        times = (entry["microseconds"].get(name) for name in CALLS)
        cells = ("" if time is None else f"{time:.1f}" for time in times)
        yield row(entry["systems"], entry["rows"], *cells)
    yield ""
    machine, versions = record["machine"], record["versions"]
    yield (
        "Microseconds for all systems, float64, NumPy arrays, one thread; the other packages are "
        "called once for each system; factors are made before the measurement. "
        f"Measured on {machine['cpu']}, Python "
        f"{versions['python']}, NumPy {versions['numpy']}, SciPy {versions['scipy']}."
    )


# Key of the record of calls on a GPU -> heading.
GPU_CALLS = {
    "add": "`x + x`, µs",
    "raise": '`on_singular="raise"`',
    "ignore": '`on_singular="ignore"`',
    "factor": "`factor.solve`",
}


def gpu_calls(record: Record) -> Iterator[str]:
    """Yield the table of docs/performance.md: calls on a GPU, relative to x + x of the library."""
    yield row("library", "systems", "rows", *GPU_CALLS.values())
    yield row(":--", *["--:"] * (len(GPU_CALLS) + 2))
    for entry in record["cases"]:
        times = entry["microseconds"]
        ratios = (f"{times[name] / times['add']:.1f}" for name in list(GPU_CALLS)[1:])
        cells = entry["library"], entry["systems"], entry["rows"]
        yield row(*cells, f"{times['add']:.1f}", *ratios)
    yield ""
    yield (
        "Time until a call returns, relative to that of `x + x` of the library of the arrays, "
        "float64. Only `raise` waits for the GPU. Measured on an H200."
    )


def cylinder_peer(record: Record) -> Iterator[str]:
    """Yield the table of docs/theory/cylinder.md: this package and lettuce on one geometry."""
    height = 8  # of the channel, in sides of the cylinder
    yield row("solver", "cells of a side", "steps", "seconds", "St", "error", "Cd", "error")
    yield row(":--", *["--:"] * 7)
    for name, entries in record["tables"].items():
        for entry in entries:
            cells = entry["cells"] // height if name == "pysolvers" else entry["cells"]
            errors = entry["errors"]
            yield row(
                name,
                cells,
                entry["steps"],
                f"{entry['seconds']:.2f}",
                f"{entry['strouhal']:.4f}",
                f"{errors['strouhal']:.1%}",
                f"{entry['drag']:.3f}",
                f"{errors['drag']:.1%}",
            )
    reference, versions = record["reference"], record["versions"]
    yield ""
    yield (
        f"Re = 100 to t = {record['until']:g}, {record['dtype']}, Mach number {record['mach']:g} "
        f"of the lattice. The errors refer to St {reference['strouhal']:.4f} and Cd "
        f"{reference['drag']:.3f}, to which the two finest grids of this package extrapolate. "
        f"Measured on {record['gpu']['name']}, lettuce {versions['lettucecfd']}, PyTorch "
        f"{versions['torch']}."
    )


def parts(record: Record) -> Iterator[str]:
    """Yield the table of docs/distributed.md: solves in one pass on several GPUs."""
    yield row("GPUs", "dtype", "rows of a GPU", "systems", "ms", "of the floor", "of one GPU")
    yield row("--:", ":--", *["--:"] * 5)
    for entry in record["cases"]:
        if entry["gpus"] == 1:
            continue
        time, gpus = entry["seconds"], entry["gpus"]
        yield row(
            *(entry[key] for key in ("gpus", "dtype", "rows", "systems")),
            f"{1e3 * time:.2f}",
            f"{entry['floor'] / time:.0%}",
            f"{entry['one GPU'] / gpus / time:.0%}",
        )
    yield ""
    yield (
        "*Of the floor*: the time of a copy of five words per unknown, in the same run, as a part "
        "of the time of the solve. *Of one GPU*: the time of one GPU for the whole systems, over "
        f"the number of GPUs, as a part of it. Measured on {record['gpu']['name']}, NVLink."
    )


def steps(record: Record) -> Iterator[str]:
    """Yield the table of docs/distributed.md: the kernels of a part on one GPU."""
    names = ("one GPU", "own messages", "send", "receive")
    yield row("dtype", "rows", "systems", "whole systems", *names[1:], "send and receive")
    yield row(":--", *["--:"] * 7)
    for entry in record["cases"]:
        if entry["gpus"] > 1:
            continue
        times = [entry["one GPU"] / 2, *(entry[name] for name in names[1:])]
        times.append(times[2] + times[3])
        words = (5, 5, 4, 5, 9)
        yield row(
            *(entry[key] for key in ("dtype", "rows", "systems")),
            *(f"{entry['floor'] * k / 5 / time:.0%}" for k, time in zip(words, times, strict=True)),
        )
    yield ""
    yield (
        "The time of a copy of the words that the kernel moves, in the same run, as a part of its "
        "time. *Whole systems*: of twice as many rows, five words. *Own messages*: one pass of "
        "five words, in which the GPU gets its own messages back in place of those of another GPU. "
        "*Send* and *receive*, of four and five words: the kernels before and after NCCL. Measured "
        f"on one {record['gpu']['name']}."
    )


def cut_lines(record: Record) -> Iterator[str]:
    """Yield the tables of docs/distributed.md: calls of `solve_tridiagonal` on several GPUs."""
    yield row(
        "dtype", "rows", "lines", "GPUs", "way", "ms", "of the floor", "of one GPU", "default"
    )
    yield row(":--", *["--:"] * 3, ":--", *["--:"] * 4)
    alone: dict[tuple[Any, ...], float] = {}
    stages = []
    for entry in record["cases"]:
        size = tuple(entry[key] for key in ("dtype", "rows", "lines"))
        time, gpus = entry["seconds"], entry["ranks"]
        alone.setdefault(size, time * gpus)
        yield row(
            *size,
            gpus,
            entry["way"],
            f"{1e3 * time:.2f}",
            f"{entry['floor'] / time:.0%}",
            f"{alone[size] / gpus / time:.0%}",
            f"{1e3 * entry['checked']:.2f}" if "checked" in entry else "",
        )
        found = entry.get("stages", {})
        times = ", ".join(f"{name} {1e3 * seconds:.2f}" for name, seconds in found.items())
        if times:
            stages.append(row(*size, gpus, entry["way"], times))
    yield ""
    yield (
        "Times of calls that follow each other, with `pivot=False` and `on_singular='ignore'`; "
        "*default*: with the default options, which test for dominance and singular systems. "
        f"Measured on {record['gpu']['name']}, NVLink, PyTorch {record['versions']['torch']}."
    )
    yield ""
    yield row("dtype", "rows", "lines", "GPUs", "way", "stages, ms")
    yield row(":--", *["--:"] * 3, ":--", ":--")
    yield from stages


def solvers(record: Record) -> Iterator[str]:
    """Yield the table of docs/distributed.md: scaling of solvers on several GPUs."""
    yield row("solver", "nodes", "scaling", "GPUs", "way", "ms", "efficiency")
    yield row(":--", ":--", ":--", "--:", ":--", "--:", "--:")
    for entry in record["cases"]:
        name, *_, dtype = entry["case"].split()
        yield row(
            f"{name}, {dtype}",
            " × ".join(map(str, entry["shape"])),
            entry["scaling"],
            entry["ranks"],
            entry["exchange"] if entry["ranks"] > 1 else "",
            f"{1e3 * entry['seconds']:.3f}",
            f"{entry['efficiency']:.0%}",
        )
    yield ""
    yield (
        "Milliseconds of a step or an iteration, of the slowest GPU. *Efficiency*: the time of one "
        "GPU over that of the GPUs, for strong scaling over their number as well. Measured on "
        f"{record['gpu']['name']}, NVLink."
    )


_STAGES = ("elimination", "exchange", "reduced systems", "substitution", "comparison")


def ranks(record: Record) -> Iterator[str]:
    """Yield the table of docs/distributed.md: stages of solves on the ranks of one host."""
    yield row("matrix", "rows", "lines", "ranks", "ms", "model", *_STAGES, "whole lines")
    yield row(":--", *["--:"] * 11)
    for entry in record["cases"]:
        times = [entry["seconds"], entry.get("model"), *map(entry["stages"].get, _STAGES)]
        times.append(entry.get("whole lines") if entry["ranks"] > 1 else None)
        yield row(
            *(entry[key] for key in ("matrix", "rows", "lines", "ranks")),
            *("" if time is None else f"{1e3 * time:.2f}" for time in times),
        )
    yield ""
    yield (
        "Times in ms, float64, one thread a rank; the fastest of "
        f"{record['settings']['calls']} calls, for each stage by itself. *Comparison*: the ranks "
        "compare the arguments, and whether a rank failed. *Whole lines*: with `pivot=True`. "
        "*Slow*: the matrices (-1, 2, -1) of every line, whose ends reach all rows. "
        f"Measured on {record['machine']['cpu']}, {record['machine']['cpus']} cores, MPICH in "
        f"shared memory; load of the machine before: {record['load']:.1f}."
    )


_MODEL_RANKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_MODEL_SIZE = 65536, 4096  # rows, lines


def model(record: Record) -> Iterator[str]:
    """Yield the table of docs/distributed.md: predictions for more ranks."""
    found = CostModel(**record["models"]["own"])
    rows, lines = _MODEL_SIZE
    stages = list(found.stages(rows, lines, 1))[1:]
    yield row("ranks", *stages, "all", "efficiency", "in shares", "smaller")
    yield row(*["--:"] * (len(stages) + 4), ":--")
    one = found.seconds(rows, lines, 1)
    for count in _MODEL_RANKS:
        times = found.stages(rows, lines, count)
        total, other = (
            found.seconds(rows, lines, count, reduced_on=way) for way in ("all", "shares")
        )
        yield row(
            count,
            *(f"{1e3 * times[stage]:.1f}" for stage in stages),
            f"{1e3 * total:.1f}",
            f"{one / count / total:.0%}",
            f"{1e3 * other:.1f}" if count > 1 else "",
            ("all" if total <= other else "in shares") if count > 1 else "",
        )
    yield ""
    yield (
        f"Predicted times in ms: {lines} lines of {rows} rows, float64, own matrices, with the "
        "constants of the record above for any number of ranks. *In shares*: each rank would solve "
        "the reduced systems of its share of the lines, which this package does not do."
    )


def jobs(record: Record) -> Iterator[str]:
    """Yield the table of README.md: six jobs, beside what people would use."""
    yield row("job", "size", "pysolvers", "times as long", "`python -m pysolvers bench jobs`")
    yield row("---", "---", "--:", "---", "---")
    for name, group in zip(record["cases"], jobs_picture.groups_of(record), strict=True):
        others = (
            f"{jobs_picture.PROGRAMS[program][0]} {jobs_picture.times(ratio)}"
            for program, ratio in group.ratios.items()
        )
        size = group.size.replace(" x ", " × ")
        time = jobs_picture.duration(group.seconds)
        yield row(group.title, size, time, ", ".join(others), f"`--only {name}`")
    yield ""
    settings, versions = record["settings"], record["versions"]
    names = {"numba": "Numba", "scipy": "SciPy", "jax": "JAX", "pyamg": "PyAMG"}
    listed = ", ".join(f"{text} {versions[name]}" for name, text in names.items() if versions[name])
    yield (
        f"{record['machine']['cpu']}, {settings['threads']} threads, float64; medians of "
        f"alternating runs; {listed}. A *Python loop* calls `solve_banded` for each system."
    )


def jobs_gpu(_: Record) -> Iterator[str]:
    """Yield the sentence of README.md with the ratios on a GPU, those of its picture."""
    name, groups = jobs_picture.gpu_groups()
    found = [
        f"{group.title} ({group.size}): "
        + ", ".join(
            f"{jobs_picture.PROGRAMS[program][0]} {jobs_picture.times(ratio)}"
            for program, ratio in group.ratios.items()
        )
        for group in groups
    ]
    yield f"{name}, times as long: {'; '.join(found)}."


def trust(record: Record) -> Iterator[str]:
    """Yield the list of README.md: what was tested on a device, from its record."""
    random, sanitizers = record["random"], record["sanitizers"]
    checked = min(found["passed"] for found in sanitizers.values())
    errors = sum(found["errors"] for found in sanitizers.values())
    tools = " and ".join(sanitizers)
    cases = sum(found["cases"] for found in random.values())
    yield (
        f"- {record['tests']['passed']} tests passed and {record['tests']['failed']} failed on an "
        f"{record['gpu']['name']}; {tools} of compute-sanitizer found {errors} errors in {checked} "
        f"tests; {cases} random systems and calls were solved and checked (record of the sources "
        f"with the hash `{record['sources'][:8]}`)."
    )
    counts = next(
        table for table in record["papers"]["lmsor2012"]["tables"] if table["title"] == "Iterations"
    )
    pairs = [line[-2:] for line in counts["rows"] if line[-2] is not None]
    equal = sum(published == counted for published, counted in pairs)
    yield (
        f"- [Five papers](docs/reproductions.md) are repeated by `pysolvers reproduce PAPER`: "
        f"{equal} of {len(pairs)} published numbers of iterations of local modified SOR are met "
        "exactly, for example. Where a paper and its numbers disagree, the report says so."
    )


# Document -> kind of the table -> what makes its lines.
TABLES: dict[str, dict[str, Callable[[Record], Iterator[str]]]] = {
    "README.md": {
        "jobs": jobs,
        "jobs gpu": jobs_gpu,
        "trust": trust,
    },
    "docs/performance.md": {
        "claim": claim,
        "gpu claim": gpu_tables.claim,
        "speed": summary,
        "gpu speed": gpu_tables.summary,
        "calls": calls,
        "calls gpu": gpu_calls,
    },
    "docs/distributed.md": {
        "parts": parts,
        "steps": steps,
        "cut lines": cut_lines,
        "solvers": solvers,
        "ranks": ranks,
        "model": model,
    },
    "docs/records.md": {
        "speed": everything,
        "gpu speed": gpu_tables.everything,
        "gpu profile": gpu_tables.profile,
    },
    "docs/designs.md": {"cylinder kernels": cylinder_kernels},
    "docs/theory/cylinder.md": {"cylinder": cylinder, "cylinder peer": cylinder_peer},
    "docs/jax.md": {"jax": jax, "jax loops": jax_loops},
    "docs/torch.md": {"torch": torch},
    "docs/theory/poisson.md": {"poisson": poisson, "poisson gpu": poisson_gpu},
    "docs/theory/splines.md": {"splines": splines, "splines gpu": splines_gpu},
    "docs/theory/staggered.md": {"staggered": staggered_gpu},
    "docs/reproductions.md": {
        "pta2020": gpu_tables.pta2020,
        **{
            name: gpu_tables.paper(name)
            for name in ("lmsor2012", "survey2014", "wei2013", "gceidd2022")
        },
    },
}


def renewed(name: str) -> str:
    """Return the text of the document `name` with the tables that its records give."""
    text = (ROOT / name).read_text()

    def block(match: re.Match[str]) -> str:
        head, kind, path, end = match.groups()
        if kind not in TABLES[name]:
            raise SystemExit(f"{name}: there is no table {kind!r}")
        if not (ROOT / path).exists():
            return f"{head}\n{end}"
        lines = TABLES[name][kind](json.loads((ROOT / path).read_text()))
        return head + "\n" + "\n".join(lines) + "\n\n" + end

    new = BLOCK.sub(block, text)
    for kind in set(TABLES[name]) - {match[2] for match in BLOCK.finditer(text)}:
        raise SystemExit(f"{name}: the comment <!-- {kind}: RECORD --> is missing")
    return new


def stale_pages() -> list[str]:
    """Return the pages of which a table is not that of its record."""
    return [name for name in TABLES if renewed(name) != (ROOT / name).read_text()]


def renew() -> None:
    """Write the tables of all pages."""
    for name in stale_pages():
        (ROOT / name).write_text(renewed(name))
        print(f"{name}: tables renewed")


def _machine(record: Record) -> str:
    machine, settings, versions = record["machine"], record["settings"], record["versions"]
    return (
        f"Measured on {machine['cpu']}, {settings['threads']} threads, {record['kernel']}, "
        f"copy {record['copy']['bandwidth'] / 1e9:.0f} GB/s, Python {versions['python']}, "
        f"NumPy {versions['numpy']}, SciPy {versions['scipy']}."
    )


def _intervals(shape: list[int]) -> str:
    return " × ".join(str(n - 1) for n in shape)


def _full_row(entry: Record) -> str:
    bar = "" if entry["bar"] is None else f"{entry['bar']:.0%}"
    ratios = (_ratio(entry, peer) for peer in ("scipy", "lapack", "numpy"))
    names = (entry["matrix"], entry["axis"], entry["rows"], entry["systems"], entry["method"])
    return row(*names, f"{entry['time']:.2f}", f"{entry['fraction']:.0%}", bar, *ratios)


def _speed(entry: Record) -> str:
    return f"{entry['time']:.2f} ({entry['fraction']:.0%})"


def _ratio(entry: Record, peer: str) -> str:
    return f"{entry['peers'][peer] / entry['time']:.1f} ×" if peer in entry["peers"] else ""
