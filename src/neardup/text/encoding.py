"""Bytes to text in any encoding; no sequence of bytes makes a page, a feed or a text unreadable."""

from __future__ import annotations

import codecs
import re
import string

#: Bytes at the start of a page that are searched for its declaration.
_DECLARATION_WINDOW = 8192
#: Byte order marks, longer ones first: that of UTF-32 begins with that of UTF-16.
_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: Two ASCII characters in UTF-16 without a byte order mark, or the first tag of a page.
_UTF16_STARTS = (
    (re.compile(rb"[\t\n\r -~]\0[\t\n\r -~]\0|<\0"), "utf-16-le"),
    (re.compile(rb"\0[\t\n\r -~]\0[\t\n\r -~]|\0<"), "utf-16-be"),
)
_DECLARATION = re.compile(
    rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']?\s*([\w.:-]+)|<meta\s[^>]{0,400}?charset\s*=\s*["']?\s*([\w.:-]+)""",
    re.IGNORECASE,
)
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_DEFAULT = "cp1252"
#: Windows-1252 as browsers decode it: its five undefined bytes are control characters.
_WINDOWS_1252 = "".join(bytes([byte]).decode(_DEFAULT, "ignore") or chr(byte) for byte in range(256))
_FALLBACK_HANDLER = "neardup.or-windows-1252"
#: The name of the encoding, for messages and summaries.
WINDOWS_1252 = "windows-1252"
#: ASCII, its letters, the control characters that texts do not have with the bytes that Windows-1252 does not define.
_ASCII, _LETTERS = bytes(range(0x80)), string.ascii_letters.encode()
_NO_TEXT = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f\x81\x8d\x8f\x90\x9d]")
#: Browsers decode a declared encoding as a superset of it.
_SUPERSETS = {
    "ascii": _DEFAULT,
    "iso8859-1": _DEFAULT,
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
#: Codecs that a page may declare; Python also has codecs that are not character encodings.
_SUPPORTED_CODECS = re.compile(
    r"iso8859-\d+|cp125\d|cp866|cp874|cp932|cp949|koi8-[ru]|mac-(roman|cyrillic)|gb18030|big5hkscs|euc_jp|iso2022_jp"
)


def decode_page(page: bytes, charset: str = "") -> str:
    """Return the text of a page.

    In order of priority: a byte order mark; UTF-8, if the bytes beyond ASCII are valid UTF-8 (no other encoding looks
    like it, whatever the page declares); the ``charset`` that came with the page, such as that of its HTTP header; the
    encoding declared in an XML declaration or a ``meta`` element; Windows-1252, as in browsers. Undecodable bytes
    become U+FFFD.

    Examples
    --------
    >>> decode_page(b'<meta charset="koi8-r">' + "роза".encode("koi8-r"))
    '<meta charset="koi8-r">роза'
    >>> decode_page("<p>naïve".encode("latin-1"))
    '<p>naïve'
    """
    encoding, begin = detect_encoding(page)
    if encoding:
        return page[begin:].decode(encoding, "replace")
    declared = _codec_of_label(charset) or _declared_codec(page)
    if page.isascii():
        # ISO-2022-JP is the only supported encoding that writes other characters with ASCII bytes.
        return page.decode("iso2022_jp" if declared == "iso2022_jp" else "ascii", "replace")
    try:
        return page.decode()
    except UnicodeDecodeError:
        return page.decode(declared or _DEFAULT, "replace")


def detect_encoding(data: bytes) -> tuple[str, int]:
    """Return the encoding that the first bytes show, and the offset of the text; ``""`` if they show none.

    They show it by a byte order mark, or by the zero bytes of ASCII letters in UTF-16.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return encoding, len(bom)
    return next((encoding for pattern, encoding in _UTF16_STARTS if pattern.match(data)), ""), 0


def is_partial_bom(data: bytes) -> bool:
    """Return whether data is a proper prefix of a byte order mark."""
    return bool(data) and any(bom.startswith(data) and bom != data for bom, _ in _BOMS)


