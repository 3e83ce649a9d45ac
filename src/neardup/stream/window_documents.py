"""The documents of a window by id, and the verdicts of an index without a store."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from neardup.stream.document import COUNTS, Verdict, count
from neardup.stream.store import JudgedDocument
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
        # Plain tuples, since the garbage collector would visit a million records again and again: a verdict, the
        # digest of the text, and the last segment in which the document came.
        self._verdicts: dict[str, tuple[tuple[Any, ...], bytes, int]] = {}
        self._segments: deque[tuple[int, list[str]]] = deque()
        self._ids: dict[bytes, str] = {}  #: of the first document with each text, by its digest

    def verdict_of(self, name: str) -> Verdict | None:
        """Return the verdict on a document, None if it is no longer kept."""
        found = self._verdicts.get(name)
        return None if found is None else Verdict(*found[0])

    def judged_ids(self, names: Sequence[str]) -> set[str]:
        """Return which of some ids have verdicts."""
        return self._verdicts.keys() & set(names)

    def judged_documents(self, names: Sequence[str]) -> dict[str, JudgedDocument]:
        """Return the judged documents among some ids."""
        found = {name: self._verdicts[name] for name in self.judged_ids(names)}
        return {name: JudgedDocument(Verdict(*verdict), digest) for name, (verdict, digest, _) in found.items()}

    def equal_texts(self, digest: bytes) -> list[JudgedDocument]:
        """Return the first document with a text of that digest, if it is still kept."""
        name = self._ids.get(digest)
        return [] if name is None else [self.judged_documents([name])[name]]

    def renew(self, name: str) -> None:
        """Keep a verdict as if its document had come now, because it came again."""
        verdict, digest, last = self._verdicts[name]
        if self._segments and self._segments[-1][0] != last:
            self._verdicts[name] = verdict, digest, self._segments[-1][0]
            self._segments[-1][1].append(name)

    def add(self, verdicts: Sequence[Verdict], digests: Sequence[bytes], segments: Sequence[int], oldest: int) -> None:
        """Add verdicts by segment, and forget those of segments before the oldest unless the document is in the window.

        A confirmed document that was ahead stays in the window long after its segment.
        """
        count(self.counts, verdicts)
        for verdict, digest, segment in zip(verdicts, digests, segments, strict=True):
            self._verdicts[verdict.id] = tuple(verdict), digest, segment
            self._ids.setdefault(digest, verdict.id)
            if not self._segments or self._segments[-1][0] != segment:
                self._segments.append((segment, []))
            self._segments[-1][1].append(verdict.id)
        while len(self._segments) > 1 and self._segments[0][0] < oldest:
            segment, names = self._segments.popleft()
            for name in names:
                if name in self._window_ids:
                    self._segments[-1][1].append(name)
                elif name in self._verdicts and self._verdicts[name][2] <= segment:
                    self._drop(name)

    def replace(self, old: Verdict, new: Verdict) -> None:
        """Replace the verdict on a document."""
        count(self.counts, [old], -1)
        count(self.counts, [new])
        _, digest, segment = self._verdicts[new.id]
        self._verdicts[new.id] = tuple(new), digest, segment

    def forget(self, verdict: Verdict) -> None:
        """Forget a verdict, also in the counts."""
        count(self.counts, [verdict], -1)
        self._drop(verdict.id)
        # If the id comes again, its new verdict must outlive the old segment.
        for _, names in self._segments:
            while verdict.id in names:
                names.remove(verdict.id)

    def _drop(self, name: str) -> None:
        _, digest, _ = self._verdicts.pop(name)
        if self._ids.get(digest) == name:
            del self._ids[digest]
