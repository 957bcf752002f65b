"""`FastPoisson` of JAX and PyTorch: the numbers of `pysolvers.FastPoisson`, and gradients."""

import functools

import numpy as np
import poisson_reference
import pytest
from array_libraries import IGNORED, check_derivatives, close, converted
from covering import slow

import pysolvers
from pysolvers import Neumann, Robin

pytest.importorskip("scipy")
pytestmark = IGNORED

ENDS = ("DD", "DN", "ND", "NN", "PP")
STRETCHED = [0.0, 0.1, 0.3, 0.4, 0.8, 1.1]
# Kinds of the sides along y and x, each kind along each axis; singular ones are the last three.
PAIRS = [
    ("DD", "NN"),
    ("NN", "DN"),
    ("DN", "ND"),
    ("ND", "PP"),
    ("PP", "DD"),
    ("NN", "NN"),
    ("NN", "PP"),
    ("PP", "PP"),
]
# Kinds, shape, and coordinates along x where the grid is stretched.
GRIDS = {
    "given values": (("DD", "DD"), (5, 6), None),
    "periodic": (("PP", "PP"), (4, 5), None),
    "stretched": (("DN", "NN"), (4, 5), STRETCHED),
    "stretched, all Neumann": (("NN", "PP"), (4, 5), STRETCHED),
    "line": (("ND",), (6,), None),
    "box": (("DN", "NN", "PP"), (3, 4, 5), None),
}


def solver_of(library, shape, spacing, boundary, grid="nodes"):
    """Return a solver of the library, for a boundary with arrays of NumPy."""
    boundary = converted(library, boundary)
    return library.functions.FastPoisson(shape, spacing, boundary=boundary, grid=grid)


@pytest.fixture
def make(differentiable):
    return functools.partial(solver_of, differentiable)


def spacing_of(edges, shape, grid):
    steps = [0.2, 0.3, 0.4][: len(shape)]
    return steps if edges is None else [edges[: shape[-1] + (grid == "cells")], *steps[1:]]


def on_host(shape, spacing, boundary, **options):
    return pysolvers.FastPoisson(
        shape, spacing, boundary=boundary, on_incompatible="ignore", **options
    )


@pytest.mark.parametrize("grid", ["nodes", "cells"])
@pytest.mark.parametrize("ends", ENDS)
def test_sides_of_all_kinds(differentiable, make, rng, grid, ends):
    """The axes are solved for one after the other: the pairs are those of singular systems."""
    for others in (other for other, own in PAIRS if own == ends):
        boundary = poisson_reference.conditions((others, ends), (6, 7), rng.random)
        f = rng.random((6, 7))
        host = on_host((6, 7), (0.1, 0.2), boundary, grid=grid)

        solver = make((6, 7), (0.1, 0.2), boundary, grid)
        u = differentiable.jit(solver.solve)(differentiable.array(f))

        assert solver.is_singular == host.is_singular == ({ends, others} <= {"NN", "PP"})
        close(differentiable, u, host.solve(f))


@pytest.mark.parametrize(
    ("ends", "grid", "dtype"),
    [
        ("DD", "nodes", np.float64),
        ("DN", "cells", np.complex128),
        slow("ND", "nodes", np.float32),
        ("NN", "cells", np.float64),
        ("PP", "nodes", np.complex128),
    ],
)
def test_transforms_along_the_first_axes(everywhere, rng, ends, grid, dtype):
    """Both axes that are not lines; the size alone would choose products for them."""
    shape, step = (3, 6, 7), (0.1, 0.2, 0.3)
    boundary = poisson_reference.conditions(("NN", ends, "PP"), shape, lambda sizes: 0.5)
    f = rng.random(shape).astype(dtype)
    options = {"grid": grid, "methods": {"x": "transform", "y": "transform", "z": "lines"}}
    host = on_host(shape, step, boundary, dtype=dtype, **options)
    solver = everywhere.functions.FastPoisson(shape, step, boundary=boundary, **options)

    u = everywhere.jit(solver.solve)(everywhere.array(f))

    assert everywhere.dtype(u) == dtype
    close(everywhere, u, host.solve(f))


