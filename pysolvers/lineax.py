"""The solves of `pysolvers.jax` as a linear solver of Lineax."""

from typing import Any

from ._extras import extra_module

_lineax: Any = extra_module("lineax", "lineax")
_tools: Any = extra_module("lineax.internal", "lineax")

from .jax import solve_tridiagonal  # noqa: E402

__all__ = ["Tridiagonal"]


class Tridiagonal(_lineax.AbstractLinearSolver):
    r"""A solver of Lineax for tridiagonal operators, that solves all systems of `vmap` in one call.

    It takes the place of ``lineax.Tridiagonal``:

    .. math:: l_i x_{i-1} + d_i x_i + u_i x_{i+1} = b_i, \quad 0 \le i < n.

    Parameters
    ----------
    pivot : bool, optional
        Whether to exchange rows. By default rows are exchanged in the systems that are not
        diagonally dominant.

    Raises
    ------
    ValueError
        By ``lineax.linear_solve``, if the operator is not square or not tridiagonal.

    See Also
    --------
    pysolvers.jax.solve_tridiagonal : The solve, with its platforms and derivatives.

    Notes
    -----
    Lineax has the derivatives: the reverse pass is a solve with the transposed operator, by the
    same solver. The solution of a singular system is NaN, which ``lineax.linear_solve`` reports as
    ``RESULTS.singular``, and as an error unless ``throw=False``. An operator that `vmap` does not
    map is shared by the systems, and is not expanded in memory.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import lineax
    >>> from pysolvers.lineax import Tridiagonal
    >>> operator = lineax.TridiagonalLinearOperator(jnp.full(3, 2.0), -jnp.ones(2), -jnp.ones(2))
    >>> solution = lineax.linear_solve(operator, jnp.array([1.0, 0.0, 1.0]), Tridiagonal())
    >>> print(solution.value)
    [1. 1. 1.]
    """

    pivot: bool | None = None

    def init(self, operator: Any, options: dict[str, Any]) -> Any:
        """Return the diagonals of an operator, and how its vectors are made of arrays."""
        del options
        if operator.in_size() != operator.out_size():
            raise ValueError(
                "Tridiagonal needs a square operator, got one of "
                f"{operator.out_size()} rows and {operator.in_size()} columns"
            )
        if not _lineax.is_tridiagonal(operator):
            raise ValueError(
                "Tridiagonal needs a tridiagonal operator: pass a TridiagonalLinearOperator, or "
                f"tag the operator with lineax.tridiagonal_tag; got {type(operator).__name__}"
            )
        return _lineax.tridiagonal(operator), _tools.pack_structures(operator)

    def compute(self, state: Any, vector: Any, options: dict[str, Any]) -> tuple[Any, Any, dict]:
        """Solve with the operator of `init`; return the solution, a code and no statistics."""
        del options
        (diag, lower, upper), structures = state
        rhs = _tools.ravel_vector(vector, structures)
        x = solve_tridiagonal(lower, diag, upper, rhs, pivot=self.pivot)
        return _tools.unravel_solution(x, structures), _lineax.RESULTS.successful, {}

    def transpose(self, state: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the state of the transposed operator."""
        (diag, lower, upper), structures = state
        return ((diag, upper, lower), _tools.transpose_packed_structures(structures)), options

    def conj(self, state: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the state of the conjugated operator."""
        diagonals, structures = state
        return (tuple(a.conj() for a in diagonals), structures), options

    def assume_full_rank(self) -> bool:
        """Return True: operators have to be regular."""
        return True
