"""The report of a repeated paper: the verdict, the tables, a record and figures."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pysolvers.cases import tables as cases
from pysolvers.cases.tables import Table, add_report_arguments

from .. import machine
from ..options import OPTIONS
from ..record import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Verdict:
    """One of the first lines of a report: what a paper claims, and what this run found.

    Parameters
    ----------
    claimed : str
        The main result of the paper.
    found : str
        The numbers of this run that concern it.
    outcome : str
        Whether it is confirmed: ``'confirmed'``, ``'not confirmed'``, ``'not measured'``, ...
    """

    claimed: str
    found: str
    outcome: str

    def __str__(self) -> str:
        """Return the line."""
        return f"Claimed: {self.claimed}. Found: {self.found}. Verdict: {self.outcome}."


def add_paper_options(parser: argparse.ArgumentParser, *, quick: bool = True) -> None:
    """Add the options that the papers share to the parser of one."""
    add_report_arguments(parser)
    if quick:
        parser.add_argument("--quick", **OPTIONS["quick"])


def left_out(names: Iterable[object], reason: str, *, quick: bool = False) -> tuple[str, ...]:
    """Return the note of a table that names what was not run, and why; none if nothing was.

    Parameters
    ----------
    names : iterable
        Grids, sizes or published numbers.
    reason : str
        Why they are left out, unless the run is a quick one.
    quick : bool, default: False
        Whether the run is a quick one.
    """
    listed = ", ".join(map(str, names))
    return (f"Left out: {listed}: {'a quick run' if quick else reason}.",) if listed else ()


def report(
    args: argparse.Namespace,
    name: str,
    title: str,
    tables: Sequence[Table],
    *,
    verdict: Verdict | Sequence[Verdict],
    facts: Mapping[str, Any] | None = None,
    pictures: Mapping[str, Callable[[], "Figure"]] | None = None,
) -> None:
    """Print the verdicts and the tables, and write the record and figures to the folder of results.

    Parameters
    ----------
    args : Namespace
        With the options of `add_paper_options`.
    name : str
        Name of the paper, and of the files.
    title : str
        The paper.
    tables : sequence of Table
        The results.
    verdict : Verdict or sequence of Verdict
        What the paper claims and what was found, one sentence a claim.
    facts : mapping, optional
        Further entries of the record.
    pictures : mapping of str to callable, optional
        Functions that draw the figures, by the suffix of the file name.
    """
    measurement = Measurement(name, gpu=machine.gpu() is not None)
    settings = {"quick": getattr(args, "quick", False)}
    verdicts = [verdict] if isinstance(verdict, Verdict) else verdict
    text = "\n".join(map(str, verdicts))
    record = measurement.record([], settings, verdict=text, **(facts or {}))
    del record["cases"]  # the tables
    print(f"{text}\n")
    cases.report(args, name, title, tables, facts=record, pictures=pictures)
