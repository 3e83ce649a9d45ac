"""What the documents of a sample share: the exact similarities of all pairs, counted and, where close, written down."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup._kernels.allpairs import Postings, count_pairs, fill_postings, number_features
from neardup._kernels.bounds import OVERLAP
from neardup._kernels.listing import COUNTS
from neardup.features.store import Vectors
from neardup.measures import similarities
from neardup.parallel import in_order
from neardup.search.nearest import code_of, empty_table, kind_of, rows_of, values_of

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

#: Documents in a piece of work for a thread, and the pairs that one writes down before they are collected, at least.
_AT_A_TIME = 64
_ROOM = 1 << 16
#: No pair is so close: 101 hundredths.
NONE_CLOSE = 101


class SamplePairs(NamedTuple):
    """Pairs of documents.

    Attributes
    ----------
    left, right : int64[k]
        Their positions, left before right, sorted.
    similarity : float64[k]
        Of each.
    """

    left: Integers
    right: Integers
    similarity: npt.NDArray[np.float64]


class AllPairs(NamedTuple):
    """How similar all pairs of some documents are.

    Attributes
    ----------
    zero : int
        Pairs that have nothing in common.
    counts : int64[100]
        Pairs with i/100 < s <= (i + 1)/100.
    edges : int64[101]
        Pairs of similarity i/100 exactly.
    close : SamplePairs
        Those at or above the bound that was asked for, by their places among the documents.
    """

    zero: int
    counts: Integers
    edges: Integers
    close: SamplePairs


def all_pairs(vectors: Vectors, measure: str, *, unit: int = 1, least: int = NONE_CLOSE, threads: int = 1) -> AllPairs:
    """Compare all pairs of documents, exactly.

    Parameters
    ----------
    vectors : Vectors
        The documents; for ``hamming`` one 64-bit value each, or none. One without features has nothing in common with
        any.
    measure : str
        A measure of sets, of weights where there are weights, or ``hamming``. Distances count as what is shown in their
        place (``neardup.measures``).
    unit : int
        How much of o, a and b makes 1 (``measures.similarities``).
    least : int
        Pairs of so many hundredths or more are written down; 101 for none. Lowering it takes memory: 24 bytes a pair.
    threads : int
        Changes the time, never the answer.

    Raises
    ------
    RecipeError
        If the measure does not fit.
    NeardupError
        If the weights of a document are too large.
    """
    formula, rows, totals = _prepared(vectors, measure)
    count = len(totals)
    local = threading.local()

    def search(begin: int) -> tuple[Integers, Integers, list[Integers]]:
        if not hasattr(local, "scratch"):
            local.scratch = np.zeros(count, np.int64), np.empty((max(count, _ROOM if least <= 100 else 0), 3), np.int64)
        counts, edges, found = np.zeros(101, np.int64), np.zeros(101, np.int64), []
        common, out = local.scratch
        end = min(begin + _AT_A_TIME, count)
        while begin < end:
            begin, written = count_pairs(begin, end, (*formula, unit, least), rows, totals, common, counts, edges, out)
            found.append(out[:written].copy())
        return counts, edges, found

    counts, edges, close = np.zeros(101, np.int64), np.zeros(101, np.int64), [np.zeros((0, 3), np.int64)]
    for part in in_order(search, range(0, count, _AT_A_TIME), threads):
        counts += part[0]
        edges += part[1]
        close += part[2]
    return AllPairs(int(counts[100]), counts[:100], edges, _written(np.concatenate(close), totals, measure, unit))


def _prepared(vectors: Vectors, measure: str) -> tuple[tuple[int, int], tuple[Postings, Words], Integers]:
    """Return code and kind of a measure, the rows to compare, and their totals."""
    everyone = np.ones(len(vectors.heads) - 1, np.bool_)
    if measure == "hamming" or not len(vectors.features):
        documents, found = values_of(vectors, everyone)
        values, totals = np.zeros(len(everyone), np.uint64), np.zeros(len(everyone), np.int64)
        values[documents], totals[documents] = found, 64
        none = _postings(np.zeros(len(everyone) + 1, np.int64), vectors.features[:0], vectors.weights[:0])
        return (OVERLAP, COUNTS), (none, values), totals
    kind = kind_of(measure, weighted=len(vectors.weights) > 0)
    totals = rows_of(vectors, measure, everyone).totals
    return (code_of(measure), kind), (_postings(*vectors), vectors.features[:0]), totals


def _postings(heads: Integers, features: Words, weights: Integers) -> Postings:
    places, lengths = np.empty(len(features), np.int64), np.zeros(len(features), np.int64)
    distinct = number_features(features, empty_table(len(features)), places, lengths)
    room, weighed = len(features), len(weights)
    postings = Postings(
        np.empty(len(heads), np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(weighed, np.int64),
        np.empty(room, np.int32),
        np.empty(weighed, np.int64),
    )
    fill_postings(heads, places, lengths[:distinct], weights, postings)
    return postings


def _written(rows: Integers, totals: Integers, measure: str, unit: int) -> SamplePairs:
    later, earlier, common = rows.T
    order = np.lexsort((later, earlier))
    left, right = earlier[order], later[order]
    counts = np.column_stack([common[order], totals[left], totals[right]])
    return SamplePairs(left, right, similarities(measure, counts, unit))
