"""The exact join where features are not kept: they are made again for the sets that may have a partner, and verified.

The counts of pass one rule most sets out. Of the others a pass holds the features, as far as there is room; then the
join is the one of ``neardup.search.join``. Otherwise a pass leaves their prefixes and bitmaps, the join lists
candidates, and another pass makes the features of these alone: those that may match are verified together, in groups
that fit, each from a file that is read once.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from io import BufferedRandom
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.errors import OutputError
from neardup.features.recomputed import BoundedStore, Recomputed
from neardup.features.store import Block, Column, addresses_of
from neardup.kernels.counts import chosen_sets, count_features, prefix_rooms, prefixes
from neardup.kernels.prefixes import Sets, list_candidates, overlaps_of_pairs
from neardup.recipe.measures import Rule
from neardup.runtime import in_order
from neardup.search.join import FEWEST_BITS, SETS_AT_A_TIME, Join, Prefixes, Steps, Wanted, join_held
from neardup.search.matches import Matches, equal_sets, groups_that_fit, members_of, sorted_pairs

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

#: Which share of the room the features of one step may take.
_SHARE_HELD = 0.4
#: However little room there is, features of so many bytes are held at once.
_LEAST_HELD = 1 << 24
#: More candidates than this for each set are not listed: the features are held in a file instead.
_MOST_CANDIDATES = 64
_PAIRS_AT_A_TIME = 1 << 16


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
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Matches:
    """Find the pairs that ``neardup.search.join.self_join`` finds, of sets that are not held.

    Parameters
    ----------
    store : BoundedStore
        What is known of the documents.
    recomputed : Recomputed
        What pass one left of their features.
    rule, threads, excluded, keep_order, most_pairs, with_kept, progress
        As for ``self_join``.
    """
    wanted = Wanted(equal_sets(store, excluded), keep_order, most_pairs, with_kept, progress)
    found = Passes(store, recomputed, rule, threads).matches(wanted)
    found.statistics["passes_over_the_input"] = recomputed.passes
    return found


class Passes:
    """The passes of one search; the parameters are those of ``recomputed_join``.

    Attributes
    ----------
    room : float
        Bytes of features that a step holds at once.
    """

    def __init__(self, store: BoundedStore, recomputed: Recomputed, rule: Rule, threads: int) -> None:
        self.recomputed = recomputed
        self.steps = Steps(np.zeros(len(store), np.uint64), store.sizes, rule, threads, store.memory)
        self.room = max(min(_SHARE_HELD * (store.room - recomputed.cell_bytes), store.most_bytes), _LEAST_HELD)
        # Counts in too few slots rule nothing out, and what they leave takes more room than they would have.
        self.room_for_counts = max(self.room, store.most_bytes) / 2

    def matches(self, wanted: Wanted) -> Matches:
        """Return the pairs of the exact join."""
        able, held, counts = self._able_sets(members_of(wanted.representative))
        if self.recomputed.serves_once:
            self.recomputed.close()
        if held is None:
            found = self._by_candidates(able, counts, wanted)
            if found is not None:
                return found
            held = self._held_in_a_file(able)
        self.steps.addresses[held.documents] = held.addresses
        return join_held(self.steps, held.documents, wanted)

    def _able_sets(self, members: Integers) -> tuple[Integers, Held | None, _Counts]:
        """Return the sets that may have a partner with their features, or with the counts of these if they are many."""
        rule, recomputed = self.steps.rule, self.recomputed
        self.steps.statistics["distinct_sets"] = len(members)

        def make(documents: Integers, block: Block) -> tuple[Integers, Words]:
            able = recomputed.able(block, rule)
            return documents[able], _chosen(block, able)

        documents: list[Integers] = [np.empty(0, np.int64)]
        arrays: list[Words] = []
        size = 0
        counts = _Counts()
        for these, features in recomputed.each(self._mask(members), make):
            documents.append(these)
            size += features.nbytes
            if counts.is_open:
                counts.add(features, self.steps.sizes[these])
                continue
            arrays.append(features)
            if size > self.room:
                share = (these[-1] + 1) / len(self.steps.sizes) if len(these) else 1.0
                counts.open(size / 8 / share, self.room_for_counts)
                for before, features in zip(documents[1:], arrays, strict=True):
                    counts.add(features, self.steps.sizes[before])
                arrays.clear()
        able = np.concatenate(documents)
        return able, None if counts.is_open else self._held(able, documents[1:], arrays), counts

    def _mask(self, documents: Integers) -> npt.NDArray[np.bool_]:
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

    def _by_candidates(self, able: Integers, counts: _Counts, wanted: Wanted) -> Matches | None:
        """Return the pairs without holding features but of candidates; None if these, or the pairs, are too many."""
        steps = self.steps
        members, prefix = self._prefixes(able, counts)
        steps.statistics["sets_with_enough_shared_features"] = len(members)
        order = np.argsort(steps.sizes[members], kind="stable")
        sets = Join(steps).sets(members, prefix, order)
        members = members[order]
        del prefix, order
        ranks = self._candidates(sets, wanted)
        if ranks is None:
            return None
        pairs = members[ranks]
        overlap = self.overlaps(pairs, groups_that_fit(ranks, sets.sizes * 8, self.room))
        pairs, overlap = pairs[overlap >= 0], overlap[overlap >= 0]
        if wanted.most_pairs is not None and len(pairs) > wanted.most_pairs:
            return None
        left, right, numbers = sorted_pairs(pairs[:, 0], pairs[:, 1], np.column_stack([overlap, steps.sizes[pairs]]))
        steps.statistics["pairs"] = len(left)
        return Matches(wanted.representative, left, right, numbers, statistics=steps.statistics)

    def _prefixes(self, able: Integers, counts: _Counts) -> tuple[Integers, Prefixes]:
        rule = self.steps.rule

        def make(documents: Integers, block: Block) -> tuple[npt.NDArray[Any], ...]:
            count = len(documents)
            rooms = np.empty(count, np.int64)
            prefix_rooms(block.sizes, rule, rooms)
            shared, lengths, starts = (np.empty(count, np.int64) for _ in range(3))
            bitmaps, keys = np.empty((count, 8), np.uint64), np.empty(int(rooms.sum()), np.uint64)
            results = shared, lengths, bitmaps, starts, keys, 0
            addresses = addresses_of(block.features, block.sizes)
            prefixes(addresses, block.sizes, np.arange(count), counts.shift, counts.table, rule, results)
            able = lengths >= 0
            lengths = lengths[able]
            return documents[able], shared[able], lengths, bitmaps[able], keys[: lengths.sum()].copy()

        found = [Column(np.int64), Column(np.int64), Column(np.int64), Column(np.uint64, 8), Column(np.uint64)]
        for part in self.recomputed.each(self._mask(able), make):
            for column, rows in zip(found, part, strict=True):
                column.extend(rows)
        counts.close()
        documents, shared, lengths, bitmaps, keys = (column.rows for column in found)
        return documents, Prefixes(shared, lengths, bitmaps, np.cumsum(lengths) - lengths, keys)

    def _candidates(self, sets: Sets, wanted: Wanted) -> npt.NDArray[np.int32] | None:
        """Return int32[k, 2] ranks of sets that may match, the earlier first; None if they are too many."""
        index = Join(self.steps).index(sets)
        count = len(sets.sizes)
        ranks_of_size = np.searchsorted(sets.sizes, np.arange(sets.sizes.max(initial=0) + 2)).astype(np.int64)

        def find(begin: int) -> list[npt.NDArray[np.int32]]:
            scratch = np.zeros(count, np.int32), np.empty(count, np.int64), np.empty((max(count, 1), 2), np.int32)
            end, results = min(begin + most, count), []
            while begin < end:
                begin, written = list_candidates(begin, end, sets, index, self.steps.rule, ranks_of_size, scratch)
                results.append(scratch[2][:written].copy())
            return results

        # Each piece of work clears a counter for each set: few pieces, several for a thread.
        most = max(SETS_AT_A_TIME, -(-count // (8 * self.steps.threads)))
        found, total = [np.zeros((0, 2), np.int32)], 0
        for number, results in enumerate(in_order(find, range(0, count, most), self.steps.threads), 1):
            found += results
            total += sum(map(len, results))
            if total > _MOST_CANDIDATES * max(count, 1 << 16):
                return None
            wanted.progress(min(number * most, count), count)
        self.steps.memory.give_back(index.entries)
        self.steps.statistics["candidates"] = self.steps.statistics["verified"] = total
        return np.concatenate(found)

    def overlaps(self, pairs: Integers, groups: Integers) -> Integers:
        """Return the overlap of each candidate pair, -1 where it does not match.

        Parameters
        ----------
        pairs : int64[k, 2]
            Documents.
        groups : int64[k]
            From ``groups_that_fit``.
        """
        sizes = self.steps.sizes
        overlap = np.empty(len(pairs), np.int64)
        involved = np.unique(pairs)
        group_of = np.empty(len(sizes), np.int32)
        group_of[pairs[:, 1]] = group_of[pairs[:, 0]] = groups
        count = int(groups.max(initial=-1)) + 1
        with ExitStack() as files:
            for group, held in enumerate(self._held_by_group(involved, group_of[involved], count, files)):
                addresses = np.zeros(len(sizes), np.uint64)
                addresses[held.documents] = held.addresses
                here = np.flatnonzero(groups == group) if count > 1 else np.arange(len(pairs))
                here = here[np.argsort(pairs[here, 1], kind="stable")]

                def verify(begin: int, here: Integers = here, addresses: Words = addresses) -> None:
                    part = here[begin : begin + _PAIRS_AT_A_TIME]
                    result = np.empty(len(part), np.int64)
                    overlaps_of_pairs(pairs[part, 0], pairs[part, 1], addresses, sizes, self.steps.rule, result)
                    overlap[part] = result

                for _ in in_order(verify, range(0, len(here), _PAIRS_AT_A_TIME), self.steps.threads):
                    pass
        return overlap

    def _held_by_group(
        self, involved: Integers, group_of: npt.NDArray[np.int32], count: int, stack: ExitStack
    ) -> Iterator[Held]:
        """Yield the features of the documents of each group, all in memory or each from a file of its own."""
        if count <= 1:
            documents, arrays = [], []
            for these, features in self.recomputed.each(self._mask(involved), _copied):
                documents.append(these)
                arrays.append(features)
            yield self._held(involved, documents, arrays)
            return
        files = [stack.enter_context(_file()) for _ in range(count)]
        group = np.empty(len(self.steps.sizes), np.int32)
        group[involved] = group_of

        def make(documents: Integers, block: Block) -> list[tuple[int, Words]]:
            own = group[documents]
            return [(number, _chosen(block, own == number)) for number in np.unique(own).tolist()]

        try:
            for parts in self.recomputed.each(self._mask(involved), make):
                for number, features in parts:
                    files[number].write(features.data)
                    self.steps.memory.spilled_bytes += features.nbytes
            for file in files:
                file.flush()
        except OSError as error:
            raise OutputError(
                f"{self.steps.memory.spilled_bytes:,} bytes of features beyond the memory budget do not fit into "
                f"{tempfile.gettempdir()} ({error.strerror}); free space there, set TMPDIR to a larger place or give "
                "more memory"
            ) from None
        largest = max(os.fstat(file.fileno()).st_size for file in files)
        features = np.empty(largest // 8, np.uint64)
        for number, file in enumerate(files):
            file.seek(0)
            file.readinto(features.view(np.uint8).data)
            file.close()
            documents = involved[group_of == number]
            yield Held(documents, addresses_of(features, self.steps.sizes[documents]), [features])


class _Counts:
    """In how many sets each feature occurs, of those that may have a partner; it is opened when they are many."""

    def __init__(self) -> None:
        self.table = np.empty(0, np.uint8)
        self.shift = np.uint64(0)

    @property
    def is_open(self) -> bool:
        return len(self.table) > 0

    def open(self, expected: float, most_bytes: float) -> None:
        bits = FEWEST_BITS
        while bits < int(expected).bit_length() and 2 << bits <= most_bytes:
            bits += 1
        self.table, self.shift = np.zeros(1 << bits, np.uint8), np.uint64(64 - bits)

    def add(self, features: Words, sizes: Integers) -> None:
        count_features(addresses_of(features, sizes), sizes, np.arange(len(sizes)), self.shift, self.table)

    def close(self) -> None:
        self.table = np.empty(0, np.uint8)


def _file() -> BufferedRandom:
    return tempfile.TemporaryFile(prefix="neardup-")


def _copied(documents: Integers, block: Block) -> tuple[Integers, Words]:
    return documents, block.features.copy()


def _chosen(block: Block, chosen: npt.NDArray[np.bool_]) -> Words:
    features = np.empty(int(block.sizes[chosen].sum()), np.uint64)
    chosen_sets(block.features, block.sizes, chosen, features)
    return features
