"""Batches of so many tiles that blocks claim them: each system is solved as in a small batch."""

import numpy as np
import oracle
import pytest

import pysolvers

UNKNOWNS = 2**25
SYSTEMS = 97


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


def repeated(cupy, array):
    """Return a small batch again and again, and where the answers go."""
    times = UNKNOWNS // array.size
    return cupy.tile(array, (times, 1)), cupy.zeros((times * SYSTEMS, array.shape[1]), array.dtype)


def assert_repeats(cupy, many, few):
    """All of the large batch has the bits of the small one."""
    assert cupy.array_equal(
        many.reshape(-1, *few.shape),
        cupy.broadcast_to(few, (len(many) // SYSTEMS, *few.shape)),
        equal_nan=True,
    )


@pytest.mark.parametrize("rows", [33, 700])
@pytest.mark.parametrize("pivot", [False, None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrices_of_their_own(cupy, rng, dtype, pivot, rows):
    few = [cupy.asarray(a) for a in oracle.dominant(rng, (SYSTEMS, rows), dtype)]
    few[1][5, 7] = few[0][5, 7] = few[2][5, 7] = 0
    options = {"pivot": pivot, "on_singular": "nan"}
    many = [repeated(cupy, a)[0] for a in few]
    x = repeated(cupy, few[3])[1]

    pysolvers.solve_tridiagonal(*many, out=x, **options)

    assert_repeats(cupy, x, pysolvers.solve_tridiagonal(*few, **options))
    assert cupy.isnan(x[5]).all()
    assert not cupy.isnan(x[6]).any()


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize(("dtype", "rows"), [(np.float64, 36_001), (np.float32, 72_003)])
def test_clusters_that_load_the_next_system_ahead(cupy, rng, dtype, rows, periodic):
    """One block of a cluster fills a multiprocessor; each cluster solves many systems."""
    few = oracle.dominant(rng, (3, rows), dtype)
    many = [cupy.tile(cupy.asarray(a), (40, 1)) for a in few]

    x = pysolvers.solve_tridiagonal(*many, periodic=periodic, pivot=False)

    first = x[:3].get()
    assert oracle.backward_error(*few, first, periodic=periodic) < 100 * oracle.eps(dtype)
    assert cupy.array_equal(x.reshape(40, 3, rows), cupy.broadcast_to(x[:3], (40, 3, rows)))


def test_one_long_system(cupy, rng):
    few = [cupy.asarray(a) for a in oracle.dominant(rng, (SYSTEMS, 3000), np.float32)]
    many = [repeated(cupy, a)[0].ravel() for a in few]

    x = pysolvers.solve_tridiagonal(*many, pivot=False)

    assert float(cupy.abs(residual(cupy, many, x)).max()) <= 20 * oracle.eps(np.float32)


def residual(cupy, system, x):
    """Return what a long system's rows leave, over the sum of their terms."""
    lower, diag, upper, rhs, x = (a.astype(np.float64) for a in (*system, x))
    terms = cupy.stack([lower * cupy.roll(x, 1), diag * x, upper * cupy.roll(x, -1), -rhs])
    terms[0, 0] = terms[2, -1] = 0
    return terms.sum(axis=0) / cupy.abs(terms).sum(axis=0)


@pytest.mark.parametrize("rows", [300, 700, 4096])
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_matrix(cupy, rng, dtype, kept, rows):
    system = [cupy.asarray(a) for a in oracle.dominant(rng, (SYSTEMS, rows), dtype)]
    matrix, few = [a[0] for a in system[:3]], system[3]
    many, x = repeated(cupy, few)

    if kept:
        factor = pysolvers.factor_tridiagonal(*matrix, pivot=False)
        factor.solve(many, out=x)
        expected = factor.solve(few)
    else:
        pysolvers.solve_tridiagonal(*matrix, many, out=x)
        expected = pysolvers.solve_tridiagonal(*matrix, few)

    assert_repeats(cupy, x, expected)


@pytest.mark.parametrize("kept", [False, True])
def test_in_a_graph(cupy, rng, kept):
    system = [cupy.asarray(a) for a in oracle.dominant(rng, (SYSTEMS, 700), np.float32)]
    matrix, few = [a[0] for a in system[:3]], system[3]
    many, x = repeated(cupy, few)
    factor = pysolvers.factor_tridiagonal(*matrix, pivot=False)
    stream = cupy.cuda.Stream(non_blocking=True)

    def solve(rhs, **options):
        if kept:
            return factor.solve(rhs, **options)
        options["on_singular"] = "ignore"  # to learn of bad systems it would have to wait
        return pysolvers.solve_tridiagonal(*matrix, rhs, pivot=False, **options)

    expected = solve(2 * few)
    cupy.cuda.get_current_stream().synchronize()

    with stream:
        stream.begin_capture()
        solve(many, out=x)
        graph = stream.end_capture()
        many *= 2
        for _ in range(3):
            graph.launch(stream)
        stream.synchronize()

    assert_repeats(cupy, x, expected)
