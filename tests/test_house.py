"""The house rules that a machine can check: the order of the rooms, no circles, public names, left-overs."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from paths import SAMPLE

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
    "items",
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


#: What a module imports anywhere: names of another, or others.
IMPORTS = re.compile(r"^ *(?:from (\S+) import (\([^)]*\)|.*)|import (.*))", re.MULTILINE)


@cache
def imports() -> dict[str, set[str]]:
    """The modules that each module imports anywhere, also for types alone."""
    found: dict[str, set[str]] = {}
    for name, path in NAMES.items():
        found[name] = others = set()
        for module, listed, plain in IMPORTS.findall(path.read_text("utf-8")):
            words = re.findall(r"\w+", re.sub(r" as \w+", "", listed))
            inner = {f"{module}.{word}" for word in words} & NAMES.keys()
            others |= inner | set(re.findall(r"[\w.]+", plain))
            if len(inner) < len(words):
                others.add(module)
        others.discard(name)
    return found


def room_of(name: str) -> str:
    return "__init__" if name == "neardup" else name.split(".")[1]


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
        for other in others & NAMES.keys()
        if place[room_of(other)] > place[room_of(name)]
    ]


def test_no_modules_import_each_other_in_a_circle() -> None:
    left = {name: others & NAMES.keys() for name, others in imports().items()}
    while free := {name for name, others in left.items() if not others & left.keys()}:
        for name in free:
            del left[name]
    assert not left


def test_no_module_asserts_pickles_or_uses_a_network() -> None:
    for name, path in NAMES.items():
        assert path.stem not in {"utils", "helpers", "misc", "common"}
        assert not re.search(r"^ *assert ", path.read_text("utf-8"), re.MULTILINE), path
        banned = {"pickle", "marshal", "shelve", "socket", "urllib.request", "http.client"}
        assert not imports()[name] & banned, path


def test_public_names_are_one_sorted_list_and_all_exist() -> None:
    assert neardup.__all__ == sorted(neardup.__all__)
    for name in neardup.__all__:
        assert getattr(neardup, name) is not None
        assert name in dir(neardup)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        neardup.nonsense  # noqa: B018


def test_the_package_imports_nothing_heavy_and_a_run_of_files_neither_pandas_nor_many_modules() -> None:
    code = (
        "import neardup as nd, sys; print([m for m in ('numba', 'pyarrow', 'numpy') if m in sys.modules]); "
        f"nd.dedup_files({str(SAMPLE)!r}); print('pandas' in sys.modules); "
        "print(sum(name == 'neardup' or name.startswith('neardup.') for name in sys.modules))"
    )
    heavy, pandas, count = subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()
    assert (heavy, pandas) == ("[]", "False")
    assert int(count) <= 90
