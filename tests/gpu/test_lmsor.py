"""Red-black relaxation on a GPU: the bits of the CPU, exact stops, state that moves."""

import threading
import time

import availability
import numpy as np
import pytest
import relaxation_rows

import pysolvers
from pysolvers import LMSOR, Neumann, RedBlackSOR, Robin, SteadyConvectionDiffusion
from pysolvers.papers import lmsor2012, survey2014

_cuda = availability.extension("cuda")
pytestmark = pytest.mark.gpu

KERNELS = ("auto", 1, 2, 3)
VARIANTS = ("auto", "naive", "coalesced", "split", "shared", "atomic")
# Below a tile, around the widths of tiles and of small grids on one chip, and far above.
SHAPES = [(1, 1), (2, 300), (300, 2), (31, 33), (63, 65), (127, 200), (257, 130), (700, 513)]


def problem(shape, rng, separable=True):
    fx, gy = ((1, shape[1]), (shape[0], 1)) if separable else (shape, shape)
    return SteadyConvectionDiffusion(
        20 * rng.random(fx),
        20 * rng.random(gy),
        shape=[n + 2 for n in shape],
        extent=((0, 1), (0, 1)),
        differences="central",
        source=rng.normal(size=shape),
        boundary=rng.normal(size=(shape[0] + 2, shape[1] + 2)),
    )


def pair(make, *args, **options):
    return make(*args, device="cuda", **options), make(*args, **options)


def assert_same(here, there, *, norm="max"):
    """Fields and maxima have the same bits; sums of squares have another order."""
    np.testing.assert_array_equal(here.u, there.u)
    assert here.iterations == there.iterations
    most = 1e-12 if norm == "l2" and here.u.dtype == np.float64 else 1e-5
    if norm == "max":
        assert here.residual == there.residual
    else:
        assert here.residual == pytest.approx(there.residual, rel=most)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("separable", [True, False])
def test_bits_are_those_of_the_cpu(shape, dtype, separable, rng):
    equation, u = problem(shape, rng, separable), rng.normal(size=shape)
    there = LMSOR(equation, dtype=dtype, initial=u).iterate(23)

    for kernel in KERNELS if separable else KERNELS[:-1]:
        options = {"kernel": kernel, "dtype": dtype, "initial": u}
        here = lmsor2012.LMSOR(equation, **options, device="cuda").iterate(23)
        assert_same(here, there)