@pytest.mark.parametrize(
    ("case", "dtype"),
    [
        ("line", np.float64),
        ("box", np.float64),
        ("stretched", np.complex128),
        ("stretched, all Neumann", np.float32),
        *(slow(case, np.float64) for case in GRIDS if case not in ("line", "box")),
        *(slow(case, np.complex128) for case in GRIDS if case != "stretched"),
        *(slow(case, np.float32) for case in GRIDS if case != "stretched, all Neumann"),
    ],
)
def test_grids_and_types(everywhere, rng, case, dtype):
    kinds, shape, edges = GRIDS[case]
    real = np.zeros(1, dtype).real.dtype
    for grid in ("nodes", "cells"):
        f = rng.random(shape).astype(dtype)
        spacing = spacing_of(edges, shape, grid)
        boundary = poisson_reference.conditions(
            kinds, shape, lambda sizes: rng.random(sizes).astype(real)
        )
        host = on_host(shape, spacing, boundary, grid=grid, dtype=dtype)

        solve = everywhere.jit(solver_of(everywhere, shape, spacing, boundary, grid).solve)
        u = solve(everywhere.array(f))

        assert everywhere.dtype(u) == dtype
        close(everywhere, u, host.solve(f))


@pytest.mark.parametrize("grid", ["nodes", slow("cells")])
@pytest.mark.parametrize(  # each kind once, of them the singular pairs
    ("others", "ends"), [*map(slow, *zip(*PAIRS[::2], strict=True)), *PAIRS[1::2]]
)
def test_the_jacobian_is_the_inverse_of_a_dense_matrix(
    differentiable, make, rng, others, ends, grid
):
    shape = 4, 5
    edges = [np.arange(size + 1.0) * step for size, step in zip(shape, (0.3, 0.2), strict=True)]
    for k, pair in enumerate((others, ends)):
        if grid == "nodes" and pair != "PP":
            edges[k] = edges[k][:-1]
    kinds = {"D": 0.0, "N": Neumann(), "P": "periodic"}
    sides = {"x-": ends[0], "x+": ends[1], "y-": others[0], "y+": others[1]}
    solver = make(shape, (0.2, 0.3), {k: kinds[v] for k, v in sides.items()}, grid)
    units = np.eye(20).reshape(20, *shape)

    rows = differentiable.vmap(
        differentiable.gradient_of(lambda f, unit: (unit * solver.solve(f)).sum()), (None, 0)
    )(*converted(differentiable, (rng.random(shape), units)))

    columns = [poisson_reference.solve(grid, [others, ends], edges, one, {})[0] for one in units]
    dense = np.nan_to_num(np.stack([one.ravel() for one in columns], 1))
    jacobian = differentiable.get(rows).reshape(20, 20)
    np.testing.assert_allclose(jacobian, dense, rtol=0, atol=1e-12 * np.abs(dense).max())


@pytest.mark.parametrize(
    ("case", "grid"),
    [
        ("stretched", "cells"),
        ("stretched, all Neumann", "nodes"),
        *(slow(case, grid) for case in GRIDS for grid in ("nodes", "cells")),
    ],
)
def test_derivatives_of_both_orders(everywhere, rng, case, grid):
    kinds, shape, edges = GRIDS[case]
    boundary = poisson_reference.conditions(kinds, shape, lambda sizes: 0.5)
    solver = solver_of(everywhere, shape, spacing_of(edges, shape, grid), boundary, grid)
    side = next((s for s in ("x-", "y+") if boundary.get(s, "periodic") != "periodic"), None)
    sizes = {"x-": shape[:-1], "y+": (*shape[:-2], shape[-1])}
    weight = everywhere.array(rng.random(shape))

    def loss(f, *values):
        is_flux = side is not None and isinstance(boundary[side], Neumann)
        new = {side: Neumann(values[0]) if is_flux else values[0]} if values else None
        return (weight * solver.solve(f, boundary=new) ** 3).sum()

    arguments = [rng.random(shape), *([] if side is None else [rng.random(sizes[side])])]
    check_derivatives(everywhere, loss, arguments, rng, rtol=1e-5)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("boundary", [Neumann(), {"x": "periodic", "y": Neumann()}])
def test_thin_cells_along_the_lines(differentiable, make, boundary, dtype):
    """A long wave along y: its eigenvalue must not be lost in 1 / spacing^2 of x."""
    size, faces = 64, np.concatenate([[0], np.cumsum(np.geomspace(1, 200, 60))])
    for rows, spacing, step in ((60, faces, 1e3), (32, 1.0, 1e4), (32, 1e-4, 1e4), (32, 1.0, 1.0)):
        theta = np.pi / size
        eigenvalue = -((2 / step * np.sin(theta / 2)) ** 2)
        wave = np.cos(theta * (np.arange(size) + 0.5))[:, None] * np.ones(rows)
        solver = make((size, rows), (spacing, step), boundary, "cells")
        solve = differentiable.jit(solver.solve)
        u = differentiable.get(solve(differentiable.array(wave.astype(dtype))))
        assert u.dtype == dtype
        assert np.abs(u * eigenvalue - wave).max() <= 20 * np.finfo(dtype).eps


