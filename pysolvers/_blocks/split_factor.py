"""Factors of block tridiagonal and pentadiagonal matrices that are split over the ranks of a group.

The method of split.py. The factors of the interior, l, u and the factors of the reduced matrix are
kept. A solve exchanges 2 s numbers for each right-hand side. The determinant is the
product of those of the interiors and of the reduced matrix.

Matrices that are neither dominant nor definite have no such factors: each solve solves whole lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import axis_number, require_flag
from .._errors import SingularSystemError
from .._options import OnSingular, check_policy, check_threads
from .._runtime.arrays import axis_of_solutions
from .._runtime.interop import shape_of
from .._runtime.singular import Singular
from ..distributed import Group, Slab
from ..distributed._ends import packed, unpacked
from ..distributed._systems import check_sizes, checked_group, merged
from ..distributed._whole import Shares
from . import systems
from .split import (
    NUMBERS,
    Call,
    Coefficients,
    Kind,
    Part,
    Spike,
    lines_of_matrices,
    reduced_matrix,
    reduced_rhs,
    separators,
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
    make the same calls in the same order.

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
        assume: Any,
        periodic: bool,
        pivot: bool | None,
        on_singular: OnSingular,
        threads: int | None,
    ) -> None:
        self._group, self._split = checked_group(group, split)
        self._kind = kind._replace(operation=kind.operation.replace("solve", "factor"))
        self._named, self._threads = named, threads
        operation = self._kind.operation
        with self._group.agreement(operation) as agreed:
            require_flag("periodic", periodic)
            policy, count = check_policy(on_singular), check_threads(threads)
            systems.require_operands(operation, named)
            systems.host_target(operation, named, None, "diag")
            given = [value for value in named.values() if value is not None]
            ndim = max(1, *(len(shape_of(value)) - kind.tail + 1 for value in given))
            place, _ = systems.row_axis(axis, ndim, f"operands of {ndim} axes", False)
            along = self._along(ndim, axis)
            is_cut = along == place % ndim and self._group.size > 1
            found, _, _ = self._kind.resolve(
                operation,
                named,
                axis,
                assume,
                None,
                rows,
                periodic=bool(periodic) and not is_cut,
            )
            code = systems.pivoting(found.target.backend, assume, pivot)
            nothing = np.empty(0)
            options = assume, bool(periodic), pivot, code, policy, count
            call = Call(self._kind, named, found, nothing, nothing, *options)
            part, half = None, None
            if is_cut:
                call = with_all_rows(call, self._group, place)
            if is_cut and prod(found.matrices.batch):
                part = Part(call, (self._group.rank, self._group.size))
                half = part.half
            full = systems.shape_of(found.matrices.batch, found.rows, place)
            agreed.own = full[along], half
            agreed.same = {
                "operands": [name for name, value in named.items() if value is not None],
                "dtype": str(found.matrices.dtype),
                "complex matrices": found.is_complex,
                "side of the blocks": found.matrices.side,
                "shape": tuple(":" if k == along else size for k, size in enumerate(full)),
                "whether matrices are cut": is_cut,
                "assume": assume,
                "periodic": bool(periodic),
                "pivot": pivot,
                "on_singular": policy,
            }
        sizes, halves = zip(*agreed.found, strict=True)
        check_sizes(along, sizes)
        if is_cut and periodic:
            systems.require_periodic_rows(operation, sum(sizes), kind.least_periodic)
        self._call, self._sizes = call, sizes
        matrices = found.matrices
        self.batch, self.rows, self.axis = matrices.batch, found.rows, found.axis
        self.side = max(1, matrices.side // (2 if found.is_complex else 1))
        self.dtype = np.dtype(matrices.dtype)
        if found.is_complex:
            self.dtype = np.result_type(self.dtype, np.complex64)
        self.periodic = bool(periodic)
        self._is_cut = is_cut
        self._local: Any = None
        self._ends: _Ends | None = None
        if not is_cut:
            self._factor_whole_matrices(axis, rows, pivot, along, place % ndim)
        elif part is not None:
            part.complete(halves)
            self._ends = self._eliminated(part)
            if self._ends is not None:
                self._release()
            else:
                self._keep_matrices(axis, rows, place)

    @property
    def is_kept(self) -> bool:
        """Whether there are factors; otherwise each solve eliminates whole systems."""
        return not self._is_cut or self._ends is not None

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
                found = self._call.found._replace(axis=place)
                columns = self._kind.columns(found, wide, result)
            rest = list(wide.shape)
            rest[-1 - tail] = -1
            agreed.same = {"dtype": str(dtype), "shape": tuple(rest), "axis": place}
        if columns is not None and self._ends is not None:
            parts, finish = columns
            self._solve_ends(self._ends, parts)
            finish()
        elif result.size:
            return self._solve_anew(array, place)
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
            return self._logdet_of_whole_lines(operation)
        part, call = self._ends.part, self._call
        values = np.zeros(self.batch)
        with self._group._agreed_numbers(operation, values.size, values.dtype) as found:
            if part.factors is not None:
                values = systems.logdet(call.found.target, part.factors)[0]
                if part.factors.matrices.dtype != self.dtype and call.kind.tail == 1:
                    values = values / 2  # real matrices of five complex diagonals
            found.mine = np.ravel(values)
        assert found.numbers is not None
        total = found.numbers.sum(0).reshape(self.batch)
        total = total + self._ends.reduced.logdet()
        halves = call.found.is_complex and call.kind.tail > 1
        return (total / 2 if halves else total)[()]

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

    def _factor_whole_matrices(
        self, axis: int, rows: int | None, pivot: bool | None, along: int, place: int
    ) -> None:
        """Factor the matrices of this rank, which lie complete on it."""
        group, call = self._group, self._call
        policy = call.policy
        with group.agreement(self._kind.operation) as done:
            self._local = self._kind.factor_function(
                **self._named,
                axis=axis,
                rows=rows,
                assume=call.assume,
                periodic=call.periodic,
                pivot=pivot,
                on_singular="nan" if policy == "nan" else "ignore",
                threads=self._threads,
            )
            matrices = call.found.matrices
            done.own = systems.explained(self._local._singular, matrices, policy)
        singular: Singular = done.found[0]
        if group.size > 1:
            singular = merged(done.found, self._sizes, along - (along > place))
        systems.report(singular, matrices, policy, 4)

    def _eliminated(self, part: Part) -> _Ends | None:
        """Factor by the partition method; None if the systems must be solved as whole lines."""
        call, group = self._call, self._group
        pivots = call.found.target.backend.PIVOTS
        if call.code == pivots["always"] or min(self._sizes) < call.kind.least:
            return None
        shapes = [(*part.batch, part.side, part.side)] * NUMBERS
        count = sum(map(prod, shapes))
        with group._agreed_numbers(call.kind.operation, count, part.dtype) as eliminated:
            is_usable = call.code != pivots["auto"] or part.is_dominant()
            if is_usable and part.factor(call.code, call.threads):
                spikes = part.spikes(call.code, call.threads)
                eliminated.mine = packed([*part.coefficients(spikes)], part.dtype)
        if eliminated.numbers is None:
            return None
        found = Coefficients(*unpacked(eliminated.numbers, shapes))
        blocks, is_ring = reduced_matrix(found, periodic=call.periodic)
        if not all(np.isfinite(block).all() for block in blocks):
            return None
        options: dict[str, Any] = {"assume": call.assume, "periodic": is_ring}
        try:
            reduced = call.kind.factor_blocks(*blocks, threads=self._threads, **options)
        except SingularSystemError:  # the same numbers on all ranks, and so the same outcome
            return None
        return _Ends(part, spikes, found, reduced)

    def _solve_ends(self, ends: _Ends, parts: Sequence[tuple[Array, Array]]) -> None:
        """Solve by the partition method."""
        call, group, part = self._call, self._group, ends.part
        shapes: list[tuple[int, ...]] = []
        for rhs, _ in parts:
            shapes += [(*part.batch_of(rhs), part.side)] * 2
        dtype, kept, numbers = part.dtype, [], []
        never = call.found.target.backend.PIVOTS["never"]
        count = sum(map(prod, shapes))
        with group._agreed_numbers("SplitBlockFactor.solve", count, dtype) as eliminated:
            for rhs, x in parts:
                interior = part.interior_of(x)
                reduced = part.reduce(rhs, interior, never, call.threads)
                assert reduced is not None
                g, *own = reduced
                kept.append((x, interior, g))
                numbers += own
            eliminated.mine = packed(numbers, dtype)
        assert eliminated.numbers is not None
        sides = unpacked(eliminated.numbers, shapes)
        right = reduced_rhs(ends.found, sides, periodic=call.periodic)
        y = separators(ends.reduced.solve(right, axis=-1), sides)
        for (x, interior, g), values in zip(kept, y, strict=True):
            before, after = values[group.rank - 1], values[group.rank]
            part.substitute(x, interior, g, ends.spikes, (before, after))

    def _release(self) -> None:
        """Keep no operands of the matrices, which no solve needs."""
        assert self._ends is not None
        self._ends.part.release()
        found = self._call.found
        matrices = found.matrices.without_operands()
        self._call = self._call._replace(
            named={}, found=found._replace(matrices=matrices, views=type(found.views)())
        )
        self._named = {}

    def _keep_matrices(self, axis: int, rows: int | None, place: int) -> None:
        """Copy the matrices, which each solve reads; report those that are singular."""
        call, operation = self._call, self._kind.operation
        with self._group.agreement(operation):
            self._named = {
                name: None if value is None else np.array(value)
                for name, value in self._named.items()
            }
            where = axis, call.assume, None, rows
            found, _, _ = self._kind.resolve(operation, self._named, *where, periodic=False)
            call = call._replace(named=self._named, found=found)
            self._call = with_all_rows(call, self._group, place)
        if call.policy in ("raise", "warn"):
            self._report_singular()

    def _solve_anew(self, rhs: Array, axis: int, policy: OnSingular | None = None) -> Array:
        """Solve whole lines."""
        call = self._call
        if policy is None:
            policy = "nan" if call.policy == "nan" else "ignore"
        x: Array = self._kind.function(
            **self._named,
            rhs=rhs,
            axis=axis,
            assume=call.assume,
            periodic=call.periodic,
            pivot=call.pivot,
            on_singular=policy,
            threads=self._threads,
            group=self._group,
            split=Slab(axis),
        )
        return x

    def _report_singular(self) -> None:
        """Raise or warn for singular matrices, which a solve finds."""
        shape = systems.shape_of(self.batch, self.rows, self.axis if self.batch else -1)
        rest = (self.side, 1) * (self._kind.tail > 1)
        rhs = np.zeros((*shape, *rest), self.dtype)
        axis = self.axis if self.batch else -1
        self._solve_anew(rhs, axis_number(axis, len(shape), "") - len(shape), self._call.policy)

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
                    assume=call.assume,
                    periodic=call.periodic,
                    pivot=call.pivot,
                    on_singular="ignore",
                    threads=self._threads,
                )
                done.own = np.ravel(factor.logdet())
        values = np.concatenate(done.found).reshape(self.batch)
        halves = call.found.is_complex and call.kind.tail > 1  # real matrices of complex blocks
        return (values / 2 if halves else values)[()]
