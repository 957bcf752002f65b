"""The lid-driven cavity on a GPU has the fields of the CPU, whatever the method."""

import threading
import time

import availability
import numpy as np
import pytest

import pysolvers
from pysolvers.flow import CavityResult, LidDrivenCavity
from pysolvers.papers import pta2020

_cuda = availability.extension("cuda")
pytestmark = pytest.mark.gpu

LINE_METHODS = ["thomas", "cr", "pcr", "cr-pcr", "pcr-thomas", "partition", "pivoted"]
CORNERS = ((0, 0), (0, -1), (-1, 0), (-1, -1))


@pytest.fixture(autouse=True)
def _device():
    if reason := _cuda.unavailable():
        pytest.skip(reason)


def fields(cavity):
    """Return psi and omega, the corners of which have no meaning."""
    omega = cavity.omega.copy()
    for corner in CORNERS:
        omega[corner] = 0
    return cavity.psi.copy(), omega


def assert_same_fields(here, there, tolerance=1e-12):
    for x, y in zip(fields(here), fields(there), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * np.abs(y).max())


def assert_same_bits(here, there):
    for x, y in zip(fields(here), fields(there), strict=True):
        np.testing.assert_array_equal(x, y)


def pair(*args, **options):
    """Return the same cavity on the GPU and on the CPU, there on one thread if it is small."""
    threads = 1 if args[1] < 500 else None
    here = LidDrivenCavity(*args, device="cuda", **options)
    return here, LidDrivenCavity(*args, threads=threads, **options)


@pytest.mark.parametrize("n", [5, 6, 7, 17, 33, 64, 65, 129, 255, 257, 300])
@pytest.mark.parametrize("method", ["adi", "line-jacobi"])
def test_fields_are_those_of_the_cpu(n, method):
    here, there = pair(5 if n < 9 else 100 if n < 100 else 1000, n, method=method)

    here.iterate(100)
    there.iterate(100)

    assert_same_fields(here, there)
    assert here.residual == pytest.approx(there.residual, rel=1e-7, abs=1e-9)
    assert here.iterations == 100


@pytest.mark.parametrize("wall", ["thom", "woods", "jensen"])
@pytest.mark.parametrize("direction", ["alternate", "x", "y"])
def test_walls_and_directions(wall, direction):
    here, there = pair(100, 40, method="line-jacobi", wall=wall, direction=direction)

    assert_same_fields(here.iterate(101), there.iterate(101))


@pytest.mark.parametrize(
    "options", [{"psi_sweeps": 1}, {"pseudo_dt": 0.02}, {"lid_velocity": -2.5}]
)
@pytest.mark.parametrize("wall", ["thom", "woods", "jensen"])
def test_options_of_adi(options, wall):
    here, there = pair(400, 37, wall=wall, **options)

    assert_same_fields(here.iterate(61), there.iterate(61))


@pytest.mark.parametrize("block", [32, 64, 128, 256])
@pytest.mark.parametrize("n", [6, 33, 300])
@pytest.mark.parametrize("method", ["adi", "line-jacobi"])
def test_threads_of_a_block_of_pta(n, block, method):
    options = {"method": method, "line_method": "thomas", "device": "cuda"}
    re = 5 if n < 9 else 100  # with which line Jacobi converges on a grid so coarse
    here = pta2020.LidDrivenCavity(re, n, block=block, **options).iterate(40)
    usual = LidDrivenCavity(re, n, **options).iterate(40)
    there = LidDrivenCavity(re, n, method=method).iterate(40)

    assert_same_bits(here, usual)
    assert_same_fields(here, there, 1e-11)


def test_the_bars_grid():
    here, there = pair(1000, 1024, method="line-jacobi")

    assert_same_fields(here.iterate(100), there.iterate(100))


@pytest.mark.parametrize("n", [1200, 1500, 2500, 4098])
def test_long_lines(n):
    here, there = pair(1000, n, method="line-jacobi")

    assert_same_fields(here.iterate(4), there.iterate(4))


def test_adi_on_a_fine_grid_differs_by_rounding():
    # A line for psi has a condition number of up to n^2 / 20, so that after 100 iterations
    # two methods on the CPU differ by 2e-12 (Thomas and pcr).
    here, there = pair(1000, 512, pseudo_dt=0.01)
    other = LidDrivenCavity(1000, 512, pseudo_dt=0.01, line_method="pcr").iterate(100)

    here.iterate(100)
    there.iterate(100)

    for x, y, z in zip(fields(here), fields(there), fields(other), strict=True):
        assert np.abs(x - y).max() <= np.abs(z - y).max() <= 2e-11 * np.abs(y).max()


def test_lines_too_long_for_a_block():
    here, there = pair(1000, 4200, method="line-jacobi")

    assert_same_fields(here.iterate(2), there.iterate(2))


@pytest.mark.parametrize("method", ["adi", "line-jacobi"])
def test_solution_is_that_of_the_cpu(method, tmp_path):
    here, there = pair(100, 33, method=method)

    result, expected = here.solve(1e-9), there.solve(1e-9)

    np.testing.assert_allclose(result.psi, expected.psi, rtol=0, atol=1e-10)
    assert result.backend == "cuda"
    assert result.line_method == "partition"
    assert result.kernel == "partition fused"
    assert result.threads == 0
    assert all(seconds > 0 for seconds in result.seconds.values())
    result.save(tmp_path / "result.npz")
    assert CavityResult.load(tmp_path / "result.npz").backend == "cuda"


def test_a_result_does_not_change_any_more():
    cavity = LidDrivenCavity(100, 17, device="cuda").iterate(20)
    result = cavity.result()
    kept = result.psi.copy()

    cavity.iterate(20)

    np.testing.assert_array_equal(result.psi, kept)
    assert (cavity.psi != kept).any()


def test_an_exact_psi_needs_the_cpu():
    with pytest.raises(ValueError, match="on a device psi_solver must be 'adi'"):
        LidDrivenCavity(100, 17, psi_solver="fast", device="cuda")


def test_a_device_that_is_not_there():
    missing = f"cuda:{_cuda.device_count()}"

    with pytest.raises(pysolvers.BackendError, match=f"no device {missing}"):
        LidDrivenCavity(100, 17, device=missing)


def test_several_threads():
    expected = LidDrivenCavity(100, 65, device="cuda").iterate(60)
    cavities = [LidDrivenCavity(100, 65, device="cuda") for _ in range(4)]
    threads = [threading.Thread(target=cavity.iterate, args=(60,)) for cavity in cavities]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for cavity in cavities:
        assert_same_bits(cavity, expected)


def test_an_interrupt_leaves_whole_iterations(interrupt_later):
    options = {"wall": "thom", "method": "line-jacobi", "device": "cuda"}
    cavity = LidDrivenCavity(1000, 257, **options).iterate(1)

    interrupt_later()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        cavity.iterate(10_000_000)

    assert time.perf_counter() - start < 10
    assert cavity.iterations > 1
    repeated = LidDrivenCavity(1000, 257, **options)
    assert_same_bits(repeated.iterate(cavity.iterations), cavity)
