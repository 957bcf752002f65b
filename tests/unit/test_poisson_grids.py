"""FastPoisson on any grid: the exact solution of the equations in flux form, for random problems.

The truth is elimination with row sums in extended precision (`poisson_flux`), and, for the orders
of convergence, solutions of the differential equation. In the random problems, spacings are from
1e-8 to 1e8, neighbouring ones differ by ratios of up to 1e4, and axes begin with one cell.
"""

import itertools

import numpy as np
import poisson_flux
import pytest
from poisson_random import POWERS, check_random_problems, check_random_sides, conditions_of

from pysolvers import (
    Dirichlet,
    FastPoisson,
    Neumann,
    Robin,
    SingularSystemError,
    SingularSystemWarning,
)

pytest.importorskip("scipy")


@pytest.mark.parametrize(
    "draws", [60, pytest.param(400, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_random_problems_have_the_exact_solution(rng, draws):
    check_random_problems(rng, draws)


@pytest.mark.parametrize(
    "draws", [60, pytest.param(400, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_values_of_sides_have_the_exact_solution(rng, draws):
    """Of all kinds, numbers and arrays, of the solver or of the call, also for a batch."""
    check_random_sides(rng, draws)


def radial(power, r):
    """Return u, u' and the radial term of a smooth function without symmetry."""
    u, slope = np.cos(1.3 * r) + 0.3 * r**2, -1.3 * np.sin(1.3 * r) + 0.6 * r
    curvature = -1.69 * np.cos(1.3 * r) + 0.6
    over_r = -1.69 * np.sinc(1.3 * r / np.pi) + 0.6  # u' / r, also on the axis
    return u, slope, curvature + power * over_r


def condition(kind, u, outward, coefficient=0.7):
    """Return the condition that a function satisfies on a side."""
    if kind == "R":
        return Robin(coefficient, u + outward / coefficient)
    return Dirichlet(u) if kind == "D" else Neumann(outward)


@pytest.mark.parametrize("stretched", [False, True])
@pytest.mark.parametrize("ends", ["AD", "AN", "AR", "DR", "RN", "ND", "NR"])
@pytest.mark.parametrize("geometry", ["cartesian", "cylinder", "sphere"])
@pytest.mark.parametrize("grid", ["nodes", "cells"])
def test_radius_converges_with_second_order(grid, geometry, ends, stretched):
    if ends[0] == "A" and geometry == "cartesian":
        ends = "R" + ends[1]
    power, number, errors = POWERS[geometry], 1.5, []
    for n in (20, 40, 80):
        s = np.linspace(0, 1, n + 1)
        edges = 0.8 * np.tanh(1.5 * s) / np.tanh(1.5) if stretched else 0.8 * s
        if ends[0] != "A":
            edges = edges + 0.4
        boundary = {}
        for end, sign, normal, place in zip(
            ends, "-+", (-1, 1), (edges[0], edges[-1]), strict=True
        ):
            if end != "A":
                u, slope, _ = radial(power, place)
                boundary["x" + sign] = condition(end, u, normal * slope)
        solver = FastPoisson(
            n + (grid == "nodes"),
            edges,
            boundary=boundary,
            grid=grid,
            geometry=geometry,
            helmholtz=number,
        )
        u, _, term = radial(power, solver.x)
        errors.append(np.abs(solver.solve(term - number * u) - u).max())
    assert 1.8 < np.log2(errors[-2] / errors[-1]) < 2.3
    assert errors[-1] < 1e-3


@pytest.mark.parametrize("y", ["DD", "RN", "NR", "PP"])
@pytest.mark.parametrize("x", ["AD", "AR", "AN", "RD"])
@pytest.mark.parametrize("grid", ["nodes", "cells"])
def test_pipe_converges_with_second_order(grid, x, y):
    """u = g(r) h(z) with stretched r and z; the second axis takes lines or eigenvectors."""
    errors = []
    for n in (16, 32, 64):
        s = np.linspace(0, 1, n + 1)
        r = (0.0 if x[0] == "A" else 0.5) + np.sin(0.5 * np.pi * s)
        z = s + 0.08 * np.sin(2 * np.pi * s)
        cycles = 2 * np.pi if y == "PP" else 2.2

        def along(z, cycles=cycles):
            return np.cos(cycles * z + 0.3), -cycles * np.sin(cycles * z + 0.3)

        boundary = {}
        for end, sign, normal, place in zip(x, "-+", (-1, 1), (r[0], r[-1]), strict=True):
            if end != "A":
                u, slope, _ = radial(1, place)
                boundary["x" + sign] = (
                    condition(
                        end,
                        lambda y, u=u: u * along(y)[0],
                        lambda y, slope=slope * normal: slope * along(y)[0],
                    )
                    if end != "R"
                    else Robin(0.7, lambda y, v=u + normal * slope / 0.7: v * along(y)[0])
                )
        for end, sign, normal, place in zip(y, "-+", (-1, 1), (z[0], z[-1]), strict=True):
            h, slope = along(place)
            factor = {"D": h, "N": normal * slope, "R": h + normal * slope / 0.7, "P": 0}[end]

            def value(x, factor=factor):
                return radial(1, x)[0] * factor

            kinds = {"D": Dirichlet(value), "N": Neumann(value), "R": Robin(0.7, value)}
            boundary["y" + sign] = kinds.get(end, "periodic")
        on_nodes = grid == "nodes"
        solver = FastPoisson(
            (n + (on_nodes and y != "PP"), n + on_nodes),
            (r, z),
            boundary=boundary,
            grid=grid,
            geometry="cylinder",
            helmholtz=0.4,
        )
        u, _, term = radial(1, solver.x)
        h = along(solver.y)[0][:, None]
        f = (term - (cycles**2 + 0.4) * u) * h
        errors.append(np.abs(solver.solve(f) - u * h).max())
    assert 1.8 < np.log2(errors[-2] / errors[-1]) < 2.4
    assert errors[-1] < 4e-2


@pytest.mark.parametrize("ends", [("RR", "DN"), ("NR", "RD"), ("DR", "PP"), ("RN", "NN")])
@pytest.mark.parametrize("grid", ["nodes", "cells"])
def test_box_stretched_along_three_axes_converges_with_second_order(grid, ends):
    """u = g(x) g(y) g(z) with the conditions of g on each axis; Dirichlet along z."""
    errors = []
    for n in (8, 16, 32):
        s = np.linspace(0, 1, n + 1)
        places = {"x": s**1.3 + 0.2, "y": s + 0.06 * np.sin(2 * np.pi * s), "z": 0.5 + s + s**2}
        pairs = dict(zip("xyz", (*ends, "DD"), strict=True))
        shapes, spacing, boundary = [], [], {}
        rates = {name: 2 * np.pi if pairs[name] == "PP" else 1.1 for name in "xyz"}

        def one(name, t, rates=rates):
            return np.sin(rates[name] * t + 0.4), rates[name] * np.cos(rates[name] * t + 0.4)

        for name, edges in places.items():
            spacing.append(edges)
            shapes.insert(0, n + (grid == "nodes" and pairs[name] != "PP"))
            others = [other for other in "xyz" if other != name]
            for end, sign, normal in zip(pairs[name], "-+", (-1, 1), strict=True):
                u, slope = one(name, edges[0 if sign == "-" else -1])
                factor = {"D": u, "N": normal * slope, "R": u + normal * slope / 0.7, "P": 0}[end]
                first, second = others
                arguments = f"lambda {first}, {second}: factor * one('{first}', {first})[0]"
                function = eval(
                    f"{arguments} * one('{second}', {second})[0]", {"one": one, "factor": factor}
                )
                kinds = {"D": Dirichlet(function), "N": Neumann(function)}
                kinds |= {"R": Robin(0.7, function), "P": "periodic"}
                boundary[name + sign] = kinds[end]
        solver = FastPoisson(
            tuple(shapes), tuple(spacing), boundary=boundary, grid=grid, helmholtz=0.3
        )
        assert sorted(solver.methods.values()) == ["eigenvectors", "eigenvectors", "lines"]
        u = (
            one("x", solver.x)[0]
            * one("y", solver.y)[0][:, None]
            * one("z", solver.z)[0][:, None, None]
        )
        total = sum(rate**2 for rate in rates.values()) + 0.3
        errors.append(np.abs(solver.solve(-total * u) - u).max())
    assert 1.75 < np.log2(errors[-2] / errors[-1]) < 2.4


def test_stretched_axis_has_all_digits():
    """Ratios of 100 to 1e8: eigenvectors and lines, whose pivots are right to a few eps."""
    for ratio, ends in itertools.product((1e2, 1e4, 1e8), ("DD", "DN", "NN", "RD")):
        edges = np.concatenate([[0], np.cumsum(np.geomspace(1, ratio, 200))])
        boundary = conditions_of("x", ends, (2 / edges[-1], 0))
        number = 0.1 / edges[-1] ** 2
        options = {"boundary": boundary, "grid": "cells", "helmholtz": number}
        by_lines, by_products = (
            FastPoisson(200, edges, methods={"x": method}, **options).solve(lambda x: 1 + 0 * x)
            for method in ("lines", "eigenvectors")
        )
        error = np.abs(by_lines - by_products).max() / np.abs(by_lines).max()
        assert error < 1e-12, (ratio, ends, error)


@pytest.mark.parametrize("method", ["lines", "eigenvectors"])
@pytest.mark.parametrize("geometry", ["cylinder", "sphere"])
def test_closed_radius_has_all_digits(rng, geometry, method):
    """The rounding errors of the mean act as a source, which must not lie on the axis r = 0."""
    options = {"boundary": Neumann(), "grid": "cells", "on_incompatible": "ignore"}
    solver = FastPoisson(120, 1 / 120, geometry=geometry, methods={"x": method}, **options)
    line = poisson_flux.line("cells", "AN", np.arange(121) / 120, POWERS[geometry])
    for _ in range(3):
        f = rng.uniform(-1, 1, 120)
        error = np.abs(solver.solve(f) - poisson_flux.solution([line], f)).max()
        assert error < 20 * np.finfo(float).eps * poisson_flux.magnitude([line], f)


@pytest.mark.parametrize("ends", ["PP", "RR", "RN"])
def test_eigenvectors_of_any_number_of_unknowns(ends):
    """Nearly equal pairs of eigenvalues of periodic axes, and uniform axes with Robin sides."""
    for n in (*range(3, 40), *range(60, 131, 5)):
        s = np.linspace(0, 1, n + 1)
        edges = s + 0.05 * np.sin(2 * np.pi * s) if ends == "PP" and n % 4 else s
        boundary = conditions_of("x", ends, (1.0, 1.0))
        options = {"boundary": boundary, "grid": "cells", "helmholtz": 0.5}
        by_lines, by_products = (
            FastPoisson(n, edges, methods={"x": method}, **options).solve(lambda x: 1 + x)
            for method in ("lines", "eigenvectors")
        )
        np.testing.assert_allclose(by_products, by_lines, rtol=0, atol=1e-13)


@pytest.mark.parametrize("ends", ["NN", "PP"])
def test_null_vector_of_geometric_grids(ends):
    """Constants stay an exact null vector; the vectors of LAPACK are not orthogonal to it."""
    boundary = conditions_of("x", ends, (0, 0))
    sizes = [(1.15, n) for n in range(90, 98)] + [(1.3, n) for n in (24, 60, 110, 128)]
    for ratio, n in sizes:
        edges = np.concatenate([[0], np.cumsum(ratio ** np.arange(n))])
        options = {"boundary": boundary, "grid": "cells", "helmholtz": 1 / edges[-1] ** 2}
        by_lines, by_products = (
            FastPoisson(n, edges, methods={"x": method}, **options).solve(lambda x: 1 + 0 * x)
            for method in ("lines", "eigenvectors")
        )
        assert np.abs(by_products - by_lines).max() < 1e-14 * np.abs(by_lines).max()


@pytest.mark.parametrize("ends", ["DN", "RR", "PP"])
def test_eigenvectors_of_repeated_spacings(rng, ends):
    """Vectors that are localized in equal parts of an axis have nearly equal eigenvalues."""
    for parts, ratio in itertools.product((3, 5), (10.0, 1e3, 1e5)):
        n = 24 * parts
        edges = np.concatenate([[0], np.cumsum(np.tile(ratio ** rng.uniform(0, 1, 24), parts))])
        boundary = conditions_of("x", ends, (3 / edges[-1], 1 / edges[-1]))
        options = {"boundary": boundary, "grid": "cells", "helmholtz": 0.5 / edges[-1] ** 2}
        by_lines, by_products = (
            FastPoisson(n, edges, methods={"x": method}, **options).solve(lambda x: 1 + 0 * x)
            for method in ("lines", "eigenvectors")
        )
        assert np.abs(by_products - by_lines).max() < 1e-13 * np.abs(by_lines).max()


def test_symmetric_axes_are_halved(rng):
    """Coordinates that are symmetric up to rounding: even and odd eigenvectors."""
    for size, grid in itertools.product((2, 3, 8, 9), ("nodes", "cells")):
        if grid == "nodes" and size == 2:
            continue
        count = size + (grid == "cells")
        edges = 0.3 + np.tanh(1.5 * np.linspace(-1, 1, count))
        solver = FastPoisson(
            (4, size),
            (edges, 0.2),
            boundary={"x": 0.0, "y": Neumann()},
            grid=grid,
            methods={"x": "eigenvectors"},
        )
        u = rng.random((4, size))
        inner = slice(None) if grid == "cells" else slice(1, -1)
        found = solver.solve(solver.apply(u))[:, inner]
        np.testing.assert_allclose(found, u[:, inner], rtol=0, atol=1e-13)


class TestBatch:
    """Leading axes of f are right sides that are solved together."""

    @pytest.mark.parametrize("dtype", ["float32", "complex128"])
    @pytest.mark.parametrize(
        ("shape", "options"),
        [
            ((5, 70), {"boundary": 0.0}),
            ((90, 6), {"boundary": {"x": 0.5, "y": "periodic"}}),
            ((7, 8), {"boundary": Neumann(), "grid": "cells"}),
            ((4, 3, 90), {"boundary": {"x": 1.0, "y": "periodic", "z": Neumann(0.3)}}),
            ((90, 5, 4), {"boundary": {"x": "periodic", "y": "periodic", "z": Robin(0.4, 1.0)}}),
            ((9,), {"boundary": {"x-": 1.0, "x+": Robin(2.0, 0.5)}}),
        ],
    )
    def test_is_that_of_single_calls(self, rng, monkeypatch, shape, options, dtype):
        monkeypatch.setattr("pysolvers.poisson._host._IN_CACHE", 1 << 13)  # several parts
        solver = FastPoisson(shape, 0.3, dtype=dtype, on_incompatible="ignore", **options)
        f = rng.uniform(-1, 1, (2, 3, *shape)).astype(dtype)
        expected = np.stack([[solver.solve(one) for one in row] for row in f])
        most = 20 * np.finfo(dtype).eps * np.abs(expected).max()

        for given in (f, np.asfortranarray(f), f[::-1, ::-1].copy()[::-1, ::-1]):
            np.testing.assert_allclose(solver.solve(given), expected, rtol=0, atol=most)
        out = np.empty((3, *shape, 2), dtype)[..., 0]
        assert solver.solve(f[0], out=out) is out
        np.testing.assert_allclose(out, expected[0], rtol=0, atol=most)
        assert solver.solve(f[:0]).shape == (0, 3, *shape)
        applied = solver.apply(expected)
        for k in range(3):
            np.testing.assert_array_equal(applied[1, k], solver.apply(expected[1, k]))

    def test_values_of_sides_can_have_its_axes(self, rng):
        solver = FastPoisson((6, 5), 0.2, boundary={"x": 0.0, "y-": Neumann(), "y+": 1.0})
        f, left, flux = rng.random((2, 3, 6, 5)), rng.random((3, 6)), rng.random((2, 1, 5))
        u = solver.solve(f, boundary={"x-": left, "y-": Neumann(flux)})
        for j, k in np.ndindex(2, 3):
            one = solver.solve(f[j, k], boundary={"x-": left[k], "y-": Neumann(flux[j, 0])})
            np.testing.assert_allclose(u[j, k], one, rtol=0, atol=1e-14)
        with pytest.raises(ValueError, match=r"boundary x-: the leading axes .* those of f, \(2,"):
            solver.solve(f[:, 0], boundary={"x-": rng.random((3, 6))})

    def test_bits_do_not_depend_on_the_number_of_threads(self, rng):
        f = rng.random((40, 65, 65))
        results = [FastPoisson((65, 65), 0.1, boundary=0.0, threads=n).solve(f) for n in (1, 2, 3)]
        np.testing.assert_array_equal(results[1], results[0])
        np.testing.assert_array_equal(results[2], results[0])


class TestHelmholtz:
    """The number c of A u - c u = f."""

    @pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
    @pytest.mark.parametrize("ends", ["DD", "NN", "PP", "RN"])
    def test_negative_numbers_agree_with_a_dense_matrix(self, rng, ends, dtype):
        edges = np.cumsum(rng.uniform(0.2, 0.6, 7))
        rows = [
            poisson_flux.line("cells", pair, e, 0, (0.5, 0))
            for pair, e in (("DN", np.arange(6) * 0.3), (ends, edges))
        ]
        weights, losses = poisson_flux.assembled(rows)
        matrix = np.asarray(weights - np.diag(losses + weights.sum(1)), float)
        eigenvalues = np.sort(np.linalg.eigvals(matrix).real)
        boundary = conditions_of("x", ends, (0.5, 0)) | {"y-": 0.0, "y+": Neumann()}
        for k in (3, 20):
            number = float(eigenvalues[-k - 1 : -k + 1].mean())
            solver = FastPoisson(
                (5, 6), (edges, 0.3), boundary=boundary, grid="cells", dtype=dtype, helmholtz=number
            )
            f = rng.uniform(-1, 1, (5, 6)).astype(dtype)
            expected = np.linalg.solve(matrix - number * np.eye(30), f.ravel()).reshape(5, 6)
            distance = np.abs(eigenvalues - number).min()
            assert solver.eigenvalue_distance == pytest.approx(distance, rel=1e-10)
            most = 50 * np.finfo(dtype).eps * np.abs(eigenvalues).max() / distance
            size = np.abs(expected).max()
            np.testing.assert_allclose(solver.solve(f), expected, rtol=0, atol=most * size)
            assert "lines" not in solver.methods.values()

    def test_eigenvalues_are_errors_and_near_ones_warnings(self):
        x = np.linspace(0, 1, 9) ** 1.5
        options = {"boundary": 0.0, "grid": "cells"}
        plain = FastPoisson(8, x, methods={"x": "eigenvectors"}, **options)
        eigenvalue = -plain.eigenvalue_distance
        with pytest.raises(SingularSystemError, match=r"is at a distance of .* no unique solution"):
            FastPoisson(8, x, helmholtz=eigenvalue, **options)
        with pytest.warns(SingularSystemWarning, match="rounding errors grow by"):
            solver = FastPoisson(8, x, helmholtz=eigenvalue * (1 + 1e-9), **options)
        assert solver.eigenvalue_distance == pytest.approx(-eigenvalue * 1e-9, rel=1e-4)

    def test_distance_to_zero_modes(self):
        closed = FastPoisson((4, 5), 0.2, boundary=Neumann())
        assert closed.is_singular and closed.eigenvalue_distance == 0
        screened = FastPoisson((4, 5), 0.2, boundary=Neumann(), helmholtz=2.0)
        assert not screened.is_singular and screened.eigenvalue_distance == 2.0
        np.testing.assert_allclose(screened.solve(4.0), -2.0, rtol=1e-14)
        tiny = FastPoisson((4, 50), (1e-3, 1.0), boundary="periodic", helmholtz=1e-9)
        np.testing.assert_allclose(tiny.solve(1.0), -1e9, rtol=1e-13)


class TestMethods:
    """Which axis is solved how."""

    def test_choice(self):
        x, y = np.linspace(0, 1, 257) ** 2, np.linspace(0, 1, 129) ** 2
        two = FastPoisson((128, 256), (x, y), boundary=0.0, grid="cells")
        assert two.methods == {"x": "lines", "y": "eigenvectors"}
        assert "x: lines, y: eigenvectors" in repr(two)
        one = FastPoisson((256, 128), (1 / 128, x), boundary=0.0, grid="cells")
        assert one.methods == {"x": "transform", "y": "lines"}
        even = FastPoisson((256, 256), 0.1, boundary=0.0)
        assert even.methods == {"x": "transform", "y": "lines"}
        fine = FastPoisson((256, 256), (1.0, 0.1), boundary=0.0)
        assert fine.methods == {"x": "lines", "y": "transform"}
        short = FastPoisson((64, 64), 0.1, boundary=0.0)
        assert short.methods == {"x": "lines", "y": "eigenvectors"}
        box = FastPoisson((9, 9, 130), 0.1, boundary="periodic", on_incompatible="ignore")
        assert box.methods == {"x": "transform", "y": "transform", "z": "lines"}
        equal = FastPoisson((256, 256), (np.linspace(0, 1, 256), 0.1), boundary=0.0)
        assert equal.methods == even.methods
        low = FastPoisson((256, 256), 0.1, boundary=0.0, helmholtz=-1.0)
        assert set(low.methods.values()) == {"transform"}
        assert "helmholtz=-1" in repr(low) and repr(low).count("\n") < 6

    @pytest.mark.parametrize(
        ("change", "error", "text"),
        [
            ({"methods": "lines"}, TypeError, "methods must be a mapping"),
            ({"methods": {"z": "lines"}}, ValueError, "methods: the axes are x, y, got 'z'"),
            ({"methods": {"x": "fft"}}, ValueError, "one of transform, eigenvectors, lines"),
            ({"methods": {"x": "lines", "y": "lines"}}, ValueError, "at most one axis"),
            ({"methods": {"x": "lines"}, "helmholtz": -1.0}, ValueError, "lines need helmholtz >="),
            ({"methods": {"x": "transform"}, "boundary": Robin(1.0)}, ValueError, "only uniform"),
            ({"helmholtz": np.nan}, ValueError, "helmholtz must be finite"),
            ({"geometry": "torus"}, ValueError, "geometry must be one of cartesian, cyl"),
            ({"geometry": "sphere"}, ValueError, r"'sphere': shape must have 1 axis, r"),
            (
                {"geometry": "cylinder", "boundary": {"x-": 0.0, "x+": 0.0, "y": 0.0}},
                ValueError,
                "the axis r = 0 is no side and needs no condition, got 0.0: leave out x-",
            ),
            (
                {"geometry": "cylinder", "spacing": None, "extent": ((-1, 1), (0, 1))},
                ValueError,
                "x is the radius, and must start from 0 on, got -1",
            ),
            ({"geometry": "cylinder", "boundary": "periodic"}, ValueError, "both sides along x"),
            ({"boundary": Robin(np.ones(3))}, TypeError, "coefficient of Robin must be"),
            ({"boundary": Robin(1e308)}, ValueError, "coefficient of Robin must be in the range"),
        ],
    )
    def test_messages(self, change, error, text):
        with pytest.raises(error, match=text):
            FastPoisson(**{"shape": (8, 9), "spacing": 0.1, "boundary": 0.0} | change)

    def test_coefficient_of_robin_belongs_to_the_solver(self):
        solver = FastPoisson(8, 0.1, boundary={"x-": Robin(2.0, 1.0), "x+": 0.0})
        changed = solver.solve(0.0, boundary={"x-": Robin(2.0, 3.0)})
        np.testing.assert_allclose(changed, 3 * solver.solve(0.0), rtol=1e-13)
        with pytest.raises(ValueError, match="coefficient of Robin is 2 in this solver"):
            solver.solve(0.0, boundary={"x-": Robin(1.0)})
