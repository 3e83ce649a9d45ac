"""What two sequences have in common: in the same order, and anywhere.

Whatever compares two texts word by word goes by one of the two: what differs, side by side and in an explanation, and
what a template keeps, by `aligned`; the passages that two texts share by a `SuffixAutomaton`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

#: Stretches whose lengths have at most this product are aligned word by word.
_EXACT = 1 << 26
#: How long the runs of words are that longer stretches are first aligned by.
_ANCHORS = (12, 5, 2, 1)
#: How often what lies between two anchors is searched for anchors of its own.
_DEPTH = 16


class Block(NamedTuple):
    """A run of equal words: where it begins in both texts, and how long it is."""

    left: int
    right: int
    length: int


class _Stretch(NamedTuple):
    """Words left[i:j] and right[k:m], to be aligned."""

    i: int
    j: int
    k: int
    m: int


def aligned(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Block]:
    """Return runs of equal words that are in the same order on both sides, each as long as it goes.

    Sequences that are alike, or short, are aligned by a longest common subsequence. Of long ones, runs of words that
    occur once in each are found first and what lies between is aligned [patience diff, Cohen 2008]; where nothing of
    the sort is found in a long stretch, none of it is taken for equal.
    """
    numbers: dict[Hashable, int] = {}
    one, other = ([numbers.setdefault(word, len(numbers)) for word in side] for side in (left, right))
    return _joined(_runs(one, other))


def _runs(left: list[int], right: list[int]) -> Iterator[Block]:
    waiting = [(_Stretch(0, len(left), 0, len(right)), 0)]
    while waiting:
        stretch, depth = waiting.pop()
        head, inner, tail = _trimmed(left, right, stretch)
        if head.length:
            yield head
        # What comes last is taken first from the end of the list.
        if tail.length:
            end = tail.left + tail.length, tail.right + tail.length
            waiting.append((_Stretch(tail.left, end[0], tail.right, end[1]), depth))
        i, j, k, m = inner
        if i == j or k == m:
            continue
        if (j - i) * (m - k) <= _EXACT:
            yield from _common(left, right, inner)
        elif depth < _DEPTH:
            anchors = _anchors(left, right, inner)
            between = pairwise([Block(i, k, 0), *anchors, Block(j, m, 0)]) if anchors else ()
            parts = [
                (_Stretch(one.left, other.left, one.right, other.right), depth + 1)
                for one, other in between
                if one.left < other.left and one.right < other.right
            ]
            waiting += reversed(parts)


def _trimmed(left: list[int], right: list[int], stretch: _Stretch) -> tuple[Block, _Stretch, Block]:
    """Return the equal words at the beginning of a stretch, what lies between, and those at its end."""
    i, j, k, m = stretch
    while i < j and k < m and left[i] == right[k]:
        i, k = i + 1, k + 1
    head = Block(stretch.i, stretch.k, i - stretch.i)
    while i < j and k < m and left[j - 1] == right[m - 1]:
        j, m = j - 1, m - 1
    return head, _Stretch(i, j, k, m), Block(j, m, stretch.j - j)


def _common(left: list[int], right: list[int], stretch: _Stretch) -> Iterator[Block]:
    """Yield a longest common subsequence of a stretch as runs."""
    from rapidfuzz.distance import LCSseq

    i, j, k, m = stretch
    for place, other, length in LCSseq.editops(left[i:j], right[k:m]).as_matching_blocks():
        if length:
            yield Block(i + place, k + other, length)


def _anchors(left: list[int], right: list[int], stretch: _Stretch) -> list[Block]:
    """Return runs of words that occur once on each side, the most that are in the same order on both."""
    i, j, k, m = stretch
    for length in _ANCHORS:
        one, other = _once(left[i:j], length), _once(right[k:m], length)
        places = [(place, other[run]) for run, place in one.items() if run in other]
        if places:
            return _joined(Block(i + place, k + there, length) for place, there in _longest_rising(places))
    return []


def _once(words: list[int], length: int) -> dict[tuple[int, ...], int]:
    """Return the runs of so many words that occur once, with their places, in order."""
    runs = list(zip(*(words[at:] for at in range(length)), strict=False))
    counts = Counter(runs)
    return {run: place for place, run in enumerate(runs) if counts[run] == 1}


def _longest_rising(places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the most pairs that rise on the right, too, where they rise on the left [Schensted 1961]."""
    ends: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for number, (_, there) in enumerate(places):
        rank = bisect_left(ends, there)
        if rank == len(ends):
            ends.append(there)
            at.append(number)
        else:
            ends[rank], at[rank] = there, number
        before.append(at[rank - 1] if rank else -1)
    found = []
    number = at[-1] if at else -1
    while number >= 0:
        found.append(places[number])
        number = before[number]
    return found[::-1]


