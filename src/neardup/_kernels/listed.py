"""From comparable text to features of every kind, in two steps: lists of grams, and what becomes of them."""

import numpy as np

from neardup._kernels.compiling import kernel
from neardup._kernels.grams import SPOTS, add_places, grams_of, sample
from neardup._kernels.sets import COUNTED, MULTISET, as_counts, as_multiset, as_set, mark
from neardup._kernels.shingles import table_for
from neardup._kernels.tokens import drop_held, hash_tokens


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
    at = 0
    for s in range(lengths.shape[0]):
        count = hash_tokens(text, spans[s, 0], spans[s, 1], by_character, edges, tokens)
        if stops.shape[0] > 1 and shape[0] != SPOTS:
            count = drop_held(stops, tokens, count)
        end = grams_of(tokens, count, shape, stops, antecedents, out, at)
        lengths[s] = end - at
        at = end
    return at


@kernel
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
    table = table_for(most_of(lengths, heads))
    seen = np.empty(table.shape[0], np.int64)
    at = 0
    begin = 0
    for d in range(sizes.shape[0]):
        end = begin + lengths[heads[d] : heads[d + 1]].sum()
        if positional:
            add_places(grams, begin, end)
        kept = sample(grams, begin, end, modulus)
        if form == MULTISET:
            size = as_multiset(grams, begin, kept, table, seen, out, at)
        elif form == COUNTED:
            size = as_counts(grams, begin, kept, table, seen, out, weights, at)
        else:
            size = as_set(grams, begin, kept, table, out, at)
        sizes[d] = size
        marks[d, 0], marks[d, 1] = mark(out, weights, at, size)
        at += size
        begin = end
    return at
