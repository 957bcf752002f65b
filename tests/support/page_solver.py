"""The solver that docs/architecture.md shows: exactly its text is run."""

import re
import sys
import types
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[2] / "docs/architecture.md"
VISCOSITY, END, EXTENT = 0.05, 0.5, (-1.5, 2.0)


def module_of_the_page():
    """Return the module whose source is the code of the page."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert 80 < len(code.splitlines()) < 300
    made = types.ModuleType("burgers_of_the_page")
    sys.modules[made.__name__] = made
    exec(compile(code, str(PAGE), "exec"), vars(made))
    return made


def wave(x, t=0.0):
    """A front that travels with the speed 1/2: u from 1 to 0, an exact solution."""
    return 0.5 - 0.5 * np.tanh((x - t / 2) / (4 * VISCOSITY))


def burgers(module, n=65, dt=0.02, **options):
    options = {"initial": wave} | options
    return module.Burgers(n, extent=EXTENT, viscosity=VISCOSITY, dt=dt, **options)
