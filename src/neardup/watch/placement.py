"""Placement of files in output folders, repeatable after a crash at any moment.

The order: names are chosen and kept in the store; sidecars are written; files are moved, and a file of several items
only after the files made from it; folders are flushed; the store records that the files are placed. After a crash, a
file still in the inbox is moved again under the stored names, and a file no longer there was moved already.
"""

from __future__ import annotations

import errno
import filecmp
import json
import os
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from zlib import crc32

from neardup.watch import outputs
from neardup.watch.log import Log
from neardup.watch.names import SIDECAR, SIDECAR_LINES, file_of, sidecar_of, stamp_at
from neardup.watch.outputs import OutputFolder
from neardup.watch.pending import DONE, DUPLICATES, ORIGINALS, QUARANTINE, PendingFile, StoredVerdict
from neardup.watch.settings import WatchSettings, folder_error

if TYPE_CHECKING:
    from neardup.stream.store import Store

_PLACING, _LEFT_IN_INBOX = "watch: placing", "watch: left "


class Placer:
    """Places files in the output folders."""

    def __init__(self, settings: WatchSettings, store: Store, log: Log) -> None:
        # The same in every run, so that the next run finds incomplete files.
        tag = format(crc32(os.fsencode(store.path)), "08x")
        self.output_folders = {
            duty: OutputFolder(getattr(settings, duty), tag) for duty in (ORIGINALS, DUPLICATES, QUARANTINE, DONE)
        }
        self.stored_verdicts: dict[str, list[StoredVerdict]] = {}
        self.pending_files: deque[PendingFile] = deque()
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
        self._journal = {origin: names for origin, names in self._journal.items() if self._is_in_inbox(origin)}

    def _was_moved(self, origin: str) -> bool:
        """Return whether a file was moved before the store could note it."""
        names = self._journal.get(origin, {})
        duty = next((duty for duty in (DONE, ORIGINALS, DUPLICATES) if duty in names), None)
        if duty is None:
            return False
        return not self._is_in_inbox(origin) and os.path.lexists(self.output_folders[duty].path(names[duty]))

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

    def is_left(self, origin: str) -> bool:
        """Return whether a file without verdicts was handled before and left in the inbox."""
        return self._settings.place == "link" and self._store.state(_LEFT_IN_INBOX + origin) is not None

    def add(self, pending: PendingFile) -> None:
        """Add a file all of whose items have verdicts."""
        self.pending_files.append(pending)

    @property
    def is_busy(self) -> bool:
        """Whether files are not placed yet, or not recorded as placed."""
        return bool(self.pending_files or self._moved)

    def place(self) -> None:
        """Place all added files.

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
        """Return whether the target folders of a file are writable."""
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
        self._store.mark_placed([serial for pending in self._moved for serial in pending.serials])
        for pending in self._moved:
            self._journal.pop(pending.origin, None)
        self._placed += self._moved
        self._moved = []

    def _place(self, pending: PendingFile) -> None:
        if pending.read.is_unreadable or pending.verdict is not None:
            (duty,) = pending.names
            self._place_file(pending, duty)
        else:
            self._place_items(pending)
        if self._settings.place == "link" and not pending.serials:
            self._store.set_state(_LEFT_IN_INBOX + pending.origin, ", ".join(pending.names))

    def _place_file(self, pending: PendingFile, duty: str) -> None:
        """Move or link a file as it is, its sidecar before it."""
        output = self.output_folders[duty]
        target = output.prepare_path(pending.names[duty])
        if pending.record is not None:
            self._write_sidecar(pending, pending.record, output, sidecar_of(target, SIDECAR))
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
        if not pending.read.content:
            outputs.remove_file(sidecar_of(target, SIDECAR))
            return
        outputs.write_once(pending.read.content, target, output.temporary_path(), is_resumed=pending.is_resumed)
        self._log.write(
            "replaced", file=pending.name, message="changed after it was read; the version that was read is placed"
        )

    def _place_items(self, pending: PendingFile) -> None:
        """Place the items of a file, and move the file itself to ``done``."""
        if pending.evidence_file is not None:
            pending.evidence_file.place(
                sidecar_of(pending.names[DUPLICATES], SIDECAR_LINES), is_resumed=pending.is_resumed
            )
        for duty, records in pending.records.items():
            records.place(pending.names[duty], is_resumed=pending.is_resumed)
        if self._settings.place == "move":
            output = self.output_folders[DONE]
            self._move(pending, output, output.prepare_path(pending.names[DONE]), link=False)
