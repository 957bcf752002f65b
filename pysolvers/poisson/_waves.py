r"""Transforms on a device whose waves stay as cuFFT packs them, and lines along the first axis.

For real fields of cells whose sides are both Dirichlet or both Neumann, or periodic, along all axes
but the first one; on rectangles also of nodes. The cosine and sine transforms of type II of n
values are the real and imaginary parts of

    exp(-i pi k / (2 n)) V[k]

at k and n - k, with V the Fourier transform of the values in another order (Makhoul 1980, in one
and two dimensions). A rotation of the reals of one wave is local, so that the solver of the lines
makes it when it reads and writes, and waves need no pass of their own:

    load     values to the order of cuFFT                     2 words per unknown
    cuFFT    all axes but the first one, in place             2 for each axis
    lines    rotate, solve along the first axis, rotate back  2
    cuFFT    back, in place                                   2 for each axis
    store    values in their own order                        2

The waves of nodes are those of the even or odd extension to twice the length. In three dimensions
this would be four times the values: `_device` moves less.

The lines need no transposition either, because neighbouring lines are neighbours in memory.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._runtime.cufft import COMPLEX_TO_REAL, REAL_TO_COMPLEX, CufftPlan
from .._runtime.device import Device, address_of, device_array
from ._axes import Axis
from ._methods import has_short_factors

Array = NDArray[Any]


def are_packed(axes: Sequence[Axis], dtype: np.dtype) -> bool:
    """Return whether `PackedWaves` can solve the equation on these axes, and no slower than lines.

    The device decides how many rows the lines can have: ``backend.waves_fit``.
    """
    others = axes[1:]
    return (
        dtype.kind == "f"
        and len(others) > 0
        and all(axis.has_transform for axis in axes)
        and all(
            axis.transform[1] in (0, 2) or (axis.transform[1] == 1 and len(others) == 1)
            for axis in others
        )
        and all(has_short_factors(axis) for axis in others)
    )


class PackedWaves:
    """Plans and tables for one grid.

    Parameters
    ----------
    axes : sequence of Axis
        In the order of the array: x last.
    dtype : dtype
        float32 or float64.
    device : Device
        The device.
    keep : callable
        Copies an array of the host to the device.
    helmholtz : float, default: 0
        The number c, at least 0.
    """

    def __init__(
        self,
        axes: Sequence[Axis],
        dtype: np.dtype,
        device: Device,
        keep: Callable[[Array], Array],
        helmholtz: float = 0.0,
    ) -> None:
        self._dtype = dtype
        first, *others = axes
        self._shape = tuple(axis.count for axis in axes)
        lengths = tuple(_length(axis) for axis in others)
        self._rows, self._length = (1, *lengths)[-2:]
        # No space between lines: with it cuFFT takes 1.1 to 1.7 times as long (H200).
        self._pitch = 2 * (self._length // 2 + 1)
        #: Bytes of the waves.
        self.wave_bytes = first.count * self._rows * self._pitch * dtype.itemsize
        self._plans = [
            CufftPlan(form, lengths, self._pitch, first.count, dtype, device.ordinal)
            for form in (REAL_TO_COMPLEX, COMPLEX_TO_REAL)
        ]
        #: Bytes of the work area of cuFFT.
        self.work_bytes = max(plan.work_bytes for plan in self._plans)
        names = ["rfft" if axis.is_periodic else "{}{}".format(*axis.transform) for axis in others]
        self._kinds = [device.backend.TRANSFORMS[name] for name in ("rfft", *names)[-2:]]
        self._scale = 1 / prod(lengths)
        self._is_singular = not helmholtz and all(axis.has_null_vector for axis in axes)
        self._volumes = keep(first.volumes)
        tables = [_shifts(others) - helmholtz, _turns(others[-1], self._length // 2 + 1)]
        tables.append(_turns(others[0], self._rows) if len(others) > 1 else _no_turns(1))
        self._tables = [keep(np.asarray(table, dtype)) for table in tables]
        lower, diag, upper = first.rows
        words = lower, first.sums, upper
        rows = [tuple(float(a[i]) for a in words) for i in (0, first.count // 2, -1)]
        # See `_host`: the solution of (A + s e e^T) x = b satisfies A x = b if A is singular.
        null_sum = first.sums[0] + (diag[0] if self._is_singular else 0)
        self._matrix = *rows, float(null_sum), first.is_periodic

    def run(self, source: Array, target: Array, waves: int, work: int, device: Device) -> None:
        """Enqueue a solve.

        Parameters
        ----------
        source, target : ndarray
            The right side and the solution, on the device.
        waves, work : int
            Addresses of `wave_bytes` and `work_bytes` bytes.
        device : Device
            Where to enqueue.
        """
        backend, (forward, backward) = device.backend, self._plans
        self._move(backend.waves_load, source, waves, 1.0, device)
        forward.execute(waves, work, device.stream)
        self._centre(waves, device)
        self._solve_lines(waves, device)
        self._centre(waves, device)
        backward.execute(waves, work, device.stream)
        self._move(backend.waves_store, target, waves, self._scale, device)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let no other thread use the plans of cuFFT: one of them has one stream at a time."""
        forward, backward = self._plans
        with forward.lock, backward.lock:
            yield

    def _solve_lines(self, waves: int, device: Device) -> None:
        """Enqueue the tridiagonal solves of some waves."""
        device.enqueue(
            device.backend.wave_lines,
            self._dtype == np.float32,
            self._shape[0],
            self._rows,
            self._length,
            self._pitch,
            waves,
            tuple(address_of(table) for table in self._tables),
            *self._matrix,
        )

    def _move(self, function: Any, field: Array, waves: int, scale: float, device: Device) -> None:
        """Enqueue a kernel that moves a field into the memory of the transforms, or out of it."""
        columns = field if field.ndim == 3 else field[:, None]
        device.enqueue(function, *self._kinds, columns, self._pitch, waves, self.wave_bytes, scale)

    def _centre(self, waves: int, device: Device) -> None:
        """In a singular case make the mean of the constant wave zero."""
        if self._is_singular:
            size = self._dtype.itemsize
            strides = (size, size, self._rows * self._pitch * size)
            line = device_array(waves, (1, 1, self._shape[0]), strides, self._dtype, self)
            device.enqueue(device.backend.centre, line, address_of(self._volumes))


