"""The commands ``pysolvers bench NAME`` and ``pysolvers reproduce PAPER``.

A module of a benchmark or of a paper has two functions: ``add_arguments(parser)`` adds its options,
``run(args)`` measures and returns the exit code. Only the module that is asked for is imported, for
some need packages that others do not.
"""

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module

# Name of a benchmark -> what it measures. Its module is named like it.
BENCHMARKS = {
    "tridiagonal": "solve_tridiagonal and other CPU packages",
    "small": "the same with small batches, microseconds of a call",
    "gpu": "solve_tridiagonal and other GPU packages",
    "calls": "the cost of calls with small systems, also on a GPU",
    "jobs": "six jobs and the programs that people would write for them, also on a GPU",
    "implicit": "iterations and times of HeatADI(scheme='implicit')",
    "parabolic": "ParabolicADI: steps over the words that they move, and a batch",
    "poisson": "FastPoisson, sparse LU and multigrid; on a GPU cuFFT and CuPy",
    "recurrences": "recurrences, blocks, bands and smoothers, SciPy and JAX; also on a GPU",
    "splines": "CubicSpline and SciPy; on a GPU CuPy",
    "steps": "products, implicit steps, masks and several right-hand sides, and the solve alone",
    "staggered": "the kernels of StaggeredCavity, also on a GPU",
    "cylinder": "SquareCylinder on a GPU and on the host",
    "cylinder_peer": "SquareCylinder and the lattice Boltzmann solver lettuce",
    "gradients": "solves of JAX or PyTorch on a GPU, and their gradients",
    "gradients_cpu": "solves and theta steps of JAX and PyTorch on the CPU, and their gradients",
    "jax_cpu": "steps of heat of JAX on the CPU, and their gradients",
    "distributed": "lines that are cut over ranks, and the model of their cost",
    "lines": "lines that are cut over GPUs",
    "group_calls": "calls with a group between GPUs: what the host does",
    "parts": "the kernels that solve a part of a cut line",
    "slabs": "solvers that are cut over ranks",
    "threads": "one thread and the default number of threads, on an idle and on a busy machine",
    "gpu_profile": "why cases of a record of `gpu` miss their bars, by NVIDIA's profiler",
    "documents": "renew the tables and pictures of the documentation from the records",
}

# Name of a paper -> its subject. Its module is named like it, in the folder papers.
PAPERS = {
    "gceidd2022": "Foadaddini et al. 2022: GCEIDD",
    "lmsor2012": "Cotronis et al. 2012: local modified SOR",
    "pta2020": "Souri et al. 2020: the cavity by line methods",
    "survey2014": "Niemeyer and Sung 2014: red-black SOR on a plate, and a cavity",
    "wei2013": "Wei et al. 2013: ADI by parallel cyclic reduction",
}


def add_arguments(command: str, parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Add the benchmarks or the papers to the parser of ``bench`` or ``reproduce``.

    Parameters
    ----------
    command : {'bench', 'reproduce'}
        The command.
    parser : ArgumentParser
        Its parser.
    words : sequence of str
        The arguments that the parser will read: the first one may name a module.
    """
    if command == "bench":
        _add(parser, "NAME", "benchmarks", BENCHMARKS, words)
    else:
        _add(parser, "PAPER", "benchmarks.papers", PAPERS, words)


def _add(
    parser: argparse.ArgumentParser,
    metavar: str,
    package: str,
    texts: Mapping[str, str],
    words: Sequence[str],
) -> None:
    choices = parser.add_subparsers(metavar=metavar, required=True)
    for name, text in texts.items():
        is_asked = list(words[:1]) == [name]
        module = import_module(f"{package}.{name}") if is_asked else None
        choice = choices.add_parser(
            name,
            help=text,
            description=module.__doc__ if module else text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if module is not None:
            module.add_arguments(choice)
            choice.set_defaults(run=module.run, takes_ranks=getattr(module, "TAKES_RANKS", False))
