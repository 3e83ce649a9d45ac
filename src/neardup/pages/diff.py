"""Two texts side by side: what they have in common, what differs, and how a page shows it."""

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


def text_direction(text: str) -> str:
    """Return whether a text is mostly written from the right, from the left, or has nothing that says so."""
    kinds = [unicodedata.bidirectional(one) for one in text[:_DIRECTION]]
    right, left = sum(kind in ("R", "AL") for kind in kinds), kinds.count("L")
    return "rtl" if right > left else "ltr" if left else "auto"


def sign_between(gap: str, before: str, after: str) -> str:
    """Return what between two characters says something: not style, but what makes another number of digits."""
    if before.isdigit() and after.isdigit() and not any(map(str.isspace, gap)):
        return gap
    minus = after.isdigit() and _MINUS.search(gap) is not None
    return ("-" if minus else "") + "".join(gap.split()).translate(_STYLE)


#: So many equal words in a row are never chance.
_CERTAIN = 5
#: A run of equal words this many times shorter than the changes on both sides of it is chance.
_LONGER = 3
#: How far an insertion is moved, in words.
_SLIDE = 200
#: What ends a sentence.
ENDS = re.compile(f"[{re.escape(ASCII_TERMINATORS + TERMINATORS)}]")


class Mark(IntEnum):
    """What is said of a word, or of what stands between two equal words and differs."""

    EQUAL = 0
    CHANGED = 1
    BETWEEN = 2


class Differences(NamedTuple):
    """How two texts differ."""

    left: list[Token]
    right: list[Token]
    #: The runs of equal words, in the order of both texts; the last one is empty and stands at the ends.
    blocks: list[MatchingBlock]
    #: A ``Mark`` for each word.
    left_marks: bytearray
    right_marks: bytearray


def compare_texts(left: str, right: str) -> Differences:
    """Compare two texts word by word; a word is what the normalizer ``words`` makes one.

    Few equal words between long differences are chance and count as different (``text.alignment.matching_blocks``).
    """
    sides = tokens(left), tokens(right)
    words = [[token.text for token in side] for side in sides]
    blocks = _without_chance(matching_blocks(words[0], words[1]), len(words[0]), len(words[1]))
    blocks = _slid(blocks, words, (left, right), sides)
    marks = bytearray([Mark.CHANGED]) * len(words[0]), bytearray([Mark.CHANGED]) * len(words[1])
    for block in blocks:
        for side, begin in zip(marks, block[:2], strict=True):
            side[begin : begin + block.length] = bytes(block.length)
    return Differences(*sides, blocks, *marks)


def _without_chance(blocks: list[MatchingBlock], left: int, right: int) -> list[MatchingBlock]:
    """Return the blocks without those that are short beside the changes around them, and an empty one at the ends."""
    kept = [MatchingBlock(0, 0, 0)]
    end = MatchingBlock(left, right, 0)
    for block, after in pairwise([*blocks, end]):
        changes = _between(kept[-1], block), _between(block, after)
        if block.length >= _CERTAIN or block.length * _LONGER > min(changes):
            kept.append(block)
    return [*kept[1:], end]


def _slid(
    blocks: list[MatchingBlock], words: list[list[str]], texts: tuple[str, str], sides: tuple[list[Token], list[Token]]
) -> list[MatchingBlock]:
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
        found[at + 1] = MatchingBlock(after.left + best, after.right + best, after.length - best)
    return [*(block for block in found if block.length), blocks[-1]]


def _begins(text: str, words: list[Token], word: int) -> int:
    """Return how much a word looks like a beginning: of a line, of a sentence, of a part of one."""
    gap = text[words[word - 1].end : words[word].start] if 0 < word < len(words) else "\n"
    if "\n" in gap:
        return 3
    return 2 if ENDS.search(gap) else int(bool(gap.strip()))


def _between(one: MatchingBlock, other: MatchingBlock) -> int:
    """Return how many words lie between two blocks, on the side where they are more."""
    return max(other.left - one.left - one.length, other.right - one.right - one.length)
