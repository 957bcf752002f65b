"""Backward errors of families of systems whose solutions grow along the rows, against LAPACK's.

Each draw is one system of `growth_families`. The gates, with r = A x - b:

- Without `periodic`, max |r| / max (|A| |x| + |b|) is at most 10 times that of LAPACK's solution of
  the same system, or 20 eps; and so is the componentwise error, max |r_i| / (|A| |x| + |b|)_i.
- With `periodic` the normwise error is at most 50 eps. Constant coefficients give the answer of the
  Fourier transform in extended precision up to 50 eps times the condition number.
  A solution that misses 50 eps is allowed `oracle.periodic_gate`: n eps where the condition number
  is 0.1 / eps or more, else 10 times the error of LAPACK's gbtrf in the folded order 0, n - 1, 1,
  n - 2, ..., which near a characteristic root of 1 or -1 is up to 0.1 n eps.
- Factors used for the transposed matrix have up to 1e15 eps where the rows of the matrix differ in
  size, those of LAPACK's gbtrf alike, as x solves a system near the given one in norm only. So for
  trans="T" or "H" of such families max |r| / (||A|| max |x| + max |b|) is at most 50 eps; and
  without `periodic` at most 20 eps, if the other gates are missed.
- No matrix is reported as singular or has an answer that is not finite, if LAPACK's pivots are all
  normal numbers and at least 100 eps of the largest entry, or, for a periodic one, if its condition
  number is below 0.1 / eps.
- Where LAPACK's solution overflows, or comes within a factor of 2**8 of it, the solution is not
  finite or has a normwise error of at most 20 eps. A solution that is finite and wrong fails.

Rounding errors of one method in two orders of elimination differ on one draw by factors of 10 to
1000: of 14000 draws, gtsv on the rows in reversed order misses the gate normwise in 1 and
componentwise in 300. So where a solution misses the gate, LAPACK's error is taken to be the largest
of `oracle.gtsv_forms`: gtsv from either end, with the rows as they are and multiplied by 20 sets of
numbers of (1, 2).

With factors and the transposed matrix, 3 of 12000 solutions of the family "uniform" in float32 miss
the componentwise gate, by up to a factor of 3: kernels subtract the nearest unknown last, LAPACK's
gttrs subtracts it first. Such a part of a test, one solution at least, may miss it.

On a device, the joints of chunks contain unknowns of distant rows, and 2 percent of the solutions
of a test may miss the componentwise gate, as many as of gtsv on reversed rows. The normwise gates
hold for every draw, for the rows as they are or scaled to the same size: of 580000 draws on a model
of the kernel, 13 had up to 62 eps in the rows as they are, all of them with rows whose sizes differ
by factors of 16 to 256, and 1 had more than 16 eps (23 eps) in scaled rows.

A failure prints the calls that make its worst draws. PYSOLVERS_RANDOM_SEED chooses other draws.
"""

import os
import zlib

import growth_families
import numpy as np
import oracle
import pytest

SEED = int(os.environ.get("PYSOLVERS_RANDOM_SEED", "20240607"))

TIMES_LAPACK, FLOOR, PERIODIC = 10, 20, 50  # the last two in eps
RARE = {"cuda": 0.02}  # the part of the solutions that may miss the componentwise gate
RARE_TRANSPOSED = 5e-4  # the same with factors and the transposed matrix, on the CPU as well
CHUNK = 33  # rows of a chunk on a device; a block of the CPU has 16
# A call and its checks take longer than its systems, above all on a device: fewer lengths and more
# systems of each, other lengths in each test. tests/gpu/test_growth.py has all remainders of a
# chunk of a device, and the slow tests have them on the CPU.
FEWER = {"cpu": 6, "cuda": 6}
# Rows of long systems. The CPU cuts those of 2**18 rows or more into spans; a device makes several
# passes from 16896 rows on.
LONG = {"cpu": 300_000, "cuda": 75_000}

# Families whose rows differ in size; a piece of "piecewise" can be 1e-4 of another one.
OF_ALL_SIZES = ("piecewise", "changed row", "graded", "scaled", "nearly decoupled")
DTYPES = [np.dtype(dtype).name for dtype in oracle.DTYPES]
TRANSPOSED = [(dtype, t) for dtype in DTYPES for t in ("NTH" if dtype[0] == "c" else "NT")]
slow = pytest.mark.slow


