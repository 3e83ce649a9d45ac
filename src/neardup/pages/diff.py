"""Two texts side by side: what they have in common, what differs, and how a page shows it."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

from neardup.text.normalize import Token, tokens
from neardup.text.sentences import ASCII_TERMINATORS, TERMINATORS


class Shown(NamedTuple):
    """A document as it is shown; title and time are empty where there is none.

    ``gone`` says that its text is not there any more.
    """

    id: str
    title: str
    text: str
    time: str = ""
    gone: bool = False

    def as_dict(self) -> dict[str, str]:
        """Return what is known of it, for JSON."""
        return {"id": self.id, "title": self.title, "text": self.text, "time": self.time}


#: What between two words says nothing of a difference.
_STYLE = str.maketrans("", "", ".,;:'\"`-()[]“”‘’„«»–—…。、，；：「」（）")
_MINUS = re.compile(r"[^-−–][-−–]$")
#: So much of a text says how it is written.
_DIRECTION = 4_000
#: Lines at least so long are cut because they are long, where nearly all lines are shorter than the other.
_CUT_LINE, _LONG_LINE = 45, 100
_NEARLY_ALL = 0.95


def direction_of(text: str) -> str:
    """Return whether a text is mostly written from the right, from the left, or has nothing that says so."""
    kinds = [unicodedata.bidirectional(one) for one in text[:_DIRECTION]]
    right, left = sum(kind in ("R", "AL") for kind in kinds), kinds.count("L")
    return "rtl" if right > left else "ltr" if left else "auto"


def soft_breaks(text: str) -> list[int]:
    """Return the places of line feeds in the middle of paragraphs, in a text whose lines are all cut to a length."""
    lines = text.split("\n")
    if sum(len(line) <= _LONG_LINE for line in lines) < _NEARLY_ALL * len(lines):
        return []
    found, at = [], -1
    for line, after in pairwise(lines):
        at += len(line) + 1
        if len(line) >= _CUT_LINE and after[:1].isalnum():
            found.append(at)
    return found


def sign_between(gap: str, before: str, after: str) -> str:
    """Return what between two characters says something: not style, but what makes another number of digits."""
    if before.isdigit() and after.isdigit() and not any(map(str.isspace, gap)):
        return gap
    minus = after.isdigit() and _MINUS.search(gap) is not None
    return ("-" if minus else "") + "".join(gap.split()).translate(_STYLE)


#: Stretches whose lengths have at most this product are aligned word by word.
_EXACT = 1 << 26
#: How long the runs of words are that longer stretches are first aligned by.
_ANCHORS = (12, 5, 2, 1)
#: How often what lies between two anchors is searched for anchors of its own.
_DEPTH = 16
#: So many words in a row that stand elsewhere in the other text were moved.
_MOVED = 5
#: A run of equal words this many times shorter than the changes on both sides of it is chance.
_LONGER = 3
#: How far an insertion is moved, in words.
_SLIDE = 200
#: What ends a sentence.
ENDS = re.compile(f"[{re.escape(ASCII_TERMINATORS + TERMINATORS)}]")


class Mark(IntEnum):
    """What is said of a word."""

    EQUAL = 0
    CHANGED = 1
    MOVED = 2


class Block(NamedTuple):
    """A run of equal words: where it begins in both texts, and how long it is."""

    left: int
    right: int
    length: int


class Differences(NamedTuple):
    """How two texts differ.

    Attributes
    ----------
    left, right : list of Token
        The words of each text.
    blocks : list of Block
        The runs of equal words, in the order of both texts; the last one is empty and stands at the ends.
    left_marks, right_marks : bytearray
        A ``Mark`` for each word.
    """

    left: list[Token]
    right: list[Token]
    blocks: list[Block]
    left_marks: bytearray
    right_marks: bytearray


def differences(left: str, right: str) -> Differences:
    """Compare two texts word by word; a word is what the normalizer ``words`` makes one.

    Texts that are alike, or short, are aligned by a longest common subsequence. Of long ones, runs of words that occur
    once in each are found first and what lies between is aligned [patience diff, Cohen 2008]; where nothing of the sort
    is found in a long stretch, all of it counts as changed.
    """
    sides = tokens(left), tokens(right)
    numbers: dict[str, int] = {}
    words = [[numbers.setdefault(token.text, len(numbers)) for token in side] for side in sides]
    blocks = _without_chance(aligned(words[0], words[1]), len(words[0]), len(words[1]))
    blocks = _slid(blocks, words, (left, right), sides)
    marks = bytearray([Mark.CHANGED]) * len(words[0]), bytearray([Mark.CHANGED]) * len(words[1])
    for block in blocks:
        for side, begin in zip(marks, block[:2], strict=True):
            side[begin : begin + block.length] = bytes(block.length)
    _mark_moved(words[0], words[1], *marks)
    return Differences(*sides, blocks, *marks)


class _Stretch(NamedTuple):
    """Words left[i:j] and right[k:m], to be aligned."""

    i: int
    j: int
    k: int
    m: int


def aligned(left: list[int], right: list[int]) -> list[Block]:
    """Return runs of equal words that are in the same order on both sides, each as long as it goes.

    Together they are a longest common subsequence where the two are short.
    """
    return _joined(_runs(left, right))


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


def _without_chance(blocks: list[Block], left: int, right: int) -> list[Block]:
    """Return the blocks without those that are short beside the changes around them, and an empty one at the ends."""
    kept = [Block(0, 0, 0)]
    end = Block(left, right, 0)
    for block, after in pairwise([*blocks, end]):
        changes = _between(kept[-1], block), _between(block, after)
        if block.length >= _MOVED or block.length * _LONGER > min(changes):
            kept.append(block)
    return [*kept[1:], end]


def _slid(
    blocks: list[Block], words: list[list[int]], texts: tuple[str, str], sides: tuple[list[Token], list[Token]]
) -> list[Block]:
    """Return the blocks with insertions moved to where a line or sentence begins, if the same words allow it.

    Of "a b. a c." one may take out "a b." as well as "b. a"; only the first is what somebody did.
    """
    found = list(blocks)
    for at in range(len(found) - 1):
        before, after = found[at], found[at + 1]
        ends = before.left + before.length, before.right + before.length
        inserted = [side for side, end in enumerate(ends) if end < after[side]]
        if len(inserted) != 1:
            continue
        side = inserted[0]
        begin, end, own = ends[side], after[side], words[side]
        most = min(before.length, _SLIDE), min(after.length, _SLIDE)
        back = next((step for step in range(most[0]) if own[begin - 1 - step] != own[end - 1 - step]), most[0])
        ahead = next((step for step in range(most[1]) if own[begin + step] != own[end + step]), most[1])
        steps = sorted(range(-back, ahead + 1), key=abs)
        best = max(steps, key=lambda step: _begins(texts[side], sides[side], begin + step))
        found[at] = before._replace(length=before.length + best)
        found[at + 1] = Block(after.left + best, after.right + best, after.length - best)
    return [*(block for block in found if block.length), blocks[-1]]


def _begins(text: str, words: list[Token], word: int) -> int:
    """Return how much a word looks like a beginning: of a line, of a sentence, of a part of one."""
    gap = text[words[word - 1].end : words[word].start] if 0 < word < len(words) else "\n"
    if "\n" in gap:
        return 3
    return 2 if ENDS.search(gap) else int(bool(gap.strip()))


def _between(one: Block, other: Block) -> int:
    """Return how many words lie between two blocks, on the side where they are more."""
    return max(other.left - one.left - one.length, other.right - one.right - one.length)


def _mark_moved(left: list[int], right: list[int], left_marks: bytearray, right_marks: bytearray) -> None:
    """Mark changed words that stand in a row elsewhere in the other text, where they count as changed, too."""
    sides = [dict(_changed_runs(words, marks)) for words, marks in ((left, left_marks), (right, right_marks))]
    shared = set(sides[0].values()) & set(sides[1].values())
    for side, marks in zip(sides, (left_marks, right_marks), strict=True):
        for place, run in side.items():
            if run in shared:
                marks[place : place + _MOVED] = bytes([Mark.MOVED]) * _MOVED


def _changed_runs(words: list[int], marks: bytearray) -> Iterator[tuple[int, tuple[int, ...]]]:
    changed = bytes([Mark.CHANGED]) * _MOVED
    place = marks.find(changed)
    while place >= 0:
        yield place, tuple(words[place : place + _MOVED])
        place = marks.find(changed, place + 1)
