"""`pysolvers.jax`: solves that are compiled, batched and differentiated by JAX.

Gradients are compared with those of linear algebra in NumPy (`oracle.adjoint`), and with finite
differences.
"""

import importlib
import itertools
from functools import partial

import numpy as np
import operand_axes
import oracle
import pytest
from array_libraries import check_gradients
from covering import slow

jax = pytest.importorskip("jax")
jnp = jax.numpy

import pysolvers  # noqa: E402
from pysolvers.jax import factor_theta, factor_tridiagonal, solve_tridiagonal  # noqa: E402

OPERANDS = range(4)
OPTIONS = ({}, {"periodic": True}, {"pivot": True}, {"periodic": True, "pivot": True})


@pytest.fixture(params=[False, True], ids=["operations", "products"])
def products(request, monkeypatch):
    """Let derivatives use array operations, and the primitives that a device has a kernel for."""
    module = importlib.import_module("pysolvers.jax.tridiagonal")
    monkeypatch.setattr(module, "_uses_products", lambda rhs: request.param)
    module._solve.clear_cache()
    yield
    module._solve.clear_cache()


def dense_gradients(weight, *operands, periodic=False):
    """Return the gradients of Re sum(w x) by dense solves of NumPy, in the convention of JAX."""
    lower, diag, upper, rhs = (np.broadcast_to(a, operands[3].shape) for a in operands)
    weight = np.broadcast_to(weight, rhs.shape)
    x = oracle.solve(lower, diag, upper, rhs, periodic=periodic)
    whole = oracle.adjoint(lower, diag, upper, x, weight.conj(), periodic=periodic)
    return [
        oracle.reduced(a.conj(), np.shape(own)).astype(np.asarray(own).dtype)
        for a, own in zip(whole, operands, strict=True)
    ]


def close(actual, desired, factor=1e3):
    """Require arrays that differ by rounding errors alone."""
    desired = np.asarray(desired)
    most = factor * np.finfo(desired.dtype).eps * max(1, np.max(np.abs(desired), initial=0))
    np.testing.assert_allclose(np.asarray(actual), desired, rtol=0, atol=most)


def weighted(solve, weight, **options):
    """Return a real function of the operands whose gradient depends on every unknown."""
    return lambda *operands: (weight * solve(*operands, **options)).real.sum()


def gradients(solve, weight, *operands, **options):
    """Return the gradients of Re sum(w x), all in one program."""
    return jax.jit(jax.grad(weighted(solve, weight, **options), OPERANDS))(*operands)


@pytest.mark.parametrize("places", [p for p in np.ndindex(3, 3, 3) if sum(p) % 3 == 0], ids=str)
def test_operands_broadcast(rng, places):
    """All pairs of shapes of two diagonals."""
    shapes = [[(5, 1, 7), (1, 4, 7), (7,)][place] for place in places]
    system = [oracle.dominant(rng, shape)[k] for k, shape in enumerate([*shapes, (3, 5, 4, 7)])]
    system[1] = system[1] + 8

    close(solve_tridiagonal(*system), oracle.solve(*system))


@pytest.mark.parametrize("axis", [0, 1])
def test_vectors_lie_along_the_axis_and_may_be_short(rng, axis):
    lower, diag, upper, _ = oracle.dominant(rng, (4,))
    rhs = oracle.uniform(rng, (4, 4))

    x = solve_tridiagonal(lower[1:], diag, upper[:-1], rhs, axis=axis)

    close(np.moveaxis(x, axis, -1), oracle.solve(lower, diag, upper, np.moveaxis(rhs, axis, -1)))


@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
def test_empty_batches_are_empty(shape):
    rhs = np.ones(shape)

    assert solve_tridiagonal(-1.0, 4.0, -1.0, rhs).shape == shape
    assert jax.vmap(lambda b: solve_tridiagonal(-1.0, 4.0, -1.0, b))(rhs).shape == shape


def test_types_promote_as_in_jax():
    rhs = np.ones((2, 5), np.float32)

    assert solve_tridiagonal(-1, 4.0, -1, rhs).dtype == np.float32
    assert solve_tridiagonal(-1, np.float64(4), -1, rhs).dtype == np.float64
    assert solve_tridiagonal(-1, 4j, -1, rhs).dtype == np.complex64
    assert solve_tridiagonal(-1, 4, -1, np.ones(5, int)).dtype == np.float64
    with pytest.raises(TypeError, match="got lower float16"):
        solve_tridiagonal(*(np.ones(5, np.float16),) * 4)


