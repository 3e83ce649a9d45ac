"""What a watcher has done so far, in numbers."""

from __future__ import annotations

import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neardup.flow.document import Verdict

#: Seconds over which the rate is taken, and matches that are remembered.
_RECENT_S, _RECENT = 10.0, 8
#: Reasons that differ in numbers alone are one; so many are told apart.
_NUMBER = re.compile(r"\d[\d,.]*")
_REASONS, _OTHERS = 200, "other reasons"


class Counters:
    """Numbers of a run.

    Parameters
    ----------
    downstream : float
        Seconds that everything behind the watcher spends on an item.
    clock : callable
        Seconds that never jump.

    Attributes
    ----------
    files, items, originals, duplicates, exact : int
        Files taken, items judged, and by verdict; exact ones are duplicates too.
    quarantined, repeated_ids, replaced : int
        Files and items set aside, items with an id that another had, files that changed after they were read.
    check_s, check_cpu_s : float
        Seconds spent on verdicts, and seconds of processors.
    reasons : Counter
        Why files and items were set aside, numbers in the reasons left out; 200 of them are told apart.
    """

    def __init__(self, downstream: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.files = self.items = self.originals = self.duplicates = self.exact = 0
        self.quarantined = self.repeated_ids = 0
        self.check_s = self.check_cpu_s = 0.0
        self.reasons: Counter[str] = Counter()
        self.begun = clock()
        self.last: deque[Verdict] = deque(maxlen=_RECENT)
        self._downstream = downstream
        self._clock = clock
        self._ticks: deque[tuple[float, int]] = deque([(self.begun, 0)])

    def count(self, verdict: Verdict) -> None:
        """Count a verdict."""
        self.items += 1
        if verdict.is_duplicate:
            self.duplicates += 1
            self.exact += verdict.kind == "exact"
            self.last.append(verdict)
        else:
            self.originals += 1

    def set_aside(self, reasons: Iterable[str]) -> None:
        """Count what was set aside."""
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
