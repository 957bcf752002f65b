"""A call with rows of systems, checked: its operands, their shape and dtype, and its target."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import broadcasts, require_flag
from .._options import Choice, check_threads
from .._runtime.arrays import resolve_shape
from .._runtime.device import is_device_array
from .._runtime.finite import require_finite_operands
from .._runtime.lines import Shape, named_views
from .._runtime.targets import Target, find_target

Array = NDArray[Any]


class Operation(NamedTuple):
    """What the operands of a function are."""

    name: str
    leader: str  # the operand with all rows, whose library the result has
    vectors: tuple[str, ...]  # the operands that are not entries of the matrix
    replaces: str = ""  # the operand that `out` may be; '' for none, '*': it may overlap any
    columns: tuple[str, ...] = ()  # operands that have one entry per system
    labels: Mapping[str, str] = MappingProxyType({})  # names in messages, where others


class Prepared(NamedTuple):
    """A checked call, its operands where they are used."""

    operation: Operation
    choice: Choice
    like: Any
    target: Target
    threads: int
    shape: Shape
    dtype: np.dtype
    converted: tuple[str, ...]
    result: Array
    operands: dict[str, Array]  # by name, before they are moved, with the mask
    paired: bool  # whether the first batch axis has the real and the imaginary part
    views: dict[str, Array]  # by name, all batch axes, the rows last; and the result; by `viewed`

    @property
    def pairs_of(self) -> tuple[str, ...] | None:
        """The operands with real and imaginary parts; None if these are not solved apart."""
        return self.operation.vectors if self.paired else None


def prepare(named: Mapping[str, Any], where: Any, operation: Operation, choice: Choice) -> Prepared:
    """Check the operands of a call, and those options that all calls have."""
    try:
        return _prepared(named, where, operation, choice)
    except ValueError as error:
        text = str(error)
        for name, label in operation.labels.items():
            text = re.sub(rf"\b{name}\b", label, text)
        if type(error) is not ValueError or text == str(error):
            raise
        raise ValueError(text) from None


def _prepared(
    named: Mapping[str, Any], where: Any, operation: Operation, choice: Choice
) -> Prepared:
    """Do what `prepare` does, with the names of the operands in messages."""
    columns = operation.columns
    given = named if where is None else {**named, "where": where}
    target = find_target(
        choice.device,
        choice.stream,
        given,
        choice.out,
        operation=operation.name,
        leader=operation.leader,
    )
    require_flag("periodic", choice.periodic)
    require_flag("check_finite", choice.check_finite)
    threads = check_threads(choice.threads)
    operands, dtype, converted = target.operands(named, vectors=operation.vectors)
    arrays = dict(zip(named, operands, strict=True))
    mask = None if where is None else target.mask("where", where)
    lines = {name: array for name, array in arrays.items() if name not in columns}
    if mask is not None:
        lines["where"] = mask
    if arrays[operation.leader].ndim == 0:
        raise ValueError(f"{operation.leader} must have at least one dimension, got a 0-d array")
    shape = resolve_shape(lines, choice.axis, leader=operation.leader, periodic=choice.periodic)
    if shape.rows > target.backend.MAX_ROWS:
        raise ValueError(
            f"a system can have at most {target.backend.MAX_ROWS} rows, got {shape.rows}"
        )
    for name in columns:
        require_columns(name, arrays[name], shape)
    if choice.check_finite:
        require_finite_operands(
            operation.name,
            target,
            lines,
            shape,
            periodic=choice.periodic,
            labels=operation.labels,
        )
        for name in columns:
            _require_finite_columns(operation.name, target, name, arrays[name], shape, mask)
    result = target.result(
        choice.out,
        {**given},
        arrays[operation.leader],
        shape.full,
        dtype,
        leader=operation.leader,
        replaces=operation.replaces,
    )
    paired = dtype.kind == "c" and any(
        arrays[name].dtype.kind != "c" for name in named if name not in operation.vectors
    )
    return Prepared(
        operation,
        choice,
        named[operation.leader],
        target,
        threads,
        shape,
        dtype,
        converted,
        result,
        arrays if mask is None else {**arrays, "where": mask},
        paired and bool(result.size),
        {},
    )


def viewed(call: Prepared) -> Prepared:
    """Return a call with its operands where they are used, for callers that divide them."""
    if not call.result.size:
        return call
    columns = call.operation.columns
    x = call.target.destination(call.result)
    return call._replace(
        views=named_views(call.target, call.shape, call.operands, x, columns, call.pairs_of)
    )


def require_columns(name: str, array: Array, shape: Shape) -> None:
    """Raise ValueError unless an operand broadcasts to the batch axes."""
    if not broadcasts(array.shape, shape.batch):
        raise ValueError(
            f"{name} must broadcast to {shape.batch}, one value for each column, got shape "
            f"{tuple(array.shape)}"
        )


def _require_finite_columns(
    operation: str, target: Target, name: str, array: Array, shape: Shape, mask: Array | None
) -> None:
    """Raise ValueError if a value of a column, with rows inside of a mask, is not finite."""
    values = target.download(array) if is_device_array(array) else array
    good = np.isfinite(values)
    if mask is not None:
        inside = shape.batch_first(target.download(mask) if is_device_array(mask) else mask)
        good = good | ~inside.any(-1)
    if not good.all():
        at = tuple(map(int, np.argwhere(~good)[0]))
        place = f" at batch index {at}" if at else ""
        value = np.broadcast_to(values, good.shape)[at]
        raise ValueError(
            f"{operation}: {name} is {value}{place}, and check_finite=True requires finite values"
        )


def finish(call: Prepared) -> Any:
    """Return the result to the caller."""
    return call.target.finish(call.result, call.like, call.choice.out)
