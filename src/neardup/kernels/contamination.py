"""Which of a list of grams stand in texts, and which sets of them a text contains."""

from __future__ import annotations

import numpy as np
from numba import uint64

from neardup.kernels.bits import mix
from neardup.kernels.compilation import inner_kernel, kernel
from neardup.kernels.grams import contiguous, whole
from neardup.kernels.tables import find, holds
from neardup.kernels.tokens import hash_tokens


@kernel
def enter_grams(grams, slots, keys, filter_bits):
    """Enter distinct grams, none of them 0, into an open table: keys the grams, slots their numbers from 0.

    grams: uint64[g]; keys: uint64 and slots: int64, a power of two of them and more than g, keys all 0; filter_bits:
    uint64, a power of two of words, all 0, get a bit for each gram.
    """
    bits = uint64(filter_bits.shape[0] * 64 - 1)
    for number in range(grams.shape[0]):
        gram = grams[number]
        slot = find(gram, keys)
        keys[slot] = gram
        slots[slot] = number
        bit = gram & bits
        filter_bits[bit >> uint64(6)] |= uint64(1) << (bit & uint64(63))


@inner_kernel
def _number_of(gram, slots, keys, filter_bits):
    """Return the number of a gram, or -1."""
    bit = gram & uint64(filter_bits.shape[0] * 64 - 1)
    if not (filter_bits[bit >> uint64(6)] >> (bit & uint64(63))) & uint64(1):
        return -1
    slot = find(gram, keys)
    if keys[slot] == gram:
        return slots[slot]
    return -1


@kernel
def find_grams(text, spans, n, widths, first_tokens, slots, keys, filter_bits, numbers, places, heads):
    """Find the listed grams in texts; return how many there are, even if there is room for fewer.

    text: uint8 comparable texts; spans: int64[d, 2], where each begins and ends; n: the tokens of a gram; widths:
    int64, the tokens of the shorter grams that are listed, which are all tokens of a text; first_tokens: open table of
    the 1-grams that these begin with; slots, keys, filter_bits: as ``enter_grams`` leaves them; numbers, places: int64,
    get the number of each gram and the token where it begins, as far as there is room; heads: int64[d + 1], the first
    of each text.
    """
    longest = 0
    for d in range(spans.shape[0]):
        longest = max(longest, spans[d, 1] - spans[d, 0])
    edges = np.empty(longest + 66, np.int64)
    tokens = np.empty(longest + 1, np.uint64)
    grams = np.empty(longest + 1, np.uint64)
    room = numbers.shape[0]
    at = 0
    for d in range(spans.shape[0]):
        heads[d] = at
        count = hash_tokens(text, spans[d, 0], spans[d, 1], False, edges, tokens)
        if count >= n:
            for place in range(contiguous(tokens, count, n, grams, 0)):
                number = _number_of(max(grams[place], uint64(1)), slots, keys, filter_bits)
                if number >= 0:
                    if at < room:
                        numbers[at] = number
                        places[at] = place
                    at += 1
        if widths.shape[0] == 0:
            continue
        for place in range(count):
            if not holds(first_tokens, mix(tokens[place])):
                continue
            for width in widths:
                if place + width > count:
                    break
                whole(tokens[place : place + width], width, grams, 0)
                number = _number_of(max(grams[0], uint64(1)), slots, keys, filter_bits)
                if number >= 0:
                    if at < room:
                        numbers[at] = number
                        places[at] = place
                    at += 1
    heads[spans.shape[0]] = at
    return at


@kernel
def contained_sets(numbers, heads, owner_heads, owners, sizes, share, best, texts, sets, shared):
    """Find the sets that texts contain to a share; return how many, even if there is room for fewer.

    numbers, heads: the grams of each text, as ``find_grams`` writes them; owner_heads: int64[g + 1], owners: int64,
    the sets that have each gram; sizes: int64[s], the grams of each set; share: (numerator, denominator) of the
    smallest share; best: int64[s], raised to the most grams that one text has of each set; texts, sets, shared:
    int64, get the text, the set and how many of its grams stand there.
    """
    numerator, denominator = share
    room = texts.shape[0]
    seen = np.full(owner_heads.shape[0] - 1, -1, np.int32)
    counts = np.zeros(sizes.shape[0], np.int64)
    touched = np.empty(sizes.shape[0], np.int64)
    at = 0
    for d in range(heads.shape[0] - 1):
        touches = 0
        for i in range(heads[d], heads[d + 1]):
            gram = numbers[i]
            if seen[gram] == d:
                continue
            seen[gram] = d
            for j in range(owner_heads[gram], owner_heads[gram + 1]):
                owner = owners[j]
                if counts[owner] == 0:
                    touched[touches] = owner
                    touches += 1
                counts[owner] += 1
        for owner in np.sort(touched[:touches]):
            count = counts[owner]
            counts[owner] = 0
            best[owner] = max(best[owner], count)
            if count * denominator >= numerator * sizes[owner]:
                if at < room:
                    texts[at] = d
                    sets[at] = owner
                    shared[at] = count
                at += 1
    return at
