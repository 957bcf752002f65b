"""Object files and the lists of their inputs, for setup.py and for the C tests.

For each object file NAME.o the compiler writes a file NAME.d, a rule of make: the object file,
a colon, and the source with all files that it includes. nvcc writes a space before the colon.
"""

import os
from pathlib import Path


def is_newer(target: Path, inputs: list[str | Path]) -> bool:
    """Return whether `target` and all inputs exist and no input is newer than `target`."""
    if not all(map(os.path.exists, [target, *inputs])):
        return False
    return all(os.path.getmtime(path) <= os.path.getmtime(target) for path in inputs)


def is_current(target: Path, root: Path) -> bool:
    """Return whether the object file `target` exists and is not older than its inputs.

    `root` is the folder in which it was compiled.
    """
    depends = target.with_suffix(".d")
    if not depends.exists():
        return False
    rule = depends.read_text().replace("\\\n", " ")
    inputs = rule.partition(":")[2].split()
    return is_newer(target, [root / path for path in inputs])
