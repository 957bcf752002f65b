"""Memory of the device: what goes in comes out, in every layout and stream."""

import math
import subprocess
import sys
import threading

import availability
import numpy as np
import pytest

_cuda = availability.extension("cuda")
pytestmark = pytest.mark.gpu

PIECE = 8 << 20  # bytes of a pinned piece


@pytest.fixture(autouse=True)
def _device():
    if reason := _cuda.unavailable():
        pytest.skip(reason)


class Shadow:
    """Makes an ndarray over an address that NumPy never reads."""

    def __init__(self, address, shape, dtype, strides=None):
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": shape,
            "typestr": np.dtype(dtype).str,
            "strides": strides,
        }


def shadow(address, shape, dtype, strides=None):
    return np.asarray(Shadow(address, shape, dtype, strides))


def upload(host):
    """Return a buffer with the bytes of an array, and the shadow of the array in it."""
    buffer = _cuda.Buffer(host.nbytes)
    assert _cuda.upload(buffer.address, host) == 0
    return buffer, shadow(buffer.address, host.shape, host.dtype, host.strides)


def download(buffer, like):
    host = np.empty_like(like)
    assert _cuda.download(host, buffer.address) == 0
    return host


@pytest.mark.parametrize(
    "count", [0, 1, 63, 64, 65, 4096, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 5 * PIECE + 17]
)
def test_bytes_come_back_as_they_went(rng, count):
    host = rng.integers(0, 256, count, np.uint8)

    buffer, _ = upload(host)

    assert buffer.nbytes == count
    assert (buffer.address == 0) == (count == 0)
    np.testing.assert_array_equal(download(buffer, host), host)


def test_host_memory_may_change_once_upload_has_returned(rng):
    host = rng.integers(0, 256, 3 * PIECE, np.uint8)
    before = host.copy()

    buffer, _ = upload(host)
    host[:] = 0

    np.testing.assert_array_equal(download(buffer, host), before)


def test_threads_copy_beside_each_other(rng):
    hosts = [rng.integers(0, 256, 3 * PIECE + k, np.uint8) for k in range(4)]
    same = [False] * len(hosts)

    def work(k):
        same[k] = all(
            np.array_equal(download(upload(hosts[k])[0], hosts[k]), hosts[k]) for _ in range(5)
        )

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(hosts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(same)


def test_memory_in_several_blocks_is_refused():
    with pytest.raises(ValueError, match="one block"):
        _cuda.upload(0, np.ones((4, 4))[:, ::2])
    read_only = np.ones(3)
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        _cuda.download(read_only, 0)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "complex64", "complex128", "int32", "int8"]
)
@pytest.mark.parametrize(
    "view",
    [
        lambda a: a,
        lambda a: a.transpose(2, 0, 1),
        lambda a: a.transpose(2, 1, 0),
        lambda a: a.transpose(1, 0, 2)[::-1, :, ::2],
        lambda a: a[:, :1, ::-3],
        lambda a: np.broadcast_to(a[:, :, :1], a.shape),
        lambda a: a[1, 2, 3:4].reshape(()),
        lambda a: a[:, :0],
        lambda a: a[None, :, None, :, None, None, :, None],
    ],
)
@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 70, 129)])
def test_layout_is_changed_element_by_element(rng, dtype, view, shape):
    host = rng.integers(-100, 100, shape).astype(dtype)
    source, there = upload(host)
    expected = view(host)
    target = _cuda.Buffer(max(expected.nbytes, 1))

    to = shadow(target.address, expected.shape, dtype)
    assert _cuda.relayout(to, view(there)) == 0

    np.testing.assert_array_equal(download(target, np.empty(expected.shape, dtype)), expected)
    del source


def test_target_of_a_layout_may_have_any_strides(rng):
    host = rng.standard_normal((40, 33))
    source, there = upload(host)
    poisoned = np.full((33, 80), np.nan)
    target, to = upload(poisoned)

    assert _cuda.relayout(to[::-1, ::2].T, there) == 0

    got = download(target, poisoned)
    np.testing.assert_array_equal(got[::-1, ::2].T, host)
    assert np.isnan(got[:, 1::2]).all()
    del source


@pytest.mark.parametrize(
    ("to", "source"),
    [
        (np.ones(3), np.ones(4)),
        (np.ones(3), np.ones((3, 1))),
        (np.ones(3), np.ones(3, np.float32)),
        (np.ones(3, np.int16), np.ones(3, np.int16)),
        (np.ones((1,) * 9), np.ones((1,) * 9)),
        (np.zeros(25, np.uint8)[1:].view("f8"), np.ones(3)),
    ],
)
def test_layouts_that_do_not_fit_are_refused(to, source):
    with pytest.raises(ValueError):
        _cuda.relayout(to, source)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 5, 7), (1, 100, 70), (33, 1, 1)])
