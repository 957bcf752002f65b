"""The four problems of Foadaddini, Zolfaghari, Mahmoodi Darian and Saadatfar (2022).

A new GPU-based corrected explicit-implicit domain decomposition scheme for convection-dominated
diffusion problems, Computers & Mathematics with Applications 123, 184-203. Settings that
the paper does not state, or misprints, are those that reproduce its tables and figures: see the
page on GCEIDD.

`late` is added to the time of sources and boundary values: the tables of the paper were computed
with values one step late.
"""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from math import ceil
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .. import transport
from .._boundary import Boundary, Dirichlet, Neumann
from .._errors import BackendError
from .._solver.schema import whole
from ..transport import ConvectionDiffusion
from ..transport._settings import TransportSettings
from ..transport.gceidd import SavedTransport

__all__ = [
    "GCEIDD",
    "GRIDS",
    "decaying_bump",
    "decaying_bump_exact",
    "entering_fronts",
    "heated_channel",
    "published_errors",
    "rotating_pulse",
    "rotating_pulse_exact",
    "table_errors",
]

Predictor = Literal["newest", "printed"]
Foot = Literal["clamp", "extrapolate"]
Kernels = Literal["fused", "paper"]
Strategy = Literal["3s", "naive"]

GRIDS = (32, 64, 128, 256)
"""Nodes a side of the tables."""

_DT = 1 / 1024
_STRIPS = 8

_WIDTH = 2e-3  # twice the variance of the pulse
_CENTRE = (0.5, 0.75)
_CHANNEL = ((0.0, 0.25), (0.0, 0.05))
_ROUNDING = 1e-9
_MOST = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class PaperSettings(TransportSettings):
    """Parameters of `GCEIDD` of this module."""

    predictor: Predictor
    foot: Foot
    kernels: Kernels
    strategy: Strategy
    few_strips: Annotated[int, whole(0, _MOST)]
    short_strip: Annotated[int, whole(0, _MOST)]
    throttle: Annotated[int, whole(0, _MOST)]


@dataclass(frozen=True, kw_only=True)
class SavedPaper(SavedTransport):
    """What `save` writes of `GCEIDD` of this module."""

    settings: PaperSettings

    _KIND = "gceidd2022 GCEIDD state"


class GCEIDD(transport.GCEIDD):
    r"""`pysolvers.GCEIDD` with the prediction, the feet and the kernels of the paper.

    Parameters
    ----------
    *args, **options
        As in `pysolvers.GCEIDD`.
    predictor : {'newest', 'printed'}, default: 'newest'
        Prediction of ``'mu'`` from the half levels :math:`S_0 = U, S_1, S_2`:
        :math:`2 S_0 - S_1` or, as printed in the paper, :math:`S_0 + S_1 - S_2`.
    foot : {'clamp', 'extrapolate'}, default: 'clamp'
        Value at a foot of a characteristic outside the domain: the value on the side, or linear
        extrapolation from the two nodes next to the side, which is unstable for Courant numbers
        above a limit of 2 to 4. The solution then has no range; see `bound` of
        `pysolvers.GCEIDD`.
    kernels : {'fused', 'paper'}, default: 'fused'
        Kernels on a device: one kernel per sweep, or the four kernels of the paper, which have no
        group.
    strategy : {'3s', 'naive'}, default: '3s'
        For ``kernels='paper'``: use of shared memory in the solves along x. ``'naive'`` has none;
        ``'3s'`` has three stages, by the next three options. `occupancy` and the kernel of
        `result` say what a call did.
    few_strips : int, default: 512
        Largest number of strips for a multiprocessor with which 3S is the naive kernel, stage 1.
    short_strip : int, default: 32
        With more strips and fewer cells than this in a strip, right sides and solutions are
        exchanged through shared memory, stage 3.
    throttle : int, default: 49152
        With more strips, and at least `short_strip` cells in a strip: bytes of shared memory of a
        block, which are not used and limit the number of blocks that share a cache, stage 2.

    Attributes
    ----------
    occupancy : dict of str to float
        Of the last steps by ``kernels='paper'`` on a device: resident threads of a multiprocessor
        over their largest number, by axis and part as in `seconds`; empty otherwise.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.GCEIDD`, and if one of these options is none of the choices.
    BackendError
        As `pysolvers.GCEIDD`, and in a step of 3S whose blocks need more shared memory than the
        device has: the message names the options.

    Examples
    --------
    >>> from pysolvers.papers import gceidd2022
    >>> problem = gceidd2022.decaying_bump()
    >>> solver = gceidd2022.GCEIDD(problem, (33, 33), 1 / 1024, scheme="mu", predictor="printed")
    >>> solver.step(4).steps
    4
    """

    _SETTINGS: ClassVar[Any] = PaperSettings
    _STATE: ClassVar[Any] = SavedPaper

    def __init__(
        self,
        *args: Any,
        predictor: Predictor = "newest",
        foot: Foot = "clamp",
        kernels: Kernels = "fused",
        strategy: Strategy = "3s",
        few_strips: int = TransportSettings.few_strips,
        short_strip: int = TransportSettings.short_strip,
        throttle: int = TransportSettings.throttle,
        **options: Any,
    ) -> None:
        self.occupancy: dict[str, float] = {}
        self._experiment = {
            "predictor": predictor,
            "foot": foot,
            "kernels": kernels,
            "strategy": strategy,
            "few_strips": few_strips,
            "short_strip": short_strip,
            "throttle": throttle,
        }
        super().__init__(*args, **options)

    def _advance(self, count: int) -> bool:
        try:
            return super()._advance(count)
        except BackendError as error:
            s = self._settings
            if s.kernels != "paper" or s.strategy != "3s":
                raise
            raise BackendError(
                f"{error}: a block may need more shared memory than the device has; take a smaller "
                f"throttle than {s.throttle} bytes, or a smaller short_strip than {s.short_strip} "
                "cells, or strategy='naive'"
            ) from error

    def _note(self, report: dict[str, Any]) -> None:
        super()._note(report)
        self.occupancy = {
            f"{axis} {part}": share
            for axis in ("x", "y")
            for part, share in report[f"{axis} occupancy"].items()
            if share > 0
        }


