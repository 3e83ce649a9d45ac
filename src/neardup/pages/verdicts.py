"""Verdicts and pairs as reports see them, of a run or of a flow, and how soon the duplicates of a flow came."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa

from neardup.keep.keepers import Families
from neardup.kernels import Bools, Floats, Integers
from neardup.pages.report import COPY, EQUAL_FEATURES, KEPT, NEAR
from neardup.times import utc

#: In the place of a keeper: the document is kept, or its keeper is not among those that are reported.
ORIGINAL, ELSEWHERE = -1, -2
#: In the place of a time that is not known.
NO_TIME = -(1 << 62)
#: Reasons by their numbers in ``Verdicts.why``.
REASONS = (KEPT, COPY, EQUAL_FEATURES, NEAR)


@dataclass(frozen=True, eq=False, kw_only=True)
class Verdicts:
    """What became of documents, in the order of the input or of arrival; a place is a number in this order."""

    ids: pa.Array
    #: int64[n]: the place of each one's keeper; ORIGINAL for a kept one, or ELSEWHERE. In a flow always an earlier
    #: place.
    of: Integers
    #: float64[n]: to the keeper; of kept ones any number.
    similarity: Floats
    #: bool[n]: whether the text is the keeper's byte for byte, and whether its features are, as those of equal texts
    #: are.
    exact: Bools
    equal: Bools
    #: int64[n]: of a flow: microseconds since 1970, or NO_TIME.
    times: Integers | None = None
    #: So many of the first documents came before those that are reported, and are here because others repeat them.
    before: int = 0
    #: The ids of keepers that are ELSEWHERE.
    elsewhere: Mapping[int, str] = field(default_factory=dict)
    #: bool[n]: which documents count; None for all.
    present: Bools | None = None
    #: The families; None where documents are connected by what they repeat, and by nothing else.
    connected: Families | None = None
    #: int64[n]: why each was dropped: 0 for a kept one, 1 for a copy of any document before it, 2 for equal features, 3
    #: for near; None where the keeper says that.
    why: Integers | None = None

    def __len__(self) -> int:
        return len(self.of)

    def id(self, place: int) -> str:
        """Return what a document is called."""
        return str(self.ids[place].as_py())

    def keeper(self, place: int) -> str:
        """Return the id of a document's keeper; empty for a kept one."""
        other = int(self.of[place])
        if other == ORIGINAL:
            return ""
        return self.elsewhere.get(place, "") if other == ELSEWHERE else self.id(other)

    def to_keeper(self, place: int) -> str:
        """Return how a document is like its keeper."""
        if self.of[place] == ORIGINAL:
            return KEPT
        return COPY if self.exact[place] else EQUAL_FEATURES if self.equal[place] else NEAR

    def reason(self, place: int) -> str:
        """Return why a document was dropped, or that it is kept."""
        return self.to_keeper(place) if self.why is None else REASONS[int(self.why[place])]

    @cached_property
    def duplicates(self) -> Integers:
        """The places of the reported documents that are not kept."""
        found = np.flatnonzero(self.of != ORIGINAL)
        return found[found >= self.before]

    @cached_property
    def root(self) -> Integers:
        """Of each document the first one that it goes back to, itself for a kept one."""
        root = np.where(self.of >= 0, self.of, np.arange(len(self)))
        while not np.array_equal(further := root[root], root):
            root = further
        return root

    @cached_property
    def family(self) -> Integers:
        """The number of each document's family, from 1; 0 for none."""
        if self.connected is not None:
            return self.connected.family
        roots, at, sizes = np.unique(self.root, return_inverse=True, return_counts=True)
        number = np.zeros(len(roots), np.int64)
        number[sizes > 1] = np.arange(1, int((sizes > 1).sum()) + 1)
        return number[at]

    @cached_property
    def sizes(self) -> Integers:
        """How many documents each family has, by its number less 1."""
        return np.bincount(self.family)[1:]

    def members(self, number: int) -> Integers:
        """Return the places of a family's documents."""
        order, ends = self._by_family
        return order[ends[number - 1] : ends[number]]

    @cached_property
    def _by_family(self) -> tuple[Integers, Integers]:
        return np.argsort(self.family, kind="stable"), np.cumsum(np.bincount(self.family))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class KnownPairs:
    """The pairs that are known, from a relaxed threshold on."""

    #: int64[k]: places of documents, in a flow the earlier one on the left; for equals their representative's.
    left: Integers
    right: Integers
    #: float64[k]: of each pair.
    similarity: Floats
    #: The threshold from which on all pairs are there.
    loosest: Fraction
    #: Whether pairs were searched for.
    searched: bool = True
    note: str = ""
    #: bool[k]: which of them match by the run itself; None for a flow, whose verdicts say that.
    matching: Bools | None = None
    #: Which of them, exactly, reach a threshold; None to go by the similarities.
    matches_at: Callable[[Fraction], Bools] | None = None
    #: int64[n]: of a run: of each document the first one with the same features, -1 for none; and the documents in keep
    #: order.
    representative: Integers | None = None
    order: Integers | None = None
    #: How many of the documents, the last ones, are of a reference, which all stay.
    reference_count: int = 0
    #: What is behind the similarity of a pair, in words, by its place here.
    numbers: Callable[[int], str] | None = None

    @classmethod
    def empty(cls, threshold: Fraction, note: str) -> Self:
        """Return the pairs of a search that was not made, at its threshold."""
        none = np.zeros(0, np.int64)
        return cls(left=none, right=none, similarity=np.zeros(0), loosest=threshold, searched=False, note=note)


_SECOND = 1_000_000
_MINUTE, _HOUR = 60 * _SECOND, 3600 * _SECOND
_DAY = 24 * _HOUR
#: Ends of the stretches of time by which a duplicate comes after what it repeats.
_LAGS = {
    "at once": _SECOND,
    "1 s to 1 min": _MINUTE,
    "1 to 10 min": 10 * _MINUTE,
    "10 min to 1 h": _HOUR,
    "1 to 3 h": 3 * _HOUR,
    "3 to 6 h": 6 * _HOUR,
    "6 to 12 h": 12 * _HOUR,
    "12 to 24 h": _DAY,
    "1 to 2 days": 2 * _DAY,
    "2 to 7 days": 7 * _DAY,
    "7 to 30 days": 30 * _DAY,
}
_LATER = "more than 30 days"


def format_time(moment: int) -> str:
    """Return a time in microseconds as people read it, to the second; empty where no calendar has it."""
    try:
        return utc(moment).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError):
        return ""


def duplicate_lags(verdicts: Verdicts) -> list[tuple[str, int]]:
    """Return how long after what they repeat the duplicates of a flow came, and how many did; nothing for a run."""
    times, places = verdicts.times, verdicts.duplicates[verdicts.of[verdicts.duplicates] >= 0]
    if times is None:
        return []
    places = places[times[verdicts.of[places]] != NO_TIME]
    # One may repeat an item that is of a later time than itself, if it arrived late.
    lag = np.abs(times[places] - times[verdicts.of[places]])
    counts = np.bincount(np.searchsorted(list(_LAGS.values()), lag), minlength=len(_LAGS) + 1)
    last = int(np.flatnonzero(counts).max(initial=-1))
    return list(zip([*_LAGS, _LATER], counts[: last + 1].tolist(), strict=False))
