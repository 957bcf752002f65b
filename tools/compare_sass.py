#!/usr/bin/env python3
"""Compare the machine code of the CUDA kernels of two builds, whatever the kernels are called.

Each side is a list of files or folders with cubins, objects or shared libraries, separated by
the option --with:

    python tools/compare_sass.py build/old --with build/new
    python tools/compare_sass.py --architecture sm_90 old.so --with new.so

A kernel is its instructions as cuobjdump prints them, with the names of symbols replaced by
numbers in the order of their first use, and its registers, stack and shared memory. Kernels of
the two sides are paired by the hash of that text. The exit status is 1 if a kernel of one side
has no equal on the other. Constant memory is not compared.

The compiler orders functions that are not inlined by their names, so that a kernel that calls
some may differ in nothing but the places of their code. The PTX shows whether it does: of files
that end with .ptx (nvcc -ptx), kernels and functions are compared one by one, with registers,
labels and names numbered.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SUFFIXES = {".cubin", ".o", ".so", ".a", ".fatbin", ".ptx"}
FUNCTION = re.compile(r"^\s*Function\s*:?\s+(\S+?):?\s*$")
ARCHITECTURE = re.compile(r"^arch\s*=\s*(sm_\w+)")
SYMBOL = re.compile(r"`\(([^)]*)\)|\b_Z\w+|\$\w[\w$.]*")
SPACE = re.compile(r"\s+")
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


def kernels_of(path: Path, architecture: str | None) -> list[tuple[str, str]]:
    """Return "file [architecture]: name" and the text of every kernel of a file."""
    if path.suffix == ".ptx":
        return ptx_functions_of(path)
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
        (f"{path.name}{f' {arch}' if arch else ''}: {name}", numbered("\n".join(lines)))
        for (arch, name), lines in texts.items()
        if architecture in (None, arch) or arch is None
    ]


def ptx_functions_of(path: Path) -> list[tuple[str, str]]:
    """Return the name and the text of every kernel and function with a body of a PTX file."""
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
        found.append((f"{path.name}: {name.group() if name else '?'}", code))
    return found


def files_of(paths: list[str]) -> list[Path]:
    """Return the files with device code in the given files and folders."""
    found: list[Path] = []
    for path in map(Path, paths):
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        found += [file for file in inside if file.suffix in SUFFIXES or not path.is_dir()]
    return found


def read(
    paths: list[str], architecture: str | None, jobs: int
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the names of the kernels by the hash of their texts, and their texts by name."""
    files = files_of(paths)
    if not files:
        sys.exit(f"no device code in {', '.join(paths)}")
    by_hash: dict[str, list[str]] = defaultdict(list)
    by_name: dict[str, str] = {}
    with ThreadPoolExecutor(jobs) as pool:
        for kernels in pool.map(lambda file: kernels_of(file, architecture), files):
            for name, text in kernels:
                digest = hashlib.sha256(text.encode()).hexdigest()[:16]
                by_hash[digest].append(name)
                by_name[name] = text
    return by_hash, by_name


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


def main() -> None:
    """Compare two builds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", nargs="+", help="files or folders of one build")
    parser.add_argument("--with", dest="new", nargs="+", required=True, help="those of the other")
    parser.add_argument("--architecture", help="compare this one only, for example sm_90")
    parser.add_argument("--jobs", type=int, default=2, help="files that are read at a time")
    parser.add_argument("--write", metavar="FOLDER", help="write the texts of differing kernels")
    options = parser.parse_args()
    old, old_text = read(options.old, options.architecture, options.jobs)
    new, new_text = read(options.new, options.architecture, options.jobs)
    count = {
        side: Counter({k: len(v) for k, v in found.items()})
        for side, found in (("old", old), ("new", new))
    }
    equal = sum((count["old"] & count["new"]).values())
    total_old, total_new = sum(count["old"].values()), sum(count["new"].values())
    print(f"{total_old} kernels and {total_new} kernels, {equal} with the same code")
    for side, found, other, texts in (
        ("old", old, "new", old_text),
        ("new", new, "old", new_text),
    ):
        lonely = [
            name
            for digest, left in (count[side] - count[other]).items()
            for name in found[digest][:left]
        ]
        readable = demangled(lonely)
        for name in sorted(lonely, key=lambda name: readable[name]):
            print(f"only {side}: {readable[name]} ({texts[name].count(chr(10))} lines)")
            if options.write:
                folder = Path(options.write, side)
                folder.mkdir(parents=True, exist_ok=True)
                file = re.sub(r"\W+", "_", readable[name])[:150] + ".sass"
                (folder / file).write_text(texts[name] + "\n")
    sys.exit(equal < max(total_old, total_new))


if __name__ == "__main__":
    main()
