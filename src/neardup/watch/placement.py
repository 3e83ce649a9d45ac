"""Placement of files in output folders, repeatable after a crash at any moment; placed items are found and released.

The order: names are chosen and kept in the store; sidecars are written; files are moved, and a file of several items
only after the files made from it; folders are flushed; the store records that the files are placed. After a crash, a
file still in the inbox is moved again under the stored names, and a file no longer there was moved already.
"""

from __future__ import annotations

import errno
import filecmp
import json
import os
import stat
from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

from neardup.errors import InputError, NeardupError, OutputError
from neardup.stream.document import Document
from neardup.watch import outputs
from neardup.watch.batches import PendingFile, StoredVerdict, read_items
from neardup.watch.inbox import SIDECAR_LINES, Stamp, file_of, file_stamp, open_file, printable_path, stamp_at
from neardup.watch.log import Log, error_reason
from neardup.watch.outputs import OutputFolder, lines_path, numbered_path, sidecar_of
from neardup.watch.settings import (
    DONE,
    DUPLICATES,
    DUTIES,
    FOLDERS,
    LEFT_IN_INBOX,
    ORIGINALS,
    WatchSettings,
    folder_error,
)

if TYPE_CHECKING:
    from neardup.stream.index import Index
    from neardup.stream.store import Store
    from neardup.watch.items import Item

_PLACING = "watch: placing"


