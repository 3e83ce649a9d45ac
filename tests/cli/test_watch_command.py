"""``neardup watch``, and what it stopped: ``stopped``, ``release`` and ``report`` on its store."""

from __future__ import annotations

import json
import os
import pty
import signal
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from commands import FOX, NEVER, ROSE, names_in, neardup, refused, start_process, wait_for_end, write_lines
from page_markup import Markup
from sentences import says

FAST = ("--settle", "0", "--poll", "0.05", "--patience", "0", "--recipe", "ddd")
WATCH = ("watch", "in", "--store", "news.db", "--originals", "out")


@pytest.fixture
def inbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An inbox with three items, two of them near-duplicates, in the current folder."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "in"
    folder.mkdir()
    for number, (name, text) in enumerate({"fox.txt": FOX, "again.txt": f"{FOX} today", "rose.txt": ROSE}.items()):
        (folder / name).write_text(text)
        os.utime(folder / name, (number, number))
    return folder


@pytest.fixture
def judged(inbox: Path) -> Path:
    """The inbox after a run, which also judged a file of two items."""
    items = [{"id": "x", "text": f"{ROSE} again"}, {"id": "y", "text": f"{ROSE} and again"}]
    write_lines(inbox / "more.jsonl", items)
    os.utime(inbox / "more.jsonl", (9, 9))
    (inbox / "wire").mkdir()
    (inbox / "again.txt").rename(inbox / "wire" / "again.txt")
    neardup(*WATCH, "--duplicates", "dup", *FAST, "--once")
    return inbox


def events(err: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in err.splitlines()]


def test_once_processes_the_present_files_and_exits(inbox: Path) -> None:
    result = neardup(*WATCH, "--duplicates", "dup", *FAST, "--once")
    assert result.stdout == ""
    started, duplicate, stopped = events(result.stderr)
    assert all(line["time"].endswith("Z") for line in (started, duplicate, stopped))
    expected = (
        (started, {"event": "started", "recipe": "ddd", "window": "24h"}),
        (duplicate, {"event": "duplicate", "id": "again.txt", "kind": "near", "of": "fox.txt", "file": "again.txt"}),
        (stopped, {"event": "stopped", "files": 3, "items": 3, "originals": 2, "duplicates": 1, "saved_s": 10.0}),
    )
    assert all(line | values == line for line, values in expected)
    assert names_in(Path("out")) == {"fox.txt", "rose.txt"}
    assert names_in(Path("dup")) == {"again.txt", "again.txt.neardup.json"}


