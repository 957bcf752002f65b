"""The cavity on a staggered grid: one step against its formulas, restart, ends and errors."""

import itertools
import signal

import numpy as np
import pytest
from staggered_steps import reference_step, state

import pysolvers
from pysolvers.flow import LidDrivenCavity, StaggeredCavity, StaggeredResult
from pysolvers.papers import survey2014

PRESSURES = ["fast", "sor"]


def assert_same_bits(a, b):
    for x, y in zip(state(a), state(b), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("gamma", [0.0, 0.4, 1.0, "auto"])
@pytest.mark.parametrize("pressure", PRESSURES)
@pytest.mark.parametrize("n", [4, 9, 12])
def test_step_is_that_of_the_scheme(n, pressure, gamma):
    cavity = StaggeredCavity(60, n, pressure=pressure, gamma=gamma, pressure_tol=1e-12).step(25)
    u, v = cavity.u.copy(), cavity.v.copy()
    # The ghosts above the lid make the largest speed 2 in both corners.
    dt = 0.5 * min(60 / n**2 / 4, 1 / n / 2)
    share = 1.2 * dt * n * 2 if gamma == "auto" else gamma

    time = cavity.time
    cavity.step()

    expected = reference_step(u, v, 60, dt, min(share, 1))
    assert cavity.time - time == pytest.approx(dt, rel=1e-10)
    for found, wanted in zip((cavity.u, cavity.v, cavity.p), expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    changes = np.abs(cavity.u - u).max(), np.abs(cavity.v - v).max()
    assert cavity.change == pytest.approx(max(changes) / dt, rel=1e-9)


@pytest.mark.parametrize("pressure", PRESSURES)
@pytest.mark.parametrize(("n", "dt"), [(4, 0.13), (12, 0.04)])
def test_automatic_gamma_is_at_most_one_in_long_steps(n, dt, pressure):
    cavity = StaggeredCavity(60, n, pressure=pressure, gamma="auto", pressure_tol=1e-12).step(10)
    u, v = cavity.u.copy(), cavity.v.copy()
    assert 1.2 * dt * n * 2 > 1.1  # largest speed 2, in the ghosts of the lid

    cavity.dt = dt
    cavity.step()

    for found, wanted in zip(
        (cavity.u, cavity.v, cavity.p), reference_step(u, v, 60, dt, 1.0), strict=True
    ):
        np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_fast_pressure_leaves_no_divergence():
    cavity = StaggeredCavity(1000, 64).step(200)

    assert cavity.divergence < 1e-12
    assert np.abs(cavity.u).max() > 0.5


def test_sor_leaves_the_divergence_of_its_tolerance():
    cavity = StaggeredCavity(1000, 64, pressure="sor", pressure_tol=1e-4).step(200)

    assert 1e-12 < cavity.divergence < 1e-5


def test_sor_tends_to_the_direct_solution_as_its_tolerance_falls():
    exact = StaggeredCavity(200, 24).step(100)
    tolerances = 1e-2, 1e-4, 1e-6, 1e-8

    found = [
        StaggeredCavity(200, 24, pressure="sor", pressure_tol=tol).step(100) for tol in tolerances
    ]

    distances = [np.abs(cavity.u - exact.u).max() for cavity in found]
    assert distances[-1] < 1e-10
    for looser, tighter in itertools.pairwise(distances):
        assert tighter < looser / 10
    assert np.abs(found[-1].p - exact.p).max() < 1e-8


@pytest.mark.each_value
@pytest.mark.parametrize("n", [16, 33, 210])
@pytest.mark.parametrize("options", [{}, {"gamma": 0.9}, {"pressure_tol": None, "max_sweeps": 7}])
def test_kernels_and_threads_change_no_bit_with_sor(n, options):
    options = {"pressure": "sor", "pressure_tol": 1e-1} | options
    serial = survey2014.StaggeredCavity(300, n, kernels="serial", **options).step(3)

    assert serial.sweeps > 0
    for kernels in ("openmp", "auto"):
        for threads in (1, 2, 3):
            options["threads"] = threads
            other = survey2014.StaggeredCavity(300, n, kernels=kernels, **options).step(3)
            assert_same_bits(other, serial)


@pytest.mark.parametrize("n", [33, 300])
def test_threads_change_no_bit_with_fast_pressure(n):
    one = StaggeredCavity(300, n, threads=1).step(4)

    assert_same_bits(StaggeredCavity(300, n, threads=3).step(4), one)
    for kernels in ("serial", "openmp"):
        assert_same_bits(survey2014.StaggeredCavity(300, n, kernels=kernels).step(4), one)


def check_restart(kind, options, half, path):
    """Require the bits of a run that was not interrupted, also in the history."""
    whole = kind(400, 20, **options).step(61)
    first = kind(400, 20, **options).step(half)
    first.save(path)

    loaded = kind.load(path)

    assert_same_bits(loaded, first)
    assert loaded.steps == half
    assert_same_bits(loaded.step(61 - half), whole)
    history, expected = loaded.result().history, whole.result().history
    for name in expected.__slots__:
        np.testing.assert_array_equal(getattr(history, name), getattr(expected, name))
    assert history.step.tolist() == [20, 40, 60]


@pytest.mark.parametrize("half", [7, 20, 33])
@pytest.mark.parametrize("pressure", PRESSURES)
def test_restart_is_exact(pressure, half, tmp_path, backend):
    options = {"pressure": pressure, "device": backend}

    check_restart(StaggeredCavity, options, half, tmp_path / "state.npz")


@pytest.mark.parametrize("half", [7, 20, 33])
def test_restart_of_the_kernels_of_the_survey_is_exact(half, tmp_path):
    options = {"pressure": "sor", "kernels": "openmp", "gamma": "auto"}

    check_restart(survey2014.StaggeredCavity, options, half, tmp_path / "state.npz")


def test_damaged_state_is_refused(tmp_path):
    path = tmp_path / "state.npz"
    StaggeredCavity(100, 8).step(3).save(path)
    with np.load(path) as file:
        members = dict(file)
    members["u"] = members["u"][1:]
    np.savez(path, **members)

    with pytest.raises(ValueError, match="member 'u'"):
        StaggeredCavity.load(path)


@pytest.mark.parametrize("pressure", PRESSURES)
def test_splitting_the_steps_changes_nothing(pressure, backend):
    whole = StaggeredCavity(100, 33, pressure=pressure, device=backend).step(47)
    parts = StaggeredCavity(100, 33, pressure=pressure, device=backend)

    for count in (1, 2, 0, 17, 1, 5, 21):
        parts.step(count)
        assert parts.u.shape == (33, 34)  # reads the field between the calls

    assert_same_bits(parts, whole)
    assert parts.steps == 47


@pytest.mark.parametrize("pressure", PRESSURES)
def test_run_ends_exactly_at_its_time(pressure):
    cavity = StaggeredCavity(100, 16, pressure=pressure, dt=0.01)
    lengths = []

    for until, last in ((0.1, 0.01), (0.1, 0.01), (0.125, 0.0075), (0.17, 0.0075)):
        before = cavity.steps
        result = cavity.run(until)
        assert cavity._now("dt") == pytest.approx(last, rel=1e-9)
        lengths.append(cavity.steps - before)
        assert cavity.time == result.time == until
        assert result.stop_reason == "reached"

    # 0.1 = 10 steps; 0.025 = one step and two of 0.0075; 0.045 = three steps and two of 0.0075
    assert lengths == [10, 0, 3, 5]
    assert result.divergence < 1e-5


def test_length_of_the_steps_can_be_set():
    cavity = StaggeredCavity(100, 16, dt=0.004).step(5)
    cavity.dt = 0.002
    cavity.step(5)

    assert cavity.time == pytest.approx(0.03, rel=1e-12)
    cavity.dt = None
    with pytest.raises(ValueError, match="dt must be positive"):
        cavity.dt = -1.0
    assert cavity.dt is None


def test_solve_ends_at_the_first_steady_step():
    cavity = StaggeredCavity(50, 12)
    result = cavity.solve(1e-3)

    other = StaggeredCavity(50, 12).step(result.steps - 1)
    assert result.converged
    assert result.change <= 1e-3 < other.change
    assert cavity.solve(1e-3).steps == result.steps


def test_creeping_flow_is_symmetric():
    result = StaggeredCavity(1e-3, 16).solve(1e-1)

    np.testing.assert_allclose(result.u, result.u[:, ::-1], atol=1e-4)
    np.testing.assert_allclose(result.v, -result.v[:, ::-1], atol=1e-4)
    assert result.u.min() < -0.1


def test_default_relaxation_factor_needs_fewer_sweeps_than_the_published_one():
    sweeps = [
        StaggeredCavity(100, 128, pressure="sor", omega=omega).step(2).sweeps
        for omega in (None, 1.7)
    ]

    assert 2 < sweeps[1] / sweeps[0] < 10


def test_fixed_number_of_sweeps():
    cavity = StaggeredCavity(100, 16, pressure="sor", pressure_tol=None, max_sweeps=5).step(8)

    assert cavity.sweeps == 40


def test_steps_that_are_too_long_raise_with_the_state():
    cavity = StaggeredCavity(100, 32, dt=0.05)

    with pytest.raises(pysolvers.ConvergenceError, match=r"diverged.*use dt=1\.3e-02") as caught:
        cavity.step(500)

    steps = cavity.steps
    assert caught.value.result.steps == steps < 500
    with pytest.raises(pysolvers.ConvergenceError, match="diverged"):
        cavity.step()
    assert cavity.steps == steps


def test_too_few_sweeps_raise_and_leave_the_state():
    cavity = StaggeredCavity(100, 32, pressure="sor", max_sweeps=3)

    with pytest.raises(pysolvers.ConvergenceError, match="after 3 iterations; raise max_sweeps"):
        cavity.step()

    assert cavity.steps == 0
    assert cavity.time == 0
    assert not cavity.u.any()


def test_flow_that_is_not_steady_raises_with_the_history():
    with pytest.raises(pysolvers.ConvergenceError, match="after 45 steps") as caught:
        StaggeredCavity(100, 16).solve(1e-9, max_iterations=45)

    result = caught.value.result
    assert result.steps == 45
    assert result.stop_reason == "max_iterations"
    assert result.history.step.tolist() == [20, 40]
    assert (np.diff(result.history.change) < 0).all()


@pytest.mark.parametrize("pressure", PRESSURES)
def test_change_that_stalls_ends_the_run(pressure):
    """The change cannot fall below the rounding errors."""
    cavity = StaggeredCavity(20, 8, pressure=pressure)
    with pytest.raises(pysolvers.ConvergenceError, match=r"the change (stalled|grew)") as caught:
        cavity.solve(1e-30, patience=200)

    result = caught.value.result
    assert result.stop_reason == "stalled"
    levels = np.minimum.accumulate(result.history.change)
    before = result.history.step <= result.steps - 200
    assert levels[-1] > 0.5 * levels[before][-1]  # no progress at the end
    assert levels[-1] < 1e-12  # progress before

    with pytest.raises(pysolvers.ConvergenceError, match="after 400 steps"):
        cavity.solve(1e-30, max_iterations=400)
    with pytest.raises(ValueError, match="patience must be at least 1"):
        cavity.solve(1e-30, patience=0)


def test_callback_ends_the_run():
    seen = []

    def stop(cavity):
        seen.append(cavity.steps)
        return len(seen) == 3

    result = StaggeredCavity(100, 16).run(10.0, callback=stop, interval=20)

    assert seen == [20, 40, 60]
    assert result.stop_reason == "callback"
    assert result.steps == 60


@pytest.mark.parametrize("pressure", PRESSURES)
def test_interrupt_leaves_complete_steps(pressure):
    cavity = StaggeredCavity(1000, 100, pressure=pressure)
    old = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError()))
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(TimeoutError):
            cavity.step(1_000_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)

    made = cavity.steps
    assert made > 0
    assert_same_bits(StaggeredCavity(1000, 100, pressure=pressure).step(made), cavity)


