"""Placement of delivered files in the output folders, repeatable after a crash at any moment.

The names of a file follow from its path and its stamp (`names_of`): the first one is taken if it is free or holds this
very file already, else the second. Everything that is placed has the time of the delivered file, by which it is known
again after a crash; so no name is stored. The order: sidecars are written; files are moved, and a file of several items
only after the files made from it; folders are flushed; the store records that the files are placed.
"""

from __future__ import annotations

import errno
import filecmp
import json
import os
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING
from zlib import crc32

from neardup.watch import outputs
from neardup.watch.delivery import Delivery, json_line
from neardup.watch.inbox import SIDECAR, SIDECAR_LINES, file_of, stamp_at
from neardup.watch.log import Log
from neardup.watch.outputs import OutputFolder, has_time, lines_path, sidecar_of
from neardup.watch.settings import DONE, DUPLICATES, DUTIES, LEFT_IN_INBOX, ORIGINALS, WatchSettings, folder_error

if TYPE_CHECKING:
    from neardup.stream.store import Store

#: Where an earlier version of neardup stored the names of files that it was placing.
_EARLIER_NAMES = "watch: placing"


class Placer:
    """Places files in the output folders."""

    def __init__(self, settings: WatchSettings, store: Store, log: Log) -> None:
        self.output_folders = {duty: OutputFolder(getattr(settings, duty), tag_of(store)) for duty in DUTIES}
        #: The serials of judged items that are not placed yet, by their ids, by the origins of their files.
        self.unplaced: dict[str, dict[str, int]] = {}
        self.placed: list[Delivery] = []  #: files in their places, for whoever takes them from here
        self.unmovable: list[tuple[Delivery, OSError]] = []  #: files that may not be moved, and why; taken again later
        self._settings, self._store, self._log = settings, store, log
        self._moved: list[Delivery] = []
        self._earlier_names: dict[str, dict[str, str]] = {}

    def open(self) -> None:
        """Create the folders, and find what an earlier run left unfinished."""
        for duty, output in self.output_folders.items():
            try:
                output.open()
            except OSError as error:
                raise folder_error(duty, output.root, error) from None
        for stored in self._store.unplaced_documents():
            self.unplaced.setdefault(stored.origin, {})[stored.id] = stored.serial
        if self.unplaced:
            with suppress(ValueError):
                self._earlier_names = json.loads(self._store.state(_EARLIER_NAMES) or "{}")
        moved = [origin for origin in self.unplaced if self._was_moved(origin)]
        self._store.mark_placed([serial for origin in moved for serial in self.unplaced.pop(origin).values()])

    def _was_moved(self, origin: str) -> bool:
        """Return whether a file was moved before the store could note it."""
        try:
            path, stamp = file_of(origin)
            if stamp_at(os.path.join(self._settings.inbox, path)) == stamp:
                return False
        except (ValueError, TypeError, OSError):
            # Other programs have used the store and name origins differently, or the inbox cannot be read now.
            return False
        for duty in (DONE, ORIGINALS, DUPLICATES):
            for target in self._targets(origin, duty, path):
                found = stamp_at(target)
                if found is not None and found.size == stamp.size and has_time(target, stamp):
                    return True
        return False

    def _targets(self, origin: str, duty: str, path: str) -> list[str]:
        """Return the paths under which a file may be placed, in order of preference."""
        output, earlier = self.output_folders[duty], self._earlier_names.get(origin, {}).get(duty)
        targets = output.paths(path, file_of(origin)[1])
        return targets if earlier is None else [os.path.join(output.root, earlier), *targets]

    def close(self) -> None:
        """Remove the work folders."""
        for output in self.output_folders.values():
            output.close()

    @property
    def is_busy(self) -> bool:
        """Whether moved files are not recorded as placed."""
        return bool(self._moved)

    def place(self, deliveries: deque[Delivery]) -> None:
        """Place files, and take them from the deque.

        Raises ``OSError`` or ``StoreError`` if something cannot be written. Nothing is lost: a second call continues.
        """
        try:
            while deliveries:
                delivery = deliveries[0]
                try:
                    self._place(delivery)
                except (PermissionError, FileExistsError) as error:
                    if isinstance(error, PermissionError) and not self._can_write(delivery):
                        raise
                    # Only this file may not be touched: the others continue.
                    self.unplaced[delivery.origin] = delivery.serials
                    self.unmovable.append((deliveries.popleft(), error))
                    continue
                self._moved.append(deliveries.popleft())
        finally:
            self._record_moves()

    def _can_write(self, delivery: Delivery) -> bool:
        duties = (*delivery.lines, delivery.duty)
        folders = {os.path.dirname(self._targets(delivery.origin, duty, delivery.path)[0]) for duty in duties}
        return all(os.access(folder, os.W_OK | os.X_OK) for folder in folders)

    def _record_moves(self) -> None:
        """Flush the moved files to the disk, and record them in the store."""
        if not self._moved:
            return
        for output in self.output_folders.values():
            output.flush()
        self._store.mark_placed([serial for delivery in self._moved for serial in delivery.serials.values()])
        self.placed += self._moved
        self._moved = []

    def _place(self, delivery: Delivery) -> None:
        for duty, lines in list(delivery.lines.items()):
            evidence = delivery.evidence if duty == DUPLICATES else []
            self._put(delivery, duty, b"".join(map(json_line, evidence)), b"".join(lines))
            # If a later file fails, it is not written again, even if somebody has taken it by then.
            del delivery.lines[duty]
        duty, evidence = delivery.duty, delivery.evidence
        if duty != DONE or self._settings.place == "move":
            record = "" if duty == DONE or not evidence else json.dumps(evidence[0], ensure_ascii=False, indent=2)
            self._put(delivery, duty, record.encode("utf-8", "replace"))
        if self._settings.place == "link" and not delivery.serials:
            self._store.set_state(LEFT_IN_INBOX + delivery.origin, duty)

    def _put(self, delivery: Delivery, duty: str, sidecar: bytes, lines: bytes | None = None) -> None:
        """Put lines of a file, or the file itself, and its sidecar under the first free name, unless they are there."""
        output, path = self.output_folders[duty], delivery.path if lines is None else lines_path(delivery.path)
        targets = self._targets(delivery.origin, duty, path)
        output.prepare(targets[-1])
        for target in targets:
            if self._may_be_of(target, delivery, duty) and self._is_it(target, delivery, lines):
                source = self._source(delivery)
                if lines is None and self._settings.place == "move" and stamp_at(source) == delivery.stamp:
                    os.unlink(source)
                return
        for target in targets:
            beside = sidecar_of(target, SIDECAR if lines is None else SIDECAR_LINES)
            if os.path.lexists(target) or (sidecar and not self._write_sidecar(beside, sidecar, delivery, duty)):
                continue
            with suppress(FileExistsError):
                if lines is None:
                    self._move(delivery, output, target)
                else:
                    outputs.write_new(lines, target, output.temporary_path(), delivery.stamp.mtime_ns)
                return
            # Another program has taken the name meanwhile.
            if sidecar:
                outputs.remove_file(beside)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), targets[-1])

    def _source(self, delivery: Delivery) -> str:
        return os.path.join(self._settings.inbox, delivery.path)

    def _may_be_of(self, path: str, delivery: Delivery, duty: str) -> bool:
        """Return whether a file may be one that was made of a delivered one, by its time or by an earlier name."""
        earlier = self._earlier_names.get(delivery.origin, {}).get(duty)
        is_earlier = earlier is not None and path.startswith(os.path.join(self.output_folders[duty].root, earlier))
        return (is_earlier and os.path.isfile(path)) or has_time(path, delivery.stamp)

    def _is_it(self, target: str, delivery: Delivery, lines: bytes | None) -> bool:
        """Return whether a file has those lines, or is the delivered file or a copy of it."""
        content = delivery.content if lines is None else lines
        with suppress(OSError):
            if lines is None and stamp_at(target) == delivery.stamp:
                return True
            if lines is None and not content:
                return filecmp.cmp(self._source(delivery), target, shallow=False)
            with open(target, "rb") as file:
                return file.read(len(content) + 1) == content
        return False

    def _write_sidecar(self, path: str, content: bytes, delivery: Delivery, duty: str) -> bool:
        """Write a sidecar, also over that of an earlier attempt; return False if its name is taken."""
        if os.path.lexists(path):
            if not self._may_be_of(path, delivery, duty):
                return False
            outputs.remove_file(path)
        with suppress(FileExistsError):
            outputs.write_new(content, path, self.output_folders[duty].temporary_path(), delivery.stamp.mtime_ns)
            return True
        return False

    def _move(self, delivery: Delivery, output: OutputFolder, target: str) -> None:
        """Move or link a file as it is."""
        place = outputs.move if self._settings.place == "move" else outputs.link
        try:
            place(self._source(delivery), delivery.stamp, target, output.temporary_path())
        except outputs.FileReplacedError:
            self._write_from_memory(delivery, output, target)

    def _write_from_memory(self, delivery: Delivery, output: OutputFolder, target: str) -> None:
        """Write the judged content from memory: the file was changed, replaced or removed since."""
        if not os.path.isdir(self._settings.inbox):
            raise FileNotFoundError(errno.ENOENT, "the inbox is gone", self._settings.inbox)
        if not delivery.content:
            outputs.remove_file(sidecar_of(target))
            return
        outputs.write_new(delivery.content, target, output.temporary_path(), delivery.stamp.mtime_ns)
        self._log.write(
            "replaced", file=delivery.name, message="changed after it was read; the version that was read is placed"
        )


def tag_of(store: Store) -> str:
    """Return a name that is the same in every run, so that the next run finds incomplete files."""
    return format(crc32(os.fsencode(store.path)), "08x")
