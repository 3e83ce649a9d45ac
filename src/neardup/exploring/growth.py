"""How pairs and dropped documents grow with the corpus: of its first documents, and of random ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup.exploring.sample import hashes_of
from neardup.exploring.telling import share
from neardup.search.levels import Levels

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: The smallest part of the corpus whose figures are told is one in so many; the next is twice as large, and so on.
_PARTS = 16
#: Where as many random documents have fewer pairs than this in the mean, nothing is said of their density.
_ENOUGH = 50
#: Densities that differ by a smaller factor than this are told as the same.
_SAME = 1.25
#: Pairs stand close together where so many times more of them than by chance are in one part.
_CLOSE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The figures of some documents of a corpus, as if they were all of it.

    Attributes
    ----------
    documents : int
        How many.
    pairs : int
        Of them that match.
    dropped : int
        How many of them would be dropped.
    """

    documents: int
    pairs: int
    dropped: int

    @property
    def per_million(self) -> float:
        """Matching pairs in a million of all their pairs."""
        every = self.documents * (self.documents - 1) // 2
        return 1e6 * self.pairs / every if every else 0.0

    @property
    def share(self) -> float:
        """The share that would be dropped."""
        return self.dropped / self.documents if self.documents else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self) | {"per_million": self.per_million, "share": self.share}


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How the figures at one threshold grow with the number of documents.

    Attributes
    ----------
    threshold : float
        Pairs at or above it match.
    first : tuple of Size
        A sixteenth of the documents, an eighth, a quarter, a half and all of them: the first ones of the input.
    drawn : tuple of Size
        As many documents, drawn at random; a larger draw holds the smaller ones.
    together : float
        The share of the matching pairs that lie within one of sixteen consecutive parts of the input; by chance it is
        about a sixteenth.
    seed : int
        Another one draws others.
    """

    threshold: float
    first: tuple[Size, ...]
    drawn: tuple[Size, ...]
    together: float
    seed: int

    @property
    def sentence(self) -> str:
        """How the density of pairs and the share of dropped documents change with the size, by figure."""
        head, every = f"At {self.threshold:g}", self.first[-1]
        if not every.pairs:
            return f"{head} no pair matches, so there is nothing that could grow."
        place = next((i for i, size in enumerate(self.first[:-1]) if self._expected(size) >= _ENOUGH), None)
        if place is None:
            pairs = f"{every.pairs:,} pairs match" if every.pairs > 1 else "one pair matches"
            return f"{head} {pairs}: too few to tell how they grow with the corpus."
        first, drawn = self.first[place], self.drawn[place]
        close = "stand close together" if self.together * _PARTS >= _CLOSE else "stand anywhere"
        dropped, of_all = share(drawn.dropped, drawn.documents), share(every.dropped, every.documents)
        return (
            f"{head} {_figure(first.per_million)} pairs in a million match among the first {first.documents:,} "
            f"documents of the input, and {_figure(every.per_million)} among all {every.documents:,}: the density "
            f"{self._change(first, every)}. Documents that match {close} in the input: {share(self.together, 1)} of "
            f"the pairs lie within one of its sixteen parts, by chance it would be {share(1, _PARTS)}. Random "
            f"documents are as dense at any size, but for chance ({_figure(drawn.per_million)} for "
            f"{drawn.documents:,}); what grows is the share that is dropped, {dropped} of these and {of_all} of all."
        )

    def _expected(self, size: Size) -> float:
        """Return how many pairs as many random documents have in the mean."""
        return self.first[-1].per_million * size.documents * (size.documents - 1) / 2e6

    @staticmethod
    def _change(first: Size, every: Size) -> str:
        if every.per_million * _SAME < first.per_million:
            return "falls as documents come in"
        if every.per_million > first.per_million * _SAME:
            return "rises as documents come in"
        return "stays about the same as documents come in"

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {
            "threshold": self.threshold,
            "seed": self.seed,
            "first": [size.as_dict() for size in self.first],
            "drawn": [size.as_dict() for size in self.drawn],
            "together": self.together,
            "sentence": self.sentence,
        }


def growth_of(
    known: Levels, place: int, threshold: float, *, present: Bools, rows: Integers, seed: int
) -> Growth | None:
    """Return how pairs and dropped documents grow, from known pairs; None of so few that a part has not two documents.

    What a recipe takes from the collection, such as weights of features, stays that of the whole.

    Parameters
    ----------
    known : Levels
        The pairs.
    place, threshold : int, float
        Which threshold, by its place among those of ``known`` and as a number.
    present : bool[n]
        False for documents set aside.
    rows : int64[n]
        The row of each document, by which chance goes.
    seed : int
        Another one draws other documents.
    """
    documents = np.flatnonzero(present)
    if len(documents) < 2 * _PARTS:
        return None
    at_random = documents[by_chance(rows[documents], seed)]
    every = _size(known, place, documents)
    sizes = [len(documents) * 2**i // _PARTS for i in range(_PARTS.bit_length() - 1)]
    within = sum(int(known.pairs(_mask(part, len(rows)))[place]) for part in np.array_split(documents, _PARTS))
    return Growth(
        threshold=threshold,
        first=(*(_size(known, place, documents[:size]) for size in sizes), every),
        drawn=(*(_size(known, place, at_random[:size]) for size in sizes), every),
        together=within / every.pairs if every.pairs else 0.0,
        seed=seed,
    )


def by_chance(rows: Integers, seed: int) -> Integers:
    """Return places in the order in which samples are drawn, which rows and seed alone determine.

    So a larger draw holds the smaller ones.
    """
    return np.argsort(hashes_of(rows, seed), kind="stable")


def _size(known: Levels, place: int, chosen: Integers) -> Size:
    figures = known.figures(_mask(chosen, len(known.order)))
    return Size(documents=len(chosen), pairs=int(figures.pairs[place]), dropped=int(figures.dropped[place]))


def _mask(chosen: Integers, count: int) -> Bools:
    mask = np.zeros(count, np.bool_)
    mask[chosen] = True
    return mask


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
