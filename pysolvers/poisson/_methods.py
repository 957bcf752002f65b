"""How each axis of a grid is solved: by a transform, by its eigenvectors, or by lines."""

from collections.abc import Mapping, Sequence
from math import inf, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._checks import require
from .._errors import SingularSystemError, SingularSystemWarning, warn_user
from ._axes import Axis

Array = NDArray[np.float64]
Method = Literal["transform", "eigenvectors", "lines"]

TRANSFORM: Method = "transform"
EIGENVECTORS: Method = "eigenvectors"
LINES: Method = "lines"

# Times for one unknown, in units of 0.1 ns (AMD EPYC, one thread, float64): a transform and its
# inverse, 12 ns; two products with n x n matrices, 4 n operations at 50 per ns.
_TRANSFORM = 120.0
_PRODUCT = 0.8
#: Length up to which sines and cosines are found by products, where real numbers are transformed.
FEW = 80


def methods_of(
    axes: Sequence[Axis],
    given: Mapping[str, Method] | None,
    *,
    helmholtz: float,
    split: int | None = None,
    few: int = 0,
    products: bool = True,
) -> tuple[Method, ...]:
    """Return the method of each axis.

    Lines cost least of all methods and lose no digits. At most one axis has them, if c >= 0: the
    one whose other methods take longest; x, if they take equally long.

    Parameters
    ----------
    axes : sequence of Axis
        In the order of the array.
    given : mapping of str to str, or None
        Methods that the caller chooses, by the names of axes.
    helmholtz : float
        The number c.
    split : int, optional
        Axis that ranks divide, and which therefore has lines.
    few : int, default: 0
        Uniform axes of at most this length have eigenvectors instead of transforms.
    products : bool, default: True
        Whether products with eigenvectors are offered; otherwise lines replace them if they can.

    Raises
    ------
    TypeError, ValueError
        If a method is unknown or not offered on an axis.
    """
    chosen = dict(_checked(axes, given))
    names = [axis.name for axis in axes]
    lines = [name for name, method in chosen.items() if method == LINES]
    require(len(lines) < 2, "methods: at most one axis can have 'lines'", dict(chosen))
    if split is not None:
        name = names[split]
        require(
            helmholtz >= 0,
            "helmholtz must be at least 0 with a group: the divided axis is solved by lines",
            helmholtz,
        )
        require(
            chosen.get(name, LINES) == LINES and lines in ([], [name]),
            f"methods: with split the axis {name}, and no other, must have 'lines'",
            dict(chosen),
        )
        chosen[name] = LINES
    elif not lines and helmholtz >= 0:
        free = [axis for axis in axes if axis.name not in chosen]
        if free:
            chosen[max(free, key=lambda axis: _time(axis, products)).name] = LINES
    require(
        helmholtz >= 0 or LINES not in chosen.values(),
        "methods: lines need helmholtz >= 0; choose 'transform' or 'eigenvectors'",
        dict(chosen),
    )
    return tuple(chosen.get(axis.name) or _other(axis, few) for axis in axes)


def _checked(axes: Sequence[Axis], given: Mapping[str, Method] | None) -> Mapping[str, Method]:
    """Return the given methods, or raise TypeError or ValueError."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            "methods must be a mapping of axes to methods, for example {'y': 'eigenvectors'}, "
            f"got {type(given).__name__}"
        )
    by_name: dict[Any, Axis] = {axis.name: axis for axis in axes}
    for name, method in given.items():
        require(name in by_name, f"methods: the axes are {', '.join(sorted(by_name))}", name)
        require(
            method in (TRANSFORM, EIGENVECTORS, LINES),
            f"methods {name} must be one of transform, eigenvectors, lines",
            method,
        )
        require(
            method != TRANSFORM or by_name[name].has_transform,
            f"methods {name}: only uniform axes of a cartesian grid without Robin sides have a "
            "transform: write 'eigenvectors' or 'lines'",
            method,
        )
    return given


def _other(axis: Axis, few: int) -> Method:
    """Return the method of an axis without lines."""
    is_short = not axis.is_periodic and axis.count <= few
    return TRANSFORM if axis.has_transform and not is_short else EIGENVECTORS


def _time(axis: Axis, products: bool) -> tuple[float, bool]:
    """Return the time that an axis takes without lines, and whether it is x."""
    if axis.has_transform:
        return _TRANSFORM, axis.name == "x"
    return _PRODUCT * axis.count if products else inf, axis.name == "x"


def check_distance(helmholtz: float, sums: Array, dtype: np.dtype) -> None:
    """Check that c < 0 is no eigenvalue of the discrete operator, from lambda - c of all waves.

    Raises
    ------
    SingularSystemError
        If it is one up to rounding errors. If it is near one, there is a `SingularSystemWarning`.
    """
    if helmholtz >= 0:
        return
    size, eps = abs(helmholtz), float(np.finfo(dtype).eps)
    place = int(np.abs(sums).argmin())
    distance = float(np.abs(sums.flat[place]))
    text = (
        f"FastPoisson: helmholtz={helmholtz:.17g} is at a distance of {distance:.3g} from an "
        "eigenvalue of the discrete operator"
    )
    if distance <= 64 * eps * size:
        waves = np.array([np.unravel_index(place, sums.shape)], np.intp)
        text += ": the equation has no unique solution; choose another value"
        raise SingularSystemError(waves, np.zeros(1, np.intp), text)
    if distance <= sqrt(eps) * size:
        growth = f"rounding errors grow by {size / distance:.2g}"
        warn_user(f"{text}: {growth}", SingularSystemWarning)
