"""Operands of steps as the caller gave them: arrays of any library, and numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._runtime.interop import dtype_of, library_of


def numbers_of(value: Any) -> Any:
    """Return an operand that arithmetic of its library takes: arrays and numbers as they are."""
    if hasattr(value, "dtype") or hasattr(value, "__cuda_array_interface__") or np.isscalar(value):
        return value
    return np.asarray(value)


def in_one_precision(
    named: Mapping[str, Any], least: np.dtype[Any] | None = None
) -> dict[str, Any]:
    """Return `numbers_of` operands, those of single precision in double precision if mixed.

    Arrays of float32 and complex64 are converted if another array, or `least`, has another
    precision: a product of an array of float32 and a number of Python would be rounded to float32.
    """
    values = {name: numbers_of(value) for name, value in named.items()}
    numbers = (bool, int, float, complex)
    dtypes = {n: dtype_of(value) for n, value in values.items() if type(value) not in numbers}
    singles = "fF"  # of float32 and complex64 in any byte order
    found = [*dtypes.values(), *(() if least is None else (least,))]
    if all(dtype.char in singles for dtype in found):
        return values
    for name, dtype in dtypes.items():
        if dtype.char in singles:
            wide = np.result_type(dtype, np.float64)
            value = values[name]
            if isinstance(value, np.ndarray | np.generic):
                values[name] = value.astype(wide)
            elif library_of(value).converts:
                values[name] = library_of(value).converted(name, value, wide)
    return values