def test_errors_name_the_rule():
    with pytest.raises(ValueError, match="at least one dimension"):
        solve_tridiagonal(1.0, 4.0, 1.0, 2.0)
    with pytest.raises(ValueError, match="do not broadcast"):
        solve_tridiagonal(np.ones((2, 5)), 4.0, 1.0, np.ones((3, 5)))
    with pytest.raises(TypeError, match="periodic must be a bool"):
        solve_tridiagonal(1.0, 4.0, 1.0, np.ones(5), periodic="no")


def sum_of_cubes(solve):
    """Return a function whose gradient depends on every unknown, with the solution."""

    def loss(*operands):
        x = solve(*operands)
        return (x**3).sum(), x

    return loss


@pytest.mark.parametrize(
    "mapped",
    [  # one operand, those of the matrix, the sides with a diagonal, and all
        mapped if sum(mapped) in (1, 4) or mapped in ((1, 1, 1, 0), (0, 1, 0, 1)) else slow(mapped)
        for mapped in itertools.product([False, True], repeat=4)
        if any(mapped)
    ],
)
def test_vmap_over_each_subset_of_operands(rng, mapped):
    system = oracle.dominant(rng, (4, 3, 6))
    operands = [a if m else a[0] for a, m in zip(system, mapped, strict=True)]
    operands[1] = operands[1] + 4
    axes = tuple(0 if m else None for m in mapped)

    solve = jax.value_and_grad(sum_of_cubes(solve_tridiagonal), OPERANDS, has_aux=True)
    (_, x), found = jax.jit(jax.vmap(solve, in_axes=axes))(*operands)

    close(x, oracle.solve(*operands))
    each = [np.broadcast_to(a, (4, 3, 6)) for a in operands]
    desired = dense_gradients(3 * oracle.solve(*each) ** 2, *each)
    for a, b in zip(found, desired, strict=True):
        close(a, b)


def test_vmap_of_vmap_shares_the_matrix(rng):
    lower, diag, upper, _ = oracle.dominant(rng, (7,))
    rhs = oracle.uniform(rng, (3, 7, 5))
    solve = jax.vmap(jax.vmap(solve_tridiagonal, (None, None, None, 1), 1), (None, None, None, 0))

    program = jax.jit(solve).lower(lower, diag, upper, rhs).as_text()
    x = solve(lower, diag, upper, rhs)

    close(np.moveaxis(x, 1, -1), oracle.solve(lower, diag, upper, np.moveaxis(rhs, 1, -1)))
    (call,) = [line for line in program.splitlines() if "pysolvers_tridiagonal" in line]
    operands = call.partition(": (")[2].partition(")")[0]
    assert operands.count("tensor<1x1x7xf64>") == 3


@pytest.mark.parametrize(
    ("dtype", "options", "products"),
    [
        # Real and complex formulas differ; the widths of a number do not.
        *((np.complex64, options, False) for options in OPTIONS[::3]),
        (np.complex64, OPTIONS[3], True),
        (np.float64, OPTIONS[1], True),
        (np.float64, OPTIONS[2], False),
        *(slow(np.complex64, options, False) for options in OPTIONS[1:3]),
        slow(np.float32, {}, False),
        slow(np.float64, OPTIONS[2], True),
        *(slow(np.complex64, options, True) for options in OPTIONS[:3]),
        *(slow(np.float64, options, True) for options in OPTIONS[::3]),
        slow(np.complex128, {}, True),
    ],
    indirect=["products"],
)
def test_gradients_are_those_of_linear_algebra(products, rng, dtype, options):
    make = oracle.general if "pivot" in options else oracle.dominant
    system = make(rng, (3, 8), dtype)
    weight = oracle.uniform(rng, (3, 8), dtype)

    found = gradients(solve_tridiagonal, weight, *system, **options)

    desired = dense_gradients(weight, *system, periodic=options.get("periodic", False))
    for a, b in zip(found, desired, strict=True):
        close(a, b, 1e5 if "pivot" in options else 1e3)


