"""Random calls of solve_tridiagonal and factor_tridiagonal, each judged by an oracle.

A case is a function of a seed and a number: ``run("cpu", seed, number)`` repeats it. Its shape,
axis, dtype and options, and the layout and sharing of each operand are random. What is required:

- The backward error of each system is that of a stable method: componentwise at most 50 eps where
  the matrix is dominant, else normwise 50 eps or 10 times LAPACK's. On a device the rows may be
  scaled to the same size before the norms are taken.
- No byte of an input changes, and none around the result: arrays lie in larger buffers.
- A singular system is reported, and no other. It and systems with NaN or infinity leave the others
  as they are. On the CPU a matrix with NaN or infinity is a ValueError where singular ones are.
- On the CPU the bits depend on neither the layout, the sharing, the batch, the threads nor the
  floating-point mode of the calling thread. On a device the answer to dominant systems is that of
  the CPU up to rounding.
"""

from __future__ import annotations

import contextlib
import math
import warnings

import fp_modes
import growth_families
import numpy as np
import oracle

import pysolvers

DOMINANT, NORMWISE, TIMES_LAPACK = 50, 50, 10  # the first two in eps
GUARD = 0xA5  # every byte around an array
NAMES = ("lower", "diag", "upper", "rhs")


def run(backend, seed, number):
    """Make and judge one case. An exception carries what was called."""
    rng = np.random.default_rng([seed, number])
    case = (SolveCase if rng.random() < 0.55 else FactorCase)(rng, backend)
    try:
        case.run()
    except Exception as error:
        call = f"random_calls.run({backend!r}, {seed}, {number})"
        error.add_note("\n".join([call, *case.notes]))
        raise


class Room:
    """An array of any layout in a buffer whose other bytes are known."""

    def __init__(self, shape, dtype, layout):
        order, steps, skip = layout
        self.dtype = np.dtype(dtype)
        self.order = [k for k in order if k < len(shape)]
        self.steps = steps[: len(shape)]
        self.sizes = [shape[k] * abs(self.steps[k]) for k in self.order]
        self.skip = skip
        self.bytes = math.prod(self.sizes) * self.dtype.itemsize
        self.buffer = np.full(skip + self.bytes + 64, GUARD, np.uint8)
        self.view = self._in(self.buffer)
        self.text = f"{shape} {self.dtype} order={self.order} steps={self.steps} skip={skip}"

    def _in(self, buffer):
        room = buffer[self.skip : self.skip + self.bytes].view(self.dtype).reshape(self.sizes)
        view = room[tuple(slice(None, None, self.steps[k]) for k in self.order)]
        return view.transpose(np.argsort(self.order)) if self.order else view.reshape(())

    def fill(self, values):
        """Write values, and remember all bytes as they are then."""
        self.view[...] = values
        self.before = self.buffer.copy()

    def require_unchanged(self, name):
        """Fail if a byte has changed since `fill`."""
        assert np.array_equal(self.buffer, self.before), f"{name} was modified"

    def require_guards(self):
        """Fail if a byte around the array has changed."""
        inside = np.zeros_like(self.buffer)
        size = self.dtype.itemsize
        self._in(inside).view(f"V{size}")[...] = np.void(b"\1" * size)
        changed = np.sum((self.buffer != GUARD) & (inside == 0))
        assert changed == 0, f"{changed} bytes around out were written"


