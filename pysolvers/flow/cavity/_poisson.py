"""Direct solution of the Poisson equation on a square of nodes."""

from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..._extras import extra_module
from ..._options import Method
from ...poisson._columns import transform_columns
from ...tridiagonal import solve_tridiagonal


def solve_poisson(
    source: NDArray[np.float64], *, line_method: str = "auto", threads: int | None = None
) -> NDArray[np.float64]:
    r"""Solve the five-point equations of :math:`-\nabla^2 \psi = f` with zero boundary.

    A sine transform along y, DST-I, leaves one tridiagonal system along x for every mode k,

    .. math:: -\hat\psi_{i-1} + (2 + \lambda_k) \hat\psi_i - \hat\psi_{i+1} = h^2 \hat f_i,
        \quad \lambda_k = 2 - 2 \cos(\pi k h).

    DST-I is its own inverse up to the factor 2 (N - 1); h = 1/(N - 1).

    Parameters
    ----------
    source : ndarray of float, shape (N, N)
        f at the nodes of the unit square, y along the first axis; the boundary is not
        read.
    line_method : str, default: 'auto'
        Method of `pysolvers.solve_tridiagonal`.
    threads : int, optional
        Threads; the transforms run on one unless a number is given.

    Returns
    -------
    psi : ndarray of float, shape (N, N)
        The solution, zero on the boundary.
    """
    n = source.shape[0]
    modes = np.arange(1, n - 1)
    diag = 4.0 - 2.0 * np.cos(np.pi * modes / (n - 1))
    fft = extra_module("scipy.fft", "poisson")
    transform = partial(fft.dst, type=1, axis=0, overwrite_x=True)
    dtype, workers = source.dtype, threads or 1
    waves = np.empty((n - 2, n - 2))
    transform_columns(transform, source[1:-1, 1:-1], waves, 0, dtype, workers)
    waves /= 2 * (n - 1) ** 2
    method = cast(Method, line_method)
    solve_tridiagonal(-1.0, diag[:, None], -1.0, waves, method=method, threads=threads, out=waves)
    transform_columns(transform, waves, waves, 0, dtype, workers)
    psi = np.zeros_like(source)
    np.multiply(waves, 1 / (n - 1), out=psi[1:-1, 1:-1])
    return psi
