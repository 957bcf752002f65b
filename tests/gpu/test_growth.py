"""Systems whose solutions grow along the rows, on a device.

The chunks of the pivoted solver are nearly singular one by one for such systems, though the whole
is well conditioned. The solver measures the growth of the entries of its rows, eliminates chunks
with growth once more from the middle row outwards, puts the solutions of systems that are doubtful
nevertheless into their rows, and solves those that miss them a second time, in order
(cuda/lines/pivoted/pivoted.cuh). The gate is that of the CPU: the normwise backward error
max |r| / max (|A| |x| + |b|) is at most 10 times LAPACK's on the same draw or 20 eps, and 50 eps
for periodic systems. PYSOLVERS_RANDOM_SEED chooses other draws.
"""

import itertools
import os
import warnings

import growth_families
import numpy as np
import oracle
import pytest

import pysolvers

SEED = int(os.environ.get("PYSOLVERS_RANDOM_SEED", "20240607"))
DTYPES = [np.dtype(dtype).name for dtype in oracle.DTYPES]
CHUNK = 33  # most rows of a chunk
SIZES = [1, 2, 3, *range(CHUNK - 1, CHUNK + 3), 64, 129, 300, 1000]
LONG = [2112, 2113, 9000, 40_000]  # a block and more, clusters, and three passes
GROWING = ("uniform constant", "advection", "piecewise", "changed row")


@pytest.fixture(scope="module")
def cupy():
    return pytest.importorskip("cupy")


def solve(cupy, system, axis=-1, out=None, **options):
    """Return the solution of systems of shape (systems, rows), and its info."""
    options.setdefault("on_singular", "ignore")
    arrays = [cupy.asarray(np.ascontiguousarray(np.moveaxis(a, -1, axis))) for a in system]
    if out == "rhs":
        out = arrays[3]
    x, info = pysolvers.solve_tridiagonal(*arrays, axis=axis, out=out, return_info=True, **options)
    return np.moveaxis(x.get(), axis, -1), info


