"""The texts of errors and warnings in the glossary are those of the package."""

import math
import pickle
import re
import warnings
from pathlib import Path

import availability
import numpy as np
import pytest

import pysolvers
from pysolvers import (
    FastPoisson,
    HeatADI,
    LidDrivenCavity,
    Neumann,
    SquareCylinder,
    SteadyConvectionDiffusion,
    factor_tridiagonal,
    solve_tridiagonal,
)

PAGE = (Path(__file__).parents[2] / "docs/errors.md").read_text()
ONE = np.ones(6)
NAN = np.array([1, 1, np.nan, 1, 1, 1])
SQUARE = {"extent": ((0, 1), (0, 1))}


def heat(*shape, dt=0.01, **options):
    return HeatADI(shape, dt=dt, **{"boundary": 0.0, **SQUARE, **options})


class Chunks:
    """An array that a library computes later, as those of dask."""

    def __dask_graph__(self):
        return {}


CALLS = {
    "lies along the axis; for one coefficient per column write": lambda: solve_tridiagonal(
        ONE, 3.0, ONE, np.ones((9, 6)), axis=0
    ),
    "takes three diagonals, not": lambda: solve_tridiagonal((1, 1), np.ones((3, 6)), ONE),
    "a periodic system has as many entries": lambda: solve_tridiagonal(
        ONE[1:], 3.0, ONE[1:], ONE, periodic=True
    ),
    "so the number of rows is unknown": lambda: factor_tridiagonal(-1.0, 3.0, -1.0),
    "a matrix must be finite": lambda: solve_tridiagonal(-1.0, NAN, -1.0, ONE),
    "requires finite values": lambda: solve_tridiagonal(-1.0, 3.0, -1.0, NAN, check_finite=True),
    "a zero or subnormal pivot": lambda: solve_tridiagonal(0.0, 0 * ONE, 0.0, ONE),
    "the periodic matrix is singular": lambda: solve_tridiagonal(
        -1.0, 2.0, -1.0, 0 * ONE, periodic=True
    ),
    "is not positive definite": lambda: pysolvers.solve_pentadiagonal(
        None, None, 1.0, -4.0, 1.0, ONE, assume="positive definite"
    ),
    "need float32, float64, complex64 or complex128": lambda: solve_tridiagonal(
        -1.0, 3.0, -1.0, ONE.astype(object)
    ),
    "but the factor is float32": lambda: factor_tridiagonal(
        *np.float32([-ONE, 3 * ONE, -ONE])
    ).solve(ONE),
    "its mask would be lost": lambda: solve_tridiagonal(
        -1.0, 3.0, -1.0, np.ma.masked_greater(ONE, 2)
    ),
    "all of it would be loaded into one array": lambda: solve_tridiagonal(
        -1.0, 3.0, -1.0, Chunks()
    ),
    "overlaps rhs; it may be rhs itself": lambda: solve_tridiagonal(
        -1.0, 3.0, -1.0, NAN[1:], out=NAN[:-1]
    ),
    "like the result": lambda: solve_tridiagonal(-1.0, 3.0, -1.0, ONE, out=np.ones(6, int)),
    "need booleans": lambda: solve_tridiagonal(-1.0, 3.0, -1.0, ONE, where=ONE),
    "K must have": lambda: pysolvers.implicit_diffusion(ONE, np.ones(3), 1.0, 1.0, axis=0),
    "must be a strictly increasing sequence": lambda: pysolvers.CubicSpline([0, 2, 1], ONE[:3]),
    "must contain only finite values": lambda: pysolvers.CubicSpline(np.arange(6), NAN),
    "functions get arrays": lambda: heat(9, 9, initial=lambda x, y: math.sin(x)),
    "the parameters of a function must be among": lambda: heat(9, 9, initial=lambda r: r),
    "the sides are x-, x+": lambda: heat(9, 9, boundary={"left": 0.0}),
    "needs one of extent, spacing and coordinates": lambda: heat(9, 9, spacing=0.1),
    "the step is too large for the solution in time": lambda: heat(
        17, 17, dt=0.2, initial=lambda x, y: np.sin(np.pi * x) * np.sin(np.pi * y)
    ).step(),
    "central differences oscillate from node to node": lambda: pysolvers.LMSOR(
        SteadyConvectionDiffusion(100.0, 0.0, shape=(9, 9), boundary=0.0, **SQUARE)
    ),
    "the vorticity has waves from node to node": lambda: SquareCylinder(
        reynolds=1000, shape=(49, 201)
    ),
    "the mean was subtracted": lambda: FastPoisson((9, 9), 1 / 8, boundary=Neumann()).solve(1.0),
    "did not converge": lambda: LidDrivenCavity(reynolds=100, n=9).solve(1e-9, max_iterations=5),
    "the backend 'cuda' is not available": lambda: solve_tridiagonal(
        -1.0, 3.0, -1.0, ONE, device="cuda"
    ),
    "cannot be pickled or copied": lambda: pickle.dumps(
        factor_tridiagonal(-1.0, 3.0, -1.0, rows=4)
    ),
}


def texts_of_the_page():
    """Return the texts in the first column of the table of messages."""
    table = PAGE.partition("## By text")[2]
    return re.findall(r"^\| `([^|]+)` \|", table, re.MULTILINE)


def test_the_page_lists_these_texts():
    assert sorted(texts_of_the_page()) == sorted(CALLS)


@pytest.mark.parametrize("text", CALLS)
def test_a_wrong_call_says_it(text):
    if "cuda" in text and not availability.missing("cuda"):
        pytest.skip("there is a device")
    if "mean" in text:
        pytest.importorskip("scipy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Exception, match=re.escape(text)):
            CALLS[text]()


def test_every_error_class_is_on_the_page():
    classes = [
        name
        for name in pysolvers.__all__
        if isinstance(value := getattr(pysolvers, name), type) and issubclass(value, Exception)
    ]

    assert len(classes) > 5
    for name in set(classes) - {"PysolversError"}:
        assert f"`{name}`" in PAGE, name