@pytest.mark.parametrize(
    ("shared", "periodic", "products"),
    [
        (shared, periodic, way) if is_default else slow(shared, periodic, way)
        for number, (shared, periodic) in enumerate(
            [
                (((7,),) * 3, False),
                (((1, 7), (5, 7), (1, 1)), True),
                (((), (5, 1), ()), False),
                (((5, 7), (), (7,)), True),
            ]
        )
        for way in (False, True)
        for is_default in (number == 0 or way == number % 2,)
    ],
    indirect=["products"],
)
def test_gradients_are_summed_over_broadcast_axes(products, rng, shared, periodic):
    *_, rhs = oracle.dominant(rng, (5, 7))
    operands = [oracle.uniform(rng, shape) for shape in shared]
    operands[1] = operands[1] + 4
    weight = oracle.uniform(rng, (5, 7))

    found = gradients(solve_tridiagonal, weight, *operands, rhs, periodic=periodic)

    desired = dense_gradients(weight, *operands, rhs, periodic=periodic)
    for a, b in zip(found, desired, strict=True):
        assert a.shape == b.shape
        close(a, b)


def test_gradients_of_short_off_diagonals(products, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (3, 8))
    weight = oracle.uniform(rng, (3, 8))

    short = gradients(solve_tridiagonal, weight, lower[:, 1:], diag, upper[:, :-1], rhs)

    full = dense_gradients(weight, lower, diag, upper, rhs)
    close(short[0], full[0][:, 1:])
    close(short[2], full[2][:, :-1])
    close(short[1], full[1])


def test_entries_outside_the_matrix_have_no_gradient(products, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (3, 8))
    lower[:, 0] = upper[:, -1] = np.nan

    found = gradients(solve_tridiagonal, 1.0, lower, diag, upper, rhs)

    assert all(np.isfinite(g).all() for g in found)
    assert not found[0][:, 0].any() and not found[2][:, -1].any()


@pytest.mark.parametrize(
    ("options", "products"),
    [
        ({"periodic": True}, True),
        *(slow(options, True) for options in ({}, {"axis": 0})),
        *(slow(options, False) for options in ({}, {"periodic": True}, {"axis": 0})),
    ],
    indirect=["products"],
)
def test_derivatives_of_second_order(products, rng, options):
    util = pytest.importorskip("jax.test_util")
    system = [np.moveaxis(a, -1, options.get("axis", -1)) for a in oracle.dominant(rng, (2, 6))]

    util.check_grads(
        lambda *operands: solve_tridiagonal(*operands, **options), system, 2, ["fwd", "rev"]
    )


@pytest.mark.parametrize(
    ("case", "dtype", "options"),
    [
        ("own", np.complex128, {}),
        slow("shared", np.float64, {}),
        slow("shared", np.float64, {"periodic": True}),
        slow("exchanged", np.float64, {"pivot": True}),
        ("exchanged", np.float64, {"pivot": True, "periodic": True}),
    ],
)
def test_derivatives_are_those_of_finite_differences(rng, case, dtype, options):
    system = list(oracle.dominant(rng, (2, 6), dtype))
    if case == "shared":
        system[:3] = (a[0] for a in system[:3])
    elif case == "exchanged":  # the rows 2 i and 2 i + 1
        lower, diag, upper, rhs = (a / 8 for a in system)
        system = [lower + np.array([0, 1] * 3), 0 * diag, upper + np.array([1, 0] * 3), rhs]

    check_gradients(lambda *operands: solve_tridiagonal(*operands, **options), system, orders=2)


@pytest.mark.parametrize("products", [False, slow(True)], indirect=True)
def test_vmap_of_gradients_and_hessian(products, rng):
    system = oracle.dominant(rng, (4, 6))
    weight = oracle.uniform(rng, (6,))
    value = weighted(solve_tridiagonal, weight)

    together = jax.jit(jax.vmap(jax.grad(value, OPERANDS)))(*system)
    for a, b in zip(together, dense_gradients(weight, *system), strict=True):
        close(a, b)

    # With g = A^-T w, of which those with respect to diag are -g_i x_i.
    one = [a[0] for a in system]
    inverse = np.linalg.inv(oracle.dense(*one[:3]))
    x, g = inverse @ one[3], inverse.T @ weight
    found = jax.jit(jax.hessian(value, argnums=(1, 3)))(*one)
    of_diag = np.outer(g, x) * inverse
    close(found[0][0], of_diag + of_diag.T)
    close(found[0][1], -g[:, None] * inverse)
    close(found[1][0], -g * inverse.T)
    close(found[1][1], np.zeros((6, 6)))


def test_transposition_of_the_solve_is_the_transposed_solve(products, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (3, 9))

    (x,) = jax.linear_transpose(lambda b: solve_tridiagonal(lower, diag, upper, b), rhs)(rhs)

    close(x, oracle.solve(*oracle.transposed(lower, diag, upper, "T"), rhs))


