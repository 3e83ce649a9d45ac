"""Hashes of tokens to hashes of grams: contiguous, with gaps, whole segments, spot signatures, sampled windows."""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from neardup.kernels.bits import mix
from neardup.kernels.compilation import inner_kernel, kernel
from neardup.kernels.tables import EMPTY_TABLE_SIZE, clear_table, contains_key, find_slot, lookup_value, table_buffer
from neardup.kernels.tokens import drop_tokens, hash_tokens
from neardup.kernels.unicode import ascii_texts

#: How the grams of a segment are made from its tokens.
CONTIGUOUS, SKIPPING, WHOLE, SPOTS = 0, 1, 2, 3

_GRAM = uint64(0xD1342543DE82EF95)
_PARTIAL = uint64(0xA0761D6478BD642F)
_PLACE = uint64(0xE7037ED1A0B428DB)


@inner_kernel
def whole(tokens, count, grams, at):
    """Write one gram of all tokens, which equals no gram of another length; return how many grams there are."""
    if count == 0:
        return at
    value = uint64(0)
    for i in range(count):
        value = value * _GRAM + tokens[i]
    grams[at] = mix(value + uint64(count) * _PARTIAL)
    return at + 1


@inner_kernel
def contiguous(tokens, count, n, grams, at):
    """Write the contiguous n-grams; fewer tokens than n make one gram of them all."""
    if count < n:
        return whole(tokens, count, grams, at)
    leaving = uint64(1)
    for _ in range(n):
        leaving *= _GRAM
    value = uint64(0)
    for i in range(n - 1):
        value = value * _GRAM + tokens[i]
    oldest = uint64(0)
    first = at - n + 1
    for i in range(n - 1, count):
        value = value * _GRAM + tokens[i] - oldest * leaving
        grams[first + i] = mix(value)
        oldest = tokens[i - n + 1]
    return at + count - n + 1


@inner_kernel
def _skipping(tokens, count, k, step, grams, at):
    """Write the grams of k tokens that are ``step`` apart."""
    span = (k - 1) * step + 1
    if count < span:
        return whole(tokens, count, grams, at)
    for i in range(count - span + 1):
        value = uint64(0)
        for j in range(k):
            value = value * _GRAM + tokens[i + j * step]
        grams[at + i] = mix(value)
    return at + count - span + 1


@inner_kernel
def _spots(tokens, count, distance, chain, stops, antecedents, grams, at):
    """Write, for each antecedent, the gram of it and the chain of later tokens that are no stop words."""
    for i in range(count):
        if not contains_key(antecedents, tokens[i]):
            continue
        value = tokens[i]
        found = 0
        j = i + 1
        while j < count and found < distance * chain:
            if not (contains_key(stops, tokens[j]) or contains_key(antecedents, tokens[j])):
                found += 1
                if found % distance == 0:
                    value = value * _GRAM + tokens[j]
            j += 1
        if found == distance * chain:
            grams[at] = mix(value)
            at += 1
    return at


@inner_kernel
def grams_of(tokens, count, shape, stops, antecedents, grams, at):
    """Append the grams of a segment's tokens to grams[at:]; return how many there are then.

    shape: (way, first number, second number), a way of those above; stops, antecedents: open tables of tokens.
    """
    way, first, second = shape
    if way == CONTIGUOUS:
        return contiguous(tokens, count, first, grams, at)
    if way == SKIPPING:
        return _skipping(tokens, count, first, second + 1, grams, at)
    if way == WHOLE:
        return whole(tokens, count, grams, at)
    return _spots(tokens, count, first, second, stops, antecedents, grams, at)


@inner_kernel
def placed(gram, place):
    """Return a gram with its place made part of it."""
    return mix(gram + uint64(place + 1) * _PLACE)


@inner_kernel
def add_places(grams, begin, end):
    """Make the place of each of grams[begin:end] part of it."""
    for i in range(begin, end):
        grams[i] = placed(grams[i], i - begin)


@kernel
def sample(grams, begin, end, modulus):
    """Move the grams of [begin, end) that are 0 mod modulus, or the smallest where there is none, to the front.

    Returns where they end.
    """
    if modulus == 1 or begin == end:
        return end
    least = grams[begin]
    kept = begin
    for i in range(begin, end):
        gram = grams[i]
        least = min(least, gram)
        if gram % uint64(modulus) == uint64(0):
            grams[kept] = gram
            kept += 1
    if kept == begin:
        grams[begin] = least
        kept += 1
    return kept


#: What becomes of a document's grams; ``LISTED`` leaves them as they are.
SET, MULTISET, COUNTED, LISTED = 0, 1, 2, 3

_REPEAT = uint64(0x8EBC6AF09C88C6E3)
_SECOND = uint64(0x589965CC75374CC3)