class Draws:
    """Draws of one test, and those that miss a gate."""

    def __init__(self, dtype, rare=0.0, fewer=1, test=""):
        self.dtype = dtype
        self.rare = rare
        self.fewer = fewer
        self.first = zlib.crc32(test.encode()) % fewer
        self.eps = oracle.eps(dtype)
        self.tiny = float(np.finfo(dtype).tiny)
        self.nearly_huge = float(np.finfo(dtype).max) / 2**8
        self.count = self.solved = self.overflows = 0
        self.misses = []
        self.componentwise = []

    def lengths(self, rng, *, least=1, longest=30):
        """Return one number of rows for each remainder modulo a chunk, most of them small."""
        rows = CHUNK * rng.choice([0, 0, 1, 2, 3, 5, longest], CHUNK) + np.arange(CHUNK)
        return [int(n) if n >= least else int(n) + CHUNK for n in rows][self.first :: self.fewer]

    def draw(self, family, rows, systems, *seed):
        """Return the systems of one call of `growth_families.draw`, which a failure prints."""
        self.family = family
        seed = [SEED, *seed]
        self.text = f"growth_families.draw({family!r}, {self.dtype!r}, {rows}, {systems}, {seed})"
        self.count += systems
        return growth_families.draw(family, self.dtype, rows, systems, seed)

    def compare(self, system, lapack, answers, trans="N"):
        """Judge answers to the systems drawn last: text, solutions, systems reported singular."""
        bars = dict(zip(NAMES, oracle.backward_errors(*system, lapack), strict=True))
        with np.errstate(over="ignore"):  # the modulus of a complex number
            ordinary = np.max(np.abs(lapack), axis=-1) <= self.nearly_huge
        self.overflows += np.sum(~ordinary)
        for way, x, singular in self._new(answers):
            errors = dict(zip(NAMES, oracle.backward_errors(*system, x), strict=True))
            if self.rare:
                scaled = oracle.row_scaled_backward_error(*system, x)
                errors["normwise"] = np.minimum(errors["normwise"], scaled)
            judged = np.all(np.isfinite(x), axis=-1)
            judged[singular] = False
            for k in np.flatnonzero(ordinary & ~judged):
                matrix = [a[k] for a in system[:3]]
                pivot = oracle.smallest_pivot(*matrix)
                if pivot >= max(self.tiny, 100 * self.eps * np.max(np.abs(matrix))):
                    text = f"is singular or not finite, LAPACK's smallest pivot is {pivot:.3g}"
                    self._miss(way, k, np.inf, text)
            for k in np.flatnonzero(judged & ~ordinary):
                self._judge(way, k, "normwise", errors["normwise"][k], FLOOR * self.eps)
            judged &= ordinary
            for name in NAMES:
                for k in np.flatnonzero(judged & (errors[name] > self._gate(bars[name]))):
                    one = [a[k] for a in system]
                    if trans != "N" and self.family in OF_ALL_SIZES:
                        in_norm = oracle.matrix_backward_error(*one, x[k])
                        self._judge(way, k, "in norm", in_norm, FLOOR * self.eps)
                    elif not _reaches(errors[name][k], one, name, self._gate):
                        into = self.componentwise if name == "componentwise" else self.misses
                        gate = self._gate(bars[name][k])
                        self._judge(way, k, name, errors[name][k], gate, into)

    def compare_periodic(self, system, answers, trans="N"):
        """Judge answers to the periodic systems drawn last, as `compare` does."""
        for way, x, singular in self._new(answers):
            if trans != "N" and self.family in OF_ALL_SIZES:
                normwise = oracle.matrix_backward_error(*system, x, periodic=True)
            else:
                normwise, _ = oracle.backward_errors(*system, x, periodic=True)
            unsolved = ~np.isfinite(normwise)
            unsolved[singular] = True
            for k in np.flatnonzero(unsolved):
                condition = oracle.condition(*(a[k] for a in system[:3]), periodic=True)
                if condition < 0.1 / self.eps:
                    text = f"is singular or not finite, its condition number is {condition:.3g}"
                    self._miss(way, k, np.inf, text)
            for k in np.flatnonzero(~unsolved & (normwise > PERIODIC * self.eps)):
                gate = oracle.periodic_gate(*(a[k] for a in system), times=TIMES_LAPACK)
                self._judge(way, k, "normwise", normwise[k], max(gate, PERIODIC * self.eps))

    def judge_all(self, way, name, errors, gates):
        """Judge one figure of each system drawn last."""
        self.solved += len(errors)
        for k in range(len(errors)):
            self._judge(way, k, name, errors[k], gates[k])

    def check(self):
        """Fail if a solution misses a gate, with the calls that make the worst ones."""
        few = len(self.componentwise) <= max(self.rare * self.solved, 1 if self.rare else 0)
        misses = self.misses + ([] if few else self.componentwise)
        worst = sorted(misses, key=lambda miss: miss[0], reverse=True)[:5]
        assert not misses, (
            f"{len(misses)} of {self.solved} solutions of {self.count} draws miss a gate "
            f"with PYSOLVERS_RANDOM_SEED={SEED}. The worst:\n"
            + "\n".join(text for _, text in worst)
        )

    def _new(self, answers):
        """Yield answers that are not the same bits as one before."""
        seen = []
        for way, x, singular in answers:
            self.solved += len(x)
            if not any(np.array_equal(x, other, equal_nan=True) for other in seen):
                seen.append(x)
                yield way, x, np.asarray(singular, int)

    def _gate(self, lapack):
        return np.maximum(TIMES_LAPACK * lapack, FLOOR * self.eps)

    def _judge(self, way, k, name, error, gate, into=None):
        if not error <= gate:
            text = f"{name} error {error / self.eps:.3g} eps, gate {gate / self.eps:.3g} eps"
            self._miss(way, k, error, text, into)

    def _miss(self, way, k, size, text, into=None):
        into = self.misses if into is None else into
        into.append((size, f"{self.text}, system {k}, {way}: {text}"))


