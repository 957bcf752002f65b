"""The kernel of rates: the sums of arrays that it replaces, bits, and shapes of blocks."""

import numpy as np
import pytest

from pysolvers import Neumann, ParabolicADI, Robin
from pysolvers._split import SCHEMES, lines

SIDES = {
    "values": 0.0,
    "fluxes": {
        "x-": Neumann(0.4),
        "x+": Robin(2.0, lambda y, t: y + t),
        "y-": Neumann(lambda x: x),
        "y+": 1.0,
    },
    "linear": {"x-": 0.0, "x+": "linear", "y": "linear"},
    "periodic": {"x": "periodic", "y-": Neumann(0.0), "y+": Robin(1.0, 2.0)},
}


def solver(shape, sides, coefficient, **options):
    """Return a solver with mixed derivatives."""
    axes = "xyz"[: len(shape)]
    diffusion = {2 * axis: 1.0 + k for k, axis in enumerate(axes)} | {"xx": coefficient}
    diffusion |= {"xy": 0.4} if len(shape) == 2 else {}
    diffusion |= {"xy": 0.4, "xz": -0.3, "yz": coefficient / 3} if len(shape) == 3 else {}
    place = np.indices(shape)
    return ParabolicADI(
        shape,
        extent=((0, 1),) * len(shape),
        diffusion=diffusion,
        advection={"x": 0.7},
        reaction=-0.2,
        source=0.5,
        boundary=sides,
        initial=np.cos(0.3 * place.sum(axis=0)) + 0.01 * place[-1],
        dt=0.003,
        **options,
    )


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("sides", SIDES)
def test_kernel_agrees_with_sums_of_arrays(sides, scheme, monkeypatch):
    shape = (6, 9)
    coefficient = 1 + np.random.default_rng(0).random(shape)
    found = solver(shape, SIDES[sides], coefficient, scheme=scheme).step(3).u
    monkeypatch.setattr(lines, "_has_kernel", lambda library: False)
    expected = solver(shape, SIDES[sides], coefficient, scheme=scheme).step(3).u

    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "shape", [(3,), (511,), (514,), (1029,), (4, 515), (3, 4, 5), (4, 3, 514)], ids=str
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_of_blocks_agree_with_sums_of_arrays(shape, dtype, monkeypatch):
    found = solver(shape, 0.0, np.ones(shape), dtype=dtype).step(2).u
    monkeypatch.setattr(lines, "_has_kernel", lambda library: False)
    expected = solver(shape, 0.0, np.ones(shape), dtype=dtype).step(2).u

    scale = abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=100 * np.finfo(dtype).eps * scale)


@pytest.mark.parametrize("shape", [(40_000,), (90, 1100), (12, 30, 600)], ids=str)
def test_number_of_threads_does_not_change_a_bit(shape):
    coefficient = 1 + np.random.default_rng(0).random(shape)
    one, three = (
        solver(shape, "periodic", coefficient, threads=threads).step(2).u for threads in (1, 3)
    )

    np.testing.assert_array_equal(one, three)


def test_field_larger_than_the_caches(monkeypatch):
    """Its results are stored past the caches."""
    shape = (1100, 1100)
    found = solver(shape, SIDES["fluxes"], 1.0).step().u
    monkeypatch.setattr(lines, "_has_kernel", lambda library: False)

    np.testing.assert_allclose(
        found, solver(shape, SIDES["fluxes"], 1.0).step().u, rtol=1e-11, atol=1e-11
    )
