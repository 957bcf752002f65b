"""Block tridiagonal and pentadiagonal systems."""

from .bands import PentadiagonalFactor, factor_pentadiagonal, solve_pentadiagonal
from .blocks import BlockTridiagonalFactor, factor_block_tridiagonal, solve_block_tridiagonal

__all__ = [
    "BlockTridiagonalFactor",
    "PentadiagonalFactor",
    "factor_block_tridiagonal",
    "factor_pentadiagonal",
    "solve_block_tridiagonal",
    "solve_pentadiagonal",
]
