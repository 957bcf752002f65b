"""The shapes that operands of one axis mean (`_runtime.arrays`), against operand_axes.py."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from operand_axes import NAMES, both, cases, filled

from pysolvers._runtime.arrays import padded_shape, resolve_shape

PLANES = list(itertools.product(range(1, 5), range(1, 5)))
BOXES = [(2, 3, 4), (3, 3, 3), (4, 1, 3), (1, 4, 2)]


class Stub(NamedTuple):
    """An array of any library: a shape."""

    shape: tuple[int, ...]

    @property
    def ndim(self):
        return len(self.shape)


@pytest.mark.each_value
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("leader", ["rhs", "diag"])
def test_shape_function_of_all_libraries(rng, leader, periodic):
    """NumPy, JAX, PyTorch and ranks take the shapes of operands from these two functions."""
    names = NAMES if leader == "rhs" else NAMES[:3]
    valid = 0
    for shape in (*PLANES, *BOXES):
        for place in range(-len(shape), len(shape)):
            for shapes, axis in cases(shape, place, names):
                arrays = filled(rng, shapes)
                stubs = {name: Stub(s) for name, s in shapes.items()}
                options = {"leader": leader, "periodic": periodic}
                found = both(arrays, axis, periodic, resolve_shape, stubs, axis, **options)
                if found is None:
                    continue
                full, resolved = found
                valid += 1
                assert (*resolved.batch, resolved.rows) == full[0].shape, shapes
                for name, expected, omits in zip(names, full, resolved.omits, strict=True):
                    ndim = len(resolved.full)
                    view = arrays[name].reshape(padded_shape(shapes[name], axis % ndim, ndim))
                    view = np.moveaxis(view, axis, -1)
                    end = slice(None)
                    if omits or view.shape[-1] == expected.shape[-1] - 1:
                        end = slice(1, None) if name == "lower" else slice(-1)
                    expected = expected[..., end]
                    np.testing.assert_array_equal(np.broadcast_to(view, expected.shape), expected)
    assert valid > 500
