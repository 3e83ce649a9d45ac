"""Files of the inbox as batches of items: read, complete or not at all, judged by the index, and kept until placed."""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.errors import NeardupError
from neardup.stream.document import Document
from neardup.stream.store import text_digest
from neardup.text.contents import content_of
from neardup.watch.evidence import rejection_record, verdict_record
from neardup.watch.formats import parse_items
from neardup.watch.inbox import Inbox, SettledFile, Stamp, file_stamp, open_file, origin_of, printable_path, stamp_at
from neardup.watch.items import BrokenPart, Item, Items
from neardup.watch.log import Counters, Log, error_reason
from neardup.watch.outputs import lines_path
from neardup.watch.settings import DONE, DUPLICATES, LEFT_IN_INBOX, ORIGINALS, QUARANTINE, WatchSettings

if TYPE_CHECKING:
    from neardup.stream.document import Verdict
    from neardup.stream.index import Index
    from neardup.stream.store import Store

#: Items of larger files are counted in a first pass and read in a second, not kept in a list.
_MAX_LISTED_BYTES = 4_000_000
_READ_BYTES = 1 << 22
#: The limits of a batch: items, files, and bytes of files plus characters of items. The index stores more than that in
#: one transaction, so a batch is stored whole or not at all.
_BATCH_ITEMS, _BATCH_FILES, _BATCH_BYTES = 512, 512, 1 << 22
#: The longest wait in seconds before an unreadable file is tried again.
_MAX_RETRY_S = 60.0
#: A file unchanged for this multiple of ``patience`` counts as complete at first sight.
_OLD_FACTOR = 10


class StoredVerdict(NamedTuple):
    """A verdict whose document is not placed yet."""

    serial: int
    verdict: Verdict


class PendingFile:
    """A file from its reading until it is placed.

    ``content``: its bytes, none if it is too large to be read; ``count``: the number of its items; ``stored_verdicts``:
    the verdicts of an earlier run on some of its items.
    """

    def __init__(
        self, found: SettledFile, content: bytes, read: Items, count: int, stored_verdicts: Sequence[StoredVerdict]
    ) -> None:
        self.path, self.stamp = found
        self.content, self.read, self.count = content, read, count
        self.origin = origin_of(self.path, self.stamp)
        self.name = printable_path(self.path)
        self.verdicts = list(stored_verdicts)  #: on its items so far, without those that came before
        #: The verdicts of an earlier run on items of this file, by id; each is for one item.
        self.unclaimed = {stored.verdict.id: stored for stored in stored_verdicts}
        self.known_count = 0  #: its items that came before, with the same id and text
        self.late_count = 0  #: its new items that are older than the window
        self.names: dict[str, str] = {}  #: the chosen names by duty; empty before the choice
        self.is_resumed = bool(stored_verdicts)  #: whether an earlier attempt may have placed a part of it
        #: Whether the file is one item and nothing else, so that it is placed itself.
        self.is_single = count == 1 and not read.broken_parts
        #: Whether it has no items but broken parts.
        self.is_unreadable = not count and bool(read.broken_parts)
        self.verdict: Verdict | None = None  #: the verdict, if the file is one item
        self.record: dict[str, Any] | None = None  #: the sidecar record of a duplicate or a rejected file
        #: Lines of the files made from a file of several items, by duty, and of the sidecar of its duplicates.
        self.records: defaultdict[str, list[bytes]] = defaultdict(list)
        self.evidence: list[bytes] = []

    def add_verdict(self, task: Task, verdict: Verdict, record: dict[str, Any] | None) -> None:
        """Add the verdict on the next item; only a file of one item is placed if that came before."""
        if self.is_single:
            self.verdict, self.record = verdict, record
            return
        if verdict.known:
            return
        self.records[DUPLICATES if verdict.is_duplicate else ORIGINALS].append(self._line(task.item, verdict))
        if record is not None:
            self.evidence.append(_json({"item": task.number, **record}))

    def finish(self) -> None:
        """Add the broken parts of a file of several items to the records of the quarantine."""
        if not (self.is_single or self.is_unreadable):
            for fault in self.read.broken_parts:
                record = {"where": fault.where, "reason": fault.reason, "raw": fault.raw.decode("utf-8", "replace")}
                self.records[QUARANTINE].append(_json(record))

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
        return _json({name: value for name, value in record.items() if value not in ("", None)})

    def preferred_names(self) -> dict[str, str]:
        """Return the preferred names of this file, by duty."""
        if self.is_unreadable:
            return {QUARANTINE: self.path}
        if self.verdict is not None:
            return {DUPLICATES if self.verdict.is_duplicate else ORIGINALS: self.path}
        return dict.fromkeys(self.records, lines_path(self.path)) | {DONE: self.path}


