"""Build the libraries of the kernels with compiler directives, for ``kernels='directive'``.

    python tools/build_directive.py [--output FOLDER] [--host]

compiles ``csrc/directive`` twice, as OpenACC and as OpenMP target code, into the package. The
compiler is gcc, or CC. With a compiler for NVIDIA devices (Debian: package
gcc-12-offload-nvptx) the libraries contain code for the device and for the host, and select the
device where there is one; otherwise, or with ``--host``, they contain code for the host only.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODELS = {"openacc": "-fopenacc", "openmp": "-fopenmp"}
SOURCES = [
    *sorted((ROOT / "csrc" / "directive").glob("*.c")),
    *sorted((ROOT / "csrc" / "core").glob("*.c")),
]
FLAGS = [
    "-O3",
    "-std=c11",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    f"-I{ROOT / 'csrc' / 'include'}",
]
# sm_80 also runs on newer devices: the driver compiles the code for them.
OFFLOAD = ["-foffload=nvptx-none", "-foffload-options=nvptx-none=-misa=sm_80 -lm -latomic"]
HOST = ["-foffload=disable"]

PROBE = """
int main(void) {
    int x = 0;
#pragma omp target map(tofrom: x)
    x = 1;
    return x - 1;
}
"""


def compiler():
    """Return the path of the compiler."""
    name = os.environ.get("CC", "gcc")
    if path := shutil.which(name):
        return path
    raise SystemExit(f"no compiler {name} was found: install gcc, or set CC")


def environment():
    """Return the environment without CUDA's ptxas, which refuses code for old devices."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    kept = [folder for folder in folders if not Path(folder, "ptxas").exists()]
    return {**os.environ, "PATH": os.pathsep.join(kept)}


def offloads(command):
    """Return whether the compiler produces code for a device."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text(PROBE)
        probe = [command, "-fopenmp", *OFFLOAD, source, "-o", Path(folder, "probe")]
        run = subprocess.run(probe, capture_output=True, check=False, env=environment())
        return run.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "pysolvers", metavar="FOLDER")
    parser.add_argument("--host", action="store_true", help="code for the host only")
    options = parser.parse_args()
    command = compiler()
    has_device = not options.host and offloads(command)
    if not has_device and not options.host:
        print(
            f"{command} has no compiler for NVIDIA devices (Debian: gcc-12-offload-nvptx): "
            "the libraries run on the host only",
            file=sys.stderr,
        )
    for model, flag in MODELS.items():
        target = options.output / f"libpysolvers_{model}.so"
        line = [command, *FLAGS, flag, *(OFFLOAD if has_device else HOST), *SOURCES]
        subprocess.run([*line, "-lm", "-o", target], check=True, env=environment())
        print(target)


if __name__ == "__main__":
    main()
