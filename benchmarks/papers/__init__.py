"""The experiments of papers: ``pysolvers reproduce PAPER``."""
