"""Build the C extensions; all other settings are in pyproject.toml.

Each instruction set and dtype is one translation unit; the units are compiled in parallel.
A file of CUDA whose kernels are templates over the dtype is several units (DTYPES below).
Object files are kept in build/objects, each with its compiler command and the list of its
included files. An object file is compiled again only if one of these changes.

Environment
-----------
PYSOLVERS_SANITIZE : comma-separated list, for example ``address,undefined``
    Build with these sanitizers, at -O1 and with debugging symbols.
PYSOLVERS_WERROR : 1
    Enable compiler warnings and treat them as errors.
PYSOLVERS_CUDA : auto, 0 or 1
    Whether to build the CUDA backend. auto, the default, builds it if nvcc is found and a GPU
    is visible; 1 builds it also without a GPU, and stops with an error if nvcc is missing.
PYSOLVERS_OPTIMIZE : for example ``-O1``
    Optimisation flag of the C files instead of -O2; for development.
PYSOLVERS_DISTRIBUTION : cuda
    Build the wheel of the second distribution instead, which contains the CUDA backend only. Its
    name is CUDA_DISTRIBUTION in pysolvers/_runtime/backends.py, its version that of pysolvers.
PYSOLVERS_CUDA_ARCH : for example ``90``, ``80;90`` or ``native``
    Compile for these compute capabilities only; native means the GPUs of this machine (90 if
    there is none). The default is all of `ARCHITECTURES` that nvcc supports.
PYSOLVERS_CUDA_LINEINFO : 1
    Include line numbers for profilers, which double the size of the module.
NVCC, CUDA_HOME, CUDA_PATH
    Location of nvcc, if it is neither on PATH nor installed by pip.
"""

import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import numpy
import setuptools
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

TOOL = runpy.run_path(str(Path(__file__).parent / "tools" / "object_files.py"))
is_current, is_newer = TOOL["is_current"], TOOL["is_newer"]

COMMON_FLAGS = [
    "-std=c11",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fvisibility=hidden",
]
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror"]

CUDA_FLAGS = [
    "-std=c++17",
    "-O3",
    "-cudart=static",
    "-Xfatbin=-compress-all",
    "-Xcompiler=-fPIC,-fvisibility=hidden",
]
# The second distribution is compressed as much as possible, which every driver for CUDA 13 can
# read, and which takes as long as the compilation.
SMALLEST_CUDA_FLAGS = [*CUDA_FLAGS, "-compress-mode=size"]
CUDA_WARNINGS = ["-Werror=all-warnings", "-Xcompiler=-Wall,-Wextra,-Wshadow,-Werror"]

# Compute capabilities of the default build, times ten. A binary also runs on higher minor versions:
# 86 on 87 and 89, for which nvcc generates the same instructions; 100 on 103; 120 on 121.
ARCHITECTURES = (75, 80, 86, 90, 100, 120)
# Also compiled to PTX, for newer ones that have no binary, of which 110 is the first.
PTX_ARCHITECTURE = 100

# Last word of the name of a file in csrc/cpu/isa -> its compiler flags, and the macro that is
# defined if the instruction set is compiled. No FMA: every instruction set gives the same bits.
INSTRUCTION_SETS = {
    "avx2": (["-mavx2"], "PS_HAVE_AVX2"),
    "avx512": (["-mavx512f", "-mavx512dq", "-mavx512vl"], "PS_HAVE_AVX512"),
}
# Further flags, if the compiler accepts them. For AVX2 GCC copies structures 16 bytes at a time,
# and a load of a vector of 32 bytes waits for both halves of it. With these flags, which GCC has
# from 12 on, complex solves take 0.62 to 0.79 of the time, blocks of 3 and 4 0.85 and 0.66, real
# numbers, which are single vectors, 0.97 to 1.02.
FURTHER_FLAGS = {"avx2": ["-mmove-max=256", "-mstore-max=256"]}

# Last word of the name of a file in cuda -> the dtypes for each of which it is a translation unit
# of its own, with PS_DTYPE defined as the dtype. The two sums are matrices in row-sum form.
DTYPES = {
    "reals": ("f32", "f64"),
    "dtypes": ("f32", "f64", "c64", "c128"),
    "forms": ("f32", "f64", "c64", "c128", "sums_f32", "sums_f64"),
}

