"""How each axis of a grid is solved: by a transform, by its eigenvectors, or by lines."""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, Literal, NamedTuple

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


class _Times(NamedTuple):
    """Times for one unknown, in ns, in float64.

    Attributes
    ----------
    transform : float
        Of a transform and its inverse.
    factors : float
        Of the same, if cuFFT has no kernel for a prime factor of the length: its `MOST` is the
        largest one that has a kernel.
    product : float
        Of two products with n x n matrices, divided by n. Those of rows that are the same in
        reverse order take half the time.
    """

    transform: float
    factors: float
    product: float


# On an AMD EPYC, one thread: 4 n operations at 50 per ns. On an H100: transforms of 4 to 6 words,
# and 4 n operations at 50 per ps; lengths with large prime factors take 0.15 ns more.
_HOST = _Times(12.0, 12.0, 0.08)
_DEVICE = _Times(0.02, 0.17, 8e-5)
_MOST_FACTOR = 127
#: Length up to which sines and cosines are found by products, where real numbers are transformed.
FEW = 80


def methods_of(
    axes: Sequence[Axis],
    given: Mapping[str, Method] | None,
    *,
    helmholtz: float,
    split: int | None = None,
    few: int = 0,
    on_device: bool = False,
    packed: bool = False,
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
    on_device : bool, default: False
        Whether a device solves: it has other times, and needs one axis without a transform.
    packed : bool, default: False
        Whether the lines replace no transform that is slow: they are then those of x.

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
        if packed and not chosen:
            chosen |= {axis.name: LINES if axis.name == "x" else TRANSFORM for axis in axes}
        elif free:
            times = _DEVICE if on_device else _HOST
            chosen[max(free, key=lambda axis: _time(axis, times)).name] = LINES
    require(
        helmholtz >= 0 or LINES not in chosen.values(),
        "methods: lines need helmholtz >= 0; choose 'transform' or 'eigenvectors'",
        dict(chosen),
    )
    if on_device and not {LINES, EIGENVECTORS} & set(chosen.values()):
        free = [axis for axis in axes if axis.name not in chosen]
        require(
            bool(free),
            "methods: on a device at least one axis must have 'lines' or 'eigenvectors'",
            dict(chosen),
        )
        chosen[free[-1].name] = EIGENVECTORS
    return tuple(chosen.get(axis.name) or _other(axis, few, on_device) for axis in axes)


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


def _other(axis: Axis, few: int, on_device: bool) -> Method:
    """Return the method of an axis without lines."""
    if not axis.has_transform:
        return EIGENVECTORS
    is_short = axis.count <= few
    if on_device and not has_short_factors(axis):
        is_short = _product_time(axis, _DEVICE) < _DEVICE.factors
    return EIGENVECTORS if is_short and not axis.is_periodic else TRANSFORM


def _time(axis: Axis, times: _Times) -> tuple[float, bool]:
    """Return the time that an axis takes without lines, and whether it is x."""
    found = product = _product_time(axis, times)
    if axis.has_transform:
        slow = times.factors if axis.is_periodic else min(times.factors, product)
        found = times.transform if has_short_factors(axis) else slow
    return found, axis.name == "x"


def _product_time(axis: Axis, times: _Times) -> float:
    """Return the time that the products of an axis take."""
    return times.product * axis.count / (2 if axis.is_symmetric else 1)


def has_short_factors(axis: Axis) -> bool:
    """Return whether cuFFT has kernels for all prime factors of the length of an axis."""
    rest, factor = axis.intervals, 2
    while rest > 1 and factor <= _MOST_FACTOR:
        if rest % factor:
            factor += 1
        else:
            rest //= factor
    return rest == 1


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
