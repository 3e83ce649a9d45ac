"""The documents of a window by id, and the verdicts of an index without a store."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from neardup.stream.document import COUNTS, Verdict, count
from neardup.stream.window_step import Record


class WindowDocuments:
    """Ids, serials and, if needed, records of the documents in the window."""

    def __init__(self) -> None:
        self.serials: dict[str, int] = {}  #: the serial of each document in the window by id
        self._names: dict[int, str] = {}
        self._records: dict[int, Record] = {}

    def __len__(self) -> int:
        return len(self.serials)

    def __iter__(self) -> Iterator[str]:
        return iter([self._names[serial] for serial in sorted(self._names)])

    def name(self, serial: int) -> str | None:
        """Return the id of a document in the window, None if it is not there."""
        return self._names.get(serial)

    def record(self, serial: int) -> Record | None:
        """Return the record of a document in the window, None if records are not kept."""
        return self._records.get(serial)

    @property
    def first(self) -> int | None:
        """The smallest serial in the window, None if it is empty."""
        # Serials are added in ascending order, and a dictionary keeps it.
        return next(iter(self._names), None)

    def add(self, serial: int, name: str, record: Record | None) -> None:
        """Add a document, with its record if a second step needs it."""
        self.serials[name] = serial
        self._names[serial] = name
        if record is not None:
            self._records[serial] = record

    def remove(self, serials: Iterable[int]) -> None:
        """Remove documents by serial."""
        for serial in serials:
            name = self._names.pop(serial, None)
            if name is not None:
                del self.serials[name]
            self._records.pop(serial, None)


class RecentVerdicts:
    """The verdicts of an index without a store, kept as long as its window, and the counts of all verdicts."""

    def __init__(self, window_ids: Container[str]) -> None:
        self.counts = dict.fromkeys(COUNTS, 0)
        self._window_ids = window_ids
        # Plain tuples, since the garbage collector would visit a million records again and again.
        self._verdicts: dict[str, tuple[Any, ...]] = {}
        self._segments: deque[tuple[int, list[str]]] = deque()

    def verdict_of(self, name: str) -> Verdict | None:
        """Return the verdict on a document, None if it is no longer kept."""
        found = self._verdicts.get(name)
        return None if found is None else Verdict(*found)

    def judged_ids(self, names: Sequence[str]) -> set[str]:
        """Return which of some ids have verdicts."""
        return self._verdicts.keys() & set(names)

    def add(self, verdicts: Sequence[Verdict], segments: Sequence[int], oldest: int) -> None:
        """Add verdicts by segment, and forget those of segments before the oldest unless the document is in the window.

        A confirmed document that was ahead stays in the window long after its segment.
        """
        count(self.counts, verdicts)
        for verdict, segment in zip(verdicts, segments, strict=True):
            self._verdicts[verdict.id] = tuple(verdict)
            if not self._segments or self._segments[-1][0] != segment:
                self._segments.append((segment, []))
            self._segments[-1][1].append(verdict.id)
        while len(self._segments) > 1 and self._segments[0][0] < oldest:
            for name in self._segments.popleft()[1]:
                if name in self._window_ids:
                    self._segments[-1][1].append(name)
                else:
                    self._verdicts.pop(name, None)

    def replace(self, old: Verdict, new: Verdict) -> None:
        """Replace the verdict on a document."""
        count(self.counts, [old], -1)
        count(self.counts, [new])
        self._verdicts[new.id] = tuple(new)

    def forget(self, verdict: Verdict) -> None:
        """Forget a verdict, also in the counts."""
        count(self.counts, [verdict], -1)
        del self._verdicts[verdict.id]
        # If the id comes again, its new verdict must outlive the old segment.
        for _, names in self._segments:
            if verdict.id in names:
                names.remove(verdict.id)
