"""Documents that were prepared for a decision, one behind the other, so that hardly one is prepared twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup.vector.measuring import Measurer
from neardup.vector.prepared import Prepared
from neardup.vector.records import Records
from neardup.vector.rows import Rows

Integers = npt.NDArray[np.int64]

#: What is remembered at most: documents, and characters of their texts; some 40 MB. Then it begins anew.
DOCUMENTS, CHARACTERS = 4096, 1 << 22
_FEWEST = 64


class _Growing:
    """An array to which values are added at the end."""

    def __init__(self, kind: Any) -> None:
        self._room = np.empty(_FEWEST, kind)
        self._used = 0

    def add(self, values: npt.NDArray[Any]) -> None:
        needed = self._used + len(values)
        if needed > len(self._room):
            room = np.empty(max(needed, 2 * len(self._room)), self._room.dtype)
            room[: self._used] = self._room[: self._used]
            self._room = room
        self._room[self._used : needed] = values
        self._used = needed

    @property
    def values(self) -> npt.NDArray[Any]:
        return self._room[: self._used]


class _GrowingRows:
    """Rows of features to which documents are added at the end."""

    def __init__(self) -> None:
        self._heads, self._features, self._weights = _Growing(np.int64), _Growing(np.uint64), _Growing(np.int64)
        self._sums, self._squares = _Growing(np.int64), _Growing(np.int64)
        self._heads.add(np.zeros(1, np.int64))

    def add(self, rows: Rows) -> None:
        self._heads.add(rows.heads[1:] + self._heads.values[-1])
        self._features.add(rows.features)
        self._weights.add(rows.weights)
        self._sums.add(rows.sums)
        self._squares.add(rows.squares)

    @property
    def values(self) -> Rows:
        grown = self._heads, self._features, self._weights, self._sums, self._squares
        return Rows(*(each.values for each in grown))


class Pool:
    """Prepared documents by number.

    Parameters
    ----------
    measurer : Measurer
        It prepares them; its vector takes no embeddings.
    """

    def __init__(self, measurer: Measurer) -> None:
        self._measurer = measurer
        self._clear()

    def _clear(self) -> None:
        self._places: dict[int, int] = {}
        self._rows: dict[str, _GrowingRows] = {}
        self._texts: list[str] = []
        self._times = _Growing(np.int64)
        self._characters = 0

    def __contains__(self, serial: object) -> bool:
        return serial in self._places

    def __len__(self) -> int:
        return len(self._texts)

    def make_room(self, serials: Sequence[int]) -> None:
        """Forget all, if there is no room for more; documents that are asked for now come in all together."""
        if len(self._texts) + len(serials) > DOCUMENTS or self._characters > CHARACTERS:
            self._clear()

    def add(self, serials: Sequence[int], records: Records) -> None:
        """Prepare documents and remember them; one without a number, -1, for as long as nothing else is added."""
        first = len(self._texts)
        prepared = self._measurer.prepare(records)
        for name, rows in prepared.rows.items():
            self._rows.setdefault(name, _GrowingRows()).add(rows)
        if records.times is not None:
            self._times.add(records.times)
        self._texts += records.texts
        self._characters += sum(map(len, records.texts))
        self._places |= {serial: first + i for i, serial in enumerate(serials)}

    def prepared(self) -> Prepared:
        """Return all documents as the measurer takes them."""
        rows = {name: rows.values for name, rows in self._rows.items()}
        return Prepared(len(self._texts), rows, self._texts, self._times.values, None)

    def places(self, serials: Sequence[int]) -> Integers:
        """Return where documents lie."""
        return np.array([self._places[serial] for serial in serials], np.int64)

    def forget_from(self, serial: int) -> None:
        """Forget documents from a number on: others will have these numbers."""
        self._places = {known: place for known, place in self._places.items() if known < serial}
