#!/usr/bin/env python3
"""List the machine code of the kernels of a build, or compare that of two builds.

    python tools/kernels.py build/objects/_core                     # a table of the functions
    python tools/kernels.py build/old --with build/new              # what differs
    python tools/kernels.py --architecture sm_90 old.so --with new.so

Each side is a list of files or folders. A file with code for the processor (object files and
modules of csrc) is read by objdump, and its kernels are its functions; a file with device code
(cubins, objects and modules of cuda) by cuobjdump. Kernels of the two sides are paired by the
hash of their code, whatever they are called: a change of names, files or macros that leaves the
machine code alone is a comparison without differences. The exit status is 1 if a kernel of one
side has no equal on the other.

A kernel is its instructions, with the names of symbols replaced by numbers in the order of their
first use and addresses by distances from its start, and, for device code, its registers, stack
and shared memory. Constants in memory and jump tables are not compared. The table has for each
kernel the registers, the loads and stores of local memory (spills and local arrays), the bytes of
code and the hash; for the processor the bytes and the hash.

nvcc orders functions that are not inlined by their names, so that a kernel that calls some may
differ in nothing but the places of their code. The PTX shows whether it does: of files that end
with .ptx (nvcc -ptx), kernels and functions are compared one by one, with registers, labels and
names numbered.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

SUFFIXES = {".cubin", ".o", ".so", ".a", ".fatbin", ".ptx"}
FUNCTION = re.compile(r"^\s*Function\s*:?\s+(\S+?):?\s*$")
ARCHITECTURE = re.compile(r"^arch\s*=\s*(sm_\w+)")
SYMBOL = re.compile(r"`\(([^)]*)\)|\b_Z\w+|\$\w[\w$.]*")
SPACE = re.compile(r"\s+")
LOCAL_MEMORY = re.compile(r"\b(?:LDL|STL)\b")
SASS_BYTES = 16  # of an instruction

# What objdump prints: the start of a function, an instruction, a relocation and an address.
HOST_FUNCTION = re.compile(r"^([0-9a-f]+) <(.+)>:$")
HOST_INSTRUCTION = re.compile(r"^\s*[0-9a-f]+:\t(.*)$")
HOST_RELOCATION = re.compile(r"^\s*[0-9a-f]+: (R_\w+)\s+(\S+)")
HOST_ADDRESS = re.compile(r"\b[0-9a-f]+ <([^>]*?)(\+0x[0-9a-f]+)?>")
HOST_SYMBOL = re.compile(r"`[^`]*`")
HOST_PADDING = re.compile(r"^(?:data16 |cs )*nopw?\b|^xchg +%ax,%ax$")
PTX_FUNCTION = re.compile(r"(?m)^(?=(?:\.visible |\.weak |\.extern )?\.(?:func|entry)\b)")
PTX_LINE = re.compile(r"^\s*(?://|\.loc\b|\.file\b)")
PTX_SYMBOL = re.compile(r"%[a-z]+\d+|\$\w+|callseq \d+|\b_{1,2}[A-Za-z]\w+")
PTX_OBJECT = re.compile(
    r"(?m)^\.(?:extern|visible|weak|global|const)[^;{}()]*?(\w+)(?:\[\d*\])?(?: = |;)"
)


def tool(name: str) -> str:
    """Return the path of a program of the CUDA toolkit."""
    found = shutil.which(name) or shutil.which(f"/usr/local/cuda/bin/{name}")
    if not found:
        sys.exit(f"{name} was not found on PATH or in /usr/local/cuda/bin")
    return found


def output(*command: str) -> str:
    """Return what a command prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return done.stdout


def numbered(code: str, symbols: re.Pattern[str] = SYMBOL) -> str:
    """Replace names of symbols by numbers."""
    numbers: dict[str, int] = {}
    return symbols.sub(
        lambda match: f"symbol{numbers.setdefault(match.group(), len(numbers))}", code
    )


