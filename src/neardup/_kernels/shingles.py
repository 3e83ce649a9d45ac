"""From comparable text to feature sets, a document at a time: tokens, grams, sets."""

import numpy as np

from neardup._kernels.compiling import kernel
from neardup._kernels.grams import SINGLE, SPOTS, add_places, grams_of, sample
from neardup._kernels.sets import (
    COUNTED,
    LISTED,
    MULTISET,
    NO_WEIGHTS,
    add_ranks,
    as_counts,
    as_multiset,
    as_set,
    clip_and_weigh,
    counts_of,
    heaviest,
    mark,
)
from neardup._kernels.tokens import drop_held, hash_tokens


@kernel
def _terms(grams, ends, most, positional, work, lookup, weighing):
    """Write the heaviest terms of each segment of grams, united, to out[at:]; return how many.

    ends: where the grams of each segment end. work: (table, seen, picked, counts, out, weights, at, order).
    """
    table, seen, picked, counts, out, weights, at, order = work
    chosen = 0
    begin = 0
    for s in range(ends.shape[0]):
        size = as_counts(grams, begin, ends[s], table, seen, picked, counts, chosen)
        # By tf * idf, whatever the weights are that the recipe compares by: 3 is BY_BOTH.
        size = clip_and_weigh(picked, counts, chosen, size, lookup, 3)
        size = heaviest(picked, counts, chosen, size, most, order)
        if positional:
            add_ranks(picked, chosen, size)
        chosen += size
        begin = ends[s]
    size = as_set(picked, 0, chosen, table, out, at)
    if weighing != NO_WEIGHTS:
        counts_of(grams, begin, table, seen, counts, out, weights, at, size)
        size = clip_and_weigh(out, weights, at, size, lookup, weighing)
    return size


@kernel
def feature_sets(text, spans, heads, plan, tables, lookup, out, weights, sizes, marks):
    """Fill out with the feature sets of the documents, one behind the other.

    Parameters: text: uint8 comparable text; spans: int64[s, 2], where each segment begins and ends; heads:
    int64[d + 1], the segments of each document; plan: (by_character, shape of ``grams_of``, positional, modulus or
    number of terms, form, weighing) as whole numbers; tables: (stop words, antecedents), open tables of tokens;
    lookup: of ``clip_and_weigh``; out: uint64, room for one a byte of text and one a document; weights: int64, as long
    as out, or empty where there are none and none are counted; sizes: int64[d]; marks: uint64[d, 2], two sums over
    the set that are equal for equal sets.
    Returns the number of features written.
    """
    by_character, way, first, second, positional, number, form, weighing = plan
    stops, antecedents = tables
    longest = 0
    most_segments = 1
    for d in range(sizes.shape[0]):
        length = 0
        for s in range(heads[d], heads[d + 1]):
            length += spans[s, 1] - spans[s, 0] + 1
        longest = max(longest, length)
        most_segments = max(most_segments, heads[d + 1] - heads[d])
    edges = np.empty((2 if by_character else 1) * longest + 66, np.int64)
    tokens = np.empty(longest + 1, np.uint64)
    grams = np.empty(longest + 1, np.uint64)
    ends = np.empty(most_segments, np.int64)
    width = 2
    while width < 2 * (longest + 1):
        width *= 2
    table = np.empty(width, np.uint64)
    seen = np.empty(width if form in (MULTISET, COUNTED) or way == SINGLE else 1, np.int64)
    spare = longest + 1 if way == SINGLE else 1
    picked = np.empty(spare, np.uint64)
    counts = np.empty(spare, np.int64)
    order = np.empty(spare, np.int64)
    at = 0
    for d in range(sizes.shape[0]):
        count = 0
        for s in range(heads[d], heads[d + 1]):
            found = hash_tokens(text, spans[s, 0], spans[s, 1], by_character, edges, tokens)
            if stops.shape[0] > 1 and way != SPOTS:
                found = drop_held(stops, tokens, found)
            count = grams_of(tokens, found, (way, first, second), stops, antecedents, grams, count)
            ends[s - heads[d]] = count
        if form == LISTED:
            out[at : at + count] = grams[:count]
            size = count
        elif way == SINGLE:
            work = (table, seen, picked, counts, out, weights, at, order)
            size = _terms(grams, ends[: heads[d + 1] - heads[d]], number, positional, work, lookup, weighing)
        else:
            if positional:
                add_places(grams, count)
            count = sample(grams, count, number)
            if form == MULTISET:
                size = as_multiset(grams, count, table, seen, out, at)
            elif form == COUNTED:
                size = as_counts(grams, 0, count, table, seen, out, weights, at)
            else:
                size = as_set(grams, 0, count, table, out, at)
            size = clip_and_weigh(out, weights, at, size, lookup, weighing)
        sizes[d] = size
        marks[d, 0], marks[d, 1] = mark(out, weights, at, size)
        at += size
    return at
