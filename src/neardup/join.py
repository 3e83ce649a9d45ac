"""The exact join: every pair of documents whose measure reaches the threshold, none missed.

The steps, all of which keep every pair (design and sources in docs/architecture.md):

1. equal sets collapse to one representative; 2. a table counts in how many sets each feature occurs; what a
single set holds cannot be shared, and a set with too few
   shared features leaves, with its counts; this repeats while it pays;
3. each set's prefix in rare-first order is indexed, and probed by the sets that are as large or larger;
4. length, position and bitmap bounds rule candidates out; the rest are counted feature by feature.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup._kernels.counting import add_counts, count_features, prefix_rooms, prefixes
from neardup._kernels.grouping import group_equal
from neardup._kernels.matching import Index, Sets, fill_index, index_lengths, match
from neardup.features import FeatureStore
from neardup.measures import Rule
from neardup.parallel import in_order

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
#: Another round of counting pays when at least this share of the sets has left.
_WORTH_A_ROUND = 0.2
#: Sets a work item, and room for pairs in one call of the kernel.
_SETS_AT_A_TIME = 4096
_ROOM_FOR_PAIRS = 1 << 16
_FEWEST_BITS, _MOST_INDEX_BITS = 10, 26


class Joined(NamedTuple):
    """What the join found.

    Attributes
    ----------
    representative : int64[n]
        For each document the first one with the same set, -1 where the set is empty: it matches nothing.
    sizes : int64[n]
        The number of features of each document.
    left, right : int64[k]
        Pairs of representatives that match, left < right, sorted.
    overlap : int64[k]
        The features that they share.
    statistics : dict
        Counts of what each step did.
    """

    representative: Integers
    sizes: Integers
    left: Integers
    right: Integers
    overlap: Integers
    statistics: dict[str, int]


class _Prefixes(NamedTuple):
    """The prefix of set m is keys[starts[m]:starts[m] + lengths[m]]; length -1: it has no partner."""

    shared: Integers
    lengths: Integers
    bitmaps: Words
    starts: Integers
    keys: Words

    def of(self, chosen: npt.NDArray[Any]) -> _Prefixes:
        """Return those of the chosen sets."""
        return _Prefixes(
            self.shared[chosen], self.lengths[chosen], self.bitmaps[chosen], self.starts[chosen], self.keys
        )


def self_join(
    store: FeatureStore,
    rule: Rule,
    *,
    threads: int = 1,
    excluded: npt.NDArray[np.bool_] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Joined:
    """Find all pairs of a store's documents that reach the rule's threshold.

    Parameters
    ----------
    store : FeatureStore
        The feature sets.
    rule : Rule
        The measure with its threshold (``measures.rule``).
    threads : int
        Changes the time, never the answer.
    excluded : bool[n], optional
        Documents that must match nothing.
    progress : callable
        Told (sets done, sets in all) from time to time.
    """
    sizes = store.sizes
    addresses = store.addresses()
    alone = sizes == 0 if excluded is None else (sizes == 0) | excluded
    representative = np.empty(len(sizes), np.int64)
    group_equal(store.marks, sizes, alone, representative)
    members = np.flatnonzero(representative == np.arange(len(sizes)))
    statistics = {"distinct_sets": len(members), "rounds": 0, "candidates": 0, "verified": 0}
    members, prefix = _prune(addresses, sizes, members, rule, threads, statistics)
    statistics["sets_with_enough_shared_features"] = len(members)
    order = np.argsort(sizes[members], kind="stable")
    members, prefix = members[order], prefix.of(order)
    sets = Sets(addresses[members], sizes[members], *prefix)
    index = _index(sets, rule, statistics)
    ranks, overlap = _match(sets, index, rule, threads, statistics, progress)
    pair = np.sort(members[ranks], axis=1)
    sequence = np.lexsort((pair[:, 1], pair[:, 0]))
    return Joined(
        representative,
        sizes,
        pair[sequence, 0],
        pair[sequence, 1],
        overlap[sequence],
        statistics | {"pairs": len(pair)},
    )


def _prune(
    addresses: Words, sizes: Integers, members: Integers, rule: Rule, threads: int, statistics: dict[str, int]
) -> tuple[Integers, _Prefixes]:
    """Return the sets that can have a partner, and their prefixes."""
    while True:
        statistics["rounds"] += 1
        features = int(sizes[members].sum())
        bits = max(features.bit_length(), _FEWEST_BITS)
        shift = np.uint64(64 - bits)
        counts = _counts(addresses, sizes, members, shift, bits, threads)

        prefix = _prefixes(addresses, sizes, members, shift, counts, rule, threads)
        able = prefix.lengths >= 0
        remaining = members[able]
        if len(remaining) == 0 or len(remaining) > (1 - _WORTH_A_ROUND) * len(members):
            return remaining, prefix.of(able)
        members = remaining


def _prefixes(
    addresses: Words,
    sizes: Integers,
    members: Integers,
    shift: np.uint64,
    counts: npt.NDArray[np.uint8],
    rule: Rule,
    threads: int,
) -> _Prefixes:
    count = len(members)
    rooms = np.empty(count, np.int64)
    prefix_rooms(sizes[members], rule, rooms)
    begins = np.cumsum(rooms) - rooms
    found = _Prefixes(
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty((count, 8), np.uint64),
        np.empty(count, np.int64),
        np.empty(int(rooms.sum()), np.uint64),
    )

    def fill(begin: int) -> None:
        part = slice(begin, begin + _SETS_AT_A_TIME)
        results = *(array[part] for array in found[:-1]), found.keys, int(begins[begin])
        prefixes(addresses, sizes, members[part], shift, counts, rule, results)

    for _ in in_order(fill, range(0, count, _SETS_AT_A_TIME), threads):
        pass
    return found


def _counts(
    addresses: Words, sizes: Integers, members: Integers, shift: np.uint64, bits: int, threads: int
) -> npt.NDArray[np.uint8]:
    """Return in how many of the members' sets the features of each slot occur, at most 255."""

    def counts_of(part: Integers) -> npt.NDArray[np.uint8]:
        counts = np.zeros(1 << bits, np.uint8)
        count_features(addresses, sizes, part, shift, counts)
        return counts

    tables = list(in_order(counts_of, np.array_split(members, threads), threads))
    for other in tables[1:]:
        add_counts(tables[0], other)
    return tables[0]