def decaying_bump(diffusion: float = 0.005, *, late: float = 0.0) -> ConvectionDiffusion:
    r"""Return example 1, whose solution is known and smooth.

    :math:`u = e^{-t} x^2 (1 - x^2) y^2 (1 - y^2)` on the unit square with velocity (1, 1),
    zero on all sides; the source follows from u.

    Parameters
    ----------
    diffusion : float, default: 0.005
        Diffusion along both axes. Table 1 states 0.001 but was computed with 0.005; Table 2 has
        0.05, the figures have 0.001.
    late : float, default: 0
        Time that is added to that of the source.

    Returns
    -------
    problem : ConvectionDiffusion
        The problem.

    Examples
    --------
    >>> from pysolvers import GCEIDD
    >>> from pysolvers.papers.gceidd2022 import decaying_bump, decaying_bump_exact
    >>> result = GCEIDD(decaying_bump(), (33, 33), dt=0.01, strips=2).run(until=0.1)
    >>> bool(abs(result.u - decaying_bump_exact(result.x, result.y[:, None], 0.1)).max() < 0.05)
    True
    """

    def source(x: Any, y: Any) -> Any:
        """Return the source, without the factor exp(-t), for which the bump is the solution."""
        (p, p1, p2), (q, q1, q2) = _bump(x), _bump(y)
        return (p1 - p) * q + p * q1 - diffusion * (p2 * q + p * q2)

    return ConvectionDiffusion(
        (1.0, 1.0),
        diffusion,
        source=[(lambda t: np.exp(-(t + late)), source)],
        initial=lambda x, y: decaying_bump_exact(x, y, 0.0),
        boundary=0.0,
    )


def _bump(z: Any) -> tuple[Any, Any, Any]:
    """Return z^2 (1 - z^2) and its first two derivatives."""
    return z**2 - z**4, 2 * z - 4 * z**3, 2 - 12 * z**2


def decaying_bump_exact(x: Any, y: Any, t: float) -> Any:
    """Return the solution of example 1.

    Parameters
    ----------
    x, y : array_like
        Coordinates.
    t : float
        Time.

    Returns
    -------
    u : ndarray
        The solution there.

    Examples
    --------
    >>> from pysolvers.papers.gceidd2022 import decaying_bump_exact
    >>> float(decaying_bump_exact(0.5, 0.5, 0.0))
    0.03515625
    """
    return np.exp(-t) * _bump(x)[0] * _bump(y)[0]