def _json(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


class FileChanged(Exception):
    """A file has changed since it settled; ``stamp`` is its current stamp, None if it is gone."""

    def __init__(self, stamp: Stamp | None) -> None:
        super().__init__()
        self.stamp = stamp


def read_file(
    root: str, found: SettledFile, content: str, largest: int, stored_verdicts: Sequence[StoredVerdict] = ()
) -> PendingFile:
    """Read a file and find its items.

    Raises ``FileChanged`` if it has changed since it was found, ``OSError`` or ``NeardupError`` if it cannot be read
    now; a later attempt may succeed.
    """
    if found.stamp.size > largest:
        reason = f"{found.stamp.size:,} bytes are more than --largest allows ({largest:,})"
        read = Items("", broken_parts=[BrokenPart("the file", reason, b"")])
        return PendingFile(found, b"", read, 0, stored_verdicts)
    data = _read_unchanged(os.path.join(root, found.path), found.stamp)
    read = read_items(found.path, data, content)
    if len(data) <= _MAX_LISTED_BYTES:
        listed = list(read.items)
        count, read.items = len(listed), iter(listed)
    else:
        count = sum(1 for _ in read.items)
        read.items = read_items(found.path, data, content).items
    return PendingFile(found, data, read, count, stored_verdicts)


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
        data = bytearray()
        while len(data) <= stamp.size and (piece := os.read(handle, _READ_BYTES)):
            data += piece
        after = file_stamp(os.fstat(handle))
    finally:
        os.close(handle)
    now = stamp_at(path)
    if now != stamp or after != stamp or len(data) != stamp.size:
        raise FileChanged(now)
    return bytes(data)


class Task(NamedTuple):
    """An item of a file that is being judged, counted from 1."""

    pending: PendingFile
    item: Item
    number: int

    @property
    def preferred_id(self) -> str:
        """The id that the item gets, unless another has it already."""
        pending = self.pending
        return self.item.key or (pending.name if pending.count == 1 else f"{pending.name}#{self.number}")


class BatchReader:
    """Reads the files of the inbox, and returns their items in batches.

    ``stored_verdicts``: by origin, the verdicts on files that are not placed yet.
    """

    def __init__(
        self,
        settings: WatchSettings,
        inbox: Inbox,
        store: Store,
        stored_verdicts: Mapping[str, Sequence[StoredVerdict]],
        log: Log,
    ) -> None:
        self._settings = settings
        self._inbox = inbox
        self._store = store
        self._stored_verdicts = stored_verdicts
        self._log = log
        self._open_file: PendingFile | None = None
        self._numbered_items: Iterator[tuple[int, Item]] = iter(())
        #: Files all of whose items are in batches already returned.
        self.complete: list[PendingFile] = []

    @property
    def is_open(self) -> bool:
        """Whether a file has items for the next batch."""
        return self._open_file is not None

    def next_batch(self, stopping: Callable[[], bool]) -> list[Task]:
        """Return the next items to judge, an empty list if no file has settled."""
        tasks: list[Task] = []
        size = 0
        while (
            len(tasks) < _BATCH_ITEMS and len(self.complete) < _BATCH_FILES and size < _BATCH_BYTES and not stopping()
        ):
            pending = self._open_file
            if pending is None:
                self._open_file = pending = self._next_pending()
                if pending is None:
                    break
                self._numbered_items = enumerate(pending.read.items, 1)
                size += len(pending.content)
            number, item = next(self._numbered_items, (0, None))
            if item is None:
                self.complete.append(pending)
                self._open_file = None
                continue
            size += len(item.text)
            tasks.append(Task(pending, item, number))
        return tasks

    def pop_complete(self) -> list[PendingFile]:
        """Return the files whose items have all been judged, each once."""
        complete_files, self.complete = self.complete, []
        for pending in complete_files:
            pending.finish()
        return complete_files

    def _next_pending(self) -> PendingFile | None:
        while (found := self._inbox.next_settled()) is not None:
            pending = self._pending_file(found)
            if pending is not None:
                return pending
        return None

    def _pending_file(self, found: SettledFile) -> PendingFile | None:
        """Read a file; return None if it is not to be judged now."""
        origin, subject, name = origin_of(*found), f"file {found.path}", printable_path(found.path)
        stored = self._stored_verdicts.get(origin)
        if stored is None and self._was_judged(origin, name):
            return None
        settings = self._settings
        try:
            pending = read_file(settings.inbox, found, settings.content, settings.largest, stored or ())
        except FileChanged as change:
            self._log.drop_trouble(subject)
            if change.stamp is None:
                self._inbox.forget_file(found.path)
            else:
                self._inbox.restart_settling(found.path, change.stamp)
            return None
        except (OSError, NeardupError, MemoryError) as error:
            cause = error_reason(error) if isinstance(error, OSError) else str(error)
            cause = cause or "there is not enough memory for it"
            self._log.report_trouble(subject, f"{name} cannot be read: {cause}; it is left in the inbox for now")
            if not settings.once:
                self._inbox.retry_with_backoff(found.path, _MAX_RETRY_S)
            return None
        self._log.report_recovery(subject, f"{name} can be read again")
        broken_parts = pending.read.broken_parts
        may_be_incomplete = pending.read.may_be_incomplete or any(fault.ended_early for fault in broken_parts)
        if may_be_incomplete and stored is None and self._is_young(found):
            return None
        if pending.is_unreadable:
            first = broken_parts[0]
            pending.record = rejection_record(name, first.reason, where=first.where, broken=len(broken_parts))
        return pending

    def _was_judged(self, origin: str, name: str) -> bool:
        """Return whether a file in the inbox was judged and placed before."""
        is_moved = self._settings.place == "move"
        if not self._store.judged_count(origin):
            return not is_moved and self._store.state(LEFT_IN_INBOX + origin) is not None
        if is_moved:
            message = "already judged, so it stays in the inbox; touch it to have it judged again"
            self._log.write("known", file=name, message=message)
        return True

    def _is_young(self, found: SettledFile) -> bool:
        """Return whether a file may still be half-written by its age; if so, schedule another read."""
        age, patience = self._inbox.age(found.path), self._settings.patience
        # The clock of a file server may be off by minutes, so only an old time of change counts.
        if age >= patience or time.time() - found.stamp.mtime_ns / 1e9 > _OLD_FACTOR * patience:
            return False
        self._inbox.retry_after(found.path, patience - age)
        return True


class ItemJudge:
    """Judges items with the index, and returns the verdicts to their files."""

    def __init__(self, index: Index, store: Store, log: Log, counters: Counters) -> None:
        self._index = index
        self._store = store
        self._log = log
        self._counters = counters

    def judge(self, tasks: Sequence[Task]) -> None:
        """Judge the items of a batch and add the verdicts to their files.

        Raises ``StoreError`` if verdicts cannot be stored; then none was, and the batch can be judged again.
        """
        documents = [
            Document(self._id_of(task), task.item.text, task.item.timestamp, task.pending.origin, task.item.title)
            for task in tasks
        ]
        serial = self._store.next_serial
        begin = time.perf_counter()
        verdicts = self._index.add_many(documents)
        self._counters.check_s += time.perf_counter() - begin
        for task, stored in zip(tasks, verdicts, strict=True):
            pending, verdict = task.pending, stored
            if not stored.known:
                pending.verdicts.append(StoredVerdict(serial, stored))
                serial += 1
                pending.late_count += stored.flag == "late"
                self._counters.count_verdict(stored)
                self._log_verdict(task, stored)
            elif pending.unclaimed.pop(stored.id, None) is not None:
                verdict = stored._replace(known=False)
            else:
                self._counters.known += 1
                pending.known_count += 1
                verdict = stored._replace(
                    kind="exact", of=stored.id, similarity=1.0, counts=None, score=None, measures=()
                )
            pending.add_verdict(task, verdict, self._record(task, verdict))

    def _id_of(self, task: Task) -> str:
        name, pending = task.preferred_id, task.pending
        if self._index.versions == "replace" and not task.item.key and pending.count > 1:
            # A place in a file, which the next file of this name may give to another item.
            return f"{name}-{text_digest(task.item.text).hex()[:12]}"
        return name

    def _log_verdict(self, task: Task, verdict: Verdict) -> None:
        if verdict.is_duplicate:
            fields: dict[str, Any] = {"of": verdict.of, "similarity": verdict.similarity}
            if verdict.score is not None:
                fields |= {"score": verdict.score, "evidence": verdict.evidence}
            self._log.write("duplicate", id=verdict.id, kind=verdict.kind, **fields, file=task.pending.name)
        if verdict.version_of is not None:
            self._counters.repeated_ids += 1
            fields = {"judged_as": verdict.id, "file": task.pending.name, "message": "another item already has this id"}
            self._log.write("repeated_id", id=verdict.version_of, **fields)
        if verdict.flag:
            self._log.write("flagged", id=verdict.id, flag=verdict.flag, file=task.pending.name)

    def _record(self, task: Task, verdict: Verdict) -> dict[str, Any] | None:
        """Return the sidecar record of a duplicate; None for an original."""
        if not verdict.is_duplicate or verdict.of is None:
            return None
        recipe, classifier = self._index.recipe, self._index.classifier
        try:
            original_text = self._index.text_of(verdict.of)
            text = content_of(task.item.text, recipe.content)
            original_text = None if original_text is None else content_of(original_text, recipe.content)
            return verdict_record(verdict, recipe, task.pending.name, text, original_text, classifier)
        except Exception:
            # The verdict stands even if the search for evidence fails.
            return verdict_record(verdict, recipe, task.pending.name, classifier=classifier)
