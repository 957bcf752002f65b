"""Matrices with rows of the identity outside a mask.

A row outside is that of the identity, and entries that couple to it count as 0: the rows inside
are systems of their own, and what an operand has outside enters nothing, also if it is NaN. Whether
the first and the last row are coupled depends on the mask of the rows beyond them: the last and the
first row of a periodic system, or rows of another part of a system that is cut.

Masks have the rows last. They are on the host, except in `masked_where_they_are`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._options import shape_flags
from .._runtime.device import is_device_array
from .._runtime.lines import Shape, arranged_by_name
from .._runtime.signs import require_form
from .._runtime.targets import DeviceTarget, Target

Array = NDArray[Any]

# The masks of the rows before the first and after the last one, of one row each.
Beyond = tuple[Array, Array]


def inside_of(target: Target, mask: Array, shape: Shape) -> Array:
    """Return a mask of a call on the host, with all rows, and batch axes of length 1 as given."""
    view = shape.batch_first(mask)
    on_host = target.download(view) if is_device_array(view) else view
    return np.broadcast_to(on_host, (*view.shape[:-1], shape.rows))


def beyond_ends(inside: Array, *, periodic: bool) -> Beyond:
    """Return the masks of the rows beyond the ends of complete systems."""
    if periodic:
        return inside[..., -1:], inside[..., :1]
    nothing = np.zeros((*inside.shape[:-1], 1), bool)
    return nothing, nothing


def masked_matrices(
    operation: str,
    target: Target,
    views: Sequence[Array],
    shape: Shape,
    inside: Array,
    beyond: Beyond,
    *,
    periodic: bool,
    has_sums: bool,
    check_signs: bool,
) -> tuple[list[Array], int | None]:
    """Return new diagonals, the rows last, and the sign of matrices that are given by row sums.

    Parameters
    ----------
    operation : str
        The function, for messages.
    target : Target
        Where the diagonals are.
    views : sequence of ndarray
        lower, diag and upper with all batch axes, the rows last.
    shape : Shape
        Of the call, with `omits` of these in this order.
    inside : ndarray
        From `inside_of`.
    beyond : (ndarray, ndarray)
        From `beyond_ends`, or those of the neighbouring parts.
    periodic : bool
        Whether the first entry of ``lower`` and the last one of ``upper`` count.
    has_sums, check_signs : bool
        Whether `diag` has row sums, and whether to check signs inside as `require_form` does.
    """
    above, below = np.empty_like(inside), np.empty_like(inside)  # in the memory order of the mask
    above[..., 1:], above[..., :1] = inside[..., :-1], beyond[0]
    below[..., :-1], below[..., -1:] = inside[..., 1:], beyond[1]
    counts = [inside & above, inside, inside & below]
    for k, rows in ((0, slice(1, None)), (2, slice(None, -1))):
        counts[k] = counts[k][..., rows] if shape.omits[k] else counts[k]
    batch = np.broadcast_shapes(inside.shape[:-1], *(view.shape[:-1] for view in views))
    counts = [np.broadcast_to(count, (*batch, count.shape[-1])) for count in counts]
    checks = has_sums and check_signs
    outside = (0.0, 0.0 if checks else 1.0, 0.0)
    masked = [
        target.selected(view, count, value)
        for view, count, value in zip(views, counts, outside, strict=True)
    ]
    sign = None
    if has_sums:
        own = Shape((*batch, shape.rows), len(batch), shape.omits[:3])
        options = {"periodic": periodic, "check_signs": check_signs}
        sign = require_form(operation, target, masked, own, **options)
    if checks:  # 1 has the sign of one form
        masked[1] = target.selected(masked[1], counts[1], 1.0)
    return masked, sign


def masked_where_they_are(
    operation: str,
    target: DeviceTarget,
    arrays: Mapping[str, Array],
    shape: Shape,
    *,
    periodic: bool,
    has_sums: bool,
    check_signs: bool,
) -> tuple[Array, list[Array]]:
    """Return the mask and new diagonals of complete systems on a device, the rows last.

    `arrays` are lower, diag, upper and the mask, ``"where"``, in this order; the other parameters
    are those of `masked_matrices`. The diagonals have all rows; nothing waits for the device.
    """
    below, middle, above = target.empty((3, *shape.full), arrays["diag"].dtype)
    made = {"below": below, "above": above}
    keep = (*made, "result")
    found = arranged_by_name(target, shape, {**arrays, **made}, middle, (), None, keep)
    masked = [shape.batch_first(array) for array in (below, middle, above)]
    flags = shape_flags(target.backend, shape, periodic)
    checks = has_sums and check_signs

    def write(outside: float) -> None:
        lines = [found.lines[name] for name in (*arrays, "below", "result", "above")]
        target.enqueue(target.backend.masked_rows, flags, *lines[:4], outside, *lines[4:])

    if middle.size:
        write(0.0 if checks else 1.0)
    if has_sums:
        own = Shape((*shape.batch, shape.rows), len(shape.batch), (False,) * 3)
        options = {"periodic": periodic, "check_signs": check_signs}
        require_form(operation, target, masked, own, **options)
    if middle.size and checks:  # 1 has the sign of one form
        write(1.0)
    return found.views["where"], masked
