"""Every kernel once at small size: what compute-sanitizer runs, and quick enough for it.

NumPy arrays go in, so that no other library's kernels are looked at. racecheck takes about 1 ms for
a launch and much longer for a block that reads shared memory often, as long systems let it: a shape
is the smallest one that reaches its kernels (tools/launched_kernels.py says which these are).
"""

import itertools

import availability
import growth_families
import numpy as np
import oracle
import pytest
from poisson_pairs import set_least_in_parts

import pysolvers
from pysolvers import (
    CubicSpline,
    FastPoisson,
    Neumann,
    RedBlackSOR,
    SteadyConvectionDiffusion,
)
from pysolvers.flow import LidDrivenCavity, StaggeredCavity
from pysolvers.papers import gceidd2022, lmsor2012, pta2020, survey2014, wei2013
from pysolvers.papers.gceidd2022 import heated_channel, rotating_pulse

# Both backends make the same steps, also those that are too large for the solution in time.
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore:HeatADI.*too large for the solution:RuntimeWarning"),
]

METHODS = ("auto", "thomas", "cr", "pcr", "cr-pcr", "pcr-thomas", "partition", "pivoted")
# Short systems, several of them a block, whole and broken tiles, what exceeds a block or a cluster.
ROWS = (1, 2, 5, 32, 33, 100, 1022, 9000)
SYSTEMS = 5
BOTH = ("cuda", "cpu")
DTYPES = ("float32", "float64", "complex64", "complex128")


@pytest.fixture(autouse=True)
def device(pytestconfig):
    """Skip where there is no device, unless one is required."""
    reason = availability.missing("cuda")
    if reason and "cuda" not in availability.required(pytestconfig):
        pytest.skip(reason)


def batch(make, rng, rows, axis, dtype=np.float64):
    """Return lower, diag, upper, rhs with the systems along `axis` of two."""
    operands = make(rng, (SYSTEMS, rows), dtype)
    return operands if axis else tuple(np.ascontiguousarray(a.T) for a in operands)


def of_clusters(dtype):
    """Rows along the first axis that a cluster of blocks has, and one block has not.

    Columns of up to 8192 rows (4096 of complex128) are the same kernel.
    """
    return 3200 // np.dtype(dtype).itemsize


def by_tiles(operands):
    """Return operands along the first axis whose rows are contiguous in `lower` alone.

    Tiles take such systems at any length; of others they take those that columns do not hold.
    """
    return np.asfortranarray(operands[0]), *operands[1:]


def check(operands, x, axis, most=100, **options):
    """Hold a solution to a backward error in eps; reductions leave more than elimination."""
    *matrix, rhs, x = (np.moveaxis(a, axis, -1) for a in (*operands, x))
    assert oracle.backward_error(*matrix, rhs, x, **options) < most * oracle.eps(x.dtype)


