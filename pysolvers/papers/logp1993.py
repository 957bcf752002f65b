"""A model of the time that solves of cut lines take, with the messages of Culler et al. (1993).

LogP: towards a realistic model of parallel computation, PPoPP 1993, 1-12.
"""

from dataclasses import dataclass, fields
from typing import Literal

from .._checks import index, require, require_number

__all__ = ["CostModel"]

_BACK = 2  # numbers of a line that a rank gets back: the separators before and after its rows


@dataclass(frozen=True, kw_only=True)
class CostModel:
    r"""Predicts the time of a solve of lines that are cut over ranks, stage by stage.

    With P ranks, L lines of n rows in all, k numbers exchanged per line and s bytes per number,

    .. math:: t = o + (e + b) \frac{n L}{P}
        + m\,\alpha + (P - 1) \left(m\,g + \frac{k s L}{\beta}\right) + r P L .

    The terms are the fixed part of a call, forward elimination and back substitution, the
    messages of each rank to all others, and the reduced systems of one row per rank, which every
    rank solves for all lines. One rank alone takes :math:`w\,n L`.

    Parameters
    ----------
    whole : float
        Seconds per unknown of a solve on one rank, w.
    elimination, substitution : float
        Seconds per unknown of a rank, e and b.
    reduced : float
        Seconds per line and rank, r.
    latency : float
        Seconds of a round of short messages, :math:`\alpha`, without those of `gap`.
    gap : float
        Seconds that each further message of a round takes, g.
    bandwidth : float
        Bytes per second that a rank sends, :math:`\beta`, while all ranks send.
    overhead : float, default: 0
        Seconds of a call of several ranks that do not depend on the size, o.
    rounds : int, default: 2
        Rounds of a call, in which each rank sends a message to every other one, m: the
        comparison of the ranks, and the numbers.
    numbers : int, default: 7
        Numbers exchanged per line, k: 7 if each line has its own matrix, 2 if all have one that
        was factored before.

    Notes
    -----
    The assumptions: all ranks are equal, and hold equally many rows; the rows that the coupling to
    other ranks reaches are the same part of them at any size; a message takes the same time
    between any two ranks, at any load of the network; nothing overlaps. `stages` also
    predicts another exchange, which this package does not make: each rank gets the numbers of
    :math:`L / P` lines, solves their reduced systems, and sends 2 numbers per line back. It takes

    .. math:: o + (e + b) \frac{n L}{P} + (m + 1)\,\alpha
        + (P - 1) \left((m + 1)\,g + \frac{(k + 2) s L}{P \beta}\right) + r L .

    The latency and the gap are those of Culler et al., LogP: towards a realistic model of parallel
    computation, *PPoPP 1993*, 1-12.

    Examples
    --------
    >>> from pysolvers.papers.logp1993 import CostModel
    >>> model = CostModel(
    ...     whole=1e-9,
    ...     elimination=2.5e-9,
    ...     substitution=5e-10,
    ...     reduced=5e-9,
    ...     latency=1e-5,
    ...     gap=1e-6,
    ...     bandwidth=1e10,
    ... )
    >>> times = {ranks: model.seconds(4096, 65536, ranks) for ranks in (1, 4, 16, 64, 256)}
    >>> min(times, key=times.get)
    64
    """

    whole: float
    elimination: float
    substitution: float
    reduced: float
    latency: float
    gap: float
    bandwidth: float
    overhead: float = 0.0
    rounds: int = 2
    numbers: int = 7

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            require_number(field.name, value)
            require(value >= 0, f"{field.name} must not be negative", value)
        require(self.bandwidth > 0, "bandwidth must be positive", self.bandwidth)

    def stages(
        self,
        rows: int,
        lines: int,
        ranks: int,
        *,
        itemsize: int = 8,
        reduced_on: Literal["all", "shares"] = "all",
    ) -> dict[str, float]:
        """Return the seconds of each stage of a solve.

        Parameters
        ----------
        rows : int
            Number of rows of a line, those of all ranks; at least `ranks`.
        lines : int
            Number of lines.
        ranks : int
            Number of ranks.
        itemsize : int, default: 8
            Bytes of a number: 8 for float64.
        reduced_on : {'all', 'shares'}, default: 'all'
            Whether every rank solves the reduced systems of all lines, as this package does, or
            of its share of the lines.

        Returns
        -------
        dict of str to float
            Seconds by stage: ``"overhead"``, ``"elimination"``, ``"exchange"``,
            ``"reduced systems"``, ``"substitution"``. For one rank, ``"elimination"`` is the
            whole solve.

        Raises
        ------
        TypeError, ValueError
            If an argument is not an integer, or out of its range.
        """
        counts = {"rows": rows, "lines": lines, "ranks": ranks, "itemsize": itemsize}
        for name, count in counts.items():
            index(name, count, 1)
        require(rows >= ranks, f"rows must be at least ranks = {ranks}", rows)
        require(reduced_on in ("all", "shares"), "reduced_on must be 'all' or 'shares'", reduced_on)
        others, own = ranks - 1, rows * lines / ranks
        rounds, solved = self.rounds, ranks * lines
        octets: float = self.numbers * itemsize * lines
        if reduced_on == "shares":
            rounds += 1
            octets = (self.numbers + _BACK) * itemsize * lines / ranks
            solved = lines
        return {
            "overhead": self.overhead if others else 0.0,
            "elimination": (self.elimination if others else self.whole) * own,
            "exchange": (rounds * self.latency if others else 0.0)
            + others * (rounds * self.gap + octets / self.bandwidth),
            "reduced systems": self.reduced * solved if others else 0.0,
            "substitution": self.substitution * own if others else 0.0,
        }

    def seconds(
        self,
        rows: int,
        lines: int,
        ranks: int,
        *,
        itemsize: int = 8,
        reduced_on: Literal["all", "shares"] = "all",
    ) -> float:
        """Return the sum of `stages`; the parameters are the same."""
        found = self.stages(rows, lines, ranks, itemsize=itemsize, reduced_on=reduced_on)
        return sum(found.values())
