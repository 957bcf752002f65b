r"""The Poisson equation with gradients: an operator of PyTorch over `pysolvers.FastPoisson`.

The operator is the solution S for sides of value zero, or its transpose

    S^T = v S v^-1,

with the volumes v of the unknowns: see `pysolvers.poisson._differentiable`. S is linear, so that
the reverse pass is the operator with the other value of `transposed`, and keeps nothing but, for
the derivative with respect to the number `helmholtz`, the solution. S^T moves
4 words per unknown more than S if the volumes vary: on a stretched grid, and between nodes if a
side is Neumann.

The operator has its grid as text. Solvers of `pysolvers` for this grid exist as long as a
`FastPoisson` with the grid does; otherwise the operator makes one for the call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from .._axis import NEUMANN, ON_AXIS, PERIODIC, ROBIN
from .._boundary import Neumann, Robin
from ..poisson import FastPoisson as ArrayPoisson
from ..poisson._axes import Axis
from ..poisson._differentiable import LinearPoisson
from ..poisson._grid import Geometry
from ..poisson._methods import Method
from ._operands import differentiable
from ._xp import XP

_NAME = "pysolvers::solve_poisson"
torch.library.define(
    _NAME,
    "(Tensor right, Tensor? helmholtz, str grid, bool transposed) -> Tensor",
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
        # With another number `helmholtz`: the last one.
        self._other: tuple[Any, _Solver] | None = None

    def __reduce__(self) -> Any:
        return _solvers_of, (self._grid,)

    def of(self, like: Tensor, helmholtz: float | None) -> _Solver:
        """Return the solver for the dtype and the device of a tensor, and a number c."""
        key = like.dtype, like.device
        if helmholtz is not None:
            found = self._other
            if found is None or found[0] != (*key, helmholtz):
                found = self._other = (*key, helmholtz), self._make(like, helmholtz)
            return found[1]
        if key not in self._made:
            self._made[key] = self._make(like, None)
        return self._made[key]

    def _make(self, like: Tensor, helmholtz: float | None) -> _Solver:
        """Return a solver, and the volumes of the nodes along the axes where they differ."""
        shape, spacing, kinds, coefficients, rest = json.loads(self._grid)
        conditions = {PERIODIC: PERIODIC, NEUMANN: Neumann()}
        boundary = {side: conditions.get(kind, 0.0) for side, kind in kinds.items()}
        boundary |= {side: Robin(number) for side, number in coefficients.items()}
        if helmholtz is not None:
            rest["helmholtz"] = helmholtz
        solver = ArrayPoisson(
            shape,
            [np.array(steps) if isinstance(steps, list) else steps for steps in spacing],
            boundary={side: given for side, given in boundary.items() if kinds[side] != ON_AXIS},
            dtype=str(like.dtype).removeprefix("torch."),
            on_incompatible="ignore",
            device=str(like.device),
            **rest,
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
def _run(right: Tensor, helmholtz: Tensor | None, grid: Any, transposed: bool) -> Tensor:
    """Return S f, or S^T f if `transposed`, for each field of a batch."""
    number = None if helmholtz is None else float(helmholtz)
    solver, volumes = _solvers_of(grid).of(right, number)
    right = right.detach()
    for volume in volumes if transposed else ():
        right = right / volume
    x = torch.empty_like(right, memory_format=torch.contiguous_format)
    fields = (right.numpy(), x.numpy()) if right.device.type == "cpu" else (right, x)
    solver.solve(fields[0], out=fields[1])
    for volume in volumes if transposed else ():
        x.mul_(volume)
    return x


@torch.library.register_fake(_NAME)
def _fake(right: Tensor, helmholtz: Tensor | None, grid: Any, transposed: bool) -> Tensor:
    """Return the solution without values."""
    return right.new_empty(right.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Keep the grid, and its solvers until the reverse pass."""
    _, helmholtz, ctx.grid, ctx.transposed = inputs
    saved = [] if helmholtz is None else [helmholtz]
    if ctx.needs_input_grad[1]:
        saved.append(output)
    ctx.save_for_backward(*saved)
    if not torch.compiler.is_compiling():
        ctx.solvers = _KEPT.get(ctx.grid)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
    """Return the other operator, applied to the gradient, and the derivative by the number."""
    helmholtz = ctx.saved_tensors[0] if ctx.saved_tensors else None
    options = ctx.grid, not ctx.transposed
    found = differentiable(_Differentiable, _solve, grad, helmholtz, *options)
    if not ctx.needs_input_grad[1]:
        return found, None, None, None
    return found, (found.conj() * ctx.saved_tensors[1]).real.sum(), None, None