@inner_kernel
def as_set(grams, begin, end, room, out, at):
    """Write the distinct grams[begin:end], by first occurrence, to out[at:]; return how many."""
    table = clear_table(room, end - begin)
    size = 0
    for i in range(begin, end):
        gram = max(grams[i], uint64(1))
        slot = find_slot(gram, table)
        if table[slot] == uint64(0):
            table[slot] = gram
            out[at + size] = gram
            size += 1
    return size


@inner_kernel
def as_multiset(grams, begin, end, room, seen, out, at):
    """Write (gram, i) for the i-th repeat of each of grams[begin:end]: set algebra then gives multiset measures."""
    table = clear_table(room, end - begin)
    for i in range(begin, end):
        gram = max(grams[i], uint64(1))
        slot = find_slot(gram, table)
        if table[slot] == uint64(0):
            table[slot] = gram
            seen[slot] = 0
        else:
            seen[slot] += 1
            gram = mix(gram + uint64(seen[slot]) * _REPEAT)
        out[at + i - begin] = gram
    return end - begin


@inner_kernel
def as_counts(grams, begin, end, room, seen, out, counts, at):
    """Write the distinct grams[begin:end], by first occurrence, and how often each stands there; return how many."""
    table = clear_table(room, end - begin)
    size = 0
    for i in range(begin, end):
        gram = max(grams[i], uint64(1))
        slot = find_slot(gram, table)
        if table[slot] == uint64(0):
            table[slot] = gram
            seen[slot] = at + size
            out[at + size] = gram
            counts[at + size] = 1
            size += 1
        else:
            counts[seen[slot]] += 1
    return size


@inner_kernel
def mark(out, weights, at, size):
    """Return two sums over out[at:at + size] that are equal for equal sets, with equal weights where there are any.

    Sums of what anyone can choose are easily met: they find sets that may be equal, and whoever takes them for equal
    compares them (``kernels.counts.group_equal``).
    """
    first = uint64(0)
    second = uint64(0)
    weighted = weights.shape[0] > 0
    for i in range(at, at + size):
        value = out[i]
        if weighted:
            value = mix(value + uint64(weights[i]) * _REPEAT)
        first += value
        second += (value ^ (value >> uint64(31))) * _SECOND
    return first, second


_NO_WEIGHTS = np.empty(0, np.int64)


@kernel
def feature_sets(text, spans, by_character, n, multiset, out, sizes, marks):
    """Fill out with the feature sets of the texts, one behind the other.

    text: uint8 comparable texts; spans: int64[d, 2], where each begins and ends; by_character: q-grams of
    characters instead of n-grams of tokens; out: uint64, room for one a byte of text and one a text; sizes:
    int64[d]; marks: uint64[d, 2], two sums over the set that are equal for equal sets. Returns the number of
    features written.
    """
    longest = 0
    for d in range(sizes.shape[0]):
        longest = max(longest, spans[d, 1] - spans[d, 0])
    edges = np.empty((2 if by_character else 1) * longest + 66, np.int64)
    tokens = np.empty(longest + 1, np.uint64)
    grams = np.empty(longest + 1, np.uint64)
    room = table_buffer(longest + 1)
    seen = np.empty(room.shape[0] if multiset else 1, np.int64)
    at = int64(0)
    for d in range(sizes.shape[0]):
        count = hash_tokens(text, spans[d, 0], spans[d, 1], by_character, edges, tokens)
        count = contiguous(tokens, count, n, grams, int64(0))
        if multiset:
            size = as_multiset(grams, int64(0), count, room, seen, out, at)
        else:
            size = as_set(grams, int64(0), count, room, out, at)
        sizes[d] = size
        marks[d, 0], marks[d, 1] = mark(out, _NO_WEIGHTS, at, size)
        at += size
    return at


@kernel
def ascii_sets(data, offsets, normalizing, shape):
    """Return the feature sets of texts, uint64 one behind the other, and their sizes; of others than ASCII no sizes.

    For few texts at a time: all in one call. data, offsets and normalizing (fold, table) are those of ``ascii_texts``;
    shape (by_character, n, multiset) is that of ``feature_sets``.
    """
    count = offsets.shape[0] - 1
    length = offsets[count] - offsets[0]
    normal = np.empty(length + 64, np.uint8)
    spans = np.empty((count, 2), np.int64)
    out = np.empty(length + count, np.uint64)
    sizes = np.empty(count, np.int64)
    used, others = ascii_texts(data, offsets, normalizing[0], normalizing[1], normal, spans)
    if others:
        return out[:0], sizes[:0]
    normal[used : used + 64] = 0x20
    marks = np.empty((count, 2), np.uint64)
    used = feature_sets(normal, spans, shape[0], shape[1], shape[2], out, sizes, marks)
    return out[:used], sizes


