r"""Eigenvalues and eigenvectors of the rows of an axis, as matrices that are applied by products.

With V the volumes, g the couplings and D the differences of neighbours, the rows of an axis are

    A = -V^-1 D^T g D,    V^(1/2) A V^(-1/2) = -B^T B,    B = g^(1/2) D V^(-1/2),

so that the eigenvectors X of B^T B, X^T X = 1, give

    f^ = forward f,  forward = X^T V^(1/2),     u = backward u^,  backward = V^(-1/2) X.

Where an axis has a transform, the sines and cosines are known. Otherwise X begins as the result of
LAPACK (`scipy.linalg.eigh_tridiagonal`), with an absolute error of eps |B|^2 in each eigenvalue: on
stretched grids the small eigenvalues, which decide the solution, lose all digits by which the
largest exceeds them. If these are too many, X begins as the right singular vectors of B, with an
absolute error of eps |B| in each singular value.

X is then refined by matrix products (Ogita and Aishima 2018), which here need no higher precision:
B X is computed by differences of values of neighbours, so that

    S = (B X)^T (B X),    R = 1 - X^T X

have errors of eps |B x_i| |B x_j| and eps, relative to the eigenvalues of their own rows and
columns. With lambda_i = S_ii / (1 - R_ii),

    E_ij = (S_ij + lambda_j R_ij) / (lambda_j - lambda_i),    E_ii = R_ii / 2,    X := X (1 + E)

converges quadratically. Vectors whose eigenvalues are equal up to the error of X are first turned
to eigenvectors of their block of S. The relative error of each eigenvalue is then a few eps, for
any stretching. Where constants are a null vector, that vector and its eigenvalue 0 are exact.

Rows that are symmetric about the middle of the axis have even and odd eigenvectors. They are those
of the two problems on half the axis with a flux of zero or a value of zero in the middle.

A product takes 2 n operations per unknown, or n + 2 if the rows are symmetric; the set-up 10 n^3
for each refinement, of which there are one to three, or a quarter of that.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._errors import PysolversError
from .._extras import extra_module

Array = NDArray[np.float64]

_MOST = 12  # refinements
_CLOSE = 1e-9  # a change of the vectors after which the next one is below the rounding errors
_TURNED = 1e-2  # a change that is not small: the vectors are turned within their block
_NEAR = 1e-6  # relative distance of eigenvalues that are divided by no difference of theirs
_NOISE = 64  # rounding errors of a scalar product, and one for each term: they decide nothing
_LOST = 1e-3  # relative error of the smallest eigenvalue by LAPACK from which B itself is used


class Block(NamedTuple):
    """Matrices of some eigenvectors: of all, of the even, or of the odd ones.

    With f' the values f in reverse order, ``forward @ f`` are the amplitudes of all eigenvectors,
    ``forward @ (f + f')[:h]`` those of the even and ``forward @ (f - f')[:h]`` those of the odd
    ones; the columns are the first h = ceil(n / 2), odd: floor(n / 2), places. ``backward`` times
    the amplitudes are the values at these places.
    """

    forward: Array
    backward: Array


class Modes(NamedTuple):
    """Eigenvectors of the rows of an axis.

    Attributes
    ----------
    values : ndarray, shape (n,)
        The eigenvalues, none positive. The first one is next to zero.
    blocks : tuple of Block
        That of all eigenvectors; or, where the rows are symmetric about the middle, those of the
        even and of the odd eigenvectors, in the order of the eigenvalues.
    """

    values: Array
    blocks: tuple[Block, ...]

    @property
    def forward(self) -> Array:
        """Matrix that makes amplitudes of values."""
        if len(self.blocks) == 1:
            return self.blocks[0].forward
        even, odd = (block.forward for block in self.blocks)
        count = len(self.values)
        whole = np.zeros((count, count))
        for part, block, sign in ((whole[: len(even)], even, 1), (whole[len(even) :], odd, -1)):
            h = block.shape[1]
            part[:, :h] += block
            part[:, count - h :] += sign * block[:, ::-1]  # twice the middle one
        return whole

    @property
    def backward(self) -> Array:
        """Matrix that makes values of amplitudes; the inverse of `forward`."""
        if len(self.blocks) == 1:
            return self.blocks[0].backward
        even, odd = (block.backward for block in self.blocks)
        count = len(self.values)
        whole = np.zeros((count, count))
        for part, block, sign in (
            (whole[:, : len(even)], even, 1),
            (whole[:, len(even) :], odd, -1),
        ):
            part[count - len(block) :] = sign * block[::-1]
            part[: len(block)] = block
        return whole


def halved(values: Array, forward: Array, backward: Array) -> Modes:
    """Return the modes of matrices whose eigenvectors are even and odd in turn, from even on."""
    count = len(values)
    even, odd = slice(0, None, 2), slice(1, None, 2)
    half = (count + 1) // 2
    first = forward[even, :half].copy()
    if count % 2:
        first[:, -1] /= 2
    second = forward[odd, : count // 2].copy()
    columns = (
        np.ascontiguousarray(a) for a in (backward[:half, even], backward[: count // 2, odd])
    )
    blocks = tuple(Block(*pair) for pair in zip((first, second), columns, strict=True))
    return Modes(np.concatenate([values[even], values[odd]]), blocks)


class Rows(NamedTuple):
    """The rows of an axis.

    Attributes
    ----------
    name : str
        Of the axis, for messages.
    volumes : ndarray, shape (n,)
        The volumes.
    couplings : ndarray, shape (n + 1,)
        Those of neighbours and of the sides.
    length : float
        Length of the axis.
    is_periodic : bool
        Whether the last value couples to the first one, by ``couplings[0]``.
    has_null_vector : bool
        Whether the rows annihilate constants.
    """

    name: str
    volumes: Array
    couplings: Array
    length: float
    is_periodic: bool
    has_null_vector: bool

    @property
    def roots(self) -> Array:
        """Square roots of the volumes, as a column."""
        return np.sqrt(self.volumes)[:, None]

    def halves(self) -> tuple["Rows", "Rows"]:
        """Return the rows of the even and of the odd vectors, if the rows are symmetric."""
        count = len(self.volumes)
        half = (count + 1) // 2
        even, couplings = self.volumes[:half].copy(), self.couplings[: half + 1].copy()
        couplings[half] = 0.0
        odd = self.couplings[: count // 2 + 1].copy()
        if count % 2:
            even[-1] /= 2
        else:
            odd[-1] *= 2  # the middle is at half the distance
        rest = self.length, False
        return (
            Rows(self.name, even, couplings, *rest, self.has_null_vector),
            Rows(self.name, self.volumes[: count // 2], odd, *rest, False),
        )

    def strained(self, values: Array) -> Array:
        """Return sqrt(g) times the differences of neighbours, of the columns of an array.

        The values of the columns, not those of X, are rounded: the errors are those of a small
        change of the columns.
        """
        factors = np.sqrt(self.couplings)[:, None]
        if self.is_periodic:
            return factors[1:] * (np.roll(values, -1, 0) - values)
        end = np.zeros((1, values.shape[1]))
        return factors * np.diff(values, axis=0, prepend=end, append=end)


def eigenvectors(rows: Rows, *, is_symmetric: bool) -> Modes:
    """Return the eigenvectors of rows that have no transform.

    Parameters
    ----------
    rows : Rows
        The rows.
    is_symmetric : bool
        Whether they are the same in reverse order, and not periodic.

    Raises
    ------
    PysolversError
        If they do not converge.
    """
    if not is_symmetric or len(rows.volumes) == 1:
        values, block = _block(rows)
        return Modes(values, (block,))
    pairs = [_block(half) for half in rows.halves()]
    # With w = f + f', the even part is w / 2, and the odd one likewise.
    blocks = tuple(Block(block.forward / 2, block.backward) for _, block in pairs)
    return Modes(np.concatenate([values for values, _ in pairs]), blocks)


def _block(rows: Rows) -> tuple[Array, Block]:
    """Return the eigenvalues, from zero on, and the eigenvectors of rows."""
    roots = rows.roots
    vectors = _refined(rows, _start(rows))
    values = (rows.strained(vectors / roots) ** 2).sum(0) / (vectors**2).sum(0)
    if rows.has_null_vector:
        values[0] = 0.0
    order = np.argsort(values, kind="stable")
    vectors = vectors[:, order]
    return -values[order], Block(np.ascontiguousarray((vectors * roots).T), vectors / roots)


def _start(rows: Rows) -> Array:
    """Return eigenvectors by LAPACK, the null vector first if there is one."""
    linalg: Any = extra_module("scipy.linalg", "poisson")
    roots, couplings = rows.roots[:, 0], rows.couplings
    diag = (couplings[1:] + couplings[:-1]) / rows.volumes
    if diag.max() * rows.length**2 * np.finfo(float).eps > _LOST * np.pi**2:
        vectors = linalg.svd(rows.strained(np.diag(1 / roots)))[2][::-1].T
    elif rows.is_periodic:
        matrix = rows.strained(np.diag(1 / roots))
        vectors = linalg.eigh(matrix.T @ matrix)[1]
    else:
        vectors = linalg.eigh_tridiagonal(diag, -couplings[1:-1] / (roots[1:] * roots[:-1]))[1]
    if rows.has_null_vector:
        vectors[:, 0] = roots / np.sqrt(roots @ roots)
    return vectors


def _refined(rows: Rows, vectors: Array) -> Array:
    """Return eigenvectors whose eigenvalues have a small relative error."""
    for _ in range(_MOST):
        strained = rows.strained(vectors / rows.roots)
        if rows.has_null_vector:
            strained[:, 0] = 0.0
        products = strained.T @ strained
        defects = np.eye(len(vectors)) - vectors.T @ vectors
        values = np.diag(products) / (1 - np.diag(defects))
        gaps = values - values[:, None]
        change = products + values * defects
        # A gap of zero: the block is turned, or has nothing to turn.
        with np.errstate(divide="ignore", invalid="ignore"):
            change /= gaps
        sizes = np.sqrt(np.outer(values, values))
        rounding = (_NOISE + len(values)) * np.finfo(float).eps * sizes
        is_noise = np.abs(products) <= rounding
        is_equal = ~(np.abs(change) < np.where(is_noise, _CLOSE / 2, _TURNED))
        # The sum of entries (i, j) and (j, i) is R_ij in both forms, but not in a mixture of them.
        is_equal |= is_equal.T | (np.abs(gaps) < _NEAR * sizes)
        if rows.has_null_vector:  # which is exact: the others are made orthogonal to it
            is_equal[0] = is_equal[:, 0] = False
        change[is_equal] = defects[is_equal] / 2
        np.fill_diagonal(change, np.diag(defects) / 2)
        is_equal &= ~is_noise
        np.fill_diagonal(is_equal, False)
        if is_equal.any():
            _turn(vectors, products, is_equal)
            continue
        vectors = vectors + vectors @ change
        if np.abs(change).max() < _CLOSE:
            return vectors
    raise PysolversError(
        f"FastPoisson: the eigenvectors of the axis {rows.name} do not converge: "
        f"pass methods={{'{rows.name}': 'lines'}}"
    )


def _turn(vectors: Array, products: Array, is_equal: NDArray[np.bool_]) -> None:
    """Turn vectors whose eigenvalues are nearly equal to eigenvectors of their block."""
    graph: Any = extra_module("scipy.sparse.csgraph", "poisson")
    _, groups = graph.connected_components(is_equal, directed=False)
    for group in np.flatnonzero(np.bincount(groups) > 1):
        block = np.flatnonzero(groups == group)
        turned = np.linalg.eigh(products[np.ix_(block, block)])[1]
        vectors[:, block] = vectors[:, block] @ turned
