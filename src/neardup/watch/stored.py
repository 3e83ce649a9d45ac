"""A watcher's store as a flow: what arrived last, what it repeats, and the texts that are still there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.content.step import content_of
from neardup.flow.document import Verdict
from neardup.flow.reader import StoreReader
from neardup.flow.rows import Stored
from neardup.reporting.changes import named
from neardup.reporting.flow import ELSEWHERE, ORIGINAL, Flow, Integers
from neardup.sidebyside.shown import Shown
from neardup.watch.delivered import Delivered
from neardup.watch.names import file_of, shown

#: Characters in which a first line is looked for that may be a title, and those that are read for a list.
_TITLE, _BEGINNING = 160, 400


class StoredFlow:
    """The items that a store knows, as a report shows them.

    Parameters
    ----------
    reader : StoreReader
        The store.
    delivered : Delivered
        Where items were put.
    content : str
        What of a text is compared, as in the recipe.
    most : int
        So many of the latest items are reported.

    Attributes
    ----------
    flow : Flow
        They, and before them the originals from before that they repeat.
    """

    def __init__(self, reader: StoreReader, delivered: Delivered, content: str, most: int) -> None:
        self._reader, self._delivered, self._content = reader, delivered, content
        rows = reader.last(most)
        first = rows[0].serial if rows else 0
        known = {row.id for row in rows}
        wanted = dict.fromkeys(row.verdict.of for row in rows if row.verdict.of is not None)
        found = (reader.find(name, text=False) for name in wanted if name not in known)
        older = sorted((one for one in found if one is not None and one.serial < first), key=lambda one: one.serial)
        self._rows = [*older, *rows]
        self.flow = _flow_of(self._rows, len(older))

    def row(self, place: int) -> Stored:
        """Return what the store holds of an item, without its text."""
        return self._rows[place]

    def texts(self, places: Sequence[int]) -> dict[int, Shown]:
        """Return the texts of items that the window holds, and of others that lie where they were put."""
        found = {}
        for place in places:
            text = self._text(self._rows[place])
            if text is not None:
                found[place] = self._shown(place, text)
        return found

    def _text(self, row: Stored) -> str | None:
        held = self._reader.find(row.id, text=True)
        if held is not None and held.text is not None:
            return content_of(held.text, self._content)
        item = self._delivered.item(row.id, row.origin, is_duplicate=row.verdict.is_duplicate)
        return None if item is None else content_of(item.text, self._content)

    def _shown(self, place: int, text: str) -> Shown:
        head, feed, _ = text[: _TITLE + 1].partition("\n")
        return Shown(self._rows[place].id, head.strip() if feed else "", text)

    def titles(self, places: Sequence[int]) -> dict[int, str]:
        """Return the titles that learned decisions go by, of held items."""
        found = {}
        for place in places:
            held = self._reader.find(self._rows[place].id, text=True)
            if held is not None and held.title:
                found[place] = held.title
        return found

    def words(self, places: Integers) -> dict[int, str]:
        """Return how the texts of duplicates begin, or of what they repeat: of those that the window holds."""
        of = self.flow.of
        own = [self._rows[place].serial for place in places.tolist()]
        others = [self._rows[of[place]].serial if of[place] >= 0 else -1 for place in places.tolist()]
        begin = self._reader.beginnings(sorted({*own, *others}), _BEGINNING)
        found = {}
        for place, serial, other in zip(places.tolist(), own, others, strict=True):
            text = begin.get(serial) or begin.get(other)
            if text:
                found[place] = named(Shown("", "", text))
        return found


def _flow_of(rows: Sequence[Stored], before: int) -> Flow:
    place = {row.id: at for at, row in enumerate(rows)}
    of = np.full(len(rows), ORIGINAL, np.int64)
    elsewhere: dict[int, str] = {}
    for at, row in enumerate(rows):
        name = row.verdict.of
        if name is None:
            continue
        other = place.get(name, ELSEWHERE) if at >= before else ELSEWHERE
        of[at] = other if other < at else ELSEWHERE
        if of[at] == ELSEWHERE:
            elsewhere[at] = name
    return Flow(
        ids=pa.array([row.id for row in rows], pa.large_string()),
        times=np.array([round(row.verdict.time * 1e6) for row in rows], np.int64),
        of=of,
        similarity=np.array([row.verdict.similarity or 0.0 for row in rows], np.float64),
        exact=np.array([row.verdict.kind == "exact" for row in rows], np.bool_),
        equal=np.array([_has_equal_features(row.verdict) for row in rows], np.bool_),
        before=before,
        sources=_sources(rows),
        elsewhere=elsewhere,
    )


def _has_equal_features(verdict: Verdict) -> bool:
    return verdict.kind == "exact" or (verdict.counts is not None and len(set(verdict.counts)) == 1)


def _sources(rows: Sequence[Stored]) -> Any:
    """Return the folders of the inbox that items came in: the first part of their paths; empty for itself."""
    known: dict[str, str] = {}

    def of(origin: str) -> str:
        if origin not in known:
            try:
                folder, slash, _ = shown(file_of(origin)[0]).partition("/")
            except (ValueError, TypeError):
                folder, slash = "", ""
            known[origin] = folder if slash else ""
        return known[origin]

    return pa.array([of(row.origin) for row in rows], pa.large_string())


def flags_of(counts: Mapping[str, int]) -> str:
    """Return how many verdicts have each flag, in words; empty where none has one."""
    names = ("late", "ahead", "future", "undecidable")
    return ", ".join(f"{counts[name]:,} {name}" for name in names if counts.get(name))