def test_once_exits_with_3_if_a_fault_leaves_a_file_in_the_inbox(inbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (inbox / "feed.xml").write_text("<rss/>")
    monkeypatch.setitem(sys.modules, "lxml", None)
    logged = {line["event"]: line for line in events(neardup(*WATCH, *FAST, "--once", code=3).stderr)}
    assert says(
        logged["trouble"]["message"], "feed.xml cannot be read", "lxml", "'neardup[watch]'", "left in the inbox"
    )
    assert (logged["stopped"]["files"], logged["stopped"]["left"]) == (3, 1)
    assert (inbox / "feed.xml").exists()


def test_a_terminal_shows_a_panel_without_the_control_characters_of_names(inbox: Path) -> None:
    (inbox / "evil\x1b[31m.txt").write_text(f"{ROSE} again")
    ours, theirs = pty.openpty()
    started = start_process(*WATCH, *FAST, stderr=theirs, env={"TERM": "xterm", "NO_COLOR": ""})
    os.close(theirs)
    output = b""
    # Reading at the end of a terminal raises an error.
    with suppress(OSError):
        while b"evil" not in output:
            output += os.read(ours, 4096)
        started.send_signal(signal.SIGINT)
        while piece := os.read(ours, 4096):
            output += piece
    os.close(ours)
    code, out, _ = wait_for_end(started)
    text = output.decode()
    assert (code, out) == (0, "")
    for words in ("neardup watch in", "duplicates", "saved 20 s of processing, spent", "evil␛[31m.txt = rose.txt"):
        assert words in text
    assert "evil\x1b" not in text
    (last,) = (line for line in text.splitlines() if "stopped: " in line)
    assert says(last, "4 files", "4 items", "2 originals", "2 duplicates (50.0%)", "saved 20 s")


def test_a_folder_that_cannot_be_made_is_refused_before_there_is_a_store(inbox: Path) -> None:
    Path("taken").write_text("a file, not a folder")
    for option in ("--originals", "--done"):
        folders = {"--originals": "out"} | {option: "taken/out"}
        arguments = [word for pair in folders.items() for word in pair]
        message = refused("watch", "in", "--store", "news.db", *arguments, *FAST)
        assert says(message, f"taken/out for {option} cannot be made", "name a folder")
    assert sorted(path.name for path in Path().iterdir()) == ["in", "taken"]
    assert len(list(inbox.iterdir())) == 3


def test_pages_can_be_compared_whole(inbox: Path) -> None:
    for path in inbox.iterdir():
        path.unlink()
    # The same text under markup that has hardly a gram in common.
    for number, letters in enumerate(("abcdefghijklm", "nopqrstuvwxyz")):
        markup = " ".join(f"data-{a}{b}{c}='{c}{b}{a}'" for a in letters for b in letters for c in letters[:3])
        (inbox / f"{number}.html").write_text(f"<html><body><p {markup}>{FOX}</p></body></html>")
    for content, duplicates in (("tags", 1), ("plain", 0)):
        places = ("--store", f"{content}.db", "--originals", f"out-{content}", "--duplicates", f"dup-{content}")
        stderr = neardup("watch", "in", *places, *FAST, "--once", "--content", content, "--place", "link").stderr
        stopped = events(stderr)[-1]
        assert (stopped["items"], stopped["duplicates"]) == (2, duplicates)


def rows(*options: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in neardup("store", "list", "news.db", "--json", *options).stdout.splitlines()]


def test_stopped_lists_each_duplicate_with_its_reason(judged: Path) -> None:
    found = rows()
    assert [(row["id"], row["of"], row["kind"], row["file"]) for row in found] == [
        ("wire/again.txt", "fox.txt", "near", "wire/again.txt"),
        ("x", "rose.txt", "near", "more.jsonl"),
        ("y", "rose.txt", "near", "more.jsonl"),
    ]
    assert all(0.7 <= row["similarity"] < 1 for row in found)
    line = neardup("store", "list", "news.db").stdout.splitlines()[0]
    assert says(line, found[0]["time"], "near", f"{found[0]['similarity']:.4f}", "wire/again.txt repeats fox.txt")
    assert len(rows("--today")) == 3
    tomorrow = datetime.fromtimestamp(time.time() + 86_400, UTC).date().isoformat()
    assert rows("--since", tomorrow) == []
    stderr = neardup("store", "list", "news.db", "--since", tomorrow).stderr
    assert says(stderr, f"0 items stopped since {tomorrow}T00:00:00Z", "the time of the item itself")
    assert len(rows("--since", "2024-01-01")) == 3


def test_a_released_file_goes_to_the_originals_and_its_copies_are_stopped(judged: Path) -> None:
    stderr = neardup("store", "release", "news.db", "wire/again.txt", "--by", "ann").stderr
    assert says(stderr, "wire/again.txt", "original", "out/wire/again.txt")
    assert Path("out/wire/again.txt").read_text() == f"{FOX} today"
    assert not list(Path("dup").rglob("again.txt*"))
    assert [row["id"] for row in rows()] == ["x", "y"]
    assert says(
        refused("store", "release", "news.db", "wire/again.txt"), "'wire/again.txt' was released already by ann at 20"
    )
    assert says(refused("store", "release", "news.db", "fox.txt"), "'fox.txt' was not stopped: it is an original")
    (judged / "third.txt").write_text(f"{FOX} today")
    neardup(*WATCH, "--duplicates", "dup", *FAST, "--once")
    assert rows()[-1] | {"time": ""} == {
        "id": "third.txt",
        "kind": "exact",
        "of": "wire/again.txt",
        "similarity": 1.0,
        "time": "",
        "file": "third.txt",
    }


def test_a_released_item_of_a_file_of_several_is_written_to_one_of_its_own(judged: Path) -> None:
    neardup("store", "release", "news.db", "y")
    assert json.loads(Path("out/more.jsonl").read_text()) == {"id": "y", "text": f"{ROSE} and again"}
    neardup("store", "release", "news.db", "x")
    (second,) = Path("out").glob("more~*.jsonl")
    assert json.loads(second.read_text())["id"] == "x"
    assert [row["id"] for row in rows()] == ["wire/again.txt"]


def test_what_cannot_be_released_listed_or_reported_is_refused(judged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("dup/wire/again.txt").unlink()
    Path("mine.html").write_text("mine")
    before = sorted(Path().rglob("*"))
    for command, parts in {
        ("store", "release", "news.db", "wire/again.txt"): ("'wire/again.txt'", "dup", "any more"),
        ("store", "release", "news.db", "nobody"): ("'nobody'", "neardup store list"),
        ("store", "release", "none.db", "x"): ("none.db", "not a store"),
        ("store", "list", "in/none.db"): ("none.db", "not a store"),
        ("store", "list", "news.db", "--since", "soon"): ("--since", "'soon'", "not a time"),
        ("store", "list", "news.db", "--today", "--since", "2024"): ("--since 2024", "--today"),
        ("store", "report", "none.db", "-o", "page.html"): ("none.db", "not a store"),
        ("store", "report", "out/fox.txt", "-o", "page.html"): ("out/fox.txt",),
        ("store", "report", "news.db", "-o", "page.htm"): ("page.htm ", ".html"),
        ("store", "report", "news.db", "-o", "none/page.html"): ("folder none ", "exist", "make it"),
        ("store", "report", "news.db", "-o", "in/page.html"): ("in/page.html", "is inside", "in:"),
        ("store", "report", "news.db", "-o", "mine.html"): ("mine.html", "exists", "--force"),
        ("store", "report", "news.db", "-o", "page.html", "--precision", "0.9"): ("--precision", "--classifier"),
    }.items():
        assert says(refused(*command), *parts), command
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'neardup[report]' brings" in refused("store", "report", "news.db", "-o", "page.html")
    assert sorted(Path().rglob("*")) == before
    assert len(rows()) == 3


def test_a_running_watcher_releases_items_and_a_signal_ends_it_with_0(judged: Path) -> None:
    started = start_process(*WATCH, "--duplicates", "dup", *FAST)
    (judged / "late.txt").write_text(FOX)
    end = time.monotonic() + NEVER
    while len(rows()) < 4:
        assert started.poll() is None, wait_for_end(started)
        assert time.monotonic() < end
        time.sleep(0.02)
    assert says(neardup("store", "report", "news.db", "-o", "page.html").stderr, "6 items", "4 duplicates", "page.html")
    page = Path("page.html").read_text("utf-8")
    assert "neardup store report news.db -o page.html" in Markup(page).text
    assert "wire/again.txt" in page
    assert says(
        neardup("store", "release", "news.db", "x", "--by", "ann").stderr, "x is now an original", "out/more.jsonl"
    )
    assert says(refused("store", "release", "news.db", "x"), "'x' was released already by ann")
    assert "x" not in [row["id"] for row in rows()]
    started.send_signal(signal.SIGTERM)
    code, out, err = wait_for_end(started)
    *_, stopping, stopped = events(err)
    assert (code, out, stopping["event"], stopped["event"]) == (0, "", "stopping", "stopped")
    (released,) = (event for event in events(err) if event["event"] == "released")
    assert (released["id"], released["by"], Path(released["file"]).name) == ("x", "ann", "more.jsonl")
    # Nobody holds the store any more: another run goes on, and a report is replaced.
    assert {path.name for path in Path().glob("news.db*")} == {"news.db", "news.db.lock"}
    (judged / "rose-again.txt").write_text(ROSE)
    neardup(*WATCH, "--duplicates", "dup", *FAST, "--once")
    assert says(neardup("store", "report", "news.db", "-o", "page.html").stderr, "7 items", "4 duplicates")
