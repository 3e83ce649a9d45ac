"""The bytes of a web page -> its text, whatever encoding it is in; no byte makes a page unreadable."""

from __future__ import annotations

import codecs
import re

#: How much of a page is searched for its declaration.
_HEAD = 8192
#: Byte order marks; the longer first, for that of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: How the first tag looks in UTF-16 without a mark.
_WIDE = ((b"<\0", "utf-16-le"), (b"\0<", "utf-16-be"))
_DECLARED = re.compile(
    rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']?\s*([\w.:-]+)|<meta\s[^>]{0,400}?charset\s*=\s*["']?\s*([\w.:-]+)""",
    re.IGNORECASE,
)
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_USUAL = "cp1252"
#: Declared encodings are taken for those that browsers take them for, which hold more characters.
_WIDER = {
    "ascii": _USUAL,
    "iso8859-1": _USUAL,
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}
#: Labels that browsers know and Python does not.
_LABELS = {"windows-31j": "cp932", "windows-949": "cp949", "iso-8859-8-i": "iso8859-8"}
#: What a page may declare: Python has codecs besides that are no alphabets.
_READ = re.compile(
    r"iso8859-\d+|cp125\d|cp866|cp874|cp932|cp949|koi8-[ru]|mac-(roman|cyrillic)|gb18030|big5hkscs|euc_jp|iso2022_jp"
)


def page_text(page: bytes) -> str:
    """Return the text of a page.

    A byte order mark decides; else what is valid UTF-8 beyond ASCII is UTF-8, for nothing else looks like it, whatever
    the page declares; else what the page declares, in an XML declaration or a ``meta`` element; else Windows-1252, as
    in browsers. What the encoding does not know becomes U+FFFD.

    Parameters
    ----------
    page : bytes
        Any bytes.

    Examples
    --------
    >>> page_text(b'<meta charset="koi8-r">' + "роза".encode("koi8-r"))
    '<meta charset="koi8-r">роза'
    >>> page_text("<p>naïve".encode("latin-1"))
    '<p>naïve'
    """
    for mark, encoding in _MARKS:
        if page.startswith(mark):
            return _decoded(page[len(mark) :], encoding)
    for begin, encoding in _WIDE:
        if page.startswith(begin):
            return _decoded(page, encoding)
    declared = _declared(page)
    if page.isascii():
        # Of the encodings read here only this one writes other characters with the bytes of ASCII.
        return _decoded(page, "iso2022_jp" if declared == "iso2022_jp" else "ascii")
    try:
        return page.decode()
    except UnicodeDecodeError:
        return _decoded(page, declared or _USUAL)


def _decoded(page: bytes, encoding: str) -> str:
    return page.decode(encoding, "replace")


def _declared(page: bytes) -> str:
    """Return the codec of the encoding that a page declares; empty where it declares none that pages have."""
    found = _DECLARED.search(_COMMENT.sub(b"", page[:_HEAD]))
    if found is None:
        return ""
    label = (found[1] or found[2]).decode("ascii", "replace").lower()
    try:
        codec = codecs.lookup(_LABELS.get(label, label.removeprefix("x-"))).name
    except LookupError:
        return ""
    if codec == "utf-8" or codec.startswith(("utf-16", "utf-32")):
        # A declaration that can be read byte by byte is in neither of the wide ones.
        return "utf-8"
    codec = _WIDER.get(codec, codec)
    return codec if _READ.fullmatch(codec) else ""
