"""FastPoisson on a GPU has the solutions of the CPU, with every transform and array library."""

from concurrent.futures import ThreadPoolExecutor

import gpu_libraries
import numpy as np
import pytest
from poisson_pairs import (
    ONE_AXIS,
    PAIRS,
    check_ocean,
    check_one_axis,
    check_same_solution,
    halvings_of,
    near,
    packed_of,
    right_side,
    set_least_in_parts,
    set_least_longer,
    set_mirrored,
    set_no_graphs,
    set_panel,
    solvers,
)
from poisson_random import check_random_problems, check_random_sides
from poisson_reference import require_small_residual

from pysolvers import FastPoisson, Neumann


def in_turn(choices, *places):
    """Return one of the choices: the sum of the places of some values in their lists decides."""
    return choices[sum(list(values).index(value) for values, value in places) % len(choices)]


def check_residual(solver, f):
    require_small_residual(solver, solver.solve(f), f)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("x", PAIRS)
@pytest.mark.parametrize("y", PAIRS)
@pytest.mark.parametrize("grid", ["nodes", "cells"])
def test_rectangle_is_that_of_the_cpu(rng, grid, y, x, dtype):
    for shape in ((9, 7), (34, 65) if grid == "nodes" else (33, 40)):
        check_same_solution(rng, shape, [y, x], grid=grid, dtype=dtype)


@pytest.mark.parametrize("panel", [1000, 1 << 24])
@pytest.mark.parametrize("y", PAIRS)
@pytest.mark.parametrize("z", PAIRS)
@pytest.mark.parametrize("grid", ["nodes", "cells"])
def test_box_is_that_of_the_cpu(monkeypatch, rng, grid, z, y, panel):
    set_panel(monkeypatch, panel)
    ends = ("DN", "PP") if panel == 1000 else ("PP", "DN")
    for shape, x in zip(((6, 7, 9), (16, 12, 33)), ends, strict=True):
        check_same_solution(rng, shape, [z, y, x], grid=grid)


@pytest.mark.parametrize("x", PAIRS)
def test_interval_is_that_of_the_cpu(rng, x):
    check_same_solution(rng, (100,), [x])


@pytest.mark.parametrize("y", PAIRS)
def test_stretched_rectangle_is_that_of_the_cpu(rng, y):
    check_same_solution(rng, (30, 40), [y, "ND"], x=np.cumsum(rng.uniform(0.1, 1, 40)))


GRIDS = [
    ("cells", (2048, 2048)),
    ("nodes", (2049, 1025)),
    ("cells", (1023, 700)),
    ("cells", (128, 96, 256)),
    ("nodes", (65, 130, 129)),
]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(("grid", "shape"), GRIDS)
def test_residual_is_of_the_size_of_rounding_errors(rng, grid, shape, pair):
    dtype = in_turn(("float32", "float64"), (PAIRS, pair), (GRIDS, (grid, shape)))
    ends = [*[pair] * (len(shape) - 1), "DN"]
    (there,) = solvers(rng, shape, ends, grid=grid, dtype=dtype, on=("cuda",))
    f = right_side(rng, shape, dtype)

    check_residual(there, f)


LARGE = [(2040, 6499), (2040, 6500), (509, 163, 165), (509, 162, 164)]


@pytest.mark.parametrize("pair", ["DD", "NN", "PP"])
@pytest.mark.parametrize("shape", LARGE)
def test_residual_of_waves_larger_than_the_cache(rng, shape, pair):
    """More than 48 MB of waves; rows of several tiles that begin at any place of a sector."""
    dtype = in_turn(("float32", "float64"), (("DD", "NN", "PP"), pair), (LARGE, shape))
    (there,) = solvers(rng, shape, [pair] * len(shape), grid="cells", dtype=dtype, on=("cuda",))
    f = right_side(rng, shape, dtype)

    check_residual(there, f)


