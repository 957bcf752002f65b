"""The command line: ``pysolvers info | config | run CASE | bench NAME | reproduce PAPER``.

``python -m pysolvers`` is the same command. ``bench`` and ``reproduce`` work in a copy of the
source: their code is in its folder ``benchmarks``, which is not installed.

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
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from . import _building as building, _machine as machine
from ._errors import DistributedError, PysolversError
from ._runtime import backends as _backends
from ._version import __version__
from .cases import (
    cavity as cavity_case,
    cylinder as cylinder_case,
    heat as heat_case,
    poisson as poisson_case,
)
from .distributed._launch import launched

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


# Commands of a copy of the source, with what they do.
_OF_THE_SOURCE = {
    "bench": "measure the speed on this machine",
    "reproduce": "repeat the experiment of a paper",
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
    """Parse the command line and run the command; with several ranks, rank 0 alone prints."""
    ranks, rank = launched()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with ExitStack() as stack:
            if rank > 0:  # rank 0 prints the help, and what is wrong with the arguments
                stack.enter_context(redirect_stdout(io.StringIO()))
                stack.enter_context(redirect_stderr(io.StringIO()))
            args = build_parser(words).parse_args(words)
        args.command_line = words
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
    except (PysolversError, ImportError, OSError) as error:
        return _say(error, FAILED, rank)
    except MemoryError as error:
        return _say(f"not enough memory: {error}".removesuffix(": "), FAILED, rank)
    except ValueError as error:  # raised for an argument out of its range
        return _say(error, USAGE, rank)


class _Parser(argparse.ArgumentParser):
    """A parser whose error for an unknown option names the nearest one."""

    def parse_known_args(self, *args: Any, **options: Any) -> Any:
        """Parse the arguments of this parser, or of one of its commands."""
        found, rest = super().parse_known_args(*args, **options)
        unknown = next((word for word in rest if word.startswith("-")), None)
        if unknown is not None:
            near = get_close_matches(unknown.partition("=")[0], self._option_string_actions, 1, 0.8)
            hint = f"did you mean {near[0]}?" if near else f"`{self.prog} --help` lists the options"
            self.error(f"unrecognized argument {unknown}: {hint}")
        return found, rest


def build_parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser of the whole command line.

    Parameters
    ----------
    words : sequence of str
        The arguments to be parsed. The options of a benchmark or of a paper are added if it is
        named: its module is imported for them.

    Raises
    ------
    PysolversError
        If a command of the source is named outside of a copy of the source.
    ImportError
        If the module that is named needs a package that is not installed.
    """
    parser = _Parser(
        prog="pysolvers",
        description="Batched tridiagonal solves, and solvers on structured grids.",
    )
    parser.add_argument("--version", action="version", version=f"pysolvers {__version__}")
    parser.set_defaults(takes_ranks=False)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    info = commands.add_parser("info", help="print versions, backends and the machine")
    info.add_argument("--json", action="store_true", help="print one JSON object")
    info.set_defaults(run=run_info, takes_ranks=True)

    config = commands.add_parser("config", help="print the flags for programs in C and Fortran")
    building.add_config_arguments(config)
    config.set_defaults(run=building.run_config)

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
    poisson = case.add_parser("poisson", help="the flow through a duct, or a heated pipe")
    poisson_case.add_poisson_arguments(poisson)
    poisson.set_defaults(run=poisson_case.run_poisson)

    for name, text in _OF_THE_SOURCE.items():
        command = commands.add_parser(name, help=f"{text}, in a copy of the source")
        if list(words[:1]) == [name]:
            _laboratory(name).add_arguments(name, command, words[1:])
    return parser


def _laboratory(command: str) -> ModuleType:
    """Return the module of the commands of a copy of the source.

    The copy is the folder from which the package is imported, or else the working directory.
    """
    for root in (Path(__file__).parents[1], Path.cwd()):
        if all((root / part).is_file() for part in ("benchmarks/command.py", "setup.py")):
            if str(root) not in sys.path:
                sys.path.append(str(root))
            return import_module("benchmarks.command")
    raise PysolversError(
        f"{command} works in a copy of the source of pysolvers, not with the installed package "
        "alone: start it in the folder of the copy"
    )


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
