"""Factors of batched tridiagonal matrices, for repeated solves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import broadcasts, require_flag
from .._errors import BackendError, raise_for_status
from .._options import (
    Choice,
    OnSingular,
    SolveInfo,
    Trans,
    check_choice,
    check_policy,
    check_threads,
    pivot_code,
    shape_flags,
)
from .._row_sums import RowSums, form_of, matrix_names
from .._runtime.arrays import (
    axis_of_solutions,
    factor_axis,
    factor_shape,
    require_rows,
    resolve_shape,
)
from .._runtime.device import address_of, device_array, is_device_array
from .._runtime.finite import are_checked, explained, require_finite_operands
from .._runtime.interop import host_array, library_of, shape_of
from .._runtime.lines import (
    Plan,
    Shape,
    SideLines,
    Sides,
    arranged_matrices,
    arranged_sides,
    lines_view,
    side_lines,
)
from .._runtime.signs import require_form
from .._runtime.singular import Singular, find_singular
from .._runtime.targets import DeviceTarget, Target, fast_access_of, find_target, report_of_nothing
from .eager import kept_for_programs, programs_for
from .masks import beyond_ends, inside_of, masked_matrices, masked_where_they_are
from .prepared import Operation, Prepared, prepare
from .step import Differences, differentiate, multiply

Array = NDArray[Any]

_NAMES = ("lower", "diag", "upper")
_MULTIPLY = Operation("TridiagonalFactor.multiply", "x", ("x",))


@dataclass(frozen=True, slots=True, eq=False)
class _Factors:
    """The result of one factorisation; `refactor` replaces the whole object."""

    core: Any  # the backend's Factor; None for an empty batch
    plan: Plan
    info: SolveInfo
    singular: Singular | None  # None if the call did not wait for it
    failed: Array | None  # info per system on the device, if solves are to write NaN
    diagonals: list[Array] | None  # copies of those of one real matrix in host memory
    flags: int
    complex_core: list[Any] = field(default_factory=list)  # Factor of these, once it is needed
    given: tuple[Any, ...] | None = None  # diagonals, where programs of a library can solve
    programs: list[Any] = field(default_factory=list)  # for them, once they are needed

    @property
    def may_be_singular(self) -> bool:
        """Whether a matrix is singular, or may be because the call did not wait for it."""
        return self.singular is None or len(self.singular.rows) > 0


class More(NamedTuple):
    """What an implicit step has apart from its right-hand sides u.

    F y = u + step source and x = u + gain (y - u), `repeats` times.
    """

    step: float = 0.0
    gain: float = 0.0  # 0: x = y
    repeats: int = 1


class _Call(NamedTuple):
    """Arguments that all parts of one solve share."""

    factors: _Factors
    core: Any
    target: Target
    trans: int
    threads: int
    more: More | None = None


class Matrices(NamedTuple):
    """Diagonals as arrays of one dtype, and their common shape."""

    operands: list[Array]
    dtype: np.dtype
    shape: Shape
    copied: tuple[str, ...]
    axis: int  # that of solves
    sign: int | None = None  # of matrices given by row sums, as far as it is known


def resolve_matrices(
    target: Target,
    named: dict[str, ArrayLike],
    axis: int,
    rows: int | None,
    *,
    periodic: bool,
    check_finite: bool = False,
    form: RowSums | None = None,
    policy: str = "raise",
) -> Matrices:
    """Check the diagonals of `factor_tridiagonal`, and broadcast their shapes.

    With a `form`, ``diag`` has row sums. `policy` is `on_singular`.
    """
    operands, dtype, copied = target.operands(named)
    arrays = dict(zip(_NAMES, operands, strict=True))
    shape, own = factor_shape(arrays, axis, rows, periodic=periodic)
    if shape.rows > target.backend.MAX_ROWS:
        limit = target.backend.MAX_ROWS
        raise ValueError(f"a matrix can have at most {limit} rows, got {shape.rows}")
    if check_finite:
        require_finite_operands("factor_tridiagonal", target, arrays, shape, periodic=periodic)
    sign = None
    if form is not None:
        sign = require_form(
            "factor_tridiagonal",
            target,
            operands,
            shape,
            periodic=periodic,
            check_signs=form.check_signs and target.reports_singular(policy),
        )
    return Matrices(operands, dtype, shape, copied, own, sign)


def _on_host(target: Target, array: Array) -> Array:
    """Return an array, or a copy of one on a device, waiting for it."""
    return target.download(array) if is_device_array(array) else array


def rhs_shape(
    shape: tuple[int, ...], own_axis: int, rhs: Array, axis: int | None, name: str = "rhs"
) -> Shape:
    """Return the shape of solutions for right-hand sides, which messages call `name`.

    Matrices of `shape`, whose factor has the axis `own_axis`, broadcast to right-hand sides of two
    and more axes. One axis lies along the systems, and the right-hand sides broadcast to the
    matrices. `axis` is the argument of the solve.
    """
    ndim = max(rhs.ndim, len(shape)) if rhs.ndim == 1 else rhs.ndim
    place = ndim + axis_of_solutions(axis, own_axis, len(shape), rhs.ndim, name)
    matrices = Shape(shape, own_axis % len(shape), ())
    own, rows = matrices.batch, matrices.rows
    if rhs.ndim == 1:
        full = (*own[:place], rows, *own[place:])
        require_rows(name, rhs, full, place)
        return Shape(full, place, (False,))
    batch = rhs.shape[: max(place, 0)] + rhs.shape[place + 1 :]
    missing = len(batch) - len(own)
    fits = place >= 0 and missing >= 0 and rhs.shape[place] == rows
    if not fits or any(
        size not in (1, asked) for size, asked in zip(own, batch[missing:], strict=True)
    ):
        which = f"axis {own_axis}" if axis is None else f"axis {axis}"
        others = [k for k, size in enumerate(rhs.shape) if size == rows and k != place]
        advice = "".join(f"; if the rows lie along axis {k}, pass axis={k}" for k in others[:1])
        raise ValueError(
            f"{name} has shape {tuple(rhs.shape)}, to which {shape} of the factor does not "
            f"broadcast with {rows} rows along {which}{advice}"
        )
    return Shape(rhs.shape, place, (False,))


def require_broadcast(operation: str, name: str, array: Any, shape: Shape) -> None:
    """Raise ValueError unless an operand broadcasts to the shape of a result."""
    if array.ndim == 1:
        require_rows(name, array, shape.full, shape.axis)
        return
    if not broadcasts(array.shape, shape.full):
        raise ValueError(
            f"{operation}: {name} must broadcast to the shape of the result, {shape.full}, got "
            f"{tuple(array.shape)}"
        )


def require_same_form(operation: str, form: RowSums | None, *, has_sums: bool) -> None:
    """Raise ValueError unless new matrices have the form of those of a factor."""
    if has_sums and form is None:
        raise ValueError(
            f"{operation}: the factor was made from RowSums: pass RowSums(s) in the place of diag"
        )
    if form is not None and not has_sums:
        raise ValueError(
            f"{operation}: the factor was made from a diagonal: pass the diagonal, "
            "diag = s - lower - upper, instead of RowSums(s)"
        )


class TridiagonalFactor:
    r"""Factors of a batch of tridiagonal matrices.

    `pysolvers.factor_tridiagonal` creates it. Any number of threads can solve with one factor
    at the same time, also while another thread calls `refactor`: each solve uses either the
    old or the new matrices.

    Attributes
    ----------
    shape : tuple of int
        Broadcast shape of the diagonals: (n,), or n entries along `axis`.
    axis : int
        Axis of the systems in right-hand sides: as it was given if `shape` is (n,), otherwise
        that of the matrices, counted from the end.
    dtype : dtype
        Dtype of the factors.
    rows : int
        Number of rows n of each matrix.
    pivot : bool or None
        The argument of `factor_tridiagonal`.
    periodic : bool
        The argument of `factor_tridiagonal`.
    info : SolveInfo
        Method, threads and counts of the last factorisation.
    nbytes : int
        Size of the factors in bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import factor_tridiagonal
    >>> factor = factor_tridiagonal(-1.0, 2.5, -1.0, rows=4)
    >>> x = factor.solve([[1.5, 0.5, 0.5, 1.5], [3.0, 1.0, 1.0, 3.0]])
    >>> x.round(12)
    array([[1., 1., 1., 1.],
           [2., 2., 2., 2.]])
    >>> factor.info.method
    'thomas'
    """

    _factors: _Factors
    _has_sums = False  # whether `diag` holds row sums
    _check_finite = False
    _mask: Array | None = None  # rows inside, the axis of the systems last, where the factors are
    _grouped_masks: dict[Any, Array]  # with axes merged, by shape and groups of axes
    _kept: tuple[Any, Any, Any] | None = None  # the matrix, if it is kept for products

    def __init__(
        self,
        lower: ArrayLike,
        diag: ArrayLike | RowSums,
        upper: ArrayLike,
        *,
        axis: int = -1,
        rows: int | None = None,
        pivot: bool | None = None,
        periodic: bool = False,
        on_singular: OnSingular = "raise",
        device: str | None = None,
        stream: object = None,
        threads: int | None = None,
        check_finite: bool = False,
        where: ArrayLike | None = None,
        keep_matrix: bool = False,
    ) -> None:
        require_flag("keep_matrix", keep_matrix)
        self._kept = (lower, diag, upper) if keep_matrix else None
        diag, form = form_of(diag)
        self._has_sums = form is not None
        named = {"lower": lower, "diag": diag, "upper": upper}
        target = find_target(
            device,
            stream,
            named if where is None else named | {"where": where},
            operation="factor_tridiagonal",
            leader="diag",
            timed=True,
        )
        if where is not None:
            if keep_matrix and target.name != "cpu":
                raise BackendError(
                    "factor_tridiagonal: keep_matrix=True with where needs the CPU: on a device "
                    "keep the diagonals, and write tridiagonal_matvec(lower, diag, upper, x)"
                )
            checks = form is not None and form.check_signs
            named, axis, rows = self._take_mask(
                target,
                named,
                where,
                axis,
                rows,
                periodic=bool(periodic),
                has_sums=form is not None,
                check_signs=checks and target.reports_singular(check_policy(on_singular)),
            )
            form = None if form is None else RowSums(named["diag"], check_signs=False)
            if keep_matrix:
                middle = named["diag"]
                self._kept = (named["lower"], middle if form is None else form, named["upper"])
        require_flag("periodic", periodic)
        require_flag("check_finite", check_finite)
        pivot_code(pivot, target.backend.PIVOTS, has_sums=self._has_sums)
        found = resolve_matrices(
            target,
            named,
            axis,
            rows,
            periodic=bool(periodic),
            check_finite=bool(check_finite),
            form=form,
            policy=check_policy(on_singular),
        )
        self._check_finite = bool(check_finite)
        self._set(target, found, pivot, on_singular, threads, periodic=bool(periodic), stacklevel=4)
        self._factors = self._with_programs(self._factors, named)

    def _take_mask(
        self,
        target: Target,
        named: dict[str, Any],
        where: Any,
        axis: int,
        rows: int | None,
        *,
        periodic: bool,
        has_sums: bool,
        check_signs: bool,
    ) -> tuple[dict[str, Any], int, int]:
        """Keep a mask; return diagonals with rows of the identity outside, not coupled to others.

        The diagonals have all rows. Also return their axis and their rows.
        """
        operands, _, _ = target.operands(named)
        mask = target.mask("where", where)
        arrays = {**dict(zip(_NAMES, operands, strict=True)), "where": mask}
        place, own = factor_axis(axis, max(1, *(array.ndim for array in arrays.values())))
        shape = resolve_shape(arrays, place, leader="diag", periodic=periodic, rows=rows)
        form = {"periodic": periodic, "has_sums": has_sums, "check_signs": check_signs}
        operation = "factor_tridiagonal"
        if isinstance(target, DeviceTarget):
            view, masked = masked_where_they_are(operation, target, arrays, shape, **form)
            inside = np.broadcast_to(view, (*view.shape[:-1], shape.rows))
        else:
            inside = np.broadcast_to(inside_of(target, mask, shape), (*shape.batch, shape.rows))
            masked, _ = masked_matrices(
                operation,
                target,
                shape.operands(operands),
                shape,
                inside,
                beyond_ends(inside, periodic=periodic),
                **form,
            )
        self._hold_mask(target, inside)
        moved = (np.moveaxis(array, -1, shape.axis) for array in masked)
        return dict(zip(_NAMES, moved, strict=True)), own, shape.rows

    @classmethod
    def _of_matrices(
        cls,
        target: Target,
        found: Matrices,
        pivot: bool | None,
        on_singular: OnSingular,
        threads: int | None,
        *,
        periodic: bool,
        has_sums: bool = False,
    ) -> tuple[TridiagonalFactor, Singular | None]:
        """Return factors, and the singular matrices, which the caller has to report.

        With `has_sums` the matrices have row sums in the place of `diag`.
        """
        factor = cls.__new__(cls)
        factor._has_sums = has_sums
        factor._set(target, found, pivot, on_singular, threads, periodic=periodic, stacklevel=None)
        return factor, factor._factors.singular

    def _set(
        self,
        target: Target,
        found: Matrices,
        pivot: bool | None,
        on_singular: OnSingular,
        threads: int | None,
        *,
        periodic: bool,
        stacklevel: int | None,
    ) -> None:
        """Factor the matrices, whose options are checked here, and set all public attributes."""
        self._backend = target.backend
        self._device = target.device_name
        self._pivot_code = pivot_code(pivot, self._backend.PIVOTS, has_sums=self._has_sums)
        self._policy = check_policy(on_singular)
        self._threads = check_threads(threads)
        self.pivot = pivot
        self.periodic = periodic
        shape = found.shape
        self.dtype = found.dtype
        self.shape = shape.full
        self.axis = found.axis
        self.rows = shape.rows
        self._factors = self._factor(
            target,
            found.operands,
            shape,
            found.copied,
            operation="factor_tridiagonal",
            stacklevel=stacklevel,
        )

    @property
    def info(self) -> SolveInfo:
        """Method, threads and counts of the last factorisation."""
        return self._factors.info

    @property
    def nbytes(self) -> int:
        """Size of the factors in bytes."""
        core = self._factors.core
        more = sum(other.nbytes for other in self._factors.complex_core)
        return core.nbytes + more if core is not None else 0

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "a TridiagonalFactor is stored in memory of its backend and cannot be pickled or "
            "copied: keep the diagonals and factor them again"
        )

    def __repr__(self) -> str:
        return (
            f"<TridiagonalFactor shape={self.shape} axis={self.axis} dtype={self.dtype} "
            f"method={self.info.method}>"
        )

    def solve(
        self,
        rhs: ArrayLike,
        *,
        axis: int | None = None,
        trans: Trans = "N",
        out: Array | None = None,
        threads: int | None = None,
        stream: object = None,
        check_finite: bool = False,
    ) -> Array:
        r"""Solve with the factored matrices.

        Parameters
        ----------
        rhs : array_like, shape (..., n, ...)
            Right-hand sides: an array of the host, or an array on the device of the factor,
            with n entries along the axis of the systems. The other axes of the factor must
            broadcast to the other axes of `rhs`. An `rhs` of one dimension has n entries, and
            is the right-hand side of all matrices.
        axis : int, optional
            Axis of the systems in the solution; by default the attribute `axis`: for one factor
            of shape (n,) as it was given, otherwise that of the matrices, counted from the end.
        trans : {'N', 'T', 'H'}
            Whether to solve :math:`A x = b`, :math:`A^T x = b` or :math:`A^H x = b`.
        out : array, optional
            Array for the result, with the dtype and the shape of the result, on
            the device of `rhs`. It can be `rhs` itself, but must not overlap it otherwise.
        threads : int, optional
            Number of host threads; by default as in `solve_tridiagonal`.
        stream : int or object, optional
            Stream of the factor's device; as in `solve_tridiagonal`.
        check_finite : bool, default: False
            Whether to raise an error if an entry of `rhs` is NaN or infinite.

        Returns
        -------
        array, shape of `rhs`, or of the factor if `rhs` has one dimension
            The solutions: `out` if it was given, otherwise a new array of the library of
            `rhs`. They are complex if the factor or `rhs` is. Solutions with singular
            matrices are NaN if the factor was created with ``on_singular='nan'``, otherwise
            unspecified.

        Raises
        ------
        TypeError
            If `rhs` has a higher precision than the factor. Otherwise it is converted to the
            precision of the factor, and made complex if the factor is complex.
        ValueError
            If shapes do not broadcast, `trans` is unknown or `out` cannot hold the result. With
            `check_finite`, if an entry is NaN or infinite.
        BackendError
            If `trans` is not ``'N'``, the matrices were given by `RowSums`, and they are on a
            device.

        Notes
        -----
        With a real factor and a complex `rhs`, real and imaginary parts are two right-hand
        sides of the real matrices. For one matrix and several systems with contiguous rows,
        complex factors of this matrix are made at the first such call and kept.

        `rhs` and `out` are copied once if their batch axes do not merge as those of
        the matrices. If the batch axes of the matrices do not merge to
        one axis, the systems of each index of the axes over which the matrices are shared
        are solved one after the other.

        Calls with arrays of JAX that repeat shapes and options are compiled, if the diagonals are
        numbers or arrays of JAX too; the factor then keeps the diagonals, up to 256 MB.

        If `rhs` is on a device, the call does not wait for the solutions. With `out`, a
        solve can be captured in a CUDA graph; the factor must then exist as long as the
        graph is used.
        """
        code = check_choice("trans", trans, self._backend.TRANS)
        if trans != "N" and self._has_sums and self._device != "cpu":
            raise BackendError(
                f"TridiagonalFactor.solve: trans must be 'N' on a device for matrices that are "
                f"given by RowSums, got {trans!r}: factor them on the CPU, or pass the diagonal, "
                "diag = s - lower - upper"
            )
        count = check_threads(threads)
        if stream is None and self._mask is None and are_checked(check_finite, (rhs,)):
            answer = self._solve_directly(rhs, axis, out, code, count)
            if answer is None and out is None and axis is None:
                answer = self._solve_by_programs(rhs, trans)
            if answer is not None:
                return answer
        return self._solve_planned(
            {"rhs": rhs},
            None if self._mask is None else More(),
            axis=axis,
            code=code,
            out=out,
            threads=count,
            stream=stream,
            check_finite=check_finite,
            operation="TridiagonalFactor.solve",
        )

    def solve_differences(self, call: Prepared, by: Differences, *others: TridiagonalFactor) -> Any:
        """Solve for the differences of the only operand of a call, with one matrix.

        Further factors solve for what this one has found; one factor is that of one matrix, too.
        """
        values = call.operands[call.operation.leader]
        stride, several = values.strides[call.shape.axis], prod(call.shape.batch) > 1
        cores, paired = [], call.paired
        for factor in (self, *others):
            kept = factor._factors
            core = kept.core
            if call.dtype != factor.dtype:
                core = factor._core_for(kept, call.dtype, call.shape.rows, stride, several)
                paired = core is kept.core
            cores.append(core)
        return differentiate(call._replace(paired=paired), by, tuple(cores))

    def solve_differences_directly(
        self,
        f: Any,
        axis: int,
        by: Differences,
        others: Sequence[TridiagonalFactor],
        out: Any,
        threads: Any,
        operation: str,
    ) -> Any:
        """Do the same in one call of the extension if `f` and `out` need no planning, or None."""
        access = None if type(f) is np.ndarray else fast_access_of(f, self._device)
        if access is None and (self._device != "cpu" or type(f) is not np.ndarray):
            return None
        cores = tuple(factor._factors.core for factor in (self, *others))
        arguments = (by, cores, f, axis, out, threads)
        if access is None:
            answer = self._backend.differences_direct(*arguments)
        else:
            answer = self._backend.differences_borrowed(*arguments, access[2], access[1])
        if isinstance(answer, int):
            raise_for_status(answer, self._backend.STATUS, operation)
        return None if answer is NotImplemented else answer

    def _solve_planned(
        self,
        named: dict[str, Any],
        more: More | None,
        *,
        axis: int | None,
        code: int,
        out: Any,
        threads: int,
        stream: object,
        check_finite: bool,
        operation: str,
    ) -> Any:
        """Solve, or make steps, for any operands; `named` has the right-hand sides first."""
        leader, *others = named
        target = find_target(self._device, stream, named, out, operation=operation, leader=leader)
        arrays, dtype, _ = target.operands(
            named, {"the factor": self._token()}, widens=True, vectors=tuple(named)
        )
        shape = rhs_shape(self.shape, self.axis, arrays[0], axis, leader)
        for name, array in zip(others, arrays[1:], strict=True):
            require_broadcast(operation, name, array, shape)
        require_flag("check_finite", check_finite)
        if check_finite:
            finite = dict(zip(named, arrays, strict=True))
            if self._mask is not None:
                inside = _on_host(target, self._mask)
                inside = np.broadcast_to(inside, (*shape.batch, shape.rows))
                for name, array in finite.items():
                    counts = np.where(inside, _on_host(target, shape.batch_first(array)), 0)
                    finite[name] = np.moveaxis(counts, -1, shape.axis)
            require_finite_operands(operation, target, finite, shape, periodic=self.periodic)
        result = target.result(
            out, named, arrays[0], shape.full, dtype, leader=leader, replaces=leader
        )
        if result.size:
            call, is_paired = self._call_of(target, arrays[0], shape, code, threads, more)
            x, own = target.destination(result), call.factors.plan
            self._solve_lines(
                call,
                arranged_sides(target, shape, arrays, x, self._mask, own, is_paired=is_paired),
            )
        return target.finish(result, named[leader], out)

    def _solve_views(self, target: Target, rhs: Array, x: Array, code: int, count: int) -> None:
        """Solve right-hand sides on a target, their rows last; `x` can be `rhs` itself."""
        mask = self._mask
        more = None if mask is None else More()
        shape = Shape(rhs.shape, rhs.ndim - 1, ())
        call, is_paired = self._call_of(target, rhs, shape, code, count, more)
        sides = Sides(rhs, x, None, None if mask is None else np.broadcast_to(mask, x.shape))
        own = call.factors.plan
        self._solve_lines(call, side_lines(target, sides, own, is_paired=is_paired))

    def _hold_mask(self, target: Target, inside: Array) -> None:
        """Keep the right-hand sides outside of a mask, its rows last, in solves."""
        self._mask = target.hold(inside)
        self._grouped_masks = {}

    def _call_of(
        self,
        target: Target,
        rhs: Array,
        shape: Shape,
        code: int,
        threads: int,
        more: More | None,
    ) -> tuple[_Call, bool]:
        """Return a call, and whether it solves for real and imaginary parts of right-hand sides.

        Those of one axis are right-hand sides of all systems.
        """
        factors = self._factors
        core, is_other = factors.core, rhs.dtype != self.dtype
        if is_other and not more:
            stride = rhs.strides[shape.axis if rhs.ndim > 1 else 0]
            core = self._core_for(factors, rhs.dtype, shape.rows, stride, prod(shape.batch) > 1)
        call = _Call(factors, core, target, code, threads, more)
        return call, is_other and core is factors.core

    def _solve_lines(self, call: _Call, sides: SideLines) -> None:
        """Solve, or make steps, on a target; `x` can be `rhs` itself."""
        factors, target, (lines, x, groups) = call.factors, call.target, sides
        if len(groups) == 2:  # one matrix
            self._call(call, lines, (0, 0))
        else:
            if lines.where is not None:
                mask = self._grouped_mask(target, x, groups)
                lines = lines._replace(where=np.broadcast_to(mask, lines.x.shape))
            if groups[1]:
                for k in range(len(lines.x)):
                    part = Sides(*(None if line is None else line[k] for line in lines))
                    self._call(call, part, (1, 1))
            else:
                part = Sides(*(None if line is None else line[:, 0] for line in lines))
                self._call(call, part, (0, 1))
        target.restore(lines.x, x, [axis for group in groups for axis in group])
        if self._policy == "nan" and not target.fills_nan and factors.singular is not None:
            factors.singular.fill_nan(x, factors.plan.batch)

    def _step(
        self,
        named: dict[str, Any],
        more: More,
        *,
        axis: int | None,
        out: Any,
        threads: int | None,
        stream: object,
        check_finite: bool,
        operation: str,
    ) -> Any:
        """Make implicit steps; `named` has u and perhaps a source."""
        return self._solve_planned(
            named,
            more,
            axis=axis,
            code=self._backend.TRANS["N"],
            out=out,
            threads=check_threads(threads),
            stream=stream,
            check_finite=check_finite,
            operation=operation,
        )

    def multiply(
        self,
        x: ArrayLike,
        *,
        axis: int | None = None,
        out: Array | None = None,
        threads: int | None = None,
        stream: object = None,
    ) -> Array:
        r"""Return the products A x of the matrices, which the factor has to keep.

        Parameters
        ----------
        x : array_like, shape (..., n, ...)
            The vectors, of a shape as the right-hand sides of ``solve``; finite also outside of
            a mask.
        axis : int, optional
            Axis of the systems in `x`, as in ``solve``.
        out : array, optional
            Array for the result, as in `tridiagonal_matvec`.
        threads, stream
            As in ``solve``.

        Returns
        -------
        array
            The products, as of `tridiagonal_matvec`.

        Raises
        ------
        ValueError
            If the factor does not keep its matrices: it is then to be made with
            ``keep_matrix=True``. If `x` does not have their rows.
        TypeError
            As in `tridiagonal_matvec`.
        """
        if self._kept is None:
            raise ValueError(
                "TridiagonalFactor.multiply needs the matrices: write factor_tridiagonal(..., "
                "keep_matrix=True), or tridiagonal_matvec(lower, diag, upper, x)"
            )
        lower, kept, upper = self._kept
        diag, form = form_of(kept)
        if axis is None:
            axis = axis_of_solutions(None, self.axis, len(self.shape), len(shape_of(x)), "x")
        choice = Choice(
            axis=axis,
            periodic=self.periodic,
            out=out,
            device=self._device,
            stream=stream,
            threads=threads,
        )
        call = prepare(
            {"lower": lower, "diag": diag, "upper": upper, "x": x}, None, _MULTIPLY, choice
        )
        if call.shape.rows != self.rows:
            raise ValueError(
                f"TridiagonalFactor.multiply: x must have the {self.rows} rows of the matrices "
                f"along axis {choice.axis}, got {call.shape.rows}"
            )
        return multiply(call, "x", None, 1.0, 0.0, has_sums=form is not None)

    def refactor(
        self,
        lower: ArrayLike,
        diag: ArrayLike | RowSums,
        upper: ArrayLike,
        *,
        stream: object = None,
    ) -> None:
        """Factor other matrices of the same shape, dtype and form, with the same options.

        If this raises an error, the old factors are kept. Solves that have already begun use
        the old factors.

        Parameters
        ----------
        lower, diag, upper : array_like, shape broadcastable to `shape`
            The new diagonals, as in `factor_tridiagonal`; with `RowSums` if the factor has them.
        stream : int or object, optional
            Stream of the factor's device; as in `solve_tridiagonal`.

        Raises
        ------
        TypeError
            If the diagonals do not promote to the dtype of the factor.
        ValueError
            If the diagonals do not broadcast to the shape of the factor, if only the factor or
            only the new matrix has `RowSums`, or if an entry has a sign that `RowSums` excludes.
            On the CPU, if an entry of a matrix is NaN or infinite and `on_singular` was
            ``'raise'``.
        SingularSystemError
            If a matrix is singular and `on_singular` was ``'raise'``.
        """
        operation = "TridiagonalFactor.refactor"
        given = (lower, diag, upper)
        diag, form = form_of(diag)
        require_same_form(operation, form, has_sums=self._has_sums)
        named = {"lower": lower, "diag": diag, "upper": upper}
        if self._mask is not None:
            raise ValueError(f"{operation}: the factor has a mask: make a new factor with where")
        target = find_target(
            self._device,
            stream,
            named,
            operation=operation,
            leader="diag",
            timed=True,
        )
        token = np.broadcast_to(self._token(), self.shape)
        operands, _, copied = target.operands(named, {"factor": token})
        arrays = {**dict(zip(_NAMES, operands, strict=True)), "factor": token}
        shape = resolve_shape(
            arrays,
            factor_axis(self.axis, len(self.shape))[0],
            leader="factor",
            periodic=self.periodic,
            rows=self.rows,
        )
        if shape.full != self.shape:
            raise ValueError(f"the matrices must have the shape {self.shape}, got {shape.full}")
        if form is not None:
            require_form(
                operation,
                target,
                operands[:3],
                shape,
                periodic=self.periodic,
                check_signs=form.check_signs and target.reports_singular(self._policy),
            )
        if self._check_finite:
            del arrays["factor"]
            require_finite_operands(operation, target, arrays, shape, periodic=self.periodic)
        factors = self._factor(target, operands, shape, copied, operation=operation, stacklevel=2)
        self._factors = self._with_programs(factors, named)
        if self._kept is not None:
            self._kept = given

    def _with_programs(self, factors: _Factors, named: dict[str, ArrayLike]) -> _Factors:
        """Return factors that keep the diagonals, if compiled programs can solve with them."""
        if self._device == "cpu" or self._has_sums:
            return factors
        return replace(factors, given=kept_for_programs(named.values()))

    def _solve_by_programs(self, rhs: Any, trans: str) -> Any:
        """Solve by programs that the library of `rhs` compiles, or return None."""
        factors = self._factors
        module = None if factors.given is None else programs_for(rhs)
        if module is None:
            return None
        if not factors.programs:
            options = {"pivot": self.pivot, "periodic": self.periodic}
            made = module.CompiledFactor(factors.given, self.shape, self.axis, **options)
            factors.programs[:] = [made]
        return factors.programs[0].solve(rhs, trans)

    def _token(self) -> Array:
        """Return an array with the dtype of the factor, for the checks of dtypes."""
        return np.empty((1,), self.dtype)

    def _factor(
        self,
        target: Target,
        operands: Sequence[Array],
        shape: Shape,
        converted: Sequence[str],
        *,
        operation: str,
        stacklevel: int | None,
    ) -> _Factors:
        """Return the factors; the order of the batch is that of right-hand sides in C order."""
        views, plan, lines = arranged_matrices(target, shape, operands, self.dtype)
        systems = plan.size(range(len(shape.batch)))
        asks = target.reports_singular(self._policy)
        fills = self._policy == "nan" and target.fills_nan
        failed = None
        core = None
        diagonals = None
        flags = shape_flags(self._backend, shape, self.periodic)
        if self._has_sums:
            flags |= self._backend.ROW_SUMS
        if self._device != "cpu" and any(n > 1 for n in shape.full[shape.axis + 1 :]):
            flags |= self._backend.COLUMNS  # neighbouring systems of right-hand sides in C order
        report = report_of_nothing()
        if lines:
            if self._device == "cpu" and self.dtype.kind == "f" and not (plan.outer or plan.inner):
                diagonals = [line.copy() for line in lines]
            failed = target.info(systems, lasting=fills) if asks or fills else None
            status, report, core = self._backend.factor_make(
                self._pivot_code, flags, *lines, failed, self._threads, *target.arguments, asks
            )
            raise_for_status(status, self._backend.STATUS, "factor_tridiagonal")
            target.release_inputs()
        singular = None
        if asks:
            numbers = np.zeros(0, np.int32) if failed is None else target.on_host(failed)
            singular = find_singular(numbers, plan)
            if self._policy in ("raise", "warn"):
                names = matrix_names(has_sums=self._has_sums)
                singular = explained(
                    singular, target, views, shape, periodic=self.periodic, names=names
                )
            if stacklevel is not None:
                singular.report(self._policy, operation, stacklevel=stacklevel + 1)
        info = SolveInfo(
            **target.description(report, singular),
            systems=systems,
            rows=shape.rows,
            dtype=self.dtype,
            copied=tuple(dict.fromkeys((*converted, *(_NAMES[k] for k in plan.copied)))),
        )
        return _Factors(core, plan, info, singular, failed if fills else None, diagonals, flags)

    def _solve_directly(self, rhs: Any, axis: object, out: Any, code: int, threads: int) -> Any:
        """Solve in one call of the extension if `rhs` and `out` need no planning, or return None.

        Calls with errors in their arguments give None, too.
        """
        factors = self._factors
        if factors.core is None or (self._policy == "nan" and factors.may_be_singular):
            return None
        options = (code, self.shape, threads)
        along = self.axis if axis is None else axis
        if self._device == "cpu":
            array, solution = rhs, out
            if type(rhs) is not np.ndarray:
                array, solution = host_array(rhs), host_array(out)
                if type(array) is not np.ndarray:
                    return None
            core = factors.core
            is_other = factors.diagonals is not None and array.dtype.kind != self.dtype.kind
            if is_other and type(along) is int and -array.ndim <= along < array.ndim:
                rows, stride = array.shape[along], array.strides[along]
                core = self._core_for(factors, array.dtype, rows, stride, array.size > rows)
            answer = core.direct(array, along, solution, *options)
            result, x = out, answer
            if out is None:
                result = answer if array is rhs else None
        else:
            access = None if type(rhs) is np.ndarray else fast_access_of(rhs, self._device)
            if access is None:
                return None
            answer = factors.core.borrowed(rhs, along, out, *options, access[1])
            result = x = answer
        if answer is NotImplemented:
            return None
        if isinstance(answer, int):
            raise_for_status(answer, self._backend.STATUS, "TridiagonalFactor.solve")
        return library_of(rhs).from_host(x, rhs) if result is None else result

    def _core_for(
        self, factors: _Factors, dtype: np.dtype, rows: int, stride: int, has_several: bool
    ) -> Any:
        """Return the factors for right-hand sides, which can be complex although they are real.

        If all systems share one matrix and have contiguous rows, complex factors cost less than
        access to every second element. They are made at their first use. `stride` is that of a
        right-hand side along its rows.
        """
        if dtype.kind == self.dtype.kind or factors.diagonals is None:
            return factors.core
        if not (rows > 1 and stride == dtype.itemsize and has_several):
            return factors.core
        if not factors.complex_core:
            diagonals = [a.astype(np.result_type(a.dtype, np.complex64)) for a in factors.diagonals]
            status, _, core = self._backend.factor_make(
                self._pivot_code, factors.flags, *diagonals, None, self._threads
            )
            raise_for_status(status, self._backend.STATUS, "TridiagonalFactor.solve")
            factors.complex_core[:] = [core]
        return factors.complex_core[0]

    def _grouped_mask(self, target: Target, x: Array, groups: Sequence[Sequence[int]]) -> Array:
        """Merge groups of batch axes of the mask, once for each arrangement."""
        key = (x.shape, tuple(map(tuple, groups)))
        if key not in self._grouped_masks:
            assert self._mask is not None
            whole = np.broadcast_to(self._mask, x.shape)
            merged = lines_view(whole, groups, x.shape[:-1], target.copier)
            self._grouped_masks[key] = target.hold(merged)
        return self._grouped_masks[key]

    def _call(self, call: _Call, lines: Sides, steps: tuple[int, int]) -> None:
        """Solve with the factors; with the policy ``'nan'`` fill systems whose factors failed."""
        factors, target = call.factors, call.target
        rhs, x = lines.rhs, lines.x
        if call.more is None:
            stream = target.arguments[1:]
            status = call.core.solve(call.trans, rhs, x, *steps, call.threads, *stream)
            raise_for_status(status, self._backend.STATUS, "TridiagonalFactor.solve")
        else:
            more = call.more
            for _ in range(more.repeats):
                status = self._backend.factor_step(
                    *(call.core, call.trans, rhs, x, *steps, more.step, more.gain),
                    *(lines.source, lines.where, call.threads, *target.arguments),
                )
                raise_for_status(status, self._backend.STATUS, "a step with factors")
                rhs = x
        if self._policy == "nan" and factors.failed is not None:
            failed = factors.failed
            size = failed.itemsize
            inner = factors.plan.size(factors.plan.inner)
            strides = (steps[0] * inner * size, steps[1] * size)
            info = device_array(address_of(failed), x.shape[:2], strides, failed.dtype, failed)
            target.fill_nan(x, info)
