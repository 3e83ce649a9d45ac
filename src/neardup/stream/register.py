"""What an index knows of documents by their ids: those it holds, and the verdicts that no store keeps."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from neardup.classifier.domain import DomainCounts
from neardup.stream.document import COUNTS, Verdict, count
from neardup.stream.parts import Record


class IndexStatistics(NamedTuple):
    """What an index has seen and holds."""

    #: Documents with verdicts.
    arrived: int
    originals: int
    duplicates: int
    held: int  #: documents in the window; those of its oldest segment leave together
    bytes: int  #: memory of the window's segments and tables
    segments: int  #: parts of the window, a 24th of it each, that hold something
    #: The flow's clock in seconds since 1970; None before the first document, and where time is counted in documents.
    clock: float | None
    #: Documents with each flag.
    late: int
    ahead: int
    future: int
    undecidable: int
    #: How many pairs a classifier judged, how many of them are unlike its training pairs, and how many passed; all 0
    #: where none judges, or it does not know what it was trained on.
    asked: DomainCounts = DomainCounts()


class DocumentRegister:
    """Ids and numbers of what the window holds, and records where they are needed."""

    def __init__(self) -> None:
        self.serials: dict[str, int] = {}  #: the number of each held document by id
        self._names: dict[int, str] = {}
        self._records: dict[int, Record] = {}

    def __len__(self) -> int:
        return len(self.serials)

    def __iter__(self) -> Iterator[str]:
        return iter([self._names[serial] for serial in sorted(self._names)])

    def name(self, serial: int) -> str | None:
        """Return the id of a held document, None if it is not held."""
        return self._names.get(serial)

    def record(self, serial: int) -> Record | None:
        """Return what a second step goes by of a held document, None where that is not kept."""
        return self._records.get(serial)

    @property
    def first(self) -> int | None:
        """The smallest number that is held, None if there is none."""
        # Numbers are entered in their order, and a dictionary keeps it.
        return next(iter(self._names), None)

    def add(self, serial: int, name: str, record: Record | None) -> None:
        """Note that the window holds a document; record: what a second step goes by, where there is one."""
        self.serials[name] = serial
        self._names[serial] = name
        if record is not None:
            self._records[serial] = record

    def remove(self, serials: Iterable[int]) -> None:
        """Note that the window no longer holds documents."""
        for serial in serials:
            name = self._names.pop(serial, None)
            if name is not None:
                del self.serials[name]
            self._records.pop(serial, None)


class RecentVerdicts:
    """The verdicts of an index without a store, as long as its window, and the counts of all that were given."""

    def __init__(self, held: Container[str]) -> None:
        self.counts = dict.fromkeys(COUNTS, 0)
        self._held = held
        # Plain tuples: a million records would be gone through whenever Python looks for garbage.
        self._verdicts: dict[str, tuple[Any, ...]] = {}
        self._segments: deque[tuple[int, list[str]]] = deque()

    def verdict_of(self, name: str) -> Verdict | None:
        """Return the verdict on the document of that id, None if there is none any more."""
        found = self._verdicts.get(name)
        return None if found is None else Verdict(*found)

    def judged_ids(self, names: Sequence[str]) -> set[str]:
        """Return which of the ids have verdicts."""
        return self._verdicts.keys() & set(names)

    def add(self, verdicts: Sequence[Verdict], segments: Sequence[int], oldest: int) -> None:
        """Keep verdicts by their segments, and forget those of segments before the oldest, but of what is still held.

        A document that was ahead is held long after its segment if a second one confirms it.
        """
        count(self.counts, verdicts)
        for verdict, segment in zip(verdicts, segments, strict=True):
            self._verdicts[verdict.id] = tuple(verdict)
            if not self._segments or self._segments[-1][0] != segment:
                self._segments.append((segment, []))
            self._segments[-1][1].append(verdict.id)
        while len(self._segments) > 1 and self._segments[0][0] < oldest:
            for name in self._segments.popleft()[1]:
                if name in self._held:
                    self._segments[-1][1].append(name)
                else:
                    self._verdicts.pop(name, None)

    def replace(self, gone: Verdict, now: Verdict) -> None:
        """Put a verdict in the place of another on the same document."""
        count(self.counts, [gone], -1)
        count(self.counts, [now])
        self._verdicts[now.id] = tuple(now)

    def forget(self, verdict: Verdict) -> None:
        """Forget a verdict, and that it was counted."""
        count(self.counts, [verdict], -1)
        del self._verdicts[verdict.id]
        # Should the id come again, it is forgotten with its new segment only.
        for _, names in self._segments:
            if verdict.id in names:
                names.remove(verdict.id)