def rows_of(method, dtype, axis):
    """Return the rows of all kernels of a method."""
    *short, _, _ = ROWS
    if method not in ("auto", "partition"):  # more than a block of cyclic reduction holds
        return (*short, 1022, 36_000 // np.dtype(dtype).itemsize)
    return ROWS if axis else (*short, of_clusters(dtype))


def of_methods():
    """Yield method, dtype, axis and whether the systems are periodic.

    Kernels of `METHODS` that do not depend on the last one take it as a number: they have open
    systems of some types and layouts and periodic ones of the others. "auto" has the kernels of
    "partition", with the other ones.
    """
    for (k, method), (m, dtype), axis in itertools.product(
        enumerate(METHODS), enumerate(DTYPES), (0, 1)
    ):
        for periodic in (False, True):
            in_turn = k + m + axis if method != "partition" else m + axis + 1
            if method in ("thomas", "pivoted") or in_turn % 2 == periodic:
                yield method, dtype, axis, periodic


@pytest.mark.parametrize(("method", "dtype", "axis", "periodic"), [*of_methods()])
def test_method(rng, method, dtype, axis, periodic):
    options = {"axis": axis, "periodic": periodic, "method": method, "device": "cuda"}
    for rows in rows_of(method, dtype, axis):
        operands = batch(oracle.dominant, rng, rows, axis, dtype)

        x = pysolvers.solve_tridiagonal(*operands, **options)

        check(operands, x, axis, periodic=periodic)

    for rows in (33, 300) if method in ("auto", "partition") and axis == 0 else ():
        operands = by_tiles(batch(oracle.dominant, rng, rows, axis, dtype))

        x = pysolvers.solve_tridiagonal(*operands, **options)

        check(operands, x, axis, periodic=periodic)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_short_off_diagonals(rng, dtype, axis):
    for rows in (*ROWS[1:-2], 1022 if axis else of_clusters(dtype)):
        lower, diag, upper, rhs = batch(oracle.dominant, rng, rows, axis, dtype)
        below = np.delete(lower, 0, axis)
        above = np.delete(upper, -1, axis)

        x = pysolvers.solve_tridiagonal(below, diag, above, rhs, axis=axis, device="cuda")

        check((lower, diag, upper, rhs), x, axis)


# Aligned rows and others: parts of a warp, blocks and clusters of tiles and of columns, parts.
STEP_BATCHES = ((5, 1), (8, 16), (5, 33), (8, 100), (8, 1024), (5, 9000))


def of_steps(rng, dtype, batches=STEP_BATCHES):
    """Yield matrices of decaying equations, u and a source, systems along the last axis."""
    for shape in batches:
        lower, _, upper, u = oracle.dominant(rng, shape, dtype)
        diag = np.asarray(-1 - np.abs(lower) - np.abs(upper), dtype)
        yield lower, diag, upper, u, oracle.uniform(rng, shape, dtype)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_products(rng, dtype, axis):
    for *system, b in of_steps(rng, dtype):
        for shared in (False, True):
            own = [a[:1] if shared and k < 3 else a for k, a in enumerate((*system, b))]
            arrays = [np.ascontiguousarray(a if axis else a.T) for a in own]
            for extended in (False, True):
                r = pysolvers.residual(*arrays, extended=extended, axis=axis, device="cuda")

                truth = own[4] - oracle.multiply(*own[:4])
                np.testing.assert_allclose(r if axis else r.T, truth, atol=60 * oracle.eps(dtype))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["plain", "source", "mask", "marks", "factor"])
def test_steps(rng, kind, dtype, axis):
    batches = STEP_BATCHES
    if axis == 0:
        *short, _, longest = STEP_BATCHES
        # Factors of real numbers have columns in the memory order of their own.
        keeps_order = kind == "factor" and dtype.startswith("float")
        last = longest if keeps_order else (SYSTEMS, 300)
        batches = (*short, (8, of_clusters(dtype)), last)
    for lower, diag, upper, u, source in of_steps(rng, dtype, batches):
        given = {"source": source} if kind in ("source", "factor") else {}
        if kind == "mask":
            given["where"] = rng.random(u.shape) < 0.8
        if kind == "marks":
            diag[::2] = -0.5
        operands = (lower, diag, upper, u, *given.values())
        arrays = [np.ascontiguousarray(a if axis else a.T) for a in operands]
        if axis == 0 and u.shape[1] == 300:
            arrays = by_tiles(arrays)
        options = dict(zip(given, arrays[4:], strict=True))
        answers = []
        for device in BOTH:
            how = {"dt": 0.3, "axis": axis, "device": device}
            if kind == "factor":
                factor = pysolvers.factor_theta(*arrays[:3], rows=u.shape[1], **how)
                answers.append(factor.step(arrays[3], arrays[4]))
            else:
                how["pivot"] = None if kind == "marks" else False
                answers.append(pysolvers.theta_step(*arrays[:4], **how, **options))

        np.testing.assert_allclose(*answers, rtol=0, atol=2000 * oracle.eps(dtype))


@pytest.mark.parametrize("axis", [0, 1])
def test_kept_factors_with_a_mask(rng, axis):
    for lower, diag, upper, u, _ in of_steps(rng, "float64"):
        where = rng.random(u.shape) < 0.8
        operands = (lower, diag, upper, where, u)
        *matrix, mask, rhs = (np.ascontiguousarray(a if axis else a.T) for a in operands)

        x, expected = (
            pysolvers.factor_tridiagonal(*matrix, axis=axis, where=mask, device=device).solve(rhs)
            for device in BOTH
        )

        np.testing.assert_allclose(x, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES[:2])
