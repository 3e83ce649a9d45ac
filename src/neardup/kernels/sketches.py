"""Feature sets to sketches: minima of hash functions, SimHashes and super shingles, one document at a time.

The features of document d are features[heads[d]:heads[d + 1]].
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, uint16, uint64

from neardup.kernels.bits import mix
from neardup.kernels.compilation import inlined, inner_kernel, kernel

#: The value of a slot that no feature has reached; above every value of a feature.
EMPTY = 0xFFFFFFFFFFFFFFFF
#: The value of a slot is the round, from this bit on, and as many bits of a hash.
ROUND_SHIFT = 48
#: Odd constants that separate the rounds of a sketch, the groups of super shingles, and SimHash.
_ROUND = uint64(0x9E3779B97F4A7C15)
_SEED = uint64(0xD1342543DE82EF95)
_GROUP = uint64(0xC2B2AE3D27D4EB4F)
_CHAIN = uint64(0x165667B19E3779F9)
_BIT = uint64(0xA0761D6478BD642F)
#: Features per block: the hashes of a block fit into the first-level cache.
_BLOCK = 512
#: Hashes per block of documents so small that two rounds fit: a short loop costs more than its steps.
_SMALL_BLOCK = 64
#: Bits of the bit-sliced counters, for up to 2**40 features.
_COUNTER_BITS = 40

_EMPTY = uint64(EMPTY)
_SHIFT = uint64(ROUND_SHIFT)
_VALUE = uint64((1 << ROUND_SHIFT) - 1)
_HALF = uint64(32)
_ONE = uint64(1)


@inlined
def _round_offset(seed, number):
    """Return the number that is added to features in a round before they are mixed."""
    return mix(seed + number * _ROUND)


@inlined
def _slot_of(hashed, slots):
    """Return the slot that a hash selects by its upper half."""
    return uint16(((hashed >> _HALF) * slots) >> _HALF)


@inner_kernel
def _hash_round(features, seed, number, buckets, values, sketch):
    """Hash every feature into one slot of the sketch, which keeps the smallest value, in round ``number``."""
    slots = uint64(sketch.shape[0])
    start = _round_offset(seed, number)
    tag = number << _SHIFT
    for begin in range(0, features.shape[0], _BLOCK):
        part = features[begin : begin + _BLOCK]
        count = part.shape[0]
        for i in range(count):
            hashed = mix(part[i] + start)
            buckets[i] = _slot_of(hashed, slots)
            values[i] = (hashed & _VALUE) | tag
        for i in range(count):
            slot = uint64(buckets[i])
            sketch[slot] = min(sketch[slot], values[i])


@inner_kernel
def _hash_small_rounds(repeated, turns, count, seed, number, buckets, values, sketch):
    """Hash the first ``count`` repeated features, each in round ``number`` plus its turn."""
    slots = uint64(sketch.shape[0])
    for i in range(_SMALL_BLOCK):
        turn = number + turns[i]
        hashed = mix(repeated[i] + _round_offset(seed, turn))
        buckets[i] = _slot_of(hashed, slots)
        values[i] = (hashed & _VALUE) | (turn << _SHIFT)
    for i in range(count):
        slot = uint64(buckets[i])
        sketch[slot] = min(sketch[slot], values[i])


@inlined
def _next_open_slot(sketch, slot, bound):
    """Return the first slot from ``slot`` on whose value is not below a bound, or the number of slots."""
    while slot < sketch.shape[0] and sketch[uint64(slot)] < bound:
        slot += 1
    return slot


@inner_kernel
def _repeat_features(features, times, repeated, turns):
    """Write the features ``times`` times, concatenated, and the number of each repeat."""
    at = 0
    for turn in range(times):
        for i in range(features.shape[0]):
            repeated[at] = features[i]
            turns[at] = uint64(turn)
            at += 1


@inner_kernel
def _add_features(features, seed, buckets, values, repeated, turns, sketch):
    """Add the features of a document to a sketch: 2 K rounds, or fewer if no later round can change a slot.

    buckets: uint16[_BLOCK], values: uint64[_BLOCK], repeated, turns: uint64[_SMALL_BLOCK], buffers.
    """
    slots = sketch.shape[0]
    size = features.shape[0]
    seed = mix(seed ^ _SEED)
    rounds_per_block = _SMALL_BLOCK // size
    slot = 0
    if rounds_per_block > 1:
        _repeat_features(features, rounds_per_block, repeated, turns)
        for number in range(0, slots, rounds_per_block):
            rounds = min(rounds_per_block, slots - number)
            _hash_small_rounds(repeated, turns, rounds * size, seed, uint64(number), buckets, values, sketch)
            slot = _next_open_slot(sketch, slot, uint64(number + rounds) << _SHIFT)
            if slot == slots:
                return
    else:
        for number in range(slots):
            _hash_round(features, seed, uint64(number), buckets, values, sketch)
            slot = _next_open_slot(sketch, slot, uint64(number + 1) << _SHIFT)
            if slot == slots:
                return
    while slot < slots:
        turn = uint64(slots + slot)
        start = _round_offset(seed, turn)
        smallest = _VALUE
        for i in range(size):
            smallest = min(smallest, mix(features[i] + start) & _VALUE)
        sketch[slot] = min(sketch[slot], smallest | (turn << _SHIFT))
        slot = _next_open_slot(sketch, slot + 1, (turn + _ONE) << _SHIFT)


@inlined
def _sketch_buffers():
    """Return the buffers of ``_add_features``."""
    repeated = np.zeros(_SMALL_BLOCK, np.uint64)
    return np.empty(_BLOCK, np.uint16), np.empty(_BLOCK, np.uint64), repeated, np.zeros(_SMALL_BLOCK, np.uint64)


@kernel
def minhash(features, heads, seed, out):
    """Sketch documents by Fast Similarity Sketching.

    features: uint64[m], any; heads: int64[d + 1]; seed: uint64; out: uint64[d, K], K up to 4096. In round i < K each
    feature falls into a slot that its hash selects; in round K + i all fall into slot i. A slot keeps the smallest
    (round, hash). The share of equal slots estimates the Jaccard similarity without bias, with a variance of at most
    about J (1 - J) / K; the slotwise minimum of two sketches is the sketch of the union. An empty document has EMPTY in
    all slots (Dahlgaard, Knudsen & Thorup, FOCS 2017, arXiv 1704.04370, 2).
    """
    buckets, values, repeated, turns = _sketch_buffers()
    for d in range(out.shape[0]):
        out[d] = _EMPTY
        if heads[d] < heads[d + 1]:
            _add_features(features[heads[d] : heads[d + 1]], uint64(seed), buckets, values, repeated, turns, out[d])


@kernel
def minhash_update(features, sketch, seed):
    """Add features (uint64[m]) to a sketch (uint64[K]) that ``minhash`` created with the same seed."""
    if features.shape[0] > 0:
        buckets, values, repeated, turns = _sketch_buffers()
        _add_features(features, uint64(seed), buckets, values, repeated, turns, sketch)


@inlined
def _modulo(x, p, inverse):
    """Return x mod p for 0 <= x < 2**62 with x // p < 2**32, by floating point."""
    left = x - int64(float64(x) * inverse) * p
    left += p & (left >> int64(63))
    return left - (p & ((p - int64(1) - left) >> int64(63)))


