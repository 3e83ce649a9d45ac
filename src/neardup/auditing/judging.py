"""What people said of the pairs that were drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.errors import InputError, option
from neardup.evaluation.labelfile import LabelTable, is_store
from neardup.labelling.answers import DIFFERENT, SAME, UNSURE, WRITTEN
from neardup.labelling.store import labels_of

Integers = npt.NDArray[np.int64]

#: The columns of a sample's file.
ID_COLUMNS = ("id1", "id2")
LABEL_COLUMN = "label"
_PAIR_COLUMNS = (ID_COLUMNS, ("left", "right"))

#: Positions of two documents, and what somebody said of them.
Vote = tuple[int, int, str]


class Judged(NamedTuple):
    """What is known of drawn pairs.

    Attributes
    ----------
    answers : list of str
        ``same``, ``different`` or ``unsure`` for each; empty where nobody said anything.
    outside : int
        Pairs that were judged and not drawn: they say nothing of the whole, for nobody knows how they were chosen.
    """

    answers: list[str]
    outside: int

    def counts(self, members: Integers | None = None) -> Counter[str]:
        """Return how many have each answer, of some or of all."""
        return Counter(self.answers if members is None else [self.answers[at] for at in members.tolist()])


def judged(left: Integers, right: Integers, texts: Integers, votes: Iterable[Vote]) -> Judged:
    """Return what votes say of pairs: what most of the sure ones say; ``unsure`` where as many say the other.

    A vote is about the texts: it counts for documents with the same ones, too.

    Parameters
    ----------
    left, right : int64[n]
        The drawn pairs, by the positions of the documents where their texts come first.
    texts : int64[d]
        For each document the first one with the same text, -1 where that is not known.
    votes : iterable of (int, int, str)
        Positions of two documents, and an answer.
    """
    given: dict[tuple[int, int], Counter[str]] = {}
    for one, other, answer in votes:
        first, second = (int(texts[at]) if texts[at] >= 0 else at for at in (one, other))
        if first != second:
            given.setdefault((min(first, second), max(first, second)), Counter())[answer] += 1
    drawn = [(min(pair), max(pair)) for pair in zip(left.tolist(), right.tolist(), strict=True)]
    return Judged([_settled(given.get(pair)) for pair in drawn], len(given.keys() - set(drawn)))


def _settled(votes: Counter[str] | None) -> str:
    if votes is None:
        return ""
    if votes[SAME] == votes[DIFFERENT]:
        return UNSURE
    return SAME if votes[SAME] > votes[DIFFERENT] else DIFFERENT


def votes_of_store(labels: Mapping[tuple[str, str], Mapping[str, str]], place: Mapping[str, int]) -> Iterator[Vote]:
    """Yield the labels of a store whose documents the corpus holds."""
    for (one, other), answers in labels.items():
        if one in place and other in place:
            for answer in answers.values():
                yield place[one], place[other], answer


def votes_of(
    source: Any,
    place: Mapping[str, int],
    *,
    label_column: str | None = None,
    positive: float = 1.0,
    ignore_unknown: bool = False,
) -> list[Vote]:
    """Return the labels of a file, table or store; cells without a label say nothing.

    Parameters
    ----------
    source : path, table, or list of (id, id, label)
        With columns id1 and id2, or left and right, or the ids in the first two; or a store of labels.
    place : mapping of str to int
        Where each document is.
    label_column : str, optional
        The column of the labels, ``label`` or ``level`` by default.
    positive : float
        Numbers at or above it say same.
    ignore_unknown : bool
        Leave out rows whose ids the corpus does not hold, instead of refusing them.

    Raises
    ------
    InputError
        If the file cannot be read, or a row cannot be understood.
    """
    if isinstance(source, str | PathLike) and is_store(fspath(source)):
        return list(votes_of_store(labels_of(source), place))
    table = LabelTable.read(source)
    lowered = {name.lower(): name for name in reversed(table.columns)}
    pair = next((pair for pair in _PAIR_COLUMNS if set(pair) <= lowered.keys()), None)
    ids = [lowered[name] for name in pair] if pair else table.columns[:2]
    column = label_column or next((lowered[name] for name in (LABEL_COLUMN, "level") if name in lowered), None)
    if len(ids) < 2 or column is None or column not in table.columns or column in ids:
        columns = ", ".join(table.columns)
        raise InputError(
            f"{table.name} has the columns {columns}, but labels need two ids and a label: id1,id2,label; name "
            f"another column with {option('--label-column')}"
        )
    table = table.answered(column)
    rows, left, right = table.positions(ids, place, ignore_unknown=ignore_unknown)
    return [
        (one, other, _answer(table, row, column, positive))
        for row, one, other in zip(rows.tolist(), left.tolist(), right.tolist(), strict=True)
    ]


def _answer(table: LabelTable, row: int, column: str, positive: float) -> str:
    text = (table.cell(row, column) or "").strip().lower()
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value == value:
        return SAME if value >= positive else DIFFERENT
    if text not in WRITTEN:
        raise InputError(
            f"{table.where(row)}: label {text!r} is unknown; write 1 for same, 0 for different, ? for unsure, or leave "
            "it empty"
        )
    return WRITTEN[text]


def places_of(names: Sequence[Any]) -> dict[str, int]:
    """Return where the document of each id is, by the id as text; of two equal ones the first."""
    place: dict[str, int] = {}
    for position, name in enumerate(names):
        place.setdefault(str(name), position)
    return place
