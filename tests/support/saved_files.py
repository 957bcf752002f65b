"""Files of all solvers and results, and edits of them, for tests of the readers."""

import copy
import io
import json
import warnings
import zipfile

import numpy as np

from pysolvers import (
    GCEIDD,
    LMSOR,
    AdvectionDiffusion,
    CoarseGridWarning,
    ConvectionDiffusion,
    HeatADI,
    Neumann,
    ParabolicADI,
    RedBlackSOR,
    SteadyConvectionDiffusion,
)
from pysolvers.flow import (
    CavityResult,
    CylinderResult,
    LidDrivenCavity,
    SquareCylinder,
    StaggeredCavity,
    StaggeredResult,
)
from pysolvers.heat import HeatResult
from pysolvers.parabolic import ParabolicResult
from pysolvers.relaxation import RelaxationResult
from pysolvers.transport import AdvectionDiffusionResult, TransportResult

PULSE = ConvectionDiffusion((0.5, 1.0), 0.01, initial=lambda x, y: x * (1 - y), boundary=0.0)


def cavity(**options):
    return LidDrivenCavity(100, 7, **options)


def heat():
    return HeatADI((5, 6), 0.25, 0.01, boundary={"x": Neumann(1.0), "y": "periodic"}, initial=1.0)


PAIR = {"diffusion": {"xx": 1.0, "xy": 0.5, "yy": 1.0}, "boundary": {"x": 0.0, "y": "linear"}}


def parabolic():
    return ParabolicADI((5, 6), batch=2, spacing=0.25, dt=0.01, initial=1.0, **PAIR)


def gceidd():
    return GCEIDD(PULSE, shape=(7, 8), dt=0.01, scheme="mu", strips=2)


def lmsor():
    problem = SteadyConvectionDiffusion(
        lambda x, y: 10 * x + 0 * y,
        5.0,
        shape=(6, 7),
        extent=((0, 1), (0, 1)),
        source=1.0,
        boundary=2.0,
    )
    return LMSOR(problem)


def staggered(**options):
    return StaggeredCavity(100, 6, **options)


def cylinder(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoarseGridWarning)  # coarse, so that it is fast
        return SquareCylinder(50, (17, 101), **options)


def plate():
    return RedBlackSOR(
        (4, 5),
        extent=((0, 1), (0, 1)),
        boundary={"y+": 1.0, "x-": Neumann(0.5), "x+": 0.0, "y-": 0.0},
        source=2.0,
    )


# Name -> an object, how it is loaded, and how it goes on (a result does not).
CASES = {
    "cavity": (lambda: cavity().iterate(45), LidDrivenCavity.load, lambda s: s.iterate(20)),
    "cavity-jacobi": (
        lambda: cavity(method="line-jacobi").iterate(20),
        LidDrivenCavity.load,
        lambda s: s.iterate(20),
    ),
    "heat": (
        lambda: heat().step(3),
        lambda path: HeatADI.load(path, boundary={"x": Neumann(1.0), "y": "periodic"}),
        lambda s: s.step(2),
    ),
    "gceidd": (
        lambda: gceidd().step(3),
        lambda path: GCEIDD.load(path, PULSE),
        lambda s: s.step(2),
    ),
    "advection": (
        lambda: AdvectionDiffusion(PULSE, (7, 8), 0.01).step(3),
        lambda path: AdvectionDiffusion.load(path, PULSE),
        lambda s: s.step(2),
    ),
    "parabolic": (
        lambda: parabolic().step(3),
        lambda path: ParabolicADI.load(path, **PAIR),
        lambda s: s.step(2),
    ),
    "lmsor": (lambda: lmsor().iterate(4).iterate(2), LMSOR.load, lambda s: s.iterate(2)),
    "plate": (lambda: plate().iterate(4).iterate(2), RedBlackSOR.load, lambda s: s.iterate(2)),
    "staggered": (
        lambda: staggered(pressure="sor").step(23),
        StaggeredCavity.load,
        lambda s: s.step(2),
    ),
    "cylinder": (lambda: cylinder().step(7), SquareCylinder.load, lambda s: s.step(2)),
    "cavity-result": (lambda: cavity().iterate(40).result(), CavityResult.load, repr),
    "heat-result": (lambda: heat().run(0.05), HeatResult.load, repr),
    "staggered-result": (lambda: staggered().step(23).result(), StaggeredResult.load, repr),
    "cylinder-result": (lambda: cylinder().run(0.3), CylinderResult.load, repr),
    "gceidd-result": (lambda: gceidd().run(0.05), TransportResult.load, repr),
    "advection-result": (
        lambda: AdvectionDiffusion(PULSE, (7, 8), 0.01).run(0.05),
        AdvectionDiffusionResult.load,
        repr,
    ),
    "parabolic-result": (lambda: parabolic().run(0.05), ParabolicResult.load, repr),
    "relaxation-result": (lambda: plate().solve(1e-6), RelaxationResult.load, repr),
}


def content(data):
    """Return header and arrays of the bytes of a file."""
    with np.load(io.BytesIO(data)) as archive:
        arrays = dict(archive)
    return json.loads(str(arrays.pop("header"))), arrays


def packed(header, arrays, *, save=np.savez):
    """Return the bytes of a file with this header, a text or what JSON can represent."""
    stream = io.BytesIO()
    text = header if isinstance(header, np.ndarray | str) else json.dumps(header)
    save(stream, **{"header": np.array(text), **arrays})
    return stream.getvalue()


def described(header, arrays):
    """Return the header with the dtypes and shapes that the arrays have."""
    members = {
        name: {
            "dtype": array.dtype.name,
            "shape": array.shape,
            "finite": bool(array.dtype.kind in "fiu" and np.isfinite(array).all()),
        }
        for name, array in arrays.items()
    }
    return {**header, "members": members}


def leaves(value, path=()):
    """Yield the paths of all values of a header, objects and lists too."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list):
        for k in range(len(value)):
            yield from leaves(value[k], (*path, k))


def replaced(header, path, value):
    """Return a header with another value at a path."""
    if not path:
        return value
    header = copy.deepcopy(header)
    place = header
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return header


def with_member(data, name, contents):
    """Return the bytes of an archive with one more member."""
    stream = io.BytesIO(data)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr(name, contents)
    return stream.getvalue()
