"""What a replay's report is made of: each verdict in a few numbers, taken while the replay runs."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.flow.document import Verdict
from neardup.pairs import Names
from neardup.replay.order import Item, Timeline
from neardup.reporting.flow import NO_TIME, ORIGINAL, Flow

Integers = npt.NDArray[np.int64]

_AT_ONCE = 1 << 16


class Arrived:
    """Takes verdicts, about 40 bytes of each and 100 more of a duplicate, and makes a flow of them."""

    def __init__(self) -> None:
        self._rows, self._times = array("q"), array("q")
        self._duplicates, self._similarity = array("q"), array("d")
        self._exact = bytearray()
        self._counts = array("q")
        self._learned: dict[int, str] = {}
        self._recent: list[str] = []
        self._of: list[pa.Array] = []

    def see(self, items: Sequence[Item], verdicts: Sequence[Verdict]) -> None:
        """Take the verdicts of some documents."""
        for item, verdict in zip(items, verdicts, strict=True):
            place = len(self._rows)
            self._rows.append(item.row)
            self._times.append(item.time)
            if verdict.of is None:
                continue
            self._duplicates.append(place)
            self._similarity.append(verdict.similarity or 0.0)
            self._exact.append(verdict.kind == "exact")
            self._counts.extend(verdict.counts or (-1, -1, -1))
            self._recent.append(verdict.of)
            if verdict.g is not None:
                self._learned[place] = verdict.evidence
        if len(self._recent) >= _AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        self._of.append(pa.array(self._recent, pa.large_string()))
        self._recent = []

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> Integers:
        """The rows of the items in the corpus, in order of arrival."""
        return np.array(self._rows, np.int64)

    @property
    def learned(self) -> Mapping[int, str]:
        """What pushed a learned decision, in a few words, by the numbers of duplicates in order of arrival."""
        return self._learned

    def counts(self, number: int) -> tuple[int, int, int] | None:
        """Return o, a and b behind a duplicate's similarity, by its number in order of arrival; None without any."""
        at = bisect_left(self._duplicates, number)
        if at == len(self._duplicates) or self._duplicates[at] != number:
            return None
        o, a, b = self._counts[3 * at : 3 * at + 3]
        return None if o < 0 else (o, a, b)

    def flow(self, timeline: Timeline) -> Flow:
        """Return all that arrived.

        Parameters
        ----------
        timeline : Timeline
            Of the corpus that was replayed.
        """
        self._flush()
        names = Names(timeline.rows, timeline.ids)
        arrived = _array(names.of(np.searchsorted(timeline.rows, self.rows)).cast(pa.large_string()))
        named = pa.chunked_array(self._of, pa.large_string())
        # What a store held before is named, and nothing else is known of it.
        older = _array(pc.unique(named.filter(pc.invert(pc.is_in(named, value_set=arrived)))))
        ids, before = pa.concat_arrays([older, arrived]), len(older)
        count, places = before + len(self._rows), before + np.array(self._duplicates, np.int64)
        of = np.full(count, ORIGINAL, np.int64)
        of[places] = pc.index_in(named, value_set=ids).to_numpy().astype(np.int64)
        similarity, exact = np.zeros(count), np.zeros(count, np.bool_)
        similarity[places] = np.array(self._similarity)
        exact[places] = np.frombuffer(self._exact, np.bool_) if self._exact else False
        o, a, b = np.array(self._counts, np.int64).reshape(-1, 3).T
        equal = exact.copy()
        equal[places] |= (o == a) & (a == b) & (o >= 0)
        times = np.concatenate([np.full(before, NO_TIME, np.int64), np.array(self._times, np.int64)])
        return Flow(ids=ids, times=times, of=of, similarity=similarity, exact=exact, equal=equal, before=before)


def _array(values: Any) -> Any:
    """Return values as one Arrow array."""
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
