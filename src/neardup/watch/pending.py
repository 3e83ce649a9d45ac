"""One file of the inbox from its reading, complete or not at all, until it is placed."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.errors import NeardupError
from neardup.text.encoding import decode_page
from neardup.watch.formats import parse_items
from neardup.watch.inbox import SettledFile
from neardup.watch.items import BrokenPart, Item, Items, Note
from neardup.watch.names import Stamp, file_stamp, origin_of, printable_path, stamp_at
from neardup.watch.outputs import OutputFolder, RecordFile, open_file

if TYPE_CHECKING:
    from neardup.stream.document import Verdict
    from neardup.watch.items import Item

#: Items of larger files are counted in a first pass and read in a second, not kept in a list.
_MAX_LISTED_BYTES = 4_000_000
_READ_BYTES = 1 << 22


class FileChanged(Exception):
    """A file has changed since it settled; ``stamp`` is its current stamp, None if it is gone."""

    def __init__(self, stamp: Stamp | None) -> None:
        super().__init__()
        self.stamp = stamp


@dataclass(slots=True, eq=False)
class ReadFile:
    """A file that was read."""

    found: SettledFile  #: its path and stamp
    content: bytes  #: its bytes; empty if it is too large to be read
    kind: str  #: its kind
    count: int  #: the number of its items
    items: Iterator[Item]  #: its items in order; can be read once
    broken_parts: list[BrokenPart]  #: what could not be read in it
    notes: list[Note]  #: what was repaired or ignored in it
    may_be_incomplete: bool  #: whether it may still be being written

    @property
    def is_single(self) -> bool:
        """Whether the file is one item and nothing else, so that it is placed itself."""
        return self.count == 1 and not self.broken_parts

    @property
    def is_unreadable(self) -> bool:
        """Whether it has no items but broken parts."""
        return not self.count and bool(self.broken_parts)


def read_file(root: str, found: SettledFile, content: str, largest: int) -> ReadFile:
    """Read a file and find its items.

    Raises ``FileChanged`` if it has changed since it was found, ``OSError`` or ``NeardupError`` if it cannot be read
    now; a later attempt may succeed.
    """
    if found.stamp.size > largest:
        too_large = BrokenPart(
            "the file", f"{found.stamp.size:,} bytes are more than --largest allows ({largest:,})", b""
        )
        return ReadFile(found, b"", "", 0, iter(()), [too_large], [], False)
    data = _read_unchanged(os.path.join(root, found.path), found.stamp)
    read = read_items(found.path, data, content)
    if len(data) <= _MAX_LISTED_BYTES:
        listed = list(read.items)
        count, items = len(listed), iter(listed)
    else:
        count = sum(1 for _ in read.items)
        items = read_items(found.path, data, content).items
    may_be_incomplete = read.may_be_incomplete or any(fault.ended_early for fault in read.broken_parts)
    return ReadFile(found, data, read.kind, count, items, read.broken_parts, read.notes, may_be_incomplete)


def read_items(path: str, data: bytes, content: str) -> Items:
    """Return the items of a file, as ``parse_items`` does.

    Raises ``NeardupError`` if a library is missing.
    """
    read = parse_items(printable_path(path), data)
    items = read.items
    if read.kind == "html" and content != "auto":
        # The recipe then decides which part of a page is compared, as in every other command.
        items = (replace(item, text=decode_page(item.raw)) for item in items)
    read.items = _catch_reader_errors(items, read.broken_parts)
    return read


def _catch_reader_errors(items: Iterator[Item], broken_parts: list[BrokenPart]) -> Iterator[Item]:
    """Turn an unexpected error of a reader into a broken part, so that the flow continues."""
    try:
        yield from items
    except (NeardupError, OSError):
        raise
    except Exception as error:
        broken_parts.append(BrokenPart("the file", f"it cannot be read ({type(error).__name__}: {error})", b""))


def _read_unchanged(path: str, stamp: Stamp) -> bytes:
    """Return the bytes of a file, if its stamp is the same before and after reading."""
    try:
        handle = open_file(path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
            raise FileChanged(None) from None
        raise
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise FileChanged(None)
        if file_stamp(status) != stamp:
            raise FileChanged(file_stamp(status))
        pieces = []
        while piece := os.read(handle, _READ_BYTES):
            pieces.append(piece)
            if sum(map(len, pieces)) > stamp.size:
                break
        data = b"".join(pieces)
        after = file_stamp(os.fstat(handle))
    finally:
        os.close(handle)
    now = stamp_at(path)
    if now != stamp or after != stamp or len(data) != stamp.size:
        raise FileChanged(now)
    return data


ORIGINALS, DUPLICATES, QUARANTINE, DONE = "originals", "duplicates", "quarantine", "done"


class StoredVerdict(NamedTuple):
    """A verdict whose document is not placed yet."""

    serial: int
    verdict: Verdict


class PendingFile:
    """A file from its reading until it is placed.

    ``stored_verdicts``: the verdicts of an earlier run on its first items, in order.
    """

    def __init__(
        self, read: ReadFile, stored_verdicts: Sequence[StoredVerdict], output_folders: dict[str, OutputFolder]
    ) -> None:
        self.read = read
        self.path = read.found.path
        self.stamp = read.found.stamp
        self.origin = origin_of(self.path, self.stamp)
        self.name = printable_path(self.path)
        self.verdicts: list[StoredVerdict] = list(stored_verdicts)  #: on all its items so far
        self.names: dict[str, str] = {}  #: the chosen names by duty; empty before the choice
        self.is_resumed = bool(stored_verdicts)  #: whether an earlier attempt may have placed a part of it
        self.verdict: Verdict | None = None  #: the verdict, if the file is one item
        self.record: dict[str, Any] | None = None  #: the sidecar record of such a file, or of a rejected one
        self.judged_count = 0
        self._output_folders = output_folders
        self.records: dict[str, RecordFile] = {}
        self.evidence_file: RecordFile | None = None

    def stored_verdict(self, number: int) -> Verdict | None:
        """Return the verdict of an earlier run on an item, counted from 0; None if there is none."""
        return self.verdicts[number].verdict if number < len(self.verdicts) else None

    def next_item(self) -> Item | None:
        """Return the next item, None after the last."""
        return next(self.read.items, None)

    def id_of(self, item: Item, number: int) -> str:
        """Return the preferred id of an item, counted from 1; another item may have it."""
        if item.key:
            return item.key
        return self.name if self.read.count == 1 else f"{self.name}#{number}"

    @property
    def serials(self) -> list[int]:
        """The serials of its documents."""
        return [stored.serial for stored in self.verdicts]

    def add_verdict(self, item: Item, verdict: Verdict, serial: int, record: dict[str, Any] | None) -> None:
        """Add the verdict on the next item, and its serial if the verdict is new."""
        if self.judged_count == len(self.verdicts):
            self.verdicts.append(StoredVerdict(serial, verdict))
        self.judged_count += 1
        if self.read.is_single:
            self.verdict, self.record = verdict, record
            return
        duty = DUPLICATES if verdict.is_duplicate else ORIGINALS
        self._records_of(duty).add(self._line(item, verdict))
        if record is not None:
            if self.evidence_file is None:
                self.evidence_file = RecordFile(self._output_folders[DUPLICATES])
            self.evidence_file.add(_json({"item": self.judged_count, **record}))

    def finish(self) -> None:
        """Write the broken parts of a file of several items to the quarantine."""
        if self.read.is_single or self.read.is_unreadable:
            return
        for fault in self.read.broken_parts:
            record = {"where": fault.where, "reason": fault.reason, "raw": fault.raw.decode("utf-8", "replace")}
            self._records_of(QUARANTINE).add(_json(record))

    def _records_of(self, duty: str) -> RecordFile:
        if duty not in self.records:
            self.records[duty] = RecordFile(self._output_folders[duty])
        return self.records[duty]

    def _line(self, item: Item, verdict: Verdict) -> bytes:
        """Return an item as a line of JSON: unchanged if it is JSON, else its fields and its source."""
        if self.read.kind.startswith("json"):
            # No string of JSON contains a bare line feed, so those between its fields may become spaces.
            return item.raw.replace(b"\r", b" ").replace(b"\n", b" ").strip() + b"\n"
        record: dict[str, Any] = {"id": verdict.id, "title": item.title, "text": item.text}
        timestamp = None if item.timestamp is None else item.timestamp.isoformat().replace("+00:00", "Z")
        record |= {"timestamp": timestamp, "link": item.link, "raw": item.raw.decode("utf-8", "replace")}
        return _json({name: value for name, value in record.items() if value not in ("", None)})

    def preferred_names(self) -> dict[str, str]:
        """Return the preferred names of this file, by duty."""
        if self.read.is_unreadable:
            return {QUARANTINE: self.path}
        if self.verdict is not None:
            return {DUPLICATES if self.verdict.is_duplicate else ORIGINALS: self.path}
        lines = self.path if self.path.endswith((".jsonl", ".ndjson")) else f"{self.path}.jsonl"
        return dict.fromkeys(self.records, lines) | {DONE: self.path}


def _json(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
