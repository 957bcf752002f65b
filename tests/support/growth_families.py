"""Seeded tridiagonal systems, ordered by how their solutions grow along the rows.

Let the coefficients be constant along the rows: l x[i-1] + d x[i] + u x[i+1] = b[i]. Solutions of
the homogeneous equation are z**i, where z is a root of u z^2 + d z + l, the characteristic
polynomial. Elimination in order is stable wherever the two roots lie (partial pivoting lets the
pivots grow by a factor of 2 at most). An algorithm that cuts a system into chunks, or that folds a
periodic one, meets inner matrices whose inverses grow as |z|**rows, although the whole matrix is
well conditioned. The families cover every position of the roots, and matrices that differ from
constant ones in a few rows, by scalings or by weak couplings.

Arrays have the shape (systems, rows), as in `oracle`.
"""

from __future__ import annotations

import zlib

import numpy as np
import oracle

# Decades of the scale factors of rows and columns, so that products stay far from overflow.
_DECADES = {np.dtype(np.float32): 4, np.dtype(np.float64): 30}


def draw(family, dtype, rows, systems, seed):
    """Return lower, diag, upper, rhs of `systems` matrices of `family`.

    Parameters
    ----------
    family : str
        A key of `FAMILIES`.
    dtype : dtype_like
        One of `oracle.DTYPES`. Complex dtypes have complex coefficients and roots.
    rows, systems : int
        Shape (systems, rows) of each array.
    seed : sequence of int
        The same arguments give the same systems. A right-hand side is uniformly random, or the
        product with a uniformly random solution.
    """
    dtype = np.dtype(dtype)
    name = zlib.crc32(f"{family} {dtype.name}".encode())
    rng = np.random.default_rng([*seed, name, rows, systems])
    matrix = [
        _as(dtype, np.broadcast_to(a, (systems, rows)))
        for a in FAMILIES[family](rng, systems, rows, dtype)
    ]
    rhs = oracle.uniform(rng, (systems, rows), dtype)
    with np.errstate(all="ignore"):
        product = oracle.multiply(*(a.astype(np.result_type(dtype, float)) for a in matrix), rhs)
    chosen = rng.random((systems, 1)) < 0.4
    return *matrix, np.where(chosen, _as(dtype, product), rhs)


def _as(dtype, a):
    """Return a copy of `a` in `dtype`; a real one takes the real part."""
    return np.array(a if dtype.kind == "c" else np.real(a), dtype)


def _value(rng, shape, dtype):
    """Return uniform values of (-1, 1), complex ones for a complex dtype."""
    return oracle.uniform(rng, shape, np.complex128 if dtype.kind == "c" else np.float64)


def _log_uniform(rng, low, high, shape):
    """Return values whose decimal logarithm is uniform in (low, high)."""
    return 10.0 ** rng.uniform(low, high, shape)


# Position of the two characteristic roots: the signs of log |z|.
_POSITIONS = np.array([(-1, -1), (1, 1), (-1, 1), (1, -1), (0, 0), (0, -1), (1, 0)])


def _from_roots(rng, systems, rows, dtype):
    """Return l, d, u, shape (systems, 1), of random roots in every position.

    log |z| is log-uniform between 1 / rows and 1.5, so that a solution changes by a factor between
    2.7 and far beyond overflow. Where a real matrix has both roots on the same side of the unit
    circle, or on it, half of the pairs are conjugate.
    """
    shape = (systems, 1)
    position = _POSITIONS[rng.integers(len(_POSITIONS), size=shape)]
    exponent = np.exp(rng.uniform(np.log(1 / rows), np.log(1.5), (systems, 1, 2)))
    modulus = np.exp(position * exponent)
    angle = rng.uniform(0, 2 * np.pi, (systems, 1, 2))
    if dtype.kind != "c":
        same = (position[..., 0] == position[..., 1]) & (rng.random(shape) < 0.5)
        modulus[..., 1] = np.where(same, modulus[..., 0], modulus[..., 1])
        real = np.pi * rng.integers(0, 2, angle.shape)
        conjugate = np.stack([angle[..., 0], -angle[..., 0]], -1)
        angle = np.where(same[..., None], conjugate, real)
    z = modulus * np.exp(1j * angle)
    size = _value(rng, shape, dtype)
    upper = size / np.maximum(1, np.max(modulus, -1) ** 2)
    matrix = upper * z[..., 0] * z[..., 1], -upper * (z[..., 0] + z[..., 1]), upper
    return matrix if dtype.kind == "c" else tuple(np.real(a) for a in matrix)


def _uniform_constant(rng, systems, rows, dtype):
    """Return l, d, u, shape (systems, 1), uniform in (-1, 1)."""
    return tuple(_value(rng, (systems, 1), dtype) for _ in range(3))


def _constant(rng, systems, rows, dtype):
    """Return constant l, d, u: by their roots, or uniform, half of each."""
    chosen = rng.random((systems, 1)) < 0.5
    pair = (make(rng, systems, rows, dtype) for make in (_from_roots, _uniform_constant))
    return tuple(np.where(chosen, a, b) for a, b in zip(*pair, strict=True))


def _piecewise(rng, systems, rows, dtype):
    """Return two to six pieces, each with constant coefficients of its own."""
    pieces = [_constant(rng, systems, rows, dtype) for _ in range(6)]
    ends = np.sort(rng.integers(0, 3 * rows, (systems, 1, 5)), axis=-1)
    ends[..., 0] %= rows  # at least one change of the coefficients, where there are two rows
    piece = np.sum(np.arange(rows)[:, None] >= ends, axis=-1)
    return tuple(
        np.take_along_axis(np.concatenate(one, axis=1), piece, axis=1)
        for one in zip(*pieces, strict=True)
    )


