"""Build the C extensions; everything else stands in pyproject.toml.

Environment
-----------
PYSOLVERS_SANITIZE : comma-separated list, for example ``address,undefined``
    Build with these sanitizers, at -O1 and with debugging symbols.
PYSOLVERS_WERROR : 1
    Turn on the warnings that the code keeps clean, and make them errors.
PYSOLVERS_CUDA : auto, 0 or 1
    Whether to build the CUDA backend. Unset and auto build it where nvcc is found; 1 makes
    its absence an error.
PYSOLVERS_CUDA_ARCH : for example ``90``, ``80;90`` or ``native``
    Build for these compute capabilities only, or for the GPU of this machine (90 if there
    is none). Otherwise all of `ARCHITECTURES` that nvcc knows.
NVCC, CUDA_HOME, CUDA_PATH
    Where nvcc is, if not on PATH and not installed by pip.
"""

import os
import re
import shutil
import subprocess
import sys
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

CUDA_FLAGS = [
    "-std=c++17",
    "-O3",
    "-lineinfo",
    "-cudart=static",
    "-Xfatbin=-compress-all",
    "-Xcompiler=-fPIC,-fvisibility=hidden",
]
CUDA_WARNINGS = ["-Werror=all-warnings", "-Xcompiler=-Wall,-Wextra,-Wshadow,-Werror"]

# Compute capabilities that are built for, times ten.
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)

