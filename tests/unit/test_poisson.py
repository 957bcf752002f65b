"""FastPoisson solves the difference equations of every combination of sides, grids and dtypes."""

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import availability
import numpy as np
import poisson_reference
import pytest

from pysolvers import (
    BackendError,
    Dirichlet,
    FastPoisson,
    Neumann,
    Robin,
    SingularSystemWarning,
)

PAIRS = ("DD", "DN", "ND", "NN", "PP")
GRIDS = ("nodes", "cells")
CONDITIONS = {"D": Dirichlet, "N": Neumann}


def random(rng, shape, dtype=np.float64):
    """Return numbers in (-1, 1), in both parts of a complex dtype."""
    values = rng.uniform(-1, 1, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.uniform(-1, 1, shape)
    return values.astype(dtype)


def problem(rng, grid, ends, shape, dtype=np.float64, *, stretched=False, methods=None):
    """Return a solver with random values on its sides, its edges, and the values by side."""
    names = "xyz"[: len(shape)][::-1]
    steps, edges, boundary, values = [], [], {}, {}
    for axis, (pair, size) in enumerate(zip(ends, shape, strict=True)):
        count = size + int(grid == "cells" or pair == "PP")
        step = 0.3 + 0.2 * axis
        line = np.arange(count) * step
        if stretched and names[axis] == "x":
            line = step = np.cumsum(rng.uniform(0.2, 0.6, count)) - 1
        steps.append(step)
        edges.append(line)
        if pair == "PP":
            boundary[names[axis]] = "periodic"
            continue
        side = shape[:axis] + shape[axis + 1 :]
        for end, sign in enumerate("-+"):
            values[axis, end] = random(rng, side, dtype)
            boundary[names[axis] + sign] = CONDITIONS[pair[end]](values[axis, end])
    solver = FastPoisson(
        shape,
        tuple(reversed(steps)),
        boundary=boundary,
        grid=grid,
        dtype=dtype,
        methods=methods,
        on_incompatible="ignore",
    )
    return solver, edges, values


def check(rng, grid, ends, shape, dtype=np.float64, *, stretched=False):
    """Compare with the dense solution; the values on Dirichlet nodes are compared apart."""
    # Transforms, which short axes do not have by default, for every second problem.
    methods = dict.fromkeys("xyz"[1 : len(shape)], "transform") if rng.random() < 0.5 else None
    options = {"stretched": stretched, "methods": methods}
    solver, edges, values = problem(rng, grid, ends, shape, dtype, **options)
    f = random(rng, shape, dtype)
    wide = np.result_type(dtype, np.float64)
    expected, matrix = poisson_reference.solve(
        grid, ends, edges, f.astype(wide), {key: v.astype(wide) for key, v in values.items()}
    )

    u = solver.solve(f)

    known = np.isnan(expected)
    singular_values = np.linalg.svd(matrix, compute_uv=False)
    least = singular_values[-1 - int(solver.is_singular)] if len(singular_values) > 1 else 1.0
    most = 20 * np.finfo(dtype).eps * max(singular_values[0] / least, 1.0)
    np.testing.assert_allclose(
        u[~known], expected[~known], rtol=0, atol=most * np.abs(expected[~known]).max()
    )
    assert u.dtype == dtype
    assert known.any() == (grid == "nodes" and any("D" in pair for pair in ends))
    # Laplacian of the random field: the operator itself, far from the solution.
    free = ~known
    field = random(rng, shape, dtype)
    zero = dict.fromkeys(solver.boundary)
    for side, kind in solver.boundary.items():
        zero[side] = {"Dirichlet": Dirichlet(), "Neumann": Neumann()}.get(kind, "periodic")
    applied = solver.apply(field, boundary=zero)
    np.testing.assert_allclose(
        applied[free],
        matrix @ field[free],
        rtol=0,
        atol=20 * np.finfo(dtype).eps * np.abs(matrix).max(),
    )
    assert not applied[known].any()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("x", PAIRS)
@pytest.mark.parametrize("y", PAIRS)
@pytest.mark.parametrize("grid", GRIDS)
def test_rectangle_agrees_with_dense_matrix(rng, grid, y, x, dtype):
    for _ in range(2):
        check(rng, grid, [y, x], (6, 7), np.dtype(dtype))


@pytest.mark.parametrize("x", PAIRS)
@pytest.mark.parametrize("y", PAIRS)
@pytest.mark.parametrize("z", PAIRS)
@pytest.mark.parametrize("grid", GRIDS)
def test_box_agrees_with_dense_matrix(rng, grid, z, y, x):
    check(rng, grid, [z, y, x], (4, 3, 5))


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
@pytest.mark.parametrize("ends", [("PP", "PP", "PP"), ("PP", "DN", "ND"), ("NN", "PP", "DD")])
def test_box_of_other_dtypes_agrees_with_dense_matrix(rng, ends, dtype):
    check(rng, "cells", list(ends), (4, 3, 5), np.dtype(dtype))


@pytest.mark.parametrize("stretched", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("x", PAIRS)
@pytest.mark.parametrize("grid", GRIDS)
def test_interval_agrees_with_dense_matrix(rng, grid, x, dtype, stretched):
    check(rng, grid, [x], (9,), np.dtype(dtype), stretched=stretched)


@pytest.mark.parametrize("x", PAIRS)
@pytest.mark.parametrize("y", PAIRS)
@pytest.mark.parametrize("grid", GRIDS)
def test_stretched_rectangle_agrees_with_dense_matrix(rng, grid, y, x):
    check(rng, grid, [y, x], (5, 8), stretched=True)


@pytest.mark.parametrize("others", [("DN", "PP"), ("NN", "NN"), ("PP", "PP")])
@pytest.mark.parametrize("x", PAIRS)
def test_stretched_box_agrees_with_dense_matrix(rng, others, x):
    check(rng, "nodes", [*others, x], (4, 3, 6), stretched=True)


@pytest.mark.parametrize(
    ("grid", "pair", "size"),
    [("nodes", "DD", 3), ("nodes", "DN", 2), ("nodes", "ND", 2), ("nodes", "NN", 2)]
    + [("nodes", "PP", 2), ("cells", "PP", 2)]
    + [("cells", pair, 1) for pair in ("DD", "DN", "ND", "NN")],
)
def test_smallest_grids_agree_with_dense_matrix(rng, grid, pair, size):
    check(rng, grid, [pair, pair], (size, size))
    check(rng, grid, [pair, "DD"], (size, 5))
    check(rng, grid, ["DD", pair], (5, size))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(64, 512), (129, 100), (37, 41), (16, 17, 1024), (9, 32, 30)])
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("grid", GRIDS)
def test_residual_is_of_the_size_of_rounding_errors(rng, grid, pair, shape, dtype):
    solver, _, _ = problem(rng, grid, [pair] * len(shape), shape, dtype)
    f = random(rng, shape, dtype)
    if solver.is_singular:
        flux = solver.apply(np.zeros(shape))
        weights = np.ones(shape)
        if grid == "nodes" and pair == "NN":
            for axis in range(len(shape)):
                for end in (0, -1):
                    weights[(slice(None),) * axis + (end,)] /= 2
        f -= np.asarray(((f - flux) * weights).sum() / weights.sum()).astype(dtype)

    u = solver.solve(f)

    residual = solver.apply(u) - f
    inner = (slice(1, -1),) * len(shape)
    free = residual[inner] if grid == "nodes" and pair != "PP" else residual
    norm = sum(4 / (0.3 + 0.2 * axis) ** 2 for axis in range(len(shape)))
    scale = norm * np.abs(u).max() + np.abs(f).max()
    assert np.abs(free).max() < 10 * np.finfo(dtype).eps * scale
    if pair in ("NN", "PP") and grid == "nodes":
        assert np.abs(residual).max() < 10 * np.finfo(dtype).eps * scale