@pytest.fixture
def draws(dtype, backend, record_property, request):
    """The draws of a test, whose number goes into the report."""
    is_slow = backend == "cpu" and request.node.get_closest_marker("slow") is not None
    fewer = 1 if is_slow else FEWER[backend]
    made = Draws(dtype, RARE.get(backend, 0.0), fewer, request.node.name)
    yield made
    record_property("cases", made.count)
    record_property("componentwise_misses", len(made.componentwise))
    record_property("seed", SEED)


NAMES = ("normwise", "componentwise")


def _reaches(error, system, name, gate):
    """Whether an error is within the gate for LAPACK's solution of a form of one system."""
    which = NAMES.index(name)
    scalings = 20 if len(system[1]) < 10_000 else 2
    for x in oracle.gtsv_forms(*system, scalings=scalings):
        bar = oracle.backward_errors(*system, x)[which]
        if np.isfinite(bar) and error <= gate(bar):
            return True
    return False


def turned(arrays, axis):
    """Return arrays whose systems run along `axis`; scalars stay scalars."""
    return [
        np.ascontiguousarray(np.moveaxis(np.atleast_2d(a), -1, axis)) if np.ndim(a) else a
        for a in arrays
    ]


def solutions(solve, operands, **options):
    """Yield the solutions along both axes, with the default and with pivot=True."""
    for axis in (1, 0):
        for pivot in (None, True):
            x, info = solve(
                *turned(operands, axis),
                axis=axis,
                pivot=pivot,
                on_singular="ignore",
                return_info=True,
                **options,
            )
            yield f"axis={axis}, pivot={pivot}", np.moveaxis(x, axis, -1), info.singular[:, 0]


def factored(factor, operands, trans, **options):
    """Yield the solutions with factors of the matrices along both axes."""
    for axis in (1, 0):
        *diagonals, sides = turned(operands, axis)
        f = factor(*diagonals, axis=axis, on_singular="ignore", **options)
        x = np.moveaxis(f.solve(sides, trans=trans), axis, -1)
        singular = f.info.singular[:, 0]
        if len(singular) and len(x) != f.info.systems:  # one matrix for all
            singular = np.arange(len(x))
        yield f"trans={trans}, axis={axis}", x, singular


SHARINGS = ("shared", "scalars", "one number a system", "one diagonal of each kind")


def share(sharing, draws, rng, part, *, systems=9, least=1):
    """Yield operands that share a matrix or repeat numbers, and the full systems they mean."""
    for rows in draws.lengths(rng, least=least):
        if sharing == "shared":
            family = rng.choice(list(growth_families.FAMILIES))
        else:
            family = rng.choice(list(growth_families.CONSTANT))
        system = draws.draw(str(family), rows, systems * draws.fewer, part)
        *matrix, rhs = system
        if sharing == "one number a system":
            given = [a[:, :1] for a in matrix]
        else:
            matrix = [np.repeat(a[:1], len(a), axis=0) for a in matrix]
            given = [a[0] for a in matrix]
            if sharing == "scalars":
                given = [a[0].item() for a in given]
            elif sharing == "one diagonal of each kind":
                given = [given[0][0].item(), matrix[1][:, :1], matrix[2]]
        yield (*given, rhs), (*matrix, rhs)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", growth_families.FAMILIES)
