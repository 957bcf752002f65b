"""Threads that launch one kernel with different sizes are not in each other's way."""

import threading

import numpy as np
import oracle
import pytest

import pysolvers
from pysolvers import GCEIDD, HeatADI
from pysolvers.papers.gceidd2022 import decaying_bump


def at_once(*calls):
    """Run the calls in threads of their own, and return what they raised."""
    raised = []

    def run(call):
        try:
            call()
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("method", ["partition", "pivoted", "pcr"])
def test_systems_of_different_sizes(rng, method, axis):
    shapes = [(40, 40), (20, 300), (7, 700), (5, 1900)]
    batches = [oracle.dominant(rng, shape if axis else shape[::-1]) for shape in shapes]
    options = {"axis": axis, "method": method, "device": "cuda"}
    expected = [pysolvers.solve_tridiagonal(*batch, **options) for batch in batches]

    def solve_often(batch, x):
        for _ in range(100):
            np.testing.assert_array_equal(pysolvers.solve_tridiagonal(*batch, **options), x)

    pairs = zip(batches, expected, strict=True)
    assert at_once(*(lambda b=b, x=x: solve_often(b, x) for b, x in pairs)) == []


def test_one_matrix_of_different_sizes(rng):
    sizes = [(500, 40), (400, 300), (300, 900)]
    systems = [oracle.dominant(rng, shape) for shape in sizes]
    systems = [(*(a[0] for a in matrix), rhs) for *matrix, rhs in systems]
    expected = [pysolvers.solve_tridiagonal(*s, device="cuda") for s in systems]

    def solve_often(system, x):
        for _ in range(300):
            np.testing.assert_array_equal(pysolvers.solve_tridiagonal(*system, device="cuda"), x)

    pairs = zip(systems, expected, strict=True)
    assert at_once(*(lambda s=s, x=x: solve_often(s, x) for s, x in pairs)) == []


def transport(cells, strips):
    nx, ny = cells
    shape = ny + 1, nx + 1
    return GCEIDD(decaying_bump(0.005), shape=shape, dt=1e-3, strips=strips, device="cuda")


def in_space(nodes):
    shape = (360, 8, nodes)
    start = np.broadcast_to(np.linspace(0, 1, nodes, dtype=np.float32), shape)
    options = {"scheme": "douglas-gunn", "dtype": np.float32, "initial": start}
    return HeatADI(shape, 1.0, 1e-3, boundary=0.0, device="cuda", **options)


@pytest.mark.parametrize(
    ("make", "long", "short"),
    [
        (transport, ((800, 800), 100), ((12, 12), 2)),
        (in_space, (1000,), (710,)),
    ],
    ids=["transport", "heat"],
)
def test_solvers_of_different_sizes(make, long, short):
    expected = [make(*size).step(200).u for size in (long, short)]
    found = [make(*size) for size in (long, short)]

    raised = at_once(lambda: found[0].step(200), lambda: [found[1].step(1) for _ in range(200)])

    assert raised == []
    for solver, u in zip(found, expected, strict=True):
        np.testing.assert_array_equal(solver.u, u)
