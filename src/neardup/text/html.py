"""Tags out of markup, in one pass that no markup makes slow: the plain removal that the paper used.

Python's own ``html.parser`` takes time that grows with the square of a broken page and differs between versions of
Python, so the tags are found here. Where a tag ends is what HTML 5 says; a quote that is never closed is a character.
"""

from __future__ import annotations

import html
import logging
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import pyarrow as pa

from neardup.errors import InputError
from neardup.text.encoding import page_text

_INLINE_WORDS = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark nobr q s samp small span "
    "strike strong sub sup time tt u var wbr"
)
#: Elements inside a line: their tags separate nothing.
INLINE = frozenset(_INLINE_WORDS.split())
#: Elements whose content is no text of the page.
_SILENT = frozenset({"script", "style"})
_SPACE = " \t\n\r\f"
#: A whole tag; no quantifier gives back what it took, so a try costs what it looks at. An open quote is not matched.
_TAG = re.compile(
    r"""<(/?)([A-Za-z][^ \t\n\r\f/>]*+)(?:[^>"'=]++|=[ \t\n\r\f]*+(?:"[^"]*+"|'[^']*+'|(?!["']))|["'])*+>"""
)
_NAME = re.compile(r"[^ \t\n\r\f/>]*+")
#: Characters within which a tag is looked for by the pattern; longer ones are followed quote by quote.
WINDOW = 1024
_PIECES = 4096
_LONG_LINE = 1 << 20
#: Python refuses decimal numbers of thousands of digits, also in a character reference.
_LONG_NUMBER = re.compile(r"&#[xX]?[0-9a-fA-F]{20,}+;?")


class Tag(NamedTuple):
    """A tag, comment or declaration: its name in lower case ("" for the latter two), and where it stands."""

    name: str
    start: int
    end: int
    closes: bool
    """An end tag, or a start tag that ends with ``/>``."""
    opens: bool
    """A start tag, closed by itself or not."""


class Tags:
    """The tags of a markup in order; ``looked`` counts characters seen, at most a small multiple of the markup's."""

    def __init__(self, markup: str, *, window: int = WINDOW) -> None:
        self.markup = markup
        self.looked = 0
        self._window = window
        self._ahead: dict[str, int] = {}

    def __iter__(self) -> Iterator[Tag]:
        at = 0
        while (start := self._next("<", at)) >= 0:
            tag = self._tag(start)
            if tag is None:
                at = start + 1
                continue
            yield tag
            at = tag.end
            if tag.name in _SILENT and tag.opens and not tag.closes:
                at = self._end_of_silent(tag)
                yield Tag("", tag.end, at, False, False)

    def _next(self, needle: str, at: int) -> int:
        """Where the needle is next, -1 for nowhere; asked with rising places, so the markup is gone through once."""
        known = self._ahead.get(needle, 0)
        if known == -1 or (known >= at and needle in self._ahead):
            return known
        found = self.markup.find(needle, at)
        self.looked += (found if found >= 0 else len(self.markup)) - at + 1
        self._ahead[needle] = found
        return found

    def _tag(self, start: int) -> Tag | None:
        markup = self.markup
        whole = _TAG.match(markup, start, start + self._window)
        if whole is not None:
            end = whole.end()
            self.looked += end - start
            return _tag_of(whole[2], bool(whole[1]), markup, start, end)
        after = markup[start + 1 : start + 3]
        closes = after[:1] == "/"
        first = after[1:] if closes else after[:1]
        if first.isascii() and first.isalpha():
            self.looked += min(self._window, len(markup) - start)
            begin = start + 1 + closes
            name = _NAME.match(markup, begin)
            stop = name.end() if name else begin
            self.looked += stop - begin
            return _tag_of(markup[begin:stop], closes, markup, start, self._end_of_tag(stop))
        if after[:1] in ("!", "?") or (closes and first):
            if markup.startswith("<!--", start):
                end = self._next("-->", start + 2) + 3
                return Tag("", start, end if end > 2 else len(markup), False, False)
            end = self._next(">", start) + 1
            return Tag("", start, end or len(markup), False, False)
        return None

    def _end_of_tag(self, at: int) -> int:
        """Where a tag ends whose name ends at `at`: after the first ``>`` that no quoted value holds."""
        markup = self.markup
        while (close := self._next(">", at)) >= 0:
            quotes = [place for place in (self._next('"', at), self._next("'", at)) if 0 <= place < close]
            if not quotes:
                return close + 1
            quote = min(quotes)
            before = quote - 1
            while before >= at and markup[before] in _SPACE:
                before -= 1
            self.looked += quote - before
            at = quote + 1
            if before >= 0 and markup[before] == "=":
                at = max(self._next(markup[quote], at) + 1, at)
        return len(markup)

    def _end_of_silent(self, tag: Tag) -> int:
        at = tag.end
        while (at := self._next("</", at)) >= 0:
            end = at + 2 + len(tag.name)
            if self.markup[at + 2 : end].lower() == tag.name and self.markup[end : end + 1] in (*_SPACE, "/", ">", ""):
                return at
            at += 2
        return len(self.markup)


