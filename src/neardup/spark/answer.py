"""What a run on files found, brought back to this machine: the tables and files that the engine in memory gives."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.documents import REPEATED_ID, Corpus
from neardup.pairs import Names, Pairs
from neardup.spark.faults import told_by_spark
from neardup.spark.found import Found
from neardup.spark.inputs import Read


class Answer:
    """What a run found. Only documents that match another one are held here, and a bit for each row.

    Attributes
    ----------
    summary : dict
        Counts, stages, recipe and versions, ready for JSON.
    pairs : Pairs
        All pairs at or above the threshold.
    """

    def __init__(self, corpus: Corpus, read: Read, found: Found, details: dict[str, Any]) -> None:
        self._corpus, self._details = corpus, details
        self._found_summary, began = found.summary, time.perf_counter()
        with told_by_spark():
            repeated = _column(found.repeated.toArrow(), "row")
            company = found.company.toArrow()
            verdicts = found.verdicts.toArrow()
            edges = found.edges.select("left", "right", "similarity").toArrow()
        away = read.raw(np.sort(repeated))
        corpus.set_aside_rows(away, REPEATED_ID)
        company = company.sort_by("row")
        verdicts = verdicts.sort_by("row")
        rows = _column(company, "row")
        ids = None
        if corpus.id_column:
            ids = company["id"].combine_chunks().cast(pa.int64() if read.numbers else pa.large_string())
        self._names = Names(read.raw(rows), ids)
        nodes, places = np.unique(_column(company, "node"), return_inverse=True)
        # Of equal documents the first stands for all.
        firsts = np.full(len(nodes), len(rows), np.int64)
        np.minimum.at(firsts, places, np.arange(len(rows)))
        ends = [firsts[np.searchsorted(nodes, _column(edges, name))] for name in ("left", "right")]
        left, right = np.minimum(*ends), np.maximum(*ends)
        order = np.lexsort((right, left))
        similarity = _column(edges, "similarity")[order]
        self.pairs = Pairs(self._names, firsts[places], left[order], right[order], similarity)
        self._keeper = np.searchsorted(rows, _column(verdicts, "keeper"))
        self._similarity, self._family = _column(verdicts, "similarity"), _column(verdicts, "family")
        self._goes = np.flatnonzero(self._keeper != np.arange(len(rows)))
        stays = ~read.bad
        stays[away] = False
        stays[self._names.rows[self._goes]] = False
        self._stays = stays
        self._stages = [{"name": "collect", "wall_s": round(time.perf_counter() - began, 3)}]

    @property
    def summary(self) -> dict[str, Any]:
        """Counts, stages, recipe and versions, ready for JSON."""
        found = dict(self._found_summary)
        stages = [*found.pop("stages"), *self._stages]
        return found | {"set_aside": dict(self._corpus.set_aside.counts), "stages": stages} | self._details

    def duplicates(self) -> pa.Table:
        """Return a table of the dropped documents: dropped, keeper (ids), similarity, family."""
        at = self._goes
        return pa.table(
            {
                "dropped": self._names.of(at),
                "keeper": self._names.of(self._keeper[at]),
                "similarity": pa.array(self._similarity[at]),
                "family": pa.array(self._family[at]),
            }
        )

    def write(self, output: str, *, force: bool = False, progress: Callable[[int], None] | None = None) -> None:
        """Write the documents that stay, with all columns, to a file whose name says the format."""
        began = time.perf_counter()
        self._corpus.copy(self._stays, output, force=force, progress=progress)
        self._stages.append({"name": "write", "wall_s": round(time.perf_counter() - began, 3)})


def _column(table: pa.Table, name: str) -> Any:
    return table[name].to_numpy()