def test_steps_inside_scan_and_while_loop(rng):
    *_, rhs = oracle.dominant(rng, (3, 9))

    def step(k, x):
        return solve_tridiagonal(-k, 1 + 2 * k, -k, x)

    def by_scan(k):
        return jax.lax.scan(lambda x, _: (step(k, x), None), rhs, length=5)[0]

    desired = rhs
    for _ in range(5):
        desired = oracle.solve(np.float64(-0.3), np.full(9, 1.6), np.float64(-0.3), desired)
    looped = jax.lax.while_loop(
        lambda state: state[0] < 5, lambda state: (state[0] + 1, step(0.3, state[1])), (0, rhs)
    )
    close(by_scan(0.3), desired)
    close(looped[1], desired)
    _, tangent = jax.jvp(
        lambda k: jax.lax.while_loop(
            lambda state: state[0] < 5,
            lambda state: (state[0] + 1, step(k, state[1])),
            (0, jnp.asarray(rhs)),
        )[1].sum(),
        (0.3,),
        (1.0,),
    )
    slope = jax.jit(jax.grad(lambda k: by_scan(k).sum()))(0.3)
    apart = (by_scan(0.3 + 1e-6).sum() - by_scan(0.3 - 1e-6).sum()) / 2e-6
    np.testing.assert_allclose(slope, apart, rtol=1e-7)
    np.testing.assert_allclose(slope, tangent, rtol=1e-12)


def test_only_the_matrix_and_the_solution_are_kept_for_the_reverse_pass(products, rng):
    system = oracle.dominant(rng, (3, 9))

    _, reverse = jax.vjp(solve_tridiagonal, *map(jnp.asarray, system))

    kept = [a for a in jax.tree.leaves(reverse) if a.size >= 9]
    assert 0 < sum(a.size for a in kept) <= 4 * system[0].size


def over_devices(function, specs, result):
    """Return a function that four devices compute together, with parts of its operands."""
    try:
        from jax import shard_map
    except ImportError:  # JAX before 0.6
        from jax.experimental.shard_map import shard_map
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:4]), ("devices",))
    return shard_map(function, mesh=mesh, in_specs=specs, out_specs=result)


def test_work_is_divided_over_devices(rng):
    over, matrix = (jax.sharding.PartitionSpec(*axes) for axes in (("devices",), ()))
    lower, diag, upper, _ = oracle.dominant(rng, (9,))
    rhs = oracle.uniform(rng, (8, 9))

    solve = over_devices(solve_tridiagonal, (matrix, matrix, matrix, over), over)

    close(jax.jit(solve)(lower, diag, upper, rhs), oracle.solve(lower, diag, upper, rhs))
    found = gradients(solve, 1.0, lower, diag, upper, rhs)
    desired = dense_gradients(1.0, lower, diag, upper, rhs)
    for a, b in zip(found, desired, strict=True):
        close(a, b)


@pytest.mark.parametrize(
    ("rows", "axis", "periodic", "shared", "dtype"),
    [
        slow(4, -1, False, False, np.float64),  # one row on each device
        slow(4, -1, True, True, np.float64),
        (8, 0, True, False, np.complex128),  # an interior of one row
        (20, -1, False, True, np.float64),
        slow(20, 0, False, False, np.float64),
    ],
)
def test_rows_are_divided_over_devices(rng, rows, axis, periodic, shared, dtype):
    lower, diag, upper, rhs = oracle.dominant(rng, (3, rows), dtype)
    if shared:
        lower, diag, upper = lower[0], diag[0], upper[0]
    weight = oracle.uniform(rng, rhs.shape, dtype)
    if not periodic:  # these entries are outside the matrix
        lower[..., 0] = upper[..., -1] = np.nan
    system = [a if a.ndim == 1 else np.moveaxis(a, -1, axis) for a in (lower, diag, upper, rhs)]
    fields = ("devices", None) if axis == 0 else (None, "devices")
    specs = [jax.sharding.PartitionSpec(*(fields if a.ndim == 2 else ("devices",))) for a in system]

    split = over_devices(
        lambda *part: solve_tridiagonal(*part, axis=axis, periodic=periodic, axis_name="devices"),
        tuple(specs),
        specs[3],
    )
    every = jax.jit(jax.value_and_grad(
        lambda *a: (lambda x: ((np.moveaxis(weight, -1, axis) * x).real.sum(), x))(split(*a)),
        OPERANDS, has_aux=True))  # fmt: skip
    (_, x), found = every(*system)

    close(np.moveaxis(x, axis, -1), oracle.solve(lower, diag, upper, rhs, periodic=periodic))
    if not periodic:
        lower, upper = (np.nan_to_num(a) for a in (lower, upper))
    desired = dense_gradients(weight, lower, diag, upper, rhs, periodic=periodic)
    for own, one in zip(found, desired, strict=True):
        close(own if own.ndim == 1 else np.moveaxis(own, axis, -1), one)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("rows", [8, 20])
