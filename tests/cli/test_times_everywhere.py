"""A value has one time everywhere: dedup, replay, watch, an index and a classifier agree on a table of values."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import neardup, read_lines, write_lines
from time_examples import NO_NUMBERS, NO_TEXTS, NUMBERS, TEXTS

import neardup as nd
from neardup.classifier.vector import NO_TIME, Vector, read_records
from neardup.documents import write_table
from neardup.times import microseconds_of, stands_for_no_date

RULES = ("--features", "words:3", "--threshold", "0.9")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
#: Values of one type, and what time each is.
GROUPS: dict[str, list[tuple[Any, datetime | None]]] = {
    "texts": [*TEXTS, *((text, None) for text in NO_TEXTS)],
    "whole": [(n, t) for n, t in [*NUMBERS, *((n, None) for n in NO_NUMBERS)] if isinstance(n, int) and n < 1 << 63],
    "floats": [(n, t) for n, t in [*NUMBERS, *((n, None) for n in NO_NUMBERS)] if isinstance(n, float)],
}


def text_of(number: int) -> str:
    return " ".join(hashlib.sha256(f"{number} {place}".encode()).hexdigest()[:9] for place in range(12))


def since_1970(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND


def rows_of(group: str) -> list[dict[str, Any]]:
    return [{"id": str(at), "when": value, "text": text_of(at)} for at, (value, _) in enumerate(GROUPS[group])]


def write_values(path: Path, group: str) -> Path:
    rows = rows_of(group)
    if path.suffix == ".jsonl":
        return write_lines(path, rows)
    write_table(pa.Table.from_pylist(rows), str(path))
    return path


@pytest.mark.parametrize(
    ("group", "suffix", "keep"),
    [
        ("texts", "jsonl", "newest"),
        ("texts", "csv", "oldest"),
        ("whole", "csv", "newest"),
        ("floats", "jsonl", "oldest"),
    ],
)
def test_keep_orders_times_to_the_microsecond(group: str, suffix: str, keep: str, tmp_path: Path) -> None:
    """Each value has a copy a microsecond earlier or later; what is no time has one with an early time."""
    step = -MICROSECOND if keep == "newest" else MICROSECOND
    copies, expected = [], set()
    for at, (_, moment) in enumerate(GROUPS[group]):
        if moment is None:
            copies.append({"id": f"copy {at}", "when": "1500-01-01", "text": text_of(at)})
            expected.add(str(at))
        elif microseconds_of(moment + step) is not None:
            copies.append({"id": f"copy {at}", "when": (moment + step).isoformat(), "text": text_of(at)})
            expected.add(f"copy {at}")
    files = write_values(tmp_path / f"values.{suffix}", group), write_lines(tmp_path / "copies.jsonl", copies)
    gone = tmp_path / "gone.jsonl"
    outputs = "-o", tmp_path / "clean.jsonl", "--duplicates", gone, "--json"
    summary = json.loads(neardup("dedup", *files, *outputs, "--keep", keep, "--time-column", "when", *RULES).stdout)
    assert {row["dropped"] for row in read_lines(gone)} == expected
    assert summary["without_keep_value"] == sum(moment is None for _, moment in GROUPS[group])


@pytest.mark.parametrize(("group", "suffix"), [("texts", "csv"), ("whole", "parquet"), ("floats", "jsonl")])
def test_a_replay_reads_the_time_of_every_value(group: str, suffix: str, tmp_path: Path) -> None:
    path, output = write_values(tmp_path / f"values.{suffix}", group), tmp_path / "verdicts.parquet"
    options = ("--time-column", "when", "--window", "endless", "--as-listed", "--recipe", "ddd")
    neardup("replay", path, "-o", output, *options)
    found = dict(zip(*(pq.read_table(output)[name].to_pylist() for name in ("id", "time")), strict=True))
    assert found == {str(at): moment for at, (_, moment) in enumerate(GROUPS[group]) if moment is not None}


@pytest.mark.parametrize("group", GROUPS)
def test_an_index_reads_the_time_of_every_value(group: str) -> None:
    index = nd.Index(window=None)
    for at, (value, moment) in enumerate(GROUPS[group]):
        if stands_for_no_date(value):
            assert nd.Document(str(at), text_of(at), value).microseconds == (0 if value == 0 else None)
        elif moment is None:
            with pytest.raises(nd.NeardupError, match="ISO 8601"):
                nd.Document(str(at), text_of(at), value)
        else:
            document = nd.Document(str(at), text_of(at), value)
            assert document.microseconds == since_1970(moment)
            assert index.add(document).time == since_1970(moment) / 1e6


def watch(inbox: Path) -> dict[str, float]:
    """Return the times, in seconds, by which the items of an inbox are judged."""
    folder = inbox.parent
    outlets = ("--originals", folder / "out", "--quarantine", folder / "aside")
    fast = ("--settle", "0", "--poll", "0.05", "--patience", "0", "--recipe", "ddd", "--window", "endless", "--once")
    neardup("watch", inbox, "--store", folder / "news.db", *outlets, *fast)
    with contextlib.closing(sqlite3.connect(folder / "news.db")) as store:
        return dict(store.execute("SELECT id, judged FROM documents"))


def check_times(found: dict[str, float], group: str) -> None:
    """Check that times are those of the table; an item without one has that of its arrival."""
    today = datetime.now(UTC).timestamp()
    assert len(found) == len(GROUPS[group])
    for at, (_, moment) in enumerate(GROUPS[group]):
        if moment is None:
            assert today - found[str(at)] < 3600
        else:
            assert found[str(at)] == since_1970(moment) / 1e6


@pytest.mark.parametrize("group", ["whole", "floats"])
def test_a_watched_file_has_the_times_of_its_items(group: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rows = [{"id": row["id"], "timestamp": row["when"], "text": row["text"]} for row in rows_of(group)]
    write_lines(tmp_path / "in" / "items.jsonl", rows)
    check_times(watch(tmp_path / "in"), group)


def test_the_times_of_a_watched_feed_are_kept(tmp_path: Path) -> None:
    """Its items are written as JSON lines, from which the same times are read."""
    (tmp_path / "in").mkdir()
    items = [
        f"<item><guid>{row['id']}</guid><pubDate>{escape(row['when'])}</pubDate><description>{row['text']}"
        "</description></item>"
        for row in rows_of("texts")
    ]
    feed = f'<rss version="2.0"><channel><title>Times</title>{"".join(items)}</channel></rss>'
    (tmp_path / "in" / "feed.rss").write_text(feed, encoding="utf-8")
    check_times(watch(tmp_path / "in"), "texts")
    again = tmp_path / "again" / "in"
    again.mkdir(parents=True)
    [out] = [path for path in (tmp_path / "out").iterdir() if path.suffix == ".jsonl"]
    assert {type(row.get("timestamp", "")) for row in read_lines(out)} == {str}
    (again / "feed.jsonl").write_bytes(out.read_bytes())
    check_times(watch(again), "texts")


@pytest.mark.parametrize("group", GROUPS)
def test_a_classifier_reads_the_time_of_every_value(group: str) -> None:
    table = pa.Table.from_pylist(rows_of(group))
    found = read_records(table, table["text"].to_pylist(), Vector.parse("hours_apart"), time_column="when").times
    assert found is not None
    assert found.tolist() == [NO_TIME if moment is None else since_1970(moment) for _, moment in GROUPS[group]]


@pytest.mark.parametrize(
    ("column", "options", "kept", "without"),
    [
        ("date", ("--keep", "oldest"), "a", 1),
        ("score", ("--keep", "score"), "b", 0),
        ("title", ("--report", "report.html"), "a", 0),
        ("id", (), "a", 0),
    ],
)
def test_values_that_are_not_utf8_have_no_time_and_break_nothing(
    column: str, options: tuple[str, ...], kept: str, without: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    columns = {"id": ["a", "b"], "date": ["2018", "2019"], "score": ["1", "2"], "title": ["x", "y"]}
    bad = pa.array([columns[column][0].encode(), b"9\xff"]).view(pa.string())
    write_table(pa.table(columns | {column: bad, "text": [text_of(0)] * 2}), "corpus.parquet")
    summary = json.loads(neardup("dedup", "corpus.parquet", "-o", "clean.parquet", "--json", *options).stdout)
    assert pq.read_table("clean.parquet", columns=["id"])["id"].to_pylist() == [kept]
    assert summary["without_keep_value"] == without
    assert summary["rejected"] == ({"not valid UTF-8": 1} if column == "id" else {})
    if column == "date":
        assert "no readable time" in neardup("replay", "corpus.parquet", "-o", "verdicts.jsonl").stderr
        assert [row["id"] for row in read_lines(Path("verdicts.jsonl"))] == ["a"]
