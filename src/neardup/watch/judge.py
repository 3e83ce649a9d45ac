"""Items given to the index, in batches: their ids, and their verdicts."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.stream.document import Document
from neardup.text.html import content_of
from neardup.watch.evidence import verdict_record
from neardup.watch.log import Counters, Log
from neardup.watch.names import Numbers
from neardup.watch.pending import PendingFile

if TYPE_CHECKING:
    from neardup.stream.document import Verdict
    from neardup.stream.index import Index
    from neardup.stream.store import Store
    from neardup.watch.records import Item

#: Documents and characters that are judged and stored at once.
_AT_ONCE, _CHARACTERS = 512, 1 << 22


class Task(NamedTuple):
    """An item of a file that is being judged, counted from 1."""

    pending: PendingFile
    item: Item
    number: int


class ItemJudge:
    """Gives items to the index and its verdicts to their files."""

    def __init__(self, index: Index, store: Store, log: Log, counters: Counters) -> None:
        self._index = index
        self._store = store
        self._log = log
        self._counters = counters
        self._numbers = Numbers()

    def judge(self, tasks: deque[Task]) -> None:
        """Judge items, tell their files, and take them from those that are given.

        Raises ``StoreError`` if verdicts cannot be kept: then none was given for what is left, and it can be tried
        again.
        """
        while tasks:
            part: list[Task] = []
            size = 0
            # The index stores so much at once, so that all of it is stored, or nothing.
            for task in islice(tasks, _AT_ONCE):
                size += len(task.item.text)
                if part and size > _CHARACTERS:
                    break
                part.append(task)
            self._judge(part)
            for _ in part:
                tasks.popleft()

    def _judge(self, tasks: Sequence[Task]) -> None:
        new = [task for task in tasks if task.pending.before(task.number - 1) is None]
        ids = self._ids(new)
        documents = [_document(name, task) for task, name in zip(new, ids, strict=True)]
        serial = self._store.next_serial
        begin = time.perf_counter()
        verdicts = iter(self._index.add_many(documents) if documents else ())
        self._counters.check_s += time.perf_counter() - begin
        for task, name in zip(new, ids, strict=True):
            wanted = task.pending.name_of(task.item, task.number)
            if name != wanted:
                self._counters.repeated_ids += 1
                message = "another item already has this id"
                self._log.say("repeated_id", id=wanted, judged_as=name, file=task.pending.name, message=message)
        for task in tasks:
            verdict = task.pending.before(task.number - 1)
            if verdict is None:
                verdict = next(verdicts)
                self._counters.count(verdict)
                self._tell(task, verdict)
                serial += 1
            task.pending.judged(task.item, verdict, serial - 1, self._record(task, verdict))

    def _tell(self, task: Task, verdict: Verdict) -> None:
        if verdict.is_duplicate:
            fields: dict[str, Any] = {"of": verdict.of, "similarity": verdict.similarity}
            if verdict.score is not None:
                fields |= {"score": verdict.score, "evidence": verdict.evidence}
            self._log.say("duplicate", id=verdict.id, kind=verdict.kind, **fields, file=task.pending.name)
        if verdict.flag:
            self._log.say("flagged", id=verdict.id, flag=verdict.flag, file=task.pending.name)

    def _record(self, task: Task, verdict: Verdict) -> dict[str, Any] | None:
        """Return what is to lie beside a duplicate."""
        if not verdict.is_duplicate or verdict.of is None:
            return None
        recipe, classifier = self._index.recipe, self._index.classifier
        try:
            other = self._index.text_of(verdict.of)
            text = content_of(task.item.text, recipe.content)
            other = None if other is None else content_of(other, recipe.content)
            return verdict_record(verdict, recipe, task.pending.name, text, other, classifier)
        except Exception:
            # The verdict stands and is carried out, whatever goes wrong while evidence is looked for.
            return verdict_record(verdict, recipe, task.pending.name, classifier=classifier)

    def _ids(self, tasks: list[Task]) -> list[str]:
        """Return an id for each item that no other has: its own, or with ``~2``, ``~3`` behind it."""
        wanted = [task.pending.name_of(task.item, task.number) for task in tasks]
        used = self._store.known(wanted)
        found: list[str] = []
        for name in wanted:
            if name in used:
                name = self._another(name, used)
            used.add(name)
            found.append(name)
        return found

    def _another(self, name: str, used: set[str]) -> str:
        def taken(number: int) -> bool:
            numbered = f"{name}~{number}"
            return numbered in used or bool(self._store.known([numbered]))

        return f"{name}~{self._numbers.free(name, taken)}"


def _document(name: str, task: Task) -> Document:
    return Document(name, task.item.text, task.item.timestamp, task.pending.origin, task.item.title)
