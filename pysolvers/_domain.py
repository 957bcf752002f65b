"""Domain and grid of a solver: extent, or spacing; positional arguments of older releases."""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from math import isfinite
from typing import Any, ParamSpec, TypeVar

from ._checks import require, require_finite

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
