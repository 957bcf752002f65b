"""The way to a device and back, on a device made of protected host memory."""

import sys
import weakref
from types import SimpleNamespace

import fake_device
import numpy as np
import oracle
import pytest

import pysolvers
from pysolvers._lines import eager
from pysolvers._runtime import backends, interop, targets
from pysolvers.papers import wei2013

FULL = (3, 4, 5)


@pytest.fixture
def device():
    with fake_device.in_place_of_cuda() as fake:
        yield fake
    assert fake.live == 0


def dominant(rng, shape, dtype=np.float64):
    return [array.astype(dtype) for array in oracle.dominant(rng, shape)]


def layouts():
    """Views of 3-D arrays that merge, partly merge and do not merge."""
    yield "c", lambda a: a
    yield "fortran", np.asfortranarray
    yield "reversed", lambda a: a[::-1, :, ::-1]
    yield "step", lambda a: np.repeat(a, 2, axis=1)[:, ::2]
    yield "swapped", lambda a: np.ascontiguousarray(a.swapaxes(0, 1)).swapaxes(0, 1)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("layout", [pytest.param(f, id=name) for name, f in layouts()])
@pytest.mark.parametrize("operand", range(4))
def test_numpy_arrays_are_solved_on_the_device(device, rng, axis, layout, operand):
    operands = dominant(rng, FULL)
    operands[operand] = layout(operands[operand])
    options = {"axis": axis, "return_info": True}
    expected, on_cpu = pysolvers.solve_tridiagonal(*operands, **options)

    x, info = pysolvers.solve_tridiagonal(*operands, device="cuda", **options)

    np.testing.assert_allclose(x, expected, rtol=1e-13)
    assert x.strides == expected.strides
    assert (info.backend, info.device, info.pivoted) == ("cuda", 0, on_cpu.pivoted)
    assert set(info.seconds) == {"copy", "solve"}


