"""spikes_solve() of the extension: systems, and the outermost columns of the inverses.

Operands have the shape (outer, inner, rows). A column T^-1 e is checked as a solution of
T y = c e, and x bit by bit with tridiag_solve(), which has the oracles of the other tests.
"""

import numpy as np
import oracle
import pytest

from pysolvers import _core

AUTO, NEVER = _core.PIVOTS["auto"], _core.PIVOTS["never"]
THOMAS, DEFAULT = _core.METHODS["thomas"], _core.METHODS["auto"]
BOUND = 8  # eps
ORDERS = {"rows": (0, 1, 2), "inner": (0, 2, 1), "outer": (2, 1, 0)}  # the fastest axis last


def laid(array, order, gap=0):
    """Return a copy whose memory has the axes in this order, with gaps between the lines."""
    shape = [array.shape[axis] for axis in order]
    room = np.full((*shape[:-1], shape[-1] + gap), np.nan, array.dtype)
    view = room[..., : shape[-1]].transpose(np.argsort(order))
    view[...] = array
    return view


def solved(operands, *, sides="lu", method=DEFAULT, pivot=AUTO, flags=0, threads=1, like=None):
    """Return status, report, info, x, left and right; outputs have the layout of `like`."""
    like = operands[3] if like is None else like
    x, left, right = (np.full_like(like, np.nan) for _ in range(3))
    info = np.full(like.shape[0] * like.shape[1], -1, np.int32)
    columns = left if "l" in sides else None, right if "u" in sides else None
    answer = _core.spikes_solve(method, pivot, flags, *operands, x, *columns, info, threads)
    return *answer, info, x, left, right


def check(operands, answer, sides="lu"):
    """Check an answer, with what must not count in the matrices as zero."""
    status, report, info, x, left, right = answer
    assert status == 0
    assert report["pivoted"] == 0
    assert not info.any()
    lower, diag, upper, rhs = operands
    first, last = np.zeros_like(rhs), np.zeros_like(rhs)
    first[..., 0], last[..., -1] = lower[..., 0], upper[..., -1]
    for name, column, side in (("l", left, first), ("u", right, last)):
        if name not in sides:
            assert np.isnan(column).all()
            continue
        errors, _ = oracle.backward_errors(lower, diag, upper, side, column)
        assert errors.max(initial=0) <= BOUND * oracle.eps(rhs.dtype)
        assert np.abs(column).max(initial=0) <= 1 + 1e-5
    expected = np.full_like(x, np.nan)
    _core.tridiag_solve(THOMAS, NEVER, 0, *operands, expected, None, 1)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("rows", [1, 2, 3, 15, 16, 17, 33, 100, 517])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_every_layout_dtype_and_number_of_systems(rng, dtype, rows):
    for shape in ((1, 1, rows), (1, 3, rows), (5, 1, rows), (3, 7, rows), (1, 40, rows)):
        operands = oracle.dominant(rng, shape, dtype)
        for turn, order in enumerate(ORDERS.values()):
            sides = ("lu", "l", "u", "")[(rows + turn) % 4]
            pivot = (AUTO, NEVER)[(rows + shape[1]) % 2]
            views = [laid(a, order, gap=turn % 2 * 3) for a in operands]
            check(views, solved(views, sides=sides, pivot=pivot), sides)
            check(views, solved(views, threads=2))


@pytest.mark.parametrize(
    ("dtype", "order"),
    [
        (np.float32, "rows"),
        pytest.param(np.float32, "outer", marks=pytest.mark.slow),  # the check takes seconds
        pytest.param(np.float64, "rows", marks=pytest.mark.slow),
        pytest.param(np.complex64, "rows", marks=pytest.mark.slow),
    ],
)
def test_long_outputs_are_written_past_the_caches(rng, dtype, order):
    """Outputs of more than 8 MB, with lines that are aligned and that are not."""
    rows = (1 << 20) // (64 * np.dtype(dtype).itemsize) + 5
    for gap in (0, 3):
        operands = oracle.dominant(rng, (1, 600, rows), dtype)
        views = [laid(a, ORDERS[order], gap) for a in operands]
        check(views, solved(views, threads=2))
        outputs = solved(operands, sides="u", like=views[0])
        check(operands, outputs, "u")


def test_many_short_lines_with_and_without_gaps_between_them(rng):
    """Lines shorter than what is stored at once, in outputs of more than 8 MB."""
    operands = oracle.dominant(rng, (1, 44000, 50), np.float32)
    packed, gaps = (np.full((1, 44000, 50 + gap), np.nan, np.float32) for gap in (0, 3))
    for x, left in ((packed, gaps), (gaps, packed)):
        answer = (x[..., :50], left[..., :50], np.empty_like(packed))
        status, report = _core.spikes_solve(DEFAULT, AUTO, 0, *operands, *answer, None, 1)
        check(operands, (status, report, np.zeros(1), *answer))
        assert np.isnan(gaps[..., 50:]).all()


@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_matrices_in_which_nothing_decays(rng, dtype):
    """The columns of (-1, 2, -1) are straight lines."""
    rows = 300
    operands = [np.full((2, 9, rows), v, dtype) for v in (-1, 2, -1)]
    operands.append(oracle.uniform(rng, (2, 9, rows), dtype))
    answer = solved(operands)

    check(operands, answer)
    line = np.arange(rows, 0, -1) / (rows + 1)
    tolerance = 4 * rows * oracle.eps(dtype)
    np.testing.assert_allclose(answer[4], np.broadcast_to(-line, (2, 9, rows)), rtol=tolerance)
    np.testing.assert_allclose(answer[5], answer[4][..., ::-1], rtol=tolerance)