class _Differentiable(torch.autograd.Function):
    """The operator and its derivative; see the class in `_solve`."""

    generate_vmap_rule = True
    setup_context = staticmethod(_keep)
    backward = staticmethod(_backward)

    @staticmethod
    def forward(right: Tensor, helmholtz: Tensor | None, grid: str, transposed: bool) -> Tensor:
        """Call the operator."""
        return _solve(right, helmholtz, grid, transposed)


torch.library.register_autograd(_NAME, _backward, setup_context=_keep)


@torch.library.register_vmap(_NAME)
def _vmap(
    info: Any,
    in_dims: tuple[Any, ...],
    right: Tensor,
    helmholtz: Tensor | None,
    grid: str,
    transposed: bool,
) -> tuple[Tensor, int]:
    """Solve a batch of `torch.vmap`, whose axis comes first; one after the other for many c."""
    if in_dims[1] is None:
        return _solve(right.movedim(in_dims[0], 0), helmholtz, grid, transposed), 0
    assert helmholtz is not None
    fields = [right] * info.batch_size if in_dims[0] is None else right.unbind(in_dims[0])
    numbers = helmholtz.unbind(in_dims[1])
    pairs = zip(fields, numbers, strict=True)
    return torch.stack([_solve(one, c, grid, transposed) for one, c in pairs]), 0


class FastPoisson(LinearPoisson):
    r"""Direct solver of the Poisson and the Helmholtz equation, with gradients.

    .. math:: u_{xx} + u_{yy} + u_{zz} - c\, u = f

    on an interval, a rectangle, a box, a cylinder or a sphere, with the equations of
    `pysolvers.FastPoisson`, and on one device with its numbers.

    Parameters
    ----------
    shape, spacing, boundary, extent, helmholtz, grid, geometry, methods
        As in `pysolvers.FastPoisson`. Values of `boundary` are numbers or tensors, but no
        functions.

    Attributes
    ----------
    shape : tuple of int
        Shape of the solution.
    is_singular : bool
        Whether all sides are Neumann or periodic and c = 0.

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

    one more solve. The reverse pass keeps nothing, but the solution if c, which is then a tensor
    without axes given to `solve`, needs a gradient; each new value of c factors new matrices. If
    all sides are Neumann or periodic and c = 0, the mean of the difference between f and the
    derivatives on the sides is subtracted without a report, and the mean of the solution is zero.

    `solve` works inside `torch.compile` with ``fullgraph=True``, `torch.vmap`, `torch.func.grad`
    and `torch.func.jacrev`, on the current stream. Create the solver outside of the function that
    is compiled. Fields of a batch are solved together on the CPU, and one after the other on a
    device and for several values of c. Forward-mode derivatives (`torch.func.jvp`) are not
    offered.

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
        helmholtz: float = 0.0,
        grid: Literal["nodes", "cells"] = "nodes",
        geometry: Geometry = "cartesian",
        methods: Mapping[str, Method] | None = None,
    ) -> None:
        options: dict[str, Any] = {"grid": grid, "geometry": geometry, "methods": methods}
        super().__init__(
            shape, spacing, boundary=boundary, extent=extent, helmholtz=helmholtz, **options
        )
        options["helmholtz"] = self.helmholtz
        steps = [_spacing(axis) for axis in reversed(self._axes)]
        coefficients = {
            axis.name + sign: axis.exchange[end]
            for axis in self._axes
            for end, sign in enumerate("-+")
            if axis.ends[end] == ROBIN
        }
        self._grid = json.dumps([self.shape, steps, self._kinds, coefficients, options])
        self._solvers = _solvers_of(self._grid)

    def _solve(self, right: Tensor, helmholtz: Tensor | None) -> Tensor:
        return differentiable(_Differentiable, _solve, right, helmholtz, self._grid, False)


def _spacing(axis: Axis) -> Any:
    """Return the spacing of an axis as the parameter of FastPoisson."""
    is_shifted = axis.power and axis.edges[0] != 0
    return axis.edges.tolist() if axis.step is None or is_shifted else axis.step
