"""A watched folder: each item gets one verdict, each file one place, and everything can be read afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from newsroom import (
    Newsroom,
    edited,
    feed_of,
    files_in,
    lines_in,
    lines_of,
    names_in,
    rows_of,
    sidecar,
    text_of,
    without_digits,
)
from sentences import says

from neardup.errors import StoreError
from neardup.stream.store import Store, StoreReader
from neardup.watch import log
from neardup.watch.inbox import Inbox, file_stamp, origin_of
from neardup.watch.log import Counters, Log
from neardup.watch.outputs import names_of
from neardup.watch.placement import Placer


def test_originals_pass_and_duplicates_stop(room: Newsroom) -> None:
    room.deliver("dpa/one.txt", text_of(1))
    room.deliver("dpa/again.txt", edited(text_of(1)))
    room.deliver("afp/copy.txt", text_of(1))
    room.deliver("afp/other.txt", text_of(2))
    counters = room.run_once()
    assert files_in(room.out) == {"dpa/one.txt": text_of(1).encode(), "afp/other.txt": text_of(2).encode()}
    assert names_in(room.duplicates) == ["afp/copy.txt", "dpa/again.txt"]
    assert names_in(room.inbox) == []
    assert (counters.files, counters.items, counters.originals, counters.duplicates) == (4, 4, 2, 2)
    assert (counters.exact, counters.saved_s) == (1, 20.0)
    assert room.verdicts() == {
        "dpa/one.txt": ("original", None),
        "dpa/again.txt": ("near", "dpa/one.txt"),
        "afp/copy.txt": ("exact", "dpa/one.txt"),
        "afp/other.txt": ("original", None),
    }
    assert all(row[-1] for row in rows_of(room.store))


def test_the_sidecar_of_a_duplicate_contains_the_evidence(room: Newsroom) -> None:
    room.deliver("one.txt", text_of(1))
    room.deliver("again.txt", edited(text_of(1)))
    room.run_once()
    found = sidecar(room.duplicates / "again.txt")
    assert (found["id"], found["kind"], found["of"], found["file"]) == ("again.txt", "near", "one.txt", "again.txt")
    assert found["similarity"] == found["shared"] / max(found["sizes"])
    assert says(found["reason"], "overlap 0.9494 >= 0.7;", "169 features", "of 178 and 175")
    assert (found["recipe"], found["measure"], found["threshold"]) == ("ddd", "overlap", 0.7)
    assert found["time"].endswith("Z")
    longest = found["passages"][0]
    assert longest["tokens"] == 54
    assert longest["text"] == " ".join(text_of(1).split()[6:])


def test_hidden_and_unfinished_files_and_links_are_ignored(room: Newsroom, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text(text_of(9))
    (room.inbox / "folder").symlink_to(outside)
    (room.inbox / "file.txt").symlink_to(outside / "secret.txt")
    os.mkfifo(room.inbox / "pipe.txt")
    unfinished = ("a.txt.part", "b.tmp", "c.PARTIAL", "d.crdownload", "e.txt~")
    for name in (".hidden.txt", *unfinished, ".git/f.txt", "g.neardup.json"):
        path = room.inbox / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text_of(3))
    room.deliver("good.txt", text_of(4))
    room.run_once()
    assert names_in(room.out) == ["good.txt"]
    assert (outside / "secret.txt").exists()
    assert len(room.events("trouble")) == 1
    assert "links, pipes and devices are left alone in the inbox (3 of them)" in room.events("trouble")[0]["message"]


def test_items_of_a_feed_are_placed_separately(room: Newsroom) -> None:
    room.deliver("one.txt", text_of(1))
    feed = feed_of([("a", text_of(2)), ("b", edited(text_of(1))), ("a", text_of(3)), ("", text_of(4))])
    room.deliver("rss/feed.xml", feed)
    room.run_once()
    assert room.verdicts() == {
        "one.txt": ("original", None),
        "a": ("original", None),
        "b": ("near", "one.txt"),
        "a~2": ("original", None),
        "rss/feed.xml#4": ("original", None),
    }
    repeated = room.events("repeated_id")[0]
    assert (repeated["id"], repeated["judged_as"], repeated["file"]) == ("a", "a~2", "rss/feed.xml")
    originals = [json.loads(line) for line in (room.out / "rss/feed.xml.jsonl").read_text().splitlines()]
    assert [(item["id"], item["text"]) for item in originals] == [
        ("a", text_of(2)),
        ("a~2", text_of(3)),
        ("rss/feed.xml#4", text_of(4)),
    ]
    assert f"<description>{text_of(2)}</description>" in originals[0]["raw"]
    assert json.loads((room.duplicates / "rss/feed.xml.jsonl").read_text())["id"] == "b"
    evidence = json.loads((room.duplicates / "rss/feed.xml.jsonl.neardup.jsonl").read_text())
    assert (evidence["item"], evidence["of"], evidence["file"]) == (2, "one.txt", "rss/feed.xml")
    assert (room.done / "rss/feed.xml").read_text() == feed
    assert names_in(room.inbox) == []


def test_json_lines_are_copied_unchanged_and_broken_ones_rejected(room: Newsroom) -> None:
    good = [f'{{"id": 7,  "text": "{text_of(1)}", "x": 1.0}}', f'{{"text": "{text_of(2)}"}}']
    room.deliver("items.jsonl", f"{good[0]}\n{{broken\n{good[1]}\n")
    counters = room.run_once()
    assert (room.out / "items.jsonl").read_text() == "".join(f"{line}\n" for line in good)
    assert list(room.verdicts()) == ["7", "items.jsonl#2"]
    assert json.loads((room.quarantine / "items.jsonl").read_text()) == {
        "where": "line 2",
        "reason": "not valid JSON",
        "raw": "{broken",
    }
    assert counters.quarantined == 1
    assert names_in(room.done) == ["items.jsonl"]


def test_pages_are_compared_by_their_articles(room: Newsroom) -> None:
    pytest.importorskip("trafilatura", reason="finds articles in pages")

    def page(navigation: int, article: int) -> str:
        links = "".join(f"<li><a href='/{i}'>{text_of(1000 * navigation + i, 3)}</a></li>" for i in range(40))
        paragraphs = "".join(f"<p>{text_of(100 * article + i, 70)}.</p>" for i in range(6))
        return f"<html><body><nav><ul>{links}</ul></nav><article><h1>News</h1>{paragraphs}</article></body></html>"

    room.deliver("a.html", page(1, 1))
    room.deliver("b.html", page(2, 1))
    room.deliver("c.html", page(1, 2))
    room.run_once()
    assert room.verdicts() == {
        "a.html": ("original", None),
        "b.html": ("exact", "a.html"),
        "c.html": ("original", None),
    }
    assert (room.out / "a.html").read_text() == page(1, 1)


def test_a_repeated_id_gets_a_number_and_a_repeated_name_its_time(room: Newsroom) -> None:
    for day in range(4):
        room.deliver("daily.txt", text_of(day))
        room.run_once()
    assert list(room.verdicts()) == ["daily.txt", "daily.txt~2", "daily.txt~3", "daily.txt~4"]
    placed = files_in(room.out)
    assert without_digits(placed) == ["daily.txt", *(f"daily~20231114T22132{day}.txt" for day in (2, 3, 4))]
    assert list(placed.values()) == [text_of(day).encode() for day in range(4)]
    assert len(room.events("repeated_id")) == 3


def test_unreadable_files_are_rejected_with_the_reason(room: Newsroom) -> None:
    room.deliver("picture.txt", b"\x89PNG\r\n\x1a\n\0\0")
    room.deliver("feeds/cut.xml", feed_of([("a", "b")])[:-30])
    room.deliver("good.txt", text_of(1))
    counters = room.run_once()
    assert names_in(room.quarantine) == ["feeds/cut.xml", "picture.txt"]
    assert "NUL" in sidecar(room.quarantine / "picture.txt")["reason"]
    assert counters.quarantined == len(room.events("quarantined")) == 2
    assert names_in(room.out)[-1] == "good.txt"


def test_files_are_judged_in_order_of_change_then_path(room: Newsroom) -> None:
    room.deliver("c.txt", text_of(1), at=10.0)
    room.deliver("a.txt", text_of(2), at=30.0)
    room.deliver("z/b.txt", text_of(3), at=20.0)
    room.deliver("a/b.txt", text_of(4), at=20.0)
    room.run_once()
    assert list(room.verdicts()) == ["c.txt", "a/b.txt", "z/b.txt", "a.txt"]


def test_place_link_leaves_the_inbox_unchanged(room: Newsroom) -> None:
    room.deliver("one.txt", text_of(1))
    room.deliver("again.txt", text_of(1))
    room.deliver("bad.txt", b"no\0text")
    room.deliver("feed.xml", feed_of([("a", text_of(2)), ("b", text_of(3))]))
    before = files_in(room.inbox)
    for _ in range(2):
        room.run_once(place="link")
    assert files_in(room.inbox) == before
    assert (room.out / "one.txt").samefile(room.inbox / "one.txt")
    assert names_in(room.out) == ["feed.xml.jsonl", "one.txt"]
    assert names_in(room.duplicates) == ["again.txt"]
    assert names_in(room.quarantine) == ["bad.txt"]
    assert len(rows_of(room.store)) == 4
    # A file without items has no verdict, and is known nevertheless.
    assert len(room.events("quarantined")) == 1
    room.deliver("one.txt", text_of(5))
    room.run_once(place="link")
    assert list(room.verdicts())[-1] == "one.txt~2"


def test_what_is_placed_leaves_no_names_in_the_store(room: Newsroom) -> None:
    for place in ("move", "link"):
        for number in range(3):
            room.deliver(f"{place}{number}.txt", text_of(number))
            room.deliver(f"{place}{number}.bad.txt", b"no\0text")
            room.run_once(place=place)
    with contextlib.closing(sqlite3.connect(room.store)) as store:
        states = {name for (name,) in store.execute("SELECT name FROM state WHERE name LIKE 'watch%'")}
    # What cannot be read has no verdict by which a linked file would be known.
    assert {json.loads(name.removeprefix("watch: left "))[0] for name in states} == {
        f"link{number}.bad.txt" for number in range(3)
    }


def test_every_delivery_of_a_path_gets_a_place_of_its_own(room: Newsroom) -> None:
    lines = lines_of([{"text": text_of(1)}, {"text": text_of(1)}])
    for round_ in range(2):
        for _ in range(2):
            room.deliver("bad.txt", b"no\0text")
            room.deliver("again.txt", text_of(9))
            room.deliver("lines.jsonl", f"{round_}\n{lines}")
            room.run_once()
        # Another program has a file of that name, with the same bytes.
        (room.out / "other.txt").write_bytes(text_of(50 + round_).encode())
        room.deliver("other.txt", text_of(50 + round_))
        room.run_once()
    placed = {
        name: without_digits(names_in(getattr(room, name))) for name in ("out", "duplicates", "quarantine", "done")
    }
    counts = {name: Counter(re.sub("~.*[.]", ".", one) for one in names) for name, names in placed.items()}
    assert counts == {
        "out": {"again.txt": 1, "lines.jsonl": 1, "other.txt": 3},
        "duplicates": {"again.txt": 3, "lines.jsonl": 1},
        "quarantine": {"bad.txt": 4, "lines.jsonl": 4},
        "done": {"lines.jsonl": 4},
    }


def test_the_same_bytes_delivered_within_a_second_are_placed_each_time(room: Newsroom) -> None:
    for milliseconds in (100, 400, 900):
        for name, content in {"again.txt": text_of(1), "lines.jsonl": "{broken\n"}.items():
            path = room.deliver(name, content)
            os.utime(path, ns=(0, 1_700_000_000_000_000_000 + milliseconds * 1_000_000))
        room.run_once()
    assert (len(names_in(room.out)), len(names_in(room.duplicates)), len(names_in(room.quarantine))) == (1, 2, 3)


@pytest.mark.parametrize("unit", [100, 10_000_000, 1_000_000_000])
def test_a_copy_on_a_disk_with_coarse_times_is_known_again(
    unit: int, room: Newsroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = room.deliver("one.txt", text_of(1))
    time_ns = 1_700_000_000_123_456_789
    os.utime(path, ns=(time_ns, time_ns))
    with monkeypatch.context() as killed:
        killed.setattr(Placer, "place", lambda *_: sys.exit("killed"))
        with pytest.raises(SystemExit):
            room.run_once()
    copy = room.out / "one.txt"
    copy.write_text(text_of(1))
    os.utime(copy, ns=(0, time_ns - time_ns % unit))
    room.run_once()
    assert (names_in(room.out), names_in(room.inbox)) == (["one.txt"], [])


def test_a_file_whose_names_others_have_is_left_and_stops_no_other(room: Newsroom) -> None:
    room.deliver("one.txt", text_of(1))
    room.run_once()
    room.deliver("one.txt", text_of(2), at=99.0)
    stamp = file_stamp((room.inbox / "one.txt").stat())
    (room.out / names_of("one.txt", stamp)[1]).write_text("another program")
    room.deliver("two.txt", text_of(3))
    room.run_once()
    assert names_in(room.inbox) == ["one.txt"]
    assert says(room.events("trouble")[0]["message"], "one.txt cannot be moved: file exists", "left in the inbox")
    (room.out / names_of("one.txt", stamp)[1]).unlink()
    room.run_once()
    assert (room.out / names_of("one.txt", stamp)[1]).read_text() == text_of(2)
    assert without_digits(names_in(room.out)) == ["one.txt", "one~19700101T000139.txt", "two.txt"]


def test_names_that_an_earlier_version_stored_are_those_that_it_used(
    room: Newsroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store from before names followed from the delivery, whose watcher was killed while it placed files."""
    room.deliver("one.txt", text_of(1))
    room.deliver("feed.xml", feed_of([("a", text_of(2)), ("b", text_of(2))]))
    with monkeypatch.context() as killed:
        killed.setattr(Placer, "place", lambda *_: sys.exit("killed"))
        with pytest.raises(SystemExit):
            room.run_once()
    one, feed = (origin_of(name, file_stamp((room.inbox / name).stat())) for name in ("one.txt", "feed.xml"))
    names = {one: {"originals": "one~2.txt"}}
    names[feed] = {"originals": "feed.xml~2.jsonl", "duplicates": "feed.xml.jsonl", "done": "feed~2.xml"}
    with room.watcher() as watcher:
        assert watcher.index.store is not None
        watcher.index.store.set_state("watch: placing", json.dumps(names))
    os.link(room.inbox / "one.txt", room.out / "one~2.txt")
    line = {"id": "a", "text": text_of(2), "raw": f"<item><guid>a</guid><description>{text_of(2)}</description></item>"}
    (room.out / "feed.xml~2.jsonl").write_text(json.dumps(line) + "\n")
    room.run_once()
    assert names_in(room.out) == ["feed.xml~2.jsonl", "one~2.txt"]
    assert names_in(room.duplicates) == ["feed.xml.jsonl"]
    assert names_in(room.done) == ["feed~2.xml"]
    assert names_in(room.inbox) == []


