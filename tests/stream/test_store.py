"""The store against plain dicts, and what it promises about readers, room, recipes and requests."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stop_words
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sentences import says
from storing import FLAGS, Twin, opened, stored
from streaming import examples

import neardup as nd
from neardup.classifier.evidence import Contribution
from neardup.errors import StoreError
from neardup.stream import store as store_module
from neardup.stream.document import Verdict
from neardup.stream.store import Store, StoredDocument, StoreReader, request_release
from neardup.text import stop_words as lists

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
STEPS = st.sampled_from(["record", "record", "record", "forget", "unhold", "placed", "state", "reopen"])
WHOLE = st.integers(-(2**63), 2**63 - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
PUSHES = st.lists(
    st.builds(Contribution, TEXTS, st.none() | FINITE, FINITE), unique_by=lambda push: push.measure, max_size=4
)
CLASSIFIER_SCHEMA = st.tuples(FINITE, PUSHES.map(tuple))


@st.composite
def rows_of(draw: st.DrawFn, first: int, taken: set[str]) -> list[StoredDocument]:
    rows = []
    for _ in range(draw(st.integers(0, 6))):
        first += draw(st.sampled_from([0, 0, 0, 1, 50]))
        name = draw(TEXTS.filter(lambda text: text not in taken))
        taken.add(name)
        verdict = Verdict(
            name,
            draw(st.sampled_from(["original", "near", "exact"])),
            draw(st.none() | TEXTS),
            draw(st.none() | st.floats(0, 1)),
            draw(st.floats(-1e11, 1e11)),
            draw(st.sampled_from(["", *FLAGS])),
            draw(st.none() | st.tuples(WHOLE, WHOLE, WHOLE)),
            *draw(st.just((None, ())) | CLASSIFIER_SCHEMA),
        )
        text = draw(st.none() | TEXTS | st.integers(1, 5).map(lambda n: "long é" * 1500 * n))
        origin = draw(st.sampled_from(["", "in/a", "in/b\0c"]))
        title = "" if text is None else draw(st.just("") | TEXTS)
        rows.append(StoredDocument(first, verdict, origin, draw(WHOLE), draw(WHOLE), text is not None, text, title))
        first += 1
    return rows


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_it_says_what_plain_dicts_say(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "_FORGET_BATCH",
        "_MIN_DELETED",
        "_IDS_PER_QUERY",
        "_ROWS_PER_INSERT",
    ):  # so small that what is forgotten lingers
        monkeypatch.setattr(store_module, name, 2)
    path = tmp_path_factory.mktemp("store") / "news.db"
    twin, taken = Twin(), set[str]()
    steps = [data.draw(STEPS) for _ in range(data.draw(st.integers(1, 10)))]
    while steps:
        with opened(path) as store:
            twin.check(store)
            while steps and (step := steps.pop()) != "reopen":
                follow(data, step, store, twin, taken)
                twin.check(store)
    with opened(path) as store:
        twin.check(store)


def follow(data: st.DataObject, step: str, store: Store, twin: Twin, taken: set[str]) -> None:
    """Do the same with both."""
    match step:
        case "record":
            rows = data.draw(rows_of(store.next_serial, taken))
            state = data.draw(st.dictionaries(TEXTS, TEXTS, max_size=2))
            store.record(rows, state)
            twin.record(rows, state)
        case "forget":
            below = data.draw(st.integers(0, store.next_serial))
            store.forget(below)
            twin.forget(below)
        case "unhold" if twin.rows:
            serial = data.draw(st.sampled_from(sorted(twin.rows)))
            store.delete_text(serial)
            twin.held.discard(serial)
        case "placed" if twin.rows:
            serials = data.draw(st.lists(st.sampled_from(sorted(twin.rows)), max_size=4))
            store.mark_placed(serials)
            twin.unplaced -= set(serials)
        case "state":
            key, value = data.draw(TEXTS), data.draw(TEXTS)
            store.set_state(key, value)
            twin.state[key] = value


def test_what_is_unplaced_can_be_placed_meanwhile(tmp_path: Path) -> None:
    with opened(tmp_path / "news.db") as store:
        store.record([stored(serial, origin="in/a") for serial in range(300)])
        for count, row in enumerate(store.unplaced_documents()):
            assert row.serial == count
            if count % 10 == 9:
                store.mark_placed(range(count - 9, count + 1))
        assert list(store.unplaced_documents()) == []


@pytest.mark.parametrize(
    "rows",
    [
        [stored(5), stored(6, "doc0")],
        [stored(5), stored(1, "other")],
        [stored(5, "x"), stored(6, "x")],
        [stored(5), stored(6, verdict=Verdict("doc6", "strange", None, None, 0.0, "", None))],
    ],
    ids=["id", "serial", "twice", "kind"],
)
def test_a_document_that_has_no_place_takes_its_batch_with_it(rows: list[StoredDocument], tmp_path: Path) -> None:
    twin = Twin()
    with opened(tmp_path / "news.db") as store:
        twin.record(first := [stored(0), stored(1)], {"clock": "1"})
        store.record(first, {"clock": "1"})
        with pytest.raises(StoreError) as caught:
            store.record(rows, {"clock": "2"})
        assert says(caught.value, "news.db", "every document its own id")
        twin.check(store)


def test_an_interrupt_before_or_after_the_commit_leaves_the_numbers_right(tmp_path: Path) -> None:
    class Interrupted(list[StoredDocument]):
        """Interrupts when it is gone through for the third time, within the transaction."""

        times = 0

        def __iter__(self) -> Iterator[StoredDocument]:
            self.times += 1
            if self.times == 3:
                raise KeyboardInterrupt
            return super().__iter__()

    def interrupted_after_the_commit() -> None:
        with store._writing() as connection:
            connection.execute("UPDATE tally SET value = 7 WHERE name = 'late'")
            connection.execute("COMMIT")
            raise KeyboardInterrupt

    with opened(tmp_path / "news.db") as store:
        store.record([stored(0)])
        with pytest.raises(KeyboardInterrupt):
            store.record(Interrupted([stored(1)]))
        assert (store.judged_ids(["doc1"]), store.counts["arrived"]) == (set(), 1)
        with pytest.raises(KeyboardInterrupt):
            interrupted_after_the_commit()
        assert store.counts["late"] == 7
        store.record([stored(1)])
        assert store.next_serial == 2


def test_forgotten_room_is_used_again_and_what_lingers_goes_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "news.db"
    with opened(path) as store:
        sizes = []
        for hour in range(12):
            rows = [stored(serial, text="word " * 400) for serial in range(hour * 300, hour * 300 + 300)]
            for begin in range(0, 300, 50):
                store.record(rows[begin : begin + 50])
            store.forget((hour - 2) * 300)
            sizes.append(store._connection.execute("PRAGMA page_count").fetchone()[0])
        assert sizes[-1] < sizes[4] * 1.15
        store.forget(3595)
        assert (store.text_of("doc3594"), store.verdict_of("doc3594") is None) == (None, False)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM held").fetchone() == (5,)


def test_others_may_read_it_while_it_is_in_use_and_leave_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "a?b#c%41 é.db"
    pushes = Contribution("jaccard(words:4)", 0.75, 1.5), Contribution("title", None, -0.25)
    near = Verdict("doc1", "near", "doc0", 0.9, 0.25, "", (9, 10, 10), 1.25, pushes)
    with opened(path) as store:
        store.record([stored(0, title="A title")])
        with contextlib.closing(sqlite3.connect(path)) as shell:
            query = "SELECT id, text, title, datetime(judged, 'unixepoch') FROM documents JOIN held USING (serial)"
            assert shell.execute(query).fetchall() == [("doc0", "a text", "A title", "1970-01-01 00:00:00")]
            shell.execute("BEGIN")
            assert shell.execute("SELECT count(*) FROM documents").fetchone() == (1,)
            store.record([stored(1, verdict=near)])  # a reader's open transaction holds nobody up
            assert shell.execute("SELECT count(*) FROM documents").fetchone() == (1,)
            shell.execute("COMMIT")
            found = shell.execute("SELECT score, measures FROM documents WHERE score NOT NULL").fetchall()
            assert found == [(1.25, '{"jaccard(words:4)":[0.75,1.5],"title":[null,-0.25]}')]
        with StoreReader(path) as reader:
            assert [row.id for row in reader.stopped_documents(0.0)] == ["doc1"]
    with StoreReader(path) as reader:
        assert reader.verdict_of("doc1") == near
    assert sorted(found.name for found in tmp_path.iterdir()) == [path.name, f"{path.name}.lock"]


def test_stores_are_apart_and_links_lead_to_the_same(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "news.db")
    with opened(tmp_path / "news.db"), opened(tmp_path / "other.db") as other:
        other.record([stored(0)])
        with pytest.raises(StoreError) as caught:
            opened(tmp_path / "link.db")
        assert says(caught.value, "news.db", "in use", f"process {os.getpid()} (this one)")
    with opened(tmp_path / "link.db") as store:
        assert store.next_serial == 0


def test_a_request_is_answered_by_who_has_the_store(tmp_path: Path) -> None:
    path, answers = tmp_path / "news.db", list[dict[str, str]]()
    with opened(path) as store:
        with pytest.raises(StoreError) as caught:
            request_release(path, "a", "ann", 0.2)
        assert says(caught.value, "in use", "has not answered", "stop it")
        asking = threading.Thread(target=lambda: answers.append(request_release(path, "b", "ann", 60.0)))
        asking.start()
        while not (found := store.requests()):
            pass
        assert found == [("b", "ann")]
        store.answer_request("b", {"file": "out/b.txt"})
        asking.join()
        assert (answers, store.requests()) == ([{"file": "out/b.txt"}], [])


NEWS = "The harbour board voted to widen the eastern channel at a cost of forty million crowns"


def again(path: Path, **choices: Any) -> str:
    """What a store of an English recipe says of a copy when it is opened again."""
    with nd.Index(path=path, window=None, **choices) as index:
        index.add(nd.Document("a", NEWS, "2024-05-01T08:00"))
    return reopened(path, **choices)


def reopened(path: Path, **choices: Any) -> str:
    try:
        with nd.Index(path=path, window=None, **choices) as index:
            return index.add(nd.Document("b", NEWS, "2024-05-01T09:00")).kind
    except StoreError as error:
        return str(error)


def test_a_recipe_that_means_something_else_by_now_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "news.db"
    own = stop_words.get_stop_words
    assert again(path, stop_words="en") == "exact"
    monkeypatch.setattr(unicodedata, "unidata_version", "99.0.0")
    assert again(tmp_path / "new.db", stop_words="en") == "exact"
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("neardup.text.normalize.kernel_tables", lambda name: [np.zeros(3, int)])
        assert "Unicode tables differ" in reopened(path, stop_words="en")
    with monkeypatch.context() as patch:
        patch.setattr(stop_words, "get_stop_words", lambda code: own(code) + ["harbour"] * (code == "en"))
        for cached in (lists.stop_words, lists._language_stop_words):
            cached.cache_clear()
        assert "other stop words" in reopened(path, stop_words="en")
        assert again(tmp_path / "plain.db") == "exact"
    for cached in (lists.stop_words, lists._language_stop_words):
        cached.cache_clear()
    assert says(
        reopened(path, stop_words="en", threshold=0.5), "news.db was made", "another recipe", "name another path"
    )
    assert path.read_bytes() == before
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = '9b149c4753197aee' WHERE name = 'fingerprint'")
        connection.execute("DELETE FROM meta WHERE name LIKE 'depends on %'")
    assert "older neardup" in reopened(path, stop_words="en")
