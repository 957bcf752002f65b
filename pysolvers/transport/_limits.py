"""Time steps at which the schemes were stable in measurements."""

from dataclasses import dataclass
from math import inf
from typing import Any

from .._checks import require
from ._settings import check_pair
from .problem import ConvectionDiffusion, GridData

__all__ = ["SuggestedStep", "courant", "diffusion_number", "suggest_dt"]

# Largest Courant numbers. CP, and CFD with clamped feet, are stable up to 8 and more; with
# extrapolated feet the solution exceeds the inflow value from 2 on; MU overshoots at
# discontinuities from 2 on, and distorts pulses at slightly larger numbers.
_COURANT = {"cp": 8.0, "cfd": 8.0, "mu": 1.0}
_COURANT_EXTRAPOLATED = 2.0

# The prediction at an interface treats diffusion explicitly. In measurements pulses were stable
# up to 3.8 or 5.1, and unstable from 5.1 or 7.7 on.
_DIFFUSION = 3.8


@dataclass(frozen=True, slots=True)
class SuggestedStep:
    """A time step for GCEIDD, and the stability limits that it satisfies.

    Parameters
    ----------
    dt : float
        The largest step that satisfies both limits; infinite if the velocity is zero and no
        diffusion is treated explicitly.
    courant : float
        Limit of abs(b) dt/h, the larger of both axes.
    diffusion_number : float
        Limit of a dt/h^2, the larger of both axes; infinite if no diffusion is treated
        explicitly.
    """

    dt: float
    courant: float
    diffusion_number: float


def suggest_dt(
    problem: ConvectionDiffusion,
    shape: Any,
    *,
    scheme: str = "cp",
    strips: Any = 1,
    foot: str = "clamp",
    time: float = 0.0,
) -> SuggestedStep:
    """Return the largest time step within the measured stability limits of a scheme.

    **The step is a stability limit, not a recommendation.** GCEIDD is of first order in time and
    diffusive: at the suggested step a pulse can lose most of its height. For an accurate solution
    start with a Courant number of at most 0.5 to 1, halve the step, and compare.

    The limits were measured with the test problems of Foadaddini et al. (2022); they do not
    follow from theory. The Courant number is limited for all schemes, and more strictly with
    extrapolated feet; the diffusion number is limited if interfaces are predicted explicitly.

    Parameters
    ----------
    problem : ConvectionDiffusion
        The problem.
    shape : int or (nx, ny)
        Number of cells along each axis.
    scheme : {'cp', 'cfd', 'mu'}, default: 'cp'
        As in `GCEIDD`.
    strips : int or (int, int), default: 1
        As in `GCEIDD`; with one strip there are no interfaces and nothing is explicit.
    foot : {'clamp', 'extrapolate'}, default: 'clamp'
        As in `GCEIDD`.
    time : float, default: 0
        Time at which velocity and diffusion are evaluated.

    Returns
    -------
    step : SuggestedStep
        The step, and the limits that it satisfies.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> from pysolvers import ConvectionDiffusion
    >>> from pysolvers.transport import suggest_dt
    >>> suggest_dt(ConvectionDiffusion((1, 0.5), 0.001), 64, strips=8).dt
    0.125
    """
    require(scheme in _COURANT, f"scheme must be one of {', '.join(_COURANT)}", scheme)
    require(foot in ("clamp", "extrapolate"), "foot must be one of clamp, extrapolate", foot)
    data = problem.grid_data(check_pair("shape", shape, 1))
    has_interfaces = max(check_pair("strips", strips, 1)) > 1
    takes_feet = scheme == "cfd" or (scheme == "cp" and has_interfaces)
    limit = _COURANT[scheme]
    if takes_feet and foot == "extrapolate":
        limit = min(limit, _COURANT_EXTRAPOLATED)
    diffusive = _DIFFUSION if has_interfaces and scheme != "mu" else inf
    bounds = [(limit, courant(data, 1.0, time))]
    if diffusive < inf:
        bounds.append((diffusive, diffusion_number(data, 1.0, time)))
    dt = min((most / each for most, each in bounds if each > 0), default=inf)
    return SuggestedStep(dt=dt, courant=limit, diffusion_number=diffusive)


def courant(data: GridData, dt: float, time: float) -> float:
    """Return abs(b) dt/h, the larger of both axes."""
    return max(data.largest("velocity", k, time) * dt / h for k, h in enumerate(data.spacing))


def diffusion_number(data: GridData, dt: float, time: float) -> float:
    """Return a dt/h^2, the larger of both axes."""
    return max(data.largest("diffusion", k, time) * dt / h**2 for k, h in enumerate(data.spacing))