FIRST = ["DD", "ND", "NN", "PP"]
PACKED = [
    (2, 40),
    (16, 100),
    (257, 64),
    (600, 33),
    (1024, 1024),
    (2500, 66),
    (4096, 130),
    (5000, 31),
    (8192, 20),
    (64, 2, 3),
    (100, 31, 34),
    (512, 16, 64),
    (1500, 5, 12),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("shape", PACKED)
def test_packed_waves_of_any_length(rng, shape, first, dtype):
    other = in_turn(("DD", "NN", "PP"), (PACKED, shape), (FIRST, first))
    ends = [first, *[other] * (len(shape) - 1)]
    (there,) = solvers(rng, shape, ends, grid="cells", dtype=dtype, on=("cuda",))

    assert packed_of(there) is not None
    check_residual(there, right_side(rng, shape, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("x", ["DD", "NN", "PP"])
@pytest.mark.parametrize("y", ["DD", "ND", "NN", "PP"])
@pytest.mark.parametrize("shape", [(5, 4), (33, 65), (1025, 1025), (4097, 34), (100, 2500)])
def test_packed_waves_of_nodes(rng, shape, y, x, dtype):
    (there,) = solvers(rng, shape, [y, x], dtype=dtype, on=("cuda",))

    assert packed_of(there) is not None
    check_residual(there, right_side(rng, shape, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("x", ["DD", "NN"])
@pytest.mark.parametrize("y", ["DD", "ND", "NN", "PP"])
@pytest.mark.parametrize("halvings", range(4))
def test_packed_waves_of_nodes_in_parts(monkeypatch, rng, halvings, y, x, dtype):
    """Lines of nodes in as many parts as their intervals have factors of 2, the last one odd."""
    set_least_in_parts(monkeypatch, 0)
    for size in (3, 5, 129, 515):
        shape = (40, (size << halvings) + 1)
        here, there = solvers(rng, shape, [y, x], dtype=dtype)
        f = right_side(rng, shape, dtype)

        near(there.solve(f), here.solve(f), here)
    (there,) = solvers(rng, (700, 2001), [y, x], dtype=dtype, on=("cuda",))
    assert halvings_of(there) == 3
    check_residual(there, right_side(rng, (700, 2001), dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("first", [1e-4, 1e-2, 1e2, 1e4])
@pytest.mark.parametrize("y", ["DD", "ND", "NN", "PP"])
@pytest.mark.parametrize("grid", ["nodes", "cells"])
def test_packed_waves_of_long_and_short_cells(rng, grid, y, first, dtype):
    ends = [y, "NN"]
    (there,) = solvers(rng, (300, 50), ends, grid=grid, dtype=dtype, first=first, on=("cuda",))

    assert packed_of(there) is not None
    check_residual(there, right_side(rng, (300, 50), dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", [0, 1, 31, 2047, 4095])
@pytest.mark.parametrize("y", ["DD", "DN"])
def test_packed_waves_of_one_row(rng, y, row, dtype):
    """A right side in one row has a large solution next to small ones."""
    (there,) = solvers(rng, (4096, 40), [y, "NN"], grid="cells", dtype=dtype, on=("cuda",))
    f = np.zeros((4096, 40), dtype)
    f[row] = 1

    check_residual(there, f)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("first", "exponent"),
    [(first, e) for first in ("NN", "PP") for e in (0, 2, 4, 8)]
    + [(first, e) for first in ("ND", "DN") for e in (-8, -4, -2, 0, 2, 4, 8)],
)
@pytest.mark.parametrize("grid", ["nodes", "cells"])
def test_packed_waves_of_any_ratio_of_the_spacings(grid, first, exponent, dtype):
    """A long wave along x: its eigenvalue is not lost in lines with fine cells.

    With a Dirichlet side the constant wave may have a much larger solution than the long one, by
    (length along y / length along x)^2, so that rounding errors of the transform along x that are
    constant would fill the solution of the long wave alone: f has both, and no values that cancel.
    Without one, and cells that are fine along x, f cannot be so.
    """
    kinds = {"N": Neumann(), "D": 0.0, "P": "periodic"}
    boundary = {"y" + sign: kinds[end] for end, sign in zip(first, "-+", strict=True)}
    boundary["x"] = Neumann()
    options = {"boundary": boundary, "grid": grid, "on_incompatible": "ignore"}
    for rows in (33, 500, 3000):
        shape, step = (rows, 64), 10.0**exponent  # the spacing along x
        places = np.arange(64) / 63 if grid == "nodes" else (np.arange(64) + 0.5) / 64
        f = np.ones((rows, 1)) * (np.cos(np.pi * places) + ("D" in first))
        here = FastPoisson(shape, (step, 1.0), **options)
        there = FastPoisson(shape, (step, 1.0), dtype=dtype, device="cuda", **options)
        expected = here.solve(f.astype(dtype))
        u = there.solve(f.astype(dtype))
        most = 50 if first in ("NN", "PP") else max(50, rows / 20)
        error = np.abs(u - expected).max() / np.abs(expected).max()
        assert error <= most * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("exponent", range(-8, 9, 2))
@pytest.mark.parametrize("x", ["NN", "PP", "ND", "DD"])
def test_lines_of_any_ratio_of_the_spacings(x, exponent, dtype):
    """The longest wave, in lines that are not packed because the spacing along x changes.

    It lies along the axis of the larger spacing: waves of rounding errors along it have smaller
    solutions.
    """
    kinds = {"N": Neumann(), "D": 0.0, "P": "periodic"}
    boundary = {"x" + sign: kinds[end] for end, sign in zip(x, "-+", strict=True)}
    boundary["y"] = Neumann()
    options = {"boundary": boundary, "grid": "cells", "on_incompatible": "ignore"}
    for rows in (33, 500, 3000):
        layers = np.linspace(1, 2, rows)
        faces = np.concatenate([[0], np.cumsum(layers)])
        places = (faces[1:] + faces[:-1]) / (2 * faces[-1])
        along_x = {
            "NN": np.cos(np.pi * places),
            "PP": np.cos(2 * np.pi * places),
            "ND": np.cos(np.pi / 2 * places),
            "DD": np.sin(np.pi * places),
        }[x]
        along_y = np.cos(np.pi / 64 * (np.arange(64) + 0.5))
        wave = np.ones((64, 1)) * along_x if exponent <= 0 else along_y[:, None] * np.ones(rows)
        grid = (64, rows), (faces, 10.0**exponent)
        f = wave.astype(dtype)
        u = FastPoisson(*grid, dtype=dtype, device="cuda", **options).solve(f)
        if exponent > 0 and "D" not in x:
            expected = -wave / (2 / 10.0**exponent * np.sin(np.pi / 128)) ** 2
        else:
            expected = FastPoisson(*grid, **options).solve(f.real.astype(float))
        error = np.abs(u - expected).max() / np.abs(expected).max()
        assert error <= max(100, rows / 10) * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("ends", ["NN", "DN", "ND", "PP"])
def test_thin_layers_of_an_ocean(ends, dtype):
    check_ocean(ends, dtype, 256, 50)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("case", ONE_AXIS)
def test_one_axis_of_lines_and_batches(rng, case, dtype):
    check_one_axis(rng, case, dtype)


def test_axis_too_long_for_packed_waves(rng):
    (there,) = solvers(rng, (20000, 33), ["DD", "NN"], grid="cells", on=("cuda",))

    assert packed_of(there) is None
    check_residual(there, right_side(rng, (20000, 33)))


def test_arrays_of_a_library_stay_on_the_device(library, rng):
    here, there = solvers(rng, (40, 50), ["DN", "DD"])
    f = right_side(rng, (40, 50))
    expected = here.solve(f)
    array = library.array(f)

    u = there.solve(array)

    assert library.is_kind(u)
    near(library.get(u), expected, here)
    np.testing.assert_array_equal(library.get(array), f)


def test_result_goes_to_out(mutable, rng):
    here, there = solvers(rng, (40, 50), ["PP", "DD"])
    f = right_side(rng, (40, 50))
    array, out = mutable.array(f), mutable.array(np.zeros((40, 50)))

    assert there.solve(array, out=out) is out
    near(mutable.get(out), here.solve(f), here)
    there.solve(array, out=array)
    near(mutable.get(array), here.solve(f), here)


def test_current_stream_is_used_and_not_waited_for(streaming, rng):
    here, there = solvers(rng, (40, 50), ["DD", "DD"])
    f = right_side(rng, (40, 50))
    value, array = streaming.array(f), streaming.array(np.zeros((40, 50)))
    out = streaming.array(np.zeros((40, 50)))
    there.solve(value, out=out)  # what is done once
    stream = streaming.stream()

    with streaming.current(stream), gpu_libraries.delayed(streaming.address(stream)):
        streaming.assign(array, value)
        there.solve(array, out=out)
        returned_early = not streaming.is_done(stream)
        twice = out + out

    stream.synchronize()
    near(streaming.get(twice), 2 * here.solve(f), here)
    assert returned_early


@pytest.mark.parametrize("pair", ["DD", "NN", "PP"])
def test_solve_is_captured_in_a_graph(rng, pair):
    cupy = pytest.importorskip("cupy")
    here, there = solvers(rng, (40, 50), [pair, pair])
    array, out = cupy.zeros((40, 50)), cupy.zeros((40, 50))
    there.solve(array, out=out)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        there.solve(array, out=out)
        graph = stream.end_capture()

    for _ in range(3):
        f = right_side(rng, (40, 50))
        array[...] = cupy.asarray(f)
        cupy.cuda.Device().synchronize()
        graph.launch(stream)
        stream.synchronize()
        near(out.get(), here.solve(f), here)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(("grid", "intervals"), [("nodes", 17), ("nodes", 263), ("cells", 1023)])
@pytest.mark.parametrize("ends", ["DD", "NN"])
def test_slow_lengths_as_a_part_of_a_longer_grid(monkeypatch, rng, ends, grid, intervals, dtype):
    """Sides along x of one kind; along y of two kinds, or also Neumann."""
    set_least_longer(monkeypatch, 0)
    set_least_in_parts(monkeypatch, 0)
    shape = (300, intervals + (grid == "nodes"))
    for y, spacing in (("DN", 0.5), ("DN", 0.02), ("NN", 0.5)):
        options = {"grid": grid, "dtype": dtype, "first": 300.0 / shape[1], "x": spacing}
        here, there = solvers(rng, shape, (y, ends), **options)
        f = right_side(rng, shape, dtype)
        expected = here.solve(f)

        near(there.solve(f), expected, here)
        near(there.solve(np.stack([f, 2 * f]))[1], here.solve(2 * f), here)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("grid", ["nodes", "cells"])
@pytest.mark.parametrize("ends", [("DN", "DD", "DD"), ("NN", "NN", "NN"), ("PP", "NN", "DD")])
@pytest.mark.parametrize("shape", [(20, 70, 81), (33, 40, 131), (20, 73, 81)])
def test_products_of_both_axes_of_a_plane(monkeypatch, streaming, rng, shape, ends, grid, dtype):
    set_mirrored(monkeypatch)
    here, there = solvers(rng, shape, ends, grid=grid, dtype=dtype)
    f = right_side(rng, shape, dtype)
    expected = here.solve(f)

    near(there.solve(f), expected, here)
    assert there.methods == {"z": "lines", "y": "eigenvectors", "x": "eigenvectors"}
    array, out = streaming.array(f), streaming.array(np.zeros(shape, dtype))
    for _ in range(4):  # then a graph
        there.solve(array, out=out)
        near(streaming.get(out), expected, here)


@pytest.mark.parametrize("shape", [(24, 41), (20, 34, 41)])
def test_sides_of_large_fields_are_copied_at_the_same_time(monkeypatch, streaming, rng, shape):
    """Fields that are too large for a graph."""
    set_no_graphs(monkeypatch)
    here, there = solvers(rng, shape, ["DD"] * len(shape))
    f = right_side(rng, shape)
    expected = here.solve(f)
    array, out = streaming.array(f), streaming.array(np.zeros(shape))

    for _ in range(5):
        streaming.assign(out, streaming.array(np.zeros(shape)))
        there.solve(array, out=out)
        near(streaming.get(out), expected, here)
    there.solve(array, out=array)
    near(streaming.get(array), expected, here)


def test_several_threads_solve_at_once(rng):
    here, there = solvers(rng, (100, 80), ["NN", "DD"])
    many = [right_side(rng, (100, 80)) for _ in range(20)]

    with ThreadPoolExecutor(max_workers=4) as pool:
        for u, f in zip(pool.map(there.solve, many), many, strict=True):
            near(u, here.solve(f), here)


@pytest.mark.parametrize("grid", ["cells", "nodes", "periodic"])
@pytest.mark.parametrize("shape", [(24, 41), (12, 10, 16)])
def test_repeated_solves_of_small_fields(monkeypatch, streaming, rng, shape, grid):
    """From the third call with the same arrays on, a graph of the work is launched."""
    set_least_in_parts(monkeypatch, 0)
    options = {"boundary": "periodic"} if grid == "periodic" else {"grid": grid, "boundary": 0.0}
    solver = FastPoisson(shape, 0.1, device="cuda", on_incompatible="ignore", **options)
    fields = [streaming.array(rng.standard_normal(shape)) for _ in range(3)]
    expected = [streaming.get(solver.solve(f)) for f in fields]
    outs = [streaming.array(np.zeros(shape)) for _ in range(12)]
    f = streaming.array(np.zeros(shape))

    for out in outs:  # more arrays than graphs are kept
        for field, x in zip(fields * 2, expected * 2, strict=True):
            streaming.assign(f, field)
            assert solver.solve(f, out=out) is out
            np.testing.assert_array_equal(streaming.get(out), x)
    for field, x in zip(fields, expected, strict=True):
        streaming.assign(f, field)
        for _ in range(4):
            np.testing.assert_array_equal(streaming.get(solver.solve(f)), x)
    for _ in range(4):  # in place
        streaming.assign(f, fields[0])
        solver.solve(f, out=f)
        np.testing.assert_array_equal(streaming.get(f), expected[0])


def test_repeated_solves_on_a_longer_grid(monkeypatch, streaming, rng):
    """263 intervals: the graph has products of cuBLAS."""
    set_least_longer(monkeypatch, 0)
    set_least_in_parts(monkeypatch, 0)
    solver = FastPoisson((300, 264), 0.1, boundary=0.0, device="cuda")
    f, out = (streaming.array(rng.standard_normal((300, 264))) for _ in range(2))
    expected = streaming.get(solver.solve(f))

    for _ in range(5):
        solver.solve(f, out=out)
        error = np.abs(streaming.get(out) - expected).max()
        assert error <= 1e-13 * np.abs(expected).max()


def test_threads_that_repeat_solves_on_their_own_streams(streaming, rng):
    solver = FastPoisson((48, 64), 0.1, boundary=0.0, grid="cells", device="cuda")
    hosts = rng.standard_normal((6, 48, 64))
    expected = [streaming.get(solver.solve(streaming.array(f))) for f in hosts]
    f, out = streaming.array(hosts[0]), streaming.array(hosts[0])

    def repeat(number):
        own, target = streaming.array(hosts[number]), streaming.array(hosts[number])
        with streaming.current(streaming.stream()):
            for _ in range(30):
                solver.solve(own, out=target)
                if not np.array_equal(streaming.get(target), expected[number]):
                    return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(repeat, range(6)))
    for _ in range(5):  # one graph on many streams, one after the other
        with streaming.current(streaming.stream()):
            solver.solve(f, out=out)
            np.testing.assert_array_equal(streaming.get(out), expected[0])


def test_random_problems_have_the_exact_solution(rng):
    check_random_problems(rng, 40, device="cuda")


def test_values_of_sides_have_the_exact_solution(rng):
    check_random_sides(rng, 40, device="cuda")
