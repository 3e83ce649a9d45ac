"""Import and export of labels as CSV: one row for each pair, or one for each pair and labeller."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from neardup.errors import InputError
from neardup.files import write_file
from neardup.labelling.index import LabelIndex
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


class Exported(NamedTuple):
    """The result of an export: rows written, pairs left out because all are unsure, and pairs left out as ties."""

    rows: int
    unsure: int
    ties: int


class Imported(NamedTuple):
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


def export(store: LabelStore, output: str | os.PathLike[str], *, each: bool = False) -> Exported:
    """Write the labels of a store as CSV, sorted by ids.

    With ``each``, there is a row for each pair and labeller with its circumstances; else one for each pair with what
    most say, 1 or 0.
    """
    labels = store.labels
    undecided = [answers for answers in labels.values() if majority_label(answers) is None]
    unsure = sum(set(answers.values()) == {UNSURE} for answers in undecided)
    table = _each(store) if each else _pairs(labels)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(table)
    write_file(os.fspath(output), out.getvalue().encode())
    return Exported(len(table) - 1, unsure, len(undecided) - unsure)


def _pairs(labels: Any) -> list[Sequence[Any]]:
    rows: list[Sequence[Any]] = []
    for pair in sorted(labels):
        label, given = majority_label(labels[pair]), Counter(labels[pair].values())
        if label is not None:
            rows.append((*pair, label, given[SAME], given[DIFFERENT], given[UNSURE]))
    return [("id1", "id2", "label", SAME, DIFFERENT, UNSURE), *rows]


def _each(store: LabelStore) -> list[Sequence[Any]]:
    names = ("id1", "id2", "labeller", "answer", "time", "seconds", "reason", "similarity")
    rows = [
        (*one.pair, one.labeller, one.answer, f"{one.time:.3f}", one.seconds, one.reason, one.similarity)
        for one in store.judgements()
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

    It has two ids (id1 and id2, left and right, or the first two columns), an answer (a column ``label`` or ``answer``:
    same, different or unsure, 1, 0 or ?, or nothing), and perhaps a column ``labeller``; where it has none, the labels
    are those of ``labeller``.
    """
    pairs = LabelTable.read(source).pair_rows()
    table, by = pairs.table, pairs.labeller
    if by is None and labeller is None:
        raise InputError(f"{table.name} has no column labeller; name the labeller with --labeller NAME")
    said: dict[tuple[IdPair, str], str] = {}
    rows = []
    for row in range(len(table)):
        pair, answer = _pair(table, row, pairs.ids), pairs.row_label(row).answer
        name = labeller_name((by and table.cell(row, by)) or labeller or "")
        if said.setdefault((pair, name), answer) != answer:
            raise InputError(
                f"{table.location(row)}: {name} says {answer} of {' and '.join(pair)}, and "
                f"{said[pair, name]} before; keep one"
            )
        rows.append((pair, name, answer))
    return Answers(table.name, rows, pairs.unanswered)


def import_answers(index: LabelIndex, answers: Answers) -> Imported:
    """Write answers to the store of an index; an existing answer of a labeller is not overwritten."""
    unknown = sum(index.position_pair(pair) is None for pair, _, _ in answers.rows)
    labels = index.store.labels
    new, same, kept = [], 0, 0
    for pair, name, answer in dict.fromkeys(answers.rows):
        place = index.position_pair(pair)
        before = labels.get(pair, {}).get(name)
        if place is None:
            continue
        if before is not None:
            same, kept = same + (before == answer), kept + (before != answer)
            continue
        checksums = {index.material.id(at): index.material.text_checksum(at) for at in place}
        new.append(Judgement(pair, name, answer, IMPORTED, checksums=(checksums[pair[0]], checksums[pair[1]])))
    index.store.record(new)
    return Imported(len(new), same, kept, unknown, answers.empty)


def _pair(table: LabelTable, row: int, columns: tuple[str, str]) -> IdPair:
    one, other = (table.cell(row, column) for column in columns)
    if one is None or other is None or one == other:
        raise InputError(f"{table.location(row)} has no two ids; give two, or leave the row out")
    return id_pair(one, other)
