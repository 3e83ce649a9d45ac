"""The labels of a store by the positions of the documents in a corpus."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neardup.errors import StoreError
from neardup.labels.store import IdPair, LabelStore, id_pair
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
        return None if min(first, second) < 0 or first == second else (min(first, second), max(first, second))

    def id_pair_at(self, left: int, right: int) -> IdPair:
        """Return the ids of two documents in the order of the store."""
        return id_pair(self.reader.id(left), self.reader.id(right))

    @property
    def version(self) -> int:
        """A number that grows whenever the labels change."""
        return self.store.version

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

    def open_pairs_except(self, labeller: str) -> set[PositionPair]:
        """Return the open pairs of all other labellers."""
        open_pairs = self.store.open_pairs().items()
        pairs = {self.position_pair(open_pair.pair) for name, open_pair in open_pairs if name != labeller}
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
        """Return the number of judged documents whose text has changed, and the number judged."""
        checksums: dict[int, str] = {}
        for judged in self.store.judgements():
            for name, checksum in zip(judged.pair, judged.checksums, strict=True):
                if checksum and self.reader.position(name) >= 0:
                    checksums[self.reader.position(name)] = checksum
        self.reader.load(np.array(list(checksums), np.int64))
        return sum(self.reader.text_checksum(at) != checksum for at, checksum in checksums.items()), len(checksums)
