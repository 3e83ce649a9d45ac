"""``neardup report``: the page of a store while a watcher fills it and later, and what it refuses."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from calling import FOX, NEVER, ROSE, finished, neardup, process, refused
from saying import says

WATCH = (
    "watch",
    "in",
    "--store",
    "news.db",
    "--originals",
    "out",
    "--settle",
    "0",
    "--poll",
    "0.05",
    "--recipe",
    "ddd",
)


@pytest.fixture
def inbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An inbox with three items, in the current folder."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "in"
    folder.mkdir()
    for number, (name, text) in enumerate({"fox.txt": FOX, "again.txt": f"{FOX} today", "rose.txt": ROSE}.items()):
        (folder / name).write_text(text)
        os.utime(folder / name, (number, number))
    return folder


def test_the_page_of_a_watcher_that_runs_and_of_one_that_has_stopped(inbox: Path) -> None:
    started = process(*WATCH)
    end = time.monotonic() + NEVER
    while not Path("out/rose.txt").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    said = neardup("report", "news.db", "-o", "page.html").stderr
    assert says(said, "3 items", "1 duplicate", "page.html")
    page = Path("page.html").read_text("utf-8")
    assert "neardup report news.db -o page.html" in page
    assert "again.txt" in page
    started.send_signal(signal.SIGTERM)
    code, _, err = finished(started)
    assert code == 0, err
    (inbox / "rose-again.txt").write_text(ROSE)
    neardup(*WATCH, "--once")
    # An earlier report is replaced.
    assert says(neardup("report", "news.db", "-o", "page.html").stderr, "4 items", "2 duplicates")


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("-o", "page.htm"), ("page.htm ", ".html")),
        (("-o", "none/page.html"), ("folder none ", "exist", "make it")),
        (("-o", "in/page.html"), ("in/page.html", "is inside", "in:")),
        (("-o", "mine.html"), ("mine.html", "exists", "--force")),
        (("-o", "page.html", "--precision", "0.9"), ("--precision", "--classifier")),
    ],
)
def test_refusals(inbox: Path, options: tuple[str, ...], parts: tuple[str, ...]) -> None:
    neardup(*WATCH, "--once")
    Path("mine.html").write_text("mine")
    assert says(refused("report", "news.db", *options), *parts)
    assert Path("mine.html").read_text() == "mine"
    assert not list(Path().glob("page*"))


def test_what_is_no_store_is_refused(inbox: Path) -> None:
    assert says(refused("report", "none.db", "-o", "page.html"), "none.db", "no store")
    assert says(refused("report", "in/fox.txt", "-o", "page.html"), "in/fox.txt")


def test_packages_that_draw_are_asked_for(inbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    neardup(*WATCH, "--once")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert 'pip install "neardup[report]"' in refused("report", "news.db", "-o", "page.html")
