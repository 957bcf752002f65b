"""Figures of results; they need matplotlib, from the extra ``plot``."""