@pytest.mark.parametrize("order", list(ORDERS))
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_corners_of_columns_that_are_not_wanted_are_ignored(rng, dtype, order):
    for rows in (1, 2, 40):
        operands = oracle.dominant(rng, (2, 20, rows), dtype)
        for sides in ("", "l", "u"):
            given = [a.copy() for a in operands]
            if "l" not in sides:
                given[0][..., 0] = np.nan
            if "u" not in sides:
                given[2][..., -1] = np.nan
            views = [laid(a, ORDERS[order]) for a in given]
            answer = solved(views, sides=sides)
            check(operands, answer, sides)


def test_short_off_diagonals_broadcast_operands_and_x_in_place(rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (3, 9, 40))
    check(
        (lower, diag, upper, rhs),
        solved((lower[..., 1:], diag, upper, rhs), sides="u", flags=_core.SHORT_LOWER),
        "u",
    )
    check(
        (lower, diag, upper, rhs),
        solved((lower, diag, upper[..., :-1], rhs), sides="l", flags=_core.SHORT_UPPER),
        "l",
    )
    for shared in (lower[:1, :1], lower[:, :1], lower[..., :1] / 4):
        operands = (
            np.broadcast_to(shared, rhs.shape),
            3 * diag,
            np.broadcast_to(upper[:1], rhs.shape),
            rhs,
        )
        check(operands, solved(operands))
    x, left, right = rhs.copy(), np.empty_like(rhs), np.empty_like(rhs)
    assert (
        _core.spikes_solve(THOMAS, AUTO, 0, lower, diag, upper, x, x, left, right, None, 1)[0] == 0
    )
    np.testing.assert_array_equal(x, solved((lower, diag, upper, rhs))[3])


@pytest.mark.each_value
@pytest.mark.parametrize("order", list(ORDERS))
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_systems_that_need_row_exchanges_are_counted(rng, dtype, order):
    for row in (0, 13, 39):
        for which in range(3):  # a row that is not dominant, also by its outer entry
            operands = [laid(a, ORDERS[order]) for a in oracle.dominant(rng, (2, 11, 40), dtype)]
            operands[which][1, 4, row] = 100 if which != 1 else 1e-3
            assert solved(operands)[1]["pivoted"] == 1
            assert solved(operands, pivot=NEVER)[1]["pivoted"] == 0
        operands = [laid(a, ORDERS[order]) for a in oracle.dominant(rng, (2, 11, 40), dtype)]
        for diagonal in operands[:3]:
            diagonal[1, 4, row] = 0
        _, report, info, *_ = solved(operands)
        assert report["pivoted"] == 1
        _, report, info, *outputs = solved(operands, pivot=NEVER)
        assert report["pivoted"] == 0
        assert np.flatnonzero(info).tolist() == [15]
        assert info[15] == row + 1
        rest = np.arange(22) != 15
        answer = [a.reshape(22, 40)[None, rest] for a in outputs]
        check(
            [np.ascontiguousarray(a).reshape(22, 40)[None, rest] for a in operands],
            (0, report, info[rest], *answer),
        )


def test_what_is_refused(rng):
    codes = {text: code for code, (text, _) in _core.STATUS.items()}
    lower, diag, upper, rhs = operands = oracle.dominant(rng, (2, 3, 8))
    for method in ("cr", "pivoted", "partition"):
        assert solved(operands, method=_core.METHODS[method])[0] == codes["PS_UNSUPPORTED"]
    always = _core.PIVOTS["always"]
    for method in (THOMAS, DEFAULT):
        status = solved(operands, method=method, pivot=always)[0]
        assert status == (codes["PS_UNSUPPORTED"] if method != THOMAS else 0)
    long = oracle.dominant(rng, (1, 1, 5000))
    assert solved(long)[0] == codes["PS_UNSUPPORTED"]
    check(long, solved(long, method=THOMAS))
    bad, layout = codes["PS_BAD_ARGUMENT"], codes["PS_BAD_LAYOUT"]
    assert solved(operands, flags=_core.PERIODIC)[0] == bad
    for flag, given, wanted in (
        (_core.SHORT_LOWER, (lower[..., 1:], diag, upper, rhs), "l"),
        (_core.SHORT_UPPER, (lower, diag, upper[..., :-1], rhs), "u"),
    ):
        assert solved(given, flags=flag, sides=wanted)[0] == bad

    def status_of(x, left, right):
        return _core.spikes_solve(THOMAS, AUTO, 0, *operands, x, left, right, None, 1)[0]

    x, left, right = (np.empty_like(rhs) for _ in range(3))
    for repeated in (x, lower, diag, upper, rhs):
        assert status_of(x, repeated, right) == layout
        assert status_of(x, left, repeated) == layout
        assert status_of(x, None, repeated) == layout
    assert status_of(x, left, left) == layout
    assert status_of(x, np.broadcast_to(left[:1], left.shape).copy(), right) == 0
    with pytest.raises(ValueError, match="left: need shape"):
        status_of(x, left[..., 1:], right)
    with pytest.raises(TypeError, match="right: the dtype"):
        status_of(x, left, right.astype(np.float32))
    read_only = right.copy()
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="right: the array is read-only"):
        status_of(x, left, read_only)


def test_no_systems():
    status, report, *_ = solved([np.ones((0, 3, 5))] * 4)
    assert status == 0
    assert report["pivoted"] == 0
