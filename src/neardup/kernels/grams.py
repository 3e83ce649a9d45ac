"""Comparable text to hashes of its tokens or characters, and of grams of these.

Comparable text is UTF-8 with tokens separated by spaces (``neardup.text.normalize``). Byte arrays must have 64 readable
bytes behind the last text.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from neardup.kernels.bits import decode_character, load_u64, mix, nonspace_mask, trailing_zeros
from neardup.kernels.compilation import inner_kernel, kernel
from neardup.kernels.tables import (
    EMPTY_TABLE_SIZE,
    clear_table,
    contains_key,
    find_slot,
    lookup_value,
    table_buffer,
    table_in,
)
from neardup.kernels.unicode import ascii_texts

_SHORT_TOKEN = uint64(0x9E3779B97F4A7C15)
_LONG_TOKEN = uint64(0xC2B2AE3D27D4EB4F)
_CHAIN = uint64(0x165667B19E3779F9)


@inner_kernel
def _token_edges(text, lo, hi, edges):
    """Write the start and end of each token in [lo, hi), alternating; return the number of offsets."""
    base = uint64(text.ctypes.data)
    count = 0
    before = uint64(0)
    for block in range(lo, hi, 64):
        mask = nonspace_mask(base + uint64(block))
        left = hi - block
        if left < 64:
            mask &= (uint64(1) << uint64(left)) - uint64(1)
        turns = mask ^ ((mask << uint64(1)) | before)
        before = mask >> uint64(63)
        while turns != uint64(0):
            edges[count] = block + int64(trailing_zeros(turns))
            count += 1
            turns &= turns - uint64(1)
    if count & 1:
        edges[count] = hi
        count += 1
    return count


@inner_kernel
def _character_edges(text, lo, hi, edges):
    """Write the start and end of each character in [lo, hi), alternating; return the number of offsets.

    A run of spaces counts as one space, and spaces at the ends do not count.
    """
    count = 0
    gap = False
    i = lo
    while i < hi:
        end = i + 1
        while end < hi and text[end] & 0xC0 == 0x80:
            end += 1
        if text[i] == 0x20:
            gap = True
        else:
            if gap and count > 0:
                edges[count] = i - 1
                edges[count + 1] = i
                count += 2
            gap = False
            edges[count] = i
            edges[count + 1] = end
            count += 2
        i = end
    return count


@inner_kernel
def _token_hash(base, start, end):
    """Hash the bytes [start, end): a bijection up to eight bytes, chained beyond."""
    length = end - start
    address = base + uint64(start)
    word = load_u64(address)
    if length < 8:
        return mix((word & ((uint64(1) << uint64(8 * length)) - uint64(1))) ^ _SHORT_TOKEN)
    value = mix(word ^ _LONG_TOKEN)
    done = 8
    while done + 8 <= length:
        value = mix((value * _CHAIN) ^ load_u64(address + uint64(done)))
        done += 8
    rest = length - done
    tail = load_u64(address + uint64(done)) & ((uint64(1) << uint64(8 * rest)) - uint64(1))
    return mix((value * _CHAIN) ^ tail ^ (uint64(length) << uint64(56)))


@kernel
def hash_tokens(text, lo, hi, by_character, edges, tokens):
    """Write the hashes of the tokens (or characters) of text[lo:hi] to ``tokens``; return how many there are."""
    base = uint64(text.ctypes.data)
    count = (_character_edges(text, lo, hi, edges) if by_character else _token_edges(text, lo, hi, edges)) // 2
    for i in range(count):
        tokens[i] = _token_hash(base, edges[2 * i], edges[2 * i + 1])
    return count


@inner_kernel
def drop_tokens(table, tokens, count):
    """Drop those of the first ``count`` tokens that a hash table contains; return how many remain."""
    kept = 0
    for i in range(count):
        if not contains_key(table, tokens[i]):
            tokens[kept] = tokens[i]
            kept += 1
    return kept


#: The break that a byte may begin, in ``leads``; 0 for none.
ASCII_BREAK = 1
LINE_FEED = 2
WIDE_BREAK = 3


@inner_kernel
def _is_letter_or_digit(byte):
    lower = byte | np.uint8(0x20)
    return (np.uint8(97) <= lower <= np.uint8(122)) or (np.uint8(48) <= byte <= np.uint8(57))


@inner_kernel
def _ends_blank_line(data, lo, line_feed):
    """Return whether only spaces, tabs and CR separate a line feed from the previous one."""
    i = line_feed - 1
    while i >= lo and (data[i] == 0x20 or data[i] == 0x09 or data[i] == 0x0D):
        i -= 1
    return i >= lo and data[i] == 0x0A


@kernel
def cut_texts(data, offsets, leads, wide, ends, heads):
    """Cut texts after their breaks; return the number of entries of ``ends``, even if it is too short for them.

    data: uint8, valid UTF-8; offsets: int64[d + 1]; leads: uint8[256], the break that a byte may begin; wide:
    uint8[0x10000], 1 for the code points beyond ASCII that are breaks; ends: int64, gets the start of the first segment
    and the end of each, as far as there is space; heads: int64[d + 1], gets the first segment of each text.
    """
    room = ends.shape[0]
    ends[0] = offsets[0]
    at = 1
    for d in range(heads.shape[0] - 1):
        lo = offsets[d]
        hi = offsets[d + 1]
        heads[d] = at - 1
        i = lo
        while i < hi:
            byte = data[i]
            lead = leads[byte]
            i += 1
            if lead == 0:
                continue
            if lead == WIDE_BREAK:
                character, width = decode_character(data, i - 1)
                i += width - 1
                if wide[character] == 0:
                    continue
            elif lead == LINE_FEED:
                if not _ends_blank_line(data, lo, i - 1):
                    continue
            elif i < hi and _is_letter_or_digit(data[i]):
                continue
            if i < hi:
                if at < room:
                    ends[at] = i
                at += 1
        if at < room:
            ends[at] = hi
        at += 1
    heads[heads.shape[0] - 1] = at - 1
    return at


@inner_kernel
def longest_span(spans):
    """Return the length of the longest of int64[n, 2] spans."""
    longest = int64(0)
    for i in range(spans.shape[0]):
        longest = max(longest, spans[i, 1] - spans[i, 0])
    return longest


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
    others = np.empty(count, np.uint64)
    total = 0
    for i in range(count):
        if not (contains_key(stops, tokens[i]) or contains_key(antecedents, tokens[i])):
            others[total] = tokens[i]
            total += 1
    # Each antecedent looks its chain up, instead of searching the text for it: that would take quadratic time.
    before = 0
    for i in range(count):
        if before < total and tokens[i] == others[before]:
            before += 1
        elif before + distance * chain <= total and contains_key(antecedents, tokens[i]):
            value = tokens[i]
            for j in range(before + distance - 1, before + distance * chain, distance):
                value = value * _MULTIPLIER + others[j]
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
    longest = longest_span(spans)
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
    longest = longest_span(spans)
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
                add_positions(picked, chosen, chosen + size)
            chosen += size
            begin = end
        size = write_set(picked, int64(0), chosen, buffer, out, at)
        if weighing != NO_WEIGHTS:
            write_counts(grams, first, begin, buffer, slot_values, picked, counts, int64(0))
            table = table_in(buffer, begin - first)
            for i in range(at, at + size):
                weights[i] = counts[slot_values[find_slot(out[i], table)]]
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
    at = int64(0)
    for d in range(sizes.shape[0]):
        digests[d, 0], digests[d, 1] = set_digest(features, _NO_WEIGHTS, at, sizes[d])
        at += sizes[d]
