"""A delivered file from its reading until it is in its place: its items, their verdicts, what is written of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from neardup.errors import NeardupError
from neardup.items.formats import parse_items
from neardup.items.item import BrokenPart, Item, Items
from neardup.watch.evidence import rejection_record
from neardup.watch.inbox import SettledFile, origin_of, printable_path, read_unchanged
from neardup.watch.settings import DONE, DUPLICATES, ORIGINALS, QUARANTINE, WatchSettings

if TYPE_CHECKING:
    from neardup.stream.document import Verdict

#: Items of larger files are counted in a first pass and read in a second, not kept in a list.
_MAX_LISTED_BYTES = 4_000_000


class Delivery:
    """A file of the inbox from its reading until it is placed.

    ``content``: its bytes, none if it is too large to be read; ``unplaced``: the serials of its items that an earlier
    run judged, by their ids.

    Raises ``FileChanged`` if it has changed since it settled, ``OSError`` or ``NeardupError`` if it cannot be read now;
    a later attempt may succeed.
    """

    def __init__(self, settings: WatchSettings, found: SettledFile, unplaced: Mapping[str, int]) -> None:
        self.path, self.stamp = found
        self.origin, self.name = origin_of(*found), printable_path(found.path)
        self.content = b""
        if self.stamp.size > settings.largest:
            reason = f"{self.stamp.size:,} bytes are more than --largest allows ({settings.largest:,})"
            self.read = Items("", broken_parts=[BrokenPart("the file", reason, b"")])
        else:
            self.content = read_unchanged(os.path.join(settings.inbox, self.path), self.stamp)
            self.read = read_items(self.path, self.content, settings.content)
        if len(self.content) <= _MAX_LISTED_BYTES:
            listed = list(self.read.items)
            self.count, self.read.items = len(listed), iter(listed)
        else:
            self.count = sum(1 for _ in self.read.items)
            self.read.items = read_items(self.path, self.content, settings.content).items
        self.serials = dict(unplaced)  #: of its judged items so far, by id, without those that came before
        self.unclaimed = set(unplaced)  #: the ids of an earlier run that no item of this one has claimed yet
        self.known = self.late = 0  #: its items that came before, and its new items that are older than the window
        #: Whether the file is one item and nothing else, so that the verdict on it is that on the file.
        self.is_single = self.count == 1 and not self.read.broken_parts
        self.duty = DONE  #: of the folder that the file itself goes to
        #: Lines of the files made from a file of several items, by the duties of their folders.
        self.lines: dict[str, list[bytes]] = {}
        #: The records in the sidecar of the file, or in that of the lines of its duplicates.
        self.evidence: list[dict[str, Any]] = []

    def preferred_id(self, item: Item, number: int) -> str:
        """Return the id that an item gets, unless another has it already."""
        return item.key or (self.name if self.count == 1 else f"{self.name}#{number}")

    def add_verdict(self, item: Item, number: int, verdict: Verdict, record: dict[str, Any] | None) -> None:
        """Add the verdict on an item; only a file of one item is placed if that came before."""
        duty = DUPLICATES if verdict.is_duplicate else ORIGINALS
        if self.is_single:
            self.duty = duty
        elif verdict.known:
            return
        else:
            self.lines.setdefault(duty, []).append(self._line(item, verdict))
        if record is not None:
            self.evidence.append(record if self.is_single else {"item": number, **record})

    def finish(self) -> None:
        """Add what was rejected, once all items have their verdicts."""
        broken = self.read.broken_parts
        if broken and (self.is_single or not self.count):
            self.duty = QUARANTINE
            first = broken[0]
            self.evidence = [rejection_record(self.name, first.reason, where=first.where, broken=len(broken))]
        elif broken:
            self.lines[QUARANTINE] = [
                json_line({"where": part.where, "reason": part.reason, "raw": part.raw.decode("utf-8", "replace")})
                for part in broken
            ]

    def _line(self, item: Item, verdict: Verdict) -> bytes:
        """Return an item as a line of JSON: unchanged if it is JSON, else its fields and its source."""
        if self.read.kind.startswith("json"):
            # No string of JSON contains a bare line feed, so those between its fields may become spaces.
            return item.raw.replace(b"\r", b" ").replace(b"\n", b" ").strip() + b"\n"
        timestamp = None if item.timestamp is None else item.timestamp.isoformat().replace("+00:00", "Z")
        record = {
            **{"id": verdict.id, "title": item.title, "text": item.text, "timestamp": timestamp, "link": item.link},
            "raw": item.raw.decode("utf-8", "replace"),
        }
        return json_line({name: value for name, value in record.items() if value not in ("", None)})


def json_line(record: Mapping[str, Any]) -> bytes:
    """Return a record as a line of JSON."""
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def read_items(path: str, data: bytes, content: str) -> Items:
    """Return the items of a file, as ``parse_items`` does.

    Raises ``NeardupError`` if a library is missing.
    """
    read = parse_items(printable_path(path), data, extracts=content == "auto")
    read.items = _catch_reader_errors(read.items, read)
    return read


def _catch_reader_errors(items: Iterator[Item], read: Items) -> Iterator[Item]:
    """Turn an unexpected error of a reader into a broken part, so that the flow continues."""
    try:
        yield from items
    except (NeardupError, OSError):
        raise
    except Exception as error:
        read.reject("the file", f"it cannot be read ({type(error).__name__}: {error})", b"")
