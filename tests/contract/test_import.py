"""What ``import pysolvers`` imports: nothing that a program may not need."""

import subprocess
import sys

import pysolvers


def imported_by(statement):
    """Return the modules of the package, and others that take long, after a statement."""
    names = "pysolvers", "numpy", "scipy", "zipfile", "importlib.metadata", "json", "matplotlib"
    code = f"{statement}\nimport sys\nprint(*(m for m in sys.modules if m.startswith({names!r})))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_the_package_alone_imports_no_solver():
    assert imported_by("import pysolvers") == {"pysolvers"}


def test_a_name_imports_what_it_needs():
    lines = imported_by("from pysolvers import solve_tridiagonal")

    assert "pysolvers.tridiagonal" in lines
    for other in ("pysolvers.heat", "pysolvers._solver", "pysolvers.flow", "scipy", "matplotlib"):
        assert other not in lines
    found = imported_by("import pysolvers\npysolvers.heat.HeatADI")
    assert "pysolvers.heat.adi" in found
    assert "pysolvers.flow" not in found


def test_every_public_name_is_found_and_kept():
    for name in pysolvers.__all__:
        assert getattr(pysolvers, name) is vars(pysolvers)[name]