class TestSingular:
    """Without a Dirichlet side the mean is fixed, and the right side must be compatible."""

    CASES = (("NN", "NN"), ("PP", "NN"), ("NN", "PP"), ("PP", "PP"))

    @pytest.mark.parametrize("ends", CASES)
    @pytest.mark.parametrize("grid", GRIDS)
    def test_mean_over_the_volumes_is_zero(self, rng, grid, ends):
        solver, _, _ = problem(rng, grid, ends, (8, 9), stretched=True)

        u = solver.solve(random(rng, (8, 9)))

        total = np.ones((8, 9))
        for axis, line in enumerate(solver._axes):
            total *= line.volumes.reshape((-1, 1) if axis == 0 else (1, -1))
        assert abs((u * total).sum()) < 1e-13 * np.abs(u).max() * total.sum()
        assert solver.is_singular

    def test_constant_of_the_solution_does_not_enter(self):
        x = np.linspace(0, 1, 33)
        solver = FastPoisson(33, 1 / 32, boundary=Neumann())
        f = solver.apply(np.cos(np.pi * x) + 7.0)

        np.testing.assert_allclose(solver.solve(f), np.cos(np.pi * x), atol=1e-13)

    @pytest.mark.parametrize("ends", CASES)
    def test_incompatible_right_side_is_reported(self, ends):
        boundary = {
            axis: "periodic" if pair == "PP" else Neumann()
            for axis, pair in zip("yx", ends, strict=True)
        }
        solver = FastPoisson((8, 9), 0.1, boundary=boundary, grid="cells")
        f = np.random.default_rng(1).uniform(1, 2, (8, 9))

        with pytest.warns(SingularSystemWarning, match="the mean was subtracted") as caught:
            u = solver.solve(f)

        assert caught[0].filename == __file__
        np.testing.assert_allclose(solver.apply(u), f - f.mean(), atol=1e-12)

    @pytest.mark.parametrize(
        ("dtype", "size"),
        [
            (np.float32, 1e-28),
            (np.float32, 1e-21),
            (np.complex64, 1e22),
            (np.float64, 1.0),
            (np.complex128, 1e-200),
            (np.float64, 1e-160),
            (np.float64, 1e200),
        ],
    )
    def test_size_of_the_mean_is_in_the_message(self, dtype, size):
        solver = FastPoisson((4, 4), 0.1, boundary=Neumann(), grid="cells", dtype=dtype)
        f = size * np.tile([1.0, -1.0, 1.0, 0.0], (4, 1))  # mean 1/4, mean square 3/4

        with pytest.warns(SingularSystemWarning, match=r"a mean of 0\.289 times"):
            solver.solve(f)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(solver.solve(0.0), 0)

    def test_derivatives_on_the_sides_are_part_of_the_balance(self):
        # u = x^2 + y^2 on the unit square: f = 4, outward derivatives 0, 2, 0, 2.
        boundary = {"x-": Neumann(), "x+": Neumann(2.0), "y-": Neumann(), "y+": Neumann(2.0)}
        for grid in GRIDS:
            n = 16 + int(grid == "nodes")
            solver = FastPoisson((n, n), 1 / 16, boundary=boundary, grid=grid)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                u = solver.solve(4.0)
            exact = solver.x**2 + solver.y[:, None] ** 2
            # The three-point formula is exact for a parabola, but for a constant.
            np.testing.assert_allclose(np.ptp(u - exact), 0, atol=1e-13)

            with pytest.warns(SingularSystemWarning):
                solver.solve(4.0, boundary={"x+": Neumann(1.0)})

    def test_policy_raises_or_ignores(self):
        f = np.ones((4, 4))
        with pytest.raises(ValueError, match="on_incompatible='ignore'"):
            FastPoisson((4, 4), 1.0, boundary="periodic", on_incompatible="raise").solve(f)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            u = FastPoisson((4, 4), 1.0, boundary="periodic", on_incompatible="ignore").solve(f)
        np.testing.assert_allclose(u, 0, atol=1e-15)

    def test_one_dirichlet_side_makes_it_regular(self):
        for side in ("x-", "x+", "y-", "y+"):
            boundary = dict.fromkeys(("x-", "x+", "y-", "y+"), Neumann()) | {side: 3.0}
            solver = FastPoisson((5, 6), 0.1, boundary=boundary, grid="cells")
            assert not solver.is_singular
            np.testing.assert_allclose(solver.solve(0.0), 3.0, rtol=1e-13)


