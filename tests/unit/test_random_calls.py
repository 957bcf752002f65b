"""Random calls for a bounded time: everything that a call can be, against oracles.

PYSOLVERS_RANDOM_SECONDS is the time for each backend, 1.5 by default. PYSOLVERS_RANDOM_SEED chooses
other calls, and PYSOLVERS_RANDOM_CASE makes the one of that number, which a failure prints.
PYSOLVERS_RANDOM_PARTS is the number of tests that share the calls and the time, for as many
processes.
"""

import os
import time

import pytest
import random_calls

SECONDS = float(os.environ.get("PYSOLVERS_RANDOM_SECONDS", "1.5"))
SEED = int(os.environ.get("PYSOLVERS_RANDOM_SEED", "20240607"))
CASE = os.environ.get("PYSOLVERS_RANDOM_CASE")
PARTS = int(os.environ.get("PYSOLVERS_RANDOM_PARTS", "1"))


@pytest.mark.parametrize("part", range(PARTS))
def test_random_calls(backend, part, record_property, capsys):
    if CASE is not None:
        random_calls.run(backend, SEED, int(CASE))
        return
    end = time.monotonic() + SECONDS / PARTS
    cases = 0
    while time.monotonic() < end:
        random_calls.run(backend, SEED, part + PARTS * cases)
        cases += 1

    record_property("cases", cases)
    record_property("seed", SEED)
    with capsys.disabled():
        print(f"\n{cases} random calls on {backend} in {SECONDS / PARTS:g} s, seed {SEED}")
    assert cases > 0
