"""Batches of items: read from the files of the inbox, judged by the index, and returned to their files."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.errors import NeardupError
from neardup.stream.document import Document
from neardup.text.html import content_of
from neardup.watch.evidence import rejection_record, verdict_record
from neardup.watch.inbox import Inbox, SettledFile
from neardup.watch.log import Counters, Log, error_reason
from neardup.watch.names import FreeNumbers, origin_of, printable_path
from neardup.watch.pending import FileChanged, PendingFile, read_file
from neardup.watch.placement import Placer
from neardup.watch.settings import WatchSettings

if TYPE_CHECKING:
    from neardup.stream.document import Verdict
    from neardup.stream.index import Index
    from neardup.stream.store import Store
    from neardup.watch.items import Item


class Task(NamedTuple):
    """An item of a file that is being judged, counted from 1."""

    pending: PendingFile
    item: Item
    number: int


#: The limits of a batch: items, files, and bytes of files plus characters of items. The index stores more than that in
#: one transaction, so a batch is stored whole or not at all.
_BATCH_ITEMS, _BATCH_FILES, _BATCH_BYTES = 512, 512, 1 << 22
#: The longest wait in seconds before an unreadable file is tried again.
_MAX_RETRY_S = 60.0
#: A file unchanged for this multiple of ``patience`` counts as complete at first sight.
_OLD_FACTOR = 10


class BatchReader:
    """Reads the files of the inbox, and returns their items in batches."""

    def __init__(self, settings: WatchSettings, inbox: Inbox, store: Store, placer: Placer, log: Log) -> None:
        self._settings = settings
        self._inbox = inbox
        self._store = store
        self._placer = placer
        self._log = log
        self._open_file: PendingFile | None = None
        self._number = 0
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
            if self._open_file is None:
                self._open_file = self._next_pending()
                if self._open_file is None:
                    break
                self._number = 0
                size += len(self._open_file.read.content)
            item = self._open_file.next_item()
            if item is None:
                self.complete.append(self._open_file)
                self._open_file = None
                continue
            self._number += 1
            size += len(item.text)
            tasks.append(Task(self._open_file, item, self._number))
        return tasks

    def pop_complete(self) -> list[PendingFile]:
        """Return the files whose items have all been judged, each once."""
        complete_files, self.complete = self.complete, []
        for pending in complete_files:
            pending.finish()
        return complete_files

    def forget_placed(self, pending: PendingFile) -> None:
        """Forget a placed file."""
        self._placer.stored_verdicts.pop(pending.origin, None)
        if self._settings.place == "move":
            self._inbox.forget_file(pending.path)

    def _next_pending(self) -> PendingFile | None:
        """Return the next file to judge or place."""
        while (found := self._inbox.next_settled()) is not None:
            pending = self._pending_file(found)
            if pending is not None:
                return pending
        return None

    def _pending_file(self, found: SettledFile) -> PendingFile | None:
        """Read a file; return None if it is not to be judged now."""
        origin, subject = origin_of(found.path, found.stamp), f"file {found.path}"
        stored = self._placer.stored_verdicts.get(origin)
        if stored is None and self._was_judged(origin, found):
            return None
        try:
            read = read_file(self._settings.inbox, found, self._settings.content, self._settings.largest)
        except FileChanged as change:
            self._log.drop_trouble(subject)
            if change.stamp is None:
                self._inbox.forget_file(found.path)
            else:
                self._inbox.restart_settling(found.path, change.stamp)
            return None
        except (OSError, NeardupError, MemoryError) as error:
            cause = (
                error_reason(error) if isinstance(error, OSError) else str(error) or "there is not enough memory for it"
            )
            message = f"{printable_path(found.path)} cannot be read: {cause}; it is left in the inbox for now"
            self._log.report_trouble(subject, message)
            if not self._settings.once:
                self._inbox.retry_with_backoff(found.path, _MAX_RETRY_S)
            return None
        self._log.report_recovery(subject, f"{printable_path(found.path)} can be read again")
        if read.may_be_incomplete and stored is None and self._may_be_incomplete(found):
            return None
        pending = PendingFile(read, stored or [], self._placer.output_folders)
        if read.is_unreadable:
            first = read.broken_parts[0]
            pending.record = rejection_record(
                pending.name, first.reason, where=first.where, broken=len(read.broken_parts)
            )
        return pending

    def _was_judged(self, origin: str, found: SettledFile) -> bool:
        """Return whether a file in the inbox was judged and placed before."""
        if not self._store.judged_count(origin):
            return self._placer.is_left(origin)
        if self._settings.place == "move":
            message = "already judged, so it stays in the inbox; touch it to have it judged again"
            self._log.write("known", file=printable_path(found.path), message=message)
        return True

    def _may_be_incomplete(self, found: SettledFile) -> bool:
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
        self._numbers = FreeNumbers()

    def judge(self, tasks: Sequence[Task]) -> None:
        """Judge the items of a batch and add the verdicts to their files.

        Raises ``StoreError`` if verdicts cannot be stored; then none was, and the batch can be judged again.
        """
        new = [task for task in tasks if task.pending.stored_verdict(task.number - 1) is None]
        ids = self._unique_ids(new)
        documents = [_document(name, task) for task, name in zip(new, ids, strict=True)]
        serial = self._store.next_serial
        begin = time.perf_counter()
        verdicts = iter(self._index.add_many(documents) if documents else ())
        self._counters.check_s += time.perf_counter() - begin
        for task, name in zip(new, ids, strict=True):
            preferred_id = task.pending.id_of(task.item, task.number)
            if name != preferred_id:
                self._counters.repeated_ids += 1
                message = "another item already has this id"
                self._log.write("repeated_id", id=preferred_id, judged_as=name, file=task.pending.name, message=message)
        for task in tasks:
            verdict = task.pending.stored_verdict(task.number - 1)
            if verdict is None:
                verdict = next(verdicts)
                self._counters.count_verdict(verdict)
                self._log_verdict(task, verdict)
                serial += 1
            task.pending.add_verdict(task.item, verdict, serial - 1, self._record(task, verdict))

    def _log_verdict(self, task: Task, verdict: Verdict) -> None:
        if verdict.is_duplicate:
            fields: dict[str, Any] = {"of": verdict.of, "similarity": verdict.similarity}
            if verdict.score is not None:
                fields |= {"score": verdict.score, "evidence": verdict.evidence}
            self._log.write("duplicate", id=verdict.id, kind=verdict.kind, **fields, file=task.pending.name)
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

    def _unique_ids(self, tasks: list[Task]) -> list[str]:
        """Return a unique id for each item: its own, or with ``~2``, ``~3`` appended."""
        preferred_ids = [task.pending.id_of(task.item, task.number) for task in tasks]
        taken_ids = self._store.judged_ids(preferred_ids)
        found: list[str] = []
        for name in preferred_ids:
            if name in taken_ids:
                name = self._free_name(name, taken_ids)
            taken_ids.add(name)
            found.append(name)
        return found

    def _free_name(self, name: str, taken_ids: set[str]) -> str:
        def taken(number: int) -> bool:
            numbered = f"{name}~{number}"
            return numbered in taken_ids or bool(self._store.judged_ids([numbered]))

        return f"{name}~{self._numbers.next_free(name, taken)}"


def _document(name: str, task: Task) -> Document:
    return Document(name, task.item.text, task.item.timestamp, task.pending.origin, task.item.title)
