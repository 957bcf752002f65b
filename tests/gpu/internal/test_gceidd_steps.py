"""Steps of GCEIDD on a part of the grid (`transport._state`) on a GPU: those of the CPU."""

import numpy as np
import pytest

from pysolvers._solver.counter import Counter
from pysolvers.papers.gceidd2022 import GCEIDD, decaying_bump, entering_fronts, rotating_pulse
from pysolvers.transport._plan import interfaces
from pysolvers.transport._state import TransportState

SCHEMES = ("cp", "cfd", "mu")
PROBLEMS = {
    "bump": lambda: decaying_bump(0.005),
    "pulse": lambda: rotating_pulse(0.005),
    "fronts": entering_fronts,
}


def pair(problem, cells, dt, kernels, **options):
    """Return the same solver on the GPU and on the CPU; `cells` are those along x and y."""
    options |= {"shape": (cells[1] + 1, cells[0] + 1), "dt": dt}
    here = GCEIDD(problem, device="cuda", kernels=kernels, **options)
    return here, GCEIDD(problem, **options)


@pytest.mark.parametrize("kernels", ["fused", "paper"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize(
    ("cells", "strips"),
    [
        ((40, 96), 12),
        ((70, 95), 12),  # the first strip along y has a cell less
        ((33, 320), 8),  # strips longer than a thread holds
        ((1100, 640), 40),
    ],
)
def test_a_grid_that_shrinks_and_fields_that_are_kept(name, cells, strips, scheme, kernels):
    steps, lost = 4, (1, 1)
    dt = 0.5 / (4 if name == "pulse" else 1) / max(cells)
    found = []
    for solver in pair(
        PROBLEMS[name](), cells, dt, scheme=scheme, strips=(2, strips), kernels=kernels
    ):
        state = TransportState(solver._data, solver._settings, keeps=True)
        before = {name: values.copy() for name, values in state.fields().items()}
        state.prepare([dt * (k + 1) for k in range(steps)])
        state.step(dt, (-np.inf, np.inf), steps, 0, Counter().begin(), lost=lost, keeps=True)
        found.append(state.u.copy())
        state.restore()
        for field, values in state.fields().items():
            np.testing.assert_array_equal(values, before[field], field)

    nodes = interfaces(cells[1], strips)
    left = slice(nodes[(steps - 1) * lost[0]], nodes[strips - (steps - 1) * lost[1]] + 1)
    here, there = (u[left] for u in found)
    assert np.abs(there).max() > 0
    np.testing.assert_allclose(here, there, rtol=0, atol=1e-12 * np.abs(there).max())