def _tag_of(name: str, closes: bool, markup: str, start: int, end: int) -> Tag:
    itself = not closes and markup[end - 2] == "/"
    return Tag(name[:64].lower(), start, end, closes or itself, not closes)


def strip_tags(markup: str) -> str:
    """Return the text of a markup in lines: tags, comments, scripts and styles dropped, character references decoded.

    Navigation and advertising stay: this is the plain removal that the paper used. Tags within a line (`INLINE`)
    separate nothing, all others end the line; white space is one space, empty lines are dropped. What follows a tag,
    comment or script that is never closed is part of it, as in a browser. The time is linear in the markup's length,
    whatever it holds, and the result is the same in every version of Python.
    """
    markup = markup.replace("\0", "")
    lines = _Lines()
    at = 0
    for tag in Tags(markup):
        lines.add(_text(markup[at : tag.start]))
        at = tag.end
        if tag.name and tag.name not in INLINE:
            lines.add("\n")
    lines.add(_text(markup[at:]))
    return lines.end()


class _Lines:
    """Puts pieces together to lines, some thousands at a time: a piece takes far more memory than its characters."""

    def __init__(self) -> None:
        self._done: list[str] = []
        self._open: list[str] = []
        self._pieces: list[str] = []

    def add(self, piece: str) -> None:
        if piece:
            self._pieces.append(piece)
            if len(self._pieces) >= _PIECES:
                self._settle()

    def _settle(self) -> None:
        whole, feed, rest = "".join(self._pieces).rpartition("\n")
        self._pieces = []
        if feed:
            self._done.append(lines_of("".join([*self._open, whole])))
            self._open = []
        self._open.append(rest)

    def end(self) -> str:
        self.add("\n")
        self._settle()
        return "\n".join(filter(None, self._done))


def lines_of(text: str) -> str:
    """Return the lines of a text that hold something, white space in them as one space."""
    return "\n".join(filter(None, map(_one_spaced, text.split("\n"))))


def _one_spaced(line: str) -> str:
    if len(line) <= _LONG_LINE:
        return " ".join(line.split())
    # The words of a line of 200 MB, each a string, would take gigabytes.
    parts: list[str] = []
    apart = False
    for at in range(0, len(line), _LONG_LINE):
        piece = line[at : at + _LONG_LINE]
        words = " ".join(piece.split())
        apart = apart or piece[0].isspace()
        if words:
            parts += [" ", words] if apart and parts else [words]
            apart = piece[-1].isspace()
    return "".join(parts)


def _text(piece: str) -> str:
    if "&" in piece:
        piece = html.unescape(_LONG_NUMBER.sub("\ufffd", piece))
    return piece.replace("\n", " ")


#: Characters of the longest page that an article is looked for in.
LONGEST = 4_000_000
#: Start tags of the largest page that an article is looked for in; each costs up to a tenth of a millisecond.
MOST_TAGS = 20_000
#: Elements inside one another; beyond 255 the parser would lose their text.
DEEPEST = 200
#: Characters of the longest tag that keeps its attributes: reading them takes time by the square of their number.
LONGEST_TAG = 8_192
#: Letters and digits below which a page has hardly any article.
LEAST = 25

_VOID_WORDS = (
    "area base basefont bgsound br col command embed frame hr image img input keygen link meta param source track wbr"
)
_VOID = frozenset(_VOID_WORDS.split())
_SELF_ENDING_WORDS = "p li dt dd td th tr thead tbody tfoot option optgroup colgroup rt rp"
#: Elements that the next of their kind closes, so that many of them are no depth.
_SELF_ENDING = frozenset(_SELF_ENDING_WORDS.split())


