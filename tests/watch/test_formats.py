"""Files as feeds, programs and people write them: every entry is judged once, and what was put right is told."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import pytest
from newsroom import Newsroom, feed_of, names_in, rows_of, sidecar, text_of

from neardup.watch.log import event_sentence


def news(day: int, **changes: Any) -> str:
    """What an interface for news gives out each day: the same title around other articles."""
    articles = [{"id": f"{day}-{n}", "title": f"Title {n}", "body": text_of(10 * day + n)} for n in range(3)]
    return json.dumps({"title": "The Harbour Courier", "articles": articles} | changes)


def json_feed(day: int) -> str:
    """A JSON Feed 1.1."""
    items = [
        {
            "id": f"https://harbour.example/{day}/{n}",
            "url": f"https://harbour.example/{day}/{n}",
            "title": f"Title {n}",
            "content_html": f"<p>{text_of(10 * day + n)} &amp; <b>mo</b>re</p><script>no()</script>",
            "date_published": f"2024-01-0{day}T0{n}:00:00Z",
            "authors": [{"name": "Ann", "url": "https://ann.example"}],
        }
        for n in range(3)
    ]
    about = {"version": "https://jsonfeed.org/version/1.1", "title": "The Harbour Courier", "description": "News"}
    return json.dumps(about | {"items": items}, indent=1)


@pytest.mark.parametrize("made", [news, json_feed])
def test_entries_of_a_wrapper_are_items_every_day(room: Newsroom, made: Any) -> None:
    for day in (1, 2):
        room.deliver(f"{day}.json", made(day))
        room.run_once()
        room.deliver("again.json", made(day))
        counters = room.run_once()
        assert (counters.items, counters.exact) == (3, 3)
    found = {name: verdict for name, verdict in room.verdicts().items() if "~" not in name}
    assert len(found) == 6
    assert {kind for kind, _ in found.values()} == {"original"}
    assert all(("1-" in name or "/1/" in name) for name in list(found)[:3])
    assert names_in(room.out) == ["1.json.jsonl", "2.json.jsonl"]


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
    (said,) = room.events("noted")
    assert (said["file"], said["where"]) == ("latin.txt", "the file")
    assert "windows-1252" in said["note"]
    assert event_sentence("noted", said) == f"latin.txt: {said['note']}"


@pytest.mark.parametrize(("name", "content"), [("x.txt", ""), ("x.json", "\n"), ("x.xml", " \n\t\r\n"), ("x", "")])
def test_an_empty_file_waits_and_is_then_rejected(room: Newsroom, name: str, content: str) -> None:
    room.deliver(name, content, at=time.time())
    with room.watching(patience=20.0):
        room.deliver("mark.txt", text_of(1))
        room.wait_until(lambda: (room.out / "mark.txt").exists())
        assert (room.inbox / name).exists()
    counters = room.run_once()
    assert (counters.quarantined, counters.items) == (1, 0)
    assert sidecar(room.quarantine / name)["reason"] == "the file is empty"
    assert os.path.getsize(room.quarantine / name) == len(content)


def test_empty_feeds_are_done(room: Newsroom) -> None:
    room.deliver("a.xml", feed_of([]))
    room.deliver("b.json", "[]")
    room.deliver("c.json", '{"title": "The Harbour Courier", "items": []}')
    counters = room.run_once()
    assert (counters.items, counters.quarantined, names_in(room.done)) == (0, 0, ["a.xml", "b.json", "c.json"])
