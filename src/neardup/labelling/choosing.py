"""Which pair is asked next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from neardup.labelling.known import Known, Place

#: Why a pair is asked, and how the page says so once it is judged.
REASONS = {
    "spread": "one of an even spread over similarity",
    "doubt": "the model was in doubt about it",
    "audit": "a check on what the model was sure of",
    "agreement": "another labeller judges it too",
    "sample": "drawn at random",
}


class Asked(NamedTuple):
    """A pair to ask: positions of its documents, the reason, and the similarity by the net's measure, if known."""

    left: int
    right: int
    reason: str
    similarity: float | None = None


class Fact(NamedTuple):
    """Something that the page tells beside the texts: a name, a value, and what it means in a sentence."""

    name: str
    value: str
    meaning: str


class Says(NamedTuple):
    """What is known of a pair besides the labels, for after it was judged.

    Attributes
    ----------
    words : str
        For the labeller.
    same : bool or None
        Whether it says near-duplicates; None where it says neither.
    """

    words: str
    same: bool | None = None


class Chooser(Protocol):
    """What a session asks for pairs."""

    def next_pair(self, labeller: str) -> Asked | None:
        """Return what to ask a labeller, None if there is nothing left."""

    def asks(self, place: Place) -> bool:
        """Return whether the pair is one that this chooser may ask."""

    def says(self, asked: Asked) -> list[Says]:
        """Return what there is to say of a pair, shown once it was judged."""

    def facts(self) -> tuple[list[Fact], bool]:
        """Return what the labels say so far, and whether something newer is being worked out."""

    def left(self, labeller: str) -> int | None:
        """Return how many pairs are still to be asked; None where there is no end."""


class FixedChooser:
    """Asks given pairs in the given order, each of every labeller; what was put aside comes last.

    Parameters
    ----------
    known : Known
        The labels there are.
    pairs : sequence of Asked
        What to ask.
    measure : str
        What their similarities are, for people; empty to say nothing of them.
    """

    def __init__(self, known: Known, pairs: Sequence[Asked], *, measure: str = "") -> None:
        self._known, self._measure = known, measure
        self._pairs = {(min(one.left, one.right), max(one.left, one.right)): one for one in pairs}

    def next_pair(self, labeller: str) -> Asked | None:
        """Return the first pair that the labeller has neither judged nor put aside, else the first put aside."""
        aside = [place for place in self._known.skipped(labeller) if place in self._pairs]
        missing = [place for place in self._missing(labeller) if place not in set(aside)]
        place = next(iter([*missing, *aside]), None)
        return None if place is None else self._pairs[place]

    def _missing(self, labeller: str) -> list[Place]:
        answers = self._known.answers
        return [place for place in self._pairs if labeller not in answers.get(place, ())]

    def asks(self, place: Place) -> bool:
        """Return whether the pair is one of those given."""
        return place in self._pairs

    def says(self, asked: Asked) -> list[Says]:
        """Return the pair's similarity."""
        return similarity_says(asked, self._measure)

    def facts(self) -> tuple[list[Fact], bool]:
        """Return nothing: what the answers come to is for those who drew the pairs."""
        return [], False

    def left(self, labeller: str) -> int | None:
        """Return how many of the pairs the labeller has not judged."""
        return len(self._missing(labeller))


def similarity_says(asked: Asked, measure: str) -> list[Says]:
    """Return a pair's similarity by a measure, for people."""
    return [] if asked.similarity is None or not measure else [Says(f"{measure} {asked.similarity:.2f}")]
