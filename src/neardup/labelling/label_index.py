"""The labels of a store by the positions of the documents in a corpus, and their import and export as CSV."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from neardup.errors import InputError, StoreError
from neardup.files import write_file
from neardup.labels.store import (
    DIFFERENT,
    SAME,
    UNSURE,
    IdPair,
    Judgement,
    LabelStore,
    id_pair,
    labeller_name,
    majority_label,
)
from neardup.labels.table import LabelTable
from neardup.pages.documents import DocumentReader

#: The positions of two documents, the smaller first.
PositionPair = tuple[int, int]
#: If more than this share of the judged texts differs, the store belongs to another corpus.
_MAX_CHANGED_SHARE = 0.5


class LabelIndex:
    """The labels of the pairs of a corpus."""

    def __init__(self, store: LabelStore, reader: DocumentReader) -> None:
        self.store, self.reader = store, reader
        self._version = -1
        self._answers: dict[PositionPair, Mapping[str, str]] = {}

    def position_pair(self, pair: IdPair) -> PositionPair | None:
        """Return the positions of a pair's documents; None unless the corpus has both."""
        first, second = (self.reader.position(name) for name in pair)
        return None if min(first, second) < 0 else (min(first, second), max(first, second))

    def id_pair_at(self, left: int, right: int) -> IdPair:
        """Return the ids of two documents in the order of the store."""
        return id_pair(self.reader.id(left), self.reader.id(right))

    def checksums(self, pair: IdPair) -> tuple[str, str]:
        """Return the checksums of a pair's texts, in the order of the ids."""
        first, second = (self.reader.text_checksum(self.reader.position(name)) for name in pair)
        return first, second

    @property
    def answers(self) -> Mapping[PositionPair, Mapping[str, str]]:
        """The answers of each pair of this corpus by labeller, in the order of their first answers."""
        version = self.store.version
        if version != self._version:
            labels = self.store.labels
            self.reader.find(name for pair in labels for name in pair)
            positions = {pair: self.position_pair(pair) for pair in labels}
            self._answers = {at: labels[pair] for pair, at in positions.items() if at is not None}
            self._version = version
        return self._answers

    @property
    def missing(self) -> int:
        """The number of labelled pairs with a document that is not in the corpus."""
        return len(self.store.labels) - len(self.answers)

    def skipped(self, labeller: str) -> list[PositionPair]:
        """Return the pairs that a labeller has skipped, the earliest first."""
        pairs = [self.position_pair(pair) for pair in self.store.skipped(labeller)]
        return [pair for pair in pairs if pair is not None]

    def open_pairs(self) -> set[PositionPair]:
        """Return the open pairs of all labellers."""
        pairs = {self.position_pair(open_pair.pair) for open_pair in self.store.open_pairs().values()}
        return {pair for pair in pairs if pair is not None}

    def check(self) -> list[str]:
        """Return warnings about labels that do not fit the corpus.

        Raises ``StoreError`` if the labels belong to another corpus.
        """
        path, labels = self.store.path, self.store.labels
        if not labels:
            return []
        if not self.answers:
            unknown = next(name for pair in labels for name in pair if self.reader.position(name) < 0)
            raise StoreError(
                f"{path} holds labels of {len(labels):,} pairs, but none is of this corpus, which has no document "
                f"{unknown!r}; name another store, or the inputs that it belongs to"
            )
        notes = []
        if self.missing:
            notes.append(
                f"{self.missing:,} of the {len(labels):,} labelled pairs in {path} name documents that are not in this "
                "corpus; they stay in the store and are not used here"
            )
        changed, judged = self._changed_counts()
        if changed > _MAX_CHANGED_SHARE * judged:
            raise StoreError(
                f"{path} holds labels of other texts: of the {judged:,} documents that it names, {changed:,} have "
                "another text in this corpus; name another store, or the inputs and --content that it belongs to"
            )
        if changed:
            notes.append(
                f"{changed:,} of the {judged:,} documents that {path} names have changed since they were judged; their "
                "labels are still used"
            )
        return notes

    def _changed_counts(self) -> tuple[int, int]:
        checksums = {
            self.reader.position(name): checksum
            for judged in self.store.judgements()
            for name, checksum in zip(judged.pair, judged.checksums, strict=True)
            if checksum and self.reader.position(name) >= 0
        }
        self.reader.load(np.array(list(checksums), np.int64))
        return sum(self.reader.text_checksum(at) != checksum for at, checksum in checksums.items()), len(checksums)


#: The reason of a label that came from a table.
IMPORTED = "imported"


class ExportResult(NamedTuple):
    """The result of an export: rows written, pairs left out because all are unsure, and pairs left out as ties."""

    rows: int
    unsure: int
    ties: int


