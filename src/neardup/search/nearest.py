"""The documents closest to each of some, exactly.

The features of the queries go into a table, one pass over all documents makes lists of who holds them, and each query
counts what it shares through its lists, the shortest first, until no other document can be among the closest. Whole
numbers decide, so that equally close documents are known to be, and come in the order of the input.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.errors import NeardupError, RecipeError
from neardup.features.store import Vectors
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
    begin_lists,
    fill_inverted_lists,
    find_nearest,
    find_nearest_values,
    overlaps_with_table,
    select_nearest,
)
from neardup.kernels.tables import insert_values, number_keys, table_size
from neardup.kernels.weighted import weight_totals
from neardup.recipe.measures import measure as measure_of
from neardup.recipe.measures import reaches_threshold, similarities
from neardup.runtime import map_in_order

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

#: Queries in a piece of work for a thread, and the rows that it may find before they are collected.
_QUERIES_AT_A_TIME = 64
_ROOM = 1 << 16
#: The features whose documents are listed at a time, at least, and the share of all features.
_FEWEST_LISTED = 1 << 22
_SHARE_LISTED = 16
#: A document's sum of squared weights is less: sums of products fit into 63 bits.
_LARGEST_SQUARE = 2.0**61
_MOST_DOCUMENTS = (1 << 31) - 1


class Nearest(NamedTuple):
    """Documents and those closest to them.

    Attributes
    ----------
    query, document : int64[r]
        Positions; sorted by the order of the queries, then from the closest on, then by position.
    counts : int64[r, 3]
        o, a (of the query) and b (of the document), as ``neardup.recipe.measures`` has them.
    similarity : float64[r]
        Of each row; for a distance, what is shown in its place.
    """

    query: Integers
    document: Integers
    counts: Integers
    similarity: npt.NDArray[np.float64]


def nearest(
    vectors: Vectors,
    measure: str,
    queries: Integers,
    k: int,
    *,
    unit: int = 1,
    excluded: Mask | None = None,
    threads: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Nearest:
    """Find the k documents most similar to each query, exactly; of equally similar ones the first.

    Parameters
    ----------
    vectors : Vectors
        All documents; for ``hamming`` one 64-bit value each, or none.
    measure : str
        A measure of sets, of weights where there are weights, or ``hamming``.
    queries : int64[q]
        Positions of documents; each is compared with all others.
    k : int
        How many to find, at least 1. Raising it takes longer. Fewer are found where fewer share a feature; for
        ``hamming`` all documents that have a value do.
    unit : int
        How much of o, a and b makes 1 (``measures.similarities``).
    excluded : bool[n], optional
        Documents that nothing is similar to.
    threads : int
        Changes the time, never the answer.
    progress : callable
        Told (queries done, queries in all) from time to time.

    Raises
    ------
    RecipeError
        If k is below 1 or the measure does not fit.
    NeardupError
        If weights or documents are too many to count.
    """
    if k < 1:
        raise RecipeError(f"k {k} is below 1; ask for one neighbour at least")
    queries = np.ascontiguousarray(queries, np.int64)
    allowed = allowed_documents(vectors, excluded)
    work: Iterator[Integers]
    if measure == "hamming":
        work = _among_values(vectors, allowed, queries, k, threads)
    else:
        work = _among_rows(rows_of(vectors, measure, allowed), measure, queries, k, threads)
    found = [np.empty((0, 5), np.int64)]
    for part in work:
        found.append(part)
        progress(int(part[-1, 0]) + 1 if len(part) else 0, len(queries))
    progress(len(queries), len(queries))
    rows = np.concatenate(found)
    return Nearest(queries[rows[:, 0]], rows[:, 1], rows[:, 2:], similarities(measure, rows[:, 2:], unit))


def allowed_documents(vectors: Vectors, excluded: Mask | None) -> Mask:
    """Return which documents are not excluded; refuse more of them than there are numbers for."""
    count = len(vectors.heads) - 1
    if count > _MOST_DOCUMENTS:
        raise NeardupError(f"{count:,} documents are more than {_MOST_DOCUMENTS:,}; split the collection")
    return np.ones(count, np.bool_) if excluded is None else ~excluded


def kind_of(measure: str, *, weighted: bool) -> int:
    """Return what the kernels count for a measure."""
    wanted = "weights" if weighted else "sets"
    if wanted not in measure_of(measure).takes:
        raise RecipeError(f"measure {measure!r} does not compare {wanted}; choose another measure")
    if not weighted:
        return COUNTS
    return MINIMA if measure == "weighted_jaccard" else PRODUCTS


def code_of(measure: str) -> int:
    """Return what the kernels call the formula of a measure."""
    return measure_of("jaccard" if measure == "weighted_jaccard" else measure).code


def rows_of(vectors: Vectors, measure: str, allowed: Mask) -> DocumentRows:
    """Return the documents with their totals, as the kernels take them."""
    kind = kind_of(measure, weighted=len(vectors.weights) > 0)
    own = np.diff(vectors.heads)
    if kind != COUNTS:
        own = np.empty(len(allowed), np.int64)
        if (
            weight_totals(np.arange(len(allowed)), vectors.heads, vectors.weights, kind == MINIMA, own)
            >= _LARGEST_SQUARE
        ):
            raise NeardupError(
                "the squared weights of a document add up to 2**61 or more; choose weights 'idf', which take no repeats"
            )
    own[~allowed] = -1
    smallest = int(own[own > 0].min(initial=np.iinfo(np.int64).max >> 1))
    roots = np.sqrt(np.maximum(own, 0).astype(np.float64))
    return DocumentRows(vectors.heads, vectors.features, vectors.weights, own, roots, smallest)


def empty_table(size: int) -> FeatureTable:
    """Return an empty table with room for so many features."""
    slots = table_size(size)
    return FeatureTable(np.zeros(slots, np.uint64), np.zeros(slots, np.int64))


def _among_rows(rows: DocumentRows, measure: str, queries: Integers, k: int, threads: int) -> Iterator[Integers]:
    """Yield rows of ``find_nearest`` for the queries in turn, for as many at a time as their lists may take memory."""
    kind = kind_of(measure, weighted=len(rows.weights) > 0)
    code = code_of(measure)
    k = min(k, max(len(rows.totals) - 1, 1))
    sizes = np.diff(rows.heads)[queries]
    ends = np.cumsum(sizes)
    most = max(_FEWEST_LISTED, len(rows.features) // _SHARE_LISTED)
    longest = int(sizes.max(initial=1))
    local = threading.local()
    begin = 0
    while begin < len(queries):
        before = int(ends[begin] - sizes[begin])
        stop = max(int(np.searchsorted(ends, before + most, side="right")), begin + 1)
        table, lists = _lists(rows, queries[begin:stop])

        def search(first: int, stop: int = stop, table: FeatureTable = table, lists: InvertedLists = lists) -> Integers:
            if not hasattr(local, "scratch"):
                local.scratch = _scratch(len(rows.totals), longest, k)
            scratch, heap, out = local.scratch
            end, found = min(first + _QUERIES_AT_A_TIME, stop), []
            while first < end:
                first, written = find_nearest(first, end, queries, code, kind, rows, table, lists, scratch, heap, out)
                found.append(out[:written].copy())
            return np.concatenate(found)

        yield from map_in_order(search, range(begin, stop, _QUERIES_AT_A_TIME), threads)
        begin = stop


def _lists(rows: DocumentRows, queries: Integers) -> tuple[FeatureTable, InvertedLists]:
    """Return the places of the queries' features, and the documents that hold each."""
    held = np.concatenate([rows.features[rows.heads[q] : rows.heads[q + 1]] for q in queries.tolist()])
    table = empty_table(len(held))
    heads = np.zeros(number_keys(held, *table) + 1, np.int64)
    begin_lists(rows, table, heads)
    lists = InvertedLists(
        heads, np.empty(heads[-1], np.int32), np.empty(heads[-1] if len(rows.weights) else 0, np.int64)
    )
    fill_inverted_lists(rows, table, lists)
    return table, lists