# Arrays of vectors stay in registers only if the short loops over them are unrolled completely.
# GCC does this at -O3, at -O2 with -fpeel-loops, which takes 40 % of the compile time of -O3 and
# gives two thirds of its code size, and where a pragma asks for it. Clang does it at -O2 and does
# not accept the flag. (-fno-gcse saves 5 % more, but factors with row exchanges are up to 20 %
# slower with it. At -O1 line kernels take 0.53 of the CPU seconds, but plain solves along axis 0
# 1.35 to 1.5 of the time.)
UNROLL = "-fpeel-loops"
# These units have the pragma at all loops that count, and are compiled without the flag: 0.93 of
# the CPU seconds in float64, 0.86 to 1.0 of the code. Complex numbers would gain 0.95 and 0.9, and
# lose speed: plain solves take 1.04 to 1.12 of the time.
HAS_PRAGMAS = re.compile(r"csrc/cpu/isa/f(32|64)_(baseline|avx2|avx512)\.c")

# Where AVX2 is compiled too, only processors of before 2013 use these units, whose instruction set
# is the least: all but the line kernels, which serve few long systems on any processor
# (ps_isa_for). They are compiled for size: 0.57 MB instead of 0.90 and 27 instead of 34 CPU s.
# They take 1.4 to 1.8 of the time for blocks, 1.3 to 1.4 for HeatADI and steps of the cylinder, 2.0
# for the cavity, 1.05 for GCEIDD, 1.0 for relaxation. The line kernels would lose 0.42 MB, and
# few long systems would take 1.0 to 3.1 of the time (with the functions of vector.h inlined by
# force 1.0 to 1.2 with real matrices, 1.0 to 1.45 with kept factors, complex ones 1.0 to 3.2).
RARELY_USED = re.compile(r"csrc/cpu/isa/(?!(f32|f64|c64|c128)_)\w+_baseline\.c")
SMALL = "-Os"

# In these units, all but those of blocks of 2 rows, functions are inlined only where that makes the
# code smaller (isa/simd.h): 0.3 MB less. Recurrences and HeatADI take 1.2 of the time, flows 1.3,
# relaxation 1.4, GCEIDD and blocks of 4 2.0; blocks of 3, for 0.03 MB, 3.5 to 4.4, and 4.8 to 6.1
# with kept factors. Blocks of 2, and so five diagonals, would take 3 to 4 and 8, for 0.04 MB.
NOT_INLINED = re.compile(r"(?!.*/blocks_f\d+_2_)" + RARELY_USED.pattern)
FEW_COPIES = "-DPS_SMALL"

# The line kernels of that instruction set are then compiled with this macro: few long systems, a
# tile at most, are as fast as without it; any others take no teams of tiles, and the kernels of
# reductions, chunks, spans and pieces are for size: 0.36 MB less.
FEW_LINES = "-DPS_FEW_LINES"
LINES_OF_BASELINE = re.compile(r"csrc/cpu/isa/(f32|f64|c64|c128)_baseline\.c")

# The binding of the CPU module is compiled for size: 20 KB less, and calls with 3 to 100 rows take
# 1.02 of the time.
BINDING = re.compile(r"csrc/python/\w+\.c")

# Without it, the position of a kernel in the module, which depends on all files before it, changes
# its speed by up to 14 % (HeatADI).
ALIGN = "-falign-functions=64"
# No C file unwinds the stack; the tables for that would be 2 % of the module.
NO_TABLES = "-fno-asynchronous-unwind-tables"
# Kernels get plain structs that the core has checked, and keep arrays of vectors on the stack. The
# CFLAGS of Debian's Python, and GCC by itself on other systems, guard the stack of each function
# that has an array: 2 % of the module. The binding, which handles foreign objects, keeps them.
NO_GUARDS = "-fno-stack-protector"

# The library for programs without Python. Its object files are those of the module.
LIBRARY = "pysolvers.lib.libpysolvers"
LIBRARY_SUFFIX = ".dylib" if sys.platform == "darwin" else ".so"
# Leave out what the public functions do not reach: the solvers.
if sys.platform == "darwin":
    LIBRARY_FLAGS = ["-dynamiclib", "-Wl,-dead_strip", "-install_name", "@rpath/libpysolvers.dylib"]
else:
    LIBRARY_FLAGS = ["-Wl,--gc-sections", "-Wl,-soname,libpysolvers.so", "-lm"]

ISA_PROBE = """
#if !defined(__x86_64__)
#error "not x86-64"
#endif
int main(void) { return 0; }
"""
ANY = "int main(void) { return 0; }"


