"""FastPoisson on a CPU and on a device, of host memory or a GPU: the same solver twice."""

import numpy as np
import pytest
from poisson_reference import condition

from pysolvers import Dirichlet, FastPoisson, Neumann, Robin
from pysolvers.poisson import _device, _longer, _mirrored, _waves

PAIRS = ("DD", "DN", "ND", "NN", "PP")
CONDITIONS = {"D": Dirichlet, "N": Neumann}

EDGES = X, Y = np.linspace(0, 1, 9) ** 2, np.linspace(0, 1, 8) ** 1.5
Z = np.linspace(0, 1, 5) ** 2
SCREENED = {"boundary": {"x": 1.0, "y": Neumann(0.5)}, "helmholtz": -1.0}
# Shape, spacing and further arguments of problems on cells: one axis of lines, then eigenvectors.
ONE_AXIS = {
    "packed": ((7, 8), (0.2, 0.3), {"boundary": {"x": Neumann(), "y": 1.0}, "helmholtz": 0.6}),
    "stretched y": ((7, 8), (0.2, Y), {"boundary": {"x": 1.0, "y-": Neumann(0.2), "y+": 0.0}}),
    "Robin": ((7, 8), (0.2, 0.3), {"boundary": {"x": Robin(2.0, 0.5), "y": Neumann(1.0)}}),
    "pipe": ((7, 8), (X, 0.3), {"boundary": {"x+": 1.0, "y": 0.5}, "geometry": "cylinder"}),
    "closed pipe": ((7, 8), (X, 0.3), {"boundary": Neumann(), "geometry": "cylinder"}),
    "box": (
        (7, 4, 8),
        (0.2, 0.3, Y),
        {"boundary": {"x": "periodic", "y": 1.0, "z": Robin(0.5, 2.0)}, "helmholtz": 0.1},
    ),
    "sphere": ((8,), X, {"boundary": Robin(0.5, 1.0), "geometry": "sphere"}),
    "two stretched": ((7, 8), (X, Y), {"boundary": {"x": 1.0, "y": Robin(2.0, 0.5)}}),
    "three stretched": ((7, 4, 8), (X, Z, Y), {"boundary": {"x": 1.0, "y": 0.5, "z": Neumann()}}),
    "symmetric": (
        (6, 4, 7),
        (0.1 + (X[:-1] - 0.5) ** 3, Z, np.array([0, 0.1, 0.3, 0.7, 1.1, 1.3, 1.4])),
        {"boundary": {"x": Neumann(), "y": "periodic", "z": 0.5}},
    ),
    "products and waves": (
        (7, 4, 8),
        (X, 0.3, Y),
        {"boundary": {"x": 0.5, "y": "periodic", "z": Neumann()}, "helmholtz": 0.3},
    ),
    "closed": ((7, 8), (X, Y), {"boundary": Neumann()}),
    "first axis": ((7, 8), (0.2, 0.3), {"boundary": 0.5, "methods": {"y": "eigenvectors"}}),
    "negative": ((7, 8), (0.2, 0.3), SCREENED),
    "negative, stretched": ((7, 8), (X, 0.3), SCREENED),
    "negative box": (
        (7, 4, 8),
        (X, 0.3, 0.4),
        {"boundary": {"x": 0.5, "y": "periodic", "z": Neumann()}, "helmholtz": -0.7},
    ),
    "negative interval": ((8,), (X,), {"boundary": 1.0, "helmholtz": -1.0}),
    "closed, without lines": (
        (7, 8),
        (0.2, Y),
        {"boundary": Neumann(), "methods": {"x": "transform", "y": "eigenvectors"}},
    ),
}


def numbers(rng, shape, dtype):
    values = rng.uniform(-1, 1, shape)
    return (values * (1 + 2j) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def solvers(
    rng, shape, ends, *, grid="nodes", dtype="float64", x=None, first=None, on=("cpu", "cuda")
):
    """Return the same solver on the CPU and on the device, with random values on its sides.

    `x` are the values along x, `first` is the spacing of the first axis.
    """
    if "cpu" in on:
        pytest.importorskip("scipy.fft")
    boundary = {}
    for axis, pair in enumerate(ends):
        name = "xyz"[len(shape) - 1 - axis]
        side = shape[:axis] + shape[axis + 1 :]
        for letter, sign in zip(pair, "-+", strict=True):
            values = numbers(rng, side, dtype)
            boundary[name + sign] = "periodic" if pair == "PP" else CONDITIONS[letter](values)
    spacing = [0.3 + 0.1 * k for k in range(len(shape))]
    if x is not None:
        spacing[0] = x
    if first is not None:
        spacing[-1] = first
    options = {"boundary": boundary, "grid": grid, "dtype": dtype, "on_incompatible": "ignore"}
    return [FastPoisson(shape, tuple(spacing), device=d, **options) for d in on]


def right_side(rng, shape, dtype="float64"):
    return numbers(rng, shape, dtype)


def near(actual, expected, solver):
    """Require equality but for rounding errors times the condition number; some of transforms."""
    errors = max(2 * condition(solver), 20)
    most = errors * np.finfo(expected.dtype).eps * np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=most)