@pytest.mark.parametrize("masked", [False, True])
def test_diffusion_between_layers(rng, masked, dtype, axis):
    for systems, rows in STEP_BATCHES[1:]:
        T, d, s = rng.random((3, systems, rows)).astype(dtype)
        K = rng.random((systems, rows + 1)).astype(dtype)
        where = np.arange(rows) < rng.integers(1, rows, (systems, 1))
        arrays = (T, K[:, 1:-1] if masked else K, 0.5 + d, s, where)
        T, K, d, s, mask = (np.ascontiguousarray(a if axis else a.T) for a in arrays)
        if masked:  # one thickness
            d, options = 1.0, {"where": mask, "flux_last": 0.1}
        else:
            options = {"value_first": 0.5, "flux_last": 0.1, "theta": 0.5}
        if not axis:  # along contiguous layers a source has a pass of its own
            options["source"] = s
        answers = [
            pysolvers.implicit_diffusion(T, K, d, 0.3, axis=axis, device=device, **options)
            for device in BOTH
        ]
        np.testing.assert_allclose(*answers, rtol=0, atol=200 * oracle.eps(dtype))


@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
def test_tiles_that_are_claimed(rng, shared):
    operands = [np.repeat(a, 34000, axis=0) for a in oracle.dominant(rng, (1, 300))]
    matrix = [a[0] if shared else a for a in operands[:3]]

    x = pysolvers.solve_tridiagonal(*matrix, operands[3], pivot=False, device="cuda")

    assert (x == x[0]).all()
    check([a[:1] for a in operands], x[:1], 1)


