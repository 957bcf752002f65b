"""What solvers by schemes that split share: the solution, its steps, results and files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._data import NodeData, dependence
from .._domain import NodeLines
from .._errors import ConvergenceError
from .._repr import place_text, shape_text, steps_text
from .._solver.exclusive import exclusive
from .._solver.files import SavedFile
from .._solver.result import Result
from .._solver.schema import Line, Member, Positive, RunBy
from .._solver.stepping import TimeState, TimeStepping
from .._views import read_only
from .grid import Grid
from .lines import LineOperators
from .schemes import DAMPED, Scheme, SplitSteps
from .sides import KIND_TEXTS

R = TypeVar("R")

Fields = Annotated[NDArray[Any], Member(None, (np.float32, np.float64))]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SplitResult(NodeLines, Result):
    """The solution of an equation, or of a batch of them, with steps and times.

    Parameters
    ----------
    u : ndarray
        The solution at the nodes, x along the last axis.
    lines : ndarray
        Coordinates of the nodes along x, those along y, and so on, one after the other.
    time : float
        Time of the state.
    dt : float
        Time step.
    last_dt : float
        Length of the last step.
    steps : int
        Number of steps since the start.
    damped_start : bool
        Whether the first step was that of a damped start.
    """

    u: Fields
    lines: Line
    time: float
    dt: Positive
    last_dt: Positive
    steps: int
    damped_start: bool

    _PLOTS: ClassVar = "split"
    _CAPTION: ClassVar[str]

    @property
    def _batch(self) -> tuple[int, ...]:
        """Axes of u before those of space."""
        return ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one solution."""
        return self.u.shape[len(self._batch) :]

    def _line(self, axis: int) -> NDArray[np.float64]:
        if axis >= len(self.shape):
            raise AttributeError(f"a solution of shape {self.shape} has no axis {'xyz'[axis]}")
        end = sum(self.shape[::-1][: axis + 1])
        return self.lines[end - self.shape[-1 - axis] : end]

    def _check(self, saved: SavedFile) -> None:
        axes = self.u.ndim - len(self._batch)
        fits = axes in (1, 2, 3) and self.u.shape[: len(self._batch)] == self._batch
        saved.require(fits, "member 'u'", f"it must have the axes {self._batch} and 1 to 3 others")
        saved.require_array("lines", self.lines, (sum(self.shape),), np.float64)

    @property
    def _has_lines(self) -> bool:
        return True

    def _dims(self) -> Mapping[str, str]:
        count = len(self._batch)
        names = ["problem"] if count == 1 else [f"problem_{k}" for k in range(count)]
        return {"u": " ".join([*names, *"zyx"[-len(self.shape) :]])}

    def _scheme_text(self) -> str:
        """Return what the description says of the scheme."""
        raise NotImplementedError

    def _table(self) -> tuple[str, Mapping[str, str]]:
        problems = f"{shape_text(self._batch)} problems of " if self._batch else ""
        damped = ", damped start" if self.damped_start else ""
        facts = {
            "nodes": problems + shape_text(self.shape),
            "time": f"{self.time:g} ({steps_text(self)}, {self.stop_reason})",
            "scheme": self._scheme_text() + damped,
            "u": f"{self.u.min():.6g} to {self.u.max():.6g}",
            "seconds": f"{sum(self.seconds.values()):.3g}, {place_text(self)}",
        }
        return self._CAPTION, facts


@dataclass(frozen=True, kw_only=True)
class SplitState(TimeState):
    """What `save` writes of every solver by schemes that split.

    Parameters
    ----------
    sides : tuple of str
        Kinds of the sides, for a comparison with those that `load` takes.
    begun : int
        Number of steps before the start.
    is_damped : bool or None
        Whether the start is damped; None before it.
    u : ndarray
        The solution.
    """

    sides: tuple[str, ...]
    begun: int
    is_damped: bool | None
    u: Fields

    @property
    def _shape(self) -> tuple[int, ...]:
        """Shape of the solution."""
        return tuple(self.settings.shape)

    def _check(self, saved: SavedFile) -> None:
        saved.require(self.begun <= self.made, "header", "begun must be at most made")
        saved.require_array("u", self.u, self._shape, np.dtype(self.settings.dtype))


