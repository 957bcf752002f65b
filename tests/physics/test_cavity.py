"""The lid-driven cavity: both iterations, their lines, restart, errors."""

import json
import sys

import numpy as np
import pytest

import pysolvers
from pysolvers.flow import CavityResult, LidDrivenCavity

LINE_METHODS = ["thomas", "cr", "pcr", "cr-pcr", "pcr-thomas", "pivoted"]
CORNERS = ((0, 0), (0, -1), (-1, 0), (-1, -1))


def state(cavity):
    """Return psi and omega, the corners of which have no meaning."""
    omega = cavity.omega.copy()
    for corner in CORNERS:
        omega[corner] = 0
    return cavity.psi.copy(), omega


def assert_same_bits(a, b):
    for x, y in zip(state(a), state(b), strict=True):
        np.testing.assert_array_equal(x, y)


def residuals(psi, omega, re):
    """Root mean squares of both equations, written with the operators themselves."""
    inverse = psi.shape[0] - 1
    centre, east, west = np.s_[1:-1, 1:-1], np.s_[1:-1, 2:], np.s_[1:-1, :-2]
    north, south = np.s_[2:, 1:-1], np.s_[:-2, 1:-1]

    def laplacian(f):
        return (f[east] + f[west] + f[north] + f[south] - 4 * f[centre]) * inverse**2

    u = (psi[north] - psi[south]) * inverse / 2
    v = (psi[west] - psi[east]) * inverse / 2
    convection = u * (omega[east] - omega[west]) + v * (omega[north] - omega[south])
    poisson = laplacian(psi) + omega[centre]
    transport = laplacian(omega) / re - convection * inverse / 2
    return np.sqrt(np.mean(poisson**2)), np.sqrt(np.mean(transport**2))


def test_residuals_are_those_of_the_equations():
    cavity = LidDrivenCavity(400, 25).iterate(137)
    history = cavity.iterate(3).result().history

    expected = residuals(*state(cavity), 400)

    assert (history.psi[-1], history.omega[-1]) == pytest.approx(expected, rel=1e-9)
    assert cavity.residual == pytest.approx(max(expected), rel=1e-9)


def test_direct_psi_needs_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.fft", None)
    with pytest.raises(ModuleNotFoundError, match="scipy is not installed: pip install scipy"):
        LidDrivenCavity(psi_solver="fast")


SIZES = [5, 9, 12, 18, 39]  # lines of 3 to 37 rows: vectors with and without a rest


@pytest.mark.each_value
@pytest.mark.parametrize("line_method", [*LINE_METHODS, "partition"])
@pytest.mark.parametrize("method", ["adi", "line-jacobi"])
@pytest.mark.parametrize("n", [9, 35, 70])
def test_line_methods_agree(n, method, line_method, backend):
    options = {"method": method, "wall": "thom"}
    if line_method not in LINE_METHODS and backend == "cpu":
        with pytest.raises(ValueError, match="line_method must be one of"):
            LidDrivenCavity(100, n, line_method=line_method, **options)
        return
    expected = LidDrivenCavity(100, n, line_method="thomas", **options).iterate(45)

    cavity = LidDrivenCavity(100, n, line_method=line_method, device=backend, **options)
    cavity.iterate(45)

    for here, there in zip(state(cavity), state(expected), strict=True):
        np.testing.assert_allclose(here, there, rtol=0, atol=1e-12 * np.abs(there).max())
    assert cavity.result().line_method == line_method


@pytest.mark.parametrize("method", ["adi", "line-jacobi"])
@pytest.mark.parametrize("n", [9, 33, 66])
def test_threads_do_not_change_a_bit(method, n):
    alone = LidDrivenCavity(100, n, method=method, threads=1).iterate(45)

    for threads in (2, 3):
        assert_same_bits(LidDrivenCavity(100, n, method=method, threads=threads).iterate(45), alone)


