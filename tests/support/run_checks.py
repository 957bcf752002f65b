"""Runs the checks of a module on every rank of an MPI job."""

import sys
import traceback

import numpy as np

from pysolvers.distributed import Group


def run_checks(members):
    """Call every ``check_...(group, rng)``; end with status 1 if one fails on this rank.

    The random numbers are the same on all ranks. A failure ends the rank, and the others end when
    they have waited for it.
    """
    group = Group(timeout=20)
    for name, check in list(members.items()):
        if name.startswith("check_"):
            try:
                check(group, np.random.default_rng(20240607))
            except Exception:
                print(f"rank {group.rank} of {group.size}: {name}", file=sys.stderr)
                traceback.print_exc()
                sys.exit(1)
    print(f"rank {group.rank} of {group.size}: all checks passed")
