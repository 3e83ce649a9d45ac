"""Passages and differences of two texts, in offsets of the originals."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Sequence
from heapq import nsmallest
from itertools import pairwise
from typing import NamedTuple, TypeVar

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


#: The most spans that an explanation lists of a text: of passages, places, stretches and changes.
MOST_SPANS = 100
#: Passages are looked for among this many grams at the beginning of each text.
SEARCHED_GRAMS = 100_000
SpanT = TypeVar("SpanT", Span, Segment)


def longest_spans(spans: tuple[SpanT, ...]) -> tuple[SpanT, ...]:
    """Return all spans, in order; of more than ``MOST_SPANS`` the longest, the longest first."""
    if len(spans) <= MOST_SPANS:
        return spans
    return tuple(nsmallest(MOST_SPANS, spans, key=lambda span: (span.start - span.end, span.start)))


def _covered(side: TextGrams, other_grams: Collection[Gram]) -> list[tuple[int, int]]:
    """Return the runs of units, end excluded, that grams of the other text cover."""
    cover = bytearray(len(side.units))
    for gram, place in zip(side.grams, side.places, strict=True):
        if gram not in other_grams:
            continue
        if isinstance(place, range):
            cover[place.start : place.stop : place.step] = b"\1" * len(place)
        else:
            for unit in place:
                cover[unit] = 1
    return [run.span() for run in re.finditer(b"\1+", cover)]


def text_segments(side: TextGrams, other_grams: Collection[Gram]) -> tuple[Segment, ...]:
    """Cut a text into stretches that grams of the other text cover, and the rest."""
    segments: list[Segment] = []
    position = 0
    for first, end in _covered(side, other_grams):
        begin = max(side.units[first].start, position)
        if begin > position:
            segments.append(Segment(position, begin, False))
        position = max(side.units[end - 1].end, begin)
        if position > begin:
            segments.append(Segment(begin, position, True))
    if position < len(side.text):
        segments.append(Segment(position, len(side.text), False))
    return tuple(segments)


def changed_spans(left: TextGrams, right: TextGrams) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Return the units outside the shared grams that differ, for each text.

    They are found by aligning the uncovered rests of the two texts; they play no part in the verdict.
    """
    sides = left, right
    uncovered = [_uncovered(left, set(right.grams)), _uncovered(right, set(left.grams))]
    blocks = matching_blocks(
        *([side.units[i].text for i in units] for side, units in zip(sides, uncovered, strict=True))
    )
    spans = []
    for number, (side, units) in enumerate(zip(sides, uncovered, strict=True)):
        aligned = {units[block[number] + step] for block in blocks for step in range(block.length)}
        spans.append(_spans(side, [unit for unit in units if unit not in aligned]))
    return spans[0], spans[1]


def _uncovered(side: TextGrams, other_grams: Collection[Gram]) -> list[int]:
    units: list[int] = []
    position = 0
    for first, end in _covered(side, other_grams):
        units += range(position, first)
        position = end
    return units + list(range(position, len(side.units)))


def _spans(side: TextGrams, units: Sequence[int]) -> tuple[Span, ...]:
    spans: list[Span] = []
    for place, unit in enumerate(units):
        token = side.units[unit]
        begin = spans.pop().start if place and units[place - 1] == unit - 1 else token.start
        spans.append(Span(begin, token.end))
    return tuple(spans)


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
    return Span(side.units[side.places[first][0]].start, side.units[side.places[last][-1]].end)
