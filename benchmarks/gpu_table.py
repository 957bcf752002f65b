"""The table of a record of the benchmark on a GPU, and the evaluation of its entries."""

from collections.abc import Iterator
from typing import Any

Entry = dict[str, Any]

# A larger backward error, in eps, means that the method is wrong.
WRONG = 1e4

_WEI = {1: "C1", 2: "C2", 3: "C3", 4: "C4"}


def table(record: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table of `record`."""
    gpu = record["gpu"] or {"name": record["device"], "driver": "unknown"}
    yield f"{gpu['name']}, driver {gpu['driver']}; {record['device']}"
    yield f"copy: {record['copy']['bandwidth'] / 1e9:.0f} GB/s, bytes read plus bytes written"
    yield "time: microseconds of a solve; floor: fraction of the fastest that the copy allows;"
    yield "error: backward error in eps; peer: times faster than the best one"
    yield ""
    yield (
        "part      matrix   axis   dtype       rows  systems method              time  floor"
        "    bar   error   peer"
    )
    yield from map(_line, record["cases"])
    yield ""
    barred = [entry for entry in record["cases"] if has_bar(entry)]
    yield f"{sum(map(misses, barred))} of {len(barred)} cases with a target miss it (marked !)"
    slow = [entry for entry in record["cases"] if slow_against_peer(entry)]
    compared = [e for e in record["cases"] if e["peers"] and e["peer_bar"] is not None]
    yield (
        f"{len(slow)} of {len(compared)} cases with a target against the other packages miss it"
        " (marked ~)"
    )


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


def _line(entry: Entry) -> str:
    head = (
        f"{entry['part']:9} {entry['matrix']:8} {entry['axis']:6} {entry['dtype']:7}"
        f" {entry['rows']:8} {entry['systems']:8}"
    )
    if "failure" in entry:
        return f"{head} {method_name(entry):14} {entry['failure']} !"
    fraction = f"{entry['fraction']:.0%}" if "fraction" in entry else ""
    bar = bar_text(entry) + (("!" if misses(entry) else " ") if has_bar(entry) else "")
    best = best_peer(entry)
    peer = "" if best is None else f"{best[1]:.1f}{'~' if slow_against_peer(entry) else ' '}"
    return (
        f"{head} {method_name(entry):14} {1e6 * entry['seconds']:9.1f} {fraction:>6} {bar:>7}"
        f" {entry['error']:7.3g} {peer:>6} {best[0] if best else ''}"
    ).rstrip()
