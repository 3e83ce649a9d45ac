"""The pairs of a result: stored as pairs of representatives, expanded to pairs of documents on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.documents.records import Names
from neardup.documents.tables import Table
from neardup.keep.keepers import Graph, build_graph, document_pair_counts
from neardup.kernels import Floats, Integers
from neardup.kernels.graph import expand_pairs

#: The first capacity for pairs.
_CAPACITY = 1 << 18
#: In place of a pair: the two documents have equal features, or they do not match.
EQUAL, APART = -1, -2
#: Values that replace similarities to number pairs: for equal documents, and for the first pair of representatives.
_EQUAL, _FIRST_EDGE = 1.0, 2.0


class Pair(NamedTuple):
    """Two documents and their similarity."""

    left: Any
    right: Any
    similarity: float

    @property
    def right_from(self) -> str:
        """Whether the right document is of the ``input`` or of the ``reference``."""
        return "input"


class ReferencePair(Pair):
    """A pair whose right document is of the reference."""

    right_from = "reference"


class PairArrays(NamedTuple):
    """Pairs of documents by position, int64[k] each, left < right, sorted; and their similarities, float64[k]."""

    left: Integers
    right: Integers
    similarity: Floats


class PairEdges(NamedTuple):
    """Pairs of documents by position, and the place of their pair of representatives; -1 for equal documents."""

    left: Integers
    right: Integers
    edge: Integers


class Pairs(Table):
    """All pairs at or above the threshold, sorted by the positions of left and right, left before right.

    Iteration yields a ``Pair`` with the ids of the documents at a time. A group of m equal documents has m (m - 1) / 2
    pairs, which are counted at once but only expanded when they are read.
    """

    def __init__(
        self,
        names: Names,
        representative: Integers,
        left: Integers,
        right: Integers,
        similarity: Floats,
        evidence: Callable[[Integers, bool], dict[str, pa.Array]] | None = None,
    ) -> None:
        """Store pairs of representatives; ``evidence(edges, full)`` returns further columns for pairs.

        ``representative``: int64[n], for each document the first with equal features; -1 if it can match nothing.
        """
        self.names = names
        self.representative, self._evidence = representative, evidence
        self.left, self.right, self.similarity = left, right, similarity
        able = np.flatnonzero(representative >= 0)
        order = able[np.argsort(representative[able], kind="stable")]
        copies = np.bincount(representative[able], minlength=len(representative)).astype(np.int64)
        self._members = np.concatenate([[0], np.cumsum(copies)]).astype(np.int64), order
        self._count = sum(
            int(part.sum()) for part in document_pair_counts(representative, left, right, names.reference_count)
        )

    def __len__(self) -> int:
        return self._count

    @property
    def graph(self) -> Graph:
        """The pairs of representatives as a graph."""
        return build_graph(len(self.representative), self.left, self.right, self.similarity)

    def arrays(self) -> Iterator[PairArrays]:
        """Yield the pairs by position, in order, in batches of some hundred thousand."""
        return self._expand(self.graph)

    def edges(self) -> Iterator[PairEdges]:
        """Yield the pairs by position, with the places of their pairs of representatives in ``left`` and ``right``."""
        numbers = np.arange(len(self.left), dtype=np.float64) + _FIRST_EDGE
        for part in self._expand(build_graph(len(self.representative), self.left, self.right, numbers)):
            edge = np.where(part.similarity == _EQUAL, -1, (part.similarity - _FIRST_EDGE).astype(np.int64))
            yield PairEdges(part.left, part.right, edge)

    def edge_of(self, left: Integers, right: Integers) -> Integers:
        """Return the places in ``left`` and ``right`` of pairs given by position: EQUAL for equal ones, or APART."""
        first, second = self.representative[left], self.representative[right]
        count = len(self.representative)
        keys = self.left * count + self.right
        queries = np.minimum(first, second) * count + np.maximum(first, second)
        places = np.searchsorted(keys, queries)
        found = np.zeros(len(queries), np.bool_)
        inside = places < len(keys)
        found[inside] = keys[places[inside]] == queries[inside]
        valid = (first >= 0) & (second >= 0)
        return np.where(valid & (first == second), EQUAL, np.where(valid & found, places, APART))

    def _expand(self, rows: Graph) -> Iterator[PairArrays]:
        # A reference comes last, and the later document is on the right: so the left one is of the input.
        at, capacity, input_count = 0, _CAPACITY, self.names.input_count
        while at < input_count:
            out, similarity = np.empty((capacity, 2), np.int64), np.empty(capacity)
            before = at
            at, written = expand_pairs(
                at, input_count, self.representative, self._members, tuple(rows), out, similarity
            )
            if at == before and written == 0:
                capacity *= 2
            elif written:
                yield PairArrays(out[:written, 0], out[:written, 1], similarity[:written])

    def chunks(self, *, full: bool = False) -> Iterator[pa.Table]:
        """Yield tables of left, right (ids) and similarity, in order.

        For a run against a reference, ``right_from`` says whether right is of the ``input`` or of the ``reference``;
        left is always of the input. If a classifier decided, its score and contributions follow
        (``EvidenceTable.columns``).

        Parameters
        ----------
        full : bool
            Whether the contributions include all details of each measure.
        """
        similarity = np.append(self.similarity, 1.0)
        for part in self.edges():
            columns = {
                "left": self.names.of_input(part.left),
                "right": self.names.take(part.right),
                "similarity": pa.array(similarity[part.edge]),
            }
            if self.names.reference_names is not None:
                columns["right_from"] = self.names.side_of(part.right)
            yield pa.table(columns | (self._evidence(part.edge, full) if self._evidence else {}))

    def to_arrow(self) -> pa.Table:
        """Return all pairs as one table with the columns of ``chunks``."""
        chunks = list(self.chunks())
        return pa.concat_tables(chunks) if chunks else self.schema().empty_table()

    def schema(self, *, full: bool = False) -> pa.Schema:
        """Return the schema of the tables."""
        none = np.zeros(0, np.int64)
        evidence = self._evidence(none, full) if self._evidence else {}
        kinds = {
            "left": self.names.of_input(none).type,
            "right": self.names.take(none).type,
            "similarity": pa.float64(),
        }
        if self.names.reference_names is not None:
            kinds["right_from"] = pa.string()
        return pa.schema(kinds | {name: column.type for name, column in evidence.items()})

    def __iter__(self) -> Iterator[Pair]:
        for part in self.arrays():
            for left, right, similarity in zip(*part, strict=True):
                yield self.pair(left, right, similarity)

    def pair(self, left: int, right: int, similarity: float) -> Pair:
        """Return two documents by position as a pair."""
        kind = Pair if right < self.names.input_count else ReferencePair
        return kind(self.names.name_at(left), self.names.name_at(right), float(similarity))

    def __repr__(self) -> str:
        return f"<{len(self):,} pairs>"
