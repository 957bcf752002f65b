"""What a repeated paper tells: the verdict, the tables, a record and figures."""

import argparse
from collections.abc import Callable, Mapping, Sequence
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
    """The first line of a report: what a paper claims, and what this run found.

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


def report(
    args: argparse.Namespace,
    name: str,
    title: str,
    tables: Sequence[Table],
    *,
    verdict: Verdict | str,
    facts: Mapping[str, Any] | None = None,
    pictures: Mapping[str, Callable[[], "Figure"]] | None = None,
) -> None:
    """Print the verdict and the tables, and write the record and figures to the folder of results.

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
    verdict : Verdict or str
        What the paper claims and what was found.
    facts : mapping, optional
        Further entries of the record.
    pictures : mapping of str to callable, optional
        Functions that draw the figures, by the suffix of the file name.
    """
    measurement = Measurement(name, gpu=machine.gpu() is not None)
    settings = {"quick": getattr(args, "quick", False)}
    record = measurement.record([], settings, verdict=str(verdict), **(facts or {}))
    del record["cases"]  # the tables
    print(f"{verdict}\n")
    cases.report(args, name, title, tables, facts=record, pictures=pictures)
