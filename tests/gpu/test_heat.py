"""Heat conduction on a GPU has the fields of the CPU, whatever scheme, sides and kernels."""

import availability
import numpy as np
import pytest

from benchmarks.papers.wei2013 import relative_difference
from pysolvers import Dirichlet, HeatADI, Neumann, Robin, solve_tridiagonal
from pysolvers.papers import wei2013

_cuda = availability.extension("cuda")
# Both backends make the same steps, also those that are too large for the solution in time.
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore:HeatADI.*too large for the solution:RuntimeWarning"),
]


@pytest.fixture(autouse=True)
def _device():
    if reason := _cuda.unavailable():
        pytest.skip(reason)


SIDES = {
    "cold": Dirichlet(0.0),
    "hot": {"x-": Dirichlet(1.0), "x+": Dirichlet(0.25), "y": Dirichlet(0.5), "z": Dirichlet(0.1)},
    "fluxes": {
        "x-": Neumann(0.3),
        "x+": Robin(2.0, 0.7),
        "y-": Robin(1.0, 0.2),
        "y+": Neumann(-0.1),
        "z": Neumann(0.1),
    },
    "mixed": {
        "x-": Dirichlet(1.0),
        "x+": Neumann(0.2),
        "y-": Robin(3.0, 1.0),
        "y+": Dirichlet(0.3),
        "z-": Dirichlet(0.4),
        "z+": Robin(1.0, 0.9),
    },
    "ring": {"x": "periodic", "y": Dirichlet(0.2), "z": Neumann(0.0)},
    "wheel": {"x": Dirichlet(0.3), "y": "periodic", "z": Robin(1.0, 0.2)},
    "torus": "periodic",
}


def sides_of(name, axes):
    """The sides of a box of so many axes."""
    sides = SIDES[name]
    if not isinstance(sides, dict):
        return sides
    return {k: v for k, v in sides.items() if k[0] in "xyz"[:axes]}


OF_PAPER = ("kernels", "mapping", "memory", "block", "timed")


def pair(shape, r=10.0, **options):
    """Return the same solver on the GPU and on the CPU, from a rough field."""
    start = np.random.default_rng(7).random(shape)
    make = {"boundary": 0.0, "initial": start, "damped_start": False} | options
    of_paper = options.get("scheme") == "wei2013" or not options.keys().isdisjoint(OF_PAPER)
    cls = wei2013.HeatADI if of_paper else HeatADI
    return [cls(shape, 1.0, r, device=device, **make) for device in ("cuda", "cpu")]


def assert_near(here, there, tolerance=1e-12):
    scale = np.abs(there.u).max()
    np.testing.assert_allclose(here.u, there.u, rtol=0, atol=tolerance * scale)


ODD_SHAPES = [
    (3, 3),
    (3, 100),
    (100, 3),
    (4, 5),
    (32, 33),
    (33, 31),
    (64, 65),
    (127, 257),
    (700, 90),
]


@pytest.mark.parametrize("shape", ODD_SHAPES, ids=str)
@pytest.mark.parametrize("sides", SIDES)
def test_fields_are_those_of_the_cpu(shape, sides):
    here, there = pair(shape, boundary=sides_of(sides, 2))

    assert_near(here.step(100), there.step(100))


@pytest.mark.parametrize("shape", [(65, 100), (20, 33, 40)], ids=str)
@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_damped_start_is_that_of_the_cpu(shape, sides, dtype):
    options = {"boundary": sides_of(sides, len(shape)), "damped_start": None, "dtype": dtype}
    here, there = pair(shape, 65.0, **options)

    assert_near(here.step(), there.step(), max(2e-11, 4 * np.finfo(dtype).eps))
    assert here.result().damped_start
    assert_near(here.step(10), there.step(10), 1e5 * np.finfo(dtype).eps)


@pytest.mark.parametrize("r", [0.1, 1.0, 37.3, 1000.0])
@pytest.mark.parametrize("shape", [(1025, 1000), (1000, 2047), (4095, 130), (130, 8191)], ids=str)
def test_long_lines(shape, r):
    here, there = pair(shape, r, boundary=sides_of("hot", 2))

    assert_near(here.step(10), there.step(10))


