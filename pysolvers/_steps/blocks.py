"""Diffusion of arrays of dask: the step of each block of columns is a task of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import require
from .._plain import is_lazy

Array = NDArray[Any]

_OPERATION = "implicit_diffusion"


def any_lazy(named: Mapping[str, Any]) -> bool:
    """Whether an operand, or the array of a labelled operand, is one of dask."""
    return any(is_lazy(value) for value in named.values())


def by_blocks(
    step: Callable[..., Any], named: Mapping[str, Any], axis: int, ndim: int, dims: tuple[str, ...]
) -> Any:
    """Return the array of dask whose blocks are the results of ``step(named, axis)`` of blocks.

    `axis` counts from the last axis of `ndim`; `dims` has their names if the operands are those
    of labelled arrays.
    """
    import dask.array as da

    arrays, places = {}, []
    for name, value in named.items():
        if value is None or np.ndim(value) == 0:
            continue
        labels = _labels_of(name, value, axis, ndim)
        arrays[name] = value if is_lazy(value) else da.from_array(np.asarray(value), chunks=-1)
        _require_whole(name, arrays[name], labels, ndim + axis, ndim, dims)
        places += [arrays[name], labels]
    numbers = {name: value for name, value in named.items() if name not in arrays}
    dtype = np.result_type(
        np.float32, *(_dtype_of(value) for name, value in named.items() if name != "where")
    )
    return da.blockwise(
        partial(_step_of, step, tuple(arrays), numbers, axis),
        tuple(range(ndim)),
        *places,
        dtype=dtype,
        meta=np.empty((0,) * ndim, dtype),
        concatenate=True,
    )


def _dtype_of(value: Any) -> Any:
    """Return what decides the dtype of the result: Python numbers decide nothing."""
    if value is None or isinstance(value, (bool, int, float)):
        return np.float32
    return value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype


def _labels_of(name: str, value: Any, axis: int, ndim: int) -> tuple[int, ...]:
    """Return the numbers of the axes of an operand; the faces of K have a number of their own."""
    own = np.ndim(value)
    all_axes = list(range(ndim))
    if name.startswith(("flux_", "value_")):
        del all_axes[ndim + axis]
    elif own == 1:
        all_axes = [ndim + axis]
    require(own <= len(all_axes), f"{_OPERATION}: {name} must have at most the axes of T", own)
    labels = all_axes[len(all_axes) - own :]
    return tuple(ndim if name == "K" and label == ndim + axis else label for label in labels)


def _require_whole(
    name: str,
    array: Any,
    labels: tuple[int, ...],
    along: int,
    faces: int,
    dims: tuple[str, ...],
) -> None:
    """Raise ValueError if an operand is cut along the axis of the columns."""
    for k, (label, chunks) in enumerate(zip(labels, array.chunks, strict=True)):
        if label in (along, faces) and len(chunks) > 1:
            write = f"{name}.chunk({dims[along]}=-1)" if dims else f"{name}.rechunk({{{k}: -1}})"
            raise ValueError(
                f"{_OPERATION}: {name} has {len(chunks)} chunks along the columns; a column must "
                f"lie in one: write {write}"
            )


def _step_of(
    step: Callable[..., Any],
    names: tuple[str, ...],
    numbers: Mapping[str, Any],
    axis: int,
    *blocks: Array,
) -> Array:
    """Make the step of one block."""
    return np.asarray(step({**numbers, **dict(zip(names, blocks, strict=True))}, axis))
