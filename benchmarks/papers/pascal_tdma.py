"""Published times of PaScaL_TDMA 2.1, a Fortran library for lines that are cut over GPUs.

PaScaL_TDMA 2.1: A register-resident multi-GPU tridiagonal matrix solver with optimized
communication for large-scale CFD simulations, 2026, doi:10.17632/49z6fh94z3.3. The modified Thomas
algorithm, and two all-to-all exchanges, in each of which a rank gets its share of the lines.
"""

from collections.abc import Mapping

__all__ = ["PUBLISHED_SECONDS", "PUBLISHED_SHAPE"]

PUBLISHED_SHAPE = (256, 256, 4096)
"""Shape of the arrays in float64; the lines lie along the last axis, which is cut."""

PUBLISHED_SECONDS: Mapping[int, float] = {2: 6.031e-3, 4: 3.137e-3, 8: 1.870e-3}
"""Seconds of a solve with own matrices, by the number of NVIDIA H200."""
