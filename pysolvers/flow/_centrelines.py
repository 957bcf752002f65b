"""What the results of both cavities have: profiles on the centre lines, and the main vortex."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _fields

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Vortex:
    """Centre of a vortex.

    Parameters
    ----------
    x, y : float
        Coordinates, in units of the side.
    psi, omega : float
        Streamfunction at the centre, in units of lid speed times side, and vorticity, in units
        of lid speed divided by side.

    Examples
    --------
    >>> from pysolvers import LidDrivenCavity
    >>> result = LidDrivenCavity(reynolds=100, n=33).solve(tol=1e-6)
    >>> vortex = result.primary_vortex()
    >>> round(vortex.x, 2), round(vortex.y, 2), round(vortex.psi, 3)
    (0.62, 0.74, -0.101)
    """

    x: float
    y: float
    psi: float
    omega: float


@dataclass(frozen=True, slots=True)
class CentrelineExtrema:
    """Extreme velocities on the centre lines, from polynomials through five values.

    Parameters
    ----------
    u_min, y_u_min : float
        Smallest u on x = 1/2, and its coordinate.
    v_max, x_v_max : float
        Largest v on y = 1/2, and its coordinate.
    v_min, x_v_min : float
        Smallest v on y = 1/2, and its coordinate.

    Examples
    --------
    >>> from pysolvers import LidDrivenCavity
    >>> result = LidDrivenCavity(reynolds=100, n=33).solve(tol=1e-6)
    >>> extrema = result.centreline_extrema()
    >>> round(extrema.u_min, 2), round(extrema.y_u_min, 2)
    (-0.21, 0.46)
    """

    u_min: float
    y_u_min: float
    v_max: float
    x_v_max: float
    v_min: float
    x_v_min: float


class CavityProfiles:
    """Profiles and the main vortex of a flow with u, v, psi and omega."""

    u: Any
    v: Any
    psi: Any
    omega: Any
    stop_reason: Any

    _SHOWN: ClassVar[slice] = slice(None)  # of `_places`: where the fields have values

    @property
    @abstractmethod
    def _places(self) -> Array:
        """Coordinates along a centre line of the values of `_profiles`, from wall to wall."""

    @property
    @abstractmethod
    def _profiles(self) -> tuple[Array, Array]:
        """The values u on x = 1/2 and v on y = 1/2, those of the walls included."""

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""
        return bool(self.stop_reason == "converged")

    def centreline_u(self, y: ArrayLike | None = None) -> Array:
        """Return u on the line x = 1/2.

        Parameters
        ----------
        y : array_like, optional
            Coordinates in [0, 1], for cubic interpolation; by default `y` of the result.

        Returns
        -------
        u : ndarray of float
            One value per coordinate.

        Raises
        ------
        ValueError
            If a coordinate is outside of [0, 1].
        """
        return self._profile(0, y)

    def centreline_v(self, x: ArrayLike | None = None) -> Array:
        """Return v on the line y = 1/2; see `centreline_u`.

        Parameters
        ----------
        x : array_like, optional
            Coordinates in [0, 1], for cubic interpolation; by default `x` of the result.

        Returns
        -------
        v : ndarray of float
            One value per coordinate.

        Raises
        ------
        ValueError
            If a coordinate is outside of [0, 1].
        """
        return self._profile(1, x)

    def centreline_extrema(self) -> CentrelineExtrema:
        """Return the extreme velocities on the centre lines.

        Returns
        -------
        extrema : CentrelineExtrema
            Values and coordinates.
        """
        at, (u, v) = self._places, self._profiles
        return CentrelineExtrema(
            *_fields.refined_minimum(at, u, 1),
            *_fields.refined_minimum(at, v, -1),
            *_fields.refined_minimum(at, v, 1),
        )

    def primary_vortex(self, *, refine: bool = True) -> Vortex:
        """Return the centre of the main vortex, where psi is farthest from zero.

        Parameters
        ----------
        refine : bool, default: True
            Fit a quadratic polynomial to the nine values of psi around the extreme one; otherwise
            return the place of this value.

        Returns
        -------
        vortex : Vortex
            Coordinates, psi and omega.
        """
        inner = np.abs(self.psi[1:-1, 1:-1])
        j, i = (int(k) + 1 for k in np.unravel_index(np.argmax(inner), inner.shape))
        if refine:
            return Vortex(*_fields.fit_peak(self.psi, self.omega, j, i))
        h = 1 / (len(self.psi) - 1)
        return Vortex(i * h, j * h, float(self.psi[j, i]), float(self.omega[j, i]))

    def _profile(self, number: int, at: ArrayLike | None) -> Array:
        """Return the values of a profile at coordinates."""
        values = self._profiles[number]
        if at is None:
            return values[self._SHOWN].copy()
        return _fields.interpolate_at(self._places, values, at)
