"""The axes of a grid, from the parameters of a solver."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._axis import POWERS, even_step
from .._checks import index, require, require_all_finite, require_finite
from .._domain import AXES, checked_extent, exactly_one
from ._axes import Axis
from ._sides import coefficient_of, conditions_of, kind_of_condition

Geometry = Literal["cartesian", "cylinder", "sphere"]

_MOST_AXES = {"cylinder": 2, "sphere": 1}


class Grid(NamedTuple):
    """A grid with sides.

    Attributes
    ----------
    axes : list of Axis
        In the order of the array, x last.
    conditions : dict of str to object
        Conditions by side.
    kinds : dict of str to str
        Kinds of the conditions by side.
    """

    axes: list[Axis]
    conditions: dict[str, Any]
    kinds: dict[str, str]


def grid_of(
    shape: tuple[int, ...], spacing: Any, extent: Any, grid: str, boundary: Any, geometry: str
) -> Grid:
    """Return the grid that the parameters of a solver describe.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.
    """
    names = AXES[: len(shape)]
    most = _MOST_AXES.get(geometry, 3)
    axes = {"cylinder": "1 or 2 axes, r and z", "sphere": "1 axis, r"}.get(geometry)
    require(len(shape) <= most, f"geometry={geometry!r}: shape must have {axes}", shape)
    exactly_one("FastPoisson", spacing, extent)
    start = _first_radius(spacing, extent, names) if geometry != "cartesian" else 1.0
    require(start >= 0, f"geometry={geometry!r}: x is the radius, and must start from 0 on", start)
    conditions = conditions_of(boundary, names, from_axis=start == 0)
    kinds = {side: kind_of_condition(side, given) for side, given in conditions.items()}
    edges = _edges(shape, spacing, extent, grid, kinds)
    found = []
    for name, size in zip(reversed(names), shape, strict=True):
        ends = kinds[name + "-"], kinds[name + "+"]
        exchange = tuple(coefficient_of(name + sign, conditions[name + sign]) for sign in "-+")
        power = POWERS[geometry] if name == "x" else 0
        places = *edges[name], power, exchange
        found.append(Axis(name, size, grid == "nodes", ends, *places))  # type: ignore[arg-type]
    return Grid(found, conditions, kinds)


def _first_radius(spacing: Any, extent: Any, names: str) -> float:
    """Return where x begins."""
    if extent is not None:
        return checked_extent(extent, names)["x"][0]
    first = _per_axis(spacing, names)[0]
    return float(np.ravel(np.asarray(first, float))[0]) if np.ndim(first) else 0.0


def checked_shape(shape: Any) -> tuple[int, ...]:
    """Return the shape of a solution, or raise TypeError or ValueError."""
    if not isinstance(shape, tuple | list):
        return (index("shape", shape, 1),)
    require(1 <= len(shape) <= 3, "shape must have 1, 2 or 3 axes", tuple(shape))
    return tuple(index("shape", size, 1) for size in shape)


def _edges(
    shape: tuple[int, ...], spacing: Any, extent: Any, grid: str, kinds: Mapping[str, str]
) -> dict[str, tuple[NDArray[np.float64], float | None]]:
    """Return nodes or faces along each axis, and their distance if it is constant."""
    names = AXES[: len(shape)]
    counts = {
        name: size + int(grid == "cells" or kinds[name + "-"] == "periodic")
        for name, size in zip(names, reversed(shape), strict=True)
    }
    found: dict[str, tuple[NDArray[np.float64], float | None]] = {}
    if extent is not None:
        for name, (low, high) in checked_extent(extent, names).items():
            intervals = counts[name] - 1
            require(intervals > 0, f"shape must have at least 2 nodes along {name}", shape)
            edges: Any = np.linspace(low, high, counts[name])
            found[name] = edges, (high - low) / intervals
        return found
    for name, step in zip(names, _per_axis(spacing, names), strict=True):
        if np.ndim(step):
            found[name] = _coordinates(name, step, counts[name], grid)
            continue
        require_finite(f"spacing along {name}", step)
        require(step > 0, f"spacing along {name} must be positive", step)
        places: Any = np.arange(counts[name]) * float(step)
        found[name] = places, float(step)
    return found


def _per_axis(spacing: Any, names: str) -> list[Any]:
    """Return the spacing of each axis: a number, or an array of the distances of nodes."""
    is_array = isinstance(spacing, np.ndarray)
    if not isinstance(spacing, tuple | list) and not (is_array and spacing.ndim):
        return [spacing] * len(names)
    if is_array and len(names) == 1:
        return [spacing]
    require(
        len(spacing) == len(names),
        f"spacing must be a number, or a tuple with an entry for each of {', '.join(names)}",
        spacing,
    )
    return list(spacing)


def _coordinates(
    name: str, given: Any, count: int, grid: str
) -> tuple[NDArray[np.float64], float | None]:
    """Return checked coordinates along an axis, and their distance if it is constant."""
    what = "nodes" if grid == "nodes" else "faces of the cells"
    edges = np.array(given, np.float64)
    require(
        edges.shape == (count,),
        f"spacing along {name} must have the coordinates of {count} {what}, shape ({count},)",
        edges.shape,
    )
    require_all_finite(f"spacing along {name}", edges)
    steps = np.diff(edges)
    require(bool((steps > 0).all()), f"spacing along {name} must be ascending", edges)
    return edges, even_step(edges) if count > 1 else None
