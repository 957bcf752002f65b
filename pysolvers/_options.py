"""Checks of the options that the solvers share, and the report of a solve, `SolveInfo`."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ._checks import integer, require_flag
from ._errors import singular_text
from ._repr import Shown, counted
from ._runtime.lines import Shape

Method = Literal["auto", "thomas", "cr", "pcr", "cr-pcr", "pcr-thomas", "partition", "pivoted"]
OnSingular = Literal["raise", "warn", "nan", "ignore"]
Trans = Literal["N", "T", "H"]

POLICIES = get_args(OnSingular)
_MAX_THREADS = 2**15


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SolveInfo(Shown):
    """Method, resources and counts of one solve or factorisation.

    Attributes
    ----------
    method : str
        The algorithm that was used; ``"auto"`` only for an empty batch.
    pivoted : int or None
        Number of systems solved with row exchanges; None if the device has not counted
        them.
    repeated : int or None
        Number of systems solved a second time, in order, because entries had grown in the
        first elimination and the residual of its solution was not small. None if the device
        has not counted them. Always 0 on the CPU, where eliminations with row exchanges
        bound the growth of entries.
    systems : int
        Number of systems.
    rows : int
        Length of each system.
    dtype : dtype
        Dtype of operands and result.
    backend : str
        ``"cpu"`` or ``"cuda"``.
    device : int
        Number of the device; 0 on the CPU.
    kernel : str
        Instruction set, or kernel of the device.
    threads : int
        Host threads used.
    copied : tuple of str
        Names of the operands that were copied, because they have another dtype, alignment
        or byte order, because their batch axes do not merge to two, or, before a copy to a
        device, because they have gaps or negative strides.
    singular : ndarray of int, shape (K, ndim - 1), or None
        Batch indices of the singular systems, in ascending order. None if the call did
        not wait for the result: for GPU arrays with `on_singular` ``'nan'`` or
        ``'ignore'``.
    singular_rows : ndarray of int, shape (K,), or None
        Row of the first bad pivot of each singular system, in the order of
        elimination. That is the order of the rows, except for periodic systems with row exchanges
        and, on a device, for methods in chunks without row exchanges.
    seconds : dict of str to float, or None
        For NumPy arrays and a device, the times of ``"copy"`` (to the device and back) and
        of ``"solve"``. Otherwise None.
    ranks : int
        Number of processes that solved together; counts are those of all of them.
    exchange : str
        What the processes exchanged: ``"none"``, ``"ends"`` (the partition method: the equations
        of the last row of each process, through the memory of the host), ``"peers"`` or ``"nccl"``
        (these equations, between devices of one host or by NCCL) or ``"lines"`` (whole systems,
        distributed over the processes).

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import solve_tridiagonal
    >>> x, info = solve_tridiagonal(-1.0, 2.5, -1.0, np.ones((3, 4)), return_info=True)
    >>> info.method, info.systems, info.rows, info.pivoted, info.backend
    ('thomas', 3, 4, 0, 'cpu')
    """

    method: str
    pivoted: int | None
    repeated: int | None
    systems: int
    rows: int
    dtype: np.dtype
    backend: str
    device: int
    kernel: str
    threads: int
    copied: tuple[str, ...]
    singular: NDArray[np.intp] | None
    singular_rows: NDArray[np.intp] | None
    seconds: dict[str, float] | None = None
    ranks: int = 1
    exchange: str = "none"

    def _table(self) -> tuple[str, Mapping[str, str]]:
        rows = counted(self.rows, "row")
        caption = f"SolveInfo: {counted(self.systems, 'system')} of {rows}, {self.dtype}"
        parts = [self.method]
        if self.pivoted:
            parts.append(f"{self.pivoted} with row exchanges")
        if self.repeated:
            parts.append(f"{self.repeated} repeated")
        place = self.backend if self.backend == "cpu" else f"{self.backend}:{self.device}"
        where = [place, self.kernel, counted(self.threads, "thread") if self.threads else ""]
        facts = {
            "method": ", ".join(parts),
            "where": ", ".join(filter(None, where)),
            "singular": "not asked",
        }
        if self.singular is not None and self.singular_rows is not None:
            facts["singular"] = "none"
            if len(self.singular_rows):
                facts["singular"] = singular_text(self.singular, self.singular_rows)
        if self.copied:
            facts["copied"] = ", ".join(self.copied)
        if self.seconds is not None:
            facts["seconds"] = ", ".join(f"{k} {v:.3g}" for k, v in self.seconds.items())
        return caption, facts


class Choice(NamedTuple):
    """Options of a call as the caller gave them: of `solve_tridiagonal` all, of others some."""

    axis: int = -1
    method: Method = "auto"
    periodic: bool = False
    pivot: bool | None = None
    out: Any = None
    on_singular: OnSingular = "raise"
    device: str | None = None
    stream: object = None
    threads: int | None = None
    variant: int = 0  # mapping of pysolvers.papers.wei2013
    check_finite: bool = False
    return_info: bool = False
    has_sums: bool = False  # `diag` holds row sums
    check_signs: bool = False


def check_choice(name: str, value: object, table: Mapping[str, int]) -> int:
    """Return the code of a text option, or raise an error that lists the choices."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, got {type(value).__name__}")
    if value not in table:
        raise ValueError(f"{name} must be one of {', '.join(table)}; got {value!r}")
    return table[value]


def check_policy(value: OnSingular) -> OnSingular:
    """Return `on_singular` if it is one of the four policies, or raise an error."""
    check_choice("on_singular", value, dict.fromkeys(POLICIES, 0))
    return value


def check_threads(threads: int | None) -> int:
    """Return the number of threads, 0 for None, or raise."""
    if threads is None:
        return 0
    count = integer("threads", threads, "an int or None")
    if not 1 <= count <= _MAX_THREADS:
        raise ValueError(f"threads must be in 1 .. {_MAX_THREADS}, got {count}")
    return count


def pivot_code(
    pivot: bool | None, pivots: Mapping[str, int], method: str = "auto", *, has_sums: bool = False
) -> int:
    """Return the backend's code of `pivot`, or raise if `method` or the form contradicts it.

    With `has_sums`, matrices given by row sums, no rows are exchanged.
    """
    if pivot is not None:
        require_flag("pivot", pivot, "a bool or None")
    if has_sums:
        if method != "auto":
            raise ValueError(
                f"method must be 'auto' with RowSums, got {method!r}: for other methods pass the "
                "diagonal, diag = s - lower - upper"
            )
        if pivot:
            raise ValueError(
                "pivot must be None or False with RowSums, got True: no rows are exchanged in "
                "matrices that are given by row sums; to exchange rows pass the diagonal, "
                "diag = s - lower - upper"
            )
        return pivots["never"]
    if method == "pivoted" and pivot is not None and not pivot:
        raise ValueError("pivot=False contradicts method='pivoted': leave one of them out")
    if method not in ("auto", "pivoted") and pivot:
        raise ValueError(f"pivot=True needs method 'auto' or 'pivoted', got {method!r}")
    if method not in ("auto", "pivoted"):
        return pivots["never"]
    if method == "pivoted" or pivot:
        return pivots["always"]
    return pivots["auto" if pivot is None else "never"]


def shape_flags(backend: ModuleType, shape: Shape, periodic: bool) -> int:
    """Return the flags of the C interface for the lengths of lower and upper."""
    short_lower, _, short_upper = shape.short[:3]
    flags = backend.PERIODIC if periodic else 0
    flags |= backend.SHORT_LOWER if short_lower else 0
    flags |= backend.SHORT_UPPER if short_upper else 0
    return flags
