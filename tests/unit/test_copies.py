"""Objects of the package, pickled and copied: what is made of a copy is that of the original."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from pysolvers import (
    GCEIDD,
    LMSOR,
    ConvectionDiffusion,
    CubicSpline,
    FastPoisson,
    HeatADI,
    LidDrivenCavity,
    Neumann,
    RedBlackSOR,
    Robin,
    SquareCylinder,
    StaggeredCavity,
    SteadyConvectionDiffusion,
)

SQUARE = {"extent": ((0.0, 1.0), (0.0, 1.0))}


def wall(y, t):  # functions of modules can be pickled
    return y * np.cos(t)


def pulse(x, y):
    return np.exp(-((x - 0.4) ** 2 + y**2))


def heat(**options):
    sides = {"x-": wall, "x+": Robin(2.0, 1.0), "y": Neumann(0.3)}
    options = {"dt": 0.01, "initial": pulse, "boundary": sides, "source": wall} | options
    return HeatADI((12, 11), **SQUARE, **options)


def transport(**options):
    problem = ConvectionDiffusion(
        velocity=(1.0, wall),
        diffusion=0.01,
        **SQUARE,
        initial=pulse,
        boundary={"x": 0.0, "y": wall},
    )
    return GCEIDD(problem, shape=(22, 21), dt=0.01, **options)


def steady(**options):
    return SteadyConvectionDiffusion(
        2.0, pulse, shape=(17, 15), **SQUARE, boundary=pulse, source=1.0, **options
    )


def solved(f):
    """Return a function that solves for one right side."""
    return lambda solver: [solver.solve(f), solver.is_singular]


def advanced(count):
    """Return a function that advances a solver, to its field and number of steps."""

    def field(solver):
        solver.step(count)
        return [np.array(solver.u), solver.steps]

    return field


def iterated(solver):
    solver.iterate(5)
    return [np.array(getattr(solver, "psi", solver.u)), solver.iterations]


def wake(solver):
    solver.step(4)
    return [np.array(solver.psi), np.array(solver.omega), solver.time]


# Name -> object, and what is computed with it.
SOLVERS = {
    "HeatADI": (heat, advanced(5)),
    "HeatADI, three axes": (
        lambda: HeatADI(
            (6, 7, 8), spacing=0.1, dt=0.001, initial=1.0, diffusivity=2.0, boundary=0.0
        ),
        advanced(5),
    ),
    "GCEIDD": (transport, advanced(5)),
    "GCEIDD in strips": (lambda: transport(strips=(2, 3)), advanced(5)),
    "LMSOR": (lambda: LMSOR(steady()), iterated),
    "RedBlackSOR": (lambda: RedBlackSOR((17, 15), **SQUARE, boundary=pulse), iterated),
    "FastPoisson": (lambda: FastPoisson((9, 8), **SQUARE, boundary=pulse), solved(1.0)),
    "FastPoisson, periodic": (
        lambda: FastPoisson(
            (9, 8), **SQUARE, boundary="periodic", grid="cells", on_incompatible="ignore"
        ),
        solved(lambda x, y: np.cos(2 * np.pi * x) * np.sin(2 * np.pi * y)),
    ),
    "CubicSpline": (
        lambda: CubicSpline(np.arange(6.0), np.arange(6.0) ** 3),
        lambda spline: [spline(np.linspace(-1, 6, 20)), spline.derivative()(2.5)],
    ),
    "PiecewisePolynomial": (
        lambda: CubicSpline(np.arange(6.0), np.arange(6.0) ** 3).derivative(),
        lambda spline: [spline(np.linspace(-1, 6, 20)), spline.c],
    ),
    "LidDrivenCavity": (lambda: LidDrivenCavity(100, 17), iterated),
    "SquareCylinder": (lambda: SquareCylinder(100), wake),
    "StaggeredCavity": (lambda: StaggeredCavity(100, 16), advanced(5)),
    "StaggeredCavity, SOR": (lambda: StaggeredCavity(100, 16, pressure="sor"), advanced(5)),
}
COPIES = {
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


@pytest.mark.each_value
@pytest.mark.parametrize("made", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize(("make", "use"), SOLVERS.values(), ids=SOLVERS)
def test_copies_continue_as_the_original_without_changing_it(make, use, made):
    solver, expected = make(), make()
    use(solver), use(expected)

    copied = made(solver)
    assert repr(copied) == repr(expected)
    first, second = use(copied), use(copied)

    for found in (first, second):
        repeated = use(solver)
        for own, theirs, wanted in zip(found, repeated, use(expected), strict=True):
            np.testing.assert_array_equal(own, wanted)
            np.testing.assert_array_equal(theirs, wanted)


@pytest.mark.parametrize("n", range(9, 60, 3))
def test_bits_do_not_depend_on_where_the_fields_of_a_copy_lie(n):
    """Lines in float32 are eliminated in blocks, which would otherwise begin at aligned nodes."""
    sides = {"x": 0.0, "y-": 0.0, "y+": 1.0}
    solver = HeatADI(
        (n, n + 3), 1.0, 3.0, boundary=sides, initial=lambda x, y: x + y, dtype="float32"
    )
    copies = [copy.deepcopy(solver) for _ in range(4)]
    solver.step(3)
    for copied in copies:
        np.testing.assert_array_equal(copied.step(3).u, solver.u)


@pytest.mark.each_value
@pytest.mark.parametrize("made", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize(
    "name", [name for name in SOLVERS if not name.startswith(("Fast", "Cubic", "Piece"))]
)
def test_copies_of_results_have_the_same_facts(name, made):
    make, use = SOLVERS[name]
    solver = make()
    use(solver)
    result = solver.result()
    copied = made(result)
    assert type(copied) is type(result)
    np.testing.assert_equal(dataclasses.asdict(copied), dataclasses.asdict(result))