def sources(*folders):
    """Return all C files of the folders below csrc."""
    return sorted(chain.from_iterable(glob(f"csrc/{folder}/**/*.c") for folder in folders))


def instruction_set(source):
    """Return the instruction set of a file, or None."""
    path = Path(source)
    word = path.stem.split("_")[-1]
    return word if path.parent.name == "isa" and word in INSTRUCTION_SETS else None


def dtypes(source):
    """Return the dtypes for each of which a file is compiled, or (None,)."""
    path = Path(source)
    return DTYPES.get(path.stem.split("_")[-1], (None,)) if path.suffix == ".cu" else (None,)


def units(sources):
    """Return the translation units of files: pairs of a file and its dtype or None."""
    return [(source, dtype) for source in sources for dtype in dtypes(source)]


def headers():
    """Return all files below csrc that the C files include."""
    return sorted([*glob("csrc/**/*.h"), *glob("csrc/**/*.inc")])


def glob(pattern):
    root = Path(__file__).parent
    return [path.relative_to(root).as_posix() for path in root.glob(pattern)]


def extensions():
    """Return one extension per backend; all use the same binding source."""
    if CudaDistribution.is_wanted():
        CudaDistribution.check_nvcc()
        return [cuda_extension(CudaDistribution.package())]
    wanted = os.environ.get("PYSOLVERS_CUDA", "auto")
    if wanted not in {"auto", "0", "1"}:
        raise SystemExit(f"PYSOLVERS_CUDA must be auto, 0 or 1, not {wanted}")
    if wanted == "1" and not find_nvcc():
        raise SystemExit("PYSOLVERS_CUDA=1: no nvcc on PATH, in NVCC, CUDA_HOME or CUDA_PATH")
    found = [extension("pysolvers._core", sources("core", "cpu", "python"), "csrc/cpu")]
    found.append(extension(LIBRARY, sources("core", "cpu"), "csrc/cpu"))
    if wanted == "1" or (wanted == "auto" and find_nvcc() and native_architectures()):
        found.append(cuda_extension("pysolvers"))
    elif wanted == "auto":
        reason = "no GPU is visible" if find_nvcc() else "no nvcc was found"
        print(f"pysolvers: {reason}, so the CUDA backend is not built (PYSOLVERS_CUDA=1 builds it)")
    return found


def cuda_extension(package):
    """Return the extension for CUDA as a module of `package`."""
    files = [*sources("core", "python"), *sorted(glob("cuda/**/*.cu"))]
    found = extension(f"{package}._cuda", files)
    found.depends += sorted([*glob("cuda/**/*.h"), *glob("cuda/**/*.cuh")])
    return found


def module_of(name):
    """Return the module whose object files an extension has; those of the library are of _core."""
    return "_core" if name == LIBRARY else name.split(".")[-1]


def extension(name, files, *folders):
    return Extension(
        name,
        files,
        depends=[*headers(), "setup.py"],
        include_dirs=["csrc/include", "csrc/python", *folders],
        define_macros=[
            ("PS_MODULE_NAME", module_of(name)),
            ("PS_ABI_VERSION", abi_version()),
        ],
    )


def abi_version():
    """Return the version number of the contract between the package and its extensions."""
    return constant_of_backends("ABI_VERSION")


def constant_of_backends(name):
    """Return the text of a number or of a string that pysolvers/_runtime/backends.py defines."""
    text = Path(__file__).with_name("pysolvers").joinpath("_runtime", "backends.py").read_text()
    return re.search(rf'^{name} = "?([\w-]+)"?$', text, re.MULTILINE)[1]


def find_nvcc():
    """Return the path of nvcc, or None."""
    if nvcc := os.environ.get("NVCC"):
        return shutil.which(nvcc)
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    packages = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path}
    installed = [Path(p).glob("nvidia/*/bin/nvcc") for p in sorted(packages) if p]
    places = [Path(home, "bin", "nvcc") for home in [*homes, "/usr/local/cuda"]]
    places[len(homes) : len(homes)] = chain.from_iterable(installed)
    on_path = shutil.which("nvcc")
    return on_path or next((str(p) for p in places if os.access(p, os.X_OK)), None)


