"""The exact join where features are not kept: they are made again for the sets that may have a partner, and verified.

The counts of pass one rule most sets out. Of the others a pass holds the features, if there is room; then the join is
the one of ``neardup.search.join``. Otherwise their slots, which pass one left, give their prefixes, by part of the key
space, and bitmaps: sets of slots share as much as sets of features at least. Each part is read once and gives
candidates, and a pass makes the features of these alone: those that may match are verified together, in groups that
fit, each from a file that is read once.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
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
from neardup.kernels.counts import copy_chosen_sets, prefix_capacities, write_counted_prefixes
from neardup.kernels.parts import (
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
from neardup.search.join import JoinContext, JoinRequest, bits_of_index, check_entries, join_stored_sets
from neardup.search.matches import Matches, distinct_documents, partition_pairs, set_representatives, sorted_pairs

Integers = npt.NDArray[np.int64]
Narrow = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]
Booleans = npt.NDArray[np.bool_]
Counts8 = npt.NDArray[np.uint8]

#: Which share of the room the features of one step may take.
_SHARE_HELD = 0.4
#: Bytes of what is noted of a set besides its bitmap, and for each thread, and of a word of the bitmap.
_A_SET, _A_SET_AND_THREAD, _A_WORD = 40, 10, 8
#: The words of a bitmap: fewer where there is no room for them.
_WORDS = (8, 4, 2, 1)
#: However little room there is, features of so many bytes are held at once, and of such a share of what the budget
#: has besides the program.
_LEAST_HELD, _LEAST_SHARE = 1 << 24, 0.25
#: More candidates than this for each set are not listed: the features are held in a file instead.
_MOST_CANDIDATES = 64
#: Bytes of a candidate while those of the parts are put together, and while its parities are looked at.
_A_CANDIDATE, _A_PAIR = 24, 64
_PAIRS_AT_A_TIME = 1 << 16
#: Makes one number of a pair of ranks.
_PACKED = np.array([1 << 32, 1])
#: Keys of prefixes that are written to the files of their parts at a time.
_KEYS_AT_A_TIME = 1 << 20
#: The fewest and the most parts of the key space, powers of two, and bytes of a key while its part is gone through.
_FEWEST_PARTS, _MOST_PARTS, _A_KEY = 8, 256, 16
#: At most so many bits choose a list of a part.
_MOST_BITS_OF_A_PART = 22


class StoredFeatures(NamedTuple):
    """The features of some documents.

    Attributes
    ----------
    documents : int64[m]
        Which ones, ascending.
    addresses : uint64[m]
        Where the features of each begin.
    arrays : list
        What they lie in.
    """

    documents: Integers
    addresses: Words
    arrays: list[Any]


def recomputed_join(
    store: BoundedStore,
    recomputed: RecomputedFeatures,
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
    """Find the pairs that ``neardup.search.join.self_join`` finds, of sets that are not held.

    Parameters
    ----------
    store : BoundedStore
        What is known of the documents.
    recomputed : Recomputed
        What pass one left of their features.
    rule, threads, excluded, keep_order, max_pairs, all_or_none, reference, progress
        As for ``self_join``.
    """
    request = JoinRequest(set_representatives(store, excluded), keep_order, max_pairs, all_or_none, progress)
    found = RecomputedJoin(store, recomputed, rule, threads, reference).matches(request)
    found.statistics["passes_over_the_input"] = recomputed.passes
    return found


class RecomputedJoin:
    """The passes of one search; the parameters are those of ``recomputed_join``.

    Attributes
    ----------
    room : float
        Bytes of features that a step holds at once.
    """

    def __init__(
        self, store: BoundedStore, recomputed: RecomputedFeatures, rule: Rule, threads: int, reference: int = 0
    ) -> None:
        self.recomputed = recomputed
        self.steps = JoinContext(np.zeros(len(store), np.uint64), store.sizes, rule, threads, store.memory, reference)
        # What is held by now is measured: documents, counts, and a base that differs from machine to machine.
        self._budget = math.inf if store.memory.budget is None else store.memory.budget
        left = self._budget - resident_memory() - store.reader_bytes
        # Below that the same keys are read from the disk too often.
        least = store.memory.free_bytes * _LEAST_SHARE if store.memory.budget is not None else 0
        self._left = min(max(left, least, _LEAST_HELD), max(store.max_bytes, _LEAST_HELD))
        self.room = max(_SHARE_HELD * self._left, _LEAST_HELD)

    def matches(self, request: JoinRequest) -> Matches:
        """Return the pairs of the exact join."""
        members = distinct_documents(request.representative)
        self.steps.statistics["distinct_sets"] = len(members)
        able, held = self._mask(members) & self.recomputed.matchable(self.steps.rule), None
        if 8 * int(self.steps.sizes[able].sum()) > self.room:
            found = self._by_candidates(able, request)
            if found is not None:
                return found
        elif self.recomputed.single_use:
            self.recomputed.close()
        held = self._held_again(np.flatnonzero(able))
        self.steps.addresses[held.documents] = held.addresses
        return join_stored_sets(self.steps, held.documents, request)

    def _mask(self, documents: Integers) -> Booleans:
        chosen = np.zeros(len(self.steps.sizes), np.bool_)
        chosen[documents] = True
        return chosen

    def _held(self, able: Integers, documents: list[Integers], arrays: list[Words]) -> StoredFeatures:
        addresses = [np.empty(0, np.uint64)]
        addresses += [
            set_addresses(features, self.steps.sizes[these]) for these, features in zip(documents, arrays, strict=True)
        ]
        return StoredFeatures(able, np.concatenate(addresses), arrays)

    def _held_again(self, able: Integers) -> StoredFeatures:
        """Return the features of sets, in memory as far as there is room, else in a file that the system maps."""
        documents, arrays = [], []
        for these, features in self.recomputed.map_blocks(self._mask(able), _copied):
            array = self.steps.memory.array(np.uint64, len(features))
            array[:] = features
            documents.append(these)
            arrays.append(array)
            self.steps.memory.evict()
        return self._held(able, documents, arrays)

    def _by_candidates(self, able: Booleans, request: JoinRequest) -> Matches | None:
        """Return the pairs without holding features but of candidates; None if these, or the pairs, are too many."""
        steps = self.steps
        with ExitStack() as files:
            members, sets, prefixes = self._prefixes(able, files)
            ranks = self._candidates(sets, members < steps.input_count, prefixes, request)
            del sets
            if ranks is None:
                return None
            ranks = self._able_by_parities(ranks, steps.sizes[members], prefixes)
        steps.statistics["verified"] = len(ranks)
        pairs = members[ranks].astype(np.int64)
        del members, ranks, prefixes
        overlap = self.overlaps(pairs)
        pairs, overlap = pairs[overlap >= 0], overlap[overlap >= 0]
        if request.max_pairs is not None and len(pairs) > request.max_pairs:
            return None
        left, right, numbers = sorted_pairs(pairs[:, 0], pairs[:, 1], np.column_stack([overlap, steps.sizes[pairs]]))
        steps.statistics["pairs"] = len(left)
        return Matches(request.representative, left, right, numbers, statistics=steps.statistics)

    def _prefixes(self, able: Booleans, files: ExitStack) -> tuple[Narrow, RankedSets, PrefixFiles]:
        """Return the sets that can have a partner, in order of size, and what files hold of them."""
        recomputed, memory = self.recomputed, self.steps.memory
        slots, enough = recomputed.count_among(able, self.steps.rule, files)
        if recomputed.single_use:
            recomputed.close()
        words, parts = self._widths(self.steps.sizes[enough])
        keys = [files.enter_context(PartFile(np.uint64, memory)) for _ in range(parts)]
        prefixes = PrefixFiles(keys, files.enter_context(PartFile(np.uint64, memory)))
        found = [GrowingArray(np.int32), GrowingArray(np.int32), GrowingArray(np.int32), GrowingArray(np.uint64, words)]
        for made in recomputed.map_counted(able, slots, partial(_made, self.steps.rule, words)):
            prefixes.add(made)
            for column, rows in zip(found, (made.documents, made.shared, made.lengths, made.bitmaps), strict=True):
                column.extend(rows)
        prefixes.close()
        self.room = max(_SHARE_HELD * self._left, _LEAST_HELD)
        self.steps.statistics["sets_with_enough_shared_features"] = len(found[0].rows)
        return self._by_rank(found, prefixes)

    def _widths(self, sizes: Integers) -> tuple[int, int]:
        """Return of how many words bitmaps are, and how many parts the keys have, for sets of these sizes."""
        count, a_set = len(sizes), _A_SET + _A_SET_AND_THREAD * self.steps.threads
        words = next((words for words in _WORDS if count * (a_set + _A_WORD * words) <= self._left), _WORDS[-1])
        rooms = np.empty(count, np.int64)
        prefix_capacities(sizes, self.steps.rule, rooms)
        room = max(self._left - count * (a_set + _A_WORD * words), _LEAST_HELD, 1) / self.steps.threads
        parts = _FEWEST_PARTS
        while parts < file_limit(_MOST_PARTS) and _A_KEY * int(rooms.sum()) > parts * room:
            parts *= 2
        return words, parts

    def _by_rank(self, found: list[GrowingArray], prefixes: PrefixFiles) -> tuple[Narrow, RankedSets, PrefixFiles]:
        """Return sets in order of size, from what was found of them in the order in which they were added."""
        members, shared, lengths, bitmaps = (column.rows for column in found)
        found.clear()
        order = np.lexsort([members, self.steps.sizes[members]])
        prefixes.ranks = np.empty(len(order), np.int32)
        prefixes.ranks[order] = np.arange(len(order), dtype=np.int32)
        members, none = members[order], np.empty(0, np.uint64)
        sizes = self.steps.sizes[members].astype(np.int32)
        for array in (shared, lengths, *bitmaps.T):
            # One column after the other, for two of the whole need not be there at once.
            array[:] = array[order]
        return members, RankedSets(none, sizes, shared, lengths, bitmaps, np.empty(0, np.int32), none), prefixes

    def _candidates(
        self, sets: RankedSets, of_input: Booleans, prefixes: PrefixFiles, request: JoinRequest
    ) -> Narrow | None:
        """Return int32[k, 2] ranks of sets that may match, the earlier first; None if they are too many.

        of_input: bool[r], which are of the input, and not of a reference.
        """
        count, parts, statistics = len(sets.sizes), len(prefixes.keys), self.steps.statistics
        most = min(_MOST_CANDIDATES * max(count, 1 << 16), max(int(self._left) // _A_CANDIDATE, 1 << 16))
        bits, sides = self._sides(sets, of_input, prefixes)
        local = threading.local()

        def find(number: int) -> tuple[Integers, dict[str, int]]:
            if not hasattr(local, "scratch"):
                room = np.empty((max(count, 1), 2), np.int32)
                local.scratch = np.zeros(count, np.int32), np.empty(count, np.int32), room
            return self._candidates_in(number, prefixes, sets, bits, sides, local.scratch, most)

        both, waiting, new = np.empty(0, np.int64), list[Integers](), 0
        statistics |= {"index_parts": parts, "index_entries": 0, "longest_list": 0, "meetings": 0}
        for number, (found, known) in enumerate(map_in_order(find, range(parts), self.steps.threads)):
            # Two sets that match meet in many parts; in one a pair is found once, so what was given up has too many.
            waiting.append(found[~_in(found, both)])
            new += len(waiting[-1])
            if new > max(len(both) // 4, 1 << 16) or len(both) + new > most or number + 1 == parts:
                both, waiting, new = np.unique(np.concatenate([both, *waiting])), [], 0
            statistics["index_entries"] += known["index_entries"]
            statistics["longest_list"] = max(statistics["longest_list"], known["longest_list"])
            statistics["meetings"] += known["meetings"]
            if len(both) > most:
                return None
            request.progress(count * (number + 1) // parts, count)
        statistics["candidates"] = len(both)
        return np.column_stack([both >> 32, both & 0xFFFFFFFF]).astype(np.int32)

    def _sides(
        self, sets: RankedSets, of_input: Booleans, prefixes: PrefixFiles
    ) -> tuple[int, list[tuple[Narrow, Narrow]]]:
        """Return how many bits choose a list of the index, and what is entered and asked for each set, once or twice.

        Where neither of two is of the input, they are not compared: all sets are looked up among those of the input,
        and these among those of the reference.
        """
        rule, ranks = self.steps.rule, prefixes.ranks
        ranks_of_size = np.searchsorted(sets.sizes, np.arange(sets.sizes.max(initial=0) + 2)).astype(np.int64)
        lengths = np.empty(len(ranks), np.int32)
        index_lengths(sets, rule, lengths)
        most = (len(prefixes.keys) << _MOST_BITS_OF_A_PART).bit_length() - 1
        bits = bits_of_index(check_entries(int(lengths.sum(dtype=np.int64))), most)
        asked = np.empty((len(ranks), 4), np.int32)
        probe_bounds(ranks, sets, rule, ranks_of_size, asked)
        # In the order in which the sets lie in the parts, for what lies elsewhere in memory is waited for.
        held, of_input = lengths[ranks], of_input[ranks]
        if of_input.all():
            return bits, [(held, asked)]
        of_new = asked.copy()
        of_new[~of_input, 2:] = 0
        return bits, [(held * of_input, asked), (held * ~of_input, of_new)]

    def _candidates_in(
        self,
        number: int,
        prefixes: PrefixFiles,
        sets: RankedSets,
        bits: int,
        sides: list[tuple[Narrow, Narrow]],
        scratch: tuple[Narrow, Narrow, Narrow],
        most: int,
    ) -> tuple[Integers, dict[str, int]]:
        """Return the candidates of a part of the key space, each as one number, and figures of its lists."""
        part, found = prefixes.keys[number].read_all(), [np.zeros((0, 2), np.int32)]
        prefixes.keys[number].close()
        known, lists = {"index_entries": 0, "longest_list": 0, "meetings": 0}, (1 << bits) // len(prefixes.keys)
        for entered, asked in sides:
            index = PrefixIndex(np.zeros(lists + 1, np.uint32), np.empty(0, np.uint64), bits, number * lists)
            entries, longest, meetings = index_keys(part, prefixes.ranks, entered, asked, index)
            index = index._replace(entries=entries)
            known["index_entries"] += len(entries)
            known["longest_list"] = max(known["longest_list"], longest)
            known["meetings"] += meetings
            at = 0, 0
            while at[0] < len(asked) and sum(map(len, found)) <= most:
                at, written = list_candidates(at, part, prefixes.ranks, sets, asked, index, self.steps.rule, scratch)
                found.append(scratch[2][:written].copy())
        return np.unique(np.concatenate(found).astype(np.int64) @ _PACKED), known

    def _able_by_parities(self, ranks: Narrow, sizes: Integers, prefixes: PrefixFiles) -> Narrow:
        """Return which of the candidates may match, as their parities have it; sizes: by rank."""
        count = len(sizes)
        lengths, place = np.empty(count, np.int64), np.empty(count, np.int32)
        sizes = sizes[prefixes.ranks]
        parity_lengths(sizes, lengths)
        place[prefixes.ranks] = np.arange(count, dtype=np.int32)
        able = np.empty(len(ranks), np.bool_)
        ends = np.cumsum(_A_PAIR + 8 * lengths[place[ranks]].sum(axis=1))
        begin = 0
        while begin < len(ranks):
            end = max(int(np.searchsorted(ends, self.room + (ends[begin - 1] if begin else 0))), begin + 1)
            involved, pairs = np.unique(place[ranks[begin:end]], return_inverse=True)
            words = np.empty(int(lengths[involved].sum()), np.uint64)
            chosen, at = np.zeros(count, np.bool_), 0
            chosen[involved] = True
            for first, of_each, some in prefixes.parities:
                at += copy_chosen_sets(some, of_each.astype(np.int64), chosen[first : first + len(of_each)], words[at:])
            parities = np.cumsum(lengths[involved]) - lengths[involved], lengths[involved], words
            pairs = pairs.reshape(-1, 2).astype(np.int64)
            flag_pairs_by_parities(pairs, sizes[involved], parities, self.steps.rule, able[begin:end])
            begin = end
        return ranks[able]

    def overlaps(self, pairs: Integers) -> Integers:
        """Return the overlap of each candidate pair, -1 where it does not match.

        Parameters
        ----------
        pairs : int64[k, 2]
            Documents.
        """
        sizes = self.steps.sizes
        overlap = np.empty(len(pairs), np.int64)
        involved, places = np.unique(pairs, return_inverse=True)
        places = places.reshape(-1, 2)
        groups = partition_pairs(places, 8 * sizes[involved], self.room)
        order = np.argsort(groups, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(groups))[:-1])
        # Which of them each group has; one that pairs with many others may be in several.
        members = [np.unique(places[part]) for part in parts]
        with ExitStack() as files:
            for here, held in zip(parts, self._held_by_group(involved, members, files), strict=True):
                addresses = np.zeros(len(sizes), np.uint64)
                addresses[held.documents] = held.addresses
                here = here[np.argsort(pairs[here, 1], kind="stable")]

                def verify(begin: int, here: Integers = here, addresses: Words = addresses) -> None:
                    part = here[begin : begin + _PAIRS_AT_A_TIME]
                    result = np.empty(len(part), np.int64)
                    overlaps_of_pairs(pairs[part, 0], pairs[part, 1], addresses, sizes, self.steps.rule, result)
                    overlap[part] = result

                for _ in map_in_order(verify, range(0, len(here), _PAIRS_AT_A_TIME), self.steps.threads):
                    pass
        return overlap

    def _held_by_group(self, involved: Integers, members: list[Integers], stack: ExitStack) -> Iterator[StoredFeatures]:
        """Yield the features of the documents of each group, all in memory or each from a file of its own."""
        if len(members) <= 1:
            documents, arrays = [], []
            for these, features in self.recomputed.map_blocks(self._mask(involved), _copied):
                documents.append(these)
                arrays.append(features)
            yield self._held(involved, documents, arrays)
            return
        files = [open_scratch_file() for _ in members]
        for file in files:
            stack.callback(close_scratch_file, file)

        def make(documents: Integers, block: Block) -> list[tuple[int, Words]]:
            begin, end = np.searchsorted(involved, [documents[0], documents[-1] + 1])
            found = []
            for number, places in enumerate(members):
                here = places[slice(*np.searchsorted(places, [begin, end]))] - begin
                if len(here):
                    chosen = np.zeros(len(documents), np.bool_)
                    chosen[here] = True
                    found.append((number, _chosen(block, chosen)))
            return found

        for parts in self.recomputed.map_blocks(self._mask(involved), make):
            for number, features in parts:
                append_array(features, files[number], self.steps.memory)
        largest = max(file.tell() for file in files)
        room = np.empty(largest // 8, np.uint64)
        for places, file in zip(members, files, strict=True):
            features = room[: file.tell() // 8]
            read_array(file, 0, features, self.steps.memory)
            close_scratch_file(file)
            own = involved[places]
            yield StoredFeatures(own, set_addresses(features, self.steps.sizes[own]), [features])


class PrefixFiles:
    """What files hold of sets: the keys of their prefixes, by part of the key space, and parities.

    Parameters
    ----------
    keys : list of Part
        A power of two; each is read once.
    parities : Part
        Those of each set.

    Attributes
    ----------
    ranks : int32[r]
        Of the sets, in the order in which they were added.
    """

    def __init__(self, keys: list[PartFile], parities: PartFile) -> None:
        self.keys, self.parities, self.ranks = keys, parities, np.empty(0, np.int32)
        self._waiting, self._waiting_keys = list[tuple[Words, Integers]](), 0

    def add(self, made: PrefixBatch) -> None:
        """Add further sets."""
        self.parities.add(made.widths, made.parities)
        self._waiting.append((made.keys, made.lengths))
        self._waiting_keys += len(made.keys)
        if self._waiting_keys >= _KEYS_AT_A_TIME:
            self.close()

    def close(self) -> None:
        """Write what was added."""
        if not self._waiting:
            return
        keys, lengths = map(np.concatenate, zip(*self._waiting, strict=True))
        self._waiting, self._waiting_keys = [], 0
        of_each, words, end = np.zeros((len(self.keys), len(lengths)), np.uint32), np.empty(len(keys), np.uint64), 0
        keys_by_part(keys, lengths, len(self.keys), of_each, words)
        for part, each in zip(self.keys, of_each, strict=True):
            begin, end = end, end + int(each.sum())
            part.add(each, words[begin:end])


class PrefixBatch(NamedTuple):
    """Some sets that can have a partner.

    Attributes
    ----------
    documents : int64[s]
        Which ones they are.
    shared, lengths : int64[s]
        How many of their features others have, and how many keys their prefixes have.
    bitmaps : uint64[s, w]
        Theirs.
    keys : uint64
        The prefixes, one behind the other.
    widths : uint32[s]
        Of how many words their parities are.
    parities : uint64
        These, one behind the other.
    """

    documents: Integers
    shared: Integers
    lengths: Integers
    bitmaps: Words
    keys: Words
    widths: npt.NDArray[np.uint32]
    parities: Words


def _made(
    rule: Rule, words: int, documents: Integers, sizes: Integers, features: Words, counts: Counts8
) -> PrefixBatch:
    """Return what is needed of those documents that can have a partner; their bitmaps are of so many words."""
    count = len(documents)
    rooms = np.empty(count, np.int64)
    prefix_capacities(sizes, rule, rooms)
    shared, lengths, starts = (np.empty(count, np.int64) for _ in range(3))
    bitmaps, keys = np.empty((count, 8), np.uint64), np.empty(int(rooms.sum()), np.uint64)
    write_counted_prefixes(features, sizes, counts, rule, (shared, lengths, bitmaps, starts, keys, 0))
    able = lengths >= 0
    lengths, own = lengths[able], features
    if not able.all():
        own = np.empty(int(sizes[able].sum()), np.uint64)
        copy_chosen_sets(features, sizes, able, own)
    sizes, widths = sizes[able], np.empty(len(lengths), np.int64)
    parity_lengths(sizes, widths)
    parities = np.empty(int(widths.sum()), np.uint64)
    write_parities(own, sizes, widths, parities)
    bitmaps = np.bitwise_or.reduce(bitmaps[able].reshape(len(lengths), 8 // words, words), axis=1)
    keys = keys[: lengths.sum()].copy()
    return PrefixBatch(documents[able], shared[able], lengths, bitmaps, keys, widths.astype(np.uint32), parities)


def _in(numbers: Integers, known: Integers) -> Booleans:
    """Return which of the numbers are among the known ones, which are ascending."""
    if not len(known):
        return np.zeros(len(numbers), np.bool_)
    found: Booleans = known[np.minimum(np.searchsorted(known, numbers), len(known) - 1)] == numbers
    return found


def _copied(documents: Integers, block: Block) -> tuple[Integers, Words]:
    return documents, block.features.copy()


def _chosen(block: Block, chosen: npt.NDArray[np.bool_]) -> Words:
    features = np.empty(int(block.sizes[chosen].sum()), np.uint64)
    copy_chosen_sets(block.features, block.sizes, chosen, features)
    return features
