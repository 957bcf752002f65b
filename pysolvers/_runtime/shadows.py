"""Shadows: NumPy arrays over memory of a device.

A shadow has the shape, strides, dtype and address of an array on a device, so that
whatever plans with NumPy views plans for devices too. Its elements must never be read
or written here: all that touches them is the backend.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["address_of", "is_shadow", "memory_order", "packed_strides", "shadow"]

Array = NDArray[Any]


class _Memory:
    """The base of a shadow: what NumPy asks for, and the owner of the memory."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, interface: dict[str, Any], owner: object) -> None:
        self.__array_interface__ = interface
        self.owner = owner


def shadow(
    address: int,
    shape: Sequence[int],
    strides: Sequence[int],
    dtype: np.dtype,
    owner: object,
    *,
    readonly: bool = False,
) -> Array:
    """Return an array over memory of a device, whose elements are never touched.

    Parameters
    ----------
    address : int
        Of the element with index 0.
    shape, strides : sequence of int
        As of an ndarray; strides in bytes.
    dtype : dtype
        Of the elements.
    owner : object
        What keeps the memory; kept by the shadow and all views of it.
    readonly : bool
        Whether nothing may be written there.
    """
    interface = {
        "data": (address, readonly),
        "shape": tuple(shape),
        "strides": tuple(strides),
        "typestr": dtype.str,
        "version": 3,
    }
    return np.asarray(_Memory(interface, owner))


def address_of(array: Array) -> int:
    """Address of the element with index 0."""
    return array.__array_interface__["data"][0]


def is_shadow(array: Array) -> bool:
    """Whether an array is a shadow, or a view of one."""
    base = array.base
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, _Memory)


def memory_order(array: Array) -> list[int]:
    """Axes of an array, the slowest in its memory first."""
    return sorted(range(array.ndim), key=lambda axis: (-abs(array.strides[axis]), axis))


def packed_strides(array: Array) -> tuple[int, ...]:
    """Strides of an array without gaps that has its axes in the same order."""
    strides = [0] * array.ndim
    step = array.itemsize
    for axis in reversed(memory_order(array)):
        strides[axis] = step
        step *= max(array.shape[axis], 1)
    return tuple(strides)