@pytest.mark.parametrize(
    ("parts", "systems", "longest"), [(1, 2, 30), pytest.param(10, 8, 120, marks=slow)]
)
def test_backward_error_is_that_of_lapack(solve, draws, family, parts, systems, longest):
    """A sixth of the remainders modulo a chunk: 2640 draws, and 105600 under the slow marker."""
    for part in range(parts):
        for rows in draws.lengths(np.random.default_rng([SEED, 1, part]), longest=longest):
            system = draws.draw(family, rows, systems * draws.fewer, 1, part)
            draws.compare(system, oracle.gtsv_batch(*system), solutions(solve, system))
    draws.check()


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("parts", [1, pytest.param(10, marks=slow)])
def test_shared_and_repeated_coefficients(solve, draws, sharing, parts):
    for part in range(parts):
        rng = np.random.default_rng([SEED, 2, part])
        for given, system in share(sharing, draws, rng, part):
            draws.compare(system, oracle.gtsv_batch(*system), solutions(solve, given))
    draws.check()


@pytest.mark.each_value
@pytest.mark.parametrize(("dtype", "trans"), TRANSPOSED)
@pytest.mark.parametrize("family", growth_families.FAMILIES)
@pytest.mark.parametrize(("parts", "systems"), [(1, 1), pytest.param(8, 8, marks=slow)])
def test_factors(factor, draws, family, trans, parts, systems):
    if trans != "N":
        draws.rare = max(draws.rare, RARE_TRANSPOSED)
    for part in range(parts):
        for rows in draws.lengths(np.random.default_rng([SEED, 3, part]), least=3):
            *matrix, rhs = draws.draw(family, rows, systems * draws.fewer, 3, part)
            lapack = oracle.gttrs_batch(*matrix, rhs, trans)
            system = (*oracle.transposed(*matrix, trans), rhs)
            draws.compare(system, lapack, factored(factor, (*matrix, rhs), trans), trans)
    draws.check()


@pytest.mark.each_value
@pytest.mark.parametrize(("dtype", "trans"), TRANSPOSED)
@pytest.mark.parametrize("sharing", SHARINGS)
def test_factors_of_shared_and_repeated_coefficients(factor, draws, sharing, dtype, trans):
    rng = np.random.default_rng([SEED, 4])
    for given, (*matrix, rhs) in share(sharing, draws, rng, 4, systems=3, least=3):
        *diagonals, _ = given
        if all(np.ndim(a) == 0 for a in diagonals):
            diagonals = [np.full(rhs.shape[-1], a, dtype) for a in diagonals]
        elif sharing == "one number a system":
            diagonals[1] = matrix[1]  # the number of rows must be known
        lapack = oracle.gttrs_batch(*matrix, rhs, trans)
        system = (*oracle.transposed(*matrix, trans), rhs)
        draws.compare(system, lapack, factored(factor, (*diagonals, rhs), trans), trans)
    draws.check()


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", growth_families.FAMILIES)
@pytest.mark.parametrize("parts", [1, pytest.param(20, marks=slow)])
def test_periodic(solve, draws, family, parts):
    for part in range(parts):
        for rows in draws.lengths(np.random.default_rng([SEED, 5, part])):
            system = draws.draw(family, rows, 2 * draws.fewer, 5, part)
            draws.compare_periodic(system, solutions(solve, system, periodic=True))
    draws.check()


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sharing", SHARINGS)
def test_periodic_shared_and_repeated_coefficients(solve, draws, sharing):
    rng = np.random.default_rng([SEED, 6])
    for given, system in share(sharing, draws, rng, 6):
        draws.compare_periodic(system, solutions(solve, given, periodic=True))
    draws.check()


@pytest.mark.each_value
@pytest.mark.parametrize(("dtype", "trans"), TRANSPOSED)
@pytest.mark.parametrize("family", growth_families.FAMILIES)
@pytest.mark.parametrize("parts", [1, pytest.param(10, marks=slow)])
def test_periodic_factors(factor, draws, family, trans, parts):
    for part in range(parts):
        for rows in draws.lengths(np.random.default_rng([SEED, 7, part])):
            *matrix, rhs = draws.draw(family, rows, draws.fewer, 7, part)
            system = (*oracle.transposed(*matrix, trans), rhs)
            answers = factored(factor, (*matrix, rhs), trans, periodic=True)
            draws.compare_periodic(system, answers, trans)
    draws.check()


