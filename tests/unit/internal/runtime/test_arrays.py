"""The way from array-likes to operands of the contract."""

import numpy as np
import pytest

from pysolvers._runtime import arrays as _arrays, lines as _lines


def make_operands(**values):
    """Operands, dtype and copied names of `values`, by name."""
    operands, dtype, copied = _arrays.as_operands(values)
    return dict(zip(values, operands, strict=True)), dtype, copied


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_supported_arrays_pass_as_they_are(dtype):
    array = np.zeros((2, 3), dtype)[:, ::-1]

    operands, result, copied = make_operands(diag=array, rhs=array)

    assert operands["rhs"] is array
    assert result == dtype
    assert copied == ()


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint16"])
def test_integers_alone_become_float64(dtype):
    operands, result, copied = make_operands(rhs=np.ones(3, dtype))

    assert result == np.float64
    assert operands["rhs"].dtype == np.float64
    assert copied == ("rhs",)


ARRAYS = ("?", "i1", "u2", "i8", "f4", "f8", "c8", "c16")
NUMBERS = (2, 2.0, 2j, True, np.float32(2), np.float64(2), np.int64(2), np.complex64(2))


def promoted(*values):
    """The dtype to which NumPy promotes the sum of some operands; float64 for integers."""
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total.dtype if total.dtype.kind in "fc" else np.dtype(np.float64)


@pytest.mark.parametrize("diag", ARRAYS)
@pytest.mark.parametrize("rhs", ARRAYS)
def test_arrays_promote_as_in_numpy(diag, rhs):
    values = {"diag": np.ones(3, diag), "rhs": np.ones(3, rhs)}

    operands, result, copied = make_operands(**values)

    assert result == promoted(*values.values())
    real = result.kind == "c" and values["rhs"].dtype.kind == "c" != values["diag"].dtype.kind
    assert operands["rhs"].dtype == result
    assert operands["diag"].dtype == (np.zeros(1, result).real.dtype if real else result)
    changed = (name for name, value in values.items() if value.dtype != operands[name].dtype)
    assert copied == tuple(changed)
    np.testing.assert_array_equal(operands["diag"], 1)


@pytest.mark.parametrize("rhs", ARRAYS)
@pytest.mark.parametrize("scalar", NUMBERS, ids=lambda s: type(s).__name__)
def test_python_numbers_do_not_promote_arrays(scalar, rhs):
    values = {"diag": scalar, "rhs": np.ones(3, rhs)}

    operands, result, copied = make_operands(**values)

    assert result == promoted(*values.values())
    assert operands["diag"].ndim == 0
    assert copied == (("rhs",) if result != rhs else ())


def test_numbers_alone_are_float64():
    assert make_operands(lower=1, diag=2.0)[1] == np.float64
    assert make_operands(lower=1, diag=2)[1] == np.float64


@pytest.mark.parametrize(
    ("fixed", "rhs", "widens", "expected"),
    [
        ("f4", "f4", False, "f4"),
        ("f8", "f4", False, "f8"),
        ("f4", "i2", False, "f4"),
        ("f4", "i8", False, None),
        ("f4", "f8", True, None),
        ("f8", "c8", False, None),
        ("f8", "c8", True, "c16"),
        ("f4", "c8", True, "c8"),
        ("f4", "c16", True, None),
        ("c8", "f4", True, "c8"),
        ("c8", "f8", True, None),
    ],
)
def test_operands_promote_to_a_fixed_dtype_or_are_refused(fixed, rhs, widens, expected):
    like = {"the factor": np.ones(1, fixed)}

    if expected is None:
        text = f"rhs is {np.dtype(rhs)}, but the factor is {np.dtype(fixed)}: convert rhs"
        with pytest.raises(TypeError, match=text):
            _arrays.as_operands({"rhs": np.ones(3, rhs)}, like, widens=widens)
        return
    (operand,), dtype, _ = _arrays.as_operands({"rhs": np.ones(3, rhs)}, like, widens=widens)
    assert operand.dtype == dtype == expected


def test_pairs_are_real_and_imaginary_parts():
    array = (np.arange(24.0) + 1j * np.arange(24.0, 48.0)).reshape(2, 3, 4)[:, ::-2, 1:]

    parts = _lines.pairs(array)

    np.testing.assert_array_equal(parts[0], array.real)
    np.testing.assert_array_equal(parts[1], array.imag)
    parts[1] = 7
    assert (array.imag == 7).all()


@pytest.mark.parametrize("dtype", ["float16", "longdouble", "clongdouble", "O", "U1", "M8[s]"])
def test_other_dtypes_are_refused_by_name(dtype):
    array = np.zeros(3, dtype)

    with pytest.raises(TypeError, match="rhs: need float32, float64"):
        make_operands(rhs=array)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("kind", [np.ma.MaskedArray, np.matrix])
