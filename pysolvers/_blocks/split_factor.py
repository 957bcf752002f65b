"""Factors of block tridiagonal and pentadiagonal matrices that are split over the ranks of a group.

The method of split.py. The factors of the interior, l, u and the factors of the reduced matrix are
kept. A solve exchanges 2 s numbers for each right-hand side. The determinant is the
product of those of the interiors and of the reduced matrix.

Matrices that are neither dominant nor definite have no such factors: each solve solves whole lines,
on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import axis_number
from .._options import OnSingular
from .._runtime.arrays import axis_of_solutions
from .._runtime.interop import locate, shape_of
from .._runtime.targets import Target
from ..distributed import Group, Slab
from ..distributed._systems import checked_group, merged
from ..distributed._whole import Shares
from . import systems
from .split import (
    Call,
    Coefficients,
    Kind,
    Part,
    Spike,
    as_one,
    checked_options,
    completed,
    eliminate,
    facts_of,
    has_ends,
    in_parts,
    lines_of_matrices,
    of_reduced,
    own_part,
    whole_matrices,
    with_all_rows,
)

Array = NDArray[Any]


class _Ends(NamedTuple):
    """Factors by the partition method."""

    part: Part
    spikes: list[Spike | None]
    found: Coefficients
    reduced: Any


class SplitBlockFactor(systems.Uncopied):
    """Factors of block tridiagonal or pentadiagonal matrices that are split over ranks.

    `factor_block_tridiagonal` and `factor_pentadiagonal` create it if they get a group. All ranks
    make the same calls in the same order. Of matrices on a device the factors are there; of those
    that are solved as whole lines the host keeps the matrices.

    Attributes
    ----------
    batch : tuple of int
        Shape of the part of the batch of matrices of this rank.
    rows : int
        Number of rows that this rank holds of each matrix.
    side : int
        Number of rows of a block; 1 for five diagonals.
    dtype : dtype
        Dtype of the factors.
    axis : int
        Axis of the rows, as in `BlockTridiagonalFactor`.
    periodic : bool
        The argument of the function.
    is_kept : bool
        Whether there are factors; otherwise each solve eliminates whole systems.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import factor_block_tridiagonal
    >>> from pysolvers.distributed import Group, Slab
    >>> group, split = Group(), Slab(axis=-1)
    >>> off, diag = -np.eye(2), 4 * np.eye(2)
    >>> factor = factor_block_tridiagonal(off, diag, off, rows=8, group=group, split=split)
    >>> factor.solve(np.ones((8, 2, 1))).shape
    (8, 2, 1)
    """

    def __init__(
        self,
        kind: Kind,
        group: Group | None,
        split: Slab | None,
        named: dict[str, Any],
        *,
        axis: int,
        rows: int | None,
        threads: int | None,
        **given_options: Any,
    ) -> None:
        self._group, self._split = checked_group(group, split)
        self._kind = kind._replace(operation=kind.operation.replace("solve", "factor"))
        self._named, self._threads = named, threads
        operation = self._kind.operation
        with self._group.agreement(operation) as agreed:
            options = checked_options(operation, named, threads=threads, **given_options)
            given = [value for value in named.values() if value is not None]
            ndim = max(1, *(len(shape_of(value)) - kind.tail + 1 for value in given))
            place, _ = systems.row_axis(axis, ndim, f"operands of {ndim} axes", False)
            along = self._along(ndim, axis)
            is_cut = along == place % ndim and self._group.size > 1
            agreed.same = facts_of(named, options, is_cut=is_cut)
            is_whole_ring = options.periodic and not is_cut
            where = axis, options.assume, None, rows
            found, _, _ = self._kind.resolve(operation, named, *where, periodic=is_whole_ring)
            code = systems.pivoting(found.target.backend, options.assume, options.pivot)
            kind.require(operation, found, periodic=is_whole_ring)
            full = systems.shape_of(found.matrices.batch, found.rows, place)
            call = Call(self._kind, named, found, options, full, place, along, is_cut, code)
            call, part = own_part(agreed, self._group, call, found.matrices.dtype)
        self._sizes = completed(agreed, call, part)
        self._call = call
        #: How results are returned, of matrices on a device.
        self._results: systems.DeviceResults | None = None
        if found.target.name != "cpu":
            like = next(value for value in given if locate(value) is not None)
            self._results = systems.DeviceResults(found.target, like, kind.tail)
        matrices = found.matrices
        self.batch, self.rows, self.axis = matrices.batch, found.rows, found.axis
        self.side = max(1, matrices.side // (2 if found.is_complex else 1))
        self.dtype = np.dtype(matrices.dtype)
        if found.is_complex:
            self.dtype = np.result_type(self.dtype, np.complex64)
        self.periodic = options.periodic
        self._local: Any = None
        self._ends: _Ends | None = None
        if not is_cut:
            self._factor_whole_matrices(axis, rows)
        elif part is not None:
            self._ends = self._eliminated(part)
            if self._ends is None:
                self._keep_matrices(axis, rows)
        if self.is_kept:
            self._release()

    @property
    def is_kept(self) -> bool:
        """Whether there are factors; otherwise each solve eliminates whole systems."""
        return not self._call.is_cut or self._ends is not None

    def solve(self, rhs: ArrayLike, *, axis: int | None = None) -> Array:
        """Solve with the matrices; collective.

        Parameters
        ----------
        rhs : array_like, shape (..., n, k, m), or (..., n, ...) for five diagonals
            The part of the right-hand sides of this rank, as in `BlockTridiagonalFactor.solve`.
        axis : int, optional
            Axis of the rows, as in `BlockTridiagonalFactor.solve`.

        Returns
        -------
        array, shape of `rhs`
            The part of the solutions of this rank.

        Raises
        ------
        TypeError, ValueError
            As in `BlockTridiagonalFactor.solve`.
        DistributedError
            As in `pysolvers.solve_tridiagonal`.
        """
        operation = "SplitBlockFactor.solve"
        columns = None
        with self._group.agreement(operation) as agreed:
            if self._local is not None:
                return self._local.solve(rhs, axis=axis)
            if self._results is not None:
                target, array = self._results.right_side(operation, self.dtype, rhs)
            else:
                target = systems.host_target(operation, {"rhs": rhs}, None, "rhs")
                array = systems.right_side(target, rhs, self.dtype)
            tail = self._kind.tail - 1
            sides = array.ndim - tail
            place = axis_of_solutions(axis, self.axis, len(self.batch) + 1, sides, tail=tail)
            wide = self._kind.wide(self, array, place)
            dtype = np.result_type(array.dtype, self.dtype)
            shape = np.moveaxis(wide, -1 - tail, place - tail).shape
            result = target.result(None, {"rhs": rhs}, array, shape, dtype, leader="rhs")
            if result.size and self._ends is not None:
                found = self._call.found._replace(axis=place, target=target)
                columns = self._kind.columns(found, wide, result)
            rest = list(wide.shape)
            rest[-1 - tail] = -1
            agreed.same = {"dtype": str(dtype), "shape": tuple(rest), "axis": place}
        if columns is not None and self._ends is not None:
            parts, finish = columns
            self._solve_ends(self._ends, parts, target)
            finish()
        elif result.size:
            x = self._solve_anew(target.download(array), place)
            target.write(target.destination(result), target.upload(x))
        return target.finish(result, rhs, None)

    def logdet(self) -> Array:
        r"""Return :math:`\log |\det A|` of each matrix, in float64; collective.

        Returns
        -------
        array, shape of the batch
            The logarithms, of the matrices of this rank if the batch is split.

        Raises
        ------
        SingularSystemError
            As in `BlockTridiagonalFactor.logdet`.
        DistributedError
            As in `pysolvers.solve_tridiagonal`.
        """
        operation = "SplitBlockFactor.logdet"
        if self._local is not None:
            with self._group.agreement(operation):
                return self._local.logdet()
        if self._ends is None:
            values = self._logdet_of_whole_lines(operation)
        else:
            values = self._logdet_of_parts(operation, self._ends)
        if self._results is None:
            return values[()]
        target = self._results.target(operation)
        return self._results.finish(target, target.upload(values))

    def _logdet_of_parts(self, operation: str, ends: _Ends) -> Array:
        """Return the logarithms by factors of the parts, and of the reduced matrices."""
        part, call = ends.part, self._call
        values = np.zeros(self.batch)
        with self._group._agreed_numbers(operation, values.size, values.dtype) as found:
            if part.factors is not None:
                target = call.found.target
                if self._results is not None:
                    target = self._results.target(operation)
                values = target.download(systems.logdet(target, part.factors)[0])
                if part.factors.matrices.dtype != self.dtype and call.kind.tail == 1:
                    values = values / 2  # real matrices of five complex diagonals
            found.mine = np.ravel(values)
        assert found.numbers is not None
        total = found.numbers.sum(0).reshape(self.batch)
        total = total + ends.reduced.logdet()
        halves = call.found.is_complex and call.kind.tail > 1
        return total / 2 if halves else total

    def __repr__(self) -> str:
        return (
            f"<SplitBlockFactor of {self.rows} rows, side {self.side}, batch {self.batch}, "
            f"{self.dtype}, rank {self._group.rank} of {self._group.size}>"
        )

    def _along(self, ndim: int, axis: int) -> int:
        """Return the axis of matrices of `ndim` axes along which they are split, or raise."""
        split = self._split.axis
        if ndim > 1 or {axis, split} <= {0, -1}:
            return self._split.of(ndim)
        if split != axis:
            raise ValueError(
                f"{self._kind.operation}: matrices without batch axes are split along their rows, "
                f"which are axis {axis}, got split=Slab({split}): write Slab({axis}), or without a "
                "group factor matrices that all ranks have"
            )
        return 0

    def _factor_whole_matrices(self, axis: int, rows: int | None) -> None:
        """Factor the matrices of this rank, which lie complete on it."""
        group, call = self._group, self._call
        options = call.options
        policy = options.policy
        with group.agreement(self._kind.operation) as done:
            self._local = self._kind.factor_function(
                **self._named,
                axis=axis,
                rows=rows,
                on_singular=options.policy_of_parts,
                threads=self._threads,
                **options.of_matrices,
            )
            matrices = call.found.matrices
            singular = self._local._singular
            done.own = systems.explained(singular, matrices, policy, call.found.target)
        singular = done.found[0]
        if group.size > 1:
            place = call.axis % len(call.shape)
            singular = merged(done.found, self._sizes, call.along - (call.along > place))
        systems.report(singular, matrices, policy, 4)

    def _eliminated(self, part: Part) -> _Ends | None:
        """Factor by the partition method; None if the systems must be solved as whole lines."""
        call = self._call
        if not has_ends(call, self._sizes):
            return None
        left = eliminate(self._group, call, part, (), keeps=True)
        if left is None:
            return None
        reduced = of_reduced(call, left.found, call.kind.factor_blocks)
        return None if reduced is None else _Ends(part, part.keep(left.spikes), left.found, reduced)

    def _solve_ends(
        self, ends: _Ends, parts: Sequence[tuple[Array, Array]], target: Target
    ) -> None:
        """Solve by the partition method."""
        kind = self._kind._replace(operation="SplitBlockFactor.solve")
        call = self._call._replace(kind=kind)
        part = ends.part.on(target)
        left = eliminate(self._group, call, part, parts, (ends.spikes, ends.found))
        assert left is not None
        right = left.rhs(periodic=self.periodic)
        y = in_parts(ends.reduced.solve(as_one(right), axis=-1), right)
        left.substitute(part, y, self._group.rank)

    def _release(self) -> None:
        """Keep no operands of the matrices, which no solve needs."""
        found = self._call.found
        found = found._replace(
            matrices=found.matrices.without_operands(),
            views=type(found.views)(),
            target=found.target.without_operands(),
        )
        self._call, self._named = self._call._replace(named={}, found=found), {}

    def _keep_matrices(self, axis: int, rows: int | None) -> None:
        """Copy the matrices to the host, for each solve; report those that are singular."""
        call, operation = self._call, self._kind.operation
        with self._group.agreement(operation):
            target = call.found.target
            self._named = {
                name: systems.on_host(target, name, value) for name, value in self._named.items()
            }
            where = axis, call.options.assume, None, rows
            found, _, _ = self._kind.resolve(operation, self._named, *where, periodic=False)
            call = call._replace(named=self._named, found=found)
            self._call = with_all_rows(call, self._group)
        if call.options.policy in ("raise", "warn"):
            self._report_singular()

    def _solve_anew(self, rhs: Array, axis: int, policy: OnSingular | None = None) -> Array:
        """Solve whole lines."""
        call = self._call
        x: Array = self._kind.function(
            **self._named,
            rhs=rhs,
            axis=axis,
            on_singular=policy or call.options.policy_of_parts,
            threads=self._threads,
            group=self._group,
            split=Slab(axis),
            **call.options.of_matrices,
        )
        return x

    def _report_singular(self) -> None:
        """Raise or warn for singular matrices, which a solve finds."""
        shape = systems.shape_of(self.batch, self.rows, self.axis if self.batch else -1)
        rest = (self.side, 1) * (self._kind.tail > 1)
        rhs = np.zeros((*shape, *rest), self.dtype)
        axis = self.axis if self.batch else -1
        self._solve_anew(
            rhs, axis_number(axis, len(shape), "") - len(shape), self._call.options.policy
        )

    def _logdet_of_whole_lines(self, operation: str) -> Array:
        """Return the logarithms by factors of whole lines."""
        call, group = self._call, self._group
        shares = Shares(group, operation, self._sizes, prod(self.batch))
        with group.agreement(operation):
            given = lines_of_matrices(call)
        whole = {name: shares.to_lines(own) for name, own in given.items()}
        with group.agreement(operation) as done:
            done.own = np.zeros(0)
            if len(shares.own):
                factor = self._kind.factor_function(
                    **whole_matrices(self._kind, whole),
                    axis=-1,
                    on_singular="ignore",
                    threads=self._threads,
                    **call.options.of_matrices,
                )
                done.own = np.ravel(factor.logdet())
        values = np.concatenate(done.found).reshape(self.batch)
        halves = call.found.is_complex and call.kind.tail > 1  # real matrices of complex blocks
        return values / 2 if halves else values
