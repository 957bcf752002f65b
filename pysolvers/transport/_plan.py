r"""Halos of GCEIDD: which nodes of its neighbours a rank holds, for how many steps.

The held grid is the nodes of a rank and its halo, nodes of its neighbours along the cut axis. It
ends in sides with given values, wrong ones. The sweep along the other axis is that of each line,
but it leaves out the line on such a side. So before the sweep along the cut axis the nodes from the
first one after the side on are right. What is wrong after that sweep depends on the number of
strips.

**Several strips.** The held grid ends at an interface i_0 of the whole grid, and its interfaces
i_1, i_2, ... are those of the whole grid. Let the nodes from v on be right before the sweep,
counted from the side. The prediction at an interface i, and the right-hand sides of the
characteristics, read nodes up to `reach` = max(1, floor(C) + 1) away, C the Courant number. If i_k
>= v + reach, the prediction at i_k and those at all interfaces after it are right, and so are the
strips between them. The value at i_k itself is corrected with the strip before it, which can be
wrong. So the nodes from i_k + 1 on are right after the step, for the first such k. Steps are
repeated with v = i_k + 1.

If the strips of the held grid have equal lengths, it can shrink along y (ps_gceidd.h): after each
step it loses the strips that became wrong, and ends at the interface before the node v, so that
what is said of the first step holds of each. This halves what the wrong nodes cost.

**One strip.** What is wrong decays. The rows are d V_i - l V_{i-1} - u V_{i+1} = U_i, or the value
at a foot, with d = 1 + l + u + q, q the divergence. For e^{-x i} times a number E as bound of the
error at node i, a sweep multiplies E by at most

    g(x) = f / (1 - s),   s = l (e^x - 1) - u (1 - e^{-x}) + max(-q, 0) < 1,

with the largest l, the smallest u and the smallest q of all nodes, abs(q) being at most dt/h times
the largest difference of b of neighbours; f = 1, for characteristics (1 + 2 C) e^{x reach} with
extrapolated feet and e^{x reach} otherwise. The sweep along the other axis multiplies it by at most
h = 1/(1 - max(-q, 0)) with one strip, and in strips by 5/3 p more, where p bounds the prediction:
(1 + |q|)(1 + 2 C) + 4 r, or 3 for MU. After j steps the error is at most j (g h)^j e^{-x d} of the
size of the data at the nodes of the rank behind a halo of depth d. The depth is the smallest d for
which this is below a part of the rounding errors, for the best x. At a real end with an outward
derivative the rows are those of the mirrored line, on which the same bound holds.

Source of the weighted norm: J. M. Combes and L. Thomas, Commun. Math. Phys. 34 (1973) 251-270.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..distributed._halo_run import cheapest, cost_of_exchange, negligible

# Cost of a step with rows for columns, in steps of the nodes of a rank, not counting three
# barriers of the ranks and the movement of the field, twice.
_TRANSPOSED = 1.5
_STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # between two exchanges
_TRIES = 8  # ends of a held grid that are tried after the nearest one that is far enough away

# By the link of the halo: nodes that a step advances in the time of a call and an exchange, however
# deep the halo is, and in the time in which a node of the halo travels. Two H100 advance
# 80 nodes of float64 per ns each. For the start of a call and the exchange they needed 0.9 ms when
# a call copied the field, which is the number below, and need 0.45 ms without the copy. Estimates:
# 200 GB/s between devices, 2 GB/s through the host.
_COSTS = {
    "cpu": (30_000, 0.1),
    "peers": (70_000_000, 3.0),
    "nccl": (72_000_000, 3.0),
    "host": (72_000_000, 300.0),
    "none": (0, 0.0),
}


class Coefficients(NamedTuple):
    """What a sweep along an axis depends on, the extremes of all nodes.

    Attributes
    ----------
    courant : float
        Largest abs(b) dt/h.
    ratio : float
        Largest a dt/h^2.
    least_ratio : float
        Smallest a dt/h^2, of the upwind differences with upwind differences.
    divergence : float
        Bound of abs(q).
    """

    courant: float
    ratio: float
    least_ratio: float
    divergence: float

    @property
    def reach(self) -> int:
        """How far away a prediction and a right-hand side read."""
        return max(1, int(self.courant) + 1)


class Cut(NamedTuple):
    """What a rank holds along the cut axis.

    Attributes
    ----------
    own, held : slice
        The nodes of the rank, and those of its held grid, in the whole grid.
    strips : int
        Strips of the held grid.
    lost : (int, int)
        Strips that the held grid loses after each step at its first end and at its last one.
    """

    own: slice
    held: slice
    strips: int
    lost: tuple[int, int] = (0, 0)

    def mean_nodes(self, steps: int) -> float:
        """Return how many nodes the held grid has in one of some steps, on average."""
        nodes = self.held.stop - self.held.start
        return nodes - (nodes - 1) / self.strips * sum(self.lost) * (steps - 1) / 2


class Plan(NamedTuple):
    """Steps between two exchanges, what each rank holds, cost in steps of one process."""

    steps: int
    cuts: Sequence[Cut]
    cost: float


def interfaces(cells: int, strips: int) -> list[int]:
    """Return the nodes of the ends and of the interfaces of strips."""
    return [k * cells // strips for k in range(strips + 1)]


def lost_nodes(distances: Sequence[int], reach: int, steps: int) -> int | None:
    """Return how many nodes from a cut can be wrong after some steps in strips.

    Parameters
    ----------
    distances : sequence of int
        Of the interfaces from the cut, ascending.
    reach : int
        As of `Coefficients`.
    steps : int
        Number of steps.

    Returns
    -------
    int or None
        None if no node is right.
    """
    first_right = 1
    for _ in range(steps):
        at = next((i for i in distances if i >= first_right + reach), None)
        if at is None:
            return None
        first_right = at + 1
    return first_right


def depth_for(
    along: Coefficients,
    across: Coefficients,
    steps: int,
    dtype: str,
    *,
    scheme: str,
    foot: str,
    strips_across: int,
) -> int | None:
    """Return how deep a halo one strip along the cut axis needs, or None if no depth is enough."""
    is_upwind = scheme != "cfd"
    x = np.linspace(0.01, 3.0, 300)
    carried = along.courant if is_upwind else 0.0
    s = (along.ratio + carried) * np.expm1(x) + along.least_ratio * np.expm1(-x)
    s = s + along.divergence
    outside = 1 + 2 * along.courant if foot == "extrapolate" else 1.0
    feet = np.zeros_like(x) if is_upwind else np.log(outside) + x * along.reach
    growth = 1 / max(1 - across.divergence, 1e-300)
    if strips_across > 1:
        beyond = 1 + 2 * across.courant if foot == "extrapolate" else 1.0
        predicted = (1 + across.divergence) * beyond + 4 * across.ratio
        growth *= 5 / 3 * (3.0 if scheme == "mu" else predicted)
    elif not is_upwind and foot == "extrapolate":
        growth *= 1 + 2 * across.courant
    usable = s < 1
    if not usable.any() or across.divergence >= 1:
        return None
    x, s, feet = x[usable], s[usable], feet[usable]
    each = feet - np.log1p(-s) + np.log(growth)
    return 1 + int(np.ceil(((steps * each + np.log(steps / negligible(dtype))) / x).min()))


def plan_halo(
    parts: Sequence[slice],
    cells: int,
    strips: int,
    lines: int,
    along: Coefficients,
    across: Coefficients,
    dtype: str,
    *,
    scheme: str,
    foot: str,
    strips_across: int,
    link: str,
    shrinks: bool,
) -> Plan | None:
    """Return the cheapest held grids, or None if rows for columns are cheaper or the only choice.

    Parameters
    ----------
    parts : sequence of slice
        The nodes of each rank along the cut axis.
    cells, strips : int
        Of the whole grid along this axis.
    lines : int
        Number of nodes along the other axis.
    along, across : Coefficients
        Of the sweeps along the cut axis and along the other one.
    dtype, scheme, foot : str
        As in `GCEIDD`.
    strips_across : int
        Strips along the other axis.
    link : str
        How the halo travels.
    shrinks : bool
        Whether held grids in strips can shrink: the cut axis is y.
    """
    if len(parts) == 1:
        return Plan(_STEPS[-1], [Cut(parts[0], parts[0], strips)], 1.0)
    message, node = _COSTS[link]
    least = min(part.stop - part.start for part in parts)

    def plan_for(steps: int) -> Plan | None:
        """Return the plan of so many steps an exchange; None: too deep a halo."""
        if strips == 1:
            depth = depth_for(
                along,
                across,
                steps,
                dtype,
                scheme=scheme,
                foot=foot,
                strips_across=strips_across,
            )
            cuts = None if depth is None else _of_one_strip(parts, depth, cells)
        else:
            nodes = interfaces(cells, strips)
            cuts = _in_strips(parts, nodes, along.reach, steps)
            if cuts is not None and shrinks:
                cuts = [_shrinking(cut, nodes, along.reach, steps) for cut in cuts]
        if cuts is None:
            return None
        larger = max(c.mean_nodes(steps) / (c.own.stop - c.own.start) for c in cuts)
        widest = max(max(c.own.start - c.held.start, c.held.stop - c.own.stop) for c in cuts)
        exchange = cost_of_exchange(message, node, widest, least, lines)
        return Plan(steps, cuts, larger + exchange / steps)

    plan = cheapest(_STEPS, plan_for)
    transposed = _TRANSPOSED + 3 * message / (lines * least) + 2 * node
    return plan if plan is not None and plan.cost < transposed else None


def _of_one_strip(parts: Sequence[slice], depth: int, cells: int) -> list[Cut] | None:
    """Return held grids of one strip with a halo of this depth, if all ranks have so many nodes."""
    if depth > min(part.stop - part.start for part in parts):
        return None
    return [
        Cut(part, slice(max(part.start - depth, 0), min(part.stop + depth, cells + 1)), 1)
        for part in parts
    ]


def _in_strips(
    parts: Sequence[slice], nodes: list[int], reach: int, steps: int
) -> list[Cut] | None:
    """Return held grids that end at interfaces, `nodes`, if there are such ones for all ranks."""
    found = []
    for rank, part in enumerate(parts):
        before = parts[rank - 1].start if rank else 0
        after = parts[rank + 1].stop if rank < len(parts) - 1 else nodes[-1] + 1
        cut = next(
            (
                Cut(part, slice(nodes[low], nodes[high] + 1), high - low)
                for low in _ends(nodes, part.start, before, reach, steps, is_last=False)
                for high in _ends(nodes, part.stop - 1, after - 1, reach, steps, is_last=True)
                if _is_even(nodes, low, high)
            ),
            None,
        )
        if cut is None:
            return None
        found.append(cut)
    return found


def _shrinking(cut: Cut, nodes: list[int], reach: int, steps: int) -> Cut:
    """Return a held grid in strips that loses what becomes wrong, if a held grid can do so.

    All strips but the one at the first node of the grid have equal lengths.
    """
    low, high = nodes.index(cut.held.start), nodes.index(cut.held.stop - 1)
    length, rest = divmod(nodes[high] - nodes[low], high - low)
    wrong = -(-(1 + reach) // length)
    lost = wrong * (low > 0), wrong * (high < len(nodes) - 1)
    first, last = low + steps * lost[0], high - steps * lost[1]  # after the last step
    is_enough = first <= last and (
        (not lost[0] or nodes[first] < cut.own.start)
        and (not lost[1] or nodes[last] >= cut.own.stop)
    )
    return cut._replace(lost=lost) if is_enough and rest in (0, high - low - 1) else cut


def _ends(
    nodes: list[int], own: int, farthest: int, reach: int, steps: int, *, is_last: bool
) -> Iterator[int]:
    """Yield numbers of interfaces, which are at `nodes`, at which a held grid can end.

    `own` and `farthest` are the outermost nodes of the rank and of its neighbour; `is_last` says
    whether this is the end of the largest numbers.
    """
    sign, last = (1, len(nodes) - 1) if is_last else (-1, 0)
    side = nodes[last]
    if own == side:
        yield last
        return
    tried = 0
    for k in range(last + 1) if is_last else range(len(nodes) - 1, -1, -1):
        if sign * (nodes[k] - own) <= 0:
            continue
        if sign * (nodes[k] - farthest) > 0 or tried > _TRIES:
            return
        inward = nodes[k - 1 :: -1] if is_last and k > 0 else nodes[k + 1 :]
        lost = lost_nodes([abs(i - nodes[k]) for i in inward], reach, steps)
        if k == last or (lost is not None and abs(own - nodes[k]) >= lost):
            tried += 1
            yield k


def _is_even(nodes: list[int], low: int, high: int) -> bool:
    """Whether the strips between two interfaces are those of a grid that ends there."""
    count = high - low
    return count > 0 and interfaces(nodes[high] - nodes[low], count) == [
        node - nodes[low] for node in nodes[low : high + 1]
    ]