def test_negative_strides_that_a_library_divides_as_unsigned(device, rng, monkeypatch):
    class Unsigned(fake_device.View):
        def __init__(self, array, *, stream_ptr):
            super().__init__(array, stream_ptr=stream_ptr)
            size = self.dtype.itemsize
            strides = array.__cuda_array_interface__["strides"]
            self.strides = tuple(stride % 2**64 // size for stride in strides)

    monkeypatch.setattr(interop, "_memory_view", lambda: Unsigned)
    operands = dominant(rng, FULL)
    index = np.s_[::-1, :, ::-1]
    expected = pysolvers.solve_tridiagonal(*(a[index] for a in operands))

    x = pysolvers.solve_tridiagonal(*(device.array(a).view(index) for a in operands))

    np.testing.assert_allclose(x.get(), expected, rtol=1e-13)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_operand_that_does_not_merge_is_copied_on_the_device(device, rng, axis):
    shape = (3, 4, 5, 2)
    operands = dominant(rng, shape)
    odd = np.asfortranarray(operands[0])
    arrays = [device.array(odd), *(device.array(a) for a in operands[1:])]

    x, info = pysolvers.solve_tridiagonal(*arrays, axis=axis, return_info=True)

    np.testing.assert_allclose(
        x.get(), pysolvers.solve_tridiagonal(*operands, axis=axis), rtol=1e-13
    )
    assert info.copied == ("lower",)
    assert info.seconds is None
    assert any(call[0] == "relayout" for call in device.calls)
    assert not any(call[0] == "upload" for call in device.calls)


def test_broadcast_operands_are_uploaded_in_their_own_shape(device, rng):
    rhs = rng.standard_normal((50, 8))
    wide = np.broadcast_to(np.full((1, 8), 4.0), rhs.shape)

    x = pysolvers.solve_tridiagonal(1.0, wide, 1.0, rhs, device="cuda")

    np.testing.assert_array_equal(x, pysolvers.solve_tridiagonal(1.0, wide, 1.0, rhs))
    assert sum(call[1] for call in device.calls if call[0] == "upload") == rhs.nbytes + 10 * 8


def test_operands_with_gaps_are_named(device, rng):
    operands = dominant(rng, FULL)
    operands[0] = np.asfortranarray(operands[0])
    operands[1] = np.repeat(operands[1], 2, axis=2)[..., ::2]
    operands[2] = np.broadcast_to(operands[2][:1], FULL)

    _, info = pysolvers.solve_tridiagonal(*operands, device="cuda", return_info=True)

    assert info.copied == ("diag",)


@pytest.mark.parametrize("where", ["host", "device"])
def test_one_row_with_empty_off_diagonals(device, where):
    make = device.array if where == "device" else np.asarray
    empty = np.empty((2, 0))

    x = pysolvers.solve_tridiagonal(
        make(empty), make(np.full((2, 1), 2.0)), make(empty), make(np.ones((2, 1))), device="cuda"
    )

    assert (x.get() if where == "device" else x).tolist() == [[0.5], [0.5]]


@pytest.mark.parametrize("shape", [(0, 4), (4, 0)])
@pytest.mark.parametrize("where", ["host", "device"])
def test_nothing_to_solve(device, where, shape):
    make = device.array if where == "device" else np.asarray
    operands = [make(np.ones(shape)) for _ in range(4)]

    x, info = pysolvers.solve_tridiagonal(*operands, device="cuda", return_info=True)

    assert not any(call[0] == "solve" for call in device.calls)
    assert info.singular.shape == (0, 1)
    assert (x.get() if where == "device" else x).shape == shape


def singular(rng):
    operands = dominant(rng, (4, 6))
    for operand in operands[:3]:
        operand[2] = 0
    return operands


def test_device_arrays_are_waited_for_only_to_raise_or_warn(device, rng):
    arrays = [device.array(a) for a in singular(rng)]

    x, info = pysolvers.solve_tridiagonal(*arrays, on_singular="ignore", return_info=True)
    assert info.singular is None and info.singular_rows is None and info.pivoted is None
    pysolvers.solve_tridiagonal(*arrays, on_singular="nan", out=x)
    assert not {"download", "wait"} & {call[0] for call in device.calls}
    assert np.isnan(x.get()).all(axis=1).tolist() == [False, False, True, False]
    with pytest.raises(pysolvers.SingularSystemError) as caught:
        pysolvers.solve_tridiagonal(*arrays)
    assert caught.value.systems.tolist() == [[2]]
    with pytest.warns(pysolvers.SingularSystemWarning):
        pysolvers.solve_tridiagonal(*arrays, on_singular="warn")


def test_singular_systems_of_numpy_arrays(device, rng):
    operands = singular(rng)

    x, info = pysolvers.solve_tridiagonal(
        *operands, on_singular="nan", device="cuda", return_info=True
    )
    assert np.isnan(x).all(axis=1).tolist() == [False, False, True, False]
    assert info.singular.tolist() == [[2]]
    with pytest.raises(pysolvers.SingularSystemError):
        pysolvers.solve_tridiagonal(*operands, device="cuda")


def test_stream_is_that_of_the_array_or_the_one_given(device, rng):
    class Given:
        def __cuda_stream__(self):
            return (0, 77)

    class Cupy:
        ptr = 78

    class Torch:
        cuda_stream = 79

    operands = dominant(rng, (4, 6))
    arrays = [device.array(a) for a in operands]
    rhs = fake_device.Array(device, operands[3], stream=55)
    for stream, used in [(None, 55), (0, 0), (12, 12), (Given(), 77), (Cupy(), 78), (Torch(), 79)]:
        device.calls.clear()
        pysolvers.solve_tridiagonal(*arrays[:3], rhs, stream=stream, on_singular="ignore")
        assert ("solve", used) in device.calls
        assert {call[1] for call in device.calls if call[0] == "view"} - {-1} == {used or 1}
    with pytest.raises(TypeError, match="stream must be an int"):
        pysolvers.solve_tridiagonal(*arrays, stream="main")
    with pytest.raises(ValueError, match="negative"):
        pysolvers.solve_tridiagonal(*arrays, stream=-3)


def test_numpy_arrays_run_on_a_stream_of_the_thread(device, rng):
    pysolvers.solve_tridiagonal(*dominant(rng, (4, 6)), device="cuda")
    pysolvers.solve_tridiagonal(*dominant(rng, (4, 6)), device="cuda", stream=9)

    assert [call[1] for call in device.calls if call[0] == "solve"] == [2, 9]


def test_arrays_of_host_and_device_do_not_mix(device, rng):
    operands = dominant(rng, (4, 6))
    arrays = [device.array(a) for a in operands]

    with pytest.raises(
        TypeError, match=r"lower is a .*Array on cuda:0, but rhs is a numpy.ndarray"
    ):
        pysolvers.solve_tridiagonal(*arrays[:3], operands[3])
    with pytest.raises(
        TypeError, match=r"lower is a .*Array on cuda:0, but out is a numpy.ndarray"
    ):
        pysolvers.solve_tridiagonal(*arrays, out=operands[3])
    with pytest.raises(
        TypeError, match=r"out is a .*Array on cuda:0, but lower is a numpy.ndarray"
    ):
        pysolvers.solve_tridiagonal(*operands, out=arrays[3])
    with pytest.raises(TypeError, match="diag is a list"):
        pysolvers.solve_tridiagonal(1.0, [4.0] * 6, 1.0, arrays[3])
    with pytest.raises(ValueError, match="device is 'cpu'"):
        pysolvers.solve_tridiagonal(*arrays, device="cpu")
    with pytest.raises(ValueError, match="device is 'cuda:1'"):
        pysolvers.solve_tridiagonal(*arrays, device="cuda:1")
    with pytest.raises(pysolvers.BackendError, match="there is no device cuda:1"):
        pysolvers.solve_tridiagonal(*operands, device="cuda:1")


def test_dtypes_of_device_arrays_are_refused_by_name(device, rng):
    arrays = [device.array(a) for a in dominant(rng, (4, 6))]

    for other in ("i4", "f2", "f4", ">f8", "?"):
        wrong = device.array(np.ones((4, 6), other))
        with pytest.raises(TypeError, match="diag"):
            pysolvers.solve_tridiagonal(arrays[0], wrong, arrays[2], arrays[3])
    with pytest.raises(TypeError, match=r"lower: a .*cannot be converted to complex128"):
        pysolvers.solve_tridiagonal(arrays[0], arrays[1], 1j, arrays[3])


@pytest.mark.parametrize(
    ("matrix", "rhs", "result"),
    [("f4", "f8", "f8"), ("f8", "f4", "f8"), ("c8", "f8", "c16"), ("f8", "c8", "c16")],
)
def test_library_converts_device_arrays(device, rng, monkeypatch, matrix, rhs, result):
    held, converted = [], []

    def convert(self, name, value, dtype):
        converted.append(name)
        return device.array(value.get().astype(dtype))

    monkeypatch.setattr(interop.Library, "converted", convert)
    monkeypatch.setattr(targets, "keep_until", lambda mark, arrays: held.append(arrays))
    operands = dominant(rng, FULL, matrix)
    operands[3] = (operands[3] if rhs == "c8" else operands[3].real).astype(rhs)

    x, info = pysolvers.solve_tridiagonal(*map(device.array, operands), axis=1, return_info=True)

    assert x.get().dtype == info.dtype == result
    expected = pysolvers.solve_tridiagonal(*(a.astype(result) for a in operands), axis=1)
    np.testing.assert_allclose(x.get(), expected, rtol=100 * oracle.eps(result))
    assert info.copied[: len(converted)] == tuple(converted)
    assert len(held) == 1  # the copies live until the stream has read them


@pytest.mark.parametrize(("where", "dtype"), [("host", "c8"), ("device", "c16")])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("shared", "converts"), [(False, False), (True, False), (True, True)])
def test_real_matrix_and_complex_sides(
    device, rng, monkeypatch, where, dtype, axis, shared, converts
):
    monkeypatch.setattr(
        interop.Library,
        "converted",
        lambda self, name, value, dtype: device.array(value.get().astype(dtype)),
    )
    monkeypatch.setattr(interop.Library, "converts", converts)
    real = np.zeros(1, dtype).real.dtype
    matrix = dominant(rng, (FULL[axis],) if shared else FULL, real)[:3]
    rhs = oracle.uniform(rng, FULL, np.dtype(dtype))
    make = device.array if where == "device" else np.asarray
    options = {"axis": axis, "device": "cuda"}

    x, info = pysolvers.solve_tridiagonal(*map(make, (*matrix, rhs)), return_info=True, **options)
    y = pysolvers.solve_tridiagonal(*map(make, (*matrix, rhs)), on_singular="nan", **options)

    expected = pysolvers.solve_tridiagonal(*(a.astype(dtype) for a in matrix), rhs, axis=axis)
    for answer in (x, y):
        values = answer.get() if where == "device" else answer
        np.testing.assert_allclose(values, expected, rtol=200 * oracle.eps(dtype))
    assert info.systems == rhs.size // FULL[axis]


