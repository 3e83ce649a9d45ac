"""What a watcher stopped: ``neardup stopped``, ``neardup release`` and ``neardup report`` on its store."""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from commands import FOX, NEVER, ROSE, neardup, refused, start_process, wait_for_end
from page_markup import Markup
from sentences import says

FAST = ("--settle", "0", "--poll", "0.05", "--patience", "0", "--recipe", "ddd")
WATCH = ("watch", "in", "--store", "news.db", "--originals", "out", "--duplicates", "dup", *FAST)


@pytest.fixture(autouse=True)
def inbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An inbox whose items were judged, in the current folder."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "in"
    (folder / "wire").mkdir(parents=True)
    items = [{"id": "x", "text": f"{ROSE} again"}, {"id": "y", "text": f"{ROSE} and again"}]
    texts = {"fox.txt": FOX, "wire/again.txt": f"{FOX} today", "rose.txt": ROSE, "more.jsonl": ""}
    for number, (name, text) in enumerate(texts.items()):
        lines = "".join(json.dumps(item) + "\n" for item in items)
        (folder / name).write_text(text or lines)
        os.utime(folder / name, (number, number))
    neardup(*WATCH, "--once")
    return folder


def rows(*options: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in neardup("stopped", "news.db", "--json", *options).stdout.splitlines()]


def test_stopped_lists_each_duplicate_with_its_reason() -> None:
    found = rows()
    assert [(row["id"], row["of"], row["kind"], row["file"]) for row in found] == [
        ("wire/again.txt", "fox.txt", "near", "wire/again.txt"),
        ("x", "rose.txt", "near", "more.jsonl"),
        ("y", "rose.txt", "near", "more.jsonl"),
    ]
    assert all(0.7 <= row["similarity"] < 1 for row in found)
    line = neardup("stopped", "news.db").stdout.splitlines()[0]
    assert says(line, found[0]["time"], "near", f"{found[0]['similarity']:.4f}", "wire/again.txt repeats fox.txt")
    assert len(rows("--today")) == 3
    tomorrow = datetime.fromtimestamp(time.time() + 86_400, UTC).date().isoformat()
    assert rows("--since", tomorrow) == []
    stderr = neardup("stopped", "news.db", "--since", tomorrow).stderr
    assert says(stderr, f"0 items stopped since {tomorrow}T00:00:00Z", "the time of the item itself")
    assert len(rows("--since", "2024-01-01")) == 3


def test_a_released_file_goes_to_the_originals_and_its_copies_are_stopped(inbox: Path) -> None:
    stderr = neardup("release", "news.db", "wire/again.txt", "--by", "ann").stderr
    assert says(stderr, "wire/again.txt", "original", "out/wire/again.txt")
    assert Path("out/wire/again.txt").read_text() == f"{FOX} today"
    assert not list(Path("dup").rglob("again.txt*"))
    assert [row["id"] for row in rows()] == ["x", "y"]
    assert says(refused("release", "news.db", "wire/again.txt"), "'wire/again.txt' was released already by ann at 20")
    assert says(refused("release", "news.db", "fox.txt"), "'fox.txt' was not stopped: it is an original")
    (inbox / "third.txt").write_text(f"{FOX} today")
    neardup(*WATCH, "--once")
    assert rows()[-1] | {"time": ""} == {
        "id": "third.txt",
        "kind": "exact",
        "of": "wire/again.txt",
        "similarity": 1.0,
        "time": "",
        "file": "third.txt",
    }


def test_a_released_item_of_a_file_of_several_is_written_to_one_of_its_own() -> None:
    neardup("release", "news.db", "y")
    assert json.loads(Path("out/more.jsonl").read_text()) == {"id": "y", "text": f"{ROSE} and again"}
    neardup("release", "news.db", "x")
    assert json.loads(Path("out/more~2.jsonl").read_text())["id"] == "x"
    assert [row["id"] for row in rows()] == ["wire/again.txt"]


def test_refusals() -> None:
    Path("dup/wire/again.txt").unlink()
    assert says(refused("release", "news.db", "wire/again.txt"), "'wire/again.txt'", "dup", "any more")
    assert says(refused("release", "news.db", "nobody"), "'nobody'", "neardup stopped")
    assert says(refused("release", "none.db", "x"), "none.db", "not a store")
    assert says(refused("stopped", "in/none.db"), "none.db", "not a store")
    assert says(refused("stopped", "news.db", "--since", "soon"), "--since", "'soon'", "not a time")
    assert says(refused("stopped", "news.db", "--today", "--since", "2024"), "--since 2024", "--today")
    assert len(rows()) == 3
    assert sorted(path.name for path in Path("out").rglob("*.*")) == ["fox.txt", "rose.txt"]


def test_while_a_watcher_runs_it_releases_items_itself() -> None:
    started = start_process(*WATCH)
    end = time.monotonic() + NEVER
    Path("in/late.txt").write_text(FOX)
    while len(rows()) < 4:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert says(neardup("release", "news.db", "x", "--by", "ann").stderr, "x is now an original", "out/more.jsonl")
    assert says(refused("release", "news.db", "x"), "'x' was released already by ann")
    assert "x" not in [row["id"] for row in rows()]
    started.send_signal(signal.SIGTERM)
    code, _, err = wait_for_end(started)
    (said,) = (event for line in err.splitlines() if (event := json.loads(line))["event"] == "released")
    assert (code, said["id"], said["by"], Path(said["file"]).name) == (0, "x", "ann", "more.jsonl")
    assert sorted(path.name for path in Path().glob("news.db*")) == ["news.db", "news.db.lock"]


def test_the_page_of_a_watcher_that_runs_and_of_one_that_has_stopped(inbox: Path) -> None:
    started = start_process(*WATCH)
    Path("in/late.txt").write_text(FOX)
    end = time.monotonic() + NEVER
    while len(rows()) < 4:
        assert time.monotonic() < end
        time.sleep(0.05)
    stderr = neardup("report", "news.db", "-o", "page.html").stderr
    assert says(stderr, "6 items", "4 duplicates", "page.html")
    page = Path("page.html").read_text("utf-8")
    assert "neardup report news.db -o page.html" in Markup(page).text
    assert "wire/again.txt" in page
    started.send_signal(signal.SIGTERM)
    code, _, err = wait_for_end(started)
    assert code == 0, err
    (inbox / "rose-again.txt").write_text(ROSE)
    neardup(*WATCH, "--once")
    # An earlier report is replaced.
    assert says(neardup("report", "news.db", "-o", "page.html").stderr, "7 items", "5 duplicates")


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
def test_report_refusals(options: tuple[str, ...], parts: tuple[str, ...]) -> None:
    Path("mine.html").write_text("mine")
    assert says(refused("report", "news.db", *options), *parts)
    assert Path("mine.html").read_text() == "mine"
    assert not list(Path().glob("page*"))


def test_a_file_that_is_no_store_is_refused() -> None:
    assert says(refused("report", "none.db", "-o", "page.html"), "none.db", "not a store")
    assert says(refused("report", "out/fox.txt", "-o", "page.html"), "out/fox.txt")


def test_missing_chart_packages_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'neardup[report]' brings" in refused("report", "news.db", "-o", "page.html")