@pytest.mark.parametrize("shape", [(3, 4), (33, 20), (130, 257)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nodes_on_sides_are_relaxed(shape, dtype, rng):
    equation = SteadyConvectionDiffusion(
        lambda x, y: 9 * np.sin(y),
        5.0,
        shape=shape,
        extent=((0, 1), (0, 1)),
        source=1.0,
        boundary={"x-": 1.0, "x+": "outflow", "y-": Robin(2.0, lambda x: x), "y+": Neumann(0.3)},
        differences="central",  # no warning of the coarsest grid
    )
    here, there = pair(LMSOR, equation, dtype=dtype)
    assert_same(here.iterate(23), there.iterate(23))
    here.u = there.u = rng.normal(size=shape)
    assert_same(here.iterate(5), there.iterate(5))


def test_periodic_axes_are_refused():
    sides = {"x": "periodic", "y": 0.0}
    square = ((0, 1), (0, 1))
    flow = SteadyConvectionDiffusion(0.0, 0.0, shape=(8, 8), extent=square, boundary=sides)
    for call in (
        lambda: LMSOR(flow, device="cuda"),
        lambda: RedBlackSOR((8, 8), spacing=1.0, boundary=sides, device="cuda"),
    ):
        with pytest.raises(ValueError, match="periodic axes have no kernels on devices"):
            call()


@pytest.mark.parametrize("relaxation", ["lmsor", "lsor", "lmsor-2012", 1.4])
def test_parameters_computed_on_the_way(relaxation, rng):
    f, g = 60 * rng.normal(size=(1, 90)), 60 * rng.normal(size=(77, 1))
    f[:, ::4], g[::5] = 0, 0
    equation = SteadyConvectionDiffusion(
        f, g, shape=(79, 92), extent=((0, 1), (0, 1)), differences="central", boundary=1.0
    )

    here, there = pair(lmsor2012.LMSOR, equation, kernel=3, relaxation=relaxation)

    assert_same(here.iterate(8), there.iterate(8))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_of_the_plate_are_those_of_the_cpu(shape, dtype, rng):
    options = {
        "boundary": {"x-": 1.0, "x+": 0.0, "y+": Neumann(0.3), "y-": Robin(2.0, 0.5)},
        "source": rng.normal(size=shape),
        "initial": rng.normal(size=shape),
        "dtype": dtype,
    }
    there = RedBlackSOR(shape, extent=((0, 1), (0, 1)), **options).iterate(23)

    for variant in VARIANTS:
        here = survey2014.RedBlackSOR(
            shape, extent=((0, 1), (0, 1)), variant=variant, device="cuda", **options
        ).iterate(23)
        assert_same(here, there, norm="l2")


@pytest.mark.parametrize("shape", [(1, 1), (1, 70), (70, 1), (33, 70), (257, 130)], ids=str)
@pytest.mark.parametrize("sourced", [False, True])
@pytest.mark.parametrize("coefficients", ["arrays", "texture"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_of_coefficients(dtype, coefficients, sourced, shape, rng):
    options = {
        "extent": ((0, 1), (0, 0.7)),
        "boundary": {"x-": 1.0, "x+": rng.normal(size=shape[0]), "y+": Neumann(0.3), "y-": 0.2},
        "source": rng.normal(size=shape) if sourced else 0.0,
        "initial": rng.normal(size=shape),
        "dtype": dtype,
    }
    there = RedBlackSOR(shape, **options).iterate(23)
    fields = [
        survey2014.RedBlackSOR(
            shape, variant=variant, coefficients=coefficients, device="cuda", **options
        )
        .iterate(11)
        .iterate(12)
        .u
        for variant in VARIANTS
        if variant != "auto"
    ]

    most = 100 * np.finfo(dtype).eps * np.abs(there.u).max()
    np.testing.assert_allclose(fields[0], there.u, rtol=0, atol=most)
    for field in fields[1:]:
        np.testing.assert_array_equal(field, fields[0])


@pytest.mark.parametrize("shape", [(2_200_000, 3), (3, 2_200_000)])
def test_plates_of_more_tiles_than_a_grid_has_rows(shape, rng):
    options = {"boundary": {"x-": 1.0, "x+": 0.0, "y": 0.0}, "initial": rng.normal(size=shape)}
    there = RedBlackSOR(shape, extent=((0, 1), (0, 1)), **options).iterate(2)

    for variant in VARIANTS:
        here = survey2014.RedBlackSOR(
            shape, extent=((0, 1), (0, 1)), variant=variant, device="cuda", **options
        ).iterate(2)
        assert_same(here, there, norm="l2")


# `test_norms_of_rows` has every measure on each shape.
@pytest.mark.parametrize(
    ("criterion", "norm", "shape"),
    [
        ("residual", "max", (100, 130)),
        ("change", "l2", (100, 130)),
        ("solution", "max", (400, 400)),
        ("residual", "l2", (400, 400)),
        ("change", "max", (600, 1001)),
        ("solution", "l2", (600, 1001)),
    ],
)
@pytest.mark.parametrize("kernel", KERNELS)
def test_stops_are_those_of_the_cpu(shape, kernel, norm, criterion, rng):
    equation = problem(shape, rng)
    here, there = pair(lmsor2012.LMSOR, equation, kernel=kernel)
    history = there.iterate(2).solve(1e99, norm=norm, criterion=criterion).history
    there.solve(1e99, norm=norm, criterion=criterion)
    tol = 0.05 * history.measure[0]
    options = {"norm": norm, "criterion": criterion, "max_iterations": 300, "check_every": 3}
    outcomes = []
    for solver in (here.iterate(4), there):
        try:
            outcomes.append(solver.solve(tol, **options).stop_reason)
        except pysolvers.ConvergenceError as error:
            outcomes.append(error.result.stop_reason)

    assert outcomes[0] == outcomes[1]
    assert_same(here, there, norm=norm)


def test_long_histories_come_whole(rng):
    equation = problem((40, 50), rng)
    here, there = pair(LMSOR, equation, relaxation=0.05)

    histories = []
    for solver in (here, there):
        with pytest.raises(pysolvers.ConvergenceError) as error:
            solver.solve(0, max_iterations=2500)
        histories.append(error.value.result.history)

    np.testing.assert_array_equal(histories[0].iteration, np.arange(1, 2501))
    np.testing.assert_array_equal(histories[0].measure, histories[1].measure)


# Of one tile, of several tiles, and of a blocked sweep.
ROWS_OF = {(5, 4): (2, 3), (100, 130): (9, 44), (600, 1001): (64, 479)}
KINDS = [("lmsor", kernel) for kernel in KERNELS] + [("plate", variant) for variant in VARIANTS]


@pytest.mark.parametrize("shape", ROWS_OF)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_of_rows(kind, shape, dtype):
    measures = [
        (measure, ROWS_OF[shape], (1, 3, 9, 21)[number % 4])
        for number, measure in enumerate(relaxation_rows.MEASURES)
    ]

    make = relaxation_rows.maker(kind, "cuda", dtype, shape)
    relaxation_rows.check_rows(make, measures, count=21)


@pytest.mark.parametrize("shape", ROWS_OF)
@pytest.mark.parametrize("kind", KINDS)
def test_maxima_of_parts_are_those_of_all_rows(kind, shape):
    """Of residuals, which `test_norms_of_rows` compares up to rounding errors."""
    first, number = ROWS_OF[shape]
    cuts = tuple(dict.fromkeys((1, first, first + number, shape[0] + 1)))
    make = relaxation_rows.maker(kind, "cuda", shape=shape)

    relaxation_rows.check_parts(make, "residual", cuts, count=21)


@pytest.mark.parametrize("shape", ROWS_OF)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("norm", ["max", "l2"])
@pytest.mark.parametrize("every", [1, 6, 11])
def test_rows_end_an_iteration(every, norm, kernel, shape):
    make = relaxation_rows.maker(("lmsor", kernel), "cuda", shape=shape)

    relaxation_rows.check_stop(make, ("change", norm), ROWS_OF[shape], every, count=60)


def test_measures_of_rows_are_those_of_the_cpu():
    for kind in (("lmsor", "auto"), ("plate", "auto")):
        for shape, rows in ROWS_OF.items():
            here, there = (
                relaxation_rows.call(
                    relaxation_rows.maker(kind, device, shape=shape)(),
                    100,
                    ("residual", "max"),
                    rows,
                    every=13,
                )[2]
                for device in ("cuda", None)
            )
            np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_words_of_an_earlier_call_do_not_change_a_bit(dtype, rng):
    """The second field of a call is memory of earlier ones: here of one that holds no numbers."""
    large = SteadyConvectionDiffusion(
        1e6, 1e6, shape=(1402, 1102), extent=((0, 1), (0, 1)), differences="central", boundary=1e300
    )
    for shape in SHAPES:
        equation, u = problem(shape, rng), rng.normal(size=shape)
        options = {"boundary": {"x-": 1.0, "x+": 0.0, "y": 0.0}, "initial": u, "dtype": dtype}
        with pytest.raises(pysolvers.ConvergenceError):
            LMSOR(large, relaxation=1.0, initial=1e300, device="cuda").iterate(50)
        plates = pair(RedBlackSOR, shape, extent=((0, 1), (0, 1)), **options)
        for here, there in (pair(LMSOR, equation, initial=u, dtype=dtype), plates):
            for count in (8, 1, 3, 4, 9, 16, 5):
                assert_same(here.iterate(count), there.iterate(count), norm=here._norm)


@pytest.mark.parametrize("separable", [True, False])
def test_warps_that_own_many_rows(separable, rng):
    """So many strips that a warp of the device owns more than 512 rows."""
    shape = (1500, 12000)
    equation, u = problem(shape, rng, separable), rng.normal(size=shape)

    here, there = pair(LMSOR, equation, initial=u)

    assert_same(here.iterate(9), there.iterate(9), norm="max")


def test_a_state_goes_on_with_the_same_bits(tmp_path, rng):
    equation = problem((120, 150), rng)
    whole = LMSOR(equation, device="cuda").iterate(50)
    LMSOR(equation, device="cuda").iterate(21).save(tmp_path / "state")

    assert_same(LMSOR.load(tmp_path / "state").iterate(29), whole)


def test_the_serial_kernel_needs_the_cpu():
    equation = SteadyConvectionDiffusion(
        1.0, 1.0, shape=(6, 6), extent=((0, 1), (0, 1)), differences="central", boundary=0.0
    )

    with pytest.raises(pysolvers.BackendError, match="PS_UNSUPPORTED"):
        lmsor2012.LMSOR(equation, kernel="serial", device="cuda").iterate(1)


def test_several_threads(rng):
    equation = problem((200, 180), rng)
    expected = LMSOR(equation, device="cuda").iterate(100)
    solvers = [LMSOR(equation, device="cuda") for _ in range(4)]
    threads = [threading.Thread(target=solver.iterate, args=(100,)) for solver in solvers]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for solver in solvers:
        assert_same(solver, expected)


def test_an_interrupt_leaves_whole_iterations(interrupt_later):
    equation = SteadyConvectionDiffusion(
        5.0, 5.0, shape=(502, 502), extent=((0, 1), (0, 1)), differences="central", boundary=1.0
    )
    solver = LMSOR(equation, device="cuda").iterate(1)

    interrupt_later()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        solver.iterate(50_000_000)

    assert time.perf_counter() - start < 10
    assert solver.iterations > 1
    assert np.isfinite(solver.u).all()
