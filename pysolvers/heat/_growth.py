"""Where steps of Douglas and Gunn's scheme can grow: three axes, and a conductivity that varies.

With T the field, K_x = dt d_x k d_x and so on, a step without data is

    T+ = T + (1 - K_z/2)^-1 (1 - K_y/2)^-1 (1 - K_x/2)^-1 (K_x + K_y + K_z) T.

If the operators commute, the moduli of its eigenvalues are at most 1 for any dt. If k varies in
several directions they do not commute, and eigenvalues of modulus above 1 were found as soon as

    s = (largest k - smallest k) dt/h^2,   h the smallest spacing,

is above 3: insulated cubes of 4^3 nodes whose conductivities a search chose for the largest
eigenvalue had 1 + 1e-14 for s = 3, 1.6 for s = 4. For k that depends on one coordinate none was
found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..distributed import Group

__all__ = ["SAFE", "growth_factor"]

SAFE = 3.0  # largest s for which no growth was found


def growth_factor(
    k: NDArray[np.float64] | None, spacing: tuple[float, ...], group: Group | None
) -> float:
    """Return s/dt, or 0 where no growth is known; collective with a group.

    Parameters
    ----------
    k : array or None
        Conductivities at the nodes, None if one number. With a group those of this rank and of the
        next nodes of its neighbours, so that a variation from rank to rank is seen.
    spacing : tuple of float
        Distance of the nodes along each axis.
    group : Group, optional
        The ranks that have the nodes.
    """
    if k is None or len(spacing) < 3:
        return 0.0
    low, high = k.min(), k.max()
    varies = [bool(np.ptp(k, axis=axis).any()) for axis in range(k.ndim)]
    if group is not None:
        found: Any = group.allgather("HeatADI", np.array([low, high, *varies]))
        low, high = found[:, 0].min(), found[:, 1].max()
        varies = list(found[:, 2:].any(axis=0))
    return float(high - low) / min(spacing) ** 2 if sum(varies) > 1 else 0.0
