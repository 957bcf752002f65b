"""Heat conduction by alternating directions."""

import os
import reprlib
from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._boundary import Dirichlet
from .._checks import require
from .._counter import Counter
from .._data import NodeData, dependence
from .._errors import ConvergenceError, raise_for_status
from .._files import read_npz, write_npz
from .._header import (
    anything,
    count,
    flag,
    mapping,
    number,
    optional,
    positive,
    record,
    sequence,
    text,
)
from .._runtime.state import read_only
from .._runtime.stepping import Stepper
from ._result import HeatResult
from ._settings import HeatSettings, per_axis
from ._sides import Grid, Side, boundary_by_side
from ._state import HeatState

__all__ = ["HeatADI"]

_KIND = "pysolvers HeatADI state"

_HEADER = {
    "settings": record(
        {
            "shape": sequence(count(2)),
            "spacing": sequence(positive),
            "dt": positive,
            "scheme": text(),
            "dtype": text(),
            "kernels": text(),
            "mapping": text(),
            "memory": text(),
            "block": optional(count()),
            "timed": flag,
        }
    ),
    "problem": record({"diffusivity": anything, "boundary": anything, "source": flag}),
    "steps": count(),
    "seconds": mapping(number()),
    "run_by": record({"kernel": text(), "threads": count()}),
}


