"""The binding of splines guards the memory: what does not fit is refused by name."""

import numpy as np
import pytest

from pysolvers import _core

OUTER, INNER, KNOTS, POINTS = 2, 3, 5, 4
LINES = (OUTER, INNER, KNOTS)
PIECES = (OUTER, INNER, KNOTS - 1)
TEXTS = {code: name for code, (name, _) in _core.STATUS.items()}


def lines(shape=LINES, dtype=np.float64):
    return np.zeros(shape, dtype)


def knots():
    return np.broadcast_to(np.arange(float(KNOTS)), LINES)


def rows(**changes):
    """Return the arguments of a call of spline_rows that is right, but for `changes`."""
    given = {
        "ends": (_core.SPLINE_ENDS["slope"], _core.SPLINE_ENDS["curvature"]),
        "parts": 1,
        "x": knots(),
        "y": lines(),
        "given": (np.ones((OUTER, INNER, 1)), None),
        "matrix": tuple(lines() for _ in range(3)),
        "sides": (lines(), lines()),
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
    given = rows()
    assert TEXTS[_core.spline_rows(*given)] == "PS_OK"
    assert given[6][0][0, 0].tolist() == [1, 0, 0, 0, 0]
    assert not given[7].any()
    assert TEXTS[_core.spline_pieces(*pieces())] == "PS_OK"
    given = points()
    assert TEXTS[_core.spline_points(*given)] == "PS_OK"
    assert not given[6].any()


@pytest.mark.parametrize("batch", [(1, 1), (OUTER, 1), (1, INNER)])
def test_knots_and_derivatives_broadcast_to_the_batch_of_the_values(rng, batch):
    x = np.cumsum(0.5 + rng.random((*batch, KNOTS)), axis=-1)
    y, given = rng.random(LINES), rng.random((*batch, 1))
    own = tuple(lines((*batch, KNOTS)) for _ in range(3))
    few = rows(x=x, y=y, given=(given, given), matrix=own)
    spread = [np.broadcast_to(a, (OUTER, INNER, a.shape[-1])) for a in (x, given)]
    full = rows(x=spread[0], y=y, given=(spread[1],) * 2)

    for call in (few, full):
        assert TEXTS[_core.spline_rows(*call)] == "PS_OK"

    for a, b in zip(few[5] + few[6], full[5] + full[6], strict=True):
        np.testing.assert_array_equal(np.broadcast_to(a, LINES), b)


def test_empty_batches_are_left_alone():
    empty = lines((0, INNER, KNOTS))
    short = lines((0, INNER, KNOTS - 1))
    assert TEXTS[_core.spline_rows(
        *rows(x=empty, y=empty, given=(None, None), matrix=(empty,) * 3, sides=(empty,) * 2)
    )] == "PS_OK"  # fmt: skip
    given = pieces(x=empty, coefficients=(empty, empty), result=(short,) * 3)
    assert TEXTS[_core.spline_pieces(*given)] == "PS_OK"


@pytest.mark.parametrize(
    ("call", "changes", "error", "message"),
    [
        ("rows", {"x": lines((OUTER, KNOTS))}, ValueError, "x: need 3 axes"),
        ("rows", {"y": lines((OUTER, INNER, 6))}, ValueError, "x: need shape"),
        ("rows", {"y": lines(dtype="f4")}, TypeError, "x: the dtype"),
        ("rows", {"y": None}, TypeError, "y: need an ndarray"),
        ("rows", {"x": lines((1, 2, KNOTS))}, ValueError, "x: need shape"),
        ("rows", {"x": knots()[:1]}, ValueError, "matrix: need shape"),
        ("rows", {"given": (lines(), None)}, ValueError, "given: need shape"),
        ("rows", {"matrix": (lines(),)}, TypeError, "matrix: need a tuple of 3"),
        ("rows", {"matrix": (lines(PIECES),) * 3}, ValueError, "matrix: need shape"),
        ("rows", {"sides": (knots(),) * 2}, ValueError, "sides: .*read-only"),
        ("rows", {"sides": (lines(),)}, TypeError, "sides: need a tuple of 2"),
        ("rows", {"sides": [lines()]}, TypeError, "must be tuple"),
        ("rows", {"matrix": None}, TypeError, "must be tuple"),
        ("rows", {"faults": np.zeros(2, np.int32)}, ValueError, "info: need 4"),
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
        ("rows", {"ends": (0, 9)}),
        ("rows", {"ends": (_core.SPLINE_ENDS["periodic"], 0)}),
        ("rows", {"parts": 0}),
        ("rows", {"parts": 2}),
        ("rows", {"x": lines((OUTER, INNER, 1)), "y": lines((OUTER, INNER, 1)),
                  "given": (None, None), "sides": (lines((OUTER, INNER, 1)),) * 2,
                  "matrix": (lines((OUTER, INNER, 1)),) * 3}),
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


@pytest.mark.parametrize("call", ["rows", "pieces", "points"])
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
