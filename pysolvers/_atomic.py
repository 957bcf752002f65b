"""Replacement of a file as a whole: readers see the old contents or the new ones."""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOENT
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

__all__ = ["atomic_write"]


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file for writing, which replaces `path` when the block ends.

    If the block raises, the temporary file is removed and the file at `path` stays. A process
    that is killed leaves its temporary file behind; the next call for the same `path` removes
    it. A temporary file is locked (``flock``) as long as its writer lives, so a file that can
    be locked has no writer any more. On a file system without locks nothing is removed.

    The temporary file lies in the folder of `path`. Its name has a fixed length, so that any
    name that the file system allows for `path` can be written.

    Parameters
    ----------
    path : path-like
        The file. Its folder must exist.

    Yields
    ------
    stream : binary file
        To be written.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(ENOENT, "there is no such folder", os.fspath(target.parent))
    with suppress(FileNotFoundError):
        target.lstat()  # OSError now, not after the work, if the name is too long
    digest = blake2b(os.fsencode(target.name), digest_size=8).hexdigest()
    prefix = f".pysolvers-{digest}-"
    _remove_leftovers(target.parent, prefix)
    stream = _create_locked(target.parent, prefix)
    with stream:
        try:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())  # reports a full disk before the old file is replaced
            os.replace(stream.name, target)
        except BaseException:
            Path(stream.name).unlink(missing_ok=True)
            raise


def _create_locked(folder: Path, prefix: str) -> BinaryIO:
    """Create a file with a lock on it, which another process has not removed."""
    while True:
        path = folder / f"{prefix}{secrets.token_hex(8)}"
        stream: BinaryIO = open(path, "xb")  # noqa: SIM115  the caller closes it
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(stream.fileno()), os.stat(path)):
                return stream
        except (BlockingIOError, FileNotFoundError):
            pass  # another process took it for a leftover before it was locked
        except OSError:
            return stream  # the file system has no locks
        stream.close()


def _remove_leftovers(folder: Path, prefix: str) -> None:
    """Remove the temporary files of processes that do not live any more."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(prefix):
                # OSError: the writer lives, or the file is another user's.
                with suppress(OSError), open(folder / name, "r+b") as stream:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(folder / name)
