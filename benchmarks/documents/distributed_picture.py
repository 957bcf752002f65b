"""Draw docs/images/distributed.png: scaling of solves and solvers, from the committed records.

Above: lines that are cut, strong scaling as unknowns per second and rank, weak scaling as the time
of a solve: measured on a CPU with one thread a rank, and predicted by `CostModel` of
`pysolvers.papers.logp1993` with the constants of that record. Also on the left: GPUs in one pass,
and the published values of PaScaL_TDMA. Below: the efficiency of solvers on GPUs.
"""

import json
from collections.abc import Sequence
from math import prod
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pysolvers.papers.logp1993 import CostModel

from ..papers.pascal_tdma import PUBLISHED_SECONDS, PUBLISHED_SHAPE
from ..record import RESULTS, Record
from .image_file import IMAGES, plain_log_ticks, write_image

CPU, GPU = RESULTS / "distributed-amd-epyc-2.json", RESULTS / "lines-h200-x2.json"
SOLVERS = RESULTS / "slabs-h200-x2.json"

PUBLISHED_LINES = prod(PUBLISHED_SHAPE[:2]), PUBLISHED_SHAPE[2]  # lines and rows
RANKS = tuple(2**k for k in range(11))
MODELS: dict[Literal["all", "shares"], tuple[str, str]] = {
    "all": ("model", "C0--"),
    "shares": ("model, reduced systems in shares", "C2:"),
}

Points = tuple[list[int], list[float]]


def measured(record: Record, rows_of: Sequence[int]) -> list[Record]:
    """Return the cases of own matrices with `rows_of[i]` rows on the i-th number of ranks."""
    cases = [case for case in record["cases"] if case["matrix"] == "own"]
    numbers = sorted({case["ranks"] for case in cases})
    wanted = dict(zip(numbers, rows_of, strict=False))
    lines = cases[0]["lines"]
    return [c for c in cases if c["lines"] == lines and c["rows"] == wanted[c["ranks"]]]


def speed(case: Record) -> float:
    """Return the unknowns per second and rank, in 10^9."""
    return 1e-9 * case["rows"] * case["lines"] / case["ranks"] / case["seconds"]


def gpu_points(record: Record) -> Points:
    """Return numbers of GPUs, and 10^9 unknowns per second and GPU, of solves in one pass."""
    cases = [
        c
        for c in record["cases"]
        if (c["dtype"], c["lines"], c["rows"]) == ("float64", *PUBLISHED_LINES)
        and c["exchange"] in ("one GPU", "peers")
    ]
    return [case["ranks"] for case in cases], [speed(case) for case in cases]


def published_points() -> Points:
    """Return the same of PaScaL_TDMA."""
    planes, columns, rows = PUBLISHED_SHAPE
    unknowns = planes * columns * rows
    speeds = [1e-9 * unknowns / gpus / time for gpus, time in PUBLISHED_SECONDS.items()]
    return list(PUBLISHED_SECONDS), speeds


def draw_solvers(axes: Axes, record: Record) -> None:
    """Draw a bar for the efficiency of each solver on each number of GPUs, the first one above."""
    cases = [case for case in record["cases"] if case["ranks"] > 1]
    names = [
        f"{case['case']}, {case['scaling']} scaling, {case['ranks']} GPUs, {case['exchange']}"
        for case in cases
    ]
    percent = [100 * case["efficiency"] for case in cases]
    places = range(len(cases))
    axes.barh(places, percent, height=0.7)
    for place, value in zip(places, percent, strict=True):
        axes.text(value - 1, place, f"{value:.0f}", color="w", ha="right", va="center", fontsize=9)
    axes.set_yticks(places, names, fontsize=9)
    axes.invert_yaxis()
    axes.set(
        title=f"solvers on {record['gpu']['name']}, relative to one GPU",
        xlabel="efficiency (%)",
        xlim=(0, 100),
    )


def picture(cpu: Record, gpu: Record, solvers: Record) -> Figure:
    """Return the picture of the records."""
    figure = Figure(figsize=(10, 7.2), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(5, 2))
    strong, weak = above.subplots(1, 2)
    draw_solvers(below.subplots(), solvers)
    model = CostModel(**cpu["models"]["own"])
    case = next(c for c in cpu["cases"] if c["matrix"] == "own")
    rows, lines = case["rows"], case["lines"]
    numbers = sorted({c["ranks"] for c in cpu["cases"]})
    for way, (label, style) in MODELS.items():
        times = [model.seconds(rows, lines, p, reduced_on=way) for p in RANKS]
        speeds = [1e-9 * rows * lines / p / t for p, t in zip(RANKS, times, strict=True)]
        strong.loglog(RANKS, speeds, style, label=f"CPU, {label}")
        times = [model.seconds(rows // 2 * p, lines, p, reduced_on=way) for p in RANKS]
        weak.loglog(RANKS, [1e3 * t for t in times], style, label=f"CPU, {label}")
    found = measured(cpu, [rows] * len(numbers))
    strong.loglog(numbers, [speed(c) for c in found], "C0o", label="CPU, measured")
    found = measured(cpu, [rows // 2 * p for p in numbers])
    weak.loglog(numbers, [1e3 * c["seconds"] for c in found], "C0o", label="CPU, measured")
    name = gpu["gpu"]["name"]
    strong.loglog(*gpu_points(gpu), "C3s-", label=f"{name}, one pass, measured")
    strong.loglog(*published_points(), "C1^-", label="NVIDIA H200, PaScaL_TDMA 2.1, published")
    strong.set(
        title=f"strong scaling; on the CPU {lines} lines of {rows} rows",
        ylabel="10⁹ unknowns per second and rank",
    )
    weak.set(
        title=f"weak scaling: {lines} lines, {rows // 2} rows per rank",
        ylabel="time of a solve (ms)",
    )
    _finish(strong)
    _finish(weak)
    plain_log_ticks(weak.yaxis, 1, 1.5, 2, 3, 5, 7)
    above.legend(
        *strong.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8
    )
    return figure


def renew() -> None:
    """Draw the picture."""
    figure = picture(*(json.loads(path.read_text()) for path in (CPU, GPU, SOLVERS)))
    write_image(figure, IMAGES / "distributed.png")


def _finish(axes: Axes) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xlabel("ranks (processes with one thread, or GPUs)")
    axes.grid(alpha=0.3)
