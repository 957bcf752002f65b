"""Parabolic equations with mixed derivatives by alternating directions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from .._boundary import boundary_by_side
from .._checks import short
from .._runtime.fp_mode import in_default_fp_mode
from .._split import LINEAR, Scheme, Side, default_theta, make_grid
from .._split.sides import kind_of
from .._split.solver import SplitSolver, SplitState, initial_values, node_data
from ._operators import Coefficients, ParabolicOperators
from ._result import ParabolicResult
from ._settings import ParabolicSettings

__all__ = ["ParabolicADI"]


@dataclass(frozen=True, kw_only=True)
class SavedParabolic(SplitState):
    """What `save` writes; the settings are those of `ParabolicADI`."""

    settings: ParabolicSettings

    _KIND: ClassVar = "pysolvers ParabolicADI state"

    @property
    def _shape(self) -> tuple[int, ...]:
        return (*self.settings.batch, *self.settings.shape)


class ParabolicADI(SplitSolver[ParabolicResult]):
    r"""Parabolic equations with mixed derivatives, by implicit steps along each axis.

    .. math::
        u_t = \sum_{i \le j} a_{ij}\,u_{ij} + \sum_i b_i\,u_i + c\,u + f

    in one to three dimensions, one equation or a batch, by three-point differences on nodes that
    include the boundary and can have any coordinates. A step is of second order in time and space:
    products and tridiagonal solves along each axis, with mixed derivatives taken explicitly.
    Equations of option prices have this form.

    Parameters
    ----------
    shape : (nx,), (ny, nx) or (nz, ny, nx)
        Number of nodes along each axis, at least 3; x is the last axis.
    batch : int or tuple of int, optional
        Number of equations that are solved together, or several axes of them: `u` has the shape
        ``batch + shape``.
    extent : ((x0, x1), ...), optional
        Ends of the domain along x, y, ...; on a periodic axis the end is the image of the first
        node. Exactly one of `extent`, `spacing` and `coordinates` is given.
    spacing : float, sequence or mapping, optional
        Distance of the nodes: one number for all axes, or one for each of x, y, ... The first node
        lies at 0.
    coordinates : sequence of array_like or mapping, optional
        Coordinates of the nodes along x, y, ..., each an array of rising numbers. A periodic axis
        has one more, that of the image of the first node.
    diffusion : mapping
        Coefficients of the second derivatives: ``{"xx": a, "xy": b, "yy": c, ...}``. ``"xy"`` is
        the whole coefficient of :math:`u_{xy}`, once. A coefficient that is left out is 0. Each is
        a number, an array that broadcasts to ``batch + shape``, or a function; see Notes. Those of
        ``"xx"``, ``"yy"`` and ``"zz"`` are nowhere negative.
    advection : mapping, optional
        Coefficients of the first derivatives: ``{"x": b, ...}``, as those of `diffusion`.
    reaction : number, array_like or callable, default: 0
        The coefficient c.
    source : number, array_like or callable, default: 0
        The source f.
    boundary : Dirichlet, Neumann, Robin, 'linear', 'periodic', number, array, callable or mapping
        Boundary condition of all sides, or a mapping with the keys ``"x-"``, ``"x+"``, ``"y-"``,
        ... for one side or ``"x"``, ``"y"``, ``"z"`` for both sides of an axis. A number, an array
        or a function is a Dirichlet condition. `Dirichlet` gives u; `Neumann` the flux
        :math:`a\,\partial u/\partial n` with the outward normal n and the coefficient a of the
        second derivative across the side; `Robin` :math:`a\,\partial u/\partial n = h (u_\infty -
        u)`. ``"linear"`` is :math:`u_{nn} = 0`: the equation without this derivative holds at the
        side. ``"periodic"`` applies to both sides of an axis. An array broadcasts to the batch and
        the nodes of the side, without its axis. Nodes of two `Dirichlet` sides have the value of
        the later axis.
    initial : number, array_like or callable, default: 0
        u at the start; a function of the coordinates. Nodes of Dirichlet sides have the values of
        the sides instead.
    dt : float
        Time step; positive. It can be set between steps.
    scheme : {'hundsdorfer-verwer', 'modified-craig-sneyd', 'craig-sneyd', 'douglas'}
        The scheme; see Notes.
    theta : float, optional
        Its parameter, :math:`0 < \theta \le 1`; the default depends on the scheme, see Notes.
    damped_start : bool, optional
        Whether the first step is two half-steps of order 1, which damp the jumps of data that are
        not smooth; see Notes. By default it is if the step of an explicit scheme would change u by
        more than the range of its values.
    start_time : float, default: 0
        Time at the start: the first one at which functions of time are evaluated.
    dtype : float64 or float32, default: float64
        Dtype of the solution.
    device : str, optional
        ``'cpu'``, the default, or ``'cuda'``, ``'cuda:1'``, ..., which needs CuPy.
    threads : int, optional
        Number of host threads. The result has the same bits for any number.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range, or if the equation is not parabolic:
        the square of a mixed coefficient is larger than 4 times the product of the other two.
    BackendError
        If the device is not available.

    Notes
    -----
    The parameters of a function must be among x, y, z and t, in any order. It is called with arrays
    that broadcast; each has one axis for each axis of ``batch + shape``, so that a function can
    contain parameters of the equations of a batch, for example an array of shape (B, 1, 1).
    Coefficients of t are evaluated once in a step, and its rows are then factored in each step.

    With the parts :math:`F_j`, the derivatives along axis j, and :math:`F_0`, the mixed ones, all
    schemes begin with

    .. math::
        Y_0 = U + dt\,F(t_0, U), \qquad
        Y_j = Y_{j-1} + \theta\,dt\,(F_j(t_1, Y_j) - F_j(t_0, U)),

    where Douglas' [1]_ ends. The schemes of Craig and Sneyd [2]_ and Hundsdorfer and Verwer [3]_
    correct :math:`Y_0` by values at :math:`t_1` and repeat the solves, which takes twice as long:

    ========================== ========================= ===================================
    scheme                     theta                     order
    ========================== ========================= ===================================
    ``'douglas'``              1/2                       2; 1 with mixed derivatives
    ``'craig-sneyd'``          1/2                       2, for this theta only
    ``'modified-craig-sneyd'`` 1/3, in three axes 6/13   2
    ``'hundsdorfer-verwer'``   :math:`1/2 + \sqrt 3/6`   2
    ========================== ========================= ===================================

    With these theta the schemes are stable for diffusion with mixed derivatives and any step [4]_;
    Douglas' scheme needs 2/3 for mixed derivatives along three axes, which is then the default.
    Hundsdorfer and Verwer's is stable for :math:`\theta \ge 1 - 1/\sqrt 2` (three axes:
    :math:`\tfrac32 (2 - \sqrt 3)`) without advection; the default is the value for advection [5]_,
    which damps more. The schemes of one axis are those of Crank and Nicolson for ``'douglas'`` and
    ``'craig-sneyd'``.

    None of the schemes damps waves that are short along two axes. A damped start [6]_ makes the
    first step by two half-steps of the product of implicit Euler steps along the axes, which damps
    all of them; the order 2 remains in the mean, and is 3/2 next to sides whose values vary along
    them. Where initial and boundary values are smooth and agree, and for prices of options from
    payoffs with a kink on a node, it is not needed, and the error is smaller without it.

    Central differences of :math:`b_i u_i` can oscillate where :math:`|b_i| h > 2 a_{ii}` and u is
    not smooth on the grid. Where the diffusion along an axis vanishes at a side, as of a variance
    at 0, ``"linear"`` makes the equation hold there; its first derivative is a difference from
    three nodes, of order 2.

    References
    ----------
    .. [1] J. Douglas, "Alternating direction methods for three space variables", *Numerische
       Mathematik* 4, 41-63, 1962.
    .. [2] I. J. D. Craig and A. D. Sneyd, "An alternating-direction implicit scheme for parabolic
       equations with mixed derivatives", *Computers and Mathematics with Applications* 16,
       341-350, 1988.
    .. [3] W. Hundsdorfer, "Accuracy and stability of splitting with stabilizing corrections",
       *Applied Numerical Mathematics* 42, 213-233, 2002.
    .. [4] K. J. in 't Hout and B. D. Welfert, "Unconditional stability of second-order ADI schemes
       applied to multi-dimensional diffusion equations with mixed derivative terms", *Applied
       Numerical Mathematics* 59, 677-692, 2009.
    .. [5] K. J. in 't Hout and B. D. Welfert, "Stability of ADI schemes applied to
       convection-diffusion equations with mixed derivative terms", *Applied Numerical
       Mathematics* 57, 19-35, 2007.
    .. [6] R. Rannacher, "Finite element solution of diffusion problems with irregular data",
       *Numerische Mathematik* 43, 309-327, 1984.

    Examples
    --------
    A call option by the equation of Black and Scholes, for three volatilities at once; t is the
    time before expiry:

    >>> import numpy as np
    >>> from pysolvers import ParabolicADI
    >>> sigma, r = np.array([[0.1], [0.2], [0.4]]), 0.05
    >>> option = ParabolicADI(
    ...     (401,),
    ...     batch=3,
    ...     extent=((0.0, 800.0),),
    ...     diffusion={"xx": lambda x: 0.5 * sigma**2 * x**2},
    ...     advection={"x": lambda x: r * x},
    ...     reaction=-r,
    ...     boundary={"x-": 0.0, "x+": "linear"},
    ...     initial=lambda x: np.maximum(x - 100.0, 0.0),
    ...     dt=0.02,
    ... )
    >>> option.run(until=1.0).u[:, 50].round(1)
    array([ 6.8, 10.4, 18. ])
    """

    _SETTINGS: ClassVar[Any] = ParabolicSettings
    _RESULT: ClassVar[Any] = ParabolicResult
    _STATE: ClassVar[Any] = SavedParabolic

    batch: tuple[int, ...]
    spacing: tuple[float, ...] | None
    extent: tuple[tuple[float, float], ...] | None
    coordinates: tuple[tuple[float, ...], ...] | None
    diffusion: Any
    advection: Any
    reaction: Any
    source: Any
    boundary: Any
    initial: Any
    scheme: Scheme
    theta: float | None
    damped_start: bool | None

    @in_default_fp_mode
    def __init__(
        self,
        shape: Sequence[int],
        *,
        batch: int | Sequence[int] = (),
        extent: Sequence[Sequence[float]] | None = None,
        spacing: float | Sequence[float] | Mapping[str, float] | None = None,
        coordinates: Sequence[ArrayLike] | Mapping[str, ArrayLike] | None = None,
        diffusion: Mapping[str, Any],
        advection: Mapping[str, Any] | None = None,
        reaction: Any = 0.0,
        source: Any = 0.0,
        boundary: Any,
        initial: Any = 0.0,
        dt: float,
        scheme: Scheme = "hundsdorfer-verwer",
        theta: float | None = None,
        damped_start: bool | None = None,
        start_time: float = 0.0,
        dtype: Any = np.float64,
        device: str | None = None,
        threads: int | None = None,
    ) -> None:
        self._data_given = {
            "diffusion": diffusion,
            "advection": advection,
            "reaction": reaction,
            "source": source,
            "boundary": boundary,
            "initial": initial,
        }
        settings = self._SETTINGS(
            shape=shape,
            batch=batch,
            spacing=spacing,
            extent=extent,
            coordinates=coordinates,
            dt=dt,
            start_time=start_time,
            scheme=scheme,
            theta=theta,
            damped_start=damped_start,
            dtype=dtype,
            device=device,
            threads=threads,
        )
        _ = settings.backend  # an error before any work, if there is none
        axes = settings.axes
        by_side = boundary_by_side(boundary, axes, named=(LINEAR,))
        kinds = {name: kind_of(one) for name, one in by_side.items()}
        grid = make_grid(
            "shape",
            settings.shape,
            settings.batch,
            settings.spacing,
            settings.extent,
            settings.coordinates,
            kinds,
        )
        second = [one + two for k, two in enumerate(axes) for one in axes[: k + 1]]
        coefficients = Coefficients(
            grid,
            _by_name("diffusion", diffusion, second),
            _by_name("advection", {} if advection is None else advection, list(axes)),
            reaction,
            settings.start_time,
        )
        sides = [
            Side(name, one, grid, settings.start_time)
            for name, one in by_side.items()
            if kinds[name] in ("value", "flux")
        ]
        heating = node_data(grid, "source", source, settings.start_time)
        is_zero = not heating.varies and not heating.at(settings.start_time).any()
        operators = ParabolicOperators(
            grid,
            sides,
            coefficients,
            None if is_zero else heating,
            settings.dtype,
            settings.device,
            settings.call_threads or None,
        )
        chosen = settings.theta
        if chosen is None:
            mixed = operators.has_explicit
            chosen = default_theta(settings.scheme, grid.axes, has_explicit=mixed)
        self._theta = float(chosen)
        start = initial_values(grid, initial)
        self._set_up(settings, operators, settings.scheme, self._theta, start)

    def _text(self) -> str:
        s = self._settings
        batch = f", batch={s.batch}" if s.batch else ""
        return f"{s.shape}{batch}, dt={self.dt:g}, scheme={s.scheme!r}, theta={self._theta:.4g}"

    def _facts(self) -> dict[str, Any]:
        return {
            **super()._facts(),
            "batch": self._settings.batch,
            "scheme": self._settings.scheme,
            "theta": self._theta,
        }

    @classmethod
    def load(  # type: ignore[override]
        cls,
        path: str | os.PathLike[str],
        *,
        diffusion: Mapping[str, Any],
        advection: Mapping[str, Any] | None = None,
        reaction: Any = 0.0,
        source: Any = 0.0,
        boundary: Any,
        device: str | None = None,
        threads: int | None = None,
    ) -> Self:
        """Read a state that `save` wrote.

        Parameters
        ----------
        path : path-like
            The file.
        diffusion, advection, reaction, source, boundary
            As in the solver that was saved.
        device : str, optional
            As in `ParabolicADI`.
        threads : int, optional
            As in `ParabolicADI`.

        Returns
        -------
        solver : ParabolicADI
            A solver in the saved state.

        Raises
        ------
        ValueError
            If the file is not a state of `ParabolicADI`, is damaged or was changed, or if the sides
            are of other kinds; the message names the file and the error.
        """
        return cls._load(
            path,
            "header or arguments",
            diffusion=diffusion,
            advection=advection,
            reaction=reaction,
            source=source,
            boundary=boundary,
            device=device,
            threads=threads,
        )


def _by_name(name: str, given: Any, known: list[str]) -> dict[str, Any]:
    """Return coefficients by the names of axes."""
    if not isinstance(given, Mapping):
        example = dict.fromkeys(known[:1], 1.0)
        raise TypeError(f"{name} must be a mapping, as {name}={example}, got {short(given)}")
    for key in given:
        if key not in known:
            turned = key[::-1] if isinstance(key, str) and key[::-1] in known else ""
            also = f"; {key!r} is {turned!r}, given once" if turned else ""
            raise ValueError(f"{name}: the keys are {', '.join(known)}{also}, got {short(key)}")
    return dict(given)
