"""From comparable text to sets of contiguous n-grams and q-grams, a document at a time: the shortest way."""

import numpy as np

from neardup._kernels.compiling import kernel
from neardup._kernels.grams import contiguous
from neardup._kernels.sets import as_multiset, as_set, mark
from neardup._kernels.tokens import hash_tokens

_NO_WEIGHTS = np.empty(0, np.int64)


@kernel
def table_for(count):
    """Return an open table with room for so many grams."""
    width = 2
    while width < 2 * (count + 1):
        width *= 2
    return np.empty(width, np.uint64)


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
    table = table_for(longest)
    seen = np.empty(table.shape[0] if multiset else 1, np.int64)
    at = 0
    for d in range(sizes.shape[0]):
        count = hash_tokens(text, spans[d, 0], spans[d, 1], by_character, edges, tokens)
        count = contiguous(tokens, count, n, grams, 0)
        if multiset:
            size = as_multiset(grams, 0, count, table, seen, out, at)
        else:
            size = as_set(grams, 0, count, table, out, at)
        sizes[d] = size
        marks[d, 0], marks[d, 1] = mark(out, _NO_WEIGHTS, at, size)
        at += size
    return at