def test_arrays_of_another_meaning_are_refused(kind):
    with pytest.raises(TypeError, match="lower must be a plain array"):
        make_operands(lower=kind([[1.0, 2.0]]))


def test_rows_of_several_lengths_are_refused_by_name():
    with pytest.raises(ValueError, match=r"upper: .*inhomogeneous"):
        _arrays.as_array("upper", [[1.0, 2.0], [3.0]])


def test_foreign_byte_order_is_copied():
    array = np.arange(3.0).astype(">f8")

    operands, _, copied = make_operands(rhs=array)

    np.testing.assert_array_equal(operands["rhs"], array)
    assert operands["rhs"].dtype.isnative
    assert copied == ("rhs",)


def test_strides_between_elements_are_copied():
    record = np.zeros(4, [("value", "f8"), ("flag", "i4")])
    record["value"] = np.arange(4)

    operands, _, copied = make_operands(rhs=record["value"])

    np.testing.assert_array_equal(operands["rhs"], np.arange(4))
    assert copied == ("rhs",)


def resolve(axis=-1, periodic=False, **shapes):
    arrays = {name: np.empty(shapes.get(name, ())) for name in ("lower", "diag", "upper", "rhs")}
    return _arrays.resolve_shape(arrays, axis, leader="rhs", periodic=periodic)


@pytest.mark.parametrize("axis", [1, -2])
def test_shape_is_the_broadcast_of_all_operands(axis):
    shape = resolve(axis, lower=(5, 4, 1), diag=(4, 3), rhs=(1, 4, 3))

    assert shape.full == (5, 4, 3)
    assert (shape.axis, shape.rows, shape.batch) == (1, 4, (5, 3))


@pytest.mark.parametrize(
    ("lower", "upper", "short"),
    [(3, 4, (True, False)), (4, 3, (False, True)), (3, 3, (True, True)), (4, 4, (False, False))],
)
def test_off_diagonals_may_miss_their_end(lower, upper, short):
    shape = resolve(lower=(lower,), upper=(upper,), rhs=(4,))

    assert (shape.short[0], shape.short[2]) == short


def test_one_entry_of_two_rows_is_a_row_less_that_the_backend_need_not_know():
    shape = resolve(lower=(1,), diag=(2,), upper=(1,), rhs=(2,))

    assert shape.rows == 2
    assert shape.omits == (True, False, True, False)
    assert not any(shape.short)
    assert not any(resolve(lower=(3, 1), diag=(2,), upper=(3, 1), rhs=(2,)).omits)


def test_no_entry_is_the_short_off_diagonal_of_one_row():
    shape = resolve(lower=(0,), diag=(1,), upper=(0,), rhs=(1,))

    assert shape.rows == 1
    assert shape.short == (True, False, True, False)


def test_rhs_of_one_row_broadcasts_along_the_axis():
    assert resolve(diag=(6,), lower=(6,), rhs=(3, 1)).full == (3, 6)
    assert resolve(lower=(6,), rhs=(3, 1)).rows == 6
    assert resolve(diag=(6,), lower=(5,), rhs=(3, 1)).short == (True, False, False, False)


@pytest.mark.parametrize(
    ("shapes", "name"),
    [
        ({"lower": (2,), "rhs": (4,)}, "lower"),
        ({"diag": (3,), "rhs": (4,)}, "diag"),
        ({"upper": (5,), "rhs": (4,)}, "upper"),
        ({"lower": (1,), "rhs": (4,)}, "lower"),
        ({"diag": (1,), "rhs": (4,)}, "diag"),
        ({"diag": (5,), "lower": (4,), "rhs": (1,)}, "rhs"),
        ({"lower": (6,), "rhs": (1,)}, "rhs"),
    ],
)
def test_wrong_number_of_rows_is_refused_by_name(shapes, name):
    with pytest.raises(ValueError, match=f"{name} has . entr"):
        resolve(**shapes)


def test_short_off_diagonals_of_a_periodic_system_are_refused():
    with pytest.raises(ValueError, match=r"lower has 3 entries, .* 4 rows: a periodic system"):
        resolve(lower=(3,), rhs=(4,), periodic=True)
    with pytest.raises(ValueError, match=r"upper has 3 rows along axis 1, .* 4 rows: a periodic"):
        resolve(upper=(2, 3), rhs=(4,), periodic=True)


def test_batches_that_do_not_broadcast_are_refused_with_their_shapes():
    with pytest.raises(ValueError, match=r"diag \(3, 4\).*rhs \(2, 4\)"):
        resolve(diag=(3, 4), rhs=(2, 4))


