"""cuFFT: plans of batched transforms of lines or planes that are contiguous.

The library is loaded when the first plan is made: nvidia.py.
"""

import ctypes
from math import prod
from threading import RLock
from typing import Any

import numpy as np

from .._errors import BackendError
from .nvidia import current_device, shared_library
from .streams import Stream

# Forms of a transform, as in ps_transform.h.
REAL_TO_COMPLEX, COMPLEX_TO_REAL, COMPLEX = range(3)

# cufftType and function by form, for float32 and float64.
_CALLS = {
    "float32": [(0x2A, "cufftExecR2C"), (0x2C, "cufftExecC2R"), (0x29, "cufftExecC2C")],
    "float64": [(0x6A, "cufftExecD2Z"), (0x6C, "cufftExecZ2D"), (0x69, "cufftExecZ2Z")],
}
_FORWARD = -1


class CufftPlan:
    """A plan for a number of lines; several threads can execute it.

    Parameters
    ----------
    form : int
        REAL_TO_COMPLEX, COMPLEX_TO_REAL or COMPLEX.
    length : int, (int,) or (int, int)
        Length of the transform; of a transform of planes the number of lines and their length.
    pitch : int
        Reals from one line to the next.
    lines : int
        Number of lines, or of planes.
    dtype : dtype
        Of the reals.
    ordinal : int
        Number of the device.
    reals : int, optional
        Reals from one line of reals to the next, if results do not replace the lines; otherwise
        `pitch`.

    Raises
    ------
    BackendError
        If cuFFT is missing or has no plan.
    """

    def __init__(
        self,
        form: int,
        length: int | tuple[int, ...],
        pitch: int,
        lines: int,
        dtype: np.dtype,
        ordinal: int,
        reals: int | None = None,
    ) -> None:
        self._library = _library()
        self._ordinal, self._form = ordinal, form
        #: Held by a thread that executes the plan, or that lets no other one execute it.
        self.lock = RLock()
        self._set: tuple[int, int] | None = None  # stream and work area of the last transform
        kind, self._execute = _CALLS[dtype.name][form]
        plan, work = ctypes.c_int(), ctypes.c_size_t()
        *rows, size = [length] if isinstance(length, int) else length
        counts = ctypes.c_longlong * (len(rows) + 1)
        # Distances of lines in their own numbers, real or complex.
        before = (reals or pitch) if form == REAL_TO_COMPLEX else pitch // 2
        after = (reals or pitch) if form == COMPLEX_TO_REAL else pitch // 2
        with current_device(ordinal):
            self._call("cufftCreate", ctypes.byref(plan))
            self._plan = plan
            self._call("cufftSetAutoAllocation", plan, ctypes.c_int(0))
            self._call(
                "cufftMakePlanMany64",
                plan,
                ctypes.c_int(len(rows) + 1),
                counts(*rows, size),
                counts(*rows, before),
                ctypes.c_longlong(1),
                ctypes.c_longlong(prod(rows) * before),
                counts(*rows, after),
                ctypes.c_longlong(1),
                ctypes.c_longlong(prod(rows) * after),
                ctypes.c_int(kind),
                ctypes.c_longlong(lines),
                ctypes.byref(work),
            )
        #: Bytes of the work area.
        self.work_bytes = work.value

    def execute(self, lines: int, work: int, stream: Stream, target: int | None = None) -> None:
        """Enqueue the transform of all lines or planes.

        Parameters
        ----------
        lines : int
            Address of the first line.
        work : int
            Address of `work_bytes` bytes.
        stream : Stream
            Where to enqueue.
        target : int, optional
            Address of the first line of the results, with the distances of the lines; the lines
            are then not kept. By default these are replaced.
        """
        data, result = ctypes.c_void_p(lines), ctypes.c_void_p(target or lines)
        direction = [ctypes.c_int(_FORWARD)] if self._form == COMPLEX else []
        with self.lock, current_device(self._ordinal):
            if self._set != (stream.address, work):
                self._set = None
                self._call("cufftSetStream", self._plan, ctypes.c_void_p(stream.address))
                self._call("cufftSetWorkArea", self._plan, ctypes.c_void_p(work))
                self._set = stream.address, work
            self._call(self._execute, self._plan, data, result, *direction)

    def __del__(self) -> None:
        plan = getattr(self, "_plan", None)
        if plan is not None:
            self._library.cufftDestroy(plan)

    def _call(self, name: str, *arguments: Any) -> None:
        """Call a function of cuFFT, or raise BackendError with its status."""
        status = getattr(self._library, name)(*arguments)
        if status:
            raise BackendError(f"{name} of cuFFT failed with status {status}")


def _library() -> Any:
    """Return the shared library."""
    packages = "cuda-pathfinder nvidia-cufft"
    return shared_library("cufft", "transforms on a device need cuFFT", packages)
