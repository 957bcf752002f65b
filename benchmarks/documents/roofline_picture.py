"""Draw the pictures of a GPU's record, benchmarks/results/<gpu>.json, into docs/images.

gpu_roofline.png: the fraction of the copy bandwidth over the length of the systems, case by case,
and that of the peers. gpu_crossover.png: Thomas elimination, one thread a system, against
`partition`, over the number of systems.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..gpu_cases import CROSSOVER_ROWS
from ..record import RESULTS
from .image_file import IMAGES, write_image

DTYPES = ("float32", "float64")
# Label of a line of the roofline -> part, matrix and axis of its cases.
LINES = {
    "own matrix, last axis": ("own", "own", "last"),
    "own matrix, first axis": ("strided", "own", "first"),
    "own matrix, middle axis": ("strided", "own", "middle"),
    "shared matrix, last axis": ("shared", "shared", "last"),
    "its factors kept, last axis": ("shared", "factor", "last"),
    "pivoted, last axis": ("pivoted", "pivoted", "last"),
    "periodic, last axis": ("periodic", "periodic", "last"),
}
PEER_LINES = {
    "cuSPARSE, last axis": ("own", "last", "cusparse strided"),
    "cuSPARSE, first axis": ("strided", "first", "cusparse interleaved"),
    "JAX, last axis": ("own", "last", "jax"),
}
LONGEST = 65536

Entry = dict[str, Any]


def roofline(record: dict[str, Any]) -> Figure:
    """Return the figure of the fractions."""
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    entries = [entry for entry in record["bench"]["cases"] if "fraction" in entry]
    for axes, dtype in zip(figure.subplots(1, 2, sharey=True), DTYPES, strict=True):
        here = [e for e in entries if e["dtype"] == dtype and e["rows"] <= LONGEST]
        for k, (label, key) in enumerate(LINES.items()):
            points = [e for e in here if (e["part"], e["matrix"], e["axis"]) == key]
            _draw(axes, ((e["rows"], e["fraction"]) for e in points), label, f"C{k}o-")
        for k, (label, (part, axis, peer)) in enumerate(PEER_LINES.items()):
            points = [e for e in here if (e["part"], e["axis"]) == (part, axis)]
            _draw(axes, _peer_points(points, peer), label, ("k--", "k:", "k-.")[k])
        axes.axhline(1, color="0.6", lw=0.8)
        axes.set_xscale("log", base=2)
        axes.set(xlabel="rows of a system", title=dtype, ylim=(0, None))
        axes.grid(alpha=0.3)
    first, _ = figure.axes
    first.set_ylabel("fraction of the copy bandwidth")
    figure.legend(
        *first.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8
    )
    copy = record["bench"]["copy"]["bandwidth"] / 1e12
    figure.suptitle(f"{record['gpu']['name']}: copy {copy:.2f} TB/s, 2²⁶ unknowns", fontsize=11)
    return figure


def crossover(record: dict[str, Any]) -> Figure:
    """Return the figure of Thomas elimination against `partition`."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    entries = [
        entry
        for entry in record["bench"]["cases"]
        if entry["part"] == "crossover" and entry["rows"] == CROSSOVER_ROWS and "seconds" in entry
    ]
    for axes, dtype in zip(figure.subplots(1, 2, sharey=True), DTYPES, strict=True):
        for k, method in enumerate(("thomas", "partition")):
            for style, axis in (("o-", "first"), ("s:", "last")):
                key = (dtype, method, axis)
                points = [e for e in entries if (e["dtype"], e["method"], e["axis"]) == key]
                times = ((e["systems"], 1e9 * e["seconds"] / _unknowns(e)) for e in points)
                _draw(axes, times, f"{method}, {axis} axis", f"C{k}{style}")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set(xlabel="systems", title=f"{dtype}, {CROSSOVER_ROWS} rows")
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize=8)
    figure.axes[0].set_ylabel("time per unknown (ns)")
    figure.suptitle(f"{record['gpu']['name']}: methods over the number of systems", fontsize=11)
    return figure


def write_pictures(record: dict[str, Any], folder: Path) -> None:
    """Draw both pictures into a folder."""
    for name, draw in (("gpu_roofline", roofline), ("gpu_crossover", crossover)):
        write_image(draw(record), folder / f"{name}.png")


def renew() -> None:
    """Draw the pictures of the committed record."""
    write_pictures(json.loads((RESULTS / "h200.json").read_text()), IMAGES)


def _peer_points(points: list[Entry], peer: str) -> Iterator[tuple[int, float]]:
    """Yield the fractions of the fastest call of a peer."""
    for entry in points:
        times = [time for name, time in entry["peers"].items() if name.startswith(peer)]
        if times:
            yield entry["rows"], entry["floor"] / min(times)


def _draw(axes: Axes, points: Iterable[tuple[int, float]], label: str, style: str) -> None:
    points = sorted(points)
    if points:
        axes.plot(*zip(*points, strict=True), style, ms=3.5, lw=1.2, label=label)


def _unknowns(entry: Entry) -> int:
    return int(entry["rows"] * entry["systems"])
