"""Draw docs/images/jobs.png, the picture of README.md: six jobs, and what people would use.

The length of a bar is the time of another program divided by that of this package. The CPU bars
come from the record of `jobs`. Those of a GPU come from a record of the same benchmark
with --gpu if there is one, otherwise from the records of the solvers.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..record import RESULTS, Record
from .image_file import IMAGES, write_image

CPU = RESULTS / "jobs-amd-epyc-2.json"

# Job -> what the picture calls it.
TITLES = {
    "ocean": "Implicit step of ocean columns",
    "options": "Price options",
    "splines": "Splines of many curves",
    "poisson": "Poisson equation",
    "heat": "Heat in a plate, one step",
    "small": "One small system",
}
# Program of a record -> its name, and the colour of its bar.
PROGRAMS = {
    "numba": ("Numba", "C0"),
    "scipy": ("SciPy", "C1"),
    "scipy fft": ("SciPy, FFT", "C1"),
    "splu": ("SciPy, sparse LU", "C1"),
    "lapack": ("LAPACK by SciPy", "C1"),
    "jax": ("JAX", "C2"),
    "pyamg": ("PyAMG", "C4"),
    "scipy loop": ("Python loop of SciPy", "0.75"),
    "cusparse": ("cuSPARSE", "C3"),
    "cupy": ("CuPy", "C5"),
    "cupy loop": ("CuPy, one curve after the other", "0.75"),
}


@dataclass(frozen=True)
class Group:
    """The bars of a job: its title and size, the time of this package, and the ratios to it."""

    title: str
    size: str
    seconds: float
    ratios: dict[str, float]


def groups_of(record: Record) -> list[Group]:
    """Return the groups of a record of `jobs`."""
    found = []
    for name, case in record["cases"].items():
        seconds = dict(case["seconds"])
        own = seconds.pop("package")
        order = sorted(seconds, key=list(PROGRAMS).index)
        ratios = {program: seconds[program] / own for program in order}
        found.append(Group(TITLES[name], case["size"], own, ratios))
    return found


def gpu_record() -> Record | None:
    """Return the record of `jobs` with --gpu; None if there is none."""
    paths = sorted(RESULTS.glob("jobs-h*.json"))
    return json.loads(paths[0].read_text()) if paths else None


def solver_records() -> dict[str, Record]:
    """Return the records of the solvers on one GPU by their names."""
    return {
        name: json.loads((RESULTS / f"{name}.json").read_text())
        for name in ("h200", "splines-h200", "poisson-h200")
    }


def groups_of_solvers(records: dict[str, Record]) -> list[Group]:
    """Return the groups that the records of the solvers on a GPU give."""
    return list(_groups_of_solvers(records))


def _groups_of_solvers(records: dict[str, Record]) -> Iterator[Group]:
    (case,) = (
        case
        for case in records["h200"]["bench"]["cases"]
        if (case["part"], case["matrix"], case["axis"]) == ("own", "own", "last")
        and (case["dtype"], case["rows"]) == ("float64", 512)
    )
    own = case["seconds"]
    size = f"{case['systems']} systems of {case['rows']} rows"
    peers = {"cusparse": "cusparse strided", "jax": "jax"}
    ratios = {name: case["peers"][key] / own for name, key in peers.items()}
    yield Group("Tridiagonal systems", size, own, ratios)
    entry = next(
        e for e in records["splines-h200"]["cases"] if "CuPy" in e["create"] and e["splines"] == 256
    )
    own = entry["create"]["package"]
    size = f"{entry['splines']} curves of {entry['knots']} values, created"
    yield Group(TITLES["splines"], size, own, {"cupy loop": entry["create"]["CuPy"] / own})
    entry = next(
        e
        for e in records["poisson-h200"]["cases"]
        if (e["shape"], e["dtype"]) == ([512] * 3, "float64")
    )
    own = entry["seconds"]["package"]
    size = " × ".join(map(str, entry["shape"])) + " cells"
    yield Group(TITLES["poisson"], size, own, {"cupy": entry["seconds"]["CuPy"] / own})


def picture(cpu: list[Group], cpu_title: str, gpu: list[Group], gpu_title: str) -> Figure:
    """Return the picture: the groups of the CPU, and below them those of the GPU."""
    counts = [sum(len(group.ratios) + 1 for group in groups) for groups in (cpu, gpu)]
    figure = Figure(figsize=(9.2, 0.27 * sum(counts) + 2.0), layout="constrained")
    axes = figure.subplots(2, 1, sharex=True, height_ratios=counts)
    for each, groups, title in zip(axes, (cpu, gpu), (cpu_title, gpu_title), strict=True):
        draw(each, groups)
        each.set_title(title, fontsize=10, loc="left", fontweight="bold")
    axes[1].set_xlabel("times as long as pysolvers takes (logarithmic)")
    return figure


def draw(axes: Axes, groups: list[Group]) -> None:
    """Draw the bars of groups, from the first one downwards."""
    place, ticks, labels = 0.0, [], []
    background = {"facecolor": "w", "edgecolor": "none", "pad": 1.0}
    style = {"fontsize": 9, "va": "center", "fontweight": "bold", "bbox": background, "zorder": 3}
    for group in groups:
        heading = f"{group.title}: {group.size}; pysolvers {duration(group.seconds)}"
        axes.text(0.42, place, heading, **style)
        place += 1
        for program, ratio in group.ratios.items():
            name, colour = PROGRAMS[program]
            hatch = "///" if "loop" in program else None
            axes.barh(place, ratio - 1, left=1, height=0.74, color=colour, hatch=hatch, ec="w")
            axes.text(max(ratio, 1.0) * 1.06, place, times(ratio), fontsize=9, va="center")
            ticks.append(place)
            labels.append(name)
            place += 1
    axes.axvline(1, color="k", lw=1)
    axes.set_xscale("log")
    axes.set_xlim(0.4, 30000)
    axes.set_ylim(place - 0.3, -0.8)
    axes.set_yticks(ticks, labels, fontsize=9)
    axes.set_xticks([1, 10, 100, 1000, 10000], ["1 ×", "10 ×", "100 ×", "1000 ×", "10000 ×"])
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def times(ratio: float) -> str:
    """Return a ratio with two or three digits."""
    digits = 2 if ratio < 1 else 1 if ratio < 20 else 0
    return f"{ratio:.{digits}f} ×"


def duration(seconds: float) -> str:
    """Return a time with a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs" if seconds >= 1e-4 else f"{seconds * 1e6:.2g} µs"


def gpu_groups() -> tuple[str, list[Group]]:
    """Return the name of the GPU and its groups, from the record that there is."""
    if (record := gpu_record()) is not None:
        return record["gpu"]["name"], groups_of(record)
    records = solver_records()
    return records["h200"]["gpu"]["name"], groups_of_solvers(records)


def renew() -> None:
    """Draw the picture."""
    cpu = json.loads(CPU.read_text())
    title = f"CPU: {cpu['machine']['cpu']}, {cpu['settings']['threads']} threads"
    name, on_gpu = gpu_groups()
    write_image(picture(groups_of(cpu), title, on_gpu, f"GPU: {name}"), IMAGES / "jobs.png", 64)
