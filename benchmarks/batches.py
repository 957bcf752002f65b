"""The cases of the tridiagonal benchmark, and the operands that they share."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

AXES = {"last": -1, "first": 0, "middle": 1}
MATRICES = ("own", "shared", "periodic", "pivoted")

# The loops of peers solve about this many unknowns; their time is scaled to the batch. The sample
# fits the cache, which favours the peer.
SAMPLE = 2**18


@dataclass(frozen=True, kw_only=True)
class Batch:
    """`systems` systems of `rows` unknowns along one axis of an array.

    Parameters
    ----------
    matrix : str
        Kind of the matrices of the systems.
    axis : {'last', 'first', 'middle'}
        The axis of the systems: contiguous, slowest, or between two others.
    dtype : str
        Name of the dtype.
    rows, systems : int
        Length and number of the systems.
    """

    matrix: str
    axis: str
    dtype: str
    rows: int
    systems: int

    @property
    def unknowns(self) -> int:
        """int: rows times systems."""
        return self.rows * self.systems

    @property
    def is_shared(self) -> bool:
        """bool: whether all systems share one matrix."""
        return self.matrix in ("shared", "factor")

    @property
    def words(self) -> float:
        """float: smallest number of words moved per unknown."""
        return 2 + 3 / self.systems if self.is_shared else 5.0

    @staticmethod
    def inner(systems: int) -> int:
        """Return the length of the axis after a middle one: a power of two near the square root."""
        return 2 ** math.ceil(math.log2(systems) / 2)

    def shape(self, systems: int | None = None) -> tuple[int, ...]:
        """Return the shape of an array of `systems` systems, all of them by default."""
        count = self.systems if systems is None else systems
        if self.axis == "last":
            return count, self.rows
        if self.axis == "first":
            return self.rows, count
        inner = self.inner(count)
        return count // inner, self.rows, inner

    @property
    def axis_number(self) -> int:
        """int: the axis of the systems."""
        return AXES[self.axis]


@dataclass(frozen=True, kw_only=True)
class Case(Batch):
    """A batch on the CPU.

    `matrix` is ``'own'`` (a matrix for each system), ``'shared'`` (one matrix for all systems),
    ``'periodic'`` (a periodic matrix for each system) or ``'pivoted'`` (a matrix for each system,
    not diagonally dominant).
    """

    @property
    def bar(self) -> float | None:
        """float or None: target of the package, as a fraction of the floor."""
        if self.dtype != "float64" or self.matrix == "periodic":
            return None
        if self.systems == 1:
            return 0.5 if self.matrix == "own" else None
        if self.rows > 4096:
            return None
        return {"own": 0.7, "pivoted": 0.6, "shared": 0.6}[self.matrix]

    @property
    def peer_bar(self) -> float | None:
        """float or None: target of the package, as speedup over the loop of LAPACK calls."""
        if (self.matrix, self.axis, self.dtype) != ("own", "last", "float64"):
            return None
        return {64: 10.0, 512: 6.0, 4096: 4.0}.get(self.rows)


class Buffers:
    """Random operands of one dtype, larger than the caches, viewed in the shape of each case.

    Parameters
    ----------
    dtype : str
        Name of the dtype.
    size : int
        Number of unknowns of the largest case.
    arrays : module, default: numpy
        The array library, NumPy or CuPy.
    """

    def __init__(self, dtype: str, size: int, arrays: Any = np) -> None:
        rng = arrays.random.default_rng(size)

        def uniform() -> Any:
            values = rng.random(size, np.dtype(dtype))
            values -= 0.5
            return values

        self.lower, self.upper, self.rhs, self.any_diag = (uniform() for _ in range(4))
        self.diag = arrays.abs(self.lower)
        self.diag += arrays.abs(self.upper)
        self.diag += 0.5
        self.x = arrays.zeros(size, dtype)

    def system(self, case: Batch) -> list[Any]:
        """Return lower, diag, upper, rhs and x of `case`."""
        diag = self.any_diag if case.matrix == "pivoted" else self.diag
        count = 1 if case.is_shared else case.systems
        matrix = [self._view(a, case, count) for a in (self.lower, diag, self.upper)]
        return [*matrix, *(self._view(a, case, case.systems) for a in (self.rhs, self.x))]

    def sample(self, case: Case, *, side_by_side: bool = False) -> list[NDArray]:
        """Return lower, diag, upper, rhs of shape (systems, rows) for a peer."""
        count = case.systems if side_by_side else max(1, min(case.systems, SAMPLE // case.rows))
        flat = [a[: count * case.rows] for a in (self.lower, self.diag, self.upper, self.rhs)]
        if side_by_side:
            return [a.reshape(case.rows, count).T for a in flat]
        return [a.reshape(count, case.rows) for a in flat]

    @staticmethod
    def _view(flat: Any, case: Batch, systems: int) -> Any:
        shape = case.shape(systems)
        return flat[: math.prod(shape)].reshape(shape)


def cases(dtype: str, rows: tuple[int, ...], unknowns: int, one_system: int) -> Iterator[Case]:
    """Yield the cases of one dtype: `unknowns` unknowns for each of `rows`, and one long system."""
    for matrix in MATRICES:
        for axis in AXES:
            for n in rows:
                yield Case(matrix=matrix, axis=axis, dtype=dtype, rows=n, systems=unknowns // n)
        if matrix != "shared":
            yield Case(matrix=matrix, axis="last", dtype=dtype, rows=one_system, systems=1)
