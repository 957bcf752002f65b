"""The kernel of rates: the formula of its header, bits, and shapes of blocks."""

import numpy as np
import pytest

from pysolvers import ParabolicADI, _core

PAIRS = ((0, 1), (0, 2), (1, 2))


def random_values(rng, count, dtype):
    """Return values that broadcast to a box, along some of its axes."""
    return rng.random([n if rng.random() < 0.5 else 1 for n in count]).astype(dtype)


def random_call(rng, size, dtype):
    """Return the arguments of a call on a field with a batch of two."""
    space, missing = len(size), 3 - len(size)
    periodic = [bool(rng.random() < 0.3) for _ in size] + [False] * missing
    shape = (2, *(1,) * missing, *size)
    begin, count = [0] * 3, list(shape[1:])
    for axis in range(space):
        if not periodic[axis]:
            begin[2 - axis] = int(rng.integers(2))
            count[2 - axis] -= begin[2 - axis] + int(rng.integers(2))
    box = (2, *count)
    rows = tuple(random_values(rng, box, dtype) for _ in range(3 * space))
    slopes = tuple(
        rng.random([n if k == 3 - axis else 1 for k, n in enumerate(box)]).astype(dtype)
        for axis in range(space)
        for _ in range(3)
    )
    mixed = tuple(
        random_values(rng, box, dtype) if two < space and rng.random() < 0.7 else None
        for _, two in PAIRS
    )
    level = (tuple(periodic), tuple(begin), tuple(count), space, rows, slopes, mixed)
    source, extra = (
        random_values(rng, box, dtype) if rng.random() < 0.5 else None for _ in range(2)
    )
    u, d, out, second = (rng.random(shape).astype(dtype) for _ in range(4))
    weights = [tuple(rng.choice([0.0, 0.5, -2.0], 5)) for _ in range(2)]
    if rng.random() < 0.5:
        d = None
    return [level, source, extra, u, d, out, second, *weights]


def combinations(level, source, extra, u, d, out, second, *weights):
    """Return the results by the formula of ps_rates.h, in double precision."""
    periodic, begin, count, space, rows, slopes, mixed = level
    y = u.astype("f8") if d is None else u.astype("f8") + d
    box = (slice(None), *(slice(b, b + n) for b, n in zip(begin, count, strict=True)))

    def neighbours(field, axis, step):
        n = field.shape[3 - axis]
        index = np.arange(n) + step
        index = index % n if periodic[axis] else np.clip(index, 0, n - 1)
        return np.take(field, index, axis=3 - axis)

    lines = 0.0 if source is None else source
    for axis in range(space):
        for w in range(3):
            lines = lines - rows[3 * axis + w] * neighbours(y, axis, w - 1)[box]
    parts = np.zeros(1) if extra is None else extra.astype("f8")
    for (one, two), coefficient in zip(PAIRS, mixed, strict=True):
        if coefficient is None:
            continue
        for v in range(3):
            for w in range(3):
                at = neighbours(neighbours(y, one, v - 1), two, w - 1)[box]
                parts = parts + coefficient * slopes[3 * one + v] * slopes[3 * two + w] * at
    found = []
    for field, (of_lines, of_parts, own, change, base) in zip((out, second), weights, strict=True):
        result = field.astype("f8")
        result[box] = of_lines * lines + of_parts * parts + own * result[box] + base * u[box]
        if d is not None:
            result[box] += change * d[box]
        found.append(result)
    return found


def same_as_by_formula(call, backend=_core, place=(0,)):
    expected = combinations(*call)
    assert backend.rates(*call, *place) == 0
    for found, result in zip(call[5:7], expected, strict=True):
        scale = 40 * np.finfo(found.dtype).eps * (1 + abs(result).max())
        np.testing.assert_allclose(found, result, rtol=0, atol=scale)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_formula_of_the_header(seed, dtype):
    rng = np.random.default_rng(seed)
    for space in (1, 2, 3):
        same_as_by_formula(random_call(rng, rng.integers(3, 9, space), dtype))


@pytest.mark.parametrize("size", [(3,), (511,), (514,), (1029,), (4, 515), (4, 3, 514)], ids=str)
def test_rows_of_blocks(size, rng):
    same_as_by_formula(random_call(rng, size, "f8"))


def test_field_larger_than_the_caches(rng):
    """Its results are stored past the caches."""
    same_as_by_formula(random_call(rng, (800, 801), "f8"))


@pytest.mark.parametrize("shape", [(40_000,), (90, 1100), (12, 30, 600)], ids=str)
def test_number_of_threads_does_not_change_a_bit(shape):
    axes = "xyz"[: len(shape)]
    coefficient = 1 + np.random.default_rng(0).random(shape)
    diffusion = {2 * axis: 1.0 + k for k, axis in enumerate(axes)} | {"xx": coefficient}
    diffusion |= {"xy": 0.4} if len(shape) == 2 else {}
    diffusion |= {"xy": 0.4, "xz": -0.3, "yz": coefficient / 3} if len(shape) == 3 else {}
    one, three = (
        ParabolicADI(
            shape,
            extent=((0, 1),) * len(shape),
            diffusion=diffusion,
            advection={"x": 0.7},
            source=0.5,
            boundary="periodic",
            initial=np.cos(0.3 * np.indices(shape).sum(axis=0)),
            dt=0.003,
            threads=threads,
        )
        .step(2)
        .u
        for threads in (1, 3)
    )

    np.testing.assert_array_equal(one, three)