class Page(NamedTuple):
    """The text of a page, and why it is that of all its tags.

    Attributes
    ----------
    text : str
        The article; where `fallback` says why none was looked for or found, all text of the page.
    fallback : str
        ``""``, or ``"long"`` (more than `LONGEST` characters), ``"tags"`` (more than `MOST_TAGS`), ``"deep"`` (deeper
        than `DEEPEST`), ``"little"`` (less than `LEAST` letters and digits of an article), ``"failed"``
        (the library gave up).
    """

    text: str
    fallback: str


def check_extraction() -> None:
    """Refuse pages where the library that finds articles is not installed, and say how to get it."""
    _extract()


def main_text(markup: str | bytes) -> str:
    """Return the article of a page; all of its text where none is found.

    As `read_page`, without the reason.
    """
    return read_page(markup).text


def read_page(markup: str | bytes) -> Page:
    """Find the article of a page; bytes are decoded by ``page_text``.

    Two pages with one article under different navigation give nearly the same text, and different articles under the
    same navigation different ones. Markup may be broken in any way. A page that is too long, has too many tags or nests
    them too deep (the constants of this module) gives all of its text instead, in linear time. So within the bounds a
    page costs some seconds and some hundred megabytes at most; beyond them some seconds a million tags and some times
    its size. A usual page costs some milliseconds.
    """
    extract = _extract()
    text = (page_text(markup) if isinstance(markup, bytes) else markup).replace("\0", "")
    bounded, fallback = _bounded(text)
    if fallback:
        return Page(strip_tags(text), fallback)
    try:
        article = extract(bounded)
    except Exception:  # whatever a page does to the library, it still has a text
        return Page(strip_tags(text), "failed")
    if sum(map(str.isalnum, article)) < LEAST:
        return Page(strip_tags(text), "little")
    return Page(article, "")


def _bounded(markup: str) -> tuple[str, str]:
    """Return the markup as the library may have it, and why it may not."""
    if len(markup) > LONGEST:
        return "", "long"
    tags = depth = 0
    parts: list[str] = []
    at = 0
    for tag in Tags(markup):
        if tag.opens:
            tags += 1
            if tags > MOST_TAGS:
                return "", "tags"
        if tag.name and tag.name not in _VOID and tag.name not in _SELF_ENDING and tag.opens != tag.closes:
            depth = max(0, depth + (1 if tag.opens else -1))
            if depth > DEEPEST:
                return "", "deep"
        if tag.opens and tag.end - tag.start > LONGEST_TAG:
            parts += [markup[at : tag.start], f"<{tag.name}>" if tag.name.isalnum() else " "]
            at = tag.end
    return ("".join([*parts, markup[at:]]) if parts else markup), ""


@cache
def _extract() -> Callable[[str], str]:
    try:
        import trafilatura
    except ImportError as error:
        raise InputError(
            f"the article of a page is found with trafilatura, and {error.name or error} is not installed; "
            "pip install 'neardup[html]' brings it"
        ) from None
    # It says on standard error which pages it finds nothing in; the reason is in the result.
    logging.getLogger("trafilatura").addHandler(logging.NullHandler())

    def extract(markup: str) -> str:
        return trafilatura.extract(markup, fast=True, include_comments=False) or ""

    return extract


#: Gives what of a text is compared.
Method = Callable[[str], str]
#: By the names of ``neardup.recipe.recipe.CONTENTS``.
_METHODS: dict[str, Method] = {"html": main_text, "tags": strip_tags}


def method_of(name: str) -> Method:
    """Return what makes the content of a text, by a recipe's ``content``; refuse it where its library is missing."""
    if name == "html":
        check_extraction()
    return _METHODS[name]


def content_of(text: str, name: str) -> str:
    """Return what of one text is compared, by a recipe's ``content``: empty for the text as it is."""
    return _whole(method_of(name)(text)) if name else text


def contents(texts: pa.LargeStringArray, method: Method) -> pa.LargeStringArray:
    """Return what of each text is compared, by a method from ``method_of``."""
    return pa.array([_whole(method(text)) for text in texts.to_pylist()], pa.large_string())


def _whole(text: str) -> str:
    """Return a text that UTF-8 can write: a reference such as ``&#xD800;`` may stand for half a character."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
