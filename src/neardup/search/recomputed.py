"""The exact join where features are not kept: they are made again for the sets that may have a partner, and verified.

The counts of pass one rule most sets out. Of the others a pass holds the features, as far as there is room; then the
join is the one of ``neardup.search.join``. Otherwise a pass leaves their prefixes and bitmaps, the join lists
candidates, and another pass makes the features of these alone: those that may match are verified together, in groups
that fit, each from a file that is read once.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from neardup.features.recomputed import BoundedStore, Recomputed, append, read, scratch_file
from neardup.features.store import Block, Column, addresses_of
from neardup.kernels.counts import chosen_sets, count_shared, prefix_rooms, prefixes
from neardup.kernels.prefixes import Index, Sets, list_candidates, overlaps_of_pairs
from neardup.recipe.measures import Rule
from neardup.runtime import Memory, in_order, resident_memory
from neardup.search.join import FEWEST_BITS, Join, Steps, Wanted, join_held
from neardup.search.matches import Matches, equal_sets, groups_that_fit, members_of, sorted_pairs

Integers = npt.NDArray[np.int64]
Narrow = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]
Booleans = npt.NDArray[np.bool_]

#: Which share of the room the features of one step may take.
_SHARE_HELD = 0.4
#: Bytes of what is noted of a set besides its bitmap, and of a word of that.
_A_SET, _A_WORD = 24, 8
#: The words of a bitmap: fewer where there is no room for them.
_WORDS = (8, 4, 2, 1)
#: However little room there is, features of so many bytes are held at once, and of such a share of what the budget
#: has besides the program.
_LEAST_HELD, _LEAST_SHARE = 1 << 24, 0.25
#: More candidates than this for each set are not listed: the features are held in a file instead.
_MOST_CANDIDATES = 64
_PAIRS_AT_A_TIME = 1 << 16
#: Keys of prefixes in a block.
_KEYS_AT_A_TIME = 1 << 19


class Held(NamedTuple):
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
    recomputed: Recomputed,
    rule: Rule,
    *,
    threads: int = 1,
    excluded: npt.NDArray[np.bool_] | None = None,
    keep_order: Integers | None = None,
    most_pairs: int | None = None,
    with_kept: bool = True,
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
    rule, threads, excluded, keep_order, most_pairs, with_kept, reference, progress
        As for ``self_join``.
    """
    wanted = Wanted(equal_sets(store, excluded), keep_order, most_pairs, with_kept, progress)
    found = Passes(store, recomputed, rule, threads, reference).matches(wanted)
    found.statistics["passes_over_the_input"] = recomputed.passes
    return found


