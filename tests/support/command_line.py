"""The command `pysolvers` within the process of a test."""

from pysolvers._cli import main

__all__ = ["main"]
