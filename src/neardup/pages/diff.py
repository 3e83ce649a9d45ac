"""What two texts have in common, and what differs."""

from __future__ import annotations

import re
import unicodedata
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

from neardup.text.alignment import MatchingBlock, matching_blocks
from neardup.text.normalize import Token, tokens
from neardup.text.sentences import ASCII_TERMINATORS, TERMINATORS


class ShownDocument(NamedTuple):
    """A document as pages show it; title and time are empty if it has none.

    ``is_missing``: its text is no longer available.
    """

    id: str
    title: str
    text: str
    time: str = ""
    is_missing: bool = False

    def as_dict(self) -> dict[str, str]:
        """Return id, title, text and time for JSON."""
        return {"id": self.id, "title": self.title, "text": self.text, "time": self.time}


#: Signs between words that are style, and make no difference.
_STYLE_SIGNS = str.maketrans("", "", ".,;:'\"`-()[]“”‘’„«»–—…。、，；：「」（）")
_MINUS = re.compile(r"[^-−–][-−–]$")
#: Characters that the direction of a text is detected in.
_DIRECTION_LENGTH = 4_000


def text_direction(text: str) -> str:
    """Return the direction of most letters of a text: rtl or ltr; auto if it has none."""
    kinds = [unicodedata.bidirectional(one) for one in text[:_DIRECTION_LENGTH]]
    right, left = sum(kind in ("R", "AL") for kind in kinds), kinds.count("L")
    return "rtl" if right > left else "ltr" if left else "auto"


def separator_sign(gap: str, before: str, after: str) -> str:
    """Return what between two characters has a meaning: not style, but a minus, a currency or a decimal point."""
    if before.isdigit() and after.isdigit() and not any(map(str.isspace, gap)):
        return gap
    minus = after.isdigit() and _MINUS.search(gap) is not None
    return ("-" if minus else "") + "".join(gap.split()).translate(_STYLE_SIGNS)


#: This many consecutive equal words are never chance.
_FEWEST_CERTAIN = 5
#: A run of equal words that is this many times shorter than the changes on both sides is chance.
_CHANCE_RATIO = 3
#: The most words to move an insertion by.
_LONGEST_SLIDE = 200
#: The end of a sentence.
SENTENCE_END = re.compile(f"[{re.escape(ASCII_TERMINATORS + TERMINATORS)}]")


class Mark(IntEnum):
    """The mark of a word, or of the different signs between two equal words."""

    EQUAL = 0
    CHANGED = 1
    BETWEEN = 2


class Differences(NamedTuple):
    """How two texts differ."""

    left: list[Token]
    right: list[Token]
    #: The runs of equal words, in the order of both texts; an empty one at the ends comes last.
    blocks: list[MatchingBlock]
    #: The ``Mark`` of each word.
    left_marks: bytearray
    right_marks: bytearray


def compare_texts(left: str, right: str) -> Differences:
    """Compare two texts by the words of the normalizer ``words``.

    A few equal words between long differences are chance and count as different (``text.alignment.matching_blocks``).
    """
    sides = tokens(left), tokens(right)
    words = [[token.text for token in side] for side in sides]
    blocks = _drop_chance_blocks(matching_blocks(words[0], words[1]), len(words[0]), len(words[1]))
    blocks = _slide_insertions(blocks, words, (left, right), sides)
    marks = bytearray([Mark.CHANGED]) * len(words[0]), bytearray([Mark.CHANGED]) * len(words[1])
    for block in blocks:
        for side, begin in zip(marks, block[:2], strict=True):
            side[begin : begin + block.length] = bytes(block.length)
    return Differences(*sides, blocks, *marks)


def _drop_chance_blocks(blocks: list[MatchingBlock], left: int, right: int) -> list[MatchingBlock]:
    """Return the blocks that are long compared with the changes around them, and an empty one at the ends."""
    kept = [MatchingBlock(0, 0, 0)]
    end = MatchingBlock(left, right, 0)
    for block, after in pairwise([*blocks, end]):
        changes = _gap_length(kept[-1], block), _gap_length(block, after)
        if block.length >= _FEWEST_CERTAIN or block.length * _CHANCE_RATIO > min(changes):
            kept.append(block)
    return [*kept[1:], end]


def _slide_insertions(
    blocks: list[MatchingBlock], words: list[list[str]], texts: tuple[str, str], sides: tuple[list[Token], list[Token]]
) -> list[MatchingBlock]:
    """Return the blocks with insertions moved to the beginning of a line or sentence, if repeated words allow it.

    "a c." becomes "a b. a c." by inserting "a b." or "b. a"; the first is what a writer does.
    """
    found = list(blocks)
    for at in range(len(found) - 1):
        before, after = found[at], found[at + 1]
        ends = before.left + before.length, before.right + before.length
        inserted = [side for side, end in enumerate(ends) if end < after[side]]
        if len(inserted) != 1:
            continue
        side = inserted[0]
        begin, end, inserted_words = ends[side], after[side], words[side]
        most_back, most_ahead = min(before.length, _LONGEST_SLIDE), min(after.length, _LONGEST_SLIDE)
        back = next(
            (i for i in range(most_back) if inserted_words[begin - 1 - i] != inserted_words[end - 1 - i]), most_back
        )
        ahead = next((i for i in range(most_ahead) if inserted_words[begin + i] != inserted_words[end + i]), most_ahead)
        steps = sorted(range(-back, ahead + 1), key=abs)
        best = max(steps, key=lambda step: _boundary_rank(texts[side], sides[side], begin + step))
        found[at] = before._replace(length=before.length + best)
        found[at + 1] = MatchingBlock(after.left + best, after.right + best, after.length - best)
    return [*(block for block in found if block.length), blocks[-1]]


def _boundary_rank(text: str, words: list[Token], word: int) -> int:
    """Return the rank of the boundary before a word: 3 for a line, 2 for a sentence, 1 for a sign, 0 for none."""
    gap = text[words[word - 1].end : words[word].start] if 0 < word < len(words) else "\n"
    if "\n" in gap:
        return 3
    return 2 if SENTENCE_END.search(gap) else int(bool(gap.strip()))


def _gap_length(one: MatchingBlock, other: MatchingBlock) -> int:
    """Return the number of words between two blocks, on the side with more of them."""
    return max(other.left - one.left - one.length, other.right - one.right - one.length)