def test_a_judged_file_is_not_judged_again(room: Newsroom) -> None:
    path = room.deliver("one.txt", text_of(1))
    room.run_once()
    (room.out / "one.txt").rename(path)
    room.run_once()
    assert path.exists()
    assert len(rows_of(room.store)) == 1
    assert "touch it" in room.events("known")[0]["message"]
    os.utime(path)
    room.run_once()
    # The same path with the same text is known, so it gets no verdict of its own.
    assert len(rows_of(room.store)) == 1
    assert names_in(room.duplicates) == ["one.txt"]
    assert sidecar(room.duplicates / "one.txt")["of"] == "one.txt"


def test_a_feed_that_is_polled_passes_and_stops_each_item_once(room: Newsroom) -> None:
    day, begin = 86_400, 1_700_000_000
    items = [
        {"id": f"g{n}", "title": f"Item {n}", "text": text_of(n), "date": begin - n * day // 2} for n in range(1, 43)
    ]
    for poll in range(6):
        new = {"id": f"n{poll}", "title": f"New {poll}", "text": text_of(100 + poll), "date": begin + poll * 3600}
        items.insert(0, new)
        room.deliver(f"poll{poll}.json", json.dumps(items))
    counters = room.run_once()
    assert counters.items == counters.originals == 48
    assert counters.known == 6 * 42 + sum(range(6)) - 42
    assert counters.late == 40
    passed = [json.loads(line)["id"] for path in sorted(room.out.iterdir()) for line in path.read_text().splitlines()]
    assert len(passed) == len(set(passed)) == 48
    assert names_in(room.duplicates) == []
    assert [fields["known"] for fields in room.events("known_items")] == [43 + poll for poll in range(5)]
    assert room.events("late")[0]["late"] == 40
    # Again after a restart, with one changed text.
    items[0]["text"] = text_of(999)
    room.deliver("poll6.json", json.dumps(items))
    room.run_once()
    assert [name for name in room.verdicts() if "~" in name] == ["n5~2"]
    with StoreReader(room.store) as reader:
        verdict = reader.verdict_of("n5~2")
        assert verdict is not None
        assert verdict.version_of == "n5"


def test_versions_replace_the_items_that_they_change(room: Newsroom) -> None:
    room.deliver("a.json", json.dumps({"id": "a", "text": text_of(1)}))
    room.deliver("b.json", json.dumps({"id": "a", "text": edited(text_of(1))}))
    room.deliver("list.json", json.dumps([{"text": text_of(2)}, {"text": text_of(3)}]))
    room.run_once(versions="replace")
    room.deliver("list.json", json.dumps([{"text": text_of(4)}, {"text": text_of(2)}]))
    room.run_once(versions="replace")
    verdicts = room.verdicts()
    assert verdicts.pop("a") == ("original", None)
    # Places in a file are no ids.
    assert [kind for kind, _ in verdicts.values()] == ["original"] * 3 + ["exact"]


def test_versions_refuse_rejects_the_item_alone(room: Newsroom) -> None:
    room.deliver("a.json", json.dumps({"id": "a", "text": text_of(1)}))
    entries = [{"id": "a", "text": text_of(2)}, {"id": "b", "text": text_of(3)}, {"id": "a", "text": text_of(1)}]
    room.deliver("list.json", json.dumps([*entries, {"text": text_of(4)}]))
    room.deliver("again.json", json.dumps({"id": "b", "text": text_of(5)}))
    counters = room.run_once(versions="refuse")
    assert (counters.items, counters.originals, counters.known, counters.quarantined) == (3, 3, 1, 2)
    assert [line["text"] for line in lines_in(room.out / "list.json.jsonl")] == [text_of(3), text_of(4)]
    reason = "its id came before with another text, and --versions is refuse"
    (line,) = lines_in(room.quarantine / "list.json.jsonl")
    assert (line["where"], line["reason"], json.loads(line["raw"])) == ("item 1 (id 'a')", reason, entries[0])
    record = sidecar(room.quarantine / "again.json")
    assert (record["where"], record["reason"]) == ("the file (id 'b')", reason)
    assert names_in(room.done) == ["list.json"]
    # What is at a place of a file has no id: another item there is not refused.
    room.deliver("list.json", json.dumps([{"text": text_of(6)}, *entries[1:]]))
    assert room.run_once(versions="refuse").quarantined == 0


def test_a_store_that_fails_among_refusals_loses_no_item(room: Newsroom, monkeypatch: pytest.MonkeyPatch) -> None:
    room.deliver("list.json", json.dumps([{"id": f"{n % 4}", "text": text_of(n)} for n in range(6)]))
    record, calls = Store.record, list[int]()

    def failing(store: Store, *rows: Any, **more: Any) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise StoreError(f"{store.path} cannot be written: the disk is full; free some space")
        record(store, *rows, **more)

    monkeypatch.setattr(Store, "record", failing)
    monkeypatch.setattr("neardup.watch.watcher._MAX_PAUSE_S", 0.01)
    with room.watching(versions="refuse"):
        room.wait_until(lambda: (room.done / "list.json").exists())
    assert [line["text"] for line in lines_in(room.out / "list.json.jsonl")] == [text_of(n) for n in range(4)]
    assert [line["where"] for line in lines_in(room.quarantine / "list.json.jsonl")] == [
        "item 5 (id '0')",
        "item 6 (id '1')",
    ]
    assert all(row[-1] for row in rows_of(room.store))


@pytest.mark.parametrize("versions", ["keep", "replace", "refuse"])
def test_a_month_of_polls_stops_nothing_new_and_passes_nothing_twice(room: Newsroom, versions: str) -> None:
    """A feed has an item every seven hours and lists those of three weeks; the window is a day."""
    hour, begin, now = 3600, 1_700_000_000, [0.0]
    polls = range(0, 30 * 24, 1 if os.environ.get("NEARDUP_LONG") else 21)
    published = range(-21 * 24, 30 * 24, 7)
    counters = Counters(0.0)
    with room.watcher(versions=versions, now=lambda: now[0]) as watcher:
        for poll in polls:
            now[0] = begin + poll * hour
            items = [
                {"id": f"i{n}", "title": f"Item {n}", "text": text_of(5000 + n), "date": begin + n * hour}
                for n in published
                if poll - 21 * 24 <= n <= poll
            ]
            room.deliver("feed.json", json.dumps(items[::-1]), at=now[0])
            counters = watcher.run()
    listed = [n for n in published if n <= polls[-1]]
    assert counters.items == counters.originals == len(listed)
    lines = [line["id"] for path in room.out.iterdir() for line in lines_in(path)]
    assert sorted(lines) == sorted(f"i{n}" for n in listed)
    assert (names_in(room.duplicates), names_in(room.quarantine)) == ([], [])
    # The first poll lists items that are older than the window: one warning, and a count of each.
    assert counters.late == sum(n < -24 for n in listed)
    assert [event["file"] for event in room.events("late")] == ["feed.json"]
    assert len(names_in(room.done)) == len(polls)


def test_long_and_invalid_names_are_placed(room: Newsroom) -> None:
    long, raw = f"{'ä' * 125}.txt", os.fsdecode(b"\xff-\x1b[31m.txt")
    room.deliver(long, text_of(1))
    (room.inbox / raw).write_text(text_of(2))
    room.deliver("copy-of-long.txt", text_of(1))
    room.run_once()
    (room.inbox / long).write_text(text_of(1))
    room.deliver("a", text_of(3))
    room.run_once()
    room.deliver("a/b.txt", text_of(4))
    room.run_once()
    assert {long, raw, "a", "a~folder/b.txt"} == set(names_in(room.out))
    assert "\\xff-\x1b[31m.txt" in room.verdicts()
    (of_long,) = [name for name in files_in(room.duplicates) if name.startswith("ä") and name.endswith(".json")]
    assert len(of_long.encode()) <= 255


def test_an_item_has_its_stated_time(room: Newsroom) -> None:
    room.deliver("a.json", json.dumps({"id": "a", "text": text_of(1), "date": "2024-01-01T00:00:00Z"}))
    room.deliver("b.json", json.dumps({"id": "b", "text": text_of(1), "date": "2024-01-01T23:00:00Z"}))
    room.deliver("c.json", json.dumps({"id": "c", "text": text_of(1), "date": "2024-01-02T00:00:01Z"}))
    room.run_once(window="24h")
    assert room.verdicts() == {"a": ("original", None), "b": ("exact", "a"), "c": ("original", None)}


def test_a_growing_file_is_waited_for(room: Newsroom) -> None:
    now = 0.0
    inbox = Inbox(str(room.inbox), 0.4, clock=lambda: now)
    for piece in range(3):
        with (room.inbox / "slow.txt").open("a") as file:
            file.write(text_of(piece, 20))
        for _ in range(2):
            inbox.scan()
            assert inbox.next_settled() is None
            now += 0.15
    now += 0.15
    found = inbox.next_settled()
    assert found is not None
    assert (found.path, found.stamp.size) == ("slow.txt", len("".join(text_of(piece, 20) for piece in range(3))))
    assert inbox.next_settled() is None


def test_an_incomplete_file_is_waited_for(room: Newsroom) -> None:
    whole = lines_of([{"id": "a", "text": text_of(1)}, {"id": "b", "text": text_of(2)}])
    now = time.time()
    with room.watching(patience=600.0) as watcher:
        room.deliver("cut.jsonl", whole[:-20], at=now)
        room.deliver("mark.txt", text_of(3), at=now)
        room.wait_until(lambda: (room.out / "mark.txt").exists())
        room.wait_for_scan(watcher)
        assert (room.inbox / "cut.jsonl").exists()
        room.deliver("cut.jsonl", whole, at=now + 1)
        room.wait_until(lambda: (room.done / "cut.jsonl").exists())
    assert list(room.verdicts()) == ["mark.txt", "a", "b"]


def test_an_old_incomplete_file_is_not_waited_for(room: Newsroom) -> None:
    room.deliver("cut.jsonl", lines_of([{"id": "a", "text": text_of(1)}, {"id": "b", "text": text_of(2)}])[:-20])
    with room.watching(patience=600.0):
        room.wait_until(lambda: (room.done / "cut.jsonl").exists())
    assert list(room.verdicts()) == ["a"]
    assert names_in(room.quarantine) == ["cut.jsonl"]


def test_a_text_ending_in_half_a_character_waits_and_is_judged_once(room: Newsroom) -> None:
    now = time.time()
    with room.watching(patience=1.0, settle=0.05):
        room.deliver("latin.txt", f"{text_of(1)} caf\xe9".encode("latin-1"), at=now)
        room.deliver("mark.txt", text_of(2), at=now)
        room.wait_until(lambda: (room.out / "mark.txt").exists())
        assert (room.inbox / "latin.txt").exists()
        room.wait_until(lambda: (room.out / "latin.txt").exists())
        room.deliver("again.txt", f"{text_of(1)} café")
        room.wait_until(lambda: (room.duplicates / "again.txt").exists())
    assert room.verdicts()["again.txt"] == ("exact", "latin.txt")
    assert len(rows_of(room.store)) == 3
    (event_fields,) = room.events("noted")
    assert (event_fields["file"], event_fields["where"]) == ("latin.txt", "the file")
    assert "windows-1252" in event_fields["note"]


def test_a_trouble_is_repeated_at_doubling_intervals_up_to_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    now, reminders = 0.0, list[float]()
    monkeypatch.setattr(log, "time", SimpleNamespace(monotonic=lambda: now))
    events = Log(lambda event, fields: reminders.append(now))
    for second in range(12_000):
        now = float(second)
        events.report_trouble("disk", "the disk is full")
    assert reminders == [0, 30, 90, 210, 450, 930, 1890, 3810, 7410, 11010]


def test_many_kinds_of_rejections_are_counted_together() -> None:
    counters = Counters(10.0)
    counters.count_rejected(f"line {number}: {'x' * (number // 2)}" for number in range(500))
    assert counters.quarantined == counters.reasons.total() == 500
    assert (len(counters.reasons), counters.reasons["line N: x"], counters.reasons["other reasons"]) == (201, 2, 100)


def test_empty_feeds_are_done(room: Newsroom) -> None:
    room.deliver("a.xml", feed_of([]))
    room.deliver("b.json", "[]")
    room.deliver("c.json", '{"title": "The Harbour Courier", "items": []}')
    counters = room.run_once()
    assert (counters.items, counters.quarantined, names_in(room.done)) == (0, 0, ["a.xml", "b.json", "c.json"])
