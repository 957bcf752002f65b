"""What may come in: dtypes, shapes, names; and what every refusal says."""

import re

import numpy as np
import oracle
import pytest

import pysolvers


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint16, bool])
def test_integers_become_float64(solve, dtype):
    one = np.ones(5, dtype)

    x = solve(0 * one, one, 0 * one, one)

    assert x.dtype == np.float64
    np.testing.assert_array_equal(x, np.ones(5))


def test_lists_are_arrays(solve):
    x = solve([0, -1, -1], [2, 2, 2], [-1, -1, 0], [1, 0, 1])

    np.testing.assert_allclose(x, [1, 1, 1], rtol=1e-15)


@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_each_dtype_stays(solve, rng, dtype):
    assert solve(*oracle.dominant(rng, (2, 5), dtype)).dtype == dtype


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, object, "M8[s]", "U3"])
def test_other_dtypes_are_refused_by_name(solve, dtype):
    bad = np.zeros(4, dtype)
    good = np.ones(4)

    with pytest.raises(TypeError, match=f"rhs.*{re.escape(str(bad.dtype))}"):
        solve(good, good, good, bad)
    with pytest.raises(TypeError, match=f"diag.*{re.escape(str(bad.dtype))}"):
        solve(good, bad, good, good)


def test_other_byte_order_is_copied_and_told(solve, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (3, 7))
    swapped = rhs.astype(rhs.dtype.newbyteorder())

    x, info = solve(lower, diag, upper, swapped, return_info=True)

    assert info.copied == ("rhs",)
    np.testing.assert_array_equal(x, solve(lower, diag, upper, rhs))


def test_elements_off_their_alignment_are_copied_and_told(solve, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (3, 7))
    room = np.zeros(rhs.nbytes + 1, np.uint8)[1:].view(np.float64).reshape(3, 7)
    room[...] = diag

    x, info = solve(lower, room, upper, rhs, return_info=True)

    assert info.copied == ("diag",)
    np.testing.assert_array_equal(x, solve(lower, diag, upper, rhs))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_numbers_in_records_are_copied_and_told(solve, rng, dtype):
    system = oracle.dominant(rng, (3, 6), dtype)
    records = np.zeros((3, 6), [("diag", dtype), ("rest", np.zeros(1, dtype).real.dtype)])
    records["diag"] = system[1]

    x, info = solve(system[0], records["diag"], *system[2:], return_info=True)

    np.testing.assert_array_equal(x, solve(*system))
    assert info.copied == ("diag",)


def test_masked_values_are_refused(solve):
    masked = np.ma.masked_greater(np.arange(4.0), 2)

    with pytest.raises(TypeError, match="Masked"):
        solve(np.zeros(4), np.ones(4), np.zeros(4), masked)


def test_scalar_rhs_is_refused(solve):
    with pytest.raises(ValueError, match="dimension"):
        solve(0.0, 1.0, 0.0, 1.0)
    with pytest.raises(ValueError, match="dimension"):
        solve(0.0, 1.0, 0.0, np.array(1.0))


@pytest.mark.parametrize("axis", [2, -3, 7])
def test_axis_out_of_range_is_refused(solve, rng, axis):
    text = rf"axis must be in -2 \.\. 1 for operands of 2 axes, got {axis}$"
    with pytest.raises(np.exceptions.AxisError, match=text):
        solve(*oracle.dominant(rng, (3, 4)), axis=axis)


@pytest.mark.parametrize("shape", [(3, 6), (3, 4), (2, 5), (3, 3), (5, 3)])
@pytest.mark.parametrize("operand", [0, 1, 2])
def test_shapes_that_do_not_broadcast_are_refused(solve, operand, shape):
    operands = [np.ones((3, 5)) for _ in range(4)]
    operands[operand] = np.ones(shape)
    short_off_diagonal = operand != 1 and shape == (3, 4)

    if short_off_diagonal:
        solve(*operands, on_singular="ignore")
        return
    with pytest.raises(ValueError) as caught:
        solve(*operands)
    message = str(caught.value)
    assert ("lower", "diag", "upper")[operand] in message
    assert str(shape) in message or f"{shape[-1]} rows" in message


def test_short_diag_is_refused(solve):
    with pytest.raises(ValueError, match="diag"):
        solve(np.zeros(4), np.ones(4), np.zeros(4), np.ones(5))


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("method", "gauss"),
        ("on_singular", "explode"),
        ("threads", 0),
        ("threads", -1),
        ("stream", 1),
    ],
)
def test_option_out_of_its_range_is_refused_by_name_and_value(rng, keyword, value):
    with pytest.raises((ValueError, TypeError)) as caught:
        pysolvers.solve_tridiagonal(*oracle.dominant(rng, (4,)), **{keyword: value})

    assert keyword in str(caught.value)
    assert str(value) in str(caught.value)


