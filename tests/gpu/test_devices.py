"""Several devices in one process: each has the answers of the first, and none is in the way."""

import threading

import availability
import gpu_libraries
import numpy as np
import oracle
import pytest

import pysolvers
from pysolvers import (
    GCEIDD,
    LMSOR,
    HeatADI,
    RedBlackSOR,
    SteadyConvectionDiffusion,
)
from pysolvers.flow import LidDrivenCavity
from pysolvers.papers.gceidd2022 import decaying_bump

_cuda = availability.extension("cuda")

SHAPE = (3, 4100, 37)  # every axis has kernels of its own: in a block, in clusters, in tiles
SOLVERS = {
    "cavity": (lambda device: LidDrivenCavity(100, 65, device=device).iterate(50), "psi"),
    "heat": (
        lambda device: HeatADI(
            (300, 500), 0.01, 1e-3, initial=1.0, device=device, boundary=0.0
        ).step(5),
        "u",
    ),
    "heat in space": (
        lambda device: HeatADI(
            (30, 40, 50),
            0.01,
            1e-3,
            scheme="douglas-gunn",
            initial=1.0,
            device=device,
            boundary=0.0,
        ).step(3),
        "u",
    ),
    "transport": (
        lambda device: GCEIDD(
            decaying_bump(0.005), shape=(129, 129), dt=1e-3, strips=4, device=device
        ).step(5),
        "u",
    ),
    "lmsor": (
        lambda device: LMSOR(
            SteadyConvectionDiffusion(
                5.0, -3.0, shape=(202, 132), extent=((0, 1), (0, 1)), source=1.0, boundary=0.0
            ),
            device=device,
        ).iterate(20),
        "u",
    ),
    "laplace": (
        lambda device: RedBlackSOR(
            (200, 130), boundary=0.0, extent=((0, 1), (0, 1)), source=1.0, device=device
        ).iterate(20),
        "u",
    ),
}


@pytest.fixture(scope="module", autouse=True)
def second(cuda):
    """Name of a device that is not the first."""
    count = _cuda.device_count()
    if count < 2:
        pytest.skip("there is one CUDA device")
    return f"cuda:{count - 1}"


class OnCupy(gpu_libraries.Cupy):
    """CuPy, on any device."""

    def put(self, values, ordinal):
        with self.cupy.cuda.Device(ordinal):
            return self.array(values)

    def ordinal(self, array):
        return array.device.id


class OnTorch(gpu_libraries.Torch):
    """PyTorch, on any device."""

    def put(self, values, ordinal):
        with self.torch.cuda.device(ordinal):
            return self.array(values)

    def ordinal(self, array):
        return array.device.index


class OnJax(gpu_libraries.Jax):
    """JAX, on any device."""

    def put(self, values, ordinal):
        return self.jax.device_put(np.ascontiguousarray(values), self.jax.devices()[ordinal])

    def ordinal(self, array):
        (device,) = array.devices()
        return device.id


@pytest.fixture
def current(second):
    """Number of the device that is current, which is the first when a test begins."""
    runtime = pytest.importorskip("cupy").cuda.runtime
    runtime.setDevice(0)
    yield runtime.getDevice
    runtime.setDevice(0)


@pytest.fixture(scope="module", params=[OnCupy, OnTorch, OnJax])
def on(request):
    try:
        return request.param()
    except ImportError as error:
        pytest.skip(str(error))


def number_of(device):
    return int(device.removeprefix("cuda:"))


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_every_axis_and_dtype(second, dominant, dtype, axis):
    operands = dominant(SHAPE, dtype)

    here = pysolvers.solve_tridiagonal(*operands, axis=axis, device="cuda:0")
    there = pysolvers.solve_tridiagonal(*operands, axis=axis, device=second)

    np.testing.assert_array_equal(there, here)


@pytest.mark.parametrize("method", oracle.METHODS)
@pytest.mark.parametrize("rows", [64, 3000])
def test_every_method(second, dominant, method, rows):
    operands = dominant((50, rows))

    here = pysolvers.solve_tridiagonal(*operands, method=method, device="cuda:0")
    there = pysolvers.solve_tridiagonal(*operands, method=method, device=second)

    np.testing.assert_array_equal(there, here)


@pytest.mark.parametrize("rows", [1 << 17, 1 << 21])
def test_long_systems(second, dominant, rows):
    operands = dominant((2, rows))

    here = pysolvers.solve_tridiagonal(*operands, device="cuda:0")
    there = pysolvers.solve_tridiagonal(*operands, device=second)

    np.testing.assert_array_equal(there, here)


