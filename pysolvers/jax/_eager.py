"""Solves for arrays of JAX on a device, as programs that JAX has compiled.

Each array that is taken through DLPack costs JAX about 100 us; a compiled program costs as much
as an operation of JAX. The compilation takes some tenths of a second for each set of shapes, so
that only shapes which are used repeatedly are compiled.
"""

from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import Any

import jax
import numpy as np

from .._errors import raise_for_status
from .._runtime.backends import require
from .._runtime.streams import PER_THREAD
from .tridiagonal import factor_tridiagonal, solve_tridiagonal

# A program is compiled at this call with the same shapes and options.
_CALLS = 3

# Numbers whose arrays on a device are kept: JAX would copy them at every call.
_NUMBERS = 64


def solve(operands: tuple[Any, ...], options: tuple[Any, Any, Any], *, asks: bool) -> Any:
    """Solve by a compiled program, or return None if the call is not one for it.

    Parameters
    ----------
    operands : tuple
        Diagonals and right-hand sides; the last one is an array of JAX.
    options : tuple
        Axis, pivot and periodic, as the caller gave them.
    asks : bool
        Whether to return None as well if a system may be singular, which waits for the device.
    """
    if not _is_plain(operands, options):
        return None
    if not _is_repeated(operands, options, asks):
        return None
    rhs = operands[-1]
    try:
        there = (_array_of(a, rhs) if type(a) in (int, float) else a for a in operands)
        x, may_be_singular = _program(options, asks)(*there)
    except (TypeError, ValueError, OverflowError):  # the general path has the messages
        return None
    if not _lies_like(x, rhs) or (asks and _is_set(may_be_singular)):
        return None
    return x


class CompiledFactor:
    """Solves with one factor for arrays of JAX on a device, by compiled programs.

    The programs solve from the diagonals, which moves as many words as a solve with factors.

    Parameters
    ----------
    diagonals : iterable
        As the caller gave them.
    shape : tuple of int
        Shape of the matrices, to which the diagonals broadcast.
    axis : int
        That of the factor.
    pivot, periodic
        Those of the factor.
    """

    def __init__(
        self,
        diagonals: Iterable[Any],
        shape: tuple[int, ...],
        axis: int,
        *,
        pivot: bool | None,
        periodic: bool,
    ) -> None:
        self._diagonals, self._shape = tuple(diagonals), shape
        self._options = axis, pivot, periodic
        self._matrices: Any = None

    def solve(self, rhs: Any, trans: str) -> Any:
        """Solve, or return None if the call is not one for a program."""
        operands = *self._diagonals, rhs
        if not _is_plain(operands, self._options):
            return None
        if not _is_repeated(operands, self._options, trans):
            return None
        try:
            has_batch = len(self._shape) > 1
            if has_batch and np.broadcast_shapes(self._shape, rhs.shape) != rhs.shape:
                return None
            if self._matrices is None:
                axis, pivot, periodic = self._options
                self._matrices = factor_tridiagonal(
                    *self._diagonals,
                    axis=axis,
                    rows=self._shape[axis % len(self._shape)],
                    pivot=pivot,
                    periodic=periodic,
                )
            x = _factor_program(trans)(self._matrices, rhs)
        except (TypeError, ValueError):  # the general path has the messages
            return None
        except RuntimeError:  # a diagonal was deleted or donated: the factors are still there
            return None
        return x if x.dtype == rhs.dtype and _lies_like(x, rhs) else None


def _is_plain(operands: tuple[Any, ...], options: tuple[Any, Any, Any]) -> bool:
    """Whether JAX promotes the operands as NumPy does, and the right-hand sides are on a device."""
    axis, pivot, periodic = options
    *_, rhs = operands
    kind, dtype = type(rhs), rhs.dtype
    if dtype.kind not in "fc" or dtype.itemsize < (8 if dtype.kind == "c" else 4):
        return False
    dtypes = (dtype, np.dtype(f"f{dtype.itemsize // 2}")) if dtype.kind == "c" else (dtype,)
    return (
        type(axis) is int
        and type(periodic) is bool
        and (pivot is None or type(pivot) is bool)
        and all(
            type(a) is float or type(a) is int or (type(a) is kind and a.dtype in dtypes)
            for a in operands
        )
        and _is_on_one_device(rhs)
    )


def _is_on_one_device(array: Any) -> bool:
    """Whether an array of JAX is on one device, which is not the CPU."""
    (device, *others) = array.sharding.device_set
    return not others and device.platform != "cpu"


def _lies_like(x: Any, rhs: Any) -> bool:
    """Return whether two arrays lie on the same devices, in the same parts."""
    return x.sharding is rhs.sharding or x.sharding == rhs.sharding


def _is_set(flag: Any) -> bool:
    """Return the value of an array of one flag. Its copy by JAX would take some 200 us."""
    (device,) = flag.devices()
    if device.platform == "cpu":
        return bool(flag)
    value = np.empty((), np.bool_)
    backend, ordinal = require("cuda"), flag.__dlpack_device__()[1]
    flag.block_until_ready()
    status = backend.download(value, flag.unsafe_buffer_pointer(), int(ordinal), PER_THREAD.address)
    raise_for_status(status, backend.STATUS, "solve_tridiagonal")
    return bool(value)


def _is_repeated(operands: tuple[Any, ...], options: tuple[Any, Any, Any], mode: Any) -> bool:
    """Count a call, and return whether there were enough with the same shapes and options."""
    kinds = tuple(type(a) if type(a) in (int, float) else a.aval for a in operands)
    count = _count(kinds, options, mode)
    count[0] += 1
    return count[0] >= _CALLS


@lru_cache(maxsize=1024)
def _count(kinds: tuple[Any, ...], options: tuple[Any, Any, Any], mode: Any) -> list[int]:
    """Return a list with the number of calls, which the caller changes."""
    return [0]


def _array_of(number: float, rhs: Any) -> Any:
    """Return a real array of one number on the device and of the precision of `rhs`."""
    (device,) = rhs.devices()
    place = device if getattr(rhs, "committed", True) else None
    return _kept_array(float(number), np.empty(0, rhs.dtype).real.dtype, place)


@lru_cache(maxsize=_NUMBERS)
def _kept_array(number: float, dtype: np.dtype, device: Any) -> Any:
    """Return an array of one number; without a device, one that JAX may move."""
    return jax.device_put(np.asarray(number, dtype), device)


@lru_cache(maxsize=64)
def _program(options: tuple[Any, Any, Any], asks: bool) -> Callable[..., Any]:
    """Return the function that JAX compiles for each set of shapes.

    It returns the solutions, and whether one of them is NaN in its first row: that of a singular
    system is NaN in every row.
    """
    axis, pivot, periodic = options

    def compute(*operands: Any) -> tuple[Any, Any]:
        """Return the solution, and whether a system was singular if the caller asks for it."""
        x = solve_tridiagonal(*operands, axis=axis, pivot=pivot, periodic=periodic)
        first = jax.lax.index_in_dim(x, 0, axis)
        return x, jax.numpy.isnan(first).any() if asks else False

    return jax.jit(compute)


@cache
def _factor_program(trans: str) -> Callable[..., Any]:
    """Return the function of a factor and right-hand sides that JAX compiles."""
    return jax.jit(lambda matrices, rhs: matrices.solve(rhs, trans=trans))
