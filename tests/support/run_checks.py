"""Runs checks on every rank of an MPI job.

run_checks.py SUBJECT...           those of tests/distributed/ranks_SUBJECT.py
run_checks.py SUBJECT/CHECK,...    some of them: check_CHECK, ...
run_checks.py SUBJECT/not,CHECK,...    all but some of them
run_checks.py SUBJECT... every     all combinations of their cases; see `slabs.chosen`
"""

import gc
import importlib
import sys
import traceback

import numpy as np

from pysolvers.distributed import Group


def run_checks(members, of="", names=()):
    """Call every ``check_...(group, rng)``, or those named; end with status 1 if one fails here.

    Names after "not" are those that are not called.

    The random numbers are the same on all ranks. A failure ends the rank, and the others end when
    they have waited for it.
    """
    group = Group(timeout=20)
    every, named = [n for n in members if n.startswith("check_")], [f"check_{n}" for n in names]
    if names and names[0] == "not":
        if unknown := set(named[1:]) - set(every):
            raise ValueError(f"no checks of {of}: {', '.join(sorted(unknown))}")
        named = [name for name in every if name not in named]
    for name in named or every:
        check = members[name]
        try:
            check(group, np.random.default_rng(20240607))
        except Exception:
            print(f"rank {group.rank} of {group.size}: {of} {name}", file=sys.stderr)
            traceback.print_exc()
            sys.exit(1)
    print(f"rank {group.rank} of {group.size}: {of} all checks passed".replace("  ", " "))


if __name__ == "__main__":
    gc.freeze()  # what the imports made is not searched for garbage
    for words in sys.argv[1:]:
        if words != "every":
            subject, *names = words.replace("/", ",").split(",")
            run_checks(vars(importlib.import_module(f"ranks_{subject}")), subject, names)