@pytest.mark.parametrize(
    ("shapes", "full", "short"),
    [
        ({"diag": (6,), "rhs": (6, 4)}, (6, 4), ""),
        ({"diag": (1, 4), "rhs": (6, 4)}, (6, 4), ""),
        ({"lower": (5,), "rhs": (6, 4)}, (6, 4), "lower"),
        ({"lower": (5,), "rhs": (6, 5)}, (6, 5), "lower"),
        ({"diag": (6,), "rhs": (3, 6, 4)}, (3, 6, 4), ""),
        ({"diag": (6, 4), "rhs": (6,)}, (6, 4), ""),
        ({"lower": (5, 4), "diag": (6,), "rhs": (6,)}, (6, 4), "lower"),
        ({"lower": (5, 4), "upper": (6,), "rhs": (6,)}, (6, 4), "lower"),
    ],
)
def test_operands_of_one_axis_lie_along_the_systems(shapes, full, short):
    names = ("lower", "diag", "upper", "rhs")

    shape = resolve(-2, **shapes)

    assert shape.full == full
    assert " ".join(n for n, f in zip(names, shape.short, strict=True) if f) == short
    view = shape.batch_first(np.arange(6.0))
    np.testing.assert_array_equal(view.reshape(-1), np.arange(6))
    assert view.shape == (1,) * (len(full) - 1) + (6,)


@pytest.mark.parametrize("length", [1, 4, 5, 7])
def test_wrong_length_of_an_operand_of_one_axis_is_refused(length):
    with pytest.raises(ValueError, match=f"diag has {length} entr.* axis 0 have 6 rows"):
        resolve(-2, diag=(length,), rhs=(6, 4))


@pytest.mark.parametrize("shape", [(), (6,), (5, 1), (5, 6)])
def test_rows_that_are_given(shape):
    arrays = {name: np.empty(shape) for name in ("lower", "diag", "upper")}

    found = _arrays.resolve_shape(arrays, -1, leader="diag", rows=6)

    assert found.full == (*shape[:-1], 6)
    with pytest.raises(ValueError, match=r"lower has 5 entries, but the systems .*have 7 rows"):
        _arrays.resolve_shape(arrays | {"lower": np.empty(5)}, -1, leader="diag", rows=7)


@pytest.mark.parametrize("axis", [None, 1.0, (0,), True])
def test_axis_must_be_an_integer(axis):
    with pytest.raises(TypeError, match="axis must be an int, got"):
        _arrays.resolve_shape({"rhs": np.zeros((2, 3))}, axis, leader="rhs")


@pytest.mark.parametrize("axis", [2, -3])
def test_axis_out_of_range_is_refused(axis):
    with pytest.raises(np.exceptions.AxisError):
        resolve(axis, rhs=(2, 4))


def plan_of(*views, keep=()):
    batch = np.broadcast_shapes(*(view.shape[:-1] for view in views))
    strides = [_lines.batch_strides(view) for view in views]
    return _lines.plan_lines(batch, strides, strides[-1], keep=keep)


def test_contiguous_batch_merges_to_one_axis():
    plan = plan_of(np.empty((2, 3, 4, 5)), np.empty((2, 3, 4, 5)))

    assert (plan.outer, plan.inner, plan.copied) == ((), (0, 1, 2), ())


def test_middle_axis_leaves_two_batch_axes():
    field = np.moveaxis(np.empty((2, 5, 3)), 1, -1)

    plan = plan_of(field, field)

    assert (plan.outer, plan.inner, plan.copied) == ((0,), (1,), ())


def test_reversed_and_transposed_batches_merge():
    field = np.empty((4, 3, 2, 5)).transpose(2, 1, 0, 3)[::-1, ::-1, ::-1]

    plan = plan_of(field, field)

    assert (plan.outer, plan.inner, plan.copied) == ((), (2, 1, 0), ())


def test_axes_of_length_one_never_matter():
    field = np.empty((2, 4, 6, 1, 5))[:, :, ::6]

    plan = plan_of(field, np.empty((1, 1, 1, 1, 5)), field)

    assert plan.copied == ()
    assert len(plan.inner) == 2


def test_shared_operand_is_not_copied_out():
    x = np.empty((2, 3, 4, 5))
    shared = np.empty((1, 1, 1, 5))

    plan = plan_of(shared, x)
    lines = plan.lines(shared, 5)

    assert plan.copied == ()
    assert lines.shape == (1, 24, 5)
    assert lines.strides[:2] == (0, 0)


def test_operand_that_prevents_merging_is_the_one_copied():
    x = np.empty((3, 4, 5, 6))
    odd = np.arange(2.0 * 3 * 4 * 5 * 6).reshape(3, 8, 5, 6)[:, 2:6, ::-1]

    plan = plan_of(x, odd, x)

    assert plan.copied == (1,)
    np.testing.assert_array_equal(plan.lines(odd, 6), odd.reshape(1, 60, 6))