class TestSides:
    """Ways to give the values of the sides."""

    def test_values_change_from_call_to_call(self, rng):
        shape, f = (7, 8), random(rng, (7, 8))
        solver = FastPoisson(shape, 0.2, boundary={"x": 0.0, "y-": Neumann(), "y+": 1.0})
        left, flux = random(rng, 7), random(rng, 8)
        other = FastPoisson(
            shape, 0.2, boundary={"x-": left, "x+": 0.0, "y-": Neumann(flux), "y+": 1.0}
        )
        first = solver.solve(f)

        changed = solver.solve(f, boundary={"x-": left, "y-": Neumann(flux)})

        np.testing.assert_array_equal(changed, other.solve(f))
        np.testing.assert_array_equal(solver.solve(f), first)
        assert not np.allclose(first, changed)

    def test_forms_of_a_dirichlet_value(self):
        y = np.linspace(0, 0.6, 7)
        forms = [
            np.sin(y),
            Dirichlet(np.sin(y)),
            lambda y: np.sin(y),
            lambda y, x: np.sin(y) + 0 * x,
        ]
        results = [
            FastPoisson((7, 8), 0.1, boundary={"x-": form, "x+": 0, "y": Neumann()}).solve(1.0)
            for form in forms
        ]

        for u in results:
            np.testing.assert_allclose(u, results[0], rtol=1e-12, atol=1e-15)
            np.testing.assert_allclose(u[:, 0], np.sin(y), rtol=1e-15)

    def test_function_of_a_side_has_the_coordinate_of_the_side(self):
        exact = lambda z, x, y: x - 2 * y + 3 * z  # noqa: E731
        for grid in GRIDS:
            solver = FastPoisson(
                (5, 6, 7), extent=((1, 2), (-1, 0), (4, 7)), boundary=exact, grid=grid
            )
            u = solver.solve(0.0)
            x, y, z = solver.x, solver.y[:, None], solver.z[:, None, None]
            np.testing.assert_allclose(u, exact(x=x, y=y, z=z), rtol=1e-13)

    def test_corner_belongs_to_the_later_axis(self):
        u = FastPoisson((4, 4), 1.0, boundary={"x": 1.0, "y-": 2.0, "y+": Neumann()}).solve(0.0)

        assert u[0, 0] == u[0, -1] == 2.0
        assert u[-1, 0] == u[-1, -1] == 1.0

    def test_functions_of_the_right_side_are_called_by_name(self):
        solver = FastPoisson((6, 7), (0.1, 0.2), boundary=0.0)
        by_array = solver.solve(solver.x + 10 * solver.y[:, None])

        np.testing.assert_array_equal(solver.solve(lambda y, x: x + 10 * y), by_array)
        np.testing.assert_array_equal(solver.solve(lambda x, y, scale=10: x + scale * y), by_array)

    def test_order_of_spacing_is_x_y_z(self):
        solver = FastPoisson((3, 4, 5), (0.1, 0.2, 0.3), boundary="periodic")

        np.testing.assert_allclose(solver.x, 0.1 * np.arange(5))
        np.testing.assert_allclose(solver.y, 0.2 * np.arange(4))
        np.testing.assert_allclose(solver.z, 0.3 * np.arange(3))

    def test_places_of_cells_are_their_centres(self):
        solver = FastPoisson((2, 4), extent=((0, 1), (2, 4)), boundary=0, grid="cells")

        np.testing.assert_allclose(solver.x, [0.125, 0.375, 0.625, 0.875])
        np.testing.assert_allclose(solver.y, [2.5, 3.5])
        with pytest.raises(AttributeError, match="no axis z"):
            _ = solver.z