def empty_heap(k: int) -> NearestHeap:
    """Return a heap with room for k documents."""
    return NearestHeap(np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k, np.int64))


def _scratch(documents: int, longest: int, k: int) -> tuple[SearchBuffers, NearestHeap, Integers]:
    width = table_size(longest)
    scratch = SearchBuffers(
        np.zeros(documents, np.int64),
        np.empty(documents + 1, np.int32),
        np.empty(width, np.uint64),
        np.empty(width, np.int64),
    )
    return scratch, empty_heap(k), np.empty((max(k, _ROOM), 5), np.int64)


def _among_values(vectors: Vectors, allowed: Mask, queries: Integers, k: int, threads: int) -> Iterator[Integers]:
    """Yield rows of ``find_nearest_values`` for the queries in turn."""
    documents, values = values_of(vectors, allowed)
    place = np.full(len(allowed), -1, np.int64)
    place[documents] = np.arange(len(documents))
    places = place[queries]
    k = min(k, max(len(documents) - 1, 1))

    def search(first: int) -> Integers:
        heap, out = empty_heap(k), np.empty((max(k, min(k * _QUERIES_AT_A_TIME, _ROOM)), 5), np.int64)
        end, found = min(first + _QUERIES_AT_A_TIME, len(places)), []
        while first < end:
            first, written = find_nearest_values(first, end, places, values, documents, heap, out)
            found.append(out[:written].copy())
        return np.concatenate(found)

    return map_in_order(search, range(0, len(places), _QUERIES_AT_A_TIME), threads)


