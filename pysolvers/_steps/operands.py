"""Operands of steps as the caller gave them: arrays of any library, and numbers."""

from typing import Any

import numpy as np


def numbers_of(value: Any) -> Any:
    """Return an operand that arithmetic of its library takes: arrays and numbers as they are."""
    if hasattr(value, "dtype") or hasattr(value, "__cuda_array_interface__") or np.isscalar(value):
        return value
    return np.asarray(value)


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of an array of any library, or () of a number."""
    interface = (
        None if hasattr(value, "shape") else getattr(value, "__cuda_array_interface__", None)
    )
    return tuple(np.shape(value) if interface is None else interface["shape"])
