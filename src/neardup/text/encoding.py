"""Bytes -> text, whatever encoding they are in; no byte makes a page, a feed or a text unreadable."""

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
#: How two characters of ASCII look in UTF-16 without a mark, and how the first tag of a page does.
_WIDE = (
    (re.compile(rb"[\t\n\r -~]\0[\t\n\r -~]\0|<\0"), "utf-16-le"),
    (re.compile(rb"\0[\t\n\r -~]\0[\t\n\r -~]|\0<"), "utf-16-be"),
)
_DECLARED = re.compile(
    rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']?\s*([\w.:-]+)|<meta\s[^>]{0,400}?charset\s*=\s*["']?\s*([\w.:-]+)""",
    re.IGNORECASE,
)
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_USUAL = "cp1252"
#: Windows-1252 as browsers have it: the five bytes that it leaves open are control characters.
_WINDOWS = "".join(bytes([byte]).decode(_USUAL, "ignore") or chr(byte) for byte in range(256))
_OR_WINDOWS = "neardup.or-windows-1252"
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

    Examples
    --------
    >>> page_text(b'<meta charset="koi8-r">' + "роза".encode("koi8-r"))
    '<meta charset="koi8-r">роза'
    >>> page_text("<p>naïve".encode("latin-1"))
    '<p>naïve'
    """
    encoding, begin = marked_encoding(page)
    if encoding:
        return _decoded(page[begin:], encoding)
    declared = _declared(page)
    if page.isascii():
        # Of the encodings read here only this one writes other characters with the bytes of ASCII.
        return _decoded(page, "iso2022_jp" if declared == "iso2022_jp" else "ascii")
    try:
        return page.decode()
    except UnicodeDecodeError:
        return _decoded(page, declared or _USUAL)


def marked_encoding(data: bytes) -> tuple[str, int]:
    """Return the encoding that the first bytes show, and where the text begins; ``""`` where they show none.

    They are a byte order mark, or the zeros that letters have in UTF-16.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding, len(mark)
    return next((encoding for begin, encoding in _WIDE if begin.match(data)), ""), 0


def is_half_a_mark(data: bytes) -> bool:
    """Return whether data is the begin of a byte order mark and nothing else."""
    return bool(data) and any(mark.startswith(data) and mark != data for mark, _ in _MARKS)


def utf8_text(data: bytes) -> tuple[str, str]:
    """Return the text of bytes that ought to be UTF-8, and a note where they are not.

    Bytes that are not UTF-8 are read as Windows-1252, as browsers do. It is done byte by byte, so that one wrong byte
    spoils no other character.

    Examples
    --------
    >>> utf8_text("café – olé".encode("cp1252"))
    ('café – olé', 'not valid UTF-8 (byte 3), read as windows-1252')
    """
    try:
        return data.decode(), ""
    except UnicodeDecodeError as error:
        return data.decode(errors=_OR_WINDOWS), f"not valid UTF-8 (byte {error.start:,}), read as windows-1252"


def whole_text(data: bytes) -> tuple[str, str]:
    """Return the text of JSON or XML as `utf8_text` does, but without half a character at its end.

    Neither ends in a letter, so a file that seems to was cut there.
    """
    try:
        return data.decode(), ""
    except UnicodeDecodeError as error:
        is_cut = error.reason == "unexpected end of data"
        return (data[: error.start].decode(), "") if is_cut else utf8_text(data)


def feed_text(data: bytes) -> tuple[str, str]:
    """Return the text of XML, and a note where its bytes are not in the encoding that they ought to be in.

    As in ``page_text``, except that what declares UTF-8, or nothing, and is in another encoding, is read by
    ``whole_text``.
    """
    return whole_text(data) if _declared(data) in ("", "utf-8") else (page_text(data), "")


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(_WINDOWS[byte] for byte in error.object[error.start : error.end]), error.end


codecs.register_error(_OR_WINDOWS, _as_windows)


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
