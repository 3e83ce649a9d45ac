"""The house rules that a machine can check: directions of imports, public names, sizes, left-overs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import neardup

SOURCE = Path(neardup.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

#: What each room may import besides itself; GROUND is what all may stand on.
GROUND = {
    "errors",
    "wholefile",
    "recipe",
    "measures",
    "scratch",
    "parallel",
    "clock",
    "times",
    "spill",
    "content",
    "_kernels",
}
MAY_IMPORT = {
    "errors": set(),
    "wholefile": {"errors"},
    "measures": {"errors"},
    "recipe": {"errors", "measures", "text"},
    "scratch": set(),
    "spill": {"errors"},
    "parallel": set(),
    "clock": set(),
    "times": set(),
    "_kernels": {"text"},
    "content": {"errors", "times"},
    "documents": {"errors", "wholefile", "content"},
    "text": GROUND - {"recipe"},
    "keep": GROUND,
    "ordering": GROUND | {"documents"},
    "pairs": GROUND | {"keep"},
    "reading": GROUND | {"documents", "pairs"},
    "features": GROUND | {"text", "documents", "reading"},
    "decision": GROUND | {"", "documents", "features", "vector"},
    "search": GROUND | {"features", "pairs", "decision", "vector"},
    "explain": GROUND | {"text", "features", "search", "decision", "vector"},
    "vector": GROUND | {"text", "features", "documents"},
    "pages": GROUND | {"sidebyside"},
    "sidebyside": GROUND | {"text"},
    "material": GROUND | {"documents", "reading", "pairs", "pipeline", "decision", "vector", "sidebyside"},
    "sketches": GROUND,
    "window": GROUND | {"features", "search"},
    "flow": GROUND | {"documents", "features", "text", "search", "window", "explain", "decision", "vector"},
    "replay": GROUND
    | {"", "documents", "features", "flow", "window", "pages", "decision", "pairs", "search"}
    | {"reporting", "material", "sidebyside"},
    "watch": GROUND | {"flow", "content", "explain", "decision", "documents", "pages", "reporting", "sidebyside"},
    "details": GROUND | {"decision"},
    "findings": GROUND | {"documents", "search", "keep", "pairs", "decision"},
    "reporting": GROUND
    | {"", "documents", "text", "keep", "pairs", "search", "decision", "findings", "material", "sidebyside", "pages"},
    "verdicts": GROUND | {"keep", "pairs"},
    "result": GROUND
    | {"documents", "search", "keep", "pairs", "explain", "verdicts", "details", "features", "decision", "vector"}
    | {"findings", "reporting"},
    "pipeline": GROUND
    | {"", "documents", "reading", "features", "search", "ordering", "pairs"}
    | {"result", "details", "decision", "vector", "findings"},
    "retrieval": GROUND | {"documents", "features", "search", "pairs", "pipeline", "decision", "vector"},
    "evaluation": GROUND
    | {"", "documents", "pairs", "pipeline", "result", "search", "decision", "vector", "labelling", "pages"},
    "learning": GROUND | {"", "documents", "features", "evaluation", "vector", "decision"},
    "labelling": GROUND
    | {"documents", "text", "features", "pairs", "reading", "pipeline", "evaluation", "wholefile"}
    | {"vector", "decision", "learning", "material", "sidebyside"},
    "auditing": GROUND
    | {"", "documents", "reading", "pairs", "pipeline", "result", "evaluation", "labelling"}
    | {"decision", "vector", "material", "pages", "sidebyside"},
    "exploring": GROUND
    | {"", "documents", "text", "features", "reading", "pairs", "keep", "pipeline", "search", "result", "details"}
    | {"findings", "material", "vector", "sidebyside", "pages"},
    "transformers": GROUND | {"text", "documents", "features", "sketches"},
    "api": GROUND
    | {"documents", "ordering", "reading", "pipeline", "result", "retrieval", "evaluation", "search"}
    | {"decision", "vector", "learning", "auditing", "exploring"},
    "spark": GROUND
    | {"", "api", "documents", "features", "search", "keep", "ordering", "details", "decision", "vector"}
    | {"pairs", "reading"}
    | {"flow", "window", "watch", "replay"},
    "": GROUND | {"api", "flow", "result", "sketches", "decision"},
    "cli": GROUND
    | {"", "api", "documents", "text", "features", "explain", "ordering", "pipeline", "result", "retrieval"}
    | {"evaluation", "content", "flow", "replay", "watch", "window"}
    | {"decision", "vector", "learning", "labelling", "auditing", "material", "pages"}
    | {"reporting", "search", "exploring", "spark"},
    "__main__": {"cli"},
}


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            if node.module == "neardup":
                known = {p.stem for p in SOURCE.glob("*.py")} | {p.name for p in SOURCE.iterdir() if p.is_dir()}
                found |= {f"neardup.{a.name}" if a.name in known else "neardup" for a in node.names}
            else:
                found.add(node.module)
    return {name for name in found if name == "neardup" or name.startswith("neardup.")}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path) -> None:
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    own = "" if own == "__init__" else own
    assert own in MAY_IMPORT, f"say in this test what {own} may import"
    wrong = {name for name in imported(path) if room(name) != own and room(name) not in MAY_IMPORT[own]}
    assert not wrong


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_nothing_asserts_or_pickles(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    assert path.stem not in {"utils", "helpers", "misc", "common"}
    assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree))
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    assert not names & {"pickle", "marshal", "shelve", "socket", "urllib.request", "http.client"}


def test_public_names_are_one_sorted_list_and_all_there() -> None:
    assert neardup.__all__ == sorted(neardup.__all__)
    for name in neardup.__all__:
        assert getattr(neardup, name) is not None
        assert name in dir(neardup)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        neardup.nonsense  # noqa: B018


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import neardup, sys; print([m for m in ('numba', 'pyarrow', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
