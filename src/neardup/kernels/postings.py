"""Which documents hold the features of some queries, and what a document has in common with one of them.

o is what a query and a document have in common, a and b are their own totals (``neardup.recipe.measures``).
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from numba import float64, int32, int64, njit, uint64

from neardup.kernels.bits import is_product_greater, popcount, prefetch
from neardup.kernels.bounds import CONTAINMENT, COSINE, DICE, EUCLIDEAN, OVERLAP
from neardup.kernels.compilation import inner_kernel, kernel, leaf_kernel
from neardup.kernels.tables import clear_table, find_slot, home_slot, insert_values

#: What two documents have in common: the number of shared features, sums of smaller weights, or sums of products.
COUNTS, MINIMA, PRODUCTS = 0, 1, 2
#: How many features ahead a table is asked for memory.
_AHEAD = 16


class Rows(NamedTuple):
    """The documents: heads int64[n + 1], features uint64[m], weights int64[m] or empty, totals and roots [n].

    totals: int64, b; -1 for those that nothing may match. roots: float64, square roots of these. smallest: the least.
    """

    heads: np.ndarray
    features: np.ndarray
    weights: np.ndarray
    totals: np.ndarray
    roots: np.ndarray
    smallest: int


class Table(NamedTuple):
    """A table (``kernels.tables``) of features and their values: uint64 and int64, as long as each other."""

    keys: np.ndarray
    values: np.ndarray


class Lists(NamedTuple):
    """Which documents hold the queries' features: those of place p are documents[heads[p]:heads[p + 1]], ascending.

    documents: int32; weights: int64 or empty.
    """

    heads: np.ndarray
    documents: np.ndarray
    weights: np.ndarray


@njit(inline="always")
def in_common(kind, weight, theirs):
    """Return what a feature of two weights adds to what their documents have in common."""
    if kind == COUNTS:
        return 1
    return min(weight, theirs) if kind == MINIMA else weight * theirs


@kernel
def list_lengths(rows, table, heads):
    """Make heads (zeros on entry, one more than the places) the beginnings of the lists."""
    features, begins, totals, keys, values = rows.features, rows.heads, rows.totals, table.keys, table.values
    base, last = uint64(keys.ctypes.data), features.shape[0] - 1
    for d in range(totals.shape[0]):
        if totals[d] < 0:
            continue
        for i in range(begins[d], begins[d + 1]):
            prefetch(base + uint64(8 * home_slot(features[min(i + _AHEAD, last)], keys)))
            slot = find_slot(features[i], keys)
            if keys[slot] != uint64(0):
                heads[values[slot] + 1] += 1
    for place in range(heads.shape[0] - 1):
        heads[place + 1] += heads[place]


@kernel
def fill_lists(rows, table, lists):
    """Fill the lists, whose heads are there."""
    features, begins, totals, keys, values = rows.features, rows.heads, rows.totals, table.keys, table.values
    base, last = uint64(keys.ctypes.data), features.shape[0] - 1
    weights, documents, weights_of_lists = rows.weights, lists.documents, lists.weights
    weighted = weights.shape[0] > 0
    filled = lists.heads.copy()
    for d in range(totals.shape[0]):
        if totals[d] < 0:
            continue
        for i in range(begins[d], begins[d + 1]):
            prefetch(base + uint64(8 * home_slot(features[min(i + _AHEAD, last)], keys)))
            slot = find_slot(features[i], keys)
            if keys[slot] != uint64(0):
                place = values[slot]
                documents[filled[place]] = int32(d)
                if weighted:
                    weights_of_lists[filled[place]] = weights[i]
                filled[place] += 1


@leaf_kernel
def common_with(kind, document, rows, table):
    """Return what a document has in common with the features and weights of a table."""
    total = 0
    for i in range(rows.heads[document], rows.heads[document + 1]):
        slot = find_slot(rows.features[i], table.keys)
        if table.keys[slot] != uint64(0):
            total += in_common(kind, table.values[slot], rows.weights[i]) if kind != COUNTS else 1
    return total


@kernel
def common_with_all(kind, rows, table, out):
    """Write what each document has in common with the features of a table, 0 for those that nothing may match."""
    for d in range(out.shape[0]):
        out[d] = common_with(kind, d, rows, table) if rows.totals[d] >= 0 else 0


class Heap(NamedTuple):
    """Up to k documents: common (o), totals (b), documents, int64[k] each; in a full one, the least close is first."""

    common: np.ndarray
    totals: np.ndarray
    documents: np.ndarray


@njit(inline="always")
def _divisor(code, a, b):
    """Return what o is divided by, as far as it matters to the order."""
    if code == OVERLAP:
        return max(a, b)
    if code == CONTAINMENT:
        return min(a, b)
    return b if code == COSINE else a + b


@kernel
def closer(code, a, o, b, d, other_o, other_b, other_d):
    """Return whether document d, with (o, b), comes before another one; without rounding.

    o / (a + b - o) and 2 o / (a + b) order as o / (a + b), o / sqrt(a b) as o o / b, and a distance as b - 2 o.
    """
    if code == EUCLIDEAN:
        apart = (b - 2 * o) - (other_b - 2 * other_o)
        return apart < 0 or (apart == 0 and d < other_d)
    x = _divisor(code, a, b)
    other_x = _divisor(code, a, other_b)
    y = o if code == COSINE else 1
    other_y = other_o if code == COSINE else 1
    if is_product_greater(o, y, other_x, other_o, other_y, x):
        return True
    return d < other_d and not is_product_greater(other_o, other_y, x, o, y, other_x)


@inner_kernel
def _sink(code, a, heap, place, size):
    """Move the document at a place down until the least close of those below is above them."""
    common, totals, documents = heap
    o, b, d = common[place], totals[place], documents[place]
    while 2 * place + 1 < size:
        i = 2 * place + 1
        if i + 1 < size and closer(
            code, a, common[i], totals[i], documents[i], common[i + 1], totals[i + 1], documents[i + 1]
        ):
            i += 1
        if not closer(code, a, o, b, d, common[i], totals[i], documents[i]):
            break
        common[place], totals[place], documents[place] = common[i], totals[i], documents[i]
        place = i
    common[place], totals[place], documents[place] = o, b, d


@kernel
def arrange(code, a, heap, size):
    """Make the first size documents a heap."""
    for place in range(size // 2 - 1, -1, -1):
        _sink(code, a, heap, place, size)


@inner_kernel
def enter(code, a, heap, size, o, b, d):
    """Put a document into a heap of size documents if there is room or it is closer than the last; return the size."""
    common, totals, documents = heap
    if size < common.shape[0]:
        common[size], totals[size], documents[size] = o, b, d
        if size + 1 == common.shape[0]:
            arrange(code, a, heap, size + 1)
        return size + 1
    if closer(code, a, o, b, d, common[0], totals[0], documents[0]):
        common[0], totals[0], documents[0] = o, b, d
        _sink(code, a, heap, 0, size)
    return size


@kernel
def sort(code, a, heap, size):
    """Order the first size documents from the closest on."""
    common, totals, documents = heap
    arrange(code, a, heap, size)
    for end in range(size - 1, 0, -1):
        common[0], common[end] = common[end], common[0]
        totals[0], totals[end] = totals[end], totals[0]
        documents[0], documents[end] = documents[end], documents[0]
        _sink(code, a, heap, 0, end)


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


@inner_kernel
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


@inner_kernel
def _others_may_suffice(needs, kind, rest, smallest):
    """Return whether a document of which nothing was counted yet can be close enough."""
    if kind == PRODUCTS:
        root = -needs[1] / (2.0 * needs[2]) if needs[2] > 0.0 else 1.0
        root = max(root, 0.0)
        return _least(needs, root * root, root) <= 0.0
    total = float64(max(rest, smallest))
    return _least(needs, total, sqrt(total)) <= 0.0


@inner_kernel
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
        places[i] = table.values[find_slot(rows.features[begin + i], table.keys)]
        length = lists.heads[places[i] + 1] - lists.heads[places[i]]
        weight = float64(rows.weights[begin + i]) if kind != COUNTS else 1.0
        cost[i] = length / (weight * weight if kind == PRODUCTS else weight)
        entries += length
    return places, np.argsort(cost), entries


@inner_kernel
def _own_table(query, rows, scratch):
    """Return a table of a query's own features and weights."""
    begin, end = rows.heads[query], rows.heads[query + 1]
    keys = clear_table(scratch.keys, end - begin)
    table = Table(keys, scratch.values[: keys.shape[0]])
    insert_values(rows.features[begin:end], rows.weights[begin:end], table.keys, table.values)
    return table


