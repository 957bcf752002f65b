"""The options that the benchmarks share: each has one name, one meaning and one text."""

import argparse
from pathlib import Path
from typing import Any


def positive(text: str) -> int:
    """Return the positive integer in `text`."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text}")
    return int(text)


def shape(text: str) -> tuple[int, ...]:
    """Return the shape in `text`, for example 64x64x64."""
    return tuple(positive(part) for part in text.split("x"))


OPTIONS: dict[str, dict[str, Any]] = {
    "quick": {"action": "store_true", "help": "small sizes, to see that it runs"},
    "gpu": {"action": "store_true", "help": "on a GPU, compared with packages of the GPU"},
    "threads": {"type": positive, "help": "of this package; default: that of the backend"},
    "runs": {"type": positive, "default": 5, "help": "of a case (%(default)d)"},
    "samples": {"type": positive, "help": "of a case (%(default)s)"},
    "sizes": {"type": shape, "nargs": "+", "help": "for example 512x512 64x64x64"},
    "ranks": {"type": positive, "nargs": "+", "default": [1, 2], "help": "jobs of so many ranks"},
    "device": {"choices": ("cpu", "cuda"), "default": "cpu", "help": "(%(default)s)"},
    "dtypes": {"nargs": "+", "default": ["float32", "float64"], "help": "(%(default)s)"},
    "json": {"metavar": "FILE", "type": Path, "help": "write the record to FILE"},
    "record": {
        "action": "store_true",
        "help": "write the record of this machine to benchmarks/results",
    },
}


def add_options(parser: argparse.ArgumentParser, *names: str, **changed: Any) -> None:
    """Add options of `OPTIONS` to the parser of a benchmark, and those that name its record.

    Parameters
    ----------
    parser : ArgumentParser
        The parser.
    *names : str
        The options.
    **changed
        Options with another default, or other choices if a dict is given.
    """
    for name in dict.fromkeys((*names, *changed, "json", "record")):
        more = changed.get(name, {})
        more = more if isinstance(more, dict) else {"default": more}
        parser.add_argument(f"--{name}", **{**OPTIONS[name], **more})
