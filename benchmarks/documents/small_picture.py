"""Draw docs/images/small.png: the time of a call for small work, from the committed records.

One plot for each length of the systems: microseconds of a call over the number of systems, one
curve for each package, float64. The second row of plots is that of a GPU and is omitted while its
record has no part `small`.
"""

import json
from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..record import RESULTS, Record
from .image_file import IMAGES, plain_log_ticks, write_image

CPU, GPU = RESULTS / "small-amd-epyc-2.json", RESULTS / "h200.json"

# Name in a record -> label and style of the curve.
CPU_CURVES = {
    "package": ("solve_tridiagonal", "C0o-"),
    "factor": ("factor.solve", "C4v-"),
    "scipy": ("loop of scipy.linalg.solve_banded", "C1s--"),
    "lapack": ("loop of LAPACK dgtsv", "C2^--"),
    "numpy": ("Thomas elimination in NumPy", "C3D--"),
}
GPU_CURVES = {
    "package": ("solve_tridiagonal, CuPy", "C0o-"),
    "cusparse strided": ("cuSPARSE gtsv2StridedBatch", "C1s--"),
    "jax": ("JAX tridiagonal_solve, compiled", "C2^--"),
    "torch": ("Thomas elimination in PyTorch", "C3D--"),
}

# Rows and systems of a batch, and the microseconds of each package.
Entry = tuple[int, int, dict[str, float]]


def cpu_entries(record: Record) -> list[Entry]:
    """Return the batches of the record of a CPU."""
    return [(e["rows"], e["systems"], e["microseconds"]) for e in record["cases"]]


def gpu_entries(record: Record) -> list[Entry]:
    """Return the batches of the record of a GPU; none if it has no part `small`."""
    return [
        (
            e["rows"],
            e["systems"],
            {name: 1e6 * s for name, s in ({"package": e["seconds"]} | e["peers"]).items()},
        )
        for e in record["bench"]["cases"]
        if (e["part"], e["dtype"]) == ("small", "float64") and "seconds" in e
    ]


def picture(cpu: Record, gpu: Record | None) -> Figure:
    """Return the picture of the records; `gpu` may be None or without a part `small`."""
    machines = [(f"CPU: {cpu['machine']['cpu']}", cpu_entries(cpu), CPU_CURVES)]
    on_gpu = gpu_entries(gpu) if gpu else []
    if gpu and on_gpu:
        machines.append((f"GPU: {gpu['gpu']['name']}", on_gpu, GPU_CURVES))
    lengths = sorted({rows for rows, _, _ in machines[0][1]})
    figure = Figure(figsize=(3.4 * len(lengths), 3.9 * len(machines)), layout="constrained")
    grid = figure.subplots(len(machines), len(lengths), squeeze=False, sharey="row")
    for line, (name, entries, curves) in zip(grid, machines, strict=True):
        for axes, rows in zip(line, lengths, strict=True):
            axes.set_title(f"{name}, {rows} rows", fontsize=10)
            axes.set_xlabel("systems")
            draw(axes, [e for e in entries if e[0] == rows], curves)
        line[0].set_ylabel("time of a call (µs)")
        line[0].legend(fontsize=7, loc="upper left")
    return figure


def draw(axes: Axes, entries: list[Entry], curves: dict[str, tuple[str, str]]) -> None:
    """Draw the times of the batches of one length."""
    for label, style, systems, times in points(entries, curves):
        axes.loglog(systems, times, style, ms=4, lw=1.2, label=label)
    axes.set_xscale("log", base=2)
    counts = sorted({systems for _, systems, _ in entries})
    axes.set_xticks(counts, [str(count) for count in counts])
    plain_log_ticks(axes.yaxis)
    axes.minorticks_off()
    axes.grid(alpha=0.3)


def points(
    entries: list[Entry], curves: dict[str, tuple[str, str]]
) -> Iterator[tuple[str, str, list[int], list[float]]]:
    """Yield label, style, numbers of systems and microseconds of each curve that has points."""
    for name, (label, style) in curves.items():
        found = sorted((systems, times[name]) for _, systems, times in entries if name in times)
        if found:
            yield label, style, [systems for systems, _ in found], [time for _, time in found]


def renew() -> None:
    """Draw the picture."""
    gpu = json.loads(GPU.read_text()) if GPU.exists() else None
    figure = picture(json.loads(CPU.read_text()), gpu)
    write_image(figure, IMAGES / "small.png")
