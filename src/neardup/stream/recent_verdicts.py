"""The verdicts of an index without a store: kept as long as its window."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from neardup.stream.document import COUNTS, Arrival, Verdict, count


class RecentVerdicts:
    """The verdicts of an index without a store, in place of a ``Store``.

    A verdict is kept as long as its document is in the window, and otherwise until the window has passed the time when
    its document came last; ``counts`` include all verdicts. ``window_ids`` are the ids in the window.
    """

    def __init__(self, window_ids: Container[str]) -> None:
        self.counts = dict.fromkeys(COUNTS, 0)
        self.next_serial = 0
        self._window_ids = window_ids
        # Plain tuples, since the garbage collector would visit a million records again and again: a verdict, the
        # digest of the text, and the segment in which the document came last, which comes last in order.
        self._entries: OrderedDict[str, tuple[tuple[Any, ...], bytes, int]] = OrderedDict()
        self._first_equal: dict[bytes, str] = {}  #: the first document with each text, by its digest
        #: Ids such as ``a~2`` by the id without the number, and the digest.
        self._versions: dict[tuple[str, bytes], str] = {}
        self._segment = 0

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, name: str, *, text: bool = False) -> Arrival | None:
        """Return the judged document of an id, without its text; None if its verdict is no longer kept."""
        del text
        found = self._entries.get(name)
        return None if found is None else Arrival(name, None, digest=found[1], verdict=Verdict(*found[0]))

    def judged_documents(self, names: Sequence[str]) -> dict[str, Arrival]:
        """Return the judged documents among some ids."""
        found = {name: self.find(name) for name in names}
        return {name: arrival for name, arrival in found.items() if arrival is not None}

    def judged_ids(self, names: Sequence[str]) -> set[str]:
        """Return which of some ids have verdicts."""
        return self._entries.keys() & set(names)

    def first_equal(self, digest: bytes, excluded: str) -> Arrival | None:
        """Return the first document with a text of that digest, if it is still kept; as ``Store.first_equal``."""
        name = self._first_equal.get(digest)
        return None if name is None or name == excluded else self.find(name)

    def version(self, name: str, digest: bytes) -> Arrival | None:
        """Return the version of a document with a text of that digest, if it is still kept."""
        found = self._versions.get((name, digest))
        return None if found is None else self.find(found)

    def renew(self, names: Iterable[str]) -> None:
        """Keep verdicts as if their documents had come now, because they came again."""
        for name in names:
            verdict, digest, _ = self._entries[name]
            self._entries[name] = verdict, digest, self._segment
            self._entries.move_to_end(name)

    def record(
        self,
        rows: Sequence[Arrival],
        state: Mapping[str, str] | None = None,
        *,
        removed: Arrival | None = None,
        released_by: str | None = None,
    ) -> None:
        """Keep verdicts, and forget the one on the document ``removed``, as ``Store.record`` does."""
        del state, released_by
        counts = dict(self.counts)
        if removed is not None:
            count(counts, [removed.verdict], -1)
            self._drop(removed.id)
        count(counts, [row.verdict for row in rows])
        for row in rows:
            self._segment = row.event_time.segment
            self._entries[row.id] = tuple(row.verdict), row.digest, self._segment
            self._first_equal.setdefault(row.digest, row.id)
            if base := _base(row.id):
                self._versions[base, row.digest] = row.id
        self.counts, self.next_serial = counts, self.next_serial + len(rows)

    def forget(self, serials_below: int, oldest_segment: int) -> None:
        """Forget the verdicts whose documents came last in segments before the oldest, and are not in the window."""
        del serials_below
        while self._entries:
            name, (verdict, digest, segment) = next(iter(self._entries.items()))
            if segment >= oldest_segment:
                return
            if name in self._window_ids:
                self._entries[name] = verdict, digest, oldest_segment
                self._entries.move_to_end(name)
            else:
                self._drop(name)

    def _drop(self, name: str) -> None:
        _, digest, _ = self._entries.pop(name)
        if self._first_equal.get(digest) == name:
            del self._first_equal[digest]
        if self._versions.get((_base(name), digest)) == name:
            del self._versions[_base(name), digest]


def _base(name: str) -> str:
    """Return the id of which an id is a version, empty if it cannot be one."""
    base, _, number = name.rpartition("~")
    return base if number.isdecimal() and number.isascii() else ""