@kernel
def linear_minima(features, heads, a, b, p, out):
    """Write the minima of linear functions modulo p: out[d, s] = min over the features x of (a[s] x + b[s]) mod p.

    features: uint64[m]; heads: int64[d + 1]; a, b: int64[S], not negative; p: 1 to 2**31 - 1; out: int64[d, S]. x, a
    and b are reduced modulo p first. An empty document has p, which no minimum reaches (Cornell INFO 4300; Broder,
    Charikar, Frieze & Mitzenmacher, JCSS 60 (2000)).
    """
    p = int64(p)
    inverse = 1.0 / float64(p)
    longest = 0
    for d in range(out.shape[0]):
        longest = max(longest, heads[d + 1] - heads[d])
    reduced = np.empty(longest, np.int64)
    for d in range(out.shape[0]):
        part = features[heads[d] : heads[d + 1]]
        for i in range(part.shape[0]):
            reduced[i] = int64(part[i] % uint64(p))
        for s in range(a.shape[0]):
            factor = a[s] % p
            shift = b[s] % p
            smallest = p
            for i in range(part.shape[0]):
                smallest = min(smallest, _modulo(factor * reduced[i] + shift, p, inverse))
            out[d, s] = smallest


@inlined
def _full_adder(a, b, c):
    """Add three words bit by bit: return (sum, carry)."""
    either = a ^ b
    return either ^ c, (a & b) | (either & c)


