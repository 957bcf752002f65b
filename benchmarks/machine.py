"""The properties of the machine that records of benchmarks contain."""

import os
import re

from pysolvers._machine import (
    cpu_count,
    cpu_model,
    gpu,
    last_level_cache,
    machine,
    output_of,
    versions,
)

__all__ = [
    "GPU_PACKAGES",
    "cpu_count",
    "cpu_model",
    "gpu",
    "last_level_cache",
    "load",
    "machine",
    "nvcc",
    "versions",
]

# Distributions that a record of a GPU lists: they provide arrays, peers and libraries.
GPU_PACKAGES = (
    "numpy",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "torch",
    "torchaudio",
    "jax",
    "numba",
    "accelerated-scan",
    "solvax",
    "smolgp",
    "cuda-core",
    "nvidia-cusparse",
)


def load() -> float | None:
    """Return the mean number of runnable processes over the last minute; None if unknown."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def nvcc() -> str | None:
    """Return the version of the CUDA compiler on the path; None if there is none."""
    text = output_of("nvcc", "--version") or ""
    found = re.search(r"release [\d.]+, V([\d.]+)", text)
    return found[1] if found else None