def check_same_solution(rng, shape, ends, **options):
    """Require the solution of the CPU for a random right side."""
    here, there = solvers(rng, shape, ends, **options)
    f = right_side(rng, shape, options.get("dtype", "float64"))

    near(there.solve(f), here.solve(f), here)


def check_ocean(ends, dtype, nodes, most):
    """60 layers of 1 .. 200 m, cells of 1 km: the lines do not lose the long wave along y."""
    faces = np.concatenate([[0], np.cumsum(np.geomspace(1, 200, 60))])
    kinds = {"N": Neumann(), "D": 0.0, "P": "periodic"}
    boundary = {"x" + sign: kinds[end] for end, sign in zip(ends, "-+", strict=True)}
    boundary["y"] = Neumann()
    theta = np.pi / nodes
    wave = np.cos(theta * (np.arange(nodes) + 0.5))[:, None] * np.ones(60)
    options = {"boundary": boundary, "grid": "cells"}
    there = FastPoisson((nodes, 60), (faces, 1e3), dtype=dtype, device="cuda", **options)

    u = there.solve(wave.astype(dtype))

    if ends in ("NN", "PP"):
        expected = -wave / (2 / 1e3 * np.sin(theta / 2)) ** 2
    else:
        expected = FastPoisson((nodes, 60), (faces, 1e3), **options).solve(wave)
    assert np.abs(u - expected).max() <= most * np.finfo(dtype).eps * np.abs(expected).max()


def set_panel(monkeypatch, values):
    """Let devices transform so many values at once."""
    monkeypatch.setattr(_device, "_PANEL", values)


def packed_of(solver):
    """Return the packed transforms that a solver on a device has, or None."""
    return solver._device._packed


def halvings_of(solver):
    """Return how often the packed transforms halve the lines of nodes."""
    return packed_of(solver)._halvings


def set_least_in_two_parts(monkeypatch, size):
    """Halve the lines of nodes on a device once from fields of so many bytes on."""
    monkeypatch.setattr(_waves, "_LEAST_IN_PARTS", size)


def set_least_in_parts(monkeypatch, size):
    """Halve the lines of nodes on a device from fields of so many bytes on."""
    set_least_in_two_parts(monkeypatch, size)
    monkeypatch.setattr(_waves, "_LEAST_IN_FOUR_PARTS", size)


def set_least_longer(monkeypatch, size):
    """Let nodes on a device be a part of a longer grid from so many unknowns on.

    The products of many waves are divided.
    """
    monkeypatch.setattr(_longer, "_LEAST", size)
    monkeypatch.setattr(_longer, "_MOST_TERMS", 7)


def set_no_graphs(monkeypatch):
    """Let all fields on a device be too large for a graph."""
    for name in ("_MOST_GRAPH_BYTES", "_MOST_BRANCHED_BYTES"):
        monkeypatch.setattr(_device, name, 0)


def set_mirrored(monkeypatch):
    """Let symmetric axes of all boxes on a device have products of even and odd eigenvectors."""
    for name in ("_LEAST", "_LEAST_IN_FIVE"):
        monkeypatch.setattr(_mirrored, name, 1)
    monkeypatch.setattr(_mirrored, "method_of_device", lambda *_: "eigenvectors")


def check_one_axis(rng, case, dtype):
    """Require the solutions of the CPU for a batch, on a grid with one axis of lines."""
    shape, spacing, options = ONE_AXIS[case]
    options = options | {"grid": "cells", "dtype": dtype, "on_incompatible": "ignore"}
    here, there = (FastPoisson(shape, spacing, device=d, **options) for d in ("cpu", "cuda"))
    f = rng.uniform(-1, 1, (2, 3, *shape)).astype(dtype)
    expected = here.solve(f)
    most = 100 * np.finfo(dtype).eps * np.abs(expected).max()
    np.testing.assert_allclose(there.solve(f), expected, rtol=0, atol=most)
    np.testing.assert_allclose(there.solve(f[1, 2]), expected[1, 2], rtol=0, atol=most)
