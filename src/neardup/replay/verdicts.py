"""Verdicts as rows of a table, written while the replay runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.decision.evidence import EQUAL_TEXTS
from neardup.documents import Writer
from neardup.flow.document import Verdict
from neardup.replay.order import Item

_COLUMNS = {
    "id": pa.large_string(),
    "kind": pa.large_string(),
    "of": pa.large_string(),
    "similarity": pa.float64(),
    "time": pa.timestamp("us", "UTC"),
    "flag": pa.large_string(),
}
#: A row for each document, in the order of arrival. ``shared`` features of ``size`` and of ``size_of``, the size of the
#: document that it repeats, make the similarity.
SCHEMA = pa.schema(_COLUMNS | {"shared": pa.int64(), "size": pa.int64(), "size_of": pa.int64()})
#: The same for a learned decision: what it makes of the two, and the measures that pushed it most.
LEARNED = pa.schema(_COLUMNS | {"g": pa.float64(), "evidence": pa.large_string()})
_AT_ONCE = 4096


class Notes:
    """Writes down each verdict, and remembers which rows of the corpus are originals.

    Parameters
    ----------
    writer : Writer or None
        Of tables with that schema.
    schema : pyarrow.Schema
        SCHEMA or LEARNED.
    """

    def __init__(self, writer: Writer | None, schema: pa.Schema = SCHEMA) -> None:
        self._writer, self._schema = writer, schema
        self._rows: list[tuple[Any, ...]] = []
        self._originals: list[npt.NDArray[np.int64]] = []
        self._recent: list[int] = []

    def see(self, items: Sequence[Item], verdicts: Sequence[Verdict]) -> None:
        """Take the verdicts of some documents."""
        for item, verdict in zip(items, verdicts, strict=True):
            if not verdict.is_duplicate:
                self._recent.append(item.row)
            if self._writer is not None:
                self._rows.append(_row(verdict, learned=self._schema is LEARNED))
        if len(self._rows) >= _AT_ONCE or len(self._recent) >= _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write what has not been written yet."""
        if self._writer is not None and self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
            self._writer.write(pa.table(arrays, schema=self._schema))
        self._originals.append(np.array(self._recent, np.int64))
        self._rows, self._recent = [], []

    def originals(self, raw_rows: int) -> npt.NDArray[np.bool_]:
        """Return for each row of the corpus whether it was judged an original."""
        self.flush()
        found = np.zeros(raw_rows, np.bool_)
        found[np.concatenate(self._originals)] = True
        return found


def _row(verdict: Verdict, *, learned: bool) -> tuple[Any, ...]:
    behind: tuple[Any, ...] = verdict.counts or (None, None, None)
    if learned:
        behind = verdict.g, EQUAL_TEXTS if verdict.kind == "exact" else verdict.evidence
    moment = round(verdict.time * 1e6)
    return verdict.id, verdict.kind, verdict.of, verdict.similarity, moment, verdict.flag, *behind
