"""Mail as documents: files of one mail each, and mailboxes (mbox), with decoded header fields and texts.

The standard library's ``email`` parses mails, with its policy ``compat32``: that leaves header fields as they are
written. The newer policy parses each of them by a grammar, raises errors on broken ones, and takes many times as long.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import closing
from email import message_from_bytes
from email.header import decode_header
from email.message import Message
from email.utils import parsedate_to_datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.documents.column_paths import ColumnPath, find_in_types
from neardup.documents.columnar import fit_table
from neardup.documents.compression import Codec
from neardup.documents.inputs import MAILBOX_LINE, InputFile
from neardup.documents.parsed import Parsed, ParsedSource, chunk_of, parts_of
from neardup.documents.records import Chunk, ReadOptions, Reason, RecordFault
from neardup.documents.rejected import Skipped
from neardup.documents.streams import Records, blocks
from neardup.documents.textfiles import TextFiles, content_of, id_of
from neardup.text.encoding import decode_page
from neardup.text.html import strip_tags

_COLUMNS = ("id", "date", "from", "to", "subject", "list_id", "text")
_SCHEMA = pa.schema([(name, pa.large_string()) for name in _COLUMNS])
#: The largest mail, with its attachments.
LARGEST_MAIL = 128 << 20
#: A mail of more parts than this is not parsed: each level of nesting costs time for each line.
MAX_PARTS = 1000
_MAX_DEPTH = 100
#: The longest field that describes a part; the library's time grows with the square of the number of its parameters.
_LONGEST_FIELD = 16 << 10
_UNDATED, _ATTACHMENT = "unreadable date", "attachment"

_KNOWN_FIELD = (
    rb"(?i:from|to|subject|date|message-id|received|return-path|delivered-to|mime-version|content-type|sender|cc|bcc|"
    rb"reply-to|x-[\w-]+|list-[\w-]+|in-reply-to|references|dkim-signature|authentication-results|status)[ \t]*:"
)
#: One of these makes a mail of bytes: any text may begin with a word and a colon.
_FIELDS = re.compile(rb"^" + _KNOWN_FIELD, re.MULTILINE)
_HEADER_END = re.compile(rb"\r?\n\r?\n")
_PARTS = re.compile(rb"^content-type[ \t]*+:[ \t\r\n]*+(?:multipart|message)/", re.IGNORECASE | re.MULTILINE)
_PART_FIELDS = re.compile(
    rb"^content-(?:type|disposition)[ \t]*+:(?:[^\n]*+\n(?=[ \t]))*+[^\n]*+", re.IGNORECASE | re.MULTILINE
)
#: The start of the next mail of a mailbox: a line that begins with "From ", has a time of day and a year, and is
#: followed by a field; without these, a blank line before it and a usual field after it.
_NEXT_MAIL = re.compile(
    rb"\n(?=" + MAILBOX_LINE + rb")|\n\r?\n(?=From (?=[^\n]{0,300}\n)[^\n]*+\n" + _KNOWN_FIELD + rb")"
)
_FROM_LINE = re.compile(rb"From [^\n]*\n")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_MESSAGE_ID = re.compile(r"<\s*([^<>\s]+)\s*>")
_WORD = r"=\?[^?\s]{1,80}\?[bBqQ]\?[^?\n]*+\?="
#: Encoded words that follow each other; what separates them is no text. The library's time grows with the square.
_WORDS = re.compile(rf"{_WORD}(?:\s+{_WORD}){{0,99}}+")


def mailbox_source(file: InputFile, codec: Codec | None) -> ParsedSource:
    """Open a mailbox."""
    return ParsedSource(file, codec, _SCHEMA, "id", _mails, pages=False)


class MailFiles(TextFiles):
    """A series of files of one mail each."""

    id_column = "id"
    holds_pages = False

    def __init__(self, files: list[InputFile]) -> None:
        super().__init__(files)
        self.skipped = Skipped()

    def columns(self) -> dict[str, pa.DataType]:
        """Return the columns of mails."""
        return {field.name: field.type for field in _SCHEMA}

    def find_column(self, name: str) -> ColumnPath | None:
        """Return one of the columns; None for any other name."""
        return find_in_types(name, self.columns())

    def chunks(self, options: ReadOptions) -> Generator[Chunk, None, None]:
        """Pass one: yield several mails per chunk."""
        skipped, first = Skipped(), 0
        for part in parts_of(self._parsed(file, skipped) for file in self.files):
            chunk = chunk_of(part, _SCHEMA, options)
            files = self.files[first : first + len(part)]
            chunk.bytes_read, first = sum(file.size for file in files), first + len(part)
            if options.by_file and options.id:
                prefixes = (file.name for file, one in zip(files, part, strict=True) if one.fault is None)
                ids = [f"{name}:{key}" for name, key in zip(prefixes, chunk.ids.to_pylist(), strict=True)]
                chunk.ids = pa.array(ids, pa.large_string())
            yield chunk
        self.skipped = skipped

    def schema(self, keep: np.ndarray) -> pa.Schema:
        """Return the schema of mails."""
        del keep
        return _SCHEMA

    def tables(self, keep: np.ndarray, schema: pa.Schema) -> Iterator[pa.Table]:
        """Pass two: yield the kept mails in order, as tables of this schema."""
        kept = (self.files[row] for row in np.flatnonzero(keep).tolist())
        for part in parts_of(self._parsed(file, Skipped()) for file in kept):
            yield fit_table(pa.Table.from_pylist([one.values for one in part], _SCHEMA), schema, self.file.name)

    @staticmethod
    def _parsed(file: InputFile, skipped: Skipped) -> Parsed:
        found = content_of(file)
        if found.reason:
            return Parsed({}, RecordFault(0, found.reason, detail=found.detail, record=found.content))
        return parse_mail(found.content, id_of(file), skipped)


def _mails(file: InputFile, codec: Codec | None, skipped: Skipped) -> Generator[Parsed, None, None]:
    """Yield the mails of a mailbox."""
    number = position = 0
    name = id_of(file)
    with closing(blocks(file, codec, _split)) as all_blocks:
        for block in all_blocks:
            position += block.bytes_read
            next_line = block.line
            for place in range(block.starts.size):
                data = block.record(place)
                line, next_line = next_line, next_line + data.count(b"\n")
                if not data.strip():
                    continue
                number += 1
                if broken := block.faults.get(int(block.starts[place])):
                    reason, detail = broken
                    yield Parsed({}, RecordFault(0, reason, 1, line, detail, data), position)
                    continue
                yield parse_mail(_unquoted(data), f"{name}:{number}", skipped, line, position)
            if block.damage:
                fault = RecordFault(0, Reason.DAMAGED_COMPRESSION, 0, next_line, detail=block.damage, record=block.tail)
                yield Parsed({}, fault, position)


def _split(data: bytes, is_end: bool) -> Records:
    """Return the mails of some bytes; at the end of the file all bytes belong to some mail."""
    ends = _mail_ends(data)
    is_rest = is_end and (int(ends[-1]) if ends.size else 0) < len(data)
    return Records(np.append(ends, len(data)) if is_rest else ends)


def mails_in(data: bytes) -> Iterator[bytes]:
    """Yield the mails of a mailbox, without the lines that begin them."""
    ends = [*_mail_ends(data).tolist(), len(data)]
    for begin, end in pairwise([0, *ends]):
        if data[begin:end].strip():
            yield _unquoted(data[begin:end])


def _unquoted(data: bytes) -> bytes:
    """Return a mail as it was before a mailbox quoted its lines that look like the start of a mail."""
    return _QUOTED_FROM.sub(rb"\1", _FROM_LINE.sub(b"", data, count=1) if data.startswith(b"From ") else data)


def _mail_ends(data: bytes) -> np.ndarray:
    """Return the position after each mail that ends in the bytes."""
    return np.array([match.end() for match in _NEXT_MAIL.finditer(data)], dtype=np.int64)


def parse_mail(data: bytes, name: str, skipped: Skipped, line: int | None = None, position: int = 0) -> Parsed:
    """Return a mail as values of the columns.

    Parameters
    ----------
    data : bytes
        The mail, without the line that begins it in a mailbox.
    name : str
        Its id if it has none.
    skipped : Skipped
        Counts attachments, and dates that cannot be read.
    line, position : int
        Where it is, for messages and progress.
    """

    def fault(reason: str, detail: str = "") -> Parsed:
        return Parsed({}, RecordFault(0, reason, 1, line, detail, data), position)

    if len(data) > LARGEST_MAIL:
        return fault(Reason.TOO_LONG, f"{len(data):,} bytes, {LARGEST_MAIL:,} allowed")
    data = data.lstrip(b"\r\n")
    end = _HEADER_END.search(data)
    header = data[: end.end() if end else len(data)]
    if _FIELDS.search(header) is None:
        return fault(Reason.NOT_MAIL, "it begins with no header of a mail")
    if sum(1 for _ in _PARTS.finditer(data)) > MAX_PARTS:
        return fault(Reason.BROKEN_RECORD, f"more than {MAX_PARTS:,} multiparts")
    if any(len(match[0]) > _LONGEST_FIELD for match in _PART_FIELDS.finditer(data)):
        return fault(Reason.BROKEN_RECORD, f"a field that describes a part is longer than {_LONGEST_FIELD:,} bytes")
    try:
        mail = message_from_bytes(data)
        fields = _fields_of(mail)
        body = _Body(skipped)
        text = "\n".join(filter(None, (part.strip("\r\n") for part in body.texts(mail, 0))))
    except RecursionError:
        return fault(Reason.BROKEN_RECORD, "its parts are nested too deeply")
    except Exception as error:  # the library raises many kinds of errors about broken mails
        return fault(Reason.BROKEN_RECORD, " ".join(str(error).split())[:120] or type(error).__name__)
    message_id = _MESSAGE_ID.search(fields.get("message-id", ""))
    key = message_id[1] if message_id else fields.get("message-id", "").strip("<>")
    values: dict[str, Any] = {
        "id": key or name,
        "date": _time_of(fields.get("date", ""), skipped),
        **{column: fields.get(column.replace("_", "-")) for column in ("from", "to", "subject", "list_id")},
        "text": text.replace("\r\n", "\n"),
    }
    return Parsed(values, None, position)


def _fields_of(mail: Message) -> dict[str, str]:
    """Return the decoded values of a header's fields, by their names in lower case; the first of a name counts."""
    fields: dict[str, str] = {}
    for name, value in mail.raw_items():
        if name.lower() in ("message-id", "date", "from", "to", "subject", "list-id"):
            fields.setdefault(name.lower(), decoded_field(str(value)))
    return fields


