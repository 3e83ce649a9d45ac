"""Hashes of tokens to hashes of grams: n-grams, skip grams, whole segments, spot signatures, sampled windows."""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from neardup.kernels.bits import mix
from neardup.kernels.compilation import inner_kernel, kernel
from neardup.kernels.tables import EMPTY_TABLE_SIZE, clear_table, contains_key, find_slot, lookup_value, table_buffer
from neardup.kernels.tokens import drop_tokens, hash_tokens
from neardup.kernels.unicode import ascii_texts

#: How grams are formed from the tokens of a segment.
NGRAMS, SKIP_GRAMS, WHOLE_SEGMENT, SPOTS = 0, 1, 2, 3

_MULTIPLIER = uint64(0xD1342543DE82EF95)
_LENGTH_FACTOR = uint64(0xA0761D6478BD642F)
_POSITION_FACTOR = uint64(0xE7037ED1A0B428DB)


@inner_kernel
def write_whole_gram(tokens, count, grams, at):
    """Write one gram of all tokens, unequal to any gram of another length; return the end of the grams."""
    if count == 0:
        return at
    value = uint64(0)
    for i in range(count):
        value = value * _MULTIPLIER + tokens[i]
    grams[at] = mix(value + uint64(count) * _LENGTH_FACTOR)
    return at + 1


@inner_kernel
def write_ngrams(tokens, count, n, grams, at):
    """Write the n-grams of adjacent tokens, or one gram of all tokens if there are fewer than n; return the end."""
    if count < n:
        return write_whole_gram(tokens, count, grams, at)
    leaving = uint64(1)
    for _ in range(n):
        leaving *= _MULTIPLIER
    value = uint64(0)
    for i in range(n - 1):
        value = value * _MULTIPLIER + tokens[i]
    oldest = uint64(0)
    first = at - n + 1
    for i in range(n - 1, count):
        value = value * _MULTIPLIER + tokens[i] - oldest * leaving
        grams[first + i] = mix(value)
        oldest = tokens[i - n + 1]
    return at + count - n + 1


@inner_kernel
def _write_skip_grams(tokens, count, k, step, grams, at):
    """Write the grams of k tokens that are ``step`` apart."""
    span = (k - 1) * step + 1
    if count < span:
        return write_whole_gram(tokens, count, grams, at)
    for i in range(count - span + 1):
        value = uint64(0)
        for j in range(k):
            value = value * _MULTIPLIER + tokens[i + j * step]
        grams[at + i] = mix(value)
    return at + count - span + 1


@inner_kernel
def _write_spots(tokens, count, distance, chain, stops, antecedents, grams, at):
    """Write, for each antecedent, a gram of it and the following chain of tokens that are not stop words."""
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
                    value = value * _MULTIPLIER + tokens[j]
            j += 1
        if found == distance * chain:
            grams[at] = mix(value)
            at += 1
    return at


@inner_kernel
def write_grams(tokens, count, shape, stops, antecedents, grams, at):
    """Append the grams of a segment's tokens to grams[at:]; return where they end.

    shape: (method, first number, second number), a method of the constants above; stops, antecedents: hash tables of
    tokens.
    """
    method, first, second = shape
    if method == NGRAMS:
        return write_ngrams(tokens, count, first, grams, at)
    if method == SKIP_GRAMS:
        return _write_skip_grams(tokens, count, first, second + 1, grams, at)
    if method == WHOLE_SEGMENT:
        return write_whole_gram(tokens, count, grams, at)
    return _write_spots(tokens, count, first, second, stops, antecedents, grams, at)


@inner_kernel
def with_position(gram, position):
    """Return the hash of a gram and its position."""
    return mix(gram + uint64(position + 1) * _POSITION_FACTOR)


@inner_kernel
def add_positions(grams, begin, end):
    """Replace each of grams[begin:end] by the hash of it and its position."""
    for i in range(begin, end):
        grams[i] = with_position(grams[i], i - begin)


@kernel
def sample_grams(grams, begin, end, modulus):
    """Move the grams of [begin, end) that are 0 mod modulus, or else the smallest gram, to the front.

    Returns where they end.
    """
    if modulus == 1 or begin == end:
        return end
    smallest = grams[begin]
    kept = begin
    for i in range(begin, end):
        gram = grams[i]
        smallest = min(smallest, gram)
        if gram % uint64(modulus) == uint64(0):
            grams[kept] = gram
            kept += 1
    if kept == begin:
        grams[begin] = smallest
        kept += 1
    return kept


