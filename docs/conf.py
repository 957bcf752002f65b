"""Configuration of the Sphinx documentation."""

import ast
import json
import os
import re
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
    names = ["distributed", "flow", "heat", "jax", "papers", "parabolic", "relaxation"]
    names += ["smoothing", "spline", "transport"]
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


# Classes whose objects other names return: they are used where these are.
MADE_BY = {
    "BlockTridiagonalFactor": "factor_block_tridiagonal",
    "PentadiagonalFactor": "factor_pentadiagonal",
    "ThetaFactor": "factor_theta",
    "TridiagonalFactor": "factor_tridiagonal",
    "jax.TridiagonalFactor": "jax.factor_tridiagonal",
    "torch.TridiagonalFactor": "torch.factor_tridiagonal",
    "flow.CavityResult": "LidDrivenCavity",
    "flow.CylinderResult": "SquareCylinder",
    "flow.StaggeredResult": "StaggeredCavity",
    "heat.HeatResult": "HeatADI",
    "parabolic.ParabolicResult": "ParabolicADI",
    "relaxation.RelaxationResult": "LMSOR",
    "smoothing.BaselineResult": "smoothing.arpls",
    "transport.AdvectionDiffusionResult": "AdvectionDiffusion",
    "transport.SuggestedStep": "transport.suggest_dt",
    "transport.TransportResult": "GCEIDD",
    "SolveInfo": "solve_tridiagonal",
    "SplitBlockFactor": "distributed.Group",
    "distributed.SplitFactor": "distributed.Group",
    "flow.CavityHistory": "LidDrivenCavity",
    "flow.CentrelineExtrema": "LidDrivenCavity",
    "flow.CylinderHistory": "SquareCylinder",
    "flow.ForceBalance": "SquareCylinder",
    "flow.StaggeredHistory": "StaggeredCavity",
    "flow.Strouhal": "SquareCylinder",
    "flow.SurfacePressure": "SquareCylinder",
    "flow.Vortex": "LidDrivenCavity",
    "jax.PiecewisePolynomial": "jax.CubicSpline",
    "relaxation.RelaxationHistory": "LMSOR",
    "spline.PiecewisePolynomial": "CubicSpline",
}
# Figures are used where the results are made that they draw.
DRAWN_BY = {
    "cavity": "LidDrivenCavity",
    "cylinder": "SquareCylinder",
    "heat": "HeatADI",
    "relaxation": "LMSOR",
    "staggered": "StaggeredCavity",
    "transport": "GCEIDD",
}


def reference_names() -> list[str]:
    """Return the names of the reference, with their modules."""
    names, module = [], "pysolvers"
    for line in (HERE / "api.md").read_text().splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"   [A-Za-z_][\w.]*", line):
            names.append(f"{module}.{line.strip()}")
    return names


def mentions(name: str, texts: dict[str, str]) -> list[str]:
    """Return the pages whose text names an object that no code of a page imports."""
    _, *modules, last = name.split(".")
    if modules[:1] in (["jax"], ["torch"]):
        texts = {page: text for page, text in texts.items() if page == modules[0]}
    elif modules[:1] == ["scipy"]:
        texts = {"coming_from": texts["coming_from"]}
    elif modules[:1] == ["papers"]:
        return ["reproductions"]
    elif modules:
        last = ".".join((*modules, last))
    return [page for page, text in texts.items() if re.search(rf"`[^`\n]*\b{last}\b", text)]


def used_in() -> dict[str, list[str]]:
    """Return the pages that use a public name, by this name: links for its page.

    They are the pages whose code imports it, else those whose text names it.
    """
    pages, texts = {}, {}
    others = ("api", "changelog", "architecture", "designs", "index", "measurements", "ranks")
    for path in sorted([*HERE.glob("*.md"), *HERE.glob("theory/*.md")]):
        if path.stem not in (*others, "records", "references"):
            page, text = path.relative_to(HERE).with_suffix("").as_posix(), path.read_text()
            code = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
            pages[page], texts[page] = "\n".join(code), text
    for path in (HERE.parent / "notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text())["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        # Without the lines for IPython.
        pages[f"notebooks/{path.stem}"] = re.sub(r"^[%!].*$", "", "\n".join(code), flags=re.M)
    found: dict[str, list[str]] = {}
    for page, code in sorted(pages.items()):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pysolvers"):
                for alias in node.names:
                    links = found.setdefault(f"{node.module}.{alias.name}", [])
                    if page not in links:
                        links.append(page)
    for name in reference_names():
        if name not in found:
            found[name] = mentions(name, texts)
    for name, maker in MADE_BY.items():
        found[f"pysolvers.{name}"] = found.get(f"pysolvers.{maker}", [])
    for name in reference_names():
        if name.startswith("pysolvers.plots."):
            found[name] = found.get(f"pysolvers.{DRAWN_BY[name.split('.')[2]]}", [])
    if missing := [name for name in reference_names() if not found.get(name)]:
        raise ValueError(f"no page uses or names {', '.join(missing)}")
    return found


autosummary_context = {"properties": properties(), "used_in": used_in()}
autodoc_mock_imports = [name for name in ("torch",) if find_spec(name) is None]
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False

html_theme = "furo"
html_title = f"pysolvers {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
