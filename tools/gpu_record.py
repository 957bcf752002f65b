#!/usr/bin/env python3
"""Make the record of a GPU: its tests, its speed, the sources that were measured.

Without options all of it, into benchmarks/results/<gpu>.json. Where one command may not last so
long, each step alone leaves its part in --parts, and --merge makes the record of them:

    tools/gpu_record.py --tests
    tools/gpu_record.py --sanitizer memcheck
    tools/gpu_record.py --random calls --seconds 500
    tools/gpu_record.py --random growth
    tools/gpu_record.py --random solvers --seconds 120
    tools/gpu_record.py --bench
    tools/gpu_record.py --profile
    tools/gpu_record.py --reproduce pta2020
    tools/gpu_record.py --merge

With --keep, the parts that were not run again come from the record that is replaced, each with the
hash of the sources that it is of. Where that is the benchmark, --output names the record.

With --archive FILE, each step also writes all parts so far to one tar file, so that a run that is
cut off loses the step in progress only. Two GPUs of one host share the steps, those that measure
times on the first one and the tests on the second one:

    tools/gpu_record.py --devices 0 1 --workers 12 --seconds 120 --archive FILE

The interpreter that runs this runs the steps; the exit code is 1 if a test failed. --check needs no
GPU: its exit code is 1 if no committed record, its tests included, is of the sources as they are.
Records of other GPUs can be of earlier sources.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

from benchmarks.sources import DEVICE, device_hash, file_hashes  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
SANITIZERS = ("memcheck", "racecheck")
# Random tests beyond those of `make test-gpu`: markers, expression, file. 105600 draws of growth.
RANDOM = {
    "calls": ("gpu", "random_calls", "tests/unit/test_random_calls.py"),
    "growth": ("gpu and slow", "of_lapack", "tests/unit/tridiagonal/test_growth.py"),
    "solvers": ("gpu", "random_solvers", "tests/gpu/test_random_solvers.py"),
}
# Experiments of papers that are repeated: name of the file, arguments of `reproduce`.
PAPERS = {
    "pta2020": ("pta2020",),
    "pta2020_cylinder": ("pta2020", "--cylinder"),
    "lmsor2012": ("lmsor2012",),
    "survey2014": ("survey2014",),
    "wei2013": ("wei2013",),
    "gceidd2022": ("gceidd2022",),
}
# Tests that reach every kernel at small size, by an expression of pytest.
SANITIZED = "sanitized"
# Processes of a sanitizer, which instruments the whole module in each of them, one after another:
# with 18 processes this took 178 of 195 s, and all tests 17 s. With a quarter of the units eight
# processes began after 4 s, and one after 3 s.
MOST_SANITIZERS = 8
# The parts that must be of the present sources, for a record to be of them.
MEASURED = ("tests", "bench")
# What a sanitizer says at the end: errors, or hazards.
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)")

Record = dict[str, Any]


# What a step imports: the folder of the package, and whether its compiled modules can be found.
IMPORT = """
import json, importlib.metadata, importlib.util, pathlib, sys
spec = importlib.util.find_spec("pysolvers")
folder = pathlib.Path(spec.origin).parent if spec and spec.origin else None
found = [m for m in ("_core", "_cuda") if folder and list(folder.glob(m + ".*.so"))]
try:
    installed = importlib.metadata.distribution("pysolvers").locate_file("pysolvers/__init__.py")
    other = pathlib.Path(installed).parent if pathlib.Path(installed).exists() else None
except importlib.metadata.PackageNotFoundError:
    other = None
