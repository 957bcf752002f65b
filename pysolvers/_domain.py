"""Domain and grid of a solver: extent, or spacing; positional arguments of older releases."""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from math import isfinite
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from ._checks import index, real_array, require, require_finite, short

AXES = "xyz"
"""Names of the axes of space; x is the last one of an array."""

P = ParamSpec("P")
R = TypeVar("R")

Pairs = tuple[tuple[float, float], ...]


def exactly_one(solver: str, spacing: Any, extent: Any) -> None:
    """Raise TypeError unless either spacing or extent is given."""
    if (spacing is None) == (extent is None):
        raise TypeError(
            f"{solver} needs either spacing or extent, got "
            + ("neither" if spacing is None else "both")
        )


def checked_extent(extent: Any, axes: str) -> dict[str, tuple[float, float]]:
    """Return the ends of the domain along each axis, or raise ValueError."""
    try:
        pairs = [(float(low), float(high)) for low, high in extent]
    except (TypeError, ValueError):
        pairs = []
    require(
        len(pairs) == len(axes)
        and all(isfinite(low) and isfinite(high) and low < high for low, high in pairs),
        f"extent must be a pair (low, high) with low < high for each of {', '.join(axes)}",
        extent,
    )
    return dict(zip(axes, pairs, strict=True))


def per_axis(name: str, value: Any, axes: str) -> tuple[float, ...]:
    """Return a positive number for each axis, in the order x, y, z.

    Parameters
    ----------
    name : str
        For messages.
    value : number, sequence or mapping
        One number for all axes, a sequence in the order x, y, z, or a mapping with the names of
        the axes as keys.
    axes : str
        Names of the axes.
    """
    rule = f"{name} must be a number, or one for each of {', '.join(axes)}"
    if isinstance(value, Mapping):
        require(set(value) == set(axes), rule, value)
        value = tuple(value[axis] for axis in axes)
    is_sequence = isinstance(value, Sequence) and not isinstance(value, str)
    values = tuple(value) if is_sequence else (value,) * len(axes)
    require(len(values) == len(axes), rule, value)
    for number in values:
        require_finite(name, number)
        require(number > 0, f"{name} must be positive", number)
    return tuple(float(number) for number in values)


def checked_shape(shape: Any, least: int) -> tuple[int, ...]:
    """Return the numbers of nodes along one to three axes, or raise."""
    if not isinstance(shape, Sequence) or isinstance(shape, str):
        raise TypeError(f"shape must be a tuple of 1, 2 or 3 int, got {short(shape)}")
    require(len(shape) in (1, 2, 3), "shape must have 1, 2 or 3 axes", shape)
    return tuple(index("shape", n, least) for n in shape)


def checked_domain(
    solver: str, spacing: Any, extent: Any, coordinates: Any, shape: Sequence[int], axes: str
) -> tuple[Any, Any, Any]:
    """Return spacing, extent and coordinates in standard form: one of them, and None."""
    named = {"extent": extent, "spacing": spacing, "coordinates": coordinates}
    given = [name for name, value in named.items() if value is not None]
    if len(given) != 1:
        got = " and ".join(given) or "none"
        raise TypeError(f"{solver} needs one of extent, spacing and coordinates, got {got}")
    if coordinates is not None:
        return None, None, checked_lines(coordinates, shape, axes)
    if spacing is not None:
        return per_axis("spacing", spacing, axes), None, None
    return None, tuple(checked_extent(extent, axes).values()), None


def checked_lines(
    coordinates: Any, shape: Sequence[int], axes: str
) -> tuple[tuple[float, ...], ...]:
    """Return the coordinates along x, y, ...; one more than nodes on a periodic axis."""
    names = ", ".join(axes)
    rule = f"coordinates must be an array for each of {names}, as a tuple or a mapping"
    if isinstance(coordinates, Mapping):
        require(set(coordinates) == set(axes), rule, coordinates)
        coordinates = tuple(coordinates[axis] for axis in axes)
    if not isinstance(coordinates, tuple | list):
        raise TypeError(f"{rule}, got {short(coordinates)}")
    require(len(coordinates) == len(axes), rule, coordinates)
    found = []
    for axis, given, n in zip(axes, coordinates, reversed(shape), strict=True):
        name = f"coordinates along {axis}"
        line = real_array(name, given)
        require(
            line.ndim == 1 and line.size in (n, n + 1),
            f"{name} must be an array of {n} numbers, or of {n + 1} on a periodic axis",
            line.shape,
        )
        steps = np.diff(line)
        is_rising = bool(np.isfinite(line).all() and (steps > 0).all())
        require(is_rising, f"{name} must be finite and rising", line)
        found.append(tuple(float(place) for place in line))
    return tuple(found)


def checked_line(name: str, places: Any, n: int, *, is_periodic: bool) -> NDArray[np.float64]:
    """Return the coordinates of n nodes, of a periodic axis also that of the image of the first."""
    expected = n + is_periodic
    require(
        len(places) == expected,
        f"coordinates along {name} must be an array of {expected} numbers"
        + (", the last one that of the image of the first node" if is_periodic else ""),
        len(places),
    )
    return np.array(places)


def origin_and_step(
    nodes: Sequence[int],
    spacing: tuple[float, ...] | None,
    extent: Pairs | None,
    periodic: Collection[str],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return first coordinate and distance of the nodes along each axis, in the order x, y, z.

    Parameters
    ----------
    nodes : sequence of int
        Number of nodes along each axis, both ends included.
    spacing : tuple of float or None
        Distance of the nodes; the first node then lies at 0.
    extent : pairs or None
        First and last coordinate; on a periodic axis the last one is that of the image of the
        first node.
    periodic : collection of str
        Names of the periodic axes.
    """
    if extent is None:
        assert spacing is not None
        return (0.0,) * len(nodes), spacing
    intervals = [n - (name not in periodic) for name, n in zip(AXES, nodes, strict=False)]
    steps = ((b - a) / n for (a, b), n in zip(extent, intervals, strict=True))
    return tuple(a for a, _ in extent), tuple(steps)


class NodeLines:
    """Coordinates of the nodes, x, y and z, of what has those along an axis by its number."""

    @property
    def x(self) -> NDArray[np.float64]:
        """Coordinates of the nodes along x: shape (nx,)."""
        return self._line(0)

    @property
    def y(self) -> NDArray[np.float64]:
        """Coordinates of the nodes along y: shape (ny,); an error in one dimension."""
        return self._line(1)

    @property
    def z(self) -> NDArray[np.float64]:
        """Coordinates of the nodes along z: shape (nz,); an error in two dimensions."""
        return self._line(2)

    def _line(self, axis: int) -> NDArray[np.float64]:
        """Return the coordinates along an axis, or raise AttributeError if there is none."""
        raise NotImplementedError


def watch_position(
    place: int, check: Callable[..., None]
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a method so that an argument is checked if it is given by position.

    Parameters
    ----------
    place : int
        Position of the argument; 0 is the first one after self.
    check : callable
        Called with all positional arguments but self; raises.
    """

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(method)
        def watched(*args: P.args, **options: P.kwargs) -> R:
            if len(args) > place + 1:
                check(*args[1:])
            return method(*args, **options)

        return watched

    return decorate


def unequal(value: Any) -> bool:
    """Return whether a value is a sequence of different numbers."""
    return isinstance(value, tuple | list) and any(each != value[0] for each in value[1:])
