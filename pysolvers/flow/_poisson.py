"""Direct solution of the Poisson equation on a square of nodes."""

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from .._options import Method
from ..tridiagonal import solve_tridiagonal

__all__ = ["solve_poisson"]


def solve_poisson(
    source: NDArray[np.float64], *, line_method: str = "auto", threads: int | None = None
) -> NDArray[np.float64]:
    r"""Solve the five-point equations of :math:`-\nabla^2 \psi = f` with zero boundary.

    A sine transform along y leaves one tridiagonal system along x for every mode k,

    .. math:: -\hat\psi_{i-1} + (2 + \lambda_k) \hat\psi_i - \hat\psi_{i+1} = h^2 \hat f_i,
        \quad \lambda_k = 2 - 2 \cos(\pi k h).

    Parameters
    ----------
    source : ndarray of float, shape (N, N)
        f at the nodes of the unit square, y along the first axis; the boundary is not
        read.
    line_method : str, default: 'auto'
        Method of `pysolvers.solve_tridiagonal`.
    threads : int, optional
        Threads of the tridiagonal solve.

    Returns
    -------
    psi : ndarray of float, shape (N, N)
        The solution, zero on the boundary.
    """
    n = source.shape[0]
    modes = np.arange(1, n - 1)
    diag = 4.0 - 2.0 * np.cos(np.pi * modes / (n - 1))
    rhs = _sine_transform(source[1:-1, 1:-1]) / (n - 1) ** 2
    lines: Any = solve_tridiagonal(
        -1.0, diag[:, None], -1.0, rhs, method=cast(Method, line_method), threads=threads, out=rhs
    )
    psi = np.zeros_like(source)
    psi[1:-1, 1:-1] = _sine_transform(lines) * (2.0 / (n - 1))
    return psi


def _sine_transform(a: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``sum_j a[j] sin(pi (j + 1) (k + 1) / (m + 1))``, m the length of axis 0."""
    m = a.shape[0]
    odd = np.zeros((2 * (m + 1), a.shape[1]))
    odd[1 : m + 1] = a
    odd[m + 2 :] = -a[::-1]
    return np.ascontiguousarray(-0.5 * np.fft.rfft(odd, axis=0).imag[1 : m + 1])