print(json.dumps([str(folder) if folder else "", found, str(other) if other else ""]))
"""


class Step(NamedTuple):
    """The option that names a step, and what runs it and returns an exit code or None."""

    option: tuple[str, ...]
    run: Callable[[], int | None]


def run_tests(workers: int, parts: Path) -> int:
    """Run `make test-gpu`, keep how many tests passed and failed, and return the exit code."""
    report = parts / "junit.xml"
    # The options take paths without spaces only, and the folder's own path may have some.
    options = f"--junitxml={os.path.relpath(report, ROOT)} -o junit_family=xunit1"
    given = " ".join((os.environ.get("PYTEST_ADDOPTS", ""), *distributed(workers)))
    code = make("test-gpu", PYTEST_ADDOPTS=f"{given} {options}")
    write(parts / "tests.json", {"sources": device_hash(), **counts(report), "exit_code": code})
    return code


def run_sanitizer(tool: str, select: str, workers: int, parts: Path) -> int:
    """Run selected tests under a tool of compute-sanitizer, keep what it found, return the code."""
    tests = collected(select)[::-1]  # those of heat, which take longest, are the last ones
    count = min(workers, MOST_SANITIZERS, len(tests))
    queue = parts / f"queue-{tool}"
    queue.write_text("")
    names = [f"{tool}-{number}" for number in range(count)]
    with ThreadPoolExecutor(count) as pool:
        found = list(pool.map(partial(run_part, tool, tests, queue), names))
    result: Record = {"sources": device_hash(), "tool": tool}
    for key in found[0]:
        result[key] = sum(part[key] for part in found)
    run = result["passed"] + result["failed"] + result["skipped"]
    if run != len(tests):
        raise SystemExit(f"compute-sanitizer --tool {tool}: {run} of {len(tests)} tests were run")
    write(parts / f"sanitizer-{tool}.json", result)
    return int(result["errors"] > 0 or result["failed"] > 0)


def collected(select: str) -> list[str]:
    """Return the names of the GPU tests that an expression of pytest selects."""
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-k", select, "tests/gpu"]
    command += ["--collect-only", "-q", "-n", "0"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    tests = [line for line in run.stdout.splitlines() if line.startswith("tests/gpu/")]
    if not tests:
        raise SystemExit(f"no test is selected by {select!r}:\n{run.stdout}{run.stderr}")
    return tests


def run_part(tool: str, tests: Sequence[str], queue: Path, name: str) -> dict[str, int]:
    """Run tests of a queue in one process under a tool; return how many passed, and the errors.

    What the tests print is in the log while they run, also that of a run that is cut off.
    """
    parts = queue.parent
    report, log = parts / f"junit-{name}.xml", parts / f"sanitizer-{name}.log"
    report.unlink(missing_ok=True)  # that of an earlier run would stand for one that crashed
    command = ["compute-sanitizer", "--tool", tool, "--target-processes", "all"]
    # Libraries ask the driver for functions that it may lack; our own calls check their status.
    command += ["--print-limit", "10", "--report-api-errors", "no", sys.executable, "-u"]
    command += ["-m", "pytest", "-p", "shared_queue", "-v", "-n", "0", "-m", "gpu"]
    command += ["--require-backend", "cpu,cuda", *tests, f"--junitxml={report}"]
    command += ["-o", "junit_family=xunit1"]
    folders = [str(ROOT / "tools"), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(folders), "SHARED_QUEUE": str(queue)}
    with log.open("w") as file:
        subprocess.run(
            command, cwd=ROOT, env=env, stdout=file, stderr=subprocess.STDOUT, check=False
        )
    printed = log.read_text()
    print(printed[-3000:])
    summaries = [int(number) for number in SUMMARY.findall(printed)]
    if not summaries or not report.exists():
        raise SystemExit(f"compute-sanitizer --tool {tool} did not come to its end: see {log}")
    return {"errors": sum(summaries), **counts(report)}


def run_random(name: str, seconds: float, workers: int, parts: Path) -> int:
    """Run random tests, keep their numbers of cases and their seed, and return the exit code."""
    marker, select, path = RANDOM[name]
    report = parts / f"junit-random-{name}.xml"
    command = [sys.executable, "-m", "pytest", "-m", marker, "-k", select]
    command += [
        "--require-backend",
        "cpu,cuda",
        path,
        f"--junitxml={report}",
        "-o",
        "junit_family=xunit1",
    ]
    command += ["-o", f"timeout={max(900, 2 * seconds):.0f}"]
    env = {**os.environ, "PYSOLVERS_RANDOM_SECONDS": str(seconds)}
    command += distributed(workers)
    env["PYSOLVERS_RANDOM_PARTS"] = str(workers)
    code = subprocess.run(command, cwd=ROOT, env=env, check=False).returncode
    found = {"exit_code": code, **counts(report), **properties(report)}
    write(parts / f"random-{name}.json", {"sources": device_hash(), "name": name, **found})
    return code


def distributed(workers: int) -> list[str]:
    """Return the options of pytest for a number of processes."""
    return ["-n", str(workers), "-p", "no:benchmark"] if workers > 1 else []


def run_bench(parts: Path) -> None:
    """Run `make bench-gpu`, which writes its own record."""
    if make("bench-gpu", f"JSON={parts / 'bench.json'}"):
        raise SystemExit("the benchmark failed, or a case of it")


def run_profile(parts: Path) -> None:
    """Profile what missed its bar in the benchmark, which has to be among the parts."""
    command = [sys.executable, "-m", "pysolvers", "bench", "gpu_profile"]
    subprocess.run([*command, parts / "bench.json", parts / "profile.json"], cwd=ROOT, check=True)


def run_paper(name: str, parts: Path) -> None:
    """Repeat experiments of a paper."""
    command = ["-m", "pysolvers", "reproduce", *PAPERS[name], "--no-plot", "--output", str(parts)]
    subprocess.run([sys.executable, *command], cwd=ROOT, check=True)
    path = parts / f"{name}.json"
    write(path, {"sources": device_hash(), **json.loads(path.read_text())})


def steps_of(args: argparse.Namespace, parts: Path) -> tuple[list[Step], list[Step]]:
    """Return the steps that measure times, and those that test."""
    timed = [Step(("--bench",), partial(run_bench, parts))]
    timed += [Step(("--reproduce", name), partial(run_paper, name, parts)) for name in PAPERS]
    if args.profile or shutil.which("ncu"):
        timed.append(Step(("--profile",), partial(run_profile, parts)))
    workers = args.workers
    tested = [Step(("--tests",), partial(run_tests, workers, parts))]
    for tool in SANITIZERS:
        run = partial(run_sanitizer, tool, args.select, workers, parts)
        tested.append(Step(("--sanitizer", tool), run))
    for name in RANDOM:
        tested.append(
            Step(("--random", name), partial(run_random, name, args.seconds, workers, parts))
        )
    return timed, tested


def run_on_two(devices: Sequence[str], rows: Sequence[list[Step]], options: Sequence[str]) -> int:
    """Run two rows of steps at the same time, one on each device; return the exit code."""

    def run(device: str, row: list[Step]) -> int:
        env = os.environ | {"CUDA_VISIBLE_DEVICES": device}
        commands = [[sys.executable, str(Path(__file__)), *step.option, *options] for step in row]
        return max(subprocess.run(c, cwd=ROOT, env=env, check=False).returncode for c in commands)

    with ThreadPoolExecutor(2) as pool:
        return max(pool.map(run, devices, rows))


def archive(parts: Path, path: Path | None) -> None:
    """Write all parts, and what their steps printed, to a tar file: whole or not at all."""
    if path is None:
        return
    with (
        tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file,
        tarfile.open(fileobj=file, mode="w:gz") as tar,
    ):
        for part in sorted(parts.iterdir()):
            if part.suffix in (".json", ".log", ".xml"):
                tar.add(part, part.name)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def merge(parts: Path, output: Path | None, note: str = "", keep: bool = False) -> Path:
    """Join the parts, which must be of one state of the sources, and return the record's path.

    The documents print the note after the numbers of tests: what a reader must know of this run.
    `keep` takes what has no part from the record that is replaced, the benchmark only if `output`
    names that record.
    """
    found = {path.stem: json.loads(path.read_text()) for path in sorted(parts.glob("*.json"))}
    needed = ("tests", "bench", *PAPERS)
    if keep:
        needed = () if output else ("bench",)
    for name in needed:
        if name not in found:
            raise SystemExit(f"{parts / name}.json is missing: run its step first")
    sources = device_hash()
    for name, part in found.items():
        if part.get("sources", sources) != sources:
            raise SystemExit(f"{name} was run on other sources: run that step again")
    path = output or RESULTS / f"{slug(found['bench']['gpu']['name'])}.json"
    former = json.loads(path.read_text()) if keep else {}
    bench = found["bench"] if "bench" in found else of_former(former, former["bench"])
    if bench["settings"]["quick"]:
        raise SystemExit("a quick benchmark makes no record")
    gpu = bench["gpu"]
    record = {
        "benchmark": "gpu record",
        "date": bench["date"],
        "sources": sources,
        "machine": bench["machine"],
        "gpu": gpu,
        "versions": {**bench["versions"], "driver": gpu["driver"]},
        "load": bench["load"],
        "settings": bench["settings"],
        "files": file_hashes(folders=DEVICE),
        "tests": without_sources(found["tests"])
        if "tests" in found
        else of_former(former, former["tests"]),
        "sanitizers": {
            **kept(former, "sanitizers"),
            **{
                part["tool"]: without_sources(part)
                for name, part in found.items()
                if name.startswith("sanitizer-")
            },
        },
        "random": {
            **kept(former, "random"),
            **{
                part["name"]: without_sources(part)
                for name, part in found.items()
                if name.startswith("random-")
            },
        },
        "papers": {
            **kept(former, "papers"),
            **{name: without_sources(found[name]) for name in PAPERS if name in found},
        },
        "bench": bench,
    }
    if note:
        record["note"] = note
    if "profile" in found:
        record["profile"] = without_sources(found["profile"])
    elif "profile" in former:
        record["profile"] = of_former(former, former["profile"])
    write(path, record)
    print(f"{path}: {len(bench['cases'])} cases, {record['tests']['passed']} tests passed")
    return path


def kept(former: Record, name: str) -> Record:
    """Return the papers, sanitizers or random tests of a former record, each with its `sources`."""
    return {key: of_former(former, part) for key, part in former.get(name, {}).items()}


def of_former(former: Record, part: Record) -> Record:
    """Return a part of a former record with its `sources`, by default those of the record."""
    return {"sources": former["sources"], **part}


def check() -> int:
    """Say which committed records are of the sources as they are. Return 1 if none is."""
    found = {path: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    records = {path: r for path, r in found.items() if r["benchmark"] == "gpu record"}
    if not records:
        print("no record of a GPU in benchmarks/results", file=sys.stderr)
        return 1
    now, files = device_hash(), file_hashes(folders=DEVICE)
    stale = {
        path: record
        for path, record in records.items()
        if any(part.get("sources", now) != now for part in (record, *(record[k] for k in MEASURED)))
    }
    is_there = len(stale) < len(records)
    for path, record in stale.items():
        stream = sys.stdout if is_there else sys.stderr
        what = "is a record"
        if record["sources"] == now:
            is_tested = record["tests"].get("sources", now) == now
            what = "has a benchmark" if is_tested else "has tests"
        print(f"{path.relative_to(ROOT)} {what} of other sources", file=stream)
        if is_there or "files" not in record:
            continue
        measured = record["files"]
        known, present = set(measured.values()), set(files.values())
        for name in sorted(name for name, code in files.items() if code not in known):
            print(f"  not measured: {name}", file=sys.stderr)
        for name in sorted(name for name, code in measured.items() if code not in present):
            print(f"  measured, but changed or gone: {name}", file=sys.stderr)
    return 0 if is_there else 1


def fault_of_import(folder: Path, modules: Sequence[str] = ("_core",)) -> str:
    """Return why a step that starts in a folder would not import the installed package, or ""."""
    run = subprocess.run(
        [sys.executable, "-c", IMPORT], cwd=folder, capture_output=True, text=True, check=False
    )
    if run.returncode:
        return f"import pysolvers fails:\n{run.stderr}"
    imported, found, installed = json.loads(run.stdout)
    if not imported:
        return f"pysolvers is not installed: run {build_command(ROOT)}"
    missing = [name for name in modules if name not in found]
    if installed and not Path(imported).samefile(installed):
        return (
            f"import pysolvers takes {imported}, not the installed package {installed}: set "
            "PYTHONSAFEPATH=1, so that Python does not look in the folder in which it starts"
        )
    if missing:
        return (
            f"import pysolvers takes {imported}, which has no compiled {', '.join(missing)}: run "
            f"{build_command(Path(imported).parent)}, or install the package and set "
            "PYTHONSAFEPATH=1"
        )
    return ""


def build_command(folder: Path) -> str:
    """Return the command that builds the package of a folder in place, for this interpreter."""
    options = "-m pip install --no-build-isolation --no-deps --editable"
    python, place = (shlex.quote(str(path)) for path in (sys.executable, folder))
    return f"PYSOLVERS_CUDA=1 PYSOLVERS_CUDA_ARCH=native {python} {options} {place}"


def make(target: str, *variables: str, **environment: str) -> int:
    """Run a target of the Makefile with this interpreter. Return the exit code."""
    command = ["make", target, *variables]
    if Path(sys.prefix) != ROOT / ".venv":  # which is the Makefile's own
        command.append(f"GPU_PYTHON={sys.executable}")
    env = {**os.environ, **environment}
    return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode


def counts(report: Path) -> dict[str, int]:
    """Return how many tests of a JUnit report passed, failed and were skipped."""
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))

    def total(name: str) -> int:
        return sum(int(suite.get(name, "0")) for suite in suites)

    failed, skipped = total("failures") + total("errors"), total("skipped")
    return {"passed": total("tests") - failed - skipped, "failed": failed, "skipped": skipped}


def properties(report: Path) -> dict[str, int]:
    """Return the sums of the numbers that tests recorded, and the seed, which all of them share."""
    found: dict[str, int] = {}
    for item in ElementTree.parse(report).getroot().iter("property"):
        name, value = item.get("name", ""), int(item.get("value", "0"))
        found[name] = value if name == "seed" else found.get(name, 0) + value
    return found


def write(path: Path, record: Record) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False) as file:
        file.write(json.dumps(record, indent=1) + "\n")
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def without_sources(part: Record) -> Record:
    """Return a part without the hash, which the record names once."""
    return {name: value for name, value in part.items() if name != "sources"}


def slug(name: str) -> str:
    """Return the name of a GPU as that of a file: NVIDIA H200 is h200."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower().removeprefix("nvidia ")).strip("-")


