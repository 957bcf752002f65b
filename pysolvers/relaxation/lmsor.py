"""LMSOR, LSOR and SOR for steady convection and diffusion."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod, sqrt
from time import perf_counter
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .._runtime.fp_mode import in_default_fp_mode
from .._solver.exclusive import exclusive
from .._solver.files import SavedFile
from .._solver.schema import Count, Table
from ..distributed import Group, Slab
from ..distributed._group import agreement_of, own_device
from ._base import Omega, Relaxation, RelaxationSettings, RelaxationState, Stop
from ._colours import ColourGrid, split_by_parity
from ._parameters import Coefficients, Direction, coefficients, local_omega, sided_fields
from ._rows import periodic_codes, rows_of
from .problem import (
    MOST_PECLET,
    AlongSides,
    Differences,
    SavedSides,
    SteadyConvectionDiffusion,
    boundary_of,
    saved_sides,
)

__all__ = ["LMSOR"]

Local = Literal["lmsor", "lsor"]

_TABLES = ("x_table", "y_table")
_STORED = ("omega", "west", "east", "north", "south", "skew_x", "skew_y", "source")


@dataclass(frozen=True, kw_only=True)
class LMSORSettings(RelaxationSettings):
    """Parameters of `LMSOR`; see there."""

    relaxation: Local | Omega

    kernel = "auto"  # an option of pysolvers.papers.lmsor2012, whose settings have it as a field


@dataclass(frozen=True, kw_only=True)
class LMSORState(RelaxationState):
    """What `save` writes of `LMSOR`."""

    settings: LMSORSettings
    shape: tuple[Count, Count]
    extent: tuple[tuple[float, float], tuple[float, float]]
    differences: Differences
    f: Table
    g: Table
    source: Table
    frame: Table
    sides: SavedSides
    along: AlongSides

    _KIND = "pysolvers LMSOR state"
    _INSIDE = ("f", "g", "source")

    @property
    def interior(self) -> tuple[int, int]:
        is_sided = any(kind != "Dirichlet" for kind in self.sides.kinds)
        return self.shape if is_sided else (self.shape[0] - 2, self.shape[1] - 2)

    @property
    def unknown(self) -> tuple[int, int]:
        ny, nx = self.shape
        given = [kind == "Dirichlet" for kind in self.sides.kinds]
        return ny - sum(given[2:]), nx - sum(given[:2])

    def _check(self, saved: SavedFile) -> None:
        super()._check(saved)
        saved.require_array("frame", self.frame, self.shape, np.float64)
        ny, nx = self.shape
        for name, nodes in (("west", ny), ("east", ny), ("south", nx), ("north", nx)):
            saved.require_array(f"along_{name}", getattr(self.along, name), (nodes,), np.float64)


class LMSOR(Relaxation):
    r"""Red-black relaxation of convection and diffusion with local relaxation parameters.

    Each node is relaxed towards its Jacobi value,

    .. math:: J u = l\, u_W + r\, u_E + t\, u_N + b\, u_S - \frac{h^2 k^2}{D} s, \qquad
        u \leftarrow u + \omega\, (J u - u),

    red nodes (i + j even) with :math:`\omega_1`, then black nodes with :math:`\omega_2`,
    where for central differences :math:`D = 2 (h^2 + k^2)` and

    .. math:: l, r = \frac{k^2}{D} \left(1 \pm \frac{h f}{2}\right), \qquad
        b, t = \frac{h^2}{D} \left(1 \pm \frac{k g}{2}\right).

    Parameters
    ----------
    problem : SteadyConvectionDiffusion
        The equation.
    relaxation : {'lmsor', 'lsor'} or float, default: 'lmsor'
        ``'lmsor'`` uses local parameters for each of the two colours [1]_, ``'lsor'`` the
        same local parameters for both colours. A number between 0 and 2 is the constant
        parameter of classical SOR.
    dtype : dtype, default: float64
        Dtype of the field: float32 or float64.
    device : str, optional
        ``'cpu'``, the default, ``'cuda'`` or ``'cuda:1'``, ... The field stays on the
        device between calls; `u` copies it to the host.
    threads : int, optional
        Number of host threads; the backend chooses the default. The result has the same
        bits for any number.
    initial : number, array_like or callable, optional
        Initial values of u at the interior nodes, in the forms of `source` of the problem; 0 by
        default.
    group : pysolvers.distributed.Group, optional
        Processes that each hold rows of the nodes and iterate together; see Notes.
    split : pysolvers.distributed.Slab, optional
        With `group`, the axis of the rows: ``Slab(0)``.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range; the message names the rule
        and the value.
    BackendError
        If the device is not available.

    See Also
    --------
    RedBlackSOR : Steady heat conduction in a plate, by finite volumes.

    Notes
    -----
    The residual of a node is :math:`J u - u`, in units of u; multiplied by
    :math:`D / (h^2 k^2)` it is the residual of the differential equation. By default `solve`
    measures its largest absolute value. With the eigenvalues :math:`\mu` of [1]_, the
    parameters of a node with :math:`l r \ge 0` and :math:`t b \ge 0` are

    .. math:: \omega_{1,2} = \frac{2}{1 \mp \mu_{max} \mu_{min}
        + \sqrt{(1 - \mu_{max}^2)(1 - \mu_{min}^2)}} .

    With given values on all sides and uniform convection the iteration converges. Otherwise these
    parameters are near the best ones, and the iteration converges where cell Péclet numbers are at
    most 2, or with upwind differences. With larger ones the matrix of central differences can have
    eigenvalues of negative real part, and no relaxation converges; and where fluid enters through a
    side without given values, as of ``"outflow"``, an eigenvalue can be nearly 0, so that u is
    hardly determined and every relaxation is slow. The error of `solve` names these cases.

    With sides other than given values, the nodes on them are relaxed as the others are, and the
    coefficients of all nodes are stored. :math:`\mu_{max}` then has the cosine of the first
    eigenvector between these sides, which is 1 along a periodic axis. A periodic axis needs an
    even number of nodes, and the CPU; every half-sweep is then a pass over the field of its own.

    With a `group`, `problem` and `initial` are those of the whole domain, of which each rank holds
    the rows ``split.part(ny, group.rank, group.size)``, at least three. `u`, `y` and the results
    are those of these rows; `gather` returns the whole solution. The iterations have the same bits
    as with one process, and so have the maxima that `solve` measures; root mean squares are added
    in another order. ``device="cuda"`` gives each rank its own device. On devices the ranks
    exchange rows once in up to 32 iterations, and a measurement ends a call of the kernels, as an
    exchange does: measure every hundredth iteration or fewer.

    References
    ----------
    .. [1] L. A. Boukas and N. M. Missirlis, "The parallel local modified SOR for
       nonsymmetric linear systems", *Int. J. Comput. Math.* 68, 153-174, 1998.

    Examples
    --------
    >>> from pysolvers import LMSOR, SteadyConvectionDiffusion
    >>> problem = SteadyConvectionDiffusion(
    ...     lambda x, y: 10 * (2 * x - 10) ** 3, lambda x, y: 10 * (2 * y - 10) ** 3,
    ...     shape=(402, 402), extent=((0, 1), (0, 1)), boundary=0.0,
    ...     differences="central",
    ... )
    >>> start = lambda x, y: x * y * (1 - x) * (1 - y)
    >>> LMSOR(problem, initial=start).solve(1e-6, criterion="solution").iterations
    412
    """

    _SETTINGS: ClassVar[Any] = LMSORSettings
    _STATE: ClassVar[Any] = LMSORState
    _NORM = "max"

    problem: SteadyConvectionDiffusion
    relaxation: Local | float
    initial: Any

    @in_default_fp_mode
    def __init__(
        self,
        problem: SteadyConvectionDiffusion,
        *,
        relaxation: Local | float = "lmsor",
        dtype: DTypeLike = np.float64,
        device: str | None = None,
        threads: int | None = None,
        initial: ArrayLike | Any = None,
        group: Group | None = None,
        split: Slab | None = None,
    ) -> None:
        start = perf_counter()
        self._data_given = {"problem": problem, "initial": initial, "group": group, "split": split}
        with agreement_of(group, "LMSOR") as agreed:
            settings = self._SETTINGS(
                **self._experiment,
                relaxation=relaxation,
                dtype=dtype,
                device=own_device(device, group),
                threads=threads,
            )
            self._prepare(problem, settings)
            frame = int(problem._is_sided)
            rows = rows_of(group, split, problem.shape[0], "LMSOR", settings.device, frame=frame)
            periodic = [problem._is_periodic(axis) for axis in "xy"]
            codes = periodic_codes(
                periodic, problem.shape, "LMSOR", rows.group, on_device=settings.is_on_device
            )
            if agreed is not None:
                facts = "shape", "extent", "differences"
                agreed.same = settings.agreed() | {name: getattr(problem, name) for name in facts}
            ny, nx = rows.held_interior, problem.shape[1] - 2 * (1 - frame)
            grid, real = ColourGrid(nx, ny, self._kernel == "serial"), np.dtype(settings.dtype)
            self._fields, self._tables = self._operands(is_split=rows.group is not None)
            places, table = len(Direction._fields), np.dtype(float)
            shapes = {"x": ((places, 2, grid.pitch), table), "y": ((places, ny + 2), table)}
            layout: dict[str, Any] = dict.fromkeys(self._fields, (grid.shape, real))
            layout.update({name: shapes[name[0]] for name in self._tables})
            super().__init__(settings, grid, layout, rows)
            self._periodic = codes
            self._check_experiment()
            self._set_up(problem._start(initial))
        self._rows.start(self._state)
        self._seconds["set-up"] = perf_counter() - start

    def _prepare(self, problem: SteadyConvectionDiffusion, settings: LMSORSettings) -> None:
        """Check the problem."""
        if not isinstance(problem, SteadyConvectionDiffusion):
            kind = type(problem).__name__
            raise TypeError(f"problem must be a SteadyConvectionDiffusion, got {kind}")
        self._relaxation = settings.relaxation
        self._kernel = str(settings.kernel)
        if self._is_stored:
            self._kernel = "1"  # which stores all coefficients

    @property
    def u(self) -> NDArray[Any]:
        """Solution now, with the boundary: shape (ny, nx), a new array.

        With a group, the rows of this rank. It can be set, to an array of the same shape, with a
        group on all ranks: the iteration goes on from its values at the nodes where u is unknown.
        """
        return self._grid.unpack(self._state.get("u"))[self._place].copy()

    @u.setter
    @exclusive
    def u(self, values: ArrayLike) -> None:
        self._set_field("u", values)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the solution."""
        return self.problem.shape

    @property
    def x(self) -> NDArray[np.float64]:
        """Coordinates of the nodes along x: shape (nx,)."""
        return self.problem.x.copy()

    @property
    def y(self) -> NDArray[np.float64]:
        """Coordinates of the nodes along y: shape (ny,); with a group, those of this rank."""
        return self.problem.y[self._rows.part].copy()

    @property
    def _remedy(self) -> str:
        problem, text = self.problem, ""
        if problem.differences == "central" and problem.cell_peclet > MOST_PECLET:
            text = (
                f"; the cell Peclet number is {problem.cell_peclet:.3g}, and above {MOST_PECLET:g} "
                "the matrix of central differences can have eigenvalues of negative real part, for "
                "which no relaxation converges: take more nodes, differences='upwind', or a number "
                "below 0.1 as relaxation"
            )
        if inflows := problem._inflows:
            text += (
                f"; fluid enters through {', '.join(inflows)} without given values, and u is "
                "hardly determined: give values there"
            )
        return text

    @property
    def _is_stored(self) -> bool:
        """Whether nodes differ in more than the skew parts of their coefficients.

        They do with upwind differences of a convection that varies, and with sides that do not
        have given values.
        """
        problem = self.problem
        varies = problem.f.size * problem.g.size > 1
        return problem._is_sided or (problem.differences == "upwind" and varies)

    @property
    def _place(self) -> tuple[slice, ...]:
        if not self.problem._is_sided:
            return super()._place
        return self._rows.inner, slice(1, -1)

    @property
    def _given(self) -> NDArray[np.bool_]:
        """Which of the nodes that are held here have given values, where sides are relaxed."""
        given = np.ones(self.problem.shape, bool)
        given[self.problem._unknown] = False
        return given[self._rows.part_of_held]

    @property
    def _unknowns(self) -> int:
        given = np.count_nonzero(self._given) if self.problem._is_sided else 0
        return super()._unknowns - int(given)

    def _set_given(self, values: NDArray[Any]) -> None:
        problem = self.problem
        if problem._is_sided:
            inside, start = values[1:-1, 1:-1], problem._start()[self._rows.part_of_held]
            np.copyto(inside, start, where=self._given, casting="same_kind")

    def _scale(self, criterion: str, norm: str) -> float:
        del criterion
        if norm == "max":
            return 1.0
        # The kernel counts the nodes with given values on sides among others, which measure 0.
        counted, unknown = (prod(each) for each in (self._counted, self.problem.interior))
        return sqrt(counted / unknown)

    @property
    def _counted(self) -> tuple[int, int]:
        """Number of nodes along y and x over which the kernel takes the mean."""
        problem = self.problem
        return problem.shape if problem._is_sided else problem.interior

    def _operands(self, *, is_split: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of the fields and of the tables that the kernel reads."""
        fields: tuple[str, ...] = ("omega", "skew_x", "skew_y")
        tables: tuple[str, ...] = ()
        if self._kernel == "1":
            fields = ("omega", "west", "east", "north", "south")
        elif self._kernel == "3":
            fields, tables = (), _TABLES
        elif self._kernel == "auto" and self.problem.separable and not is_split:
            fields, tables = ("omega",), _TABLES
        is_sourced = self.problem._is_sided or self.problem.source.any()
        return (*fields, "source") if is_sourced else fields, tables

    def _set_up(self, u: NDArray[np.float64]) -> None:
        """Fill the fields and the tables that the kernel reads."""
        if self.problem._is_sided:
            self._set_up_with_sides(u)
            return
        c = coefficients(self.problem)
        # Kernel 1 reads stored coefficients and neither of the two.
        self._centres = tuple(0.0 if isinstance(a, np.ndarray) else a for a in (c.cx, c.cy))
        held = self._rows.held
        self._state.set("u", self._grid.pack(u[held], self._dtype))
        for name in self._fields:
            self._state.set(name, self._grid.pack(self._field(name, c)[held], self._dtype))
        if self._tables:
            ny, nx = self.problem.interior
            x, y = np.zeros((len(c.x), nx + 2)), np.zeros((len(c.y), ny + 2))
            x[:, 1:-1], y[:, 1:-1] = np.concatenate(c.x), np.stack([a[:, 0] for a in c.y])
            self._state.set("x_table", split_by_parity(x, self._grid.pitch))
            self._state.set("y_table", y)

    def _set_up_with_sides(self, u: NDArray[np.float64]) -> None:
        """Fill the fields that kernel 1 reads if nodes on sides are relaxed too."""
        self._centres = 0.0, 0.0
        held = self._rows.held
        fields = sided_fields(self.problem, self._relaxation) | {"u": u}
        for name, values in fields.items():
            framed = np.pad(values, 1)
            self._grid.wrap(framed, self._periodic)
            self._state.set(name, self._grid.pack(framed[held], self._dtype))

    def _field(self, name: str, c: Coefficients) -> NDArray[Any]:
        """Return what a field holds at the nodes, in the dtype, 0 on the frame."""
        real, shape = self._dtype.type, self.problem.interior
        skew_x, skew_y = c.x.skew.astype(real), c.y.skew.astype(real)
        values = np.zeros((shape[0] + 2, shape[1] + 2), real)
        inside = values[1:-1, 1:-1]
        if name == "omega":
            given = self._relaxation
            inside[...] = local_omega(c, shape, given) if isinstance(given, str) else given
        elif name in ("west", "east"):
            inside[...] = _rounded(c.cx, real) + (skew_x if name == "west" else -skew_x)
        elif name in ("south", "north"):
            inside[...] = _rounded(c.cy, real) + (skew_y if name == "south" else -skew_y)
        else:
            inside[...] = {"skew_x": skew_x, "skew_y": skew_y, "source": c.source}[name]
        return values

    def _call(self, count: int, stop: Stop, made: NDArray[np.int64]) -> tuple[int, Any]:
        backend, state = self._backend, self._state
        local = isinstance(self._relaxation, str)
        here = {name: state.operand(name, changes=False) for name in (*self._fields, *self._tables)}
        answer: tuple[int, Any] = backend.lmsor_iterate(
            backend.LMSOR_KERNELS[self._kernel],
            backend.RELAXATIONS[self._relaxation if local else "constant"],
            1.0 if local else float(self._relaxation),
            self._grid.nx,
            self._grid.ny,
            self._grid.pitch,
            self._periodic,
            *self._centres,
            state.operand("u"),
            tuple(map(here.get, _STORED)),
            tuple(map(here.get, _TABLES)),
            stop,
            count,
            self._threads,
            made,
            *state.arguments,
        )
        return answer

    def _describe(self) -> dict[str, Any]:
        return {
            "title": "Steady convection and diffusion",
            "relaxation": str(self._relaxation),
            "method": f"kernel {self._kernel}",
        }

    def _problem(self) -> dict[str, Any]:
        problem = self.problem
        names = "shape", "extent", "differences", "f", "g", "source"
        kept = {name: getattr(problem, name) for name in names}
        return kept | {"frame": problem._start(), **saved_sides(problem)}

    @classmethod
    def _from_saved(cls, state: Any, **data: Any) -> Self:
        problem = SteadyConvectionDiffusion(
            state.f,
            state.g,
            shape=state.shape,
            extent=state.extent,
            source=state.source,
            boundary=boundary_of(state.sides, state.along, state.frame),
            differences=state.differences,
        )
        return cls(problem, **state.settings.facts(), **data)


def _rounded(values: Any, real: Any) -> Any:
    """Return numbers or an array in the dtype of the field."""
    return values.astype(real) if isinstance(values, np.ndarray) else real(values)