@pytest.mark.parametrize("grid", ["nodes", "cells"])
def test_gradients_of_thin_lines_in_single_precision(differentiable, make, rng, grid):
    """The gradient of g . S f is S^T g = v S (g / v), which the host solves in double precision."""
    shape, steps = (12, 20), (1e-3, 1.0)
    for boundary in (Neumann(), {"x-": Neumann(), "x+": 0.0, "y": Neumann()}):
        solver = make(shape, steps, boundary, grid)
        wave = np.cos(np.pi * (np.arange(12) + 0.5) / 12)[:, None] * (1 + 0.1 * rng.random(shape))
        wave = wave.astype(np.float32)
        g = differentiable.array(wave)
        _, (found,) = differentiable.value_and_grad(
            lambda f, g=g, solver=solver: (g * solver.solve(f)).sum()
        )(0 * g)
        volumes = np.ones(shape)
        if grid == "nodes":
            volumes[[0, -1]] /= 2
            volumes[:, [0, -1]] /= 2
        desired = volumes * on_host(shape, steps, boundary, grid=grid).solve(wave / volumes)
        assert differentiable.dtype(found) == np.float32
        most = 2e-5 * np.abs(desired).max()
        np.testing.assert_allclose(differentiable.get(found), desired, rtol=0, atol=most)


Y = np.linspace(0, 1, 6) ** 2
# Shape, spacing and further arguments of problems with eigenvectors, a term in u, Robin sides, a
# radius, or no lines.
GENERAL = {
    "two stretched axes": (
        (5, 6),
        (STRETCHED, Y[:5]),
        {"boundary": {"x": 1.0, "y-": Neumann(0.3), "y+": Robin(2.0, 0.5)}, "helmholtz": 0.7},
    ),
    "all Neumann": (
        (5, 6),
        ([*STRETCHED, 1.2], Y),
        {"boundary": Neumann(), "grid": "cells", "methods": {"x": "eigenvectors"}},
    ),
    "pipe": (
        (5, 6),
        ([*STRETCHED, 1.2], 0.2),
        {"boundary": {"x+": 1.0, "y": "periodic"}, "grid": "cells", "geometry": "cylinder"},
    ),
    "without lines": (
        (4, 5),
        (0.3, Y[:4]),
        {"boundary": {"x": "periodic", "y": Robin(1.5, 0.2)}, "helmholtz": -7.0},
    ),
    "sphere": ((6,), 0.2, {"boundary": Robin(0.8, 1.0), "geometry": "sphere"}),
}


def general(library, case):
    """Return a solver of the library, and that of NumPy."""
    shape, spacing, options = GENERAL[case]
    if isinstance(spacing, tuple):
        spacing = tuple(np.asarray(step) if np.ndim(step) else step for step in spacing)
    solver = library.functions.FastPoisson(shape, spacing, **options)
    return solver, pysolvers.FastPoisson(shape, spacing, on_incompatible="ignore", **options)


@pytest.mark.parametrize("case", GENERAL)
def test_general_grids_and_batches(differentiable, rng, case):
    solver, host = general(differentiable, case)
    f = rng.random((2, 3, *host.shape))
    u = differentiable.jit(solver.solve)(differentiable.array(f))
    assert solver.is_singular == host.is_singular
    close(differentiable, u, host.solve(f))
    with pytest.raises(ValueError, match="f must broadcast to shape"):
        solver.solve(differentiable.array(f[..., :-1]))


@pytest.mark.parametrize("case", GENERAL)
def test_derivatives_of_general_grids(differentiable, rng, case):
    solver, host = general(differentiable, case)
    weight = differentiable.array(rng.random(host.shape))
    arguments = [rng.random(host.shape)]
    if case in ("two stretched axes", "without lines", "pipe"):
        arguments.append(np.array(host.helmholtz + 0.4))

    def loss(f, *number):
        options = {"helmholtz": number[0]} if number else {}
        return (weight * solver.solve(f, **options) ** 3).sum()

    orders = 2 if case in ("two stretched axes", "pipe") else 1  # a second for each second order
    check_derivatives(differentiable, loss, arguments, rng, rtol=1e-5, orders=orders)


def test_number_of_a_call(differentiable, rng):
    shape, spacing, options = GENERAL["two stretched axes"]
    solver, _ = general(differentiable, "two stretched axes")
    f = rng.random(shape)
    other = pysolvers.FastPoisson(shape, spacing, **options | {"helmholtz": 1.3})
    number = differentiable.array(np.array(1.3))
    u = differentiable.jit(lambda f, c: solver.solve(f, helmholtz=c))(
        differentiable.array(f), number
    )
    close(differentiable, u, other.solve(f))
    with pytest.raises(ValueError, match="helmholtz must be an array without axes"):
        solver.solve(differentiable.array(f), helmholtz=differentiable.array(np.ones(3)))
    together = differentiable.vmap(lambda c: solver.solve(differentiable.array(f), helmholtz=c))(
        differentiable.array(np.array([1.3, 0.7]))
    )
    close(differentiable, together[0], other.solve(f))