def _no_turns(count: int) -> Array:
    """Return factors 1, as pairs of a real and an imaginary part."""
    return np.repeat([[1.0, 0.0]], count, axis=0)


def _length(axis: Axis) -> int:
    """Return the length of the transform of cuFFT."""
    return 2 * axis.intervals if axis.transform[1] == 1 else axis.count


def _turns(axis: Axis, count: int) -> Array:
    """Return cosine and sine of the angle by which each wave is turned."""
    if axis.transform[1] != 2:
        return _no_turns(count)
    angles = np.pi / 2 * np.arange(count) / axis.count
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def _eigenvalues(axis: Axis) -> Array:
    """Return the eigenvalues of the waves of cuFFT and of their mirror images.

    With n the length of the transform they are entries k and n - k.
    """
    assert axis.step is not None
    function, kind = axis.transform
    length = _length(axis)
    waves = np.arange(length + 1) * (1 if kind == 2 else 2)
    if function == "dst" and kind == 2:  # cosines of values of alternating sign, in reverse order
        waves = waves[::-1]
    found = -((2 / axis.step * np.sin(np.pi / 2 * waves / length)) ** 2)
    if function == "dst" and kind == 1:
        found[0] = found.min()  # wave 0 is zero: its system needs a matrix that is not singular
    return found


def _shifts(others: Sequence[Axis]) -> Array:
    """Return the sums of the eigenvalues in the places of ps_wave_lines, a row after the other."""
    length = _length(others[-1])
    half = np.arange(length // 2 + 1)
    along = _eigenvalues(others[-1])
    # The imaginary part of wave 0 is zero as well.
    mirrored = np.where(half > 0, along[length - half], along.min())
    across = _eigenvalues(others[0]) if len(others) > 1 else np.zeros(2)
    row = np.arange(len(across) - 1)
    mirror = -row % len(row)
    is_first, is_second = (row < mirror)[:, None], (row > mirror)[:, None]
    real = across[row][:, None] + np.where(is_second, mirrored, along[half])
    imaginary = across[mirror][:, None] + np.where(is_first, along[half], mirrored)
    if len(row) == 1 and length % 2 == 0:  # the last wave has the place of Im V[0]
        imaginary[0, 0] = real[0, -1]
        real, imaginary = real[:, :-1], imaginary[:, :-1]
    return np.stack([real, imaginary], axis=-1)