def solve_counted(cupy, system, axis=-1, **options):
    """Like `solve`, of which the device does not count what it did: it would have to wait."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pysolvers.SingularSystemWarning)
        return solve(cupy, system, axis, on_singular="warn", **options)


def bars(system):
    """Return what the backward errors may be, and which systems have an ordinary answer.

    A solution near overflow is not: it is that of a matrix whose inverse has entries as large, and
    another one with a small backward error may be 1 / eps times as large.
    """
    eps = oracle.eps(system[3].dtype)
    with np.errstate(all="ignore"):
        lapack = oracle.gtsv_batch(*system)
        largest = np.finfo(system[3].dtype).max * eps
        ordinary = np.max(np.abs(lapack), axis=-1) <= largest
    return np.maximum(10 * oracle.backward_errors(*system, lapack)[0], 20 * eps), ordinary


def check(system, x, *, periodic=False, text=""):
    if periodic:
        bar, judged = (
            50 * oracle.eps(x.dtype),
            np.array(
                [
                    oracle.condition(*(a[k] for a in system[:3]), periodic=True) < 1e5
                    for k in range(len(x))
                ]
            ),
        )
    else:
        bar, judged = bars(system)
    errors = oracle.backward_errors(*system, x, periodic=periodic)[0]
    bad = np.flatnonzero(judged & ~(errors <= bar))
    assert not len(bad), f"{text}: seed {SEED}, systems {bad[:5]}, errors {errors[bad[:5]]}"


@pytest.mark.parametrize("family", growth_families.FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_backward_error_is_that_of_lapack(cupy, dtype, family):
    for rows, pivot in zip(SIZES, itertools.cycle((True, True, None))):
        system = growth_families.draw(family, dtype, rows, 40, [SEED, rows])
        for axis in (-1, 0):
            x, _ = solve(cupy, system, axis, pivot=pivot)
            check(system, x, text=f"{rows} rows, axis {axis}")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", range(3 * CHUNK, 4 * CHUNK))
def test_every_remainder_of_a_chunk(cupy, dtype, rows):
    for family in ("uniform constant", "changed row"):
        system = growth_families.draw(family, dtype, rows, 50, [SEED, 1])
        check(system, solve(cupy, system, pivot=True)[0], text=family)


@pytest.mark.parametrize("rows", LONG)
@pytest.mark.parametrize("dtype", DTYPES)
def test_long_systems(cupy, dtype, rows):
    for family in GROWING:
        system = growth_families.draw(family, dtype, rows, 9, [SEED, 2])
        for axis in (-1, 0) if family in GROWING[:2] else (-1,):
            x, _ = solve(cupy, system, axis, pivot=True)
            check(system, x, text=f"{family}, axis {axis}")
            in_place, _ = solve(cupy, system, axis, pivot=True, out="rhs")
            np.testing.assert_array_equal(in_place, x)


@pytest.mark.parametrize("rows", [701, 1999, 2112, 2113, 3000])
@pytest.mark.parametrize("dtype", DTYPES[:2])
@pytest.mark.parametrize("pivot", [True, None])
def test_wide_tiles_of_systems_side_by_side(cupy, dtype, rows, pivot):
    """Clusters and passes with tiles of several sectors, the last of which is not full."""
    for family in ("uniform constant", "scaled", "changed row"):
        system = growth_families.draw(family, dtype, rows, 70, [SEED, 4])
        x, _ = solve(cupy, system, 0, pivot=pivot)
        check(system, x, text=family)
        in_place, _ = solve(cupy, system, 0, pivot=pivot, out="rhs")
        np.testing.assert_array_equal(in_place, x)


@pytest.mark.parametrize(
    ("rows", "more"),
    [*((rows, 5) for rows in (7, 8, 9, 33, 100, 201, 400, 1001)), (64, 12), (201, 20), (1001, 12)],
)
@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_many_systems_side_by_side(cupy, dtype, rows, more):
    """Two threads solve each system of 8 to 4096 rows in order, others have chunks.

    Where the number of systems is a multiple of 4, rows begin at 16 bytes and come through a ring.
    """
    systems = 48 * cupy.cuda.Device().attributes["MultiProcessorCount"] + more
    index = np.arange(systems) % 60
    for family in ("uniform constant", "scaled", "changed row"):
        few = growth_families.draw(family, dtype, rows, 60, [SEED, 11])
        system = [a[index] for a in few]
        x, _ = solve_counted(cupy, system, 0, pivot=True)
        check(few, x[:60], text=family)
        np.testing.assert_array_equal(x, x[:60][index])
        in_place, _ = solve(cupy, system, 0, pivot=True, out="rhs")
        np.testing.assert_array_equal(in_place, x)


@pytest.mark.parametrize("offsets", [(0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 3, 2)])
@pytest.mark.parametrize(
    ("rows", "gap"),
    [
        *((rows, 0) for rows in (8, 9, 33, 64, 80, 100, 129, 201)),
        *((rows, 3) for rows in (64, 128)),
        (129, 4),
    ],
)
@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_many_short_systems_of_contiguous_rows(cupy, dtype, rows, gap, offsets):
    """Two lanes solve each system in order, wherever the operands begin in 16 bytes.

    There are more than twice as many systems as the device holds at once. Longer systems are solved
    in chunks; those of them that are solved a second time can have other bits in another tile.
    """
    held = min(32 * 16, 256 * 1024 // (16 * rows))
    systems = 2 * held * cupy.cuda.Device().attributes["MultiProcessorCount"] + 5
    index = cupy.arange(systems) % 60

    def spread(few, offset):
        memory = cupy.zeros(systems * (rows + gap) + offset, dtype)
        wide = memory[offset:].reshape(systems, rows + gap)[:, :rows]
        wide[...] = cupy.asarray(few)[index]
        return wide

    for family in ("uniform constant", "scaled", "changed row"):
        few = growth_families.draw(family, dtype, rows, 60, [SEED, 15])
        arrays = [spread(a, offset) for a, offset in zip(few, offsets, strict=True)]
        x = pysolvers.solve_tridiagonal(*arrays, pivot=True, on_singular="ignore")
        check(few, x[:60].get(), text=family)
        if rows <= (129 if dtype == "float64" else 201):
            cupy.testing.assert_array_equal(x, x[:60][index])
        else:
            for first in range(0, systems - 60, 60 * 50):
                check(few, x[first : first + 60].get(), text=family)
        pysolvers.solve_tridiagonal(*arrays, pivot=True, on_singular="ignore", out=arrays[3])
        cupy.testing.assert_array_equal(arrays[3], x)


@pytest.mark.parametrize("rows", [128, 129, 512, 3001])
@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_solutions_that_neither_grow_nor_decay_among_many_side_by_side(cupy, dtype, rows):
    """A carried row is exchanged with row after row and hardly changes, nor do its rounding errors.

    One root of the characteristic polynomial is 1 or -1. Where these errors add up, one system of
    50 of 512 rows has a backward error above the gate, one of 5 of 3001 rows.
    """
    number, rng = 300, np.random.default_rng([SEED, 14, rows])
    systems = 40 * cupy.cuda.Device().attributes["MultiProcessorCount"]
    z, w = rng.choice([-1.0, 1.0], number), rng.uniform(-1, 1, number)
    w = np.where(rng.random(number) < 0.5, w, 1 / w)
    upper = rng.uniform(-1, 1, number) / np.maximum(1, np.abs(w))
    matrix = [np.repeat(a[:, None], rows, 1) for a in (upper * z * w, -upper * (z + w), upper)]
    few = [np.array(a, dtype) for a in (*matrix, rng.uniform(-1, 1, (number, rows)))]
    index = np.arange(max(systems, number)) % number
    x, _ = solve(cupy, [a[index] for a in few], 0, pivot=True)
    check(few, x[:number])
    np.testing.assert_array_equal(x, x[:number][index])


@pytest.mark.parametrize("rows", [8, 100, 512, 1500])
@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_pivots_near_underflow_among_many_side_by_side(cupy, rng, dtype, rows):
    """They have no fast reciprocal: their systems, and no others, are solved a second time."""
    systems = 48 * cupy.cuda.Device().attributes["MultiProcessorCount"] + 5
    index = np.arange(systems) % 60
    few = [np.array(a, dtype) for a in oracle.dominant(rng, (60, rows), np.dtype(dtype))]
    for a in few:
        a[7] *= np.finfo(dtype).tiny ** 0.8
    x, info = solve_counted(cupy, [a[index] for a in few], 0, pivot=True)
    check(few, x[:60])
    np.testing.assert_array_equal(x, x[:60][index])
    assert info.repeated == np.count_nonzero(index == 7)


def test_singular_systems_among_many_side_by_side(cupy):
    systems = 48 * cupy.cuda.Device().attributes["MultiProcessorCount"] + 5
    few = growth_families.draw("uniform", "float64", 300, 60, [SEED, 12])
    system = [a[np.arange(systems) % 60] for a in few]
    for a in system[:3]:
        a[[0, 33, systems - 1], 100] = 0
    with pytest.raises(pysolvers.SingularSystemError) as caught:
        solve(cupy, system, 0, pivot=True, on_singular="raise")
    assert caught.value.systems.ravel().tolist() == [0, 33, systems - 1]
    assert caught.value.rows.tolist() == [299] * 3
    x, _ = solve(cupy, system, 0, pivot=True)
    others = np.setdiff1d(np.arange(60), [0, 33])
    check([a[others] for a in system], x[others])


@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_many_systems_on_a_middle_axis(cupy, dtype):
    """Neighbouring lanes have systems of different planes, and each operand has its own strides."""
    planes, columns, rows = 97, 101, 150
    rng = np.random.default_rng([SEED, 13])
    few = [np.array(a, dtype) for a in oracle.dominant(rng, (64, rows), np.dtype(dtype))]
    index = np.arange(planes * columns).reshape(planes, columns) % 64
    arrays = [cupy.asarray(a)[cupy.asarray(index)].swapaxes(1, 2) for a in few]
    wide = cupy.zeros((planes, rows, 2 * columns), dtype)
    wide[:, :, ::2] = arrays[0]
    arrays[0] = wide[:, :, ::2]
    arrays[3] = cupy.ascontiguousarray(arrays[3])
    x = pysolvers.solve_tridiagonal(*arrays, axis=1, pivot=True, out=cupy.empty_like(arrays[3]))
    x = x.get().swapaxes(1, 2).reshape(-1, rows)
    check(few, x[:64])
    np.testing.assert_array_equal(x, x[:64][index.ravel()])


@pytest.mark.parametrize("rows", [5, 33, 64, 500, 1000, 3000])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pivot", [True, None])
def test_in_place_and_the_number_of_second_solves(cupy, dtype, rows, pivot):
    parts = [
        growth_families.draw(family, dtype, rows, 30, [SEED, 3]) for family in ("scaled", "uniform")
    ]
    system = [np.concatenate(part) for part in zip(*parts, strict=True)]
    for axis in (-1, 0):
        x, info = solve_counted(cupy, system, axis, pivot=pivot)
        again, _ = solve(cupy, system, axis, pivot=pivot, out="rhs")
        np.testing.assert_array_equal(again, x)
        assert info.repeated <= info.pivoted <= 60
        if rows >= 500:
            assert info.repeated > 0


@pytest.mark.parametrize("rows", [100, 1000, 3000, 40_000])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mirrored", [False, True])
def test_chunks_with_growth_are_eliminated_from_the_middle(cupy, dtype, rows, mirrored):
    """Well-conditioned, not dominant: elimination in order lets the entries of chunks grow."""
    rhs = oracle.uniform(np.random.default_rng([SEED, 10]), (40, rows), np.dtype(dtype))
    lower, diag, upper = (np.full(rhs.shape, a, dtype) for a in (0.696, 0.679, -0.732))
    if mirrored:
        lower, upper = upper, lower
    system = [lower, diag, upper, rhs]
    axis = -1 if mirrored == (dtype in DTYPES[:2]) else 0  # along both in each type
    x, info = solve_counted(cupy, system, axis, pivot=True)
    assert info.repeated == 0
    check(system, x, text=f"axis {axis}")
    in_place, _ = solve(cupy, system, axis, pivot=True, out="rhs")
    np.testing.assert_array_equal(in_place, x)


@pytest.mark.parametrize("rows", [33, 64, 1000, 3000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dominant_and_oscillating_systems_are_solved_once(cupy, rng, dtype, rows):
    system = [np.asarray(a, dtype) for a in oracle.dominant(rng, (200, rows), dtype)]
    assert solve_counted(cupy, system, pivot=True)[1].repeated == 0
    assert solve_counted(cupy, system)[1].repeated == 0
    side, wave = np.full((200, rows), -1.0, dtype), np.full((200, rows), 1.7, dtype)
    x, info = solve_counted(cupy, [side, wave, side, system[3]], pivot=True)
    assert info.repeated == 0
    check([side, wave, side, system[3]], x)


@pytest.mark.parametrize("systems", [1, 300])
@pytest.mark.parametrize("rows", [64, 1000, 3000, 40_000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_doubtful_system_with_a_good_solution_is_solved_once(cupy, dtype, rows, systems):
    """Rows of very different sizes make a system doubtful; a dominant one has a good solution."""
    rng = np.random.default_rng([SEED, 9, rows])
    systems = min(systems, 1_000_000 // rows)
    system = [np.asarray(a) for a in oracle.dominant(rng, (systems, rows), np.dtype(dtype))]
    scale = np.where(np.arange(rows) % 7 == 3, 2.0**12, 1)
    system = [np.asarray(a * scale, dtype) for a in system]
    for axis in (-1, 0):
        x, info = solve_counted(cupy, system, axis, pivot=True)
        assert info.repeated == 0
        errors = oracle.backward_errors(*system, x)[1]
        assert np.max(errors) <= 20 * oracle.eps(x.dtype)
        in_place, _ = solve(cupy, system, axis, pivot=True, out="rhs")
        np.testing.assert_array_equal(in_place, x)


@pytest.mark.parametrize("way", ["shared", "scalar", "row"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_shared_matrices(cupy, dtype, way):
    for k in range(16):
        rows = (64, 100, 513, 1500)[k % 4]
        lower, diag, upper, _ = (
            a[0] for a in growth_families.draw("uniform constant", dtype, rows, 1, [SEED, 4, k])
        )
        rhs = oracle.uniform(np.random.default_rng([SEED, k]), (20, rows), np.dtype(dtype))
        device = cupy.asarray(rhs)
        system = [np.broadcast_to(a, rhs.shape).copy() for a in (lower, diag, upper, rhs)]
        if way == "shared":
            matrix = [cupy.asarray(a) for a in (lower, diag, upper)]
        elif way == "scalar":
            matrix = [a[0].item() for a in (lower, diag, upper)]
        else:
            matrix = [
                cupy.broadcast_to(cupy.asarray(a[:1]), rhs.shape) for a in (lower, diag, upper)
            ]
        for pivot in (True, None):
            x = pysolvers.solve_tridiagonal(*matrix, device, pivot=pivot, on_singular="ignore")
            check(system, x.get(), text=f"matrix {k}")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans", ["N", "T", "H"])
@pytest.mark.parametrize("own", [True, False])
def test_factors(cupy, dtype, trans, own):
    for k, rows in enumerate((64, 100, 129, 500, 1000) * 3):
        system = growth_families.draw("uniform constant", dtype, rows, 20, [SEED, 5, k])
        lower, diag, upper, rhs = system
        if not own:
            lower, diag, upper = (
                np.broadcast_to(a[:1], a.shape).copy() for a in (lower, diag, upper)
            )
        chosen = slice(None) if own else 0
        factor = pysolvers.factor_tridiagonal(
            *(cupy.asarray(a[chosen]) for a in (lower, diag, upper)), on_singular="ignore"
        )
        x = factor.solve(cupy.asarray(rhs), trans=trans).get()
        if trans != "N":
            lower, upper = np.roll(upper, 1, -1), np.roll(lower, -1, -1)
        if trans == "H":
            lower, diag, upper = (a.conj() for a in (lower, diag, upper))
        check([lower, diag, upper, rhs], x, text=f"{rows} rows, draw {k}")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", growth_families.CONSTANT)
def test_periodic(cupy, dtype, family):
    sizes = (1, 2, 3, 4, 5, 33, 34, 64, 129, 256, 512, 1000, 2500, 4096)
    number = list(growth_families.CONSTANT).index(family)
    pivots = [(True, None)[(number + k) % 2] for k in range(len(sizes))]
    for rows, pivot in zip(sizes, pivots, strict=True):
        system = growth_families.draw(family, dtype, rows, 12, [SEED, 6])
        for axis in (-1, 0):
            x, _ = solve(cupy, system, axis, periodic=True, pivot=pivot)
            check(system, x, periodic=True, text=f"{rows} rows, axis {axis}")
            in_place, _ = solve(cupy, system, axis, periodic=True, pivot=pivot, out="rhs")
            np.testing.assert_array_equal(in_place, x)


@pytest.mark.parametrize(
    ("rows", "speed", "viscosity"),
    [(128, -1.5, 0.1), (256, -1.5, 0.3), (256, -3, 0.1), (512, -1.5, 0.05)],
)
def test_periodic_advection_is_the_answer_of_the_fourier_transform(cupy, rows, speed, viscosity):
    rhs = np.random.default_rng(SEED).uniform(-1, 1, (5, rows))
    lower, diag, upper = -(viscosity + speed), 1 + 2 * viscosity, -(viscosity - speed)
    angle = 2j * np.pi * np.arange(rows) / rows
    symbol = lower * np.exp(-angle) + diag + upper * np.exp(angle)
    expected = np.fft.ifft(np.fft.fft(rhs) / symbol).real

    x = pysolvers.solve_tridiagonal(lower, diag, upper, cupy.asarray(rhs), periodic=True).get()

    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-13)


def test_singular_systems_are_reported_by_the_row_of_lapack(cupy):
    system = growth_families.draw("uniform constant", "float64", 200, 30, [SEED, 7])
    lower, diag, upper, _ = system
    lower[7, 51], diag[7, 50], lower[7, 50], upper[7, 49] = 0, 0, 0, 0
    with pytest.raises(pysolvers.SingularSystemError) as caught:
        solve(cupy, system, pivot=True, on_singular="raise")
    assert caught.value.systems.tolist() == [[7]]
    assert caught.value.rows.tolist() == [50]


@pytest.mark.parametrize("rows", [34, 500, 3000, 9000, 40_000])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("periodic", [False, True])
def test_singular_systems_next_to_regular_ones(cupy, dtype, rows, periodic):
    """A row of zeros is the last pivot row, in the order in which such systems are solved again."""
    singular = [3, 4, 5, 17]
    system = growth_families.draw("uniform", dtype, rows, 20, [SEED, 10])
    for a in system[:3]:
        a[singular, rows // 3] = 0
    others = np.setdiff1d(np.arange(20), singular)
    for axis in (-1, 0)[(DTYPES.index(dtype) + periodic) % 2 :][:1]:
        with pytest.raises(pysolvers.SingularSystemError) as caught:
            solve(cupy, system, axis, periodic=periodic, pivot=True, on_singular="raise")
        assert caught.value.systems.ravel().tolist() == singular
        assert caught.value.rows.tolist() == [rows // 2 if periodic else rows - 1] * 4
        x, info = solve_counted(cupy, system, axis, periodic=periodic, pivot=True)
        assert info.repeated >= 4
        errors = oracle.backward_errors(*system, x, periodic=periodic)[0][others]
        assert np.all(errors <= 50 * oracle.eps(x.dtype)), errors.max()


@pytest.mark.parametrize("pivot", [True, None])
def test_in_a_graph(cupy, pivot):
    system = growth_families.draw("scaled", "complex128", 500, 60, [SEED, 8])
    arrays = [cupy.asarray(a) for a in system]
    out = cupy.zeros_like(arrays[3])
    options = {"pivot": pivot, "on_singular": "ignore", "out": out}
    expected, info = solve_counted(cupy, system, pivot=pivot)
    assert info.repeated > 0
    pysolvers.solve_tridiagonal(*arrays, **options)  # whatever is done once
    cupy.cuda.get_current_stream().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)

    with stream:
        stream.begin_capture()
        pysolvers.solve_tridiagonal(*arrays, **options)
        graph = stream.end_capture()
        for _ in range(3):
            out[...] = 0
            graph.launch(stream)
        stream.synchronize()

    np.testing.assert_array_equal(out.get(), expected)
