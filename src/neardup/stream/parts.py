"""The records that pass between index, judge and window."""

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
    """The input of a second step: text, title, and time in microseconds since 1970."""

    text: str
    title: str
    time: int


class WindowMatches(NamedTuple):
    """Documents in the window that match a document, the best first."""

    serials: Integers  #: int64[k]: their serials
    #: float64[k], int64[k, 3]: similarities, and o, a and b.
    similarity: Floats
    counts: Integers
    equal_texts: Booleans  #: bool[k]: whether the texts are equal
    #: float64[k], float64[k, r]: scores of a classifier, and its measures; nan where none judged.
    scores: Floats
    vectors: Floats

    @classmethod
    def of_first_step(cls, serials: Integers, similarity: Floats, counts: Integers, equal_texts: Booleans) -> Self:
        """Return matches of the first step, without scores."""
        return cls(serials, similarity, counts, equal_texts, np.full(len(serials), np.nan), np.empty((len(serials), 0)))

    def best(self) -> WindowMatches:
        """Return only the best match."""
        return self.take(slice(1))

    def take(self, places: slice | Integers | Booleans) -> WindowMatches:
        """Return the matches at some places."""
        return WindowMatches(
            self.serials[places],
            self.similarity[places],
            self.counts[places],
            self.equal_texts[places],
            self.scores[places],
            self.vectors[places],
        )


class AheadDocument(NamedTuple):
    """A document ahead of the clock that was entered; it is entered again if a second one confirms its time."""

    block: Block
    serial: int
    time: int


class WindowFindings(NamedTuple):
    """The findings about several documents."""

    places: Integers  #: int64[k]: places of the documents with a match, ascending
    matches: WindowMatches  #: the best older match of each
    has_features: Booleans  #: bool[n]: whether each document has features to compare
    entered: Booleans  #: bool[n]: whether each document entered the window


class RestoredDocument(NamedTuple):
    """A document that was in the window before a restart: serial, text, time, and time of leaving."""

    serial: int
    text: str
    time: int
    expiry: int


NO_MATCHES = WindowMatches.of_first_step(
    np.empty(0, np.int64), np.empty(0), np.empty((0, 3), np.int64), np.empty(0, np.bool_)
)


def concatenate_matches(parts: Sequence[WindowMatches]) -> WindowMatches:
    """Concatenate matches; those without vectors of a second step get vectors of nan."""
    nonempty = [part for part in parts if len(part.serials)]
    if len(nonempty) < 2:
        return nonempty[0] if nonempty else NO_MATCHES
    width = max(part.vectors.shape[1] for part in nonempty)
    padded = [
        part._replace(vectors=np.full((len(part.serials), width), np.nan)) if part.vectors.shape[1] < width else part
        for part in nonempty
    ]
    return WindowMatches(*(np.concatenate(column) for column in zip(*padded, strict=True)))


def make_arrivals(
    block: Block, event_times: Sequence[EventTime], serials: Integers, enters: npt.NDArray[np.int8]
) -> Arrivals:
    """Return documents in the form that the window takes, from event times, serials, and whether they enter."""
    times, leaves, least = np.array([event_time[:3] for event_time in event_times], np.int64).T.copy()
    return Arrivals(block, times, leaves, least, serials, enters)
