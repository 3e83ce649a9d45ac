"""Where two texts have grams in common, in offsets of the originals."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple

from neardup.pipeline.resolved_features import Gram, TextGrams
from neardup.text.alignment import SuffixAutomaton, matching_blocks


class Span(NamedTuple):
    """A stretch of a text in code points, end excluded."""

    start: int
    end: int


class Segment(NamedTuple):
    """A stretch of a text that shared grams cover, or one that they do not."""

    start: int
    end: int
    shared: bool


class Passage(NamedTuple):
    """A run of grams that stands in both texts and goes on in no place of the right one.

    Attributes
    ----------
    left : Span
        Where it stands in the left text.
    right : tuple of Span
        Every place where it stands in the right text.
    tokens : int
        How long it is in tokens (characters, for q-grams and windows), those that its grams skip included.
    text : str
        As the left text writes it.
    """

    left: Span
    right: tuple[Span, ...]
    tokens: int
    text: str


def _covered(side: TextGrams, others: Collection[Gram]) -> list[tuple[int, int]]:
    """Return the runs of units, end excluded, that grams of the other text cover."""
    cover = bytearray(len(side.units))
    for gram, place in zip(side.grams, side.places, strict=True):
        if gram not in others:
            continue
        if isinstance(place, range):
            cover[place.start : place.stop : place.step] = b"\1" * len(place)
        else:
            for unit in place:
                cover[unit] = 1
    return [run.span() for run in re.finditer(b"\1+", cover)]


def text_segments(side: TextGrams, others: Collection[Gram]) -> tuple[Segment, ...]:
    """Cut a text into what grams of the other one cover and what they do not."""
    segments: list[Segment] = []
    done = 0
    for first, end in _covered(side, others):
        begin = max(side.units[first].start, done)
        if begin > done:
            segments.append(Segment(done, begin, False))
        done = max(side.units[end - 1].end, begin)
        if done > begin:
            segments.append(Segment(begin, done, True))
    if done < len(side.text):
        segments.append(Segment(done, len(side.text), False))
    return tuple(segments)


def changed_spans(left: TextGrams, right: TextGrams) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Return, of what no shared gram covers, the units that differ, for each text.

    Found by aligning what is left of the two texts; a help for the reader, no part of the verdict.
    """
    sides = left, right
    rest = [_uncovered(left, set(right.grams)), _uncovered(right, set(left.grams))]
    blocks = matching_blocks(*([side.units[i].text for i in at] for side, at in zip(sides, rest, strict=True)))
    spans = []
    for number, (side, at) in enumerate(zip(sides, rest, strict=True)):
        same = {at[block[number] + step] for block in blocks for step in range(block.length)}
        spans.append(_spans(side, [unit for unit in at if unit not in same]))
    return spans[0], spans[1]


def _uncovered(side: TextGrams, others: Collection[Gram]) -> list[int]:
    found: list[int] = []
    done = 0
    for first, end in _covered(side, others):
        found += range(done, first)
        done = end
    return found + list(range(done, len(side.units)))


def _spans(side: TextGrams, units: Sequence[int]) -> tuple[Span, ...]:
    spans: list[Span] = []
    for place, unit in enumerate(units):
        token = side.units[unit]
        begin = spans.pop().start if place and units[place - 1] == unit - 1 else token.start
        spans.append(Span(begin, token.end))
    return tuple(spans)


def common_passages(left: TextGrams, right: TextGrams) -> tuple[Passage, ...]:
    """Return the runs of grams that both texts hold, from left to right, each as long as it goes.

    A run goes on where the next gram begins in the one before or right behind it.
    """
    items, owners = _runs(left)
    there, theirs = _runs(right)
    automaton = SuffixAutomaton(there)
    found: list[Passage] = []
    at = 0
    while at < len(items):
        run = automaton.longest_run(items, at)
        if run.length:
            first, last = owners[at], owners[at + run.length - 1]
            place = _span(left, first, last)
            spans = tuple(_span(right, theirs[start], theirs[start + run.length - 1]) for start in run.starts)
            count = left.places[last][-1] - left.places[first][0] + 1
            found.append(Passage(place, spans, count, left.text[place.start : place.end]))
        at += max(run.length, 1)
    return tuple(found)


def _runs(side: TextGrams) -> tuple[Sequence[Hashable], Sequence[int]]:
    """Return the grams with something unique wherever one does not touch the next, and which gram each item is."""
    ends = [i for i, (place, after) in enumerate(pairwise(side.places), 1) if after[0] > place[-1] + 1]
    if not ends:
        return side.grams, range(len(side.grams))
    items: list[Hashable] = []
    owners: list[int] = []
    for begin, end in pairwise([0, *ends, len(side.grams)]):
        items += [*side.grams[begin:end], object()]
        owners += [*range(begin, end), -1]
    return items, owners


def _span(side: TextGrams, first: int, last: int) -> Span:
    return Span(side.units[side.places[first][0]].start, side.units[side.places[last][-1]].end)