class TestArrays:
    """Arrays of the caller are read or written as documented."""

    def test_inputs_are_not_changed(self, rng):
        for boundary in (0.0, "periodic", Neumann()):
            f, side = random(rng, (9, 8)), random(rng, 9)
            before = f.copy(), side.copy()
            f.flags.writeable = side.flags.writeable = False
            solver = FastPoisson((9, 8), 0.1, boundary=boundary, on_incompatible="ignore")
            solver.solve(f)
            if boundary == 0.0:
                solver.solve(f, boundary={"x-": side})
            np.testing.assert_array_equal(f, before[0])
            np.testing.assert_array_equal(side, before[1])

    def test_changed_array_of_a_side_does_not_change_the_solver(self, rng):
        side = random(rng, 9)
        solver = FastPoisson((9, 8), 0.1, boundary={"x-": side, "x+": 0, "y": 0})
        first = solver.solve(1.0)
        side[:] = 0

        np.testing.assert_array_equal(solver.solve(1.0), first)

    @pytest.mark.parametrize("pair", PAIRS)
    @pytest.mark.parametrize("grid", GRIDS)
    def test_result_goes_to_out(self, rng, grid, pair):
        solver, _, _ = problem(rng, grid, [pair, pair], (8, 9))
        f = random(rng, (8, 9))
        expected = solver.solve(f)
        wide = np.full((16, 27), np.nan)
        places = [np.empty((8, 9)), np.empty((8, 9), order="F"), wide[::-2, ::3]]

        for out in places:
            assert solver.solve(f, out=out) is out
            np.testing.assert_array_equal(out, expected)
        assert np.isnan(wide[::-2, 1::3]).all() and np.isnan(wide[-2::-2]).all()
        np.testing.assert_array_equal(solver.solve(f, out=f), expected)

    def test_out_can_overlap_the_operands(self, rng):
        line = random(rng, 100)
        f, out, side = line[:72].reshape(8, 9), line[9:81].reshape(8, 9), line[20:28]
        solver = FastPoisson((8, 9), 0.1, boundary={"x-": side, "x+": 0, "y": 0})
        expected = solver.solve(f.copy())

        np.testing.assert_array_equal(solver.solve(f, out=out), expected)

    def test_layouts_of_f_give_the_same_solution(self, rng):
        solver = FastPoisson((8, 9), 0.1, boundary=0)
        f = random(rng, (8, 9))
        expected = solver.solve(f)

        class Wrapped:
            def __array__(self, dtype=None, copy=None):
                return f

        forms = [np.asfortranarray(f), f[::-1, ::-1].copy()[::-1, ::-1], f.tolist(), Wrapped()]
        for form in [*forms, f.astype(">f8")]:
            np.testing.assert_array_equal(solver.solve(form), expected)

    def test_broadcast_and_integer_right_sides(self):
        solver = FastPoisson((8, 9), 0.1, boundary=0)
        expected = solver.solve(np.ones((8, 9)))

        for f in (1, 1.0, np.ones(9), np.ones((8, 1), np.int32), np.ones((8, 9), bool)):
            np.testing.assert_array_equal(solver.solve(f), expected)

    def test_real_right_side_of_a_complex_solver(self, rng):
        f = random(rng, (8, 9))
        kinds = {"x": Neumann(), "y-": 1.0, "y+": 0.0}
        real = FastPoisson((8, 9), 0.1, boundary=kinds).solve(f)

        u = FastPoisson((8, 9), 0.1, boundary=kinds, dtype=complex).solve(f)

        np.testing.assert_allclose(u, real, rtol=1e-13)

    @pytest.mark.parametrize("pair", PAIRS)
    def test_bits_do_not_depend_on_the_number_of_threads(self, rng, pair):
        f = random(rng, (301, 400))
        kinds = {"D": 0.0, "N": Neumann(), "P": "periodic"}
        boundary = {"x": 0.0, "y-": kinds[pair[0]], "y+": kinds[pair[1]]}
        results = [
            FastPoisson((301, 400), 0.1, boundary=boundary, threads=n).solve(f) for n in (1, 2, 3)
        ]

        np.testing.assert_array_equal(results[1], results[0])
        np.testing.assert_array_equal(results[2], results[0])

    def test_one_solver_serves_several_threads(self, rng):
        solver = FastPoisson((200, 150), 0.1, boundary={"x": 0.0, "y": Neumann()})
        many = [random(rng, (200, 150)) for _ in range(40)]
        expected = [solver.solve(f) for f in many]

        with ThreadPoolExecutor(max_workers=6) as pool:
            for u, right in zip(pool.map(solver.solve, many), expected, strict=True):
                np.testing.assert_array_equal(u, right)