def test_arrays_stay_where_they_are(on, second, dominant, current):
    ordinal = number_of(second)
    operands = dominant((6, 700))
    arrays = [on.put(values, ordinal) for values in operands]
    before = current()

    x = pysolvers.solve_tridiagonal(*arrays)

    assert current() == before
    assert on.is_kind(x)
    assert on.ordinal(x) == ordinal
    np.testing.assert_array_equal(
        on.get(x), pysolvers.solve_tridiagonal(*operands, device="cuda:0")
    )


def test_arrays_on_a_device_that_is_not_current(second, dominant, current):
    cupy = pytest.importorskip("cupy")
    operands = dominant((6, 700))
    arrays = [cupy.asarray(values) for values in operands]

    with cupy.cuda.Device(number_of(second)):
        x = pysolvers.solve_tridiagonal(*arrays)
        assert current() == number_of(second)

    assert x.device.id == 0
    np.testing.assert_array_equal(x.get(), pysolvers.solve_tridiagonal(*operands, device="cuda:0"))


def test_stream_of_the_other_device_is_used(second, dominant):
    torch = pytest.importorskip("torch")
    operands = dominant((64, 500))
    expected = pysolvers.solve_tridiagonal(*operands)
    values = [torch.from_numpy(host).to(second) for host in operands]
    arrays = [torch.ones_like(value) for value in values]
    out = torch.zeros_like(values[0])
    options = {"on_singular": "ignore", "out": out}
    pysolvers.solve_tridiagonal(*values, **options)  # whatever is done once
    out.zero_()
    stream = torch.cuda.Stream(second)

    with torch.cuda.stream(stream):
        torch.cuda._sleep(500_000_000)
        for array, value in zip(arrays, values, strict=True):
            array.copy_(value)
        pysolvers.solve_tridiagonal(*arrays, **options)
        returned_early = not stream.query()
        twice = out + out

    stream.synchronize()
    assert returned_early
    np.testing.assert_allclose(twice.cpu().numpy(), 2 * expected, rtol=1e-12, atol=1e-12)


def test_operands_on_two_devices_are_refused(second, dominant, current):
    cupy = pytest.importorskip("cupy")
    lower, diag, upper, rhs = map(cupy.asarray, dominant((6, 70)))
    with cupy.cuda.Device(number_of(second)):
        away = rhs.copy()

    with pytest.raises(ValueError, match=f"rhs is on {second}: move all arrays to one device"):
        pysolvers.solve_tridiagonal(lower, diag, upper, away)
    with pytest.raises(ValueError, match=f"out is on {second}: move all arrays to one device"):
        pysolvers.solve_tridiagonal(lower, diag, upper, rhs, out=away)
    with pytest.raises(ValueError, match=f"device is '{second}'"):
        pysolvers.solve_tridiagonal(lower, diag, upper, rhs, device=second)


def test_factor_stays_on_its_device(second, dominant, current):
    cupy = pytest.importorskip("cupy")
    *matrix, rhs = dominant((6, 700))
    factor = pysolvers.factor_tridiagonal(*matrix, device=second)

    np.testing.assert_array_equal(
        factor.solve(rhs),
        pysolvers.factor_tridiagonal(*matrix, device="cuda:0").solve(rhs),
    )
    with pytest.raises(ValueError, match=f"device is '{second}'"):
        factor.solve(cupy.asarray(rhs))


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_on_grids(second, name):
    make, field = SOLVERS[name]

    here, there = make("cuda:0"), make(second)

    values = getattr(there, field)
    assert np.abs(values).max() > 0
    np.testing.assert_array_equal(values, getattr(here, field))


def test_threads_with_a_device_each(second, dominant):
    operands = dominant((300, 1000))
    expected = pysolvers.solve_tridiagonal(*operands, device="cuda:0")
    devices = ["cuda:0", second] * 3
    answers = [[] for _ in devices]

    def work(device, answers):
        for _ in range(10):
            answers.append(pysolvers.solve_tridiagonal(*operands, device=device))

    threads = [
        threading.Thread(target=work, args=pair) for pair in zip(devices, answers, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for of_thread in answers:
        assert len(of_thread) == 10
        for x in of_thread:
            np.testing.assert_array_equal(x, expected)
