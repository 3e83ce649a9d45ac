"""The report of a store: its verdicts and texts, and which files it reads."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from classifiers import DATED, FACTS, make_classifier
from newsroom import Newsroom, edited, feed_of, lines_of, text_of
from page_markup import Markup
from sentences import says

from neardup.errors import RecipeError, StoreError
from neardup.pages.verdicts import ORIGINAL, Verdicts
from neardup.stream.document import Document
from neardup.stream.index import Index
from neardup.stream.store import StoreReader
from neardup.watch.placed import PlacedItems, release
from neardup.watch.report import StoredFlow, write_report


def filled(room: Newsroom) -> None:
    """Originals and duplicates as single files, in a feed, in JSON lines; unreadable files; repeated ids."""
    room.deliver("wire/a.txt", text_of(1))
    room.deliver("wire/b.txt", edited(text_of(1)))
    room.deliver("agency/c.txt", text_of(2))
    room.deliver("feed.xml", feed_of([("g1", text_of(3)), ("g2", edited(text_of(2))), ("g3", text_of(3))]))
    lines = [{"id": "l1", "text": text_of(4)}, {"id": "g1", "title": "Again", "text": text_of(1)}]
    room.deliver("more.jsonl", lines_of([*lines, {"id": "l2", "title": "T", "text": f"{text_of(5)} <b>&"}]))
    room.deliver("bad.json", '{"id": "cut')


def placed(room: Newsroom, max_bytes: int = 10**6) -> PlacedItems:
    return PlacedItems(str(room.out), str(room.duplicates), "auto", max_bytes)


def test_a_stored_flow_has_all_verdicts_and_texts(room: Newsroom) -> None:
    filled(room)
    room.run_once()
    with StoreReader(room.store) as reader:
        found = StoredFlow(reader, placed(room), "", 1000)
        flow = found.flow
        verdicts = room.verdicts()
        assert flow.ids.to_pylist() == list(verdicts)
        for at, (kind, of) in enumerate(verdicts.values()):
            assert flow.keeper(at) == (of or "")
            assert (flow.keeper_rows[at] == ORIGINAL) == (kind == "original")
            assert flow.exact[at] == (kind == "exact")
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
        assert reader.counts["arrived"] == 9


def test_expired_texts_are_read_from_the_output_folders(room: Newsroom) -> None:
    filled(room)
    room.run_once()
    with contextlib.closing(sqlite3.connect(room.store)) as connection:
        connection.execute("UPDATE tally SET value = 1000 WHERE name = 'forgotten'")
        connection.commit()
    with StoreReader(room.store) as reader:
        found = StoredFlow(reader, placed(room), "", 1000)
        place = {name: at for at, name in enumerate(found.flow.ids.to_pylist())}
        everything = list(range(len(found.flow)))
        assert set(found.texts(everything)) == set(everything)
        # A rewritten original has another text, and a removed one has none.
        (room.out / "wire/a.txt").write_text("something else")
        (room.out / "agency/c.txt").unlink()
        (room.duplicates / "feed.xml.jsonl").unlink()
        left = set(everything) - set(StoredFlow(reader, placed(room), "", 1000).texts(everything))
        assert {place["wire/a.txt"], place["agency/c.txt"]} <= left
        assert place["l2"] not in left
        # The limit of bytes is kept.
        assert StoredFlow(reader, placed(room, 10), "", 1000).texts(everything) == {}


def test_a_released_item_of_a_feed_has_its_title_once(room: Newsroom) -> None:
    """A line of the duplicates has the title and the text, which begins with the title or is nothing else."""
    title, body = text_of(1, 20), text_of(2)
    with_body = f"<item><title>{title}</title><description>{body}</description></item>"
    without_body = f"<item><title>{body}</title></item>"
    feed = f'<rss version="2.0"><channel>{2 * (with_body + without_body)}</channel></rss>'
    room.deliver("feed.xml", feed)
    with room.watcher() as watcher:
        watcher.run()
        assert watcher.index.store is not None
        for number, text in ((3, f"{title}\n{body}"), (4, body)):
            release(watcher.index, watcher.index.store, f"feed.xml#{number}", "ann")
            assert watcher.index.text_of(f"feed.xml#{number}") == text


def test_links_pipes_and_torn_sidecars_are_not_followed(room: Newsroom) -> None:
    room.deliver("a.txt", text_of(1))
    room.deliver("b.txt", edited(text_of(1)))
    room.run_once()
    with StoreReader(room.store) as reader:
        (origin,) = (row.origin for row in reader.latest_documents(9) if row.id == "b.txt")

    def find(name: str = "b.txt", origin: str = origin) -> Any:
        return placed(room).find(name, origin, is_duplicate=True)

    assert find() is not None
    assert find("other") is None
    assert find(origin="no origin of a file") is None
    text = room.duplicates / "b.txt"
    for kind in ("none", "link", "pipe"):
        text.unlink(missing_ok=True)
        if kind == "link":
            text.symlink_to("/etc/hostname")
        elif kind == "pipe":
            os.mkfifo(text)
        assert find() is None
    text.unlink()
    text.write_text("x")
    (room.duplicates / "b.txt.neardup.json").write_text("[" * 100_000)
    assert find() is None


def test_the_latest_items_include_the_earlier_originals_they_repeat(room: Newsroom) -> None:
    for number, text in enumerate([text_of(1), text_of(2), text_of(3), edited(text_of(1)), text_of(1)]):
        room.deliver(f"{number}.txt", text)
    room.run_once()
    with StoreReader(room.store) as reader:
        found = StoredFlow(reader, placed(room), "", 2)
        flow = found.flow
        assert flow.ids.to_pylist() == ["0.txt", "3.txt", "4.txt"]
        assert flow.earlier_count == 1
        assert flow.keeper_rows.tolist() == [ORIGINAL, 0, 0]
        assert flow.duplicates.tolist() == [1, 2]
        assert found.texts([0])[0].text == text_of(1)


def report_of(room: Newsroom, page: Path, **more: Any) -> Verdicts:
    return write_report(str(room.store), str(page), **more)


def test_a_report_beside_a_running_watcher(room: Newsroom, tmp_path: Path) -> None:
    filled(room)
    with room.watcher() as watcher:
        watcher.run()
        report_of(room, tmp_path / "page.html", command="neardup store report <news.db>")
        page = (tmp_path / "page.html").read_text("utf-8")
        for words in (
            "neardup store report &lt;news.db&gt;",
            "rejected: the file ends in the middle",
            "9: 5 originals and 4 duplicates",
            "wire/b.txt",
            "How long after its original",
        ):
            assert words in page
        assert watcher.index.add(Document("later", text_of(1), None)).of == "wire/a.txt"
        assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []
    # Rejections of earlier runs are counted as well.
    room.deliver("worse.json", '{"id": "cut')
    room.run_once()
    flow = report_of(room, tmp_path / "page.html", items=3)
    assert len(flow) - flow.earlier_count == 3
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "2" in page[page.index("rejected: the file ends in the middle") :][:200]
    assert "about the latest 3 items; 10 arrived" in page


def test_released_items_are_listed_separately(room: Newsroom, tmp_path: Path) -> None:
    filled(room)
    with room.watcher() as watcher:
        watcher.run()
        assert watcher.index.store is not None
        for name in ("wire/b.txt", "g3"):
            release(watcher.index, watcher.index.store, name, "<b>ann</b>")
    report_of(room, tmp_path / "page.html")
    page = Markup((tmp_path / "page.html").read_text("utf-8")).text
    assert "matches nothing in the window5" in page
    assert "was stopped first, and released later2" in page
    rows = page[page.index("Items that were stopped, and that somebody let pass") :].split("How this was made")[0]
    # The latest release first, with the former verdict.
    assert says(rows, "g3", "exact copy of g1", "wire/b.txt", "near-duplicate, 0.", "of wire/a.txt")
    assert rows.count("<b>ann</b>") == 2
    # Releases before the reported items are not counted.
    flow = report_of(room, tmp_path / "page.html", items=1)
    assert flow.ids.to_pylist()[flow.earlier_count :] == ["g3"]
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "g3" in page
    assert "wire/b.txt" not in page


def test_the_report_of_an_empty_store_is_complete(room: Newsroom, tmp_path: Path) -> None:
    room.run_once()
    report_of(room, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "No item arrived." in page
    assert "The families below" not in page


def test_the_report_of_a_classifier_store_needs_the_classifier(tmp_path: Path) -> None:
    with Index(classifier=make_classifier(FACTS, bias=0.4), path=tmp_path / "s.db") as index:
        index.add(Document("a", text_of(1)))
    report = partial(write_report, str(tmp_path / "s.db"), str(tmp_path / "page.html"))
    with pytest.raises(StoreError, match="classifier="):
        report()
    with pytest.raises(RecipeError, match="not of that classifier"):
        report(classifier=make_classifier(DATED, bias=1.0))
    assert len(report(classifier=make_classifier(FACTS, bias=0.4))) == 1
