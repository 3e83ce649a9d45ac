"""What goes between the index, the judge and the window: documents in parts, and what was found about each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from neardup.features.store import Block
from neardup.search.window import Arrivals, EventTime

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]


class Record(NamedTuple):
    """What a second step goes by: a document's text, its title, and its time in microseconds since 1970."""

    text: str
    title: str
    time: int


class WindowMatches(NamedTuple):
    """Held documents that match one, the best first."""

    serials: Integers  #: int64[k]: their numbers
    #: float64[k], int64[k, 3]: how similar they are, and o, a and b.
    similarity: Floats
    counts: Integers
    same: Booleans  #: bool[k]: whether the texts are equal
    #: float64[k], float64[k, r]: what a classifier makes of them, and from what; nan where none was asked.
    g: Floats
    vectors: Floats

    @classmethod
    def of_first_step(cls, serials: Integers, similarity: Floats, counts: Integers, same: Booleans) -> Self:
        """Return what no second step has looked at."""
        return cls(serials, similarity, counts, same, np.full(len(serials), np.nan), np.empty((len(serials), 0)))

    def best(self) -> WindowMatches:
        """Return the best one alone."""
        return self.take(slice(1))

    def take(self, places: slice | Integers | Booleans) -> WindowMatches:
        """Return some of them."""
        serials, similarity, counts, same, g, vectors = self
        return WindowMatches(
            serials[places], similarity[places], counts[places], same[places], g[places], vectors[places]
        )


class AheadDocument(NamedTuple):
    """A document that is ahead and was entered: should a second one confirm its time, it is entered again."""

    block: Block
    serial: int
    time: int


class WindowFindings(NamedTuple):
    """What was found about documents, one after the other."""

    places: Integers  #: int64[k]: which of the documents, ascending
    matches: WindowMatches  #: what each matches: the best one of those that are older
    has_features: Booleans  #: bool[n]: of each document, whether it can match anything
    held: Booleans  #: bool[n]: whether it entered the window


class RestoredDocument(NamedTuple):
    """A document that was held before a restart: its number, text, time, and time of leaving."""

    serial: int
    text: str
    time: int
    leaves: int


#: No matches at all.
NO_MATCHES = WindowMatches.of_first_step(
    np.empty(0, np.int64), np.empty(0), np.empty((0, 3), np.int64), np.empty(0, np.bool_)
)


def concatenate_matches(parts: Sequence[WindowMatches]) -> WindowMatches:
    """Return matches one behind the other, those of no second step with vectors of nan beside others."""
    some = [each for each in parts if len(each.serials)]
    if len(some) < 2:
        return some[0] if some else NO_MATCHES
    width = max(each.vectors.shape[1] for each in some)
    padded = [
        each._replace(vectors=np.full((len(each.serials), width), np.nan)) if each.vectors.shape[1] < width else each
        for each in some
    ]
    return WindowMatches(*(np.concatenate(column) for column in zip(*padded, strict=True)))


def make_arrivals(
    block: Block, moments: Sequence[EventTime], numbers: Integers, enters: npt.NDArray[np.int8]
) -> Arrivals:
    """Return documents as the window takes them, from their moments, their numbers, and whether they enter."""
    times, leaves, least = np.array([moment[:3] for moment in moments], np.int64).T.copy()
    return Arrivals(block, times, leaves, least, numbers, enters)