@pytest.mark.parametrize("where", ["host", "device"])
def test_nan_for_a_singular_real_matrix_and_complex_sides(device, rng, where):
    make = device.array if where == "device" else np.asarray
    lower, diag, upper, rhs = dominant(rng, FULL)
    lower[1], diag[1, :, 2], upper[1] = 0, 0, 0

    x = pysolvers.solve_tridiagonal(
        *map(make, (lower, diag, upper, rhs * (1 + 1j))), axis=1, on_singular="nan", device="cuda"
    )

    values = x.get() if where == "device" else x
    bad = np.zeros(FULL, bool)
    bad[1, :, 2] = True
    np.testing.assert_array_equal(np.isnan(values.real), bad)
    np.testing.assert_array_equal(np.isnan(values.imag), bad)


def test_out_on_the_device_is_checked(device, rng):
    operands = dominant(rng, (4, 6))
    arrays = [device.array(a) for a in operands]
    expected = pysolvers.solve_tridiagonal(*operands)

    for wrong, message in [
        (device.array(np.zeros((4, 5))), "shape"),
        (fake_device.Array(device, np.zeros((4, 6)), readonly=True), "read-only"),
        (arrays[1], "out overlaps diag"),
        (arrays[3].view(np.s_[::-1]), "out overlaps rhs"),
    ]:
        with pytest.raises(ValueError, match=message):
            pysolvers.solve_tridiagonal(*arrays, out=wrong)
    with pytest.raises(TypeError, match="float32"):
        pysolvers.solve_tridiagonal(*arrays, out=device.array(np.zeros((4, 6), "f4")))
    assert pysolvers.solve_tridiagonal(*arrays, out=arrays[3]) is arrays[3]
    np.testing.assert_array_equal(arrays[3].get(), expected)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize("trans", ["N", "T"])
