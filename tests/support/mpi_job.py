"""Jobs of several ranks under an MPI launcher."""

import os
import subprocess
import sys
from pathlib import Path

from pysolvers.distributed._launch import find_launcher

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "tests/distributed"
LAUNCHER = find_launcher()


def is_mpich():
    """Whether the launcher is that of MPICH."""
    run = subprocess.run([LAUNCHER, "--version"], capture_output=True, text=True, check=False)
    return "HYDRA" in run.stdout


def start(ranks, script, *arguments):
    """Start a script of tests/distributed on some ranks; each uses one thread."""
    return started(LAUNCHER, "-n", str(ranks), sys.executable, SCRIPTS / script, *arguments)


def started(*command):
    """Start a process that can import the package and what the tests share."""
    paths = [ROOT, ROOT / "tests/support", SCRIPTS, os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYSOLVERS_NUM_THREADS": "1",
        "PYTHONFAULTHANDLER": "1",
        "MPIR_CVAR_ENABLE_GPU": "0",  # of MPICH: the messages are of host memory
    }
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(job, seconds=240):
    """Wait for a job; return its status and what it wrote."""
    try:
        out, errors = job.communicate(timeout=seconds)
    finally:
        job.kill()
    return job.returncode, out, errors
