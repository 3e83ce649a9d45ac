"""The verdicts and pairs of a run or a flow as reports read them, and how soon the duplicates of a flow came."""

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
from neardup.times import utc

#: Why a document is kept or dropped. A copy has the text of a document before it; one with equal features may not.
KEPT, COPY, EQUAL_FEATURES, NEAR = "kept", "exact copy", "equal features", "near-duplicate"
#: Instead of a keeper's row: the document is kept, or its keeper is not in the report.
ORIGINAL, ELSEWHERE = -1, -2
NO_TIME = -(1 << 62)
REASONS = (KEPT, COPY, EQUAL_FEATURES, NEAR)


@dataclass(frozen=True, eq=False, kw_only=True)
class Verdicts:
    """The verdicts on documents, in the order of the input or of arrival; a row is a number in this order."""

    ids: pa.Array
    #: int64[n]: the row of each document's keeper; ORIGINAL for a kept document, or ELSEWHERE. In a flow always an
    #: earlier row.
    keeper_rows: Integers
    #: float64[n]: the similarity to the keeper; for kept documents any number.
    similarity: Floats
    #: bool[n]: whether the text equals the keeper's byte for byte, and whether the features do, as those of equal texts
    #: do.
    exact: Bools
    equal: Bools
    #: int64[n]: microseconds since 1970, or NO_TIME; None for a run.
    times: Integers | None = None
    #: The number of first documents that are older than the report, and are here because reported ones repeat them.
    earlier_count: int = 0
    elsewhere: Mapping[int, str] = field(default_factory=dict)
    #: bool[n]: which documents belong to the input; None for all.
    present: Bools | None = None
    #: The families; None if only the keepers connect documents, as in a flow.
    families: Families | None = None
    #: int64[n]: the reason for each verdict as an index in REASONS: a document may be a copy of any document before it,
    #: not only of its keeper. None if the relation to the keeper is the reason.
    reasons: Integers | None = None

    def __len__(self) -> int:
        return len(self.keeper_rows)

    def id(self, place: int) -> str:
        """Return the id of a document."""
        return str(self.ids[place].as_py())

    def keeper(self, place: int) -> str:
        """Return the id of a document's keeper, empty for a kept document."""
        other = int(self.keeper_rows[place])
        if other == ORIGINAL:
            return ""
        return self.elsewhere.get(place, "") if other == ELSEWHERE else self.id(other)

    def keeper_reason(self, place: int) -> str:
        """Return how a document matches its keeper: COPY, EQUAL_FEATURES or NEAR; KEPT if it has none."""
        if self.keeper_rows[place] == ORIGINAL:
            return KEPT
        return COPY if self.exact[place] else EQUAL_FEATURES if self.equal[place] else NEAR

    def reason(self, place: int) -> str:
        """Return why a document was dropped; KEPT for a kept one."""
        return self.keeper_reason(place) if self.reasons is None else REASONS[int(self.reasons[place])]

    @cached_property
    def duplicates(self) -> Integers:
        """The rows of the reported documents that are not kept."""
        found = np.flatnonzero(self.keeper_rows != ORIGINAL)
        return found[found >= self.earlier_count]

    @cached_property
    def originals(self) -> Integers:
        """The row of the original that each document goes back to; of a kept document its own row."""
        root = np.where(self.keeper_rows >= 0, self.keeper_rows, np.arange(len(self)))
        while not np.array_equal(further := root[root], root):
            root = further
        return root

    @cached_property
    def family(self) -> Integers:
        """The number of each document's family, from 1; 0 for a document without one."""
        if self.families is not None:
            return self.families.family
        roots, at, sizes = np.unique(self.originals, return_inverse=True, return_counts=True)
        number = np.zeros(len(roots), np.int64)
        number[sizes > 1] = np.arange(1, int((sizes > 1).sum()) + 1)
        return number[at]

    @cached_property
    def family_sizes(self) -> Integers:
        """The number of documents of each family; family 1 stands at index 0."""
        return np.bincount(self.family)[1:]

    def members(self, number: int) -> Integers:
        """Return the rows of a family's documents."""
        order, ends = self._by_family
        return order[ends[number - 1] : ends[number]]

    @cached_property
    def _by_family(self) -> tuple[Integers, Integers]:
        return np.argsort(self.family, kind="stable"), np.cumsum(np.bincount(self.family))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class KnownPairs:
    """The pairs that were found, from a relaxed threshold on."""

    #: int64[k]: rows of documents, in a flow the earlier one on the left; equal documents share their representative's.
    left: Integers
    right: Integers
    similarity: Floats
    #: The threshold from which on all pairs are known.
    relaxed_threshold: Fraction
    searched: bool = True
    #: Why pairs beyond the threshold are unknown, if they are.
    note: str = ""
    #: bool[k]: which pairs the run itself counts as matches; None for a flow, whose verdicts tell.
    matching: Bools | None = None
    #: Returns which pairs reach a threshold, exactly; None if the similarities decide.
    matches_at: Callable[[Fraction], Bools] | None = None
    #: int64[n], of a run: the first document with the same features as each one, -1 for none; and the documents in keep
    #: order.
    representative: Integers | None = None
    keep_order: Integers | None = None
    #: The number of last documents that are the reference, all of them kept.
    reference_count: int = 0
    #: Returns the whole numbers behind the similarity of a pair in words, by its index.
    describe_counts: Callable[[int], str] | None = None

    @classmethod
    def empty(cls, threshold: Fraction, note: str) -> Self:
        """Return no pairs, for a search that was not made at this threshold."""
        none = np.zeros(0, np.int64)
        return cls(
            left=none, right=none, similarity=np.zeros(0), relaxed_threshold=threshold, searched=False, note=note
        )


_SECOND = 1_000_000
_MINUTE, _HOUR = 60 * _SECOND, 3600 * _SECOND
_DAY = 24 * _HOUR
#: The upper ends of the lags between a duplicate and its original.
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
    """Return a time in microseconds as text, to the second; empty if it is outside the calendar."""
    try:
        return utc(moment).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError):
        return ""


def duplicate_lags(verdicts: Verdicts) -> list[tuple[str, int]]:
    """Return how many duplicates of a flow came how long after their originals; empty for a run."""
    times, places = verdicts.times, verdicts.duplicates[verdicts.keeper_rows[verdicts.duplicates] >= 0]
    if times is None:
        return []
    places = places[times[verdicts.keeper_rows[places]] != NO_TIME]
    # A late item may repeat one with a later time.
    lag = np.abs(times[places] - times[verdicts.keeper_rows[places]])
    counts = np.bincount(np.searchsorted(list(_LAGS.values()), lag), minlength=len(_LAGS) + 1)
    last = int(np.flatnonzero(counts).max(initial=-1))
    return list(zip([*_LAGS, _LATER], counts[: last + 1].tolist(), strict=False))
