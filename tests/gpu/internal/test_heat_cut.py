"""The kernels of cut lines of `HeatADI` against the same operations of arrays of the host."""

import availability
import numpy as np
import pytest

from pysolvers._runtime.device import Device
from pysolvers.heat._cut_lines import cut_of_host

_cuda = availability.extension("cuda")
pytestmark = pytest.mark.gpu


@pytest.fixture
def device():
    if reason := _cuda.unavailable():
        pytest.skip(reason)
    return Device(_cuda, 0, "test")


# First and last own node, nodes beyond, first node of each spike, weights of each, lengths.
CUTS = {
    "after": ((-1, 38), (-1, 39), (0, 20), ((0, 0), (1, 3)), (0, 19)),
    "before": ((1, -1), (0, -1), (1, 0), ((0, 4), (0, 0)), (5, 0)),
    "both": ((1, 38), (0, 39), (1, 33), ((0, 6), (3, 6)), (7, 6)),
    "over each other": ((1, 8), (0, 9), (1, 1), ((0, 6), (0, 6)), (8, 8)),
    "no nodes": ((1, 8), (0, 9), (1, 1), ((0, 2), (4, 6)), (0, 0)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lines", [(1,), (300,), (5, 33)])
@pytest.mark.parametrize("varied", [False, True])
@pytest.mark.parametrize("name", CUTS)
def test_changes_are_those_of_arrays_of_the_host(device, rng, name, varied, lines, dtype):
    ends, beyond, first, used, lengths = CUTS[name]
    place = 1, 3
    others = lines if varied else (1,) * len(lines)
    fields = {
        name: rng.random((count, *lines)).astype(dtype)
        for name, count in {"t": 40, "before": 2, "ends": 6, "outer": 2}.items()
    }
    weights = rng.random((2, 6, *lines)).astype(dtype)
    weights[:, 4] = 0
    fields["ends"][4] = np.nan  # no number of a weight of 0 is used
    spikes = [rng.random((n, *others)).astype(dtype) if n else None for n in lengths]
    numbers = place, ends, beyond, first, used
    there = device.pack(fields)
    held = [device.hold(weights), tuple(s if s is None else device.hold(s) for s in spikes)]

    for applies in (False, True):
        weights_of_host = weights.copy()
        numbers_of_host = {name: array.copy() for name, array in fields.items()}
        numbers_of_host["ends"][4] = 0
        cut_of_host(applies, *numbers, *numbers_of_host.values(), weights_of_host, spikes)
        numbers_of_host["ends"][4] = np.nan
        fields = numbers_of_host
        device.enqueue(_cuda.heat_cut, applies, *numbers, *there.values(), *held)

    tolerance = 20 * np.finfo(dtype).eps
    for name, expected in fields.items():
        found = device.download(there[name])
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
