"""The exact join of feature sets: it drops sets that cannot have a partner, then joins by rare-first prefixes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from neardup.errors import NeardupError
from neardup.features.store import FeatureStore
from neardup.kernels import Bools, Bytes, Integers, Words
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
from neardup.search.matches import Matches, distinct_documents, sorted_pairs

#: Another round of counting pays if the last one dropped at least this share of the sets.
_MIN_DROPPED_SHARE = 0.2
#: Sets per piece of work.
SETS_AT_A_TIME = 4096
#: The minimum number of bits that choose a slot or a bucket.
MIN_BITS = 10
#: Bytes of the counts that are always allowed: with far fewer slots than features they would rule little out.
_MIN_COUNT_BYTES = 1 << 24
_PIECES_PER_EVICTION = 8

Result = TypeVar("Result")


class Prefixes(NamedTuple):
    """The prefixes of sets: that of set m is keys[starts[m]:starts[m] + lengths[m]]; length -1 means no partner.

    The arrays are those of ``kernels.counts.write_prefixes``, in the order of ``kernels.prefixes.RankedSets``.
    """

    shared: Integers
    lengths: Integers
    bitmaps: Words
    starts: Integers
    keys: Words

    def select(self, chosen: npt.NDArray[Any]) -> Prefixes:
        """Return the prefixes of the chosen sets."""
        return Prefixes(self.shared[chosen], self.lengths[chosen], self.bitmaps[chosen], self.starts[chosen], self.keys)


class JoinContext:
    """The sets, settings and statistics that all steps of a join share."""

    def __init__(
        self, addresses: Words, sizes: Integers, rule: Rule, threads: int, memory: Memory, reference_count: int = 0
    ) -> None:
        self.addresses, self.sizes, self.rule, self.threads = addresses, sizes, rule, threads
        self.memory, self.input_count = memory, len(sizes) - reference_count
        self.statistics = {"rounds": 0, "candidates": 0, "verified": 0}

    def map_sets(self, function: Callable[[int], Result], count: int) -> Iterator[Result]:
        """Yield ``function(begin)`` for each piece of ``SETS_AT_A_TIME`` sets, in order."""
        for number, result in enumerate(map_in_order(function, range(0, count, SETS_AT_A_TIME), self.threads)):
            if number % _PIECES_PER_EVICTION == 0:
                self.memory.evict()
            yield result


def prune_sets(context: JoinContext, members: Integers) -> tuple[Integers, Prefixes]:
    """Return the sets that can have a partner, and their prefixes."""
    while True:
        context.statistics["rounds"] += 1
        shift, counts = _counts(context, members)
        prefixes = find_prefixes(context, members, shift, counts)
        able = prefixes.lengths >= 0
        remaining = members[able]
        if len(remaining) == 0 or len(remaining) > (1 - _MIN_DROPPED_SHARE) * len(members):
            context.statistics["sets_with_enough_shared_features"] = len(remaining)
            return remaining, prefixes.select(able)
        context.memory.release_array(prefixes.keys)
        members = remaining


def _counts(context: JoinContext, members: Integers) -> tuple[np.uint64, Bytes]:
    """Return how many of the sets contain a feature of each slot, at most 255.

    Slots without a feature of the input count 0, for a reference set is only compared with sets of the input.
    """
    bits = max(int(context.sizes[members].sum()).bit_length(), MIN_BITS)
    while bits > MIN_BITS and (context.threads << bits) > max(context.memory.free_bytes / 2, _MIN_COUNT_BYTES):
        bits -= 1
    shift = np.uint64(64 - bits)
    input_count = int(np.searchsorted(members, context.input_count))
    counts = _slot_counts(context, members[:input_count], bits)
    if input_count < len(members):
        reference_counts = _slot_counts(context, members[input_count:], bits)
        reference_counts *= counts > 0
        add_counts(counts, reference_counts)
    return shift, counts


def _slot_counts(context: JoinContext, members: Integers, bits: int) -> Bytes:
    shift = np.uint64(64 - bits)
    tables = [np.zeros(1 << bits, np.uint8) for _ in range(context.threads)]
    free = queue.SimpleQueue[Bytes]()
    for table in tables:
        free.put(table)

    def count(begin: int) -> None:
        table = free.get()
        part = members[begin : begin + SETS_AT_A_TIME]
        count_features(context.addresses, context.sizes, part, shift, table)
        free.put(table)

    for _ in context.map_sets(count, len(members)):
        pass
    for table in tables[1:]:
        add_counts(tables[0], table)
    return tables[0]


def find_prefixes(context: JoinContext, members: Integers, shift: np.uint64, counts: Bytes) -> Prefixes:
    """Return the rare-first prefixes of member sets (int64[m]), without features that only one set contains.

    counts: uint8[2**(64 - shift)], how many sets contain a feature of each slot (``kernels.counts.count_features``).
    """
    count = len(members)
    capacities = np.empty(count, np.int64)
    prefix_capacities(context.sizes[members], context.rule, capacities)
    begins = np.cumsum(capacities) - capacities
    prefixes = Prefixes(
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty((count, 8), np.uint64),
        np.empty(count, np.int64),
        context.memory.array(np.uint64, int(capacities.sum())),
    )

    def write(begin: int) -> None:
        part = slice(begin, begin + SETS_AT_A_TIME)
        results = *(array[part] for array in prefixes[:-1]), prefixes.keys, int(begins[begin])
        write_prefixes(context.addresses, context.sizes, members[part], shift, counts, context.rule, results)

    for _ in context.map_sets(write, count):
        pass
    return prefixes


_MAX_INDEX_BITS = 26
#: With more meetings of prefixes per feature than this, counting is faster: a meeting costs 167 ns, a feature 240 ns.
_MEETINGS_PER_FEATURE = 2
#: Fewer meetings take less time than loading the counting kernels.
MIN_MEETINGS = 1 << 25
#: Bytes of memory per feature that counting takes.
_BYTES_PER_FEATURE = 24
#: Places in the index are unsigned numbers of 32 bits, in its chained form signed ones.
_MAX_ENTRIES, _MAX_CHAINED_ENTRIES = (1 << 32) - 1, (1 << 31) - 1
#: With this many sets of the input or more, counting would confuse them: entries have few bits for a document's number.
#: It is ``kernels.window.HALF_RANGE``, whose module takes long to import.
_MAX_COUNTED_SETS = 1 << 25
#: Lists whose lengths are summed at a time.
_LISTS_AT_A_TIME = 1 << 20
#: The minimum capacity for pairs of one kernel call.
_CAPACITY = 1 << 16


class Found(NamedTuple):
    """Pairs of some sets (int64[k, 3], ranks and overlaps), and how many were candidates, verified and looked up."""

    pairs: Integers
    candidates: int
    verified: int
    looked_up: int


class JoinRequest(NamedTuple):
    """The parameters of a join that do not depend on where the features are.

    representative: int64[n], the first document with the same set, -1 for one that can match nothing. keep_order:
    int64[n], by default input order. If more than max_pairs pairs of distinct sets match, only those of dropped
    documents with kept ones are found, which decide what is kept, and ``complete`` is False; with all_or_none, none
    are found. progress is called with (sets done, total sets).
    """

    representative: Integers
    keep_order: Integers | None = None
    max_pairs: int | None = None
    all_or_none: bool = False
    progress: Callable[[int, int], None] = lambda done, total: None


def self_join(
    store: FeatureStore, rule: Rule, request: JoinRequest, *, threads: int = 1, reference_count: int = 0
) -> Matches:
    """Find all pairs of a store's documents that reach the rule's threshold.

    The last ``reference_count`` documents are of a reference; pairs among them are not searched.
    """
    context = JoinContext(store.addresses(), store.sizes, rule, threads, store.memory, reference_count)
    members = distinct_documents(request.representative)
    context.statistics["distinct_sets"] = len(members)
    return join_stored_sets(context, members, request)


def join_stored_sets(context: JoinContext, members: Integers, request: JoinRequest) -> Matches:
    """Return the pairs of member sets, whose features are at the addresses of the context."""
    representative, keep_order, max_pairs, all_or_none, progress = request
    sizes = context.sizes
    members, prefixes = prune_sets(context, members)
    run = PrefixJoin(context)
    order = np.argsort(sizes[members], kind="stable")
    found = run.match(run.sets(members, prefixes, order), members[order] < context.input_count, max_pairs, progress)
    complete = found is not None
    if found is None and all_or_none:
        found = np.empty((0, 2), np.int64), np.empty(0, np.int64)
    if found is None:
        order, reference_sets = _in_keep_order(members, representative, keep_order, context.input_count)
        is_repeated = np.bincount(representative[representative >= 0], minlength=len(sizes))[members[order]] > 1
        found = run.match_with_kept(run.sets(members, prefixes, order), is_repeated, reference_sets, progress)
    context.memory.release_array(prefixes.keys)
    ranks, overlap = found
    documents = members[order][ranks]
    counts = np.column_stack([overlap, sizes[documents]])
    left, right, counts = sorted_pairs(documents[:, 0], documents[:, 1], counts)
    context.statistics["pairs"] = len(left)
    return Matches(representative, left, right, counts, complete=complete, statistics=context.statistics)


def _in_keep_order(
    members: Integers, representative: Integers, keep_order: Integers | None, input_count: int
) -> tuple[Integers, tuple[int, int]]:
    """Return sets in the keep order of their first documents, those of a reference first.

    Also return the number of reference sets that occur in the input, too (they come first), and of all reference sets.
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

    def __init__(self, context: JoinContext) -> None:
        self.context = context

    def sets(self, members: Integers, prefixes: Prefixes, order: Integers) -> RankedSets:
        """Return the sets in an order, as the kernels take them."""
        check_entries(len(order), _MAX_CHAINED_ENTRIES)
        chosen = members[order]
        return RankedSets(self.context.addresses[chosen], self.context.sizes[chosen], *prefixes.select(order))

    def _sides(self, sets: RankedSets, of_input: Bools) -> list[tuple[Integers, RankedSets]]:
        """Return the sides of a search, so that all pairs meet once but those of a reference.

        All sets are looked up among those of the input (``of_input``, bool[r]), and these among those of the reference.
        A side has the lengths of the prefixes that are indexed, and the sets to look up in that index.
        """
        lengths = np.empty(len(sets.sizes), np.int64)
        index_lengths(sets, self.context.rule, lengths)
        if of_input.all():
            return [(lengths, sets)]
        queries = sets._replace(lengths=np.where(of_input, sets.lengths, 0))
        return [(np.where(of_input, lengths, 0), sets), (np.where(of_input, 0, lengths), queries)]

    def _counted_lists(self, sets: RankedSets, lengths: Integers) -> PrefixIndex:
        """Return an index for the first keys of the sets, ``lengths`` of each; heads[b + 1] is the length of list b."""
        entries, statistics = check_entries(int(lengths.sum())), self.context.statistics
        bits = index_bits(entries)
        index = PrefixIndex(np.zeros((1 << bits) + 1, np.uint32), np.empty(0, np.uint64), bits, 0)
        self._fill_lists(count_entries, sets, lengths, index)
        statistics["index_entries"] = statistics.get("index_entries", 0) + entries
        statistics["longest_list"] = max(statistics.get("longest_list", 0), int(index.heads.max()))
        return index

    def _filled_lists(self, sets: RankedSets, lengths: Integers, index: PrefixIndex) -> PrefixIndex:
        """Return an index with its entries, given the lengths of its lists; sets are in order of size."""
        index = index._replace(entries=self.context.memory.array(np.uint64, begin_lists(index.heads)))
        self._fill_lists(insert_entries, sets, lengths, index)
        finish_lists(index)
        return index

    def _fill_lists(self, fill: Callable[..., None], sets: RankedSets, lengths: Integers, index: PrefixIndex) -> None:
        """Count or insert the keys: each thread reads all of them, for its share of the lists."""
        bounds = np.linspace(0, len(index.heads) - 1, self.context.threads + 1).astype(np.int64).tolist()
        shares = [index._replace(heads=index.heads[b : e + 1], first=index.first + b) for b, e in pairwise(bounds)]
        for _ in map_in_order(partial(fill, np.arange(len(lengths)), sets, lengths), shares, self.context.threads):
            pass

    def match(
        self,
        sets: RankedSets,
        of_input: Bools,
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
            self.context.statistics["candidates"] += candidates
            self.context.statistics["verified"] += verified
            if max_pairs is not None and total > max_pairs:
                return None
            progress(done % len(sets.sizes) or len(sets.sizes), len(sets.sizes))
        rows = np.concatenate(found)
        return rows[:, :2], rows[:, 2]

    def _matches(self, sets: RankedSets, of_input: Bools, max_pairs: int | None) -> Iterator[Found]:
        """Yield the pairs of all sides, found by one engine, which is chosen before any pair is found."""
        sides = self._sides(sets, of_input)
        indexes = [self._counted_lists(sets, lengths) for lengths, _ in sides]
        if self._is_dense(sets, indexes, int(of_input.sum())):
            from neardup.search.scan_count import ScanCount

            del indexes
            counted = ScanCount(sets.addresses, sets.sizes, self.context.rule, self.context.threads)
            for pairs, compared, looked_up in counted.pairs(of_input):
                yield Found(pairs, compared, compared, looked_up)
            return
        for lengths, queries in sides:
            index = self._filled_lists(sets, lengths, indexes.pop(0))
            yield from self._matches_by_prefix(queries, index, max_pairs)
            self.context.memory.release_array(index.entries)

    def _matches_by_prefix(self, queries: RankedSets, index: PrefixIndex, max_pairs: int | None) -> Iterator[Found]:
        """Yield the pairs of sets with indexed ones."""
        count = len(queries.sizes)
        ranks_of_size = np.searchsorted(queries.sizes, np.arange(queries.sizes.max(initial=0) + 2)).astype(np.int64)
        local = threading.local()

        def match_from(begin: int) -> Found:
            if not hasattr(local, "scratch"):
                local.scratch = _match_scratch(queries)
            first, end = begin, min(begin + SETS_AT_A_TIME, count)
            found, candidates, verified = [np.zeros((0, 3), np.int64)], 0, 0
            while begin < end and (max_pairs is None or sum(map(len, found)) <= max_pairs):
                begin, written, met, compared = match_ranks(
                    begin, end, queries, index, self.context.rule, ranks_of_size, local.scratch
                )
                found.append(local.scratch[3][:written].copy())
                candidates, verified = candidates + met, verified + compared
            return Found(np.concatenate(found), candidates, verified, end - first)

        yield from self.context.map_sets(match_from, count)

    def _is_dense(self, sets: RankedSets, indexes: list[PrefixIndex], input_count: int) -> bool:
        """Return whether prefixes meet so often that counting overlaps costs less than comparing candidates.

        indexes: all that prefixes would be looked up in; input_count: the sets that counting would insert.
        """
        features, meetings = int(sets.sizes.sum()), 0
        for heads in (index.heads for index in indexes):
            for begin in range(0, len(heads), _LISTS_AT_A_TIME):
                lengths = heads[begin : begin + _LISTS_AT_A_TIME].astype(np.int64)
                meetings += int((lengths * (lengths - 1)).sum()) // 2
        self.context.statistics["meetings"] = meetings
        return (
            meetings > max(_MEETINGS_PER_FEATURE * features, MIN_MEETINGS)
            and self.context.memory.free_bytes > _BYTES_PER_FEATURE * features
            and input_count < _MAX_COUNTED_SETS
        )

    def match_with_kept(
        self,
        sets: RankedSets,
        is_repeated: Bools,
        reference_sets: tuple[int, int],
        progress: Callable[[int, int], None],
    ) -> tuple[Integers, Integers]:
        """Return ranks and overlaps, as ``match`` does, of pairs of a set and a kept set before it in keep order.

        A set of several documents (``is_repeated``) is also matched with sets kept after its first document: they may
        come before its later ones. The sets of a reference, counted as in ``_in_keep_order``, are always kept.
        """
        entries = int(sets.lengths.sum())
        check_entries(entries, _MAX_CHAINED_ENTRIES)
        bits = index_bits(entries)
        heads = np.full(1 << bits, -1, np.int32)
        chains = (
            heads,
            self.context.memory.array(np.int32, entries),
            self.context.memory.array(np.uint64, entries),
            bits,
        )
        scratch = _match_scratch(sets)
        found = [np.zeros((0, 3), np.int64)]
        used = 0

        def match_sets(ranks: Integers, is_decided: bool) -> None:
            nonlocal used
            while len(ranks):
                part = ranks[:SETS_AT_A_TIME]
                done, used, written = match_with_kept(part, is_decided, sets, chains, used, self.context.rule, scratch)
                found.append(scratch[3][:written].copy())
                ranks = ranks[done:]
                progress(count - len(ranks), count)

        count = len(sets.sizes)
        shared, kept = reference_sets
        used = insert_kept(np.arange(kept), sets, chains, used)
        match_sets(np.arange(shared), is_decided=True)
        match_sets(np.arange(kept, count), is_decided=False)
        dropped = np.unique(np.concatenate([part[:, 1] for part in found]))
        dropped = dropped[dropped >= kept]
        match_sets(dropped[is_repeated[dropped]], is_decided=True)
        pairs = np.concatenate(found)
        return pairs[:, :2], pairs[:, 2]


def index_bits(entries: int, max_bits: int = _MAX_INDEX_BITS) -> int:
    """Return the number of bits that choose a list in an index with this number of entries."""
    return min(max(entries.bit_length() - 1, MIN_BITS), max_bits)


def check_entries(entries: int, limit: int | None = None) -> int:
    """Return the number of entries of an index; raise ``NeardupError`` if they are more than it can hold."""
    limit = _MAX_ENTRIES if limit is None else limit
    if entries > limit:
        raise NeardupError(
            f"the join needs {entries:,} index entries, and holds at most {limit:,}; raise the threshold or split the "
            "corpus"
        )
    return entries


def _match_scratch(sets: RankedSets) -> tuple[npt.NDArray[np.int32], Integers, Words, Integers]:
    """Return the buffers of the matching kernels, with room for all partners of a set."""
    count = len(sets.sizes)
    width = table_size(int(sets.sizes.max(initial=0)))
    pairs = np.empty((max(count, _CAPACITY), 3), np.int64)
    return np.zeros(count, np.int32), np.empty(count, np.int64), np.empty(width, np.uint64), pairs
