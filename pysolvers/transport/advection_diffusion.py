"""Advection and diffusion by alternating directions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Literal, Self

import numpy as np

from .._boundary import OUTFLOW, Neumann
from .._checks import index, require, short
from .._errors import warn_user
from .._runtime.fp_mode import in_default_fp_mode
from .._solver.schema import Positive, Real
from .._solver.settings import TimeSettings
from .._split import Side, make_grid
from .._split.sides import kind_of
from .._split.solver import SplitResult, SplitSolver, SplitState, initial_values
from ._of_problem import OfProblem
from ._operators import THIRD, TransportOperators
from .problem import ConvectionDiffusion

__all__ = ["AdvectionDiffusion", "AdvectionDiffusionResult"]

Differences = Literal["central", "upwind", "third-order"]

_LEAST = 4  # nodes along an axis
_SERIAL_BELOW = 1 << 15  # nodes: below, waking threads costs more than they save
# Largest Courant number of each axis for which steps with third-order differences amplify no wave,
# whatever the diffusion: by evaluation of the factors of waves in two and three dimensions.
_MOST_COURANT = 1.5


@dataclass(frozen=True, kw_only=True)
class AdvectionSettings(TimeSettings):
    """Parameters of `AdvectionDiffusion`; see there."""

    shape: Any
    dt: Positive
    differences: Differences
    damped_start: bool | None
    dtype: Real

    def _check(self) -> None:
        shape = self.shape
        if not isinstance(shape, tuple | list) or len(shape) not in (2, 3):
            raise ValueError(f"shape must be (ny, nx) or (nz, ny, nx), got {short(shape)}")
        self._set("shape", tuple(index("shape", n, _LEAST) for n in shape))

    @property
    def is_small(self) -> bool:
        return prod(self.shape) < _SERIAL_BELOW


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AdvectionDiffusionResult(SplitResult):
    """State of a problem of advection and diffusion, with steps and times.

    Parameters
    ----------
    u : ndarray, shape (ny, nx) or (nz, ny, nx)
        The solution at the nodes, x along the last axis.
    lines : ndarray
        Coordinates of the nodes along x, those along y, and so on, one after the other; `x`, `y`
        and `z` are these.
    time : float
        Time of the state.
    dt : float
        Time step.
    last_dt : float
        Length of the last step, which `run` shortens to end at a given time.
    steps : int
        Number of steps since the start.
    differences : str
        As in `AdvectionDiffusion`.
    courant : float
        Largest abs(b) dt/h of all axes.
    diffusion_number : float
        Largest a dt/h^2 of all axes.
    damped_start : bool
        Whether the first step was that of a damped start.
    stop_reason : {'reached', 'callback', 'diverged', 'running'}
        Reason of the end of the last run.
    seconds : dict of str to float
        Time of the parts of the steps: evaluation of coefficients, products of rows, and line
        solves.
    backend, kernel : str
        Backend, and its instruction set or kernels.
    threads : int
        Number of host threads.
    frames : tuple of AdvectionDiffusionResult
        The states that `record` kept; empty after the other calls. `save` does not write them.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import AdvectionDiffusion, ConvectionDiffusion
    >>> problem = ConvectionDiffusion(
    ...     (1.0, 0.0), 0.01, boundary=0.0,
    ...     initial=lambda x, y: np.sin(np.pi * x) * np.sin(np.pi * y),
    ... )
    >>> result = AdvectionDiffusion(problem, (17, 17), dt=0.01).run(until=0.1)
    >>> result.steps, result.u.shape, round(result.courant, 3)
    (10, (17, 17), 0.16)
    """

    differences: str
    courant: float
    diffusion_number: float

    _KIND: ClassVar = "pysolvers advection-diffusion result"
    _CAPTION: ClassVar = "Advection and diffusion"

    def _scheme_text(self) -> str:
        return (
            f"Douglas-Gunn, {self.differences} differences, Courant number {self.courant:.3g}, "
            f"diffusion number {self.diffusion_number:.3g}"
        )


@dataclass(frozen=True, kw_only=True)
class SavedAdvection(SplitState):
    """What `save` writes.

    Parameters
    ----------
    settings : AdvectionSettings
        The parameters.
    extent : tuple
        Ends of the domain along x, y, ...
    """

    settings: AdvectionSettings
    extent: tuple[tuple[float, float], ...]

    _KIND: ClassVar = "pysolvers AdvectionDiffusion state"


class AdvectionDiffusion(
    OfProblem[AdvectionDiffusionResult], SplitSolver[AdvectionDiffusionResult]
):
    r"""Advection and diffusion by a step of Douglas and Gunn, of second order in time.

    The equation of `ConvectionDiffusion`, :math:`u_t = \sum_i (a_i u_i - b_i u)_i + f`, in two or
    three dimensions, by fluxes through the faces between nodes, so that u is conserved. A step is
    one product and one tridiagonal solve along each axis.

    Parameters
    ----------
    problem : ConvectionDiffusion
        Equation, domain, sides and initial values. Velocity, diffusion, source and sides can
        depend on time.
    shape : (ny, nx) or (nz, ny, nx)
        Number of nodes along each axis, at least 4, those on the boundary included: the shape of
        the solution.
    dt : float
        Time step; positive. It can be set between steps.
    differences : {'central', 'upwind', 'third-order'}, default: 'central'
        Differences of the advection. ``'central'`` are of order 2, and can oscillate where
        :math:`|b| h > 2 a` and u is not smooth on the grid. ``'upwind'`` are of order 1, do not
        oscillate in space, and add the diffusion :math:`|b| h/2`. ``'third-order'`` are biased
        against the flow, of order 3 for the advection where b is constant, and oscillate little;
        see Notes.
    damped_start : bool, optional
        Whether the first step is two half-steps of order 1, which damp jumps; see `ParabolicADI`.
        By default it is if the step of an explicit scheme would change u by more than the range of
        its values.
    dtype : float64 or float32, default: float64
        Dtype of the solution.
    start_time : float, default: 0
        Time at the start: the first one at which functions of time are evaluated.
    device : str, optional
        ``'cpu'``, the default, or ``'cuda'``, ``'cuda:1'``, ..., which needs CuPy.
    threads : int, optional
        Number of host threads. The result has the same bits for any number.

    Raises
    ------
    TypeError, ValueError
        If a parameter, or the data of the problem on this grid, have the wrong type or are out of
        range.
    BackendError
        If the device is not available.

    Warns
    -----
    RuntimeWarning
        With ``'third-order'``, if the Courant number is so large that steps can grow.

    See Also
    --------
    GCEIDD : Steps of first order in time, in strips that are solved independently.
    ParabolicADI : Equations with mixed derivatives that are not in flux form.

    Notes
    -----
    With the rows :math:`A_i` along each axis a step is [1]_

    .. math::
        (1 - \tfrac{dt}{2} A_x) D_1 = dt\,(\textstyle\sum_i A_i u + f), \quad
        (1 - \tfrac{dt}{2} A_y) D_2 = D_1, \quad (1 - \tfrac{dt}{2} A_z) D_3 = D_2,

    with :math:`u + D` as the new solution; in two dimensions and for rows that do not depend on
    time it is that of Peaceman and Rachford [2]_. Terms that depend on time are taken at both ends
    of the step. It is stable for any dt where the lines are, for ``'central'`` and ``'upwind'``.

    The lines of ``'third-order'`` are those of ``'upwind'``. The difference of both, which is no
    tridiagonal matrix, is taken at the begin of the step, and is corrected with its values at the
    end, before a second solve along each axis (the scheme of Craig and Sneyd [3]_): the order in
    time is 2, and a step takes twice as long. It is stable for Courant numbers
    :math:`|b_i| dt/h_i` of each axis up to 1.5, and for any diffusion. At the face next to a side
    through which the flow comes the difference is central.

    References
    ----------
    .. [1] J. Douglas and J. E. Gunn, "A general formulation of alternating direction methods",
       *Numerische Mathematik* 6, 428-453, 1964.
    .. [2] D. W. Peaceman and H. H. Rachford, "The numerical solution of parabolic and elliptic
       differential equations", *Journal of the SIAM* 3, 28-41, 1955.
    .. [3] I. J. D. Craig and A. D. Sneyd, "An alternating-direction implicit scheme for parabolic
       equations with mixed derivatives", *Computers and Mathematics with Applications* 16,
       341-350, 1988.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import AdvectionDiffusion, ConvectionDiffusion
    >>> problem = ConvectionDiffusion(
    ...     (1.0, lambda t: np.cos(t)),
    ...     0.01,
    ...     boundary="periodic",
    ...     initial=lambda x, y: np.sin(2 * np.pi * x) + 0 * y,
    ... )
    >>> solver = AdvectionDiffusion(problem, (64, 64), dt=0.01)
    >>> result = solver.run(until=0.5)
    >>> decay = np.exp(-0.01 * (2 * np.pi) ** 2 * 0.5)
    >>> exact = decay * np.sin(2 * np.pi * (result.x - 0.5))
    >>> print(abs(result.u - exact).max() < 0.01)
    True
    """

    _SETTINGS: ClassVar[Any] = AdvectionSettings
    _RESULT: ClassVar[Any] = AdvectionDiffusionResult
    _STATE: ClassVar[Any] = SavedAdvection

    problem: ConvectionDiffusion
    differences: Differences
    damped_start: bool | None

    @in_default_fp_mode
    def __init__(
        self,
        problem: ConvectionDiffusion,
        shape: Sequence[int],
        dt: float,
        *,
        differences: Differences = "central",
        damped_start: bool | None = None,
        dtype: Any = np.float64,
        start_time: float = 0.0,
        device: str | None = None,
        threads: int | None = None,
    ) -> None:
        self._data_given = {"problem": problem}
        settings = self._SETTINGS(
            shape=shape,
            dt=dt,
            start_time=start_time,
            differences=differences,
            damped_start=damped_start,
            dtype=dtype,
            device=device,
            threads=threads,
        )
        if not isinstance(problem, ConvectionDiffusion):
            kind = type(problem).__name__
            raise TypeError(f"problem must be a ConvectionDiffusion, got {kind}")
        axes = len(problem.extent)
        require(
            len(settings.shape) == axes,
            f"shape must have {axes} axes, as the problem has",
            settings.shape,
        )
        by_side = {
            name: Neumann() if one == OUTFLOW else one for name, one in problem.boundary.items()
        }
        kinds = {name: kind_of(one) for name, one in by_side.items()}
        grid = make_grid("shape", settings.shape, (), None, problem.extent, None, kinds)
        # The last ones have precedence: those of x.
        sides = [
            Side(name, one, grid, settings.start_time)
            for name, one in reversed(by_side.items())
            if kinds[name] in ("value", "flux")
        ]
        operators = TransportOperators(
            problem,
            grid,
            sides,
            settings.differences,
            settings.start_time,
            settings.dtype,
            settings.device,
            settings.call_threads or None,
        )
        scheme: Any = "craig-sneyd" if operators.has_explicit else "douglas"
        self._set_up(settings, operators, scheme, 0.5, initial_values(grid, problem._initial))
        self._check_length(settings.dt)

    @property
    def courant(self) -> float:
        """Courant number at the current time: abs(b) dt/h, the largest of all axes."""
        return self._number(self._parts.velocity, 1, self.dt)

    @property
    def diffusion_number(self) -> float:
        """Diffusion number at the current time: a dt/h^2, the largest of all axes."""
        return self._number(self._parts.diffusion, 2, self.dt)

    @property
    def _parts(self) -> TransportOperators:
        """The operators, with the coefficients that the numbers need."""
        found: Any = self._operators
        return found

    def _number(self, data: list[Any], power: int, dt: float) -> float:
        """Return the largest value times dt over a power of the spacing."""
        pairs = zip(data, self._grid.spacing, strict=True)
        return max(float(np.abs(one.at(self.time)).max()) * dt / h**power for one, h in pairs)

    def _check_length(self, dt: float) -> None:
        if self._settings.differences != THIRD:
            return
        number, most = self._number(self._parts.velocity, 1, dt), _MOST_COURANT
        if number > most * (1 + 1e-9):
            warn_user(
                f"AdvectionDiffusion: the Courant number {number:.3g} is above {most:g}, up to "
                "which steps with third-order differences are stable: take "
                f"dt <= {most * dt / number:.3g}, or differences='central' or 'upwind', which have "
                "no limit"
            )

    def _text(self) -> str:
        s = self._settings
        return f"{s.shape}, dt={self.dt:g}, differences={s.differences!r}"

    def _facts(self) -> dict[str, Any]:
        return {
            **super()._facts(),
            "differences": self._settings.differences,
            "courant": self.courant,
            "diffusion_number": self.diffusion_number,
        }

    def _kept(self) -> dict[str, Any] | None:
        return {**(super()._kept() or {}), "extent": self.problem.extent}

    @classmethod
    def load(  # type: ignore[override]
        cls,
        path: str | os.PathLike[str],
        problem: ConvectionDiffusion,
        *,
        device: str | None = None,
        threads: int | None = None,
    ) -> Self:
        """Read a state that `save` wrote.

        Parameters
        ----------
        path : path-like
            The file.
        problem : ConvectionDiffusion
            The problem of the solver that was saved.
        device, threads
            As in `AdvectionDiffusion`.

        Returns
        -------
        solver : AdvectionDiffusion
            A solver in the saved state.

        Raises
        ------
        ValueError
            If the file is not a state of `AdvectionDiffusion`, is damaged or was changed, or the
            problem has another extent or sides of other kinds; the message names the file and the
            error.
        """
        where = {"device": device, "threads": threads}
        return cls._load(path, "header or arguments", problem=problem, **where)