class Placer:
    """Places files in the output folders."""

    def __init__(self, settings: WatchSettings, store: Store, log: Log) -> None:
        self.output_folders = {duty: OutputFolder(getattr(settings, duty), _tag(store)) for duty in DUTIES}
        self.stored_verdicts: dict[str, list[StoredVerdict]] = {}
        self.pending_files: deque[PendingFile] = deque()  #: files all of whose items have verdicts
        #: Files that may not be moved, and why; taken again later.
        self.unmovable: list[tuple[PendingFile, OSError]] = []
        self._settings = settings
        self._store = store
        self._log = log
        #: The names chosen for files that are not known to be in their places, as the store has them.
        self._journal: dict[str, dict[str, str]] = {}
        self._moved: list[PendingFile] = []
        self._placed: list[PendingFile] = []

    def open(self) -> None:
        """Create the folders, and find what an earlier run left unfinished."""
        for duty, output in self.output_folders.items():
            try:
                output.open()
            except OSError as error:
                raise folder_error(duty, output.root, error) from None
        with suppress(ValueError):
            self._journal = json.loads(self._store.state(_PLACING) or "{}")
        for stored in self._store.unplaced_documents():
            self.stored_verdicts.setdefault(stored.origin, []).append(StoredVerdict(stored.serial, stored.verdict))
        placed = [origin for origin in self.stored_verdicts if self._was_moved(origin)]
        self._store.mark_placed([row.serial for origin in placed for row in self.stored_verdicts.pop(origin)])
        # A half-placed file keeps its names, whichever batch continues it.
        self._journal = {origin: names for origin, names in self._journal.items() if self._is_unplaced(origin)}

    def _was_moved(self, origin: str) -> bool:
        """Return whether a file was moved before the store could note it."""
        names = self._journal.get(origin, {})
        duty = next((duty for duty in (DONE, ORIGINALS, DUPLICATES) if duty in names), None)
        if duty is None:
            return False
        return not self._is_in_inbox(origin) and os.path.lexists(self.output_folders[duty].path(names[duty]))

    def _is_unplaced(self, origin: str) -> bool:
        """Return whether a file of the inbox may still have to be placed; a linked one stays there afterwards."""
        if not self._is_in_inbox(origin):
            return False
        is_handled = self._store.judged_count(origin) or self._store.state(LEFT_IN_INBOX + origin) is not None
        return origin in self.stored_verdicts or not is_handled

    def _is_in_inbox(self, origin: str) -> bool:
        try:
            path, stamp = file_of(origin)
            return stamp_at(os.path.join(self._settings.inbox, path)) == stamp
        except (ValueError, TypeError):
            # Other programs have used the store and name origins differently.
            return False
        except OSError:
            return True

    def close(self) -> None:
        """Remove the work folders."""
        for output in self.output_folders.values():
            output.close()

    @property
    def is_busy(self) -> bool:
        """Whether files are not placed yet, or not recorded as placed."""
        return bool(self.pending_files or self._moved)

    def place(self) -> None:
        """Place all pending files.

        Raises ``OSError`` or ``StoreError`` if something cannot be written. Nothing is lost: a second call continues.
        """
        self._choose_names()
        try:
            while self.pending_files:
                pending = self.pending_files[0]
                try:
                    self._place(pending)
                except FileExistsError:
                    pending.names, pending.is_resumed = {}, False
                    self._journal.pop(pending.origin, None)
                    self._choose_names()
                    continue
                except PermissionError as error:
                    pending.is_resumed = True
                    if not self._can_write(pending):
                        raise
                    # Only this file may not be touched: the others continue.
                    self.pending_files.remove(pending)
                    self.stored_verdicts[pending.origin] = pending.verdicts
                    self.unmovable.append((pending, error))
                    continue
                except BaseException:
                    pending.is_resumed = True
                    raise
                self._moved.append(self.pending_files.popleft())
        finally:
            self._record_moves()

    def _can_write(self, pending: PendingFile) -> bool:
        folders = {os.path.dirname(self.output_folders[duty].path(name)) for duty, name in pending.names.items()}
        return all(os.access(folder, os.W_OK | os.X_OK) for folder in folders)

    def pop_placed(self) -> list[PendingFile]:
        """Return the files placed since the last call."""
        placed, self._placed = self._placed, []
        return placed

    def _choose_names(self) -> None:
        """Choose the missing names, and store them so that a crash does not lose them."""
        if not self.pending_files or all(pending.names for pending in self.pending_files):
            return
        reserved: dict[str, set[str]] = {duty: set() for duty in self.output_folders}
        for pending in self.pending_files:
            before = self._journal.get(pending.origin, {})
            if not pending.names and before and before.keys() == pending.preferred_names().keys():
                # An earlier run chose them, and may have done a part.
                pending.names, pending.is_resumed = before, True
            for duty, name in pending.names.items():
                reserved[duty].add(name)
        for pending in self.pending_files:
            if not pending.names:
                for duty, name in pending.preferred_names().items():
                    pending.names[duty] = self.output_folders[duty].free_name(name, reserved[duty])
                    reserved[duty].add(pending.names[duty])
        self._journal |= {pending.origin: pending.names for pending in self.pending_files}
        self._store.set_state(_PLACING, json.dumps(self._journal))

    def _record_moves(self) -> None:
        """Flush the moved files to the disk, and record them in the store."""
        if not self._moved:
            return
        for output in self.output_folders.values():
            output.flush()
        self._store.mark_placed([row.serial for pending in self._moved for row in pending.verdicts])
        for pending in self._moved:
            self._journal.pop(pending.origin, None)
        self._placed += self._moved
        self._moved = []

    def _place(self, pending: PendingFile) -> None:
        if pending.is_unreadable or pending.verdict is not None:
            (duty,) = pending.names
            self._place_file(pending, duty)
        else:
            self._place_items(pending)
        if self._settings.place == "link" and not pending.verdicts:
            self._store.set_state(LEFT_IN_INBOX + pending.origin, ", ".join(pending.names))

    def _place_file(self, pending: PendingFile, duty: str) -> None:
        """Move or link a file as it is, its sidecar before it."""
        output = self.output_folders[duty]
        target = output.prepare_path(pending.names[duty])
        if pending.record is not None:
            self._write_sidecar(pending, pending.record, output, sidecar_of(target))
        self._move(pending, output, target, link=self._settings.place == "link")

    def _write_sidecar(self, pending: PendingFile, record: dict[str, Any], output: OutputFolder, path: str) -> None:
        if pending.is_resumed:
            # Written when more was known: the original's text may have left the window since.
            with suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
                earlier = json.load(file)
                if all(earlier.get(name) == record.get(name) for name in ("file", "id")):
                    return
            outputs.remove_file(path)
        temporary = output.temporary_path()
        outputs.write_new(json.dumps(record, ensure_ascii=False, indent=2).encode("utf-8", "replace"), path, temporary)

    def _move(self, pending: PendingFile, output: OutputFolder, target: str, *, link: bool) -> None:
        source = os.path.join(self._settings.inbox, pending.path)
        try:
            (outputs.link if link else outputs.move)(source, pending.stamp, target, output.temporary_path())
        except outputs.FileReplacedError:
            self._write_from_memory(pending, output, target)
            return
        except FileExistsError:
            if not pending.is_resumed or not filecmp.cmp(source, target, shallow=False):
                raise
            if not link:
                os.unlink(source)

    def _write_from_memory(self, pending: PendingFile, output: OutputFolder, target: str) -> None:
        """Write the judged content from memory: the file was changed, replaced or removed since."""
        if not os.path.isdir(self._settings.inbox):
            raise FileNotFoundError(errno.ENOENT, "the inbox is gone", self._settings.inbox)
        if not pending.content:
            outputs.remove_file(sidecar_of(target))
            return
        outputs.write_once(pending.content, target, output.temporary_path(), is_resumed=pending.is_resumed)
        self._log.write(
            "replaced", file=pending.name, message="changed after it was read; the version that was read is placed"
        )

    def _place_items(self, pending: PendingFile) -> None:
        """Write the files made from a file of several items, and move the file itself to ``done``."""
        if pending.evidence:
            self._write_lines(
                pending, DUPLICATES, sidecar_of(pending.names[DUPLICATES], SIDECAR_LINES), pending.evidence
            )
        for duty, lines in pending.records.items():
            self._write_lines(pending, duty, pending.names[duty], lines)
        if self._settings.place == "move":
            output = self.output_folders[DONE]
            self._move(pending, output, output.prepare_path(pending.names[DONE]), link=False)

    def _write_lines(self, pending: PendingFile, duty: str, name: str, lines: list[bytes]) -> None:
        """Write a file of lines, and clear them: if a later file fails, it is not written again under another name."""
        if lines:
            output = self.output_folders[duty]
            target = output.prepare_path(name)
            outputs.write_once(b"".join(lines), target, output.temporary_path(), is_resumed=pending.is_resumed)
            lines.clear()


