"""The loop of a watched folder: scan, read, judge, place, wait, also for faults to end."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from neardup.errors import InputError, NeardupError, OutputError, StoreError
from neardup.watch.batches import BatchReader, ItemJudge, PendingFile, Task
from neardup.watch.inbox import Inbox, printable_path
from neardup.watch.log import Counters, Log, error_reason, event_sentence, format_balance, format_duration
from neardup.watch.placement import Placer, release
from neardup.watch.settings import DUTIES, FOLDERS, QUARANTINED, WatchSettings

if TYPE_CHECKING:
    from rich.console import RenderableType

    from neardup.stream.index import Index
    from neardup.stream.store import Store

#: Seconds: the longest pause before another attempt, and the interval of progress events.
_MAX_PAUSE_S, _PROGRESS_INTERVAL_S = 10.0, 10.0
#: Notes of more forms are only counted.
_MAX_SHAPES = 1000
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
        self._batch_reader = BatchReader(settings, self.inbox, store, self._placer.stored_verdicts, log)
        self._judge = ItemJudge(index, store, log, self.counters)
        self._tasks: list[Task] = []
        self._next_scan = 0.0
        self._unreadable_folders: set[str] = set()
        self._logged_shapes: set[str] = set()
        self._pause = 0.0
        self._last_progress_time = time.monotonic()
        self._last_progress_items = 0
        #: Whether a batch is not yet judged, placed and recorded.
        self._has_batch = False

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
            if stored := self._placer.stored_verdicts:
                message = "judged by an earlier run, not yet in their places"
                self._log.write("resumed", files=len(stored), items=sum(map(len, stored.values())), message=message)
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

    def _step(self) -> None:
        self._scan_inbox()
        if not self._has_batch:
            self._release()
        if not self._has_batch:
            self._tasks = self._batch_reader.next_batch(lambda: self._stopping)
            self._has_batch = bool(self._tasks or self._batch_reader.complete)
        if not self._has_batch:
            self._wait()
        elif self._process_batch():
            self._has_batch = self._placer.is_busy
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
            if self._tasks:
                self._judge.judge(self._tasks)
                self._tasks = []
            self._placer.pending_files += self._batch_reader.pop_complete()
            self._placer.place()
        except (OSError, StoreError) as error:
            self._report_trouble("placing", _fault_sentence(error), error)
            return False
        finally:
            self._finish(self._placer.pop_placed())
        self._log.report_recovery("placing", "files are judged and placed again")
        self._pause = 0.0
        return True

    def _finish(self, pending_files: list[PendingFile]) -> None:
        for pending in pending_files:
            self.counters.files += 1
            self.counters.count_rejected(fault.reason for fault in pending.read.broken_parts)
            self._placer.stored_verdicts.pop(pending.origin, None)
            if self.settings.place == "move":
                self.inbox.forget_file(pending.path)
            self._log.report_recovery(f"move {pending.path}", f"{pending.name} can be moved again")
            if pending.late_count:
                message = "older than the window: compared by their exact text only"
                self._log.write("late", file=pending.name, late=pending.late_count, message=message)
            if pending.known_count:
                self._log.write("known_items", file=pending.name, known=pending.known_count, items=pending.count)
            if pending.read.broken_parts:
                first = pending.read.broken_parts[0]
                fields = {"where": first.where, "reason": first.reason, "broken": len(pending.read.broken_parts)}
                self._log.write("quarantined", file=pending.name, **fields)
            self._log_notes(pending)
        for pending, error in self._placer.unmovable:
            message = f"{pending.name} cannot be moved: {error_reason(error)}; it is left in the inbox for now"
            self._log.report_trouble(f"move {pending.path}", message)
            if not self.settings.once:
                self.inbox.retry_with_backoff(pending.path, _MAX_PAUSE_S)
        self._placer.unmovable = []
        if any(pending.read.broken_parts for pending in pending_files):
            # The files are in their places; a lost count is no reason to stop.
            with suppress(StoreError):
                self._store.set_state(QUARANTINED, json.dumps(self.counters.reasons))
        self.counters.sample_rate()

    def _log_notes(self, pending: PendingFile) -> None:
        """Log the first note of a file, and each note of a form that this run has not logged yet."""
        notes = [note for note in pending.read.notes if not note.shape]
        if notes:
            fields = {"where": notes[0].where, "note": notes[0].text, "notes": len(notes)}
            self._log.write("noted", file=pending.name, **fields)
        for note in pending.read.notes:
            if not note.shape:
                continue
            self.counters.count_note(note.shape.partition(" ")[0])
            if note.shape not in self._logged_shapes and len(self._logged_shapes) < _MAX_SHAPES:
                self._logged_shapes.add(note.shape)
                self._log.write("noted", file=pending.name, where=note.where, note=note.text, notes=1)

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
        if self._has_batch or self._batch_reader.is_open or self.inbox.waiting_count:
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
    return f"{where} cannot be written: {error_reason(error)}"


#: Events that the panel shows in its rows.
_PANEL_EVENTS = frozenset({"duplicate", "progress", "started", "stopping", "stopped", "flagged"})


class Panel:
    """Shows a watcher at work on stderr."""

    def __init__(self, watcher: Watcher, visible: Callable[[str], str], size_text: Callable[[int], str]) -> None:
        from rich.console import Console
        from rich.live import Live

        self._watcher = watcher
        self._visible = visible
        self._size_text = size_text
        self._start = time.monotonic()
        self._live = Live(
            get_renderable=self._render,
            console=Console(stderr=True),
            refresh_per_second=4,
            transient=True,
            redirect_stdout=False,
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.__exit__(kind, error, at)

    def show_event(self, event: str, fields: dict[str, Any]) -> None:
        """Show an event above the panel, unless its rows show it."""
        from rich.text import Text

        if event not in _PANEL_EVENTS:
            sentence = self._visible(event_sentence(event, fields))
            self._live.console.print(
                Text(f"{time.strftime('%H:%M:%S')}  {sentence}", "yellow" if event == "trouble" else "")
            )

    def _render(self) -> RenderableType:
        from rich.panel import Panel as Frame
        from rich.table import Table
        from rich.text import Text

        counters, statistics = self._watcher.counters, self._watcher.index.statistics
        rows = Table.grid(padding=(0, 2))
        rows.add_column(style="dim", no_wrap=True)
        rows.add_column(overflow="fold")
        share = counters.duplicates / counters.items if counters.items else 0.0
        rate = f"{counters.rate:,.1f} a second, {self._watcher.inbox.waiting_count:,} files waiting"
        rows.add_row("items", f"{counters.items:,} in {format_duration(time.monotonic() - self._start)}; {rate}")
        rows.add_row("originals", f"{counters.originals:,}")
        rows.add_row("duplicates", f"{counters.duplicates:,} ({share:.1%}), {counters.exact:,} of them exact")
        if counters.known:
            rows.add_row("known", f"{counters.known:,} that came before, with the same id and text")
        if counters.late:
            rows.add_row("late", f"{counters.late:,} older than the window, compared by their exact text only")
        if counters.quarantined:
            rows.add_row("rejected", f"{counters.quarantined:,} that cannot be read")
        held = f"{statistics.window_documents:,} documents, {self._size_text(statistics.bytes)}"
        rows.add_row("window", held)
        rows.add_row("time", format_balance(counters))
        for place, verdict in enumerate(reversed(counters.recent_duplicates)):
            score = "" if verdict.similarity is None else f"{verdict.similarity:.4f} "
            line = Text(f"{verdict.kind:<5} {score}{self._visible(verdict.id)} = {self._visible(verdict.of or '')}")
            line.truncate(200, overflow="ellipsis")
            rows.add_row("" if place else "matches", line)
        return Frame(rows, title=Text(f"neardup watch {self._visible(self._watcher.settings.inbox)}"), expand=False)
