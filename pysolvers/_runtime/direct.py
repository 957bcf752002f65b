"""Calls of entries of the extension that take the operands of the caller as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .interop import host_array, library_of


def call_directly(
    entry: Callable[..., Any], operands: tuple[Any, ...], axis: Any, out: Any, *options: Any
) -> Any:
    """Return the result in the library of the last operand, a status, or None.

    None: the call needs planning, is wrong, or an operand is not in host memory.
    """
    like, to = operands[-1], out
    if type(like) is not np.ndarray:
        if type(host_array(like)) is not np.ndarray:
            return None
        operands, to = tuple(map(host_array, operands)), host_array(out)
    answer = entry(*operands, axis, to, *options)
    if answer is NotImplemented:
        return None
    if type(like) is np.ndarray or type(answer) is not np.ndarray:
        return answer
    return library_of(like).from_host(answer, like) if out is None else out
