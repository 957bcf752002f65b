"""Transforms along one axis of an array in panels (`poisson._columns`)."""

import numpy as np
import pytest

from pysolvers.poisson._columns import transform_columns


class TestColumns:
    """Transforms in panels are those of the whole array."""

    @pytest.mark.parametrize("threads", [1, 3])
    @pytest.mark.parametrize(
        ("shape", "axis"), [((4096, 40), 0), ((3, 4096, 33), 1), ((4096, 2, 33), 0)]
    )
    def test_panels_make_up_the_array(self, rng, shape, axis, threads):
        source = rng.standard_normal(shape)
        target = np.full(shape, np.nan)

        transform_columns(
            lambda a: a[::-1] * 2, source, target, axis, np.dtype(np.float64), threads
        )

        np.testing.assert_array_equal(target, np.flip(source, axis) * 2)

    @pytest.mark.parametrize("threads", [1, 3])
    def test_error_of_any_panel_is_raised(self, threads):
        def transform(a):
            if a[0, 0]:
                raise MemoryError("panel")
            return a

        source = np.zeros((4096, 400))
        source[:, 200:] = 1
        with pytest.raises(MemoryError, match="panel"):
            transform_columns(transform, source, np.empty_like(source), 0, source.dtype, threads)
