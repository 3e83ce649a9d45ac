"""``neardup watch --report``: as a process, and what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from calling import FOX, NEVER, ROSE, finished, neardup, process, refused
from saying import says

FAST = ("--settle", "0", "--poll", "0.05", "--patience", "0", "--recipe", "ddd")
WATCH = ("watch", "in", "--store", "news.db", "--originals", "out", "--duplicates", "dup", *FAST)


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


def events(err: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in err.splitlines()]


def test_once_writes_the_page_when_all_is_in_its_place(inbox: Path) -> None:
    said = events(neardup(*WATCH, "--once", "--report", "page.html").stderr)
    assert [line["event"] for line in said] == ["started", "duplicate", "report", "stopped"]
    assert {name: said[2][name] for name in ("file", "items", "duplicates")} == {
        "file": "page.html",
        "items": 3,
        "duplicates": 1,
    }
    page = Path("page.html").read_text("utf-8")
    assert "--report page.html" in page
    assert "again.txt" in page
    # The next run replaces it, for it is a report.
    (inbox / "rose-again.txt").write_text(ROSE)
    said = events(neardup(*WATCH, "--once", "--report", "page.html").stderr)
    assert said[-2]["items"] == 4


def test_a_signal_lets_it_write_the_last_page(inbox: Path) -> None:
    started = process(*WATCH, "--report", "page.html", "--report-every", "end")
    end = time.monotonic() + NEVER
    while not Path("out/rose.txt").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    started.send_signal(signal.SIGTERM)
    code, _, err = finished(started)
    assert code == 0, err
    assert [line["event"] for line in events(err)][-3:] == ["report", "stopping", "stopped"]
    assert Path("page.html").exists()


def test_a_folder_that_goes_stops_no_item(inbox: Path) -> None:
    Path("pages").mkdir()
    started = process(*WATCH, "--report", "pages/page.html", "--report-every", "end")
    end = time.monotonic() + NEVER
    while not Path("out/rose.txt").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    shutil.rmtree("pages")
    started.send_signal(signal.SIGINT)
    code, _, err = finished(started)
    assert code == 0, err
    (trouble,) = [line for line in events(err) if line["event"] == "trouble"]
    assert says(trouble["message"], "no report", "pages/page.html", "written")
    assert events(err)[-1]["items"] == 3


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("--report", "page.htm"), ("page.htm ", ".html")),
        (("--report", "none/page.html"), ("folder none ", "exist", "make it")),
        (("--report", "in/page.html"), ("in/page.html", "input folder in")),
        (("--report", "mine.html"), ("mine.html", "exists", "--force")),
        (("--report", "page.html", "--report-every", "soon"), ("--report-every", "'soon'", "time")),
        (("--report", "page.html", "--report-every", "0s"), ("--report-every 0s", "a second", "10m")),
        (("--report", "page.html", "--report-every", "0.01m"), ("--report-every 0.01m", "a second", "10m")),
        (("--report", "page.html", "--report-items", "0"), ("--report-items", "'0'", "whole number", "from 1")),
        (("--report", "page.html", "--report-families", "x"), ("--report-families", "'x'", "whole number")),
        (("--report-every", "5m"), ("--report-every 5m", "--report FILE.html")),
        (("--report-rows", "5"), ("--report-rows 5", "--report FILE.html")),
        (("--force",), ("--force", "--report FILE.html")),
    ],
)
def test_refusals(inbox: Path, options: tuple[str, ...], parts: tuple[str, ...]) -> None:
    Path("mine.html").write_text("mine")
    assert says(refused(*WATCH, "--once", *options), *parts)
    assert sorted(path.name for path in inbox.iterdir()) == ["again.txt", "fox.txt", "rose.txt"]
    assert not Path("news.db").exists()


def test_packages_that_draw_are_asked_for_before_anything_is_taken(
    inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert 'pip install "neardup[report]"' in refused(*WATCH, "--once", "--report", "page.html")
    assert not Path("news.db").exists()
