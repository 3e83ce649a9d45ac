"""The exact join of feature sets: it drops sets that cannot have a partner, then joins by rare-first prefixes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from neardup.errors import NeardupError
from neardup.features.store import FeatureStore
from neardup.kernels.counts import add_counts, count_features, prefix_capacities, write_prefixes
from neardup.kernels.prefixes import (
    PrefixIndex,
    RankedSets,
    begin_lists,
    count_entries,
    finish_lists,
    index_lengths,
    insert_entries,
    insert_kept,
    match_ranks,
    match_with_kept,
)
from neardup.kernels.tables import table_size
from neardup.recipe.measures import Rule
from neardup.runtime import Memory, map_in_order
from neardup.search.matches import Matches, distinct_documents, set_representatives, sorted_pairs

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
#: Another round of counting pays if the last one dropped at least this share of the sets.
_WORTH_A_ROUND = 0.2
#: Sets in a piece of work.
SETS_AT_A_TIME = 4096
#: The least number of bits that choose a slot or a bucket.
FEWEST_BITS = 10
#: Bytes of the counts that are always allowed: with far fewer slots than features they would rule little out.
_LEAST_FOR_COUNTS = 1 << 24
_PARTS_BETWEEN_RELEASES = 8

Result = TypeVar("Result")


class Prefixes(NamedTuple):
    """The prefixes of sets: that of set m is keys[starts[m]:starts[m] + lengths[m]]; length -1 means no partner."""

    shared: Integers
    lengths: Integers
    bitmaps: Words
    starts: Integers
    keys: Words

    def of(self, chosen: npt.NDArray[Any]) -> Prefixes:
        """Return the prefixes of the chosen sets."""
        return Prefixes(self.shared[chosen], self.lengths[chosen], self.bitmaps[chosen], self.starts[chosen], self.keys)


class JoinContext:
    """The sets, settings and statistics that all steps of a join share."""

    def __init__(
        self, addresses: Words, sizes: Integers, rule: Rule, threads: int, memory: Memory, reference: int = 0
    ) -> None:
        self.addresses, self.sizes, self.rule, self.threads = addresses, sizes, rule, threads
        self.memory, self.input_count = memory, len(sizes) - reference
        self.statistics = {"rounds": 0, "candidates": 0, "verified": 0}

    def map_sets(self, function: Callable[[int], Result], count: int) -> Iterator[Result]:
        """Yield ``function(begin)`` for each piece of ``SETS_AT_A_TIME`` sets, in order."""
        for number, result in enumerate(map_in_order(function, range(0, count, SETS_AT_A_TIME), self.threads)):
            if number % _PARTS_BETWEEN_RELEASES == 0:
                self.memory.evict()
            yield result


def prune_sets(steps: JoinContext, members: Integers) -> tuple[Integers, Prefixes]:
    """Return the sets that can have a partner, and their prefixes."""
    while True:
        steps.statistics["rounds"] += 1
        shift, counts = _counts(steps, members)
        prefix = _prefixes(steps, members, shift, counts)
        able = prefix.lengths >= 0
        remaining = members[able]
        if len(remaining) == 0 or len(remaining) > (1 - _WORTH_A_ROUND) * len(members):
            steps.statistics["sets_with_enough_shared_features"] = len(remaining)
            return remaining, prefix.of(able)
        steps.memory.release_array(prefix.keys)
        members = remaining


def _counts(steps: JoinContext, members: Integers) -> tuple[np.uint64, npt.NDArray[np.uint8]]:
    """Return how many of the sets contain a feature of each slot, at most 255.

    Slots without a feature of the input count 0, for a reference set is only compared with sets of the input.
    """
    bits = max(int(steps.sizes[members].sum()).bit_length(), FEWEST_BITS)
    while bits > FEWEST_BITS and (steps.threads << bits) > max(steps.memory.free_bytes / 2, _LEAST_FOR_COUNTS):
        bits -= 1
    shift = np.uint64(64 - bits)
    input_count = int(np.searchsorted(members, steps.input_count))
    counts = _slot_counts(steps, members[:input_count], bits)
    if input_count < len(members):
        reference_counts = _slot_counts(steps, members[input_count:], bits)
        reference_counts *= counts > 0
        add_counts(counts, reference_counts)
    return shift, counts


def _slot_counts(steps: JoinContext, members: Integers, bits: int) -> npt.NDArray[np.uint8]:
    shift = np.uint64(64 - bits)
    tables = [np.zeros(1 << bits, np.uint8) for _ in range(steps.threads)]
    free = queue.SimpleQueue[npt.NDArray[np.uint8]]()
    for table in tables:
        free.put(table)

    def count(begin: int) -> None:
        table = free.get()
        part = members[begin : begin + SETS_AT_A_TIME]
        count_features(steps.addresses, steps.sizes, part, shift, table)
        free.put(table)

    for _ in steps.map_sets(count, len(members)):
        pass
    for table in tables[1:]:
        add_counts(tables[0], table)
    return tables[0]


def _prefixes(steps: JoinContext, members: Integers, shift: np.uint64, counts: npt.NDArray[np.uint8]) -> Prefixes:
    count = len(members)
    rooms = np.empty(count, np.int64)
    prefix_capacities(steps.sizes[members], steps.rule, rooms)
    begins = np.cumsum(rooms) - rooms
    found = Prefixes(
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty((count, 8), np.uint64),
        np.empty(count, np.int64),
        steps.memory.array(np.uint64, int(rooms.sum())),
    )

    def fill(begin: int) -> None:
        part = slice(begin, begin + SETS_AT_A_TIME)
        results = *(array[part] for array in found[:-1]), found.keys, int(begins[begin])
        write_prefixes(steps.addresses, steps.sizes, members[part], shift, counts, steps.rule, results)

    for _ in steps.map_sets(fill, count):
        pass
    return found


_MOST_INDEX_BITS = 26
#: With more meetings of prefixes per feature than this, counting is faster: a meeting costs 167 ns, a feature 240 ns.
_MEETINGS_A_FEATURE = 2
#: Fewer meetings take less time than loading the counting kernels.
FEWEST_MEETINGS = 1 << 25
#: Bytes that counting takes for each feature.
_INDEXED_FEATURE = 24
#: Places in the index are numbers of 32 bits, those in its chained form with a sign.
_MOST_ENTRIES, _MOST_CHAINED = (1 << 32) - 1, (1 << 31) - 1
#: Room for pairs in one call of the kernel, at least.
_ROOM_FOR_PAIRS = 1 << 16


def self_join(
    store: FeatureStore,
    rule: Rule,
    *,
    threads: int = 1,
    excluded: npt.NDArray[np.bool_] | None = None,
    keep_order: Integers | None = None,
    max_pairs: int | None = None,
    all_or_none: bool = False,
    reference: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Matches:
    """Find all pairs of a store's documents that reach the rule's threshold.

    Parameters
    ----------
    store : FeatureStore
        The feature sets.
    rule : Rule
        The measure with its threshold (``measures.rule``).
    threads : int
        Number of threads; changes the time, never the result.
    excluded : bool[n], optional
        Documents that must match nothing.
    keep_order : int64[n], optional
        The documents in keep order, by default input order; it only matters if there are too many pairs.
    max_pairs : int, optional
        If more pairs of distinct sets match, only those of dropped documents with kept ones are found, which decide
        what is kept, and ``complete`` is False. None finds all, whatever they cost.
    all_or_none : bool
        If more match, return no pairs at all.
    reference : int
        How many of the documents, the last ones, are of a reference; pairs among them are not searched.
    progress : callable
        Called with (sets done, sets in all) from time to time.
    """
    representative = set_representatives(store, excluded)
    steps = JoinContext(store.addresses(), store.sizes, rule, threads, store.memory, reference)
    request = JoinRequest(representative, keep_order, max_pairs, all_or_none, progress)
    members = distinct_documents(representative)
    steps.statistics["distinct_sets"] = len(members)
    return join_stored_sets(steps, members, request)


class JoinRequest(NamedTuple):
    """Parameters of a join; see ``self_join``.

    Attributes
    ----------
    representative : int64[n]
        The first document with the same set; -1 for one that can match nothing.
    """

    representative: Integers
    keep_order: Integers | None
    max_pairs: int | None
    all_or_none: bool
    progress: Callable[[int, int], None]


def join_stored_sets(steps: JoinContext, members: Integers, request: JoinRequest) -> Matches:
    """Return the pairs of member sets, whose features are at the addresses of the steps."""
    representative, keep_order, max_pairs, all_or_none, progress = request
    sizes = steps.sizes
    members, prefix = prune_sets(steps, members)
    run = PrefixJoin(steps)
    order = np.argsort(sizes[members], kind="stable")
    found = run.match(run.sets(members, prefix, order), members[order] < steps.input_count, max_pairs, progress)
    complete = found is not None
    if found is None and all_or_none:
        found = np.empty((0, 2), np.int64), np.empty(0, np.int64)
    if found is None:
        order, reference_sets = _in_keep_order(members, representative, keep_order, steps.input_count)
        several = np.bincount(representative[representative >= 0], minlength=len(sizes))[members[order]] > 1
        found = run.match_with_kept(run.sets(members, prefix, order), several, reference_sets, progress)
    steps.memory.release_array(prefix.keys)
    ranks, overlap = found
    documents = members[order][ranks]
    counts = np.column_stack([overlap, sizes[documents]])
    left, right, counts = sorted_pairs(documents[:, 0], documents[:, 1], counts)
    steps.statistics["pairs"] = len(left)
    return Matches(representative, left, right, counts, complete=complete, statistics=steps.statistics)


def _in_keep_order(
    members: Integers, representative: Integers, keep_order: Integers | None, input_count: int
) -> tuple[Integers, tuple[int, int]]:
    """Return sets in the keep order of their first documents, those of a reference first.

    Also return how many of the reference's sets occur in the input, too (they come first), and how many it has in all.
    """
    if keep_order is None:
        keep_order = np.roll(np.arange(len(representative)), len(representative) - input_count)
    place = np.full(len(representative), len(representative), np.int64)
    able = np.flatnonzero(representative[keep_order] >= 0)
    nodes, first = np.unique(representative[keep_order][able], return_index=True)
    place[nodes] = able[first]
    in_reference = place[members] < len(representative) - input_count
    in_both = in_reference & (members < input_count)
    order = np.lexsort((place[members], np.where(in_both, 0, np.where(in_reference, 1, 2))))
    return order, (int(in_both.sum()), int(in_reference.sum()))


class PrefixJoin:
    """The second half of a join: ranked sets are matched by their prefixes."""

    def __init__(self, steps: JoinContext) -> None:
        self.steps = steps

    def sets(self, members: Integers, prefix: Prefixes, order: Integers) -> RankedSets:
        """Return the sets in an order, as the kernels take them."""
        check_entries(len(order), _MOST_CHAINED)
        chosen = members[order]
        return RankedSets(self.steps.addresses[chosen], self.steps.sizes[chosen], *prefix.of(order))

    def sides(
        self, sets: RankedSets, of_input: npt.NDArray[np.bool_]
    ) -> Generator[tuple[PrefixIndex, RankedSets], None, None]:
        """Yield prefix indexes, each with the sets to look up in it, so that all pairs meet but those of a reference.

        All sets are looked up among those of the input (``of_input``, bool[r]), and these among those of the reference.
        """
        sides = [(of_input, sets)]
        if not of_input.all():
            sides.append((~of_input, sets._replace(lengths=np.where(of_input, sets.lengths, 0))))
        for chosen, queries in sides:
            index = self._index(sets, chosen)
            try:
                yield index, queries
            finally:
                self.steps.memory.release_array(index.entries)

    def _index(self, sets: RankedSets, chosen: npt.NDArray[np.bool_]) -> PrefixIndex:
        """Return the index of the prefixes of the chosen sets, which are in order of size."""
        lengths = np.empty(len(sets.sizes), np.int64)
        index_lengths(sets, self.steps.rule, lengths)
        lengths[~chosen] = 0
        entries, statistics = check_entries(int(lengths.sum())), self.steps.statistics
        bits = bits_of_index(entries)
        index = PrefixIndex(np.zeros((1 << bits) + 1, np.uint32), np.empty(0, np.uint64), bits, 0)
        self._fill_lists(count_entries, sets, lengths, index)
        index = index._replace(entries=self.steps.memory.array(np.uint64, begin_lists(index.heads)))
        self._fill_lists(insert_entries, sets, lengths, index)
        longest, meetings = finish_lists(index)
        statistics["index_entries"] = statistics.get("index_entries", 0) + entries
        statistics["longest_list"] = max(statistics.get("longest_list", 0), longest)
        statistics["meetings"] = statistics.get("meetings", 0) + meetings
        return index

    def _fill_lists(self, fill: Callable[..., None], sets: RankedSets, lengths: Integers, index: PrefixIndex) -> None:
        """Count or insert the keys: each thread reads all of them, for its share of the lists."""
        bounds = np.linspace(0, len(index.heads) - 1, self.steps.threads + 1).astype(np.int64).tolist()
        shares = [index._replace(heads=index.heads[b : e + 1], first=index.first + b) for b, e in pairwise(bounds)]
        for _ in map_in_order(partial(fill, np.arange(len(lengths)), sets, lengths), shares, self.steps.threads):
            pass

    def match(
        self,
        sets: RankedSets,
        of_input: npt.NDArray[np.bool_],
        max_pairs: int | None,
        progress: Callable[[int, int], None],
    ) -> tuple[Integers, Integers] | None:
        """Return the ranks of matching pairs, int64[k, 2], and their overlaps, int64[k]; None if they are too many.

        Two sets are not compared if neither is of the input (``of_input``, bool[r]).
        """
        found, total, done = [np.zeros((0, 3), np.int64)], 0, 0
        for pairs, candidates, verified, count in self._matches(sets, of_input, max_pairs):
            found.append(pairs)
            total, done = total + len(pairs), done + count
            self.steps.statistics["candidates"] += candidates
            self.steps.statistics["verified"] += verified
            if max_pairs is not None and total > max_pairs:
                return None
            progress(done % len(sets.sizes) or len(sets.sizes), len(sets.sizes))
        rows = np.concatenate(found)
        return rows[:, :2], rows[:, 2]

    def _matches(
        self, sets: RankedSets, of_input: npt.NDArray[np.bool_], max_pairs: int | None
    ) -> Iterator[tuple[Integers, int, int, int]]:
        """Yield pairs, with the numbers of candidates, of verified ones, and of sets that were looked up."""
        count = len(sets.sizes)
        ranks_of_size = np.searchsorted(sets.sizes, np.arange(sets.sizes.max(initial=0) + 2)).astype(np.int64)
        local = threading.local()

        def match_from(begin: int, index: PrefixIndex, queries: RankedSets) -> tuple[Integers, int, int, int]:
            if not hasattr(local, "scratch"):
                local.scratch = _match_scratch(sets)
            first, end = begin, min(begin + SETS_AT_A_TIME, count)
            found, candidates, verified = [np.zeros((0, 3), np.int64)], 0, 0
            while begin < end and (max_pairs is None or sum(map(len, found)) <= max_pairs):
                begin, written, more, done = match_ranks(
                    begin, end, queries, index, self.steps.rule, ranks_of_size, local.scratch
                )
                found.append(local.scratch[3][:written].copy())
                candidates, verified = candidates + more, verified + done
            return np.concatenate(found), candidates, verified, end - first

        sides = self.sides(sets, of_input)
        for index, queries in sides:
            if self._is_dense(sets):
                from neardup.search.scan_count import ScanCount

                sides.close()
                del index
                counted = ScanCount(sets.addresses, sets.sizes, self.steps.rule, self.steps.threads)
                for pairs, compared, looked_up in counted.pairs(of_input):
                    yield pairs, compared, compared, looked_up
                return
            yield from self.steps.map_sets(partial(match_from, index=index, queries=queries), count)

    def _is_dense(self, sets: RankedSets) -> bool:
        """Return whether prefixes meet so often that counting overlaps costs less than comparing candidates."""
        features = int(sets.sizes.sum())
        return (
            self.steps.statistics["meetings"] > max(_MEETINGS_A_FEATURE * features, FEWEST_MEETINGS)
            and self.steps.memory.free_bytes > _INDEXED_FEATURE * features
        )

    def match_with_kept(
        self,
        sets: RankedSets,
        several: npt.NDArray[np.bool_],
        reference_sets: tuple[int, int],
        progress: Callable[[int, int], None],
    ) -> tuple[Integers, Integers]:
        """Return ranks and overlaps, as ``match`` does, of pairs of a set and a kept set before it in keep order.

        A set of several documents (``several``) is also matched with sets kept after its first document, for they may
        come before its later ones. The sets of a reference, counted as in ``_in_keep_order``, are always kept.
        """
        room = int(sets.lengths.sum())
        check_entries(room, _MOST_CHAINED)
        bits = bits_of_index(room)
        heads = np.full(1 << bits, -1, np.int32)
        chains = (
            heads,
            self.steps.memory.array(np.int32, room),
            self.steps.memory.array(np.uint64, room),
            bits,
        )
        scratch = _match_scratch(sets)
        found = [np.zeros((0, 3), np.int64)]
        used = 0

        def match_sets(ranks: Integers, settled: bool) -> None:
            nonlocal used
            while len(ranks):
                part = ranks[:SETS_AT_A_TIME]
                done, used, written = match_with_kept(part, settled, sets, chains, used, self.steps.rule, scratch)
                found.append(scratch[3][:written].copy())
                ranks = ranks[done:]
                progress(count - len(ranks), count)

        count = len(sets.sizes)
        in_both, kept = reference_sets
        used = insert_kept(np.arange(kept), sets, chains, used)
        match_sets(np.arange(in_both), settled=True)
        match_sets(np.arange(kept, count), settled=False)
        dropped = np.unique(np.concatenate([part[:, 1] for part in found]))
        dropped = dropped[dropped >= kept]
        match_sets(dropped[several[dropped]], settled=True)
        pairs = np.concatenate(found)
        return pairs[:, :2], pairs[:, 2]


def bits_of_index(entries: int, most: int = _MOST_INDEX_BITS) -> int:
    """Return the number of bits that choose a list in an index of so many entries."""
    return min(max(entries.bit_length() - 1, FEWEST_BITS), most)


def check_entries(entries: int, most: int | None = None) -> int:
    """Return the number of entries; raise if an index cannot hold that many."""
    most = _MOST_ENTRIES if most is None else most
    if entries > most:
        raise NeardupError(
            f"the join needs {entries:,} index entries, and holds at most {most:,}; raise the threshold or split the "
            "corpus"
        )
    return entries


def _match_scratch(sets: RankedSets) -> tuple[npt.NDArray[np.int32], Integers, Words, Integers]:
    """Return the buffers of the matching kernels, with room for all partners of a set."""
    count = len(sets.sizes)
    width = table_size(int(sets.sizes.max(initial=0)))
    pairs = np.empty((max(count, _ROOM_FOR_PAIRS), 3), np.int64)
    return np.zeros(count, np.int32), np.empty(count, np.int64), np.empty(width, np.uint64), pairs
