"""The finite-volume plate: exact temperatures, order, sides, counts, variants."""

import numpy as np
import pytest
import relaxation_reference as reference

import pysolvers
from pysolvers import Dirichlet, Neumann, RedBlackSOR, Robin, solve_laplace
from pysolvers.papers import survey2014

HOT_TOP = {"x": 0.0, "y-": 0.0, "y+": 1.0}
VARIANTS = {"cpu": ("auto", "naive", "split")}
EVERY = ("auto", "naive", "coalesced", "split", "shared", "atomic")


def series(x, y):
    """The plate with T = 1 on the top and 0 elsewhere."""
    total = np.zeros(np.broadcast(x, y).shape)
    for n in range(1, 400, 2):
        k = n * np.pi
        fall = np.exp(k * (y - 1)) * (1 - np.exp(-2 * k * y)) / (1 - np.exp(-2 * k))
        total += 4 / k * np.sin(k * x) * fall
    return total


def error(n, backend):
    """Largest error in the lower half."""
    result = solve_laplace(
        (n, n), extent=((0, 1), (0, 1)), boundary=HOT_TOP, tol=1e-12, device=backend
    )
    lower = result.y < 0.5
    exact = series(result.x[None], result.y[lower, None])
    return np.abs(result.u[lower] - exact).max()


def test_errors_are_those_of_second_order(backend):
    errors = [error(n, backend) for n in (16, 32, 64)]

    assert errors == pytest.approx([5.4e-4, 1.44e-4, 3.7e-5], rel=0.02)


def test_temperatures_of_the_exact_solution(backend):
    def four(u, j, i):
        return u[j - 1 : j + 1, i - 1 : i + 1].mean()

    coarse, fine = (
        solve_laplace(
            (n, n), extent=((0, 1), (0, 1)), boundary=HOT_TOP, tol=1e-12, device=backend
        ).u
        for n in (64, 128)
    )

    assert four(fine, 64, 64) == pytest.approx(0.25, abs=1e-10)
    values = [four(u, 3 * len(u) // 4, len(u) // 4) for u in (coarse, fine)]
    assert (4 * values[1] - values[0]) / 3 == pytest.approx(0.4320283319, abs=2e-7)
    assert fine[-1, 0] == pytest.approx(0.5, abs=0.01)  # a corner has both of its walls


@pytest.mark.parametrize(
    ("n", "tol"), [(32, 1e-8), pytest.param(512, 1e-4, marks=pytest.mark.slow)]
)
def test_optimal_parameter_needs_the_iterations_of_a_plain_code(n, tol, backend):
    omega = 2 / (1 + np.sin(np.pi / n))
    expected = reference.plate((n, n), (1, 1), (0, 0, 0, 1), 0.0, omega, tol=tol)[1]

    plate = RedBlackSOR((n, n), extent=((0, 1), (0, 1)), boundary=HOT_TOP, device=backend)

    assert plate.omega == pytest.approx(omega, rel=1e-14)
    assert plate.solve(tol).iterations == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 1), (3, 3), (7, 18), (33, 14), (64, 130)])
def test_iterations_are_those_of_the_formulas(shape, backend, rng):
    ny, nx = shape
    sides = (*rng.normal(size=(2, ny)), *rng.normal(size=(2, nx)))
    source = rng.normal(size=shape)
    expected = reference.plate(shape, (1.3, 0.7), sides, source, 1.4, count=5)[0]

    plate = RedBlackSOR(
        shape,
        extent=((0, 1.3), (0, 0.7)),
        boundary=dict(zip(("x-", "x+", "y-", "y+"), sides, strict=True)),
        source=source,
        omega=1.4,
        device=backend,
    ).iterate(5)

    np.testing.assert_allclose(plate.u, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 5), (17, 30), (80, 131)])
