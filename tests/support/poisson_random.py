"""Random problems of FastPoisson, and their exact solutions in flux form (`poisson_flux`).

Spacings are from 1e-8 to 1e8, neighbouring ones differ by ratios of up to 1e4, and axes begin with
one cell.
"""

import numpy as np
import poisson_flux

from pysolvers import Dirichlet, FastPoisson, Neumann, Robin

ENDS = ("DD", "DN", "ND", "NN", "RD", "DR", "RN", "NR", "RR", "PP")
POWERS = {"cartesian": 0, "cylinder": 1, "sphere": 2}
MOST = {1: 40, 2: 9, 3: 5}  # nodes along each axis


def conditions_of(name, ends, exchange):
    """Return the conditions of an axis with values 0."""
    kinds = {"D": Dirichlet(), "N": Neumann(), "P": "periodic"}
    return {
        name + sign: Robin(h) if end == "R" else kinds[end]
        for end, sign, h in zip(ends, "-+", exchange, strict=True)
        if end != "A"
    }


def random_axis(rng, grid, most, scale, *, radial):
    """Return edges, ends and the coefficients of Robin sides of an axis."""
    ends = str(rng.choice(ENDS[: 9 if radial else 10]))
    from_axis = radial and rng.random() < 0.6
    if from_axis:
        ends = "A" + ends[1]
    least = 2 if ends == "PP" else 1
    if grid == "nodes":
        least = 3 if ends == "DD" else 2
    size = int(rng.integers(least, most + 1))
    intervals = size if grid == "cells" or ends == "PP" else size - 1
    steps = np.ones(intervals)
    if rng.random() < 0.65:
        steps = 10 ** rng.uniform(0, rng.uniform(0, 4), intervals)
    edges = np.concatenate([[0], np.cumsum(scale * steps)])
    if radial and not from_axis:
        edges += edges[-1] * 10 ** rng.uniform(-3, 1)
    exchange = [float(10 ** rng.uniform(-3, 3) / edges[-1]) if end == "R" else 0 for end in ends]
    return size, edges, ends, exchange


def random_problem(rng):
    """Return the arguments of a solver, and its rows by `poisson_flux`."""
    ndim, dtype = int(rng.integers(1, 4)), str(rng.choice(["f4", "f8", "c8", "c16"]))
    grid, geometry = str(rng.choice(["nodes", "cells"])), "cartesian"
    if ndim < 3 and rng.random() < 0.4:
        geometry = "cylinder" if ndim == 2 else str(rng.choice(["cylinder", "sphere"]))
    shape, spacing, boundary, lines, methods = [], [], {}, [], {}
    unit = rng.uniform(-8, 8)
    for name in reversed("xyz"[:ndim]):
        power = POWERS[geometry] if name == "x" else 0
        # Products of ratios of 1e16 are out of the range of float32.
        exponent = rng.uniform(-8, 8) if dtype in ("f8", "c16") else unit + rng.uniform(-2, 2)
        size, edges, ends, exchange = random_axis(
            rng, grid, MOST[ndim], 10**exponent, radial=power > 0
        )
        shape.append(size)
        spacing.insert(0, edges)
        lines.append(poisson_flux.line(grid, ends, edges, power, exchange))
        boundary |= conditions_of(name, ends, exchange)
        if rng.random() < 0.4:
            methods[name] = "eigenvectors"
    largest = max(edges[-1] for edges in spacing)
    helmholtz = 0.0 if rng.random() < 0.5 else float(10 ** rng.uniform(-3, 3) / largest**2)
    options = {"boundary": boundary, "grid": grid, "geometry": geometry, "dtype": dtype}
    options |= {"helmholtz": helmholtz, "methods": methods, "on_incompatible": "ignore"}
    return (tuple(shape), tuple(spacing)), options, lines


def check_random_problems(rng, draws, most=20, **place):
    """Require errors of at most `most` rounding units of the largest value."""
    for _ in range(draws):
        arguments, options, lines = random_problem(rng)
        solver = FastPoisson(*arguments, **options, **place)
        f = rng.uniform(-1 if solver.is_singular else 0.1, 1, solver.shape)
        f = f.astype(options["dtype"])
        if f.dtype.kind == "c":
            f *= 1 + 0.5j
        inner = tuple(line.unknowns for line in lines)

        u = solver.solve(f)[inner]

        expected = poisson_flux.solution(lines, f[inner], options["helmholtz"])
        if solver.is_singular and expected.size == 1:
            assert u == 0
            continue
        size = np.abs(expected).max()
        if solver.is_singular:
            size = poisson_flux.magnitude(lines, f[inner])
        error = np.abs(u - expected).max() / size
        assert error <= most * np.finfo(f.dtype).eps, (solver, error)


