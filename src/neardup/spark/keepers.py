"""Too many pairs to find them all: those of sets that go with sets that stay, from the first sets in keep order on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neardup.keep.keepers import graph, keepers, standing
from neardup.spark.search import Search, Sides

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: As soon as no more sets than this are left, all their pairs are listed.
_FEW_SETS = 1000
#: Of sets that have too many pairs one in so many is looked at first: those have a 64th of the pairs.
_FIRST_SHARE = 8


class KeptFirst:
    """Finds the pairs of sets that go with sets that stay.

    Parameters
    ----------
    search : Search
        Lists and verifies candidates.
    rows : int64[n]
        The rows of all sets, in keep order.
    """

    def __init__(self, search: Search, rows: Integers) -> None:
        self._search, self._rows = search, rows
        self._by_row = np.argsort(rows)
        self._steps = 0

    def pairs(self) -> DataFrame:
        """Return all pairs of a set that stays with one that goes, as ``search.EDGES``."""
        kept = self._split(np.arange(len(self._rows)))
        return self._search.verified(self._search.candidates("kept-", self._sides(kept), every=True))

    def _split(self, some: Integers) -> Integers:
        """Return which of some sets stay, of those that no set before them drops: by their places in keep order."""
        begin = min(max(len(some) // _FIRST_SHARE, _FEW_SETS), (len(some) + 1) // 2)
        kept, rest = self._kept(some[:begin]), some[begin:]
        name = self._next()
        beside = self._sides(kept, rest)
        met = self._matched(self._search.verified(self._search.candidates(name, beside, every=True)))
        return np.concatenate([kept, self._kept(rest[~np.isin(rest, met)])])

    def _kept(self, some: Integers) -> Integers:
        if not len(some):
            return some
        name, every = self._next(), len(some) <= _FEW_SETS
        listed = self._search.candidates(name, Sides(np.sort(self._rows[some]), np.empty(0, np.bool_)), every=every)
        if listed.too_many:
            return self._split(some)
        ends = np.searchsorted(some, self._matched(self._search.verified(listed)))
        left, right = ends.reshape(2, -1)
        pairs = graph(len(some), left, right, np.ones(len(left)))
        own = np.arange(len(some))
        return some[~keepers(own, pairs, own).dropped]

    def _matched(self, edges: DataFrame) -> Integers:
        """Return the places of all sets in pairs, those on the left before those on the right."""
        found = edges.select("left", "right").toArrow()
        ends = np.concatenate([found["left"].to_numpy(), found["right"].to_numpy()])
        places: Integers = self._by_row[np.searchsorted(self._rows, ends, sorter=self._by_row)]
        return places

    def _sides(self, kept: Integers, others: Integers | None = None) -> Sides:
        """Return sets that stay beside others, all that do not stay by default."""
        if others is None:
            others = np.delete(np.arange(len(self._rows)), kept)
        rows = self._rows[np.concatenate([kept, others])]
        order = np.argsort(rows)
        return Sides(rows[order], np.repeat([False, True], [len(kept), len(others)])[order])

    def _next(self) -> str:
        """Return with what the names of further stages begin."""
        self._steps += 1
        return f"part-{self._steps}-"


def with_kept(representative: Integers, order: Integers, left: Integers, right: Integers) -> Bools:
    """Return which pairs are told where not all are: bool[k].

    Those of a set that stays with a later one, and where the one that goes is that of several documents, with an
    earlier one: it may come before its others. In memory no others are looked for.
    """
    count = len(representative)
    ranked = standing(representative, order)
    stays = ranked.staying(graph(count, left, right, np.ones(len(left))))
    at = np.full(count, -1, np.int64)
    at[ranked.nodes] = ranked.place[ranked.top[ranked.nodes]]
    several = np.bincount(representative[representative >= 0], minlength=count) > 1
    first = at[left] < at[right]
    early, late = np.where(first, left, right), np.where(first, right, left)
    told: Bools = (stays[early] & ~stays[late]) | (stays[late] & ~stays[early] & several[early])
    return told
