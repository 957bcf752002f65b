"""Arrays of libraries in host memory, as `_runtime.interop` and the extension take them."""

import sys
import types

import array_libraries
import numpy as np
import oracle
import pytest

import pysolvers
from pysolvers import _core
from pysolvers._runtime import interop

DTYPES = ("float32", "float64", "complex64", "complex128")


@pytest.fixture
def torch():
    with array_libraries.opened("torch") as library:
        yield library


def test_tracers_are_known_without_jax():
    class Tracer:
        __module__ = "jax._src.core"

    class Traced(Tracer):
        __module__ = "jax._src.interpreters.partial_eval"

    assert interop.locate(Traced()) is None
    with pytest.raises(TypeError, match="upper is a JAX tracer"):
        pysolvers.solve_tridiagonal(1.0, 4.0, Traced(), np.ones(4))


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_are_borrowed_without_a_copy(xp, rng, dtype):
    array = xp.array(oracle.uniform(rng, (4, 5), np.dtype(dtype)))
    count = sys.getrefcount(array)

    views = [_core.borrow(array) for _ in range(3)]

    for view in views:
        assert (view.dtype, view.shape) == (dtype, (4, 5))
        assert view.ctypes.data == np.asarray(array).ctypes.data
        np.testing.assert_array_equal(view, np.asarray(array))
    del view, views
    assert sys.getrefcount(array) == count


def test_views_of_torch_are_borrowed_with_their_strides(torch):
    array = torch.array(np.arange(24.0).reshape(4, 6))

    for part in (array[1:, ::2], array.T, array[2], array[:, 3]):
        np.testing.assert_array_equal(_core.borrow(part), part.numpy())
        assert _core.borrow(part).strides == part.numpy().strides
    assert _core.borrow(array.to(torch.module.bfloat16)) is None
    assert _core.borrow(array.to_sparse()) is None


