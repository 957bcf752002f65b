"""The file of a cavity's state, checked as a whole before anything is built from it."""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._files import read_npz
from .._header import (
    count,
    elapsed,
    flag,
    mapping,
    number,
    optional,
    positive,
    record,
    sequence,
    text,
)
from ._control import INTERVAL
from ._settings import CavitySettings

__all__ = ["read_state"]

Array = NDArray[np.float64]

_HEADER = {
    "settings": record(
        {
            "re": positive,
            "n": count(5),
            "lid_velocity": number(),
            "wall": text(),
            "method": text(),
            "line_method": text(),
            "direction": text(),
            "psi": text(),
            "psi_sweeps": count(1),
            "step": optional(positive),
            "device": optional(text()),
            "threads": optional(count(1)),
        }
    ),
    "control": record(
        {
            "limit": positive,
            "step": positive,
            "cap": positive,
            "best": number(finite=False),
            "best_step": positive,
            "waiting": count(),
            "fixed": flag,
        }
    ),
    "iterations": count(),
    "measured": count(),
    "residuals": sequence(number(finite=False), 2),
    "best_residuals": sequence(number(finite=False), 2),
    "seconds": mapping(elapsed),
    "lines": record({"method": text(), "threads": count(), "kernel": text()}),
}


def read_state(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, Any], dict[str, Array], Array]:
    """Return the header, the fields and the history of a file.

    Raises
    ------
    ValueError
        If something is missing or wrong; the message names the file and the part.
    """
    saved = read_npz(path, kind)
    facts = saved.header(_HEADER)
    with saved.naming("header"):
        settings = CavitySettings(**facts["settings"])
    saved.require_stages(facts["seconds"], settings.backend.STAGES)
    names = ("psi", "omega", "best_psi", "best_omega")
    field = (settings.n, settings.n), np.float64
    members = dict.fromkeys(names, field)
    arrays = saved.arrays({**members, "history": ((None, 4), np.float64)})
    history = arrays.pop("history")
    saved.require_rows(history, INTERVAL, facts["iterations"], "iterations")
    return facts, arrays, history
