"""Replacement of a file as a whole: readers see the old contents or the new ones."""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EINVAL, EISDIR, ENOENT
from hashlib import blake2b
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISREG
from typing import BinaryIO


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file for writing, which replaces `path` when the block ends.

    If the block raises, the temporary file is removed and the file at `path` stays. A process
    that is killed leaves its temporary file behind; the next call for the same `path` removes
    it. A temporary file is locked (``flock``) as long as its writer lives, so a file that can
    be locked has no writer any more. On a file system without locks nothing is removed.

    The temporary file lies in the folder of `path`. Its name has a fixed length, so that any
    name that the file system allows for `path` can be written. A file that is replaced keeps its
    permissions, and a symbolic link its target, which is replaced.

    Parameters
    ----------
    path : path-like
        The file. Its folder must exist.

    Yields
    ------
    stream : binary file
        To be written.

    Raises
    ------
    OSError
        If the folder does not exist, the name is too long, or there is a file at `path` that
        cannot be written or that is a folder, a device or a pipe.
    """
    target = Path(os.path.realpath(Path(path)))
    if not target.parent.is_dir():
        raise FileNotFoundError(ENOENT, "there is no such folder", os.fspath(target.parent))
    permissions = _permissions_of(target)
    digest = blake2b(os.fsencode(target.name), digest_size=8).hexdigest()
    prefix = f".pysolvers-{digest}-"
    _remove_leftovers(target.parent, prefix)
    stream = _create_locked(target.parent, prefix)
    with stream:
        try:
            if permissions is not None:
                os.fchmod(stream.fileno(), permissions)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())  # reports a full disk before the old file is replaced
            os.replace(stream.name, target)
        except BaseException:
            Path(stream.name).unlink(missing_ok=True)
            raise


def _permissions_of(target: Path) -> int | None:
    """Return the permissions of the file that is to be replaced; None if there is no file yet."""
    try:
        mode = target.lstat().st_mode  # OSError now, not after the work, if the name is too long
    except FileNotFoundError:
        return None
    path = os.fspath(target)
    if S_ISDIR(mode):
        raise IsADirectoryError(EISDIR, "there is a folder of this name", path)
    if not S_ISREG(mode):
        raise OSError(EINVAL, "a device or a pipe cannot be replaced by a file", path)
    if not os.access(target, os.W_OK):
        raise PermissionError(EACCES, "the file must not be written", path)
    return S_IMODE(mode)


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