@kernel
def list_grams(text, spans, by_character, shape, tables, out, lengths):
    """Write the grams of segments of text, repeats repeated, one segment behind the other; return how many.

    text: uint8 comparable text; spans: int64[s, 2], where each segment begins and ends; by_character: of characters
    instead of tokens; shape: that of ``grams_of``; tables: (stop words, antecedents), open tables of tokens; out:
    uint64, room for one a byte of text and one a segment; lengths: int64[s], how many grams each segment has.
    """
    stops, antecedents = tables
    longest = 0
    for s in range(lengths.shape[0]):
        longest = max(longest, spans[s, 1] - spans[s, 0])
    edges = np.empty((2 if by_character else 1) * longest + 66, np.int64)
    tokens = np.empty(longest + 1, np.uint64)
    at = int64(0)
    for s in range(lengths.shape[0]):
        count = hash_tokens(text, spans[s, 0], spans[s, 1], by_character, edges, tokens)
        if stops.shape[0] > EMPTY_TABLE_SIZE and shape[0] != SPOTS:
            count = drop_tokens(stops, tokens, count)
        end = grams_of(tokens, count, shape, stops, antecedents, out, at)
        lengths[s] = end - at
        at = end
    return at


@kernel
def drop_grams(known, grams, lengths):
    """Take the grams that an open table holds out of segments, in place; return how many are left.

    grams, lengths: as ``list_grams`` writes them; both are changed. A gram 0 is in the table as 1, as features are.
    """
    at = int64(0)
    begin = int64(0)
    for s in range(lengths.shape[0]):
        end = begin + lengths[s]
        first = at
        for i in range(begin, end):
            if not contains_key(known, max(grams[i], uint64(1))):
                grams[at] = grams[i]
                at += 1
        lengths[s] = at - first
        begin = end
    return at


@inner_kernel
def most_of(lengths, heads):
    """Return the most grams that a document's segments have together."""
    most = 0
    for d in range(heads.shape[0] - 1):
        most = max(most, lengths[heads[d] : heads[d + 1]].sum())
    return most


@kernel
def form_sets(grams, lengths, heads, plan, out, weights, sizes, marks):
    """Fill out with the sets, multisets or counts of the grams of documents, one behind the other.

    grams, lengths: as ``list_grams`` writes them; the grams are changed; heads: int64[d + 1], the segments of each
    document; plan: (form, positional, modulus of ``sample``); out: uint64, as long as grams; weights: int64, as long,
    for counts, or empty; sizes: int64[d]; marks: uint64[d, 2], two sums over the set that are equal for equal sets.
    Returns the number of features written.
    """
    form, positional, modulus = plan
    room = table_buffer(most_of(lengths, heads))
    seen = np.empty(room.shape[0], np.int64)
    at = int64(0)
    begin = int64(0)
    for d in range(sizes.shape[0]):
        end = begin + lengths[heads[d] : heads[d + 1]].sum()
        if positional:
            add_places(grams, begin, end)
        kept = sample(grams, begin, end, modulus)
        if form == MULTISET:
            size = as_multiset(grams, begin, kept, room, seen, out, at)
        elif form == COUNTED:
            size = as_counts(grams, begin, kept, room, seen, out, weights, at)
        else:
            size = as_set(grams, begin, kept, room, out, at)
        sizes[d] = size
        marks[d, 0], marks[d, 1] = mark(out, weights, at, size)
        at += size
        begin = end
    return at


#: Where a weight comes from.
NO_WEIGHTS, BY_COUNT, BY_VALUE, BY_BOTH = 0, 1, 2, 3


@inner_kernel
def clip_and_weigh(out, weights, at, size, lookup, weighing):
    """Drop the features of out[at:at + size] whose value is 0, and weigh the others; return how many stay.

    weights: int64, counts on entry where weighing is by count; lookup: (keys, values, unseen).
    """
    keys, values, unseen = lookup
    kept = at
    for i in range(at, at + size):
        value = lookup_value(out[i], keys, values, unseen[0])
        if value == 0:
            continue
        out[kept] = out[i]
        if weighing == BY_COUNT:
            weights[kept] = weights[i]
        elif weighing == BY_VALUE:
            weights[kept] = value
        elif weighing == BY_BOTH:
            weights[kept] = weights[i] * value
        kept += 1
    return kept - at


@kernel
def heaviest(out, weights, at, size, most, order):
    """Move the ``most`` heaviest of out[at:at + size] to its front, heaviest first, of equals the smaller gram.

    order: int64 scratch. Returns how many they are.
    """
    if size == 0:
        return 0
    by_gram = np.argsort(out[at : at + size])
    for i in range(size):
        order[i] = -weights[at + by_gram[i]]
    by_weight = np.argsort(order[:size], kind="mergesort")
    chosen = min(most, size)
    front = np.empty(chosen, np.uint64)
    for i in range(chosen):
        front[i] = out[at + by_gram[by_weight[i]]]
    out[at : at + chosen] = front
    return chosen


