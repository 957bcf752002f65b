"""cuBLAS: products of one matrix with a batch of matrices, in full precision.

The library is loaded when the first product is planned: nvidia.py.
"""

import ctypes
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import BackendError
from .nvidia import current_device, shared_library
from .streams import Stream

_LETTERS = {"float32": "S", "float64": "D"}
_NUMBERS = {"float32": ctypes.c_float, "float64": ctypes.c_double}
_PLAIN, _TRANSPOSED = 0, 1  # cublasOperation_t
_RIGHT = 1  # cublasSideMode_t
_MOST = 65535  # products of a call: blocks along the third axis of a grid


class Products:
    """Products on one device, for the rest of the process.

    Several threads can call them; their calls take turns.

    Parameters
    ----------
    ordinal : int
        Number of the device.

    Raises
    ------
    BackendError
        If cuBLAS is missing or cannot use the device.
    """

    def __init__(self, ordinal: int) -> None:
        self._library, self._ordinal = _library(), ordinal
        self._lock = Lock()
        handle = ctypes.c_void_p()
        with current_device(ordinal):
            self._call("cublasCreate_v2", ctypes.byref(handle))
        self._handle = handle

    def columns(
        self,
        matrix: tuple[int, int],
        source: int,
        target: int,
        sizes: tuple[int, int, int],
        distance: int,
        dtype: np.dtype,
        stream: Stream,
        apart: int = 0,
        work: tuple[int, int] | None = None,
    ) -> None:
        """Enqueue target[i] = matrix @ source[i] for all i, or matrix[i] @ source[i].

        Parameters
        ----------
        matrix : (int, int)
            Address of n x n numbers, and numbers from one row to the next. Products are faster if
            rows begin at multiples of 16 bytes.
        source, target : int
            Addresses of `count` arrays of (n, width) numbers in C order that do not overlap.
        sizes : (int, int, int)
            count, n and width.
        distance : int
            Numbers from one array to the next.
        dtype : dtype
            float32 or float64.
        stream : Stream
            Where to enqueue.
        apart : int, default: 0
            Numbers from one matrix to the next; 0 if there is one.
        work : (int, int), optional
            Address and bytes of a work area, so that a graph shares none with other calls; by
            default that of the library for the stream.
        """
        count, n, width = sizes
        for start in range(0, count, _MOST):
            # In Fortran order: target[i]^T = source[i]^T matrix^T.
            skip = start * distance * dtype.itemsize
            operands = (
                (source + skip, width, distance),
                (matrix[0] + start * apart * dtype.itemsize, matrix[1], apart),
                (target + skip, width, distance),
            )
            part = min(_MOST, count - start)
            self._run((_PLAIN, _PLAIN), (width, n, n), operands, part, dtype, stream, work)

    def rows(
        self,
        matrix: tuple[int, int],
        source: int,
        target: int,
        sizes: tuple[int, int],
        distance: int,
        dtype: np.dtype,
        stream: Stream,
        work: tuple[int, int] | None = None,
    ) -> None:
        """Enqueue target[i] = matrix @ source[i] for vectors.

        Parameters
        ----------
        sizes : (int, int)
            Number of vectors, and their length n.
        distance : int
            Numbers from one vector to the next.
        matrix, source, target, dtype, stream, work
            As for `columns`.
        """
        count, n = sizes
        # In Fortran order: target^T = matrix source^T.
        operands = (*matrix, 0), (source, distance, 0), (target, distance, 0)
        shape = n, count, n
        self._run((_TRANSPOSED, _PLAIN), shape, operands, 1, dtype, stream, work)

    def matrices(
        self,
        a: tuple[int, int],
        b: tuple[int, int],
        target: tuple[int, int],
        shape: tuple[int, int, int],
        dtype: np.dtype,
        stream: Stream,
        work: tuple[int, int],
        *,
        adds: bool = True,
    ) -> None:
        """Enqueue target += a @ b for matrices in C order.

        Parameters
        ----------
        a, b, target : (int, int)
            Address, and numbers from one row to the next.
        shape : (int, int, int)
            Rows of `a`, columns of `a`, and columns of `b`.
        dtype, stream
            As for `columns`.
        work : (int, int)
            As for `columns`.
        adds : bool, default: True
            Otherwise target = a @ b.
        """
        m, k, n = shape
        # In Fortran order: target^T += b^T a^T.
        operands = (*b, 0), (*a, 0), (*target, 0)
        self._run((_PLAIN, _PLAIN), (n, m, k), operands, 1, dtype, stream, work, adds=adds)

    def vector(
        self,
        matrix: tuple[int, int],
        source: int,
        target: int,
        shape: tuple[int, int],
        dtype: np.dtype,
        stream: Stream,
        work: tuple[int, int],
    ) -> None:
        """Enqueue target = matrix @ source for a vector without gaps.

        Parameters
        ----------
        matrix : (int, int)
            Address, and numbers from one row to the next.
        source, target : int
            Addresses.
        shape : (int, int)
            Rows and columns of the matrix.
        dtype, stream, work
            As for `matrices`.
        """
        number = _NUMBERS[dtype.name]
        (address, lead), (m, n) = matrix, shape
        self._enqueue(
            f"cublas{_LETTERS[dtype.name]}gemv_v2",
            stream,
            work,
            # In Fortran order: the transposed matrix.
            *map(ctypes.c_int, (_TRANSPOSED, n, m)),
            ctypes.byref(number(1)),
            ctypes.c_void_p(address),
            ctypes.c_int(lead),
            ctypes.c_void_p(source),
            ctypes.c_int(1),
            ctypes.byref(number(0)),
            ctypes.c_void_p(target),
            ctypes.c_int(1),
        )

    def scaled_rows(
        self,
        factors: int,
        matrix: tuple[int, int],
        target: tuple[int, int],
        shape: tuple[int, int],
        dtype: np.dtype,
        stream: Stream,
        work: tuple[int, int],
    ) -> None:
        """Enqueue target[i] = factors[i] * matrix[i].

        Parameters
        ----------
        factors : int
            Address.
        matrix, target : (int, int)
            Address, and numbers from one row to the next.
        shape : (int, int)
            Rows and columns.
        dtype, stream, work
            As for `matrices`.
        """
        (address, lead), (m, n) = matrix, shape
        self._enqueue(
            f"cublas{_LETTERS[dtype.name]}dgmm",
            stream,
            work,
            *map(ctypes.c_int, (_RIGHT, n, m)),  # in Fortran order
            ctypes.c_void_p(address),
            ctypes.c_int(lead),
            ctypes.c_void_p(factors),
            ctypes.c_int(1),
            ctypes.c_void_p(target[0]),
            ctypes.c_int(target[1]),
        )

    def _run(
        self,
        operations: tuple[int, int],
        shape: tuple[int, int, int],
        operands: tuple[tuple[int, int, int], ...],
        count: int,
        dtype: np.dtype,
        stream: Stream,
        work: tuple[int, int] | None = None,
        *,
        adds: bool = False,
    ) -> None:
        """Multiply operands given by address, leading dimension and distance."""
        number = _NUMBERS[dtype.name]
        a, b, c = (
            (ctypes.c_void_p(address), ctypes.c_int(lead), ctypes.c_longlong(distance))
            for address, lead, distance in operands
        )
        self._enqueue(
            f"cublas{_LETTERS[dtype.name]}gemmStridedBatched",
            stream,
            work,
            *map(ctypes.c_int, operations),
            *map(ctypes.c_int, shape),
            ctypes.byref(number(1)),
            *a,
            *b,
            ctypes.byref(number(1 if adds else 0)),
            *c,
            ctypes.c_int(count),
        )

    def _enqueue(
        self, name: str, stream: Stream, work: tuple[int, int] | None, *arguments: Any
    ) -> None:
        """Call a function on a stream; without a work area it is that of the library for it."""
        with self._lock, current_device(self._ordinal):
            self._call("cublasSetStream_v2", self._handle, ctypes.c_void_p(stream.address))
            if work is not None:  # until the stream is set again
                place = ctypes.c_void_p(work[0]), ctypes.c_size_t(work[1])
                self._call("cublasSetWorkspace_v2", self._handle, *place)
            self._call(name, self._handle, *arguments)

    def _call(self, name: str, *arguments: Any) -> None:
        """Call a function of cuBLAS, or raise BackendError with its status."""
        status = getattr(self._library, name)(*arguments)
        if status:
            raise BackendError(f"{name} of cuBLAS failed with status {status}")


def padded_rows(matrix: NDArray[Any], dtype: np.dtype) -> NDArray[Any]:
    """Return a matrix whose rows begin at multiples of 32 bytes, for which cuBLAS is faster."""
    count = -(-matrix.shape[1] * dtype.itemsize // 32) * 32 // dtype.itemsize
    padded = np.zeros((len(matrix), count), dtype)
    padded[:, : matrix.shape[1]] = matrix
    return padded


@cache
def products(ordinal: int) -> Products:
    """Return the products of a device, which all solvers on it share."""
    return Products(ordinal)


def _library() -> Any:
    """Return the shared library."""
    packages = "cuda-pathfinder nvidia-cublas"
    return shared_library("cublas", "products on a device need cuBLAS", packages)