def _tag(store: Store) -> str:
    """Return a name that is the same in every run, so that the next run finds incomplete files."""
    return format(crc32(os.fsencode(store.path)), "08x")


#: The most numbered files of one name that are searched.
_MAX_NUMBERED_FILES = 20


class PlacedItems:
    """Finds placed items in the output folders by their entries in the store.

    Removed and changed items are not found. A duplicate is identified by its sidecar, an original by the size and the
    time of its file, and an item of a file with several items by its id.

    ``max_bytes``: the most bytes that are read; items beyond are not found.
    """

    def __init__(self, originals: str, duplicates: str, content: str, max_bytes: int) -> None:
        self._originals, self._duplicates, self._content = originals, duplicates, content
        self._remaining_bytes = max_bytes
        self._files: dict[str, dict[str, Item]] = {}

    def find(self, name: str, origin: str, *, is_duplicate: bool) -> tuple[Item, str] | None:
        """Return an item and the path of its file, empty for an item of several; None if it is not found."""
        try:
            path, stamp = file_of(origin)
        except (ValueError, TypeError):
            return None
        folder = self._duplicates if is_duplicate else self._originals
        for number in range(1, _MAX_NUMBERED_FILES + 1):
            single, several = (os.path.join(folder, numbered_path(one, number)) for one in (path, lines_path(path)))
            if not (os.path.lexists(single) or os.path.lexists(several)):
                return None
            with suppress(OSError, ValueError, NeardupError, RecursionError):
                is_it = self._has_sidecar(single, name) if is_duplicate else _has_stamp(single, stamp)
                if is_it and (found := self._first_item(printable_path(path), self._read(single))) is not None:
                    return found, single
            found = self._items_by_id(several, is_duplicate=is_duplicate).get(name)
            if found is not None:
                return found, ""
        return None

    def _has_sidecar(self, path: str, name: str) -> bool:
        record = json.loads(self._read(sidecar_of(path)))
        return isinstance(record, dict) and record.get("id") == name

    def _items_by_id(self, path: str, *, is_duplicate: bool) -> dict[str, Item]:
        """Return the items of a file of originals or of duplicates by their ids."""
        if path not in self._files:
            self._files[path] = {}
            with suppress(OSError, ValueError, NeardupError, RecursionError):
                lines = self._read(path).split(b"\n")[:-1]
                items = [self._item_of_line(line) for line in lines]
                names = [item.key if item is not None else "" for item in items]
                if is_duplicate:
                    # A repeated id has another name in the sidecar than in the line.
                    sidecar = self._read(sidecar_of(path, SIDECAR_LINES)).splitlines()
                    names = [json.loads(line)["id"] for line in sidecar]
                pairs = zip(names, items, strict=True)
                self._files[path] = {name: item for name, item in pairs if name and item is not None}
        return self._files[path]

    def _item_of_line(self, line: bytes) -> Item | None:
        item, record = self._first_item("item.json", line), json.loads(line)
        # The texts of items that were not JSON already begin with their titles, or are their titles.
        if item is not None and "raw" in record and f"{item.text}\n".startswith(f"{item.title}\n{item.title}\n"):
            return replace(item, text=item.text.removeprefix(f"{item.title}\n"))
        return item

    def _first_item(self, name: str, data: bytes) -> Item | None:
        return next(read_items(name, data, self._content).items, None)

    def _read(self, path: str) -> bytes:
        with open(open_file(path), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(f"{path} is no file")
            data = file.read(self._remaining_bytes + 1)
        if len(data) > self._remaining_bytes:
            raise OSError(f"{path} is larger than what is left to read")
        self._remaining_bytes -= len(data)
        return data


def _has_stamp(path: str, stamp: Stamp) -> bool:
    """Return whether a file has the size and the time of change of a moved or copied one."""
    now = os.lstat(path)
    return (now.st_size, now.st_mtime_ns) == (stamp.size, stamp.mtime_ns)


#: The most bytes that are read in the search for an item.
_MAX_READ_BYTES = 1 << 30


def release(index: Index, store: Store, name: str, by: str) -> str:
    """Release a stopped item, and return the path of its file among the originals.

    Its file is moved there; an item of a file with several items is written to its own file. The path is empty if the
    store has no output folders, because no watcher has filled it.

    Raises ``NeardupError`` if no such item was stopped, its text is no longer available, or its file cannot be moved;
    then nothing has changed.
    """
    row = store.stopped_document(name)
    folders = json.loads(store.state(FOLDERS) or "{}")
    if not folders:
        index.release(name, by)
        return ""
    placed_items = PlacedItems(folders["originals"], folders["duplicates"], folders["content"], _MAX_READ_BYTES)
    found = placed_items.find(name, row.origin, is_duplicate=True)
    if found is None:
        raise InputError(
            f"{name!r} is not in {folders['duplicates']} any more; put its file and the sidecar back, or deliver it "
            "again under another id"
        )
    item, source = found
    # A separate tag: the watcher's unfinished files stay untouched.
    output = OutputFolder(folders["originals"], f"{_tag(store)}-released")
    try:
        target = _place_original(output, item, source, file_of(row.origin)[0])
    except (OSError, outputs.FileReplacedError) as error:
        cause = error_reason(error) if isinstance(error, OSError) else "it has changed meanwhile"
        raise OutputError(f"{name!r} cannot go to {output.root}: {cause}; nothing has changed") from None
    try:
        index.release(Document(name, item.text, title=item.title), by)
    except BaseException:
        outputs.remove_file(target)
        raise
    finally:
        output.close()
    if source:
        # The index has accepted the release, so the duplicate is no longer needed.
        outputs.remove_file(source)
        outputs.remove_file(sidecar_of(source))
    return target


def _place_original(output: OutputFolder, item: Item, source: str, path: str) -> str:
    """Link the file of an item among the originals, or write the item there; return the path."""
    output.open()
    if source:
        target = output.prepare_path(output.free_name(path, ()))
        outputs.link(source, file_stamp(os.lstat(source)), target, output.temporary_path())
    else:
        target = output.prepare_path(output.free_name(lines_path(path), ()))
        outputs.write_new(item.raw.strip() + b"\n", target, output.temporary_path())
    output.flush()
    return target
