"""Labels from tables and into them: CSV that training and comparing take, and CSV that keeps labellers apart."""

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
    Judgement,
    LabelStore,
    PairOfIds,
    checked_name,
    majority,
    pair_of,
)
from neardup.labels.table import LabelTable

#: The reason of a label that came from a table.
IMPORTED = "imported"


class Exported(NamedTuple):
    """What was written: rows, pairs of which nobody is sure, and pairs on which as many say the one as the other."""

    rows: int
    unsure: int
    ties: int


class Imported(NamedTuple):
    """What became of the rows of a table."""

    added: int
    #: Labels that the store had already.
    known: int
    #: Pairs that the labeller has judged otherwise in the store, where that stays.
    kept: int
    #: Rows with an id that the corpus does not hold, left out.
    unknown: int
    #: Rows without an answer: nobody has judged these pairs.
    empty: int


def export(store: LabelStore, output: str | os.PathLike[str], *, each: bool = False) -> Exported:
    """Write the labels of a store as CSV, sorted by ids.

    With ``each``, there is a row for each pair and labeller with all that is known; else one for each pair with what
    most say, 1 or 0.
    """
    labels = store.labels
    undecided = [answers for answers in labels.values() if majority(answers) is None]
    unsure = sum(set(answers.values()) == {UNSURE} for answers in undecided)
    table = _each(store) if each else _pairs(labels)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(table)
    write_file(os.fspath(output), out.getvalue().encode())
    return Exported(len(table) - 1, unsure, len(undecided) - unsure)


def _pairs(labels: Any) -> list[Sequence[Any]]:
    rows: list[Sequence[Any]] = []
    for pair in sorted(labels):
        label, given = majority(labels[pair]), Counter(labels[pair].values())
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
    """What a table says."""

    name: str
    #: Two ids, who judged them, and the answer, as often as they stand there.
    rows: list[tuple[PairOfIds, str, str]]
    #: Rows without an answer.
    empty: int


def answers_of(source: str | os.PathLike[str], *, labeller: str | None = None) -> Answers:
    """Read a table of answers.

    It has two ids (id1 and id2, left and right, or the first two columns), an answer (a column ``label`` or ``answer``:
    same, different or unsure, 1, 0 or ?, or nothing), and perhaps a column ``labeller``; where it has none, the labels
    are those of ``labeller``.
    """
    pairs = LabelTable.read(source).pairs()
    table, by = pairs.table, pairs.labeller
    if by is None and labeller is None:
        raise InputError(f"{table.name} does not say who gave these labels; name the labeller with --labeller NAME")
    said: dict[tuple[PairOfIds, str], str] = {}
    rows = []
    for row in range(len(table)):
        pair, answer = _pair(table, row, pairs.ids), pairs.answer(row).said
        name = checked_name((by and table.cell(row, by)) or labeller or "")
        if said.setdefault((pair, name), answer) != answer:
            raise InputError(
                f"{table.where(row)}: {name} says {answer} of {' and '.join(pair)}, and "
                f"{said[pair, name]} before; keep one"
            )
        rows.append((pair, name, answer))
    return Answers(table.name, rows, pairs.unanswered)


def take_in(known: LabelIndex, given: Answers) -> Imported:
    """Put answers into a store; what a labeller has judged there already stays as it is."""
    unknown = sum(known.place_of(pair) is None for pair, _, _ in given.rows)
    labels = known.store.labels
    new, same, kept = [], 0, 0
    for pair, name, answer in dict.fromkeys(given.rows):
        place = known.place_of(pair)
        before = labels.get(pair, {}).get(name)
        if place is None:
            continue
        if before is not None:
            same, kept = same + (before == answer), kept + (before != answer)
            continue
        sums = {known.material.id(at): known.material.sum_of(at) for at in place}
        new.append(Judgement(pair, name, answer, IMPORTED, sums=(sums[pair[0]], sums[pair[1]])))
    known.store.record(new)
    return Imported(len(new), same, kept, unknown, given.empty)


def _pair(table: LabelTable, row: int, columns: tuple[str, str]) -> PairOfIds:
    one, other = (table.cell(row, column) for column in columns)
    if one is None or other is None or one == other:
        raise InputError(f"{table.where(row)} has no two ids; give two, or leave the row out")
    return pair_of(one, other)