class Case:
    """What the cases of both functions share. Values are kept with the rows last."""

    def __init__(self, rng, backend):
        self.rng = rng
        self.backend = backend
        self.dtype = np.dtype(rng.choice([np.dtype(t).name for t in oracle.DTYPES]))
        self.eps = oracle.eps(self.dtype)
        self.periodic = self.chance(0.35)
        self.rows = self._rows()
        self.batch = self._batch()
        self.axis = int(rng.integers(len(self.batch) + 1))
        self.kind = str(rng.choice(["dominant", "general", "family"], p=[0.6, 0.25, 0.15]))
        self.policy = str(rng.choice(["raise", "warn", "nan", "ignore"]))
        self.layout = self._layout(len(self.batch) + 1)
        self.inputs = []
        self.spoiled = None
        self.notes = []
        self.note(dtype=self.dtype.name, batch=self.batch, rows=self.rows, matrix=self.kind)

    def note(self, **values):
        """Keep what a failure is to show."""
        self.notes.append(", ".join(f"{name}={value}" for name, value in values.items()))

    def chance(self, probability):
        """Whether an event of this probability happens."""
        return bool(self.rng.random() < probability)

    def choose(self, *weighted):
        """Return one of (value, probability)."""
        values, probabilities = zip(*weighted, strict=True)
        return values[self.rng.choice(len(values), p=probabilities)]

    def mode(self):
        """Return a context for a call: on the CPU sometimes another floating-point mode."""
        if self.backend != "cpu" or not fp_modes.IS_AVAILABLE or self.chance(0.7):
            return contextlib.nullcontext()
        mode = str(self.rng.choice(fp_modes.MODES))
        self.note(mode=mode)
        return fp_modes.fp_mode(mode)

    def _rows(self):
        low, high = self.choose(
            ((0, 2), 0.03), ((1, 10), 0.35), ((10, 141), 0.45), ((141, 701), 0.14),
            ((701, 6000), 0.028), ((2**17, 2**18 + 99), 0.002),
        )  # fmt: skip
        return int(self.rng.integers(low, high))

    def _batch(self):
        axes = self.choose((0, 0.1), (1, 0.3), (2, 0.4), (3, 0.2))
        sizes = self.rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 70], axes).tolist()
        most = self.choose((8_000, 0.9), (50_000, 0.1))
        while math.prod(sizes) * self.rows > most and max(sizes, default=1) > 1:
            sizes[int(np.argmax(sizes))] //= 2
        if axes and self.chance(0.02):
            sizes[self.rng.integers(axes)] = 0
        return tuple(sizes)

    def _layout(self, ndim):
        """Return the order of the axes in memory, their steps, and bytes before the array."""
        order, steps = list(range(ndim)), [1] * ndim
        kind = self.choose(
            ("contiguous", 0.2), ("batch permuted", 0.2), ("permuted", 0.3), ("with gaps", 0.3)
        )
        if kind != "contiguous":
            order = self.rng.permutation(ndim).tolist()
        if kind == "batch permuted":
            rows = ndim - 1 - len(self.batch) + self.axis
            order = [k for k in order if k != rows] + [rows]
        if kind == "with gaps":
            steps = self.rng.choice([1, 1, 1, 2, 3, -1, -2], ndim).tolist()
        return order, steps, int(self.rng.integers(17)) * self.dtype.itemsize

    def room(self, shape, dtype=None):
        """Return room in the layout of this case, half of the time, or in another."""
        ndim = len(self.batch) + 1
        layout = self.layout if len(shape) <= ndim and self.chance(0.5) else None
        return Room(shape, dtype or self.dtype, layout or self._layout(max(ndim, len(shape))))

    def threads(self):
        """Return a number of threads, most often one."""
        return self.choose((1, 0.85), (2, 0.07), (3, 0.04), (None, 0.04))

    def matrices(self, batch):
        """Return lower, diag, upper and a right-hand side of shape (*batch, rows)."""
        shape = (*batch, self.rows)
        systems = math.prod(batch)
        if self.kind == "family" and systems and self.rows:
            family = str(self.rng.choice(list(growth_families.FAMILIES)))
            seed = [int(self.rng.integers(2**32))]
            self.note(family=family, seed=seed)
            drawn = growth_families.draw(family, self.dtype, self.rows, systems, seed)
            return [a.reshape(shape) for a in drawn]
        if self.kind == "general":
            return list(oracle.general(self.rng, shape, self.dtype))
        lower, diag, upper, rhs = oracle.dominant(self.rng, shape, self.dtype)
        return [lower, diag * self.dtype.type(6), upper, rhs]  # by rows and columns, if shared, too

    def share(self, operands):
        """Return copies of the operands in which some axes have length 1."""
        way = self.choose(("own", 0.45), ("one matrix", 0.2), ("any", 0.35))
        shared = []
        for name, a in zip(NAMES, operands, strict=False):
            cut = np.zeros(a.ndim, bool)
            if way == "one matrix":
                cut[:-1] = name != "rhs"
            elif way == "any":
                cut[:-1] = self.rng.random(a.ndim - 1) < (0.1 if name == "rhs" else 0.4)
            if way != "own" and name in ("lower", "upper"):
                cut[-1] = self.chance(0.15)  # one number for all rows
            index = tuple(slice(0, 1) if c else slice(None) for c in cut)
            shared.append(a[index].copy())
        return shared

    def spoil(self, operands):
        """Make a system singular, or write NaN or infinity to it, where that is possible."""
        if self.rows <= 2 or not all(a.size for a in operands) or not self.chance(0.25):
            return
        if self.chance(0.5):
            a = operands[self.rng.integers(len(operands))]
            a[tuple(self.rng.integers(a.shape))] = self.rng.choice([np.nan, np.inf])
            self.spoiled = "not finite"
        elif operands[0].shape == operands[1].shape == operands[2].shape:
            lower, diag, upper = operands[:3]
            at, row = tuple(self.rng.integers(diag.shape[:-1])), self.rng.integers(1, self.rows - 1)
            for a, k in (
                (lower, row),
                (diag, row),
                (upper, row),
                (lower, row + 1),
                (upper, row - 1),
            ):
                a[(*at, k)] = 0  # the row stands alone, with nothing in it
            self.spoiled = "singular"
        self.note(spoiled=self.spoiled)

    def bad(self, full):
        """Return which systems of full operands were made singular, and which are not finite."""
        lower, diag, upper, *rhs = full
        singular = np.zeros(diag.shape[:-1], bool)
        if self.spoiled == "singular":
            singular = np.any((diag == 0) & (lower == 0) & (upper == 0), axis=-1)
        inner = [diag, *rhs] + (
            [lower, upper] if self.periodic else [lower[..., 1:], upper[..., :-1]]
        )
        finite = np.all([np.all(np.isfinite(a), axis=-1) for a in inner], axis=0)
        return singular, ~finite

    def lay(self, operands, shape, *, keeps):
        """Return the arguments that mean these operands, with the rows along the axis.

        Axes of length 1 in front may be left out, but by `keeps`, or be repeated by a zero stride
        as far as `shape` goes. What varies along the rows alone may have one axis. An off-diagonal
        may be short. One number may be a scalar, and is one unless it has several axes.
        """
        arguments = []
        for name, a in zip(NAMES, operands, strict=False):
            off_diagonal = name in ("lower", "upper")
            if off_diagonal and a.size == 1 < self.rows and (a.ndim == 1 or self.chance(0.7)):
                arguments.append(a.item() if self.chance(0.5) else a.reshape(()))
                self.note(**{name: "scalar"})
                continue
            full = a.shape[-1] == self.rows
            if off_diagonal and full and not self.periodic and self.rows != 2 and self.chance(0.2):
                a = a[..., 1:] if name == "lower" else a[..., :-1]
            around = np.insert(shape[:-1], self.axis, a.shape[-1] if full else self.rows)
            has_rows = not off_diagonal or full or a.shape[-1] != 1
            is_line = all(length == 1 for length in a.shape[:-1])
            if name != keeps and is_line and has_rows and self.chance(0.4):
                arguments.append(self._lay_one(name, a.reshape(-1), a.shape[-1:]))
                continue
            a = np.moveaxis(a, -1, self.axis)
            while name != keeps and a.ndim > 1 and a.ndim > len(shape) - self.axis:
                if a.shape[0] != 1 or (a.ndim == 2 and not has_rows) or self.chance(0.5):
                    break
                a = a[0]
            arguments.append(self._lay_one(name, a, around[len(around) - a.ndim :]))
        return arguments

    def _lay_one(self, name, a, around):
        dtype = self.dtype.newbyteorder() if self.chance(0.03) else self.dtype
        room = self.room(a.shape, dtype)
        if self.chance(0.03):  # not aligned
            room = Room(a.shape, dtype, (room.order, room.steps, room.skip + 1))
        room.fill(a)
        self.inputs.append((name, room))
        repeated = tuple(
            int(n) if k == 1 and self.chance(0.3) else k
            for k, n in zip(a.shape, around, strict=True)
        )
        self.note(**{name: room.text, "as": repeated})
        return np.broadcast_to(room.view, repeated) if repeated != a.shape else room.view

    def place(self, rhs, axis):
        """Return room for the result, and whether it holds the right-hand side; or None."""
        kind = self.choose(("none", 0.4), ("out", 0.4), ("in place", 0.2))
        self.note(result=kind)
        if kind == "none":
            return None, False
        out = self.room(np.moveaxis(rhs, -1, axis).shape)
        self.note(out=out.text)
        if kind == "in place":
            out.fill(np.moveaxis(rhs, -1, axis))
        return out, kind == "in place"

    def require_memory(self, out):
        """Require that inputs are as they were, and that nothing around the result was written."""
        for name, room in self.inputs:
            room.require_unchanged(name)
        if out is not None:
            out.require_guards()

    def require_finite(self, error, full):
        """Require that an error, None if there was none, is raised where a matrix is not finite."""
        _, not_finite = self.bad(full[:3])
        if self.backend == "cpu":
            assert (error is not None) == (self.policy == "raise" and bool(not_finite.any()))
        assert error is None or "a matrix must be finite" in str(error)

    def require_report(self, systems, singular, infinite, full):
        """Require that the systems reported are the singular ones, but for those not finite."""
        reported = self.mark(np.zeros_like(singular), systems) & ~infinite
        if self.kind == "dominant":
            np.testing.assert_array_equal(reported, singular, err_msg="reported as singular")
            return
        if self.pivot is False:
            return
        missed = np.argwhere(singular & ~infinite & ~reported)
        assert len(missed) == 0, f"{missed} have a row of zeros and are not reported as singular"
        for index in np.argwhere(reported & ~singular):
            matrix = [np.ascontiguousarray(a[tuple(index)]) for a in full[:3]]
            condition = oracle.condition(*matrix, periodic=self.periodic)
            assert condition > 0.1 / self.eps, (
                f"{index} is reported as singular, its condition number is {condition:.3g}"
            )

    def mark(self, singular, systems):
        """Return a mask with more systems marked as singular."""
        singular = np.array(singular)
        for index in systems:
            singular[tuple(index)] = True
        return singular

    def judge(self, full, x, good, trans="N"):
        """Require that the backward errors of good systems are small."""
        lower, diag, upper, rhs = (a.reshape(-1, self.rows) for a in full)
        matrix = oracle.transposed(lower, diag, upper, trans)
        errors = oracle.backward_errors(*matrix, rhs, x, periodic=self.periodic)
        error = errors[self.kind == "dominant"]
        if self.kind != "dominant" and self.backend != "cpu":
            scaled = oracle.row_scaled_backward_error(*matrix, rhs, x, periodic=self.periodic)
            error = np.minimum(error, scaled)
        gate = (DOMINANT if self.kind == "dominant" else NORMWISE) * self.eps
        for k in np.flatnonzero(good & ~(error <= gate)):
            system = [np.ascontiguousarray(a[k]) for a in (*matrix, rhs)]
            hard = self.kind != "dominant" and self._is_hard(system, x[k], error[k], trans)
            assert hard, (
                f"system {k} of {len(x)} has a backward error of {error[k] / self.eps:.3g} eps, "
                f"trans={trans}"
            )

    def _is_hard(self, system, x, error, trans):
        """Whether LAPACK's solution is as bad, or the matrix is singular to working precision."""
        if trans != "N":  # factors of the transposed matrix, whose columns may differ in size
            size = oracle.matrix_backward_error(*system, x, periodic=self.periodic)
            if size <= NORMWISE * self.eps:
                return True
        if not np.all(np.isfinite(x)) and (self.periodic or trans != "N"):
            return oracle.condition(*system[:3], periodic=self.periodic) > 0.1 / self.eps
        if self.periodic:
            return error <= oracle.periodic_gate(*system, times=TIMES_LAPACK)
        if trans != "N":
            return False
        try:
            forms = list(oracle.gtsv_forms(*system))
        except np.linalg.LinAlgError:
            return True
        with np.errstate(over="ignore"):  # the modulus of a complex number
            top = max(np.max(np.abs(form)) for form in forms)
        if not top <= np.finfo(self.dtype).max / 2**8:
            return not np.all(np.isfinite(x))
        return error <= TIMES_LAPACK * max(oracle.backward_errors(*system, f)[0] for f in forms)

    def compare(self, x, good, again):
        """Compare with other calls for the same systems: `again` solves plain operands."""
        expected = again("cpu", 1, slice(None))
        if self.backend != "cpu":
            if self.kind == "dominant":
                most = 100 * self.eps * np.max(np.abs(expected[good]), initial=0)
                np.testing.assert_allclose(x[good], expected[good], rtol=0, atol=most)
            return
        equal = np.testing.assert_array_equal
        equal(x[good], expected[good], err_msg="contiguous operands, one thread")
        if self.chance(0.1):
            equal(again("cpu", 2, slice(None))[good], expected[good], err_msg="two threads")
        if good.any() and self.chance(0.3):
            k = int(self.rng.choice(np.flatnonzero(good)))
            equal(again("cpu", 1, k), expected[k], err_msg=f"system {k} alone")