@pytest.mark.parametrize("n", [255, 256, 257, 258, 313, 314, 315, 362, 363, 364, 724, 725, 726])
def test_default_number_of_threads_changes_no_bit(n):
    """It depends on the number of unknowns: 32768 a thread; a sweep has fewer than the grid."""
    default = LidDrivenCavity(100, n).iterate(1)
    single = LidDrivenCavity(100, n, threads=1).iterate(1)

    np.testing.assert_array_equal(default.psi, single.psi)
    np.testing.assert_array_equal(default.omega, single.omega)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "line-jacobi"},
        {"method": "line-jacobi", "direction": "x"},
        {"method": "line-jacobi", "direction": "y"},
        {"psi_solver": "fast"},
        {"psi_sweeps": 7},
        {"pseudo_dt": 0.05},
        {"lid_velocity": 2.5},
    ],
)
def test_every_iteration_has_the_same_solution(options):
    expected = LidDrivenCavity(100, 33).solve(1e-10)
    speed = options.get("lid_velocity", 1.0)

    result = LidDrivenCavity(100, 33, **options).solve(1e-10)

    np.testing.assert_allclose(result.psi / speed, expected.psi, rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        result.centreline_u() / speed, expected.centreline_u(), rtol=0, atol=1e-8
    )


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("direction", "before", "axis"),
    [("x", 3, "x"), ("y", 4, "y"), ("alternate", 4, "x"), ("alternate", 5, "y")],
)
@pytest.mark.parametrize("n", [*SIZES, 17])
def test_line_jacobi_solves_its_lines_from_old_neighbours(n, direction, before, axis):
    cavity = LidDrivenCavity(100, n, method="line-jacobi", direction=direction)
    old_psi, old_omega = state(cavity.iterate(before))
    psi, omega = state(cavity.iterate(1))
    if axis == "y":
        old_psi, old_omega, psi, omega = old_psi.T, old_omega.T, psi.T, omega.T
    h, sign = 1 / (n - 1), 1 if axis == "x" else -1
    # p u and p v of the lines, p = Re h / 2, from the new psi; u and v change places in a turn
    along = sign * 100 / 4 * (psi[2:, 1:-1] - psi[:-2, 1:-1])
    across = sign * 100 / 4 * (psi[1:-1, :-2] - psi[1:-1, 2:])
    before_walls = omega.copy()
    before_walls[:, [0, -1]] = old_omega[:, [0, -1]]

    left = 4 * psi[1:-1, 1:-1] - psi[1:-1, 2:] - psi[1:-1, :-2]
    right = old_psi[2:, 1:-1] + old_psi[:-2, 1:-1] + h**2 * old_omega[1:-1, 1:-1]
    np.testing.assert_allclose(left, right, rtol=0, atol=1e-14)

    left = 4 * before_walls[1:-1, 1:-1] - (1 - along) * before_walls[1:-1, 2:]
    left -= (1 + along) * before_walls[1:-1, :-2]
    right = (1 - across) * old_omega[2:, 1:-1] + (1 + across) * old_omega[:-2, 1:-1]
    np.testing.assert_allclose(left, right, rtol=0, atol=1e-11)


def test_lid_to_the_left_mirrors_the_flow():
    right = LidDrivenCavity(100, 33).solve(1e-10)

    left = LidDrivenCavity(100, 33, lid_velocity=-1).solve(1e-10)

    np.testing.assert_allclose(left.psi, -right.psi[:, ::-1], rtol=0, atol=1e-9)


def test_creeping_flow_is_symmetric():
    result = LidDrivenCavity(1e-3, 33).solve(1e-6)

    np.testing.assert_allclose(result.psi, result.psi[:, ::-1], rtol=0, atol=2e-6)
    assert result.primary_vortex().x == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize("line_method", ["auto", "thomas"])