class Passes:
    """The passes of one search; the parameters are those of ``recomputed_join``.

    Attributes
    ----------
    room : float
        Bytes of features that a step holds at once.
    """

    def __init__(
        self, store: BoundedStore, recomputed: Recomputed, rule: Rule, threads: int, reference: int = 0
    ) -> None:
        self.recomputed = recomputed
        self.steps = Steps(np.zeros(len(store), np.uint64), store.sizes, rule, threads, store.memory, reference)
        # What is held by now is measured: documents, counts, and a base that differs from machine to machine.
        self._budget = math.inf if store.memory.budget is None else store.memory.budget
        left = self._budget - resident_memory() - store.reader_bytes
        # Below that the same keys are read from the disk too often.
        least = store.memory.room * _LEAST_SHARE if store.memory.budget is not None else 0
        self._left = min(max(left, least, _LEAST_HELD), max(store.most_bytes, _LEAST_HELD))
        self.room = max(_SHARE_HELD * self._left, _LEAST_HELD)
        # Counts in too few slots rule nothing out, and what they leave takes more room than they would have.
        self._room_for_counts = max(self.room, store.most_bytes) / (2 if len(recomputed.cells[1]) else 1)
        # How far a feature is shifted to give its slot, and in how many of the sets that may have a partner the
        # features of each slot occur; no slots before these sets are many.
        self._counts = np.uint64(0), np.empty(0, np.uint8)

    def matches(self, wanted: Wanted) -> Matches:
        """Return the pairs of the exact join."""
        able, held = self._able_sets(members_of(wanted.representative))
        if held is None:
            found = self._by_candidates(able, wanted)
            if found is not None:
                return found
            held = self._held_in_a_file(np.flatnonzero(able))
        elif self.recomputed.serves_once:
            self.recomputed.close()
        self.steps.addresses[held.documents] = held.addresses
        return join_held(self.steps, held.documents, wanted)

    def _able_sets(self, members: Integers) -> tuple[Booleans, Held | None]:
        """Return which sets may have a partner, with their features; without them, but counted, if they are many."""
        rule, recomputed = self.steps.rule, self.recomputed
        self.steps.statistics["distinct_sets"] = len(members)
        chosen, able = self._mask(members) & recomputed.able(rule), np.zeros(len(self.steps.sizes), np.bool_)
        del members

        def make(documents: Integers, block: Block) -> tuple[Integers, Words]:
            able = recomputed.able_of(block, rule)
            return documents[able], _chosen(block, able)

        documents, arrays, size = list[Integers](), list[Words](), 0
        for these, features in recomputed.each(chosen, make):
            able[these] = True
            size += features.nbytes
            if len(self._counts[1]):
                count_shared(features, *recomputed.cells, *self._counts)
                continue
            documents.append(these)
            arrays.append(features)
            if size > self.room:
                share = (these[-1] + 1) / len(self.steps.sizes) if len(these) else 1.0
                self._counts = _counts(size / 8 / share, self._room_for_counts)
                for features in arrays:
                    count_shared(features, *recomputed.cells, *self._counts)
                documents, arrays = [], []
        return able, None if len(self._counts[1]) else self._held(np.flatnonzero(able), documents, arrays)

    def _mask(self, documents: Integers) -> Booleans:
        chosen = np.zeros(len(self.steps.sizes), np.bool_)
        chosen[documents] = True
        return chosen

    def _held(self, able: Integers, documents: list[Integers], arrays: list[Words]) -> Held:
        addresses = [np.empty(0, np.uint64)]
        addresses += [
            addresses_of(features, self.steps.sizes[these]) for these, features in zip(documents, arrays, strict=True)
        ]
        return Held(able, np.concatenate(addresses), arrays)

    def _held_in_a_file(self, able: Integers) -> Held:
        """Return the features of sets, in memory as far as there is room, else in a file that the system maps."""
        documents, arrays = [], []
        for these, features in self.recomputed.each(self._mask(able), _copied):
            array = self.steps.memory.array(np.uint64, len(features))
            array[:] = features
            documents.append(these)
            arrays.append(array)
            self.steps.memory.release()
        return self._held(able, documents, arrays)

    def _by_candidates(self, able: Booleans, wanted: Wanted) -> Matches | None:
        """Return the pairs without holding features but of candidates; None if these, or the pairs, are too many."""
        steps = self.steps
        with KeyFile(steps.memory) as keys:
            members, sets = self._prefixes(able, keys)
            ranks = self._candidates(sets, members < steps.own, keys, wanted)
        if ranks is None:
            return None
        pairs = members[ranks].astype(np.int64)
        del sets, members, ranks
        overlap = self.overlaps(pairs)
        pairs, overlap = pairs[overlap >= 0], overlap[overlap >= 0]
        if wanted.most_pairs is not None and len(pairs) > wanted.most_pairs:
            return None
        left, right, numbers = sorted_pairs(pairs[:, 0], pairs[:, 1], np.column_stack([overlap, steps.sizes[pairs]]))
        steps.statistics["pairs"] = len(left)
        return Matches(wanted.representative, left, right, numbers, statistics=steps.statistics)

    def _prefixes(self, able: Booleans, keys: KeyFile) -> tuple[Narrow, Sets]:
        """Return the sets that can have a partner, in order of size; their keys go to the file."""
        rule, recomputed = self.steps.rule, self.recomputed
        left, most = self._left - self._counts[1].nbytes, int(np.count_nonzero(able))
        words = next((words for words in _WORDS if most * (_A_SET + _A_WORD * words) <= left), _WORDS[-1])
        keys.room = max(left - most * (_A_SET + _A_WORD * words), _LEAST_HELD) / 2

        def make(documents: Integers, block: Block) -> tuple[npt.NDArray[Any], ...]:
            count = len(documents)
            rooms = np.empty(count, np.int64)
            prefix_rooms(block.sizes, rule, rooms)
            shared, lengths, starts = (np.empty(count, np.int64) for _ in range(3))
            bitmaps, keys = np.empty((count, 8), np.uint64), np.empty(int(rooms.sum()), np.uint64)
            results = shared, lengths, bitmaps, starts, keys, 0
            addresses = addresses_of(block.features, block.sizes)
            prefixes(addresses, block.sizes, np.arange(count), *self._counts, *recomputed.cells, rule, results)
            able = lengths >= 0
            lengths = lengths[able]
            bitmaps = np.bitwise_or.reduce(bitmaps[able].reshape(len(lengths), 8 // words, words), axis=1)
            return keys[: lengths.sum()].copy(), documents[able], shared[able], lengths, bitmaps

        found = [Column(np.int32), Column(np.int32), Column(np.int32), Column(np.uint64, words)]
        for part, *others in recomputed.each(able, make):
            keys.add(part, len(others[0]))
            for column, rows in zip(found, others, strict=True):
                column.extend(rows)
        # What counted has served, and leaves its room to what follows.
        self._counts = np.uint64(0), np.empty(0, np.uint8)
        if recomputed.serves_once:
            self._left += recomputed.nbytes
            recomputed.close()
        self.room = max(_SHARE_HELD * self._left, _LEAST_HELD)
        members, shared, lengths, bitmaps = (column.rows for column in found)
        del found
        self.steps.statistics["sets_with_enough_shared_features"] = len(members)
        order = np.argsort(self.steps.sizes[members], kind="stable")
        members = members[order]
        sets = Sets(
            np.empty(0, np.uint64),
            self.steps.sizes[members].astype(np.int32),
            shared[order],
            lengths[order],
            bitmaps[order],
            keys.close(order, lengths)[order],
            np.empty(0, np.uint64),
        )
        return members, sets

    def _candidates(self, sets: Sets, of_input: Booleans, keys: KeyFile, wanted: Wanted) -> Narrow | None:
        """Return int32[k, 2] ranks of sets that may match, the earlier first; None if they are too many.

        Where neither of two is of the input (bool[r]), they are not compared.
        """
        count = len(sets.sizes)
        ranks_of_size = np.searchsorted(sets.sizes, np.arange(sets.sizes.max(initial=0) + 2)).astype(np.int64)
        local = threading.local()

        def find(block: tuple[Narrow, Words], index: Index, asking: Sets) -> tuple[int, list[Narrow]]:
            if not hasattr(local, "scratch"):
                room = np.empty((max(count, 1), 2), np.int32)
                local.scratch = np.zeros(count, np.int32), np.empty(count, np.int64), room
            ranks, asking = block[0], asking._replace(keys=block[1])
            at, results = 0, []
            while at < len(ranks):
                at, written = list_candidates(at, ranks, asking, index, self.steps.rule, ranks_of_size, local.scratch)
                results.append(local.scratch[2][:written].copy())
            return len(ranks), results

        found, total = [np.zeros((0, 2), np.int32)], 0
        room = max(self._left - count * _A_SET - sets.bitmaps.nbytes - keys.in_memory, _LEAST_HELD)
        if self._budget < math.inf:
            # The corpus is not read meanwhile, and a larger index reads the keys less often.
            free = self._budget - resident_memory() - count * _A_SET * (self.steps.threads + 1)
            room = max(room, free)
        for index, asking in Join(self.steps).sides(sets, of_input, keys, room):
            done = 0
            work = partial(find, index=index, asking=asking)
            for looked_up, results in in_order(work, keys, self.steps.threads):
                found += results
                total += sum(map(len, results))
                done += looked_up
                if total > _MOST_CANDIDATES * max(count, 1 << 16):
                    return None
                wanted.progress(done, count)
        ranks = np.concatenate(found)
        if "index_parts" in self.steps.statistics:
            # Two sets may meet in several parts.
            both = np.unique(ranks.astype(np.int64) @ np.array([1 << 32, 1]))
            ranks = np.column_stack([both >> 32, both & 0xFFFFFFFF]).astype(np.int32)
        self.steps.statistics["candidates"] = self.steps.statistics["verified"] = len(ranks)
        return ranks

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
        groups = groups_that_fit(places, 8 * sizes[involved], self.room)
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

                for _ in in_order(verify, range(0, len(here), _PAIRS_AT_A_TIME), self.steps.threads):
                    pass
        return overlap

    def _held_by_group(self, involved: Integers, members: list[Integers], stack: ExitStack) -> Iterator[Held]:
        """Yield the features of the documents of each group, all in memory or each from a file of its own."""
        if len(members) <= 1:
            documents, arrays = [], []
            for these, features in self.recomputed.each(self._mask(involved), _copied):
                documents.append(these)
                arrays.append(features)
            yield self._held(involved, documents, arrays)
            return
        files = [stack.enter_context(scratch_file()) for _ in members]

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

        for parts in self.recomputed.each(self._mask(involved), make):
            for number, features in parts:
                append(features, files[number], self.steps.memory)
        largest = max(file.tell() for file in files)
        room = np.empty(largest // 8, np.uint64)
        for places, file in zip(members, files, strict=True):
            features = room[: file.tell() // 8]
            read(file, 0, features, self.steps.memory)
            file.close()
            own = involved[places]
            yield Held(own, addresses_of(features, self.steps.sizes[own]), [features])


def _counts(expected: float, most_bytes: float) -> tuple[np.uint64, npt.NDArray[np.uint8]]:
    """Return counts of none, for so many features in at most so many bytes."""
    bits = FEWEST_BITS
    while bits < int(expected).bit_length() and 2 << bits <= most_bytes:
        bits += 1
    return np.uint64(64 - bits), np.zeros(1 << bits, np.uint8)


class KeyFile:
    """The keys of prefixes in blocks: in memory where there is room for all, else in a file that is read in order.

    Some in memory would save less than they cost: what is left for the index says how often all of them are read.

    Parameters
    ----------
    memory : Memory
        Counts what goes to the file.

    Attributes
    ----------
    room : float
        Bytes that stay in memory at most.
    in_memory : int
        Bytes that do.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory, self.room, self.in_memory = memory, 0.0, 0
        self._waiting, self._waiting_keys = [np.empty(0, np.uint64)], 0
        self._blocks: list[Words | tuple[int, int]] = []
        self._ends, self._ranks, self._sets = [0], np.empty(0, np.int32), 0
        self._file = scratch_file()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()
        self._blocks = []

    def add(self, keys: Words, sets: int) -> None:
        """Add the keys of so many sets more."""
        self._waiting.append(keys)
        self._waiting_keys += len(keys)
        self._sets += sets
        if self._waiting_keys >= _KEYS_AT_A_TIME:
            self._close_block()

    def _close_block(self) -> None:
        block = np.concatenate(self._waiting)
        self._waiting, self._waiting_keys = [np.empty(0, np.uint64)], 0
        self._ends.append(self._sets)
        self._blocks.append(block)
        self.in_memory += block.nbytes
        if self.in_memory > self.room:
            for place, held in enumerate(self._blocks):
                if not isinstance(held, tuple):
                    self._blocks[place] = self._file.tell(), len(held)
                    append(held, self._file, self._memory)
            self.room = self.in_memory = 0

    def close(self, order: Integers, lengths: Narrow) -> Narrow:
        """End the last block; return where in its block the keys of each set begin: int32[r].

        Parameters
        ----------
        order : int64[r]
            The sets as they were added, by rank.
        lengths : int32[r]
            The number of keys of each, as they were added.
        """
        self._close_block()
        self._ranks = np.empty(len(order), np.int32)
        self._ranks[order] = np.arange(len(order), dtype=np.int32)
        starts = np.empty(len(order), np.int32)
        for begin, end in pairwise(self._ends):
            ends = np.cumsum(lengths[begin:end])
            starts[begin:end] = ends - lengths[begin:end]
        return starts

    def __iter__(self) -> Iterator[tuple[Narrow, Words]]:
        """Yield the ranks of the sets of each block, and their keys."""
        for block, (begin, end) in zip(self._blocks, pairwise(self._ends), strict=True):
            if isinstance(block, tuple):
                keys = np.empty(block[1], np.uint64)
                read(self._file, block[0], keys, self._memory)
            else:
                keys = block
            yield self._ranks[begin:end], keys


def _copied(documents: Integers, block: Block) -> tuple[Integers, Words]:
    return documents, block.features.copy()


def _chosen(block: Block, chosen: npt.NDArray[np.bool_]) -> Words:
    features = np.empty(int(block.sizes[chosen].sum()), np.uint64)
    chosen_sets(block.features, block.sizes, chosen, features)
    return features
