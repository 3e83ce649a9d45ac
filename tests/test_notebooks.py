"""The notebooks of the examples run from top to bottom, keep no outputs, and load nothing from a network."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

import neardup as nd

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
#: Whatever a page loads: scripts, images, styles; but not XML namespaces, nor links to click.
LOADED = re.compile(r"""(?:src=|@import|url\()\s*["']?https?:|<link[^>]+https?:""")


def shown(value: Any) -> str:
    """What a notebook shows of a value."""
    forms = [getattr(value, name)() for name in ("_repr_mimebundle_", "_repr_html_") if hasattr(value, name)]
    return str(forms or value)


def run_cell(code: str, names: dict[str, Any]) -> Any:
    """Run a cell in the names of those before it; return the value of its last line."""
    *lines, last = ast.parse(code).body
    is_value = isinstance(last, ast.Expr)
    exec(compile(ast.Module(lines if is_value else [*lines, last], []), "cell", "exec"), names)  # noqa: S102
    return eval(ast.unparse(last), names) if is_value else None  # noqa: S307


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_loads_nothing_and_keeps_no_outputs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("altair")
    monkeypatch.chdir(path.parent)
    cells = [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells)
    names: dict[str, Any] = {}
    outputs = [shown(run_cell("".join(cell["source"]), names)) for cell in cells]
    assert any("<" in output for output in outputs)
    assert not [output for output in outputs if LOADED.search(output)]


def test_each_tutorial_has_a_notebook() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["labels", "newsroom", "paper", "shards"]


def test_explanations_and_comparisons_render_with_escaped_texts() -> None:
    pytest.importorskip("altair")
    texts = ["a <b>rose</b> is a rose is a rose", "a <b>rose</b> is a rose is a tulip", "something else"]
    cell = shown(nd.dedup(texts, features="words:1", threshold=0.5).explain(0, 1))
    assert "&lt;b&gt;" in cell
    assert "<b>" not in cell
    assert "<mark>tulip</mark>" in cell
    found = shown(nd.compare(texts, [(0, 1, 1), (0, 2, 0)], recipes=["default", "ddd"]))
    assert "default" in found
    assert not LOADED.search(found)