def test_result_survives_a_file(tmp_path):
    result = StaggeredCavity(100, 10, pressure="sor", gamma="auto").run(0.3)
    result.save(tmp_path / "result.npz")

    loaded = StaggeredResult.load(tmp_path / "result.npz")

    for name in ("u", "v", "p", "time", "steps", "sweeps", "gamma", "seconds", "stop_reason"):
        np.testing.assert_equal(getattr(loaded, name), getattr(result, name))
    for name in result.history.__slots__:
        np.testing.assert_array_equal(getattr(loaded.history, name), getattr(result.history, name))


def test_streamfunction_and_vorticity_belong_to_the_velocity():
    result = StaggeredCavity(100, 24).run(1.0)
    n = result.n

    np.testing.assert_allclose(np.diff(result.psi, axis=0) * n, result.u, atol=1e-13)
    np.testing.assert_allclose(-np.diff(result.psi, axis=1) * n, result.v, atol=1e-12)
    psi = result.psi
    lap = psi[1:-1, 2:] + psi[1:-1, :-2] + psi[2:, 1:-1] + psi[:-2, 1:-1] - 4 * psi[1:-1, 1:-1]
    np.testing.assert_allclose(result.omega[1:-1, 1:-1], -lap * n**2, atol=1e-9)
    np.testing.assert_allclose(result.omega[-1, 1:-1], -2 * (1 - result.u[-1, 1:-1]) * n)
    vortex, corner = result.primary_vortex(), result.primary_vortex(refine=False)
    assert abs(vortex.x - corner.x) + abs(vortex.y - corner.y) < 2 / n
    assert vortex.psi <= corner.psi < 0