@inner_kernel
def _add_to_planes(word, plane, planes):
    """Add a word, whose bits have the value 2**plane, to bit-sliced counters."""
    while word != uint64(0):
        carried = planes[plane] & word
        planes[plane] ^= word
        word = carried
        plane += 1


@inner_kernel
def _majority(features, hashes, planes):
    """Return the bits that are set in more than half of the features' hashes, by 64 bit-sliced counters.

    hashes: uint64[_BLOCK], planes: uint64[_COUNTER_BITS], buffers.
    """
    planes[:] = uint64(0)
    for begin in range(0, features.shape[0], _BLOCK):
        part = features[begin : begin + _BLOCK]
        count = part.shape[0]
        for i in range(count):
            hashes[i] = mix(part[i] + _BIT)
        ones = planes[0]
        twos = planes[1]
        fours = planes[2]
        unrolled = count & ~7
        for i in range(0, unrolled, 8):
            ones, two_a = _full_adder(ones, hashes[i], hashes[i + 1])
            ones, two_b = _full_adder(ones, hashes[i + 2], hashes[i + 3])
            twos, four_a = _full_adder(twos, two_a, two_b)
            ones, two_a = _full_adder(ones, hashes[i + 4], hashes[i + 5])
            ones, two_b = _full_adder(ones, hashes[i + 6], hashes[i + 7])
            twos, four_b = _full_adder(twos, two_a, two_b)
            fours, eight = _full_adder(fours, four_a, four_b)
            _add_to_planes(eight, 3, planes)
        planes[0] = ones
        planes[1] = twos
        planes[2] = fours
        for i in range(unrolled, count):
            _add_to_planes(hashes[i], 0, planes)
    half = uint64(features.shape[0] // 2)
    more = uint64(0)
    equal = ~uint64(0)
    for plane in range(_COUNTER_BITS - 1, -1, -1):
        if (half >> uint64(plane)) & _ONE:
            equal &= planes[plane]
        else:
            more |= equal & planes[plane]
            equal &= ~planes[plane]
    return more


@inner_kernel
def _weighted_majority(features, weights, sums):
    """Return the bits whose hashes have more weight with the bit than without; sums: int64[64], a buffer."""
    sums[:] = 0
    total = 0
    for i in range(features.shape[0]):
        hashed = mix(features[i] + _BIT)
        weight = weights[i]
        total += weight
        for bit in range(64):
            sums[bit] += weight & -int64((hashed >> uint64(bit)) & _ONE)
    value = uint64(0)
    for bit in range(64):
        if sums[bit] > total - sums[bit]:
            value |= _ONE << uint64(bit)
    return value


@kernel
def simhash(features, weights, heads, out):
    """Write the 64-bit SimHash of each document to out (uint64[d]).

    features: uint64[m]; weights: int64[m], or empty for weights of 1; heads: int64[d + 1]. Bit j is set if the features
    whose hash has it set have more weight than the others; sums are int64. An empty document has 0 (Charikar, STOC
    2002, 3; Manku, Jain & Das Sarma, WWW 2007, 2).
    """
    hashes = np.empty(_BLOCK, np.uint64)
    planes = np.empty(_COUNTER_BITS, np.uint64)
    sums = np.empty(64, np.int64)
    for d in range(out.shape[0]):
        part = features[heads[d] : heads[d + 1]]
        if weights.shape[0] == 0:
            out[d] = _majority(part, hashes, planes)
        else:
            out[d] = _weighted_majority(part, weights[heads[d] : heads[d + 1]], sums)


@kernel
def supershingles(sketches, group, out):
    """Hash each group of consecutive minima, with its number, to one super shingle.

    sketches: uint64[d, K]; group: minima per group, at least 1; out: uint64[d, K // group]; minima behind the last
    complete group are ignored. Raising ``group`` makes super shingles agree for more similar documents only: with
    probability J**group (Broder, SEQUENCES 1997, 5).
    """
    for d in range(out.shape[0]):
        for g in range(out.shape[1]):
            value = mix(uint64(g) + _GROUP)
            for i in range(g * group, (g + 1) * group):
                value = mix((value * _CHAIN) ^ sketches[d, i])
            out[d, g] = value
