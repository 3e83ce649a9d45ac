"""The store against plain dicts, and what it promises about files, threads and room."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from saying import says
from storing import FLAGS, Twin, opened, stored
from streaming import examples

from neardup.classifier.evidence import Contribution
from neardup.errors import StoreError
from neardup.stream import store as store_module
from neardup.stream.document import Verdict
from neardup.stream.store import Store, Stored

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
STEPS = st.sampled_from(["record", "record", "record", "forget", "unhold", "placed", "state", "reopen"])
WHOLE = st.integers(-(2**63), 2**63 - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
PUSHES = st.lists(
    st.builds(Contribution, TEXTS, st.none() | FINITE, FINITE), unique_by=lambda push: push.measure, max_size=4
)
LEARNED = st.tuples(FINITE, PUSHES.map(tuple))


@st.composite
def rows_of(draw: st.DrawFn, first: int, taken: set[str]) -> list[Stored]:
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
            *draw(st.just((None, ())) | LEARNED),
        )
        text = draw(st.none() | TEXTS | st.integers(1, 5).map(lambda n: "long é" * 1500 * n))
        origin = draw(st.sampled_from(["", "in/a", "in/b\0c"]))
        title = "" if text is None else draw(st.just("") | TEXTS)
        rows.append(Stored(first, name, origin, draw(WHOLE), draw(WHOLE), text is not None, text, verdict, title))
        first += 1
    return rows


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_it_says_what_plain_dicts_say(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_PIECE", "_SWEEP", "_IDS"):  # so small that what is forgotten lingers
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
            store.unhold(serial)
            twin.texts.pop(serial, None)
            twin.titles.pop(serial, None)
        case "placed" if twin.rows:
            serials = data.draw(st.lists(st.sampled_from(sorted(twin.rows)), max_size=4))
            store.placed(serials)
            twin.unplaced -= set(serials)
        case "state":
            key, value = data.draw(TEXTS), data.draw(TEXTS)
            store.set_state(key, value)
            twin.state[key] = value


def test_numbers_of_numpy_come_back_as_pythons(tmp_path: Path) -> None:
    one = np.int64(1)
    verdict = Verdict("b", "near", "a", np.float64(0.5), np.float64(1.5), "", (one, one, one))  # type: ignore[arg-type]
    row = Stored(one, "b", "", one, one, np.True_, "text", verdict)  # type: ignore[arg-type]
    with opened(tmp_path / "news.db") as store:
        store.record([row])
        ((found,),) = store.held()
        assert found == row
        assert {type(value) for value in found} == {int, str, bool, Verdict}
        assert store.next_serial == 2


def test_what_is_unplaced_can_be_placed_meanwhile(tmp_path: Path) -> None:
    with opened(tmp_path / "news.db") as store:
        store.record([stored(serial, origin="in/a") for serial in range(300)])
        for count, row in enumerate(store.unplaced()):
            assert row.serial == count
            if count % 10 == 9:
                store.placed(range(count - 9, count + 1))
        assert list(store.unplaced()) == []
        assert store.judged("in/a") == 300
        assert store.judged("in/b") == 0


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
def test_a_document_that_has_no_place_takes_its_batch_with_it(rows: list[Stored], tmp_path: Path) -> None:
    twin = Twin()
    with opened(tmp_path / "news.db") as store:
        twin.record(first := [stored(0), stored(1)], {"clock": "1"})
        store.record(first, {"clock": "1"})
        with pytest.raises(StoreError) as caught:
            store.record(rows, {"clock": "2"})
        assert says(caught.value, "news.db", "no place for this (", "every document an id")
        twin.check(store)
        store.record([stored(2)])
        assert store.next_serial == 3


def test_an_interrupt_before_or_after_the_commit_leaves_the_numbers_right(tmp_path: Path) -> None:
    class Interrupted(list[Stored]):
        """Interrupts when it is gone through for the third time, within the transaction."""

        times = 0

        def __iter__(self) -> Iterator[Stored]:
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
        assert store.known(["doc1"]) == set()
        assert store.counts["arrived"] == 1
        with pytest.raises(KeyboardInterrupt):
            interrupted_after_the_commit()
        assert store.counts["late"] == 7
        store.record([stored(1)])
        assert store.next_serial == 2


def test_forgotten_room_is_used_again(tmp_path: Path) -> None:
    path = tmp_path / "news.db"
    with opened(path) as store:
        sizes = []
        for hour in range(12):
            rows = [stored(serial, text="word " * 400) for serial in range(hour * 300, hour * 300 + 300)]
            for begin in range(0, 300, 50):
                store.record(rows[begin : begin + 50])
            store.forget((hour - 2) * 300)
            pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
            sizes.append(pages)
        assert sizes[-1] < sizes[4] * 1.15
        assert sum(map(len, store.held())) == 900


def test_what_is_forgotten_is_gone_from_the_file_when_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_PIECE", 10)
    path = tmp_path / "news.db"
    with opened(path) as store:
        store.record([stored(serial) for serial in range(100)])
        store.forget(95)
        assert store.text_of("doc94") is None
        assert store.verdict_of("doc94") is not None
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM held").fetchone() == (5,)
    connection.close()


def test_others_may_read_it_while_it_is_in_use(tmp_path: Path) -> None:
    path = tmp_path / "news.db"
    with opened(path) as store:
        store.record([stored(0)])
        reader = sqlite3.connect(path)
        query = "SELECT d.id, h.text, datetime(d.judged, 'unixepoch') FROM documents d JOIN held h USING (serial)"
        assert reader.execute(query).fetchall() == [("doc0", "a text", "1970-01-01 00:00:00")]
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM documents").fetchone() == (1,)
        store.record([stored(1)])  # a reader's open transaction holds nobody up
        assert reader.execute("SELECT count(*) FROM documents").fetchone() == (1,)
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM documents").fetchone() == (2,)
        reader.close()


def test_stores_are_apart_and_links_lead_to_the_same(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "news.db")
    with opened(tmp_path / "news.db"), opened(tmp_path / "other.db") as other:
        other.record([stored(0)])
        with pytest.raises(StoreError) as caught:
            opened(tmp_path / "link.db")
        assert says(caught.value, "news.db", "in use", f"process {os.getpid()} (this one)")
    with opened(tmp_path / "link.db") as store:
        assert store.next_serial == 0


def test_names_that_mean_something_elsewhere_are_only_names(tmp_path: Path) -> None:
    path = tmp_path / "a?b#c%41 é.db"
    with opened(path) as store:
        store.record([stored(0)])
    with opened(path) as store:
        assert store.next_serial == 1
    assert sorted(found.name for found in tmp_path.iterdir()) == [path.name, f"{path.name}.lock"]
