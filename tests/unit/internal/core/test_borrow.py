"""Arrays of other libraries, taken through DLPack; NumPy's arrays offer DLPack, too."""

import ctypes
import sys

import numpy as np
import oracle
import pytest

import pysolvers
from pysolvers import _core
from pysolvers._lines import engine
from pysolvers._runtime import interop, targets


class Lent:
    """An array of a library that offers DLPack only."""

    def __init__(self, values):
        self.values = values

    @property
    def shape(self):
        return self.values.shape

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class OldLent(Lent):
    """The same with the protocol before version 1."""

    def __dlpack__(self, *, stream=None):
        return self.values.__dlpack__(stream=stream)


@pytest.mark.parametrize("kind", [Lent, OldLent, lambda a: a])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("index", [np.s_[:], np.s_[::2, ::-1], np.s_[1], np.s_[1, 2], np.s_[:1]])
def test_view_has_the_memory_of_the_array(rng, kind, dtype, index):
    array = oracle.uniform(rng, (4, 5, 3), np.dtype(dtype))[index]

    view = _core.borrow(kind(array))

    assert type(view) is np.ndarray
    assert (view.dtype, view.shape) == (array.dtype, array.shape)
    assert view.flags.aligned
    assert view.flags.writeable
    np.testing.assert_array_equal(view, array)
    view[...] = 7
    assert (array == 7).all()


def test_arrays_that_cannot_be_read_in_place_are_left_alone():
    misaligned = np.zeros(33, np.uint8)[1:].view(np.float64)

    for array in (np.zeros(3, np.int32), np.zeros(3, np.float16), np.zeros((0, 3)), misaligned):
        assert _core.borrow(array) is None
    for other in (None, 3.0, [1.0], "text", object()):
        assert _core.borrow(other) is None


def test_readonly_arrays_stay_readonly():
    array = np.zeros(3)
    array.flags.writeable = False

    assert not _core.borrow(array).flags.writeable


def test_memory_lives_as_long_as_its_view():
    array = np.arange(1000.0)
    count = sys.getrefcount(array)

    views = [_core.borrow(Lent(array)) for _ in range(5)]
    assert sys.getrefcount(array) > count
    parts = [view[3:5] for view in views]
    del views
    np.testing.assert_array_equal(parts[0], [3, 4])
    del parts
    assert sys.getrefcount(array) == count


def test_error_of_a_library_is_not_raised():
    class Broken(Lent):
        def __dlpack__(self, **options):
            raise BufferError("not here")

    assert _core.borrow(Broken(np.zeros(3))) is None


