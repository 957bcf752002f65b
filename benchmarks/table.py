"""The table of a record of the tridiagonal benchmark."""

from collections.abc import Iterator
from typing import Any

from .record import head

PEERS = ("numba", "scipy", "lapack", "numpy")


def table(record: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table of `record`."""
    yield from head(record)
    entries = record["cases"]
    yield f"copy: {record['copy']['bandwidth'] / 1e9:.1f} GB/s, bytes read plus bytes written"
    yield "time: ns for one unknown; floor: fraction of the fastest that the copy allows;"
    yield "bar: target of the floor column;"
    yield (
        "peers: times faster than each; numba: prange on the same threads, the whole batch; the "
        "loops of scipy and lapack are timed on "
        f"{record['settings']['sample']} unknowns"
    )
    yield ""
    yield (
        "matrix   axis   dtype        rows  systems method         time  floor    bar"
        "    numba    scipy   lapack    numpy"
    )
    yield from map(_line, entries)
    yield ""
    barred = [entry for entry in entries if entry["bar"] is not None]
    if barred:
        yield f"{sum(map(misses, barred))} of {len(barred)} cases with a target miss it (marked !)"
    else:
        yield "no targets: they hold for batches that are larger than the caches"


def misses(entry: dict[str, Any]) -> bool:
    """Return whether a case of a record misses one of its targets."""
    if entry["bar"] is not None and entry["fraction"] < entry["bar"]:
        return True
    if entry["peer_bar"] is None or "lapack" not in entry["peers"]:
        return False
    return speedup(entry, "lapack") < entry["peer_bar"]


def speedup(entry: dict[str, Any], peer: str) -> float:
    """Return how many times faster than `peer` a case of a record is."""
    return entry["peers"][peer] / entry["time"]


def _line(entry: dict[str, Any]) -> str:
    bar = "" if entry["bar"] is None else f"{entry['bar']:.0%}{'!' if misses(entry) else ' '}"
    line = (
        f"{entry['matrix']:8} {entry['axis']:6} {entry['dtype']:7} {entry['rows']:9}"
        f" {entry['systems']:8} {entry['method']:10} {entry['time']:8.2f} {entry['fraction']:6.0%}"
        f" {bar:>6}"
    )
    ratios = (f"{speedup(entry, p):.1f} x" if p in entry["peers"] else "" for p in PEERS)
    return (line + "".join(f"{ratio:>9}" for ratio in ratios)).rstrip()
