"""The rows of a diffusion between layers in flux form, for arrays of any library.

For layers of thickness d and faces of diffusivity K, with k = 2 h K / (d + d of the neighbour),

    d y + k_before (y - y before) + k_after (y - y after) = d (T + h source),

in row-sum form: off-diagonals -k and the row sums d. A given flux adds h times itself to the right
side of the layer at its end; a given value adds k = 2 h K / d to the row sum, and k times itself to
the right side. Kernels have the same rows: PS_STEP_FLUX of ps_step.h.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

Array = Any


class End(NamedTuple):
    """A condition at an end: the row at which it is, the values, and K there for a given value."""

    at: Array  # booleans
    values: Array
    face: Array | None = None  # None: a flux; otherwise 0 but in the row


def conductance(K: Array, h: Array, above: Array, below: Array) -> Array:
    """Return k of faces between layers of the thicknesses `above` and `below`."""
    return 2 * h * K / (above + below)


def sums_and_sides(
    xp: Any, thick: Array, T: Array, source: Array | None, h: Array, ends: Iterable[End]
) -> tuple[Array, Array]:
    """Return the row sums and the right sides."""
    sums, rhs = thick, thick * (T if source is None else T + h * source)
    for at, values, face in ends:
        if face is None:
            rhs = rhs + xp.where(at, h * values, xp.zeros_like(h * values))
        else:
            outer = 2 * h * face / thick
            sums, rhs = sums + outer, rhs + outer * values
    return sums, rhs
