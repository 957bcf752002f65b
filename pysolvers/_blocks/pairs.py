"""Complex matrices as real ones: pairs of rows of five diagonals as blocks, and complex blocks.

A complex block B is the real block [[Re B, -Im B], [Im B, Re B]], a right-hand side the real above
the imaginary parts. The real matrix has the squared modulus of the determinant, and is symmetric
positive definite if the complex one is Hermitian positive definite. Its transpose is that of the
conjugate transpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._options import OnSingular
from .._runtime.arrays import real_of
from .._runtime.singular import Singular
from .._runtime.targets import Target
from .._xp import joined
from . import systems
from .systems import Factors, Matrices

Array = NDArray[Any]


def paired(xp: Any, bands: Sequence[Any]) -> list[Any]:
    """Return the blocks of 2 x 2 of five diagonals with all rows, after a row of the identity.

    That row is there if their number is odd; entries outside the matrix become 0. `xp` has the
    functions of the arrays.
    """
    shape = np.broadcast_shapes(*(tuple(band.shape) for band in bands))
    n, lines = shape[-1], []
    for k, offset in enumerate(range(-2, 3)):
        band = xp.broadcast_to(bands[k], shape)
        zeros = xp.zeros_like(band[..., : min(abs(offset), n)])
        if offset < 0:
            band = xp.concatenate((zeros, band[..., -offset:]), -1)
        elif offset > 0:
            band = xp.concatenate((band[..., : max(n - offset, 0)], zeros), -1)
        if n % 2:
            end = band[..., :1]
            front = xp.ones_like(end) if offset == 0 else xp.zeros_like(end)
            band = xp.concatenate((front, band), -1)
        lines.append(band.reshape((*shape[:-1], (n + 1) // 2, 2)))
    first, second = ([line[..., p] for line in lines] for p in range(2))
    zero = xp.zeros_like(first[0])

    def block(*entries: Any) -> Any:
        return xp.stack((xp.stack(entries[:2], -1), xp.stack(entries[2:], -1)), -2)

    return [
        block(first[0], first[1], zero, second[0]),
        block(first[2], first[3], second[1], second[2]),
        block(first[4], zero, second[3], second[4]),
    ]


def pairs_of_rows(xp: Any, rows: Any) -> Any:
    """Return the right-hand sides of `paired` blocks, (..., pairs, 2)."""
    n = rows.shape[-1]
    if n % 2:
        rows = xp.concatenate((xp.zeros_like(rows[..., :1]), rows), -1)
    return rows.reshape((*rows.shape[:-1], (n + 1) // 2, 2))


def rows_of_pairs(x: Any, n: int) -> Any:
    """Return the n rows of solutions (..., pairs, 2)."""
    return x.reshape((*x.shape[:-2], 2 * x.shape[-2]))[..., n % 2 :]


def embedded(xp: Any, block: Any) -> Any:
    """Return complex blocks as real ones of twice the rows; `xp` as for `paired`."""
    real, imag = block.real, block.imag
    top = xp.concatenate((real, -imag), -1)
    return xp.concatenate((top, xp.concatenate((imag, real), -1)), -2)


def extracted(block: Array) -> Array:
    """Return the complex blocks that were `embedded`."""
    half = block.shape[-1] // 2
    return joined(np, block[..., :half, :half], block[..., half:, :half])


def _stacked(rhs: Array) -> Array:
    pairs = pairs_of_rows(np, rhs)
    return np.concatenate((pairs.real, pairs.imag), -1)


def _unstacked(x: Array, n: int) -> Array:
    return rows_of_pairs(joined(np, x[..., :2], x[..., 2:]), n)


def _is_complex(matrices: Matrices) -> bool:
    return matrices.dtype.kind == "c"


def _real_blocks(matrices: Matrices) -> Matrices:
    """Return complex matrices of five diagonals as real ones with blocks of 4 x 4."""
    bands = []
    for band, offset in zip(matrices.operands, range(-2, 3), strict=True):
        assert band is not None
        missing = matrices.rows - band.shape[-1]
        ends = (missing, 0) if offset < 0 else (0, missing)
        bands.append(np.pad(band, [(0, 0)] * (band.ndim - 1) + [ends]) if missing else band)
    blocks = tuple(embedded(np, block) for block in paired(np, bands))
    return matrices._replace(
        side=4,
        rows=blocks[1].shape[-3],
        dtype=np.dtype(real_of(matrices.dtype)),
        operands=blocks,
        periodic=(),
    )


def _in_rows(singular: Singular, rows: int) -> Singular:
    """Return the singular systems with the first scalar rows of their pairs."""
    return Singular(singular.systems, np.maximum(2 * singular.rows - rows % 2, 0))


def solve(
    target: Target,
    matrices: Matrices,
    rhs: Array,
    x: Array,
    pivot: int,
    threads: int,
    policy: OnSingular = "raise",
) -> Singular:
    """Solve as `systems.solve`, also complex systems of five diagonals."""
    if target.name != "cpu":
        return systems.solve(target, matrices, rhs, x, pivot, threads, policy)
    return solve_on_host(target, matrices, rhs, x, pivot, threads)[0]


def solve_on_host(
    target: Target, matrices: Matrices, rhs: Array, x: Array, pivot: int, threads: int
) -> tuple[Singular, int]:
    """Solve as `systems.solve_on_host`, also complex systems of five diagonals."""
    if not _is_complex(matrices):
        return systems.solve_on_host(target, matrices, rhs, x, pivot, threads)
    blocks, sides = _real_blocks(matrices), _stacked(rhs)
    to = np.empty_like(sides)
    singular, pivoted = systems.solve_on_host(target, blocks, sides, to, pivot, threads)
    x[...] = _unstacked(to, matrices.rows)
    return _in_rows(singular, matrices.rows), pivoted


def factor(target: Target, matrices: Matrices, pivot: int, threads: int) -> Factors:
    """Factor as `systems.factor`, also complex matrices of five diagonals."""
    if not _is_complex(matrices):
        return systems.factor(target, matrices, pivot, threads)
    made = systems.factor(target, _real_blocks(matrices), pivot, threads)
    return made._replace(found=_in_rows(made.singular, matrices.rows))


def apply(target: Target, factors: Factors, trans: str, rhs: Array, threads: int) -> Array:
    """Solve as `systems.apply`, also complex systems of five diagonals."""
    if rhs.dtype.kind != "c":
        return systems.apply(target, factors, trans, rhs, threads)
    if not rhs.size:
        return np.empty_like(rhs)
    if trans == "T":
        return apply(target, factors, "H", rhs.conj(), threads).conj()
    code = "N" if trans == "N" else "T"
    x = systems.apply(target, factors, code, _stacked(rhs), threads)
    return _unstacked(x, rhs.shape[-1])