def _changed_row(rng, systems, rows, dtype):
    """Return constant coefficients but for one row, which is 1e-8 to 1e8 times as large."""
    matrix = np.stack(_full(_constant(rng, systems, rows, dtype), systems, rows))
    row = rng.integers(rows, size=systems)
    size = _log_uniform(rng, -8, 8, systems)
    matrix[:, np.arange(systems), row] = size * _value(rng, (3, systems), dtype)
    return matrix


def _base(rng, systems, rows, dtype):
    """Return a constant, piecewise constant or random matrix, each with probability 1/3."""
    makers = (_constant, _piecewise, _uniform)
    made = [_full(make(rng, systems, rows, dtype), systems, rows) for make in makers]
    kind = rng.integers(len(makers), size=(systems, 1))
    return tuple(np.choose(kind, one) for one in zip(*made, strict=True))


def _graded(rng, systems, rows, dtype):
    """Return D A or D A D, where D is geometric along the rows."""
    span = rng.uniform(-1, 1, (systems, 1)) * _decades(dtype)
    scale = 10.0 ** (span * np.linspace(-0.5, 0.5, rows))
    both = rng.random((systems, 1)) < 0.5
    return _scale(_base(rng, systems, rows, dtype), scale, np.where(both, scale, 1))


def _scaled(rng, systems, rows, dtype):
    """Return D A E, where D and E are random scalings, smooth ones or the identity."""
    d, e = (_scaling(rng, systems, rows, dtype) for _ in range(2))
    return _scale(_base(rng, systems, rows, dtype), d, e)


def _scaling(rng, systems, rows, dtype):
    decades = _decades(dtype) * rng.random((systems, 1))
    rough = rng.uniform(-0.5, 0.5, (systems, rows))
    wave = rng.uniform(0, 20, (systems, 1)) * np.linspace(0, 1, rows)
    kind = rng.integers(3, size=(systems, 1))
    return 10.0 ** (decades * np.choose(kind, [rough, 0.5 * np.sin(wave), 0 * rough]))


def _scale(matrix, left, right):
    lower, diag, upper = matrix
    return (
        left * lower * np.roll(right, 1, axis=-1),
        left * diag * right,
        left * upper * np.roll(right, -1, axis=-1),
    )


def _helmholtz(rng, systems, rows, dtype):
    """Return (1, -2 cos t, 1) times a number, where t is 1e-3 to 1e-15 from a resonance."""
    mode = rng.integers(1, rows + 1, (systems, 1)) * np.pi / (rows + 1)
    off = _log_uniform(rng, -15, -3, (systems, 1)) * rng.choice([-1, 1], (systems, 1))
    size = _value(rng, (systems, 1), dtype)
    return size, -2 * np.cos(mode + off) * size, size


def _nearly_decoupled(rng, systems, rows, dtype):
    """Return blocks whose couplings are 1e-1 to 1e-20 of the other entries, or zero.

    The blocks end at random rows or at multiples of 16, 32 or 33; one coupling is weak or both are.
    """
    lower, diag, upper = (a.copy() for a in _base(rng, systems, rows, dtype))
    row = np.arange(rows)
    step = rng.choice([16, 32, 33], (systems, 1))
    at_random = rng.random((systems, rows)) < rng.uniform(0.01, 0.3, (systems, 1))
    cut = np.where(rng.random((systems, 1)) < 0.5, at_random, row % step == 0)
    weak = _log_uniform(rng, -20, -1, (systems, rows)) * (rng.random((systems, 1)) < 0.8)
    which = rng.integers(1, 4, (systems, 1))
    lower = np.where(cut & (which & 1 > 0), weak * lower, lower)
    end = np.roll(cut, -1, axis=-1)
    upper = np.where(end & (which & 2 > 0), np.roll(weak, -1, axis=-1) * upper, upper)
    return lower, diag, upper


def _uniform(rng, systems, rows, dtype):
    """Return l, d, u uniform in (-1, 1), row by row."""
    return tuple(_value(rng, (systems, rows), dtype) for _ in range(3))


def _advection(rng, systems, rows, dtype):
    """Return one implicit step of u_t + c u_x = nu u_xx with central differences.

    c has either sign; c and nu are in units of the mesh and the step. A complex dtype gets a
    complex nu, as the step of a Schroedinger equation has.
    """
    shape = (systems, 1)
    speed = _log_uniform(rng, -3, 3, shape) * rng.choice([-1, 1], shape)
    viscosity = _log_uniform(rng, -4, 3, shape) * (rng.random(shape) < 0.9)
    if dtype.kind == "c":
        viscosity = viscosity * np.exp(1j * rng.uniform(-0.5, 0.5, shape) * np.pi)
    return -(viscosity + speed), 1 + 2 * viscosity, -(viscosity - speed)


def _decades(dtype):
    return _DECADES[np.finfo(dtype).dtype]


def _full(matrix, systems, rows):
    return [np.broadcast_to(a, (systems, rows)) for a in matrix]


# Coefficients that are constant along the rows: shape (systems, 1).
CONSTANT = {
    "roots": _from_roots,
    "uniform constant": _uniform_constant,
    "advection": _advection,
    "helmholtz": _helmholtz,
}

FAMILIES = {
    **CONSTANT,
    "piecewise": _piecewise,
    "changed row": _changed_row,
    "graded": _graded,
    "scaled": _scaled,
    "nearly decoupled": _nearly_decoupled,
    "uniform": _uniform,
}
