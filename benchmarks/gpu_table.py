"""The tables of a record of the benchmark `gpu`, and the evaluation of its entries."""

from collections.abc import Iterator
from typing import Any

from pysolvers.cases.tables import Column, Table

from . import gpu_solvers
from .record import Record

Entry = dict[str, Any]

# A larger backward error, in eps, means that the method is wrong.
WRONG = 1e4

_WEI = {1: "C1", 2: "C2", 3: "C3", 4: "C4"}


# Part of the benchmark -> the title of its tables.
PARTS = {
    "own": "A matrix for each system",
    "checked": "The same, with the default test for dominance",
    "strided": "Strided axes",
    "shared": "One matrix for the batch",
    "pivoted": "Row exchanges",
    "periodic": "Periodic systems",
    "uneven": "Uneven sizes",
    "cached": "Batches in the cache, repeated in a graph",
    "papers": "The methods of the papers",
    "small": "Small work, times of calls on the host",
    "steps": "Products and implicit steps",
    "crossover": "Thomas elimination against partition",
}
COLUMNS = (
    Column("matrix"),
    Column("axis", left=True),
    Column("rows"),
    Column("systems"),
    Column("method", left=True),
    *map(Column, ("time", "of the floor", "bar", "error", "best peer")),
)


def tables(record: Record) -> Iterator[Table]:
    """Yield the tables of a record: one for each part and dtype, one for the solvers."""
    for part, title in PARTS.items():
        entries = [entry for entry in record["cases"] if entry["part"] == part]
        for dtype in dict.fromkeys(entry["dtype"] for entry in entries):
            rows = [_row(entry) for entry in entries if entry["dtype"] == dtype]
            yield Table(f"{title}, {dtype}", COLUMNS, rows)
    if record.get("solvers"):  # records of earlier benchmarks have none
        yield gpu_solvers.table(record["solvers"])


def missed(record: Record) -> list[str]:
    """Return how many cases miss their targets."""
    barred = [entry for entry in record["cases"] if has_bar(entry)]
    solvers = record.get("solvers", [])
    compared = [e for e in record["cases"] if e["peers"] and e["peer_bar"] is not None]
    return [
        f"{sum(map(misses, barred))} of {len(barred)} cases their targets",
        f"{sum(map(slow_against_peer, compared))} of {len(compared)} cases those against peers",
        f"{sum(map(gpu_solvers.misses, solvers))} of {len(solvers)} solvers theirs",
    ]


def has_bar(entry: Entry) -> bool:
    """Return whether a case of a record has a target."""
    return entry["bar"] is not None or entry["time_bar"] is not None


def misses(entry: Entry) -> bool:
    """Return whether a case of a record is wrong, failed or slower than its target."""
    if "failure" in entry or not entry["error"] < WRONG:
        return True
    if entry["time_bar"] is not None:
        return bool(entry["seconds"] > entry["time_bar"])
    return entry["bar"] is not None and bool(entry["fraction"] < entry["bar"])


def best_peer(entry: Entry) -> tuple[str, float] | None:
    """Return the fastest peer of a case and how many times faster the package is."""
    if not entry["peers"] or "failure" in entry:
        return None
    name = min(entry["peers"], key=entry["peers"].__getitem__)
    return name, entry["peers"][name] / entry["seconds"]


def slow_against_peer(entry: Entry) -> bool:
    """Return whether the speedup of a case over its best peer is below the target."""
    best = best_peer(entry)
    return best is not None and entry["peer_bar"] is not None and best[1] < entry["peer_bar"]


def method_name(entry: Entry) -> str:
    """Return the method by which a case was solved, with the mapping of Wei et al. 2013."""
    name = str(entry.get("used", entry["method"]))
    return f"{name} {_WEI[entry['variant']]}" if entry["variant"] else name


def bar_text(entry: Entry) -> str:
    """Return the target of a case as text; empty if there is none."""
    if entry["time_bar"] is not None:
        return f"{1e6 * entry['time_bar']:.0f} µs"
    return "" if entry["bar"] is None else f"{entry['bar']:.0%}"


def _row(entry: Entry) -> tuple[Any, ...]:
    """Return the cells of a case."""
    size = (entry["matrix"], entry["axis"], entry["rows"], entry["systems"])
    if "failure" in entry:
        return (*size, method_name(entry), entry["failure"], "", "", "", "")
    best = best_peer(entry)
    return (
        *size,
        method_name(entry),
        f"{1e6 * entry['seconds']:.1f} µs",
        f"{entry['fraction']:.0%}" if "fraction" in entry else "",
        bar_text(entry) + (" (missed)" if has_bar(entry) and misses(entry) else ""),
        f"{entry['error']:g} ε",
        "" if best is None else f"{best[1]:.1f} × {best[0]}",
    )
