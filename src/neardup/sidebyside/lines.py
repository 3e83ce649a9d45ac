"""What a text looks like besides its words: its direction, lines that are only cut to a length, signs between words."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

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
