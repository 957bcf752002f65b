"""Configuration of the Sphinx documentation."""

import os
import shutil
import sys
from functools import cached_property
from importlib import import_module
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from inspect import getattr_static
from pathlib import Path

project = "pysolvers"
author = "the pysolvers authors"
copyright = author
release = version = installed_version("pysolvers")

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx-mathjax-offline",  # the pages show formulas without a network
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates"]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# The notebooks are kept without outputs and are executed by the build. The notebook for a GPU
# shows the outputs that are stored in it, if there are any.
HERE = Path(__file__).parent
shutil.copytree(
    HERE.parent / "notebooks",
    HERE / "notebooks",
    dirs_exist_ok=True,
    ignore=shutil.ignore_patterns(".*"),
)
# The page of the records is made of them.
sys.path.append(str(HERE.parent))
import_module("benchmarks.documents.records_page").write()
nb_execution_mode = "force"  # a cache does not notice that the package changed
nb_execution_excludepatterns = ["03_gpu.ipynb"]
if find_spec("torch") is None:  # it is large; the notebook shows the outputs that are stored in it
    nb_execution_excludepatterns.append("12_gradients_torch.ipynb")
if find_spec("mpi4py") is None:  # where MPICH has no wheel
    nb_execution_excludepatterns.append("10_distributed.ipynb")
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True
os.environ["TQDM_DISABLE"] = "1"  # a page shows results, not the progress of their computation

autodoc_typehints = "none"
autosummary_generate = True


def properties() -> dict[str, list[str]]:
    """Return the names of the properties of the public classes, by the names of these.

    The table of attributes of a class contains its properties. Fields of results have no
    docstring; the parameters of the class describe them.
    """
    names = ["distributed", "flow", "heat", "jax", "papers", "parabolic", "relaxation", "smoothing", "spline"]
    names += ["transport"]
    names += [f"papers.{name}" for name in ("gceidd2022", "lmsor2012", "survey2014", "wei2013")]
    modules = [import_module("pysolvers"), *(import_module(f"pysolvers.{name}") for name in names)]
    found = {}
    for module in modules:
        for name in module.__all__:
            kind = getattr(module, name)
            if isinstance(kind, type):
                kinds = property, cached_property
                members = ((each, getattr_static(kind, each)) for each in dir(kind))
                shown = [each for each, member in members if isinstance(member, kinds)]
                shown = [each for each in shown if not each.startswith("_")]
                found[f"{module.__name__}.{name}"] = shown
    return found


autosummary_context = {"properties": properties()}
autodoc_mock_imports = [name for name in ("torch",) if find_spec(name) is None]
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False

html_theme = "furo"
html_title = f"pysolvers {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
