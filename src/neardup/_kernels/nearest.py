"""The k documents closest to each of some: the search that counts no more than it must, and plain ones.

o is what a query and a document have in common, a and b are their own totals (``neardup.measures``).
"""

from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from numba import float64, int64, njit, uint64

from neardup._kernels.bits import popcount
from neardup._kernels.bounds import CONTAINMENT, COSINE, EUCLIDEAN, OVERLAP
from neardup._kernels.compiling import kernel
from neardup._kernels.listing import COUNTS, PRODUCTS, Table, common_with, enter_weights, find, in_common
from neardup._kernels.ranking import arrange, closer, enter, sort

#: Floating point may only rule a document out with this much to spare.
_SPARE = 1e-9
#: Looking up a feature of a document costs as much as so many entries of lists.
_COST_OF_COUNTING = 2
#: The first bound is taken after entries of lists for one in so many documents, the next after so many times as many.
_SHARE_OF_FIRST_ROUND = 4
_GROWTH = 2
#: What is counted of a document that must not be found.
_NEVER = -(1 << 62)


class Scratch(NamedTuple):
    """What a search notes: counted int64[n] zeros, found int32[n + 1], and the room of a query's own table."""

    counted: np.ndarray
    found: np.ndarray
    keys: np.ndarray
    values: np.ndarray


@kernel
def _needs(code, kind, a, o, b, rest):
    """Return what ``_least`` takes, for documents that may be as close as (o, b) when rest of a is not counted yet.

    A document with total x needs o >= c0 + c1 sqrt(x) + c2 x, x held between low and high; of that, the rest can give
    rest (a number of features, or a sum), or sqrt(rest x) at most (Cauchy and Schwarz).
    """
    c0 = 0.0
    c1 = 0.0
    c2 = 0.0
    low = 0.0
    high = inf
    more = 1.0 - _SPARE
    if code == EUCLIDEAN:
        apart = a + b - 2 * o
        c0 = (float64(a - apart) - _SPARE * (float64(a) + float64(apart))) / 2.0
        c2 = 0.5 * more
    elif code == COSINE:
        c1 = float64(o) / sqrt(float64(b)) * more
    elif code == OVERLAP:
        c2 = float64(o) / float64(max(a, b)) * more
        low = float64(a)
    elif code == CONTAINMENT:
        c2 = float64(o) / float64(min(a, b)) * more
        high = float64(a)
    else:
        c2 = float64(o) / float64(a + b) * more
        c0 = c2 * float64(a)
    if kind == PRODUCTS:
        c1 -= sqrt(float64(rest)) * (1.0 + _SPARE)
    else:
        c0 -= float64(rest)
    return c0, c1, c2, low, high


@njit(inline="always")
def _least(needs, total, root):
    """Return how much must be counted already for a document of that total."""
    c0, c1, c2, low, high = needs
    return c0 + c1 * root + c2 * min(max(float64(total), low), high)


@kernel
def _others_may_suffice(needs, kind, rest, smallest):
    """Return whether a document of which nothing was counted yet can be close enough."""
    if kind == PRODUCTS:
        root = -needs[1] / (2.0 * needs[2]) if needs[2] > 0.0 else 1.0
        root = max(root, 0.0)
        return _least(needs, root * root, root) <= 0.0
    total = float64(max(rest, smallest))
    return _least(needs, total, sqrt(total)) <= 0.0


@kernel
def _sequence(kind, query, rows, table, lists):
    """Return the places of a query's features, the order to count them in, and the length of all their lists.

    Those come first whose lists are short for what they may give to o.
    """
    begin = rows.heads[query]
    terms = rows.heads[query + 1] - begin
    places = np.empty(terms, np.int64)
    cost = np.empty(terms)
    entries = 0
    for i in range(terms):
        places[i] = table.values[find(rows.features[begin + i], table.keys, table.bits)]
        length = lists.heads[places[i] + 1] - lists.heads[places[i]]
        weight = float64(rows.weights[begin + i]) if kind != COUNTS else 1.0
        cost[i] = length / (weight * weight if kind == PRODUCTS else weight)
        entries += length
    return places, np.argsort(cost), entries


@kernel
def _own_table(query, rows, scratch):
    """Return a table of a query's own features and weights."""
    begin, end = rows.heads[query], rows.heads[query + 1]
    bits = 2
    while (1 << bits) < 2 * (end - begin):
        bits += 1
    table = Table(scratch.keys[: 1 << bits], scratch.values[: 1 << bits], bits)
    table.keys[:] = uint64(0)
    enter_weights(rows.features[begin:end], rows.weights[begin:end], table)
    return table


@kernel
def _count_list(kind, weight, begin, end, lists, scratch, count):
    """Add entries [begin, end) to what is counted; append documents met first to found; return their number."""
    for i in range(begin, end):
        document = lists.documents[i]
        before = scratch.counted[document]
        scratch.found[count] = document
        count += before == 0
        scratch.counted[document] = before + (in_common(kind, weight, lists.weights[i]) if kind != COUNTS else 1)
    return count