class SolveCase(Case):
    """A call of solve_tridiagonal, and the calls it is compared with."""

    def run(self):
        """Make the call and judge it."""
        operands = self.share(self.matrices(self.batch))
        self.spoil(operands)
        shape = np.broadcast_shapes(*(a.shape for a in operands))
        full = [np.broadcast_to(a, shape) for a in operands]
        singular, infinite = self.bad(full)
        options = self._options()
        out, in_place = self.place(full[3], self.axis)
        keeps = "rhs" if not in_place else "diag"
        arguments = self.lay(operands[: 3 if in_place else 4], shape, keeps=keeps)
        if in_place:
            arguments.append(out.view)

        x, reported = self._call(arguments, out, options, full)

        self.require_memory(out)
        if x is None and out is None:
            self.require_report(reported, singular, infinite, full)
            return
        x = out.view if out is not None else x
        assert (
            x.shape == tuple(np.insert(shape[:-1], self.axis, shape[-1])) and x.dtype == self.dtype
        )
        if not x.size:
            return
        x = np.moveaxis(x, self.axis, -1)
        if reported is not None:
            self.require_report(reported, singular, infinite, full)
            singular = self.mark(singular, reported)
        if self.policy == "nan":
            assert np.all(np.isnan(x[singular]))
        good = ~(singular | infinite).reshape(-1)
        x = x.reshape(-1, self.rows)
        if self.kind == "dominant" or self.pivot is not False:
            self.judge(full, x, good)
        plain = {name: options[name] for name in ("method", "pivot", "periodic")}
        flat = [np.ascontiguousarray(a).reshape(-1, self.rows) for a in full]
        self.compare(
            x,
            good,
            lambda device, threads, k: pysolvers.solve_tridiagonal(
                *(a[k] for a in flat),
                **plain,
                on_singular="ignore",
                device=device,
                threads=threads,
            ),
        )

    def _options(self):
        method, self.pivot = "auto", self.choose((None, 0.6), (True, 0.25), (False, 0.15))
        if self.chance(0.35):
            method = self.rng.choice(oracle.METHODS if self.kind == "dominant" else ["pivoted"])
            self.pivot = None
        options = {
            "axis": self.axis - (len(self.batch) + 1 if self.chance(0.5) else 0),
            "method": str(method),
            "pivot": self.pivot,
            "periodic": self.periodic,
            "on_singular": self.policy,
            "threads": self.threads(),
            "return_info": self.kind != "dominant" or self.chance(0.5),
        }
        self.note(**options)
        return options

    def _call(self, arguments, out, options, full):
        """Return the solution, None where an error was raised, and the systems reported."""
        given = {"out": out.view} if out is not None else {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                with self.mode():
                    x = pysolvers.solve_tridiagonal(
                        *arguments, **options, **given, device=self.backend
                    )
            except pysolvers.SingularSystemError as error:
                assert self.policy == "raise"
                return None, error.systems
            except ValueError as error:
                self.require_finite(error, full)
                return None, np.zeros((0, full[1].ndim - 1), int)
        if full[1].size:
            self.require_finite(None, full)
        assert self.policy == "warn" or not caught, [str(w.message) for w in caught]
        x, info = x if options["return_info"] else (x, None)
        assert out is None or x is out.view
        reported = np.zeros((0, x.ndim - 1), int) if self.policy == "raise" else None
        return x, info.singular if info is not None else reported


class FactorCase(Case):
    """A factor, solves with it, other matrices and solves with these."""

    def run(self):
        """Make the calls and judge them."""
        operands = self.share(self.matrices(self.batch)[:3])
        self.spoil(operands)
        self.shape = np.broadcast_shapes(*(a.shape for a in operands))
        full = [np.broadcast_to(a, self.shape) for a in operands]
        self.pivot = self.choose((None, 0.6), (True, 0.2), (False, 0.2))
        self.options = {"pivot": self.pivot, "periodic": self.periodic}
        self.along = axis = self.axis - (len(self.batch) + 1 if self.chance(0.5) else 0)
        self.note(axis=axis, on_singular=self.policy, **self.options)
        arguments = self.lay(operands, self.shape, keeps="diag")

        def make():
            return pysolvers.factor_tridiagonal(
                *arguments,
                axis=axis,
                rows=self.rows if self.rows == 1 or self.chance(0.3) else None,
                on_singular=self.policy,
                threads=self.threads(),
                device=self.backend,
                **self.options,
            )

        factor = self._made(make, full)
        if factor is not None and self.chance(0.4):
            self.note(refactor=True)
            self.spoiled = None
            operands = self.share(self.matrices(self.shape[:-1])[:3])
            full = [np.broadcast_to(a, self.shape) for a in operands]
            arguments = self.lay(operands, self.shape, keeps=None)

            def again():
                factor.refactor(*arguments)
                return factor

            self._made(again, full)

    def _made(self, make, full):
        """Return a factor of full matrices after some solves; None if it was refused."""
        singular, infinite = self.bad(full)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if self.policy == "warn" else "error")
            try:
                with self.mode():
                    factor = make()
            except pysolvers.SingularSystemError as error:
                assert self.policy == "raise"
                self.require_report(error.systems, singular, infinite, full)
                return None
            except ValueError as error:
                self.require_finite(error, full)
                return None
        self.require_finite(None, full)
        self.require_memory(None)
        if factor.info.singular is not None:
            self.require_report(factor.info.singular, singular, infinite, full)
            singular = self.mark(singular, factor.info.singular)
        self._solve(factor, full, singular, singular | infinite)
        return factor

    def _solve(self, factor, matrix, singular, bad):
        """Solve with one or two right-hand sides, and judge the solutions."""
        for trans in self.rng.choice(list("NNTH"), self.rng.integers(1, 3)).tolist():
            self.inputs.clear()
            shape = self._rhs_shape()
            # That of one matrix counts in right-hand sides, that of a batch in the matrices.
            is_one, ndim = len(self.shape) == 1, len(shape)
            axis = self.along % ndim if is_one else ndim - len(self.shape) + self.axis
            rhs = oracle.uniform(self.rng, shape, self.dtype)
            out, in_place = self.place(rhs, axis)
            if not in_place:
                room = self.room(np.moveaxis(rhs, -1, axis).shape)
                room.fill(np.moveaxis(rhs, -1, axis))
                self.inputs.append(("rhs", room))
            self.note(trans=trans, rhs="out" if in_place else room.text)
            given = {"out": out.view} if out is not None else {}

            threads = self.threads()
            with self.mode():
                x = factor.solve(
                    out.view if in_place else room.view, trans=trans, threads=threads, **given
                )

            self.require_memory(out)
            assert x.shape == np.moveaxis(rhs, -1, axis).shape and x.dtype == self.dtype
            assert out is None or x is out.view
            if x.size:
                x = np.moveaxis(x, axis, -1)
                if self.policy == "nan":
                    assert np.all(np.isnan(x[np.broadcast_to(singular, shape[:-1])]))
                self._judge(matrix, rhs, x, np.broadcast_to(~bad, shape[:-1]).reshape(-1), trans)

    def _rhs_shape(self):
        """Return a shape to which that of the factor broadcasts, perhaps with more axes."""
        batch = [n if m == 1 else m for m, n in zip(self.shape, self.batch, strict=False)]
        for _ in range(self.choose((0, 0.65), (1, 0.25), (2, 0.1))):
            if math.prod(batch) * self.rows < 5000:
                batch.insert(0, int(self.rng.integers(1, 5)))
        return (*batch, self.rows)

    def _judge(self, matrix, rhs, x, good, trans):
        full = [np.broadcast_to(a, rhs.shape) for a in matrix] + [rhs]
        x = x.reshape(-1, self.rows)
        if self.kind == "dominant" or self.pivot is not False:
            self.judge(full, x, good, trans)
        *flat, sides = (np.ascontiguousarray(a).reshape(-1, self.rows) for a in full)
        self.compare(
            x,
            good,
            lambda device, threads, k: pysolvers.factor_tridiagonal(
                *(a[k] for a in flat),
                **self.options,
                rows=self.rows,
                on_singular="ignore",
                device=device,
                threads=threads,
            ).solve(sides[k], trans=trans, threads=threads),
        )
