"""The documents nearest to each of some queries, exactly.

One pass over all documents lists which of them contain each feature of the queries. Each query counts shared features
through its lists, the shortest first, until no other document can be among the nearest. Whole numbers decide, so that
ties are certain; they come in input order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from neardup.errors import NeardupError, RecipeError
from neardup.features.store import Vectors
from neardup.kernels import Floats, Integers, Words
from neardup.kernels.bounds import OVERLAP
from neardup.kernels.postings import (
    COUNTS,
    MINIMA,
    PRODUCTS,
    DocumentRows,
    FeatureTable,
    InvertedLists,
    NearestHeap,
    SearchBuffers,
    find_nearest,
    find_nearest_values,
    inverted_lists,
    overlaps_with_table,
    select_nearest,
)
from neardup.kernels.tables import insert_values, number_keys, table_size
from neardup.kernels.weighted import weight_totals
from neardup.recipe.measures import measure as measure_of
from neardup.recipe.measures import reaches_threshold, similarities
from neardup.runtime import map_in_order

#: Queries per piece of work, and the minimum capacity for its rows.
_QUERIES_PER_PIECE = 64
_CAPACITY = 1 << 16
#: The number of query features whose documents are listed at a time: this minimum, or one in this many of all features.
_MIN_LISTED = 1 << 22
_LISTED_SHARE = 16
#: The sum of a document's squared weights is smaller, so that sums of products fit into 63 bits.
_MAX_SQUARE = 2.0**61
_MAX_DOCUMENTS = (1 << 31) - 1


class NearestDocuments(NamedTuple):
    """Queries and the documents nearest to them: in the order of the queries, the nearest first, ties by position.

    counts: int64[r, 3], o, a (of the query) and b (of the document); similarity: float64[r], for a distance a value
    between 0 and 1 that falls with it.
    """

    query: Integers
    document: Integers
    counts: Integers
    similarity: Floats


def nearest(
    vectors: Vectors,
    measure: str,
    queries: Integers,
    k: int,
    *,
    unit: int = 1,
    threads: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> NearestDocuments:
    """Find the k documents most similar to each query, exactly; ties in input order.

    Parameters
    ----------
    vectors : Vectors
        All documents; for ``hamming``, each has one 64-bit value or none.
    measure : str
        A measure of sets, a measure of weights if there are weights, or ``hamming``.
    queries : int64[q]
        Positions of documents; each is compared with all others.
    k : int
        Number of documents per query, at least 1. Raising it takes longer. Fewer are found if fewer share a feature
        with the query; for ``hamming``, if fewer have a value.
    unit : int
        The value of o, a and b that stands for 1 (``measures.similarities``).
    progress : callable
        Called with (queries done, total queries).

    Raises
    ------
    RecipeError
        If the measure does not fit.
    NeardupError
        If there are too many documents, or weights are too large.
    """
    queries = np.ascontiguousarray(queries, np.int64)
    if measure == "hamming":
        parts = _nearest_by_value(vectors, queries, k, threads)
    else:
        parts = _nearest_by_row(document_rows(vectors, measure), measure, queries, k, threads)
    found = [np.empty((0, 5), np.int64)]
    for part in parts:
        found.append(part)
        progress(int(part[-1, 0]) + 1 if len(part) else 0, len(queries))
    progress(len(queries), len(queries))
    rows = np.concatenate(found)
    return NearestDocuments(queries[rows[:, 0]], rows[:, 1], rows[:, 2:], similarities(measure, rows[:, 2:], unit))


def kind_of(measure: str, *, weighted: bool) -> int:
    """Return the code of what the kernels add up for a measure: shared features, minima or products."""
    compared = "weights" if weighted else "sets"
    if compared not in measure_of(measure).takes:
        raise RecipeError(f"measure {measure!r} does not compare {compared}; choose another measure")
    if not weighted:
        return COUNTS
    return MINIMA if measure == "weighted_jaccard" else PRODUCTS


def formula_code(measure: str) -> int:
    """Return the kernels' code of a measure's formula."""
    return measure_of("jaccard" if measure == "weighted_jaccard" else measure).code


def _check_document_count(vectors: Vectors) -> int:
    count = len(vectors.heads) - 1
    if count > _MAX_DOCUMENTS:
        raise NeardupError(f"{count:,} documents are more than {_MAX_DOCUMENTS:,}; split the collection")
    return count


def document_rows(vectors: Vectors, measure: str) -> DocumentRows:
    """Return the documents with their totals, as the kernels take them."""
    count = _check_document_count(vectors)
    kind = kind_of(measure, weighted=len(vectors.weights) > 0)
    totals = np.diff(vectors.heads)
    if kind != COUNTS:
        totals = np.empty(count, np.int64)
        largest = weight_totals(np.arange(count), vectors.heads, vectors.weights, kind == MINIMA, totals)
        if largest >= _MAX_SQUARE:
            raise NeardupError(
                "the squared weights of a document add up to 2**61 or more; choose weights 'idf', which take no repeats"
            )
    smallest = int(totals[totals > 0].min(initial=np.iinfo(np.int64).max >> 1))
    roots = np.sqrt(totals.astype(np.float64))
    return DocumentRows(vectors.heads, vectors.features, vectors.weights, totals, roots, smallest)


def empty_table(size: int) -> FeatureTable:
    """Return an empty table for ``size`` features."""
    slots = table_size(size)
    return FeatureTable(np.zeros(slots, np.uint64), np.zeros(slots, np.int64))


def _nearest_by_row(rows: DocumentRows, measure: str, queries: Integers, k: int, threads: int) -> Iterator[Integers]:
    """Yield rows of ``find_nearest`` for the queries in order, for as many queries at a time as memory allows lists."""
    kind = kind_of(measure, weighted=len(rows.weights) > 0)
    code = formula_code(measure)
    k = min(k, max(len(rows.totals) - 1, 1))
    sizes = np.diff(rows.heads)[queries]
    ends = np.cumsum(sizes)
    limit = max(_MIN_LISTED, len(rows.features) // _LISTED_SHARE)
    longest = int(sizes.max(initial=1))
    local = threading.local()
    begin = 0
    while begin < len(queries):
        before = int(ends[begin] - sizes[begin])
        stop = max(int(np.searchsorted(ends, before + limit, side="right")), begin + 1)
        table, lists = _lists(rows, queries[begin:stop])

        def search(first: int, stop: int = stop, table: FeatureTable = table, lists: InvertedLists = lists) -> Integers:
            if not hasattr(local, "scratch"):
                local.scratch = _scratch(len(rows.totals), longest, k)
            scratch, heap, out = local.scratch
            end, found = min(first + _QUERIES_PER_PIECE, stop), []
            while first < end:
                first, written = find_nearest(first, end, queries, code, kind, rows, table, lists, scratch, heap, out)
                found.append(out[:written].copy())
            return np.concatenate(found)

        yield from map_in_order(search, range(begin, stop, _QUERIES_PER_PIECE), threads)
        begin = stop


def _lists(rows: DocumentRows, queries: Integers) -> tuple[FeatureTable, InvertedLists]:
    """Return the numbers of the queries' features, and the lists of documents that contain each."""
    features = np.concatenate([rows.features[rows.heads[q] : rows.heads[q + 1]] for q in queries.tolist()])
    table = empty_table(len(features))
    return table, inverted_lists(rows, table, number_keys(features, *table))


