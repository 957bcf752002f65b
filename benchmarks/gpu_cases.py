"""The cases of the benchmark on a GPU, their floors and their bars."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from .batches import Batch
from .small import ROWS as SMALL_ROWS, SYSTEMS as SMALL_SYSTEMS

UNKNOWNS = 2**26
DTYPES = ("float32", "float64")
EVERY_ROWS = (32, 64, 100, 128, 256, 500, 512, 1000, 1022, 1024, 2048, 3000, 4096)
LONG_ROWS = (8192, 16384, 65536, 2**20)
SOME_ROWS = (64, 100, 256, 500, 512, 1000, 1022, 2048, 3000, 4096)
CACHED = (1022, 512)
# Length of the systems for the comparison of one thread per system with `partition`.
CROSSOVER_ROWS = 512

# The cases of a part that a quick run measures.
QUICK_ROWS, QUICK_UNKNOWNS = (100, 512), 2**16

# Matrices, axes, largest number of rows, then the fraction of the floor in float32 and float64. The
# first line that applies to a case is its target; systems of fewer than 32 rows have none.
_LEAST_ROWS = 32
_BARS = (
    (("own", "checked"), ("last",), 2048, 0.95, 0.90),
    (("own", "checked"), ("last",), 4096, 0.90, 0.85),
    (("own", "checked"), ("last",), 8192, 0.85, 0.80),
    (("own", "checked"), ("last",), 16384, 0.80, 0.70),
    (("own", "checked"), ("last",), 65536, 0.65, 0.60),
    (("own",), ("first", "middle"), 4096, 0.90, 0.88),
    (("shared", "factor"), ("last", "first"), 4096, 0.85, 0.85),
    (("pivoted",), ("last",), 4096, 0.85, 0.80),
    (("periodic",), ("last",), 4096, 0.90, 0.85),
    (("product",), ("last", "first"), 4096, 0.90, 0.90),
    (("theta",), ("last", "first"), 4096, 0.90, 0.90),
    (("3 sides", "10 sides"), ("last", "first"), 4096, 0.90, 0.90),
)
_ONE_SYSTEM_BAR = 0.52
# Batches whose rows begin anywhere in memory, or whose lengths fill no shape of a kernel: matrix,
# axis, rows, systems, then the targets in float32 and float64.
_UNEVEN = (
    ("own", "first", 37, 906876, 0.88, 0.88),
    ("own", "first", 60, 456121, 0.88, 0.88),
    ("own", "first", 1500, 22369, 0.88, 0.88),
    ("own", "first", 5000, 6710, 0.88, 0.88),
    ("own", "last", 40000, 838, None, 0.88),
    ("own", "last", 300000, 111, 0.85, 0.85),
    ("own", "last", 2**25, 1, 0.85, 0.85),
    ("pivoted", "first", 200, 167772, 0.75, 0.75),
    ("pivoted", "first", 777, 43184, 0.75, 0.75),
    ("pivoted", "first", 3001, 11181, 0.60, 0.60),
    ("pivoted", "last", 200, 167772, 0.90, 0.90),
    ("pivoted", "last", 777, 43184, 0.90, 0.90),
    ("pivoted", "last", 3001, 11181, 0.90, 0.90),
    ("shared", "first", 200, 167772, 0.85, 0.90),
    ("shared", "first", 777, 43184, 0.85, 0.90),
    ("shared", "first", 3001, 11181, 0.85, 0.90),
    ("shared", "last", 200, 167772, 0.88, 0.92),
    ("shared", "last", 777, 43184, 0.88, 0.92),
    ("shared", "last", 3001, 11181, 0.88, 0.92),
)
# Rows of a square batch that fits the cache -> target in seconds, in float32 and float64.
_CACHED_BARS = {1022: (15e-6, 20e-6), 512: (6e-6, 8e-6)}
# Target of the speedup over the best peer, if a peer runs.
PEER_BAR = 4.0


@dataclass(frozen=True, kw_only=True)
class GpuCase(Batch):
    """A batch on the device.

    Parameters
    ----------
    part : str
        The part of the benchmark.
    matrix : {'own', 'checked', 'shared', 'factor', 'periodic', 'pivoted', ...}
        A matrix for each system; the same, with a test for dominance; one matrix for all; one for
        all, factored before; a periodic matrix for each; a matrix for each, not dominant. Of the
        part `steps`: 'product', 'theta' (`theta_step`), 'masked' (with `where`) and 'diffusion'
        (`implicit_diffusion` with one thickness), with a matrix for each system; '3 sides' and
        '10 sides', with a matrix for so many right-hand sides.
    axis, dtype, rows, systems
        As in `Batch`.
    method : str
        As in `solve_tridiagonal`.
    variant : int
        Variant of the method; 0 is its default.
    """

    part: str
    method: str = "auto"
    variant: int = 0

    @property
    def sides(self) -> int:
        """int: right-hand sides of each matrix."""
        return int(self.matrix.split()[0]) if self.matrix.endswith("sides") else 1

    @property
    def words(self) -> float:
        """float: smallest number of words moved per unknown."""
        if self.sides > 1:
            return 2 + 3 / self.sides
        if self.matrix == "masked":
            return 5 + 8 / int(self.dtype.removeprefix("float"))  # a byte of the mask
        return 3.0 if self.matrix == "diffusion" else super().words

    @staticmethod
    def inner(systems: int) -> int:
        """Return the length of the axis after a middle one: a power of two near the root."""
        return 2 ** round(math.log2(systems) / 2)

    @property
    def bar(self) -> float | None:
        """float or None: target of the package, as a fraction of the floor."""
        if self.method != "auto" or self.part in ("cached", "crossover", "small"):
            return None
        if self.part == "uneven":
            bars = {case[:3]: case[4:] for case in _UNEVEN}
            return bars[self.matrix, self.axis, self.rows][DTYPES.index(self.dtype)]
        if self.systems == 1:
            return _ONE_SYSTEM_BAR
        for matrices, axes, most, *fractions in _BARS:
            if self.matrix in matrices and self.axis in axes and _LEAST_ROWS <= self.rows <= most:
                return fractions[DTYPES.index(self.dtype)]
        return None

    @property
    def time_bar(self) -> float | None:
        """float or None: target for a batch in the cache, in seconds."""
        if self.part != "cached" or self.axis != "last" or self.rows != self.systems:
            return None
        bars = _CACHED_BARS.get(self.rows)
        return bars and bars[DTYPES.index(self.dtype)]

    @property
    def peer_bar(self) -> float | None:
        """float or None: target of the package, as speedup over the best peer."""
        return PEER_BAR if self.peers and self.part != "small" else None

    @property
    def peers(self) -> tuple[str, ...]:
        """tuple of str: the other packages that solve the same systems in the same layout."""
        if self.matrix != "own" or self.method != "auto" or self.part in ("crossover", "uneven"):
            return ()
        if self.part == "small":
            return ("cusparse strided", "jax", "torch")
        if self.axis == "last":
            return ("cusparse strided", "jax")
        if self.axis == "first":
            return tuple(f"cusparse interleaved {k}" for k in range(3))
        return ()


def cases(part: str, dtype: str, *, quick: bool = False) -> Iterator[GpuCase]:
    """Yield the cases of one part of the benchmark in one dtype."""
    for case in PARTS[part](part, dtype):
        if not quick:
            yield case
        elif case.rows in QUICK_ROWS or case.systems == 1 or part == "cached":
            yield _shrunk(case)


def _own(part: str, dtype: str) -> Iterator[GpuCase]:
    yield from _batches(part, "own", ("last",), dtype, (*EVERY_ROWS, *LONG_ROWS))
    yield GpuCase(part=part, matrix="own", axis="last", dtype=dtype, rows=UNKNOWNS, systems=1)


def _checked(part: str, dtype: str) -> Iterator[GpuCase]:
    yield from _batches(part, "checked", ("last",), dtype, (64, 512, 1000, 4096, 16384, 65536))


def _strided(part: str, dtype: str) -> Iterator[GpuCase]:
    yield from _batches(part, "own", ("first", "middle"), dtype, EVERY_ROWS)


def _shared(part: str, dtype: str) -> Iterator[GpuCase]:
    for matrix in ("shared", "factor"):
        yield from _batches(part, matrix, ("last", "first"), dtype, (512, 1000, 4096))


def _pivoted(part: str, dtype: str) -> Iterator[GpuCase]:
    yield from _batches(part, "pivoted", ("last",), dtype, SOME_ROWS)
    yield from _batches(part, "pivoted", ("first", "middle"), dtype, (512,))


def _periodic(part: str, dtype: str) -> Iterator[GpuCase]:
    yield from _batches(part, "periodic", ("last",), dtype, SOME_ROWS)
    yield from _batches(part, "periodic", ("first",), dtype, (512,))


def _uneven(part: str, dtype: str) -> Iterator[GpuCase]:
    for matrix, axis, rows, systems, *_ in _UNEVEN:
        yield GpuCase(part=part, matrix=matrix, axis=axis, dtype=dtype, rows=rows, systems=systems)


def _cached(part: str, dtype: str) -> Iterator[GpuCase]:
    for n in CACHED:
        for axis in ("last", "first"):
            yield GpuCase(part=part, matrix="own", axis=axis, dtype=dtype, rows=n, systems=n)


def _papers(part: str, dtype: str) -> Iterator[GpuCase]:
    for n in (64, 512, 1024, 4096):
        for systems in (UNKNOWNS // n, *((1024,) if n == 1024 else ())):
            one = GpuCase(
                part=part, matrix="own", axis="last", dtype=dtype, rows=n, systems=systems
            )
            yield replace(one, axis="first", method="thomas")
            for method in ("thomas", "cr", "pcr", "cr-pcr", "pcr-thomas", "partition"):
                yield replace(one, method=method)
            for variant in (1, 2, 3, 4):
                yield replace(one, method="pcr", variant=variant)


def _crossover(part: str, dtype: str) -> Iterator[GpuCase]:
    batches = [(CROSSOVER_ROWS, 2**k) for k in range(4, 18)]
    batches += [(rows, UNKNOWNS // rows) for rows in (2, 3, 4, 6, 8, 12, 16, 24)]
    for rows, systems in batches:
        for axis in ("first", "last"):
            for method in ("thomas", "partition"):
                yield GpuCase(
                    part=part,
                    matrix="own",
                    axis=axis,
                    dtype=dtype,
                    rows=rows,
                    systems=systems,
                    method=method,
                )


def _steps(part: str, dtype: str) -> Iterator[GpuCase]:
    for matrix in ("product", "theta", "masked", "diffusion"):
        yield from _batches(part, matrix, ("last", "first"), dtype, (64, 100, 512, 1000))
    for matrix in ("3 sides", "10 sides"):
        for case in _batches(part, matrix, ("last", "first"), dtype, (64, 100, 512, 1000)):
            yield replace(case, systems=case.systems - case.systems % case.sides)


def _small(part: str, dtype: str) -> Iterator[GpuCase]:
    for rows in SMALL_ROWS:
        for systems in SMALL_SYSTEMS:
            yield GpuCase(
                part=part, matrix="own", axis="last", dtype=dtype, rows=rows, systems=systems
            )


PARTS: dict[str, Callable[[str, str], Iterator[GpuCase]]] = {
    "own": _own,
    "checked": _checked,
    "strided": _strided,
    "shared": _shared,
    "pivoted": _pivoted,
    "periodic": _periodic,
    "uneven": _uneven,
    "cached": _cached,
    "papers": _papers,
    "crossover": _crossover,
    "small": _small,
    "steps": _steps,
}


def _batches(
    part: str, matrix: str, axes: tuple[str, ...], dtype: str, rows: tuple[int, ...]
) -> Iterator[GpuCase]:
    """Yield batches of about `UNKNOWNS` unknowns in all."""
    for axis in axes:
        for n in rows:
            systems = UNKNOWNS // n
            if axis == "middle":
                systems -= systems % GpuCase.inner(systems)
            yield GpuCase(part=part, matrix=matrix, axis=axis, dtype=dtype, rows=n, systems=systems)


def _shrunk(case: GpuCase) -> GpuCase:
    """Return `case` with about `QUICK_UNKNOWNS` unknowns."""
    if case.unknowns <= QUICK_UNKNOWNS:
        return case
    if case.systems == 1:
        return replace(case, rows=QUICK_UNKNOWNS)
    if case.part == "cached":
        return replace(case, rows=case.rows // 8, systems=case.systems // 8)
    systems = QUICK_UNKNOWNS // case.rows
    systems -= systems % case.sides
    if case.axis == "middle":
        systems -= systems % GpuCase.inner(systems)
    return replace(case, systems=systems)
