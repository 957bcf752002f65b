"""Build the C extensions; everything else stands in pyproject.toml.

Environment
-----------
PYSOLVERS_SANITIZE : comma-separated list, for example ``address,undefined``
    Build with these sanitizers, at -O1 and with debugging symbols.
PYSOLVERS_WERROR : 1
    Turn on the warnings that the code keeps clean, and make them errors.
PYSOLVERS_CUDA : auto, 0 or 1
    Whether to build the CUDA backend; 1 makes its absence an error.
"""

import os
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

COMMON_FLAGS = [
    "-std=c11",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fvisibility=hidden",
]
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror"]

# File of csrc/cpu/isa -> its flags, and the macro that tells the build of it. No
# FMA: every instruction set gives the same bits.
ISA_FILES = {
    "avx2.c": (["-mavx2"], "PS_HAVE_AVX2"),
    "avx512.c": (["-mavx512f", "-mavx512dq", "-mavx512vl"], "PS_HAVE_AVX512"),
}

ISA_PROBE = """
#if !defined(__x86_64__)
#error "not x86-64"
#endif
int main(void) { return 0; }
"""
OPENMP_PROBE = """
#include <omp.h>
int main(void) { return omp_get_max_threads() < 1; }
"""


def sources(*folders):
    """All C files of the folders below csrc."""
    return sorted(chain.from_iterable(glob(f"csrc/{folder}/*.c") for folder in folders))


def headers():
    """All files below csrc that the C files include."""
    return sorted([*glob("csrc/**/*.h"), *glob("csrc/**/*.inc")])


def glob(pattern):
    root = Path(__file__).parent
    return [path.relative_to(root).as_posix() for path in root.glob(pattern)]


def extensions():
    """One extension for each backend, all of the same binding source."""
    if os.environ.get("PYSOLVERS_CUDA", "auto") not in {"auto", "0"}:
        raise SystemExit("PYSOLVERS_CUDA must be auto or 0: this version has no CUDA backend")
    return [
        Extension(
            "pysolvers._core",
            sources("core", "cpu", "cpu/isa", "python"),
            depends=[*headers(), "setup.py"],
            include_dirs=["csrc/include", "csrc/cpu", "csrc/python"],
            define_macros=[("PS_MODULE_NAME", "_core")],
        )
    ]


def optimisation():
    """Compiler flags, and linker flags, that the environment asks for."""
    if sanitize := os.environ.get("PYSOLVERS_SANITIZE"):
        flag = f"-fsanitize={sanitize}"
        return ["-O1", "-g", "-fno-omit-frame-pointer", flag], [flag]
    return ["-O3"], []


class BuildExtensions(build_ext):
    """Compile each file with the flags that it needs, two at a time."""

    def build_extension(self, ext):
        target = Path(self.get_ext_fullpath(ext.name))
        if not self.force and is_newer(target, [*ext.sources, *ext.depends]):
            return

        flags, link_flags = self.flags()
        own_flags, macros = self.isa_flags()
        left_out = {name for name in ISA_FILES if name not in own_flags}
        used = [source for source in ext.sources if Path(source).name not in left_out]

        def compile_file(source):
            return self.compiler.compile(
                [source],
                output_dir=self.build_temp,
                macros=[*ext.define_macros, *macros],
                include_dirs=ext.include_dirs,
                debug=self.debug,
                extra_postargs=[*flags, *own_flags.get(Path(source).name, [])],
                depends=ext.depends,
            )

        with ThreadPoolExecutor(max_workers=2) as pool:
            objects = list(chain.from_iterable(pool.map(compile_file, used)))
        self.compiler.link_shared_object(
            objects,
            str(target),
            libraries=self.get_libraries(ext),
            library_dirs=ext.library_dirs,
            extra_postargs=link_flags,
            export_symbols=self.get_export_symbols(ext),
            debug=self.debug,
            build_temp=self.build_temp,
            target_lang="c",
        )

    def flags(self):
        """Flags of every file, and of the linker."""
        optimise, link = optimisation()
        foreign = [numpy.get_include(), *map(sysconfig.get_path, ("include", "platinclude"))]
        flags = [*optimise, *COMMON_FLAGS, *(f"-isystem{path}" for path in foreign)]
        if os.environ.get("PYSOLVERS_WERROR") == "1":
            flags += WARNINGS
        if self.accepts(OPENMP_PROBE, ["-fopenmp"], link=True):
            flags.append("-fopenmp")
            link = [*link, "-fopenmp"]
        return flags, link

    def isa_flags(self):
        """Flags of the instruction-set files that can be built here, and their macros."""
        known = {
            name: (flags, macro)
            for name, (flags, macro) in ISA_FILES.items()
            if self.accepts(ISA_PROBE, flags)
        }
        own_flags = {name: flags for name, (flags, _) in known.items()}
        return own_flags, [(macro, "1") for _, macro in known.values()]

    def accepts(self, code, flags, *, link=False):
        """Whether the compiler takes `code` with `flags`."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "probe.c")
            source.write_text(code)
            try:
                objects = self.compiler.compile(
                    [str(source)], output_dir=folder, extra_postargs=flags
                )
                if link:
                    self.compiler.link_executable(
                        objects, "probe", output_dir=folder, extra_postargs=flags
                    )
            except (CompileError, LinkError):
                return False
        return True


def is_newer(target, inputs):
    """Whether `target` exists and no input is younger."""
    if not target.exists():
        return False
    return all(Path(path).stat().st_mtime <= target.stat().st_mtime for path in inputs)


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExtensions})
