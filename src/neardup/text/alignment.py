"""What two sequences have in common: in the same order, and anywhere.

``matching_blocks`` aligns two texts in order, for side-by-side views, explanations and templates. ``SuffixAutomaton``
finds the passages that two texts share, in any order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from neardup.kernels import Words

#: A region is aligned by longest common subsequence if the product of its two lengths is at most this.
_MAX_LCS_AREA = 1 << 26
#: Words per anchor in larger regions: long anchors are tried first.
_ANCHOR_LENGTHS = (12, 5, 2, 1)
#: An odd number whose powers spread hashes of runs over 64 bits: 2^64 divided by the golden ratio.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
#: How often the words between two anchors are searched for anchors of their own.
_MAX_DEPTH = 16


class MatchingBlock(NamedTuple):
    """A run of equal words: its start in both texts, and its length."""

    left: int
    right: int
    length: int


class _Region(NamedTuple):
    """The words left[i:j] and right[k:m], to be aligned."""

    i: int
    j: int
    k: int
    m: int


def matching_blocks(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[MatchingBlock]:
    """Return the runs of equal words that are in the same order on both sides, each as long as possible.

    Similar or short sequences are aligned by a longest common subsequence. In long ones, runs that occur once on each
    side serve as anchors, and the words between anchors are aligned in turn [patience diff, Cohen 2008]. A long region
    without anchors counts as all different.
    """
    numbers: dict[Hashable, int] = {}
    left_numbers, right_numbers = ([numbers.setdefault(word, len(numbers)) for word in side] for side in (left, right))
    return _merge_adjacent(_align(left_numbers, right_numbers))


def _align(left: list[int], right: list[int]) -> Iterator[MatchingBlock]:
    pending = [(_Region(0, len(left), 0, len(right)), 0)]
    while pending:
        region, depth = pending.pop()
        head, inner, tail = _trim_equal_ends(left, right, region)
        if head.length:
            yield head
        # A stack: the tail is pushed first, so that it is aligned last.
        if tail.length:
            end = tail.left + tail.length, tail.right + tail.length
            pending.append((_Region(tail.left, end[0], tail.right, end[1]), depth))
        i, j, k, m = inner
        if i == j or k == m:
            continue
        if (j - i) * (m - k) <= _MAX_LCS_AREA:
            yield from _lcs_blocks(left, right, inner)
        elif depth < _MAX_DEPTH:
            anchors = _anchors(left, right, inner)
            between = pairwise([MatchingBlock(i, k, 0), *anchors, MatchingBlock(j, m, 0)]) if anchors else ()
            parts = [
                (_Region(anchor.left, following.left, anchor.right, following.right), depth + 1)
                for anchor, following in between
                if anchor.left < following.left and anchor.right < following.right
            ]
            pending += reversed(parts)


def _trim_equal_ends(
    left: list[int], right: list[int], region: _Region
) -> tuple[MatchingBlock, _Region, MatchingBlock]:
    """Return the equal words at the beginning of a region, the region between, and the equal words at its end."""
    i, j, k, m = region
    while i < j and k < m and left[i] == right[k]:
        i, k = i + 1, k + 1
    head = MatchingBlock(region.i, region.k, i - region.i)
    while i < j and k < m and left[j - 1] == right[m - 1]:
        j, m = j - 1, m - 1
    return head, _Region(i, j, k, m), MatchingBlock(j, m, region.j - j)


def _lcs_blocks(left: list[int], right: list[int], region: _Region) -> Iterator[MatchingBlock]:
    """Yield a longest common subsequence of a region as runs."""
    from rapidfuzz.distance import LCSseq

    i, j, k, m = region
    for left_start, right_start, length in LCSseq.editops(left[i:j], right[k:m]).as_matching_blocks():
        if length:
            yield MatchingBlock(i + left_start, k + right_start, length)


def _anchors(left: list[int], right: list[int], region: _Region) -> list[MatchingBlock]:
    """Return runs that occur once on each side: the largest number that is in the same order on both."""
    i, j, k, m = region
    sides = np.array(left[i:j], np.uint64), np.array(right[k:m], np.uint64)
    for length in _ANCHOR_LENGTHS:
        starts = _unique_runs(*sides, length)
        if starts:
            return _merge_adjacent(MatchingBlock(i + x, k + y, length) for x, y in _longest_increasing(starts))
    return []


def _unique_runs(left: Words, right: Words, length: int) -> list[tuple[int, int]]:
    """Return the starts of each run of ``length`` words that occurs once on each side, in the order of the left."""
    found = []
    for side in (left, right):
        hashes = np.zeros(max(len(side) - length + 1, 0), np.uint64)
        for step in range(length):
            hashes = hashes * _MULTIPLIER + side[step : step + len(hashes)]
        values, starts, counts = np.unique(hashes, return_index=True, return_counts=True)
        found.append((values[counts == 1], starts[counts == 1]))
    (values, starts), (others, other_starts) = found
    _, places, other_places = np.intersect1d(values, others, assume_unique=True, return_indices=True)
    x, y = starts[places], other_starts[other_places]
    # Different runs may have the same hash.
    equal = np.logical_and.reduce([left[x + step] == right[y + step] for step in range(length)])
    order = np.argsort(x[equal])
    return list(zip(x[equal][order].tolist(), y[equal][order].tolist(), strict=True))


def _longest_increasing(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return a longest subsequence of points that also increases on the right [Schensted 1961]."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, y) in enumerate(points):
        rank = bisect_left(ends, y)
        if rank == len(ends):
            ends.append(y)
            last.append(number)
        else:
            ends[rank], last[rank] = y, number
        before.append(last[rank - 1] if rank else -1)
    found = []
    number = last[-1] if last else -1
    while number >= 0:
        found.append(points[number])
        number = before[number]
    return found[::-1]


def _merge_adjacent(blocks: Iterable[MatchingBlock]) -> list[MatchingBlock]:
    """Merge blocks that are adjacent or overlap on the same diagonal."""
    merged: list[MatchingBlock] = []
    for block in blocks:
        last = merged[-1] if merged else MatchingBlock(0, 0, 0)
        ahead = block.left - last.left
        if last.length and ahead <= last.length and block.right - last.right == ahead:
            merged[-1] = last._replace(length=ahead + block.length)
        else:
            merged.append(block)
    return merged


class Run(NamedTuple):
    """A run of items that occurs in a sequence: its length, how often it occurs, and where it first begins.

    ``state`` names it for ``SuffixAutomaton.starts``.
    """

    length: int
    places: int
    start: int
    state: int


class SuffixAutomaton:
    """Finds the runs that other sequences share with this one [Blumer et al. 1985].

    It is "the smallest automaton recognizing the subwords of a text". Building it takes time linear in the sequence;
    a query takes time linear in the run. Only ``starts`` takes time linear in the number of places: it may be large.
    """

    def __init__(self, items: Sequence[Hashable]) -> None:
        self._next: list[dict[Hashable, int]] = [{}]
        self._link = [-1]
        self._length = [0]
        #: The end of the prefix that a state stands for; -1 for a copied state.
        self._end = [-1]
        last = 0
        for end, item in enumerate(items):
            last = self._append(item, last, end)
        self._count_ends()

    @cached_property
    def _shorter(self) -> dict[int, list[int]]:
        """The states whose runs end with those of a state."""
        states: dict[int, list[int]] = {}
        for state, link in enumerate(self._link):
            states.setdefault(link, []).append(state)
        return states

    def _count_ends(self) -> None:
        """Count the ends of each state's runs, and note the first one: both are sums over the states below it."""
        self._count = [int(end >= 0) for end in self._end]
        self._first = [end if end >= 0 else len(self._end) for end in self._end]
        for state in sorted(range(1, len(self._link)), key=self._length.__getitem__, reverse=True):
            link = self._link[state]
            self._count[link] += self._count[state]
            self._first[link] = min(self._first[link], self._first[state])

    def _add_state(self, following: dict[Hashable, int], link: int, length: int, end: int) -> int:
        self._next.append(following)
        self._link.append(link)
        self._length.append(length)
        self._end.append(end)
        return len(self._next) - 1

    def _append(self, item: Hashable, last: int, end: int) -> int:
        state = self._add_state({}, 0, self._length[last] + 1, end)
        at = last
        while at >= 0 and item not in self._next[at]:
            self._next[at][item] = state
            at = self._link[at]
        if at < 0:
            return state
        target = self._next[at][item]
        if self._length[target] != self._length[at] + 1:
            copy = self._add_state(dict(self._next[target]), self._link[target], self._length[at] + 1, -1)
            self._link[target] = copy
            while at >= 0 and self._next[at].get(item) == target:
                self._next[at][item] = copy
                at = self._link[at]
            target = copy
        self._link[state] = target
        return state

    def longest_run(self, items: Sequence[Hashable], begin: int) -> Run:
        """Return the longest run of items, starting at ``begin``, that occurs in this sequence."""
        state, length = 0, 0
        while begin + length < len(items):
            following = self._next[state].get(items[begin + length])
            if following is None:
                break
            state, length = following, length + 1
        if not length:
            return Run(0, 0, 0, 0)
        return Run(length, self._count[state], self._first[state] - length + 1, state)

    def starts(self, run: Run) -> list[int]:
        """Return all places where a run begins, ascending."""
        pending, ends = [run.state], []
        while pending:
            state = pending.pop()
            if self._end[state] >= 0:
                ends.append(self._end[state])
            pending += self._shorter.get(state, ())
        return sorted(end - run.length + 1 for end in ends)

    def longest_common_run(self, items: Sequence[Hashable]) -> tuple[int, int]:
        """Return (start, length) of the longest run of items that occurs in this sequence, the first among equals."""
        state = length = best = start = 0
        for end, item in enumerate(items, 1):
            while state and item not in self._next[state]:
                state = self._link[state]
                length = self._length[state]
            if item in self._next[state]:
                state, length = self._next[state][item], length + 1
            if length > best:
                best, start = length, end - length
        return start, best
