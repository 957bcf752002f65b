"""The kernels with compiler directives on a device, if `tools/build_directive.py` built them so."""

import numpy as np
import pytest

from pysolvers import BackendError, Neumann, Robin, StaggeredCavity
from pysolvers._runtime import directive
from pysolvers.papers import survey2014


@pytest.fixture(params=list(directive.MODELS))
def kernels(request):
    try:
        description = directive.load(request.param).description
    except BackendError as error:
        pytest.skip(str(error))
    if not description.endswith("on a device"):
        pytest.skip(description)
    return request.param


@pytest.mark.parametrize("n", [5, 33])
def test_cavity_is_that_of_the_host(n, kernels):
    expected = StaggeredCavity(100, n, pressure="sor").step(50)

    found = survey2014.StaggeredCavity(100, n, pressure="sor", kernels=kernels).step(50)

    assert found.time == expected.time
    # The sums of the stopping criterion are formed in another order.
    assert abs(found.sweeps - expected.sweeps) <= 2
    for name in "uvp":
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-10)
    assert found.result().kernel == f"{directive.MODELS[kernels]} on a device"


@pytest.mark.parametrize("shape", [(1, 1), (4, 1), (20, 33), (129, 200)])
def test_plate_is_that_of_the_host(shape, kernels):
    boundary = {"x-": 1.0, "x+": Robin(2.0, 0.5), "y-": Neumann(0.3), "y+": 2.0}
    options = {"boundary": boundary, "source": 3.0, "extent": ((0, 1), (0, 1.5))}
    expected = survey2014.RedBlackSOR(shape, variant="naive", **options).iterate(60)

    found = survey2014.RedBlackSOR(shape, variant=kernels, **options).iterate(60)

    np.testing.assert_allclose(found.u, expected.u, rtol=1e-12)
