"""The result of every engine: matching pairs with o, a and b."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.features.store import FeatureStore
from neardup.kernels import Floats, Integers
from neardup.kernels.graph import connect_components, group_pairs

#: The largest number of groups of pairs, however little room there is.
_MAX_GROUPS = 100
_MAX_ROOM = 1 << 62


class Similar(NamedTuple):
    """The id of a document, and its similarity to the queried one."""

    id: Any
    similarity: float


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """The matching pairs of representatives.

    Attributes
    ----------
    representative : int64[n]
        The first document with equal features; -1 for a document without features, which matches nothing.
    left, right : int64[k]
        Left < right, sorted.
    counts, second : int64[k, 3]
        o, a and b of each pair for the recipe's measure, in units of ``unit`` (``neardup.recipe.measures``), and for
        that of the second step, if there is one.
    complete : bool
        Whether all pairs are present; if not, only those of dropped documents with kept ones before them, or none.
    statistics : dict
        Counts of each step.
    vectors : float64[k, r] or None
        The vectors on which a classifier decided, if there is one.
    """

    representative: Integers
    left: Integers
    right: Integers
    counts: Integers
    unit: int = 1
    complete: bool = True
    statistics: dict[str, Any] = field(default_factory=dict)
    second: Integers | None = None
    vectors: Floats | None = None


def set_representatives(store: FeatureStore) -> Integers:
    """Return for each document the first one with the same features and weights; -1 for one without features."""
    return store.first_equal(store.sizes == 0)


def incomplete_matches(representative: Integers) -> Matches:
    """Return the matches of a search that stopped at its limit: equal documents, but no pairs."""
    none = np.empty(0, np.int64)
    return Matches(representative, none, none, np.empty((0, 3), np.int64), complete=False)


def restrict_to_groups(found: Matches, groups: Integers) -> Matches:
    """Return only the matches inside groups: documents of different groups are neither equal nor pairs.

    found: all pairs, before a second step; groups: int64[n], the group of each document, from 0.
    """
    old, count = found.representative, int(groups.max(initial=0)) + 1
    matchable = np.flatnonzero(old >= 0)
    # The first of the equal documents of a group is their representative.
    keys, first, place = np.unique(old[matchable] * count + groups[matchable], return_index=True, return_inverse=True)
    representatives = matchable[first]
    representative = np.full(len(old), -1, np.int64)
    representative[matchable] = representatives[place.reshape(-1)]
    begins, ends = (np.searchsorted(keys // count, found.left, side) for side in ("left", "right"))
    edge = np.repeat(np.arange(len(found.left)), ends - begins)
    left_key = np.arange(len(edge)) - np.repeat(np.cumsum(ends - begins) - ends, ends - begins)
    queries = found.right[edge] * count + keys[left_key] % count
    right_key = np.minimum(np.searchsorted(keys, queries), max(len(keys) - 1, 0))
    is_pair = keys[right_key] == queries
    left, right, counts = sorted_pairs(
        representatives[left_key[is_pair]], representatives[right_key[is_pair]], found.counts[edge[is_pair]]
    )
    statistics = found.statistics | {"pairs": len(left)}
    return replace(found, representative=representative, left=left, right=right, counts=counts, statistics=statistics)


def distinct_documents(representative: Integers) -> Integers:
    """Return the documents that are representatives, ascending."""
    return np.flatnonzero(representative == np.arange(len(representative)))


def partition_pairs(pairs: npt.NDArray[np.integer], sizes: Integers, room: float) -> Integers:
    """Return int64[k], the group of each pair of items, from 0; connected pairs share a group if it fits.

    sizes: int64[r], the bytes of each item; room: the most bytes of the items of a group; a single pair may have more.
    """
    left, right = pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)
    root, groups = np.arange(len(sizes)), np.empty(len(pairs), np.int64)
    connect_components(left, right, root)
    involved = np.zeros(len(sizes), np.bool_)
    involved[pairs] = True
    total = np.bincount(root[involved], sizes[involved], len(sizes)).astype(np.int64)
    limit = int(min(max(room, 2 * total.sum() / _MAX_GROUPS, 1), _MAX_ROOM))
    last = np.full(len(sizes), -1)
    group_pairs(np.lexsort((right, left, root[left])), left, right, root, sizes, total, limit, last, groups)
    return groups


def sorted_pairs(left: Integers, right: Integers, counts: Integers) -> tuple[Integers, Integers, Integers]:
    """Return pairs in order, the smaller document on the left; a and b are swapped with their documents."""
    swapped = left > right
    counts = counts.copy()
    counts[swapped, 1], counts[swapped, 2] = counts[swapped, 2], counts[swapped, 1].copy()
    left, right = np.minimum(left, right), np.maximum(left, right)
    sequence = np.lexsort((right, left))
    return left[sequence], right[sequence], counts[sequence]