def test_coordinates_outside_of_the_cavity_are_refused():
    for result in (StaggeredCavity(100, 6).run(0.5), LidDrivenCavity(100, 9).iterate(20).result()):
        for line in (result.centreline_u, result.centreline_v):
            assert line(1 + 1e-15) == pytest.approx(float(line(1.0)), abs=1e-9)
            for outside in (-0.1, [0.5, 1.2], np.nan):
                with pytest.raises(ValueError, match=r"must be in \[0, 1\], got"):
                    line(outside)


@pytest.mark.parametrize("refine", [False, True])
def test_fluid_at_rest_has_its_extremum_at_a_corner_of_a_cell(refine):
    vortex = StaggeredCavity(100, 6).result().primary_vortex(refine=refine)

    assert (vortex.x, vortex.y, vortex.psi) == (pytest.approx(1 / 6), pytest.approx(1 / 6), 0)


def test_result_shows_a_table_and_figures():
    pytest.importorskip("matplotlib")
    result = StaggeredCavity(100, 16).run(1.0)

    assert len(repr(result).splitlines()) <= 6
    assert "Re = 100" in result._repr_html_()
    titles = [axes.get_title() for axes in result.plot().ravel()]
    assert titles[:4] == ["streamlines", "vorticity", "pressure", "centre lines"]
    StaggeredCavity(100, 16).result().plot()


