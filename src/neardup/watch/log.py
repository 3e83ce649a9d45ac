"""The counters of a watcher, and its log of events."""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neardup.stream.document import Verdict

#: The seconds over which the rate is measured.
_RATE_S = 10.0
_NUMBER = re.compile(r"\d[\d,.]*")
#: Reasons that are counted separately.
_MAX_REASONS = 200
_FIRST_REMINDER_S, _LAST_REMINDER_S = 30.0, 3600.0


class Counters:
    """The counters of a run."""

    def __init__(self, downstream: float) -> None:
        #: Files read, items judged, and items by verdict; exact ones are also duplicates.
        self.files = self.items = self.originals = self.duplicates = self.exact = 0
        #: Files and items rejected, and items whose id another item had.
        self.quarantined = self.repeated_ids = 0
        #: Items that came before with the same id and text, and items older than the window.
        self.known = self.late = 0
        #: Items whose stated date could not be read, and items whose text was in fields of unusual names.
        self.unread_dates = self.guessed_texts = 0
        self.check_s = 0.0  #: seconds spent on verdicts
        #: Reasons of rejections without the numbers in them, earlier runs included.
        self.reasons: Counter[str] = Counter()
        self.recent_duplicates: deque[Verdict] = deque(maxlen=8)
        self._downstream = downstream
        self._samples: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])

    def count_verdict(self, verdict: Verdict) -> None:
        """Count a verdict."""
        self.items += 1
        self.late += verdict.flag == "late"
        if verdict.is_duplicate:
            self.duplicates += 1
            self.exact += verdict.kind == "exact"
            self.recent_duplicates.append(verdict)
        else:
            self.originals += 1

    def count_note(self, name: str) -> None:
        """Count a note under ``unread_dates`` or ``guessed_texts``."""
        setattr(self, name, getattr(self, name) + 1)

    def count_rejected(self, reasons: Iterable[str]) -> None:
        """Count what was rejected; reasons that differ only in numbers count as one."""
        for reason in reasons:
            self.quarantined += 1
            kind = without_numbers(reason)
            is_counted = kind in self.reasons or len(self.reasons) < _MAX_REASONS
            self.reasons[kind if is_counted else "other reasons"] += 1

    def sample_rate(self) -> None:
        """Record the current count for the rate."""
        now = time.monotonic()
        if now - self._samples[-1][0] >= 0.25:
            self._samples.append((now, self.items))
        while len(self._samples) > 2 and now - self._samples[0][0] > _RATE_S:
            self._samples.popleft()

    @property
    def rate(self) -> float:
        """Items per second, over the last seconds."""
        begin, items = self._samples[0]
        return (self.items - items) / max(time.monotonic() - begin, 0.25)

    @property
    def saved_s(self) -> float:
        """Seconds of downstream processing that duplicates would have cost: the paper's P times t_p, for all items."""
        return self.duplicates * self._downstream

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as they are logged."""
        names = (
            *("files", "items", "originals", "duplicates", "exact", "quarantined", "repeated_ids"),
            *("known", "late"),
            *("unread_dates", "guessed_texts"),
        )
        seconds = {"check_s": round(self.check_s, 3), "saved_s": round(self.saved_s, 1)}
        return {name: getattr(self, name) for name in names} | seconds


def without_numbers(text: str) -> str:
    """Return what texts have in common that differ in numbers: a kind of reason, or the source of numbered files."""
    return _NUMBER.sub("N", text)


@dataclass(slots=True)
class _Trouble:
    begin: float
    next_reminder: float
    delay: float = _FIRST_REMINDER_S  #: between two reminders


#: Receives an event and its fields.
Listener = Callable[[str, dict[str, Any]], None]


class Log:
    """Writes events as JSON lines to stderr, or passes them to a listener.

    A line has ``time`` (ISO 8601, UTC), ``event`` and the fields of the event. It is ASCII, so that no document can
    send control characters to a terminal.
    """

    def __init__(self, listener: Listener | None = None) -> None:
        self.listener = listener  #: who shows events; None for lines on stderr
        self._troubles: dict[str, _Trouble] = {}

    def write(self, event: str, **fields: Any) -> None:
        """Write an event."""
        if self.listener is not None:
            self.listener(event, fields)
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        try:
            sys.stderr.write(json.dumps({"time": now, "event": event, **fields}) + "\n")
            sys.stderr.flush()
        except OSError:
            # A closed log or a full disk is no reason to stop.
            return

    def report_trouble(self, about: str, message: str) -> None:
        """Report a trouble at once, and while it lasts again after 30 s, then at doubling intervals up to an hour."""
        now, trouble = time.monotonic(), self._troubles.get(about)
        if trouble is None:
            self._troubles[about] = _Trouble(now, now + _FIRST_REMINDER_S)
            self.write("trouble", message=message)
        elif now >= trouble.next_reminder:
            trouble.delay = min(trouble.delay * 2, _LAST_REMINDER_S)
            trouble.next_reminder = now + trouble.delay
            self.write("trouble", message=message, for_s=round(now - trouble.begin, 1))

    def report_recovery(self, about: str, message: str) -> bool:
        """Report that a trouble is over; return whether there was one."""
        trouble = self._troubles.pop(about, None)
        if trouble is not None:
            self.write("well", message=message, after_s=round(time.monotonic() - trouble.begin, 1))
        return trouble is not None

    def files_left(self) -> int:
        """Return how many files a fault leaves in the inbox for now."""
        return sum(about.startswith(("file ", "move ")) for about in self._troubles)

    def drop_trouble(self, about: str) -> None:
        """Drop a trouble silently, because its file is gone."""
        self._troubles.pop(about, None)


def error_reason(error: OSError) -> str:
    """Return the system's message for an error, without the path, such as: no space left on device."""
    text = error.strerror or str(error) or type(error).__name__
    return text[:1].lower() + text[1:]
