"""Run the command that repeats a paper and read what it wrote."""

import json
from typing import Any

import command_line

from pysolvers._runtime import directive

Rows = list[dict[str, Any]]


def repeat(paper: str, folder: Any) -> tuple[dict[str, Rows], list[str]]:
    """Return the rows of each table by its title, each by column, and the pictures' names."""
    assert command_line.main(["reproduce", paper, "--quick", "--output", str(folder)]) == 0
    printed = json.loads((folder / f"{paper}.json").read_text())
    for table in printed["tables"]:
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    pictures = sorted(folder.glob("*.png"))
    assert all(picture.stat().st_size > 5000 for picture in pictures)
    return (
        {table["title"]: _rows(table) for table in printed["tables"]},
        [picture.stem for picture in pictures],
    )


def check_shapes(tables: Any) -> list[Any]:
    """Return the tables, whose rows must have one cell a column and be printable."""
    tables = list(tables)
    for table in tables:
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows), table.title
        assert len(list(table.lines())) == 2 + len(table.rows) + len(table.notes)
    return tables


def _rows(table: dict[str, Any]) -> Rows:
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, row, strict=True)) for row in table["rows"]]


def look_for_directives(monkeypatch: Any, folder: Any) -> None:
    """Let the libraries of kernels with directives be looked for in a folder alone."""
    monkeypatch.setattr(directive, "FOLDER", folder)