def cuda_targets(nvcc):
    """Return the nvcc flags of the selected architectures, one of which is also compiled to PTX.

    A build for the GPUs of this machine has no PTX, which is a third of the module.
    """
    offered = {int(number) for number in re.findall(r"sm_(\d+)\b", output(nvcc, "--list-gpu-code"))}
    asked = os.environ.get("PYSOLVERS_CUDA_ARCH", "")
    if asked == "native":
        chosen = native_architectures() & offered or {90} & offered
    elif asked:
        chosen = {int(number) for number in asked.split(";")}
    else:
        chosen = offered.intersection(ARCHITECTURES)
    if not chosen or not chosen <= offered:
        raise SystemExit(f"PYSOLVERS_CUDA_ARCH={asked}: {nvcc} offers {sorted(offered)}")
    flags = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in sorted(chosen)]
    if asked == "native" and chosen == native_architectures():
        return flags
    ptx = PTX_ARCHITECTURE if PTX_ARCHITECTURE in chosen else max(chosen)
    return [*flags, f"-gencode=arch=compute_{ptx},code=compute_{ptx}"]


def native_architectures():
    """Return the compute capabilities of the GPUs of this machine, times ten."""
    try:
        listed = output("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
    except (OSError, subprocess.SubprocessError):
        return set()
    return {int(major + minor) for major, minor in re.findall(r"(\d+)\.(\d)", listed)}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def optimisation():
    """Return the compiler and linker flags that the environment variables select."""
    if sanitize := os.environ.get("PYSOLVERS_SANITIZE"):
        flag = f"-fsanitize={sanitize}"
        return ["-O1", "-g", "-fno-omit-frame-pointer", flag], [flag]
    optimise = os.environ.get("PYSOLVERS_OPTIMIZE")
    strip = ["-Wl,-s"] if optimise is None and sys.platform != "darwin" else []
    return [optimise or "-O2", "-g0"], strip


class CudaDistribution(setuptools.Distribution):
    """The distribution that contains the CUDA backend only.

    Its metadata are those of pyproject.toml except the name, the texts, the files and the
    requirements.
    """

    @staticmethod
    def is_wanted():
        """Return whether PYSOLVERS_DISTRIBUTION asks for this distribution."""
        wanted = os.environ.get("PYSOLVERS_DISTRIBUTION", "")
        if wanted not in {"", "cuda"}:
            raise SystemExit(f"PYSOLVERS_DISTRIBUTION must be cuda or not set, not {wanted}")
        return wanted == "cuda"

    @staticmethod
    def package():
        """Return the name of the Python package."""
        return constant_of_backends("CUDA_DISTRIBUTION").replace("-", "_")

    @classmethod
    def check_nvcc(cls):
        """Stop if nvcc is missing or not of the CUDA version that the name states."""
        nvcc = find_nvcc()
        if not nvcc:
            raise SystemExit(
                "PYSOLVERS_DISTRIBUTION=cuda: no nvcc on PATH, in NVCC, CUDA_HOME or CUDA_PATH"
            )
        major = re.search(r"release (\d+)", output(nvcc, "--version"))[1]
        if not cls.package().endswith(f"_cuda{major}"):
            raise SystemExit(
                f"PYSOLVERS_DISTRIBUTION=cuda: {cls.package()} is built with the nvcc of this "
                f"CUDA version, and {nvcc} is of CUDA {major}"
            )

    def parse_config_files(self, *args, **options):
        super().parse_config_files(*args, **options)
        text = Path("packaging", "cuda", "README.md").read_text()
        self.metadata.name = constant_of_backends("CUDA_DISTRIBUTION")
        self.metadata.description = "The compiled CUDA backend of pysolvers"
        self.metadata.long_description = text
        self.metadata.long_description_content_type = "text/markdown"
        own = self.metadata.classifiers
        self.metadata.classifiers = [text for text in own if "MacOS" not in text]
        self.packages = [self.package()]
        self.package_dir = {self.package(): "packaging/cuda"}
        self.package_data, self.entry_points = {}, {}
        # Assigned to both, because the base class has copied the requirements to the metadata.
        self.install_requires = [f"pysolvers == {self.metadata.version}"]
        self.metadata.install_requires = self.install_requires
        self.extras_require, self.metadata.extras_require = {}, {}
        self.metadata.provides_extras.clear()


class BuildExtensions(build_ext):
    """Compile each file with the flags that it needs, several at a time."""

    def get_ext_filename(self, name):
        """Return the path of a module, or of the library, whose name no Python is part of."""
        *folders, last = name.split(".")
        if last == LIBRARY.split(".")[-1]:
            return os.path.join(*folders, last + LIBRARY_SUFFIX)
        return super().get_ext_filename(name)

    def build_extension(self, ext):
        target = Path(self.get_ext_fullpath(ext.name))
        own_flags, macros = self.isa_flags()
        left_out = INSTRUCTION_SETS.keys() - own_flags
        used = [source for source in ext.sources if instruction_set(source) not in left_out]
        flags, link_flags = self.flags([*ext.define_macros, *macros], ext.include_dirs)
        is_library = ext.name == LIBRARY
        is_optimised = optimisation()[0][0] == "-O2"
        cache = ObjectCache(module_of(ext.name), self.force)
        cuda = Cuda(ext) if any(source.endswith(".cu") for source in used) else None

        def compile_unit(unit):
            source, dtype = unit
            if source.endswith(".cu"):
                macro = [f"-DPS_DTYPE={dtype}"] if dtype else []
                return cache.make(unit, [*cuda.command, *macro, "-c", source])
            own = [flag for flag in flags if flag != UNROLL or not HAS_PRAGMAS.fullmatch(source)]
            own += own_flags.get(instruction_set(source), [])
            if is_optimised and "avx2" in own_flags and RARELY_USED.fullmatch(source):
                own.append(SMALL)
            if is_optimised and cuda is None and BINDING.fullmatch(source):
                own.append(SMALL)
            if is_optimised and "avx2" in own_flags and NOT_INLINED.fullmatch(source):
                own.append(FEW_COPIES)
            if is_optimised and "avx2" in own_flags and LINES_OF_BASELINE.fullmatch(source):
                own.append(FEW_LINES)
            own += [ALIGN, NO_GUARDS] if Path(source).parent.name == "isa" else []
            foreign = self.foreign() if Path(source).parent.name == "python" else []
            command = [*self.compiler.compiler_so, *own, "-c", source]
            return cache.make(unit, command, foreign)

        with ThreadPoolExecutor(max_workers=min(os.cpu_count() or 2, 16)) as pool:
            objects = list(pool.map(compile_unit, cache.longest_first(units(used))))
        if not self.force and is_newer(target, objects):
            return
        if cuda:
            cuda.link(objects, target, link_flags)
            return
        if is_library:
            target.parent.mkdir(parents=True, exist_ok=True)
            link_flags += LIBRARY_FLAGS
        self.compiler.link_shared_object(
            sorted(objects),
            str(target),
            libraries=self.get_libraries(ext),
            library_dirs=ext.library_dirs,
            extra_postargs=link_flags,
            export_symbols=self.get_export_symbols(ext),
            debug=self.debug,
            build_temp=self.build_temp,
            target_lang="c",
        )

    def foreign(self):
        """Return the include flags for the headers of Python, NumPy and XLA."""
        folders = [numpy.get_include(), *map(sysconfig.get_path, ("include", "platinclude"))]
        folders.append("csrc/third_party/xla")
        return [f"-isystem{path}" for path in folders]

    def flags(self, macros, folders):
        """Return the flags of all C files, and the flags of the linker."""
        optimise, link = optimisation()
        flags = [*optimise, *COMMON_FLAGS, *(f"-I{folder}" for folder in folders)]
        flags += [NO_TABLES, *(f"-D{name}={value}" for name, value in macros)]
        if os.environ.get("PYSOLVERS_WERROR") == "1":
            flags += WARNINGS
        if not os.environ.get("PYSOLVERS_SANITIZE") and self.accepts(ANY, ["-Werror", UNROLL]):
            flags.append(UNROLL)
        return [*flags, "-pthread"], [*link, "-pthread"]

    def isa_flags(self):
        """Return the flags and the macros of the instruction sets that the compiler supports."""
        known = {
            name: (flags, macro)
            for name, (flags, macro) in INSTRUCTION_SETS.items()
            if self.accepts(ISA_PROBE, flags)
        }
        own_flags = {name: list(flags) for name, (flags, _) in known.items()}
        for name in FURTHER_FLAGS.keys() & own_flags:
            if self.accepts(ISA_PROBE, [*own_flags[name], *FURTHER_FLAGS[name]]):
                own_flags[name] += FURTHER_FLAGS[name]
        return own_flags, [(macro, "1") for _, macro in known.values()]

    def accepts(self, code, flags):
        """Return whether the compiler accepts `code` with `flags`."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "probe.c")
            source.write_text(code)
            try:
                self.compiler.compile([str(source)], output_dir=folder, extra_postargs=flags)
            except CompileError:
                return False
        return True


class ObjectCache:
    """Object files in build/objects, compiled again only if their command or inputs change."""

    def __init__(self, name, force):
        # Not in build_temp: pip creates a new build_temp for each build.
        self.folder = Path("build", "objects", name)
        self.force = force

    def target(self, unit):
        source, dtype = unit
        return self.folder / Path(source).with_suffix(f".{dtype}.o" if dtype else ".o")

    def longest_first(self, units):
        """Sort the units by the CPU time that their last compilation took, unknown ones first."""

        def order(unit):
            record = self.target(unit).with_suffix(".seconds")
            seconds = float(record.read_text()) if record.exists() else float("inf")
            return -seconds, str(self.target(unit))

        return sorted(units, key=order)

    def make(self, unit, command, foreign=()):
        """Return the object file of `unit`; compile it with `command` if it is out of date.

        `foreign` are include flags for headers outside this project. The folder names can differ
        from build to build, so the recorded command contains the versions of Python and NumPy
        instead of these flags.
        """
        target = self.target(unit)
        target.parent.mkdir(parents=True, exist_ok=True)
        made_by, depends = target.with_suffix(".command"), target.with_suffix(".d")
        line = " ".join(map(str, command))
        line += f" # Python {sys.version} NumPy {numpy.__version__}" if foreign else ""
        unchanged = made_by.exists() and made_by.read_text() == line
        if unchanged and not self.force and is_current(target, Path()):
            return str(target)
        print(line, flush=True)
        made_by.unlink(missing_ok=True)
        seconds = run([*command, *foreign, "-MMD", "-MF", str(depends), "-o", str(target)])
        target.with_suffix(".seconds").write_text(f"{seconds:.2f}\n")
        made_by.write_text(line)
        return str(target)


class Cuda:
    """The nvcc commands that compile a file and link the module."""

    def __init__(self, ext):
        self.nvcc = find_nvcc()
        flags = SMALLEST_CUDA_FLAGS if CudaDistribution.is_wanted() else CUDA_FLAGS
        self.command = [self.nvcc, *flags, *cuda_targets(self.nvcc), "-Icuda"]
        if os.environ.get("PYSOLVERS_CUDA_LINEINFO") == "1":
            self.command.append("-lineinfo")
        self.command += [f"-I{folder}" for folder in ext.include_dirs]
        if os.environ.get("PYSOLVERS_WERROR") == "1":
            self.command += CUDA_WARNINGS

    def link(self, objects, target, link_flags):
        """Link the CUDA runtime statically; the driver is loaded at run time."""
        target.parent.mkdir(parents=True, exist_ok=True)
        home = Path(self.nvcc).resolve().parents[1]
        places = [f"-L{folder}" for folder in home.glob("lib*") if folder.is_dir()]
        host = [f"-Xcompiler={part}" for flag in link_flags for part in sanitizers(flag)]
        command = [self.nvcc, "-shared", "-cudart=static", *places, *host, *objects]
        run([*command, "-Xlinker=--exclude-libs=ALL", "-o", str(target)])


def sanitizers(flag):
    """Split -fsanitize=a,b, because nvcc splits its arguments at commas; drop other flags."""
    name, _, values = flag.partition("=")
    return [f"{name}={value}" for value in values.split(",") if name == "-fsanitize"]


def run(command):
    """Run a compiler and return its CPU seconds; if it fails, print its messages and stop."""
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    except FileNotFoundError:
        raise CompileError(
            f"the compiler {command[0]} was not found: install a C compiler or set CC"
        ) from None
    with process:
        messages = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if messages:
        print(messages, flush=True)
    if process.returncode:
        raise CompileError(f"{' '.join(command)} failed")
    return usage.ru_utime + usage.ru_stime


if int(setuptools.__version__.partition(".")[0]) < 77:  # earlier ones do not know project.license
    raise SystemExit(
        f"pysolvers needs setuptools 77 or newer to build, this is {setuptools.__version__}: "
        "pip install 'setuptools>=77', or build without --no-build-isolation"
    )
options = {"ext_modules": extensions(), "cmdclass": {"build_ext": BuildExtensions}}
if CudaDistribution.is_wanted():
    options["distclass"] = CudaDistribution
    # A wheel contains the whole folder of its build; the one of pysolvers is built in another.
    options["options"] = {"build": {"build_base": "build/cuda-distribution"}}
setup(**options)