def test_fields_are_read_only_views():
    cavity = StaggeredCavity(100, 8)

    assert cavity.u.shape == (8, 9)
    assert cavity.v.shape == (9, 8)
    with pytest.raises(ValueError, match="read-only"):
        cavity.u[0, 0] = 1


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"reynolds": 0}, ValueError, "reynolds must be positive"),
        ({"reynolds": "100"}, TypeError, "reynolds must be a number"),
        ({"n": 3}, ValueError, "n must be at least 4"),
        ({"n": 8.0}, TypeError, "n must be an int"),
        ({"pressure": "lu"}, ValueError, "pressure must be one of fast, sor"),
        ({"gamma": 1.5}, ValueError, "gamma must be in 0 .. 1"),
        ({"gamma": "central"}, ValueError, "gamma must be a number or 'auto'"),
        ({"tau": 0}, ValueError, "tau must be positive"),
        ({"dt": 0.0}, ValueError, "dt must be positive"),
        ({"pressure_tol": 0}, ValueError, "pressure_tol must be positive"),
        ({"max_sweeps": 0}, ValueError, "max_sweeps must be at least 1"),
        ({"omega": 2.0}, ValueError, "omega must be between 0 and 2"),
        ({"kernels": "auto"}, TypeError, "kernels"),
        ({"threads": 0}, ValueError, "threads must be in 1"),
        ({"device": "tpu"}, ValueError, "device must be 'cpu'"),
    ],
)
def test_bad_parameters_are_named(options, error, message):
    with pytest.raises(error, match=message):
        StaggeredCavity(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernels": "mpi"}, "kernels must be one of auto, serial"),
        ({"kernels": "serial", "threads": 2}, "threads must be None or 1"),
        ({"kernels": "serial", "device": "cuda"}, "kernels must be 'auto' with device='cuda'"),
        ({"kernels": "directive"}, "pressure must be 'sor' with kernels='directive'"),
    ],
)
def test_bad_kernels_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        survey2014.StaggeredCavity(**options)


