"""The flow around a cylinder on a GPU has the fields, forces and probes of the CPU."""

import threading
import time

import availability
import numpy as np
import pytest

import pysolvers
from pysolvers.flow import CylinderResult, SquareCylinder
from pysolvers.papers import pta2020

_cuda = availability.extension("cuda")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore::pysolvers.CoarseGridWarning"),
]

SMALL = (33, 201)
FINER = (65, 401)


@pytest.fixture(autouse=True)
def _device():
    if reason := _cuda.unavailable():
        pytest.skip(reason)


def pair(re, shape, **options):
    """Return the same flow on the GPU and on the CPU."""
    here = SquareCylinder(re, shape, device="cuda", **options)
    return here, SquareCylinder(re, shape, threads=1, **options)


def difference(here, there, name):
    """Return the largest difference of a field, relative to its largest value."""
    expected = getattr(there, name)
    return np.abs(getattr(here, name) - expected).max() / np.abs(expected).max()


def assert_same_fields(here, there, tolerance=1e-10):
    for name in ("psi", "omega", "u", "v"):
        assert difference(here, there, name) < tolerance, name
    assert here.steps == there.steps
    assert here.time == there.time


def assert_same_histories(here, there, tolerance=1e-9):
    first, second = here.result().history, there.result().history
    for name in first.__slots__:
        x, y = getattr(first, name), getattr(second, name)
        assert x.shape == y.shape, name
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance, err_msg=name)


def assert_same_bits(here, there):
    for name in ("psi", "omega"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name))
    assert here.circulation == there.circulation
    first, second = here.result().history, there.result().history
    for name in first.__slots__:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize("shape", [SMALL, (49, 251), FINER, (161, 801), (241, 1201)])
