"""Floating-point modes of the calling thread: rounding, and subnormal numbers flushed to zero.

The modes are set by fesetenv() of the C library, whose environment contains the control register
behind a part that is of no interest here.
"""

import contextlib
import ctypes
import platform
import sys

import pytest

IS_X86 = platform.machine() in {"x86_64", "AMD64"}
IS_ARM = platform.machine() in {"aarch64", "arm64"}

# Bits of MXCSR, and of FPCR.
_X86 = {
    "default": 0,
    "flush": 0x8040,  # FTZ and DAZ, as XLA sets them on the CPU
    "flush results": 0x8000,
    "downward": 0x2000,
    "upward": 0x4000,
    "toward zero": 0x6000,
    "flush toward zero": 0xE040,
}
_ARM = {
    "default": 0,
    "flush": 1 << 24,
    "flush results": 1 << 24,
    "downward": 2 << 22,
    "upward": 1 << 22,
    "toward zero": 3 << 22,
    "flush toward zero": 7 << 22,
}
_BITS = _X86 if IS_X86 else _ARM
MODES = tuple(name for name in _BITS if name != "default")

# Type, offset and all bits of the mode in fenv_t of glibc.
_TYPE, _OFFSET, _MASK = (ctypes.c_uint32, 28, 0xE040) if IS_X86 else (ctypes.c_uint32, 0, 0x1C00000)
_LIBRARY = ctypes.CDLL("libm.so.6") if sys.platform == "linux" and (IS_X86 or IS_ARM) else None

IS_AVAILABLE = _LIBRARY is not None


def _environment():
    found = (ctypes.c_char * 64)()
    assert _LIBRARY.fegetenv(found) == 0
    return found, _TYPE.from_buffer(found, _OFFSET)


def current():
    """Return the bits of the mode of this thread."""
    return _environment()[1].value & _MASK


@contextlib.contextmanager
def fp_mode(name):
    """Set a mode for a block, check that it is still set at its end, and restore the former one.

    Values that the block uses should be computed before it, because Python computes in this mode.
    """
    if not IS_AVAILABLE:
        pytest.skip("fenv_t of glibc on x86-64 and ARM64")
    before, _ = _environment()
    changed, word = _environment()
    word.value = (word.value & ~_MASK) | _BITS[name]
    assert _LIBRARY.fesetenv(changed) == 0
    try:
        yield
        left = current()
    finally:
        assert _LIBRARY.fesetenv(before) == 0
    assert left == _BITS[name], f"the mode {name} was not restored: {left:#x}"
