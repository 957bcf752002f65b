"""The V-cycle of an implicit step as a matrix: against the V-cycle of the backend."""

import numpy as np
import pytest

from pysolvers import HeatADI, Neumann
from pysolvers.heat import _levels
from pysolvers.heat._cycle_matrix import cycle_matrix

pytestmark = pytest.mark.filterwarnings("ignore:HeatADI.*too large for the solution:RuntimeWarning")

SIDES = {
    "values": {"x": 0.0, "y-": 1.0, "y+": Neumann(), "z": 0.0},
    "fluxes": {"x": Neumann(), "y": Neumann(), "z": Neumann()},
    "periodic": {"x": "periodic", "y-": Neumann(), "y+": 0.0, "z": "periodic"},
}


@pytest.mark.parametrize("kind", SIDES)
@pytest.mark.parametrize("shape", [(11, 14), (3, 16), (6, 5, 9), (3, 4, 3)])
def test_the_matrix_is_the_v_cycle(rng, monkeypatch, shape, kind):
    # The first iteration of conjugate gradients from 0 goes along P rhs; its length is that of the
    # minimum along the line, which A alone determines.
    monkeypatch.setattr(_levels, "_FLOAT32_RATIO", 0)  # levels in float64
    made, pairs = [], []
    init, coarsened = _levels.Levels.__init__, _levels.Levels._coarsened

    def keep_levels(self, *args, **options):
        made.append(self)
        init(self, *args, **options)

    def keep_pairs(self, *args):
        pairs.append(coarsened(self, *args))
        return pairs[-1]

    monkeypatch.setattr(_levels.Levels, "__init__", keep_levels)
    monkeypatch.setattr(_levels.Levels, "_coarsened", keep_pairs)
    axes = len(shape)
    boundary = {name: side for name, side in SIDES[kind].items() if axes == 3 or name[0] != "z"}
    k = 10 ** rng.uniform(-1, 1, shape)
    HeatADI(shape, 1.0, 30.0, diffusivity=k, boundary=boundary, scheme="implicit").step(1)
    levels, inner = made[0], made[0].inner
    matrix = cycle_matrix(pairs[0], _levels._OMEGA)
    rhs, x = np.zeros(shape), np.zeros(shape)
    rhs[inner] = rng.standard_normal(rhs[inner].shape)
    levels.solve(rhs, x, None, 0.0, 0.0, 1)
    z = matrix @ rhs[inner].ravel()
    cosine = z @ x[inner].ravel() / (np.linalg.norm(z) * np.linalg.norm(x))
    assert 1 - cosine <= 1e-13
    assert np.abs(matrix - matrix.T).max() <= 1e-13 * np.abs(matrix).max()
    assert np.linalg.eigvalsh(matrix).min() > 0
