"""From comparable text to feature sets, a document at a time: tokens, grams, sets."""

import numpy as np

from neardup._kernels.compiling import kernel
from neardup._kernels.grams import SPOTS, add_places, grams_of, sample
from neardup._kernels.sets import COUNTED, LISTED, MULTISET, as_counts, as_multiset, as_set, mark
from neardup._kernels.tokens import drop_held, hash_tokens


@kernel
def feature_sets(text, spans, heads, plan, tables, out, weights, sizes, marks):
    """Fill out with the feature sets of the documents, one behind the other.

    Parameters: text: uint8 comparable text; spans: int64[s, 2], where each segment begins and ends; heads:
    int64[d + 1], the segments of each document; plan: (by_character, shape of ``grams_of``, positional, modulus, form)
    as whole numbers; tables: (stop words, antecedents), open tables of tokens; out: uint64, room for one a byte of text
    and one a document; weights: int64, as long as out, or empty where nothing is counted; sizes: int64[d]; marks:
    uint64[d, 2], two sums over the set that are equal for equal sets.
    Returns the number of features written.
    """
    by_character, way, first, second, positional, modulus, form = plan
    stops, antecedents = tables
    longest = 0
    for d in range(sizes.shape[0]):
        length = 0
        for s in range(heads[d], heads[d + 1]):
            length += spans[s, 1] - spans[s, 0] + 1
        longest = max(longest, length)
    edges = np.empty((2 if by_character else 1) * longest + 66, np.int64)
    tokens = np.empty(longest + 1, np.uint64)
    grams = np.empty(longest + 1, np.uint64)
    width = 2
    while width < 2 * (longest + 1):
        width *= 2
    table = np.empty(width, np.uint64)
    seen = np.empty(width if form in (MULTISET, COUNTED) else 1, np.int64)
    at = 0
    for d in range(sizes.shape[0]):
        count = 0
        for s in range(heads[d], heads[d + 1]):
            found = hash_tokens(text, spans[s, 0], spans[s, 1], by_character, edges, tokens)
            if stops.shape[0] > 1 and way != SPOTS:
                found = drop_held(stops, tokens, found)
            count = grams_of(tokens, found, (way, first, second), stops, antecedents, grams, count)
        if form == LISTED:
            out[at : at + count] = grams[:count]
            size = count
        else:
            if positional:
                add_places(grams, count)
            count = sample(grams, count, modulus)
            if form == MULTISET:
                size = as_multiset(grams, count, table, seen, out, at)
            elif form == COUNTED:
                size = as_counts(grams, 0, count, table, seen, out, weights, at)
            else:
                size = as_set(grams, 0, count, table, out, at)
        sizes[d] = size
        marks[d, 0], marks[d, 1] = mark(out, weights, at, size)
        at += size
    return at