def _index(sets: Sets, rule: Rule, statistics: dict[str, int]) -> Index:
    held = np.empty(len(sets.sizes), np.int64)
    index_lengths(sets, rule, held)
    entries = int(held.sum())
    bits = min(max(entries.bit_length() - 1, _FEWEST_BITS), _MOST_INDEX_BITS)
    heads = np.zeros((1 << bits) + 1, np.uint32)
    index = Index(heads, np.empty(entries, np.uint64), bits)
    fill_index(sets, held, bits, heads, index.entries)
    statistics["index_entries"] = entries
    statistics["longest_list"] = int(np.diff(heads).max(initial=0))
    return index


def _match(
    sets: Sets,
    index: Index,
    rule: Rule,
    threads: int,
    statistics: dict[str, int],
    progress: Callable[[int, int], None],
) -> tuple[Integers, Integers]:
    """Return int64[k, 2] ranks that match and int64[k] overlaps."""
    count = len(sets.sizes)
    largest = int(sets.sizes[-1]) if count else 0
    ranks_of_size = np.searchsorted(sets.sizes, np.arange(largest + 2)).astype(np.int64)
    width = 1 << max(2 * largest, 4).bit_length()
    local = threading.local()

    def match_from(begin: int) -> list[tuple[Integers, int, int]]:
        if not hasattr(local, "scratch"):
            scratch = np.zeros(count, np.int32), np.empty(count, np.int64), np.empty(width, np.uint64)
            local.scratch = scratch
        end = min(begin + _SETS_AT_A_TIME, count)
        results = []
        while begin < end:
            pairs = np.empty((_ROOM_FOR_PAIRS, 3), np.int64)
            begin, written, candidates, verified = match(
                begin, end, sets, index, rule, ranks_of_size, local.scratch, pairs
            )
            results.append((pairs[:written].copy(), candidates, verified))
        return results

    found = [np.zeros((0, 3), np.int64)]
    done = 0
    for results in in_order(match_from, range(0, count, _SETS_AT_A_TIME), threads):
        for pairs, candidates, verified in results:
            found.append(pairs)
            statistics["candidates"] += candidates
            statistics["verified"] += verified
        done = min(done + _SETS_AT_A_TIME, count)
        progress(done, count)
    pairs = np.concatenate(found)
    return pairs[:, :2], pairs[:, 2]
