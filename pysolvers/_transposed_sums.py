r"""Solves with the transposes of matrices given by row sums, by operations on whole arrays.

The row sums of a transpose would be differences. A and its transpose have the same pivots, also at
every level of cyclic reduction, and those of A are sums in row-sum form: with the magnitudes a, c
of the off-diagonals, the row sums s and p = s + a + c, the rows at distance r become

    m_i = a_i / p_{i-r},  k_i = c_i / p_{i+r},  a_i' = m_i a_{i-r},  c_i' = k_i c_{i+r},
    s_i' = s_i + m_i s_{i-r} + k_i s_{i+r},
    g_i' = g_i + (c/p)_{i-r} g_{i-r} + (a/p)_{i+r} g_{i+r},

and after log2(n) levels y = g / s (parallel cyclic reduction; Hockney and Jesshope 1981). Nothing
is subtracted: for g of one sign each y has a relative error of O(log n) rounding units. A level
reads and writes 4 words per unknown if each system has a matrix of its own.

A periodic matrix is bordered: its rows 0 .. n - 2 form an open matrix T with row sums s + e, where
e is the coupling to the last unknown. With h, the couplings of the last row,

    Y = T^-T g,  Z = T^-T h,  y_{n-1} = (g_{n-1} + e Y) / (s_{n-1} + s Z),  y = Y + Z y_{n-1}.

The form of row sums: Grassmann, Taksar and Heyman 1985.
"""

from typing import Any


def solve_transposed(
    xp: Any, lower: Any, sums: Any, upper: Any, rhs: Any, *, periodic: bool
) -> Any:
    """Solve A^T y = rhs along the last axis.

    Parameters
    ----------
    xp : module
        ``jax.numpy`` or ``torch``.
    lower, sums, upper, rhs : array
        Arrays of `xp` with equally many axes, which broadcast. All have n rows; unless `periodic`,
        the first entry of `lower` and the last one of `upper` are 0.
    periodic : bool
        Whether these two entries are the corner entries of periodic matrices.

    Returns
    -------
    array
        y, of the broadcast shape; with one row that of `sums` and `rhs` alone.
    """
    zero = xp.zeros_like(lower + upper)
    a, c = zero - lower, zero - upper
    rows = rhs.shape[-1]
    if not periodic or rows == 1:
        return _solve_open(xp, a, sums, c, [rhs])[0]
    before, corner, end = a[..., :1], c[..., -2:-1], (..., slice(-1, None))
    inner = (..., slice(0, -1))

    def bordered(first: Any, last: Any) -> Any:
        """Return a row of rows - 1 entries that are zero but for the ends, which can be one."""
        if rows == 2:
            return first + last
        return xp.concatenate((first, zero[..., 3:], last), -1)

    coupling = bordered(before, corner)
    border = bordered(c[end], a[end])
    inside = (
        xp.concatenate((zero[..., :1], a[..., 1:-1]), -1),
        sums[inner] + coupling,
        xp.concatenate((c[..., :-2], zero[..., :1]), -1),
    )
    y, z = _solve_open(xp, *inside, [rhs[inner], border])
    last = (rhs[end] + (coupling * y).sum(-1)[..., None]) / (
        sums[end] + (sums[inner] * z).sum(-1)[..., None]
    )
    return xp.concatenate((y + z * last, last), -1)


def _solve_open(xp: Any, a: Any, s: Any, c: Any, sides: list[Any]) -> list[Any]:
    """Solve with the transpose of an open matrix; the magnitudes a[0] and c[n - 1] are 0."""
    rows, distance = sides[0].shape[-1], 1

    def shifted(values: Any, by: int) -> Any:
        """Return values of the rows `by` rows before, 0 outside of the matrix."""
        outside = xp.zeros_like(values[..., : abs(by)])
        if by > 0:
            return xp.concatenate((outside, values[..., :-by]), -1)
        return xp.concatenate((values[..., -by:], outside), -1)

    while distance < rows:
        q = 1 / (s + a + c)
        of_before, of_after = shifted(c * q, distance), shifted(a * q, -distance)
        sides = [
            g + of_before * shifted(g, distance) + of_after * shifted(g, -distance) for g in sides
        ]
        m, k = a * shifted(q, distance), c * shifted(q, -distance)
        s = s + m * shifted(s, distance) + k * shifted(s, -distance)
        a, c = m * shifted(a, distance), k * shifted(c, -distance)
        distance *= 2
    return [g / s for g in sides]