@pytest.mark.parametrize("sourced", [False, True])
def test_all_variants_give_the_same_bits(shape, dtype, sourced, backend, rng):
    options = {
        "boundary": {"x-": 1.0, "x+": 0.0, "y+": Neumann(0.3), "y-": Robin(2.0, 0.5)},
        "source": rng.normal(size=shape) if sourced else 0.0,
        "initial": rng.normal(size=shape),
        "dtype": dtype,
        "device": backend,
    }

    fields = [
        survey2014.RedBlackSOR(shape, extent=((0, 1), (0, 1)), variant=variant, **options)
        .iterate(19)
        .u
        for variant in VARIANTS.get(backend, EVERY)
    ]

    for field in fields[1:]:
        np.testing.assert_array_equal(field, fields[0])


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 1), (1, 7), (7, 1), (2, 3), (3, 2), (8, 5)])
@pytest.mark.parametrize("sourced", [False, True])
@pytest.mark.parametrize("norm", ["l2", "max"])
def test_first_residual_is_the_right_hand_side(shape, sourced, norm, rng):
    """From u = 0, with an omega that changes nothing; measures are relative to that norm."""
    boundary = {
        "x-": 1.0,
        "x+": Robin(2.0, 0.5),
        "y-": Neumann(0.3),
        "y+": rng.normal(size=shape[1]),
    }
    source = rng.normal(size=shape) if sourced else 0.0
    options = {"boundary": boundary, "source": source, "omega": 1e-13}
    plate = RedBlackSOR(shape, extent=((0, 1), (0, 1.5)), **options)

    with pytest.raises(pysolvers.ConvergenceError) as caught:
        plate.solve(1e-3, norm=norm, max_iterations=1)

    assert caught.value.result.history.measure == pytest.approx([1.0], rel=1e-9)


def test_variants_that_the_cpu_lacks():
    with pytest.raises(pysolvers.BackendError, match="PS_UNSUPPORTED"):
        survey2014.RedBlackSOR((8, 8), spacing=1.0, boundary=0.0, variant="shared").iterate(1)


def test_variants_are_those_of_the_survey():
    with pytest.raises(ValueError, match="variant must be one of auto, naive"):
        survey2014.RedBlackSOR((8, 8), spacing=1.0, boundary=0.0, variant="fast")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"coefficients": "arrays", "variant": "split"},
            "coefficients='arrays' needs device 'cuda', got None",
        ),
        (
            {"coefficients": "texture", "device": "cuda"},
            "coefficients='texture' needs a variant of the survey, 'naive' for example, got 'auto'",
        ),
        (
            {"coefficients": "constants"},
            "coefficients must be one of tables, arrays, texture; got 'constants'",
        ),
    ],
)
def test_coefficients_that_contradict_other_options(options, message):
    with pytest.raises(ValueError) as caught:
        survey2014.RedBlackSOR((8, 8), spacing=1.0, boundary=0.0, **options)

    assert str(caught.value) == message


def test_threads_do_not_change_a_bit(rng):
    source = rng.normal(size=(150, 97))
    results = [
        solve_laplace(
            (150, 97),
            boundary=0.0,
            extent=((0, 1), (0, 1)),
            source=source,
            tol=1e-6,
            threads=threads,
        )
        for threads in (1, 2, 3, 5)
    ]

    for result in results[1:]:
        np.testing.assert_array_equal(result.u, results[0].u)
        np.testing.assert_array_equal(result.history.measure, results[0].history.measure)


def test_linear_profile_between_a_flux_and_a_temperature(backend):
    """k T' = q at the hot side: exact, as is an insulated side."""
    result = solve_laplace(
        (9, 25),
        extent=((0, 2.0), (0, 0.5)),
        conductivity=4.0,
        boundary={"x-": Neumann(6.0), "x+": 1.0, "y-": Neumann(), "y+": Neumann()},
        tol=1e-13,
        device=backend,
    )

    exact = 1 + 1.5 * (2 - result.x)
    np.testing.assert_allclose(result.u, np.broadcast_to(exact, (9, 25)), rtol=1e-11)


def test_exchange_with_an_ambient(backend):
    """Through half a wall of resistance 1/h and a plate of L/k."""
    h, k, length = 3.0, 2.0, 1.5
    result = solve_laplace(
        (4, 30),
        extent=((0, length), (0, 1.0)),
        conductivity=k,
        boundary={"x-": Robin(h, 10.0), "x+": Dirichlet(2.0), "y-": Neumann(), "y+": Neumann()},
        tol=1e-13,
        device=backend,
    )
    flux = 8 / (1 / h + length / k)

    exact = 10 - flux * (1 / h + result.x / k)
    np.testing.assert_allclose(result.u, np.broadcast_to(exact, (4, 30)), rtol=1e-10)


