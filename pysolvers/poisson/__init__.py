"""Direct solution of the Poisson equation on a rectangle or a box."""

from .fast import FastPoisson

__all__ = ["FastPoisson"]