@pytest.mark.parametrize("method", ["adi", "line-jacobi"])
def test_corners_are_never_read(method, line_method, backend):
    options = {"method": method, "line_method": line_method, "device": backend}
    expected = LidDrivenCavity(100, 17, **options).iterate(41)
    cavity = LidDrivenCavity(100, 17, **options)
    psi, omega = np.zeros((2, 17, 17))
    for corner in CORNERS:
        omega[corner] = np.nan
    cavity._fields.set(psi=psi, omega=omega, best_psi=psi, best_omega=omega)

    assert_same_bits(cavity.iterate(41), expected)


def wall_values(wall, psi, omega, h, speed):
    """The formulas of the walls on a line of nodes that starts at the wall."""
    return {
        "thom": -2 * psi[1] / h**2 - 2 * speed / h,
        "woods": -3 * psi[1] / h**2 - omega[1] / 2 - 3 * speed / h,
        "jensen": -(8 * psi[1] - psi[2]) / (2 * h**2) - 3 * speed / h,
    }[wall]


@pytest.mark.parametrize("wall", ["thom", "woods", "jensen"])
def test_walls_carry_their_formula(wall):
    cavity = LidDrivenCavity(100, 21, wall=wall, method="line-jacobi").iterate(7)
    psi, omega, h = cavity.psi, cavity.omega, 1 / 20

    for turned, speed in (
        ((psi, omega), 0),
        ((psi[::-1], omega[::-1]), 1),
        ((psi.T, omega.T), 0),
        ((psi.T[::-1], omega.T[::-1]), 0),
    ):
        expected = wall_values(wall, *turned, h, speed)
        np.testing.assert_allclose(turned[1][0, 1:-1], expected[1:-1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("wall", "degree"), [("thom", 2), ("woods", 3), ("jensen", 3)])
def test_wall_formulas_are_exact_on_polynomials(wall, degree):
    # psi of this degree away from a lid at y = 0 (distance d): psi = 0 and psi_d = -speed there
    speed, h = 1.3, 0.1
    d = h * np.arange(3)
    psi, omega = -speed * d + 0.7 * d**2, np.full(3, -1.4)
    if degree == 3:
        psi, omega = psi + 2.1 * d**3, omega - 12.6 * d

    assert wall_values(wall, psi, omega, h, speed=speed) == pytest.approx(-1.4)


def check_restart(options, half, path):
    """Require the bits of a run that was not interrupted, also in the history."""
    whole = LidDrivenCavity(100, 21, **options).iterate(2 * half)
    LidDrivenCavity(100, 21, **options).iterate(half).save(path)

    restarted = LidDrivenCavity.load(path).iterate(half)

    assert_same_bits(restarted, whole)
    assert restarted.iterations == whole.iterations == 2 * half
    assert restarted.residual == whole.residual
    assert restarted.pseudo_dt == whole.pseudo_dt or options.get("method") == "line-jacobi"
    for name in ("iteration", "psi", "omega", "pseudo_dt"):
        np.testing.assert_array_equal(
            getattr(restarted.result().history, name), getattr(whole.result().history, name)
        )


@pytest.mark.parametrize("options", [{}, {"method": "line-jacobi"}, {"pseudo_dt": 0.02}])
@pytest.mark.parametrize("half", [20, 33])
def test_restart_is_exact(options, half, tmp_path, backend):
    check_restart(options | {"device": backend}, half, tmp_path / "state.npz")


@pytest.mark.parametrize("options", [{"psi_solver": "fast"}, {"threads": 2}])
@pytest.mark.parametrize("half", [20, 33])
def test_restart_on_the_host_is_exact(options, half, tmp_path):
    check_restart(options, half, tmp_path / "state.npz")


@pytest.mark.parametrize("method", ["adi", "line-jacobi"])
def test_splitting_the_iterations_changes_nothing(method, backend):
    whole = LidDrivenCavity(1000, 66, method=method, device=backend).iterate(101)
    parts = LidDrivenCavity(1000, 66, method=method, device=backend)

    for count in (1, 0, 19, 30, 51):
        parts.iterate(count)
        assert np.isfinite(parts.psi).all()  # reads the field between the calls

    assert_same_bits(parts, whole)


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "state"
    cavity = LidDrivenCavity(100, 9).iterate(20)
    cavity.save(path)
    before = path.read_bytes()

    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        cavity.iterate(20).save(path)

    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["state"]


def test_result_survives_a_file(tmp_path):
    result = LidDrivenCavity(100, 17).solve(1e-6)
    result.save(tmp_path / "result.npz")

    loaded = CavityResult.load(tmp_path / "result.npz")

    np.testing.assert_array_equal(loaded.psi, result.psi)
    np.testing.assert_array_equal(loaded.history.omega, result.history.omega)
    assert (loaded.residual, loaded.stop_reason, loaded.seconds) == (
        result.residual,
        result.stop_reason,
        result.seconds,
    )
    with pytest.raises(ValueError, match="holds no pysolvers cavity state"):
        LidDrivenCavity.load(tmp_path / "result.npz")


def test_too_few_iterations_raise_with_the_history():
    with pytest.raises(pysolvers.ConvergenceError, match=r"did not converge.*45 iterations") as e:
        LidDrivenCavity(1000, 33).solve(max_iterations=45)

    result = e.value.result
    assert result.stop_reason == "max_iterations"
    assert result.iterations == 45
    assert list(result.history.iteration) == [20, 40]
    assert np.isfinite(result.psi).all()


def test_divergence_raises_with_a_finite_state():
    cavity = LidDrivenCavity(3200, 129, wall="thom", method="line-jacobi")

    with pytest.raises(pysolvers.ConvergenceError, match="did not converge") as e:
        cavity.solve()

    result = e.value.result
    assert result.stop_reason == "diverged"
    assert np.isfinite(result.psi).all()
    assert np.isfinite(result.omega).all()
    assert np.isfinite(result.residual)
    assert len(result.history.iteration) >= 1


@pytest.mark.parametrize("iterations", [13, 19])
def test_divergence_within_the_last_iterations_is_no_convergence(iterations):
    cavity = LidDrivenCavity(1e5, 17, method="line-jacobi")

    with pytest.raises(
        pysolvers.ConvergenceError, match=f"not finite after {iterations} iterations"
    ) as info:
        cavity.solve(max_iterations=iterations)

    assert info.value.result.stop_reason == "diverged"
    assert np.isfinite(info.value.result.psi).all()
    assert np.isfinite(cavity.psi).all()


def test_step_that_explodes_is_taken_back(backend):
    cavity = LidDrivenCavity(1000, 33, device=backend).iterate(400)
    cavity._control.cap = cavity._control.step = 1e3
    cavity._fields.set(psi=np.full((33, 33), np.nan))

    cavity.iterate(20)

    assert np.isfinite(cavity.psi).all()
    assert cavity.pseudo_dt < 1e3
    assert cavity.solve().converged


def test_restarted_iteration_steps_back_to_the_same_state(tmp_path):
    whole = LidDrivenCavity(1000, 21).iterate(60)
    best = state(whole), whole.residual
    whole.save(tmp_path / "state.npz")
    cavity = LidDrivenCavity.load(tmp_path / "state.npz")
    cavity._fields.operands()[0][1:-1, 1:-1] = np.nan

    cavity.iterate(20)

    for here, there in zip(state(cavity), best[0], strict=True):
        np.testing.assert_array_equal(here, there)
    assert cavity.residual == best[1]


def test_callback_sees_the_state_and_may_end():
    seen = []

    def watch(cavity):
        seen.append(cavity.iterations)
        return cavity.iterations >= 60

    result = LidDrivenCavity(1000, 17).solve(1e-12, callback=watch, interval=20)

    assert seen == [20, 40, 60]
    assert result.stop_reason == "callback"
    assert not result.converged


def test_fields_are_read_only_views():
    cavity = LidDrivenCavity(100, 9).iterate(3)

    for field in (cavity.psi, cavity.omega):
        with pytest.raises(ValueError, match="read-only"):
            field[2, 2] = 1


def test_velocity_is_that_of_the_streamfunction():
    result = LidDrivenCavity(100, 33).solve()
    h = 1 / 32

    np.testing.assert_allclose(result.u[5, 7], (result.psi[6, 7] - result.psi[4, 7]) / (2 * h))
    np.testing.assert_allclose(result.v[5, 7], (result.psi[5, 6] - result.psi[5, 8]) / (2 * h))
    assert (result.u[-1, 1:-1] == 1).all()
    assert (result.u[0] == 0).all()
    assert (result.v[:, 0] == 0).all()


def test_refined_vortex_is_exact_on_a_quadratic():
    result = LidDrivenCavity(100, 17).solve(1e-5)
    x, y = np.meshgrid(result.x, result.y)
    place = (0.53, 0.61)
    psi = -0.1 + 0.3 * (x - place[0]) ** 2 + 0.2 * (y - place[1]) ** 2
    result.psi[:], result.omega[:] = psi, 2 + x

    vortex = result.primary_vortex()

    assert (vortex.x, vortex.y) == pytest.approx(place)
    assert (vortex.psi, vortex.omega) == pytest.approx((-0.1, 2.53))


@pytest.mark.parametrize("n", [16, 17])
def test_centre_lines_interpolate_cubics_exactly(n):
    result = LidDrivenCavity(100, n).solve(1e-5)
    place = np.array([0, 0.03, 0.5, 0.77, 1])
    result.u[:] = (1 + result.y - 3 * result.y**3)[:, None] * (0.5 + result.x)

    np.testing.assert_allclose(result.centreline_u(place), 1 + place - 3 * place**3)


@pytest.mark.parametrize("side", ["lid", "bottom", "left", "right"])
def test_wall_vorticity_has_its_wall(side):
    result = LidDrivenCavity(100, 17).solve(1e-5)
    expected = {
        "lid": result.omega[-1, 1:-1],
        "bottom": result.omega[0, 1:-1],
        "left": result.omega[1:-1, 0],
        "right": result.omega[1:-1, -1],
    }

    place, omega = result.wall_vorticity(side)

    np.testing.assert_array_equal(omega, expected[side])
    np.testing.assert_allclose(place, np.arange(1, 16) / 16)
    with pytest.raises(ValueError, match="side must be one of"):
        result.wall_vorticity("roof")


def test_results_show_a_table_and_not_their_fields():
    result = LidDrivenCavity(100, 17).solve()
    html, lines = result._repr_html_(), repr(result).splitlines()

    assert "<table>" in html
    assert "converged" in html
    assert lines[:2] == [
        "Lid-driven cavity",
        "  flow            Re = 100, 17 × 17 nodes, jensen walls",
    ]
    assert len(lines) == 1 + html.count("<tr>")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"reynolds": 0}, ValueError, "reynolds must be positive, got 0"),
        ({"reynolds": -5.0}, ValueError, "reynolds must be positive, got -5.0"),
        ({"reynolds": float("nan")}, ValueError, "reynolds must be finite, got nan"),
        ({"reynolds": "10"}, TypeError, "reynolds must be a number, got str"),
        ({"n": 4}, ValueError, "n must be at least 5, got 4"),
        ({"n": 33.0}, TypeError, "n must be an int, got float"),
        ({"lid_velocity": 0}, ValueError, "lid_velocity must not be 0, got 0"),
        ({"wall": "smooth"}, ValueError, "wall must be one of jensen, woods, thom; got 'smooth'"),
        ({"method": "magic"}, ValueError, "method must be one of adi, line-jacobi; got 'magic'"),
        ({"line_method": "partition"}, ValueError, "line_method must be one of"),
        ({"direction": "z"}, ValueError, "direction must be one of alternate, x, y; got 'z'"),
        ({"psi_solver": "slow"}, ValueError, "psi_solver must be one of adi, fast; got 'slow'"),
        ({"psi_sweeps": 0}, ValueError, "psi_sweeps must be at least 1, got 0"),
        ({"pseudo_dt": 0.0}, ValueError, "pseudo_dt must be positive or None, got 0.0"),
        (
            {"pseudo_dt": 0.1, "method": "line-jacobi"},
            ValueError,
            "pseudo_dt needs method 'adi', got 0.1",
        ),
        (
            {"psi_solver": "fast", "method": "line-jacobi"},
            ValueError,
            "psi_solver needs method 'adi'",
        ),
        ({"threads": 0}, ValueError, "threads must be in"),
        ({"device": "abacus"}, ValueError, "device must be"),
    ],
)
def test_bad_parameters_are_named(options, error, message):
    with pytest.raises(error, match=message):
        LidDrivenCavity(**options)