def test_fields_are_those_of_the_cpu_after_200_steps(shape):
    here, there = pair(100, shape)

    here.step(200)
    there.step(200)

    assert_same_fields(here, there)
    assert_same_histories(here, there)
    assert here.circulation == pytest.approx(there.circulation, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("shape", [(273, 301), (401, 2001), (657, 801), (33, 4001)])
def test_long_lines(shape):
    length = 10 if shape[1] < 1000 else 50 if shape[0] > 33 else 1000
    here, there = pair(100, shape, length=length)

    assert_same_fields(here.step(5), there.step(5))


@pytest.mark.parametrize("wall", ["thom", "woods", "jensen"])
@pytest.mark.parametrize("cylinder", ["free", "fixed"])
def test_walls_and_values_on_the_cylinder(wall, cylinder):
    here, there = pair(80, FINER, wall=wall, cylinder=cylinder)

    assert_same_fields(here.step(60), there.step(60))
    assert_same_histories(here, there)
    assert (np.unique(here.psi[28:37, 96:105]) == 0).all() == (cylinder == "fixed")


@pytest.mark.parametrize("wall", ["thom", "woods", "jensen"])
def test_steps_towards_the_steady_flow(wall):
    here, there = pair(40, FINER, steady=True, wall=wall)

    assert_same_fields(here.step(61), there.step(61))
    assert_same_histories(here, there)


@pytest.mark.parametrize("steady", [False, True])
def test_lines_of_waves_that_fill_their_threads(steady):
    """The steady flow has 256 unknowns in a line along x: 4 in each thread of two warps."""
    here, there = pair(60, (33, 257), length=64, steady=steady)

    assert_same_fields(here.step(10), there.step(10))


@pytest.mark.parametrize(
    "options", [{}, {"cylinder": "fixed"}, {"steady": True}, {"psi_tol": 1e-9}]
)
@pytest.mark.parametrize("shape", [SMALL, FINER])
def test_lines_for_psi(shape, options):
    here, there = pair(60, shape, psi_solver="lines", **options)

    assert_same_fields(here.step(20), there.step(20))
    assert_same_histories(here, there)


BLOCKS = (None, 32, 64, 128, 256)  # which change no bit, as a test below shows
KINDS = [{}, {"cylinder": "fixed"}, {"steady": True}, {"wall": "woods"}]
SHAPES = [SMALL, (49, 251), FINER]


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_one_thread_for_each_line(shape, options):
    block = BLOCKS[(len(KINDS) * SHAPES.index(shape) + KINDS.index(options)) % len(BLOCKS)]
    options = {"psi_solver": "lines", **options}
    here = pta2020.SquareCylinder(
        60, shape, line_method="pta", block=block, device="cuda", **options
    )
    there = SquareCylinder(60, shape, threads=1, **options)

    assert_same_fields(here.step(21), there.step(21))
    assert_same_histories(here, there)


def test_one_thread_for_each_line_of_a_fine_grid():
    options = {"psi_solver": "lines", "psi_tol": 1e-8}
    here = pta2020.SquareCylinder(100, (161, 801), line_method="pta", device="cuda", **options)
    there = SquareCylinder(100, (161, 801), **options)

    assert_same_fields(here.step(5), there.step(5))


def test_one_thread_for_each_line_in_single_precision():
    options = {"psi_solver": "lines", "dtype": np.float32}
    here = pta2020.SquareCylinder(60, FINER, line_method="pta", device="cuda", **options)
    exact = SquareCylinder(60, FINER, psi_solver="lines", psi_tol=1e-9)

    assert difference(here.step(5), exact.step(5), "psi") < 1e-4


def test_blocks_of_pta_change_no_bit(tmp_path):
    options = {"psi_solver": "lines", "line_method": "pta", "device": "cuda"}
    expected = pta2020.SquareCylinder(60, SMALL, **options).step(10)
    for block in (32, 256):
        flow = pta2020.SquareCylinder(60, SMALL, block=block, **options).step(4)
        flow.save(tmp_path / "state.npz")
        assert_same_bits(pta2020.SquareCylinder.load(tmp_path / "state.npz").step(6), expected)


def test_lines_for_psi_in_single_precision_end():
    here = SquareCylinder(
        60, FINER, psi_solver="lines", psi_tol=1e-12, dtype=np.float32, device="cuda"
    )
    exact = SquareCylinder(60, FINER)

    assert difference(here.step(5), exact.step(5), "psi") < 1e-4


def test_steady_flow_is_that_of_the_cpu(tmp_path):
    here, there = pair(20, SMALL, steady=True)

    found, expected = here.solve(1e-7), there.solve(1e-7)

    assert np.abs(found.psi - expected.psi).max() < 1e-5
    assert found.drag == pytest.approx(expected.drag, rel=1e-4)
    assert found.stop_reason == "converged"
    assert found.backend == "cuda"
    assert 0 <= found.steps - expected.steps < 20
    assert found.history.change[-1] <= 1e-7
    assert all(seconds > 0 for seconds in found.seconds.values())
    found.save(tmp_path / "result.npz")
    assert CylinderResult.load(tmp_path / "result.npz").backend == "cuda"


def test_single_precision_differs_by_its_rounding():
    here, there = pair(100, FINER, dtype=np.float32)
    exact = SquareCylinder(100, FINER, threads=1).step(200)

    here.step(200)
    there.step(200)

    assert here.psi.dtype == np.float32
    for name in ("psi", "omega"):
        assert difference(here, exact, name) < 4 * difference(there, exact, name) + 1e-5


def test_step_length_can_change():
    here, there = pair(100, SMALL)

    for flow in (here, there):
        flow.step(7)
        flow.dt = 0.05
        flow.step(6)
        flow.dt = 0.03
        flow.step(9)

    assert_same_fields(here, there)
    assert_same_histories(here, there)


def test_probes_and_forces():
    here, there = pair(100, SMALL)
    places = [(20.0, 0.5), (30.1, -1.3), (11.9, 0.0)]

    for flow in (here, there):
        flow.step(5)
        flow.run(2.0, probes=places[:1])
        flow.run(4.0, probes=places)

    assert_same_histories(here, there)
    history = here.result().history
    assert history.u.shape == (here.steps, 4)
    assert np.isnan(history.u[:5, 1:]).all()
    assert np.isfinite(history.u[-1]).all()
    for name in ("drag", "lift", "surface_drag", "surface_lift", "box_gap", "surface_gap"):
        expected = getattr(there.forces, name)
        assert getattr(here.forces, name) == pytest.approx(expected, rel=1e-8, abs=1e-10)
    np.testing.assert_allclose(here.p_wall.p, there.p_wall.p, atol=1e-9)


def test_errors():
    missing = f"cuda:{_cuda.device_count()}"
    with pytest.raises(pysolvers.BackendError, match=f"no device {missing}"):
        SquareCylinder(100, SMALL, device=missing)
    with pytest.raises(pysolvers.BackendError, match="4097"):
        SquareCylinder(100, (33, 4201), length=1050, device="cuda")


def test_several_threads():
    expected = SquareCylinder(100, SMALL, device="cuda").step(120)
    flows = [SquareCylinder(100, SMALL, device="cuda") for _ in range(4)]
    threads = [threading.Thread(target=flow.step, args=(120,)) for flow in flows]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for flow in flows:
        assert_same_bits(flow, expected)


def test_an_interrupt_leaves_whole_steps(interrupt_later):
    cylinder = SquareCylinder(100, FINER, device="cuda").step(1)

    interrupt_later()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        cylinder.step(10_000_000)

    assert time.perf_counter() - start < 10
    assert cylinder.steps > 1
    assert len(cylinder.result().history.probe_time) == cylinder.steps
    repeated = SquareCylinder(100, FINER, device="cuda")
    assert_same_bits(repeated.step(cylinder.steps), cylinder)
