"""Text from markup: plain tag removal in linear time.

Python's ``html.parser`` takes quadratic time on broken pages and differs between versions of Python, so tags are
scanned here. A tag ends where HTML 5 says; a quote that is never closed is an ordinary character.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

_INLINE_WORDS = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark nobr q s samp small span "
    "strike strong sub sup time tt u var wbr"
)
#: Inline elements: their tags separate nothing.
INLINE = frozenset(_INLINE_WORDS.split())
#: Elements whose content is not text of the page.
_RAW_TEXT = frozenset({"script", "style"})
_WHITESPACE = " \t\n\r\f"
#: What may follow the name of a tag; the empty string stands for the end of the markup.
_NAME_ENDS = (*_WHITESPACE, "/", ">", "")
#: A complete tag. Possessive quantifiers avoid backtracking, so a match is linear. An unclosed quote does not match.
_TAG = re.compile(
    r"""<(/?)([A-Za-z][^ \t\n\r\f/>]*+)(?:[^>"'=]++|=[ \t\n\r\f]*+(?:"[^"]*+"|'[^']*+'|(?!["']))|["'])*+>"""
)
_NAME = re.compile(r"[^ \t\n\r\f/>]*+")
#: Tags up to this length are matched by the pattern; longer ones are scanned quote by quote.
PATTERN_WINDOW = 1024
_PIECES_PER_FLUSH = 4096
_LONG_LINE = 1 << 20
#: Python refuses to parse numbers of thousands of digits, also in a character reference.
_LONG_NUMBER = re.compile(r"&#[xX]?[0-9a-fA-F]{20,}+;?")


class Tag(NamedTuple):
    """A tag, comment or declaration: its name in lower case (empty for comments and declarations) and its position."""

    name: str
    start: int
    end: int
    closes: bool
    """An end tag, or a start tag that ends with ``/>``."""
    opens: bool
    """A start tag, closed by itself or not."""


class TagScanner:
    """Iterates over the tags of a markup.

    ``scanned`` counts the characters that were read: at most a small multiple of the length of the markup.
    """

    def __init__(self, markup: str, *, window: int = PATTERN_WINDOW) -> None:
        self.markup = markup
        self.scanned = 0
        self._window = window
        self._next_positions: dict[str, int] = {}

    def __iter__(self) -> Iterator[Tag]:
        at = 0
        while (start := self._find("<", at)) >= 0:
            tag = self._tag_at(start)
            if tag is None:
                at = start + 1
                continue
            yield tag
            at = tag.end
            if tag.name in _RAW_TEXT and tag.opens and not tag.closes:
                at = self._end_of_raw_text(tag)
                yield Tag("", tag.end, at, False, False)

    def _find(self, needle: str, at: int) -> int:
        """Return the next position of the needle, or -1. Calls must pass ascending positions: all is read once."""
        position = self._next_positions.get(needle, 0)
        if position == -1 or (position >= at and needle in self._next_positions):
            return position
        found = self.markup.find(needle, at)
        self.scanned += (found if found >= 0 else len(self.markup)) - at + 1
        self._next_positions[needle] = found
        return found

    def _tag_at(self, start: int) -> Tag | None:
        markup = self.markup
        match = _TAG.match(markup, start, start + self._window)
        if match is not None:
            end = match.end()
            self.scanned += end - start
            return _make_tag(match[2], bool(match[1]), markup, start, end)
        after = markup[start + 1 : start + 3]
        closes = after[:1] == "/"
        first = after[1:] if closes else after[:1]
        if first.isascii() and first.isalpha():
            self.scanned += min(self._window, len(markup) - start)
            begin = start + 1 + closes
            name = _NAME.match(markup, begin)
            stop = name.end() if name else begin
            self.scanned += stop - begin
            return _make_tag(markup[begin:stop], closes, markup, start, self._end_of_tag(stop))
        if after[:1] in ("!", "?") or (closes and first):
            if markup.startswith("<!--", start):
                end = self._find("-->", start + 2) + 3
                return Tag("", start, end if end > 2 else len(markup), False, False)
            end = self._find(">", start) + 1
            return Tag("", start, end or len(markup), False, False)
        return None

    def _end_of_tag(self, at: int) -> int:
        """Return the end of a tag whose name ends at ``at``: behind the first ``>`` outside a quoted value."""
        markup = self.markup
        while (close := self._find(">", at)) >= 0:
            quotes = [quote for quote in (self._find('"', at), self._find("'", at)) if 0 <= quote < close]
            if not quotes:
                return close + 1
            quote = min(quotes)
            before = quote - 1
            while before >= at and markup[before] in _WHITESPACE:
                before -= 1
            self.scanned += quote - before
            at = quote + 1
            if before >= 0 and markup[before] == "=":
                at = max(self._find(markup[quote], at) + 1, at)
        return len(markup)

    def _end_of_raw_text(self, tag: Tag) -> int:
        at = tag.end
        while (at := self._find("</", at)) >= 0:
            end = at + 2 + len(tag.name)
            if self.markup[at + 2 : end].lower() == tag.name and self.markup[end : end + 1] in _NAME_ENDS:
                return at
            at += 2
        return len(self.markup)


