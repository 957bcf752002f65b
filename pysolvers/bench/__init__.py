"""Benchmarks of the command line, and their common parts."""