class SplitSolver(NodeLines, TimeStepping[R], is_base=True):
    """A solver by a scheme of `SplitSteps`, whose constructor calls `_set_up`."""

    _most_steps = 64  # of one call: between two calls the progress is shown

    def _set_up(
        self, settings: Any, operators: LineOperators, scheme: Scheme, theta: float, start: Any
    ) -> None:
        """Take the equation, and the values at the start."""
        super().__init__(settings, settings.dt, operators.seconds)
        self._operators, self._grid = operators, operators.grid
        self._steps = SplitSteps(operators, scheme, theta)
        self._u = self._steps.zeros()
        self._restart(u=np.broadcast_to(start, self._grid.nodes))

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of nodes along each axis: shape of one solution."""
        return tuple(self._settings.shape)

    def _line(self, axis: int) -> NDArray[np.float64]:
        if axis >= self._grid.axes:
            raise AttributeError(f"a solver of shape {self.shape} has no axis {'xyz'[axis]}")
        return self._grid.lines[axis].copy()

    @property
    def u(self) -> NDArray[Any]:
        """The solution at the current time, read-only; with a batch all of them.

        It can be set, to an array of the same shape: the solution goes on from these values at the
        same time, and the start is made again. Nodes of Dirichlet sides keep the values of the
        sides.
        """
        return read_only(self._operators.to_host(self._u))

    @u.setter
    @exclusive
    def u(self, values: ArrayLike) -> None:
        self._set_field("u", values)

    def _restart(self, **fields: NDArray[Any]) -> None:
        self._clock.begin(self.steps)
        self._begun, self._is_damped = self.steps, self._settings.damped_start
        self._set_solution(fields["u"])
        self._steps.restart()
        self._operators.place(self._steps.level_at(self.time), self._u)

    def _set_solution(self, values: NDArray[Any]) -> None:
        """Set the solution to values of the host."""
        self._u[...] = self._operators.array(values)

    def _advance(self, count: int) -> bool:
        made, first, clock = self._count.begin(), self.steps, self._clock
        dt, steps = clock.dt, self._steps
        for step in range(count):
            time, end = clock.at(first + step), clock.segment.at(first + step + 1)
            if self._is_damped is None:
                self._is_damped = self._needs_damping(time, dt)
            if self._is_damped and first + step < self._begun + DAMPED:
                found = steps.damped_step(self._u, time, end, dt)
            else:
                found = steps.step(self._u, time, end, dt, goes_on=step + 1 < count)
            # No call between these statements: no signal handler runs there.
            self._u = found
            made[0] = step + 1
        self._seconds.update(self._operators.seconds)
        self._run_by: RunBy = self._operators.run_by
        return self._is_in_bounds()

    def _needs_damping(self, time: float, dt: float) -> bool:
        """Return whether an explicit step would change u by more than the range of its values."""
        span = float(self._u.max()) - float(self._u.min())
        return dt * self._steps.initial_rate(time, self._u) > span

    def _is_in_bounds(self) -> bool:
        xp = self._operators.xp
        return isfinite(float(xp.sum(self._u))) or bool(xp.isfinite(self._u).all())

    def _facts(self) -> dict[str, Any]:
        return {
            "u": np.array(self._operators.to_host(self._u)),
            "lines": np.concatenate(self._grid.lines),
            "time": self.time,
            "dt": self.dt,
            "last_dt": self.last_dt,
            "steps": self.steps,
            "damped_start": bool(self._is_damped),
        }

    def _kept(self) -> dict[str, Any] | None:
        return {
            **(super()._kept() or {}),
            "sides": tuple(self._grid.kinds.values()),
            "begun": self._begun,
            "is_damped": self._is_damped,
            "u": np.array(self._operators.to_host(self._u)),
        }

    @classmethod
    def _from_saved(cls, state: Any, **data: Any) -> Self:
        return super()._from_saved(state, **{"dt": state.dt} | data)

    def _resume(self, state: Any) -> None:
        kinds = self._grid.kinds
        for (name, kind), before in zip(kinds.items(), state.sides, strict=False):
            if kind != before:
                raise ValueError(
                    f"boundary {name} must be {KIND_TEXTS.get(before, before)} as when the state "
                    f"was saved, got {KIND_TEXTS.get(kind, kind)}"
                )
        super()._resume(state)
        self._begun, self._is_damped = state.begun, state.is_damped
        self._steps.forget()
        self._steps.restart()
        self._set_solution(state.u)
        self._operators.seconds.update(state.seconds)

    def _out_of_bounds(self) -> ConvergenceError:
        text = f"{self!r} is not finite after step {self.steps}"
        return ConvergenceError(text, self.result("diverged"))


def node_data(grid: Grid, name: str, value: Any, time: float, least: float = -np.inf) -> NodeData:
    """Return a quantity at the nodes of a grid."""
    return NodeData(name, value, *grid.places(), least=least, time=time, nodes=grid.nodes)


def initial_values(grid: Grid, initial: Any) -> NDArray[np.float64]:
    """Return the values at the start, which broadcast to the nodes."""
    if "t" in dependence("initial", initial, grid.names):
        raise TypeError(
            "initial must be a number, an array or a function of the coordinates; the function has "
            "the parameter t: leave t out, the start is at t = start_time"
        )
    return node_data(grid, "initial", initial, 0.0).at(0.0)
