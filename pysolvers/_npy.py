"""Reading of npy arrays from an npz archive that may be damaged or edited.

NumPy's own reader evaluates the header of an array as a Python expression. With damaged headers
this raises errors of many types, or warns. Here the header must be exactly what NumPy writes,
https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, version 1.0. Arrays of
objects, which are pickles, are refused.
"""

import errno
import re
import zipfile
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["damage_text", "read_member"]

Array = NDArray[Any]

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    r"\{'descr': '([<>|][fiucbU][1-9]\d{0,8})', 'fortran_order': (True|False), "
    r"'shape': \(((?:\d{1,18},? ?){0,32})\), \} *\n"
)
_BLOCK = 1 << 20  # bytes read at a time
_DEFLATE = 1032  # largest ratio that deflate reaches
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, archive_bytes: int) -> Array:
    """Return the array of a member.

    Parameters
    ----------
    archive : ZipFile
        The archive.
    member : ZipInfo
        The member.
    archive_bytes : int
        Size of the archive: no member can be larger than it explains.

    Raises
    ------
    ValueError
        If the member is not a whole array.
    OSError
        If the file cannot be read.
    """
    if member.compress_type not in _METHODS:
        raise ValueError(f"compression method {member.compress_type} is not supported")
    if member.file_size > _DEFLATE * min(member.compress_size, archive_bytes):
        raise ValueError(f"its size, {member.file_size} bytes, is wrong")
    try:
        with archive.open(member) as stream:
            return _read_array(stream, member.file_size)
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(damage_text(error)) from None


def damage_text(error: Exception) -> str:
    """Return what an error of zipfile or zlib says about damaged data; they have many types.

    An error that the data cannot cause is raised again.
    """
    is_input_error = isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
    if is_input_error or isinstance(error, MemoryError):
        raise error
    return f"it is damaged: {str(error) or type(error).__name__}"


def _read_array(stream: Any, size: int) -> Array:
    dtype, shape, is_fortran, start = _read_header(stream)
    count = prod(shape)
    if count * dtype.itemsize != size - start:
        raise ValueError(
            f"an array of {dtype} with shape {shape} does not have {size - start} bytes"
        )
    data = np.empty(size - start, np.uint8)
    done = 0
    while done < data.size:
        got = stream.readinto(data[done : done + _BLOCK])
        if not got:
            raise ValueError(f"it ends after {start + done} of {size} bytes")
        done += got  # zipfile compares the checksum as the last byte is read
    array = data.view(dtype) if data.size else np.empty(count, dtype)
    array = array.reshape(shape, order="F" if is_fortran else "C")
    return array if dtype.isnative else array.astype(dtype.newbyteorder("="))


def _read_header(stream: Any) -> tuple[np.dtype, tuple[int, ...], bool, int]:
    start = stream.read(len(_MAGIC) + 2)
    if len(start) != len(_MAGIC) + 2 or not start.startswith(_MAGIC):
        raise ValueError("it is not an array in version 1.0 of the npy format")
    length = int.from_bytes(start[-2:], "little")
    found = _HEADER.fullmatch(stream.read(length).decode("latin1"))
    if found is None:
        raise ValueError("the header of the array is damaged, or not one of numbers or text")
    descr, order, sizes = found.groups()
    shape = tuple(int(size) for size in re.findall(r"\d+", sizes))
    try:
        dtype = np.dtype(descr)
    except TypeError:
        raise ValueError(f"the header of the array names the unknown type {descr!r}") from None
    return dtype, shape, order == "True", len(start) + length
