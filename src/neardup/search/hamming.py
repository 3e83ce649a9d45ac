"""Every pair of 64-bit values within a Hamming distance, through permuted blocks of bits.

Two values that differ in at most k of 64 bits, cut into b blocks, agree in b - k blocks at least. So for each choice
of b - k blocks these are moved to the front, the values are sorted, and those with equal fronts compared. A pair is
reported at the choice of the first b - k blocks in which it agrees, hence once (Manku, Jain & Das Sarma, WWW 2007,
3.1). Bits that are the same in all values are left out first; where many values have the same front, they are
searched once more by their other bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.errors import InputError, RecipeError
from neardup.kernels.hamming import expand_group_pairs, pairs_within_distance, rearrange_bits
from neardup.runtime import map_in_order

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

BITS = 64
#: What it costs to move and sort a value, in comparisons of two values.
_COST_OF_SORTING = 200
#: More choices of blocks than this are never made.
_MOST_TABLES = 10_000
#: Rows that are compared with all others in one piece of work.
_ROWS_AT_A_TIME = 1024
#: Longer runs of equal fronts are searched by their other bits.
_LONGEST_RUN = 4096
_ROOM_FOR_PAIRS = 1 << 12
_MOST_VALUES = 1 << 32
_NO_PAIRS = np.empty((0, 2), np.int64)


class BlockPlan(NamedTuple):
    """How pairs are searched for.

    Attributes
    ----------
    blocks : int
        Blocks that the bits are cut into; 0 when all values are compared with all.
    tables : int
        Choices of blocks, each a sorted copy of the values.
    key_bits : int
        Bits that a choice brings to the front, at least.
    comparisons : int
        Comparisons of two values to expect, for values at random.
    """

    blocks: int
    tables: int
    key_bits: int
    comparisons: int


class NearPairs(NamedTuple):
    """Pairs within a distance, sorted by left and right, each once: int64[p] each, left < right."""

    left: Integers
    right: Integers
    distance: Integers


def plan_blocks(n: int, k: int, bits: int = BITS) -> BlockPlan:
    """Return the cheapest search for the pairs within k bits among n distinct values.

    Parameters
    ----------
    n : int
        Distinct values. More of them want more key bits.
    k : int
        The largest distance, 0 to 63. Raising it wants more tables, until comparing all with all is cheapest.
    bits : int
        The bits that values have.

    Raises
    ------
    RecipeError
        If k is out of range.
    """
    if not 0 <= k < BITS:
        raise RecipeError(f"Hamming distance {k} is outside 0..63; 64-bit values are near from 0 to about 10")
    pairs = n * (n - 1) // 2
    best, least = BlockPlan(0, 0, 0, pairs), float(pairs)
    for blocks in range(k + 1, bits + 1):
        tables = math.comb(blocks, k)
        if tables > _MOST_TABLES:
            break
        width, wider = divmod(bits, blocks)
        comparisons = 0.0
        for wide in range(max(0, wider - k), min(wider, blocks - k) + 1):
            many = math.comb(wider, wide) * math.comb(blocks - wider, blocks - k - wide)
            comparisons += many * pairs / 2.0 ** (width * (blocks - k) + wide)
        cost = comparisons + tables * n * _COST_OF_SORTING
        if cost < least:
            key_bits = width * (blocks - k) + max(0, wider - k)
            best, least = BlockPlan(blocks, tables, key_bits, round(comparisons)), cost
    return best


def hamming_pairs(
    values: Words,
    k: int,
    threads: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> NearPairs:
    """Find every pair i < j of values that differ in at most k bits, equal ones among them.

    Parameters
    ----------
    values : uint64[n]
        The values, SimHashes for instance; equal ones are compared once.
    k : int
        The largest distance, 0 to 63; 3 finds near-duplicates among SimHashes [Manku 2007, 5]. Raising it finds more
        pairs, slower.
    threads : int
        Changes the time, never the answer.
    progress : callable
        Told (tables or pieces done, all of them) from time to time.

    Raises
    ------
    RecipeError
        If k is out of range.
    InputError
        If the values are not an array of uint64, or more than 2**32.
    """
    values = _checked(values)
    order = np.argsort(values)
    ordered = values[order]
    first = np.ones(len(values), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    starts = np.append(np.flatnonzero(first), len(values))
    distinct = ordered[starts[:-1]]
    work = _work(distinct, k, _LONGEST_RUN)
    several = np.flatnonzero(np.diff(starts) > 1)
    found = [np.stack([several, several], axis=1)]
    for number, pairs in enumerate(map_in_order(lambda piece: piece.near(), work, threads), 1):
        found.append(pairs)
        progress(number, len(work))
    return _of_members(np.concatenate(found), distinct, starts, order)


def _checked(values: Words) -> Words:
    if not isinstance(values, np.ndarray) or values.dtype != np.uint64 or values.ndim != 1:
        what = f"{values.dtype}[{values.ndim}-d]" if isinstance(values, np.ndarray) else type(values).__name__
        raise InputError(f"values of kind {what} cannot be compared bit by bit; give a one-dimensional uint64 array")
    if len(values) > _MOST_VALUES:
        raise InputError(f"{len(values):,} values are more than 2**32; search them in parts")
    return np.ascontiguousarray(values)


def _of_members(groups: Integers, distinct: Words, starts: Integers, members: Integers) -> NearPairs:
    """Return the pairs of values from pairs of groups of equal ones."""
    distances = np.bitwise_count(distinct[groups[:, 0]] ^ distinct[groups[:, 1]]).astype(np.int64)
    sizes = np.diff(starts)
    a, b = sizes[groups[:, 0]], sizes[groups[:, 1]]
    total = int(np.where(groups[:, 0] == groups[:, 1], a * (a - 1) // 2, a * b).sum())
    left, right, distance = (np.empty(total, np.int64) for _ in range(3))
    expand_group_pairs(groups, distances, starts, members, left, right, distance)
    sequence = np.argsort(left.astype(np.uint64) * np.uint64(len(members)) + right.astype(np.uint64))
    return NearPairs(left[sequence], right[sequence], distance[sequence])


def _work(values: Words, k: int, longest: int) -> list[_Rows | _Table]:
    """Return the pieces of work that together find all pairs of sorted distinct values."""
    values, bits = _without_constant_bits(values)
    blocks = plan_blocks(len(values), k, bits).blocks
    if blocks:
        return list(_tables(values, k, bits, blocks, longest))
    return [_Rows(values, begin, k) for begin in range(0, len(values), _ROWS_AT_A_TIME)]


def _without_constant_bits(values: Words) -> tuple[Words, int]:
    """Return values with the bits that are the same in all taken out, in the same order, and how many are left."""
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
    kept = np.empty_like(values)
    rearrange_bits(values, np.array(moves, np.uint64).reshape(-1, 3), kept)
    return kept, place


class _Search(NamedTuple):
    """What pairs of values must be: alike in the front, different in each block left out, within k bits."""

    front: int
    left_out: Words
    k: int

    def among(self, values: Words, begin: int, end: int, longest: int) -> Integers:
        """Return int64[p, 2], the pairs i < j with i in [begin, end), but for runs of equal fronts that are longer."""
        found = [_NO_PAIRS]
        pairs = np.empty((_ROOM_FOR_PAIRS, 2), np.int64)
        while begin < end:
            begin, written = pairs_within_distance(
                values, begin, end, np.uint64(self.front), self.left_out, self.k, longest, pairs
            )
            found.append(pairs[:written].copy())
            if begin < end and written < len(pairs) // 2:
                pairs = np.empty((2 * len(pairs), 2), np.int64)
        return np.concatenate(found)


class _Rows(NamedTuple):
    """Some of the values, to be compared with all behind them."""

    values: Words
    begin: int
    k: int

    def near(self) -> Integers:
        """Return int64[p, 2], the pairs of these rows within k bits."""
        end = min(self.begin + _ROWS_AT_A_TIME, len(self.values))
        return _Search(0, np.empty(0, np.uint64), self.k).among(self.values, self.begin, end, len(self.values))


class _Table(NamedTuple):
    """One choice of blocks: what is moved where, the bits behind the front, what pairs must be.

    Runs of equal fronts up to the longest are compared all with all.
    """

    values: Words
    moves: Words
    rest: int
    search: _Search
    longest: int

    def near(self) -> Integers:
        """Return int64[p, 2], the pairs of values (sorted ones, by place) that this choice reports."""
        moved = np.empty_like(self.values)
        rearrange_bits(self.values, self.moves, moved)
        moved.sort()
        found = [self.search.among(moved, 0, len(moved), self.longest)]
        found += [self._in_run(moved, begin, end) for begin, end in self._long_runs(moved)]
        pairs = np.concatenate(found)
        back = np.empty(pairs.size, np.uint64)
        rearrange_bits(moved[pairs.ravel()], np.ascontiguousarray(self.moves[:, [1, 0, 2]]), back)
        return np.searchsorted(self.values, back).reshape(-1, 2)

    def _long_runs(self, moved: Words) -> list[tuple[int, int]]:
        fronts = moved >> np.uint64(self.rest)
        bounds = np.concatenate([[0], np.flatnonzero(fronts[1:] != fronts[:-1]) + 1, [len(moved)]])
        long = np.flatnonzero(np.diff(bounds) > self.longest)
        return list(zip(bounds[long].tolist(), bounds[long + 1].tolist(), strict=True))

    def _in_run(self, moved: Words, begin: int, end: int) -> Integers:
        run = moved[begin:end]
        work = _work(run, self.search.k, len(run))
        pairs = np.concatenate([_NO_PAIRS, *(piece.near() for piece in work)])
        difference = run[pairs[:, 0]] ^ run[pairs[:, 1]]
        new = np.all(difference[:, None] & self.search.left_out != 0, axis=1)
        return pairs[new] + begin


def _tables(values: Words, k: int, bits: int, blocks: int, longest: int) -> Iterator[_Table]:
    """Yield every choice of blocks - k blocks."""
    width, wider = divmod(bits, blocks)
    widths = [width + 1] * wider + [width] * (blocks - wider)
    ends = [sum(widths[: block + 1]) for block in range(blocks)]
    for chosen in combinations(range(blocks), blocks - k):
        others = [block for block in range(blocks) if block not in chosen]
        moves, left_out, place = [], [], bits
        for block in [*chosen, *others]:
            place -= widths[block]
            mask = (1 << widths[block]) - 1
            moves.append((bits - ends[block], place, mask))
            if block in others and block < chosen[-1]:
                left_out.append(mask << place)
        rest = sum(widths[block] for block in others)
        front = ((1 << bits) - 1) ^ ((1 << rest) - 1)
        search = _Search(front, np.array(left_out, np.uint64), k)
        yield _Table(values, np.array(moves, np.uint64), rest, search, longest)