def empty_heap(k: int) -> NearestHeap:
    """Return a heap for k documents."""
    return NearestHeap(np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k, np.int64))


def _scratch(documents: int, longest: int, k: int) -> tuple[SearchBuffers, NearestHeap, Integers]:
    width = table_size(longest)
    scratch = SearchBuffers(
        np.zeros(documents, np.int64),
        np.empty(documents + 1, np.int32),
        np.empty(width, np.uint64),
        np.empty(width, np.int64),
    )
    return scratch, empty_heap(k), np.empty((max(k, _CAPACITY), 5), np.int64)


def _nearest_by_value(vectors: Vectors, queries: Integers, k: int, threads: int) -> Iterator[Integers]:
    """Yield rows of ``find_nearest_values`` for the queries in order."""
    documents, values = document_values(vectors)
    place = np.full(len(vectors.heads) - 1, -1, np.int64)
    place[documents] = np.arange(len(documents))
    places = place[queries]
    k = min(k, max(len(documents) - 1, 1))

    def search(first: int) -> Integers:
        heap, out = empty_heap(k), np.empty((max(k, min(k * _QUERIES_PER_PIECE, _CAPACITY)), 5), np.int64)
        end, found = min(first + _QUERIES_PER_PIECE, len(places)), []
        while first < end:
            first, written = find_nearest_values(first, end, places, values, documents, heap, out)
            found.append(out[:written].copy())
        return np.concatenate(found)

    return map_in_order(search, range(0, len(places), _QUERIES_PER_PIECE), threads)


