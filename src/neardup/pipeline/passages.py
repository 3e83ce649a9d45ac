"""Passages and differences of two texts, in offsets of the originals."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from heapq import nsmallest
from itertools import compress, pairwise
from typing import NamedTuple

import numpy as np

from neardup.kernels import Bools, Integers
from neardup.pipeline.resolved_features import Gram, TextGrams
from neardup.text.alignment import Run, SuffixAutomaton, matching_blocks


class Span(NamedTuple):
    """A stretch of a text in code points, end excluded."""

    start: int
    end: int


class Segment(NamedTuple):
    """A stretch of a text that shared grams cover, or that they leave uncovered."""

    start: int
    end: int
    shared: bool


class Passage(NamedTuple):
    """A run of grams that both texts contain, extended to the right as far as possible.

    Attributes
    ----------
    left : Span
        Its place in the left text.
    right : tuple of Span
        All its places in the right text; if they are too many to list, the first one.
    tokens : int
        Its length in tokens (characters, for q-grams and windows), including skipped ones.
    text : str
        Its text in the left document.
    places : int
        In how many places of the right text it is.
    """

    left: Span
    right: tuple[Span, ...]
    tokens: int
    text: str
    places: int


class Passages(NamedTuple):
    """The passages of two texts, from left to right, or of too many the longest, the longest first; and their number.

    ``is_complete``: whether both texts were searched to the end.
    """

    listed: tuple[Passage, ...]
    total: int
    is_complete: bool


class SegmentList(NamedTuple):
    """The segments of a text in order, or of too many the longest, the longest first; and their number."""

    listed: tuple[Segment, ...]
    total: int


class ChangeList(NamedTuple):
    """The changes of a text in order, or of too many the longest, the longest first; and their number.

    ``is_complete``: whether all units outside the shared grams were compared.
    """

    listed: tuple[Span, ...]
    total: int
    is_complete: bool


#: The most spans that an explanation lists of a text: of passages, places, stretches and changes.
MOST_SPANS = 100
#: Passages are looked for among this many grams at the beginning of each text, and changes among this many units
#: outside the shared grams.
SEARCHED_GRAMS = 50_000


def _longest(begins: Integers, ends: Integers) -> Integers:
    """Return the places of all spans; of more than ``MOST_SPANS`` those of the longest, the longest first."""
    if len(begins) <= MOST_SPANS:
        return np.arange(len(begins))
    return np.lexsort((begins, begins - ends))[:MOST_SPANS]


def covered_units(side: TextGrams, other_grams: Collection[Gram]) -> Bools:
    """Return which units of a text are in a gram that the other text has too."""
    shared = list(compress(side.places, map(other_grams.__contains__, side.grams)))
    filled = [place for place in shared if isinstance(place, range) and place.step == 1]
    depth = np.zeros(len(side.units) + 1, np.int64)
    np.add.at(depth, [place.start for place in filled], 1)
    np.add.at(depth, [place.stop for place in filled], -1)
    cover = np.cumsum(depth)[:-1] > 0
    for place in shared if len(filled) < len(shared) else ():
        cover[list(place)] = True
    return cover


def _unit_runs(side: TextGrams, chosen: Bools) -> tuple[Integers, Integers]:
    """Return where each run of chosen units begins and ends in the text."""
    edges = np.flatnonzero(np.diff(chosen, prepend=False, append=False))
    return np.array(side.units.starts, np.int64)[edges[::2]], np.array(side.units.ends, np.int64)[edges[1::2] - 1]


def text_segments(side: TextGrams, covered: Bools) -> SegmentList:
    """Cut a text into stretches of covered units, and the rest."""
    starts, ends = _unit_runs(side, covered)
    # Neighbouring units may overlap; segments do not.
    ends = np.maximum.accumulate(np.maximum(starts, ends))
    cuts = np.zeros(2 * len(ends) + 2, np.int64)
    cuts[2:-1:2], cuts[-1] = ends, len(side.text)
    cuts[1:-1:2] = np.maximum(starts, cuts[:-2:2])
    found = np.flatnonzero(cuts[:-1] < cuts[1:])
    chosen = found[_longest(cuts[found], cuts[found + 1])].tolist()
    listed = (Segment(int(cuts[at]), int(cuts[at + 1]), at % 2 == 1) for at in chosen)
    return SegmentList(tuple(listed), len(found))


def changed_spans(sides: Sequence[TextGrams], covered: Sequence[Bools]) -> list[ChangeList]:
    """Return the units outside the shared grams that differ, for each of two texts.

    They are found by aligning the uncovered rests of the two texts, up to ``SEARCHED_GRAMS`` units of each; they play
    no part in the verdict.
    """
    rests = [np.flatnonzero(~cover) for cover in covered]
    is_complete = max(map(len, rests)) <= SEARCHED_GRAMS
    rests = [rest[:SEARCHED_GRAMS] for rest in rests]
    words = [[side.units.texts[unit] for unit in rest.tolist()] for side, rest in zip(sides, rests, strict=True)]
    blocks = matching_blocks(*words)
    lists = []
    for number, (side, rest) in enumerate(zip(sides, rests, strict=True)):
        changed = np.zeros(len(side.units), np.bool_)
        changed[rest] = True
        for block in blocks:
            changed[rest[block[number] : block[number] + block.length]] = False
        starts, ends = _unit_runs(side, changed)
        chosen = _longest(starts, ends)
        listed = map(Span, starts[chosen].tolist(), ends[chosen].tolist())
        lists.append(ChangeList(tuple(listed), len(starts), is_complete))
    return lists


def common_passages(left: TextGrams, right: TextGrams, limit: int = MOST_SPANS) -> Passages:
    """Return the maximal runs of grams that both texts contain; of more than ``limit`` only the longest.

    A run continues if the next gram overlaps or directly follows the last one. The passages have at most ``limit``
    places in the right text between them, unless there are that many passages: then each has one. Two texts may share
    as many places as the product of their lengths; time is linear. Longer texts are searched up to ``SEARCHED_GRAMS``.
    """
    is_complete = max(len(left.grams), len(right.grams)) <= SEARCHED_GRAMS
    left, right = _beginning(left), _beginning(right)
    numbers: dict[Hashable, int] = {}
    (items, owners), (right_items, right_owners) = _runs(left, numbers), _runs(right, numbers)
    automaton = SuffixAutomaton(right_items)
    found: list[tuple[int, int, Run]] = []
    position = 0
    while position < len(items):
        run = automaton.longest_run(items, position)
        if run.length:
            first, last = owners[position], owners[position + run.length - 1]
            found.append((left.places[first][0] - left.places[last][-1] - 1, position, run))
        position += max(run.length, 1)
    longest = found if len(found) <= limit else nsmallest(limit, found, key=lambda one: one[:2])
    passages: list[Passage] = []
    room = limit - len(longest)
    for negative_count, position, run in longest:
        place = _span(left, owners[position], owners[position + run.length - 1])
        starts = [run.start]
        if run.places - 1 <= room:
            starts = automaton.starts(run)
            room -= run.places - 1
        spans = tuple(_span(right, right_owners[start], right_owners[start + run.length - 1]) for start in starts)
        passages.append(Passage(place, spans, -negative_count, left.text[place.start : place.end], run.places))
    return Passages(tuple(passages), len(found), is_complete)


def _beginning(side: TextGrams) -> TextGrams:
    return side._replace(grams=side.grams[:SEARCHED_GRAMS], places=side.places[:SEARCHED_GRAMS])


def _runs(side: TextGrams, numbers: dict[Hashable, int]) -> tuple[list[int], Sequence[int]]:
    """Return the numbers of the grams, with a unique one at each gap between them, and the gram of each.

    numbers: those of the grams so far, which are added to.
    """
    ends = [i for i, (place, next_place) in enumerate(pairwise(side.places), 1) if next_place[0] > place[-1] + 1]
    items: list[int] = []
    owners: list[int] = []
    for begin, end in pairwise([0, *ends, len(side.grams)]):
        items += [numbers.setdefault(gram, len(numbers)) for gram in side.grams[begin:end]]
        owners += range(begin, end)
        if end < len(side.grams):
            items.append(numbers.setdefault(object(), len(numbers)))
            owners.append(-1)
    return items, owners


def _span(side: TextGrams, first: int, last: int) -> Span:
    return Span(side.units.starts[side.places[first][0]], side.units.ends[side.places[last][-1]])