def decode_utf8(data: bytes) -> tuple[str, str]:
    """Return the text of bytes that should be UTF-8, and a note if they are not.

    Invalid bytes are read as Windows-1252, as browsers do, one by one, so that a wrong byte spoils no other character.

    Examples
    --------
    >>> decode_utf8("café – olé".encode("cp1252"))
    ('café – olé', 'not valid UTF-8 (byte 3), read as windows-1252')
    """
    try:
        return data.decode(), ""
    except UnicodeDecodeError as error:
        return data.decode(errors=_FALLBACK_HANDLER), f"not valid UTF-8 (byte {error.start:,}), read as windows-1252"


def is_windows_1252(data: bytes) -> bool:
    """Return whether bytes that are not UTF-8 look like a text in Windows-1252.

    That has no control characters, and more ASCII letters than others, unlike Cyrillic, Greek or Asian encodings.
    """
    others = len(data.translate(None, _ASCII))
    return others <= len(data) - len(data.translate(None, _LETTERS)) and _NO_TEXT.search(data) is None


def is_guessed(page: bytes) -> bool:
    """Return whether ``decode_page`` can only guess the encoding of a page."""
    if detect_encoding(page)[0] or page.isascii() or _declared_codec(page):
        return False
    try:
        page.decode()
    except UnicodeDecodeError:
        return True
    return False


def encoding_of_lines(data: bytes) -> str:
    """Return the encoding that most lines beyond ASCII are in, ``utf-8`` or ``windows-1252``.

    Examples
    --------
    >>> encoding_of_lines("café, olé".encode("cp1252"))
    'windows-1252'
    """
    in_utf8 = others = 0
    for line in data.split(b"\n"):
        if line.isascii():
            continue
        try:
            line.decode()
            in_utf8 += 1
        except UnicodeDecodeError:
            others += 1
    return WINDOWS_1252 if others > in_utf8 and is_windows_1252(data) else "utf-8"


def windows_1252_decoder() -> codecs.IncrementalDecoder:
    """Return a decoder of ``decode_utf8`` that takes the bytes piece by piece."""
    return codecs.getincrementaldecoder("utf-8")(_FALLBACK_HANDLER)


def decode_complete(data: bytes) -> tuple[str, str]:
    """Return the text of JSON or XML as ``decode_utf8`` does, without an incomplete character at its end.

    Neither format ends with a letter, so such a file was truncated.
    """
    try:
        return data.decode(), ""
    except UnicodeDecodeError as error:
        is_cut = error.reason == "unexpected end of data"
        return (data[: error.start].decode(), "") if is_cut else decode_utf8(data)


def decode_feed(data: bytes) -> tuple[str, str]:
    """Return the text of XML, and a note if its bytes are not in the expected encoding.

    As in ``decode_page``, but XML that declares UTF-8 or nothing is decoded by ``decode_complete``.
    """
    return decode_complete(data) if _declared_codec(data) in ("", "utf-8") else (decode_page(data), "")


def _decode_as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(_WINDOWS_1252[byte] for byte in error.object[error.start : error.end]), error.end


codecs.register_error(_FALLBACK_HANDLER, _decode_as_windows_1252)


def _declared_codec(page: bytes) -> str:
    """Return the codec that a page declares; empty if it declares none that pages use."""
    found = _DECLARATION.search(_COMMENT.sub(b"", page[:_DECLARATION_WINDOW]))
    if found is None:
        return ""
    return _codec_of_label((found[1] or found[2]).decode("ascii", "replace"))


def _codec_of_label(label: str) -> str:
    """Return the codec of an encoding's name; empty if it is none that pages use."""
    label = label.strip().lower()
    try:
        codec = codecs.lookup(_LABELS.get(label, label.removeprefix("x-"))).name
    except (LookupError, ValueError):
        return ""
    if codec == "utf-8" or codec.startswith(("utf-16", "utf-32")):
        # A declaration that reads as ASCII is not UTF-16 or UTF-32, whatever it says.
        return "utf-8"
    codec = _SUPERSETS.get(codec, codec)
    return codec if _SUPPORTED_CODECS.fullmatch(codec) else ""
