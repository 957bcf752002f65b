"""The lid-driven cavity on a staggered grid, stepped in time."""