def test_spacings_out_of_the_range_of_the_dtype(differentiable, make):
    solver = make(8, 1e-25, 0.0)
    ones = np.ones(8)
    assert np.isfinite(differentiable.get(solver.solve(differentiable.array(ones)))).all()
    with pytest.raises(ValueError, match=r"spacing along x must be at least .* in float32"):
        solver.solve(differentiable.array(ones.astype(np.float32)))
    with pytest.raises(ValueError, match=r"spacing along x must be at least .* in float64"):
        make(8, 1e-200, 0.0)


def test_fields_and_values_broadcast(differentiable, make, rng):
    solver = make((4, 5), 0.2, {"x-": np.array(0.5), "x+": 0.0, "y": Neumann(0.1)})
    f, flux = rng.random(5), rng.random(1)
    wide = np.broadcast_to(f, (4, 5)).copy(), np.broadcast_to(flux, 5).copy()

    solve = differentiable.jit(lambda f, v: solver.solve(f, boundary={"y-": Neumann(v)}))
    small, full = (solve(*map(differentiable.array, given)) for given in ((f, flux), wide))

    close(differentiable, small, differentiable.get(full), 10)


def test_batches_by_vmap(everywhere, rng):
    solver = solver_of(everywhere, (4, 5), 0.2, {"x-": 0.0, "x+": Neumann(), "y": "periodic"})
    f, value = rng.random((4, 3, 5)), rng.random((3, 4))

    def solve(f, value):
        return solver.solve(f, boundary={"x-": value})

    def slope(f, value):
        return everywhere.gradient_of(lambda v: (solve(f, v) ** 3).sum())(value)

    for fields, values, axes in ((f[:, 0], value, (None, 0)), (f, value, (1, 0))):
        fields, values = converted(everywhere, (fields.copy(), values))
        for function in (solve, slope):
            together = everywhere.vmap(function, axes)(fields, values)
            alone = everywhere.jit(function)
            for k in range(3):
                one = fields[:, k] if axes[0] == 1 else fields
                expected = alone(one, values[k] if axes[1] == 0 else values)
                close(everywhere, together[k], everywhere.get(expected), 100)


@pytest.mark.parametrize("differentiable", ["torch"], indirect=True)
def test_compiled_without_graph_breaks(differentiable, make, rng):
    solver = make((4, 5), 0.2, {"x": 0.0, "y-": Neumann(0.3), "y+": 1.0})

    def loss(f, value):
        return (solver.solve(f, boundary={"x-": value}) ** 3).sum()

    given = converted(differentiable, (rng.random((4, 5)), rng.random(4)))
    found = differentiable.value_and_grad(differentiable.compiled(loss), 2)(*given)[1]
    expected = differentiable.value_and_grad(loss, 2)(*given)[1]
    for one, other in zip(found, expected, strict=True):
        close(differentiable, one, differentiable.get(other))


def test_types_promote(differentiable, make):
    f = differentiable.array(np.ones(5, np.float32))
    for boundary, dtype in ((1.0, np.float32), (1j, np.complex64), (np.array(1.0), np.float64)):
        solve = differentiable.jit(make(5, 0.1, boundary).solve)
        assert differentiable.dtype(solve(f)) == dtype
    whole = differentiable.array(np.ones(5, np.int64))
    assert differentiable.dtype(make(5, 0.1, 0.0).solve(whole)) == np.float64


def test_errors_name_the_rule(differentiable, make):
    ones, many = (differentiable.array(np.ones(shape)) for shape in (5, (2, 4)))
    with pytest.raises(TypeError, match="boundary x- must be a number or an array"):
        make(5, 0.1, lambda x: x)
    with pytest.raises(ValueError, match=r"boundary y- must broadcast to shape \(5,\), got"):
        make((4, 5), 0.1, {"x": 0.0, "y": np.ones(4)})
    solver = make(5, 0.1, 0.0)
    with pytest.raises(TypeError, match="x- is Dirichlet in this solver"):
        solver.solve(ones, boundary={"x-": Neumann()})
    with pytest.raises(ValueError, match=r"f must broadcast to shape \(5,\), got shape \(4,\)"):
        solver.solve(many)


@pytest.mark.parametrize("differentiable", ["jax"], indirect=True)
def test_jax_takes_numbers(differentiable, make):
    solver = make(5, 0.1, 0.0)
    with pytest.raises(TypeError, match="f must be a number or an array, not a function"):
        solver.solve(lambda x: x)
    assert differentiable.dtype(solver.solve(1)) == np.float64