def test_masks_of_rows_that_are_divided_over_devices(rng, rows, periodic):
    """Values and gradients are those of one device, also if all is NaN outside."""
    lower, diag, upper, rhs = oracle.dominant(rng, (5, rows))
    inside = rng.random(rhs.shape) < 0.7
    inside[0], inside[1] = True, False
    before, after = np.roll(inside, 1, -1), np.roll(inside, -1, -1)
    lower[~(inside & before)] = upper[~(inside & after)] = np.nan
    diag[~inside] = rhs[~inside] = np.nan
    weight = np.where(inside, oracle.uniform(rng, rhs.shape), 0)
    spec = jax.sharding.PartitionSpec(None, "devices")
    options = {"periodic": periodic}

    def of_part(*part):
        *operands, where = part
        return solve_tridiagonal(*operands, where=where, axis_name="devices", **options)

    def whole(*operands):
        return solve_tridiagonal(*operands[:4], where=operands[4], **options)

    def loss(function):
        def value(*operands):
            x = function(*operands, inside)
            return (weight * jnp.where(inside, x, 0)).sum(), x

        return jax.jit(jax.value_and_grad(value, OPERANDS, has_aux=True))

    split = over_devices(of_part, (spec,) * 5, spec)
    ((_, x), found), ((_, one), desired) = (
        loss(function)(lower, diag, upper, rhs) for function in (split, whole)
    )
    close(x, one)
    for part, expected in zip(found, desired, strict=True):
        assert np.isfinite(part).all()
        close(part, expected)
    with pytest.raises(TypeError, match="where: need booleans, got float64"):
        over_devices(of_part, (spec,) * 5, spec)(lower, diag, upper, rhs, rhs)


def test_parts_of_rows_are_complete(rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (4, 6))

    def solve(*part):
        return jax.vmap(lambda *a: solve_tridiagonal(*a, axis_name="p"), axis_name="p")(*part)

    with pytest.raises(ValueError, match=r"lower has 5 entries.* with axis_name, "):
        solve(lower[:, 1:], diag, upper, rhs)


def test_operands_of_one_axis_mean_what_they_do_in_numpy(rng):
    """All shapes that are refused, and some of those that are not."""
    solved = 0
    for shape, at in itertools.product([(4, 3), (3, 3), (2, 3), (1, 2)], (0, 1)):
        for number, (shapes, axis) in enumerate(operand_axes.cases(shape, at)):
            named = operand_axes.filled(rng, shapes)
            periodic = bool(number % 3 == 0)
            try:
                full = operand_axes.meant(named, axis, periodic=periodic)
            except ValueError:
                with pytest.raises(ValueError, match=r"has \d (entr|row)|broadcast"):
                    solve_tridiagonal(*named.values(), axis=axis, periodic=periodic)
                continue
            if number % 16 == 0:
                solve = partial(solve_tridiagonal, axis=axis, periodic=periodic)
                x = np.moveaxis(solve(*named.values()), axis, -1)
                assert x.shape == full[0].shape
                assert operand_axes.residual(full, x, periodic=periodic) < 1e-12
                solved += 1
    assert solved > 2


def test_off_diagonals_of_one_row_can_have_no_entry(rng):
    empty, diag, rhs = np.zeros((3, 0)), rng.uniform(1, 2, (3, 1)), rng.uniform(1, 2, (3, 1))

    for lower in (empty, empty[0]):
        x = jax.jit(solve_tridiagonal)(lower, diag, lower, rhs)
        close(x, rhs / diag)
        slope = gradients(solve_tridiagonal, 1.0, lower, diag, lower, rhs)
        assert slope[0].shape == lower.shape
        close(slope[1], -rhs / diag**2)
        factor = factor_tridiagonal(lower, diag, lower, rows=1)
        close(factor.solve(rhs, trans="T"), rhs / diag)


