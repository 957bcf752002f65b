"""Where the files for programs in C, C++ and Fortran are: header, library, configurations."""

import argparse
import shlex
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def get_include() -> str:
    """Return the folder of ``pysolvers_api.h``, and of ``pysolvers.f90`` for Fortran.

    An extension module of Python needs this folder only. A program without Python also links
    with the library of the package: ``pysolvers config --cflags --libs`` prints the flags.

    Returns
    -------
    folder : str
        Absolute path.

    Examples
    --------
    >>> import os
    >>> import pysolvers
    >>> os.path.exists(os.path.join(pysolvers.get_include(), "pysolvers_api.h"))
    True
    """
    return str(_PACKAGE / "include")


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``pysolvers config``."""
    for name, (text, _) in _values().items():
        parser.add_argument(f"--{name}", action="append_const", const=name, dest="asked", help=text)


def run_config(args: argparse.Namespace) -> int:
    """Print what is asked for on one line, or everything with its name."""
    values = {name: value for name, (_, value) in _values().items()}
    if args.asked:
        print(" ".join(values[name] for name in args.asked))
    else:
        for name, value in values.items():
            print(f"{name:11} {value}")
    return 0


def _values() -> dict[str, tuple[str, str]]:
    """Return what ``pysolvers config`` can print: for each option its help and its value."""
    library = _PACKAGE / "lib"
    return {
        "cflags": ("flags of the compiler", shlex.quote(f"-I{get_include()}")),
        "libs": (
            "flags of the linker",
            shlex.join([f"-L{library}", f"-Wl,-rpath,{library}", "-lpysolvers"]),
        ),
        "fortran": ("the module of Fortran, to compile", str(_PACKAGE / "include/pysolvers.f90")),
        "pkgconfig": ("folder for PKG_CONFIG_PATH", str(library / "pkgconfig")),
        "cmake": ("folder for pysolvers_DIR of CMake", str(library / "cmake/pysolvers")),
    }
