"""The labels of a store, by the positions of the documents in a corpus."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neardup.errors import StoreError
from neardup.labels.store import LabelStore, PairOfIds, pair_of
from neardup.pages.documents import Material

#: Two positions, the smaller first.
Place = tuple[int, int]
#: A store about which so large a share of texts is another one is another corpus's.
_MOST_CHANGED = 0.5


class LabelIndex:
    """What is known of the pairs of a corpus."""

    def __init__(self, store: LabelStore, material: Material) -> None:
        self.store, self.material = store, material
        self._version = -1
        self._answers: dict[Place, Mapping[str, str]] = {}

    def place_of(self, pair: PairOfIds) -> Place | None:
        """Return where the documents of a pair are; None unless the corpus has both."""
        one, other = (self.material.position(name) for name in pair)
        return None if min(one, other) < 0 or one == other else (min(one, other), max(one, other))

    def pair_at(self, left: int, right: int) -> PairOfIds:
        """Return the ids of two documents as the store keeps them."""
        return pair_of(self.material.id(left), self.material.id(right))

    @property
    def version(self) -> int:
        """A number that grows whenever the labels have changed."""
        return self.store.version

    @property
    def answers(self) -> Mapping[Place, Mapping[str, str]]:
        """The answers of each pair of this corpus by labeller, in the order in which pairs were first judged."""
        version = self.store.version
        if version != self._version:
            labels = self.store.labels
            self.material.find(name for pair in labels for name in pair)
            found = {pair: self.place_of(pair) for pair in labels}
            self._answers = {place: labels[pair] for pair, place in found.items() if place is not None}
            self._version = version
        return self._answers

    @property
    def missing(self) -> int:
        """How many labelled pairs name a document that the corpus does not hold."""
        return len(self.store.labels) - len(self.answers)

    def skipped(self, labeller: str) -> list[Place]:
        """Return the pairs that a labeller has put aside, the one put aside longest ago first."""
        found = [self.place_of(pair) for pair in self.store.skipped(labeller)]
        return [place for place in found if place is not None]

    def open_of_others(self, labeller: str) -> set[Place]:
        """Return the pairs that other labellers are asked right now."""
        found = {self.place_of(asked.pair) for name, asked in self.store.open().items() if name != labeller}
        return {place for place in found if place is not None}

    def check(self) -> list[str]:
        """Return what the user should know before these labels are used with this corpus.

        Raises ``StoreError`` if they are those of another corpus.
        """
        path, labels = self.store.path, self.store.labels
        if not labels:
            return []
        if not self.answers:
            strange = next(name for pair in labels for name in pair if self.material.position(name) < 0)
            raise StoreError(
                f"{path} holds labels of {len(labels):,} pairs, and not one is of this corpus, which has no document "
                f"{strange!r}; name another store, or the inputs that it was made with"
            )
        notes = []
        if self.missing:
            notes.append(
                f"{self.missing:,} of the {len(labels):,} labelled pairs in {path} name documents that this corpus "
                "does not hold; they stay in the store and are left out here"
            )
        changed, seen = self._changed()
        if changed > _MOST_CHANGED * seen:
            raise StoreError(
                f"{path} holds labels of other texts: of the {seen:,} documents that it names, {changed:,} have "
                "another text in this corpus; name another store, or the inputs and the content that it was made with"
            )
        if changed:
            notes.append(
                f"{changed:,} of the {seen:,} documents that {path} names have another text now than when they were "
                "judged; their labels are used all the same"
            )
        return notes

    def _changed(self) -> tuple[int, int]:
        """Return how many of the judged documents have another text than then, and how many were judged."""
        sums: dict[int, str] = {}
        for judged in self.store.judgements():
            for name, kept in zip(judged.pair, judged.sums, strict=True):
                if kept and self.material.position(name) >= 0:
                    sums[self.material.position(name)] = kept
        self.material.load(np.array(list(sums), np.int64))
        return sum(self.material.sum_of(place) != kept for place, kept in sums.items()), len(sums)
