"""Inverted lists of documents by feature: nearest documents of queries, and similarities of all pairs of a sample.

o is the overlap of a query and a document; a and b are their totals (``neardup.recipe.measures``).
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from numba import float64, int32, int64, uint64

from neardup.kernels.bits import is_product_greater, popcount, prefetch
from neardup.kernels.bounds import CONTAINMENT, COSINE, DICE, EUCLIDEAN, OVERLAP
from neardup.kernels.compilation import inlined, inner_kernel, kernel, leaf_kernel
from neardup.kernels.tables import clear_table, find_slot, home_slot, insert_values

#: The kind of overlap: the number of shared features, the sum of smaller weights, or the sum of products of weights.
COUNTS, MINIMA, PRODUCTS = 0, 1, 2
#: How many features ahead table slots are prefetched.
_PREFETCH_DISTANCE = 16


class DocumentRows(NamedTuple):
    """The documents: heads int64[n + 1], features uint64[m], weights int64[m] or empty, totals and roots [n].

    totals: int64, b, 0 for documents without features; roots: float64, their square roots; smallest: the least other
    total.
    """

    heads: np.ndarray
    features: np.ndarray
    weights: np.ndarray
    totals: np.ndarray
    roots: np.ndarray
    smallest: int


class FeatureTable(NamedTuple):
    """A hash table (``kernels.tables``) from features to values: uint64 and int64, equally long."""

    keys: np.ndarray
    values: np.ndarray


class InvertedLists(NamedTuple):
    """The documents of each feature of the queries: feature p has documents[heads[p]:heads[p + 1]], ascending.

    documents: int32; weights: int64 or empty.
    """

    heads: np.ndarray
    documents: np.ndarray
    weights: np.ndarray


@inlined
def shared_weight(kind, weight, other_weight):
    """Return what a feature with two weights adds to the overlap of their documents."""
    if kind == COUNTS:
        return 1
    return min(weight, other_weight) if kind == MINIMA else weight * other_weight


@kernel
def inverted_lists(rows, table, count):
    """Return the lists of the documents that contain each of the ``count`` features that a table numbers."""
    features, begins, keys, values = rows.features, rows.heads, table.keys, table.values
    base, last = uint64(keys.ctypes.data), features.shape[0] - 1
    heads = np.zeros(count + 1, np.int64)
    for d in range(begins.shape[0] - 1):
        for i in range(begins[d], begins[d + 1]):
            prefetch(base + uint64(8 * home_slot(features[min(i + _PREFETCH_DISTANCE, last)], keys)))
            slot = find_slot(features[i], keys)
            if keys[slot] != uint64(0):
                heads[values[slot] + 1] += 1
    for number in range(count):
        heads[number + 1] += heads[number]
    weights, weighted = rows.weights, rows.weights.shape[0] > 0
    documents, weights_of_lists = np.empty(heads[count], np.int32), np.empty(heads[count] if weighted else 0, np.int64)
    filled = heads.copy()
    for d in range(begins.shape[0] - 1):
        for i in range(begins[d], begins[d + 1]):
            prefetch(base + uint64(8 * home_slot(features[min(i + _PREFETCH_DISTANCE, last)], keys)))
            slot = find_slot(features[i], keys)
            if keys[slot] != uint64(0):
                number = values[slot]
                documents[filled[number]] = int32(d)
                if weighted:
                    weights_of_lists[filled[number]] = weights[i]
                filled[number] += 1
    return InvertedLists(heads, documents, weights_of_lists)


@leaf_kernel
def overlap_with_table(kind, document, rows, table):
    """Return the overlap of a document with the features and weights of a table."""
    total = 0
    for i in range(rows.heads[document], rows.heads[document + 1]):
        slot = find_slot(rows.features[i], table.keys)
        if table.keys[slot] != uint64(0):
            total += shared_weight(kind, table.values[slot], rows.weights[i]) if kind != COUNTS else 1
    return total


@kernel
def overlaps_with_table(kind, rows, table, out):
    """Write the overlap of each document with the features of a table."""
    for d in range(out.shape[0]):
        out[d] = overlap_with_table(kind, d, rows, table)


class NearestHeap(NamedTuple):
    """Up to k documents: common (o), totals (b), documents, int64[k] each; in a full heap the farthest is first."""

    common: np.ndarray
    totals: np.ndarray
    documents: np.ndarray


@inlined
def _divisor(code, a, b):
    """Return the divisor of o, up to a factor that does not affect the order."""
    if code == OVERLAP:
        return max(a, b)
    if code == CONTAINMENT:
        return min(a, b)
    return b if code == COSINE else a + b


@kernel
def is_closer(code, a, o, b, d, other_o, other_b, other_d):
    """Return whether document d, with (o, b), comes before another one, without rounding.

    o / (a + b - o) and 2 o / (a + b) order as o / (a + b), o / sqrt(a b) as o o / b, and a distance as b - 2 o.
    """
    if code == EUCLIDEAN:
        difference = (b - 2 * o) - (other_b - 2 * other_o)
        return difference < 0 or (difference == 0 and d < other_d)
    x = _divisor(code, a, b)
    other_x = _divisor(code, a, other_b)
    y = o if code == COSINE else 1
    other_y = other_o if code == COSINE else 1
    if is_product_greater(o, y, other_x, other_o, other_y, x):
        return True
    return d < other_d and not is_product_greater(other_o, other_y, x, o, y, other_x)


@inner_kernel
def _sift_down(code, a, heap, parent, size):
    """Move a document down until no farther document is below it."""
    common, totals, documents = heap
    o, b, d = common[parent], totals[parent], documents[parent]
    while 2 * parent + 1 < size:
        i = 2 * parent + 1
        if i + 1 < size and is_closer(
            code, a, common[i], totals[i], documents[i], common[i + 1], totals[i + 1], documents[i + 1]
        ):
            i += 1
        if not is_closer(code, a, o, b, d, common[i], totals[i], documents[i]):
            break
        common[parent], totals[parent], documents[parent] = common[i], totals[i], documents[i]
        parent = i
    common[parent], totals[parent], documents[parent] = o, b, d


@kernel
def heapify(code, a, heap, size):
    """Make the first ``size`` documents a heap."""
    for parent in range(size // 2 - 1, -1, -1):
        _sift_down(code, a, heap, parent, size)


@inner_kernel
def push(code, a, heap, size, o, b, d):
    """Insert a document into a heap if there is space or it is closer than the farthest; return the size."""
    common, totals, documents = heap
    if size < common.shape[0]:
        common[size], totals[size], documents[size] = o, b, d
        if size + 1 == common.shape[0]:
            heapify(code, a, heap, size + 1)
        return size + 1
    if is_closer(code, a, o, b, d, common[0], totals[0], documents[0]):
        common[0], totals[0], documents[0] = o, b, d
        _sift_down(code, a, heap, 0, size)
    return size


@kernel
def sort_heap(code, a, heap, size):
    """Sort the first ``size`` documents, the closest first."""
    common, totals, documents = heap
    heapify(code, a, heap, size)
    for end in range(size - 1, 0, -1):
        common[0], common[end] = common[end], common[0]
        totals[0], totals[end] = totals[end], totals[0]
        documents[0], documents[end] = documents[end], documents[0]
        _sift_down(code, a, heap, 0, end)


#: Floating point excludes a document only beyond this relative error.
_TOLERANCE = 1e-9
#: The cost of looking up a feature of a document, in list entries.
_LOOKUP_COST = 2
#: The first bound is computed after one list entry per 4 documents, each further one after twice as many.
_FIRST_ROUND_SHARE = 4
_ROUND_GROWTH = 2
#: The partial overlap of a document that must not be found.
_EXCLUDED = -(1 << 62)


class SearchBuffers(NamedTuple):
    """Buffers of a search: partial_overlaps int64[n] zeros, candidates int32[n + 1], and a table for the query."""

    partial_overlaps: np.ndarray
    candidates: np.ndarray
    keys: np.ndarray
    values: np.ndarray


@inner_kernel
def _overlap_bounds(code, kind, a, o, b, uncounted):
    """Return the bounds of ``_least_counted`` for documents as close as (o, b), with ``uncounted`` of a to come.

    A document with total x needs o >= c0 + c1 sqrt(x) + c2 x, x clipped to [low, high]. Of that, the uncounted features
    can give ``uncounted`` (a number of features, or a sum), or at most sqrt(uncounted x) (Cauchy and Schwarz).
    """
    c0 = 0.0
    c1 = 0.0
    c2 = 0.0
    low = 0.0
    high = inf
    factor = 1.0 - _TOLERANCE
    if code == EUCLIDEAN:
        distance = a + b - 2 * o
        c0 = (float64(a - distance) - _TOLERANCE * (float64(a) + float64(distance))) / 2.0
        c2 = 0.5 * factor
    elif code == COSINE:
        c1 = float64(o) / sqrt(float64(b)) * factor
    elif code == OVERLAP:
        c2 = float64(o) / float64(max(a, b)) * factor
        low = float64(a)
    elif code == CONTAINMENT:
        c2 = float64(o) / float64(min(a, b)) * factor
        high = float64(a)
    else:
        c2 = float64(o) / float64(a + b) * factor
        c0 = c2 * float64(a)
    if kind == PRODUCTS:
        c1 -= sqrt(float64(uncounted)) * (1.0 + _TOLERANCE)
    else:
        c0 -= float64(uncounted)
    return c0, c1, c2, low, high


@inlined
def _least_counted(bounds, total, root):
    """Return the least overlap that must already be counted for a document with this total."""
    c0, c1, c2, low, high = bounds
    return c0 + c1 * root + c2 * min(max(float64(total), low), high)


@inner_kernel
def _uncounted_may_enter(bounds, kind, uncounted, smallest):
    """Return whether a document without any counted overlap can still be close enough."""
    if kind == PRODUCTS:
        root = -bounds[1] / (2.0 * bounds[2]) if bounds[2] > 0.0 else 1.0
        root = max(root, 0.0)
        return _least_counted(bounds, root * root, root) <= 0.0
    total = float64(max(uncounted, smallest))
    return _least_counted(bounds, total, sqrt(total)) <= 0.0


@inner_kernel
def _counting_order(kind, query, rows, table, lists):
    """Return the list numbers of a query's features, the order in which to count them, and the length of all lists.

    Lists that are short relative to what they can add to o come first.
    """
    begin = rows.heads[query]
    count = rows.heads[query + 1] - begin
    numbers = np.empty(count, np.int64)
    cost = np.empty(count)
    entries = 0
    for i in range(count):
        numbers[i] = table.values[find_slot(rows.features[begin + i], table.keys)]
        length = lists.heads[numbers[i] + 1] - lists.heads[numbers[i]]
        weight = float64(rows.weights[begin + i]) if kind != COUNTS else 1.0
        cost[i] = length / (weight * weight if kind == PRODUCTS else weight)
        entries += length
    return numbers, np.argsort(cost), entries


@inner_kernel
def _query_table(query, rows, buffers):
    """Return a hash table of the features and weights of a query."""
    begin, end = rows.heads[query], rows.heads[query + 1]
    keys = clear_table(buffers.keys, end - begin)
    table = FeatureTable(keys, buffers.values[: keys.shape[0]])
    insert_values(rows.features[begin:end], rows.weights[begin:end], table.keys, table.values)
    return table


@leaf_kernel
def _count_list(kind, weight, begin, end, lists, buffers, count):
    """Count the entries [begin, end); append documents that are new to the candidates; return their number."""
    for i in range(begin, end):
        document = lists.documents[i]
        overlap = buffers.partial_overlaps[document]
        buffers.candidates[count] = document
        count += overlap == 0
        buffers.partial_overlaps[document] = overlap + (
            shared_weight(kind, weight, lists.weights[i]) if kind != COUNTS else 1
        )
    return count


@leaf_kernel
def _select_candidates(code, kind, query, count, uncounted, bound, query_table, rows, buffers, heap):
    """Fill the heap with the closest of the first ``count`` candidates; return how many there are.

    uncounted: what the remaining lists may still add to o. bound: (o, b, d) of a document that all must be as close as;
    o = 0 for none. query_table: to compute full overlaps of those that may be close enough; empty if all is counted.
    """
    a = rows.totals[query]
    k = heap.common.shape[0]
    size = 0
    o, b, d = bound
    bounds = _overlap_bounds(code, kind, a, o, b, uncounted) if o > 0 else (-inf, 0.0, 0.0, 0.0, inf)
    for c in range(count):
        document = int64(buffers.candidates[c])
        total = rows.totals[document]
        overlap = buffers.partial_overlaps[document]
        if overlap < _least_counted(bounds, total, rows.roots[document]):
            continue
        if query_table.keys.shape[0] > 0:
            overlap = overlap_with_table(kind, document, rows, query_table)
        size = push(code, a, heap, size, overlap, total, document)
        farthest = heap.common[0], heap.totals[0], heap.documents[0]
        if size == k and (o == 0 or is_closer(code, a, farthest[0], farthest[1], farthest[2], o, b, d)):
            o, b, d = farthest
            bounds = _overlap_bounds(code, kind, a, o, b, uncounted)
    return size


@inner_kernel
def _search(query, code, kind, rows, table, lists, buffers, heap):
    """Fill the heap with the documents closest to a query, and return how many there are.

    A document that is not a candidate shares at most ``uncounted`` with the query: once that is too little to be as
    close as k documents with known overlaps, no other can enter. A candidate enters if its partial overlap plus
    ``uncounted`` suffices.
    """
    a = rows.totals[query]
    k = heap.common.shape[0]
    begin = rows.heads[query]
    numbers, order, total_entries = _counting_order(kind, query, rows, table, lists)
    lookup_cost = _LOOKUP_COST * (rows.features.shape[0] // rows.totals.shape[0] + 1)
    round_end = rows.totals.shape[0] // _FIRST_ROUND_SHARE + 1
    no_table = FeatureTable(buffers.keys[:0], buffers.values[:0])
    query_table = no_table
    bound = 0, 0, 0
    uncounted, count, entries_read, i = a, 0, 0, 0
    buffers.partial_overlaps[query] = _EXCLUDED
    while i < numbers.shape[0]:
        while i < numbers.shape[0] and entries_read < round_end:
            low, high = lists.heads[numbers[order[i]]], lists.heads[numbers[order[i]] + 1]
            weight = rows.weights[begin + order[i]] if kind != COUNTS else 1
            count = _count_list(kind, weight, low, high, lists, buffers, count)
            uncounted -= weight * weight if kind == PRODUCTS else weight
            entries_read += high - low
            i += 1
        round_end = _ROUND_GROWTH * entries_read
        if count < k or total_entries - entries_read < 2 * count + lookup_cost * k:
            continue
        _select_candidates(code, kind, query, count, 0, (0, 0, 0), no_table, rows, buffers, heap)
        if query_table.keys.shape[0] == 0:
            query_table = _query_table(query, rows, buffers)
        for c in range(k):
            heap.common[c] = overlap_with_table(kind, heap.documents[c], rows, query_table)
        heapify(code, a, heap, k)
        o, b, d = heap.common[0], heap.totals[0], heap.documents[0]
        if bound[0] == 0 or is_closer(code, a, o, b, d, bound[0], bound[1], bound[2]):
            bound = o, b, d
        bounds = _overlap_bounds(code, kind, a, bound[0], bound[1], uncounted)
        if _uncounted_may_enter(bounds, kind, uncounted, rows.smallest):
            continue
        n_candidates = 0
        for c in range(count):
            document = buffers.candidates[c]
            n_candidates += buffers.partial_overlaps[document] >= _least_counted(
                bounds, rows.totals[document], rows.roots[document]
            )
        if lookup_cost * n_candidates <= total_entries - entries_read:
            break
    if i == numbers.shape[0]:
        query_table = no_table
        uncounted = 0
    size = _select_candidates(code, kind, query, count, uncounted, bound, query_table, rows, buffers, heap)
    sort_heap(code, a, heap, size)
    buffers.partial_overlaps[query] = 0
    for c in range(count):
        buffers.partial_overlaps[buffers.candidates[c]] = 0
    return size


@inner_kernel
def _write_heap(query, a, heap, size, out, written):
    """Write (query, document, o, a, b) of the first ``size`` documents; return how many rows there are then."""
    for i in range(size):
        out[written + i, 0] = query
        out[written + i, 1] = heap.documents[i]
        out[written + i, 2] = heap.common[i]
        out[written + i, 3] = a
        out[written + i, 4] = heap.totals[i]
    return written + size


@kernel
def find_nearest(begin, end, queries, code, kind, rows, table, lists, buffers, heap, out):
    """Find the k documents closest to each of the queries [begin, end), the closest first.

    queries: int64, documents whose features the table and the lists contain; heap: for k documents; out: int64[r, 5],
    with space for at least k, gets (index of the query, document, o, a, b). Stops if the results of the next query may
    not fit. Returns (query to continue from, rows written).
    """
    written = 0
    while begin < end and written + heap.common.shape[0] <= out.shape[0]:
        size = 0
        if rows.totals[queries[begin]] > 0:
            size = _search(queries[begin], code, kind, rows, table, lists, buffers, heap)
        written = _write_heap(begin, rows.totals[queries[begin]], heap, size, out, written)
        begin += 1
    return begin, written


@kernel
def select_nearest(code, a, documents, common, totals, heap):
    """Fill the heap with the closest of documents, sorted; common and totals are o and b of each. Return how many."""
    size = 0
    for i in range(documents.shape[0]):
        size = push(code, a, heap, size, common[i], totals[i], documents[i])
    sort_heap(code, a, heap, size)
    return size


@kernel
def find_nearest_values(begin, end, queries, values, documents, heap, out):
    """Do what ``find_nearest`` does for 64-bit values: o is the number of equal bits, b is 64.

    queries: int64, indices of values; values: uint64[r]; documents: int64[r], ascending, their documents.
    """
    written = 0
    while begin < end and written + heap.common.shape[0] <= out.shape[0]:
        query = queries[begin]
        size = 0
        for i in range(values.shape[0]) if query >= 0 else range(0):
            common = 64 - int64(popcount(values[i] ^ values[query]))
            if i != query and (size < heap.common.shape[0] or common > heap.common[0]):
                size = push(OVERLAP, 64, heap, size, common, 64, documents[i])
        sort_heap(OVERLAP, 64, heap, size)
        written = _write_heap(begin, 64, heap, size, out, written)
        begin += 1
    return begin, written


#: Floating point decides if a similarity, in hundredths, is at least this far from an integer.
_MARGIN = 1e-6


class EarlierPostings(NamedTuple):
    """For each document, the earlier documents that share its features.

    heads int64[n + 1]: where each document's shared features begin. begins, ends int64[m]: the range in ``documents``
    of the earlier documents with the feature; weights_of_document int64[m]: its weight (empty for sets). documents
    int32[k], weights int64[k] (empty for sets).
    """

    heads: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    weights_of_document: np.ndarray
    documents: np.ndarray
    weights: np.ndarray


@kernel
def number_features(features, table, numbers, lengths):
    """Set numbers[i] to the number of a feature, and lengths[number] to its occurrences; return how many are distinct.

    table: zeros. lengths: int64 zeros, as long as features.
    """
    count = 0
    for i in range(features.shape[0]):
        slot = find_slot(features[i], table.keys)
        if table.keys[slot] == 0:
            table.keys[slot] = features[i]
            table.values[slot] = count
            count += 1
        numbers[i] = table.values[slot]
        lengths[numbers[i]] += 1
    return count


@kernel
def fill_earlier_postings(heads, numbers, lengths, weights, postings):
    """Fill the postings of documents whose features are numbers[heads[d]:heads[d + 1]]; return the used lengths.

    Features of one document alone are left out. lengths: from ``number_features``; overwritten.
    """
    weighted = weights.shape[0] > 0
    first = np.empty(lengths.shape[0], np.int64)
    total = 0
    for number in range(lengths.shape[0]):
        first[number] = total
        if lengths[number] > 1:
            total += lengths[number]
        lengths[number] = first[number] if lengths[number] > 1 else -1
    used = 0
    postings.heads[0] = 0
    for d in range(heads.shape[0] - 1):
        for i in range(heads[d], heads[d + 1]):
            number = numbers[i]
            end = lengths[number]
            if end < 0:
                continue
            lengths[number] = end + 1
            postings.documents[end] = int32(d)
            if weighted:
                postings.weights[end] = weights[i]
            if end > first[number]:
                postings.begins[used] = first[number]
                postings.ends[used] = end
                if weighted:
                    postings.weights_of_document[used] = weights[i]
                used += 1
        postings.heads[d + 1] = used
    return used, total


@inner_kernel
def _hundredths_of_ratio(numerator, denominator):
    """Return the largest q with q/100 < x = numerator / denominator <= 1, and whether x = (q + 1)/100."""
    if numerator < 1 << 56:
        q = (100 * numerator - 1) // denominator
        return q, 100 * numerator == (q + 1) * denominator
    q = min(int64(100.0 * (float64(numerator) / float64(denominator))), 99)
    while q > 0 and not is_product_greater(100, numerator, 1, q, denominator, 1):
        q -= 1
    while is_product_greater(100, numerator, 1, q + 1, denominator, 1):
        q += 1
    return q, not is_product_greater(q + 1, denominator, 1, 100, numerator, 1)


@inner_kernel
def _hundredths_of_cosine(o, a, b):
    """Return the same for o / sqrt(a b)."""
    about = 100.0 * (float64(o) / sqrt(float64(a) * float64(b)))
    q = min(int64(about), 99)
    if _MARGIN < about - q < 1.0 - _MARGIN:
        return q, False
    while q > 0 and not is_product_greater(10000, o, o, q * q, a, b):
        q -= 1
    while is_product_greater(10000, o, o, (q + 1) * (q + 1), a, b):
        q += 1
    return q, not is_product_greater((q + 1) * (q + 1), a, b, 10000, o, o)


@inner_kernel
def _hundredths_of_distance(square, unit):
    """Return the same for 1 / (1 + sqrt(square / unit))."""
    about = 100.0 / (1.0 + sqrt(float64(square) / float64(unit)))
    q = min(int64(about), 99)
    if _MARGIN < about - q < 1.0 - _MARGIN:
        return q, False
    while q > 0 and not is_product_greater((100 - q) * (100 - q), unit, 1, q * q, square, 1):
        q -= 1
    while q < 99 and is_product_greater((99 - q) * (99 - q), unit, 1, (q + 1) * (q + 1), square, 1):
        q += 1
    return q, not is_product_greater((q + 1) * (q + 1), square, 1, (99 - q) * (99 - q), unit, 1)


@kernel
def similarity_hundredths(code, o, a, b, unit):
    """Return the q with q/100 < s <= (q + 1)/100 of the similarity s of (o, a, b), and whether s = (q + 1)/100 exactly.

    code: the measure (``bounds``). o >= 1. unit: how much of o, a and b stands for 1.
    """
    if code == COSINE:
        return _hundredths_of_cosine(o, a, b)
    if code == EUCLIDEAN:
        return _hundredths_of_distance(a + b - 2 * o, unit)
    if code == OVERLAP:
        return _hundredths_of_ratio(o, max(a, b))
    if code == DICE:
        return _hundredths_of_ratio(2 * o, a + b)
    if code == CONTAINMENT:
        return _hundredths_of_ratio(o, min(a, b))
    return _hundredths_of_ratio(o, a + b - o)


@inner_kernel
def add_overlaps(d, kind, postings, common):
    """Add to common[e] the overlap of document d with each earlier document e, by weights; kind: MINIMA or PRODUCTS."""
    for i in range(postings.heads[d], postings.heads[d + 1]):
        if postings.weights_of_document.shape[0] == 0:
            for j in range(postings.begins[i], postings.ends[i]):
                common[postings.documents[j]] += 1
        elif kind == MINIMA:
            for j in range(postings.begins[i], postings.ends[i]):
                common[postings.documents[j]] += min(postings.weights_of_document[i], postings.weights[j])
        else:
            for j in range(postings.begins[i], postings.ends[i]):
                common[postings.documents[j]] += postings.weights_of_document[i] * postings.weights[j]


@inner_kernel
def count_equal_bits(d, values, common):
    """Set common[e] to the number of equal bits of values d and e, for each e before d."""
    for e in range(d):
        common[e] = 64 - int64(popcount(values[d] ^ values[e]))


@kernel
def count_pairs(begin, end, formula, rows, totals, common, counts, edges, out):
    """Count the pairs of documents [begin, end) with earlier ones by similarity, and write the more similar ones.

    formula: (code, kind, unit, least): pairs with q >= least, or exactly at least/100, are written; least = 101 for
    none. rows: (postings, values), one of them empty. totals: int64[n], those of documents; 0 for one without features.
    common: int64[n] zeros, and again at the end. counts: int64[101]; counts[100] gets the pairs without overlap; edges:
    int64[101], pairs exactly at a hundredth. out: int64[r, 3]: later, earlier, o. Returns (document to continue from,
    number written).
    """
    code, kind, unit, least = formula
    postings, values = rows
    written = 0
    for d in range(begin, end):
        if written + d > out.shape[0]:
            return d, written
        if totals[d] == 0:
            counts[100] += d
            continue
        if values.shape[0] > 0:
            count_equal_bits(d, values, common)
        else:
            add_overlaps(d, kind, postings, common)
        for e in range(d):
            o = common[e]
            common[e] = 0
            if o == 0 or totals[e] == 0:
                counts[100] += 1
                continue
            q, edge = similarity_hundredths(code, o, totals[d], totals[e], unit)
            counts[q] += 1
            if edge:
                edges[q + 1] += 1
            if q >= least or (edge and q + 1 == least):
                out[written, 0] = d
                out[written, 1] = e
                out[written, 2] = o
                written += 1
    return end, written


@kernel
def count_numbered(features, table, counts):
    """Add one to counts[number] for each feature that a table of numbers contains; counts: int64."""
    for i in range(features.shape[0]):
        slot = find_slot(features[i], table.keys)
        if table.keys[slot] != 0:
            counts[table.values[slot]] += 1
