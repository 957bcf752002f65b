"""Environment variables that the CPU backend reads, checked before it is used."""

import os
import re

_INSTRUCTION_SETS = ("baseline", "avx2", "avx512")
_MAX_THREADS = 1024


def check_environment() -> None:
    """Raise ValueError if a variable has a value that the backend would ignore.

    An empty value is as good as none.
    """
    limit = os.environ.get("PYSOLVERS_ISA", "")
    if limit and limit not in _INSTRUCTION_SETS:
        raise ValueError(
            "the environment variable PYSOLVERS_ISA must be one of "
            f"{', '.join(_INSTRUCTION_SETS)}, got {limit!r}: unset it, or set one of these"
        )
    threads = os.environ.get("PYSOLVERS_NUM_THREADS", "")
    is_integer = re.fullmatch(r"[0-9]{1,9}", threads.strip()) is not None
    if threads and not (is_integer and 1 <= int(threads) <= _MAX_THREADS):
        raise ValueError(
            "the environment variable PYSOLVERS_NUM_THREADS must be an integer in "
            f"1 .. {_MAX_THREADS}, got {_short(threads)}: unset it, or set for example "
            "PYSOLVERS_NUM_THREADS=4"
        )


def _short(text: str) -> str:
    """Return the value of a variable for a message, cut to 40 characters."""
    return repr(text if len(text) <= 40 else text[:37] + "...")
