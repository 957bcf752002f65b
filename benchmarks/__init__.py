"""Measurements of this project: benchmarks, experiments of papers, their records and tables."""
