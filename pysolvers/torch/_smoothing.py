"""Linear smoothers with gradients in PyTorch; the formulas of smoothing/_differentiable.py."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from ..smoothing._differentiable import smooth
from ._blocks import solve_pentadiagonal
from ._solve import solve_tridiagonal
from ._xp import XP

_SOLVES = (partial(solve_tridiagonal, pivot=False), solve_pentadiagonal)


def whittaker(
    y: Tensor,
    lam: Tensor | float,
    *,
    order: int = 2,
    weights: Tensor | None = None,
    axis: int = -1,
) -> Tensor:
    r"""Smooth many series by penalised differences, with gradients.

    .. math:: (W + \lambda D^T D)\, z = W y .

    Parameters
    ----------
    y, lam, order, weights, axis
        As in `pysolvers.smoothing.whittaker`. That `lam` and the weights are not negative is not
        checked.

    Returns
    -------
    Tensor, shape of `y`
        The smooth values z; NaN where the matrix is not positive definite.

    Raises
    ------
    TypeError
        If an operand is complex.
    ValueError
        If `order` is not 1 or 2, or shapes do not fit.
    BackendError
        If the device is not available.

    Notes
    -----
    The result is differentiable with respect to `y`, `lam` and `weights`, any number of times. A
    value of `y` with the weight 0 has no influence.

    Examples
    --------
    >>> import torch
    >>> from pysolvers.torch import whittaker
    >>> y = torch.tensor([0.0, 0.0, 3.0, 0.0, 0.0], dtype=torch.float64)
    >>> lam = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    >>> whittaker(y, lam)[2].backward()
    >>> print(f"{lam.grad:.3f}")
    -0.344
    """
    _, z, place = smooth(XP, _SOLVES, {"y": y, "lam": lam, "weights": weights}, axis, order)
    return z.movedim(-1, place)


def hodrick_prescott(
    y: Tensor, lam: Tensor | float = 1600.0, *, axis: int = -1
) -> tuple[Tensor, Tensor]:
    r"""Split many series into cycle and trend, with gradients.

    Parameters
    ----------
    y, lam, axis
        As in `pysolvers.smoothing.hodrick_prescott`.

    Returns
    -------
    cycle, trend : Tensor, shape of `y`
        The trend is that of `whittaker` of order 2; the cycle is `y` minus the trend.

    Raises
    ------
    TypeError, ValueError, BackendError
        As `whittaker`.

    Examples
    --------
    >>> import torch
    >>> from pysolvers.torch import hodrick_prescott
    >>> cycle, trend = hodrick_prescott(torch.arange(5.0, dtype=torch.float64))
    >>> bool(cycle.abs().max() < 1e-9)
    True
    """
    values, z, place = smooth(XP, _SOLVES, {"y": y, "lam": lam}, axis, 2)
    return (values - z).movedim(-1, place), z.movedim(-1, place)
