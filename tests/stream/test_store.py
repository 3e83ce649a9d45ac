"""The store against plain dicts, and its promises on readers, space, recipes and requests."""

from __future__ import annotations

import contextlib
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
from storing import Twin, arrival_of, open_store, stored_document
from streaming import examples

import neardup as nd
from neardup.classifier.evidence import Contribution
from neardup.errors import ClosedStore, StoreError
from neardup.stream import store as store_module
from neardup.stream.document import FLAGS, Arrival, Verdict
from neardup.stream.store import Store, StoreReader, request_release
from neardup.text import stop_words as lists

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
STEPS = st.sampled_from(["record", "record", "record", "forget", "unhold", "placed", "state", "reopen"])
WHOLE = st.integers(-(2**63), 2**63 - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
CONTRIBUTIONS = st.lists(
    st.builds(Contribution, TEXTS, st.none() | FINITE, FINITE), unique_by=lambda push: push.measure, max_size=4
)
CLASSIFIER_SCHEMA = st.tuples(FINITE, CONTRIBUTIONS.map(tuple))


@st.composite
def rows_of(draw: st.DrawFn, first: int, taken: set[str]) -> list[Arrival]:
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
        rows.append(arrival_of(first, verdict, text, draw(WHOLE), draw(WHOLE), origin=origin, title=title))
        first += 1
    return rows


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_store_equals_its_twin_of_dicts(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So small that what is forgotten lingers.
    for name in ("_FORGET_BATCH", "_MIN_DELETED", "_IDS_PER_QUERY", "_ROWS_PER_INSERT"):
        monkeypatch.setattr(store_module, name, 2)
    path = tmp_path_factory.mktemp("store") / "news.db"
    twin, taken = Twin(), set[str]()
    steps = [data.draw(STEPS) for _ in range(data.draw(st.integers(1, 10)))]
    while steps:
        with open_store(path) as store:
            twin.check(store)
            while steps and (step := steps.pop()) != "reopen":
                follow_step(data, step, store, twin, taken)
                twin.check(store)
    with open_store(path) as store:
        twin.check(store)


def follow_step(data: st.DataObject, step: str, store: Store, twin: Twin, taken: set[str]) -> None:
    """Do the same with both."""
    match step:
        case "record":
            rows = data.draw(rows_of(store.next_serial, taken))
            state = data.draw(st.dictionaries(TEXTS, TEXTS, max_size=2))
            store.record(rows, state)
            twin.record(rows, state)
        case "forget":
            below = data.draw(st.integers(0, store.next_serial + 5))
            store.forget(below)
            twin.forget(below)
        case "unhold" if twin.rows:
            serial = data.draw(st.sampled_from(sorted(twin.rows)))
            store.delete_text(serial)
            twin.window_serials.discard(serial)
        case "placed" if twin.rows:
            serials = data.draw(st.lists(st.sampled_from(sorted(twin.rows)), max_size=4))
            store.mark_placed(serials)
            twin.unplaced -= set(serials)
        case "state":
            key, value = data.draw(TEXTS), data.draw(TEXTS)
            store.set_state(key, value)
            twin.state[key] = value


def test_unplaced_documents_can_be_marked_while_they_are_read(tmp_path: Path) -> None:
    with open_store(tmp_path / "news.db") as store:
        store.record([stored_document(serial, origin="in/a") for serial in range(300)])
        for count, row in enumerate(store.unplaced_documents()):
            assert row.serial == count
            if count % 10 == 9:
                store.mark_placed(range(count - 9, count + 1))
        assert list(store.unplaced_documents()) == []


@pytest.mark.parametrize(
    "last",
    [
        stored_document(6, "doc0"),
        stored_document(1, "other"),
        stored_document(6, "doc5"),
        stored_document(6, verdict=Verdict("doc6", "strange", None, None, 0.0, "", None)),
    ],
    ids=["id", "serial", "twice", "kind"],
)
def test_a_document_that_cannot_be_stored_rejects_its_batch(last: Arrival, tmp_path: Path) -> None:
    twin = Twin()
    with open_store(tmp_path / "news.db") as store:
        twin.record(first := [stored_document(0), stored_document(1)], {"clock": "1"})
        store.record(first, {"clock": "1"})
        with pytest.raises(StoreError, match=r"news\.db .*every document its own id"):
            store.record([stored_document(5), last], {"clock": "2"})
        twin.check(store)


def test_space_of_forgotten_texts_is_reused(tmp_path: Path) -> None:
    path = tmp_path / "news.db"
    with open_store(path) as store:
        sizes = []
        for hour in range(12):
            rows = [stored_document(serial, text="word " * 400) for serial in range(hour * 300, hour * 300 + 300)]
            for begin in range(0, 300, 50):
                store.record(rows[begin : begin + 50])
            store.forget((hour - 2) * 300)
            sizes.append(store._connection.execute("PRAGMA page_count").fetchone()[0])
        assert sizes[-1] < sizes[4] * 1.15
        store.forget(3595)
        expired = store.find("doc3594")
        assert expired is not None
        assert expired.text is None
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM held").fetchone() == (5,)


def test_a_store_in_use_can_be_read_by_others(tmp_path: Path) -> None:
    path = tmp_path / "a?b#c%41 é.db"
    contributions = Contribution("jaccard(words:4)", 0.75, 1.5), Contribution("title", None, -0.25)
    near = Verdict("doc1", "near", "doc0", 0.9, 0.25, "", (9, 10, 10), 1.25, contributions)
    with open_store(path) as store:
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,), "a power cut would lose verdicts"
        store.record([stored_document(0, title="A title")])
        with contextlib.closing(sqlite3.connect(path)) as shell:
            query = "SELECT id, text, title, datetime(judged, 'unixepoch') FROM documents JOIN held USING (serial)"
            assert shell.execute(query).fetchall() == [("doc0", "a text", "A title", "1970-01-01 00:00:00")]
            shell.execute("BEGIN")
            assert shell.execute("SELECT count(*) FROM documents").fetchone() == (1,)
            store.record([stored_document(1, verdict=near)])  # a reader's open transaction holds nobody up
            assert shell.execute("SELECT count(*) FROM documents").fetchone() == (1,)
            shell.execute("COMMIT")
            found = shell.execute("SELECT score, measures FROM documents WHERE score NOT NULL").fetchall()
            assert found == [(1.25, '{"jaccard(words:4)":[0.75,1.5],"title":[null,-0.25]}')]
        with StoreReader(path) as reader:
            assert [row.id for row in reader.stopped_documents(0.0)] == ["doc1"]
    with StoreReader(path) as reader:
        assert reader.verdict_of("doc1") == near
    assert sorted(found.name for found in tmp_path.iterdir()) == [path.name, f"{path.name}.lock"]


def test_a_release_request_is_answered_by_the_owner_of_the_store(tmp_path: Path) -> None:
    path, answers = tmp_path / "news.db", list[dict[str, str]]()
    with open_store(path) as store:
        with pytest.raises(StoreError) as caught:
            request_release(path, "a", "ann", 0.02)
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


def kind_or_error(path: Path, name: str, **choices: Any) -> str:
    """Return the kind of a document that is added to a store, or the error."""
    try:
        with nd.Index("default", path=path, window=None, **choices) as index:
            return index.add(nd.Document(name, NEWS, "2024-05-01T08:00")).kind
    except StoreError as error:
        return str(error)


@pytest.fixture
def other_stop_words(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The list of English stop words has one more."""
    original, cached = stop_words.get_stop_words, (lists.stop_words, lists._language_stop_words)
    with monkeypatch.context() as patch:
        patch.setattr(stop_words, "get_stop_words", lambda code: original(code) + ["harbour"] * (code == "en"))
        for function in cached:
            function.cache_clear()
        yield
    for function in cached:
        function.cache_clear()


def test_a_recipe_whose_meaning_has_changed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    path = tmp_path / "news.db"
    assert kind_or_error(path, "a", stop_words="en") == "original"
    # Another version of Unicode is no other meaning, if the tables are the same.
    monkeypatch.setattr(unicodedata, "unidata_version", "99.0.0")
    assert kind_or_error(path, "b", stop_words="en") == "exact"
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("neardup.text.normalize.kernel_tables", lambda name: [np.zeros(3, int)])
        assert "Unicode tables differ" in kind_or_error(path, "c", stop_words="en")
    found = kind_or_error(path, "c", stop_words="en", threshold=0.5)
    assert says(found, "news.db was made", "another recipe", "name another path")
    request.getfixturevalue("other_stop_words")
    assert "other stop words" in kind_or_error(path, "c", stop_words="en")
    assert path.read_bytes() == before
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = '9b149c4753197aee' WHERE name = 'fingerprint'")
        connection.execute("DELETE FROM meta WHERE name LIKE 'depends on %'")
    assert "older neardup" in kind_or_error(path, "c", stop_words="en")


def test_a_store_is_closed_only_when_no_thread_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "news.db"
    with open_store(path) as store:
        store.record([stored_document(serial, text="a text " * 200) for serial in range(400)], {})
    faults: list[BaseException] = []

    def read(reader: StoreReader) -> None:
        try:
            while True:
                assert len(list(reader.window_documents(50))) == 8
                assert reader.find("doc7") is not None
        except ClosedStore:
            pass
        except BaseException as fault:
            faults.append(fault)

    for _ in range(8):
        reader = StoreReader(path)
        threads = [threading.Thread(target=read, args=[reader]) for _ in range(6)]
        for thread in threads:
            thread.start()
        reader.find("doc1")
        reader.close()
        for thread in threads:
            thread.join()
    assert faults == []
    assert not path.with_name("news.db-wal").exists()
