"""Checks of split recurrences, run by every rank of an MPI job; see test_distributed.py.

The oracles are a loop in extended precision, and the same call with the whole arrays.
"""

import itertools
from contextlib import nullcontext

import numpy as np
import oracle
import pytest
from fake_device import FullArray, in_place_of_cuda
from rank_hooks import counting_rows_of_recurrences, failing_recurrences
from ranks_solve import cut, joined
from slabs import chosen

from pysolvers import DistributedError, linear_recurrence
from pysolvers.distributed import Slab

BOUND = 60  # rounding errors of the terms of a row, and of what the values before it have gathered


def looped(a, b, initial, second=None):
    """Return the recurrence along the last axis, by a loop in extended precision."""
    wide = np.clongdouble if np.iscomplexobj(b) or np.iscomplexobj(a) else np.longdouble
    a, c, b = (np.broadcast_to(v, b.shape).astype(wide) for v in (a, second or 0, b))
    before, x = list(np.broadcast_arrays(*initial, b[..., 0]))[:2], np.empty(b.shape, wide)
    for t in range(b.shape[-1]):
        x[..., t] = a[..., t] * before[0] + b[..., t]
        if second is not None:
            x[..., t] += c[..., t] * before[1]
        before = [x[..., t], before[0]]
    return x


def split_call(group, shape, along, axis, a, b, **options):
    """Compute with the part of this rank; return the whole result."""
    batch, place = (*shape[:axis], *shape[axis + 1 :]), along - (along > axis)

    def own(value):
        """Return the part of an operand; one of one dimension lies along the recurrence."""
        if np.ndim(value) == 0 or (np.ndim(value) == 1 < len(shape) and along != axis):
            return value
        if np.ndim(value) == 1:
            return cut(group, value, (shape[axis],), 0)
        return cut(group, value, shape, along)

    def state(value):
        """Return the part of the values before the first one, which are not cut with the rows."""
        return cut(group, value, batch, place) if along != axis and np.ndim(value) else value

    if "second" in options:
        options["second"] = own(options["second"])
    if isinstance(options.get("initial"), tuple):
        options["initial"] = tuple(map(state, options["initial"]))
    elif "initial" in options:
        options["initial"] = state(options["initial"])
    x = linear_recurrence(own(a), own(b), axis=axis, group=group, split=Slab(along), **options)
    return joined(group, x, along)


