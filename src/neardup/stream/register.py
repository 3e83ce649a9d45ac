"""What an index knows of documents by their ids: those it holds, and the verdicts that no store keeps."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from neardup.classifier.domain import DomainCounts
from neardup.stream.document import Verdict
from neardup.stream.parts import Record

FLAGS = ("late", "ahead", "future", "undecidable")


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


class Register:
    """Ids and numbers of what the window holds, records and verdicts where they are needed, and counts."""

    def __init__(self, *, keeps_verdicts: bool) -> None:
        self._keeps_verdicts = keeps_verdicts
        self.serials: dict[str, int] = {}  #: the number of each held document by id
        self.counts = dict.fromkeys(("arrived", "originals", "duplicates", *FLAGS), 0)  #: as in ``IndexStatistics``
        self._names: dict[int, str] = {}
        self._records: dict[int, Record] = {}
        self._verdicts: dict[str, Verdict] = {}
        self._segments: deque[tuple[int, list[str]]] = deque()

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

    def verdict(self, name: str) -> Verdict | None:
        """Return the verdict on a document, None where none is kept."""
        return self._verdicts.get(name)

    def known(self, names: Sequence[str]) -> set[str]:
        """Return which of the ids have verdicts here."""
        return self._verdicts.keys() & set(names)

    @property
    def first(self) -> int | None:
        """The smallest number that is held, None if there is none."""
        # Numbers are entered in their order, and a dictionary keeps it.
        return next(iter(self._names), None)

    def hold(self, serial: int, name: str, record: Record | None) -> None:
        """Note that the window holds a document; record: what a second step goes by, where there is one."""
        self.serials[name] = serial
        self._names[serial] = name
        if record is not None:
            self._records[serial] = record

    def let_go(self, serials: Iterable[int]) -> None:
        """Note that the window no longer holds documents."""
        for serial in serials:
            name = self._names.pop(serial, None)
            if name is not None:
                del self.serials[name]
            self._records.pop(serial, None)

    def count(self, verdicts: Iterable[Verdict]) -> None:
        """Count verdicts."""
        for verdict in verdicts:
            self.counts["arrived"] += 1
            self.counts["duplicates" if verdict.is_duplicate else "originals"] += 1
            if verdict.flag:
                self.counts[verdict.flag] += 1

    def release(self, verdict: Verdict) -> None:
        """Count a duplicate as the original that it is from now on."""
        self.counts["originals"] += 1
        self.counts["duplicates"] -= 1
        if self._keeps_verdicts:
            self._verdicts[verdict.id] = verdict

    def forget(self, verdict: Verdict) -> None:
        """Forget a verdict, and that it was counted."""
        self.counts["arrived"] -= 1
        self.counts["duplicates" if verdict.is_duplicate else "originals"] -= 1
        if verdict.flag:
            self.counts[verdict.flag] -= 1
        if self._verdicts.pop(verdict.id, None) is not None:
            # Should the id come again, it is forgotten with its new segment only.
            for _, names in self._segments:
                if verdict.id in names:
                    names.remove(verdict.id)

    def count_as(self, counts: Mapping[str, int]) -> None:
        """Take over counts, as from a store."""
        self.counts |= counts

    def remember(self, verdicts: Sequence[Verdict], segments: Sequence[int], oldest: int) -> None:
        """Keep verdicts by their segments, and forget those of segments before the oldest, but of what is still held.

        A document that was ahead is held long after its segment if a second one confirms it.
        """
        if not self._keeps_verdicts:
            return
        for verdict, segment in zip(verdicts, segments, strict=True):
            self._verdicts[verdict.id] = verdict
            if not self._segments or self._segments[-1][0] != segment:
                self._segments.append((segment, []))
            self._segments[-1][1].append(verdict.id)
        while len(self._segments) > 1 and self._segments[0][0] < oldest:
            for name in self._segments.popleft()[1]:
                if name in self.serials:
                    self._segments[-1][1].append(name)
                else:
                    self._verdicts.pop(name, None)
