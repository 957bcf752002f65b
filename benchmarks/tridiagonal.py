#!/usr/bin/env python3
"""Run the tridiagonal benchmark and write the records of this machine to benchmarks/results.

The part `large` goes to tridiagonal-MACHINE.json, `small` to small-MACHINE.json. The latter is
measured with one thread, because the other packages use one. Name the parts to measure; the
default is both:

    python benchmarks/tridiagonal.py [large] [small] [options of ``bench tridiagonal``]
"""

import re
import sys
from pathlib import Path

from pysolvers._cli import main
from pysolvers.bench.machine import cpu_count, cpu_model
from pysolvers.bench.tridiagonal import PARTS

RESULTS = Path(__file__).resolve().parent / "results"
FILES = {"large": "tridiagonal", "small": "small"}
OPTIONS: dict[str, list[str]] = {"large": [], "small": ["--threads", "1"]}


def record_path(part: str) -> Path:
    """Return the record of a part on this machine, named after its processor."""
    name = re.sub(r"[^a-z0-9]+", "-", cpu_model().lower()).strip("-")
    return RESULTS / f"{FILES[part]}-{name}-{cpu_count()}.json"


def run(arguments: list[str]) -> int:
    """Measure the parts that `arguments` name, and return the exit code."""
    named = [part for part in PARTS if part in arguments]
    options = [argument for argument in arguments if argument not in PARTS]
    codes = []
    for part in named or PARTS:
        command = ["bench", "tridiagonal", "--only", part, "--json", str(record_path(part))]
        codes.append(main([*command, *OPTIONS[part], *options]))
    return max(codes)


if __name__ == "__main__":
    raise SystemExit(run(sys.argv[1:]))
