"""Import and export of labels, labels of another corpus, and the reader of documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from labelling_room import TEXTS, Room, reader_of
from sentences import says

from neardup.documents import Corpus, corpus_of
from neardup.errors import InputError, RecipeError, StoreError
from neardup.labelling.label_index import ExportResult, ImportResult, LabelIndex, export, import_answers, read_answers
from neardup.labels.labels import read_labels
from neardup.labels.store import Judgement, LabelStore
from neardup.pages.documents import DocumentReader


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    with Room(tmp_path / "labels.db") as made:
        yield made


def fill(room: Room) -> None:
    answers = [
        ("a1", "a2", "anna", "same"),
        ("a1", "a2", "bob", "same"),
        ("b1", "b2", "anna", "different"),
        ("b1", "b2", "bob", "unsure"),
        ("c1", "c2", "anna", "different"),
        ("c1", "c2", "bob", "same"),
        ("a1", "b1", "bob", "unsure"),
    ]
    room.store.record(
        [Judgement((one, other), name, answer, "spread", 0.25, 4.5, time=1e9) for one, other, name, answer in answers]
    )


def test_an_export_is_read_as_labels(room: Room, tmp_path: Path) -> None:
    fill(room)
    out = tmp_path / "labels.csv"
    assert export(room.store, out) == ExportResult(2, 1, 1)
    assert out.read_text() == "id1,id2,label,same,different,unsure\na1,a2,1,2,0,0\nb1,b2,0,0,1,1\n"
    labels = read_labels(out, list(TEXTS))
    assert (labels.duplicates, labels.different_pairs) == (1, 1)
    direct = read_labels(room.store.path, list(TEXTS))
    assert (direct.duplicates, direct.different_pairs) == (1, 1)


def test_an_export_of_each_label_is_imported_into_another_store(room: Room, tmp_path: Path) -> None:
    fill(room)
    out = tmp_path / "each.csv"
    assert export(room.store, out, each=True).rows == 7
    assert out.read_text().splitlines()[:2] == [
        "id1,id2,labeller,answer,time,seconds,reason,similarity",
        "a1,a2,anna,same,1000000000.000,4.5,spread,0.25",
    ]
    with Room(tmp_path / "other.db") as other:
        assert import_answers(other.index, read_answers(out)) == ImportResult(7, 0, 0, 0, 0)
        assert other.store.labels == room.store.labels
        assert import_answers(other.index, read_answers(out)) == ImportResult(0, 7, 0, 0, 0)
        # Imported answers cannot be undone.
        assert other.store.undo("anna") is None
        assert other.index.check() == []


def test_an_import_keeps_stored_answers_and_counts_empty_ones(room: Room, tmp_path: Path) -> None:
    fill(room)
    table = tmp_path / "given.tsv"
    table.write_text("left\tright\tlabel\na2\ta1\t0\nb1\tb2\tNo\na1\tc1\t1\nzz\ta1\t1\na1\tc2\t \nb1\tc2\t?\n")
    assert import_answers(room.index, read_answers(table, labeller="anna")) == ImportResult(2, 1, 1, 1, empty=1)
    assert room.store.labels["a1", "a2"]["anna"] == "same"
    assert room.store.labels["a1", "c1"] == {"anna": "same"}
    assert room.store.labels["b1", "c2"] == {"anna": "unsure"}
    assert ("a1", "c2") not in room.store.labels


def test_an_import_reads_the_documents_at_once(room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take, counts = Corpus.take, list[int]()

    def counted(corpus: Corpus, rows: Any) -> Any:
        counts.append(len(rows))
        return take(corpus, rows)

    monkeypatch.setattr(Corpus, "take", counted)
    table = tmp_path / "labels.csv"
    table.write_text("id1,id2,label\na1,a2,1\nb1,b2,1\nc1,c2,0\n")
    assert import_answers(room.index, read_answers(table, labeller="anna")).added == 3
    assert counts == [6]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id1,id2,label\na1,a2,3\n", ("line 2", "label '3'", "no answer")),
        ("id1,id2,label\na1,a1,1\n", ("line 2", "does not have two ids")),
        ("id1,id2,label\na1,a2,1\na2,a1,0\n", ("line 3", "anna has two answers", "a1 and a2", "same and different")),
        ("id1\na1\n", ("two ids", "a label")),
    ],
)
def test_an_unusable_table_is_refused_and_changes_nothing(
    room: Room, tmp_path: Path, text: str, message: tuple[str, ...]
) -> None:
    table = tmp_path / "given.csv"
    table.write_text(text)
    with pytest.raises(InputError) as caught:
        read_answers(table, labeller="anna")
    assert says(caught.value, "given.csv", *message)
    assert room.store.labels == {}


def test_a_table_without_labellers_needs_a_name(tmp_path: Path) -> None:
    table = tmp_path / "given.csv"
    table.write_text("id1,id2,label,labeller\na1,a2,1,bob\nb1,b2,1,\n")
    assert [name for _, name, _ in read_answers(table, labeller="anna").rows] == ["bob", "anna"]
    table.write_text("id1,id2,label\na1,a2,1\n")
    with pytest.raises(InputError, match="name the labeller with --labeller NAME"):
        read_answers(table)
    with pytest.raises(RecipeError, match="is not a valid name"):
        read_answers(table, labeller="\t")


def test_labels_of_changed_texts_are_refused_or_bring_a_note(room: Room) -> None:
    assert room.index.check() == []
    for name in ("anna", "bob"):
        while room.session.state(name)["pair"]:
            room.session.answer(name, tuple(room.session.state(name)["pair"]["ids"]), "same")
    changed = {name: f"{text} And more." if name != "a2" else text for name, text in TEXTS.items()}
    with pytest.raises(StoreError) as caught:
        LabelIndex(room.store, reader_of(changed)).check()
    assert says(caught.value, "of the 6 documents", "5 have another text")
    with pytest.raises(StoreError) as caught:
        LabelIndex(room.store, reader_of({"x": "one", "y": "two"})).check()
    assert says(caught.value, "none is of this corpus", "no document 'a1'")
    (note,) = LabelIndex(room.store, reader_of(TEXTS | {"c2": "another"})).check()
    assert note.startswith("1 of the 6 documents")
    fewer = {name: text for name, text in TEXTS.items() if name != "c2"}
    index = LabelIndex(room.store, reader_of(fewer))
    (note,) = index.check()
    assert note.startswith("1 of the 5 labelled pairs")
    assert (index.missing, len(index.answers)) == (1, 4)


def test_documents_are_found_by_the_text_of_their_ids(tmp_path: Path) -> None:
    numbers = DocumentReader.from_corpus(corpus_of({"id": [30, 10, 20], "text": ["x", "y", "z"]}))
    names = ("10", "30", "010", "1e1", "x", "-1", "99999999999999999999", "")
    assert [numbers.position(name) for name in names] == [1, 0, *[-1] * 6]
    rows = DocumentReader.from_corpus(corpus_of(["x", "y", "z"]))
    assert [rows.position(name) for name in ("0", "2", "3", "00", "²")] == [0, 2, -1, -1, -1]
    with LabelStore(tmp_path / "labels.db") as store:
        store.record([Judgement(("0", "2"), "anna", "same")])
        assert LabelIndex(store, rows).answers == {(0, 2): {"anna": "same"}}


def test_titles_come_from_their_column() -> None:
    columns = {"id": ["a", "b"], "text": ["x", "y"], "Headline": ["One", None], "other": ["1", "2"]}
    assert [DocumentReader.from_corpus(corpus_of(columns)).document(at).title for at in (0, 1)] == ["One", ""]
    assert DocumentReader.from_corpus(corpus_of(columns), title_column="other").document(1).title == "2"
    with pytest.raises(InputError, match="no column 'nothing' for --title-column"):
        DocumentReader.from_corpus(corpus_of(columns), title_column="nothing").document(0)
    assert DocumentReader.from_corpus(corpus_of(["x"])).document(0).title == ""


def test_pages_are_shown_as_text() -> None:
    page = "<html><body><p>One <b>two</b></p><script>x()</script></body></html>"
    assert DocumentReader.from_corpus(corpus_of([page]), content="tags").document(0).text.split() == ["One", "two"]
