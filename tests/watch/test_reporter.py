"""Reports of a watcher: when they are made, what they are made of, and that nothing else depends on them."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from newsroom import Newsroom, edited, feed_of, lines_of, text_of
from saying import says

from neardup.errors import NeardupError, OutputError, RecipeError, StoreError
from neardup.pages.report import Extent
from neardup.pages.verdicts import ELSEWHERE, ORIGINAL
from neardup.stream.document import Document
from neardup.stream.index import Index
from neardup.stream.store import StoreReader
from neardup.watch import report_process as reporting
from neardup.watch.judge import Log
from neardup.watch.report import Delivered, StoredFlow, command, write_report
from neardup.watch.report_process import Reporter, Tasks, Wanted


class Desk:
    """A reporter whose process is any Python code, and whose clock is moved by hand."""

    def __init__(self, code: str, *, every: float = 10.0) -> None:
        self.now = 0.0
        self.state = 0
        self.said: list[tuple[str, dict[str, Any]]] = []
        log = Log(lambda event, fields: self.said.append((event, fields)), clock=lambda: self.now)
        started = [sys.executable, "-c", code]
        self.reporter = Reporter(started, lambda: {"state": self.state}, every=every, log=log, clock=lambda: self.now)

    def until(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + 300
        while not true():
            assert time.monotonic() < end
            self.reporter.tick()
            time.sleep(0.005)

    def events(self) -> list[str]:
        return [event for event, _ in self.said]


GOOD = "import json, sys; task = json.load(sys.stdin); print(json.dumps({'file': 'r.html', 'seen': task['state']}))"


def test_a_report_is_made_when_it_is_due_and_something_has_happened() -> None:
    desk = Desk(GOOD)
    desk.reporter.tick()
    assert desk.reporter.pause == 10.0
    assert desk.said == []
    desk.now, desk.state = 10.0, 1
    desk.until(lambda: bool(desk.said))
    assert desk.said == [("report", {"file": "r.html", "seen": 1, "seconds": 0.0})]
    desk.now = 25.0
    desk.reporter.tick()  # nothing new has arrived
    desk.now, desk.state = 36.0, 2
    desk.until(lambda: len(desk.said) == 2)
    assert desk.said[1][1]["seen"] == 2
    assert desk.reporter.written == 36.0


def test_at_most_a_tenth_of_the_time_goes_into_reports() -> None:
    desk = Desk("import time; time.sleep(.2)", every=1.0)
    desk.now = 1.0
    desk.reporter.tick()
    desk.now = 7.0  # it took six seconds
    desk.until(lambda: bool(desk.said))
    assert desk.reporter.pause == 60.0


def test_a_failure_is_told_and_the_watcher_goes_on() -> None:
    desk = Desk("import sys; sys.stderr.write('neardup: the disk is full\\n'); sys.exit(2)")
    desk.now, desk.state = 10.0, 1
    desk.until(lambda: bool(desk.said))
    ((event, fields),) = desk.said
    assert (event, set(fields)) == ("trouble", {"message"})
    assert says(fields["message"], "no report", "disk is full", "watcher goes on")
    desk.reporter._command = [sys.executable, "-c", GOOD]
    desk.now = 20.0
    desk.until(lambda: len(desk.said) == 3)
    assert desk.events() == ["trouble", "well", "report"]


def test_a_process_that_cannot_be_started_or_ended_with_nothing_to_say() -> None:
    desk = Desk("")
    desk.reporter._command = ["/no/such/program"]
    desk.reporter.finish()
    assert "no process can be started" in desk.said[0][1]["message"]
    other = Desk("import os; os._exit(7)")
    other.reporter.finish()
    ((event, fields),) = other.said
    assert (event, set(fields)) == ("trouble", {"message"})
    assert says(fields["message"], "no report", "exit code 7;", "watcher goes on")


def test_one_that_takes_too_long_is_ended() -> None:
    desk = Desk("import time; time.sleep(600)")
    desk.now, desk.state = 10.0, 1
    desk.reporter.tick()
    desk.reporter.tick()
    assert desk.said == []
    desk.now += reporting.LONGEST + 1
    desk.reporter.tick()
    assert "it was not ready after" in desk.said[0][1]["message"]
    assert desk.reporter._process is None


def test_the_last_report_is_waited_for_and_an_interruption_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(GOOD, every=float("inf"))
    assert desk.reporter.pause == float("inf")
    desk.reporter.finish()
    assert desk.events() == ["report"]
    desk.reporter.finish()  # nothing has happened since
    assert desk.events() == ["report"]
    slow = Desk("import time; time.sleep(600)")

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(slow.reporter, "_wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        slow.reporter.finish()
    assert slow.reporter._process is None


def filled(room: Newsroom) -> None:
    """Originals and duplicates as single files, in a feed, in JSON lines; what cannot be read; ids that come twice."""
    room.deliver("wire/a.txt", text_of(1))
    room.deliver("wire/b.txt", edited(text_of(1)))
    room.deliver("agency/c.txt", text_of(2))
    room.deliver("feed.xml", feed_of([("g1", text_of(3)), ("g2", edited(text_of(2))), ("g3", text_of(3))]))
    lines = [{"id": "l1", "text": text_of(4)}, {"id": "g1", "title": "Again", "text": text_of(1)}]
    room.deliver("more.jsonl", lines_of([*lines, {"id": "l2", "title": "T", "text": f"{text_of(5)} <b>&"}]))
    room.deliver("bad.json", '{"id": "cut')


def stored(room: Newsroom, most: int = 1000) -> tuple[StoreReader, StoredFlow]:
    reader = StoreReader(str(room.store))
    return reader, StoredFlow(reader, Delivered(str(room.out), str(room.duplicates), "auto", 10**6), "", most)


def test_a_store_as_a_flow(room: Newsroom) -> None:
    filled(room)
    room.take()
    reader, found = stored(room)
    with reader:
        flow = found.flow
        verdicts = room.verdicts()
        assert flow.ids.to_pylist() == list(verdicts)
        for at, (kind, of) in enumerate(verdicts.values()):
            assert flow.keeper(at) == (of or "")
            assert (flow.of[at] == ORIGINAL) == (kind == "original")
            assert flow.exact[at] == (kind == "exact")
        assert flow.sources is not None
        assert sorted(set(flow.sources.to_pylist())) == ["", "agency", "wire"]
        place = {name: at for at, name in enumerate(verdicts)}
        texts = found.texts(range(len(flow)))
        assert {flow.id(at): texts[at].text for at in texts} == {
            "wire/a.txt": text_of(1),
            "wire/b.txt": edited(text_of(1)),
            "agency/c.txt": text_of(2),
            "g1": text_of(3),
            "g2": edited(text_of(2)),
            "g3": text_of(3),
            "l1": text_of(4),
            "g1~2": f"Again\n{text_of(1)}",
            "l2": f"T\n{text_of(5)} <b>&",
        }
        assert texts[place["l2"]].title == "T"
        words = found.words(np.array([place["wire/b.txt"], place["l1"]]))
        assert words[place["wire/b.txt"]].startswith(text_of(1)[:40])
        assert reader.counts()["arrived"] == 9


def test_what_has_left_the_window_is_read_where_it_was_put_or_missing(room: Newsroom) -> None:
    filled(room)
    room.take()
    with contextlib.closing(sqlite3.connect(room.store)) as connection:
        connection.execute("UPDATE tally SET value = 1000 WHERE name = 'forgotten'")
        connection.commit()
    reader, found = stored(room)
    with reader:
        place = {name: at for at, name in enumerate(found.flow.ids.to_pylist())}
        everything = list(range(len(found.flow)))
        assert set(found.texts(everything)) == set(everything)
        # An original that somebody wrote anew is another text, and one that is taken away is none.
        (room.out / "wire/a.txt").write_text("something else")
        (room.out / "agency/c.txt").unlink()
        (room.duplicates / "feed.xml.jsonl").unlink()
        again = StoredFlow(reader, Delivered(str(room.out), str(room.duplicates), "auto", 10**6), "", 1000)
        left = set(everything) - set(again.texts(everything))
        assert {place["wire/a.txt"], place["agency/c.txt"]} <= left
        assert place["l2"] not in left
        # Nor is more read than may be.
        small = StoredFlow(reader, Delivered(str(room.out), str(room.duplicates), "auto", 10), "", 1000)
        assert small.texts(everything) == {}


def test_links_pipes_and_torn_sidecars_are_not_followed(room: Newsroom) -> None:
    room.deliver("a.txt", text_of(1))
    room.deliver("b.txt", edited(text_of(1)))
    room.take()
    with StoreReader(str(room.store)) as reader:
        origin = {row.id: row.origin for row in reader.last(9)}
    folder = Delivered(str(room.out), str(room.duplicates), "auto", 10**6)
    assert folder.item("b.txt", origin["b.txt"], is_duplicate=True) is not None
    assert folder.item("other", origin["b.txt"], is_duplicate=True) is None
    assert folder.item("b.txt", "no origin of a file", is_duplicate=True) is None
    text = room.duplicates / "b.txt"
    for kind in ("none", "link", "pipe"):
        text.unlink(missing_ok=True)
        if kind == "link":
            text.symlink_to("/etc/hostname")
        elif kind == "pipe":
            os.mkfifo(text)
        assert (
            Delivered(str(room.out), str(room.duplicates), "auto", 10**6).item(
                "b.txt", origin["b.txt"], is_duplicate=True
            )
            is None
        )
    text.unlink()
    text.write_text("x")
    (room.duplicates / "b.txt.neardup.json").write_text("[" * 100_000)
    assert folder.item("b.txt", origin["b.txt"], is_duplicate=True) is None


def test_the_latest_items_with_what_they_repeat_from_before(room: Newsroom) -> None:
    for number, text in enumerate([text_of(1), text_of(2), text_of(3), edited(text_of(1)), text_of(1)]):
        room.deliver(f"{number}.txt", text)
    room.take()
    reader, found = stored(room, 2)
    with reader:
        flow = found.flow
        assert flow.ids.to_pylist() == ["0.txt", "3.txt", "4.txt"]
        assert flow.before == 1
        assert flow.of.tolist() == [ORIGINAL, 0, 0]
        assert flow.duplicates.tolist() == [1, 2]
        assert found.texts([0])[0].text == text_of(1)


def test_chains_of_everything_begin_where_the_report_does(tmp_path: Path) -> None:
    words = text_of(1).split()
    with Index("ddd", window=None, against="everything", path=tmp_path / "s.db") as index:
        for number in range(4):
            changed = [f"new{number}" if at % 20 < number else word for at, word in enumerate(words)]
            index.add(Document(str(number), " ".join(changed), float(number)))
        chain = [verdict.of for verdict in map(index.verdict_of, "0123") if verdict is not None]
        assert chain[1:] == ["0", "1", "2"]
        with StoreReader(str(tmp_path / "s.db")) as reader:
            flow = StoredFlow(reader, Delivered("", "", "auto", 0), "", 2).flow
    assert flow.ids.to_pylist() == ["1", "2", "3"]
    assert flow.of.tolist() == [ELSEWHERE, 0, 1]
    assert flow.keeper(0) == "0"


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        StoreReader(str(tmp_path / "none.db"))
    (tmp_path / "text.db").write_text("no store " * 100)
    with pytest.raises(StoreError):
        StoreReader(str(tmp_path / "text.db"))


def test_a_report_of_a_running_watcher(room: Newsroom, tmp_path: Path) -> None:
    """The whole way: the task as JSON, the process, the page; the store is open and goes on."""
    filled(room)
    with room.watcher() as watcher:
        watcher.run()
        store = watcher.index.store
        assert store is not None
        wanted = Wanted(output=str(tmp_path / "page.html"), extent=Extent(), command="neardup watch <in>")
        flow = {"window": "24h", "against": "originals"}
        tasks = Tasks(wanted, watcher.settings, watcher.index, store, watcher.counters, flow)
        reporter = Reporter(command(), tasks, every=1.0, log=watcher._log)
        reporter.finish()
        assert room.events("trouble") == []
        (said,) = room.events("report")
        assert (said["items"], said["duplicates"]) == (9, 4)
        page = (tmp_path / "page.html").read_text("utf-8")
        assert said["bytes"] == len(page.encode())
        for words in (
            "neardup watch &lt;in&gt;",
            "rejected: the file ends in the middle",
            "wire/b.txt",
            "What arrived",
        ):
            assert words in page
        assert watcher.index.add(Document("later", text_of(1), None)).of == "wire/a.txt"
        assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_a_report_of_nothing(room: Newsroom, tmp_path: Path) -> None:
    with room.watcher() as watcher:
        store = watcher.index.store
        assert store is not None
        wanted = Wanted(output=str(tmp_path / "page.html"), extent=Extent())
        flow = {"window": "24h", "against": "originals"}
        task = Tasks(wanted, watcher.settings, watcher.index, store, watcher.counters, flow)()
        found = write_report(json.loads(json.dumps(task)))
    assert (found["items"], found["duplicates"]) == (0, 0)
    assert "What was stopped, and why" in (tmp_path / "page.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("report.txt", "does not end in .html"),
        ("none/report.html", "the folder .* does not exist"),
        ("inbox/report.html", "is inside the input folder"),
        ("inbox/.neardup/report.html", "does not exist|is inside"),
        ("out/report.html", "is inside the input folder"),
        ("page.html", "exists: choose another name"),
    ],
)
def test_a_page_that_would_be_in_the_way_is_refused(room: Newsroom, tmp_path: Path, name: str, message: str) -> None:
    room.out.mkdir()
    (tmp_path / "page.html").write_text("<title>mine</title>")
    wanted = Wanted(output=str(tmp_path / name), extent=Extent())
    with pytest.raises(OutputError, match=message):
        wanted.check(room.settings(), str(room.store), force=False)


def test_an_earlier_report_is_replaced(room: Newsroom, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<title>What was stopped, and why - neardup</title>")
    Wanted(output=str(page), extent=Extent()).check(room.settings(), str(room.store), force=False)
    page.write_text("<title>mine</title>")
    Wanted(output=str(page), extent=Extent()).check(room.settings(), str(room.store), force=True)


@pytest.mark.parametrize("change", [{"every": 0.5}, {"every": float("nan")}, {"items": 0}])
def test_numbers_out_of_range(change: dict[str, Any]) -> None:
    with pytest.raises(RecipeError):
        Wanted(output="r.html", extent=Extent(), **change)
    with pytest.raises(NeardupError):
        Extent(families=-1)
