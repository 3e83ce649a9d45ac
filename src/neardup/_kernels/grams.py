"""Hashes of tokens to hashes of grams: contiguous, with gaps, whole segments, spot signatures, sampled windows."""

from numba import uint64

from neardup._kernels.bits import mix
from neardup._kernels.compiling import kernel
from neardup._kernels.tokens import holds

#: How the grams of a segment are made from its tokens.
CONTIGUOUS, SKIPPING, WHOLE, SPOTS = 0, 1, 2, 3

_GRAM = uint64(0xD1342543DE82EF95)
_PARTIAL = uint64(0xA0761D6478BD642F)
_PLACE = uint64(0xE7037ED1A0B428DB)


@kernel
def _whole(tokens, count, grams, at):
    """Write one gram of all tokens, which equals no gram of another length; return how many grams there are."""
    if count == 0:
        return at
    value = uint64(0)
    for i in range(count):
        value = value * _GRAM + tokens[i]
    grams[at] = mix(value + uint64(count) * _PARTIAL)
    return at + 1


@kernel
def contiguous(tokens, count, n, grams, at):
    """Write the contiguous n-grams; fewer tokens than n make one gram of them all."""
    if count < n:
        return _whole(tokens, count, grams, at)
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


@kernel
def _skipping(tokens, count, k, step, grams, at):
    """Write the grams of k tokens that are ``step`` apart."""
    span = (k - 1) * step + 1
    if count < span:
        return _whole(tokens, count, grams, at)
    for i in range(count - span + 1):
        value = uint64(0)
        for j in range(k):
            value = value * _GRAM + tokens[i + j * step]
        grams[at + i] = mix(value)
    return at + count - span + 1


@kernel
def _spots(tokens, count, distance, chain, stops, antecedents, grams, at):
    """Write, for each antecedent, the gram of it and the chain of later tokens that are no stop words."""
    for i in range(count):
        if not holds(antecedents, tokens[i]):
            continue
        value = tokens[i]
        found = 0
        j = i + 1
        while j < count and found < distance * chain:
            if not (holds(stops, tokens[j]) or holds(antecedents, tokens[j])):
                found += 1
                if found % distance == 0:
                    value = value * _GRAM + tokens[j]
            j += 1
        if found == distance * chain:
            grams[at] = mix(value)
            at += 1
    return at


@kernel
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
        return _whole(tokens, count, grams, at)
    return _spots(tokens, count, first, second, stops, antecedents, grams, at)


@kernel
def placed(gram, place):
    """Return a gram with its place made part of it."""
    return mix(gram + uint64(place + 1) * _PLACE)


@kernel
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
