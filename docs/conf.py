"""Configuration of the Sphinx documentation."""

from importlib.metadata import version as installed_version

project = "pysolvers"
author = "the pysolvers authors"
copyright = author
release = version = installed_version("pysolvers")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autosummary_generate = True
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False

html_theme = "furo"
html_title = f"pysolvers {release}"