def test_coefficients_of_one_row_need_rows():
    """As with NumPy: an entry for each matrix is its only row, or stands for all rows."""
    column, mask = np.ones((3, 1)), np.ones((3, 1), bool)
    matrix = column, 4 * column, column
    for make in (factor_tridiagonal, partial(factor_theta, dt=0.1), jax.jit(factor_tridiagonal)):
        with pytest.raises(ValueError, match=r"one row along axis -1: .*diag \(3, 1\).* rows=n"):
            make(*matrix)
    with pytest.raises(ValueError, match=r"number of rows is unknown: pass rows=n"):
        factor_tridiagonal(-1.0, 4.0, -1.0)
    with pytest.raises(TypeError, match="rows must be an int, got float"):
        factor_tridiagonal(*matrix, rows=1.0)
    for options in ({"rows": 1}, {"where": mask}):
        close(factor_tridiagonal(*matrix, **options).solve(8 * column), 2 * column)
    close(factor_tridiagonal(*(a[0] for a in matrix)).solve(8 * column), 2 * column)
    five = factor_tridiagonal(*matrix, rows=5).solve(np.ones((3, 5)))
    close(five, solve_tridiagonal(*(np.tile(a, (1, 5)) for a in matrix), np.ones((3, 5))))


@pytest.mark.each_value
@pytest.mark.parametrize("trans", ["N", "T", "H"])
@pytest.mark.parametrize(("shape", "axis"), [((9,), -1), ((4, 9), -1), ((4, 9), 0)])
def test_factor_of_numbers_and_right_hand_sides_of_one_axis(rng, shape, axis, trans):
    *_, diag, _, rhs = oracle.dominant(rng, shape)
    diag, rhs = diag + 4j, rhs.reshape(-1, 9)[0] + 1j
    factor = factor_tridiagonal(-1.0, np.moveaxis(diag, -1, axis), 0.5j, axis=axis)

    x = factor.solve(rhs, trans=trans)

    matrix = (np.full(shape, value) for value in (-1.0, 1.0, 0.5j))
    lower, _, upper = matrix
    expected = oracle.solve(*oracle.transposed(lower, diag, upper, trans), rhs)
    close(np.moveaxis(x, axis, -1), expected)
    with pytest.raises(ValueError, match="rhs has 8 entries, but the systems"):
        factor.solve(rhs[1:], trans=trans)


@pytest.mark.each_value
@pytest.mark.parametrize("trans", ["N", "T", "H"])
@pytest.mark.parametrize("periodic", [False, True])
def test_factor_solves_with_transposes(rng, periodic, trans):
    lower, diag, upper, rhs = oracle.dominant(rng, (3, 9), np.complex128)
    factor = factor_tridiagonal(lower[0], diag, upper, periodic=periodic)

    x = jax.jit(lambda f, b: f.solve(b, trans=trans))(factor, rhs)

    matrix = np.broadcast_arrays(lower[0], diag, upper)
    swapped = oracle.transposed(*matrix, trans)
    close(x, oracle.solve(*swapped, rhs, periodic=periodic))


@pytest.mark.parametrize(
    ("dtype", "options", "trans"),
    [
        (np.complex64, {}, "T"),
        (np.complex128, OPTIONS[3], "H"),
        slow(np.float32, {}, "T"),
        slow(np.complex64, {}, "H"),
        slow(np.complex128, OPTIONS[1], "T"),
        slow(np.float64, {}, "H"),
        *(slow(np.complex128, options, "H") for options in OPTIONS[1:3]),
    ],
)
def test_gradients_of_transposed_solves_are_those_of_linear_algebra(rng, dtype, options, trans):
    make = oracle.general if "pivot" in options else oracle.dominant
    lower, diag, upper, _ = make(rng, (7,), dtype)  # a matrix that all systems share
    rhs, weight = oracle.uniform(rng, (3, 7), dtype), oracle.uniform(rng, (3, 7), dtype)
    periodic = options.get("periodic", False)

    def by_factor(*operands):
        return factor_tridiagonal(*operands[:3], **options).solve(operands[3], trans=trans)

    found = gradients(by_factor, weight, lower, diag, upper, rhs)

    swapped = oracle.transposed(lower, diag, upper, trans)
    of_lower, of_diag, of_upper, of_rhs = dense_gradients(weight, *swapped, rhs, periodic=periodic)
    matrix = np.roll(of_upper, 1), of_diag, np.roll(of_lower, -1)
    desired = [*(a.conj() if trans == "H" else a for a in matrix), of_rhs]
    for a, b in zip(found, desired, strict=True):
        close(a, b, 1e5 if "pivot" in options else 1e3)


