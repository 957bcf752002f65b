"""Answers by other means: nothing here is imported from the package.

Arrays hold one system along their last axis, shape (..., n): `lower`, `diag` and `upper`
all have n entries. ``lower[..., 0]`` and ``upper[..., -1]`` count in a periodic matrix only.
"""

from __future__ import annotations

import contextlib
import functools

import numpy as np
import scipy  # whose parts are imported where they are used: ranks start without them

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)
METHODS = ("thomas", "cr", "pcr", "cr-pcr", "pcr-thomas", "partition", "pivoted", "auto")
UNPIVOTED = METHODS[:6]

# 1 and 2 have no interior row; the rest straddles the lane widths 4, 8 and 16 and a block of
# 32 rows; 1000 is no power of two, which CR and PCR would like it to be.
ROWS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1000)

# Numbers of systems around every lane width, and one above the widest tile.
SYSTEMS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33)

# The type of residuals: double precision for single, long double for double precision.
_LONGER = {"f": np.float64, "d": np.longdouble, "F": np.complex128, "D": np.clongdouble}


def eps(dtype):
    """Return the spacing of 1 in the real type behind `dtype`."""
    return float(np.finfo(dtype).eps)


def uniform(rng, shape, dtype=np.float64):
    """Return uniform values in (-1, 1), in both parts of a complex number."""
    values = rng.uniform(-1, 1, shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * rng.uniform(-1, 1, shape)
    return np.asarray(values, dtype)


def dominant(rng, shape, dtype=np.float64):
    """Return random lower, diag, upper, rhs; every row is strictly diagonally dominant."""
    lower, upper, rhs = (uniform(rng, shape, dtype) for _ in range(3))
    size = np.abs(lower) + np.abs(upper) + rng.uniform(0.5, 1.5, shape)
    phase = uniform(rng, shape, dtype)
    return lower, np.asarray(size * phase / np.abs(phase), dtype), upper, rhs


def general(rng, shape, dtype=np.float64):
    """Return random lower, diag, upper, rhs that need row exchanges."""
    return tuple(uniform(rng, shape, dtype) for _ in range(4))


def multiply(lower, diag, upper, x, *, periodic=False):
    """Return A x."""
    return sum(_products(lower, diag, upper, x, periodic))


def _products(lower, diag, upper, x, periodic):
    below = lower * np.roll(x, 1, axis=-1)
    above = upper * np.roll(x, -1, axis=-1)
    if not periodic:
        below[..., :1] = 0
        above[..., -1:] = 0
    return below, diag * x, above


def dense(lower, diag, upper, *, periodic=False):
    """Return the matrices, shape (..., n, n)."""
    lower, diag, upper = np.broadcast_arrays(lower, diag, upper)
    rows = diag.shape[-1]
    matrix = np.zeros((*diag.shape, rows), np.result_type(lower, diag, upper))
    for i in range(rows):
        matrix[..., i, i] += diag[..., i]
        if i > 0 or periodic:
            matrix[..., i, (i - 1) % rows] += lower[..., i]
        if i < rows - 1 or periodic:
            matrix[..., i, (i + 1) % rows] += upper[..., i]
    return matrix


def solve(lower, diag, upper, rhs, *, periodic=False):
    """Return the solutions by dense LU with partial pivoting, in double precision."""
    wide = np.result_type(rhs, np.float64)
    lower, diag, upper, rhs = np.broadcast_arrays(lower, diag, upper, rhs)
    matrix = dense(lower, diag, upper, periodic=periodic).astype(wide)
    return np.linalg.solve(matrix, rhs.astype(wide)[..., None])[..., 0]


def transposed(lower, diag, upper, trans):
    """Return the diagonals of A, its transpose or its adjoint (periodic or not)."""
    if trans == "N":
        return lower, diag, upper
    swapped = np.roll(upper, 1, axis=-1), diag, np.roll(lower, -1, axis=-1)
    return tuple(np.conj(a) for a in swapped) if trans == "H" else swapped


def adjoint(lower, diag, upper, x, weight, *, periodic=False):
    """Return the gradients of Re sum(conj(w) x) for whole operands, in the convention of PyTorch.

    With g = A^-H w that with respect to rhs is g, and that with respect to the entry that
    multiplies x_j in row i is -g_i conj(x_j).
    """
    swapped = transposed(lower, diag, upper, "H")
    g = solve(*swapped, weight, periodic=periodic)
    before, after = np.roll(x, 1, -1), np.roll(x, -1, -1)
    if not periodic:
        before[..., 0] = after[..., -1] = 0
    return [-g * before.conj(), -g * x.conj(), -g * after.conj(), g]


def reduced(gradient, shape, first=0):
    """Sum a gradient over what its operand shares; `first` is the first entry of a short one."""
    if shape and shape[-1] == gradient.shape[-1] - 1:
        gradient = gradient[..., first : first + shape[-1]]
    gradient = gradient.sum(tuple(range(gradient.ndim - len(shape))))
    axes = tuple(k for k, n in enumerate(shape) if n == 1 < gradient.shape[k])
    return gradient.sum(axes, keepdims=True)


def backward_error(lower, diag, upper, rhs, x, *, periodic=False):
    """Return max_i |A x - b|_i / (|A| |x| + |b|)_i, the componentwise backward error.

    The residual is formed in long double, so the figure is that of `x`.
    """
    longer = np.clongdouble if np.iscomplexobj(x) else np.longdouble
    residual, scale = _residual(lower, diag, upper, rhs, x, longer, periodic)
    with np.errstate(invalid="ignore"):
        ratio = np.where(residual == 0, 0, residual / np.where(scale == 0, 1, scale))
    return float(np.max(ratio, initial=0))


def backward_errors(lower, diag, upper, rhs, x, *, periodic=False):
    """Return the normwise and the componentwise backward error of each system, shape (...).

    With r = A x - b they are max_i |r_i| / max_i (|A| |x| + |b|)_i and
    max_i |r_i| / (|A| |x| + |b|)_i, or infinite where x is not finite. The residual is formed in
    double precision for single, in long double for double precision.
    """
    with np.errstate(all="ignore"):
        residual, scale = _residual(lower, diag, upper, rhs, x, _LONGER[x.dtype.char], periodic)
        ratio = np.where(residual == 0, 0, residual / np.where(scale == 0, 1, scale))
        largest = np.max(scale, axis=-1, initial=0)
        normwise = np.max(residual, axis=-1, initial=0) / np.where(largest == 0, 1, largest)
    componentwise = np.max(ratio, axis=-1, initial=0)
    finite = np.all(np.isfinite(x), axis=-1)
    return tuple(
        np.where(finite & ~np.isnan(error), error, np.inf).astype(float)
        for error in (normwise, componentwise)
    )


def matrix_backward_error(lower, diag, upper, rhs, x, *, periodic=False):
    """Return max |A x - b| / (||A|| max |x| + max |b|) of each system, with the row sum norm.

    That is the least perturbation of A and b in norm that x solves exactly (Rigal and Gaches
    1967). Factors of A^T made with exchanges of the rows of A keep it small, but not the smaller
    denominators of `backward_errors` where the rows of A differ in size by powers of ten.
    """
    with np.errstate(all="ignore"):
        residual, _ = _residual(lower, diag, upper, rhs, x, _LONGER[x.dtype.char], periodic)
        sums = _row_sums(lower, diag, upper, periodic, x.real.dtype)
        size = np.max(sums, axis=-1) * np.max(np.abs(x), axis=-1) + np.max(np.abs(rhs), axis=-1)
        error = np.max(residual, axis=-1) / np.where(size == 0, 1, size)
    return np.where(np.isfinite(error), error, np.inf).astype(float)


def row_scaled_backward_error(lower, diag, upper, rhs, x, *, periodic=False):
    """Return the normwise backward error of each system after its rows are scaled to size 1.

    That is max_i |r_i| / s_i over max_i (|A| |x| + |b|)_i / s_i, with the row sums s_i of |A|. A
    method that scales the rows, or one without exchanges of rows, bounds this error only: where
    rows differ in size, an error that is small for one row can be large for another.
    """
    with np.errstate(all="ignore"):
        residual, scale = _residual(lower, diag, upper, rhs, x, _LONGER[x.dtype.char], periodic)
        sums = _row_sums(lower, diag, upper, periodic, scale.dtype)
        sums = np.where(sums > 0, sums, 1)
        size = np.max(scale / sums, axis=-1)
        error = np.max(residual / sums, axis=-1) / np.where(size == 0, 1, size)
    return np.where(np.isfinite(error), error, np.inf).astype(float)


def _row_sums(lower, diag, upper, periodic, dtype):
    """Return the sums of the magnitudes of the entries of each row."""
    lower, diag, upper = (np.abs(a).astype(dtype) for a in (lower, diag, upper))
    sums = lower + diag + upper
    if not periodic:
        sums[..., 0] -= lower[..., 0]
        sums[..., -1] -= upper[..., -1]
    return sums


def _residual(lower, diag, upper, rhs, x, longer, periodic):
    """Return |A x - b| and |A| |x| + |b|."""
    wide = [np.asarray(a, longer) for a in np.broadcast_arrays(lower, diag, upper, rhs, x)]
    products = _products(*wide[:3], wide[4], periodic)
    return np.abs(sum(products) - wide[3]), sum(np.abs(p) for p in products) + np.abs(wide[3])


def forward_error(x, exact):
    """Return ||x - exact|| / ||exact|| in the 2-norm."""
    return float(np.linalg.norm(x - exact) / np.linalg.norm(exact))


def gtsv(lower, diag, upper, rhs):
    """Return LAPACK's solution of one system: elimination with partial pivoting."""
    if len(diag) == 1:  # which SciPy's wrapper does not take
        if diag[0] == 0:
            raise np.linalg.LinAlgError("gtsv met a zero pivot in row 0")
        return rhs / diag
    (routine,) = scipy.linalg.get_lapack_funcs(("gtsv",), (diag, rhs))
    *_, x, info = routine(lower[1:], diag, upper[:-1], rhs)
    if info:
        raise np.linalg.LinAlgError(f"gtsv met a zero pivot in row {info - 1}")
    return x


def gtsv_forms(lower, diag, upper, rhs, *, scalings=2):
    """Yield LAPACK's solutions of one system written down in 2 + 2 * scalings ways.

    From either end, with its rows as they are and multiplied by numbers of (1, 2): to LAPACK's
    method the same system, whose errors are all its own. Where a matrix is nearly singular they
    differ by factors of 10 to 1000, as one direction takes nearly all of the error.
    """
    rng = np.random.default_rng(len(diag))
    for scale in (np.ones(len(diag)), *rng.uniform(1, 2, (scalings, len(diag)))):
        a, b, c, r = (np.asarray(scale * v, diag.dtype) for v in (lower, diag, upper, rhs))
        yield gtsv(a, b, c, r)
        yield gtsv(*(v[::-1].copy() for v in (c, b, a, r)))[::-1]


def folded_order(rows):
    """Return the rows of a periodic matrix in the order 0, rows - 1, 1, rows - 2, ...

    With rows and columns in this order, or in the reversed one, the matrix is a band of two sub-
    and two superdiagonals.
    """
    order = np.empty(rows, int)
    order[0::2] = np.arange((rows + 1) // 2)
    order[1::2] = np.arange(rows - 1, (rows - 1) // 2, -1)
    return order


def periodic_forms(lower, diag, upper, rhs, *, scalings=5):
    """Yield LAPACK's solutions of one periodic system by gbtrf, as `gtsv_forms` does.

    In the folded order from either end, with the rows as they are and multiplied by numbers of
    (1, 2). A form with a zero pivot is left out.
    """
    rows = len(diag)
    at = np.arange(rows)
    rng = np.random.default_rng(rows)
    for scale in (np.ones(rows), *rng.uniform(1, 2, (scalings, rows))):
        a, b, c, r = (np.asarray(scale * v, diag.dtype) for v in (lower, diag, upper, rhs))
        for order in (folded_order(rows), folded_order(rows)[::-1]):
            position = np.argsort(order)
            band = np.zeros((7, rows), diag.dtype)  # two rows of fill-in above the five diagonals
            for values, j in ((a, at - 1), (b, at), (c, at + 1)):
                column = position[j % rows]
                np.add.at(band, (4 + position - column, column), values)
            (routine,) = scipy.linalg.get_lapack_funcs(("gbsv",), (band, r))
            *_, x, info = routine(2, 2, band, r[order, None])
            if not info:
                yield x[position, 0]


def periodic_gate(lower, diag, upper, rhs, *, times):
    """Return a normwise backward error that elimination of one periodic system may have.

    A row that is no pivot for k steps takes k roundings. Where the coefficients are constant and a
    characteristic root is 1 or -1, these rows do not decay and the roundings have one sign: n
    roundings of n rows, if the matrix is singular to working precision; else `times` the largest
    error of `periodic_forms`.
    """
    unit = eps(diag.dtype)
    if condition(lower, diag, upper, periodic=True) >= 0.1 / unit:
        return len(diag) * unit
    system = lower, diag, upper, rhs
    bars = (backward_errors(*system, x, periodic=True)[0] for x in periodic_forms(*system))
    return times * max((float(bar) for bar in bars if np.isfinite(bar)), default=0.0)


def condition(lower, diag, upper, *, periodic=False):
    """Return an estimate of the condition number of one matrix in the 1-norm.

    It rests on SuperLU in double precision, with partial pivoting in the order of
    `folded_order`: a band, whose pivots grow by a factor of 7 at most. Orderings that reduce
    fill-in have no such bound: with them the estimate for a periodic matrix of condition 1e9700
    was 6e11. Infinite where a pivot is zero. Entries that add up, those of periodic matrices of
    one or two rows, count by their moduli in the norm.
    """
    rows = len(diag)
    at = np.arange(rows)
    position = np.argsort(folded_order(rows)) if periodic else at
    entries = [(at, at, diag), (at, (at - 1) % rows, lower), (at, (at + 1) % rows, upper)]
    if not periodic:
        entries[1:] = [tuple(a[1:] for a in entries[1]), tuple(a[:-1] for a in entries[2])]
    i, j, values = (np.concatenate(part) for part in zip(*entries, strict=True))
    i, j = position[i], position[j]
    wide = np.result_type(values, np.float64)
    from scipy.sparse import linalg as sparse_linalg

    matrix = scipy.sparse.csc_array((values.astype(wide), (i, j)), shape=(rows, rows))
    try:
        factors = sparse_linalg.splu(matrix, permc_spec="NATURAL")
    except RuntimeError:
        return np.inf
    with np.errstate(all="ignore"):
        probe = factors.solve(np.ones(rows, wide))
    if not np.all(np.isfinite(probe)):  # the estimate of a norm overlooks NaN
        return np.inf
    inverse = sparse_linalg.LinearOperator(
        (rows, rows),
        matvec=factors.solve,
        rmatvec=lambda y: factors.solve(y.astype(wide), "H"),
        dtype=wide,
    )
    with np.errstate(all="ignore"):
        size = np.max(np.bincount(j, np.abs(values))) * sparse_linalg.onenormest(inverse)
    return float(size) if np.isfinite(size) else np.inf


def gtsv_batch(lower, diag, upper, rhs):
    """Return LAPACK's solutions of systems of shape (systems, n); NaN where a pivot is zero."""
    x = np.full_like(rhs, np.nan)
    for k in range(len(rhs)):
        with contextlib.suppress(np.linalg.LinAlgError):
            x[k] = gtsv(lower[k], diag[k], upper[k], rhs[k])
    return x


def smallest_pivot(lower, diag, upper):
    """Return the smallest modulus of the pivots of LAPACK's factors of one matrix."""
    if len(diag) < 3:  # which SciPy's wrapper does not take: two more rows for themselves
        lower, upper = (np.concatenate([a, np.zeros(2, a.dtype)]) for a in (lower, upper))
        diag = np.concatenate([diag, np.repeat(np.max(np.abs(diag)), 2)]).astype(diag.dtype)
        lower[-2], upper[-3] = 0, 0
    (routine,) = scipy.linalg.get_lapack_funcs(("gttrf",), (diag,))
    return float(np.min(np.abs(routine(lower[1:], diag, upper[:-1])[1])))


def gttrs_batch(lower, diag, upper, rhs, trans):
    """Return LAPACK's solutions with factors: as gtsv_batch(), for n >= 3."""
    factor, apply = scipy.linalg.get_lapack_funcs(("gttrf", "gttrs"), (diag, rhs))
    x = np.full_like(rhs, np.nan)
    for k in range(len(rhs)):
        *factors, info = factor(lower[k, 1:], diag[k], upper[k, :-1])
        if not info:
            x[k] = apply(*factors, rhs[k, :, None], trans={"H": "C"}.get(trans, trans))[0][:, 0]
    return x


# The accuracy set of the field: C. Klein and R. Strzodka, "Tridiagonal GPU solver with scaled
# partial pivoting at maximum bandwidth", ICPP 2021, table 1.

ACCURACY_SET = tuple(range(1, 21))
NUMERICALLY_SINGULAR = (12, 13)


@functools.cache
def accuracy_draw(number, rows, seed):
    """Return lower, diag, upper, rhs and the exact solution of one draw of the set."""
    rng = np.random.default_rng([number, rows, seed])
    lower, diag, upper = accuracy_matrix(number, rows, rng)
    exact = rng.normal(3, 1, rows)
    return lower, diag, upper, multiply(lower, diag, upper, exact), exact


def accuracy_matrix(number, rows, rng):
    """Return lower, diag, upper of matrix `number`, 1 to 20, of the set."""
    if number in _RANDSVD_MODE:
        return _randsvd(rng, rows, 1e15, _RANDSVD_MODE[number])
    if number == 3:
        return _lesp(rows)
    if number == 7:
        return _inverse_kms(rows)
    if number == 13:
        return _dorr(rows, 1e-4)
    lower, diag, upper = rng.uniform(-1, 1, (3, rows))
    if number in _CONSTANT:
        return tuple(
            random if constant is None else np.full(rows, float(constant))
            for random, constant in zip((lower, diag, upper), _CONSTANT[number], strict=True)
        )
    if number == 4:
        lower[rows // 2] *= 1e-50
    elif number == 5:
        lower *= rng.integers(0, 2, rows)
        upper *= rng.integers(0, 2, rows)
    elif number == 12:
        lower *= 1e-50
    elif number != 1:
        raise ValueError(f"the set has the matrices 1 to 20, got {number}")
    return lower, diag, upper


_RANDSVD_MODE = {8: 2, 9: 3, 10: 1, 11: 4}

# lower, diag, upper; None is uniform in (-1, 1).
_CONSTANT = {
    2: (None, 1e8, None),
    6: (None, 64, None),
    14: (None, 1e-8, None),
    15: (None, 0, None),
    16: (1, 1e-8, 1),
    17: (1, 1e8, 1),
    18: (-1, 4, -1),
    19: (-1, 4, 1),
    20: (-1, 4, None),
}


def _lesp(rows):
    k = np.arange(1, rows + 1.0)
    return 1 / k, -(2 * k + 3), k + 1


def _inverse_kms(rows):
    diag = np.full(rows, 5 / 3)
    diag[[0, -1]] = 4 / 3
    off = np.full(rows, -2 / 3)
    return off, diag, off.copy()


def _dorr(rows, theta):
    i = np.arange(1, rows + 1)
    h = 1 / (rows + 1)
    diffusion = theta / h**2
    convection = (0.5 - i * h) / h
    left = i <= (rows + 1) // 2
    lower = np.where(left, -diffusion, -diffusion + convection)
    upper = np.where(left, -diffusion - convection, -diffusion)
    return lower, -(lower + upper), upper


def _randsvd(rng, rows, condition, mode):
    """Return a random matrix of given singular values, reduced to three diagonals."""
    matrix = _haar(rng, rows) * _singular_values(rows, condition, mode) @ _haar(rng, rows)
    for j in range(rows - 1):
        _reflect(matrix[j + 1 :, j:])
        _reflect(matrix[j:, j + 1 :].T)
    lower, upper = np.zeros((2, rows))
    lower[1:], upper[:-1] = np.diagonal(matrix, -1), np.diagonal(matrix, 1)
    return lower, np.diagonal(matrix).copy(), upper


def _singular_values(rows, condition, mode):
    if mode == 1:
        return np.concatenate([[1.0], np.full(rows - 1, 1 / condition)])
    if mode == 2:
        return np.concatenate([np.ones(rows - 1), [1 / condition]])
    if mode == 3:
        return np.geomspace(1, 1 / condition, rows)
    return np.linspace(1, 1 / condition, rows)


def _haar(rng, rows):
    q, r = np.linalg.qr(rng.standard_normal((rows, rows)))
    return q * np.sign(np.diagonal(r))


def _reflect(block):
    """Apply from the left the reflection that zeroes column 0 of `block` below row 0."""
    v = block[:, 0].copy()
    v[0] += np.copysign(np.linalg.norm(v), v[0])
    norm = np.linalg.norm(v)
    if norm > 0:
        v /= norm
        w = v @ block
        # The product has the memory order of the block, which can be a transpose.
        rows_first = block.strides[0] > block.strides[1]
        block -= np.outer(2 * v, w) if rows_first else np.outer(w, 2 * v).T
