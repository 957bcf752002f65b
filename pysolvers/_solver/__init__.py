"""What all solvers share: settings, loops, results and files."""