def rotating_pulse(diffusion: float = 0.005, *, late: float = 0.0) -> ConvectionDiffusion:
    """Return example 2, a pulse that rotates around the origin and spreads.

    Velocity (-4 y, 4 x) on the unit square: the pulse leaves through x = 0 and re-enters through
    y = 0. The values on the sides are those of the solution.

    Parameters
    ----------
    diffusion : float, default: 0.005
        Diffusion along both axes: 0.005 in Table 3 and the figures, 0.01 in Table 4.
    late : float, default: 0
        Time that is added to that of the values on the sides.

    Returns
    -------
    problem : ConvectionDiffusion
        The problem.

    Examples
    --------
    >>> from pysolvers import GCEIDD
    >>> from pysolvers.papers.gceidd2022 import rotating_pulse
    >>> solver = GCEIDD(rotating_pulse(), (33, 33), dt=0.01, strips=2)
    >>> solver.step(5).u.shape
    (33, 33)
    """
    exact = rotating_pulse_exact
    return ConvectionDiffusion(
        (lambda x, y: -4 * y, lambda x, y: 4 * x),
        diffusion,
        boundary=Dirichlet(lambda x, y, t: exact(x, y, t + late, diffusion)),
        initial=lambda x, y: exact(x, y, 0.0, diffusion),
    )


def rotating_pulse_exact(x: Any, y: Any, t: float, diffusion: float = 0.005) -> Any:
    """Return the solution of example 2.

    Parameters
    ----------
    x, y : array_like
        Coordinates.
    t : float
        Time; pi/2 is one turn.
    diffusion : float, default: 0.005
        As in `rotating_pulse`.

    Returns
    -------
    u : ndarray
        The solution there.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers.papers.gceidd2022 import rotating_pulse_exact
    >>> x = np.linspace(0, 1, 65)
    >>> float(rotating_pulse_exact(x, x[:, None], 0.0).max())
    1.0
    """
    cosine, sine = np.cos(4 * t), np.sin(4 * t)
    along = x * cosine + y * sine - _CENTRE[0]
    across = y * cosine - x * sine - _CENTRE[1]
    width = _WIDTH + 4 * diffusion * t
    return _WIDTH / width * np.exp(-(along**2 + across**2) / width)


