"""Texts to segments: sentences and clauses, found in the original text.

A text is cut after each break, so that its segments concatenate to the text. Breaks are:

- a terminator: ``. ! ?`` and their counterparts in other scripts, among them the ellipsis, the ideographic and
  Arabic full stops and the danda. An ASCII terminator counts only if no ASCII letter or digit follows, so
  ``3.14``, ``10:30`` and ``example.com`` stay whole;
- a line feed that ends a blank line: only spaces, tabs and CR since the line feed before;
- for clauses, also a pause symbol: ``, ; : ( ) [ ] { } "``, dashes, quotation marks and brackets.

A break at the end of a text has no effect.
"""

from __future__ import annotations

import itertools
import re
from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from neardup.kernels import Bytes, Integers
from neardup.kernels.grams import ASCII_BREAK, LINE_FEED, WIDE_BREAK, cut_texts

Unit = Literal["sentence", "clause"]


#: Characters that end a sentence: ASCII and others.
ASCII_TERMINATORS = ".!?"
TERMINATORS = "\u2026\u3002\uff01\uff1f\uff0e\uff61\u061f\u06d4\u0964\u0965\u1362\u0589\u104b"
#: Further characters that end a clause: ASCII and others.
ASCII_PAUSES = ',;:()[]{}"'
PAUSES = "\u060c\u061b\u3001\uff0c\uff1b\uff1a\u2014\u2013\u201c\u201d\u00ab\u00bb\u300c\u300d\uff08\uff09"

#: Expected bytes per segment; if there are more segments, the texts are cut a second time.
_BYTES_PER_SEGMENT = 16


class _Breaks(NamedTuple):
    """The breaks of a unit: a pattern for Python, tables for the kernel."""

    pattern: re.Pattern[str]
    leads: Bytes
    wide: Bytes


@cache
def _breaks(unit: Unit) -> _Breaks:
    narrow, wide = ASCII_TERMINATORS, TERMINATORS
    if unit == "clause":
        narrow, wide = narrow + ASCII_PAUSES, wide + PAUSES
    # A lookahead, because the line feed that ends a blank line may begin the next one.
    pattern = rf"[{re.escape(narrow)}](?![A-Za-z0-9])|[{wide}]|\n(?=([ \t\r]*\n))"
    leads = np.zeros(256, np.uint8)
    leads[list(narrow.encode())] = ASCII_BREAK
    leads[0x0A] = LINE_FEED
    leads[[character.encode()[0] for character in wide]] = WIDE_BREAK
    flags = np.zeros(0x10000, np.uint8)
    flags[[ord(character) for character in wide]] = 1
    return _Breaks(re.compile(pattern), leads, flags)


def cut_text(text: str, unit: Unit) -> list[tuple[int, int]]:
    """Cut one text into sentences or clauses; return (start, end) of each in code points, without gaps.

    An empty text is one empty segment.

    Examples
    --------
    >>> cut_text("At 10:30, it rose 3.5%. Why?", "sentence")
    [(0, 23), (23, 28)]
    >>> cut_text("At 10:30, it rose 3.5%. Why?", "clause")
    [(0, 9), (9, 23), (23, 28)]
    """
    breaks = (match.end(1) if match[1] else match.end() for match in _breaks(unit).pattern.finditer(text))
    edges = [0, *(end for end in breaks if end < len(text)), len(text)]
    return list(itertools.pairwise(edges))


def segment_texts(data: Bytes, offsets: Integers, unit: Unit) -> tuple[Integers, Integers]:
    """Cut texts in bulk into sentences or clauses, as ``cut_text`` does, with offsets in bytes.

    Returns int64[s + 1] and int64[d + 1]: segment i is ``data[ends[i]:ends[i + 1]]``, and text d has the segments
    ``heads[d]`` to ``heads[d + 1] - 1``, at least one.
    """
    _, leads, wide = _breaks(unit)
    heads = np.empty(len(offsets), np.int64)
    ends = np.empty(int(offsets[-1] - offsets[0]) // _BYTES_PER_SEGMENT + len(offsets), np.int64)
    count = cut_texts(data, offsets, leads, wide, ends, heads)
    if count > len(ends):
        ends = np.empty(count, np.int64)
        cut_texts(data, offsets, leads, wide, ends, heads)
    return ends[:count], heads
