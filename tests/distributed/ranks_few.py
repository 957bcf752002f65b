"""Check of grids with fewer rows than ranks, run by every rank; see test_distributed.py."""

import numpy as np
import pytest

import pysolvers
from pysolvers.distributed import Slab

PLANE = {"shape": (16, 14), "extent": ((0.0, 1.0), (0.0, 1.0))}


def solvers(group, rows):
    """Return a function for each solver that makes it with a number of rows."""
    split = {"group": group, "split": Slab(0)}
    plane = {"shape": (rows, 14), "extent": PLANE["extent"]}
    problem = pysolvers.SteadyConvectionDiffusion(1.0, 2.0, boundary=0.0, **plane)
    return {
        "heat": lambda **o: pysolvers.HeatADI(
            **(plane | split | {"dt": 0.01, "boundary": 0.0} | o)
        ),
        "poisson": lambda **o: pysolvers.FastPoisson(**(plane | split | {"boundary": 0.0} | o)),
        "lmsor": lambda **o: pysolvers.LMSOR(problem, **(split | o)),
        "plate": lambda **o: pysolvers.RedBlackSOR(**(plane | split | {"boundary": 1.0} | o)),
    }


def check_fewer_rows_than_ranks_are_refused_on_all_ranks(group, rng):
    if group.size < 4:  # 3 rows are the fewest of a grid
        return
    own = np.ones(0 if group.rank == group.size - 1 else 1)
    split = {"group": group, "split": Slab(0)}
    for make in (
        *solvers(group, 3).values(),
        lambda: pysolvers.solve_tridiagonal(-1.0, 4.0, -1.0, own, **split),
        lambda: pysolvers.factor_tridiagonal(-1.0, 4 + own, -1.0, **split),
    ):
        with pytest.raises(ValueError, match="every rank"):
            make()
