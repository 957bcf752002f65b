"""Matrices that are given by their row sums instead of the diagonal."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, NoReturn

import numpy as np

from ._checks import require_flag
from ._errors import SingularSystemWarning, warn_user


@dataclass(frozen=True, slots=True, eq=False)
class RowSums:
    r"""Row sums of tridiagonal matrices, in the place of their diagonal.

    In ``solve_tridiagonal(lower, RowSums(s), upper, rhs)`` and in
    ``factor_tridiagonal(lower, RowSums(s), upper)`` the rows are

    .. math:: s_i x_i + l_i (x_{i-1} - x_i) + u_i (x_{i+1} - x_i) = r_i,

    so that the diagonal is :math:`d_i = s_i - l_i - u_i`. Unless the systems are periodic, l_0 and
    u_{n-1} are ignored and count as 0: what a first row loses to a value beyond the end is part of
    its s.

    Parameters
    ----------
    s : array_like
        The row sums. They broadcast as the diagonal does.
    check_signs : bool, default: True
        Whether a call checks the signs, which reads the matrices once more. With False the caller
        is responsible for the signs; solutions with other signs have no known accuracy.

    Raises
    ------
    TypeError
        If `check_signs` is not a bool.

    See Also
    --------
    solve_tridiagonal : Solve with matrices of this form.
    factor_tridiagonal : Factor matrices of this form.

    Notes
    -----
    The form is for matrices of diffusion and of upwind convection, M-matrices: all off-diagonals
    are :math:`\le 0` and all row sums :math:`\ge 0`, or all have the opposite signs, in all
    matrices of a call. A diagonal rounds off row sums that are small relative to the
    off-diagonals, and with them the solution: a step of diffusion of 1e7 times the stable length
    has s = 1 and off-diagonals of -1e7. Elimination with row sums subtracts no matrix entries
    ([1]_, [2]_). For right-hand sides of one sign, each unknown has a relative error of O(n)
    rounding units, whatever the condition number; for others the error is that of a relative
    change of each right-hand side by such an amount.

    Rows are not exchanged: ``pivot`` is None or False and ``method`` is ``'auto'``. The matrices
    are real, right-hand sides can be complex. A matrix of which all row sums are zero is singular,
    and is reported as such for any size; a pivot is also bad if products of entries leave the
    range of the dtype.

    The signs are checked in one pass over each operand as it was given, before it broadcasts. On a
    device this waits for the operands, and is therefore left out if the call does not wait, with
    `on_singular` ``'nan'`` or ``'ignore'``. `pysolvers.jax` does not check signs.

    References
    ----------
    .. [1] W. K. Grassmann, M. I. Taksar and D. P. Heyman, "Regenerative analysis and steady state
       distributions for Markov chains", Oper. Res. 33 (1985) 1107-1116.
    .. [2] A. S. Alfa, J. Xue and Q. Ye, "Accurate computation of the smallest eigenvalue of a
       diagonally dominant M-matrix", Math. Comp. 71 (2002) 217-236.

    Examples
    --------
    A bar of 4 cells without flux through its ends, which loses heat at a rate of 1e-20:

    >>> import numpy as np
    >>> from pysolvers import RowSums, solve_tridiagonal
    >>> solve_tridiagonal(-1.0, RowSums(1e-20), -1.0, np.ones(4))
    array([1.e+20, 1.e+20, 1.e+20, 1.e+20])
    """

    s: Any
    _: KW_ONLY
    check_signs: bool = True

    def __post_init__(self) -> None:
        if type(self.check_signs) is not bool:  # which torch.compile can evaluate
            require_flag("check_signs", self.check_signs)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            "RowSums stands in the place of diag in solve_tridiagonal and factor_tridiagonal; its "
            "array is the attribute s"
        )


def form_of(diag: Any) -> tuple[Any, RowSums | None]:
    """Return the array in the place of the diagonal, and the form if it has row sums."""
    return (diag.s, diag) if isinstance(diag, RowSums) else (diag, None)


def complex_sums(operation: str, dtype: Any) -> TypeError:
    """Return the error of a call with complex matrices that are given by row sums."""
    name = str(dtype).rpartition(".")[2]  # PyTorch writes torch.complex128
    return TypeError(
        f"{operation}: lower, upper and RowSums.s must be real, got {name}: for complex matrices "
        "pass the diagonal, diag = s - lower - upper"
    )


def warn_of_singular_ring(lower: Any, diag: Any, upper: Any) -> None:
    """Warn of one periodic matrix whose rows add up to 0: no pivot need be 0.

    Numbers and arrays of one dimension are looked at, which all systems share.
    """
    diagonals = lower, diag, upper
    if not all(
        type(a) in (int, float) or (type(a) is np.ndarray and a.ndim == 1) for a in diagonals
    ):
        return
    if len({len(a) for a in diagonals if type(a) is np.ndarray}) > 1:
        return
    sums = np.asarray(lower + diag + upper)
    if sums.size and not sums.any():
        warn_user(
            "the periodic matrix is singular: the entries of each row, lower + diag + upper, add "
            "up to 0, so that x is known up to a constant only, or does not exist; use "
            "FastPoisson for a periodic Poisson equation",
            SingularSystemWarning,
        )


def matrix_names(*, has_sums: bool) -> tuple[str, str, str]:
    """Return the names of lower, diag and upper in messages."""
    return "lower", "RowSums.s" if has_sums else "diag", "upper"
