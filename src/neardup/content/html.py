"""The article of a page, without the navigation, advertising and footers around it.

`Trafilatura <https://trafilatura.readthedocs.io>`_ finds it. Of what is still cared for it came first by F1
of words on ../shared/data/html (``benchmarks/html.py`` measures it beside the others). The gold text there is the body
alone, so the title of a page is not part of its text.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from neardup.content.charset import page_text
from neardup.content.tags import Tags, strip_tags
from neardup.errors import InputError

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
    """Refuse pages where the library that finds articles is not installed.

    Raises
    ------
    InputError
        Saying how to get it.
    """
    _extract()


def main_text(markup: str | bytes) -> str:
    """Return the article of a page; all of its text where none is found.

    As `read_page`, without the reason.
    """
    return read_page(markup).text


def read_page(markup: str | bytes) -> Page:
    """Find the article of a page.

    Two pages with one article under different navigation give nearly the same text, and different articles under
    the same navigation different ones. Markup may be broken in any way. A page that is too long, has too many tags or
    nests them too deep (the constants of this module) gives all of its text instead, in linear time. So within the
    bounds a page costs some seconds and some hundred megabytes at most; beyond them some seconds a million tags and
    some times its size. A usual page costs some milliseconds.

    Parameters
    ----------
    markup : str or bytes
        The page; bytes are decoded by ``page_text``.

    Returns
    -------
    Page
        The text, and why it is not the article.

    Raises
    ------
    InputError
        When trafilatura is not installed.
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
            'pip install "neardup[html]"'
        ) from None
    # It says on standard error which pages it finds nothing in; the reason is in the result.
    logging.getLogger("trafilatura").addHandler(logging.NullHandler())

    def extract(markup: str) -> str:
        return trafilatura.extract(markup, fast=True, include_comments=False) or ""

    return extract
