"""Problems of HeatADI for ranks, of which some are solved by the scheme that is not split."""

import numpy as np

from pysolvers import Dirichlet, Neumann, Robin

PLANE = {"shape": (17, 14), "extent": ((0.0, 2.0), (0.0, 1.0)), "dt": 0.013, "boundary": 0.0}
BOX = {
    "shape": (9, 11, 10),
    "extent": ((0.0, 2.0), (0.0, 1.0), (0.0, 1.5)),
    "dt": 0.02,
    "boundary": 0.0,
}


def wave(x, y):
    return np.sin(2 * x) * np.cos(3 * y) + x * y


def bar(ratio):
    """A conductivity with a bar that is parallel to no axis."""
    return lambda x, y: np.where(abs(x - 1.7 * y) < 0.25, ratio, 1.0)


def bar_of_box(x, y, z):
    return np.where(abs(x - y + z - 0.4) < 0.3, 1e4, 1.0)


UNSPLIT = {
    "bar": PLANE | {"diffusivity": bar(1e4), "boundary": {"x-": 1.0, "x+": 0.0, "y": Neumann()}},
    "single": PLANE
    | {
        "shape": (40, 31),
        "dtype": np.float32,
        "diffusivity": bar(1e4),
        "boundary": {"y-": 1.0, "y+": 0.0, "x": Neumann()},
    },
    "moving": PLANE
    | {
        "shape": (35, 52),
        "initial": wave,
        "diffusivity": bar(1e3),
        "boundary": {
            "x-": Neumann(lambda y, t: y * t),
            "x+": Robin(2.0, lambda y, t: t + y),
            "y-": Dirichlet(lambda x, t: np.cos(t) * x),
            "y+": Robin(0.5, 1.0),
        },
        "source": lambda x, y, t: x * y * np.exp(-t),
    },
    "periodic": PLANE
    | {
        "shape": (34, 30),
        "initial": lambda x, y: np.sin(np.pi * x) + np.cos(2 * np.pi * y),
        "diffusivity": lambda x, y: 1 + 1e3 * (np.sin(np.pi * x + 2 * np.pi * y) > 0.6),
        "boundary": {"x": Neumann(0.2), "y": "periodic"},
        "source": 0.5,
    },
    "ring": PLANE
    | {
        "shape": (15, 32),
        "initial": wave,
        "diffusivity": bar(1e3),
        "boundary": {"x": "periodic", "y-": Neumann(), "y+": 1.0},
    },
    "insulated": PLANE | {"initial": wave, "diffusivity": bar(1e6), "boundary": Neumann()},
    "box": BOX
    | {
        "initial": lambda x, y, z: x * y + z**2,
        "diffusivity": bar_of_box,
        "boundary": {
            "x-": lambda y, z, t: y * z * np.cos(t),
            "x+": Neumann(lambda z, t: t * z),
            "y": "periodic",
            "z-": Robin(1.0, lambda x, t: x + t),
            "z+": Neumann(),
        },
        "source": lambda z, t: z + t,
    },
    "cube": BOX
    | {
        "shape": (21, 22, 25),
        "diffusivity": bar_of_box,
        "boundary": {"x": Neumann(), "y": Neumann(), "z-": 0.0, "z+": 1.0},
    },
}