def _joined(blocks: Iterable[Block]) -> list[Block]:
    """Return blocks that follow each other without a gap, or overlap in step, as one."""
    found: list[Block] = []
    for block in blocks:
        last = found[-1] if found else Block(0, 0, 0)
        ahead = block.left - last.left
        if last.length and ahead <= last.length and block.right - last.right == ahead:
            found[-1] = last._replace(length=ahead + block.length)
        else:
            found.append(block)
    return found


class Run(NamedTuple):
    """The longest run of items that stands in a sequence: its length and every position where it begins."""

    length: int
    starts: tuple[int, ...]


class SuffixAutomaton:
    """Finds the runs that sequences share with this one [Blumer et al. 1985].

    It is "the smallest automaton recognizing the subwords of a text": made in time that grows with the sequence, asked
    in time that grows with the answer.
    """

    def __init__(self, items: Sequence[Hashable]) -> None:
        self._next: list[dict[Hashable, int]] = [{}]
        self._link = [-1]
        self._length = [0]
        #: For a state that stands for a prefix, that prefix's end; -1 for a copied state.
        self._end = [-1]
        last = 0
        for end, item in enumerate(items):
            last = self._append(item, last, end)
        self._shorter: list[list[int]] = [[] for _ in self._link]
        for state, link in enumerate(self._link):
            if link >= 0:
                self._shorter[link].append(state)
        self._ends: dict[int, tuple[int, ...]] = {}

    def _state(self, following: dict[Hashable, int], link: int, length: int, end: int) -> int:
        self._next.append(following)
        self._link.append(link)
        self._length.append(length)
        self._end.append(end)
        return len(self._next) - 1

    def _append(self, item: Hashable, last: int, end: int) -> int:
        state = self._state({}, 0, self._length[last] + 1, end)
        at = last
        while at >= 0 and item not in self._next[at]:
            self._next[at][item] = state
            at = self._link[at]
        if at < 0:
            return state
        target = self._next[at][item]
        if self._length[target] != self._length[at] + 1:
            copy = self._state(dict(self._next[target]), self._link[target], self._length[at] + 1, -1)
            self._link[target] = copy
            while at >= 0 and self._next[at].get(item) == target:
                self._next[at][item] = copy
                at = self._link[at]
            target = copy
        self._link[state] = target
        return state

    def longest(self, items: Sequence[Hashable], begin: int) -> Run:
        """Return the longest run of items from begin on that stands here, and where."""
        state, length = 0, 0
        while begin + length < len(items):
            following = self._next[state].get(items[begin + length])
            if following is None:
                break
            state, length = following, length + 1
        if not length:
            return Run(0, ())
        return Run(length, tuple(end - length + 1 for end in self._ends_of(state)))

    def _ends_of(self, state: int) -> tuple[int, ...]:
        if state not in self._ends:
            waiting, ends = [state], []
            while waiting:
                one = waiting.pop()
                if self._end[one] >= 0:
                    ends.append(self._end[one])
                waiting += self._shorter[one]
            self._ends[state] = tuple(sorted(ends))
        return self._ends[state]

    def longest_anywhere(self, items: Sequence[Hashable]) -> tuple[int, int]:
        """Return where the longest run of items that stands here begins, the first of equals, and its length."""
        state = length = best = place = 0
        for end, item in enumerate(items, 1):
            while state and item not in self._next[state]:
                state = self._link[state]
                length = self._length[state]
            if item in self._next[state]:
                state, length = self._next[state][item], length + 1
            if length > best:
                best, place = length, end - length
        return place, best
