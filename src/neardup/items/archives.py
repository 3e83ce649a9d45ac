"""The items of mail and of crawls: mailboxes, files of one mail, and WARC and WET files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from neardup.documents.mail import mails_in, parse_mail
from neardup.documents.parsed import Parsed
from neardup.documents.rejected import Skipped
from neardup.documents.warc import PAGE_TYPES, parse_records
from neardup.items.item import NO_TEXT, Item, Items, Note, join_title

_READ = 1 << 18


class _Unpacked:
    """The bytes of a file, unpacked from gzip if they are packed."""

    def __init__(self, data: bytes, is_packed: bool) -> None:
        self.damage, self._raw = "", pa.BufferReader(data)
        self._stream: Any = pa.CompressedInputStream(self._raw, "gzip") if is_packed else self._raw

    def read(self, size: int) -> bytes:
        if self.damage:
            return b""
        try:
            piece: bytes = self._stream.read(min(size, _READ))
        except (OSError, pa.ArrowException) as error:
            self.damage = str(error)
            return b""
        return piece

    def position(self) -> int:
        return int(self._raw.tell())


def mail_items(data: bytes, found: Items) -> Iterator[Item]:
    """Yield the item of a mail."""
    skipped = Skipped()
    yield from _mail_items([data], skipped, found)
    _note_skipped(skipped, found)


def mailbox_items(data: bytes, found: Items) -> Iterator[Item]:
    """Yield the items of a mailbox."""
    skipped = Skipped()
    yield from _mail_items(mails_in(data), skipped, found)
    _note_skipped(skipped, found)


def _mail_items(mails: Any, skipped: Skipped, found: Items) -> Iterator[Item]:
    for number, mail in enumerate(mails, 1):
        parsed = parse_mail(mail, "", skipped)
        where = f"mail {number}"
        if parsed.fault is not None:
            found.reject(where, _reason(parsed), mail)
            continue
        values = parsed.values
        title = values["subject"] or ""
        text = join_title(title, values["text"])
        if text.strip():
            yield Item(values["id"], text, title, found.date_of(where, [values["date"]]), "", mail)
        else:
            found.reject(where, NO_TEXT, mail)


def crawl_items(data: bytes, found: Items) -> Iterator[Item]:
    """Yield the pages and texts of a WARC file; of a page only its article is the text."""
    skipped, number = Skipped(), 0
    for number, parsed in enumerate(parse_records(_Unpacked(data, data.startswith(b"\x1f\x8b")), skipped), 1):
        where = f"document {number}"
        if parsed.fault is not None:
            found.reject(where, _reason(parsed), b"", parsed.fault.count == 0)
            continue
        values, text = parsed.values, parsed.values["text"]
        if values["content_type"] in PAGE_TYPES:
            text = found.text_of_page(where, text)
        if text.strip():
            raw = values["text"].encode()
            yield Item(values["url"], text, "", found.date_of(where, [values["date"]]), values["url"], raw)
        else:
            found.reject(where, NO_TEXT, values["text"].encode())
    if not number:
        found.reject("the file", f"it holds no document (skipped {skipped})", b"")
    _note_skipped(skipped, found)


def _reason(parsed: Parsed) -> str:
    fault = parsed.fault
    if fault is None:
        return ""
    return f"{fault.reason} ({fault.detail})" if fault.detail else fault.reason


def _note_skipped(skipped: Skipped, found: Items) -> None:
    if skipped:
        found.notes.append(Note("the file", f"skipped {skipped}"))
