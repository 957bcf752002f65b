"""Print the hash of the C and CUDA sources, by which a record names the code that it measured.

The hash is that of the code: comments, white space, the names of the files and the lines that
include other files of this project do not count, so that a file may move and a comment may
improve without a new record. A record of a GPU depends on the folders of `DEVICE` alone.
"""

import hashlib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ALL = ("csrc", "cuda")
DEVICE = ("csrc/core", "csrc/include", "csrc/python", "cuda")
SUFFIXES = {".c", ".h", ".inc", ".cu", ".cuh"}

# A comment, or a text or character literal, in which the marks of a comment mean nothing.
TOKEN = re.compile(r"""(/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])')""", re.DOTALL)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"[^"\n]*"', re.MULTILINE)
SPACE = re.compile(r"\s+")


def code_of(text: str) -> str:
    """Return the text of a C or CUDA file without comments, own includes and white space."""
    parts = TOKEN.split(INCLUDE.sub("", text))  # code, token, code, token, ..., code
    parts[::2] = [SPACE.sub("", code) for code in parts[::2]]
    return "".join("" if part.startswith(("/*", "//")) else part for part in parts)


def file_hashes(root: Path = ROOT, folders: tuple[str, ...] = ALL) -> dict[str, str]:
    """Return the hash of the code of every source file in `folders`, by its path."""
    paths = (path for folder in folders for path in (root / folder).rglob("*"))
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(
            code_of(path.read_text(encoding="utf-8")).encode()
        ).hexdigest()[:16]
        for path in sorted(paths)
        if path.suffix in SUFFIXES
    }


def source_hash(root: Path = ROOT, folders: tuple[str, ...] = ALL) -> str:
    """Return the SHA-256 over the hashes of all files in `folders` that hold any code."""
    empty = hashlib.sha256(b"").hexdigest()[:16]
    codes = sorted(code for code in file_hashes(root, folders).values() if code != empty)
    return hashlib.sha256("\n".join(codes).encode()).hexdigest()


def device_hash(root: Path = ROOT) -> str:
    """Return the hash of the sources that a record of a GPU depends on."""
    return source_hash(root, DEVICE)
