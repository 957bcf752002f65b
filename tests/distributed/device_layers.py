"""Checks of layers that devices exchange, of host memory or GPUs."""

import numpy as np

from pysolvers._runtime.fields import make_fields
from pysolvers.distributed import borders_of, layers_of

_LAYERS = 2


def check_layers(group, rng, ways):
    """Layers with and without gaps, at addresses of all kinds; with 2 ranks both of one rank."""
    if group.size == 1:
        return
    for dtype in (np.float32, np.float64):
        for shape, axis in (((9, 7), 0), ((7, 9), 1), ((3, 9, 7), 1)):
            fields = rng.standard_normal((group.size, *shape)).astype(dtype)
            moved = np.moveaxis(fields, 1 + axis, 1)
            ends = np.roll(moved[:, -2 * _LAYERS : -_LAYERS], 1, 0), np.roll(moved, -1, 0)
            expected = moved.copy()
            expected[:, :_LAYERS] = ends[0]
            expected[:, -_LAYERS:] = ends[1][:, _LAYERS : 2 * _LAYERS]
            own = np.moveaxis(expected[group.rank], 0, axis)
            state = make_fields({"u": (shape, dtype)}, "cuda", "test")
            borders = borders_of(group, axis, (_LAYERS, _LAYERS), shape)
            layers = layers_of(group, "test", state, borders, fields[0])
            assert layers.way in ways
            state.set("u", fields[group.rank])
            layers.refresh("u")
            np.testing.assert_array_equal(state.get("u"), own)
            state.set("u", fields[group.rank])
            layers.post("u")
            state.wait()
            group.objects("test", None)
            layers.met()
            layers.complete("u")
            np.testing.assert_array_equal(state.get("u"), own)
