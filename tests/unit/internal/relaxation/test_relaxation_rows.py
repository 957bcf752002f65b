"""Measures of red-black relaxations over some rows, and calls that measure nothing."""

import numpy as np
import pytest
import relaxation_rows
from relaxation_rows import MEASURES, maker

from pysolvers.relaxation._rows import _iterations

ROWS = [(0, 0), (1, 26), (1, 1), (2, 3), (9, 13), (26, 1)]  # of 26 rows
KINDS = [("lmsor", kernel) for kernel in ("auto", 1, 2, 3)]
KINDS += [("plate", variant) for variant in ("auto", "split", "naive")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_of_rows(kind, dtype, backend):
    measures = [(measure, rows, 1) for measure in MEASURES for rows in ROWS]

    relaxation_rows.check_rows(maker(kind, backend, dtype), measures, count=3)


@pytest.mark.parametrize("kind", KINDS)
def test_norms_of_rows_within_passes(kind, backend):
    norms = ("residual", "l2"), ("change", "max")
    measures = [(measure, (9, 13), every) for measure in norms for every in (1, 2, 5, 9, 21)]

    relaxation_rows.check_rows(maker(kind, backend), measures, count=21)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_maxima_of_parts_are_those_of_all_rows(kind, dtype, backend):
    """Of residuals, which `test_norms_of_rows` compares up to rounding errors."""
    relaxation_rows.check_parts(maker(kind, backend, dtype), "residual", (1, 2, 12, 27), count=10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("norm", ["max", "l2"])
def test_rows_end_an_iteration(kind, every, norm, backend):
    make = maker(kind, backend)

    relaxation_rows.check_stop(make, ("change", norm), (9, 13), every, count=30)


def test_norms_of_rows_by_the_serial_kernel():
    measures = [(measure, (9, 13), 2) for measure in MEASURES]

    relaxation_rows.check_rows(maker(("lmsor", "serial"), "cpu"), measures, count=5)


@pytest.mark.parametrize("norm", ["max", "l2"])
def test_threads_do_not_change_the_norm_of_rows(norm):
    histories = []
    for threads in (1, 2, 3):
        solver = maker(("lmsor", "auto"), "cpu", shape=(150, 40))()
        solver._threads = threads
        histories.append(relaxation_rows.call(solver, 40, ("residual", norm), (50, 60))[2])

    assert len(histories[0]) == 40
    np.testing.assert_array_equal(histories[1], histories[0])
    np.testing.assert_array_equal(histories[2], histories[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", ["max", "l2"])
def test_values_of_other_rows_do_not_end_an_iteration(kind, norm, backend):
    ends = []
    for rows in ((9, 13), (2, 1), (0, 0)):
        solver = maker(kind, backend)()
        field = solver._grid.unpack(solver._state.get("u"))
        field[2, 5] = np.nan
        solver._state.set("u", solver._grid.pack(field, field.dtype))
        _, report, history = relaxation_rows.call(solver, 1, ("change", norm), rows)
        assert len(history) == 1
        assert np.isfinite(history[0]) == (report["end"] == "count")
        ends.append(report["end"])

    assert ends == ["count", "not finite", "not finite"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [(0, 0), (9, 13)])
def test_calls_that_measure_nothing(kind, rows, backend):
    make = maker(kind, backend)
    solver, measure = make(), ("residual", "l2")

    _, report, history = relaxation_rows.call(solver, 21, measure, rows, every=0, tolerance=1e99)

    assert (report["end"], report["iterations"], report["measures"]) == ("count", 21, 0)
    assert np.isnan(report["measure"])
    assert len(history) == 0
    field = relaxation_rows.fields_of(make(), 21)[-1]
    np.testing.assert_array_equal(solver._grid.unpack(solver._state.get("u")), field)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "rows", [(1, 0), (0, 1), (1, 27), (2, 26), (27, 1), (-1, 3), (1, -1), (5, 2**62), (2**62, 5)]
)
def test_rows_outside_of_the_interior(kind, rows, backend):
    solver = maker(kind, backend)()

    status, report, _ = relaxation_rows.call(solver, 1, ("change", "max"), rows)

    assert (status, report) == ("PS_BAD_ARGUMENT", None)


def test_iterations_between_two_exchanges():
    rows = (3, 4, 5, 17, 19, 33, 40, 64, 65, 4096)

    assert [_iterations(n, on_device=False) for n in rows] == [1] * len(rows)
    assert [_iterations(n, on_device=True) for n in rows] == [1, 1, 2, 8, 8, 16, 16, 24, 32, 32]