@dataclass
class Kernel:
    """A kernel: where it is, its code as text, and what the table shows of it."""

    name: str
    text: str
    size: int
    registers: int | None = None
    local: int | None = None  # loads and stores of local memory

    @property
    def digest(self) -> str:
        """Return the hash of the code."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


def has_device_code(path: Path) -> bool:
    """Return whether a file holds code for a GPU."""
    content = path.read_bytes()
    return (
        path.suffix in {".cubin", ".fatbin"}
        or b".nv_fatbin" in content
        or content[18:20] == b"\xbe\x00"  # e_machine of a cubin
    )


def kernels_of(path: Path, architecture: str | None) -> list[Kernel]:
    """Return the kernels of a file, named "file [architecture]: name"."""
    if path.suffix == ".ptx":
        return ptx_functions_of(path)
    return device_kernels_of(path, architecture) if has_device_code(path) else functions_of(path)


def functions_of(path: Path) -> list[Kernel]:
    """Return the functions of an object file or module for the processor."""
    listing = output("objdump", "-d", "-r", "--no-show-raw-insn", str(path))
    found: list[tuple[str, int, list[str]]] = []
    for line in listing.splitlines():
        if head := HOST_FUNCTION.match(line):
            found.append((head.group(2), int(head.group(1), 16), []))
        elif not found:
            continue
        elif entry := HOST_INSTRUCTION.match(line):
            found[-1][2].append(SPACE.sub(" ", entry.group(1).split(" #")[0].strip()))
        elif (entry := HOST_RELOCATION.match(line)) and found[-1][2]:
            code = found[-1][2][-1]
            found[-1][2][-1] = f"{code} {entry.group(1)} `{entry.group(2)}`"
    sizes = {}
    for line in output("nm", "-S", "--defined-only", str(path)).splitlines():
        parts = line.split()
        if len(parts) == 4:
            sizes[parts[3], int(parts[0], 16)] = int(parts[1], 16)
    return [
        function(path.name, name, sizes.get((name, start), 0), lines)
        for name, start, lines in found
    ]


def function(file: str, name: str, size: int, lines: list[str]) -> Kernel:
    """Return one function of the processor from its instructions."""

    def target(match: re.Match[str]) -> str:
        own = match.group(1) == name
        return f"start{match.group(2) or ''}" if own else f"`{match.group(1)}{match.group(2)}`"

    while lines and HOST_PADDING.match(lines[-1]):
        lines.pop()
    code = "\n".join(HOST_ADDRESS.sub(target, line) for line in lines)
    return Kernel(f"{file}: {name}", numbered(code, HOST_SYMBOL), size)


def device_kernels_of(path: Path, architecture: str | None) -> list[Kernel]:
    """Return the kernels of a file with device code."""
    texts: dict[tuple[str | None, str], list[str]] = defaultdict(list)
    arch = name = None
    for line in output(tool("cuobjdump"), "-sass", str(path)).splitlines():
        if found := ARCHITECTURE.match(line):
            arch = found.group(1)
        elif found := FUNCTION.match(line):
            name = found.group(1)
        elif name and line.lstrip().startswith("/*"):  # an instruction, or its second half
            texts[arch, name].append(SPACE.sub(" ", line.strip()))
    arch = name = None
    for line in output(tool("cuobjdump"), "-res-usage", str(path)).splitlines():
        if found := ARCHITECTURE.match(line):
            arch = found.group(1)
        elif found := re.match(r"^\s*Function\s+(\S+?):\s*$", line):
            name = found.group(1)
        elif name and "REG:" in line:
            texts[arch, name].append(SPACE.sub(" ", line.strip()))
    return [
        device_kernel(f"{path.name}{f' {arch}' if arch else ''}: {name}", lines)
        for (arch, name), lines in texts.items()
        if architecture in (None, arch) or arch is None
    ]


def device_kernel(name: str, lines: list[str]) -> Kernel:
    """Return a kernel from the lines of its instructions and of its use of resources."""
    text = "\n".join(lines)
    registers = re.search(r"\bREG:(\d+)", text)
    return Kernel(
        name,
        numbered(text),
        SASS_BYTES * len(re.findall(r"(?m)^/\*[0-9a-f]{4,5}\*/", text)),
        int(registers.group(1)) if registers else None,
        len(LOCAL_MEMORY.findall(text)),
    )


def ptx_functions_of(path: Path) -> list[Kernel]:
    """Return every kernel and function with a body of a PTX file."""
    text = path.read_text()
    objects = set(PTX_OBJECT.findall(text))
    found = []
    for part in PTX_FUNCTION.split(text)[1:]:
        if not (body := re.match(r"[^;]*?\{.*?^\}", part, re.DOTALL | re.MULTILINE)):
            continue
        lines = [SPACE.sub(" ", line.strip()) for line in body.group().splitlines()]
        code = "\n".join(line for line in lines if line and not PTX_LINE.match(line))
        code = re.sub(
            r"\b\w+\b", lambda m: f"_Z{m.group()}" if m.group() in objects else m.group(), code
        )
        name = re.search(r"\b_Z\w+|\w+(?=\()", code)
        code = numbered(code, PTX_SYMBOL)
        label = f"{path.name}: {name.group() if name else '?'}"
        found.append(Kernel(label, code, len(code)))
    return found


def files_of(paths: list[str]) -> list[Path]:
    """Return the files with machine code in the given files and folders."""
    found: list[Path] = []
    for path in map(Path, paths):
        if not path.exists():
            sys.exit(f"{path} does not exist")
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        found += [file for file in inside if file.suffix in SUFFIXES or not path.is_dir()]
    return found


def read(paths: list[str], architecture: str | None, jobs: int) -> list[Kernel]:
    """Return the kernels of the given files and folders."""
    files = files_of(paths)
    if not files:
        sys.exit(f"no machine code in {', '.join(paths)}")
    with ThreadPoolExecutor(jobs) as pool:
        parts = pool.map(lambda file: kernels_of(file, architecture), files)
    return [kernel for part in parts for kernel in part]


def by_digest(kernels: list[Kernel]) -> dict[str, list[Kernel]]:
    """Return the kernels by the hash of their code."""
    found: dict[str, list[Kernel]] = defaultdict(list)
    for kernel in kernels:
        found[kernel.digest].append(kernel)
    return found


def demangled(names: list[str]) -> dict[str, str]:
    """Return the readable form of names."""
    symbols = [name.split(": ", 1)[-1] for name in names]
    program = shutil.which("cu++filt") or shutil.which("c++filt")
    if not program or not symbols:
        return dict(zip(names, names, strict=True))
    done = subprocess.run(
        [program], input="\n".join(symbols), capture_output=True, text=True, check=True
    )
    readable = done.stdout.splitlines()
    return {
        name: f"{name.split(': ', 1)[0]}: {short(text)}"
        for name, text in zip(names, readable, strict=True)
    }


def short(name: str) -> str:
    """Return a demangled name without its namespaces and parameters."""
    text = re.sub(r"\(anonymous namespace\)::|<unnamed>::|\b[a-z_0-9]+::", "", name)
    return text.split("(")[0] if not text.startswith("(") else text


def table(kernels: list[Kernel]) -> str:
    """Return the table of the kernels as text."""
    readable = demangled([kernel.name for kernel in kernels])
    lines = [f"{'registers':>9} {'local':>6} {'bytes':>8} {'hash':16}  kernel"]
    for kernel in kernels:
        registers, local = ("" if n is None else n for n in (kernel.registers, kernel.local))
        lines.append(
            f"{registers:>9} {local:>6} {kernel.size:>8} {kernel.digest}  {readable[kernel.name]}"
        )
    lines.append(f"{len(kernels)} kernels, {sum(kernel.size for kernel in kernels)} bytes")
    return "\n".join(lines)


def compare(old: list[Kernel], new: list[Kernel], write: str | None = None) -> bool:
    """Print the kernels of each side that have no equal on the other; return if all have one."""
    found = {"old": by_digest(old), "new": by_digest(new)}
    count = {
        side: Counter({digest: len(kernels) for digest, kernels in kernels_by.items()})
        for side, kernels_by in found.items()
    }
    equal = sum((count["old"] & count["new"]).values())
    print(f"{len(old)} kernels and {len(new)} kernels, {equal} with the same code")
    for side, other in (("old", "new"), ("new", "old")):
        unpaired = [
            kernel
            for digest, left in (count[side] - count[other]).items()
            for kernel in found[side][digest][:left]
        ]
        readable = demangled([kernel.name for kernel in unpaired])
        for kernel in sorted(unpaired, key=lambda kernel: readable[kernel.name]):
            lines = kernel.text.count("\n") + 1
            print(f"only {side}: {readable[kernel.name]} ({lines} lines, {kernel.size} bytes)")
            if write:
                folder = Path(write, side)
                folder.mkdir(parents=True, exist_ok=True)
                file = re.sub(r"\W+", "_", readable[kernel.name])[:150] + ".txt"
                (folder / file).write_text(kernel.text + "\n")
    return equal == max(len(old), len(new))


def main() -> None:
    """List the kernels of a build, or compare two builds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", nargs="+", help="files or folders of a build")
    parser.add_argument("--with", dest="new", nargs="+", help="those of the other build")
    parser.add_argument("--architecture", help="of device code this one only, for example sm_90")
    parser.add_argument("--jobs", type=int, default=2, help="files that are read at a time")
    parser.add_argument("--write", metavar="FOLDER", help="write the texts of differing kernels")
    options = parser.parse_args()
    old = read(options.old, options.architecture, options.jobs)
    if options.new is None:
        print(table(old))
        return
    new = read(options.new, options.architecture, options.jobs)
    sys.exit(not compare(old, new, options.write))


if __name__ == "__main__":
    main()