def require_close(x, expected):
    """Compare with rounding errors of the largest terms of each line."""
    bound = BOUND * oracle.eps(x.dtype) * max(1, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(x, expected, rtol=0, atol=bound)


def check_recurrences_along_every_axis(group, rng):
    number = 0
    for shape in ((5, 9), (3, 4, 300), (4, 6, 3)):
        for axis, along in itertools.product(range(len(shape)), repeat=2):
            if shape[along] < group.size:
                continue
            number += 1
            batch = (*shape[:axis], *shape[axis + 1 :])
            for dtype in chosen(number, oracle.DTYPES):
                a, c, b = (oracle.uniform(rng, shape, dtype) for _ in range(3))
                a, c = 0.6 * a / np.abs(a).max(), 0.3 * c / np.abs(c).max()
                states = tuple(oracle.uniform(rng, batch, dtype) for _ in range(2))
                line = np.moveaxis(a, axis, -1)[(0,) * (len(shape) - 1)].copy()
                for reverse, own, order in itertools.product((False, True), (a, line, 0.5), (1, 2)):
                    options = {"reverse": reverse}
                    options |= {"second": c if own is a else 0.25} if order == 2 else {}
                    options["initial"] = states if order == 2 else states[0]

                    x = split_call(group, shape, along, axis, own, b, **options)

                    whole = linear_recurrence(own, b, axis=axis, **options)
                    assert x.dtype == whole.dtype
                    require_close(x, whole)


def check_against_a_loop(group, rng):
    rows = 40 * group.size + 3
    for factor, order in itertools.product((0.2, 0.9, 1.0), (1, 2)):
        a, b = factor * rng.choice([-1.0, 1.0], (3, rows)), rng.standard_normal((3, rows))
        second = None if order == 1 else -0.5
        initial = (0.7, -0.2)[:order]
        options = {"initial": initial if order == 2 else initial[0]}
        options |= {} if second is None else {"second": second}

        x = split_call(group, (3, rows), 1, 1, a, b, **options)

        expected = looped(a, b, (*initial, 0.0)[:2], second)
        require_close(x, expected.astype(float))
        rest = x[:, 1:] - a[:, 1:] * x[:, :-1] - b[:, 1:]
        if order == 1:
            assert np.abs(rest).max() <= BOUND * oracle.eps(x.dtype) * np.abs(x).max()


def check_values_that_only_decay_keep_their_digits(group, _rng):
    """Nothing is added: each value is tiny, and right."""
    rows = 30 * group.size
    x = split_call(group, (1, rows), 1, 1, 0.5, np.zeros((1, rows)), initial=1.0)
    np.testing.assert_array_equal(x, 0.5 ** np.arange(1, rows + 1)[None])


def check_values_that_grow(group, rng):
    """They are those of one process: the ranks compute one after the other."""
    rows = 50 * group.size
    b = rng.standard_normal((4, rows))
    for options in ({}, {"reverse": True}, {"second": -1.0}):
        a = 2.0 if "second" in options else 1.5
        x = split_call(
            group,
            b.shape,
            1,
            1,
            a,
            b,
            initial=(1.0, 2.0) if "second" in options else 1.0,
            **options,
        )
        whole = linear_recurrence(
            a, b, initial=(1.0, 2.0) if "second" in options else 1.0, **options
        )
        np.testing.assert_allclose(x, whole, rtol=1e-13)


def check_values_that_only_exact_sums_keep_small(group, rng):
    """The values are small integers, and products of the coefficients overflow."""
    for rows in (100, 1200):
        expected = rng.integers(-3, 4, (2, rows * group.size)).astype(float)
        b = expected.copy()
        b[:, 1:] -= 2 * expected[:, :-1]

        x = split_call(group, b.shape, 1, 1, 2.0, b)

        np.testing.assert_array_equal(x, expected)


def check_many_lines(group, rng):
    """Of which several blocks are computed again, and multiplied; also in place of b."""
    shape = (300, 250 * group.size)
    signs, b, c = rng.choice([-1.0, 1.0], shape), *rng.standard_normal((2, *shape))
    for factor, order, reverse in itertools.product((0.5, 0.95, 1.0), (1, 2), (False, True)):
        a, options = factor * signs, {"reverse": reverse}
        options |= {"second": 0.01 * c * (1 - factor)} if order == 2 else {}
        own = cut(group, b, shape, 1).copy()
        parts = {n: cut(group, v, shape, 1) for n, v in options.items() if n == "second"}

        x = split_call(group, shape, 1, 1, a, b, **options)
        y = linear_recurrence(
            cut(group, a, shape, 1), own, out=own, group=group, split=Slab(1), **options | parts
        )

        assert y is own
        expected = linear_recurrence(a, b, **options)
        for found in (x, joined(group, y, 1)):
            np.testing.assert_allclose(found, expected, rtol=0, atol=3e-14 * np.abs(expected).max())


def check_values_that_are_not_finite_spread_as_in_a_loop(group, rng):
    rows = 6 * group.size
    a, b = rng.uniform(-0.5, 0.5, (2, 4, rows))
    b[1, 2], b[2, -1], a[3, rows // 2], a[2, 3] = np.inf, np.nan, np.inf, 0
    b[2, 1] = -np.inf
    with np.errstate(all="ignore"):
        x = split_call(group, b.shape, 1, 1, a, b)
        expected = looped(a, b, (0.0, 0.0)).astype(float)
    np.testing.assert_allclose(x, expected, rtol=1e-12)


def check_unequal_parts_and_parts_of_one_row(group, rng):
    sizes = [1 + 70 * (rank % 2) for rank in range(group.size)]
    bounds = np.cumsum([0, *sizes])
    a, c, b = rng.uniform(-0.6, 0.6, (3, 2, bounds[-1]))
    own = slice(bounds[group.rank], bounds[group.rank + 1])
    for reverse in (False, True):
        options = {"initial": (1.0, 2.0), "reverse": reverse}
        x = linear_recurrence(
            a[:, own], b[:, own], second=c[:, own], group=group, split=Slab(1), **options
        )
        require_close(joined(group, x, 1), linear_recurrence(a, b, second=c, **options))


def check_few_rows_are_computed_again(group, rng):
    """Those up to which the values before the part matter."""
    rows = 5000 * group.size
    a, b = rng.uniform(0.3, 0.5, (40, rows)), rng.standard_normal((40, rows))

    with counting_rows_of_recurrences() as computed:
        x = split_call(group, b.shape, 1, 1, a, b)

    np.testing.assert_allclose(x, linear_recurrence(a, b), rtol=1e-12, atol=1e-14)
    if group.size > 1:
        products = 1 * (0 < group.rank < group.size - 1)
        assert sum(computed) <= 5000 + 5000 * products + 1000


def check_empty_batches(group, _rng):
    x = linear_recurrence(0.5, np.zeros((0, 4)), group=group, split=Slab(1))
    assert x.shape == (0, 4)


def check_calls_that_differ(group, rng):
    b = rng.standard_normal((3, 4))
    differing = [
        ({"initial": 1.0} if group.rank else {}, "use of initial must be the same"),
        ({"reverse": group.rank > 0}, "reverse must be the same"),
        ({"second": 0.1} if group.rank else {}, "operands must be the same"),
    ]
    for options, text in differing if group.size > 1 else ():
        with pytest.raises(DistributedError, match=text):
            linear_recurrence(0.5, b, group=group, split=Slab(1), **options)
    wrong = [
        ({"initial": (1.0, 2.0)}, "initial must be one array or number"),
        ({"reverse": 2}, "reverse must be"),
        ({"device": "tpu"}, "tpu"),
        ({"check_finite": True, "second": np.nan}, "second is nan"),
    ]
    for options, text in wrong:
        with pytest.raises(DistributedError if group.rank else Exception, match=text):
            linear_recurrence(0.5, b, group=group, split=Slab(1), **({} if group.rank else options))


def check_errors_of_one_rank_raise_on_all(group, rng):
    b = rng.standard_normal((3, 4))
    own = MemoryError("no memory")
    if group.size > 1:
        context = failing_recurrences(own) if group.rank == 0 else nullcontext()
        with (
            context,
            pytest.raises(DistributedError if group.rank else MemoryError, match="no mem"),
        ):
            linear_recurrence(0.5, b, group=group, split=Slab(1))
    x = linear_recurrence(0.5, b, group=group, split=Slab(1))
    np.testing.assert_allclose(x[:, 1:], 0.5 * x[:, :-1] + b[:, 1:], rtol=1e-12)


def check_arrays_of_a_device(group, rng):
    rows = 30 * group.size
    with in_place_of_cuda() as device:
        for factor, order, kind in itertools.product((0.5, 1.0, 1.4), (1, 2), (float, complex)):
            a = factor * rng.choice([-1.0, 1.0], (3, rows))
            b = oracle.uniform(rng, (3, rows), np.dtype(kind))
            options = {"initial": 0.3} if order == 1 else {"second": -0.2, "initial": (0.3, 1.0)}
            parts = (FullArray(device, cut(group, v, b.shape, 1)) for v in (a, b))

            x = linear_recurrence(*parts, group=group, split=Slab(1), **options)

            whole = linear_recurrence(a, b, **options)
            np.testing.assert_allclose(joined(group, x.get(), 1), whole, rtol=1e-11, atol=1e-12)
