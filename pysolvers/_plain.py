"""Array-likes that hold more than numbers in memory: masks, units, or a graph of tasks.

NumPy converts them to plain arrays without a word, and what is lost makes solutions wrong. They are
recognised by their attributes, so that no library is imported.
"""

from typing import Any

import numpy as np

# Types that most arguments have, and that need no look.
_PLAIN = {np.ndarray, float, int, complex, bool, list, tuple, type(None), np.float64, np.float32}

# What to write in place of the masked values of the operands of a system.
_FILLED = {
    "lower": "lower.filled(0)",
    "diag": "diag.filled(1), with 0 for lower and upper in these rows",
    "upper": "upper.filled(0)",
    "rhs": "rhs.filled(0), with 1 for diag and 0 for lower and upper in the masked rows",
}


def require_plain(name: str, value: Any, when: str = "") -> None:
    """Raise TypeError for a masked array, an ``np.matrix``, an array with a unit or one of dask.

    `when` stands behind the rule in the message.
    """
    lost = what_is_lost(name, value)
    if lost:
        kind = type(value).__name__
        raise TypeError(f"{name} must be a plain array{when}, got {kind}: {lost}")


def what_is_lost(name: str, value: Any) -> str:
    """Return what a conversion to an array would lose, and what to write; '' for plain values."""
    if type(value) in _PLAIN:
        return ""
    if isinstance(value, np.matrix):
        return f"write numpy.asarray({name})"
    if isinstance(value, np.ma.MaskedArray) or _has(value, "mask", "unmasked"):
        return f"its mask would be lost; write {_FILLED.get(name, f'{name}.filled(value)')}"
    if _has(value, "get_mask", "get_data"):  # MaskedTensor of PyTorch
        return f"its mask would be lost; write {name}.to_tensor(value)"
    if _has(value, "unit", "to_value"):  # astropy
        return f"its unit would be lost; write {name}.to_value({str(value.unit)!r})"
    if _has(value, "units", "to_value"):  # unyt
        return f"its unit would be lost; write {name}.to_value({str(value.units)!r})"
    if _has(value, "units", "magnitude"):  # pint
        return f"its unit would be lost; write {name}.to({str(value.units)!r}).magnitude"
    if is_lazy(value):
        return (
            "all of it would be loaded into one array; write xarray.apply_ufunc(..., "
            "dask='parallelized') or dask.array.map_blocks(...), with the systems in one chunk, "
            f"or {name}.compute()"
        )
    return ""


def _has(value: Any, *names: str) -> bool:
    """Return whether an object has all of these attributes."""
    return all(hasattr(value, name) for name in names)


def is_lazy(value: Any) -> bool:
    """Whether a value is computed by a graph of dask; labelled arrays have none if in memory."""
    graph = getattr(value, "__dask_graph__", None)
    return graph is not None and graph() is not None
