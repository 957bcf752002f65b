"""Tests that several processes share: each takes the next one that none has taken.

    SHARED_QUEUE=queue PYTHONPATH=tools python -m pytest -p shared_queue -n 0 tests/gpu

A plugin of pytest. The processes have the same tests and the same file, which is empty at first and
keeps how many tests were taken. Processes that end alone need no division of the tests by their
times, which differ by a factor of 100 under a sanitizer.
"""

import fcntl
import os

import pytest

FILE = "SHARED_QUEUE"


def take() -> int:
    """Return the number of tests that were taken, and take one more."""
    with open(os.environ[FILE], "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        taken = int(file.read() or 0)
        file.seek(0)
        file.write(str(taken + 1))
    return taken


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run tests until all are taken; after an error of the collection pytest says what is wrong."""
    if session.testsfailed:
        return None

    def following() -> pytest.Item | None:
        number = take()
        return session.items[number] if number < len(session.items) else None

    item = following()
    while item is not None:
        after = following()  # which fixtures the next one keeps is a matter of this one's end
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        item = after
    return True
