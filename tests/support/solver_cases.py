"""Small solvers of every kind, whose start, data and place can be chosen."""

import inspect
import warnings

import numpy as np

from pysolvers import (
    GCEIDD,
    LMSOR,
    AdvectionDiffusion,
    CoarseGridWarning,
    ConvectionDiffusion,
    HeatADI,
    LidDrivenCavity,
    Neumann,
    ParabolicADI,
    RedBlackSOR,
    Robin,
    SquareCylinder,
    StaggeredCavity,
    SteadyConvectionDiffusion,
)

SQUARE = ((0.0, 1.0), (0.0, 1.0))
WALLS = {"x": 1.0, "y-": 0.0, "y+": Neumann(0.3)}


def heat(initial=0.0, shape=(13, 9), **options):
    walls = WALLS if len(shape) == 2 else 0.5
    options = {"dt": 0.02, "boundary": walls, "source": 0.2, **options}
    return HeatADI(shape, 0.2, initial=initial, **options)


def transport(initial=0.0, boundary=0.2, source=None, velocity=(0.5, 1.0), **options):
    problem = ConvectionDiffusion(velocity, 0.01, initial=initial, boundary=boundary, source=source)
    return GCEIDD(problem, **{"shape": (17, 16), "dt": 0.01, "strips": 2} | options)


def advected(initial=0.0, shape=(12, 9), **options):
    sides = {"x-": 0.2, "x+": "outflow", "y": "periodic"}
    velocity = 0.5, np.linspace(1, 2, shape[-1])
    problem = ConvectionDiffusion(velocity, 0.1, initial=initial, boundary=sides, source=1.0)
    return AdvectionDiffusion(problem, shape, **{"dt": 0.02} | options)


def parabolic(initial=0.0, shape=(12, 9), **options):
    """Two equations, of which a coefficient and a side differ."""
    data = {
        "diffusion": {"xx": np.array([0.3, 0.5])[:, None, None], "xy": 0.2, "yy": 0.4},
        "advection": {"y": 1.0},
        "source": 0.2,
        "boundary": {"x-": 1.0, "x+": "linear", "y-": 0.0, "y+": Neumann(0.3)},
    }
    options = {"dt": 0.02, "batch": 2, "spacing": 0.2, **data, **options}
    return ParabolicADI(shape, initial=initial, **options)


def relaxed(initial=0.0, boundary=0.5, **options):
    problem = SteadyConvectionDiffusion(
        1.0, 2.0, shape=(14, 9), extent=SQUARE, boundary=boundary, source=1.0
    )
    return LMSOR(problem, initial=initial, **options)


def plate(initial=0.0, **options):
    return RedBlackSOR((12, 7), spacing=0.1, boundary=WALLS, initial=initial, **options)


def cavity(**options):
    return LidDrivenCavity(100, 9, **options)


def staggered(**options):
    return StaggeredCavity(100, 8, **options)


def cylinder(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoarseGridWarning)  # coarse, so that it is fast
        return SquareCylinder(50, (17, 101), **options)


# Solvers that begin from the values of `initial`.
STARTS = {
    "heat": heat,
    "heat-damped": lambda initial=0.0, **o: heat(initial, damped_start=True, **o),
    "heat-smooth": lambda initial=0.0, **o: heat(initial, damped_start=False, **o),
    "heat-implicit": lambda initial=0.0, **o: heat(
        initial, scheme="implicit", damped_start=True, **o
    ),
    "heat-rod": lambda initial=0.0, **o: heat(initial, (21,), boundary={"x-": 1.0, "x+": 0.0}, **o),
    "heat-holes": lambda initial=0.0, **o: heat(
        initial, holes=lambda x, y: (x - 0.8) ** 2 + (y - 1.2) ** 2 < 0.1, **o
    ),
    "heat-law": lambda initial=0.0, **o: heat(initial, diffusivity=lambda T: 1 + 0.2 * T, **o),
    "heat-3d": lambda initial=0.0, **o: heat(initial, (9, 6, 7), damped_start=True, **o),
    "cp": transport,
    "mu": lambda initial=0.0, **o: transport(initial, scheme="mu", **o),
    "lmsor": relaxed,
    "lmsor-sides": lambda initial=0.0, **o: relaxed(
        initial, {"x": Robin(2.0, lambda y: y), "y": Neumann(0.2)}, **o
    ),
    "plate": plate,
    "parabolic": parabolic,
    "advected": advected,
    "advected-third": lambda initial=0.0, **o: advected(
        initial, **{"differences": "third-order"} | o
    ),
    "parabolic-damped": lambda initial=0.0, **o: parabolic(initial, damped_start=True, **o),
    "parabolic-douglas": lambda initial=0.0, **o: parabolic(initial, scheme="douglas", **o),
}
# One of each class.
SOLVERS = {
    "HeatADI": heat,
    "GCEIDD": transport,
    "ParabolicADI": parabolic,
    "AdvectionDiffusion": advected,
    "LMSOR": relaxed,
    "RedBlackSOR": plate,
    "LidDrivenCavity": cavity,
    "StaggeredCavity": staggered,
    "SquareCylinder": cylinder,
}
# Those that step in time.
STEPPERS = (
    "HeatADI",
    "GCEIDD",
    "ParabolicADI",
    "AdvectionDiffusion",
    "StaggeredCavity",
    "SquareCylinder",
)
# Fields that can be set; the others are computed from them.
FIELDS = {
    "LidDrivenCavity": ("psi", "omega"),
    "StaggeredCavity": ("u", "v", "p"),
    "SquareCylinder": ("omega",),
}
COMPUTED = {"LidDrivenCavity": ("u", "v"), "SquareCylinder": ("u", "v", "psi")}


def fields_of(name):
    """Return the names of the fields of a solver that can be set."""
    return FIELDS.get(name, ("u",))


def count_of(solver):
    """Return the number of steps or iterations."""
    return solver.steps if hasattr(solver, "steps") else solver.iterations


def reloaded(solver, path):
    """Return a solver that goes on from a file of this one."""
    solver.save(path)
    taken = set(inspect.signature(type(solver).load).parameters) & solver._data_given.keys()
    data = {name: getattr(solver, name) for name in taken - {"group", "split"}}
    return type(solver).load(path, **data)


def equal(one, other):
    """Return whether two arguments are the same: numbers, arrays, or the objects."""
    if one is other:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[k], other[k]) for k in one)
    if callable(one) or callable(other) or type(one).__eq__ is object.__eq__:
        return type(one) is type(other)
    return bool(np.array_equal(one, other))
