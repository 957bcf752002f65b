"""Choice of the pseudo-time step while an iteration runs."""

from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import Literal

from ..._solver.schema import AnyFloat, Positive

INTERVAL = 20
"""Iterations between two decisions."""

_FIRST = 0.01
_LARGEST = 0.5
_SMALLEST = 2e-3
_GAIN = 0.05
_GROWTH = 1.25
_RECOVERY = 1.01
_PATIENCE = 50
_EXPLOSION = 1e3

Verdict = Literal["best", "go on", "step back", "give up"]


@dataclass(slots=True)
class StepControl:
    r"""Step of an iteration in pseudo time, from the residual it has reached.

    Far from the steady state the step follows the transient, near it the step grows:

    .. math:: \Delta t = \min(0.05 / \sqrt{R},\ 1.25\, \Delta t_{old},\ \Delta t_{cap})

    (switched evolution relaxation, after Mulder and van Leer 1985). The cap falls to half
    the step when no residual has been the lowest for 50 decisions, and to half the step
    of the best state when the residual explodes, which also takes the iteration back to
    that state; it recovers by 1 % a decision.

    Attributes
    ----------
    limit : float
        Largest step that pays; see `largest_useful_step`.
    step : float
        Current step, in units of side over lid speed.
    cap : float
        What the step may not pass at present.
    best : float
        Lowest residual so far.
    best_step : float
        The step that led there.
    waiting : int
        Decisions since then.
    fixed : bool
        Whether the step is given and stays.
    """

    limit: Positive
    step: Positive
    cap: Positive
    best: AnyFloat = inf
    best_step: Positive = _FIRST
    waiting: int = 0
    fixed: bool = False

    @classmethod
    def start(cls, reynolds: float, spacing: float, step: float | None) -> "StepControl":
        """Return the control of a new run; a `step` that is not None stays fixed."""
        if step is not None:
            return cls(limit=step, step=step, cap=step, best_step=step, fixed=True)
        limit = largest_useful_step(reynolds, spacing)
        return cls(limit=limit, step=min(_FIRST, limit), cap=limit)

    def judge(self, residual: float) -> Verdict:
        """Choose the next step from the residual, and say what becomes of the state."""
        if not isfinite(residual) or residual > _EXPLOSION * self.best:
            return self._step_back()
        verdict: Verdict = "best" if residual <= self.best else "go on"
        if verdict == "best":
            self.best, self.best_step, self.waiting = residual, self.step, 0
        else:
            self.waiting += 1
        if not self.fixed:
            self._choose(residual)
        return verdict

    def _step_back(self) -> Verdict:
        """Halve the step and its bound; give up if the step cannot become shorter."""
        self.cap = self.step = min(self.step, self.best_step) / 2
        self.waiting = 0
        return "give up" if self.fixed or self.step < 1e-3 * self.limit else "step back"

    def _choose(self, residual: float) -> None:
        """Choose the next step: longer as the residual falls, shorter after a long stall."""
        smallest = min(_SMALLEST, self.limit)
        if self.waiting > _PATIENCE:
            self.cap, self.waiting = max(self.step / 2, smallest), 0
        self.cap = min(self.cap * _RECOVERY, self.limit)
        wanted = min(_GAIN / sqrt(residual), self.step * _GROWTH) if residual else self.limit
        self.step = min(max(wanted, smallest), self.cap)


def largest_useful_step(reynolds: float, spacing: float) -> float:
    r"""Return the step beyond which an iteration of the cavity gains nothing.

    The slowest diffusive mode needs about :math:`1/(50\, \Delta t/Re)` iterations, the
    relaxed walls about :math:`2 \sqrt{\Delta t/Re}/h`; the two are equal at
    :math:`\Delta t = Re\, (h/100)^{2/3}`. Convection bounds the step by 0.5.
    """
    diffusive: float = reynolds * (spacing / 100) ** (2 / 3)
    return min(_LARGEST, diffusive)
