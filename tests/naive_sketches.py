"""Naive twins of the sketches: minima, majorities and super shingles in Python's integers."""

from __future__ import annotations

from collections.abc import Sequence

from neardup.kernels.sketches import EMPTY

MASK = 2**64 - 1


def naive_mix(x: int) -> int:
    for _ in range(2):
        x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93 & MASK
    return x ^ (x >> 32)


def naive_hash(x: int, seed: int, number: int) -> int:
    start = naive_mix((naive_mix(seed ^ 0xD1342543DE82EF95) + number * 0x9E3779B97F4A7C15) & MASK)
    return naive_mix((x + start) & MASK)


def naive_minhash(features: Sequence[int], slots: int, seed: int) -> list[int]:
    """All 2 K rounds of all features, never stopping early."""
    sketch = [EMPTY] * slots
    for x in features:
        for number in range(2 * slots):
            hashed = naive_hash(x, seed, number)
            slot = (hashed >> 32) * slots >> 32 if number < slots else number - slots
            sketch[slot] = min(sketch[slot], number << 48 | hashed & (2**48 - 1))
    return sketch


def naive_simhash(features: Sequence[int], weights: Sequence[int]) -> int:
    hashes = [naive_mix((x + 0xA0761D6478BD642F) & MASK) for x in features]
    value = 0
    for bit in range(64):
        if sum(w if h >> bit & 1 else -w for h, w in zip(hashes, weights, strict=True)) > 0:
            value |= 1 << bit
    return value


def naive_supershingles(sketch: Sequence[int], group: int) -> list[int]:
    found = []
    for g in range(len(sketch) // group):
        value = naive_mix((g + 0xC2B2AE3D27D4EB4F) & MASK)
        for x in sketch[g * group : (g + 1) * group]:
            value = naive_mix((value * 0x165667B19E3779F9 & MASK) ^ x)
        found.append(value)
    return found
