"""Leaves each rank of an MPI job its own device: rank r uses device r, or the devices in turn.

To be imported before any library that uses CUDA.
"""

import os
import subprocess

RANK = int(os.environ.get("PMI_RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or 0)
FOUND = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True)
DEVICES = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(
    str(k) for k, _ in enumerate(FOUND.stdout.splitlines())
)
NAMES = DEVICES.split(",")
os.environ["CUDA_VISIBLE_DEVICES"] = NAMES[RANK % len(NAMES)]
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
