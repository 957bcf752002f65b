"""Tables of the documents from the record of a GPU; `tables` puts them in their places."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pysolvers.cases.tables import Column
from pysolvers.papers import SouriTiming, souri_timings

from ..gpu_table import bar_text, best_peer, has_bar, method_name, misses
from ..papers.pta2020_times import RUNS

Record = dict[str, Any]
Entry = dict[str, Any]

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"

# Heading in docs/performance.md -> part, matrix, axis and dtype of its cases.
_SUMMARY = {
    "own, f32": ("own", "own", "last", "float32"),
    "own, f64": ("own", "own", "last", "float64"),
    "first axis, f32": ("strided", "own", "first", "float32"),
    "first axis, f64": ("strided", "own", "first", "float64"),
    "shared, f64": ("shared", "shared", "last", "float64"),
    "pivoted, f64": ("pivoted", "pivoted", "last", "float64"),
    "periodic, f64": ("periodic", "periodic", "last", "float64"),
}
_CLAIM_ROWS = 512
_SUMMARY_ROWS = (64, 512, 1000, 1022, 4096, 16384, 65536, 2**26)
_COLUMNS = {
    **dict.fromkeys(("matrix", "axis"), "---"),
    **dict.fromkeys(("rows", "systems"), "--:"),
    "method": "---",
    **dict.fromkeys(("time", "of the floor", "bar", "error", "best peer"), "--:"),
}
_PROFILE = {
    **dict.fromkeys(("case", "kernel"), "---"),
    **dict.fromkeys(("bytes", "cache", "registers", "warps", "issue"), "--:"),
    "waits": "---",
}
_PARTS = {
    "own": "A matrix for each system",
    "checked": "The same, with the default test for dominance",
    "strided": "Strided axes",
    "shared": "One matrix for the batch",
    "pivoted": "Row exchanges",
    "periodic": "Periodic systems",
    "cached": "Batches in the cache, repeated in a graph",
    "papers": "The methods of the papers",
    "small": "Small work, times of calls on the host",
}


def summary(record: Record) -> Iterator[str]:
    """Yield the table of docs/performance.md: fractions of the floor."""
    cases = [entry for entry in record["bench"]["cases"] if "fraction" in entry]
    found = {_key(entry): entry for entry in cases}
    yield row("rows", *_SUMMARY, "cuSPARSE", "JAX")
    yield row(*["--:"] * (len(_SUMMARY) + 3))
    for rows in _SUMMARY_ROWS:
        entries = [found.get((*key, rows)) for key in _SUMMARY.values()]
        fractions = ["" if e is None else f"{e['fraction']:.0%}" for e in entries]
        double = entries[list(_SUMMARY).index("own, f64")]
        yield row(rows, *fractions, _ratio(double, "cusparse"), _ratio(double, "jax"))
    yield ""
    yield (
        "Fractions of what the copy bandwidth of the device allows, 2²⁶ unknowns; then how many "
        f"times faster `own, f64` is than cuSPARSE and JAX. {_machine(record)}"
    )


def claim(record: Record) -> Iterator[str]:
    """Yield the sentence of docs/performance.md that compares with cuSPARSE."""
    cases = [entry for entry in record["bench"]["cases"] if "seconds" in entry]
    entry = {_key(entry): entry for entry in cases}["own", "own", "last", "float64", _CLAIM_ROWS]
    ratio = entry["peers"]["cusparse strided"] / entry["seconds"]
    yield (
        f"On a GPU ({record['gpu']['name']}), one call solves {entry['systems']} systems of "
        f"{entry['rows']} rows, each with its own matrix, in {1e3 * entry['seconds']:.2f} ms: "
        f"**{ratio:.1f} times faster than cuSPARSE** (`gtsv2StridedBatch`), at "
        f"{entry['fraction']:.0%} of the speed of a copy of the same arrays."
    )


def everything(record: Record) -> Iterator[str]:
    """Yield the tables of docs/records.md: every case but those of the crossover."""
    cases = record["bench"]["cases"]
    missed = sum(map(misses, filter(has_bar, cases)))
    yield f"{_machine(record)} {missed} of {sum(map(has_bar, cases))} cases with a target miss it."
    for part, title in _PARTS.items():
        entries = [entry for entry in cases if entry["part"] == part]
        if entries:
            yield ""
            yield f"### {title}"
        for dtype in dict.fromkeys(entry["dtype"] for entry in entries):
            yield ""
            yield f"{dtype}:"
            yield ""
            yield row(*_COLUMNS)
            yield row(*_COLUMNS.values())
            yield from (_full_row(entry) for entry in entries if entry["dtype"] == dtype)
    yield ""
    yield _tests(record)
    yield from _picture("images", "gpu_roofline", "Fraction of the copy bandwidth over length")
    yield from _picture(
        "images", "gpu_crossover", "Thomas and partition over the number of systems"
    )


def profile(record: Record) -> Iterator[str]:
    """Yield the table of what the profiler says of the cases that miss their bars."""
    found = record.get("profile")
    if found is None:
        yield "This record has no profile."
        return
    yield row(*_PROFILE)
    yield row(*_PROFILE.values())
    for entry in found["cases"]:
        solver = entry["part"] == "steps"
        names = ("scheme", "shape") if solver else ("matrix", "axis", "rows")
        case = " ".join(_nodes(entry[name]) for name in names) + f" {entry['dtype']}"
        yield row(
            case,
            f"`{entry['kernel']}`",
            f"{entry['bytes']:.2f}",
            f"{entry['sectors']:.2f}",
            f"{entry['registers']:.0f}",
            f"{entry['occupancy']:.0f}%",
            f"{entry['issue']:.0f}%",
            ", ".join(f"{name} {share:.0%}" for name, share in entry["stalls"].items()),
        )


def _nodes(value: object) -> str:
    """Return a name, a number, or the nodes of a grid as text."""
    return " × ".join(map(str, value)) if isinstance(value, list) else str(value)


def pta2020(record: Record) -> Iterator[str]:
    """Yield the table of the experiment of Souri et al. 2020."""
    experiment = record["papers"]["pta2020"]
    grids = [str(n) for n in experiment["grids"]]
    yield row("seconds", *(f"{n}²" for n in grids), "published")
    yield row("---", *["--:"] * (len(grids) + 1))
    first = experiment["seconds"][RUNS[0].name]
    for run in RUNS:
        times = experiment["seconds"].get(run.name, {})
        timing = souri_timings().get(run.published or "")
        cells = (
            f"{times[n]:.3f} ({first[n] / times[n]:.1f} ×)" if n in times else "" for n in grids
        )
        yield row(run.name, *cells, _published(timing))


def paper(name: str) -> Callable[[Record], Iterator[str]]:
    """Return what makes the lines of all tables of a paper from a record."""

    def lines(record: Record) -> Iterator[str]:
        found = record["papers"][name]
        yield f"Measured on {found['gpu']['name']} and {found['machine']['cpu']}."
        for told in found["tables"]:
            columns = [Column(**column) for column in told["columns"]]
            yield ""
            yield f"**{told['title']}**"
            yield ""
            yield row(*(column.name for column in columns))
            yield row("---", *["--:"] * (len(columns) - 1))
            for cells in told["rows"]:
                yield row(*(c.text(cell) for c, cell in zip(columns, cells, strict=True)))
            for note in told["notes"]:
                yield ""
                yield note

    return lines


def _published(timing: SouriTiming | None) -> str:
    """Return what is known of a published time."""
    if timing is None:
        return ""
    told = [f"{timing.seconds:g} at {timing.nodes}²"] if timing.seconds else []
    if timing.least_speedup != timing.largest_speedup:
        told.insert(0, f"{timing.least_speedup:g} × to {timing.largest_speedup:g} ×")
    return ", ".join(told)


def _picture(folder: str, name: str, text: str) -> Iterator[str]:
    """Yield the lines that show a picture, if `roofline_picture` has drawn it."""
    if (IMAGES / f"{name}.png").exists():
        yield ""
        yield f"![{text}]({folder}/{name}.png)"


def _key(entry: Entry) -> tuple[object, ...]:
    return tuple(entry[name] for name in ("part", "matrix", "axis", "dtype", "rows"))


def _machine(record: Record) -> str:
    gpu, versions, copy = record["gpu"], record["versions"], record["bench"]["copy"]["bandwidth"]
    names = {"cupy-cuda12x": "CuPy", "cupy-cuda13x": "CuPy", "jax": "JAX"}
    told = [f"{name} {versions[key]}" for key, name in names.items() if versions.get(key)]
    return (
        f"Measured on {gpu['name']}, driver {versions['driver']}, nvcc {versions['nvcc']}, "
        f"copy {copy / 1e9:.0f} GB/s, {', '.join(told)}."
    )


def _tests(record: Record) -> str:
    tests = record["tests"]
    told = f"Tests on the device: {tests['passed']} passed, {tests['failed']} failed"
    told += f", {tests['skipped']} skipped."
    for tool, found in record["sanitizers"].items():
        told += f" compute-sanitizer {tool}: {found['errors']} errors in {found['passed']} tests."
    for name, found in record.get("random", {}).items():
        told += f" Random {name}: {found['cases']} cases, seed {found['seed']}, "
        told += f"{found['failed']} tests failed."
    return told


def _full_row(entry: Entry) -> str:
    names = [entry[name] for name in ("matrix", "axis", "rows", "systems")]
    if "failure" in entry:
        return row(*names, method_name(entry), entry["failure"], *[""] * 4)
    fraction = f"{entry['fraction']:.0%}" if "fraction" in entry else ""
    best = best_peer(entry)
    return row(
        *names,
        method_name(entry),
        f"{1e6 * entry['seconds']:.1f} µs",
        fraction,
        bar_text(entry) + (" (missed)" if has_bar(entry) and misses(entry) else ""),
        f"{entry['error']:g} ε",
        "" if best is None else f"{best[1]:.1f} × {best[0]}",
    )


def _ratio(entry: Entry | None, peer: str) -> str:
    times = [t for name, t in (entry or {}).get("peers", {}).items() if name.startswith(peer)]
    return f"{min(times) / entry['seconds']:.1f} ×" if entry and times else ""


def row(*cells: object) -> str:
    """Return the line of a table."""
    text = "| " + " | ".join(map(str, cells)) + " |"
    return re.sub(r"(?<=\d) ×(?= \||\))", "\N{NO-BREAK SPACE}×", text)  # on one line