def random_sides(rng, shape, options, edges):
    """Return conditions with random values, and these values at the nodes of each side.

    Values are numbers, arrays or lines of arrays. Of an axis of length L those of u are of the size
    of L^2, and derivatives of that of L, as f is of the size of 1.
    """
    dtype, names = np.dtype(options["dtype"]), "xyz"[: len(shape)]
    boundary, values = {}, {}
    for side, condition in options["boundary"].items():
        if condition == "periodic":
            boundary[side] = condition
            continue
        axis, length = len(shape) - 1 - names.index(side[0]), edges[names.index(side[0])][-1]
        others = list(shape[:axis] + shape[axis + 1 :])
        if rng.random() < 0.3:
            others = [n if rng.random() < 0.5 else 1 for n in others]
        given = rng.uniform(-1, 1, others if rng.random() < 0.8 else ())
        if dtype.kind == "c":
            given = given * (1 + 0.5j) + 0.25j
        given = given * (length if isinstance(condition, Neumann) else length**2)
        given = given.astype(dtype)
        kept = given if given.ndim or rng.random() < 0.5 else given.item()
        if isinstance(condition, Robin):
            boundary[side] = Robin(condition.coefficient, kept)
        else:
            boundary[side] = type(condition)(kept)
        values[side] = np.broadcast_to(given, shape[:axis] + shape[axis + 1 :])
    return boundary, values


def parts_of_right_side(f, values, lines):
    """Return the right sides at the unknowns in extended precision: f, and one for each side."""
    inner, ndim = tuple(line.unknowns for line in lines), f.ndim
    wide = np.result_type(f, poisson_flux.WIDE)
    found = [f[inner].astype(wide)]
    for side, given in values.items():
        axis, end = ndim - 1 - "xyz".index(side[0]), "-+".index(side[1])
        part = np.zeros_like(found[0])
        layer = (slice(None),) * axis + (-end,)
        others = tuple(at for k, at in enumerate(inner) if k != axis)
        part[layer] = -lines[axis].factors[end] * given[others].astype(wide)
        found.append(part)
    return found


def check_random_sides(rng, draws, most=40, **place):
    """Require the solutions with values on all sides, of f and of a batch, and of one call alone.

    Errors are at most `most` rounding units of what the values would give if none cancelled; of
    12000 draws two had 24 and 33, both of products with eigenvectors of a sphere.
    """
    for _ in range(draws):
        (shape, edges), options, lines = random_problem(rng)
        boundary, values = random_sides(rng, shape, options, edges)
        in_call = rng.random() < 0.5 and bool(values)
        kept = options if in_call else options | {"boundary": boundary}
        solver = FastPoisson(shape, edges, **kept, **place)
        f = rng.uniform(-1, 1, (2, *shape)).astype(options["dtype"])
        if f.dtype.kind == "c":
            f *= 1 + 0.5j
        call = {"boundary": {side: boundary[side] for side in values}} if in_call else {}

        found = solver.solve(f, **call)
        single = solver.solve(f[1], **call)

        inner = tuple(line.unknowns for line in lines)
        eps = np.finfo(f.dtype).eps
        for u, right in ((found[0], f[0]), (found[1], f[1]), (single, f[1])):
            parts = parts_of_right_side(right, values, lines)
            expected = poisson_flux.solution(lines, sum(parts), options["helmholtz"])
            size = poisson_flux.magnitude(
                lines, sum(np.abs(part) for part in parts), options["helmholtz"]
            )
            error = np.abs(u[inner] - expected).max()
            assert error <= most * eps * size, (solver, error / size / eps)
            known = np.full(shape, False)
            given = np.zeros(shape, f.dtype)
            for name in "xyz"[: len(shape)]:  # nodes of several sides have the value of the last
                for end, sign in enumerate("-+"):
                    condition = options["boundary"].get(name + sign)
                    if options["grid"] == "nodes" and isinstance(condition, Dirichlet):
                        layer = (..., -end, *(slice(None),) * "xyz".index(name))
                        known[layer], given[layer] = True, values[name + sign]
            np.testing.assert_array_equal(u[known], given[known])
