"""All pairs of a sample: what each has in common, and how many have which similarity.

Document after document, a counter for each one before it goes up by what both have of each feature. A similarity is
put between two hundredths by whole numbers, so that a pair at 0.2 exactly is always counted as one.

o is what two documents have in common, a and b are their own totals (``neardup.measures``).
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numba import float64, int32, int64

from neardup._kernels.bits import popcount
from neardup._kernels.bounds import CONTAINMENT, COSINE, DICE, EUCLIDEAN, OVERLAP
from neardup._kernels.compiling import kernel
from neardup._kernels.listing import MINIMA, find
from neardup._kernels.products import first_is_greater

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

    table: of zeros (``listing.Table``). lengths: int64 zeros, as long as features.
    """
    count = 0
    for i in range(features.shape[0]):
        slot = find(features[i], table.keys, table.bits)
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


@kernel
def _linear(part, whole):
    """Return the largest q with q/100 < part/whole, and whether (q + 1)/100 is it; 0 < part <= whole <= 2**62."""
    if part < 1 << 56:
        q = (100 * part - 1) // whole
        return q, 100 * part == (q + 1) * whole
    q = min(int64(100.0 * (float64(part) / float64(whole))), 99)
    while q > 0 and not first_is_greater(100, part, 1, q, whole, 1):
        q -= 1
    while first_is_greater(100, part, 1, q + 1, whole, 1):
        q += 1
    return q, not first_is_greater(q + 1, whole, 1, 100, part, 1)


@kernel
def _of_cosine(o, a, b):
    """Return the same of o / sqrt(a b)."""
    about = 100.0 * (float64(o) / sqrt(float64(a) * float64(b)))
    q = min(int64(about), 99)
    if _MARGIN < about - q < 1.0 - _MARGIN:
        return q, False
    while q > 0 and not first_is_greater(10000, o, o, q * q, a, b):
        q -= 1
    while first_is_greater(10000, o, o, (q + 1) * (q + 1), a, b):
        q += 1
    return q, not first_is_greater((q + 1) * (q + 1), a, b, 10000, o, o)


@kernel
def _of_distance(square, unit):
    """Return the same of 1 / (1 + sqrt(square / unit))."""
    about = 100.0 / (1.0 + sqrt(float64(square) / float64(unit)))
    q = min(int64(about), 99)
    if _MARGIN < about - q < 1.0 - _MARGIN:
        return q, False
    while q > 0 and not first_is_greater((100 - q) * (100 - q), unit, 1, q * q, square, 1):
        q -= 1
    while q < 99 and first_is_greater((99 - q) * (99 - q), unit, 1, (q + 1) * (q + 1), square, 1):
        q += 1
    return q, not first_is_greater((q + 1) * (q + 1), square, 1, (99 - q) * (99 - q), unit, 1)


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


@kernel
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


@kernel
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
        slot = find(features[i], table.keys, table.bits)
        if table.keys[slot] != 0:
            counts[table.values[slot]] += 1
