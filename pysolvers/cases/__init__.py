"""The cases that the command line runs: the demo and the experiments of papers."""
