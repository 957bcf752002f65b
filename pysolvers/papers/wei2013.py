"""The experiments of Wei, Jang, Zhang and Jia (2013): ADI by parallel cyclic reduction on a GPU.

Parallelizing alternating direction implicit solver on GPUs, Procedia Computer Science 18 (ICCS
2013), 389-398: GTX 680 compared with one core of an i7-3770K, single precision, 100 steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import heat
from .._boundary import Dirichlet
from .._checks import require
from .._lines.engine import solve_planned
from .._options import Choice, check_choice
from ..heat._settings import HeatSettings
from ..heat.adi import SavedHeat

__all__ = ["HeatADI", "advance_of_a_mode", "heated_plate", "solve_tridiagonal"]

Scheme = Literal["auto", "implicit", "peaceman-rachford", "douglas-gunn", "wei2013"]
Kernels = Literal["fused", "wei2013"]
Mapping = Literal["C1", "C2", "C3", "C4"]
Memory = Literal["baseline", "texture", "transpose"]
Block = Literal[32, 64, 128, 256, 512]

_MAPPINGS = {"C1": 1, "C2": 2, "C3": 3, "C4": 4}
_SPACING = _STEP = 0.01


@dataclass(frozen=True, kw_only=True)
class WeiSettings(HeatSettings):
    """Parameters of `HeatADI` of this module."""

    scheme: Scheme  # type: ignore[assignment]
    kernels: Kernels
    mapping: Mapping
    memory: Memory
    block: Block | None  # type: ignore[misc]
    timed: bool

    def _check(self) -> None:
        super()._check()
        require(len(self.shape) > 1, "shape must have 2 or 3 axes", self.shape)
        require(
            self.coordinates is None or not self.is_paper,
            "coordinates must be None with the scheme and the kernels 'wei2013'",
            "an array for each axis",
        )
        require(
            len(self.shape) == 2 or not self.is_paper,
            "the scheme and the kernels 'wei2013' need a shape of two axes",
            self.shape,
        )
        require(
            self.kernels != "wei2013" or self.scheme not in ("implicit", "douglas-gunn"),
            "kernels 'wei2013' are for schemes 'peaceman-rachford' and 'wei2013'",
            self.scheme,
        )
        require(
            not (self.is_paper and self.damped_start),
            "damped_start must be None or False with the scheme and the kernels 'wei2013'",
            self.damped_start,
        )

    @property
    def is_paper(self) -> bool:
        return self.scheme == "wei2013" or self.kernels == "wei2013"


@dataclass(frozen=True, kw_only=True)
class SavedWei(SavedHeat):
    """What `save` writes of `HeatADI` of this module."""

    settings: WeiSettings

    _KIND = "wei2013 HeatADI state"


class HeatADI(heat.HeatADI):
    r"""`pysolvers.HeatADI` with the scheme and the kernels of the paper.

    Parameters
    ----------
    *args, **options
        As in `pysolvers.HeatADI`. `scheme` can also be ``'wei2013'``, which is **not a consistent
        time integrator**; see Notes.
    kernels : {'fused', 'wei2013'}, default: 'fused'
        Kernels on a device: sweeps that read and write one word per node, or the kernels of the
        paper.
    mapping : {'C1', 'C2', 'C3', 'C4'}, default: 'C1'
        For ``kernels='wei2013'``: mapping of the rows of parallel cyclic reduction to threads.
        C1 and C3 have one block for a line, which makes the first steps of a line longer than 32
        bytes for each of its threads in memory, chunk after chunk; C2 and C4 have several blocks.
        C1 and C2 have five arrays in shared memory, C3 and C4 four.
    memory : {'baseline', 'texture', 'transpose'}, default: 'baseline'
        For ``kernels='wei2013'``: memory access. The matrices are arrays of all nodes.
        ``'texture'`` reads them, the right side and u as textures of linear memory, which hold
        2^28 numbers on most devices; ``'transpose'`` transposes right sides and solutions of the
        lines along y.
    block : int, optional
        For ``kernels='wei2013'``: threads per block, 32 to 512.
    timed : bool, default: False
        Whether to measure the time of each stage on a device. The host then waits for the
        device, which takes longer.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.HeatADI`, and if the data are not those for which the paper has a scheme.

    Notes
    -----
    The scheme of the paper has :math:`1 + 2 r_x + 2 r_y` on the diagonal of both sub-steps, with
    :math:`r = k\,dt/h^2`. It is one line Jacobi iteration for an implicit Euler step. For
    :math:`r_x = r_y = r`, one step advances a smooth field by :math:`2/(1 + 2 r)` of dt; at
    the published r = 100 by 0.0099 dt. There is no warning for a long step of it. This scheme and
    the kernels of the paper need constant k, Dirichlet values that do not change with time, and no
    source.

    Examples
    --------
    >>> from pysolvers.papers import wei2013
    >>> solver = wei2013.HeatADI((9, 9), 0.125, 0.01, scheme="wei2013", boundary=0.0, initial=1.0)
    >>> solver.step().result().scheme
    'wei2013'
    """

    _SETTINGS: ClassVar[Any] = WeiSettings
    _STATE: ClassVar[Any] = SavedWei

    def __init__(
        self,
        *args: Any,
        kernels: Kernels = "fused",
        mapping: Mapping = "C1",
        memory: Memory = "baseline",
        block: Block | None = None,
        timed: bool = False,
        **options: Any,
    ) -> None:
        self._experiment = {
            "kernels": kernels,
            "mapping": mapping,
            "memory": memory,
            "block": block,
            "timed": timed,
        }
        super().__init__(*args, **options)

    def _check_experiment(self) -> None:
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
        require(self._source is None, "'wei2013' allows no source: source must be None", "a source")


def solve_tridiagonal(
    lower: ArrayLike,
    diag: ArrayLike,
    upper: ArrayLike,
    rhs: ArrayLike,
    *,
    mapping: Mapping = "C1",
    **options: Any,
) -> Any:
    """Solve by parallel cyclic reduction on a device, with a mapping of the paper.

    Parameters
    ----------
    lower, diag, upper, rhs : array_like
        As in `pysolvers.solve_tridiagonal`.
    mapping : {'C1', 'C2', 'C3', 'C4'}, default: 'C1'
        Mapping of the rows to threads: C1 and C3 have one block for a system, which makes the
        first steps of a long one in memory, chunk after chunk; C2 and C4 have several.
    **options
        As in `pysolvers.solve_tridiagonal`, apart from `method`, `group` and `split`.

    Returns
    -------
    x : array
        The solutions, and the report with ``return_info=True``, as `pysolvers.solve_tridiagonal`
        returns them.

    Raises
    ------
    TypeError, ValueError, SingularSystemError, BackendError
        As `pysolvers.solve_tridiagonal`; ValueError also without a device.

    Examples
    --------
    >>> from pysolvers.papers.wei2013 import solve_tridiagonal
    >>> options = {"mapping": "C2", "device": "cuda"}
    >>> solve_tridiagonal(-1.0, 2.5, -1.0, [1.5, 1.5], **options)  # doctest: +SKIP
    array([1., 1.])
    """
    variant = check_choice("mapping", mapping, _MAPPINGS)
    named = {"lower": lower, "diag": diag, "upper": upper, "rhs": rhs}
    return solve_planned(named, Choice(method="pcr", variant=variant, **options))


def heated_plate(nodes: int | tuple[int, ...], **options: Any) -> HeatADI:
    """Return the solver of the plate of the experiments, with one hot and three cold sides.

    Parameters
    ----------
    nodes : int or tuple of int
        Nodes per side, or along each axis.
    **options
        Options of `HeatADI`; default: single precision and the scheme of the paper.

    Returns
    -------
    solver : HeatADI
        The solver at time 0.

    Examples
    --------
    >>> from pysolvers.papers.wei2013 import heated_plate
    >>> heated_plate(33).step(10).u.shape
    (33, 33)
    """
    shape = (nodes, nodes) if isinstance(nodes, int) else nodes
    cold = dict.fromkeys(("x-", "x+", "y-"), Dirichlet(0.0))
    sides = {**cold, "y+": Dirichlet(1.0)}
    if len(shape) == 3:
        sides |= {"z-": Dirichlet(0.0), "z+": Dirichlet(0.0)}
    settings: dict[str, Any] = {
        "dtype": np.float32,
        "scheme": "wei2013",
        "damped_start": False,
    } | options
    return HeatADI(shape, _SPACING, _STEP, boundary=sides, initial=0.0, **settings)


def advance_of_a_mode(scheme: Scheme, r: float, *, nodes: int = 65, steps: int = 10) -> float:
    """Return the time by which a scheme advances the first sine mode, over the correct time.

    Parameters
    ----------
    scheme : str
        As in `HeatADI`.
    r : float
        dt divided by the square of the spacing.
    nodes : int, default: 65
        Nodes per side of the unit square.
    steps : int, default: 10
        Number of steps.

    Returns
    -------
    ratio : float
        1 for a time integrator.

    Examples
    --------
    >>> from pysolvers.papers.wei2013 import advance_of_a_mode
    >>> round(advance_of_a_mode("peaceman-rachford", 0.5), 3)
    1.0
    """
    h = 1.0 / (nodes - 1)
    dt = r * h * h
    line = np.sin(np.pi * np.linspace(0.0, 1.0, nodes))
    mode = np.outer(line, line)
    solver = HeatADI((nodes, nodes), h, dt, scheme=scheme, initial=mode, boundary=Dirichlet(0.0))
    middle = nodes // 2
    factor = solver.step(steps).u[middle, middle] / mode[middle, middle]
    return float(-np.log(factor) / (2 * np.pi**2 * dt * steps))