@kernel
def _select(code, kind, query, count, rest, bound, own, rows, scratch, heap):
    """Fill the heap with the closest of the first count documents found, and return how many there are.

    rest: what counting may still add to o. bound: (o, b, d) of a document that all must be as close as; o = 0 for none.
    own: the query's table, to count in full those that may be close enough; with bits = 0, what is counted is all.
    """
    a = rows.totals[query]
    k = heap.common.shape[0]
    size = 0
    o, b, d = bound
    needs = _needs(code, kind, a, o, b, rest) if o > 0 else (-inf, 0.0, 0.0, 0.0, inf)
    for c in range(count):
        document = int64(scratch.found[c])
        total = rows.totals[document]
        common = scratch.counted[document]
        if common < _least(needs, total, rows.roots[document]):
            continue
        if own.bits > 0:
            common = common_with(kind, document, rows, own)
        size = enter(code, a, heap, size, common, total, document)
        worst = heap.common[0], heap.totals[0], heap.documents[0]
        if size == k and (o == 0 or closer(code, a, worst[0], worst[1], worst[2], o, b, d)):
            o, b, d = worst
            needs = _needs(code, kind, a, o, b, rest)
    return size


@kernel
def _search(query, code, kind, rows, table, lists, scratch, heap):
    """Fill the heap with the documents closest to a query, and return how many there are.

    A document that was not met has no more than ``rest`` in common with the query: once that is too little to be as
    close as k documents counted in full, none can enter. One that was met enters if ``counted`` and ``rest`` suffice.
    """
    a = rows.totals[query]
    k = heap.common.shape[0]
    begin = rows.heads[query]
    places, order, left = _sequence(kind, query, rows, table, lists)
    each = _COST_OF_COUNTING * (rows.features.shape[0] // rows.totals.shape[0] + 1)
    goal = rows.totals.shape[0] // _SHARE_OF_FIRST_ROUND + 1
    uncounted = Table(scratch.keys, scratch.values, 0)
    own = uncounted
    bound = 0, 0, 0
    rest, count, spent, i = a, 0, 0, 0
    scratch.counted[query] = _NEVER
    while i < places.shape[0]:
        while i < places.shape[0] and spent < goal:
            low, high = lists.heads[places[order[i]]], lists.heads[places[order[i]] + 1]
            weight = rows.weights[begin + order[i]] if kind != COUNTS else 1
            count = _count_list(kind, weight, low, high, lists, scratch, count)
            rest -= weight * weight if kind == PRODUCTS else weight
            spent += high - low
            i += 1
        goal = _GROWTH * spent
        if count < k or left - spent < 2 * count + each * k:
            continue
        _select(code, kind, query, count, 0, (0, 0, 0), uncounted, rows, scratch, heap)
        if own.bits == 0:
            own = _own_table(query, rows, scratch)
        for c in range(k):
            heap.common[c] = common_with(kind, heap.documents[c], rows, own)
        arrange(code, a, heap, k)
        o, b, d = heap.common[0], heap.totals[0], heap.documents[0]
        if bound[0] == 0 or closer(code, a, o, b, d, bound[0], bound[1], bound[2]):
            bound = o, b, d
        needs = _needs(code, kind, a, bound[0], bound[1], rest)
        if _others_may_suffice(needs, kind, rest, rows.smallest):
            continue
        candidates = 0
        for c in range(count):
            document = scratch.found[c]
            candidates += scratch.counted[document] >= _least(needs, rows.totals[document], rows.roots[document])
        if each * candidates <= left - spent:
            break
    if i == places.shape[0]:
        own = uncounted
        rest = 0
    size = _select(code, kind, query, count, rest, bound, own, rows, scratch, heap)
    sort(code, a, heap, size)
    scratch.counted[query] = 0
    for c in range(count):
        scratch.counted[scratch.found[c]] = 0
    return size


@kernel
def nearest_of(begin, end, queries, code, kind, rows, table, lists, scratch, heap, out):
    """Find the k documents closest to each of the queries [begin, end), the closest first.

    queries: int64, documents, whose features the table and the lists hold; heap: with room for k; out: int64[room, 5]
    with room for k at least, gets (place of the query, document, o, a, b). Stops early when there may be no room for
    one more. Returns (query to go on with, rows written).
    """
    written = 0
    while begin < end and written + heap.common.shape[0] <= out.shape[0]:
        size = 0
        if rows.totals[queries[begin]] > 0:
            size = _search(queries[begin], code, kind, rows, table, lists, scratch, heap)
        for place in range(size):
            out[written, 0] = begin
            out[written, 1] = heap.documents[place]
            out[written, 2] = heap.common[place]
            out[written, 3] = rows.totals[queries[begin]]
            out[written, 4] = heap.totals[place]
            written += 1
        begin += 1
    return begin, written


@kernel
def best_of(code, a, documents, common, totals, heap):
    """Fill the heap with the closest of documents, sorted; common and totals are o and b of each. Return how many."""
    size = 0
    for i in range(documents.shape[0]):
        size = enter(code, a, heap, size, common[i], totals[i], documents[i])
    sort(code, a, heap, size)
    return size


@kernel
def nearest_values(begin, end, queries, values, documents, heap, out):
    """Do what ``nearest_of`` does for 64-bit values: o is the number of bits in which two agree, b is 64.

    queries: int64, places in values; values: uint64[r]; documents: int64[r], ascending, whose values they are.
    """
    written = 0
    while begin < end and written + heap.common.shape[0] <= out.shape[0]:
        place = queries[begin]
        size = 0
        for i in range(values.shape[0]) if place >= 0 else range(0):
            common = 64 - int64(popcount(values[i] ^ values[place]))
            if i != place and (size < heap.common.shape[0] or common > heap.common[0]):
                size = enter(OVERLAP, 64, heap, size, common, 64, documents[i])
        sort(OVERLAP, 64, heap, size)
        for i in range(size):
            out[written, 0] = begin
            out[written, 1] = heap.documents[i]
            out[written, 2] = heap.common[i]
            out[written, 3] = 64
            out[written, 4] = 64
            written += 1
        begin += 1
    return begin, written
