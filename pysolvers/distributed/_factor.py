"""`factor_tridiagonal` for arrays that are split over the ranks of a group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import require_flag
from .._lines.factor import (
    Matrices as Operands,
    TridiagonalFactor,
    require_same_form,
    resolve_matrices,
    rhs_shape,
)
from .._lines.masks import inside_of, masked_matrices
from .._options import (
    OnSingular,
    SolveInfo,
    Trans,
    check_choice,
    check_policy,
    check_threads,
    pivot_code,
)
from .._row_sums import RowSums, form_of, matrix_names
from .._runtime.arrays import factor_axis, resolve_shape
from .._runtime.finite import require_finite_operands
from .._runtime.lines import Shape, brought_side
from .._runtime.singular import Singular
from .._runtime.targets import Target, find_target
from ._ends import (
    Coefficients,
    Matrices,
    Solve,
    Spikes,
    packed,
    reduced_matrix,
    reduced_rhs,
    unpacked,
    values_of,
)
from ._group import Group, own_device
from ._masks import beyond_part, keep_outside
from ._slab import Slab
from ._systems import (
    NO_FAILURES,
    check_short,
    check_sizes,
    checked_group,
    failures_of,
    merged,
    numbered,
)
from ._whole import Shares, whole_lines

Array = NDArray[Any]

_FACTOR, _SOLVE = "factor_tridiagonal", "SplitFactor.solve"


class _Options(NamedTuple):
    """Options of `factor_tridiagonal` as the caller gave them."""

    axis: int
    rows: int | None
    pivot: bool | None
    periodic: bool
    on_singular: OnSingular
    device: str | None
    threads: int | None
    check_finite: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Ends:
    """Factors by the partition method."""

    matrices: Matrices
    interior: TridiagonalFactor | None  # None for one row
    found: Coefficients  # of all ranks
    spikes: Spikes
    reduced: TridiagonalFactor
    nbytes: int


@dataclass(frozen=True, slots=True, eq=False)
class _Whole:
    """Factors of the share of whole lines of this rank; None if it has none."""

    factor: TridiagonalFactor | None
    is_shared: bool


_State = TridiagonalFactor | _Ends | _Whole
_Given = tuple[Target, Operands]


def _solver(target: Target, interior: TridiagonalFactor | None, threads: int) -> Solve:
    """Return a function that solves systems of the interior."""

    def solve(rows: slice, right: Array, solution: Array) -> bool:
        """Solve with the factors; none of the systems is singular."""
        assert interior is not None  # of one row there is no interior to solve for
        interior._solve_views(target, right, solution, target.backend.TRANS["N"], threads)
        return True

    return solve


class SplitFactor:
    """Factors of tridiagonal matrices whose rows, or whose batch, are split over ranks.

    `pysolvers.factor_tridiagonal` creates it if it gets a group. All ranks make the same calls in
    the same order.

    Attributes
    ----------
    shape : tuple of int
        Broadcast shape of the part of the diagonals of this rank.
    axis : int
        Axis of the systems in right-hand sides, as in `TridiagonalFactor`.
    dtype : dtype
        Dtype of the factors.
    rows : int
        Number of rows that this rank holds of each matrix.
    pivot : bool or None
        The argument of `factor_tridiagonal`.
    periodic : bool
        The argument of `factor_tridiagonal`.
    info : SolveInfo
        Method, threads and counts of the factorisation; ``info.rows`` counts the rows of all
        ranks.
    nbytes : int
        Size of the factors of this rank in bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import factor_tridiagonal
    >>> from pysolvers.distributed import Group, Slab
    >>> group, split = Group(), Slab(axis=-1)
    >>> factor = factor_tridiagonal(-1.0, 4.0, -1.0, rows=8, group=group, split=split)
    >>> factor.solve(np.ones((3, 8))).shape
    (3, 8)
    """

    def __init__(
        self,
        group: Group | None,
        split: Slab | None,
        named: dict[str, Any],
        stream: object,
        options: Sequence[Any],
        where: Any = None,
    ) -> None:
        self._group, self._split = checked_group(group, split)
        self._options = _Options(*options)
        self.pivot = self._options.pivot
        diag, form = form_of(named["diag"])
        self._has_sums = form is not None
        #: The rows inside on this rank, on the host, the rows last; None without a mask.
        self._inside: Array | None = None
        self._mask: Array | None = None  # the same where the factors are
        named = {**named, "diag": diag}
        given = None if where is None else self._masked(named, where, stream, form)
        self._factor(named, stream, form, given)

    @property
    def nbytes(self) -> int:
        """Size of the factors of this rank in bytes."""
        state = self._state
        if isinstance(state, _Whole):
            return 0 if state.factor is None else state.factor.nbytes
        return state.nbytes

    def solve(
        self,
        rhs: ArrayLike,
        *,
        axis: int | None = None,
        trans: Trans = "N",
        out: Any = None,
        threads: int | None = None,
        stream: object = None,
        check_finite: bool = False,
    ) -> Any:
        """Solve with the factored matrices; collective.

        Parameters
        ----------
        rhs : array_like, shape (..., rows, ...)
            The part of the right-hand sides of this rank, as in `TridiagonalFactor.solve`.
        axis : int, optional
            Axis of the systems in `rhs`, as in `TridiagonalFactor.solve`.
        trans : {'N', 'T', 'H'}
            As in `TridiagonalFactor.solve`. Only ``'N'`` if the systems are cut: factor the
            transposed matrices.
        out : array, optional
            Array for the part of the solution of this rank; it can be `rhs` itself. After an error
            its values are undefined.
        threads : int, optional
            Number of host threads.
        stream : int or object, optional
            Stream of the factor's device.
        check_finite : bool, default: False
            Whether to raise an error if an entry of `rhs` is NaN or infinite.

        Returns
        -------
        array, shape of `rhs`, or of the factor if `rhs` has one dimension
            The part of the solutions of this rank.

        Raises
        ------
        TypeError, ValueError
            As in `TridiagonalFactor.solve`.
        DistributedError
            As in `pysolvers.solve_tridiagonal`.
        """
        named = {"rhs": rhs}
        with self._group.agreement(_SOLVE) as agreed:
            target = find_target(self._device, stream, named, out, operation=_SOLVE, leader="rhs")
            code, count = check_choice("trans", trans, target.backend.TRANS), check_threads(threads)
            if trans != "N" and not isinstance(self._state, TridiagonalFactor):
                raise ValueError(
                    f"trans must be 'N' for systems that are cut, got {trans!r}: factor the "
                    "transposed matrices"
                )
            like = {"the factor": np.empty((1,), self.dtype)}
            (array,), dtype, _ = target.operands(named, like, widens=True)
            shape = rhs_shape(self.shape, self.axis, array, axis)
            require_flag("check_finite", check_finite)
            if check_finite:
                finite = {"rhs": array}
                if self._inside is not None:
                    inside = np.broadcast_to(self._inside, (*shape.batch, shape.rows))
                    finite["where"] = np.moveaxis(inside, -1, shape.axis)
                require_finite_operands(_SOLVE, target, finite, shape, periodic=self.periodic)
            result = target.result(out, named, array, shape.full, dtype)
            right = brought_side(target, shape, array)
            x = target.destination(result) if result.size else result
            agreed.own = shape.batch
            same_batch = None if isinstance(self._state, TridiagonalFactor) else shape.batch
            agreed.same = {"dtype": str(dtype), "batch shape": same_batch, "trans": trans}
        solution = shape.batch_first(x)
        mask = self._inside if isinstance(self._state, _Whole) else None
        if result.size and mask is None:
            self._solve(target, right, solution, code, count)
        elif result.size and mask is not None:
            # Right-hand sides outside count as 0: NaN times 0 is NaN.
            where = np.broadcast_to(mask, solution.shape)
            inner = target.selected(right, where, 0.0)
            self._solve(target, inner, inner, code, count)
            keep_outside(target, solution, inner, where, right)
        return target.finish(result, rhs, out)

    def _solve_views(self, target: Target, rhs: Array, x: Array, threads: int = 0) -> None:
        """Solve right-hand sides on a target, their rows last; `x` can be `rhs` itself; collective.

        The ranks do not compare what they pass.
        """
        self._solve(target, rhs, x, target.backend.TRANS["N"], threads)

    def refactor(
        self,
        lower: ArrayLike,
        diag: ArrayLike | RowSums,
        upper: ArrayLike,
        *,
        stream: object = None,
    ) -> None:
        """Factor other matrices of the same shape, dtype and form; collective.

        Parameters
        ----------
        lower, diag, upper : array_like
            The parts of the new diagonals of this rank.
        stream : int or object, optional
            Stream of the factor's device.

        Raises
        ------
        ValueError
            If the matrices have another shape, dtype or form than before. The old factors are kept.
        """
        if self._inside is not None:
            raise ValueError(
                "SplitFactor.refactor: the factor has a mask: make a new factor with where"
            )
        named = {"lower": lower, "diag": diag, "upper": upper}
        new = SplitFactor(self._group, self._split, named, stream, self._options)
        with self._group.agreement(_FACTOR):
            _, form = form_of(diag)
            require_same_form("SplitFactor.refactor", form, has_sums=self._has_sums)
            if (new.shape, new.dtype) != (self.shape, self.dtype):
                raise ValueError(
                    f"the matrices must have the shape {self.shape} and the dtype {self.dtype}, "
                    f"got {new.shape} and {new.dtype}"
                )
        self.__dict__ = new.__dict__

    def __repr__(self) -> str:
        return (
            f"<SplitFactor shape={self.shape} axis={self.axis} dtype={self.dtype} "
            f"rank {self._group.rank} of {self._group.size}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a SplitFactor cannot be pickled or copied: factor the diagonals again")

    def _target(self, named: dict[str, Any], stream: object) -> Target:
        """Check the options, and return where the diagonals are."""
        options = self._options
        target = find_target(
            own_device(options.device, self._group, named),
            stream,
            named,
            operation=_FACTOR,
            leader="diag",
            timed=True,
        )
        require_flag("periodic", options.periodic)
        pivot_code(options.pivot, target.backend.PIVOTS, has_sums=self._has_sums)
        check_threads(options.threads)
        check_policy(options.on_singular)
        require_flag("check_finite", options.check_finite)
        return target

    def _along(self, ndim: int) -> int:
        """Return the axis of matrices of `ndim` axes along which they are split, or raise.

        Matrices of one axis, which can be any axis of right-hand sides, are split along it.
        """
        axis, split = self._options.axis, self._split.axis
        if ndim > 1 or {axis, split} <= {0, -1}:
            return self._split.of(ndim)
        if split != axis:
            raise ValueError(
                f"{_FACTOR}: diagonals of one dimension are split along their rows, which are axis "
                f"{axis}, got split=Slab({split}): write Slab({axis}), or without a group "
                "factor diagonals that all ranks have"
            )
        return 0

    def _masked(
        self, named: dict[str, Any], where: Any, stream: object, form: RowSums | None
    ) -> _Given:
        """Keep a mask; return diagonals with rows of the identity outside; collective."""
        group, options, periodic = self._group, self._options, bool(self._options.periodic)
        with group.agreement(_FACTOR) as agreed:
            target = self._target({**named, "where": where}, stream)
            operands, dtype, copied = target.operands(named)
            mask = target.mask("where", where)
            arrays = {**dict(zip(named, operands, strict=True)), "where": mask}
            place, kept = factor_axis(options.axis, max(1, *(a.ndim for a in arrays.values())))
            shape = resolve_shape(
                arrays, place, leader="diag", periodic=periodic, rows=options.rows
            )
            if options.check_finite:
                require_finite_operands(_FACTOR, target, arrays, shape, periodic=periodic)
            inside = inside_of(target, mask, shape)
            along = self._along(len(shape.full))
            is_cut = along == shape.axis and group.size > 1
            if is_cut:
                check_short(group, shape)
            agreed.own = shape.full[along]
            agreed.same = {
                "batch shape of where": inside.shape[:-1] if is_cut else None,
                "whether systems are cut": is_cut,
                "periodic": periodic,
            }
        check_sizes(along, agreed.found)
        beyond = beyond_part(
            group, _FACTOR, inside, is_cut=is_cut and shape.rows > 0, periodic=periodic
        )
        with group.agreement(_FACTOR):
            checks = form is not None and form.check_signs
            masked, sign = masked_matrices(
                _FACTOR,
                target,
                shape.operands(operands),
                shape,
                inside,
                beyond,
                periodic=periodic,
                has_sums=self._has_sums,
                check_signs=checks and target.reports_singular(options.on_singular),
            )
        self._inside, self._beyond = inside, beyond
        self._mask = target.hold(inside)
        moved = [np.moveaxis(array, -1, shape.axis) for array in masked]
        own = Shape(moved[1].shape, shape.axis, shape.omits[:3])
        return target, Operands(moved, dtype, own, copied, kept, sign)

    def _factor(
        self,
        named: dict[str, Any],
        stream: object,
        form: RowSums | None,
        masked: _Given | None,
    ) -> None:
        """Factor by the ends, or as whole lines where rows are exchanged; collective.

        `masked` replaces the diagonals `named`.
        """
        group, options = self._group, self._options
        with group.agreement(_FACTOR) as agreed:
            if masked is not None:
                target, given = masked
            else:
                target = self._target(named, stream)
                given = resolve_matrices(
                    target,
                    named,
                    options.axis,
                    options.rows,
                    periodic=bool(options.periodic),
                    check_finite=bool(options.check_finite),
                    form=form,
                    policy=options.on_singular,
                )
            full = given.shape.full
            along = self._along(len(full))
            is_cut = along == given.shape.axis
            if is_cut:
                check_short(group, given.shape)
            agreed.own = full[along]
            agreed.same = {
                "dtype": str(given.dtype),
                "shape": tuple(":" if axis == along else size for axis, size in enumerate(full)),
                "axis": given.axis,
                **{name: getattr(options, name) for name in ("pivot", "periodic", "on_singular")},
                "use of RowSums": self._has_sums,
                "signs of the matrices": given.sign,
            }
        sizes = agreed.found
        check_sizes(along, sizes)
        self._device = target.device_name
        self.shape, self.dtype, self.rows = full, given.dtype, given.shape.rows
        self.axis = given.axis
        self.periodic = bool(options.periodic)
        self._sizes = sizes
        state: _State
        singular: Singular | None
        if is_cut and group.size > 1 and 0 not in full:
            given = given._replace(operands=target.move(*given.operands))
            ends = None if options.pivot else self._factor_ends(target, given)
            if ends is None:
                state, singular, info = self._factor_whole(target, given)
            else:
                state, info = ends
                singular = numbered((), given.shape.batch)
        else:
            state, singular = self._factor_systems(target, given, along, sizes)
            info = state.info
        self._state = state
        total = (*full[:along], sum(sizes), *full[along + 1 :])
        rows = total[given.shape.axis]
        # The counts can be those of another rank; a matrix that is solved on the host keeps 0.
        self.info = replace(
            info,
            device=0 if info.backend == "cpu" else target.ordinal,
            systems=prod(total) // rows if rows else 0,
            rows=rows,
            singular=None if singular is None else singular.systems,
            singular_rows=None if singular is None else singular.rows,
            ranks=group.size,
            exchange={_Ends: "ends", _Whole: "lines"}.get(type(state), "none"),
        )
        if singular is not None:
            singular.report(options.on_singular, _FACTOR, stacklevel=4)

    def _factor_systems(
        self, target: Target, given: Operands, along: int, sizes: Sequence[int]
    ) -> tuple[TridiagonalFactor, Singular | None]:
        """Factor matrices that lie complete on the ranks."""
        options = self._options
        with self._group.agreement(_FACTOR) as done:
            state, done.own = TridiagonalFactor._of_matrices(
                target,
                given,
                options.pivot,
                options.on_singular,
                options.threads,
                periodic=self.periodic,
                has_sums=self._has_sums,
            )
            if self._inside is not None:
                state._hold_mask(target, self._inside)
        if along == given.shape.axis or any(own is None for own in done.found):
            return state, done.own
        return state, merged(done.found, sizes, along - (along > given.shape.axis))

    def _factor_ends(self, target: Target, given: Operands) -> tuple[_Ends, SolveInfo] | None:
        """Factor by the partition method; None if the matrices need row exchanges."""
        group, options, shape = self._group, self._options, given.shape
        periodic = self.periodic
        interior: TridiagonalFactor | None = None
        nbytes = 0
        with group.agreement(_FACTOR) as eliminated:
            matrices = Matrices(
                target,
                shape.operands(given.operands),
                shape,
                (group.rank, group.size),
                periodic=periodic,
                has_sums=self._has_sums,
                mask=None if self._inside is None else (self._inside, self._beyond),
            )
            usable = options.pivot is False or self._has_sums or matrices.is_dominant

            def solve(rows: slice, right: Array, solution: Array) -> bool:
                """Solve with the factors of the interior, or with new ones of other rows."""
                if rows == matrices.interior:
                    return _solver(target, interior, 0)(rows, right, solution)
                factor, is_sound = self._factor_rows(target, given, matrices, rows)
                return is_sound and _solver(target, factor, 0)(rows, right, solution)

            if shape.rows > 1:
                interior, is_sound = self._factor_rows(target, given, matrices, matrices.interior)
                usable = usable and is_sound
                nbytes = interior.nbytes
                if self._inside is not None:
                    interior._hold_mask(target, self._inside[..., matrices.interior])
            if usable:
                own, spikes = matrices.eliminate(solve)
            eliminated.own = usable, None if interior is None else interior.info
        if not all(usable for usable, _ in eliminated.found):
            return None
        numbers = group.allgather(_FACTOR, packed(own, given.dtype))
        found = Coefficients(*unpacked(numbers, (matrices.batch,) * len(own)))
        lower, diag, upper = reduced_matrix(found, periodic=periodic)
        reduced = TridiagonalFactor(
            lower,
            RowSums(diag, check_signs=False) if self._has_sums else diag,
            upper,
            axis=0,
            rows=group.size,
            periodic=periodic,
            on_singular="ignore",
            threads=options.threads,
        )
        assert reduced.info.singular is not None  # of arrays of the host
        if len(reduced.info.singular):  # the same numbers on all ranks, and so the same outcome
            return None
        info = next((info for _, info in eliminated.found if info is not None), reduced.info)
        nbytes += reduced.nbytes
        nbytes += sum(values_of(spike).nbytes for spike in spikes if spike)
        state = _Ends(matrices, interior, found, spikes, reduced, nbytes)
        return state, replace(info, method="partition", pivoted=0, repeated=0)

    def _factor_rows(
        self, target: Target, given: Operands, matrices: Matrices, rows: slice
    ) -> tuple[TridiagonalFactor, bool]:
        """Factor interior rows; also return whether no row was exchanged and no pivot was bad."""
        operands, is_short = matrices.diagonals(rows)
        inside = (*matrices.batch, rows.stop - rows.start)
        factor, singular = TridiagonalFactor._of_matrices(
            target,
            given._replace(
                operands=operands, shape=Shape(inside, len(inside) - 1, (is_short, False, False))
            ),
            self._options.pivot,
            "raise",
            self._options.threads,
            periodic=False,
            has_sums=self._has_sums,
        )
        is_sound = singular is not None and not len(singular.rows)
        return factor, is_sound and factor.info.pivoted == 0

    def _factor_whole(self, target: Target, given: Operands) -> tuple[_Whole, Singular, SolveInfo]:
        """Factor every matrix on one rank, as on one device, or a shared matrix on every rank."""
        group, options, shape = self._group, self._options, given.shape
        views = shape.operands(given.operands)
        shares, lines, is_shared = whole_lines(group, _FACTOR, target, shape, views, self._sizes)
        factor, failures = None, NO_FAILURES
        with group.agreement(_FACTOR) as done:
            if is_shared or len(shares.own):
                lower, diag, upper = (line[0] if is_shared else line[:, None] for line in lines)
                factor = TridiagonalFactor(
                    lower,
                    RowSums(diag, check_signs=False) if self._has_sums else diag,
                    upper,
                    pivot=options.pivot,
                    device="cpu" if self._has_sums else self._device,
                    periodic=self.periodic,
                    on_singular="nan" if options.on_singular == "nan" else "ignore",
                    threads=options.threads,
                )
                first = 0 if is_shared else shares.own.start
                names = matrix_names(has_sums=self._has_sums)
                failures = failures_of(
                    factor.info, lines, first, periodic=self.periodic, names=names
                )
            done.own = failures, None if factor is None else factor.info
        chosen = done.found[:1] if is_shared else done.found
        failed, infos = zip(*chosen, strict=True)
        singular = numbered(failed, shape.batch)
        info = next(info for info in infos if info is not None)
        pivoted = sum(info.pivoted or 0 for info in infos if info is not None)
        return _Whole(factor, is_shared), singular, replace(info, pivoted=pivoted)

    def _solve(self, target: Target, rhs: Array, x: Array, code: int, count: int) -> None:
        """Solve right-hand sides of this rank, their rows last."""
        state = self._state
        if isinstance(state, TridiagonalFactor):
            state._solve_views(target, rhs, x, code, count)
        elif isinstance(state, _Ends):
            self._solve_ends(state, target, rhs, x, count)
        else:
            self._solve_whole(state, target, rhs, x, count)

    def _solve_ends(self, state: _Ends, target: Target, rhs: Array, x: Array, count: int) -> None:
        """Solve by the partition method; the solution can replace the right-hand sides."""
        group, matrices, interior = self._group, state.matrices, state.interior
        shapes = (x.shape[:-1],) * 2
        size = sum(prod(shape) for shape in shapes)
        with group._agreed_numbers(_SOLVE, size, x.dtype) as reduced:
            ends = matrices.reduce(rhs, x, _solver(target, interior, count), target)
            reduced.mine = packed(ends, x.dtype)
        assert reduced.numbers is not None  # every rank has numbers, or all have raised
        g_first, d = unpacked(reduced.numbers, shapes)
        right = reduced_rhs(state.found, g_first, d, periodic=self.periodic)
        y = state.reduced.solve(right, axis=0)
        ends = y[group.rank - 1], y[group.rank]
        matrices.substitute(x, x, state.spikes, *ends, target, rhs=rhs)

    def _solve_whole(self, state: _Whole, target: Target, rhs: Array, x: Array, count: int) -> None:
        """Solve the share of lines that this rank has the factors of, and return the parts."""
        group = self._group
        batch, rows = x.shape[:-1], x.shape[-1]
        own_batch = Shape(self.shape, self.axis % len(self.shape), ()).batch
        own_batch = (1,) * (len(batch) - len(own_batch)) + own_batch
        # The axes of the matrices first; the other axes are further right-hand sides.
        own = [axis for axis, size in enumerate(own_batch) if size > 1 and not state.is_shared]
        order = [*own, *(axis for axis in range(len(batch)) if axis not in own)]
        lines = prod(batch[axis] for axis in (own or order))
        with group.agreement(_SOLVE):
            part = target.download(rhs).transpose(*order, len(batch))
            part = part.reshape(lines, prod(batch) // lines, rows)
        shares = Shares(group, _SOLVE, self._sizes, lines)
        whole = shares.to_lines(part)
        with group.agreement(_SOLVE):
            if state.factor is not None and whole.size:
                whole = np.asarray(state.factor.solve(whole, threads=count or None))
        part = shares.from_lines(whole).reshape(*(batch[axis] for axis in order), rows)
        with group.agreement(_SOLVE):
            inverse = [*np.argsort(np.array(order, int)), len(batch)]
            target.write(x, target.upload(part.transpose(inverse)))
