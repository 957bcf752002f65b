"""Figure 10 of Souri et al. (2020): profiles of the steady cavity and those of Ghia et al."""

from collections.abc import Iterable

import numpy as np

from pysolvers._progress import progress
from pysolvers.cases.tables import Column, Table
from pysolvers.flow import CavityResult, LidDrivenCavity
from pysolvers.papers import ghia_profiles, ghia_reynolds_numbers

from .report import Verdict

__all__ = ["PROFILE_REYNOLDS", "profile_table", "profile_verdict", "run_profiles"]

PROFILE_REYNOLDS = tuple(re for re in ghia_reynolds_numbers() if re <= 1000)
_AGREES = 0.02  # of the lid speed


def run_profiles(
    nodes: int = 129, reynolds: Iterable[float] = PROFILE_REYNOLDS
) -> list[CavityResult]:
    """Compute the steady flows."""
    return [LidDrivenCavity(float(re), nodes).solve() for re in progress(list(reynolds), "Fig. 10")]


def profile_table(results: Iterable[CavityResult]) -> Table:
    """Return the largest differences from the profiles of Ghia et al. (1982)."""
    columns = [Column("Re", "g"), Column("nodes")]
    columns += [Column(f"{name}, largest difference", ".4f") for name in "uv"]
    rows = []
    for result in results:
        n = len(result.x)
        ghia = ghia_profiles(result.reynolds)
        u = np.interp(ghia["y"], result.y, result.u[:, n // 2]) - ghia["u"]
        v = np.interp(ghia["x"], result.x, result.v[n // 2]) - ghia["v"]
        differences = (float(np.nanmax(np.abs(error))) for error in (u, v))
        rows.append((result.reynolds, f"{n}^2", *differences))
    note = (
        "u on x = 1/2 and v on y = 1/2, in units of the lid speed; without the v of Ghia et al. at "
        "Re 400 that is a misprint."
    )
    return Table("Fig. 10: the steady cavity and Ghia et al. 1982", columns, rows, (note,))


def profile_verdict(table: Table) -> Verdict:
    """Return what the paper claims of the profiles and what was found."""
    largest = max(float(str(row[2])) for row in table.rows)
    numbers = ", ".join(f"{row[0]:g}" for row in table.rows)
    return Verdict(
        "the profiles of the cavity are those of Ghia et al. 1982 (Fig. 10)",
        f"u differs by up to {largest:.4f} of the lid speed on {table.rows[0][1]} nodes at Re "
        f"{numbers}",
        "confirmed" if largest < _AGREES else "not confirmed",
    )
