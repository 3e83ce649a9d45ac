"""The label store: what is on the disk after a kill, undo and history, other files, several users."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sentences import says

from neardup.errors import StoreError
from neardup.labels.store import DIFFERENT, SAME, Judgement, LabelStore, OpenPair, load_labels, majority_labels

AB, AC, BC = ("a", "b"), ("a", "c"), ("b", "c")


def judged(pair: tuple[str, str], labeller: str = "anna", answer: str = "same") -> Judgement:
    return Judgement(pair, labeller, answer, "spread", 0.5, 3.0, ("x", "y"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labels.db"


def test_a_recorded_label_survives_a_kill(path: Path) -> None:
    code = (
        "import os, sys; from neardup.labels.store import *; store = LabelStore(sys.argv[1]);"
        "store.record([Judgement(('a', 'b'), 'anna', 'same')]); print('done', flush=True); sys.stdin.read()"
    )
    arguments = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert majority_labels(path) == [("a", "b", 1)]
    with LabelStore(path) as store:
        assert store.labels == {AB: {"anna": "same"}}


def test_two_connections_see_each_others_labels(path: Path) -> None:
    with LabelStore(path) as one, LabelStore(path) as other:
        before = other.version
        assert other.version == before
        one.record([judged(AB)])
        assert other.version > before
        other.record([judged(AB, "bob", "different")])
        assert one.labels == {AB: {"anna": "same", "bob": "different"}}
        assert load_labels(path) == one.labels
        assert majority_labels(path) == []


def test_a_batch_is_stored_completely_or_not_at_all(path: Path) -> None:
    with LabelStore(path) as store:
        with pytest.raises(StoreError, match="cannot be used"):
            store.record([judged(AB), judged(AC, answer="nonsense")])
        with pytest.raises(StoreError, match="cannot be used"):
            store.record([judged(("b", "a"))])
        assert store.labels == {}


def test_other_files_are_refused_and_stay_unchanged(tmp_path: Path) -> None:
    text, other, newer, damaged = (tmp_path / name for name in ("text.db", "other.db", "newer.db", "damaged.db"))
    text.write_text("id1,id2,label\n")
    LabelStore(newer).close()
    for file, statement in ((other, "CREATE TABLE mine (x)"), (newer, "PRAGMA user_version = 7")):
        with closing(sqlite3.connect(file)) as connection:
            connection.execute(statement)
    with LabelStore(damaged) as store:
        store.record([judged((f"{at}", f"{at}x")) for at in range(500)])
    data = bytearray(damaged.read_bytes())
    data[4096:] = b"\x55" * (len(data) - 4096)
    damaged.write_bytes(data)
    wrong = {
        text: "not a SQLite file",
        other: "not a label store",
        newer: "format 7",
        tmp_path: "is a folder",
        damaged: "damaged",
        tmp_path / "none" / "labels.db": "not a folder",
    }
    for place, message in wrong.items():
        before = place.read_bytes() if place.is_file() else None
        with pytest.raises(StoreError, match=message), LabelStore(place) as store:
            store.record([judged(AB)])
        assert (place.read_bytes() if place.is_file() else None) == before
    with pytest.raises(StoreError, match="is missing or empty"):
        majority_labels(tmp_path / "missing.db")
    with pytest.raises(StoreError, match="not a SQLite file"):
        majority_labels(text)


def test_a_log_without_its_store_is_refused_and_kept(path: Path) -> None:
    store = LabelStore(path)
    store.record([judged(AB)])
    log = path.with_name("labels.db-wal").read_bytes()
    store.close()
    path.unlink()
    path.with_name("labels.db-wal").write_bytes(log)
    with pytest.raises(StoreError, match="with labels of it exists"):
        LabelStore(path)


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    with LabelStore(path) as store:
        store.record([judged(AB)])
    assert majority_labels(path) == [("a", "b", 1)]


class Twin:
    """The labels of a store, from the history alone."""

    def __init__(self) -> None:
        self.history: list[tuple[str, tuple[str, str], str]] = []

    def undo(self, labeller: str) -> tuple[str, str] | None:
        for at in reversed(range(len(self.history))):
            if self.history[at][0] == labeller:
                return self.history.pop(at)[1]
        return None

    def labels(self) -> dict[tuple[str, str], dict[str, str]]:
        found: dict[tuple[str, str], dict[str, str]] = {}
        for labeller, pair, answer in self.history:
            if answer != "skip":
                found.setdefault(pair, {})[labeller] = answer
        return found

    def skipped(self, labeller: str) -> list[tuple[str, str]]:
        labels = self.labels()
        last = {
            pair: at for at, (name, pair, answer) in enumerate(self.history) if (name, answer) == (labeller, "skip")
        }
        return sorted((pair for pair in last if labeller not in labels.get(pair, {})), key=last.__getitem__)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["anna", "bob"]),
        st.sampled_from([AB, AC, BC]),
        st.sampled_from(["same", "different", "unsure", "skip", "undo", "undo"]),
    ),
    max_size=25,
)


@settings(max_examples=15)  # each step is flushed to the disk
@given(steps=STEPS, reopened=st.booleans())
@example(steps=[("anna", AB, "skip"), ("anna", AC, "skip"), ("anna", AB, "skip")], reopened=False)
def test_labels_follow_from_the_history_of_answers(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, tuple[str, str], str]], reopened: bool
) -> None:
    place, twin = tmp_path_factory.mktemp("store") / "labels.db", Twin()
    with ExitStack() as stack:
        store = stack.enter_context(LabelStore(place))
        for labeller, pair, answer in steps:
            if answer == "undo":
                last = store.undo(labeller)
                assert (last.pair if last else None) == twin.undo(labeller)
            else:
                store.record([judged(pair, labeller, answer)])
                twin.history.append((labeller, pair, answer))
        if reopened:
            store.close()
            store = stack.enter_context(LabelStore(place))
        assert store.labels == twin.labels()
        assert [store.skipped(name) for name in ("anna", "bob")] == [twin.skipped(name) for name in ("anna", "bob")]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE labels SET answer = 'perhaps'",
        "UPDATE labels SET labeller = x'00'",
        "UPDATE history SET time = 'yesterday'",
        "UPDATE history SET similarity = 'high'",
        "UPDATE asked SET reason = x'ff'",
        "ALTER TABLE history ADD COLUMN more",
        "DROP TABLE asked",
        "CREATE TRIGGER t AFTER INSERT ON history BEGIN DELETE FROM labels; END",
        "DROP TABLE asked; CREATE VIEW asked AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT 'anna' AS labeller, 'a' AS id1, 'b' AS id2, '' AS reason, i AS similarity FROM n",
    ],
)
def test_a_store_with_other_values_or_tables_is_refused(change: str, path: Path) -> None:
    with LabelStore(path) as store:
        store.record([Judgement(("a", "b"), "anna", SAME), Judgement(("a", "c"), "anna", DIFFERENT)])
        store.set_open_pair("anna", OpenPair(("b", "c"), "close", 0.5))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.executescript(change)

    def use() -> None:
        with LabelStore(path) as store:
            store.judgements()
            store.open_pairs()
            store.counts()

    with pytest.raises(StoreError) as caught:
        use()
    assert says(caught.value, str(path), "damaged", "restore it")