@pytest.mark.parametrize("sides", ["hh", "hd", "dh", "dd"])
def test_factor_and_right_hand_sides_on_either_side(device, rng, batch, trans, sides):
    lower, diag, upper, _ = dominant(rng, (*batch, 6))
    rhs = rng.standard_normal((4, *batch, 6))
    expected = pysolvers.factor_tridiagonal(lower, diag, upper).solve(rhs, trans=trans)
    make = [device.array if side == "d" else np.asarray for side in sides]

    factor = pysolvers.factor_tridiagonal(*map(make[0], (lower, diag, upper)), device="cuda")
    x = factor.solve(make[1](rhs), trans=trans)

    assert factor.info.backend == "cuda"
    np.testing.assert_allclose(x.get() if sides[1] == "d" else x, expected, rtol=1e-12)
    factor.refactor(*map(make[1], (lower, 2 * diag, upper)))
    out = make[1](np.zeros_like(rhs))
    assert factor.solve(make[1](rhs), trans=trans, out=out) is out
    expected = pysolvers.factor_tridiagonal(lower, 2 * diag, upper).solve(rhs, trans=trans)
    np.testing.assert_allclose(out.get() if sides[1] == "d" else out, expected, rtol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_factor_with_right_hand_sides_that_do_not_merge(device, rng, axis):
    operands = dominant(rng, (3, 1, 4, 5))
    rhs = np.asfortranarray(rng.standard_normal((3, 2, 4, 5)))
    if axis == 1:
        operands = [np.repeat(a, 2, axis=1) for a in operands]
    expected = pysolvers.factor_tridiagonal(*operands[:3], axis=axis).solve(rhs)

    factor = pysolvers.factor_tridiagonal(*map(device.array, operands[:3]), axis=axis)
    x = factor.solve(device.array(rhs))

    np.testing.assert_allclose(x.get(), expected, rtol=1e-12)


@pytest.mark.parametrize("side", ["host", "device"])
def test_factor_gives_nan_for_singular_matrices(device, rng, side):
    make = device.array if side == "device" else np.asarray
    operands = singular(rng)
    factor = pysolvers.factor_tridiagonal(*map(make, operands[:3]), on_singular="nan")
    if side == "host":
        factor = pysolvers.factor_tridiagonal(*operands[:3], on_singular="nan", device="cuda")
    rhs = rng.standard_normal((3, 4, 6))

    x = factor.solve(make(rhs))

    found = np.isnan(x.get() if side == "device" else x)
    assert found.all(axis=(0, 2)).tolist() == [False, False, True, False]
    assert found.any(axis=(0, 2)).tolist() == [False, False, True, False]
    assert (factor.info.singular is None) == (side == "device")
    with pytest.raises(pysolvers.SingularSystemError):
        pysolvers.factor_tridiagonal(*map(make, operands[:3]), device="cuda")


def test_arrays_are_kept_until_the_stream_has_passed():
    class Mark:
        passed = False

    class Thing:
        pass

    kept, marks = interop._KeptArrays(), [Mark() for _ in range(3)]
    things = [Thing() for _ in marks]
    left = [weakref.ref(thing) for thing in things]
    for mark in marks:
        kept.keep_until(mark, things.pop(0))

    marks[1].passed = True
    kept.keep_until(Mark(), None)
    assert [ref() is None for ref in left] == [False, True, False]
    marks[0].passed = marks[2].passed = True
    kept.keep_until(Mark(), None)
    assert [ref() is None for ref in left] == [True, True, True]


def test_library_with_streams_of_its_own(device, rng, monkeypatch):
    """What JAX needs: its operands held, its result in the order of streams, its device undone."""
    current = [3]

    class Device:
        def __init__(self):
            self.number = current[0]

        def set_current(self):
            current[0] = self.number

    class Array(fake_device.Array):
        __module__ = "jax.fake"

        def devices(self):
            gpu = SimpleNamespace(platform="gpu")
            gpu.get_stream_for_external_ready_events = lambda: 30
            return [gpu]

        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, *, stream, max_version):
            device.calls.append(("export", stream))
            current[0] = 0
            return self

    def from_dlpack(pending):
        assert pending.__dlpack_device__() == (2, 0)
        return pending.__dlpack__(stream=30, max_version=(1, 0))

    def empty(shape, dtype, *, device):
        return Array(fake, np.zeros(shape, dtype), readonly=True)

    fake = device
    held = []
    modules = {"jax": SimpleNamespace(numpy=SimpleNamespace(empty=empty))}
    modules["jax.dlpack"] = SimpleNamespace(from_dlpack=from_dlpack)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(targets, "keep_until", lambda mark, arrays: held.append(sorted(arrays)))
    monkeypatch.setattr(interop, "device_class", lambda: Device)
    monkeypatch.setattr(eager, "_loaded", lambda name: None)  # the general path
    monkeypatch.setattr(Array, "dtype", np.dtype("f8"), raising=False)
    operands = dominant(rng, (4, 6))
    arrays = [Array(fake, operand) for operand in operands]

    for stream, ordered in [(None, False), (40, True)]:
        device.calls.clear()
        x = pysolvers.solve_tridiagonal(*arrays, on_singular="ignore", stream=stream)
        np.testing.assert_array_equal(x.get(), pysolvers.solve_tridiagonal(*operands))
        assert ("solve", stream or 30) in device.calls
        assert (("order", 40, 30) in device.calls) == ordered
        assert device.calls[-1] == ("export", 30)
        assert current == [3]
    assert held == [["diag", "lower", "rhs", "upper"]] * 2
    with pytest.raises(TypeError, match=r"out must be writeable, a jax\.Array never is"):
        pysolvers.solve_tridiagonal(*arrays, out=arrays[3])


