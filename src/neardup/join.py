"""The exact join: every pair of documents whose measure reaches the threshold, none missed.

The steps, all of which keep every pair (design and sources in docs/architecture.md):

1. equal sets collapse to one representative; 2. a table counts in how many sets each feature occurs; what a
single set holds cannot be shared, and a set with too few
   shared features leaves, with its counts; this repeats while it pays;
3. each set's prefix in rare-first order is indexed, and probed by the sets that are as large or larger;
4. length, position and bitmap bounds rule candidates out; the rest are counted feature by feature.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from neardup._kernels.counting import add_counts, count_features, prefix_rooms, prefixes
from neardup._kernels.grouping import group_equal
from neardup._kernels.matching import Index, Sets, fill_index, index_lengths, match
from neardup.errors import NeardupError
from neardup.features import FeatureStore
from neardup.measures import Rule
from neardup.parallel import in_order
from neardup.spill import Memory

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
#: Another round of counting pays when at least this share of the sets has left.
_WORTH_A_ROUND = 0.2
#: Sets a work item, and room for pairs in one call of the kernel.
_SETS_AT_A_TIME = 4096
_ROOM_FOR_PAIRS = 1 << 16
_FEWEST_BITS, _MOST_INDEX_BITS = 10, 26
#: What the counts may take, however small the memory budget: fewer slots than features would tell little.
_LEAST_FOR_COUNTS = 1 << 24
_PARTS_BETWEEN_RELEASES = 8

Done = TypeVar("Done")


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
    alone = sizes == 0 if excluded is None else (sizes == 0) | excluded
    representative = np.empty(len(sizes), np.int64)
    group_equal(store.marks, sizes, alone, representative)
    members = np.flatnonzero(representative == np.arange(len(sizes)))
    run = _Run(store.addresses(), sizes, rule, threads, store.memory)
    run.statistics["distinct_sets"] = len(members)
    members, prefix = run.prune(members)
    order = np.argsort(sizes[members], kind="stable")
    members, prefix = members[order], prefix.of(order)
    sets = Sets(run.addresses[members], sizes[members], *prefix)
    ranks, overlap = run.match(sets, run.index(sets), progress)
    pair = np.sort(members[ranks], axis=1)
    sequence = np.lexsort((pair[:, 1], pair[:, 0]))
    run.statistics["pairs"] = len(pair)
    return Joined(
        representative, sizes, pair[sequence, 0], pair[sequence, 1], overlap[sequence], run.statistics
    )


class _Run:
    """The steps of one join, on what they all need."""

    def __init__(self, addresses: Words, sizes: Integers, rule: Rule, threads: int, memory: Memory) -> None:
        self.addresses, self.sizes, self.rule, self.threads = addresses, sizes, rule, threads
        self.memory = memory
        self.statistics = {"rounds": 0, "candidates": 0, "verified": 0}

    def _each(self, function: Callable[[int], Done], count: int) -> Iterator[Done]:
        """Yield function(begin) for the first of every few thousand sets, in order."""
        for number, done in enumerate(in_order(function, range(0, count, _SETS_AT_A_TIME), self.threads)):
            if number % _PARTS_BETWEEN_RELEASES == 0:
                self.memory.release()
            yield done

    def prune(self, members: Integers) -> tuple[Integers, _Prefixes]:
        """Return the sets that can have a partner, and their prefixes."""
        while True:
            self.statistics["rounds"] += 1
            shift, counts = self._counts(members)
            prefix = self._prefixes(members, shift, counts)
            able = prefix.lengths >= 0
            remaining = members[able]
            if len(remaining) == 0 or len(remaining) > (1 - _WORTH_A_ROUND) * len(members):
                self.statistics["sets_with_enough_shared_features"] = len(remaining)
                return remaining, prefix.of(able)
            self.memory.give_back(prefix.keys)
            members = remaining

    def _counts(self, members: Integers) -> tuple[np.uint64, npt.NDArray[np.uint8]]:
        """Return in how many of the members' sets the features of each slot occur, at most 255."""
        bits = max(int(self.sizes[members].sum()).bit_length(), _FEWEST_BITS)
        while bits > _FEWEST_BITS and (self.threads << bits) > max(self.memory.room / 2, _LEAST_FOR_COUNTS):
            bits -= 1
        shift = np.uint64(64 - bits)
        tables = [np.zeros(1 << bits, np.uint8) for _ in range(self.threads)]
        free = queue.SimpleQueue[npt.NDArray[np.uint8]]()
        for table in tables:
            free.put(table)

        def count(begin: int) -> None:
            table = free.get()
            part = members[begin : begin + _SETS_AT_A_TIME]
            count_features(self.addresses, self.sizes, part, shift, table)
            free.put(table)

        for _ in self._each(count, len(members)):
            pass
        for other in tables[1:]:
            add_counts(tables[0], other)
        return shift, tables[0]

    def _prefixes(self, members: Integers, shift: np.uint64, counts: npt.NDArray[np.uint8]) -> _Prefixes:
        count = len(members)
        rooms = np.empty(count, np.int64)
        prefix_rooms(self.sizes[members], self.rule, rooms)
        begins = np.cumsum(rooms) - rooms
        found = _Prefixes(
            np.empty(count, np.int64),
            np.empty(count, np.int64),
            np.empty((count, 8), np.uint64),
            np.empty(count, np.int64),
            self.memory.array(np.uint64, int(rooms.sum())),
        )

        def fill(begin: int) -> None:
            part = slice(begin, begin + _SETS_AT_A_TIME)
            results = *(array[part] for array in found[:-1]), found.keys, int(begins[begin])
            prefixes(self.addresses, self.sizes, members[part], shift, counts, self.rule, results)

        for _ in self._each(fill, count):
            pass
        return found

    def index(self, sets: Sets) -> Index:
        """Return the index of the sets' prefixes."""
        held = np.empty(len(sets.sizes), np.int64)
        index_lengths(sets, self.rule, held)
        entries = int(held.sum())
        if entries >= 1 << 32:
            raise NeardupError(
                f"the join needs {entries:,} index entries, and holds at most {(1 << 32) - 1:,}; "
                "raise the threshold or split the corpus"
            )
        bits = min(max(entries.bit_length() - 1, _FEWEST_BITS), _MOST_INDEX_BITS)
        heads = np.zeros((1 << bits) + 1, np.uint32)
        index = Index(heads, self.memory.array(np.uint64, entries), bits)
        fill_index(sets, held, bits, heads, index.entries)
        self.statistics["index_entries"] = entries
        self.statistics["longest_list"] = int(np.diff(heads).max(initial=0))
        return index

    def match(
        self, sets: Sets, index: Index, progress: Callable[[int, int], None]
    ) -> tuple[Integers, Integers]:
        """Return int64[k, 2] ranks that match and int64[k] overlaps."""
        count = len(sets.sizes)
        largest = int(sets.sizes[-1]) if count else 0
        ranks_of_size = np.searchsorted(sets.sizes, np.arange(largest + 2)).astype(np.int64)
        width = 1 << max(2 * largest, 4).bit_length()
        local = threading.local()

        def match_from(begin: int) -> list[tuple[Integers, int, int]]:
            if not hasattr(local, "scratch"):
                local.scratch = (
                    np.zeros(count, np.int32),
                    np.empty(count, np.int64),
                    np.empty(width, np.uint64),
                )
            end = min(begin + _SETS_AT_A_TIME, count)
            results = []
            while begin < end:
                pairs = np.empty((_ROOM_FOR_PAIRS, 3), np.int64)
                begin, written, candidates, verified = match(
                    begin, end, sets, index, self.rule, ranks_of_size, local.scratch, pairs
                )
                results.append((pairs[:written].copy(), candidates, verified))
            return results

        found = [np.zeros((0, 3), np.int64)]
        for number, results in enumerate(self._each(match_from, count), 1):
            for pairs, candidates, verified in results:
                found.append(pairs)
                self.statistics["candidates"] += candidates
                self.statistics["verified"] += verified
            progress(min(number * _SETS_AT_A_TIME, count), count)
        pairs = np.concatenate(found)
        return pairs[:, :2], pairs[:, 2]