class ImportResult(NamedTuple):
    """The result of an import, in rows of the table."""

    added: int
    already_stored: int  #: equal labels that the store already has
    kept: int  #: pairs that the labeller has judged differently in the store, which keeps its answer
    unknown: int  #: rows with an id that is not in the corpus
    empty: int  #: rows without an answer


def export(store: LabelStore, output: str | os.PathLike[str], *, each: bool = False) -> ExportResult:
    """Write the labels of a store as CSV, sorted by ids.

    With ``each``, there is a row for each pair and labeller, with time and reason; else one for each pair with the
    majority label, 1 or 0.
    """
    labels = store.labels
    undecided = [answers for answers in labels.values() if majority_label(answers) is None]
    unsure = sum(set(answers.values()) == {UNSURE} for answers in undecided)
    table, out = _each(store) if each else _pairs(labels), io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(table)
    write_file(os.fspath(output), out.getvalue().encode())
    return ExportResult(len(table) - 1, unsure, len(undecided) - unsure)


def _pairs(labels: Any) -> list[Sequence[Any]]:
    rows: list[Sequence[Any]] = []
    for pair in sorted(labels):
        label, counts = majority_label(labels[pair]), Counter(labels[pair].values())
        if label is not None:
            rows.append((*pair, label, counts[SAME], counts[DIFFERENT], counts[UNSURE]))
    return [("id1", "id2", "label", SAME, DIFFERENT, UNSURE), *rows]


def _each(store: LabelStore) -> list[Sequence[Any]]:
    names = ("id1", "id2", "labeller", "answer", "time", "seconds", "reason", "similarity")
    rows = [
        (*j.pair, j.labeller, j.answer, f"{j.time:.3f}", j.seconds, j.reason, j.similarity) for j in store.judgements()
    ]
    return [names, *sorted(rows, key=lambda row: row[:3])]


class Answers(NamedTuple):
    """The answers of a table."""

    name: str
    rows: list[tuple[IdPair, str, str]]  #: the ids, the labeller and the answer of each row, repetitions included
    empty: int  #: rows without an answer


def read_answers(source: str | os.PathLike[str], *, labeller: str | None = None) -> Answers:
    """Read a table of answers.

    The table has two ids (id1 and id2, left and right, or the first two columns), an answer (a column ``label`` or
    ``answer``: same, different or unsure; 1, 0 or ?; or empty), and optionally a column ``labeller``; without this, the
    answers are those of ``labeller``.
    """
    pairs = LabelTable.read(source).pair_rows()
    table, column = pairs.table, pairs.labeller
    if column is None and labeller is None:
        raise InputError(f"{table.name} has no column labeller; name the labeller with --labeller NAME")
    answers: dict[tuple[IdPair, str], str] = {}
    rows = []
    for row in range(len(table)):
        pair, answer = _pair(table, row, pairs.ids), pairs.row_label(row).answer
        name = labeller_name((column and table.cell(row, column)) or labeller or "")
        if answers.setdefault((pair, name), answer) != answer:
            raise InputError(
                f"{table.location(row)}: {name} has two answers to {' and '.join(pair)}, {answers[pair, name]} and "
                f"{answer}; keep one"
            )
        rows.append((pair, name, answer))
    return Answers(table.name, rows, pairs.unanswered)


def import_answers(index: LabelIndex, answers: Answers) -> ImportResult:
    """Write answers to the store of an index; an existing answer of a labeller is not overwritten."""
    reader, labels = index.reader, index.store.labels
    reader.find(name for pair, _, _ in answers.rows for name in pair)
    position_pairs = {pair: index.position_pair(pair) for pair, _, _ in answers.rows}
    # At once: a compressed file is read from its beginning for each load.
    reader.load(np.array([at for positions in position_pairs.values() for at in positions or ()], np.int64))
    unknown = sum(position_pairs[pair] is None for pair, _, _ in answers.rows)
    new, equal, kept = [], 0, 0
    for pair, name, answer in dict.fromkeys(answers.rows):
        if position_pairs[pair] is None:
            continue
        if (stored := labels.get(pair, {}).get(name)) is not None:
            equal, kept = equal + (stored == answer), kept + (stored != answer)
            continue
        new.append(Judgement(pair, name, answer, IMPORTED, checksums=index.checksums(pair)))
    index.store.record(new)
    return ImportResult(len(new), equal, kept, unknown, answers.empty)


def _pair(table: LabelTable, row: int, columns: tuple[str, str]) -> IdPair:
    id1, id2 = (table.cell(row, column) for column in columns)
    if id1 is None or id2 is None or id1 == id2:
        raise InputError(f"{table.location(row)} does not have two ids; give two, or leave the row out")
    return id_pair(id1, id2)