#: The form of a document's features; ``LISTED`` keeps all grams in order.
SET, MULTISET, COUNTED, LISTED = 0, 1, 2, 3

_REPEAT_FACTOR = uint64(0x8EBC6AF09C88C6E3)
_SECOND_FACTOR = uint64(0x589965CC75374CC3)


@inner_kernel
def write_set(grams, begin, end, buffer, out, at):
    """Write the distinct grams[begin:end], by first occurrence, to out[at:]; return how many."""
    table = clear_table(buffer, end - begin)
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
def write_multiset(grams, begin, end, buffer, slot_values, out, at):
    """Write (gram, i) for the i-th repeat of each of grams[begin:end], so that set algebra gives multiset measures."""
    table = clear_table(buffer, end - begin)
    for i in range(begin, end):
        gram = max(grams[i], uint64(1))
        slot = find_slot(gram, table)
        if table[slot] == uint64(0):
            table[slot] = gram
            slot_values[slot] = 0
        else:
            slot_values[slot] += 1
            gram = mix(gram + uint64(slot_values[slot]) * _REPEAT_FACTOR)
        out[at + i - begin] = gram
    return end - begin


@inner_kernel
def write_counts(grams, begin, end, buffer, slot_values, out, counts, at):
    """Write the distinct grams[begin:end], by first occurrence, and the count of each; return how many."""
    table = clear_table(buffer, end - begin)
    size = 0
    for i in range(begin, end):
        gram = max(grams[i], uint64(1))
        slot = find_slot(gram, table)
        if table[slot] == uint64(0):
            table[slot] = gram
            slot_values[slot] = at + size
            out[at + size] = gram
            counts[at + size] = 1
            size += 1
        else:
            counts[slot_values[slot]] += 1
    return size


@inner_kernel
def set_digest(out, weights, at, size):
    """Return two sums over out[at:at + size] that are equal for equal sets with equal weights.

    Anyone can construct sets with equal sums. So they only find sets that may be equal, which must then be compared
    (``kernels.counts.group_equal_sets``).
    """
    first = uint64(0)
    second = uint64(0)
    weighted = weights.shape[0] > 0
    for i in range(at, at + size):
        value = out[i]
        if weighted:
            value = mix(value + uint64(weights[i]) * _REPEAT_FACTOR)
        first += value
        second += (value ^ (value >> uint64(31))) * _SECOND_FACTOR
    return first, second


_NO_WEIGHTS = np.empty(0, np.int64)


@kernel
def feature_sets(text, spans, by_character, n, multiset, out, sizes, digests):
    """Write the feature sets of texts, concatenated; return the number of features.

    text: uint8, comparable texts; spans: int64[d, 2], the begin and end of each; by_character: q-grams of characters
    instead of n-grams of tokens; out: uint64, long enough for one per byte of text and one per text; sizes: int64[d];
    digests: uint64[d, 2], as from ``set_digest``.
    """
    longest = 0
    for d in range(sizes.shape[0]):
        longest = max(longest, spans[d, 1] - spans[d, 0])
    edges = np.empty((2 if by_character else 1) * longest + 66, np.int64)
    tokens = np.empty(longest + 1, np.uint64)
    grams = np.empty(longest + 1, np.uint64)
    buffer = table_buffer(longest + 1)
    slot_values = np.empty(buffer.shape[0] if multiset else 1, np.int64)
    at = int64(0)
    for d in range(sizes.shape[0]):
        count = hash_tokens(text, spans[d, 0], spans[d, 1], by_character, edges, tokens)
        count = write_ngrams(tokens, count, n, grams, int64(0))
        if multiset:
            size = write_multiset(grams, int64(0), count, buffer, slot_values, out, at)
        else:
            size = write_set(grams, int64(0), count, buffer, out, at)
        sizes[d] = size
        digests[d, 0], digests[d, 1] = set_digest(out, _NO_WEIGHTS, at, size)
        at += size
    return at


