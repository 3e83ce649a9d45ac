"""What goes into a shard of a flow, and what comes out of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.flow.parts import Partners

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


class Arrived(NamedTuple):
    """Documents in order of arrival, as a shard takes them.

    Attributes
    ----------
    ids, texts, titles : pyarrow.LargeStringArray
        Of each document; none is null.
    """

    ids: pa.LargeStringArray
    texts: pa.LargeStringArray
    titles: pa.LargeStringArray

    def take(self, places: Integers) -> Arrived:
        """Return some of them."""
        chosen = pa.array(places)
        return Arrived(*(column.take(chosen) for column in self))

    def between(self, part: slice) -> Arrived:
        """Return a stretch of them."""
        return Arrived(*(column[part] for column in self))


class Entered(NamedTuple):
    """What entered a shard, in the order in which it did: enough to have it enter again.

    Attributes
    ----------
    documents : Arrived
        Which documents.
    serials, times, leaves, parts, reals : int64[n]
        Their numbers; as in a ``Moment`` each one's time, when it leaves, its sub-index, and microseconds since 1970.
    again : bool[n]
        Whether it was there before, and is confirmed: from now on its own time counts.
    """

    documents: Arrived
    serials: Integers
    times: Integers
    leaves: Integers
    parts: Integers
    reals: Integers
    again: Booleans


class Found(NamedTuple):
    """What a shard found about documents.

    Attributes
    ----------
    places : int64[k]
        Which of the documents, ascending.
    partners : Partners
        What each matches, the best first, of those that are older.
    has_features : bool[n]
        Of each document, whether it can match anything.
    """

    places: Integers
    partners: Partners
    has_features: Booleans
