import os
from pathlib import Path

import nbformat
import pytest
import results
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.mark.parametrize("notebook", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_run(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{results.program().parent}{os.pathsep}{os.environ['PATH']}")
    cells = nbformat.read(notebook, as_version=4)
    NotebookClient(
        cells, timeout=600, kernel_name="python3", resources={"metadata": {"path": NOTEBOOKS}}
    ).execute()
    figures = [
        output
        for cell in cells.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert figures or "error-model" in notebook.stem, "nothing was drawn"
