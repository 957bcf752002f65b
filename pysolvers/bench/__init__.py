"""Benchmarks of the command line, and what they measure with."""