def test_factor_on_the_cpu_refuses_device_arrays(device, rng):
    operands = dominant(rng, (4, 6))
    factor = pysolvers.factor_tridiagonal(*operands[:3])

    with pytest.raises(ValueError, match="device is 'cpu'"):
        factor.solve(device.array(operands[3]))


def test_mappings_of_a_paper_need_a_device(rng):
    operands = dominant(rng, (4, 6))

    with pytest.raises(ValueError, match="mapping needs a device"):
        wei2013.solve_tridiagonal(*operands, mapping="C2")
    with pytest.raises(ValueError, match="mapping must be one of C1, C2, C3, C4"):
        wei2013.solve_tridiagonal(*operands, mapping="C5")


@pytest.mark.parametrize("mapping", [1, 2, 3, 4])
def test_mappings_reach_the_backend(device, rng, mapping):
    operands = dominant(rng, (4, 6))
    options = {"device": "cuda", "return_info": True}

    x, info = wei2013.solve_tridiagonal(*operands, mapping=f"C{mapping}", **options)

    assert device.variant == mapping
    np.testing.assert_allclose(x, pysolvers.solve_tridiagonal(*operands), rtol=1e-12)
    pysolvers.solve_tridiagonal(*operands, method="pcr", **options)
    assert device.variant == 0
    assert info.method == "pcr"


def test_device_that_cannot_be_used_says_why(device, rng, monkeypatch):
    monkeypatch.setattr(device, "unavailable", lambda: "no driver", raising=False)

    assert backends.unavailable_reason("cuda") == "no driver"
    with pytest.raises(pysolvers.BackendError, match="'cuda' is not available: no driver"):
        pysolvers.solve_tridiagonal(*dominant(rng, (4, 6)), device="cuda")


def test_package_that_sees_arrays_is_asked_for_by_name(monkeypatch):
    def absent(name):
        raise ImportError(f"no {name}")

    interop._memory_view.cache_clear()
    monkeypatch.setattr(interop.importlib, "import_module", absent)

    with pytest.raises(pysolvers.BackendError, match="GPU arrays need the packages cuda-core"):
        interop._memory_view()
