"""Texts of documents as all pages show them: no more than people read, and what is not shown is counted beside it.

A word may be a megabyte long, and a letter may carry a hundred thousand marks: a browser would need a minute to lay
them out, over hundreds of screens.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from neardup.pages.escaping import Html, escaped, html_of

#: Characters of a name or a title.
_NAME = 300
#: What a line feed counts as, for it fills a line.
_LINE = 40
#: Of writing without spaces, which may break anywhere: from Thai to Khmer, Chinese, Japanese, Hangul.
_BREAKING = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
    "\U0001b000-\U0001b2ff\U00020000-\U0003ffff"
)
#: Of longer runs without a break so much of the beginning and the end is shown; of white space so much.
_RUN, _BEGIN, _END, _SPACE = 240, 120, 40, 4
_LONG = re.compile(rf"[^\s{_BREAKING}]{{{_RUN + 1},}}|\s{{81,}}")
#: So many marks of a letter are shown; no language writes more.
_MARKS = 8
#: What may hold more: Python takes no mark for a part of a word.
_STACKED = re.compile(rf"[^\w\s\0-\u02ff]{{{_MARKS + 1},}}")


class Excerpt(NamedTuple):
    """What a page shows of a text.

    Attributes
    ----------
    html : Html
        It, and what is said of what is left out inside.
    size : int
        Characters that are shown; a line feed counts as a line.
    rest : int
        Characters behind those, of which nothing is said yet.
    """

    html: Html
    size: int
    rest: int


def excerpt_of(text: str, most: int) -> Excerpt:
    """Return what a page shows of a text, up to about ``most`` characters."""
    shown: list[str] = []
    size = at = 0
    for begin, end, kind in _cuts(text):
        stretch = text[at : at + _fitting(text[at:begin], most - size)]
        shown.append(escaped(stretch))
        size += _size(stretch)
        at += len(stretch)
        if at < begin:
            break
        if begin < end:
            shown.append(_not_shown(end - begin, kind))
        at = end
    return Excerpt(Html("".join(shown)), size, len(text) - at)


def excerpt(text: str, most: int = _NAME) -> Html:
    """Return a text up to about so many characters, with what is left out counted beside it."""
    found = excerpt_of(text, most)
    return Html(found.html + rest_of(found.rest))


def rest_of(characters: int) -> Html:
    """Return what is said of characters behind those that are shown; nothing where there are none."""
    return Html(_not_shown(characters, "more characters")) if characters else Html("")


def clipped(text: str, most: int) -> str:
    """Return how a text begins, for a line of a list, with an ellipsis in the place of what is left out."""
    words = " ".join(text.split())
    shown, at = "", 0
    for begin, end, _ in _cuts(words):
        shown += words[at:begin] + ("…" if begin < end else "")
        at = end
        if len(shown) > most:
            return shown[:most].rstrip() + "…"
    return shown


def text(value: object) -> Html:
    """Return a name, or a short text of a document, that runs in its own direction whatever stands around it."""
    plain = isinstance(value, str) and not isinstance(value, Html)
    return Html(f'<bdi dir="auto">{excerpt(str(value)) if plain else html_of(value)}</bdi>')


def _cuts(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield what is left out inside of a text, and its end: where each begins and ends, and what it holds."""
    at = 0
    for begin, end in (*_stacks(text), (len(text), len(text))):
        for run in _LONG.finditer(text, at, begin):
            if run[0].isspace():
                yield run.start() + _SPACE, run.end(), "characters of white space"
            else:
                yield run.start() + _BEGIN, run.end() - _END, "characters"
        yield begin, end, "marks"
        at = end


def _stacks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the marks of letters that have too many, without the first ones."""
    for found in _STACKED.finditer(text):
        at = found.start()
        for is_mark, same in groupby(found[0], key=lambda one: unicodedata.category(one).startswith("M")):
            end = at + sum(1 for _ in same)
            if is_mark and end - at > _MARKS:
                yield at + _MARKS, end
            at = end


def _size(text: str) -> int:
    return len(text) + (_LINE - 1) * text.count("\n")


def _fitting(text: str, room: int) -> int:
    """Return how many characters of a text there is room for."""
    if _size(text) <= room:
        return len(text)
    used = 0
    for at, one in enumerate(text):
        used += _LINE if one == "\n" else 1
        if used > room:
            return at
    return len(text)


def _not_shown(number: int, what: str) -> str:
    return f'<bdi class="dim left-out" dir="ltr"> … {number:,} {what} not shown … </bdi>'