def test_source_is_solved_to_second_order(backend):
    """sin(pi x) sin(2 pi y) has the source 5 pi^2 k times itself."""
    errors = []
    for n in (16, 32):
        result = solve_laplace(
            (n, n),
            boundary=0.0,
            extent=((0, 1), (0, 1)),
            conductivity=3.0,
            source=lambda x, y: 15 * np.pi**2 * np.sin(np.pi * x) * np.sin(2 * np.pi * y),
            tol=1e-12,
            device=backend,
        )
        exact = np.sin(np.pi * result.x) * np.sin(2 * np.pi * result.y[:, None])
        errors.append(np.abs(result.u - exact).max())

    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


def test_optimal_parameter_of_other_plates_beats_its_neighbours(backend):
    options = {
        "extent": ((0, 1), (0, 2)),
        "boundary": {"x-": 1.0, "x+": 0.0, "y+": Neumann(), "y-": Neumann()},
        "device": backend,
    }
    best = RedBlackSOR((40, 60), **options)
    made = best.solve(1e-10).iterations

    for omega in (best.omega - 0.05, min(best.omega + 0.05, 1.99)):
        other = RedBlackSOR((40, 60), omega=omega, **options).solve(1e-10)
        assert made < other.iterations


@pytest.mark.parametrize(
    ("shape", "spacing", "boundary", "most"),
    [
        ((1, 1), (1.0, 1.0), {"x": 3.0, "y": 3.0}, 2),
        ((1, 1), (0.5, 2.0), {"x": 3.0, "y": Robin(2.0, 3.0)}, 2),
        ((1, 40), (1.0, 0.1), {"x": 3.0, "y": 3.0}, 8),
        ((40, 1), (0.1, 1.0), {"x": 3.0, "y": Neumann()}, 8),
        ((1, 40), (1.0, 0.1), {"x": 3.0, "y": Neumann()}, 250),
    ],
)
def test_optimal_parameter_of_a_single_row_of_cells(backend, shape, spacing, boundary, most):
    plate = RedBlackSOR(shape, spacing=spacing, boundary=boundary, device=backend)
    result = plate.solve(1e-10, max_iterations=most)

    np.testing.assert_allclose(result.u, 3.0, rtol=1e-8)


def test_residual_is_relative_to_the_right_hand_side(backend):
    one, many = (
        RedBlackSOR(
            (20, 30),
            extent=((0, 1), (0, 1)),
            boundary={"y+": top, "x": 0.0, "y-": 0.0},
            device=backend,
        )
        .iterate(7)
        .residual
        for top in (1.0, 1e6)
    )

    assert many == pytest.approx(one, rel=1e-10)


def test_small_changes_are_not_convergence(backend):
    """The stop test of the survey, a small update with a fixed parameter, stops too soon."""
    plate = RedBlackSOR(
        (512, 512), extent=((0, 1), (0, 1)), boundary=HOT_TOP, omega=1.85, device=backend
    )
    result = plate.solve(1e-4, criterion="change", norm="max")

    middle = result.u[255:257, 255:257].mean()
    assert result.stop_reason == "converged"
    assert abs(middle - 0.25) > 0.05


def dense_jacobi(plate):
    """Return the spectral radius of the Jacobi iteration of a plate, from its dense matrix."""
    (ny, nx), (ax, ay) = plate.shape, plate._a
    neighbours, diagonal = np.zeros((ny * nx, ny * nx)), np.zeros((ny, nx))
    index = np.arange(ny * nx).reshape(ny, nx)
    for a, one, other in (
        (ax, index[:, 1:], index[:, :-1]),
        (ay, index[1:], index[:-1]),
    ):
        neighbours[one.ravel(), other.ravel()] = neighbours[other.ravel(), one.ravel()] = a
        for each in (one, other):
            np.add.at(diagonal.ravel(), each.ravel(), a)
    for side, place in (("x-", np.s_[:, 0]), ("x+", np.s_[:, -1]), ("y-", np.s_[0]), ("y+", -1)):
        diagonal[place] += (ax if side[0] == "x" else ay) * plate._walls[side].exchange
    root = np.sqrt(diagonal.ravel())
    return float(np.linalg.eigvalsh(neighbours / root / root[:, None])[-1])


