"""`solve_tridiagonal` of JAX and PyTorch, on the CPU and on a device: solutions and gradients.

The truth is linear algebra in double precision. With g = A^-H w, the gradient of Re sum(conj(w) x)
with respect to the right-hand sides is g and with respect to the entry that multiplies x_j in row i
is -g_i conj(x_j): derivatives with respect to real parts plus i times those with respect to
imaginary parts, the convention of PyTorch. JAX has the conjugates.
"""

import numpy as np
import oracle
import pytest
from array_libraries import check_derivatives

SHAPES = {
    "own": [(20, 9)] * 4,
    "two batch axes": [(2, 3, 33)] * 4,
    "one row": [(7, 1)] * 4,
    "shared": [(65,), (65,), (65,), (30, 65)],
    "short": [(3, 64), (3, 65), (3, 64), (3, 65)],
    "constant": [(), (3, 1), (1, 1), (3, 65)],
    "mixed": [(2, 1, 5), (3, 5), (2, 1, 1), (1, 3, 5)],
    "one long system": [(1, 1100)] * 4,
}
# Each case with one type of real numbers and one of complex numbers, of which one is periodic; in
# the default run both only where the corners of a periodic matrix differ: in rows of their own, and
# in one row.
CASES = [
    pytest.param(name, np.dtype(dtype).name, periodic, marks=() if is_default else pytest.mark.slow)
    for number, name in enumerate(SHAPES)
    for periodic in ((False,) if name == "short" else (False, True))
    for dtype in oracle.DTYPES[(number + 2 * periodic) % 4 :][:1]
    for is_default in (
        name in ("own", "one row", "short")
        or (periodic == (number % 2 == 1) and name != "two batch axes"),  # as "mixed" has
    )
]


def drawn(rng, shapes, dtype, make=oracle.dominant):
    """Return random operands of some shapes, and the diagonals and sides that they mean."""
    rows = shapes[3][-1]
    shape = np.broadcast_shapes(
        *(own if own[-1:] != (rows - 1,) else (*own[:-1], rows) for own in shapes)
    )
    given = []
    for k, own in enumerate(shapes):
        a = make(rng, (*own[:-1], rows), dtype)[k]
        given.append(a[..., : own[-1]] if own else a[0])
    if make is oracle.dominant and shapes[1][-1:] == (1,) < shape[-1:]:
        given[1] = given[1] + 3
    return given, whole(given, shape)


def whole(given, shape):
    """Return the operands in double precision, broadcast, with all entries of the off-diagonals."""
    rows, full = shape[-1], []
    for k, a in enumerate(given):
        a = a.astype(np.result_type(a, float))
        if np.ndim(a) and a.shape[-1] == rows - 1 and rows > 2:
            a = np.insert(a, 0 if k == 0 else rows - 1, 0, -1)
        full.append(np.broadcast_to(a, shape))
    return full


def gradients(library, given, weight, **options):
    """Return a solution and the gradients of Re sum(conj(w) x), as arrays of NumPy."""
    there, w = [library.array(a) for a in given], library.array(weight.conj())

    def solve(*operands):
        return library.functions.solve_tridiagonal(*operands, **options)

    def total(*operands):
        x = solve(*operands)
        return (w * x).real.sum(), x

    (_, x), found = library.value_and_grad(total, 4, has_aux=True)(*there)
    found = [library.get(a) for a in found]
    return library.get(x), [a.conj() if library.name == "jax" else a for a in found]


def close(found, expected, most):
    """Require arrays that differ by rounding errors alone."""
    assert found.shape == expected.shape
    bound = most * oracle.eps(found.dtype) * max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound)


@pytest.mark.parametrize(("case", "dtype", "periodic"), CASES)
def test_solutions_and_gradients_are_those_of_linear_algebra(
    everywhere, rng, case, dtype, periodic
):
    given, full = drawn(rng, SHAPES[case], np.dtype(dtype))
    weight = oracle.uniform(rng, full[3].shape, np.dtype(dtype))
    solved = oracle.solve(*full, periodic=periodic)

    x, found = gradients(everywhere, given, weight, periodic=periodic)

    assert x.dtype == dtype
    assert oracle.backward_error(*full, x, periodic=periodic) < 50 * oracle.eps(dtype)
    expected = oracle.adjoint(*full[:3], solved, weight.astype(solved.dtype), periodic=periodic)
    for k, (own, one) in enumerate(zip(found, expected, strict=True)):
        close(own, oracle.reduced(one, np.shape(given[k]), 1 if k == 0 else 0), 1e4)


