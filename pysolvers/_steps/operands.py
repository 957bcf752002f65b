"""Operands of steps as the caller gave them: arrays of any library, and numbers."""

from typing import Any

import numpy as np


def numbers_of(value: Any) -> Any:
    """Return an operand that arithmetic of its library takes: arrays and numbers as they are."""
    if hasattr(value, "dtype") or hasattr(value, "__cuda_array_interface__") or np.isscalar(value):
        return value
    return np.asarray(value)
