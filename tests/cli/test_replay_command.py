"""``neardup replay``: the table, the files, and what it refuses."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commands import FOX, ROSE, neardup, read_lines, refused, write_lines
from sentences import says

GOLDEN = Path(__file__).parent / "replay-table.txt"
SEA = "Ships that sail at night see the lamp of the lighthouse long before they hear the waves upon the rocks below"
RULES = ("--recipe", "ddd", "--window", "24h")
MONDAY = datetime(2024, 1, 1, tzinfo=UTC)

#: Hours after Monday, text; a working week with a weekend in it, out of order.
FLOW: list[tuple[str, float | None, str]] = [
    ("fox", 9.0, FOX),
    ("rose", 9.5, ROSE),
    ("fox-copy", 9.9, FOX),
    ("fox-day-after", 32.9, FOX + " today"),
    ("no-time", None, ROSE),
    ("rose-too-late", 33.6, ROSE.upper()),
    ("sea-weekend-over", 120.0, SEA),
    ("sea-again", 120.5, SEA + "."),
    ("fox-weekend-over", 121.25, FOX),
    ("empty", 121.5, "..."),
    ("sea-first", 31.0, SEA),
    ("rose-edited", 10.25, ROSE + " once"),
]


def stamp(hours: float) -> str:
    return (MONDAY + timedelta(hours=hours)).isoformat()


ROWS: list[dict[str, Any]] = [
    {"id": name, "time": None if hours is None else stamp(hours), "text": text} for name, hours, text in FLOW
]
ROWS[4]["time"] = "last Tuesday"

#: By hand: within 24 hours, against originals; capitals are other letters to ddd.
EXPECTED = [
    ("fox", "original", None),
    ("rose", "original", None),
    ("fox-copy", "exact", "fox"),
    ("rose-edited", "near", "rose"),
    ("sea-first", "original", None),
    ("fox-day-after", "near", "fox"),
    ("rose-too-late", "original", None),
    ("sea-weekend-over", "original", None),
    ("sea-again", "near", "sea-weekend-over"),
    ("fox-weekend-over", "original", None),
    ("empty", "original", None),
]


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "flow.jsonl", ROWS)


def without_times(table: str) -> str:
    """The table with the last three columns blanked: memory and times are another matter on every machine."""
    blanked = re.sub(r"(?m)^(\d{4}-\d\d-\d\d \d\d:00 .*?\d) +[\d,.]+ +[\d,.]+ +[\d,.]+$", r"\1   *   *   *", table)
    assert blanked != table
    return blanked


def test_the_table_is_printed(flow: Path) -> None:
    result = neardup("replay", flow, *RULES)
    assert without_times(result.stdout) == GOLDEN.read_text("utf-8")
    assert "11 items: 7 originals, 4 duplicates (36.4%)" in result.stderr
    for words in (
        *("1, texts that are equal", "1 document without a readable time", "column 'time'", "1 ahead"),
        *("1 undecidable", "3.64 s saved per item (36.4% of 10 s)", "rejected: "),
    ):
        assert words in result.stderr


def test_verdicts_are_written_and_kept_in_a_store(flow: Path, tmp_path: Path) -> None:
    path, store = tmp_path / "v.parquet", tmp_path / "flow.db"
    assert str(path) in neardup("replay", flow, *RULES, "-o", path, "--store", store).stderr
    rows = pq.read_table(path).to_pylist()
    assert list(rows[0]) == ["id", "kind", "of", "similarity", "time", "flag", "shared", "size", "size_of"]
    assert [(row["id"], row["kind"], row["of"]) for row in rows] == EXPECTED
    hours = {document: hour for document, hour, _ in FLOW if hour is not None}
    for row in rows:
        assert row["time"] == MONDAY + timedelta(hours=hours[row["id"]])
        if row["of"] is not None:
            assert row["similarity"] == row["shared"] / max(row["size"], row["size_of"]) >= 0.7
        else:
            assert row["similarity"] is row["shared"] is row["size"] is row["size_of"] is None
    flags = {row["id"]: row["flag"] for row in rows if row["flag"]}
    assert flags == {"sea-weekend-over": "ahead", "empty": "undecidable"}


def test_a_replay_continues_in_its_store(flow: Path, tmp_path: Path) -> None:
    store, *tables = tmp_path / "flow.db", tmp_path / "whole.parquet", tmp_path / "again.parquet"
    neardup("replay", flow, *RULES, "-o", tables[0])
    # As after a kill: the store has the verdicts on the first documents.
    first = write_lines(tmp_path / "first.jsonl", sorted(read_lines(flow), key=lambda row: row["time"] or 0)[:4])
    neardup("replay", first, *RULES, "--store", store)
    for _ in range(2):
        done = neardup("replay", flow, *RULES, "--store", store, "-o", tables[1], "--force")
        assert "taken from the store" in done.stderr
        assert pq.read_table(tables[1]).equals(pq.read_table(tables[0]))
    held = [{**row, "text": "other"} for row in read_lines(flow) if row["id"] == "fox-weekend-over"]
    other = write_lines(tmp_path / "other.jsonl", held)
    message = refused("replay", other, *RULES, "--store", store)
    assert says(message, "already has a verdict on another text", "name another store")


def test_repeated_ids_are_refused_without_row_numbers(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": FOX, "time": "2019-03-21T02"}, {"id": "a", "text": ROSE, "time": "2019-03-21T00"}]
    path = write_lines(tmp_path / "c.jsonl", rows)
    assert says(refused("replay", path, *RULES), "'a'", "column 'id'", "c.jsonl, record 2", "--ids rows")
    done = neardup("replay", path, *RULES, "--json", "--ids", "rows")
    assert json.loads(done.stdout.splitlines()[-1])["totals"]["items"] == 2


def test_undated_documents_go_to_the_quarantine(flow: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    neardup("replay", flow, *RULES, "--quarantine", path)
    [bad] = read_lines(path)
    assert (bad["line"], bad["reason"]) == (5, "no readable time")
    assert says(refused("replay", flow, *RULES, "--strict"), "line 5", "no readable time", "without --strict")


def test_an_empty_corpus_gives_an_empty_table(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    result = neardup("replay", empty, *RULES, "--report", tmp_path / "p.html")
    assert result.stdout == ""
    assert "0 items: 0 originals, 0 duplicates" in result.stderr
