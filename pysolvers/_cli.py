"""The command line: ``pysolvers info | run CASE | bench NAME | reproduce PAPER``.

``python -m pysolvers`` is the same command.

Results go to stdout, messages and progress to stderr. Exit codes: 0 success, 1 the computation
failed, 2 wrong usage, 130 interrupted.

Under an MPI launcher the ranks run one command together, and rank 0 prints; a command that has no
use for ranks refuses them, as it would be run, and would write its files, once for every rank.
"""

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from typing import Any

from ._errors import DistributedError, PysolversError
from ._runtime import backends as _backends
from ._version import __version__
from .bench import gpu as bench_gpu
from .bench import machine
from .bench import tridiagonal as bench_tridiagonal
from .cases import cavity as cavity_case
from .cases import cylinder as cylinder_case
from .cases import gceidd2022 as gceidd2022_case
from .cases import heat as heat_case
from .cases import lmsor2012 as lmsor2012_case
from .cases import pta2020 as pta2020_case
from .cases import survey2014 as survey2014_case
from .cases import wei2013 as wei2013_case
from .distributed import launched

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130

_Paper = tuple[str, Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int]]
# Name of a paper -> its subject, the function that adds the options, the function that runs it.
_PAPERS: dict[str, _Paper] = {
    "gceidd2022": (
        "Foadaddini et al. 2022: GCEIDD",
        gceidd2022_case.add_gceidd2022_arguments,
        gceidd2022_case.run_gceidd2022,
    ),
    "lmsor2012": (
        "Cotronis et al. 2012: local modified SOR",
        lmsor2012_case.add_lmsor2012_arguments,
        lmsor2012_case.run_lmsor2012,
    ),
    "pta2020": (
        "Souri et al. 2020: the cavity by line methods",
        pta2020_case.add_pta2020_arguments,
        pta2020_case.run_pta2020,
    ),
    "survey2014": (
        "Niemeyer and Sung 2014: red-black SOR on a plate, and a cavity",
        survey2014_case.add_survey2014_arguments,
        survey2014_case.run_survey2014,
    ),
    "wei2013": (
        "Wei et al. 2013: ADI by parallel cyclic reduction",
        wei2013_case.add_wei2013_arguments,
        wei2013_case.run_wei2013,
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, ``sys.argv[1:]`` by default, and return the exit code."""
    with ExitStack() as stack:
        # Python has no streams for descriptors that are closed, as in `2>&-`.
        for stream, redirect in ((sys.stdout, redirect_stdout), (sys.stderr, redirect_stderr)):
            if stream is None:
                nowhere = stack.enter_context(open(os.devnull, "w"))
                stack.enter_context(redirect(nowhere))
        return _run(argv)


def _run(argv: Sequence[str] | None) -> int:
    ranks, rank = launched()
    with ExitStack() as stack:
        if rank > 0:  # rank 0 prints the help, and what is wrong with the arguments
            stack.enter_context(redirect_stdout(io.StringIO()))
            stack.enter_context(redirect_stderr(io.StringIO()))
        args = build_parser().parse_args(argv)
    args.command_line = list(sys.argv[1:] if argv is None else argv)
    try:
        if ranks > 1 and not args.takes_ranks:
            raise ValueError(
                f"an MPI launcher started {ranks} processes, but this command is not split over "
                "ranks: start it without the launcher"
            )
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED, rank)
    except BrokenPipeError:
        # The reader closed the pipe. Prevent the interpreter from flushing into it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except DistributedError as error:
        others = (r for r in range(ranks) if r not in error.ranks)
        return _say(error, FAILED, rank if rank != next(others, 0) else 0)
    except (PysolversError, OSError) as error:
        return _say(error, FAILED, rank)
    except MemoryError as error:
        return _say(f"not enough memory: {error}".removesuffix(": "), FAILED, rank)
    except ValueError as error:  # raised for an argument out of its range
        return _say(error, USAGE, rank)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="pysolvers",
        description="Batched tridiagonal solves, and solvers on structured grids.",
    )
    parser.add_argument("--version", action="version", version=f"pysolvers {__version__}")
    parser.set_defaults(takes_ranks=False)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    info = commands.add_parser("info", help="print versions, backends and the machine")
    info.add_argument("--json", action="store_true", help="print one JSON object")
    info.set_defaults(run=run_info, takes_ranks=True)

    run = commands.add_parser("run", help="solve a case and compare it with published results")
    case = run.add_subparsers(metavar="CASE", required=True)
    cavity = case.add_parser("cavity", help="the steady lid-driven cavity")
    cavity_case.add_cavity_arguments(cavity)
    cavity.set_defaults(run=cavity_case.run_cavity)
    cylinder = case.add_parser("cylinder", help="the flow around a square cylinder")
    cylinder_case.add_cylinder_arguments(cylinder)
    cylinder.set_defaults(run=cylinder_case.run_cylinder)
    heat = case.add_parser("heat", help="a cooling square or cube, also split over ranks")
    heat_case.add_heat_arguments(heat)
    heat.set_defaults(run=heat_case.run_heat, takes_ranks=True)

    bench = commands.add_parser("bench", help="measure the speed on this machine")
    name = bench.add_subparsers(metavar="NAME", required=True)
    tridiagonal = name.add_parser("tridiagonal", help="solve_tridiagonal and other CPU packages")
    bench_tridiagonal.add_tridiagonal_arguments(tridiagonal)
    tridiagonal.set_defaults(run=bench_tridiagonal.run_tridiagonal)
    gpu = name.add_parser("gpu", help="solve_tridiagonal and other GPU packages")
    bench_gpu.add_gpu_arguments(gpu)
    gpu.set_defaults(run=bench_gpu.run_gpu)

    reproduce = commands.add_parser("reproduce", help="repeat the experiment of a paper")
    paper = reproduce.add_subparsers(metavar="PAPER", required=True)
    for title, (text, add_arguments, run_paper) in _PAPERS.items():
        command = paper.add_parser(title, help=text, description=text)
        add_arguments(command)
        command.set_defaults(run=run_paper)
    return parser


def run_info(args: argparse.Namespace) -> int:
    """Print the output of ``python -m pysolvers info``. Return the exit code."""
    found = collect_info()
    if args.json:
        print(json.dumps(found, indent=1))
        return OK
    lines = {name: text or "not installed" for name, text in found["versions"].items()}
    for name, backend in found["backends"].items():
        if backend["available"]:
            text = backend["description"]
        elif backend["module"]:
            text = f"{backend['module']} is installed, but not available: {backend['reason']}"
        else:
            text = f"not available: {backend['reason']}"
        lines[f"backend {name}"] = text
    lines["threads"] = found["threads"] or "none"
    lines["processor"] = f"{found['machine']['cpu']}, {found['machine']['cpus']} usable"
    for name, text in lines.items():
        print(f"{name:13} {text}")
    return OK


def collect_info() -> dict[str, Any]:
    """Return versions, backends, default number of threads of the CPU, and machine.

    For a backend that is not available, the description is None and the reason is given; if it is
    not installed or does not belong to this package, the module is None, too.
    """
    backends = {}
    for name in _backends.names():
        reason = _backends.unavailable_reason(name)
        description = None if reason else _backends.require(name).describe()
        backends[name] = {
            "available": not reason,
            "module": _backends.installed_module(name),
            "reason": reason,
            "description": description,
        }
    available = backends["cpu"]["available"]
    return {
        "versions": machine.versions("pysolvers", "numpy", "scipy", "matplotlib", "tqdm"),
        "backends": backends,
        "threads": _backends.require("cpu").default_threads() if available else None,
        "machine": machine.machine(),
    }


def _say(message: object, code: int, rank: int) -> int:
    """Print the message on rank 0, and return the exit code."""
    if rank == 0:
        print(f"pysolvers: {message}", file=sys.stderr)
    return code
