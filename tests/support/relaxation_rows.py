"""Calls of a backend that measure some rows only, and what they must measure."""

from itertools import pairwise

import numpy as np

from pysolvers import Neumann, Robin, SteadyConvectionDiffusion
from pysolvers.papers.lmsor2012 import LMSOR
from pysolvers.papers.survey2014 import RedBlackSOR

MEASURES = [(what, norm) for what in ("residual", "change", "solution") for norm in ("max", "l2")]


def maker(kind, device, dtype=np.float64, shape=(26, 33)):
    """Return a function that makes equal solvers, of random fields."""
    rng, (name, kernel) = np.random.default_rng(5), kind
    options = {"dtype": dtype, "device": device, "initial": rng.normal(size=shape)}
    if name == "plate":
        sides = {"x-": 1.0, "x+": 0.0, "y+": Robin(2.0, 0.5), "y-": Neumann(1.0)}
        options |= {"boundary": sides, "source": rng.normal(size=shape), "variant": kernel}
        return lambda: RedBlackSOR(shape, extent=((0, 1), (0, 1)), **options)
    problem = SteadyConvectionDiffusion(
        rng.normal(size=(1, shape[1])),
        rng.normal(size=(shape[0], 1)),
        shape=[n + 2 for n in shape],
        extent=((0, 1), (0, 1)),
        source=rng.normal(size=shape),
        boundary=rng.normal(size=(shape[0] + 2, shape[1] + 2)),
    )
    return lambda: LMSOR(problem, kernel=kernel, relaxation=1.3, **options)


def call(solver, count, measure, rows=(0, 0), *, every=1, tolerance=-1.0):
    """Iterate on the backend; return the name of the status, the report and the history."""
    backend, state = solver._backend, solver._state
    state.set("history", np.full(1024, -1.0))
    codes = backend.CRITERIA[measure[0]], backend.NORMS[measure[1]]
    stop = (*codes, every, tolerance, state.operand("history"), *rows)
    status, report = solver._call(count, stop, np.zeros(1, np.int64))
    history = state.get("history")
    if report is not None:
        assert (history[report["measures"] :] == -1).all()
        history = history[: report["measures"]]
    return backend.STATUS[status][0], report, history


def fields_of(solver, count):
    """Return the fields before the first and after each of some iterations; row j has number j."""
    fields = []
    for _ in range(count + 1):
        fields.append(solver._grid.unpack(solver._state.get("u")))
        call(solver, 1, ("change", "max"), every=0)
    return fields


def expected(solver, before, after, measure, rows):
    """Return the norm of an iteration over some rows from the fields before and after it.

    A residual is the change divided by the factor of its node.
    """
    (what, norm), (first, number) = measure, rows if rows[1] else (1, solver._grid.ny)
    values = (after if what == "solution" else after - before)[1:-1, 1:-1].astype(float)
    if what == "residual":
        values /= factors_of(solver)
    values = values[first - 1 : first - 1 + number]
    return np.abs(values).max() if norm == "max" else np.sqrt(np.mean(values**2))


def factors_of(solver):
    """Return what the residuals of the nodes are multiplied by."""
    if isinstance(solver, LMSOR):
        return solver._relaxation  # a number
    grid = solver._grid
    i, row = np.arange(1, grid.nx + 1), np.ones(grid.ny, int)
    row[-1], row[0] = 2, 0
    at = i if grid.interleaved else i % 2 * grid.pitch + i // 2
    return solver._state.get("gain")[row[:, None], at].astype(float)


def check_rows(make, measures, count):
    """Compare calls with single iterations and the norms of their fields.

    Each of `measures` has what is measured and its norm, the rows, and the number of iterations
    between two that are measured.
    """
    fields = fields_of(make(), count)
    for measure, rows, every in measures:
        check_measure(make(), fields, measure, rows, every)


def check_measure(solver, fields, measure, rows, every):
    """Compare a call with the norms of the fields of its iterations."""
    count = len(fields) - 1

    status, report, history = call(solver, count, measure, rows, every=every)

    assert (status, report["end"], report["iterations"]) == ("PS_OK", "count", count)
    np.testing.assert_array_equal(solver._grid.unpack(solver._state.get("u")), fields[-1])
    made = [n for n in range(1, count + 1) if n % every == 0 or n == count]
    found = [expected(solver, *fields[n - 1 : n + 1], measure, rows) for n in made]
    eps, nodes = float(np.finfo(solver._dtype).eps), np.abs(fields).max()
    # A maximum has the same bits; a residual from the change has its rounding error, and a sum
    # of squares that of its order.
    relative = 0 if measure[1] == "max" and measure[0] != "residual" else 1000 * eps
    absolute = 2 * eps * nodes / np.min(factors_of(solver)) if measure[0] == "residual" else 0
    text = f"{measure}, rows {rows}, every {every}"
    np.testing.assert_allclose(history, found, rtol=relative, atol=absolute, err_msg=text)
    assert report["measure"] == history[-1]


def check_parts(make, what, cuts, count):
    """Compare the maxima of all rows with those of parts, which have the same bits."""
    whole, *parts = (
        call(make(), count, (what, "max"), rows)[2]
        for rows in [(0, 0)] + [(a, b - a) for a, b in pairwise(cuts)]
    )
    np.testing.assert_array_equal(np.max(parts, axis=0), whole)


def check_stop(make, measure, rows, every, count):
    """A tolerance that an iteration satisfies ends the call there."""
    history = call(make(), count, measure, rows)[2]
    # Kernels that make several iterations at once add the squares in another order.
    relative = 0 if measure[1] == "max" else 1e-13
    for place in (1, count // 3, count // 2):
        solver, tolerance = make(), history[place] * (1 + 10 * relative)
        first = next(n for n in range(every, count, every) if history[n - 1] <= tolerance)

        _, report, found = call(solver, count, measure, rows, every=every, tolerance=tolerance)

        assert (report["end"], report["iterations"]) == ("tolerance", first)
        np.testing.assert_allclose(found, history[every - 1 : first : every], rtol=relative)
        other = make()
        call(other, first, measure, rows, every=0)
        ended, expected = (s._grid.unpack(s._state.get("u")) for s in (solver, other))
        np.testing.assert_array_equal(ended, expected)