class Tensor(ctypes.Structure):
    """The struct DLManagedTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class Raw:
    """An array of one axis, described by hand."""

    def __init__(self, values, offset, stride, device_type=1):
        self.values = values
        self.shape = (ctypes.c_int64 * 1)(len(values))
        self.strides = (ctypes.c_int64 * 1)(stride)
        where, bits = values.ctypes.data, 8 * values.itemsize
        self.tensor = Tensor(
            where, device_type, 0, 1, 2, bits, 1, self.shape, self.strides, offset, None, None
        )

    def __dlpack__(self, **options):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = (
            ctypes.py_object,
            [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
        )
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


@pytest.mark.parametrize("stride", [-1, (2**64 - 8) // 8])
def test_negative_strides_signed_or_divided_as_unsigned(stride):
    raw = Raw(np.arange(6.0), 40, stride)

    view = _core.borrow(raw)

    np.testing.assert_array_equal(view, raw.values[::-1])
    assert view.strides == (-8,)


def test_arrays_of_another_device_are_left_alone():
    assert _core.borrow(Raw(np.arange(6.0), 0, 1)) is not None
    assert _core.borrow(Raw(np.arange(6.0), 0, 1, device_type=2)) is None


class Described(Lent):
    """An array of a library that describes its arrays, as CuPy does."""

    def describe(self):
        a = self.values
        return a.ctypes.data, 0, a.shape, a.strides, a.dtype


@pytest.fixture(params=[Lent, Described])
def foreign(request):
    """The type of the arrays on the device."""
    return request.param


@pytest.fixture
def device(monkeypatch, foreign):
    """The CPU in place of a device with arrays of a library; counts the calls without planning."""

    class Library(interop.Library):
        has_fast_access = True

        @property
        def fast_access(self):
            return (
                lambda a: not getattr(a, "lazy", False),
                foreign.describe if foreign is Described else None,
                None,
                lambda like, ordinal: foreign(np.empty(like.shape, like.values.dtype)),
            )

    library, known = Library(), interop.library_of
    answers = []

    def solve(*arguments):
        answers.append(solve_on_device(*arguments))
        return answers[-1]

    solve_on_device = engine.solve_on_device
    monkeypatch.setattr(engine, "solve_on_device", solve)
    monkeypatch.setattr(
        targets, "library_of", lambda v: library if isinstance(v, Lent) else known(v)
    )
    monkeypatch.setattr(targets, "require", lambda name: _core)
    # The place of the arrays is the host here, which reads the matrices of singular systems.
    monkeypatch.setattr(Lent, "__array__", lambda self, *_, **__: self.values, raising=False)
    return answers


@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize(("shape", "axis"), [((9,), 0), ((5, 9), 1), ((9, 5), 0), ((3, 4, 9), 2)])
@pytest.mark.parametrize("options", [{}, {"on_singular": "ignore"}, {"device": "cuda:0"}])
def test_arrays_on_a_device_need_no_planning(device, rng, foreign, dtype, shape, axis, options):
    inner = np.moveaxis(np.empty(shape), axis, -1).shape
    system = [
        np.ascontiguousarray(np.moveaxis(a, -1, axis))
        for a in oracle.dominant(rng, inner, np.dtype(dtype))
    ]
    expected = pysolvers.solve_tridiagonal(*system, axis=axis)

    x = pysolvers.solve_tridiagonal(*map(foreign, system), axis=axis, **options)
    out = foreign(np.empty(shape, dtype))
    y = pysolvers.solve_tridiagonal(*map(foreign, system), axis=axis, out=out, **options)

    assert device == [x, y]
    assert isinstance(x, foreign)
    assert y is out
    np.testing.assert_array_equal(x.values, expected)
    np.testing.assert_array_equal(y.values, expected)


@pytest.mark.parametrize(("shape", "axis"), [((5, 9), 1), ((9, 5), 0), ((400, 9), 1)])
def test_real_matrix_on_a_device_with_complex_sides(device, rng, foreign, shape, axis):
    inner = np.moveaxis(np.empty(shape), axis, -1).shape
    system = [np.moveaxis(a, -1, axis).copy() for a in oracle.dominant(rng, inner)]
    system[3] = system[3] * (1 - 2j)

    x = pysolvers.solve_tridiagonal(*map(foreign, system), axis=axis)

    assert device == [x]
    np.testing.assert_array_equal(x.values, pysolvers.solve_tridiagonal(*system, axis=axis))


@pytest.mark.parametrize("factor", [1, 1 + 2j])
@pytest.mark.parametrize(("shape", "axis"), [((9,), 0), ((5, 9), 1), ((9, 5), 0), ((3, 9, 4), 1)])
def test_numbers_beside_arrays_on_a_device(device, rng, foreign, shape, axis, factor):
    rhs = rng.standard_normal(shape) * factor
    diag = foreign(np.full(9, 3.0))

    x = pysolvers.solve_tridiagonal(-1.0, 3, -1.0, foreign(rhs), axis=axis)
    y = pysolvers.solve_tridiagonal(-1, diag, -1.0, foreign(rhs), axis=axis)

    assert device == [x, y]
    expected = pysolvers.solve_tridiagonal(-1.0, 3, -1.0, rhs, axis=axis)
    np.testing.assert_array_equal(x.values, expected)
    np.testing.assert_allclose(y.values, expected, rtol=1e-13)


def test_singular_systems_on_a_device(device, rng, foreign):
    lower, diag, upper, rhs = oracle.dominant(rng, (300, 9))
    lower[7, 4:6] = diag[7, 4] = upper[7, 3:5] = 0
    arrays = [foreign(a) for a in (lower, diag, upper, rhs)]

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        pysolvers.solve_tridiagonal(*arrays)
    np.testing.assert_array_equal(caught.value.systems, [[7]])
    np.testing.assert_array_equal(caught.value.rows, [4])
    x = pysolvers.solve_tridiagonal(*arrays, on_singular="ignore")
    assert device == [x]
    others = np.arange(300) != 7
    expected = oracle.solve(*(a[others] for a in (lower, diag, upper, rhs)))
    np.testing.assert_allclose(x.values[others], expected, rtol=1e-12, atol=1e-14)


def test_calls_that_are_planned_on_a_device(device, rng, foreign):
    lower, diag, upper, rhs = oracle.dominant(rng, (6, 9))
    arrays = [foreign(a) for a in (lower, diag, upper, rhs)]
    lazy = foreign(upper)
    lazy.lazy = True

    for operands, options in [
        ((arrays[0], arrays[1].values, *arrays[2:]), {}),
        ((np.float32(-1), *arrays[1:]), {}),
        ((foreign(lower.astype("f4")), *arrays[1:]), {}),
        ((*arrays[:2], lazy, arrays[3]), {}),
        (arrays, {"device": "cuda:1"}),
        (arrays, {"out": np.empty((6, 9))}),
        (arrays, {"out": foreign(np.empty((6, 8)))}),
        (arrays, {"axis": 5}),
    ]:
        axis, out = options.get("axis", -1), options.get("out")
        access = targets.fast_access_of(operands[3], options.get("device"))
        others = (axis, out, None, False, None, "raise", access)
        assert engine.solve_on_device(*operands, *others) is None
    assert targets.fast_access_of(arrays[3], "cpu") is None


def test_memory_of_a_device_lives_as_long_as_the_call(device, rng, foreign):
    arrays = [foreign(a) for a in oracle.dominant(rng, (6, 9))]
    before = [sys.getrefcount(a) for a in (*arrays, *(a.values for a in arrays))]

    for _ in range(3):
        x = pysolvers.solve_tridiagonal(*arrays)

    assert [sys.getrefcount(a) for a in (*arrays, *(a.values for a in arrays))] == before
    device.clear()
    assert sys.getrefcount(x) == 2


def test_error_of_an_allocation_is_raised(device, rng, foreign, monkeypatch):
    arrays = [foreign(a) for a in oracle.dominant(rng, (6, 9))]

    def full(shape, dtype):
        raise MemoryError("full")

    monkeypatch.setattr(np, "empty", full)
    with pytest.raises(MemoryError, match="full"):
        pysolvers.solve_tridiagonal(*arrays)


def test_factor_on_a_device_needs_no_planning(device, rng, foreign, monkeypatch):
    """The factor is made on the CPU, and used as if it were on a device."""
    *matrix, rhs = oracle.dominant(rng, (6, 9))
    factor = pysolvers.factor_tridiagonal(*matrix)
    expected = [factor.solve(rhs), factor.solve(rhs * 1j, trans="T")]
    monkeypatch.setattr(factor, "_device", "cuda:0")
    out = foreign(np.empty_like(rhs))

    x = factor.solve(foreign(rhs))
    y = factor.solve(foreign(rhs * 1j), trans="T")

    np.testing.assert_array_equal(x.values, expected[0])
    np.testing.assert_array_equal(y.values, expected[1])
    assert factor.solve(foreign(rhs), out=out) is out
    np.testing.assert_array_equal(out.values, expected[0])


def test_operands_are_borrowed_together(device, rng, foreign):
    library = targets.fast_access_of(foreign(np.zeros(2)), None)[1]
    one, two = foreign(rng.random((3, 4))), foreign(rng.random(5).astype("f4"))

    ordinal, stream, first, none, number, second = _core.borrow_operands(
        one, None, 2.5, two, -1, library
    )

    assert (ordinal, stream, none, number) == (0, 0, None, 2.5)
    for view, owner in ((first, one), (second, two)):
        np.testing.assert_array_equal(view, owner.values)
        assert view.ctypes.data == owner.values.ctypes.data
    for operands, wanted in [((one, two), 1), ((one.values, two), 0), (("x", two), 0)]:
        assert _core.borrow_operands(*operands, wanted, library) is None
    two.lazy = True
    assert _core.borrow_operands(one, two, 0, library) is None
    with pytest.raises(TypeError, match="need 3 to"):
        _core.borrow_operands(0, library)
    with pytest.raises(TypeError):
        _core.borrow_operands(one, "0", library)
