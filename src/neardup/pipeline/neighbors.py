"""The nearest neighbors of documents within a corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents import Corpus
from neardup.documents.records import Names
from neardup.documents.tables import Table
from neardup.errors import RecipeError, UnknownDocument, check_count, option
from neardup.features.reading import Progress, ignore_progress
from neardup.kernels import Integers
from neardup.pipeline.pipeline import thread_count
from neardup.pipeline.query import add_similar_ids, check_neighbor_count, counts_unit, read_vectors, unknown_id_message
from neardup.recipe import Recipe
from neardup.runtime import Clock, Stage
from neardup.search.nearest import NearestDocuments, nearest


class Neighbor(NamedTuple):
    """A document and its neighbor of some rank."""

    document: Any
    rank: int
    neighbor: Any
    similarity: float


class Neighbors(Table):
    """The nearest neighbors of documents: rows of document, rank (from 1), neighbor and similarity.

    Attributes
    ----------
    documents : int
        Number of documents in the corpus.
    query_count : int
        Number of documents whose neighbors were searched. A document that shares features with fewer than k others
        has fewer rows, one without features none.
    stages : list of Stage
        Cost of each stage.
    """

    def __init__(
        self, names: Names, found: NearestDocuments, documents: int, query_count: int, stages: list[Stage]
    ) -> None:
        self._names, self._found = names, found
        self.documents, self.query_count, self.stages = documents, query_count, stages
        rows = np.arange(len(found.query))
        is_first = np.append(True, found.query[1:] != found.query[:-1])[: len(rows)]
        self._rank = rows - np.maximum.accumulate(np.where(is_first, rows, 0)) + 1

    def __len__(self) -> int:
        return len(self._rank)

    def __iter__(self) -> Iterator[Neighbor]:
        columns = (column.to_pylist() for column in self.to_arrow().columns)
        return map(Neighbor, *columns)

    def to_arrow(self) -> pa.Table:
        """Return a table of document, rank, neighbor and similarity, document by document, the most similar first."""
        return pa.table(
            {
                "document": self._names.of_input(self._found.query),
                "rank": pa.array(self._rank),
                "neighbor": self._names.of_input(self._found.document),
                "similarity": pa.array(self._found.similarity),
            }
        )

    def __repr__(self) -> str:
        return f"<{len(self):,} neighbours of {int((self._rank == 1).sum()):,} documents among {self.documents:,}>"


def find_neighbors(
    corpus: Corpus,
    recipe: Recipe,
    k: int = 3,
    *,
    of: Sequence[Any] | None = None,
    first: int | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> Neighbors:
    """Find the k documents most similar to each document, exactly, by a recipe's measure; of equal ones the first.

    Only documents that share a feature are neighbors (with ``hamming`` all are). Ids, or row numbers without ids, are
    compared as text. The memory budget applies to reading. The parameters are those of ``neardup.neighbors``.
    """
    if of is not None and first is not None:
        raise RecipeError(
            f"{option('--of')} and {option('--first')} {first} both choose documents; give one of the two"
        )
    if first is not None:
        check_count("first", first, "ask for one document at least")
    check_count("k", k, "ask for one neighbour at least")
    threads, clock, report = thread_count(threads), Clock(), progress or ignore_progress
    features, vectors = read_vectors(corpus, recipe, threads, memory, report, clock)
    documents = len(features.names) + corpus.omitted_count
    check_neighbor_count(k, documents, documents - 1)
    queries = np.arange(len(features.names))[:first] if of is None else _positions(features.names, list(map(str, of)))
    with clock.stage("neighbors"):
        nearest_documents = nearest(
            vectors,
            recipe.measure,
            queries,
            k,
            unit=counts_unit(features, recipe),
            threads=threads,
            progress=lambda done, total: report("neighbors", done, total),
        )
    return Neighbors(features.names, nearest_documents, documents, len(queries), list(clock.stages))


def _positions(names: Names, ids: list[str]) -> Integers:
    """Return the positions of ids, compared as text, each once.

    Raises ``UnknownDocument`` if there is no such document.
    """
    all_ids = pc.cast(names.of_input(np.arange(len(names))), pa.large_string())
    places = pc.index_in(pa.array(ids, pa.large_string()), value_set=all_ids).to_pylist()
    unknown_ids = [name for name, place in zip(ids, places, strict=True) if place is None]
    if unknown_ids:
        similar_ids: list[str] = []
        add_similar_ids(similar_ids, all_ids.to_pylist(), unknown_ids)
        raise UnknownDocument(unknown_id_message(unknown_ids[0], similar_ids, len(all_ids), by_row=names.ids is None))
    return np.array(list(dict.fromkeys(places)), np.int64)
