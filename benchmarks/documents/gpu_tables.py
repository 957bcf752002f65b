"""Tables of the documents from the record of a GPU; `tables` puts them in their places."""

from collections.abc import Callable, Iterator

from pysolvers.cases.tables import Column, Table
from pysolvers.papers.pta2020 import SouriTiming, souri_timings

from .. import gpu_solvers
from ..papers.pta2020 import RUNS
from ..record import Record

# Heading in docs/measurements.md -> part, matrix, axis and dtype of its cases.
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


def summary(record: Record) -> Iterator[str]:
    """Yield the table of docs/measurements.md: fractions of the floor."""
    cases = [entry for entry in record["bench"]["cases"] if "fraction" in entry]
    found = {_key(entry): entry for entry in cases}
    rows = []
    for length in _SUMMARY_ROWS:
        entries = [found.get((*key, length)) for key in _SUMMARY.values()]
        fractions = (None if e is None else e["fraction"] for e in entries)
        double = entries[list(_SUMMARY).index("own, f64")]
        rows.append((length, *fractions, _ratio(double, "cusparse"), _ratio(double, "jax")))
    columns = [Column("rows"), *(Column(name, ".0%") for name in _SUMMARY)]
    note = (
        "Fractions of what the copy bandwidth of the device allows, 2²⁶ unknowns; then how many "
        f"times faster `own, f64` is than cuSPARSE and JAX. {machine_of(record)}"
    )
    columns += [Column("cuSPARSE"), Column("JAX")]
    yield from Table("", columns, rows, (note,)).markdown()


def solvers(record: Record) -> Iterator[str]:
    """Yield the table of docs/measurements.md of steps on grids and of splines."""
    yield from gpu_solvers.table(record["bench"]["solvers"]).markdown()
    yield ""
    yield machine_of(record)


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


def pta2020(record: Record) -> Iterator[str]:
    """Yield the table of the experiment of Souri et al. 2020."""
    experiment = record["papers"]["pta2020"]
    grids = [str(n) for n in experiment["grids"]]
    first = experiment["seconds"][RUNS[0].name]
    rows = []
    for run in RUNS:
        times = experiment["seconds"].get(run.name, {})
        timing = souri_timings().get(run.published or "")
        cells = (
            f"{times[n]:.3f} ({first[n] / times[n]:.1f} ×)" if n in times else "" for n in grids
        )
        rows.append((run.name, run.lines, f"{run.reynolds:g}", *cells, _published(timing)))
    yield from _conclusions(experiment["verdict"])
    yield ""
    heads = ("lines along", "Re", *(f"{n}²" for n in grids), "published")
    yield from Table(
        "", [Column(f"seconds{sources_of(experiment)}"), *map(Column, heads)], rows
    ).markdown()


def paper(name: str) -> Callable[[Record], Iterator[str]]:
    """Return what makes the conclusions and the lines of all tables of a paper from a record."""

    def lines(record: Record) -> Iterator[str]:
        found = record["papers"][name]
        machines = f"{found['gpu']['name']} and {found['machine']['cpu']}"
        yield f"Measured on {machines}{sources_of(found)}."
        yield ""
        yield from _conclusions(found["verdict"])
        for table in found["tables"]:
            columns = [Column(**column) for column in table["columns"]]
            yield ""
            yield f"**{table['title']}**"
            yield ""
            yield from Table("", columns, table["rows"], table["notes"]).markdown()

    return lines


def sources_of(part: Record) -> str:
    """Return the words that name the sources of a part that is older than its record."""
    return f" (sources {part['sources'][:8]})" if "sources" in part else ""


def _conclusions(verdict: str) -> Iterator[str]:
    """Yield what the paper claims and what was found, an item a claim."""
    for line in verdict.splitlines():
        yield f"- {line}"


def _published(timing: SouriTiming | None) -> str:
    """Return what is known of a published time."""
    if timing is None:
        return ""
    parts = [f"{timing.seconds:g} at {timing.nodes}²"] if timing.seconds else []
    if timing.least_speedup != timing.largest_speedup:
        parts.insert(0, f"{timing.least_speedup:g} × to {timing.largest_speedup:g} ×")
    return ", ".join(parts)


def _key(entry: Record) -> tuple[object, ...]:
    return tuple(entry[name] for name in ("part", "matrix", "axis", "dtype", "rows"))


def machine_of(record: Record) -> str:
    gpu, versions, copy = record["gpu"], record["versions"], record["bench"]["copy"]["bandwidth"]
    names = {"cupy-cuda12x": "CuPy", "cupy-cuda13x": "CuPy", "jax": "JAX"}
    parts = [f"{name} {versions[key]}" for key, name in names.items() if versions.get(key)]
    is_older = record["bench"].get("sources", record["sources"]) != record["sources"]
    older = sources_of(record["bench"]) if is_older else ""
    return (
        f"Measured on {gpu['name']}, driver {versions['driver']}, nvcc {versions['nvcc']}, "
        f"copy {copy / 1e9:.0f} GB/s, {', '.join(parts)}{older}."
    )


def _ratio(entry: Record | None, peer: str) -> str:
    times = [t for name, t in (entry or {}).get("peers", {}).items() if name.startswith(peer)]
    return f"{min(times) / entry['seconds']:.1f} ×" if entry and times else ""