# Last word of the name of a file of csrc/cpu/isa -> its flags, and the macro that tells the
# build of it. No FMA: every instruction set gives the same bits.
INSTRUCTION_SETS = {
    "avx2": (["-mavx2"], "PS_HAVE_AVX2"),
    "avx512": (["-mavx512f", "-mavx512dq", "-mavx512vl"], "PS_HAVE_AVX512"),
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


def instruction_set(source):
    """The instruction set that a file is for, or None."""
    path = Path(source)
    word = path.stem.split("_")[-1]
    return word if path.parent.name == "isa" and word in INSTRUCTION_SETS else None


def headers():
    """All files below csrc that the C files include."""
    return sorted([*glob("csrc/**/*.h"), *glob("csrc/**/*.inc")])


def glob(pattern):
    root = Path(__file__).parent
    return [path.relative_to(root).as_posix() for path in root.glob(pattern)]


def extensions():
    """One extension for each backend, all of the same binding source."""
    wanted = os.environ.get("PYSOLVERS_CUDA", "auto")
    if wanted not in {"auto", "0", "1"}:
        raise SystemExit(f"PYSOLVERS_CUDA must be auto, 0 or 1, not {wanted}")
    found = [extension("_core", sources("core", "cpu", "cpu/isa", "python"), "csrc/cpu")]
    if wanted != "0" and find_nvcc():
        found.append(extension("_cuda", [*sources("core", "python"), *sorted(glob("cuda/*.cu"))]))
        found[-1].depends += sorted([*glob("cuda/*.h"), *glob("cuda/*.cuh")])
    elif wanted == "1":
        raise SystemExit("PYSOLVERS_CUDA=1: no nvcc on PATH, in NVCC, CUDA_HOME or CUDA_PATH")
    elif wanted == "auto":
        print("pysolvers: no nvcc found, so the CUDA backend is not built")
    return found


def extension(name, files, *folders):
    return Extension(
        f"pysolvers.{name}",
        files,
        depends=[*headers(), "setup.py"],
        include_dirs=["csrc/include", "csrc/python", *folders],
        define_macros=[("PS_MODULE_NAME", name)],
    )


def find_nvcc():
    """Path of nvcc, or None."""
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
    """Flags of nvcc for the architectures to build for, the newest as PTX too."""
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
    return [*flags, f"-gencode=arch=compute_{max(chosen)},code=compute_{max(chosen)}"]


def native_architectures():
    """Compute capabilities of the GPUs of this machine, times ten."""
    try:
        listed = output("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
    except (OSError, subprocess.SubprocessError):
        return set()
    return {int(major + minor) for major, minor in re.findall(r"(\d+)\.(\d)", listed)}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def optimisation():
    """Compiler flags, and linker flags, that the environment asks for."""
    if sanitize := os.environ.get("PYSOLVERS_SANITIZE"):
        flag = f"-fsanitize={sanitize}"
        return ["-O1", "-g", "-fno-omit-frame-pointer", flag], [flag]
    return ["-O3"], []


class BuildExtensions(build_ext):
    """Compile each file with the flags that it needs, several at a time."""

    def build_extension(self, ext):
        target = Path(self.get_ext_fullpath(ext.name))
        if not self.force and is_newer(target, [*ext.sources, *ext.depends]):
            return

        flags, link_flags = self.flags()
        own_flags, macros = self.isa_flags()
        left_out = INSTRUCTION_SETS.keys() - own_flags
        used = [source for source in ext.sources if instruction_set(source) not in left_out]
        cuda = Cuda(ext, self.force) if any(source.endswith(".cu") for source in used) else None

        def compile_file(source):
            if source.endswith(".cu"):
                return [cuda.compile(source)]
            return self.compiler.compile(
                [source],
                output_dir=str(Path(self.build_temp, ext.name)),
                macros=[*ext.define_macros, *macros],
                include_dirs=ext.include_dirs,
                debug=self.debug,
                extra_postargs=[*flags, *own_flags.get(instruction_set(source), [])],
                depends=ext.depends,
            )

        # The longest first.
        used.sort(key=lambda source: Path(source).suffix != ".cu")
        with ThreadPoolExecutor(max_workers=min(os.cpu_count() or 2, 16)) as pool:
            objects = list(chain.from_iterable(pool.map(compile_file, used)))
        if cuda:
            cuda.link(objects, target, link_flags)
            return
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
        """Flags of the instruction sets that can be built for here, and their macros."""
        known = {
            name: (flags, macro)
            for name, (flags, macro) in INSTRUCTION_SETS.items()
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


class Cuda:
    """Compile the files for nvcc, those that changed, and link them with the C files."""

    def __init__(self, ext, force):
        self.nvcc = find_nvcc()
        self.force = force
        self.flags = [*CUDA_FLAGS, *cuda_targets(self.nvcc), "-Icuda"]
        self.flags += [f"-I{folder}" for folder in ext.include_dirs]
        if os.environ.get("PYSOLVERS_WERROR") == "1":
            self.flags += CUDA_WARNINGS
        # Not in build_temp, which pip makes anew for each build.
        self.folder = Path("build", "cuda")
        self.folder.mkdir(parents=True, exist_ok=True)

    def compile(self, source):
        """Return the object file of `source`, made by this very command or made now."""
        target = self.folder / f"{Path(source).stem}.o"
        made_by, depends = target.with_suffix(".command"), target.with_suffix(".d")
        command = [self.nvcc, *self.flags, "-MMD", "-MF", str(depends), "-c", source]
        command += ["-o", str(target)]
        line = " ".join(command)
        if not self.force and target.exists() and depends.exists() and made_by.exists():
            inputs = depends.read_text().replace("\\\n", " ").split()[1:]
            if made_by.read_text() == line and is_newer(target, inputs):
                return str(target)
        print(line, flush=True)
        made_by.unlink(missing_ok=True)
        run(command)
        made_by.write_text(line)
        return str(target)

    def link(self, objects, target, link_flags):
        """Link with the CUDA runtime in the file; the driver is found when it is needed."""
        target.parent.mkdir(parents=True, exist_ok=True)
        home = Path(self.nvcc).resolve().parents[1]
        places = [f"-L{folder}" for folder in home.glob("lib*") if folder.is_dir()]
        host = [f"-Xcompiler={part}" for flag in link_flags for part in sanitizers(flag)]
        command = [self.nvcc, "-shared", "-cudart=static", *places, *host, *objects]
        run([*command, "-Xlinker=--exclude-libs=ALL", "-o", str(target)])


def sanitizers(flag):
    """Split -fsanitize=a,b, since nvcc would take the comma for its own; drop other flags."""
    name, _, values = flag.partition("=")
    return [f"{name}={value}" for value in values.split(",") if name == "-fsanitize"]


def run(command):
    """Run a compiler; if it fails, stop with what it said."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.stdout:
        print(done.stdout, flush=True)
    if done.returncode:
        raise CompileError(f"{' '.join(command)} failed")


def is_newer(target, inputs):
    """Whether `target` and all inputs exist and no input is younger."""
    if not all(map(os.path.exists, [target, *inputs])):
        return False
    return all(Path(path).stat().st_mtime <= target.stat().st_mtime for path in inputs)


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExtensions})