def document_values(vectors: Vectors) -> tuple[Integers, Words]:
    """Return the documents that have a value, and their values."""
    _check_document_count(vectors)
    documents = np.flatnonzero(np.diff(vectors.heads))
    return documents, vectors.features[vectors.heads[documents]]


class RankedDocuments(NamedTuple):
    """Documents that one text matches, or the nearest to it, the nearest first; columns as of ``NearestDocuments``."""

    document: Integers
    counts: Integers
    similarity: Floats


def matching_documents(
    vectors: Vectors,
    features: Words,
    weights: Integers,
    measure: str,
    threshold: Fraction,
    *,
    jaccard_floor: Fraction = Fraction(0),
    unit: int = 1,
) -> RankedDocuments:
    """Find all documents that a new one matches, the nearest first; ties in input order.

    features, weights: uint64[f], int64[f] or empty, those of the new document; jaccard_floor: the Jaccard that sets
    must also reach; other parameters and errors as in ``nearest``. Documents match at or above the threshold, for a
    distance at or below it: raising it finds fewer (for a distance, more).
    """
    documents, counts = _shared_counts(vectors, features, weights, measure)
    is_match = reaches_threshold(measure, counts, threshold, unit)
    if jaccard_floor:
        is_match &= reaches_threshold("jaccard", counts, jaccard_floor, unit)
    return _rank_documents(documents[is_match], counts[is_match], measure, int(is_match.sum()), unit)


def closest_documents(
    vectors: Vectors, features: Words, weights: Integers, measure: str, k: int, *, unit: int = 1
) -> RankedDocuments:
    """Find the k documents most similar to a new one; other parameters as in ``matching_documents``."""
    documents, counts = _shared_counts(vectors, features, weights, measure)
    return _rank_documents(documents, counts, measure, k, unit)


def _shared_counts(vectors: Vectors, features: Words, weights: Integers, measure: str) -> tuple[Integers, Integers]:
    """Return the documents that share a feature with a new one, and their o, a and b, int64[r, 3]."""
    if measure == "hamming":
        documents, values = document_values(vectors)
        documents = documents[: len(documents) * len(features)]
        counts = np.full((len(documents), 3), 64)
        counts[:, 0] -= np.bitwise_count(values[: len(documents)] ^ features[:1]).astype(np.int64)
        return documents, counts
    rows = document_rows(vectors, measure)
    new = document_rows(Vectors(np.array([0, len(features)]), features, weights), measure)
    table = empty_table(len(features))
    insert_values(features, weights, *table)
    common = np.empty(len(rows.totals), np.int64)
    overlaps_with_table(kind_of(measure, weighted=len(weights) > 0), rows, table, common)
    documents = np.flatnonzero(common)
    new_totals = np.full(len(documents), new.totals[0])
    return documents, np.column_stack([common[documents], new_totals, rows.totals[documents]])


def _rank_documents(documents: Integers, counts: Integers, measure: str, k: int, unit: int) -> RankedDocuments:
    heap = empty_heap(min(k, len(documents)))
    common, new_totals, totals = np.ascontiguousarray(counts.T)
    if len(documents):
        code = OVERLAP if measure == "hamming" else formula_code(measure)
        select_nearest(code, new_totals[0], documents, common, totals, heap)
    counts = np.column_stack([heap.common, np.full(len(heap.common), new_totals[:1].sum()), heap.totals])
    return RankedDocuments(heap.documents, counts, similarities(measure, counts, unit))