def _make_tag(name: str, closes: bool, markup: str, start: int, end: int) -> Tag:
    self_closing = not closes and markup[end - 2] == "/"
    return Tag(name[:64].lower(), start, end, closes or self_closing, not closes)


def strip_tags(markup: str) -> str:
    """Return the text of a markup as lines, without tags, comments, scripts and styles; decode character references.

    Navigation and advertising stay. Tags within a line (`INLINE`) separate nothing, all others end the line. White
    space is collapsed and empty lines are dropped. An unclosed tag, comment or script extends to the end, as in a
    browser. The time is linear in the length of the markup, and the result is the same in every version of Python.
    """
    markup = markup.replace("\0", "")
    lines = _LineBuilder()
    at = 0
    for tag in TagScanner(markup):
        lines.add(_unescape(markup[at : tag.start]))
        at = tag.end
        if tag.name and tag.name not in INLINE:
            lines.add("\n")
    lines.add(_unescape(markup[at:]))
    return lines.text()


class _LineBuilder:
    """Joins pieces into lines, some thousands at a time, because a piece takes far more memory than its characters."""

    def __init__(self) -> None:
        self._finished: list[str] = []
        self._open: list[str] = []
        self._pieces: list[str] = []

    def add(self, piece: str) -> None:
        if piece:
            self._pieces.append(piece)
            if len(self._pieces) >= _PIECES_PER_FLUSH:
                self._flush()

    def _flush(self) -> None:
        complete, feed, open_line = "".join(self._pieces).rpartition("\n")
        self._pieces = []
        if feed:
            self._finished.append(collapse_lines("".join([*self._open, complete])))
            self._open = []
        self._open.append(open_line)

    def text(self) -> str:
        self.add("\n")
        self._flush()
        return "\n".join(filter(None, self._finished))


def collapse_lines(text: str) -> str:
    """Return the non-empty lines of a text, with runs of white space as one space."""
    return "\n".join(filter(None, map(_collapse_spaces, text.split("\n"))))


def _collapse_spaces(line: str) -> str:
    if len(line) <= _LONG_LINE:
        return " ".join(line.split())
    # The words of a line of 200 MB, as separate strings, would take gigabytes.
    parts: list[str] = []
    pending_space = False
    for at in range(0, len(line), _LONG_LINE):
        piece = line[at : at + _LONG_LINE]
        words = " ".join(piece.split())
        pending_space = pending_space or piece[0].isspace()
        if words:
            parts += [" ", words] if pending_space and parts else [words]
            pending_space = piece[-1].isspace()
    return "".join(parts)


def _unescape(piece: str) -> str:
    if "&" in piece:
        piece = html.unescape(_LONG_NUMBER.sub("\ufffd", piece))
    return piece.replace("\n", " ")