def test_singular_systems_become_nan(rng, dtype, shape):
    host = rng.standard_normal(shape).astype(dtype)
    bad = rng.random(shape[:2]) < 0.3
    bad[0, 0] = True
    target, x = upload(host)
    source, info = upload(bad.astype(np.int32) * 4)

    assert _cuda.fill_nan(x, info) == 0

    host[bad] = complex(math.nan, math.nan) if "complex" in dtype else math.nan
    np.testing.assert_array_equal(download(target, host), host)
    del source


def test_info_of_a_factor_is_spread_over_the_systems(rng):
    host = rng.standard_normal((4, 6, 9))
    target, x = upload(np.ascontiguousarray(host.transpose(2, 0, 1)))
    source, info = upload(np.array([0, 1, 0, 0, 2, 0], np.int32))

    assert _cuda.fill_nan(x.transpose(1, 2, 0), np.broadcast_to(info, (4, 6))) == 0

    host[:, [1, 4]] = np.nan
    got = download(target, np.empty((9, 4, 6)))
    np.testing.assert_array_equal(got.transpose(1, 2, 0), host)
    del source


def test_marks_pass_and_streams_wait_for_each_other():
    legacy, own = 1, 2

    assert _cuda.order(legacy, own) == 0
    mark = _cuda.Mark(0, own)
    assert _cuda.wait(0, own) == 0

    assert mark.passed is True


@pytest.mark.parametrize("lasting", [False, True])
def test_memory_is_given_back(lasting):
    for _ in range(100):  # more in all than a device has
        buffer = _cuda.Buffer(1 << 32, lasting=lasting)
        assert buffer.device == 0
        assert buffer.address % 256 == 0
        del buffer


@pytest.mark.parametrize("lasting", [False, True])
def test_more_memory_than_there_is_raises_and_spoils_nothing(lasting):
    with pytest.raises(MemoryError, match="device 0, "):
        _cuda.Buffer(1 << 50, lasting=lasting)

    host = np.arange(1000.0)
    np.testing.assert_array_equal(download(upload(host)[0], host), host)


def test_ordinal_out_of_range_is_refused():
    count = _cuda.device_count()

    for ordinal in (-1, count):
        with pytest.raises(ValueError, match=f"device: there are {count}"):
            _cuda.Buffer(8, ordinal)


def test_operands_not_aligned_to_their_size_are_refused():
    buffer = _cuda.Buffer(1 << 10)
    misplaced = shadow(buffer.address + 4, (1, 1, 4), np.complex64)

    with pytest.raises(ValueError, match="source: a device needs values aligned"):
        _cuda.copy(misplaced, misplaced, 0)


FORK = """
import os, warnings
import numpy as np
from pysolvers._runtime import backends
_cuda = backends._load("cuda")
warnings.simplefilter("ignore", DeprecationWarning)
buffer = _cuda.Buffer(1 << 20)
child = os.fork()
if child == 0:
    reason = _cuda.unavailable()
    del buffer
    try:
        _cuda.Buffer(8)
    except RuntimeError as error:
        os._exit(0 if str(error) == reason and "forked" in reason else 3)
    os._exit(4)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
host = np.arange(8.0)
print(code, _cuda.unavailable(), _cuda.upload(buffer.address, host), _cuda.wait())
"""


def test_forked_child_says_why_and_leaves_the_parent_alone():
    run = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120, check=False
    )

    assert run.stdout.split() == ["0", "None", "0", "0"], run.stderr


# In a process of its own, whose pool holds no blocks of other tests. Other processes may use the
# device, so that one measurement is not enough.
CLEAR_CACHE = """
import ctypes
import pysolvers
from pysolvers._runtime import backends
_cuda = backends._load("cuda")

def free_memory():
    driver = ctypes.CDLL("libcuda.so.1")
    context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxPushCurrent_v2(context) == 0
    assert driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
    assert driver.cuCtxPopCurrent_v2(ctypes.byref(context)) == 0
    assert driver.cuDevicePrimaryCtxRelease_v2(0) == 0
    return free.value

def returned(clear):
    buffer = _cuda.Buffer(1 << 28)
    del buffer
    assert _cuda.wait() == 0
    kept = free_memory()
    clear()
    return free_memory() - kept >= 1 << 28

print(any(returned(pysolvers.clear_cache) for _ in range(5)))
"""


def test_clear_cache_returns_released_memory_to_the_device():
    run = subprocess.run(
        [sys.executable, "-c", CLEAR_CACHE], capture_output=True, text=True, check=False
    )
    assert run.stdout == "True\n", run.stderr
