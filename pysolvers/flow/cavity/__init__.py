"""The steady lid-driven cavity, in streamfunction and vorticity."""
