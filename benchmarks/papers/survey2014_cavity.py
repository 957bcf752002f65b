"""The second case study of Niemeyer and Sung 2014: the cavity on a staggered grid.

Their tables of this case are not in the text that is available: the versions are compared with each
other, and the flow with published profiles.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pysolvers._errors import BackendError
from pysolvers._progress import progress
from pysolvers._runtime import directive
from pysolvers.cases.tables import Column, Table
from pysolvers.papers import ghia_profiles
from pysolvers.papers.survey2014 import StaggeredCavity

from ..staggered import INTERVAL, step_times

__all__ = ["VERSIONS", "Version", "available", "directive_name", "flow_table", "times_table"]

_SWEEPS = 50  # iterations of SOR in each step
# Re, gamma, and the smallest u on x = 1/2 that another program for the same scheme finds on 128 x
# 128 cells. 0.9 is the gamma of the published program.
_FLOWS = ((100.0, 0.0, -0.21373), (1000.0, 0.0, -0.38242), (1000.0, 0.9, -0.31610))


@dataclass(frozen=True, slots=True)
class Version:
    """A version of the program.

    Parameters
    ----------
    name : str
        Its heading.
    kernels, pressure, device : str
        As in `pysolvers.papers.survey2014.StaggeredCavity`.
    """

    name: str
    kernels: str
    pressure: str = "sor"
    device: str = "cpu"

    def cavity(self, reynolds: float, n: int, **options: Any) -> StaggeredCavity:
        """Return the solver of this version."""
        where = {"kernels": self.kernels, "pressure": self.pressure, "device": self.device}
        return StaggeredCavity(reynolds, n, **where, **options)


VERSIONS = (
    Version("one core", "serial"),
    Version("all cores", "openmp"),
    Version("all cores, auto", "auto"),
    Version("OpenACC", "directive"),
    Version("OpenMP target", "directive-openmp"),
    Version("CUDA", "auto", device="cuda"),
    Version("direct, all cores", "auto", "fast"),
    Version("direct, CUDA", "auto", "fast", "cuda"),
)


def directive_name(name: str, kernels: str) -> str:
    """Return the heading of a version with directives: with the machine that it runs on."""
    return f"{name}, {directive.load(kernels).description.partition(' ')[2]}"


def available(versions: Sequence[Version] = VERSIONS) -> Iterator[Version]:
    """Yield the versions that this machine can run; those with directives name their place."""
    for v in versions:
        try:
            v.cavity(100, 4)
        except (BackendError, ModuleNotFoundError):
            continue
        name = directive_name(v.name, v.kernels) if v.kernels in directive.MODELS else v.name
        yield replace(v, name=name)


def step_seconds(version: Version, n: int, *, quick: bool = False) -> float:
    """Return the seconds of a step with a fixed number of SOR iterations.

    The steps are short and begin at rest: with so few iterations the flow grows after many steps.
    """
    sor = {"pressure_tol": None, "max_sweeps": 2 if quick else _SWEEPS, "dt": 1e-7}
    options: dict[str, Any] = sor if version.pressure == "sor" else {}
    return step_times(lambda: version.cavity(1000, n, **options), 3, 2 if quick else INTERVAL)[0]


def times_table(
    grids: Sequence[int],
    versions: Sequence[Version],
    *,
    quick: bool = False,
) -> Table:
    """Return the times of a step for each grid and version."""
    runs = [(n, v) for n in grids for v in versions]
    times = {(n, v.name): step_seconds(v, n, quick=quick) for n, v in progress(runs, "cavity")}
    columns = [Column("cells"), *(Column(v.name, ".1f") for v in versions)]
    rows: list[tuple[Any, ...]] = [
        (f"{n}²", *(1e6 * times[n, v.name] for v in versions)) for n in grids
    ]
    note = (
        f"Re 1000, {2 if quick else _SWEEPS} iterations of red-black SOR in each step; direct: "
        "FastPoisson."
    )
    return Table("µs a step of the cavity on a staggered grid, float64", columns, rows, (note,))


def flow_table(n: int, device: str, tol: float) -> Table:
    """Return the steady states."""
    columns = (
        Column("Re", ".0f"),
        Column("gamma", ".1f"),
        Column("steps"),
        Column("time", ".2f"),
        Column("u_min", ".5f"),
        Column("u_min, 128² of another program", ".5f"),
        Column("largest difference of u from Ghia et al.", ".4f"),
    )
    rows = []
    for re, gamma, expected in _FLOWS:
        result = StaggeredCavity(re, n, gamma=gamma, device=device).solve(tol)
        profiles = ghia_profiles(int(re))
        u = result.centreline_u(profiles["y"])
        distance = float(np.nanmax(np.abs(u - profiles["u"])))
        least = float(result.centreline_u().min())
        rows.append((re, gamma, result.steps, result.time, least, expected, distance))
    title = f"Steady flow on {n}² cells, change at most {tol:g}"
    return Table(title, columns, rows)
