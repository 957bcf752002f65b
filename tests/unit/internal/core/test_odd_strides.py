"""Fields of structured arrays: strides that are no multiple of the item size, odd addresses."""

import numpy as np
import pytest

import pysolvers
from pysolvers._runtime.backends import require

RECORDS = [
    [("mark", "u1"), ("value", "{}")],
    [("value", "{}"), ("mark", "f8")],
    [("mark", "f4"), ("value", "{}")],
]
DTYPES = ["f4", "f8", "c8", "c16"]


def field_of(values, record):
    """Return a view with the values in a structured array whose other bytes are 0xA5."""
    dtype = np.dtype([(name, kind.format(values.dtype.str)) for name, kind in record])
    room = np.frombuffer(b"\xa5" * (values.size * dtype.itemsize), dtype).reshape(values.shape)
    room = room.copy()
    room["value"] = values
    return room["value"]


def systems(rng, dtype):
    made = rng.uniform(-1, 1, (2, 4, 5, 9))
    is_complex = np.dtype(dtype).kind == "c"
    values = (made[0] + 1j * made[1] if is_complex else made[0]).astype(dtype)
    return values[0], values[1] + 4, values[2], values[3]


@pytest.mark.parametrize("record", range(len(RECORDS)))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1])
def test_fields_of_structured_arrays_give_the_same_bits(rng, dtype, record, axis):
    operands = systems(rng, dtype)
    fields = [field_of(a, RECORDS[record]) for a in operands]
    out = field_of(np.zeros_like(operands[-1]), RECORDS[record])
    expected = pysolvers.solve_tridiagonal(*operands, axis=axis)

    np.testing.assert_array_equal(pysolvers.solve_tridiagonal(*fields, axis=axis), expected)
    for k in range(4):
        mixed = [*operands[:k], fields[k], *operands[k + 1 :]]
        np.testing.assert_array_equal(pysolvers.solve_tridiagonal(*mixed, axis=axis), expected)
    factor = pysolvers.factor_tridiagonal(*fields[:3], axis=axis)
    kept = pysolvers.factor_tridiagonal(*operands[:3], axis=axis).solve(operands[3])
    np.testing.assert_array_equal(factor.solve(fields[3]), kept)
    for view, values in zip(fields, operands, strict=True):
        np.testing.assert_array_equal(view, values)

    if out.flags.aligned and all(stride % out.itemsize == 0 for stride in out.strides):
        pysolvers.solve_tridiagonal(*operands, axis=axis, out=out)
        np.testing.assert_array_equal(out, expected)
        return
    with pytest.raises(ValueError, match="out must be aligned, with strides that are multiples"):
        pysolvers.solve_tridiagonal(*operands, axis=axis, out=out)
    np.testing.assert_array_equal(out, 0)


@pytest.mark.parametrize("dtype", ["f8", "c8", "c16"])
def test_the_extension_refuses_strides_that_are_no_multiple(rng, dtype):
    core = require("cpu")
    whole = [np.ascontiguousarray(a)[None] for a in systems(rng, dtype)]
    x = np.empty_like(whole[-1])
    padded = np.dtype([("value", dtype), ("mark", "u4")])
    for k in range(4):
        arrays = list(whole)
        room = np.zeros(whole[k].shape, padded)
        room["value"] = whole[k]
        arrays[k] = room["value"]
        with pytest.raises(ValueError, match=r"must be a multiple of|aligned"):
            core.tridiag_solve(core.METHODS["auto"], core.PIVOTS["auto"], 0, *arrays, x, None, 1)