@inner_kernel
def add_ranks(out, at, size):
    """Make the rank of each feature of out[at:at + size] part of it."""
    for i in range(size):
        out[at + i] = placed(out[at + i], i)


@kernel
def counts_of(grams, begin, end, room, seen, counts, out, weights, at, size):
    """Write how often each feature of out[at:at + size] stands among grams[begin:end] to weights.

    counts: int64 scratch as long as those.
    """
    table = clear_table(room, end - begin)
    found = 0
    for i in range(begin, end):
        gram = max(grams[i], uint64(1))
        slot = find_slot(gram, table)
        if table[slot] == uint64(0):
            table[slot] = gram
            seen[slot] = found
            counts[found] = 1
            found += 1
        else:
            counts[seen[slot]] += 1
    for i in range(at, at + size):
        weights[i] = counts[seen[find_slot(out[i], table)]]


@kernel
def clip_sets(out, weights, lookup, weighing, sizes, marks):
    """Clip and weigh the features of documents that lie one behind the other, in place; return how many stay.

    weights: int64, counts on entry where weighing is by count, empty where there are none; lookup: as for
    ``clip_and_weigh``; sizes: int64[d] and marks: uint64[d, 2], those of the sets on entry and on return.
    """
    begin = int64(0)
    at = int64(0)
    weighted = weights.shape[0] > 0
    for d in range(sizes.shape[0]):
        size = sizes[d]
        for i in range(size):
            out[at + i] = out[begin + i]
            if weighted:
                weights[at + i] = weights[begin + i]
        begin += size
        size = clip_and_weigh(out, weights, at, size, lookup, weighing)
        sizes[d] = size
        marks[d, 0], marks[d, 1] = mark(out, weights, at, size)
        at += size
    return at


@kernel
def choose_terms(grams, lengths, heads, plan, lookup, out, weights, sizes, marks):
    """Write the heaviest terms of each document's segments, united, one document behind the other; return how many.

    grams: uint64, the terms of all segments, repeats repeated; lengths: int64[s], how many of each segment; heads:
    int64[d + 1], the segments of each document; plan: (terms of a segment, positional, weighing); out: uint64, as long
    as grams; weights: int64, as long, or empty where there are none; sizes: int64[d]; marks: uint64[d, 2].
    """
    most, positional, weighing = plan
    longest = most_of(lengths, heads)
    room = table_buffer(longest + 1)
    seen = np.empty(room.shape[0], np.int64)
    picked = np.empty(longest + 1, np.uint64)
    counts = np.empty(longest + 1, np.int64)
    order = np.empty(longest + 1, np.int64)
    at = int64(0)
    first = int64(0)
    for d in range(sizes.shape[0]):
        begin = first
        chosen = int64(0)
        for s in range(heads[d], heads[d + 1]):
            end = begin + lengths[s]
            size = as_counts(grams, begin, end, room, seen, picked, counts, chosen)
            # The heaviest by tf * idf, whatever the weights are that documents are compared by.
            size = clip_and_weigh(picked, counts, chosen, size, lookup, BY_BOTH)
            size = heaviest(picked, counts, chosen, size, most, order)
            if positional:
                add_ranks(picked, chosen, size)
            chosen += size
            begin = end
        size = as_set(picked, int64(0), chosen, room, out, at)
        if weighing != NO_WEIGHTS:
            counts_of(grams, first, begin, room, seen, counts, out, weights, at, size)
            size = clip_and_weigh(out, weights, at, size, lookup, weighing)
        sizes[d] = size
        marks[d, 0], marks[d, 1] = mark(out, weights, at, size)
        at += size
        first = begin
    return at


@kernel
def place_minima(minima, sizes, out):
    """Write the features (i, minimum i) of each document to out, K or none; sizes holds K or 0 for each.

    minima: uint64[d, K]; out: uint64, room for all. Returns the number of features written.
    """
    at = int64(0)
    for d in range(sizes.shape[0]):
        for i in range(sizes[d]):
            out[at] = max(placed(minima[d, i], i), uint64(1))
            at += 1
    return at


@kernel
def mark_sets(features, sizes, marks):
    """Write the marks of sets that lie one behind the other: uint64[d, 2]."""
    none = np.empty(0, np.int64)
    at = int64(0)
    for d in range(sizes.shape[0]):
        marks[d, 0], marks[d, 1] = mark(features, none, at, sizes[d])
        at += sizes[d]