def values_of(vectors: Vectors, allowed: Mask) -> tuple[Integers, Words]:
    """Return the documents that have a value, and their values."""
    documents = np.flatnonzero((np.diff(vectors.heads) > 0) & allowed)
    return documents, vectors.features[vectors.heads[documents]]


class RankedDocuments(NamedTuple):
    """Documents that one text matches, or is closest to, the closest first: as in ``Nearest``, without queries."""

    document: Integers
    counts: Integers
    similarity: npt.NDArray[np.float64]


def matching_documents(
    vectors: Vectors,
    features: Words,
    weights: Integers,
    measure: str,
    threshold: Fraction,
    *,
    jaccard_floor: Fraction = Fraction(0),
    unit: int = 1,
    excluded: Mask | None = None,
) -> RankedDocuments:
    """Find all documents that a new one matches, from the closest on; of equally close ones the first.

    Parameters
    ----------
    vectors : Vectors
        All documents.
    features, weights : uint64[f], int64[f] or empty
        Those of the new document.
    measure : str
        As in ``nearest``.
    threshold : Fraction
        Documents at or above it match, for a distance at or below it. Raising it finds fewer (for a distance, more).
    jaccard_floor : Fraction
        The Jaccard that sets must reach besides.
    unit, excluded
        As in ``nearest``.

    Raises
    ------
    RecipeError
        If the measure does not fit.
    NeardupError
        If the weights are too large.
    """
    documents, counts = _compared(vectors, features, weights, measure, excluded)
    enough = reaches_threshold(measure, counts, threshold, unit)
    if jaccard_floor:
        enough &= reaches_threshold("jaccard", counts, jaccard_floor, unit)
    return _closest(documents[enough], counts[enough], measure, int(enough.sum()), unit)


def closest_documents(
    vectors: Vectors,
    features: Words,
    weights: Integers,
    measure: str,
    k: int,
    *,
    unit: int = 1,
    excluded: Mask | None = None,
) -> RankedDocuments:
    """Find the k documents most similar to a new one; the rest is as in ``matching_documents``."""
    if k < 1:
        raise RecipeError(f"k {k} is below 1; ask for one neighbour at least")
    documents, counts = _compared(vectors, features, weights, measure, excluded)
    return _closest(documents, counts, measure, k, unit)


def _compared(
    vectors: Vectors, features: Words, weights: Integers, measure: str, excluded: Mask | None
) -> tuple[Integers, Integers]:
    """Return the documents that share a feature with a new one, and int64[r, 3], their o, a and b."""
    allowed = allowed_documents(vectors, excluded)
    if measure == "hamming":
        documents, values = values_of(vectors, allowed)
        documents = documents[: len(documents) * len(features)]
        counts = np.full((len(documents), 3), 64)
        counts[:, 0] -= np.bitwise_count(values[: len(documents)] ^ features[:1]).astype(np.int64)
        return documents, counts
    rows = rows_of(vectors, measure, allowed)
    new = rows_of(Vectors(np.array([0, len(features)]), features, weights), measure, np.ones(1, np.bool_))
    table = empty_table(len(features))
    insert_values(features, weights, *table)
    common = np.empty(len(allowed), np.int64)
    overlaps_with_table(kind_of(measure, weighted=len(weights) > 0), rows, table, common)
    documents = np.flatnonzero(common)
    own = np.full(len(documents), new.totals[0])
    return documents, np.column_stack([common[documents], own, rows.totals[documents]])


def _closest(documents: Integers, counts: Integers, measure: str, k: int, unit: int) -> RankedDocuments:
    heap = empty_heap(min(k, len(documents)))
    common, own, others = np.ascontiguousarray(counts.T)
    if len(documents):
        code = OVERLAP if measure == "hamming" else code_of(measure)
        select_nearest(code, own[0], documents, common, others, heap)
    counts = np.column_stack([heap.common, np.full(len(heap.common), own[:1].sum()), heap.totals])
    return RankedDocuments(heap.documents, counts, similarities(measure, counts, unit))
