"""Occurrences of listed grams in texts, and the sets of them that a text contains."""

from __future__ import annotations

import numpy as np
from numba import uint64

from neardup.kernels.bits import mix
from neardup.kernels.compilation import inner_kernel, kernel
from neardup.kernels.grams import hash_tokens, longest_span, write_ngrams, write_whole_gram
from neardup.kernels.tables import contains_key, find_slot


@kernel
def insert_grams(grams, slots, keys, filter_bits):
    """Insert distinct grams, none of them 0, into a hash table: the grams into keys, their numbers from 0 into slots.

    grams: uint64[g]; keys: uint64 and slots: int64, a power of two above g, keys all 0; filter_bits: uint64, a power of
    two of words, all 0, gets a bit per gram.
    """
    bits = uint64(filter_bits.shape[0] * 64 - 1)
    for number in range(grams.shape[0]):
        gram = grams[number]
        slot = find_slot(gram, keys)
        keys[slot] = gram
        slots[slot] = number
        bit = gram & bits
        filter_bits[bit >> uint64(6)] |= uint64(1) << (bit & uint64(63))


@inner_kernel
def _gram_number(gram, slots, keys, filter_bits):
    """Return the number of a gram, or -1 if it is not listed."""
    bit = gram & uint64(filter_bits.shape[0] * 64 - 1)
    if not (filter_bits[bit >> uint64(6)] >> (bit & uint64(63))) & uint64(1):
        return -1
    slot = find_slot(gram, keys)
    if keys[slot] == gram:
        return slots[slot]
    return -1


@kernel
def find_grams(text, spans, n, widths, first_tokens, slots, keys, filter_bits, numbers, positions, heads):
    """Find the listed grams in texts; return how many there are, even if the output arrays are too short for them.

    text: uint8, comparable texts; spans: int64[d, 2], the begin and end of each text; n: tokens per gram; widths:
    int64, tokens of the shorter listed grams (whole texts of fewer than n tokens); first_tokens: hash table of the
    1-grams that these begin with; slots, keys, filter_bits: from ``insert_grams``; numbers, positions: int64, get the
    number of each gram and the token at which it begins; heads: int64[d + 1], gets the first gram of each text.
    """
    longest = longest_span(spans)
    edges = np.empty(longest + 66, np.int64)
    tokens = np.empty(longest + 1, np.uint64)
    grams = np.empty(longest + 1, np.uint64)
    capacity = numbers.shape[0]
    at = 0
    for d in range(spans.shape[0]):
        heads[d] = at
        count = hash_tokens(text, spans[d, 0], spans[d, 1], False, edges, tokens)
        if count >= n:
            for position in range(write_ngrams(tokens, count, n, grams, 0)):
                number = _gram_number(max(grams[position], uint64(1)), slots, keys, filter_bits)
                if number >= 0:
                    if at < capacity:
                        numbers[at] = number
                        positions[at] = position
                    at += 1
        if widths.shape[0] == 0:
            continue
        for position in range(count):
            if not contains_key(first_tokens, mix(tokens[position])):
                continue
            for width in widths:
                if position + width > count:
                    break
                write_whole_gram(tokens[position : position + width], width, grams, 0)
                number = _gram_number(max(grams[0], uint64(1)), slots, keys, filter_bits)
                if number >= 0:
                    if at < capacity:
                        numbers[at] = number
                        positions[at] = position
                    at += 1
    heads[spans.shape[0]] = at
    return at


@kernel
def find_contained_sets(numbers, heads, set_heads, set_numbers, sizes, share, best, texts, sets, shared):
    """Find the sets of which texts contain at least a share; return how many, even if the output arrays are too short.

    numbers, heads: the grams of each text, from ``find_grams``; set_heads: int64[g + 1] and set_numbers: int64, the
    sets that contain each gram; sizes: int64[s], the grams of each set; share: (numerator, denominator) of the smallest
    share; best: int64[s], raised to the most grams of each set that one text has; texts, sets, shared: int64, get the
    text, the set and the number of its grams in the text.
    """
    numerator, denominator = share
    capacity = texts.shape[0]
    seen = np.full(set_heads.shape[0] - 1, -1, np.int32)
    counts = np.zeros(sizes.shape[0], np.int64)
    touched_sets = np.empty(sizes.shape[0], np.int64)
    at = 0
    for d in range(heads.shape[0] - 1):
        touched = 0
        for i in range(heads[d], heads[d + 1]):
            gram = numbers[i]
            if seen[gram] == d:
                continue
            seen[gram] = d
            for j in range(set_heads[gram], set_heads[gram + 1]):
                set_number = set_numbers[j]
                if counts[set_number] == 0:
                    touched_sets[touched] = set_number
                    touched += 1
                counts[set_number] += 1
        for set_number in np.sort(touched_sets[:touched]):
            count = counts[set_number]
            counts[set_number] = 0
            best[set_number] = max(best[set_number], count)
            if count * denominator >= numerator * sizes[set_number]:
                if at < capacity:
                    texts[at] = d
                    sets[at] = set_number
                    shared[at] = count
                at += 1
    return at
