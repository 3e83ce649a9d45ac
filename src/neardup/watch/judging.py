"""The files of the inbox, read complete or not at all, and their items, judged by the index in batches."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from neardup.errors import InputError, NeardupError, quoted
from neardup.items.item import Item
from neardup.stream.document import Document
from neardup.stream.store import text_digest
from neardup.text.contents import content_of
from neardup.watch.delivery import Delivery
from neardup.watch.evidence import verdict_record
from neardup.watch.inbox import FileChanged, Inbox, SettledFile, origin_of, printable_path
from neardup.watch.log import Counters, Log, error_reason
from neardup.watch.settings import LEFT_IN_INBOX, WatchSettings

if TYPE_CHECKING:
    from neardup.stream.document import Verdict
    from neardup.stream.index import Index
    from neardup.stream.store import Store

#: The limits of a batch: items, files, and bytes of files plus characters of items. The index stores more than that in
#: one transaction, so a batch is stored whole or not at all.
_BATCH_ITEMS, _BATCH_FILES, _BATCH_BYTES = 512, 512, 1 << 22
#: The longest wait in seconds before an unreadable file is tried again.
_MAX_RETRY_S = 60.0
#: A file unchanged for this multiple of ``patience`` counts as complete at first sight.
_OLD_FACTOR = 10


@dataclass(slots=True)
class Batch:
    """Items to judge together, each with its file and its number in it, and the files that end in this batch."""

    items: deque[tuple[Delivery, int, Item]] = field(default_factory=deque)
    complete: list[Delivery] = field(default_factory=list)


class Judge:
    """Reads the files of the inbox, and judges their items by the index.

    ``unplaced``: the serials of items that are judged and not placed yet, by their ids, by the origins of their files.
    """

    def __init__(
        self,
        settings: WatchSettings,
        inbox: Inbox,
        index: Index,
        store: Store,
        unplaced: Mapping[str, Mapping[str, int]],
        log: Log,
        counters: Counters,
    ) -> None:
        self._settings, self._inbox, self._unplaced = settings, inbox, unplaced
        self._index, self._store, self._log, self._counters = index, store, log, counters
        self._open_file: Delivery | None = None
        self._numbered_items: Iterator[tuple[int, Item]] = iter(())
        self._next_serial = 0  #: that of the next new verdict

    @property
    def is_open(self) -> bool:
        """Whether a file has items for the next batch."""
        return self._open_file is not None

    def next_batch(self, stopping: Callable[[], bool]) -> Batch | None:
        """Return the next items to judge, None if no file has settled."""
        batch, size = Batch(), 0
        while len(batch.items) < _BATCH_ITEMS and len(batch.complete) < _BATCH_FILES and size < _BATCH_BYTES:
            if stopping():
                break
            if self._open_file is None:
                self._open_file = self._next_delivery()
                if self._open_file is None:
                    break
                self._numbered_items = enumerate(self._open_file.read.items, 1)
                size += len(self._open_file.content)
            number, item = next(self._numbered_items, (0, None))
            if item is None:
                batch.complete.append(self._open_file)
                self._open_file = None
                continue
            size += len(item.text)
            batch.items.append((self._open_file, number, item))
        return batch if batch.items or batch.complete else None

    def _next_delivery(self) -> Delivery | None:
        while (found := self._inbox.next_settled()) is not None:
            if (delivery := self._delivery(found)) is not None:
                return delivery
        return None

    def _delivery(self, found: SettledFile) -> Delivery | None:
        """Read a file; return None if it is not to be judged now."""
        origin, subject, name = origin_of(*found), f"file {found.path}", printable_path(found.path)
        unplaced = self._unplaced.get(origin)
        if unplaced is None and self._was_judged(origin, name):
            return None
        try:
            delivery = Delivery(self._settings, found, unplaced or {})
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
            if not self._settings.once:
                self._inbox.retry_with_backoff(found.path, _MAX_RETRY_S)
            return None
        self._log.report_recovery(subject, f"{name} can be read again")
        return None if unplaced is None and self._may_grow(delivery) else delivery

    def _was_judged(self, origin: str, name: str) -> bool:
        """Return whether a file in the inbox was judged and placed before."""
        is_moved = self._settings.place == "move"
        if not self._store.judged_count(origin):
            return not is_moved and self._store.state(LEFT_IN_INBOX + origin) is not None
        if is_moved:
            message = "already judged, so it stays in the inbox; touch it to have it judged again"
            self._log.write("known", file=name, message=message)
        return True

    def _may_grow(self, delivery: Delivery) -> bool:
        """Return whether a file may still be half-written by its end and its age; if so, schedule another read."""
        read, path = delivery.read, delivery.path
        if not (read.may_be_incomplete or any(part.ended_early for part in read.broken_parts)):
            return False
        age, patience = self._inbox.age(path), self._settings.patience
        # The clock of a file server may be off by minutes, so only an old time of change counts.
        if age >= patience or time.time() - delivery.stamp.mtime_ns / 1e9 > _OLD_FACTOR * patience:
            return False
        self._inbox.retry_after(path, patience - age)
        return True

    def judge(self, batch: Batch) -> None:
        """Judge the items of a batch and add the verdicts to their files.

        Raises ``StoreError`` if verdicts cannot be stored; then none was, and the batch can be judged again.
        """
        documents = [
            Document(self._id_of(delivery, number, item), item.text, item.timestamp, delivery.origin, item.title)
            for delivery, number, item in batch.items
        ]
        self._next_serial, begin = self._store.next_serial, time.perf_counter()
        try:
            verdicts = self._index.add_many(documents)
            self._counters.check_s += time.perf_counter() - begin
        except InputError:
            if self._index.versions != "refuse":
                raise
            # One of them is refused, so none was judged. If the store fails now, those before are not judged again.
            for document in documents:
                one = self._verdict_or_refusal(document)
                self._take(batch.items.popleft(), document.id, one)
        else:
            for judged, verdict in zip(batch.items, verdicts, strict=True):
                self._take(judged, verdict.id, verdict)
            batch.items.clear()
        for delivery in batch.complete:
            delivery.finish()

    def _take(self, judged: tuple[Delivery, int, Item], name: str, verdict: Verdict | None) -> None:
        """Give a verdict to the file of its item; None rejects the item, since its id came with another text."""
        delivery, number, item = judged
        if verdict is None:
            where = f"{'the file' if delivery.is_single else f'item {number}'} (id {quoted(name)})"
            delivery.read.reject(where, "its id came before with another text, and --versions is refuse", item.raw)
            return
        if not verdict.known:
            delivery.serials[verdict.id] = self._next_serial
            self._next_serial += 1
            delivery.late += verdict.flag == "late"
            self._counters.count_verdict(verdict)
            self._log_verdict(delivery, verdict)
        elif verdict.id in delivery.unclaimed:
            # An earlier run judged it and did not place it.
            delivery.unclaimed.remove(verdict.id)
            verdict = verdict._replace(known=False)
        else:
            self._counters.known += 1
            delivery.known += 1
            verdict = verdict._replace(
                kind="exact", of=verdict.id, similarity=1.0, counts=None, score=None, measures=()
            )
        delivery.add_verdict(item, number, verdict, self._record(delivery, item, verdict))

    def _id_of(self, delivery: Delivery, number: int, item: Item) -> str:
        name = delivery.preferred_id(item, number)
        if self._index.versions != "keep" and not item.key and delivery.count > 1:
            # A place in a file, which the next file of this name may give to another item.
            return f"{name}-{text_digest(item.text).hex()[:12]}"
        return name

    def _verdict_or_refusal(self, document: Document) -> Verdict | None:
        """Judge a document alone; return None if its id came before with another text."""
        try:
            return self._index.add(document)
        except InputError:
            return None

    def _log_verdict(self, delivery: Delivery, verdict: Verdict) -> None:
        if verdict.is_duplicate:
            fields: dict[str, Any] = {"of": verdict.of, "similarity": verdict.similarity}
            if verdict.score is not None:
                fields |= {"score": verdict.score, "evidence": verdict.evidence}
            self._log.write("duplicate", id=verdict.id, kind=verdict.kind, **fields, file=delivery.name)
        if verdict.version_of is not None:
            self._counters.repeated_ids += 1
            fields = {"judged_as": verdict.id, "file": delivery.name, "message": "another item already has this id"}
            self._log.write("repeated_id", id=verdict.version_of, **fields)
        # A feed lists its late items for weeks: they are counted, and said once a source.
        if verdict.flag not in ("", "late"):
            self._log.write("flagged", id=verdict.id, flag=verdict.flag, file=delivery.name)

    def _record(self, delivery: Delivery, item: Item, verdict: Verdict) -> dict[str, Any] | None:
        """Return the sidecar record of a duplicate; None for an original."""
        if verdict.of is None or (verdict.known and not delivery.is_single):
            return None
        recipe, classifier = self._index.recipe, self._index.classifier
        try:
            original_text = self._index.text_of(verdict.of)
            text = content_of(item.text, recipe.content)
            original_text = None if original_text is None else content_of(original_text, recipe.content)
            return verdict_record(verdict, recipe, delivery.name, text, original_text, classifier)
        except Exception:
            # The verdict stands even if the search for evidence fails.
            return verdict_record(verdict, recipe, delivery.name, classifier=classifier)
