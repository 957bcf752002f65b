"""Draw docs/images/speed.png from the records of a CPU and of a GPU.

Time per unknown over the rows of a system, float64, each system with a matrix of its own, for this
package and for the other packages of the records. The number of unknowns is the same for all rows,
except for the longest systems of the CPU record.
"""

import json
from collections.abc import Iterator
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..record import RESULTS, Record
from .image_file import IMAGES, plain_log_ticks, write_image

CPU, GPU = RESULTS / "tridiagonal-amd-epyc-2.json", RESULTS / "h200.json"

# Name in a record -> label and style of the line.
CPU_PEERS = {
    "scipy": ("loop of scipy.linalg.solve_banded", "C1s--"),
    "lapack": ("loop of LAPACK dgtsv", "C2^--"),
    "numpy": ("Thomas elimination in NumPy", "C3D--"),
}
GPU_PEERS = {
    "cusparse strided": ("cuSPARSE gtsv2StridedBatch", "C1s--"),
    "jax": ("JAX tridiagonal_solve", "C3D--"),
}

Line = tuple[list[int], list[float]]


def cpu_lines(record: Record) -> Iterator[tuple[str, str, Line]]:
    """Yield label, style and points (rows, ns per unknown) of each line of the CPU record."""
    cases = [
        case
        for case in record["cases"]
        if (case["matrix"], case["axis"], case["dtype"]) == ("own", "last", "float64")
        and case["systems"] > 1
    ]
    yield "pysolvers", "C0o-", _points(cases, lambda case: case["time"])
    for name, (label, style) in CPU_PEERS.items():
        yield label, style, _points(cases, lambda case, name=name: case["peers"].get(name))


def gpu_lines(record: Record) -> Iterator[tuple[str, str, Line]]:
    """Yield label, style and points (rows, ps per unknown) of each line of the GPU record."""
    cases = [
        case
        for case in record["bench"]["cases"]
        if (case["part"], case["axis"], case["dtype"]) == ("own", "last", "float64")
        and case["systems"] > 1
        and "seconds" in case
    ]

    def time(case: Record, name: str | None = None) -> float | None:
        seconds = case["seconds"] if name is None else case["peers"].get(name)
        return None if seconds is None else 1e12 * seconds / (case["rows"] * case["systems"])

    yield "pysolvers", "C0o-", _points(cases, time)
    for name, (label, style) in GPU_PEERS.items():
        yield label, style, _points(cases, lambda case, name=name: time(case, name))


def picture(cpu: Record, gpu: Record) -> Figure:
    """Return the picture of both records."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_lines(left, cpu_lines(cpu), "ns")
    draw_lines(right, gpu_lines(gpu), "ps")
    left.set_title(f"CPU: {cpu['machine']['cpu']}, {cpu['settings']['threads']} threads")
    right.set_title(f"GPU: {gpu['gpu']['name']}")
    return figure


def renew() -> None:
    """Draw the picture."""
    figure = picture(json.loads(CPU.read_text()), json.loads(GPU.read_text()))
    write_image(figure, IMAGES / "speed.png")


def _points(cases: list[Record], value: Any) -> Line:
    found = sorted((case["rows"], value(case)) for case in cases if value(case) is not None)
    return [rows for rows, _ in found], [time for _, time in found]


def draw_lines(axes: Axes, lines: Iterator[tuple[str, str, Line]], unit: str) -> None:
    for label, style, (rows, times) in lines:
        axes.loglog(rows, times, style, ms=4, lw=1.2, label=label)
    axes.set_xscale("log", base=2)
    axes.set(xlabel="rows of a system", ylabel=f"time per unknown ({unit})")
    plain_log_ticks(axes.yaxis, 1.0, 2.0, 5.0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
