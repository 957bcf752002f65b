r"""The Poisson equation with gradients: an operator of PyTorch over `pysolvers.FastPoisson`.

The operator is the solution S for sides of value zero, or its transpose

    S^T = v S v^-1,

with the volumes v of the unknowns: see `pysolvers.poisson._differentiable`. S is linear, so that
the reverse pass is the operator with the other value of `transposed`, and keeps nothing. S^T moves
4 words per unknown more than S if the volumes vary: on a stretched grid, and between nodes if a
side is Neumann.

The operator has its grid as text. Solvers of `pysolvers` for this grid exist as long as a
`FastPoisson` with the grid does; otherwise the operator makes one for the call.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from .._boundary import Neumann
from ..poisson import FastPoisson as ArrayPoisson
from ..poisson._axes import NEUMANN, PERIODIC, Axis
from ..poisson._differentiable import LinearPoisson
from ._operands import differentiable
from ._xp import XP

_NAME = "pysolvers::solve_poisson"
torch.library.define(
    _NAME,
    "(Tensor right, str grid, bool transposed) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)
_solve = torch.ops.pysolvers.solve_poisson.default


class _Solver(NamedTuple):
    """A solver for one dtype and device.

    Attributes
    ----------
    solver : pysolvers.FastPoisson
        With sides of value zero.
    volumes : list of Tensor
        Volumes that vary along an axis, in a shape that broadcasts to that of the solution. The
        volumes of the unknowns are their product; it is not zero at nodes that are no unknowns.
    """

    solver: ArrayPoisson
    volumes: list[Tensor]


class _Solvers:
    """The solvers for a grid, made when they are used first."""

    def __init__(self, grid: str) -> None:
        self._grid = grid
        self._made: dict[tuple[torch.dtype, torch.device], _Solver] = {}

    def __reduce__(self) -> Any:
        return _solvers_of, (self._grid,)

    def of(self, like: Tensor) -> _Solver:
        """Return the solver for the dtype and the device of a tensor."""
        key = like.dtype, like.device
        if key not in self._made:
            self._made[key] = self._make(like)
        return self._made[key]

    def _make(self, like: Tensor) -> _Solver:
        """Return a solver, and the volumes of the nodes along the axes where they differ."""
        shape, spacing, kinds, grid = json.loads(self._grid)
        conditions = {PERIODIC: PERIODIC, NEUMANN: Neumann()}
        solver = ArrayPoisson(
            shape,
            [np.array(steps) if isinstance(steps, list) else steps for steps in spacing],
            boundary={side: conditions.get(kind, 0.0) for side, kind in kinds.items()},
            grid=grid,
            dtype=str(like.dtype).removeprefix("torch."),
            on_incompatible="ignore",
            device=str(like.device),
        )
        volumes = []
        for k, axis in enumerate(solver._axes):
            own = np.ones(axis.size)
            own[axis.unknowns] = axis.volumes / axis.volumes.max()
            if not np.allclose(own, 1.0, rtol=0, atol=1e-12):
                own = own.reshape(-1, *(1,) * (len(shape) - 1 - k))
                volumes.append(torch.as_tensor(own).to(like.device, like.dtype.to_real()))
        return _Solver(solver, volumes)


_KEPT: WeakValueDictionary[str, _Solvers] = WeakValueDictionary()


def _solvers_of(grid: str) -> _Solvers:
    """Return the solvers for a grid, the same ones as long as someone holds them."""
    return _KEPT.setdefault(grid, _Solvers(grid))


@torch.library.impl(_NAME, ("cpu", "cuda"))
def _run(right: Tensor, grid: Any, transposed: bool) -> Tensor:
    """Return S f, or S^T f if `transposed`, for each field of a batch."""
    solver, volumes = _solvers_of(grid).of(right)
    x = right.new_empty(right.shape)
    right = right.detach()
    for volume in volumes if transposed else ():
        right = right / volume
    for one, result in zip(_each(right, solver), _each(x, solver), strict=True):
        solver.solve(one, out=result)
    for volume in volumes if transposed else ():
        x.mul_(volume)
    return x


def _each(fields: Tensor, solver: ArrayPoisson) -> Sequence[Any]:
    """Return the fields of a batch, as arrays that the solver takes."""
    batch = fields.reshape(-1, *solver.shape)
    return list(batch.numpy() if batch.device.type == "cpu" else batch)


@torch.library.register_fake(_NAME)
def _fake(right: Tensor, grid: Any, transposed: bool) -> Tensor:
    """Return the solution without values."""
    return right.new_empty(right.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Keep the grid, and its solvers until the reverse pass."""
    _, ctx.grid, ctx.transposed = inputs
    if not torch.compiler.is_compiling():
        ctx.solvers = _KEPT.get(ctx.grid)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    """Return the gradient with respect to f: the other one of S and S^T."""
    return differentiable(_Differentiable, _solve, grad, ctx.grid, not ctx.transposed), None, None