def decoded_field(value: str) -> str:
    """Return the value of a header's field as text, on one line.

    Bytes beyond ASCII, which the library leaves as surrogates, are read as UTF-8, else as Windows-1252.

    Examples
    --------
    >>> decoded_field("=?utf-8?q?caf=C3=A9?= au =?utf-8?b?bGFpdA==?=")
    'café au lait'
    """
    if not value.isascii():
        value = decode_page(value.encode("utf-8", "surrogateescape"))
    return " ".join(_WORDS.sub(lambda match: _decoded_words(match[0]), value).split())


def _decoded_words(words: str) -> str:
    try:
        parts = decode_header(words)
    except Exception:  # as in parse_mail; such words stay as they are written
        return words
    return "".join(part if isinstance(part, str) else decode_page(part, charset or "") for part, charset in parts)


def _time_of(value: str, skipped: Skipped) -> str | None:
    """Return a date in ISO 8601; None without one, and for one that cannot be read, which is counted."""
    if not value.strip():
        return None
    try:
        return parsedate_to_datetime(value[:200]).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        skipped.add(_UNDATED)
        return None


class _Body:
    """The texts of a mail: of each alternative the plain one, or that of its page; attachments are counted."""

    def __init__(self, skipped: Skipped) -> None:
        self._skipped = skipped

    def texts(self, part: Message, depth: int) -> list[str]:
        if depth > _MAX_DEPTH:
            raise RecursionError
        kind = part.get_content_type()
        if part.is_multipart():
            parts = [one for one in part.get_payload() if isinstance(one, Message)]
            if kind == "multipart/alternative":
                return self._alternative(parts, depth)
            return [text for one in parts for text in self.texts(one, depth + 1)]
        if part.get_content_disposition() == "attachment" or kind not in ("text/plain", "text/html"):
            self._skipped.add(_ATTACHMENT)
            return []
        data = part.get_payload(decode=True)
        text = decode_page(data if isinstance(data, bytes) else b"", part.get_content_charset() or "")
        return [strip_tags(text) if kind == "text/html" else text]

    def _alternative(self, parts: list[Message], depth: int) -> list[str]:
        """Return the texts of the best alternative: one that has plain text, else the first that has any text."""
        plain = [one for one in parts if one.get_content_type() == "text/plain"]
        for one in (*plain, *(one for one in parts if one not in plain)):
            texts = self.texts(one, depth + 1)
            if any(text.strip() for text in texts):
                return texts
        return []
