"""The notebook of natural convection has the Nusselt numbers of de Vahl Davis (1983)."""

import json
from pathlib import Path

import numpy as np
import pytest

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "17_natural_convection.ipynb"


def parts_of(path):
    """Return the names that the cells with imports and functions define."""
    names = {}
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and source.startswith(("import", "def")):
            exec(source, names)
    return names


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rayleigh", "nusselt", "u_most", "v_most"),
    [(1e4, 2.243, 16.178, 19.617), (1e5, 4.519, 34.73, 68.59)],
)
def test_natural_convection_has_the_published_numbers(rayleigh, nusselt, u_most, v_most):
    """u_most on x = 1/2 and v_most on y = 1/2, in units of the thermal diffusivity / side."""
    pytest.importorskip("matplotlib")
    convection = parts_of(NOTEBOOK)["convection"]
    (_, _, coarse), (flow, T, fine) = (convection(rayleigh, n) for n in (24, 48))

    assert fine == pytest.approx(nusselt, rel=0.02)
    assert fine + (fine - coarse) / 3 == pytest.approx(nusselt, rel=0.005)
    places = np.linspace(0, 1, 401)
    assert flow.centreline_u(places).max() == pytest.approx(u_most, rel=0.01)
    assert flow.centreline_v(places).max() == pytest.approx(v_most, rel=0.01)
    # The problem is symmetric to the point in the middle.
    np.testing.assert_allclose(T, 1 - T[::-1, ::-1], atol=1e-9)