def test_factor_along_an_axis_with_constant_rows(rng):
    rhs = oracle.uniform(rng, (4, 9, 2))
    factor = factor_tridiagonal(-1.0, np.full((1, 1), 3.0), -1.0, axis=-2, rows=9)

    close(factor.solve(rhs), solve_tridiagonal(-1.0, 3.0, -1.0, rhs, axis=1))
    close(factor.solve(rhs, trans="T"), solve_tridiagonal(-1.0, 3.0, -1.0, rhs, axis=1))
    with pytest.raises(ValueError, match="9 rows along axis -2, got shape"):
        factor.solve(rhs[:, 1:])
    with pytest.raises(ValueError, match="trans"):
        factor.solve(rhs, trans="X")


@pytest.mark.parametrize("where", [None, np.arange(4) != 2])
@pytest.mark.parametrize("shape", [(4,), (4, 4), (4, 4, 4)])
def test_axis_of_a_factor_is_that_of_right_hand_sides(rng, shape, where):
    lower, diag, upper, _ = oracle.dominant(rng, (4,))
    cube = oracle.uniform(rng, shape)
    dense = oracle.dense(lower, diag, upper)
    if where is not None:
        dense = np.where(where[:, None] & where, dense, np.eye(4))
    for axis in range(-len(shape), len(shape)):
        along = partial(np.apply_along_axis, axis=axis, arr=cube)
        options = {"axis": axis, "where": where}
        for off in ((lower, upper), (lower[1:], upper[:-1])):
            made = factor_tridiagonal(off[0], diag, off[1], **options)
            assert made.axis == axis
            close(made.solve(cube), along(partial(np.linalg.solve, dense)))
            close(made.solve(cube, trans="T"), along(partial(np.linalg.solve, dense.T)))
            close(made.multiply(cube), along(partial(np.dot, dense)))
        rod = factor_theta(lower, -diag, upper, dt=0.3, theta=0.7, **options)
        expected = pysolvers.theta_step(lower, -diag, upper, cube, dt=0.3, theta=0.7, **options)
        close(rod.step(cube), expected)
        source = np.arange(4.0)
        expected = pysolvers.theta_step(
            lower, -diag, upper, cube, dt=0.3, theta=0.7, source=source, **options
        )
        close(rod.step(cube, source), expected)
        mapped = jax.vmap(factor_tridiagonal(-1.0, 4.0, -1.0, rows=4, axis=axis).solve)
        expected = solve_tridiagonal(-1.0, 4.0, -1.0, cube, axis=axis)
        close(mapped(np.stack([cube, 2 * cube])), np.stack([expected, 2 * expected]))


def test_axis_of_a_factor_that_right_hand_sides_do_not_have_is_refused():
    for axis, shape in ((1, (4,)), (2, (4, 4)), (-3, (4, 4))):
        made = factor_tridiagonal(-1.0, 4.0, -1.0, rows=4, axis=axis)
        for call in (
            made.solve,
            made.multiply,
            factor_theta(0.0, 0, 0.0, dt=1, rows=4, axis=axis).step,
        ):
            with pytest.raises(np.exceptions.AxisError, match=f"axis of the factor .*got {axis}"):
                call(np.ones(shape))


def test_mapped_factors_are_solved_with_under_vmap(rng):
    lower, diag, upper, _ = oracle.dominant(rng, (3, 4))
    rhs = oracle.uniform(rng, (3, 4, 4))
    for axis in (0, 1, -1, -2):
        made = jax.vmap(partial(factor_tridiagonal, axis=axis))(lower, diag, upper)
        x = jax.vmap(lambda f, b: f.solve(b))(made, rhs)
        for k in range(3):
            own = lower[k], diag[k], upper[k]
            close(x[k], pysolvers.solve_tridiagonal(*own, rhs[k], axis=axis))
        if axis >= 0:
            with pytest.raises(ValueError, match=r"solve under the same jax\.vmap"):
                made.solve(rhs)


def test_factor_is_carried_by_loops_and_vmap_and_differentiated(rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (3, 9))
    weight = oracle.uniform(rng, (3, 9))

    def loss(diag):
        factors = jax.vmap(factor_tridiagonal)(lower, diag, upper)
        x, _ = jax.lax.scan(
            lambda x, _: (jax.vmap(lambda f, b: f.solve(b))(factors, x), 0), rhs, length=2
        )
        return (weight * x).sum()

    matrix, swapped = (lower, diag, upper), oracle.transposed(lower, diag, upper, "T")
    once, g = oracle.solve(*matrix, rhs), oracle.solve(*swapped, weight)
    twice, before = oracle.solve(*matrix, once), oracle.solve(*swapped, g)
    close(jax.jit(jax.grad(loss))(diag), -(g * twice + before * once))