def test_steps_of_tensors_take_sources_masks_and_fluxes(torch, rng):
    K, dz, T, source = rng.random((4, 5, 9))
    where, flux = rng.random((5, 9)) < 0.7, rng.random(5)
    access = interop.library_of(torch.array(T)).fast_access
    for kind, more in (("theta", (source, where)), ("flux", (source, where, flux, 0.5))):
        step = (_core.STEP_KINDS[kind], 0.1, 2.0)
        sides = (K, dz, K, T, -1, None, None, False, 1)
        expected = _core.tridiag_direct(*sides, 0, 0, 1, 0, (*step, *more))
        *tensors, last = (torch.array(a) if isinstance(a, np.ndarray) else a for a in more)
        operands = [torch.array(a) for a in sides[:4]]
        found = _core.tridiag_borrowed(
            *operands, *sides[4:], -1, 1, access, (*step, *tensors, last)
        )
        np.testing.assert_array_equal(found.numpy(), expected)
        assert _core.borrow(torch.array(where)) is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_recurrences_of_tensors(torch, rng, dtype):
    a, second, b = (oracle.uniform(rng, (4, 9), np.dtype(dtype)) for _ in range(3))
    tensors = [torch.array(v) for v in (a, second, b)]
    access = interop.library_of(tensors[2]).fast_access

    def compute(first, second, b, out=None, device=-1):
        return _core.recurrence_borrowed(first, second, b, -1, out, 0, 1, device, access)

    for c, there in ((None, None), (second, tensors[1]), (0.25, 0.25)):
        for first, other in ((a, tensors[0]), (0.5, 0.5)):
            expected = _core.recurrence_direct(first, c, b, -1, None, 0, 1)
            x = compute(other, there, tensors[2])
            assert type(x) is torch.kind
            np.testing.assert_array_equal(x.numpy(), expected)
    own = tensors[2].clone()
    assert compute(0.5, None, own, out=own) is own
    np.testing.assert_array_equal(
        own.numpy(), _core.recurrence_direct(0.5, None, b, -1, None, 0, 1)
    )
    assert compute(a, None, tensors[2]) is NotImplemented
    assert compute(tensors[0], None, tensors[2], device=1) is NotImplemented
    assert compute(tensors[0], None, tensors[2], out=tensors[0]) is NotImplemented
    with pytest.raises(TypeError, match="need 9 arguments"):
        _core.recurrence_borrowed(0.5, None, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reports", [True, False])
def test_bands_and_blocks_of_tensors(torch, rng, dtype, reports):
    """The extension of the CPU takes tensors of the CPU as that of a device takes its tensors."""
    bands = [rng.uniform(-0.1, 0.1, (4, 9)).astype(dtype) for _ in range(6)]
    blocks = [rng.uniform(-0.1, 0.1, (4, 9, 2, 2)).astype(dtype) for _ in range(3)]
    bands[2] += 1
    blocks[1] += np.eye(2, dtype=dtype)
    blocks.append(rng.standard_normal((4, 9, 2, 1)).astype(dtype))
    auto, never = (_core.PIVOTS[name] for name in ("auto", "never"))
    cases = (
        (bands, _core.bands_direct, _core.bands_borrowed, 14),
        (blocks, _core.blocks_direct, _core.blocks_borrowed, 12),
    )
    for operands, direct, borrowed, count in cases:
        tensors = [torch.array(a) for a in operands]
        access = interop.library_of(tensors[0]).fast_access
        counts = [sys.getrefcount(a) for a in tensors]

        def solve(*given, out=None, definite=False, device=-1, borrowed=borrowed, access=access):
            options = (-1, out, never if definite else auto, definite, 1)
            return borrowed(*given, *options, device, reports, access)

        expected = direct(*operands, -1, None, auto, False, 1)
        x = solve(*tensors)
        assert type(x) is torch.kind
        np.testing.assert_array_equal(x.numpy(), expected)
        out = tensors[-1].clone()
        assert solve(*tensors, out=out) is out
        np.testing.assert_array_equal(out.numpy(), expected)
        half = len(operands) // 2 - 1
        missing = [None] * half if count == 14 else [None]
        definite = solve(*missing, *tensors[len(missing) :], definite=True)
        np.testing.assert_array_equal(
            definite.numpy(),
            direct(*missing, *operands[len(missing) :], -1, None, never, True, 1),
        )
        assert solve(*operands[:-1], tensors[-1]) is NotImplemented
        assert solve(*tensors, device=1) is NotImplemented
        assert solve(*tensors, out=tensors[1]) is NotImplemented
        in_place = solve(*tensors, out=tensors[-1])
        assert in_place is (NotImplemented if reports else tensors[-1])
        del x, in_place
        assert [sys.getrefcount(a) for a in tensors] == counts
        with pytest.raises(TypeError, match=f"need {count} arguments"):
            borrowed(*tensors)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_are_borrowed_as_those_of_a_device(torch, rng, dtype):
    """The extension of the CPU takes tensors of the CPU as that of a device takes its tensors."""
    system = oracle.dominant(rng, (5, 9), np.dtype(dtype))
    tensors = [torch.array(a) for a in system]
    access = interop.library_of(tensors[3]).fast_access
    expected = _core.tridiag_direct(*system, -1, None, None, False, 1)
    counts = [sys.getrefcount(a) for a in tensors]

    def solve(*operands, out=None, device=-1):
        others = (-1, out, None, False, 1, device, 1, access)
        return _core.tridiag_borrowed(*operands, *others)

    x = solve(*tensors)
    assert type(x) is torch.kind
    np.testing.assert_array_equal(x.numpy(), expected)
    assert solve(*tensors, out=tensors[3]) is tensors[3]
    np.testing.assert_array_equal(tensors[3].numpy(), expected)
    np.testing.assert_array_equal(solve(-1.0, 4, -1.0, x.T.contiguous().T), solve(-1.0, 4, -1.0, x))
    assert [sys.getrefcount(a) for a in tensors] == counts
    assert interop.library_of(x).on_device(x) is False

    lower, diag, upper, rhs = tensors
    lazy = rhs.conj() if rhs.is_complex() else (rhs + 1j * rhs).conj().imag
    whole = rhs.real.to(torch.module.int64)
    for other in (rhs.clone().requires_grad_(), lazy, rhs.to_sparse(), whole, rhs.numpy()):
        assert solve(lower, diag, other, rhs) is NotImplemented
        assert solve(lower, diag, upper, other) is NotImplemented
        assert solve(lower, diag, upper, rhs, out=other) is NotImplemented
    assert solve(lower, diag, upper, rhs, device=1) is NotImplemented


def test_strides_that_cupy_divides_as_unsigned_numbers_are_signed_ones(monkeypatch):
    """An array whose rows are reversed, as an unknown library exports it by DLPack."""
    base = np.arange(12.0).reshape(3, 4)[:, ::-1]
    counts = tuple((stride % 2**64) // 8 for stride in base.strides)
    seen = types.SimpleNamespace(
        ptr=base.ctypes.data, dtype=base.dtype, shape=base.shape, strides=counts, readonly=False
    )
    monkeypatch.setattr(interop, "_memory_view", lambda: lambda value, stream_ptr: seen)
    foreign = types.SimpleNamespace(__dlpack_device__=lambda: (2, 0))

    found = interop.view("rhs", foreign, types.SimpleNamespace(number=1))

    assert found.strides == base.strides == (32, -8)
    assert found.shape == base.shape
