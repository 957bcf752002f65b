"""What all solvers share: settings, loops, results and files. A new solver imports from here."""

from .exclusive import exclusive, reading
from .files import SavedFile
from .result import Result, StopReason
from .schema import (
    Count,
    Field,
    Line,
    Member,
    Positive,
    Real,
    RunBy,
    Seconds,
    Table,
    number,
    whole,
)
from .settings import Settings, TimeSettings
from .solver import Iteration, OverRanks, State
from .stepping import TimeState, TimeStepping

__all__ = [
    "Count",
    "Field",
    "Iteration",
    "Line",
    "Member",
    "OverRanks",
    "Positive",
    "Real",
    "Result",
    "RunBy",
    "SavedFile",
    "Seconds",
    "Settings",
    "State",
    "StopReason",
    "Table",
    "TimeSettings",
    "TimeState",
    "TimeStepping",
    "exclusive",
    "number",
    "reading",
    "whole",
]
