#!/usr/bin/env python3
"""Run the tridiagonal benchmark and write the record of this machine to benchmarks/results."""

import re
import sys
from pathlib import Path

from pysolvers._cli import main
from pysolvers.bench.machine import cpu_count, cpu_model

RESULTS = Path(__file__).resolve().parent / "results"


def record_path() -> Path:
    """Return the record of this machine, named after its processor."""
    name = re.sub(r"[^a-z0-9]+", "-", cpu_model().lower()).strip("-")
    return RESULTS / f"tridiagonal-{name}-{cpu_count()}.json"


if __name__ == "__main__":
    raise SystemExit(main(["bench", "tridiagonal", "--json", str(record_path()), *sys.argv[1:]]))
