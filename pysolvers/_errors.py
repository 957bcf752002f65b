"""Exceptions and warnings of the package, and the functions that create their messages."""

import sys
import warnings
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

_PACKAGE = f"{__package__}."


class PysolversError(Exception):
    """Base class of errors that the computation, not an argument, causes.

    Examples
    --------
    >>> from pysolvers import PysolversError, solve_tridiagonal
    >>> try:
    ...     solve_tridiagonal(0.0, 0.0, 0.0, [1.0, 2.0])
    ... except PysolversError as error:
    ...     print(type(error).__name__)
    SingularSystemError
    """


class BackendError(PysolversError, RuntimeError):
    """A backend is missing, does not offer an operation, or its device failed.

    Examples
    --------
    >>> from pysolvers import BackendError, solve_tridiagonal
    >>> try:
    ...     solve_tridiagonal(-1.0, 2.5, -1.0, [1.0, 2.0], device="cuda:99")
    ... except BackendError as error:
    ...     print("no such device")
    no such device
    """


class ConvergenceError(PysolversError):
    """An iteration ended without reaching its tolerance.

    Parameters
    ----------
    message : str
        The operation, the rule and the values.
    result : object, optional
        The state at the end of the iteration, with its history.

    Attributes
    ----------
    result : object
        The argument `result`.

    Examples
    --------
    >>> from pysolvers import ConvergenceError, LidDrivenCavity
    >>> try:
    ...     LidDrivenCavity(reynolds=100, n=17).solve(tol=1e-9, max_iterations=10)
    ... except ConvergenceError as error:
    ...     print(error.result.iterations)
    10
    """

    def __init__(self, message: str, result: object = None) -> None:
        super().__init__(message, result)
        self.message = message
        self.result = result

    def __str__(self) -> str:
        return self.message


class DistributedError(PysolversError, RuntimeError):
    """A collective call failed on another rank, or the ranks called it differently.

    Parameters
    ----------
    message : str
        The operation, the ranks and the reason.
    ranks : tuple of int
        The ranks that failed, did not take part, or differ from rank 0.

    Attributes
    ----------
    ranks : tuple of int
        The argument `ranks`.

    Examples
    --------
    >>> from pysolvers import DistributedError
    >>> error = DistributedError("solve_tridiagonal: rank 2 raised ValueError", (2,))
    >>> error.ranks
    (2,)
    """

    def __init__(self, message: str, ranks: tuple[int, ...]) -> None:
        super().__init__(message, ranks)
        self.message = message
        self.ranks = ranks

    def __str__(self) -> str:
        return self.message


class SingularSystemError(PysolversError, np.linalg.LinAlgError):
    """At least one system of finite entries has a bad pivot; the other systems are solved.

    Parameters
    ----------
    systems : ndarray of int, shape (K, ndim - 1)
        Batch indices of the singular systems, in ascending order.
    rows : ndarray of int, shape (K,)
        For each singular system, the row of the first pivot that is zero or not finite, because
        a product of entries overflows, or, without row exchanges, whose reciprocal overflows. Of a
        matrix that is to be positive definite, the row of the first pivot that is not.
    message : str, optional
        Of a solver with another rule than for pivots.

    Attributes
    ----------
    systems, rows : ndarray of int
        The arguments.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import SingularSystemError, solve_tridiagonal
    >>> diag = np.array([[2.0, 2.0], [1.0, 0.0]])
    >>> try:
    ...     solve_tridiagonal(0.0, diag, 0.0, np.ones((2, 2)))
    ... except SingularSystemError as error:
    ...     print(error.systems, error.rows)
    [[1]] [1]
    """

    def __init__(
        self, systems: NDArray[np.intp], rows: NDArray[np.intp], message: str = ""
    ) -> None:
        super().__init__(systems, rows, message)
        self.systems = systems
        self.rows = rows
        self.message = message

    def __str__(self) -> str:
        return self.message or singular_text(self.systems, self.rows)


class SingularSystemWarning(RuntimeWarning):
    """A system is singular, or has no solution; with the message of the solver.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from pysolvers import SingularSystemWarning, solve_tridiagonal
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     x = solve_tridiagonal(-1.0, 2.0, -1.0, np.zeros(8), periodic=True)
    ...
    >>> found[0].category is SingularSystemWarning
    True
    """


class CoarseGridWarning(RuntimeWarning):
    """A grid is too coarse: the solution has waves from node to node that the flow does not have.

    `SquareCylinder` and `SteadyConvectionDiffusion` issue it when they are created.

    Examples
    --------
    >>> import warnings
    >>> from pysolvers import CoarseGridWarning, SquareCylinder
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     solver = SquareCylinder(reynolds=1000, shape=(49, 201))
    ...
    >>> found[0].category is CoarseGridWarning
    True
    """


def warn_user(message: str, category: type[Warning] = RuntimeWarning) -> None:
    """Issue a warning at the line of the user that called this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def singular_text(systems: NDArray[np.intp], rows: NDArray[np.intp]) -> str:
    """Return the number of singular systems, and index and row of the first bad pivot.

    Without row exchanges a pivot is bad, too, if it is so small that its inverse overflows. An
    infinite pivot of a finite matrix comes after one that is almost so small.
    """
    row = f"row {int(rows[0])}"
    if systems.shape[1] == 0:
        return f"a zero or subnormal pivot in the system, {row}"
    first = tuple(map(int, systems[0]))
    count = "1 system" if len(rows) == 1 else f"{len(rows)} systems, first"
    return f"a zero or subnormal pivot in {count} at batch index {first}, {row}"


_VALUE_ERRORS = {"PS_BAD_ARGUMENT", "PS_BAD_LAYOUT"}


def raise_for_status(status: int, table: Mapping[int, tuple[str, str]], operation: str) -> None:
    """Raise the exception for a status other than success.

    Parameters
    ----------
    status : int
        The status that the backend returned.
    table : mapping
        ``STATUS`` of the backend: code to name and text.
    operation : str
        The operation, for the message.

    Raises
    ------
    ValueError
        For a bad argument or layout.
    BackendError
        For every other status.
    """
    name, text = table[status]
    if name == "PS_OK":
        return
    kind = ValueError if name in _VALUE_ERRORS else BackendError
    raise kind(f"{operation}: {text} ({name})")
