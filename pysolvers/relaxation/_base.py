"""What all red-black relaxations share: iterations, stop test, history, state."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from math import inf
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._checks import index, require, require_callable, require_finite
from .._counter import Counter
from .._errors import ConvergenceError, raise_for_status
from .._files import SavedFile, is_rising, read_npz, write_npz
from .._header import Check, count, number, record, text
from .._options import check_choice, check_threads
from .._progress import IterationBar
from .._runtime import backends
from .._runtime.state import make_state
from ._colours import ColourGrid
from ._result import RelaxationHistory, RelaxationResult

__all__ = ["Relaxation", "Stop", "checked_dtype", "checked_relaxation", "field_arrays"]

_CHECKS = 1024  # checks of the stop test in one call of the backend
_EXPLOSION = 1e10  # growth of what is measured that means divergence

Stop = tuple[int, int, int, float, NDArray[np.float64]]

_HEADER = {
    "iterations": count(),
    "criterion": text(),
    "norm": text(),
    "seconds": record({"set-up": number(), "iterations": number()}),
    "report": record({"kernel": text(), "threads": count()}),
}


class Relaxation(ABC):
    """Iterations of a red-black relaxation; any split into calls gives the same bits.

    Parameters
    ----------
    grid : ColourGrid
        Where the nodes lie.
    dtype : dtype
        Of the fields.
    device : str or None
        As in `solve_tridiagonal`.
    threads : int or None
        Threads; None leaves them to the backend.
    fields : mapping of str to (shape, dtype)
        Operands of the backend beside ``u`` and ``history``.
    """

    _NAME: str  # of the class, for messages
    _KIND: str  # of its files
    _NORM: str  # by default
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
        self._seconds = {"set-up": 0.0, "iterations": 0.0}
        self._report: dict[str, Any] = {"kernel": "", "threads": 0}

    @abstractmethod
    def _call(self, count: int, stop: Stop, made: NDArray[np.int64]) -> tuple[int, Any]:
        """Let the backend iterate; return status and report."""

    @abstractmethod
    def _describe(self) -> dict[str, Any]:
        """Return u, x, y, title, relaxation and method of a result."""

    @abstractmethod
    def _facts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what makes this object again: facts and arrays."""

    @classmethod
    @abstractmethod
    def _again(
        cls, facts: dict[str, Any], saved: SavedFile
    ) -> tuple[Self, dict[str, NDArray[Any]]]:
        """Make an object from its facts and arrays; return all arrays of the file, too."""

    @property
    def _backend(self) -> Any:
        return backends.require(backends.parse_device(self._device)[0])

    def _scale(self, criterion: str, norm: str) -> float:
        """Return what the measures of the backend are multiplied by."""
        del criterion, norm
        return 1.0

    @property
    def iterations(self) -> int:
        """Iterations from the start to this state."""
        return self._count.value

    @property
    def residual(self) -> float:
        """The last measure; infinite at first.

        By the criterion and norm of the last `solve`: by default the norm of the residuals
        that the nodes met just before they were relaxed.
        """
        return self._measures[-1][1] if self._measures else inf

    @property
    def seconds(self) -> dict[str, float]:
        """Time spent in set-up and iterations."""
        return dict(self._seconds)

    def __repr__(self) -> str:
        return f"{self._NAME}: {self.iterations} iterations, residual {self.residual:.1e}"

    def iterate(self, count: int) -> Self:
        """Make iterations; any split into calls gives the same bits.

        Parameters
        ----------
        count : int
            How many; at least 0.

        Returns
        -------
        self : object
            For chaining.

        Raises
        ------
        ConvergenceError
            If the iteration diverged. The state stays as it is.
        """
        count = index("count", count, 0)
        if count and self._advance(count, every=count, tolerance=-1.0) == "not finite":
            raise self._diverged()
        return self

    def solve(
        self,
        tol: float = 1e-8,
        *,
        norm: str | None = None,
        criterion: str = "residual",
        max_iterations: int = 100_000,
        callback: Callable[[Self], Any] | None = None,
        check_every: int = 1,
        progress: bool | None = None,
    ) -> RelaxationResult:
        """Iterate until what is measured is at most `tol`.

        The stop test runs with the iterations, on a device too, so that their number is
        exact.

        Parameters
        ----------
        tol : float, default: 1e-8
            Bound of the measure; not negative.
        norm : {'max', 'l2'}, optional
            Largest absolute value or root mean square over the nodes; by default what the
            class says.
        criterion : {'residual', 'change', 'solution'}, default: 'residual'
            What is measured at a node: the residual that it meets just before it is
            relaxed, its change in the iteration, or its new value.
        max_iterations : int, default: 100000
            Iterations of this call at most.
        callback : callable, optional
            Called with this object after each measured iteration; a true answer ends the
            iteration.
        check_every : int, default: 1
            Iterations from one measured iteration to the next; the last one of a call is
            measured, too.
        progress : bool, optional
            Whether to show a progress bar on stderr; by default if that is a terminal
            and tqdm is installed.

        Returns
        -------
        result : RelaxationResult
            The converged state, or that at which `callback` ended it.

        Raises
        ------
        TypeError, ValueError
            If an argument is out of its range.
        ConvergenceError
            If the tolerance was not reached, or the iteration diverged. The state stays
            as it is; ``result`` of the error holds a copy, and the history.
        """
        require_finite("tol", tol)
        require(tol >= 0, "tol must not be negative", tol)
        require_callable("callback", callback)
        most = index("max_iterations", max_iterations, 1)
        every = index("check_every", check_every, 1)
        self._measure_by(criterion, norm)
        end, known = self.iterations + most, len(self._measures)
        chunk = every if callback is not None else every * _CHECKS
        with IterationBar(progress, self._NAME) as bar:
            while self.iterations < end:
                before = self.iterations
                outcome = self._advance(min(chunk, end - before), every, tol)
                bar.update(self.iterations - before, self.residual)
                if outcome == "tolerance":
                    return self.result("converged")
                first = next((m for _, m in self._measures[known : known + 1] if m), inf)
                if outcome == "not finite" or self.residual > _EXPLOSION * first:
                    raise self._diverged()
                if callback is not None and callback(self):
                    return self.result("callback")
        raise ConvergenceError(
            f"{self!r} did not converge: tolerance {tol:g} not reached in {most} iterations",
            self.result("max_iterations"),
        )

    def result(self, stop_reason: str = "running") -> RelaxationResult:
        """Return the state now as a result of its own.

        Parameters
        ----------
        stop_reason : str, default: 'running'
            What the result says of the end of the iteration.

        Returns
        -------
        result : RelaxationResult
            Copies of the solution, history and timings.
        """
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
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state, so that `load` goes on with the same bits.

        Parameters
        ----------
        path : path-like
            An npz file of exactly this name, written whole or not at all.
        """
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
            Where the saved one was.

        Raises
        ------
        ValueError
            If the file holds something else, is damaged or was edited; the message names the
            file and what is wrong.
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
        """Choose what is measured; a history of other measures ends."""
        norm = self._NORM if norm is None else norm
        check_choice("criterion", criterion, self._backend.CRITERIA)
        check_choice("norm", norm, self._backend.NORMS)
        if (criterion, norm) != (self._criterion, self._norm):
            self._measures.clear()
        self._criterion, self._norm = criterion, norm

    def _advance(self, count: int, every: int, tolerance: float) -> str:
        """Iterate until the stop test ends it; return why the backend did."""
        codes = self._backend.CRITERIA[self._criterion], self._backend.NORMS[self._norm]
        scale = self._scale(self._criterion, self._norm)
        stop = (*codes, every, tolerance / scale, self._state.operand("history"))
        start, before, known = perf_counter(), self.iterations, len(self._measures)
        try:
            status, report = self._call(count, stop, self._count.begin())
        finally:
            # An interrupt takes the report, but not the measures.
            made = self.iterations - before
            measured = made // every + (made == count and made % every != 0)
            values = self._state.get("history")[:measured].tolist()
            numbers = [min(before + n * every, before + made) for n in range(1, measured + 1)]
            found = [(n, value * scale) for n, value in zip(numbers, values, strict=True)]
            self._measures[known:] = found
            self._seconds["iterations"] += perf_counter() - start
        raise_for_status(status, self._backend.STATUS, self._NAME)
        self._report = {name: report[name] for name in ("kernel", "threads")}
        return str(report["end"])

    def _diverged(self) -> ConvergenceError:
        text = f"{self!r} did not converge: it grew to {self.residual:.1e}"
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
        (ny, nx), the nodes or cells inside the frame.
    dtype : str
        Of the solution.
    inside : sequence of str
        Members that broadcast to `shape`.
    framed : sequence of str
        Members with the shape of the nodes and the frame.
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