@kernel
def ascii_sets(data, offsets, normalizing, shape):
    """Return the feature sets of texts, concatenated (uint64), and their sizes; no sizes unless all texts are ASCII.

    For a few texts: all in one call. data, offsets and normalizing (fold, table) are those of ``ascii_texts``; shape
    (by_character, n, multiset) is that of ``feature_sets``.
    """
    count = offsets.shape[0] - 1
    length = offsets[count] - offsets[0]
    normal = np.empty(length + 64, np.uint8)
    spans = np.empty((count, 2), np.int64)
    out = np.empty(length + count, np.uint64)
    sizes = np.empty(count, np.int64)
    used, non_ascii = ascii_texts(data, offsets, normalizing[0], normalizing[1], normal, spans)
    if non_ascii:
        return out[:0], sizes[:0]
    normal[used : used + 64] = 0x20
    digests = np.empty((count, 2), np.uint64)
    used = feature_sets(normal, spans, shape[0], shape[1], shape[2], out, sizes, digests)
    return out[:used], sizes


@kernel
def list_grams(text, spans, by_character, shape, tables, out, lengths):
    """Write the grams of segments of text, with repeats, concatenated; return how many.

    text: uint8, comparable text; spans: int64[s, 2], the begin and end of each segment; by_character: characters
    instead of tokens; shape: as for ``write_grams``; tables: (stop words, antecedents), hash tables of tokens; out:
    uint64, long enough for one per byte of text and one per segment; lengths: int64[s], gets the grams per segment.
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
        end = write_grams(tokens, count, shape, stops, antecedents, out, at)
        lengths[s] = end - at
        at = end
    return at


@kernel
def drop_grams(dropped, grams, lengths):
    """Drop the grams that a hash table contains from segments, in place; return how many are left.

    grams, lengths: from ``list_grams``; both are changed. A gram 0 is in the table as 1, as features are.
    """
    at = int64(0)
    begin = int64(0)
    for s in range(lengths.shape[0]):
        end = begin + lengths[s]
        first = at
        for i in range(begin, end):
            if not contains_key(dropped, max(grams[i], uint64(1))):
                grams[at] = grams[i]
                at += 1
        lengths[s] = at - first
        begin = end
    return at


@inner_kernel
def largest_document(lengths, heads):
    """Return the largest number of grams in the segments of one document."""
    largest = 0
    for d in range(heads.shape[0] - 1):
        largest = max(largest, lengths[heads[d] : heads[d + 1]].sum())
    return largest


@kernel
def build_sets(grams, lengths, heads, plan, out, weights, sizes, digests):
    """Write the sets, multisets or counts of the grams of documents, concatenated; return the number of features.

    grams, lengths: from ``list_grams``; grams are overwritten; heads: int64[d + 1], the segments of each document;
    plan: (form, positional, modulus of ``sample_grams``); out: uint64, as long as grams; weights: int64, as long, for
    counts, or empty; sizes: int64[d]; digests: uint64[d, 2], as from ``set_digest``.
    """
    form, positional, modulus = plan
    buffer = table_buffer(largest_document(lengths, heads))
    slot_values = np.empty(buffer.shape[0], np.int64)
    at = int64(0)
    begin = int64(0)
    for d in range(sizes.shape[0]):
        end = begin + lengths[heads[d] : heads[d + 1]].sum()
        if positional:
            add_positions(grams, begin, end)
        kept = sample_grams(grams, begin, end, modulus)
        if form == MULTISET:
            size = write_multiset(grams, begin, kept, buffer, slot_values, out, at)
        elif form == COUNTED:
            size = write_counts(grams, begin, kept, buffer, slot_values, out, weights, at)
        else:
            size = write_set(grams, begin, kept, buffer, out, at)
        sizes[d] = size
        digests[d, 0], digests[d, 1] = set_digest(out, weights, at, size)
        at += size
        begin = end
    return at


#: The source of a feature's weight: none, its count, its value in the lookup table, or their product.
NO_WEIGHTS, BY_COUNT, BY_VALUE, BY_BOTH = 0, 1, 2, 3


@inner_kernel
def clip_and_weigh(out, weights, at, size, lookup, weighing):
    """Drop the features of out[at:at + size] whose value is 0, and weigh the others; return how many remain.

    weights: int64, counts at first if weighing is by count; lookup: (keys, values, unseen).
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
def select_heaviest(out, weights, at, size, limit, order):
    """Move the ``limit`` heaviest of out[at:at + size] to its front, heaviest first, smaller grams first among equals.

    order: int64, a buffer. Returns how many they are.
    """
    if size == 0:
        return 0
    by_gram = np.argsort(out[at : at + size])
    for i in range(size):
        order[i] = -weights[at + by_gram[i]]
    by_weight = np.argsort(order[:size], kind="mergesort")
    chosen = min(limit, size)
    front = np.empty(chosen, np.uint64)
    for i in range(chosen):
        front[i] = out[at + by_gram[by_weight[i]]]
    out[at : at + chosen] = front
    return chosen


