r"""Elimination of the rows of one rank onto the ends of its part of a line.

Rank p holds the rows 0 .. m - 1 of its part. Its last unknown, y_p, is a separator. The interior
rows 0 .. m - 2 form a system T of their own, and give

    x_i = g_i - l_i y_{p-1} - u_i y_p,   T g = r,   T l = lower_0 e_0,   T u = upper_{m-2} e_{m-2}.

In the last row they leave, with i = m - 2 and z the first unknown of the next rank,

    a y_{p-1} + b y_p + c z = d,
    a = -lower l_i,   b = diag - lower u_i,   c = upper,   d = r - lower g_i.

With z = g_0 - l_0 y_p - u_0 y_{p+1} of the next rank, the separators of all ranks form a reduced
system, tridiagonal, with one row per rank, and periodic if the lines are. Each rank knows it after
one exchange of 7 numbers per line, and 2 of them, g_0 and d, if all lines have one matrix. The
reduced system is solved on every rank, and the formula above gives the other unknowns. It takes the
same g, l and u as the equations of the ends: another solve with T would leave its own rounding
errors, up to m of them, in the rows of the separators.

Operations and words per unknown of a line with its own matrix: three solves with T, 28 operations
and 25 words, 5 on one device; with one matrix for all lines: one solve, 12 operations and 10 words.
No row exchanges across the ends: stable for diagonally dominant systems, where l and u are at most
1 in magnitude and the reduced system is dominant, too. The other systems are solved as whole lines
(_whole.py).

Source: Wang, ACM Trans. Math. Softw. 7 (1981) 170-183; Polizzi and Sameh, Parallel Computing 32
(2006) 177-194.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._runtime.places import Place

__all__ = ["Equations", "Lines", "reduced_system"]

Array = NDArray[Any]

_RHS, _X = 3, 4


class Equations(NamedTuple):
    """What the elimination of one rank leaves, or of all ranks along a new first axis.

    `l`, `u`, `a`, `b`, `c` have the batch shape of the matrices, `g` and `d` that of the lines.
    """

    l: Array  # noqa: E741 - the names of the formulas
    u: Array
    a: Array
    b: Array
    c: Array
    g: Array
    d: Array

    def packed(self, dtype: np.dtype) -> Array:
        """Return all numbers in one array."""
        return np.concatenate([np.ravel(part).astype(dtype) for part in self])

    @classmethod
    def unpacked(cls, numbers: Array, matrices: Sequence[int], lines: Sequence[int]) -> "Equations":
        """Return the equations of all ranks from their numbers, shape (ranks, ...)."""
        shapes = [*(tuple(matrices),) * 5, *(tuple(lines),) * 2]
        bounds = np.cumsum([0, *(prod(shape) for shape in shapes)])
        return cls(
            *(
                numbers[:, start:stop].reshape(len(numbers), *shape)
                for start, stop, shape in zip(bounds, bounds[1:], shapes, strict=False)
            )
        )


class Lines:
    """The rows of one rank.

    Parameters
    ----------
    place : Place
        Where the operands are.
    views : list of ndarray
        lower, diag, upper, rhs and x, the rows last.
    has_left, has_right : bool
        Whether the first row couples to the rank before, and the last row to the next one.
    is_short : bool
        Whether `lower` begins with row 1.
    pivots : bool
        Whether systems that are not dominant need row exchanges.
    solve : callable
        ``solve(views)`` solves systems that are not periodic, and returns whether the solution
        can be used: no rows were exchanged, and no pivot is zero.
    """

    def __init__(
        self,
        place: Place,
        views: list[Array],
        *,
        has_left: bool,
        has_right: bool,
        is_short: bool,
        pivots: bool,
        solve: Callable[[list[Array]], bool],
    ) -> None:
        self._place, self._views, self._solve = place, views, solve
        self._pivots = pivots
        self._has_left, self._has_right, self._is_short = has_left, has_right, is_short
        self._m = views[_X].shape[-1]
        self.matrices = np.broadcast_shapes(*(view.shape[:-1] for view in views[:_RHS]))
        self._rows = {i: self._row(i) for i in (0, self._m - 2, self._m - 1) if i >= 0}

    def eliminate(self) -> tuple[Equations, bool]:
        """Return the equations, and whether they can be used: the rows need no exchanges."""
        m, rows = self._m, self._rows
        lower, diag, upper, rhs = rows[m - 1]
        zero, one = np.zeros(self.matrices), np.ones(self.matrices)
        ends = {"g": (np.zeros_like(rhs),) * 2, "l": (zero, -one), "u": (-one, zero)}
        usable = self._is_dominant()
        if m > 1:
            self._g = self._place.packed(self._interior(self._views[_X]))
            self._place.write(self._g, self._interior(self._views[_RHS]))
            usable = self._solve([*self._matrix(), self._g, self._g]) and usable
            ends["g"] = self._ends_of(self._g)
        if m > 1 and usable:
            self._l = self._spike(0, rows[0][0])
            self._u = self._spike(m - 2, rows[m - 2][2])
            ends |= {"l": self._ends_of(self._l), "u": self._ends_of(self._u)}
        found = Equations(
            l=ends["l"][0],
            u=ends["u"][0],
            a=-lower * ends["l"][1],
            b=diag - lower * ends["u"][1],
            c=upper,
            g=ends["g"][0],
            d=rhs - lower * ends["g"][1],
        )
        return self._full(found), usable

    def substitute(self, left: Array, own: Array) -> None:
        """Write the solution, from the separators of the rank before and of this rank."""
        x = self._views[_X]
        if self._m > 1:
            inside = self._interior(x)
            self._place.write(inside, self._g)
            self._place.add_product(inside, self._l, -left[..., None])
            self._place.add_product(inside, self._u, -own[..., None])
        self._put(x, self._m - 1, own)

    def _full(self, found: Equations) -> Equations:
        """Return equations with the batch shapes of the matrices and of the lines."""
        lines = self._views[_X].shape[:-1]
        shapes = [*(self.matrices,) * 5, lines, lines]
        parts = (np.broadcast_to(p, shape) for p, shape in zip(found, shapes, strict=True))
        return Equations(*parts)

    def _row(self, i: int) -> list[Array]:
        """Return one row of lower, diag, upper and rhs, in host memory.

        Entries that couple to no row are zero.
        """
        row = []
        for k, view in enumerate(self._views[:_X]):
            at = i - (self._is_short and k == 0 and view.shape[-1] > 1)
            if (k == 0 and i == 0 and not self._has_left) or (
                k == 2 and i == self._m - 1 and not self._has_right
            ):
                row.append(np.zeros(view.shape[:-1], view.dtype))
            else:
                row.append(self._place.download(view[..., 0 if view.shape[-1] == 1 else at]))
        return row

    def _is_dominant(self) -> bool:
        """Whether rows with entries outside of the interior need no exchanges."""
        return not self._pivots or all(
            bool((np.abs(diag) >= np.abs(lower) + np.abs(upper)).all())
            for lower, diag, upper, _ in self._rows.values()
        )

    def _interior(self, view: Array) -> Array:
        return view if view.shape[-1] == 1 < self._m else view[..., : self._m - 1]

    def _matrix(self) -> list[Array]:
        """Return lower, diag and upper of the interior."""
        lower, diag, upper = self._views[:_RHS]
        if self._is_short and lower.shape[-1] > 1:
            lower = lower[..., : self._m - 2]
        return [self._interior(view) for view in (lower, diag, upper)]

    def _spike(self, i: int, values: Array) -> Array:
        """Return the solution for a right-hand side of these values in row i, zero elsewhere."""
        work = self._place.zeros((*self.matrices, self._m - 1), self._views[1].dtype)
        if values.any():
            self._put(work, i, np.broadcast_to(values, self.matrices))
            self._solve([*self._matrix(), work, work])
        return work

    def _ends_of(self, work: Array) -> tuple[Array, Array]:
        return self._place.download(work[..., 0]), self._place.download(work[..., -1])

    def _put(self, view: Array, i: int, values: Array) -> None:
        values = np.ascontiguousarray(values, view.dtype)
        self._place.write(view[..., i : i + 1], self._place.upload(values[..., None]))


def reduced_system(found: Equations, *, periodic: bool) -> tuple[Array, Array, Array, Array]:
    """Return lower, diag, upper and rhs of the reduced system, shapes (ranks, ...)."""
    after = Equations(*(np.roll(part, -1, axis=0) for part in found))
    c = found.c
    if not periodic:
        c = c.copy()
        c[-1] = 0
    return found.a, found.b - c * after.l, -c * after.u, found.d - c * after.g