@pytest.mark.parametrize(
    ("trans", "axis"),
    [
        ("solve", 0),
        ("H", -1),
        *(slow(trans, 0) for trans in "TH"),
        *(slow(trans, -1) for trans in ("solve", "T")),
    ],
)
def test_one_row_without_off_diagonal_entries(axis, trans):
    shape, none = ((1, 4), (0, 4)) if axis == 0 else ((4, 1), (4, 0))
    diag = np.arange(2.0, 6.0).reshape(shape)
    rhs = np.array([3.0, -1.0, 0.5, 7.0]).reshape(shape)

    def solve(d, b, off):
        if trans == "solve":
            return solve_tridiagonal(off, d, off, b, axis=axis)
        return factor_tridiagonal(off, d, off, axis=axis, rows=1).solve(b, trans=trans)

    for off in (jnp.zeros(none), jnp.zeros(0)):
        np.testing.assert_allclose(solve(diag, rhs, off), rhs / diag, rtol=1e-15)
    gradient = jax.jit(jax.grad(lambda d, b: solve(d, b, off).sum(), (0, 1)))(diag, rhs)
    np.testing.assert_allclose(gradient, (-rhs / diag**2, 1 / diag), rtol=1e-15)


def test_one_row_without_off_diagonal_entries_in_a_batch_of_jax():
    off, diag, rhs = jnp.zeros((4, 0)), jnp.full((4, 1), 2.0), jnp.full((4, 1), 3.0)

    x = jax.vmap(solve_tridiagonal)(off, diag, off, rhs)
    _, tangent = jax.jvp(solve_tridiagonal, (off, diag, off, rhs), (off, diag, off, 0 * rhs))

    np.testing.assert_array_equal(x, np.full((4, 1), 1.5))
    np.testing.assert_array_equal(tangent, -x)


def scaled(rng, dtype, size, shape):
    """Return diagonally dominant systems whose entries have this size."""
    parts = rng.uniform(-1, 1, (2, 4, *shape))
    lower, diag, upper, rhs = parts[0] + 1j * parts[1]
    return [np.asarray(a * size, dtype) for a in (lower, diag + 4, upper, rhs)]


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("dtype", "size"),
    [(np.complex64, 1e-36), (np.complex64, 1e36), (np.complex128, 1e-305), (np.complex128, 1e305)],
)
@pytest.mark.parametrize("pivot", [None, False, True])
def test_entries_near_the_ends_of_the_range(rng, dtype, size, pivot):
    systems = scaled(rng, dtype, size, (40, 12))

    x = np.asarray(solve_tridiagonal(*systems, pivot=pivot))
    kept = np.asarray(factor_tridiagonal(*systems[:3], pivot=pivot).solve(systems[3]))

    # A power of two, so that the entries of the expected systems are exact.
    exact = [a.astype(np.clongdouble) * 2.0 ** -np.round(np.log2(size)) for a in systems]
    for found in (x, kept):
        # Tridiagonal residual of the scaled systems; x does not depend on the scale.
        lower, diag, upper, rhs = exact
        wide = found.astype(np.clongdouble)
        residual, terms = diag * wide - rhs, np.abs(diag * wide) + np.abs(rhs)
        residual[:, 1:] += lower[:, 1:] * wide[:, :-1]
        residual[:, :-1] += upper[:, :-1] * wide[:, 1:]
        terms[:, 1:] += np.abs(lower[:, 1:] * wide[:, :-1])
        terms[:, :-1] += np.abs(upper[:, :-1] * wide[:, 1:])
        assert np.max(np.abs(residual) / terms) < 10 * oracle.eps(dtype)


def test_subnormal_solutions_are_those_of_the_backend(rng):
    diag, rhs = np.full((3000, 20), 2.5), rng.random((3000, 20)) * 1e-307

    expected = pysolvers.solve_tridiagonal(-1.0, diag, -1.0, rhs, threads=1)
    threads = pysolvers.solve_tridiagonal(-1.0, diag, -1.0, rhs, threads=3)
    x = solve_tridiagonal(-1.0, diag, -1.0, rhs)
    back = jax.pure_callback(
        lambda d, b: pysolvers.solve_tridiagonal(-1.0, np.asarray(d), -1.0, np.asarray(b)),
        jax.ShapeDtypeStruct(rhs.shape, rhs.dtype),
        diag,
        rhs,
    )

    np.testing.assert_array_equal(threads, expected)
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(back, expected)