def entering_fronts(diffusion: float = 0.001) -> ConvectionDiffusion:
    """Return example 3, fronts without a known solution.

    Velocity (1, 1) on the unit square; u is 1 on x = 0 and y = 0. Initially u is 1 where both x
    and y are at most 0.2, and 0 elsewhere. The normal derivative on the other sides is 0.

    Parameters
    ----------
    diffusion : float, default: 0.001
        Diffusion along both axes.

    Returns
    -------
    problem : ConvectionDiffusion
        The problem.

    Examples
    --------
    >>> from pysolvers import GCEIDD
    >>> from pysolvers.papers.gceidd2022 import entering_fronts
    >>> solver = GCEIDD(entering_fronts(), (33, 33), dt=0.01, strips=2)
    >>> solver.step(5).u.shape
    (33, 33)
    """

    def initial(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        """Return 1 in the corner and on the sides where the fronts enter, 0 elsewhere."""
        inside = (x <= 0.2 + _ROUNDING) & (y <= 0.2 + _ROUNDING)
        return 1.0 * (inside | (x == 0) | (y == 0))

    one, free = Dirichlet(1.0), Neumann(0.0)
    boundary: dict[str, Boundary] = {"x-": one, "y-": one, "x+": free, "y+": free}
    return ConvectionDiffusion((1.0, 1.0), diffusion, boundary=boundary, initial=initial)


def heated_channel(speed: float = 250.0, *, diffusion: float = 2e-5) -> ConvectionDiffusion:
    """Return example 4, a channel with walls that are partly heated.

    Temperature in a channel of 0.25 by 0.05, in which the fluid moves towards smaller x with
    the profile ``speed * y * (0.05 - y)``. The temperature is 25 initially and at the inlet
    x = 0.25; its normal derivative is 0 at the outlet, and on the walls 5e4 where
    0.15 <= x <= 0.2, otherwise 0.

    Parameters
    ----------
    speed : float, default: 250
        Curvature of the profile: its largest velocity is ``speed * 0.025**2``.
    diffusion : float, default: 2e-5
        Diffusivity of heat.

    Returns
    -------
    problem : ConvectionDiffusion
        The problem.

    Examples
    --------
    >>> from pysolvers import GCEIDD
    >>> from pysolvers.papers.gceidd2022 import heated_channel
    >>> solver = GCEIDD(heated_channel(), (21, 101), dt=1e-6, strips=2)
    >>> solver.step(5).u.shape
    (21, 101)
    """
    height = _CHANNEL[1][1]

    def heating(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        """Return the heat source: a strip across the channel."""
        del y
        return diffusion * 5e4 * ((x >= 0.15 - _ROUNDING) & (x <= 0.2 + _ROUNDING))

    boundary: dict[str, Boundary] = {
        "x-": Neumann(0.0),
        "x+": Dirichlet(25.0),
        "y": Neumann(heating),
    }
    return ConvectionDiffusion(
        (lambda x, y: -speed * y * (height - y), 0.0),
        diffusion,
        extent=_CHANNEL,
        boundary=boundary,
        initial=25.0,
    )


def published_errors(table: int) -> dict[tuple[str, str], tuple[float, ...]]:
    """Return the errors of a table of the paper.

    Parameters
    ----------
    table : {1, 2, 3, 4}
        Example 1 with diffusion 0.005 (printed as 0.001) and 0.05, example 2 with 0.005, 0.01.

    Returns
    -------
    errors : dict
        By scheme, ``"cfd"``, ``"cp"`` or ``"mu"``, and norm, ``"linf"`` or ``"l2"``: one number for
        each grid of `GRIDS`.

    Examples
    --------
    >>> from pysolvers.papers.gceidd2022 import GRIDS, published_errors
    >>> dict(zip(GRIDS, published_errors(1)["cfd", "linf"]))
    {32: 0.00446, 64: 0.00236, 128: 0.00117, 256: 0.00053}
    """
    _check_table(table)
    text = (files("pysolvers") / "data" / "foadaddini2022_errors.csv").read_text(encoding="utf-8")
    _, *rows = csv.reader(line for line in text.splitlines() if not line.startswith("#"))
    return {
        (scheme, norm): tuple(map(float, values))
        for number, scheme, norm, *values in rows
        if int(number) == table
    }


def table_errors(
    table: int, nodes: int, *, late: bool = True, diffusion: float | None = None, **options: Any
) -> tuple[float, float]:
    """Return the errors of this package for an entry of a table.

    Parameters
    ----------
    table : {1, 2, 3, 4}
        As in `published_errors`.
    nodes : int
        Nodes per side.
    late : bool, default: True
        Whether to use the settings with which the tables were apparently computed: `nodes` inner
        nodes, sources and values on sides one step late, the square of the l2 norm as a mean over
        two more nodes per side, and the end at the exact time. Otherwise `nodes` cells and all
        values at their times.
    diffusion : float, optional
        Default: that with which the table was computed; Table 1 states 0.001.
    **options
        Options of `GCEIDD` of this module: scheme, predictor and so on. Default: plain upwind
        differences, extrapolated feet and 8 strips.

    Returns
    -------
    linf, l2 : float
        Largest error, and root mean square of the error.

    Examples
    --------
    >>> from pysolvers.papers.gceidd2022 import table_errors
    >>> largest, mean = table_errors(1, 32)
    >>> round(largest, 4), round(mean, 5)
    (0.0046, 0.00097)
    """
    _check_table(table)
    if diffusion is None:
        diffusion = (0.005, 0.05, 0.005, 0.01)[table - 1]
    make, exact, end = _EXAMPLES[(table - 1) // 2](diffusion)
    cells, delay = (nodes + 1, _DT) if late else (nodes, 0.0)
    steps = ceil(end / _DT) if late else int(end / _DT)
    settings: dict[str, Any] = {"strips": _STRIPS, "upwind": "plain", "foot": "extrapolate"}
    solver = GCEIDD(
        make(diffusion, late=delay),
        shape=(cells + 1, cells + 1),
        dt=_DT,
        **(settings | options),
    )
    result = solver.step(steps).result()
    time = end if late else result.time
    error = np.abs(result.u - exact(result.x[None, :], result.y[:, None], time))
    mean = nodes + 2 if late else nodes
    return float(error.max()), float(np.sqrt(np.sum(error**2)) / mean)


def _check_table(table: int) -> None:
    """Raise if the paper has no table of this number."""
    if table not in (1, 2, 3, 4):
        raise ValueError(f"table must be 1, 2, 3 or 4, got {table!r}")


_Example = tuple[Callable[..., ConvectionDiffusion], Callable[..., Any], float]


def _bump_example(diffusion: float) -> _Example:
    """Return problem, solution and end time of the decaying bump; its source has the diffusion."""
    del diffusion
    return decaying_bump, decaying_bump_exact, 1.0


def _pulse_example(diffusion: float) -> _Example:
    """Return problem, solution and end time of the rotating pulse: a quarter of a turn."""
    return rotating_pulse, partial(rotating_pulse_exact, diffusion=diffusion), np.pi / 2


_EXAMPLES = (_bump_example, _pulse_example)
