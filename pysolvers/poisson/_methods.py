"""How each axis of a grid is solved: by a transform, by its eigenvectors, or by lines."""

from collections.abc import Mapping, Sequence
from math import prod, sqrt
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


class _Costs(NamedTuple):
    """Measured costs of the methods in float64.

    Attributes
    ----------
    word : float
        Time to read or write a word, in ns.
    operation : float
        Time of an operation of a product, in ns.
    product, product_halved : float
        Words of the products of an axis for each unknown; by halves, with sums and differences.
    transform : float
        Words of a transform and its inverse for each unknown, with what it moves in caches.
    extended : float
        The same for the kind I, whose lines have twice the length.
    slow, slowest : float
        The same, if the library has no kernel for a prime factor of the length, and pads it; from
        `padded` intervals on it is the second one.
    padded : int
        See `slow`.
    call, call_halved : float
        Time of the host for a solve, in ns, by which small fields are bound; the second one with
        products by halves.
    halved : int
        Unknowns from which the products of a symmetric axis take half the operations.
    """

    word: float
    operation: float
    product: float
    product_halved: float
    transform: float
    extended: float
    slow: float
    slowest: float
    padded: int
    call: float
    call_halved: float
    halved: int

    def products(self, axis: Axis, unknowns: int) -> tuple[float, float]:
        """Return the time of the products of an axis, with and without that of the host."""
        is_halved = axis.is_symmetric and axis.count >= self.halved
        words = self.product_halved if is_halved else self.product
        operations = (2 if is_halved else 4) * axis.count
        own = unknowns * (words * self.word + operations * self.operation)
        return max(own, self.call_halved if is_halved else self.call), own

    def waves(self, axis: Axis, unknowns: int) -> tuple[float, float]:
        """Return the time of the transforms of an axis, with and without that of the host."""
        words = self.extended if axis.transform[1] == 1 else self.transform
        if not has_short_factors(axis):
            words = self.slowest if axis.intervals >= self.padded else self.slow
        own = unknowns * words * self.word
        return max(own, self.call), own


# One thread of an AMD EPYC: a transform of 2048^2 takes 12 ns for each unknown, 2 n operations of
# products 0.08 n. SciPy's padded lengths take at most twice as long, which no choice depends on.
_HOST = _Costs(0.6, 0.02, 0.0, 0.0, 20.0, 20.0, 20.0, 20.0, 0, 0.0, 0.0, 2)
# H200: 4.2 TB/s, 50 TFlop/s. Whole solves of nodes between Dirichlet sides: 1999 intervals, a prime
# number, 745 us by transforms, 919 by products (14 calls of the host); 2999: 2810 and 1787 us.
# Products of 1000 nodes by halves take 977 us, which are those of the host. 511^3 nodes take 25.3
# ms by transforms, 512^3 cells that are stretched along y 11.1 ms by transforms, and along all axes
# 12.2 ms by products.
_DEVICE = _Costs(1.9e-3, 2e-5, 4.0, 14.0, 16.0, 45.0, 90.0, 150.0, 2049, 2.5e5, 9e5, 1500)
_MOST_FACTOR = 127  # cuFFT has a kernel for the prime factors up to it
_NEAR = 8.0  # ratio of distances at which lines have no more errors than other methods
#: Unknowns from which a device takes products of even and odd eigenvectors by halves.
LEAST_HALVED = _DEVICE.halved
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
    mirrored: bool = False,
) -> tuple[Method, ...]:
    """Return the method of each axis.

    Lines cost least of all methods and lose no digits. At most one axis has them, if c >= 0: the
    one whose other methods take longest by words and operations (`_Costs`). If they take equally
    long, it is x on a device, and otherwise that of `_preferred`.

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
        Whether the waves can stay packed (`_waves`): the lines are then those of the first axis.
    mirrored : bool, default: False
        The same with eigenvectors of the other axes (`_mirrored`).

    Raises
    ------
    TypeError, ValueError
        If a method is unknown or not offered on an axis.
    """
    chosen = dict(_checked(axes, given))
    unknowns = prod(axis.count for axis in axes)
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
        if mirrored and not chosen:
            chosen |= dict.fromkeys(names, EIGENVECTORS)
        chosen[name] = LINES
    elif not lines and helmholtz >= 0:
        free = [axis for axis in axes if axis.name not in chosen]
        if (packed or mirrored) and not chosen:
            others = EIGENVECTORS if mirrored else TRANSFORM
            chosen |= {axis.name: LINES if axis is axes[0] else others for axis in axes}
        elif free:
            costs = _DEVICE if on_device else _HOST
            preferred = axes[-1] if on_device else _preferred(axes, few)
            times = [(_time(axis, unknowns, costs), axis is preferred) for axis in free]
            chosen[free[times.index(max(times))].name] = LINES
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
    return tuple(chosen.get(axis.name) or _other(axis, unknowns, few, on_device) for axis in axes)


def _preferred(axes: Sequence[Axis], few: int) -> Axis:
    """Return the axis for lines on a CPU if all axes take equally long.

    Neighbouring lines of the first axis are neighbours in memory: 2048^2 cells take 0.75 of the
    time of lines along x, 64^2 by products 1.05. Errors of lines grow to n / 15 rounding units
    where the distances along them are small in comparison with those of other axes: then they are
    those of the axis with the largest distances.
    """
    steps = [axis.step or 0.0 for axis in axes]
    if max(axis.count for axis in axes) <= few or not all(steps):
        return axes[-1]
    largest = max(steps)
    return axes[0] if _NEAR * steps[0] >= largest else axes[steps.index(largest)]


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


def _other(axis: Axis, unknowns: int, few: int, on_device: bool) -> Method:
    """Return the method of an axis without lines."""
    if not axis.has_transform:
        return EIGENVECTORS
    is_short = axis.count <= few
    if on_device and _is_long(axis):
        product, waves = _DEVICE.products(axis, unknowns), _DEVICE.waves(axis, unknowns)
        is_short = product[0] < waves[0]
        is_short |= product < waves and not has_short_factors(axis)
    return EIGENVECTORS if is_short and not axis.is_periodic else TRANSFORM


def method_of_device(axis: Axis, unknowns: int) -> Method:
    """Return the method of an axis without lines on a device."""
    return _other(axis, unknowns, 0, on_device=True)


def _time(axis: Axis, unknowns: int, costs: _Costs) -> tuple[float, float]:
    """Return the time that an axis takes without lines."""
    if not axis.has_transform:
        return costs.products(axis, unknowns)
    found = costs.waves(axis, unknowns)
    is_fast = not _is_long(axis) if costs is _DEVICE else has_short_factors(axis)
    return found if axis.is_periodic or is_fast else min(found, costs.products(axis, unknowns))


def _is_long(axis: Axis) -> bool:
    """Return whether a device transforms more values than the axis has."""
    return axis.transform[1] == 1 or not has_short_factors(axis)


def has_short_factors(axis: Axis, most: int = _MOST_FACTOR) -> bool:
    """Return whether no prime factor of the length of an axis is above `most`."""
    rest, factor = axis.intervals, 2
    while rest > 1 and factor <= most:
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
