"""The binding of splines guards the memory: what does not fit is refused by name."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from pysolvers import _core

OUTER, INNER, KNOTS, POINTS = 2, 3, 5, 4
LINES = (OUTER, INNER, KNOTS)
PIECES = (OUTER, INNER, KNOTS - 1)
TEXTS = {code: name for code, (name, _) in _core.STATUS.items()}


def lines(shape=LINES, dtype=np.float64):
    return np.zeros(shape, dtype)


def knots():
    return np.broadcast_to(np.arange(float(KNOTS)), LINES)


def make(**changes):
    """Return the arguments of a call of spline_make that is right, but for `changes`."""
    given = {
        "ends": (_core.SPLINE_ENDS["slope"], _core.SPLINE_ENDS["curvature"]),
        "parts": 1,
        "x": knots(),
        "y": lines(),
        "given": (np.ones((OUTER, INNER, 1)), None),
        "copy": lines(),
        "cubic": (lines(), lines()),
        "faults": np.zeros(len(_core.SPLINE_FAULTS), np.int32),
        "threads": 1,
    }
    return tuple((given | changes).values())


def pieces(**changes):
    """Return those of spline_pieces."""
    given = {
        "form": (0, 0, False),
        "nu": 1,
        "is_absolute": False,
        "x": knots(),
        "coefficients": (lines(), lines()),
        "result": tuple(lines(PIECES) for _ in range(3)),
        "threads": 1,
    }
    return tuple((given | changes).values())


def points(**changes):
    """Return those of spline_points."""
    given = {
        "form": (0, 0, False),
        "nu": 1,
        "outside": 0,
        "x": knots(),
        "coefficients": (lines(), lines()),
        "at": lines((OUTER, INNER, POINTS)),
        "value": np.ones((OUTER, INNER, POINTS)),
        "threads": 1,
    }
    return tuple((given | changes).values())


def test_right_calls_compute():
    given = make()
    assert TEXTS[_core.spline_make(*given)] == "PS_OK"
    scipy_spline = CubicSpline(range(KNOTS), np.zeros(KNOTS), bc_type=((1, 1.0), "natural"))
    slopes = np.broadcast_to(scipy_spline(range(KNOTS), 1), LINES)
    np.testing.assert_allclose(given[6][0], slopes, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(given[5], knots())
    assert not given[7].any()
    assert TEXTS[_core.spline_pieces(*pieces())] == "PS_OK"
    given = points()
    assert TEXTS[_core.spline_points(*given)] == "PS_OK"
    assert not given[6].any()


@pytest.mark.parametrize("batch", [(1, 1), (OUTER, 1), (1, INNER)])
def test_knots_and_derivatives_broadcast_to_the_batch_of_the_values(rng, batch):
    x = np.cumsum(0.5 + rng.random((*batch, KNOTS)), axis=-1)
    y, given = rng.random(LINES), rng.random((*batch, 1))
    few = make(x=x, y=y, given=(given, given), copy=lines(x.shape))
    spread = [np.broadcast_to(a, (OUTER, INNER, a.shape[-1])) for a in (x, given)]
    full = make(x=spread[0], y=y, given=(spread[1],) * 2)

    for call in (few, full):
        assert TEXTS[_core.spline_make(*call)] == "PS_OK"

    np.testing.assert_array_equal(few[5], x)
    np.testing.assert_array_equal(few[6][1], y)
    for a, b in zip((few[5], *few[6]), (full[5], *full[6]), strict=True):
        np.testing.assert_allclose(np.broadcast_to(a, LINES), b, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("batch", [(1, 1), (OUTER, 1), (OUTER, INNER)])
def test_the_last_slope_of_a_periodic_spline_is_the_first_one(rng, batch):
    x = np.cumsum(0.5 + rng.random((*batch, KNOTS)), axis=-1)
    y = rng.random(LINES)
    y[..., -1] = y[..., 0]
    ends = (_core.SPLINE_ENDS["periodic"],) * 2
    call = make(x=x, y=y, ends=ends, given=(None, None), copy=lines(x.shape))

    assert TEXTS[_core.spline_make(*call)] == "PS_OK"

    slopes, _ = call[6]
    assert not call[7].any()
    np.testing.assert_array_equal(slopes[..., -1], slopes[..., 0])
    for at in np.ndindex(OUTER, INNER):
        own = x[tuple(min(i, n - 1) for i, n in zip(at, batch, strict=True))]
        unit = 2.0 ** -np.floor(np.log2((KNOTS - 1) / (own[-1] - own[0])))
        expected = unit * CubicSpline(own, y[at], bc_type="periodic")(own, 1)
        np.testing.assert_allclose(slopes[at], expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("batch", [(1, 1), (OUTER, 1), (OUTER, INNER)])
def test_faults_of_any_spline_are_found(batch):
    for at, value, fault in [(-1, np.nan, "knots"), (0, 7.0, "order")]:
        x = np.broadcast_to(np.arange(float(KNOTS)), (*batch, KNOTS)).copy()
        x[-1, -1, at] = value
        call = make(x=x, copy=lines(x.shape))
        assert TEXTS[_core.spline_make(*call)] == "PS_OK"
        assert call[7][_core.SPLINE_FAULTS[fault]] == 1


def test_empty_batches_are_left_alone():
    empty = lines((0, INNER, KNOTS))
    short = lines((0, INNER, KNOTS - 1))
    call = make(x=empty, y=empty, given=(None, None), copy=empty, cubic=(empty,) * 2)
    assert TEXTS[_core.spline_make(*call)] == "PS_OK"
    given = pieces(x=empty, coefficients=(empty, empty), result=(short,) * 3)
    assert TEXTS[_core.spline_pieces(*given)] == "PS_OK"


@pytest.mark.parametrize(
    ("call", "changes", "error", "message"),
    [
        ("make", {"x": lines((OUTER, KNOTS))}, ValueError, "x: need 3 axes"),
        ("make", {"y": lines((OUTER, INNER, 6))}, ValueError, "x: need shape"),
        ("make", {"y": lines(dtype="f4")}, TypeError, "x: the dtype"),
        ("make", {"y": None}, TypeError, "y: need an ndarray"),
        ("make", {"x": lines((1, 2, KNOTS))}, ValueError, "x: need shape"),
        ("make", {"x": knots()[:1]}, ValueError, "knots: need shape"),
        ("make", {"given": (lines(), None)}, ValueError, "given: need shape"),
        ("make", {"copy": lines(PIECES)}, ValueError, "knots: need shape"),
        ("make", {"copy": knots()}, ValueError, "knots: .*read-only"),
        ("make", {"copy": None}, TypeError, "knots: need an ndarray"),
        ("make", {"cubic": (knots(),) * 2}, ValueError, "slopes and values: .*read-only"),
        ("make", {"cubic": (lines(),)}, TypeError, "slopes and values: need a tuple of 2"),
        ("make", {"cubic": (lines(), lines(PIECES))}, ValueError, "need shape"),
        ("make", {"cubic": [lines()]}, TypeError, "must be tuple"),
        ("make", {"faults": np.zeros(2, np.int32)}, ValueError, "info: need 4"),
        ("pieces", {"coefficients": (lines(),)}, ValueError, "coefficients: need 2"),
        ("pieces", {"coefficients": (lines(PIECES),) * 2}, ValueError, "need shape"),
        (
            "pieces",
            {"form": (3, 0, False), "coefficients": (lines(),) * 3},
            ValueError,
            "need shape",
        ),
        (
            "pieces",
            {"form": (13, 0, False), "coefficients": (lines(),) * 13},
            ValueError,
            "at most 12",
        ),
        ("pieces", {"nu": -1}, ValueError, "coefficients: need 5"),
        ("pieces", {"nu": -2}, ValueError, "nu: need at least -1"),
        ("pieces", {"result": (lines(PIECES),) * 2}, ValueError, "coefficients: need 3"),
        (
            "pieces",
            {"result": (lines(PIECES), lines(PIECES), lines((OUTER, 4, INNER)).swapaxes(1, 2))},
            ValueError,
            "the strides differ",
        ),
        ("points", {"at": lines()}, ValueError, "at: need shape"),
        ("points", {"value": lines((1, INNER, POINTS))}, ValueError, "value: need shape"),
        ("points", {"value": lines((OUTER, INNER, POINTS), "f4")}, TypeError, "value: the dtype"),
        ("points", {"coefficients": lines()}, TypeError, "must be tuple"),
        ("points", {"threads": -1}, ValueError, "threads"),
    ],
)
def test_what_does_not_fit_is_refused(call, changes, error, message):
    function = getattr(_core, f"spline_{call}")
    with pytest.raises(error, match=message):
        function(*globals()[call](**changes))


@pytest.mark.parametrize(
    ("call", "changes"),
    [
        ("make", {"ends": (0, 9)}),
        ("make", {"ends": (_core.SPLINE_ENDS["periodic"], 0)}),
        ("make", {"parts": 0}),
        ("make", {"parts": 2}),
        ("make", {"x": lines((OUTER, INNER, 1)), "y": lines((OUTER, INNER, 1)),
                  "given": (None, None), "cubic": (lines((OUTER, INNER, 1)),) * 2,
                  "copy": lines((OUTER, INNER, 1))}),
        ("pieces", {"form": (-1, 0, False), "result": (lines(PIECES),)}),
        ("pieces", {"form": (0, 1, False)}),
        ("pieces", {"form": (0, 0, True)}),
        ("pieces", {"form": (1, 13, False), "coefficients": (lines(PIECES),),
                    "result": (lines(PIECES),)}),
        ("pieces", {"is_absolute": True}),
        ("points", {"form": (1, -13, False), "coefficients": (lines(PIECES),)}),
        ("points", {"nu": -1}),
        ("points", {"outside": 3}),
        ("points", {"form": (-1, 0, False)}),
    ],
)  # fmt: skip
def test_the_check_refuses(call, changes):
    status = getattr(_core, f"spline_{call}")(*globals()[call](**changes))

    assert TEXTS[status] == "PS_BAD_ARGUMENT"


@pytest.mark.parametrize("call", ["make", "pieces", "points"])
def test_complex_numbers_are_refused(call):
    given = globals()[call]()
    swap = {np.dtype(np.float64): np.complex128}

    def widened(value):
        if isinstance(value, tuple):
            return tuple(map(widened, value))
        return (
            value.astype(swap.get(value.dtype, value.dtype)) if hasattr(value, "dtype") else value
        )

    assert TEXTS[getattr(_core, f"spline_{call}")(*widened(given))] == "PS_BAD_ARGUMENT"