def test_bad_arguments_of_solve_are_named():
    cavity = LidDrivenCavity(100, 9)

    with pytest.raises(ValueError, match="tol must be at least 0, got -1"):
        cavity.solve(-1)
    with pytest.raises(ValueError, match="max_iterations must be at least 1, got 0"):
        cavity.solve(max_iterations=0)
    with pytest.raises(ValueError, match="count must be at least 0, got -1"):
        cavity.iterate(-1)


def test_seconds_are_told_by_stage():
    seconds = LidDrivenCavity(100, 33).solve().seconds

    assert set(seconds) == {"omega", "psi", "walls", "residual"}
    assert all(value >= 0 for value in seconds.values())
    assert json.dumps(seconds)


def test_a_cavity_that_cannot_converge_ends_with_the_reason():
    """Re 20000 on 33 x 33 nodes made all 200000 iterations before."""
    with pytest.raises(
        pysolvers.ConvergenceError, match=r"the residual .* in 5000 iterations.*larger n"
    ) as e:
        LidDrivenCavity(20_000, 33).solve()

    result = e.value.result
    assert result.stop_reason == "stalled"
    assert result.iterations < 40_000
    assert np.isfinite(result.psi).all()


def test_a_cavity_with_patience_goes_on():
    with pytest.raises(
        pysolvers.ConvergenceError, match="above the tolerance 1e-07 after 8000 iterations"
    ):
        LidDrivenCavity(20_000, 33).solve(max_iterations=8000, patience=100_000)
    assert LidDrivenCavity(1000, 33).solve(patience=2000).converged


