"""Configuration of the Sphinx documentation."""

import shutil
from importlib.metadata import version as installed_version
from importlib.util import find_spec
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
exclude_patterns = ["_build"]
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
nb_execution_mode = "force"  # a cache does not notice that the package changed
nb_execution_excludepatterns = ["03_gpu.ipynb"]
if find_spec("torch") is None:  # it is large; the notebook shows the outputs that are stored in it
    nb_execution_excludepatterns.append("12_gradients_torch.ipynb")
if find_spec("mpi4py") is None:  # where MPICH has no wheel
    nb_execution_excludepatterns.append("10_distributed.ipynb")
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True

autodoc_typehints = "none"
autosummary_generate = True
autodoc_mock_imports = [name for name in ("torch",) if find_spec(name) is None]
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False

html_theme = "furo"
html_title = f"pysolvers {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
