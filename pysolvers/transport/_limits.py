"""Steps at which the schemes were found stable and of use."""

from dataclasses import dataclass
from math import inf
from typing import Any

from .._checks import require
from ._settings import check_pair
from .problem import ConvectionDiffusion, GridData

__all__ = ["SuggestedStep", "courant", "diffusion_number", "suggest_dt"]

# Largest Courant number at which the errors stay those of the method: CP, and CFD with clamped
# feet, are stable to 8 and more; extrapolated feet overshoot the inflow value from 2 on; MU
# overshoots at discontinuities from 2 on, and distorts pulses soon after.
_COURANT = {"cp": 8.0, "cfd": 8.0, "mu": 1.0}
_COURANT_EXTRAPOLATED = 2.0

# The prediction at an interface takes the diffusion explicitly: pulses stayed stable to 3.8 or
# 5.1 and were lost at 5.1 or 7.7.
_DIFFUSION = 3.8


@dataclass(frozen=True, slots=True)
class SuggestedStep:
    """A time step for GCEIDD, and the limits that it keeps.

    Parameters
    ----------
    dt : float
        The largest step that keeps both; infinite if nothing moves and nothing is explicit.
    courant : float
        Limit of abs(b) dt/h, the larger of both axes.
    diffusion_number : float
        Limit of a dt/h^2, the larger of both axes; infinite if no diffusion is explicit.
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
    """Return the largest time step within the limits that were found for a scheme.

    They come from the test problems of Foadaddini et al. (2022), not from theory: a bound of
    the Courant number by accuracy or, where feet are extrapolated, by growth at inflow
    sides; and of the diffusion number where interfaces are predicted explicitly.

    Parameters
    ----------
    problem : ConvectionDiffusion
        What is to be solved.
    shape : int or (nx, ny)
        Cells along each axis.
    scheme : {'cp', 'cfd', 'mu'}, default: 'cp'
        As in `GCEIDD`.
    strips : int or (int, int), default: 1
        As in `GCEIDD`; nothing is explicit without interfaces.
    foot : {'clamp', 'extrapolate'}, default: 'clamp'
        As in `GCEIDD`.
    time : float, default: 0
        When to look at velocity and diffusion.

    Returns
    -------
    step : SuggestedStep
        The step, and the limits that it keeps.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

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
