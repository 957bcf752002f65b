"""Renew the tables of README.md and the documentation from the committed records.

A table stands between two comments, the first of which names its kind and the record:

    <!-- speed: benchmarks/results/machine.json -->
    ...
    <!-- end of speed -->

The module of a benchmark makes the tables of its records; here are those that compare benchmarks,
and sentences.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from pysolvers._repr import shape_text
from pysolvers.cases.tables import Column, Table

from .. import (
    calls,
    cylinder,
    cylinder_peer,
    distributed,
    gradients,
    gradients_cpu,
    group_calls,
    lines,
    parabolic,
    parts,
    poisson,
    recurrences,
    slabs,
    splines,
    staggered,
    steps,
)
from ..record import RESULTS, Record, machine_name
from ..sources import ROOT
from . import gpu_tables, jobs_picture

BLOCK = re.compile(r"(<!-- ([a-z][\w ]*): (\S+) -->\n).*?(<!-- end of \2 -->)", re.DOTALL)

CLAIM_ROWS = 64  # the systems of the sentence of docs/performance.md

Lines = Callable[[Record], Iterator[str]]


def of(tables: Callable[[Record], Iterable[Table]], *numbers: int) -> Lines:
    """Return what makes the lines of the tables of a benchmark, of all or of those numbered."""

    def lines(record: Record) -> Iterator[str]:
        made = list(tables(record))
        for k, table in enumerate([made[n] for n in numbers] if numbers else made):
            if k:
                yield ""
            yield from table.markdown()

    return lines


def summary(record: Record) -> Iterator[str]:
    """Yield the first table of docs/measurements.md: float64, the systems along the last axis."""
    entries = {
        (entry["matrix"], entry["rows"]): entry
        for entry in record["cases"]
        if entry["axis"] == "last" and entry["dtype"] == "float64" and entry["systems"] > 1
    }
    names = ("own matrix", "shared matrix", "pivoted", "LAPACK loop", "SciPy loop", "NumPy")
    rows = []
    for length in sorted({length for _, length in entries}):
        own = entries["own", length]
        speeds = (_speed(entries[matrix, length]) for matrix in ("own", "shared", "pivoted"))
        ratios = (_ratio(own, peer) for peer in ("lapack", "scipy", "numpy"))
        rows.append((length, own["systems"], *speeds, *ratios))
    note = (
        "Time in ns for one unknown, in brackets the fraction of what the copy bandwidth allows; "
        f"then how many times faster `own matrix` is than each peer. {machine_of(record)}"
    )
    yield from Table("", [*map(Column, ("rows", "systems", *names))], rows, (note,)).markdown()


def claim(record: Record) -> Iterator[str]:
    """Yield the sentence of docs/performance.md that compares with loops in Python."""
    (entry,) = (
        entry
        for entry in record["cases"]
        if (entry["matrix"], entry["axis"], entry["dtype"]) == ("own", "last", "float64")
        and entry["rows"] == CLAIM_ROWS
    )
    scipy, numpy = (entry["peers"][name] / entry["time"] for name in ("scipy", "numpy"))
    milliseconds = 1e-6 * entry["time"] * entry["rows"] * entry["systems"]
    yield (
        f"On a CPU ({record['machine']['cpu']}, {record['settings']['threads']} threads), one call "
        f"solves {entry['systems']} systems of {entry['rows']} rows, each with its own matrix, in "
        f"{milliseconds:.0f} ms: {scipy:.0f} times faster than a Python loop of "
        f"`scipy.linalg.solve_banded`, and {numpy:.1f} times faster than "
        "Thomas elimination written in NumPy."
    )


def jobs(record: Record) -> Iterator[str]:
    """Yield the table of README.md: six jobs, compared with what people would use."""
    rows = []
    for name, group in zip(record["cases"], jobs_picture.groups_of(record), strict=True):
        others = (
            f"{jobs_picture.PROGRAMS[program][0]} {jobs_picture.times(ratio)}"
            for program, ratio in group.ratios.items()
        )
        size, time = group.size.replace(" x ", " × "), jobs_picture.duration(group.seconds)
        rows.append((group.title, size, time, ", ".join(others), f"`--only {name}`"))
    columns = (
        Column("job"),
        Column("size", left=True),
        Column("pysolvers"),
        Column("times as long", left=True),
        Column("`python -m pysolvers bench jobs`", left=True),
    )
    settings, versions = record["settings"], record["versions"]
    names = {"numba": "Numba", "scipy": "SciPy", "jax": "JAX", "pyamg": "PyAMG"}
    listed = ", ".join(f"{text} {versions[name]}" for name, text in names.items() if versions[name])
    note = (
        f"{record['machine']['cpu']}, {settings['threads']} threads, float64; medians of "
        f"alternating runs; {listed}. A *Python loop* calls `solve_banded` for each system."
    )
    yield from Table("", columns, rows, (note,)).markdown()


def jobs_gpu(_: Record) -> Iterator[str]:
    """Yield the sentence of README.md with the ratios on a GPU, those of its picture."""
    name, groups = jobs_picture.gpu_groups()
    found = [
        f"{group.title} ({group.size}): "
        + ", ".join(
            f"{jobs_picture.PROGRAMS[program][0]} {jobs_picture.times(ratio)}"
            for program, ratio in group.ratios.items()
        )
        for group in groups
    ]
    yield f"{name}, times as long: {'; '.join(found)}."


def trust(record: Record) -> Iterator[str]:
    """Yield the list of README.md: what was tested on a device, from its record."""
    random, sanitizers = record["random"], record["sanitizers"]
    found = [
        f"{record['tests']['passed']} tests passed and {record['tests']['failed']} failed on an "
        f"{record['gpu']['name']}{gpu_tables.sources_of(record['tests'])}"
    ]
    if sanitizers:
        checked = min(part["passed"] for part in sanitizers.values())
        numbers = [str(part["errors"]) for part in sanitizers.values()]
        errors = " and ".join(numbers) if any(n != "0" for n in numbers) else "0"
        tools = " and ".join(f"{n}{gpu_tables.sources_of(part)}" for n, part in sanitizers.items())
        found.append(f"{tools} of compute-sanitizer found {errors} errors in {checked} tests")
    if random:
        cases = sum(part["cases"] for part in random.values())
        found.append(f"{cases} random systems and calls were solved and checked")
    yield (
        f"- {'; '.join(found)} (record of the sources with the hash `{record['sources'][:8]}`). "
        f"{record.get('note', '')}".rstrip()
    )
    counts = next(
        table for table in record["papers"]["lmsor2012"]["tables"] if table["title"] == "Iterations"
    )
    pairs = [line[-2:] for line in counts["rows"] if line[-2] is not None]
    equal = sum(published == counted for published, counted in pairs)
    yield (
        f"- [Five papers](docs/reproductions.md) are repeated by `make reproduce PAPER=...`: "
        f"{equal} of {len(pairs)} published numbers of iterations of local modified SOR are met "
        "exactly, for example. Where a paper and its numbers disagree, the report says so."
    )


def two_gpus(record: Record) -> Iterator[str]:
    """Yield the table of docs/distributed.md: cut lines, and solvers from their own record."""
    rows = []
    for case, share in zip(record["cases"], lines.shares_of_one(record), strict=True):
        if case["exchange"] == "peers" and case["ranks"] == 2:
            what = f"`solve_tridiagonal`, {case['lines']} systems of {case['rows']} rows"
            rows.append((what, case["dtype"], share, case["checked"] / case["seconds"]))
    path = RESULTS / f"slabs-{machine_name(record['gpu'], 2)}.json"
    solvers = json.loads(path.read_text())
    for case in solvers["cases"]:
        if case["ranks"] == 2 and "efficiency" in case:
            name, *_, dtype = case["case"].split()
            what = f"`{name}`, {shape_text(case['shape'])}"
            rows.append((what, dtype, case["efficiency"], None))
    columns = (
        Column("two GPUs of a host"),
        Column("dtype", left=True),
        Column("efficiency", ".0%"),
        Column("default options", ".2f"),
    )
    note = (
        "*Efficiency*: the speed of each GPU, compared with one alone; each GPU has a box of its "
        "own of `HeatADI`, and half of all else. *Default options*: their time over that with "
        "`pivot=False` and `on_singular='ignore'`, because a call then waits for its outcome. "
        f"Measured on {record['gpu']['name']}, NVLink."
    )
    yield from Table("", columns, rows, (note,)).markdown()


# Document -> kind of the table -> what makes its lines.
TABLES: dict[str, dict[str, Lines]] = {
    "README.md": {
        "jobs": jobs,
        "jobs gpu": jobs_gpu,
        "trust": trust,
    },
    "docs/performance.md": {
        "claim": claim,
        "gpu claim": gpu_tables.claim,
        "calls": of(calls.tables),
        "calls gpu": of(calls.tables),
    },
    "docs/measurements.md": {
        "speed": summary,
        "gpu speed": gpu_tables.summary,
        "gpu solvers": gpu_tables.solvers,
        "steps": of(steps.tables),
        "parabolic": of(parabolic.tables),
        "parabolic gpu": of(parabolic.tables),
        "recurrences": of(recurrences.tables),
        **{
            name: of(poisson.tables)
            for name in ("poisson", "poisson gpu", "poisson grids", "poisson grids gpu")
        },
        "cylinder": of(lambda record: [cylinder.table(record)]),
        "cylinder peer": of(cylinder_peer.tables),
        "jax loops": of(gradients.tables, 1),
    },
    "docs/distributed.md": {"two gpus": two_gpus},
    "docs/ranks.md": {
        "steps": of(parts.tables, 1),
        "cut lines": of(lines.tables),
        "group calls": of(group_calls.tables),
        "solvers": of(slabs.tables),
        "ranks": of(distributed.tables, 0),
        "model": of(distributed.tables, 1),
        "systems": of(distributed.tables, 2),
    },
    "docs/jax.md": {"jax": of(gradients.tables, 0)},
    "docs/torch.md": {"torch": of(gradients.tables), "gradients": of(gradients_cpu.tables)},
    "docs/theory/splines.md": {"splines": of(splines.tables), "splines gpu": of(splines.tables)},
    "docs/theory/staggered.md": {"staggered": of(staggered.tables)},
    "docs/reproductions.md": {
        "pta2020": gpu_tables.pta2020,
        **{
            name: gpu_tables.paper(name)
            for name in (
                "pta2020_cylinder",
                "lmsor2012",
                "survey2014",
                "wei2013",
                "gceidd2022",
            )
        },
    },
}


def filled(text: str, makers: Mapping[str, Lines]) -> str:
    """Return a text with the tables that its records give, by the kinds of the tables."""

    def block(match: re.Match[str]) -> str:
        head, kind, path, end = match.groups()
        if kind not in makers:
            raise ValueError(f"there is no table {kind!r}")
        lines = makers[kind](json.loads((ROOT / path).read_text()))
        return head + "\n" + "\n".join(lines) + "\n\n" + end

    for kind in set(makers) - {match[2] for match in BLOCK.finditer(text)}:
        raise ValueError(f"the comment <!-- {kind}: RECORD --> is missing")
    return BLOCK.sub(block, text)


def renewed(name: str) -> str:
    """Return the text of the document `name` with its tables."""
    return filled((ROOT / name).read_text(), TABLES[name])


def stale_pages() -> list[str]:
    """Return the pages of which a table is not that of its record."""
    return [name for name in TABLES if renewed(name) != (ROOT / name).read_text()]


def renew() -> None:
    """Write the tables of all pages."""
    for name in stale_pages():
        (ROOT / name).write_text(renewed(name))
        print(f"{name}: tables renewed")


def machine_of(record: Record) -> str:
    machine, settings, versions = record["machine"], record["settings"], record["versions"]
    return (
        f"Measured on {machine['cpu']}, {settings['threads']} threads, {record['kernel']}, "
        f"copy {record['copy']['bandwidth'] / 1e9:.0f} GB/s, Python {versions['python']}, "
        f"NumPy {versions['numpy']}, SciPy {versions['scipy']}."
    )


def _speed(entry: Record) -> str:
    return f"{entry['time']:.2f} ({entry['fraction']:.0%})"


def _ratio(entry: Record, peer: str) -> str:
    return f"{entry['peers'][peer] / entry['time']:.1f} ×" if peer in entry["peers"] else ""