def sor_radius(omega, rho):
    """Young's relation between the eigenvalues of SOR and of Jacobi."""
    square = (omega * rho) ** 2 - 4 * (omega - 1)
    return omega - 1 if square <= 0 else ((omega * rho + np.sqrt(square)) / 2) ** 2


def random_side(rng):
    kind = rng.integers(4)
    if kind < 2:
        return (Dirichlet(1.0), Neumann(0.0))[kind]
    return Robin(10 ** rng.uniform(-5, 2), 1.0)


@pytest.mark.parametrize("seed", range(60))
def test_optimal_parameter_needs_at_most_1_6_times_the_fewest_iterations(seed):
    """Any sides, cells up to 100 times as long as wide; the truth is the dense matrix."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 13, 2))
    sides = {side: random_side(rng) for side in ("x-", "x+", "y-", "y+")}
    if all(isinstance(side, Neumann) for side in sides.values()):
        sides["x-"] = Robin(1e-3, 0.0)
    options = {"spacing": (1.0, 10 ** rng.uniform(-2, 2)), "boundary": sides}
    plate = RedBlackSOR(shape, **options)
    rho = dense_jacobi(plate)
    if rho < 1e-3:
        return

    best = 2 / (1 + np.sqrt((1 - rho) * (1 + rho)))
    radius = sor_radius(plate.omega, rho)
    assert np.log(best - 1) / np.log(radius) < 1.6
    # The rate that the patience is made of, for this and for other parameters.
    assert np.log(plate._radius) / np.log(radius) == pytest.approx(1, abs=0.6)
    slow = RedBlackSOR(shape, omega=1.0, **options)
    assert (1 - slow._radius) / (1 - rho**2) == pytest.approx(1, abs=0.6)


@pytest.mark.parametrize(
    ("n", "coefficient", "most"),
    [
        (32, 10.0, 4200),
        (32, 1000.0, 400),
        (64, 10.0, 8000),
        pytest.param(128, 10.0, 18000, marks=pytest.mark.slow),
        (128, 1000.0, 1700),
    ],
)
def test_a_plate_that_convection_cools(n, coefficient, most):
    """An aluminium plate: the heat of the source leaves through the sides."""
    plate = RedBlackSOR(
        (n, n),
        extent=((0, 0.1), (0, 0.1)),
        conductivity=200.0,
        boundary=Robin(coefficient, 300.0),
        source=lambda x, y: 1e5 * (x < 0.02),
    )
    result = plate.solve(1e-8)

    assert result.converged
    assert result.iterations < most
    # The outflow by the values at the walls, half a cell from the centres.
    h, per_face = 0.1 / n, 1 / (1 / coefficient + 0.1 / n / 2 / 200.0)
    rims = (result.u[0], result.u[-1], result.u[:, 0], result.u[:, -1])
    outflow = sum(per_face * h * float((rim - 300.0).sum()) for rim in rims)
    source = 1e5 * h * h * n * float((result.x < 0.02).sum())
    assert outflow == pytest.approx(source, rel=1e-4)


@pytest.mark.parametrize("aspect", [30.0, 100.0])
def test_one_given_side_and_long_cells(aspect):
    sides = {"y-": 1.0, "y+": Neumann(), "x": Neumann()}
    plate = RedBlackSOR((32, 32), spacing=(1.0, aspect), boundary=sides)

    np.testing.assert_allclose(plate.solve().u, 1.0, atol=1e-4)


def test_a_stall_names_omega_and_the_direct_solver():
    options = {"spacing": 1.0, "boundary": {"x": 1.0, "y": 0.0}}
    with pytest.raises(
        pysolvers.ConvergenceError, match=r"patience; with omega=1\.7.* FastPoisson"
    ):
        RedBlackSOR((20, 30), **options).solve(1e-30)
    with pytest.raises(
        pysolvers.ConvergenceError, match=r"with omega=1 .* take omega='optimal', which is 1\.7"
    ):
        RedBlackSOR((20, 30), omega=1.0, **options).solve(1e-30)
    cooled = RedBlackSOR((20, 30), spacing=1.0, boundary=Robin(1.0, 1.0), source=lambda x: x)
    with pytest.raises(pysolvers.ConvergenceError) as caught:
        cooled.solve(1e-30)
    assert "FastPoisson" not in str(caught.value)
