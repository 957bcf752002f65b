"""What all solvers share: settings, loops, results and files. A new solver imports from here."""

from .exclusive import exclusive as exclusive, reading as reading
from .files import SavedFile as SavedFile
from .result import Result as Result, StopReason as StopReason
from .schema import (
    Count as Count,
    Field as Field,
    Line as Line,
    Member as Member,
    Positive as Positive,
    Real as Real,
    RunBy as RunBy,
    Seconds as Seconds,
    Table as Table,
    number as number,
    whole as whole,
)
from .settings import Settings as Settings, TimeSettings as TimeSettings
from .solver import Iteration as Iteration, OverRanks as OverRanks, State as State
from .stepping import TimeState as TimeState, TimeStepping as TimeStepping
