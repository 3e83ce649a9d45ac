"""The exact join in bounded memory: features are recomputed for the sets that may have a partner, and verified.

The counts of pass one rule out most sets. If the features of the others fit into memory, one pass recomputes them, and
the join is that of ``neardup.search.join``. Otherwise their slots, which pass one wrote, give their prefixes, by part
of the key space, and bitmaps: two sets share at most as many features as slots. Each part is read once and gives
candidates. Another pass recomputes only their features. Candidates are verified in groups that fit into memory, each
from a file that is read once.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.features.recomputed import (
    BoundedStore,
    PartFile,
    RecomputedFeatures,
    append_array,
    close_scratch_file,
    open_scratch_file,
    read_array,
)
from neardup.features.store import Block, GrowingArray, set_addresses
from neardup.kernels import Bools, Bytes, Integers, Words
from neardup.kernels.counts import copy_chosen_sets, prefix_capacities, write_counted_prefixes
from neardup.kernels.key_parts import (
    flag_pairs_by_parities,
    index_keys,
    keys_by_part,
    list_candidates,
    parity_lengths,
    probe_bounds,
    write_parities,
)
from neardup.kernels.prefixes import PrefixIndex, RankedSets, index_lengths, overlaps_of_pairs
from neardup.recipe.measures import Rule
from neardup.runtime import file_limit, map_in_order, resident_memory
from neardup.search.join import JoinContext, JoinRequest, check_entries, index_bits, join_stored_sets
from neardup.search.matches import Matches, distinct_documents, partition_pairs, sorted_pairs

Narrow = npt.NDArray[np.int32]

#: The share of the available memory that the features of one step may take.
_FEATURE_SHARE = 0.4
#: Bytes of memory per set besides its bitmap, per set and thread, and per word of the bitmap.
_SET_BYTES, _SET_BYTES_PER_THREAD, _WORD_BYTES = 40, 10, 8
#: The possible numbers of words of a bitmap: fewer if memory is short.
_BITMAP_WORDS = (8, 4, 2, 1)
#: However little memory there is, this many bytes of features are stored at once, and this share of what the budget
#: has beyond the program.
_MIN_STORED, _MIN_SHARE = 1 << 24, 0.25
#: With more candidates per set than this, the features are stored in a file instead.
_MAX_CANDIDATES = 64
#: Bytes of a candidate while parts are merged, and while parities are compared.
_CANDIDATE_BYTES, _PARITY_PAIR_BYTES = 24, 64
_PAIRS_AT_A_TIME = 1 << 16
#: Makes one number of a pair of ranks.
_PACKED = np.array([1 << 32, 1])
#: Keys of prefixes that are written to the files of their parts at a time.
_KEYS_AT_A_TIME = 1 << 20
#: The minimum and maximum number of parts of the key space, powers of two, and bytes of a key while its part is read.
_MIN_PARTS, _MAX_PARTS, _KEY_BYTES = 8, 256, 16
#: The maximum number of bits that choose a list of a part.
_MAX_PART_BITS = 22


class StoredFeatures(NamedTuple):
    """The features of some documents, ascending: where they are in memory, and the arrays that contain them."""

    documents: Integers
    addresses: Words
    arrays: list[Any]


class BoundedJoin:
    """The passes of a join over sets that are not stored; a step stores ``room`` bytes of features at once."""

    def __init__(
        self, store: BoundedStore, recomputed: RecomputedFeatures, rule: Rule, threads: int, reference_count: int = 0
    ) -> None:
        self.recomputed = recomputed
        self.context = JoinContext(
            np.zeros(len(store), np.uint64), store.sizes, rule, threads, store.memory, reference_count
        )
        # The memory in use is measured: documents, counts, and a base that differs from machine to machine.
        budget = math.inf if store.memory.budget is None else store.memory.budget
        remaining = budget - resident_memory() - store.reader_bytes
        # With less, the same keys are read from the disk too often.
        minimum = store.memory.free_bytes * _MIN_SHARE if store.memory.budget is not None else 0
        self._available = min(max(remaining, minimum, _MIN_STORED), max(store.max_bytes, _MIN_STORED))
        self.room = max(_FEATURE_SHARE * self._available, _MIN_STORED)

    def matches(self, request: JoinRequest) -> Matches:
        """Return the pairs of the exact join."""
        found = self._find(request)
        found.statistics["passes_over_the_input"] = self.recomputed.passes
        return found

    def _find(self, request: JoinRequest) -> Matches:
        members = distinct_documents(request.representative)
        self.context.statistics["distinct_sets"] = len(members)
        matchable = self._mask(members) & self.recomputed.matchable(self.context.rule)
        if 8 * int(self.context.sizes[matchable].sum()) > self.room:
            found = self._match_candidates(matchable, request)
            if found is not None:
                return found
        elif self.recomputed.single_use:
            self.recomputed.close()
        stored = self._recompute(np.flatnonzero(matchable))
        self.context.addresses[stored.documents] = stored.addresses
        return join_stored_sets(self.context, stored.documents, request)

    def _mask(self, documents: Integers) -> Bools:
        chosen = np.zeros(len(self.context.sizes), np.bool_)
        chosen[documents] = True
        return chosen

    def _stored_features(self, documents: Integers, parts: list[Integers], arrays: list[Words]) -> StoredFeatures:
        """Return stored features: each array has those of the documents of one part."""
        addresses = [np.empty(0, np.uint64)]
        addresses += [
            set_addresses(features, self.context.sizes[part]) for part, features in zip(parts, arrays, strict=True)
        ]
        return StoredFeatures(documents, np.concatenate(addresses), arrays)

    def _recompute(self, documents: Integers) -> StoredFeatures:
        """Return the features of sets, in memory as far as it suffices, and then in a file that the system maps."""
        parts, arrays = [], []
        for part, features in self.recomputed.map_blocks(self._mask(documents), _copy_features):
            array = self.context.memory.array(np.uint64, len(features))
            array[:] = features
            parts.append(part)
            arrays.append(array)
            self.context.memory.evict()
        return self._stored_features(documents, parts, arrays)

    def _match_candidates(self, matchable: Bools, request: JoinRequest) -> Matches | None:
        """Return the pairs, storing features of candidates only; None if candidates or pairs are too many."""
        context = self.context
        with ExitStack() as files:
            members, sets, prefixes = self._prefixes(matchable, files)
            ranks = self._candidates(sets, members < context.input_count, prefixes, request)
            del sets
            if ranks is None:
                return None
            ranks = self._filter_by_parities(ranks, context.sizes[members], prefixes)
        context.statistics["verified"] = len(ranks)
        pairs = members[ranks].astype(np.int64)
        del members, ranks, prefixes
        overlap = self.overlaps(pairs)
        pairs, overlap = pairs[overlap >= 0], overlap[overlap >= 0]
        if request.max_pairs is not None and len(pairs) > request.max_pairs:
            return None
        counts = np.column_stack([overlap, context.sizes[pairs]])
        left, right, counts = sorted_pairs(pairs[:, 0], pairs[:, 1], counts)
        context.statistics["pairs"] = len(left)
        return Matches(request.representative, left, right, counts, statistics=context.statistics)

    def _prefixes(self, matchable: Bools, files: ExitStack) -> tuple[Narrow, RankedSets, PrefixFiles]:
        """Return the sets that can have a partner, in order of size, and the files of their prefixes and parities."""
        recomputed, memory = self.recomputed, self.context.memory
        slots, with_enough = recomputed.count_among(matchable, self.context.rule, files)
        if recomputed.single_use:
            recomputed.close()
        words, parts = self._bitmap_words_and_parts(self.context.sizes[with_enough])
        keys = [files.enter_context(PartFile(np.uint64, memory)) for _ in range(parts)]
        prefixes = PrefixFiles(keys, files.enter_context(PartFile(np.uint64, memory)))
        columns = [GrowingArray(np.int32), GrowingArray(np.int32), GrowingArray(np.int32)]
        columns.append(GrowingArray(np.uint64, words))
        for batch in recomputed.map_counted(matchable, slots, partial(_prefix_batch, self.context.rule, words)):
            prefixes.add(batch)
            for column, rows in zip(
                columns, (batch.documents, batch.shared, batch.lengths, batch.bitmaps), strict=True
            ):
                column.extend(rows)
        prefixes.flush()
        self.room = max(_FEATURE_SHARE * self._available, _MIN_STORED)
        self.context.statistics["sets_with_enough_shared_features"] = len(columns[0].rows)
        return self._rank_by_size(columns, prefixes)

    def _bitmap_words_and_parts(self, sizes: Integers) -> tuple[int, int]:
        """Return the number of words of a bitmap, and of parts of the keys, for sets of these sizes."""
        count, set_bytes = len(sizes), _SET_BYTES + _SET_BYTES_PER_THREAD * self.context.threads
        words = next(
            (words for words in _BITMAP_WORDS if count * (set_bytes + _WORD_BYTES * words) <= self._available),
            _BITMAP_WORDS[-1],
        )
        capacities = np.empty(count, np.int64)
        prefix_capacities(sizes, self.context.rule, capacities)
        room = max(self._available - count * (set_bytes + _WORD_BYTES * words), _MIN_STORED, 1) / self.context.threads
        parts = _MIN_PARTS
        while parts < file_limit(_MAX_PARTS) and _KEY_BYTES * int(capacities.sum()) > parts * room:
            parts *= 2
        return words, parts

    def _rank_by_size(
        self, columns: list[GrowingArray], prefixes: PrefixFiles
    ) -> tuple[Narrow, RankedSets, PrefixFiles]:
        """Return sets in order of size, given their columns in the order in which they were added."""
        members, shared, lengths, bitmaps = (column.rows for column in columns)
        columns.clear()
        order = np.lexsort([members, self.context.sizes[members]])
        prefixes.ranks = np.empty(len(order), np.int32)
        prefixes.ranks[order] = np.arange(len(order), dtype=np.int32)
        members, none = members[order], np.empty(0, np.uint64)
        sizes = self.context.sizes[members].astype(np.int32)
        for array in (shared, lengths, *bitmaps.T):
            # Column by column: memory need not hold two copies of all of them.
            array[:] = array[order]
        return members, RankedSets(none, sizes, shared, lengths, bitmaps, np.empty(0, np.int32), none), prefixes

    def _candidates(
        self, sets: RankedSets, of_input: Bools, prefixes: PrefixFiles, request: JoinRequest
    ) -> Narrow | None:
        """Return int32[k, 2] ranks of sets that may match, the earlier first; None if they are too many.

        of_input: bool[r], which sets are of the input, and not only of a reference.
        """
        count, parts, statistics = len(sets.sizes), len(prefixes.keys), self.context.statistics
        limit = min(_MAX_CANDIDATES * max(count, 1 << 16), max(int(self._available) // _CANDIDATE_BYTES, 1 << 16))
        bits, sides = self._sides(sets, of_input, prefixes)
        local = threading.local()

        def find(number: int) -> tuple[Integers, dict[str, int]]:
            if not hasattr(local, "scratch"):
                pairs = np.empty((max(count, 1), 2), np.int32)
                local.scratch = np.zeros(count, np.int32), np.empty(count, np.int32), pairs
            return self._candidates_of_part(number, prefixes, sets, bits, sides, local.scratch, limit)

        merged, pending, new = np.empty(0, np.int64), list[Integers](), 0
        statistics |= {"index_parts": parts, "index_entries": 0, "longest_list": 0, "meetings": 0}
        for number, (found, part_counts) in enumerate(map_in_order(find, range(parts), self.context.threads)):
            # Two matching sets meet in many parts, but a part lists a pair once. So a part that stopped at the limit
            # has too many candidates.
            pending.append(found[~_contains(merged, found)])
            new += len(pending[-1])
            if new > max(len(merged) // 4, 1 << 16) or len(merged) + new > limit or number + 1 == parts:
                merged, pending, new = np.unique(np.concatenate([merged, *pending])), [], 0
            statistics["index_entries"] += part_counts["index_entries"]
            statistics["longest_list"] = max(statistics["longest_list"], part_counts["longest_list"])
            statistics["meetings"] += part_counts["meetings"]
            if len(merged) > limit:
                return None
            request.progress(count * (number + 1) // parts, count)
        statistics["candidates"] = len(merged)
        return np.column_stack([merged >> 32, merged & 0xFFFFFFFF]).astype(np.int32)

    def _sides(
        self, sets: RankedSets, of_input: Bools, prefixes: PrefixFiles
    ) -> tuple[int, list[tuple[Narrow, Narrow]]]:
        """Return the number of bits that choose a list, and one or two pairs of (indexed lengths, probe bounds).

        Two sets are not compared if neither is of the input: all sets are looked up among those of the input, and these
        among those of the reference.
        """
        rule, ranks = self.context.rule, prefixes.ranks
        ranks_of_size = np.searchsorted(sets.sizes, np.arange(sets.sizes.max(initial=0) + 2)).astype(np.int64)
        lengths = np.empty(len(ranks), np.int32)
        index_lengths(sets, rule, lengths)
        max_bits = (len(prefixes.keys) << _MAX_PART_BITS).bit_length() - 1
        bits = index_bits(check_entries(int(lengths.sum(dtype=np.int64))), max_bits)
        probes = np.empty((len(ranks), 4), np.int32)
        probe_bounds(ranks, sets, rule, ranks_of_size, probes)
        # In the order in which the sets lie in the parts, so that memory is read in sequence.
        indexed, of_input = lengths[ranks], of_input[ranks]
        if of_input.all():
            return bits, [(indexed, probes)]
        input_probes = probes.copy()
        input_probes[~of_input, 2:] = 0
        return bits, [(indexed * of_input, probes), (indexed * ~of_input, input_probes)]

    def _candidates_of_part(
        self,
        number: int,
        prefixes: PrefixFiles,
        sets: RankedSets,
        bits: int,
        sides: list[tuple[Narrow, Narrow]],
        scratch: tuple[Narrow, Narrow, Narrow],
        limit: int,
    ) -> tuple[Integers, dict[str, int]]:
        """Return the candidates of a part of the key space, each as one number, and counts of its lists."""
        part, found = prefixes.keys[number].read_all(), [np.zeros((0, 2), np.int32)]
        prefixes.keys[number].close()
        counts, lists = {"index_entries": 0, "longest_list": 0, "meetings": 0}, (1 << bits) // len(prefixes.keys)
        for indexed, probes in sides:
            index = PrefixIndex(np.zeros(lists + 1, np.uint32), np.empty(0, np.uint64), bits, number * lists)
            entries, longest, meetings = index_keys(part, prefixes.ranks, indexed, probes, index)
            index = index._replace(entries=entries)
            counts["index_entries"] += len(entries)
            counts["longest_list"] = max(counts["longest_list"], longest)
            counts["meetings"] += meetings
            at = 0, 0
            while at[0] < len(probes) and sum(map(len, found)) <= limit:
                at, written = list_candidates(at, part, prefixes.ranks, sets, probes, index, self.context.rule, scratch)
                found.append(scratch[2][:written].copy())
        return np.unique(np.concatenate(found).astype(np.int64) @ _PACKED), counts

    def _filter_by_parities(self, ranks: Narrow, sizes: Integers, prefixes: PrefixFiles) -> Narrow:
        """Return the candidates that may match by their parities; sizes are by rank."""
        count = len(sizes)
        lengths, place = np.empty(count, np.int64), np.empty(count, np.int32)
        sizes = sizes[prefixes.ranks]
        parity_lengths(sizes, lengths)
        place[prefixes.ranks] = np.arange(count, dtype=np.int32)
        may_match = np.empty(len(ranks), np.bool_)
        ends = np.cumsum(_PARITY_PAIR_BYTES + 8 * lengths[place[ranks]].sum(axis=1))
        begin = 0
        while begin < len(ranks):
            end = max(int(np.searchsorted(ends, self.room + (ends[begin - 1] if begin else 0))), begin + 1)
            involved, pairs = np.unique(place[ranks[begin:end]], return_inverse=True)
            words = np.empty(int(lengths[involved].sum()), np.uint64)
            chosen, at = np.zeros(count, np.bool_), 0
            chosen[involved] = True
            for first, widths, piece in prefixes.parities:
                at += copy_chosen_sets(piece, widths.astype(np.int64), chosen[first : first + len(widths)], words[at:])
            parities = np.cumsum(lengths[involved]) - lengths[involved], lengths[involved], words
            pairs = pairs.reshape(-1, 2).astype(np.int64)
            flag_pairs_by_parities(pairs, sizes[involved], parities, self.context.rule, may_match[begin:end])
            begin = end
        return ranks[may_match]

    def overlaps(self, pairs: Integers) -> Integers:
        """Return int64[k], the overlap of each candidate pair (int64[k, 2]); -1 for a pair that does not match."""
        sizes = self.context.sizes
        overlap = np.empty(len(pairs), np.int64)
        involved, places = np.unique(pairs, return_inverse=True)
        places = places.reshape(-1, 2)
        groups = partition_pairs(places, 8 * sizes[involved], self.room)
        order = np.argsort(groups, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(groups))[:-1])
        # The members of each group; one that pairs with many others may be in several groups.
        members = [np.unique(places[part]) for part in parts]
        with ExitStack() as files:
            for group, stored in zip(parts, self._stored_by_group(involved, members, files), strict=True):
                addresses = np.zeros(len(sizes), np.uint64)
                addresses[stored.documents] = stored.addresses
                group = group[np.argsort(pairs[group, 1], kind="stable")]

                def verify(begin: int, group: Integers = group, addresses: Words = addresses) -> None:
                    part = group[begin : begin + _PAIRS_AT_A_TIME]
                    result = np.empty(len(part), np.int64)
                    overlaps_of_pairs(pairs[part, 0], pairs[part, 1], addresses, sizes, self.context.rule, result)
                    overlap[part] = result

                for _ in map_in_order(verify, range(0, len(group), _PAIRS_AT_A_TIME), self.context.threads):
                    pass
        return overlap

    def _stored_by_group(
        self, involved: Integers, members: list[Integers], stack: ExitStack
    ) -> Iterator[StoredFeatures]:
        """Yield the features of each group's documents: a single group from memory, others from a file each."""
        if len(members) <= 1:
            blocks = list(self.recomputed.map_blocks(self._mask(involved), _copy_features))
            yield self._stored_features(
                involved, [documents for documents, _ in blocks], [features for _, features in blocks]
            )
            return
        files = []
        for _ in members:
            files.append(open_scratch_file())
            stack.callback(close_scratch_file, files[-1])

        def split(documents: Integers, block: Block) -> list[tuple[int, Words]]:
            begin, end = np.searchsorted(involved, [documents[0], documents[-1] + 1])
            found = []
            for number, places in enumerate(members):
                rows = places[slice(*np.searchsorted(places, [begin, end]))] - begin
                if len(rows):
                    chosen = np.zeros(len(documents), np.bool_)
                    chosen[rows] = True
                    features = np.empty(int(block.sizes[chosen].sum()), np.uint64)
                    copy_chosen_sets(block.features, block.sizes, chosen, features)
                    found.append((number, features))
            return found

        for parts in self.recomputed.map_blocks(self._mask(involved), split):
            for number, features in parts:
                append_array(features, files[number], self.context.memory)
        largest = max(file.tell() for file in files)
        buffer = np.empty(largest // 8, np.uint64)
        for places, file in zip(members, files, strict=True):
            features = buffer[: file.tell() // 8]
            read_array(file, 0, features, self.context.memory)
            close_scratch_file(file)
            documents = involved[places]
            yield StoredFeatures(documents, set_addresses(features, self.context.sizes[documents]), [features])


class PrefixFiles:
    """The keys of sets' prefixes, in one file per part of the key space (a power of two of files), and their parities.

    ranks: int32[r], the rank of each set, in the order in which sets were added.
    """

    def __init__(self, keys: list[PartFile], parities: PartFile) -> None:
        self.keys, self.parities, self.ranks = keys, parities, np.empty(0, np.int32)
        self._pending, self._pending_keys = list[tuple[Words, Integers]](), 0

    def add(self, batch: PrefixBatch) -> None:
        """Add further sets."""
        self.parities.add(batch.widths, batch.parities)
        self._pending.append((batch.keys, batch.lengths))
        self._pending_keys += len(batch.keys)
        if self._pending_keys >= _KEYS_AT_A_TIME:
            self.flush()

    def flush(self) -> None:
        """Write the pending keys."""
        if not self._pending:
            return
        keys, lengths = map(np.concatenate, zip(*self._pending, strict=True))
        self._pending, self._pending_keys = [], 0
        lengths_by_part, words = np.zeros((len(self.keys), len(lengths)), np.uint32), np.empty(len(keys), np.uint64)
        keys_by_part(keys, lengths, len(self.keys), lengths_by_part, words)
        end = 0
        for part, part_lengths in zip(self.keys, lengths_by_part, strict=True):
            begin, end = end, end + int(part_lengths.sum())
            part.add(part_lengths, words[begin:end])


class PrefixBatch(NamedTuple):
    """Some sets that can have a partner: shared, lengths and bitmaps as in ``RankedSets``.

    keys: the prefixes, concatenated; widths: uint32[s], the words of each set's parities; parities: concatenated.
    """

    documents: Integers
    shared: Integers
    lengths: Integers
    bitmaps: Words
    keys: Words
    widths: npt.NDArray[np.uint32]
    parities: Words


def _prefix_batch(
    rule: Rule, words: int, documents: Integers, sizes: Integers, features: Words, counts: Bytes
) -> PrefixBatch:
    """Return the prefixes and parities of those documents that can have a partner; bitmaps have ``words`` words."""
    count = len(documents)
    capacities = np.empty(count, np.int64)
    prefix_capacities(sizes, rule, capacities)
    shared, lengths, starts = (np.empty(count, np.int64) for _ in range(3))
    bitmaps, keys = np.empty((count, 8), np.uint64), np.empty(int(capacities.sum()), np.uint64)
    write_counted_prefixes(features, sizes, counts, rule, (shared, lengths, bitmaps, starts, keys, 0))
    able = lengths >= 0
    lengths, able_features = lengths[able], features
    if not able.all():
        able_features = np.empty(int(sizes[able].sum()), np.uint64)
        copy_chosen_sets(features, sizes, able, able_features)
    sizes, widths = sizes[able], np.empty(len(lengths), np.int64)
    parity_lengths(sizes, widths)
    parities = np.empty(int(widths.sum()), np.uint64)
    write_parities(able_features, sizes, widths, parities)
    bitmaps = np.bitwise_or.reduce(bitmaps[able].reshape(len(lengths), 8 // words, words), axis=1)
    keys = keys[: lengths.sum()].copy()
    return PrefixBatch(documents[able], shared[able], lengths, bitmaps, keys, widths.astype(np.uint32), parities)


def _contains(ascending: Integers, numbers: Integers) -> Bools:
    """Return which of the numbers are among ascending ones."""
    if not len(ascending):
        return np.zeros(len(numbers), np.bool_)
    places = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    is_contained: Bools = ascending[places] == numbers
    return is_contained


def _copy_features(documents: Integers, block: Block) -> tuple[Integers, Words]:
    return documents, block.features.copy()