@pytest.mark.parametrize("rows", [64, 512, 4200, 20000], ids=["units", "apart", "cluster", "parts"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tiles_of_pivoted_systems(rng, dtype, rows):
    operands = batch(oracle.dominant, rng, rows, 1, dtype)

    x = pysolvers.solve_tridiagonal(*operands, method="pivoted", device="cuda")

    check(operands, x, 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("rows", "pivot"), [(17, False), (17, True), (250, True)])
def test_halves_of_many_systems(rng, dtype, rows, pivot):
    """Enough for any device. Of those with row exchanges some are solved a second time."""
    few = [np.array(a.T, dtype) for a in oracle.dominant(rng, (40, rows), np.dtype(dtype))]
    for a in few:
        a[:, 7] *= np.finfo(dtype).tiny ** 0.8
    operands = [np.tile(a, 205)[:, :-3] for a in few]

    x = pysolvers.solve_tridiagonal(*operands, axis=0, pivot=pivot, device="cuda")

    check(few, x[:, :40], 0)
    np.testing.assert_array_equal(x, np.tile(x[:, :40], 205)[:, :-3])


@pytest.mark.parametrize("rows", [80, 129])
def test_many_short_systems_with_row_exchanges(rng, rows):
    """Two lanes of a warp solve each system in order; a system has pivots near underflow."""
    few = [np.array(a) for a in oracle.dominant(rng, (40, rows), np.dtype("float64"))]
    for a in few:
        a[7] *= np.finfo("float64").tiny ** 0.8
    operands = [np.tile(a, (545, 1))[:-3] for a in few]

    x = pysolvers.solve_tridiagonal(*operands, pivot=True, device="cuda")

    check(few, x[:40], 1)
    np.testing.assert_array_equal(x, np.tile(x[:40], (545, 1))[:-3])


@pytest.mark.parametrize("periodic", [False, True], ids=["open", "periodic"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("number", "rows"), [*enumerate([100, 512, 4200])])
def test_systems_whose_entries_grow(rng, number, rows, axis, periodic):
    """Chunks eliminated again, residuals of doubtful systems, and second solves in order."""
    dtype = ("float32", "complex128")[(number // 2 + axis + periodic) % 2]
    for family in ("advection", "scaled", "changed row"):
        operands = growth_families.draw(family, dtype, rows, 12, [7])
        if not axis:
            operands = [np.ascontiguousarray(a.T) for a in operands]

        x, info = pysolvers.solve_tridiagonal(
            *operands,
            axis=axis,
            pivot=True,
            periodic=periodic,
            device="cuda",
            on_singular="ignore",
            return_info=True,
        )

        assert x.shape == operands[3].shape
        assert info.pivoted == 12


@pytest.mark.parametrize("periodic", [False, True], ids=["open", "periodic"])
@pytest.mark.parametrize("mapping", ["C1", "C2", "C3", "C4"])
def test_mapping_of_pcr(rng, mapping, periodic):
    options = {"mapping": mapping, "periodic": periodic, "device": "cuda"}
    for rows in rows_of("pcr", "float64", 1):
        operands = batch(oracle.dominant, rng, rows, 1)

        x = wei2013.solve_tridiagonal(*operands, **options)

        check(operands, x, 1, periodic=periodic)


@pytest.mark.parametrize("axis", [0, 1])
def test_systems_that_are_not_dominant(rng, axis):
    for rows in ROWS:
        operands = batch(oracle.general, rng, rows, axis)

        x = pysolvers.solve_tridiagonal(*operands, axis=axis, device="cuda")

        check(operands, x, axis, most=5000)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [37, 64])  # number by number, and in bulk
@pytest.mark.parametrize(  # lanes, warps and clusters
    ("rows", "axis"), [*itertools.product((16, 64, 75, 200, 600), (0, 1)), (2050, 1)]
)
def test_several_right_hand_sides(rng, rows, axis, count, dtype):
    """Of matrices of which one is not dominant: its systems are solved by another kernel."""
    *matrix, _ = oracle.dominant(rng, (count, rows), dtype)
    matrix[1][5, 0] = 1e-3
    rhs = oracle.uniform(rng, (5, count, rows), dtype)
    operands = [a if axis else np.ascontiguousarray(a.swapaxes(-1, -2)) for a in (*matrix, rhs)]

    x = pysolvers.solve_tridiagonal(*operands, axis=axis + 1, device="cuda")

    for b, y in zip(rhs, x if axis else x.swapaxes(-1, -2), strict=True):
        check((*matrix, b), y, 1)


@pytest.mark.parametrize("trans", ["N", "T"])
@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
@pytest.mark.parametrize("pivot", [False, True], ids=["plain", "pivoted"])
def test_factor(rng, pivot, shared, trans):
    for rows in ROWS:
        *matrix, rhs = batch(oracle.dominant, rng, rows, 1)
        if shared:
            matrix = [a[:1] for a in matrix]
        made, same = (
            pysolvers.factor_tridiagonal(*matrix, rows=rows, pivot=pivot, device=device)
            for device in ("cuda", "cpu")
        )

        x, expected = (made.solve(rhs, trans=trans), same.solve(rhs, trans=trans))

        np.testing.assert_allclose(x, expected, rtol=1e-11, atol=1e-13)


# Rows that begin at sectors of memory, at 16 bytes, at elements.
@pytest.mark.parametrize("systems", [40, 36, 41])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_factor_along_the_first_axis(rng, dtype, systems):
    for rows in (300, 1022):
        matrix = [a[:, :1] for a in batch(oracle.dominant, rng, rows, 0, dtype)[:3]]
        rhs = oracle.uniform(rng, (rows, systems), dtype)

        x = pysolvers.factor_tridiagonal(*matrix, axis=0, device="cuda").solve(rhs)

        check([*(a[:, 0] for a in matrix), rhs], x, 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tiles_with_halos(rng, dtype):
    """Of three systems one depends on distant rows and is solved by two passes."""
    operands = oracle.dominant(rng, (3, 80_000), dtype)
    operands[0][1], operands[1][1], operands[2][1] = -1, 2, -1

    x = pysolvers.solve_tridiagonal(*operands, pivot=False, device="cuda")

    check(operands, x, 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [75, 137, 301, 777])  # parts of a warp, a warp and two
def test_one_matrix_for_rows_that_begin_anywhere(rng, rows, dtype):
    *matrix, _ = oracle.dominant(rng, (rows,), dtype)
    rhs = oracle.uniform(rng, (201, rows), dtype)

    x = pysolvers.solve_tridiagonal(*matrix, rhs, pivot=False, device="cuda")

    check((*(a[None] for a in matrix), rhs), x, 1)


def test_one_matrix_along_the_first_axis(rng):
    matrix = [a[:, :1] for a in batch(oracle.dominant, rng, 897, 0, np.complex128)[:3]]
    rhs = oracle.uniform(rng, (897, 1060), np.complex128)

    x = pysolvers.solve_tridiagonal(*matrix, rhs, axis=0, device="cuda")

    check([*(a[:, 0] for a in matrix), rhs], x, 0)


def test_zero_pivot(rng):
    lower, diag, upper, rhs = batch(oracle.dominant, rng, 33, 1)
    lower[2] = diag[2] = upper[2] = 0

    with pytest.raises(pysolvers.SingularSystemError):
        pysolvers.solve_tridiagonal(lower, diag, upper, rhs, device="cuda")


@pytest.mark.parametrize("method", ["line-jacobi", "adi"])
def test_cavity(method):
    device, host = (LidDrivenCavity(100, 17, method=method, device=d) for d in ("cuda", "cpu"))

    device.iterate(8)
    host.iterate(8)

    np.testing.assert_allclose(device.psi, host.psi, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("block", [32, 256])
def test_cavity_by_one_thread_for_each_line(block):
    options = {"method": "line-jacobi", "line_method": "thomas"}
    device = pta2020.LidDrivenCavity(100, 45, block=block, device="cuda", **options).iterate(10)
    host = LidDrivenCavity(100, 45, **options).iterate(10)

    np.testing.assert_allclose(device.psi, host.psi, rtol=1e-10, atol=1e-14)


@pytest.mark.filterwarnings("ignore::pysolvers.CoarseGridWarning")
@pytest.mark.parametrize("block", [None, 64])
@pytest.mark.parametrize("steady", [False, True])
def test_cylinder_by_one_thread_for_each_line(steady, block):
    pytest.importorskip("scipy.fft")
    options = {"psi_solver": "lines", "steady": steady, "psi_tol": 1e-2}
    device = pta2020.SquareCylinder(
        60, (33, 201), line_method="pta", block=block, device="cuda", **options
    )
    host = pta2020.SquareCylinder(60, (33, 201), **options)

    np.testing.assert_allclose(device.step(1).psi, host.step(1).psi, rtol=0, atol=1e-10)


@pytest.mark.parametrize("pressure", ["fast", "sor"])
@pytest.mark.parametrize("force", [None, (lambda y, t: y + t, 2.0)])
def test_staggered_cavity(pressure, force):
    pytest.importorskip("scipy.fft")
    options = {"pressure": pressure, "force": force}
    device, host = (StaggeredCavity(100, 17, device=d, **options).step(2) for d in BOTH)

    for name in ("u", "v", "p"):
        np.testing.assert_allclose(getattr(device, name), getattr(host, name), atol=1e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("grid", ["nodes", "cells"])
@pytest.mark.parametrize("y", [0.0, Neumann(), "periodic", "mixed"])
def test_fast_poisson(monkeypatch, rng, y, grid, dtype):
    pytest.importorskip("scipy.fft")
    set_least_in_parts(monkeypatch, 0)
    sides = {"y-": 0.0, "y+": Neumann()} if y == "mixed" else {"y": y}
    f = rng.uniform(-1, 1, (20, 41)).astype(dtype)
    device, host = (
        FastPoisson(f.shape, 1.0, boundary={"x": 0.0, **sides}, grid=grid, dtype=dtype, device=d)
        for d in ("cuda", "cpu")
    )

    expected = host.solve(f)

    most = 1e3 * np.finfo(dtype).eps * np.abs(expected).max()
    np.testing.assert_allclose(device.solve(f), expected, rtol=0, atol=most)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("bc", ["not-a-knot", "clamped", "natural", "periodic"])
@pytest.mark.parametrize(("shape", "axis"), [((2,), 0), ((37, 200), 0), ((11, 130), 1)])
def test_cubic_spline(rng, shape, axis, bc, dtype):
    x = np.cumsum(rng.uniform(0.5, 1, shape[axis])).astype("float32")
    y = rng.standard_normal(shape).astype(dtype)
    if bc == "periodic":
        y[(slice(None),) * axis + (-1,)] = y[(slice(None),) * axis + (0,)]
    points = rng.uniform(x[0] - 1, x[-1] + 1, 40)
    own = np.broadcast_to(x if axis else x.reshape(-1, *[1] * (len(shape) - 1)), shape)
    for knots in (x, own):
        device, host = (CubicSpline(knots, y, axis, bc, device=d) for d in ("cuda", "cpu"))
        for nu in (0, 2):
            near(device(points, nu), host(points, nu), dtype)
        near(device(own, per_spline=True), host(own, per_spline=True), dtype)
        near(device.antiderivative()(points), host.antiderivative()(points), dtype)
        near(device.c, host.c, dtype)


def near(actual, expected, dtype):
    """Require equality but for rounding errors."""
    most = 1e3 * np.finfo(dtype).eps * np.nanmax(np.abs(expected), initial=1)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=most)


@pytest.mark.parametrize("kernels", ["fused", "paper"])
@pytest.mark.parametrize("scheme", ["cp", "cfd", "mu"])
def test_gceidd(scheme, kernels):
    for problem, shape, dt, strips in (
        (rotating_pulse(0.01), (30, 38), 1 / 256, (5, 3)),
        (rotating_pulse(0.01), (71, 301), 1 / 2048, (18, 1)),
        (heated_channel(), (301, 71), 0.003, (1, 100)),
    ):
        device, host = (
            gceidd2022.GCEIDD(
                problem,
                shape=shape,
                dt=dt,
                scheme=scheme,
                strips=strips,
                kernels=kernels,
                device=d,
            )
            for d in ("cuda", "cpu")
        )

        np.testing.assert_allclose(device.step(5).u, host.step(5).u, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("limits", [{"short_strip": 0}, {"short_strip": 40}, {"throttle": 0}])
@pytest.mark.parametrize("strips", [1, 4, 23])
def test_stages_of_gceidd(strips, limits):
    options = {"shape": (31, 71), "dt": 1 / 1024, "strips": (strips, 3), "kernels": "paper"}
    device, host = (
        gceidd2022.GCEIDD(rotating_pulse(0.01), device=d, few_strips=0, **options, **limits)
        for d in BOTH
    )

    np.testing.assert_allclose(device.step(2).u, host.step(2).u, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("kernel", ["auto", 1, 2, 3])
@pytest.mark.parametrize("shape", [(5, 40), (70, 33)])
def test_lmsor(kernel, shape):
    problem = SteadyConvectionDiffusion(
        lambda x, y: 9 * x,
        4.0,
        shape=[n + 2 for n in shape],
        extent=((0, 1), (0, 1)),
        differences="central",
        boundary=1.0,
    )
    device, host = (lmsor2012.LMSOR(problem, kernel=kernel, device=d) for d in ("cuda", "cpu"))

    device.solve(0.1, max_iterations=100)
    host.solve(0.1)

    np.testing.assert_array_equal(device.u, host.u)


@pytest.mark.parametrize("variant", ["auto", "naive", "coalesced", "split", "shared", "atomic"])
def test_plate(variant):
    device = survey2014.RedBlackSOR(
        (33, 70),
        extent=((0, 1), (0, 1)),
        boundary={"y+": 1.0, "x": 0.0, "y-": 0.0},
        variant=variant,
        device="cuda",
    )
    host = RedBlackSOR((33, 70), extent=((0, 1), (0, 1)), boundary={"y+": 1.0, "x": 0.0, "y-": 0.0})

    device.solve(0.1)
    host.solve(0.1)

    np.testing.assert_array_equal(device.u, host.u)


@pytest.mark.parametrize("coefficients", ["arrays", "texture"])
@pytest.mark.parametrize("variant", ["naive", "coalesced", "split", "shared", "atomic"])
def test_plate_with_arrays_of_coefficients(rng, variant, coefficients):
    options = {"extent": ((0, 1), (0, 1)), "boundary": {"y+": 1.0, "x": 0.5, "y-": Neumann(0.1)}}
    options["source"] = rng.random((33, 70))
    device = survey2014.RedBlackSOR(
        (33, 70), variant=variant, coefficients=coefficients, device="cuda", **options
    )
    host = RedBlackSOR((33, 70), **options)

    np.testing.assert_allclose(device.iterate(5).u, host.iterate(5).u, rtol=0, atol=1e-13)


def heat(shape, device, **options):
    options = {"boundary": 0.0, "damped_start": False, "dt": 3.0} | options
    return wei2013.HeatADI(shape, 1.0, options.pop("dt"), device=device, **options)


@pytest.mark.parametrize("varied", [False, True], ids=["k", "k(x)"])
@pytest.mark.parametrize("shape", [(5, 6), (70, 130), (33, 9), (5, 12, 34)])
@pytest.mark.parametrize("kind", ["value", "flux", "periodic"])
def test_heat(rng, kind, shape, varied):
    boundary = {
        "value": pysolvers.Dirichlet(lambda t: t),
        "flux": pysolvers.Robin(0.5, 1.0),
        "periodic": "periodic",
    }[kind]
    options = {
        "boundary": boundary,
        "diffusivity": rng.uniform(0.5, 1.4, shape) if varied else 1.0,  # stable in 3-D
        "source": 0.1 * rng.random(shape),
        "initial": rng.random(shape),
    }
    device, host = (heat(shape, d, **options) for d in BOTH)

    np.testing.assert_allclose(device.step(3).u, host.step(3).u, rtol=0, atol=1e-11)


@pytest.mark.parametrize("shape", [(1100, 20), (20, 1100), (2050, 33)])
def test_heat_on_long_lines(rng, shape):
    options = {"initial": rng.random(shape)}
    device, host = (heat(shape, d, **options) for d in BOTH)

    np.testing.assert_allclose(device.step(2).u, host.step(2).u, rtol=0, atol=1e-12)


# The kernels are those of the types of the fields and of the cycle, which is that of float64 for
# the last ratio, and of lines along each axis; sides and the number of axes are numbers to them.
# A block has all levels of the first grids, and all but the first one of the others.
@pytest.mark.parametrize(
    ("shape", "kind", "dtype", "ratio"),
    [
        ((9, 10), "value", "float32", 10.0),
        ((5, 6, 7), "periodic", "float32", 10.0),
        ((9, 10), "value", "float64", 10.0),
        ((5, 6, 7), "flux", "float64", 10.0),
        ((9, 10), "periodic", "float64", 1e5),
        ((5, 6, 7), "value", "float64", 1e5),
        ((150, 5), "flux", "float32", 10.0),
        ((5, 150), "flux", "float64", 10.0),
        ((150, 5), "flux", "float64", 1e5),
    ],
)
def test_heat_by_the_equation_that_is_not_split(rng, shape, kind, dtype, ratio):
    boundary = {
        "value": pysolvers.Dirichlet(lambda t: t),
        "flux": pysolvers.Neumann(),
        "periodic": "periodic",
    }[kind]
    x, y = np.linspace(0, 1, shape[-1]), np.linspace(0, 1, shape[-2])[:, None]
    third = {"z": boundary} if len(shape) == 3 else {}
    options = {
        "scheme": "implicit",
        "boundary": {"x": pysolvers.Neumann(), "y": boundary} | third,
        "diffusivity": np.broadcast_to(ratio ** (abs(x - y) < 0.2), shape),
        "initial": rng.random(shape),
        "source": lambda x, t: np.cos(0.1 * x + t),
        "damped_start": kind == "value",
        "dtype": dtype,
        "dt": 0.01,  # three iterations or fewer, if the ratio is small
    }
    device, host = (heat(shape, d, **options) for d in BOTH)

    # racecheck takes long for an iteration; the stages of two steps give a basis of some fields.
    for solver in (device, host):
        solver.step(2 if kind == "value" and dtype == "float32" else 1)

    # Ten times the tolerance of the solver, in its norm.
    most = 1e-7 if dtype == "float64" else 1e-4
    assert np.linalg.norm(np.float64(device.u) - host.u) < most * np.linalg.norm(host.u)


def test_steady_heat(rng):
    """The kernels of steps, as above."""
    shape = (9, 10)
    for sides in (pysolvers.Neumann(), 1.0):
        options = {"boundary": sides, "diffusivity": rng.uniform(0.5, 20.0, shape)}
        device, host = (heat(shape, d, initial=places(shape), **options) for d in BOTH)

        device, host = (solver.solve_steady().u for solver in (device, host))

        np.testing.assert_allclose(device, host, rtol=1e-8)


def places(shape):
    """A field that is not constant, with positive values."""
    return 1 + np.arange(np.prod(shape, dtype=int)).reshape(shape) / np.prod(shape)


def test_heat_by_teams_of_blocks(rng):
    shape = (520, 8484)
    boundary = {"x": pysolvers.Dirichlet(0.3), "y": pysolvers.Robin(1.0, 0.2)}
    options = {"boundary": boundary, "initial": rng.random(shape)}
    device, host = (heat(shape, d, **options) for d in BOTH)

    np.testing.assert_allclose(device.step(1).u, host.step(1).u, rtol=0, atol=1e-12)


# Longer lines along x, and along y, than the sweeps hold.
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((18, 17601), "float64"), ((36100, 9), "float64"), ((36100, 9), "float32")],
    ids=str,
)
def test_heat_in_one_kernel_a_step(rng, dtype, shape):
    boundary = {"x": pysolvers.Dirichlet(0.3), "y": pysolvers.Robin(1.0, 0.2)}
    options = {"boundary": boundary, "initial": rng.random(shape), "dtype": dtype}
    device, host = (heat(shape, d, **options) for d in BOTH)

    tolerance = 100 * oracle.eps(dtype)
    np.testing.assert_allclose(device.step(2).u, host.step(2).u, rtol=0, atol=tolerance)


# Whole columns along z in a block, in float64 and in float32, and clusters of blocks in the others.
@pytest.mark.parametrize("shape", [(347, 10, 360), (700, 6, 720)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_heat_in_two_kernels_a_step(rng, dtype, shape):
    boundary = {"x": pysolvers.Neumann(0.1), "y": pysolvers.Dirichlet(lambda t: t), "z": "periodic"}
    options = {"boundary": boundary, "initial": rng.random(shape), "dtype": dtype}
    device, host = (heat(shape, d, **options) for d in BOTH)

    tolerance = 100 * oracle.eps(dtype)
    np.testing.assert_allclose(device.step(1).u, host.step(1).u, rtol=0, atol=tolerance)


@pytest.mark.parametrize("mapping", ["C1", "C2", "C3", "C4"])
@pytest.mark.parametrize("memory", ["baseline", "texture", "transpose"])
@pytest.mark.parametrize("scheme", ["peaceman-rachford", "wei2013"])
def test_heat_by_kernels_of_the_paper(rng, scheme, memory, mapping):
    options = {"initial": rng.random((37, 70)), "scheme": scheme, "kernels": "wei2013"}
    options |= {"memory": memory, "mapping": mapping}
    device, host = (heat((37, 70), d, **options) for d in BOTH)

    np.testing.assert_allclose(device.step(2).u, host.step(2).u, rtol=0, atol=1e-12)


# 1, 2, 4 and 8 chunks of a block of 32 threads.
@pytest.mark.parametrize("rows", [120, 201, 451, 1001])
@pytest.mark.parametrize("mapping", ["C1", "C3"])
@pytest.mark.parametrize("memory", ["baseline", "texture", "transpose"])
def test_heat_in_chunks_of_a_block(rng, memory, mapping, rows):
    options = {"initial": rng.random((rows + 2, 9)), "kernels": "wei2013", "block": 32}
    options |= {"memory": memory, "mapping": mapping}
    device, host = (heat((rows + 2, 9), d, **options) for d in BOTH)

    np.testing.assert_allclose(device.step(1).u, host.step(1).u, rtol=0, atol=1e-12)


# Lines along the last axis, whole or broken chunks, and neighbouring lines; many tiles and parts.
RECURRENCES = (((5, 64), 1), ((5, 67), 1), ((70, 5), 0), ((2, 9000), 1), ((9001, 3), 0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", [1, 2])
def test_recurrences(rng, order, dtype):
    for (shape, axis), size in itertools.product(RECURRENCES, (0.45, 1.3)):
        if size > 1 and shape[axis] > 100:
            continue
        a, b, c = ((size * rng.uniform(-1, 1, shape)).astype(dtype) for _ in range(3))
        options = {"second": c if order == 2 else None, "axis": axis, "reverse": axis == 0}
        x, expected = (pysolvers.linear_recurrence(a, b, **options, device=name) for name in BOTH)
        most = 1e4 * np.finfo(dtype).eps * max(1, np.abs(expected).max())
        np.testing.assert_allclose(x, expected, rtol=0, atol=most)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pivot", [None, False, True])
def test_blocks_and_five_diagonals(rng, pivot, dtype):
    most = 1e4 * np.finfo(dtype).eps
    for side, shape in ((2, (70, 5)), (3, (70, 5)), (4, (70, 5)), (2, (3, 64)), (3, (5, 256))):
        lower, diag, upper = (
            rng.uniform(-0.2, 0.2, (*shape, side, side)).astype(dtype) / side for _ in range(3)
        )
        diag += np.eye(side, dtype=dtype)
        if pivot is None:
            diag[1, 2] *= 1e-2
        rhs = rng.standard_normal((*shape, side, 1)).astype(dtype)
        x, expected = (
            pysolvers.solve_block_tridiagonal(lower, diag, upper, rhs, pivot=pivot, device=name)
            for name in BOTH
        )
        np.testing.assert_allclose(x, expected, rtol=0, atol=most * np.abs(expected).max())
    for axis, rows in (*itertools.product((0, 1), (1, 8, 9, 131, 132)), (0, 250), (0, 490)):
        shape = (70, rows) if axis else (rows, 70)
        bands = [rng.uniform(-0.2, 0.2, shape).astype(dtype) for _ in range(6)]
        bands[2] += 1
        x, expected = (
            pysolvers.solve_pentadiagonal(*bands, axis=axis, pivot=pivot, device=name)
            for name in BOTH
        )
        np.testing.assert_allclose(x, expected, rtol=0, atol=most * np.abs(expected).max())