@pytest.mark.parametrize("step", [1e10, 1e50])
def test_a_step_that_hardly_moves_the_walls_does_not_converge(step):
    """The fields stay near 0, where the residual of the interior nodes is small."""
    with pytest.raises(pysolvers.ConvergenceError, match=r"the residual (stalled|grew)") as caught:
        LidDrivenCavity(100, 17, pseudo_dt=step).solve(1e-3, patience=200)

    assert caught.value.result.residual < 1e-3
    assert caught.value.result.stop_reason == "stalled"


def test_extreme_velocities_are_those_of_the_profiles():
    result = LidDrivenCavity(100, 33).solve(1e-6)
    fine, found = np.linspace(0, 1, 4001), result.centreline_extrema()

    for value, place, profile, choose in (
        (found.u_min, found.y_u_min, result.centreline_u, np.argmin),
        (found.v_max, found.x_v_max, result.centreline_v, np.argmax),
        (found.v_min, found.x_v_min, result.centreline_v, np.argmin),
    ):
        values = profile(fine)  # cubics, whose extrema differ by the fourth order
        best = choose(values)
        assert place == pytest.approx(fine[best], abs=5e-3)
        assert value == pytest.approx(values[best], abs=2e-4)
    # Ghia, Ghia and Shin (1982), 129 x 129 nodes
    assert (found.u_min, found.v_max, found.v_min) == pytest.approx(
        (-0.2109, 0.1753, -0.2453), abs=6e-3
    )