@leaf_kernel
def _count_list(kind, weight, begin, end, lists, scratch, count):
    """Add entries [begin, end) to what is counted; append documents met first to found; return their number."""
    for i in range(begin, end):
        document = lists.documents[i]
        before = scratch.counted[document]
        scratch.found[count] = document
        count += before == 0
        scratch.counted[document] = before + (in_common(kind, weight, lists.weights[i]) if kind != COUNTS else 1)
    return count


@leaf_kernel
def _select(code, kind, query, count, rest, bound, own, rows, scratch, heap):
    """Fill the heap with the closest of the first count documents found, and return how many there are.

    rest: what counting may still add to o. bound: (o, b, d) of a document that all must be as close as; o = 0 for none.
    own: the query's table, to count in full those that may be close enough; empty where what is counted is all.
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
        if own.keys.shape[0] > 0:
            common = common_with(kind, document, rows, own)
        size = enter(code, a, heap, size, common, total, document)
        worst = heap.common[0], heap.totals[0], heap.documents[0]
        if size == k and (o == 0 or closer(code, a, worst[0], worst[1], worst[2], o, b, d)):
            o, b, d = worst
            needs = _needs(code, kind, a, o, b, rest)
    return size


@inner_kernel
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
    uncounted = Table(scratch.keys[:0], scratch.values[:0])
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
        if own.keys.shape[0] == 0:
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


#: Floating point decides what is at least so far from a hundredth, for similarities in hundredths.
_MARGIN = 1e-6


class Postings(NamedTuple):
    """Who else holds the features of each document.

    heads int64[n + 1]: where a document's shared features begin. begins, ends int64[m]: which places of documents hold
    those before it that have the feature, own int64[m]: its weight (empty for sets). documents int32[k], weights
    int64[k] (empty for sets).
    """

    heads: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    own: np.ndarray
    documents: np.ndarray
    weights: np.ndarray


@kernel
def number_features(features, table, places, lengths):
    """Set places[i] to the number of a feature and lengths[number] to how often it occurs; return how many there are.

    table: of zeros. lengths: int64 zeros, as long as features.
    """
    count = 0
    for i in range(features.shape[0]):
        slot = find_slot(features[i], table.keys)
        if table.keys[slot] == 0:
            table.keys[slot] = features[i]
            table.values[slot] = count
            count += 1
        places[i] = table.values[slot]
        lengths[places[i]] += 1
    return count


@kernel
def fill_postings(heads, places, lengths, weights, postings):
    """Fill the postings of documents whose features are places[heads[d]:heads[d + 1]]; return how much of them is used.

    A feature of one document alone has no part in them. lengths: as ``number_features`` leaves them; they change.
    """
    weighted = weights.shape[0] > 0
    first = np.empty(lengths.shape[0], np.int64)
    total = 0
    for place in range(lengths.shape[0]):
        first[place] = total
        if lengths[place] > 1:
            total += lengths[place]
        lengths[place] = first[place] if lengths[place] > 1 else -1
    used = 0
    postings.heads[0] = 0
    for d in range(heads.shape[0] - 1):
        for i in range(heads[d], heads[d + 1]):
            place = places[i]
            at = lengths[place]
            if at < 0:
                continue
            lengths[place] = at + 1
            postings.documents[at] = int32(d)
            if weighted:
                postings.weights[at] = weights[i]
            if at > first[place]:
                postings.begins[used] = first[place]
                postings.ends[used] = at
                if weighted:
                    postings.own[used] = weights[i]
                used += 1
        postings.heads[d + 1] = used
    return used, total


@inner_kernel
def _linear(part, whole):
    """Return the largest q with q/100 < part/whole, and whether (q + 1)/100 is it; 0 < part <= whole <= 2**62."""
    if part < 1 << 56:
        q = (100 * part - 1) // whole
        return q, 100 * part == (q + 1) * whole
    q = min(int64(100.0 * (float64(part) / float64(whole))), 99)
    while q > 0 and not is_product_greater(100, part, 1, q, whole, 1):
        q -= 1
    while is_product_greater(100, part, 1, q + 1, whole, 1):
        q += 1
    return q, not is_product_greater(q + 1, whole, 1, 100, part, 1)


@inner_kernel
def _of_cosine(o, a, b):
    """Return the same of o / sqrt(a b)."""
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
def _of_distance(square, unit):
    """Return the same of 1 / (1 + sqrt(square / unit))."""
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
def hundredths(code, o, a, b, unit):
    """Return the q with q/100 < s <= (q + 1)/100 of the similarity of (o, a, b), and whether s is (q + 1)/100 exactly.

    code: the measure's (``bounds``). o >= 1. unit: how much of o, a and b makes 1.
    """
    if code == COSINE:
        return _of_cosine(o, a, b)
    if code == EUCLIDEAN:
        return _of_distance(a + b - 2 * o, unit)
    if code == OVERLAP:
        return _linear(o, max(a, b))
    if code == DICE:
        return _linear(2 * o, a + b)
    if code == CONTAINMENT:
        return _linear(o, min(a, b))
    return _linear(o, a + b - o)


@inner_kernel
def add_common(d, kind, postings, common):
    """Add to common[e] what document d and each e before it have in common, by their weights; kind: see ``listing``."""
    for i in range(postings.heads[d], postings.heads[d + 1]):
        if postings.own.shape[0] == 0:
            for j in range(postings.begins[i], postings.ends[i]):
                common[postings.documents[j]] += 1
        elif kind == MINIMA:
            for j in range(postings.begins[i], postings.ends[i]):
                common[postings.documents[j]] += min(postings.own[i], postings.weights[j])
        else:
            for j in range(postings.begins[i], postings.ends[i]):
                common[postings.documents[j]] += postings.own[i] * postings.weights[j]


@inner_kernel
def alike_bits(d, values, common):
    """Set common[e] to the number of equal bits of values d and e, for each e before d."""
    for e in range(d):
        common[e] = 64 - int64(popcount(values[d] ^ values[e]))


@kernel
def count_pairs(begin, end, formula, rows, totals, common, counts, edges, out):
    """Count the pairs of documents [begin, end) with those before them by similarity, and write down the closer ones.

    formula: (code, kind, unit, least): those of q >= least, or at (least)/100 exactly, are written; least = 101: none.
    rows: (postings, values), one of them empty. totals: int64[n], those of documents; 0 for one without features.
    common: int64[n] zeros, and again at the end. counts int64[101]: counts[100] gets pairs that have nothing in common;
    edges int64[101]. out int64[r, 3]: later, earlier, o. Returns the document to go on with, and the number written.
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
            alike_bits(d, values, common)
        else:
            add_common(d, kind, postings, common)
        for e in range(d):
            o = common[e]
            common[e] = 0
            if o == 0 or totals[e] == 0:
                counts[100] += 1
                continue
            q, edge = hundredths(code, o, totals[d], totals[e], unit)
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
def count_known(features, table, counts):
    """Add one to counts[number] for each of features that a table of numbers knows; counts: int64."""
    for i in range(features.shape[0]):
        slot = find_slot(features[i], table.keys)
        if table.keys[slot] != 0:
            counts[table.values[slot]] += 1