def test_message_of_an_unknown_method_lists_the_known_ones(solve, rng):
    with pytest.raises(ValueError) as caught:
        solve(*oracle.dominant(rng, (4,)), method="gauss")

    assert all(method in str(caught.value) for method in oracle.METHODS)


@pytest.mark.parametrize("device", ["tpu", "cpu:1", "cuda:x", ""])
def test_unknown_device_is_refused(rng, device):
    with pytest.raises((ValueError, pysolvers.BackendError), match=device or "device"):
        pysolvers.solve_tridiagonal(*oracle.dominant(rng, (4,)), device=device)


def test_method_that_is_no_text_is_refused(solve, rng):
    with pytest.raises(TypeError, match=r"method.*int"):
        solve(*oracle.dominant(rng, (4,)), method=1)


@pytest.mark.parametrize("option", ["periodic", "return_info"])
def test_options_that_are_true_or_false_take_nothing_else(solve, option):
    with pytest.raises(TypeError, match=f"{option} must be a bool, got str"):
        solve(1.0, 4.0, 1.0, np.ones(3), **{option: "no"})


def test_options_are_keywords_only(rng):
    with pytest.raises(TypeError):
        pysolvers.solve_tridiagonal(*oracle.dominant(rng, (4,)), 0)


def test_info_tells_what_was_done(solve, backend, rng):
    system = oracle.dominant(rng, (2, 3, 40), np.float32)

    x, info = solve(*system, return_info=True)

    assert x.shape == (2, 3, 40)
    assert info.method in oracle.METHODS[:-1]
    assert (info.systems, info.rows) == (6, 40)
    assert info.pivoted == 0
    assert np.dtype(info.dtype) == np.float32
    assert info.backend == backend
    assert info.copied == ()
    assert isinstance(info.kernel, str)
    assert info.kernel
    with pytest.raises(AttributeError):
        info.method = "other"


@pytest.mark.parametrize("method", oracle.METHODS[:-1])
def test_info_names_the_method_asked_for(solve, rng, method):
    _, info = solve(*oracle.dominant(rng, (2, 40)), method=method, return_info=True)

    assert info.method == method


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["own", "shared"])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize(
    ("dtype", "method"),
    # Both types by each way through a line: one row after the other, with exchanges, by chunks.
    [
        *(("c16", method) for method in oracle.METHODS),
        *(("c8", method) for method in ("thomas", "pivoted", "partition")),
    ],
)
def test_real_matrix_with_complex_sides(solve, rng, dtype, method, periodic, axis, kind):
    rows, batch = 40, (6, 7)
    real = np.zeros(1, dtype).real.dtype
    *matrix, _ = oracle.dominant(rng, (rows,) if kind == "shared" else (*batch, rows), real)
    rhs = oracle.uniform(rng, (*batch, rows), np.dtype(dtype))
    options = {"axis": axis, "method": method, "periodic": periodic}

    def along_axis(array):
        return np.ascontiguousarray(np.moveaxis(array, -1, axis))

    laid = matrix if kind == "shared" else [along_axis(a) for a in matrix]

    x, info = solve(*laid, along_axis(rhs), return_info=True, **options)

    assert (x.dtype, info.systems, info.rows) == (dtype, 42, rows)
    assert info.pivoted == (42 if method == "pivoted" else 0)
    full = [np.broadcast_to(a, rhs.shape) for a in matrix]
    error = oracle.backward_error(*full, rhs, np.moveaxis(x, axis, -1), periodic=periodic)
    assert error <= 50 * oracle.eps(dtype)


def test_singular_real_matrix_with_complex_sides(solve, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (4, 9, 3))
    lower[2, 4:6, 1] = diag[2, 4, 1] = upper[2, 3:5, 1] = 0

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        solve(lower, diag, upper, rhs * (1 + 1j), axis=1)
    np.testing.assert_array_equal(caught.value.systems, [[2, 1]])
    np.testing.assert_array_equal(caught.value.rows, [4])
    x, info = solve(lower, diag, upper, rhs * (1 + 1j), axis=1, on_singular="nan", return_info=True)
    np.testing.assert_array_equal(info.singular, [[2, 1]])
    assert np.isnan(x[2, :, 1]).all()
    assert np.isfinite(x).sum() == x.size - 9


def test_info_is_shown_in_six_short_lines(solve):
    diag = np.ones((100, 5))
    diag[7:, 2] = 0

    _, info = solve(0.0, diag, 0, np.ones((100, 5)), on_singular="nan", return_info=True)

    text = repr(info)
    assert text.startswith("SolveInfo: 100 systems of 5 rows, float64\n")
    assert "first at batch index (7,), row 2" in text
    assert len(text.splitlines()) <= 6
    assert max(map(len, text.splitlines())) <= 88
    assert "<td>a zero or subnormal pivot in 93 systems" in info._repr_html_()
