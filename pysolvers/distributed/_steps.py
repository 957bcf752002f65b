"""The meeting of the ranks after a call that makes some of many steps."""

import numpy as np
from numpy.typing import NDArray

from .._errors import DistributedError
from ._group import Group

__all__ = ["met_after_steps"]


def met_after_steps(
    group: Group, operation: str, dt: float, first: int, count: int, value: float
) -> NDArray[np.float64]:
    """Return the values of all ranks after a call that made the same steps on all; collective.

    Parameters
    ----------
    group : Group
        The ranks.
    operation : str
        Of the caller, for messages.
    dt : float
        Length of the steps.
    first, count : int
        The number of steps before those of the call, and their number.
    value : float
        That of this rank.

    Raises
    ------
    DistributedError
        If a rank made other steps.
    """
    found = group.allgather(operation, np.array([value, dt, first, count], np.float64))
    others = np.flatnonzero((found[:, 1:] != found[0, 1:]).any(axis=1))
    if others.size:
        steps = [f"{int(n)} steps of {dt:g} after step {int(at)}" for _, dt, at, n in found]
        raise DistributedError(
            f"{operation}: all ranks must make the same steps, but rank 0 makes {steps[0]} and "
            f"rank {others[0]} {steps[others[0]]}",
            tuple(others.tolist()),
        )
    return found[:, 0]
