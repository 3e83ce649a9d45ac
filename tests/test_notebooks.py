"""The notebooks of the examples run from top to bottom, keep no outputs, and load nothing from a network."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import neardup as nd

nbclient = pytest.importorskip("nbclient", reason="pip install nbclient ipykernel to run the notebooks")
pytest.importorskip("ipykernel", reason="pip install nbclient ipykernel to run the notebooks")

FOLDER = Path(__file__).parent.parent / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
#: Whatever a page loads: scripts, images, styles; but not XML namespaces, nor links to click.
LOADED = re.compile(r"""(?:src=|@import|url\()\s*["']?https?:|<link[^>]+https?:""")


def outputs_of(cell: Any) -> list[Any]:
    return list(cell.get("outputs", [])) if cell["cell_type"] == "code" else []


def test_each_tutorial_has_a_notebook() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["labels", "newsroom", "paper", "shards"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_keeps_no_outputs(path: Path) -> None:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    assert not any(outputs_of(cell) or cell.get("execution_count") for cell in cells)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_loads_nothing(path: Path) -> None:
    import nbformat

    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    resources = {"metadata": {"path": str(FOLDER)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    outputs = [output for cell in notebook.cells for output in outputs_of(cell)]
    assert outputs
    for output in outputs:
        assert output["output_type"] in ("execute_result", "display_data", "stream")
        assert output.get("name") != "stderr" or "compiling" in output["text"], output
        for content in output.get("data", {}).values():
            assert not LOADED.search(str(content))


def test_explanations_and_comparisons_render_with_escaped_texts() -> None:
    pytest.importorskip("altair")
    texts = ["a <b>rose</b> is a rose is a rose", "a <b>rose</b> is a rose is a tulip", "something else"]
    cell = nd.dedup(texts, features="words:1", threshold=0.5).explain(0, 1)._repr_html_()
    assert cell is not None
    assert "&lt;b&gt;" in cell
    assert "<b>" not in cell
    assert "<mark>tulip</mark>" in cell
    found = nd.compare(texts, [(0, 1, 1), (0, 2, 0)], recipes=["default", "ddd"])._repr_html_()
    assert found is not None
    assert "default" in found
    assert not LOADED.search(found)
