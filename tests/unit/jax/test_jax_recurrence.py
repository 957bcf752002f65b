"""Linear recurrences as functions of JAX: values, derivatives and transformations."""

import numpy as np
import pytest
from array_libraries import check_gradients

import pysolvers

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from pysolvers.jax import linear_recurrence  # noqa: E402


def operands(shape, order, seed=0):
    rng = np.random.default_rng(seed)
    a, second = (0.6 * rng.uniform(-1, 1, shape) for _ in range(2))
    initial = tuple(rng.standard_normal(shape[:-1]) for _ in range(order))
    return a, rng.standard_normal(shape), second if order == 2 else None, initial


@pytest.mark.each_value
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(7,), (2, 4, 6), (2, 1)])
def test_values_are_those_of_numpy(shape, order, reverse):
    a, b, second, initial = operands(shape, order)
    given = initial if order == 2 else initial[0]
    for axis in range(len(shape)):
        moved = [None if v is None else np.moveaxis(v, -1, axis) for v in (a, b, second)]
        options = {"second": moved[2], "initial": given, "axis": axis, "reverse": reverse}
        wanted = pysolvers.linear_recurrence(moved[0], moved[1], **options)
        x = jax.jit(lambda a, b, o=options: linear_recurrence(a, b, **o))(moved[0], moved[1])
        assert np.allclose(x, wanted, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("reverse", "order"),
    [  # a direction of one order is that of the other one; JAX compiles for two seconds
        (False, 1),
        (True, 2),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((True, 1), (False, 2))),
    ],
)
def test_derivatives_are_those_of_differences(order, reverse):
    a, b, second, initial = operands((2, 5), order)

    def values(a, b, *others):
        second = others[0] if order == 2 else None
        given = others[1:] if order == 2 else others[0]
        return linear_recurrence(a, b, second=second, initial=given, reverse=reverse)

    more = (second, *initial) if order == 2 else initial
    # Derivatives of second order of the recurrence of second order: those of both cost seconds.
    check_gradients(values, (a, b, *more), orders=order)


def test_shared_coefficients_get_the_sum_of_their_gradients():
    _, b, _, _ = operands((4, 6), 1)
    line = np.linspace(-0.5, 0.5, 6)
    loss = jax.jit(jax.grad(lambda a: (linear_recurrence(a, b) ** 2).sum()))
    own = loss(jnp.broadcast_to(line, b.shape))

    assert np.allclose(loss(jnp.asarray(line)), own.sum(0), rtol=1e-12)
    number = loss(0.5)
    assert np.allclose(number, loss(jnp.full(b.shape, 0.5)).sum(), rtol=1e-12)


def test_vmap_maps_some_operands():
    a, b, _, _ = operands((3, 4, 6), 1)
    wanted = pysolvers.linear_recurrence(a, b)

    assert np.allclose(jax.vmap(linear_recurrence)(a, b), wanted, atol=1e-13)
    shared = jax.vmap(linear_recurrence, in_axes=(None, 0))(a[0], b)
    assert np.allclose(shared, pysolvers.linear_recurrence(a[0], b), atol=1e-13)
    slope = jax.grad(lambda a, b: linear_recurrence(a, b).sum())
    gradient, together = jax.jit(jax.vmap(slope))(a, b), jax.jit(slope)(a, b)
    assert np.allclose(gradient, together, atol=1e-12)


def test_gradients_are_those_of_a_scan():
    a, b, _, _ = operands((3, 50), 1)

    def by_scan(a, b):
        def step(x, row):
            x = row[0] * x + row[1]
            return x, x

        return jax.lax.scan(step, jnp.zeros(3), (a.T, b.T))[1].T

    ours, theirs = (
        jax.jit(jax.grad(lambda a, b, f=f: jnp.sin(f(a, b)).sum(), (0, 1)))(a, b)
        for f in (linear_recurrence, by_scan)
    )
    for own, one in zip(ours, theirs, strict=True):
        assert np.allclose(own, one, rtol=1e-11, atol=1e-12)
    assert linear_recurrence(0.5, jnp.ones(3, jnp.float32)).dtype == jnp.float32
    with pytest.raises(ValueError, match="initial must broadcast"):
        linear_recurrence(a, b, initial=np.ones(2))
