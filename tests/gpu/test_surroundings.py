"""Operands anywhere in larger arrays: what lies around them is neither read nor written."""

import numpy as np
import oracle
import pytest

import pysolvers

CASES = 25
ROWS = (1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 33, 64, 65, 100, 129, 257, 300, 513, 1022, 2049, 4097)
SYSTEMS = (1, 2, 3, 5, 16, 17, 32, 33, 65, 100)
STEPS = (1, 1, 1, 2, 3, -1, -2)
METHODS = ("auto", "partition", "pivoted", "thomas", "cr", "pcr", "cr-pcr", "pcr-thomas")


@pytest.fixture(scope="module")
def cupy():
    return pytest.importorskip("cupy")


class Room:
    """A view of a shape, with steps, gaps and axes in any order, in a larger array."""

    def __init__(self, rng, shape):
        self.order = rng.permutation(len(shape)) if rng.random() < 0.3 else range(len(shape))
        spans = []
        self.index = []
        for n in shape:
            step = int(rng.choice(STEPS))
            span = (n - 1) * abs(step) + 1
            self.index.append(np.s_[:span:step] if step > 0 else np.s_[span - 1 :: step])
            spans.append(span + int(rng.choice([0, 0, 1, 3, 4])))
        self.spans = [spans[k] for k in self.order]
        self.begin = int(rng.integers(0, 6))
        self.size = self.begin + int(np.prod(spans)) + 7

    def view(self, memory):
        inner = memory[self.begin : self.size - 7].reshape(self.spans)
        return inner.transpose(np.argsort(self.order))[tuple(self.index)]

    def place(self, cupy, values, around):
        """Return an array with `values` in the view, and the view."""
        memory = cupy.full(self.size, around, values.dtype)
        self.view(memory)[...] = cupy.asarray(values)
        return memory, self.view(memory)


def draw(rng):
    """Return a random batch, and the options of its solution."""
    rows = int(rng.choice(ROWS))
    shape = [int(n) for n in rng.choice(SYSTEMS, rng.integers(0, 3))]
    while rows * int(np.prod(shape)) > 100_000:
        shape[int(np.argmax(shape))] //= 3
    shape = [max(n, 1) for n in shape]
    axis = int(rng.integers(0, len(shape) + 1))
    shape.insert(axis, rows)
    matrix = [n if k == axis or rng.random() < 0.7 else 1 for k, n in enumerate(shape)]
    options = {"periodic": bool(rng.random() < 0.3), "method": str(rng.choice(METHODS))}
    dtype = rng.choice(oracle.DTYPES)
    flat = oracle.dominant(rng, (*(n for k, n in enumerate(shape) if k != axis), rows), dtype)
    operands = [np.moveaxis(a, -1, axis) for a in flat]
    cut = tuple(slice(n) for n in matrix)
    return [*(a[cut] for a in operands[:3]), operands[3]], {"axis": axis, **options}


@pytest.mark.parametrize("seed", range(6))
def test_surroundings_are_left_alone(cupy, seed):
    rng = np.random.default_rng(seed)
    for _ in range(CASES):
        operands, options = draw(rng)
        rooms = [Room(rng, a.shape) for a in operands]
        arrays = [r.place(cupy, a, np.nan) for r, a in zip(rooms, operands, strict=True)]
        where = Room(rng, operands[3].shape)
        memory, out = where.place(cupy, np.zeros_like(operands[3]), 7)
        if rng.random() < 0.3:
            where, (memory, out) = rooms[3], arrays[3]
        before = [array.copy() for array, _ in arrays]
        expected = memory.copy()

        pysolvers.solve_tridiagonal(
            *(view for _, view in arrays), out=out, on_singular="ignore", **options
        )

        x, axis = out.get(), options["axis"]
        *matrix, rhs = (np.broadcast_to(a, x.shape) for a in operands)
        *matrix, rhs, x = (np.moveaxis(a, axis, -1) for a in (*matrix, rhs, x))
        error = oracle.backward_error(*matrix, rhs, x, periodic=options["periodic"])
        assert error < 300 * oracle.eps(x.dtype), options
        where.view(expected)[...] = out
        assert cupy.array_equal(memory, expected, equal_nan=True), options
        for (array, _), old in zip(arrays, before, strict=True):
            assert array is memory or cupy.array_equal(array, old, equal_nan=True), options


@pytest.mark.parametrize("rows", [2, 3, 5, 9])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_contiguous_matrices_of_systems_side_by_side(cupy, rng, dtype, rows):
    *matrix, rhs = oracle.dominant(rng, (200, 200, rows), dtype)
    arrays = [cupy.asarray(a) for a in matrix]
    strided = cupy.ascontiguousarray(cupy.asarray(rhs).swapaxes(1, 2)).swapaxes(1, 2)
    out = cupy.full((200, rows, 200), np.nan, dtype).swapaxes(1, 2)

    pysolvers.solve_tridiagonal(*arrays, strided, pivot=False, out=out, on_singular="ignore")

    assert oracle.backward_error(*matrix, rhs, out.get()) < 100 * oracle.eps(dtype)
