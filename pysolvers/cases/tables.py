"""What the commands that repeat a paper share: tables, their JSON file and their pictures."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..bench import machine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name : str
        Its head.
    form : str, default: ''
        How its numbers are written, as `format` takes it; texts are written as they are.
    """

    name: str
    form: str = ""

    def text(self, cell: Cell) -> str:
        """Return a cell as it is shown: nothing for None."""
        if cell is None:
            return ""
        return cell if isinstance(cell, str) else format(cell, self.form)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of measured and published numbers.

    Parameters
    ----------
    title : str
        What it shows.
    columns : sequence of Column
        Its columns.
    rows : sequence of sequence of str, int, float or None
        One cell a column.
    notes : sequence of str
        What has to be known to read it.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()

    def lines(self) -> Iterator[str]:
        """Yield the lines of the table as a terminal shows it."""
        cells = [[column.name for column in self.columns]]
        cells += [
            [column.text(cell) for column, cell in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        yield self.title
        for row in cells:
            first = row[0].ljust(widths[0])
            rest = (text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))
            yield "  ".join((first, *rest)).rstrip()
        yield from self.notes


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """Add where a report goes to the parser of a command."""
    parser.add_argument("--output", type=Path, default=Path("results"), help="folder (%(default)s)")
    parser.add_argument("--no-plot", action="store_true", help="write no picture")


def report(
    args: argparse.Namespace,
    name: str,
    title: str,
    tables: Sequence[Table],
    *,
    facts: Mapping[str, Any] | None = None,
    pictures: Mapping[str, Callable[[], "Figure"]] | None = None,
) -> None:
    """Print tables and write them to ``NAME.json``, and pictures beside it.

    Parameters
    ----------
    args : Namespace
        With what `add_report_arguments` added.
    name : str
        Of the files.
    title : str
        The paper.
    tables : sequence of Table
        What was found.
    facts : mapping, optional
        What else the file tells, for JSON.
    pictures : mapping of str to callable, optional
        What draws each picture; its file has the name behind that of the paper.
    """
    gpu = machine.gpu()
    print(title)
    print(f"here: {machine.cpu_model()}; {gpu['name'] if gpu else 'no GPU'}")
    for table in tables:
        print()
        for line in table.lines():
            print(line)
    args.output.mkdir(parents=True, exist_ok=True)
    told = {
        "title": title,
        "gpu": gpu,
        "machine": machine.machine(),
        "tables": [_plain(table) for table in tables],
        **(facts or {}),
    }
    path = args.output / f"{name}.json"
    path.write_text(json.dumps(told, indent=1, allow_nan=False) + "\n")
    print(f"wrote {path}", file=sys.stderr)
    if not args.no_plot:
        _draw(args.output, name, pictures or {})


def _plain(table: Table) -> dict[str, Any]:
    """Return a table for JSON, which has no number that is not finite: such a cell is a text."""
    rows = [
        [str(c) if isinstance(c, float) and not isfinite(c) else c for c in row]
        for row in table.rows
    ]
    return {**asdict(table), "rows": rows}


def _draw(folder: Path, name: str, pictures: Mapping[str, Callable[[], "Figure"]]) -> None:
    for part, draw in pictures.items():
        path = folder / f"{name}-{part}.png"
        try:
            figure = draw()
        except ImportError as error:
            print(f"no picture: {error}", file=sys.stderr)
            return
        figure.savefig(path, dpi=110)
        print(f"wrote {path}", file=sys.stderr)