def by_transform(lower, diag, upper, rhs):
    """Return the solution and the condition number of a periodic matrix with constant l, d, u.

    Its eigenvectors are exp(2 pi i j k / n), its eigenvalues l / w + d + u w with w = exp(2 pi i k
    / n); as it is normal, their largest modulus over the smallest is its condition number.
    """
    rows = rhs.shape[-1]
    turn = np.exp(2j * np.arctan2(np.longdouble(0), -1) * np.arange(rows) / rows)
    lower, diag, upper = (np.asarray(a, np.clongdouble) for a in (lower, diag, upper))
    values = lower / turn + diag + upper * turn
    size = np.abs(values)
    with np.errstate(all="ignore"):  # an eigenvalue may be zero: the condition is infinite then
        x = np.fft.ifft(np.fft.fft(rhs.astype(np.clongdouble)) / values)
        condition = np.max(size, -1) / np.min(size, -1)
    return x if np.iscomplexobj(rhs) else x.real, condition


def ratio(x, exact):
    """Return ||x - exact|| / ||exact|| of each system, in the 2-norm."""
    with np.errstate(all="ignore"):
        error = np.linalg.norm((x - exact).astype(complex), axis=-1)
        return error / np.linalg.norm(exact.astype(complex), axis=-1)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", growth_families.CONSTANT)
@pytest.mark.parametrize("parts", [1, pytest.param(40, marks=slow)])
def test_periodic_constant_coefficients_against_the_transform(solve, factor, draws, family, parts):
    for part in range(parts):
        for rows in draws.lengths(np.random.default_rng([SEED, 8, part]), least=3):
            *matrix, rhs = draws.draw(family, rows, 2 * draws.fewer, 8, part)
            columns = [a[:, :1] for a in matrix]
            exact, condition = by_transform(*columns, rhs)
            judged = condition < 0.1 / draws.eps
            gates = np.where(judged, PERIODIC * draws.eps * condition, np.inf)
            found = {way: x for way, x, _ in solutions(solve, (*columns, rhs), periodic=True)} | {
                "factor": factor(*matrix, periodic=True, on_singular="ignore").solve(rhs)
            }
            for way, x in found.items():
                draws.judge_all(way, "forward", np.where(judged, ratio(x, exact), 0), gates)
    draws.check()


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("rows", "lower", "diag", "upper"),
    [
        (128, 1.4, 1.2, -1.6),  # advection-diffusion, c = -1.5, nu = 0.1: condition 3.2
        (256, 1.2, 1.6, -1.8),  # c = -1.5, nu = 0.3: 3.4
        (256, 2.9, 1.2, -3.1),  # c = -3, nu = 0.1: 6.1
        (512, 1.45, 1.1, -1.55),  # c = -1.5, nu = 0.05: 3.2
        (256, 0.57, -0.6, -0.67),  # 2.8
        (200, 0.46, -0.93, -0.94),  # 3.8
    ],
)
@pytest.mark.parametrize("mirrored", [False, True])
def test_well_conditioned_periodic_matrices_that_grow(
    solve, factor, rng, rows, lower, diag, upper, mirrored
):
    """Gaussian elimination with partial pivoting in order loses all digits of these."""
    if mirrored:
        lower, upper = upper, lower
    rhs = oracle.uniform(rng, (3, rows))
    exact, condition = by_transform(lower, diag, upper, rhs)
    assert condition < 7

    x = solve(lower, diag, upper, rhs, periodic=True)
    by_factor = factor(lower, np.full(rows, diag), upper, periodic=True).solve(rhs)

    assert np.max(ratio(x, exact)) <= PERIODIC * condition * oracle.eps(float)
    assert np.max(ratio(by_factor, exact)) <= PERIODIC * condition * oracle.eps(float)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_solution_that_overflows_is_not_finite(solve, draws):
    """No finite answer where LAPACK's overflows, unless its backward error is small."""
    for part, rows in enumerate((200, 333, 1000, 2001)):
        for family in ("roots", "uniform constant", "piecewise"):
            system = draws.draw(family, rows, 40, 9, part)
            draws.compare(system, oracle.gtsv_batch(*system), solutions(solve, system))
    assert draws.overflows >= draws.count / 20
    draws.check()


# In the default run only families that chunks find hard; of complex numbers with the width that
# has twice the lanes.
HARD = {"float64": ("uniform constant", "piecewise"), "complex128": ()}
OF_LONG_SYSTEMS = [
    pytest.param(
        family, dtype, marks=() if family in HARD.get(dtype, ("uniform constant",)) else slow
    )
    for dtype in DTYPES
    for family in growth_families.FAMILIES
]


@pytest.mark.parametrize(("family", "dtype"), OF_LONG_SYSTEMS)
@pytest.mark.parametrize("parts", [1, pytest.param(8, marks=slow)])
def test_long_systems(solve, backend, draws, family, parts):
    for part in range(parts):
        system = draws.draw(family, LONG[backend] + 7 * part, 3, 10, part)
        draws.compare(system, oracle.gtsv_batch(*system), solutions(solve, system))
    draws.check()
