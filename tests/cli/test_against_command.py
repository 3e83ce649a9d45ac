"""``dedup --against`` and ``pairs --against``: new files against a reference."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from commands import FOX, ROSE, RULES, names_in, neardup, read_lines, refused, write_lines
from sentences import says

NEW: list[dict[str, Any]] = [
    {"id": 1, "text": FOX + " today"},
    {"id": 2, "text": ROSE},
    {"id": 3, "text": ROSE.upper()},
]


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    new, old = tmp_path / "new.jsonl", tmp_path / "old.jsonl"
    write_lines(new, NEW)
    write_lines(old, [{"id": 1, "text": FOX}, {"id": 9, "text": "something else"}])
    return new, old


def test_only_new_documents_are_written(sides: tuple[Path, Path], tmp_path: Path) -> None:
    new, old = sides
    names = kept, dropped, summary, page = [tmp_path / name for name in ("kept.jsonl", "d.csv", "s.json", "r.html")]
    outputs = "-o", kept, "--duplicates", dropped, "--summary", summary, "--report", page
    result = neardup("dedup", new, "--against", old, *outputs, *RULES)
    assert read_lines(kept) == [NEW[1]]
    rows = list(csv.DictReader(dropped.read_text().splitlines()))
    assert [(row["dropped"], row["keeper"], row["keeper_from"]) for row in rows] == [
        ("1", "1", "reference"),
        ("3", "2", "input"),
    ]
    found = json.loads(summary.read_text())
    assert (found["documents"], found["kept"], found["reference"]["documents"]) == (3, 1, 2)
    assert found["reference"] == {"documents": 2, "keepers": 1, "dropped": 1, "rejected": {}}
    assert "3 documents: 1 kept, 2 dropped" in result.stderr
    assert "1 (reference)" in page.read_text()
    first = [name.read_bytes() for name in names[:2]]
    neardup("dedup", new, "--against", old, *outputs[:4], "--force", "--threads", "1", "--memory", "300MB", *RULES)
    assert [name.read_bytes() for name in names[:2]] == first


def test_pairs_say_their_side(sides: tuple[Path, Path]) -> None:
    new, old = sides
    lines = neardup("pairs", new, "--against", old, "--print", *RULES).stdout.splitlines()
    assert lines[0].split("\t") == ["left", "right", "similarity", "right_from"]
    assert [[line.split("\t")[i] for i in (0, 1, 3)] for line in lines[1:]] == [
        ["1", "1", "reference"],
        ["2", "3", "input"],
    ]


def test_what_cannot_be_a_reference_is_refused(sides: tuple[Path, Path], tmp_path: Path) -> None:
    new, old = sides
    output = "-o", tmp_path / "kept.jsonl"
    before = names_in(tmp_path)
    assert says(refused("dedup", new, "--against", new, *output), "new.jsonl", "leave it out of --against")
    assert says(refused("dedup", new, "--against", old, "-o", old, "--force"), "old.jsonl", "another file")
    assert says(refused("dedup", new, "--against", tmp_path / "no.jsonl", *output), "no.jsonl", "does not exist")
    assert says(refused("dedup", new, "--against", old, "--text-column", "body", *output), "body")
    assert names_in(tmp_path) == before


def test_broken_records_of_a_reference_are_counted(sides: tuple[Path, Path], tmp_path: Path) -> None:
    new, old = sides
    with old.open("a") as file:
        file.write("broken\n")
    result = neardup("dedup", new, "--against", old, "-o", tmp_path / "kept.jsonl", "--json", *RULES)
    found = json.loads(result.stdout)
    assert found["rejected"] == {}
    assert sum(found["reference"]["rejected"].values()) == 1
    assert "line 3" in result.stderr
    refused("dedup", new, "--against", old, "-o", tmp_path / "k.jsonl", "--strict", *RULES)


def test_within_limits_what_is_compared_and_prefer_what_is_kept(tmp_path: Path) -> None:
    path, out = tmp_path / "a.jsonl", tmp_path / "o.jsonl"
    rows = [("a", FOX, "en", "blog"), ("b", FOX, "de", "blog"), ("c", FOX, "en", "wire"), ("d", FOX, "en", "mail")]
    write_lines(path, [dict(zip(("id", "text", "language", "source"), row, strict=True)) for row in rows])
    result = neardup("dedup", path, "--within", "language", "--prefer", "source=wire,blog", "-o", out)
    assert [row["id"] for row in read_lines(out)] == ["b", "c"]
    assert "source=wire,blog" in result.stderr
    for options, value in (
        (("--within", "x"), "'x'"),
        (("--prefer", "source"), "source=reuters"),
        (("--prefer", "y=a"), "'y'"),
    ):
        assert says(refused("dedup", path, *options, "-o", tmp_path / "p.jsonl"), value)
    assert says(refused("dedup", path, "--within", "id", "--engine", "spark", "-o", tmp_path / "p.jsonl"), "--within")
    assert names_in(tmp_path) == {"a.jsonl", "o.jsonl"}
