"""The loop of a watched folder: scan, read, judge, place, wait, also for faults to end."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from neardup.errors import InputError, NeardupError, OutputError, StoreError
from neardup.files import NO_SPACE, is_full
from neardup.watch.delivery import Delivery
from neardup.watch.inbox import Inbox, printable_path
from neardup.watch.judging import Batch, Judge
from neardup.watch.log import Counters, Log, error_reason, without_numbers
from neardup.watch.placed import release
from neardup.watch.placement import Placer
from neardup.watch.settings import DUTIES, FOLDERS, QUARANTINED, WatchSettings

if TYPE_CHECKING:
    from neardup.stream.index import Index
    from neardup.stream.store import Store

#: Seconds: the longest pause before another attempt, and the interval of progress events.
_MAX_PAUSE_S, _PROGRESS_INTERVAL_S = 10.0, 10.0
#: Notes of more forms are only counted, and the late items of more sources are logged again.
_MAX_SHAPES, _MAX_SOURCES = 1000, 10_000
#: The largest share of the time that scans may take.
_MAX_SCAN_SHARE = 0.1


class Watcher:
    """Judges the files of an inbox as they appear, each once, and moves them to the folder of their verdict."""

    def __init__(self, settings: WatchSettings, index: Index, store: Store, log: Log) -> None:
        self.settings = settings
        self.counters = Counters(settings.downstream)
        self.index = index
        self.inbox = Inbox(settings.inbox, settings.settle)
        self._store = store
        self._log = log
        self._stopping = False
        # A signal handler may call its put at any moment, where the lock of a threading.Event could deadlock.
        self._wakeups: SimpleQueue[None] = SimpleQueue()
        self._placer = Placer(settings, store, log)
        self._judge = Judge(settings, self.inbox, index, store, self._placer.unplaced, log, self.counters)
        self._batch: Batch | None = None  #: items that are not judged yet
        self._judged: deque[Delivery] = deque()  #: files all of whose items have verdicts, to be placed
        self._next_scan = 0.0
        self._unreadable_folders: set[str] = set()
        self._logged_shapes: set[str] = set()
        self._pause = 0.0
        self._last_progress_time = time.monotonic()
        self._last_progress_items = 0
        self._late_sources: set[str] = set()

    def stop(self) -> None:
        """Stop after the current batch. Safe in a signal handler."""
        self._stopping = True
        self._wakeups.put(None)

    def run(self) -> Counters:
        """Watch until `stop` is called, or with ``once`` until all present files are judged; return the counters.

        Raises ``NeardupError`` if a folder cannot be made; with ``once``, also at the first fault, which a longer run
        would wait out.
        """
        self._placer.open()
        try:
            self._store_folders()
            if unplaced := self._placer.unplaced:
                message = "judged by an earlier run, not yet in their places"
                items = sum(map(len, unplaced.values()))
                self._log.write("resumed", files=len(unplaced), items=items, message=message)
            while not self._stopping:
                self._step()
                if self.settings.once and self._is_finished():
                    break
        finally:
            self._placer.close()
        return self.counters

    def _store_folders(self) -> None:
        """Store the output folders and restore the counts of rejections, for reports."""
        folders = {name: os.path.abspath(getattr(self.settings, name)) for name in ("inbox", *DUTIES)}
        self._store.set_state(FOLDERS, json.dumps(folders | {"content": self.settings.content}))
        self.counters.reasons.update(json.loads(self._store.state(QUARANTINED) or "{}"))

    @property
    def _is_busy(self) -> bool:
        """Whether a batch is not yet judged, placed and recorded."""
        return self._batch is not None or bool(self._judged) or self._placer.is_busy

    def _step(self) -> None:
        self._scan_inbox()
        if not self._is_busy:
            self._release()
            self._batch = self._judge.next_batch(lambda: self._stopping)
        if not self._is_busy:
            self._wait()
        elif self._process_batch():
            self._progress()

    def _release(self) -> None:
        try:
            for name, by in self._store.requests():
                try:
                    answer = {"file": release(self.index, self._store, name, by)}
                    self._log.write("released", id=name, by=by, **answer)
                except NeardupError as error:
                    answer = {"error": str(error)}
                self._store.answer_request(name, answer)
        except StoreError as error:
            self._log.report_trouble("releasing", f"{error}; it will be tried again")
        else:
            self._log.report_recovery("releasing", "requests are answered again")

    def _process_batch(self) -> bool:
        """Judge and place the current batch; after a fault, wait. Return whether it succeeded."""
        try:
            if self._batch is not None:
                self._judge.judge(self._batch)
                self._judged += self._batch.complete
                self._batch = None
            self._placer.place(self._judged)
        except (OSError, StoreError) as error:
            self._report_trouble("placing", _fault_sentence(error), error)
            return False
        finally:
            self._finish()
        self._log.report_recovery("placing", "files are judged and placed again")
        self._pause = 0.0
        return True

    def _finish(self) -> None:
        """Count and log the files that are in their places now, and those that cannot be moved."""
        rejected_before = self.counters.quarantined
        for delivery in self._placer.placed:
            self.counters.files += 1
            self.counters.count_rejected(part.reason for part in delivery.read.broken_parts)
            self._placer.unplaced.pop(delivery.origin, None)
            if self.settings.place == "move":
                self.inbox.forget_file(delivery.path)
            self._log.report_recovery(f"move {delivery.path}", f"{delivery.name} can be moved again")
            self._log_delivery(delivery)
        for delivery, error in self._placer.unmovable:
            message = f"{delivery.name} cannot be moved: {error_reason(error)}; it is left in the inbox for now"
            self._log.report_trouble(f"move {delivery.path}", message)
            if not self.settings.once:
                self.inbox.retry_with_backoff(delivery.path, _MAX_PAUSE_S)
        self._placer.placed, self._placer.unmovable = [], []
        if self.counters.quarantined > rejected_before:
            # The files are in their places; a lost count is no reason to stop.
            with suppress(StoreError):
                self._store.set_state(QUARANTINED, json.dumps(self.counters.reasons))
        self.counters.sample_rate()

    def _log_delivery(self, delivery: Delivery) -> None:
        source = without_numbers(delivery.path)
        if delivery.late and source not in self._late_sources:
            if len(self._late_sources) >= _MAX_SOURCES:
                self._late_sources.clear()
            self._late_sources.add(source)
            message = "older than the window: compared by their exact text only"
            self._log.write("late", file=delivery.name, late=delivery.late, message=message)
        if delivery.known:
            self._log.write("known_items", file=delivery.name, known=delivery.known, items=delivery.count)
        if broken := delivery.read.broken_parts:
            fields = {"where": broken[0].where, "reason": broken[0].reason, "broken": len(broken)}
            self._log.write("quarantined", file=delivery.name, **fields)
        self._log_notes(delivery)

    def _log_notes(self, delivery: Delivery) -> None:
        """Log the first note of a file, and each note of a form that this run has not logged yet."""
        notes = [note for note in delivery.read.notes if not note.shape]
        if notes:
            fields = {"where": notes[0].where, "note": notes[0].text, "notes": len(notes)}
            self._log.write("noted", file=delivery.name, **fields)
        for note in delivery.read.notes:
            if not note.shape:
                continue
            self.counters.count_note(note.shape.partition(" ")[0])
            if note.shape not in self._logged_shapes and len(self._logged_shapes) < _MAX_SHAPES:
                self._logged_shapes.add(note.shape)
                self._log.write("noted", file=delivery.name, where=note.where, note=note.text, notes=1)

    def _report_trouble(self, subject: str, message: str, error: Exception) -> None:
        """Log a fault and wait before the next attempt; with ``once``, raise it."""
        if self.settings.once:
            if isinstance(error, NeardupError):
                raise error
            raise (InputError if subject == "inbox" else OutputError)(
                f"{message}; nothing is lost, start again"
            ) from None
        self._log.report_trouble(subject, f"{message}; nothing is lost, it will be tried again")
        self._pause = min(max(self._pause * 2, 0.5), _MAX_PAUSE_S)
        self._sleep(self._pause)

    def _sleep(self, seconds: float) -> None:
        if not self._stopping:
            with suppress(Empty):
                self._wakeups.get(timeout=max(seconds, 0.0))

    def _scan_inbox(self) -> None:
        now = time.monotonic()
        if now < self._next_scan:
            return
        inbox = printable_path(self.settings.inbox)
        try:
            found = self.inbox.scan()
        except OSError as error:
            self._report_trouble("inbox", f"the inbox {inbox} cannot be read: {error_reason(error)}", error)
            self._next_scan = time.monotonic()
            return
        self._next_scan = time.monotonic() + max(self.settings.poll, found.seconds / _MAX_SCAN_SHARE)
        if self._log.report_recovery("inbox", f"the inbox {inbox} can be read again"):
            self._pause = 0.0
        failed = dict(found.failed)
        for folder, fault in failed.items():
            message = f"{printable_path(folder)} cannot be read: {error_reason(fault)}; the rest goes on"
            self._log.report_trouble(f"folder {folder}", message)
        for folder in self._unreadable_folders - failed.keys():
            self._log.report_recovery(f"folder {folder}", f"{printable_path(folder)} can be read again")
        self._unreadable_folders = set(failed)
        if found.links:
            message = f"links, pipes and devices are left alone in the inbox ({found.links:,} of them)"
            self._log.report_trouble("links", message)
        else:
            self._log.drop_trouble("links")

    def _wait(self) -> None:
        scan_delay, settle_delay = self._next_scan - time.monotonic(), self.inbox.settle_delay
        self._sleep(scan_delay if settle_delay is None else min(scan_delay, settle_delay))
        self.counters.sample_rate()

    def _is_finished(self) -> bool:
        """Return whether no file is left; a run with ``once`` then ends."""
        if self._is_busy or self._judge.is_open or self.inbox.waiting_count:
            return False
        try:
            # Files that arrived while the last ones were judged are judged as well.
            return not self.inbox.scan().new
        except OSError:
            return True

    def _progress(self) -> None:
        now = time.monotonic()
        if now - self._last_progress_time < _PROGRESS_INTERVAL_S:
            return
        per_s = (self.counters.items - self._last_progress_items) / (now - self._last_progress_time)
        self._last_progress_time, self._last_progress_items = now, self.counters.items
        self._log.write(
            "progress",
            **self.counters.as_dict(),
            per_s=round(per_s, 1),
            waiting=self.inbox.waiting_count,
            held=len(self.index),
        )


def _fault_sentence(error: Exception) -> str:
    if not isinstance(error, OSError):
        return str(error)
    name = error.filename2 or error.filename
    where = printable_path(os.fspath(name)) if isinstance(name, str | os.PathLike) else "a file"
    return f"{where} {NO_SPACE}" if is_full(error) else f"{where} cannot be written: {error_reason(error)}"