def main() -> int:
    """Run the steps that the command line names and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare the records with the sources")
    for step in ("tests", "bench", "profile", "merge"):
        parser.add_argument(f"--{step}", action="store_true", help="this step only")
    parser.add_argument("--reproduce", choices=PAPERS, action="append", default=[])
    parser.add_argument("--sanitizer", choices=SANITIZERS, action="append", default=[])
    parser.add_argument("--random", choices=RANDOM, action="append", default=[])
    parser.add_argument("--seconds", type=float, default=600, help="of random calls (%(default)s)")
    parser.add_argument(
        "--workers", type=int, default=1, help="processes of the random tests; above 1, by xdist"
    )
    parser.add_argument("--select", default=SANITIZED, help="tests of the sanitizer (%(default)s)")
    parser.add_argument("--parts", type=Path, default=ROOT / "build" / "gpu-record")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/<gpu>.json")
    parser.add_argument(
        "--keep",
        action="store_true",
        help="parts of the record that is replaced, where they are missing",
    )
    parser.add_argument("--note", default="", help="what a reader must know of the record")
    parser.add_argument("--archive", type=Path, help="tar file of the parts, for each step anew")
    parser.add_argument("--devices", nargs=2, help="numbers of two GPUs that share all steps")
    args = parser.parse_args()
    if args.check:
        return check()
    fault = fault_of_import(ROOT)
    if fault:
        print(f"gpu_record: {fault}", file=sys.stderr)
        return 1
    parts = args.parts.resolve()
    parts.mkdir(parents=True, exist_ok=True)
    rows = steps_of(args, parts)
    if args.devices:
        options = ["--parts", str(parts), "--workers", str(args.workers)]
        options += ["--seconds", str(args.seconds)]
        options += ["--archive", str(args.archive.resolve())] if args.archive else []
        code = run_on_two(args.devices, rows, options)
        merge(parts, args.output, args.note, args.keep)
        return 1 if code else 0
    wanted = {(f"--{name}",) for name in ("tests", "bench", "profile") if getattr(args, name)}
    for name in ("reproduce", "sanitizer", "random"):
        wanted |= {(f"--{name}", which) for which in getattr(args, name)}
    everything = not wanted and not args.merge
    timed, tested = rows
    code = 0
    for step in (*tested, *timed):
        if everything or step.option in wanted:
            code = step.run() or code
            archive(parts, args.archive)
    if args.merge or everything:
        merge(parts, args.output, args.note, args.keep)
    return 1 if code else 0


if __name__ == "__main__":
    raise SystemExit(main())