class TestMessages:
    """Messages of errors name the rule and the value."""

    @pytest.mark.parametrize(
        ("change", "error", "text"),
        [
            ({"boundary": {"x": 0.0}}, ValueError, r"; y-, y\+ are missing"),
            ({"boundary": {"x": 0, "y": 0, "x-": 1}}, ValueError, "x- is given by both"),
            ({"boundary": {"x": 0, "y": 0, "z": 1}}, ValueError, r"the sides are x-, x\+.*'z'"),
            ({"boundary": Robin(-1.0)}, ValueError, "coefficient of Robin must be at least 0"),
            ({"boundary": {"x": None, "y": 0}}, TypeError, "Dirichlet, Neumann, Robin or 'per"),
            ({"boundary": "cyclic"}, ValueError, "must be 'periodic', got 'cyclic'"),
            ({"boundary": {"x-": 0, "x+": "periodic", "y": 0}}, ValueError, "both sides along x"),
            ({"boundary": lambda t: t}, TypeError, "among y, x, got t|among x, y, got t"),
            ({"boundary": {"x": np.ones(3), "y": 0}}, ValueError, r"boundary x-.*\(8,\).*\(3,\)"),
            ({"boundary": 1j}, TypeError, "dtype=np.complex128"),
            ({"boundary": Dirichlet("warm")}, TypeError, "boundary x- must be a number, an array"),
            (
                {"boundary": [0.0, [1, 2]]},
                ValueError,
                r"\[0.0, \[1, 2\]\] have.*: .* are a mapping",
            ),
            ({"boundary": [0.0, Neumann()]}, TypeError, r"\[0.0, Neumann\(.*\)\]: .* a mapping"),
            ({"boundary": [0.0, 1.0]}, ValueError, r"got shape \(2,\): .* a mapping, for example"),
            ({"shape": (2, 9)}, ValueError, "at least 3 nodes along y between Dirichlet sides"),
            ({"shape": (3, 4, 5, 6)}, ValueError, "1, 2 or 3 axes"),
            ({"shape": (3.0, 9)}, TypeError, "shape must be an int, got float"),
            ({"shape": (8, 0)}, ValueError, "at least 1, got 0"),
            ({"spacing": -1.0}, ValueError, "spacing along x must be positive, got -1.0"),
            ({"spacing": np.nan}, ValueError, "spacing along x must be finite"),
            ({"spacing": (1.0,)}, ValueError, "an entry for each of x, y"),
            ({"spacing": (1.0, np.arange(9.0))}, ValueError, r"along y .*of 8 nodes, shape \(8,\)"),
            ({"spacing": (np.arange(8.0), 1.0)}, ValueError, r"of 9 nodes, shape \(9,\)"),
            ({"spacing": (-np.arange(9.0), 1.0)}, ValueError, "must be ascending"),
            ({"spacing": None}, TypeError, "either spacing or extent, got neither"),
            ({"extent": ((0, 1), (0, 1))}, TypeError, "either spacing or extent, got both"),
            ({"spacing": None, "extent": ((0, 1), (1, 0))}, ValueError, "low < high"),
            ({"grid": "faces"}, ValueError, "grid must be one of nodes, cells; got 'faces'"),
            ({"dtype": int}, TypeError, "dtype must be float32, .*got int64"),
            ({"on_incompatible": "nan"}, ValueError, "on_incompatible must be one of warn"),
            ({"threads": 0}, ValueError, "threads must be in 1"),
            ({"device": "tpu"}, ValueError, "device must be 'cpu', 'cuda' or 'cuda:N'"),
        ],
    )
    def test_of_the_solver(self, change, error, text):
        given = {"shape": (8, 9), "spacing": 0.1, "boundary": 0.0} | change

        with pytest.raises(error, match=text):
            FastPoisson(**given)

    @pytest.mark.parametrize(
        ("call", "error", "text"),
        [
            ({"f": np.ones((9, 8))}, ValueError, r"f must broadcast to shape \(8, 9\)"),
            ({"f": np.ones((8, 9), complex)}, TypeError, "f is complex128, but .* float64"),
            ({"f": "one"}, TypeError, "f must be a number, an array"),
            ({"f": np.ma.ones((8, 9))}, TypeError, "plain array, got MaskedArray"),
            ({"f": lambda x, t: x}, TypeError, "got t: write lambda"),
            ({"f": 1, "boundary": {"x-": Neumann()}}, TypeError, "x- is Dirichlet in this solver"),
            ({"f": 1, "boundary": {"y-": 1.0}}, TypeError, "y- is Neumann in this solver"),
            ({"f": 1, "boundary": 1.0}, TypeError, "must be a mapping"),
            ({"f": 1, "boundary": {"z": 1.0}}, ValueError, "the sides are"),
            ({"f": 1, "out": np.ones((8, 9), "f4")}, TypeError, "out must be float64"),
            ({"f": 1, "out": np.ones((9, 9))}, ValueError, "out must have the shape"),
            ({"f": 1, "out": np.broadcast_to(1.0, (8, 9))}, ValueError, "out is read-only"),
        ],
    )
    def test_of_a_solve(self, call, error, text):
        solver = FastPoisson((8, 9), 0.1, boundary={"x": 0.0, "y": Neumann()})

        with pytest.raises(error, match=text):
            solver.solve(**call)

    def test_of_a_missing_scipy(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "scipy.fft", None)

        with pytest.raises(ModuleNotFoundError, match="scipy is not installed: pip install scipy"):
            FastPoisson((8, 9), 0.1, boundary=0.0)


def test_repr_names_shape_and_sides():
    solver = FastPoisson((8, 9), 0.1, boundary={"x": "periodic", "y-": 1, "y+": Neumann()})

    text = repr(solver)

    assert "(8, 9)" in text
    assert "x-: periodic" in text
    assert "y+: Neumann" in text


def test_missing_device_is_an_error():
    if availability.missing("cuda") is None:
        pytest.skip("there is a device")
    with pytest.raises(BackendError, match="'cuda' is not available"):
        FastPoisson((8, 9), 0.1, boundary=0.0, device="cuda")