@inner_kernel
def add_ranks(out, at, size):
    """Replace each of out[at:at + size] by the hash of it and its rank."""
    for i in range(size):
        out[at + i] = with_position(out[at + i], i)


@kernel
def write_counts_of(grams, begin, end, buffer, slot_values, counts, out, weights, at, size):
    """Write to weights how often each feature of out[at:at + size] occurs among grams[begin:end].

    counts: int64, a buffer as long as the grams.
    """
    table = clear_table(buffer, end - begin)
    found = 0
    for i in range(begin, end):
        gram = max(grams[i], uint64(1))
        slot = find_slot(gram, table)
        if table[slot] == uint64(0):
            table[slot] = gram
            slot_values[slot] = found
            counts[found] = 1
            found += 1
        else:
            counts[slot_values[slot]] += 1
    for i in range(at, at + size):
        weights[i] = counts[slot_values[find_slot(out[i], table)]]


@kernel
def clip_sets(out, weights, lookup, weighing, sizes, digests):
    """Clip and weigh the concatenated features of documents in place; return how many remain.

    weights: int64, counts at first if weighing is by count, empty if there are none; lookup: as for ``clip_and_weigh``;
    sizes: int64[d] and digests: uint64[d, 2], those of the sets, updated.
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
        digests[d, 0], digests[d, 1] = set_digest(out, weights, at, size)
        at += size
    return at


@kernel
def choose_terms(grams, lengths, heads, plan, lookup, out, weights, sizes, digests):
    """Write the union of the heaviest terms of each document's segments, concatenated; return how many.

    grams: uint64, the terms of all segments, with repeats; lengths: int64[s], terms per segment; heads: int64[d + 1],
    the segments of each document; plan: (terms per segment, positional, weighing); out: uint64, as long as grams;
    weights: int64, as long, or empty if there are none; sizes: int64[d]; digests: uint64[d, 2].
    """
    terms_per_segment, positional, weighing = plan
    longest = largest_document(lengths, heads)
    buffer = table_buffer(longest + 1)
    slot_values = np.empty(buffer.shape[0], np.int64)
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
            size = write_counts(grams, begin, end, buffer, slot_values, picked, counts, chosen)
            # Terms are ranked by tf * idf, whatever weights the documents are compared by.
            size = clip_and_weigh(picked, counts, chosen, size, lookup, BY_BOTH)
            size = select_heaviest(picked, counts, chosen, size, terms_per_segment, order)
            if positional:
                add_ranks(picked, chosen, size)
            chosen += size
            begin = end
        size = write_set(picked, int64(0), chosen, buffer, out, at)
        if weighing != NO_WEIGHTS:
            write_counts_of(grams, first, begin, buffer, slot_values, counts, out, weights, at, size)
            size = clip_and_weigh(out, weights, at, size, lookup, weighing)
        sizes[d] = size
        digests[d, 0], digests[d, 1] = set_digest(out, weights, at, size)
        at += size
        first = begin
    return at


@kernel
def minima_features(minima, sizes, out):
    """Write the features (i, minimum i) of each document to out; return the number of features.

    minima: uint64[d, K]; sizes: int64[d], K or 0; out: uint64, long enough for all.
    """
    at = int64(0)
    for d in range(sizes.shape[0]):
        for i in range(sizes[d]):
            out[at] = max(with_position(minima[d, i], i), uint64(1))
            at += 1
    return at


@kernel
def digest_sets(features, sizes, digests):
    """Write the digests of concatenated sets: uint64[d, 2]."""
    none = np.empty(0, np.int64)
    at = int64(0)
    for d in range(sizes.shape[0]):
        digests[d, 0], digests[d, 1] = set_digest(features, none, at, sizes[d])
        at += sizes[d]