class HeatADI(Stepper[HeatResult]):
    r"""Heat conduction in a rectangle or a box, implicit along one axis at a time.

    .. math:: T_t = \partial_x (k\,T_x) + \partial_y (k\,T_y) \;[+\; \partial_z (k\,T_z)] + q

    by central differences on nodes that include the boundary. A step is one tridiagonal solve
    along each axis, of second order in time and space, and stable for any `dt`.

    Parameters
    ----------
    shape : (ny, nx) or (nz, ny, nx)
        Nodes along each axis, and the shape of the solution: x is the last axis. At least 3,
        or 2 between two sides that are fluxes.
    spacing : float or tuple of float
        Distance of the nodes: for all axes, or for each axis in the order of `shape`.
    dt : float
        Time step; positive.
    diffusivity : float, tuple of float or ndarray, default: 1
        Conductivity k, positive: a number, one for each axis in the order of `shape`, or
        values at the nodes, between which the flux takes the harmonic mean.
    scheme : {'peaceman-rachford', 'douglas-gunn', 'wei2013'}, optional
        By default Peaceman and Rachford with two axes and Douglas and Gunn with three; see
        Notes. ``'wei2013'`` is **no time integrator**: it is there to be reproduced.
    boundary : Dirichlet, Neumann, Robin, 'periodic' or mapping, optional
        T = 0 on all sides by default. For all sides, or by side ``"x-"``, ``"x+"``, ``"y-"``,
        ... or axis ``"x"``, ``"y"``, ``"z"``: `Dirichlet`, T; `Neumann`, the inflow
        :math:`k\,\partial T/\partial n`; `Robin`, its coefficient and the ambient; or
        ``"periodic"``, on both sides of an axis, where the node after the last is the first.
        A value is a number, an array over the nodes of the side, with the axes of `shape` that
        are left, or a function of (t), of (x, y[, z]) or of (x, y[, z], t) that takes arrays.
        Where two `Dirichlet` sides meet, the later axis of x, y, z has the say.
    source : number, ndarray or callable, optional
        Heat source q: an array has the shape of the solution; functions are as for the sides.
    initial : number, ndarray or callable, default: 0
        T at time 0; a function is one of (x, y[, z]).
    dtype : float64 or float32, default: float64
        Of the solution.
    kernels : {'fused', 'wei2013'}, default: 'fused'
        On a device: sweeps that read one word a node and write one, or the kernels of [3]_.
    mapping : {'C1', 'C2', 'C3', 'C4'}, default: 'C1'
        Of the paper's kernels: how threads meet the rows of parallel cyclic reduction.
    memory : {'baseline', 'texture', 'transpose'}, default: 'baseline'
        Of the paper's kernels: how sweeps along y meet the memory.
    block : int, optional
        Of the paper's kernels: threads a block, 32 to 512.
    timed : bool, default: False
        Whether to measure the stages of the steps on a device, which makes them wait.
    device : str, optional
        ``'cpu'``, the default, ``'cuda'`` or ``'cuda:1'``, ... The solution stays on the
        device between calls, and comes to the host when it is asked for.
    threads : int, optional
        Threads; by default the backend's choice. The result has the same bits for any number.

    Raises
    ------
    TypeError, ValueError
        If a parameter is of the wrong kind or out of range; the message names rule and value.
    BackendError
        If the device is not available.

    Notes
    -----
    With :math:`A_x = 1 - \tfrac{dt}{2} \delta_x k \delta_x` and
    :math:`B_x = 2 - A_x`, Peaceman and Rachford [1]_ solve

    .. math:: A_x T^* = B_y T^n + \tfrac{dt}{2} q, \qquad
        A_y T^{n+1} = B_x T^* + \tfrac{dt}{2} q

    and Douglas and Gunn [2]_, in differences,
    :math:`A_x D_1 = dt\,(\nabla \cdot k \nabla T^n + q), A_y D_2 = D_1, A_z D_3 = D_2,
    T^{n+1} = T^n + D_3`; q is that of the middle of the step. In two dimensions and without
    rounding both are the same. Dirichlet and Neumann values that change with time are taken
    to the intermediate levels by the formulas of the scheme, which keeps the second order.
    Neither damps the shortest waves when :math:`k\,dt/h^2` is large: rough initial values ring.

    The scheme of [3]_ takes :math:`1 + 2 r_x + 2 r_y` on the diagonal of both sub-steps,
    :math:`r = k\,dt/h^2`. A step of it advances smooth fields by :math:`2/(1 + 2 r)` of the time
    it should (r of one axis, equal ones): at the published r = 100 by 0.0099. It is one pass of
    line Jacobi on an implicit step. It, and the kernels, take Dirichlet sides and k that do not
    change with time or place and no source.

    References
    ----------
    .. [1] D. W. Peaceman and H. H. Rachford, "The numerical solution of parabolic and elliptic
       differential equations", *Journal of the SIAM* 3, 28-41, 1955.
    .. [2] J. Douglas and J. E. Gunn, "A general formulation of alternating direction
       methods", *Numerische Mathematik* 6, 428-453, 1964.
    .. [3] Z. Wei, B. Jang, Y. Zhang and Y. Jia, "Parallelizing alternating direction implicit
       solver on GPUs", *Procedia Computer Science* 18 (ICCS 2013), 389-398, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import Dirichlet, HeatADI, Neumann
    >>> solver = HeatADI(
    ...     (33, 65),
    ...     1 / 32,
    ...     dt=0.02,
    ...     boundary={"x-": Dirichlet(1.0), "x+": Dirichlet(0.0), "y": Neumann()},
    ... )
    >>> result = solver.run(until=10.0)
    >>> print(np.abs(result.u - (1 - result.x / 2)).max() < 1e-6)
    True
    """

    def __init__(
        self,
        shape: Sequence[int],
        spacing: Any,
        dt: float,
        *,
        diffusivity: Any = 1.0,
        scheme: str | None = None,
        boundary: Any = None,
        source: Any = None,
        initial: Any = 0.0,
        dtype: Any = np.float64,
        kernels: str = "fused",
        mapping: str = "C1",
        memory: str = "baseline",
        block: int | None = None,
        timed: bool = False,
        device: str | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__()
        self._settings = settings = HeatSettings(
            shape=shape,
            spacing=spacing,
            dt=dt,
            scheme=scheme,
            dtype=dtype,
            kernels=kernels,
            mapping=mapping,
            memory=memory,
            block=block,
            timed=timed,
            device=device,
            threads=threads,
        )
        self._grid = grid = Grid(settings, *_conductivity(diffusivity, settings))
        by_side = boundary_by_side(Dirichlet(0.0) if boundary is None else boundary, settings.axes)
        self._sides = {name: Side(name, found, grid) for name, found in by_side.items()}
        self._check_nodes()
        places = grid.places(range(grid.axes))
        self._source = None if source is None else NodeData("source", source, *places)
        if "t" in dependence("initial", initial, settings.axes):
            raise TypeError("initial must be a number, an array or a function of the place")
        self._check_paper()
        self._state = HeatState(settings, grid, self._sides, self._source)
        start = NodeData("initial", initial, *places).at(0.0)
        self._state.start(np.broadcast_to(start, settings.shape))
        self._seconds = dict.fromkeys(settings.backend.HEAT_STAGES, 0.0)
        self._run_by: dict[str, Any] = {"kernel": "", "threads": 0}

    @property
    def u(self) -> NDArray[Any]:
        """Temperature now: a read-only view."""
        return read_only(self._state.t)

    @property
    def seconds(self) -> dict[str, float]:
        """Time spent in the stages of the steps so far, as `HeatResult` tells it."""
        return dict(self._seconds)

    def __repr__(self) -> str:
        s = self._settings
        return (
            f"HeatADI({s.shape}, dt={s.dt:g}, scheme={s.scheme!r}): {self.steps} steps, "
            f"t = {self.time:g}"
        )

    def result(self, stop_reason: str = "running") -> HeatResult:
        """Return the state now as a result of its own.

        Parameters
        ----------
        stop_reason : str, default: 'running'
            What the result says of the end of the run.

        Returns
        -------
        result : HeatResult
            A copy of the solution, and how it was reached.
        """
        s = self._settings
        return HeatResult(
            u=self._state.t.copy(),
            spacing=s.spacing,
            time=self.time,
            dt=self._grid.dt,
            steps=self.steps,
            scheme=str(s.scheme),
            stop_reason=stop_reason,
            seconds=dict(self._seconds),
            backend=s.backend.NAME,
            kernel=str(self._run_by["kernel"]),
            threads=int(self._run_by["threads"]),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state, so that `load` goes on with the same bits.

        Parameters
        ----------
        path : path-like
            An npz file of exactly this name, written whole or not at all. Diffusivity, sides
            and source, which may hold functions, are not in it.
        """
        facts = {
            "settings": self._settings.facts(),
            "problem": self._problem(),
            "steps": self.steps,
            "seconds": self._seconds,
            "run_by": self._run_by,
        }
        write_npz(path, _KIND, facts, self._state.fields())

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        diffusivity: Any = 1.0,
        boundary: Any = None,
        source: Any = None,
        device: str | None = None,
        threads: int | None = None,
    ) -> "HeatADI":
        """Read a state that `save` wrote.

        Parameters
        ----------
        path : path-like
            The file.
        diffusivity : float, tuple of float or ndarray, default: 1
            The same as before.
        boundary : Dirichlet, Neumann, Robin, 'periodic' or mapping, optional
            The same as before.
        source : number, ndarray or callable, optional
            The same as before.
        device : str, optional
            As in `HeatADI`; another one goes on with the same numbers, not the same bits.
        threads : int, optional
            As in `HeatADI`.

        Returns
        -------
        solver : HeatADI
            Where the saved one was.

        Raises
        ------
        ValueError
            If the file holds something else, is damaged or was edited, or holds the state of
            another problem; the message names the file and what is wrong.
        """
        saved = read_npz(path, _KIND)
        facts = saved.header(_HEADER)
        with saved.naming("header"):
            settings = HeatSettings(**facts["settings"], device=device, threads=threads)
        field = settings.shape, np.dtype(settings.dtype)
        arrays = saved.arrays({"t": field, "w": field})
        stages = settings.backend.HEAT_STAGES
        saved.require(
            facts["seconds"].keys() == dict.fromkeys(stages).keys(),
            "header",
            f"seconds must have the keys {', '.join(stages)}",
        )
        solver = cls(
            **facts["settings"],
            diffusivity=diffusivity,
            boundary=boundary,
            source=source,
            device=device,
            threads=threads,
        )
        for name, value in solver._problem().items():
            before = facts["problem"][name]
            saved.require(
                before == value,
                "header",
                f"{name} must be the same as when the state was saved, {reprlib.repr(before)}, "
                f"got {reprlib.repr(value)}",
            )
        solver._state.set_fields(arrays)
        solver._count = Counter(facts["steps"])
        solver._seconds, solver._run_by = facts["seconds"], facts["run_by"]
        return solver

    @property
    def _dt(self) -> float:
        return self._grid.dt

    @property
    def _most_steps(self) -> int:
        return self._state.most_steps

    def _problem(self) -> dict[str, Any]:
        """Return what tells one problem from another, but for functions and arrays."""
        return {
            "diffusivity": [list(self._grid.ratio), self._grid.k is not None],
            "boundary": [[name, s.kind, s.exchange] for name, s in self._sides.items()],
            "source": self._source is not None,
        }

    def _check_nodes(self) -> None:
        for name, nodes in zip(self._settings.axes, self._grid.nodes, strict=True):
            kinds = {self._sides[name + end].kind for end in "-+"}
            least = 2 if kinds == {"flux"} else 3
            require(nodes >= least, f"shape must be at least {least} along {name}", nodes)

    def _check_paper(self) -> None:
        if not self._settings.is_paper:
            return
        for name, side in self._sides.items():
            require(
                side.kind == "value" and not side.varies,
                f"the scheme and the kernels 'wei2013' need Dirichlet values that do not change "
                f"with time, on side {name}",
                side.kind,
            )
        require(self._grid.k is None, "'wei2013' needs a diffusivity that is a number", "an array")
        require(self._source is None, "'wei2013' takes no source", "one")

    def _advance(self, end: int) -> bool:
        s, state, first = self._settings, self._state, self.steps
        count = min(end - first, state.most_steps)
        state.prepare(first, count)
        status, report = s.backend.heat_step(
            s.codes,
            (int(first == 0), int(s.timed)),
            *state.arguments(count),
            s.call_threads,
            self._count.begin(),
            *state.place,
        )
        raise_for_status(status, s.backend.STATUS, "HeatADI")
        self._run_by = {"kernel": report["kernel"], "threads": report["threads"]}
        for stage, seconds in report["seconds"].items():
            self._seconds[stage] += seconds
        return isfinite(state.largest)

    def _is_in_bounds(self) -> bool:
        return bool(np.isfinite(self._state.t).all())

    def _out_of_bounds(self) -> ConvergenceError:
        text = f"{self!r} is not finite after step {self.steps}"
        return ConvergenceError(text, self.result("diverged"))


def _conductivity(
    diffusivity: Any, settings: HeatSettings
) -> tuple[tuple[float, ...], NDArray[np.float64] | None]:
    """Return a factor for each axis, and values at the nodes or None."""
    axes = len(settings.shape)
    if not isinstance(diffusivity, np.ndarray) or diffusivity.ndim == 0:
        return per_axis("diffusivity", diffusivity, axes), None
    require(
        diffusivity.shape == settings.shape,
        f"diffusivity: an array must have the shape {settings.shape}",
        diffusivity.shape,
    )
    values = np.array(diffusivity, np.float64)
    require(
        bool(np.isfinite(values).all() and (values > 0).all()),
        "diffusivity must be positive and finite",
        float(values.min()),
    )
    return (1.0,) * axes, values