# Lines along x one at a time in shared memory, and lines along y of more groups than a panel of
# many columns has, also of few columns.
LONGER = [
    ((24, 16384), np.float64),
    ((20, 17400), np.float64),
    ((300, 14999), np.float64),
    ((20, 30001), np.float32),
    ((10000, 66), np.float64),
    ((9001, 1200), np.float64),
    ((33001, 40), np.float64),
    ((30000, 24), np.float32),
]


@pytest.mark.parametrize("sides", ["hot", "mixed", "torus"])
@pytest.mark.parametrize(("shape", "dtype"), LONGER, ids=str)
def test_longer_lines(shape, dtype, sides):
    here, there = pair(shape, boundary=sides_of(sides, 2), dtype=dtype)

    assert_near(here.step(4), there.step(4), 1e-12 if dtype == np.float64 else 1e-5)


# Enough columns for teams of blocks along y: panels, groups and chunks that are whole and not.
TEAMS = [
    ((4096, 1540), np.float64, 1.0),
    ((4096, 1540), np.float64, 3000.0),
    ((3000, 2116), np.float64, 30.0),
    ((8192, 1540), np.float32, 1.0),
    ((8192, 1540), np.float32, 100.0),
]


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize(("shape", "dtype", "r"), TEAMS, ids=str)
def test_many_long_columns(shape, dtype, r, sides):
    here, there = pair(shape, r, boundary=sides_of(sides, 2), dtype=dtype)

    # What is kept between half steps is as large as r times the field.
    tolerance = 1e-12 if dtype == np.float64 else 1e-6 * max(r, 10.0)
    assert_near(here.step(3), there.step(3), tolerance)


# Steps of one kernel: rows of nodes in short chunks of a block, in longer chunks of a block, in a
# cluster, of which some warps may have no nodes, and rows that begin at no multiple of 16 bytes.
PLANES = [
    ((3200, 3000), np.float64, 1.0),
    ((2400, 4608), np.float64, 20.0),
    ((2300, 4700), np.float64, 20.0),
    ((3001, 3301), np.float64, 5.0),
    ((12000, 1000), np.float64, 0.3),
    ((600, 20000), np.float64, 0.3),
    ((700, 18001), np.float64, 3.0),
    ((36500, 64), np.float64, 3.0),
    ((2500, 8700), np.float32, 20.0),
    ((6000, 6001), np.float32, 1.0),
]

# Sections of rows that all count for each other: 2, 4, 13 and 31 of them.
FEW_SECTIONS = [
    ((18, 17601), np.float64, 20.0),
    ((36, 18001), np.float64, 0.3),
    ((109, 20000), np.float64, 20.0),
    ((251, 17601), np.float64, 20.0),
]


@pytest.mark.parametrize(
    ("shape", "dtype", "r", "sides"),
    [(*plane, sides) for plane in PLANES for sides in ("mixed", "torus")]
    + [(*plane, sides) for plane in FEW_SECTIONS for sides in SIDES],
    ids=str,
)
def test_steps_of_one_kernel(shape, dtype, r, sides):
    options = {"boundary": sides_of(sides, 2), "dtype": dtype}
    here, there = pair(shape, r, **options)
    repeated, _ = pair(shape, r, **options)

    assert_near(here.step(4), there.step(4), 200 * np.finfo(dtype).eps)
    assert here.result().kernel == "plane"  # from sm_90 on
    np.testing.assert_array_equal(repeated.step(1).step(2).step(1).u, here.u)


MOVING = {
    "x-": Robin(0.5, lambda y, t: np.cos(y + t)),
    "x+": Dirichlet(lambda t: np.sin(t)),
    "y-": Dirichlet(lambda x, t: np.cos(3 * x) * t),
    "y+": Neumann(lambda t: 0.01 * t),
}


def test_steps_of_one_kernel_with_moving_sides():
    here, there = pair((3200, 3000), 2.0, boundary=MOVING)

    assert_near(here.step(1).step(7), there.step(8))
    assert here.result().kernel == "plane"


