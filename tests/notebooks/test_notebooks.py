"""The notebooks run from start to end, and are kept without output, except those of STORED.

`checks/NAME.py` runs as the last cell of the notebook of this name: what its values must satisfy.
"""

from pathlib import Path

import nbformat
import pytest

# The documentation shows the outputs that are stored in these: of a GPU, and of PyTorch, which is
# too large to be installed for the documentation.
STORED = ("03_gpu", "12_gradients_torch")

CHECKS = Path(__file__).parent / "checks"
NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


# `make docs` runs all of them.
SHORT = [
    path if path.stem == "01_tridiagonal" else pytest.param(path, marks=pytest.mark.slow)
    for path in NOTEBOOKS
]


def read(path):
    return nbformat.read(path, as_version=4)


def test_there_are_notebooks():
    assert NOTEBOOKS
    assert {path.stem for path in CHECKS.glob("*.py")} <= {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_kept_without_output(path):
    code = [cell for cell in read(path).cells if cell.cell_type == "code"]
    kept = [output for cell in code for output in cell.outputs]

    if path.stem in STORED:
        assert not any(output.output_type == "error" for output in kept)
        assert "no GPU" not in "".join(output.get("text", "") for output in kept)
    else:
        assert not kept and all(cell.execution_count is None for cell in code)


# The documentation runs the notebooks when it is built. The kernel's own libraries warn of what no
# notebook can change.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", SHORT, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path, monkeypatch):
    if "torch" in path.stem:
        pytest.importorskip("torch", exc_type=ImportError)
    if "distributed" in path.stem:
        pytest.importorskip("mpi4py")
    client = pytest.importorskip("nbclient").NotebookClient
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))

    notebook, check = read(path), CHECKS / f"{path.stem}.py"
    if check.exists():
        notebook.cells.append(nbformat.v4.new_code_cell(check.read_text()))
    client(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
