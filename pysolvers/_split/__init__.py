"""What solvers that split an operator along the axes share: grid, sides, lines, schemes."""

from .grid import Grid as Grid, make_grid as make_grid
from .lines import Level as Level, LineOperators as LineOperators, Rows as Rows
from .schemes import (
    LABELS as LABELS,
    SCHEMES as SCHEMES,
    Scheme as Scheme,
    SplitSteps as SplitSteps,
    default_theta as default_theta,
)
from .sides import LINEAR as LINEAR, Side as Side
