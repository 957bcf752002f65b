"""Tables of results: for a terminal, a page and a JSON file; the report of a command."""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _machine as machine
from .records import write_record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name : str
        Its heading.
    form : str, default: ''
        Format specification of its numbers, as for `format`; texts are written unchanged.
    left : bool, default: False
        Whether its cells are aligned to the left, as those of the first column always are.
    """

    name: str
    form: str = ""
    left: bool = False

    def text(self, cell: Cell) -> str:
        """Return the text of a cell; empty for None."""
        if cell is None:
            return ""
        return cell if isinstance(cell, str) else format(cell, self.form)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of measured and published numbers.

    Parameters
    ----------
    title : str
        Title of the table; none if it is empty.
    columns : sequence of Column
        Its columns.
    rows : sequence of sequence of str, int, float or None
        One cell per column.
    notes : sequence of str
        Remarks that explain the table.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()

    def lines(self) -> Iterator[str]:
        """Yield the lines of the table for a terminal."""
        cells = [[column.name for column in self.columns]]
        cells += [
            [column.text(cell) for column, cell in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        if self.title:
            yield self.title
        left = [k == 0 or column.left for k, column in enumerate(self.columns)]
        for row in cells:
            aligned = (
                text.ljust(width) if is_left else text.rjust(width)
                for text, width, is_left in zip(row, widths, left, strict=True)
            )
            yield "  ".join(aligned).rstrip()
        yield from self.notes

    def markdown(self) -> Iterator[str]:
        """Yield the lines of the table for a page, without its title."""
        rules = ["---" if k == 0 or c.left else "--:" for k, c in enumerate(self.columns)]
        rows = [[c.text(cell) for c, cell in zip(self.columns, r, strict=True)] for r in self.rows]
        for row in ([column.name for column in self.columns], rules, *rows):
            text = "| " + " | ".join(row) + " |"
            yield re.sub(r"(?<=\d) ×(?= \||\))", "\N{NO-BREAK SPACE}×", text)  # on one line
        for note in self.notes:
            yield ""
            yield note


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for the output of a report to the parser of a command."""
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
    """Print tables, and write them to ``NAME.json`` and figures to the same folder.

    Parameters
    ----------
    args : Namespace
        With the options of `add_report_arguments`.
    name : str
        Name of the files.
    title : str
        The paper.
    tables : sequence of Table
        The results.
    facts : mapping, optional
        Further entries of the JSON file.
    pictures : mapping of str to callable, optional
        Functions that draw the figures, by the suffix of the file name.
    """
    gpu = machine.gpu()
    print(title)
    print(f"here: {machine.cpu_model()}; {gpu['name'] if gpu else 'no GPU'}")
    for table in tables:
        print()
        for line in table.lines():
            print(line)
    path = write_tables(args, name, title, tables, facts=facts)
    print(f"wrote {path}", file=sys.stderr)
    if not args.no_plot:
        _draw(args.output, name, pictures or {})


def write_tables(
    args: argparse.Namespace,
    name: str,
    title: str,
    tables: Sequence[Table],
    *,
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Write tables to ``NAME.json``, as `report` does, and return its path.

    Parameters
    ----------
    args, name, title, tables, facts
        As in `report`.

    Returns
    -------
    path : Path
        The file, which is replaced as a whole.
    """
    args.output.mkdir(parents=True, exist_ok=True)
    record = {
        "title": title,
        "gpu": machine.gpu(),
        "machine": machine.machine(),
        "tables": [_plain(table) for table in tables],
        **(facts or {}),
    }
    path = Path(args.output) / f"{name}.json"
    write_record(path, record, allow_nan=False)
    return path


def _plain(table: Table) -> dict[str, Any]:
    """Return a table for JSON; a number that is not finite becomes text."""
    rows = [
        [str(c) if isinstance(c, float) and not isfinite(c) else c for c in row]
        for row in table.rows
    ]
    return {**asdict(table), "rows": rows}


def _draw(folder: Path, name: str, pictures: Mapping[str, Callable[[], "Figure"]]) -> None:
    """Write each picture to a file; without Matplotlib report it and write none."""
    for part, draw in pictures.items():
        path = folder / f"{name}-{part}.png"
        try:
            figure = draw()
        except ImportError as error:
            print(f"no picture: {error}", file=sys.stderr)
            return
        figure.savefig(path, dpi=110)
        print(f"wrote {path}", file=sys.stderr)
