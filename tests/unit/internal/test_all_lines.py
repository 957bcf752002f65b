"""Solves along lines of whole fields: the same bits as those along the lines of free nodes."""

from typing import Any

import numpy as np
import pytest

from pysolvers import ConvergenceError, Dirichlet, ParabolicADI
from pysolvers._split.lines import LineOperators

SIDES = {
    "values stay": 0.3,
    "values move": Dirichlet(lambda t: np.sin(t)),
    "one side": {"x-": 0.5, "x+": "linear", "y": "periodic", "z": 0.0},
}
K = {
    "number": lambda shape: 1.0,
    "array": lambda shape: 0.5 + np.random.default_rng(1).random(shape),
    "of y": lambda shape: lambda y: 1 + y,
    "of t": lambda shape: lambda t: 1 + t,
}


def solver(shape, batch, sides, k, scheme):
    """Return a solver from a rough field."""
    names = "xyz"[: len(shape)]
    boundary = (
        {key: each for key, each in sides.items() if key[0] in names}
        if isinstance(sides, dict)
        else sides
    )
    return ParabolicADI(
        shape,
        batch=batch,
        spacing=0.1,
        diffusion={2 * name: k((*batch, *shape)) for name in names},
        boundary=boundary,
        initial=np.random.default_rng(0).random((*batch, *shape)),
        dt=0.01,
        scheme=scheme,
    )


@pytest.mark.parametrize("scheme", ["douglas", "hundsdorfer-verwer"])
@pytest.mark.parametrize("k", K)
@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize(("shape", "batch"), [((7, 9), ()), ((3, 8), (2,)), ((5, 4, 6), ())])
def test_bits_are_those_of_free_lines(monkeypatch, shape, batch, sides, k, scheme):
    case = shape, batch, SIDES[sides], K[k], scheme
    found = solver(*case).step(3).u
    monkeypatch.setattr(LineOperators, "_solves_all_lines", lambda *_, **__: False)

    np.testing.assert_array_equal(found, solver(*case).step(3).u)


def test_step_that_fails_leaves_nothing_at_given_nodes():
    make: dict[str, Any] = {"shape": (9, 9), "spacing": 1.0, "diffusion": {}, "boundary": 1.0}
    make |= {"initial": 1.0, "damped_start": False}
    # 1 - theta dt c is 0 along both axes.
    failed, fresh = (ParabolicADI(**make, reaction=4.0, scheme="douglas", dt=dt) for dt in (1, 0.1))
    with pytest.raises(ConvergenceError), np.errstate(all="ignore"):
        failed.step()
    failed.dt = 0.1
    failed.u = np.ones((9, 9))

    np.testing.assert_array_equal(failed.step().u, fresh.step().u)
