"""Processes that share tests run each of them once."""

import os
import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"

TESTS = """
import time
import pytest

@pytest.mark.parametrize("number", range(24))
def test(number):
    time.sleep(0.05)
    assert number != 7
"""


def test_processes_share_tests(tmp_path):
    tests, queue = tmp_path / "test_many.py", tmp_path / "queue"
    tests.write_text(TESTS)
    queue.write_text("")
    command = [sys.executable, "-m", "pytest", "-v", "-p", "shared_queue", "-p", "no:cacheprovider"]
    command += ["-p", "no:xdist", str(tests)]
    env = os.environ | {"PYTHONPATH": str(TOOLS), "SHARED_QUEUE": str(queue)}
    env.pop("PYTEST_ADDOPTS", None)
    processes = [
        subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    printed = [process.communicate()[0] for process in processes]

    lines = [line for text in printed for line in text.splitlines()]
    ran = [line.split()[0] for line in lines if line.startswith("test_many.py::")]
    assert sorted(ran) == sorted(f"test_many.py::test[{number}]" for number in range(24))
    assert sorted(process.returncode for process in processes) == [0, 0, 1]
    assert sum("1 failed" in text for text in printed) == 1