@pytest.mark.parametrize("pivot", [None, True])
@pytest.mark.parametrize(("dtype", "periodic"), [("float64", False), ("complex128", True)])
def test_gradients_with_row_exchanges(everywhere, rng, dtype, periodic, pivot):
    given, full = drawn(rng, [(20, 65)] * 4, np.dtype(dtype), oracle.general)
    weight = oracle.uniform(rng, full[3].shape, np.dtype(dtype))
    solved = oracle.solve(*full, periodic=periodic)

    x, found = gradients(everywhere, given, weight, periodic=periodic, pivot=pivot)

    error = oracle.matrix_backward_error(*full, x, periodic=periodic)
    assert error.max() < 1000 * oracle.eps(dtype)
    expected = oracle.adjoint(*full[:3], solved, weight, periodic=periodic)
    for own, one in zip(found, expected, strict=True):
        close(own, one, 1e8)


@pytest.mark.parametrize(("axis", "shared"), [(0, False), (1, True), (-2, False), (0, True)])
def test_systems_lie_along_any_axis_and_share_matrices(everywhere, rng, axis, shared):
    *matrix, rhs = oracle.dominant(rng, (6, 5, 33))
    matrix = [a[:1, :1] if shared else a for a in matrix]
    weight = oracle.uniform(rng, rhs.shape)
    solved = oracle.solve(*matrix, rhs)

    moved = [np.moveaxis(a, -1, axis) for a in (*matrix, rhs, weight)]
    x, found = gradients(everywhere, moved[:4], moved[4], axis=axis)

    close(np.moveaxis(x, axis, -1), solved, 1e3)
    full = [np.broadcast_to(a, rhs.shape) for a in matrix]
    for own, one, a in zip(
        found, oracle.adjoint(*full, solved, weight, periodic=False), (*matrix, rhs), strict=True
    ):
        close(np.moveaxis(own, axis, -1), oracle.reduced(one, a.shape, 0), 1e4)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_a_singular_system_is_nan_and_the_others_are_solved(everywhere, rng, dtype, axis):
    system = oracle.dominant(rng, (50, 64), np.dtype(dtype))
    for a in system[:3]:
        a[33, 5] = 0
    weight = oracle.uniform(rng, system[3].shape, np.dtype(dtype))

    moved = [np.moveaxis(a, -1, axis) for a in (*system, weight)]
    x, found = gradients(everywhere, moved[:4], moved[4], axis=axis)

    for answer in (x, *found):
        is_nan = np.isnan(np.moveaxis(answer, axis, -1))
        np.testing.assert_array_equal(is_nan.any(1), np.arange(50) == 33)
    assert np.isnan(np.moveaxis(x, axis, -1)[33]).all()
    others = [np.delete(a, 33, 0) for a in (*system, np.moveaxis(x, axis, -1))]
    assert oracle.backward_error(*others) < 50 * oracle.eps(dtype)


@pytest.mark.parametrize("periodic", [False, True])
def test_derivatives_of_both_orders_are_those_of_finite_differences(everywhere, rng, periodic):
    given, _ = drawn(rng, [(3, 6)] * 4, float)

    def loss(*operands):
        x = everywhere.functions.solve_tridiagonal(*operands, periodic=periodic)
        return (x**3).sum()

    check_derivatives(everywhere, loss, given, rng)


def test_gradients_of_each_system_of_a_batch_with_one_matrix(everywhere, rng):
    lower, diag, upper, _ = oracle.dominant(rng, (65,))
    rhs = oracle.uniform(rng, (30, 65))
    there = [everywhere.array(a) for a in (rhs, lower, diag, upper)]

    def loss(rhs, lower, diag, upper):
        return (everywhere.functions.solve_tridiagonal(lower, diag, upper, rhs) ** 2).sum()

    batch = everywhere.vmap(everywhere.gradient_of(loss), (0, None, None, None))

    full = [np.broadcast_to(a, rhs.shape) for a in (lower, diag, upper)]
    solved = oracle.solve(*full, rhs)
    expected = oracle.adjoint(*full, solved, 2 * solved, periodic=False)[3]
    close(everywhere.get(batch(*there)), expected, 1e4)
