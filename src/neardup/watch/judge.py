"""Items given to the index, in batches: their ids, their verdicts, counters of both, and the log of events."""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.stream.document import Document
from neardup.text.html import content_of
from neardup.watch.evidence import verdict_record
from neardup.watch.names import Numbers
from neardup.watch.pending import PendingFile

if TYPE_CHECKING:
    from neardup.stream.document import Verdict
    from neardup.stream.index import Index
    from neardup.stream.store import Store
    from neardup.watch.records import Item

#: Seconds over which the rate is taken, and matches that are remembered.
_RECENT_S, _RECENT = 10.0, 8
#: Reasons that differ in numbers alone are one; so many are told apart.
_NUMBER = re.compile(r"\d[\d,.]*")
_REASONS, _OTHERS = 200, "other reasons"


class Counters:
    """Numbers of a run.

    Attributes
    ----------
    files, items, originals, duplicates, exact : int
        Files taken, items judged, and by verdict; exact ones are duplicates too.
    quarantined, repeated_ids, replaced : int
        Files and items rejected, items with an id that another had, files that changed after they were read.
    check_s : float
        Seconds spent on verdicts.
    reasons : Counter
        Why files and items were rejected, in earlier runs too, numbers in the reasons left out; 200 of them are told
        apart.
    """

    def __init__(self, downstream: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.files = self.items = self.originals = self.duplicates = self.exact = 0
        self.quarantined = self.repeated_ids = 0
        self.check_s = 0.0
        self.reasons: Counter[str] = Counter()
        self.last: deque[Verdict] = deque(maxlen=_RECENT)
        self._downstream = downstream
        self._clock = clock
        self._ticks: deque[tuple[float, int]] = deque([(clock(), 0)])

    def count(self, verdict: Verdict) -> None:
        """Count a verdict."""
        self.items += 1
        if verdict.is_duplicate:
            self.duplicates += 1
            self.exact += verdict.kind == "exact"
            self.last.append(verdict)
        else:
            self.originals += 1

    def rejected(self, reasons: Iterable[str]) -> None:
        """Count what was rejected."""
        for reason in reasons:
            self.quarantined += 1
            kind = _NUMBER.sub("N", reason)
            self.reasons[kind if kind in self.reasons or len(self.reasons) < _REASONS else _OTHERS] += 1

    def tick(self) -> None:
        """Note how far it is, for the rate."""
        now = self._clock()
        if now - self._ticks[-1][0] >= 0.25:
            self._ticks.append((now, self.items))
        while len(self._ticks) > 2 and now - self._ticks[0][0] > _RECENT_S:
            self._ticks.popleft()

    @property
    def rate(self) -> float:
        """Items a second, over the last seconds."""
        begin, items = self._ticks[0]
        return (self.items - items) / max(self._clock() - begin, 0.25)

    @property
    def saved_s(self) -> float:
        """Seconds that duplicates would have cost behind the watcher: the paper's P times t_p, for all items."""
        return self.duplicates * self._downstream

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as they are logged."""
        names = ("files", "items", "originals", "duplicates", "exact", "quarantined", "repeated_ids")
        return {name: getattr(self, name) for name in names} | {
            "check_s": round(self.check_s, 3),
            "saved_s": round(self.saved_s, 1),
        }


@dataclass(slots=True)
class _Trouble:
    """Since when, how long the silence is, and when it ends."""

    since: float
    delay: float
    again: float


#: Told of an event and its fields.
Listener = Callable[[str, dict[str, Any]], None]

_FIRST_REMINDER, _LAST_REMINDER = 30.0, 3600.0


class Log:
    """Tells events: as JSON lines on stderr, or to whoever shows them.

    A line has ``time`` (ISO 8601, UTC), ``event`` and the fields of the event. It is ASCII, so that nothing in a
    document can do anything to a terminal.
    """

    def __init__(self, listener: Listener | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._listener = listener
        self._clock = clock
        self._troubles: dict[str, _Trouble] = {}

    def say(self, event: str, **fields: Any) -> None:
        """Tell an event."""
        if self._listener is not None:
            self._listener(event, fields)
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        try:
            sys.stderr.write(json.dumps({"time": now, "event": event, **fields}) + "\n")
            sys.stderr.flush()
        except OSError:
            # A log that nobody reads any more, or a full disk under it, is no reason to stop.
            return

    def trouble(self, about: str, message: str, **fields: Any) -> None:
        """Tell of a trouble: at once, and while it lasts again after 30 s, a minute, two, at last every hour."""
        now, known = self._clock(), self._troubles.get(about)
        if known is None:
            self._troubles[about] = _Trouble(now, _FIRST_REMINDER, now + _FIRST_REMINDER)
            self.say("trouble", message=message, **fields)
        elif now >= known.again:
            known.delay = min(known.delay * 2, _LAST_REMINDER)
            known.again = now + known.delay
            self.say("trouble", message=message, for_s=round(now - known.since, 1), **fields)

    def well(self, about: str, message: str) -> bool:
        """Tell that a trouble is over, if there was one; return whether there was."""
        known = self._troubles.pop(about, None)
        if known is not None:
            self.say("well", message=message, after_s=round(self._clock() - known.since, 1))
        return known is not None

    def forget(self, about: str) -> None:
        """Drop a trouble whose object is gone, without a word."""
        self._troubles.pop(about, None)


def reason(error: OSError) -> str:
    """Return what the system says of an error, without the path: no space left on device."""
    text = error.strerror or str(error) or type(error).__name__
    return text[:1].lower() + text[1:]


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