def test_copy_keeps_sharing_over_a_whole_group():
    x = np.moveaxis(np.empty((2, 3, 7, 4)), 2, -1)
    odd = np.moveaxis(np.empty((4, 3, 7, 1))[::2], 2, -1)

    plan = plan_of(odd, x)
    lines = plan.lines(odd, 7)

    assert plan.copied == (0,)
    assert lines.shape == (6, 4, 7)
    assert lines.strides[1] == 0


def test_restored_lines_land_in_their_view():
    values = np.arange(2.0 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    view = np.zeros((4, 9, 4, 5))[::2, ::-3]
    plan = plan_of(values)

    plan.restore(plan.lines(values, 5), view)

    np.testing.assert_array_equal(view, values)


def test_systems_are_numbered_in_the_order_of_the_lines():
    batch = (2, 1, 3)
    field = np.zeros((3, 1, 2, 5)).transpose(2, 1, 0, 3)
    plan = plan_of(field)

    indices = plan.unravel(np.arange(6))

    assert plan.batch == batch
    for system, index in enumerate(indices):
        field[...] = 0
        field[tuple(index)] = 1
        assert plan.lines(field, 5).reshape(6, 5)[system].all()


def test_strides_are_those_of_numpy():
    assert _lines.contiguous_strides((2, 3, 5), 8) == np.empty((2, 3, 5)).strides


def out_of(out, **inputs):
    return _arrays.check_out(out, (4,), np.dtype(np.float64), inputs)


@pytest.mark.parametrize(
    ("out", "error", "text"),
    [
        ([0.0] * 4, TypeError, "out must be an ndarray, got list"),
        (np.ma.zeros(4), TypeError, "out must be an ndarray, got MaskedArray"),
        (np.zeros(4, np.float32), TypeError, "out must be float64 like the result, got float32"),
        (np.zeros(4, ">f8"), TypeError, "out must be float64"),
        (np.zeros(5), ValueError, r"out must have the shape \(4,\) of the result, got \(5,\)"),
        (np.broadcast_to(0.0, 4), ValueError, "out is read-only"),
        (
            np.lib.stride_tricks.as_strided(np.zeros(1), (4,), (0,)),
            ValueError,
            "out must hold each element at one index",
        ),
    ],
)
def test_unusable_out_is_refused(out, error, text):
    with pytest.raises(error, match=text):
        out_of(out)


def test_misaligned_out_is_refused():
    out = np.zeros(40, np.uint8)[1:33].view(np.float64)

    with pytest.raises(ValueError, match="out must be aligned"):
        out_of(out)


def test_out_may_be_rhs_in_another_array_object():
    rhs = np.zeros(4)
    out = rhs[:]

    assert out_of(out, rhs=rhs) is out


@pytest.mark.parametrize("name", ["lower", "diag", "upper"])
def test_out_may_not_be_a_diagonal(name):
    out = np.zeros(4)

    with pytest.raises(ValueError, match=f"out overlaps {name}"):
        out_of(out, **{name: out})


def test_out_may_not_be_a_shifted_or_reversed_rhs():
    rhs = np.zeros(5)

    for out in (rhs[1:], rhs[3::-1]):
        with pytest.raises(ValueError, match="out overlaps rhs"):
            out_of(out, rhs=rhs[:4])


def test_out_may_be_interleaved_with_an_input():
    base = np.zeros((4, 2))

    assert out_of(base[:, 0], diag=base[:, 1]) is not None


def test_out_may_not_start_where_rhs_does_with_other_strides():
    rhs = np.zeros(8)

    with pytest.raises(ValueError, match="out overlaps rhs"):
        out_of(rhs[:4], rhs=rhs[::2])


def test_overlap_that_is_too_hard_to_tell_counts_as_one(monkeypatch):
    def give_up(*arrays, max_work):
        raise np.exceptions.TooHardError

    base = np.zeros((4, 2))
    monkeypatch.setattr(np, "shares_memory", give_up)

    with pytest.raises(ValueError, match="out overlaps diag"):
        out_of(base[:, 0], diag=base[:, 1])
    assert out_of(np.zeros(4), diag=base[:, 1]) is not None


def test_out_between_whole_elements_is_refused():
    records = np.zeros(4, [("x", np.complex128), ("rest", np.float64)])

    with pytest.raises(ValueError, match="multiples of its item size"):
        _arrays.check_out(records["x"], (4,), np.dtype(np.complex128), {})


def test_converted_operands_keep_the_order_of_their_axes():
    operands, _, _ = make_operands(rhs=np.zeros((3, 4, 5), np.int64).transpose(1, 2, 0))

    assert operands["rhs"].strides == np.zeros((3, 4, 5)).transpose(1, 2, 0).strides
