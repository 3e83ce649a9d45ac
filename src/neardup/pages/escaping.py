"""Texts in HTML: what is HTML already, and what has to be escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from numbers import Integral, Real

#: Control characters but tab and line feed, and halves of surrogate pairs: no page can hold them.
_UNSHOWABLE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
#: Pictures of control characters begin here.
_PICTURES = 0x2400


class Html(str):
    """A text that is HTML already."""

    __slots__ = ()


def escaped(value: object) -> Html:
    """Return a text that is safe between tags and in quoted attributes.

    Control characters become their pictures, and what no file of UTF-8 can hold U+FFFD.
    """
    return Html(html.escape(_UNSHOWABLE.sub(_picture, str(value)), quote=True))


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code == ord("\r"):
        return "\n"
    return chr(_PICTURES + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def html_of(value: object) -> Html:
    """Return a value as a page shows it: HTML as it is, numbers as people write them, all else as text.

    Whole numbers have commas, others three digits that count; nothing stands for None.
    """
    if isinstance(value, Html):
        return value
    if value is None:
        return Html("")
    if isinstance(value, bool):
        return Html("yes" if value else "no")
    if isinstance(value, Integral):
        return Html(f"{int(value):,}")
    if isinstance(value, Real):
        number = float(value)
        return Html(f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}")
    return escaped(value)


def joined(parts: Iterable[object], between: str = "") -> Html:
    """Return parts one after the other."""
    return Html(html_of(between).join(html_of(part) for part in parts))


def plain(value: str) -> str:
    """Return the text of HTML, or a text as it is."""
    return html.unescape(re.sub("<[^>]*>", " ", value)).strip() if isinstance(value, Html) else value
