"""The experiments of Cotronis, Konstantinidis, Louka and Missirlis (2012): LMSOR on a GPU.

Parallel SOR for solving the convection diffusion equation using GPUs with CUDA, Euro-Par 2012: a
GTX 480 and a Tesla C2050 against one core of an Opteron 6180. Its size sqrt(N) includes the
boundary. Some numbers of the paper follow only from a version of the parameter formula with an
error; they are marked: see the page on LMSOR.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from .. import relaxation as solvers
from .._checks import require
from ..relaxation import SteadyConvectionDiffusion
from ..relaxation._base import Omega
from ..relaxation.lmsor import LMSORSettings, LMSORState

__all__ = [
    "COUNTS",
    "LMSOR",
    "Count",
    "count_iterations",
    "solver_of",
]

Local = Literal["lmsor", "lsor", "lmsor-2012"]
Kernel = Literal["auto", 1, 2, 3, "serial"]


@dataclass(frozen=True, kw_only=True)
class PaperSettings(LMSORSettings):
    """Parameters of `LMSOR` of this module."""

    relaxation: Local | Omega  # type: ignore[assignment]
    kernel: Kernel  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True)
class SavedPaper(LMSORState):
    """What `save` writes of `LMSOR` of this module."""

    settings: PaperSettings

    _KIND = "lmsor2012 LMSOR state"


class LMSOR(solvers.LMSOR):
    """`pysolvers.LMSOR` with the kernels of the paper, and with the error of its counts.

    Parameters
    ----------
    *args, **options
        As in `pysolvers.LMSOR`. `relaxation` can also be ``'lmsor-2012'``, which omits the squares
        under the root at nodes with real eigenvalues; this error reproduces the iteration counts
        of the paper.
    kernel : {'auto', 1, 2, 3, 'serial'}, default: 'auto'
        1, 2 and 3 are the kernels of the paper: kernel 1 stores all coefficients, kernel 2 the
        skew parts of the coefficients and the parameters, and kernel 3 computes both from tables
        of f(x) and g(y). ``'auto'`` makes several iterations in one pass over memory.
        ``'serial'`` (CPU only) uses one array and one thread. All kernels give the same bits.
        Upwind differences of a convection that varies need kernel 1, which ``'auto'`` then
        selects. With a group it is ``'auto'``, 1 or 2.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.LMSOR`, and if the kernel is none of the choices or not one for the problem.

    Examples
    --------
    >>> from pysolvers.papers import lmsor2012
    >>> count = lmsor2012.Count(2, 10.0, 402, 554, "lmsor-2012")
    >>> lmsor2012.count_iterations(count, kernel=2)
    554
    """

    _SETTINGS: ClassVar[Any] = PaperSettings
    _STATE: ClassVar[Any] = SavedPaper

    def __init__(self, *args: Any, kernel: Kernel = "auto", **options: Any) -> None:
        self._experiment = {"kernel": kernel}
        super().__init__(*args, **options)

    def _check_experiment(self) -> None:
        kernel = self._settings.kernel
        if kernel == 3:
            require(self.problem.separable, "kernel 3 needs f(x) and g(y)", self.problem)
        require(
            kernel in ("auto", 1) or not self._is_stored,
            "kernel must be 'auto' or 1 with upwind differences of a convection that varies, and "
            "with sides that do not have given values",
            kernel,
        )
        require(
            kernel in ("auto", 1, 2) or self._group is None,
            "with a group kernel must be 'auto', 1 or 2",
            kernel,
        )


@dataclass(frozen=True, slots=True)
class Count:
    """The number of iterations for a problem.

    Parameters
    ----------
    problem : {1, 2, 3}
        Number of the problem.
    reynolds : float
        The factor Re.
    size : int
        Nodes per side, including the boundary.
    published : int or None
        The number in the paper.
    relaxation : str, default: 'lmsor'
        The formula that gives this number; ``'lmsor-2012'`` is the version with the error.

    Examples
    --------
    >>> from pysolvers.papers.lmsor2012 import COUNTS
    >>> COUNTS[0]
    Count(problem=1, reynolds=10.0, size=402, published=412, relaxation='lmsor')
    """

    problem: int
    reynolds: float
    size: int
    published: int | None
    relaxation: str = "lmsor"


COUNTS = (
    Count(1, 10.0, 402, 412),
    Count(3, 10.0, 402, 1015),
    Count(2, 10.0, 402, 554, "lmsor-2012"),
    Count(2, 10.0, 402, None),
    Count(2, 10.0, 1002, 1384, "lmsor-2012"),
    Count(2, 10.0, 1002, None),
    Count(1, 10.0, 2002, 1998),
    Count(2, 10.0, 2002, 2704, "lmsor-2012"),
    Count(3, 10.0, 2002, 2018),
    Count(1, 1e3, 1002, 2620),
    Count(2, 1e3, 1002, 1003),
    Count(3, 1e3, 1002, 5514),
    Count(1, 1e4, 1002, 5394),
    Count(2, 1e4, 1002, 1112),
    Count(3, 1e4, 1002, 6271),
    Count(1, 1e5, 1002, 6243),
    Count(2, 1e5, 1002, 3170),
    Count(3, 1e5, 1002, 7034),
    Count(2, 10.0, 3002, 4055, "lmsor-2012"),
    Count(2, 10.0, 4002, 5406, "lmsor-2012"),
)
"""The counts of Tables 1, 3 and 4 of the paper, and two with the right formula where it slipped."""


def solver_of(problem: int, reynolds: float, size: int, **options: Any) -> LMSOR:
    """Return the solver of a problem of the paper.

    Parameters
    ----------
    problem : {1, 2, 3}
        f = Re (2x - 10)^3, Re (2x - 10) or 1e4 Re, and g is the same function of y.
    reynolds : float
        Re.
    size : int
        Nodes per side, including the boundary.
    **options
        Options of `LMSOR` of this module.

    Returns
    -------
    solver : LMSOR
        With the initial values u = x y (1 - x) (1 - y) of the paper.

    Raises
    ------
    ValueError
        If there is no such problem.

    Examples
    --------
    >>> from pysolvers.papers.lmsor2012 import solver_of
    >>> solver_of(1, 10.0, 402).iterate(2).u.shape
    (402, 402)
    """
    if problem not in (1, 2, 3):
        raise ValueError(f"problem must be 1, 2 or 3, got {problem!r}")

    def flow(z: Any) -> Any:
        """Return the velocity along a coordinate in 0 .. 10."""
        if problem == 3:
            return 1e4 * reynolds + 0 * z
        return reynolds * (2 * z - 10) ** (3 if problem == 1 else 1)

    equation = SteadyConvectionDiffusion(
        lambda x, y: flow(x),
        lambda x, y: flow(y),
        shape=(size, size),
        extent=((0, 1), (0, 1)),
        differences="central",
        boundary=0.0,
    )
    return LMSOR(equation, initial=lambda x, y: x * y * (1 - x) * (1 - y), **options)


def count_iterations(count: Count, **options: Any) -> int:
    """Return the number of iterations until max abs(u) is at most 1e-6.

    Parameters
    ----------
    count : Count
        The problem.
    **options
        Options of `LMSOR` of this module.

    Returns
    -------
    iterations : int
        Number of iterations.

    Examples
    --------
    >>> from pysolvers.papers.lmsor2012 import Count, count_iterations
    >>> count_iterations(Count(problem=1, reynolds=10.0, size=402, published=412))
    412
    """
    solver = solver_of(
        count.problem, count.reynolds, count.size, relaxation=count.relaxation, **options
    )
    return solver.solve(1e-6, criterion="solution", max_iterations=20_000).iterations
