"""Calls that need no planning go to the extension directly; they must change no bit.

Each test compares them with calls that are planned in Python.
"""

import contextlib
import itertools
import sys
import tracemalloc

import numpy as np
import oracle
import pytest

import pysolvers
from pysolvers._lines import engine

SOLVE = engine.solve_directly


@pytest.fixture
def direct(monkeypatch):
    """Count the calls that the extension solved directly."""
    answers = []

    def counted(*arguments, **options):
        try:
            answer = SOLVE(*arguments, **options)
        except pysolvers.SingularSystemError:
            answers.append(True)
            raise
        answers.append(answer is not None)
        return answer

    monkeypatch.setattr(engine, "solve_directly", counted)
    return answers


def by(way, *arguments, **options):
    """Solve with another function in the place of `solve_directly`."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engine, "solve_directly", way)
        return pysolvers.solve_tridiagonal(*arguments, **options)


def planned_call(*arguments, **options):
    """Solve by a call that is planned in Python."""
    return by(lambda *_, **__: None, *arguments, **options)


def operands(rng, shape, axis, dtype):
    lower, diag, upper, rhs = oracle.dominant(rng, (*shape[:axis], *shape[axis + 1 :], shape[axis]))
    made = [np.moveaxis(a, -1, axis).astype(dtype) for a in (lower, diag, upper, rhs)]
    return [np.ascontiguousarray(a) for a in made]


FACTS = (
    "method",
    "pivoted",
    "repeated",
    "systems",
    "rows",
    "dtype",
    "backend",
    "kernel",
    "threads",
)


def both(*arguments, **options):
    """Return the solutions of both ways, and the info, which is the same in both."""
    planned, info = planned_call(*arguments, return_info=True, **options)
    x, found = by(SOLVE, *arguments, return_info=True, **options)
    np.testing.assert_array_equal(x, planned)
    for name in FACTS:
        assert getattr(found, name) == getattr(info, name), name
    np.testing.assert_array_equal(found.singular, info.singular)
    np.testing.assert_array_equal(found.singular_rows, info.singular_rows)
    return pysolvers.solve_tridiagonal(*arguments, **options), planned, info


LAYOUTS = [
    ((1,), 0),
    ((2,), -1),
    ((64,), 0),
    ((5, 40), 1),
    ((5, 40), 0),
    ((1, 40), -1),
    ((40, 1), 0),
    ((300, 7), 1),
    ((3, 4, 20), 2),
    ((20, 4, 3), 0),
    ((20, 4, 3), -3),
    ((3, 20, 4), 1),
    ((3, 20, 1), 1),
    ((1, 20, 4), 1),
    ((2, 3, 20, 4), 2),
    ((2, 20, 3, 4), 1),
]


@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("pivot", [None, False, True])
def test_plain_arrays(direct, rng, dtype, periodic, pivot):
    for shape, axis in LAYOUTS:
        arrays = operands(rng, shape, axis % len(shape), dtype)
        before = [a.copy() for a in arrays]

        x, planned, _ = both(*arrays, axis=axis, periodic=periodic, pivot=pivot)

        np.testing.assert_array_equal(x, planned, err_msg=f"{shape}, axis {axis}")
        assert x.strides == planned.strides
        assert x.dtype == planned.dtype
        for array, old in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(array, old)
    assert direct == [True] * len(LAYOUTS)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("rows", [2, 3, 4, 40])
@pytest.mark.parametrize("systems", [(), (1,), (6,), (2, 3)])
def test_vectors_numbers_and_short_diagonals(direct, rng, dtype, rows, systems):
    rhs = oracle.uniform(rng, (*systems, rows), np.dtype(dtype))
    vector = oracle.uniform(rng, (rows,), np.dtype(dtype))
    short = vector[: rows - 1]
    sides = (vector, short, -0.5, 2, np.float64(0.25), vector[::-1])
    for lower, upper in itertools.product(sides, sides):
        for diag in (5.0, vector + np.dtype(dtype).type(5)):
            x, planned, _ = both(lower, diag, upper, rhs)
            np.testing.assert_array_equal(x, planned)
            assert x.dtype == planned.dtype
    # In single precision, a float64 of NumPy promotes, and the call is planned.
    assert sum(direct) >= len(direct) * (1 / 2 if np.finfo(dtype).bits == 64 else 1 / 3)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((40, 6), 0), ((6, 6), 0), ((7, 6), 0), ((6, 40), 1), ((7, 2, 3), 0), ((2, 7, 3), 1)],
)
@pytest.mark.parametrize("periodic", [False, True])
def test_vectors_lie_along_the_axis(direct, rng, dtype, shape, axis, periodic):
    rows = shape[axis]
    lower, diag, upper, _ = oracle.dominant(rng, (rows,), np.dtype(dtype))
    rhs = oracle.uniform(rng, shape, np.dtype(dtype))
    short = (lower, upper) if periodic else (lower[1:], upper[:-1])
    expected = oracle.solve(lower, diag, upper, np.moveaxis(rhs, axis, -1), periodic=periodic)

    for ends in ((lower, upper), short):
        x, planned, _ = both(ends[0], diag, ends[1], rhs, axis=axis, periodic=periodic)
        np.testing.assert_array_equal(x, planned)
        error = np.abs(np.moveaxis(x, axis, -1) - expected)
        assert np.max(error) <= 50 * oracle.eps(dtype) * np.max(np.abs(expected))
    assert direct == [True, True]


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((40,), 0),
        ((1, 9), 1),
        ((6, 40), 1),
        ((40, 6), 0),
        ((40, 1), 0),
        ((3, 4, 20), 2),
        ((3, 20, 4), 1),
    ],
)
@pytest.mark.parametrize("matrix", ["own", "vectors", "short", "numbers", "mixed"])
@pytest.mark.parametrize("pivot", [None, True])
def test_real_matrix_and_complex_sides(direct, rng, dtype, shape, axis, matrix, pivot):
    real = np.zeros(1, dtype).real.dtype
    own = operands(rng, shape, axis, real)[:3]
    vectors = oracle.dominant(rng, (shape[axis],), real)[:3]
    diagonals = {
        "own": own,
        "vectors": vectors,
        "short": [vectors[0][1:], vectors[1], vectors[2][:-1]],
        "numbers": [-1.0, 3, -1],
        "mixed": [vectors[0], own[1], 0.25],
    }[matrix]
    rhs = oracle.uniform(rng, shape, np.dtype(dtype))

    x, planned, info = both(*diagonals, rhs, axis=axis, pivot=pivot)

    assert direct == [True]
    assert x.dtype == info.dtype == dtype
    np.testing.assert_array_equal(x, planned)
    made = [np.asarray(a, dtype) for a in diagonals]
    expected = pysolvers.solve_tridiagonal(*made, rhs, axis=axis, pivot=pivot)
    error = np.max(np.abs(x - expected)) / np.max(np.abs(expected))
    assert error <= 50 * oracle.eps(dtype)
    out = rhs.copy()
    assert pysolvers.solve_tridiagonal(*diagonals, out, axis=axis, pivot=pivot, out=out) is out
    np.testing.assert_array_equal(out, x)


def test_strides_and_offsets(direct, rng):
    whole = oracle.dominant(rng, (30, 60))
    for rows, columns in itertools.product(
        (slice(None), slice(3, 20), slice(None, None, -2)), repeat=2
    ):
        for axis in (0, 1):
            parts = [a[rows, columns] for a in whole]
            x, planned, _ = both(*parts, axis=axis, pivot=True)
            np.testing.assert_array_equal(x, planned)
            x, planned, _ = both(*(a.T for a in parts), axis=axis, pivot=True)
            np.testing.assert_array_equal(x, planned)
    assert all(direct)


@pytest.mark.parametrize("axis", [0, 1])
def test_out(direct, rng, axis):
    arrays = operands(rng, (30, 40), axis, float)
    planned = planned_call(*arrays, axis=axis)
    out = np.empty_like(arrays[3])
    fortran = np.asfortranarray(out)
    for target in (out, fortran, arrays[3]):
        assert pysolvers.solve_tridiagonal(*arrays, axis=axis, out=target) is target
        np.testing.assert_array_equal(target, planned)
    assert direct == [True] * 3


def test_out_that_is_another_view_of_rhs(direct, rng):
    arrays = operands(rng, (6, 40), 1, float)
    planned = planned_call(*arrays)
    view = arrays[3][...]

    assert pysolvers.solve_tridiagonal(*arrays, out=view) is view

    np.testing.assert_array_equal(arrays[3], planned)
    with pytest.raises(ValueError, match="out overlaps rhs"):
        pysolvers.solve_tridiagonal(
            *(a[:, :20] for a in arrays[:3]), view[:, :20], out=view[:, 1:21]
        )
    assert direct == [True, False]


def test_out_that_is_refused_or_planned(direct, rng):
    arrays = operands(rng, (6, 40), 1, float)
    planned = planned_call(*arrays)
    wide = np.empty((6, 80))
    pysolvers.solve_tridiagonal(*arrays, out=wide[:, ::2])
    np.testing.assert_array_equal(wide[:, ::2], planned)
    for bad in (arrays[1], arrays[0][...], np.empty((6, 41)), np.empty((6, 40), np.float32)):
        with pytest.raises((TypeError, ValueError), match="out"):
            pysolvers.solve_tridiagonal(*arrays, out=bad)
    frozen = np.empty((6, 40))
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        pysolvers.solve_tridiagonal(*arrays, out=frozen)
    assert not any(direct)


def test_large_fields_with_complex_sides_along_a_middle_axis_are_planned(direct, rng):
    arrays = operands(rng, (20, 60, 60), 1, float)
    arrays[3] = arrays[3] * (1 - 2j)

    x, planned, _ = both(*arrays, axis=1)

    assert direct == [False]
    np.testing.assert_array_equal(x, planned)
    small = [a[:10].copy() for a in arrays]
    np.testing.assert_array_equal(pysolvers.solve_tridiagonal(*small, axis=1), x[:10])
    assert direct == [False, True]


@pytest.mark.parametrize("complex_rhs", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"), [((7,), 0), ((5, 7), 1), ((7, 5), 0), ((2, 300, 7), 2), ((2, 7, 3), 1)]
)
def test_singular_systems_are_those_of_a_planned_call(direct, rng, shape, axis, complex_rhs):
    arrays = operands(rng, shape, axis, float)
    if complex_rhs:
        arrays[3] = arrays[3] * (1 - 2j)
    batches = np.moveaxis(arrays[1], axis, -1)
    chosen = [tuple(size - 1 for size in batches.shape[:-1])]
    if batches.ndim > 1:
        chosen.append(tuple(0 for _ in batches.shape[:-1]))
    for array in arrays[:3]:
        for place in chosen:
            np.moveaxis(array, axis, -1)[(*place, slice(2, 4))] = 0
    errors = []
    for solve in (pysolvers.solve_tridiagonal, planned_call):
        with pytest.raises(pysolvers.SingularSystemError) as caught:
            solve(*arrays, axis=axis)
        errors.append(caught.value)
    assert direct == [True]
    assert str(errors[0]) == str(errors[1])
    np.testing.assert_array_equal(errors[0].systems, errors[1].systems)
    np.testing.assert_array_equal(errors[0].rows, errors[1].rows)
    assert len(errors[0].rows) == len(chosen)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("pivot", [None, False, True])
@pytest.mark.parametrize("method", oracle.METHODS)
def test_methods(direct, rng, method, pivot, periodic):
    arrays = operands(rng, (6, 40), 1, float)
    options = {"method": method, "pivot": pivot, "periodic": periodic}
    if method != "auto" and pivot is (method != "pivoted"):
        with pytest.raises(ValueError, match="pivot"):
            both(*arrays, **options)
        return

    x, planned, info = both(*arrays, **options)

    np.testing.assert_array_equal(x, planned)
    assert method == "auto" or info.method == method
    assert direct == [True]


@pytest.mark.parametrize("method", ["none", None, ["auto"]])
def test_methods_that_do_not_exist_are_refused(direct, rng, method):
    with pytest.raises((TypeError, ValueError), match="method must be"):
        pysolvers.solve_tridiagonal(*operands(rng, (6, 40), 1, float), method=method)
    assert not any(direct)


@pytest.mark.parametrize("options", [{}, {"return_info": True}])
def test_warnings_of_singular_systems_name_the_caller(rng, options):
    arrays = operands(rng, (5, 9), 1, float)
    for a in arrays[:3]:
        a[2] = 0
    texts = []
    for more in ({}, {"check_finite": True}, {"where": np.ones((5, 9), bool)}):  # two are planned
        with pytest.warns(pysolvers.SingularSystemWarning) as caught:
            pysolvers.solve_tridiagonal(*arrays, on_singular="warn", **options, **more)
        texts.append(str(caught[0].message))
        assert caught[0].filename == __file__
    assert texts[0] == texts[1] == texts[2]


def test_singular_systems_that_are_ignored(direct, rng):
    arrays = operands(rng, (5, 9), 1, float)
    arrays[0][2], arrays[1][2], arrays[2][2] = 0, 0, 0
    planned = planned_call(*arrays, on_singular="ignore")

    x = pysolvers.solve_tridiagonal(*arrays, on_singular="ignore")

    others = [0, 1, 3, 4]
    np.testing.assert_array_equal(x[others], planned[others])
    assert direct == [True]


@pytest.mark.parametrize("complex_rhs", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((5, 7), 1), ((7, 5), 0), ((2, 7, 3), 1)])
def test_singular_systems_become_nan_as_in_a_planned_call(direct, rng, shape, axis, complex_rhs):
    arrays = operands(rng, shape, axis, float)
    if complex_rhs:
        arrays[3] = arrays[3] * (1 - 2j)
    batches = [np.moveaxis(a, axis, -1) for a in arrays]
    for diagonal in batches[:2]:
        diagonal[(-1,) * diagonal.ndim] = 0  # elimination gives infinity, not NaN

    x, planned, info = both(*arrays, axis=axis, on_singular="nan")

    assert len(info.singular) == 1
    assert np.isnan(x).sum() == shape[axis]
    np.testing.assert_array_equal(x, planned)
    assert direct == [True]


# Right-hand sides, axis, and how many of their first axes the matrices lack.
SHARED = [
    ((3, 5, 40), -1, 1),
    ((3, 40, 5), 1, 1),
    ((2, 3, 5, 40), 3, 2),
    ((2, 3, 40, 5), -2, 2),
    ((2, 3, 5, 4, 20), -1, 2),
    ((2, 20, 5, 4), 1, 1),
    ((1, 5, 40), -1, 1),
    ((3, 1, 40), -1, 1),
    ((3, 40, 1), -2, 1),
    ((300, 2, 7), -1, 1),
]


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", [*oracle.DTYPES, "pairs"])
@pytest.mark.parametrize("pivot", [None, False, True])
@pytest.mark.parametrize(("shape", "axis", "lacks"), SHARED)
def test_matrices_without_the_first_axes(direct, rng, shape, axis, lacks, pivot, dtype):
    inner = axis % len(shape) - lacks
    matrix = operands(rng, shape[lacks:], inner, float)[:3]
    if dtype != "pairs":
        matrix = [a.astype(dtype) for a in matrix]
    rhs = oracle.uniform(rng, shape, np.complex128 if dtype == "pairs" else dtype)
    options = {"axis": axis, "pivot": pivot}

    x, planned, _ = both(*matrix, rhs, **options)
    out = np.empty_like(rhs)
    assert pysolvers.solve_tridiagonal(*matrix, rhs, out=out, **options) is out

    is_one = dtype == "pairs" and matrix[1].size == shape[axis]
    assert direct == [not is_one] * 2
    np.testing.assert_array_equal(x, planned)
    np.testing.assert_array_equal(out, planned)
    for place in np.ndindex(shape[:lacks]):
        one = pysolvers.solve_tridiagonal(*matrix, rhs[place], axis=inner, pivot=pivot)
        np.testing.assert_allclose(x[place], one, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shared", [0, 1, 2])
def test_numbers_and_vectors_among_matrices_without_the_first_axes(direct, rng, shared):
    matrix = operands(rng, (5, 40), 1, float)[:3]
    matrix[shared] = [0.25, matrix[1][2] + 4, rng.standard_normal(39) / 9][shared]

    x, planned, _ = both(*matrix, rng.standard_normal((3, 5, 40)))

    assert direct == [True]
    np.testing.assert_array_equal(x, planned)


def test_singular_matrices_without_the_first_axes(direct, rng):
    *matrix, _ = operands(rng, (5, 40), 1, float)
    for a in matrix:
        a[3, 7] = 0
    rhs = rng.standard_normal((2, 5, 40))
    errors = []
    for solve in (pysolvers.solve_tridiagonal, planned_call):
        with pytest.raises(pysolvers.SingularSystemError) as caught:
            solve(*matrix, rhs)
        errors.append(caught.value)
    x, planned, _ = both(*matrix, rhs, on_singular="nan")

    assert all(direct)
    assert str(errors[0]) == str(errors[1])
    assert errors[0].systems.tolist() == errors[1].systems.tolist() == [[0, 3], [1, 3]]
    np.testing.assert_array_equal(x, planned)
    assert np.isnan(x[:, 3]).all()


@pytest.mark.parametrize(
    ("shapes", "axis"),
    [
        ([(5, 40), (3, 5, 40), (5, 40), (3, 5, 40)], -1),  # of two numbers of axes
        ([(5, 40)] * 3 + [(40, 5, 40)], 0),  # along an axis that the matrices lack
        ([(5, 40, 6)] * 3 + [(3, 5, 40, 6)], 2),  # three axes of systems
        ([(1, 40)] * 3 + [(3, 5, 40)], -1),
    ],
)
def test_other_matrices_without_the_first_axes_are_planned(direct, rng, shapes, axis):
    lower, diag, upper, rhs = map(rng.standard_normal, shapes)

    x, planned, _ = both(lower, np.abs(diag) + 9, upper, rhs, axis=axis)

    assert not any(direct)
    np.testing.assert_array_equal(x, planned)


CASES = {
    "integers": lambda a: [x.astype(int) for x in a],
    "another dtype": lambda a: [a[0], a[1], a[2].astype(np.float32), a[3]],
    "complex number": lambda a: [1j, *a[1:]],
    "a number that float32 cannot hold": lambda a: [1e300, *(x.astype(np.float32) for x in a[1:])],
    "infinite number": lambda a: [a[0], np.inf, *a[2:]],
    "another byte order": lambda a: [x.astype(">f8") for x in a],
    "subclass": lambda a: [*a[:3], np.ma.masked_array(a[3])],
    "lists": lambda a: [x.tolist() for x in a],
    "broadcast matrix": lambda a: [x[:1] for x in a[:3]] + [a[3]],
    "a batch of matrices": lambda a: [*a[:3], a[3][0]],
    "too long": lambda a: [np.ones((6, 41)), *a[1:]],
    "no axis": lambda a: [*a[:3], np.float64(2.0)],
    "empty": lambda a: [x[:0] for x in a],
}


@pytest.mark.parametrize("case", CASES)
def test_other_calls_are_planned(direct, rng, case):
    arguments = CASES[case](operands(rng, (6, 40), 1, float))
    outcomes = []
    for return_info in (True, False):
        try:
            with np.errstate(all="ignore"):
                answer = pysolvers.solve_tridiagonal(*arguments, return_info=return_info)
            outcomes.append(answer[0] if return_info else answer)
        except (TypeError, ValueError) as error:
            outcomes.append(f"{type(error).__name__}: {error}")
    assert any(direct) == (case == "integers")  # which are converted, if no info names the copies
    if isinstance(outcomes[0], str):
        assert outcomes[0] == outcomes[1]
    else:
        np.testing.assert_array_equal(outcomes[1], outcomes[0])


@pytest.mark.parametrize(
    "options",
    [
        {"axis": 2},
        {"axis": 1.5},
        {"axis": True},
        {"pivot": 1},
        {"periodic": 1},
        {"threads": 0},
        {"threads": 2.0},
        {"method": "none"},
        {"on_singular": "none"},
        {"stream": 3},
        {"device": "tpu"},
    ],
)
def test_errors_are_those_of_a_planned_call(rng, options):
    arrays = operands(rng, (6, 40), 1, float)
    texts = []
    for return_info in (True, False):
        with pytest.raises((TypeError, ValueError, pysolvers.BackendError)) as caught:
            pysolvers.solve_tridiagonal(*arrays, return_info=return_info, **options)
        texts.append(f"{type(caught.value).__name__}: {caught.value}")
    assert texts[0] == texts[1]


def test_threads_change_no_bit(direct, rng):
    arrays = operands(rng, (500, 400), 1, float)
    expected = pysolvers.solve_tridiagonal(*arrays, threads=1)
    for threads in (None, 2, 3):
        x = pysolvers.solve_tridiagonal(*arrays, threads=threads)
        np.testing.assert_array_equal(x, expected)
    assert all(direct)


def test_references_and_memory_are_released(rng):
    arrays = operands(rng, (300, 40), 1, float)
    before = [sys.getrefcount(a) for a in arrays]
    arrays[1][3] = arrays[0][3] = arrays[2][3] = 0
    tracemalloc.start()
    for repeat in range(60):
        for out in (None, np.empty_like(arrays[3]), arrays[1]):
            with contextlib.suppress(pysolvers.SingularSystemError, ValueError):
                pysolvers.solve_tridiagonal(*arrays, out=out)
        if repeat == 10:
            first = tracemalloc.get_traced_memory()[0]
    last = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert last - first < arrays[0].nbytes
    del out
    assert [sys.getrefcount(a) for a in arrays] == before


def test_complex_copies_of_vectors_are_released(direct, rng):
    matrix = oracle.dominant(rng, (5000,))[:3]
    rhs = oracle.uniform(rng, (2, 5000), np.complex128)
    out = np.empty_like(rhs)
    tracemalloc.start()
    for repeat in range(60):
        pysolvers.solve_tridiagonal(*matrix, rhs, out=out)
        if repeat == 10:
            first = tracemalloc.get_traced_memory()[0]
    last = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert all(direct)
    assert last - first < rhs.nbytes


def test_out_that_overlaps_rhs_is_refused(direct, rng):
    room = rng.standard_normal(41)

    for rhs, out in [(room[:40], room[1:]), (room[:40].reshape(5, 8), room[1:].reshape(5, 8))]:
        with pytest.raises(ValueError, match="out overlaps rhs"):
            pysolvers.solve_tridiagonal(-1.0, 3.0, -1.0, rhs, out=out)
    assert not any(direct)


@pytest.mark.parametrize("shape", [(40,), (40, 6)])
def test_short_vectors_of_periodic_systems_are_refused(direct, rng, shape):
    short = rng.standard_normal(39)

    with pytest.raises(ValueError, match=r"lower|broadcast"):
        pysolvers.solve_tridiagonal(short, 3.0, 1.0, np.ones(shape), axis=0, periodic=True)
    assert direct == [False]


@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("pivot", [None, False, True])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis", "lacks"),
    [((40,), 0, 0), ((5, 40), 1, 0), ((40, 5), 0, 0), ((3, 40, 5), 1, 1), ((3, 5, 40), -1, 1)],
)
def test_theta_steps(direct, rng, shape, axis, lacks, periodic, pivot, dtype):
    inner = axis % len(shape) - lacks
    lower, diag, upper = operands(rng, shape[lacks:], inner, dtype)[:3]
    u = oracle.uniform(rng, shape, dtype)
    options = {"dt": 0.3, "theta": 0.6, "axis": axis, "periodic": periodic, "pivot": pivot}
    planned, _ = pysolvers.theta_step(lower, -diag, upper, u, return_info=True, **options)

    x = pysolvers.theta_step(lower, -diag, upper, u, **options)
    out = u.copy()
    assert pysolvers.theta_step(lower, -diag, upper, out, out=out, **options) is out

    assert direct == [True, True]
    np.testing.assert_array_equal(x, planned)
    np.testing.assert_array_equal(out, planned)


def test_theta_steps_of_length_zero_and_with_a_complex_field_and_a_real_matrix(direct, rng):
    lower, diag, upper, u = operands(rng, (5, 40), 1, float)

    x = pysolvers.theta_step(lower, diag, upper, u, dt=0.0)
    np.testing.assert_array_equal(x, u)
    assert direct == [True]
    both_parts = pysolvers.theta_step(lower, -diag, upper, u * (1 + 2j), dt=0.1)
    one_part = pysolvers.theta_step(lower, -diag, upper, u, dt=0.1)
    np.testing.assert_allclose(both_parts, one_part * (1 + 2j), rtol=1e-13)
    assert direct == [True, False, True]


@pytest.mark.parametrize("bad", [0.0, np.nan])
def test_singular_theta_steps_are_those_of_a_planned_call(direct, rng, bad):
    lower, diag, upper, u = operands(rng, (5, 40), 1, float)
    lower[3, 7] = upper[3, 7] = 0
    diag[3, 7] = 2.0 if bad == 0 else bad  # the row of I - dt A / 2 is 0
    texts = []
    for return_info in (False, True):
        with pytest.raises(ValueError) as caught:
            pysolvers.theta_step(lower, diag, upper, u, dt=1.0, return_info=return_info)
        texts.append(f"{type(caught.value).__name__}: {caught.value}")
    assert texts[0] == texts[1]
    kind = "SingularSystemError: a zero" if bad == 0 else "ValueError: theta_step: diag is nan"
    assert texts[0].startswith(kind)
    options = {"dt": 1.0, "on_singular": "nan"}
    planned, _ = pysolvers.theta_step(lower, diag, upper, u, return_info=True, **options)
    np.testing.assert_array_equal(pysolvers.theta_step(lower, diag, upper, u, **options), planned)
    assert np.isnan(planned[3]).all()
    assert all(direct)
