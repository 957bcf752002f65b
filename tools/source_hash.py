#!/usr/bin/env python3
"""Print the hash of the C and CUDA sources, by which a record names the code that it measured."""

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("csrc", "cuda")
SUFFIXES = {".c", ".h", ".inc", ".cu", ".cuh"}


def source_hash(root: Path = ROOT) -> str:
    """Return the SHA-256 over path and content of every source file below `root`."""
    files = (path for folder in FOLDERS for path in (root / folder).rglob("*"))
    digest = hashlib.sha256()
    for path in sorted(path for path in files if path.suffix in SUFFIXES):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


if __name__ == "__main__":
    print(source_hash())