# Planes that the multiprocessors hold: one section and many, of up to 8 rows and up to 16, in which
# all sections count or near ones; one, two and more groups of short and long chunks along x; and
# more columns than threads. On a device of sm_90 and 132 multiprocessors.
RESIDENT = [
    ((5, 700), 0.5),
    ((9, 600), 20.0),
    ((60, 70), 20.0),
    ((64, 65), 0.3),
    ((101, 577), 3.0),
    ((700, 90), 3.0),
    ((1060, 300), 0.5),
    ((1500, 64), 0.5),
    ((1024, 1024), 0.5),
    ((1056, 1300), 0.5),
]
RESIDENT_FLOAT64 = [
    ((60, 70), 20.0),
    ((64, 65), 0.3),
    ((700, 90), 1.0),
    ((1060, 300), 0.5),
    ((1500, 64), 0.5),
    ((530, 510), 0.5),
]


@pytest.mark.parametrize("sides", ["mixed", "torus", "moving"])
@pytest.mark.parametrize(
    ("shape", "r", "dtype"),
    [(*case, np.float32) for case in RESIDENT] + [(*case, np.float64) for case in RESIDENT_FLOAT64],
    ids=str,
)
def test_steps_of_planes_that_multiprocessors_hold(shape, r, dtype, sides):
    options = {"boundary": MOVING if sides == "moving" else sides_of(sides, 2), "dtype": dtype}
    here, there = pair(shape, r, **options)
    repeated, _ = pair(shape, r, **options)

    assert_near(here.step(70), there.step(70), 100 * max(1, r) * np.finfo(dtype).eps)
    assert here.result().kernel == "resident"
    np.testing.assert_array_equal(repeated.step(1).step(3).step(66).u, here.u)


@pytest.mark.parametrize("shape", [(1024, 1024), (1000, 1300)], ids=str)
def test_float32_stays_near_the_cpu(shape):
    y, x = np.ix_(*(np.linspace(0, 1, n) for n in shape))
    start = 1 + np.sin(9 * x) * np.cos(7 * y)
    here, there = pair(shape, 100.0, initial=start, dtype=np.float32)

    here.step(100)
    there.step(100)

    assert np.linalg.norm(here.u - there.u) < 3e-6 * np.linalg.norm(there.u)


LARGE_GRIDS = [1024, 2048, *(pytest.param(n, marks=pytest.mark.slow) for n in (4096, 8192))]


@pytest.mark.parametrize("n", LARGE_GRIDS)
@pytest.mark.parametrize("scheme", ["peaceman-rachford", "wei2013"])
def test_float32_of_a_heated_plate(n, scheme):
    assert relative_difference(n, scheme=scheme) < 3e-6


@pytest.mark.parametrize("n", LARGE_GRIDS)
def test_float32_of_a_heated_plate_by_the_kernels_of_the_paper(n):
    assert relative_difference(n, kernels="wei2013", mapping="C4") < 3e-6


@pytest.mark.parametrize("shape", [(3, 3, 3), (5, 33, 40), (20, 7, 65), (40, 50, 60)], ids=str)
@pytest.mark.parametrize("sides", SIDES)
def test_three_axes(shape, sides):
    here, there = pair(shape, boundary=sides_of(sides, 3))

    assert_near(here.step(20), there.step(20))


# Wide and deep enough for two kernels a step: tiles that are whole and not,
# lines along x that two warps solve, and, on a device of 132 multiprocessors, blocks of more planes
# and blocks with whole lines along z.
VOLUMES = [
    (352, 4, 352),
    (349, 37, 360),
    (512, 9, 512),
    (347, 6, 540),
    (1000, 5, 340),
    (228, 7, 700),
    (233, 5, 1080),
    (548, 5, 352),
    (300, 7, 364),
    (1300, 4, 340),
    # more sections along y, the last one with fewer rows
    (130, 131, 128),
    (67, 222, 260),
    (250, 64, 204),
]


@pytest.mark.parametrize("shape", VOLUMES, ids=str)
@pytest.mark.parametrize("sides", SIDES)
def test_large_fields_of_three_axes(shape, sides):
    here, there = pair(shape, 37.3, boundary=sides_of(sides, 3))

    assert_near(here.step(4), there.step(4))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("r", [0.1, 1000.0])
