"""Every pair of 64-bit values within a Hamming distance, through permuted blocks of bits.

Two values that differ in at most k of 64 bits, cut into b blocks, agree in at least b - k blocks. So for each choice
of b - k blocks, these are moved to the front, the values are sorted, and values with equal fronts are compared. A pair
is reported only for the choice of the first b - k blocks in which it agrees, hence once (Manku, Jain & Das Sarma, WWW
2007, 3.1). Bits that are the same in all values are left out first. Many values with the same front are searched once
more by their other bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from neardup.errors import InputError
from neardup.kernels import Integers, Words
from neardup.kernels.hamming import expand_group_pairs, pairs_within_distance, rearrange_bits
from neardup.runtime import map_in_order

BITS = 64
#: The cost of moving and sorting a value, in comparisons of two values.
_SORT_COST = 200
#: The maximum number of choices of blocks.
_MAX_TABLES = 10_000
#: Rows that are compared with all later ones in one piece of work.
_ROWS_PER_PIECE = 1024
#: Longer runs of equal fronts are searched by their other bits.
_MAX_RUN = 4096
#: The first capacity for pairs.
_CAPACITY = 1 << 12
_MAX_VALUES = 1 << 32
_NO_PAIRS = np.empty((0, 2), np.int64)


class NearPairs(NamedTuple):
    """Pairs within a distance, sorted by left and right, each once: int64[p] each, left < right."""

    left: Integers
    right: Integers
    distance: Integers


def _cheapest_blocks(n: int, k: int, bits: int) -> int:
    """Return into how many blocks to cut the bits of n distinct values; 0 if comparing all with all is cheapest."""
    pairs = n * (n - 1) // 2
    best, best_cost = 0, float(pairs)
    for blocks in range(k + 1, bits + 1):
        tables = math.comb(blocks, k)
        if tables > _MAX_TABLES:
            break
        # The first ``wide`` blocks are one bit wider than the others.
        width, wide = divmod(bits, blocks)
        comparisons = 0.0
        for chosen_wide in range(max(0, wide - k), min(wide, blocks - k) + 1):
            choices = math.comb(wide, chosen_wide) * math.comb(blocks - wide, blocks - k - chosen_wide)
            comparisons += choices * pairs / 2.0 ** (width * (blocks - k) + chosen_wide)
        cost = comparisons + tables * n * _SORT_COST
        if cost < best_cost:
            best, best_cost = blocks, cost
    return best


def hamming_pairs(
    values: Words,
    k: int,
    threads: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> NearPairs:
    """Find every pair i < j of values (uint64[n]) that differ in at most k bits, pairs of equal values included.

    k: 0 to 63; 3 finds near-duplicates among SimHashes [Manku 2007, 5]; raising it finds more pairs, slower. progress
    is called with (pieces of work done, their total). Raises ``InputError`` if the values are more than 2**32.
    """
    if len(values) > _MAX_VALUES:
        raise InputError(f"{len(values):,} values are more than 2**32; search them in parts")
    order = np.argsort(values)
    ordered = values[order]
    is_first = np.ones(len(values), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    starts = np.append(np.flatnonzero(is_first), len(values))
    distinct = ordered[starts[:-1]]
    pieces = _pieces(distinct, k, _MAX_RUN)
    repeated = np.flatnonzero(np.diff(starts) > 1)
    found = [np.stack([repeated, repeated], axis=1)]
    for number, pairs in enumerate(map_in_order(lambda piece: piece.pairs(), pieces, threads), 1):
        found.append(pairs)
        progress(number, len(pieces))
    return _expand_groups(np.concatenate(found), distinct, starts, order)


def _expand_groups(groups: Integers, distinct: Words, starts: Integers, members: Integers) -> NearPairs:
    """Return the pairs of values, given the pairs of groups of equal values."""
    distances = np.bitwise_count(distinct[groups[:, 0]] ^ distinct[groups[:, 1]]).astype(np.int64)
    sizes = np.diff(starts)
    a, b = sizes[groups[:, 0]], sizes[groups[:, 1]]
    total = int(np.where(groups[:, 0] == groups[:, 1], a * (a - 1) // 2, a * b).sum())
    left, right, distance = (np.empty(total, np.int64) for _ in range(3))
    expand_group_pairs(groups, distances, starts, members, left, right, distance)
    sequence = np.argsort(left.astype(np.uint64) * np.uint64(len(members)) + right.astype(np.uint64))
    return NearPairs(left[sequence], right[sequence], distance[sequence])


def _pieces(values: Words, k: int, max_run: int) -> list[_RowBlock | _Table]:
    """Return the pieces of work that together find all pairs of sorted distinct values."""
    values, bits = _without_constant_bits(values)
    if blocks := _cheapest_blocks(len(values), k, bits):
        return list(_tables(values, k, bits, blocks, max_run))
    return [_RowBlock(values, begin, k) for begin in range(0, len(values), _ROWS_PER_PIECE)]


def _without_constant_bits(values: Words) -> tuple[Words, int]:
    """Return the values without the bits that are the same in all, in the same order, and the number of bits left."""
    varying = int(np.bitwise_or.reduce(values ^ values[:1])) if len(values) else 0
    if varying == (1 << BITS) - 1:
        return values, BITS
    moves, place, source = [], 0, 0
    while varying >> source:
        if varying >> source & 1:
            width = ((varying >> source) ^ (varying >> source) + 1).bit_length() - 1
            moves.append((source, place, (1 << width) - 1))
            place += width
            source += width
        else:
            source += 1
    varying_values = np.empty_like(values)
    rearrange_bits(values, np.array(moves, np.uint64).reshape(-1, 3), varying_values)
    return varying_values, place


def _pairs(values: Words, begin: int, end: int, front: int, skipped_blocks: Words, k: int, max_run: int) -> Integers:
    """Return int64[p, 2], the results of ``pairs_within_distance``."""
    found = [_NO_PAIRS]
    pairs = np.empty((_CAPACITY, 2), np.int64)
    while begin < end:
        begin, written = pairs_within_distance(values, begin, end, np.uint64(front), skipped_blocks, k, max_run, pairs)
        found.append(pairs[:written].copy())
        if begin < end and written < len(pairs) // 2:
            pairs = np.empty((2 * len(pairs), 2), np.int64)
    return np.concatenate(found)


class _RowBlock(NamedTuple):
    """A range of the values, to be compared with all later ones."""

    values: Words
    begin: int
    k: int

    def pairs(self) -> Integers:
        """Return int64[p, 2], the pairs of these rows within k bits."""
        end = min(self.begin + _ROWS_PER_PIECE, len(self.values))
        return _pairs(self.values, self.begin, end, 0, np.empty(0, np.uint64), self.k, len(self.values))


class _Table(NamedTuple):
    """One choice of blocks: moves of bits, the bits behind the front, and blocks in which a pair must differ.

    Runs of equal fronts of at most ``max_run`` values are compared all with all.
    """

    values: Words
    moves: Words
    tail_bits: int
    front: int
    skipped_blocks: Words
    k: int
    max_run: int

    def pairs(self) -> Integers:
        """Return int64[p, 2], the pairs of places of sorted values that this choice reports."""
        moved = np.empty_like(self.values)
        rearrange_bits(self.values, self.moves, moved)
        moved.sort()
        found = [_pairs(moved, 0, len(moved), self.front, self.skipped_blocks, self.k, self.max_run)]
        found += [self._pairs_in_run(moved, begin, end) for begin, end in self._long_runs(moved)]
        pairs = np.concatenate(found)
        restored = np.empty(pairs.size, np.uint64)
        rearrange_bits(moved[pairs.ravel()], np.ascontiguousarray(self.moves[:, [1, 0, 2]]), restored)
        return np.searchsorted(self.values, restored).reshape(-1, 2)

    def _long_runs(self, moved: Words) -> list[tuple[int, int]]:
        fronts = moved >> np.uint64(self.tail_bits)
        bounds = np.concatenate([[0], np.flatnonzero(fronts[1:] != fronts[:-1]) + 1, [len(moved)]])
        is_long = np.flatnonzero(np.diff(bounds) > self.max_run)
        return list(zip(bounds[is_long].tolist(), bounds[is_long + 1].tolist(), strict=True))

    def _pairs_in_run(self, moved: Words, begin: int, end: int) -> Integers:
        run = moved[begin:end]
        pairs = np.concatenate([_NO_PAIRS, *(piece.pairs() for piece in _pieces(run, self.k, len(run)))])
        difference = run[pairs[:, 0]] ^ run[pairs[:, 1]]
        is_new = np.all(difference[:, None] & self.skipped_blocks != 0, axis=1)
        return pairs[is_new] + begin


def _tables(values: Words, k: int, bits: int, blocks: int, max_run: int) -> Iterator[_Table]:
    """Yield every choice of blocks - k blocks."""
    width, wide = divmod(bits, blocks)
    widths = [width + 1] * wide + [width] * (blocks - wide)
    ends = [sum(widths[: block + 1]) for block in range(blocks)]
    for chosen in combinations(range(blocks), blocks - k):
        tail = [block for block in range(blocks) if block not in chosen]
        moves, skipped_blocks, place = [], [], bits
        for block in [*chosen, *tail]:
            place -= widths[block]
            mask = (1 << widths[block]) - 1
            moves.append((bits - ends[block], place, mask))
            if block in tail and block < chosen[-1]:
                skipped_blocks.append(mask << place)
        tail_bits = sum(widths[block] for block in tail)
        front = ((1 << bits) - 1) ^ ((1 << tail_bits) - 1)
        blocks_to_differ = np.array(skipped_blocks, np.uint64)
        yield _Table(values, np.array(moves, np.uint64), tail_bits, front, blocks_to_differ, k, max_run)
