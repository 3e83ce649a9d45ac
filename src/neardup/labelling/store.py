"""The store of labels: what people said of pairs, in one SQLite file, at once."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from neardup.labelling import schema
from neardup.labelling.answers import ANSWERS, DIFFERENT, SAME, SKIP

#: The ids of two documents, the smaller first.
PairOfIds = tuple[str, str]


def pair_of(one: str, other: str) -> PairOfIds:
    """Return two ids as the store keeps them."""
    return (one, other) if one < other else (other, one)


class Judgement(NamedTuple):
    """What a labeller said of a pair.

    Attributes
    ----------
    pair : (str, str)
        The ids.
    labeller : str
        Who.
    answer : str
        ``same``, ``different`` or ``unsure``; ``skip`` puts the pair aside without an answer.
    reason : str
        Why the pair was asked.
    similarity : float or None
        What the net's measure says of it.
    seconds : float or None
        How long the labeller looked at it.
    sums : (str, str)
        Checksums of the two texts, as the ids are in order; empty where they are not known.
    time : float
        When, in seconds since 1970; 0 for now.
    """

    pair: PairOfIds
    labeller: str
    answer: str
    reason: str = ""
    similarity: float | None = None
    seconds: float | None = None
    sums: tuple[str, str] = ("", "")
    time: float = 0.0


class Open(NamedTuple):
    """The pair that a labeller was asked and has not answered."""

    pair: PairOfIds
    reason: str
    similarity: float | None


class LabelStore:
    """Keeps labels.

    What ``record`` was given is on the disk when it returns (WAL, ``synchronous=FULL``). There is one label for each
    pair and labeller; what was said before, and what was taken back, stays in the history. Several processes may use a
    store at once, and it may be used from several threads.

    Parameters
    ----------
    path : str or PathLike
        The file; a new one is made where there is none.

    Raises
    ------
    StoreError
        If the file is something else, or cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._seen = -1
        self._version = 0
        self._labels: dict[PairOfIds, dict[str, str]] = {}
        self._skipped: dict[str, list[PairOfIds]] = {}
        with self._explained():
            self._connection = schema.opened(self.path)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise schema.explained(self.path, error) from error

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Give one transaction, on the disk when the block is left."""
        with self._explained():
            connection = self._connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            finally:
                self._seen = -1

    @property
    def version(self) -> int:
        """A number that grows whenever the labels have changed, by whomever."""
        self._look()
        return self._version

    @property
    def labels(self) -> Mapping[PairOfIds, Mapping[str, str]]:
        """The answers of each pair by labeller; pairs in the order in which they were first judged."""
        self._look()
        return self._labels

    @property
    def labellers(self) -> list[str]:
        """Who has given labels, by name."""
        return sorted({name for answers in self.labels.values() for name in answers})

    def skipped(self, labeller: str) -> list[PairOfIds]:
        """Return the pairs that a labeller has put aside and not judged since, the one put aside longest ago first."""
        self._look()
        return list(self._skipped.get(labeller, ()))

    def counts(self, labeller: str | None = None) -> dict[str, int]:
        """Return how many labels there are of each answer, of one labeller or of all."""
        given = Counter(
            answer
            for answers in self.labels.values()
            for name, answer in answers.items()
            if labeller is None or name == labeller
        )
        return {answer: given[answer] for answer in ANSWERS}

    def _look(self) -> None:
        """Take the labels from the file, if they have changed."""
        with self._explained():
            (seen,) = self._connection.execute("PRAGMA data_version").fetchone()
            if seen == self._seen:
                return
            labels: dict[PairOfIds, dict[str, str]] = {}
            for one, other, name, answer in self._connection.execute(schema.LABELS):
                labels.setdefault((one, other), {})[name] = answer
            skipped: dict[str, dict[PairOfIds, None]] = {}
            for one, other, name in self._connection.execute(schema.SKIPPED):
                # What was put aside once more goes to the end.
                if name not in labels.get((one, other), {}):
                    skipped.setdefault(name, {}).pop((one, other), None)
                    skipped[name][(one, other)] = None
            self._labels, self._seen = labels, seen
            self._skipped = {name: list(pairs) for name, pairs in skipped.items()}
            self._version += 1

    def judgements(self) -> list[Judgement]:
        """Return all labels with their circumstances, in the order in which they were given."""
        with self._explained():
            rows = self._connection.execute(schema.JUDGEMENTS).fetchall()
        return [
            Judgement((one, other), name, answer, reason, similarity, seconds, (first, second), moment)
            for one, other, name, answer, reason, similarity, seconds, first, second, moment in rows
        ]

    def record(self, judgements: Sequence[Judgement]) -> None:
        """Put judgements on the disk, all or none; a labeller's new answer on a pair takes the place of the old one.

        Raises
        ------
        StoreError
            If they cannot be written.
        """
        with self._writing() as connection:
            for one in judgements:
                moment = one.time or time.time()
                values = (*one.pair, one.labeller, one.answer, one.reason, one.similarity, one.seconds, *one.sums)
                serial = connection.execute(schema.ADD, (*values, moment)).lastrowid
                if one.answer != SKIP:
                    connection.execute(schema.SET, (*one.pair, one.labeller, one.answer, serial))
                connection.execute(schema.CLOSE, (one.labeller, *one.pair))

    def undo(self, labeller: str) -> Judgement | None:
        """Take back what a labeller did last, and return it; None if there is nothing left to take back."""
        with self._writing() as connection:
            row = connection.execute(schema.LAST, (labeller,)).fetchone()
            if row is None:
                return None
            serial, one, other, answer, reason, similarity = row
            connection.execute("UPDATE history SET undone = ? WHERE serial = ?", (time.time(), serial))
            before = connection.execute(schema.BEFORE, (one, other, labeller)).fetchone()
            if answer != SKIP and before is None:
                connection.execute("DELETE FROM labels WHERE (id1, id2, labeller) = (?, ?, ?)", (one, other, labeller))
            elif answer != SKIP:
                connection.execute(schema.SET, (one, other, labeller, *before))
        return Judgement((one, other), labeller, answer, reason, similarity)

    def asking(self, labeller: str) -> Open | None:
        """Return the pair that a labeller was asked last and has not answered."""
        return self.open().get(labeller)

    def open(self) -> dict[str, Open]:
        """Return the pairs that labellers were asked last and have not answered, by labeller."""
        with self._explained():
            rows = self._connection.execute("SELECT labeller, id1, id2, reason, similarity FROM asked").fetchall()
        return {name: Open((one, other), reason, similarity) for name, one, other, reason, similarity in rows}

    def ask(self, labeller: str, asked: Open | None) -> None:
        """Note which pair a labeller is asked, so that a new start asks the same; None for none."""
        with self._writing() as connection:
            if asked is None:
                connection.execute("DELETE FROM asked WHERE labeller = ?", (labeller,))
            else:
                connection.execute(
                    "INSERT OR REPLACE INTO asked VALUES (?, ?, ?, ?, ?)",
                    (labeller, *asked.pair, asked.reason, asked.similarity),
                )

    def close(self) -> None:
        """Put the log into the file and let go of it; a second time does nothing."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def majority(answers: Mapping[str, str]) -> int | None:
    """Return 1 or 0 as most labellers of a pair say; None where as many say the one, or none is sure."""
    given = Counter(answers.values())
    if given[SAME] == given[DIFFERENT]:
        return None
    return int(given[SAME] > given[DIFFERENT])


def labels_of(path: str | os.PathLike[str]) -> dict[PairOfIds, dict[str, str]]:
    """Return the answers of each pair in a store by labeller; the store is only read, and may be in use.

    Raises
    ------
    StoreError
        If there is no such store.
    """
    place = Path(path)
    labels: dict[PairOfIds, dict[str, str]] = {}
    try:
        with contextlib.closing(schema.opened_to_read(place)) as connection:
            for one, other, name, answer in connection.execute(schema.LABELS):
                labels.setdefault((one, other), {})[name] = answer
    except sqlite3.Error as error:
        raise schema.explained(place, error) from error
    return labels


def export_rows(path: str | os.PathLike[str]) -> list[tuple[str, str, int]]:
    """Return the labels of a store as (id, id, 1 or 0), sorted: what most labellers say; ties are left out.

    The store is only read, and may be in use.

    Raises
    ------
    StoreError
        If there is no such store.
    """
    found = {pair: majority(answers) for pair, answers in labels_of(path).items()}
    return sorted((*pair, label) for pair, label in found.items() if label is not None)
