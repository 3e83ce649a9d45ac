"""What every engine gives: pairs with the three numbers that say how alike they are, and answers to a question."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.features.store import FeatureStore
from neardup.kernels.graph import connect_components, group_pairs

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
#: More groups of pairs are not made, however little room there is.
_MOST_GROUPS = 100
_ANY_ROOM = 1 << 62


class Similar(NamedTuple):
    """A document by its id, and how similar it is to the one that was asked about."""

    id: Any
    similarity: float


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """The pairs of representatives that match.

    Attributes
    ----------
    representative : int64[n]
        For each document the first one that is equal to it in all that is compared, -1 for a document without
        features: it matches nothing.
    left, right : int64[k]
        Pairs of representatives that match, left < right, sorted.
    counts : int64[k, 3]
        o, a and b of each pair, as ``neardup.recipe.measures`` defines them for the recipe's measure.
    unit : int
        How much of o, a and b makes 1.
    complete : bool
        Whether all pairs are there; if not, those of each dropped document with kept ones before it.
    statistics : dict
        Counts of what each step did.
    second : int64[k, 3] or None
        o, a and b of each pair for the second measure, where the recipe has one.
    vectors : float64[k, r] or None
        The similarities that a classifier went by, where one decided.
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


def set_representatives(store: FeatureStore, excluded: npt.NDArray[np.bool_] | None = None) -> Integers:
    """Return for each document the first with the same features, and weights of these; -1 for what matches nothing.

    Parameters
    ----------
    store : FeatureStore
        The features; a document without any matches nothing.
    excluded : bool[n], optional
        Documents that must match nothing.
    """
    alone = store.sizes == 0
    if excluded is not None:
        alone |= excluded
    return store.first_equal(alone)


def incomplete_matches(representative: Integers) -> Matches:
    """Return what a search knows that gave up: nothing but who is equal."""
    none = np.empty(0, np.int64)
    return Matches(representative, none, none, np.empty((0, 3), np.int64), complete=False)


def restrict_to_groups(found: Matches, groups: Integers) -> Matches:
    """Return the matches of documents of one group; those of different groups are neither equal nor pairs.

    Parameters
    ----------
    found : Matches
        All pairs, before a second step.
    groups : int64[n]
        The group of each document, from 0.
    """
    own, count = found.representative, int(groups.max(initial=0)) + 1
    able = np.flatnonzero(own >= 0)
    # Of the equal documents of one group the first stands for all.
    keys, first, place = np.unique(own[able] * count + groups[able], return_index=True, return_inverse=True)
    representative = np.full(len(own), -1, np.int64)
    representative[able] = able[first][place.reshape(-1)]
    begins, ends = (np.searchsorted(keys // count, found.left, side) for side in ("left", "right"))
    edge = np.repeat(np.arange(len(found.left)), ends - begins)
    one = np.arange(len(edge)) - np.repeat(np.cumsum(ends - begins) - ends, ends - begins)
    asked = found.right[edge] * count + keys[one] % count
    other = np.minimum(np.searchsorted(keys, asked), max(len(keys) - 1, 0))
    both = keys[other] == asked
    left, right, counts = sorted_pairs(able[first][one[both]], able[first][other[both]], found.counts[edge[both]])
    return replace(
        found,
        representative=representative,
        left=left,
        right=right,
        counts=counts,
        statistics=found.statistics | {"pairs": len(left)},
    )


def distinct_documents(representative: Integers) -> Integers:
    """Return the documents that stand for others or themselves, ascending."""
    return np.flatnonzero(representative == np.arange(len(representative)))


def partition_pairs(pairs: npt.NDArray[np.integer], sizes: Integers, room: float) -> Integers:
    """Return int64[k], the group of each pair, from 0: what pairs connect is in one group where that fits.

    Parameters
    ----------
    pairs : integers[k, 2]
        Which two of those that have a size.
    sizes : int64[r]
        The bytes of each.
    room : float
        Bytes that those of a group have at most; of a single pair they may be more.
    """
    left, right = pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)
    root, groups = np.arange(len(sizes)), np.empty(len(pairs), np.int64)
    connect_components(left, right, root)
    involved = np.zeros(len(sizes), np.bool_)
    involved[pairs] = True
    total = np.bincount(root[involved], sizes[involved], len(sizes)).astype(np.int64)
    most = int(min(max(room, 2 * total.sum() / _MOST_GROUPS, 1), _ANY_ROOM))
    last = np.full(len(sizes), -1)
    group_pairs(np.lexsort((right, left, root[left])), left, right, root, sizes, total, most, last, groups)
    return groups


def sorted_pairs(left: Integers, right: Integers, counts: Integers) -> tuple[Integers, Integers, Integers]:
    """Return pairs with the smaller document on the left, in order; a and b change sides with them."""
    swapped = left > right
    counts = counts.copy()
    counts[swapped, 1], counts[swapped, 2] = counts[swapped, 2], counts[swapped, 1].copy()
    left, right = np.minimum(left, right), np.maximum(left, right)
    sequence = np.lexsort((right, left))
    return left[sequence], right[sequence], counts[sequence]
