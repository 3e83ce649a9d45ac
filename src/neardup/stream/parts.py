"""What goes between the index, the judge and the window: documents in parts, and what was found about each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from neardup.classifier.evidence import Contribution
from neardup.features.store import Block
from neardup.search.window import Arrivals, EventTime

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Record(NamedTuple):
    """What a second step goes by: a document's text, its title, and its time in microseconds since 1970."""

    text: str
    title: str
    time: int


class Judged(NamedTuple):
    """What was found about one document.

    Attributes
    ----------
    moment : EventTime
        When it arrived.
    of : int
        The number of its best match; -1 for none.
    similarity : float
        To that; -1 for none.
    counts : tuple of int
        o, a and b.
    same_text : bool
        Whether the texts are equal byte for byte.
    held : bool
        Whether the window holds it now.
    has_features : bool
        Whether it can match anything.
    g : float or None
        What a classifier makes of it and its best match.
    measures : tuple of Contribution
        By what.
    """

    moment: EventTime
    of: int
    similarity: float
    counts: tuple[int, int, int]
    same_text: bool
    held: bool
    has_features: bool
    g: float | None = None
    measures: tuple[Contribution, ...] = ()


class Partners(NamedTuple):
    """Held documents that match one, the best first.

    Attributes
    ----------
    serials : int64[k]
        Their numbers.
    similarity, counts : float64[k], int64[k, 3]
        How similar they are, and o, a and b.
    same : bool[k]
        Whether the texts are equal.
    g, vectors : float64[k], float64[k, r]
        What a classifier makes of them, and from what; nan where none was asked.
    """

    serials: Integers
    similarity: Floats
    counts: Integers
    same: npt.NDArray[np.bool_]
    g: Floats
    vectors: Floats

    @classmethod
    def first_step(cls, serials: Integers, similarity: Floats, counts: Integers, same: npt.NDArray[np.bool_]) -> Self:
        """Return what no second step has looked at."""
        return cls(serials, similarity, counts, same, np.full(len(serials), np.nan), np.empty((len(serials), 0)))

    def first(self) -> Partners:
        """Return the best one alone."""
        return self.among(slice(1))

    def among(self, places: slice | Integers | npt.NDArray[np.bool_]) -> Partners:
        """Return some of them."""
        serials, similarity, counts, same, g, vectors = self
        return Partners(serials[places], similarity[places], counts[places], same[places], g[places], vectors[places])


class Kept(NamedTuple):
    """A document that was held before a restart: its number, text, time, and time of leaving."""

    serial: int
    text: str
    time: int
    leaves: int


def joined(parts: Sequence[Partners]) -> Partners:
    """Return partners one behind the other, those of no second step with vectors of nan beside others."""
    none = np.empty(0, np.int64)
    empty = Partners.first_step(none, np.empty(0), np.empty((0, 3), np.int64), np.empty(0, np.bool_))
    width = max((each.vectors.shape[1] for each in parts), default=0)
    vectors = [np.pad(p.vectors, ((0, 0), (0, width - p.vectors.shape[1])), constant_values=np.nan) for p in parts]
    columns = [np.concatenate(column) for column in zip(empty[:5], *(each[:5] for each in parts), strict=True)]
    serials, similarity, counts, same, g = columns
    return Partners(serials, similarity, counts, same, g, np.concatenate([np.empty((0, width)), *vectors]))


def part_of(block: Block, heads: Integers | None, begin: int, end: int) -> Block:
    """Return the documents [begin, end) of a block; heads: where the features of each begin."""
    if heads is None:
        heads = np.concatenate([[0], np.cumsum(block.sizes)]).astype(np.int64)
    part = slice(begin, end)
    return Block(
        block.features[heads[begin] : heads[end]],
        block.sizes[part],
        block.marks[part],
        block.text_marks[part],
        block.text_bytes[part],
        block.weights,
    )


def arrivals_of(
    block: Block, moments: Sequence[EventTime], numbers: Integers, enters: npt.NDArray[np.int8]
) -> Arrivals:
    """Return documents as the window takes them, from their moments, their numbers, and whether they enter."""
    times, leaves, least = np.array([moment[:3] for moment in moments], np.int64).T.copy()
    return Arrivals(block, times, leaves, least, numbers.astype(np.int64), enters)
