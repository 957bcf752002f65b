"""Base class of the red-black relaxations: iterations, stop test, history, state."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from math import inf, isfinite
from time import perf_counter
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._checks import index, require, require_callable, require_finite
from .._counter import Counter
from .._errors import ConvergenceError, raise_for_status
from .._files import SavedFile, is_rising, read_npz, write_npz
from .._header import Check, count, elapsed, record, text
from .._options import check_choice, check_threads
from .._progress import IterationBar
from .._runtime import backends
from .._runtime.exclusive import Exclusive, exclusive, reading
from .._runtime.fp_mode import in_default_fp_mode
from .._runtime.state import count_of_a_call, make_state
from .._shown import ShownAsText, residual_text
from .._stall import Stall, checked_patience
from ..distributed import Layers
from ._colours import ColourGrid
from ._result import RelaxationHistory, RelaxationResult
from ._rows import SplitRows

__all__ = ["Relaxation", "Stop", "checked_dtype", "checked_relaxation", "field_arrays"]

_CHECKS = 1024  # checks of the stop test in one call of the backend
_EXPLOSION = 1e10  # growth of what is measured that means divergence

Criterion = Literal["residual", "change", "solution"]
Norm = Literal["max", "l2"]
Stop = tuple[int, int, int, float, NDArray[np.float64] | None, int, int]

_HEADER = {
    "iterations": count(),
    "criterion": text(),
    "norm": text(),
    "seconds": record({"set-up": elapsed, "iterations": elapsed}),
    "report": record({"kernel": text(), "threads": count()}),
}


class _Call(NamedTuple):
    """A call of the backend, as far as the meaning of what it measures depends on it.

    Attributes
    ----------
    known : int
        Number of measures before the call.
    before : int
        Number of iterations before the call.
    length, every : int
        Iterations of the call, and between two measurements.
    scale : float
        Factor of the measured values.
    """

    known: int
    before: int
    length: int
    every: int
    scale: float


class Relaxation(Exclusive, ShownAsText, ABC):
    """Iterations of a red-black relaxation; several calls give the same bits as one call.

    Parameters
    ----------
    grid : ColourGrid
        Storage order of the nodes.
    dtype : dtype
        Dtype of the fields.
    device : str or None
        As in `solve_tridiagonal`.
    threads : int or None
        Number of host threads; with None the backend chooses.
    fields : mapping of str to (shape, dtype)
        Operands of the backend in addition to ``u`` and ``history``.
    """

    _NAME: str  # name of the class, for messages
    _KIND: str  # kind of its files
    _NORM: str  # default norm
    _SETTINGS: ClassVar[Mapping[str, Check]]  # checks of the settings in the header of its files

    def __init__(
        self,
        grid: ColourGrid,
        dtype: Any,
        device: str | None,
        threads: int | None,
        fields: Mapping[str, tuple[tuple[int, ...], Any]],
    ) -> None:
        self._grid, self._dtype, self._device = grid, dtype, device
        self._rows: SplitRows | None = None  # those of this rank, with a group
        self._layers: Layers | None = None  # the rows of its neighbours
        self._left = 0  # iterations before they are exchanged
        self._threads = check_threads(threads)
        layout = {
            "u": (grid.shape, dtype),
            "history": ((_CHECKS,), np.dtype(float)),
            **fields,
        }
        self._state = make_state(layout, device, self._NAME)
        self._count = Counter()
        self._criterion, self._norm = "residual", self._NORM
        self._measures: list[tuple[int, float]] = []
        self._last_call: _Call | None = None
        self._seconds = {"set-up": 0.0, "iterations": 0.0}
        self._report: dict[str, Any] = {"kernel": "", "threads": 0}

    @abstractmethod
    def _call(self, count: int, stop: Stop, made: NDArray[np.int64]) -> tuple[int, Any]:
        """Iterate on the backend; return status and report."""

    @abstractmethod
    def _describe(self) -> dict[str, Any]:
        """Return u, x, y, title, relaxation and method of a result."""

    @abstractmethod
    def _facts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return facts and arrays from which this object can be created again."""

    @classmethod
    @abstractmethod
    def _again(
        cls, facts: dict[str, Any], saved: SavedFile
    ) -> tuple[Self, dict[str, NDArray[Any]]]:
        """Create an object from its facts and arrays; return it and all arrays of the file."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Shape of the solution."""

    @property
    def _backend(self) -> Any:
        return backends.require(backends.parse_device(self._device)[0])

    @property
    def _expected_patience(self) -> int:
        """Iterations without progress after which something is wrong; 0 if it is not known."""
        return 0

    @property
    def _advice(self) -> str:
        """What else helps an iteration that has stalled: the end of a message."""
        return ""

    def _scale(self, criterion: str, norm: str) -> float:
        """Return the factor by which the values measured by the backend are multiplied."""
        del criterion, norm
        return 1.0

    @property
    def iterations(self) -> int:
        """Number of iterations since the start."""
        return self._count.value

    @property
    def residual(self) -> float:
        """Last measured value; infinite before the first measurement.

        It is measured by the criterion and norm of the last `solve`. By default it is the norm
        of the residuals of the nodes immediately before their relaxation.
        """
        self._take_measures()
        return self._measures[-1][1] if self._measures else inf

    @property
    def seconds(self) -> dict[str, float]:
        """Time spent in set-up and iterations."""
        return dict(self._seconds)

    def __repr__(self) -> str:
        kind = f"{self._NAME}({self.shape}, dtype={self._dtype.name})"
        return f"{kind}: {self.iterations} iterations{residual_text(self.residual)}"

    @exclusive
    def iterate(self, count: int) -> Self:
        """Make `count` iterations; several calls give the same bits as one call.

        Parameters
        ----------
        count : int
            Number of iterations; at least 0.

        Returns
        -------
        self : object
            This object.

        Raises
        ------
        ConvergenceError
            If the iteration diverged. The state is not reset.
        RuntimeError
            If another call is in progress that changes the solver: of another thread, or of the
            callback that calls this method.
        """
        count = index("count", count, 0)
        if count and self._advance(count, every=count, tolerance=-1.0) == "not finite":
            raise self._diverged()
        return self

    @exclusive
    def solve(
        self,
        tol: float = 1e-8,
        *,
        norm: Norm | None = None,
        criterion: Criterion = "residual",
        max_iterations: int = 100_000,
        callback: Callable[[Self], Any] | None = None,
        check_every: int = 1,
        patience: int | None = None,
        progress: bool | None = None,
    ) -> RelaxationResult:
        """Iterate until the measured value is at most `tol`.

        The stop test is evaluated during the iterations, also on a device, so that the
        iteration stops at the first measured iteration that satisfies it.

        Parameters
        ----------
        tol : float, default: 1e-8
            Upper bound of the measured value; not negative.
        norm : {'max', 'l2'}, optional
            Largest absolute value or root mean square over the nodes; the default depends on
            the class.
        criterion : {'residual', 'change', 'solution'}, default: 'residual'
            Value measured at each node: its residual immediately before its relaxation, its
            change in the iteration, or its new value.
        max_iterations : int, default: 100000
            Largest number of iterations of this call.
        callback : callable, optional
            Called with this object after each measured iteration, of which the last one is one; a
            true return value ends the iteration.
        check_every : int, default: 1
            Number of iterations between two measurements. The last iteration of a call is
            always measured.
        patience : int, optional
            Largest number of iterations in which the smallest measured value does not fall by
            10 %; then the iteration ends with an error. By default the larger of 5000 and the
            square of the longer side in nodes; `RedBlackSOR` waits at least 12/(1 - r) iterations,
            with the factor r by which it expects the error to fall in an iteration. It does not
            apply to the criterion ``'solution'``.
        progress : bool, optional
            Whether to show a progress bar with the time left. By default it is shown in a
            terminal and in a notebook after a second, if tqdm is installed.

        Returns
        -------
        result : RelaxationResult
            The converged state, or the state at which `callback` ended the iteration.

        Raises
        ------
        TypeError, ValueError
            If an argument is out of its range.
        ConvergenceError
            If the tolerance was not reached, the measured value stalled, or the iteration
            diverged. The state is not reset; the attribute ``result`` of the error contains a
            copy and the history.
        RuntimeError
            As in `iterate`.
        """
        require_finite("tol", tol)
        require(tol >= 0, "tol must not be negative", tol)
        require_callable("callback", callback)
        most = index("max_iterations", max_iterations, 1)
        every = index("check_every", check_every, 1)
        self._measure_by(criterion, norm)
        end, known = self.iterations + most, len(self._measures)
        # Of the whole grid, so that all ranks make the same calls.
        nx, ny = self._grid.nx, self._grid.ny if self._rows is None else self._rows.total
        checks = count_of_a_call(_CHECKS, nx * ny * every, self._device)
        chunk = every if callback is not None else every * checks
        usual = max(max(nx, ny) ** 2, self._expected_patience)
        stall = Stall(checked_patience(patience, usual), self.iterations)
        if self._rows is not None and self._rows.group.rank > 0:
            progress = False
        with IterationBar(progress, self._NAME, total=most, goal=tol) as bar:
            while self.iterations < end:
                before, have = self.iterations, len(self._measures)
                outcome = self._advance(min(chunk, end - before), every, tol)
                bar.update(self.iterations - before, self.residual)
                is_last = outcome == "tolerance" or self.iterations == end
                ends = callback is not None and callback(self) and not is_last
                if outcome == "tolerance":
                    return self.result("converged")
                first = next((m for _, m in self._measures[known : known + 1] if m), inf)
                if outcome == "not finite" or self.residual > _EXPLOSION * first:
                    raise self._diverged()
                if ends:
                    return self.result("callback")
                lowest = min(measure for _, measure in self._measures[have:])
                if criterion != "solution" and stall.is_over(self.iterations, lowest):
                    raise ConvergenceError(
                        f"{self!r}, did not converge: {stall.text(self.residual)}: the tolerance "
                        f"{tol:g} can be below the rounding errors; take a larger one, or a larger "
                        f"patience{self._advice}",
                        self.result("stalled"),
                    )
        raise ConvergenceError(
            f"{self!r}, did not converge: tolerance {tol:g} not reached in {most} iterations"
            f"{self._advice}",
            self.result("max_iterations"),
        )

    @reading
    def result(self, stop_reason: str = "running") -> RelaxationResult:
        """Return a copy of the current state as a result.

        Parameters
        ----------
        stop_reason : str, default: 'running'
            Reason of the end of the iteration, for the result.

        Returns
        -------
        result : RelaxationResult
            Copies of the solution, history and timings.

        Raises
        ------
        RuntimeError
            If another thread is in a call that changes the solver.
        """
        self._take_measures()
        table = np.array(self._measures, float).reshape(-1, 2)
        return RelaxationResult(
            **self._describe(),
            iterations=self.iterations,
            residual=self.residual,
            criterion=self._criterion,
            norm=self._norm,
            stop_reason=stop_reason,
            history=RelaxationHistory(table[:, 0].astype(np.int64), table[:, 1].copy()),
            seconds=self.seconds,
            unknowns=self._grid.nx * self._grid.ny,
            backend=self._backend.NAME,
            kernel=str(self._report["kernel"]),
            threads=int(self._report["threads"]),
            exchange=self._exchange,
        )

    def _connect(self) -> None:
        """Find how the rows of the neighbours travel, if there is a group; collective."""
        if self._rows is not None:
            like = np.broadcast_to(np.empty((), self._dtype), self._grid.shape)
            self._layers, self._left = self._rows.layers(self._state, like), self._rows.depth

    @property
    def _exchange(self) -> str:
        """How the ranks exchange rows."""
        if self._rows is None or self._rows.group.size == 1:
            return "none"
        assert self._layers is not None
        return self._layers.way

    @reading
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, from which `load` continues with the same bits.

        Parameters
        ----------
        path : path-like
            The npz file; its name is not changed. It is written completely or not at all.

        Raises
        ------
        OSError
            If the file cannot be written.
        RuntimeError
            If another thread is in a call that changes the solver.
        """
        if self._rows is not None:
            raise ValueError("save needs the whole field: gather() it")
        self._take_measures()
        facts, arrays = self._facts()
        state = {
            "iterations": self.iterations,
            "criterion": self._criterion,
            "norm": self._norm,
            "seconds": self._seconds,
            "report": self._report,
        }
        measures = np.array(self._measures, float).reshape(-1, 2)
        state_arrays = {"state": self._grid.unpack(self._state.get("u")), "measures": measures}
        write_npz(path, self._KIND, {"settings": facts, **state}, {**arrays, **state_arrays})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a state that `save` wrote.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        solver : object
            A solver in the saved state.

        Raises
        ------
        ValueError
            If the file is not a state of this class, is damaged or was changed; the message
            names the file and the error.
        """
        saved = read_npz(path, cls._KIND)
        facts = saved.header({"settings": record(cls._SETTINGS), **_HEADER})
        self, arrays = cls._again(facts["settings"], saved)
        with saved.naming("header"):
            self._measure_by(facts["criterion"], facts["norm"])
        measures = arrays["measures"]
        made = measures[:, 0]
        saved.require(
            is_rising(made, facts["iterations"]),
            "member 'measures'",
            "the first column must hold rising integers up to the number of iterations",
        )
        self._state.set("u", self._grid.pack(arrays["state"], self._dtype))
        self._count = Counter(facts["iterations"])
        self._measures = [(int(n), measure) for n, measure in measures.tolist()]
        self._seconds, self._report = facts["seconds"], facts["report"]
        return self

    def _measure_by(self, criterion: str, norm: str | None) -> None:
        """Set criterion and norm; a change clears the history."""
        norm = self._NORM if norm is None else norm
        check_choice("criterion", criterion, self._backend.CRITERIA)
        check_choice("norm", norm, self._backend.NORMS)
        self._take_measures()
        self._last_call = None
        if (criterion, norm) != (self._criterion, self._norm):
            self._measures.clear()
        self._criterion, self._norm = criterion, norm

    @in_default_fp_mode
    def _advance(self, count: int, every: int, tolerance: float) -> str:
        """Iterate until the stop test is satisfied; return the backend's reason for the end."""
        if self._rows is not None:
            return self._advance_rows(self._rows, count, every, tolerance)
        codes = self._backend.CRITERIA[self._criterion], self._backend.NORMS[self._norm]
        scale = self._scale(self._criterion, self._norm)
        stop = (*codes, every, tolerance / scale, self._state.operand("history"), 0, 0)
        self._take_measures()
        self._last_call = _Call(len(self._measures), self.iterations, count, every, scale)
        start = perf_counter()
        try:
            status, report = self._call(count, stop, self._count.begin())
        finally:
            self._take_measures()
            self._last_call = None
            self._seconds["iterations"] += perf_counter() - start
        raise_for_status(status, self._backend.STATUS, self._NAME)
        self._report = {name: report[name] for name in ("kernel", "threads")}
        return str(report["end"])

    def _take_measures(self) -> None:
        """Add what the last call has measured to the history, once.

        After an interrupt of the call there is no report, but the measured values are valid; after
        an interrupt here the next call, also of `result` and `save`, adds them.
        """
        last = self._last_call
        if last is None:
            return
        before, every = last.before, last.every
        made = self.iterations - before
        measured = made // every + (made == last.length and made % every != 0)
        values = self._state.get("history")[:measured].tolist()
        numbers = [min(before + n * every, before + made) for n in range(1, measured + 1)]
        found = [(n, value * last.scale) for n, value in zip(numbers, values, strict=True)]
        self._measures[last.known :] = found

    def _advance_rows(self, rows: SplitRows, count: int, every: int, tolerance: float) -> str:
        """Do what `_advance` does for the rows of this rank; collective."""
        codes = self._backend.CRITERIA[self._criterion], self._backend.NORMS[self._norm]
        scale = self._scale(self._criterion, self._norm)
        start, made, bound, value = perf_counter(), 0, tolerance / scale, inf
        with rows.group.agreement(self._NAME) as agreed:
            agreed.same = {
                "number of iterations": (self.iterations, count, every),
                "stop test": (tolerance, self._criterion, self._norm),
            }
        assert self._layers is not None
        while made < count:
            # Up to the next measured iteration or exchange.
            measured = min(count, (made // every + 1) * every)
            number = min(measured - made, self._left)
            is_measured = made + number == measured
            stop = (*codes, number if is_measured else 0, -1.0, None, *rows.counted)
            status, report = self._call(number, stop, self._count.begin())
            raise_for_status(status, self._backend.STATUS, self._NAME)
            self._report = {name: report[name] for name in ("kernel", "threads")}
            made, self._left = made + number, self._left - number
            if self._left == 0:
                self._layers.refresh("u")
                self._left = rows.depth
            if not is_measured:
                continue
            value = rows.join(report["measure"], self._norm)
            self._measures.append((self.iterations, scale * value))
            if not isfinite(value) or value <= bound:
                break
        self._seconds["iterations"] += perf_counter() - start
        if not isfinite(value):
            return "not finite"
        return "tolerance" if value <= bound else "count"

    @reading
    def gather(self) -> NDArray[Any] | None:
        """Return the whole solution; with a group on rank 0, None on the other ranks.

        With a group, all ranks call this function.

        Raises
        ------
        RuntimeError
            If another thread is in a call that changes the solver.
        """
        own = self._describe()["u"]
        if self._rows is None:
            return own
        return self._rows.group.gather(self._NAME, own, 0)

    def _diverged(self) -> ConvergenceError:
        text = f"{self!r}, did not converge: the measured value grew to {self.residual:.1e}"
        return ConvergenceError(text, self.result("diverged"))


def checked_dtype(dtype: DTypeLike) -> Any:
    """Return float32 or float64, or raise."""
    found = np.dtype(dtype)
    if found not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise TypeError(f"dtype must be float32 or float64, got {found}")
    return found


def checked_relaxation(name: str, value: Any, names: tuple[str, ...]) -> None:
    """Raise unless `value` is one of `names`, or a number between 0 and 2."""
    if isinstance(value, str):
        require(value in names, f"{name} must be a number or one of {', '.join(names)}", value)
        return
    require_finite(name, value)
    require(0 < value < 2, f"{name} must lie between 0 and 2", value)


def field_arrays(
    saved: SavedFile,
    shape: tuple[int, int],
    dtype: str,
    inside: Sequence[str],
    framed: Sequence[str],
    **others: tuple[int, ...],
) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file after checks of their shapes, dtypes and values.

    Parameters
    ----------
    saved : SavedFile
        The file.
    shape : tuple of int
        (ny, nx), the nodes or cells inside the boundary.
    dtype : str
        Dtype of the solution.
    inside : sequence of str
        Members that broadcast to `shape`.
    framed : sequence of str
        Members with the shape of the nodes, boundary included.
    **others : tuple of int
        Shapes of further members.
    """
    with saved.naming("header"):
        real = checked_dtype(dtype)
    ny, nx = shape
    frame = ny + 2, nx + 2
    arrays = saved.arrays(
        {
            **dict.fromkeys(inside, ((None, None), np.float64)),
            **dict.fromkeys(framed, (frame, np.float64)),
            **{name: (others[name], np.float64) for name in others},
            "state": (frame, real),
            "measures": ((None, 2), np.float64),
        }
    )
    for name in inside:
        fits = all(size in (1, n) for size, n in zip(arrays[name].shape, shape, strict=True))
        rule = f"it must broadcast to {shape}, got shape {arrays[name].shape}"
        saved.require(fits, f"member {name!r}", rule)
    for name in (*inside, *framed, *others):
        finite = bool(np.isfinite(arrays[name]).all())
        saved.require(finite, f"member {name!r}", "it must be finite")
    return arrays