class _Differentiable(torch.autograd.Function):
    """The operator and its derivative; see the class in `_solve`."""

    generate_vmap_rule = True
    setup_context = staticmethod(_keep)
    backward = staticmethod(_backward)

    @staticmethod
    def forward(right: Tensor, grid: str, transposed: bool) -> Tensor:
        return _solve(right, grid, transposed)


torch.library.register_autograd(_NAME, _backward, setup_context=_keep)


@torch.library.register_vmap(_NAME)
def _vmap(
    info: Any, in_dims: tuple[Any, ...], right: Tensor, grid: str, transposed: bool
) -> tuple[Tensor, int]:
    """Solve for a batch, whose axis comes first."""
    return _solve(right.movedim(in_dims[0], 0), grid, transposed), 0


class FastPoisson(LinearPoisson):
    r"""Direct solver of the Poisson equation, with gradients.

    .. math:: u_{xx} + u_{yy} + u_{zz} = f

    on an interval, a rectangle or a box, with the equations of `pysolvers.FastPoisson`, and on one
    device with its numbers.

    Parameters
    ----------
    shape, spacing, boundary, extent, grid
        As in `pysolvers.FastPoisson`. Values of `boundary` are numbers or tensors, but no
        functions.

    Attributes
    ----------
    shape : tuple of int
        Shape of the solution.
    is_singular : bool
        Whether all sides are Neumann or periodic.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range; the message names the rule and
        the value.

    See Also
    --------
    pysolvers.FastPoisson : The same solver for arrays of any library, without gradients.

    Notes
    -----
    The solution is linear in f and in the values of the sides, and differentiable with respect to
    them any number of times, in reverse mode. With the solution u = S f for sides of value zero,
    the volumes v of the cells around the unknowns, and the gradient g of a real function with
    respect to u, the gradient with respect to f is

    .. math:: S^T g = v \, S (g / v),

    one more solve. The reverse pass keeps nothing. If all sides are Neumann or periodic, the mean
    of the difference between f and the derivatives on the sides is subtracted without a report,
    and the mean of the solution is zero.

    `solve` works inside `torch.compile` with ``fullgraph=True``, `torch.vmap`, `torch.func.grad`
    and `torch.func.jacrev`, on the current stream. Create the solver outside of the function that
    is compiled. The fields of a batch of `torch.vmap` are solved one after the other. Forward-mode
    derivatives (`torch.func.jvp`) are not offered.

    The matrices for a dtype and a device are factored in the first solve, and kept as long as the
    solver. Solvers with the same grid and the same kinds of sides share them. On the CPU, the
    transforms are those of SciPy (extra ``poisson``). On a device, solve once before a CUDA graph
    is recorded.

    Examples
    --------
    >>> import torch
    >>> from pysolvers import Neumann
    >>> from pysolvers.torch import FastPoisson
    >>> solver = FastPoisson((9, 17), 1 / 8, boundary={"x-": 1.0, "x+": 0.0, "y": Neumann()})
    >>> f = torch.zeros(9, 17, dtype=torch.float64, requires_grad=True)
    >>> u = solver.solve(f)
    >>> print(bool((u - (1 - torch.linspace(0, 1, 17))).abs().max() < 1e-6))
    True
    >>> u[4, 8].backward()
    >>> print(f"{f.grad.sum():.3f}")
    -0.500
    """

    _library = XP

    def __init__(
        self,
        shape: int | Sequence[int],
        spacing: Any = None,
        *,
        boundary: Any,
        extent: Sequence[Sequence[float]] | None = None,
        grid: Literal["nodes", "cells"] = "nodes",
    ) -> None:
        super().__init__(shape, spacing, boundary=boundary, extent=extent, grid=grid)
        steps = [_spacing(axis) for axis in reversed(self._axes)]
        self._grid = json.dumps([self.shape, steps, self._kinds, grid])
        self._solvers = _solvers_of(self._grid)

    def _solve(self, right: Tensor) -> Tensor:
        return differentiable(_Differentiable, _solve, right, self._grid, False)


def _spacing(axis: Axis) -> Any:
    """Return the spacing of an axis as the parameter of FastPoisson."""
    return axis.edges.tolist() if axis.step is None else axis.step