def test_large_fields_with_source_and_moving_sides(r, dtype):
    boundary = {
        "x-": Robin(0.5, lambda t: np.cos(t / r)),
        "x+": Dirichlet(lambda t: np.sin(t / r)),
        "y-": Dirichlet(lambda t: t / r),
        "y+": Neumann(lambda t: 0.01 * t / r),
        "z": Robin(0.3, lambda t: t / r),
    }
    shape = (352, 11, 356)
    source = 1e-3 / r * np.random.default_rng(4).random(shape)
    here, there = pair(shape, r, boundary=boundary, source=source, dtype=dtype)

    assert_near(here.step(8), there.step(8), 1e-12 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize(
    "shape",
    [
        (360, 9, 1000),
        (700, 6, 720),
        (1024, 6, 344),
        (264, 6, 1400),
        (120, 150, 168),
        (300, 90, 500),
    ],
    ids=str,
)
def test_large_fields_in_float32(shape):
    z, y, x = np.ix_(*(np.linspace(0, 1, n) for n in shape))
    start = 1 + np.sin(9 * x) * np.cos(7 * y) * np.cos(5 * z)
    here, there = pair(shape, 100.0, initial=start, boundary=Neumann(0.0), dtype=np.float32)

    here.step(50)
    there.step(50)

    assert np.linalg.norm(here.u - there.u) < 3e-6 * np.linalg.norm(there.u)


@pytest.mark.filterwarnings("ignore:HeatADI. in two dimensions:RuntimeWarning")
@pytest.mark.parametrize("scheme", ["peaceman-rachford", "douglas-gunn"])
@pytest.mark.parametrize("sides", SIDES)
def test_k_of_the_place(scheme, sides):
    k = np.random.default_rng(3).uniform(0.2, 2, (50, 70))
    here, there = pair((50, 70), scheme=scheme, diffusivity=k, boundary=sides_of(sides, 2))

    assert_near(here.step(50), there.step(50))


# Lines of one chunk, of one block and of clusters of small and large blocks, rows that begin at and
# between sectors.
@pytest.mark.filterwarnings("ignore:HeatADI. in two dimensions:RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape", [(18, 300), (50, 70), (33, 2050), (2050, 33), (1100, 1500), (5000, 40), (24, 9000)]
)
@pytest.mark.parametrize("sides", ["cold", "fluxes", "mixed"])
def test_k_of_the_place_at_any_length(shape, sides, dtype):
    k = np.random.default_rng(3).uniform(0.2, 2, shape)
    options = {"diffusivity": k, "scheme": "peaceman-rachford", "dtype": dtype}
    here, there = pair(shape, boundary=sides_of(sides, 2), **options)

    assert_near(here.step(3), there.step(3), 1e-12 if dtype == np.float64 else 2e-5)


# A solver keeps the factors of its lines from call to call, those of a step of one length.
@pytest.mark.filterwarnings("ignore:HeatADI. in two dimensions:RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(50, 70), (33, 2050), (1100, 1500)])
def test_kept_factors_are_those_of_the_step(shape, dtype):
    k = np.random.default_rng(3).uniform(0.2, 2, shape)
    options = {"diffusivity": k, "scheme": "peaceman-rachford", "dtype": dtype}
    here, there = pair(shape, boundary=sides_of("mixed", 2), **options)
    whole, _ = pair(shape, boundary=sides_of("mixed", 2), **options)

    np.testing.assert_array_equal(here.step(1).step(1).step(2).u, whole.step(4).u)
    there.step(4)
    for dt in (3.0 * here.dt, here.dt):
        here.dt = there.dt = dt
        assert_near(here.step(1).step(1), there.step(2), 1e-12 if dtype == np.float64 else 2e-5)


@pytest.mark.filterwarnings("ignore:HeatADI. in two dimensions:RuntimeWarning")
def test_kept_factors_are_those_of_the_conductivity():
    here, there = pair((50, 70), scheme="peaceman-rachford", diffusivity=lambda T: 1 + 0.1 * T * T)

    for _ in range(4):
        assert_near(here.step(1), there.step(1))


# In planes of many nodes whose rows begin between sectors, long calls have a w with longer rows.
@pytest.mark.filterwarnings("ignore:HeatADI. in two dimensions:RuntimeWarning")
@pytest.mark.parametrize(
    ("shape", "dtype", "has_k"),
    [
        ((777, 12345), np.float64, False),
        ((3000, 5001), np.float32, False),
        ((700, 1501), np.float64, True),
        ((1200, 2047), np.float32, True),
    ],
    ids=str,
)
@pytest.mark.parametrize("sides", ["cold", "fluxes", "mixed"])
def test_rows_between_sectors(shape, dtype, has_k, sides):
    options = {"boundary": sides_of(sides, 2), "dtype": dtype, "scheme": "peaceman-rachford"}
    if has_k:
        options["diffusivity"] = np.random.default_rng(3).uniform(0.2, 2, shape)
    here, there = pair(shape, **options)
    repeated, _ = pair(shape, **options)

    assert_near(here.step(40), there.step(40), 1e-12 if dtype == np.float64 else 2e-5)
    np.testing.assert_array_equal(repeated.step(1).step(36).step(3).u, here.u)


@pytest.mark.filterwarnings("ignore:HeatADI. in two dimensions:RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(50, 70), (20, 3000), (3000, 20)])
def test_constant_keeps_its_bits_with_k_of_the_place(shape, dtype):
    k = np.random.default_rng(3).uniform(0.2, 2, shape)
    options = {"diffusivity": k, "scheme": "peaceman-rachford", "dtype": dtype}
    here, there = pair(shape, initial=273.15, boundary=Neumann(0.0), **options)

    np.testing.assert_array_equal(here.step(5).u, dtype(273.15))
    np.testing.assert_array_equal(there.step(5).u, dtype(273.15))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scheme", ["peaceman-rachford", "douglas-gunn"])
@pytest.mark.parametrize(
    "source",
    [0.01, lambda t: 0.01 * t, lambda x, y: 1e-4 * (x + 2 * y), lambda x, y, t: 1e-5 * x * t],
)
def test_sources(scheme, source, dtype):
    here, there = pair((40, 60), 1.0, scheme=scheme, source=source, dtype=dtype)

    assert_near(here.step(70), there.step(70), 1e-12 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("axes", [2, 3])
def test_moving_sides(axes):
    names = "xyz"[:axes]
    boundary = {
        "x-": Dirichlet(lambda t: np.sin(t / 50)),
        "x+": Robin(0.5, lambda t: np.cos(t / 50)),
        "y-": Neumann(lambda t: 0.01 * t / 50),
        "y+": Dirichlet(lambda t: t / 500),
        "z-": Dirichlet(0.5),
        "z+": Neumann(lambda t: 0.02 * np.sin(t / 50)),
    }
    here, there = pair(
        (20, 30, 40)[-axes:], 3.0, boundary={k: v for k, v in boundary.items() if k[0] in names}
    )

    assert_near(here.step(70), there.step(70))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mapping", ["C1", "C2", "C3", "C4"])
@pytest.mark.parametrize("memory", ["baseline", "texture", "transpose"])
@pytest.mark.parametrize("scheme", ["peaceman-rachford", "wei2013"])
def test_kernels_of_the_paper(scheme, memory, mapping, dtype):
    here, there = pair(
        (70, 130),
        scheme=scheme,
        boundary=sides_of("hot", 2),
        kernels="wei2013",
        memory=memory,
        mapping=mapping,
        dtype=dtype,
    )

    assert_near(here.step(10), there.step(10), 1e-12 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("mapping", ["C1", "C2", "C3", "C4"])
@pytest.mark.parametrize("memory", ["baseline", "texture", "transpose"])
@pytest.mark.parametrize("block", [32, 64, 128, 256, 512])
def test_blocks_of_the_paper(block, memory, mapping):
    options = {"kernels": "wei2013", "block": block, "memory": memory, "mapping": mapping}
    here, there = pair((300, 1100), **options)

    assert_near(here.step(3), there.step(3))


# A block of 32 threads holds 128 rows of float64 and 256 of float32: 1, 2, 4, 8 and 16 chunks of
# the lines along y, which no power of two divides.
@pytest.mark.parametrize("rows", [126, 201, 451, 1001, 1100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("memory", ["baseline", "texture", "transpose"])
@pytest.mark.parametrize("mapping", ["C1", "C2", "C3", "C4"])
def test_chunks_of_a_line(mapping, memory, dtype, rows):
    options = {"mapping": mapping, "memory": memory, "dtype": dtype, "block": 32}
    sides = sides_of("hot", 2)
    here, there = pair((rows + 2, 39), 3.0, kernels="wei2013", boundary=sides, **options)

    assert_near(here.step(4), there.step(4), 1e-12 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("periodic", [False, True], ids=["open", "periodic"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("mapping", ["C1", "C3"])
def test_one_block_solves_a_system_that_it_does_not_hold(mapping, dtype, periodic):
    rng = np.random.default_rng(3)
    lower, upper, rhs = (rng.uniform(-1, 1, (3, 20_011)).astype(dtype) for _ in range(3))
    operands = lower, (abs(lower) + abs(upper) + 1).astype(dtype), upper, rhs
    options = {"periodic": periodic, "device": "cuda", "return_info": True}

    x, info = wei2013.solve_tridiagonal(*operands, mapping=mapping, **options)

    expected = solve_tridiagonal(*operands, periodic=periodic)
    np.testing.assert_allclose(x, expected, rtol=0, atol=100 * np.finfo(dtype).eps)
    assert info.kernel == f"pcr {mapping} in chunks"


def test_stages_are_measured_when_asked_for():
    options = {"device": "cuda", "boundary": 0.0}
    quiet, timed, of_paper = (
        wei2013.HeatADI((64, 64), 0.1, 0.1, **options, **more).step(3).result()
        for more in ({}, {"timed": True}, {"timed": True, "kernels": "wei2013"})
    )

    assert sum(quiet.seconds.values()) == 0
    assert timed.seconds["x"] > 0  # with those of y, if one kernel makes the step
    assert of_paper.seconds["x"] > 0
    assert of_paper.seconds["y"] > 0
    assert timed.backend == "cuda"


def test_stages_of_large_fields_are_two():
    timed = (
        wei2013.HeatADI((128, 128, 128), 0.1, 0.1, device="cuda", timed=True, boundary=0.0)
        .step(3)
        .result()
    )

    assert {stage for stage, time in timed.seconds.items() if time > 0} >= {"x", "z"}
    assert timed.seconds["y"] == 0


def test_state_goes_from_device_to_host(tmp_path):
    here, there = pair((100, 90))
    here.step(10).save(tmp_path / "state.npz")

    loaded = HeatADI.load(tmp_path / "state.npz", boundary=0.0).step(10)

    assert_near(loaded, there.step(20))


@pytest.mark.parametrize("sides", ["fluxes", "values in time"])
@pytest.mark.parametrize("shape", [(70, 50), (1100, 72), (40, 33, 24), (520, 24, 360)], ids=str)
@pytest.mark.parametrize("data", [{}, {"diffusivity": lambda x: 2 + np.sin(x)}], ids=["1", "k"])
def test_fields_without_their_outer_layers(shape, sides, data):
    """The sides of the first axis, where layers are left out, are fluxes."""
    axes, lost = len(shape), (9, 4)
    boundary = sides_of("fluxes", axes)
    if sides != "fluxes":
        boundary |= {"x-": Dirichlet(lambda y, t: np.cos(t) * y), "x+": Dirichlet(0.5)}
    found = []
    for solver in pair(
        shape, boundary=boundary, scheme="douglas-gunn", source=lambda y, t: t * y, **data
    ):
        state = solver._runner.state
        state.prepare(0, 3)
        made = np.zeros(1, np.int64)
        state.step(1, is_fresh=True, made=made, measures=False)
        state.step(2, is_fresh=False, made=made, first=1, lost=lost)
        found.append((state.t.copy(), state.largest))
    (here, largest_here), (there, largest_there) = found
    scale = np.abs(there).max()
    np.testing.assert_allclose(here, there, rtol=0, atol=1e-12 * scale)
    np.testing.assert_allclose(largest_here, largest_there, rtol=1e-12)
    inner = there[lost[0] : shape[0] - lost[1]]
    np.testing.assert_allclose(largest_there, np.abs(inner).max(), rtol=1e-14)
