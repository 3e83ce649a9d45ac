"""``neardup watch`` as a process: what it says, how it ends, what it refuses."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import FOX, NEVER, ROSE, neardup, refused, start_process, wait_for_end
from sentences import says

from neardup.recipe import load_recipe
from neardup.stream.store import Store, StoreIdentity

FAST = ("--settle", "0", "--poll", "0.05", "--patience", "0", "--recipe", "ddd")


@pytest.fixture
def inbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An inbox with two items, in the current folder."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "in"
    folder.mkdir()
    for number, (name, text) in enumerate({"fox.txt": FOX, "again.txt": f"{FOX} today", "rose.txt": ROSE}.items()):
        (folder / name).write_text(text)
        os.utime(folder / name, (number, number))
    return folder


def events(err: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in err.splitlines()]


def until(true: Callable[[], bool], started: subprocess.Popen[str]) -> None:
    end = time.monotonic() + NEVER
    while not true():
        assert started.poll() is None, wait_for_end(started)
        assert time.monotonic() < end
        time.sleep(0.01)


def test_once_processes_the_present_files_and_exits(inbox: Path) -> None:
    arguments = ("watch", "in", "--store", "news.db", "--originals", "out", "--duplicates", "dup", *FAST, "--once")
    result = neardup(*arguments)
    assert result.stdout == ""
    log_events = events(result.stderr)
    assert [line["event"] for line in log_events] == ["started", "duplicate", "stopped"]
    assert log_events[0]["recipe"] == "ddd"
    assert log_events[0]["window"] == "24h"
    assert (log_events[1]["id"], log_events[1]["kind"], log_events[1]["of"], log_events[1]["file"]) == (
        "again.txt",
        "near",
        "fox.txt",
        "again.txt",
    )
    assert {name: log_events[2][name] for name in ("files", "items", "originals", "duplicates", "saved_s", "held")} == {
        "files": 3,
        "items": 3,
        "originals": 2,
        "duplicates": 1,
        "saved_s": 10.0,
        "held": 2,
    }
    assert all(line["time"].endswith("Z") for line in log_events)
    assert sorted(path.name for path in Path("out").iterdir()) == ["fox.txt", "rose.txt"]
    assert sorted(path.name for path in Path("dup").iterdir()) == ["again.txt", "again.txt.neardup.json"]


def test_a_signal_ends_it_with_0(inbox: Path) -> None:
    started = start_process("watch", "in", "--store", "news.db", "--originals", "out", *FAST)
    until(lambda: Path("out/rose.txt").exists(), started)
    started.send_signal(signal.SIGTERM)
    code, out, err = wait_for_end(started)
    assert (code, out) == (0, "")
    assert [line["event"] for line in events(err)][-2:] == ["stopping", "stopped"]
    assert events(err)[-1]["items"] == 3
    # Nobody holds the store any more, and another run goes on.
    again = neardup("watch", "in", "--store", "news.db", "--originals", "out", *FAST, "--once")
    assert events(again.stderr)[0]["held"] == 2


def test_at_a_terminal_there_is_a_panel_that_nothing_escapes_from(inbox: Path) -> None:
    (inbox / "evil\x1b[31m.txt").write_text(f"{ROSE} again")
    ours, theirs = pty.openpty()
    started = start_process(
        "watch",
        "in",
        "--store",
        "news.db",
        "--originals",
        "out",
        *FAST,
        stderr=theirs,
        env={"TERM": "xterm", "NO_COLOR": ""},
    )
    os.close(theirs)
    shown = b""
    try:
        end = time.monotonic() + NEVER
        while b"evil" not in shown and time.monotonic() < end:
            shown += os.read(ours, 4096)
        started.send_signal(signal.SIGINT)
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:
        # The end of a terminal.
        pass
    os.close(ours)
    code, out, _ = wait_for_end(started)
    text = shown.decode()
    assert (code, out) == (0, "")
    for words in ("neardup watch in", "duplicates", "saved 20 s of processing, spent", "evil␛[31m.txt = rose.txt"):
        assert words in text
    assert "evil\x1b" not in text
    (last,) = (line for line in text.splitlines() if "stopped: " in line)
    for words in ("4 files", "4 items", "2 originals", "2 duplicates (50.0%)", "saved 20 s"):
        assert words in last


def test_a_store_in_use_is_refused_in_one_sentence(inbox: Path, tmp_path: Path) -> None:
    settings = {"window": "24h", "window_by": "time", "against": "originals"}
    with Store(tmp_path / "news.db", StoreIdentity(load_recipe("ddd").fingerprint, settings)):
        message = refused("watch", "in", "--store", "news.db", "--originals", "out", *FAST)
    assert says(message, str(tmp_path / "news.db"), "in use", f"process {os.getpid()}")
    assert not Path("out").exists()


def test_a_folder_that_cannot_be_made_is_refused_before_there_is_a_store(inbox: Path) -> None:
    Path("taken").write_text("a file, not a folder")
    for option in ("--originals", "--done"):
        folders = {"--originals": "out"} | {option: "taken/out"}
        arguments = [word for pair in folders.items() for word in pair]
        message = refused("watch", "in", "--store", "news.db", *arguments, *FAST)
        assert says(message, f"taken/out for {option} cannot be made", "name a folder")
    assert sorted(path.name for path in Path().iterdir()) == ["in", "taken"]
    assert len(list(inbox.iterdir())) == 3


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["nowhere"], ("nowhere", "exist", "name the folder")),
        (["in", "--originals", "in/out"], ("in/out", "--originals", "inbox in")),
        (["in", "--store", "in/news.db"], ("in/news.db", "--store", "inbox in", "outside")),
        (["in", "--duplicates", "out"], ("out ", "--originals", "--duplicates", "two folders")),
        (["in", "--poll", "0"], ("--poll 0 ", "[0.05, 86400]")),
        (["in", "--place", "copy"], ("--place", "'copy'", "move or link")),
        (["in", "--content", "best"], ("--content", "'best'", "auto, html, tags, plain")),
        (["in", "--html", "--content", "tags"], ("--html", "--content", "'tags'", "one of the two")),
        (["in", "--window", "yesterday"], ("window", "'yesterday'")),
        (["in", "--threshold", "2"], ("threshold", "2.0", "(0, 1]")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_refusals(arguments: list[str], parts: tuple[str, ...], inbox: Path) -> None:
    words = [*arguments]
    for option, value in (("--store", "news.db"), ("--originals", "out")):
        words += [] if option in arguments else [option, value]
    assert says(refused("watch", *words), *parts)
    assert len(list(inbox.iterdir())) == 3


def test_pages_can_be_compared_whole(inbox: Path) -> None:
    for path in inbox.iterdir():
        path.unlink()
    for number in range(2):
        # The same text under markup that has hardly a gram in common.
        letters = "abcdefghijklm" if number else "nopqrstuvwxyz"
        markup = " ".join(f"data-{a}{b}{c}='{c}{b}{a}'" for a in letters for b in letters for c in letters[:3])
        (inbox / f"{number}.html").write_text(f"<html><body><p {markup}>{FOX}</p></body></html>")
    for content, duplicates in (("tags", 1), ("plain", 0)):
        arguments = ("--store", f"{content}.db", "--originals", f"out-{content}", *FAST, "--once", "--content", content)
        result = neardup("watch", "in", *arguments, "--place", "link", "--duplicates", f"dup-{content}")
        log_events = events(result.stderr)
        assert log_events[-1]["duplicates"] == duplicates
        assert log_events[-1]["items"] == 2