def test_dataset_has_the_fields_at_their_places():
    pytest.importorskip("xarray")
    result = StaggeredCavity(100, 12).step(9).result()

    dataset = result.to_xarray()

    for name in ("u", "v", "p", "psi", "omega"):
        np.testing.assert_array_equal(dataset[name], getattr(result, name))
    np.testing.assert_array_equal(dataset.u.x_face, np.arange(13) / 12)
    np.testing.assert_array_equal(dataset.v.y_face, np.arange(13) / 12)
    np.testing.assert_array_equal(dataset.p.y, (np.arange(12) + 0.5) / 12)
    assert dataset.attrs["time"] == result.time


def test_vtk_file_holds_the_fields(tmp_path):
    result = StaggeredCavity(100, 12).step(9).result()

    result.to_vtk(tmp_path / "flow.vtk")

    data = (tmp_path / "flow.vtk").read_bytes()
    assert b"DIMENSIONS 13 13 1" in data
    cells, points = data.split(b"CELL_DATA 144\n")[1].split(b"POINT_DATA 169\n")

    def values(block, head, count):
        return np.frombuffer(block.split(head)[1][: 8 * count], ">f8")

    table = b"LOOKUP_TABLE default\n"
    np.testing.assert_array_equal(values(cells, table, 144), result.p.ravel())
    vectors = values(cells, b"VECTORS velocity double\n", 432).reshape(12, 12, 3)
    np.testing.assert_array_equal(vectors[..., 0], (result.u[:, 1:] + result.u[:, :-1]) / 2)
    np.testing.assert_array_equal(vectors[..., 1], (result.v[1:] + result.v[:-1]) / 2)
    assert not vectors[..., 2].any()
    for name in (b"psi", b"omega"):
        found = values(points, b"SCALARS " + name + b" double 1\n" + table, 169)
        np.testing.assert_array_equal(found, getattr(result, name.decode()).ravel())


def test_bad_arguments_of_runs_are_named():
    cavity = StaggeredCavity(100, 8).step(2)

    with pytest.raises(ValueError, match="until must be at least the time"):
        cavity.run(0.0)
    with pytest.raises(ValueError, match="tol must be at least 0"):
        cavity.solve(-1.0)
    with pytest.raises(TypeError, match="callback must be a function"):
        cavity.run(1.0, callback=3)
    with pytest.raises(ValueError, match="count must be at least 0"):
        cavity.step(-1)
