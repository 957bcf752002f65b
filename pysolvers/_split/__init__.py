"""What solvers that split an operator along the axes share: grid, sides, lines, schemes."""

from .grid import Grid, make_grid
from .lines import Level, LineOperators, Rows
from .schemes import LABELS, SCHEMES, Scheme, SplitSteps, default_theta
from .sides import LINEAR, Side

__all__ = [
    "LABELS",
    "LINEAR",
    "SCHEMES",
    "Grid",
    "Level",
    "LineOperators",
    "Rows",
    "Scheme",
    "Side",
    "SplitSteps",
    "default_theta",
    "make_grid",
]
