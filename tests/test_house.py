"""The house rules that a machine can check: the order of the rooms, no circles, public names, left-overs."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import neardup

SOURCE = Path(neardup.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

#: The rooms in their one order: a room imports itself and rooms above it. Imports inside functions, and those for
#: types alone, count, too.
ROOMS = [
    "version",
    "errors",
    "files",
    "runtime",
    "times",
    "kernels",
    "text",
    "recipe",
    "documents",
    "features",
    "transformers",
    "classifier",
    "keep",
    "search",
    "pages",
    "pipeline",
    "contamination",
    "index",
    "stream",
    "service",
    "labels",
    "evaluation",
    "training",
    "labelling",
    "exploration",
    "watch",
    "spark",
    "api",
    "__init__",
    "cli",
    "__main__",
]


def name_of(path: Path) -> str:
    return ".".join(("neardup", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")


NAMES = {name_of(path): path for path in MODULES}


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All nodes of a module but expressions, of which there are most."""
    found: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
    for node in found:
        found += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
    return found


def imported(path: Path) -> set[str]:
    """The modules of ours that a module imports anywhere."""
    found: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in NAMES}
        elif isinstance(node, ast.ImportFrom) and node.module in NAMES and not node.level:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & NAMES.keys() or {node.module}
            if inner - NAMES.keys():
                found.add(node.module)
    return found - {name_of(path)}


def room_of(name: str) -> str:
    return "__init__" if name == "neardup" else name.split(".")[1]


@cache
def imports() -> dict[str, set[str]]:
    return {name: imported(path) for name, path in NAMES.items()}


def test_every_room_is_in_the_order() -> None:
    assert {room_of(name) for name in NAMES} == set(ROOMS)


def test_the_tests_of_a_room_are_in_the_folder_of_its_name() -> None:
    folders = {path.parent.name for path in Path(__file__).parent.glob("*/*.py")}
    assert folders - {"promises"} <= set(ROOMS)


def test_a_room_imports_only_rooms_above_it() -> None:
    place = {room: at for at, room in enumerate(ROOMS)}
    assert not [
        (name, other)
        for name, others in imports().items()
        for other in others
        if place[room_of(other)] > place[room_of(name)]
    ]


def test_no_modules_import_each_other_in_a_circle() -> None:
    left = {name: set(others) for name, others in imports().items()}
    while free := {name for name, others in left.items() if not others & left.keys()}:
        for name in free:
            del left[name]
    assert not left


def test_no_module_asserts_pickles_or_uses_a_network() -> None:
    for path in MODULES:
        assert path.stem not in {"utils", "helpers", "misc", "common"}
        nodes = nodes_of(path)
        assert not [node.lineno for node in nodes if isinstance(node, ast.Assert)], path
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        assert not names & {"pickle", "marshal", "shelve", "socket", "urllib.request", "http.client"}, path


def test_public_names_are_one_sorted_list_and_all_exist() -> None:
    assert neardup.__all__ == sorted(neardup.__all__)
    for name in neardup.__all__:
        assert getattr(neardup, name) is not None
        assert name in dir(neardup)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        neardup.nonsense  # noqa: B018


def test_the_package_imports_nothing_heavy_and_a_run_few_modules() -> None:
    code = (
        "import neardup as nd, sys; print([m for m in ('numba', 'pyarrow', 'numpy') if m in sys.modules]); "
        "nd.dedup(['a rose is a rose', 'a daisy']); "
        "print(sum(name == 'neardup' or name.startswith('neardup.') for name in sys.modules))"
    )
    heavy, count = subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()
    assert heavy == "[]"
    assert int(count) <= 80
