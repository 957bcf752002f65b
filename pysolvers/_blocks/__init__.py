"""Block tridiagonal and pentadiagonal systems."""

from .bands import (
    PentadiagonalFactor as PentadiagonalFactor,
    factor_pentadiagonal as factor_pentadiagonal,
    solve_pentadiagonal as solve_pentadiagonal,
)
from .blocks import (
    BlockTridiagonalFactor as BlockTridiagonalFactor,
    factor_block_tridiagonal as factor_block_tridiagonal,
    solve_block_tridiagonal as solve_block_tridiagonal,
)
