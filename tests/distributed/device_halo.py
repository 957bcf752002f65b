"""Checks of halos that devices exchange, of host memory or GPUs."""

import numpy as np
from rank_hooks import field_on_device, halo_between

_DEPTH = 2


def check_halo(group, rng, links):
    """Nodes with and without gaps, at addresses of all kinds; with 2 ranks both of one rank."""
    if group.size == 1:
        return
    for dtype in (np.float32, np.float64):
        for shape, axis in (((9, 7), 0), ((7, 9), 1), ((3, 9, 7), 1)):
            fields = rng.standard_normal((group.size, *shape)).astype(dtype)
            moved = np.moveaxis(fields, 1 + axis, 1)
            ends = np.roll(moved[:, -2 * _DEPTH : -_DEPTH], 1, 0), np.roll(moved, -1, 0)
            expected = moved.copy()
            expected[:, :_DEPTH] = ends[0]
            expected[:, -_DEPTH:] = ends[1][:, _DEPTH : 2 * _DEPTH]
            own = np.moveaxis(expected[group.rank], 0, axis)
            state = field_on_device(shape, dtype)
            halo = halo_between(group, state, axis, _DEPTH)
            assert halo.link in links
            state.set("u", fields[group.rank])
            halo.refresh("u")
            np.testing.assert_array_equal(state.get("u"), own)
            state.set("u", fields[group.rank])
            halo.post("u")
            state.wait()
            group.objects("test", None)
            halo.passed()
            halo.complete("u")
            np.testing.assert_array_equal(state.get("u"), own)
            for _ in range(2):
                state.set("u", fields[group.rank])
                with halo.in_order(3) as exchange:
                    for _ in range(3):
                        exchange("u")
                np.testing.assert_array_equal(state.get("u"), own)
