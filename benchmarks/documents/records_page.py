"""The page of the documentation that lists the records, and every case of two of them.

It is made from records.md of this folder when the documentation is built.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from pysolvers.cases.tables import Column, Table

from .. import gpu_table, tridiagonal
from ..record import RESULTS, Record, place
from ..sources import ROOT, device_hash, source_hash
from . import gpu_tables, tables

TEMPLATE, PAGE = Path(__file__).with_name("records.md"), ROOT / "docs" / "records.md"


def write() -> None:
    """Write the page from its template and the records."""
    PAGE.write_text(tables.filled(TEMPLATE.read_text(), TABLES))


def cpu(record: Record) -> Iterator[str]:
    """Yield the tables of all cases of a record of a CPU."""
    yield tables.machine_of(record)
    for table in tridiagonal.tables(record):
        yield from _titled(table)


def gpu(record: Record) -> Iterator[str]:
    """Yield the tables of all cases of a record of a GPU but those of the crossover."""
    cases = [entry for entry in record["bench"]["cases"] if gpu_table.has_bar(entry)]
    missed = f"{sum(map(gpu_table.misses, cases))} of {len(cases)} cases with a target miss it."
    yield f"{gpu_tables.machine_of(record)} {missed}"
    for table in gpu_table.tables(record["bench"]):
        if not table.title.startswith(gpu_table.PARTS["crossover"]):
            yield from _titled(table)
    yield ""
    yield _tests(record)


def listed(_: Record) -> Iterator[str]:
    """Yield the table of all records."""
    hashes = {source_hash(), device_hash()}
    rows = []
    for path in sorted(RESULTS.glob("*.json")):
        record: Record = json.loads(path.read_text())
        sources = record["sources"]
        is_current = "these" if sources in hashes else ""
        rows.append((f"`{path.stem}`", place(record), record["date"], sources[:8], is_current))
    names = ("machine", "date", "sources", "")
    columns = [Column("record"), *(Column(name, left=True) for name in names)]
    yield from Table("", columns, rows).markdown()


def profile(record: Record) -> Iterator[str]:
    """Yield the table of what the profiler says of the cases that miss their bars."""
    if "profile" not in record:
        yield "This record has no profile."
        return
    if of := gpu_tables.sources_of(record["profile"]):
        yield f"The profile is of earlier sources{of}.\n"
    rows = []
    for entry in record["profile"]["cases"]:
        names = ("scheme", "shape") if "scheme" in entry else ("matrix", "axis", "rows")
        rows.append(
            (
                " ".join(_nodes(entry[name]) for name in names) + f" {entry['dtype']}",
                f"`{entry['kernel']}`",
                *(entry[n] for n in ("bytes", "sectors", "registers", "occupancy", "issue")),
                ", ".join(f"{name} {share:.0%}" for name, share in entry["stalls"].items()),
            )
        )
    columns = [Column("case"), Column("kernel", left=True)]
    columns += [Column("bytes", ".2f"), Column("cache", ".2f"), Column("registers", ".0f")]
    columns += [Column("warps, %", ".0f"), Column("issue, %", ".0f"), Column("waits", left=True)]
    yield from Table("", columns, rows).markdown()


def _titled(table: Table) -> Iterator[str]:
    yield f"\n### {table.title}\n"
    yield from table.markdown()


def _tests(record: Record) -> str:
    tests = record["tests"]
    text = f"Tests on the device{gpu_tables.sources_of(tests)}: {tests['passed']} passed"
    text += f", {tests['failed']} failed"
    text += f", {tests['skipped']} skipped."
    for tool, found in record["sanitizers"].items():
        text += (
            f" compute-sanitizer {tool}{gpu_tables.sources_of(found)}: {found['errors']} errors in"
        )
        text += f" {found['passed']} tests."
    for name, found in record.get("random", {}).items():
        text += f" Random {name}{gpu_tables.sources_of(found)}: {found['cases']} cases,"
        text += f" seed {found['seed']}, {found['failed']} tests failed."
    return f"{text} {record.get('note', '')}".rstrip()


def _nodes(value: object) -> str:
    """Return a name, a number, or the nodes of a grid as text."""
    return " × ".join(map(str, value)) if isinstance(value, list) else str(value)


TABLES = {"records": listed, "speed": cpu, "gpu speed": gpu, "gpu profile": profile}
