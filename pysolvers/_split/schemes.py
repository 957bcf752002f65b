r"""Schemes that split an operator along the axes, with the explicit part F_0.

With s = dt, F = F_0 + ... + F_k, and U the solution at t_0, the first sweep of all schemes is

    Y_0 = U + s F(t_0, U),    Y_j = Y_{j-1} + theta s (F_j(t_1, Y_j) - F_j(t_0, U)).

`douglas` ends with Y_k. The others correct Y_0 and make a second sweep for Z_j,

    craig-sneyd           Z_0 = Y_0 + 1/2 s (F_0(t_1, Y_k) - F_0(t_0, U))
    modified-craig-sneyd  Z_0 = Y_0 + theta s (F_0(t_1, Y_k) - F_0(t_0, U))
                                    + (1/2 - theta) s (F(t_1, Y_k) - F(t_0, U))
    hundsdorfer-verwer    Z_0 = Y_0 + 1/2 s (F(t_1, Y_k) - F(t_0, U))

with Z_j = Z_{j-1} + theta s (F_j(t_1, Z_j) - F_j(t_0, U)), for Hundsdorfer and Verwer with Y_k at
t_1 instead of U at t_0. The code solves for differences, D_j = Y_j - U:

    (1 - theta s A_j) D_j = D_{j-1} + theta s (F_j(t_1, U) - F_j(t_0, U)),

whose last term vanishes where F_j does not depend on time. One sweep is one evaluation of F, one
solve along each axis, and a sum. Each evaluation and each sum is one pass over its fields, in which
the linear combinations of a scheme are formed, by the kernel of ``ps_rates.h``.
Words moved per unknown with coefficients that do not depend on the place, n axes:

    douglas    2 + 2 n + 3: F of u, the solves in place, the sum
               4 + 2 n on devices but at the last step of a call: the sum and F of it in one pass
    others     3 + 2 n + 4 + 2 n + 3, hundsdorfer-verwer 4 at the end

and 3 for each axis in each evaluation of F and each solve, where coefficients depend on the place,
and 1 for each mixed derivative in each evaluation.

Order 2: the last two for any theta; Craig and Sneyd's for theta = 1/2; Douglas' for theta = 1/2 and
without F_0. Sources: J. Douglas, Numer. Math. 4 (1962) 41-63; I. J. D. Craig and A. D. Sneyd,
Comput. Math. Appl. 16 (1988) 341-350; W. Hundsdorfer, Appl. Numer. Math. 42 (2002) 213-233; K. J.
in 't Hout and B. D. Welfert, Appl. Numer. Math. 59 (2009) 677-692.

The damped start replaces the first step by two half-steps h of

    (1 - h A_1) ... (1 - h A_k) V = U + h (F_0(t_0, U) + sum_j g_j(t_1)),

of order 1 each and of 2 in all (R. Rannacher, Numer. Math. 43 (1984) 309-327). The product damps
waves that are short along any axis; that of the schemes above does not damp those that are short
along two.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, Generic, Literal, Protocol, TypeVar, get_args

from .lines import Field, Weights

Scheme = Literal["douglas", "craig-sneyd", "modified-craig-sneyd", "hundsdorfer-verwer"]

SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
LABELS: dict[str, str] = {
    "douglas": "Douglas",
    "craig-sneyd": "Craig-Sneyd",
    "modified-craig-sneyd": "modified Craig-Sneyd",
    "hundsdorfer-verwer": "Hundsdorfer-Verwer",
}

DAMPED = 1
"""Steps of a damped start."""

_HALVES = 2


def default_theta(scheme: str, axes: int, *, has_explicit: bool) -> float:
    """Return theta of a scheme.

    The smallest one for which the scheme is stable for diffusion with mixed derivatives for any
    step (In 't Hout and Welfert 2009); for Hundsdorfer and Verwer's that for which it is stable
    with advection as well (In 't Hout and Welfert 2007).
    """
    if scheme == "douglas":
        return 2 / 3 if axes == 3 and has_explicit else 0.5
    if scheme == "craig-sneyd":
        return 0.5
    if scheme == "modified-craig-sneyd":
        return 6 / 13 if axes == 3 else 1 / 3
    return 0.5 + sqrt(3) / 6


class Operators(Protocol):
    """What steps need of the parts of an equation; `LineOperators` has all of it.

    The parts of `HeatADI` lack F_0, values of a level and what a damped start needs: they set given
    values themselves, line by line.
    """

    @property
    def has_explicit(self) -> bool:
        """Whether there is a part F_0."""

    @property
    def axes(self) -> int:
        """Number of axes of space."""

    @property
    def adds_with_rate(self) -> bool:
        """Whether a sum and F of it are faster in one pass than in two."""

    def zeros(self) -> Field:
        """Return a field of zeros."""

    def level(self, time: float, before: Any = None) -> Any:
        """Return what the equation prescribes at a time, which has `time` and `values`."""

    def combine(
        self, level: Any, u: Field, d: Field | None, outs: Sequence[tuple[Field, Weights]]
    ) -> None:
        """Set fields to linear combinations of their values, F of u + d, d and u."""

    def add_change(self, old: Any, new: Any, axis: int, h: float, u: Field, out: Field) -> None:
        """Add h times the difference of F along an axis, of the same u at two times."""

    def solve(
        self, level: Any, axis: int, h: float, field: Field, *, is_clear: bool = False
    ) -> None:
        """Solve with 1 - h A along an axis, in place.

        With `is_clear` the field is 0 at the nodes with given values.
        """

    def place(self, level: Any, u: Field) -> None:
        """Set the nodes with given values."""

    def keeps_values(self, old: Any, new: Any) -> bool:
        """Return whether given values are those of u at both times; then `add` is there, too."""

    def add(self, u: Field, d: Field, out: Field, own: float = 0.0) -> None:
        """Set a field to u + d + own times its values at all nodes."""


O_co = TypeVar("O_co", bound=Operators, covariant=True)


class SplitSteps(Generic[O_co]):
    """Steps of a scheme, with the fields that they need.

    Parameters
    ----------
    operators : Operators
        The parts of the equation.
    scheme : str
        One of `SCHEMES`.
    theta : float
        Its parameter.
    """

    def __init__(self, operators: O_co, scheme: str, theta: float) -> None:
        self.operators, self._scheme, self._theta = operators, scheme, theta
        # Without F_0 the second sweep of Craig and Sneyd solves the equations of the first one.
        self._is_single = scheme == "douglas" or (
            scheme == "craig-sneyd" and not operators.has_explicit
        )
        names = ("change",) if self._is_single else ("change", "start")
        self._work: dict[str, Field] = {name: self.zeros() for name in names}
        self._next: Field | None = None  # where the solution is written, if given values stay
        self._clear = set(names)  # fields that are 0 at nodes with given values
        self._level: Any = None
        self._values: Any = None  # those that the fields `u` and `_next` have at given nodes
        # The solution, the level and dt for which `change` is dt F already; and a field for that
        # of the next step.
        self._ahead: tuple[Field, Any, float] | None = None
        self._spare: Field | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy, which makes a level of its own."""
        return {**self.__dict__, "_level": None, "_ahead": None}

    def zeros(self) -> Field:
        """Return a field of zeros."""
        return self.operators.zeros()

    def restart(self) -> None:
        """Take a new solution: what a failed step left at nodes with given values is cleared."""
        self._clear.clear()
        self._ahead = self._values = self._spare = None

    def forget(self) -> None:
        """Forget the level of the last step: the time was changed."""
        self._level = self._ahead = None

    def level_at(self, time: float) -> Any:
        """Return the level at a time, made of that of the last step where it can be."""
        if self._level is None or self._level.time != time:
            self._level = self.operators.level(time, self._level)
        return self._level

    def initial_rate(self, time: float, u: Field) -> float:
        """Return the largest magnitude of F."""
        rate, level, self._ahead = self._work["change"], self.level_at(time), None
        self._place_nothing(level, rate)
        self.operators.combine(level, u, None, [(rate, Weights(1.0, 1.0))])
        return float(abs(rate).max())

    def step(self, u: Field, time: float, end: float, dt: float, *, goes_on: bool = False) -> Field:
        """Return the solution after a step from u: a field that is not u.

        The field u is used by the next step, so that u can be exchanged for the result. With
        `goes_on` that step has the same dt and begins at the result, which is not changed before.
        """
        old, ahead, self._ahead = self.level_at(time), self._ahead, None
        new = self.operators.level(end, old)
        is_kept = self.operators.keeps_values(old, new)
        if self._is_single:
            name, change = "change", self._work["change"]
            if ahead is None or ahead[0] is not u or ahead[1] is not old or ahead[2] != dt:
                self.operators.combine(old, u, None, [(change, Weights(dt, dt))])
            self._place_change(new, u, name, is_kept=is_kept)
            self._sweep(old, new, dt, u, change, is_clear=is_kept)
        else:
            name = "start"
            self._correct(old, new, dt, u, is_kept=is_kept)
        self._level = new
        is_whole = not self._is_single and self._scheme == "hundsdorfer-verwer"
        if is_kept and not is_whole:
            found = self.zeros() if self._next is None else self._next
            if goes_on and self._goes_on(new):
                self._add_and_go_on(new, dt, u, found)
            else:
                self.operators.add(u, self._work[name], found)
            self._next, self._values = u, new.values
            return found
        if not is_whole:
            own = Weights(own=1.0, base=1.0)
            self.operators.combine(new, u, None, [(self._work[name], own)])
        found, self._work[name] = self._work[name], u
        self._clear.discard(name)
        if not is_kept:
            self.operators.place(new, found)
        return found

    def _goes_on(self, level: Any) -> bool:
        """Return whether the pass that adds the change makes F of the next step."""
        return self._is_single and self.operators.adds_with_rate and self._values is level.values

    def _add_and_go_on(self, level: Any, dt: float, u: Field, found: Field) -> None:
        """Set the solution at the free nodes to u + change, and `change` to dt F of it, at once."""
        change = self._work["change"]
        rate = self.zeros() if self._spare is None else self._spare
        total = Weights(change=1.0, base=1.0)
        self.operators.combine(level, u, change, [(found, total), (rate, Weights(dt, dt))])
        self._work["change"], self._spare = rate, change
        self._ahead = found, level, dt

    def _correct(self, old: Any, new: Any, dt: float, u: Field, *, is_kept: bool) -> None:
        """Make both sweeps; `start` is Z_k - U at the end, for hundsdorfer-verwer Z_k."""
        parts, work = self.operators, self._work
        change, start = work["change"], work["start"]
        is_hv, theta = self._scheme == "hundsdorfer-verwer", self._theta
        # Weights of the differences of F and of F_0 in the correction.
        whole, part = {
            "hundsdorfer-verwer": (0.5, 0.0),
            "modified-craig-sneyd": (0.5 - theta, theta),
            "craig-sneyd": (0.0, 0.5),
        }[self._scheme]
        # start = Y_0 - U, less the terms of the correction at t_0.
        first = Weights((1 - whole) * dt, (1 - whole - part) * dt)
        parts.combine(old, u, None, [(change, Weights(dt, dt)), (start, first)])
        self._place_change(new, u, "change", is_kept=is_kept)
        self._sweep(old, new, dt, u, change, is_clear=is_kept)  # Y_k - U
        # Z_0 - U, or Z_0 - Y_k.
        own = -1.0 if is_hv else 0.0
        second = Weights(whole * dt, (whole + part) * dt, own=1.0, change=own)
        parts.combine(new, u, change, [(start, second)])
        if is_hv:
            self._place_change(new, u, "start", is_kept=True)
            self._sweep(new, new, dt, u, start, is_clear=True)
            if is_kept:
                parts.add(u, change, start, own=1.0)
            else:
                last = Weights(own=1.0, change=1.0, base=1.0)
                parts.combine(new, u, change, [(start, last)])
        else:
            self._place_change(new, u, "start", is_kept=is_kept)
            self._sweep(old, new, dt, u, start, is_clear=is_kept)

    def _sweep(
        self, old: Any, new: Any, dt: float, u: Field, field: Field, *, is_clear: bool
    ) -> None:
        """Solve along each axis in turn, in place."""
        parts, h = self.operators, self._theta * dt
        for axis in range(parts.axes):
            if new is not old:
                parts.add_change(old, new, axis, h, u, field)
            parts.solve(new, axis, h, field, is_clear=is_clear)

    def _place_change(self, level: Any, u: Field, name: str, *, is_kept: bool) -> None:
        """Set the change at nodes with given values, where F is 0: to 0 if these stay."""
        change = self._work[name]
        if not is_kept:
            self._clear.discard(name)
            for index, values in level.values:
                change[index] = values - u[index]
        elif name not in self._clear:
            self._place_nothing(level, change)
            self._clear.add(name)

    def _place_nothing(self, level: Any, change: Field) -> None:
        """Set the change at nodes with given values to 0."""
        for index, _ in level.values:
            change[index] = 0

    def damped_step(self, u: Field, time: float, end: float, dt: float) -> Field:
        """Return the solution after two half-steps, as `step` does."""
        parts: Any = self.operators
        self._ahead = None
        h = dt / _HALVES
        old, last = self.level_at(time), u
        for times, found in (
            ((time, time + h), self.zeros()),
            ((time + h, end), self._work["change"]),
        ):
            new = parts.level(times[1], old)
            parts.combine(old, last, None, [(found, Weights(explicit=h, base=1.0))])
            parts.place(new, found)
            for axis in range(parts.axes):
                for index, values in new.inflows[axis]:
                    found[index] += h * values
            if new.source is not None:
                found[parts.grid.inner] += h * new.source
            for axis in range(parts.axes):
                parts.solve(new, axis, h, found)
            old, last = new, found
        parts.place(old, last)
        self._level, self._work["change"] = old, u
        self._clear.discard("change")
        return last
