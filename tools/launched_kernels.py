#!/usr/bin/env python3
"""Which kernels the tests of a device launch, and which tests launch none of their own.

    PYTHONPATH=tools python -m pytest -p launched_kernels -n 0 -m gpu -k sanitized tests/gpu
    python tools/launched_kernels.py kernels.json
    python tools/launched_kernels.py kernels.json --times gpu-record/junit-racecheck-*.xml

As a plugin of pytest it records the kernels of each test with the profiler of PyTorch and writes
them to kernels.json, or to the file that LAUNCHED_KERNELS names. A kernel is its name with all
template arguments. As a program it chooses tests, the one first that launches most of the kernels
that none launched yet in the least time, until none is left, and lists the others.
"""

import argparse
import json
import os
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

FILE = "LAUNCHED_KERNELS"

Kernels = dict[str, set[str]]


FOUND: pytest.StashKey[dict[str, list[str]]] = pytest.StashKey()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    """Record what a test launches."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the profiler about its environment
        profile = torch.profiler.profile(activities=torch.profiler.supported_activities())
        profile.start()
    try:
        return (yield)
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            profile.stop()
            found = item.config.stash.setdefault(FOUND, {})
            found[item.nodeid] = sorted(row.key for row in profile.key_averages())


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the kernels of all tests."""
    found = session.config.stash.get(FOUND, {})
    Path(os.environ.get(FILE, "kernels.json")).write_text(json.dumps(found, indent=1))


def own(names: Sequence[str]) -> set[str]:
    """Return the kernels of the package."""
    return {name for name in names if "pysolvers::" in name}


def seconds(reports: Sequence[Path]) -> dict[str, float]:
    """Return the times of tests, by their names, of files in the format of JUnit."""
    cases = (case for path in reports for case in ET.parse(path).getroot().iter("testcase"))
    return {case.get("name", ""): float(case.get("time", 0)) for case in cases}


def chosen(kernels: Kernels, times: Mapping[str, float]) -> list[str]:
    """Return tests that launch all kernels, those first that launch many in little time."""
    left, tests = set().union(*kernels.values()), dict(kernels)
    found = []
    while left:
        best = max(tests, key=lambda test: len(tests[test] & left) / (times.get(test, 0) + 0.1))
        found.append(best)
        left -= tests.pop(best)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kernels", type=Path, help="file that the plugin has written")
    parser.add_argument("--times", type=Path, nargs="*", default=[], help="reports of pytest")
    args = parser.parse_args()
    kernels = {
        test.rpartition("::")[2]: own(names)
        for test, names in json.loads(args.kernels.read_text()).items()
    }
    times = seconds(args.times)
    tests = chosen(kernels, times)
    others = [test for test in kernels if test not in tests]
    every = set().union(*kernels.values())
    for title, part in (("needed for a kernel", tests), ("without a kernel of its own", others)):
        total = sum(times.get(test, 0) for test in part)
        print(f"{len(part)} tests {title}, {total:.1f} s; {len(every)} kernels in all")
        for test in sorted(part, key=lambda test: -times.get(test, 0)):
            print(f"{times.get(test, 0):8.1f} s {len(kernels[test]):4d} kernels  {test}")


if __name__ == "__main__":
    main()
