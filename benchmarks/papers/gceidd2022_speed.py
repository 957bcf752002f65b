"""Speed of GCEIDD on the device as Foadaddini et al. (2022) measured it: example 2, CP.

The values on the sides are 0 here, so that the times are those of the device, without the host
computing values that change with time.

The time of a step without decomposition, with another tridiagonal solver, is a sum: the time of the
paper's kernels that compute the rows, without strips, and that of one solve along each axis with
matrices in arrays; cuSPARSE solves strided along x and interleaved along y.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pysolvers._errors import PysolversError
from pysolvers.papers.gceidd2022 import GCEIDD, rotating_pulse_exact
from pysolvers.transport import ConvectionDiffusion
from pysolvers.tridiagonal import solve_tridiagonal

from .. import gpu_peers as peers
from ..gpu_cases import GpuCase
from ..timing import CopyClock, host, require_cupy

STRIPS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_STEPS = 1000
_COPY_BYTES = 2**26


@dataclass(frozen=True, slots=True)
class StepTime:
    """Time of a step and of its parts.

    Parameters
    ----------
    cells, strips : int
        Numbers along each axis.
    kernels, strategy : str
        As in `GCEIDD`.
    step : float
        Seconds of a step, in a call of many steps.
    parts : dict of str to float
        Seconds of the parts of a step, ``"x solve"`` and so on.
    kernel : str
        What ran along x: the stage of 3S for the paper's kernels.
    occupancy : dict of str to float
        Resident threads of a multiprocessor over their largest number, by part.
    """

    cells: int
    strips: int
    kernels: str
    strategy: str
    step: float
    parts: dict[str, float] = field(default_factory=dict)
    kernel: str = ""
    occupancy: dict[str, float] = field(default_factory=dict)

    def share(self, *names: str) -> float:
        """Return the fraction of the step that parts take, over both axes."""
        wanted = [value for name, value in self.parts.items() if name.split()[1] in names]
        return sum(wanted) / max(sum(self.parts.values()), 1e-30)


def pulse_solver(cells: int, strips: int, **options: Any) -> GCEIDD:
    """Return the solver of example 2 at Courant number 1, by CP unless `options` name a scheme."""
    problem = ConvectionDiffusion(
        (lambda x, y: -4 * y, lambda x, y: 4 * x),
        0.005,
        initial=lambda x, y: rotating_pulse_exact(x, y, 0.0),
        boundary=0.0,
    )
    return GCEIDD(
        problem, shape=(cells + 1, cells + 1), dt=1 / (4 * cells), strips=strips, **options
    )


def step_time(
    cells: int,
    strips: int,
    kernels: str = "fused",
    strategy: str = "3s",
    *,
    device: str = "cuda",
    steps: int = _STEPS,
    **options: Any,
) -> StepTime:
    """Measure a step of example 2 at Courant number 1, by CP unless `options` name a scheme."""
    choice = {"kernels": kernels, "strategy": strategy, "device": device}
    solver = pulse_solver(cells, strips, **choice, **options)
    solver.step(min(steps, 64))
    before = dict(solver.result().seconds)
    step = host(lambda: solver.step(steps), 1) / steps
    result = solver.result()
    after = result.seconds
    parts = {name: (after[name] - before.get(name, 0.0)) / steps for name in after}
    kernel, occupancy = result.kernel, dict(solver.occupancy)
    return StepTime(cells, strips, kernels, strategy, step, parts, kernel, occupancy)


def strip_counts(cells: int, counts: Iterable[int] = STRIPS) -> list[int]:
    """Return the numbers of strips that have at least four cells each."""
    return [count for count in counts if count * 4 <= cells]


def solve_seconds(cells: int, clock: CopyClock) -> dict[str, tuple[float, float]]:
    """Return the seconds of a solve along x and along y by solvers of whole lines.

    By name: CR-PCR and ``auto`` of the package, and cuSPARSE. The clock captures graphs, so the
    current stream must not be the default stream.
    """
    cupy = require_cupy()
    random = cupy.random.default_rng(1)
    shape = (cells, cells)
    lower, upper, rhs = (-random.random(shape) for _ in range(3))
    system = [lower, 2.5 + random.random(shape), upper, rhs, cupy.empty(shape)]
    found = {}
    for method in ("cr-pcr", "auto"):
        found[method] = (_own(system, -1, method, clock), _own(system, 0, method, clock))
    along = _case("own", "last", cells)
    across = _case("strided", "first", cells)
    x = _peer("cusparse strided", along, system, clock)
    y = min(_peer(f"cusparse interleaved {k}", across, system, clock) for k in range(3))
    if np.isfinite(x + y):
        found["cuSPARSE"] = (x, y)
    return found


def _case(part: str, axis: str, cells: int) -> GpuCase:
    return GpuCase(part=part, matrix="own", axis=axis, dtype="float64", rows=cells, systems=cells)


def _own(system: list[Any], axis: int, method: str, clock: CopyClock) -> float:
    *operands, out = system
    options: dict[str, Any] = {"axis": axis, "method": method, "out": out}
    if method == "auto":
        options["pivot"] = False

    def solve() -> None:
        solve_tridiagonal(*operands, **options, on_singular="ignore")

    solve()
    try:
        return clock.in_cache(solve)
    except (PysolversError, RuntimeError):  # the call cannot be captured
        return clock.back_to_back(solve)


def _peer(name: str, case: GpuCase, system: list[Any], clock: CopyClock) -> float:
    try:
        peer = peers.cusparse(name, case, system)
    except peers.PeerError:
        return np.inf
    if peer.restore is not None:
        peer.restore()
    return clock.back_to_back(peer.solve)


def make_clock() -> CopyClock:
    """Return a clock on the current stream."""
    return CopyClock(_COPY_BYTES)
