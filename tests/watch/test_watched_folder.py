"""A watched folder: each item gets one verdict, each file one place, and everything can be read afterwards."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from newsroom import Newsroom, edited, feed_of, files_in, lines_of, names_in, rows_of, sidecar, text_of
from sentences import says

from neardup.stream.store import StoreReader
from neardup.watch import log
from neardup.watch.inbox import Inbox, file_of
from neardup.watch.log import Counters, Log, event_sentence


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


def test_repeated_ids_and_names_get_a_number(room: Newsroom) -> None:
    for day in range(4):
        room.deliver("daily.txt", text_of(day))
        room.run_once()
    assert list(room.verdicts()) == ["daily.txt", "daily.txt~2", "daily.txt~3", "daily.txt~4"]
    assert files_in(room.out) == {
        "daily.txt": text_of(0).encode(),
        **{f"daily~{day + 1}.txt": text_of(day).encode() for day in (1, 2, 3)},
    }
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


def test_a_linked_file_leaves_nothing_behind_for_later_runs(room: Newsroom) -> None:
    for number in range(3):
        room.deliver(f"{number}.txt", text_of(number))
        room.deliver(f"{number}.bad.txt", b"no\0text")
        room.run_once(place="link")
    with StoreReader(room.store) as reader:
        chosen_names = json.loads(reader.state("watch: placing") or "")
    assert [file_of(origin)[0] for origin in chosen_names] == ["2.txt", "2.bad.txt"]


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
    assert {long, raw, "a", "a~2/b.txt"} == set(names_in(room.out))
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
    assert event_sentence("noted", event_fields) == f"latin.txt: {event_fields['note']}"


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
