"""Import and export of labels as CSV: one row for each pair, or one for each pair and labeller."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from neardup.errors import InputError
from neardup.files import write_file
from neardup.labelling.label_index import LabelIndex
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
    #: Equal labels that the store already has.
    already_stored: int
    #: Pairs that the labeller has judged differently in the store, which keeps its answer.
    kept: int
    #: Rows with an id that is not in the corpus.
    unknown: int
    #: Rows without an answer.
    empty: int


def export(store: LabelStore, output: str | os.PathLike[str], *, each: bool = False) -> ExportResult:
    """Write the labels of a store as CSV, sorted by ids.

    With ``each``, there is a row for each pair and labeller, with time and reason; else one for each pair with the
    majority label, 1 or 0.
    """
    labels = store.labels
    undecided = [answers for answers in labels.values() if majority_label(answers) is None]
    unsure = sum(set(answers.values()) == {UNSURE} for answers in undecided)
    table = _each(store) if each else _pairs(labels)
    out = io.StringIO()
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
    #: The ids, the labeller and the answer of each row, repetitions included.
    rows: list[tuple[IdPair, str, str]]
    #: Rows without an answer.
    empty: int


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
        positions = position_pairs[pair]
        stored = labels.get(pair, {}).get(name)
        if positions is None:
            continue
        if stored is not None:
            equal, kept = equal + (stored == answer), kept + (stored != answer)
            continue
        checksums = {reader.id(at): reader.text_checksum(at) for at in positions}
        new.append(Judgement(pair, name, answer, IMPORTED, checksums=(checksums[pair[0]], checksums[pair[1]])))
    index.store.record(new)
    return ImportResult(len(new), equal, kept, unknown, answers.empty)


def _pair(table: LabelTable, row: int, columns: tuple[str, str]) -> IdPair:
    id1, id2 = (table.cell(row, column) for column in columns)
    if id1 is None or id2 is None or id1 == id2:
        raise InputError(f"{table.location(row)} does not have two ids; give two, or leave the row out")
    return id_pair(id1, id2)
