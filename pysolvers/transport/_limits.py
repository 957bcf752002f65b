"""Time steps from a model of the error, within limits of stability that were measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isinf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import require
from .._repr import Shown
from ._settings import Scheme, Upwind, check_pair, check_shape
from .problem import ConvectionDiffusion, GridData

# Largest Courant numbers. CP and CFD are stable up to 8 and more; MU overshoots at discontinuities
# from 2 on, and distorts pulses at slightly larger numbers.
_COURANT = {"cp": 8.0, "cfd": 8.0, "mu": 1.0}

# The prediction at an interface treats diffusion explicitly. In measurements pulses were stable
# up to 3.8 or 5.1, and unstable from 5.1 or 7.7 on.
_DIFFUSION = 3.8

_SURELY_STABLE = 1.5  # diffusion number, for any Courant number up to 16 and any strips

_LEAST_COURANT = 0.5  # of a step that is suggested for its error
_UPWINDS = ("modified", "plain")


@dataclass(frozen=True, slots=True, repr=False)
class SuggestedStep(Shown):
    """A time step for GCEIDD, and the errors that the model expects.

    Parameters
    ----------
    dt : float
        The step; infinite if the velocity is zero and no diffusion is treated explicitly.
    courant : float
        abs(b) dt/h, the larger of both axes; 0 if the velocity is zero.
    diffusion_number : float
        a dt/h^2, the larger of both axes; 0 if there is no diffusion.
    diffusion_limit : float
        Largest stable diffusion number; infinite if no diffusion is treated explicitly.
    numerical_diffusion : (float, float)
        Numerical diffusion along x and y where the velocity is largest: that of the step and
        that of the differences. A pulse of variance s^2 along an axis has the variance
        s^2 + 2 (a + this) t after a time t.

    Examples
    --------
    >>> from pysolvers import ConvectionDiffusion
    >>> from pysolvers.transport import suggest_dt
    >>> problem = ConvectionDiffusion((1.0, 0.5), 1e-3, boundary=0.0)
    >>> step = suggest_dt(problem, shape=(65, 65), strips=4)
    >>> step.dt > 0, step.courant > 0
    (True, True)
    """

    dt: float
    courant: float
    diffusion_number: float
    diffusion_limit: float
    numerical_diffusion: tuple[float, float]

    def _table(self) -> tuple[str, Mapping[str, str]]:
        along_x, along_y = self.numerical_diffusion
        limit = "" if isinf(self.diffusion_limit) else f", at most {self.diffusion_limit:.3g}"
        facts = {
            "dt": f"{self.dt:.4g}",
            "Courant number": f"{self.courant:.3g}",
            "diffusion number": f"{self.diffusion_number:.3g}{limit}",
            "numerical diffusion": f"{along_x:.3g} along x, {along_y:.3g} along y",
        }
        return "Suggested step", facts


def suggest_dt(
    problem: ConvectionDiffusion,
    shape: tuple[int, int],
    *,
    scheme: Scheme = "cp",
    strips: int | tuple[int, int] = 1,
    upwind: Upwind = "modified",
    time: float = 0.0,
) -> SuggestedStep:
    r"""Return a time step whose error is about that of the differences in space.

    GCEIDD is of first order and diffusive. The modified equation of one axis contains, with the
    velocity b, the diffusion a, the spacing h, the Courant number C = abs(b) dt/h and
    p = h abs(b)/(2a), a numerical diffusion of

    .. math:: \frac{b^2 dt}{2} = \frac{h |b|}{2} C \quad\text{by the step, and}\quad
        \frac{a\,p^2}{1 + p} = \frac{h |b|}{2} \frac{p}{1 + p}

    by the modified upwind differences, or h abs(b)/2 by plain ones. The step is the one at which
    both are equal, C = p/(1 + p), or 1 with plain differences, and at least 0.5: smaller steps
    hardly make the solution better. The characteristics of ``'cfd'`` have no error of the step;
    the linear interpolation at their feet has the numerical diffusion
    :math:`h^2 \theta (1 - \theta)/(2\,dt)` with the fractional part :math:`\theta` of C. C is
    then 1, for which the interpolation is exact where the velocity is largest.

    The step is never longer than the limits of stability. The Courant number is limited to 8
    (``'mu'`` 1), and the diffusion number to 3.8 if interfaces are predicted
    explicitly; these were measured with the test problems of Foadaddini et al. (2022). With
    explicit predictions the step is also one at which no eigenvalue of a sweep with constant
    coefficients is larger than 1.

    Parameters
    ----------
    problem : ConvectionDiffusion
        The problem.
    shape : (ny, nx)
        Number of nodes along y and x, as in `GCEIDD`.
    scheme : {'cp', 'cfd', 'mu'}, default: 'cp'
        As in `GCEIDD`.
    strips : int or (int, int), default: 1
        As in `GCEIDD`; with one strip there are no interfaces and nothing is explicit.
    upwind : {'modified', 'plain'}, default: 'modified'
        As in `GCEIDD`.
    time : float, default: 0
        Time at which velocity and diffusion are evaluated.

    Returns
    -------
    step : SuggestedStep
        The step, and the numerical diffusion at this step.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> from pysolvers import ConvectionDiffusion
    >>> from pysolvers.transport import suggest_dt
    >>> problem = ConvectionDiffusion((1, 0.5), 0.001, boundary=0.0)
    >>> step = suggest_dt(problem, shape=(65, 65), strips=8)
    >>> print(f"{step.dt:.4f} {step.courant:.2f}")
    0.0139 0.89
    """
    require(scheme in _COURANT, f"scheme must be one of {', '.join(_COURANT)}", scheme)
    require(upwind in _UPWINDS, f"upwind must be one of {', '.join(_UPWINDS)}", upwind)
    nodes = check_shape(shape, 2)
    data, counts = problem._grid_data(nodes), check_pair("strips", strips, 1)
    has_interfaces = max(counts) > 1
    kind = "feet" if scheme == "cfd" else upwind
    axes = [
        _Axis(data.largest("velocity", k, time), data.largest("diffusion", k, time), h, kind)
        for k, h in enumerate(data.spacing)
    ]
    limit = _COURANT[scheme]
    bounds = [min(limit, axis.balanced_courant) * axis.h / axis.b for axis in axes if axis.b]
    explicit = _DIFFUSION if has_interfaces and scheme != "mu" else inf
    if explicit < inf:
        bounds += [explicit * axis.h**2 / axis.a for axis in axes if axis.a]
    dt = min(bounds, default=inf)
    if has_interfaces and explicit < inf and dt < inf:
        dt *= min(
            stable_part(
                axis.a * dt / axis.h**2,
                axis.courant(dt),
                nodes[1 - k] - 1,
                counts[k],
                upwind=scheme != "cfd",
            )
            for k, axis in enumerate(axes)
        )
    return SuggestedStep(
        dt=dt,
        courant=max(axis.courant(dt) for axis in axes),
        diffusion_number=max(axis.a * dt / axis.h**2 if axis.a else 0.0 for axis in axes),
        diffusion_limit=explicit,
        numerical_diffusion=(axes[0].numerical_diffusion(dt), axes[1].numerical_diffusion(dt)),
    )


class _Axis(NamedTuple):
    """Largest velocity and diffusion along an axis, spacing, and the kind of the differences."""

    b: float
    a: float
    h: float
    kind: str  # modified, plain, or feet of characteristics

    @property
    def share(self) -> float:
        """Numerical diffusion of the differences, in units of h abs(b)/2."""
        if self.kind != "modified" or self.a == 0:
            return 1.0
        p = self.h * self.b / (2 * self.a)
        return p / (1 + p)

    @property
    def balanced_courant(self) -> float:
        """Courant number at which step and differences have the same numerical diffusion."""
        return max(self.share, _LEAST_COURANT)

    def courant(self, dt: float) -> float:
        """Return the Courant number of a step."""
        return self.b * dt / self.h if self.b else 0.0

    def numerical_diffusion(self, dt: float) -> float:
        """Return the numerical diffusion of step and differences."""
        if self.b == 0:
            return 0.0
        if self.kind == "feet":
            theta = self.courant(dt) % 1
            return self.h**2 * theta * (1 - theta) / (2 * dt)
        return self.h * self.b / 2 * (self.courant(dt) + self.share)


def courant(data: GridData, dt: float, time: float) -> float:
    """Return abs(b) dt/h, the larger of both axes."""
    return max(data.largest("velocity", k, time) * dt / h for k, h in enumerate(data.spacing))


def diffusion_number(data: GridData, dt: float, time: float) -> float:
    """Return a dt/h^2, the larger of both axes."""
    return max(data.largest("diffusion", k, time) * dt / h**2 for k, h in enumerate(data.spacing))


def stable_part(ratio: float, number: float, cells: int, strips: int, *, upwind: bool) -> float:
    """Return the part of a step for which an explicit prediction is stable along an axis, up to 1.

    The largest magnitude of the eigenvalues of a sweep in strips, with constant coefficients and
    values given at the ends, must be at most 1. Longer strips than 16 cells and more of them than 8
    do not change it.

    Parameters
    ----------
    ratio : float
        Largest a dt/h^2 along the axis.
    number : float
        Largest abs(b) dt/h along the axis.
    cells, strips : int
        Along the axis.
    upwind : bool
        Whether the rows have upwind differences, and not characteristics.
    """
    width, count = min(cells // strips, 16), min(strips, 8)

    def is_stable(part: float) -> bool:
        """Return whether this part of the step has no eigenvalue of a sweep above 1."""
        sweep = _sweep_in_strips(part * ratio, part * number, width, count, upwind=upwind)
        return bool(np.abs(np.linalg.eigvals(sweep)).max() <= 1 + 1e-9)

    # Up to 1.5, sweeps were stable for all numbers of strips and all Courant numbers to 16.
    if strips == 1 or ratio <= _SURELY_STABLE or is_stable(1.0):
        return 1.0
    low, high = _SURELY_STABLE / ratio, 1.0
    for _ in range(12):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if is_stable(middle) else (low, middle)
    return low


def _sweep_in_strips(
    r: float, c: float, width: int, strips: int, *, upwind: bool
) -> NDArray[np.float64]:
    """Return the matrix of a sweep, with zeros at both ends, for its inner nodes."""
    n = width * strips
    nodes, steps = np.eye(n + 1), np.arange(n + 1)
    spread = r / (1 + c / (2 * r)) if upwind else r
    behind, ahead = spread + (c if upwind else 0.0), spread
    feet = np.clip(steps - c, 0, n)
    cells = np.minimum(np.floor(feet).astype(int), n - 1)
    theta = (feet - cells)[:, None]
    at_feet = (1 - theta) * nodes[cells] + theta * nodes[cells + 1]
    rows = (1 + behind + ahead) * nodes - behind * np.eye(n + 1, k=-1) - ahead * np.eye(n + 1, k=1)
    old = nodes.copy() if upwind else at_feet.copy()
    cuts = np.arange(width, n, width)
    for at in (*cuts, 0, n):
        rows[at], old[at] = nodes[at], 0.0
    old[cuts] = at_feet[cuts] + r * (nodes[cuts - 1] - 2 * nodes[cuts] + nodes[cuts + 1])
    swept = np.linalg.solve(rows, old)
    near, far = swept[cuts - 1] + swept[cuts + 1], swept[cuts - 2] + swept[cuts + 2]
    swept[cuts] = 2 / 3 * near - 1 / 6 * far
    return np.asarray(swept[1:-1, 1:-1])
