"""``neardup index``, and what takes an index: ``--against``, ``query`` and ``neighbors``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import FOX, ROSE, RULES, names_in, neardup, read_lines, refused, write_lines
from sentences import says

OLD: list[dict[str, Any]] = [{"id": "fox", "text": FOX}, {"id": "other", "text": "something else altogether"}]
NEW: list[dict[str, Any]] = [
    {"id": "n1", "text": FOX + " today"},
    {"id": "n2", "text": ROSE},
    {"id": "n3", "text": ROSE.upper()},
]


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path, Path]:
    old, new, index = tmp_path / "old.jsonl", tmp_path / "new.jsonl", tmp_path / "archive"
    write_lines(old, OLD)
    write_lines(new, NEW)
    stderr = neardup("index", "build", old, "-o", index, *RULES).stderr
    assert "2 documents" in stderr
    assert "words:3" in stderr
    return new, old, index


def documents(index: Path) -> int:
    return int(json.loads(neardup("index", "info", index, "--json").stdout)["documents"])


def test_an_index_gives_the_answers_of_its_files(sides: tuple[Path, Path, Path], tmp_path: Path) -> None:
    _, old, index = sides
    document = tmp_path / "document.txt"
    document.write_text(FOX + " again")
    for command in (
        ("similar", "-d", document, "--json"),
        ("similar", "-d", document, "--k", "1"),
        ("similar", "--k", "1"),
    ):
        answers = [neardup(command[0], *where, *command[1:]).stdout for where in ((index,), (old, *RULES))]
        assert answers[0] == answers[1]
        assert "-d" not in command or "fox" in answers[0]


def test_kept_documents_of_a_delivery_are_added_to_the_index(sides: tuple[Path, Path, Path], tmp_path: Path) -> None:
    new, _, index = sides
    kept = tmp_path / "kept.jsonl"
    stderr = neardup("dedup", new, "--against", index, "--add", "-o", kept).stderr
    assert "3 documents: 1 kept, 2 dropped" in stderr
    assert "2 documents; 1 dropped as matches" in stderr
    assert "1 document added" in stderr
    assert [row["id"] for row in read_lines(kept)] == ["n2"]
    assert documents(index) == 3
    neardup("dedup", new, "--against", index, "--add", "-o", kept, "--force")
    # Delivered again, the same documents are kept, and none is added twice.
    assert [row["id"] for row in read_lines(kept)] == ["n2"]
    assert documents(index) == 3
    assert documents(index) == 3
    write_lines(new, [{"id": "n2", "text": "a text that nobody has seen before, under a name that is there"}])
    before = names_in(tmp_path), kept.read_bytes()
    assert says(
        refused("dedup", new, "--against", index, "--add", "-o", kept, "--force"), "'n2'", "remove the old one first"
    )
    assert (names_in(tmp_path), kept.read_bytes()) == before
    assert documents(index) == 3


def test_an_index_grows_and_shrinks(sides: tuple[Path, Path, Path], tmp_path: Path) -> None:
    new, _, index = sides
    neardup("index", "add", index, new)
    assert documents(index) == 5
    ids = tmp_path / "ids.txt"
    ids.write_text("n1\nn3\nnobody\n")
    stderr = neardup("index", "remove", index, "--ids", ids).stderr
    assert "2 documents removed" in stderr
    assert "1 id of" in stderr
    assert documents(index) == 3
    assert "2, which compact frees" in neardup("index", "info", index).stderr
    neardup("index", "compact", index)
    found = json.loads(neardup("index", "info", index, "--json").stdout)
    assert (found["documents"], found["removed"], found["segments"]) == (3, 0, 1)
    assert "is intact" in neardup("index", "check", index).stderr
    (name,) = index.glob("*/entries")
    name.write_bytes(bytes([name.read_bytes()[0] ^ 1]) + name.read_bytes()[1:])
    assert says(refused("index", "check", index), "entries", "damaged", "build the index again")


def test_options_that_do_not_fit_are_refused(sides: tuple[Path, Path, Path], tmp_path: Path) -> None:
    new, old, index = sides
    out = "-o", tmp_path / "out.jsonl"
    before = names_in(tmp_path)
    against = "--against", index
    assert says(refused("index", "build", new, "-o", index), "exists", f"index add {index}")
    assert says(refused("index", "build", new, "-o", tmp_path / "i", "--recipe", "imatch"), "imatch", "choose another")
    assert says(refused("index", "info", tmp_path), "not an index", "index build CORPUS -o INDEX")
    assert says(refused("index", "add", index, old, "--strict-ids"), "'fox'", "leave the new one out")
    assert says(refused("dedup", new, *against, *out, "--strict-ids"), "--strict-ids", "--add")
    assert says(refused("index", "remove", index, "--ids", tmp_path / "no"), "cannot be read")
    assert says(refused("dedup", new, *against, *out, "--threshold", "0.4"), "0.8", "0.4", "leave the recipe out")
    assert says(refused("dedup", new, *against, *against, *out), "given alone")
    assert says(refused("dedup", new, "--add", *out), "--add", "--against INDEX")
    assert says(refused("dedup", new, *against, "--add", "--dry-run"), "--dry-run")
    named = write_lines(tmp_path / "named.jsonl", [{**row, "kind": "a"} for row in NEW])
    assert says(refused("dedup", named, *against, *out, "--within", "kind"), "archive", "'kind'", "--within", "text")
    named.unlink()
    assert says(refused("dedup", index, *out), "archive", "--against", "similar")
    assert says(refused("similar", index, "-d", new, "--text-column", "text"), "--text-column", "leave it out")
    assert names_in(tmp_path) == before
